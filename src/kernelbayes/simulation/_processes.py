"""Processes of our own: started light, replaced when they die, killed when they hang.

`concurrent.futures` and `multiprocessing` pools cannot do this: one worker that dies breaks the whole pool, and a run that
hangs cannot be ended. They also fork a process in which JAX runs threads, or import the user's script again.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from ._calling import Caller, Outcome
from ._crews import Pace, Task
from ._runs import SimulationError
from ._shipping import pack

# The files that a worker needs, as packages of their own: importing ours would take seconds (see `_calling.py`).
_START = """
import importlib, sys, types
for name, path in (("_kernelbayes_worker", sys.argv[1]), ("_kernelbayes_worker.simulation", sys.argv[2])):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
importlib.import_module("_kernelbayes_worker.simulation._worker").main()
"""
_THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
# After its limit, a worker has this long to notice by itself.
_GRACE = 0.5
_LAST_WORDS = 2.0
# Workers that end before they are ready, in a row, after which no more are started.
_MOST_STILLBORN = 20


class _Worker:
    """One process, the tasks it has been given, and threads that listen to it and wait for its end."""

    def __init__(self, hello: bytes, threads: int, answers: queue.SimpleQueue[Any]):
        environment = dict.fromkeys(_THREAD_LIMITS, str(threads)) | os.environ
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, *map(str, (Path(__file__).parents[1], Path(__file__).parent))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is for the parent; and it can be killed with all that it has started
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self.tasks: deque[Task] = deque()
        self.since = time.monotonic()
        self.ready = False
        self._thread = threading.Thread(target=self._listen, args=(answers,), daemon=True)
        self._thread.start()
        threading.Thread(target=self._wait, args=(answers,), daemon=True).start()
        self.send(hello)

    def send(self, message: bytes) -> None:
        """Write to it; if it is dead, the listener will say so."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.write(message)
            self.process.stdin.flush()

    def _listen(self, answers: queue.SimpleQueue[Any]) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as pipe:
            while True:
                try:
                    message = pickle.load(pipe)
                except Exception:  # the end, or half a message before it
                    answers.put((self, ("gone", None), time.monotonic()))
                    return
                answers.put((self, message, time.monotonic()))

    def _wait(self, answers: queue.SimpleQueue[Any]) -> None:
        """Tell that it has died, also where a process that it left behind keeps its pipe open."""
        if hasattr(os, "waitid"):  # not on every system; leaves it its number, so that no other group has it
            with contextlib.suppress(OSError):
                os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
                self._kill_group()
        self.process.wait()
        self._thread.join(_LAST_WORDS)  # what it said before is heard, and then the end of the pipe
        if self._thread.is_alive():
            answers.put((self, ("gone", None), time.monotonic()))

    def _kill_group(self) -> None:
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()

    def kill(self) -> None:
        """End it and what it has started, whatever they are doing."""
        self._kill_group()
        self.dismiss()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_WORDS)
        self._thread.join(_LAST_WORDS)

    @property
    def was_killed(self) -> bool:
        """Whether it was killed by somebody else: no process sends itself this signal by accident."""
        return os.name == "posix" and self.process.returncode == -signal.SIGKILL

    def dismiss(self) -> None:
        """Tell it that there is no more to do."""
        with contextlib.suppress(OSError):
            if self.process.stdin is not None:
                self.process.stdin.close()

    def finish(self) -> None:
        """Wait for it to end by itself, but not for long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_LAST_WORDS)
        self.kill()  # also what it may have left behind


class Processes:
    """A number of worker processes."""

    def __init__(self, number: int, caller: Caller, row_bytes: int):
        told = ("style", "names", "seeds", "entropy", "limit", "vectorised", "by_points")
        how = {name: getattr(caller, name) for name in told}
        self._hello = pickle.dumps({"path": sys.path, "function": pack(caller.function), "how": how})
        self._number, self._limit, self._row_bytes = number, caller.limit, row_bytes
        self._threads = max(1, (os.cpu_count() or 1) // number)
        self._workers: list[_Worker] = []
        self._waiting: deque[Task] = deque()
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._pace, self._chunk = Pace(), 1
        self._stillborn = 0
        self._repeated: set[tuple[int, ...]] = set()

    @property
    def busy(self) -> bool:
        """Whether any task is under way."""
        return bool(self._waiting) or any(worker.tasks for worker in self._workers)

    def wants(self, left: int) -> int:
        """Enough to bring every worker to a chunk, once half of its last one is done."""
        self._chunk = chunk = self._pace.chunk(left, self._number, self._row_bytes)
        missing = self._number - len(self._workers)
        room = chunk * (missing + sum(self._hungry(worker, chunk) for worker in self._workers))
        return max(0, room - len(self._waiting))

    @staticmethod
    def _hungry(worker: _Worker, chunk: int) -> bool:
        return len(worker.tasks) <= chunk // 2

    def take(self, tasks: list[Task]) -> None:
        """Give each hungry worker a chunk, starting processes as they are needed."""
        self._waiting.extend(tasks)
        self._hand_out()

    def _hand_out(self) -> None:
        idle = sum(not worker.tasks for worker in self._workers)
        for _ in range(min(self._number - len(self._workers), len(self._waiting) - idle)):
            self._workers.append(_Worker(self._hello, self._threads, self._answers))
        chunk = self._chunk
        for worker in sorted(self._workers, key=lambda w: len(w.tasks)):
            if self._waiting and self._hungry(worker, chunk):
                share = [self._waiting.popleft() for _ in range(min(chunk, len(self._waiting)))]
                if not worker.tasks:
                    worker.since = time.monotonic()
                worker.tasks.extend(share)
                worker.send(pickle.dumps([tuple(task) for task in share]))

    def gather(self, seconds: float) -> list[Outcome]:
        """Answers that are there; then a look at the clock."""
        outcomes: list[Outcome] = []
        with contextlib.suppress(queue.Empty):
            outcomes += self._hear(*self._answers.get(timeout=seconds))
            while True:
                outcomes += self._hear(*self._answers.get_nowait())
        outcomes += self._kill_the_late()
        self._hand_out()
        return outcomes

    def _hear(self, worker: _Worker, message: tuple[str, Any], when: float) -> list[Outcome]:
        if worker not in self._workers:  # killed in the meantime
            return []
        what, content = message
        worker.since = when
        if what == "done":
            worker.tasks.popleft()
            outcome = Outcome(*content)
            self._pace.saw(outcome)
            return [outcome]
        if what == "ready":
            worker.ready, self._stillborn = True, 0
            return []
        if what == "cannot start":
            raise SimulationError(f"executor: a worker process could not load the simulator: {content}")
        how = _how_it_ended(worker.process)
        if not worker.ready:
            return self._replace(worker, how)
        return self._lose(worker, "lost", f"the worker process {how}", again=worker.was_killed)

    def _replace(self, worker: _Worker, how: str) -> list[Outcome]:
        """One that died before it began costs nothing; but where all do, it is no accident."""
        self._stillborn += 1
        if self._stillborn >= _MOST_STILLBORN:
            raise SimulationError(
                f"executor: {self._stillborn} worker processes in a row ended before they could load the simulator; the "
                f"last one {how}"
            )
        self._workers.remove(worker)
        worker.kill()
        self._waiting.extendleft(reversed(worker.tasks))
        return []

    def _lose(self, worker: _Worker, kind: str, reason: str, again: bool = False) -> list[Outcome]:
        """The first of its tasks is the one that it was doing; the others go to somebody else.

        With `again` so does that one, if it is the first time: who was killed from outside need not be at fault.
        """
        self._workers.remove(worker)
        worker.kill()
        if not worker.tasks:
            return []
        if again and worker.tasks[0].indices not in self._repeated:
            self._repeated.add(worker.tasks[0].indices)
            self._waiting.extendleft(reversed(worker.tasks))
            return []
        task = worker.tasks.popleft()
        self._waiting.extendleft(reversed(worker.tasks))
        return [Outcome(task.indices, None, None, time.monotonic() - worker.since, kind, reason)]

    def _kill_the_late(self) -> list[Outcome]:
        if self._limit is None:
            return []
        outcomes = []
        for worker in list(self._workers):
            if worker.ready and worker.tasks:
                limit = self._limit * len(worker.tasks[0].rows)
                if time.monotonic() - worker.since > limit + _GRACE:
                    reason = f"took longer than {limit:g} s; its process had to be killed"
                    outcomes += self._lose(worker, "timeout", reason)
        return outcomes

    def close(self) -> None:
        """End all processes: idle ones by themselves, others at once."""
        for worker in self._workers:
            if not worker.tasks:
                worker.dismiss()
        for worker in self._workers:
            worker.kill() if worker.tasks else worker.finish()
        self._workers = []


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_LAST_WORDS)
    code = process.returncode
    if code is None:
        return "closed its pipe"
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")

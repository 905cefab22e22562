"""Who does the runs: this process, or an executor of the user's. (Processes of our own are in `_processes.py`.)

A crew is handed tasks and gives back outcomes, in any order. It decides how many tasks it wants: enough that nobody waits,
few enough that little is under way when something stops.
"""

from __future__ import annotations

import contextlib
import os
import queue
import time
from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, Future
from typing import Any, NamedTuple, Protocol

from .._typing import Array
from ._calling import Caller, Outcome, run_for_executor
from ._interrupts import Interrupts
from ._runs import SimulationError

# Tasks are handed out in chunks that take about this long, so that very short ones are not eaten up by messages.
_CHUNK_SECONDS, _MOST_IN_CHUNK, _MOST_CHUNK_BYTES = 0.1, 64, 8192
# How fast the estimate of a task's time follows what is seen.
_FORGET = 0.2
# How many limits, and seconds, to wait for a worker when all of them hang.
_PATIENCE = 10.0


class Task(NamedTuple):
    """Runs that are done in one call: one run, or a batch for a vectorised simulator.

    Attributes:
        indices: the runs that are wanted.
        rows: of the whole batch, which may be more.
        first: the run that its first row is, and whose seed the batch has.
    """

    indices: tuple[int, ...]
    rows: Array
    first: int


class Crew(Protocol):
    """What the loop of `simulate` needs."""

    @property
    def busy(self) -> bool:
        """Whether any task is under way."""
        ...

    def wants(self, left: int) -> int:
        """How many tasks to hand out now, when `left` are left."""
        ...

    def take(self, tasks: list[Task]) -> None:
        """Accept tasks."""
        ...

    def gather(self, seconds: float) -> list[Outcome]:
        """Outcomes that are there, waiting for one so long at most."""
        ...

    def close(self) -> None:
        """Stop at once; what is under way is dropped."""
        ...


class Pace:
    """How many tasks make a chunk, from how long tasks took."""

    def __init__(self) -> None:
        self._seconds: float | None = None

    def saw(self, outcome: Outcome) -> None:
        """Take one more task into account."""
        old, new = self._seconds, outcome.seconds
        self._seconds = new if old is None else max(old + _FORGET * (new - old), 0.0)

    def chunk(self, left: int, workers: int, row_bytes: int = 0) -> int:
        """The size of a chunk: one at first, and small again at the end, so that all workers end together."""
        if self._seconds is None:
            return 1
        most = min(_MOST_IN_CHUNK, -(-left // (2 * workers)), _MOST_CHUNK_BYTES // max(row_bytes, 1))
        return max(1, min(int(_CHUNK_SECONDS / max(self._seconds, 1e-9)), most))


class InProcess:
    """Runs in this process, one after the other."""

    def __init__(self, caller: Caller, interrupts: Interrupts):
        self._caller, self._interrupts = caller, interrupts
        self._tasks: deque[Task] = deque()
        self._pace = Pace()

    @property
    def busy(self) -> bool:
        """Whether any task is waiting."""
        return bool(self._tasks)

    def wants(self, left: int) -> int:
        """A chunk when the last is done."""
        return 0 if self._tasks else self._pace.chunk(left, 1)

    def take(self, tasks: list[Task]) -> None:
        """Queue them."""
        self._tasks.extend(tasks)

    def gather(self, seconds: float) -> list[Outcome]:
        """Do the next one."""
        if self._interrupts.requested:
            self._tasks.clear()
            return []
        task = self._tasks.popleft()
        with self._interrupts.allowed():
            outcome = self._caller(*task)
        self._pace.saw(outcome)
        return [outcome]

    def close(self) -> None:
        """Nothing is under way between two calls."""


class _Submitted(NamedTuple):
    tasks: list[Task]
    since: float


class Foreign:
    """An executor that the user made: only its `submit` is used, and it is not shut down."""

    def __init__(self, executor: Any, caller: Caller, row_bytes: int):
        self._executor, self._caller, self._row_bytes = executor, caller, row_bytes
        self._workers = _workers_of(executor)
        self._pending: dict[Future[Any], _Submitted] = {}
        self._abandoned: dict[Future[Any], float] = {}  # runs that hang, and since when they are not waited for
        self._done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._pace, self._chunk = Pace(), 1

    @property
    def busy(self) -> bool:
        """Whether any task is under way."""
        return bool(self._pending)

    def wants(self, left: int) -> int:
        """Twice as many chunks as workers are kept under way.

        With a time limit, one run for each worker, so that none is late because it waits for another; those that hang keep
        their place.
        """
        if self._caller.limit is None:
            self._chunk = self._pace.chunk(left, self._workers, self._row_bytes)
            return max(0, self._chunk * (2 * self._workers - len(self._pending)))
        self._welcome_back()
        return max(0, self._workers - len(self._pending) - len(self._abandoned))

    def _welcome_back(self) -> None:
        """Workers whose runs ended after all have a place again; where all hang, they are waited for, but not for ever."""
        for future in [f for f in self._abandoned if f.done()]:
            del self._abandoned[future]
        patience = _PATIENCE * (self._caller.limit or 0.0) + _PATIENCE
        if len(self._abandoned) >= self._workers and time.monotonic() > max(self._abandoned.values()) + patience:
            raise SimulationError("executor has no worker left: all hang in runs that exceeded the timeout")

    def take(self, tasks: list[Task]) -> None:
        """Submit them, in chunks."""
        for start in range(0, len(tasks), self._chunk):
            chunk = tasks[start : start + self._chunk]
            try:
                future = self._executor.submit(run_for_executor, self._caller, [tuple(task) for task in chunk])
            except BrokenExecutor as problem:
                raise _broken(problem) from problem
            except RuntimeError as problem:
                raise SimulationError(f"executor takes no more work: {problem}") from problem
            self._pending[future] = _Submitted(chunk, time.monotonic())
            future.add_done_callback(self._done.put)

    def gather(self, seconds: float) -> list[Outcome]:
        """What has come back; and timeouts for what should have."""
        outcomes: list[Outcome] = []
        with contextlib.suppress(queue.Empty):
            outcomes += self._result(self._done.get(timeout=seconds))
            while True:
                outcomes += self._result(self._done.get_nowait())
        for outcome in outcomes:
            self._pace.saw(outcome)
        return outcomes + self._given_up()

    def _result(self, future: Future[Any]) -> list[Outcome]:
        if self._pending.pop(future, None) is None:
            return []
        try:
            return [Outcome(*outcome) for outcome in future.result()]
        except CancelledError:
            raise SimulationError("executor has dropped runs that it had accepted: was it shut down?") from None
        except BrokenExecutor as problem:
            raise _broken(problem) from problem
        except ValueError:  # that it cannot be sent, in words of our own
            raise
        except Exception as problem:
            said = f"{type(problem).__name__}: {problem}"
            raise SimulationError(f"executor could not do the work, before or after the simulator: {said}") from problem

    def _given_up(self) -> list[Outcome]:
        """After three limits, which leaves time to send it and to bring it back, a run hangs, and is not waited for."""
        limit, now = self._caller.limit, time.monotonic()
        if limit is None:
            return []
        late = [f for f, s in self._pending.items() if now - s.since > 3 * limit * len(s.tasks[0].rows) + 1.0]
        outcomes = []
        for future in late:
            tasks, since = self._pending.pop(future)
            self._abandoned[future] = now  # not cancelled: Dask would say that it was, and its worker hang all the same
            reason = f"took longer than {limit:g} s and did not come back"
            outcomes += [Outcome(t.indices, None, None, now - since, "timeout", reason) for t in tasks]
        return outcomes

    def close(self) -> None:
        """Cancel what has not begun."""
        for future in self._pending:
            future.cancel()


def _broken(problem: BrokenExecutor) -> SimulationError:
    """What is met when work is given to it or when results are awaited, whichever comes first."""
    return SimulationError(
        f"executor is broken: {problem} With executor=<a number of processes> a worker that dies costs one run"
    )


def _workers_of(executor: Any) -> int:
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)
    if callable(threads):  # Dask's
        return max(1, sum(dict(threads()).values()))  # type: ignore[call-overload]
    for name in ("_max_workers", "num_workers"):
        number = getattr(executor, name, None)
        if isinstance(number, int) and number > 0:
            return number
    return os.cpu_count() or 2

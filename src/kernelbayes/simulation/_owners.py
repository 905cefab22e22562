"""Who works on a store, and whether they are still alive.

A process that claims runs is an *owner*: host, process number, the moment the process started, and a heartbeat. On the same
host a dead process is recognised at once; elsewhere, or when a process hangs, by a heartbeat that has stopped. Clocks of
two processes are never compared: an observer sees whether a heartbeat changes, and counts the seconds by itself.
"""

from __future__ import annotations

import os
import platform
import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

#: Seconds between heartbeats, and without one after which claims are released. Compiled code that holds the interpreter's
#: lock longer than that, in the process of the call itself, is taken for dead: others would repeat that run, to no harm.
BEAT, LEASE = 5.0, 120.0

# Of the owners that are this process, those at work: one that could not sign off, on a full disk, is none of them.
_AT_WORK: set[str] = set()


class Owner(NamedTuple):
    """A process at work, as the store describes it; `started` ends with a word that no other owner has."""

    host: str
    pid: int
    started: str
    heartbeat: float

    def has_ended(self) -> bool:
        """Whether this process is known to have ended, or to have ended this piece of work."""
        if self.host != this_host() or os.name != "posix":
            return False
        if self.pid == os.getpid() and self.started.partition(" ")[0] == _state_and_start(self.pid)[1]:
            return self.started not in _AT_WORK
        return not _is_running(self.pid, self.started.partition(" ")[0])

    def begin(self) -> None:
        """Note that this process is at work as this owner."""
        _AT_WORK.add(self.started)

    def end(self) -> None:
        """Note that it no longer is."""
        _AT_WORK.discard(self.started)


class Watch:
    """Which owners have been silent for too long, by the clock of this process.

    However long this process did not look, or was suspended, a look adds two beats at most: an owner that was suspended
    with it is given the time to beat again.
    """

    def __init__(self) -> None:
        self._seen: dict[int, tuple[float, float, float]] = {}  # heartbeat, time of the last look, seconds of silence

    def is_silent(self, number: int, heartbeat: float) -> bool:
        """Whether the heartbeat of an owner has not changed for longer than the lease."""
        now = time.monotonic()
        before, looked, silence = self._seen.get(number, (None, now, 0.0))
        silence = silence + min(now - looked, 2 * BEAT) if heartbeat == before else 0.0
        self._seen[number] = heartbeat, now, silence
        return silence > LEASE


def this_host() -> str:
    """The machine; containers that number their processes apart are machines of their own."""
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def this_process() -> Owner:
    """A new owner that this process is."""
    start = _state_and_start(os.getpid())[1]
    return Owner(this_host(), os.getpid(), f"{start} {secrets.token_hex(8)}", time.time())


def _is_running(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    state, start = _state_and_start(pid)
    # a number is given to another process in time; a zombie has a number but does no work
    return state != "Z" and (not start or not started or start == started)


def _state_and_start(pid: int) -> tuple[str, str]:
    """State letter and start time where the system tells (Linux), else empty."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", ""
    fields = stat.rpartition(")")[2].split()  # the name in brackets may hold spaces
    return fields[0], fields[19]


class Heartbeat:
    """Calls `beat` now and then from a thread, as long as the process runs, or until it returns True."""

    def __init__(self, beat: Callable[[], bool | None]):
        self._beat, self._over = beat, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(BEAT) and not self._beat():
            pass

    def stop(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()

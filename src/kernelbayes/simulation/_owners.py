"""Who works on a store, and whether they are still alive.

A process that claims runs is an *owner*: host, process number, the moment the process started, and a heartbeat. On the same
host a dead process is recognised at once; elsewhere, or when a process hangs, by a heartbeat that has stopped.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

#: Seconds between heartbeats, and without one after which claims are released. Compiled code that holds the interpreter's
#: lock longer than that, in the process of the call itself, is taken for dead: others would repeat that run, to no harm.
BEAT, LEASE = 5.0, 120.0


class Owner(NamedTuple):
    """A process at work, as the store describes it."""

    host: str
    pid: int
    started: str
    heartbeat: float

    def is_gone(self) -> bool:
        """Whether this process has ended, or has not been heard of for so long that it counts as ended."""
        if time.time() - self.heartbeat > LEASE:
            return True
        return self.host == this_host() and os.name == "posix" and not _is_running(self.pid, self.started)


def this_host() -> str:
    """The machine; containers that number their processes apart are machines of their own."""
    try:
        return f"{platform.node()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def this_process() -> Owner:
    """The owner that this process is."""
    return Owner(this_host(), os.getpid(), _state_and_start(os.getpid())[1], time.time())


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
    """Calls `beat` now and then from a thread, as long as the process runs."""

    def __init__(self, beat: Callable[[], None]):
        self._beat, self._over = beat, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._over.wait(BEAT):
            self._beat()

    def stop(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()

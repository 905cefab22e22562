"""Ctrl-C: the first asks to stop, the second stops."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupts:
    """Holds a Ctrl-C back until it costs nothing: not between the end of a run and its record.

    Only in the main thread, and only where nobody else handles the signal.
    """

    def __init__(self) -> None:
        self.requested = False
        self._allowed = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None  # it may be entered again

    def _handle(self, signum: int, frame: Any) -> None:
        second, self.requested = self.requested, True
        if second or self._allowed:
            raise KeyboardInterrupt

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """While a simulator runs in this process, it is interrupted."""
        self._allowed = True
        try:
            yield
        finally:
            self._allowed = False

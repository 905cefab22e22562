"""What a worker process does: read tasks from its parent, run them one by one, and answer each as it ends.

Loaded on its own (see `_calling.py`). Messages are pickles of built-in types and NumPy arrays over the pipes that the
parent opened as standard input and output; what a simulator prints goes to standard error instead.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from typing import Any, BinaryIO

_LOOK_FOR_PARENT = 1.0


def main() -> None:
    """Serve the parent until it closes the pipe or is gone."""
    incoming, outgoing = _own_pipes()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    hello = pickle.load(incoming)
    try:
        caller = _prepare(hello)
    except BaseException as error:
        _send(outgoing, ("cannot start", f"{type(error).__name__}: {error}"))
        return
    _send(outgoing, ("ready", None))
    while True:
        try:
            tasks = pickle.load(incoming)
        except EOFError:
            return
        for task in tasks:
            _send(outgoing, ("done", tuple(caller(*task))))


def _prepare(hello: dict[str, Any]) -> Any:
    sys.path[:] = hello["path"]  # before anything is imported from it
    from ._calling import Caller

    return Caller(pickle.loads(hello["function"]), **hello["how"], shared=False)


def _own_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Take the pipes away from `print` and `input`, which would spoil the messages."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(line_buffering=True)
    return incoming, outgoing


def _send(outgoing: BinaryIO, message: tuple[str, Any]) -> None:
    try:
        outgoing.write(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))
        outgoing.flush()
    except BrokenPipeError:  # the parent was killed
        os._exit(1)


def _end_with(parent: int) -> None:
    """End when the parent does, also in the middle of a run that would never end."""
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT)
    if hasattr(os, "getpgrp") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with the programs that a simulator may have started
    os._exit(1)

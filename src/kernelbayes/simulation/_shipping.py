"""Sending a simulator to another process.

Functions of modules travel by name. Lambdas, closures, and what was defined in a notebook or in the script itself travel by
value, through cloudpickle; the script is therefore not imported again in a worker, and needs no `if __name__ == "__main__"`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import pickle
from collections.abc import Callable
from typing import Any


def pack(simulator: Callable[..., Any]) -> bytes:
    """The simulator as bytes, or a ValueError that names what stands in the way."""
    pickler = _cloudpickle()
    if pickler is None and getattr(simulator, "__module__", None) == "__main__":
        raise ValueError(
            "simulator is defined in the script or notebook itself, which other processes cannot import: install "
            "cloudpickle, or move it to a module"
        )
    try:
        return (pickler or pickle).dumps(simulator)
    except Exception as problem:
        raise ValueError(
            f"simulator cannot be sent to other processes ({type(problem).__name__}: {problem}). It, or a variable that it "
            "uses, holds something that lives in one process only, such as an open file, a lock or a connection: open it "
            "inside the simulator, or use executor=None"
            + ("" if pickler else "; lambdas and local functions need cloudpickle")
        ) from None


def _cloudpickle() -> Any:
    for home in ("cloudpickle", "joblib.externals.cloudpickle"):  # scikit-learn brings the second
        with contextlib.suppress(ImportError):
            return importlib.import_module(home)
    return None


class Portable:
    """Anything callable, as it is among threads, and packed only if an executor pickles it."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self._packed: bytes | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> Any:
        if self._packed is None:
            self._packed = pack(self.function)
        return _unpack, (self._packed, hashlib.sha256(self._packed).hexdigest())


@functools.lru_cache(maxsize=4)
def _unpacked(digest: str) -> dict[str, Any]:
    return {}


def _unpack(packed: bytes, digest: str) -> Portable:
    """Once in every process: a simulator may carry much, and may have set up much."""
    kept = _unpacked(digest)
    if "it" not in kept:
        kept["it"] = Portable(pickle.loads(packed))
    return kept["it"]

"""One run of a simulator: its seed, its time limit, and its output read as numbers.

This file, `_worker.py` and `_check.py` are also loaded by worker processes on their own, without the rest of the library,
so that a worker starts in a fifth of a second and not in several: they import nothing but the standard library and NumPy.
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from .. import _check

# A reason is for reading: the rest of a long message helps nobody.
_LONGEST_REASON = 400
# If the alarm is swallowed (an exception in a destructor is), it rings again.
_RING_AGAIN = 1.0
# What NumPy says where a function of one number is given an array.
_OF_NUMBERS = re.compile(
    r"only (length-1|size-1|0-dimensional|integer scalar) arrays|truth value of an array|array with ndim > 0 to a scalar"
)


class Outcome(NamedTuple):
    """What came of one task; either outputs, or a kind of failure with its reason."""

    indices: tuple[int, ...]
    outputs: np.ndarray | None
    statistics: tuple[str, ...] | None
    seconds: float
    kind: str | None
    reason: str | None


class TimeUp(BaseException):
    """A run has had its time. Not an `Exception`, which simulators catch."""


class Unreadable(Exception):
    """What a simulator returned is not an array of numbers."""


class Caller:
    """A simulator with all that decides how it is called.

    Args:
        function: the simulator.
        style: "array", "dict" or "keywords".
        names: of the parameters, where the style needs them.
        seeds: which of `rng`, `random_state` and `seed` the simulator asks for.
        entropy: of the whole; run i gets the child `spawn_key=(i,)`, a batch that of its first run.
        limit: seconds that one run may take.
        vectorised: whether the simulator takes many rows at once.
        by_points: whether one that takes no arrays, as NumPy tells, is called with each row, or its one number, by itself.
        shared: whether the process has other business, so that its global generators are to be put back afterwards.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        style: str,
        names: tuple[str, ...] | None,
        seeds: tuple[str, ...],
        entropy: int,
        limit: float | None,
        vectorised: bool,
        by_points: bool = False,
        shared: bool = True,
    ):
        self.function, self.style, self.names, self.seeds = function, style, names, seeds
        self.entropy, self.limit, self.vectorised, self.shared = entropy, limit, vectorised, shared
        self.by_points, self._takes_points = by_points and not seeds, False

    def __call__(
        self, indices: Sequence[int], rows: np.ndarray, first: int | None = None, seed_globals: bool = True
    ) -> Outcome:
        """Run one row, or with a vectorised simulator all rows of a batch, from run `first` on, for the runs asked for."""
        indices = tuple(indices)
        first = indices[0] if first is None else first
        limit = None if self.limit is None else self.limit * len(rows)
        start = time.perf_counter()
        outputs = statistics = kind = reason = None
        try:
            seed = np.random.SeedSequence(self.entropy, spawn_key=(first,))
            with _global_seeds(seed, self.shared) if seed_globals else nullcontext():
                value = limited(lambda: self._call(rows, seed), limit)
            statistics, outputs = read_output(value, len(rows) if self.vectorised else None)
            outputs = outputs[[run - first for run in indices]]
        except TimeUp:
            kind = "timeout"
        except Unreadable as problem:
            kind, reason = "wrong shape", str(problem)
        except (Exception, SystemExit) as error:
            kind, reason = "raised", describe(error)
        seconds = time.perf_counter() - start
        if limit is not None and (kind == "timeout" or seconds > limit):  # where no alarm rings, it may just be late
            outputs, kind, reason = None, "timeout", f"took longer than {limit:g} s"
        return Outcome(indices, outputs, statistics, seconds, kind, reason)

    def _call(self, rows: np.ndarray, seed: np.random.SeedSequence) -> Any:
        if self._takes_points:
            return self._each(rows)
        seeds = {name: _seed_for(name, seed) for name in self.seeds}
        try:  # a simulator may write on what it is given
            return self._given(rows.copy() if self.vectorised else rows[0].copy(), **seeds)
        except (TypeError, ValueError, DeprecationWarning) as error:  # which NumPy gives up to 2.3
            no_dict = self.style == "dict" and rows.shape[1] == 1 and isinstance(error, TypeError)
            if not self.by_points or not (no_dict or _OF_NUMBERS.search(str(error))):
                raise
        return self._each(rows)

    def _given(self, given: np.ndarray, **seeds: Any) -> Any:
        if self.style == "array":
            return self.function(given, **seeds)
        named = dict(zip(self.names or (), given.T if given.ndim == 2 else given.tolist(), strict=True))
        return self.function(**named, **seeds) if self.style == "keywords" else self.function(named, **seeds)

    def _each(self, rows: np.ndarray) -> Any:
        """What a function of one point, or of one number, says of each row, as a vectorised one would say it."""
        values = []
        for row in rows:
            values.append(self._at(row))
            self._takes_points = True  # it does: later batches need not fail first
        if not self.vectorised:
            return values[0]
        if isinstance(values[0], Mapping):
            return {name: [value[name] for value in values] for name in values[0]}
        return values

    def _at(self, row: np.ndarray) -> Any:
        if self.style != "keywords" and len(row) == 1:
            try:
                return self.function(float(row[0]))
            except (TypeError, IndexError, AttributeError):
                pass  # it takes an array or a dict of one number
        return self._given(row.copy())


def _seed_for(name: str, seed: np.random.SeedSequence) -> Any:
    return np.random.default_rng(seed) if name == "rng" else int(seed.generate_state(1)[0])


@contextmanager
def _global_seeds(seed: np.random.SeedSequence, shared: bool) -> Iterator[None]:
    """Seed the global generators of NumPy and of `random`."""
    before = (np.random.get_state(legacy=False), random.getstate()) if shared else None  # noqa: NPY002
    np.random.seed(seed.generate_state(4))  # noqa: NPY002
    random.seed(int(seed.generate_state(2, np.uint64)[1]))
    try:
        yield
    finally:
        if before is not None:
            np.random.set_state(before[0])  # noqa: NPY002
            random.setstate(before[1])


def run_for_executor(caller: Caller, tasks: Sequence[tuple[tuple[int, ...], np.ndarray, int]]) -> list[Outcome]:
    """What an executor of the user's is asked to do: a few tasks, one after the other."""
    alone = threading.current_thread() is threading.main_thread()  # threads share the global generators
    return [caller(*task, seed_globals=alone) for task in tasks]


# ------------------------------------------------------------------------------------------------------- time limit


def can_alarm() -> bool:
    """Whether a signal can interrupt Python code here: in the main thread, on a system that has alarms."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


def limited(call: Callable[[], Any], seconds: float | None) -> Any:
    """Call it, and raise TimeUp when it takes longer; code that does not return to Python is not interrupted."""
    if seconds is None or not can_alarm():
        return call()
    alarm = _Alarm()
    try:
        try:
            alarm.set(seconds)
            return call()
        finally:
            alarm.clear()
    except TimeUp:
        alarm.clear()  # it may have rung inside the first attempt to clear it
        raise


class _Alarm:
    """SIGALRM, and what it was set to before."""

    def __init__(self) -> None:
        self.ringing = False
        self.before: Any = signal.getsignal(signal.SIGALRM)

    def set(self, seconds: float) -> None:
        self.ringing = True
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, seconds, _RING_AGAIN)

    def clear(self) -> None:
        self.ringing = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, self.before if self.before is not None else signal.SIG_DFL)

    def _ring(self, signum: int, frame: Any) -> None:
        if self.ringing:
            raise TimeUp


# ----------------------------------------------------------------------------------------------------- what it says


def read_output(value: Any, rows: int | None) -> tuple[tuple[str, ...] | None, np.ndarray]:
    """Names of the statistics, if there are any, and outputs (1, *shape), or (rows, *shape) of a whole batch."""
    named = _by_name(value, rows)
    if named is None:
        return None, _leading_axis(_floats(value, "the simulator returned"), rows, "the simulator returned")
    if not named:
        raise Unreadable("the simulator returned an empty dict")
    columns = []
    for name, entry in named.items():
        column = _floats(entry, f"statistic {name!r} is")
        if column.ndim != (0 if rows is None else 1):
            wanted = "a number" if rows is None else "one number for each row"
            raise Unreadable(f"statistic {name!r} has shape {column.shape} where {wanted} was wanted")
        columns.append(_leading_axis(column, rows, f"statistic {name!r} has"))
    return tuple(map(str, named)), np.stack(columns, axis=-1)


def _by_name(value: Any, rows: int | None) -> Mapping[Any, Any] | None:
    """Statistics by their names: a dict, a row of a data frame, or of a whole batch a data frame; None of other outputs."""
    if isinstance(value, Mapping):
        return value
    if rows is None:
        names = _check.row_names(value)
        return None if names is None else dict(zip(names, list(value), strict=True))
    names = _check.column_names(value)
    if names is None or any(not isinstance(column, str) for column in value.columns):
        return None
    return {name: value[name] for name in names}


def _leading_axis(array: np.ndarray, rows: int | None, what: str) -> np.ndarray:
    if rows is None:
        return array[None]
    if array.ndim == 0 or len(array) != rows:
        given = "one number" if array.ndim == 0 else f"{len(array)} values"
        shape = f" (shape {array.shape})" * (array.ndim > 1)
        raise Unreadable(f"{what} {given}{shape} for {rows} rows; there must be one for each row")
    return array


def _floats(value: Any, what: str) -> np.ndarray:
    if value is None:
        raise Unreadable(f"{what} None, where numbers were wanted")
    try:
        array = _check.no_dates(value, what.removesuffix(" is") if what.endswith(" is") else f"what {what}")
    except ValueError as error:
        raise Unreadable(str(error)) from None
    try:
        if array.dtype.kind in "USc":
            raise TypeError
        if array.dtype.kind == "O" and any(entry is None for entry in array.ravel()):
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise Unreadable(f"{what} {_shortened(repr(value), 60)}, which cannot be read as an array of numbers") from None
    if array.size == 0:
        raise Unreadable(f"{what} an empty array of shape {array.shape}")
    return array


def describe(error: BaseException) -> str:
    """Type and message of an error, with the line of the user's code that it came from."""
    said = _shortened(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__, _LONGEST_REASON)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    return f"{said} ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else said


def _shortened(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."

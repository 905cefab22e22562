"""Runs as they end, and the book that they are entered in, which a store (`_store.py`) and memory (`_memory.py`) keep."""

from __future__ import annotations

import abc
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ._runs import Failure, Runs


class Record(NamedTuple):
    """One run as it goes into the book; `kind` is None where it finished."""

    run: int
    parameters: Array
    output: Array | None
    form: int | None
    seconds: float
    kind: str | None
    reason: str | None


class Form(NamedTuple):
    """What an output looks like. Runs should agree on one; those that differ from most are failures."""

    shape: tuple[int, ...]
    statistics: tuple[str, ...] | None

    def __str__(self) -> str:
        return f"shape {self.shape}" if self.statistics is None else f"the statistics {', '.join(self.statistics)}"

    @property
    def likeness(self) -> str:
        """The same for forms that differ in the order of their statistics only."""
        return json.dumps((self.shape, None if self.statistics is None else sorted(self.statistics)))

    @classmethod
    def read(cls, text: str) -> Form:
        """A form as it is kept."""
        shape, statistics = json.loads(text)
        return cls(tuple(shape), None if statistics is None else tuple(statistics))


class OtherDesign(ValueError):
    """A store that holds a run with other parameters than those of the design."""


class Book(abc.ABC):
    """Runs 0 .. budget - 1 of a design: which are done, which failed, and which are being done.

    Attributes:
        path: of the store, or None in memory.
        rows: the design (budget, d), to which rows are added by `extend`.
        start: where the last of them begin; what was before them is over, and is not looked at again.
    """

    path: Path | None

    def __init__(self, width: int):
        self.rows, self.start = np.empty((0, width)), 0

    def __enter__(self) -> Book:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def budget(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def take_over(self, runs: Runs) -> None:
        """Enter runs that are known already: what a store does, where there is none."""
        if len(runs):
            number, _ = self.form(Form(runs.outputs.shape[1:], runs.statistics))
            done = zip(runs.index, runs.parameters, runs.outputs, runs.seconds, strict=True)
            self.record(Record(int(i), row, output, number, float(s), None, None) for i, row, output, s in done)
        self.record(Record(f.index, f.parameters, None, None, 0.0, f.kind, f.reason) for f in runs.failures)

    @abc.abstractmethod
    def fact(self, name: str, value: Any = None) -> Any:
        """What the book says, and if it does not say yet, what is given."""

    @abc.abstractmethod
    def is_empty(self) -> bool:
        """Whether there is no run yet."""

    @abc.abstractmethod
    def begin(self) -> None:
        """Enter this process as an owner."""

    @abc.abstractmethod
    def extend(self, rows: Array, retry_failed: bool = False) -> None:
        """Add rows (k, d) to the design, and compare them with what is known."""

    @abc.abstractmethod
    def ended(self) -> int:
        """How many runs have ended, well or not."""

    @abc.abstractmethod
    def claim(self, number: int, block: int = 1) -> list[int]:
        """Up to `number` runs (and the rest of the last block) that nobody has done or is doing: now they are ours."""

    @abc.abstractmethod
    def form(self, form: Form) -> tuple[int, Form]:
        """The number of a form, and the form itself with its statistics in the order that came first."""

    @abc.abstractmethod
    def record(self, records: Iterable[Record]) -> None:
        """Enter runs that have ended; a run that is there already stays as it is."""

    @abc.abstractmethod
    def runs(self) -> Runs:
        """Those of the rows that were added last that have ended."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release what is ours and has not been done."""


def runs_of(
    records: Sequence[Record], forms: Mapping[int, Form], names: tuple[str, ...] | None, dimension: int
) -> Runs:
    """Records in the order of their numbers: those of the form of most, and the others as failures."""
    # the form of most; that of the first among equals, which the counter knows first
    usual = Counter(record.form for record in records if record.form is not None).most_common(1)
    main = usual[0][0] if usual else None
    done = [record for record in records if record.form == main] if usual else []
    shape = forms[main].shape if main is not None else ()
    return Runs(
        parameters=_stacked([record.parameters for record in done], (dimension,)),
        outputs=_stacked([np.empty(0) if record.output is None else record.output for record in done], shape),
        index=np.array([record.run for record in done], dtype=int),
        seconds=np.array([record.seconds for record in done], dtype=float),
        names=names,
        statistics=forms[main].statistics if main is not None else None,
        failures=tuple(
            _failure(record, main, forms) for record in records if record.form is None or record.form != main
        ),
    )


def _stacked(arrays: list[Array], shape: tuple[int, ...]) -> Array:
    flat = np.concatenate([np.ravel(array) for array in arrays]) if arrays else np.empty(0)
    return flat.astype(np.float64, copy=False).reshape(len(arrays), *shape)


def _failure(record: Record, main: int | None, forms: Mapping[int, Form]) -> Failure:
    parameters = np.array(record.parameters, dtype=np.float64)
    if record.form is None:
        return Failure(record.run, parameters, record.reason or "", record.kind or "")
    assert main is not None
    reason = f"returned {forms[record.form]}, where most runs returned {forms[main]}"
    return Failure(record.run, parameters, reason, "wrong shape")

"""What was observed, as a table says it, and how it fits what a simulator returns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._table import Table, read_table
from .._typing import Array
from ._columns import counted
from ._refusal import Refusal


class Observation(NamedTuple):
    """One row of named statistics, or numbers without names in the shape of a series."""

    source: str
    values: Array
    names: tuple[str, ...] | None

    def __str__(self) -> str:
        if self.names is None:
            return f"{self.source}: {counted(self.values.size, 'value')}"
        shown = [f"{name} {value:.6g}" for name, value in zip(self.names, self.values, strict=True)]
        more = len(shown) - 8
        return f"{self.source}: {', '.join(shown[:8])}" + (f" and {more} more" if more > 0 else "")

    def as_returned(self, statistics: tuple[str, ...] | None, shape: tuple[int, ...]) -> dict[str, Any]:
        """Arguments of `infer`, for a simulator that returns named statistics, or numbers of a shape."""
        size = int(np.prod(shape))
        if self.names is not None and statistics is not None:
            missing = [name for name in statistics if name not in self.names]
            if missing:
                raise Refusal(
                    f"{self.source} has no column {missing[0]!r}, which the simulator returns "
                    f"(it has {', '.join(self.names)})"
                )
            idle = [name for name in self.names if name not in statistics]
            if idle:
                print(f"note    the simulator does not return {', '.join(idle)} of {self.source}; left out")
            return {"observed": dict(zip(self.names, self.values, strict=True))}
        if self.values.size != size:
            raise Refusal(f"{self.source} has {counted(self.values.size, 'value')} where the simulator returns {size}")
        named = {"statistics": list(self.names)} if self.names is not None else {}
        return {"observed": self.values.reshape(shape), **named}

    def among(self, table: Table) -> dict[str, Any]:
        """Arguments of `infer`, for runs made elsewhere: the columns of their table that were observed."""
        if self.names is not None:
            outputs: Mapping[str, Array] = dict(zip(self.names, table.numbers(self.names, gaps="allow").T, strict=True))
            return {"outputs": outputs, "observed": dict(zip(self.names, self.values, strict=True))}
        if self.values.size != len(table.names):
            raise Refusal(
                f"{self.source} has {counted(self.values.size, 'value')} where {table.source} has "
                f"{counted(len(table.names), 'column')}"
            )
        outputs = dict(zip(table.names, table.numbers(table.names, gaps="allow").T, strict=True))
        return {"outputs": outputs, "observed": self.values.reshape(-1)}


def read_observation(path: str) -> Observation:
    """A row of statistics under their names, or a column of numbers with or without a name."""
    bare = _bare_column(path)
    if bare is not None:
        return Observation(path, bare, None)
    table = read_table(path)
    values = table.numbers(table.names)
    if len(table) == 1:
        return Observation(path, values[0], table.names)
    return Observation(path, values[:, 0] if len(table.names) == 1 else values, None)


def _bare_column(path: str) -> Array | None:
    """Numbers one below the other, without a header; None for any other file."""
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
        values = np.array([float(line) for line in lines if line.strip()])
    except (OSError, ValueError):  # whoever reads it as a table says what is wrong
        return None
    return values if len(values) and np.isfinite(values).all() else None

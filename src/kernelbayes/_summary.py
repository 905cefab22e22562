"""Small tables that a person reads: printed in columns, as HTML in a notebook, as CSV in a file."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterator, Mapping, Sequence

from ._table import write_table

# Columns of places, which are told apart by so much as their standard deviation in the column "std".
_ABOUT = ("mean", "median")


class Summary(Mapping[str, Mapping[str, float]]):
    """A table of numbers with named rows and columns; `summary["growth"]["mean"]` is one of them.

    What there is to beware of, if anything, is printed below it and kept in `problems`.

    Example:
        >>> from kernelbayes import Summary
        >>> Summary({"growth": {"mean": 1.25, "std": 0.5}, "noise": {"mean": 0.1, "std": 0.02}})
                mean   std
        growth  1.25   0.5
        noise    0.1  0.02
    """

    def __init__(self, rows: Mapping[str, Mapping[str, float]], title: str = "", problems: Sequence[str] = ()):
        self._rows = {name: dict(row) for name, row in rows.items()}
        self.title, self.problems = title, tuple(problems)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(next(iter(self._rows.values()), ()))

    def __getitem__(self, name: str) -> Mapping[str, float]:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def _cells(self) -> list[list[str]]:
        if not self._rows:
            return []
        body = [
            [name, *(_shown(row[c], c, row.get("std", row.get("sd"))) for c in self.columns)]
            for name, row in self._rows.items()
        ]
        return [["", *self.columns], *body]

    def __repr__(self) -> str:
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in cells
        ]
        said = [f"beware: {problem}" for problem in self.problems]
        return "\n".join(([self.title] if self.title else []) + [line.rstrip() for line in lines] + said)

    def _repr_html_(self) -> str:
        head, *body = self._cells() or [[]]
        top = "".join(f"<th>{html.escape(c)}</th>" for c in head)
        rows = "".join(f"<tr><th>{html.escape(r[0])}</th>{''.join(f'<td>{c}</td>' for c in r[1:])}</tr>" for r in body)
        said = "".join(f"<p>beware: {html.escape(problem)}</p>" for problem in self.problems)
        return f"<table><caption>{html.escape(self.title)}</caption><tr>{top}</tr>{rows}</table>{said}"

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write it with the names of the rows in a column `name`."""
        columns = [("name", list(self._rows))]
        columns += [(c, [row[c] for row in self._rows.values()]) for c in self.columns]
        write_table(path, columns)


def percent(level: float) -> str:
    """The name of a column of quantiles, such as "5 %"."""
    return f"{100 * level:g} %"


def _shown(value: float, column: str, std: float | None) -> str:
    """Four digits; of numbers that a standard deviation is about, as many as it has two digits of."""
    if not isinstance(value, float):
        return str(value)
    digits = 4
    if (column in _ABOUT or column.endswith(" %")) and std and value and math.isfinite(value) and math.isfinite(std):
        digits = min(max(4, math.floor(math.log10(abs(value))) - math.floor(math.log10(abs(std))) + 2), 15)
    return f"{value:.{digits}g}"

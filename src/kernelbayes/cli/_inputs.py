"""Columns of a table as inputs of a model: numbers as they are, words as a column of zeros and ones for each word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .._table import Table
from .._typing import Array
from ._refusal import Refusal

# More words than this in a column are names or remarks rather than kinds of something.
MOST_WORDS, _MOST_ASKED = 20, 500
# A column is no input by itself if a larger share of its cells is empty.
_MOST_EMPTY = 0.5
_MOST_LISTED = 20
_ROW_NAMES, _MANY = frozenset({"id", "index", "row", "row number", "nr", "no", "unnamed: 0"}), 30
_EMPTY = frozenset({"", "nan", "na", "n/a", "null"})  # and not "none", which may be the answer


class Inputs(NamedTuple):
    """The columns that a model reads, and the words of each that holds words."""

    columns: tuple[str, ...]
    words: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> list[str]:
        """Of the inputs of the model: `size`, and `colour=red` for a word."""
        return [name for column in self.columns for name in self._names(column)]

    def _names(self, column: str) -> list[str]:
        return [f"{column}={word}" for word in self.words[column]] if column in self.words else [column]

    def __str__(self) -> str:
        counts = {column: f" ({len(self.words[column])} words)" for column in self.words}
        return listed([column + counts.get(column, "") for column in self.columns])

    def read(self, table: Table) -> Array:
        """The inputs (n, d) of a table; NaN where its cell is empty."""
        table.require(self.columns)
        parts = [
            _indicators(table.text(column), self.words[column])
            if column in self.words
            else table.numbers([column], gaps="allow")
            for column in self.columns
        ]
        return np.concatenate(parts, axis=1)

    def gaps(self, table: Table) -> list[str]:
        """Columns with empty cells and how many they have, most first."""
        empty = {}
        for column in self.columns:
            part = Inputs((column,), {column: self.words[column]} if column in self.words else {})
            empty[column] = int(np.isnan(part.read(table)).any(axis=1).sum())
        return [f"{column} ({n:,})" for column, n in sorted(empty.items(), key=lambda item: -item[1]) if n]

    def unknown(self, table: Table) -> list[str]:
        """What to say of words in a table that were not learned from: they count as none of those known."""
        said = []
        for column, known in self.words.items():
            new = [cell for cell in dict.fromkeys(table.text(column)) if not is_empty(cell) and cell not in known]
            if new:
                rows = sum(cell in new for cell in table.text(column))
                said.append(f"{column} has the new word {new[0]!r}" + f" and {len(new) - 1} more" * (len(new) > 1))
                count = "1 row counts" if rows == 1 else f"{rows} rows count"
                said[-1] += f" in {table.source}; {count} as none of those learned from"
        return said


def listed(items: Sequence[str]) -> str:
    """The first of many."""
    more = len(items) - _MOST_LISTED
    return ", ".join(items[:_MOST_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def is_empty(cell: str) -> bool:
    """Whether a cell that may hold a word is a gap."""
    return cell.lower() in _EMPTY


def words_of(cells: Sequence[str]) -> tuple[str, ...]:
    """The words of a column in alphabetical order."""
    return tuple(sorted({cell for cell in cells if not is_empty(cell)}))


def _indicators(cells: Sequence[str], words: Sequence[str]) -> Array:
    out = (np.array(cells)[:, None] == np.array(words)).astype(float)
    out[[is_empty(cell) for cell in cells]] = np.nan
    return out


def asked_inputs(train: Table, wanted: list[str]) -> Inputs:
    """Inputs named in the arguments, words of any number among them."""
    words = {name: words_of(train.text(name)) for name in wanted if not train.is_numeric(name)}
    for name in wanted:
        if train.is_empty(name):
            raise Refusal(f"{train.source} has nothing in column {name!r}")
        if len(words.get(name, ())) > _MOST_ASKED:
            raise Refusal(
                f"column {name!r} of {train.source} holds {len(words[name]):,} different words: too many for an input"
            )
    return Inputs(tuple(wanted), words)


def default_inputs(train: Table, test: Table | None, taken: Sequence[str]) -> tuple[Inputs, list[str]]:
    """All columns that can be inputs, and what to say of those that are left out."""
    columns, words, said = [], {}, []
    for name in (name for name in train.names if name not in taken):
        reason = _reason_against(train, test, name)
        if reason:
            said.append(
                f"{name} {reason}, and is left out"
                + ("" if reason.startswith("is ") else "; name it in --inputs to keep it")
            )
            continue
        columns.append(name)
        if not train.is_numeric(name):
            words[name] = words_of(train.text(name))
    return Inputs(tuple(columns), words), said


def _reason_against(train: Table, test: Table | None, name: str) -> str | None:
    """Why a column is no input unless asked for."""
    if test is not None and name not in test.columns:
        return f"is not in {test.source}"
    for table in (train, test) if test is not None else (train,):
        if table.is_empty(name):
            return f"is empty in {table.source}"
    gaps = sum(map(is_empty, train.text(name)))
    if gaps > _MOST_EMPTY * len(train):
        return f"is empty in {gaps:,} of {len(train):,} rows of {train.source}"
    if train.is_numeric(name):
        return "counts the rows" if counts_rows(train, name) else None
    count = len(words_of(train.text(name)))
    if count == 1:
        return "holds one word only"
    return f"holds {count:,} different words" if count > MOST_WORDS else None


def counts_rows(table: Table, name: str) -> bool:
    """Whether a column is a number of the row, by all appearances.

    Whole numbers that rise by one, or no two alike: with a name that says so, or rising to no more than twice their number,
    as where rows were left out. A rank, in any other order, may well be an input.
    """
    values = table.numbers([name], gaps="allow")[:, 0]
    if len(values) < 4 or np.isnan(values).any() or (values != np.round(values)).any():
        return False
    if (np.diff(values) == 1).all():
        return True
    distinct = len(np.unique(values)) == len(values)
    dense = len(values) > _MANY and values.min() >= 0 and values.max() < 2 * len(values)
    rising = bool((np.diff(values) > 0).all())
    return distinct and ((dense and rising) or is_row_name(name) or name.lower().endswith("_id"))


def is_row_name(name: str) -> bool:
    """Whether a column is called like a number of the row."""
    return name.lower() in _ROW_NAMES

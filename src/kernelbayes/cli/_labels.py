"""Which classes a column of a table holds: whole numbers in their order, or words."""

from __future__ import annotations

import numpy as np

from .._table import Table
from .._typing import Array
from ._inputs import is_empty, listed
from ._refusal import Refusal

# A target of numbers with fractions and more values than this is a quantity; with whole ones it may be.
_MOST_VALUES = 20
_FEWEST_ROWS = 6


def read_labels(table: Table, column: str, whole: bool) -> tuple[Array, Array]:
    """Classes as numbers or as words, and where there are any."""
    if whole:
        numbers = table.numbers([column], gaps="allow")[:, 0]
        return numbers, ~np.isnan(numbers)
    cells = table.text(column)
    return np.array(cells), np.array([not is_empty(cell) for cell in cells])


def are_whole(table: Table, column: str) -> bool:
    """Whether classes are whole numbers; fractions are words, as are numbers among words."""
    try:
        values = table.numbers([column], gaps="allow")
    except ValueError:
        return False
    values = values[~np.isnan(values)]
    return len(values) > 0 and bool((values == np.round(values)).all() and np.abs(values).max() < 2**53)


def check_classes(table: Table, column: str, labels: Array, whole: bool) -> None:
    """Refuse a target that cannot be one; mention what looks odd."""
    where = f"column {column!r} of {table.source}"
    found = np.unique(labels)
    if len(found) < 2:
        held = f"one class only, {found[0]}" if len(found) else "no classes"
        raise Refusal(f"{where} holds {held}; at least two are needed")
    counts = f"{len(found):,} different values in {len(labels):,} rows"
    quantity = "; if it is a quantity, this is no classification but a regression (kb.ConditionalEmbedding)"
    fractions = table.is_numeric(column) and not whole
    if len(labels) < _FEWEST_ROWS and len(found) < len(labels):
        raise Refusal(f"{where} has {counts}: too few rows to learn from")
    if len(found) > max(2, len(labels) / 2) or (fractions and len(found) > _MOST_VALUES):
        raise Refusal(f"{where} has {counts}: these are no classes{quantity if table.is_numeric(column) else ''}")
    if whole and len(found) > _MOST_VALUES:
        print(f"note    {column} has {counts}{quantity}")


def true_positions(table: Table, column: str, classes: Array) -> Array:
    """Positions of the true classes; -1 where there is none, or one that was not learned from, which is told."""
    if column not in table.names or all(map(is_empty, table.text(column))):
        return np.full(len(table), -1)
    labels, known = read_labels(table, column, classes.dtype.kind in "iu")
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    strange = known & (classes[place] != labels)
    if strange.any():
        row, count = int(strange.argmax()), int(strange.sum())
        told = f"{table.source}, line {table.lines[row]}: the class {table.text(column)[row]!r} of column {column!r}"
        rows = "1 such row counts" if count == 1 else f"{count:,} such rows count"
        print(f"note    {told} is none of those learned from; {rows} as without a class")
        if not (known & ~strange).any():
            raise Refusal(f"{told} is none of those learned from: {listed([str(label) for label in classes])}")
    return np.where(known & ~strange, place, -1)

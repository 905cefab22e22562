"""Tables of numbers for the experiment on regression: made up, shipped with scikit-learn, and files in a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._table import _is_number, _rows
from .._typing import Array

# Of a column of a file, the share that may be missing, and the values that a target takes at least; rows at least.
_MISSING, _VALUES, _ROWS = 0.2, 10, 150


class Pairs(NamedTuple):
    """Points (n, d) and the number (n,) that goes with each."""

    X: Array
    y: Array


def _spread(x: Array, rng: np.random.Generator) -> Array:
    return np.sin(3 * x[:, 0]) + 0.2 * np.exp(1.2 * x[:, 1]) * rng.normal(size=len(x))


def _two_humps(x: Array, rng: np.random.Generator) -> Array:
    branch = np.where(rng.random(len(x)) < 1 / (1 + np.exp(-3 * x[:, 0])), 1.0, -1.0)
    return branch * (1 + 0.5 * x[:, 1]) + 0.2 * rng.normal(size=len(x))


def _heavy(x: Array, rng: np.random.Generator) -> Array:
    return x[:, 0] * x[:, 1] + 0.3 * rng.standard_t(2.5, len(x))


def _counts(x: Array, rng: np.random.Generator) -> Array:
    return rng.poisson(np.exp(1.0 + 0.8 * x[:, 0] - 0.5 * x[:, 1] ** 2)).astype(float)


def _hurdle(x: Array, rng: np.random.Generator) -> Array:
    moved = rng.random(len(x)) < 0.5 / (1 + np.exp(-3 * x[:, 1]))
    return np.where(moved, np.exp(0.8 * x[:, 0] + 0.4 * rng.normal(size=len(x))), 0.0)


#: How y is drawn at points of [-1.5, 1.5]^3, of which the last column says nothing.
MADE_UP: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "varying spread": _spread,
    "two humps": _two_humps,
    "heavy tails": _heavy,
    "counts": _counts,
    "mostly zero": _hurdle,
}
#: Tables that come with scikit-learn: the function that loads it, and the column that is predicted from the others.
SHIPPED: dict[str, tuple[str, int | None]] = {
    "diabetes": ("load_diabetes", None),
    "iris": ("load_iris", 3),
    "wine": ("load_wine", 12),
    "breast cancer": ("load_breast_cancer", 29),
}


def made_up(name: str, n: int, rng: np.random.Generator) -> Pairs:
    """Pairs whose distribution is known."""
    x = rng.uniform(-1.5, 1.5, (n, 3))
    return Pairs(x, MADE_UP[name](x, rng))


def shipped(name: str) -> Pairs:
    """One of the tables of scikit-learn."""
    from sklearn import datasets

    load, column = SHIPPED[name]
    X, y = getattr(datasets, load)(return_X_y=True)
    return Pairs(X, y) if column is None else Pairs(np.delete(X, column, axis=1), X[:, column])


def read_pairs(path: Path) -> Pairs | None:
    """A text table: its last column that takes several values, given all others; None where it has too few rows.

    Columns of text and those with many gaps are left out, then rows with gaps.
    """
    rows = [row for _, row in _rows(path.read_text(encoding="utf-8-sig"), str(path))]
    if not all(_is_number(cell) or not cell for cell in rows[0][:-1]):
        del rows[0]
    columns = []
    for cells in zip(*rows, strict=True):
        numbers = np.array([float(c) if _is_number(c) else np.nan for c in cells])
        if np.isnan(numbers).mean() <= _MISSING and np.nanstd(numbers) > 0:
            columns.append(numbers)
    targets = [j for j, column in enumerate(columns) if len(np.unique(column[~np.isnan(column)])) >= _VALUES]
    if not targets:
        return None
    whole = np.array([c for j, c in enumerate(columns) if j != targets[-1]] + [columns[targets[-1]]]).T
    whole = whole[~np.isnan(whole).any(1)]
    return Pairs(whole[:, :-1], whole[:, -1]) if len(whole) >= _ROWS and whole.shape[1] > 1 else None

"""The shape that left-out residuals have: the simplest that they do not speak against."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._typing import Array
from ._columns import better
from ._local import fit_local
from ._shape import NormalShape, ProductShape, Shape, SmoothedShape, TabulatedShape, fit_smoothed

# Bandwidths are such shares of the distance to the k-th neighbour.
_NEIGHBOURS, _SHARES = (5, 12, 25, 50), (0.15, 0.25, 0.4, 0.6, 0.9)
_COLUMN_NEIGHBOURS, _COLUMN_SHARES = (25, 100), (0.3, 0.6, 1.0)
_FEWEST, _MOST_POINTS, _MOST_JOINT = 50, 1000, 6
# Standard errors by which weights that depend on x must do better: they are the best of many.
_LOCAL_MARGIN = 2.0


class FittedShape(NamedTuple):
    """A shape, and the logarithms of its density at some rows, each left out."""

    shape: Shape
    rows: Array
    left_out: Array


def fit_shape(
    T: Array, X: Array, weights: Array, groups: Array | None, rng: np.random.Generator, kind: str | None = None
) -> FittedShape:
    """The simplest shape of residuals T (n, p) that left-out rows do not speak against.

    Anything but the normal must predict left-out rows better by more than a standard error: columns each of its own shape,
    or in up to six columns a joint one; by more than two errors, either with weights that depend on X (n, d). Of many rows
    some are used. The kinds are "normal", "columns", "joint", and "local", which is joint with weights that depend on X.
    """
    n, p = T.shape
    rows = np.arange(n) if n <= _MOST_POINTS else rng.permutation(n)[:_MOST_POINTS]
    T, X, w = T[rows], X[rows], weights[rows] / weights[rows].sum()
    groups = None if groups is None else groups[rows]
    normal = NormalShape(p)
    best = FittedShape(normal, rows, normal.log_density(T, X))
    if kind == "normal" or n < _FEWEST:
        return best
    if kind not in ("joint", "local"):
        columns = [_fit_column(T[:, [j]], X, w, groups, kind) for j in range(p)]
        product = columns[0][0] if p == 1 else ProductShape(tuple(shape for shape, _ in columns))
        tried = FittedShape(product, rows, np.sum([left_out for _, left_out in columns], axis=0))
        if kind == "columns" or better(tried.left_out, best.left_out, w):
            best = tried
    if kind in ("joint", "local") or (kind is None and 1 < p <= _MOST_JOINT):
        settings = (_COLUMN_NEIGHBOURS, _COLUMN_SHARES) if p == 1 else (_NEIGHBOURS, _SHARES)
        smoothed, left_out = fit_smoothed(T, w, groups, *settings)
        if kind is not None or better(left_out, best.left_out, w):
            best = FittedShape(smoothed, rows, left_out)
        found = None if kind == "joint" else fit_local(smoothed, X, groups)
        if found is not None and (kind == "local" or better(found[1], best.left_out, w, _LOCAL_MARGIN)):
            best = FittedShape(found[0], rows, found[1])
    return best


def _fit_column(
    t: Array, X: Array, weights: Array, groups: Array | None, kind: str | None
) -> tuple[Shape | SmoothedShape, Array]:
    normal = NormalShape(1)
    smoothed, left_out = fit_smoothed(t, weights, groups, _COLUMN_NEIGHBOURS, _COLUMN_SHARES)
    best: tuple[Shape, Array] = normal, normal.log_density(t, X)
    if better(left_out, best[1], weights):
        best = TabulatedShape.of(smoothed), left_out
    found = None if kind == "columns" else fit_local(smoothed, X, groups)
    if found is not None and better(found[1], best[1], weights, _LOCAL_MARGIN):
        best = found
    return best

r"""Moments of points X (n, d) under each of t rows of weights W (t, n) that sum to one, for all rows at once.

The mean is the weighted sum, the estimator of every rule. A spread is not: where weights are signed, the weighted sum of
squares can be zero or negative for a distribution as wide as any. So a spread is the root mean square distance *from the
mean* under the rising distribution function from which intervals are read off too. Where that function does not lie about
the mean, the weights contradict themselves, and the distance between the two counts as spread. Where no weight is negative
the function is the running sum, and all of this is the usual formula, which is then used as it is.

Covariances have these spreads on their diagonal. Their correlations come from spreads too, as the orthogonalised estimator
of Maronna and Zamar (2002) makes them: with the columns divided by their spreads and E the eigenvectors of the
weighted correlations, R is `E diag(s^2) E'` with s the spreads along the columns of E, scaled to a diagonal of ones. Of two
columns these are their sum and their difference, as in Gnanadesikan and Kettenring (1972). No direction is left with a
negative variance, and none with a zero that is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _check
from .._linalg import eigenvectors
from .._typing import Array
from ._weighted import blocks, distribution_function, rising

# Numbers this near, relative to the largest, cannot be told apart.
_EQUAL = 1e-12


def means(X: Array, W: Array) -> Array:
    """Means (t, d), as weighted sums."""
    return W @ X


def moments(X: Array, W: Array, order: int, central: bool = False) -> Array:
    """Means (t, d) of powers of x, or of `x - mean`; of higher powers than the first by rising distribution functions."""
    mean = means(X, W)
    if order == 1:
        return np.zeros_like(mean) if central else mean
    return _powers(X, W, order, mean if central else np.zeros_like(mean))


def _powers(X: Array, W: Array, order: int, about: Array) -> Array:
    """Means (t, d) of `(x - about)^order` for `about` (t, d), by rising distribution functions where weights are signed."""
    out = np.empty((len(W), X.shape[1]))
    for rows, signed in _blocks(W, X.shape[0]):
        for j, x in enumerate(X.T):
            values, mass = _masses(x, W[rows]) if signed else (x, W[rows])
            out[rows, j] = np.einsum("tn,tn->t", mass, (values - about[rows, j, None]) ** order)
    return out


def deviations(X: Array, W: Array) -> Array:
    """Standard deviations (t, d)."""
    return np.sqrt(_powers(X, W, 2, means(X, W)))


def contradictions(X: Array, W: Array) -> Array:
    """Distances (t, d) of the means from those of the rising distribution functions, in standard deviations of the latter.

    Zero where no weight is negative. Numbers of any size where such a function is a single step.
    """
    mean = means(X, W)
    away, squares = np.abs(_powers(X, W, 1, mean)), _powers(X, W, 2, mean)
    away = np.where(np.any(W < 0, axis=1, keepdims=True), away, 0.0)
    own = np.sqrt(np.maximum(squares - away**2, 0.0))
    return away / np.maximum(own, np.maximum(_EQUAL * away, _check.SMALLEST))


def covariances(X: Array, W: Array) -> Array:
    """Covariances (t, d, d), positive semidefinite, with the squares of `deviations` on the diagonal."""
    d = X.shape[1]
    if d == 1:
        return _powers(X, W, 2, means(X, W))[:, :, None]
    out = np.empty((len(W), d, d))
    for rows, signed in _blocks(W, X.size):
        if signed:
            spread = deviations(X, W[rows])
            out[rows] = spread[:, :, None] * _correlations(X, W[rows], spread) * spread[:, None, :]
        else:
            away = X - means(X, W[rows])[:, None]  # about its own mean each, so that an offset costs no digits
            out[rows] = _products(W[rows], away)
    return out


def _blocks(W: Array, size: int) -> Iterator[tuple[Any, bool]]:
    """Rows to work on at a time, each with `size` numbers, all with signed weights or none."""
    signed = np.asarray(np.any(W < 0, axis=1))
    for rows in blocks(len(W), size):
        some = signed[rows]
        if some.all() or not some.any():
            yield rows, bool(some[0])
        else:
            for kind in (True, False):
                yield rows.start + np.flatnonzero(some == kind), kind


def _masses(x: Array, W: Array) -> tuple[Array, Array]:
    """The distinct values (u,) of a column and what the rising distribution functions put on each (t, u)."""
    values, F = distribution_function(x, W)
    return values, np.diff(F, prepend=0.0, axis=1)


def _products(W: Array, U: Array) -> Array:
    """`sum_i w_i u_i u_i'` (t, d, d) of vectors U (t, n, d) with weights (t, n)."""
    return (W[:, :, None] * U).swapaxes(1, 2) @ U


def _correlations(X: Array, W: Array, spread: Array) -> Array:
    """Correlation matrices (t, d, d) under signed weights."""
    unit = np.where(spread > 0, spread, 1.0)
    U = (X - means(X, W)[:, None]) / unit[:, None]
    E = eigenvectors(_with_ones(_products(W, U)))
    along = U @ E
    squares = np.stack([_mean_squares(along[:, :, k], W) for k in range(X.shape[1])], axis=1)
    R = (E * squares[:, None]) @ E.swapaxes(1, 2)
    size = np.sqrt(np.diagonal(R, axis1=1, axis2=2))
    size = np.where((size > 0) & (spread > 0), size, np.inf)  # a column that does not vary is correlated with none
    return _with_ones(R / size[:, :, None] / size[:, None, :])


def _with_ones(R: Array) -> Array:
    """Matrices (t, d, d) with a diagonal of ones."""
    each = np.arange(R.shape[1])
    R[:, each, each] = 1.0
    return R


def _mean_squares(V: Array, W: Array) -> Array:
    """Means (t,) of squares under the rising distribution functions of values (t, n) that differ from row to row."""
    order = np.argsort(V, axis=1)
    V, steps = np.take_along_axis(V, order, 1), np.cumsum(np.take_along_axis(W, order, 1), axis=1)
    # equal values make one step, which the function takes at the first of them
    last = np.ones(V.shape, dtype=bool)
    last[:, :-1] = np.diff(V, axis=1) > _EQUAL * np.abs(V).max(1, keepdims=True)
    if not last.all():
        place = np.where(last, np.arange(V.shape[1]), V.shape[1])
        steps = np.take_along_axis(steps, np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1], 1)
    steps[:, -1] = 1.0
    return np.einsum("tn,tn->t", np.diff(rising(steps), prepend=0.0, axis=1), V * V)

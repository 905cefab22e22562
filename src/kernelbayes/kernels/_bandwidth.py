"""Bandwidths from the data."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist

from .. import _check
from .._typing import Array, ArrayLike

_MOST_POINTS = 1000


# Of many columns, each on its own: the median of this many points is within a few percent.
_MANY_COLUMNS, _MOST_POINTS_EACH = 8, 300


def median_lengthscale(X: ArrayLike, *, per_column: bool = False) -> Array | float:
    """The median distance between distinct points: the usual first guess at a lengthscale.

    Distances of zero are left out, so repeated rows do not pull the median down, and constant columns play no part.
    With `per_column=True` each column gets its own lengthscale, `sqrt(d)` times its median difference so that the
    distance over all columns is of the same order; a constant column gets 1. At most 1,000 evenly spread rows are used.

    Example:
        >>> import kernelbayes as kb
        >>> kb.median_lengthscale([[0.0, 7.0], [0.0, 7.0], [1.0, 7.0], [3.0, 7.0]])
        2.0
        >>> kb.median_lengthscale([[0.0, 0.0], [1.0, 100.0]], per_column=True).round(2)
        array([  1.41, 141.42])
    """
    return lengthscale_of(_check.vectors(X, "X"), "X", per_column=per_column)


def lengthscale_of(X: Array, name: str, *, per_column: bool = False) -> Array | float:
    """`median_lengthscale` of checked points, with the name under which the user knows them."""
    most = _MOST_POINTS_EACH if per_column and X.shape[1] > _MANY_COLUMNS else _MOST_POINTS
    if len(X) > most:
        X = X[np.linspace(0, len(X) - 1, most).astype(int)]
    if not per_column:
        return _median_distance(X, name)
    varying = np.ptp(X, axis=0) > _check.SMALLEST
    scales = np.ones(X.shape[1])
    for j in np.flatnonzero(varying):
        scales[j] = np.sqrt(varying.sum()) * _median_distance(X[:, [j]], name)
    if not varying.any():
        _median_distance(X, name)  # raises
    return scales


def _median_distance(X: Array, name: str) -> float:
    distances = pdist(X) if len(X) > 1 else np.zeros(0)
    distances = distances[distances > _check.SMALLEST]
    if not len(distances) and np.ptp(X, axis=0).any():
        raise ValueError(f"{name} varies by less than {_check.SMALLEST:g}, too little to square; change its units")
    if not len(distances):
        raise ValueError(f"{name} has no two distinct points, so no lengthscale can be read off it")
    return float(np.median(distances))

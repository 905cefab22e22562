"""A kernel density of residuals whose weights depend on x, for what moving and stretching one sample cannot do.

Two regimes whose chance depends on x, or a value that is zero in most rows, leave residuals whose very shape changes with x.
So a row counts as much as it is near: `w_i(x)` is a Gaussian kernel of x and x_i in a few columns, the rest being of no
account, and far from all x_i all rows count. Columns and bandwidths are taken one by one, as long as left-out rows gain.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from .._typing import Array
from ..kernels._stationary import squared_distances
from ._columns import better
from ._shape import TAIL_SHARE, TAIL_WIDTH, Shape, SmoothedShape, quantile_grid, with_tail

_WIDTHS, _MOST_COLUMNS = (2.0, 1.0, 0.5, 0.25), 4
# Columns are chosen on so many rows.
_CHOSEN_ON = 600
# All rows count as much as this share of them would, if it were at x.
_FLOOR = 0.02
_BLOCK = 2**19


@dataclasses.dataclass(frozen=True, eq=False)
class LocalShape(Shape):
    """A kernel density, each point weighted by how near its place is.

    Attributes:
        smoothed: the density where all points count.
        places: x (n, d) of the points.
        precisions: one over the squared bandwidths (d,), zero for columns of no account.
    """

    smoothed: SmoothedShape
    places: Array
    precisions: Array

    def log_density(self, T: Array, X: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p), given x (t, d)."""
        near = np.empty(len(T))
        for rows in self._blocks(len(T)):
            E, W = self.smoothed.parts(T[rows]), self._kernel(X[rows])
            near[rows] = _mixed(E, W, E @ self.smoothed.weights, 0.0)
        return with_tail(near, (T * T).sum(1), T.shape[1])

    @property
    def local(self) -> bool:
        """Whether it depends on x."""
        return True

    def weights(self, X: Array) -> Array:
        """How much each point counts at x (t, d): (t, n), of sum one."""
        W = self._kernel(X) + _FLOOR * self.smoothed.weights
        return W / W.sum(1, keepdims=True)

    def sample(self, X: Array, rng: np.random.Generator) -> Array:
        """A draw (t, p) for each x (t, d)."""
        which = np.empty(len(X), dtype=np.intp)
        for rows in self._blocks(len(X)):
            sums = self.weights(X[rows]).cumsum(1)
            which[rows] = (sums < rng.random((len(sums), 1)) * sums[:, -1:]).sum(1)
        return self.smoothed.around(which, rng)

    def described(self) -> str:
        """In a few words."""
        used = np.flatnonzero(self.precisions)
        return f"{self.smoothed.described()} that varies with x ({', '.join(f'column {k}' for k in used)})"

    def cdf(self, t: Array, X: Array) -> Array:
        """The distribution function, of one column."""
        out = np.empty(len(t))
        points, widths = self.smoothed.points[:, 0], self.smoothed.bandwidths
        for rows in self._blocks(len(t)):
            out[rows] = (self.weights(X[rows]) * ndtr((t[rows, None] - points) / widths)).sum(1)
        return (1.0 - TAIL_SHARE) * out + TAIL_SHARE * ndtr(t / TAIL_WIDTH)

    def quantile(self, levels: Array, X: Array) -> Array:
        """Quantiles (k, t) of one column."""
        points, widths = self.smoothed.points[:, 0], self.smoothed.bandwidths
        grid = np.unique(np.concatenate([quantile_grid(), points]))
        steps = (1.0 - TAIL_SHARE) * ndtr((grid - points[:, None]) / widths[:, None])
        tail = TAIL_SHARE * ndtr(grid / TAIL_WIDTH)
        out = np.empty((len(levels), len(X)))
        for rows in self._blocks(len(X)):
            cdf = self.weights(X[rows]) @ steps + tail
            for k, level in enumerate(levels):
                after = np.clip((cdf < level).sum(1), 1, len(grid) - 1)
                at = np.arange(len(cdf))
                low, high = cdf[at, after - 1], cdf[at, after]
                share = np.clip((level - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)
                out[k, rows] = grid[after - 1] + share * (grid[after] - grid[after - 1])
        return out

    def _kernel(self, X: Array) -> Array:
        """Weights (t, n) before the floor."""
        used = self.precisions > 0
        if not used.any():
            return np.tile(self.smoothed.weights, (len(X), 1))
        scales = np.sqrt(self.precisions[used])
        squares = squared_distances(X[:, used] * scales, self.places[:, used] * scales)
        squares *= -0.5
        np.exp(squares, out=squares)
        squares *= self.smoothed.weights
        return squares

    def _blocks(self, n: int) -> Iterator[slice]:
        size = max(1, _BLOCK // len(self.places))
        return (slice(i, i + size) for i in range(0, n, size))


def _mixed(E: Array, W: Array, everywhere: Array, own: Array | float) -> Array:
    """Weighted means of rows of E (t, n), and of all rows' where little weighs; `own` is the weight left out of those."""
    total = np.einsum("ij,ij->i", W, E) + _FLOOR * everywhere / (1.0 - own)
    return total / (W.sum(1) + _FLOOR)


def fit_local(smoothed: SmoothedShape, X: Array, groups: Array | None) -> tuple[LocalShape, Array] | None:
    """The kernel density with weights that depend on x (n, d), and the logarithms of it at its points, each left out.

    None where no column of x tells anything of the shape.
    """
    few = slice(None) if len(X) <= _CHOSEN_ON else slice(0, _CHOSEN_ON)
    some = smoothed.weights[few] / smoothed.weights[few].sum()
    part = SmoothedShape(smoothed.points[few], smoothed.bandwidths[few], some)
    trial = _Trial(part, X[few], None if groups is None else groups[few])
    precisions = np.zeros(X.shape[1])
    best = trial.left_out(precisions)
    for _ in range(_MOST_COLUMNS):
        tried = [
            (k, width, trial.left_out(_with(precisions, k, width)))
            for k in range(X.shape[1])
            for width in _WIDTHS
            if width**-2 > precisions[k] and X[:, k].any()
        ]
        top = max(tried, key=lambda one: float(some @ one[2]), default=None)
        if top is None or not better(top[2], best, some):
            break
        precisions, best = _with(precisions, *top[:2]), top[2]
    if not precisions.any():
        return None
    return LocalShape(smoothed, X, precisions), _Trial(smoothed, X, groups).left_out(precisions)


def _with(precisions: Array, column: int, width: float) -> Array:
    return np.where(np.arange(len(precisions)) == column, width**-2, precisions)


class _Trial:
    """The left-out density for one choice of columns after another."""

    def __init__(self, smoothed: SmoothedShape, X: Array, groups: Array | None):
        self.smoothed, self.X = smoothed, X
        self.own = np.eye(len(X), dtype=bool) if groups is None else groups[:, None] == groups
        self.parts = smoothed.parts(smoothed.points)
        self.parts[self.own] = 0.0
        self.everywhere, self.outside = self.parts @ smoothed.weights, self.own @ smoothed.weights

    def left_out(self, precisions: Array) -> Array:
        """Logarithm (n,) of the density at each point, without the rows of its group."""
        T = self.smoothed.points
        W = LocalShape(self.smoothed, self.X, precisions)._kernel(self.X)
        W[self.own] = 0.0
        return with_tail(_mixed(self.parts, W, self.everywhere, self.outside), (T * T).sum(1), T.shape[1])

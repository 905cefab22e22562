"""Reading numbers off a weighted embedding: moments, quantiles, densities.

Weights from a rule may be negative. Sums use them as they are, divided by their total; a distribution function must rise
from 0 to 1, so for quantiles the running sum is replaced by the middle between the smallest rising function above it and
the largest below it, clipped to [0, 1].
"""

from __future__ import annotations

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike
from ..kernels import Gaussian, matmul


def tails(level: float) -> list[float]:
    """The two levels between which the central interval of a given mass lies."""
    level = _check.scalar(level, "level")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level:g}")
    return [0.5 - level / 2, 0.5 + level / 2]


def quantiles(X: Array, W: Array, q: ArrayLike) -> Array:
    """Quantiles (levels, t, d) of points X (n, d) under each of t rows of weights that sum to one."""
    levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
    if np.ndim(q) > 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"q must be one or several levels between 0 and 1, got {q!r}")
    out = np.empty((len(levels), len(W), X.shape[1]))
    for j, x in enumerate(X.T):
        order = np.argsort(x, kind="stable")
        rising = np.clip(_monotone(np.cumsum(W[:, order], axis=1)), 0.0, 1.0)
        for i, level in enumerate(levels):
            found = (rising < level - 1e-12).sum(1)
            out[i, :, j] = x[order[np.minimum(found, len(x) - 1)]]
    return out


def _monotone(values: Array) -> Array:
    """The middle of the two rising functions that enclose each row; the row itself if it rises."""
    above = np.maximum.accumulate(values, axis=1)
    below = np.minimum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
    return 0.5 * (above + below)


class Decoding:
    """Moments, quantiles and densities of a weighted sample of vectors; weights are taken relative to their sum."""

    points: Array
    weights: Array

    def mean(self) -> Array:
        """The mean (d,)."""
        X, w = self._vectors()
        return w @ X

    def cov(self) -> Array:
        """The covariance (d, d). Negative weights can make it indefinite."""
        X, w = self._vectors()
        centred = X - w @ X
        return (w[:, None] * centred).T @ centred

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles of each column: shape (d,) for one level, (len(q), d) for several.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> kb.MeanEmbedding(np.arange(101.0), kernel=kb.Gaussian()).quantile([0.25, 0.75])
            array([[25.],
                   [75.]])
        """
        X, w = self._vectors()
        out = quantiles(X, w[None, :], q)[:, 0]
        return out[0] if np.ndim(q) == 0 else out

    def interval(self, level: float = 0.9) -> Array:
        """The central interval holding `level` of the mass, as rows (lower, upper) of shape (2, d)."""
        return self.quantile(tails(level))

    def density(self, grid: ArrayLike, bandwidth: float | None = None) -> Array:
        """Density at points by smoothing the weights with a normalised Gaussian of the given bandwidth.

        Negative values that signed weights leave are cut at zero, so that the whole may integrate to a little more than
        one. The default bandwidth is Scott's rule at the effective sample size, for the spread of the points under the
        absolute weights (Kanagawa 2016, section 5.4, for the estimator).
        """
        X, w = self._vectors()
        grid = _check.vectors(grid, "grid", width=X.shape[1])
        d = X.shape[1]
        if bandwidth is None:
            sizes = np.abs(w) / np.abs(w).sum()
            spread = np.sqrt(sizes @ (X - sizes @ X) ** 2)
            h = np.where(spread > 0, spread, 1.0) * max(1.0 / (w**2).sum(), 1.0) ** (-1.0 / (d + 4))
        else:
            h = np.full(d, _check.positive(bandwidth, "bandwidth"))
        values = matmul(Gaussian(h), grid, X, w) / np.prod(np.sqrt(2 * np.pi) * h)
        return np.maximum(values, 0.0)

    def _vectors(self) -> tuple[Array, Array]:
        X = self.points
        if X.dtype.kind not in "fiu" or X.ndim != 2:
            raise ValueError("the points are not vectors, so they have no mean, quantiles or density")
        total = float(self.weights.sum())
        if abs(total) < 1e-10 * np.abs(self.weights).sum() or total == 0.0:
            raise ValueError(f"the weights sum to {total:.3g}: there is no distribution to read off")
        return X, self.weights / total

"""Numbers read off points X (n, d) under each of t rows of weights W (t, n) that sum to one, for all rows at once.

Everything replaces the integral of a function by its weighted sum over the points (Kanagawa 2016, equation 5.3), which
converges for functions outside the RKHS too: polynomials, indicators of boxes, smoothing kernels. Weights from a rule may
be negative. Sums use them as they are; a distribution function must rise from 0 to 1, so for quantiles and for
probabilities on the line the running sum is replaced by the middle between the smallest rising function above it and the
largest below it, clipped to [0, 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike


def vectors_of(points: Array, weights: Array) -> tuple[Array, Array]:
    """Points that are vectors, and weights (n,) or (t, n) divided by their sums; what cannot be decoded is refused."""
    if points.dtype.kind not in "fiu" or points.ndim != 2:
        raise ValueError("the points are not vectors, so they have no mean, quantiles or density")
    return points, relative(weights)


def relative(weights: Array) -> Array:
    """Weights (n,) or (t, n) divided by their sums."""
    total = weights.sum(-1, keepdims=True)
    empty = np.abs(total) <= 1e-10 * np.abs(weights).sum(-1, keepdims=True)
    if empty.any():
        raise ValueError(f"the weights sum to {total[empty][0]:.3g}: there is no distribution to read off")
    return weights / total


def level_of(level: Any) -> float:
    """The mass of an interval, checked."""
    level = _check.scalar(level, "level")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level:g}")
    return level


def tails(level: float) -> list[float]:
    """The two levels between which the central interval of a given mass lies."""
    level = level_of(level)
    return [0.5 - level / 2, 0.5 + level / 2]


def levels_of(q: ArrayLike) -> Array:
    """One or several levels as an array (l,)."""
    levels = np.atleast_1d(_check._as_numbers(q, "q"))
    if np.ndim(q) > 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"q must be one or several levels between 0 and 1, got {q!r}")
    return levels


def box_of(lower: ArrayLike | None, upper: ArrayLike | None, width: int) -> tuple[Array, Array]:
    """The corners (d,) of a box; what is not given is infinite, and a number holds for all columns."""
    if lower is None and upper is None:
        raise ValueError("give lower, upper, or both: the whole space has probability 1")
    corners = []
    for value, name, default in ((lower, "lower", -np.inf), (upper, "upper", np.inf)):
        corner = _check._as_numbers(default if value is None else value, name)
        if corner.ndim > 1 or corner.size not in (1, width):
            raise ValueError(f"{name} must be one number or one per column ({width}), got shape {corner.shape}")
        if np.isnan(corner).any():
            raise ValueError(f"{name} contains NaN")
        corners.append(np.broadcast_to(corner, (width,)))
    if (corners[0] > corners[1]).any():
        raise ValueError(f"lower must not exceed upper, got {corners[0]} and {corners[1]}")
    return corners[0], corners[1]


def effective_sizes(W: Array) -> Array:
    """`(sum w)^2 / sum w^2` of weights (n,) or of each row (t, n); zero where all weights are."""
    most = np.abs(W).max(-1, keepdims=True, initial=0.0)
    W = W / np.where(most > 0, most, 1.0)  # so that no square is lost to underflow
    squares = (W * W).sum(-1)
    return W.sum(-1) ** 2 / np.where(squares > 0, squares, 1.0)


def negative_masses(W: Array) -> Array:
    """The share of the absolute weights that is negative, of weights (n,) or of each row (t, n)."""
    sizes = np.abs(W).sum(-1)
    return np.maximum(-W, 0.0).sum(-1) / np.where(sizes > 0, sizes, 1.0)


def means(X: Array, W: Array) -> Array:
    """Means (t, d)."""
    return W @ X


def covariances(X: Array, W: Array) -> Array:
    """Covariances (t, d, d); negative weights can make one indefinite."""
    centred = (X - mean for mean in means(X, W))  # about its own mean each, so that an offset costs no digits
    return np.stack([(w[:, None] * C).T @ C for w, C in zip(W, centred, strict=True)])


def distribution_function(x: Array, W: Array, raw: bool = False) -> tuple[Array, Array]:
    """The distinct values (u,) of one column and the distribution functions (t, u) there; rising unless raw."""
    order = np.argsort(x, kind="stable")
    values = x[order]
    last = np.flatnonzero(np.append(values[1:] > values[:-1], True))  # of each run of equal values
    steps = np.cumsum(W[:, order], axis=1)
    steps = steps if len(last) == len(x) else steps[:, last]
    steps[:, -1] = 1.0  # up to rounding
    return values[last], steps if raw else np.clip(_monotone(steps), 0.0, 1.0)


def _monotone(values: Array) -> Array:
    """The middle of the two rising functions that enclose each row; the row itself if it rises."""
    above = np.maximum.accumulate(values, axis=1)
    below = np.minimum.accumulate(values[:, ::-1], axis=1)[:, ::-1]
    return 0.5 * (above + below)


def cumulated(x: Array, W: Array, at: Array, raw: bool = False) -> Array:
    """Values (t, m) of the distribution functions of one column at points (m,)."""
    values, steps = distribution_function(x, W, raw)
    steps = np.concatenate([np.zeros((len(W), 1)), steps], axis=1)
    return steps[:, np.searchsorted(values, at, side="right")]


def quantiles(X: Array, W: Array, q: ArrayLike, raw: bool = False) -> Array:
    """Quantiles (levels, t, d): the smallest points at which the distribution functions reach each level."""
    levels = levels_of(q)
    out = np.empty((len(levels), len(W), X.shape[1]))
    for j, x in enumerate(X.T):
        values, steps = distribution_function(x, W, raw)
        for i, level in enumerate(levels):
            out[i, :, j] = values[(steps >= level - 1e-12).argmax(1)]
    return out


def probabilities(
    X: Array, W: Array, lower: ArrayLike | None = None, upper: ArrayLike | None = None, raw: bool = False
) -> Array:
    """Masses (t,) of the box `lower < x <= upper`: sums of the weights in it, brought into [0, 1] unless raw.

    A box that bounds one column only takes them from its rising distribution function. Kanagawa (2016), section 4.2.4.
    """
    low, high = box_of(lower, upper, X.shape[1])
    bounded = np.flatnonzero((low > -np.inf) | (high < np.inf))
    if raw or len(bounded) > 1:
        mass = W @ ((low < X) & ~(high < X)).all(1).astype(np.float64)
        return mass if raw else np.clip(mass, 0.0, 1.0)
    j = bounded[0] if len(bounded) else 0
    return np.diff(cumulated(X[:, j], W, np.array([low[j], high[j]])), axis=1)[:, 0]

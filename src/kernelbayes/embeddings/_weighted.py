"""Numbers read off points X (n, d) under each of t rows of weights W (t, n) that sum to one, for all rows at once.

Everything replaces the integral of a function by its weighted sum over the points (Kanagawa 2016, equation 5.3), which
converges for functions outside the RKHS too: polynomials, indicators of boxes, smoothing kernels. Weights from a rule may
be negative. Sums use them as they are; a distribution function must rise from 0 to 1, so for quantiles, for spreads (in
`_moments`) and for probabilities on the line the running sum is replaced by the middle between the smallest rising function
above it and the largest below it, clipped to [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike

# Numbers held at a time while distribution functions are made for many rows.
_BLOCK_ELEMENTS = 2**18


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
        raise ValueError("give lower, upper, or both, or an event: the whole space has probability 1")
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


def blocks(rows: int, size: int) -> list[slice]:
    """Rows to work on at a time, where each needs `size` numbers."""
    step = max(1, _BLOCK_ELEMENTS // max(size, 1))
    return [slice(start, start + step) for start in range(0, rows, step)]


def evaluate_function(f: Callable[[Array], ArrayLike], points: Array, name: str = "f") -> Array:
    """Values (n,) or (n, p) of a user's function at points, or a clear error."""
    if not callable(f):
        raise ValueError(f"{name} must be a function of points, got {type(f).__name__}")
    values = _check._as_numbers(f(points), f"the result of {name}")
    if values.ndim not in (1, 2) or len(values) != len(points):
        raise ValueError(f"{name} returned shape {values.shape} for {len(points)} points; one row per point was wanted")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} returned NaN or infinite values")
    return _check.numbers(values, f"the result of {name}")


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


def distribution_function(x: Array, W: Array, raw: bool = False) -> tuple[Array, Array]:
    """The distinct values (u,) of one column and the distribution functions (t, u) there; rising unless raw."""
    order = np.argsort(x, kind="stable")
    values = x[order]
    last = np.flatnonzero(np.append(values[1:] > values[:-1], True))  # of each run of equal values
    steps = np.cumsum(W[:, order], axis=1)
    steps = steps if len(last) == len(x) else steps[:, last]
    steps[:, -1] = 1.0  # up to rounding
    return values[last], steps if raw else rising(steps)


def rising(steps: Array) -> Array:
    """The middle of the two rising functions that enclose each row (t, u), in [0, 1]; the row itself if it rises."""
    above = np.maximum.accumulate(steps, axis=1)
    above += np.minimum.accumulate(steps[:, ::-1], axis=1)[:, ::-1]
    above *= 0.5
    return np.clip(above, 0.0, 1.0, out=above)


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
        for rows in blocks(len(W), len(X)):
            values, steps = distribution_function(x, W[rows], raw)
            for i, level in enumerate(levels):
                out[i, rows, j] = values[(steps >= level - 1e-12).argmax(1)]
    return out


def probabilities(
    points: Array,
    weights: Array,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    event: Callable[[Array], ArrayLike] | None = None,
    raw: bool = False,
) -> Array:
    """Masses (t,) of the box `lower < x <= upper`, or (t,) or (t, p) of an event, under weights with any sum.

    Sums of the weights there, brought into [0, 1] unless raw, which is what the rising distribution function of the event's
    indicator gives. A box that bounds one column only takes them from the rising distribution function of that column.
    Kanagawa (2016), section 4.2.4.
    """
    if event is not None:
        if lower is not None or upper is not None:
            raise ValueError("give lower and upper, or event, not both")
        holds = evaluate_function(event, points, "event")
        if not ((holds == 0) | (holds == 1)).all():
            raise ValueError("event must return True or False for each point; of other functions expect gives the mean")
        mass = relative(weights) @ holds
        return mass if raw else np.clip(mass, 0.0, 1.0)
    X, W = vectors_of(points, weights)
    low, high = box_of(lower, upper, X.shape[1])
    bounded = np.flatnonzero((low > -np.inf) | (high < np.inf))
    if raw or len(bounded) > 1:
        mass = W @ ((low < X) & ~(high < X)).all(1).astype(np.float64)
        return mass if raw else np.clip(mass, 0.0, 1.0)
    j = bounded[0] if len(bounded) else 0
    ends = np.array([low[j], high[j]])
    parts = [np.diff(cumulated(X[:, j], W[rows], ends), axis=1)[:, 0] for rows in blocks(len(W), len(X))]
    return np.concatenate(parts)

r"""Choosing the hyperparameters of a kernel Bayes' rule.

- For a weighted sample (the importance-weighted rule with one prior): closed-form leave-one-out of the weighted
  regression, :math:`\sum_i d_i \|v_i - \hat v_{-i}(x_i)\|^2`. With `M = F' D F + s I` and leverage
  `h_i = d_i f_i' M^-1 f_i`, leaving i out divides its residual by `1 - h_i`; one eigendecomposition serves all s.
- For the other rules: hold-out validation under the training marginal (Xu et al. 2022, section 5.2), over bandwidths that
  are multiples of the median distance and regularisers on a grid; again one eigendecomposition for each bandwidth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .._linalg import Gram, eigh
from .._typing import Array
from ..features import IncompleteCholesky
from ..kernels import Kernel
from ._conditional import explain_grid, held_out
from ._optimise import ROUNDING, last_of_the_best

BANDWIDTH_FACTORS = (2.0, 1.0, 0.5, 0.25, 0.125)
_LANDMARKS = 256
_HELD_OUT = 500
_LOO_ROWS = 2000
# Of the evidence operator's trace, or of its square where the inverse is the squared one.
_GRIDS = {"plain": np.geomspace(1e-10, 10.0, 45), "squared": np.geomspace(1e-14, 10.0, 61)}


def weighted_reg(
    gram: Gram,
    coordinates: Callable[[Array], Array],
    weights: Array,
    V: Array,
    rng: np.random.Generator,
    *,
    centred: bool = True,
) -> float:
    """The shift of `F' D F` that predicts target features V best, point by point left out, under weights D >= 0.

    `coordinates` gives the rows of F by their indices; about the weighted mean of V if centred. At most 2,000 rows are left
    out, drawn by priority sampling. Of shifts that do equally well the largest is taken.
    """
    wanted = V - weights @ V / weights.sum() if centred else V
    core, right = gram.weighted_core(weights), gram.gather(weights[:, None] * wanted)
    rows, counted = _drawn(weights, rng)
    values, U = eigh(core)
    left, right = coordinates(rows) @ U, U.T @ right
    shifts = float(np.trace(core)) * _GRIDS["plain"]
    inverse = 1.0 / (values[:, None] + shifts)
    leverage = weights[rows, None] * (left**2 @ inverse)
    errors = np.empty(len(shifts))
    for j, column in enumerate(inverse.T):
        residual = wanted[rows] - (left * column) @ right
        errors[j] = counted @ ((residual**2).sum(1) / np.maximum(1.0 - leverage[:, j], 1e-12) ** 2)
    return float(shifts[last_of_the_best(errors, ROUNDING * float(counted @ (V[rows] ** 2).sum(1)))])


def _drawn(weights: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows of positive weight and the weights with which they count: all, or a priority sample (Duffield et al. 2007)."""
    rows = np.flatnonzero(weights > 0)
    if len(rows) <= _LOO_ROWS:
        return rows, weights[rows]
    priority = weights[rows] / rng.random(len(rows))
    order = np.argsort(-priority)
    rows, threshold = rows[order[:_LOO_ROWS]], priority[order[_LOO_ROWS]]
    return rows, np.maximum(weights[rows], threshold)


class Choice(NamedTuple):
    """What hold-out validation chose, and its score relative to predicting the mean."""

    kernel: Kernel
    reg: float
    score: float


def validated(
    kernels: Sequence[Kernel],
    represent: Callable[[Kernel], Array],
    smooth: Callable[[Array, Array], tuple[Array, Array]],
    V: Array,
    *,
    inverse: str,
    reg: float | None,
    rng: np.random.Generator,
    groups: Array | None = None,
) -> Choice:
    """The kernel and the regulariser whose posterior under the training marginal predicts held-out z best.

    `represent` maps a kernel to the features F of all x; `smooth` maps training rows F_t and their indices to the features
    (joint, evidence) that the rule works on. Pairs with the same label in `groups` (n,) are held out together.
    """
    count = min(max(len(V) // 5, 1), _HELD_OUT)
    if groups is None:
        order = rng.permutation(len(V))
        held, train = order[:count], order[count:]
    else:
        held = held_out(len(V), count, groups, rng)
        train = np.setdiff1d(np.arange(len(V)), held)
    centre = V[train].mean(0)
    found: list[tuple[float, Kernel, Array, list[float], int]] = []
    for kernel in reversed(kernels):  # of equals the first, whose lengthscale is the longest
        F = represent(kernel)
        joint, evidence = smooth(F[train], train)
        values, U = eigh(evidence.T @ evidence / len(train))
        right = U.T @ (joint.T @ (V[train] - centre)) / len(train)
        left, wanted = F[held] @ U, V[held] - centre
        grid = _grid(values, inverse) if reg is None else np.array([reg])
        scores = []
        for e in grid:
            inverted = 1.0 / (values + e) if inverse == "plain" else values / (values**2 + e)
            scores.append(float(((wanted - (left * inverted) @ right) ** 2).sum() / max((wanted**2).sum(), 1e-300)))
        j = last_of_the_best(scores, ROUNDING)
        found.append((scores[j], kernel, grid, scores, j))
    score, kernel, grid, scores, j = found[last_of_the_best([score for score, *_ in found], ROUNDING)]
    if reg is None:
        explain_grid(grid, scores, j)
    return Choice(kernel, float(grid[j]), score)


def _grid(values: Array, inverse: str) -> Array:
    trace = float(values.sum())
    return _GRIDS[inverse] * (trace if inverse == "plain" else trace**2)


def few_landmarks(kernel: Kernel, X: Array) -> Array:
    """Features of x good enough to compare bandwidths by."""
    return IncompleteCholesky(min(_LANDMARKS, len(X))).fit(kernel, X)._coordinates(X)

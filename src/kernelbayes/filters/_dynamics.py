r"""What a filter has learned, as arrays: the states in coordinates, and the step from one state to the next.

A belief about the state is known by its mean :math:`\mu` (r,) in the coordinates h of the latent kernel. With B and A the
coordinates of the states before and after each of m transitions, the kernel sum rule (Xu et al. 2022, section 4) is

.. math:: v = B (B^\top B + m \lambda' I)^{-1} \mu, \qquad \nu = A^\top v,

v being the predicted weights on the states after, and :math:`\nu` the coordinates of the prediction: one matrix (r, r)
made beforehand. A control u is one more input: the kernel of (z, u) is the product of both kernels, factorised on
landmarks (R, S) of the pairs as :math:`\Phi`, and :math:`\mu` becomes :math:`L^{-1} (h(R) \mu \circ k_U(S, u))`.

| Xu et al. (2022), Algorithm 2 | here |
|---|---|
| lambda' | `reg` of `Transition` |
| `w^(t,t)`, through `H' w` | `mean` of a posterior |
| `w^(t,t+1)` | `weights(inputs)`, on the states after |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._linalg import (
    Gram,
    LowRank,
    dense_pivoted_cholesky,
    pivoted_cholesky,
    solve,
    solve_lower,
)
from .._typing import Array
from ..features import Exact, Features, IncompleteCholesky, Recipe, Streamed, factored
from ..kernels import Kernel, dense_gram
from ..rules import conditional

# Coordinates whose share of the kernel is far below any sensible regulariser are left out.
_TOL = 1e-7
_DENSE_POINTS, _MOST_LANDMARKS = 3000, 1000
# A kernel of at least this rank, as a share of n, is better off with the Gram matrix itself.
_FULL_RANK = 0.8
# How much longer than the longest of the states the mean of a belief may be; that of a distribution is never longer.
_MOST_STRETCHED = 3.0


class Log(NamedTuple):
    """Training data, checked: pairs of observations and states, and transitions as rows of `points`.

    Of a logged sequence the points are its states, and the transitions its consecutive rows.
    """

    observations: Array  # (n, ...)
    points: Array  # (p, ...): the n states of the pairs first, then those of separate transitions
    before: Array  # (m,) rows of points
    after: Array  # (m,)
    controls: Array | None  # (m, c): of each transition

    @property
    def states(self) -> Array:
        """The states (n, ...) of the pairs."""
        return self.points[: len(self.observations)]


def coordinates(
    recipe: Recipe | None,
    kernel: Kernel,
    X: Array,
    rng: np.random.Generator,
    tol: float = _TOL,
    most: int = _MOST_LANDMARKS,
) -> tuple[Features, Gram]:
    """Features of a sample and its Gram matrix, held in memory.

    By default the kernel down to a tolerance, far below the regularisers of a filter, so that a step costs as little as it
    can; of a kernel whose rank is close to n the Gram matrix itself.
    """
    if recipe is None:
        features, gram = IncompleteCholesky(most, tol)._fit(kernel, X, rng)
        full = features.rank > _FULL_RANK * len(X) and most > _FULL_RANK * len(X)
        return Exact()._fit(kernel, X, rng) if full else (features, gram)
    features, gram = recipe._fit(kernel, X, rng)
    return features, LowRank(features._coordinates(X)) if isinstance(gram, Streamed) else gram


class States(NamedTuple):
    """The states in coordinates of the latent kernel."""

    features: Features
    coordinates: Array  # (p, r), of all points of the log

    @classmethod
    def of(cls, log: Log, recipe: Recipe | None, kernel: Kernel, rng: np.random.Generator) -> States:
        """Coordinates fitted to all states of a log."""
        features, gram = factored(*coordinates(recipe, kernel, log.points, rng))
        assert isinstance(gram, LowRank)
        return cls(features, gram.factor)


class Transition:
    """The learned step of the state: from the mean of a belief, and a control if there are any, to the next belief.

    `inputs` are the coordinates (t, k) of the belief as the transition sees it; the last one is weight that is spread evenly
    over the states after. With `normalise="divide"` they are scaled so that the predicted weights sum to one, with "prior"
    what the weights lack of one is spread.

    Beyond the states before, weights say little: they sum to little, and divided by that they are large and of both signs.
    One step more makes them larger still, and over a gap in the observations a belief would run away. So it is `held`, by
    mixing it with the even one.
    """

    def __init__(self, log: Log, states: States, reg: float, control_kernel: Kernel | None, normalise: str | None):
        H = states.coordinates
        self.log, self._normalise = log, normalise
        self._control_kernel = control_kernel
        before, after = H[log.before], H[log.after]
        if control_kernel is None:
            inputs = before
        else:
            inputs, pivots, self._factor = _joint(before, control_kernel, log.controls)
            self._landmarks = before[pivots]
            self._landmark_controls = log.controls[pivots]  # type: ignore[index]
        L = conditional.operator(inputs.T @ inputs, len(inputs), reg)
        m = len(inputs)
        self.map = np.column_stack([solve(L, inputs.T).T, np.full(m, 1.0 / m)])  # (m, k): from inputs to weights
        self._to_mean = self.map.T @ after  # (k, r)
        self._to_total = self.map.sum(0)
        self._longest = longest(after)

    def inputs(self, mean: Array, control: Array | None) -> Array:
        """The next belief (t, k) from the means (t, r) of the present ones and the controls (t, c)."""
        c = mean
        if self._control_kernel is not None:
            assert control is not None
            near = dense_gram(self._control_kernel, control, self._landmark_controls)
            c = solve_lower(self._factor, ((mean @ self._landmarks.T) * near).T).T
        spread = np.zeros((len(c), 1))
        if self._normalise is not None:
            total = (c @ self._to_total[:-1])[:, None]
            usable = np.abs(total) > 1e-6
            if self._normalise == "prior":
                spread = 1.0 - total
            else:
                c, spread = np.where(usable, c / np.where(usable, total, 1.0), 0.0), np.where(usable, 0.0, 1.0)
        inputs = np.concatenate([c, spread], axis=1)
        return inputs if self._normalise is None else self._held(inputs)

    def _held(self, inputs: Array) -> Array:
        share = held(self.mean(inputs), self.mean(self.uniform), self._longest)
        return share * inputs + (1.0 - share) * self.uniform

    @property
    def uniform(self) -> Array:
        """The inputs (1, k) of a belief spread evenly over the states after."""
        return np.eye(1, self.map.shape[1], self.map.shape[1] - 1)

    def mean(self, inputs: Array) -> Array:
        """Coordinates (t, r) of the predicted states."""
        return inputs @ self._to_mean

    def weights(self, inputs: Array) -> Array:
        """Weights (t, m) on the states after."""
        return inputs @ self.map.T


def _joint(before: Array, kernel: Kernel, controls: Array | None) -> tuple[Array, Array, Array]:
    """Coordinates of pairs (state, control) under the product of both kernels: (m, k), pivots (k,), their factor (k, k)."""
    assert controls is not None
    m = len(before)
    if m <= _DENSE_POINTS:
        found = dense_pivoted_cholesky((before @ before.T) * dense_gram(kernel, controls, controls), rank=m, tol=_TOL)
    else:
        found = pivoted_cholesky(
            (before**2).sum(1) * kernel._diag(controls),
            lambda j: (before @ before[j]) * dense_gram(kernel, controls, controls[j : j + 1])[:, 0],
            rank=_MOST_LANDMARKS,
            tol=_TOL,
        )
    return found.factor, found.pivots, found.factor[found.pivots]


def longest(H: Array) -> float:
    """How long the mean of a belief on states with coordinates H may be."""
    return _MOST_STRETCHED * float(np.sqrt((H**2).sum(1).max()))


def held(mean: Array, base: Array, most: float) -> Array:
    """The share (t, 1) of a belief in a mixture with another whose mean is not too long: one, unless its own mean is."""
    over = (mean**2).sum(1) > most**2
    share = np.ones((len(mean), 1))
    if over.any():
        base = np.broadcast_to(base, mean.shape)[over]
        away = mean[over] - base
        square, inner = np.maximum((away**2).sum(1), 1e-300), (away * base).sum(1)
        room = np.maximum(most**2 - (base**2).sum(1), 0.0)
        share[over, 0] = (np.sqrt(inner**2 + square * room) - inner) / square  # |base + share away| = most
    return np.clip(share, 0.0, 1.0)


def ratio_map(H: Array, reg: float) -> Array:
    """The matrix (n, r) from the coordinates of a prior to its weights on states with coordinates H.

    `H (H' H + n eta I)^-1`, equation 1 of Xu et al. over n.
    """
    return solve(conditional.operator(H.T @ H, len(H), reg), H.T).T

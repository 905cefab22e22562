"""The residuals of several columns together: their dependence, and the shape of what it leaves."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from .._typing import Array
from ._dependence import Dependence, fit_dependence
from ._fit_shape import fit_shape
from ._local import LocalShape
from ._shape import ProductShape, Shape

# Beyond so many columns their dependence is not tried with coefficients that vary with x.
_MOST_VARYING = 12


@dataclasses.dataclass(frozen=True, eq=False)
class Joint:
    """A density of residuals (p,) at x.

    Attributes:
        left: what dependence leaves of left-out residuals (m, p): a sample of the shape.
        rows: those of them that the shape was fitted to.
    """

    dependence: Dependence
    shape: Shape
    left: Array
    rows: Array

    def log_density(self, E: Array, X: Array) -> Array:
        """Logarithm of the density (t,) of residuals (t, p) at points (t, d)."""
        T, logs = self.dependence.whiten(E, X)
        return self.shape.log_density(T, X) - 0.5 * logs

    def sample(self, X: Array, rng: np.random.Generator) -> Array:
        """A draw for each point."""
        return self.dependence.colour(self.shape.sample(X, rng), X)

    def moved(self, x: Array) -> tuple[Array, Array | None]:
        """The sample (m, p) of residuals as it is at one point (1, d), and its weights (m,), None where they are even."""
        left, weights = self.left, None
        columns = self.shape.columns if isinstance(self.shape, ProductShape) else (self.shape,)
        if self.shape.local:
            left = left[self.rows]
            weights = np.prod([c.weights(x)[0] for c in columns if isinstance(c, LocalShape)], axis=0)
            weights = weights / weights.sum()
        return self.dependence.colour(left, np.repeat(x, len(left), axis=0)), weights


class FittedJoint(NamedTuple):
    """A joint density, and the logarithms of it at some rows, each left out."""

    joint: Joint
    rows: Array
    left_out: Array


def fit_joint(
    X: Array,
    E: Array,
    weights: Array,
    groups: Array | None,
    rng: np.random.Generator,
    *,
    dependence: str = "auto",
    shape: str = "auto",
) -> FittedJoint:
    """Learn how left-out residuals E (n, p) at X (n, d) go together, from the rows without a missing value."""
    rows = np.flatnonzero(~np.isnan(E).any(1))
    if len(rows) < 4:
        raise ValueError("Y has fewer than 4 rows without a missing value: how its columns go together cannot be seen")
    X, E, weights = X[rows], E[rows], weights[rows] / weights[rows].sum()
    groups = None if groups is None else np.unique(groups[rows], return_inverse=True)[1].ravel()
    p, found, left, logs = E.shape[1], Dependence(()), E, np.zeros(len(rows))
    if dependence != "none" and p > 1:
        varying = {"auto": None if p <= _MOST_VARYING else False, "constant": False, "varying": True}[dependence]
        fitted = fit_dependence(X, E, weights, groups, rng, varying=varying)
        found, left, logs = fitted.dependence, fitted.left, fitted.logs
    kind = None if shape == "auto" else shape
    chosen = fit_shape(left, X, weights, groups, rng, kind)
    joint = Joint(found, chosen.shape, left, chosen.rows)
    return FittedJoint(joint, rows[chosen.rows], chosen.left_out - 0.5 * logs[chosen.rows])

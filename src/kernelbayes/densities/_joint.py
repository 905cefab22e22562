"""The residuals of several columns together: their dependence, and the shape of what it leaves."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from .._typing import Array
from ._dependence import Dependence, fit_dependence
from ._shape import Shape, fit_shape

# Beyond so many columns their dependence is not tried with coefficients that vary with x.
_MOST_VARYING = 12


@dataclasses.dataclass(frozen=True, eq=False)
class Joint:
    """A density of residuals (p,) at x.

    Attributes:
        left: what dependence leaves of left-out residuals (m, p): a sample of the shape.
    """

    dependence: Dependence
    shape: Shape
    left: Array

    def log_density(self, E: Array, X: Array) -> Array:
        """Logarithm of the density (t,) of residuals (t, p) at points (t, d)."""
        T, logs = self.dependence.whiten(E, X)
        return self.shape.log_density(T) - 0.5 * logs

    def sample(self, X: Array, rng: np.random.Generator) -> Array:
        """A draw for each point."""
        return self.dependence.colour(self.shape.sample(len(X), rng), X)

    def moved(self, x: Array) -> Array:
        """The sample (m, p) of residuals as it is at one point (1, d)."""
        return self.dependence.colour(self.left, np.repeat(x, len(self.left), axis=0))


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
    chosen = fit_shape(left, weights, groups, rng, kind)
    return FittedJoint(Joint(found, chosen.shape, left), rows[chosen.rows], chosen.left_out - 0.5 * logs[chosen.rows])

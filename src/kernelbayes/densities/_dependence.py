"""How the residuals of several columns go together: each is regressed on those before it.

The coefficients are the same for all x, or vary with x: then features of x multiply the residuals. What is left has unit
variance and no correlation. The first form is the modified Cholesky factor of one covariance (Pourahmadi 1999), its
coefficients drawn to zero.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from .._linalg import LinearModel, consume_triangular, solve_lower
from .._typing import Array
from ._columns import Scale, better, fit_scale, normal_score
from ._process import NoisyProcess, Process, ProcessFeatures, features_of

# Standard deviation of a coefficient, and of its variation with x, beforehand; lengthscales of the variation.
_COEFFICIENT = 0.7
_VARIATIONS, _LENGTHSCALES = (0.3, 1.0), (1.0, 2.0)
_RANK = 30
_NOISE_STEPS = 4


@dataclasses.dataclass(frozen=True, eq=False)
class Regression:
    """One residual on those before it.

    Attributes:
        variation: the size of the coefficients' variation with x, zero for none.
        features: of x.
        root: lower triangular; what the coefficients are not known to adds the squared norm of it times their features.
    """

    variation: float
    features: ProcessFeatures | None
    weights: Array
    root: Array
    scale: Scale

    def at(self, E: Array, X: Array) -> tuple[Array, Array]:
        """Mean and variance (t,) given the residuals before it (t, j) at points (t, d)."""
        F = products(E, X, self.variation, self.features)
        mean = F @ self.weights
        half = consume_triangular(self.root, F)
        return mean, self.scale.at(X) + np.einsum("ij,ij->i", half, half)


def products(E: Array, X: Array, variation: float, features: ProcessFeatures | None) -> Array:
    """Features (t, r) of a function that is linear in residuals (t, j), with coefficients that depend on x."""
    if features is None:
        return _COEFFICIENT * E
    G = np.concatenate([np.full((len(X), 1), _COEFFICIENT), variation * features(X)[:, 1:]], axis=1)
    return (E[:, :, None] * G[:, None, :]).reshape(len(E), -1)


@dataclasses.dataclass(frozen=True, eq=False)
class Dependence:
    """Regressions of each column's residuals on those before it."""

    regressions: tuple[Regression, ...]

    @property
    def varying(self) -> bool:
        """Whether any coefficient varies with x."""
        return any(r.features is not None for r in self.regressions)

    def described(self) -> str:
        """In a word."""
        return "varying" if self.varying else "constant" if self.regressions else "none"

    def whiten(self, E: Array, X: Array) -> tuple[Array, Array]:
        """What is left of residuals (t, p), and the sum (t,) of the logarithms of its variances."""
        T, logs = np.array(E), np.zeros(len(E))
        for j, regression in enumerate(self.regressions, start=1):
            mean, variance = regression.at(E[:, :j], X)
            T[:, j] = (E[:, j] - mean) / np.sqrt(variance)
            logs += np.log(variance)
        return T, logs

    def colour(self, T: Array, X: Array) -> Array:
        """Residuals (t, p) of which this is left."""
        E = np.array(T)
        for j, regression in enumerate(self.regressions, start=1):
            mean, variance = regression.at(E[:, :j], X)
            E[:, j] = mean + np.sqrt(variance) * T[:, j]
        return E


@dataclasses.dataclass(frozen=True, eq=False)
class FittedDependence:
    """With each row left out: what is left of the residuals, and the logarithms of its variances, summed."""

    dependence: Dependence
    left: Array
    logs: Array

    @property
    def scores(self) -> Array:
        """Logarithms (n,) of the normal density, without the constant."""
        return -0.5 * self.logs - 0.5 * (self.left**2).sum(1)


def fit_dependence(
    X: Array, E: Array, weights: Array, groups: Array | None, rng: np.random.Generator, *, varying: bool | None
) -> FittedDependence:
    """Regress left-out residuals E (n, p), column by column; coefficients vary with x where left-out rows say so."""
    n, p = E.shape
    variations: list[tuple[float, ProcessFeatures | None]] = [(0.0, None)] if not varying else []
    if varying is not False and p > 1:
        spread, one = X.std(0), np.ones(X.shape[1])
        for factor in _LENGTHSCALES:
            kernel = Process(0.3 * one, factor * np.sqrt(X.shape[1]) * np.where(spread > 0, spread, 1.0), 1.0)
            features = features_of(NoisyProcess(kernel, 0.0), X, _RANK, rng)
            variations += [(size, features) for size in _VARIATIONS]
    regressions, left, logs = [], np.array(E), np.zeros(n)
    for j in range(1, p):
        tried = [_regress(E[:, :j], E[:, j], X, weights, groups, *variation) for variation in variations]
        best = tried[0]
        for one in tried[1:]:
            best = one if better(one.scores, best.scores, weights) else best
        regression, left[:, j], log = best.with_scale(X, weights, groups, rng)
        regressions.append(regression)
        logs += log
    return FittedDependence(Dependence(tuple(regressions)), left, logs)


class _Tried(NamedTuple):
    """A regression on the way: with one variance for all x."""

    model: LinearModel
    variation: float
    features: ProcessFeatures | None
    residual: Array
    known: Array
    scores: Array

    def with_scale(
        self, X: Array, weights: Array, groups: Array | None, rng: np.random.Generator
    ) -> tuple[Regression, Array, Array]:
        """The regression with its scale; of left-out rows, what is left, and the logarithm of its variance.

        A scale that varies with x is tried where coefficients do: a correlation that rises leaves less.
        """
        varying = False if self.features is None else None
        scale = fit_scale(X, self.residual, self.known, weights, groups, rng, varying=varying)
        variance = scale.left_out + self.known
        root = solve_lower(self.model.factor, np.eye(len(self.model.factor)))
        found = Regression(self.variation, self.features, self.model.weights, root, scale.scale)
        return found, self.residual / np.sqrt(variance), np.log(variance)


def _regress(
    before: Array,
    e: Array,
    X: Array,
    weights: Array,
    groups: Array | None,
    variation: float,
    features: ProcessFeatures | None,
) -> _Tried:
    F, counts = products(before, X, variation, features), weights * len(e)
    noise = np.ones(())
    for _ in range(_NOISE_STEPS):
        model = LinearModel(F, e, noise / counts)
        mean, known = model.left_out(groups)
        square = float(weights @ (e - mean) ** 2)
        noise = np.maximum(square - weights @ known, 0.2 * square + 1e-8)
    return _Tried(model, variation, features, e - mean, known, normal_score(e - mean, noise + known))

"""One column of y given x: a location and a scale that vary with x, and residuals with each row left out."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from .._linalg import LinearModel
from .._typing import Array
from ..features import Recipe
from ._function import Function
from ._process import NoisyProcess, features_of, learn_process
from ._transform import NAMES, Transform, spacing

# Landmarks of a location: a tenth of the rows, between these.
_FEWEST_LANDMARKS, _MOST_LANDMARKS = 240, 600
SCALE_RANK = 100
# Mean and variance of the logarithm of the square of a standard normal number.
_LOG_SQUARE_MEAN, _LOG_SQUARE_VARIANCE = -1.2704, np.pi**2 / 2
_SHRINKAGES = (0.0, 0.25, 0.5, 0.75, 1.0)
_SCORINGS, _FITS = 12, 2
_TRANSFORM_ROWS = 130
_LEAST_VARIANCE = 1e-10
_SETTLED = 0.1  # the largest change of a logarithm of a variance for which the location need not be fitted again


def better(new: Array, old: Array, weights: Array, errors: float = 1.0) -> bool:
    """Whether scores (n,) are better than simpler ones by more than so many standard errors of the difference."""
    gain = new - old
    mean = weights @ gain
    return bool(mean > errors * np.sqrt(weights**2 @ (gain - mean) ** 2))


def normal_score(residual: Array, variance: Array) -> Array:
    """Logarithm of a normal density, without the constant."""
    return -0.5 * np.log(variance) - 0.5 * residual**2 / variance


@dataclasses.dataclass(frozen=True, eq=False)
class Scale:
    """The variance of y about its location, `exp(level + shrinkage g(x))`, g a process.

    Attributes:
        shrinkage: how much of what was learned of its variation is used, from 0 (constant) to 1.
        function: g; None where the variance is constant.
    """

    level: float
    shrinkage: float
    function: Function | None

    def at(self, X: Array) -> Array:
        """Variances (t,) at points."""
        if self.function is None:
            return np.full(len(X), np.exp(self.level))
        return np.exp(self.level + self.shrinkage * self.function.mean(X))


class FittedScale(NamedTuple):
    """A scale, with the variances at the rows it was fitted to, and those with each row left out."""

    scale: Scale
    fitted: Array
    left_out: Array
    process: NoisyProcess | None


def _level(log_variance: Array, residual: Array, known: Array, weights: Array) -> float:
    """What to add to the logarithms of variances for them to fit residuals best, `known` variances beside them."""
    level = 0.0
    for _ in range(20):
        variance = np.exp(log_variance + level)
        total = variance + known
        share = variance / total
        step = float(weights @ (share * (residual**2 / total - 1.0)) / max(weights @ share**2, 1e-3))
        level += np.clip(step, -1.0, 1.0)
        if abs(step) < 1e-6:
            break
    return float(level)


def fit_scale(
    X: Array,
    residual: Array,
    known: Array,
    weights: Array,
    groups: Array | None,
    rng: np.random.Generator,
    *,
    varying: bool | None = None,
    first: NoisyProcess | None = None,
    recipe: Recipe | None = None,
) -> FittedScale:
    """The variance of left-out residuals (n,) beyond what is known of it, by Fisher scoring under the prior of a process.

    The residual of row i has variance `exp(level + g(x_i)) + known_i`. The process g is learned from the logarithms of
    squared residuals, which are g and noise of known variance. As much of it is used as predicts left-out rows best:
    anything but a constant must do so by more than a standard error.
    """
    squares = residual**2
    mean_square = float(weights @ squares) or _LEAST_VARIANCE
    constant = np.zeros(len(X)) + np.log(mean_square)
    level = _level(constant, residual, known, weights)
    flat = FittedScale(
        Scale(float(constant[0] + level), 0.0, None), np.exp(constant + level), np.exp(constant + level), None
    )
    if varying is False:
        return flat
    logs = np.log(squares + 1e-12 * mean_square) - _LOG_SQUARE_MEAN
    logs = np.maximum(logs, np.quantile(logs, 0.002)) - constant
    process, _ = learn_process(X, logs, rng, known=_LOG_SQUARE_VARIANCE, noise=1e-3, first=first)
    features = features_of(process, X, SCALE_RANK, rng, recipe, _LOG_SQUARE_VARIANCE)
    F, g = features(X), np.zeros(len(X))
    counts = weights * len(X)
    model: Any = None
    for _ in range(_SCORINGS):
        variance = np.exp(constant + g)
        total = variance + known
        share = np.clip(variance / total, 0.05, 1.0)
        target = g + np.clip((squares - total) / total / share, -3.0, 3.0)
        model = LinearModel(F, target, 2.0 / (share**2 * counts))
        step = np.clip(model.mean - g, -1.5, 1.5)
        g = g + step
        if np.abs(step).max() < 1e-3:
            break
    left_out = model.left_out(groups)[0]
    best, score = flat, normal_score(residual, flat.left_out + known)
    for shrinkage in _SHRINKAGES[1:]:
        there = constant + shrinkage * left_out
        level = _level(there, residual, known, weights)
        tried = normal_score(residual, np.exp(there + level) + known)
        if better(tried, score, weights) or (varying and shrinkage == _SHRINKAGES[1]):
            scale = Scale(float(constant[0] + level), shrinkage, Function.of(features, model.weights))
            fitted = np.exp(constant + level + shrinkage * model.mean)
            best, score = FittedScale(scale, fitted, np.exp(there + level), process), tried
    return best


@dataclasses.dataclass(frozen=True, eq=False)
class ColumnDensity:
    """A column of y: how it is transformed, where it lies and how far it spreads.

    Attributes:
        location: the mean of y, a process; its own variance is how far it is known.
    """

    transform: Transform
    location: Function
    scale: Scale
    process: NoisyProcess

    def at(self, X: Array) -> tuple[Array, Array, Array]:
        """Mean, variance and the share of the variance that is ignorance of the mean (t,), on the transformed scale."""
        mean, known = self.location.moments(X)
        variance = self.scale.at(X) + known
        return mean, variance, known / variance


class FittedColumn(NamedTuple):
    """A column, and what left-out rows told: residuals in units of their standard deviations, and these."""

    column: ColumnDensity
    residuals: Array
    variances: Array


def choose_transform(X: Array, y: Array, names: tuple[str, ...], rng: np.random.Generator) -> Transform:
    """The scale on which a few rows of a column are most probable under a process."""
    step, atom = spacing(y)
    if len(names) > 1 and (y.min() < 0 or y.max() == 0):
        names = ("identity",)
    if len(names) == 1:
        return Transform.of(names[0], y, step, atom)
    tried = []
    for name in names:
        transform = Transform.of(name, y, step, atom)
        few = np.random.default_rng(0).permutation(len(y))[:_TRANSFORM_ROWS]
        values = transform.dithered(y[few], rng)
        _, loss = learn_process(X[few], transform(values), rng)
        tried.append((loss - float(transform.log_slope(values).sum()), transform))
    return min(tried, key=lambda one: one[0])[1]


def fit_column(
    X: Array,
    y: Array,
    weights: Array,
    groups: Array | None,
    rng: np.random.Generator,
    *,
    transforms: tuple[str, ...] = NAMES,
    varying: bool | None = None,
    recipe: Recipe | None = None,
) -> FittedColumn:
    """Location and scale of a column y (n,) given X (n, d): the scale from left-out residuals, the location weighted."""
    transform = choose_transform(X, y, transforms, rng)
    z = transform(transform.dithered(y, rng))
    process, _ = learn_process(X, z, rng)
    rank = int(np.clip(len(X) // 10, _FEWEST_LANDMARKS, _MOST_LANDMARKS))
    features = features_of(process, X, rank, rng, recipe)
    F, counts = features(X), weights * len(X)
    variances = np.full(len(z), float(process.noise) ** 2 + _LEAST_VARIANCE)
    scale: Any = None
    for _ in range(_FITS):
        model = LinearModel(F, z, variances / counts)
        mean, known = model.left_out(groups)
        first = None if scale is None else scale.process
        scale = fit_scale(X, z - mean, known, weights, groups, rng, varying=varying, first=first, recipe=recipe)
        before, variances = variances, np.maximum(scale.fitted, _LEAST_VARIANCE)
        if np.abs(np.log(variances / before)).max() < _SETTLED:
            break
    column = ColumnDensity(transform, Function.of(features, model.weights, model.factor), scale.scale, process)
    total = scale.left_out + known
    return FittedColumn(column, (z - mean) / np.sqrt(total), total)

"""Regression through a mediator: functions r and f with samples of them, and solutions for f; see `task_transform`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ..kernels import Gaussian, median_lengthscale
from ..regression import DeconditionalEmbedding, TaskTransformedGP
from ._figures import ACCENT, FAINT, GOLD, GREEN, PURPLE, SECOND

NOISE = 0.25
REACH = 6.0  # of y

#: From points (t,) to values (t,).
Curve = Callable[[Array], Array]


# -------------------------------------------------------------------------------------------------- the problem


def through(points: Sequence[float], values: Sequence[float]) -> Curve:
    """The mean of a Gaussian process with a Gaussian kernel of lengthscale 1 through points, without noise."""
    known, kernel = np.asarray(points, dtype=np.float64)[:, None], Gaussian(1.0)
    weights = np.linalg.solve(kernel.gram(known), np.asarray(values, dtype=np.float64))
    return lambda t: kernel.gram(np.reshape(t, (-1, 1)), known) @ weights


class Functions(NamedTuple):
    """x is about r(y), and z about f(x); f is judged between -central and central."""

    r: Curve
    f: Curve
    central: float

    def conditional_mean(self, y: Array) -> Array:
        """What the task tells of: the mean g(y) of f(r(y) + noise), by quadrature."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(40)
        x = self.r(y)[:, None] + NOISE * nodes
        return self.f(x.ravel()).reshape(x.shape) @ weights / np.sqrt(2 * np.pi)

    def grid(self) -> Array:
        """Where f is judged (t,)."""
        return np.linspace(-self.central, self.central, 201)


FUNCTIONS = {
    "authors": Functions(
        through([-5, -3, -1, 1, 4], [-4, -2, -6, 4, 6]), through([-4, -3, -1, 0, 2], [-2, 0, 1, 2, -1]), 5.0
    ),
    "ours": Functions(
        lambda y: 2.5 * np.sin(0.9 * y) + 0.25 * y,
        lambda x: np.sin(2.0 * x) + 0.15 * x**2,
        2.5,
    ),
}


class Samples(NamedTuple):
    """Pairs (x, y) and task (y, z), with the x of the task that only the direct solution sees."""

    X: Array
    Y: Array
    Y_task: Array
    z_task: Array
    X_task: Array


def draw(functions: Functions, n: int, m: int, rng: np.random.Generator) -> Samples:
    """So many pairs and points of the task."""

    def pairs(count: int) -> tuple[Array, Array]:
        y = rng.uniform(-REACH, REACH, count)
        return functions.r(y) + NOISE * rng.normal(size=count), y

    (x, y), (x_task, y_task) = pairs(n), pairs(m)
    z = functions.f(x_task) + NOISE * rng.normal(size=m)
    return Samples(x[:, None], y[:, None], y_task[:, None], z, x_task[:, None])


# ---------------------------------------------------------------------------------------------------- solutions

#: The mean of f at points (t, 1), and its standard deviation where there is one.
Prediction = tuple[Array, Array | None]


def process(X: Array, y: Array) -> Callable[[Array], tuple[Array, Array]]:
    """Regression by a Gaussian process: mean and standard deviation of the function, without the noise."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0, (1e-2, 1e2)) + WhiteKernel(0.1, (1e-6, 1e1))
    model: Any = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # imputed targets have no noise, which is then at its bound
        model.fit(X, y)
    noise = model.kernel_.k2.noise_level * y.var()

    def predict(points: Array) -> tuple[Array, Array]:
        found, sd = model.predict(points, return_std=True)
        return found, np.sqrt(np.maximum(sd**2 - noise, 0.0))

    return predict


def _transformed(**settings: Any) -> Callable[[Samples, Array], Prediction]:
    def solve(given: Samples, points: Array) -> Prediction:
        model = TaskTransformedGP(random_state=0, **settings)
        return model.fit(given.X, given.Y, given.Y_task, given.z_task).predict(points, return_std=True)

    return solve


def _initial(given: Samples, points: Array) -> Prediction:
    kernels = [Gaussian(median_lengthscale(P)) for P in (given.X, np.concatenate([given.Y, given.Y_task]))]
    return _transformed(kernel=kernels[0], mediator_kernel=kernels[1], noise=0.3, learn=None)(given, points)


def _deconditional(given: Samples, points: Array) -> Prediction:
    model = DeconditionalEmbedding(random_state=0).fit(given.X, given.Y, given.Y_task, given.z_task)
    return model.predict(points), None


def cascade(given: Samples, points: Array) -> Prediction:
    """From x to y, and on to z: where several y go with one x, their mean may be none of them."""
    between = process(given.X, given.Y[:, 0])(points)[0]
    return process(given.Y_task, given.z_task)(between[:, None])[0], None


def impute(given: Samples, points: Array) -> Prediction:
    """z made up for the pairs, and from x to those."""
    made_up = process(given.Y_task, given.z_task)(given.Y)[0]
    return process(given.X, made_up)(points)


def _direct(given: Samples, points: Array) -> Prediction:
    return process(given.X_task, given.z_task)(points)


class Solution(NamedTuple):
    """How f is had from the samples."""

    label: str
    colour: str
    solve: Callable[[Samples, Array], Prediction]


SOLUTIONS = {
    "full": Solution("TTGP", ACCENT, _transformed()),
    "two": Solution("TTGP, two noises", "#f2a6b0", _transformed(mediator_noise="learn")),
    "map": Solution("TTGP, map", PURPLE, _transformed(covariance="map")),
    "initial": Solution("TTGP, initial", FAINT, _initial),
    "dme": Solution("DME", "#8ecae6", _deconditional),
    "cascade": Solution("cascade", GOLD, cascade),
    "impute": Solution("impute", SECOND, impute),
    "direct": Solution("direct", GREEN, _direct),
}

"""Heavy tails, regressions and hierarchies, and outputs that switch between regimes."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import expit, gammaln, log_expit, stdtr

from ..._typing import Array
from ...lfi import Prior
from ._problem import ZooProblem, normal


def _heavy_line() -> ZooProblem:
    """Ten points of a line with Student noise of three degrees of freedom."""
    t = np.linspace(-1.0, 1.0, 10)
    prior = Prior(level=stats.norm(0.0, 2.0), slope=stats.norm(0.0, 2.0), scale=stats.lognorm(0.7, scale=0.4))

    def line(theta: Array) -> Array:
        return theta[:, :1] + theta[:, 1:2] * t

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        return line(theta) + theta[:, 2:] * rng.standard_t(3.0, (len(theta), len(t)))

    def log_likelihood(theta: Array, x: Array) -> Array:
        z = (x - line(theta)) / theta[:, 2:]
        return (-2.0 * np.log1p(z**2 / 3.0) - np.log(theta[:, 2:])).sum(1)

    about = "a line with noise of heavy tails, ten raw outputs"
    return ZooProblem("heavy-line", about, "tails", False, prior, simulate, log_likelihood)


def _order_statistics() -> ZooProblem:
    """Five of the order statistics of 31 Student draws, whose joint density is known."""
    n, ranks = 31, np.array([3, 9, 16, 23, 29])
    gaps = np.diff(np.concatenate([[0], ranks, [n + 1]])) - 1
    prior = Prior(location=stats.norm(0.0, 3.0), scale=stats.lognorm(0.6), freedom=stats.lognorm(0.8, scale=3.0))

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        location, scale, freedom = theta.T[..., None]
        draws = rng.standard_normal((len(theta), n)) / np.sqrt(
            2.0 * rng.standard_gamma(np.broadcast_to(freedom / 2.0, (len(theta), n))) / freedom
        )
        return location + scale * np.sort(draws, axis=1)[:, ranks - 1]

    def log_likelihood(theta: Array, x: Array) -> Array:
        location, scale, freedom = theta.T[..., None]
        z = (x - location) / scale
        constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - 0.5 * np.log(freedom) - np.log(scale)
        density = constant - (freedom + 1) / 2 * np.log1p(z**2 / freedom)
        below = np.concatenate([np.zeros((len(theta), 1)), stdtr(freedom, z)], axis=1)
        between = np.concatenate([np.diff(below), stdtr(freedom, -z[:, -1:])], axis=1)
        return density.sum(1) + (gaps * np.log(np.maximum(between, 1e-300))).sum(1)

    about = "quantiles of 31 draws with heavy tails; location, scale and degrees of freedom"
    return ZooProblem("order-statistics", about, "tails", True, prior, simulate, log_likelihood)


def _hierarchy() -> ZooProblem:
    """Means of eight groups of five, and the log of the variance within them."""
    groups, each = 8, 5
    prior = Prior(mean=stats.norm(0.0, 1.5), between=stats.lognorm(0.7, scale=0.6), within=stats.lognorm(0.6))
    freedom = groups * (each - 1)

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        mean, between, within = theta.T[..., None]
        means = mean + np.sqrt(between**2 + within**2 / each) * rng.standard_normal((len(theta), groups))
        return np.column_stack([means, np.log(within[:, 0] ** 2 * rng.chisquare(freedom, len(theta)) / freedom)])

    def log_likelihood(theta: Array, x: Array) -> Array:
        mean, between, within = theta.T[..., None]
        of_means = normal(x[:-1], mean, np.sqrt(between**2 + within**2 / each)).sum(1)
        within = within[:, 0]
        return of_means - 0.5 * freedom * (np.exp(x[-1]) / within**2 + 2.0 * np.log(within))

    about = "mean and the two spreads of a hierarchy, from group means and the variance within"
    return ZooProblem("hierarchy", about, "regression", False, prior, simulate, log_likelihood)


def _logistic_regression() -> ZooProblem:
    """Six coefficients from the sufficient statistics of 80 yes and no; x is in steps, but there are very many."""
    design = np.concatenate([np.ones((80, 1)), np.random.default_rng(6).standard_normal((80, 5))], axis=1)
    prior = Prior({f"a{i}": stats.norm(0.0, 1.0) for i in range(6)})

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        return (rng.random((len(theta), len(design))) < expit(theta @ design.T)) @ design

    def log_likelihood(theta: Array, x: Array) -> Array:
        return theta @ x + log_expit(-(theta @ design.T)).sum(1)

    about = "six coefficients of a logistic regression from its sufficient statistics"
    return ZooProblem("logistic-regression", about, "regression", True, prior, simulate, log_likelihood)


def _coin() -> ZooProblem:
    """A coin whose chance depends on a parameter decides which of two places the outputs are near."""
    spread = 0.3
    prior = Prior(a=stats.norm(0.0, 1.0), b=stats.norm(0.0, 1.0))

    def places(theta: Array) -> tuple[Array, Array]:
        a, b = theta.T
        return np.column_stack([a, b]), np.column_stack([-b + 1.0, 0.5 * a])

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        first, second = places(theta)
        place = np.where(rng.random((len(theta), 1)) < expit(2.0 * theta[:, :1]), first, second)
        return place + spread * rng.standard_normal(place.shape)

    def log_likelihood(theta: Array, x: Array) -> Array:
        first, second = (normal(x, place, spread).sum(1) for place in places(theta))
        return np.logaddexp(log_expit(2.0 * theta[:, 0]) + first, log_expit(-2.0 * theta[:, 0]) + second)

    about = "two regimes by a coin whose chance depends on a parameter"
    return ZooProblem("coin", about, "regimes", False, prior, simulate, log_likelihood)


def _hurdle() -> ZooProblem:
    """The first statistic is zero in most runs, and otherwise moves with the parameters."""
    prior = Prior(a=stats.norm(0.0, 1.0), b=stats.norm(0.0, 1.0))

    def chance(theta: Array) -> Array:
        return 1.5 * theta[:, 0] - 1.5

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        a, b = theta.T
        z = rng.standard_normal((3, len(theta)))
        moves = rng.random(len(theta)) < expit(chance(theta))
        return np.column_stack([moves * np.exp(0.5 * b + 0.3 * z[0]), a + 0.8 * z[1], b - 0.5 * a + 0.8 * z[2]])

    def log_likelihood(theta: Array, x: Array) -> Array:
        a, b = theta.T
        rest = normal(x[1], a, 0.8) + normal(x[2], b - 0.5 * a, 0.8)
        if x[0] == 0.0:
            return rest + log_expit(-chance(theta))
        return rest + log_expit(chance(theta)) + normal(np.log(x[0]), 0.5 * b, 0.3)

    about = "a statistic that is zero in most runs and moves in the others"
    return ZooProblem("hurdle", about, "regimes", True, prior, simulate, log_likelihood)


REGRESSIONS = (
    _heavy_line(),
    _order_statistics(),
    _hierarchy(),
    _logistic_regression(),
    _coin(),
    _hurdle(),
)

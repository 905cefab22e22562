"""Functions to integrate, with their true integrals: Genz's six families, prices of options, a posterior."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from scipy import stats

from .._designs import unit_sequence
from .._typing import Array


class Integrand(NamedTuple):
    """A function of points (n, d), the distribution it is integrated under, and its integral.

    With `ratio` the function has two columns, and what is wanted is the integral of the first over that of the second.
    """

    f: Callable[[Array], Array]
    distribution: Any
    truth: float
    ratio: bool = False


# -------------------------------------------------------------------------------------------------------- Genz

#: Sums of the rates a_j, by which Genz (1984) sets how difficult a family is.
GENZ = {
    "oscillatory": 9.0,
    "product peak": 7.25,
    "corner peak": 1.85,
    "Gaussian peak": 7.03,
    "continuous": 20.4,
    "discontinuous": 4.3,
}


def genz(family: str, dimension: int) -> Integrand:
    """A function of one of the six families on the unit cube, with fixed rates a and places u."""
    order = np.arange(1, dimension + 1)
    a = GENZ[family] * order / order.sum()
    u = 0.2 + 0.6 * np.modf(order * (math.sqrt(5.0) - 1.0) / 2.0)[0]  # spread over the middle of each side
    f, truth = _FAMILIES[family]
    return Integrand(lambda x: f(x, a, u), [stats.uniform()] * dimension, truth(a, u))


def _oscillatory(a: Array, u: Array) -> float:
    return float((np.exp(2j * np.pi * u[0]) * np.prod((np.exp(1j * a) - 1.0) / (1j * a))).real)


def _product_peak(a: Array, u: Array) -> float:
    return float(np.prod(a * (np.arctan(a * (1.0 - u)) + np.arctan(a * u))))


def _corner_peak(a: Array, u: Array) -> float:
    """By inclusion and exclusion over the corners of the cube."""
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=len(a))))
    terms = (-1.0) ** corners.sum(1) / (1.0 + corners @ a)
    return float(terms.sum() / (math.factorial(len(a)) * np.prod(a)))


def _gaussian_peak(a: Array, u: Array) -> float:
    both = scipy.special.erf(a * (1.0 - u)) + scipy.special.erf(a * u)
    return float(np.prod(math.sqrt(math.pi) / (2.0 * a) * both))


def _continuous(a: Array, u: Array) -> float:
    return float(np.prod((2.0 - np.exp(-a * u) - np.exp(-a * (1.0 - u))) / a))


def _discontinuous(a: Array, u: Array) -> float:
    end = np.where(np.arange(len(a)) < 2, u, 1.0)
    return float(np.prod(np.expm1(a * end) / a))


_FAMILIES: dict[str, tuple[Callable[[Array, Array, Array], Array], Callable[[Array, Array], float]]] = {
    "oscillatory": (lambda x, a, u: np.cos(2.0 * np.pi * u[0] + x @ a), _oscillatory),
    "product peak": (lambda x, a, u: np.prod(1.0 / (a**-2.0 + (x - u) ** 2), axis=1), _product_peak),
    "corner peak": (lambda x, a, u: (1.0 + x @ a) ** -(len(a) + 1.0), _corner_peak),
    "Gaussian peak": (lambda x, a, u: np.exp(-((x - u) ** 2 @ a**2)), _gaussian_peak),
    "continuous": (lambda x, a, u: np.exp(-(np.abs(x - u) @ a)), _continuous),
    "discontinuous": (lambda x, a, u: np.where((x[:, :2] > u[:2]).any(1), 0.0, np.exp(x @ a)), _discontinuous),
}


# ----------------------------------------------------------------------------------------------------- options

_SPOT, _STRIKE, _INTEREST, _VOLATILITY = 100.0, 100.0, 0.05, 0.2
# Points of the reference for the price that has no closed form, and how often they are scrambled anew.
_REFERENCE, _SCRAMBLES = 2**17, 4


def call_option() -> Integrand:
    """A call on one asset after a year: the price is that of Black and Scholes."""
    drift, root = _INTEREST - 0.5 * _VOLATILITY**2, _VOLATILITY

    def payoff(z: Array) -> Array:
        return math.exp(-_INTEREST) * np.maximum(_SPOT * np.exp(drift + root * z[:, 0]) - _STRIKE, 0.0)

    upper = (math.log(_SPOT / _STRIKE) + _INTEREST + 0.5 * root**2) / root
    phi = scipy.special.ndtr
    truth = _SPOT * phi(upper) - _STRIKE * math.exp(-_INTEREST) * phi(upper - root)
    return Integrand(payoff, stats.norm(), float(truth))


def asian_option(dimension: int) -> Integrand:
    """A call on the mean of the prices at the ends of some equal periods of a year, as a function of independent normals."""
    steps = np.arange(1, dimension + 1) / dimension
    drift, root = (_INTEREST - 0.5 * _VOLATILITY**2) * steps, _VOLATILITY / math.sqrt(dimension)

    def prices(z: Array) -> Array:
        return _SPOT * np.exp(drift + root * np.cumsum(z, axis=1))

    def discounted(mean: Array) -> Array:
        return math.exp(-_INTEREST) * np.maximum(mean - _STRIKE, 0.0)

    def arithmetic(z: Array) -> Array:
        return discounted(prices(z).mean(1))

    def geometric(z: Array) -> Array:
        return discounted(np.exp(np.log(prices(z)).mean(1)))

    known = _geometric_price(drift.mean(), root * math.sqrt((steps[::-1] ** 2).sum()))
    truth = known + _reference(lambda z: arithmetic(z) - geometric(z), dimension)
    return Integrand(arithmetic, [stats.norm()] * dimension, truth)


def _geometric_price(drift: float, spread: float) -> float:
    """The price of a call on a lognormal mean."""
    lower = (math.log(_SPOT / _STRIKE) + drift) / spread
    phi = scipy.special.ndtr
    forward = _SPOT * math.exp(drift + 0.5 * spread**2)
    return float(math.exp(-_INTEREST) * (forward * phi(lower + spread) - _STRIKE * phi(lower)))


def _reference(f: Callable[[Array], Array], dimension: int) -> float:
    """The mean of a function of normals by long Sobol sequences: of a small difference, so that prices are good to 1e-4."""
    sequences = (unit_sequence("sobol", dimension, 0, _REFERENCE, seed) for seed in range(_SCRAMBLES))
    return float(np.mean([f(scipy.special.ndtri(u)).mean() for u in sequences]))


# --------------------------------------------------------------------------------------------------- posterior

_PRIOR_SD = 2.0


def posterior_mean() -> Integrand:
    """The posterior mean of the slope of a logistic regression on 20 made-up rows, with a normal prior on both numbers."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20)
    y = np.where(rng.random(20) < scipy.special.expit(0.5 + 1.5 * x), 1.0, -1.0)

    def logarithm(b: Array) -> Array:
        return scipy.special.log_expit(y * (b[:, :1] + b[:, 1:] * x)).sum(1)

    line = np.linspace(-6.0 * _PRIOR_SD, 6.0 * _PRIOR_SD, 401)
    grid = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    likelihood = logarithm(grid)
    highest = float(likelihood.max())
    mass = np.exp(likelihood - highest - 0.5 * (grid**2).sum(1) / _PRIOR_SD**2)
    truth = float(mass @ grid[:, 1] / mass.sum())

    def both(b: Array) -> Array:
        scaled = np.exp(logarithm(b) - highest)
        return np.stack([scaled * b[:, 1], scaled], axis=1)

    return Integrand(both, [stats.norm(0.0, _PRIOR_SD)] * 2, truth, ratio=True)


# --------------------------------------------------------------------------------------------------------- all


@functools.cache
def integrand(name: str, dimension: int) -> Integrand:
    """The integrand of a row of the table."""
    if name in GENZ:
        return genz(name, dimension)
    if name == "call option":
        return call_option()
    return asian_option(dimension) if name == "Asian option" else posterior_mean()

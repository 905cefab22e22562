"""Counts, and epidemics that are seen through counts."""

from __future__ import annotations

import numpy as np
from scipy import stats
from scipy.special import betaln, expit, gammaln, xlog1py, xlogy

from ..._typing import Array
from ...lfi import Prior
from ._problem import ZooProblem, runge_kutta


def _overdispersed() -> ZooProblem:
    """Five counts of each of two groups, gamma-Poisson with one shape."""
    prior = Prior(a=stats.norm(0.5, 0.8), b=stats.norm(0.0, 0.8), shape=stats.lognorm(1.0))

    def model(theta: Array) -> tuple[Array, Array]:
        a, b, shape = theta.T
        return np.exp(np.column_stack([a, a + b]).repeat(5, axis=1)), shape[:, None]

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        means, shape = model(theta)
        rates = means / shape * rng.standard_gamma(np.broadcast_to(shape, means.shape))
        return rng.poisson(rates).astype(np.float64)

    def log_likelihood(theta: Array, x: Array) -> Array:
        means, shape = model(theta)
        told = gammaln(x + shape) - gammaln(shape) + xlogy(shape, shape) + xlogy(x, means)
        return (told - (x + shape) * np.log(shape + means)).sum(1)

    about = "ten small overdispersed counts in two groups; the dispersion is a parameter"
    return ZooProblem("overdispersed", about, "counts", False, prior, simulate, log_likelihood)


def _poisson() -> ZooProblem:
    """Eight counts, log-linear in three parameters; most are 0, 1 or 2."""
    B = np.random.default_rng(8).standard_normal((3, 8)) * 0.6
    prior = Prior({f"a{i}": stats.norm(0.0, 1.0) for i in range(3)})

    def rates(theta: Array) -> Array:
        return np.exp(np.minimum(theta @ B, 15.0))

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        return rng.poisson(rates(theta)).astype(np.float64)

    def log_likelihood(theta: Array, x: Array) -> Array:
        means = rates(theta)
        return (xlogy(x, means) - means).sum(1)

    return ZooProblem("poisson", "eight small counts, log-linear", "counts", True, prior, simulate, log_likelihood)


def _epidemic() -> ZooProblem:
    """Susceptible, infected, recovered; at eight times the infected among 200 people who are tested."""
    times, tested = np.linspace(6.0, 62.0, 8), 200
    prior = Prior(contact=stats.lognorm(0.5, scale=0.4), recovery=stats.lognorm(0.3, scale=0.12))

    def shares(theta: Array) -> Array:
        contact, recovery = theta.T

        def slope(state: Array) -> Array:
            new = contact * state[:, 0] * state[:, 1]
            return np.column_stack([-new, new - recovery * state[:, 1]])

        start = np.broadcast_to([0.995, 0.005], (len(theta), 2))
        return np.clip(runge_kutta(slope, start, times, 16)[:, 1], 1e-6, 1.0 - 1e-6)

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        return rng.binomial(tested, shares(theta)).astype(np.float64)

    def log_likelihood(theta: Array, x: Array) -> Array:
        share = shares(theta)
        return (xlogy(x, share) + xlog1py(tested - x, -share)).sum(1)

    about = "an epidemic's ODE seen at eight times through binomial counts"
    return ZooProblem("epidemic", about, "epidemic", False, prior, simulate, log_likelihood)


def _latent_epidemic() -> ZooProblem:
    """With a latent stage, and beta-binomial counts of 100 tested whose concentration is a parameter."""
    times, tested = np.linspace(5.0, 50.0, 10), 100
    prior = Prior(
        contact=stats.lognorm(0.4, scale=0.7),
        onset=stats.lognorm(0.3, scale=0.3),
        recovery=stats.lognorm(0.3, scale=0.2),
        concentration=stats.lognorm(0.8, scale=30.0),
    )

    def shares(theta: Array) -> Array:
        contact, onset, recovery = theta.T[:3]

        def slope(state: Array) -> Array:
            new = contact * state[:, 0] * state[:, 2]
            sick = onset * state[:, 1]
            return np.column_stack([-new, new - sick, sick - recovery * state[:, 2]])

        start = np.broadcast_to([0.99, 0.0, 0.01], (len(theta), 3))
        return np.clip(runge_kutta(slope, start, times, 10)[:, 2], 1e-5, 1.0 - 1e-5)

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        share, strength = shares(theta), theta[:, 3:]
        return rng.binomial(tested, rng.beta(share * strength, (1.0 - share) * strength)).astype(np.float64)

    def log_likelihood(theta: Array, x: Array) -> Array:
        share, strength = shares(theta), theta[:, 3:]
        a, b = share * strength, (1.0 - share) * strength
        return (betaln(x + a, tested - x + b) - betaln(a, b)).sum(1)

    about = "an epidemic with a latent stage, seen through overdispersed counts"
    return ZooProblem("epidemic-latent", about, "epidemic", True, prior, simulate, log_likelihood)


def _dose_response() -> ZooProblem:
    """Of 20 at each of six doses, how many respond; every parameter vector of a design has five simulations."""
    doses, n = np.linspace(-2.0, 3.0, 6), 20
    prior = Prior(middle=stats.norm(0.5, 1.0), slope=stats.lognorm(0.5, scale=1.5), floor=(0.0, 0.4))

    def chances(theta: Array) -> Array:
        middle, slope, floor = theta.T[..., None]
        return np.clip(floor + (1.0 - floor) * expit(slope * (doses - middle)), 1e-12, 1.0 - 1e-12)

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        return rng.binomial(n, chances(theta)).astype(np.float64)

    def log_likelihood(theta: Array, x: Array) -> Array:
        chance = chances(theta)
        return (xlogy(x, chance) + xlog1py(n - x, -chance)).sum(1)

    about = "responses out of 20 at six doses, five simulations at each parameter vector"
    return ZooProblem("dose-response", about, "repeats", True, prior, simulate, log_likelihood, repeats=5)


COUNTS = (_overdispersed(), _poisson(), _epidemic(), _latent_epidemic(), _dose_response())

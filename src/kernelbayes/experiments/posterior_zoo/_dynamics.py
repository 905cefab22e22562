"""Dynamics with little noise: posteriors much narrower than the prior."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..._typing import Array
from ...lfi import Prior
from ._problem import ZooProblem, normal, runge_kutta


def _predator_prey() -> ZooProblem:
    """Logarithms of both populations at eight times, with normal noise of 0.1."""
    times, noise = np.linspace(1.5, 12.0, 8), 0.1
    prior = Prior(
        growth=stats.lognorm(0.4, scale=0.8),
        eaten=stats.lognorm(0.4, scale=0.08),
        death=stats.lognorm(0.4, scale=0.8),
        fed=stats.lognorm(0.4, scale=0.05),
    )

    def paths(theta: Array) -> Array:
        growth, eaten, death, fed = theta.T

        def slope(state: Array) -> Array:
            prey, predators = np.exp(np.minimum(state, 12.0)).T
            slopes = np.column_stack([growth - eaten * predators, fed * prey - death])
            return np.clip(slopes, -50.0, 50.0)  # so that no parameters leave the numbers

        start = np.broadcast_to(np.log([10.0, 6.0]), (len(theta), 2))
        return runge_kutta(slope, start, times, 20).reshape(len(theta), -1)

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        path = paths(theta)
        return path + noise * rng.standard_normal(path.shape)

    def log_likelihood(theta: Array, x: Array) -> Array:
        return normal(x, paths(theta), noise).sum(1)

    about = "four rates of predators and prey from sixteen sharp outputs"
    return ZooProblem("predator-prey", about, "dynamics", False, prior, simulate, log_likelihood)


def _oscillator() -> ZooProblem:
    """A damped swing at twelve times."""
    times, noise = np.linspace(0.4, 6.0, 12), 0.08
    prior = Prior(
        frequency=stats.lognorm(0.35, scale=2.0),
        damping=stats.lognorm(0.5, scale=0.2),
        size=stats.norm(1.0, 0.5),
        phase=stats.norm(0.0, 0.6),
    )

    def swings(theta: Array) -> Array:
        frequency, damping, size, phase = theta.T[..., None]
        return size * np.exp(-damping * times) * np.cos(frequency * times + phase)

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        swing = swings(theta)
        return swing + noise * rng.standard_normal(swing.shape)

    def log_likelihood(theta: Array, x: Array) -> Array:
        return normal(x, swings(theta), noise).sum(1)

    about = "frequency, damping, size and phase of a swing from twelve sharp outputs"
    return ZooProblem("oscillator", about, "dynamics", True, prior, simulate, log_likelihood)


def _growth() -> ZooProblem:
    """Logistic growth on the log scale, the noise a parameter too; every parameter vector has five simulations."""
    times = np.linspace(1.0, 12.0, 8)
    prior = Prior(
        rate=stats.lognorm(0.4, scale=0.6),
        capacity=stats.norm(3.0, 0.7),
        start=stats.norm(0.0, 0.7),
        noise=stats.lognorm(0.5, scale=0.15),
    )

    def logs(theta: Array) -> Array:
        rate, capacity, start, _ = theta.T[..., None]
        return capacity - np.logaddexp(0.0, capacity - start - rate * times)

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        log = logs(theta)
        return log + theta[:, 3:] * rng.standard_normal(log.shape)

    def log_likelihood(theta: Array, x: Array) -> Array:
        return normal(x, logs(theta), theta[:, 3:]).sum(1)

    about = "logistic growth and its noise, five simulations at each parameter vector"
    return ZooProblem("repeated-growth", about, "repeats", False, prior, simulate, log_likelihood, repeats=5)


DYNAMICS = (_predator_prey(), _oscillator(), _growth())

r"""Particles that follow a posterior from the prior: tempered sequential Monte Carlo.

The likelihood is raised to powers that rise from 0 to 1, each so far that half of the particles would be left (Jasra et al.
2011); the particles are then resampled by what it adds, and moved by a few Metropolis steps in which the tempered posterior
is stationary. The products of what is added on average estimate the evidence (Del Moral, Doucet and Jasra 2006).

Two kinds of steps take turns: along the difference of two other particles (ter Braak 2006), which knows the shape of a
posterior and, at full length, leads from one mode to another; and a random walk with the covariance of all, at one of three
scales.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._linalg import cholesky
from .._typing import Array
from ..embeddings._moments import covariances
from ..kernels._distributions import Distribution
from ._importance import systematic

# Draws of the prior to begin with, of which the first step keeps the usual number; what share of them each power leaves.
FIRST, PARTICLES, _LEFT = 4000, 1000, 0.5
# Metropolis steps after each power, and after the last one: so many, and for each coordinate so many more.
_STEPS, _LAST, _LAST_EACH = 3, 10, 3
# Scales of random walks, as multiples of the one that is best for a normal; the share of jumps at full length.
_WALKS, _JUMPS = (1.0, 0.3, 0.08), 0.15
_MOST_POWERS = 200

LogLikelihood = Callable[[Array], Array]


class Target(NamedTuple):
    """A prior of coordinates, and the logarithm of a likelihood (n,) at coordinates (n, d)."""

    prior: Distribution
    log_likelihood: LogLikelihood

    def log_prior(self, z: Array) -> Array:
        """Logarithm of the prior's density (n,), minus infinity where it underflows."""
        with np.errstate(divide="ignore"):
            return np.log(self.prior.density(z))

    def at(self, z: Array, power: float = 0.0) -> Population:
        """Particles at coordinates (n, d)."""
        return Population(power, z, self.log_likelihood(z), self.log_prior(z))

    def drawn(self, n: int, rng: np.random.Generator) -> Population:
        """Particles that are draws of the prior."""
        return self.at(self.prior.sample(n, rng))


@dataclasses.dataclass(frozen=True, eq=False)
class Population:
    """Particles of a tempered posterior.

    Attributes:
        power: that of the likelihood.
        z: coordinates (n, d).
        likelihood, prior: logarithms (n,) of both there.
    """

    power: float
    z: Array
    likelihood: Array
    prior: Array

    def of(self, rows: Array) -> Population:
        """Some of the particles."""
        return Population(self.power, self.z[rows], self.likelihood[rows], self.prior[rows])


class Tempered(NamedTuple):
    """The last population, the logarithm of the evidence, how many powers led there, and the last steps' acceptance."""

    population: Population
    log_evidence: float
    powers: int
    acceptance: float


def temper(
    target: Target, now: Population, rng: np.random.Generator, particles: int = PARTICLES, power: float = 1.0
) -> Tempered:
    """Lead draws of the prior to the posterior, or to that with the likelihood to some power."""
    if not np.isfinite(now.likelihood).any():
        raise ValueError("the likelihood is zero wherever the prior is: no parameter explains the observation")
    powers, evidence, acceptance = 0, 0.0, 1.0
    while now.power < power:
        following = _next_power(now, power) if powers < _MOST_POWERS else power
        logs = (following - now.power) * now.likelihood
        top = logs.max()
        weights = np.exp(logs - top)
        evidence += float(top + np.log(weights.mean()))
        now = dataclasses.replace(now, power=following).of(systematic(weights, particles, rng))
        steps = _LAST + _LAST_EACH * now.z.shape[1] if following == 1.0 else _STEPS
        now, acceptance = move(target, now, steps, rng)
        powers += 1
    return Tempered(now, evidence, powers, acceptance)


def _next_power(now: Population, last: float) -> float:
    """The largest power, up to the last, that leaves its share of the particles, by their effective number."""
    wanted = _LEFT * min(len(now.z), PARTICLES)

    def left(power: float) -> float:
        logs = (power - now.power) * now.likelihood
        w = np.exp(logs - logs.max())
        return float(w.sum() ** 2 / (w @ w))

    if left(last) >= wanted:
        return last
    low, high = now.power, last
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if left(middle) >= wanted else (low, middle)
    return max(low, now.power + 1e-6)


def move(target: Target, now: Population, steps: int, rng: np.random.Generator) -> tuple[Population, float]:
    """Metropolis steps, and the share of them that was taken.

    Each half of the particles is moved by what the other half looks like, which leaves the posterior of all as it is.
    """
    taken = 0.0
    for step in range(steps):
        propose = _differences if step % 2 == 0 else _walks
        order = rng.permutation(len(now.z))
        halves = np.array_split(order, 2)
        for mine, others in (halves, halves[::-1]):
            proposed = now.z[mine] + propose(now.z[others], len(mine), rng)
            taken += _accept(target, now, mine, proposed, rng) / (len(now.z) * steps)
    return now, taken


def _accept(target: Target, now: Population, rows: Array, proposed: Array, rng: np.random.Generator) -> int:
    """Put proposals in the place of particles, in place, by the rule of Metropolis; how many were taken."""
    prior = target.log_prior(proposed)
    likelihood = np.full(len(rows), -np.inf)
    possible = prior > -np.inf
    if possible.any():
        likelihood[possible] = target.log_likelihood(proposed[possible])
    gain = now.power * (likelihood - now.likelihood[rows]) + prior - now.prior[rows]
    accepted = np.log(rng.uniform(size=len(rows))) < gain
    to = rows[accepted]
    now.z[to], now.likelihood[to], now.prior[to] = proposed[accepted], likelihood[accepted], prior[accepted]
    return len(to)


def _differences(z: Array, n: int, rng: np.random.Generator) -> Array:
    """Steps (n, d) along differences of two particles."""
    d = z.shape[1]
    first, second = rng.integers(len(z), size=n), rng.integers(len(z), size=n)
    length = np.where(rng.uniform(size=(n, 1)) < _JUMPS, 1.0, 2.38 / np.sqrt(2 * d) * rng.uniform(0.5, 1.0, (n, 1)))
    return length * (z[first] - z[second]) + 1e-4 * z.std(0) * rng.standard_normal((n, d))


def _walks(z: Array, n: int, rng: np.random.Generator) -> Array:
    """Steps (n, d) of random walks with the covariance of particles, each at a scale of its own."""
    d = z.shape[1]
    covariance = covariances(z, np.full((1, len(z)), 1.0 / len(z)))[0]
    factor = np.asarray(cholesky(covariance, "the covariance of particles", 1e-9 * (np.trace(covariance) / d + 1e-12)))
    return 2.38 / np.sqrt(d) * rng.choice(_WALKS, (n, 1)) * (rng.standard_normal((n, d)) @ factor.T)

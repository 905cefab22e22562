"""The posterior under a likelihood that can be evaluated: particles, and further draws from where they are."""

from __future__ import annotations

import functools
from typing import Protocol

import numpy as np

from .._typing import Array
from ..features._herding import Pool, herd
from ..kernels import Gaussian, median_lengthscale
from ..kernels._distributions import Normal
from ..rules.regression_adjustment import Moments, moments
from ._law import Law
from ._prior import Prior
from ._tempering import Population, Target, move

# Steps that lead from draws to further ones; most draws that are made by steps, beyond which they are smoothed.
_STEPS_APART, _MOST_STEPPED = 4, 10_000
_CANDIDATES = 2000
# Of the parameters of further rounds, this share is drawn from a normal with so many times the spread.
_WIDE_SHARE, _WIDER = 0.1, 2.0


class LogLikelihood(Protocol):
    """A likelihood that can be evaluated."""

    def log(self, theta: Array, observed: Array) -> Array:
        """Logarithm (n,) at parameters (n, d), of independent observations (k, p)."""
        ...


class ParticlePosterior(Law):
    """The posterior under a likelihood that can be evaluated, and a prior with Gaussian coordinates.

    Args:
        likelihood: learned from simulations.
        prior: of the parameters.
        observed: (k, p) independent observations.
        population: coordinates (n, d) of particles, and the logarithms of likelihood and prior there.
        log_evidence: logarithm of the integral of the likelihood under the prior.
        seed: of further draws.
    """

    def __init__(
        self,
        likelihood: LogLikelihood,
        prior: Prior,
        observed: Array,
        population: Population,
        log_evidence: float,
        seed: int,
    ):
        self.likelihood, self.prior, self.observed = likelihood, prior, observed
        self.population, self.log_evidence, self.seed = population, log_evidence, seed

    @property
    def target(self) -> Target:
        """What the particles follow."""
        latent = self.prior.latent
        assert latent is not None
        return Target(latent, self.log_likelihood)

    def log_likelihood(self, z: Array) -> Array:
        """Logarithm of the likelihood (n,) at coordinates (n, d)."""
        return self.likelihood.log(self.prior.from_gaussian(z), self.observed)

    def log_density(self, z: Array) -> Array:
        """Logarithm of the posterior's density (n,) at coordinates (n, d)."""
        return self.log_likelihood(z) - self.log_evidence + self.target.log_prior(z)

    def density(self, z: Array) -> Array:
        return np.exp(self.log_density(z))

    @functools.cached_property
    def _drawn_cache(self) -> list[Array]:
        """Draws so far; those that are added follow from the last."""
        return [self.population.z]

    def _drawn(self, n: int) -> Array:
        """At least n draws, as long as steps may lead to them."""
        drawn, size = self._drawn_cache, len(self.population.z)
        if n > size * len(drawn):
            now = self.target.at(np.array(drawn[-1]), power=1.0)
            while n > size * len(
                drawn
            ):  # each with a stream of its own: the same, however many are asked for at a time
                now, _ = move(self.target, now, _STEPS_APART, np.random.default_rng([self.seed, len(drawn)]))
                drawn.append(now.z.copy())
        return np.concatenate(drawn[: -(-n // size)])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Particles, moved on where more are asked for; beyond some thousands they are smoothed a little."""
        drawn = self._drawn(min(n, _MOST_STEPPED))
        if n <= len(drawn):
            return drawn[rng.permutation(len(drawn))[:n]]
        m, d = drawn.shape
        rows = np.concatenate([rng.permutation(m) for _ in range(-(-n // m))])[:n]
        # drawn together as much as the noise spreads them, so that mean and covariance are kept (West 1993)
        bandwidth = (m * (d + 2) / 4.0) ** (-1.0 / (d + 4))
        mean, shrink = drawn.mean(0), np.sqrt(1.0 - bandwidth**2)
        noise = (drawn[rng.integers(m, size=n)] - drawn[rng.integers(m, size=n)]) / np.sqrt(2.0)
        return mean + shrink * (drawn[rows] - mean) + bandwidth * noise

    def herd(self, n: int, rng: np.random.Generator) -> Array:
        candidates = self.prior.on_atoms(self.sample(max(_CANDIDATES, 5 * n), rng))
        kernel = Gaussian(float(median_lengthscale(candidates)))
        values = kernel._gram(candidates, candidates).mean(1)
        return candidates[herd(Pool((kernel, candidates)), values, n, repeat=True, sweeps=0)]

    def moments(self) -> Moments:
        return moments(self.population.z)

    def propose(self, n: int, rng: np.random.Generator) -> Array:
        """Particles, and some draws of a wider normal.

        The likelihood does not depend on what parameters were drawn from, so that nothing has to be corrected.
        """
        z = self.population.z
        about = Normal(z.mean(0), _WIDER**2 * moments(z).covariance + 1e-9 * np.eye(z.shape[1]))
        few = round(_WIDE_SHARE * n)
        rows = np.concatenate([rng.permutation(len(z)) for _ in range(-(-n // len(z)))])[: n - few]
        return np.concatenate([z[rows], about.sample(few, rng)])

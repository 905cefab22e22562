r"""A likelihood learned from simulations, and the posterior under it.

`ConditionalDensity` learns the density p(x | theta) of what a simulator returns. As a function of theta at the observation it
is the likelihood that nobody could write down. The prior stays exact; the posterior is drawn from by particles
(`_tempering.py`). Because it is a likelihood, it adds up over independent observations, serves any other observation or prior, and
does not ask what the simulated parameters were drawn from.

What the regressions do not know of their own mean is part of the density's variance, so that the posterior knows what the
likelihood does not know; where that is much of it, the posterior says so.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._typing import Array
from ..densities import ConditionalDensity
from ..features import Recipe
from ..features._herding import Pool, herd
from ..kernels import Gaussian, median_lengthscale
from ..kernels._distributions import Distribution, Normal
from ..rules.regression_adjustment import moments
from ._law import Law, WeightedPoints
from ._prior import Prior
from ._problem import Inference, Problem
from ._tempering import PARTICLES, Population, Target, Tempered, move, temper

# Steps that lead from draws to further ones; most draws that are made by steps, beyond which they are smoothed.
_STEPS_APART, _MOST_STEPPED = 4, 10_000
# Draws of a prior that can only be sampled.
_POOL = 20_000
_CANDIDATES = 2000
# Of the parameters of further rounds, this share is drawn from a normal with so many times the spread.
_WIDE_SHARE, _WIDER = 0.1, 2.0
# A posterior is flagged where more of a statistic's variance than this is ignorance of the regressions.
_IGNORANT = 0.2


class Likelihood:
    """The density of simulations given parameters, as a function of their Gaussian coordinates.

    Args:
        prior: knows the coordinates, and what regressions see of them.
        density: fitted to what regressions see, and the statistics.
        kept: which statistics (p,) vary, and so take part.
    """

    def __init__(self, prior: Prior, density: ConditionalDensity, kept: Array):
        self.prior, self.density, self.kept = prior, density, kept

    def log(self, z: Array, observed: Array) -> Array:
        """Logarithm (n,) at coordinates (n, d), of independent observations (k, p)."""
        X = self.prior.regressors(z)
        return np.sum([self.density.log_density(y, X) for y in observed[:, self.kept]], axis=0)

    def ignorance(self, z: Array) -> Array:
        """The share (n,) of the variance that is ignorance of the mean, in the statistic that has the largest."""
        X = self.density._points(self.prior.regressors(z))
        return np.max([column.at(X)[2] for column in self.density.columns_], axis=0)


class LikelihoodPosterior(Law):
    """The posterior under a likelihood that can be evaluated, and a prior with Gaussian coordinates.

    Args:
        likelihood: learned from simulations.
        prior: of the coordinates.
        observed: (k, p) independent observations.
        population: coordinates (n, d) of particles, and the logarithms of likelihood and prior there.
        log_evidence: logarithm of the integral of the likelihood under the prior.
        seed: of further draws.
    """

    def __init__(
        self,
        likelihood: Likelihood,
        prior: Distribution,
        observed: Array,
        population: Population,
        log_evidence: float,
        seed: int,
    ):
        self.learned, self.prior, self.observed = likelihood, prior, observed
        self.population, self.log_evidence, self.seed = population, log_evidence, seed
        self.stages: tuple[Population, ...] = (population,)

    @property
    def target(self) -> Target:
        """What the particles follow."""
        return Target(self.prior, self.log_likelihood)

    def log_likelihood(self, z: Array) -> Array:
        """Logarithm of the likelihood (n,) at coordinates (n, d)."""
        return self.learned.log(self.learned.prior.on_atoms(z), self.observed)

    def density(self, z: Array) -> Array:
        return np.exp(self.log_likelihood(z) - self.log_evidence) * self.prior.density(z)

    @functools.cached_property
    def _drawn_cache(self) -> list[Array]:
        """Draws so far; those that are added follow from the last."""
        return [self.population.z]

    def _drawn(self, n: int) -> Array:
        """At least n draws, as long as steps may lead to them."""
        drawn, size = self._drawn_cache, len(self.population.z)
        if n > size * len(drawn):
            rng = np.random.default_rng([self.seed, len(drawn)])
            now = self.population._replace(z=np.array(drawn[-1]))
            now = now._replace(likelihood=self.log_likelihood(now.z), prior=self.target.log_prior(now.z))
            while n > size * len(drawn):
                now, _ = move(self.target, now, _STEPS_APART, rng)
                drawn.append(now.z.copy())
        return np.concatenate(drawn)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Particles, moved on where more are asked for; beyond some thousands they are smoothed a little."""
        drawn = self._drawn(min(n, _MOST_STEPPED))
        if n <= len(drawn):
            return drawn[rng.permutation(len(drawn))[:n]]
        m, d = drawn.shape
        bandwidth = (m * (d + 2) / 4.0) ** (-1.0 / (d + 4))
        rows = np.concatenate([rng.permutation(m) for _ in range(-(-n // m))])[:n]
        # drawn together as much as the noise spreads them: mean and covariance are kept (West 1993)
        mean, shrink = drawn.mean(0), np.sqrt(1.0 - bandwidth**2)
        pairs = drawn[rng.integers(m, size=n)] - drawn[rng.integers(m, size=n)]
        return mean + shrink * (drawn[rows] - mean) + bandwidth * pairs / np.sqrt(2.0)

    def herd(self, n: int, rng: np.random.Generator) -> Array:
        candidates = self.learned.prior.on_atoms(self.sample(max(_CANDIDATES, 5 * n), rng))
        kernel = Gaussian(float(median_lengthscale(candidates)))
        values = kernel._gram(candidates, candidates).mean(1)
        return candidates[herd(Pool((kernel, candidates)), values, n, repeat=True, sweeps=0)]

    def propose(self, n: int, power: float, rng: np.random.Generator) -> Array:
        """Particles of the posterior with the likelihood to about this power, some of them from a wider normal.

        The likelihood does not depend on what parameters were drawn from, so that nothing has to be corrected.
        """
        z = next(p.z for p in self.stages if p.power >= power - 1e-12)
        about = Normal(z.mean(0), _WIDER**2 * moments(z).covariance + 1e-9 * np.eye(z.shape[1]))
        few = round(_WIDE_SHARE * n)
        rows = np.concatenate([rng.permutation(len(z)) for _ in range(-(-n // len(z)))])[: n - few]
        return np.concatenate([z[rows], about.sample(few, rng)])


def likelihood(
    problem: Problem,
    *,
    particles: int = PARTICLES,
    target_transform: Any = "auto",
    scale: str = "auto",
    dependence: str = "auto",
    shape: str = "auto",
    features: Recipe | None = None,
) -> Inference:
    """The posterior under a learned likelihood."""
    parts = {"target_transform": target_transform, "scale": scale, "dependence": dependence, "shape": shape}
    learned = learn(problem, features=features, **parts)
    seed = int(problem.rng.integers(2**31))
    law, evidence, found = posterior(learned, problem.prior, problem.observed.reshape(1, -1), seed, particles)
    ignorance = float(learned.ignorance(law.sample(500, np.random.default_rng(seed))).mean())
    details = {"log_evidence": evidence, "ignorance": ignorance}
    if found is not None:
        details |= {"powers": len(found.populations), "acceptance": found.acceptance}
    settings = {"particles": particles, "features": features, **parts}
    return Inference(law, settings, _inside(law, problem.Z), _ignorant(ignorance), details, learned)


def learn(problem: Problem, **settings: Any) -> Likelihood:
    """The likelihood that simulations tell."""
    X = problem.outputs.reshape(len(problem.outputs), -1)
    kept = X.std(0) > 0
    if not kept.any():
        raise ValueError("no statistic varies over the simulations: they say nothing about the parameters")
    density = ConditionalDensity(random_state=int(problem.rng.integers(2**31)), **settings)
    return Likelihood(problem.prior, density.fit(problem.prior.regressors(problem.Z), X[:, kept]), kept)


def posterior(
    learned: Likelihood, prior: Prior, observed: Array, seed: int, particles: int = PARTICLES
) -> tuple[Law, float, Tempered | None]:
    """The posterior of a learned likelihood, the logarithm of the evidence, and how particles got there."""
    rng, latent = np.random.default_rng(seed), prior.latent
    if latent is None:
        z = prior.coordinates(_POOL, rng)
        logs = learned.log(z, observed)
        weights = np.exp(logs - logs.max())
        law = WeightedPoints(z, weights, Gaussian(float(median_lengthscale(z))))
        return law, float(logs.max() + np.log(weights.mean())), None
    target = Target(latent, lambda z: learned.log(prior.on_atoms(z), observed))
    found = temper(target, rng, particles)
    law = LikelihoodPosterior(learned, latent, observed, found.posterior, found.log_evidence, seed)
    law.stages = found.populations
    return law, found.log_evidence, found


def _inside(law: Law, z: Array) -> float:
    """How many simulations were made where the posterior is: in the smallest region that holds 95 % of it."""
    if not isinstance(law, LikelihoodPosterior):
        return law.ess if isinstance(law, WeightedPoints) else float("nan")
    logs = law.log_likelihood(z) + law.target.log_prior(z)
    edge = np.quantile(law.population.likelihood + law.population.prior, 0.05)
    return float((logs >= edge).sum())


def _ignorant(ignorance: float) -> list[str]:
    if ignorance <= _IGNORANT:
        return []
    return [
        f"{ignorance:.0%} of the variance of some statistic is ignorance of its mean where the posterior is: the simulations "
        "there are too few; more of them, or rounds, would tell"
    ]

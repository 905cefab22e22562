r"""A likelihood learned from simulations, and the posterior under it.

`ConditionalDensity` learns the density p(x | theta) of what a simulator returns. As a function of theta at the observation
it is the likelihood that nobody could write down. The prior stays exact, and particles follow the posterior
(`_tempering.py`). Because it is a likelihood, it adds up over independent observations, serves any other observation and
prior, does without statistics that are missing, and does not ask what the simulated parameters were drawn from.

What the regressions do not know of their own mean is part of the density's variance, so that the posterior knows what the
likelihood does not know; where that is much of it, the posterior says so.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from .. import _check
from .._typing import Array
from ..densities import ConditionalDensity
from ..features import Recipe
from ..kernels import Gaussian, median_lengthscale
from ._epsilon import explain_constant, spreads
from ._law import Law, WeightedPoints
from ._particles import LogLikelihood, ParticlePosterior
from ._prior import Prior, even_coordinates
from ._problem import Inference, Method, Problem
from ._statistics import Chosen, Components, make_statistics
from ._tempering import FIRST, PARTICLES, Population, Target, temper

# Draws of a prior that can only be sampled.
_POOL = 20_000
# A posterior is flagged where more of a statistic's variance than this is ignorance of the regressions, ...
_IGNORANT = 0.2
# ... and where the observation is less probable than all but this share of so many simulations, by so many prior draws.
_UNLIKE, _JUDGES, _PRIOR_DRAWS = 0.01, 100, 400
# Draws that ignorance is averaged over.
_LOOKS = 500


class Likelihood:
    """The density of simulations given parameters, as a function of these.

    Args:
        prior: of the simulated parameters; tells what regressions see of them.
        density: fitted to what regressions see, and the statistics.
        statistics: of outputs, that the density is of.
        judges: outputs (t, p) of some simulations from the prior, and by how much (t,) learning has raised the logarithm of
            the density of each.
    """

    def __init__(
        self,
        prior: Prior,
        density: ConditionalDensity,
        statistics: Chosen | Components,
        judges: tuple[Array, Array],
    ):
        self.prior, self.density, self.statistics = prior, density, statistics
        self.judges, self.raised = judges

    def at(self, theta: Array) -> LikelihoodAt:
        """The likelihood at parameters (n, d), ready for many observations."""
        X = self.density._points(self.prior.regressors(theta))
        return LikelihoodAt(self, X, [column.at(X) for column in self.density.columns_])

    def log(self, theta: Array, observed: Array) -> Array:
        """Logarithm (n,) at parameters (n, d), of independent observations (k, p)."""
        return self.at(theta).log(observed)

    @functools.cached_property
    def _pool_cache(self) -> tuple[Array, LikelihoodAt]:
        """Coordinates that fill the prior, and the likelihood there: where particles start, whatever is observed."""
        z = even_coordinates(self.prior, FIRST)
        return z, self.at(self.prior.from_gaussian(z))

    def start(self, observed: Array) -> Population:
        """Draws of the prior with the logarithms of likelihood and prior."""
        z, there = self._pool_cache
        latent = self.prior.latent
        assert latent is not None
        logs = there.log(observed)
        return Population(0.0, z, logs, Target(latent, lambda z: logs).log_prior(z))

    def evidence(self, observed: Array, draws: int = _PRIOR_DRAWS) -> Array:
        """Logarithm (t,) of the probability of each of some observations (t, p) under the prior, by a few draws of it."""
        there = self._pool_cache[1].few(draws)
        return np.array([logsumexp(there.log(y[None])) for y in observed]) - np.log(draws)

    def judged(self, missing: Array) -> Array:
        """The same (t,) of the simulations that are kept to judge by, without those statistics (p,) that are missing.

        The likelihood has learned from them. By how much that has raised the density of each is known, and taken off.
        """
        return self.evidence(np.where(missing, np.nan, self.judges)) - self.raised


class LikelihoodAt:
    """The likelihood at some parameters, whose means and variances are known; a function of observations."""

    def __init__(self, learned: Likelihood, X: Array, moments: list[tuple[Array, Array, Array]]):
        self.learned, self.X, self.moments = learned, X, moments

    def few(self, n: int) -> LikelihoodAt:
        """At the first n of them."""
        return LikelihoodAt(self.learned, self.X[:n], [(m[:n], v[:n], s[:n]) for m, v, s in self.moments])

    def log(self, observed: Array) -> Array:
        """Logarithm (n,) of the likelihood of independent observations (k, p); what is NaN in one does not count."""
        return np.sum([self._log_of(y) for y in self.learned.statistics(observed)], axis=0)

    def _log_of(self, y: Array) -> Array:
        density, columns = self.learned.density, np.flatnonzero(~np.isnan(y))
        E, logs = np.empty((len(self.X), len(columns))), np.zeros(len(self.X))
        for k, j in enumerate(columns):
            transform, (mean, variance, _) = density.columns_[j].transform, self.moments[j]
            E[:, k] = (transform(y[[j]]) - mean) / np.sqrt(variance)
            logs += transform.log_slope(y[[j]]) - 0.5 * np.log(variance)
        return logs + density._marginal(columns).log_density(E, self.X) if len(columns) else logs

    @property
    def ignorance(self) -> Array:
        """The share (n,) of the variance that is ignorance of the mean, in the statistic that has the largest."""
        return np.max([share for _, _, share in self.moments], axis=0)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class LearnedLikelihood(Method):
    """The posterior under a likelihood that is learned from the simulations; the default.

    Args:
        particles: how many follow the posterior.
        target_transform, scale, dependence, shape, features: of `kb.ConditionalDensity`, which learns the density of the
            statistics given the parameters.
        reduce: whether outputs are reduced to principal components; by default where there are more than 32.
    """

    name: ClassVar[str] = "likelihood"
    particles: int = PARTICLES
    target_transform: Any = "auto"
    scale: str = "auto"
    dependence: str = "auto"
    shape: str = "auto"
    features: Recipe | None = None
    reduce: bool | None = None

    def infer(self, problem: Problem) -> Inference:
        parts = {
            "target_transform": self.target_transform,
            "scale": self.scale,
            "dependence": self.dependence,
            "shape": self.shape,
        }
        learned = learn(problem, self.reduce, features=self.features, **parts)
        if problem.power == 1.0 and isinstance(learned.statistics, Chosen) and not learned.statistics.kept.all():
            X = problem.outputs.reshape(len(problem.outputs), -1)
            explain_constant(X, problem.observed.reshape(-1, X.shape[1]), ~learned.statistics.kept, problem.statistics)
        found = conclude(learned, problem, int(problem.rng.integers(2**31)), self.particles)
        found.settings = {"particles": self.particles, "features": self.features, "reduce": self.reduce, **parts}
        return found


def learn(problem: Problem, reduce: bool | None = None, **settings: Any) -> Likelihood:
    """The likelihood that simulations tell."""
    reduce = _check.option(reduce, "reduce", (None, True, False))
    problem.refuse_few()
    problem = problem.only(problem.firsts())
    X = problem.outputs.reshape(len(problem.outputs), -1)
    statistics = make_statistics(X, reduce)
    S, seen = statistics(X), problem.prior.regressors(problem.theta)
    density = ConditionalDensity(random_state=int(problem.rng.integers(2**31)), **settings).fit(seen, S)
    rows = np.flatnonzero((True if problem.rounds is None else problem.rounds == 0) & np.isfinite(density.scores_))
    rows = rows[:: max(1, len(rows) // _JUDGES)][:_JUDGES]
    raised = np.maximum(density.log_density(S[rows], seen[rows]) - density.scores_[rows], 0.0)
    return Likelihood(problem.prior, density, statistics, (X[rows], raised))


def conclude(learned: Likelihood, problem: Problem, seed: int, particles: int = PARTICLES) -> Inference:
    """The posterior of a problem under a likelihood, and what is to be said of it."""
    observed = problem.observed.reshape(-1, int(np.prod(problem.outputs.shape[1:])))
    law, details = posterior(learned, problem.prior, observed, seed, particles, problem.power)
    problems: list[str] = []
    if problem.power == 1.0:
        details |= doubt(learned, law, observed, problem)
        problems = in_words(details)
    scales = _scales(learned, law, problem) if isinstance(learned.statistics, Chosen) else None
    return Inference(law, {}, _inside(law, problem.Z), problems, details, learned, scales)


def _scales(learned: Likelihood, law: Law, problem: Problem) -> dict[str, float]:
    """How far each statistic spreads where the posterior is, about its mean given the parameters, by its name."""
    X = problem.outputs.reshape(len(problem.outputs), -1)
    draws = law.sample(_LOOKS, np.random.default_rng(0))
    moments = learned.at(problem.prior.from_gaussian(draws)).moments
    shares = np.array([np.sqrt(variance.mean()) for _, variance, _ in moments])  # of the spread over the simulations
    names = learned.statistics.names(problem.statistics)
    return dict(zip(names, (spreads(learned.statistics(X)) * shares).tolist(), strict=True))


def posterior(
    likelihood: LogLikelihood, prior: Prior, observed: Array, seed: int, particles: int = PARTICLES, power: float = 1.0
) -> tuple[Law, dict[str, Any]]:
    """The posterior under a likelihood, or under it to some power, and how particles got there."""
    rng, latent = np.random.default_rng(seed), prior.latent
    if latent is None:
        z = prior.coordinates(_POOL, rng)
        logs = power * likelihood.log(prior.from_gaussian(z), observed)
        return WeightedPoints(z, np.exp(logs - logs.max()), Gaussian(float(median_lengthscale(z)))), {}
    target = Target(latent, lambda z: likelihood.log(prior.from_gaussian(z), observed))
    if isinstance(likelihood, Likelihood) and _same(prior, likelihood.prior):
        start = likelihood.start(observed)
    else:
        start = target.drawn(FIRST, rng)
    found = temper(target, start, rng, particles, power)
    law = ParticlePosterior(likelihood, prior, observed, found.population, found.log_evidence, seed)
    return law, {"log_evidence": found.log_evidence, "powers": found.powers, "acceptance": found.acceptance}


def _same(prior: Prior, other: Prior) -> bool:
    """Whether two priors are one, be it read from a file."""
    if prior is other or prior.names != other.names:
        return prior is other
    z = np.linspace(-2.0, 2.0, 9)[:, None] * np.ones(prior.dimension)
    return bool(np.array_equal(prior.from_gaussian(z), other.from_gaussian(z)))


# -------------------------------------------------------------------------------------------- what to say


def doubt(learned: Likelihood, law: Law, observed: Array, problem: Problem) -> dict[str, float]:
    """What can be seen of a posterior's faults from the simulations alone.

    `ignorance` is the share of a statistic's variance that is ignorance of its mean, where the posterior is. `p_value` is
    that of the hypothesis that the simulator made the observation: the share of simulations from the prior that are less
    probable than it, under the prior and the learned likelihood.
    """
    draws = law.sample(_LOOKS, np.random.default_rng(0))
    ignorance = float(learned.at(problem.prior.from_gaussian(draws)).ignorance.mean())
    if problem.proposal is not None:  # whose simulations are no draws from the prior
        return {"ignorance": ignorance}
    p_values = []
    for pattern in np.unique(np.isnan(observed), axis=0):  # observations that lack the same statistics
        probable = learned.judged(pattern)
        alike = observed[(np.isnan(observed) == pattern).all(1)]
        p_values += [(1 + int((probable <= e).sum())) / (1 + len(probable)) for e in learned.evidence(alike)]
    return {"ignorance": ignorance, "p_value": min(1.0, min(p_values) * len(observed))}


def in_words(details: dict[str, Any]) -> list[str]:
    """Sentences on what was seen."""
    out = []
    if details.get("p_value", 1.0) <= _UNLIKE:
        out.append(
            f"the observation is unlike the simulations (p = {details['p_value']:.2g}): nearly all of them are more "
            "probable; either the prior leaves out what happened, or the simulator cannot produce it"
        )
    if details.get("ignorance", 0.0) > _IGNORANT:
        out.append(
            f"{details['ignorance']:.0%} of the variance of a statistic is ignorance of its mean where the posterior is: "
            "there are too few simulations there; more of them, or rounds, would tell"
        )
    return out


def _inside(law: Law, z: Array) -> float:
    """How many simulations were made where the posterior is: in the smallest region that holds 95 % of it."""
    if not isinstance(law, ParticlePosterior):
        return law.ess if isinstance(law, WeightedPoints) else float("nan")
    logs = law.log_likelihood(z) + law.target.log_prior(z)
    edge = np.quantile(law.population.likelihood + law.population.prior, 0.05)
    return float((logs >= edge).sum())

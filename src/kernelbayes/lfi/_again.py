"""Other questions to a learned likelihood: another observation, another prior, some of the parameters known or left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._typing import Array
from .._warning import warn_user
from ..embeddings import PosteriorWarning
from ..kernels import Gaussian, median_lengthscale
from ._doubts import doubts
from ._law import WeightedPoints, within_reach
from ._likelihood import Likelihood, conclude, in_words, posterior
from ._observed import read_observation
from ._particles import LogLikelihood, ParticlePosterior
from ._prior import Prior, read_prior
from ._problem import Inference, Problem

if TYPE_CHECKING:
    from ._posterior import ParameterPosterior

# Draws that stand for a posterior of fewer parameters.
_DRAWS = 4000
# A posterior of which more than this lies where nothing was simulated is flagged.
_BEYOND = 0.02


@dataclasses.dataclass(frozen=True, eq=False)
class Section:
    """A likelihood as a function of some parameters, the others known.

    Attributes:
        likelihood: of all of them.
        theta: parameters (d,), of which the free ones play no part.
        free: which (d,) are free.
    """

    likelihood: Any
    theta: Array
    free: Array

    def log(self, theta: Array, observed: Array) -> Array:
        """Logarithm (n,) at the free parameters (n, c), of independent observations (k, p)."""
        whole = np.tile(self.theta, (len(theta), 1))
        whole[:, self.free] = theta
        return self.likelihood.log(whole, observed)


def likelihood_of(result: ParameterPosterior, what: str) -> LogLikelihood:
    """The likelihood of a posterior that has one."""
    if not isinstance(result.law, ParticlePosterior):
        only = f"this one is by {result.method!r}" if result.method != "likelihood" else "and a prior with a density"
        raise ValueError(f"{what} needs a posterior by method='likelihood': {only}")
    return result.law.likelihood


def at(result: ParameterPosterior, observed: Any, seed: int) -> ParameterPosterior:
    """The posterior given another observation, from the likelihood that is there."""
    likelihood = likelihood_of(result, "at")
    y = read_observation(observed, result.outputs.shape[1:], result.statistics, several=True, partly=True)
    problem = _problem(result, result.prior, y)
    if isinstance(likelihood, Likelihood):
        found = conclude(likelihood, problem, seed)
        return _answer(result, found, problem, (*doubts(problem, found, drawn=True), *found.problems))
    return _asked(result, likelihood, result.prior, y, seed)


def under(result: ParameterPosterior, prior: Any, seed: int) -> ParameterPosterior:
    """The posterior under another prior over the same parameters."""
    likelihood, prior = likelihood_of(result, "under"), read_prior(prior)
    if prior.names != result.names:
        raise ValueError(f"prior has parameters {prior.names} where the posterior has {result.names}")
    if prior.latent is None:
        raise ValueError("under needs a prior with a density; this one can only be sampled")
    return _asked(result, likelihood, prior, result.observed, seed)


def conditional(result: ParameterPosterior, known: Mapping[str, float], seed: int) -> ParameterPosterior:
    """The posterior of the other parameters, where some are known."""
    likelihood = likelihood_of(result, "conditional")
    free = ~_chosen(result, tuple(known), "conditional")
    if free.all() or not free.any():
        raise ValueError(f"conditional needs values of some of the parameters, but not all: {', '.join(result.names)}")
    theta = np.array([_check.scalar(known[n], n) if n in known else 0.0 for n in result.names])
    inside = result.prior.only(~free).contains(theta[~free][None])
    if not inside[0]:
        raise ValueError(f"the prior rules out {', '.join(f'{n} = {known[n]:g}' for n in known)}")
    section = Section(likelihood, theta, free)
    return _asked(result, section, result.prior.only(free), result.observed, seed, result.parameters[:, free])


def marginal(result: ParameterPosterior, names: tuple[str, ...]) -> ParameterPosterior:
    """The posterior of some of the parameters, whatever the others are."""
    free = _chosen(result, names, "marginal")
    if not free.any():
        raise ValueError(f"marginal needs names of parameters: {', '.join(result.names)}")
    prior = result.prior.only(free)
    z = prior.to_gaussian(result.sample(_DRAWS, result._seed)[:, free])
    law = WeightedPoints(z, np.full(len(z), 1.0 / len(z)), Gaussian(float(median_lengthscale(z))))
    found = Inference(law, dict(result.settings), result.ess, [], dict(result.details))
    return _answer(result, found, _problem(result, prior, result.observed, free), result.problems, warn=False)


def _chosen(result: ParameterPosterior, names: tuple[str, ...], what: str) -> Array:
    for name in names:
        if name not in result.names:
            raise ValueError(f"{what}: there is no parameter {name!r}, but {', '.join(result.names)}")
    return np.array([name in names for name in result.names])


def _problem(result: ParameterPosterior, prior: Prior, observed: Array, free: Array | None = None) -> Problem:
    theta = result.parameters if free is None else result.parameters[:, free]
    rng = np.random.default_rng(result._seed)
    rounds = (np.arange(len(theta)) >= result.details.get("first_round", len(theta))).astype(int)
    return Problem(prior, observed, theta, result.outputs, result.statistics, rng, rounds=rounds)


def _asked(
    result: ParameterPosterior,
    likelihood: LogLikelihood,
    prior: Prior,
    observed: Array,
    seed: int,
    simulated: Array | None = None,
) -> ParameterPosterior:
    law, details = posterior(likelihood, prior, observed.reshape(-1, int(np.prod(result.outputs.shape[1:]))), seed)
    simulated = result.parameters if simulated is None else simulated
    draws = prior.from_gaussian(law.sample(_DRAWS // 4, np.random.default_rng(seed)))
    beyond = 1.0 - float(within_reach(draws / simulated.std(0), simulated / simulated.std(0)).mean())
    problems = in_words(details)
    if beyond > _BEYOND:
        problems.append(
            f"{beyond:.0%} of this posterior lies where nothing was simulated: there it is an extrapolation"
        )
    found = Inference(law, dict(result.settings), result.ess, problems, details)
    problem = dataclasses.replace(_problem(result, prior, observed), theta=simulated)
    return _answer(result, found, problem, tuple(problems))


def _answer(
    result: ParameterPosterior, found: Inference, problem: Problem, problems: tuple[str, ...], *, warn: bool = True
) -> ParameterPosterior:
    from ._posterior import ParameterPosterior

    if problems and warn:
        warn_user("\n".join(problems), PosteriorWarning)
    out = ParameterPosterior(
        found.law,
        problem.prior,
        problem.observed,
        problem.theta,
        problem.outputs,
        method=result.method,
        settings=found.settings or dict(result.settings),
        statistics=problem.statistics,
        ess=found.ess,
        problems=problems,
        scales=found.scales,
        details=found.details | {"first_round": result.details.get("first_round", len(problem.theta))},
        failures=result.failures,
        seed=result._seed,
    )
    if problem.prior.names == result.names:
        out._simulator, out._model = getattr(result, "_simulator", None), getattr(result, "_model", None)
    return out

r"""Approximate Bayesian computation that chooses where to simulate, for comparison; as compared in Hsu (2019), 4.8 and 4.9.

| method | paper | here |
|---|---|---|
| MCMC-ABC | Marjoram et al. (2003) | `MarkovABC` |
| SMC-ABC | Sisson et al. (2007), Toni et al. (2009), Beaumont et al. (2009) | `SequentialABC` |
| SL-ABC, ASL-ABC | Wood (2010), Meeds and Welling (2014) | in `_synthetic.py` |
| GPS-ABC | Meeds and Welling (2014) | in `_surrogate.py` |

The target is the soft posterior :math:`p_\epsilon(\theta|y) \propto E[\kappa_\epsilon(y, X)|\theta]\, p(\theta)` of (4.2).
Statistics are in units of their spread over the first simulations, and so is epsilon; all of it happens in Gaussian
coordinates (section 4.7).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import _check
from .._linalg import cholesky
from .._typing import Array
from ..embeddings._moments import covariances
from ..embeddings._weighted import effective_sizes
from ._importance import systematic
from ._law import Components
from ._problem import Inference, Method, OutOfBudget, Problem
from ._walk import FEW_DRAWS, Bench, concluded, counted, points, read_share, walk

# Epsilon, unless given: the share of the first runs within it.
_NEAR, _SMALLEST = 0.1, 1e-3
# A population, relative to the root of the runs before it: large ones leave no budget for a small epsilon, small ones lose
# the width of the posterior. By the runs there were and not by the budget, so that a larger budget goes on where a smaller
# one ended. Found on normal posteriors in 1, 2 and 4 dimensions with 300 to 3,000 runs.
_POPULATION, _LEAST, _PER_PARAMETER, _MOST = 2.5, 25, 10, 1000
# The share of proposals that follow the prior: no weight is more than its inverse, however few the survivors are.
_DEFENSIVE = 0.1


class _Seen(NamedTuple):
    """A place's estimate of the likelihood, and how near its runs came."""

    log: float
    nearest: float

    @property
    def possible(self) -> bool:
        """Whether the likelihood is positive."""
        return self.log > -np.inf


@dataclasses.dataclass(frozen=True)
class _SoftLikelihood:
    """The average of the epsilon-kernel over `repeats` runs; a run that failed counts as zero."""

    bench: Bench
    rng: np.random.Generator
    kernel: str
    epsilon: float
    repeats: int

    def state(self, z: Array) -> _Seen:
        squares = self.bench.squares(self.bench.repeated(z, self.repeats))
        if self.kernel == "gaussian":
            exponents = -0.5 * squares / self.epsilon**2
        else:
            exponents = np.where(squares <= self.epsilon**2, 0.0, -np.inf)
        nearest = float(squares.min(initial=np.inf))
        top = float(exponents.max(initial=-np.inf))
        if top == -np.inf:
            return _Seen(-np.inf, nearest)
        return _Seen(top + float(np.log(np.exp(exponents - top).sum() / self.repeats)), nearest)

    def accepts(self, proposed: _Seen, current: _Seen, log_prior: float) -> bool:
        if not current.possible:  # downhill until epsilon is reached
            return proposed.nearest <= current.nearest
        return bool(np.log(self.rng.uniform()) < proposed.log - current.log + log_prior)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class MarkovABC(Method):
    """Markov chain Monte Carlo without likelihoods: a random walk that goes where simulations resemble the observation.

    Marjoram et al. (2003); with several runs at each place the pseudo-marginal form of it.

    Args:
        epsilon: scale of the epsilon-kernel, in units of the statistics' spread; by default within it lie 10 % of the first
            simulations.
        kernel: "gaussian", `N(y; x, epsilon^2 I)`, or "indicator", of a distance below epsilon.
        repeats: simulations at each place (S).
        step: standard deviation of a proposal, as a share of the prior's (0.1 in Hsu's section 4.9.2); by default it adapts.
        burn: share of the chain that is left out.
        steps: length of the chain; by default what the budget allows.
        standardise: False takes statistics, and epsilon, in their own units.
    """

    name: ClassVar[str] = "mcmc-abc"
    seeks: ClassVar[bool] = True
    epsilon: float | None = None
    kernel: str = "gaussian"
    repeats: int = 1
    step: Any = None
    burn: float = 0.2
    steps: int | None = None
    standardise: bool = True

    def infer(self, problem: Problem) -> Inference:
        kernel = _check.option(self.kernel, "kernel", ("gaussian", "indicator"))
        repeats, burn = _check.count(self.repeats, "repeats"), read_share(self.burn, "burn")
        steps = None if self.steps is None else _check.count(self.steps, "steps")
        bench = Bench(problem, self.standardise)
        chosen = _default_epsilon(bench, kernel) if self.epsilon is None else _check.positive(self.epsilon, "epsilon")
        target = _SoftLikelihood(bench, problem.rng, kernel, chosen, repeats)
        found = walk(problem, bench, target, self.step, steps)
        if not len(found.places) and bench.used >= 2 * repeats:
            raise ValueError(
                f"epsilon={chosen:g} was not reached by any of {bench.used} simulations; a larger one is needed"
            )
        settings = {
            "epsilon": chosen,
            "kernel": kernel,
            "repeats": repeats,
            "steps": steps,
            "standardise": self.standardise,
        }
        return concluded(found, burn, bench, settings)


def _default_epsilon(bench: Bench, kernel: str) -> float:
    """A Gaussian kernel reaches as far in each statistic, an indicator in all of them together."""
    squared = float(np.quantile(bench.squares(bench.X), _NEAR))
    scale = np.sqrt(squared / bench.X.shape[1]) if kernel == "gaussian" else np.sqrt(squared)
    return max(float(scale), _SMALLEST)


# ---------------------------------------------------------------------------------------- sequential Monte Carlo


class _Tries(NamedTuple):
    """Places (n, d) that were tried, prior density over proposal density (n,), distances from the observation (n,)."""

    z: Array
    weights: Array
    distances: Array

    def within(self, epsilon: float) -> _Tries:
        """Those that came near enough."""
        inside = (self.distances <= epsilon) & np.isfinite(self.distances)  # infinite: the run failed
        return _Tries(self.z[inside], self.weights[inside], self.distances[inside])

    def __add__(self, other: Any) -> _Tries:
        """Both: their weights estimate the same integral, each from its own number of tries."""
        return _Tries(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SequentialABC(Method):
    """Sequential Monte Carlo: populations of parameters ever nearer to the observation, each proposed from the last.

    The first population are the first simulations, by the prior. Each following one is drawn from normals about those of
    the last that are within the new epsilon, with twice their weighted covariance, and weighted by prior over proposal:
    Toni et al. (2009), Beaumont et al. (2009), whose proposal is that of Sisson et al. (2007) put right. That the centres
    are within the new epsilon already is the better choice of Filippi et al. (2013); a tenth of the proposals are by the
    prior, which keeps the weights bounded.

    Args:
        particles: how many make a population; by default 2.5 times the root of the number of runs before it, at least 25
            and ten for each parameter, at most 1,000.
        shrink: the next epsilon is this quantile of the distances in the population.
        epsilon: the last epsilon, in units of the statistics' spread: once a population is within it, that is the
            posterior. By default the budget decides.
        populations: how many after the first; by default as many as the budget allows.
        standardise: False takes statistics, and epsilon, in their own units.
    """

    name: ClassVar[str] = "smc-abc"
    seeks: ClassVar[bool] = True
    particles: int | None = None
    shrink: float = 0.3
    epsilon: float | None = None
    populations: int | None = None
    standardise: bool = True

    def infer(self, problem: Problem) -> Inference:
        bench = Bench(problem, self.standardise)
        particles = None if self.particles is None else _check.count(self.particles, "particles", at_least=5)
        shrink = _check.scalar(self.shrink, "shrink")
        if not 0 < shrink < 1:
            raise ValueError(f"shrink must lie between 0 and 1, got {shrink:g}")
        populations = None if self.populations is None else _check.count(self.populations, "populations")
        wanted = None if self.epsilon is None else _check.positive(self.epsilon, "epsilon")
        history = _History(_Tries(bench.Z, np.ones(len(bench.Z)), np.sqrt(bench.squares(bench.X))))
        with counted(problem, bench.left, "runs") as bar:
            for _ in itertools.count() if populations is None else range(populations):
                size = _size(bench) if particles is None else particles
                if history.complete(wanted) or not _population(problem, bench, history, size, shrink, wanted, bar):
                    break
        settings = {"particles": particles, "shrink": shrink, "epsilon": wanted, "populations": populations}
        return _of_populations(history, bench, {**settings, "standardise": self.standardise})


def _size(bench: Bench) -> int:
    least = max(_LEAST, _PER_PARAMETER * bench.Z.shape[1])
    return int(np.clip(_POPULATION * np.sqrt(len(bench.Z) + bench.used), least, _MOST))


class _History:
    """The last population that was completed, and what there is of the next."""

    def __init__(self, first: _Tries):
        self.last, self.epsilon = first, np.inf
        self.epsilons: list[float] = []
        self.rates: list[float] = []

    def complete(self, wanted: float | None) -> bool:
        """Whether what was wanted is reached."""
        return wanted is not None and self.epsilon <= wanted

    def next(self, tries: _Tries, epsilon: float) -> None:
        """A population was completed."""
        self.last, self.epsilon = tries, epsilon
        self.epsilons.append(epsilon)
        self.rates.append(float((tries.distances <= epsilon).mean()))


def _population(
    problem: Problem,
    bench: Bench,
    history: _History,
    particles: int,
    shrink: float,
    wanted: float | None,
    bar: Any,
) -> bool:
    """Draw the next population; False if the budget ended it."""
    before = history.last.within(history.epsilon)
    epsilon = float(np.quantile(before.distances, shrink))
    epsilon = epsilon if wanted is None else max(epsilon, wanted)
    tries = None
    for z, weights in _proposals(problem, bench, before.within(epsilon), max(2, particles // 2)):
        left = bench.left
        z = z if left is None else z[:left]  # drawn in full all the same: a larger budget goes on from here
        try:
            if not len(z):
                raise OutOfBudget
            X = bench(z)
        except OutOfBudget:
            break
        bar.update(len(z))
        distances = np.sqrt(np.nan_to_num(bench.squares(X), nan=np.inf))
        new = _Tries(z, weights[: len(z)], distances)
        tries = new if tries is None else tries + new
        if (tries.distances <= epsilon).sum() >= particles:
            history.next(tries, epsilon)
            return True
    if tries is not None:
        if (tries.distances <= epsilon).sum() >= particles / 2:  # not complete, but enough
            history.next(tries, epsilon)
        else:  # what was tried counts where it is within the epsilon before
            history.last = history.last + tries
    return False


def _proposals(problem: Problem, bench: Bench, centres: _Tries, size: int) -> Iterator[tuple[Array, Array]]:
    """Batches of places (size, d) and their weights (size,) without end."""
    rng, d = problem.rng, centres.z.shape[1]
    w = centres.weights / centres.weights.sum()
    # a floor of 1 % of the prior's scale, so that a single survivor still has surroundings
    covariance = 2.0 * covariances(centres.z, w[None])[0] + 1e-4 * bench.latent.covariance()
    factor = np.asarray(cholesky(covariance, "the covariance of the population"))
    mixture = Components(w, centres.z, covariance)
    while True:
        near = centres.z[systematic(w, size, rng)] + rng.standard_normal((size, d)) @ factor.T
        by_prior = rng.uniform(size=(size, 1)) < _DEFENSIVE
        z = np.where(by_prior, bench.latent.sample(size, rng), near)
        z = z[rng.permutation(size)]  # so that a batch cut short is a fair one
        prior = bench.latent.density(z)
        yield z, prior / ((1.0 - _DEFENSIVE) * mixture.values(z) + _DEFENSIVE * prior)


def _of_populations(history: _History, bench: Bench, settings: dict[str, Any]) -> Inference:
    final = history.last.within(history.epsilon)
    law = points(final.z, final.weights)
    ess = float(effective_sizes(final.weights))
    details = {
        "acceptance": history.rates[-1] if history.rates else 1.0,
        "acceptances": np.array(history.rates),
        "epsilons": np.array(history.epsilons),
        "simulations": bench.used,
        "particles": len(final.z),
    }
    said = []
    if not history.epsilons:
        said.append("the budget ended before the first population did: the posterior is that of the prior's draws")
    elif settings["epsilon"] is not None and not history.complete(settings["epsilon"]):
        said.append(
            f"epsilon = {settings['epsilon']:.3g} was not reached: the budget ended at {history.epsilon:.3g}, and the "
            "posterior is wider than what was asked for"
        )
    if ess < FEW_DRAWS:
        said.append(f"the last population is worth about {ess:.0f} independent draws; more simulations would tell")
    return Inference(law, settings, ess, said, details)

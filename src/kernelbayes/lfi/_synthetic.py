r"""Synthetic likelihoods: statistics taken as normal, with moments from simulations at each place.

| paper | here |
|---|---|
| Wood (2010), :math:`N(y; \mu_\theta, \Sigma_\theta + \epsilon^2 I)` | `SyntheticLikelihood` |
| Meeds and Welling (2014), section 3, ASL-ABC | `AdaptiveSynthetic` |
| the same, section 4, GPS-ABC | in `_surrogate.py` |
| S or :math:`S_0`, :math:`\Delta S`, :math:`\xi`, m | `repeats`, `extra`, `error`, `draws` |

An estimated likelihood gives an uncertain probability of acceptance :math:`\alpha`, of which there are m draws. With their
median :math:`\tau` as the threshold for :math:`u \sim U(0, 1)`, the probability of a wrong decision is

.. math:: \int_0^\tau P(\alpha < u)\, du + \int_\tau^1 P(\alpha \ge u)\, du = E|\alpha - \tau|.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._linalg import cholesky, solve_lower
from .._typing import Array
from ._problem import Inference, Method, Problem
from ._walk import Bench, concluded, read_share, walk

# A share of uncertain decisions above which the user is told.
_UNCERTAIN = 0.1


class _Moments:
    """Statistics (k, q) of the runs at one place, of `tried` runs in all.

    Attributes:
        mean: (q,).
        factor: of the covariance with epsilon^2 added.
        possible: whether enough runs finished to have a covariance.
    """

    def __init__(self, X: Array, tried: int, epsilon: float):
        self.X, self.tried = X, tried
        self.possible = len(X) >= max(2, tried // 2)
        if self.possible:
            self.mean = X.mean(0)
            centred = X - self.mean
            self.roots = centred / np.sqrt(len(X) - 1)  # its products are the covariance
            self.factor = np.asarray(
                cholesky(self.roots.T @ self.roots, "the covariance of the statistics", epsilon**2)
            )

    def log_likelihood(self, observed: Array, means: Array) -> Array:
        """Log densities (m,) of the observation about means (m, q), and that a run finishes at all."""
        white = solve_lower(self.factor, (observed - means).T)
        finished = np.log(len(self.X) / self.tried)
        return -0.5 * (white**2).sum(0) - np.log(np.diagonal(self.factor)).sum() + finished

    def draws(self, m: int, rng: np.random.Generator) -> Array:
        """Draws (m, q) of the mean, as uncertain as an average of these runs: `N(mean, covariance / S)`."""
        return self.mean + rng.standard_normal((m, len(self.X))) @ self.roots / np.sqrt(len(self.X))


@dataclasses.dataclass
class _Synthetic:
    """Metropolis-Hastings with the moments taken at their word."""

    bench: Bench
    rng: np.random.Generator
    epsilon: float
    repeats: int

    def state(self, z: Array) -> Any:
        return _Moments(self.bench.repeated(z, self.repeats), self.repeats, self.epsilon)

    def accepts(self, proposed: Any, current: Any, log_prior: float) -> bool:
        if not (proposed.possible and current.possible):
            return proposed.possible
        new, old = (s.log_likelihood(self.bench.observed, s.mean[None])[0] for s in (proposed, current))
        return bool(np.log(self.rng.uniform()) < new - old + log_prior)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SyntheticLikelihood(Method):
    """Synthetic likelihood: a random walk under a normal density fitted to the runs at each place; Wood (2010).

    Args:
        epsilon: its square is added to the statistics' variances, in units of their spread over the first simulations. The
            smaller, the less the posterior is widened, but with few repeats, or statistics that are counts, it is what
            keeps the covariance apart from zero. By default 0.1 with three times as many repeats as statistics or more,
            else 0.5, as in Hsu (2019), section 4.9.2.
        repeats: simulations at each place (S).
        step: standard deviation of a proposal, as a share of the prior's; by default it adapts.
        burn: share of the chain that is left out.
        steps: length of the chain; by default what the budget allows.
        standardise: False takes statistics, and epsilon, in their own units.
    """

    name: ClassVar[str] = "synthetic"
    seeks: ClassVar[bool] = True
    epsilon: float | None = None
    repeats: int = 10
    step: Any = None
    burn: float = 0.2
    steps: int | None = None
    standardise: bool = True

    def infer(self, problem: Problem) -> Inference:
        burn = read_share(self.burn, "burn")
        repeats = _check.count(self.repeats, "repeats", at_least=2)
        steps = None if self.steps is None else _check.count(self.steps, "steps")
        bench = Bench(problem, self.standardise)
        epsilon = _epsilon(bench, repeats) if self.epsilon is None else _check.positive(self.epsilon, "epsilon")
        found = walk(problem, bench, _Synthetic(bench, problem.rng, epsilon, repeats), self.step, steps)
        settings = {"epsilon": epsilon, "repeats": repeats, "steps": steps, "standardise": self.standardise}
        return concluded(found, burn, bench, settings)


def _epsilon(bench: Bench, repeats: int) -> float:
    return 0.1 if repeats >= 3 * len(bench.observed) else 0.5


# ------------------------------------------------------------------------------------------------ as sure as needed


def decision_error(alphas: Array) -> float:
    """The probability of a wrong decision when accepting below the median of these probabilities (m,) of acceptance."""
    return float(np.abs(alphas - np.median(alphas)).mean())


@dataclasses.dataclass(kw_only=True)
class Deciding:
    """What Metropolis-Hastings under an uncertain likelihood needs, and how it decides."""

    bench: Bench
    rng: np.random.Generator
    epsilon: float
    extra: int
    error: float
    draws: int
    most: int
    undecided: int = 0
    decisions: int = 0

    def decided(self, alphas: Array, sure: bool) -> bool:
        """Whether to accept, by probabilities of acceptance (m,); counts decisions, and those that are not sure."""
        self.decisions += 1
        self.undecided += not sure
        return bool(self.rng.uniform() <= np.median(alphas))


@dataclasses.dataclass(kw_only=True)
class _Adaptive(Deciding):
    """Metropolis-Hastings that simulates until a decision is unlikely to be wrong."""

    repeats: int

    def state(self, z: Array) -> _Place:
        return _Place(z, _Moments(self.bench.repeated(z, self.repeats), self.repeats, self.epsilon))

    def accepts(self, proposed: _Place, current: _Place, log_prior: float) -> bool:
        if not (proposed.possible and current.possible):
            return proposed.possible
        while True:
            alphas = self._alphas(proposed.moments, current.moments, log_prior)
            sure = decision_error(alphas) <= self.error
            open_places = [p for p in (proposed, current) if p.moments.tried < self.most]
            if sure or not open_places:
                break
            self._simulate(open_places)
            if not (proposed.possible and current.possible):  # of the further runs, too many failed
                return proposed.possible
        return self.decided(alphas, sure)

    def _alphas(self, new: _Moments, old: _Moments, log_prior: float) -> Array:
        logs = [s.log_likelihood(self.bench.observed, s.draws(self.draws, self.rng)) for s in (new, old)]
        return np.exp(np.minimum(logs[0] - logs[1] + log_prior, 0.0))

    def _simulate(self, places: list[_Place]) -> None:
        """Further runs at some places, in one go."""
        X = self.bench(np.repeat([p.z for p in places], self.extra, axis=0))
        for place, part in zip(places, np.split(X, len(places)), strict=True):
            both = np.concatenate([place.moments.X, part[np.isfinite(part).all(1)]])
            place.moments = _Moments(both, place.moments.tried + self.extra, self.epsilon)


@dataclasses.dataclass
class _Place:
    """Where, and what was simulated there so far."""

    z: Array
    moments: _Moments

    @property
    def possible(self) -> bool:
        """Whether enough runs finished."""
        return self.moments.possible


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class AdaptiveSynthetic(Method):
    """Synthetic likelihood that simulates more where a decision could be wrong; Meeds and Welling (2014), ASL-ABC.

    Args:
        epsilon: as in the synthetic likelihood.
        repeats: simulations at each place to begin with (S0).
        extra: how many are added there, and at the place the chain is at, as long as needed (Delta S).
        error: probability of a wrong decision below which it is taken (xi; 0.3 in Hsu's section 4.9.2).
        draws: of the moments, behind that probability (m).
        most: simulations at one place, by default ten times `repeats`; then the decision is taken all the same.
        step, burn, steps, standardise: as in the synthetic likelihood.
    """

    name: ClassVar[str] = "adaptive-synthetic"
    seeks: ClassVar[bool] = True
    epsilon: float | None = None
    repeats: int = 10
    extra: int = 10
    error: float = 0.1
    draws: int = 50
    most: int | None = None
    step: Any = None
    burn: float = 0.2
    steps: int | None = None
    standardise: bool = True

    def infer(self, problem: Problem) -> Inference:
        burn = read_share(self.burn, "burn")
        repeats, extra = _check.count(self.repeats, "repeats", at_least=2), _check.count(self.extra, "extra")
        error, draws = read_error(self.error), _check.count(self.draws, "draws", at_least=2)
        most = 10 * repeats if self.most is None else _check.count(self.most, "most", at_least=repeats)
        steps = None if self.steps is None else _check.count(self.steps, "steps")
        bench = Bench(problem, self.standardise)
        epsilon = _epsilon(bench, repeats) if self.epsilon is None else _check.positive(self.epsilon, "epsilon")
        settings = {
            "epsilon": epsilon,
            "repeats": repeats,
            "extra": extra,
            "error": error,
            "draws": draws,
            "most": most,
        }
        target = _Adaptive(bench=bench, rng=problem.rng, **settings)
        found = walk(problem, bench, target, self.step, steps)
        inference = concluded(found, burn, bench, {**settings, "steps": steps, "standardise": self.standardise})
        return with_uncertainty(inference, target, f"{most} simulations at each place")


def read_error(value: Any) -> float:
    """A probability of a wrong decision."""
    number = _check.scalar(value, "error")
    if not 0 < number <= 0.5:
        raise ValueError(f"error is the probability of a wrong decision, above 0 and at most 0.5, got {number:g}")
    return number


def with_uncertainty(inference: Inference, target: Deciding, limit: str) -> Inference:
    """Add how many decisions were taken without being sure."""
    share = target.undecided / max(1, target.decisions)
    inference.details["uncertain_decisions"] = share
    if share > _UNCERTAIN:
        inference.problems.append(
            f"{share:.0%} of the steps were decided with a larger error than allowed, for want of {limit}"
        )
    return inference

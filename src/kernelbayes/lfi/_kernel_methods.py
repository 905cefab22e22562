"""Other ways to a posterior from the same simulations, for comparison: kernel ABC, double kernel ABC, kernel Bayes' rule.

Nakagome et al. (2013), Park et al. (2016), Fukumizu et al. (2013); as compared in Hsu (2019), sections 4.8 and 4.9.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._typing import Array
from ..bayes import KernelBayesRule
from ..conditional import ConditionalEmbedding
from ..embeddings import PosteriorWarning
from ..embeddings._weighted import effective_sizes
from ..kernels import Gaussian, median_lengthscale
from ._epsilon import MMDEpsilon
from ._law import WeightedPoints
from ._problem import Inference, Method, Problem

_UNLIKE = "under the kernel of the statistics the observation resembles no simulation: the posterior is their prior"


def _median_kernel(points: Array) -> Gaussian:
    return Gaussian(median_lengthscale(points))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class KernelABC(Method):
    """Kernel ABC: the conditional embedding of the parameters given the statistics, at the observation.

    Nakagome et al. (2013).

    Args:
        epsilon_kernel: how outputs are compared, as of `KELFI`.
        learn: "leave-one-out" chooses lengthscale and regulariser as `kb.ConditionalEmbedding` does; "median" takes the
            median distance between statistics, with reg=1e-4 unless given.
        reg: the regulariser.
    """

    name: ClassVar[str] = "k-abc"
    epsilon_kernel: Any = "gaussian"
    learn: str | None = "leave-one-out"
    reg: float | None = None

    def infer(self, problem: Problem) -> Inference:
        learn = _check.option(self.learn, "learn", ("leave-one-out", "median"))
        if problem.ratio() is not None:
            raise ValueError(
                "kernel ABC takes the simulated parameters for draws of the prior: no proposal, and one round"
            )
        comparison = problem.compare(self.epsilon_kernel)
        median = learn == "median"
        model = ConditionalEmbedding(
            _median_kernel(comparison.left) if median else None,
            reg=1e-4 if self.reg is None and median else self.reg,
            intercept=not median,
            ard=False,
            random_state=int(problem.rng.integers(2**31)),
        ).fit(comparison.left, problem.Z, problem.groups())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PosteriorWarning)
            weights = np.asarray(model.embed(comparison.observed).weights)
        said = [_UNLIKE] if any(issubclass(w.category, PosteriorWarning) for w in caught) else []
        kernel = _median_kernel(problem.Z)
        settings = {"epsilon_kernel": self.epsilon_kernel, "learn": learn, "reg": float(model.reg_)}
        lengthscale = np.asarray(model.kernel_.lengthscale) if isinstance(model.kernel_, Gaussian) else None
        law = WeightedPoints(problem.Z, _positive_total(weights), kernel)
        return Inference(law, settings, law.ess, said, {"lengthscale": lengthscale})


def _under_the_prior(problem: Problem) -> Array:
    """Weights (m,) that make parameters from a proposal or from later rounds count as draws of the prior would."""
    ratio = problem.ratio()
    return np.ones(len(problem.theta)) if ratio is None else ratio


def _positive_total(weights: Array) -> Array:
    """Weights whose sum is too small to divide by say nothing: they are refused by name."""
    if weights.sum() <= 1e-6 * np.abs(weights).sum():
        raise ValueError(
            "the weights of the posterior cancel: the observation is too far from the simulations for this method"
        )
    return weights


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class KernelBayes(Method):
    """Kernel Bayes' rule: simulations are the likelihood, draws the prior; any rule of `kb.KernelBayesRule`.

    Args:
        rule: which one.
        epsilon_kernel: how outputs are compared, as of `KELFI`.
        learn: "leave-one-out", or "median", which takes median distances for both kernels, with reg=1e-6 and prior_reg=1e-4
            unless given.
        reg, prior_reg: regularisers of `kb.KernelBayesRule`.
        prior_draws: draws of the prior.
    """

    name: ClassVar[str] = "kbr"
    rule: str = "kbr"
    epsilon_kernel: Any = "gaussian"
    learn: str | None = "leave-one-out"
    reg: float | None = None
    prior_reg: float | None = None
    prior_draws: int = 1000

    def infer(self, problem: Problem) -> Inference:
        learn = _check.option(self.learn, "learn", ("leave-one-out", "median"))
        comparison, Z = problem.compare(self.epsilon_kernel), problem.Z
        median = learn == "median"
        model = KernelBayesRule(
            self.rule,
            _median_kernel(comparison.left) if median else None,
            _median_kernel(Z) if median else None,
            reg=1e-6 if self.reg is None and median else self.reg,
            prior_reg=1e-4 if self.prior_reg is None and median else self.prior_reg,
            random_state=int(problem.rng.integers(2**31)),
        )
        draws = problem.prior.coordinates(_check.count(self.prior_draws, "prior_draws", at_least=10), problem.rng)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", PosteriorWarning)
            posterior = model.fit(comparison.left, Z).posterior(comparison.observed, draws)
        kernel = posterior.kernel if isinstance(posterior.kernel, Gaussian) else _median_kernel(Z)
        law = WeightedPoints(np.asarray(posterior.points), _positive_total(np.asarray(posterior.weights)), kernel)
        said = [str(w.message) for w in caught if issubclass(w.category, PosteriorWarning)]
        settings = {
            "rule": self.rule,
            "epsilon_kernel": self.epsilon_kernel,
            "learn": learn,
            "reg": float(posterior.health.reg),
        }
        settings |= {"prior_reg": self.prior_reg, "prior_draws": self.prior_draws}
        return Inference(law, settings, law.ess, said)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class DoubleKernelABC(Method):
    """Double kernel ABC: weights `exp(-MMD^2 / epsilon)` of the data sets that were simulated.

    Park et al. (2016), Algorithm 1. Outputs are data sets (runs, values) or (runs, values, columns); statistics of a run
    count as one data set.

    Args:
        kernel: on values, by default a Gaussian one.
        epsilon: by default the squared discrepancy that the share `accept` of the runs stays below.
        accept: that share.
    """

    name: ClassVar[str] = "k2-abc"
    kernel: Any = None
    epsilon: float | None = None
    accept: float = 0.1

    def infer(self, problem: Problem) -> Inference:
        outputs, observed = problem.outputs, problem.observed
        if not 0 < _check.scalar(self.accept, "accept") <= 1:
            raise ValueError(f"accept is a share of the runs, between 0 and 1, got {self.accept:g}")
        if outputs.ndim == 1 or (outputs.ndim == 2 and outputs.shape[1] < 2):
            outputs, observed = (
                np.repeat(outputs.reshape(len(outputs), 1), 2, axis=1),
                np.repeat(observed.reshape(1), 2),
            )
        comparison = MMDEpsilon(self.kernel).bind(outputs, observed, problem.statistics)
        squared = comparison.from_observed()[:, 0] * comparison.units[0] ** 2
        chosen = (
            float(np.quantile(squared, self.accept))
            if self.epsilon is None
            else _check.positive(self.epsilon, "epsilon")
        )
        chosen = chosen if chosen > 0 else float(squared[squared > 0].min(initial=np.inf))
        weights = np.exp(-(squared - squared.min()) / chosen) * _under_the_prior(problem)
        law = WeightedPoints(problem.Z, weights, _median_kernel(problem.Z))
        return Inference(law, {"kernel": self.kernel, "epsilon": chosen}, law.ess)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Rejection(Method):
    """Rejection ABC: the parameters whose simulations are nearest to the observation, all alike.

    Pritchard et al. (1999).

    Args:
        epsilon_kernel: how outputs are compared, as of `KELFI`.
        accept: the share that is kept; by default 1 %, at least 20 runs.
        epsilon: instead, the distance of standardised statistics within which they are kept.
    """

    name: ClassVar[str] = "rejection"
    epsilon_kernel: Any = "gaussian"
    accept: float | None = None
    epsilon: float | None = None

    def infer(self, problem: Problem) -> Inference:
        comparison = problem.compare(self.epsilon_kernel)
        distance = np.sqrt(comparison.from_observed().sum(-1))
        if self.epsilon is not None:
            chosen = _check.positive(self.epsilon, "epsilon")
        else:
            m = len(distance)
            share = min(1.0, max(0.01, 20 / m)) if self.accept is None else _check.positive(self.accept, "accept")
            if share > 1:
                raise ValueError(f"accept is a share of the runs, at most 1, got {share:g}")
            chosen = float(np.sort(distance)[max(0, min(m, round(share * m)) - 1)])
        inside = (distance <= chosen) * _under_the_prior(problem)
        if not inside.any():
            raise ValueError(f"epsilon={chosen:g} keeps no simulation; the nearest is at {distance.min():.3g}")
        law = WeightedPoints(problem.Z, inside, _median_kernel(problem.Z))
        return Inference(
            law, {"epsilon": chosen, "epsilon_kernel": self.epsilon_kernel}, float(effective_sizes(law.weights))
        )

r"""Kernel embedding likelihood-free inference: Algorithm 3 of Hsu (2019).

| paper | here |
|---|---|
| lines 2-3, `v` | `KernelMeans.weights` |
| line 5, (4.6) and line 6, `q(y)` | `SignedMixture.evidence` |
| line 7, (4.10) and line 8, the embedding | `SignedMixture.embedding` |
| lines 4-8 with (4.7), (4.11) | `form="sampled"` |
| lines 9-12 | `KernelMeansPosterior.herd` |
| section 4.3.3 | `learn="marginal"`; see `learning._likelihood_free` for the default |

Beyond the thesis: where the score says so, the posterior is moved to the mean and the covariance of a regression adjustment.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._typing import Array
from ..embeddings._moments import covariances
from ..embeddings._weighted import effective_sizes
from ..features import IncompleteCholesky, represent
from ..features._landmark import EXACT_POINTS, LandmarkFeatures
from ..kernels import Gaussian, matmul
from ..kernels._distributions import Normal
from ..kernels._integrals import mean_integral
from ..learning import _likelihood_free as objectives
from ..learning._adjustment import Gain, gain, resemblance, spread_of_all
from ..learning._likelihood_free import Fixed, Learned, Replicates, Scales
from ..rules import kernel_means
from ..rules.regression_adjustment import Moments, adjusted
from ._epsilon import Comparison
from ._law import KernelMeansPosterior, Law, Moved, WeightedPoints, within_reach
from ._prior import Prior
from ._problem import Inference, Method, Problem

# Scales are learned from at most so many simulations, those nearest the observation among them.
_MOST_LEARNED = 1500
# Where more parameters differ than the kernel is used at exactly, the likelihood has kernels at so many of them, less those
# that leave no more than this of the others.
_LANDMARKS, _LANDMARK_TOL = 1500, 1e-8
# Points that integrate over the prior while learning, and that stand for it in the sampled forms.
_CONTRAST, SAMPLED = 600, 4000
_EVALUATIONS = 60
# Simulations in the place of the observation, of the nearest fifth of all.
_FEWEST_REPLICATES, _REPLICATES = 30, 60
# The first guess: the share of simulations within one scale of the observation.
_NEAR = 0.1
_START_BETA, _START_REG = 0.7, 1e-3
# An epsilon below this tells no two simulations alike.
_LEAST = 1e-50
# Errors above this share of the likelihood's top are worth a warning.
ROUGH = 0.5


class KernelMeans:
    """A fitted kernel means likelihood: pairs, how outputs are compared, and the scales.

    One factorisation serves every observation. `adjust` says whether posteriors are adjusted by regression, `groups` which
    simulations are left out together.

    Attributes:
        centres: coordinates (c, d) at which the likelihood has its kernels: the parameters that differ or, where these are
            many, landmarks among them.
    """

    def __init__(
        self,
        Z: Array,
        comparison: Comparison,
        scales: Scales,
        ratio: Array | None = None,
        adjust: bool = False,
        groups: Array | None = None,
    ):
        self.Z, self.comparison, self.scales, self.ratio, self.adjust = Z, comparison, scales, ratio, adjust
        self.kernel, self.groups = Gaussian(scales.beta), groups
        self.places = kernel_means.Places.gathered(Z, groups, ratio)
        self.centres = self.places.Z if self._landmarks is None else self._landmarks.points

    @functools.cached_property
    def _landmarks(self) -> kernel_means.OnLandmarks | None:
        if len(self.places.Z) <= EXACT_POINTS:
            return None
        rows = np.unique(self.places.rows(_spread_out(self.comparison, _LANDMARKS)))
        features = IncompleteCholesky(tol=_LANDMARK_TOL)._fit(
            self.kernel, self.places.Z[rows], np.random.default_rng(0)
        )[0]
        assert isinstance(features, LandmarkFeatures)
        return kernel_means.OnLandmarks(features, represent(features, self.places.Z), self.places, self.scales.reg)

    @functools.cached_property
    def factor(self) -> Array:
        """Of `L + m reg I`, where the likelihood has a kernel at all parameters."""
        L = self.kernel._gram(self.places.Z, self.places.Z)
        return np.asarray(kernel_means.operator(L, self.scales.reg, self.places.ratio))

    def kappa(self, targets: Array) -> Array:
        """Epsilon-kernels (m, t) of observations (t, q), each relative to the largest."""
        each = [(self.comparison.squares(y[None])[:, 0] / self.scales.epsilon**2).sum(-1) for y in targets]
        exponents = -0.5 * np.stack(each, axis=1)
        return np.exp(exponents - exponents.max(0))

    def weights(self) -> tuple[Array, Array]:
        """The weights v (c,) of the likelihood (4.4), and the epsilon-kernels (m,) themselves."""
        kappa = self.kappa(self.comparison.observed[None])[:, 0]
        means = self.places.mean(kappa)
        if self._landmarks is not None:
            return self._landmarks.weights(means), kappa
        return np.asarray(kernel_means.weights(self.factor, means)), kappa

    def weights_without(self, rows: Array) -> tuple[Array, Array]:
        """The same (c, t) for simulations in the place of the observation, each left out of the pairs with its group."""
        kappa = self.kappa(self.comparison.right[rows])
        means, at = self.places.mean(kappa), self.places.rows(rows)
        if self._landmarks is not None:
            return self._landmarks.weights_without(means, at), kappa
        return np.asarray(kernel_means.weights_without(self.factor, means, at)), kappa

    def moments(self, kappa: Array, target: Array, row: int | None = None) -> Moments | None:
        """Those that a posterior is moved to, given epsilon-kernels (m,) of an observation (q,); None to leave it."""
        near = resemblance(kappa, self.ratio, row, self.groups) if self.adjust else None
        return None if near is None else adjusted(near, self.comparison.left - target, self.Z, self._spread)

    @functools.cached_property
    def _spread(self) -> Array:
        return spread_of_all(self.Z, self.ratio)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class KELFI(Method):
    """Kernel embedding likelihood-free inference.

    Args:
        epsilon_kernel: how outputs are compared: "gaussian", "iid", "mmd", "spatio-temporal", or one of the objects.
        learn: how the scales that are not given are chosen: by how well simulations near the observation are inferred,
            "posterior"; by the "marginal" likelihood (section 4.3.3); or None to take the first guess.
        ard: whether each statistic has an epsilon of its own; by default with `learn="posterior"`.
        epsilon: scales of the comparison, one or one for each statistic, in units of their spread.
        lengthscale: of the kernel on parameters, in Gaussian coordinates.
        reg: the regulariser.
        form: "closed" or "sampled"; by default closed where the prior allows it.
        replicates: how many simulations take the place of the observation while learning.
        adjust: whether to move and stretch the posterior to the moments of a local regression of parameters on statistics;
            by default where `learn="posterior"` finds that it scores better (`learning._adjustment`).

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> prior = kb.Prior(mu=(-3, 3))
        >>> theta = prior.design(200)
        >>> given = {"parameters": theta, "outputs": theta + 0.3 * np.random.default_rng(0).normal(size=theta.shape)}
        >>> posterior = kb.infer(**given, prior=prior, observed=[0.5], method=kb.lfi.KELFI(adjust=False), random_state=0)
        >>> posterior.method, posterior.settings["adjust"]
        ('kelfi', False)
    """

    name: ClassVar[str] = "kelfi"
    epsilon_kernel: Any = "gaussian"
    learn: str | None = "posterior"
    ard: bool | None = None
    epsilon: Any = None
    lengthscale: float | None = None
    reg: float | None = None
    form: str | None = None
    replicates: int | None = None
    adjust: bool | None = None

    def infer(self, problem: Problem) -> Inference:
        model, learned, ard = fit(
            problem,
            self.epsilon_kernel,
            self.learn,
            self.ard,
            self.epsilon,
            self.lengthscale,
            self.reg,
            self.replicates,
            self.adjust,
        )
        v, kappa = model.weights()
        law, floor = _posterior(problem, model, v, kappa, self.form)
        target = model.moments(kappa, model.comparison.observed)
        if target is not None:
            law = Moved(law, target)
        scales = model.scales
        ess = float(effective_sizes(kappa / kappa.sum()))
        return Inference(
            law,
            {
                "epsilon_kernel": self.epsilon_kernel,
                **settings_of(scales),
                "learn": self.learn,
                "ard": ard,
                "form": self.form,
                "adjust": model.adjust,
            },
            ess,
            [
                *on_bounds(learned),
                *_rough(floor),
                *_blunt(model.comparison, scales, learned),
                *_not_adjusted(bool(self.adjust) and target is None),
            ],
            {
                "score": learned.value,
                "evaluations": learned.evaluations,
                "noise": floor,
                "adjusted": target is not None,
                "learned_from": min(len(model.Z), _MOST_LEARNED),
                "centres": len(model.centres),
            },
            model,
            dict(zip(model.comparison.names, scales.epsilon * model.comparison.units, strict=True)),
        )


def settings_of(scales: Scales) -> dict[str, Any]:
    """Learned scales as they can be passed in again."""
    return {"epsilon": scales.epsilon, "lengthscale": scales.beta, "reg": scales.reg}


def _posterior(problem: Problem, model: KernelMeans, v: Array, kappa: Array, form: str | None) -> tuple[Law, float]:
    """The law, by closed or by sampled forms, and the share of errors in the likelihood."""
    latent = problem.prior.latent
    form = _check.option(form, "form", (None, "closed", "sampled")) or ("sampled" if latent is None else "closed")
    if form == "closed":
        if latent is None:
            raise ValueError("form='closed' needs a prior with Gaussian coordinates; this one can only be sampled")
        seed = int(problem.rng.integers(2**31))
        atoms = problem.prior if problem.prior.whole.any() else None
        law = KernelMeansPosterior(v, model.centres, model.scales.beta, latent, kappa, seed, atoms, model.Z)
        return law, law.noise
    points = problem.prior.coordinates(SAMPLED, problem.rng)
    points = points[within_reach(points, model.Z)]
    values = matmul(model.kernel, points, model.centres, v)
    floor = float(objectives.noise_floor(values))
    law = WeightedPoints(points, objectives.above_noise(values, floor), model.kernel)
    return law, floor / float(values.max())


# ------------------------------------------------------------------------------------------------- learning


def fit(
    problem: Problem,
    epsilon_kernel: Any,
    learn: str | None,
    ard: bool | None,
    epsilon: Any,
    lengthscale: float | None,
    reg: float | None,
    replicates: int | None,
    adjust: bool | None = False,
) -> tuple[KernelMeans, Learned, bool]:
    """Learn what is not given, and return the likelihood."""
    learn = _check.option(learn, "learn", ("posterior", "marginal", None))
    adjust = _check.option(adjust, "adjust", (None, True, False))
    Z, prior = problem.Z, problem.prior
    problem.refuse_few()
    comparison = problem.compare(epsilon_kernel)
    if (refused := _no_adjustment(prior, comparison)) and adjust:
        raise ValueError(f"adjust=True is not possible: {refused}")
    groups = len(comparison.names)
    fixed = Fixed(*_given(epsilon, lengthscale, reg, groups))
    several = groups > 1 and fixed.epsilon is None
    ard = (learn == "posterior" and several) if ard is None else bool(ard) and several
    start, ratio, alike = _start(comparison, fixed), problem.ratio(), problem.groups()
    if learn is None:
        value = Learned(start, float("nan"), 0, ())
        return KernelMeans(Z, comparison, start, ratio, bool(adjust), alike), value, False
    rows = _spread_out(comparison, _MOST_LEARNED)
    few = comparison.subset(rows)
    if learn == "marginal":
        learned = _by_marginal(few, Z[rows], prior, start, fixed, ard)
    else:
        some = [None if part is None else part[rows] for part in (ratio, alike)]
        sample = replicated(few, Z[rows], prior, some[0], replicates, problem.rng, some[1])
        learned = _by_posterior(sample, start, fixed, ard, groups)
        if adjust is None and not refused:
            adjust = _gain(learned.scales, sample, few, prior).clear
    return KernelMeans(Z, comparison, learned.scales, ratio, bool(adjust), alike), learned, ard


def _no_adjustment(prior: Prior, comparison: Comparison) -> str:
    """Why posteriors cannot be moved and stretched here; empty if they can."""
    if prior.latent is None:
        return "the prior can only be sampled, and a draw that is moved may leave its support"
    if prior.whole.any():
        return "a parameter is a whole number"
    if comparison.grouped:
        return "all outputs are compared on one scale, as raw data: there are no statistics to regress on"
    return ""


def _gain(scales: Scales, sample: Replicates, comparison: Comparison, prior: Prior) -> Gain:
    right, latent = comparison.right[sample.rows], prior.latent
    assert latent is not None  # `_no_adjustment` has told
    return gain(scales, sample, lambda i: comparison.left - right[i], latent)


def _given(epsilon: Any, lengthscale: Any, reg: Any, groups: int) -> tuple[Any, Any, Any]:
    if epsilon is not None:
        epsilon = np.atleast_1d(_check.numbers(epsilon, "epsilon"))
        if epsilon.shape not in ((1,), (groups,)) or (epsilon <= 0).any():
            raise ValueError(f"epsilon must be positive: one number, or one for each of {groups} statistics")
        if epsilon.min() < _LEAST:
            raise ValueError(
                f"epsilon is {epsilon.min():.3g} of the statistics' spread: no simulation is as near as that"
            )
        epsilon = np.broadcast_to(epsilon, (groups,))
    return (
        epsilon,
        None if lengthscale is None else _check.positive(lengthscale, "lengthscale"),
        None if reg is None else _check.positive(reg, "reg"),
    )


def _start(comparison: Comparison, fixed: Fixed) -> Scales:
    """A first guess for what is not given."""
    squares = comparison.from_observed()
    if fixed.epsilon is None:
        away = np.sqrt(np.quantile(squares.sum(-1), _NEAR) / comparison.powers.sum())
        epsilon = np.full(squares.shape[1], np.clip(away, *objectives.EPSILON_BOUNDS))
    else:
        epsilon = fixed.epsilon
    beta = _START_BETA if fixed.beta is None else fixed.beta
    return Scales(epsilon, beta, _START_REG if fixed.reg is None else fixed.reg)


def _spread_out(comparison: Comparison, most: int) -> Array:
    """Rows to learn from: all, or the nearest third of the most there may be and an even choice of the others."""
    m = len(comparison.left)
    if m <= most:
        return np.arange(m)
    order = np.argsort(comparison.from_observed().sum(-1))
    near = most // 3
    others = order[near:][:: max(1, (m - near) // (most - near))][: most - near]
    return np.sort(np.concatenate([order[:near], others]))


def _by_marginal(comparison: Comparison, Z: Array, prior: Prior, start: Scales, fixed: Fixed, ard: bool) -> Learned:
    """Maximise (4.5); with `ard` by going round the statistics, each scale up and down."""
    squares, latent = comparison.from_observed(), prior.latent
    closed = latent is not None and not prior.whole.any()
    pool = None if closed else prior.coordinates(SAMPLED, np.random.default_rng(0))

    def mu(beta: float) -> Array:
        if latent is not None and closed:
            return np.asarray(mean_integral(Gaussian(beta), latent, Z))
        return Gaussian(beta)._gram(Z, pool).mean(1)

    def objective(scales: Scales) -> float:
        return objectives.log_marginal(scales, Z, squares, comparison.powers, mu)

    found = objectives.search(objective, start, fixed, groups=squares.shape[1], tie_reg=True, budget=_EVALUATIONS)
    return objectives.one_by_one(objective, found, budget=10 * squares.shape[1]) if ard else found


def _by_posterior(sample: Replicates, start: Scales, fixed: Fixed, ard: bool, groups: int) -> Learned:
    found = objectives.search(
        lambda scales: objectives.posterior_score(scales, sample),
        start,
        fixed,
        groups=groups,
        tie_reg=False,
        budget=_EVALUATIONS,
    )
    if not ard:
        return found
    better = objectives.refine_epsilon(found.scales, sample)
    return better._replace(on_bound=found.on_bound, evaluations=found.evaluations + better.evaluations)


def replicated(
    comparison: Comparison,
    Z: Array,
    prior: Prior,
    ratio: Array | None,
    count: int | None,
    rng: np.random.Generator,
    groups: Array | None = None,
) -> Replicates:
    """Simulations that resemble the observation in its place, and points to integrate over the prior.

    By default every k-th of the nearest fifth: neighbours share their neighbours, and say the same thing twice.
    """
    order = np.argsort(comparison.from_observed().sum(-1))
    if count is None:
        near = order[: max(_FEWEST_REPLICATES, len(order) // 5)]
        rows = near[:: max(1, len(near) // _REPLICATES)][:_REPLICATES]
    else:
        rows = order[: _check.count(count, "replicates", at_least=5)]
    rows = np.sort(rows[: len(order) - 1])
    points, weights = contrast(prior, Z[rows], _CONTRAST, rng)
    reach = within_reach(points, Z)
    points, weights = points[reach], weights[reach]
    shares = np.ones(len(rows)) if ratio is None else ratio[rows]
    squares = comparison.squares(comparison.right[rows])
    return Replicates(Z, rows, squares, points, weights, shares / shares.sum(), ratio, groups)


def contrast(prior: Prior, near: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Points (T, d) and weights (T,) whose sum is an integral under the prior, half of them about some parameters."""
    latent = prior.latent
    if latent is None:
        return prior.coordinates(2 * count, rng), np.full(2 * count, 0.5 / count)
    d, half = near.shape[1], count // 2
    spread = covariances(near, np.full((1, len(near)), 1.0 / len(near)))[0]
    local = Normal(near.mean(0), 2.0 * spread + 1e-3 * np.eye(d))
    points = np.concatenate([latent.sample(count - half, rng), local.sample(half, rng)])
    p = latent.density(points)
    return prior.on_atoms(points), p / (0.5 * p + 0.5 * local.density(points)) / count


# -------------------------------------------------------------------------------------------- what to say


def on_bounds(learned: Learned) -> list[str]:
    names = {"epsilon": "epsilon", "beta": "the lengthscale", "reg": "the regulariser"}
    return [f"the best value of {names[n]} sits on the bound of what was searched" for n in learned.on_bound]


def _blunt(comparison: Comparison, scales: Scales, learned: Learned) -> list[str]:
    """Statistics that were learned to play no part, all of them."""
    if learned.evaluations < 2 or comparison.grouped or scales.epsilon.min() < 1.0:
        return []
    return [
        "no statistic is compared on a scale smaller than its spread over the simulations: they hardly tell parameters "
        "apart, or most simulations are unlike the observation"
    ]


def _not_adjusted(asked: bool) -> list[str]:
    if not asked:
        return []
    return ["too few simulations resemble the observation to regress on, so that adjust=True has changed nothing"]


def _rough(floor: float) -> list[str]:
    if floor <= ROUGH:
        return []
    return [f"the likelihood's errors reach {100 * floor:.0f} % of its largest value: the posterior is a rough sketch"]

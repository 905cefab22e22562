"""Is the posterior right as often as it says? Simulation-based calibration and coverage, without a single new run.

Talts et al. (2018): if parameters are drawn from the prior and observations are simulated from them, the rank of the true
parameter among draws of its posterior is uniform. The simulations at hand are such pairs. Each in turn takes the place of
the observation, and the posterior is learned from the others. For the kernel means likelihood leaving one out has a closed
form (`rules.kernel_means.weights_without`), so one factorisation serves all of them.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np

from .. import _check
from .._summary import Summary
from .._typing import Array, RandomState
from ..embeddings import PosteriorWarning
from ..embeddings._weighted import level_of
from ..learning._adjustment import resemblance
from ..learning._likelihood_free import Scales, above_noise, expected_about, noise_floor
from ..rules.regression_adjustment import Way, moments
from . import _likelihood
from ._kelfi import KernelMeans
from ._law import Law, within_reach
from ._posterior import ParameterPosterior
from ._problem import Problem

# Points that integrate over the prior, shared by all replicates, and about each posterior.
_POOL, _LOCAL = 3000, 1000
# Draws behind a rank where a method has to be run again.
_DRAWS = 500
# Parts of the simulations that are left out together of a learned likelihood; particles of its posteriors.
_FOLDS, _PARTICLES = 5, 500
# Bins of a rank histogram: so that about this many ranks are expected in each.
_PER_BIN, _MOST_BINS = 10, 20
# A departure from what chance allows that is worth a sentence.
_RARE = 1e-3


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
    """Where true parameters fell in their posteriors; made by `kb.calibrate`.

    Attributes:
        ranks: (R, d) posterior probability below each true parameter. Uniform if the posteriors are right; heaped in the
            middle if they are too wide, at both ends if too narrow, at one end if biased.
        truths: (R, d) the parameters.
        rows: (R,) which simulations took the place of the observation.
        names: of the parameters.
        around: "prior" or "observation".
        failed: replicates whose posterior could not be formed.
    """

    ranks: Array
    truths: Array
    rows: Array
    names: tuple[str, ...]
    around: str
    failed: int = 0

    def __repr__(self) -> str:
        said = "; ".join(self.problems) or "nothing to complain of"
        return f"Calibration({len(self.ranks)} replicates around the {self.around}: {said})"

    def coverage(self, level: float = 0.9) -> Array:
        """Share of true parameters (d,) inside the central interval that should hold `level` of them."""
        level = level_of(level)
        return (np.abs(2.0 * self.ranks - 1.0) <= level).mean(0)

    def coverage_band(self, level: float = 0.9, sure: float = 0.99) -> tuple[float, float]:
        """Between which shares the coverage of right posteriors would lie, with probability `sure`."""
        from scipy import stats  # slow to import

        n, level = len(self.ranks), level_of(level)
        low, high = stats.binom.ppf([0.5 - 0.5 * sure, 0.5 + 0.5 * sure], n, level)
        return float(low / n), float(high / n)

    def histogram(self) -> tuple[Array, Array]:
        """Counts (bins, d) of the ranks, and the edges of the bins."""
        bins = int(np.clip(len(self.ranks) // _PER_BIN, 4, _MOST_BINS))
        edges = np.linspace(0.0, 1.0, bins + 1)
        return np.stack([np.histogram(column, edges)[0] for column in self.ranks.T], axis=1), edges

    def histogram_band(self, sure: float = 0.99) -> tuple[float, float]:
        """Between which counts a bin would lie if the ranks were uniform, with probability `sure`."""
        from scipy import stats  # slow to import

        counts, _ = self.histogram()
        low, high = stats.binom.ppf([0.5 - 0.5 * sure, 0.5 + 0.5 * sure], len(self.ranks), 1.0 / len(counts))
        return float(low), float(high)

    def uniformity(self) -> Array:
        """p-values (d,) of the hypothesis that the ranks are uniform, by a chi-squared test of the histogram."""
        from scipy import stats  # slow to import

        return stats.chisquare(self.histogram()[0], axis=0).pvalue

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong, in words."""
        out = []
        for level in (0.9, 0.5):
            low, high = self.coverage_band(level, 1.0 - _RARE)
            for name, share in zip(self.names, self.coverage(level), strict=True):
                if not low <= share <= high and not any(said.startswith(f"{name}:") for said in out):
                    how = "too narrow" if share < low else "wider than need be"
                    out.append(f"{name}: {100 * level:g} % intervals hold {share:.0%} of the truths: {how}")
        from scipy import stats  # slow to import

        for name, rank in zip(self.names, self.ranks.T, strict=True):
            bias = (rank.mean() - 0.5) * np.sqrt(12.0 * len(rank))
            if 2.0 * stats.norm.sf(abs(bias)) < _RARE:
                out.append(f"{name}: posteriors lie too {'low' if bias > 0 else 'high'} on average")
        if self.failed:
            out.append(f"{self.failed} replicates had no posterior")
        return tuple(out)

    def summary(self) -> Summary:
        """A table: coverage of 50, 90 and 95 % intervals, mean rank (0.5 if unbiased), and the p-value of uniformity."""
        covers = {level: self.coverage(level) for level in (0.5, 0.9, 0.95)}
        uniform = self.uniformity()
        rows = {
            name: {
                **{f"in {100 * level:g} %": float(c[j]) for level, c in covers.items()},
                "mean rank": float(self.ranks[:, j].mean()),
                "p uniform": float(uniform[j]),
            }
            for j, name in enumerate(self.names)
        }
        return Summary(rows, f"{len(self.ranks)} replicates around the {self.around}", self.problems)

    def plot(self, *, sure: float = 0.99) -> Any:
        """A figure: rank histograms with the band that chance allows, and coverage against level, for each parameter.

        Returns a Matplotlib figure: `calibration.plot().savefig("calibration.png")`.
        """
        from .. import plotting

        return plotting.calibration(self, sure=sure)


def calibrate(
    posterior: ParameterPosterior,
    replicates: int = 200,
    *,
    around: str = "prior",
    random_state: RandomState = 0,
) -> Calibration:
    """Check a posterior against simulations whose parameters are known.

    Args:
        posterior: made by `kb.infer`; its settings are used as they are.
        replicates: simulations that take the place of the observation, at most as many as there are.
        around: "prior" chooses them evenly among all, which is simulation-based calibration and should be uniform;
            "observation" takes those nearest the observation, which is where it matters, but they are chosen by what they
            look like, so ranks are uniform only roughly.
        random_state: seed.

    Simulations must be draws of the prior (`rounds=1`, no `proposal`) for the first; of more rounds, the first is used.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> prior = kb.Prior(mu=(-3, 3))
        >>> theta = prior.design(400)
        >>> x = theta + np.random.default_rng(0).normal(0, 0.5, theta.shape)
        >>> posterior = kb.infer(parameters=theta, outputs=x, prior=prior, observed=[0.5], random_state=0)
        >>> calibration = kb.calibrate(posterior)
        >>> bool(0.8 < calibration.coverage(0.9)[0] <= 1.0)
        True
    """
    if not isinstance(posterior, ParameterPosterior):
        raise ValueError(f"posterior must come from kb.infer, got {type(posterior).__name__}")
    around = _check.option(around, "around", ("prior", "observation"))
    count = _check.count(replicates, "replicates", at_least=20)
    rng = _check.generator(random_state)
    rows = _rows(posterior, count, around, rng)
    if posterior.method == "kelfi":
        ranks = _by_weights(_model(posterior), posterior, rows, rng)
    elif posterior.method == "likelihood":
        ranks = _by_folds(posterior, rows, rng)
    else:
        ranks = _by_running_again(posterior, rows, rng)
    good = np.isfinite(ranks).all(1)
    if good.sum() < 10:
        raise ValueError(f"only {good.sum()} of {len(rows)} replicates have a posterior; more simulations are needed")
    truths = posterior.parameters[rows[good]]
    return Calibration(ranks[good], truths, rows[good], posterior.names, around, int((~good).sum()))


def _rows(posterior: ParameterPosterior, count: int, around: str, rng: np.random.Generator) -> Array:
    available = int(posterior.details.get("first_round", len(posterior.parameters)))
    if around == "prior" and available < 20:
        raise ValueError(
            "around='prior' needs simulations whose parameters follow the prior; these come from a proposal. "
            "around='observation' takes those nearest the observation"
        )
    if around == "prior":
        return np.sort(rng.permutation(available)[:count])
    from ._epsilon import spreads

    X, y = posterior.outputs.reshape(len(posterior.outputs), -1), posterior.observed.reshape(-1)
    unit = np.where(spreads(X) > 0, spreads(X), 1.0)
    return np.sort(np.argsort((((X - y) / unit) ** 2).sum(1))[:count])


def _problem(posterior: ParameterPosterior, rng: np.random.Generator) -> Problem:
    ratio = getattr(posterior, "_ratio", None)
    followed = posterior.details.get("first_round", len(posterior.parameters))
    if ratio is None and followed < len(posterior.parameters) and posterior.prior.latent is not None:
        raise ValueError(
            "this posterior was saved by a version that did not keep where its simulations came from, and they come from "
            "several rounds or a proposal: infer it again to calibrate it"
        )
    return Problem(
        posterior.prior,
        posterior.observed,
        posterior.parameters,
        posterior.outputs,
        posterior.statistics,
        rng,
        known_ratio=ratio,
    )


def _model(posterior: ParameterPosterior) -> KernelMeans:
    model = getattr(posterior, "_model", None)
    if model is not None:
        return model
    chosen = posterior.settings
    problem = _problem(posterior, np.random.default_rng(0))
    scales = Scales(np.asarray(chosen["epsilon"]), float(chosen["lengthscale"]), float(chosen["reg"]))
    adjust = bool(chosen.get("adjust", False))  # files of older versions do not tell: nothing was adjusted
    comparison = problem.compare(chosen["epsilon_kernel"])
    return KernelMeans(problem.Z, comparison, scales, problem.ratio(), adjust, problem.groups())


def _by_weights(model: KernelMeans, posterior: ParameterPosterior, rows: Array, rng: np.random.Generator) -> Array:
    """Ranks (R, d) from one factorisation: each posterior is integrated over points with importance weights."""
    prior, latent = posterior.prior, posterior.prior.latent
    V, kappa = model.weights_without(rows)
    pool = prior.coordinates(_POOL, rng, placed=False)
    pool = pool[within_reach(prior.on_atoms(pool), model.Z)]
    values = model.kernel._gram(prior.on_atoms(pool), model.centres) @ V
    parameters = prior.from_gaussian(pool)
    ranks = np.full((len(rows), prior.dimension), np.nan)
    for i, row in enumerate(rows):
        floor = noise_floor(values[:, i])
        points, theta, likelihood = pool, parameters, above_noise(values[:, i], floor)
        weights = np.ones(len(pool))
        if latent is not None:
            near = resemblance(kappa[:, i], None, row, model.groups)
            if near is None:
                continue
            local = expected_about(model.Z, near, model.scales.beta)
            extra = local.sample(_LOCAL, rng)
            points, theta = np.concatenate([pool, extra]), np.concatenate([parameters, prior.from_gaussian(extra)])
            placed = prior.on_atoms(extra)
            there = above_noise(model.kernel._gram(placed, model.centres) @ V[:, i], floor)
            there = there * within_reach(placed, model.Z)
            likelihood = np.concatenate([likelihood, there])
            p = latent.density(points)
            weights = p / (_POOL * p + _LOCAL * local.density(points))
        mass = likelihood * weights
        if mass.sum() > 0:
            target = model.moments(kappa[:, i], model.comparison.right[row], row)
            if target is not None:
                moved = Way.between(moments(points, mass / mass.sum()), target).there(points)
                theta = prior.from_gaussian(moved)
            # rounding must not put a truth beyond all of the mass outside the histogram
            below = (theta < posterior.parameters[row]) + 0.5 * (theta == posterior.parameters[row])
            ranks[i] = np.minimum(mass @ below / mass.sum(), 1.0)
    return ranks


def _by_folds(posterior: ParameterPosterior, rows: Array, rng: np.random.Generator) -> Array:
    """Ranks (R, d) for a learned likelihood: those of a few folds, each learned from the simulations outside of it."""
    problem = _problem(posterior, rng)
    groups = problem.groups()
    groups = np.arange(len(problem.theta)) if groups is None else groups
    fold = rng.permutation(groups.max() + 1)[groups] % _FOLDS
    settings = {k: v for k, v in posterior.settings.items() if k != "particles"}
    ranks = np.full((len(rows), posterior.prior.dimension), np.nan)
    for k in np.unique(fold[rows]):
        learned = _likelihood.learn(problem.only(fold != k), **settings)
        for i in np.flatnonzero(fold[rows] == k):
            observed = problem.outputs[rows[i]].reshape(1, -1)
            law, _ = _likelihood.posterior(learned, posterior.prior, observed, int(rng.integers(2**31)), _PARTICLES)
            ranks[i] = _rank(posterior, law, rows[i], rng)
    return ranks


def _rank(posterior: ParameterPosterior, law: Law, row: int, rng: np.random.Generator) -> Array:
    """The share of a posterior (d,) below the parameters of a simulation; of equal numbers, half are."""
    draws, truth = posterior.prior.from_gaussian(law.sample(_DRAWS, rng)), posterior.parameters[row]
    return ((draws < truth) + 0.5 * (draws == truth)).mean(0)


def _by_running_again(posterior: ParameterPosterior, rows: Array, rng: np.random.Generator) -> Array:
    """Ranks (R, d) for a method that has no closed form: it is run again for each replicate with the settings it chose."""
    from ._methods import METHODS

    method = METHODS[posterior.method]
    if method.seeks:
        raise ValueError(f"method {posterior.method!r} chooses where to simulate; it has no runs to calibrate with")
    problem = _problem(posterior, rng)
    ranks = np.full((len(rows), posterior.prior.dimension), np.nan)
    for i, row in enumerate(rows):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PosteriorWarning)
            try:
                found = method(**posterior.settings).infer(problem.without(int(row)))
            except ValueError:
                continue
        ranks[i] = _rank(posterior, found.law, row, rng)
    return ranks

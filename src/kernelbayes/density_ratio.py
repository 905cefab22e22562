"""The ratio of two densities as an estimator, from a sample of each or from a sample and a known distribution.

The linear algebra is in `rules.density_ratio`; here are checks, defaults, the choice of hyperparameters, and NumPy in and
out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from . import _check
from ._estimator import check_kinds
from ._linalg import LowRank, eigh
from ._typing import Array, ArrayLike, RandomState
from ._warning import warn_user
from .embeddings import Embedding, Reach, Weighted, mean_coordinates, read_weighted, sample_in_order
from .embeddings._reading import DRAWS
from .features import (
    Exact,
    Features,
    IncompleteCholesky,
    Recipe,
    Subspace,
    default_recipe,
    factored,
    kernel_for,
    represent,
)
from .kernels import Gaussian, Kernel
from .kernels._bandwidth import lengthscale_of
from .kernels._distributions import is_distribution, within, zero_outside
from .learning import MOST_POINTS, BoundWarning, last_of_the_best
from .rules import density_ratio as rule

# Candidates: lengthscales as factors of the median distance, regularisers as factors of the mean square of the coordinates.
# Shorter lengthscales than these were chosen by accident more often than for a good reason, with 150 to 500 points; longer
# ones leave little more than polynomials of low degree.
_FACTORS = 0.1 * 10 ** (0.2 * np.arange(10))
_REGS = np.geomspace(1e-8, 10.0, 37)
# Lengthscales whose scores differ by less than this many standard errors are as good as each other: the longest is taken.
_TIE = 0.75
# Landmarks by which lengthscales are compared, and that stand in for an exact representation of higher rank.
_COMPARED_RANK = 256
_SCORED_RANK = 1024
# Points of each sample that are left out, at most.
_SCORED_POINTS = 4096
# Representations in whose coordinates a closed form has a mean.
_ON_LANDMARKS = (Exact, IncompleteCholesky, Subspace)
# What calls for a warning: much of the numerator outside the denominator's points, a mean of the ratio on them far from
# one, or all weight on very few of them.
_MOST_OUTSIDE = 0.2
_MEAN_BOUNDS = (0.5, 2.0)
_LEAST_ESS = 3.0
# Coordinates handled at a time when the ratio is evaluated.
_BLOCK_ELEMENTS = 2**22


class _Seen(NamedTuple):
    """Both samples through one representation."""

    features: Features
    gram: Any  # of the denominator
    covariance: Array
    mean: Array


class _Samples(NamedTuple):
    """Both samples, and which points of each are left out to score by."""

    Z: Array
    top: Weighted
    rows: Array
    top_rows: Array
    alpha: float

    @classmethod
    def of(cls, Z: Array, top: Weighted, alpha: float, rng: np.random.Generator) -> _Samples:
        rows, top_rows = (_some(len(P), _SCORED_POINTS, rng) for P in (Z, top.points))
        return cls(Z, top, rows, top_rows, alpha)

    def fewer(self, most: int, rng: np.random.Generator) -> _Samples:
        """At most so many points of each; of a weighted numerator all, since each of them may matter."""
        Z, top = self.Z[_some(len(self.Z), most, rng)], self.top
        if np.ptp(top.weights) == 0.0:
            points = top.points[_some(len(top.points), most, rng)]
            top = Weighted(points, np.full(len(points), 1.0 / len(points)), top.distribution, top.support)
        return self.of(Z, top, self.alpha, rng)

    def through(self, recipe: Recipe, kernel: Kernel, rng: np.random.Generator) -> _Seen:
        """Fit features to what stands below in the ratio, which with alpha > 0 is the numerator too."""
        n, alpha = len(self.Z), self.alpha
        if alpha == 0.0:
            features, gram = factored(*recipe._fit(kernel, self.Z, rng))
            return _Seen(features, gram, gram.core() / n, mean_coordinates(features, self.top))
        above = self.top.points[_some(len(self.top.points), n, rng)]
        features, gram = factored(*recipe._fit(kernel, np.concatenate([self.Z, above]), rng))
        gram = LowRank(gram.factor[:n]) if isinstance(gram, LowRank) else represent(features, self.Z)
        shares = alpha * rule.positive_part(self.top.weights)
        covariance = (1.0 - alpha) * gram.core() / n + represent(features, self.top.points).weighted_core(shares)
        return _Seen(features, gram, covariance, mean_coordinates(features, self.top))

    def losses(self, seen: _Seen, regs: Array) -> tuple[Array, Array]:
        """What each left-out point adds to the risk of the truncated ratio; of a distribution nothing is left out."""
        features, gram, covariance, mean = seen
        F = gram.factor[self.rows] if isinstance(gram, LowRank) else features._coordinates(self.Z[self.rows])
        T = features._coordinates(self.top.points[self.top_rows])
        spectrum = eigh(covariance)
        share = (1.0 - self.alpha) / len(self.Z)
        at_z = rule.without_denominator(*rule.fitted(spectrum, mean, regs, F), share)
        at_top, leverage = rule.fitted(spectrum, mean, regs, T)
        weights, shares = (w[self.top_rows] for w in (self.top.weights, rule.positive_part(self.top.weights)))
        if self.top.distribution is None:
            alone = np.abs(1.0 - weights) < 1e-6  # a point with all the weight cannot be left out
            left_out = rule.without_numerator(at_top, leverage, np.where(alone, 0.5, weights), self.alpha * shares)
            at_top = np.where(alone[:, None], at_top, left_out)
        weights = weights * (len(self.top.points) / len(T))
        return rule.losses(at_z, at_top, weights, self.alpha, truncate=True)

    def outside(self, kernel: Kernel, rng: np.random.Generator) -> float:
        """The share of the numerator that lies outside the points of the denominator."""
        sizes = np.abs(self.top.weights[self.top_rows])
        novelty = Reach(self.Z, kernel, rng).novelty(self.top.points[self.top_rows])
        return float(sizes[novelty > 1.0].sum() / sizes.sum())


def _some(size: int, most: int, rng: np.random.Generator) -> Array:
    return np.arange(size) if size <= most else rng.choice(size, most, replace=False)


class DensityRatio(BaseEstimator):
    r"""The ratio of the density of a numerator to that of a denominator, without estimating either.

    .. math:: r_\alpha(z) = \frac{\pi(z)}{\alpha\,\pi(z) + (1 - \alpha)\,p(z)}, \qquad
              \hat r_\alpha(z) = \max\big(0,\; f(z)^\top (M + \eta I)^{-1} m\big)

    with m the mean of the coordinates f under the numerator :math:`\pi` and M their uncentred covariance under the mixture
    in the denominator of :math:`r_\alpha`. With alpha = 0 it is KuLSIF: :math:`\pi / p`, the importance weights that turn a
    sample of p into one of :math:`\pi`.

    Args:
        kernel: by default Gaussian, its lengthscale a factor times the median distance of each column of the denominator.
            The factor is chosen together with `reg`: the longest whose score is within noise of the best, which is 3/4 of
            the standard error of their difference.
        features: representation of the points, fitted to the denominator (with alpha > 0, to both samples), such as
            `kb.Subspace(1000)` or `kb.RandomFourier(500)`. By default exact up to 3,000 points, then a subspace of 1,000.
        reg: regulariser eta per sample. By default the best of a grid, by leave-one-out of the truncated ratio.
        alpha: between 0 and 1; above 0, the relative ratio, which never exceeds 1 / alpha: less to learn where the numerator
            is much narrower than the denominator or reaches beyond it.
        random_state: seed for whatever is drawn at random (subspaces, subsamples to choose by, draws from a distribution).

    Attributes:
        kernel_, reg_, features_: what was chosen.
        scores_: a table of what was tried, as columns `reg`, `score` and, where the kernel was open, `factor` of the
            lengthscale; lower is better. Lengthscales are compared on at most 1,024 points; the rows of the chosen one are
            those of the final representation.
        outside_: share of the numerator that lies outside the points of the denominator, where no ratio can be learned.
        weights_: importance weights: the ratio at the denominator's points, scaled to sum to one (all zero if the ratio is).

    Kanamori, Suzuki and Sugiyama (2012); Xu et al. (2022), section 2; Yamada et al. (2011).

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> population, patients = rng.normal(50, 15, 1000), rng.normal(65, 10, 300)
        >>> ratio = kb.DensityRatio(random_state=0).fit(numerator=patients, denominator=population)
        >>> np.allclose(ratio.predict([50.0, 65.0]), [0.49, 2.47], atol=0.2)  # the truth
        True
        >>> bool(abs(ratio.weights_ @ population - 65) < 2)  # the population, weighted to look like the patients
        True
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        features: Recipe | None = None,
        reg: float | None = None,
        alpha: float = 0.0,
        *,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.features = features
        self.reg = reg
        self.alpha = alpha
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, numerator: Any, denominator: ArrayLike) -> DensityRatio:
        """Learn the ratio of numerator to denominator.

        Args:
            numerator: points (m, d), or what the kernel takes; a `kb.MeanEmbedding`, of which the points and their weights,
                relative to their sum, are used; or a known distribution, as a `kb.AnalyticEmbedding` or a frozen
                `scipy.stats` distribution (or a list of them, one for each column). The mean of a distribution is exact if
                the kernel has a closed form, alpha = 0 and the features are on landmarks; otherwise that of 10,000 draws.
            denominator: points (n, d), or what the kernel takes.
        """
        self._check_settings()
        rng = _check.generator(self.random_state)
        kernel = kernel_for(self.features, self.kernel)
        Z = _check_sample(denominator, kernel)
        self._input_names = _check.column_names(denominator)
        numerator = sample_in_order(numerator, self._input_names, "numerator")
        samples = _Samples.of(Z, self._read_numerator(numerator, kernel, Z, rng), float(self.alpha), rng)
        factor = None
        if kernel is None:
            spread = np.asarray(lengthscale_of(Z, "denominator", per_column=True))
            factor = self._choose_factor(samples, spread, rng)
            kernel = Gaussian(factor * spread)
        recipe = self.features or default_recipe(len(Z))
        seen = scored = samples.through(recipe, kernel, rng)
        if seen.features.rank > _SCORED_RANK and isinstance(recipe, Exact):
            scored = samples.through(IncompleteCholesky(_SCORED_RANK), kernel, rng)
        self._choose_reg(samples, scored, factor)
        self.kernel_, self.features_, self._point_shape = kernel, seen.features, Z.shape[1:]
        self.coef_ = rule.coefficients(seen.covariance, self.reg_, seen.mean)
        ratio = np.maximum(seen.gram.scatter(self.coef_[None])[0], 0.0)
        self._support = samples.top.support
        weights = zero_outside(self._support, Z, ratio)
        self.weights_ = weights / weights.sum() if weights.any() else weights
        self.outside_ = samples.outside(kernel, rng)
        self._warn(float(ratio.mean()), factor)
        return self

    def _check_settings(self) -> None:
        check_kinds(self, kernel=Kernel, features=Recipe)
        if self.reg is not None:
            _check.positive(self.reg, "reg")
        if not 0.0 <= _check.scalar(self.alpha, "alpha") < 1.0:
            raise ValueError(f"alpha must be at least 0 and below 1, got {self.alpha:g}")

    def _read_numerator(self, value: Any, kernel: Kernel | None, Z: Array, rng: np.random.Generator) -> Weighted:
        top = read_weighted(value, kernel, name="numerator", draws=DRAWS, rng=rng)
        if top.points.shape[1:] != Z.shape[1:]:
            wide, wanted = (f"{np.size(P[0])} columns" for P in (top.points, Z))
            raise ValueError(f"numerator has {wide} where denominator has {wanted}")
        on_landmarks = self.features is None or isinstance(self.features, _ON_LANDMARKS)
        return top if self.alpha == 0.0 and on_landmarks else top._replace(distribution=None)

    def _choose_factor(self, samples: _Samples, spread: Array, rng: np.random.Generator) -> float:
        """The lengthscale that some points of both samples prefer, each with its best regulariser; of equals the longest."""
        recipe = self.features
        if recipe is None or isinstance(recipe, Exact):
            recipe = IncompleteCholesky(_COMPARED_RANK, tol=1e-12)
        few = samples.fewer(MOST_POINTS, rng)
        rows, best = [], []
        for factor in _FACTORS:
            seen = few.through(recipe, Gaussian(factor * spread), rng)
            regs = self._candidates(seen)
            below, above = few.losses(seen, regs)
            scores = below.sum(0) + above.sum(0)
            rows.append(np.stack([np.full(len(regs), factor), regs, scores]))
            best.append((below[:, scores.argmin()], above[:, scores.argmin()]))
        self.scores_ = dict(zip(("factor", "reg", "score"), np.concatenate(rows, axis=1), strict=True))
        kept = len(few.Z) / len(samples.Z), len(few.top.points) / len(samples.top.points)
        return float(_FACTORS[_last_of_the_best(best, kept)])

    def _candidates(self, seen: _Seen) -> Array:
        return float(np.trace(seen.covariance)) * _REGS if self.reg is None else np.array([float(self.reg)])

    def _choose_reg(self, samples: _Samples, seen: _Seen, factor: float | None) -> None:
        """The best regulariser for the final representation; its rows of the table replace those by fewer points."""
        regs = self._candidates(seen)
        scores = np.sum([part.sum(0) for part in samples.losses(seen, regs)], axis=0)
        best = last_of_the_best(scores)
        self.reg_, self.score_ = float(regs[best]), float(scores[best])
        self._largest_reg = self.reg is None and best == len(regs) - 1
        if factor is None:
            self.scores_ = {"reg": regs, "score": scores}
            return
        chosen = self.scores_["factor"] == factor
        self.scores_["reg"][chosen], self.scores_["score"][chosen] = regs, scores

    def _warn(self, mean: float, factor: float | None) -> None:
        """One line where the ratio, or the choice behind it, should not be trusted."""
        low, high = _MEAN_BOUNDS
        squares = float((self.weights_**2).sum())
        ess = 1.0 / squares if squares > 0 else 0.0
        doubts = []
        if self.alpha == 0.0 and self.outside_ > _MOST_OUTSIDE:
            doubts.append(f"{self.outside_:.0%} of the numerator lies outside the points of the denominator")
        if ess < _LEAST_ESS:
            doubts.append(f"it gives weight to {ess:.1f} effective points of the denominator only")
        advice = "Take a denominator that covers the numerator" + (", or alpha > 0" if self.alpha == 0.0 else "")
        if self.alpha == 0.0 and not low <= mean <= high:
            advice = advice if doubts else "Take more points, or set kernel or reg yourself"
            doubts.append(f"its mean over the denominator, which should be 1, is {mean:.2g}")
        if doubts:
            warn_user(f"the ratio should not be trusted: {'; '.join(doubts)}. {advice}.")
        elif self._largest_reg or factor == _FACTORS[0]:
            edge = "largest regulariser" if self._largest_reg else "shortest lengthscale"
            message = f"the choice ended with the {edge} of the grid: there may be too few points to see the ratio."
            warn_user(f"{message} Set kernel or reg to decide yourself.", BoundWarning)

    # ---------------------------------------------------------------------------------------------- using it

    def predict(self, X: ArrayLike, *, raw: bool = False) -> Array:
        """The ratio (t,) at points, truncated at zero; with `raw=True` as it was fitted, which may be negative.

        Outside of the support of a numerator that is a distribution, a uniform one say, it is zero.
        """
        check_is_fitted(self)
        P = self.kernel_._check(_check.by_name(X, getattr(self, "_input_names", None), "X"), "X")
        if P.shape[1:] != self._point_shape:
            raise ValueError(f"X has shape {P.shape} where rows of shape {self._point_shape} were expected")
        step = max(1, _BLOCK_ELEMENTS // len(self.coef_))
        blocks = [self.features_._coordinates(P[i : i + step]) @ self.coef_ for i in range(0, len(P), step)]
        ratio = np.concatenate(blocks)
        return ratio if raw else np.where(within(self._support, P), np.maximum(ratio, 0.0), 0.0)

    def __call__(self, X: ArrayLike) -> Array:
        """The same as `predict`."""
        return self.predict(X)

    def divergence(self) -> float:
        r"""The Pearson divergence :math:`\frac12 \int q (r_\alpha - 1)^2`, q the denominator of :math:`r_\alpha`.

        Zero for equal distributions, and estimated by leave-one-out, `-score - 1/2`, so that a value slightly below zero can
        occur. Of the hyperparameters tried, the best is taken, which biases it upwards a little. Yamada et al. (2011),
        section 2.3.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> rng = np.random.default_rng(0)
            >>> a, b = rng.normal(0.0, 1.0, 1000), rng.normal(0.5, 1.0, 1000)
            >>> 0.1 < kb.DensityRatio(random_state=0).fit(b, a).divergence() < 0.25  # the truth is 0.142
            True
        """
        check_is_fitted(self)
        return -self.score_ - 0.5


def _last_of_the_best(candidates: list[tuple[Array, Array]], kept: tuple[float, float] = (1.0, 1.0)) -> int:
    """The last candidate whose score, the sum of its losses, is as good as the best but for noise.

    `kept` are the shares of both samples that the losses were measured on: the noise that counts is that of all points.
    """
    scores = np.array([below.sum() + above.sum() for below, above in candidates])
    best = candidates[int(scores.argmin())]
    variances = [
        sum(share * len(part) * (part - other).var() for part, other, share in zip(losses, best, kept, strict=True))
        for losses in candidates
    ]
    return int(np.flatnonzero(scores <= scores.min() + _TIE * np.sqrt(variances))[-1])


def _check_sample(denominator: Any, kernel: Kernel | None) -> Array:
    if isinstance(denominator, Embedding) or is_distribution(denominator):
        raise ValueError("denominator must be a sample; only numerator may be an embedding or a distribution")
    name = "denominator"
    Z = _check.vectors(denominator, name) if kernel is None else kernel._check(denominator, name)
    if len(Z) < 2:
        raise ValueError(f"denominator needs at least two points, got {len(Z)}")
    return Z

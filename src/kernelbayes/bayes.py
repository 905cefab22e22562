"""Kernel Bayes' rules as an estimator: pairs, a prior and an observation in, a posterior embedding out.

The algebra is in `rules.bayes`; here are checks, defaults, the choice of hyperparameters, and what a posterior should say
about itself. It is longer than other files since the one estimator serves every rule of the family: what they share is
most of it, and a part of its own for each would hide that.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from . import _check
from ._estimator import HoldsGram, check_kinds
from ._linalg import LowRank
from ._typing import Array, ArrayLike, RandomState
from ._warning import warn_user
from .conditional import ConditionalEmbedding
from .density_ratio import DensityRatio
from .embeddings import (
    Embedding,
    Health,
    MeanEmbedding,
    Posteriors,
    PosteriorWarning,
    Reach,
    Surroundings,
    Weighted,
    mean_coordinates,
    read_weighted,
    sample_in_order,
)
from .embeddings._moments import contradictions, deviations
from .embeddings._weighted import effective_sizes, negative_masses
from .features import (
    Exact,
    Features,
    Recipe,
    Subspace,
    default_recipe,
    factored,
    kernel_for,
    represent,
)
from .features._explicit import NeuralFeatures
from .kernels import Gaussian, Kernel, Linear
from .kernels._bandwidth import lengthscale_of
from .kernels._distributions import zero_outside
from .learning import BANDWIDTH_FACTORS, few_landmarks, scored_features, validated, weighted_reg
from .learning._conditional import place_groups
from .rules import conditional, sum_rule
from .rules.bayes import RULES, Operator, Sample, through_likelihood

# Points drawn from a prior known in closed form, for a rule that puts its weights on the prior's points.
_PRIOR_SAMPLES = 1000
_REFERENCE_STATES = 200
# Fewer different draws of a prior do not tell where it ends.
_LEAST_DRAWS = 50
# The default kernel of posteriors: finer than the training z, since a posterior is narrower than they are.
_POSTERIOR_SCALE = 1.0 / 3.0


class _Conditioned(NamedTuple):
    """The rule for one prior: its operator, the points its weights stand on, and where weight that lacks goes."""

    operator: Operator
    support: Array
    base: Array
    reg: float
    prior_reg: float | None
    ratio: Array  # non-negative weights of the training pairs under the prior, of at most one
    beyond: Array | None = None  # which of the training pairs lie where the prior never is, as far as that is known


class KernelBayesRule(HoldsGram, BaseEstimator):
    r"""Bayes' rule without a likelihood: learned from pairs (x_i, z_i), for any prior of z and any observed x.

    Args:
        rule: one of a family (see `kernelbayes.rules.bayes`): "iw" (importance weighting; Xu et al. 2022), "kbr" (the
            original of Fukumizu et al. 2013, form (b)-II), "kbr-b1", "kbr-a1", "kbr-a2" (its other forms; Hsu 2019, table
            5.1), "dmo" (deconditional; Hsu 2019, section 5.4), "subspace" (Gebhardt et al. 2015, section 3.4).
        kernel: of x. By default Gaussian, its lengthscale chosen from the pairs.
        latent_kernel: of z, for the step from the prior to the pairs. By default Gaussian, its lengthscale chosen for each
            prior by the leave-one-out score of the density ratio ("iw", "kbr", "kbr-b1"), or from the pairs by that of the
            regression of x on z (the others).
        features: representation of x, as in `kb.ConditionalEmbedding`. By default exact up to 3,000 pairs.
        latent_features: representation of z. By default exact; for "subspace" 200 reference states, not whitened.
        reg: regulariser added to the evidence operator, whose trace is about the mean of k(x, x): lambda of Xu et al., delta
            of Kanagawa, epsilon of Hsu, gamma of Gebhardt et al. Rules with a squared inverse ("kbr", "kbr-a2", "subspace")
            need much smaller values. By default chosen: for "iw" by leave-one-out of the regression weighted for each
            prior, for "kbr-b1" by leave-one-out and for the others by hold-out, from the pairs under the training marginal.
        prior_reg: regulariser, per sample, of the step from the prior to the pairs: eta of Xu et al., lambda of Hsu, a share
            1/n of lambda of Gebhardt et al. By default chosen together with the latent kernel.
        alpha: use the alpha-relative density ratio, bounded by 1/alpha, in place of the ratio itself: steadier for a prior
            that is much narrower than the training z, at the price of leaning towards them. Only for "iw".
        normalise: "prior" (what the weights lack of one goes to the prior: an observation that says nothing leaves the
            prior), "divide" (by their sum), or None (the weights as the papers print them).
        random_state: seed for whatever is drawn at random.

    Attributes:
        kernel_, latent_kernel_, features_: what was chosen from the pairs. `latent_kernel_` is also the kernel of posteriors
            whose prior does not bring one.
        reg_: the regulariser under the training marginal; that of a posterior is in its `health`.
        likelihood_: the conditional embedding of x given z, for the rules that use one.
        validation_score_: error on held-out pairs relative to predicting the mean, where kernel or reg was chosen that way.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> z = rng.normal(0, 2, (500, 1))  # any distribution that covers the prior will do
        >>> x = z + 0.5 * rng.normal(size=(500, 1))
        >>> model = kb.KernelBayesRule(random_state=0).fit(x, z)
        >>> prior = rng.normal(1.0, 0.7, (1000, 1))  # samples; an embedding or a scipy.stats distribution will do as well
        >>> posterior = model.posterior([2.0], prior)
        >>> bool(abs(posterior.mean()[0] - 1.66) < 0.1)  # the exact posterior is normal with mean 1.66 and sd 0.41
        True
        >>> posterior.health.ok
        True
    """

    def __init__(
        self,
        rule: str = "iw",
        kernel: Kernel | None = None,
        latent_kernel: Kernel | None = None,
        features: Recipe | None = None,
        latent_features: Recipe | None = None,
        reg: float | None = None,
        prior_reg: float | None = None,
        *,
        alpha: float = 0.0,
        normalise: str | None = "prior",
        random_state: RandomState = None,
    ):
        self.rule = rule
        self.kernel = kernel
        self.latent_kernel = latent_kernel
        self.features = features
        self.latent_features = latent_features
        self.reg = reg
        self.prior_reg = prior_reg
        self.alpha = alpha
        self.normalise = normalise
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: ArrayLike, Z: ArrayLike) -> KernelBayesRule:
        """Learn from pairs: observations X (n, d) and latents Z (n, q), or what the kernels take; flat for one column."""
        self._check_settings()
        rng = _check.generator(self.random_state)
        self._seed = int(rng.integers(2**31))
        X, Z = self._check_pairs(X, Z)
        self.X_, self.Z_ = X, Z
        rule = RULES[self.rule]
        for earlier in ("_surroundings", "likelihood_", "validation_score_"):
            vars(self).pop(earlier, None)
        if rule.joint == "prior" or self._ratio_is_settled:
            self._fit_likelihood(rng)
            self.latent_kernel_ = self.likelihood_.kernel_
        else:
            self.latent_kernel_ = kernel_for(self.latent_features, self.latent_kernel) or Gaussian(
                _POSTERIOR_SCALE * np.asarray(lengthscale_of(Z, "Z", per_column=True))
            )
        kernel = kernel_for(self.features, self.kernel)
        if kernel is not None and self.reg is not None:
            self._settle(kernel, self.reg, rng)
        elif (rule.joint, rule.inverse) == ("pairs", "plain"):
            self._choose_by_leave_one_out(rng)
        else:
            self._choose_by_validation(kernel, rng)
        return self

    def _check_settings(self) -> None:
        _check.option(self.rule, "rule", tuple(RULES))
        if self.normalise is not None:
            _check.option(self.normalise, "normalise", ("prior", "divide"))
        for name in ("reg", "prior_reg"):
            if getattr(self, name) is not None:
                _check.positive(getattr(self, name), name)
        alpha = _check.scalar(self.alpha, "alpha")
        if not 0 <= alpha < 1:
            raise ValueError(f"alpha must be at least 0 and below 1, got {alpha:g}")
        if alpha and self.rule != "iw":
            raise ValueError(f"alpha, for the relative density ratio, goes with rule='iw', not {self.rule!r}")
        check_kinds(self, kernel=Kernel, latent_kernel=Kernel, features=Recipe, latent_features=Recipe)

    def _check_pairs(self, X: Any, Z: Any) -> tuple[Array, Array]:
        self._input_names = _check.column_names(X), _check.column_names(Z)
        self._point_dims = _check.dimensions(X, "X") - 1  # of one observation: a flat X has numbers, a table has rows
        kernel, latent = kernel_for(self.features, self.kernel), kernel_for(self.latent_features, self.latent_kernel)
        for value, name, given, setting in ((X, "X", kernel, "kernel"), (Z, "Z", latent, "latent_kernel")):
            if given is None and _check.table(value, name).dtype.kind in "US":
                raise ValueError(f"{name} holds text; for labels pass {setting}=kb.Delta()")
        X = _check.vectors(X, "X") if kernel is None else kernel._check(X, "X")
        Z = _check.vectors(Z, "Z") if latent is None else latent._check(Z, "Z")
        _check.same_length(X, Z, "X", "Z")
        if len(X) < 4:
            raise ValueError(f"at least four pairs are needed, got {len(X)}")
        return X, Z

    @property
    def _likelihood_is_settled(self) -> bool:
        return kernel_for(self.latent_features, self.latent_kernel) is not None and self.prior_reg is not None

    @property
    def _ratio_is_settled(self) -> bool:
        """Whether nothing about the density ratio is left to choose: then it is the sum rule, factorised once."""
        return self._likelihood_is_settled and self.alpha == 0.0

    def _fit_likelihood(self, rng: np.random.Generator) -> None:
        """The conditional embedding of x given z: the operator A of the rules that use one."""
        recipe = self.latent_features
        if recipe is None and self.rule == "subspace":
            recipe = Subspace(min(_REFERENCE_STATES, len(self.Z_)), whiten=False)
        scored = self.kernel if self.X_.dtype.kind != "f" else None
        if scored is None and self._likelihood_is_settled and self.X_.ndim == 2:
            scored = Linear()  # nothing is scored: the cheapest will do
        self.likelihood_ = ConditionalEmbedding(
            self.latent_kernel, scored, recipe, self.prior_reg, intercept=False, ard=False, random_state=rng
        ).fit(self.Z_, self.X_)

    def _choose_by_leave_one_out(self, rng: np.random.Generator) -> None:
        """Kernel and regulariser of x by leave-one-out of the regression of z on x, as for a conditional embedding."""
        scored = self.latent_kernel if self.Z_.dtype.kind != "f" else None
        regression = ConditionalEmbedding(
            self.kernel,
            scored,
            self.features,
            self.reg,
            intercept=self.normalise is not None,
            ard=False,
            random_state=rng,
        )
        targets, rng = regression._represent(self.X_, self.Z_)
        self.targets_ = targets if self.reg is None else None
        if self.reg is None:
            regression._solve(targets, rng)
        self.reg_ = regression.reg_ if self.reg is None else float(self.reg)
        self._keep(regression.kernel_, regression.features_, regression._gram)

    def _choose_by_validation(self, kernel: Kernel | None, rng: np.random.Generator) -> None:
        """Kernel and regulariser of x by hold-out of the rule itself under the training marginal."""
        chosen = validated(
            [kernel] if kernel else _bandwidths(self.X_),
            self._coordinates_under,
            self._rule_features,
            scored_features(self.Z_, self.latent_kernel if self.Z_.dtype.kind != "f" else None, rng),
            inverse=RULES[self.rule].inverse,
            reg=self.reg,
            rng=rng,
            groups=place_groups(self.Z_),
        )
        self.validation_score_ = chosen.score
        self._settle(chosen.kernel, chosen.reg, rng)

    def _settle(self, kernel: Kernel, reg: float, rng: np.random.Generator) -> None:
        self.reg_, self.targets_ = float(reg), None
        recipe = self.features or default_recipe(len(self.X_))
        self._keep(kernel, *recipe._fit(kernel, self.X_, rng))

    def _coordinates_under(self, kernel: Kernel) -> Array:
        """Features of x by which to compare kernels; the user's own representation if there is one."""
        if self.features is None or isinstance(self.features, Exact):
            return few_landmarks(kernel, self.X_)
        return self.features.fit(kernel, self.X_, random_state=self._seed)._coordinates(self.X_)

    def _rule_features(self, F: Array, rows: Array) -> tuple[Array, Array]:
        """Features (joint, evidence) that the rule works on under the training marginal."""
        rule = RULES[self.rule]
        if rule.joint == "pairs":
            return F, F
        latent = LowRank(self.likelihood_._thin_features()._coordinates(self.Z_[rows]))
        factor = conditional.operator(latent.core(), len(rows), self.likelihood_.reg_)
        smoothed = through_likelihood(F, latent, factor, latent.factor).factor
        return smoothed, (smoothed if rule.evidence == "prior" else F)

    def _keep(self, kernel: Kernel, features: Features, gram: Any) -> None:
        if self.rule != "iw":
            features, gram = factored(features, gram)
        self.kernel_, self.features_, self._gram_cache = kernel, features, gram

    # ---------------------------------------------------------------------------------------------- using it

    def posterior(self, observed: ArrayLike, prior: Any = None) -> Any:
        """The posterior of z at one observation, or at several under the same prior.

        Args:
            observed: one observation, shaped as a row of X, gives a `Posterior`; a table of them gives `Posteriors`.
            prior: of z: an embedding (`kb.MeanEmbedding`, `kb.AnalyticEmbedding`), an array of samples, or a frozen
                `scipy.stats` distribution, or a list of them for independent columns. By default the distribution of the
                training z: the ratio is then known to be one (A is the identity), and needs no estimate. Where a
                distribution cannot be, such as beside a uniform one, "iw" gives the pairs no weight.

        What depends on the prior alone is computed anew at each call: pass observations as a table where there are several.
        Warns with `kb.PosteriorWarning` when a posterior should not be trusted; the same is in its `health`.
        """
        check_is_fitted(self)
        x, one = self._check_observed(observed)
        known = None if prior is None else self._read_prior(prior)
        state = self._condition(known)
        raw = state.operator.weights(self.features_._coordinates(x))
        total = raw.sum(1)
        weights = self._normalised(raw, total, state.base)
        health = self._examine(x, known, state, total, weights)
        if not health.ok:
            message = "; ".join(health.problems)
            warn_user(f"posterior not to be trusted: {message}.", PosteriorWarning)
        kernel = prior.kernel if isinstance(prior, Embedding) else self.latent_kernel_
        several = Posteriors(state.support, weights, kernel, health)
        return several[0] if one else several

    def _check_observed(self, observed: Any) -> tuple[Array, bool]:
        observed = _check.row_by_name(observed, self._column_names(0), "observed")
        if np.ndim(observed) == 0 and self._point_dims == 1 and self.X_.shape[1:] == (1,):
            observed = [observed]
        dims = np.ndim(observed)
        one = dims == self._point_dims
        if not one and dims != self._point_dims + 1:
            raise ValueError(
                f"observed has {dims} dimensions; one observation has {self._point_dims} and several have "
                f"{self._point_dims + 1}, as X had"
            )
        wide = np.shape(observed)[0 if one else 1 :]
        if self.X_.ndim == 2 and self._point_dims == 1 and wide != self.X_.shape[1:]:
            raise ValueError(f"observed has {wide[0]} columns where X had {self.X_.shape[1]}")
        x = self.kernel_._check(_check.table(observed, "observed")[None] if one else observed, "observed")
        if x.shape[1:] != self.X_.shape[1:]:
            raise ValueError(f"observed has rows of shape {x.shape[1:]} where X had {self.X_.shape[1:]}")
        return x, one

    def _column_names(self, which: int) -> tuple[str, ...] | None:
        """Names of the columns of X (0) or Z (1), where they had any; models of older versions do not tell."""
        names = getattr(self, "_input_names", None)
        return None if names is None or names[which] is None else tuple(names[which])

    def _read_prior(self, prior: Any) -> Weighted:
        """Points with weights that sum to one, whatever the prior was given as."""
        prior = sample_in_order(prior, self._column_names(1), "prior")
        with warnings.catch_warnings():  # samples where there is no closed form are good enough here
            warnings.simplefilter("ignore", UserWarning)
            rng = np.random.default_rng(self._seed)
            read = read_weighted(prior, self.latent_kernel_, name="prior", draws=_PRIOR_SAMPLES, rng=rng)
        if read.points.shape[1:] != self.Z_.shape[1:]:
            raise ValueError(f"prior is on points of shape {read.points.shape[1:]} where Z has {self.Z_.shape[1:]}")
        return read

    def _condition(self, prior: Weighted | None) -> _Conditioned:
        """The rule for one prior: all that does not depend on the observation."""
        rule = RULES[self.rule]
        if prior is None:
            uniform = np.full(len(self.Z_), 1.0 / len(self.Z_))
            pairs = Sample(self._gram, uniform)
            return self._operate(pairs, pairs, self.Z_, uniform, self.reg_, None, positive=True)
        if rule.joint == "pairs":
            gamma, prior_reg = self._ratio(prior)
            beyond = self._beyond(prior)
            if rule.truncated:  # of the other rules the papers' weights are kept
                gamma = zero_outside(prior.support, self.Z_, gamma)
            if rule.truncated and self.normalise is not None and beyond is not None:
                gamma = np.where(beyond, 0.0, gamma) if gamma[~beyond].any() else gamma
            pairs = Sample(self._gram, np.maximum(gamma, 0.0) if rule.truncated else gamma)
            reg = self._weighted_reg(pairs.weights) if self.rule == "iw" else self.reg_
            state = self._operate(pairs, pairs, self.Z_, gamma, reg, prior_reg, positive=rule.truncated)
            return state._replace(beyond=beyond)
        model = self.likelihood_
        coordinates = model.features_._coordinates(prior.points)
        gamma = sum_rule.push(model._gram, model.factor_, prior.weights @ coordinates)
        seen = through_likelihood(self._rows(slice(None)), model._gram, model.factor_, coordinates)
        joint = Sample(seen, prior.weights)
        evidence = joint if rule.evidence == "prior" else Sample(self._gram, gamma)
        positive = bool((prior.weights >= 0).all())
        return self._operate(joint, evidence, prior.points, gamma, self.reg_, model.reg_, positive=positive)

    def _operate(
        self,
        joint: Sample,
        evidence: Sample,
        support: Array,
        gamma: Array,
        reg: float,
        prior_reg: float | None,
        *,
        positive: bool,
    ) -> _Conditioned:
        operator = Operator(joint, evidence, RULES[self.rule].inverse, reg, positive=positive)
        ratio = np.maximum(gamma, 0.0)
        ratio = ratio / ratio.max() if ratio.any() else ratio
        total = float(joint.weights.sum())
        uniform = np.full(len(support), 1.0 / len(support))
        base = joint.weights / total if abs(total) > 1e-8 * np.abs(joint.weights).sum() else uniform
        return _Conditioned(operator, support, base, reg, prior_reg, ratio)

    def _beyond(self, prior: Weighted) -> Array | None:
        """Which training z (n,) lie farther from draws of the prior than one draw lies from the others.

        An estimated ratio is not zero there, but small numbers of either sign. Those above zero are nothing beside the
        weights of pairs that the prior favours, unless the observation lies in the tail of what the prior predicts: there
        they would outweigh all others.
        """
        if self.Z_.ndim != 2 or self.Z_.dtype.kind != "f":
            return None
        rng, draws = np.random.default_rng(self._seed), prior.points
        if np.ptp(prior.weights) > 0:
            positive = np.maximum(prior.weights, 0.0)
            draws = draws[rng.choice(len(draws), _PRIOR_SAMPLES, p=positive / positive.sum())]
        if len(np.unique(draws, axis=0)) < _LEAST_DRAWS:
            return None
        return Reach(draws, self.latent_kernel_, rng).novelty(self.Z_) > 1.0

    def _ratio(self, prior: Weighted) -> tuple[Array, float]:
        """gamma, the density ratio of the prior to the training z over n, and its regulariser."""
        if self._ratio_is_settled:
            model = self.likelihood_
            mean = mean_coordinates(model.features_, prior)
            return sum_rule.push(model._gram, model.factor_, mean), model.reg_
        numerator = prior.distribution
        if numerator is None:
            numerator = MeanEmbedding(prior.points, prior.weights, self.latent_kernel_)
        with warnings.catch_warnings():  # what concerns the prior is told by the posterior's health
            warnings.simplefilter("ignore", UserWarning)
            ratio = DensityRatio(
                self.latent_kernel, self.latent_features, self.prior_reg, self.alpha, random_state=self._seed
            ).fit(numerator, self.Z_)
        return ratio.predict(self.Z_, raw=True) / len(self.Z_), ratio.reg_

    def _weighted_reg(self, weights: Array) -> float:
        """lambda for this prior, by leave-one-out of the weighted regression, unless it was given."""
        if self.targets_ is None or not weights.any():
            return self.reg_
        rng = np.random.default_rng(self._seed)
        features = self._thin_features()
        gram = self._gram if features is self.features_ else represent(features, self.X_)
        return weighted_reg(
            gram,
            lambda rows: features._coordinates(self.X_[rows]),
            weights,
            self.targets_,
            rng,
            centred=self.normalise is not None,
        )

    def _normalised(self, raw: Array, total: Array, base: Array) -> Array:
        if self.normalise is None:
            return raw
        if self.normalise == "prior":
            return conditional.complete(raw, base=base)
        empty = np.abs(total) < 1e-8 * np.abs(raw).sum(1) + 1e-300
        return np.where(empty[:, None], base, raw / np.where(empty, 1.0, total)[:, None])

    def _examine(self, x: Array, prior: Weighted | None, state: _Conditioned, total: Array, weights: Array) -> Health:
        if "_surroundings" not in vars(self):
            seen = self._seen(self.X_)
            self._surroundings = Surroundings(seen, self.Z_, self.kernel_, self.latent_kernel_, self._seed)
        near, x = self._surroundings, self._seen(x)
        novelty = near.novelty(x)
        contradiction, widening = self._spreads(prior, state, weights)
        return Health(
            total=total,
            ess=effective_sizes(weights),
            negative_mass=negative_masses(weights),
            novelty=novelty,
            conflict=novelty if prior is None else near.conflict(x, state.ratio),
            contradiction=contradiction,
            widening=widening,
            condition=state.operator.condition(),
            prior_ess=float(effective_sizes(state.ratio)),
            prior_outside=0.0 if prior is None else near.outside(prior.points, prior.weights),
            retention=state.operator.retention(),
            reg=state.reg,
            prior_reg=state.prior_reg,
        )

    def _spreads(self, prior: Weighted | None, state: _Conditioned, weights: Array) -> tuple[Array, Array]:
        """How far means lie from where intervals do, and how posteriors compare with the prior in width: (t,) each.

        Few pairs may lie within a narrow prior: its width is no less than that of those which do.
        """
        X, nothing = state.support, np.zeros(len(weights))
        readable = np.abs(weights.sum(1)) > 1e-8 * np.abs(weights).sum(1)
        if X.ndim != 2 or X.dtype.kind != "f" or not readable.all():
            return nothing, nothing
        own = weights / weights.sum(1, keepdims=True)
        base = state.base if state.beyond is None else np.where(state.beyond, 0.0, state.base)
        width = deviations(X, base[None] / base.sum()) if base.sum() > 0 else np.zeros((1, X.shape[1]))
        if prior is not None:
            width = np.maximum(width, deviations(prior.points, prior.weights[None]))
        wider = np.divide(deviations(X, own), width, out=np.zeros((len(own), X.shape[1])), where=width > 0)
        return contradictions(X, own).max(1), wider.max(1)

    def _seen(self, X: Array) -> Array:
        """What the novelty of an observation is measured on: a network's features, or x itself."""
        return np.asarray(self.features_._coordinates(X)) if isinstance(self.features_, NeuralFeatures) else X

    def _rows(self, rows: Any) -> Array:
        gram = self._gram
        return gram.factor[rows] if isinstance(gram, LowRank) else self.features_._coordinates(self.X_[rows])


def _bandwidths(X: Array) -> list[Kernel]:
    scale = np.asarray(lengthscale_of(X, "X", per_column=True))
    return [Gaussian(factor * scale) for factor in BANDWIDTH_FACTORS]


def bayes_rule(prior: Any, X: ArrayLike, Z: ArrayLike, observed: ArrayLike, rule: str = "iw", **settings: Any) -> Any:
    """The posterior embedding of z at what was observed, from a prior and pairs (x, z), in one call.

    The same as `KernelBayesRule(rule, **settings).fit(X, Z).posterior(observed, prior)`; keep the fitted rule where
    several priors meet the same pairs.

    Args:
        prior: of z: an embedding, samples, a frozen `scipy.stats` distribution, or None for the training marginal.
        X: observations of the pairs (n, d).
        Z: latents of the pairs (n, q).
        observed: one observation or several.
        rule: one of the family; see `KernelBayesRule`.
        **settings: of `KernelBayesRule`: kernels, representations, regularisers.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> rng = np.random.default_rng(0)
        >>> z = rng.uniform(-4, 4, 300)
        >>> x = z + 0.5 * rng.normal(size=300)
        >>> posterior = kb.bayes_rule(stats.norm(0, 1), x, z, observed=1.0, random_state=0)
        >>> bool(abs(posterior.mean()[0] - 0.8) < 0.1 and abs(posterior.cov()[0, 0] ** 0.5 - 0.45) < 0.1)
        True
    """
    return KernelBayesRule(rule, **settings).fit(X, Z).posterior(observed, prior)

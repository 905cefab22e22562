"""Conditional embeddings as an estimator: the distribution of y at each x, from pairs.

The linear algebra is in `rules`; here are checks, defaults, the choice of hyperparameters, and NumPy in and out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from . import _check
from ._estimator import (
    HoldsGram,
    MultiOutput,
    check_kinds,
    check_points,
    check_sample,
    check_targets,
    columns_in_order,
    one_point,
)
from ._linalg import Dense, solve
from ._typing import Array, ArrayLike, RandomState
from .embeddings import (
    CrossCovariance,
    Embedding,
    MeanEmbedding,
    Weighted,
    deviations,
    evaluate_function,
    mean_coordinates,
    probabilities,
    quantiles,
    sample_in_order,
    share_seen,
    tails,
    tell_outside,
    vectors_of,
)
from .features import Recipe, Streamed, default_recipe, kernel_for, represent
from .kernels import Gaussian, Kernel
from .kernels._bandwidth import lengthscale_of
from .learning import MOST_POINTS, default_target_kernel, holdout_reg, scored_features, tune_kernel, tune_reg
from .learning._conditional import held_out, place_groups
from .rules import chain_rule, conditional, sum_rule

# Points held out to choose reg in a sample too large to leave each out.
_HELD_OUT = 2000
# Columns at most, and pairs for each of them at least, for which lengthscales of their own are learned unasked.
_MOST_EACH, _PAIRS_EACH = 30, 10


class ConditionalEmbedding(HoldsGram, MultiOutput, RegressorMixin, BaseEstimator):
    r"""The embedding of the distribution of y given x, learned from pairs.

    .. math:: \hat\mu_{Y|x} = \sum_i w_i(x)\, \ell(y_i, \cdot), \qquad w(x) = (K + n \lambda I)^{-1} k(x)

    and, with an intercept, :math:`w_i + (1 - \sum_j w_j) / n`, which is the same as predicting y about its mean.

    Args:
        kernel: kernel of x. By default Gaussian, its lengthscale chosen by `learn`.
        target_kernel: kernel of y. By default Laplace with the median distance of each column, and hyperparameters are
            scored on its features and on y itself, so that they serve quantiles as well as means. With `kb.Linear()`
            they are chosen for the mean alone.
        features: representation of x, such as `kb.Exact()`, `kb.IncompleteCholesky(200)`, `kb.Subspace(1000)`,
            `kb.RandomFourier(500)`, `kb.Neural(network)`. By default exact up to 3,000 points, then a subspace of 1,000.
        reg: regulariser per sample: the Gram matrix of n points is shifted by `n * reg`. By default chosen by `learn`.
        intercept: shrink towards the distribution of all y instead of towards zero; the weights then sum to one. With
            False the weights are the formula above as printed.
        ard: learn one lengthscale per column of x instead of one for all. With "auto" where x has 30 columns at most and
            there are ten pairs for each. Only with `kernel=None`.
        learn: how hyperparameters are chosen: "loo" (closed-form leave-one-out) or "validation" (five folds with
            the penalty of Hsu's equation 2.52).
        progress: show a bar while a large sample is streamed; None: on a terminal when it takes more than a moment.
        random_state: seed for whatever is drawn at random (subspaces, subsamples for the choice of hyperparameters).

    Attributes:
        kernel_, target_kernel_, features_, reg_: what was chosen. `features_.rank` and `features_.error` tell the quality
            of the representation.
        tuning_: the record of the optimiser, or None where it was not needed. Beyond 1,024 pairs its regulariser is that for
            1,024 of them, and `reg_` is chosen again by hold-out on all.

    Warns with `kb.PosteriorWarning` where x is so far from the training x that the kernel sees none of them, and y is
    taken to be distributed as all y are (without an intercept, all weights are near zero there).

    Song et al. (2009); Hsu (2019), section 2.6; Gebhardt et al. (2015), section 3.1 for `features=kb.Subspace(...)`.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-2, 2, (300, 1))
        >>> y = np.where(rng.random(300) < 0.5, 1.0, -1.0) * (1 + x[:, 0] ** 2) + 0.1 * rng.normal(size=300)
        >>> model = kb.ConditionalEmbedding().fit(x, y)
        >>> model.predict([[1.0]]).shape
        (1,)
        >>> at_one = model.embed([1.0])
        >>> low, high = at_one.interval(0.8)[:, 0]
        >>> bool(-3 < low < -1.9 and 1.9 < high < 3)  # y is near -2 or 2 there
        True
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        target_kernel: Kernel | None = None,
        features: Recipe | None = None,
        reg: float | None = None,
        *,
        intercept: bool = True,
        ard: bool | str = "auto",
        learn: str = "loo",
        progress: bool | None = None,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.target_kernel = target_kernel
        self.features = features
        self.reg = reg
        self.intercept = intercept
        self.ard = ard
        self.learn = learn
        self.progress = progress
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: ArrayLike, Y: ArrayLike, groups: ArrayLike | None = None) -> ConditionalEmbedding:
        """Learn from pairs: X (n, d), or what the kernel takes, and Y (n,), (n, p) or what the target kernel takes.

        Pairs with the same label in `groups` (n,) are left out together when hyperparameters are chosen. By default those
        with equal x are, where x takes at least 20 values: each would else be told what is at its place by the others.
        """
        self._solve(*self._represent(X, Y, groups))
        self._groups = None
        return self

    def _represent(self, X: Any, Y: Any, groups: Any = None) -> tuple[Array, np.random.Generator]:
        """Check the pairs, choose the kernel and represent the sample; the targets that choices are scored on."""
        self._check_settings()
        rng = _check.generator(self.random_state)
        kernel = kernel_for(self.features, self.kernel)
        X, Y = self._check_pairs(X, Y, kernel)
        self.X_, self.Y_ = X, Y
        self.target_kernel_ = self.target_kernel or default_target_kernel(Y)
        open_choices = kernel is None or self.reg is None
        self._groups = self._group(groups) if open_choices else None
        targets = self._targets(rng) if open_choices else np.zeros((len(X), 0))
        self.tuning_ = None
        self.kernel_ = kernel or self._choose_kernel(targets, rng)
        recipe = self.features or default_recipe(len(X))
        self.features_, self._gram_cache = recipe._fit(self.kernel_, X, rng)
        return targets, rng

    def _check_settings(self) -> None:
        if self.reg is not None:
            _check.positive(self.reg, "reg")
        _check.option(self.learn, "learn", ("loo", "validation"))
        check_kinds(self, kernel=Kernel, target_kernel=Kernel, features=Recipe)
        if not isinstance(self.ard, (bool, np.bool_)) and self.ard != "auto":
            raise ValueError(f'ard must be True, False or "auto", got {self.ard!r}')
        if self.ard is True and self.kernel is not None:
            raise ValueError("ard=True learns the lengthscales of the default kernel; leave kernel=None")

    def _check_pairs(self, X: Any, Y: Any, kernel: Kernel | None) -> tuple[Array, Array]:
        X = check_sample(self, X, kernel)
        if len(X) < 2:
            raise ValueError(f"X and Y must hold at least two pairs, got {len(X)} (n_samples = {len(X)})")
        if Y is None:
            raise ValueError("ConditionalEmbedding requires y to be passed, but the target y is None")
        if self.target_kernel is None:
            if _check.no_dates(Y, "y").dtype.kind in "US":
                raise ValueError("y holds strings; for labels pass target_kernel=kb.Delta()")
            Y = check_targets(Y)
        self._vector_target = np.ndim(Y) == 1
        Y = _check.vectors(Y, "Y") if self.target_kernel is None else self.target_kernel._check(Y, "Y")
        _check.same_length(X, Y, "X", "Y")
        return X, Y

    def _targets(self, rng: np.random.Generator) -> Array:
        """What hyperparameters are scored on: features of the target kernel and, by default, y itself."""
        return scored_features(self.Y_, self.target_kernel, rng, centred=self.intercept)

    def _choose_kernel(self, targets: Array, rng: np.random.Generator) -> Kernel:
        scale = np.asarray(lengthscale_of(self.X_, "X", per_column=True))
        n, d = self.X_.shape
        each = d <= _MOST_EACH and n >= _PAIRS_EACH * d if self.ard == "auto" else self.ard
        start = Gaussian(np.ones(d) if each and d > 1 else 1.0)
        self.tuning_ = tune_kernel(
            start, self.X_ / scale, targets, reg=self.reg, method=self.learn, rng=rng, groups=self._groups
        )
        return Gaussian(self.tuning_.params.kernel.lengthscale * scale)

    def _group(self, groups: Any) -> Array | None:
        """Labels (n,) of the pairs that are left out together: as given, or those with equal x."""
        if groups is None:
            return place_groups(self.X_)
        labels = np.asarray(groups)
        if labels.ndim != 1 or len(labels) != len(self.X_):
            raise ValueError(f"groups must be one label for each of {len(self.X_)} pairs, got shape {labels.shape}")
        return np.unique(labels, return_inverse=True)[1]

    def _solve(self, targets: Array, rng: np.random.Generator) -> None:
        """Factorise once for all x, and solve for the mean of y where y has one."""
        Y = self.Y_ if self._has_mean() else np.zeros((len(self.Y_), 0))
        self.offset_ = Y.mean(0) if self.intercept else np.zeros(Y.shape[1])
        gram = self._gram
        if isinstance(gram, Streamed):
            gram = replace(gram, progress=self.progress)
        core, right = gram.normal_equations(np.concatenate([Y - self.offset_, targets], axis=1))
        self.reg_ = self._choose_reg(core, right[:, Y.shape[1] :], targets, rng)
        self.factor_ = conditional.operator(core, len(Y), self.reg_)
        self.coef_ = solve(self.factor_, right[:, : Y.shape[1]])

    def _choose_reg(self, core: Array, right: Array, targets: Array, rng: np.random.Generator) -> float:
        """The regulariser as given, or as the data has it in the coordinates that the model uses."""
        if self.reg is not None:
            return float(self.reg)
        if len(self.X_) <= MOST_POINTS and self.tuning_ is not None and self.features is None:
            return float(self.tuning_.params.reg)  # found together with the lengthscale, on all points
        features, scale = self._thin_features(), float(np.trace(core)) / len(self.X_)
        if features is not self.features_:
            core, right = represent(features, self.X_).normal_equations(targets)
        if len(self.X_) <= MOST_POINTS:
            F = features._coordinates(self.X_)
            self.tuning_ = tune_reg(F, targets, scale=scale, method=self.learn, rng=rng, groups=self._groups)
            return float(self.tuning_.params.reg)
        rows = held_out(len(targets), min(_HELD_OUT, len(targets) // 5), self._groups, rng)
        held = features._coordinates(self.X_[rows])
        return holdout_reg(core, right, held, targets[rows], len(targets), scale=scale)

    def _has_mean(self) -> bool:
        return self.Y_.ndim == 2 and self.Y_.dtype.kind == "f"

    # ---------------------------------------------------------------------------------------------- using it

    def _points(self, X: Any) -> Array:
        check_is_fitted(self)
        return check_points(self, X, self.kernel_)

    def _complete(self, weights: Array, total: Any = 1.0) -> Array:
        return conditional.complete(weights, total) if self.intercept else weights

    def _look(self, X: Array) -> Array:
        """Coordinates of points, and a warning where they lie far from all that were learned from."""
        F = self.features_._coordinates(X)
        there = "y is distributed as all y are" if self.intercept else "all weights are near zero"
        what = (
            f"the training x, as far as features_ represents them: under kernel_ it resembles none, and {there} there."
        )
        tell_outside(self._seen(X, F), what)
        return F

    def _seen(self, X: Array, F: Array) -> Array:
        if not isinstance(self._gram, Dense):
            return share_seen(self.kernel_, X, F)
        there = np.maximum(self.kernel_._diag(self.X_), _check.SMALLEST)  # coordinates are kernel values
        return share_seen(self.kernel_, X, np.abs(F / np.sqrt(there)).max(1, keepdims=True))

    def _weights(self, X: Any) -> Array:
        F = self._look(self._points(X))
        return self._complete(conditional.weights(self._gram, self.factor_, F))

    def weights(self, X: ArrayLike) -> Array:
        """Weights (t, n) on the training y, one row for each of t points."""
        return self._weights(X)

    def embed(self, x: ArrayLike) -> MeanEmbedding:
        """The embedding of y at one point x, given as (d,) or (1, d)."""
        check_is_fitted(self)
        with columns_in_order():
            weights = self._weights(one_point(self, x))
        if len(weights) != 1:
            raise ValueError(f"embed takes one point, got {len(weights)}; use weights, expect or predict for several")
        return MeanEmbedding(self.Y_, weights[0], self.target_kernel_)

    def expect(self, f: Callable[[Array], ArrayLike], X: ArrayLike) -> Array:
        """E[f(Y) | x] at each point: (t,) or (t, p) for f from targets (n, q) to (n,) or (n, p).

        It is the estimator of the papers, linear in f. Weights may be negative, so that it may leave the range of f where
        the data is thin: the probability of an event is `prob`, which stays in [0, 1].
        """
        check_is_fitted(self)
        values = evaluate_function(f, self.Y_)
        X = self._points(X)
        offset = values.mean(0) if self.intercept else np.zeros(values.shape[1:])
        return offset + self._look(X) @ solve(self.factor_, self._gram.gather(values - offset))

    def prob(
        self,
        X: ArrayLike,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        *,
        event: Callable[[Array], ArrayLike] | None = None,
    ) -> Array:
        """The probability at each point that `lower < y <= upper`, or that an event holds: (t,), or (t, p) for p events.

        Between 0 and 1, as in `MeanEmbedding.prob`: `event` is a function that takes all targets (n, q) at once and is True
        or False at each.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> rng = np.random.default_rng(0)
            >>> x = rng.uniform(-1, 1, (200, 1))
            >>> model = kb.ConditionalEmbedding().fit(x, x[:, 0] + 0.2 * rng.normal(size=200))
            >>> low, middle, high = model.prob([[-0.9], [0.0], [0.9]], lower=0.0)
            >>> bool(low < 0.1 and 0.3 < middle < 0.7 and high > 0.9)
            True
        """
        return probabilities(self.Y_, self._weights(X), lower, upper, event)

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """E[Y | x] at each point: (t,) or (t, p) as Y was; with `return_std` also the standard deviation of Y there.

        The latter is that of y about its mean, as in `MeanEmbedding.std`, not of the estimate of the mean.
        """
        X = self._points(X)
        if not self._has_mean():
            raise ValueError("Y does not hold vectors, so it has no mean; use expect with a function of Y")
        F = self._look(X)
        found = [self.offset_ + F @ self.coef_]
        if return_std:
            weights = self._complete(conditional.weights(self._gram, self.factor_, F))
            found.append(deviations(*vectors_of(self.Y_, weights)))
        found = [out[:, 0] if self._vector_target else out for out in found]
        return tuple(found) if return_std else found[0]

    def quantile(self, X: ArrayLike, q: ArrayLike) -> Array:
        """Quantiles of each column of y at each point: (t, p) for one level, (len(q), t, p) for several.

        The last dimension is dropped where Y was flat.
        """
        weights = self._weights(X)
        if not self._has_mean():
            raise ValueError("Y does not hold vectors, so it has no quantiles")
        out = quantiles(*vectors_of(self.Y_, weights), q)
        out = out[..., 0] if self._vector_target else out
        return out[0] if np.ndim(q) == 0 else out

    def interval(self, X: ArrayLike, level: float = 0.9) -> Array:
        """The central interval holding `level` of y at each point, as (lower, upper): (2, t), or (2, t, p).

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> rng = np.random.default_rng(0)
            >>> x = rng.uniform(-1, 1, (200, 1))
            >>> y = x[:, 0] + 0.2 * rng.normal(size=200)
            >>> lower, upper = kb.ConditionalEmbedding().fit(x, y).interval(x, 0.9)
            >>> bool(0.84 < np.mean((lower <= y) & (y <= upper)) < 0.97)
            True
        """
        return self.quantile(X, tails(level))

    def push(self, prior: Embedding) -> MeanEmbedding:
        """The sum rule: the embedding of y when x follows `prior`, an embedding on x.

        Of a weighted sample the points and weights are used, of a `kb.AnalyticEmbedding` the distribution; either is seen
        through the kernel of this model.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> x = np.linspace(-1, 1, 50)[:, None]
            >>> model = kb.ConditionalEmbedding().fit(x, 2 * x[:, 0])
            >>> prior = kb.MeanEmbedding(np.full((1, 1), 0.5), kernel=kb.Gaussian(1.0))
            >>> model.push(prior).mean().round(2)
            array([1.])
        """
        check_is_fitted(self)
        if not isinstance(prior, Embedding):
            raise ValueError(f"prior must be an embedding on x, such as kb.MeanEmbedding, got {type(prior).__name__}")
        self._check_names(prior)
        pushed = sum_rule.push(self._gram, self.factor_, mean_coordinates(self.features_, Weighted.of(prior)))
        total = prior.weights.sum() if isinstance(prior, MeanEmbedding) else 1.0
        return MeanEmbedding(self.Y_, self._complete(pushed, total), self.target_kernel_)

    def chain(self, prior: MeanEmbedding, order: str = "second") -> CrossCovariance:
        """The chain rule: the joint embedding of (y, x) when x follows `prior`, as an uncentred operator.

        `order="second"` pairs training y with the prior's points, `"third"` with the training x.
        """
        _check.option(order, "order", ("second", "third"))
        if order == "third":
            x, coefficients = self.X_, self.push(prior).weights
        else:
            x, (coordinates, weights) = prior.points, self._prior(prior)
            joint = chain_rule.second_order(self._gram, self.factor_, coordinates, weights)
            coefficients = self._complete(joint.T, weights[:, None]).T
        return CrossCovariance(self.Y_, x, self.target_kernel_, self.kernel_, coefficients=coefficients, centred=False)

    def _check_names(self, prior: Embedding) -> None:
        names = getattr(self, "feature_names_in_", None)
        sample_in_order(prior, None if names is None else tuple(names), "prior")

    def _prior(self, prior: MeanEmbedding) -> tuple[Array, Array]:
        if not isinstance(prior, MeanEmbedding):
            raise ValueError(f"prior must be a kb.MeanEmbedding on x, got {type(prior).__name__}")
        self._check_names(prior)
        return self.features_._coordinates(self._points(prior.points)), prior.weights

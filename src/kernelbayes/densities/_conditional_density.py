"""The distribution of y given x by parts: transform, location, scale, dependence and shape, chosen by left-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._estimator import MultiOutput, check_kinds, check_points, check_sample, columns_in_order
from .._summary import Summary
from .._typing import Array, ArrayLike, RandomState
from ..embeddings import MeanEmbedding
from ..embeddings._weighted import tails
from ..features import Recipe
from ..kernels import Gaussian
from ..learning import default_target_kernel
from ..learning._conditional import place_groups
from ._columns import ColumnDensity, FittedColumn, fit_column
from ._joint import FittedJoint, Joint, fit_joint
from ._shape import Shape
from ._transform import NAMES

SCALES = ("auto", "constant", "varying")
DEPENDENCES = ("auto", "none", "constant", "varying")
SHAPES = ("auto", "normal", "columns", "joint", "local")
# Levels over which the mean of a transformed column is taken.
_MEAN_LEVELS = 64


class ConditionalDensity(MultiOutput, BaseEstimator):
    r"""The density of y given x from pairs: a sample of residuals that is moved to where it is needed.

    For each column of y, as it is or transformed, a *location* m(x) and a *scale* s(x) are learned by kernel
    regressions, Gaussian processes with a linear trend, whose predictions with each row left out are known in closed form.
    The left-out residuals, in units of their scale, are regressed on each other (*dependence*), and what is left has a
    *shape*: normal, or a kernel density, whose weights may vary with x. Parts beyond the simplest are taken only where they
    predict left-out rows better by more than a standard error. What the regressions do not know of their own mean is part of
    the scale.

    As an embedding it has the same points in number as the sample, each moved: :math:`m(x) + s(x)\,e_i` in place of
    :math:`y_i`. So few pairs suffice where y follows x closely.

    Args:
        target_transform: "auto", or one of "identity", "sqrt", "log", for all columns or as a list for each. The last two
            are for columns that are never negative.
        scale: "auto", "constant" or "varying" with x.
        dependence: "auto", "none", "constant" or "varying" with x.
        shape: "auto", "normal", "columns" (independent, each with a kernel density where that is better), "joint" (one
            kernel density) or "local" (the same with weights that vary with x: for regimes whose chance depends on x, or
            values that are zero in most rows).
        features: representation of the smooth part of the regressions, such as `kb.RandomFourier(500)`; by default
            landmarks.
        random_state: seed of the rows that hyperparameters are learned from.

    Attributes:
        columns_: the transform, location and scale of each column.
        joint_: the `dependence` of the residuals and the `shape` of what it leaves.
        margins_: the shape of each column's residuals by itself, for `cdf`, `quantile` and `interval`.
        residuals_: left-out residuals (n, p) in units of their scale.
        target_names_: of the columns of y: those of a data frame, or `y0`, `y1`, ...
        scores_: logarithms (n,) of the density at each row, left out; NaN at rows with a missing value and, of more than
            1,000 rows, at those that the shape was not fitted to.

    Rows with the same x are left out together where x takes at least 20 values, so that repeated x are no trouble. A NaN in
    y is a missing value.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-1, 1, (300, 1))
        >>> y = np.sin(3 * x[:, 0]) + 0.1 * np.exp(x[:, 0]) * rng.normal(size=300)
        >>> model = kb.ConditionalDensity(random_state=0).fit(x, y)
        >>> lower, upper = model.interval([[-1.0], [1.0]], 0.9)
        >>> narrow, wide = upper - lower  # in truth 0.12 and 0.89
        >>> bool(0.08 < narrow < 0.2 and 0.7 < wide < 1.2)
        True
    """

    def __init__(
        self,
        *,
        target_transform: str | list[str] | tuple[str, ...] = "auto",
        scale: str = "auto",
        dependence: str = "auto",
        shape: str = "auto",
        features: Recipe | None = None,
        random_state: RandomState = None,
    ):
        self.target_transform = target_transform
        self.scale = scale
        self.dependence = dependence
        self.shape = shape
        self.features = features
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: ArrayLike, Y: ArrayLike, sample_weight: ArrayLike | None = None) -> ConditionalDensity:
        """Learn from pairs X (n, d) and Y (n,) or (n, p); NaN in Y is missing. Of weights, proportions count."""
        rng = _check.generator(self.random_state)
        X, Y, transforms = self._check_fit(X, Y)
        weights = _check.weights(sample_weight, "sample_weight", len(X))
        if weights.min() < 0 or not weights.any():
            raise ValueError("sample_weight must not be negative, nor all zero")
        kept = weights > 0
        self._row_weights = weights / weights.sum()
        X, Y, weights = X[kept], Y[kept], self._row_weights[kept]
        spread = X.std(0)
        self.centre_, self.spread_ = X.mean(0), np.where(spread > 0, spread, 1.0)
        X = np.asarray((X - self.centre_) / self.spread_)
        groups = place_groups(X)
        fitted = [self._fit_column(X, y, weights, groups, names, rng) for y, names in zip(Y.T, transforms, strict=True)]
        self.columns_: tuple[ColumnDensity, ...] = tuple(f.column for f, _ in fitted)
        self.residuals_ = np.full(Y.shape, np.nan)
        variances = np.full(Y.shape, np.nan)
        for j, (f, rows) in enumerate(fitted):
            self.residuals_[rows, j], variances[rows, j] = f.residuals, f.variances
        self._X, self._weights, self._groups, self._seed = X, weights, groups, int(rng.integers(2**31))
        every = np.arange(Y.shape[1])
        found = self._joint_of(every)
        self.joint_, self._joint_cache = found.joint, {}
        rows = found.rows
        slopes = sum(c.transform.log_slope(Y[rows, j]) for j, c in enumerate(self.columns_))
        self.scores_ = np.full(len(kept), np.nan)
        self.scores_[np.flatnonzero(kept)[rows]] = slopes - 0.5 * np.log(variances[rows]).sum(1) + found.left_out
        return self

    def _check_fit(self, X: Any, Y: Any) -> tuple[Array, Array, list[tuple[str, ...]]]:
        check_kinds(self, features=Recipe)
        for name, choices in (("scale", SCALES), ("dependence", DEPENDENCES), ("shape", SHAPES)):
            _check.option(getattr(self, name), name, choices)
        names = _check.own_names(Y)
        if Y is None:
            raise ValueError("ConditionalDensity requires y to be passed, but the target y is None")
        X = check_sample(self, X, None)
        Y = _check._as_numbers(Y, "Y")
        self._vector_target = Y.ndim == 1
        self.target_names_ = (names or tuple(f"y{j}" for j in range(Y.shape[1]))) if Y.ndim == 2 else ("y",)
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or not Y.size:
            raise ValueError(f"Y must be (n,) or (n, p), got shape {Y.shape}")
        _check.same_length(X, Y, "X", "Y")
        _check.bounded(np.where(np.isnan(Y), 0.0, Y), "Y")
        few = int((~np.isnan(Y)).sum(0).min())
        if few < 4:
            raise ValueError(f"each column of Y needs at least 4 values (n_samples = {len(X)}), one has {few}")
        transform = self.target_transform
        given = [transform] * Y.shape[1] if isinstance(transform, str) else list(transform)
        if len(given) != Y.shape[1]:
            raise ValueError(f"target_transform has {len(given)} entries for {Y.shape[1]} columns of Y")
        named = [_check.option(name, "target_transform", ("auto", *NAMES)) for name in given]
        return X, Y, [NAMES if name == "auto" else (name,) for name in named]

    def _fit_column(
        self, X: Array, y: Array, weights: Array, groups: Array | None, names: tuple[str, ...], rng: np.random.Generator
    ) -> tuple[FittedColumn, Array]:
        rows = np.flatnonzero(~np.isnan(y))
        some = weights[rows] / weights[rows].sum()
        varying = {"auto": None, "constant": False, "varying": True}[self.scale]
        grouped = None if groups is None else np.unique(groups[rows], return_inverse=True)[1].ravel()
        found = fit_column(
            X[rows], y[rows], some, grouped, rng, transforms=names, varying=varying, recipe=self.features
        )
        return found, rows

    def _joint_of(self, columns: Array) -> FittedJoint:
        """How the residuals of some columns go together; that of all of them is `joint_`."""
        rng = np.random.default_rng(self._seed)
        return fit_joint(
            self._X,
            self.residuals_[:, columns],
            self._weights,
            self._groups,
            rng,
            dependence=self.dependence,
            shape=self.shape,
        )

    # ---------------------------------------------------------------------------------------------- using it

    def _points(self, X: Any) -> Array:
        check_is_fitted(self)
        return (check_points(self, X, Gaussian()) - self.centre_) / self.spread_

    def _input_names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def _targets(self, Y: Any) -> Array:
        Y = _check._as_numbers(Y, "Y")
        p = len(self.columns_)
        Y = Y.reshape(-1, p) if Y.ndim <= 1 and (p > 1 or Y.ndim == 0) else Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or Y.shape[1] != p:
            raise ValueError(f"Y has shape {Y.shape} where {p} columns were expected")
        _check.bounded(np.where(np.isnan(Y), 0.0, Y), "Y")
        return Y

    def log_density(self, Y: ArrayLike, X: ArrayLike) -> Array:
        """Logarithm of the density (t,) of each row of Y (t, p) at the row of X (t, d); one row of either is repeated."""
        X, Y = self._points(X), self._targets(Y)
        if len(X) != len(Y) and 1 not in (len(X), len(Y)):
            raise ValueError(f"Y has {len(Y)} rows but X has {len(X)}; they must be paired, or one of them single")
        t = max(len(X), len(Y))
        return self._log_density(np.broadcast_to(Y, (t, Y.shape[1])), np.broadcast_to(X, (t, X.shape[1])))

    def _log_density(self, Y: Array, X: Array) -> Array:
        missing = np.isnan(Y)
        if not missing.any():
            return self._log_density_of(np.arange(Y.shape[1]), self.joint_, Y, X)
        out = np.zeros(len(Y))  # of nothing the density is one
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            columns, rows = np.flatnonzero(~pattern), np.flatnonzero(which.ravel() == k)
            if len(columns):
                joint = self._marginal(columns)
                out[rows] = self._log_density_of(columns, joint, Y[np.ix_(rows, columns)], X[rows])
        return out

    def _marginal(self, columns: Array) -> Joint:
        if len(columns) == len(self.columns_):
            return self.joint_
        key, cache = tuple(columns.tolist()), self.__dict__.setdefault("_joint_cache", {})
        if key not in cache:
            cache[key] = self._joint_of(columns).joint
        return cache[key]

    def _log_density_of(self, columns: Array, joint: Joint, Y: Array, X: Array) -> Array:
        E, logs = np.empty(Y.shape), np.zeros(len(Y))
        for k, column in enumerate(self.columns_[j] for j in columns):
            mean, variance, _ = column.at(X)
            E[:, k] = (column.transform(Y[:, k]) - mean) / np.sqrt(variance)
            logs += column.transform.log_slope(Y[:, k]) - 0.5 * np.log(variance)
        return joint.log_density(E, X) + logs

    def left_out_score(self) -> float:
        """Mean logarithm of the density at the rows it was fitted to, each left out: what `score` of new pairs will be.

        Of more than 1,000 rows, so many are looked at. Hyperparameters are learned from all rows, and parts chosen, so that
        it flatters a little where rows are few and columns of x many.
        """
        check_is_fitted(self)
        seen = ~np.isnan(self.scores_)
        return float(self.scores_[seen] @ self._row_weights[seen] / self._row_weights[seen].sum())

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Mean logarithm of the density of pairs."""
        logs = self.log_density(y, X)
        return float(np.average(logs, weights=_check.weights(sample_weight, "sample_weight", len(logs))))

    def residuals(self, Y: ArrayLike, X: ArrayLike) -> Array:
        """How far each column of y lies from its location, in units of its scale: (t, p), or (t,) where Y was flat.

        NaN where y is missing. One row of either is repeated.
        """
        X, Y = self._points(X), self._targets(Y)
        mean, spread = self._moments(X)
        out = np.stack([c.transform(Y[:, j]) for j, c in enumerate(self.columns_)], 1) - mean
        out /= spread
        return out[:, 0] if self._vector_target else out

    def ignorance(self, X: ArrayLike) -> Array:
        """The share of the variance of each column that is not noise but ignorance of its location: (t, p), or (t,).

        Between 0 and 1, on the scale of the column's transform. Near 1 the sample says nothing about y at x; a share above a
        fifth or so asks for more pairs there.
        """
        X = self._points(X)
        out = np.stack([column.at(X)[2] for column in self.columns_], 1)
        return out[:, 0] if self._vector_target else out

    def summary(self) -> Summary:
        """What was chosen for each column of y, in words; lengthscales are in units of the columns of x."""
        check_is_fitted(self)
        rows: dict[str, Any] = {self.target_names_[j]: self._described(j) for j in range(len(self.columns_))}
        n, d = self._X.shape
        title = f"density of {len(rows)} given {d} column{'s' * (d > 1)}, from {n} rows; "
        title += f"left-out score {self.left_out_score():.4g}"
        if len(rows) > 1:
            title += f"\ndependence: {self.joint_.dependence.described()}; shape: {self.joint_.shape.described()}"
        return Summary(rows, title)

    def _described(self, j: int) -> dict[str, str]:
        column = self.columns_[j]
        kernel = column.process.kernel
        lengths = np.broadcast_to(kernel.lengthscale, self._X.shape[1]) * self.spread_
        spread = np.sqrt(column.scale.at(self._X))
        scale = "constant" if column.scale.function is None else "varying"
        ends = f" {spread.mean():.2g}" if scale == "constant" else f" {spread.min():.2g} to {spread.max():.2g}"
        return {
            "transform": column.transform.name,
            "lengthscales": ", ".join(f"{length:.3g}" for length in lengths),
            "scale": scale + ends,
            "shape": self.margins_[j].described(),
        }

    @property
    def margins_(self) -> tuple[Shape, ...]:
        """The shape of each column's residuals by itself; found when it is asked for."""
        check_is_fitted(self)
        return tuple(self._marginal(np.array([j])).shape for j in range(len(self.columns_)))

    def _moments(self, X: Array) -> tuple[Array, Array]:
        """Location and scale (t, p) of each column, on the transformed scale."""
        parts = [column.at(X) for column in self.columns_]
        return np.stack([m for m, _, _ in parts], 1), np.sqrt(np.stack([v for _, v, _ in parts], 1))

    def quantile(self, X: ArrayLike, q: ArrayLike) -> Array:
        """Quantiles of each column of y at each point: (t, p) for one level, (len(q), t, p) for several.

        The last dimension is dropped where Y was flat.
        """
        levels = np.atleast_1d(_check.numbers(q, "q"))
        if levels.ndim != 1 or levels.min() < 0 or levels.max() > 1:
            raise ValueError(f"q must be levels between 0 and 1, got {q}")
        X = self._points(X)
        mean, spread = self._moments(X)
        out = np.empty((len(levels), *mean.shape))
        for j, (column, margin) in enumerate(zip(self.columns_, self.margins_, strict=True)):
            out[:, :, j] = column.transform.inverse(mean[:, j] + spread[:, j] * margin.quantile(levels, X))
        out = out[..., 0] if self._vector_target else out
        return out[0] if np.ndim(q) == 0 else out

    def interval(self, X: ArrayLike, level: float = 0.9) -> Array:
        """The central interval holding `level` of y at each point, as (lower, upper): (2, t), or (2, t, p)."""
        return self.quantile(X, tails(level))

    def cdf(self, Y: ArrayLike, X: ArrayLike) -> Array:
        """The distribution function of each column at the rows of Y, given those of X: (t, p), or (t,) where Y was flat."""
        X, Y = self._points(X), self._targets(Y)
        mean, spread = self._moments(X)
        t = max(len(X), len(Y))
        Y, X = np.broadcast_to(Y, (t, Y.shape[1])), np.broadcast_to(X, (t, X.shape[1]))
        out = np.empty(Y.shape)
        for j, (column, margin) in enumerate(zip(self.columns_, self.margins_, strict=True)):
            out[:, j] = margin.cdf((column.transform(Y[:, j]) - mean[:, j]) / spread[:, j], X)
        return out[:, 0] if self._vector_target else out

    def predict(self, X: ArrayLike) -> Array:
        """The mean of y at each point: (t,) or (t, p) as Y was."""
        X = self._points(X)
        mean, spread = self._moments(X)
        out = np.empty_like(mean)
        levels = (np.arange(_MEAN_LEVELS) + 0.5) / _MEAN_LEVELS
        for j, (column, margin) in enumerate(zip(self.columns_, self.margins_, strict=True)):
            if column.transform.name == "identity" and not margin.local:
                out[:, j] = column.transform.inverse(mean[:, j])
            else:
                e = margin.quantile(levels, X)
                out[:, j] = column.transform.inverse(mean[:, j] + spread[:, j] * e).mean(0)
        return out[:, 0] if self._vector_target else out

    def sample(self, X: ArrayLike, n: int = 1, random_state: RandomState = None) -> Array:
        """Draws of y at each point: (n, t, p), or (n, t) where Y was flat."""
        rng, X = _check.generator(random_state), self._points(X)
        n = _check.count(n, "n")
        X = np.tile(X, (n, 1))
        Y = self._measured(self.joint_.sample(X, rng), X).reshape(n, len(X) // n, -1)
        return Y[..., 0] if self._vector_target else Y

    def _measured(self, E: Array, X: Array) -> Array:
        """y (t, p) with these residuals at points X."""
        mean, spread = self._moments(X)
        Z = mean + spread * E
        return np.stack([c.transform.inverse(Z[:, j]) for j, c in enumerate(self.columns_)], axis=1)

    def embed(self, x: ArrayLike) -> MeanEmbedding:
        """The embedding of y at one point x: the left-out residuals, moved there."""
        check_is_fitted(self)
        with columns_in_order():
            X = self._points(np.atleast_2d(_check.numbers(_check.row_by_name(x, self._input_names(), "x"), "x")))
        if len(X) != 1:
            raise ValueError(f"embed takes one point, got {len(X)}; use predict, quantile or sample for several")
        E, weights = self.joint_.moved(X)
        points = self._measured(E, np.repeat(X, len(E), axis=0))
        return MeanEmbedding(points, weights, default_target_kernel(points))

"""Regression on a few learned points: Hsu (2019), section 5.9.2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from .. import _check
from .._estimator import MultiOutput, check_kinds, check_sample, check_targets
from .._typing import Array, ArrayLike, RandomState
from ..embeddings import share_seen, tell_outside
from ..features import IncompleteCholesky, Streamed, represent
from ..kernels import Gaussian, Kernel
from ..learning._sparse import Settled, SparseParameters, Sums, first_points, fit_sums, learn_sparse, refit_noise
from ..rules.deconditional import Primal, Task
from ._function import GaussianFunction

# Points that add less than this share of the kernel's largest value to the others are left out.
_TOLERANCE = 1e-10


class SparseRegression(GaussianFunction, MultiOutput, RegressorMixin, BaseEstimator):
    r"""Gaussian process regression on a few points, which are learned with the kernel and the noise.

    The process is known by its values at n points u, and the m rows of data tell about it through them. With
    :math:`A = (K_{uu} + \tau I)^{-1} K_{um}` they are distributed as

    .. math:: p(y) = \mathcal N(0, A^\top K_{uu} A + \sigma^2 I),

    which is regression through a mediator (`kb.TaskTransformedGP`) whose pairs are the points, twice. Time is linear in m;
    memory does not depend on it. Points, kernel and noise are learned from at most `rows` rows, drawn at random; then all
    rows are used to fit, and to set the noise.

    Args:
        points: how many points, at most as many as there are distinct rows; or the points to start from, (n, d).
        kernel: where the search for the kernel starts; by default Gaussian times a scale. With `learn=None` it is used as
            it is.
        noise: variance :math:`\sigma^2` of y about f, in units of `y` after standardising. None learns it.
        spread: :math:`\tau`, a number or "noise" for :math:`\sigma^2`, as in the paper. At zero the points stand for
            themselves. "noise" fits less closely, the more so the more rows there are, and worst with "variational".
        learn: "variational" maximises a lower bound on the marginal likelihood of the whole process (Titsias 2009),
            "marginal" that of the formula above, as in the paper; None uses what is given. The second does not mind what the
            points miss of the process: it can fit the data by chance, and its standard deviations are too large between
            points. Where points are fewer than f needs, though, its mean is the closer one.
        learn_points: whether points move; they start as centres of k-means.
        learn_kernel: whether the kernel that is given moves.
        ard: one lengthscale for each column, in the default kernel.
        rows: how many rows to learn from.
        max_iter: steps of the search, at most.
        restarts: further searches, from starts about the first, of which the best one counts. Few points have many places
            where a search may end, many points few.
        standardise: divide y by its standard deviation, column by column. The mean is always taken off.
        progress: show a bar; None: on a terminal when it takes more than a moment.
        random_state: seed of the choice of rows and of the first points.

    Attributes:
        points_: the points (n, d).
        kernel_, noise_: what was used, in units of y after standardising. A new y varies about f by the noise: its standard
            deviation is the root of `std**2 + noise_ * unit_**2`. What the points cannot follow of f counts as noise, so
            that intervals for y are right where those for f alone may be too narrow.
        log_marginal_likelihood_: of the standardised y, summed over columns; with "variational" its lower bound.
        degrees_of_freedom_: how many directions of f the data have settled, at most one for each point.
        tuning_: the record of the optimiser, or None.
        n_iter_: steps of the search; 1 where nothing was searched.
        offset_, unit_: mean and standard deviation of each column of y.

    Warns with `kb.PosteriorWarning` where x is so far from all points that the kernel sees none of them.

    Hsu (2019), section 5.9.2 and theorem 5.7 (4); Titsias (2009), equation 9.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(-3, 3, (2000, 1))
        >>> y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=2000)
        >>> model = kb.SparseRegression(points=10, random_state=0).fit(X, y)
        >>> mean, std = model.predict([[-1.0], [0.0], [1.0]], return_std=True)
        >>> bool(np.abs(mean - np.sin([-2, 0, 2])).max() < 0.05), bool(std.max() < 0.05)
        (True, True)
        >>> model.points_.shape, bool(abs(model.noise_ * model.unit_**2 - 0.04) < 0.005)
        ((10, 1), True)
    """

    def __init__(
        self,
        points: int | ArrayLike = 50,
        kernel: Kernel | None = None,
        noise: float | None = None,
        *,
        spread: float | str = 0.0,
        learn: str | None = "variational",
        learn_points: bool = True,
        learn_kernel: bool = True,
        ard: bool = True,
        rows: int = 4096,
        max_iter: int = 100,
        restarts: int = 0,
        standardise: bool = True,
        progress: bool | None = None,
        random_state: RandomState = None,
    ):
        self.points = points
        self.kernel = kernel
        self.noise = noise
        self.spread = spread
        self.learn = learn
        self.learn_points = learn_points
        self.learn_kernel = learn_kernel
        self.ard = ard
        self.rows = rows
        self.max_iter = max_iter
        self.restarts = restarts
        self.standardise = standardise
        self.progress = progress
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: ArrayLike, y: ArrayLike) -> SparseRegression:
        """Learn from rows X (m, d) and targets y, (m,) or (m, t)."""
        settled = self._decided()
        X, y = self._check_rows(X, y)
        settled = settled._replace(points=self._first(X.shape[1]))
        rng = _check.generator(self.random_state)
        z = self._standardised(y)
        self.tuning_ = learn_sparse(settled, X, z, rng) if self.learn else None
        self.n_iter_ = max(1, len(self.tuning_.path) - 1) if self.tuning_ else 1
        params = self.tuning_.params if self.tuning_ else _as_given(settled, X, rng)
        self._solve(params, X, z, settled.noise is None and len(X) > settled.rows)
        return self

    def _decided(self) -> Settled:
        check_kinds(self, kernel=Kernel)
        _check.option(self.learn, "learn", ("variational", "marginal", None))
        if self.kernel is not None and not self.kernel._takes_vectors:
            raise ValueError("the kernel takes no tables of numbers, so points cannot be learned for it")
        if self.learn is not None and self.kernel is not None and self.kernel._evaluates_on_host:
            raise ValueError("the kernel is evaluated in Python and has no gradient to learn by; take learn=None")
        if self.learn is None and (self.kernel is None or self.noise is None):
            raise ValueError("learn=None uses what is given, so kernel and noise are needed")
        if self.kernel is None and not self.learn_kernel:
            raise ValueError("learn_kernel=False uses the kernel as it is given, so one is needed")
        if self.learn and self.noise is not None and not (self.learn_kernel or self.learn_points):
            raise ValueError("nothing is left to learn; take learn=None")
        return Settled(
            0,
            self.kernel,
            None if self.noise is None else _check.positive(self.noise, "noise"),
            self._spread(),
            self.learn == "variational",
            bool(self.learn_points),
            bool(self.learn_kernel),
            bool(self.ard),
            _check.count(self.rows, "rows", at_least=2),
            _check.count(self.max_iter, "max_iter"),
            _check.count(self.restarts, "restarts", at_least=0),
            self.progress,
        )

    def _spread(self) -> float | None:
        """The spread as a number; None for that of the noise."""
        if isinstance(self.spread, str):
            _check.option(self.spread, "spread", ("noise",))
            return None
        spread = _check.scalar(self.spread, "spread")
        if spread < 0:
            raise ValueError(f"spread must not be negative, got {spread:g}")
        return spread

    def _first(self, columns: int) -> Array | int:
        """Points as they were given, checked: how many, or where they start."""
        if np.ndim(self.points) == 0:
            return _check.count(self.points, "points")
        points = _check.by_name(self.points, getattr(self, "feature_names_in_", None), "points")
        return _check.vectors(points, "points", width=columns).copy()

    def _check_rows(self, X: Any, y: Any) -> tuple[Array, Array]:
        X = check_sample(self, X, self.kernel)
        if X.ndim != 2:
            raise ValueError(f"X must be a table of numbers (rows, columns), got shape {X.shape}")
        if y is None:
            raise ValueError("SparseRegression requires y to be passed, but the target y is None")
        y = check_targets(y)
        self._flat_target = y.ndim == 1
        y = _check.vectors(y, "y")
        _check.same_length(X, y, "X", "y")
        return X, y

    def _solve(self, params: SparseParameters, X: Array, z: Array, refit: bool) -> None:
        """Fit to all rows in closed form, from sums over them; with the noise that suits all of them if asked."""
        points = np.asarray(params.points)
        self.features_ = IncompleteCholesky(tol=_TOLERANCE).fit(params.kernel, points)
        gram = represent(self.features_, X)
        if isinstance(gram, Streamed):
            gram = replace(gram, progress=self.progress)
        task = Task(*gram.normal_equations(z), (z * z).sum(0), len(z))
        sums = Sums(task, max(float(params.kernel._diag(X).sum()), float(np.trace(task.core))))
        F = self.features_._coordinates(points)
        params = refit_noise(F, sums, params) if refit else params
        found, value = fit_sums(F, sums, params)
        self.points_, self.kernel_, self.noise_ = points, params.kernel, float(params.noise)
        self.coef_, self.factor_ = found.mean, found.factor
        self.log_marginal_likelihood_ = float(value.sum())
        self.degrees_of_freedom_ = float(found.degrees())

    def _look(self, X: Array, F: Array) -> None:
        what = "the reach of all points_ under kernel_: f is the prior's there, about the mean of y."
        tell_outside(share_seen(self.kernel_, X, F), what)

    @property
    def _posterior(self) -> Primal:
        return Primal(self.coef_, self.log_marginal_likelihood_, self.factor_)


def _as_given(settled: Settled, X: Array, rng: np.random.Generator) -> SparseParameters:
    points = first_points(settled.points, settled.few(X, X, rng)[0], rng)
    return SparseParameters(settled.kernel or Gaussian(), settled.noise, points, settled.spread, settled.variational)

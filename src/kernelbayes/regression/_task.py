"""Task transformed Gaussian processes: Hsu (2019), section 5.5."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._summary import Summary
from .._typing import Array, ArrayLike, RandomState
from .._warning import warn_user
from ..embeddings import PosteriorWarning
from ..features import Recipe
from ..kernels import Gaussian, Kernel
from ..learning._mediated import Settled, learn_mediated
from ..rules import deconditional
from ..rules.deconditional import Noise
from ._function import GaussianFunction
from ._mediated import MediatedModel

_LEVELS = (0.5, 0.8, 0.9, 0.95)
# How much larger than assumed the variance of f(x) at one y may be.
_NARROW = 4.0
# A share of the targets' variance that is as good as none.
_LEAST_TOLD = 0.02
# Points of the task left out at a time.
_BLOCK = 4096


class TaskTransformedGP(GaussianFunction, MediatedModel):
    r"""A Gaussian process for f(x), learned from pairs (x, y) and, apart from them, from pairs (y, z).

    Nobody has seen x and z together. Where z tells about x through a mediator y, :math:`E[z | y] = E[f(X) | Y = y]`, f can
    be had all the same: a second process for :math:`g(y) = E[f(X) | Y = y]` ties the two samples together,

    .. math:: p(\tilde z) = \mathcal N(0, A^\top K A + \Sigma), \qquad A = (L + \tau I)^{-1} \tilde L, \qquad
              \Sigma = \tilde{\tilde L} + \sigma^2 I - \tilde L^\top (L + \tau I)^{-1} \tilde L.

    With `covariance="map"` what is not known about g is left out, :math:`\Sigma = \sigma^2 I`, and the mean of f is the
    deconditional mean embedding.

    The pairs at each y stand for all x there. Where f is steep within what x varies at one y, that is a source of error
    which the formula counts only as far as :math:`\tau` does. The band of f, but not its mean, takes in what it leaves
    out: a pair whose f(x) departs by e from g(y) moves the mean of f by its weight times e, and e is taken to vary by
    `spread_`. With `learn=None` the band is that of the formula. With few pairs it may still be too narrow, and `coverage`,
    which is that of targets, does not show it.

    Args:
        kernel: kernel k of x, and the prior covariance of f. By default Gaussian times a scale. What is given is where the
            search starts; with `learn=None` it is used as it is.
        mediator_kernel: kernel of y, and the prior covariance of g; the same holds.
        features, mediator_features: representations of x and y. By default exact up to 3,000 points, then a subspace of
            1,000. With a full covariance the mediator's points are those of both samples.
        noise: variance :math:`\sigma^2` of z about g(y), not about f(x), in units of `z_task` after standardising. None
            learns it.
        mediator_noise: variance :math:`\tau` of f(x) about g(y). None takes that of the noise, as in the paper; "learn"
            learns it by itself.
        covariance: "full" or "map" (theorem 5.7, 2 and 4).
        learn: "marginal" maximises the marginal likelihood, with a wide prior of the default kernels' parameters
            (lengthscales about the median distance, scales about the mean square of z); None uses what is given.
        ard: one lengthscale for each column, in the default kernels.
        standardise: divide z by its standard deviation, column by column. The mean is always taken off.
        random_state: seed of subspaces and subsamples.

    Attributes:
        kernel_, mediator_kernel_, noise_, mediator_noise_: what was used.
        log_marginal_likelihood_: of the standardised targets, summed over columns.
        degrees_of_freedom_: how many directions of f the task has settled.
        spread_: mean square of f(x) about its conditional mean at the pairs. Where it is much larger than
            `mediator_noise_`, a warning says so: the pairs then tell less of conditional means than is assumed. The band of
            f is wider for it, but its mean, kernels and noises were found as if they did; `mediator_noise="learn"` may help.
        tuning_: the record of the optimiser, or None.

    Hsu (2019), theorem 5.7.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> y = rng.uniform(-3, 3, (150, 1))
        >>> x = np.sin(y) + 0.1 * rng.normal(size=(150, 1))              # x and y, on one table
        >>> y_task = rng.uniform(-3, 3, (150, 1))                         # y and z, on another
        >>> z_task = np.sin(y_task[:, 0]) ** 2 + 0.1 * rng.normal(size=150)
        >>> model = kb.TaskTransformedGP().fit(x, y, y_task, z_task)
        >>> mean, std = model.predict([[-0.8], [0.0], [0.8]], return_std=True)
        >>> bool(np.abs(mean - [0.64, 0.0, 0.64]).max() < 0.15), bool(std.max() < 0.2)  # f(x) = x^2
        (True, True)
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        mediator_kernel: Kernel | None = None,
        features: Recipe | None = None,
        mediator_features: Recipe | None = None,
        noise: float | None = None,
        mediator_noise: float | str | None = None,
        *,
        covariance: str = "full",
        learn: str | None = "marginal",
        ard: bool = False,
        standardise: bool = True,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.mediator_kernel = mediator_kernel
        self.features = features
        self.mediator_features = mediator_features
        self.noise = noise
        self.mediator_noise = mediator_noise
        self.covariance = covariance
        self.learn = learn
        self.ard = ard
        self.standardise = standardise
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: ArrayLike, Y: ArrayLike, Y_task: ArrayLike, z_task: ArrayLike) -> TaskTransformedGP:
        """Learn from pairs (X, Y) of n rows and (Y_task, z_task) of m rows; z_task is (m,) or (m, t).

        Times in Y and Y_task count in seconds.
        """
        settled = self._decided()
        if z_task is None:
            raise ValueError("z_task is None; kb.DeconditionalEmbedding does without targets")
        samples = self._check_samples(X, Y, Y_task, z_task)
        rng = _check.generator(self.random_state)
        z = self._standardised(samples.z)
        self.tuning_ = None
        if self.learn is None:
            self.kernel_, self.mediator_kernel_ = settled.kernel or Gaussian(), settled.mediator_kernel or Gaussian()
            self.noise_ = float(settled.noise or 1.0)  # given, as `_decided` has made sure
            given = settled.mediator_noise
            self.mediator_noise_ = given if isinstance(given, float) else self.noise_
        else:
            self.tuning_ = learn_mediated(settled, samples._replace(z=z), rng)
            params = self.tuning_.params
            self.kernel_, self.mediator_kernel_ = params.kernel, params.mediator_kernel
            self.noise_, self.mediator_noise_ = float(params.noise), float(params.spread)
        self._represent(samples, settled.uncertain, rng)
        self.log_marginal_likelihood_ = float(self._fit.posterior.log_marginal.sum())
        self.degrees_of_freedom_ = float(self._fit.posterior.degrees())
        self.spread_ = self._spread_seen()
        vars(self).pop("_pair_weights_cache", None)
        self._warn_unmediated()
        self._warn_narrow()
        self._warn_untold()
        return self

    def _decided(self) -> Settled:
        _check.option(self.covariance, "covariance", ("full", "map"))
        _check.option(self.learn, "learn", ("marginal", None))
        kernel, mediator_kernel = self._given_kernels()
        noise = None if self.noise is None else _check.positive(self.noise, "noise")
        spread = self.mediator_noise
        if isinstance(spread, str):
            _check.option(spread, "mediator_noise", ("learn",))
        elif spread is not None:
            spread = _check.positive(spread, "mediator_noise")
        if self.learn is None and (kernel is None or mediator_kernel is None or noise is None or spread == "learn"):
            raise ValueError("learn=None uses what is given, so kernel, mediator_kernel and noise are needed")
        return Settled(kernel, mediator_kernel, noise, spread, self.covariance == "full", bool(self.ard))

    def _spread_seen(self) -> float:
        """Mean square of f(x) about its conditional mean at the pairs."""
        F, G = self.features_._coordinates(self.X_), self.mediator_features_._coordinates(self.Y_)
        away = (F - G @ self._fit.pairs.map().T) @ self._fit.posterior.mean
        return float((away**2).mean())

    def _carried(self, F: Array) -> list[tuple[float, Array]]:
        """What f(x) at the pairs departs from conditional means by, beyond what is assumed, carried over to f.

        With `learn=None` all that is given is taken at its word.
        """
        beyond = self.spread_ - self.mediator_noise_
        if self.covariance != "full" or self.learn is None or beyond <= 0:
            return []
        if "_pair_weights_cache" not in vars(self):
            self._pair_weights_cache = deconditional.pair_weights(self._fit.pairs, self._fit.sums, self._fit.noise)
        u, v = np.split(self._pair_weights_cache @ F.T, 2)
        return [(1.0, np.sqrt(beyond) * u), (-1.0, np.sqrt(beyond * self._fit.noise.spread) * v)]

    def _warn_untold(self) -> None:
        """Say so where targets are predicted no better by all others than by their mean: f is then what the prior has it."""
        mean, _ = self.left_out()
        left = np.mean((self.z_task_ - mean.reshape(self.z_task_.shape)) ** 2, axis=0)
        total = self.z_task_.var(0)
        nothing = (left > (1.0 - _LEAST_TOLD) * total) & (total > 0)
        if self.learn is not None and nothing.any():
            which = "" if self._flat_target else f" of target {int(nothing.argmax())}"
            warn_user(
                f"the task's targets{which} are predicted no better by all others than by their mean: they tell nothing of "
                "f. It comes out nearly constant, with a narrow band, whatever it is.",
                PosteriorWarning,
            )

    def _warn_narrow(self) -> None:
        if self.covariance == "full" and self.spread_ > _NARROW * self.mediator_noise_:
            seen, assumed = np.sqrt(self.spread_), np.sqrt(self.mediator_noise_)
            told = "the band of f is too narrow." if self.learn is None else "the band of f was made wider for it."
            warn_user(
                f"at one y, f(x) varies about its mean by {seen:.2g} and not, as is assumed, by {assumed:.2g} (in "
                f"standardised units): {told}",
                PosteriorWarning,
            )

    def _noise(self) -> Noise:
        return Noise(self.noise_, self.mediator_noise_, self.covariance == "full")

    def _targets(self) -> Array:
        return (self.z_task_ - self.offset_) / self.unit_

    # --------------------------------------------------------------------------------------------- diagnostics

    def left_out(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each of the task's targets given all others, in units of z: (m,) or (m, p).

        Kernels, noise and the mean of z stay as they were learned from all.
        """
        check_is_fitted(self)
        fit = self._fit
        parts = [
            deconditional.left_out(
                fit.pairs, fit.sums, fit.noise, self.mediator_features_._coordinates(self.Y_task_[rows]), z
            )
            for rows, z in self._blocks()
        ]
        mean, variance = (np.concatenate(column) for column in zip(*parts, strict=True))
        mean = self.offset_ + self.unit_ * mean
        return self._shape(mean), self._shape(np.sqrt(np.maximum(variance, 0.0))[:, None] * self.unit_)

    def _blocks(self) -> Any:
        z = self._targets()
        return ((slice(i, i + _BLOCK), z[i : i + _BLOCK]) for i in range(0, len(z), _BLOCK))

    def coverage(self, levels: ArrayLike = _LEVELS) -> Summary:
        """How often the task's targets lie in the intervals that all others predict for them, for each column of them.

        Shares near the levels say that noise and covariance fit the task. They say nothing of f where no task reaches.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> rng = np.random.default_rng(0)
            >>> x, u = rng.normal(size=(80, 1)), rng.normal(size=(200, 1))
            >>> z = np.sin(u[:, 0]) + 0.2 * rng.normal(size=200)
            >>> model = kb.TaskTransformedGP(kb.Gaussian(1.0), kb.Gaussian(1.0), noise=0.08, learn=None)
            >>> table = model.fit(x, x, u, z).coverage([0.9])
            >>> bool(0.84 < table["90 %"]["covered"] < 0.96)
            True
        """
        from scipy.stats import norm

        mean, std = self.left_out()
        away = np.abs(self.z_task_ - mean.reshape(self.z_task_.shape)) / std.reshape(self.z_task_.shape)
        widths, rows = std.reshape(away.shape).mean(0), {}
        for level in np.atleast_1d(_check.numbers(levels, "levels")):
            if not 0 < level < 1:
                raise ValueError(f"levels must lie between 0 and 1, got {level:g}")
            reach = float(norm.ppf(0.5 + level / 2))
            for j, width in enumerate(widths):
                name = f"{100 * level:g} %" + ("" if self._flat_target else f", target {j}")
                rows[name] = {"covered": float(np.mean(away[:, j] <= reach)), "width": float(2 * reach * width)}
        return Summary(rows, "intervals for targets left out")

    def plot(self, x: ArrayLike | None = None, **options: Any) -> Any:
        """Draw the function with its band, one panel for each input: see `plotting.function_band`. A Matplotlib figure."""
        from .. import plotting

        return plotting.function_band(self, x, **options)

    def plot_coverage(self, **options: Any) -> Any:
        """Draw `coverage` against the level, beside what chance allows. Returns a Matplotlib figure."""
        from .. import plotting

        return plotting.coverage(self, **options)

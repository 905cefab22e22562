"""Deconditional mean embeddings as an estimator: Hsu (2019), sections 5.4 and 5.5.2.1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._estimator import columns_in_order, one_point
from .._typing import Array, ArrayLike, RandomState
from ..conditional import ConditionalEmbedding
from ..embeddings import MeanEmbedding, evaluate_function
from ..features import Recipe, represent
from ..kernels import Gaussian, Kernel
from ..kernels._bandwidth import lengthscale_of
from ..learning._mediated import Samples, Settled, learn_mediated
from ..rules import conditional, deconditional
from ..rules.deconditional import Noise
from ._mediated import MediatedModel


class DeconditionalEmbedding(MediatedModel):
    r"""Reverses a conditional mean: from g(y) = E[f(X) | Y = y] back to f(x).

    Pairs (x, y) say how x follows from y. A second sample of y, with other frequencies perhaps, and values of g at its
    points give

    .. math:: \bar f(x) = \tilde z^\top (A^\top K A + m \epsilon I)^{-1} A^\top k(x), \qquad
              A = (L + n \lambda I)^{-1} \tilde L,

    the solution of two chained ridge regressions: of f(x) on y, and of the targets on the result (kernel ridge regression
    or, with `kb.Linear()` kernels, linear). `weights` and `expect` do the same for other functions g of the mediator.

    Where x is a function of y, however many y share an x, this is Bayes' rule with the second sample as the prior (theorem
    5.8), and `embed` gives the posterior. Where x has noise of its own, and there are pairs enough for `reg` to average over
    it, it is not: of x = y + noise and g(y) = y the deconditional mean is x, and the posterior mean nearer to the prior's.
    `kb.KernelBayesRule` is for posteriors.

    Args:
        kernel: kernel of x. By default Gaussian. With targets and `learn="marginal"`, what is given is where the search
            starts; without targets, or with `learn=None`, it is used as it is.
        mediator_kernel: kernel of y; the same holds.
        features, mediator_features: representations of x and y; by default exact up to 3,000 points, then a subspace.
        reg: regulariser :math:`\lambda` of the conditional mean, per pair.
        task_reg: regulariser :math:`\epsilon` of the task, per point of it. None takes `n reg / m`, as theorem 5.7 has it.
        intercept: predict z about its mean, so that weights sum to one.
        learn: "marginal" (Hsu, theorem 5.7, 4) where there are targets. Without them the kernel of x has its median
            distance, and those of the mediator and `reg` are the ones that predict features of x best, left out one by one.
        ard: one lengthscale for each column, in the default kernels.
        random_state: seed of subspaces and subsamples.

    Attributes:
        kernel_, mediator_kernel_, reg_, task_reg_: what was used.
        tuning_: the record of the optimiser, or None.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> y = rng.uniform(-2, 2, (300, 1))
        >>> x = y + 0.5 * rng.normal(size=(300, 1))
        >>> y_task = rng.uniform(-2, 2, (300, 1))
        >>> model = kb.DeconditionalEmbedding().fit(x, y, y_task)
        >>> f = model.expect(lambda y: y[:, 0], [[-1.0], [0.0], [1.0]])
        >>> bool(np.abs(f - [-1.0, 0.0, 1.0]).max() < 0.15)  # E[X | Y = y] = y, so f(x) = x
        True
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        mediator_kernel: Kernel | None = None,
        features: Recipe | None = None,
        mediator_features: Recipe | None = None,
        reg: float | None = None,
        task_reg: float | None = None,
        *,
        intercept: bool = True,
        learn: str | None = "marginal",
        ard: bool = False,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.mediator_kernel = mediator_kernel
        self.features = features
        self.mediator_features = mediator_features
        self.reg = reg
        self.task_reg = task_reg
        self.intercept = intercept
        self.learn = learn
        self.ard = ard
        self.random_state = random_state

    def fit(
        self, X: ArrayLike, Y: ArrayLike, Y_task: ArrayLike, z_task: ArrayLike | None = None
    ) -> DeconditionalEmbedding:
        """Learn from pairs (X, Y) of n rows, m points Y_task, and targets z_task (m,) or (m, t) at them, if any.

        Times in Y and Y_task count in seconds.
        """
        _check.option(self.learn, "learn", ("marginal", None))
        reg, task_reg = (
            None if value is None else _check.positive(value, name)
            for value, name in ((self.reg, "reg"), (self.task_reg, "task_reg"))
        )
        samples = self._check_samples(X, Y, Y_task, z_task)
        rng = _check.generator(self.random_state)
        n, m = len(samples.X), len(samples.z)
        self.offset_ = samples.z.mean(0) if self.intercept else np.zeros(samples.z.shape[1])
        self.tuning_ = None
        kernel, mediator_kernel = self._given_kernels()
        settled = kernel is not None and mediator_kernel is not None and reg is not None
        if self.learn is None or (settled and not samples.z.shape[1]):
            if kernel is None or mediator_kernel is None or reg is None:
                raise ValueError("learn=None uses what is given, so kernel, mediator_kernel and reg are needed")
            self.kernel_, self.mediator_kernel_, self.reg_ = kernel, mediator_kernel, reg
        elif samples.z.shape[1]:
            self._by_marginal(samples, reg, task_reg, rng)
        else:
            self._without_targets(samples, reg, rng)
        self.task_reg_ = n * self.reg_ / m if task_reg is None else task_reg
        self._represent(samples, False, rng)
        self._warn_unmediated()
        return self

    def _by_marginal(
        self, samples: Samples, reg: float | None, task_reg: float | None, rng: np.random.Generator
    ) -> None:
        n, m = len(samples.X), len(samples.z)
        spread: float | str | None = "learn" if task_reg is not None else None
        settled = Settled(
            *self._given_kernels(),
            noise=m * task_reg if task_reg is not None else (n * reg if reg is not None else None),
            mediator_noise=n * reg if reg is not None else spread,
            uncertain=False,
            ard=bool(self.ard),
        )
        unit = samples.z.std(0)  # the estimate is linear in z, so that its units leave kernels and regularisers alone
        z = (samples.z - self.offset_) / np.where(unit > 0, unit, 1.0)
        self.tuning_ = learn_mediated(settled, samples._replace(z=z), rng)
        params = self.tuning_.params
        self.kernel_, self.mediator_kernel_ = params.kernel, params.mediator_kernel
        self.reg_ = float(params.spread) / n

    def _without_targets(self, samples: Samples, reg: float | None, rng: np.random.Generator) -> None:
        """The conditional mean of x's features as well as it can be had, with the median distance for the kernel of x."""
        kernel, mediator_kernel = self._given_kernels()
        self.kernel_ = kernel or Gaussian(lengthscale_of(samples.X, "X", per_column=True))
        likelihood = ConditionalEmbedding(
            mediator_kernel, self.kernel_, self.mediator_features, reg, intercept=False, ard=self.ard, random_state=rng
        ).fit(samples.Y, samples.X)
        self.mediator_kernel_, self.reg_, self.tuning_ = likelihood.kernel_, likelihood.reg_, likelihood.tuning_

    def _noise(self) -> Noise:
        return Noise(len(self.z_task_) * self.task_reg_, len(self.X_) * self.reg_, False)

    def _targets(self) -> Array:
        return self.z_task_ - self.offset_

    # ---------------------------------------------------------------------------------------------- using it

    def weights(self, X: ArrayLike) -> Array:
        """Weights (t, m) on the points of the task, one row for each of t points."""
        F = self.features_._coordinates(self._points(X))
        fit, of_task = self._fit, represent(self.mediator_features_, self.Y_task_)
        weights = deconditional.weights(fit.pairs, fit.posterior, fit.noise, of_task, F)
        return conditional.complete(weights) if self.intercept else weights

    def embed(self, x: ArrayLike) -> MeanEmbedding:
        """The embedding of y at one point x, given as (d,) or (1, d): the posterior when Y_task is the prior."""
        check_is_fitted(self)
        with columns_in_order():
            weights = self.weights(one_point(self, x))
        if len(weights) != 1:
            raise ValueError(f"embed takes one point, got {len(weights)}; use weights, expect or predict for several")
        return MeanEmbedding(self.Y_task_, weights[0], self.mediator_kernel_)

    def expect(self, f: Callable[[Array], ArrayLike], X: ArrayLike) -> Array:
        """The deconditional mean of f at each point: (t,) or (t, p) for f from (m, q) to (m,) or (m, p)."""
        return self.weights(X) @ evaluate_function(f, self.Y_task_)

    def predict(self, X: ArrayLike) -> Array:
        """The deconditional mean of the targets: (t,), or (t, p) as z was."""
        X = self._points(X)
        if not self.z_task_.shape[1]:
            raise ValueError("there are no targets: fit with z_task, or use expect with a function of y")
        F = self.features_._coordinates(X)
        self._look(X, F)
        return self._shape(self.offset_ + F @ self._posterior.mean)

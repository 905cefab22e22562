"""What fitted functions share: predictions of a mean and, where f has a posterior, of what is not known of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._estimator import check_points
from .._linalg import gaussian_draws
from .._typing import Array, ArrayLike, RandomState
from ..features import Features
from ..kernels import Kernel
from ..rules.deconditional import Posterior


class FittedFunction:
    """A function of x in the coordinates of features, for one target or several."""

    kernel_: Kernel
    features_: Features
    _flat_target: bool

    def _points(self, X: Any) -> Array:
        check_is_fitted(self)
        return check_points(self, X, self.kernel_)

    def _shape(self, values: Array) -> Array:
        return values[..., 0] if self._flat_target else values

    @property
    def _posterior(self) -> Posterior:
        raise NotImplementedError

    def _look(self, X: Array, F: Array) -> None:
        """Warn, before a prediction, of what may be wrong with it."""

    def _variance(self, X: Array, F: Array) -> Array:
        """Posterior variance of f at points, before units: what coordinates miss of the kernel is unknown as well."""
        return np.maximum(self.kernel_._diag(X) - (F * F).sum(1), 0.0) + self._posterior.variance(F)


class GaussianFunction(FittedFunction):
    """A Gaussian process that was fitted to targets about `offset_`, in units of `unit_`."""

    offset_: Array
    unit_: Array
    standardise: bool

    def _standardised(self, z: Array) -> Array:
        """Targets (m, t) as they are fitted to, having set offset and unit."""
        self.offset_, spread = z.mean(0), z.std(0)
        self.unit_ = np.where(spread > 0, spread, 1.0) if self.standardise else np.ones(len(spread))
        return (z - self.offset_) / self.unit_

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean of f at points, (t,) or, as targets were, (t, p); with its standard deviation or covariance (t, t, ...).

        They are those of f itself, without any noise.
        """
        if return_std and return_cov:
            raise ValueError("ask for return_std or return_cov, not both")
        X = self._points(X)
        F = self.features_._coordinates(X)
        self._look(X, F)
        mean = self._shape(self.offset_ + self.unit_ * (F @ self._posterior.mean))
        if return_std:
            carried = self._carried(F)
            variance = self._variance(X, F) + sum(
                (sign * (part * part).sum(0) for sign, part in carried), np.zeros(len(X))
            )
            return mean, self._shape(np.sqrt(np.maximum(variance, 0.0))[:, None] * self.unit_)
        if return_cov:
            return mean, self._shape(self._covariance(X, F)[..., None] * self.unit_**2)
        return mean

    def sample(self, X: ArrayLike, n: int = 1, random_state: RandomState = None) -> Array:
        """Draws (n, t), or (n, t, p), of the function at points."""
        X = self._points(X)
        F = self.features_._coordinates(X)
        self._look(X, F)
        mean, rng = F @ self._posterior.mean, _check.generator(random_state)
        noise = rng.standard_normal((_check.count(n, "n"), mean.shape[1], len(X)))
        draws = mean.T + gaussian_draws(self._covariance(X, F), noise)
        return self._shape(self.offset_ + self.unit_ * draws.swapaxes(1, 2))

    def _covariance(self, X: Array, F: Array) -> Array:
        own = self.kernel_._gram(X, X) - F @ F.T + self._posterior.covariance(F)
        return own + sum((sign * part.T @ part for sign, part in self._carried(F)), np.zeros(own.shape))

    def _carried(self, F: Array) -> list[tuple[float, Array]]:
        """Signs and matrices B (r, t) of covariances `sign B' B` that the posterior leaves out: none of a process alone."""
        return []

"""A process that has met its data, ready for many points: in the columns of the kernel itself, without solving.

Fitting needs features whose products are the kernel, `F = c L^-T`, c(x) the columns `[1, b x, s k(R, x)]` of landmarks R.
Afterwards that triangular solve is moved into what multiplies the features: the mean is `c . L^-T w`, the variance the
square of `(A^-1/2 L^-1) c`, one product with a triangular matrix. The exponents of the Gaussian kernel are a linear function
of `[1, x, x^2]`, so that all columns are one matrix product and an exponential.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .._linalg import consume_triangular, solve_lower
from .._typing import Array
from ..features._landmark import LandmarkFeatures
from ..kernels import Gaussian
from ._process import ProcessFeatures

# Numbers in a block of columns: it stays near the cache.
_BLOCK = 2**19


@dataclasses.dataclass(frozen=True, eq=False)
class Function:
    """A function with its uncertainty.

    Attributes:
        features: of the process.
        exponents: what makes columns of `[1, x, x^2]`, (2 d + 1, r); None where features are not on landmarks.
        weights: the mean is this combination (r,) of columns.
        root: lower triangular; the variance is the squared norm of it times the columns. None where it is not wanted.
    """

    features: ProcessFeatures
    exponents: Array | None
    weights: Array
    root: Array | None

    @classmethod
    def of(cls, features: ProcessFeatures, weights: Array, factor: Array | None = None) -> Function:
        """From the weights of features, and the Cholesky factor of their precision."""
        smooth, linear = features.smooth, 1 + np.size(features.kernel.slope)
        root = None if factor is None else solve_lower(factor, np.eye(len(factor)))
        if not isinstance(smooth, LandmarkFeatures) or not isinstance(smooth.kernel, Gaussian):
            return cls(features, None, weights, root)
        if smooth.whitened:
            solved = solve_lower(smooth.factor, weights[linear:], transposed=True)
            weights = np.concatenate([weights[:linear], solved])
            if factor is not None:
                whiten = np.eye(len(factor))
                whiten[linear:, linear:] = solve_lower(smooth.factor, np.eye(len(smooth.factor)))
                root = solve_lower(factor, whiten)
        return cls(features, _exponents(features, smooth.points), weights, None if root is None else root.copy("F"))

    def mean(self, X: Array) -> Array:
        """Its mean (t,) at points (t, d)."""
        out = np.empty(len(X))
        for rows in _blocks(len(X), len(self.weights)):
            out[rows] = self._columns(X[rows]) @ self.weights
        return out

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Its mean and variance (t,) at points (t, d)."""
        assert self.root is not None
        mean, variance = np.empty(len(X)), np.empty(len(X))
        for rows in _blocks(len(X), len(self.weights)):
            C = self._columns(X[rows])
            mean[rows] = C @ self.weights
            half = consume_triangular(self.root, C)
            variance[rows] = np.einsum("ij,ij->i", half, half)
        return mean, variance

    def _columns(self, X: Array) -> Array:
        if self.exponents is None:
            return self.features(X)
        C = np.concatenate([np.ones((len(X), 1)), X, X * X], axis=1) @ self.exponents
        smooth = C[:, 1 + X.shape[1] :]
        np.exp(smooth, out=smooth)
        return C


def _exponents(features: ProcessFeatures, points: Array) -> Array:
    """The matrix that `[1, x, x^2]` is multiplied with; the last columns are then exponents."""
    kernel, d = features.kernel, points.shape[1]
    squares = np.broadcast_to(1.0 / np.square(kernel.lengthscale), d)
    out = np.zeros((2 * d + 1, 1 + d + len(points)))
    out[0, 0] = 1.0
    out[1 : 1 + d, 1 : 1 + d] = np.diag(np.broadcast_to(kernel.slope, d))
    out[0, 1 + d :] = np.log(kernel.size) - 0.5 * points**2 @ squares
    out[1 : 1 + d, 1 + d :] = (points * squares).T
    out[1 + d :, 1 + d :] = -0.5 * squares[:, None]
    return out


def _blocks(n: int, columns: int) -> list[slice]:
    size = max(1, _BLOCK // columns)
    return [slice(i, i + size) for i in range(0, n, size)]

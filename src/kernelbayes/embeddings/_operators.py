r"""Covariance and cross-covariance operators, from samples or from a rule.

.. math:: \hat C_{XY} = \sum_{ij} B_{ij}\, k(x_i, \cdot) \otimes \ell(y_j, \cdot)

with `B = diag(w)` for a weighted sample of pairs, less `w w' / sum(w)` when centred, or a full matrix from the chain rule.
Hsu (2019), definition 2.24; Quadrature notes, section 1. Norms go through the kernels; spectra through features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from .. import _check
from .._linalg import eigh, singular_values
from .._typing import Array, ArrayLike
from ..features import Exact, Recipe, check_recipe
from ..kernels import Kernel, check_kernel, dense_gram
from ._mean import MeanEmbedding
from ._weighted import evaluate_function


def _factor(recipe: Recipe | None, kernel: Kernel, X: Array) -> Array:
    return (Exact() if recipe is None else recipe).fit(kernel, X, random_state=0).transform(X)


class CrossCovariance:
    """The cross-covariance operator of two variables.

    Args:
        X, Y: samples of the two variables, paired unless a matrix of coefficients is given.
        kernel_x, kernel_y: their kernels.
        coefficients: weights of the pairs (n,), uniform by default, or a matrix (n, m) on all combinations.
        centred: whether to subtract the product of the means; only for paired samples.
        features: the representation used for spectra, `kb.Exact()` by default.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> x = np.random.default_rng(0).normal(size=300)
        >>> c = kb.CrossCovariance(x, x + 1.0, kb.Linear(), kb.Linear())
        >>> np.allclose(c.singular_values(1), x.var())
        True
    """

    def __init__(
        self,
        X: Any,
        Y: Any,
        kernel_x: Kernel,
        kernel_y: Kernel,
        *,
        coefficients: ArrayLike | None = None,
        centred: bool = True,
        features: Recipe | None = None,
    ):
        self.kernel_x, self.kernel_y = check_kernel(kernel_x, "kernel_x"), check_kernel(kernel_y, "kernel_y")
        self.x, self.y = kernel_x._check(X, "X"), kernel_y._check(Y, "Y")
        if coefficients is not None and _check.table(coefficients, "coefficients").ndim == 2:
            self.coefficients = _check.vectors(coefficients, "coefficients")
            if self.coefficients.shape != (len(self.x), len(self.y)) or centred:
                raise ValueError("a matrix of coefficients needs shape (len(X), len(Y)) and centred=False")
        else:
            _check.same_length(self.x, self.y, "X", "Y")
            self.coefficients = _check.weights(coefficients, "coefficients", len(self.x))
            total = float(self.coefficients.sum())
            if centred and abs(total) <= 1e-10 * np.abs(self.coefficients).sum():
                raise ValueError(f"the coefficients, or weights, sum to {total:.3g}, so there is no mean to centre on")
        self.centred, self.features = centred, check_recipe(features)

    def _times(self, V: Array) -> Array:
        """`B V`, without forming a diagonal B."""
        if self.coefficients.ndim == 2:
            return self.coefficients @ V
        w = self.coefficients.reshape(-1, *[1] * (V.ndim - 1))
        return w * (V - self.coefficients @ V / self.coefficients.sum()) if self.centred else w * V

    def apply(self, g: Callable[[Array], ArrayLike]) -> MeanEmbedding:
        """`C_XY g`: the embedding on x with weights `B g(y)`, for a function g of y (centred if C is)."""
        return MeanEmbedding(self.x, self._times(evaluate_function(g, self.y)), self.kernel_x)

    def expect(self, f: Callable[[Array], ArrayLike], g: Callable[[Array], ArrayLike]) -> float:
        """`<f, C_XY g>`: the expectation of f(x) g(y), or their covariance if C is centred."""
        return float(evaluate_function(f, self.x) @ self._times(evaluate_function(g, self.y)))

    def inner(self, other: CrossCovariance) -> float:
        """The Hilbert-Schmidt inner product with another operator on the same spaces."""
        _same_spaces(self, other)
        K = dense_gram(self.kernel_x, other.x, self.x)
        L = dense_gram(self.kernel_y, self.y, other.y)
        return float((self._times(L).T * other._times_transposed(K)).sum())

    def _times_transposed(self, V: Array) -> Array:
        """`B' V`; a diagonal or centred B is its own transpose."""
        return self.coefficients.T @ V if self.coefficients.ndim == 2 else self._times(V)

    def norm(self) -> float:
        """The Hilbert-Schmidt norm; its square, when centred, is HSIC."""
        return float(np.sqrt(max(self.inner(self), 0.0)))

    def distance(self, other: CrossCovariance) -> float:
        """The Hilbert-Schmidt distance to another operator on the same spaces."""
        cross = self.inner(other)
        return float(np.sqrt(max(self.inner(self) + other.inner(other) - 2.0 * cross, 0.0)))

    def singular_values(self, count: int | None = None) -> Array:
        """The largest singular values, in falling order."""
        count = None if count is None else _check.count(count, "count")
        F, V = _factor(self.features, self.kernel_x, self.x), _factor(self.features, self.kernel_y, self.y)
        return singular_values(F.T @ self._times(V))[:count]


def _same_spaces(a: CrossCovariance, b: Any) -> None:
    if not isinstance(b, CrossCovariance):
        raise ValueError(f"expected a covariance operator, got {type(b).__name__}")
    if not bool(eqx.tree_equal((a.kernel_x, a.kernel_y), (b.kernel_x, b.kernel_y))):
        raise ValueError("the operators have different kernels")
    if (a.x.shape[1:], a.y.shape[1:]) != (b.x.shape[1:], b.y.shape[1:]):
        raise ValueError("the operators have points of different widths")


class Covariance(CrossCovariance):
    r"""The covariance operator of one variable, with its spectrum.

    With `centred=False` its eigenvalues are those of the integral operator :math:`f \mapsto \int k(\cdot, y) f(y)\, dP(y)`,
    and its eigenfunctions, scaled to unit mean square under the sample, are the Nystrom estimate of the Mercer expansion.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> grid = (np.arange(400) + 0.5) / 400
        >>> c = kb.Covariance(grid, kb.Brownian(), centred=False)
        >>> (c.eigenvalues(2) * np.pi**2).round(3)  # exactly 4, 4/9 for Brownian motion
        array([4.   , 0.444])
    """

    def __init__(
        self,
        X: Any,
        kernel: Kernel,
        *,
        weights: ArrayLike | None = None,
        centred: bool = True,
        features: Recipe | None = None,
    ):
        weights = None if weights is None else _check.numbers(weights, "weights")
        if weights is not None and weights.ndim != 1:
            raise ValueError(f"weights has shape {weights.shape} where one number per point was wanted")
        super().__init__(X, X, kernel, kernel, coefficients=weights, centred=centred, features=features)
        self.weights, self.kernel, self._columns = self.coefficients, kernel, _check.own_names(X)

    def _eigen(self) -> tuple[Any, Array, Array, Array]:
        recipe = Exact() if self.features is None else self.features
        features = recipe.fit(self.kernel, self.x, random_state=0)
        F = features.transform(self.x)
        mean = self.weights @ F / self.weights.sum() if self.centred else np.zeros(F.shape[1])
        signed = bool((self.weights < 0).any())
        values, vectors = eigh((F - mean).T @ (self.weights[:, None] * (F - mean)), definite=not signed)
        return features, mean, values, vectors

    def eigenvalues(self, count: int | None = None) -> Array:
        """The largest eigenvalues, in falling order."""
        count = None if count is None else _check.count(count, "count")
        return self._eigen()[2][:count]

    def eigenfunctions(self, X: ArrayLike, count: int | None = None) -> Array:
        """The first `count` eigenfunctions at points, (n, count), scaled to unit mean square under the sample.

        Without `count`, all that rounding leaves.
        """
        features, mean, values, vectors = self._eigen()
        rank = int((values > 1e-12 * values[0]).sum())
        count = max(rank, 1) if count is None else _check.count(count, "count")
        if count > rank:
            raise ValueError(f"count={count} exceeds the numerical rank {rank}")
        X = _check.by_name(X, getattr(self, "_columns", None), "X")
        return (features.transform(X) - mean) @ vectors[:, :count] / np.sqrt(values[:count])

"""Kernels built on something else: on sets of points, on a feature map, on a user's function, on a ready Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check
from .._backend import float64, is_traced, map_network, namespace
from .._typing import AnyArray, Array
from ._base import Kernel, check_kernel, dense_gram
from ._parameters import positive
from ._stationary import Gaussian, _exp


class SetKernel(Kernel):
    r"""A Gaussian kernel of the maximum mean discrepancy between samples: points are themselves sets of points.

    .. math:: k(S, T) = \exp\Big(-\frac{\|\hat\mu_S - \hat\mu_T\|^2_{\mathcal H}}{2 \ell^2}\Big)

    where the embeddings are taken with the `base` kernel. Input is a list of arrays (n_i, d), of any lengths. Hsu (2019),
    section 4.6; Muandet et al. (2012).

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> near, also_near, far = rng.normal(size=(40, 1)), rng.normal(size=(60, 1)), rng.normal(3.0, size=(50, 1))
        >>> kb.SetKernel(lengthscale=0.5).gram([near], [also_near, far]).round(2)
        array([[0.91, 0.12]])
    """

    base: Kernel
    lengthscale: AnyArray = positive()
    _host_only: ClassVar[bool] = True
    _on_vectors: ClassVar[bool] = False

    def __init__(self, base: Kernel | None = None, lengthscale: Any = 1.0):
        if base is not None and not isinstance(base, Kernel):
            raise ValueError(f"base must be a kernel, got {base!r}")
        self.base = Gaussian() if base is None else base
        self.lengthscale = lengthscale

    def _check(self, X: Any, name: str) -> Array:
        sets = _check.objects(X, name)
        checked = np.empty_like(sets)
        for i, points in enumerate(sets):
            checked[i] = self.base._check(_check.alike(points, sets[0], f"{name}[{i}]"), f"{name}[{i}]")
        if len({points.shape[1:] for points in checked}) > 1:
            raise ValueError(f"the sets in {name} have points of different widths")
        return checked

    def _check_pair(self, X: Any, Y: Any) -> tuple[Array, Array]:
        X, Y = self._check(X, "X"), self._check(Y, "Y")
        if X[0].shape[1:] != Y[0].shape[1:]:
            raise ValueError(f"the sets in X have points of width {X[0].shape[1:]} but those in Y {Y[0].shape[1:]}")
        return X, Y

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        pool = np.concatenate(list(Y))
        sizes = np.array([len(points) for points in Y])
        rows = [_group_means(self._base_gram(points, pool).mean(0), sizes) for points in X]
        xp = namespace(*rows)
        squared = self._norms(X)[:, None] + self._norms(Y) - 2.0 * xp.stack(rows)
        return _exp(-xp.maximum(squared, 0.0) / (2.0 * self.lengthscale**2))

    def _norms(self, X: Array) -> AnyArray:
        norms = [self._base_gram(points, points).mean() for points in X]
        return namespace(*norms).stack(norms)

    def _base_gram(self, X: Array, Y: Array) -> AnyArray:
        return self.base._gram(X, Y) if is_traced(self.base) else dense_gram(self.base, X, Y)

    def _diag(self, X: AnyArray) -> AnyArray:
        return np.ones(len(X))


def _group_means(values: AnyArray, sizes: Array) -> AnyArray:
    """Means of runs of values, of these lengths."""
    if namespace(values) is np:
        return np.add.reduceat(values, np.cumsum(sizes) - sizes) / sizes
    return jax.ops.segment_sum(values, np.repeat(np.arange(len(sizes)), sizes), len(sizes)) / sizes


class MappedKernel(Kernel):
    r"""A kernel on a feature map, :math:`k(x, y) = k_0(g(x), g(y))`.

    `map` takes an array of points (n, d) to features (n, p); an Equinox module is taken to act on one point and is
    applied to each, and its points may be arrays of any shape, such as images (n, height, width). Its parameters are part of
    the kernel. Hsu (2019), section 3.9.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> angle = kb.MappedKernel(lambda a: np.concatenate([np.cos(a), np.sin(a)], axis=1), kb.Gaussian())
        >>> angle.gram([0.0], [2 * np.pi]).round(6)
        array([[1.]])
    """

    map: Callable[[Any], Any]
    kernel: Kernel

    def __check_init__(self) -> None:
        if not callable(self.map):
            raise ValueError(f"map must be a function of points or a network, got {type(self.map).__name__}")
        check_kernel(self.kernel)

    @property
    def _evaluates_on_host(self) -> bool:
        return not isinstance(self.map, eqx.Module) or self.kernel._evaluates_on_host

    def _check(self, X: Any, name: str) -> Array:
        return _check.arrays(X, name) if isinstance(self.map, eqx.Module) else _check.vectors(X, name)

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return self.kernel._gram(self._features(X), self._features(Y))

    def _diag(self, X: AnyArray) -> AnyArray:
        return self.kernel._diag(self._features(X))

    def _features(self, X: AnyArray) -> AnyArray:
        features = apply_map(self.map, X)
        return features if namespace(features) is jnp else self.kernel._check(features, "map(X)")


def apply_map(function: Callable[[Any], Any], X: AnyArray) -> AnyArray:
    """Features (n, p) of points: a network is mapped over them, a plain function takes them all at once."""
    if isinstance(function, eqx.Module):
        try:
            out = map_network(function, jnp.asarray(X) if is_traced(function) else X)
        except TypeError as error:
            shape = f"with {X.shape[1]} columns" if X.ndim == 2 else f"of shape {X.shape[1:]}"
            message = f"the network does not take points {shape}: {error}"
            raise ValueError(message) from error
    elif is_traced(X):
        out = function(X)
    else:  # it may use JAX inside, and should then not fall to single precision
        out = float64(function)(X)
        out = out if is_traced(out) else _check.table(out, "the feature map's result")
    if out.ndim != 2 or out.shape[0] != X.shape[0]:
        raise ValueError(f"the feature map returned shape {out.shape} for {X.shape[0]} points; (n, p) was wanted")
    return out


class FunctionKernel(Kernel):
    """A kernel from your own function of two objects: strings, graphs, trees, anything.

    `function(a, b)` returns a number and must be symmetric and positive definite. It is called once per pair.

    Example:
        >>> import kernelbayes as kb
        >>> shared_letters = kb.FunctionKernel(lambda a, b: len(set(a) & set(b)))
        >>> shared_letters.gram(["kernel", "bayes"])
        array([[5., 1.],
               [1., 5.]])
    """

    function: Callable[[Any, Any], float] = eqx.field(static=True)
    _host_only: ClassVar[bool] = True
    _on_vectors: ClassVar[bool] = False

    def __check_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be a function of two objects, got {type(self.function).__name__}")

    def _check(self, X: Any, name: str) -> Array:
        return _check.objects(X, name)

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        out = np.empty((len(X), len(Y)))
        for i, a in enumerate(X):
            for j, b in enumerate(Y):
                out[i, j] = out[j, i] if X is Y and j < i else self._value(a, b)
        return out

    def _diag(self, X: AnyArray) -> AnyArray:
        return np.array([self._value(a, a) for a in X])

    def _value(self, a: Any, b: Any) -> float:
        return _check.scalar(self.function(a, b), "what the kernel function returns for two objects")


class PrecomputedKernel(Kernel):
    """A kernel given by its Gram matrix; points are whole numbers, the rows of that matrix.

    Example:
        >>> import kernelbayes as kb
        >>> kb.PrecomputedKernel([[1.0, 0.2], [0.2, 1.0]]).gram([1, 1, 0], [0])
        array([[0.2],
               [0.2],
               [1. ]])
    """

    matrix: Array
    _host_only: ClassVar[bool] = True
    _on_vectors: ClassVar[bool] = False

    def __init__(self, matrix: Any):
        matrix = _check.vectors(matrix, "matrix")
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"matrix must be square, got shape {matrix.shape}")
        if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10 * np.abs(matrix).max()):
            raise ValueError("matrix must be symmetric")
        self.matrix = matrix

    def _check(self, X: Any, name: str) -> Array:
        points = _check.vectors(X, name, width=1, largest=np.inf)
        if points.min() < 0 or points.max() >= len(self.matrix) or (points % 1).any():
            raise ValueError(f"{name} must hold row numbers from 0 to {len(self.matrix) - 1} of the Gram matrix")
        return points

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return self._entries(X[:, 0, None], Y[:, 0])

    def _diag(self, X: AnyArray) -> AnyArray:
        return self._entries(X[:, 0], X[:, 0])

    def _entries(self, rows: AnyArray, columns: AnyArray) -> AnyArray:
        matrix = namespace(rows, columns, self.matrix).asarray(self.matrix)
        return matrix[rows.astype(int), columns.astype(int)]

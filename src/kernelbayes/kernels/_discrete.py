"""Kernels on labels and on histograms."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx

from .. import _check
from .._backend import namespace
from .._typing import AnyArray, Array
from ._base import Kernel
from ._stationary import _distances

_MOST_LEVELS = 12  # with 4^12 cells a point


class Delta(Kernel):
    r"""The Kronecker kernel :math:`k(x, y) = 1` if x = y, else 0, on labels of any kind.

    The kernel of a class label in multiclass conditional embeddings. Hsu (2019), section 3.3.

    Example:
        >>> import kernelbayes as kb
        >>> kb.Delta().gram(["cat", "dog"], ["dog"])
        array([[0.],
               [1.]])
    """

    _host_only: ClassVar[bool] = True  # labels may be text; comparing them needs no compiler
    _on_vectors: ClassVar[bool] = False

    def _check(self, X: Any, name: str) -> Array:
        return _check.labels(X, name)

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        if X.ndim == 1:
            return (X[:, None] == Y[None, :]).astype(float)
        out = 1.0
        for j in range(X.shape[1]):
            out = out * (X[:, None, j] == Y[None, :, j])
        return out

    def _diag(self, X: AnyArray) -> AnyArray:
        return namespace(X).ones(X.shape[0])


class HistogramIntersection(Kernel):
    r"""The histogram intersection kernel :math:`k(x, y) = \sum_j \min(x_j, y_j)` on nonnegative vectors.

    Barla, Odone and Verri (2003).

    Example:
        >>> import kernelbayes as kb
        >>> kb.HistogramIntersection().gram([[1.0, 3.0]], [[2.0, 1.0]])
        array([[2.]])
    """

    def _check(self, X: Any, name: str) -> Array:
        X = super()._check(X, name)
        if X.min() < 0:
            raise ValueError(f"{name} must hold histograms; its smallest entry is {X.min():.4g}")
        return X

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        # min(x, y) = (x + y - |x - y|) / 2
        return 0.5 * (X.sum(1)[:, None] + Y.sum(1) - _distances(X, Y, norm=1))

    def _diag(self, X: AnyArray) -> AnyArray:
        return X.sum(1)


class SpatialPyramid(HistogramIntersection):
    r"""The spatial pyramid match kernel on a grid of local histograms.

    .. math:: k(x, y) = 2^{-L} I_0(x, y) + \sum_{l=1}^{L} 2^{l - L - 1} I_l(x, y)

    where I_l is the intersection of the histograms of the 2^l x 2^l cells of level l. A point is the finest grid, an
    array (2^L, 2^L, bins), given as an array (n, 2^L, 2^L, bins) or flattened to (n, 4^L bins). Lazebnik, Schmid and
    Ponce (2006), equation 3; used for robot localisation in Kanagawa (2016), section 4.5.2.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> images = np.zeros((2, 2, 2, 1)); images[0, 0, 0] = images[1, 1, 1] = 1.0
        >>> kb.SpatialPyramid(levels=1).gram(images)  # the same content in different corners: half a match
        array([[1. , 0.5],
               [0.5, 1. ]])
    """

    levels: int = eqx.field(static=True, default=2)

    def __check_init__(self) -> None:
        _check.count(self.levels, "levels", at_least=0, at_most=_MOST_LEVELS)

    def _check(self, X: Any, name: str) -> Array:
        X = _check.table(X, name)
        side = 2**self.levels
        if X.ndim == 4:
            if X.shape[1:3] != (side, side):
                raise ValueError(
                    f"{name} has a grid of {X.shape[1:3]} cells; levels={self.levels} wants {(side, side)}"
                )
            X = X.reshape(len(X), -1)
        X = super()._check(X, name)
        if X.shape[1] % side**2:
            raise ValueError(
                f"{name} has {X.shape[1]} columns, not a multiple of the {side**2} cells of the finest level"
            )
        return X

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return super()._gram(self._pyramid(X), self._pyramid(Y))

    def _diag(self, X: AnyArray) -> AnyArray:
        return super()._diag(self._pyramid(X))

    def _pyramid(self, X: AnyArray) -> AnyArray:
        """All levels side by side, each times its weight: min(a x, a y) = a min(x, y)."""
        n, side = X.shape[0], 2**self.levels
        grid = X.reshape(n, side, side, -1)
        parts = []
        for level in range(self.levels + 1):
            cells, merge = 2**level, side // 2**level
            pooled = grid.reshape(n, cells, merge, cells, merge, -1).sum((2, 4))
            weight = 2.0 ** (max(level, 1) - self.levels - 1)
            parts.append(weight * pooled.reshape(n, -1))
        return namespace(X).concatenate(parts, axis=1)

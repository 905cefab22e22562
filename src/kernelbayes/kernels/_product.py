"""Kernels of the inner product x . y."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from .. import _check
from .._typing import AnyArray, Array
from ._base import Kernel
from ._parameters import nonnegative, positive


class Linear(Kernel):
    r"""The linear kernel :math:`k(x, y) = x \cdot y + c`.

    Its embedding of a distribution is the mean. With offset c = 1 the functions have an intercept.

    Example:
        >>> import kernelbayes as kb
        >>> kb.Linear(offset=1.0).gram([[1.0, 2.0]], [[3.0, 4.0]])
        array([[12.]])
    """

    offset: AnyArray = nonnegative()

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return X @ Y.T + self.offset

    def _diag(self, X: AnyArray) -> AnyArray:
        return (X * X).sum(1) + self.offset


class Polynomial(Kernel):
    r"""The polynomial kernel :math:`k(x, y) = (s\, x \cdot y + c)^p`.

    Its embedding holds all moments up to order p. Schoelkopf and Smola (2002), section 2.3.

    Example:
        >>> import kernelbayes as kb
        >>> kb.Polynomial(degree=2).gram([2.0], [3.0])
        array([[49.]])
    """

    degree: int = eqx.field(static=True)
    offset: AnyArray = nonnegative()
    scale: AnyArray = positive()

    def __init__(self, degree: int = 2, offset: Any = 1.0, scale: Any = 1.0):
        self.degree = _check.count(degree, "degree")
        self.offset, self.scale = offset, scale

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return (self.scale * (X @ Y.T) + self.offset) ** self.degree

    def _diag(self, X: AnyArray) -> AnyArray:
        return (self.scale * (X * X).sum(1) + self.offset) ** self.degree


class InfinitePolynomial(Kernel):
    r"""Vovk's infinite polynomial kernel :math:`k(x, y) = (1 - x \cdot y)^{-\alpha}` on the open unit ball.

    Universal, with a flat spectrum. Quadrature notes, example 4; Steinwart (2001).

    Example:
        >>> import kernelbayes as kb
        >>> kb.InfinitePolynomial(alpha=1.0).gram([0.5], [0.5]).round(4)
        array([[1.3333]])
    """

    alpha: AnyArray = positive()

    def _check(self, X: Any, name: str) -> Array:
        X = super()._check(X, name)
        largest = float(np.sqrt((X * X).sum(1).max()))
        if largest >= 1.0:
            raise ValueError(f"{name} must lie inside the unit ball for this kernel; its largest norm is {largest:.4g}")
        return X

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return (1.0 - X @ Y.T) ** -self.alpha

    def _diag(self, X: AnyArray) -> AnyArray:
        return (1.0 - (X * X).sum(1)) ** -self.alpha

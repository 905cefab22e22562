"""Kernels with a known Mercer expansion on an interval: periodic Sobolev and (fractional) Brownian motion."""

from __future__ import annotations

import math

import equinox as eqx
import numpy as np

from .. import _check
from .._backend import namespace
from .._typing import AnyArray
from ._base import Kernel
from ._parameters import unit_interval
from ._stationary import _distances

# Bernoulli polynomials B_2s of the first orders, highest power first.
_BERNOULLI = {
    1: (1.0, -1.0, 1.0 / 6.0),
    2: (1.0, -2.0, 1.0, 0.0, -1.0 / 30.0),
    3: (1.0, -3.0, 5.0 / 2.0, 0.0, -1.0 / 2.0, 0.0, 1.0 / 42.0),
    4: (1.0, -4.0, 14.0 / 3.0, 0.0, -7.0 / 3.0, 0.0, 2.0 / 3.0, 0.0, -1.0 / 30.0),
}


class PeriodicSobolev(Kernel):
    r"""The kernel of the periodic Sobolev space of order s on [0, 1].

    .. math:: k(x, y) = 1 + \sum_{m \ge 1} m^{-2s} \cos 2\pi m (x - y)
                      = 1 + (-1)^{s+1} \frac{(2\pi)^{2s}}{2\,(2s)!} B_{2s}(\{x - y\})

    A product over the columns in higher dimension. Quadrature notes, example 1, with the constant term that the
    printed sum leaves out.

    Example:
        >>> import kernelbayes as kb
        >>> kb.PeriodicSobolev(order=1).gram([0.3], [0.0]).round(6)
        array([[0.572317]])
    """

    order: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        _check.option(_check.count(self.order, "order"), "order", tuple(_BERNOULLI))

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        out = 1.0
        for j in range(X.shape[1]):  # column by column: a 3-d array of differences would not stay small
            out = out * self._factor(X[:, None, j] - Y[None, :, j])
        return out

    def _diag(self, X: AnyArray) -> AnyArray:
        xp = namespace(X)
        return xp.full(X.shape[0], self._factor(np.zeros(())) ** X.shape[1])

    def _factor(self, difference: AnyArray) -> AnyArray:
        s = self.order
        xp = namespace(difference)
        fraction = difference - xp.floor(difference)
        scale = (-1) ** (s + 1) * (2 * math.pi) ** (2 * s) / (2 * math.factorial(2 * s))
        return 1.0 + scale * xp.polyval(np.asarray(_BERNOULLI[s]), fraction)


class Brownian(Kernel):
    r"""The covariance of (fractional) Brownian motion with Hurst index H in (0, 1].

    .. math:: k(x, y) = \tfrac12 \big(\|x\|^{2H} + \|y\|^{2H} - \|x - y\|^{2H}\big)

    H = 1/2 on the positive line is min(x, y); H = 1 is the linear kernel. Not translation invariant: k(0, 0) = 0.
    Quadrature notes, example 3.

    Example:
        >>> import kernelbayes as kb
        >>> kb.Brownian().gram([0.2, 0.7], [0.5])
        array([[0.2],
               [0.5]])
    """

    hurst: AnyArray = unit_interval()

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        x, y = self._diag(X), self._diag(Y)
        return 0.5 * (x[:, None] + y - self._power(_distances(X, Y, norm=2)))

    def _diag(self, X: AnyArray) -> AnyArray:
        return self._power(_distances(X, namespace(X).zeros((1, X.shape[1])), norm=2)[:, 0])

    def _power(self, distance: AnyArray) -> AnyArray:
        xp = namespace(distance, self.hurst)
        apart = distance > 0
        return xp.where(apart, xp.where(apart, distance, 1.0) ** (2.0 * self.hurst), 0.0)

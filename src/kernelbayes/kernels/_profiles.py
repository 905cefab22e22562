"""Means of a kernel's profile on the line, over normal noise and over one or two intervals.

A difference of antiderivatives cancels over a narrow box. There a Gauss-Legendre rule of ten nodes between the kinks of
phi is exact to rounding and takes over; on polynomials it is exact at any width.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy.special import erfc, erfcx

from .._typing import Array

_SQRT2 = math.sqrt(2.0)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)


class OutOfReach(Exception):
    """Raised where a formula does not reach; the caller turns it into `NoClosedFormError` with names."""


class Profile(Protocol):
    """The mean of an even function phi over t plus normal noise; over ±h besides; and over ±g once more."""

    def value(self, t: Any) -> Any: ...

    def box(self, t: Any, h: float) -> Any: ...

    def boxes(self, t: Any, g: float, h: float) -> Any: ...


@functools.cache
def _legendre() -> tuple[Array, Array]:
    """Nodes and weights (of sum one) on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(10)
    return nodes, weights / 2.0


def _gauss_mean(f: Callable[[Array], Array], t: Any, h: float, kinks: tuple[Any, ...] = ()) -> Array:
    """The mean of f over [t - h, t + h] by Gauss-Legendre rules between its kinks."""
    nodes, weights = _legendre()
    t = np.asarray(t, dtype=np.float64)
    with np.errstate(over="ignore"):  # a kink may be any number of widths away
        cuts = [np.broadcast_to(np.clip((k - t) / h, -1.0, 1.0), t.shape) for k in kinks]
    edges = np.sort(np.stack([np.full(t.shape, -1.0), *cuts, np.full(t.shape, 1.0)]), axis=0)
    total = np.zeros(t.shape)
    for left, right in itertools.pairwise(edges):
        middle, reach = 0.5 * (left + right), 0.5 * (right - left)
        total += reach * (f(t[..., None] + h * (middle[..., None] + reach[..., None] * nodes)) @ weights)
    return total


def _second_difference(F: Callable[[Any], Any], t: Any, g: float, h: float) -> Any:
    """Of an even F: twice integrated phi, taken at the corners of two boxes."""
    return F(np.abs(t + g + h)) + F(np.abs(t - g - h)) - F(np.abs(t + g - h)) - F(np.abs(t - g + h))


@dataclasses.dataclass(frozen=True)
class _Decaying(abc.ABC):
    """A profile with at most one kink, at 0, whose tails are known in units of its lengthscale.

    With `tail(t) = ∫_t^∞ value` and `second_tail(t) = ∫_t^∞ tail` for t >= 0, no growing terms are left to
    cancel: the second antiderivative is `tail(0) |t| + second_tail(|t|)`, and the second difference of |t| is
    twice the length that the two boxes share.
    """

    s: float

    @abc.abstractmethod
    def value(self, t: Any) -> Any:
        """E phi(t + s Z)."""

    @abc.abstractmethod
    def tail(self, t: Any) -> Any:
        """The integral of `value` from t >= 0 to infinity."""

    @abc.abstractmethod
    def second_tail(self, t: Any) -> Any:
        """The integral of `tail` from t >= 0 to infinity, without noise: with two uniforms there is none."""

    @property
    def resolution(self) -> float:
        """The width over which `value` is smooth on either side of 0."""
        return 1.0

    def box(self, t: Any, h: float) -> Any:
        """The mean of `value` over [t - h, t + h], from its tails or, where narrow, by the Gauss rule."""
        if 2.0 * h <= self.resolution:
            return _gauss_mean(self.value, t, h, kinks=(0.0,))
        ends = np.maximum([t - h, t + h, -t - h, h - t], 0.0)  # the parts right and left of 0
        right_near, right_far, left_near, left_far = self.tail(ends)
        return ((right_near - right_far) + (left_near - left_far)) / (2.0 * h)

    def boxes(self, t: Any, g: float, h: float) -> Any:
        """The mean of `box` over [t - g, t + g], g <= h."""
        if 2.0 * g <= self.resolution:
            return _gauss_mean(lambda u: self.box(u, h), t, g, kinks=(-h, h))
        shared = np.clip(g + h - np.abs(t), 0.0, 2.0 * g)
        inner = _second_difference(self.second_tail, t, g, h)
        return (2.0 * self.tail(0.0) * shared + inner) / (4.0 * g * h)


class GaussianProfile(_Decaying):
    """`exp(-t^2 / 2)`, which normal noise widens to `exp(-t^2 / 2r^2) / r` with `r^2 = 1 + s^2`."""

    @property
    def resolution(self) -> float:
        return math.hypot(1.0, self.s)

    def value(self, t: Any) -> Any:
        return np.exp(-0.5 * self._scaled(t) ** 2) / self.resolution

    def tail(self, t: Any) -> Any:
        return _SQRT_HALF_PI * erfc(self._scaled(t) / _SQRT2)

    def second_tail(self, t: Any) -> Any:
        t = self._scaled(t)
        return np.exp(-0.5 * t * t) * (1.0 - _SQRT_HALF_PI * t * erfcx(t / _SQRT2))

    def _scaled(self, t: Any) -> Any:
        return np.minimum(np.abs(t) / self.resolution, 100.0)  # zero there; a square may overflow beyond


class LaplaceProfile(_Decaying):
    """`exp(-|t|)`; with noise A + B, where `A = exp(s^2/2 - t) N(t/s - s)`, B is A at -t, N the normal cdf.

    From `value = value'' + 2 n`, n the density of the noise, the tail is `A - B + 2 N(-t/s)`.
    """

    @property
    def resolution(self) -> float:
        return self.s or 1.0

    def value(self, t: Any) -> Any:
        A, B, _ = self._terms(np.abs(t))
        return A + B

    def tail(self, t: Any) -> Any:
        A, B, beyond = self._terms(t)
        return A - B + beyond

    def second_tail(self, t: Any) -> Any:
        return np.exp(-t)

    @np.errstate(over="ignore")
    def _terms(self, t: Any) -> tuple[Any, Any, Any]:
        """A, B and 2 N(-t/s) for t >= 0, without overflow."""
        if self.s == 0:
            return np.exp(-t), 0.0, 0.0
        s, z = self.s, t / self.s
        bell, near = 0.5 * np.exp(-0.5 * z * z), (s - z) / _SQRT2
        A_far = 0.5 * np.exp(np.minimum(0.5 * s * s - t, 0.0)) * erfc(near)
        A = np.where(near > 0, bell * erfcx(np.maximum(near, 0.0)), A_far)
        return A, bell * erfcx((s + z) / _SQRT2), erfc(z / _SQRT2)


# In lengthscales over sqrt(2 nu).
_MOST_NOISE = 30.0
# The value, tail and second tail of a Matern kernel are polynomials times exp(-t); lowest power first.
_MATERN = {
    1.5: ((1.0, 1.0), (2.0, 1.0), (3.0, 1.0)),
    2.5: ((1.0, 1.0, 1 / 3), (8 / 3, 5 / 3, 1 / 3), (5.0, 7 / 3, 1 / 3)),
}


@dataclasses.dataclass(frozen=True)
class MaternProfile(_Decaying):
    """`(1 + t) exp(-t)` or `(1 + t + t^2/3) exp(-t)`; boxes without noise only.

    With noise each power of |t| becomes two moments of a normal cut off at zero: with A as in `LaplaceProfile`,
    `m = t - s^2` and b the density of the noise at t times s, `A_0 = A`, `A_1 = m A_0 + s b`, `A_2 = m A_1 + s^2 A_0`, and
    the same at -t.
    """

    nu: float

    def __post_init__(self) -> None:
        if self.s > _MOST_NOISE:  # the moments are differences that lose their digits
            raise OutOfReach

    def value(self, t: Any) -> Any:
        return self._evaluate(0, np.abs(t)) if self.s == 0 else self._noisy(np.abs(t))

    def _noisy(self, t: Any) -> Any:
        s, t = self.s, np.minimum(t, 1e6)  # zero there; a square may overflow beyond
        A, B, _ = LaplaceProfile(s)._terms(t)
        bell = np.exp(-0.5 * (t / s) ** 2) / math.sqrt(2.0 * math.pi)
        out = 0.0
        for first, m in ((A, t - s * s), (B, -t - s * s)):
            second = m * first + s * bell
            powers = (first, second, m * second + s * s * first)
            out = out + sum(c * power for c, power in zip(_MATERN[self.nu][0], powers, strict=False))
        return out

    def tail(self, t: Any) -> Any:
        if self.s > 0:
            raise OutOfReach
        return self._evaluate(1, t)

    def second_tail(self, t: Any) -> Any:
        return self._evaluate(2, t)

    def _evaluate(self, which: int, t: Any) -> Any:
        t = np.minimum(t, 800.0)  # the exponential is zero there; a power may overflow beyond
        return np.polynomial.polynomial.polyval(t, _MATERN[self.nu][which]) * np.exp(-t)


@dataclasses.dataclass(frozen=True)
class PowerProfile:
    """`|t|^p`, without noise: singular at 0, but smooth on a box whose centre is three half-widths away."""

    s: float
    power: float

    def __post_init__(self) -> None:
        if self.s > 0:
            raise OutOfReach

    def value(self, t: Any) -> Any:
        return np.abs(t) ** self.power

    def box(self, t: Any, h: float) -> Any:
        p = self.power + 1.0
        near = (np.sign(t + h) * np.abs(t + h) ** p - np.sign(t - h) * np.abs(t - h) ** p) / (2.0 * h * p)
        return np.where(np.abs(t) < 3.0 * h, near, _gauss_mean(self.value, t, h))

    def boxes(self, t: Any, g: float, h: float) -> Any:
        if np.abs(np.abs(t) - h) >= 3.0 * g:
            return _gauss_mean(lambda u: self.box(u, h), t, g)
        p = self.power + 2.0
        return _second_difference(lambda u: u**p, t, g, h) / (2.0 * g) / (2.0 * h) / (p * (p - 1.0))


@dataclasses.dataclass(frozen=True)
class PeriodicProfile:
    """`1 + sum_m m^-2s cos 2 pi m t`: of period one and mean one, a polynomial between whole numbers.

    Over whole periods it integrates to their number, whatever noise there is. Quadrature notes, example 1.
    """

    s: float
    phi: Callable[[Any], Any]

    def value(self, t: Any) -> Any:
        if self.s > 0:
            raise OutOfReach
        return self.phi(t)

    def box(self, t: Any, h: float) -> Any:
        return self._mean(self.value, t, h, kinks=(0.0,))

    def boxes(self, t: Any, g: float, h: float) -> Any:
        return self._mean(lambda u: self.box(u, h), t, g, kinks=(-h, h))

    def _mean(self, f: Callable[[Array], Array], t: Any, h: float, kinks: tuple[float, ...]) -> Any:
        """The mean over [t - h, t + h] of a function of period and mean one: whole periods, then the rest."""
        rest, periods = math.modf(2.0 * h)
        if min(rest, 1.0 - rest) < 1e-15 * (1.0 + periods) and round(2.0 * h) > 0:
            return np.ones(np.shape(t))
        start = t - h
        first = tuple(k + np.ceil(start - k) for k in kinks)
        return (periods + rest * _gauss_mean(f, start + 0.5 * rest, 0.5 * rest, first)) / (2.0 * h)

r"""Mercer expansions that are known: :math:`k(x, y) = \sum_m \eta_m e_m(x) e_m(y)` under a distribution.

The functions :math:`e_m` are orthonormal in :math:`L_2(\rho)` and the :math:`\eta_m` fall. On the line there are three
(Quadrature notes, section 3.1); independent columns have products of these.

| kernel and distribution | here | eigenvalues | eigenfunctions |
|---|---|---|---|
| periodic Sobolev, uniform over a period; example 1 | `Trigonometric` | 1, twice m^-2s / 2 | 1, cosines, sines |
| Gaussian, normal; example 2, equation 7 | `Hermite` | sqrt(2a/A) B^m | Hermite polynomials times a Gaussian |
| Brownian of index 1/2, uniform on [0, T]; equation 8 | `Sines` | T / ((m + 1/2) pi)^2 | sines |

The constant term of the first and the norm of the second are not as printed in the notes. A correlated normal is turned
into independent columns first, along axes in which the Gaussian kernel is a product as well.

A *square* :math:`e_m^2 d\rho` is a distribution, from which each line can draw exactly. That is all that drawing from a
leverage density or from a determinantal process needs: both are mixtures of squares, or thinned ones.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from .._linalg import eigh
from .._typing import Array
from ._base import Kernel, Scaled
from ._distributions import Independent, Mixture, NoClosedFormError, Simple, read_distribution
from ._interval import Brownian, PeriodicSobolev
from ._spectrum import NEGLIGIBLE, Spectrum
from ._stationary import Gaussian

# By which all Hermite functions are bounded (Cramer), and so far beyond their last turning point they are below 1e-16.
_CRAMER = 1.0865**2 / math.sqrt(math.pi)
_BEYOND = 6.5
_LARGE = 1e100
# Eigenvalues down to this share of the first are held: in the tails their eigenfunctions are as large as they are small.
_UNDERFLOW = 1e-60


class Line(abc.ABC):
    """A Mercer expansion on the line."""

    @property
    def trace(self) -> float:
        """The integral of k(x, x)."""
        return 1.0

    @abc.abstractmethod
    def eigenvalues(self, terms: int) -> Array:
        """The first ones (terms,), falling."""

    @abc.abstractmethod
    def functions(self, x: Array, terms: int) -> Array:
        """The first eigenfunctions (n, terms) at points (n,)."""

    @abc.abstractmethod
    def integrals(self, terms: int) -> Array:
        """The integrals (terms,) of the first eigenfunctions under the distribution."""

    @abc.abstractmethod
    def draw_squares(self, modes: Array, rng: np.random.Generator) -> Array:
        """One draw (n,) from the square of each of these eigenfunctions (n,)."""

    @abc.abstractmethod
    def draw_diagonal(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n,) from k(x, x) times the distribution."""


class Trigonometric(Line):
    """The periodic Sobolev kernel under the uniform distribution on [low, low + 1]."""

    def __init__(self, order: int, low: float):
        self.order, self.low = order, low

    @property
    def trace(self) -> float:
        """The integral of k(x, x)."""
        return 1.0 + float(scipy.special.zeta(2.0 * self.order))

    def eigenvalues(self, terms: int) -> Array:
        """1, and 1 / (2 m^2s) twice for m = 1, 2, ..."""
        waves = (np.arange(terms) + 1) // 2
        return np.where(waves == 0, 1.0, 0.5 * np.maximum(waves, 1.0) ** (-2.0 * self.order))

    def functions(self, x: Array, terms: int) -> Array:
        """1, sqrt(2) cos(2 pi x), sqrt(2) sin(2 pi x), sqrt(2) cos(4 pi x), ..."""
        turns = 2.0 * np.pi * np.outer(x, np.arange(1, terms // 2 + 1))
        out = np.empty((len(x), 2 * (terms // 2) + 1))
        out[:, 0] = 1.0
        out[:, 1::2], out[:, 2::2] = math.sqrt(2.0) * np.cos(turns), math.sqrt(2.0) * np.sin(turns)
        return out[:, :terms]

    def integrals(self, terms: int) -> Array:
        """1, 0, 0, ..."""
        return np.eye(1, terms)[0]

    def draw_squares(self, modes: Array, rng: np.random.Generator) -> Array:
        """By rejection: twice a squared sine or cosine is at most two."""

        def share(x: Array, modes: Array) -> Array:
            angle = 2.0 * np.pi * ((modes + 1) // 2) * x
            return np.where(modes == 0, 1.0, np.where(modes % 2 == 1, np.cos(angle), np.sin(angle)) ** 2)

        return self.low + _accepted(modes, share, lambda modes: rng.random(len(modes)), rng)

    def draw_diagonal(self, n: int, rng: np.random.Generator) -> Array:
        """k(x, x) is constant."""
        return self.low + rng.random(n)


class Sines(Line):
    """The covariance min(x, y) of Brownian motion under the uniform distribution on [0, end]."""

    def __init__(self, end: float):
        self.end = end

    @property
    def trace(self) -> float:
        """The integral of k(x, x)."""
        return 0.5 * self.end

    def _rates(self, terms: int) -> Array:
        return (np.arange(terms) + 0.5) * np.pi

    def eigenvalues(self, terms: int) -> Array:
        """end / ((m + 1/2) pi)^2."""
        return self.end / self._rates(terms) ** 2

    def functions(self, x: Array, terms: int) -> Array:
        """sqrt(2) sin((m + 1/2) pi x / end)."""
        return math.sqrt(2.0) * np.sin(np.outer(x / self.end, self._rates(terms)))

    def integrals(self, terms: int) -> Array:
        """sqrt(2) / ((m + 1/2) pi)."""
        return math.sqrt(2.0) / self._rates(terms)

    def draw_squares(self, modes: Array, rng: np.random.Generator) -> Array:
        """By rejection: twice a squared sine is at most two."""

        def share(x: Array, modes: Array) -> Array:
            return np.sin((modes + 0.5) * np.pi * x) ** 2

        return self.end * _accepted(modes, share, lambda modes: rng.random(len(modes)), rng)

    def draw_diagonal(self, n: int, rng: np.random.Generator) -> Array:
        """From a density that rises from zero in proportion to x."""
        return self.end * np.sqrt(rng.random(n))


class Hermite(Line):
    r"""The Gaussian kernel of lengthscale 1 under a normal distribution of mean 0 and standard deviation `sd`.

    With :math:`a = 1 / 4 sd^2`, :math:`b = 1/2`, :math:`c = \sqrt{a^2 + 2 a b}`, :math:`A = a + b + c`, :math:`B = b / A`:

    .. math:: \eta_m = \sqrt{2a/A}\, B^m, \qquad
              e_m(x) = e^{-(c - a) x^2} H_m(\sqrt{2c}\, x) \big/ \sqrt{\sqrt{a/c}\; 2^m m!}

    The square of :math:`e_m` is that of the m-th Hermite function in :math:`\sqrt{2c}\, x`.
    """

    def __init__(self, sd: float):
        self.sd = sd
        self.a, b = 0.25 / sd**2, 0.5
        self.c = math.sqrt(self.a**2 + 2.0 * self.a * b)
        self.first, self.ratio = math.sqrt(2.0 * self.a / (self.a + b + self.c)), b / (self.a + b + self.c)

    def eigenvalues(self, terms: int) -> Array:
        """A falling geometric series, of sum one."""
        return self.first * self.ratio ** np.arange(terms)

    def functions(self, x: Array, terms: int) -> Array:
        """By their recurrence."""
        logarithm = 0.25 * math.log(self.c / self.a) - (self.c - self.a) * x**2
        return _hermite(math.sqrt(2.0 * self.c) * x, terms, logarithm)

    def integrals(self, terms: int) -> Array:
        """Zero for odd m; `I_(m+2) = I_m (c - a) / (c + a) sqrt((m + 1) / (m + 2))`."""
        a, c = self.a, self.c
        out = np.zeros(terms)
        even = np.arange(0, terms - 2, 2)
        steps = (c - a) / (c + a) * np.sqrt((even + 1.0) / (even + 2.0))
        out[::2] = (c / a) ** 0.25 * math.sqrt(2.0 * a / (c + a)) * np.cumprod(np.append(1.0, steps))
        return out

    def draw_squares(self, modes: Array, rng: np.random.Generator) -> Array:
        """By rejection from a uniform distribution that reaches beyond the last turning point."""

        def share(y: Array, modes: Array) -> Array:
            values = _hermite(y, int(modes.max()) + 1, -0.25 * math.log(math.pi) - 0.5 * y**2)
            return np.take_along_axis(values, modes[:, None], axis=1)[:, 0] ** 2 / _CRAMER

        def propose(modes: Array) -> Array:
            return (np.sqrt(2.0 * modes + 1.0) + _BEYOND) * rng.uniform(-1.0, 1.0, len(modes))

        return _accepted(modes, share, propose, rng) / math.sqrt(2.0 * self.c)

    def draw_diagonal(self, n: int, rng: np.random.Generator) -> Array:
        """k(x, x) is constant."""
        return self.sd * rng.standard_normal(n)


def _hermite(y: Array, terms: int, logarithm: Array) -> Array:
    """`exp(logarithm) H_m(y) / sqrt(2^m m!)` (n, terms), rescaled on the way so that nothing large or small is lost."""
    out = np.empty((terms, len(y)))
    before, now, logarithm = np.zeros(len(y)), np.ones(len(y)), logarithm.copy()
    for m in range(terms):
        out[m] = now * np.exp(logarithm)
        before, now = now, math.sqrt(2.0 / (m + 1)) * y * now - math.sqrt(m / (m + 1)) * before
        large = np.abs(now) > _LARGE
        if large.any():
            scale = np.where(large, _LARGE, 1.0)
            before, now, logarithm = before / scale, now / scale, logarithm + np.log(scale)
    return out.T


def _accepted(
    modes: Array,
    share: Callable[[Array, Array], Array],
    propose: Callable[[Array], Array],
    rng: np.random.Generator,
) -> Array:
    """One accepted proposal for each mode; `share(x, modes)` is the probability of accepting."""
    out, left = np.empty(len(modes)), np.arange(len(modes))
    while len(left):
        tried = np.repeat(left, max(1, 256 // len(left)))  # several at once where few are left
        x = propose(modes[tried])
        won = rng.random(len(tried)) < share(x, modes[tried])
        found, first = np.unique(tried[won], return_index=True)
        out[found] = x[won][first]
        left = np.setdiff1d(left, found, assume_unique=True)
    return out


class MercerExpansion(Spectrum):
    """A Mercer expansion that is known: products of the expansions of independent columns, the largest first.

    Made by `kb.mercer`, which has an example.
    """

    def __init__(self, kernel: Kernel, lines: list[Line], scale: float, axes: Axes, terms: int):
        self.kernel, self._lines, self._axes = kernel, lines, axes
        modes, values = _largest_products([line.eigenvalues(terms) for line in lines], terms)
        kept = values > _UNDERFLOW * values[0]
        self._modes, self.eigenvalues = modes[kept], scale * values[kept]
        self.complete = bool(values[-1] < NEGLIGIBLE * values[0])
        self.trace = float(self.eigenvalues.sum()) if self.complete else scale * math.prod(line.trace for line in lines)

    def __repr__(self) -> str:
        held = "all above rounding" if self.complete else "the first of infinitely many"
        return f"MercerExpansion({self.kernel!r}, {len(self):,} terms, {held})"

    @property
    def dimension(self) -> int:
        """Number of columns of a point."""
        return len(self._lines)

    def _at(self, X: Array) -> Array:
        return self._functions(X, np.arange(len(self)))

    def _functions(self, places: Array, modes: Array) -> Array:
        chosen = self._modes[modes]
        out = np.ones((len(places), len(modes)))
        for x, line, column in zip(self._axes.inwards(places).T, self._lines, chosen.T, strict=True):
            out *= line.functions(x, int(column.max(initial=0)) + 1)[:, column]
        return out

    def integrals(self) -> Array:
        """Integrals (m,) of the eigenfunctions under the distribution."""
        columns = zip(self._lines, self._modes.T, strict=True)
        return np.prod([line.integrals(int(column.max()) + 1)[column] for line, column in columns], axis=0)

    def _draw_squares(self, modes: Array, rng: np.random.Generator) -> Array:
        columns = zip(self._lines, self._modes[modes].T, strict=True)
        return self._axes.outwards(np.stack([line.draw_squares(column, rng) for line, column in columns], axis=1))

    def _draw_diagonal(self, n: int, rng: np.random.Generator) -> Array:
        return self._axes.outwards(np.stack([line.draw_diagonal(n, rng) for line in self._lines], axis=1))

    def _points(self, places: Array) -> Array:
        return places


class Axes:
    """Coordinates in which columns are independent: `(x - centre) @ into`."""

    def __init__(self, centre: Array, into: Array, out: Array):
        self.centre, self.into, self.out = centre, into, out

    def inwards(self, X: Array) -> Array:
        """From points (n, d) to coordinates."""
        return (X - self.centre) @ self.into

    def outwards(self, U: Array) -> Array:
        """From coordinates (n, d) to points."""
        return U @ self.out + self.centre


def _largest_products(series: list[Array], most: int) -> tuple[Array, Array]:
    """Indices (m, d) and values (m,) of the largest products of one entry of each falling series, falling.

    Of two falling series, entry (i, j) has at least (i + 1) (j + 1) - 1 others that are no smaller, so that only those
    under a hyperbola can be among the largest.
    """
    indices, values = np.arange(len(series[0]))[:, None], series[0]
    for other in series[1:]:
        rows = [np.arange(min(len(values), most // (j + 1))) for j in range(min(len(other), most))]
        left = np.concatenate(rows)
        right = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        products = values[left] * other[right]
        order = np.argsort(-products, kind="stable")[:most]
        indices = np.column_stack([indices[left[order]], right[order]])
        values = products[order]
    return indices, values


def expansion(kernel: Kernel, distribution: Any, terms: int) -> MercerExpansion:
    """The Mercer expansion of a kernel under a distribution, or `NoClosedFormError`."""
    P = read_distribution(distribution, type(kernel).__name__)
    scale, inner = 1.0, kernel
    while type(inner) is Scaled:
        scale, inner = scale * np.asarray(inner.scale).item(), inner.kernel
    inner._check_width(P.dimension, "the distribution")
    found = None if isinstance(P, Mixture) else _LINES.get(type(inner), _unknown)(inner, P)
    if found is None:
        name = type(kernel).__name__
        raise NoClosedFormError(
            f"no Mercer expansion is known for {name} with {getattr(P, 'kind', 'a mixture')} in {P.dimension}-d; known "
            "are PeriodicSobolev with uniforms over a period, Gaussian with normals, and Brownian (hurst 1/2) with a "
            "uniform on [0, T]"
        )
    return MercerExpansion(kernel, found[0], scale, found[1], terms)


def _unknown(kernel: Kernel, P: Simple) -> None:
    return None


def _plain(P: Simple) -> Axes:
    one = np.eye(P.dimension)
    return Axes(np.zeros(P.dimension), one, one)


def _trigonometric(kernel: PeriodicSobolev, P: Simple) -> tuple[list[Line], Axes] | None:
    if P.columns is None or any(abs(2.0 * c.half - 1.0) > 1e-12 for c in P.columns):
        return None
    return [Trigonometric(kernel.order, c.centre - c.half) for c in P.columns], _plain(P)


def _sines(kernel: Brownian, P: Simple) -> tuple[list[Line], Axes] | None:
    if P.dimension > 1 or P.columns is None or np.asarray(kernel.hurst).item() != 0.5:
        return None
    (column,) = P.columns
    if column.half == 0 or abs(column.centre - column.half) > 1e-12 * column.half:
        return None
    return [Sines(2.0 * column.half)], _plain(P)


def _hermite_lines(kernel: Gaussian, P: Simple) -> tuple[list[Line], Axes] | None:
    """In units of the lengthscale the kernel is the same in all directions, so that the axes may be those of the normal."""
    if isinstance(P, Independent) and any(c.sd == 0 for c in P.columns):
        return None
    unit = np.broadcast_to(np.asarray(kernel.lengthscale), (P.dimension,))
    independent = P.columns is not None
    scaled = P.covariance() / np.outer(unit, unit)
    variances, turn = (np.diagonal(scaled), np.eye(P.dimension)) if independent else eigh(scaled)
    if variances.min() <= 1e-12 * variances.max():
        return None
    lines: list[Line] = [Hermite(math.sqrt(v)) for v in variances]
    return lines, Axes(P.mean(), turn / unit[:, None], turn.T * unit)


_LINES: dict[type[Kernel], Callable[[Any, Simple], tuple[list[Line], Axes] | None]] = {
    PeriodicSobolev: _trigonometric,
    Brownian: _sines,
    Gaussian: _hermite_lines,
}

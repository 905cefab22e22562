"""Integrals of a kernel against a known distribution, in closed form.

`mean_integral` is the embedding of P at given points, `double_integral` the inner product of two embeddings:

    mean(x) = ∫ k(x, y) dP(y),        double = ∫∫ k(x, y) dP(x) dQ(y).

Both are one integral, since points are distributions without width. A kernel that is a product over columns
needs, where columns are independent, only E phi(X - Y) on the line, and X - Y is a shift t plus a normal of
deviation s plus up to two uniforms of half-widths g <= h. So a kernel is known here by its profile phi,
smoothed by the normal, and three formulas: `value` (no uniform), `box` (one) and `boxes` (two).

A difference of antiderivatives cancels over a narrow box. There a Gauss-Legendre rule of ten nodes between
the kinks of phi is exact to rounding and takes over; on polynomials it is exact at any width.

References: Quadrature notes, examples 1-3; Rasmussen and Ghahramani (2003), Bayesian Monte Carlo, for the
Gaussian kernel.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from scipy.special import erfc, erfcx

from .. import _check
from .._linalg import eigh
from .._typing import Array, ArrayLike
from ._base import Kernel, Scaled, Sum
from ._interval import Brownian, PeriodicSobolev
from ._product import Linear, Polynomial
from ._stationary import Gaussian, Laplace, Matern

_SQRT2 = math.sqrt(2.0)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)


class NoClosedForm(ValueError):
    """The integral of this kernel against this distribution is not among those known here."""


class _Unknown(Exception):
    """Raised by a formula that does not reach; `_integral` turns it into `NoClosedForm` with names."""


# ---------------------------------------------------------------------------------------------- distributions


@dataclasses.dataclass(frozen=True, eq=False)
class Column:
    """One column: a centre, plus either normal noise of deviation `sd` or uniform noise on ±half."""

    centre: Any
    sd: float = 0.0
    half: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.centre).all() and math.isfinite(self.sd) and math.isfinite(self.half)):
            raise ValueError(f"a column needs finite parameters, got {self}")
        if min(self.sd, self.half) != 0 or max(self.sd, self.half) < 0:
            raise ValueError(f"a column is either normal or uniform, got sd={self.sd:g}, half={self.half:g}")

    @classmethod
    def normal(cls, mean: float, sd: float) -> Column:
        """N(mean, sd^2)."""
        return cls(_check.scalar(mean, "mean"), sd=_check.scalar(sd, "sd"))

    @classmethod
    def uniform(cls, low: float, high: float) -> Column:
        """Uniform on [low, high]."""
        low, high = _check.scalar(low, "low"), _check.scalar(high, "high")
        if not low < high:
            raise ValueError(f"a uniform needs low < high, got [{low:g}, {high:g}]")
        return cls(0.5 * low + 0.5 * high, half=0.5 * (high - low))

    @property
    def kind(self) -> str:
        """What to call it in a message."""
        return "normal" if self.sd > 0 else "uniform" if self.half > 0 else "fixed"


@dataclasses.dataclass(frozen=True, eq=False)
class Independent:
    """Independent columns, each normal or uniform."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("a distribution needs at least one column")

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return len(self.columns)

    @property
    def kind(self) -> str:
        """What to call it in a message."""
        return f"independent {' and '.join(sorted({c.kind for c in self.columns}))} columns"

    def mean(self) -> Array:
        """Its mean (d,)."""
        return np.stack([np.asarray(c.centre, dtype=np.float64) for c in self.columns], axis=-1)

    def covariance(self) -> Array:
        """Its covariance (d, d)."""
        return np.diag([c.sd**2 + c.half**2 / 3.0 for c in self.columns])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n, d)."""
        sd, half = np.array([(c.sd, c.half) for c in self.columns]).T
        shape = (n, self.dimension)
        return self.mean() + sd * rng.standard_normal(shape) + half * rng.uniform(-1.0, 1.0, shape)


@dataclasses.dataclass(frozen=True, eq=False)
class Normal:
    """N(mean, cov) in d dimensions; the covariance may be singular."""

    location: Array
    cov: Array

    def __post_init__(self) -> None:
        d = np.size(self.location)
        if np.shape(self.location) != (d,) or np.shape(self.cov) != (d, d):
            shapes = f"{np.shape(self.location)} and {np.shape(self.cov)}"
            raise ValueError(f"a normal needs a mean (d,) and a covariance (d, d), got shapes {shapes}")
        if not (np.isfinite(self.location).all() and np.isfinite(self.cov).all()):
            raise ValueError("a normal needs a finite mean and covariance")
        slack = 1e-8 * np.abs(self.cov).max()
        if np.abs(self.cov - self.cov.T).max() > slack or np.linalg.eigvalsh(self.cov)[0] < -slack:
            raise ValueError("a covariance must be symmetric and positive semidefinite")

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return len(self.location)

    @property
    def columns(self) -> tuple[Column, ...] | None:
        """Its columns if they are independent, else None."""
        variances = np.diagonal(self.cov)
        if (self.cov != np.diag(variances)).any():
            return None
        return tuple(map(Column, self.location, np.sqrt(np.maximum(variances, 0.0))))

    @property
    def kind(self) -> str:
        """What to call it in a message."""
        return "a normal distribution"

    def mean(self) -> Array:
        """Its mean (d,)."""
        return self.location

    def covariance(self) -> Array:
        """Its covariance (d, d)."""
        return self.cov

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n, d)."""
        variances, axes = eigh(self.cov)
        return self.location + (rng.standard_normal((n, self.dimension)) * np.sqrt(variances)) @ axes.T


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """The mixture `sum_i weights_i P_i` of distributions with closed forms; equal weights unless given.

    A component is anything `as_distribution` reads: a frozen `scipy.stats` normal, uniform or multivariate
    normal, a list of ones on the line (independent columns), or another mixture.

    Example:
        >>> from scipy import stats
        >>> from kernelbayes.kernels._integrals import Mixture
        >>> Mixture([stats.norm(-1, 0.5), stats.uniform(2, 2)], weights=[0.75, 0.25]).mean()
        array([0.])
    """

    components: Any
    weights: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.components, (list, tuple)) or not self.components:
            raise ValueError(f"components must be a list of distributions, got {self.components!r}")
        components = tuple(_read(c, "a Mixture") for c in self.components)
        if len({c.dimension for c in components}) > 1:
            found = [c.dimension for c in components]
            raise ValueError(f"the components of a mixture must have one dimension, got {found}")
        weights = _check.weights(self.weights, "weights", len(components))
        if (weights < 0).any() or abs(weights.sum() - 1.0) > 1e-6:
            raise ValueError(f"the weights of a mixture must be nonnegative and sum to 1, got {weights}")
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "weights", weights / weights.sum())

    @property
    def dimension(self) -> int:
        """Number of columns."""
        return self.components[0].dimension

    def mean(self) -> Array:
        """Its mean (d,)."""
        return self.weights @ np.stack([c.mean() for c in self.components])

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n, d)."""
        counts = rng.multinomial(n, self.weights)
        draws = [c.sample(k, rng) for c, k in zip(self.components, counts, strict=True)]
        return rng.permutation(np.concatenate(draws))


_Simple: TypeAlias = Independent | Normal
Distribution: TypeAlias = Independent | Normal | Mixture


def as_distribution(value: Any) -> Distribution | None:
    """Read a distribution, or return None for one that has no closed forms here (a gamma, say).

    Known are frozen `scipy.stats` `norm`, `uniform` and `multivariate_normal`, a list or tuple of those on
    the line (independent columns), and this module's own. What is no distribution at all raises ValueError.

    Example:
        >>> from scipy import stats
        >>> from kernelbayes.kernels._integrals import as_distribution
        >>> as_distribution([stats.norm(0, 1), stats.uniform(2, 4)]).mean()
        array([0., 4.])
        >>> as_distribution(stats.gamma(2.0)) is None
        True
    """
    if isinstance(value, (Independent, Normal, Mixture)):
        return value
    if isinstance(value, (list, tuple)):
        return _from_list(value)
    if callable(value) or not (hasattr(value, "rvs") or hasattr(value, "cdf")):
        raise ValueError(
            f"{value!r} is not a distribution; pass one with its parameters set, such as "
            "scipy.stats.norm(0, 1), or a list of them, one per column"
        )
    return _from_scipy(value)


def _from_list(values: list[Any] | tuple[Any, ...]) -> Independent | None:
    """Independent columns from a list of distributions on the line, or None if one of them is not known."""
    if not values:
        raise ValueError("a list of distributions, one per column, must not be empty")
    columns: list[Column] = []
    for i, value in enumerate(values):
        part = as_distribution(value)
        if part is not None and part.dimension != 1:
            raise ValueError(f"entry {i} of a list of distributions has {part.dimension} columns, not one")
        if part is None or isinstance(part, Mixture):
            return None
        columns += part.columns or ()
    return Independent(tuple(columns))


def _from_scipy(value: Any) -> _Simple | None:
    from scipy import stats  # slow to import, and loaded already by whoever holds a frozen distribution

    if isinstance(value, type(stats.multivariate_normal())):
        return Normal(np.asarray(value.mean, dtype=np.float64), np.asarray(value.cov, dtype=np.float64))
    family = type(getattr(value, "dist", None))
    if family is type(stats.norm):
        make, numbers = Column.normal, (value.mean(), value.std())
    elif family is type(stats.uniform):
        make, numbers = Column.uniform, value.support()
    else:
        return None
    if np.ndim(numbers) > 1 or not np.isfinite(numbers).all():
        raise ValueError(f"a {value.dist.name} needs one finite location and one positive scale")
    return Independent((make(*numbers),))


def _read(value: Any, what: str) -> Distribution:
    """A distribution with closed forms, or `NoClosedForm`."""
    distribution = as_distribution(value)
    if distribution is None:
        name = getattr(getattr(value, "dist", None), "name", type(value).__name__)
        raise NoClosedForm(f"no closed form is known for {what} with the distribution {name}")
    return distribution


# -------------------------------------------------------------------------------------------------- integrals


def mean_integral(kernel: Kernel, distribution: Any, X: ArrayLike) -> Array:
    """The embedding `∫ k(x, y) dP(y)` at the points X (n, d), of shape (n,).

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> from kernelbayes.kernels._integrals import mean_integral
        >>> mean_integral(kb.Gaussian(1.0), stats.norm(0, 1), np.array([[0.0], [1.0]])).round(4)
        array([0.7071, 0.5507])
    """
    Q = _read(distribution, type(kernel).__name__)
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != Q.dimension:
        raise ValueError(f"X has shape {X.shape}, but the distribution has {Q.dimension} columns")
    return np.asarray(_integral(kernel, Independent(tuple(Column(x) for x in X.T)), Q))


def double_integral(kernel: Kernel, P: Any, Q: Any) -> float:
    """The inner product of two embeddings, `∫∫ k(x, y) dP(x) dQ(y)`.

    Example:
        >>> import kernelbayes as kb
        >>> from scipy import stats
        >>> from kernelbayes.kernels._integrals import double_integral
        >>> round(double_integral(kb.Brownian(), stats.uniform(0, 1), stats.uniform(0, 1)), 6)
        0.333333
    """
    P, Q = _read(P, type(kernel).__name__), _read(Q, type(kernel).__name__)
    if P.dimension != Q.dimension:
        raise ValueError(f"P has {P.dimension} columns but Q has {Q.dimension}")
    return float(_integral(kernel, P, Q))


def _integral(kernel: Kernel, P: Distribution, Q: Distribution) -> Any:
    """E k(X, Y): linear in P and in Q, so that mixtures are taken apart first."""
    if isinstance(P, Mixture):
        return sum(w * _integral(kernel, p, Q) for w, p in zip(P.weights, P.components, strict=True))
    if isinstance(Q, Mixture):
        return sum(w * _integral(kernel, P, q) for w, q in zip(Q.weights, Q.components, strict=True))
    kernel._check_width(Q.dimension, "the distribution")
    try:
        return _form(kernel)(kernel, P, Q)
    except _Unknown:
        kinds = dict.fromkeys(p.kind for p in (P, Q) if p.kind != "independent fixed columns")
        what = f"{type(kernel).__name__} with {' and '.join(kinds)} in {Q.dimension}-d"
        raise NoClosedForm(f"no closed form is known for {what}") from None


# ------------------------------------------------------------------------------------ one function per kernel


def _gaussian(kernel: Gaussian, P: _Simple, Q: _Simple) -> Any:
    """Column by column where columns are independent, otherwise for normals only."""
    if P.columns is not None and Q.columns is not None:
        return _over_columns(_GaussianProfile, P, Q, kernel.lengthscale)
    if any(c.half > 0 for c in (P.columns or ()) + (Q.columns or ())):
        raise _Unknown
    return _gaussian_and_normal(kernel, P, Q)


def _gaussian_and_normal(kernel: Gaussian, P: _Simple, Q: _Simple) -> Any:
    """`|I + S|^(-1/2) exp(-(m - m')' (I + S)^-1 (m - m') / 2)` in units of the lengthscale.

    S is the sum of the covariances; points have none. Rasmussen and Ghahramani (2003), section 3.
    """
    unit = np.broadcast_to(np.asarray(kernel.lengthscale), (Q.dimension,))
    variances, axes = eigh((P.covariance() + Q.covariance()) / np.outer(unit, unit))
    along = ((P.mean() - Q.mean()) / unit) @ axes
    return np.exp(-0.5 * ((along**2 / (1.0 + variances)).sum(-1) + np.log1p(variances).sum()))


def _laplace(kernel: Laplace, P: _Simple, Q: _Simple) -> Any:
    return _over_columns(_LaplaceProfile, P, Q, kernel.lengthscale)


def _matern(kernel: Matern, P: _Simple, Q: _Simple) -> Any:
    """On the line only, where the Matern kernel of order 1/2 is the Laplace one."""
    if Q.dimension > 1:
        raise _Unknown
    profile = _LaplaceProfile if kernel.nu == 0.5 else functools.partial(_MaternProfile, nu=kernel.nu)
    return _over_columns(profile, P, Q, np.asarray(kernel.lengthscale) / math.sqrt(2.0 * kernel.nu))


def _sobolev(kernel: PeriodicSobolev, P: _Simple, Q: _Simple) -> Any:
    return _over_columns(functools.partial(_PeriodicProfile, phi=kernel._factor), P, Q, 1.0)


def _brownian(kernel: Brownian, P: _Simple, Q: _Simple) -> Any:
    """`(E|X|^2H + E|Y|^2H - E|X - Y|^2H) / 2` on the line. Quadrature notes, example 3."""
    if Q.dimension > 1 or P.columns is None or Q.columns is None:
        raise _Unknown
    profile = functools.partial(_PowerProfile, power=2.0 * np.asarray(kernel.hurst).item())
    (p,), (q,), origin = P.columns, Q.columns, Column(0.0)
    apart = _expectation(profile, p, q)
    return 0.5 * (_expectation(profile, p, origin) + _expectation(profile, q, origin) - apart)


def _linear(kernel: Linear, P: _Simple, Q: _Simple) -> Any:
    return P.mean() @ Q.mean() + np.asarray(kernel.offset).item()


def _polynomial(kernel: Polynomial, P: _Simple, Q: _Simple) -> Any:
    """`s E[x.y] + c`, and `s^2 E[(x.y)^2] + 2 s c E[x.y] + c^2` with `E[(x.y)^2] = tr E[xx'] E[yy']`."""
    if kernel.degree > 2:
        raise _Unknown
    c, s = np.asarray(kernel.offset).item(), np.asarray(kernel.scale).item()
    m, first = P.mean(), P.mean() @ Q.mean()
    if kernel.degree == 1:
        return s * first + c
    moment = Q.covariance() + np.outer(Q.mean(), Q.mean())
    second = ((m @ moment) * m).sum(-1) + (P.covariance() * moment).sum()
    return s * s * second + 2.0 * s * c * first + c * c


def _sum(kernel: Sum, P: _Simple, Q: _Simple) -> Any:
    return _integral(kernel.left, P, Q) + _integral(kernel.right, P, Q)


def _scaled(kernel: Scaled, P: _Simple, Q: _Simple) -> Any:
    return np.asarray(kernel.scale).item() * _integral(kernel.kernel, P, Q)


_FORMS: dict[type[Kernel], Callable[[Any, _Simple, _Simple], Any]] = {
    Brownian: _brownian,
    Gaussian: _gaussian,
    Laplace: _laplace,
    Linear: _linear,
    Matern: _matern,
    PeriodicSobolev: _sobolev,
    Polynomial: _polynomial,
    Scaled: _scaled,
    Sum: _sum,
}


def _form(kernel: Kernel) -> Callable[[Any, _Simple, _Simple], Any]:
    if type(kernel) not in _FORMS:  # not isinstance: a subclass may have another formula
        raise _Unknown
    return _FORMS[type(kernel)]


# --------------------------------------------------------------------------------------- one column at a time


class _Profile(Protocol):
    """The mean of an even function phi over t plus normal noise; over ±h besides; and over ±g once more."""

    def value(self, t: Any) -> Any: ...

    def box(self, t: Any, h: float) -> Any: ...

    def boxes(self, t: Any, g: float, h: float) -> Any: ...


def _over_columns(profile: Callable[[float], _Profile], P: _Simple, Q: _Simple, unit: Any) -> Any:
    """The product over independent columns of E phi((x_j - y_j) / unit_j)."""
    if P.columns is None or Q.columns is None:
        raise _Unknown
    units = np.broadcast_to(np.asarray(unit, dtype=np.float64), (Q.dimension,))
    return math.prod(_expectation(profile, *each) for each in zip(P.columns, Q.columns, units, strict=True))


def _expectation(profile: Callable[[float], _Profile], p: Column, q: Column, unit: float = 1.0) -> Any:
    """E phi((x - y) / unit) for x ~ p and y ~ q; `profile(s)` is phi smoothed by a normal of deviation s."""
    t = np.asarray((p.centre - q.centre) / unit)
    phi = profile(float(np.hypot(p.sd, q.sd) / unit))
    g, h = sorted((float(p.half / unit), float(q.half / unit)))
    if h == 0:
        return phi.value(t)
    return phi.box(t, h) if g == 0 else phi.boxes(t, g, h)


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


class _GaussianProfile(_Decaying):
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


class _LaplaceProfile(_Decaying):
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


# The value, tail and second tail of a Matern kernel are polynomials times exp(-t); lowest power first.
_MATERN = {
    1.5: ((1.0, 1.0), (2.0, 1.0), (3.0, 1.0)),
    2.5: ((1.0, 1.0, 1 / 3), (8 / 3, 5 / 3, 1 / 3), (5.0, 7 / 3, 1 / 3)),
}


@dataclasses.dataclass(frozen=True)
class _MaternProfile(_Decaying):
    """`(1 + t) exp(-t)` or `(1 + t + t^2/3) exp(-t)`, without noise."""

    nu: float

    def __post_init__(self) -> None:
        if self.s > 0:
            raise _Unknown

    def value(self, t: Any) -> Any:
        return self._evaluate(0, np.abs(t))

    def tail(self, t: Any) -> Any:
        return self._evaluate(1, t)

    def second_tail(self, t: Any) -> Any:
        return self._evaluate(2, t)

    def _evaluate(self, which: int, t: Any) -> Any:
        t = np.minimum(t, 800.0)  # the exponential is zero there; a power may overflow beyond
        return np.polynomial.polynomial.polyval(t, _MATERN[self.nu][which]) * np.exp(-t)


@dataclasses.dataclass(frozen=True)
class _PowerProfile:
    """`|t|^p`, without noise: singular at 0, but smooth on a box whose centre is three half-widths away."""

    s: float
    power: float

    def __post_init__(self) -> None:
        if self.s > 0:
            raise _Unknown

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
        return _second_difference(lambda u: u**p, t, g, h) / (4.0 * g * h * p * (p - 1.0))


@dataclasses.dataclass(frozen=True)
class _PeriodicProfile:
    """`1 + sum_m m^-2s cos 2 pi m t`: of period one and mean one, a polynomial between whole numbers.

    Over whole periods it integrates to their number, whatever noise there is. Quadrature notes, example 1.
    """

    s: float
    phi: Callable[[Any], Any]

    def value(self, t: Any) -> Any:
        if self.s > 0:
            raise _Unknown
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

"""The parts a prior is made of: each knows its columns, its density, and its way to Gaussian coordinates and back.

Hsu (2019), section 4.7: a column with distribution function P becomes standard normal by `z = Phi^-1(P(theta))`, and
`theta = P^-1(Phi(z))` leads back. The upper half of a distribution goes by its survival function, which keeps its digits
where 1 - P has none left.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from .. import _check
from .._linalg import cholesky, solve_lower
from .._typing import Array
from ..kernels._distributions import Distribution, Mixture, Normal, Simple

# Draws that settle location and spread of what has no distribution function, and that stand for it later.
POOL = 4096
_TINY = np.finfo(np.float64).tiny
# The largest whole number that is looked for, beyond the median.
_FARTHEST = 2.0**60
# Whole numbers from the low end that a distribution function may sum over, term by term; further out nothing is looked for.
_MOST_TERMS = 2**20
# How large the numbers of a distribution may be: SciPy answers larger ones with NaN, never, or by ending the process. First
# of whole numbers in general, then of those, and of some others, whose quantiles come from long series.
_LARGEST_OF_WHOLE = 1e12
_LARGEST = {
    "skellam": 1e6,
    "hypergeom": 1e7,
    "nhypergeom": 1e7,
    "nchypergeom_fisher": 1e6,
    "nchypergeom_wallenius": 1e6,
    "irwinhall": 100.0,
    "studentized_range": 1e3,
    "ncf": 1e12,
}
# How many values there may be where a distribution function is a sum over them.
_WIDEST = {
    "hypergeom": 10**6,
    "zipfian": 10**6,
    "poisson_binom": 10**4,
    "betabinom": 10**4,
    "nhypergeom": 10**4,
    "nchypergeom_fisher": 10**3,
    "nchypergeom_wallenius": 10**3,
}
# Of a support without an end: how much mass may lie beyond so many terms.
_TERMS, _MOST_BEYOND = 2**17, 1e-4
# Rows asked of a user's own sampler at a time when they are to be the same however many are asked for.
_BLOCK = 64


class Block(abc.ABC):
    """Some columns of a parameter vector under a prior of their own."""

    width: int

    @abc.abstractmethod
    def log_density(self, theta: Array) -> Array:
        """Log density (n,) of rows (n, width): minus infinity outside the support."""

    @abc.abstractmethod
    def to_gaussian(self, theta: Array) -> Array:
        """Coordinates (n, width) in which kernels and closed forms live."""

    @abc.abstractmethod
    def from_gaussian(self, z: Array) -> Array:
        """Parameters (n, width) again."""

    @property
    def latent(self) -> Distribution | None:
        """The distribution of the coordinates: standard normal, a mixture of normals, or None if only draws are known."""
        return Normal(np.zeros(self.width), np.eye(self.width))

    def stretch(self, theta: Array, z: Array) -> Array:
        """By which a density of coordinates becomes one of parameters (n,): (4.41); of whole numbers, their mass."""
        assert self.latent is not None
        return np.exp(self.log_density(theta)) / np.maximum(self.latent.density(z), np.finfo(float).tiny)

    @property
    def bounded(self) -> bool:
        """Whether the support has two ends."""
        return False

    @property
    @abc.abstractmethod
    def text(self) -> str:
        """How a person would write it."""


@dataclasses.dataclass(frozen=True, eq=False)
class Scalar(Block):
    """One column with a distribution of `scipy.stats`, kept as its name and numbers so that it can be saved."""

    family: str
    args: tuple[Any, ...]
    kwds: dict[str, Any]
    width: int = dataclasses.field(default=1, init=False)

    @classmethod
    def of(cls, frozen: Any, name: str) -> Scalar:
        """Read a frozen distribution."""
        family = frozen.dist.name
        if type(scipy_family(family)) is not type(frozen.dist):
            raise ValueError(
                f"the prior of {name} is of a class of your own, {type(frozen.dist).__name__}; "
                "pass kb.Prior(sampler=..., names=...) for a distribution that scipy.stats does not have"
            )
        numbers = [*frozen.args, *frozen.kwds.values()]
        if any(np.ndim(v) for v in numbers):
            raise ValueError(f"the prior of {name} has arrays for parameters; give each parameter a prior of its own")
        try:
            median = median_of(frozen)
        except ValueError as reason:
            raise ValueError(f"the prior of {name}: {reason}") from None
        if not np.isfinite(median):
            raise ValueError(f"the prior of {name} is not a distribution: {family}{tuple(numbers)} has no median")
        return cls(family, tuple(map(float, frozen.args)), {k: float(v) for k, v in frozen.kwds.items()})

    def _check_loaded(self) -> None:
        """Refuse what came from a file and is no distribution."""
        if scipy_family(self.family) is None:
            raise ValueError(f"scipy.stats has no distribution {self.family[:40]!r}")
        try:
            frozen = self.frozen
        except TypeError:  # other parameters than the family has
            raise ValueError(f"{self.text} is not a distribution of scipy.stats") from None
        if not np.isfinite(median_of(frozen)):
            raise ValueError(f"{self.text} is not a distribution: it has no median")

    @functools.cached_property
    def _frozen_cache(self) -> Any:
        family = scipy_family(self.family)
        if family is None:
            raise ValueError(f"scipy.stats has no distribution {self.family[:40]!r}")
        return family(*self.args, **self.kwds)

    @property
    def frozen(self) -> Any:
        """The distribution itself."""
        return self._frozen_cache

    @property
    def discrete(self) -> bool:
        """Whether it takes whole numbers."""
        return hasattr(self.frozen, "pmf")

    def log_density(self, theta: Array) -> Array:
        frozen = self.frozen
        return (frozen.logpmf if self.discrete else frozen.logpdf)(theta[:, 0])

    def to_gaussian(self, theta: Array) -> Array:
        frozen, x = self.frozen, theta[:, 0]
        below, above = frozen.cdf(x), frozen.sf(x)
        if self.discrete:  # the middle of the step, so that each whole number has a place of its own
            half = 0.5 * frozen.pmf(x)
            below, above = below - half, above + half
        return _coordinate(np.maximum(below, _TINY), np.maximum(above, _TINY))[:, None]

    def from_gaussian(self, z: Array) -> Array:
        frozen, z = self.frozen, z[:, 0]
        lower = z < 0
        out = np.empty(len(z))
        if self.discrete:
            up = whole_quantile(frozen, scipy.special.ndtr(-z[~lower]), upper=True)
            out[lower], out[~lower] = whole_quantile(frozen, scipy.special.ndtr(z[lower]), upper=False), up
        else:
            with np.errstate(over="ignore", divide="ignore"):
                out[lower] = frozen.ppf(np.maximum(scipy.special.ndtr(z[lower]), _TINY))
                out[~lower] = frozen.isf(np.maximum(scipy.special.ndtr(-z[~lower]), _TINY))
            out = self._inside(out)
        return out[:, None]

    def _inside(self, x: Array) -> Array:
        """Finite, and off an end of the support at which there is no density: where digits have run out."""
        ends, most = self.frozen.support(), np.finfo(np.float64).max
        x = np.clip(x, *np.clip(ends, -most, most))
        for end, inwards in zip(ends, (np.inf, -np.inf), strict=True):
            if (at_end := x == end).any() and self.frozen.logpdf(end) == -np.inf:
                x = np.where(at_end, np.nextafter(end, inwards), x)
        return x

    @property
    def bounded(self) -> bool:
        return bool(np.isfinite(self.frozen.support()).all())

    def step(self, theta: Array) -> tuple[Array, Array]:
        """Coordinates (n,) between which those lie that lead to whole numbers (n, 1)."""
        x = theta[:, 0]
        low, high = (_coordinate(self.frozen.cdf(edge), self.frozen.sf(edge)) for edge in (x - 1.0, x))
        return low, high

    @property
    def text(self) -> str:
        if self.family == "uniform":  # as bounds, which is how people think of it
            low, high = self.frozen.support()
            return f"({low:g}, {high:g})"
        numbers = [f"{v:g}" for v in self.args] + [f"{k}={v:g}" for k, v in self.kwds.items()]
        return f"{self.family}({', '.join(numbers)})"


def scipy_family(name: str) -> Any:
    """The distribution of `scipy.stats` with this name, or None: nothing else of that module is ever looked up by name."""
    from scipy import stats  # slow to import

    found = vars(stats).get(name)
    return found if isinstance(found, (stats.rv_continuous, stats.rv_discrete)) else None


def median_of(frozen: Any) -> float:
    """The median, NaN if there is no such distribution; a ValueError if its quantiles could not be waited for."""
    _check_numbers(frozen)
    if hasattr(frozen, "pmf"):
        _check_reach(frozen)
    try:
        with np.errstate(all="ignore"):
            return float(frozen.ppf(0.5))
    except (ValueError, RuntimeError, ArithmeticError):  # a search of SciPy's that did not end well
        return np.nan


def _check_numbers(frozen: Any) -> None:
    """Refuse numbers that SciPy cannot work with."""
    family = frozen.dist.name
    largest = _LARGEST.get(family, _LARGEST_OF_WHOLE if hasattr(frozen, "pmf") else np.inf)
    for number in (*frozen.args, *frozen.kwds.values()):
        if np.max(np.abs(number)) > largest:
            raise ValueError(
                f"{family} has the number {np.max(number):g}, and SciPy finds no quantiles beyond {largest:g}"
            )


def _check_reach(frozen: Any) -> None:
    """Refuse a distribution of whole numbers whose quantiles SciPy does not find, or not soon."""
    family = frozen.dist.name
    least, most = frozen.support()
    widest = _WIDEST.get(family, np.inf)
    if np.isfinite(most - least) and most - least > widest:
        raise ValueError(
            f"{family} has {most - least:.3g} values, and its distribution function sums over them; at most {widest:,}"
        )
    if np.isinf(most) and _is_summed(frozen):
        beyond = float(frozen.sf(least + _TERMS))
        if beyond > _MOST_BEYOND:
            raise ValueError(
                f"{family} has {beyond:.2g} of its mass beyond {least + _TERMS:,.0f}, and its distribution function sums "
                "over all whole numbers up to there: its tail is too long"
            )


def _is_summed(frozen: Any) -> bool:
    """Whether a distribution function is a sum, term by term: no digits far out, and costly."""
    from scipy import stats  # slow to import

    return type(frozen.dist)._cdf is stats.rv_discrete._cdf


def _coordinate(below: Array, above: Array) -> Array:
    """The coordinate (n,) with these masses on either side, by the smaller of them; never a negative zero."""
    return np.where(below < above, scipy.special.ndtri(below), -scipy.special.ndtri(above)) + 0.0


def whole_quantile(frozen: Any, mass: Array, upper: bool) -> Array:
    """The smallest whole numbers (n,) with at least, or with `upper` above which at most, a mass (n,) of up to a half.

    By halving: `isf` of a discrete distribution in scipy.stats is `ppf(1 - mass)`, which has no digits in the tail and need
    not end there.
    """
    summed = _is_summed(frozen)
    mass = np.maximum(mass, 1e-14 if summed else _TINY)
    least, most = frozen.support()
    most = min(most, least + _MOST_TERMS) if summed else most  # further out, the sum could not be held

    def enough(k: Array) -> Array:
        each, back = np.unique(k, return_inverse=True)  # few are asked for, and some are costly
        return frozen.sf(each)[back] <= mass if upper else frozen.cdf(each)[back] >= mass

    median = float(frozen.ppf(0.5))
    low, high, reach = np.full(len(mass), median - 1.0), np.full(len(mass), median), 1.0
    while True:  # until `high` is enough and `low` is not
        late = ~enough(high) if upper else enough(low)
        if not late.any() or reach > _FARTHEST:
            break
        if upper:
            low, high = np.where(late, high, low), np.where(late, np.minimum(high + reach, most), high)
        else:
            low, high = np.where(late, np.maximum(low - reach, least - 1.0), low), np.where(late, low, high)
        reach *= 2.0
    while (wide := high - low > 1.0).any():
        middle = np.where(wide, low + np.floor(0.5 * (high - low)), high)
        done = enough(middle)
        if not (wide & (middle > low) & (middle < high)).any():  # no whole number between them has digits of its own
            break
        low, high = np.where(wide & ~done, middle, low), np.where(wide & done, middle, high)
    return high


@dataclasses.dataclass(frozen=True, eq=False)
class Correlated(Block):
    """Columns with one normal distribution, whitened by its Cholesky factor."""

    normal: Normal

    @functools.cached_property
    def _factor(self) -> Array:
        return np.asarray(cholesky(self.normal.cov, "the covariance of the prior"))

    @property
    def width(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return self.normal.dimension

    def log_density(self, theta: Array) -> Array:
        z = self.to_gaussian(theta)
        constant = np.log(np.diagonal(self._factor)).sum() + 0.5 * self.width * np.log(2.0 * np.pi)
        return -0.5 * (z**2).sum(1) - constant

    def to_gaussian(self, theta: Array) -> Array:
        return np.asarray(solve_lower(self._factor, (theta - self.normal.location).T)).T

    def from_gaussian(self, z: Array) -> Array:
        return self.normal.location + z @ self._factor.T

    @property
    def text(self) -> str:
        return f"multivariate_normal({self.width} parameters)"


@dataclasses.dataclass(frozen=True, eq=False)
class Blend(Block):
    """Columns with a mixture of normals: shifted and scaled only, so that closed forms are sums over the components."""

    mixture: Mixture

    @property
    def width(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return self.mixture.dimension

    @property
    def _scale(self) -> Array:
        return np.sqrt(np.diagonal(self.mixture.covariance()))

    def log_density(self, theta: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.mixture.density(theta))

    def to_gaussian(self, theta: Array) -> Array:
        return (theta - self.mixture.mean()) / self._scale

    def from_gaussian(self, z: Array) -> Array:
        return self.mixture.mean() + z * self._scale

    @property
    def latent(self) -> Distribution:
        s, centre = self._scale, self.mixture.mean()
        moved = [Normal((c.mean() - centre) / s, c.covariance() / np.outer(s, s)) for c in normals(self.mixture)[1]]
        return Mixture(moved, normals(self.mixture)[0])

    @property
    def text(self) -> str:
        return f"mixture({len(self.mixture.components)} components)"


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn(Block):
    """Columns of which only draws are known, and perhaps a density: a pool of draws stands for the distribution.

    Coordinates are shifted and scaled parameters. What can be said about the posterior is said on the pool, so nothing
    ever leaves the support.
    """

    pool: Array
    sampler: Callable[[int, np.random.Generator], Any] | None = None
    logpdf: Callable[[Array], Array] | None = None

    @property
    def width(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return self.pool.shape[1]

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Fresh draws (n, width), or some of the pool where the sampler has not been kept."""
        if self.sampler is None:
            return self.pool[rng.choice(len(self.pool), n)]
        return read_draws(self.sampler(n, rng), n, self.width)

    def rows(self, start: int, stop: int, seed: int) -> Array:
        """Draws number start to stop - 1 of one unending sequence."""
        blocks = range(start // _BLOCK, -(-stop // _BLOCK))
        drawn = np.concatenate([self.draw(_BLOCK, np.random.default_rng([seed, b])) for b in blocks])
        return drawn[start - blocks.start * _BLOCK :][: stop - start]

    def log_density(self, theta: Array) -> Array:
        if self.logpdf is None:
            raise ValueError("this prior is known by its draws alone and has no density")
        return np.asarray(self.logpdf(theta), dtype=np.float64).reshape(len(theta))

    def to_gaussian(self, theta: Array) -> Array:
        return (theta - self.pool.mean(0)) / self._scale

    def from_gaussian(self, z: Array) -> Array:
        return self.pool.mean(0) + z * self._scale

    def stretch(self, theta: Array, z: Array) -> Array:
        return np.full(len(z), 1.0 / self._scale.prod())

    def _settled(self) -> Drawn:
        """Without the functions, which cannot be saved: the pool stands for them."""
        return Drawn(self.pool)

    @property
    def _scale(self) -> Array:
        spread = self.pool.std(0)
        return np.where(spread > 0, spread, 1.0)

    @property
    def latent(self) -> None:
        return None

    @property
    def text(self) -> str:
        return f"draws({self.width} parameters)"


def read_draws(value: Any, n: int, width: int | None) -> Array:
    """What a sampler returned, as a table (n, width)."""
    drawn = _check.vectors(value, "what the prior's sampler returned", width=width)
    if len(drawn) != n:
        raise ValueError(f"the prior's sampler was asked for {n} draws and returned {len(drawn)}")
    return drawn


def normals(distribution: Distribution) -> tuple[Array, list[Normal]]:
    """Weights and components of a normal or of a mixture of normals, however deep."""
    if isinstance(distribution, Mixture):
        parts = [normals(c) for c in distribution.components]
        weights = [w * inner for w, (inner, _) in zip(distribution.weights, parts, strict=True)]
        return np.concatenate(weights), [c for _, inside in parts for c in inside]
    return np.ones(1), [_as_normal(distribution)]


def _as_normal(distribution: Simple) -> Normal:
    if isinstance(distribution, Normal):
        return distribution
    if any(c.kind != "normal" for c in distribution.columns):
        raise ValueError("a mixture as a prior must have normal components")
    return Normal(distribution.mean(), distribution.covariance())

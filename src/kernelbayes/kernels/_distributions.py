"""The distributions that closed forms know, and how a user's distribution becomes one of them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, TypeAlias

import numpy as np

from .. import _check
from .._linalg import eigh
from .._typing import Array, RandomState

# Correlations with an eigenvalue below this are flat to rounding.
_SINGULAR = 1e-15


class NoClosedFormError(ValueError):
    """The integral of this kernel against this distribution is not among those known here."""


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

    def frozen(self) -> Any:
        """It as a frozen distribution of `scipy.stats`."""
        from scipy import stats  # slow to import

        if self.half > 0:
            return stats.uniform(self.centre - self.half, 2.0 * self.half)
        return stats.norm(self.centre, self.sd) if self.sd > 0 else stats.rv_discrete(values=([self.centre], [1.0]))()


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

    def density(self, X: Array) -> Array:
        """Its density (n,) at points (n, d)."""
        if any(c.kind == "fixed" for c in self.columns):
            raise ValueError("a column that is one fixed number has no density")
        return np.prod([c.frozen().pdf(x) for c, x in zip(self.columns, X.T, strict=True)], axis=0)


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
        return self.transform(rng.standard_normal((n, self.dimension)))

    def transform(self, standard: Array) -> Array:
        """Points (n, d) from independent standard normal ones."""
        variances, axes = eigh(self.cov)
        return self.location + (standard * np.sqrt(variances)) @ axes.T

    def density(self, X: Array) -> Array:
        """Its density (n,) at points (n, d)."""
        spread = np.sqrt(np.maximum(np.diagonal(self.cov), 0.0))
        units = np.where(spread > 0, spread, 1.0)
        variances, axes = eigh(self.cov / np.outer(units, units))
        if not variances[-1] > _SINGULAR:
            raise ValueError("a normal with a singular covariance has no density")
        along = ((X - self.location) / spread) @ axes
        volume = 0.5 * np.log(2.0 * np.pi * variances).sum() + np.log(spread).sum()
        return np.exp(-0.5 * (along**2 / variances).sum(1) - volume)


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """The mixture `sum_i weights_i P_i` of distributions with closed forms; equal weights unless given.

    A component is anything `as_distribution` reads: a frozen `scipy.stats` normal, uniform or multivariate
    normal, a list of ones on the line (independent columns), or another mixture.

    Example:
        >>> from scipy import stats
        >>> import kernelbayes as kb
        >>> kb.Mixture([stats.norm(-1, 0.5), stats.uniform(2, 2)], weights=[0.75, 0.25]).mean()
        array([0.])
    """

    components: Any
    weights: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.components, (list, tuple)) or not self.components:
            raise ValueError(f"components must be a list of distributions, got {self.components!r}")
        components = tuple(read_distribution(c, "a Mixture") for c in self.components)
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

    def covariance(self) -> Array:
        """Its covariance (d, d): within the components and between their means."""
        apart = np.stack([c.mean() for c in self.components]) - self.mean()
        within = np.einsum("k,kde->de", self.weights, np.stack([c.covariance() for c in self.components]))
        return within + (self.weights[:, None] * apart).T @ apart

    def density(self, X: Any) -> Array:
        """Its density (n,) at points (n, d)."""
        X = _check.vectors(X, "X", width=self.dimension)
        return self.weights @ np.stack([c.density(X) for c in self.components])

    def sample(self, n: int = 1000, random_state: RandomState = None) -> Array:
        """Independent draws (n, d)."""
        rng = _check.generator(random_state)
        counts = rng.multinomial(n, self.weights)
        draws = [c.sample(k, rng) for c, k in zip(self.components, counts, strict=True)]
        return rng.permutation(np.concatenate(draws))


Simple: TypeAlias = Independent | Normal
Distribution: TypeAlias = Independent | Normal | Mixture


def is_distribution(value: Any) -> bool:
    """Whether this looks like a distribution with its parameters set, or a list of them, one for each column."""
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(is_distribution(part) for part in value)
    both = hasattr(value, "cdf") and hasattr(value, "icdf")  # the new interface of SciPy
    return isinstance(value, Distribution) or hasattr(value, "rvs") or both


def as_distribution(value: Any) -> Distribution | None:
    """Read a distribution, or return None for one that has no closed forms here (a gamma, say).

    Known are frozen `scipy.stats` `norm`, `uniform` and `multivariate_normal`, a list or tuple of those on
    the line (independent columns), and this module's own. What is no distribution at all raises ValueError.

    Example:
        >>> from scipy import stats
        >>> from kernelbayes.kernels._distributions import as_distribution
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
            f"a {type(value).__name__} is not a distribution; pass one with its parameters set, such as "
            "scipy.stats.norm(0, 1), or a list of them, one per column (a sample has a kb.MeanEmbedding)"
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


def _from_scipy(value: Any) -> Simple | None:
    from scipy import stats  # slow to import, and loaded already by whoever holds a frozen distribution

    if isinstance(value, type(stats.multivariate_normal())):
        return Normal(np.asarray(value.mean, dtype=np.float64), np.asarray(value.cov, dtype=np.float64))
    family = type(getattr(value, "dist", None))
    if family is type(stats.norm):
        with np.errstate(over="ignore"):  # a width whose square is infinite is refused below
            make, numbers = Column.normal, (value.mean(), value.std())
    elif family is type(stats.uniform):
        make, numbers = Column.uniform, value.support()
    else:
        return None
    if np.ndim(numbers) > 1 or not np.isfinite(numbers).all():
        raise ValueError(f"the distribution {value.dist.name} needs one finite location and one positive scale")
    return Independent((make(*numbers),))


def support_of(value: Any) -> Array | None:
    """Ends (2, d) of where a distribution, or a list of them, may be; None where it does not tell.

    Example:
        >>> from scipy import stats
        >>> from kernelbayes.kernels._distributions import support_of
        >>> support_of([stats.uniform(0, 1), stats.expon()])
        array([[ 0.,  0.],
               [ 1., inf]])
    """
    if isinstance(value, (list, tuple)):
        parts = [support_of(part) for part in value]
        known = [part for part in parts if part is not None]
        return np.concatenate(known, axis=1) if len(known) == len(parts) else None
    if isinstance(value, Independent):
        reach = np.array([c.half if c.half > 0 else np.inf for c in value.columns])
        return np.stack([value.mean() - reach, value.mean() + reach])
    if not hasattr(value, "support"):  # of several columns at once
        return None
    ends = np.array(value.support(), dtype=np.float64)
    return ends[:, None] if ends.shape == (2,) else None


def within(support: Array | None, X: Array) -> Array:
    """Whether points (n, d) lie between the ends (2, d) of a support; everywhere, if it is not known."""
    if support is None or support.shape[1:] != X.shape[1:]:
        return np.ones(len(X), bool)
    return ((support[0] <= X) & (support[1] >= X)).all(1)


def zero_outside(support: Array | None, X: Array, values: Array) -> Array:
    """Values (n,) at points, with zeros outside of a support; as they are, where no point lies in it."""
    inside = within(support, X)
    return np.where(inside, values, 0.0) if inside.any() else values


def read_distribution(value: Any, what: str) -> Distribution:
    """A distribution with closed forms, or `NoClosedFormError`."""
    distribution = as_distribution(value)
    if distribution is None:
        name = getattr(getattr(value, "dist", None), "name", type(value).__name__)
        raise NoClosedFormError(f"no closed form is known for {what} with the distribution {name}")
    return distribution

"""The distribution of what is left when location, scale and dependence are taken out: about zero, of unit variance."""

from __future__ import annotations

import abc
import dataclasses

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtr, ndtri

from .._typing import Array
from ..kernels._stationary import squared_distances

_LOG_2PI = float(np.log(2.0 * np.pi))
# A wide normal has this share of the mass, so that nothing is impossible.
TAIL_SHARE, TAIL_WIDTH = 0.03, 2.0
_BLOCK = 2**19
# A density of one column is tabulated up to here, with as many steps as its bandwidths want, and these many of them at most.
_TABLE_END, _STEPS_PER_BANDWIDTH, _MOST_STEPS = 6.0, 3.0, 2**13
_REACH = 8.0  # bandwidths at which a normal density is nothing


class Shape(abc.ABC):
    """A density on R^p."""

    @abc.abstractmethod
    def log_density(self, T: Array, X: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p), given x (t, d)."""

    @abc.abstractmethod
    def sample(self, X: Array, rng: np.random.Generator) -> Array:
        """A draw (t, p) for each x (t, d)."""

    @abc.abstractmethod
    def described(self) -> str:
        """In a few words."""

    def cdf(self, t: Array, X: Array) -> Array:
        """The distribution function (t,), of one column, given x (t, d)."""
        raise NotImplementedError

    def quantile(self, levels: Array, X: Array) -> Array:
        """Quantiles (k, 1) or (k, t) of one column, given x (t, d)."""
        grid = quantile_grid()
        values = np.maximum.accumulate(self.cdf(grid, X[:1]))
        keep = np.concatenate([[True], np.diff(values) > 0])
        return np.interp(levels, values[keep], grid[keep])[:, None]

    @property
    def local(self) -> bool:
        """Whether it depends on x."""
        return False


@dataclasses.dataclass(frozen=True, eq=False)
class NormalShape(Shape):
    """Standard normal."""

    dimension: int

    def log_density(self, T: Array, X: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p), given x (t, d)."""
        return -0.5 * (T * T).sum(1) - 0.5 * T.shape[1] * _LOG_2PI

    def sample(self, X: Array, rng: np.random.Generator) -> Array:
        """A draw (t, p) for each x (t, d)."""
        return rng.standard_normal((len(X), self.dimension))

    def described(self) -> str:
        """In a word."""
        return "normal"

    def cdf(self, t: Array, X: Array) -> Array:
        """The distribution function, of one column."""
        return ndtr(t)

    def quantile(self, levels: Array, X: Array) -> Array:
        """Quantiles (k, 1) of one column, whatever x."""
        return ndtri(levels)[:, None]


@dataclasses.dataclass(frozen=True, eq=False)
class SmoothedShape(Shape):
    """A kernel density on residuals, with a bandwidth for each, and a wide normal beneath."""

    points: Array
    bandwidths: Array
    weights: Array

    def log_density(self, T: Array, X: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p), given x (t, d)."""
        near = np.empty(len(T))
        heights = _heights(self.weights, self.bandwidths, T.shape[1])
        rows = max(1, _BLOCK // max(len(self.points), 1))
        for i in range(0, len(T), rows):
            exponents = self._exponents(T[i : i + rows])
            near[i : i + rows] = np.exp(exponents, out=exponents) @ heights
        return with_tail(near, (T * T).sum(1), T.shape[1])

    def sample(self, X: Array, rng: np.random.Generator) -> Array:
        """A draw (t, p) for each x (t, d)."""
        return self.around(rng.choice(len(self.points), len(X), p=self.weights), rng)

    def around(self, which: Array, rng: np.random.Generator) -> Array:
        """Draws (t, p) from the normal densities of these points, or from the tail."""
        noise = rng.standard_normal((len(which), self.points.shape[1]))
        near = self.points[which] + self.bandwidths[which, None] * noise
        return np.where(rng.random((len(which), 1)) < TAIL_SHARE, TAIL_WIDTH * noise, near)

    def parts(self, T: Array) -> Array:
        """The normal densities (t, n) of the points, at T (t, p)."""
        heights = _heights(np.ones(len(self.points)), self.bandwidths, T.shape[1])
        return np.exp(self._exponents(T)) * heights

    def _exponents(self, T: Array) -> Array:
        narrow = -0.5 / self.bandwidths**2
        # they are linear in `[t, |t|^2, 1]`
        form = np.vstack([-2.0 * narrow * self.points.T, narrow, narrow * (self.points**2).sum(1)])
        return np.column_stack([T, (T * T).sum(1), np.ones(len(T))]) @ form

    def described(self) -> str:
        """In a few words."""
        return "kernel density" if self.points.shape[1] == 1 else "joint kernel density"

    def cdf(self, t: Array, X: Array) -> Array:
        """The distribution function, of one column."""
        near = ndtr((t[:, None] - self.points[:, 0]) / self.bandwidths) @ self.weights
        return (1.0 - TAIL_SHARE) * near + TAIL_SHARE * ndtr(t / TAIL_WIDTH)


@dataclasses.dataclass(frozen=True, eq=False)
class TabulatedShape(Shape):
    """A kernel density of one column whose logarithm is read off a table, by cubics between even steps.

    Attributes:
        beyond: of the points that matter outside of the table.
    """

    smoothed: SmoothedShape
    cubics: Array
    beyond: SmoothedShape

    @classmethod
    def of(cls, smoothed: SmoothedShape) -> TabulatedShape | SmoothedShape:
        """The same density; as it is where its bandwidths are too narrow for a table."""
        steps = int(np.ceil(2 * _TABLE_END * _STEPS_PER_BANDWIDTH / smoothed.bandwidths.min()))
        if steps > _MOST_STEPS:
            return smoothed
        grid = np.linspace(-_TABLE_END, _TABLE_END, steps + 1)
        outer = np.abs(smoothed.points[:, 0]) + _REACH * smoothed.bandwidths > _TABLE_END
        beyond = SmoothedShape(smoothed.points[outer], smoothed.bandwidths[outer], smoothed.weights[outer])
        return cls(smoothed, CubicSpline(grid, smoothed.log_density(grid[:, None], grid[:, None])).c, beyond)

    def log_density(self, T: Array, X: Array) -> Array:
        """Logarithm of the density (t,) at points (t, 1), whatever x."""
        t, steps = T[:, 0], self.cubics.shape[1]
        step = 2 * _TABLE_END / steps
        outside = ~(np.abs(t) < _TABLE_END)
        inner = np.where(outside, 0.0, t) + _TABLE_END
        which = np.minimum((inner / step).astype(np.intp), steps - 1)
        u, (a, b, c, d) = inner - which * step, self.cubics[:, which]
        out = ((a * u + b) * u + c) * u + d
        if outside.any():
            out[outside] = self.beyond.log_density(T[outside], X[outside])
        return out

    def sample(self, X: Array, rng: np.random.Generator) -> Array:
        """A draw (t, 1) for each x (t, d)."""
        return self.smoothed.sample(X, rng)

    def described(self) -> str:
        """In a few words."""
        return self.smoothed.described()

    def cdf(self, t: Array, X: Array) -> Array:
        """The distribution function."""
        return self.smoothed.cdf(t, X)


@dataclasses.dataclass(frozen=True, eq=False)
class ProductShape(Shape):
    """Independent columns, each with a shape of its own."""

    columns: tuple[Shape, ...]

    def log_density(self, T: Array, X: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p), given x (t, d)."""
        return sum((c.log_density(T[:, [j]], X) for j, c in enumerate(self.columns)), start=np.zeros(len(T)))

    def sample(self, X: Array, rng: np.random.Generator) -> Array:
        """A draw (t, p) for each x (t, d)."""
        return np.concatenate([column.sample(X, rng) for column in self.columns], axis=1)

    def described(self) -> str:
        """In a few words."""
        return f"independent: {', '.join(column.described() for column in self.columns)}"

    @property
    def local(self) -> bool:
        """Whether any column's depends on x."""
        return any(column.local for column in self.columns)


def quantile_grid() -> Array:
    """Where distribution functions are evaluated to be inverted."""
    return np.concatenate([np.linspace(-12, -4, 33)[:-1], np.linspace(-4, 4, 801), np.linspace(4, 12, 33)[1:]])


def _heights(weights: Array, widths: Array, p: int) -> Array:
    """What exponentials of normal densities are multiplied by."""
    return weights * (np.sqrt(2.0 * np.pi) * widths) ** -float(p)


def with_tail(near: Array, squares: Array, p: int) -> Array:
    """Logarithm of a density (t,) with the tail beneath, at points of these squared norms."""
    tail = np.log(TAIL_SHARE) - 0.5 * squares / TAIL_WIDTH**2 - p * np.log(TAIL_WIDTH) - 0.5 * p * _LOG_2PI
    with np.errstate(divide="ignore"):  # what is too small for a number is nothing beside the tail
        return np.logaddexp(np.log((1.0 - TAIL_SHARE) * near), tail)


def fit_smoothed(
    T: Array, weights: Array, groups: Array | None, neighbours: tuple[int, ...], shares: tuple[float, ...]
) -> tuple[SmoothedShape, Array]:
    """A kernel density whose bandwidths are a share of the distance to the k-th neighbour; and the left-out one (n,).

    Both numbers are those of the best left-out density. Adaptive bandwidths are due to Breiman, Meisel and Purcell (1977).
    """
    n, p = T.shape
    squares, norms = squared_distances(T, T), (T * T).sum(1)
    own = None if groups is None else groups[:, None] == groups
    outside = 1.0 - np.minimum(weights if own is None else own @ weights, 1.0 - 1e-12)
    near = np.sort([min(k, n - 2) for k in neighbours])
    reaches = np.sqrt(np.partition(squares, near, axis=1)[:, near].T)
    exponentials = np.empty_like(squares)
    best: tuple[float, Array, Array] | None = None
    for reach in np.maximum(reaches, 0.1 * np.median(reaches, axis=1, keepdims=True)):
        reach = np.where(reach > 0, reach, 1e-3)
        for share in shares:
            np.multiply(squares, -0.5 / (share * reach) ** 2, out=exponentials)
            np.exp(exponentials, out=exponentials)
            if own is None:
                np.fill_diagonal(exponentials, 0.0)
            else:
                exponentials[own] = 0.0
            left_out = with_tail(exponentials @ _heights(weights, share * reach, p) / outside, norms, p)
            score = float(weights @ left_out)
            if best is None or score > best[0]:
                best = (score, share * reach, left_out)
    assert best is not None
    return SmoothedShape(T, best[1], weights), best[2]

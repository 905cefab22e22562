"""The distribution of what is left when location, scale and dependence are taken out: about zero, of unit variance."""

from __future__ import annotations

import abc
import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

from .._typing import Array
from ..kernels._stationary import squared_distances
from ._columns import better

_LOG_2PI = float(np.log(2.0 * np.pi))
# A wide normal has this share of the mass, so that nothing is impossible.
_TAIL_SHARE, _TAIL_WIDTH = 0.03, 2.0
# Bandwidths are such shares of the distance to the k-th neighbour.
_NEIGHBOURS, _SHARES = (5, 12, 25, 50), (0.15, 0.25, 0.4, 0.6, 0.9)
_COLUMN_NEIGHBOURS, _COLUMN_SHARES = (25, 100), (0.3, 0.6, 1.0)
_FEWEST, _MOST_POINTS, _MOST_JOINT = 50, 1000, 6
_BLOCK = 2**19
# A density of one column is tabulated up to here, with as many steps as its bandwidths want, and these many of them at most.
_TABLE_END, _STEPS_PER_BANDWIDTH, _MOST_STEPS = 6.0, 3.0, 2**13
_REACH = 8.0  # bandwidths at which a normal density is nothing


class Shape(abc.ABC):
    """A density on R^p."""

    @abc.abstractmethod
    def log_density(self, T: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p)."""

    @abc.abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, p)."""

    @abc.abstractmethod
    def described(self) -> str:
        """In a few words."""


@dataclasses.dataclass(frozen=True, eq=False)
class NormalShape(Shape):
    """Standard normal."""

    dimension: int

    def log_density(self, T: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p)."""
        return -0.5 * (T * T).sum(1) - 0.5 * T.shape[1] * _LOG_2PI

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, p)."""
        return rng.standard_normal((n, self.dimension))

    def described(self) -> str:
        """In a word."""
        return "normal"

    def cdf(self, t: Array) -> Array:
        """The distribution function, of one column."""
        return ndtr(t)


@dataclasses.dataclass(frozen=True, eq=False)
class SmoothedShape(Shape):
    """A kernel density on residuals, with a bandwidth for each, and a wide normal beneath."""

    points: Array
    bandwidths: Array
    weights: Array

    def log_density(self, T: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p)."""
        near = np.empty(len(T))
        narrow = -0.5 / self.bandwidths**2
        squares = (self.points**2).sum(1)
        # Exponents are linear in `[t, |t|^2, 1]`.
        form = np.vstack([-2.0 * narrow * self.points.T, narrow, narrow * squares])
        heights = _heights(self.weights, self.bandwidths, T.shape[1])
        T = np.column_stack([T, (T * T).sum(1), np.ones(len(T))])
        rows = max(1, _BLOCK // max(len(self.points), 1))
        for i in range(0, len(T), rows):
            exponents = T[i : i + rows] @ form
            near[i : i + rows] = np.exp(exponents, out=exponents) @ heights
        return _with_tail(near, T[:, -2], T.shape[1] - 2)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, p)."""
        which = rng.choice(len(self.points), n, p=self.weights)
        noise = rng.standard_normal((n, self.points.shape[1]))
        near = self.points[which] + self.bandwidths[which, None] * noise
        return np.where(rng.random((n, 1)) < _TAIL_SHARE, _TAIL_WIDTH * noise, near)

    def described(self) -> str:
        """In a few words."""
        return "kernel density" if self.points.shape[1] == 1 else "joint kernel density"

    def cdf(self, t: Array) -> Array:
        """The distribution function, of one column."""
        near = ndtr((t[:, None] - self.points[:, 0]) / self.bandwidths) @ self.weights
        return (1.0 - _TAIL_SHARE) * near + _TAIL_SHARE * ndtr(t / _TAIL_WIDTH)


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
        return cls(smoothed, CubicSpline(grid, smoothed.log_density(grid[:, None])).c, beyond)

    def log_density(self, T: Array) -> Array:
        """Logarithm of the density (t,) at points (t, 1)."""
        t, steps = T[:, 0], self.cubics.shape[1]
        step = 2 * _TABLE_END / steps
        outside = ~(np.abs(t) < _TABLE_END)
        inner = np.where(outside, 0.0, t) + _TABLE_END
        which = np.minimum((inner / step).astype(np.intp), steps - 1)
        u, (a, b, c, d) = inner - which * step, self.cubics[:, which]
        out = ((a * u + b) * u + c) * u + d
        if outside.any():
            out[outside] = self.beyond.log_density(T[outside])
        return out

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, 1)."""
        return self.smoothed.sample(n, rng)

    def described(self) -> str:
        """In a few words."""
        return self.smoothed.described()

    def cdf(self, t: Array) -> Array:
        """The distribution function."""
        return self.smoothed.cdf(t)


@dataclasses.dataclass(frozen=True, eq=False)
class ProductShape(Shape):
    """Independent columns, each with a shape of its own."""

    columns: tuple[Shape, ...]

    def log_density(self, T: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p)."""
        return sum((c.log_density(T[:, [j]]) for j, c in enumerate(self.columns)), start=np.zeros(len(T)))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, p)."""
        return np.concatenate([column.sample(n, rng) for column in self.columns], axis=1)

    def described(self) -> str:
        """In a few words."""
        return f"independent: {', '.join(column.described() for column in self.columns)}"


def _heights(weights: Array, widths: Array, p: int) -> Array:
    """What exponentials of normal densities are multiplied by."""
    return weights * (np.sqrt(2.0 * np.pi) * widths) ** -float(p)


def _with_tail(near: Array, squares: Array, p: int) -> Array:
    """Logarithm of a density (t,) with the tail beneath, at points of these squared norms."""
    tail = np.log(_TAIL_SHARE) - 0.5 * squares / _TAIL_WIDTH**2 - p * np.log(_TAIL_WIDTH) - 0.5 * p * _LOG_2PI
    with np.errstate(divide="ignore"):  # what is too small for a number is nothing beside the tail
        return np.logaddexp(np.log((1.0 - _TAIL_SHARE) * near), tail)


class FittedShape(NamedTuple):
    """A shape, and the logarithms of its density at some rows, each left out."""

    shape: Shape
    rows: Array
    left_out: Array


def fit_shape(
    T: Array, weights: Array, groups: Array | None, rng: np.random.Generator, kind: str | None = None
) -> FittedShape:
    """The simplest shape that left-out rows do not speak against: normal, columns each of its own shape, or joint.

    Anything but the normal must predict left-out rows better by more than a standard error, and joint shapes are tried in up
    to six columns. Of many rows some are used.
    """
    n, p = T.shape
    rows = np.arange(n) if n <= _MOST_POINTS else rng.permutation(n)[:_MOST_POINTS]
    T, w = T[rows], weights[rows] / weights[rows].sum()
    groups = None if groups is None else groups[rows]
    normal = NormalShape(p)
    best = FittedShape(normal, rows, normal.log_density(T))
    if kind == "normal" or n < _FEWEST:
        return best
    columns = [_fit_column(T[:, [j]], w, groups) for j in range(p)]
    product = columns[0][0] if p == 1 else ProductShape(tuple(shape for shape, _ in columns))
    tried = FittedShape(product, rows, np.sum([left_out for _, left_out in columns], axis=0))
    if kind == "columns" or better(tried.left_out, best.left_out, w):
        best = tried
    if p > 1 and kind != "columns" and (kind == "joint" or p <= _MOST_JOINT):
        smoothed, left_out = fit_smoothed(T, w, groups, _NEIGHBOURS, _SHARES)
        joint = FittedShape(smoothed, rows, left_out)
        if kind == "joint" or better(joint.left_out, best.left_out, w):
            best = joint
    return best


def _fit_column(t: Array, weights: Array, groups: Array | None) -> tuple[Shape, Array]:
    normal = NormalShape(1)
    smoothed, left_out = fit_smoothed(t, weights, groups, _COLUMN_NEIGHBOURS, _COLUMN_SHARES)
    plain = normal.log_density(t)
    return (TabulatedShape.of(smoothed), left_out) if better(left_out, plain, weights) else (normal, plain)


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
            left_out = _with_tail(exponentials @ _heights(weights, share * reach, p) / outside, norms, p)
            score = float(weights @ left_out)
            if best is None or score > best[0]:
                best = (score, share * reach, left_out)
    assert best is not None
    return SmoothedShape(T, best[1], weights), best[2]

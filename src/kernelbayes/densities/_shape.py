"""The distribution of what is left when location, scale and dependence are taken out: about zero, of unit variance."""

from __future__ import annotations

import abc
from typing import NamedTuple

import equinox as eqx
import numpy as np
from scipy.special import logsumexp, ndtr

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
_BLOCK = 2**21


class Shape(eqx.Module):
    """A density on R^p."""

    @abc.abstractmethod
    def log_density(self, T: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p)."""

    @abc.abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, p)."""


class NormalShape(Shape):
    """Standard normal."""

    dimension: int = eqx.field(static=True)

    def log_density(self, T: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p)."""
        return -0.5 * (T * T).sum(1) - 0.5 * T.shape[1] * _LOG_2PI

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, p)."""
        return rng.standard_normal((n, self.dimension))

    def cdf(self, t: Array) -> Array:
        """The distribution function, of one column."""
        return ndtr(t)


def _log_normal(squares: Array, width: Array | float, p: int) -> Array:
    return -0.5 * squares / np.square(width) - p * np.log(width) - 0.5 * p * _LOG_2PI


class SmoothedShape(Shape):
    """A kernel density on residuals, with a bandwidth for each, and a wide normal beneath."""

    points: Array
    bandwidths: Array
    weights: Array

    def log_density(self, T: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p)."""
        p, out = T.shape[1], np.empty(len(T))
        log_weights = np.log(self.weights)
        rows = max(1, _BLOCK // len(self.points))
        for i in range(0, len(T), rows):
            logs = _log_normal(squared_distances(T[i : i + rows], self.points), self.bandwidths, p) + log_weights
            out[i : i + rows] = logsumexp(logs, axis=1)
        return np.logaddexp(out + np.log(1.0 - _TAIL_SHARE), _tail(T))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, p)."""
        which = rng.choice(len(self.points), n, p=self.weights)
        noise = rng.standard_normal((n, self.points.shape[1]))
        near = self.points[which] + self.bandwidths[which, None] * noise
        return np.where(rng.random((n, 1)) < _TAIL_SHARE, _TAIL_WIDTH * noise, near)

    def cdf(self, t: Array) -> Array:
        """The distribution function, of one column."""
        near = ndtr((t[:, None] - self.points[:, 0]) / self.bandwidths) @ self.weights
        return (1.0 - _TAIL_SHARE) * near + _TAIL_SHARE * ndtr(t / _TAIL_WIDTH)


class ProductShape(Shape):
    """Independent columns, each with a shape of its own."""

    columns: tuple[Shape, ...]

    def log_density(self, T: Array) -> Array:
        """Logarithm of the density (t,) at points (t, p)."""
        return sum((c.log_density(T[:, [j]]) for j, c in enumerate(self.columns)), start=np.zeros(len(T)))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, p)."""
        return np.concatenate([column.sample(n, rng) for column in self.columns], axis=1)


def _tail(T: Array) -> Array:
    return np.log(_TAIL_SHARE) + _log_normal((T * T).sum(1), _TAIL_WIDTH, T.shape[1])


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
    return (smoothed, left_out) if better(left_out, plain, weights) else (normal, plain)


def fit_smoothed(
    T: Array, weights: Array, groups: Array | None, neighbours: tuple[int, ...], shares: tuple[float, ...]
) -> tuple[SmoothedShape, Array]:
    """A kernel density whose bandwidths are a share of the distance to the k-th neighbour; and the left-out one (n,).

    Both numbers are those of the best left-out density. Adaptive bandwidths are due to Breiman, Meisel and Purcell (1977).
    """
    n, p = T.shape
    squares = squared_distances(T, T)
    own = np.eye(n, dtype=bool) if groups is None else groups[:, None] == groups
    log_weights = np.log(weights)
    outside = np.log1p(-np.minimum(own @ weights, 1.0 - 1e-12))
    best: tuple[float, Array, Array] | None = None
    for k in (min(k, n - 2) for k in neighbours):
        reach = np.sqrt(np.partition(squares, k, axis=1)[:, k])
        reach = np.maximum(reach, 0.1 * np.median(reach))
        reach = np.where(reach > 0, reach, 1e-3)
        for share in shares:
            logs = _log_normal(squares, share * reach, p) + log_weights
            logs[own] = -np.inf
            left_out = np.logaddexp(logsumexp(logs, axis=1) - outside + np.log(1.0 - _TAIL_SHARE), _tail(T))
            score = float(weights @ left_out)
            if best is None or score > best[0]:
                best = (score, share * reach, left_out)
    assert best is not None
    return SmoothedShape(T, best[1], weights), best[2]

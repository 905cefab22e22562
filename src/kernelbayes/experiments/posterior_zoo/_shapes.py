"""Posteriors with a shape: a crescent, a ring, two scales, and several modes by symmetry."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..._typing import Array
from ...lfi import Prior
from ._problem import ZooProblem, normal


def _curved(ring: bool) -> ZooProblem:
    """One sharp statistic that is a curve in the plane of the parameters, and a vague one."""
    spread = np.array([0.25, 1.0]) if ring else np.array([0.15, 0.8])

    def locations(theta: Array) -> Array:
        a, b = theta.T
        return np.column_stack([a**2 + 1.5 * b**2, a - 0.5 * b] if ring else [b + a**2, a])

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        return locations(theta) + spread * rng.standard_normal(theta.shape)

    def log_likelihood(theta: Array, x: Array) -> Array:
        return normal(x, locations(theta), spread).sum(1)

    name, about = ("ring", "posterior on an ellipse") if ring else ("crescent", "posterior on an arc")
    prior = Prior(a=stats.norm(0.0, 1.0), b=stats.norm(0.0, 1.0))
    return ZooProblem(name, about, "curve", ring, prior, simulate, log_likelihood)


def _two_scales(held_out: bool) -> ZooProblem:
    """Noise that is now wide, now narrow; held out, in three dimensions with uniform priors."""
    d, share, wide, narrow = (3, 0.4, 1.2, 0.2) if held_out else (2, 0.6, 1.0, 0.12)
    M = np.eye(d) + 0.4 * np.eye(d, k=1)
    prior = Prior({f"a{i}": (-3.0, 3.0) if held_out else stats.norm(0.0, 2.0) for i in range(d)})

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        scale = np.where(rng.random(len(theta)) < share, wide, narrow)
        return theta @ M.T + scale[:, None] * rng.standard_normal(theta.shape)

    def log_likelihood(theta: Array, x: Array) -> Array:
        parts = [normal(x, theta @ M.T, scale).sum(1) for scale in (wide, narrow)]
        return np.logaddexp(np.log(share) + parts[0], np.log(1.0 - share) + parts[1])

    name = f"two-scales-{d}"
    return ZooProblem(
        name, f"{d} parameters, noise of two scales", "mixture", held_out, prior, simulate, log_likelihood
    )


def _pairs(mean: Array, first: Array, second: Array, rho: Array, n: int, rng: np.random.Generator) -> Array:
    """n draws (m, n, 2) of two correlated normals."""
    z = rng.standard_normal((len(mean), n, 2))
    other = rho[:, None] * z[..., 0] + np.sqrt(1.0 - rho**2)[:, None] * z[..., 1]
    return mean[:, None] + np.stack([first[:, None] * z[..., 0], second[:, None] * other], axis=-1)


def _log_pairs(draws: tuple[Array, Array], mean: Array, first: Array, second: Array, rho: Array, n: int) -> Array:
    """Log likelihood (m,) of n pairs, of which only the mean (2,) and the sums of products about it (2, 2) matter."""
    centre, products = draws
    left, right = ((centre - mean) / np.column_stack([first, second])).T
    quadratic = products[0, 0] / first**2 + n * left**2 + products[1, 1] / second**2 + n * right**2
    cross = products[0, 1] / (first * second) + n * left * right
    rest = 1.0 - rho**2
    return -n * (np.log(first) + np.log(second) + 0.5 * np.log(rest)) - 0.5 * (quadratic - 2.0 * rho * cross) / rest


def _mirrors() -> ZooProblem:
    """Six raw pairs; the first scale is even in u, and the correlation the same for w and pi - w: four modes."""
    n = 6
    prior = Prior(a=(-3.0, 3.0), b=(-3.0, 3.0), u=(-1.5, 1.5), v=stats.norm(-0.5, 0.7), w=(-np.pi, np.pi))

    def model(theta: Array) -> tuple[Array, Array, Array, Array]:
        u, v, w = theta[:, 2:].T
        return theta[:, :2], 0.1 + u**2, np.exp(v), 0.9 * np.sin(w)

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        return _pairs(*model(theta), n, rng).reshape(len(theta), -1)

    def log_likelihood(theta: Array, x: Array) -> Array:
        draws = x.reshape(n, 2)
        centre = draws.mean(0)
        return _log_pairs((centre, (draws - centre).T @ (draws - centre)), *model(theta), n)

    about = "six raw pairs; scales and a correlation are parameters; four modes by symmetry"
    return ZooProblem("mirrors", about, "modes", False, prior, simulate, log_likelihood)


def _mirrors_by_moments() -> ZooProblem:
    """Ten pairs told by mean, log variances and the arctanh of the correlation; four modes by the signs of u and v."""
    n = 10
    prior = Prior(m=stats.norm(0.0, 1.0), u=stats.norm(0.0, 0.8), v=(-1.5, 1.5), w=stats.norm(0.0, 0.8))

    def model(theta: Array) -> tuple[Array, Array, Array, Array]:
        m, u, v, w = theta.T
        return np.column_stack([m, m**2 - 1.0]), 0.15 + u**2, 0.15 + v**2, 0.98 * np.tanh(w)

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        draws = _pairs(*model(theta), n, rng)
        centre = draws.mean(1)
        rest = draws - centre[:, None]
        squares, cross = (rest**2).sum(1), rest.prod(-1).sum(1)
        rho = cross / np.sqrt(squares.prod(-1))
        return np.column_stack([centre, np.log(squares / (n - 1)), np.arctanh(rho)])

    def log_likelihood(theta: Array, x: Array) -> Array:
        squares = np.exp(x[2:4]) * (n - 1)
        cross = np.tanh(x[4]) * np.sqrt(squares.prod())
        products = np.array([[squares[0], cross], [cross, squares[1]]])
        return _log_pairs((x[:2], products), *model(theta), n)

    about = "mean, log variances and correlation of ten pairs; four modes by symmetry"
    return ZooProblem("mirrors-moments", about, "modes", True, prior, simulate, log_likelihood)


SHAPES = (
    _curved(ring=False),
    _curved(ring=True),
    _two_scales(held_out=False),
    _two_scales(held_out=True),
    _mirrors(),
    _mirrors_by_moments(),
)

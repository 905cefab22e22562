"""Linear-Gaussian problems, and statistics among junk."""

from __future__ import annotations

import numpy as np
from scipy import stats

from ..._linalg import cholesky, solve
from ..._typing import Array
from ...lfi import Prior
from ._problem import ZooProblem, normal


def _linear(d: int, noise: float, held_out: bool, box: bool = False) -> ZooProblem:
    """x = A theta + noise that is correlated by a common part, with A well conditioned."""
    rng = np.random.default_rng(100 + d)
    A = np.eye(d) + 0.5 * rng.standard_normal((d, d)) / np.sqrt(d)
    cov = noise**2 * (0.7 * np.eye(d) + 0.3)
    factor = np.asarray(cholesky(cov, "the covariance of the noise"))
    precision = np.asarray(solve(factor, np.eye(d)))
    prior = Prior({f"a{i}": (-1.0, 1.0) if box else stats.norm(0.0, 1.0) for i in range(d)})

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        return theta @ A.T + rng.standard_normal(theta.shape) @ factor.T

    def log_likelihood(theta: Array, x: Array) -> Array:
        residual = x - theta @ A.T
        return -0.5 * ((residual @ precision) * residual).sum(1)

    def exact(x: Array) -> tuple[Array, Array]:
        half = cholesky(np.eye(d) + A.T @ precision @ A, "the precision of the posterior")
        posterior = np.asarray(solve(half, np.eye(d)))
        return posterior @ A.T @ precision @ x, posterior

    name = f"linear-{d}-box" if box else f"linear-{d}"
    about = f"{d} parameters, linear with correlated normal noise" + (", cut off by a uniform prior" if box else "")
    return ZooProblem(name, about, "linear", held_out, prior, simulate, log_likelihood, exact=None if box else exact)


def _among_junk(held_out: bool) -> ZooProblem:
    """Four statistics of three parameters among twenty that know nothing; the junk held out is correlated."""
    order = np.random.default_rng(4).permutation(24)
    good = np.argsort(order)[:4]
    units = np.geomspace(0.01, 1000.0, 20)
    spread = np.array([0.3, 0.3, 0.4, 0.5])
    prior = Prior(a=stats.norm(0.0, 1.0), b=stats.norm(0.0, 1.0), c=stats.norm(0.0, 1.0))

    def locations(theta: Array) -> Array:
        a, b, c = theta.T
        return np.column_stack([a, b + 0.4 * a**2, np.exp(0.5 * c), c - a + 0.3 * b])

    def junk(m: int, rng: np.random.Generator) -> Array:
        if not held_out:
            return units * rng.standard_normal((m, 20))
        common = rng.standard_t(3.0, (m, 2)) @ np.random.default_rng(5).standard_normal((2, 20))
        return units * (common + rng.standard_normal((m, 20)))

    def simulate(theta: Array, rng: np.random.Generator) -> Array:
        told = locations(theta) + spread * rng.standard_normal((len(theta), 4))
        return np.concatenate([told, junk(len(theta), rng)], axis=1)[:, order]

    def log_likelihood(theta: Array, x: Array) -> Array:
        return normal(x[good], locations(theta), spread).sum(1)

    name = "junk-tangled" if held_out else "junk"
    about = "4 good statistics among 20 junk ones" + (", which are correlated and heavy-tailed" if held_out else "")
    return ZooProblem(name, about, "junk", held_out, prior, simulate, log_likelihood)


LINEAR = (
    _linear(2, 0.3, held_out=False),
    _linear(10, 0.5, held_out=False),
    _linear(5, 0.5, held_out=True, box=True),
    _linear(15, 0.5, held_out=True),
)
JUNK = (_among_junk(held_out=False), _among_junk(held_out=True))

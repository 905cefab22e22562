"""Draws that are spread evenly, so that a test of accuracy sees the method and little of the luck of its sample."""

import numpy as np
from scipy import stats


def uniforms(n, d, rng):
    """n points of the unit cube, each uniform on it, without the clumps and gaps of independent ones.

    A lattice in steps of powers of the root of x^(d + 1) = x + 1 (the golden ratio for d = 1), shifted at random.
    """
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (d + 1))
    return (rng.random(d) + np.outer(np.arange(n), root ** -np.arange(1.0, d + 1))) % 1


def normals(n, d, rng):
    return stats.norm.ppf(uniforms(n, d, rng))


def luck(*shape, seed=0):
    """The same n standard normal quantiles in each row of an array (..., n), in an order of its own.

    Of made-up results: means and medians of rows have no luck.
    """
    quantiles = stats.norm.ppf((np.arange(shape[-1]) + 0.5) / shape[-1])
    return np.random.default_rng(seed).permuted(np.broadcast_to(quantiles, shape), axis=-1)

r"""Estimates of a kernel mean that is known, made on purpose: the set-up of Kanagawa (2016), sections 3.5 and 5.5.

The distribution is P = N(0, 0.1^2) and the kernel is Gaussian with lengthscale 0.1. Points are uniform on [-A, A] and their
weights solve

.. math:: \min_w \Big\| \sum_i w_i k(\cdot, X_i) - m_P \Big\|^2 + \lambda \|w\|^2, \qquad w = (K + \lambda I)^{-1} m_P(X)

with lambda as it is, not per point. A small one gives a small error and large weights.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from .._linalg import cholesky, solve
from ..embeddings import AnalyticEmbedding, MeanEmbedding
from ..kernels import Gaussian

SCALE = 0.1  # standard deviation of P, and lengthscale


def truth(sd: float = SCALE) -> AnalyticEmbedding:
    """The kernel mean of N(0, sd^2), in closed form."""
    return AnalyticEmbedding(stats.norm(0.0, sd), Gaussian(SCALE))


def estimate(n: int, half_width: float, reg: float, rng: np.random.Generator) -> MeanEmbedding:
    """An estimate of the mean of P from n uniform points; its weights are not normalised."""
    target = truth()
    points = rng.uniform(-half_width, half_width, (n, 1))
    L = cholesky(target.kernel.gram(points), "the Gram matrix of the points", reg)
    return MeanEmbedding(points, solve(L, target(points)), target.kernel)

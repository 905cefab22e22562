"""Embeddings of known distributions, in closed form where there is one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _check
from .._typing import Array, RandomState
from ..kernels import Kernel, check_kernel
from ..kernels._distributions import NoClosedForm, read_distribution
from ..kernels._integrals import double_integral, mean_integral
from ._mean import Embedding, MeanEmbedding


class AnalyticEmbedding(Embedding):
    r"""The exact embedding :math:`\mu(x) = \int k(x, y)\, dP(y)` of a known distribution.

    `distribution` is a frozen `scipy.stats` normal, uniform or multivariate normal, a list of one-dimensional ones
    (independent columns), or a `kb.Mixture`. Raises `kb.NoClosedForm` where the integral has no closed form here; `kb.embed`
    falls back on samples instead. It takes part in inner products and distances with any other embedding.

    Quadrature notes, section 3.1, examples 1-3.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> truth = kb.AnalyticEmbedding(stats.norm(0, 1), kb.Gaussian(1.0))
        >>> sample = kb.MeanEmbedding(stats.norm(0, 1).rvs(2000, random_state=0), kernel=kb.Gaussian(1.0))
        >>> sample.distance(truth) < 0.02
        True
    """

    def __init__(self, distribution: Any, kernel: Kernel):
        self.kernel = check_kernel(kernel)
        self.distribution = read_distribution(distribution, type(kernel).__name__)
        self._norm_squared = double_integral(kernel, self.distribution, self.distribution)

    def __repr__(self) -> str:
        return f"AnalyticEmbedding({self.distribution}, kernel={type(self.kernel).__name__})"

    def _evaluate(self, X: Array) -> Array:
        return mean_integral(self.kernel, self.distribution, X)

    def _inner(self, other: Embedding) -> float:
        if other is self:
            return self._norm_squared
        if isinstance(other, AnalyticEmbedding):
            return double_integral(self.kernel, self.distribution, other.distribution)
        return other._inner(self)


def embed(
    distribution: Any, kernel: Kernel, *, samples: int = 10_000, random_state: RandomState = None
) -> AnalyticEmbedding | MeanEmbedding:
    """The embedding of a distribution: exact where a closed form is known, otherwise that of a sample.

    A fallback on samples is announced by a warning that gives its typical error, so that nobody takes it for exact.

    Example:
        >>> import kernelbayes as kb
        >>> from scipy import stats
        >>> kb.embed(stats.uniform(0, 1), kb.Brownian()).norm() ** 2  # the integral of min(x, y) over the unit square
        0.33333333333333...
    """
    try:
        return AnalyticEmbedding(distribution, kernel)
    except NoClosedForm as reason:
        count = _check.count(samples, "samples", at_least=2)
        points = _draw(distribution, count, _check.generator(random_state))
        embedding = MeanEmbedding(points, kernel=kernel)
        spread = float(kernel._diag(embedding.points).mean()) - embedding._inner(embedding)
        warnings.warn(
            f"{reason}; using {count} samples, with an RKHS error of about {max(spread, 0.0) ** 0.5 / count**0.5:.2g}.",
            stacklevel=2,
        )
        return embedding


def _draw(distribution: Any, count: int, rng: np.random.Generator) -> Array:
    """Samples (count, d) of a frozen distribution, a list of them on the line, or one with a `sample` method."""
    if isinstance(distribution, (list, tuple)):
        return np.stack([np.reshape(_draw(part, count, rng), count) for part in distribution], axis=1)
    if hasattr(distribution, "rvs"):
        return distribution.rvs(size=count, random_state=rng)
    return distribution.sample(count, rng=rng)

"""Embeddings of known distributions, in closed form where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike, RandomState
from .._warning import warn_user
from ..kernels import Kernel, check_kernel
from ..kernels._distributions import Distribution, NoClosedFormError, read_distribution
from ..kernels._integrals import double_integral, mean_integral
from . import _exact
from ._mean import Embedding, MeanEmbedding
from ._weighted import box_of, evaluate_function, levels_of, probabilities, tails


class AnalyticEmbedding(Embedding):
    r"""The exact embedding :math:`\mu(x) = \int k(x, y)\, dP(y)` of a known distribution.

    `distribution` is a frozen `scipy.stats` normal, uniform or multivariate normal, a list of one-dimensional ones
    (independent columns), or a `kb.Mixture`. Raises `kb.NoClosedFormError` where there is no closed form here; `kb.embed`
    falls back on samples instead. It takes part in inner products and distances with any other embedding, and is asked for
    numbers by the same methods as a `kb.MeanEmbedding`, which here are exact.

    Quadrature notes, section 3.1, examples 1-3.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> truth = kb.AnalyticEmbedding(stats.norm(0, 1), kb.Gaussian(1.0))
        >>> sample = kb.MeanEmbedding(stats.norm(0, 1).rvs(2000, random_state=0), kernel=kb.Gaussian(1.0))
        >>> sample.distance(truth) < 0.02
        True
        >>> truth.interval(0.9).round(3)
        array([[-1.645],
               [ 1.645]])
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

    # --------------------------------------------------------------------------------------------- decoding

    def mean(self) -> Array:
        """The mean (d,)."""
        return self.distribution.mean()

    def std(self) -> Array:
        """Standard deviations (d,)."""
        return np.sqrt(np.diagonal(self.cov()))

    def cov(self) -> Array:
        """The covariance (d, d)."""
        return self.distribution.covariance()

    def moment(self, order: int, central: bool = False) -> Array:
        """The moment E[x^order] of each column (d,); about the mean if `central`."""
        about = self.mean() if central else np.zeros(self.distribution.dimension)
        return _exact.moment(self.distribution, _check.count(order, "order"), about)

    def cdf(self, x: ArrayLike) -> Array:
        """The distribution function of each column: (d,) for a number, (m, d) for points, as in `MeanEmbedding.cdf`."""
        d = self.distribution.dimension
        at = np.full((1, d), _check.scalar(x, "x")) if np.ndim(x) == 0 else _check.vectors(x, "x", width=d)
        out = _exact.cdf(self.distribution, at)
        return out[0] if np.ndim(x) == 0 else out

    def prob(
        self,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        *,
        event: Callable[[Array], ArrayLike] | None = None,
    ) -> Any:
        """The mass of the box `lower < x <= upper`, or of a half space where one of them is left out; or of an event.

        Exact, but for the box of a correlated normal, which SciPy integrates to about five digits, and for an event, a
        function that is True or False at points (n, d), which is counted by quasi-Monte Carlo as in `expect`.

        Example:
            >>> import kernelbayes as kb
            >>> from scipy import stats
            >>> quarter = kb.AnalyticEmbedding([stats.norm(), stats.norm()], kb.Gaussian())
            >>> quarter.prob(lower=0.0)
            0.25
        """
        if event is not None:
            points, weights = _exact.nodes(self.distribution)
            return probabilities(points, weights[None], lower, upper, event)[0]
        return _exact.probability(self.distribution, *box_of(lower, upper, self.distribution.dimension))

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles of each column: shape (d,) for one level, (len(q), d) for several."""
        out = np.stack([_exact.quantile(self.distribution, float(level)) for level in levels_of(q)])
        return out[0] if np.ndim(q) == 0 else out

    def interval(self, level: float = 0.9) -> Array:
        """The central interval holding `level` of the mass, as rows (lower, upper) of shape (2, d)."""
        return self.quantile(tails(level))

    def density(self, X: ArrayLike) -> Array:
        """The density (n,) at points (n, d)."""
        return self.distribution.density(_check.vectors(X, "X", width=self.distribution.dimension))

    def mode(self) -> Array:
        """The maximum (d,) of the density; the centre where columns are uniform."""
        return _exact.mode(self.distribution)

    def sample(self, n: int = 1000, random_state: RandomState = None) -> Array:
        """Independent draws (n, d)."""
        return self.distribution.sample(_check.count(n, "n"), _check.generator(random_state))

    def expect(self, f: Callable[[Array], ArrayLike]) -> Array:
        """The expectation of a function from points (n, d) to values (n,) or (n, p), by quasi-Monte Carlo.

        It looks at up to 65,536 points; in few dimensions a smooth function is good to about four digits.

        Example:
            >>> import kernelbayes as kb
            >>> from scipy import stats
            >>> kb.AnalyticEmbedding(stats.uniform(0, 1), kb.Gaussian()).expect(lambda x: x[:, 0] ** 2).round(6)
            np.float64(0.333333)
        """
        points, weights = _exact.nodes(self.distribution)
        return weights @ evaluate_function(f, points)


def embed(
    distribution: Any, kernel: Kernel, *, n: int = 10_000, random_state: RandomState = None
) -> AnalyticEmbedding | MeanEmbedding:
    """The embedding of a distribution: exact where a closed form is known, otherwise that of a sample.

    A fallback on samples is announced by a warning that gives its typical error, so that nobody takes it for exact.

    Example:
        >>> import kernelbayes as kb
        >>> from scipy import stats
        >>> kb.embed(stats.uniform(0, 1), kb.Brownian()).norm() ** 2  # the integral of min(x, y) over the unit square
        0.33333333333333...
    """
    count, rng = _check.count(n, "n", at_least=2), _check.generator(random_state)
    try:
        return AnalyticEmbedding(distribution, kernel)
    except NoClosedFormError as reason:
        points = _draw(distribution, count, rng)
        embedding = MeanEmbedding(points, kernel=kernel)
        spread = float(kernel._diag(embedding.points).mean()) - embedding._inner(embedding)
        warn_user(
            f"{reason}; using {count} samples, with an RKHS error of about {max(spread, 0.0) ** 0.5 / count**0.5:.2g}.",
        )
        return embedding


def _draw(distribution: Any, count: int, rng: np.random.Generator) -> Array:
    """Samples (count, d) of a frozen distribution, a list of them on the line, or one with a `sample` method."""
    if isinstance(distribution, (list, tuple)):
        return np.stack([np.reshape(_draw(part, count, rng), count) for part in distribution], axis=1)
    if hasattr(distribution, "rvs"):
        return distribution.rvs(size=count, random_state=rng)
    if isinstance(distribution, Distribution):
        return distribution.sample(count, rng)
    return distribution.sample(count, rng=rng)

"""What an embedding of a weighted sample can be asked: moments, probabilities, quantiles, densities, modes, mixtures.

Kanagawa (2016), section 4.2.4, and chapter 5 for why sums over the points may stand for the integrals. The methods are the
case of one row of weights of the functions in `_weighted`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike, RandomState
from ..kernels import Gaussian, Kernel, matmul
from ..kernels._distributions import Mixture
from ._mixture import fit
from ._modes import heaviest_point, nearest_point
from ._moments import covariances, deviations, means, moments
from ._smoothing import bandwidths
from ._weighted import (
    cumulated,
    negative_masses,
    probabilities,
    quantiles,
    relative,
    tails,
    vectors_of,
)


class Decoding:
    """Numbers read off a weighted sample; weights are taken relative to their sum, and may be negative."""

    points: Array
    weights: Array
    kernel: Kernel

    def mean(self) -> Array:
        """The mean (d,)."""
        X, w = self._vectors()
        return means(X, w[None])[0]

    def cov(self) -> Array:
        """The covariance (d, d), with the squares of `std()` on its diagonal.

        Where weights are negative the correlations too come from rising distribution functions, of sums of the columns, so
        that no direction has a negative variance; `expect` gives the plain weighted sum of products.
        """
        X, w = self._vectors()
        return covariances(X, w[None])[0]

    def std(self) -> Array:
        """Standard deviations (d,): root mean square distances from `mean()`.

        Where weights are negative they are those of the rising distribution function, from which `interval` is read off
        too: the weighted sum of squares may then be zero or less for a distribution as wide as any.

        Example:
            >>> import kernelbayes as kb
            >>> kb.MeanEmbedding([0.0, 1.0, 2.0, 3.0], [-0.4, 0.9, 0.9, -0.4], kb.Gaussian()).std()
            array([0.5])
        """
        X, w = self._vectors()
        return deviations(X, w[None])[0]

    def moment(self, order: int, central: bool = False) -> Array:
        """The moment E[x^order] of each column (d,); about the mean if `central`.

        The first is `mean()`. Higher ones are those of the rising distribution function where weights are negative, so that
        even ones never are; `expect` gives plain weighted sums.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> kb.MeanEmbedding([1.0, 3.0], kernel=kb.Gaussian()).moment(2)
            array([5.])
        """
        X, w = self._vectors()
        order = _check.count(order, "order")
        with np.errstate(over="ignore", invalid="ignore"):
            found = moments(X, w[None], order, central)[0]
        if not np.isfinite(found).all():
            raise ValueError(
                f"the moment of order={order} is not a finite number; take points in larger units, or a lower order"
            )
        return found

    def cdf(self, x: ArrayLike, raw: bool = False) -> Array:
        """The distribution function of each column, the mass at or below x.

        `x` is a number, the same for all columns, for a result of shape (d,); or points (m, d), of which each column is
        looked up in its own function, for (m, d). It rises from 0 to 1 even where weights are negative; `raw=True` gives
        the plain running sum.
        """
        X, w = self._vectors()
        d = X.shape[1]
        at = np.full((1, d), _check.scalar(x, "x")) if np.ndim(x) == 0 else _check.vectors(x, "x", width=d)
        out = np.stack([cumulated(X[:, j], w[None], at[:, j], raw)[0] for j in range(d)], axis=1)
        return out[0] if np.ndim(x) == 0 else out

    def prob(
        self,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        *,
        event: Callable[[Array], ArrayLike] | None = None,
        raw: bool = False,
    ) -> Any:
        """The mass of the box `lower < x <= upper`, or of a half space where one of them is left out; or of an event.

        A number holds for all columns; give one per column, infinite where a column is free, for others. Where only one
        column is bounded the answer is a difference of the distribution function that `quantile` inverts.

        `event` is a function that takes all points at once and is True or False at each: (n,), or (n, p) for p events. It
        works for points of any kind. `raw=True` gives the plain sum of the weights, the estimate of the papers, which may
        leave [0, 1] where weights are negative; by default what lies outside is cut off. Kanagawa (2016), section 4.2.4.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> grid = kb.MeanEmbedding(np.arange(100.0), kernel=kb.Gaussian())
            >>> round(grid.prob(upper=24), 4), round(grid.prob(24, 49), 4)
            (0.25, 0.25)
            >>> round(grid.prob(event=lambda x: x[:, 0] % 10 == 0), 4)
            0.1
        """
        found = probabilities(self.points, self.weights[None], lower, upper, event, raw)[0]
        return found if np.ndim(found) else float(found)

    def quantile(self, q: ArrayLike, raw: bool = False) -> Array:
        """Quantiles of each column: shape (d,) for one level, (len(q), d) for several.

        `raw=True` reads them off the plain running sum of signed weights, at its first passage through the level.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> kb.MeanEmbedding(np.arange(101.0), kernel=kb.Gaussian()).quantile([0.25, 0.75])
            array([[25.],
                   [75.]])
        """
        X, w = self._vectors()
        out = quantiles(X, w[None, :], q, raw)[:, 0]
        return out[0] if np.ndim(q) == 0 else out

    def interval(self, level: float = 0.9) -> Array:
        """The central interval holding `level` of the mass, as rows (lower, upper) of shape (2, d)."""
        return self.quantile(tails(level))

    def density(self, X: ArrayLike, bandwidth: float | None = None) -> Array:
        """Density at points by smoothing the weights with a normalised Gaussian of the given bandwidth.

        Negative values that signed weights leave are cut at zero, so that the whole may integrate to a little more than
        one. The default bandwidth of each column is the smaller of Scott's and Botev's: the first suits one hump, the second
        several (see `docs/guide/decoding.md`). Kanagawa (2016), equation 5.28.
        """
        points, w = self._vectors()
        X = _check.vectors(_check.by_name(X, getattr(self, "_columns", None), "X"), "X", width=points.shape[1])
        h = self._bandwidths(points, w, bandwidth)
        values = matmul(Gaussian(h), X, points, w) / np.prod(np.sqrt(2 * np.pi) * h)
        return np.maximum(values, 0.0)

    def mode(self, method: str = "weight", bandwidth: float | None = None) -> Any:
        """The most likely point: of largest weight, or where the density is largest.

        `method="weight"` takes the point with the largest weight, equal points counted together, and works for points of
        any kind; it is the maximum of the density as the bandwidth goes to zero. `method="density"` climbs the density,
        with this bandwidth, from its highest points. Kanagawa (2016), section 4.2.4.

        Example:
            >>> import kernelbayes as kb
            >>> kb.MeanEmbedding(["ash", "elm", "oak", "elm"], [0.2, 0.25, 0.3, 0.25], kb.Delta()).mode()
            np.str_('elm')
        """
        if _check.option(method, "method", ("weight", "density")) == "weight":
            return heaviest_point(self.points, relative(self.weights))
        X, w = self._vectors()
        return nearest_point(Gaussian(self._bandwidths(X, w, bandwidth)), X, w)

    def preimage(self) -> Any:
        r"""The point x whose own embedding is nearest, :math:`\arg\min_x \|k(\cdot, x) - \mu\|`.

        For stationary, linear and polynomial kernels, their sums, products and multiples it is sought from the best of the
        points by a quasi-Newton method; for other kernels it is the best of the points. Under a Gaussian kernel
        it is the maximum of the embedding. Mika et al. (1999); Kwok and Tsang (2004); Kanagawa (2016), equation 5.5.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> kb.MeanEmbedding([-1.0, 0.0, 1.0], kernel=kb.Gaussian(2.0)).preimage().round(6) + 0.0
            array([0.])
        """
        return nearest_point(self.kernel, self.points, relative(self.weights))

    def mixture(self, components: int, random_state: RandomState = None) -> Mixture:
        r"""A mixture of so many normals fitted to the embedding, largest component first.

        Under a Gaussian kernel it minimises the RKHS distance :math:`\|\sum_j \pi_j \mu_{N(m_j, S_j)} - \mu\|`, signed
        weights and all, from the best of several k-means and EM solutions on the positive weights; under other kernels
        the EM solution itself is returned. McCalman, O'Callaghan and Ramos (2013); Song et al. (2008).

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> rng = np.random.default_rng(0)
            >>> sample = np.concatenate([rng.normal(-2, 0.5, 300), rng.normal(2, 0.5, 100)])
            >>> fitted = kb.MeanEmbedding(sample, kernel=kb.Gaussian(1.0)).mixture(2, random_state=0)
            >>> fitted.weights.round(1), [c.mean().round(0) for c in fitted.components]
            (array([0.8, 0.2]), [array([-2.]), array([2.])])
        """
        X, w = self._vectors()
        return fit(self.kernel, X, w, _check.count(components, "components"), _check.generator(random_state))

    def sample(self, n: int = 1000, random_state: RandomState = None) -> Array:
        """Points drawn with replacement, with probability proportional to the positive weights.

        Negative weights are dropped, which biases what is drawn; points from herding follow the embedding more closely.

        Example:
            >>> import kernelbayes as kb
            >>> kb.MeanEmbedding([0.0, 1.0], [1.2, -0.2], kb.Gaussian()).sample(3, random_state=0)
            array([[0.],
                   [0.],
                   [0.]])
        """
        positive = np.maximum(relative(self.weights), 0.0)
        rng = _check.generator(random_state)
        return self.points[rng.choice(len(positive), _check.count(n, "n"), p=positive / positive.sum())]

    def negative_mass(self) -> float:
        """The share of the absolute weights that is negative, from 0 to 1/2: how far the weights are from a distribution."""
        return float(negative_masses(relative(self.weights)))

    def _vectors(self) -> tuple[Array, Array]:
        return vectors_of(self.points, self.weights)

    def _bandwidths(self, X: Array, w: Array, bandwidth: float | None) -> Array:
        if bandwidth is not None:
            return np.full(X.shape[1], _check.positive(bandwidth, "bandwidth"))
        h = bandwidths(X, w)
        if h.min() < _check.SMALLEST:
            raise ValueError(f"points vary by less than {_check.SMALLEST:g} in a column; change its units")
        return h

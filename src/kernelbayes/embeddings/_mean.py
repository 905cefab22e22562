"""Weighted embeddings: the currency that every rule takes and returns."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from .. import _check
from .._typing import Array, ArrayLike
from ..kernels import Gaussian, Kernel, check_kernel, matmul
from ..kernels._bandwidth import lengthscale_of
from ._decode import Decoding
from ._sampling import Sampling
from ._weighted import effective_sizes, evaluate_function


def default_kernel(sample: Array, name: str) -> Kernel:
    """A Gaussian kernel with the median distance of a sample."""
    return Gaussian(lengthscale_of(sample, name))


class Embedding(Sampling, abc.ABC):
    """An element of an RKHS standing for a distribution: what all embeddings can do with each other.

    Norms and distances go through the kernel itself, never through approximate features.
    """

    kernel: Kernel
    _columns: tuple[str, ...] | None = None  # names of those of a data frame

    def __call__(self, X: ArrayLike) -> Array:
        """Values of the embedding, as a function, at points."""
        return self._evaluate(self.kernel._check(_check.by_name(X, self._columns, "X"), "X"))

    @abc.abstractmethod
    def _evaluate(self, X: Array) -> Array:
        """Values at checked points."""

    @abc.abstractmethod
    def _inner(self, other: Embedding) -> float:
        """The inner product with an embedding under the same kernel."""

    def inner(self, other: Embedding) -> float:
        """The inner product with another embedding under the same kernel."""
        _same_kernel(self, other)
        # A weighted sample needs only the other's values at its points, so it goes first.
        return other._inner(self) if isinstance(other, MeanEmbedding) else self._inner(other)

    def norm(self) -> float:
        """The RKHS norm."""
        return float(np.sqrt(max(self._inner(self), 0.0)))

    def distance(self, other: Embedding) -> float:
        """The RKHS distance to another embedding: the maximum mean discrepancy of the two distributions.

        Rounding leaves an error of about 1e-8 of their norms where the two nearly coincide.
        """
        cross = self.inner(other)
        squared = self._inner(self) + other._inner(other) - 2.0 * cross
        return float(np.sqrt(max(squared, 0.0)))


def _same_kernel(a: Embedding, b: Embedding) -> None:
    if not isinstance(b, Embedding):
        raise ValueError(f"expected an embedding, got {type(b).__name__}")
    if None not in (a._columns, b._columns) and a._columns != b._columns:
        columns = " and ".join(", ".join(names or ()) for names in (a._columns, b._columns))
        raise ValueError(f"the embeddings are on points with different columns, or in another order: {columns}")
    if not bool(eqx.tree_equal(a.kernel, b.kernel)):
        raise ValueError(
            f"the embeddings have different kernels, {a.kernel} and {b.kernel}; pass the same kernel= to both"
        )


class MeanEmbedding(Decoding, Embedding):
    r"""The embedding :math:`\sum_i w_i\, k(\cdot, x_i)` of a weighted sample.

    Args:
        points: the sample, (n, d) or whatever the kernel takes.
        weights: one signed number per point; uniform if not given. They need not sum to one.
        kernel: Gaussian with the median distance if not given.

    Kanagawa (2016), equations 2.13-2.15; Hsu (2019), definition 2.23.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> a = kb.MeanEmbedding(rng.normal(0.0, 1.0, 500), kernel=kb.Gaussian(1.0))
        >>> b = kb.MeanEmbedding(rng.normal(2.0, 1.0, 500), kernel=kb.Gaussian(1.0))
        >>> round(a.distance(b), 2)
        0.76
        >>> mixture = 0.5 * a + 0.5 * b
        >>> round(float(mixture.expect(lambda x: x[:, 0])), 1)
        1.0
    """

    points: Array
    weights: Array

    def __init__(self, points: Any, weights: ArrayLike | None = None, kernel: Kernel | None = None):
        if isinstance(weights, Kernel):
            raise ValueError("the second argument of MeanEmbedding is weights; pass a kernel as kernel=")
        if kernel is None:
            kernel = default_kernel(_check.vectors(points, "points"), "points")
        self.kernel = check_kernel(kernel)
        self.points = kernel._check(points, "points")
        self.weights = _check.weights(weights, "weights", len(self.points))
        self._columns = _check.own_names(points)

    def _with(self, points: Array, weights: Array) -> MeanEmbedding:
        """Other points and weights under the same kernel, with the same columns."""
        out = MeanEmbedding(points, weights, self.kernel)
        out._columns = self._columns
        return out

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return f"MeanEmbedding({len(self)} points, ess={self.ess():.1f}, kernel={type(self.kernel).__name__})"

    def _evaluate(self, X: Array) -> Array:
        if X.shape[1:] != self.points.shape[1:]:
            raise ValueError(f"points of shape {X.shape[1:]} meet an embedding on points of {self.points.shape[1:]}")
        return matmul(self.kernel, X, self.points, self.weights)

    def _inner(self, other: Embedding) -> float:
        return float(self.weights @ other._evaluate(self.points))

    def expect(self, f: Callable[[Array], ArrayLike]) -> Array:
        """The expectation `sum_i w_i f(x_i)` of a function that takes all points at once.

        `f` maps points (n, d) to values (n,) or (n, p). Weights are used as they are: `normalise()` first if they do
        not sum to one and should. It is the estimator of the papers, linear in f; where weights are negative it may leave
        the range of f. The probability of an event is `prob(event=...)`, which stays in [0, 1].
        """
        return self.weights @ evaluate_function(f, self.points)

    def normalise(self) -> MeanEmbedding:
        """The same embedding with weights that sum to one."""
        total = float(self.weights.sum())
        if abs(total) < 1e-10 * np.abs(self.weights).sum() or total == 0.0:
            raise ValueError(f"the weights sum to {total:.3g}, so they cannot be normalised")
        return self._with(self.points, self.weights / total)

    def ess(self) -> float:
        """Effective sample size `(sum w)^2 / sum w^2`: n for uniform weights, 1 when a single point counts.

        It is `1 / sum w^2` for weights that sum to one.
        """
        return float(effective_sizes(self.weights))

    def needs_resampling(self) -> bool:
        """Whether the effective sample size is below half the number of points (Kanagawa 2016, section 3.3).

        It is the rule by which `kb.resample` acts: `sum w^2 > 2 / n` for weights that sum to one.
        """
        return self.ess() < 0.5 * len(self)

    def __mul__(self, factor: Any) -> MeanEmbedding:
        return self._with(self.points, _check.scalar(factor, "factor") * self.weights)

    __rmul__ = __mul__

    def __neg__(self) -> MeanEmbedding:
        return -1.0 * self

    def __add__(self, other: Any) -> MeanEmbedding:
        if not isinstance(other, MeanEmbedding):
            return NotImplemented
        _same_kernel(self, other)
        if self.points.shape[1:] != other.points.shape[1:]:
            one, two = self.points.shape[1:], other.points.shape[1:]
            raise ValueError(f"embeddings of points of shape {one} and {two} cannot be added")
        points = np.concatenate([self.points, other.points])
        return self._with(points, np.concatenate([self.weights, other.weights]))

    def __sub__(self, other: Any) -> MeanEmbedding:
        return self + (-other) if isinstance(other, MeanEmbedding) else NotImplemented

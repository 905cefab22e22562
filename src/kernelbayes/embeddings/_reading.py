"""A distribution as rules need it, whatever it was given as: points and weights, or a closed form.

Samples, weighted embeddings, closed-form embeddings and frozen distributions are all read here into one record.
"""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._linalg import solve_lower
from .._typing import Array
from ..features import Features
from ..features._landmark import DenseFeatures, LandmarkFeatures
from ..kernels import Gaussian, Kernel, matmul
from ..kernels._distributions import Distribution, NoClosedFormError, is_distribution, support_of
from ..kernels._integrals import mean_integral
from ._analytic import AnalyticEmbedding, embed
from ._mean import Embedding, MeanEmbedding

#: Points that stand for a distribution where no closed form is known.
DRAWS = 10_000


class Weighted(NamedTuple):
    """Points with weights, and what is known of the distribution that they are draws of.

    Attributes:
        distribution: itself, where it has a closed form.
        support: the ends (2, d) of where it may be, where it tells them.
    """

    points: Array
    weights: Array
    distribution: Distribution | None = None
    support: Array | None = None

    @classmethod
    def of(cls, embedding: Embedding) -> Weighted:
        """An embedding as it is; one in closed form has no points."""
        if isinstance(embedding, MeanEmbedding):
            return cls(embedding.points, embedding.weights)
        assert isinstance(embedding, AnalyticEmbedding)
        return cls(np.zeros((0, 1)), np.zeros(0), embedding.distribution, support_of(embedding.distribution))


def sample_in_order(value: Any, names: tuple[str, ...] | None, name: str) -> Any:
    """Samples in a data frame with columns in the order of these names; an embedding must have them so, or without names."""
    own = value._columns if isinstance(value, Embedding) else None
    if own is not None and names is not None and own != names and not _check.counting(names):
        raise ValueError(f"{name} is on the columns {', '.join(own or ())} where {', '.join(names)} were wanted")
    return value if isinstance(value, Embedding) else _check.by_name(value, names, name)


def read_weighted(value: Any, kernel: Kernel | None, *, name: str, draws: int, rng: np.random.Generator) -> Weighted:
    """Points with weights that sum to one, from samples, an embedding, a frozen distribution or a list of them.

    Of a distribution with a closed form under the kernel, Gaussian if not known yet, there are `draws` points; of another
    `DRAWS`, announced by the warning of `embed`.
    """
    distribution = support = None
    if isinstance(value, AnalyticEmbedding) or is_distribution(value):
        value = value.distribution if isinstance(value, AnalyticEmbedding) else value
        support = support_of(value)
        value = embed(value, kernel or Gaussian(1.0), n=DRAWS, random_state=rng)
        if isinstance(value, AnalyticEmbedding):
            distribution = value.distribution
            value = distribution.sample(draws, rng)
    elif not isinstance(value, Embedding) and (
        callable(value) or isinstance(value, (str, dict)) or _check.dimensions(value, name) == 0
    ):
        raise ValueError(
            f"{name} must be samples, an embedding, a frozen scipy.stats distribution or a list of them, one for each "
            f"column; got {type(value).__name__}"
        )
    elif isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, numbers.Real) for v in value):
        raise ValueError(
            f"{name} is two numbers, {value[0]:g} and {value[1]:g}: for anything between them pass "
            f"scipy.stats.uniform({value[0]:g}, {value[1] - value[0]:g}), for just these two samples a list"
        )
    weights = None
    if isinstance(value, MeanEmbedding):
        value = value.normalise()
        value, weights = value.points, value.weights
    points = _check.vectors(value, name) if kernel is None else kernel._check(value, name)
    return Weighted(points, _check.weights(weights, f"{name}.weights", len(points)), distribution, support)


def mean_coordinates(features: Features, sample: Weighted) -> Array:
    """The mean (r,) of the coordinates f(x) when x follows a distribution, seen through the features' own kernel.

    On landmarks R it is `L^-1 mu(R)`, exact for a distribution whose integral has a closed form.
    """
    if isinstance(features, (LandmarkFeatures, DenseFeatures)):
        values = _values(features, sample)
        if isinstance(features, LandmarkFeatures) and features.whitened:
            return solve_lower(features.factor, values)
        return values
    points, weights = _points(features, sample)
    return features._coordinates(points).T @ weights


def _values(features: LandmarkFeatures | DenseFeatures, sample: Weighted) -> Array:
    """mu(R) under the features' kernel."""
    if sample.distribution is not None:
        try:
            return mean_integral(features.kernel, sample.distribution, features.points)
        except NoClosedFormError:
            pass
    points, weights = _points(features, sample)
    if points.shape[1:] != features.points.shape[1:]:
        raise ValueError(f"prior is on points of shape {points.shape[1:]}, not {features.points.shape[1:]}")
    return matmul(features.kernel, features.points, points, weights)


def _points(features: Features, sample: Weighted) -> tuple[Array, Array]:
    points, weights = sample.points, sample.weights
    if sample.distribution is not None:
        points, weights = sample.distribution.sample(DRAWS, np.random.default_rng(0)), np.full(DRAWS, 1.0 / DRAWS)
    return features.kernel._check(points, "prior"), weights

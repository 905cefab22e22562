"""An embedding in the coordinates of fitted features: all that a linear rule needs of a prior."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._linalg import solve_lower
from .._typing import Array
from ..features import Features
from ..features._landmark import DenseFeatures, LandmarkFeatures
from ..kernels import matmul
from ..kernels._distributions import NoClosedForm
from ..kernels._integrals import mean_integral
from ._analytic import AnalyticEmbedding
from ._mean import Embedding, MeanEmbedding

# Points that stand for a distribution where the features have no closed-form mean under it.
_DRAWS = 10_000


def mean_coordinates(features: Features, embedding: Embedding) -> Array:
    """The mean (r,) of the coordinates f(x) when x follows an embedding, seen through the features' own kernel.

    On landmarks R it is `L^-1 mu(R)`, exact for a distribution whose integral has a closed form.
    """
    if isinstance(features, (LandmarkFeatures, DenseFeatures)):
        values = _values(features, embedding)
        if isinstance(features, LandmarkFeatures) and features.whitened:
            return solve_lower(features.factor, values)
        return values
    points, weights = _points(embedding)
    return features._coordinates(features.kernel._check(points, "prior")).T @ weights


def _values(features: Any, embedding: Embedding) -> Array:
    """mu(R) under the features' kernel."""
    if isinstance(embedding, AnalyticEmbedding):
        try:
            return mean_integral(features.kernel, embedding.distribution, features.points)
        except NoClosedForm:
            pass
    points, weights = _points(embedding)
    points = features.kernel._check(points, "prior")
    if points.shape[1:] != features.points.shape[1:]:
        raise ValueError(f"prior is on points of shape {points.shape[1:]}, not {features.points.shape[1:]}")
    return matmul(features.kernel, features.points, points, weights)


def _points(embedding: Any) -> tuple[Array, Array]:
    if isinstance(embedding, MeanEmbedding):
        return embedding.points, embedding.weights
    return embedding.sample(_DRAWS, random_state=0), np.full(_DRAWS, 1.0 / _DRAWS)

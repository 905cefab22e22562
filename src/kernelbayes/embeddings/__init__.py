"""Embeddings of distributions, operators on them, and the tests built from their distances."""

from ._analytic import AnalyticEmbedding, embed
from ._decode import quantiles, tails
from ._health import Health, PosteriorWarning, Reach, Surroundings, share_seen, tell_outside
from ._mean import Embedding, MeanEmbedding
from ._moments import deviations
from ._operators import Covariance, CrossCovariance
from ._permutation import TestResult, hsic, hsic_test, mmd, mmd_test
from ._posterior import Posterior, Posteriors
from ._reading import Weighted, mean_coordinates, read_weighted, sample_in_order
from ._sampling import herd_subset, resample
from ._weighted import evaluate_function, probabilities, vectors_of

__all__ = [
    "AnalyticEmbedding",
    "Covariance",
    "CrossCovariance",
    "Embedding",
    "Health",
    "MeanEmbedding",
    "Posterior",
    "PosteriorWarning",
    "Posteriors",
    "Reach",
    "Surroundings",
    "TestResult",
    "Weighted",
    "deviations",
    "embed",
    "evaluate_function",
    "herd_subset",
    "hsic",
    "hsic_test",
    "mean_coordinates",
    "mmd",
    "mmd_test",
    "probabilities",
    "quantiles",
    "read_weighted",
    "resample",
    "sample_in_order",
    "share_seen",
    "tails",
    "tell_outside",
    "vectors_of",
]

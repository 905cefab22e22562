"""Embeddings of distributions, operators on them, and the tests built from their distances."""

from ._analytic import AnalyticEmbedding, embed
from ._decode import quantiles, tails
from ._mean import Embedding, MeanEmbedding, evaluate_function
from ._operators import Covariance, CrossCovariance
from ._permutation import TestResult, hsic, hsic_test, mmd, mmd_test

__all__ = [
    "AnalyticEmbedding",
    "Covariance",
    "CrossCovariance",
    "Embedding",
    "MeanEmbedding",
    "TestResult",
    "embed",
    "evaluate_function",
    "hsic",
    "hsic_test",
    "mmd",
    "mmd_test",
    "quantiles",
    "tails",
]

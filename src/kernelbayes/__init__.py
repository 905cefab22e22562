"""Bayesian inference from samples, with kernel mean embeddings."""

from ._linalg import FactorisationError
from .conditional import ConditionalEmbedding
from .embeddings import (
    AnalyticEmbedding,
    Covariance,
    CrossCovariance,
    MeanEmbedding,
    TestResult,
    embed,
    hsic,
    hsic_test,
    mmd,
    mmd_test,
)
from .features import (
    Exact,
    Features,
    IncompleteCholesky,
    Neural,
    OneHot,
    RandomFourier,
    Recipe,
    Subspace,
)
from .kernels import (
    Brownian,
    Delta,
    FunctionKernel,
    Gaussian,
    HistogramIntersection,
    InfinitePolynomial,
    Kernel,
    Laplace,
    Linear,
    MappedKernel,
    Matern,
    PeriodicSobolev,
    Polynomial,
    PrecomputedKernel,
    RationalQuadratic,
    SetKernel,
    SpatialPyramid,
    median_lengthscale,
)
from .kernels._integrals import Mixture, NoClosedForm
from .learning import BoundWarning, Optimum, minimise

__version__ = "0.1.0.dev0"

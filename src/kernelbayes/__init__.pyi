"""The public page: names, and where they live. Type checkers read it, and `__init__.py` imports from it on use."""

from . import classification as classification
from . import densities as densities
from . import embeddings as embeddings
from . import features as features
from . import filters as filters
from . import integration as integration
from . import kernels as kernels
from . import learning as learning
from . import lfi as lfi
from . import plotting as plotting
from . import regression as regression
from . import rules as rules
from . import simulation as simulation
from ._linalg import FactorisationError
from ._persist import load, save
from ._summary import Summary
from .bayes import KernelBayesRule, bayes_rule
from .classification import ConditionalEmbeddingClassifier, ConditionalEmbeddingNetwork
from .conditional import ConditionalEmbedding
from .densities import ConditionalDensity
from .density_ratio import DensityRatio
from .embeddings import (
    AnalyticEmbedding,
    Covariance,
    CrossCovariance,
    MeanEmbedding,
    Posterior,
    Posteriors,
    PosteriorWarning,
    TestResult,
    embed,
    herd_subset,
    hsic,
    hsic_test,
    mmd,
    mmd_test,
    resample,
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
from .filters import KernelBayesFilter, KernelMonteCarloFilter, Track
from .integration import (
    Integral,
    QuadratureRule,
    QuadratureWarning,
    integrate,
    mercer,
    quadrature,
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
    nonnegative,
    positive,
    unit_interval,
)
from .kernels._distributions import Mixture, NoClosedFormError
from .learning import MLP, BoundWarning, ConvNet, LearnedFeatures, learn_features, minimise
from .lfi import Calibration, ParameterPosterior, PredictiveCheck, Prior, calibrate, infer
from .regression import DeconditionalEmbedding, SparseRegression, TaskTransformedGP
from .simulation import Run, Runs, SimulationError, SimulationWarning, open_runs, simulate

__version__: str

__all__ = [
    "MLP",
    "AnalyticEmbedding",
    "BoundWarning",
    "Brownian",
    "Calibration",
    "ConditionalDensity",
    "ConditionalEmbedding",
    "ConditionalEmbeddingClassifier",
    "ConditionalEmbeddingNetwork",
    "ConvNet",
    "Covariance",
    "CrossCovariance",
    "DeconditionalEmbedding",
    "Delta",
    "DensityRatio",
    "Exact",
    "FactorisationError",
    "Features",
    "FunctionKernel",
    "Gaussian",
    "HistogramIntersection",
    "IncompleteCholesky",
    "InfinitePolynomial",
    "Integral",
    "Kernel",
    "KernelBayesFilter",
    "KernelBayesRule",
    "KernelMonteCarloFilter",
    "Laplace",
    "LearnedFeatures",
    "Linear",
    "MappedKernel",
    "Matern",
    "MeanEmbedding",
    "Mixture",
    "Neural",
    "NoClosedFormError",
    "OneHot",
    "ParameterPosterior",
    "PeriodicSobolev",
    "Polynomial",
    "Posterior",
    "PosteriorWarning",
    "Posteriors",
    "PrecomputedKernel",
    "PredictiveCheck",
    "Prior",
    "QuadratureRule",
    "QuadratureWarning",
    "RandomFourier",
    "RationalQuadratic",
    "Recipe",
    "Run",
    "Runs",
    "SetKernel",
    "SimulationError",
    "SimulationWarning",
    "SparseRegression",
    "SpatialPyramid",
    "Subspace",
    "Summary",
    "TaskTransformedGP",
    "TestResult",
    "Track",
    "bayes_rule",
    "calibrate",
    "embed",
    "herd_subset",
    "hsic",
    "hsic_test",
    "infer",
    "integrate",
    "learn_features",
    "load",
    "median_lengthscale",
    "mercer",
    "minimise",
    "mmd",
    "mmd_test",
    "nonnegative",
    "open_runs",
    "positive",
    "quadrature",
    "resample",
    "save",
    "simulate",
    "unit_interval",
]

"""The attributes of every class that is saved, and their kinds: what is not listed here is neither saved nor loaded.

Most classes say it themselves. The fields of a dataclass are its attributes, the arguments of an estimator its settings, and
their hints are their kinds. The tables below hold what hints do not say: what `fit` leaves behind, the attributes of other
classes, and kinds where a hint is wider than what a file may hold. `NotRequired` marks what some objects lack.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NotRequired, TypeAlias, get_origin, get_type_hints

from sklearn.base import BaseEstimator

from ..bayes import KernelBayesRule
from ..classification._classifier import ConditionalEmbeddingClassifier
from ..classification._network import ConditionalEmbeddingNetwork, OutputFeatures
from ..classification._probabilities import ProbabilisticClassifier
from ..classification._sums import Sums
from ..conditional import ConditionalEmbedding
from ..densities import ConditionalDensity
from ..densities._columns import ColumnDensity, Scale
from ..densities._dependence import Dependence, Regression
from ..densities._function import Function
from ..densities._joint import Joint
from ..densities._process import NoisyProcess, ProcessFeatures
from ..densities._shape import Shape
from ..densities._transform import Transform
from ..density_ratio import DensityRatio
from ..embeddings import (
    AnalyticEmbedding,
    Covariance,
    CrossCovariance,
    Embedding,
    Health,
    MeanEmbedding,
    Posterior,
    Posteriors,
    TestResult,
)
from ..features import Features, Recipe
from ..features._explicit import Neural, NeuralFeatures, OneHotFeatures
from ..features._landmark import DenseFeatures, LandmarkFeatures
from ..filters import KernelBayesFilter, KernelMonteCarloFilter, Track, TrackDiagnostics
from ..integration import Integral, QuadratureRule
from ..kernels import Kernel
from ..kernels._composite import MappedKernel
from ..kernels._distributions import Column, Distribution, Independent, Mixture, Normal
from ..learning import Calibrator, Optimum
from ..learning._classification import Labelled
from ..learning._conditional import ConditionalParameters, Regulariser
from ..learning._learn_features import LearnedFeatures
from ..learning._mediated import MediatedParameters
from ..learning._networks import MLP, ConvNet, Standardised
from ..learning._sparse import SparseParameters
from ..lfi import Calibration, EpsilonKernel, ParameterPosterior, PredictiveCheck, Prior
from ..lfi._again import Section
from ..lfi._blocks import Block, Correlated, Scalar
from ..lfi._epsilon import SpatioTemporalEpsilon
from ..lfi._law import KernelMeansPosterior, Law, Moved, WeightedPoints
from ..lfi._likelihood import Likelihood
from ..lfi._particles import ParticlePosterior
from ..lfi._statistics import Chosen, Components
from ..lfi._tempering import Population
from ..regression._deconditional import DeconditionalEmbedding
from ..regression._mediated import MediatedModel
from ..regression._sparse import SparseRegression
from ..regression._task import TaskTransformedGP
from ..simulation import Failure, Runs
from ._kinds import Gaps, Labels, Numbers, Points, Real

Fields = Mapping[str, Any]

_ROOTS: tuple[type, ...] = (
    Kernel,
    Features,
    Recipe,
    Embedding,
    CrossCovariance,
    TestResult,
    Optimum,
    ConditionalParameters,
    Regulariser,
    ConditionalEmbedding,
    MediatedModel,
    MediatedParameters,
    SparseRegression,
    SparseParameters,
    ProbabilisticClassifier,
    Calibrator,
    Labelled,
    Sums,
    ConditionalDensity,
    ColumnDensity,
    Transform,
    Function,
    ProcessFeatures,
    NoisyProcess,
    Scale,
    Joint,
    Dependence,
    Regression,
    Shape,
    DensityRatio,
    KernelBayesRule,
    KernelBayesFilter,
    KernelMonteCarloFilter,
    Health,
    Posteriors,
    Track,
    TrackDiagnostics,
    Column,
    Independent,
    Normal,
    Mixture,
    MLP,
    ConvNet,
    Standardised,
    Prior,
    Block,
    Law,
    EpsilonKernel,
    ParameterPosterior,
    Likelihood,
    Section,
    Chosen,
    Components,
    Population,
    PredictiveCheck,
    Calibration,
    QuadratureRule,
    Integral,
    Runs,
    Failure,
)

_Names = tuple[str, ...]
_Network = MLP | ConvNet | Standardised
_Activation = Literal["relu", "silu", "gelu", "tanh"]
_Layers = tuple[tuple[Numbers, Numbers], ...]
_Several = Real | Gaps  # of one posterior, or of many
_MaybeNumbers: TypeAlias = Numbers | None
_MaybeGaps: TypeAlias = Gaps | None
_MaybePoints: TypeAlias = Points | None
_MaybeReal: TypeAlias = Real | None
_Series = None | Numbers | list[float] | tuple[float, ...] | list[list[float]]

#: Where a hint of a class is wider than what a file may hold.
_NARROWER: dict[type, Fields] = {
    Column: {"centre": float},
    Mixture: {"components": tuple[Distribution, ...], "weights": Numbers},
    Health: {
        **dict.fromkeys(("total", "ess", "negative_mass", "novelty", "conflict"), _Several),
        **dict.fromkeys(("contradiction", "widening"), NotRequired[_Several]),
        **dict.fromkeys(("condition", "prior_ess", "prior_outside", "retention", "reg"), Real),
        "prior_reg": _MaybeReal,
    },
    TestResult: {"statistic": Real, "pvalue": Real, "null": Gaps},
    TrackDiagnostics: dict.fromkeys(("total", "ess", "negative_mass", "novelty"), Gaps),
    Optimum: {"value": Real, "path": tuple[dict[str, Any], ...]},
    Features: {"error": _MaybeReal},
    DenseFeatures: {"points": Points},
    LandmarkFeatures: {"points": Points},
    OneHotFeatures: {"classes": Points},
    NeuralFeatures: {"network": _Network},
    OutputFeatures: {"network": _Network},
    Neural: {"network": _Network},
    LearnedFeatures: {"history": dict[str, Gaps], "baseline": _MaybeReal},
    MappedKernel: {"map": _Network},
    MLP: {"layers": _Layers, "activation": _Activation},
    ConvNet: {"layers": _Layers, "activation": _Activation},
    Standardised: {"network": MLP | ConvNet},
    SparseParameters: {"points": Numbers},
    MediatedParameters: {"drawn": tuple[Literal["kernel", "mediator_kernel"], ...]},
    Labelled: dict.fromkeys(("X", "Y", "weights"), Numbers),
    Calibrator: {"loss": Real},
    Scalar: {"args": tuple[float, ...], "kwds": dict[str, float]},
    Correlated: {"_factor": NotRequired[Numbers]},
    SpatioTemporalEpsilon: {"locations": _Series, "simulated": _Series},
    Calibration: {"ranks": Gaps, "truths": Gaps, "rows": Gaps},
    PredictiveCheck: {
        **dict.fromkeys(("observed", "parameters", "outputs", "before"), Gaps),
        **dict.fromkeys(("quantile", "tail", "far"), NotRequired[Gaps]),
    },
    Runs: {"outputs": Gaps, "seconds": Gaps},
    ProbabilisticClassifier: {"class_weight": dict[str | int | float, float] | str | None},
    ConditionalEmbeddingNetwork: {"network": _Network | None},
    KernelMonteCarloFilter: {"initial": None},  # its transition is a function: there are no files of it
    SparseRegression: {"points": int | Points | list[float] | list[list[float]]},
}

#: What `fit` leaves behind: all of it or nothing.
_FITTED: dict[type, Fields] = {
    BaseEstimator: {"n_features_in_": NotRequired[int], "feature_names_in_": NotRequired[Labels]},
    ConditionalEmbedding: {
        "X_": Points,
        "Y_": Points,
        "kernel_": Kernel,
        "target_kernel_": Kernel,
        "features_": Features,
        "tuning_": Optimum | None,
        "offset_": Numbers,
        "reg_": float,
        "factor_": Numbers,
        "coef_": Numbers,
        "_vector_target": bool,
        "_groups": NotRequired[Numbers | None],
    },
    ConditionalDensity: {
        "centre_": Numbers,
        "spread_": Numbers,
        "columns_": tuple[ColumnDensity, ...],
        "joint_": Joint,
        "margins_": tuple[Shape, ...],
        "residuals_": Gaps,
        "scores_": Gaps,
        "target_names_": _Names,
        "_X": Numbers,
        "_weights": Numbers,
        "_row_weights": Numbers,
        "_groups": _MaybeNumbers,
        "_seed": int,
        "_vector_target": bool,
    },
    KernelBayesRule: {
        "X_": Points,
        "Z_": Points,
        "kernel_": Kernel,
        "latent_kernel_": Kernel,
        "features_": Features,
        "likelihood_": NotRequired[ConditionalEmbedding],
        "reg_": float,
        "targets_": _MaybeNumbers,
        "validation_score_": NotRequired[Real],
        "_seed": int,
        "_point_dims": int,
        "_input_names": NotRequired[tuple[_Names | None, _Names | None]],
    },
    DensityRatio: {
        "kernel_": Kernel,
        "features_": Features,
        "coef_": Numbers,
        "weights_": Numbers,
        "reg_": float,
        "score_": Real,
        "scores_": dict[str, Gaps],
        "outside_": Real,
        "_support": _MaybeGaps,
        "_largest_reg": bool,
        "_point_shape": tuple[int, ...],
        "_input_names": NotRequired[_Names | None],
    },
    KernelBayesFilter: {
        "observations_": Points,
        "points_": Points,
        "before_": Numbers,
        "after_": Numbers,
        "controls_": _MaybePoints,
        "kernel_": Kernel,
        "latent_kernel_": Kernel,
        "control_kernel_": Kernel | None,
        "reg_": float,
        "prior_reg_": float,
        "transition_reg_": float,
        "score_": Real,
        "trials_": int,
        "observation_names_": _Names | None,
        "state_names_": _Names | None,
        "control_names_": _Names | None,
        "_seed": int,
        "_now": _MaybeNumbers,
        "_prior": tuple[Numbers, Numbers | None, Numbers | None, Numbers | None] | None,
    },
    ProbabilisticClassifier: {
        "classes_": Points,
        "kernel_": Kernel,
        "features_": Features,
        "coef_": Numbers,
        "reg_": float,
        "calibration_": Calibrator | None,
        "n_seen_": int,
        **{"target_name_": NotRequired[str], "input_columns_": NotRequired[_Names]},  # set by the command line
        "input_words_": NotRequired[dict[str, _Names]],
    },
    ConditionalEmbeddingClassifier: {
        "tuning_": Optimum | None,
        "scale_": float | Numbers,
        "sample_": Labelled,
        "sums_": NotRequired[Sums],
        "_kept": NotRequired[Labelled | None],
        "_chunk_rng": NotRequired[None],
    },
    ConditionalEmbeddingNetwork: {
        "network_": Standardised,
        "learning_curve_": dict[str, Gaps],
        "best_epoch_": int,
    },
    MediatedModel: {
        "X_": Points,
        "Y_": Points,
        "Y_task_": Points,
        "z_task_": Numbers,
        "kernel_": Kernel,
        "mediator_kernel_": Kernel,
        "features_": Features,
        "mediator_features_": Features,
        "tuning_": Optimum | None,
        "offset_": Numbers,
        "_flat_target": bool,
        **{"mediator_columns_": NotRequired[_Names], "target_columns_": NotRequired[_Names]},  # by the command line
    },
    DeconditionalEmbedding: {"reg_": float, "task_reg_": float},
    TaskTransformedGP: {
        "noise_": float,
        "mediator_noise_": float,
        "unit_": Numbers,
        "log_marginal_likelihood_": Real,
        "degrees_of_freedom_": Real,
        "spread_": Real,
    },
    SparseRegression: {
        "points_": Points,
        "kernel_": Kernel,
        "features_": Features,
        "noise_": float,
        "tuning_": Optimum | None,
        "offset_": Numbers,
        "unit_": Numbers,
        "coef_": Numbers,
        "factor_": Numbers,
        "n_iter_": int,
        "log_marginal_likelihood_": Real,
        "degrees_of_freedom_": Real,
        "_flat_target": bool,
        **{"mediator_columns_": NotRequired[_Names], "target_columns_": NotRequired[_Names]},
    },
}

#: The attributes of classes that are neither dataclasses nor estimators.
_PLAIN: dict[type, Fields] = {
    MeanEmbedding: {"kernel": Kernel, "points": Points, "weights": Numbers, "_columns": NotRequired[_Names | None]},
    Posterior: {"health": Health},
    AnalyticEmbedding: {"kernel": Kernel, "distribution": Distribution, "_norm_squared": float},
    Posteriors: {"kernel": Kernel, "points": Points, "weights": Numbers, "health": Health},
    CrossCovariance: {
        "kernel_x": Kernel,
        "kernel_y": Kernel,
        "x": Points,
        "y": Points,
        "coefficients": Numbers,
        "centred": bool,
        "features": Recipe | None,
    },
    Covariance: {"kernel": Kernel, "weights": Numbers, "_columns": NotRequired[_Names | None]},
    Track: {
        "kernel": Kernel,
        "points": Points,
        "weights": Numbers,
        "diagnostics": TrackDiagnostics,
        "times": Labels,
        "names": _Names,
        **dict.fromkeys(("_mean", "_std", "_mode"), NotRequired[Gaps]),
    },
    Prior: {"names": _Names, "_blocks": tuple[Block, ...]},
    KernelMeansPosterior: {
        "v": Numbers,
        "Z": Numbers,
        "beta": float | Numbers,
        "prior": Distribution,
        "seed": int,
        "atoms": Prior | None,
        "box": NotRequired[Numbers | None],
        "kernel": Kernel,
        "noise": Real,
        "_guess": Distribution,
        "_floor": Real,
    },
    Moved: {"law": Law, "start": Numbers, "end": Numbers, "stretch": Numbers},
    Section: {"likelihood": Likelihood | Section},
    Likelihood: {
        "prior": Prior,
        "density": ConditionalDensity,
        "statistics": Chosen | Components,
        "judges": Numbers,
        "raised": Numbers,
    },
    ParticlePosterior: {
        "likelihood": Likelihood | Section,
        "prior": Prior,
        "observed": Gaps,
        "population": Population,
        "log_evidence": Real,
        "seed": int,
    },
    WeightedPoints: {"points": Numbers, "weights": Numbers, "kernel": Kernel},
    ParameterPosterior: {
        "law": Law,
        "prior": Prior,
        "observed": Gaps,
        "parameters": Numbers,
        "outputs": Gaps,
        "names": _Names,
        "statistics": _Names,
        "method": str,
        "settings": dict[str, bool | Real | str | Gaps | Kernel | EpsilonKernel | None],
        "details": dict[str, Any],
        "ess": Real,
        "problems": _Names,
        "failures": int,
        "runs": int,
        "_scales": dict[str, Real] | None,
        "_seed": int,
        "_ratio": _MaybeGaps,
    },
    QuadratureRule: {
        "kernel": Kernel,
        "points": Numbers,
        "weights": Numbers,
        "density": _MaybeNumbers,
        "nodes": str,
        "weighting": str,
        "reg": float,
        "origin": str,
        "resolution": Real,
        "worst_case_error": Real,
        "embedding_error": NotRequired[Real],
        "_plan": dict[str, int | float | Recipe | None],
    },
    Integral: {
        "rule": QuadratureRule,
        "values": Gaps,
        "history": list[tuple[int, _Several, _Several]],
        "n": int,
        "problems": _Names,
        "failures": tuple[Failure, ...],
        "names": _Names | None,
        "outputs": _Names | None,
    },
}


def known() -> dict[str, type]:
    """The classes that can be saved, by name."""
    return {cls.__name__: cls for root in _ROOTS for cls in _family(root)}


def _family(cls: type) -> Iterable[type]:
    yield cls
    for sub in cls.__subclasses__():
        if sub.__module__.startswith("kernelbayes."):
            yield from _family(sub)


class Layout:
    """The attributes of a class: which there must be, which there must be once it is fitted, and the kind of each."""

    def __init__(self, cls: type):
        own = {**_hinted(cls), **_inherited(cls, _PLAIN), **_inherited(cls, _NARROWER)}
        fitted = _inherited(cls, _FITTED)
        self.kinds = {name: _bare(kind) for name, kind in {**fitted, **own}.items()}
        self.required = frozenset(name for name, kind in own.items() if get_origin(kind) is not NotRequired)
        self.fitted = frozenset(name for name, kind in fitted.items() if get_origin(kind) is not NotRequired)

    def missing(self, names: Iterable[str]) -> str | None:
        """The first of the attributes that should be there and is not."""
        names = frozenset(names)
        wanted = self.required | (self.fitted if names & self.fitted else frozenset())
        return min(wanted - names, default=None)


@functools.cache
def layout(cls: type) -> Layout:
    """The attributes of one of the known classes."""
    return Layout(cls)


def _hinted(cls: type) -> Fields:
    """What a class says itself."""
    if issubclass(cls, BaseEstimator):
        names = [name for name in inspect.signature(cls).parameters if name != "self"]
        hints = get_type_hints(cls.__init__)
    elif dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls) if field.init]
        hints = get_type_hints(cls)
        # the domain of a parameter that is learned is checked by its kernel
        learned = {field.name for field in dataclasses.fields(cls) if field.metadata.get("domain")}
        hints |= dict.fromkeys(learned, float | Numbers)
    else:
        return {}
    return {name: hints[name] for name in names}


def _inherited(cls: type, table: Mapping[type, Fields]) -> Fields:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= table.get(base, {})
    return found


def _bare(kind: Any) -> Any:
    return kind.__args__[0] if get_origin(kind) is NotRequired else kind

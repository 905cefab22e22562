"""Choosing hyperparameters: objectives, and the one optimiser loop that minimises them."""

from ._bayes import BANDWIDTH_FACTORS, few_landmarks, validated, weighted_reg
from ._calibration import Calibrator, fit_calibrator
from ._conditional import (
    MOST_POINTS,
    default_target_kernel,
    explain_edge,
    holdout_reg,
    scored_features,
    target_features,
    tune_kernel,
    tune_reg,
)
from ._learn_features import LearnedFeatures, learn_features
from ._networks import MLP, ConvNet
from ._optimise import BoundWarning, Optimum, last_of_the_best, minimise

__all__ = [
    "BANDWIDTH_FACTORS",
    "MLP",
    "MOST_POINTS",
    "BoundWarning",
    "Calibrator",
    "ConvNet",
    "LearnedFeatures",
    "Optimum",
    "default_target_kernel",
    "explain_edge",
    "few_landmarks",
    "fit_calibrator",
    "holdout_reg",
    "last_of_the_best",
    "learn_features",
    "minimise",
    "scored_features",
    "target_features",
    "tune_kernel",
    "tune_reg",
    "validated",
    "weighted_reg",
]

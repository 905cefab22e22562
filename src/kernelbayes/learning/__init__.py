"""Choosing hyperparameters: objectives, and the one optimiser loop that minimises them."""

from ._conditional import MOST_POINTS, holdout_reg, target_features, tune_kernel, tune_reg
from ._optimise import BoundWarning, Optimum, minimise

__all__ = [
    "MOST_POINTS",
    "BoundWarning",
    "Optimum",
    "holdout_reg",
    "minimise",
    "target_features",
    "tune_kernel",
    "tune_reg",
]

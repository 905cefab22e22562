"""Representations of a sample: recipes, the features they make, and the Gram matrices they imply."""

from ._base import Features, Recipe, check_recipe, kernel_for
from ._explicit import Neural, OneHot, RandomFourier
from ._landmark import (
    DenseFeatures,
    Exact,
    IncompleteCholesky,
    Streamed,
    Subspace,
    default_recipe,
    factored,
    pivots,
    represent,
)

__all__ = [
    "DenseFeatures",
    "Exact",
    "Features",
    "IncompleteCholesky",
    "Neural",
    "OneHot",
    "RandomFourier",
    "Recipe",
    "Streamed",
    "Subspace",
    "check_recipe",
    "default_recipe",
    "factored",
    "kernel_for",
    "pivots",
    "represent",
]

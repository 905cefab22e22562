"""The contract of a representation: a recipe, the features it makes, and the Gram matrix they imply.

A *recipe* (`kb.Exact()`, `kb.Subspace(500)`, ...) holds settings only. Fitted to a kernel and a sample it gives
*features*: a map from points to coordinates f(x) with k(x, y) ~ f(x) . f(y), that knows its rank and how much of the
kernel it misses. The layers below meet a sample only as the `Gram` of its coordinates, so every rule runs on every
representation.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import equinox as eqx
import numpy as np

from .. import _check
from .._linalg import Gram
from .._typing import AnyArray, Array, ArrayLike, RandomState
from ..kernels import Kernel, check_kernel


class Features(eqx.Module):
    """A fitted map from points to coordinates; made by the `fit` of a recipe.

    Attributes:
        kernel: the kernel that the coordinates stand for.
        error: the share of the trace of the Gram matrix that they miss, between 0 and 1; None where it is undefined.
            For a subspace it is measured on at most 2,000 points.
        names: of the columns of the data frame that they were fitted to, or None.
    """

    kernel: Kernel
    error: float | None = eqx.field(static=True)
    names: tuple[str, ...] | None = eqx.field(static=True, default=None, kw_only=True)

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """Number of coordinates."""

    @abc.abstractmethod
    def _coordinates(self, X: AnyArray) -> AnyArray:
        """Coordinates (n, r) of checked points, in NumPy or JAX."""

    def transform(self, X: ArrayLike) -> Array:
        """The feature matrix F (n, r) of points, with `F F'` the approximate Gram matrix."""
        return np.asarray(self._coordinates(self._read(X)), dtype=np.float64)

    def _read(self, X: Any) -> Array:
        """Checked points; those of a data frame by the names of its columns."""
        return self.kernel._check(_check.by_name(X, self.names, "X"), "X")


class Recipe(eqx.Module):
    """Settings of a representation. `fit` makes features of them."""

    @abc.abstractmethod
    def _fit(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> tuple[Features, Gram]:
        """Features, and the Gram matrix of the sample they were fitted to."""

    def _kernel(self) -> Kernel | None:
        """The kernel that a representation brings along: a network's, or that of one-hot labels."""
        return None

    def fit(self, kernel: Kernel, X: ArrayLike, *, random_state: RandomState = None) -> Features:
        """Choose the features of a sample X for a kernel."""
        features = self._fit(kernel, check_kernel(kernel)._check(X, "X"), _check.generator(random_state))[0]
        names = _check.own_names(X)
        return features if names is None else dataclasses.replace(features, names=names)


def kernel_for(recipe: Recipe | None, kernel: Kernel | None) -> Kernel | None:
    """The kernel that a recipe implies, or the one given; a clear error if the two disagree."""
    own = None if recipe is None else recipe._kernel()
    if own is not None and kernel is not None:
        raise ValueError(f"features={type(recipe).__name__}(...) brings its own kernel; leave kernel=None")
    return kernel if own is None else own


def check_recipe(features: Any, name: str = "features") -> Recipe | None:
    """Refuse what is neither a way to represent points nor None, with one that is."""
    if features is not None and not isinstance(features, Recipe):
        raise ValueError(
            f"{name} must be a representation such as kb.Subspace(500) or None, got {type(features).__name__}"
        )
    return features

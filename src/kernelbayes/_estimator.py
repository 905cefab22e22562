"""What the estimators share: checks of their settings, and a Gram matrix that is neither pickled nor saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from . import _check
from ._linalg import Dense
from .features import IncompleteCholesky, Recipe, represent
from .kernels import Kernel

#: Attributes that are rebuilt on use, and so left out of pickles and files.
DERIVED = (
    "_gram_cache",
    "_fit_cache",
    "_pair_weights_cache",
    "_surroundings",
    "_recursion_cache",
    "_smoother_cache",
    "_reach_cache",
    "_mixture_cache",
    "_proposal_cache",
    "_draws_cache",
    "_frozen_cache",
    "_smoothed_cache",
    "_aim_cache",
    "_problem_cache",
)

# Landmarks that stand in for a dense Gram matrix where a factor of it is needed.
_STAND_IN_RANK = 1024

_EXAMPLES = {Kernel: "kb.Gaussian(1.0)", Recipe: "kb.Subspace(500)"}


def check_kinds(estimator: Any, **wanted: type) -> None:
    """Each of these settings is of its kind or None, or a ValueError says what was wanted."""
    for name, kind in wanted.items():
        value = getattr(estimator, name)
        if value is not None and not isinstance(value, kind):
            got = _check.given_instead(value, kind) if isinstance(value, type) else repr(value)
            raise ValueError(f"{name} must be a {kind.__name__} such as {_EXAMPLES[kind]} or None, got {got}")


def check_sample(estimator: Any, X: Any, kernel: Kernel | None) -> Any:
    """Points to fit to: vectors as scikit-learn has them, or whatever the kernel takes."""
    vectors = kernel is None or (kernel._takes_vectors and not _is_stack(X))
    if vectors:  # images are for the kernel to check
        _refuse_flat(X)
        X = _check.vectors(validate_data(estimator, X, dtype=np.float64, ensure_min_samples=2), "X")
    else:
        vars(estimator).pop("n_features_in_", None)  # of an earlier fit to vectors
    return X if kernel is None else kernel._check(X, "X")


def _is_stack(X: Any) -> bool:
    """Whether points are arrays of more than one dimension each, such as images."""
    dimensions = getattr(X, "ndim", 2)
    return isinstance(dimensions, int) and dimensions > 2


def check_points(estimator: Any, X: Any, kernel: Kernel) -> Any:
    """Points to predict at, of the kind that was fitted to."""
    if hasattr(estimator, "n_features_in_"):
        _refuse_flat(X)
        X = validate_data(estimator, X, dtype=np.float64, reset=False)
    return kernel._check(X, "X")


def _refuse_flat(X: Any) -> None:
    """Say what to do with a flat array, without printing all of it."""
    listed = isinstance(X, (list, tuple)) and len(X) > 0 and np.ndim(X[0]) == 0
    if listed or (isinstance(X, np.ndarray) and X.ndim == 1):
        if np.asarray(X).dtype.kind in "US":
            raise ValueError("X holds strings; give a kernel for them, such as kb.Delta() or kb.FunctionKernel(...)")
        raise ValueError(
            f"Expected 2D array, got 1D array instead: X is a flat list of {len(X)} values. Reshape your data with "
            "X.reshape(-1, 1) if it is one column, or X.reshape(1, -1) if it is one point."
        )


@contextmanager
def columns_in_order() -> Iterator[None]:
    """A model may know its inputs by name; here they come as arrays, with the columns in their order."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        yield


class MultiOutput:
    """An estimator whose targets may have several columns."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.multi_output = True
        return tags


class HoldsGram:
    """The training sample `X_` in the coordinates of `features_`, rebuilt after loading."""

    features_: Any
    kernel_: Any
    X_: Any

    @property
    def _gram(self) -> Any:
        if "_gram_cache" not in self.__dict__:
            self._gram_cache = represent(self.features_, self.X_)
        return self._gram_cache

    def _thin_features(self) -> Any:
        """The features, or landmarks that stand in for them where they have full rank."""
        if isinstance(self._gram, Dense):
            return IncompleteCholesky(_STAND_IN_RANK).fit(self.kernel_, self.X_)
        return self.features_

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name not in DERIVED}

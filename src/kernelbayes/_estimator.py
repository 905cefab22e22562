"""What the estimators share: checks of their settings, and a Gram matrix that is neither pickled nor saved."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from . import _check
from ._linalg import Dense
from ._typing import Array
from .features import IncompleteCholesky, Recipe, represent
from .kernels import Kernel

#: Attributes that are rebuilt on use, and so left out of pickles and files.
DERIVED = (
    "_gram_cache",
    "_joint_cache",
    "_fit_cache",
    "_pair_weights_cache",
    "_surroundings",
    "_recursion_cache",
    "_smoother_cache",
    "_reach_cache",
    "_mixture_cache",
    "_proposal_cache",
    "_draws_cache",
    "_drawn_cache",
    "_pool_cache",
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
        return _checked(_validated(estimator, X, ensure_min_samples=2), kernel)
    for earlier in ("n_features_in_", "feature_names_in_"):  # of an earlier fit to vectors
        vars(estimator).pop(earlier, None)
    names = _check.column_names(X)
    if names is not None:
        _check.distinct_names(names, "X")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return _checked(X, kernel)


def _validated(estimator: Any, X: Any, **how: Any) -> Any:
    """Vectors as scikit-learn has them, which keeps the names of columns; it sees neither masks nor dates."""
    if not hasattr(X, "toarray"):  # a sparse matrix is its to refuse, with the TypeError that its users expect
        _check.no_dates(X, "X")
    _check.distinct_names(_check.column_names(X) or (), "X")
    with _text_named("X"):
        return validate_data(estimator, X, dtype=np.float64, **how)


def check_targets(y: Any) -> Array:
    """Targets (n,) or (n, p) as scikit-learn has them."""
    _check.no_dates(y, "y")
    with _text_named("y"):
        return check_array(y, dtype="numeric", ensure_2d=False, input_name="y")


@contextmanager
def _text_named(name: str) -> Iterator[None]:
    """Say where the text is that scikit-learn cannot read; its look for infinities overflows on large numbers."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(f"{name} holds text that cannot be read as numbers") from None
        raise


def _checked(X: Any, kernel: Kernel | None) -> Any:
    return _check.vectors(X, "X") if kernel is None else kernel._check(X, "X")


def _is_stack(X: Any) -> bool:
    """Whether points are arrays of more than one dimension each, such as images."""
    dimensions = getattr(X, "ndim", 2)
    return isinstance(dimensions, int) and dimensions > 2


def check_points(estimator: Any, X: Any, kernel: Kernel) -> Any:
    """Points to predict at, of the kind that was fitted to."""
    if hasattr(estimator, "n_features_in_"):
        _refuse_flat(X)
        return kernel._check(_validated(estimator, X, reset=False), "X")
    return kernel._check(_check.by_name(X, getattr(estimator, "feature_names_in_", None), "X"), "X")


def one_point(estimator: Any, x: Any) -> Any:
    """One point, or a table of one, as a table for `check_points`; a row of a data frame is read by its names."""
    row = _check.row_by_name(x, getattr(estimator, "feature_names_in_", None), "x")
    if row is not x and isinstance(row, list):
        _check.table(row, "x")
        return np.array(row, dtype=object)[None]  # not as text, where one of them is
    if not (hasattr(estimator, "n_features_in_") or estimator.X_.ndim > 2):
        return x
    array = _check.table(x, "x")
    return array[None] if array.ndim == estimator.X_.ndim - 1 else x


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

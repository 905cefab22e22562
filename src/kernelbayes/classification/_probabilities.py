"""What classifiers by conditional embedding share once they are fitted: raw and calibrated probabilities, entropies."""

from __future__ import annotations

import abc
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .. import _check
from .._typing import Array, ArrayLike
from ..learning import Calibrator
from ..learning._classification import Labelled
from ..rules import multiclass

_ENTROPIES = ("calibrated", "clipped", "embedded")


def checked_labels(y: Any) -> Array:
    """Labels (n,) of one comparable kind."""
    if y is None:
        raise ValueError("the classifier requires y to be passed, but the target y is None")
    y = column_or_1d(_check.labels(y, "y"), warn=True)
    if y.dtype == object:  # as a column of a data frame may be: a plain array if all labels are of one kind
        kinds = {type(label) for label in y}
        if len(kinds) > 1:
            found = " and ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(f"y mixes labels of different types, {found}, which cannot be put in order")
        y = np.array(y.tolist())
    with np.errstate(invalid="ignore"):  # labels that are large numbers are tried as whole ones
        check_classification_targets(y)
    return y


def distinct(y: Array) -> tuple[Array, Array]:
    """The classes in order, and the position of each label among them."""
    return np.unique(y, return_inverse=True)


def one_hot(positions: Array, classes: int) -> Array:
    """One-hot rows of positions."""
    return np.eye(classes)[positions]


class ProbabilisticClassifier(ClassifierMixin, BaseEstimator, abc.ABC):
    """A classifier with raw probabilities, made usable by a calibrator.

    A subclass fits `classes_`, `calibration_` (a `Calibrator` or None) and `n_seen_` (points learned from), and gives
    `_raw(X)`.
    """

    classes_: Array
    class_weight: Any
    multiplier: float | None
    batch_size: int | None
    calibration_: Calibrator | None
    n_seen_: int

    def _check_balance(self) -> None:
        """Complain about a weight of the complexity or a size of batches that makes no sense."""
        if self.multiplier is not None and _check.scalar(self.multiplier, "multiplier") < 0:
            raise ValueError(f"multiplier must not be negative, got {self.multiplier}")
        if self.batch_size is not None:
            _check.count(self.batch_size, "batch_size", at_least=2)

    def _labelled(self, X: Array, y: Any, sample_weight: Any, classes: Any = None) -> Labelled:
        """Checked points of positive weight with one-hot labels; sets the classes, which may be given."""
        y = checked_labels(y)
        _check.same_length(X, y, "X", "y")
        weights = np.ones(len(X)) if sample_weight is None else _check.weights(sample_weight, "sample_weight", len(X))
        if weights.min() < 0:
            raise ValueError("sample_weight must not be negative")
        if isinstance(self.class_weight, str) and self.class_weight != "balanced":
            raise ValueError(f'class_weight must be "balanced", a dictionary or None, got {self.class_weight!r}')
        weights = weights * compute_sample_weight(self.class_weight, y)
        kept = weights > 0
        if not kept.any():
            raise ValueError("all sample weights are zero")
        known, positions = distinct(y[kept])
        if classes is None and len(known) < 2:
            raise ValueError("y holds 1 class of positive weight; a classifier needs at least two classes")
        if classes is not None:
            given = distinct(checked_labels(classes))[0]
            unknown = np.setdiff1d(known, given)
            if len(unknown):
                raise ValueError(f"y holds {unknown[0].item()!r}, which is not among classes {given.tolist()}")
            positions, known = np.searchsorted(given, y[kept]), given
        self.classes_ = known
        return Labelled(X[kept], one_hot(positions, len(known)), weights[kept])

    @abc.abstractmethod
    def _raw(self, X: Any) -> Array:
        """Raw probabilities (t, m) at points as the user gives them."""

    def decision_probabilities(self, X: ArrayLike) -> Array:
        """The raw estimates (3.5), one row for each point and one column for each of `classes_`.

        They converge to the class probabilities, but for finitely many points they may lie outside [0, 1] and need not
        sum to one. Far from all training points they tend to zero.
        """
        check_is_fitted(self)
        return self._raw(X)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Probabilities of the classes, calibrated by leave-one-out; never zero.

        With `calibration=None` these are clip-normalised estimates (3.6), but raw ones below 1 / (n + m), n the number of
        training points and m that of classes, count as about that instead of zero.
        """
        P = self.decision_probabilities(X)
        if self.calibration_ is not None:
            return self.calibration_(P)
        return multiclass.floor_normalised(P, 1.0 / (self.n_seen_ + len(self.classes_)))

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Logarithms of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> Array:
        """The most probable class at each point. Calibration keeps the order of the raw probabilities, up to rounding."""
        best = self.predict_proba(X).argmax(1)
        return self.classes_[best]

    def entropy(self, X: ArrayLike, kind: str = "calibrated") -> Array:
        """How uncertain the class is at each point, in nats: zero where it is certain, log m where all are alike.

        Args:
            X: points.
            kind: "calibrated", of `predict_proba`; "clipped", of the clip-normalised estimates (3.8); "embedded", the
                expectation (3.12) under the conditional embedding itself, which may be slightly negative.
        """
        _check.option(kind, "kind", _ENTROPIES)
        if kind == "calibrated":
            return multiclass.entropy(self.predict_proba(X))
        P = self.decision_probabilities(X)
        return (
            multiclass.embedded_entropy(P) if kind == "embedded" else multiclass.entropy(multiclass.clip_normalised(P))
        )

    def plot_calibration(self, X: ArrayLike, y: ArrayLike, **options: Any) -> Any:
        """Draw how often the predicted class is right against how probable it was said to be, on labelled points.

        Returns a Matplotlib figure. Points that were not learned from give an honest picture.
        """
        from .. import plotting

        return plotting.reliability(self.predict_proba(X), self._positions(y), **{"names": self.classes_, **options})

    def plot_map(self, X: ArrayLike, y: ArrayLike | None = None, **options: Any) -> Any:
        """Draw classes and their uncertainty over two inputs, with points if their labels are given.

        X has two columns, and so has what the model was fitted to. Returns a Matplotlib figure.
        """
        from .. import plotting

        return plotting.class_map(self, X, None if y is None else self._positions(y), **options)

    def _positions(self, y: Any) -> Array:
        """Positions of labels among the classes."""
        check_is_fitted(self)
        y = checked_labels(y)
        positions = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        unknown = self.classes_[positions] != y
        if unknown.any():
            raise ValueError(f"y holds the label {y[unknown][0].item()!r}, which was not among those fitted")
        return positions

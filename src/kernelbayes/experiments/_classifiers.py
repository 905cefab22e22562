"""Classifiers of scikit-learn that the experiments compare with, and how all of them are scored."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._typing import Array
from ..classification._scores import BINS, binned, top_class

_LEAST = 1e-15  # what a probability of zero is taken for in the log loss, as in scikit-learn
COSTS, WIDTHS = tuple(np.geomspace(1e-1, 1e3, 5).tolist()), tuple(np.geomspace(1e-3, 1e1, 5).tolist())


def support_vectors(X: Array, y: Array, *, probabilities: bool = True, seed: int = 0) -> Any:
    """A support vector classifier with C and gamma chosen from a 5 x 5 grid by three folds, for inputs in [0, 1].

    Probabilities are by Platt scaling on five folds, as in `SVC(probability=True)`, which scikit-learn no longer recommends.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    def folds(count: int) -> Any:
        return StratifiedKFold(count, shuffle=True, random_state=seed)

    search = GridSearchCV(SVC(), {"C": COSTS, "gamma": WIDTHS}, cv=folds(3))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # which some folds then do not hold
        search.fit(X, y)
    if not probabilities:
        return search
    scaled: Any = CalibratedClassifierCV
    return scaled(SVC(**search.best_params_), cv=folds(5), ensemble=False).fit(X, y)


def forest(X: Array, y: Array, *, seed: int = 0) -> Any:
    """A random forest as it comes."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=seed).fit(X, y)


def scores(probabilities: Array, y: Array) -> dict[str, float]:
    """Accuracy, log loss, and for each bin of the predicted probability by how many points the predictions were too unsure.

    The last add up over folds, which calibration errors do not: see `calibration_error`.
    """
    said, right = top_class(probabilities, y)
    bins = binned(said, right)
    gaps = np.zeros(BINS)
    gaps[bins.place] = bins.counts * (bins.share - bins.said)
    losses = -np.log(np.clip(probabilities[np.arange(len(y)), y], _LEAST, 1.0))
    return {"accuracy": float(right.mean()), "loss": float(losses.mean())} | {
        f"gap_{i}": float(gap) for i, gap in enumerate(gaps)
    }


def calibration_error(gaps: Array, points: Array) -> float:
    """Expected calibration error of all folds together, from their gaps (bins, folds) and sizes (folds,)."""
    return float(np.abs(gaps.sum(-1)).sum() / points.sum())

"""How far draws are from draws of the exact posterior."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from ..._typing import Array
from ._problem import ZooProblem
from ._reference import reference

COMPARED = 1000
MEASURES = ("c2st", "mean_error", "sd_ratio", "coverage")


def evaluate(
    problem: ZooProblem,
    k: int,
    draws: Array,
    folder: Path | str | None = None,
    seed: int = 0,
    *,
    classifier: bool = True,
) -> dict[str, float]:
    """Measures of draws (at least 1000, d) for the k-th observation; see `measures`."""
    return measures(reference(problem, k, folder), draws, seed, classifier=classifier)


def measures(exact: Array, draws: Array, seed: int = 0, *, classifier: bool = True) -> dict[str, float]:
    """Of draws (n, d) beside exact ones (m, d); the classifier, which takes most of the time, if wanted.

    | measure | what it is | perfect |
    |---|---|---|
    | c2st | share of 1,000 and 1,000 draws that a network tells apart | .5 |
    | mean_error | of the mean, in exact standard deviations; root mean square over parameters | 0 |
    | sd_ratio | of standard deviations; geometric mean over parameters | 1 |
    | coverage | mass of the exact posterior in central 90 % intervals; mean over parameters | .9 |
    """
    spread = exact.std(0)
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    told_apart = {"c2st": c2st(exact, draws, seed)} if classifier else {}
    return told_apart | {
        "mean_error": float(np.sqrt((((draws.mean(0) - exact.mean(0)) / spread) ** 2).mean())),
        "sd_ratio": float(np.exp(np.log(np.maximum(draws.std(0), 1e-12) / spread).mean())),
        "coverage": float(((exact >= low) & (exact <= high)).mean()),
    }


def c2st(exact: Array, draws: Array, seed: int = 0, count: int = COMPARED) -> float:
    """Accuracy of a network with two hidden layers of 10 d units that tells two samples apart, by five folds.

    Lopez-Paz and Oquab (2017), "Revisiting classifier two-sample tests", with the settings that are usual for posteriors.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import KFold, cross_val_score
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng([seed, 3])
    count = min(count, len(exact), len(draws))
    one, other = (a[rng.permutation(len(a))[:count]] for a in (exact, draws))
    both = (np.concatenate([one, other]) - one.mean(0)) / one.std(0)
    width = 10 * both.shape[1]
    network = MLPClassifier((width, width), max_iter=1000, random_state=seed)
    folds = KFold(5, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(cross_val_score(network, both, np.repeat([0, 1], count), cv=folds).mean())

"""How far draws are from draws of the exact posterior."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..._typing import Array
from ._problem import ZooProblem
from ._reference import reference
from ._two_samples import c2st

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

"""Sequences of points that fill the unit cube, and can be continued."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ._typing import Array

SEQUENCES = ("halton", "sobol")


def unit_sequence(kind: str, d: int, start: int, stop: int, seed: int) -> Array:
    """Rows `start` to `stop - 1` of a scrambled sequence in the open unit cube (stop - start, d)."""
    from scipy.stats import qmc  # slow to import

    family: Any = qmc.Halton if kind == "halton" else qmc.Sobol
    engine = family(d, scramble=True, seed=seed)
    if start:
        engine.fast_forward(start)
    with warnings.catch_warnings():  # Sobol's sequence is balanced at powers of two; ours grows as it goes
        warnings.simplefilter("ignore", UserWarning)
        u = engine.random(stop - start) if stop > start else np.empty((0, d))
    half = np.finfo(np.float64).eps
    return np.clip(u, half, 1.0 - half)

"""Sequences made of pairs that come in no order, so that a filter can be tried on them.

From a state of the pairs the known transition draws the next one, and the pair whose state is nearest to it takes its
place, with its observation. Such a walk follows the transition up to the distance between neighbouring states.
"""

from __future__ import annotations

import numpy as np

from ._samplers import Sampler
from ._tuning import Fold

_LENGTH = 40


def walks(fold: Fold, sampler: Sampler, rng: np.random.Generator) -> Fold:
    """A fold whose stretches are walks among the pairs that were left out of it; as many as rows allow."""
    from scipy.spatial import KDTree

    X, Z = np.concatenate(fold.observations), np.concatenate(fold.states)
    U = None if fold.controls[0] is None else np.concatenate(fold.controls)  # type: ignore[arg-type]
    scale = Z.std(0)
    tree = KDTree(Z / np.where(scale > 0, scale, 1.0))
    count = max(2, round(len(Z) / _LENGTH))
    rows = np.empty((count, _LENGTH), dtype=int)
    acting = np.empty((count, _LENGTH, 1 if U is None else U.shape[1]))
    for i in range(count):
        rows[i, 0] = rng.integers(len(Z))
        acting[i, 0] = 0.0
        for t in range(1, _LENGTH):
            control = None if U is None or U.shape[1] < 2 else U[rng.integers(len(U)), 1:]
            acting[i, t] = np.concatenate([[t], [] if control is None else control])
            there = sampler(rng, Z[rows[i, t - 1]][None], t, control)
            rows[i, t] = np.ravel(tree.query(there / np.where(scale > 0, scale, 1.0))[1])[0]
    return Fold(fold.log, [X[r] for r in rows], [Z[r] for r in rows], list(acting))

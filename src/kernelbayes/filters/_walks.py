"""Sequences made of pairs that come in no order, so that a filter can be tried on them.

From a state of the pairs the known transition draws the next one, and the pair whose state is nearest to it takes its
place, with its observation. Such a walk follows the transition up to the distance between neighbouring states.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ._dynamics import Log
from ._samplers import Sampler
from ._tuning import Fold, folds

_LENGTH = 40


def walks(log: Log, controls: Array, sampler: Sampler, rng: np.random.Generator) -> list[Fold]:
    """Folds in which rows taken at random are left out, and walks among these are the sequences to try.

    The first column of controls holds times, which mean nothing here; the others, if any, are drawn from.
    """
    order = rng.permutation(len(log.points))
    mixed = Log(log.observations[order], log.points[order], log.before, log.after, None)
    held = folds(mixed, np.array([len(order)]), None, rng)
    return [_walked(fold, controls[:, 1:], sampler, rng) for fold in held]


def _walked(fold: Fold, controls: Array, sampler: Sampler, rng: np.random.Generator) -> Fold:
    """A fold with walks among the rows left out in their place; about as many steps as there are rows."""
    from scipy.spatial import KDTree

    X, Z = np.concatenate(fold.observations), np.concatenate(fold.states)
    scale = np.where(Z.std(0) > 0, Z.std(0), 1.0)
    tree = KDTree(Z / scale)
    count = max(2, round(len(Z) / _LENGTH))
    rows = np.empty((count, _LENGTH), dtype=int)
    rows[:, 0] = rng.integers(len(Z), size=count)
    drawn = controls[rng.integers(len(controls), size=(count, _LENGTH))]
    for i in range(count):
        for t in range(1, _LENGTH):
            control = drawn[i, t] if drawn.shape[2] else None
            moved = sampler(rng, Z[rows[i, t - 1]][None], t, control)
            rows[i, t] = np.ravel(tree.query(moved / scale)[1])[0]
    times = np.tile(np.arange(_LENGTH, dtype=np.float64)[:, None], (count, 1, 1))
    acting = np.concatenate([times, drawn], axis=2)
    return Fold(fold.log, [X[r] for r in rows], [Z[r] for r in rows], list(acting))

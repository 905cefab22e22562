"""Search without gradients, for a few positive numbers and an objective that is a whole simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._typing import Array


class Found(NamedTuple):
    """Where a search ended."""

    point: Array
    value: float
    evaluations: int


def pattern_search(
    objective: Callable[[Array], float],
    start: Array,
    step: Array,
    lower: Array,
    upper: Array,
    *,
    budget: int,
    smallest: float = 0.3,
) -> Found:
    """Minimise by trying a step up and down in each coordinate, halving the steps when none helps (Hooke and Jeeves 1961).

    Args:
        objective: may return infinity or NaN where it cannot be evaluated.
        start: first point (d,).
        step: first step in each coordinate.
        lower: bounds that are not left.
        upper: the same.
        budget: evaluations at most.
        smallest: stop when steps have shrunk to this share of the first ones.
    """
    seen: dict[bytes, float] = {}

    def value(point: Array) -> float:
        key = np.round(point, 9).tobytes()
        if key not in seen:
            found = float(objective(point))
            seen[key] = found if np.isfinite(found) else np.inf
        return seen[key]

    best, score, scale = np.clip(start, lower, upper), 0.0, 1.0
    score = value(best)
    while scale > smallest and len(seen) < budget and len(best):
        improved = False
        for j in range(len(best)):
            for sign in (1.0, -1.0):
                while len(seen) < budget:  # on in the same direction for as long as it helps
                    tried = best.copy()
                    tried[j] = np.clip(tried[j] + sign * scale * step[j], lower[j], upper[j])
                    if tried[j] == best[j] or not value(tried) < score:
                        break
                    best, score, improved = tried, value(tried), True
        scale = scale if improved else 0.5 * scale
    return Found(best, score, len(seen))

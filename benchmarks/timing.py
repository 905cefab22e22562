"""How a time is taken."""

from __future__ import annotations

import time


def best_of(function, repeats):
    """Best time, first time, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), times[0], result

"""How a time is taken."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def best_of(function: Callable[[], Any], repeats: int) -> tuple[dict[str, float], Any]:
    """Best and first of several times, as the record holds them, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return {"seconds": min(times), "first": times[0]}, result

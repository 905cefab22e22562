"""What chance allows: shares that right probabilities would lead to, to be drawn behind those that were found."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array, ArrayLike
from ._style import FAINT

# Levels at which coverage is drawn, and the share of cases that bands of chance hold unless another is asked for.
LEVELS, CHANCE = np.linspace(0.02, 0.98, 49), 0.95


def shares_by_chance(probability: Array, count: ArrayLike) -> tuple[Array, Array]:
    """Between which shares of `count` cases an event of a probability lies in 95 of 100 samples."""
    from scipy.stats import binom  # slow to import

    low, high = (binom.ppf(edge, count, probability) / count for edge in (0.5 - CHANCE / 2, 0.5 + CHANCE / 2))
    return low, high


def draw_diagonal(ax: Any) -> None:
    """Where shares are what they were said to be."""
    ax.plot([0, 1], [0, 1], color=FAINT, lw=1.0)


def draw_expected_coverage(ax: Any, levels: Array, low: Array, high: Array, label: str | None = None) -> None:
    """The diagonal of coverage against level with what chance allows about it, and the limits of both axes."""
    ax.fill_between(levels, low, high, color=FAINT, alpha=0.25, lw=0, label=label)
    draw_diagonal(ax)
    ax.set(xlim=(0, 1), ylim=(0, 1.02))

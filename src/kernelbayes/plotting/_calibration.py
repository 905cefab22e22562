"""Are posteriors right as often as they say? Rank histograms and coverage, with what chance allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._summary import percent
from .._typing import Array
from ..lfi import Calibration
from ._chance import LEVELS, draw_expected_coverage
from ._style import ACCENT, FAINT, SECOND, add_legend, name_axes, new_figure, without_spare

# Parameters beside each other.
_IN_A_ROW = 4


def calibration(checked: Calibration, *, sure: float = 0.99) -> Any:
    """Rank histograms and, below them, coverage against level, for each parameter.

    Bars and lines of right posteriors lie in the grey bands. A heap in the middle of a histogram means posteriors that are
    too wide, heaps at both ends too narrow, a slope a bias. What lies outside a band is red. Talts et al. (2018).

    Args:
        checked: from `kb.calibrate`.
        sure: probability with which a single bar, or the coverage at a single level, lies in its band if posteriors are
            right.
    """
    d = len(checked.names)
    columns, blocks = min(d, _IN_A_ROW), -(-d // _IN_A_ROW)
    size = (max(2.4 * columns, 4.2), 0.4 + 3.9 * blocks)
    figure, axes = new_figure(columns, size, rows=2 * blocks, share_x=False)
    axes = np.reshape(axes, (blocks, 2, columns))
    rows = (without_spare(axes[:, row], d) for row in (0, 1))
    for i, (above, below) in enumerate(zip(*rows, strict=True)):
        _ranks(above, checked, i, sure)
        _coverage(below, checked, i, sure)
        if i % columns == 0:
            name_axes(above, y="replicates", size=8)
            name_axes(below, y="truths inside", size=8)
    _legend(figure, checked, sure)
    return figure


def _ranks(ax: Any, checked: Calibration, i: int, sure: float) -> None:
    counts, edges = checked.histogram()
    low, high = checked.histogram_band(sure)
    heights = counts[:, i]
    outside = (heights < low) | (heights > high)
    ax.axhspan(low, high, color=FAINT, alpha=0.25, lw=0)
    ax.axhline(len(checked.ranks) / len(counts), color=FAINT, lw=1.0)
    middles, width = 0.5 * (edges[1:] + edges[:-1]), 0.9 * np.diff(edges)
    ax.bar(middles, heights, width, color=np.where(outside, ACCENT, SECOND), alpha=0.7)
    name_axes(ax, title=checked.names[i])
    ax.set(xlim=(0, 1), ylim=(0, 1.15 * max(high, heights.max())))
    name_axes(ax, "rank of the truth", size=8)
    ax.locator_params(axis="y", nbins=4, integer=True)


def _coverage(ax: Any, checked: Calibration, i: int, sure: float) -> None:
    found = np.array([checked.coverage(level)[i] for level in LEVELS])
    low, high = np.array([checked.coverage_band(level, sure) for level in LEVELS]).T
    draw_expected_coverage(ax, LEVELS, low, high)
    ax.plot(LEVELS, found, color=SECOND, lw=1.6)
    ax.plot(LEVELS, _only(found, (found < low) | (found > high)), color=ACCENT, lw=1.6, marker=".", ms=3)
    name_axes(ax, "mass of the interval", size=8)


def _only(values: Array, where: Array) -> Array:
    """The values there, and gaps elsewhere."""
    return np.where(where, values, np.nan)


def _legend(figure: Any, checked: Calibration, sure: float) -> None:
    from matplotlib.patches import Patch

    said = f"{len(checked.ranks)} replicates around the {checked.around}"
    handles = [Patch(color=SECOND, alpha=0.7, lw=0, label=said)]
    handles += [Patch(color=FAINT, alpha=0.4, lw=0, label=f"{percent(sure)} by chance")]
    add_legend(figure, handles=handles, loc="outside upper right", ncols=2)

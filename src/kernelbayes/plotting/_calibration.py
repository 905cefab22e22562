"""Are posteriors right as often as they say? Rank histograms and coverage, with what chance allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import Array
from ..lfi import Calibration
from ._style import ACCENT, FAINT, INK, SECOND, new_figure

# Parameters beside each other, and levels at which coverage is drawn.
_IN_A_ROW = 4
_LEVELS = np.linspace(0.02, 0.98, 49)


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
    for i in range(blocks * columns):
        above, below = axes[i // columns, :, i % columns]
        if i >= d:
            figure.delaxes(above)
            figure.delaxes(below)
            continue
        _ranks(above, checked, i, sure)
        _coverage(below, checked, i, sure)
        if i % columns == 0:
            above.set_ylabel("replicates", fontsize=8)
            below.set_ylabel("truths inside", fontsize=8)
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
    ax.set_title(checked.names[i], fontsize=9, color=INK)
    ax.set(xlim=(0, 1), ylim=(0, 1.15 * max(high, heights.max())))
    ax.set_xlabel("rank of the truth", fontsize=8)
    ax.locator_params(axis="y", nbins=4, integer=True)


def _coverage(ax: Any, checked: Calibration, i: int, sure: float) -> None:
    found = np.array([checked.coverage(level)[i] for level in _LEVELS])
    low, high = np.array([checked.coverage_band(level, sure) for level in _LEVELS]).T
    ax.fill_between(_LEVELS, low, high, color=FAINT, alpha=0.25, lw=0)
    ax.plot([0, 1], [0, 1], color=FAINT, lw=1.0)
    ax.plot(_LEVELS, found, color=SECOND, lw=1.6)
    ax.plot(_LEVELS, _only(found, (found < low) | (found > high)), color=ACCENT, lw=1.6, marker=".", ms=3)
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    ax.set_xlabel("mass of the interval", fontsize=8)


def _only(values: Array, where: Array) -> Array:
    """The values there, and gaps elsewhere."""
    return np.where(where, values, np.nan)


def _legend(figure: Any, checked: Calibration, sure: float) -> None:
    from matplotlib.patches import Patch

    said = f"{len(checked.ranks)} replicates around the {checked.around}"
    handles = [Patch(color=SECOND, alpha=0.7, lw=0, label=said)]
    handles += [Patch(color=FAINT, alpha=0.4, lw=0, label=f"{100 * sure:g} % by chance")]
    figure.legend(handles=handles, frameon=False, fontsize=8, loc="outside upper right", ncols=2)

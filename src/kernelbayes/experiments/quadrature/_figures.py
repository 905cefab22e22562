"""Errors against n, and improvements against the dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._estimates import Estimate, mean
from .._figures import ACCENT, FAINT, GREEN, SECOND, few_ticks, panels
from .._study import Runs
from ._examples import EXAMPLES, METHODS, SWEEPS, title
from ._reading import (
    by_dimension,
    chosen_in,
    clear_at_largest,
    improvements,
    log_ratios,
)


def error_figure(runs: Runs) -> Any:
    """A panel for each example: medians against n, hollow where they cannot be told from rounding."""
    chosen = chosen_in(runs)
    rows = -(-len(chosen) // 4)
    figure, axes = panels(rows, 4, (13.0, 3.0 * rows + 0.6))
    for ax, (example, dimension) in zip(np.ravel(axes), chosen, strict=False):
        _errors(ax, runs.where(example=example, dimension=dimension))
        ax.set_title(title(example, dimension), fontsize=10)
    for ax in np.ravel(axes)[len(chosen) :]:
        ax.set_visible(False)
    for row in np.atleast_2d(axes):
        row[0].set_ylabel("worst-case error", fontsize=9)
    for ax in np.ravel(axes)[len(chosen) - 4 : len(chosen)]:
        ax.set_xlabel("n", fontsize=9)
    handles, labels = np.ravel(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=10)
    return figure


def _errors(ax: Any, cells: Runs) -> None:
    n, floor = cells.case("n"), np.median(cells["resolution"], axis=1)
    for name, (label, colour) in METHODS.items():
        middle = np.median(cells[name], axis=1)
        style = "--" if name in ("iid", "diagonal") else "-"
        ax.plot(
            n,
            middle,
            style,
            color=colour,
            lw=2.0 if name in ("leverage", "dpp") else 1.3,
            marker="o",
            ms=3.5,
            label=label,
        )
        hidden = middle <= floor
        ax.plot(n[hidden], middle[hidden], "o", color=colour, mfc="white", ms=6)
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(n, [str(size) for size in n])
    ax.minorticks_off()
    _readable(ax)


def _readable(ax: Any) -> None:
    """Numbers along a logarithmic axis: powers of ten alone would leave one that spans less than two of them without any."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = ax.get_ylim()
    if high < 100.0 * low:
        few_ticks(ax.yaxis)
    if high < 6.0 * low:
        ax.yaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def dimension_figure(runs: Runs) -> Any:
    """Improvements against the dimension, at the largest n at which all of them can be compared, and at the largest."""
    figure, axes = panels(1, len(SWEEPS), (11.0, 4.6))
    for ax, example in zip(axes, SWEEPS, strict=True):
        common, largest = by_dimension(runs, example), clear_at_largest(runs, example)
        sizes = [cells[0].cases[0]["n"] for cells in (common, largest) if cells]
        _improvements(ax, common, f"n = {sizes[0]}", "-")
        if sizes[-1] > sizes[0]:
            _improvements(ax, largest, f"n = {sizes[1]}", "--")
        ax.axhline(1.0, color=FAINT, lw=1)
        ax.set(yscale="log", xlabel="dimension", xticks=[cell.cases[0]["dimension"] for cell in common])
        _readable(ax)
        ax.set_title(EXAMPLES[example].label, fontsize=10)
        ax.legend(frameon=False, fontsize=9)
    axes[0].set_ylabel("improvement: ratio of errors")
    return figure


def _improvements(ax: Any, cells: Sequence[Runs], words: str, line: str) -> None:
    dimensions = [cell.cases[0]["dimension"] for cell in cells]
    series = {
        "1-2 to 3": (lambda cell: improvements(cell)[0], SECOND),
        "3 to 4": (lambda cell: improvements(cell)[1], ACCENT),
    }
    series["4 to greedy"] = (lambda cell: log_ratios(cell, "dpp", "greedy"), GREEN)
    for label, (logs, colour) in series.items():
        found = [mean(logs(cell)) for cell in cells]
        _bars(ax, dimensions, found, f"{label}, {words}", color=colour, ls=line)


def _bars(ax: Any, x: Sequence[int], logs: Sequence[Estimate], label: str, **style: Any) -> None:
    """Geometric means, with two standard errors up and down."""
    middle = np.exp([found.value for found in logs])
    low, high = (np.exp([found.value + side * 2.0 * found.error for found in logs]) for side in (-1.0, 1.0))
    off = [(middle - low).tolist(), (high - middle).tolist()]  # matplotlib 3.9 takes an array of one for a number
    ax.errorbar(x, middle, off, marker="o", ms=5, lw=1.6, capsize=3, label=label, **style)

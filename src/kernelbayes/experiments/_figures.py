"""Figures of experiments, in the library's plain style."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import plotting
from .._typing import Array
from ._study import Runs

INK, ACCENT, SECOND, FAINT = plotting.INK, plotting.ACCENT, plotting.SECOND, plotting.FAINT
GREEN, GOLD, PURPLE = plotting.GREEN, plotting.GOLD, plotting.PURPLE


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure with axes in a grid: one of them, or an array as `plt.subplots` gives it."""
    return plotting.new_figure(columns, size, rows=rows, share_x=False)


def curves(ax: Any, x: Array, runs: Runs, series: Mapping[str, tuple[str, str]], **style: Any) -> None:
    """Means against x on logarithmic axes, with a standard error up and down: name -> (label, colour)."""
    order = np.argsort(x)
    style = {"marker": "o", "ms": 4, "lw": 1.4, "elinewidth": 0.8, **style}
    for name, (label, colour) in series.items():
        ax.errorbar(
            x[order],
            runs.mean(name)[order],
            runs.standard_error(name)[order],
            color=colour,
            label=label,
            **style,
        )
    ax.set(xscale="log", yscale="log")


def few_ticks(axis: Any) -> None:
    """Plain numbers at 1, 2 and 5 of each decade of a logarithmic axis: readable on one that spans less than two."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())

"""The plain style that all figures share, without touching Matplotlib's global settings."""

from __future__ import annotations

from typing import Any

import numpy as np

INK, ACCENT, SECOND, FAINT = "#1b2a41", "#d1495b", "#2e86ab", "#9aa5b1"


def new_figure(
    columns: int, size: tuple[float, float], *, rows: int = 1, share_x: bool | None = None
) -> tuple[Any, Any]:
    """A figure with axes in a row, in the library's plain style, without touching global settings.

    Axes in several rows share the scale of x, unless `share_x` is False.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, sharex=rows > 1 if share_x is None else share_x)
    for ax in np.ravel(axes):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    return figure, axes


def first_of_each(ax: Any) -> tuple[list[Any], list[str]]:
    """Handles and labels for a legend, each label once."""
    handles, labels = ax.get_legend_handles_labels()
    first = dict(zip(reversed(labels), reversed(handles), strict=True))
    return list(first.values())[::-1], list(first)[::-1]

"""The plain style that all figures share, without touching Matplotlib's global settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

INK, ACCENT, SECOND, FAINT = "#1b2a41", "#d1495b", "#2e86ab", "#9aa5b1"
# For more lines than these.
GREEN, GOLD, PURPLE = "#3a7d44", "#e09f3e", "#7b4b94"
# Steps up to which each is a dot.
_DOTTED = 60


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


def without_spare(axes: Any, count: int) -> Any:
    """The first axes (count,) of a grid; the others are taken out of their figure."""
    axes = np.ravel(axes)
    for spare in axes[count:]:
        spare.remove()
    return axes[:count]


def name_axes(
    ax: Any, x: str | None = None, y: str | None = None, title: str | None = None, *, size: float = 9, colour: str = INK
) -> None:
    """Labels and a title, as small as all of the library's; what is None stays as it is."""
    if x is not None:
        ax.set_xlabel(x, fontsize=size)
    if y is not None:
        ax.set_ylabel(y, fontsize=size)
    if title is not None:
        ax.set_title(title, fontsize=size, color=colour)


def add_legend(owner: Any, *given: Any, **look: Any) -> None:
    """A legend without a frame, of axes or of a figure."""
    owner.legend(*given, frameon=False, fontsize=8, **look)


def first_of_each(ax: Any) -> tuple[list[Any], list[str]]:
    """Handles and labels for a legend, each label once."""
    handles, labels = ax.get_legend_handles_labels()
    first = dict(zip(reversed(labels), reversed(handles), strict=True))
    return list(first.values())[::-1], list(first)[::-1]


def dots(steps: int) -> dict[str, Any]:
    """Markers of a line where its steps are few enough to be told apart."""
    return {"marker": "o", "ms": 3.0} if steps <= _DOTTED else {}


def ranked_bars(names: Sequence[str], values: Sequence[float], most: int, label: str, title: str) -> tuple[Any, Any]:
    """Bars to the right, the first ones on top, with their names; the title says where some are left out."""
    shown = min(len(names), most)
    figure, ax = new_figure(1, (6.4, 1.1 + 0.27 * shown))
    places = np.arange(shown)
    ax.barh(places, values[:shown], height=0.7, color=SECOND)
    ax.set(yticks=places, yticklabels=names[:shown], ylim=(shown - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    some = f" (the first {shown} of {len(names)})" if shown < len(names) else ""
    name_axes(ax, label, title=title + some)
    return figure, ax

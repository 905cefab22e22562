"""How a network learned: fit and complexity on batches, and what it did on points held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Array
from ._style import ACCENT, FAINT, INK, SECOND, add_legend, dots, name_axes, new_figure


def learning(curves: Mapping[str, Array], best_epoch: int) -> Any:
    """Curves of a training, epoch by epoch, with a line at the epoch that was kept.

    Args:
        curves: "objective", "fit", "complexity", "validation_loss" and "validation_accuracy"; the last two may be empty.
        best_epoch: counted from 1.
    """
    watched = len(curves["validation_loss"]) > 0
    figure, axes = new_figure(3 if watched else 2, (9.6 if watched else 6.6, 3.0))
    _draw(axes[0], curves["objective"], "objective", INK)
    _draw(axes[0], curves["fit"], "fit", SECOND)
    _draw(axes[1], curves["complexity"], "complexity", SECOND)
    if watched:
        _draw(axes[2], curves["validation_loss"], "squared error, held out", INK)
        _draw(axes[2], 1.0 - curves["validation_accuracy"], "errors, held out", SECOND)
    for ax in axes:
        ax.axvline(best_epoch, color=ACCENT, lw=1.0, ls="--", label=f"epoch {best_epoch}, kept")
        name_axes(ax, "epoch")
        add_legend(ax)
        ax.grid(color=FAINT, alpha=0.2, lw=0.6)
    name_axes(axes[0], y="nats")
    return figure


def _draw(ax: Any, values: Array, label: str, colour: str) -> None:
    epochs = 1 + np.arange(len(values))
    ax.plot(epochs, values, color=colour, lw=1.4, label=label, **dots(len(values)))
    positive = values[values > 0]
    if len(positive) == len(values) and values.max() > 30 * values.min():
        ax.set_yscale("log")

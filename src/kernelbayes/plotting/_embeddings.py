"""Embeddings: conditional densities over a plane, posteriors of one quantity side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._summary import percent
from .._typing import Array
from ..conditional import ConditionalEmbedding
from ..embeddings import MeanEmbedding
from ._style import ACCENT, FAINT, INK, SECOND, add_legend, first_of_each, name_axes, new_figure


def conditional_density(
    model: ConditionalEmbedding,
    slices: tuple[float, ...],
    *,
    truth: Callable[[float, Array], Array] | None = None,
    bandwidth: float | None = None,
    level: float = 0.9,
) -> Any:
    """A conditional embedding of one y on one x: its density over the plane, and slices with their intervals.

    Args:
        model: fitted with one column of x and one of y.
        slices: values of x to look at.
        truth: density of y at one x, if it is known.
        bandwidth: of the density; see `MeanEmbedding.density`.
        level: mass of the intervals drawn.
    """
    if model.X_.shape[1] != 1 or model.Y_.shape[1] != 1:
        raise ValueError("this figure needs one column of x and one of y")
    x, y = model.X_[:, 0], model.Y_[:, 0]
    across, up = np.linspace(x.min(), x.max(), 160), np.linspace(y.min(), y.max(), 240)
    embeddings = [model.embed([v]) for v in across]
    density = np.stack([e.density(up, bandwidth) for e in embeddings], axis=1)
    bounds = np.array([e.interval(level)[:, 0] for e in embeddings])
    figure, (plane, side) = new_figure(2, (10.0, 4.2))
    plane.pcolormesh(
        across, up, density, cmap="Blues", shading="auto", vmax=np.quantile(density, 0.995), rasterized=True
    )
    plane.scatter(x, y, s=3, color=INK, alpha=0.35, linewidths=0)
    plane.plot(across, model.predict(across[:, None]), color=ACCENT, lw=1.8, label="mean")
    plane.plot(across, bounds, color=ACCENT, lw=1.0, ls="--", label=[f"{percent(level)} interval", None])
    name_axes(plane, "x", "y", "p(y | x) from pairs: density, mean and interval")
    add_legend(plane, loc="upper left")
    base = 0.0
    for v in slices:
        curves = [model.embed([v]).density(up, bandwidth), *([truth(v, up)] if truth else [])]
        _slice(side, up, base, curves, model.embed([v]).interval(level)[:, 0])
        side.text(up[0], base, f"x = {v:g}  ", ha="right", va="bottom", fontsize=8, color=INK)
        plane.axvline(v, color=FAINT, lw=0.8, ls=":")
        base += 1.15 * np.max(curves)
    name_axes(side, "y", title="Slices, with the interval as a bar")
    side.set_yticks([])
    side.spines["left"].set_visible(False)
    side.plot([], [], color=ACCENT, lw=3, label=f"{percent(level)} interval")
    add_legend(side, *first_of_each(side), loc="lower right", bbox_to_anchor=(1.0, 0.05))
    return figure


def posterior_densities(
    posteriors: Sequence[MeanEmbedding],
    grid: Array,
    titles: Sequence[str],
    *,
    prior: Array | None = None,
    exact: Sequence[Array] | None = None,
    level: float = 0.9,
    xlabel: str = "z",
) -> Any:
    """Posteriors of one quantity side by side: density and interval, beside the prior and the exact density if known.

    Args:
        posteriors: embeddings on one column.
        grid: where densities are drawn (g,).
        titles: one for each.
        prior: density of the prior on the grid.
        exact: exact posterior densities on the grid, one for each.
        level: mass of the interval drawn.
        xlabel: what the quantity is called.
    """
    figure, axes = new_figure(len(posteriors), (3.5 * len(posteriors), 3.2))
    for i, (ax, posterior) in enumerate(zip(np.ravel(axes), posteriors, strict=True)):
        if prior is not None:
            ax.plot(grid, prior, color=FAINT, lw=1.4, ls="--", label="prior")
        if exact is not None:
            ax.plot(grid, exact[i], color=INK, lw=1.4, label="exact posterior")
        ax.fill_between(grid, posterior.density(grid), color=SECOND, alpha=0.4, label="kernel posterior")
        ax.plot(posterior.interval(level)[:, 0], [0, 0], color=ACCENT, lw=3, label=f"its {percent(level)} interval")
        name_axes(ax, xlabel, title=titles[i])
        ax.set(yticks=[], ylim=(-0.02, None))
        ax.spines["left"].set_visible(False)
    add_legend(np.ravel(axes)[-1], loc="upper left")
    return figure


def _slice(ax: Any, grid: Array, base: float, curves: list[Array], interval: Array) -> None:
    ax.fill_between(grid, base, base + curves[0], color=SECOND, alpha=0.35, label="estimated")
    for truth in curves[1:]:
        ax.plot(grid, base + truth, color=INK, lw=1.2, label="true")
    ax.plot(interval, [base, base], color=ACCENT, lw=3)

"""Figures. Matplotlib is imported on use, and so is this module: by `Track.plot`, the demos and the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._typing import Array
from .conditional import ConditionalEmbedding
from .embeddings import MeanEmbedding
from .filters import Track

INK, ACCENT, SECOND, FAINT = "#1b2a41", "#d1495b", "#2e86ab", "#9aa5b1"


def new_figure(columns: int, size: tuple[float, float], *, rows: int = 1) -> tuple[Any, Any]:
    """A figure with axes in a row, in the library's plain style, without touching global settings.

    Axes in several rows share the scale of x.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, sharex=rows > 1)
    for ax in np.ravel(axes):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=8)
    return figure, axes


def conditional_density(
    model: ConditionalEmbedding,
    slices: tuple[float, ...],
    *,
    truth: Callable[[float, Array], Array] | None = None,
    bandwidth: float | None = None,
    level: float = 0.8,
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
    plane.plot(across, bounds, color=ACCENT, lw=1.0, ls="--", label=[f"{level:.0%} interval", None])
    plane.set(xlabel="x", ylabel="y", title="p(y | x) from pairs: density, mean and interval")
    plane.legend(frameon=False, fontsize=8, loc="upper left")
    base = 0.0
    for v in slices:
        curves = [model.embed([v]).density(up, bandwidth), *([truth(v, up)] if truth else [])]
        _slice(side, up, base, curves, model.embed([v]).interval(level)[:, 0])
        side.text(up[0], base, f"x = {v:g}  ", ha="right", va="bottom", fontsize=8, color=INK)
        plane.axvline(v, color=FAINT, lw=0.8, ls=":")
        base += 1.15 * np.max(curves)
    side.set(xlabel="y", title="Slices, with the interval as a bar")
    side.set_yticks([])
    side.spines["left"].set_visible(False)
    side.plot([], [], color=ACCENT, lw=3, label=f"{level:.0%} interval")
    side.legend(*_first_of_each(side), frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 0.05))
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
        ax.plot(posterior.interval(level)[:, 0], [0, 0], color=ACCENT, lw=3, label=f"its {level:.0%} interval")
        ax.set(xlabel=xlabel, title=titles[i], yticks=[], ylim=(-0.02, None))
        ax.spines["left"].set_visible(False)
    np.ravel(axes)[-1].legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def track(track: Track, truth: Array | None = None, *, level: float = 0.9) -> Any:
    """A track over time, one panel for each column: mean, interval, steps without an observation, and the truth if known.

    Args:
        track: on vectors.
        truth: true states (t, d); NaN where they are not known.
        level: mass of the interval drawn.
    """
    mean, (lower, upper) = track.mean, track.interval(level)
    d = mean.shape[1]
    figure, axes = new_figure(1, (9.0, 1.0 + (2.4 if d == 1 else 1.7 if d < 4 else 1.3) * d), rows=d)
    axes = np.ravel(axes)
    x, label = _time_axis(axes[-1], track.times)
    fine = len(track) > 300
    gaps = _gaps(x, track.diagnostics.observed)
    for j, ax in enumerate(axes):
        if gaps:
            across = ax.get_xaxis_transform()
            ax.broken_barh(gaps, (0, 1), transform=across, color=FAINT, alpha=0.18, lw=0, label="no observation")
        ax.fill_between(x, lower[:, j], upper[:, j], color=SECOND, alpha=0.3, lw=0, label=f"{level:.0%} interval")
        ax.plot(x, mean[:, j], color=SECOND, lw=1.0 if fine else 1.6, label="mean", **_dots(len(track)))
        if truth is not None:
            ax.plot(x, truth[:, j], color=INK, lw=0.6 if fine else 0.9, label="truth")
        ax.set_ylabel(track.names[j], fontsize=9)
        ax.margins(x=0.01)
    axes[-1].set_xlabel(label, fontsize=9)
    figure.align_ylabels(axes)
    figure.legend(*_first_of_each(axes[0]), frameon=False, fontsize=8, loc="outside upper right", ncols=4)
    return figure


def track_plane(track: Track, truth: Array | None = None, *, level: float = 0.9) -> Any:
    """The path of a track on two columns in their plane, with the truth if known.

    Ellipses, at no more than some 25 of the steps, would hold `level` of a normal distribution with the same covariance.
    """
    if len(track.names) != 2:
        raise ValueError(f"a path in the plane needs two columns, this track has {len(track.names)}")
    mean, missing = track.mean, ~track.diagnostics.observed
    figure, ax = new_figure(1, (6.4, 5.6))
    for patch in _ellipses(track, level):
        ax.add_patch(patch)
    if truth is not None:
        ax.plot(*truth.T, color=INK, lw=0.9, label="truth")
    ax.plot(*mean.T, color=SECOND, lw=1.0 if len(track) > 300 else 1.6, label="mean", **_dots(len(track)))
    ax.plot(*mean[missing].T, ls="none", marker="o", ms=3.5, mfc="white", color=SECOND, label="no observation")
    ax.plot(*mean[0], ls="none", marker="o", ms=7, color=ACCENT, label="start")
    ax.plot(*mean[-1], ls="none", marker="s", ms=7, color=ACCENT, label="end")
    if 0.25 < np.ptp(mean[:, 0]) / max(np.ptp(mean[:, 1]), 1e-300) < 4.0:
        ax.set_aspect("equal", adjustable="box")
    ax.set_xlabel(track.names[0], fontsize=9)
    ax.set_ylabel(track.names[1], fontsize=9)
    handles, labels = _first_of_each(ax)
    kept = [i for i, name in enumerate(labels) if name != "no observation" or missing.any()]
    shown = ([handles[i] for i in kept], [labels[i] for i in kept])
    figure.legend(*shown, frameon=False, fontsize=8, loc="outside upper right", ncols=6)
    return figure


def _time_axis(ax: Any, times: Array) -> tuple[Array, str]:
    """Positions of the steps and a label, with the axis set to show dates or words where the times are such."""
    from matplotlib import dates, ticker

    if times.dtype.kind == "M":
        ax.xaxis_date()
        return dates.date2num(times), "time"
    if times.dtype.kind != "U":
        if times.dtype.kind in "iu":
            ax.xaxis.set_major_locator(ticker.MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        return times.astype(np.float64), "step" if np.array_equal(times, np.arange(len(times))) else "time"
    words = [*map(str, times)]
    ax.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    ax.xaxis.set_major_formatter(
        ticker.FuncFormatter(lambda x, _: words[int(x)] if x == int(x) and 0 <= x < len(words) else "")
    )
    return np.arange(len(times), dtype=np.float64), "time"


def _gaps(x: Array, observed: Array) -> list[tuple[float, float]]:
    """Start and width of the stretches without an observation, reaching half way to the neighbours."""
    if len(x) == 1:
        return [] if observed[0] else [(x[0] - 0.5, 1.0)]
    middle = 0.5 * (x[1:] + x[:-1])
    edges = np.concatenate([[1.5 * x[0] - 0.5 * x[1]], middle, [1.5 * x[-1] - 0.5 * x[-2]]])
    change = np.diff(np.concatenate([[0], ~observed, [0]]).astype(int))
    starts, ends = edges[change == 1], edges[change == -1]
    return [(float(a), float(b - a)) for a, b in zip(starts, ends, strict=True)]


def _dots(steps: int) -> dict[str, Any]:
    """Markers where steps are few enough to be told apart."""
    return {"marker": "o", "ms": 3.0} if steps <= 60 else {}


def _ellipses(track: Track, level: float) -> list[Any]:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Ellipse

    size = 2.0 * np.sqrt(-2.0 * np.log(1.0 - level))
    faint = {"facecolor": (*to_rgb(SECOND), 0.06), "edgecolor": (*to_rgb(SECOND), 0.35), "lw": 0.5}
    few = track[:: max(1, -(-len(track) // 25))]
    out = []
    for centre, deviation, cov in zip(few.mean, few.std, few.cov(), strict=True):
        (small, large), axes = np.linalg.eigh(np.outer(deviation, deviation) * _correlation(cov))
        along = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
        widths = size * np.sqrt(np.maximum([large, small], 0.0))
        out.append(Ellipse(centre, *widths, angle=along, label=f"{level:.0%} ellipse", **faint))
    return out


def _correlation(cov: Array) -> Array:
    """The correlation matrix of two columns; none is drawn where signed weights leave no proper one."""
    product = cov[0, 0] * cov[1, 1]
    proper = cov[0, 0] > 0 and product > cov[0, 1] ** 2
    r = cov[0, 1] / np.sqrt(product) if proper else 0.0
    return np.array([[1.0, r], [r, 1.0]])


def _slice(ax: Any, grid: Array, base: float, curves: list[Array], interval: Array) -> None:
    ax.fill_between(grid, base, base + curves[0], color=SECOND, alpha=0.35, label="estimated")
    for truth in curves[1:]:
        ax.plot(grid, base + truth, color=INK, lw=1.2, label="true")
    ax.plot(interval, [base, base], color=ACCENT, lw=3)


def _first_of_each(ax: Any) -> tuple[list[Any], list[str]]:
    handles, labels = ax.get_legend_handles_labels()
    first = dict(zip(reversed(labels), reversed(handles), strict=True))
    return list(first.values())[::-1], list(first)[::-1]

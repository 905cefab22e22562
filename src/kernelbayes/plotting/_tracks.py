"""Tracks: states over time, and their path in a plane."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._summary import percent
from .._typing import Array
from ..filters import Track
from ._style import ACCENT, FAINT, INK, SECOND, add_legend, dots, first_of_each, name_axes, new_figure


def track(track: Track, truth: Array | None = None, *, level: float = 0.9) -> Any:
    """A track over time, one panel for each column: mean, interval, steps without an observation, and the truth if known.

    Args:
        track: on vectors.
        truth: true states (t, d); NaN where they are not known.
        level: mass of the interval drawn.
    """
    mean, (lower, upper) = track.mean(), track.interval(level)
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
        ax.fill_between(x, lower[:, j], upper[:, j], color=SECOND, alpha=0.3, lw=0, label=f"{percent(level)} interval")
        ax.plot(x, mean[:, j], color=SECOND, lw=1.0 if fine else 1.6, label="mean", **dots(len(track)))
        if truth is not None:
            ax.plot(x, truth[:, j], color=INK, lw=0.6 if fine else 0.9, label="truth")
        name_axes(ax, y=track.names[j])
        ax.margins(x=0.01)
    name_axes(axes[-1], label)
    figure.align_ylabels(axes)
    add_legend(figure, *first_of_each(axes[0]), loc="outside upper right", ncols=4)
    return figure


def track_plane(track: Track, truth: Array | None = None, *, level: float = 0.9) -> Any:
    """The path of a track on two columns in their plane, with the truth if known.

    Ellipses, at no more than some 25 of the steps, would hold `level` of a normal distribution with the same covariance.
    """
    if len(track.names) != 2:
        raise ValueError(f"a path in the plane needs two columns, this track has {len(track.names)}")
    mean, missing = track.mean(), ~track.diagnostics.observed
    figure, ax = new_figure(1, (6.4, 5.6))
    for patch in _ellipses(track, level):
        ax.add_patch(patch)
    if truth is not None:
        ax.plot(*truth.T, color=INK, lw=0.9, label="truth")
    ax.plot(*mean.T, color=SECOND, lw=1.0 if len(track) > 300 else 1.6, label="mean", **dots(len(track)))
    ax.plot(*mean[missing].T, ls="none", marker="o", ms=3.5, mfc="white", color=SECOND, label="no observation")
    ax.plot(*mean[0], ls="none", marker="o", ms=7, color=ACCENT, label="start")
    ax.plot(*mean[-1], ls="none", marker="s", ms=7, color=ACCENT, label="end")
    if 0.25 < np.ptp(mean[:, 0]) / max(np.ptp(mean[:, 1]), 1e-300) < 4.0:
        ax.set_aspect("equal", adjustable="box")
    name_axes(ax, *track.names)
    handles, labels = first_of_each(ax)
    kept = [i for i, name in enumerate(labels) if name != "no observation" or missing.any()]
    shown = ([handles[i] for i in kept], [labels[i] for i in kept])
    add_legend(figure, *shown, loc="outside upper right", ncols=6)
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


def _ellipses(track: Track, level: float) -> list[Any]:
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Ellipse

    size = 2.0 * np.sqrt(-2.0 * np.log(1.0 - level))
    faint = {"facecolor": (*to_rgb(SECOND), 0.06), "edgecolor": (*to_rgb(SECOND), 0.35), "lw": 0.5}
    few = track[:: max(1, -(-len(track) // 25))]
    out = []
    for centre, cov in zip(few.mean(), few.cov(), strict=True):
        (small, large), axes = np.linalg.eigh(cov)
        along = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
        widths = size * np.sqrt(np.maximum([large, small], 0.0))
        out.append(Ellipse(centre, *widths, angle=along, label=f"{percent(level)} ellipse", **faint))
    return out

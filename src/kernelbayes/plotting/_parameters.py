"""Posteriors of a simulator's parameters: all pairs, the check against the observation, which statistics matter."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._summary import percent
from .._typing import Array
from ..lfi import ParameterPosterior
from ..lfi._predictive import PredictiveCheck
from ._marginals import Marginal, heights, marginals, plane
from ._style import ACCENT, FAINT, INK, SECOND, add_legend, name_axes, new_figure, ranked_bars, without_spare

# More parameters than this are shown one by one, not in pairs.
_MOST_PAIRED = 8
# Draws shown as dots, statistics shown as bars, and panels in a row.
_DOTS, _MOST_BARS, _IN_A_ROW = 800, 30, 4


def pairs(posterior: ParameterPosterior, truth: Array | None = None, *, prior: bool = True, level: float = 0.9) -> Any:
    """All pairs of parameters: density, interval and prior of each on the diagonal, draws and contours below it.

    Above each density stand the median and the interval in numbers.

    A positive parameter whose draws span orders of magnitude has a logarithmic axis, and its density is that of the
    logarithm. With more than eight parameters only the diagonal is drawn.

    Args:
        posterior: from `kb.infer`.
        truth: true parameters (d,) if they are known.
        prior: whether to show the prior.
        level: mass of the intervals, and of the larger contours.
    """
    shown = marginals(posterior, truth)
    intervals = posterior.interval(level).T
    d = len(shown)
    if d > _MOST_PAIRED:
        return _one_by_one(shown, intervals, truth, prior, level)
    side = {1: 4.2, 2: 2.8, 3: 2.3, 4: 1.9, 5: 1.9}.get(d, 1.5)
    figure, axes = new_figure(d, (max(side * d, 4.6), side * d * 0.92), rows=d, share_x=False)
    axes = np.reshape(axes, (d, d))
    for i, j in np.ndindex(d, d):
        if j > i:
            figure.delaxes(axes[i, j])
        elif i == j:
            _diagonal(axes[i, i], shown[i], intervals[i], None if truth is None else float(truth[i]), prior)
        else:
            _pair(axes[i, j], shown[j], shown[i], None if truth is None else truth[[j, i]], level)
        if j <= i:
            _label(axes[i, j], shown[j], shown[i], bottom=i == d - 1, left=j == 0 < i, size=9 if d <= 5 else 8)
    _legend(figure, d > 1, prior, truth is not None, level, inside=d > 1)
    return figure


def _one_by_one(shown: list[Marginal], intervals: Array, truth: Array | None, prior: bool, level: float) -> Any:
    rows = -(-len(shown) // _IN_A_ROW)
    figure, axes = new_figure(_IN_A_ROW, (9.0, 0.4 + 1.7 * rows), rows=rows, share_x=False)
    for i, ax in enumerate(without_spare(axes, len(shown))):
        _diagonal(ax, shown[i], intervals[i], None if truth is None else float(truth[i]), prior)
        _label(ax, shown[i], shown[i], bottom=True, left=False, size=8)
    _legend(figure, False, prior, truth is not None, level, inside=False)
    return figure


def _diagonal(ax: Any, own: Marginal, interval: Array, truth: float | None, prior: bool) -> None:
    grid, density = own.grid, own.density()
    tallest = float(density.max())
    if own.whole:
        ax.bar(grid, density, width=0.8, color=SECOND, alpha=0.45)
    else:
        ax.fill_between(own.shown(grid), density, color=SECOND, alpha=0.4, lw=0)
    if prior:
        before = own.prior(grid)
        style = {"drawstyle": "steps-mid"} if own.whole else {}
        ax.plot(own.shown(grid), before, color=FAINT, lw=1.4, ls="--", **style)
        # a prior may be infinite somewhere; it must not flatten the posterior
        tallest = max(tallest, min(1.5 * tallest, float(before[np.isfinite(before)].max(initial=0.0))))
    if truth is not None:
        ax.axvline(truth, color=INK, lw=1.0)
    ax.plot(interval, [0, 0], color=ACCENT, lw=3, solid_capstyle="butt", clip_on=False)
    ax.set(yticks=[], ylim=(0, 1.08 * tallest))
    ax.spines["left"].set_visible(False)
    middle = float(np.median(own.shown(own.values)))
    title = ax.set_title(f"{middle:.3g} [{interval[0]:.3g}, {interval[1]:.3g}]", fontsize=7.5, color=INK)
    title.set_in_layout(False)  # a long one must not make its panel narrower than the others


def _pair(ax: Any, across: Marginal, up: Marginal, truth: Array | None, level: float) -> None:
    some = slice(None, _DOTS)  # draws come in no order
    x, y = across.shown(across.values[some]), up.shown(up.values[some])
    ax.plot(x, y, ls="none", marker="o", ms=1.6, mew=0, color=INK, alpha=0.18, rasterized=True)
    density = plane(across, up)
    outer, inner = heights(density, (level, 0.5))
    where = across.shown(across.grid), up.shown(up.grid)
    top = float(density.max())
    if min(density.shape) > 1 and 0 < outer < inner < top:
        ax.contourf(*where, density, levels=[outer, inner, top], colors=[SECOND, SECOND], alpha=0.3)
        ax.contour(*where, density, levels=[outer, inner], colors=[SECOND], linewidths=0.9)
    if truth is not None:
        ax.axvline(truth[0], color=INK, lw=0.6, alpha=0.5)
        ax.axhline(truth[1], color=INK, lw=0.6, alpha=0.5)
        ax.plot(*truth, ls="none", marker="x", ms=7, mew=1.8, color=ACCENT)


def _label(ax: Any, across: Marginal, up: Marginal, *, bottom: bool, left: bool, size: int) -> None:
    """Scales and limits; ticks and names on the outer axes only."""
    from matplotlib import ticker

    for axis, own, set_limits in ((ax.xaxis, across, ax.set_xlim), (ax.yaxis, up, ax.set_ylim)):
        if axis is ax.yaxis and across is up:
            continue  # a density
        if own.log:
            (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log")
            axis.set_major_locator(ticker.LogLocator(numticks=4))
            axis.set_minor_locator(ticker.NullLocator())
        else:
            axis.set_major_locator(ticker.MaxNLocator(3, integer=own.whole, steps=[1, 2, 5, 10]))
            axis.get_major_formatter().set_powerlimits((-3, 5))
        set_limits(*own.shown(np.array(own.limits)))
    ax.tick_params(labelbottom=bottom, labelleft=left, labelsize=size - 1.5)
    for offset in (ax.xaxis.get_offset_text(), ax.yaxis.get_offset_text()):
        offset.set_fontsize(size - 2)
        offset.set_visible(bottom if offset is ax.xaxis.get_offset_text() else left)
    name_axes(ax, across.name if bottom else None, up.name if left else None, size=size)


def _legend(figure: Any, paired: bool, prior: bool, truth: bool, level: float, *, inside: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    contours = f"; contours 50 and {percent(level)}" if paired else ""
    handles: list[Any] = [Patch(color=SECOND, alpha=0.4, lw=0, label=f"posterior{contours}")]
    handles += [Line2D([], [], color=FAINT, lw=1.4, ls="--", label="prior")] if prior else []
    handles += [Line2D([], [], color=ACCENT, lw=3, label=f"{percent(level)} interval")]
    handles += [Line2D([], [], color=INK, lw=1.0, label="truth")] if truth else []
    place = {"loc": "upper right"} if inside else {"loc": "outside upper right", "ncols": 4}
    add_legend(figure, handles=handles, **place)


# ------------------------------------------------------------------------------------------------------ predictive


def predictive(check: PredictiveCheck, *, level: float = 0.9) -> Any:
    """Simulations from the posterior beside the observation: a histogram for each statistic, or bands along a series."""
    return _bands(check, level) if check.is_series else _histograms(check)


def _histograms(check: PredictiveCheck) -> Any:
    names, observed, values, before = check.statistics, check.observed.reshape(-1), check.values, check.before_values
    columns = min(_IN_A_ROW, len(names))
    rows = -(-len(names) // columns)
    figure, axes = new_figure(columns, (max(2.5 * columns, 5.8), 0.5 + 1.9 * rows), rows=rows, share_x=False)
    for j, ax in enumerate(without_spare(axes, len(names))):
        edges = _edges(values[:, j], observed[j])
        heights = [np.histogram(part, edges)[0] / (len(part) * np.diff(edges)) for part in (values[:, j], before[:, j])]
        ax.stairs(heights[0], edges, fill=True, color=SECOND, alpha=0.45)
        ax.stairs(heights[1], edges, color=FAINT, lw=1.2)
        ax.axvline(observed[j], color=ACCENT, lw=1.6)
        far = j in check.far
        name_axes(ax, title=f"{names[j]}{'  (far)' if far else ''}", colour=ACCENT if far else INK)
        ax.set(yticks=[], ylim=(0, 1.08 * heights[0].max()))
        ax.spines["left"].set_visible(False)
        ax.locator_params(axis="x", nbins=4)
    _predictive_legend(figure, "")
    return figure


def _edges(values: Array, observed: float) -> Array:
    """Edges of bins that hold all simulations and the observation; centred on whole numbers for small counts."""
    low, high = min(values.min(), observed), max(values.max(), observed)
    if (values == np.round(values)).all() and high - low <= 40:
        return np.arange(np.floor(low) - 0.5, np.ceil(high) + 1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    bins = np.clip(len(values) ** 0.5 * (high - low) / max(float(np.ptp(values)), 1e-300), 8, 80)
    return np.linspace(low - room, high + room, int(bins) + 1)


def _bands(check: PredictiveCheck, level: float) -> Any:
    """A panel for each column of a series, or one for all values."""
    observed = check.observed
    split = observed.ndim == 2 and observed.shape[1] <= 6 < observed.shape[0]
    shape = observed.shape if split else (observed.size, 1)
    truth, simulated, before = (part.reshape(-1, *shape) for part in (observed, check.values, check.before_values))
    figure, axes = new_figure(1, (9.0, 0.9 + (2.6 if shape[1] == 1 else 1.7) * shape[1]), rows=shape[1])
    x = np.arange(shape[0])
    edge = 0.5 - level / 2
    for j, ax in enumerate(np.ravel(axes)):
        earlier = np.quantile(before[:, :, j], [edge, 1 - edge], axis=0)
        low, lower, upper, high = np.quantile(simulated[:, :, j], [edge, 0.25, 0.75, 1 - edge], axis=0)
        ax.fill_between(x, *earlier, color=FAINT, alpha=0.2, lw=0)
        ax.fill_between(x, low, high, color=SECOND, alpha=0.25, lw=0)
        ax.fill_between(x, lower, upper, color=SECOND, alpha=0.35, lw=0)
        ax.plot(x, truth[0, :, j], color=ACCENT, lw=1.2)
        bottom, top = min(low.min(), truth[0, :, j].min()), max(high.max(), truth[0, :, j].max())
        room = 0.08 * (top - bottom) or 1.0
        ax.set(ylim=(bottom - room, top + room))
        ax.margins(x=0.01)
    name_axes(np.ravel(axes)[-1], "index" if check.ordered else "rank among the values")
    _predictive_legend(figure, f": 50 % and {percent(level)}")
    return figure


def _predictive_legend(figure: Any, shares: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    earlier = Patch(color=FAINT, alpha=0.3, lw=0) if shares else Line2D([], [], color=FAINT, lw=1.2)
    handles = [Patch(color=SECOND, alpha=0.45, lw=0), earlier, Line2D([], [], color=ACCENT, lw=1.6)]
    names = [f"simulated from the posterior{shares}", "simulations learned from", "observed"]
    add_legend(figure, handles, names, loc="outside upper right", ncols=3)


# ------------------------------------------------------------------------------------------------------- relevance


def relevance(posterior: ParameterPosterior) -> Any:
    """Which statistics the posterior listens to: their spread over the simulations by the scale of comparison, as bars.

    Those that do not reach the line at one play no part. See `ParameterPosterior.relevance`.
    """
    table = posterior.relevance()
    known = [name for name in table if np.isfinite(table[name]["relevance"])]
    if not known:
        raise ValueError("all outputs were compared on one scale: there is no relevance of single statistics")
    words = "spread over the simulations / scale of comparison", "Relevance of the statistics"
    figure, ax = ranked_bars(known, [table[name]["relevance"] for name in known], _MOST_BARS, *words)
    for bar in ax.patches:
        bar.set_color(SECOND if bar.get_width() > 1 else FAINT)
    ax.axvline(1.0, color=ACCENT, lw=1.2, label="below it, a statistic plays no part")
    add_legend(figure, loc="outside lower right")  # wherever the bars end, it lies over none
    return figure

"""Quadrature: the nodes of a rule with their weights, and an integral as it became known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .. import _check
from .._summary import percent
from .._typing import Array
from ..integration import Integral, QuadratureRule, QuadratureWarning
from ._style import ACCENT, FAINT, INK, SECOND, add_legend, first_of_each, name_axes, new_figure

# Draws that show where the distribution is, how many of them as dots, and bins of a histogram.
_DRAWS, _DOTS, _BINS = 20_000, 1_500, 60
# Quantiles between which nearly all draws lie: an axis need not reach the others.
_MOST_DRAWS = (0.0005, 0.9995)
# Area of the largest mark, in points squared, and the smallest share of it.
_LARGEST, _SMALLEST = 140.0, 0.02
# Area of a mark on a line, at least: all values are to be seen.
_VISIBLE = 5.0
# Weights whose sizes sum to more than this carry errors of values into the integral.
_LARGE = 100.0
# Integrals that get a row each, and how far their bands reach in standard deviations.
_MOST_INTEGRALS, _REACH = 6, 1.96


# ----------------------------------------------------------------------------------------------------------- nodes


def quadrature_nodes(rule: QuadratureRule) -> Any:
    """The nodes of a rule with their weights, over draws of the distribution.

    With one column weights are stems over a histogram of draws; with more, the first two columns are a plane, and the area
    of a mark is the size of the weight. Negative weights are red. The title has the worst-case error.

    Args:
        rule: from `kb.quadrature`.
    """
    figure, ax = new_figure(1, (7.0, 3.6) if rule.points.shape[1] == 1 else (5.4, 5.0))
    _draw_nodes(ax, rule, _draws(rule), None)
    said = f"{len(rule)} nodes by {rule.nodes}, {rule.weighting} weights, worst-case error {rule._error_said()}"
    size = float(np.abs(rule.weights).sum())
    name_axes(ax, title=said + f"\nlarge weights: their sizes sum to {size:.2g}" * (size > _LARGE))
    add_legend(figure, *first_of_each(ax), loc="outside lower center", ncols=3)
    return figure


def _draws(rule: QuadratureRule) -> Array | None:
    """Draws of the distribution, or None for a rule that was loaded and does not know it."""
    try:
        source = rule._aim(None).source
    except ValueError:
        return None
    return source.draw(_DRAWS, np.random.default_rng(0))


def _draw_nodes(ax: Any, rule: QuadratureRule, draws: Array | None, names: tuple[str, ...] | None) -> None:
    if rule.points.shape[1] == 1:
        _draw_stems(ax, rule, draws)
        name_axes(ax, names[0] if names else "x", "weight")
        return
    first, second = names[:2] if names else ("x0", "x1")
    _draw_plane(ax, rule, draws)
    rest = rule.points.shape[1] - 2
    name_axes(ax, first, second + f" (and {rest} more column{'s' * (rest > 1)})" * (rest > 0))


def _draw_stems(ax: Any, rule: QuadratureRule, draws: Array | None) -> None:
    x, w = rule.points[:, 0], rule.weights
    top, bottom = 1.12 * max(float(w.max()), 0.0), 1.12 * min(float(w.min()), 0.0)
    if draws is not None:
        low, high = np.quantile(draws, _MOST_DRAWS)
        _draw_histogram(ax, draws[:, 0], min(low, x.min()), max(high, x.max()), 0.9 * (top or -bottom))
    ax.axhline(0.0, color=INK, lw=0.8)
    for chosen, colour, label in ((w >= 0, SECOND, "weight"), (w < 0, ACCENT, "negative weight")):
        if chosen.any():
            ax.vlines(x[chosen], 0.0, w[chosen], colors=colour, lw=1.2 if len(w) <= 60 else 0.7)
            ax.plot(x[chosen], w[chosen], "o", color=colour, ms=4 if len(w) <= 60 else 2.5, label=label)
    ax.set_ylim(bottom, top or None)


def _draw_histogram(ax: Any, draws: Array, low: float, high: float, height: float, **look: Any) -> None:
    """Where the distribution is, scaled to the axis of something else."""
    counts, edges = np.histogram(draws, np.linspace(low, high, _BINS + 1))
    look |= {"color": FAINT, "alpha": 0.3, "lw": 0, "label": "distribution"}
    ax.stairs(height * counts / counts.max(), edges, fill=True, **look)


def _draw_plane(ax: Any, rule: QuadratureRule, draws: Array | None) -> None:
    if draws is not None:
        some = draws[:_DOTS]
        ax.plot(some[:, 0], some[:, 1], ".", color=FAINT, ms=2, alpha=0.5, label="draws of the distribution", zorder=0)
    w = rule.weights
    for chosen, colour, label in ((w >= 0, SECOND, "weight (area)"), (w < 0, ACCENT, "negative weight")):
        if chosen.any():
            area = _areas(np.abs(w[chosen]), float(np.abs(w).max()))
            look = {"color": colour, "alpha": 0.75, "lw": 0}
            ax.scatter(rule.points[chosen, 0], rule.points[chosen, 1], s=area, **look)
            ax.scatter([], [], s=30, label=label, **look)
    # a few nodes far out are shown, draws beyond them are not
    for limits, column in ((ax.set_xlim, 0), (ax.set_ylim, 1)):
        values = rule.points[:, column]
        low, high = values.min(), values.max()
        if draws is not None:
            edges = np.quantile(draws[:, column], [0.005, 0.995])
            low, high = min(low, edges[0]), max(high, edges[1])
        room = 0.06 * (high - low) or 0.5
        limits(low - room, high + room)


def _areas(size: Array, largest: float) -> Array:
    return _LARGEST * np.maximum(size / (largest or 1.0), _SMALLEST)


# -------------------------------------------------------------------------------------------------------- integral


def integral(found: Integral, truth: Any = None) -> Any:
    """An integral as evaluations were added, and the function behind it.

    Left: mean and 95 % band against the number of evaluations, or the one there is. Right: for one input the function at
    the nodes, with the Gaussian process between them and marks as large as the weights; for several inputs each value
    beside what all others predict for it. If those lie far from the diagonal, or far outside their bars, the kernel does
    not follow the function, and the band on the left is not to be believed.

    Args:
        found: from `kb.integrate`.
        truth: the true integral if it is known, or (p,) for p integrals.
    """
    means = np.atleast_1d(found.mean())
    count = len(means)
    true = None if truth is None else np.ravel(_check.numbers(truth, "truth"))
    if true is not None and len(true) != count:
        raise ValueError(f"truth has {len(true)} numbers where there are {count} integrals")
    if count > _MOST_INTEGRALS:
        raise ValueError(f"{count} integrals are too many for a figure of at most {_MOST_INTEGRALS}")
    figure, axes = new_figure(2, (10.0, 0.6 + 3.2 * count), rows=count, share_x=False)
    axes = np.reshape(axes, (count, 2))
    if len(found.history) == 1:
        axes[0, 0].get_gridspec().set_width_ratios([1, 2])
    values = found.values.reshape(len(found.values), -1)
    for j, (left, right) in enumerate(axes):
        _draw_history(left, found, j, None if true is None else float(true[j]))
        _draw_function(right, found, values[:, j], j)
        name = found.outputs[j] if found.outputs else f"integral_{j}"
        name_axes(left, title=(name + ": ") * (count > 1) + _said(found, j))
    for ax in axes[0]:
        add_legend(ax, *first_of_each(ax))
    return figure


def _said(found: Integral, j: int) -> str:
    """The integral in numbers."""
    one = Integral(found.rule, found.values, [(found.n, np.ravel(found.mean())[j], np.ravel(found.std())[j])])
    return repr(one).removeprefix("Integral(").removesuffix(")")


def _draw_history(ax: Any, found: Integral, j: int, truth: float | None) -> None:
    n = np.array([row[0] for row in found.history])
    mean, half = (np.array([np.ravel(row[k])[j] for row in found.history]) for k in (1, 2))
    half = _REACH * half
    if len(n) > 1:
        ax.fill_between(n, mean - half, mean + half, color=SECOND, alpha=0.25, lw=0, label="95 % band")
        ax.plot(n, mean, color=SECOND, lw=1.6, marker="o", ms=4, label="integral")
        ax.set_xscale("log")
        _plain_ticks(ax, n)
        name_axes(ax, "evaluations")
        _look_closely(ax, mean, half, truth)
    else:
        ax.errorbar([0], mean, yerr=half, color=SECOND, fmt="o", ms=6, capsize=5, lw=1.6, label="integral, 95 % band")
        ax.set(xlim=(-1, 1), xticks=[0])
        ax.set_xticklabels([f"{n[0]} evaluations"])
        ax.tick_params(axis="x", length=0)
        ax.margins(y=0.4)
    if truth is not None:
        ax.axhline(truth, color=INK, lw=1.0, ls="--", label="truth", zorder=0)
    ax.get_yaxis().get_major_formatter().set_useOffset(False)


def _look_closely(ax: Any, mean: Array, half: Array, truth: float | None) -> None:
    """Limits about all means and the bands but the first ones, which are often wide as a house."""
    shown = slice(len(mean) // 2, None)
    low, high = min(mean.min(), (mean - half)[shown].min()), max(mean.max(), (mean + half)[shown].max())
    if truth is not None:
        low, high = min(low, truth), max(high, truth)
    room = 0.12 * (high - low) or 1e-3 * abs(high) or 1.0
    ax.set_ylim(low - room, high + room)


def _plain_ticks(ax: Any, n: Array) -> None:
    ax.set_xticks(n, [str(v) for v in n])
    ax.minorticks_off()


def _draw_function(ax: Any, found: Integral, values: Array, j: int) -> None:
    if found.rule.points.shape[1] == 1:
        _draw_line(ax, found, values, j)
    else:
        _draw_left_out(ax, found, values, j)


def _scale(found: Integral, values: Array, j: int) -> float:
    """The scale at which the process has the standard deviation that was given for the integral."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuadratureWarning)  # it was said when the integral was found
        own = found.rule.integrate(values, return_std=True)[1]
    caution = float(np.ravel(found.std())[j]) / own if own > 0 else 1.0
    return caution**2 * float(found.rule.scale(values))


def _draw_line(ax: Any, found: Integral, values: Array, j: int) -> None:
    """The function along its one input, where the distribution is."""
    rule = found.rule
    x = rule.points[:, 0]
    draws = _draws(rule)
    ends = [x.min(), x.max()] if draws is None else np.quantile(draws[:, 0], _MOST_DRAWS)
    grid = np.linspace(min(x.min(), ends[0]), max(x.max(), ends[1]), 400)
    mean, sd = rule._between(values, grid[:, None])
    half = _REACH * np.sqrt(_scale(found, values, j)) * sd
    low, high = min(values.min(), mean.min()), max(values.max(), mean.max())
    room = 0.12 * (high - low) or 1.0
    if draws is not None:
        _draw_histogram(ax, draws[:, 0], grid[0], grid[-1], 0.5, transform=ax.get_xaxis_transform())
    ax.fill_between(grid, mean - half, mean + half, color=SECOND, alpha=0.25, lw=0, label="95 % band between nodes")
    ax.plot(grid, mean, color=SECOND, lw=1.2, label="what is integrated")
    _draw_weighed(ax, x, values, rule.weights)
    beside = 0.01 * (grid[-1] - grid[0])  # so that a node at the end is not cut
    ax.set(ylim=(low - room, high + room), xlim=(grid[0] - beside, grid[-1] + beside))
    name_axes(ax, found.names[0] if found.names else "x", "value of the function", "The function at the nodes")


def _draw_weighed(ax: Any, x: Array, y: Array, w: Array) -> None:
    for chosen, colour, label in ((w >= 0, INK, "nodes, by weight"), (w < 0, ACCENT, "negative weight")):
        if chosen.any():
            area = np.maximum(0.4 * _areas(np.abs(w[chosen]), float(np.abs(w).max())), _VISIBLE)
            ax.scatter(x[chosen], y[chosen], s=area, color=colour, lw=0, label=label, zorder=3)


def _draw_left_out(ax: Any, found: Integral, values: Array, j: int) -> None:
    """Each value beside what all others predict for it, in closed form."""
    others = found.rule._left_out(values)
    predicted, half = others.predicted, _REACH * np.sqrt(_scale(found, values, j)) * others.sd
    inside = np.abs(values - predicted) <= half
    look = {"fmt": "none", "ecolor": FAINT, "elinewidth": 0.8, "alpha": 0.7}
    ax.errorbar(predicted, values, xerr=half, label="95 % of the prediction", **look)
    ends = np.array([values.min(), values.max()])
    room = 0.08 * (ends[1] - ends[0]) or 1.0
    ends = ends + np.array([-room, room])
    ax.plot(ends, ends, color=INK, lw=0.8)
    ax.plot(predicted[inside], values[inside], "o", color=SECOND, ms=3.5, label="nodes")
    if not inside.all():
        ax.plot(predicted[~inside], values[~inside], "o", color=ACCENT, ms=3.5, label="outside of their 95 %")
    ax.set(xlim=ends, ylim=ends)
    said = f"Each node left out: {percent(round(inside.mean(), 2))} in their 95 %"
    name_axes(ax, "predicted from all other nodes", "value of the function", said)

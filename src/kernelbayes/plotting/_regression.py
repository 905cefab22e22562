"""Regression through a mediator: the function found, and whether its intervals hold what they should."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._estimator import columns_in_order
from .._summary import percent
from .._typing import Array, ArrayLike
from ..embeddings import PosteriorWarning
from ..embeddings._weighted import level_of
from ._chance import CHANCE, LEVELS, draw_expected_coverage, shares_by_chance
from ._style import (
    INK,
    SECOND,
    add_legend,
    first_of_each,
    name_axes,
    new_figure,
    without_spare,
)

# Panels beside each other, and pairs marked in each.
_IN_A_ROW, _MOST_MARKS = 3, 500
# How faint marks may get, and the share of the prior's variance explained below which the function is a guess.
_FAINTEST, _LITTLE = 0.06, 0.05
# Targets that get a line each.
_MOST_TARGETS = 6


# -------------------------------------------------------------------------------------------------------- function


def function_band(
    model: Any,
    x: ArrayLike | None = None,
    *,
    truth: ArrayLike | Callable[[Array], ArrayLike] | None = None,
    level: float = 0.9,
    resolution: int = 200,
) -> Any:
    """The function that a model found: its mean, a band about it, and marks below where there are pairs.

    With several inputs there is a panel for each, in which the others are held at their medians: a cut through the function,
    not its average. An input that does not vary has no panel. With several targets there is a row for each. Marks fade where
    the data explain little of the function, and the mean is dotted where they explain next to nothing.

    Args:
        model: fitted, such as a `kb.TaskTransformedGP`.
        x: points (t, d) whose range is drawn and whose medians are held; (t,) if there is one input. By default those of
            the pairs.
        truth: the true function if it is known, from points (t, d) to values (t,) or (t, p); or, if there is one input, its
            values at `x`.
        level: what the band holds at each point, in probability.
        resolution: points of each line.
    """
    from scipy.stats import norm

    level = level_of(level)
    points = _points(model, x)
    inputs = _varying(points)
    cuts = [_cut(points, j, _check.count(resolution, "resolution", at_least=2)) for j in inputs]
    lines = [_line(model, cut, cut[:, j]) for j, cut in zip(inputs, cuts, strict=True)]
    true = _true_lines(truth, x, points, [line.x for line in lines], cuts)
    figure, axes = _panels(lines[0].mean.shape[1], len(cuts))
    for (row, i), ax in np.ndenumerate(axes):
        _draw_line(ax, lines[i], row, float(norm.ppf(0.5 + level / 2)), f"{percent(level)} band")
        if true is not None:
            ax.plot(true[i][0], true[i][1][:, row], color=INK, lw=1.0, ls="--", label="truth")
        ax.set_xlim(lines[i].x[0], lines[i].x[-1])
    _draw_marks(model, axes, inputs)
    _name_panels(model, axes, inputs)
    add_legend(figure, *first_of_each(axes[0, 0]), loc="outside upper left", ncols=5)
    return figure


class _Line(NamedTuple):
    """The function along one input."""

    x: Array
    mean: Array
    std: Array
    known: Array


def _points(model: Any, x: ArrayLike | None) -> Array:
    check_is_fitted(model)
    sample = np.asarray(model.X_)
    if sample.ndim != 2 or sample.dtype.kind != "f":
        raise ValueError("the band is drawn over inputs that are columns of numbers; these are none")
    x = _check.by_name(x, getattr(model, "feature_names_in_", None), "x")
    return sample if x is None else _check.vectors(x, "x", width=sample.shape[1])


def _varying(points: Array) -> Array:
    """Columns that have more than one value, or all if none has: along the others there is only the prior to be seen."""
    varies = np.ptp(points, axis=0) > 0
    return np.flatnonzero(varies if varies.any() else ~varies)


def _cut(points: Array, j: int, resolution: int) -> Array:
    """Points over the range of one column, with the others at their medians."""
    low, high = points[:, j].min(), points[:, j].max()
    room = 0.5 if low == high else 0.0
    cut = np.tile(np.median(points, axis=0), (resolution, 1))
    cut[:, j] = np.linspace(low - room, high + room, resolution)
    return cut


@contextmanager
def _quietly() -> Iterator[None]:
    """Where little is known is drawn, so it need not be said; nor that arrays have no names."""
    with warnings.catch_warnings(), columns_in_order():
        warnings.simplefilter("ignore", PosteriorWarning)
        yield


def _line(model: Any, cut: Array, along: Array) -> _Line:
    with _quietly():
        mean, std = (value.reshape(len(cut), -1) for value in model.predict(cut, return_std=True))
    return _Line(along, mean, std, _known(model, cut))


def _known(model: Any, X: Array) -> Array:
    """The share of the prior's variance that the data explain, or 1 for models that do not tell."""
    with _quietly():
        return model.mediation(X) if hasattr(model, "mediation") else np.ones(len(X))


def _true_lines(
    truth: Any, x: Any, points: Array, along: list[Array], cuts: list[Array]
) -> list[tuple[Array, Array]] | None:
    """The true function along each input."""
    if truth is None:
        return None
    if callable(truth):
        return [(line, _check.vectors(truth(cut), "truth")) for line, cut in zip(along, cuts, strict=True)]
    if points.shape[1] > 1 or x is None:
        raise ValueError("truth is a function of points (t, d) here; values are taken for one input, with x")
    truth = _check.vectors(truth, "truth")
    _check.same_length(points, truth, "x", "truth")
    order = np.argsort(points[:, 0], kind="stable")
    return [(points[order, 0], truth[order])]


def _panels(targets: int, inputs: int) -> tuple[Any, Any]:
    """A figure with axes (targets, inputs); those of one target are wrapped."""
    across = min(inputs, _IN_A_ROW) if targets == 1 else inputs
    down = -(-inputs // across) if targets == 1 else targets
    width = 7.0 if inputs == 1 else 1.0 + 3.6 * across
    figure, axes = new_figure(across, (width, 0.5 + 3.1 * down), rows=down, share_x=False)
    return figure, without_spare(axes, targets * inputs).reshape(targets, inputs)


def _draw_line(ax: Any, line: _Line, row: int, reach: float, band: str) -> None:
    mean, half = line.mean[:, row], reach * line.std[:, row]
    ax.fill_between(line.x, mean - half, mean + half, color=SECOND, alpha=0.25, lw=0, label=band)
    guess = line.known < _LITTLE
    ax.plot(line.x, np.where(guess, np.nan, mean), color=SECOND, lw=1.8, label="mean")
    if guess.any():
        ax.plot(line.x, np.where(guess, mean, np.nan), color=SECOND, lw=1.4, ls=":", label="mean, a guess")


def _draw_marks(model: Any, axes: Any, inputs: Array) -> None:
    """A mark for each of some pairs, at the foot of each panel."""
    from matplotlib.colors import to_rgb

    X = np.asarray(model.X_)
    X = X[np.random.default_rng(0).permutation(len(X))[:_MOST_MARKS]]
    colours = np.tile((*to_rgb(INK), 1.0), (len(X), 1))
    colours[:, 3] = np.maximum(_known(model, X), _FAINTEST) * (0.9 if len(X) < 150 else 0.6)
    for (_, i), ax in np.ndenumerate(axes):
        foot = ax.get_xaxis_transform()
        ax.vlines(X[:, inputs[i]], 0.0, 0.045, transform=foot, colors=colours, lw=0.8)
        ax.plot([], [], color=INK, ls="none", marker="|", ms=8, label="x of the pairs")


def _name_panels(model: Any, axes: Any, inputs: Array) -> None:
    targets, count = axes.shape
    width = model.X_.shape[1]
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(width)] if width > 1 else ["x"])
    given = getattr(model, "target_columns_", None)
    of_target = given or (["f(x)"] if targets == 1 else [f"f{row}(x)" for row in range(targets)])
    held = "" if count == 1 else " (others at their medians)" if count > 2 else " (the other at its median)"
    for (row, i), ax in np.ndenumerate(axes):
        if row == targets - 1:
            name_axes(ax, f"{names[inputs[i]]}{held}")
        if i == 0 or (targets == 1 and i % _IN_A_ROW == 0):
            name_axes(ax, y=of_target[row])


# -------------------------------------------------------------------------------------------------------- coverage


def coverage(model: Any, levels: ArrayLike = LEVELS) -> Any:
    """How often targets of the task lie in the intervals that all others predict for them, against the intervals' level.

    A line below the diagonal means intervals that are too narrow, one above it too wide. The grey band holds the share in
    95 of 100 cases if intervals are right and targets independent of each other given the function. With a few targets each
    has a line.

    Args:
        model: fitted, with `left_out()`, such as a `kb.TaskTransformedGP`.
        levels: of the intervals, between 0 and 1.
    """
    from scipy.stats import norm

    check_is_fitted(model)
    levels = np.sort(np.ravel(_check.numbers(levels, "levels")))
    if not (len(levels) and levels[0] > 0 and levels[-1] < 1):
        raise ValueError("levels must lie between 0 and 1")
    mean, std = (value.reshape(len(model.z_task_), -1) for value in model.left_out())
    level_of_each = 2.0 * norm.cdf(np.abs(model.z_task_.reshape(mean.shape) - mean) / std) - 1.0
    covered = np.array([(level_of_each <= level).mean(0) for level in levels])
    count = len(mean)
    figure, ax = new_figure(1, (4.8, 4.4))
    draw_expected_coverage(ax, levels, *shares_by_chance(levels, count), f"{percent(CHANCE)} by chance, if right")
    _draw_coverage(ax, levels, covered, getattr(model, "target_columns_", None))
    said = f"{count:,} targets, each predicted from all others"
    name_axes(ax, "level of the interval", "share of targets inside", said)
    add_legend(ax, loc="upper left")
    return figure


def _draw_coverage(ax: Any, levels: Array, covered: Array, names: Any) -> None:
    targets = covered.shape[1]
    if 1 < targets <= _MOST_TARGETS:
        styles = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
        for j in range(targets):
            name = names[j] if names else f"z{j}"
            ax.plot(levels, covered[:, j], color=SECOND, lw=1.6, ls=styles[j], label=name)
        return
    ax.plot(levels, covered.mean(1), color=SECOND, lw=1.8, label="share inside" if targets == 1 else "of all targets")

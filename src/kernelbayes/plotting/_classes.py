"""Classifiers: whether their probabilities can be trusted, where they are unsure, what they look at, how they learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .._estimator import columns_in_order
from .._summary import percent
from .._typing import Array, ArrayLike
from ..classification import _scores
from ..classification._probabilities import ProbabilisticClassifier
from ..rules import multiclass
from ._chance import CHANCE, draw_diagonal, shares_by_chance
from ._style import (
    ACCENT,
    FAINT,
    INK,
    SECOND,
    add_legend,
    dots,
    first_of_each,
    name_axes,
    new_figure,
    ranked_bars,
)

# Told apart by colour-blind eyes as well: Okabe and Ito's, in an order that keeps neighbours unlike when they fade.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#f0e442", "#56b4e9", "#555555")
_MARKERS = "osD^vPX*"
# Points of a bin below which it says next to nothing.
_FEW = 5
# Points shown, classes named in a legend, and orders of magnitude below the largest relevance that an image tells apart.
_MOST_POINTS, _MOST_NAMED, _DECADES = 1000, 20, 3.0
_LEAST_SHADE = 0.12  # of a colour where classes are alike: it is still seen which one is ahead


# ----------------------------------------------------------------------------------------------------- reliability


def reliability(
    probabilities: ArrayLike, positions: ArrayLike, *, bins: int = _scores.BINS, names: Array | None = None
) -> Any:
    """How often the predicted class is right against how probable it was said to be, in bins, and how many are in each.

    With two classes it is how often the second one is true against its probability: both ends can then be seen. Grey bars
    hold the share in 95 of 100 cases if the probabilities are right. Bins outside are red; those of fewer than five points
    are hollow. The expected calibration error in the title is that of the most probable class.

    Args:
        probabilities: predicted (t, m).
        positions: of the true class of each row among the columns (t,).
        bins: how many, of equal width.
        names: of the classes (m,).
    """
    P, positions = _scores.checked_predictions(probabilities, positions)
    bins = _check.count(bins, "bins")
    two = P.shape[1] == 2
    second = "the second class" if names is None else f"class {names[1]}"
    said, happened = (P[:, 1], positions.astype(float)) if two else _scores.top_class(P, positions)
    found = _scores.binned(said, happened, bins)
    figure, (above, below) = new_figure(1, (5.0, 5.4), rows=2)
    grid = above.get_gridspec()
    grid.set_height_ratios([3.2, 1.0])
    _shares(above, found)
    name_axes(above, y=f"share of {second}" if two else "share right")
    below.bar((found.place + 0.5) / bins, found.counts, 0.92 / bins, color=SECOND, alpha=0.55)
    below.set(xlim=(-0.02, 1.02))
    name_axes(below, f"predicted probability of {second if two else 'the most probable class'}", "points")
    below.locator_params(axis="y", nbins=3, integer=True)
    scores = f"expected calibration error {_scores.calibration_error(P, positions, bins):.3f}"
    name_axes(above, title=f"{len(P):,} points: {scores}, log loss {_scores.log_loss(P, positions):.3f}")
    return figure


def _shares(ax: Any, found: _scores.Bins) -> None:
    counts = found.counts
    low, high = shares_by_chance(found.said, counts)
    outside = (found.share < low) | (found.share > high)
    draw_diagonal(ax)
    few = counts < _FEW
    bars = (part[~few] for part in (found.said, low, high))
    ax.vlines(*bars, color=FAINT, alpha=0.45, lw=7, label=f"{percent(CHANCE)} by chance, if right")
    kinds = (
        (~few & ~outside, {"color": SECOND, "label": "share found"}),
        (~few & outside, {"color": ACCENT, "label": "share found, outside of it"}),
        (few, {"color": SECOND, "mfc": "white", "label": f"the same of fewer than {_FEW} points"}),
    )
    for some, look in kinds:
        if some.any():
            ax.plot(found.said[some], found.share[some], ls="none", marker="o", ms=6, zorder=3, **look)
    ax.set(ylim=(-0.02, 1.02))
    add_legend(ax, loc="lower right")


# ------------------------------------------------------------------------------------------------------------- map


def class_map(
    model: ProbabilisticClassifier, X: ArrayLike, positions: ArrayLike | None = None, *, resolution: int = 150
) -> Any:
    """Classes over two inputs: a colour for each that fades where the model is unsure, and beside it the entropy.

    Args:
        model: a fitted classifier of two columns.
        X: points (n, 2) whose range is drawn; they are shown if their classes are given.
        positions: of the class of each point among `model.classes_`.
        resolution: points of the grid in each direction.
    """
    X = _check.vectors(_check.by_name(X, getattr(model, "feature_names_in_", None), "X"), "X")
    if X.shape[1] != 2:
        raise ValueError(f"a map has two inputs, but X has {X.shape[1]} columns")
    resolution = _check.count(resolution, "resolution", at_least=2)
    across, up = (_reach(column, resolution) for column in X.T)
    grid = np.stack(np.meshgrid(across, up), axis=-1)
    with columns_in_order():
        P = model.predict_proba(grid.reshape(-1, 2))
    P = P.reshape(resolution, resolution, -1)
    entropy = multiclass.entropy(P.reshape(-1, P.shape[2])).reshape(P.shape[:2])
    colours = _colours(P.shape[2])
    figure, (left, right) = new_figure(2, (10.0, 4.3))
    box = {"extent": (across[0], across[-1], up[0], up[-1]), "origin": "lower", "aspect": "auto"}
    left.imshow(_faded(P, entropy, colours), interpolation="bilinear", **box)
    shown = right.imshow(entropy, cmap="Greys", vmin=0.0, vmax=np.log(P.shape[2]), interpolation="bilinear", **box)
    figure.colorbar(shown, ax=right, pad=0.02).ax.tick_params(labelsize=8)
    _boundaries(left, across, up, P, INK)
    _boundaries(right, across, up, P, ACCENT)
    _points(figure, left, model.classes_, colours, X, None if positions is None else np.asarray(positions))
    first, second = getattr(model, "feature_names_in_", ("x0", "x1"))
    name_axes(left, first, second, "Most probable class, fading where unsure")
    name_axes(right, first, title="Entropy in nats")
    return figure


def _reach(values: Array, resolution: int) -> Array:
    """A grid a little wider than the points."""
    room = 0.08 * float(np.ptp(values)) or 0.5
    return np.linspace(values.min() - room, values.max() + room, resolution)


def _colours(classes: int) -> Array:
    """A colour for each class, as red, green and blue."""
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    if classes <= len(_COLOURS):
        return np.array([to_rgb(colour) for colour in _COLOURS[:classes]])
    return colormaps["viridis"](np.linspace(0, 1, classes))[:, :3]


def _faded(P: Array, entropy: Array, colours: Array) -> Array:
    """The colour of the most probable class, the whiter the larger the entropy."""
    sure = np.clip(1.0 - entropy / np.log(P.shape[2]), 0.0, 1.0)
    strength = (_LEAST_SHADE + (0.8 - _LEAST_SHADE) * sure)[..., None]
    return 1.0 - strength * (1.0 - colours[P.argmax(2)])


def _boundaries(ax: Any, across: Array, up: Array, P: Array, colour: str) -> None:
    """Lines on which two classes are the most probable ones."""
    classes = P.shape[2]
    for c in range(1 if classes == 2 else classes):
        ahead = P[..., c] - np.delete(P, c, axis=2).max(2)
        if ahead.min() < 0 < ahead.max():
            ax.contour(across, up, ahead, levels=[0.0], colors=[colour], linewidths=1.1)


def _points(figure: Any, ax: Any, names: Array, colours: Array, X: Array, positions: Array | None) -> None:
    """Some of the points in the colours of their classes, and a legend."""
    from matplotlib.lines import Line2D

    look = {"ls": "none", "mec": "white", "mew": 0.6, "ms": 5.5}
    if positions is not None:
        _check.same_length(X, positions, "X", "positions")
        some = np.random.default_rng(0).permutation(len(X))[:_MOST_POINTS]
        classes, counts = np.unique(positions[some], return_counts=True)
        for c in classes[np.argsort(-counts, kind="stable")]:  # the rarest last, so that none is hidden
            own = X[some][positions[some] == c]
            ax.plot(*own.T, marker=_MARKERS[c % len(_MARKERS)], color=colours[c], **look)
    handles = [
        Line2D([], [], marker=_MARKERS[c % len(_MARKERS)], color=colours[c], label=str(name), **look)
        for c, name in enumerate(names[:_MOST_NAMED])
    ]
    add_legend(figure, handles=handles, loc="outside upper left", ncols=min(len(handles), 8))


# ------------------------------------------------------------------------------------------------------- relevance


def input_relevance(model: Any, *, most: int = 30, shape: tuple[int, int] | None = None) -> Any:
    """How much each column of x matters to a classifier: its spread over its lengthscale, as bars, most first.

    Args:
        model: a fitted classifier with `relevance()`.
        most: bars at most.
        shape: height and width, if columns are pixels: relevance is drawn over the image, on a logarithmic scale.
    """
    table = model.relevance()
    values = {name: table[name]["relevance"] for name in table}
    if shape is not None:
        return _relevance_image(model, values, shape)
    words = "relevance: spread / lengthscale", "Relevance of the inputs"
    return ranked_bars([*values], [*values.values()], _check.count(most, "most"), *words)[0]


def _relevance_image(model: Any, values: dict[str, float], shape: tuple[int, int]) -> Any:
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(len(values))])
    if len(shape) != 2 or np.prod(shape) != len(values):
        raise ValueError(f"shape must be a height and a width with {len(values)} pixels in all, got {shape}")
    ordered = np.array([values[str(name)] for name in names]).reshape(shape)
    seen = np.ma.masked_less_equal(ordered, 0.0)  # columns that never vary
    if seen.mask.all():
        raise ValueError("no input varies: there is no relevance to draw")
    logs = np.ma.log10(seen)
    figure, ax = new_figure(1, (4.9, 0.5 + 3.9 * min(shape[0] / shape[1], 2.0)))
    ax.set_facecolor("#e4e7eb")
    top = float(logs.max())
    image = ax.imshow(logs, cmap="viridis", vmin=max(float(logs.min()), top - _DECADES), vmax=top)
    figure.colorbar(image, ax=ax, pad=0.02, format=lambda log, _: f"{10**log:.2g}").ax.tick_params(labelsize=8)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    grey = " (grey: never varies)" if np.any(seen.mask) else ""
    name_axes(ax, title=f"Relevance of the inputs{grey}")
    return figure


# --------------------------------------------------------------------------------------------------------- balance


def balance(curves: dict[str, Array]) -> Any:
    """Fit and complexity along the way of an optimiser: how one is paid for with the other while what it minimises falls.

    Args:
        curves: arrays "fit" and "complexity", an entry for each step, as the `balance()` of a classifier gives them. With
            "objective", or with a "multiplier" of the complexity, what was minimised is drawn as well. Grey lines are where
            the multiplier changes.
    """
    lacking = [name for name in ("fit", "complexity") if name not in curves]
    if lacking:
        raise ValueError(f"curves lack {lacking[0]!r}")
    fit, complexity = np.asarray(curves["fit"]), np.asarray(curves["complexity"])
    multiplier = np.asarray(curves.get("multiplier", np.full(len(fit), np.nan)))
    minimised = np.asarray(curves.get("objective", fit + multiplier * complexity))
    breaks = np.flatnonzero(np.diff(multiplier)[np.isfinite(np.diff(multiplier))]) + 1
    steps = np.arange(len(fit))
    marks = dots(len(steps))
    figure, (left, right) = new_figure(2, (9.0, 3.6))
    name = "objective" if "objective" in curves else "fit + multiplier x complexity, which is minimised"
    for part in np.split(steps, breaks) if np.isfinite(minimised).any() else []:
        left.plot(part, minimised[part], color=INK, lw=1.6, label=name, **marks)
    left.plot(steps, fit, color=SECOND, lw=1.6, label="fit: mean loss", **marks)
    right.plot(steps, complexity, color=ACCENT, lw=1.6, **marks)
    for ax, title in ((left, "Fit, in nats"), (right, "Complexity")):
        name_axes(ax, "step", title=title)
        ax.locator_params(axis="x", integer=True)
        for change in breaks - 0.5:
            ax.axvline(change, color=FAINT, lw=0.8, zorder=0)
    add_legend(figure, *first_of_each(left), loc="outside upper left", ncols=2)
    return figure

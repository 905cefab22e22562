"""C2ST of each method on each problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._figures import FAINT, panels
from .._study import Runs
from ._methods import METHODS, ROUNDS
from ._reading import methods_of, sizes_of


def scores_figure(runs: Runs) -> Any:
    """A panel for each number of simulations: a dot for each method, hollow for rounds; a star: held out."""
    problems = list(dict.fromkeys((c["problem"], c["held_out"]) for c in runs.cases))
    problems.sort(key=lambda pair: pair[1])  # stable: those tuned on first
    places = {name: len(problems) - i for i, (name, _) in enumerate(problems)}
    sizes = sizes_of(runs)
    figure, axes = panels(1, len(sizes), (3.2 * len(sizes) + 2.0, 0.26 * len(problems) + 1.8))
    axes = np.atleast_1d(axes)
    for ax, size in zip(axes, sizes, strict=True):
        _panel(ax, runs.where(size=size), places)
        ax.set_title(f"{size} simulations", fontsize=10)
        ax.axhline(sum(held for _, held in problems) + 0.5, color=FAINT, lw=0.8, ls=":")
    axes[0].set_yticks(list(places.values()), [f"{name}*" if held else name for name, held in problems], fontsize=7)
    dots = {label: dot for ax in axes for dot, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(dots.values(), dots, loc="outside lower center", ncol=len(dots), frameon=False, fontsize=8)
    return figure


def _panel(ax: Any, runs: Runs, places: dict[str, int]) -> None:
    names = methods_of(runs)
    for name in names:
        method, part = METHODS[name], runs.where(method=name)
        scores = [np.mean(row[np.isfinite(row)]) if np.isfinite(row).any() else np.nan for row in part["c2st"]]
        hollow = {"facecolors": "none", "marker": "D"} if method.group == ROUNDS else {"marker": "o"}
        colour = {"edgecolors": method.colour} if method.group == ROUNDS else {"color": method.colour}
        ax.scatter(
            scores, [places[c["problem"]] for c in part.cases], s=16, label=method.label, lw=1, **hollow, **colour
        )
    ax.set(xlim=(0.45, 1.02), ylim=(0.3, len(places) + 0.7), xlabel="C2ST (.5 is perfect)", yticks=[])
    ax.axvline(0.5, color=FAINT, lw=0.8)

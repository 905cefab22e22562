"""C2ST of each method on each problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._figures import FAINT, panels
from .._study import Runs
from ._methods import METHODS, ROUNDS
from ._reading import methods_of, sizes_of


def scores_figure(runs: Runs) -> Any:
    """A panel for each number of simulations: problems from the top, a dot for each method, hollow for rounds."""
    problems = list(dict.fromkeys((c["problem"], c["held_out"]) for c in runs.cases))
    problems.sort(key=lambda pair: pair[1])  # stable: those tuned on first
    places = {name: len(problems) - i for i, (name, _) in enumerate(problems)}
    sizes = sizes_of(runs)
    figure, axes = panels(1, len(sizes), (3.2 * len(sizes) + 2.0, 0.26 * len(problems) + 1.6))
    for ax, size in zip(np.atleast_1d(axes), sizes, strict=True):
        _panel(ax, runs.where(size=size), places)
        ax.set_title(f"{size} simulations", fontsize=10)
        ax.axhline(sum(held for _, held in problems) + 0.5, color=FAINT, lw=0.8, ls=":")
    first = np.atleast_1d(axes)[0]
    first.set_yticks(list(places.values()), [f"{name}*" if held else name for name, held in problems], fontsize=7)
    first.legend(frameon=False, fontsize=7, loc="lower right")
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

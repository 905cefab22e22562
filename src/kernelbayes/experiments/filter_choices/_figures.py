"""Errors of rules and representations, and what a longer log is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...rules.bayes import RULES
from .._estimates import Estimate
from .._figures import ACCENT, FAINT, GOLD, INK, curves, few_ticks, panels
from .._study import Runs
from ._cases import GROWING, GROWTH_SYSTEM, ON_REPRESENTATIONS, REPRESENTATIONS, SYSTEMS
from ._reading import against, best, exact, growing, of_rules, represented

_COLOURS = dict(zip(SYSTEMS, (ACCENT, INK, GOLD), strict=True))


def draw(runs: Runs, settings: Mapping[str, Any]) -> Any:
    figure, axes = panels(2, 2, (12.0, 8.5))
    (rules, recipes), (errors, times) = axes
    parts = {system: of_rules(runs, settings, system) for system in SYSTEMS}
    _dots(rules, list(RULES), {s: against(part, best(part)) for s, part in parts.items()})
    rules.set_title("Rules: squared error over the lowest", fontsize=10)
    rules.legend(frameon=False, fontsize=8)
    for rule, style in zip(ON_REPRESENTATIONS, ("full", "none"), strict=True):
        parts = {system: represented(runs, settings, system, rule) for system in SYSTEMS}
        ratios = {system: against(part, exact()) for system, part in parts.items()}
        _dots(recipes, list(REPRESENTATIONS), ratios, fillstyle=style)
    recipes.set_title("Representations: the same over Exact(); full: rule iw, open: subspace", fontsize=10)
    _by_length(errors, runs, settings, "error")
    errors.set(ylabel="squared error", yscale="linear")
    errors.set_title(f"Length of the log ({GROWTH_SYSTEM})", fontsize=10)
    _by_length(times, runs, settings, "step")
    times.set(ylabel="milliseconds a step")
    few_ticks(times.yaxis)
    times.set_title("Time of a step", fontsize=10)
    times.legend(frameon=False, fontsize=8)
    return figure


def _dots(ax: Any, names: Sequence[str], ratios: Mapping[str, Sequence[Estimate]], **style: Any) -> None:
    """A row for each name, with a dot for each system and its standard error; what is off the scale points to the right."""
    low, high, ticks = 0.5, 4.5, (0.5, 0.7, 1, 1.5, 2, 3, 4)
    for shift, (system, row) in zip((-0.2, 0.0, 0.2), ratios.items(), strict=True):
        y = np.arange(len(names)) + shift
        values, spread = np.array(row).T
        near, colour = values <= high, _COLOURS[system]
        ax.errorbar(
            values[near], y[near], xerr=spread[near], fmt="o", ms=5, lw=0.8, color=colour, label=system, **style
        )
        if not near.all():
            ax.plot(np.full((~near).sum(), high), y[~near], ">", ms=6, color=colour, clip_on=False, **style)
    ax.axvline(1.0, color=FAINT, lw=0.8, zorder=0)
    ax.set(xscale="log", xlim=(low, high), ylim=(len(names) - 0.5, -0.5))
    ax.set_yticks(np.arange(len(names)), names)
    _plain_ticks(ax, ticks)


def _plain_ticks(ax: Any, ticks: Sequence[float]) -> None:
    ax.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
    ax.xaxis.minorticks_off()


def _by_length(ax: Any, runs: Runs, settings: Mapping[str, Any], name: str) -> None:
    for label, (_, _, colour) in GROWING.items():
        part = growing(runs, settings, label)
        curves(ax, part.case("n"), part, {name: (label, colour)})
    _plain_ticks(ax, settings["sizes"])
    ax.set_xlabel("steps in the log")

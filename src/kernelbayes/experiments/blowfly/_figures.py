"""Errors against numbers of simulations, and which statistics matter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._figures import FAINT, few_ticks, panels
from .._simulators import BLOWFLY_STATISTICS
from .._study import Runs
from ._methods import RELEVANCE, WAYS
from ._reading import epsilons, percent


def error_figure(runs: Runs) -> Any:
    """Errors and learned scales against numbers of simulations."""
    figure, (errors, scales) = panels(1, 2, (12.5, 4.6))
    m = runs.case("simulations")
    for name, way in WAYS.items():
        values = percent(runs, name)
        line = "o--" if way.dashed else "o-"
        errors.plot(m, values.mean(1), line, color=way.colour, lw=1.4, ms=3.5, label=way.label)
        if name in ("kelfi", "kbr", "gps"):
            low, high = values.min(1), values.max(1)
            errors.fill_between(m, low, high, color=way.colour, alpha=0.12, linewidth=0)
    errors.axhline(1.0, color=FAINT, lw=1, ls=":")
    for name in ("marginal", "kelfi"):
        way = WAYS[name]
        scales.errorbar(
            m,
            runs.mean(f"{name}_epsilon"),
            runs.standard_error(f"{name}_epsilon"),
            color=way.colour,
            marker="o",
            ms=4,
            label=way.label,
        )
    for ax in (errors, scales):
        ax.set(xscale="log", yscale="log", xlabel="simulations")
        few_ticks(ax.xaxis)
    few_ticks(errors.yaxis)
    few_ticks(scales.yaxis)
    errors.set(ylabel="NMSE in percent")
    errors.set_title("Mean over the repeats; from best to worst for KELFI, KBR, GPS-ABC", fontsize=10)
    errors.legend(frameon=False, fontsize=7, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    scales.set(ylabel="$\\epsilon$, in units of the statistics' spread")
    scales.set_title("The scale that is learned", fontsize=10)
    scales.legend(frameon=False, fontsize=8)
    return figure


def relevance_figure(runs: Runs, settings: Mapping[str, Any]) -> Any:
    """The scale of each statistic, relative to their mean."""
    figure, ax = panels(1, 1, (7.0, 4.2))
    places = np.arange(len(BLOWFLY_STATISTICS))
    for shift, name in zip((-0.2, 0.0, 0.2), RELEVANCE, strict=True):
        low, middle, high = np.nanquantile(epsilons(runs, settings, name), [0.25, 0.5, 0.75], axis=1)
        way = WAYS[name]
        ax.errorbar(
            middle,
            places + shift,
            xerr=[middle - low, high - middle],
            fmt="D" if way.dashed else "o",
            color=way.colour,
            ms=4,
            label=way.label,
        )
    ax.axvline(1.0, color=FAINT, lw=1, ls=":")
    ax.set(
        xscale="log",
        yticks=places,
        yticklabels=BLOWFLY_STATISTICS,
        xlabel="$\\epsilon_i$ / geometric mean; small scales matter",
    )
    ax.invert_yaxis()
    ax.set_title(f"Relevance of the statistics at {settings['ard_at']} simulations, with quartiles", fontsize=10)
    ax.legend(frameon=False, fontsize=8)
    return figure

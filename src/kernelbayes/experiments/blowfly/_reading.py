"""What the repeats show, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..._typing import Array
from .._estimates import mean, show
from .._result import Table, columns
from .._simulators import BLOWFLY_STATISTICS
from .._study import Runs
from ._methods import RELEVANCE, WAYS


def percent(runs: Runs, name: str) -> Array:
    """Errors (cases, repeats) in percent."""
    return 100.0 * runs[name]


def average(runs: Runs, name: str) -> Array:
    """Means (cases,) in percent; NaN where a method was refused in some repeat, so that no mean is over the easy ones."""
    return percent(runs, name).mean(1)


def error_table(runs: Runs) -> Table:
    """Means over the repeats."""
    return Table(
        "NMSE in percent: means over the repeats (standard errors)",
        ["method", *(f"m = {m}" for m in runs.case("simulations"))],
        [(way.label, *(_cell(row, mean) for row in percent(runs, name))) for name, way in WAYS.items()],
    )


def range_table(runs: Runs) -> Table:
    """From best to worst."""

    def spread(row: Array) -> str:
        return f"{show(np.median(row))} ({show(row.min())}-{show(row.max())})"

    return Table(
        "NMSE in percent: median (best-worst) over the repeats",
        ["method", *(f"m = {m}" for m in runs.case("simulations"))],
        [(way.label, *(_cell(row, spread) for row in percent(runs, name))) for name, way in WAYS.items()],
    )


def _cell(row: Array, of: Callable[[Array], Any]) -> Any:
    """Something of the repeats, or in how many of them the method had too few simulations or was refused."""
    missing = int((~np.isfinite(row)).sum())
    return f"none in {missing} of {len(row)}" if missing else of(row)


def epsilons(runs: Runs, settings: Mapping[str, Any], name: str) -> Array:
    """Of the statistics (10, repeats), relative to their geometric mean in each repeat."""
    one = runs.where(simulations=settings["ard_at"])
    values = np.stack([one[f"ard_{name}_{i}"][0] for i in range(len(BLOWFLY_STATISTICS))])
    return values / np.exp(np.log(values).mean(0))


def relevance_table(runs: Runs, settings: Mapping[str, Any]) -> Table:
    """Which statistics matter."""
    found = [np.nanmedian(epsilons(runs, settings, name), axis=1) for name in RELEVANCE]
    return Table(
        f"Epsilon of each statistic over their geometric mean, at m = {settings['ard_at']}: medians over the repeats",
        ["statistic", *(label for label, _ in RELEVANCE.values())],
        columns(BLOWFLY_STATISTICS, *found),
    )


def note(runs: Runs, simulated: bool) -> str:
    """How large the error is at places that need no inference."""
    known = f"at the true parameters {show(100 * runs.mean('truth').mean())} %, " if simulated else ""
    return f"Note: the NMSE is {known}at the prior mean {show(100 * runs.mean('prior_mean').mean())} %."

"""What the numbers of all repeats say: improvements from one method to another, exponents, and tables of both."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..._typing import Array
from .._estimates import Estimate, mean, rate, show
from .._result import Table
from .._study import Runs
from ._examples import EXAMPLES, METHODS, NOTES, OTHERS

# Errors this close to the smallest that can be told from zero are left out of ratios.
CLEAR = 10.0
# Rates are fitted from here on.
_FIRST = 16


def chosen_in(runs: Runs) -> list[tuple[str, int]]:
    """Examples and their dimensions, in order."""
    return list(dict.fromkeys((case["example"], case["dimension"]) for case in runs.cases))


def known_rates(runs: Runs) -> list[tuple[str, int]]:
    return [(e, d) for e, d in chosen_in(runs) if EXAMPLES[e].rate is not None and d == 1]


def last_clear(runs: Runs, example: str, dimension: int) -> Runs:
    """The case of the largest n at which the notes' four methods can all be had, clear of rounding."""
    cells = runs.where(example=example, dimension=dimension)
    for i in reversed(range(len(cells.cases))):
        cell = cells.take([i])
        floor = CLEAR * np.median(cell["resolution"])
        if all(np.median(cell[name]) > floor for name in NOTES):  # a NaN is above nothing
            return cell
    return cells.take([0])


def by_dimension(runs: Runs, example: str) -> list[Runs]:
    dimensions = [d for e, d in chosen_in(runs) if e == example]
    n = min(last_clear(runs, example, d).cases[0]["n"] for d in dimensions)
    return [runs.where(example=example, dimension=d, n=n) for d in dimensions]


def clear_at_largest(runs: Runs, example: str) -> list[Runs]:
    """The cases of the largest n, in the dimensions in which it is clear of rounding."""
    most = runs.case("n").max()
    cells = [last_clear(runs, e, d) for e, d in chosen_in(runs) if e == example]
    return [cell for cell in cells if cell.cases[0]["n"] == most]


def log_ratios(cell: Runs, worse: str, better: str) -> Array:
    """Logarithms of the ratio of two methods' errors in a case, one for each repeat."""
    return np.log(cell[worse][0] / cell[better][0])


def improvements(cell: Runs) -> tuple[Array, Array]:
    """Logarithms of the improvements from the better of methods 1 and 2 to 3, and from 3 to 4."""
    start = "diagonal" if log_ratios(cell, "iid", "diagonal").mean() > 0 else "iid"
    return log_ratios(cell, start, "leverage"), log_ratios(cell, "leverage", "dpp")


def factor(logs: Array) -> Estimate:
    """A geometric mean and its standard error."""
    found = mean(logs)
    return Estimate(float(np.exp(found.value)), float(np.exp(found.value) * found.error))


def helps(logs: Array) -> bool:
    """Whether an improvement is one, by more than twice its standard error."""
    found = mean(logs)
    return found.value > 2.0 * found.error


def larger_step(cell: Runs) -> str:
    """Which of the two improvements is larger by more than twice the standard error of the difference."""
    first, second = improvements(cell)
    difference = mean(second - first)
    if abs(difference.value) <= 2.0 * difference.error:
        return "level"
    return "3 to 4" if difference.value > 0 else "1-2 to 3"


def exponent(cells: Runs, name: str) -> Estimate:
    """The exponent of n, fitted in each repeat to the larger n; its mean."""
    late = cells.take([i for i, case in enumerate(cells.cases) if case["n"] >= _FIRST])
    return mean(np.array([rate(late.case("n"), errors) for errors in late[name].T]))


# ------------------------------------------------------------------------------------------------------ tables


def _cell(errors: Array, resolution: Array) -> str:
    """A median in words: a dash where nodes could not be had, and a bound where it cannot be told from rounding."""
    middle, floor = float(np.median(errors)), float(np.median(resolution))
    if np.isnan(middle):
        return "-"
    return f"< {show(floor, 2)}" if middle <= floor else show(middle, 3)


def _largest(runs: Runs) -> list[Runs]:
    """The case of the largest n of each example."""
    return [runs.where(example=e, dimension=d).take([-1]) for e, d in chosen_in(runs)]


def _medians(runs: Runs, names: Mapping[str, str], title: str) -> Table:
    rows = []
    for cell in _largest(runs):
        case = cell.cases[0]
        errors = (_cell(cell[name], cell["resolution"]) for name in names)
        rows.append((EXAMPLES[case["example"]].label, case["dimension"], *errors))
    return Table(title, ["kernel and distribution", "d", *names.values()], rows)


def error_table(runs: Runs) -> Table:
    """Errors of all methods at the largest n."""
    n = int(runs.case("n").max())
    labels = {name: label for name, (label, _) in METHODS.items()}
    return _medians(runs, labels, f"Worst-case errors at n = {n} with optimal weights: medians over the repeats")


def weight_table(runs: Runs) -> Table:
    """The same with other weights."""
    return _medians(runs, OTHERS, "The same nodes with weights that are not optimal")


def gain_table(runs: Runs) -> Table:
    """The improvements that the notes ask about."""
    rows = []
    for example, dimension in chosen_in(runs):
        cell = last_clear(runs, example, dimension)
        first, second = map(factor, improvements(cell))
        beyond = log_ratios(cell, "dpp", "greedy")
        further = "-" if np.isnan(beyond).any() else factor(beyond)
        label, n = EXAMPLES[example].label, cell.cases[0]["n"]
        rows.append((label, dimension, n, first, second, larger_step(cell), further))
    title = "Improvements, as ratios of errors at the largest n clear of rounding: geometric means (standard errors)"
    header = ["kernel and distribution", "d", "n", "1-2 to 3", "3 to 4", "larger", "4 to greedy"]
    return Table(title, header, rows)


def rate_table(runs: Runs) -> Table:
    """Exponents where the best one is known."""
    rows = []
    for example, dimension in known_rates(runs):
        cells = runs.where(example=example, dimension=dimension)
        found = [exponent(cells, name) for name in (*METHODS, "iid_importance", "dpp_importance")]
        rows.append((EXAMPLES[example].label, -EXAMPLES[example].rate, *found))  # type: ignore[operator]
    header = [label for label, _ in METHODS.values()] + [OTHERS[name] for name in ("iid_importance", "dpp_importance")]
    title = f"Exponents of n, fitted from n = {_FIRST} on: means over the repeats (standard errors)"
    return Table(title, ["kernel and distribution", "known", *header], rows)

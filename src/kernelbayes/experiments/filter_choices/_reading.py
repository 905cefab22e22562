"""What the numbers of all repeats say: parts of them, ratios of errors, and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import Array
from ...rules.bayes import RULES
from .._estimates import Estimate, jackknife, show
from .._result import Table, columns
from .._study import Runs
from ._cases import GROWING, GROWTH_SYSTEM, ON_REPRESENTATIONS, REPRESENTATIONS, SYSTEMS

_KNOWING = {
    "regression": "regression: the log, without time",
    "iw": "KernelBayesFilter: the log",
    "monte carlo": "KernelMonteCarloFilter: the log and the transition",
    "particles": "particle filter: the system",
}


def of_rules(runs: Runs, settings: Mapping[str, Any], system: str) -> Runs:
    """The rules on one system, in their order."""
    there = runs.where(system=system, n=settings["lengths"][system], tune=settings["tune"], representation="default")
    return there.take([i for i, case in enumerate(there.cases) if case["method"] in RULES])


def represented(runs: Runs, settings: Mapping[str, Any], system: str, rule: str) -> Runs:
    """The representations under one rule on one system, in their order."""
    n, tune = settings["lengths"][system], settings["tune"]
    there = runs.where(system=system, n=n, tune=tune, method=rule)
    place = {case["representation"]: i for i, case in enumerate(there.cases)}
    return there.take([place[name] for name in REPRESENTATIONS])


def growing(runs: Runs, settings: Mapping[str, Any], label: str) -> Runs:
    rule, name, _ = GROWING[label]
    found = runs.where(system=GROWTH_SYSTEM, method=rule, representation=name, tune=settings["tune"])
    place = {case["n"]: i for i, case in enumerate(found.cases)}
    return found.take([place[n] for n in settings["sizes"]])


def _one(runs: Runs, settings: Mapping[str, Any], system: str, method: str, tune: int) -> Array:
    """Errors (repeats,) of one method on one system."""
    n = settings["lengths"][system]
    return runs.where(system=system, n=n, method=method, tune=tune, representation="default")["error"][0]


def _ratio(errors: Array, base: Array) -> Estimate:
    """Mean errors of two methods on the same runs, the first over the second; finer digits mean nothing."""
    found = jackknife(lambda a, b: a.mean() / b.mean(), errors, base)
    return Estimate(round(found.value, 3), round(found.error, 3))


def against(runs: Runs, base: int, name: str = "error") -> list[Estimate]:
    """Every case of some over one of them."""
    return [_ratio(row, runs[name][base]) for row in runs[name]]


def best(runs: Runs, name: str = "error") -> int:
    """The case with the lowest mean; one that failed in some run is none."""
    return int(np.nanargmin(runs.mean(name)))


def exact() -> int:
    return list(REPRESENTATIONS).index("Exact()")


# ------------------------------------------------------------------------------------------------------- tables


def tables(runs: Runs, settings: Mapping[str, Any]) -> list[Table]:
    return [
        _knowing_table(runs, settings),
        _rules_table(runs, settings),
        *(_represented_table(runs, settings, rule) for rule in ON_REPRESENTATIONS),
        _growth_table(runs, settings, "error", "Length of the log: squared error"),
        _growth_table(runs, settings, "step", "Length of the log: milliseconds a step"),
        _growth_table(runs, settings, "fit", "Length of the log: seconds to learn"),
        _tuning_table(runs, settings),
        _details(runs, settings),
    ]


def _knowing_table(runs: Runs, settings: Mapping[str, Any]) -> Table:
    def error(system: str, method: str) -> Array:
        tune = settings["tune"] if method in ("iw", "monte carlo") else 0
        return _one(runs, settings, system, method, tune)

    ratios = [[_ratio(error(s, method), error(s, "particles")) for method in _KNOWING] for s in SYSTEMS]
    return Table(
        "What is known: error over that of a particle filter",
        ["method: what it knows", *SYSTEMS],
        columns(_KNOWING.values(), *ratios),
    )


def _glance(title: str, names: Sequence[str], first: str, parts: Sequence[Runs], bases: Sequence[int]) -> Table:
    """One row for each name: the error on each system relative to a base, and the range over systems of the rest."""
    ratios = [against(part, base) for part, base in zip(parts, bases, strict=True)]
    ranges = [_ranges(parts, name) for name in ("coverage", "rank", "fit", "step")]
    astray = np.max([100 * part.mean("outside") for part in parts], axis=0)
    header = [first, *SYSTEMS, "% astray", "coverage", "rank", "seconds to fit", "ms a step"]
    return Table(title, header, columns(names, *ratios, astray, *ranges))


def _ranges(parts: Sequence[Runs], name: str) -> list[str]:
    values = np.array([part.mean(name) for part in parts])
    shown = [[show(round(v, 2) if name == "coverage" else v, 2) for v in ends] for ends in _ends(values)]
    return [low if low == high else f"{low}-{high}" for low, high in shown]


def _ends(values: Array) -> list[tuple[float, float]]:
    return [(float(np.nanmin(row)), float(np.nanmax(row))) for row in values.T]


def _rules_table(runs: Runs, settings: Mapping[str, Any]) -> Table:
    parts = [of_rules(runs, settings, system) for system in SYSTEMS]
    return _glance("Rules: error over the lowest", list(RULES), "rule", parts, [best(part) for part in parts])


def _represented_table(runs: Runs, settings: Mapping[str, Any], rule: str) -> Table:
    parts = [represented(runs, settings, system, rule) for system in SYSTEMS]
    title = f"Representations, rule {rule}: error over that of Exact()"
    return _glance(title, list(REPRESENTATIONS), "representation", parts, [exact()] * len(parts))


def _growth_table(runs: Runs, settings: Mapping[str, Any], name: str, title: str) -> Table:
    parts = [growing(runs, settings, label) for label in GROWING]
    header = ["n", *GROWING, *(f"rank of {label}" for label in GROWING if name == "step")]
    ranks = [np.round(part.mean("rank")).astype(int) for part in parts if name == "step"]
    return Table(title, header, columns(parts[0].case("n"), *(part.estimates(name) for part in parts), *ranks))


def _tuning_table(runs: Runs, settings: Mapping[str, Any]) -> Table:
    usual, others = settings["tune"], settings["other_tunes"]
    tunes = sorted([usual, *others])
    rows = []
    for system, n in settings["lengths"].items():
        base = _one(runs, settings, system, "iw", usual)
        ratios = [_ratio(_one(runs, settings, system, "iw", tune), base) for tune in others]
        fits = runs.where(system=system, n=n, method="iw", representation="default")
        rows.append((system, *ratios, *(fits.where(tune=tune).mean("fit")[0] for tune in tunes)))
    header = ["system", *(f"tune={tune}" for tune in others), *(f"seconds, tune={tune}" for tune in tunes)]
    return Table("Tuning: error of iw over that with the usual amount", header, rows)


def _details(runs: Runs, settings: Mapping[str, Any]) -> Table:
    """A row for each system, rule and representation, relative to the best row of its system."""
    header = ["system", "rule", "representation", "error / best", "CRPS / best"]
    header += ["coverage", "% astray", "seconds to fit", "ms a step", "rank", "rank of states"]
    rows: list[tuple[Any, ...]] = []
    for system in SYSTEMS:
        on_others = [represented(runs, settings, system, rule) for rule in ON_REPRESENTATIONS]
        part = _joined([of_rules(runs, settings, system), *(others.take(_not_default()) for others in on_others)])
        labels = [part.case(name) for name in ("system", "method", "representation")]
        relative = [against(part, best(part, name), name) for name in ("error", "crps")]
        rest = [part.mean(name) for name in ("coverage", "fit", "step", "rank", "latent_rank")]
        rows += columns(*labels, *relative, rest[0], 100 * part.mean("outside"), *rest[1:])
    return Table("Each rule and representation on each system", header, rows)


def _not_default() -> list[int]:
    return [i for i, name in enumerate(REPRESENTATIONS) if name != "default"]


def _joined(parts: Sequence[Runs]) -> Runs:
    cases = [case for part in parts for case in part.cases]
    return Runs(cases, {name: np.concatenate([part[name] for part in parts]) for name in parts[0].values})

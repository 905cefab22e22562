"""Tables of the zoo: every cell, means over problems, and how many problems each method wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..._typing import Array
from .._estimates import Estimate, mean, show
from .._result import Table
from .._study import Runs
from ._methods import METHODS, ONE, ROUNDS
from ._problem import ZooProblem

SETS = {"all": (False, True), "tuned on": (False,), "held out": (True,)}


def tables(runs: Runs, problems: Mapping[str, ZooProblem]) -> list[Table]:
    """What the problems are, means over problems, problems won, and the cells of each size."""
    sizes = sizes_of(runs)
    listed = [
        (p.name, p.kind, "held out" if p.held_out else "tuned on", p.dimension, p.about) for p in problems.values()
    ]
    out = [
        Table("Problems", ["problem", "kind", "set", "parameters", "what it is"], listed),
        _summary(runs),
        _wins(runs),
    ]
    for size in sizes:
        out += [
            _cells(runs, size, ("c2st",), "C2ST"),
            _cells(runs, size, ("mean_error", "sd_ratio", "coverage"), "Error of the mean / width / coverage"),
            _cells(runs, size, ("seconds",), "Seconds of a processor"),
        ]
    return out


def sizes_of(runs: Runs) -> list[int]:
    """Numbers of simulations."""
    return sorted(set(runs.case("size").tolist()))


def methods_of(runs: Runs, group: str | None = None) -> list[str]:
    """Methods that were run, in their order."""
    ran = set(runs.case("method").tolist())
    return [name for name, method in METHODS.items() if name in ran and group in (None, method.group)]


def of_problems(runs: Runs, size: int, name: str, measure: str, held_out: Sequence[bool] = (False, True)) -> Array:
    """Means over observations (problems,) of one measure of one method, in the order of the problems."""
    rows = [row for held in held_out for row in runs.where(size=size, method=name, held_out=held)[measure]]
    return np.array([_mean(row) for row in rows])


def side_by_side(runs: Runs, size: int, names: Sequence[str], held_out: Sequence[bool] = (False, True)) -> Array:
    """C2ST (problems, methods) on the problems and observations that all these methods have."""
    part = runs.where(size=size)
    rows = []
    for problem in dict.fromkeys(part.case("problem").tolist()):
        found = [part.where(problem=problem, method=name) for name in names]
        if any(len(f.cases) == 0 or f.cases[0]["held_out"] not in held_out for f in found):
            continue
        scores = np.array([f["c2st"][0] for f in found])
        both = np.isfinite(scores).all(0)
        if both.any():
            rows.append(scores[:, both].mean(1))
    return np.array(rows).reshape(-1, len(names))


def _mean(row: Array) -> float:
    known = row[np.isfinite(row)]
    return float(known.mean()) if len(known) else np.nan


def _summary(runs: Runs) -> Table:
    """Means over problems; widths by their geometric mean, and middle seconds."""

    def row(size: int, group: str, held_out: Sequence[bool], name: str) -> tuple[Any, ...]:
        values = {key: of_problems(runs, size, name, key, held_out) for key in runs.values}
        known = {key: v[np.isfinite(v)] for key, v in values.items()}
        if not len(known["c2st"]):
            return ()
        width = float(np.exp(_mean(np.log(known["sd_ratio"]))))
        middle = float(np.median(known["seconds"])) if len(known["seconds"]) else np.nan
        means = [_estimate(known[key]) for key in ("c2st", "mean_error")]
        numbers = [*means, width, _mean(known["coverage"]), middle, _mean(known["warned"])]
        return (size, group, METHODS[name].label, len(known["c2st"]), *numbers)

    rows = [
        row(size, s, held, name) for size in sizes_of(runs) for s, held in SETS.items() for name in methods_of(runs)
    ]
    header = ["simulations", "problems", "method", "of them", "C2ST", "error of the mean", "width", "coverage"]
    return Table(
        "Means over problems (standard errors over problems)",
        [*header, "seconds, median", "share that warned"],
        [r for r in rows if r],
    )


def _estimate(values: Array) -> Estimate:
    return mean(values) if len(values) else Estimate(np.nan, np.nan)


def _wins(runs: Runs) -> Table:
    """In how many problems each method has the lowest C2ST of its group, where all of the group were run."""
    rows = []
    for size in sizes_of(runs):
        for group in (ONE, ROUNDS):
            names = methods_of(runs.where(size=size), group)
            if len(names) < 2:
                continue
            for label, held_out in SETS.items():
                scores = side_by_side(runs, size, names, held_out)
                if len(scores):
                    won = np.bincount(scores.argmin(1), minlength=len(names))
                    told = ", ".join(f"{METHODS[n].label} {w}" for n, w in zip(names, won.tolist(), strict=True))
                    rows.append((size, group, label, len(scores), told))
    header = ["simulations", "methods", "problems", "of them", "lowest C2ST in"]
    return Table("Problems won", header, rows)


def _cells(runs: Runs, size: int, measures: Sequence[str], title: str) -> Table:
    """Problems by methods, means over observations."""
    part = runs.where(size=size)
    names = methods_of(part)

    def cell(problem: str, name: str) -> str:
        found = part.where(problem=problem, method=name)
        return " / ".join(show(_mean(found[key][0])) for key in measures) if found.cases else ""

    problems = dict.fromkeys(part.case("problem").tolist())
    rows = [(problem, *(cell(problem, name) for name in names)) for problem in problems]
    return Table(f"{title}, {size} simulations", ["problem", *(METHODS[name].label for name in names)], rows)


def pairs(runs: Runs, own: str, rivals: Sequence[str]) -> Iterator[tuple[int, list[str], Array]]:
    """By size: the rivals that were run with a method, and C2ST (problems held out, it and its rivals)."""
    for size in sizes_of(runs):
        there = methods_of(runs.where(size=size))
        others = [name for name in rivals if name in there]
        if own in there and others:
            scores = side_by_side(runs, size, [own, *others], SETS["held out"])
            if len(scores):
                yield size, others, scores

"""Answers to the questions of the notes, what is known beforehand, and what was found beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._estimates import mean, show
from .._result import Claim, verdict
from .._study import Runs
from ._examples import EXAMPLES, METHODS, title
from ._reading import (
    CLEAR,
    by_dimension,
    chosen_in,
    clear_at_largest,
    exponent,
    factor,
    helps,
    improvements,
    known_rates,
    larger_step,
    last_clear,
    log_ratios,
)

# Rates agree with a known one within this share of it.
_TOLERANCE = 0.15


def claims(runs: Runs) -> list[Claim]:
    """The questions of the notes, what is known beforehand, and what was found beside them."""
    return [
        _question_one(runs),
        _rough(runs),
        _gaussian(runs),
        _sobolev_dimensions(runs),
        _gaussian_dimensions(runs),
        _uniform_leverage(runs),
        _rates(runs),
        _greedy(runs),
        _weights_matter(runs),
    ]


def _listed(cells: Sequence[Runs], step: int | None = None) -> str:
    """Each example with its improvements, or with one of them."""

    def words(cell: Runs) -> str:
        case, steps = cell.cases[0], [show(factor(logs).value, 3) for logs in improvements(cell)]
        values = " and ".join(steps) if step is None else steps[step]
        return f"{values} ({title(case['example'], case['dimension'])}, n = {case['n']})"

    return ", ".join(map(words, cells))


def _question_one(runs: Runs) -> Claim:
    larger = [larger_step(last_clear(runs, example, d)) for example, d in chosen_in(runs)]
    counts = {name: larger.count(name) for name in ("3 to 4", "1-2 to 3", "level")}
    return Claim(
        "the improvement from leverages to the DPP (3 to 4) is larger than that from draws to leverages (1-2 to 3); asked "
        "there, not claimed",
        "Quadrature notes, question 1",
        f"of {len(larger)} examples it is larger in {counts['3 to 4']}, smaller in {counts['1-2 to 3']} and level, within "
        f"two standard errors, in {counts['level']}.",
        verdict(*(name == "3 to 4" for name in larger)),
    )


def _rough(runs: Runs) -> Claim:
    cells = [last_clear(runs, example, d) for example, d in known_rates(runs)]
    return Claim(
        "on the line, for kernels of finite smoothness, the DPP is what helps, and leverages hardly do",
        "found here, on question 1",
        f"improvements from 1-2 to 3 and from 3 to 4: {_listed(cells)}.",
        verdict(*(larger_step(cell) == "3 to 4" and factor(improvements(cell)[0]).value < 1.25 for cell in cells)),
    )


def _gaussian(runs: Runs) -> Claim:
    cells = [last_clear(runs, example, 1) for example in ("gaussian", "gaussian-short")]
    return Claim(
        "on the line, for the Gaussian kernel and enough nodes, it is the other way round: leverages gain most, and the DPP "
        "adds to that",
        "found here, on question 1",
        f"improvements from 1-2 to 3 and from 3 to 4: {_listed(cells)}.",
        verdict(*(check for c in cells for check in (larger_step(c) == "1-2 to 3", helps(improvements(c)[1])))),
    )


def _sobolev_dimensions(runs: Runs) -> Claim:
    cells = by_dimension(runs, "sobolev-1")
    steps = [mean(improvements(cell)[1]).value for cell in cells]
    return Claim(
        "for the Sobolev kernel the improvement from 3 to 4 falls with every dimension, to next to none",
        "found here, on question 2",
        f"at n = {cells[0].cases[0]['n']}: {_falls(cells)}.",
        verdict(bool((np.diff(steps) < 0).all()), steps[-1] < np.log(1.1)),
    )


def _gaussian_dimensions(runs: Runs) -> Claim:
    """At both numbers of nodes that the figure shows; without three dimensions, of the highest one."""
    shown, checks = [], []
    for cells in (by_dimension(runs, "gaussian"), clear_at_largest(runs, "gaussian")):
        high = [cell for cell in cells if cell.cases[0]["dimension"] >= 3] or list(cells[-1:])
        if high:
            first = [mean(improvements(cell)[0]) for cell in high]
            change = improvements(high[-1])[1].mean() - improvements(high[0])[1].mean()
            spread = np.hypot(mean(improvements(high[0])[1]).error, mean(improvements(high[-1])[1]).error)
            checks += [all(e.value <= 2.0 * e.error for e in first), bool(change >= -2.0 * spread)]
            shown.append(f"at n = {cells[0].cases[0]['n']}: {_falls(cells)}")
    return Claim(
        "for the Gaussian kernel nothing is left from 3-d on of the improvement from 1-2 to 3; that from 3 to 4 is small "
        "there, and does not fall any further",
        "found here, on question 2",
        "; ".join(shown) + ".",
        verdict(*checks),
    )


def _falls(cells: Sequence[Runs]) -> str:
    dimensions = [cell.cases[0]["dimension"] for cell in cells]
    first, second = (", ".join(show(factor(improvements(cell)[step]).value, 3) for cell in cells) for step in (0, 1))
    return f"from 1-2 to 3 by {first} and from 3 to 4 by {second} in dimensions {dimensions[0]} to {dimensions[-1]}"


def _uniform_leverage(runs: Runs) -> Claim:
    cells = [last_clear(runs, e, d) for e, d in chosen_in(runs) if e in ("sobolev-1", "sobolev-2")]
    logs = [mean(log_ratios(cell, "iid", "leverage")) for cell in cells]
    ratios = ", ".join(str(factor(log_ratios(cell, "iid", "leverage"))) for cell in cells)
    return Claim(
        "for the periodic Sobolev kernel under the uniform distribution the leverage density is uniform, so that 3 is 1",
        "Quadrature notes, equation 6",
        f"errors of 1 over those of 3: {ratios}.",
        verdict(*(abs(found.value) <= 3.0 * found.error for found in logs)),
    )


def _rates(runs: Runs) -> Claim:
    """All ways to choose nodes, not only those that keep to it."""
    missed, shown, checks = [], [], []
    for example, dimension in known_rates(runs):
        cells, known = runs.where(example=example, dimension=dimension), EXAMPLES[example].rate or 0.0
        for name, (label, _) in METHODS.items():
            found = exponent(cells, name)
            checks.append(abs(found.value + known) <= _TOLERANCE * known)
            missed += [] if checks[-1] else [f"{label} {found} ({EXAMPLES[example].label}, {show(-known)})"]
            shown += [f"{show(found.value)} ({show(-known)})"] if name == "dpp" else []
    return Claim(
        "with optimal weights the error falls as n to the power -s for order s, whichever way the nodes are chosen; for the "
        "DPP less than that is proven",
        "known beforehand; for the DPP n^(1 - s) is proven by Belhadji, Bardenet and Chainais (2019), who see n^-s",
        f"{sum(checks)} of {len(checks)} exponents are within 15 % of -s. Those of the DPP: {', '.join(shown)}. Not within: "
        f"{_or_none(missed)}.",
        verdict(*checks),
    )


def _greedy(runs: Runs) -> Claim:
    cells = [last_clear(runs, example, d) for example, d in chosen_in(runs)]
    logs = [log_ratios(cell, "dpp", "greedy") for cell in cells]
    ratios = [factor(v) for v in logs if not np.isnan(v).any()]
    values = [ratio.value for ratio in ratios]
    return Claim(
        "nodes that are chosen greedily have smaller errors than those of the DPP wherever they can be had",
        "found here",
        f"they can be had in {len(ratios)} of {len(cells)} examples at the n of the second table; the error of the DPP is "
        f"{show(min(values), 3)} to {show(max(values), 3)} times theirs.",
        verdict(*(helps(v) for v in logs if not np.isnan(v).any())),
    )


def _weights_matter(runs: Runs) -> Claim:
    cells = [last_clear(runs, example, d) for example, d in chosen_in(runs)]
    weights = [log_ratios(cell, "iid_importance", "iid").mean() for cell in cells]
    nodes = [log_ratios(cell, "iid", "dpp").mean() for cell in cells]
    won = [w > v for w, v in zip(weights, nodes, strict=True)]
    fell = [
        title(c.cases[0]["example"], c.cases[0]["dimension"]) for c, good in zip(cells, won, strict=True) if not good
    ]
    return Claim(
        "optimal weights gain more than the choice of nodes does: over equal weights on plain draws, more than the DPP "
        "gains over plain draws",
        "found here",
        f"so it is in {sum(won)} of {len(won)} examples{'; not for ' + ', '.join(fell) if fell else ''}.",
        verdict(*won),
    )


def notes(runs: Runs) -> list[str]:
    """Why cells are empty, and where rounding takes over."""
    missing = {
        name: [f"{title(e, d)} from n = {n}" for e, d, n in _absent(runs, name)] for name in ("dpp", "greedy", "sobol")
    }
    return [
        f"A dash stands for nodes that cannot be had. DPP, more nodes than the numerical rank: {_or_none(missing['dpp'])}. "
        "Greedy, the kernel is known to rounding at all candidates before, if only in some repeats: "
        f"{_or_none(missing['greedy'])}. Sobol, a sample of points has no quantiles: {_or_none(missing['sobol'])}.",
        "A bound such as < 1e-15 stands for an error that cannot be told from rounding (`rule.resolved` is False). Within "
        f"ten times of that bound, and so hardly more than rounding: {_or_none(_rounded(runs))}.",
    ]


def _rounded(runs: Runs) -> list[str]:
    """Methods whose errors are next to nothing but rounding, with the n from which on they are."""
    found = []
    for example, dimension in chosen_in(runs):
        cells = runs.where(example=example, dimension=dimension)
        floor = CLEAR * np.median(cells["resolution"], axis=1)
        for name, (label, _) in METHODS.items():
            low = cells.case("n")[np.median(cells[name], axis=1) <= floor]
            found += [f"{title(example, dimension)}, {label}, from n = {low.min()}"] if len(low) else []
    return found


def _or_none(words: Sequence[str]) -> str:
    return ", ".join(words) or "none"


def _absent(runs: Runs, name: str) -> list[tuple[str, int, int]]:
    """Examples, with the first n at which a method has no nodes in some repeat."""
    found = []
    for example, dimension in chosen_in(runs):
        cells = runs.where(example=example, dimension=dimension)
        missing = [case["n"] for case, row in zip(cells.cases, cells[name], strict=True) if np.isnan(row).any()]
        found += [(example, dimension, min(missing))] if missing else []
    return found

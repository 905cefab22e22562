r"""Where to put the nodes of a quadrature rule. Quadrature notes, section 3.

The notes list four ways to choose nodes, each "weighted appropriately", and four examples, and ask two questions: is the
improvement from 3 to 4 larger than that from 1 or 2 to 3, and how do these improvements change with the dimension? They
claim nothing, so that the claims here are what was found, and each run judges them anew.

| notes | here | nodes |
|---|---|---|
| 1 | `iid` | draws of the distribution |
| 2 | `diagonal` | draws with density k(x, x) |
| 3 | `leverage` | draws with the leverage density, at the regulariser at which a third of n terms count |
| 4 | `dpp` | the determinantal process of the first n eigenfunctions |
| | `herding`, `greedy`, `sobol` | what the notes do not have: herding, sequential Bayesian quadrature, a design |

The measure is the worst-case error over functions of norm one, which needs no integrand. The weights are optimal, that is
those of Bayesian quadrature; importance weights 1 / (n q) and uniform ones are beside them in a table. An *improvement* is
a ratio of errors, as a geometric mean over repeats.

A second part has integrands with known integrals, to see whether the standard deviations of `kb.integrate` can be believed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from .._typing import Array
from ..integration import QuadratureRule, integrate, quadrature
from ..integration._nodes import NODES, Plan
from ..integration._source import Aim, read_source
from ..kernels import Brownian, Gaussian, InfinitePolynomial, PeriodicSobolev
from ..rules.quadrature import importance
from ._estimates import Estimate, mean, rate, show
from ._expected import expected_warnings
from ._figures import ACCENT, FAINT, GOLD, GREEN, INK, PURPLE, SECOND, few_ticks, panels
from ._integrands import GENZ, integrand
from ._result import Claim, Result, Table, verdict
from ._study import Runs, Study

TITLE = "Nodes of kernel quadrature: draws, leverages, determinantal processes and designs"
SOURCE = "Quadrature notes, section 3"

METHODS = {
    "iid": ("1 iid", FAINT),
    "diagonal": ("2 k(x, x)", GOLD),
    "leverage": ("3 leverage", SECOND),
    "dpp": ("4 DPP", ACCENT),
    "herding": ("herding", PURPLE),
    "greedy": ("greedy", GREEN),
    "sobol": ("Sobol", INK),
}
NOTES = ("iid", "diagonal", "leverage", "dpp")
#: Weights other than the optimal ones, by what they are called in a column.
OTHERS = {
    "iid_importance": "1 iid, importance",
    "leverage_importance": "3 leverage, importance",
    "dpp_importance": "4 DPP, importance",
    "herding_uniform": "herding, uniform",
    "sobol_uniform": "Sobol, uniform",
}
#: In the ball of the infinite polynomial kernel: how many points stand for the truncated normal, its spread, its radius.
_BALL = {"points": 2000, "sd": 0.4, "radius": 0.9}


class Example(NamedTuple):
    """A kernel and a distribution, from a dimension and random numbers."""

    label: str
    make: Callable[[int, np.random.Generator], tuple[Any, Any]]
    rate: float | None = None  # exponent s of the error n^-s with optimal weights, where it is known


EXAMPLES = {
    "sobolev-1": Example("Sobolev 1, uniform", lambda d, _: (PeriodicSobolev(1), [stats.uniform()] * d), 1.0),
    "sobolev-2": Example("Sobolev 2, uniform", lambda d, _: (PeriodicSobolev(2), [stats.uniform()] * d), 2.0),
    "beta": Example("Sobolev 1, Beta(2, 5)", lambda d, _: (PeriodicSobolev(1), [stats.beta(2, 5)] * d), 1.0),
    "gaussian": Example("Gaussian 1, normal", lambda d, _: (Gaussian(1.0), [stats.norm()] * d)),
    "gaussian-short": Example("Gaussian 0.3, normal", lambda d, _: (Gaussian(0.3), [stats.norm()] * d)),
    "brownian": Example("Brownian 1/2, uniform", lambda d, _: (Brownian(0.5), [stats.uniform()] * d), 1.0),
    "fractional": Example("Brownian 3/4, uniform", lambda d, _: (Brownian(0.75), [stats.uniform()] * d), 1.25),
    "polynomial": Example("polynomial, ball", lambda d, rng: (InfinitePolynomial(1.0), _in_ball(d, rng))),
}
#: Examples with a dimension that grows.
SWEEPS = ("sobolev-1", "gaussian")
#: What is said of nodes that cannot be had; the last of a factorisation that rounding has spoilt.
_BEYOND = ("numerical rank", "known to rounding", "quantiles", "not positive semidefinite")
#: Those whose distribution is a sample, drawn anew in each repeat.
_DRAWN = ("polynomial",)


def _in_ball(dimension: int, rng: np.random.Generator) -> Array:
    """Draws of a normal that is truncated to a ball."""
    found = np.empty((0, dimension))
    while len(found) < _BALL["points"]:
        tried = rng.normal(0.0, _BALL["sd"], (_BALL["points"], dimension))
        found = np.concatenate([found, tried[(tried**2).sum(1) <= _BALL["radius"] ** 2]])
    return found[: int(_BALL["points"])]


# ------------------------------------------------------------------------------------------- worst-case errors


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """Errors of all methods; NaN where nodes cannot be had, and the smallest error that can be told from zero."""
    example = settings["example"]
    aim = _aim(example, settings["dimension"], rng) if example in _DRAWN else _kept_aim(example, settings["dimension"])
    seed = int(rng.integers(2**31))
    rules = {name: _rule(aim, settings["n"], name, seed) for name in METHODS}
    errors = {name: np.nan if rule is None else rule.worst_case_error for name, rule in rules.items()}
    others = {name: _reweighed(rules[name.split("_")[0]], name.split("_")[1]) for name in OTHERS}
    return {**errors, **others, "resolution": max(rule.resolution for rule in rules.values() if rule is not None)}


def _aim(example: str, dimension: int, rng: np.random.Generator) -> Aim:
    kernel, distribution = EXAMPLES[example].make(dimension, rng)
    return Aim(read_source(distribution), kernel)


@functools.cache
def _kept_aim(example: str, dimension: int) -> Aim:
    """Of a distribution that is the same in all repeats: its embedding and expansion need not be found anew."""
    return _aim(example, dimension, np.random.default_rng(0))


def _rule(aim: Aim, n: int, nodes: str, seed: int) -> QuadratureRule | None:
    """As `kb.quadrature` makes it, but all methods share what they need to know about the kernel.

    None for more nodes than the numerical rank, and for a design of a sample, which has no quantiles.
    """
    empty = np.empty((0, aim.source.dimension))
    try:
        chosen = NODES[nodes](Plan(aim, n, empty, seed, None, None))
    except ValueError as reason:
        if not any(words in str(reason) for words in _BEYOND):
            raise
        return None
    return QuadratureRule(aim, chosen.points, chosen.density, "optimal", 0.0, nodes, {"seed": seed})


def _reweighed(rule: QuadratureRule | None, weights: str) -> float:
    """The error on the same nodes with other weights."""
    if rule is None:
        return np.nan
    n = len(rule)
    other = np.full(n, 1.0 / n) if weights == "uniform" or rule.density is None else importance(rule.density)
    return rule._problem().error(other)


# -------------------------------------------------------------------------------------------------- integrals


def _integral(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """What `kb.integrate` finds, and the plain mean over as many Sobol points."""
    wanted = integrand(settings["integrand"], settings["dimension"])
    n, seed = settings["n"], int(rng.integers(2**31))
    with expected_warnings():
        found = integrate(wanted.f, wanted.distribution, n, random_state=seed)
    plain = quadrature(Gaussian(1.0), wanted.distribution, n, "sobol", "uniform", random_state=seed).integrate(wanted.f)
    value, std = _quotient(found.mean(), found.std()) if wanted.ratio else (found.mean(), found.std())
    plain = plain[0] / plain[1] if wanted.ratio else plain
    numbers = {"truth": wanted.truth, "estimate": value, "std": std, "plain": plain}
    return {**numbers, "problems": float(bool(found.problems))}


def _quotient(means: Array, stds: Array) -> tuple[float, float]:
    """A ratio of two integrals, and its standard deviation to first order, as if their errors were independent."""
    value = means[0] / means[1]
    return float(value), float(np.hypot(stds[0], value * stds[1]) / abs(means[1]))


# --------------------------------------------------------------------------------------------------------- run


def run(study: Study) -> Result:
    """Worst-case errors of all examples, and real integrands."""
    settings = _settings(study.quick)
    runs = study.repeat(_once, settings, _cases(settings))
    cases = _integral_cases(settings)
    integrals = study.repeat(_integral, {"repeats": settings["integral_repeats"]}, cases)
    runs = dataclasses.replace(runs, seconds=runs.seconds + integrals.seconds)
    figures = [study.save(_error_figure(runs)), study.save(_dimension_figure(runs), "dimension")]
    tables = [error_table(runs), gain_table(runs), rate_table(runs), weight_table(runs), integral_table(integrals)]
    found = [*claims(runs), *integral_claims(integrals)]
    return Result(settings, tables, found, figures, runs, notes(runs))


def _settings(quick: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "sizes": [16, 32] if quick else [4, 8, 16, 32, 64, 128],
        "dimensions": [1, 2] if quick else [1, 2, 3, 4, 5],
        "ball": _BALL,
        "integral_repeats": 2 if quick else 10,
        "evaluations": {"1": 32, "2": 64, "3": 48 if quick else 100, "5": 200},
        "repeats": 2 if quick else 20,
    }
    if quick:  # without the two that take longest
        settings["examples"] = [name for name in EXAMPLES if name not in ("beta", "fractional")]
    return settings


def _cases(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Examples on the line, the ball in the plane, and two examples in growing dimension."""
    chosen = [(name, 2 if name == "polynomial" else 1) for name in settings.get("examples", EXAMPLES)]
    chosen += [(name, d) for name in SWEEPS for d in settings["dimensions"] if d > 1]
    return [{"example": name, "dimension": d, "n": n} for name, d in chosen for n in settings["sizes"]]


def _integral_cases(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    dimensions = [d for d in (1, 3, 5) if d <= max(settings["dimensions"])]
    chosen = [(family, d) for family in GENZ for d in dimensions]
    chosen += [("call option", 1), ("Asian option", max(settings["dimensions"])), ("posterior mean", 2)]
    return [{"integrand": name, "dimension": d, "n": settings["evaluations"][str(d)]} for name, d in chosen]


# ----------------------------------------------------------------------------------------- reading the numbers

# Errors this close to the smallest that can be told from zero are left out of ratios.
_CLEAR = 10.0
# Rates are fitted from here on, and agree with a known one within this share of it.
_FIRST, _TOLERANCE = 16, 0.15


def _chosen(runs: Runs) -> list[tuple[str, int]]:
    """Examples and their dimensions, in order."""
    return list(dict.fromkeys((case["example"], case["dimension"]) for case in runs.cases))


def _title(example: str, dimension: int) -> str:
    return EXAMPLES[example].label + (f", {dimension}-d" if dimension > 1 else "")


def _last(runs: Runs, example: str, dimension: int) -> Runs:
    """The case of the largest n at which the notes' four methods can all be had, clear of rounding."""
    cells = runs.where(example=example, dimension=dimension)
    for i in reversed(range(len(cells.cases))):
        cell = cells.take([i])
        floor = _CLEAR * np.median(cell["resolution"])
        if all(np.median(cell[name]) > floor for name in NOTES):  # a NaN is above nothing
            return cell
    return cells.take([0])


def _logs(cell: Runs, worse: str, better: str) -> Array:
    """Logarithms of the ratio of two methods' errors in a case, one for each repeat."""
    return np.log(cell[worse][0] / cell[better][0])


def _steps(cell: Runs) -> tuple[Array, Array]:
    """Logarithms of the improvements from the better of methods 1 and 2 to 3, and from 3 to 4."""
    start = "diagonal" if _logs(cell, "iid", "diagonal").mean() > 0 else "iid"
    return _logs(cell, start, "leverage"), _logs(cell, "leverage", "dpp")


def _factor(logs: Array) -> Estimate:
    """A geometric mean and its standard error."""
    found = mean(logs)
    return Estimate(float(np.exp(found.value)), float(np.exp(found.value) * found.error))


def _helps(logs: Array) -> bool:
    """Whether an improvement is one, by more than twice its standard error."""
    found = mean(logs)
    return found.value > 2.0 * found.error


def _which(cell: Runs) -> str:
    """Which of the two improvements is larger by more than twice the standard error of the difference."""
    first, second = _steps(cell)
    difference = mean(second - first)
    if abs(difference.value) <= 2.0 * difference.error:
        return "level"
    return "3 to 4" if difference.value > 0 else "1-2 to 3"


def _rate(cells: Runs, name: str) -> Estimate:
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
    return [runs.where(example=e, dimension=d).take([-1]) for e, d in _chosen(runs)]


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
    for example, dimension in _chosen(runs):
        cell = _last(runs, example, dimension)
        first, second = map(_factor, _steps(cell))
        beyond = _logs(cell, "dpp", "greedy")
        further = "-" if np.isnan(beyond).any() else _factor(beyond)
        label, n = EXAMPLES[example].label, cell.cases[0]["n"]
        rows.append((label, dimension, n, first, second, _which(cell), further))
    title = "Improvements, as ratios of errors at the largest n clear of rounding: geometric means (standard errors)"
    header = ["kernel and distribution", "d", "n", "1-2 to 3", "3 to 4", "larger", "4 to greedy"]
    return Table(title, header, rows)


def rate_table(runs: Runs) -> Table:
    """Exponents where the best one is known."""
    rows = []
    for example, dimension in _known(runs):
        cells = runs.where(example=example, dimension=dimension)
        found = [_rate(cells, name) for name in (*METHODS, "iid_importance", "dpp_importance")]
        rows.append((EXAMPLES[example].label, -EXAMPLES[example].rate, *found))  # type: ignore[operator]
    header = [label for label, _ in METHODS.values()] + [OTHERS[name] for name in ("iid_importance", "dpp_importance")]
    title = f"Exponents of n, fitted from n = {_FIRST} on: means over the repeats (standard errors)"
    return Table(title, ["kernel and distribution", "known", *header], rows)


def _known(runs: Runs) -> list[tuple[str, int]]:
    return [(e, d) for e, d in _chosen(runs) if EXAMPLES[e].rate is not None and d == 1]


def integral_table(runs: Runs) -> Table:
    """Real integrands: what is said about the error beside what it is."""
    rows = []
    for i, case in enumerate(runs.cases):
        one = runs.take([i])
        error, std = _misses(one)[0], one["std"][0]
        middle = [np.median(v) for v in (one["estimate"][0], error, std, error / std)]
        plain = np.median(np.abs(one["plain"] - one["truth"]))
        shares = [float((error <= 2.0 * std).mean()), float(one["problems"].mean())]
        rows.append((*case.values(), f"{one['truth'][0, 0]:.6g}", f"{middle[0]:.6g}", *middle[1:], *shares, plain))
    header = [
        "integrand",
        "d",
        "n",
        "truth",
        "estimate",
        "error",
        "sd",
        "error / sd",
        "within 2 sd",
        "warned",
        "Sobol mean",
    ]
    return Table("Integrals by kb.integrate: medians over the seeds, and errors of the plain Sobol mean", header, rows)


def _misses(runs: Runs) -> Array:
    return np.abs(runs["estimate"] - runs["truth"])


# ------------------------------------------------------------------------------------------------------ claims


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
        case, steps = cell.cases[0], [show(_factor(logs).value, 3) for logs in _steps(cell)]
        values = " and ".join(steps) if step is None else steps[step]
        return f"{values} ({_title(case['example'], case['dimension'])}, n = {case['n']})"

    return ", ".join(map(words, cells))


def _question_one(runs: Runs) -> Claim:
    larger = [_which(_last(runs, example, d)) for example, d in _chosen(runs)]
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
    cells = [_last(runs, example, d) for example, d in _known(runs)]
    return Claim(
        "on the line, for kernels of finite smoothness, the DPP is what helps, and leverages hardly do",
        "found here, on question 1",
        f"improvements from 1-2 to 3 and from 3 to 4: {_listed(cells)}.",
        verdict(*(_which(cell) == "3 to 4" and _factor(_steps(cell)[0]).value < 1.25 for cell in cells)),
    )


def _gaussian(runs: Runs) -> Claim:
    cells = [_last(runs, example, 1) for example in ("gaussian", "gaussian-short")]
    return Claim(
        "on the line, for the Gaussian kernel and enough nodes, it is the other way round: leverages gain most, and the DPP "
        "adds to that",
        "found here, on question 1",
        f"improvements from 1-2 to 3 and from 3 to 4: {_listed(cells)}.",
        verdict(*(check for c in cells for check in (_which(c) == "1-2 to 3", _helps(_steps(c)[1])))),
    )


def _sobolev_dimensions(runs: Runs) -> Claim:
    cells = _by_dimension(runs, "sobolev-1")
    steps = [mean(_steps(cell)[1]).value for cell in cells]
    return Claim(
        "for the Sobolev kernel the improvement from 3 to 4 falls with every dimension, to next to none",
        "found here, on question 2",
        f"at n = {cells[0].cases[0]['n']}: {_falls(cells)}.",
        verdict(bool((np.diff(steps) < 0).all()), steps[-1] < np.log(1.1)),
    )


def _gaussian_dimensions(runs: Runs) -> Claim:
    """At both numbers of nodes that the figure shows; without three dimensions, of the highest one."""
    shown, checks = [], []
    for cells in (_by_dimension(runs, "gaussian"), _clear_at_largest(runs, "gaussian")):
        high = [cell for cell in cells if cell.cases[0]["dimension"] >= 3] or list(cells[-1:])
        if high:
            first = [mean(_steps(cell)[0]) for cell in high]
            change = _steps(high[-1])[1].mean() - _steps(high[0])[1].mean()
            spread = np.hypot(mean(_steps(high[0])[1]).error, mean(_steps(high[-1])[1]).error)
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
    first, second = (", ".join(show(_factor(_steps(cell)[step]).value, 3) for cell in cells) for step in (0, 1))
    return f"from 1-2 to 3 by {first} and from 3 to 4 by {second} in dimensions {dimensions[0]} to {dimensions[-1]}"


def _by_dimension(runs: Runs, example: str) -> list[Runs]:
    dimensions = [d for e, d in _chosen(runs) if e == example]
    n = min(_last(runs, example, d).cases[0]["n"] for d in dimensions)
    return [runs.where(example=example, dimension=d, n=n) for d in dimensions]


def _uniform_leverage(runs: Runs) -> Claim:
    cells = [_last(runs, e, d) for e, d in _chosen(runs) if e in ("sobolev-1", "sobolev-2")]
    logs = [mean(_logs(cell, "iid", "leverage")) for cell in cells]
    ratios = ", ".join(str(_factor(_logs(cell, "iid", "leverage"))) for cell in cells)
    return Claim(
        "for the periodic Sobolev kernel under the uniform distribution the leverage density is uniform, so that 3 is 1",
        "Quadrature notes, equation 6",
        f"errors of 1 over those of 3: {ratios}.",
        verdict(*(abs(found.value) <= 3.0 * found.error for found in logs)),
    )


def _rates(runs: Runs) -> Claim:
    """All ways to choose nodes, not only those that keep to it."""
    missed, shown, checks = [], [], []
    for example, dimension in _known(runs):
        cells, known = runs.where(example=example, dimension=dimension), EXAMPLES[example].rate or 0.0
        for name, (label, _) in METHODS.items():
            found = _rate(cells, name)
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
    cells = [_last(runs, example, d) for example, d in _chosen(runs)]
    logs = [_logs(cell, "dpp", "greedy") for cell in cells]
    ratios = [_factor(v) for v in logs if not np.isnan(v).any()]
    values = [ratio.value for ratio in ratios]
    return Claim(
        "nodes that are chosen greedily have smaller errors than those of the DPP wherever they can be had",
        "found here",
        f"they can be had in {len(ratios)} of {len(cells)} examples at the n of the second table; the error of the DPP is "
        f"{show(min(values), 3)} to {show(max(values), 3)} times theirs.",
        verdict(*(_helps(v) for v in logs if not np.isnan(v).any())),
    )


def _weights_matter(runs: Runs) -> Claim:
    cells = [_last(runs, example, d) for example, d in _chosen(runs)]
    weights = [_logs(cell, "iid_importance", "iid").mean() for cell in cells]
    nodes = [_logs(cell, "iid", "dpp").mean() for cell in cells]
    won = [w > v for w, v in zip(weights, nodes, strict=True)]
    fell = [
        _title(c.cases[0]["example"], c.cases[0]["dimension"]) for c, good in zip(cells, won, strict=True) if not good
    ]
    return Claim(
        "optimal weights gain more than the choice of nodes does: over equal weights on plain draws, more than the DPP "
        "gains over plain draws",
        "found here",
        f"so it is in {sum(won)} of {len(won)} examples{'; not for ' + ', '.join(fell) if fell else ''}.",
        verdict(*won),
    )


def integral_claims(runs: Runs) -> list[Claim]:
    """Whether the standard deviations can be believed, and what the evaluations are worth."""
    inside = _misses(runs) <= 2.0 * runs["std"]
    hard = np.array([case["integrand"] in ("discontinuous", "continuous") for case in runs.cases])
    better = np.median(_misses(runs), axis=1) < np.median(np.abs(runs["plain"] - runs["truth"]), axis=1)
    low = [
        f"{c['integrand']} in {c['dimension']}-d ({inside[i].mean():.0%})"
        for i, c in enumerate(runs.cases)
        if inside[i].mean() < 0.8
    ]
    return [
        Claim(
            "the standard deviations can be believed: errors are within two of them, nineteen times out of twenty",
            "docstring of kb.integrate",
            f"{inside.mean():.0%} of {inside.size} integrals; {inside[~hard].mean():.0%} without the two families of Genz "
            f"that have kinks or jumps. Below 80 %: {', '.join(low) or 'none'}.",
            verdict(bool(inside.mean() >= 0.9), not low),
        ),
        Claim(
            "errors are smaller than those of the plain mean of as many Sobol points",
            "expected of kb.integrate",
            f"the median error is the smaller for {int(better.sum())} of {better.size} integrands.",
            verdict(*better.tolist()),
        ),
    ]


def notes(runs: Runs) -> list[str]:
    """Why cells are empty, and where rounding takes over."""
    missing = {
        name: [f"{_title(e, d)} from n = {n}" for e, d, n in _absent(runs, name)] for name in ("dpp", "greedy", "sobol")
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
    for example, dimension in _chosen(runs):
        cells = runs.where(example=example, dimension=dimension)
        floor = _CLEAR * np.median(cells["resolution"], axis=1)
        for name, (label, _) in METHODS.items():
            low = cells.case("n")[np.median(cells[name], axis=1) <= floor]
            found += [f"{_title(example, dimension)}, {label}, from n = {low.min()}"] if len(low) else []
    return found


def _or_none(words: Sequence[str]) -> str:
    return ", ".join(words) or "none"


def _absent(runs: Runs, name: str) -> list[tuple[str, int, int]]:
    """Examples, with the first n at which a method has no nodes in some repeat."""
    found = []
    for example, dimension in _chosen(runs):
        cells = runs.where(example=example, dimension=dimension)
        missing = [case["n"] for case, row in zip(cells.cases, cells[name], strict=True) if np.isnan(row).any()]
        found += [(example, dimension, min(missing))] if missing else []
    return found


# ----------------------------------------------------------------------------------------------------- figures


def _error_figure(runs: Runs) -> Any:
    """A panel for each example: medians against n, hollow where they cannot be told from rounding."""
    chosen = _chosen(runs)
    rows = -(-len(chosen) // 4)
    figure, axes = panels(rows, 4, (13.0, 3.0 * rows + 0.6))
    for ax, (example, dimension) in zip(np.ravel(axes), chosen, strict=False):
        _errors(ax, runs.where(example=example, dimension=dimension))
        ax.set_title(_title(example, dimension), fontsize=10)
    for ax in np.ravel(axes)[len(chosen) :]:
        ax.set_visible(False)
    for row in np.atleast_2d(axes):
        row[0].set_ylabel("worst-case error", fontsize=9)
    for ax in np.ravel(axes)[len(chosen) - 4 : len(chosen)]:
        ax.set_xlabel("n", fontsize=9)
    handles, labels = np.ravel(axes)[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=10)
    return figure


def _errors(ax: Any, cells: Runs) -> None:
    n, floor = cells.case("n"), np.median(cells["resolution"], axis=1)
    for name, (label, colour) in METHODS.items():
        middle = np.median(cells[name], axis=1)
        style = "--" if name in ("iid", "diagonal") else "-"
        ax.plot(
            n,
            middle,
            style,
            color=colour,
            lw=2.0 if name in ("leverage", "dpp") else 1.3,
            marker="o",
            ms=3.5,
            label=label,
        )
        hidden = middle <= floor
        ax.plot(n[hidden], middle[hidden], "o", color=colour, mfc="white", ms=6)
    ax.set(xscale="log", yscale="log")
    ax.set_xticks(n, [str(size) for size in n])
    ax.minorticks_off()
    _readable(ax)


def _readable(ax: Any) -> None:
    """Numbers along a logarithmic axis: powers of ten alone would leave one that spans less than two of them without any."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    low, high = ax.get_ylim()
    if high < 100.0 * low:
        few_ticks(ax.yaxis)
    if high < 6.0 * low:
        ax.yaxis.set_major_locator(MaxNLocator(5))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _dimension_figure(runs: Runs) -> Any:
    """Improvements against the dimension, at the largest n at which all of them can be compared, and at the largest."""
    figure, axes = panels(1, len(SWEEPS), (11.0, 4.6))
    for ax, example in zip(axes, SWEEPS, strict=True):
        common, largest = _by_dimension(runs, example), _clear_at_largest(runs, example)
        sizes = [cells[0].cases[0]["n"] for cells in (common, largest) if cells]
        _improvements(ax, common, f"n = {sizes[0]}", "-")
        if sizes[-1] > sizes[0]:
            _improvements(ax, largest, f"n = {sizes[1]}", "--")
        ax.axhline(1.0, color=FAINT, lw=1)
        ax.set(yscale="log", xlabel="dimension", xticks=[cell.cases[0]["dimension"] for cell in common])
        _readable(ax)
        ax.set_title(EXAMPLES[example].label, fontsize=10)
        ax.legend(frameon=False, fontsize=9)
    axes[0].set_ylabel("improvement: ratio of errors")
    return figure


def _clear_at_largest(runs: Runs, example: str) -> list[Runs]:
    """The cases of the largest n, in the dimensions in which it is clear of rounding."""
    most = runs.case("n").max()
    cells = [_last(runs, e, d) for e, d in _chosen(runs) if e == example]
    return [cell for cell in cells if cell.cases[0]["n"] == most]


def _improvements(ax: Any, cells: Sequence[Runs], words: str, line: str) -> None:
    dimensions = [cell.cases[0]["dimension"] for cell in cells]
    series = {"1-2 to 3": (lambda cell: _steps(cell)[0], SECOND), "3 to 4": (lambda cell: _steps(cell)[1], ACCENT)}
    series["4 to greedy"] = (lambda cell: _logs(cell, "dpp", "greedy"), GREEN)
    for label, (logs, colour) in series.items():
        found = [mean(logs(cell)) for cell in cells]
        _bars(ax, dimensions, found, f"{label}, {words}", color=colour, ls=line)


def _bars(ax: Any, x: Sequence[int], logs: Sequence[Estimate], label: str, **style: Any) -> None:
    """Geometric means, with two standard errors up and down."""
    middle = np.exp([found.value for found in logs])
    low, high = (np.exp([found.value + side * 2.0 * found.error for found in logs]) for side in (-1.0, 1.0))
    ax.errorbar(x, middle, [middle - low, high - middle], marker="o", ms=5, lw=1.6, capsize=3, label=label, **style)

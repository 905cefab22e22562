r"""Which rule and which representation for a filter: all of them on the same sequences, of three systems.

| system | source | n | what is hard about it |
|---|---|---|---|
| oscillatory | Xu et al. (2022), equation (5) | 300 | the motion is far from linear |
| SSM 2a | Kanagawa (2016), table 4.2 | 300 | the state is the spread of the observation, whose mean says nothing |
| SSM 3a | the same | 200 | as 2a, with ten observations at a time: a kernel whose rank is n |

A log of n steps is learned from, and 400 new steps are followed. Errors are squared and summed over the coordinates. All
filters choose their settings as they do by default; one table says what more and less of that is worth. A representation is
that of observations and of states alike.

| method | knows |
|---|---|
| a rule's name | the log: `kb.KernelBayesFilter` |
| `monte carlo` | the log, and how states move: `kb.KernelMonteCarloFilter` |
| `regression` | the log, but nothing of time: the mean of the state given the observation |
| `particles` | the whole system: a particle filter, the floor |

Seconds are the processor's, so that a busy machine does not show in them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._linalg import FactorisationError
from .._typing import Array
from ..features import Exact, IncompleteCholesky, RandomFourier, Recipe, Subspace
from ..filters import KernelBayesFilter, KernelMonteCarloFilter
from ..rules.bayes import RULES
from . import _systems
from ._baselines import particle_filter, regression
from ._estimates import Estimate, jackknife, rate, show
from ._expected import expected_warnings
from ._figures import ACCENT, FAINT, GOLD, INK, SECOND, curves, few_ticks, panels
from ._result import Claim, Result, Table, columns, verdict
from ._study import Runs, Study

TITLE = "Which filter: every rule and every representation on three systems"
SOURCE = "Systems of Xu et al. (2022), section 5.2, and Kanagawa (2016), table 4.2"

SYSTEMS: dict[str, _systems.System] = {
    "oscillatory": _systems.OSCILLATORY,
    "SSM 2a": _systems.StateSpace("2a"),
    "SSM 3a": _systems.StateSpace("3a"),
}
_COLOURS = dict(zip(SYSTEMS, (ACCENT, INK, GOLD), strict=True))
#: Name in the tables -> recipe for observations and states; None is the library's own choice.
REPRESENTATIONS: dict[str, Recipe | None] = {
    "default": None,
    "Exact()": Exact(),
    "IncompleteCholesky(20)": IncompleteCholesky(20),
    "IncompleteCholesky(50)": IncompleteCholesky(50),
    "Subspace(50)": Subspace(50),
    "Subspace(100)": Subspace(100),
    'Subspace(50, "kmeans")': Subspace(50, "kmeans"),
    'Subspace(100, "kmeans")': Subspace(100, "kmeans"),
    "RandomFourier(200)": RandomFourier(200),
}
#: Those that differ in rank alone, the lower one first.
_PAIRS = (
    ("IncompleteCholesky(20)", "IncompleteCholesky(50)"),
    ("Subspace(50)", "Subspace(100)"),
    ('Subspace(50, "kmeans")', 'Subspace(100, "kmeans")'),
)
_ON_REPRESENTATIONS = ("iw", "subspace")
#: What the tables over the length of the log compare: label -> rule, representation, colour.
_GROWING = {
    "iw": ("iw", "default", ACCENT),
    "iw, rank 50": ("iw", "IncompleteCholesky(50)", SECOND),
    "subspace": ("subspace", "default", INK),
}
_GROWTH_SYSTEM = "oscillatory"
_KNOWING = {
    "regression": "regression: the log, without time",
    "iw": "KernelBayesFilter: the log",
    "monte carlo": "KernelMonteCarloFilter: the log and the transition",
    "particles": "particle filter: the system",
}
_NUMBERS = ("error", "crps", "coverage", "outside", "fit", "step", "rank", "latent_rank")


# ------------------------------------------------------------------------------------------------------- cases


def _case(system: str, n: int, method: str, tune: int, representation: str = "default") -> dict[str, Any]:
    return {"system": system, "n": n, "method": method, "tune": tune, "representation": representation}


def _cases(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Everything that is run on the sequences of one repeat, each once."""
    tune = settings["tune"]
    found = []
    for system, n in settings["lengths"].items():
        found += [_case(system, n, rule, tune) for rule in RULES]
        found += [_case(system, n, "monte carlo", tune)]
        found += [_case(system, n, "iw", other) for other in settings["other_tunes"]]
        found += [_case(system, n, method, 0) for method in ("regression", "particles")]
        found += [_case(system, n, rule, tune, name) for rule in _ON_REPRESENTATIONS for name in REPRESENTATIONS]
    for n in settings["sizes"]:
        found += [_case(_GROWTH_SYSTEM, n, rule, tune, name) for rule, name, _ in _GROWING.values()]
    return [case for i, case in enumerate(found) if case not in found[:i]]


# -------------------------------------------------------------------------------------------------- one repeat


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    system = SYSTEMS[settings["system"]]
    of_test, of_training, of_particles = rng.spawn(3)
    log = _systems.simulate(system, settings["n"], of_training)
    new = _systems.simulate(system, settings["test_steps"], of_test)
    numbers = dict.fromkeys(_NUMBERS, float("nan"))
    start = time.process_time()
    if settings["method"] == "regression":
        found = regression(log.states, log.observations, new.observations)
    elif settings["method"] == "particles":
        found = particle_filter(system, new.observations, of_particles, particles=settings["particles"])
    else:
        return numbers | _followed(_model(system, settings), log, new)
    taken = 1e3 * (time.process_time() - start) / len(new.states)
    return numbers | {"error": float(((found - new.states) ** 2).sum(1).mean()), "step": taken}


def _model(system: _systems.System, settings: Mapping[str, Any]) -> Any:
    """A kernel filter, not yet fitted."""
    common: dict[str, Any] = {"tune": settings["tune"], "progress": False, "random_state": 0}
    if settings["method"] == "monte carlo":
        return KernelMonteCarloFilter(system.transition, system.initial, **common)
    recipe = REPRESENTATIONS[settings["representation"]]
    return KernelBayesFilter(settings["method"], features=recipe, latent_features=recipe, **common)


def _followed(model: Any, log: _systems.Sequence, new: _systems.Sequence) -> dict[str, float]:
    """What a kernel filter makes of new steps, and what that takes; nothing where a factorisation fails."""
    start = time.process_time()
    try:
        with expected_warnings():
            model.fit(log.observations, log.states)
            model.step(new.observations[0])  # what is made on first use belongs to learning
            model.reset()
            learned = time.process_time()
            track = model.filter(new.observations)
            mean = track.mean()
            done = time.process_time()
    except FactorisationError:
        return {}
    score = track.score(new.states)
    low, high = log.states.min(0), log.states.max(0)
    numbers = {
        "error": score.mse,
        "crps": np.mean(score.crps),
        "coverage": np.mean(score.coverage),
        "outside": ((mean < low) | (mean > high)).any(1).mean(),
        "fit": learned - start,
        "step": 1e3 * (done - learned) / len(mean),
    }
    if isinstance(model, KernelBayesFilter):
        parts = model._recursion
        numbers |= {"rank": parts.features.rank, "latent_rank": parts.states.features.rank}
    return {name: float(value) for name, value in numbers.items()}


def _settings(quick: bool) -> dict[str, Any]:
    return {
        "lengths": dict(zip(SYSTEMS, (100, 100, 60) if quick else (300, 300, 200), strict=True)),
        "sizes": [100, 300] if quick else [100, 300, 1000, 3000, 10_000],
        "test_steps": 100 if quick else 400,
        "tune": 2 if quick else KernelBayesFilter().tune,
        "other_tunes": [0, 4] if quick else [0, 50],
        "particles": 2000,
        "repeats": 2 if quick else 3,
    }


def run(study: Study) -> Result:
    """Rules, representations, lengths of the log and tuning, on the same sequences."""
    settings = _settings(study.quick)
    runs = study.repeat(_once, settings, _cases(settings), paired=True)
    figures = [study.save(_figure(runs, settings))]
    return Result(settings, _tables(runs, settings), claims(runs, settings), figures, runs)


# ------------------------------------------------------------------------------------- reading the numbers


def _rules(runs: Runs, settings: Mapping[str, Any], system: str) -> Runs:
    """The rules on one system, in their order."""
    there = runs.where(system=system, n=settings["lengths"][system], tune=settings["tune"], representation="default")
    return there.take([i for i, case in enumerate(there.cases) if case["method"] in RULES])


def _represented(runs: Runs, settings: Mapping[str, Any], system: str, rule: str) -> Runs:
    """The representations under one rule on one system, in their order."""
    n, tune = settings["lengths"][system], settings["tune"]
    there = runs.where(system=system, n=n, tune=tune, method=rule)
    place = {case["representation"]: i for i, case in enumerate(there.cases)}
    return there.take([place[name] for name in REPRESENTATIONS])


def _one(runs: Runs, settings: Mapping[str, Any], system: str, method: str, tune: int) -> Array:
    """Errors (repeats,) of one method on one system."""
    n = settings["lengths"][system]
    return runs.where(system=system, n=n, method=method, tune=tune, representation="default")["error"][0]


def _ratio(errors: Array, base: Array) -> Estimate:
    """Mean errors of two methods on the same runs, the first over the second; finer digits mean nothing."""
    found = jackknife(lambda a, b: a.mean() / b.mean(), errors, base)
    return Estimate(round(found.value, 3), round(found.error, 3))


def _against(runs: Runs, base: int, name: str = "error") -> list[Estimate]:
    """Every case of some over one of them."""
    return [_ratio(row, runs[name][base]) for row in runs[name]]


def _best(runs: Runs, name: str = "error") -> int:
    """The case with the lowest mean; one that failed in some run is none."""
    return int(np.nanargmin(runs.mean(name)))


def _exact() -> int:
    return list(REPRESENTATIONS).index("Exact()")


# ------------------------------------------------------------------------------------------------------ tables


def _tables(runs: Runs, settings: Mapping[str, Any]) -> list[Table]:
    return [
        _knowing_table(runs, settings),
        _rules_table(runs, settings),
        *(_represented_table(runs, settings, rule) for rule in _ON_REPRESENTATIONS),
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
    ratios = [_against(part, base) for part, base in zip(parts, bases, strict=True)]
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
    parts = [_rules(runs, settings, system) for system in SYSTEMS]
    return _glance("Rules: error over the lowest", list(RULES), "rule", parts, [_best(part) for part in parts])


def _represented_table(runs: Runs, settings: Mapping[str, Any], rule: str) -> Table:
    parts = [_represented(runs, settings, system, rule) for system in SYSTEMS]
    title = f"Representations, rule {rule}: error over that of Exact()"
    return _glance(title, list(REPRESENTATIONS), "representation", parts, [_exact()] * len(parts))


def _growing(runs: Runs, settings: Mapping[str, Any], label: str) -> Runs:
    rule, name, _ = _GROWING[label]
    found = runs.where(system=_GROWTH_SYSTEM, method=rule, representation=name, tune=settings["tune"])
    place = {case["n"]: i for i, case in enumerate(found.cases)}
    return found.take([place[n] for n in settings["sizes"]])


def _growth_table(runs: Runs, settings: Mapping[str, Any], name: str, title: str) -> Table:
    parts = [_growing(runs, settings, label) for label in _GROWING]
    header = ["n", *_GROWING, *(f"rank of {label}" for label in _GROWING if name == "step")]
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
        on_others = [_represented(runs, settings, system, rule) for rule in _ON_REPRESENTATIONS]
        part = _joined([_rules(runs, settings, system), *(others.take(_not_default()) for others in on_others)])
        labels = [part.case(name) for name in ("system", "method", "representation")]
        against = [_against(part, _best(part, name), name) for name in ("error", "crps")]
        rest = [part.mean(name) for name in ("coverage", "fit", "step", "rank", "latent_rank")]
        rows += columns(*labels, *against, rest[0], 100 * part.mean("outside"), *rest[1:])
    return Table("Each rule and representation on each system", header, rows)


def _not_default() -> list[int]:
    return [i for i, name in enumerate(REPRESENTATIONS) if name != "default"]


def _joined(parts: Sequence[Runs]) -> Runs:
    cases = [case for part in parts for case in part.cases]
    return Runs(cases, {name: np.concatenate([part[name] for part in parts]) for name in parts[0].values})


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs, settings: Mapping[str, Any]) -> list[Claim]:
    """What a user would lean on, judged by mean errors."""
    return [
        _default_rule(runs, settings),
        _approach(runs, settings),
        _step_times(runs, settings),
        _longer(runs, settings),
    ]


def _default_rule(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    ratios, others = [], []
    for system in SYSTEMS:
        part = _rules(runs, settings, system)
        ratios.append(float(part.mean("error")[list(RULES).index("iw")] / part.mean("error")[_best(part)]))
        others.append(part.mean("error") / part.mean("error")[_best(part)])
    worst = dict(zip(RULES, np.max(others, axis=0), strict=True))
    steady = min(worst, key=lambda rule: np.inf if np.isnan(worst[rule]) else worst[rule])
    listed = ", ".join(f"{show(ratio)} on {system}" for ratio, system in zip(ratios, SYSTEMS, strict=True))
    return Claim(
        "the rule of KernelBayesFilter by default, iw, is within 10 % of the best rule on every system",
        "Choice of rule",
        f"its error is that of the best rule times {listed}. The rule that is never far behind is {steady}, at most "
        f"{show(worst[steady])} times the best; the worst is {_worst(worst)}.",
        verdict(*(ratio <= 1.10 for ratio in ratios)),
    )


def _worst(worst: Mapping[str, float]) -> str:
    rule = max(worst, key=lambda name: np.inf if np.isnan(worst[name]) else worst[name])
    return f"{rule}, which failed" if np.isnan(worst[rule]) else f"{rule}, up to {show(worst[rule])} times"


def _approach(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    """Distances are logarithms of the ratio to the exact filter, averaged over systems."""
    checks, far, near = [], [], []
    names = list(REPRESENTATIONS)
    for rule in _ON_REPRESENTATIONS:
        errors = np.array([_represented(runs, settings, system, rule).mean("error") for system in SYSTEMS])
        distance = np.abs(np.log(errors / errors[:, [_exact()]])).mean(0)
        for low, high in _PAIRS:
            far.append(distance[names.index(low)])
            near.append(distance[names.index(high)])
            checks.append(bool(near[-1] < far[-1]))
    return Claim(
        "as their rank grows, representations approach the filter with the kernel itself",
        "Theory, for the same settings; here each has its own",
        f"the larger of two ranks is nearer to Exact() in {sum(checks)} of {len(checks)} comparisons; the error is off by a "
        f"factor of {np.exp(np.mean(far)):.2f} on average with the smaller and {np.exp(np.mean(near)):.2f} with the larger.",
        verdict(*checks),
    )


def _step_times(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    n = np.array(settings["sizes"])
    times = {label: _growing(runs, settings, label).mean("step") for label in ("iw, rank 50", "subspace")}
    far = slice(1, None) if len(n) > 2 else slice(None)  # a short log hides behind what every step costs
    fixed, constant = (round(rate(n[far], taken[far]), 2) + 0.0 for taken in times.values())
    return Claim(
        "a step takes time in proportion to the length of the log at a fixed rank, and constant time with the rule subspace",
        "Gebhardt et al. (2015), section 4",
        f"it grows as n to the power {fixed:.2f} with iw and rank 50 and {constant:.2f} with subspace; at n = {n[-1]} it "
        f"takes {show(times['iw, rank 50'][-1], 2)} ms and {show(times['subspace'][-1], 2)} ms.",
        verdict(fixed < 1.2, abs(constant) < 0.2),
    )


def _longer(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    n = settings["sizes"]
    errors = {label: _growing(runs, settings, label).mean("error") for label in _GROWING}
    falls = {label: found[-1] / found[0] for label, found in errors.items()}
    listed = ", ".join(f"{show(v)} times with {label}" for label, v in falls.items())
    return Claim(
        "a longer log makes for a smaller error",
        "Length of the log",
        f"from n = {n[0]} to n = {n[-1]} the error becomes {listed}.",
        verdict(*(v < 1.0 for v in falls.values())),
    )


# ----------------------------------------------------------------------------------------------------- figures


def _figure(runs: Runs, settings: Mapping[str, Any]) -> Any:
    figure, axes = panels(2, 2, (12.0, 8.5))
    (rules, represented), (errors, times) = axes
    parts = {system: _rules(runs, settings, system) for system in SYSTEMS}
    _dots(rules, list(RULES), {s: _against(part, _best(part)) for s, part in parts.items()})
    rules.set_title("Rules: squared error over the lowest", fontsize=10)
    rules.legend(frameon=False, fontsize=8)
    for rule, style in zip(_ON_REPRESENTATIONS, ("full", "none"), strict=True):
        parts = {system: _represented(runs, settings, system, rule) for system in SYSTEMS}
        ratios = {system: _against(part, _exact()) for system, part in parts.items()}
        _dots(represented, list(REPRESENTATIONS), ratios, fillstyle=style)
    represented.set_title("Representations: the same over Exact(); full: rule iw, open: subspace", fontsize=10)
    _by_length(errors, runs, settings, "error")
    errors.set(ylabel="squared error", yscale="linear")
    errors.set_title(f"Length of the log ({_GROWTH_SYSTEM})", fontsize=10)
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
    for label, (_, _, colour) in _GROWING.items():
        part = _growing(runs, settings, label)
        curves(ax, part.case("n"), part, {name: (label, colour)})
    _plain_ticks(ax, settings["sizes"])
    ax.set_xlabel("steps in the log")

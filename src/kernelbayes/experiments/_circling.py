r"""Filters on points that go round a circle: what the experiments `rotation` and `oscillatory` share.

Xu et al. (2022), section 5.2 and figure 2. Kernel filters learn from a sequence of n steps in which states were recorded,
and follow 200 new steps; errors are squared, summed over the two coordinates. The paper scales both median bandwidths by
one factor, chooses it and lambda on the last 200 steps of training, and eta by leave-one-out. Here `kb.KernelBayesFilter`
chooses each by filtering stretches of the training sequence, in the same way for both rules.

| column | what it is |
|---|---|
| IW, Original | the kernel Bayes filter with `rule="iw"` and `rule="kbr"`, settings chosen from the training sequence |
| IW, first guess | the same without the choice (`tune=0`) |
| regression | the mean of the state given the observation: no memory |
| EKF, particles | filters that know the system, from its start |

A second set of runs tries a grid of settings and picks by the error on the test sequence, which nobody could do in earnest.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ..filters import KernelBayesFilter
from ..kernels import Gaussian, median_lengthscale
from ._baselines import extended_kalman, particle_filter, regression
from ._estimates import show
from ._expected import expected_warnings
from ._figures import ACCENT, FAINT, GOLD, GREEN, INK, SECOND, curves, few_ticks, panels
from ._result import Claim, Result, Table, columns, verdict
from ._study import Once, Runs, Study
from ._systems import Circle, Sequence, simulate

METHODS = {
    "iw": "IW",
    "original": "Original",
    "guess": "IW, first guess",
    "regression": "regression",
    "kalman": "EKF",
    "particles": "particle filter",
}
_COLOURS = dict(zip(METHODS, (ACCENT, INK, GOLD, GREEN, SECOND, FAINT), strict=True))
_RULES = {"iw": "iw", "original": "kbr"}
TEST_STEPS = 200


class Scenario(NamedTuple):
    """One of the two systems, and whether the extended Kalman filter is said to be ahead of the kernel filters."""

    name: str
    system: Circle
    kalman_ahead: bool


def _sequences(system: Circle, settings: Mapping[str, Any], rng: np.random.Generator) -> tuple[Sequence, Sequence]:
    """A training and a test sequence; runs that differ in length only share the start of the one and all of the other."""
    of_test, of_training = rng.spawn(2)
    return simulate(system, settings["n"], of_training), simulate(system, TEST_STEPS, of_test)


def _error(found: Array, test: Sequence) -> float:
    return float(((found - test.states) ** 2).sum(1).mean())


def _filtered(model: KernelBayesFilter, train: Sequence, test: Sequence) -> tuple[float, float]:
    """The error of a kernel filter and the seconds of learning and filtering."""
    start = time.perf_counter()
    with expected_warnings():
        found = model.fit(train.observations, train.states).filter(test.observations).mean()
    return _error(found, test), time.perf_counter() - start


def _once(system: Circle, settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """Errors and seconds of all methods on one pair of sequences."""
    train, test = _sequences(system, settings, rng)
    numbers = {}
    for name, rule, tune in (("iw", "iw", settings["tune"]), ("original", "kbr", settings["tune"]), ("guess", "iw", 0)):
        model = KernelBayesFilter(rule, tune=tune, progress=False, random_state=0)
        numbers[name], numbers[f"seconds_{name}"] = _filtered(model, train, test)
    start = time.perf_counter()
    numbers["regression"] = _error(regression(train.states, train.observations, test.observations), test)
    numbers["seconds_regression"] = time.perf_counter() - start
    numbers["kalman"] = _error(extended_kalman(system, test.observations), test)
    start = time.perf_counter()
    found = particle_filter(system, test.observations, rng, particles=settings["particles"])
    numbers["particles"], numbers["seconds_particles"] = _error(found, test), time.perf_counter() - start
    return numbers


def _by_hand(system: Circle, settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """Errors of both rules under every setting of a grid, on the same sequences as `_once`."""
    train, test = _sequences(system, settings, rng)
    wide, latent_wide = median_lengthscale(train.observations), median_lengthscale(train.states)
    numbers = {}
    for name, rule in _RULES.items():
        grid = itertools.product(
            settings["kernel_scales"], settings["latent_scales"], settings[f"regs_{name}"], settings["prior_regs"]
        )
        for i, (scale, latent_scale, reg, prior_reg) in enumerate(grid):
            model = KernelBayesFilter(
                rule,
                Gaussian(scale * wide),
                Gaussian(latent_scale * latent_wide),
                reg=reg,
                prior_reg=prior_reg,
                transition_reg=prior_reg,
                tune=0,
                random_state=0,
            )
            numbers[f"{name}_{i}"] = _filtered(model, train, test)[0]
    return numbers


def run_on(study: Study, scenario: Scenario) -> Result:
    """Figure 2 for one system: errors over training lengths, paired tests, and the automatic choice beside a grid."""
    lengths = [100, 300] if study.quick else [100, 300, 500, 700, 900]
    settings = {
        "lengths": lengths,
        "test_steps": TEST_STEPS,
        "tune": 5 if study.quick else 15,
        "particles": 2000,
        "repeats": 3 if study.quick else 30,
    }
    grid = {
        "n": 300 if study.quick else 500,
        "kernel_scales": [1.0] if study.quick else [0.5, 1.0],
        "latent_scales": [0.25, 0.5, 1.0],
        "regs_iw": [0.01, 0.1] if study.quick else [0.003, 0.01, 0.03],
        "regs_original": [1e-5, 1e-4] if study.quick else [1e-6, 1e-5, 1e-4],
        "prior_regs": [1e-3] if study.quick else [1e-4, 1e-3, 1e-2],
        "repeats": 3 if study.quick else 8,
    }
    runs = study.repeat(_on(scenario, _once), settings, [{"n": n} for n in lengths], paired=True)
    hand = study.repeat(_on(scenario, _by_hand), grid, [{"n": grid["n"]}], paired=True)
    tables = [_error_table(runs), _pair_table(runs), _hand_table(runs, hand)]
    figures = [study.save(_figure(runs, scenario.name))]
    return Result({**settings, "grid": grid}, tables, claims(runs, hand, scenario), figures, runs, [_note(runs)])


def _on(scenario: Scenario, once: Callable[..., dict[str, float]]) -> Once:
    """One of the functions above on the system of a scenario, with its name, which saved repeats are known by."""
    return functools.update_wrapper(functools.partial(once, scenario.system), once)


# ------------------------------------------------------------------------------------------------------ tables


def _error_table(runs: Runs) -> Table:
    return Table(
        f"Squared error over {TEST_STEPS} steps, summed over coordinates: mean over the repeats (standard error)",
        ["n", *METHODS.values()],
        columns(runs.case("n"), *(runs.estimates(name) for name in METHODS)),
    )


def paired_test(first: Array, second: Array) -> float:
    """p-value of the two-sided signed-rank test that paired errors differ; 1 where all are equal."""
    from scipy import stats

    difference = first - second
    if not difference.any():
        return 1.0
    found: Any = stats.wilcoxon(difference)
    return float(found.pvalue)


def _pair_table(runs: Runs) -> Table:
    iw, original, floor = runs["iw"], runs["original"], runs.mean("particles")
    repeats = iw.shape[1]
    return Table(
        "IW against Original on the same sequences, and both against the particle filter that knows the system",
        ["n", "IW / Original", "IW lower", "signed-rank p", "IW / particle filter", "Original / particle filter"],
        columns(
            runs.case("n"),
            runs.mean("iw") / runs.mean("original"),
            [f"{wins} of {repeats}" for wins in (iw < original).sum(1)],
            [paired_test(a, b) for a, b in zip(iw, original, strict=True)],
            runs.mean("iw") / floor,
            runs.mean("original") / floor,
        ),
    )


class ByHand(NamedTuple):
    """Mean errors of one rule on the same runs: as chosen, with the best one setting, and with the best of each run."""

    chosen: float
    best: float
    best_of_each: float


def compared(runs: Runs, hand: Runs, name: str) -> ByHand:
    """The choice from the training sequence beside choices by the test error."""
    errors = np.array([v[0] for key, v in hand.values.items() if key.startswith(f"{name}_")])  # settings, repeats
    chosen = runs.where(n=int(hand.case("n")[0]))[name][0, : errors.shape[1]]
    # a setting that failed in any run is not a candidate for the best
    return ByHand(float(chosen.mean()), float(np.nanmin(errors.mean(1))), float(np.nanmin(errors, axis=0).mean()))


def _hand_table(runs: Runs, hand: Runs) -> Table:
    rows = []
    for name in _RULES:
        found = compared(runs, hand, name)
        rows.append((METHODS[name], *found, found.chosen / found.best))
    size, repeats = len(hand.values) // len(_RULES), next(iter(hand.values.values())).shape[1]
    return Table(
        f"n = {hand.case('n')[0]}, {repeats} repeats: settings chosen from the training sequence, and by the test error "
        f"from a grid of {size}",
        ["rule", "chosen", "best setting", "best of each run", "chosen / best setting"],
        rows,
    )


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs, hand: Runs, scenario: Scenario) -> list[Claim]:
    """What figure 2 is said to show, and whether the automatic choice costs anything."""
    return [_below(runs), _kalman(runs, scenario.kalman_ahead), _chosen(runs, hand)]


def _span(ratio: Array) -> str:
    return f"{ratio.min():.2f} to {ratio.max():.2f} times"


def _below(runs: Runs) -> Claim:
    ratio = runs.mean("iw") / runs.mean("original")
    p = np.array([paired_test(a, b) for a, b in zip(runs["iw"], runs["original"], strict=True)])
    return Claim(
        "the importance-weighted rule filters slightly better than the original one",
        "Xu et al. (2022), figure 2",
        f"its error is {_span(ratio)} that of the original rule; lower at {int((ratio < 1).sum())} of {len(ratio)} lengths, "
        f"with p < 0.05 by the signed-rank test at {int(((ratio < 1) & (p < 0.05)).sum())}.",
        verdict(*(ratio <= 1.0)),
    )


def _kalman(runs: Runs, ahead: bool) -> Claim:
    ratio = runs.mean("iw") / runs.mean("kalman")
    shown = f"the error of IW is {_span(ratio)} that of the extended Kalman filter, {show(ratio[-1])} at n = " + (
        f"{runs.case('n')[-1]}."
    )
    if ahead:
        statement = "the extended Kalman filter, which knows the dynamics, is slightly better than the kernel filters"
        return Claim(statement, "Xu et al. (2022), figure 2", shown, verdict(*(ratio > 1.0)))
    return Claim(
        "the kernel filters are level with the extended Kalman filter or better, since the dynamics are far from linear",
        "Xu et al. (2022), figure 2",
        shown,
        verdict(*(ratio < 1.05)),
    )


def _chosen(runs: Runs, hand: Runs) -> Claim:
    found = {name: compared(runs, hand, name) for name in _RULES}
    ratios = {name: f.chosen / f.best for name, f in found.items()}
    listed = ", ".join(f"{show(ratios[name])} times for {METHODS[name]}" for name in _RULES)
    return Claim(
        "settings chosen from the training sequence do within 10 % of the best that a grid has for the test sequences",
        "Choice of settings",
        f"the error is {listed}.",
        verdict(*(ratio <= 1.10 for ratio in ratios.values())),
    )


def _note(runs: Runs) -> str:
    gain = runs.mean("iw") / runs.mean("regression")
    floor = runs.mean("iw") / runs.mean("particles")
    return (
        f"Note: memory is worth {100 * (1 - gain.max()):.0f} to {100 * (1 - gain.min()):.0f} % of the error of a "
        "regression. What is left to gain is the distance to the particle filter, which knows the system: a factor of "
        f"{floor[0]:.2f} at n = {runs.case('n')[0]} and {floor[-1]:.2f} at n = {runs.case('n')[-1]}."
    )


# ----------------------------------------------------------------------------------------------------- figures


def _figure(runs: Runs, title: str) -> Any:
    figure, (left, right) = panels(1, 2, (10.5, 4.2))
    n = runs.case("n")
    curves(left, n, runs, {name: (label, _COLOURS[name]) for name, label in METHODS.items()})
    left.set(xlabel="steps of training", ylabel="squared error", xscale="linear", yscale="linear", xticks=n)
    left.set_title(f"{title}: error over {TEST_STEPS} new steps", fontsize=10)
    left.legend(frameon=False, fontsize=8)
    for name in ("iw", "original", "guess", "regression", "particles"):
        seconds = runs.mean(f"seconds_{name}")
        right.plot(seconds, runs.mean(name), "o-", color=_COLOURS[name], lw=1.2, ms=4, label=METHODS[name])
        if name in ("iw", "guess"):
            for x, y, length in zip(seconds, runs.mean(name), n, strict=True):
                right.annotate(
                    str(length), (x, y), (3, 3), textcoords="offset points", fontsize=7, color=_COLOURS[name]
                )
    right.set(xscale="log", xlabel="seconds to learn, choose settings and filter")
    few_ticks(right.xaxis)
    right.set_title("The same against time; numbers are steps of training", fontsize=10)
    return figure

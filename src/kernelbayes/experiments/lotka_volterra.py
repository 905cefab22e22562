r"""Likelihood-free inference of the rates of predators and prey. Hsu (2019), 4.9.3 and 5.9.3.2, figures 4.3 and 5.5 (right).

Four rates with uniform priors on their logarithms, nine statistics, exact stochastic simulation
(`_simulators.lotka_volterra`). Only a small part of the prior gives oscillations. Runs of more than 10,000 events are
abandoned: they fail, about one in eight, and the posterior is that given success. Statistics are divided by their standard
deviation over a pilot of 1,000 runs. In each repeat another observation is simulated at the true rates, and other
simulations are made.

| row | what it is |
|---|---|
| KELFI | `method="kelfi"` as it comes, 2,500 simulations |
| KELFI, marginal | `learn="marginal"` with statistics in units of the pilot: (4.5), lambda = 1e-3 beta; 2,500 |
| DME | `method="dme"`, 2,000 of them |
| KBR | median distances, regularisers 1e-4, 2,500 |
| KBR, tuned | chosen from the data |
| rejection | the nearest 25 |
| KELFI, rounds | `rounds=4`: 2,500 simulations, three quarters of them about the posterior so far |
| SMC-ABC | `method="smc-abc"`, 2,500 |
| KELFI, not adjusted | `adjust=False`: without the regression that KELFI as it comes makes where it scores better |
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ..lfi import METHODS, GaussianEpsilon, ParameterPosterior, infer
from ..simulation import Run, SimulationWarning, simulate
from ._estimates import mean, show
from ._expected import expected_warnings
from ._figures import ACCENT, FAINT, GOLD, GREEN, INK, PURPLE, SECOND, panels
from ._result import Claim, Result, Table, verdict
from ._simulators import RATES, RATES_STATISTICS, RATES_TRUTH, TooManyEvents, rates_prior, simulate_rates
from ._study import Runs, Study

TITLE = "Likelihood-free inference of predator and prey rates"
SOURCE = "Hsu (2019), sections 4.9.3 and 5.9.3.2, figures 4.3 and 5.5 (right)"

_LEVEL = 0.95


class _Way(NamedTuple):
    """A method as `kb.infer` takes it, with what part of the simulations, and whether it runs its own."""

    label: str
    colour: str
    method: str
    settings: Mapping[str, Any] = {}
    share: float = 1.0
    own: bool = False
    rounds: int = 1


_WAYS = {
    "kelfi": _Way("KELFI", ACCENT, "kelfi"),
    "marginal": _Way(
        "KELFI, marginal", GOLD, "kelfi", {"learn": "marginal", "epsilon_kernel": GaussianEpsilon(standardise=False)}
    ),
    "dme": _Way("DME", PURPLE, "dme", share=0.8),
    "kbr": _Way("KBR", INK, "kbr", {"learn": "median", "reg": 1e-4, "prior_reg": 1e-4}),
    "kbr_tuned": _Way("KBR, tuned", SECOND, "kbr"),
    "rejection": _Way("rejection", FAINT, "rejection"),
    "rounds": _Way("KELFI, rounds", "#a23b72", "kelfi", own=True, rounds=4),
    "smc": _Way("SMC-ABC", GREEN, "smc-abc", own=True),
    "unadjusted": _Way("KELFI, not adjusted", "#ef8d98", "kelfi", {"adjust": False}),
}
_PARTS = ("mean", "low", "high")


class _Task(NamedTuple):
    """Statistics in units of a pilot: of the observation (9,) and of simulations (m, 9) at parameters (m, 4)."""

    unit: Array
    observed: Array
    theta: Array
    X: Array
    failed: float

    def simulator(self, log_rates: Array, rng: np.random.Generator) -> Array:
        """For methods that run their own."""
        return simulate_rates(log_rates, rng) / self.unit


def _runs(theta: Array, seed: int) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # one in eight fails
        return simulate(simulate_rates, theta, random_state=seed, progress=False)


def _observation(rng: np.random.Generator) -> Array:
    """Statistics of a run at the true rates; one in two hundred of them fails."""
    while True:
        try:
            return simulate_rates(RATES_TRUTH, rng)
        except TooManyEvents:
            continue


def _task(settings: Mapping[str, Any], rng: np.random.Generator) -> _Task:
    prior, seeds = rates_prior(), [int(s) for s in rng.integers(2**31, size=4)]
    pilot = _runs(prior.sample(settings["pilot"], random_state=seeds[0]), seeds[1])
    unit = pilot.outputs.std(0)
    runs = _runs(prior.design(settings["simulations"], random_state=seeds[2]), seeds[3])
    return _Task(unit, _observation(rng) / unit, runs.parameters, runs.outputs / unit, runs.failure_rate)


def _posterior(way: _Way, task: _Task, settings: Mapping[str, Any], seed: int) -> ParameterPosterior:
    method = METHODS[way.method](**way.settings)
    common = {"prior": rates_prior(), "observed": task.observed, "method": method, "random_state": seed}
    if way.own:
        common |= {
            "simulator": task.simulator,
            "run": Run(pass_dict=False),
            "simulations": settings["simulations"],
            "progress": False,
        }
    else:
        m = round(way.share * len(task.theta))
        common |= {"parameters": task.theta[:m], "outputs": task.X[:m]}
    with expected_warnings(), warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)
        posterior = infer(**common, statistics=RATES_STATISTICS, rounds=way.rounds)
        posterior.mean()
    return posterior


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    task = _task(settings, rng)
    numbers = {"failed": task.failed}
    for name, way in _WAYS.items():
        try:
            found = _read(_posterior(way, task, settings, int(rng.integers(2**31))))
        except ValueError:  # weights that cancel, or a likelihood nowhere above its errors
            found = np.full((len(_PARTS), 4), np.nan)
        numbers |= {f"{name}_{part}_{j + 1}": found[i, j] for i, part in enumerate(_PARTS) for j in range(4)}
    return numbers


def _read(posterior: ParameterPosterior) -> Array:
    """Means, and ends of the middle 95 %: (3, 4)."""
    return np.vstack([posterior.mean(), posterior.interval(_LEVEL)])


# --------------------------------------------------------------------------------------------------------- run


def run(study: Study) -> Result:
    """All methods, on several observations."""
    settings = {
        "simulations": 80 if study.quick else 2500,
        "pilot": 50 if study.quick else 1000,
        "repeats": 1 if study.quick else 5,
    }
    runs = study.repeat(_once, settings, [{}])
    return Result(
        settings, [_intervals(runs), _accuracy(runs)], claims(runs), [study.save(_figure(runs))], runs, [_note(runs)]
    )


def _of(runs: Runs, name: str, part: str) -> Array:
    """(4, repeats)."""
    return np.stack([runs[f"{name}_{part}_{j}"][0] for j in range(1, 5)])


def _inside(runs: Runs, name: str) -> Array:
    """Whether the truth is in the interval (4, repeats)."""
    return (_of(runs, name, "low") <= RATES_TRUTH[:, None]) & (RATES_TRUTH[:, None] <= _of(runs, name, "high"))


def _intervals(runs: Runs) -> Table:
    def cell(name: str, j: int) -> str:
        numbers = [show(_of(runs, name, part)[j, 0]) for part in _PARTS]
        return f"{numbers[0]} ({numbers[1]} to {numbers[2]})"

    rows = [("truth", *map(show, RATES_TRUTH))]
    rows += [(way.label, *(cell(name, j) for j in range(4))) for name, way in _WAYS.items()]
    return Table("Posterior mean and middle 95 % of the first repeat", ["method", *RATES], rows)


def _accuracy(runs: Runs) -> Table:
    rows = []
    for name, way in _WAYS.items():
        error = np.abs(_of(runs, name, "mean") - RATES_TRUTH[:, None])
        width = _of(runs, name, "high") - _of(runs, name, "low")
        covered = _inside(runs, name)
        rows.append(
            (way.label, mean(error[0]), mean(error.mean(0)), mean(width[0]), mean(width.mean(0)), _share(covered))
        )
    return Table(
        "Over the repeats: distance of the mean from the truth, width of the interval, and how many hold the truth",
        ["method", "error, log_theta_1", "error, all four", "width, log_theta_1", "width, all four", "truth inside"],
        rows,
    )


def _share(inside: Array) -> str:
    return f"{int(inside.sum())} of {inside.size}"


def _note(runs: Runs) -> str:
    failed = float(runs.mean("failed")[0])
    return f"Note: {show(100 * failed)} % of the runs were abandoned. The prior's middle 95 % is {0.95 * 7:.2f} wide."


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs) -> list[Claim]:
    """What figures 4.3 and 5.5 (right) are said to show."""
    return [_held(runs, "kelfi", "figure 4.3 (right)"), _held(runs, "dme", "figure 5.5 (right)"), _sharper(runs)]


def _held(runs: Runs, name: str, figure: str) -> Claim:
    inside = _inside(runs, name)
    width = (_of(runs, name, "high") - _of(runs, name, "low"))[0]
    error = (_of(runs, name, "mean") - RATES_TRUTH[:, None])[0]
    return Claim(
        f"the middle 95 % of the marginal posterior of log theta_1 by {_WAYS[name].label} holds the truth, near its mean",
        f"Hsu (2019), {figure}",
        f"it does in {_share(inside[0])} repeats (all four rates: {_share(inside)}); it is {show(width.mean())} wide on "
        f"average, and the mean is off by {show(np.abs(error).mean())}.",
        verdict(bool(inside[0].mean() >= 0.8), bool(np.abs(error).mean() < 0.5)),
    )


def _sharper(runs: Runs) -> Claim:
    """KELFI against KBR with the settings of the thesis."""
    error = {n: np.abs(_of(runs, n, "mean") - RATES_TRUTH[:, None])[0] for n in ("kelfi", "kbr")}
    width = {n: (_of(runs, n, "high") - _of(runs, n, "low"))[0] for n in ("kelfi", "kbr")}
    return Claim(
        "with as many simulations KELFI is more accurate than KBR, and more confident",
        "Hsu (2019), section 4.9.3",
        f"for log theta_1 its mean is off by {show(error['kelfi'].mean())} against {show(error['kbr'].mean())}, and its "
        f"interval is {show(width['kelfi'].mean())} wide against {show(width['kbr'].mean())}.",
        verdict(bool(error["kelfi"].mean() < error["kbr"].mean()), bool(width["kelfi"].mean() < width["kbr"].mean())),
    )


# ----------------------------------------------------------------------------------------------------- figures


def _figure(runs: Runs) -> Any:
    figure, axes = panels(1, 4, (13.0, 4.0))
    repeats = runs["failed"].shape[1]
    for j, ax in enumerate(axes):
        for place, (name, way) in enumerate(_WAYS.items()):
            for r in range(repeats):
                y = place + 0.6 * ((r + 0.5) / repeats - 0.5)
                low, middle, high = (_of(runs, name, part)[j, r] for part in ("low", "mean", "high"))
                ax.plot([low, high], [y, y], color=way.colour, lw=1.4)
                ax.plot(middle, y, "o", color=way.colour, ms=3)
        ax.axvline(RATES_TRUTH[j], color=INK, lw=1, ls=":")
        ax.set(xlim=(-5.2, 2.2), xlabel=f"$\\log \\theta_{j + 1}$", yticks=range(len(_WAYS)))
        ax.set_yticklabels([way.label for way in _WAYS.values()] if j == 0 else [])
        ax.invert_yaxis()
    figure.suptitle("Middle 95 % and mean of the posteriors, one line for each repeat; dotted: the truth", fontsize=10)
    return figure

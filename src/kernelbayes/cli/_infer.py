"""`kernelbayes infer`: the parameters of a simulator from an observation, with tables and figures of the posterior."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._persist import save
from .._summary import Summary
from .._table import read_table
from ..lfi import METHODS, ParameterPosterior, Prior, infer
from ..simulation import Run, Runs, SimulationError, open_runs, simulate
from ..simulation._simulate import store_path
from ._columns import counted
from ._files import folder, tell_written
from ._imported import imported
from ._in_words import inside
from ._observation import Observation, read_observation
from ._options import add_folder, add_limits, add_seed, whole
from ._prior_file import read_prior_file
from ._refusal import Refusal, in_options, plainly, resumable

# How many rows of the design are tried, one after the other call, until one shows what the simulator returns.
_TRIALS = (1, 4, 10)
_FOR_SIMULATOR = ("simulations", "more", "rounds", "store", "workers", "timeout", "max_seconds")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What `infer` takes."""
    command.description = (
        "Run a simulator at parameters from a prior, and infer those that fit an observation; or do so from "
        "runs made elsewhere. Writes draws, a summary and figures into a folder."
    )
    given = command.add_argument_group("what is given")
    given.add_argument("--prior", required=True, metavar="TOML", help="tables [parameters.NAME] with distributions")
    given.add_argument(
        "--observed",
        required=True,
        metavar="CSV",
        help="one row with the names of the statistics above it, or a column of numbers",
    )
    given.add_argument("--simulator", metavar="MODULE:FUNCTION", help="imported from the current folder")
    given.add_argument("--parameters", metavar="CSV", help="parameters of runs made elsewhere, a column for each")
    given.add_argument("--outputs", metavar="CSV", help="outputs of these runs, row by row")
    given.add_argument("--truth", type=_truth, metavar="A=1,B=2", help="true parameters, for the figure")
    _add_run_options(command.add_argument_group("running the simulator"))
    how = command.add_argument_group("inference")
    how.add_argument("--method", choices=list(METHODS), default="likelihood", help="(default: %(default)s)")
    add_seed(how)
    results = command.add_argument_group("results")
    add_folder(results, "infer")
    results.add_argument(
        "--samples", type=whole, default=1000, metavar="N", help="draws to write (default: %(default)s)"
    )
    command.set_defaults(run=_run, command="infer")


def _add_run_options(runs: Any) -> None:
    runs.add_argument("--simulations", type=whole, metavar="N", help="runs in all (default: 500)")
    runs.add_argument("--more", type=whole, metavar="N", help="so many runs more than the store has")
    runs.add_argument("--rounds", type=whole, metavar="N", help="rounds of runs, each nearer to the posterior")
    runs.add_argument("--store", metavar="SQLITE", help="keep every run as it finishes, and go on from there next time")
    runs.add_argument("--workers", type=whole, metavar="N", help="processes to run it in (default: this one)")
    add_limits(runs, "a run")
    runs.add_argument(
        "--check",
        type=lambda text: whole(text, at_least=0),
        default=100,
        metavar="N",
        help="further runs, at draws of the posterior, to compare with the observation (default: %(default)s)",
    )


def _run(arguments: argparse.Namespace) -> int:
    _check_together(arguments)
    with plainly():
        prior = read_prior_file(arguments.prior)
        observation = read_observation(arguments.observed)
        _check_truth(arguments.truth, prior)
        simulator = imported(arguments.simulator, "--simulator") if arguments.simulator else None
    out = folder(arguments.out)
    print(f"prior   {inside(prior)}")
    print(f"given   {observation}", flush=True)
    with resumable(bool(arguments.store)):
        with plainly():
            if simulator is not None:
                posterior = _from_simulator(simulator, prior, observation, arguments)
            else:
                posterior = _from_tables(prior, observation, arguments)
        tell_written(_report(posterior, out, arguments))
    return 0


# --------------------------------------------------------------------------------------------------- what was asked


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse arguments that lack another or contradict it."""
    tables = bool(arguments.parameters or arguments.outputs)
    if bool(arguments.simulator) == tables:
        raise Refusal("give either --simulator, or --parameters and --outputs of runs made elsewhere")
    if tables and not (arguments.parameters and arguments.outputs):
        lacking = "--outputs" if arguments.parameters else "--parameters"
        raise Refusal(f"--parameters and --outputs belong together; {lacking} is missing")
    for option in _FOR_SIMULATOR:
        if tables and getattr(arguments, option) is not None:
            raise Refusal(f"--{option.replace('_', '-')} needs --simulator; with --parameters nothing is run")
    if arguments.more and arguments.simulations:
        raise Refusal("give --simulations, runs in all, or --more, runs in addition, not both")
    if arguments.more and not (arguments.store and os.path.exists(arguments.store)):
        raise Refusal("--more adds to the runs of a store that exists; give --store, and --simulations the first time")


def _truth(text: str) -> dict[str, float]:
    out: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        try:
            out[name.strip()] = float(value)
        except ValueError:
            raise argparse.ArgumentTypeError(f"NAME=NUMBER, separated by commas, was wanted, got {text!r}") from None
    return out


def _check_truth(truth: dict[str, float] | None, prior: Prior) -> None:
    if truth is None:
        return
    for name in [n for n in prior.names if n not in truth] + [n for n in truth if n not in prior.names]:
        lacks = "does not give" if name in prior.names else "gives"
        raise Refusal(f"--truth {lacks} {name!r}; the prior has {', '.join(prior.names)}")


# --------------------------------------------------------------------------------------------------------- inference


def _from_simulator(
    simulator: Callable[..., Any], prior: Prior, observation: Observation, arguments: argparse.Namespace
) -> ParameterPosterior:
    options = {"executor": arguments.workers, "timeout": arguments.timeout, "store": store_path(arguments.store)}
    first = _first_runs(simulator, prior, options, arguments.seed)
    how = observation.as_returned(first.statistics, first.outputs.shape[1:])
    counts = {"simulations": arguments.simulations, "more": arguments.more, "rounds": arguments.rounds}
    counts = {name: value for name, value in counts.items() if value is not None}
    try:
        return infer(
            simulator,
            prior,
            method=arguments.method,
            run=Run(**options, max_seconds=arguments.max_seconds),
            random_state=arguments.seed,
            **counts,
            **how,
        )
    except ValueError as reason:
        raise ValueError(in_options(str(reason))) from None


def _first_runs(simulator: Callable[..., Any], prior: Prior, options: dict[str, Any], number: int) -> Runs:
    """A run or a few, to see that what the simulator returns fits the observation before hundreds are made.

    They are the first of the design, so a store keeps them for the rest.
    """
    store = options["store"]
    if store and os.path.exists(store):
        runs = open_runs(store)
        if len(runs):
            return runs
    rows = prior.design(_TRIALS[-1], random_state=number)
    for count in _TRIALS:
        try:
            return simulate(simulator, rows[:count], names=prior.names, random_state=number, progress=False, **options)
        except SimulationError as error:
            if error.runs is not None and len(error.runs):
                return error.runs
            if count == _TRIALS[-1]:
                raise
    raise AssertionError


def _from_tables(prior: Prior, observation: Observation, arguments: argparse.Namespace) -> ParameterPosterior:
    parameters, outputs = read_table(arguments.parameters), read_table(arguments.outputs)
    theta = parameters.numbers(prior.names)
    how = observation.among(outputs)
    if len(parameters) != len(outputs):
        raise Refusal(
            f"{arguments.parameters} has {counted(len(parameters), 'row')} where {arguments.outputs} has {len(outputs)}"
        )
    return infer(parameters=theta, prior=prior, method=arguments.method, random_state=arguments.seed, **how)


# ----------------------------------------------------------------------------------------------------------- results


def _report(posterior: ParameterPosterior, out: Path, arguments: argparse.Namespace) -> list[Path]:
    """Print what was found and write it."""
    failed = f", {posterior.failures:,} failed" if posterior.failures else ""
    runs = f"runs    {len(posterior.parameters):,} finished{failed}; about {posterior.ess:.0f} resemble the observation"
    table = posterior.summary()
    table = Summary(table, table.title)  # problems have a place of their own below
    print(f"{runs}\n\n{table}\n", flush=True)
    known = posterior._scales is not None and set(posterior._scales) <= set(posterior.statistics)
    parts = [runs.removeprefix("runs    "), table, _settings(posterior)]
    parts += [posterior.relevance()] if known else []
    written = [out / name for name in ("samples.csv", "summary.csv", "posterior.npz", "posterior.png")]
    with plainly():
        posterior.to_csv(written[0], arguments.samples, arguments.seed)
        table.to_csv(written[1])
        save(posterior, written[2])
        posterior.plot(arguments.truth).savefig(written[3], dpi=150)
        if known:
            from .. import plotting

            written.append(out / "relevance.png")
            plotting.relevance(posterior).savefig(written[-1], dpi=150)
    problems = [*posterior.problems]
    if arguments.simulator and arguments.check:
        check = _checked(posterior, out, arguments)
        found = check.summary()
        parts.append(Summary(found, found.title))
        problems += check.problems
        written.append(out / "predictive.png")
    parts += ["\n".join(["Read this before the result is believed:", *(f"- {text}" for text in problems)])] * bool(
        problems
    )
    (out / "summary.txt").write_text("\n\n".join(map(str, parts)) + "\n", encoding="utf-8")
    return [*written, out / "summary.txt"]


def _settings(posterior: ParameterPosterior) -> str:
    lines = [f"  {name} = {_shown(value)}" for name, value in posterior.settings.items()]
    return "\n".join(["settings of the method", *lines])


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=4, max_line_width=110)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _checked(posterior: ParameterPosterior, out: Path, arguments: argparse.Namespace) -> Any:
    """Simulate at draws of the posterior, and say how that compares with the observation."""
    with plainly():
        check = posterior.predictive(arguments.check, random_state=arguments.seed)
        check.plot().savefig(out / "predictive.png", dpi=150)
    print(f"check   {inside(check)}")
    for problem in check.problems:
        print(f"beware  {problem}")
    return check

"""`kernelbayes integrate`: the mean of a function over uncertain inputs, with its error, a table and a figure."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._summary import Summary
from ..integration import Integral, integrate
from ..integration._integral import digits
from ..integration._nodes import NODES
from ..lfi import Prior
from ..simulation import SimulationError
from ._columns import counted
from ._files import folder, tell_written
from ._imported import imported
from ._in_words import in_words, inside
from ._options import above_zero, add_folder, add_limits, add_seed, whole
from ._prior_file import read_distribution_file
from ._refusal import Refusal, in_options, plainly, resumable

# Fewer evaluations say nothing about how a function varies.
_FEWEST = 3


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What `integrate` takes."""
    command.description = (
        "Evaluate a function at chosen inputs, and find its mean over their distribution from as few "
        "evaluations as possible (Bayesian quadrature). Writes the integral, the evaluations and a figure into a folder."
    )
    given = command.add_argument_group("what is given")
    given.add_argument("--integrand", required=True, metavar="MODULE:FUNCTION", help="imported from the current folder")
    given.add_argument(
        "--distribution", required=True, metavar="TOML", help="tables [parameters.NAME] with independent distributions"
    )
    runs = command.add_argument_group("evaluating")
    runs.add_argument(
        "--n",
        type=lambda text: whole(text, at_least=_FEWEST),
        default=100,
        metavar="N",
        help="evaluations, or the first ones with --tol (default: %(default)s)",
    )
    runs.add_argument(
        "--tol", type=above_zero, metavar="SD", help="add evaluations until the standard deviation is below"
    )
    runs.add_argument(
        "--max-n", type=whole, metavar="N", help="evaluations at most, with --tol (default: 10 times --n)"
    )
    runs.add_argument("--nodes", choices=NODES, help="how inputs are chosen (default: wide)")
    runs.add_argument("--workers", type=whole, metavar="N", help="processes to evaluate it in (default: this one)")
    runs.add_argument("--store", metavar="SQLITE", help="keep every value as it comes, and go on from there next time")
    add_limits(runs, "an evaluation")
    add_seed(runs)
    results = command.add_argument_group("results")
    add_folder(results, "integrate")
    command.set_defaults(run=_run, command="integrate")


def _run(arguments: argparse.Namespace) -> int:
    if arguments.max_n and not arguments.tol:
        raise Refusal("--max-n is the limit of evaluations with --tol; without it, --n says how many there are")
    if arguments.max_n and arguments.max_n < arguments.n:
        raise Refusal(f"--max-n is {arguments.max_n}, fewer than the {arguments.n} first evaluations of --n")
    if arguments.distribution.lower().endswith((".csv", ".tsv")):
        raise Refusal(
            f"--distribution {arguments.distribution}: a TOML file with a distribution for each input was wanted; over the "
            "rows of a table, kb.integrate(f, table) integrates in Python"
        )
    with plainly():
        distributions = read_distribution_file(arguments.distribution)
        f = imported(arguments.integrand, "--integrand", "model:cost")
    out = folder(arguments.out)
    print(f"mean of {arguments.integrand}")
    print(f"over    {inside(Prior(distributions))}", flush=True)
    with resumable(bool(arguments.store)), plainly():
        found = _integrated(f, distributions, arguments)
    print("\n".join(_lines(found, list(distributions))))
    tell_written(_write(found, out))
    return 0


def _integrated(f: Callable[..., Any], distributions: dict[str, Any], arguments: argparse.Namespace) -> Integral:
    try:
        return integrate(
            f,
            list(distributions.values()),
            arguments.n,
            tol=arguments.tol,
            max_n=arguments.max_n,
            nodes=arguments.nodes,
            names=list(distributions),
            vectorised=False,
            executor=arguments.workers,
            store=arguments.store,
            timeout=arguments.timeout,
            max_seconds=arguments.max_seconds,
            random_state=arguments.seed,
        )
    except SimulationError as reason:
        raise SimulationError(str(reason).replace("f: ", f"{arguments.integrand}: ", 1)) from None
    except ValueError as reason:
        raise ValueError(
            re.sub(r"^f (?=has|needs|takes)", f"{arguments.integrand} ", in_options(str(reason)))
        ) from None


def _lines(found: Integral, names: list[str]) -> list[str]:
    """What was found, in a few lines."""
    failed = f", and {len(found.failures):,} that failed" if found.failures else ""
    told = [f"from    {counted(found.n, 'evaluation')} at {found.rule.nodes} nodes{failed}"]
    told += [f"kernel  {in_words(found.rule.kernel, names)}"]
    if np.ndim(found.mean()):
        return [*told, "", str(Summary(found.summary())), ""]  # problems were told as notes
    low, high = (f"{end:.{digits(found.mean(), found.std())}g}" for end in found.interval(0.9))
    mean = inside(found).partition(",")[0]
    return [*told, f"found   {mean}", f"90 %    {low} to {high}"]


def _write(found: Integral, out: Path) -> list[Path]:
    written = [out / name for name in ("integral.csv", "nodes.csv", "integral.png")]
    with plainly():
        found.summary().to_csv(written[0])
        found.to_csv(written[1])
        found.plot().savefig(written[2], dpi=150)
    return written

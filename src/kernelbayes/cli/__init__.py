"""The command line: `kernelbayes demo`, `kernelbayes experiment`, and the jobs on CSV files, one module each."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .. import __version__, demos, experiments
from .._catalogue import Catalogue
from ._files import folder
from ._options import add_seed
from ._refusal import Refusal, resumable

# Jobs on files, each with a line of help.
_HELP = {
    "filter": "follow the state of a system: learn from one CSV file, filter another",
    "classify": "tell classes apart: learn from one CSV file, predict another",
    "regress": "find f(x) from a CSV file with x and y and another with y and z",
    "infer": "find the parameters of a simulator from an observation",
    "integrate": "find the mean of a function over uncertain inputs",
    "store": "check a file of runs for damage, or repair it",
}
# Their modules, and all that these import, are loaded for the one that is asked for: nobody waits for the others.
_JOBS = Catalogue(__name__, {name: f"_{name}" for name in _HELP})


def _known(kind: str, names: Sequence[str], catalogue: Catalogue) -> None:
    for name in names:
        if name not in catalogue:
            raise Refusal(f"there is no {kind} {name!r}; try one of {', '.join(catalogue)}")


def _list(catalogue: Catalogue) -> None:
    """Names with titles, and with sources where there are any."""
    width = max(map(len, catalogue)) + 2
    for name, module in catalogue.items():
        print(f"{name:{width}}{module.TITLE}")
        if hasattr(module, "SOURCE"):
            print(f"{'':{width}}{module.SOURCE}")


def _heading(title: str) -> None:
    print(f"\n{title}\n{'-' * len(title)}", flush=True)


def _demo(arguments: argparse.Namespace) -> int:
    if arguments.list:
        _list(demos.DEMOS)
        return 0
    _known("demo", arguments.names, demos.DEMOS)
    out = folder(arguments.out)
    for name in arguments.names or demos.DEMOS:
        start = time.perf_counter()
        _heading(demos.title(name))
        report = demos.run(name, out, arguments.seed)
        print("\n".join(report.lines))
        figures = f"Figure{'s' * (len(report.figures) > 1)}: {', '.join(map(str, report.figures))}"
        print(f"\n{time.perf_counter() - start:.1f} s. {figures}", flush=True)
    return 0


def _experiment(arguments: argparse.Namespace) -> int:
    if arguments.list:
        _list(experiments.EXPERIMENTS)
        return 0
    if not arguments.names:
        raise Refusal("name an experiment; --list shows them")
    _known("experiment", arguments.names, experiments.EXPERIMENTS)
    if arguments.data is not None:
        _check_data(arguments.data, arguments.names)
    out = folder(arguments.out)
    for name in arguments.names:
        module = experiments.EXPERIMENTS[name]
        _heading(module.TITLE)
        print(module.SOURCE + (" (a quick run: fewer repeats and cases)" if arguments.quick else ""), flush=True)
        try:
            with resumable():
                done = experiments.run(
                    name,
                    out,
                    arguments.seed,
                    arguments.quick,
                    progress=True,
                    fresh=arguments.fresh,
                    data=arguments.data,
                )
        except (OSError, ImportError) as reason:  # a full disk, a file where a folder should be, an extra not installed
            raise Refusal(str(reason)) from None
        print("\n".join(["", *done.lines()]), flush=True)
    return 0


def _check_data(data: str, names: Sequence[str]) -> None:
    """Refuse a folder that some experiment would not read, before any is run."""
    for name in names:
        wanted = getattr(experiments.EXPERIMENTS[name], "DATA", None)
        if wanted is None:
            raise Refusal(f"the experiment {name} reads no data; leave out --data")
        if not any(any(Path(data).glob(pattern)) for pattern in wanted.split(" or ")):
            raise Refusal(f"there is no file {wanted} in {data}")


def _parser(asked: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kernelbayes", description="Bayesian inference from samples, with kernel mean embeddings."
    )
    parser.add_argument("--version", action="version", version=f"kernelbayes {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = commands.add_parser("demo", help="show the main jobs on made-up data and write figures")
    demo.add_argument("names", nargs="*", metavar="NAME", help="which demos to run (default: all)")
    _shared_options(demo, "demos", "kernelbayes-demo")
    demo.set_defaults(run=_demo)
    experiment = commands.add_parser("experiment", help="repeat a published experiment and check its claims")
    experiment.add_argument("names", nargs="*", metavar="NAME", help="which experiments to run")
    experiment.add_argument("--quick", action="store_true", help="fewer repeats and cases, to see it work")
    experiment.add_argument(
        "--data",
        metavar="DIR",
        help="folder with data for an experiment that can use them (default: made-up ones, or what scikit-learn has)",
    )
    experiment.add_argument("--fresh", action="store_true", help="forget the repeats saved by an earlier call")
    _shared_options(experiment, "experiments", "kernelbayes-experiments")
    experiment.set_defaults(run=_experiment)
    for name, said in _HELP.items():
        job = commands.add_parser(name, help=said)
        if name == asked:
            _JOBS[name].add_arguments(job)
    return parser


def _shared_options(command: argparse.ArgumentParser, what: str, folder: str) -> None:
    command.add_argument("--out", default=folder, metavar="DIR", help="folder for results (default: %(default)s)")
    add_seed(command)
    command.add_argument("--list", action="store_true", help=f"list the {what} and stop")
    command.set_defaults(command=what.removesuffix("s"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the `kernelbayes` command; returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = _parser(next(iter(given), None))
    if not given:
        parser.print_help(sys.stderr)
        return 2
    parsed = parser.parse_args(given)
    try:
        return parsed.run(parsed)
    except Refusal as reason:
        print(f"kernelbayes {parsed.command}: {reason}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(f"\nstopped{stop}", file=sys.stderr)
        return 130

"""The command line: `kernelbayes demo`, and later the jobs on CSV files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from . import __version__, demos


def _demo(arguments: argparse.Namespace) -> int:
    if arguments.list:
        for name in demos.DEMOS:
            print(f"{name:14s} {demos.title(name)}")
        return 0
    unknown = [name for name in arguments.names if name not in demos.DEMOS]
    if unknown:
        print(
            f"kernelbayes demo: there is no demo {unknown[0]!r}; try one of {', '.join(demos.DEMOS)}", file=sys.stderr
        )
        return 2
    out = Path(arguments.out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        print(f"kernelbayes demo: cannot write to {out}: {reason.strerror}", file=sys.stderr)
        return 2
    for name in arguments.names or demos.DEMOS:
        start = time.perf_counter()
        print(f"\n{demos.title(name)}\n{'-' * len(demos.title(name))}", flush=True)
        report = demos.run(name, out, arguments.seed)
        print("\n".join(report.lines))
        print(f"\n{time.perf_counter() - start:.1f} s. Figure: {', '.join(map(str, report.figures))}", flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kernelbayes", description="Bayesian inference from samples, with kernel mean embeddings."
    )
    parser.add_argument("--version", action="version", version=f"kernelbayes {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = commands.add_parser("demo", help="show the main jobs on made-up data and write figures")
    demo.add_argument("names", nargs="*", metavar="NAME", help="which demos to run (default: all)")
    demo.add_argument(
        "--out", default="kernelbayes-demo", metavar="DIR", help="folder for figures (default: %(default)s)"
    )
    demo.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    demo.add_argument("--list", action="store_true", help="list the demos and stop")
    demo.set_defaults(run=_demo)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point of the `kernelbayes` command; returns the exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        return parsed.run(parsed)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())

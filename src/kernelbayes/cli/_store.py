"""`kernelbayes store`: whether a file of runs is as it was written, and keeping the rest where it is not."""

from __future__ import annotations

import argparse
import re
import shlex

from ..simulation import check_store, repair_store
from ._refusal import Refusal, plainly


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What `store` takes."""
    command.description = (
        "Check the store of `infer --store` or `integrate --store` for damage: all that is in it is compared with its "
        "checksums. The exit code is 0 if all is well and 1 if not. Repairing keeps the runs that are intact; the next "
        "`infer` or `integrate` makes those that are lost."
    )
    command.add_argument("action", choices=("check", "repair"), metavar="check|repair", help="what to do")
    command.add_argument("file", metavar="FILE", help="the store")
    command.add_argument(
        "--out",
        metavar="FILE",
        help="where to write the repaired store (default: in its place; the damaged file is kept as FILE.damaged)",
    )
    command.set_defaults(run=_run, command="store")


def _run(arguments: argparse.Namespace) -> int:
    checking = arguments.action == "check"
    if checking and arguments.out:
        raise Refusal("--out is for repair; check writes nothing")
    with plainly():
        try:
            report = check_store(arguments.file) if checking else repair_store(arguments.file, arguments.out)
        except ValueError as reason:
            raise ValueError(re.sub("^to:", "--out:", str(reason))) from None
    print(report)
    if checking and not report.ok:
        print(f"kernelbayes store repair {shlex.quote(arguments.file)} keeps what is intact")
    return 1 if checking and not report.ok else 0

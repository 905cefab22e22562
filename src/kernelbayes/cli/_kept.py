"""Models that a command keeps with --save, for another run with --load in place of learning."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from .._persist import load
from ._refusal import Refusal


def add_kept(group: Any, what: str, instead: str) -> None:
    """Add `--save` and `--load`; `instead` names what the latter replaces."""
    group.add_argument("--save", metavar="NPZ", help=f"keep the learned {what}")
    help = f"use a {what} that was kept, in place of {instead}"
    group.add_argument("--load", metavar="NPZ", help=help)


def check_train_or_load(
    arguments: argparse.Namespace,
    what: str,
    job: str,
    *,
    needed: tuple[str, str],
    settled: Iterable[str],
    using: Iterable[str],
) -> None:
    """Refuse arguments that lack another or contradict it, where one table is learned from and another is for a job.

    Learning needs one option more, and settles some; others are of use with a second table only.
    """
    if bool(arguments.train) == bool(arguments.load):
        raise Refusal(f"give either --train, a table to learn from, or --load, a {what} that was kept")
    option, meaning = needed
    if arguments.train and not getattr(arguments, option):
        raise Refusal(f"--train needs --{option}: {meaning}")
    if not arguments.test and not (arguments.train and arguments.save):
        raise Refusal(f"give --test, a table to {job}" + (", or --save, to learn only" if arguments.train else ""))
    if arguments.load:
        check_settled(arguments, what, settled)
    idle = next((option for option in using if not arguments.test and getattr(arguments, option)), None)
    if idle is not None:
        raise Refusal(f"--{idle} needs --test, a table to {job}")


def check_settled(arguments: argparse.Namespace, what: str, options: Iterable[str]) -> None:
    """Refuse options that were settled when what is loaded was learned."""
    given = next((option for option in options if getattr(arguments, option)), None)
    if given is not None:
        option = given.replace("_", "-")
        raise Refusal(f"--{option} was settled when the {what} of --load was learned; leave it out")


def load_kept(path: str, kind: type, columns: str, what: str) -> Any:
    """What a file holds, if it is of this kind and knows the columns it was learned from; `what` names it otherwise."""
    try:
        model = load(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    if not isinstance(model, kind) or not getattr(model, columns, None):
        raise ValueError(f"{path} holds no {what} that was kept by --save")
    return model

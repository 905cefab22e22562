"""Options that commands share, and how arguments are read as numbers and names."""

from __future__ import annotations

import argparse
from typing import Any


def add_seed(group: Any) -> None:
    """Add `--seed`."""
    group.add_argument("--seed", type=seed, default=0, help="random seed (default: %(default)s)")


def add_folder(group: Any, command: str) -> None:
    """Add `--out`, a folder named after the command."""
    group.add_argument("--out", default=f"kernelbayes-{command}", metavar="DIR", help="folder (default: %(default)s)")


def add_limits(group: Any, one: str) -> None:
    """Add `--timeout` of one call and `--max-seconds` of all."""
    group.add_argument("--timeout", type=seconds, metavar="S", help=f"seconds after which {one} counts as failed")
    group.add_argument("--max-seconds", type=seconds, metavar="S", help="seconds after which no more are begun")


def seed(text: str) -> int:
    """A random seed."""
    return whole(text, at_least=0)


def whole(text: str, *, at_least: int = 1) -> int:
    """A whole number from an argument."""
    if not text.isdecimal() or int(text) < at_least:
        raise argparse.ArgumentTypeError(f"a whole number from {at_least} was wanted, got {text!r}")
    return int(text)


def names(text: str) -> list[str]:
    """Names of columns, separated by commas."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError("names of columns, separated by commas, were wanted")
    double = next((name for i, name in enumerate(found) if name in found[:i]), None)
    if double is not None:
        raise argparse.ArgumentTypeError(f"{double!r} is named twice")
    return found


def share(text: str) -> float:
    """A number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"a number between 0 and 1 was wanted, got {text!r}")
    return value


def seconds(text: str) -> float:
    """A time in seconds."""
    return above_zero(text, "a number of seconds")


def above_zero(text: str, wanted: str = "a number above zero") -> float:
    """A finite number above zero from an argument; `wanted` says what it is."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{wanted} was wanted, got {text!r}")
    return value

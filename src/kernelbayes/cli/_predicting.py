"""What commands that predict a table have to say of it, and to their models."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .._table import Table
from ._refusal import Refusal


def check_own(table: Table, outputs: Sequence[str], out: Path | None) -> None:
    """Refuse a table to be copied to the output that has a column called like one of the predictions."""
    own = next((name for name in outputs if name in table.names), None)
    if out is not None and own is not None:
        raise Refusal(f"{table.source} has a column {own!r}, as will the predictions; rename it")


def mention_same(arguments: argparse.Namespace) -> None:
    """A note if the table is the one that was learned from."""
    if arguments.train and Path(arguments.train).resolve() == Path(arguments.test).resolve():
        print("note    this is the table that was learned from: other tables will be harder")

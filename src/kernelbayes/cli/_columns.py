"""Which columns of a table play which part over time, and which rows form a sequence."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._table import Table
from .._typing import Array
from ._refusal import Refusal

# A column called so is taken for the time, unless the arguments give it another part.
_CLOCKS = ("time", "timestamp", "datetime", "date")
# The longest step in time may be so many times the usual one before it is mentioned.
_UNEVEN = 1.5

#: The rows of a sequence, after the value that they share.
Group = tuple[str, Array]


class Roles(NamedTuple):
    """Which column plays which part."""

    observations: list[str]
    states: list[str]
    controls: list[str]
    time: str | None
    sequence: str | None

    def __str__(self) -> str:
        parts = {"states": self.states, "from": self.observations, "controls": self.controls}
        parts |= {"time": [self.time] if self.time else [], "sequences by": [self.sequence] if self.sequence else []}
        return "; ".join(f"{part} {', '.join(columns)}" for part, columns in parts.items() if columns)


def add_clock(group: Any) -> None:
    """Add `--time` and `--sequence`."""
    group.add_argument(
        "--time", metavar="COLUMN", help="copied to the output, and no observation (default: one called time)"
    )
    group.add_argument(
        "--sequence", metavar="COLUMN", help="rows with equal values form one sequence (default: all are one)"
    )


def claimed(parts: Mapping[str, Sequence[str]], where: Mapping[str, Sequence[Table]]) -> dict[str, str]:
    """The option that names each column, refusing those named twice or missing from a table where they should be."""
    taken: dict[str, str] = {}
    for option, columns in parts.items():
        for name in columns:
            if name in taken:
                raise Refusal(f"column {name!r} is named in {taken[name]} and in {option}")
            taken[name] = option
            for table in where[option]:
                table.require([name])
    return taken


def roles_of(arguments: argparse.Namespace, tables: list[Table]) -> Roles:
    """The part of each column, as asked or by default, checked against the table to learn from and the one to use."""
    parts = {
        "--states": arguments.states,
        "--controls": arguments.controls or [],
        "--observations": arguments.observations or [],
        "--time": [arguments.time] if arguments.time else [],
        "--sequence": [arguments.sequence] if arguments.sequence else [],
    }
    taken = claimed(parts, {option: tables[:1] if option == "--states" else tables for option in parts})
    time = arguments.time or clock(tables, taken)
    free = [name for name in tables[0].names if name not in taken and name != time]
    observations = arguments.observations or _shared(free, tables, {*taken, time})
    return Roles(observations, arguments.states, arguments.controls or [], time, arguments.sequence)


def _shared(free: list[str], tables: list[Table], taken: Container[str]) -> list[str]:
    """Columns with numbers that all tables have, and that are not empty in any."""
    first, others = tables[0], tables[1:]
    found = [name for name in free if first.is_numeric(name) and all(name in table.columns for table in others)]
    for one, other in itertools.permutations(tables, 2):
        for name in one.names:
            if name not in other.columns and name not in taken and one.is_numeric(name):
                print(f"note    {name} is in {one.source} only, and is not used")
    empty = [name for name in found if any(table.is_empty(name) for table in others)]
    for name in empty:
        print(f"note    {name} is empty in {others[0].source}, and left out")
    found = [name for name in found if name not in empty]
    if not found:
        where = "both tables have" if others else f"{first.source} has"
        raise Refusal(f"there is nothing to find the states from: {where} no other column of numbers")
    return found


def clock(tables: list[Table], taken: Container[str]) -> str | None:
    """A column that is called like a time in all tables and plays no other part."""
    everywhere = (name for name in tables[0].names if all(name in table.columns for table in tables[1:]))
    return next((name for name in everywhere if name.lower() in _CLOCKS and name not in taken), None)


def sequences(table: Table, column: str | None) -> list[Group]:
    """The rows of each sequence, in the order in which they first appear."""
    if column is None:
        return [("", np.arange(len(table)))]
    rows: dict[str, list[int]] = {}
    for i, value in enumerate(table.text(column)):
        rows.setdefault(value, []).append(i)
    return [(value, np.array(found)) for value, found in rows.items()]


def mention_risers(table: Table, roles: Roles, groups: list[Group]) -> None:
    """Notes about observations that look like a time."""
    for name in roles.observations:
        values = table.numbers([name], gaps="allow")[:, 0]
        if all(len(steps) > 1 and (steps > 0).all() for steps in _steps_in(values, groups)):
            print(f"note    {name} rises from row to row and is used as an observation; --time {name} if it is a time")


def mention_times(table: Table, roles: Roles, groups: list[Group]) -> None:
    """Notes about times, numbers or dates, that do not look like equal steps."""
    if not roles.time:
        return
    if table.is_numeric(roles.time):
        values, unit = table.numbers([roles.time], gaps="allow")[:, 0], ""
    else:
        values, unit = times_of(table, roles.time, groups), " seconds"
        if values.dtype.kind != "M":
            return
        values = values.astype(np.int64) / 1e6
    steps = np.concatenate(_steps_in(values, groups))
    steps = steps[~np.isnan(steps)]
    if len(steps) and steps.min() <= 0:
        print(f"beware  {roles.time} does not rise from row to row; rows are taken in the order of the file")
    elif len(steps) and steps.max() > _UNEVEN * np.median(steps):
        unequal = f"{steps.min():.4g} to {steps.max():.4g}{unit}"
        print(f"note    steps of {roles.time} range from {unequal} and are taken as equal; put a row with empty cells")
        print("        where one is missing")


def _steps_in(values: Array, groups: list[Group]) -> list[Array]:
    return [np.diff(values[rows]) for _, rows in groups]


def steps_of(groups: list[Group], size: int) -> Array:
    """The number of each row within its sequence."""
    steps = np.empty(size, dtype=int)
    for _, rows in groups:
        steps[rows] = np.arange(len(rows))
    return steps


def times_of(table: Table, column: str | None, groups: list[Group]) -> Array:
    """Numbers, dates or words from a column, or the number of each row within its sequence."""
    if column is None:
        return steps_of(groups, len(table))
    try:
        return table.numbers([column])[:, 0]
    except ValueError:
        words = np.array(table.text(column))
    try:
        dates = words.astype("datetime64[us]")
    except ValueError:
        return words
    return words if np.isnat(dates).any() else dates


def counted(number: int, what: str) -> str:
    """A number of things in words."""
    return f"{number:,} {what}" + "s" * (number != 1)


def in_sequences(groups: list[Group]) -> str:
    """How many sequences there are, if several."""
    return f" in {counted(len(groups), 'sequence')}" if len(groups) > 1 else ""

"""What an experiment hands back: tables, and the source's claims beside what the run showed."""

from __future__ import annotations

import json
import math
import os
import platform
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ._estimates import Estimate, show
from ._study import Runs, Study

Verdict = Literal["reproduced", "partly", "not reproduced"]
_WIDTH = 110


def verdict(*checks: bool) -> Verdict:
    """What checks of one claim add up to: all of them, some, or none."""
    if not checks:
        raise ValueError("a verdict needs at least one check")
    return "reproduced" if all(checks) else "partly" if any(checks) else "not reproduced"


@dataclass(frozen=True)
class Claim:
    """What a source says, in our words; what the run showed, in its own numbers; and whether the two agree."""

    statement: str
    source: str
    shown: str
    verdict: Verdict

    def __post_init__(self) -> None:
        if self.verdict not in get_args(Verdict):
            raise ValueError(f"verdict must be one of {', '.join(get_args(Verdict))}; got {self.verdict!r}")

    def lines(self, quick: bool) -> list[str]:
        """As it is printed."""
        label = f"{self.verdict} (quick run)" if quick else self.verdict
        return [
            *textwrap.wrap(f"{self.source}: {self.statement}", _WIDTH),
            *textwrap.wrap(f"Here: {self.shown}", _WIDTH, initial_indent="    ", subsequent_indent="    "),
            f"    => {label}",
        ]


@dataclass(frozen=True)
class Table:
    """Rows of numbers, estimates and words under named columns."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row of the table {self.title!r} does not fit its {len(self.columns)} columns")

    def lines(self) -> list[str]:
        """Aligned text: words to the left, numbers to the right."""
        cells = [[_text(value) for value in row] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(self.columns, *cells, strict=True)]
        left = [all(isinstance(row[i], str) for row in self.rows) for i in range(len(self.columns))]

        def aligned(row: Sequence[str]) -> str:
            parts = zip(row, widths, left, strict=True)
            return "  ".join(cell.ljust(w) if words else cell.rjust(w) for cell, w, words in parts).rstrip()

        return [self.title, "", aligned(self.columns), *(aligned(row) for row in cells)]

    def records(self) -> list[dict[str, Any]]:
        """One dictionary per row."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Result:
    """All there is to say about one run of an experiment."""

    settings: Mapping[str, Any]
    tables: Sequence[Table]
    claims: Sequence[Claim]
    figures: Sequence[Path]
    runs: Runs | None = None
    notes: Sequence[str] = field(default_factory=tuple)

    def lines(self, quick: bool) -> list[str]:
        """As it is printed, below the title."""
        settings = ", ".join(f"{name} = {_text(value)}" for name, value in self.settings.items())
        parts = [textwrap.wrap(f"settings: {settings}", _WIDTH, subsequent_indent="    ")]
        parts += [table.lines() for table in self.tables]
        parts += [claim.lines(quick) for claim in self.claims]
        parts += [textwrap.wrap(note, _WIDTH) for note in self.notes]
        return _joined(parts)


def columns(*values: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The rows of a table given by its columns."""
    return list(zip(*(v.tolist() if isinstance(v, np.ndarray) else v for v in values), strict=True))


def _joined(parts: Iterable[Sequence[str]]) -> list[str]:
    """Blocks of lines with an empty line between them."""
    lines: list[str] = []
    for part in parts:
        lines += ["", *part] if lines else part
    return lines


def _text(value: Any) -> str:
    if isinstance(value, Estimate):
        return str(value)
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, (int, float, np.number)):
        return show(value)
    if isinstance(value, Mapping):
        return f"({', '.join(f'{name} = {_text(part)}' for name, part in value.items())})"
    if isinstance(value, Sequence):
        shown = [_text(part) for part in value]
        return ", ".join(shown if len(shown) <= 8 else [*shown[:2], "...", shown[-1]])
    return str(value)


def _plain(value: Any) -> Any:
    """The same in types that JSON knows; numbers that are not finite become null."""
    if isinstance(value, Estimate):
        return {"value": _plain(value.value), "standard_error": _plain(value.error)}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    import jax
    import scipy

    from .. import __version__

    return {
        "python": platform.python_version(),
        "kernelbayes": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def write(study: Study, result: Result, seconds: float, **about: str) -> Path:
    """Everything as JSON; written to the side first, so that a crash leaves the previous file whole."""
    record = {
        "name": study.name,
        **about,
        "quick": study.quick,
        "seed": study.seed,
        "settings": result.settings,
        "tables": [{"title": table.title, "rows": table.records()} for table in result.tables],
        "claims": [vars(claim) for claim in result.claims],
        "figures": [path.name for path in result.figures],
        "notes": list(result.notes),
        "runs": [] if result.runs is None else result.runs.records(),
        "seconds": round(seconds, 3),
        "seconds_of_repeats": None if result.runs is None else round(result.runs.seconds, 3),
        "versions": versions(),
    }
    path, aside = study.path(".json"), study.path(".json.part")
    aside.write_text(json.dumps(_plain(record), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(aside, path)
    return path

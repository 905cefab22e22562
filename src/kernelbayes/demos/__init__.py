"""Small complete jobs to look at, one module each.

A demo is a module with a one-line `TITLE` and a function `run(out, seed)` that prints nothing, writes its figures into the
folder `out`, and returns a `Report`. To add one, write the module and name it in `DEMOS`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path

#: Name on the command line -> module, in the order in which they are shown.
DEMOS = {"conditional": "conditional_density"}


@dataclass(frozen=True)
class Report:
    """What a demo has to say: lines of text, and the figures it wrote."""

    lines: list[str]
    figures: list[Path] = field(default_factory=list)


def title(name: str) -> str:
    """The one-line title of a demo."""
    return importlib.import_module(f"{__name__}.{DEMOS[name]}").TITLE


def run(name: str, out: Path, seed: int = 0) -> Report:
    """Run a demo by its name on the command line."""
    return importlib.import_module(f"{__name__}.{DEMOS[name]}").run(out, seed)

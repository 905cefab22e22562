"""Small complete jobs to look at, one module each.

A demo is a module with a one-line `TITLE` and a function `run(out, seed)` that prints nothing, writes its figures into the
folder `out`, and returns a `Report`. To add one, write the module and name it in `DEMOS`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .._catalogue import Catalogue

#: Name on the command line -> module, in the order in which they are shown.
DEMOS = Catalogue(
    __name__,
    {"conditional": "conditional_density", "bayes": "bayes_rule", "filter": "filter", "inference": "inference"},
)


@dataclass(frozen=True)
class Report:
    """What a demo has to say: lines of text, and the figures it wrote."""

    lines: list[str]
    figures: list[Path] = field(default_factory=list)


def title(name: str) -> str:
    """The one-line title of a demo."""
    return DEMOS[name].TITLE


def run(name: str, out: Path, seed: int = 0) -> Report:
    """Run a demo by its name on the command line."""
    return DEMOS[name].run(out, seed)

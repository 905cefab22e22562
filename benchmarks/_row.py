"""What a row of the table is: a job, who does it, at which size, and what is asked.

A contender is a function that takes the sizes of its row by name and returns what it found:

| key | holds |
|---|---|
| `seconds`, `first` | its best time and that of its first call, which compiles |
| `quality` | how good the answer is, by name |
| `growth` | pairs of a size and the seconds it takes |
| `note` | anything else, in words |

The process it runs in adds `peak_gb`. Of a contender that did not finish there is only `skipped` or `failed`, the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Found = Mapping[str, Any]
Contender = Callable[..., Found]


@dataclass(frozen=True)
class Asked:
    """Something asked of us, in words, and whether it was met; None where that cannot be said, for want of a peer."""

    text: str
    met: Callable[[Found, Found | None], bool | None]


@dataclass(frozen=True)
class Row:
    """A job. Its title names sizes in braces; `why` is for when something asked is missed, or the peer is faster."""

    name: str
    title: str
    ours: Contender
    peer: Contender | None = None
    peer_name: str = ""
    asked: tuple[Asked, ...] = ()
    why: str = ""
    sizes: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] | None = None  # what is smaller in a quick run; None: not part of it
    limit: float = 900.0  # seconds for each contender

    def sized(self, quick: bool) -> dict[str, Any]:
        """The arguments of both contenders."""
        return {**self.sizes, **((self.quick or {}) if quick else {})}


def ratio(least: float) -> Asked:
    """Of the peer's time to ours."""
    return Asked(
        f"ratio of at least {least:g}",
        lambda ours, peer: peer["seconds"] / ours["seconds"] >= least if peer else None,
    )


def seconds(most: float) -> Asked:
    """Our time."""
    return Asked(f"at most {most:g} s", lambda ours, _: ours["seconds"] <= most)


def memory(below: float) -> Asked:
    """Our peak memory."""
    return Asked(f"under {below:g} GB", lambda ours, _: ours["peak_gb"] < below)


def at_most(name: str, most: float) -> Asked:
    """A quality of ours."""
    return Asked(f"{name} at most {most:g}", lambda ours, _: ours["quality"][name] <= most)


def no_larger(*names: str, within: float = 0.0) -> Asked:
    """Errors, beside those of the peer."""
    text = f"{' and '.join(names)} no larger" + (f" (within {100 * within:g} %)" if within else "")
    return Asked(text, _beside(names, lambda a, b: a <= b * (1.0 + within)))


def lower(*names: str) -> Asked:
    """Errors below those of the peer."""
    return Asked(f"{' and '.join(names)} lower", _beside(names, lambda a, b: a < b))


def no_lower(*names: str) -> Asked:
    """Scores, beside those of the peer."""
    return Asked(f"{' and '.join(names)} no lower", _beside(names, lambda a, b: a >= b))


def _beside(names, compare):
    def met(ours: Found, peer: Found | None) -> bool | None:
        return all(compare(ours["quality"][n], peer["quality"][n]) for n in names) if peer else None

    return met


def growth(power: float, text: str, slack: float = 1.5) -> Asked:
    """Seconds grow no faster than this power of the size, but for a factor over the whole range of sizes."""

    def met(ours: Found, peer: Found | None) -> bool:
        (small, before), (large, after) = ours["growth"][0], ours["growth"][-1]
        return after / before <= slack * (large / small) ** power

    return Asked(text, met)

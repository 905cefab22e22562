"""A cart that circles in a hall, known by two beacons on the middle line: which side it is on, only its past can tell."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np

from .. import plotting
from .._typing import Array
from ..conditional import ConditionalEmbedding
from ..filters import KernelBayesFilter
from . import Report

TITLE = "Following a state over time: a cart, two radio beacons, and readings that fit both sides of the hall"

_BEACONS = np.array([[-9.0, 0.0], [9.0, 0.0]])
_SILENT = slice(60, 70)
_LEVEL = 0.9


def drive(steps: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Places (t, 2) of the cart in metres, strengths (t, 2) of the beacons in decibels, and how far it was told to turn."""
    turn = 0.25 + 0.1 * np.sin(np.arange(steps) / 15 + rng.uniform(0, 6))
    angle = rng.uniform(0, 6) + np.cumsum(turn + 0.04 * rng.normal(size=steps))
    reach = 1 + 0.1 * rng.normal(size=steps)
    place = np.stack([6 * reach * np.cos(angle), 3 * reach * np.sin(angle)], axis=1)
    distance = np.linalg.norm(place[:, None] - _BEACONS, axis=2)
    return place, -20 * np.log10(distance) + 0.5 * rng.normal(size=(steps, 2)), turn[:, None]


def _row(name: str, found: Array, truth: Array, bounds: Array | None = None) -> str:
    """Errors along and across the hall, and how many of the intervals hold the truth."""
    row = f"{name:34}" + "".join(f"{error:8.2f}" for error in np.sqrt(((found - truth) ** 2).mean(0)))
    if bounds is None:
        return row
    inside = (bounds[0] <= truth) & (truth <= bounds[1])
    return row + "   " + "".join(f"{share:8.0%}" for share in inside.mean(0))


def run(out: Path, seed: int = 0) -> Report:
    """Learn from 300 steps, follow 120 others through a silence of ten, and compare with regression."""
    rng = np.random.default_rng(seed)
    place, strength, _ = drive(300, rng)
    truth, readings, _ = drive(120, rng)
    regression = ConditionalEmbedding(random_state=seed).fit(strength, place).predict(readings)
    readings[_SILENT] = np.nan
    model = KernelBayesFilter(tune=10, random_state=seed).fit(strength, place)
    tracks = {"filter": model.filter(readings), "filter, smoothed afterwards": model.smooth(readings)}
    path = out / "filter.png"
    figure = tracks["filter"].plot(truth, level=_LEVEL)
    for ax, label in zip(figure.axes, ("along the hall, m", "across it, m"), strict=True):
        plotting.name_axes(ax, y=label)
    figure.savefig(path, dpi=150)
    lines = [
        "    model = kb.KernelBayesFilter().fit(strength, place)     # a log of 300 steps in which both were recorded",
        "    track = model.filter(readings)                          # NaN where a reading is missing",
        "",
        f"{'root mean square error in metres':34}   along  across   {_LEVEL:.0%} interval holds",
        _row("regression on each reading alone", regression, truth),
        *(_row(name, track.mean(), truth, track.interval(_LEVEL)) for name, track in tracks.items()),
        "",
        "One reading fits two places, left and right of the middle line, and regression answers with the line between.",
        "The filter knows where the cart came from; it also had to do without ten of the readings.",
        "",
        *textwrap.wrap(f"Diagnostics: {tracks['filter'].diagnostics}", 110),
    ]
    return Report(lines, [path])

"""A sensor with a bent response and growing noise: Bayes' rule from readings at known distances, for a prior of its own."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from .. import plotting
from .._typing import Array
from ..bayes import KernelBayesRule
from . import Report

TITLE = "Bayes' rule without a likelihood: a sensor known only by examples, and a prior from elsewhere"

READINGS = (0.6, 0.75, 0.9)
PRIOR: Any = stats.norm(5, 1)
GRID = np.linspace(0, 8, 801)
_LEVEL = 0.9


def examples(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Readings (n, 1) and the distances (n, 1) at which they were taken."""
    distance = rng.uniform(0, 8, (n, 1))
    return np.tanh(distance / 4) + 0.02 * (1 + distance) * rng.normal(size=(n, 1)), distance


def exact(reading: float) -> Array:
    """The posterior density on the grid, from the likelihood that the rule never sees."""
    density = PRIOR.pdf(GRID) * stats.norm.pdf(reading, np.tanh(GRID / 4), 0.02 * (1 + GRID))
    return density / (density.sum() * (GRID[1] - GRID[0]))


def figure(model: KernelBayesRule) -> Any:
    """Prior, exact and kernel posterior for each reading."""
    posteriors = list(model.posterior(np.array(READINGS)[:, None], PRIOR))
    return plotting.posterior_densities(
        posteriors,
        GRID,
        [f"reading {x:g}" for x in READINGS],
        prior=PRIOR.pdf(GRID),
        exact=[exact(x) for x in READINGS],
        level=_LEVEL,
        xlabel="distance",
    )


def run(out: Path, seed: int = 0) -> Report:
    """Learn from 600 examples, tabulate mean and interval beside the exact posterior, and draw the densities."""
    model = KernelBayesRule(random_state=seed).fit(*examples(600, np.random.default_rng(seed)))
    path = out / "bayes-rule.png"
    figure(model).savefig(path, dpi=150)
    several = model.posterior(np.array(READINGS)[:, None], PRIOR)
    rows = []
    for x, posterior in zip(READINGS, several, strict=True):
        density = exact(x)
        F = np.cumsum(density) * (GRID[1] - GRID[0])
        mean = float(density @ GRID * (GRID[1] - GRID[0]))
        true = GRID[np.searchsorted(F, [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2])]
        low, high = posterior.interval(_LEVEL)[:, 0]
        rows.append(
            f"{x:7.2f}  {posterior.mean()[0]:7.2f} {mean:7.2f}  [{low:5.2f}, {high:5.2f}] [{true[0]:5.2f}, {true[1]:5.2f}]"
            f"  {posterior.health.ess:6.0f}"
        )
    lines = [
        "    model = kb.KernelBayesRule().fit(readings, distances)      # 600 examples, distances all over the range",
        "    model.posterior([0.75], prior=scipy.stats.norm(5, 1))      # what is believed now",
        "",
        "reading     mean   exact  90% interval   exact            eff. n",
        *rows,
        "",
        *textwrap.wrap(f"Health: {several.health}", 110),
    ]
    return Report(lines, [path])

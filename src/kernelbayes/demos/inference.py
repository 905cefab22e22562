"""An outbreak in a town: how infectious is it, and for how long, when only three numbers about its course are known?"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from ..lfi import Prior, infer
from . import Report

TITLE = "Parameters of a simulator without a likelihood: an outbreak, known by its peak, its day and its size"

_PEOPLE, _FIRST, _DAYS = 5000, 20, 120
_TRUTH = {"contagion": 0.45, "days_ill": 5.0}
_SIMULATIONS = 400


def outbreak(contagion: float, days_ill: float, rng: np.random.Generator) -> dict[str, float]:
    """Day by day: each healthy person may catch it from the ill ones, each ill one may recover."""
    healthy, ill, course = _PEOPLE - _FIRST, _FIRST, []
    for _ in range(_DAYS):
        caught = rng.binomial(healthy, 1.0 - np.exp(-contagion * ill / _PEOPLE))
        recovered = rng.binomial(ill, 1.0 - np.exp(-1.0 / days_ill))
        healthy, ill = healthy - caught, ill + caught - recovered
        course.append(ill)
    peak = int(np.argmax(course))
    return {"peak": float(course[peak]), "peak_day": float(peak), "ever_ill": float(_PEOPLE - healthy)}


def run(out: Path, seed: int = 0) -> Report:
    """Infer two rates from three numbers by 400 simulations, draw the posterior, and check it by simulating from it."""
    observed: Any = outbreak(**_TRUTH, rng=np.random.default_rng(seed))
    prior = Prior(contagion=(0.1, 1.0), days_ill=(1.0, 14.0))
    posterior = infer(outbreak, prior, observed, _SIMULATIONS, random_state=seed, progress=False)
    check = posterior.predictive(100, random_state=seed, progress=False)
    paths = [out / "inference.png", out / "inference-check.png"]
    posterior.plot(_TRUTH).savefig(paths[0], dpi=150)
    check.plot().savefig(paths[1], dpi=150)
    seen = ", ".join(f"{name} {value:g}" for name, value in observed.items())
    true = ", ".join(f"{name} {value:g}" for name, value in _TRUTH.items())
    lines = [
        "    prior = kb.Prior(contagion=(0.1, 1), days_ill=(1, 14))",
        f"    posterior = kb.infer(outbreak, prior, observed, simulations={_SIMULATIONS})",
        "    posterior.plot(); posterior.predictive(100).plot()       # outbreak may be any function",
        "",
        f"Observed: {seen}. Simulated with {true}.",
        "",
        *str(posterior.summary()).splitlines(),
        "",
        *str(check.summary()).splitlines(),
        *(
            line
            for text in (*posterior.problems, *check.problems)
            for line in ["", *textwrap.wrap(f"Beware: {text}", 110)]
        ),
    ]
    return Report(lines, paths)

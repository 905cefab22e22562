"""What a user would lean on, judged by mean errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...rules.bayes import RULES
from .._estimates import rate, show
from .._result import Claim, verdict
from .._study import Runs
from ._cases import GROWING, ON_REPRESENTATIONS, REPRESENTATIONS, SYSTEMS
from ._reading import best, exact, growing, of_rules, represented

#: Those that differ in rank alone, the lower one first.
_PAIRS = (
    ("IncompleteCholesky(20)", "IncompleteCholesky(50)"),
    ("Subspace(50)", "Subspace(100)"),
    ('Subspace(50, "kmeans")', 'Subspace(100, "kmeans")'),
)


def claims(runs: Runs, settings: Mapping[str, Any]) -> list[Claim]:
    """What a user would lean on, judged by mean errors."""
    return [
        _default_rule(runs, settings),
        _approach(runs, settings),
        _step_times(runs, settings),
        _longer(runs, settings),
    ]


def _default_rule(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    ratios, others = [], []
    for system in SYSTEMS:
        part = of_rules(runs, settings, system)
        ratios.append(float(part.mean("error")[list(RULES).index("iw")] / part.mean("error")[best(part)]))
        others.append(part.mean("error") / part.mean("error")[best(part)])
    worst = dict(zip(RULES, np.max(others, axis=0), strict=True))
    steady = min(worst, key=lambda rule: np.inf if np.isnan(worst[rule]) else worst[rule])
    listed = ", ".join(f"{show(ratio)} on {system}" for ratio, system in zip(ratios, SYSTEMS, strict=True))
    return Claim(
        "the rule of KernelBayesFilter by default, iw, is within 10 % of the best rule on every system",
        "Choice of rule",
        f"its error is that of the best rule times {listed}. The rule that is never far behind is {steady}, at most "
        f"{show(worst[steady])} times the best; the worst is {_worst(worst)}.",
        verdict(*(ratio <= 1.10 for ratio in ratios)),
    )


def _worst(worst: Mapping[str, float]) -> str:
    rule = max(worst, key=lambda name: np.inf if np.isnan(worst[name]) else worst[name])
    return f"{rule}, which failed" if np.isnan(worst[rule]) else f"{rule}, up to {show(worst[rule])} times"


def _approach(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    """Distances are logarithms of the ratio to the exact filter, averaged over systems."""
    checks, far, near = [], [], []
    names = list(REPRESENTATIONS)
    for rule in ON_REPRESENTATIONS:
        errors = np.array([represented(runs, settings, system, rule).mean("error") for system in SYSTEMS])
        distance = np.abs(np.log(errors / errors[:, [exact()]])).mean(0)
        for low, high in _PAIRS:
            far.append(distance[names.index(low)])
            near.append(distance[names.index(high)])
            checks.append(bool(near[-1] < far[-1]))
    return Claim(
        "as their rank grows, representations approach the filter with the kernel itself",
        "Theory, for the same settings; here each has its own",
        f"the larger of two ranks is nearer to Exact() in {sum(checks)} of {len(checks)} comparisons; the error is off by a "
        f"factor of {np.exp(np.mean(far)):.2f} on average with the smaller and {np.exp(np.mean(near)):.2f} with the larger.",
        verdict(*checks),
    )


def _step_times(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    n = np.array(settings["sizes"])
    times = {label: growing(runs, settings, label).mean("step") for label in ("iw, rank 50", "subspace")}
    far = slice(1, None) if len(n) > 2 else slice(None)  # a short log hides behind what every step costs
    fixed, constant = (round(rate(n[far], taken[far]), 2) + 0.0 for taken in times.values())
    return Claim(
        "a step takes time in proportion to the length of the log at a fixed rank, and constant time with the rule subspace",
        "Gebhardt et al. (2015), section 4",
        f"it grows as n to the power {fixed:.2f} with iw and rank 50 and {constant:.2f} with subspace; at n = {n[-1]} it "
        f"takes {show(times['iw, rank 50'][-1], 2)} ms and {show(times['subspace'][-1], 2)} ms.",
        verdict(fixed < 1.2, abs(constant) < 0.2),
    )


def _longer(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    n = settings["sizes"]
    errors = {label: growing(runs, settings, label).mean("error") for label in GROWING}
    falls = {label: found[-1] / found[0] for label, found in errors.items()}
    listed = ", ".join(f"{show(v)} times with {label}" for label, v in falls.items())
    return Claim(
        "a longer log makes for a smaller error",
        "Length of the log",
        f"from n = {n[0]} to n = {n[-1]} the error becomes {listed}.",
        verdict(*(v < 1.0 for v in falls.values())),
    )

"""What `kb.infer` should be able to do on problems that no setting was chosen on, judged by the run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._estimates import show
from .._result import Claim, verdict
from .._study import Runs
from ._methods import METHODS
from ._reading import SETS, methods_of, of_problems, pairs, sizes_of

_SOURCE = "this project"
_BAND = (0.85, 0.95)


def claims(runs: Runs) -> list[Claim]:
    """Those for which the methods were run."""
    found = [
        _nearer(runs, "kb", ("npe", "nle"), "from the same simulations"),
        _nearer(runs, "kb_rounds", ("snpe", "snle"), "in four rounds"),
        _nearer(runs, "kb", ("kelfi",), "from the same simulations"),
        *(_covers(runs, name) for name in ("kb", "kb_rounds")),
    ]
    return [claim for claim in found if claim is not None]


def _nearer(runs: Runs, own: str, rivals: Sequence[str], how: str) -> Claim | None:
    checks, told = [], []
    for size, others, scores in pairs(runs, own, rivals):
        means = scores.mean(0)
        checks += [bool(means[0] < m) for m in means[1:]]
        won = int((scores[:, 0] < scores[:, 1:].min(1)).sum())
        listed = ", ".join(f"{METHODS[n].label} {show(m)}" for n, m in zip(others, means[1:], strict=True))
        told.append(f"{size}: {show(means[0])}, {listed}, lowest in {won} of {len(scores)} problems")
    if not checks:
        return None
    against = " and ".join(METHODS[name].label for name in rivals if name in methods_of(runs))
    return Claim(
        f"{how}, {METHODS[own].label} is nearer to the exact posterior than {against}",
        _SOURCE,
        f"mean C2ST over the problems held out, by simulations: {'; '.join(told)}.",
        verdict(*checks),
    )


def _covers(runs: Runs, name: str) -> Claim | None:
    checks, told = [], []
    for size in sizes_of(runs):
        covered = of_problems(runs, size, name, "coverage", SETS["held out"])
        covered = covered[np.isfinite(covered)]
        if len(covered):
            checks.append(bool(_BAND[0] <= covered.mean() <= _BAND[1]))
            told.append(f"{size}: {show(covered.mean())}, at worst {show(covered.min())}")
    if not checks:
        return None
    return Claim(
        f"90 % intervals of {METHODS[name].label} hold {_BAND[0]:.0%} to {_BAND[1]:.0%} of the exact posterior",
        _SOURCE,
        f"means over the problems held out, by simulations: {'; '.join(told)}.",
        verdict(*checks),
    )

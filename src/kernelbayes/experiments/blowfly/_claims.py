"""What figures 4.2 and 4.3 are said to show, beside what the repeats do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._estimates import rate_of_means, show
from .._result import Claim, verdict
from .._simulators import BLOWFLY_STATISTICS
from .._study import Runs
from ._methods import KELFI, RELEVANCE, ROUNDS, WAYS
from ._reading import average, epsilons, percent


def claims(runs: Runs, settings: Mapping[str, Any]) -> list[Claim]:
    """What figures 4.2 and 4.3 are said to show."""
    return [_below_one(runs), _lowest(runs), _decay(runs), _relevant(runs, settings)]


def _below_one(runs: Runs) -> Claim:
    m = runs.case("simulations")
    enough = m >= 300 if (m >= 300).any() else m == m.max()
    averages = {name: average(runs, name) for name in KELFI}
    middle = np.median(percent(runs, "kelfi"), axis=1)
    listed = "; ".join(f"{WAYS[name].label} {', '.join(map(show, v[enough]))}" for name, v in averages.items())
    return Claim(
        "KELFI reaches an average NMSE below 1 % from about 300 simulations",
        "Hsu (2019), section 4.9.2",
        f"with {', '.join(map(str, m[enough]))} simulations the averages in percent are: {listed}. The medians of KELFI are "
        f"{', '.join(map(show, middle[enough]))}. With the same numbers spread over {ROUNDS} rounds, which the thesis does "
        f"not do, the averages are {', '.join(map(show, average(runs, 'rounds')[enough]))}. Judged by KELFI as it comes, "
        "in one.",
        verdict(*(averages["kelfi"][enough] < 1.0)),
    )


def _lowest(runs: Runs) -> Claim:
    m = runs.case("simulations")
    errors = {name: np.nan_to_num(average(runs, name), nan=np.inf) for name in WAYS}
    others = [name for name in WAYS if name not in (*KELFI, "dme", "rounds")]  # the figure has neither DME nor rounds
    best = [min(others, key=lambda name, i=i: errors[name][i]) for i in range(len(m))]
    listed = ", ".join(
        f"{show(errors['kelfi'][i])} ({WAYS[name].label} {show(errors[name][i])}) at {m[i]}"
        for i, name in enumerate(best)
    )
    return Claim(
        "across numbers of simulations KELFI has the lowest average error",
        "Hsu (2019), figure 4.3 (left)",
        f"in percent, with the best of the others in brackets: {listed}.",
        verdict(*(bool(errors["kelfi"][i] < errors[name][i]) for i, name in enumerate(best))),
    )


def _decay(runs: Runs) -> Claim:
    m = runs.case("simulations")
    if len(m) < 2:
        power, own = np.nan, np.nan
    else:
        power, own = (rate_of_means(m, runs[f"{name}_epsilon"]) for name in ("marginal", "kelfi"))
    first, last = (show(v) for v in runs.mean("marginal_epsilon")[[0, -1]])
    falls = len(m) > 1 and power.value < -2 * power.error  # type: ignore[union-attr]
    return Claim(
        "the epsilon that maximises the marginal likelihood decays as simulations are added",
        "Hsu (2019), figure 4.3 (middle)",
        f"it goes from {first} to {last}, as the power {power} of their number; that of the library's score as the power "
        f"{own}.",
        verdict(bool(falls)),
    )


def _relevant(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    middle = {name: np.nanmedian(epsilons(runs, settings, name), axis=1) for name in RELEVANCE}
    places = {name: np.argsort(np.argsort(-v)) + 1 for name, v in middle.items()}  # 1: the largest epsilon
    n = len(BLOWFLY_STATISTICS)
    marginal = places["marginal"]
    listed = "; ".join(f"{RELEVANCE[name][0]} {v[0]}, {v[-2]} and {v[-1]}" for name, v in places.items())
    return Claim(
        "with an epsilon for each statistic, the first quarter of the counts is irrelevant and both numbers of peaks matter",
        "Hsu (2019), figure 4.2 (left)",
        f"the places of the first statistic and of the two numbers of peaks, from 1 (largest epsilon) to {n}: {listed}. "
        "Judged by the first of these.",
        verdict(bool(marginal[0] <= 3), bool((marginal[-2:] > n // 2).all())),
    )

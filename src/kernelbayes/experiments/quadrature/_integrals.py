"""Integrands with known integrals: whether the standard deviations of `kb.integrate` can be believed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._typing import Array
from ...integration import integrate, quadrature
from ...kernels import Gaussian
from .._expected import expected_warnings
from .._integrands import GENZ, integrand
from .._result import Claim, Table, verdict
from .._study import Runs, Study


def integrals(study: Study, settings: Mapping[str, Any]) -> Runs:
    """Estimates of all integrals."""
    return study.repeat(_integral, {"repeats": settings["integral_repeats"]}, _cases(settings))


def _cases(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    dimensions = [d for d in (1, 3, 5) if d <= max(settings["dimensions"])]
    chosen = [(family, d) for family in GENZ for d in dimensions]
    chosen += [("call option", 1), ("Asian option", max(settings["dimensions"])), ("posterior mean", 2)]
    return [{"integrand": name, "dimension": d, "n": settings["evaluations"][str(d)]} for name, d in chosen]


def _integral(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """What `kb.integrate` finds, and the plain mean over as many Sobol points."""
    wanted = integrand(settings["integrand"], settings["dimension"])
    n, seed = settings["n"], int(rng.integers(2**31))
    with expected_warnings():
        found = integrate(wanted.f, wanted.distribution, n, random_state=seed)
    plain = quadrature(Gaussian(1.0), wanted.distribution, n, "sobol", "uniform", random_state=seed).integrate(wanted.f)
    value, std = _quotient(found.mean(), found.std()) if wanted.ratio else (found.mean(), found.std())
    plain = plain[0] / plain[1] if wanted.ratio else plain
    numbers = {"truth": wanted.truth, "estimate": value, "std": std, "plain": plain}
    return {**numbers, "problems": float(bool(found.problems))}


def _quotient(means: Array, stds: Array) -> tuple[float, float]:
    """A ratio of two integrals, and its standard deviation to first order, as if their errors were independent."""
    value = means[0] / means[1]
    return float(value), float(np.hypot(stds[0], value * stds[1]) / abs(means[1]))


def integral_table(runs: Runs) -> Table:
    """Real integrands: what is said about the error beside what it is."""
    rows = []
    for i, case in enumerate(runs.cases):
        one = runs.take([i])
        error, std = _misses(one)[0], one["std"][0]
        middle = [np.median(v) for v in (one["estimate"][0], error, std, error / std)]
        plain = np.median(np.abs(one["plain"] - one["truth"]))
        shares = [float((error <= 2.0 * std).mean()), float(one["problems"].mean())]
        rows.append((*case.values(), f"{one['truth'][0, 0]:.6g}", f"{middle[0]:.6g}", *middle[1:], *shares, plain))
    header = [
        "integrand",
        "d",
        "n",
        "truth",
        "estimate",
        "error",
        "sd",
        "error / sd",
        "within 2 sd",
        "warned",
        "Sobol mean",
    ]
    return Table("Integrals by kb.integrate: medians over the seeds, and errors of the plain Sobol mean", header, rows)


def _misses(runs: Runs) -> Array:
    return np.abs(runs["estimate"] - runs["truth"])


def integral_claims(runs: Runs) -> list[Claim]:
    """Whether the standard deviations can be believed, and what the evaluations are worth."""
    inside = _misses(runs) <= 2.0 * runs["std"]
    hard = np.array([case["integrand"] in ("discontinuous", "continuous") for case in runs.cases])
    better = np.median(_misses(runs), axis=1) < np.median(np.abs(runs["plain"] - runs["truth"]), axis=1)
    low = [
        f"{c['integrand']} in {c['dimension']}-d ({inside[i].mean():.0%})"
        for i, c in enumerate(runs.cases)
        if inside[i].mean() < 0.8
    ]
    return [
        Claim(
            "the standard deviations can be believed: errors are within two of them, nineteen times out of twenty",
            "docstring of kb.integrate",
            f"{inside.mean():.0%} of {inside.size} integrals; {inside[~hard].mean():.0%} without the two families of Genz "
            f"that have kinks or jumps. Below 80 %: {', '.join(low) or 'none'}.",
            verdict(bool(inside.mean() >= 0.9), not low),
        ),
        Claim(
            "errors are smaller than those of the plain mean of as many Sobol points",
            "expected of kb.integrate",
            f"the median error is the smaller for {int(better.sum())} of {better.size} integrands.",
            verdict(*better.tolist()),
        ),
    ]

"""What a kernel means likelihood should learn from: the measurements behind decision 5.

    python docs/objectives.py

Four problems whose posterior is known, the same simulations for every column, and the record of it all in
`docs/results/kelfi-objectives.json`, which the documentation shows. Takes a few minutes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from results import keep_own
from scipy import stats
from threadpoolctl import threadpool_limits

import kernelbayes as kb

SEEDS, SIZES, SEED = 20, (100, 300), 0
_GRID = np.linspace(-5.0, 5.0, 4001)  # of Gaussian coordinates


class Case(NamedTuple):
    """Simulations, an observation, and the exact posterior of each parameter."""

    prior: kb.Prior
    theta: np.ndarray
    x: np.ndarray
    observed: np.ndarray
    exact: list[Any]


def gaussian(d: int, m: int, seed: int) -> Case:
    """The mean of ten draws with sd 1 in each of d columns, and a normal prior with sd 3."""
    rng = np.random.default_rng([SEED, seed, d])
    prior = kb.Prior({f"mu{j}": stats.norm(0, 3) for j in range(d)})
    theta, noise = prior.design(m, random_state=seed), np.sqrt(0.1)
    observed = rng.normal(0, 3, d) + noise * rng.normal(size=d)
    variance = 1.0 / (1 / 9 + 10)
    exact = [stats.norm(10 * variance * y, np.sqrt(variance)) for y in observed]
    return Case(prior, theta, theta + noise * rng.normal(size=theta.shape), observed, exact)


def linear(m: int, seed: int, d: int = 4, q: int = 6) -> Case:
    """Statistics that are linear in standard normal parameters, with noise as large."""
    rng = np.random.default_rng([SEED, seed, d, q])
    prior, A = kb.Prior({f"a{j}": stats.norm() for j in range(d)}), rng.normal(size=(q, d))
    theta = prior.design(m, random_state=seed)
    observed = A @ rng.normal(size=d) + rng.normal(size=q)
    covariance = np.linalg.inv(np.eye(d) + A.T @ A)
    exact = [stats.norm(mu, np.sqrt(v)) for mu, v in zip(covariance @ A.T @ observed, np.diag(covariance), strict=True)]
    return Case(prior, theta, theta @ A.T + rng.normal(size=(m, q)), observed, exact)


def waiting(m: int, seed: int) -> Case:
    """The log of the mean of fifteen waiting times; the rate is gamma with shape and rate 0.1, and truly 0.1."""
    rng = np.random.default_rng([SEED, seed, 15])
    prior = kb.Prior(rate=stats.gamma(0.1, scale=10.0))
    theta = prior.design(m, random_state=seed)
    x = np.log(rng.standard_exponential((m, 15)).mean(1)[:, None] / theta)
    total = rng.standard_exponential(15).sum() / 0.1
    return Case(prior, theta, x, np.log([total / 15]), [stats.gamma(15.1, scale=1.0 / (0.1 + total))])


PROBLEMS: dict[str, Callable[[int, int], Case]] = {
    "Gaussian mean": lambda m, seed: gaussian(1, m, seed),
    "Gaussian mean, two columns": lambda m, seed: gaussian(2, m, seed),
    "rate of waiting times": waiting,
    "four parameters, six statistics": linear,
}


WAYS: dict[str, dict[str, Any]] = {
    "posterior": {},
    "posterior, not adjusted": {"adjust": False},
    "posterior, always adjusted": {"adjust": True},
    "marginal": {"learn": "marginal"},
}


def errors(case: Case, settings: dict[str, Any], seed: int) -> dict[str, float]:
    """Means and spreads against the exact ones; in one dimension also total variation, with the floor and without."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.PosteriorWarning)
        found = kb.infer(
            parameters=case.theta,
            outputs=case.x,
            prior=case.prior,
            observed=case.observed,
            method=kb.lfi.KELFI(**settings),
            random_state=seed,
        )
    # in Gaussian coordinates: the rate has a long tail, and logarithms suit it
    draws = case.prior.to_gaussian(found.sample(4000, random_state=seed))
    truth = case.prior.to_gaussian(np.column_stack([e.rvs(20_000, random_state=seed) for e in case.exact]))
    mean, sd = truth.mean(0), truth.std(0)
    out = {
        "off": float(np.sqrt((((draws.mean(0) - mean) / sd) ** 2).mean())),
        "width": float(np.exp(np.log(draws.std(0) / sd).mean())),
        "warned": float(bool(found.problems)),
    }
    low, high = found.interval(0.9)
    out["mass"] = float(np.mean([e.cdf(h) - e.cdf(a) for e, a, h in zip(case.exact, low, high, strict=True)]))
    if len(case.exact) == 1:
        out |= _variations(case, found)
    return out


def _variations(case: Case, found: Any) -> dict[str, float]:
    """Total variation on a grid of the Gaussian coordinate."""
    z, law = _GRID[:, None], found.law
    # the exact density of the coordinate, by differences of its distribution function
    edges = np.concatenate([_GRID - 0.5 * np.diff(_GRID[:2]), [_GRID[-1] + 0.5 * np.diff(_GRID[:2])[0]]])
    exact = np.diff(case.exact[0].cdf(case.prior.from_gaussian(edges[:, None])[:, 0]))
    ways = {"tv": law.density(z), "tv cut": np.maximum(law.closed.density(z), 0.0)}
    return {name: float(1.0 - np.minimum(exact, p / p.sum()).sum()) for name, p in ways.items()}


def measure() -> list[dict[str, Any]]:
    """All problems, sizes and seeds, as tables."""
    rows, floors = [], []
    for name, make in PROBLEMS.items():
        for m in SIZES:
            for learn, settings in WAYS.items():
                runs = [errors(make(m, seed), settings, seed) for seed in range(SEEDS)]
                several = {key: np.array([r[key] for r in runs]) for key in runs[0]}
                what = {"problem": name, "simulations": m, "learn": learn}
                rows.append(what | _row(several))
                if "tv" in several:
                    medians = {"above the floor": several["tv"], "cut at zero": several["tv cut"]}
                    floors.append(what | {key: float(np.median(values)) for key, values in medians.items()})
    return [
        {"title": "Two objectives, the same simulations", "rows": rows},
        {"title": "Total variation with the noise floor, and with negative values set to zero instead", "rows": floors},
    ]


def _row(several: dict[str, np.ndarray]) -> dict[str, Any]:
    return {
        "mean off by": float(np.median(several["off"])),
        "worst": float(several["off"].max()),
        "sd / exact sd": float(np.median(several["width"])),
        "exact mass": round(float(np.median(several["mass"])), 3),
        "least": round(float(several["mass"].min()), 3),
        "total variation": float(np.median(several["tv"])) if "tv" in several else "",
        "warned": f"{several['warned'].sum():.0f} of {SEEDS}",
    }


_NOTE = (
    f'Medians over {SEEDS} seeds, and the worst seed. "mean off by" is in exact posterior standard deviations, and like '
    '"sd / exact sd" it is taken in Gaussian coordinates. "exact mass" is what the exact posterior has in the 90 % '
    'interval that was found: 0.9 if it is right. "warned" counts the seeds for which kb.infer had something to say. '
    "Truths are drawn from the prior, however far out they fall."
)


if __name__ == "__main__":
    begin = time.perf_counter()
    with threadpool_limits(1):
        found = measure()
    keep_own("kelfi-objectives", found, _NOTE, {"seeds": SEEDS, "simulations": list(SIZES)}, SEED, begin)

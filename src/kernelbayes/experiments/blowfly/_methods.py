"""The methods that are compared, and one repeat of all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..._typing import Array
from ...lfi import METHODS, GaussianEpsilon, ParameterPosterior, infer
from ...lfi._law import WeightedPoints
from ...simulation import Run
from .._expected import expected_warnings
from .._figures import ACCENT, FAINT, GOLD, GREEN, INK, PURPLE, SECOND
from .._simulators import (
    BLOWFLY_STATISTICS,
    BLOWFLY_TRUTH,
    blowfly_prior,
    blowfly_statistics,
    simulate_blowflies,
)

_STEP = 0.1
ROUNDS = 4


class Way(NamedTuple):
    """A method as `kb.infer` takes it; its point estimate, and whether it chooses where to simulate."""

    label: str
    colour: str
    method: str
    settings: Mapping[str, Any] = {}
    mode: bool = False
    seeks: bool = False
    dashed: bool = False
    rounds: int = 1


_SPREADS = {"epsilon_kernel": GaussianEpsilon(ranks=False)}
_MEDIAN = {"learn": "median", "reg": 1e-4}
_OWN_UNITS = {"epsilon_kernel": GaussianEpsilon(standardise=False)}
_WALK = {"step": _STEP, "standardise": False}
WAYS = {
    "kelfi": Way("KELFI", ACCENT, "kelfi"),
    "marginal": Way("KELFI, marginal", GOLD, "kelfi", {"learn": "marginal"}),
    "dme": Way("DME", "#7f4f24", "dme"),
    "kbr": Way("KBR", INK, "kbr", {**_MEDIAN, "prior_reg": 1e-4, **_SPREADS}, mode=True),
    "kabc": Way("K-ABC", SECOND, "k-abc", {**_MEDIAN, **_SPREADS}),
    "kabc_tuned": Way("K-ABC (S)", "#8ecae6", "k-abc", _SPREADS),
    "kelfi_spreads": Way("KELFI, spreads", "#ef8d98", "kelfi", _SPREADS, dashed=True),
    "kelfi_own": Way("KELFI, own units", "#f4a261", "kelfi", _OWN_UNITS, dashed=True),
    "marginal_own": Way("KELFI, marginal, own units", GOLD, "kelfi", {"learn": "marginal", **_OWN_UNITS}, dashed=True),
    "kbr_own": Way("KBR, own units", INK, "kbr", {**_MEDIAN, "prior_reg": 1e-4, **_OWN_UNITS}, mode=True, dashed=True),
    "kabc_own": Way("K-ABC, own units", SECOND, "k-abc", {**_MEDIAN, **_OWN_UNITS}, dashed=True),
    "rejection": Way("rejection", FAINT, "rejection"),
    "mcmc": Way("MCMC-ABC", GREEN, "mcmc-abc", {**_WALK, "epsilon": 5.0}, seeks=True),
    "synthetic": Way("SL-ABC", PURPLE, "synthetic", {**_WALK, "epsilon": 0.5, "repeats": 10}, seeks=True),
    "adaptive": Way(
        "ASL-ABC",
        "#b08bbb",
        "adaptive-synthetic",
        {**_WALK, "epsilon": 0.5, "repeats": 10, "extra": 10, "error": 0.3, "draws": 10},
        seeks=True,
    ),
    "gps": Way(
        "GPS-ABC",
        "#bc6c25",
        "gps-abc",
        {**_WALK, "epsilon": 2.0, "extra": 5, "error": 0.05, "draws": 10},
        seeks=True,
    ),
    "unadjusted": Way("KELFI, not adjusted", ACCENT, "kelfi", {"adjust": False}, dashed=True),
    "rounds": Way("KELFI, rounds", "#a23b72", "kelfi", seeks=True, rounds=ROUNDS),
}


KELFI = ("kelfi", "unadjusted", "marginal", "kelfi_spreads", "kelfi_own", "marginal_own")
RELEVANCE = {
    "marginal": ("marginal likelihood", {"learn": "marginal", "ard": True}),
    "marginal_own": ("marginal likelihood, own units", {"learn": "marginal", "ard": True, **_OWN_UNITS}),
    "kelfi": ("score of posteriors", {"ard": True}),
}


class Task(NamedTuple):
    """The observed statistics (10,), and squared differences from them under the prior (10,)."""

    observed: Array
    under_prior: Array

    def nmse(self, log_parameters: Array, count: int, rng: np.random.Generator) -> float:
        """Normalised mean squared error of simulations at one place."""
        if not np.isfinite(log_parameters).all():
            return np.nan
        X = simulate_blowflies(np.broadcast_to(log_parameters, (count, 6)), rng)
        return float((((X - self.observed) ** 2).mean(0) / self.under_prior).mean())


def task_of(series: Array, count: int) -> Task:
    """The task that a series (180,) of counts sets."""
    observed = blowfly_statistics(series[None])[0]
    theta = blowfly_prior().sample(count, random_state=0)
    X = simulate_blowflies(theta, np.random.default_rng(1))
    return Task(observed, ((X - observed) ** 2).mean(0))


def once(task: Task, settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """Errors of all methods from the same simulations, and what scales were learned."""
    m, most = settings["simulations"], max(settings["sizes"])
    theta = blowfly_prior().design(most, random_state=int(rng.integers(2**31)))
    X = simulate_blowflies(theta, rng)
    of_test, seed = rng.spawn(1)[0], int(rng.integers(2**31))
    numbers = {}
    for name, way in WAYS.items():
        if name == "gps":
            way = way._replace(settings={**way.settings, "steps": settings["gps_steps"]})
        posterior = _posterior(way, task, theta[:m], X[:m], seed)
        numbers[name] = task.nmse(_point(posterior, way.mode), settings["test_simulations"], of_test)
        if name in KELFI:
            numbers[f"{name}_epsilon"] = np.nan if posterior is None else _epsilon(posterior)
    numbers["prior_mean"] = task.nmse(blowfly_prior().from_gaussian(np.zeros((1, 6)))[0], 1000, of_test)
    numbers["truth"] = task.nmse(BLOWFLY_TRUTH, 1000, of_test)
    return numbers | _relevance(task, theta[:m], X[:m], seed, m == settings["ard_at"])


def _point(posterior: ParameterPosterior | None, mode: bool) -> Array:
    """The posterior mean, or the point at which the embedding is largest."""
    if posterior is None:
        return np.full(6, np.nan)
    if not mode:
        return posterior.mean()
    assert isinstance(posterior.law, WeightedPoints)
    embedding = posterior.law.embedding()
    best = int(np.argmax(embedding(embedding.points)))
    return posterior.prior.from_gaussian(embedding.points[best : best + 1])[0]


def _epsilon(posterior: ParameterPosterior) -> float:
    """One epsilon, the geometric mean where there are several."""
    return float(np.exp(np.log(posterior.settings["epsilon"]).mean()))


def _posterior(way: Way, task: Task, theta: Array, X: Array, seed: int) -> ParameterPosterior | None:
    method = METHODS[way.method](**way.settings)
    common = {"prior": blowfly_prior(), "observed": task.observed, "method": method, "random_state": seed}
    if way.seeks:
        run = Run(vectorised=True, pass_dict=False)
        common |= {"simulator": simulate_blowflies, "run": run, "progress": False, "simulations": len(theta)}
    else:
        common |= {"parameters": theta, "outputs": X}
    try:
        with expected_warnings():
            posterior = infer(**common, rounds=way.rounds)
            posterior.mean()
    except ValueError:  # weights that cancel, or a likelihood nowhere above its errors
        return None
    return posterior


def _relevance(task: Task, theta: Array, X: Array, seed: int, wanted: bool) -> dict[str, float]:
    """An epsilon for each statistic, by the marginal likelihood and by the library's score."""
    found = {}
    for name, (_, settings) in RELEVANCE.items():
        values = np.full(len(BLOWFLY_STATISTICS), np.nan)
        if wanted:
            posterior = _posterior(Way("", "", "kelfi", settings), task, theta, X, seed)
            if posterior is not None:
                values = np.asarray(posterior.settings["epsilon"])
        found |= {f"ard_{name}_{i}": float(v) for i, v in enumerate(values)}
    return found

"""The systems, rules and representations that are compared, and one repeat of each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._linalg import FactorisationError
from ...features import Exact, IncompleteCholesky, RandomFourier, Recipe, Subspace
from ...filters import KernelBayesFilter, KernelMonteCarloFilter
from ...rules.bayes import RULES
from .. import _systems
from .._baselines import particle_filter, regression
from .._expected import expected_warnings
from .._figures import ACCENT, INK, SECOND
from .._study import Runs, Study

SYSTEMS: dict[str, _systems.System] = {
    "oscillatory": _systems.OSCILLATORY,
    "SSM 2a": _systems.StateSpace("2a"),
    "SSM 3a": _systems.StateSpace("3a"),
}
#: Name in the tables -> recipe for observations and states; None is the library's own choice.
REPRESENTATIONS: dict[str, Recipe | None] = {
    "default": None,
    "Exact()": Exact(),
    "IncompleteCholesky(20)": IncompleteCholesky(20),
    "IncompleteCholesky(50)": IncompleteCholesky(50),
    "Subspace(50)": Subspace(50),
    "Subspace(100)": Subspace(100),
    'Subspace(50, "kmeans")': Subspace(50, "kmeans"),
    'Subspace(100, "kmeans")': Subspace(100, "kmeans"),
    "RandomFourier(200)": RandomFourier(200),
}
ON_REPRESENTATIONS = ("iw", "subspace")
#: What the tables over the length of the log compare: label -> rule, representation, colour.
GROWING = {
    "iw": ("iw", "default", ACCENT),
    "iw, rank 50": ("iw", "IncompleteCholesky(50)", SECOND),
    "subspace": ("subspace", "default", INK),
}
GROWTH_SYSTEM = "oscillatory"
NUMBERS = ("error", "crps", "coverage", "outside", "fit", "step", "rank", "latent_rank")


def compared(study: Study, settings: Mapping[str, Any]) -> Runs:
    """The numbers of everything, on the same sequences."""
    return study.repeat(_once, settings, _cases(settings), paired=True)


def _case(system: str, n: int, method: str, tune: int, representation: str = "default") -> dict[str, Any]:
    """What is run, on a log of n steps."""
    return {"system": system, "n": n, "method": method, "tune": tune, "representation": representation}


def _cases(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Everything that is run on the sequences of one repeat, each once."""
    tune = settings["tune"]
    found = []
    for system, n in settings["lengths"].items():
        found += [_case(system, n, rule, tune) for rule in RULES]
        found += [_case(system, n, "monte carlo", tune)]
        found += [_case(system, n, "iw", other) for other in settings["other_tunes"]]
        found += [_case(system, n, method, 0) for method in ("regression", "particles")]
        found += [_case(system, n, rule, tune, name) for rule in ON_REPRESENTATIONS for name in REPRESENTATIONS]
    for n in settings["sizes"]:
        found += [_case(GROWTH_SYSTEM, n, rule, tune, name) for rule, name, _ in GROWING.values()]
    return [case for i, case in enumerate(found) if case not in found[:i]]


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    system = SYSTEMS[settings["system"]]
    of_test, of_training, of_particles = rng.spawn(3)
    log = _systems.simulate(system, settings["n"], of_training)
    new = _systems.simulate(system, settings["test_steps"], of_test)
    numbers = dict.fromkeys(NUMBERS, float("nan"))
    start = time.process_time()
    if settings["method"] == "regression":
        found = regression(log.states, log.observations, new.observations)
    elif settings["method"] == "particles":
        found = particle_filter(system, new.observations, of_particles, particles=settings["particles"])
    else:
        return numbers | _followed(_model(system, settings), log, new)
    taken = 1e3 * (time.process_time() - start) / len(new.states)
    return numbers | {"error": float(((found - new.states) ** 2).sum(1).mean()), "step": taken}


def _model(system: _systems.System, settings: Mapping[str, Any]) -> Any:
    """A kernel filter, not yet fitted."""
    common: dict[str, Any] = {"tune": settings["tune"], "progress": False, "random_state": 0}
    if settings["method"] == "monte carlo":
        return KernelMonteCarloFilter(system.transition, system.initial, **common)
    recipe = REPRESENTATIONS[settings["representation"]]
    return KernelBayesFilter(settings["method"], features=recipe, latent_features=recipe, **common)


def _followed(model: Any, log: _systems.Sequence, new: _systems.Sequence) -> dict[str, float]:
    """What a kernel filter makes of new steps, and what that takes; nothing where a factorisation fails."""
    start = time.process_time()
    try:
        with expected_warnings():
            model.fit(log.observations, log.states)
            model.step(new.observations[0])  # what is made on first use belongs to learning
            model.reset()
            learned = time.process_time()
            track = model.filter(new.observations)
            mean = track.mean()
            done = time.process_time()
    except FactorisationError:
        return {}
    score = track.score(new.states)
    low, high = log.states.min(0), log.states.max(0)
    numbers = {
        "error": score.mse,
        "crps": np.mean(score.crps),
        "coverage": np.mean(score.coverage),
        "outside": ((mean < low) | (mean > high)).any(1).mean(),
        "fit": learned - start,
        "step": 1e3 * (done - learned) / len(mean),
    }
    if isinstance(model, KernelBayesFilter):
        parts = model._recursion
        numbers |= {"rank": parts.features.rank, "latent_rank": parts.states.features.rank}
    return {name: float(value) for name, value in numbers.items()}

"""The methods that are compared, and one cell of the comparison: a method on one observation of a problem."""

from __future__ import annotations

import dataclasses
import functools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..._progress import progress_bar
from ..._typing import Array
from ...embeddings import PosteriorWarning
from ...lfi import infer
from ...simulation import Run
from .._figures import ACCENT, GOLD, GREEN, INK, PURPLE, SECOND
from .._study import Runs, Study
from . import _sbi
from ._metrics import MEASURES, measures
from ._problem import ZooProblem
from ._reference import reference
from ._two_samples import COMPARED

ONE, ROUNDS = "one round", "rounds"
COUNT = 4  # of rounds


class Method(NamedTuple):
    """Its label, whether it makes rounds, the settings of `kb.infer`, or that it is one of sbi, and how much it is run."""

    label: str
    colour: str
    group: str = ONE
    settings: Mapping[str, Any] = {}
    sbi: bool = False
    sizes: tuple[int, ...] = (200, 500, 1000, 3000)
    observations: int = 2


METHODS = {
    "kb": Method("kb.infer", ACCENT),
    "kelfi": Method("KELFI", GOLD, settings={"method": "kelfi"}),
    "npe": Method("NPE", SECOND, sbi=True),
    "nle": Method("NLE", GREEN, sbi=True),
    "kb_rounds": Method("kb.infer, rounds", ACCENT, ROUNDS, {"rounds": COUNT}),
    "snpe": Method("SNPE", PURPLE, ROUNDS, sbi=True, sizes=(500, 1000), observations=1),
    "snle": Method("SNLE", INK, ROUNDS, sbi=True, sizes=(500, 1000), observations=1),
}
NUMBERS = (*MEASURES, "seconds", "warned")
_FAILED = {**dict.fromkeys(NUMBERS, np.nan), "c2st": 1.0}
_REFUSALS = (ValueError, RuntimeError, AssertionError, ArithmeticError)


class Cell(NamedTuple):
    """What is run and saved at once."""

    problem: str
    size: int
    method: str
    k: int


def cells(problems: Mapping[str, ZooProblem], sizes: tuple[int, ...], methods: tuple[str, ...]) -> Iterator[Cell]:
    """Size by size and method by method; only runs that are given, and so no rounds, where parameters are repeated."""
    for size in sizes:
        for name in methods:
            method = METHODS[name]
            for problem in problems.values():
                if size in method.sizes and not (problem.repeats > 1 and method.group == ROUNDS):
                    yield from (Cell(problem.name, size, name, k) for k in range(method.observations))


def fill(study: Study, problems: Mapping[str, ZooProblem], wanted: list[Cell]) -> Runs:
    """Run the cells, or read them back: numbers (cases, observations), a case being a problem, a size and a method.

    Each cell has a key of its own, so that problems, sizes and methods can be added, and those of sbi be run elsewhere.
    """
    once = functools.partial(_once, problems, study.out / "exact")
    each, found = dataclasses.replace(study, progress=False), {}
    with progress_bar(len(wanted), study.name, None if study.progress else False) as bar:
        for cell in wanted:
            found[cell] = each.repeat(once, {**cell._asdict(), "repeats": 1}, [{}])
            bar.update()
    cases = list(dict.fromkeys(cell[:3] for cell in wanted))
    most = max((METHODS[cell.method].observations for cell in wanted), default=1)
    values = {name: np.full((len(cases), most), np.nan) for name in NUMBERS}
    for cell, runs in found.items():
        for name in NUMBERS:
            values[name][cases.index(cell[:3]), cell.k] = runs[name][0, 0]
    told = [{"problem": p, "held_out": problems[p].held_out, "size": n, "method": m} for p, n, m in cases]
    seconds, back = sum(r.seconds for r in found.values()), sum(r.read_back for r in found.values())
    return Runs(told, values, seconds, back, all(r.same_code for r in found.values()))


def _once(
    problems: Mapping[str, ZooProblem], folder: Any, settings: Mapping[str, Any], rng: np.random.Generator
) -> Any:
    problem, k, seed = problems[settings["problem"]], settings["k"], int(rng.integers(2**31))
    exact, x = reference(problem, k, folder), problem.observation(k)
    try:
        draws, seconds, warned = _drawn(problem, settings["method"], x, settings["size"], seed)
        if not np.isfinite(draws).all():
            return _FAILED
    except _REFUSALS:  # weights that cancel, a flow that diverges
        return _FAILED
    return {**measures(exact, draws, seed=k), "seconds": seconds, "warned": warned}


def _drawn(problem: ZooProblem, name: str, x: Array, size: int, seed: int) -> tuple[Array, float, bool]:
    """Draws, the processor's seconds with those of training, and whether the method warned of its result."""
    method, start = METHODS[name], time.process_time()
    if name in _sbi.AMORTISED:
        draw, trained = _trained(name, problem, size, seed)
        start = time.process_time()
        return draw(x, COMPARED), trained + time.process_time() - start, False
    if name in _sbi.SEQUENTIAL:
        draws = _sbi.sequential(name, problem, x, size, COUNT, COMPARED, seed)
        return draws, time.process_time() - start, False
    if method.group == ROUNDS:
        rng = np.random.default_rng([seed, 2])
        runs = {"simulator": functools.partial(_simulate, problem, rng), "simulations": size}
        runs |= {"run": Run(vectorised=True, pass_dict=False), "progress": False}
    else:
        runs = dict(zip(("parameters", "outputs"), problem.runs(size, seed), strict=True))
        start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = infer(prior=problem.prior, observed=x, random_state=seed, **runs, **method.settings)
        draws = posterior.sample(COMPARED, random_state=seed)
    warned = any(issubclass(w.category, PosteriorWarning) for w in caught)
    return draws, time.process_time() - start, warned


def _simulate(problem: ZooProblem, rng: np.random.Generator, theta: Array) -> Array:
    return problem.simulate(theta, rng)


@functools.lru_cache(maxsize=1)
def _trained(name: str, problem: ZooProblem, size: int, seed: int) -> tuple[Callable[[Array, int], Array], float]:
    """Trained once for all observations of a problem, and the seconds that took."""
    theta, outputs = problem.runs(size, seed)
    start = time.process_time()
    draw = _sbi.amortised(name, problem, theta, outputs, seed)
    return draw, time.process_time() - start

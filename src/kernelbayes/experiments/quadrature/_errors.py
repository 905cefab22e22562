"""Worst-case errors over functions of norm one, which need no integrand: one repeat, and all cases."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...integration import QuadratureRule
from ...integration._aim import Aim
from ...integration._nodes import NODES, Plan
from ...integration._reading import read_source
from ...rules.quadrature import importance
from .._study import Runs, Study
from ._examples import DRAWN, EXAMPLES, METHODS, OTHERS, SWEEPS

#: What is said of nodes that cannot be had.
_BEYOND = ("numerical rank", "known to rounding", "quantiles")


def worst_case(study: Study, settings: Mapping[str, Any]) -> Runs:
    """The errors of all methods in all cases."""
    return study.repeat(_once, settings, _cases(settings))


def _cases(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Examples on the line, the ball in the plane, and two examples in growing dimension."""
    chosen = [(name, 2 if name == "polynomial" else 1) for name in settings.get("examples", EXAMPLES)]
    chosen += [(name, d) for name in SWEEPS for d in settings["dimensions"] if d > 1]
    return [{"example": name, "dimension": d, "n": n} for name, d in chosen for n in settings["sizes"]]


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """Errors of all methods; NaN where nodes cannot be had, and the smallest error that can be told from zero."""
    example = settings["example"]
    aim = _aim(example, settings["dimension"], rng) if example in DRAWN else _kept_aim(example, settings["dimension"])
    seed = int(rng.integers(2**31))
    rules = {name: _rule(aim, settings["n"], name, seed) for name in METHODS}
    errors = {name: np.nan if rule is None else rule.worst_case_error for name, rule in rules.items()}
    others = {name: _reweighed(rules[name.split("_")[0]], name.split("_")[1]) for name in OTHERS}
    return {**errors, **others, "resolution": max(rule.resolution for rule in rules.values() if rule is not None)}


def _aim(example: str, dimension: int, rng: np.random.Generator) -> Aim:
    kernel, distribution = EXAMPLES[example].make(dimension, rng)
    return Aim(read_source(distribution), kernel)


@functools.cache
def _kept_aim(example: str, dimension: int) -> Aim:
    """Of a distribution that is the same in all repeats: its embedding and expansion need not be found anew."""
    return _aim(example, dimension, np.random.default_rng(0))


def _rule(aim: Aim, n: int, nodes: str, seed: int) -> QuadratureRule | None:
    """As `kb.quadrature` makes it, but all methods share what they need to know about the kernel.

    None for more nodes than the numerical rank, and for a design of a sample, which has no quantiles.
    """
    empty = np.empty((0, aim.source.dimension))
    try:
        chosen = NODES[nodes](Plan(aim, n, empty, seed, None, None))
    except ValueError as reason:
        if not any(words in str(reason) for words in _BEYOND):
            raise
        return None
    return QuadratureRule(aim, chosen.points, chosen.density, "optimal", 0.0, nodes, {"seed": seed})


def _reweighed(rule: QuadratureRule | None, weights: str) -> float:
    """The error on the same nodes with other weights."""
    if rule is None:
        return np.nan
    n = len(rule)
    other = np.full(n, 1.0 / n) if weights == "uniform" or rule.density is None else importance(rule.density)
    return rule._problem().error(other)

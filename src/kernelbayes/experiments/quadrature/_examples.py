"""Kernels with distributions, and the ways to choose nodes that are compared on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from ..._typing import Array
from ...kernels import Brownian, Gaussian, InfinitePolynomial, PeriodicSobolev
from .._figures import ACCENT, FAINT, GOLD, GREEN, INK, PURPLE, SECOND

METHODS = {
    "iid": ("1 iid", FAINT),
    "diagonal": ("2 k(x, x)", GOLD),
    "leverage": ("3 leverage", SECOND),
    "dpp": ("4 DPP", ACCENT),
    "herding": ("herding", PURPLE),
    "greedy": ("greedy", GREEN),
    "sobol": ("Sobol", INK),
}
NOTES = ("iid", "diagonal", "leverage", "dpp")
#: Weights other than the optimal ones, by what they are called in a column.
OTHERS = {
    "iid_importance": "1 iid, importance",
    "leverage_importance": "3 leverage, importance",
    "dpp_importance": "4 DPP, importance",
    "herding_uniform": "herding, uniform",
    "sobol_uniform": "Sobol, uniform",
}
#: In the ball of the infinite polynomial kernel: how many points stand for the truncated normal, its spread, its radius.
BALL = {"points": 2000, "sd": 0.4, "radius": 0.9}


class Example(NamedTuple):
    """A kernel and a distribution, from a dimension and random numbers."""

    label: str
    make: Callable[[int, np.random.Generator], tuple[Any, Any]]
    rate: float | None = None  # exponent s of the error n^-s with optimal weights, where it is known


EXAMPLES = {
    "sobolev-1": Example("Sobolev 1, uniform", lambda d, _: (PeriodicSobolev(1), [stats.uniform()] * d), 1.0),
    "sobolev-2": Example("Sobolev 2, uniform", lambda d, _: (PeriodicSobolev(2), [stats.uniform()] * d), 2.0),
    "beta": Example("Sobolev 1, Beta(2, 5)", lambda d, _: (PeriodicSobolev(1), [stats.beta(2, 5)] * d), 1.0),
    "gaussian": Example("Gaussian 1, normal", lambda d, _: (Gaussian(1.0), [stats.norm()] * d)),
    "gaussian-short": Example("Gaussian 0.3, normal", lambda d, _: (Gaussian(0.3), [stats.norm()] * d)),
    "brownian": Example("Brownian 1/2, uniform", lambda d, _: (Brownian(0.5), [stats.uniform()] * d), 1.0),
    "fractional": Example("Brownian 3/4, uniform", lambda d, _: (Brownian(0.75), [stats.uniform()] * d), 1.25),
    "polynomial": Example("polynomial, ball", lambda d, rng: (InfinitePolynomial(1.0), in_ball(d, rng))),
}
#: Examples with a dimension that grows.
SWEEPS = ("sobolev-1", "gaussian")
#: Those whose distribution is a sample, drawn anew in each repeat.
DRAWN = ("polynomial",)


def in_ball(dimension: int, rng: np.random.Generator) -> Array:
    """Draws of a normal that is truncated to a ball."""
    found = np.empty((0, dimension))
    while len(found) < BALL["points"]:
        tried = rng.normal(0.0, BALL["sd"], (BALL["points"], dimension))
        found = np.concatenate([found, tried[(tried**2).sum(1) <= BALL["radius"] ** 2]])
    return found[: int(BALL["points"])]


def title(example: str, dimension: int) -> str:
    return EXAMPLES[example].label + (f", {dimension}-d" if dimension > 1 else "")

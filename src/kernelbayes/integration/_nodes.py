"""Ways to choose the nodes of a rule. Each takes a `Plan` and gives the nodes that come after those there are already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._designs import unit_sequence
from .._linalg import pivoted_cholesky
from .._typing import Array
from ..features import Recipe
from ..features._herding import Pool, herd
from ..features._sampled_spectrum import draw_by_mass
from ..kernels import dense_gram
from ..kernels._determinantal import draw_projection
from ._source import Aim

# The leverage density has the regulariser at which so many terms count, in nodes. Measured on Gaussian kernels in one to
# three dimensions and on the Brownian one: from a quarter to a half is best, at twice the nodes it is worse than chance.
_TERMS_PER_NODE = 1 / 3
_STRETCH = 1.5
# Below this share of the kernel, what is left of it at a candidate is too uncertain to be divided by.
_LEFT = 1e-10


class Plan(NamedTuple):
    """What a choice of nodes depends on."""

    aim: Aim
    count: int  # nodes to choose
    before: Array  # nodes there are already (m, d)
    seed: int
    reg: float | None  # of the leverage density
    features: Recipe | None

    @property
    def total(self) -> int:
        """Nodes there will be."""
        return len(self.before) + self.count

    def rng(self) -> np.random.Generator:
        """Random numbers that those before did not use."""
        return np.random.default_rng([self.seed, len(self.before)])

    def candidates(self) -> Array:
        """Points to choose from."""
        return self.aim.source.pool(self.total, self.seed)[0]

    def leverage_reg(self) -> float:
        """The regulariser of the leverage density."""
        if self.reg is not None:
            return self.reg
        return self.aim.spectrum(self.total, self.seed, self.features).regulariser(_TERMS_PER_NODE * self.total)


class Nodes(NamedTuple):
    """Nodes (n, d) and, where they are random, the density (n,) of their expected number over their number."""

    points: Array
    density: Array | None


def iid(plan: Plan) -> Nodes:
    """Independent draws of the distribution."""
    return Nodes(plan.aim.source.draw(plan.count, plan.rng()), np.ones(plan.count))


def diagonal(plan: Plan) -> Nodes:
    """Independent draws with density proportional to k(x, x)."""
    spectrum = plan.aim.expansion
    if spectrum is not None:
        points = spectrum._points(spectrum._draw_diagonal(plan.count, plan.rng()))
        return Nodes(points, plan.aim.kernel._diag(points) / spectrum.trace)
    pool, weights = plan.aim.source.pool(plan.total, plan.seed)
    shares = np.full(len(pool), 1.0 / len(pool)) if weights is None else weights
    mass = shares * plan.aim.kernel._diag(pool)
    chosen = draw_by_mass(mass, plan.count, plan.rng())
    return Nodes(pool[chosen], plan.aim.kernel._diag(pool[chosen]) / mass.sum())


def leverage(plan: Plan) -> Nodes:
    """Independent draws from the leverage density (Quadrature notes, section 2.3)."""
    spectrum = plan.aim.spectrum(plan.total, plan.seed, plan.features)
    reg = plan.leverage_reg()
    places = spectrum._draw_leverage(plan.count, reg, plan.rng())
    return Nodes(spectrum._points(places), spectrum._leverage(places, reg) / spectrum.effective_dimension(reg))


def dpp(plan: Plan) -> Nodes:
    """A draw of the determinantal process of the first eigenfunctions; of what it leaves where some nodes are given."""
    spectrum = plan.aim.spectrum(plan.total, plan.seed, plan.features)
    modes = spectrum._modes_of(plan.total, "projection", plan.rng())
    given = spectrum._at(plan.before)[:, : plan.total] if len(plan.before) else None
    places = draw_projection(spectrum, modes, plan.rng(), given)
    intensity = (spectrum._functions(places, modes) ** 2).sum(1)
    return Nodes(spectrum._points(places), intensity / plan.total)


def herding(plan: Plan) -> Nodes:
    """Greedily, so that with equal weights the rule follows the embedding (Kanagawa 2016, equations 2.16-2.17)."""
    kernel, candidates = plan.aim.kernel, plan.candidates()
    sums = dense_gram(kernel, plan.before, candidates).sum(0) if len(plan.before) else np.zeros(len(candidates))
    target, pool = plan.aim.embedding._evaluate(candidates), Pool((kernel, candidates))
    _refuse_few(candidates, plan.count)
    return Nodes(candidates[herd(pool, target, plan.count, repeat=False, before=(len(plan.before), sums))], None)


def greedy(plan: Plan) -> Nodes:
    """Sequential Bayesian quadrature: each node is the one that, with optimal weights, lowers the worst-case error most.

    The error with nodes X is what the span of their kernels misses of the embedding, so that the next node is the next pivot
    of a Cholesky factorisation that has the embedding for a target (Huszar and Duvenaud 2012).
    """
    kernel = plan.aim.kernel
    candidates = np.concatenate([plan.before, plan.candidates()])
    pool = Pool((kernel, candidates))
    found = pivoted_cholesky(
        pool.diagonal(),
        pool.row,
        rank=plan.total,
        tol=_LEFT,
        target=plan.aim.embedding._evaluate(candidates),
        first=len(plan.before),
    )
    new = found.pivots[found.pivots >= len(plan.before)][: plan.count]
    if len(new) < plan.count:
        raise ValueError(
            f"after {len(plan.before) + len(new)} nodes the kernel is known to rounding at all candidates, so that "
            f"n={plan.total} cannot be chosen greedily; take fewer nodes, a shorter lengthscale or nodes='dpp'"
        )
    return Nodes(candidates[new], None)


def sobol(plan: Plan) -> Nodes:
    """A scrambled Sobol sequence, by the quantiles of the distribution."""
    return _design("sobol", plan)


def halton(plan: Plan) -> Nodes:
    """A scrambled Halton sequence, by the quantiles of the distribution."""
    return _design("halton", plan)


def wide(plan: Plan) -> Nodes:
    """A scrambled Sobol sequence whose tails reach farther than those of the distribution.

    Half of a Gaussian's nodes by quantiles crowd where the function is known already, and none is where a growing one has
    most of what is missing of its integral.
    """
    return Nodes(_design("sobol", plan, _STRETCH).points, None)


def _design(kind: str, plan: Plan, stretch: float = 1.0) -> Nodes:
    source = plan.aim.source
    u = unit_sequence(kind, source.dimension, len(plan.before), plan.total, plan.seed)
    return Nodes(source.place(u, stretch), np.ones(plan.count))


def _refuse_few(candidates: Any, count: int) -> None:
    if count > len(candidates):
        raise ValueError(f"n={count} nodes cannot be chosen from {len(candidates)} points")


NODES: dict[str, Callable[[Plan], Nodes]] = {
    "iid": iid,
    "diagonal": diagonal,
    "leverage": leverage,
    "dpp": dpp,
    "herding": herding,
    "greedy": greedy,
    "sobol": sobol,
    "halton": halton,
    "wide": wide,
}

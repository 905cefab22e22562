"""Ways to choose the nodes of a rule. Each takes a `Plan` and gives the nodes that come after those there are already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from .. import _check
from .._designs import unit_sequence
from .._linalg import FactorisationError, pivoted_cholesky
from .._typing import Array
from ..features import Recipe
from ..features._herding import Pool, herd
from ..features._sampled_spectrum import SampledSpectrum, found_in
from ..kernels import dense_gram
from ..kernels._determinantal import draw_projection
from ..kernels._spectrum import Spectrum
from ._aim import Aim
from ._source import QuantileSource

# The leverage density has the regulariser at which so many terms count, in nodes. Measured on Gaussian kernels in one to
# three dimensions and on the Brownian one: from a quarter to a half is best, at twice the nodes it is worse than chance.
_TERMS_PER_NODE = 1 / 3
# By how much tails are stretched in one and two dimensions; in many, all mass of a normal is on a shell that must be met.
_STRETCH = 0.5
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
        """Points to choose from, without those that are nodes already."""
        points = self.aim.source.pool(self.total, self.seed)[0]
        points = points[np.sort(np.unique(points, axis=0, return_index=True)[1])]  # draws may be alike
        points = points[~found_in(points, self.before)]
        if self.count > len(points):
            raise ValueError(f"n={self.count} nodes cannot be chosen from {len(points)} points")
        return points

    def new_places(self) -> Spectrum:
        """The spectrum to draw nodes from: that of a pool without those of its points that are nodes already."""
        spectrum = self.aim.spectrum(self.total, self.seed, self.features)
        return spectrum.without(self.before) if isinstance(spectrum, SampledSpectrum) else spectrum

    def leverage_reg(self) -> float:
        """The regulariser of the leverage density."""
        if self.reg is not None:
            return self.reg
        return self.aim.spectrum(self.total, self.seed, self.features).regulariser(_TERMS_PER_NODE * self.total)


class NoMoreNodes(ValueError):
    """Nodes that cannot be chosen, and those that could.

    Attributes:
        found: nodes (m, d), fewer than were wanted.
    """

    def __init__(self, message: str, found: Array):
        super().__init__(message)
        self.found = found


class Nodes(NamedTuple):
    """Nodes (n, d) and, where they are random, the density (n,) of their expected number over their number."""

    points: Array
    density: Array | None


def iid(plan: Plan) -> Nodes:
    """Independent draws of the distribution; of a sample, each point once."""
    return Nodes(*plan.aim.source.draw_new(plan.count, plan.before, plan.rng()))


def diagonal(plan: Plan) -> Nodes:
    """Draws with density proportional to k(x, x)."""
    spectrum = plan.new_places()
    places, density = spectrum._diagonal_nodes(plan.count, plan.rng())
    return Nodes(spectrum._points(places), density)


def leverage(plan: Plan) -> Nodes:
    """Draws from the leverage density (Quadrature notes, section 2.3)."""
    reg = plan.leverage_reg()
    spectrum = plan.new_places()
    places, density = spectrum._leverage_nodes(plan.count, reg, plan.rng())
    return Nodes(spectrum._points(places), density)


def dpp(plan: Plan) -> Nodes:
    """A draw of the determinantal process of the first eigenfunctions; of what it leaves where some nodes are given."""
    return _process(plan, "projection")


def k_dpp(plan: Plan) -> Nodes:
    """The same of eigenfunctions that are drawn by their eigenvalues (the k-DPP of the kernel)."""
    return _process(plan, "k-dpp")


def _process(plan: Plan, kind: str) -> Nodes:
    spectrum, rng = plan.aim.spectrum(plan.total, plan.seed, plan.features), plan.rng()
    modes = spectrum._modes_of(plan.total, kind, rng)
    if not len(plan.before):
        places = draw_projection(spectrum, modes, rng)
        return Nodes(spectrum._points(places), (spectrum._functions(places, modes) ** 2).sum(1) / plan.total)
    places = draw_projection(spectrum, modes, rng, spectrum._at(plan.before)[:, modes])
    return Nodes(spectrum._points(places), None)  # the process of both has a density, but not one from which they came


def herding(plan: Plan) -> Nodes:
    """Greedily, so that with equal weights the rule follows the embedding (Kanagawa 2016, equations 2.16-2.17)."""
    kernel, candidates = plan.aim.kernel, plan.candidates()
    sums = dense_gram(kernel, plan.before, candidates).sum(0) if len(plan.before) else np.zeros(len(candidates))
    target, pool = plan.aim.embedding._evaluate(candidates), Pool((kernel, candidates))
    return Nodes(candidates[herd(pool, target, plan.count, repeat=False, before=(len(plan.before), sums))], None)


def greedy(plan: Plan) -> Nodes:
    """Sequential Bayesian quadrature: each node is the one that, with optimal weights, lowers the worst-case error most.

    The error with nodes X is what the span of their kernels misses of the embedding, so that the next node is the next pivot
    of a Cholesky factorisation that has the embedding for a target (Huszar and Duvenaud 2012).
    """
    kernel = plan.aim.kernel
    candidates = np.concatenate([plan.before, plan.candidates()])
    pool = Pool((kernel, candidates))
    target, before = plan.aim.embedding._evaluate(candidates), len(plan.before)
    try:
        found = pivoted_cholesky(
            pool.diagonal(), pool.row, rank=plan.total, tol=_LEFT, target=target, first=before
        ).pivots
    except FactorisationError:  # what is left of the kernel has been divided by until it was rounding
        found = np.arange(before)
    new = found[found >= before][: plan.count]
    if len(new) < plan.count:
        raise NoMoreNodes(
            f"before there are n={plan.total} nodes the kernel is known to rounding at all candidates, so that they cannot "
            "be chosen greedily; take fewer nodes, a shorter lengthscale or nodes='dpp'",
            candidates[new],
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
    return Nodes(_design("sobol", plan, _stretch(plan.aim.source.dimension)).points, None)


def _stretch(dimension: int) -> float:
    return 1.0 + _STRETCH * min(1.0, 2.0 / dimension)


def wide_shares(source: QuantileSource, n: int, seed: int) -> Array:
    """What mass (n,) each of n wide nodes stands for: the density of the distribution over theirs, divided by n."""
    z = scipy.special.ndtri(unit_sequence("sobol", source.dimension, 0, n, seed))[:, source.with_tails()]
    stretch = _stretch(source.dimension)
    return np.exp((np.log(stretch) - 0.5 * (stretch**2 - 1.0) * z**2).sum(1)) / n


def _design(kind: str, plan: Plan, stretch: float = 1.0) -> Nodes:
    source = plan.aim.source
    u = unit_sequence(kind, source.dimension, len(plan.before), plan.total, plan.seed)
    return Nodes(source.place(u, stretch), np.ones(plan.count))


NODES: dict[str, Callable[[Plan], Nodes]] = {
    "iid": iid,
    "diagonal": diagonal,
    "leverage": leverage,
    "dpp": dpp,
    "k-dpp": k_dpp,
    "herding": herding,
    "greedy": greedy,
    "sobol": sobol,
    "halton": halton,
    "wide": wide,
}


def chosen_nodes(aim: Aim, count: int | None, nodes: Any, before: Array, plan: dict[str, Any]) -> tuple[Nodes, str]:
    """New nodes, and what to call them."""
    if not isinstance(nodes, str):
        nodes = _check.by_name(nodes, aim.source.names, "nodes")
        points = aim.kernel._check(_check.vectors(nodes, "nodes", width=aim.source.dimension), "nodes")
        if count is not None and count != len(points):
            raise ValueError(f"n is {count}, but {len(points)} nodes are given; n must be their number")
        return Nodes(points, None), "given"
    _check.option(nodes, "nodes", tuple(NODES))
    if count is None:
        raise ValueError("n, the number of nodes, must be given unless the nodes are")
    reg = plan.get("leverage_reg", plan["reg"])
    return NODES[nodes](Plan(aim, count, before, plan["seed"], reg, plan["features"])), nodes

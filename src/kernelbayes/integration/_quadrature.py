"""The choice of nodes and weights for integrals under a distribution: what a user asks for, checked and made a rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .._typing import ArrayLike, RandomState
from ..embeddings._mean import default_kernel
from ..features import Recipe
from ..kernels import Kernel, check_kernel
from ._aim import Aim
from ._nodes import Plan, chosen_nodes
from ._reading import read_source
from ._rule import QuadratureRule

WEIGHTS = ("optimal", "normalised", "bach", "importance", "uniform")
# Matrices of all pairs of nodes that are held at once, at most.
_MATRICES = 5


def quadrature(
    kernel: Kernel | None,
    distribution: Any,
    n: int | None = None,
    nodes: str | ArrayLike = "leverage",
    weights: str = "optimal",
    reg: float | None = None,
    *,
    features: Recipe | None = None,
    random_state: RandomState = None,
) -> QuadratureRule:
    r"""A rule for integrals under a distribution: where to evaluate a function, and what to multiply the values by.

    Args:
        kernel: of the space of functions that are to be integrated; None for a Gaussian one with the median distance of
            draws.
        distribution: a frozen distribution of `scipy.stats`, a list of those on the line (independent columns) or a dict of
            them by name, in which bounds `(low, high)` are uniforms, a `kb.Prior` of independent parameters, a
            `multivariate_normal`, a `kb.Mixture`, an embedding, or a sample of points (N, d), such as a data frame.
            Integrals of the kernel are closed forms where they are known, and otherwise those of 8,192 points that stand for
            the distribution; `origin` of the rule says which. Discrete distributions of up to 10,000 values are weighted
            points, and equal points of a sample are one.
        n: number of nodes.
        nodes: how they are chosen, or the nodes themselves (n, d):

            - "iid": draws of the distribution;
            - "diagonal": draws with density k(x, x);
            - "leverage": draws from the leverage density, which has more where a smooth function is least known;
            - "dpp": from the determinantal process of the first n eigenfunctions, whose points repel each other;
            - "k-dpp": from that of n eigenfunctions drawn by their eigenvalues;
            - "herding": greedily, for equal weights;
            - "greedy": greedily, for optimal weights (sequential Bayesian quadrature);
            - "sobol", "halton": scrambled sequences, by the quantiles of the distribution;
            - "wide": the first with tails that reach farther, for functions that grow in them.

            Leverage and determinantal nodes are exact where a Mercer expansion is known (see `kb.mercer`). Otherwise they,
            and the greedy ones, come from a pool: at least 4,096 and 20 n points, or the sample that was given.
        weights: "optimal" minimises the worst-case error; "normalised" does so among weights that sum to one, and so is
            exact for constants; "bach" is the first with the penalty :math:`n \lambda \sum_i q(x_i) w_i^2`; "importance"
            is unbiased for random nodes; "uniform" is 1/n.
        reg: penalty :math:`\lambda` of the weights, none by default, and regulariser of the leverage density, by default the
            one at which a third of n terms count. It keeps weights small: `summary` has the sum of their sizes, by which an
            error in the values is multiplied at most, and which is huge for smooth kernels at nodes that leave gaps.
        features: representation of a pool; by default the kernel itself for up to 3,000 points, and a subspace beyond.
        random_state: seed.

    Quadrature notes, sections 2 and 3; Bach (2017), On the equivalence between kernel quadrature rules and random feature
    expansions.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), 16, nodes="dpp", random_state=0)
        >>> rule
        QuadratureRule(16 nodes by dpp, optimal weights, worst-case error ..., closed form)
        >>> mean, std = rule.integrate(lambda x: np.cos(x[:, 0]), return_std=True)
        >>> abs(mean - np.exp(-0.5)) < 4 * std < 1e-3
        True
    """
    source = read_source(distribution)
    _check.option(weights, "weights", WEIGHTS)
    seed = _check.seed(random_state)
    if kernel is None:
        kernel = default_kernel(source.draw(500, np.random.default_rng(0)), "distribution")
    check_kernel(kernel)._check_width(source.dimension, "the distribution")
    penalty = 0.0 if reg is None else _check.positive(reg, "reg")
    if features is not None and not isinstance(features, Recipe):
        raise ValueError(f"features must be a representation such as kb.Subspace(500) or None, got {features!r}")
    plan = {"seed": seed, "reg": reg, "features": features}
    aim = Aim(source, kernel)
    empty = np.empty((0, source.dimension))
    count = None if n is None else _check.count(n, "n")
    if count is not None:
        fits_memory(count)
    chosen, name = chosen_nodes(aim, count, nodes, empty, plan)
    if name == "leverage" and reg is None:
        plan["leverage_reg"] = Plan(aim, len(chosen.points), empty, seed, None, features).leverage_reg()
    if weights in ("importance", "bach") and chosen.density is None:
        raise ValueError(f"weights={weights!r} needs nodes with a density, which {name} nodes have not; use 'optimal'")
    return QuadratureRule(aim, chosen.points, chosen.density, weights, penalty, name, plan)


def fits_memory(n: int) -> None:
    """Refuse so many nodes that their Gram matrix and its factors do not fit."""
    _check.fits_memory(
        _MATRICES * n * n, f"a rule of {n:,} nodes", "take fewer; for so many, quasi-Monte Carlo is as good"
    )

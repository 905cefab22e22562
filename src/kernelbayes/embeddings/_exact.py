"""Numbers of the distributions that closed forms know: mixtures of normals and of independent columns.

Each is taken apart into simple components, whose columns are frozen distributions of `scipy.stats`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
import scipy.special

from .._typing import Array
from ..kernels._distributions import Column, Distribution, Mixture, Normal, Simple

_NODES = 2**16  # over all components
_CLIMBS = 3


def components(P: Distribution) -> list[tuple[float, Simple]]:
    """Shares and simple components, of mixtures of mixtures too."""
    if not isinstance(P, Mixture):
        return [(1.0, P)]
    return [
        (float(w * share), part) for w, c in zip(P.weights, P.components, strict=True) for share, part in components(c)
    ]


def column(part: Simple, j: int) -> Column:
    """The distribution of one column of a simple component."""
    if part.columns is not None:
        return part.columns[j]
    return Column(part.mean()[j], sd=float(np.sqrt(part.covariance()[j, j])))


def cdf(P: Distribution, X: Array) -> Array:
    """The distribution function of each column at points (m, d)."""
    parts = components(P)
    columns = [sum(share * column(part, j).frozen().cdf(X[:, j]) for share, part in parts) for j in range(P.dimension)]
    return np.stack(columns, axis=1)


def moment(P: Distribution, order: int, about: Array) -> Array:
    """E[(x - about)^order] of each column."""
    out = np.zeros(P.dimension)
    for share, part in components(P):
        for j in range(P.dimension):
            c = column(part, j)
            out[j] += share * Column(c.centre - about[j], c.sd, c.half).frozen().moment(order)
    return out


def quantile(P: Distribution, level: float) -> Array:
    """The quantile of each column: of a mixture by bisection between those of its components."""
    return np.array(
        [_quantile([(s, column(part, j).frozen()) for s, part in components(P)], level) for j in range(P.dimension)]
    )


def _quantile(parts: list[tuple[float, Any]], level: float) -> float:
    ends = [frozen.support()[int(level)] if level in (0.0, 1.0) else frozen.ppf(level) for _, frozen in parts]
    low, high = float(min(ends)), float(max(ends))

    def excess(x: float) -> float:
        return sum(share * frozen.cdf(x) for share, frozen in parts) - level

    if level in (0.0, 1.0):
        return high if level else low
    if low == high or excess(low) >= 0:
        return low
    root: Any = scipy.optimize.brentq(excess, low, high, xtol=1e-14 * max(abs(low), abs(high)))
    return float(root)


def probability(P: Distribution, lower: Array, upper: Array) -> float:
    """The mass of the box `lower < x <= upper`."""
    return float(sum(share * _box(part, lower, upper) for share, part in components(P)))


def _box(part: Simple, lower: Array, upper: Array) -> float:
    bounded = [j for j in range(part.dimension) if lower[j] > -np.inf or upper[j] < np.inf]
    if part.columns is None and len(bounded) > 1:
        from scipy import stats  # slow to import

        cov: Any = part.covariance()[np.ix_(bounded, bounded)]
        normal = stats.multivariate_normal(part.mean()[bounded], cov, allow_singular=True, seed=0)
        return float(normal.cdf(upper[bounded], lower_limit=lower[bounded]))
    frozen = [column(part, j).frozen() for j in bounded]
    return float(np.prod([f.cdf(upper[j]) - f.cdf(lower[j]) for f, j in zip(frozen, bounded, strict=True)]))


def mode(P: Distribution) -> Array:
    """The maximum of the density, climbed from the highest means of its components; the centre of a single one."""
    parts = [part for share, part in components(P) if share > 0]
    if len(parts) == 1:
        return parts[0].mean()
    highest = np.argsort(-P.density(np.stack([part.mean() for part in parts])), kind="stable")[:_CLIMBS]
    return min((_climb(P, parts[i]) for i in highest), key=lambda run: run.fun).x


def _climb(P: Distribution, part: Simple) -> Any:
    start, width = part.mean(), np.sqrt(np.diagonal(part.covariance()))
    simplex = start + np.concatenate([np.zeros((1, len(start))), 0.3 * np.diag(width)])
    options = {"initial_simplex": simplex, "xatol": 1e-8 * width.max(), "fatol": 0.0, "maxiter": 400 * len(start)}
    return scipy.optimize.minimize(lambda x: -P.density(x[None])[0], start, method="Nelder-Mead", options=options)


def nodes(P: Distribution) -> tuple[Array, Array]:
    """Points and weights of a quasi-Monte Carlo rule: Sobol points in the middle of their cells, for each component."""
    from scipy import stats  # slow to import

    parts = components(P)
    exponent = int(np.log2(max(_NODES // len(parts), 64)))
    uniform = stats.qmc.Sobol(P.dimension, scramble=False).random_base2(exponent) + 0.5 / 2**exponent
    points, weights = [], []
    for share, part in parts:
        points.append(placed(part, uniform))
        weights.append(np.full(len(uniform), share / len(uniform)))
    return np.concatenate(points), np.concatenate(weights)


def placed(part: Simple, uniform: Array, stretch: float = 1.0) -> Array:
    """Points (n, d) at places (n, d) of the unit cube, by quantiles; normal columns are stretched by a factor."""
    standard = stretch * scipy.special.ndtri(uniform)
    if isinstance(part, Normal):
        return part.transform(standard)
    columns = zip(part.columns, standard.T, uniform.T, strict=True)
    return np.stack([c.centre + (c.half * (2.0 * u - 1.0) if c.half > 0 else c.sd * z) for c, z, u in columns], axis=1)

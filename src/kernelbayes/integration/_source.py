"""A distribution as a quadrature rule needs it: draws, places for designs, points to choose from or to stand for it."""

from __future__ import annotations

import abc
import warnings
from typing import Any

import numpy as np
import scipy.special

from .. import _check
from .._designs import unit_sequence
from .._typing import Array
from ..embeddings._exact import components, placed
from ..features._sampled_spectrum import draw_by_mass, found_in
from ..kernels import Kernel
from ..kernels._distributions import Distribution, Independent, NoClosedFormError
from ..kernels._mercer import MercerExpansion, expansion

# Points that stand for a distribution whose integrals are not known.
_STAND_IN = 2**13
# Points of a pool from which nodes are chosen: so many for each node, and at least these.
_POOL_PER_NODE, _SMALLEST_POOL = 20, 4096
# Terms of a Mercer expansion that are held.
_TERMS = 5000


class Source(abc.ABC):
    """Where the points of an integral come from."""

    dimension: int
    #: Of the columns, where they came with the distribution.
    names: tuple[str, ...] | None = None

    @abc.abstractmethod
    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n, d)."""

    def draw_new(self, n: int, before: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draws (n, d) that are not among those before, and the density (n,) of their number over n."""
        return self.draw(n, rng), np.ones(n)

    @abc.abstractmethod
    def stand_in(self) -> tuple[Array, Array | None, str]:
        """Points and weights (None: equal) that stand for the distribution, and what they are called."""

    def place(self, u: Array, stretch: float = 1.0) -> Array:
        """Points (n, d) at these places of the unit cube; where there are tails they reach farther by a factor."""
        raise ValueError(
            f"nodes of a design need the quantiles of the distribution, which {self.kind} does not have; use "
            "nodes='leverage', 'dpp', 'herding', 'greedy' or 'iid'"
        )

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """What to call it in a message."""

    def pool(self, n: int, seed: int) -> tuple[Array, Array | None]:
        """Points from which n nodes are chosen, and their probabilities (None: equal)."""
        return self.draw(max(_POOL_PER_NODE * n, _SMALLEST_POOL), np.random.default_rng(seed)), None

    def expansion(self, kernel: Kernel) -> MercerExpansion | None:
        """The Mercer expansion of a kernel, where it is known."""
        return None

    def shares_of_all(self, nodes: Array) -> Array | None:
        """Probabilities (n,) of the nodes if these are all the points there are, each once; otherwise None."""
        return None

    def heavy_columns(self) -> list[int]:
        """Columns whose variance is infinite, or not defined."""
        return []


class QuantileSource(Source):
    """A distribution with quantiles: designs can be placed by them."""

    @abc.abstractmethod
    def place(self, u: Array, stretch: float = 1.0) -> Array:
        """Points (n, d) at these places of the unit cube; where there are tails they reach farther by a factor."""

    @abc.abstractmethod
    def with_tails(self) -> Array:
        """Which columns (d,) have tails, so that `place` stretches them."""

    def pool(self, n: int, seed: int) -> tuple[Array, Array | None]:
        """Sobol points: more even than draws."""
        return self.place(_even(max(_POOL_PER_NODE * n, _SMALLEST_POOL), self.dimension, seed)), None

    def stand_in(self) -> tuple[Array, Array | None, str]:
        """Sobol points."""
        return self.place(_even(_STAND_IN, self.dimension, 0)), None, f"{_STAND_IN:,} Sobol points"


class KnownSource(QuantileSource):
    """Normals, uniforms, products and mixtures of them: integrals may be known in closed form."""

    def __init__(self, distribution: Distribution):
        self.distribution, self.dimension = distribution, distribution.dimension

    @property
    def kind(self) -> str:
        """What to call it in a message."""
        return getattr(self.distribution, "kind", "a mixture")

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n, d)."""
        return self.distribution.sample(n, rng)

    def place(self, u: Array, stretch: float = 1.0) -> Array:
        """By quantiles; the first column also decides on the component of a mixture, and is stretched to fill it."""
        shares, parts = zip(*components(self.distribution), strict=True)
        edges = np.append(0.0, np.cumsum(shares))
        which = np.clip(np.searchsorted(edges, u[:, 0], side="right") - 1, 0, len(parts) - 1)
        inside = (u[:, 0] - edges[which]) / np.asarray(shares)[which]
        half = np.finfo(np.float64).eps
        u = np.column_stack([np.clip(inside, half, 1.0 - half), u[:, 1:]])
        out = np.empty_like(u)
        for k, part in enumerate(parts):
            out[which == k] = placed(part, u[which == k], stretch)
        return out

    def with_tails(self) -> Array:
        """Which columns (d,) are normal, in one of the components at least."""
        parts = [part for _, part in components(self.distribution)]
        return np.any(
            [[c.sd > 0 for c in p.columns] if isinstance(p, Independent) else [True] * self.dimension for p in parts],
            axis=0,
        )

    def expansion(self, kernel: Kernel) -> MercerExpansion | None:
        """The Mercer expansion of a kernel, where it is known."""
        try:
            return expansion(kernel, self.distribution, _TERMS)
        except NoClosedFormError:
            return None


def _even(n: int, d: int, seed: int) -> Array:
    return unit_sequence("sobol", d, 0, 1 << (n - 1).bit_length(), seed)


class FrozenSource(QuantileSource):
    """Independent columns, each a frozen distribution of `scipy.stats`."""

    def __init__(self, columns: list[Any]):
        self.columns, self.dimension = columns, len(columns)

    @property
    def kind(self) -> str:
        """What to call it in a message."""
        return "a list of scipy.stats distributions"

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n, d)."""
        return self.place(rng.random((n, self.dimension)))

    def place(self, u: Array, stretch: float = 1.0) -> Array:
        """By quantiles; where a column has no end, those of places that are stretched as normal ones would be."""
        half = np.finfo(np.float64).eps
        wide = scipy.special.ndtr(stretch * scipy.special.ndtri(u))
        u = np.where(self.with_tails(), wide, u)
        u = np.clip(u, half, 1.0 - half)
        columns = [np.asarray(_inverse(c)(x), dtype=np.float64) for c, x in zip(self.columns, u.T, strict=True)]
        return np.stack(columns, axis=1)

    def with_tails(self) -> Array:
        """Which columns (d,) have no end on one side."""
        return np.array([np.isinf(c.support()).any() for c in self.columns])

    def heavy_columns(self) -> list[int]:
        """Columns whose variance is infinite, or not defined."""
        return [j for j, c in enumerate(self.columns) if self.with_tails()[j] and not np.isfinite(_variance(c))]


def _variance(frozen: Any) -> float:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(frozen.var() if hasattr(frozen, "var") else frozen.variance())
    except Exception:  # a class of the user's need not know it, and nothing is said then
        return 1.0


def _inverse(frozen: Any) -> Any:
    return frozen.ppf if hasattr(frozen, "ppf") else frozen.icdf


class DrawnSource(Source):
    """A distribution of which there are draws only, such as a Dirichlet."""

    def __init__(self, distribution: Any):
        self.distribution = distribution
        self.dimension = self.draw(2, np.random.default_rng(0)).shape[1]

    @property
    def kind(self) -> str:
        """What to call it in a message."""
        return f"a {type(self.distribution).__name__}"

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n, d)."""
        return _check.vectors(np.reshape(self.distribution.rvs(n, random_state=rng), (n, -1)), "distribution")

    def stand_in(self) -> tuple[Array, Array | None, str]:
        """Draws."""
        return self.draw(_STAND_IN, np.random.default_rng(0)), None, f"{_STAND_IN:,} draws"


class PointSource(Source):
    """The distribution of a weighted sample, in which equal points are one."""

    def __init__(self, points: Array, weights: Array | None, thing: str = "sample"):
        self.dimension, self.thing, self.size = points.shape[1], thing, len(points)
        self.points, self.weights = _distinct(points, weights)

    @property
    def kind(self) -> str:
        """What to call it in a message."""
        return f"a {self.thing} of points"

    @property
    def held(self) -> str:
        """How many points there are, in words."""
        different = "different " * (len(self.points) < self.size)
        return f"the {self.thing} has {len(self.points):,} {different}points only"

    def shares_of_all(self, nodes: Array) -> Array | None:
        """Probabilities (n,) of the nodes if these are all the points there are, each once; otherwise None."""
        if len(nodes) != len(self.points):
            return None
        here, there = np.lexsort(self.points.T), np.lexsort(nodes.T)
        if not np.array_equal(self.points[here], nodes[there]):
            return None
        out = np.empty(len(nodes))
        out[there] = self.shares()[here]
        return out

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Independent draws (n, d)."""
        return self.points[rng.choice(len(self.points), n, p=self.weights)]

    def draw_new(self, n: int, before: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Each point once at most."""
        shares = self.shares()
        places, inclusion = draw_by_mass(np.where(found_in(self.points, before), 0.0, shares), n, rng)
        return self.points[places], inclusion / (n * shares[places])

    def shares(self) -> Array:
        """Probabilities (N,) of the points."""
        return np.full(len(self.points), 1.0 / len(self.points)) if self.weights is None else self.weights

    def pool(self, n: int, seed: int) -> tuple[Array, Array | None]:
        """The sample."""
        return self.points, self.weights

    def stand_in(self) -> tuple[Array, Array | None, str]:
        """The sample itself."""
        return self.points, self.weights, f"the {self.thing} of {self.size:,} points"


def _distinct(points: Array, weights: Array | None) -> tuple[Array, Array | None]:
    """Points that differ, in the order in which they came first, and their weights (None: equal)."""
    points = points + 0.0  # of zero there are two
    _, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    if len(first) == len(points):
        return points, weights
    each = np.full(len(points), 1.0 / len(points)) if weights is None else weights
    order = np.argsort(first)
    return points[first[order]], np.bincount(inverse.ravel(), each)[order]

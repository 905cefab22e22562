"""A distribution as a quadrature rule needs it: its embedding, draws, places for designs, and its spectrum."""

from __future__ import annotations

import abc
import functools
import itertools
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.special

from .. import _check
from .._designs import unit_sequence
from .._typing import Array
from ..embeddings import AnalyticEmbedding, Embedding, MeanEmbedding
from ..embeddings._exact import components, placed
from ..features import Recipe, Subspace, default_recipe
from ..features._herding import Pool
from ..features._landmark import EXACT_POINTS
from ..features._sampled_spectrum import SampledSpectrum, draw_by_mass, found_in
from ..kernels import Kernel
from ..kernels._distributions import (
    Distribution,
    Independent,
    Mixture,
    NoClosedFormError,
    as_distribution,
    is_distribution,
)
from ..kernels._mercer import MercerExpansion, expansion
from ..kernels._spectrum import Spectrum

# Points that stand for a distribution whose integrals are not known.
_STAND_IN = 2**13
# Points of a pool from which nodes are chosen: so many for each node, and at least these.
_POOL_PER_NODE, _SMALLEST_POOL = 20, 4096
# Terms of a Mercer expansion that are held.
_TERMS = 5000
# A discrete distribution with no more values than these, but for a share of them, is that of so many weighted points.
_MOST_VALUES, _NO_SHARE = 10_000, 1e-16
# Size of the subspace on which the spectrum of a large pool is found, in nodes, and at least.
_SUBSPACE_PER_NODE, _SMALLEST_SUBSPACE = 4, 400


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


def read_source(distribution: Any) -> Source:
    """What a user gives as a distribution, or a ValueError that says what is wanted."""
    if isinstance(distribution, Source):
        return distribution
    if isinstance(distribution, AnalyticEmbedding):
        distribution = distribution.distribution
    if isinstance(distribution, MeanEmbedding):
        if (distribution.weights < 0).any():
            raise ValueError("an embedding with negative weights is no distribution to integrate over; herd it first")
        return PointSource(_check.vectors(distribution.points, "distribution"), distribution.normalise().weights)
    if hasattr(distribution, "_independent"):  # a kb.Prior
        distribution = distribution._independent()
    if isinstance(distribution, Mapping):
        return _read_named(distribution)
    if is_distribution(distribution):
        return _read_distribution(distribution)
    return _read_sample(distribution)


def _read_named(given: Mapping[Any, Any]) -> Source:
    """Independent columns by name, each a frozen distribution or bounds of a uniform."""
    from scipy import stats  # slow to import

    columns = []
    for name, part in given.items():
        if _are_bounds(part):
            low, high = map(float, part)
            if not low < high:
                raise ValueError(f"distribution: the bounds of {name!r} must rise, got ({low:g}, {high:g})")
            part = stats.uniform(low, high - low)
        if isinstance(part, (list, tuple)) or not is_distribution(part):
            raise ValueError(
                f"distribution: {name!r} must be a frozen scipy.stats distribution such as stats.norm(0, 1), or bounds "
                f"(low, high) of a uniform; got {part!r}"
            )
        columns.append(part)
    if not columns:
        raise ValueError("distribution is empty; one for each column was wanted, such as {'x': stats.norm(0, 1)}")
    source = _read_distribution(columns)
    if source.dimension != len(columns):
        raise ValueError("distribution: each name must have one column; give a multivariate distribution by itself")
    source.names = tuple(map(str, given))
    return source


def _are_bounds(part: Any) -> bool:
    numbers = isinstance(part, (list, tuple)) and len(part) == 2
    return numbers and all(isinstance(v, (int, float, np.number)) and not isinstance(v, bool) for v in part)


def _read_sample(given: Any) -> PointSource:
    pairs = given if isinstance(given, (list, tuple)) and not _are_bounds(given) else [given]
    if len(pairs) > 0 and all(isinstance(pair, tuple) and _are_bounds(pair) for pair in pairs):
        raise ValueError(
            "distribution: pairs of numbers could be bounds or points. For bounds, give a dict such as {'x': (0, 1)} or "
            "stats.uniform(low, high - low) for each column; for a sample, np.array(...)"
        )
    if given is None or isinstance(given, (str, bytes)) or callable(given) or not hasattr(given, "__len__"):
        raise ValueError(
            f"distribution must be a frozen scipy.stats distribution such as stats.norm(0, 1), a list of them (one for each "
            f"column), a dict of them by name, a kb.Mixture, an embedding, or a sample of points (n, d); got "
            f"{getattr(given, 'name', None) or getattr(given, '__name__', None) or type(given).__name__}"
        )
    source = PointSource(_check.vectors(given, "distribution, read as a sample of points,"), None)
    names = getattr(given, "columns", None)
    if names is not None and len(names) == source.dimension and all(isinstance(name, str) for name in names):
        source.names = tuple(names)
    return source


def _read_distribution(distribution: Any) -> Source:
    known = as_distribution(distribution)
    if known is not None:
        if isinstance(known, Independent) and any(c.kind == "fixed" for c in known.columns):
            raise ValueError("distribution has a column without any spread; leave that column out")
        return KnownSource(known)
    columns = list(distribution) if isinstance(distribution, (list, tuple)) else [distribution]
    if all(hasattr(c, "ppf") or hasattr(c, "icdf") for c in columns):
        return _of_values(columns) or FrozenSource(columns)
    if any(isinstance(c, Mixture) for c in columns):
        raise ValueError("a list of distributions may not hold mixtures; make one kb.Mixture of them all")
    return DrawnSource(distribution)


def _of_values(columns: list[Any]) -> PointSource | None:
    """Discrete columns with few values as all of their combinations, with probabilities."""
    if not all(hasattr(c, "pmf") and hasattr(c, "ppf") for c in columns):
        return None
    values, shares, number = [], [], 1
    for c in columns:
        low, high = (float(end) for end in c.support())
        low = float(c.ppf(_NO_SHARE)) if np.isinf(low) else low
        high = float(c.isf(_NO_SHARE)) if np.isinf(high) else high
        if not high - low < _MOST_VALUES:
            return None
        here = np.arange(low, high + 0.5)
        mass = np.asarray(c.pmf(here), dtype=np.float64)
        values.append(here[mass > _NO_SHARE])
        shares.append(mass[mass > _NO_SHARE])
        number *= len(values[-1])
        if number > _MOST_VALUES or not number:
            return None
    points = np.array(list(itertools.product(*values)))
    weights = functools.reduce(np.multiply.outer, shares).ravel()
    return PointSource(points, weights / weights.sum(), "distribution")


class Aim:
    """The embedding of a distribution under a kernel: what the nodes have to meet."""

    def __init__(self, source: Source, kernel: Kernel):
        self.source, self.kernel = source, kernel
        self.embedding, self.origin = self._embedded()
        self._spectra: dict[Any, Spectrum] = {}

    def _embedded(self) -> tuple[Embedding, str]:
        if isinstance(self.source, KnownSource):
            try:
                return AnalyticEmbedding(self.source.distribution, self.kernel), "closed form"
            except NoClosedFormError:
                pass
        points, weights, name = self.source.stand_in()
        return MeanEmbedding(points, weights, self.kernel), name

    @functools.cached_property
    def norm_squared(self) -> float:
        """The squared norm of the embedding."""
        if isinstance(self.embedding, MeanEmbedding):
            w = self.embedding.weights
            return float(w @ Pool((self.kernel, self.embedding.points)).embed(w))
        return self.embedding._inner(self.embedding)

    @functools.cached_property
    def stand_in_error(self) -> float:
        """How far half of the points that stand for the distribution are from all of them; 0 where none do."""
        if not isinstance(self.embedding, MeanEmbedding) or isinstance(self.source, PointSource):
            return 0.0
        points, w = self.embedding.points, self.embedding.weights
        half = np.where(np.arange(len(w)) < len(w) // 2, 2.0 * w, 0.0) - w
        return float(np.sqrt(max(half @ Pool((self.kernel, points)).embed(half), 0.0)))

    @functools.cached_property
    def expansion(self) -> MercerExpansion | None:
        """The Mercer expansion, where it is known."""
        return self.source.expansion(self.kernel)

    def spectrum(self, n: int, seed: int, features: Recipe | None = None) -> Spectrum:
        """The Mercer expansion, or the spectrum of a pool from which n nodes are to be chosen."""
        if self.expansion is not None and features is None:
            return self.expansion
        if (n, seed) not in self._spectra:
            self._spectra = {(n, seed): self._of_pool(n, seed, features)}
        return self._spectra[n, seed]

    def _of_pool(self, n: int, seed: int, features: Recipe | None) -> SampledSpectrum:
        points, weights = self.source.pool(n, seed)
        if features is None and len(points) > EXACT_POINTS:
            features = Subspace(max(_SUBSPACE_PER_NODE * n, _SMALLEST_SUBSPACE))
        features = default_recipe(len(points)) if features is None else features
        return SampledSpectrum(self.kernel, points, weights, features=features, random_state=seed)

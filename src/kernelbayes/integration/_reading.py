"""What a user gives as a distribution, read as a source of points: the one place that knows all the forms it may take."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import _check
from ..embeddings import AnalyticEmbedding, MeanEmbedding
from ..kernels._distributions import Independent, Mixture, as_distribution, is_distribution
from ._source import DrawnSource, FrozenSource, KnownSource, PointSource, Source

# A discrete distribution with no more values than these, but for a share of them, is that of so many weighted points.
_MOST_VALUES, _NO_SHARE = 10_000, 1e-16


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

"""Draws of parameters as densities to be drawn: each on the scale, and within the bounds, that suit it.

Kernel density estimates here are for the eye. They reflect at the edge of the support, so that a density does not seem to
fall off where the prior ends, and take draws that repeat a few points for no more than those points.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from .._typing import Array
from ..lfi import ParameterPosterior
from ..lfi._blocks import Block, Drawn, Scalar

# Positive draws whose central 90 % span more than the first factor, or that reach beyond the second times their median (an
# exponential distribution does not), are shown on a logarithmic axis.
_WIDE, _LONG = 100.0, 10.0
# Draws from the prior where its density is not known, and points of a grid.
_PRIOR_DRAWS, _GRID = 4000, 96


@dataclasses.dataclass(frozen=True, eq=False)
class Marginal:
    """One parameter as it is drawn; its own coordinate is its value, or the logarithm of it.

    Attributes:
        name: of the parameter.
        values: draws (n,), in its own coordinate.
        effective: how many of them there are, repeated ones counted together.
        bounds: of the support, in its own coordinate.
        limits: of the axis, in its own coordinate.
        log: whether the axis is logarithmic.
        whole: whether it takes whole numbers.
        prior: density of the prior in its own coordinate.
    """

    name: str
    values: Array
    effective: float
    bounds: tuple[float, float]
    limits: tuple[float, float]
    log: bool
    whole: bool
    prior: Callable[[Array], Array]

    @property
    def grid(self) -> Array:
        """Places (g,) in its own coordinate at which densities are drawn."""
        if self.whole:
            return np.arange(np.ceil(self.limits[0]), np.floor(self.limits[1]) + 1)
        return np.linspace(*self.limits, _GRID)

    def shown(self, own: Any) -> Any:
        """Values of the parameter for its own coordinate."""
        return np.exp(own) if self.log else own

    def density(self) -> Array:
        """Of the draws on the grid (g,); for whole numbers their shares."""
        if self.whole:
            return (self.values[:, None] == self.grid).mean(0)
        return _bells(self.grid, self.values, self._or_some(_width(self.values, self.effective)), self.bounds).mean(1)

    def bells(self, at: Array, factor: float) -> Array:
        """A bell about each draw, reflected at the bounds (g, n); `factor` times the spread is its width."""
        return _bells(at, self.values, self._or_some(factor * _spread(self.values)), self.bounds)

    def _or_some(self, width: float) -> float:
        """A width, or a little of the axis where all draws are the same."""
        return width or 0.02 * (self.limits[1] - self.limits[0])


def marginals(posterior: ParameterPosterior, truth: Array | None) -> list[Marginal]:
    """All parameters of a posterior, made ready to be drawn."""
    draws = posterior._draws_cache
    parts = [(block, j) for block, columns in posterior.prior._parts(draws) for j in range(columns.shape[1])]
    smooth = [j for j, (block, _) in enumerate(parts) if not (isinstance(block, Scalar) and block.discrete)]
    counts = np.unique(draws[:, smooth], axis=0, return_counts=True)[1].astype(np.float64)
    effective = len(draws) ** 2 / float((counts**2).sum()) if smooth else float(len(draws))
    before = posterior.prior.sample(_PRIOR_DRAWS, posterior._seed)
    return [
        _marginal(name, draws[:, j], effective, parts[j], before[:, j], None if truth is None else float(truth[j]))
        for j, name in enumerate(posterior.names)
    ]


def _marginal(
    name: str, draws: Array, effective: float, part: tuple[Block, int], before: Array, truth: float | None
) -> Marginal:
    block = part[0]
    low, high = _support(*part)
    whole = isinstance(block, Scalar) and block.discrete
    log = not whole and _is_wide(draws, low) and (truth is None or truth > 0)
    own = np.log if log else np.asarray
    with np.errstate(divide="ignore"):
        bounds = (float(own(low)), float(own(high))) if log else (low, high)
    values = own(draws)
    limits = _limits(values, _width(values, effective), bounds, None if truth is None else float(own(truth)), whole)
    return Marginal(name, values, effective, bounds, limits, log, whole, _prior_density(block, before, bounds, log))


def _support(block: Block, column: int) -> tuple[float, float]:
    if isinstance(block, Scalar):
        low, high = block.frozen.support()
        return float(low), float(high)
    if isinstance(block, Drawn):
        return float(block.pool[:, column].min()), float(block.pool[:, column].max())
    return -np.inf, np.inf


def _is_wide(draws: Array, low: float) -> bool:
    if low < 0 or draws.min() <= 0:
        return False
    bottom, middle, top, last = np.quantile(draws, [0.05, 0.5, 0.95, 0.995])
    return bool(top > _WIDE * bottom or last > _LONG * middle)


def _limits(
    values: Array, width: float, bounds: tuple[float, float], truth: float | None, whole: bool
) -> tuple[float, float]:
    """Where the draws are, with some room, and the truth wherever it is."""
    low, high = np.quantile(values, [0.005, 0.995])
    room = max(0.15 * (high - low), 2.0 * width) or 0.05 * abs(low) or 1.0
    low, high = max(low - room, bounds[0]), min(high + room, bounds[1])
    if truth is not None:
        low, high = min(low, truth - 0.3 * room), max(high, truth + 0.3 * room)
    if whole:
        return float(np.floor(low) - 0.6), float(np.ceil(high) + 0.6)
    return (float(low), float(high)) if low < high else (float(low) - room, float(low) + room)


def _prior_density(block: Block, before: Array, bounds: tuple[float, float], log: bool) -> Callable[[Array], Array]:
    if isinstance(block, Scalar):
        frozen = block.frozen
        if block.discrete:
            return frozen.pmf
        return (lambda own: frozen.pdf(np.exp(own)) * np.exp(own)) if log else frozen.pdf
    values = np.log(before[before > 0]) if log else before
    width = _width(values, len(values)) or 1.0
    return lambda own: _bells(own, values, width, bounds).mean(1)


def _width(values: Array, effective: float) -> float:
    """Of a bell, by Silverman's rule."""
    return 0.9 * effective**-0.2 * _spread(values)


def _spread(values: Array) -> float:
    """The standard deviation, or what it would be of a normal with these quartiles if that is less; 0 for one value."""
    lower, upper = np.quantile(values, [0.25, 0.75])
    deviation = float(values.std())
    if deviation <= 1e-9 * np.abs(values).max():  # rounding
        return 0.0
    return min(deviation, (upper - lower) / 1.34) if upper > lower else deviation


def _bells(at: Array, values: Array, width: float, bounds: tuple[float, float]) -> Array:
    inside = ((at >= bounds[0]) & (at <= bounds[1]))[:, None]
    copies = [values, *(2.0 * edge - values for edge in bounds if np.isfinite(edge))]
    total = np.sum([np.exp(-0.5 * ((at[:, None] - copy) / width) ** 2) for copy in copies], axis=0)
    return np.where(inside, total, 0.0) / (width * np.sqrt(2.0 * np.pi))


def plane(across: Marginal, up: Marginal) -> Array:
    """The density of two parameters on the product of their grids (g up, g across)."""
    r = float(np.corrcoef(across.values, up.values)[0, 1]) if across.values.std() and up.values.std() else 0.0
    # narrower where the two hang together, or a thin ridge would seem broad
    factor = across.effective ** (-1.0 / 6.0) * np.sqrt(max(1.0 - r**2, 0.01))
    return up.bells(up.grid, factor) @ across.bells(across.grid, factor).T / len(up.values)


def heights(density: Array, shares: tuple[float, ...]) -> list[float]:
    """Heights above which the given shares of the mass lie, for cells of one size."""
    ordered = np.sort(density, axis=None)[::-1]
    mass = np.cumsum(ordered) / ordered.sum()
    return [float(ordered[min(int(np.searchsorted(mass, share)), len(ordered) - 1)]) for share in shares]

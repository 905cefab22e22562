"""Where the search for the hyperparameters of a classifier starts: scales of the columns, lengthscales, regularisers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .._typing import Array
from ..kernels import Gaussian, Kernel
from ..kernels._bandwidth import lengthscale_of
from ._classification import Labelled
from ._classification_search import Start
from ._conditional import ConditionalParameters

_LENGTHSCALES, _REGS = (3.0, 1.0, 1 / 3), (1e-1, 1e-2, 1e-4)
_GRID_LENGTHSCALES = (3.0, 1.0, 1 / 3, 1 / 10)
_MOST_ARD = 100  # columns up to which each has a lengthscale of its own by default
_CONSTANT = 1e-12  # a column that varies by less than this share of its size is constant
_SIMILAR = 1.2  # spreads within this factor of each other are one spread


def spreads(sample: Labelled) -> Array:
    """Standard deviation of each column; zero where it is only rounding."""
    shares = sample.weights / sample.weights.sum()
    spread = np.sqrt(shares @ (sample.X - shares @ sample.X) ** 2)
    return np.where(spread > _CONSTANT * np.abs(sample.X).max(0), spread, 0.0)


def scales(sample: Labelled) -> list[Array]:
    """Lengthscales of the columns (d,): in proportion to the spread of each, and alike, as suits columns of one unit."""
    spread = spreads(sample)
    varies = spread > 0
    width = np.sqrt(max(int(varies.sum()), 1))
    each = width * np.where(varies, spread, 1.0)
    if not varies.any() or spread[varies].max() < _SIMILAR * spread[varies].min():
        return [each]
    return [each, np.full(len(spread), width * np.sqrt(np.mean(spread[varies] ** 2)))]


def starts_from(kernel: Kernel, sample: Labelled, reg: float | None) -> list[Start]:
    """A kernel as it is and, if it has a lengthscale, with those that the points suggest; each with a few regularisers."""
    kernels = [kernel, *_suggested(kernel, sample)]
    return [start for each in kernels for start in _with_regs(each, reg, np.asarray(1.0), sample.X)]


def _suggested(kernel: Any, sample: Labelled) -> list[Kernel]:
    """The kernel made longer or shorter, until it is of the size of the points' distances or near it.

    Far from there an objective may have no slope to follow.
    """
    if not hasattr(kernel, "lengthscale") or not spreads(sample).any():
        return []
    distance = float(lengthscale_of(sample.X / kernel.lengthscale, "X"))
    return [dataclasses.replace(kernel, lengthscale=f * distance * kernel.lengthscale) for f in _LENGTHSCALES]


def default_starts(sample: Labelled, reg: float | None, ard: bool | None) -> list[Start]:
    """Gaussian kernels a few times longer or shorter than the spread of the points, with each of a few regularisers."""
    columns = sample.X.shape[1]
    one = np.ones(columns) if (columns <= _MOST_ARD if ard is None else ard) else np.asarray(1.0)
    return [
        start
        for scale in scales(sample)
        for factor in _LENGTHSCALES
        for start in _with_regs(Gaussian(factor * one), reg, scale, sample.X)
    ]


def _with_regs(kernel: Kernel, reg: float | None, scale: Array, X: Array) -> list[Start]:
    """Regularisers are relative to the kernel's mean diagonal at the points."""
    size = float(kernel._diag(X / scale).mean())
    regs = size * np.array(_REGS) if reg is None else (reg,)
    return [Start(ConditionalParameters(kernel, start), scale, size) for start in regs]


def grid_kernels(sample: Labelled) -> list[Kernel]:
    """Gaussian kernels for a search over a grid."""
    return [Gaussian(factor * scale) for scale in scales(sample) for factor in _GRID_LENGTHSCALES]


def median_kernel(sample: Labelled) -> Gaussian:
    """Gaussian with the median distance between points, each column having been divided by its spread."""
    spread = spreads(sample)
    unit = np.where(spread > 0, spread, 1.0)
    return Gaussian(unit * (lengthscale_of(sample.X / unit, "X") if spread.any() else 1.0))

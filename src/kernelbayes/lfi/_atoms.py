"""Densities of parameters of which some are whole numbers, from points."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from .._typing import Array
from ._importance import smoothed
from ._prior import Prior

_BLOCK_ELEMENTS = 2**20


def smoothed_under(prior: Prior, z: Array) -> Any:
    """A kernel density estimate of coordinates (n, d), by Silverman's rule; its method `density` is that of coordinates."""
    return _Stepped(prior, z) if prior.whole.any() else smoothed(z)


class _Stepped:
    """Normals about points, of which those over whole numbers count by their mass within each step.

    So the masses of the whole numbers sum to one, and many narrow steps are smoothed as a continuous coordinate would be.
    As a density of coordinates it is the prior's within a step, which is what a likelihood of whole numbers leaves of it.
    """

    def __init__(self, prior: Prior, z: Array):
        n, d = z.shape
        self._prior, self._points = prior, z
        self._bandwidth = (max(n, 2) * (d + 2) / 4.0) ** (-1.0 / (d + 4)) * z.std(0) + 1e-6
        self._others = ~prior.whole
        self._smooth = smoothed(z[:, self._others]) if self._others.any() else None

    def density(self, z: Array) -> Array:
        """Density (n,) of coordinates (n, d), in blocks of them."""
        size = max(1, _BLOCK_ELEMENTS // len(self._points))
        return np.concatenate([self._of(z[i : i + size]) for i in range(0, max(len(z), 1), size)])

    def _of(self, z: Array) -> Array:
        mass, stretch = np.ones((len(z), len(self._points))), np.ones(len(z))
        for j, block in self._prior.whole_columns():
            theta = block.from_gaussian(z[:, [j]])
            upper, lower = (
                (edge[:, None] - self._points[:, j]) / self._bandwidth[j] for edge in block.step(theta)[::-1]
            )
            mass *= scipy.special.ndtr(upper) - scipy.special.ndtr(lower)
            stretch *= block.stretch(theta, z[:, [j]])
        over = mass.mean(1) if self._smooth is None else self._smooth.density(z[:, self._others], mass)
        return over / stretch

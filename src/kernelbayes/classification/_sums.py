"""The sums of a regression on features: all that a fit keeps of its data."""

from __future__ import annotations

import equinox as eqx
import numpy as np

from .._linalg import add_outer, mirror_lower, solve
from .._typing import Array
from ..rules import conditional


class Sums(eqx.Module):
    """`F' D F`, `F' D Y` and the sum of weights, over any number of chunks.

    Adding to it takes its first matrix over, so that one of many features is never held twice: use the result.
    """

    lower: Array  # triangle of F' D F
    right: Array
    total: float

    @classmethod
    def empty(cls, rank: int, classes: int) -> Sums:
        """Of no points."""
        return cls(np.zeros((rank, rank), order="F"), np.zeros((rank, classes)), 0.0)

    def plus(self, F: Array, Y: Array, weights: Array) -> Sums:
        """With more points, given by their coordinates, one-hot labels and weights."""
        scaled = (F * np.sqrt(weights)[:, None]).T
        right = self.right + F.T @ (weights[:, None] * Y)
        return Sums(add_outer(self.lower, scaled), right, self.total + float(weights.sum()))

    @property
    def core(self) -> Array:
        """`F' D F`."""
        return mirror_lower(self.lower)

    def solved(self, reg: float) -> tuple[Array, Array]:
        """The factor of `F' D F + n reg I`, and the coefficients that predict Y."""
        factor = conditional.operator(self.core, self.total, reg)
        return factor, solve(factor, self.right)

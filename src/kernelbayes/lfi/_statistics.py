"""What a likelihood is learned of: statistics as they are, or a few that are made from raw outputs.

Raw outputs, such as a series of 200 numbers or an image, are reduced to principal components on one common scale: those that
vary more than any would if the columns had nothing to do with each other (Horn's parallel analysis, 1965), and the logarithm
of the mean square of what they leave, which tells the size of the noise. Regressions of the parameters on the outputs, which
others use, were tried and lose much of what such outputs tell.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .._linalg import eigh
from .._typing import Array

# More outputs than this are raw data, not statistics that someone chose.
MOST_STATISTICS = 32
# How much more a component must vary than by chance; most components.
_MARGIN, _MOST_COMPONENTS = 1.05, 40


@dataclasses.dataclass(frozen=True, eq=False)
class Chosen:
    """Some of the outputs as they are: those (p,) that vary.

    Attributes:
        kept: which they are.
    """

    kept: Array

    @classmethod
    def of(cls, X: Array) -> Chosen:
        """Those of outputs (m, p) that are not constant."""
        kept = X.std(0) > 0
        if not kept.any():
            raise ValueError("no statistic varies over the simulations: they say nothing about the parameters")
        return cls(kept)

    def __call__(self, X: Array) -> Array:
        """Statistics (t, q) of outputs (t, p); NaN where one is missing."""
        return X[:, self.kept]

    def names(self, statistics: tuple[str, ...]) -> tuple[str, ...]:
        """What they are called."""
        return tuple(name for name, kept in zip(statistics, self.kept, strict=True) if kept)


@dataclasses.dataclass(frozen=True, eq=False)
class Components:
    """Principal components of raw outputs, and what they leave.

    Attributes:
        mean: of the outputs (p,).
        scale: one for all outputs.
        axes: (p, k), orthonormal.
        shares: (k,) of the variance that is along each.
    """

    mean: Array
    scale: float
    axes: Array
    shares: Array

    @classmethod
    def of(cls, X: Array, most: int = _MOST_COMPONENTS) -> Components:
        """Of outputs (m, p)."""
        mean, scale = X.mean(0), float(X.std(0).max())
        if not scale > 0:
            raise ValueError("no output varies over the simulations: they say nothing about the parameters")
        C = (X - mean) / scale
        values, axes = _principal(C)
        mixed = np.random.default_rng(0).permuted(C, axis=0)
        k = int(np.clip((values > _MARGIN * _principal(mixed)[0][0]).sum(), 1, min(most, X.shape[1] - 1)))
        return cls(mean, scale, axes[:, :k], values[:k] / values.sum())

    def __call__(self, X: Array) -> Array:
        """Statistics (t, k + 1) of outputs (t, p)."""
        if np.isnan(X).any():
            raise ValueError("observed holds NaN, which raw outputs that are reduced to components must not")
        C = (X - self.mean) / self.scale
        S = C @ self.axes
        left = np.maximum((C * C).sum(1) - (S * S).sum(1), 1e-12) / (C.shape[1] - S.shape[1])
        return np.column_stack([S, np.log(left)])

    def names(self, statistics: tuple[str, ...]) -> tuple[str, ...]:
        """What they are called."""
        return (*(f"component {i + 1}" for i in range(self.axes.shape[1])), "what they leave")


def _principal(C: Array) -> tuple[Array, Array]:
    """Eigenvalues (k,), falling, and axes (p, k) of the second moments of rows (m, p)."""
    if C.shape[0] >= C.shape[1]:
        return eigh(C.T @ C)
    values, left = eigh(C @ C.T)
    return values, C.T @ left / np.sqrt(np.maximum(values, 1e-12 * values[0]))


def make_statistics(X: Array, reduce: bool | None) -> Chosen | Components:
    """Statistics of outputs (m, p): made where there are more than someone would choose, or where it is asked for."""
    several = X.shape[1] > MOST_STATISTICS if reduce is None else reduce and X.shape[1] > 1
    return Components.of(X) if several else Chosen.of(X)

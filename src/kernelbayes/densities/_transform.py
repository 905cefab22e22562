"""Scales on which a column of y is modelled: as it is, by its square root or by its logarithm, and then standardised."""

from __future__ import annotations

import dataclasses

import numpy as np

from .._typing import Array

NAMES = ("identity", "sqrt", "log")
# Of values of a column, the share that must be repeated for it to count as one of steps.
_MANY_TIES = 0.2


@dataclasses.dataclass(frozen=True)
class Transform:
    """`(g(y + offset) - centre) / spread`, g one of `NAMES`.

    Attributes:
        step: the spacing of a column of whole numbers or other steps, zero for one without.
    """

    name: str
    offset: float
    centre: float
    spread: float
    step: float = 0.0

    @classmethod
    def of(cls, name: str, y: Array, step: float = 0.0) -> Transform:
        """The transform of this name for a column; raises ValueError where it has values below zero and must not."""
        offset = 0.0
        if name != "identity":
            if y.min() < 0:
                raise ValueError(f"the transform {name!r} is for columns that are never negative")
            offset = 0.5 * step if step else 0.1 * float(np.median(y)) if y.min() <= 0 else 0.0
            offset = offset or (0.1 * float(y.mean()) if y.min() <= 0 else 0.0) or float(y.min() <= 0)
        raw = cls(name, offset, 0.0, 1.0, step)(y)
        return cls(name, offset, float(raw.mean()), float(raw.std()) or 1.0, step)

    def __call__(self, y: Array) -> Array:
        """Values as they are modelled."""
        if self.name == "identity":
            raw = y
        elif self.name == "sqrt":
            raw = np.sqrt(np.maximum(y + self.offset, 0.0))
        else:
            raw = np.log(np.maximum(y + self.offset, np.finfo(np.float64).tiny))
        return (raw - self.centre) / self.spread

    def inverse(self, z: Array) -> Array:
        """Values as they are measured."""
        raw = self.centre + self.spread * z
        if self.name == "identity":
            return raw
        if self.name == "sqrt":
            return np.maximum(raw, 0.0) ** 2 - self.offset
        return np.exp(np.minimum(raw, 300.0)) - self.offset

    def log_slope(self, y: Array) -> Array:
        """Logarithm of the derivative: what a density of modelled values is multiplied by for one of measured ones."""
        shifted = np.maximum(y + self.offset, np.finfo(np.float64).tiny)
        steep = {"identity": 0.0 * shifted, "sqrt": -0.5 * np.log(shifted) - np.log(2.0), "log": -np.log(shifted)}
        return steep[self.name] - np.log(self.spread)

    def dithered(self, y: Array, rng: np.random.Generator) -> Array:
        """Values of a column of steps, each anywhere in its step: a density cannot do with ties."""
        if not self.step:
            return y
        shift = rng.uniform(-0.5, 0.5, len(y)) * self.step
        return np.maximum(y + shift, -self.offset) if self.name != "identity" else y + shift


def spacing(y: Array) -> float:
    """The spacing of a column with many ties, zero for one with few."""
    values = np.unique(y)
    if len(values) < 2 or len(values) > (1.0 - _MANY_TIES) * len(y):
        return 0.0
    return float(np.diff(values).min())

"""Scales on which a column of y is modelled: as it is, by its square root or by its logarithm, and then standardised."""

from __future__ import annotations

import dataclasses

import numpy as np

from .._typing import Array

NAMES = ("identity", "sqrt", "log")
# Of values of a column, the share that must be repeated for it to count as one of steps.
_MANY_TIES = 0.2
# How wide a value that many rows have is taken to be, as a share of how far the others are from it.
_ATOM_WIDTH = 0.2


@dataclasses.dataclass(frozen=True)
class Transform:
    """`(g(y + offset) - centre) / spread`, g one of `NAMES`.

    Attributes:
        step: the spacing of a column of whole numbers or other steps, zero for one without.
        atom: the one value that many rows have, such as zero, in a column that has no other steps; `step` is then how wide
            it is taken to be.
    """

    name: str
    offset: float
    centre: float
    spread: float
    step: float = 0.0
    atom: float | None = None

    @classmethod
    def of(cls, name: str, y: Array, step: float = 0.0, atom: float | None = None) -> Transform:
        """The transform of this name for a column; raises ValueError where it has values below zero and must not."""
        offset = 0.0
        if name != "identity":
            if y.min() < 0:
                raise ValueError(f"the transform {name!r} is for columns that are never negative")
            offset = 0.5 * step if step else 0.1 * float(np.median(y)) if y.min() <= 0 else 0.0
            offset = offset or (0.1 * float(y.mean()) if y.min() <= 0 else 0.0) or float(y.min() <= 0)
        raw = cls(name, offset, 0.0, 1.0, step)(y)
        return cls(name, offset, float(raw.mean()), float(raw.std()) or 1.0, step, atom)

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
        y = self.centre + self.spread * z
        if self.name == "sqrt":
            y = np.maximum(y, 0.0) ** 2 - self.offset
        elif self.name == "log":
            y = np.exp(np.minimum(y, 300.0)) - self.offset
        return y if self.atom is None else np.where(np.abs(y - self.atom) <= 0.5 * self.step, self.atom, y)

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
        if self.atom is not None:
            shift = np.where(y == self.atom, shift, 0.0)
        return np.maximum(y + shift, -self.offset) if self.name != "identity" else y + shift


def spacing(y: Array) -> tuple[float, float | None]:
    """The spacing of a column with many ties, zero for one with few; and the atom, if one value has all the ties."""
    values, counts = np.unique(y, return_counts=True)
    if len(values) < 2 or len(values) > (1.0 - _MANY_TIES) * len(y):
        return 0.0, None
    most = counts.argmax()
    others = len(y) - counts[most]
    if len(values) - 1 > max((1.0 - _MANY_TIES) * others, 1):
        atom = float(values[most])
        return _ATOM_WIDTH * float(np.median(np.abs(y[y != atom] - atom))), atom
    return float(np.diff(values).min()), None

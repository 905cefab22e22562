"""Random numbers that belong to a sequence: they follow from a seed and from what has been observed.

A generator for each sequence by its position would give one answer to a sequence that is filtered alone and another in
company; one generator for all would let all sequences err alike. So each step has a generator of its own, by the seed and
a digest of the observations before it: sequences that differ have different random numbers from there on, whatever their
order and their company, and one observation at a time is the same as all at once.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array

MISSING = 0


class Noise(NamedTuple):
    """Where the random numbers of one sequence stand."""

    seed: int
    seen: int = 0  # digest of the marks so far

    def after(self, mark: int) -> Noise:
        """A step later, with one more observation."""
        return Noise(self.seed, _digest(f"{self.seen} {mark}".encode()))

    def generator(self) -> np.random.Generator:
        """For the step that follows; independent of what else is drawn from the seed."""
        return np.random.default_rng([self.seed, 1, self.seen])


def marks(rows: Array, observed: Array) -> list[int]:
    """Digests (T,) of the rows that there are, as they were given, and `MISSING` for the others."""
    there = iter(rows)
    return [_digest(_bytes(next(there))) if present else MISSING for present in observed]


def _bytes(row: Any) -> bytes:
    """The same for equal rows, in a table of many as alone."""
    row = np.asarray(row)
    return (row + 0.0).tobytes() if row.dtype.kind in "biuf" else repr(row.tolist()).encode()


def _digest(value: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(value, digest_size=8).digest(), "little")

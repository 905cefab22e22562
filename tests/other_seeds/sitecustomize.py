"""Seed NumPy's generators elsewhere, in this process and, through PYTHONPATH, in those it starts."""

import functools
import os

import numpy as np

_default_rng = np.random.default_rng


@functools.wraps(_default_rng)
def default_rng(seed=None):
    shift = int(os.environ.get("SHIFT_SEEDS", 0))
    if not shift or seed is None or isinstance(seed, (np.random.Generator, np.random.BitGenerator)):
        return _default_rng(seed)
    if isinstance(seed, (int, np.integer)):
        # far from the seeds that a test may count through
        return _default_rng(int(seed) + 1_000_003 * shift if seed >= 0 else seed)
    if isinstance(seed, np.random.SeedSequence):
        entropy = np.append(np.asarray(seed.entropy, dtype=object), shift).tolist()
        return _default_rng(np.random.SeedSequence(entropy, spawn_key=seed.spawn_key))
    return _default_rng([*seed, shift])


np.random.default_rng = default_rng

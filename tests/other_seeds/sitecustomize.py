"""Seed NumPy's generators elsewhere, in this process and, through PYTHONPATH, in those it starts."""

import functools
import os

import numpy as np

_default_rng, _RandomState = np.random.default_rng, np.random.RandomState


def _moved(seed):
    shift = int(os.environ.get("SHIFT_SEEDS", 0))
    if not shift:
        return seed
    if isinstance(seed, (int, np.integer)):
        return int(seed) + 1_000_003 * shift if seed >= 0 else seed  # beyond the seeds that a test counts through
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence([*np.atleast_1d(seed.entropy), shift], spawn_key=seed.spawn_key)
    return [*seed, shift] if isinstance(seed, (list, tuple)) else seed


@functools.wraps(_default_rng)
def default_rng(seed=None):
    return _default_rng(_moved(seed))


class _AnyRandomState(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, _RandomState)


class RandomState(_RandomState, metaclass=_AnyRandomState):
    """What SciPy and scikit-learn make of a whole number."""

    def __init__(self, seed=None):
        super().__init__(_moved(seed))


np.random.default_rng, np.random.RandomState = default_rng, RandomState

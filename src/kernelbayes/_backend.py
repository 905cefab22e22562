"""One source for NumPy and JAX.

Formulas in this library are written once, against the namespace of the arrays they receive. On the host they run in
NumPy and LAPACK, with nothing to compile; inside a JAX transformation (a gradient, a scan, a compiled block) the same
lines are traced. Only the second case meets JAX's default of single precision, and every way into it goes through
`float64`, which switches double precision on for the length of one call and leaves the global flag alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

P = ParamSpec("P")
T = TypeVar("T")


def namespace(*arrays: Any) -> Any:
    """The module whose functions apply to these arrays: `jax.numpy` if any is a JAX array, else `numpy`."""
    return jnp if any(isinstance(a, jax.Array) for a in arrays) else np


def is_traced(*trees: Any) -> bool:
    """Whether a JAX transformation is looking at any leaf of these pytrees."""
    known = [tree for tree in trees if not hasattr(tree, "__next__")]  # JAX does not look into iterators, and says so
    return any(isinstance(leaf, Tracer) for leaf in jax.tree_util.tree_leaves(known))


def float64(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function that enters JAX in double precision, whatever the caller's global setting."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return wrapped


def map_network(network: Any, X: Any) -> Any:
    """A network that acts on one point, applied to each row of X: NumPy out for NumPy in."""
    if namespace(X) is jnp:
        return jax.vmap(network)(X)
    return float64(lambda: np.asarray(_mapped(network, X), dtype=np.float64))()


@eqx.filter_jit
def _mapped(network: Any, X: Any) -> Any:
    return jax.vmap(network)(X)

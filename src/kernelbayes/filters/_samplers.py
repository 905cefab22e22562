"""The user's own samplers: called with what they take, in NumPy or JAX, and what they return checked.

A transition is `f(rng, states, time, control) -> states`; it may leave out `time` and `control`. With `backend="jax"` the
first argument is a key of `jax.random`, and arrays are those of JAX in double precision.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import _check
from .._backend import float64
from .._typing import Array
from .._warning import warn_user

BACKENDS = ("numpy", "jax")
# The share of states that a transition may take out of their range, widened by as much on both sides.
_MOST_LOST = 0.5
_ROLES = {"time": ("time", "t"), "control": ("control", "u")}


class Arguments(NamedTuple):
    """What a transition takes after its first two arguments: "time", "control", by position and then by name."""

    placed: list[str]
    named: dict[str, str]


class Sampler:
    """A transition as the filter calls it: NumPy in, checked NumPy out."""

    def __init__(self, function: Callable[..., Any], backend: str):
        self.function, self.backend = function, backend
        self._arguments = arguments(function)

    @property
    def takes_control(self) -> bool:
        """Whether a control would reach the function."""
        return "control" in (*self._arguments.placed, *self._arguments.named.values())

    def __call__(self, rng: np.random.Generator, states: Array, time: int, control: Array | None) -> Array:
        """The states (n, d) one step later, at this time."""
        value = {"time": time, "control": None if control is None else control.copy()}
        placed = [value[role] for role in self._arguments.placed]
        named = {name: value[role] for name, role in self._arguments.named.items()}
        without = ", without a control" if control is None and self.takes_control else ""
        with _explained(f"raised by transition at time {time}{without}", self.backend):
            # of the states a copy, which the function may write into
            found = _called(self.function, self.backend, rng, states.copy(), *placed, **named)
        return _points(found, states.shape, states.dtype, "transition", f" at time {time}")


def draw_initial(
    function: Callable[..., Any], backend: str, rng: np.random.Generator, count: int, states: Array
) -> Array:
    """So many states, like these, drawn by the user's `f(rng, n)`."""
    with _explained("raised by initial", backend):
        found = _called(function, backend, rng, count)
    return _points(found, (count, *states.shape[1:]), states.dtype, "initial", "")


def arguments(function: Any) -> Arguments:
    """What a transition takes, from its signature.

    Arguments called `time` or `t`, and `control` or `u`, are known by their names. Others that have to be given are time
    and control in this order, as far as names have not told; those with a default keep it.
    """
    if not callable(function) or inspect.isclass(function):
        raise ValueError(f"transition must be a function f(rng, states, time, control), got {function!r}")
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some compiled functions do not tell
        return Arguments(list(_ROLES), {})
    first = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    others = [*first[2:], *(p for p in found if p.kind is p.KEYWORD_ONLY)]
    endless = any(p.kind is p.VAR_POSITIONAL for p in found)
    roles = _roles(others)
    if roles is None or (len(first) < 2 and not endless):
        takes = ", ".join(map(str, found))
        raise ValueError(f"transition must take (rng, states, time, control) or fewer of them, but it takes ({takes})")
    placed: list[str] = []
    for p in first[2:]:
        if p.name not in roles:
            break
        placed.append(roles.pop(p.name))
    if endless and len(first) - 2 <= len(placed):
        placed += [role for role in _ROLES if role not in (*placed, *roles.values())]
    return Arguments(placed, roles)


def _roles(others: list[inspect.Parameter]) -> dict[str, str] | None:
    """Which argument is the time and which the control; None if there are more to be given."""
    roles = {p.name: role for p in others for role, names in _ROLES.items() if p.name in names}
    free = [role for role in _ROLES if role not in roles.values()]
    nameless = [p.name for p in others if p.name not in roles and p.default is p.empty]
    return None if len(nameless) > len(free) else roles | dict(zip(nameless, free, strict=False))


def _called(function: Callable[..., Any], backend: str, rng: np.random.Generator, *given: Any, **named: Any) -> Any:
    return function(rng, *given, **named) if backend == "numpy" else _called_in_jax(function, rng, given, named)


@float64
def _called_in_jax(function: Callable[..., Any], rng: np.random.Generator, given: Any, named: Any) -> Any:
    key = jax.random.key(int(rng.integers(2**32)))
    given, named = jax.tree_util.tree_map(lambda a: jnp.asarray(a) if isinstance(a, np.ndarray) else a, (given, named))
    found = function(key, *given, **named)
    return np.array(found) if isinstance(found, jax.Array) else found


@contextlib.contextmanager
def _explained(where: str, backend: str) -> Iterator[None]:
    """Errors of the user's function as they are, with a word on where they came from."""
    try:
        yield
    except Exception as error:
        first = "a numpy Generator" if backend == "numpy" else "a key of jax.random"
        error.add_note(f'{where}; its first argument was {first} (backend="{backend}")')
        raise


def _points(found: Any, shape: tuple[int, ...], dtype: Any, name: str, when: str) -> Array:
    """What a sampler returned, as points of this shape; numbers where states are numbers."""
    if found is None:
        raise ValueError(f"{name} returned None{when}; an array of shape {shape} was wanted")
    read = _check._as_numbers if dtype.kind == "f" else _check.table
    array = read(found, f"what {name} returned{when}")
    if array.ndim == 1 and shape[1:] == (1,):  # as elsewhere, numbers are points on the line
        array = array[:, None]
    if array.shape != shape:
        raise ValueError(f"{name} returned an array of shape {array.shape}{when} where {shape} was wanted")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        kind = "NaN" if np.isnan(array).any() else "infinity"
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ValueError(f"{name} returned {kind}{when} (first for state {row} of {len(array)})")
    return array


def try_out(sampler: Sampler, Z: Array, controls: Array, rng: np.random.Generator) -> None:
    """Move states once, so that a transition that cannot work is found out before anything else is done."""
    at = controls[min(1, len(controls) - 1)]
    if sampler.takes_control and len(at) < 2:
        return  # it may need one
    moved = sampler(rng, Z, 1, at[1:] if len(at) > 1 else None)
    if Z.dtype.kind != "f":
        return
    wide = np.ptp(Z, axis=0)
    lost = ((moved < Z.min(0) - wide) | (moved > Z.max(0) + wide)).any(1).mean()
    if lost > _MOST_LOST:
        warn_user(
            f"transition takes {lost:.0%} of the states far away from all of them in one step; are its columns and "
            "units those of states?",
            UserWarning,
        )

"""What a function carries along beside its code: arguments of a partial, cells of a closure, attributes of an object.

Each has a digest of its own, so that a store can say which of them is another one today. What cannot be read (a lock, a
generator) counts by its type only.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import os
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

# Objects hold objects: so deep, and so many of them, are looked at.
_DEEPEST, _MOST_PARTS = 8, 100_000
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic, range, slice)
_GATHERED = (list, tuple, set, frozenset, Mapping, np.ndarray)


def carried(function: Callable[..., Any]) -> dict[str, str]:
    """Digests of what a function carries along, by names for a message."""
    found: dict[str, Any] = {}
    for name, value in _parts(function):
        found.setdefault(name, value)  # an argument of a partial comes before the default that it replaces
    return {name: _digest(value) for name, value in found.items()}


def _parts(function: Any) -> Iterator[tuple[str, Any]]:
    while isinstance(function, functools.partial):
        yield from ((f"argument {i} of the partial", value) for i, value in enumerate(function.args))
        yield from function.keywords.items()
        function = function.func
    function = inspect.unwrap(function)
    if isinstance(function, types.MethodType):
        yield from _attributes(function.__self__)
        function = function.__func__
    if isinstance(function, types.FunctionType):
        yield from _of_function(function)
    elif not isinstance(function, (type, types.BuiltinFunctionType)):
        yield from _attributes(function)


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not yet filled
            continue
    defaults = function.__defaults__ or ()
    arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
    yield from zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    for name in sorted(_globals(function.__code__)):
        value = function.__globals__.get(name)
        if isinstance(value, _PLAIN + _GATHERED):  # modules and functions have sources of their own
            yield name, value


def _globals(code: types.CodeType) -> set[str]:
    found = {step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return found.union(*(_globals(part) for part in code.co_consts if isinstance(part, types.CodeType)))


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(thing, "__dict__", {}).items()


def _digest(value: Any) -> str:
    return _hashed(_Reader().pieces(value, _DEEPEST)).hex()[:16]


def _hashed(pieces: Iterator[bytes]) -> bytes:
    hashed = hashlib.sha256()
    for piece in pieces:
        hashed.update(piece)
        hashed.update(b"|")
    return hashed.digest()


class _Reader:
    """Values as bytes that are the same for equal ones, in every process. An object that is met again is not read again."""

    def __init__(self):
        self._budget = iter(range(_MOST_PARTS))
        self._known: dict[tuple[int, int], tuple[Any, bytes]] = {}

    def pieces(self, value: Any, depth: int) -> Iterator[bytes]:
        """Of one value, read so deep."""
        kind = type(value).__qualname__.encode()
        if next(self._budget, None) is None or depth == 0:
            yield kind
        elif isinstance(value, _PLAIN):
            yield kind + repr(value).encode(errors="replace")
        elif isinstance(value, os.PathLike):
            yield kind + os.fsencode(value)
        elif isinstance(value, (type, types.ModuleType)):
            yield value.__name__.encode()
        elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
            yield f"{value.dtype.str}{value.shape}".encode()
            yield np.ascontiguousarray(value).tobytes()
        elif isinstance(value, Mapping):
            for key in sorted(value, key=repr):
                yield from self.pieces(key, depth - 1)
                yield from self.pieces(value[key], depth - 1)
        elif isinstance(value, (set, frozenset)):
            yield from sorted(b"".join(self.pieces(part, depth - 1)) for part in value)
        elif isinstance(value, (list, tuple, np.ndarray)):
            yield kind + str(len(value)).encode()
            for part in value:
                yield from self.pieces(part, depth - 1)
        else:
            place = id(value), depth
            if place not in self._known:  # the value is kept beside it, so that no other takes its id
                self._known[place] = value, _hashed(self._of_object(value, kind, depth))
            yield self._known[place][1]

    def _of_object(self, value: Any, kind: bytes, depth: int) -> Iterator[bytes]:
        yield kind
        if callable(value):
            code = getattr(value, "__code__", None)
            if code is not None:
                yield code.co_code
                yield from self.pieces([c for c in code.co_consts if isinstance(c, _PLAIN)], depth - 1)
            parts = list(_parts(value))
        elif hasattr(value, "__array__"):  # of other libraries
            try:
                parts = [("", np.asarray(value))]
            except Exception:  # what cannot be read counts by its type
                parts = []
        else:
            parts = list(_attributes(value))
        for name, part in sorted(parts, key=lambda pair: pair[0]):
            yield name.encode()
            yield from self.pieces(part, depth - 1)

"""How a simulator wants to be called, read off its signature."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SEEDS = ("rng", "random_state", "seed")


def how_to_call(
    simulator: Callable[..., Any], names: tuple[str, ...] | None, width: int, pass_dict: bool | None
) -> dict[str, Any]:
    """`style` ("array", "dict" or "keywords") and `seeds` (which of rng, random_state and seed it asks for)."""
    known = _signature(simulator)
    seeds = tuple(name for name in _SEEDS if name in known and name not in (names or ()) and _by_keyword(known[name]))
    style = _style(known, names, pass_dict)
    given = set(seeds) | (set(names or ()) if style == "keywords" else set())
    required = [p.name for p in known.values() if p.name not in given and _is_required(p)]
    if style == "dict" and pass_dict is None:
        _refuse_misspelt(known, names or (), required)
    _refuse_required(required, style, names, width)
    return {"style": style, "seeds": seeds, "names": names}


def takes_keywords(function: Callable[..., Any], names: Sequence[str]) -> bool:
    """Whether all of these are arguments of a function."""
    return _style(_signature(function), tuple(names), None) == "keywords"


def _style(known: Mapping[str, inspect.Parameter], names: tuple[str, ...] | None, pass_dict: bool | None) -> str:
    if pass_dict is not None:
        if pass_dict and names is None:
            raise ValueError("pass_dict=True needs the names of the parameters: give names")
        return "dict" if pass_dict else "array"
    if names is None:
        return "array"
    anything = any(p.kind is p.VAR_KEYWORD for p in known.values())
    if all((name in known and _by_keyword(known[name])) or anything for name in names):
        return "keywords"
    first = next((p for p in known.values() if p.name not in _SEEDS), None)
    return "array" if first is not None and "array" in str(first.annotation).lower() else "dict"


def _refuse_misspelt(known: Mapping[str, inspect.Parameter], names: tuple[str, ...], required: list[str]) -> None:
    """Some of the names are arguments of the simulator: the others were meant to be as well."""
    strange = [name for name in names if name not in known]
    if len(strange) < len(names) and len(required) > 1:
        raise ValueError(
            f"simulator has no argument {', '.join(map(repr, strange))}; its arguments are {', '.join(known)}. "
            "pass_dict=True calls it with one dict"
        )


def _refuse_required(required: list[str], style: str, names: tuple[str, ...] | None, width: int) -> None:
    """An argument that nobody gives would fail every run: say so before the first."""
    unmet = required if style == "keywords" else required[1:]
    if not unmet:
        return
    if names is None and len(required) == width:
        raise ValueError(
            f"simulator takes {', '.join(required)} one by one: give names={required!r} to have it called with them; "
            "without names it is called with one array"
        )
    raise ValueError(
        f"simulator needs {', '.join(unmet)}, which it is not given; fix it with functools.partial or a default, or name "
        "a parameter so"
    )


def fingerprint(simulator: Callable[..., Any]) -> tuple[str, str | None]:
    """`module:qualname`, and a digest of what the function does where that can be read.

    Of the compiled code and not of the text: neither a comment nor the line around a lambda changes it. Another version of
    Python compiles differently, so the version is part of it.
    """
    while isinstance(simulator, functools.partial):
        simulator = simulator.func
    simulator = inspect.unwrap(simulator)
    named = simulator if hasattr(simulator, "__qualname__") else type(simulator)
    name = f"{getattr(named, '__module__', None) or '?'}:{named.__qualname__}"
    code = getattr(simulator, "__code__", None) or getattr(type(simulator).__call__, "__code__", None)
    if code is None:
        return name, None
    version = ".".join(map(str, sys.version_info[:2]))
    return name, f"{version} {hashlib.sha256(_meaning(code).encode()).hexdigest()[:16]}"


def _meaning(part: Any) -> str:
    """Code and its constants as text that does not depend on where it stands."""
    if isinstance(part, types.CodeType):
        return f"{part.co_code.hex()} {part.co_names} {part.co_varnames} {_meaning(part.co_consts)}"
    if isinstance(part, tuple):
        return f"({', '.join(map(_meaning, part))})"
    return str(sorted(map(repr, part))) if isinstance(part, frozenset) else repr(part)


def _signature(simulator: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(simulator).parameters
    except (TypeError, ValueError):  # compiled functions need not have one
        return {}


def _by_keyword(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and not variadic

"""Whether a value is of the kind that a type hint names: the hints of the classes themselves, read strictly.

A `float` is a finite number and an array holds finite numbers, unless the hint says `Real`, `Gaps` or `Points`. A function
is never of any kind, as no file can hold one.
"""

from __future__ import annotations

import collections.abc
import math
import types
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

import numpy as np

from .._typing import Array


class Cells(NamedTuple):
    """What the cells of an array may be: the letters of NumPy's kinds, `O` for arrays and labels one by one."""

    letters: str = "biuf"
    finite: bool = True


class Loose(NamedTuple):
    """That a number may be NaN or infinite."""


#: Finite numbers.
Numbers: TypeAlias = Annotated[np.ndarray, Cells()]
#: Numbers, NaN and infinity among them.
Gaps: TypeAlias = Annotated[np.ndarray, Cells(finite=False)]
#: Points of any kernel: numbers, labels, dates, or one array for each.
Points: TypeAlias = Annotated[np.ndarray, Cells("biufUSMO")]
#: The same with gaps.
Labels: TypeAlias = Annotated[np.ndarray, Cells("biufUSMO", finite=False)]
#: One number, which may be NaN or infinite.
Real: TypeAlias = Annotated[float, Loose()]

# Whole numbers beyond this mean nothing in any setting, and overflow as a float.
_MOST = 2**128
_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    np.ndarray: "an array",
    tuple: "a tuple",
    list: "a list",
    dict: "a dict",
    types.NoneType: "None",
}


def fault(value: Any, kind: Any) -> str | None:
    """What is wrong with a value of this kind, as the rest of a sentence about it; None if nothing is."""
    if kind is Any:  # all that a file can hold is data, or an object that has been checked itself
        return None
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin is Annotated:
        return _fault_annotated(value, *inner)
    if origin in (Union, types.UnionType):
        return _fault_of_any(value, kind, inner)
    if origin is Literal:
        return None if isinstance(value, str) and value in inner else _unlike(value, kind)
    if origin in (tuple, list):
        return _fault_in_sequence(value, origin, kind, inner)
    if origin is dict:
        return _fault_in_dict(value, kind, inner)
    if origin is np.ndarray:
        return _fault_in_array(value, Cells())
    if origin is float:
        return _fault_in_number(value, finite=True)
    return None if _is_plain(value, origin) else _unlike(value, kind)


def _is_plain(value: Any, kind: Any) -> bool:
    if kind in (None, types.NoneType):
        return value is None
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST
    if kind is bool:
        return isinstance(value, (bool, int)) and value in (0, 1)
    if kind is collections.abc.Callable:
        return False
    return isinstance(kind, type) and isinstance(value, kind)


def _fault_annotated(value: Any, base: Any, *marks: Any) -> str | None:
    for mark in marks:
        if isinstance(mark, Cells):
            return _fault_in_array(value, mark)
        if isinstance(mark, Loose):
            return _fault_in_number(value, finite=False)
    return fault(value, base)


def _fault_of_any(value: Any, kind: Any, choices: tuple[Any, ...]) -> str | None:
    found = [fault(value, choice) for choice in choices]
    if None in found:
        return None
    inside = [text for text in found if text is not None and not text.startswith("is ")]
    return inside[0] if inside else _unlike(value, kind)


def _fault_in_sequence(value: Any, origin: type, kind: Any, inner: tuple[Any, ...]) -> str | None:
    if not isinstance(value, origin):
        return _unlike(value, kind)
    many = origin is list or (len(inner) == 2 and inner[1] is Ellipsis)
    if not many and len(value) != len(inner):
        return f"has {len(value)} entries where {len(inner)} were wanted"
    wanted = (inner[0],) * len(value) if many else inner
    return next((f"[{i}] {text}" for i, v in enumerate(value) if (text := fault(v, wanted[i]))), None)


def _fault_in_dict(value: Any, kind: Any, inner: tuple[Any, ...]) -> str | None:
    if not isinstance(value, dict):
        return _unlike(value, kind)
    for key, item in value.items():
        text = fault(key, inner[0])
        if text:
            return f"has a key that {text}"
        text = fault(item, inner[1])
        if text:
            return f"[{str(key)[:40]!r}] {text}"
    return None


def _fault_in_number(value: Any, *, finite: bool) -> str | None:
    if isinstance(value, np.ndarray) and value.shape == ():  # a setting may have been given as one
        return _fault_in_array(value, Cells(finite=finite))
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or (isinstance(value, int) and abs(value) >= _MOST)
    ):
        return _unlike(value, float)
    return f"is {value} where a finite number was wanted" if finite and not math.isfinite(value) else None


def _fault_in_array(value: Any, cells: Cells) -> str | None:
    if not isinstance(value, np.ndarray):
        return _unlike(value, np.ndarray)
    if value.dtype.kind not in cells.letters:
        return f"holds {_named(value)} where {'numbers' if cells.letters == 'biuf' else 'points'} were wanted"
    if value.dtype.kind == "O":
        return next((f"[{i}] {text}" for i, v in enumerate(value) if (text := _fault_in_point(v, cells))), None)
    if cells.finite and value.dtype.kind == "f" and not np.isfinite(value).all():
        return f"holds {'NaN' if np.isnan(value).any() else 'infinity'} where finite numbers were wanted"
    return None


def _fault_in_point(value: Any, cells: Cells) -> str | None:
    if isinstance(value, np.ndarray):
        return _fault_in_array(value, cells._replace(letters=cells.letters.replace("O", "")))
    return None if value is None or isinstance(value, (bool, int, float, str)) else _unlike(value, np.ndarray)


def _named(array: Array) -> str:
    return {"U": "text", "S": "bytes", "O": "objects", "M": "dates", "m": "durations", "c": "complex numbers"}.get(
        array.dtype.kind, str(array.dtype)
    )


def _unlike(value: Any, kind: Any) -> str:
    return f"is {_given(value)} where {_wanted(kind)} was wanted"


def _given(value: Any) -> str:
    if isinstance(value, str):
        return f"the text {value[:40]!r}" + "..." * (len(value) > 40)
    if isinstance(value, int) and not isinstance(value, bool):
        return "a whole number" if abs(value) < _MOST else "a whole number of more than 38 digits"
    return _WORDS.get(type(value), f"a {type(value).__name__}")


def _wanted(kind: Any) -> str:
    origin, inner = get_origin(kind) or kind, get_args(kind)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_wanted(choice) for choice in inner))
    if origin is Annotated:
        return _wanted(inner[0])
    if origin is Literal:
        return "one of " + ", ".join(map(repr, inner))
    return _WORDS.get(origin, getattr(origin, "__name__", str(origin)))

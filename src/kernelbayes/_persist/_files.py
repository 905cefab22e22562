"""Saving fitted objects as data: one .npz file holding arrays and a JSON description. No pickle, and loading runs no code.

An object of this library is written as its class name and its attributes, and rebuilt by setting them again. Names are
looked up among the library's own classes and nowhere else, and an object has the attributes that its class has, each of its
kind (`_fields`): a file can describe an object but not make anything run.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from .._estimator import DERIVED
from .._typing import Array
from ._archive import DESCRIPTION, MOST_TEXT, MOST_VALUES, Archive
from ._fields import known, layout
from ._kinds import fault

SCHEMA = 1


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, an embedding, a kernel, features or a result to a file.

    The file has the name that is given, whatever it ends in; `.npz` is usual.

    What holds a function of yours (a `FunctionKernel`, a network that is not `kb.MLP` or `kb.ConvNet`) cannot be written as
    data and raises ValueError.

    Example:
        >>> import os, tempfile, numpy as np, kernelbayes as kb
        >>> path = os.path.join(tempfile.mkdtemp(), "model.npz")
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = kb.ConditionalEmbedding().fit(x, x[:, 0] ** 2)
        >>> kb.save(model, path)
        >>> bool(np.array_equal(kb.load(path).predict(x), model.predict(x)))
        True
    """
    if type(model) not in known().values():
        raise ValueError(f"save takes an object of kernelbayes, got {type(model).__name__}")
    arrays: dict[str, np.ndarray] = {}
    name = type(model).__name__
    try:
        object_ = _encode(model, name, arrays)
        text = json.dumps({"schema": SCHEMA, "object": object_})
        _Reader(arrays.__getitem__).read(object_)  # what could not be loaded is refused here
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply to be saved") from None
    if _is_long(text):
        raise ValueError(f"{name} has too many parts to be saved: more than {MOST_VALUES:,} values that are no arrays")
    path = _place(path)
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{path} is a folder" if path.is_dir() else f"there is no folder {path.parent} to save into")
    unfinished = path.with_name(path.name + ".part")
    with open(unfinished, "wb") as file:
        np.savez(file, **{DESCRIPTION: np.array(text)}, **arrays)  # type: ignore[arg-type]
    os.replace(unfinished, path)  # a crash leaves the old file or the new one, never half of one


def _place(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path):
        raise ValueError(f"path must be the name of a file, got {path!r}")
    return Path(path)


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `save` wrote.

    A file from someone else is safe to load: it can make nothing run, and what is wrong with it is a ValueError that names
    the file and the part, before anything of the object is used.

    Example:
        >>> import os, tempfile, numpy as np, kernelbayes as kb
        >>> path = os.path.join(tempfile.mkdtemp(), "kernel.npz")
        >>> kb.save(kb.Gaussian(0.5), path)
        >>> kb.load(path)
        Gaussian(lengthscale=0.5)
    """
    path = _place(path)
    with Archive(path) as archive:
        object_ = _described(archive, path)
        try:
            return _Reader(archive.array).read(object_)
        except ValueError as problem:
            raise ValueError(f"{path}: {problem}") from None
        except RecursionError:
            raise ValueError(f"{path}: its description is nested too deeply") from None


def _described(archive: Archive, path: Path) -> Any:
    """What the description says of the object, before any of it is looked at."""
    try:
        text = archive.description()
        if _is_long(text):
            raise ValueError(f"{path}: the description holds more than {MOST_VALUES:,} values")
        description = json.loads(text)
    except RecursionError:
        raise ValueError(f"{path}: its description is nested too deeply") from None
    except json.JSONDecodeError:
        raise ValueError(f"{path} is not a file saved by kernelbayes") from None
    if not isinstance(description, dict) or not {"schema", "object"} <= set(description):
        raise ValueError(f"{path} is not a file saved by kernelbayes")
    schema = description["schema"]
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise ValueError(f"{path} is not a file saved by kernelbayes")
    if schema > SCHEMA:
        raise ValueError(f"{path} was saved by a newer kernelbayes (format {schema}, this one reads up to {SCHEMA})")
    return description["object"]


def _is_long(text: str) -> bool:
    return len(text) > MOST_TEXT or sum(map(text.count, ",[{")) > MOST_VALUES


def _encode(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, jax.Array):
        value = np.asarray(value)
    if isinstance(value, np.generic):
        return _encode(value.item(), where, arrays)
    if isinstance(value, np.ndarray) and value.dtype != object:
        key = f"a{len(arrays)}"
        arrays[key] = value
        return {"array": key}
    if isinstance(value, np.ndarray):
        return {"objects": [_encode(v, f"{where}[{i}]", arrays) for i, v in enumerate(value)]}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encode(v, f"{where}[{i}]", arrays) for i, v in enumerate(value)]}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"dict": {k: _encode(v, f"{where}.{k}", arrays) for k, v in value.items()}}
    if isinstance(value, dict):  # keys of other kinds, such as labels
        pairs = [[_encode(k, where, arrays), _encode(v, f"{where}[{k!r}]", arrays)] for k, v in value.items()]
        return {"pairs": pairs}
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return None  # a source of randomness is spent, not kept
    if hasattr(value, "_settled"):  # what is formed on demand is formed now
        value = value._settled()  # type: ignore[attr-defined]
    if type(value) in known().values():
        state = {k: v for k, v in vars(value).items() if k not in DERIVED}
        return {
            "type": type(value).__name__,
            "state": {k: _encode(v, f"{where}.{k}", arrays) for k, v in state.items()},
        }
    raise ValueError(f"{where} is a {type(value).__name__}, which cannot be saved as data")


class _Reader:
    """Objects as `_encode` describes them; `array` gives the array of a name, and every ValueError names the part."""

    def __init__(self, array: Callable[[str], Array]):
        self._array, self._known = array, known()
        self._forms = {"objects": self._objects, "list": self._list, "tuple": self._tuple, "pairs": self._pairs}

    def read(self, value: Any) -> Any:
        """The object that a file holds."""
        if not isinstance(value, dict) or set(value) != {"type", "state"}:
            raise ValueError("it describes no object")
        return self._object(value, "")

    def _value(self, value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            if isinstance(value, list):
                raise ValueError(f"{where} is described in no way that is known")
            return value
        if set(value) == {"type", "state"}:
            return self._object(value, where)
        if len(value) != 1:
            raise ValueError(f"{where} is described in no way that is known")
        ((form, inner),) = value.items()
        if form == "array" and isinstance(inner, str):
            return self._named(inner, where)
        if form == "dict" and isinstance(inner, dict):
            return {key: self._value(v, f"{where}[{key[:40]!r}]") for key, v in inner.items()}
        if form in self._forms and isinstance(inner, list):
            return self._forms[form](inner, where)
        raise ValueError(f"{where} is described in no way that is known")

    def _named(self, name: str, where: str) -> Array:
        try:
            return self._array(name)
        except ValueError as problem:
            raise ValueError(f"{where}: {problem}") from None

    def _list(self, items: list[Any], where: str) -> list[Any]:
        return [self._value(item, f"{where}[{i}]") for i, item in enumerate(items)]

    def _tuple(self, items: list[Any], where: str) -> tuple[Any, ...]:
        return tuple(self._list(items, where))

    def _objects(self, items: list[Any], where: str) -> Array:
        out = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            out[i] = self._value(item, f"{where}[{i}]")
        return out

    def _pairs(self, items: list[Any], where: str) -> dict[Any, Any]:
        out: dict[Any, Any] = {}
        for item in items:
            if not isinstance(item, list) or len(item) != 2:
                raise ValueError(f"{where} is described in no way that is known")
            key, value = item
            if key is not None and not isinstance(key, (bool, int, float, str)):
                raise ValueError(f"{where} has a key that is neither a number nor text")
            out[key] = self._value(value, f"{where}[{str(key)[:40]}]")
        return out

    def _object(self, value: dict[str, Any], where: str) -> Any:
        name, state = value["type"], value["state"]
        if not isinstance(name, str) or not isinstance(state, dict):
            raise ValueError(f"{where or 'the object'} is described in no way that is known")
        cls = self._known.get(name)
        if cls is None:
            raise ValueError(f"the file describes a {name[:40]!r}, which this version of kernelbayes does not know")
        where = where or name
        if getattr(cls, "__abstractmethods__", None):
            raise ValueError(f"{where} is a {name}, of which there are no objects")
        attributes = {}
        for key, item in state.items():  # no comprehension, which would halve how deep sums of kernels may be
            attributes[key] = self._value(item, f"{where}.{key[:40]}")
        return _checked(cls, attributes, where)


def _checked(cls: type, state: dict[str, Any], where: str) -> Any:
    """An object with these attributes, if they are those of its class."""
    fields = layout(cls)
    strange = next((name for name in state if name not in fields.kinds), None)
    if strange is not None:
        raise ValueError(f"{where}.{strange[:40]} is no attribute of a {cls.__name__}")
    missing = fields.missing(state)
    if missing is not None:
        raise ValueError(f"{where}.{missing} is missing")
    made = object.__new__(cls)
    for name, item in state.items():
        wrong = fault(item, fields.kinds[name])
        if wrong is not None:
            raise ValueError(f"{where}.{name}{'' if wrong.startswith('[') else ' '}{wrong}")
        object.__setattr__(made, name, item)
    _check_own(made, where)
    return made


def _check_own(made: Any, where: str) -> None:
    """The checks that a class makes of its own objects: those of dataclasses and of Equinox modules."""
    try:
        if hasattr(made, "__post_init__"):
            copy.copy(made).__post_init__()  # a copy, as some of them set what they check
        if hasattr(made, "_check_loaded"):  # what is too slow to be checked wherever one is made
            made._check_loaded()
        for base in type(made).__mro__:
            if "__check_init__" in vars(base):
                base.__check_init__(made)  # type: ignore[attr-defined]
    except (ValueError, TypeError, ArithmeticError) as problem:
        raise ValueError(f"{where}: {problem}") from None

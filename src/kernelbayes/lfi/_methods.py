"""The methods of inference by the words for them, and where an argument belongs that `infer` does not have."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable
from typing import Any

from .. import _check
from ..simulation import Run
from ._abc import MarkovABC, SequentialABC
from ._dme import DME
from ._kelfi import KELFI
from ._kernel_methods import DoubleKernelABC, KernelABC, KernelBayes, Rejection
from ._likelihood import LearnedLikelihood
from ._problem import Method
from ._surrogate import SurrogateABC
from ._synthetic import AdaptiveSynthetic, SyntheticLikelihood

_LEARNING = (LearnedLikelihood, KELFI, DME, KernelBayes, KernelABC, DoubleKernelABC, Rejection)
_SEEKING = (MarkovABC, SequentialABC, SyntheticLikelihood, AdaptiveSynthetic, SurrogateABC)
#: The settings of each method by the word for it.
METHODS: dict[str, type[Any]] = {kind.name: kind for kind in (*_LEARNING, *_SEEKING)}

# What arguments are called on the command line and in other libraries.
_ELSEWHERE = {
    **dict.fromkeys(("seed", "rng", "random_seed"), "random_state"),
    **dict.fromkeys(("workers", "n_jobs", "processes", "num_workers"), "executor"),
    **dict.fromkeys(("n", "n_simulations", "num_simulations", "runs", "budget"), "simulations"),
    **dict.fromkeys(("x", "y", "data", "observation"), "observed"),
    **dict.fromkeys(("theta", "params"), "parameters"),
}


def read_method(method: Any) -> Method:
    """Settings, or those of a word as they come."""
    if isinstance(method, Method):
        return method
    if isinstance(method, type):
        raise ValueError(f"method is {_check.given_instead(method, Method)}, as in method=kb.lfi.KELFI()")
    return METHODS[_check.option(method, "method", tuple(METHODS))]()


def where_it_belongs(word: str, known: Iterable[str], method: Any) -> str:
    """What to say of an argument that `infer` does not have, given those it has and the method it was called with."""
    if (owner := _owner(word, method)) is not None:
        return f"{word}= belongs to {owner}"
    known = list(known)
    near = _ELSEWHERE.get(word) or next(iter(difflib.get_close_matches(word, known, n=1, cutoff=0.7)), None)
    if near is None:
        return f"infer has no argument {word!r}; it has {', '.join(known)}"
    return f"infer has no argument {word!r}: did you mean {near if near in known else _owner(near, method)}?"


def _owner(word: str, method: Any) -> str | None:
    """The object that has such a setting, as it is written."""
    if word in _fields(Run):
        return f"run=kb.Run({word}=...)"
    own = METHODS.get(method) if isinstance(method, str) else type(method)
    for kind in (own, *METHODS.values()):
        if kind is not None and word in _fields(kind):
            return f"method=kb.lfi.{kind.__name__}({word}=...)"
    return None


def _fields(kind: type[Any]) -> list[str]:
    return [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []

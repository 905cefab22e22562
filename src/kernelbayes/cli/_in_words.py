"""Kernels and results as a person would say them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..kernels import Columns, Kernel, Product, Scaled
from ._inputs import listed


def inside(thing: Any) -> str:
    """How a thing shows itself, without its name and brackets."""
    return repr(thing).partition("(")[2].removesuffix(")")


def in_words(kernel: Kernel, columns: Sequence[str]) -> str:
    """The kind of a kernel, and how far points of each column are alike."""
    said: dict[str, list[str]] = {}
    for part, names in _factors(kernel, tuple(columns)):
        scales = np.broadcast_to(getattr(part, "lengthscale", np.nan), len(names))
        each = [f"{s:.3g} of {name}" for name, s in zip(names, scales, strict=True) if np.isfinite(s)]
        said.setdefault(type(part).__name__, []).extend(each)
    return " and ".join(kind + f", lengthscale {listed(each)}" * bool(each) for kind, each in said.items())


def _factors(kernel: Any, names: tuple[str, ...]) -> Iterator[tuple[Kernel, tuple[str, ...]]]:
    """The kernels that are multiplied, and the columns of each."""
    if isinstance(kernel, Product):
        yield from _factors(kernel.left, names)
        yield from _factors(kernel.right, names)
    elif isinstance(kernel, Columns):
        yield from _factors(kernel.kernel, tuple(names[j] for j in kernel.columns))
    elif isinstance(kernel, Scaled):
        yield from _factors(kernel.kernel, names)
    else:
        yield kernel, names

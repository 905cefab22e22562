"""Reading what was observed: by name where there are names, once or several times, and perhaps in part."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _check
from .._typing import Array
from ._problem import numbered


def read_observation(
    value: Any, shape: tuple[int, ...], names: tuple[str, ...], *, several: bool = False, partly: bool = False
) -> Array:
    """An observation of the shape that simulations have.

    Args:
        value: an array, a number, a dict or a row of a data frame; for `several`, also a data frame or columns in a dict.
        shape: of one simulation.
        names: of the statistics.
        several: whether there may be k independent observations (k, ...).
        partly: whether statistics may be missing, as NaN.
    """
    given = _check.row_names(value) or _check.own_names(value)
    if given is not None and (isinstance(value, dict) or names != numbered(len(names))):
        _same_statistics(given, names, partly)
        columns = isinstance(value, dict) and any(np.ndim(v) for v in value.values())
        value = (
            np.column_stack([value[name] for name in names])
            if columns
            else _check.row_by_name(value, names, "observed")
        )
        value = _check.by_name(value, names, "observed")
    observed = _check._as_numbers(value, "observed")
    if not observed.size:
        raise ValueError("observed is empty")
    missing = np.isnan(observed)
    if missing.any() and not partly:
        raise ValueError("observed holds NaN; only method 'likelihood' can do without some of the statistics")
    if missing.all():
        raise ValueError("observed holds nothing but NaN")
    _check.bounded(np.where(missing, 0.0, observed), "observed")
    size = int(np.prod(shape))
    if observed.shape == shape or observed.size == size:
        return observed.reshape(shape)
    if several and (observed.shape[1:] == shape or (size == 1 and observed.ndim == 1)):
        return observed.reshape(-1, *shape)
    also = f" (or several of that, {('k', *shape)})".replace("'", "") if several and observed.ndim > len(shape) else ""
    raise ValueError(f"observed has shape {observed.shape} where a simulation returns {shape or 'one number'}{also}")


def _same_statistics(given: tuple[str, ...], names: tuple[str, ...], partly: bool) -> None:
    missing = [n for n in names if n not in given]
    if missing:
        hint = "; write NaN for what was not observed" if partly else ""
        raise ValueError(f"observed lacks {missing}, which a simulation returns{hint}")
    unknown = [n for n in given if n not in names]
    if unknown:
        raise ValueError(f"observed has {unknown}, which a simulation does not return; it returns {list(names)}")

"""How a parameter is declared: a field states its domain once, as in `lengthscale: Array = positive()`.

Construction of a kernel checks it, and `learning` reads it to choose the scale on which to optimise.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import equinox as eqx
import numpy as np
from jax.core import Tracer

from .. import _check

_DOMAINS = {
    "positive": (lambda v: v > 0, "must be positive"),
    "nonnegative": (lambda v: v >= 0, "must not be negative"),
    "unit": (lambda v: (v > 0) & (v <= 1), "must lie in (0, 1]"),
    "real": (np.isfinite, "must be finite"),
}


def positive(default: float = 1.0, *, per_column: bool = False) -> Any:
    """Declare a parameter above zero; it is learned on the logarithmic scale.

    Used as the default of a field of a kernel, or of any Equinox module that `kb.minimise` is to learn. With
    `per_column` it may also be one number for each column of the points.

    Example:
        >>> import equinox as eqx, kernelbayes as kb
        >>> class Model(eqx.Module):
        ...     kernel: kb.Kernel
        ...     noise: float = kb.positive(0.1)
        >>> Model(kb.Gaussian()).noise
        array(0.1)
    """
    metadata = {"domain": "positive", "per_column": per_column}
    return eqx.field(converter=_as_parameter, default=default, metadata=metadata)


def nonnegative(default: float = 0.0) -> Any:
    """Declare a parameter that may be zero; it is held fixed in learning at zero and above zero learned as a log."""
    return eqx.field(converter=_as_parameter, default=default, metadata={"domain": "nonnegative"})


def unit_interval(default: float = 0.5) -> Any:
    """Declare a parameter in (0, 1]."""
    return eqx.field(converter=_as_parameter, default=default, metadata={"domain": "unit"})


def unbounded(default: Any = 0.0) -> Any:
    """Declare a parameter of either sign, a number or an array; it is learned as it is, on no other scale."""
    return eqx.field(converter=_as_parameter, default=default, metadata={"domain": "real"})


def _as_parameter(value: Any) -> Any:
    """Parameters are host arrays in double precision; values that JAX is tracing pass through."""
    if isinstance(value, Tracer):
        return value
    try:
        return _check.numbers(value, "")
    except ValueError:
        return value  # refused by `__check_init__`, which knows the parameter's name


def check_parameter(field: dataclasses.Field[Any], value: Any) -> None:
    """Refuse a value that is not in the domain its field declares."""
    domain = field.metadata.get("domain")
    if domain is None or isinstance(value, Tracer):
        return
    test, wanted = _DOMAINS[domain]
    value = _check.numbers(value, field.name)
    if value.ndim > field.metadata.get("per_column", False) or value.size == 0:
        form = "a number or one per column" if field.metadata.get("per_column") else "one number"
        raise ValueError(f"{field.name} must be {form}, got shape {value.shape}")
    if not np.all(test(value)):
        raise ValueError(f"{field.name} {wanted}, got {value}")
    if domain == "positive" and value.min() < _check.SMALLEST:
        raise ValueError(f"{field.name} must be at least {_check.SMALLEST:g}, got {value}")

"""Posteriors in the form of other libraries."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from .._typing import Array
from ._posterior import ParameterPosterior


def to_arviz(posterior: ParameterPosterior, n: int, rng: np.random.Generator) -> Any:
    """Draws as ArviZ wants them: an `InferenceData` of ArviZ 0.x, a `DataTree` of ArviZ 1.x, with the same groups.

    Groups are `posterior` and `prior` (one chain of n independent draws, a variable for each parameter), `sample_stats`
    with the log density `lp`, and `observed_data` with one variable `observed`.
    """
    arviz = _arviz()
    draws, before = posterior.sample(n, rng), posterior.prior.sample(n, rng)
    with np.errstate(divide="ignore"):
        density = np.log(posterior.density(draws))
    groups = {
        "posterior": _variables(posterior.names, draws),
        "sample_stats": {"lp": density[None]},
        "prior": _variables(posterior.names, before),
        "observed_data": {"observed": posterior.observed},
    }
    named: dict[str, Any] = {}
    if posterior.observed.ndim == 1:
        named = {"coords": {"statistic": list(posterior.statistics)}, "dims": {"observed": ["statistic"]}}
    if "data" in inspect.signature(arviz.from_dict).parameters:  # from 1.0 on, all groups in one dict
        return arviz.from_dict(groups, **named)
    return arviz.from_dict(**groups, **named)


def _arviz() -> Any:
    try:
        import arviz  # type: ignore[import-not-found]
    except ImportError:
        raise ImportError("to_arviz needs ArviZ: pip install 'kernelbayes[arviz]'") from None
    return arviz


def _variables(names: tuple[str, ...], draws: Array) -> dict[str, Array]:
    return {name: draws[None, :, j] for j, name in enumerate(names)}

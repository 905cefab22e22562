"""Reasons not to take a posterior at face value that can be seen from the simulations alone."""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ..kernels._stationary import squared_distances
from ._epsilon import spreads
from ._problem import Inference, Problem

# An observation farther from its neighbours among the simulations than this share of the simulations is told about.
_RARE = 0.99
_NEIGHBOURS = 5
_MOST_NAMED = 4
_MOST_COLUMNS = 32
# Distances held at a time.
_BLOCK_ELEMENTS = 2**22
# So many effective simulations, as they are shown, that is rounded, are worth a warning.
_FEW = 5


def doubts(problem: Problem, found: Inference, *, drawn: bool = False) -> list[str]:
    """What the user should know about this observation and these simulations.

    A posterior that is `drawn`, by a chain or in populations, counts draws and not simulations, and tells itself if few.
    """
    few = [] if drawn else _few(found.ess)
    X = problem.outputs.reshape(len(problem.outputs), -1)
    if problem.observed.size % X.shape[1]:  # on other places than it was simulated on: compared by the method alone
        return few
    for y in problem.observed.reshape(-1, X.shape[1]):
        there = ~np.isnan(y)
        names = tuple(name for name, known in zip(problem.statistics, there, strict=True) if known)
        if said := _outside(X[:, there], y[there], names):
            return [*said, *few]
    return few


def _outside(X: Array, y: Array, names: tuple[str, ...]) -> list[str]:
    """Statistics beyond all simulations; or all together, farther from them than they are from each other."""
    low, high = X.min(0), X.max(0)
    # of a raw data set single values outside their range mean nothing
    beyond = np.flatnonzero((y < low) | (y > high)) if len(y) <= _MOST_COLUMNS else []
    if len(beyond):
        shown = [f"{names[j]} = {y[j]:.4g} (simulated: {low[j]:.4g} to {high[j]:.4g})" for j in beyond[:_MOST_NAMED]]
        rest = f" and {len(beyond) - _MOST_NAMED} more" if len(beyond) > _MOST_NAMED else ""
        return [
            f"the observation lies outside the simulations in {', '.join(shown)}{rest}: either the prior leaves out what "
            "happened, or the simulator cannot produce it; the posterior is an extrapolation"
        ]
    share = novelty(X, y)
    if share > _RARE:
        return [
            f"the observation lies in a gap between the simulations: {share:.1%} of them are nearer to each other than "
            "it is to any; its statistics may be possible one by one but not together"
        ]
    return []


def novelty(X: Array, y: Array) -> float:
    """The share of simulations that are nearer to their neighbours than the observation is to its own."""
    unit = spreads(X)
    unit = np.where(unit > 0, unit, 1.0)
    some = X[:: max(1, len(X) // 1000)] / unit
    k = min(_NEIGHBOURS, len(X) - 1)
    own = np.sort(np.sqrt(squared_distances(y[None] / unit, X / unit)[0]))[k - 1]
    # the first is itself; a few at a time, of many
    size = max(1, _BLOCK_ELEMENTS // len(X))
    blocks = (squared_distances(some[i : i + size], X / unit) for i in range(0, len(some), size))
    others = np.concatenate([np.sqrt(np.partition(block, k, axis=1)[:, k]) for block in blocks])
    return float((others < own).mean())


def _few(ess: float) -> list[str]:
    """A posterior that rests on a handful of simulations."""
    if round(ess) > _FEW:
        return []
    return [
        f"only about {ess:.1f} simulations resemble the observation: the posterior rests on them; more simulations, "
        "or more rounds, would tell"
    ]

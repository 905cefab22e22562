"""Simulation on request, for methods that choose where to simulate as they go."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable

import numpy as np

from .._typing import Array
from .._warning import warn_user
from ..simulation import Failure, Runs, SimulationError, SimulationWarning
from ..simulation._runs import FEWEST_TO_JUDGE, MOST_FAILED, SHARE_TO_WARN, commonest, joined
from ._prior import Prior
from ._problem import OutOfBudget

# A first look at the simulator, by draws of the prior. The same number whatever the budget, so that a larger one goes on.
_PILOT = 40


class Search:
    """Runs one after the other within a budget.

    Args:
        run: simulates at rows (k, d), the first of which is run number `start`, and returns the runs of these.
        prior: for the first look.
        total: the budget.

    Attributes:
        rows: parameters (n, d) of all runs that were asked for.
        short: whether some of them were not made, which is the end of it.
    """

    def __init__(self, run: Callable[[Array, int], Runs], prior: Prior, total: int):
        self._run, self._prior, self.total = run, prior, total
        self.rows = np.empty((0, prior.dimension))
        self._parts: list[Runs] = []
        self.short = False

    @property
    def left(self) -> int:
        """Runs that may still be made."""
        return self.total - len(self.rows)

    def first(self, random_state: int) -> Runs:
        """Draws of the prior: they show the shape and the spread of what is simulated, and where to begin."""
        self._extend(self._prior.design(min(self.total, _PILOT), "halton", random_state=random_state))
        return self.runs()

    def __call__(self, theta: Array) -> Array:
        """Outputs (k, ...) at parameters (k, d), NaN where a run failed; raises `OutOfBudget` if they cannot all be run."""
        if len(theta) > self.left:
            raise OutOfBudget
        before = len(self.rows)
        self._extend(theta)
        if self.short:
            raise OutOfBudget
        runs = self._parts[-1]
        out = np.full((len(theta), *runs.outputs.shape[1:]), np.nan)
        out[runs.index - before] = runs.outputs
        return out

    def _extend(self, theta: Array) -> None:
        before = len(self.rows)
        self.rows = np.concatenate([self.rows, theta])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)  # said once, of all runs
            try:
                part = self._run(theta, before)
            except SimulationError as error:  # a few in a row may all fail: the method learns that they did
                if before == 0 or error.runs is None:
                    raise
                part = error.runs
        self._parts.append(_alike(part, self._parts[0]) if self._parts else part)
        # runs that were not made, for want of time or because the user interrupted
        self.short = len(part) + len(part.failures) < len(theta)
        self.total = len(self.rows) if self.short else self.total

    def runs(self) -> Runs:
        """All there are."""
        return joined(self._parts, self._prior.dimension)


def _alike(runs: Runs, first: Runs) -> Runs:
    """Runs in the form of the first ones: the same statistics in the same order; what differs has failed."""
    shape = first.outputs.shape[1:]
    if not len(runs):  # of none, the shape is unknown
        return dataclasses.replace(runs, outputs=np.empty((0, *shape)), statistics=first.statistics)
    if runs.statistics == first.statistics and runs.outputs.shape[1:] == shape:
        return runs
    if runs.statistics and first.statistics and set(runs.statistics) == set(first.statistics):
        order = [runs.statistics.index(name) for name in first.statistics]
        return dataclasses.replace(runs, outputs=runs.outputs[:, order], statistics=first.statistics)
    said = f"returned {_form(runs)}, where the first runs returned {_form(first)}"
    strange = [Failure(int(i), row, said, "wrong shape") for i, row in zip(runs.index, runs.parameters, strict=True)]
    none = {name: getattr(runs, name)[:0] for name in ("parameters", "index", "seconds")}
    failures = tuple(sorted([*runs.failures, *strange], key=lambda f: f.index))
    return Runs(
        **none, outputs=np.empty((0, *shape)), names=first.names, statistics=first.statistics, failures=failures
    )


def _form(runs: Runs) -> str:
    return f"the statistics {', '.join(runs.statistics)}" if runs.statistics else f"shape {runs.outputs.shape[1:]}"


def judge(runs: Runs) -> None:
    """Say it once, of all runs, when many failed; refuse when most did."""
    ended = len(runs) + len(runs.failures)
    if runs.failure_rate > MOST_FAILED and ended >= FEWEST_TO_JUDGE:
        raise SimulationError(f"{len(runs.failures)} of {ended} runs failed:\n  {commonest(runs)}", runs)
    if runs.failure_rate > SHARE_TO_WARN:
        text = f"{len(runs.failures)} of {ended} runs failed ({runs.failure_rate:.0%}):\n  {commonest(runs)}"
        warn_user(text, SimulationWarning)

"""Simulation on request, for methods that choose where to simulate as they go."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable

import numpy as np

from .._typing import Array
from ..simulation import Runs, SimulationError, SimulationWarning
from ..simulation._runs import commonest
from ..simulation._simulate import SHARE_TO_WARN
from ._prior import Prior
from ._problem import OutOfBudget

# A first look at the simulator, by draws of the prior. The same number whatever the budget, so that a larger one goes on.
_PILOT = 40


class Search:
    """Runs one after the other within a budget; kept in a store if there is one, and repeated by none of a second call.

    Args:
        run: simulates at rows (k, d), the first of which is run number `start`.
        prior: for the first look.
        total: the budget.
        stored: whether `run` keeps what it has done, and is to be given all rows from the first.
    """

    def __init__(self, run: Callable[[Array, int], Runs], prior: Prior, total: int, stored: bool):
        self._run, self._prior, self.total, self._stored = run, prior, total, stored
        self.rows = np.empty((0, prior.dimension))
        self._parts: list[Runs] = []
        self._short = False

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
        if self._short:
            raise OutOfBudget
        runs, shape = self._parts[-1], self._parts[0].outputs.shape[1:]
        out = np.full((len(theta), *shape), np.nan)
        new = runs.index >= before
        out[runs.index[new] - before] = runs.outputs.reshape(len(runs), *shape)[new]  # of none, the shape is unknown
        return out

    def _extend(self, theta: Array) -> None:
        before = len(self.rows)
        self.rows = np.concatenate([self.rows, theta])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)  # said once, of all runs
            if self._stored:
                self._parts = [self._run(self.rows, 0)]
                self._stop_if_short()
                return
            try:
                part = self._run(theta, before)
            except SimulationError as error:  # a few in a row may all fail: the method learns that they did
                if before == 0 or error.runs is None:
                    raise
                part = error.runs
        self._parts.append(renumbered(part, np.arange(before, len(self.rows))))
        self._stop_if_short()

    def _stop_if_short(self) -> None:
        """Runs that were not made, for want of time or because the user interrupted, are the end of it."""
        self._short = sum(len(part) + len(part.failures) for part in self._parts) < len(self.rows)
        self.total = len(self.rows) if self._short else self.total

    def runs(self) -> Runs:
        """All there are."""
        return joined(self._parts, self._prior.dimension)


def joined(parts: list[Runs], dimension: int) -> Runs:
    """Runs of several calls as one."""
    shape = parts[0].outputs.shape[1:]
    return Runs(
        np.concatenate([p.parameters.reshape(len(p), dimension) for p in parts]),
        np.concatenate([p.outputs.reshape(len(p), *shape) for p in parts]),
        np.concatenate([p.index for p in parts]),
        np.concatenate([p.seconds for p in parts]),
        parts[0].names,
        parts[0].statistics,
        tuple(f for p in parts for f in p.failures),
    )


def renumbered(runs: Runs, numbers: Array) -> Runs:
    """The same runs; run i is called `numbers[i]`."""
    failures = tuple(dataclasses.replace(f, index=int(numbers[f.index])) for f in runs.failures)
    return dataclasses.replace(runs, index=numbers[runs.index], failures=failures)


def judge(runs: Runs) -> None:
    """Say it once, of all runs, when many failed; refuse when most did."""
    from ..simulation._session import FEWEST_TO_JUDGE, MOST_FAILED  # which brings SQLite with it

    ended = len(runs) + len(runs.failures)
    if runs.failure_rate > MOST_FAILED and ended >= FEWEST_TO_JUDGE:
        raise SimulationError(f"{len(runs.failures)} of {ended} runs failed:\n  {commonest(runs)}", runs)
    if runs.failure_rate > SHARE_TO_WARN:
        text = f"{len(runs.failures)} of {ended} runs failed ({runs.failure_rate:.0%}):\n  {commonest(runs)}"
        warnings.warn(text, SimulationWarning, stacklevel=4)

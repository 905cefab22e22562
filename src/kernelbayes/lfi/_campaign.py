"""The runs behind an inference: in rounds, or wherever a method wants them, all within one budget and one store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .._typing import Array
from ..simulation import Runs, SimulationError, open_runs, simulate
from ..simulation._simulate import settled_seed
from ._prior import Prior
from ._problem import Inference, Problem
from ._search import Search, joined, judge, renumbered

# By how many posterior standard deviations the draws of a further round are moved, so that their surroundings are seen.
_STRAY = 0.7
# A larger share of failed runs is the end of it.
_MOST_FAILED = 0.5


class Campaign:
    """The runs of one simulator.

    Args:
        simulator: the function.
        prior: of its parameters.
        seed: of everything; None draws one. A store keeps its own.
        options: of `simulate`.

    Attributes:
        seed: the seed in use.
    """

    def __init__(self, simulator: Callable[..., Any], prior: Prior, seed: int | None, options: dict[str, Any]):
        self.simulator, self.prior, self.options = simulator, prior, options
        drawn = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        store = options["store"]
        self.seed = settled_seed(store, drawn) if seed is None and store is not None else drawn
        limit = options["max_seconds"]
        self._deadline = np.inf if limit is None else time.monotonic() + limit

    @property
    def out_of_time(self) -> bool:
        """Whether the limit of wall time has been reached."""
        return time.monotonic() >= self._deadline

    def _stored(self) -> dict[int, Array]:
        """Parameters of the runs in the store by their number."""
        store = self.options["store"]
        if store is None or not os.path.exists(store):
            return {}
        runs = open_runs(store)
        return {
            **{int(i): row for i, row in zip(runs.index, runs.parameters, strict=True)},
            **{f.index: f.parameters for f in runs.failures},
        }

    def known(self) -> int:
        """How many runs there are in the store, which there must be."""
        known = self._stored()
        if not known:
            raise ValueError("more adds to the runs of a store; pass store=, and simulations= for the first time")
        return max(known) + 1

    def _kept(self, first: Callable[[int, int], Array]) -> tuple[Array, int]:
        """Parameters (k, d) of the runs in the store, and how many of them, from the start, are those of the design.

        A run that never ended, because its process was killed, is one of the design.
        """
        known = self._stored()
        design = first(0, max(known) + 1)
        rows = np.array([known.get(i, row) for i, row in enumerate(design)])
        same = np.isclose(rows, design, rtol=1e-9, atol=0.0).all(1)
        return rows, int(len(rows) if same.all() else same.argmin())

    def run(self, rows: Array, start: int = 0) -> Runs:
        """Simulate at rows, of which some may be in the store; `start` runs were made before, without a store."""
        seed = self.seed if start == 0 else int(np.random.SeedSequence([self.seed, start]).generate_state(1)[0])
        options = dict(self.options)
        if np.isfinite(self._deadline):
            options["max_seconds"] = max(self._deadline - time.monotonic(), 1e-3)
        self.options["retry_failed"] = False  # once is enough
        return simulate(self.simulator, rows, names=self.prior.names, random_state=seed, **options)

    def _continued(self, runs: Runs, rows: Array) -> Runs:
        """Simulate at the rows that are new since these runs.

        A round that begins badly is not the end of it, as long as half of all runs are well.
        """
        if self.options["store"] is not None:
            return self.run(rows)
        while not self.out_of_time:
            tried = {*map(int, runs.index), *(f.index for f in runs.failures)}
            new = np.array([i for i in range(len(rows)) if i not in tried], dtype=int)
            if not len(new):
                break
            bad = None
            try:
                part = self.run(rows[new], len(tried))
            except SimulationError as error:
                if error.runs is None or not len(error.runs) + len(error.runs.failures):
                    raise
                part, bad = error.runs, error
            runs = joined([runs, renumbered(part, new)], self.prior.dimension)
            if bad is None:  # or there was no time for more
                break
            if runs.failure_rate > _MOST_FAILED:
                raise bad
        return runs

    def in_rounds(
        self,
        first: Callable[[int, int], Array],
        learn: Callable[[Runs, Array], tuple[Inference, Problem]],
        total: int,
        rounds: int,
        more: bool,
    ) -> tuple[Inference, Problem, Runs, int]:
        """Simulate and learn, then simulate about what was learned. Returns also how many runs follow the first design.

        Args:
            first: rows `start` to `stop` of the design of the first round.
            learn: makes an inference from runs, given the numbers of the runs at which further rounds begin.
            total: runs in all.
            rounds: over how many rounds they are spread.
            more: whether to add to what is in the store, which then counts as the first round if there are several.
        """
        kept, followed = self._kept(first) if more else (np.empty((0, self.prior.dimension)), 0)
        if more and rounds > 1:
            rows, edges = kept, np.linspace(len(kept), total, rounds)
        else:
            edges = np.linspace(len(kept), total, rounds + 1)[1:]
            rows = np.concatenate([kept, first(len(kept), int(edges[0].round()))])
            followed = len(rows) if followed == len(kept) else followed
        # of several rounds that are in the store already, the later ones count as one
        runs, starts = self.run(rows), [followed if more else len(rows)]
        found, problem = learn(runs, np.array(starts))
        followed = int((runs.index < (followed if more else len(rows))).sum())
        for number, size in enumerate(np.diff(edges.round().astype(int)), start=1):
            if self.out_of_time or not size:
                break
            starts += [len(rows)] if number > 1 or more else []
            rows = np.concatenate([rows, self._planned(found, len(rows), int(size), number)])
            runs = self._continued(runs, rows)
            found, problem = learn(runs, np.array(starts))
        return found, problem, runs, followed

    def _planned(self, found: Inference, begin: int, size: int, number: int) -> Array:
        """Parameters of a further round; those that are in the store are taken from there, to the last digit."""
        known, rows = self._stored(), self._about(found, size, number)
        return np.array([known.get(begin + i, row) for i, row in enumerate(rows)])

    def _about(self, found: Inference, size: int, number: int) -> Array:
        """Parameters about the posterior so far."""
        rng = np.random.default_rng([self.seed, number])
        z = found.law.sample(size, rng)
        if self.prior.latent is not None:
            z = z + _STRAY * z.std(0) * rng.standard_normal(z.shape)
        return self.prior.from_gaussian(z)

    def seek(
        self,
        pose: Callable[[Runs], Problem],
        method: Callable[[Problem], Inference],
        total: int,
    ) -> tuple[Inference, Problem, Runs]:
        """A method that chooses where to simulate, from a first look at the simulator."""
        search = Search(self.run, self.prior, total, self.options["store"] is not None)
        problem = pose(search.first(self.seed))
        problem.run = search
        found = method(problem)
        runs = search.runs()
        judge(runs)
        problem.theta, problem.outputs = runs.parameters, runs.outputs
        return found, problem, runs

"""The runs behind an inference: in rounds, or wherever a method wants them, all within one budget and one store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .._typing import Array
from ..simulation import Runs, open_runs, simulate
from ..simulation._simulate import settled_seed
from ._prior import Prior
from ._problem import Inference, Problem
from ._search import Search

# By how many posterior standard deviations the draws of a further round are moved, so that their surroundings are seen.
_STRAY = 0.7


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

    def kept(self) -> Array:
        """Parameters (k, d) of the runs in the store, in their order."""
        store = self.options["store"]
        if store is None or not os.path.exists(store):
            raise ValueError("more adds to the runs of a store; pass store=, and simulations= for the first time")
        runs = open_runs(store)
        rows = [*zip(runs.index, runs.parameters, strict=True), *((f.index, f.parameters) for f in runs.failures)]
        return np.array([row for _, row in sorted(rows, key=lambda pair: pair[0])]).reshape(-1, self.prior.dimension)

    def run(self, rows: Array, start: int = 0) -> Runs:
        """Simulate at rows, of which some may be in the store; `start` runs were made before, without a store."""
        seed = self.seed if start == 0 else int(np.random.SeedSequence([self.seed, start]).generate_state(1)[0])
        options = dict(self.options)
        if np.isfinite(self._deadline):
            options["max_seconds"] = max(self._deadline - time.monotonic(), 1e-3)
        return simulate(self.simulator, rows, names=self.prior.names, random_state=seed, **options)

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
        kept = self.kept() if more else np.empty((0, self.prior.dimension))
        if more and rounds > 1:
            rows, edges = kept, np.linspace(len(kept), total, rounds)
        else:
            edges = np.linspace(len(kept), total, rounds + 1)[1:]
            rows = np.concatenate([kept, first(len(kept), int(edges[0].round()))])
        runs, starts = self.run(rows), [len(rows)]
        found, problem = learn(runs, np.array(starts))
        followed = len(runs)
        for number, size in enumerate(np.diff(edges.round().astype(int)), start=1):
            if self.out_of_time or not size:
                break
            rows = np.concatenate([rows, self._about(found, int(size), number)])
            runs = self.run(rows)
            found, problem = learn(runs, np.array(starts))
            starts.append(len(rows))
        return found, problem, runs, followed

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
        problem.theta, problem.outputs = runs.parameters, runs.outputs
        return found, problem, runs

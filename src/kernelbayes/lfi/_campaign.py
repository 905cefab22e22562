"""The runs behind an inference: in rounds, or wherever a method wants them, all within one budget and one store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._typing import Array
from .._warning import warn_user
from ..simulation import Runs, SimulationError, SimulationWarning, open_runs
from ..simulation._simulate import running, settled_seed, simulated
from ._prior import Prior
from ._problem import FEWEST, Inference, Problem
from ._search import Search, judge

# To what powers the first rounds take the likelihood to propose parameters, where there are enough rounds for it.
_POWERS = (0.25, 0.5)
# Rounds unless their number is given: one for so many runs, up to a few; beyond, one for each of so many.
_PER_ROUND, _USUAL_ROUNDS, _LARGE_ROUND, _MOST_ROUNDS = 40, 4, 500, 8
# Two posteriors are the same that differ by less than this, in standard deviations and in their logarithms.
_SAME = 0.1
# A larger share of failed runs is the end of it.
_MOST_FAILED = 0.5


def usual_rounds(total: int) -> int:
    """Over how many rounds runs are spread where nobody says: several small ones are better than two."""
    return max(1, min(total // _PER_ROUND, _USUAL_ROUNDS), min(total // _LARGE_ROUND, _MOST_ROUNDS))


def _power(number: int, rounds: int) -> float:
    """To what power the likelihood is taken after a round, from 0: the first looks must not rule out too much."""
    first = len(_POWERS) - max(0, min(rounds - 2, len(_POWERS)))
    return _POWERS[first + number] if first + number < len(_POWERS) else 1.0


def _settled(now: Inference, before: Inference) -> bool:
    """Whether two posteriors are the same."""
    (mean, covariance), (mean_before, covariance_before) = now.law.moments(), before.law.moments()
    std, std_before = np.sqrt(np.diag(covariance)), np.sqrt(np.diag(covariance_before))
    return bool((np.abs(mean - mean_before) < _SAME * std).all() and (np.abs(np.log(std / std_before)) < _SAME).all())


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

    def _seconds_left(self) -> float | None:
        return None if np.isinf(self._deadline) else max(self._deadline - time.monotonic(), 1e-3)

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

    def _held(self, first: Callable[[int, int], Array]) -> int:
        """How many runs of the first design the store holds, up to the last: those under way may be of the next round."""
        known = self._stored()
        design = first(0, max(known, default=-1) + 1)
        others = [i for i, row in known.items() if not np.allclose(row, design[i], rtol=1e-9, atol=0.0)]
        return 1 + max((i for i in known if i < min(others, default=np.inf)), default=-1)

    def run(self, rows: Array, known: Runs | None = None) -> Runs:
        """Simulate at rows, of which some may be in the store or, where there is none, `known`: run i has the same seed."""
        options = {name: value for name, value in self.options.items() if name != "max_seconds"}
        options["known"] = known if options["store"] is None else None
        self.options["retry_failed"] = False  # once is enough
        with self._explained(lambda: rows):
            return simulated(
                self.simulator,
                rows,
                self._seconds_left(),
                names=self.prior.names,
                random_state=self.seed,
                **options,
            )

    @contextmanager
    def _explained(self, rows: Callable[[], Array]) -> Iterator[None]:
        """A store that holds other runs than these is refused in words of this call."""
        try:
            yield
        except ValueError as error:
            from ..simulation._store import OtherDesign  # which brings SQLite with it

            if not isinstance(error, OtherDesign):
                raise
            raise ValueError(self._otherwise_begun(rows())) from None

    def _otherwise_begun(self, rows: Array) -> str:
        known = self._stored()
        alike = [i not in known or np.allclose(known[i], row, rtol=1e-9, atol=0.0) for i, row in enumerate(rows)]
        same = alike.index(False)
        shared = (
            f"of which the first {same} are those of this call and the next is not" if same else "but not of this call"
        )
        return (
            f"store: {self.options['store']} holds {len(known)} runs, {shared}: it was begun with other simulations= and "
            "rounds=, or with another method, prior, design or proposal. The call that it was begun with goes on with it; "
            "with the same method, more=100 adds 100 runs whatever there is (and more=100, rounds=2 adds them about the "
            "posterior); for anything else, use another store"
        )

    def _refuse_few(self, runs: Runs, needed: int, wanted: int) -> None:
        """A limit of wall time that leaves too little to learn from."""
        if len(runs) >= needed or not self.out_of_time:
            return
        raise self._too_short(runs, wanted, f"at least {needed} are needed to learn from")

    def _too_short(self, runs: Runs, wanted: int, why: str) -> SimulationError:
        failed = f" and {len(runs.failures)} failed" if runs.failures else ""
        limit, store = self.options["max_seconds"], self.options["store"]
        kept = (
            "They are in the attribute `runs` of this error; with store=, the same call could go on with them."
            if store is None
            else f"They are kept in the store {store}, and the same call goes on with them."
        )
        text = f"max_seconds={limit:g} was over when {len(runs)} of {wanted} runs had finished{failed}: {why}.\n{kept}"
        return SimulationError(text, runs)

    def _continued(self, runs: Runs, rows: Array) -> Runs:
        """Simulate at the rows that are new since these runs.

        A round that begins badly is not the end of it, as long as half of all runs are well.
        """
        while True:
            ended = len(runs) + len(runs.failures)
            try:
                return self.run(rows, runs)
            except SimulationError as error:
                if error.runs is None or len(error.runs) + len(error.runs.failures) == ended:
                    raise
                if error.runs.failure_rate > _MOST_FAILED:
                    raise
                runs = error.runs
            if self.out_of_time:
                return runs

    def in_rounds(
        self,
        first: Callable[[int, int], Array],
        learn: Callable[[Runs, Array, float], tuple[Inference, Problem]],
        total: int,
        rounds: int,
        more: bool,
        stop: bool = False,
    ) -> tuple[Inference, Problem, Runs, int]:
        """Simulate and learn, then simulate about what was learned. Returns also how many runs follow the first design.

        Args:
            first: rows `start` to `stop` of the design of the first round.
            learn: makes an inference from runs, given the numbers of the runs at which further rounds begin, with the
                likelihood to a power that is one in the last round.
            total: runs in all.
            rounds: over how many rounds they are spread.
            more: whether to add to what is in the store, which then counts as the first round if there are several.
            stop: whether to leave the rest of the runs when a round has changed nothing.
        """
        kept, followed = self._kept(first) if more else (np.empty((0, self.prior.dimension)), 0)
        if more and rounds > 1:
            rows, edges = kept, np.linspace(len(kept), total, rounds)
        else:
            edges = self._edges(first, len(kept), total, rounds)
            rows = np.concatenate([kept, first(len(kept), int(edges[0].round()))])
            followed = len(rows) if followed == len(kept) else followed
        # of several rounds that are in the store already, the later ones count as one
        runs, starts = self.run(rows), [followed if more else len(rows)]
        self._refuse_few(runs, FEWEST, total)
        sizes = np.diff(edges.round().astype(int))
        found, problem = learn(runs, np.array(starts), _power(0, len(edges)))
        followed = int((runs.index < (followed if more else len(rows))).sum())
        for number, size in enumerate(sizes, start=1):
            if self.out_of_time or not size:
                break
            before, power = found if problem.power == 1.0 else None, _power(number, len(edges))
            starts += [len(rows)] if number > 1 or more else []
            rows = np.concatenate([rows, self._planned(found, len(rows), int(size), number)])
            runs = self._continued(runs, rows)
            found, problem = learn(runs, np.array(starts), power)
            if stop and before is not None and _settled(found, before):
                break
        if problem.power < 1.0:  # the time was over before the last round
            found, problem = learn(runs, np.array(starts), 1.0)
        return found, problem, runs, followed

    def _edges(self, first: Callable[[int, int], Array], begin: int, total: int, rounds: int) -> Array:
        """Numbers of runs (rounds,) at which rounds end; what a store holds of the first design is all of the first."""
        edges = np.linspace(begin, total, rounds + 1)[1:]
        held = self._held(first) if rounds > 1 else 0
        if held >= total:
            text = (
                f"the store holds {held:,} runs of one round already, so that rounds={rounds} changes nothing: ask for more "
                f"simulations than that, or add some by more=100, rounds={rounds}"
            )
            warn_user(text, SimulationWarning)
        return np.linspace(min(held, total), total, rounds) if held > edges[0].round() else edges

    def _planned(self, found: Inference, begin: int, size: int, number: int) -> Array:
        """Parameters of a further round; those that are in the store are taken from there, to the last digit."""
        known, rng = self._stored(), np.random.default_rng([self.seed, number])
        about = found.law.sample(size, rng) if self.prior.latent is None else found.law.propose(size, rng)
        rows = self.prior.from_gaussian(about)
        return np.array([known.get(begin + i, row) for i, row in enumerate(rows)])

    def seek(
        self,
        pose: Callable[[Runs], Problem],
        method: Callable[[Problem], Inference],
        total: int,
    ) -> tuple[Inference, Problem, Runs]:
        """A method that chooses where to simulate, from a first look at the simulator."""
        with self._asked() as run:
            search = Search(run, self.prior, total)
            first = search.first(self.seed)
            self._refuse_few(first, len(search.rows) - len(first.failures), total)
            problem = pose(first)
            problem.run = search
            try:
                found = method(problem)
            except ValueError as error:
                if search.short and self.out_of_time:
                    raise self._too_short(search.runs(), total, f"too few for this method: {error}") from None
                raise
        runs = search.runs()
        judge(runs)
        problem.theta, problem.outputs = runs.parameters, runs.outputs
        return found, problem, runs

    @contextmanager
    def _asked(self) -> Iterator[Callable[[Array, int], Runs]]:
        """A function that simulates at rows, the first of which is run number `start`; a store is opened once for all."""
        options = {k: v for k, v in self.options.items() if k != "max_seconds"}
        with running(self.simulator, self.prior.dimension, self.prior.names, self.seed, **options) as open_now:
            for note in open_now.notes:
                warn_user(note, SimulationWarning)

            def run(rows: Array, start: int) -> Runs:
                with self._explained(lambda: open_now.rows):
                    return open_now.add(rows, self._seconds_left())[0]

            yield run

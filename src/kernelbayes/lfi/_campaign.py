"""The runs behind an inference: where they are made first, where next, and what there is of them in a store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._typing import Array
from .._warning import warn_user
from ..simulation import Run, Runs, SimulationError, SimulationWarning, open_runs
from ..simulation._records import OtherDesign
from ..simulation._simulate import running, settled_seed, simulated
from ._prior import DESIGNS, Prior, read_prior
from ._problem import Inference

# A larger share of failed runs is the end of it.
_MOST_FAILED = 0.5


class Start(NamedTuple):
    """The first round of several: parameters (k, d), of which the first `followed` are those of the design, and how many
    runs each further round has."""

    rows: Array
    followed: int
    sizes: Array


class Campaign:
    """The runs of one simulator.

    Args:
        simulator: the function.
        prior: of its parameters.
        seed: of everything; None draws one. A store keeps its own.
        run: how it is run.
        proposal: another prior over the same parameters, for the first round.
        design: how the parameters of the first round follow it.
        progress: whether to show a bar.

    Attributes:
        seed: the seed in use.
        proposal: as a prior, or None.
    """

    def __init__(
        self,
        simulator: Callable[..., Any],
        prior: Prior,
        seed: int | None,
        run: Run,
        *,
        proposal: Any = None,
        design: str = "halton",
        progress: bool | None = None,
    ):
        self.simulator, self.prior, self.run, self._progress = simulator, prior, run, progress
        self.proposal = None if proposal is None else read_prior(proposal)
        if self.proposal is not None and self.proposal.names != prior.names:
            raise ValueError(f"proposal has parameters {self.proposal.names} where the prior has {prior.names}")
        self._kind = _check.option(design, "design", DESIGNS)
        drawn = int(np.random.default_rng().integers(2**31)) if seed is None else seed
        self.seed = settled_seed(run.store, drawn) if seed is None and run.store is not None else drawn
        self._retry_failed = run.retry_failed
        self._deadline = np.inf if run.max_seconds is None else time.monotonic() + run.max_seconds

    @property
    def out_of_time(self) -> bool:
        """Whether the limit of wall time has been reached."""
        return time.monotonic() >= self._deadline

    # -------------------------------------------------------------------------------------------- where to simulate

    def design(self, begin: int, end: int) -> Array:
        """Some rows of the unending design of the first round."""
        source = self.prior if self.proposal is None else self.proposal
        drawn = source.design(end - begin, self._kind, start=begin, random_state=self.seed)
        if self.proposal is not None and len(drawn) and not self.prior.contains(drawn).all():
            row = drawn[int((~self.prior.contains(drawn)).argmax())]
            raise ValueError(f"proposal draws parameters outside the support of the prior, such as {row}")
        return drawn

    def start(self, total: int, rounds: int, adding: bool) -> Start:
        """The first of some rounds; when adding to a store of which there are several, it is what is there."""
        rows, followed = self._kept() if adding else (np.empty((0, self.prior.dimension)), 0)
        if adding and rounds > 1:
            edges = np.linspace(len(rows), total, rounds)
        else:
            edges = self._edges(len(rows), total, rounds)
            new = self.design(len(rows), int(edges[0].round()))
            followed += len(new) if followed == len(rows) else 0
            rows = np.concatenate([rows, new])
        return Start(rows, followed, np.diff(edges.round().astype(int)))

    def about(self, found: Inference, begin: int, size: int, number: int) -> Array:
        """Parameters of a further round; those that are in the store are taken from there, to the last digit."""
        known, rng = self._stored(), np.random.default_rng([self.seed, number])
        about = found.law.sample(size, rng) if self.prior.latent is None else found.law.propose(size, rng)
        rows = self.prior.from_gaussian(about)
        return np.array([known.get(begin + i, row) for i, row in enumerate(rows)])

    def _edges(self, begin: int, total: int, rounds: int) -> Array:
        """Numbers of runs (rounds,) at which rounds end; what a store holds of the first design is all of the first."""
        edges = np.linspace(begin, total, rounds + 1)[1:]
        held = self._held() if rounds > 1 else 0
        if held >= total:
            text = (
                f"the store holds {held:,} runs of one round already, so that rounds={rounds} changes nothing: ask for more "
                f"simulations than that, or add some by more=100, rounds={rounds}"
            )
            warn_user(text, SimulationWarning)
        return np.linspace(min(held, total), total, rounds) if held > edges[0].round() else edges

    # ----------------------------------------------------------------------------------------------- what is there

    def _stored(self) -> dict[int, Array]:
        """Parameters of the runs in the store by their number."""
        store = self.run.store
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
            raise ValueError(
                "more adds to the runs of a store; pass run=kb.Run(store=...), and simulations= for the first time"
            )
        return max(known) + 1

    def _kept(self) -> tuple[Array, int]:
        """Parameters (k, d) of the runs in the store, and how many of them, from the start, are those of the design.

        A run that never ended, because its process was killed, is one of the design.
        """
        known = self._stored()
        design = self.design(0, max(known) + 1)
        rows = np.array([known.get(i, row) for i, row in enumerate(design)])
        same = np.isclose(rows, design, rtol=1e-9, atol=0.0).all(1)
        return rows, int(len(rows) if same.all() else same.argmin())

    def _held(self) -> int:
        """How many runs of the first design the store holds, up to the last: those under way may be of the next round."""
        known = self._stored()
        design = self.design(0, max(known, default=-1) + 1)
        others = [i for i, row in known.items() if not np.allclose(row, design[i], rtol=1e-9, atol=0.0)]
        return 1 + max((i for i in known if i < min(others, default=np.inf)), default=-1)

    # --------------------------------------------------------------------------------------------------- simulating

    def simulate(self, rows: Array, known: Runs | None = None) -> Runs:
        """The runs at rows, of which some may be in the store or, where there is none, `known`: run i has the same seed."""
        options = self._options()
        options["known"] = known if self.run.store is None else None
        self._retry_failed = False  # once is enough
        with self._explained(lambda: rows):
            return simulated(
                self.simulator,
                rows,
                self._seconds_left(),
                names=self.prior.names,
                random_state=self.seed,
                **options,
            )

    def go_on(self, runs: Runs, rows: Array) -> Runs:
        """Simulate at the rows that are new since these runs.

        A round that begins badly is not the end of it, as long as half of all runs are well.
        """
        while True:
            ended = len(runs) + len(runs.failures)
            try:
                return self.simulate(rows, runs)
            except SimulationError as error:
                if error.runs is None or len(error.runs) + len(error.runs.failures) == ended:
                    raise
                if error.runs.failure_rate > _MOST_FAILED:
                    raise
                runs = error.runs
            if self.out_of_time:
                return runs

    @contextmanager
    def opened(self) -> Iterator[Callable[[Array, int], Runs]]:
        """A function that simulates at rows, the first of which is run number `start`; a store is opened once for all."""
        with running(self.simulator, self.prior.dimension, self.prior.names, self.seed, **self._options()) as open_now:
            for note in open_now.notes:
                warn_user(note, SimulationWarning)

            def simulate(rows: Array, start: int) -> Runs:
                with self._explained(lambda: open_now.rows):
                    return open_now.add(rows, self._seconds_left())[0]

            yield simulate

    def _options(self) -> dict[str, Any]:
        return {**self.run.options(), "retry_failed": self._retry_failed, "progress": self._progress}

    def _seconds_left(self) -> float | None:
        return None if np.isinf(self._deadline) else max(self._deadline - time.monotonic(), 1e-3)

    # ---------------------------------------------------------------------------------------------- what to refuse

    @contextmanager
    def _explained(self, rows: Callable[[], Array]) -> Iterator[None]:
        """A store that holds other runs than these is refused in words of this call."""
        try:
            yield
        except OtherDesign:
            raise ValueError(self._otherwise_begun(rows())) from None

    def _otherwise_begun(self, rows: Array) -> str:
        known = self._stored()
        alike = [i not in known or np.allclose(known[i], row, rtol=1e-9, atol=0.0) for i, row in enumerate(rows)]
        same = alike.index(False)
        shared = (
            f"of which the first {same} are those of this call and the next is not" if same else "but not of this call"
        )
        return (
            f"store: {self.run.store} holds {len(known)} runs, {shared}: it was begun with other simulations= and "
            "rounds=, or with another method, prior, design or proposal. The call that it was begun with goes on with it; "
            "with the same method, more=100 adds 100 runs whatever there is (and more=100, rounds=2 adds them about the "
            "posterior); for anything else, use another store"
        )

    def refuse_few(self, runs: Runs, needed: int, wanted: int) -> None:
        """A limit of wall time that leaves too little to learn from."""
        if len(runs) >= needed or not self.out_of_time:
            return
        raise self.too_short(runs, wanted, f"at least {needed} are needed to learn from")

    def too_short(self, runs: Runs, wanted: int, why: str) -> SimulationError:
        """What to raise when the time was over before enough runs had finished."""
        failed = f" and {len(runs.failures)} failed" if runs.failures else ""
        limit, store = self.run.max_seconds, self.run.store
        kept = (
            "They are in the attribute `runs` of this error; with run=kb.Run(store=...), the same call could go on with "
            "them."
            if store is None
            else f"They are kept in the store {store}, and the same call goes on with them."
        )
        text = f"max_seconds={limit:g} was over when {len(runs)} of {wanted} runs had finished{failed}: {why}.\n{kept}"
        return SimulationError(text, runs)

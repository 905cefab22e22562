"""A simulation under way: the ledger, who does the work, and what a store remembers. Rows may be added as it goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import _check
from .._progress import progress_bar
from .._typing import Array, RandomState
from ._calling import Caller, can_alarm
from ._crews import Crew, Foreign, InProcess
from ._interrupts import Interrupts
from ._memory import Memory
from ._records import Book
from ._runs import FEWEST_TO_JUDGE, MOST_FAILED, SHARE_TO_WARN, Runs, SimulationError, StoreError, commonest
from ._session import BATCH, Session
from ._shipping import Portable
from ._signature import fingerprint, how_to_call
from ._state import carried

_MOST_NAMED = 6


@dataclass(frozen=True)
class Order:
    """The arguments of `simulate`, checked, but for the rows; `width` is the number of their columns."""

    simulator: Callable[..., Any]
    width: int
    names: tuple[str, ...] | None
    executor: Any
    store: Path | None
    timeout: float | None
    vectorised: bool
    pass_dict: bool | None
    random_state: RandomState
    progress: bool | None
    retry_failed: bool
    by_points: bool = False
    full: bool = False
    known: Runs | None = None


class Running:
    """One ledger and one crew for as long as it is open: a method that asks for one run at a time opens a store once.

    Attributes:
        notes: what is to be said about the store.
        batches: those of a vectorised simulator that failed as a whole, in words; their rows were run one by one.
    """

    def __init__(self, order: Order):
        self._order = order
        self._interrupts = Interrupts()
        self._block = BATCH if order.vectorised else 1
        self.batches: list[str] = []

    def __enter__(self) -> Running:
        order = self._order
        with self._interrupts, ExitStack() as opened:
            self._ledger = opened.enter_context(_book(order))
            # a store that was begun with batches as they came goes on with them
            begun = order.full if self._ledger.is_empty() else None
            self._full = bool(self._ledger.fact("full batches", begun))
            self._how = how_to_call(order.simulator, _agreed_names(self._ledger, order), order.width, order.pass_dict)
            entropy = _entropy(self._ledger, order.random_state)
            self.notes = _agree(self._ledger, order, self._how["names"])
            self._carried = carried(order.simulator) if order.store is not None else {}
            self.notes += _agree_on_state(self._ledger, order, self._carried)
            caller = Caller(
                Portable(order.simulator) if hasattr(order.executor, "submit") else order.simulator,
                **self._how,
                entropy=entropy,
                limit=order.timeout,
                vectorised=order.vectorised,
                by_points=order.by_points,
            )
            self._ledger.begin()
            if order.known is not None:
                self._ledger.take_over(order.known)
            self._crew = opened.enter_context(closing(_crew(order, caller, self._interrupts, self._block)))
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        if self._order.store is not None:
            self._note_what_varies()
        self._opened.__exit__(*error)

    def _note_what_varies(self) -> None:
        """What the runs themselves change, such as a list of calls, says nothing about a later simulator."""
        with suppress(StoreError), self._interrupts:
            now = carried(self._order.simulator)
            for name in _differing(self._carried, now):
                self._ledger.fact(f"varies {name}", True)

    @property
    def rows(self) -> Array:
        """All rows (n, d) that were added."""
        return self._ledger.rows

    def add(self, rows: Array, max_seconds: float | None = None) -> tuple[Runs, list[str]]:
        """Run further rows (k, d), those that are missing. Returns the runs of these, and what is to be said about them."""
        end = time.monotonic() + (np.inf if max_seconds is None else max_seconds)
        ledger, order = self._ledger, self._order
        with self._interrupts:
            # of what failed before; later rows of a search may depend on it, and it is known by then
            ledger.extend(rows, order.retry_failed and ledger.budget == 0)
            progress = order.progress if ledger.start == 0 else False  # a search has a bar of its own
            with progress_bar(ledger.budget, "simulating", progress, done=ledger.ended(), unit=" runs") as bar:
                session = Session(ledger, self._crew, self._interrupts, bar, self._block, end, self._full)
                try:
                    why = session.run()
                except SimulationError as error:
                    called = f"\nThe simulator was called with {_called(self._how)}." if error.runs is not None else ""
                    raise SimulationError(
                        f"{error}{_first(session.batches)}{called}\n{_kept(order)}", ledger.runs()
                    ) from error.__cause__
            runs = ledger.runs()
        notes = _judged(order, runs, why, len(rows), _first(session.batches))
        self.batches += session.batches
        ended = len(runs) + len(runs.failures)
        if why == "time" and ended < len(rows):
            stored = order.store is not None
            go_on = "the same call goes on with them" if stored else "with a store, a second call could go on"
            notes.insert(0, f"max_seconds: stopped with {ended} of {len(rows)} runs after {max_seconds:g} s; {go_on}")
        return runs, notes


def _book(order: Order) -> Book:
    if order.store is None:
        return Memory(order.width)
    from ._store import Ledger  # which brings SQLite with it

    return Ledger(order.store, order.width)


def _crew(order: Order, caller: Any, interrupts: Interrupts, block: int) -> Crew:
    row_bytes = 8 * order.width * block
    if order.executor is None and (order.timeout is None or can_alarm()):
        return InProcess(caller, interrupts)
    if order.executor is None or isinstance(order.executor, int):
        from ._processes import Processes

        return Processes(order.executor or 1, caller, row_bytes)
    return Foreign(order.executor, caller, row_bytes)


# ------------------------------------------------------------------------------------------- what the store remembers


def _agreed_names(ledger: Book, order: Order) -> tuple[str, ...] | None:
    width, known = ledger.fact("dimension"), ledger.fact("names")
    if width is not None and width != order.width:
        raise ValueError(f"parameters has {order.width} columns where the store {order.store} has {width}")
    if known is not None and order.names is not None and tuple(known) != order.names:
        raise ValueError(f"names are {list(order.names)} where the store {order.store} has {known}")
    return order.names or (None if known is None else tuple(known))


def _agree(ledger: Book, order: Order, names: tuple[str, ...] | None) -> list[str]:
    """Write down, or compare, what belongs to a store."""
    name, source = fingerprint(order.simulator)
    ledger.fact("dimension", order.width)
    ledger.fact("names", names)
    known = ledger.fact("simulator", name)
    if known.partition(":")[2] != name.partition(":")[2]:  # a module is "__main__" today and itself tomorrow
        raise ValueError(
            f"simulator is {name}, but the runs in the store {order.store} are of {known}; use a store for each simulator"
        )
    before = ledger.fact("source", source)
    same_python = source and before and source.split()[0] == before.split()[0]
    if same_python and before != source:
        return [
            f"the source of the simulator {name} has changed since the store {order.store} was begun; runs that are in it "
            "are kept as they are. If they are no longer right, use another store"
        ]
    return []


def _agree_on_state(ledger: Book, order: Order, now: dict[str, str]) -> list[str]:
    """Compare what the simulator carries along with what it did when the store was begun."""
    before = ledger.fact("state", now or None) or {}
    others = [name for name in _differing(before, now) if not ledger.fact(f"varies {name}")]
    if not others:
        return []
    return [
        f"what the simulator {fingerprint(order.simulator)[0]} carries along has changed since the store {order.store} was "
        f"begun ({', '.join(others[:_MOST_NAMED])}); runs that are in it are kept as they are. If they are no longer right, "
        "use another store"
    ]


def _differing(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def _entropy(ledger: Book, random_state: RandomState) -> int:
    """The seed of all runs: the store's, once it has one."""
    known = ledger.fact("entropy")
    given = isinstance(random_state, (int, np.integer))
    if given and random_state < 0:
        raise ValueError(f"random_state must not be negative, got {random_state}")
    if known is None:
        drawn = random_state if given else _check.generator(random_state).integers(2**63)
        known = ledger.fact("entropy", str(int(drawn)))
    if given and int(known) != random_state:
        raise ValueError(
            f"random_state is {random_state}, but the store {ledger.path} was begun with {known}; leave it out to go on"
        )
    return int(known)


# ------------------------------------------------------------------------------------------------ what is said at the end


def _first(batches: list[str]) -> str:
    return f"\nBefore that, {batches[0]}." if batches else ""


def _judged(order: Order, runs: Runs, why: str | None, wanted: int, before: str) -> list[str]:
    """Warnings; or an error where the result would be of no use."""
    ended = len(runs) + len(runs.failures)
    if why == "interrupted":
        if order.store is not None or not len(runs):
            raise KeyboardInterrupt
        notes = [f"interrupted: {len(runs)} of {wanted} runs have finished and are returned"]
    elif runs.failures and (not len(runs) or (ended >= FEWEST_TO_JUDGE and runs.failure_rate > MOST_FAILED)):
        again = " retry_failed=True runs them again." if order.store is not None else ""
        raise SimulationError(
            f"simulator: {len(runs.failures)} of {ended} runs failed. The commonest reasons:\n  {commonest(runs)}"
            f"{before}\n{_kept(order)}{again}",
            runs,
        )
    else:
        notes = []
    if runs.failure_rate > SHARE_TO_WARN:
        notes.append(f"{len(runs.failures)} of {ended} runs failed ({runs.failure_rate:.0%}):\n  {commonest(runs)}")
    return notes


def _kept(order: Order) -> str:
    if order.store is not None:
        return f"The runs that ended are in the store {order.store}."
    return "What did finish is in the attribute `runs` of this error."


def _called(how: dict[str, Any]) -> str:
    if how["style"] == "array":
        return "an array"
    keys = ", ".join(how["names"])
    return f"the keywords {keys}" if how["style"] == "keywords" else f"a dict of {keys} (pass_dict=False: an array)"

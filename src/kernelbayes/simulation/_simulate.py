"""Running a simulator at many parameters, so that nothing that has been computed is lost.

Not particular to simulators: any function that is expensive and is evaluated at the rows of a table.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike, RandomState
from ._runs import Runs, SimulationError, SimulationWarning, commonest
from ._signature import fingerprint, how_to_call

if TYPE_CHECKING:
    from ._crews import Crew
    from ._interrupts import Interrupts
    from ._store import Ledger

SHARE_TO_WARN = 0.05

#: `design(start, stop)` gives rows `start` to `stop` - 1 of a design, for designs that can be continued.
Design = Callable[[int, int], ArrayLike]


def simulate(
    simulator: Callable[..., Any],
    parameters: ArrayLike | Design,
    *,
    names: Sequence[str] | None = None,
    executor: Any = None,
    store: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    vectorised: bool = False,
    pass_dict: bool | None = None,
    random_state: RandomState = None,
    max_seconds: float | None = None,
    progress: bool | None = None,
    retry_failed: bool = False,
    budget: int | None = None,
) -> Runs:
    """Run a simulator once for every row of parameters; in parallel, resumable, with failures and time limits.

    How the simulator is called:

    - without `names`, with one array of d numbers: `simulator(row)`;
    - with `names` that are among its own arguments, with those: `simulator(growth=0.3, noise=1.2)`;
    - with other `names`, with one dict, `simulator({"growth": 0.3, "noise": 1.2})`, unless its argument is annotated as an
      array. `pass_dict=True` and `False` (a dict, an array) decide it whatever the names are.

    An argument called `rng` is given a NumPy generator of that run, one called `seed` or `random_state` a whole number. The
    global generators of NumPy and of `random` are seeded for each run too and put back afterwards, except among the threads
    of an executor. All of it depends on `random_state` and the number of the run only: one process or many, in one go or
    resumed, the outputs are the same.

    It returns a number, an array of any fixed shape, or a dict of numbers. A run that raises, takes too long, returns what
    is not finite or has another shape than most, or takes its process down with it, is left out and listed in
    `failures`.

    Args:
        simulator: the function.
        parameters: (n, d), or a function `design(start, stop)` that returns rows of a design that can be continued. Row i
            is run i for ever.
        names: of the d parameters.
        executor: None for this process; a whole number for so many processes of our own; or anything with the `submit` of
            `concurrent.futures`: pools of processes or threads, Dask's `client.get_executor()`, `mpi4py.futures`. Our own
            processes need no `if __name__ == "__main__"`; `ProcessPoolExecutor` does.
        store: path of a file in which every run is kept as it finishes. A second call goes on where the first was stopped,
            even by kill -9 (a power cut may cost the last moments); several processes may share it, on one machine:
            SQLite's locks are not for network drives.
        timeout: seconds for one run. Python code is interrupted; with processes of our own, code that never returns to
            Python is killed. In this process it is waited for, so use `executor=1` for such a simulator. With an executor
            of yours we stop waiting after about three times as long, but the run goes on there.
        vectorised: whether the simulator takes many rows at once, (m, d) or columns by name, and returns (m, ...). It is
            given batches that begin at multiples of 100, each with one generator. A batch that fails is run row by row.
        pass_dict: see above.
        random_state: seed; None draws one, and keeps it in the store.
        max_seconds: after which no more runs are started; those under way are waited for.
        progress: show a bar; None: on a terminal when it takes more than a moment.
        retry_failed: whether to run again those that failed in an earlier call.
        budget: how many runs there shall be in all, those in the store included; needed if `parameters` is a function.

    Returns:
        The runs that finished, below the budget; see `Runs`.

    Raises:
        SimulationError: when more than half fail (of at least 20), or none finishes.
        KeyboardInterrupt: after Ctrl-C, if there is a store. Without one, the finished runs are returned with a warning.
            A first Ctrl-C waits for the processes at work; a second does not.

    Example:
        >>> import numpy as np
        >>> from kernelbayes.simulation import simulate
        >>> def growth(rate, start, rng):
        ...     return {"end": start * np.exp(rate), "noisy": start * np.exp(rate) + rng.normal()}
        >>> rows = np.column_stack([np.linspace(0, 1, 5), np.full(5, 2.0)])
        >>> runs = simulate(growth, rows, names=["rate", "start"], random_state=0)
        >>> runs
        Runs(5 finished, none failed; parameters rate, start; statistics end, noisy)
        >>> runs.outputs[:, 0].round(2)
        array([2.  , 2.57, 3.3 , 4.23, 5.44])
    """
    rows = _design(simulator, parameters, budget)
    order = _Order(
        simulator,
        rows,
        _names(names, rows.shape[1]),
        _executor(executor),
        None if store is None else Path(store),
        None if timeout is None else _check.positive(timeout, "timeout"),
        _check.option(vectorised, "vectorised", (True, False)),
        _check.option(pass_dict, "pass_dict", (None, True, False)),
        random_state,
        None if max_seconds is None else _check.positive(max_seconds, "max_seconds"),
        progress,
        retry_failed,
    )
    runs, why, notes = _carry_out(order)
    for note in notes + _judge(order, runs, why):
        warnings.warn(note, SimulationWarning, stacklevel=2)
    return runs


def open_runs(store: str | os.PathLike[str]) -> Runs:
    """Read the runs of a store without running anything, also while others are adding to it.

    Example:
        >>> import tempfile
        >>> from kernelbayes.simulation import open_runs, simulate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = simulate(lambda x: x**2, [1.0, 2.0, 3.0], store=f"{folder}/runs.sqlite")
        ...     runs = open_runs(f"{folder}/runs.sqlite")
        >>> runs.outputs[:, 0]
        array([1., 4., 9.])
    """
    from ._store import read_store

    return read_store(Path(store))


def settled_seed(store: str | os.PathLike[str], seed: int) -> int:
    """The seed of a store, which is the one given if it has none yet: several processes that begin at once agree on it."""
    from ._store import Ledger

    with Ledger(Path(store), np.empty((0, 1))) as ledger:
        return int(ledger.fact("entropy", str(seed)))


@dataclass(frozen=True)
class _Order:
    """The arguments of `simulate`, checked."""

    simulator: Callable[..., Any]
    rows: Array
    names: tuple[str, ...] | None
    executor: Any
    store: Path | None
    timeout: float | None
    vectorised: bool
    pass_dict: bool | None
    random_state: RandomState
    max_seconds: float | None
    progress: bool | None
    retry_failed: bool


def _design(simulator: Any, parameters: Any, budget: int | None) -> Array:
    """All rows, below the budget."""
    if not callable(simulator):
        raise ValueError(f"simulator must be a function, got {type(simulator).__name__}")
    wanted = None if budget is None else _check.count(budget, "budget")
    if not callable(parameters):
        rows = _check.vectors(parameters, "parameters")
        if wanted is not None and wanted > len(rows):
            raise ValueError(
                f"budget is {wanted}, but parameters has {len(rows)} rows only; pass a function to continue them"
            )
        return rows[:wanted]
    if wanted is None:
        raise ValueError("budget must be given when parameters is a function: how many runs shall there be in all?")
    rows = _check.vectors(parameters(0, wanted), "parameters(start, stop)")
    if len(rows) != wanted:
        raise ValueError(f"parameters(0, {wanted}) returned {len(rows)} rows where {wanted} were wanted")
    return rows


def _names(names: Any, width: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be a list of words, one for each parameter, got {names!r}")
    if len(names) != width or len(set(names)) != width:
        raise ValueError(f"names must be {width} different words, one for each column of parameters, got {list(names)}")
    return tuple(names)


def _executor(executor: Any) -> Any:
    if executor is None or callable(getattr(executor, "submit", None)):
        return executor
    if isinstance(executor, bool) or not isinstance(executor, (int, np.integer)) or executor < 1:
        raise ValueError(
            "executor must be None, a whole number of processes (at least 1), or an executor with a submit method, "
            f"got {executor!r}"
        )
    return int(executor)


def _carry_out(order: _Order) -> tuple[Runs, str | None, list[str]]:
    """Do what is missing. Returns all runs, why it stopped early, and what is to be said about it."""
    from ._calling import Caller
    from ._interrupts import Interrupts
    from ._session import BATCH, Session, progress_bar
    from ._shipping import Portable
    from ._store import Ledger

    with Ledger(order.store, order.rows) as ledger, Interrupts() as interrupts:
        start = time.monotonic()
        how = how_to_call(order.simulator, _agreed_names(ledger, order), order.rows.shape[1], order.pass_dict)
        entropy = _entropy(ledger, order.random_state)
        notes = _agree(ledger, order, how["names"])
        caller = Caller(
            Portable(order.simulator) if hasattr(order.executor, "submit") else order.simulator,
            **how,
            entropy=entropy,
            limit=order.timeout,
            vectorised=order.vectorised,
        )
        ledger.begin(order.retry_failed)
        block = BATCH if order.vectorised else 1
        end = start + (np.inf if order.max_seconds is None else order.max_seconds)
        crew = _crew(order, caller, interrupts, block)
        with closing(crew), progress_bar(len(order.rows), ledger.ended(), order.progress) as bar:
            try:
                why = Session(ledger, crew, interrupts, bar, block, end).run()
            except SimulationError as error:
                called = f"\nThe simulator was called with {_called(how)}." if error.runs is not None else ""
                raise SimulationError(f"{error}{called}\n{_kept(order)}", ledger.runs()) from error.__cause__
        return ledger.runs(), why, notes


def _crew(order: _Order, caller: Any, interrupts: Interrupts, block: int) -> Crew:
    from ._calling import can_alarm
    from ._crews import Foreign, InProcess

    row_bytes = order.rows[0].nbytes * block
    if order.executor is None and (order.timeout is None or can_alarm()):
        return InProcess(caller, interrupts)
    if order.executor is None or isinstance(order.executor, int):
        from ._processes import Processes

        return Processes(order.executor or 1, caller, row_bytes)
    return Foreign(order.executor, caller, row_bytes)


# ------------------------------------------------------------------------------------------- what the store remembers


def _agreed_names(ledger: Ledger, order: _Order) -> tuple[str, ...] | None:
    width, known = ledger.fact("dimension"), ledger.fact("names")
    if width is not None and width != order.rows.shape[1]:
        raise ValueError(f"parameters has {order.rows.shape[1]} columns where the store {order.store} has {width}")
    if known is not None and order.names is not None and tuple(known) != order.names:
        raise ValueError(f"names are {list(order.names)} where the store {order.store} has {known}")
    return order.names or (None if known is None else tuple(known))


def _agree(ledger: Ledger, order: _Order, names: tuple[str, ...] | None) -> list[str]:
    """Write down, or compare, what belongs to a store."""
    name, source = fingerprint(order.simulator)
    ledger.fact("dimension", order.rows.shape[1])
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


def _entropy(ledger: Ledger, random_state: RandomState) -> int:
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


def _judge(order: _Order, runs: Runs, why: str | None) -> list[str]:
    """Warnings; or an error where the result would be of no use."""
    from ._session import FEWEST_TO_JUDGE, MOST_FAILED

    ended, wanted, notes = len(runs) + len(runs.failures), len(order.rows), []
    if why == "interrupted":
        if order.store is not None or not len(runs):
            raise KeyboardInterrupt
        notes.append(f"interrupted: {len(runs)} of {wanted} runs have finished and are returned")
    elif runs.failures and (not len(runs) or (ended >= FEWEST_TO_JUDGE and runs.failure_rate > MOST_FAILED)):
        again = " retry_failed=True runs them again." if order.store is not None else ""
        raise SimulationError(
            f"simulator: {len(runs.failures)} of {ended} runs failed. The commonest reasons:\n  {commonest(runs)}\n"
            f"{_kept(order)}{again}",
            runs,
        )
    if why == "time":
        go_on = (
            "the same call goes on with them" if order.store is not None else "with a store, a second call could go on"
        )
        notes.append(f"max_seconds: stopped with {ended} of {wanted} runs after {order.max_seconds:g} s; {go_on}")
    if runs.failure_rate > SHARE_TO_WARN:
        notes.append(f"{len(runs.failures)} of {ended} runs failed ({runs.failure_rate:.0%}):\n  {commonest(runs)}")
    return notes


def _kept(order: _Order) -> str:
    if order.store is not None:
        return f"The runs that ended are in the store {order.store}."
    return "What did finish is in the attribute `runs` of this error."


def _called(how: dict[str, Any]) -> str:
    if how["style"] == "array":
        return "an array"
    keys = ", ".join(how["names"])
    return f"the keywords {keys}" if how["style"] == "keywords" else f"a dict of {keys} (pass_dict=False: an array)"

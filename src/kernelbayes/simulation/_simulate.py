"""Running a simulator at many parameters, so that nothing that has been computed is lost.

Not particular to simulators: any function that is expensive and is evaluated at the rows of a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike, RandomState
from .._warning import warn_user
from ._runs import Runs, SimulationWarning

if TYPE_CHECKING:
    from ._running import Running

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
    max_seconds: float | None = None,
    retry_failed: bool = False,
    budget: int | None = None,
    progress: bool | None = None,
    random_state: RandomState = None,
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
            is run i for ever. A data frame is read by the names of its columns.
        names: of the d parameters; by default those of a data frame, in the order of its columns. A simulator whose
            arguments are not called so is then still called with an array.
        executor: None for this process; a whole number for so many processes of our own; or anything with the `submit` of
            `concurrent.futures`: pools of processes or threads, Dask's `client.get_executor()`, `mpi4py.futures`. Our own
            processes need no `if __name__ == "__main__"`; `ProcessPoolExecutor` does.
        store: path of a file in which every run is kept as it finishes. A second call goes on where the first was stopped,
            even by kill -9 (a power cut may cost the last moments); several processes may share it, on one machine:
            SQLite's locks are not for network drives. Checksums tell when the file has changed on the disk; see
            `check_store`. A warning says where the code of the simulator, or what it carries
            along (arguments of a partial, cells of a closure, attributes, defaults, numbers it finds in its module), has
            changed since the store was begun; what the runs themselves change is not compared.
        timeout: seconds for one run. Python code is interrupted; with processes of our own, code that never returns to
            Python is killed. In this process it is waited for, so use `executor=1` for such a simulator. With an executor
            of yours we stop waiting after about three times as long, but the run goes on there.
        vectorised: whether the simulator takes many rows at once, (m, d) or columns by name, and returns (m, ...). It is
            given batches of 100 rows that begin at multiples of 100, each with one generator; the last is filled up with
            copies of its last row, whose outputs are dropped. So what run i returns does not depend on how many runs there
            are, nor on where they were stopped: a batch of which some runs are missing is run whole, and those that are
            there stay as they are. A batch that fails is run row by row.
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
        StoreError: when the store is damaged, or cannot be written. What was written before is kept.
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
    limit = None if max_seconds is None else _check.positive(max_seconds, "max_seconds")
    given, name = _design(simulator, parameters, budget)
    rows, own = _check.vectors(given, name), _check.own_names(given)
    if own is not None and names is not None:
        rows = _check.vectors(_check.by_name(given, _names(names, rows.shape[1]), name), name)
    elif own is not None:  # they name the runs, and what is called with an array goes on to be
        from ._signature import takes_keywords

        names = own
        pass_dict = False if pass_dict is None and not takes_keywords(simulator, own) else pass_dict
    options = {"executor": executor, "store": store, "timeout": timeout, "vectorised": vectorised}
    options |= {"pass_dict": pass_dict, "progress": progress, "retry_failed": retry_failed}
    return simulated(simulator, rows, limit, names=names, random_state=random_state, **options)


def simulated(
    simulator: Callable[..., Any], rows: Array, limit: float | None, *, names: Any, random_state: Any, **options: Any
) -> Runs:
    """What `simulate` returns for rows (n, d), of which without a store some may be `known` (`Runs`)."""
    with running(simulator, rows.shape[1], names, random_state, full=True, **options) as open_now:
        runs, notes = open_now.add(rows, limit)
    for note in open_now.notes + notes:
        warn_user(note, SimulationWarning)
    return runs


def running(
    simulator: Callable[..., Any],
    width: int,
    names: Sequence[str] | None,
    random_state: RandomState,
    *,
    executor: Any = None,
    store: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    vectorised: bool = False,
    pass_dict: bool | None = None,
    progress: bool | None = None,
    retry_failed: bool = False,
    by_points: bool = False,
    full: bool = False,
    known: Runs | None = None,
) -> Running:
    """A simulation to which rows of `width` parameters are added as it goes; see `simulate` for the arguments.

    With `by_points`, a function that proves to take no arrays is called with each row by itself. Batches for a vectorised
    one are of the rows that are added together, or with `full` always of one size. `known` are runs made before.
    """
    from ._running import Order, Running

    order = Order(
        simulator,
        width,
        _names(names, width),
        read_executor(executor),
        store_path(store),
        None if timeout is None else _check.positive(timeout, "timeout"),
        _check.option(vectorised, "vectorised", (True, False)),
        _check.option(pass_dict, "pass_dict", (None, True, False)),
        random_state,
        progress,
        retry_failed,
        by_points,
        full,
        known,
    )
    return Running(order)


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

    return read_store(Path(store).absolute())


def settled_seed(store: str | os.PathLike[str], seed: int) -> int:
    """The seed of a store, which is the one given if it has none yet: several processes that begin at once agree on it."""
    from ._store import Ledger

    path = store_path(store)
    assert path is not None
    with Ledger(path, 1) as ledger:
        return int(ledger.fact("entropy", str(seed)))


def store_path(store: str | os.PathLike[str] | None) -> Path | None:
    """Where a store is, whatever folder a simulator changes to."""
    if store is None:
        return None
    if os.fspath(store) in ("", ":memory:"):
        raise ValueError(
            f"store is {os.fspath(store)!r}, which would keep nothing: give the path of a file such as 'runs.sqlite', or "
            "leave it out"
        )
    return Path(store).absolute()


def _design(simulator: Any, parameters: Any, budget: int | None) -> tuple[Any, str]:
    """All rows, below the budget, as they were given, and what they are called."""
    if not callable(simulator):
        raise ValueError(f"simulator must be a function, got {type(simulator).__name__}")
    wanted = None if budget is None else _check.count(budget, "budget")
    if not callable(parameters):
        rows = _check.vectors(parameters, "parameters")
        if wanted is not None and wanted > len(rows):
            raise ValueError(
                f"budget is {wanted}, but parameters has {len(rows)} rows only; pass a function to continue them"
            )
        return (rows if _check.own_names(parameters) is None else parameters)[:wanted], "parameters"
    if wanted is None:
        raise ValueError("budget must be given when parameters is a function: how many runs shall there be in all?")
    given = parameters(0, wanted)
    rows = _check.vectors(given, "parameters(start, stop)")
    if len(rows) != wanted:
        raise ValueError(f"parameters(0, {wanted}) returned {len(rows)} rows where {wanted} were wanted")
    return given, "parameters(start, stop)"


def _names(names: Any, width: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"names must be a list of words, one for each parameter, got {names!r}")
    if len(names) != width or len(set(names)) != width:
        raise ValueError(f"names must be {width} different words, one for each column of parameters, got {list(names)}")
    return tuple(names)


def read_executor(executor: Any) -> Any:
    """None, a whole number of processes, or what has a `submit`."""
    if executor is None or callable(getattr(executor, "submit", None)):
        return executor
    if isinstance(executor, bool) or not isinstance(executor, (int, np.integer)) or executor < 1:
        raise ValueError(
            "executor must be None, a whole number of processes (at least 1), or an executor with a submit method, "
            f"got {executor!r}"
        )
    return int(executor)

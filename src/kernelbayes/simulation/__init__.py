"""Expensive functions at many parameters: in parallel, resumable, with failures and time limits.

    simulate    runs a simulator at every row of a design      -> Runs
    open_runs   reads the runs of a store                       -> Runs
    check_store, repair_store    what is lost of a damaged store, and keeping the rest    -> StoreReport

A design is a table, or a function that continues it; row i is run i for ever. A `Book` (`_records.py`) knows what is done:
in memory (`_memory.py`) or, with who does what, in one SQLite file (`_store.py`). A crew does the work: this process or
somebody's executor (`_crews.py`), or processes of our own (`_processes.py`, `_worker.py`). `_session.py` is the loop between
them, `_running.py` holds all three open while rows are added; `_calling.py` is one run. `_layout.py` is the file of a store,
with checksums (`_checksums.py`); `_repair.py` reads a damaged one, off its pages (`_pages.py`) if need be.
"""

from ._report import StoreReport, check_store, repair_store
from ._run import Run
from ._runs import Failure, Runs, SimulationError, SimulationWarning, StoreError
from ._simulate import open_runs, simulate

__all__ = [
    "Failure",
    "Run",
    "Runs",
    "SimulationError",
    "SimulationWarning",
    "StoreError",
    "StoreReport",
    "check_store",
    "open_runs",
    "repair_store",
    "simulate",
]

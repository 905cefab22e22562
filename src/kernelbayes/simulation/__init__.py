"""Expensive functions at many parameters: in parallel, resumable, with failures and time limits.

    simulate    runs a simulator at every row of a design      -> Runs
    open_runs   reads the runs of a store                       -> Runs

A design is a table, or a function that continues it; row i is run i for ever. The `Ledger` (`_store.py`) knows what is done
and who does what, in one SQLite file or in memory. A crew does the work: this process or somebody's executor
(`_crews.py`), or processes of our own (`_processes.py`, `_worker.py`). `_session.py` is the loop between them,
`_running.py` holds all three open while rows are added; `_calling.py` is one run.
"""

from ._runs import Failure, Runs, SimulationError, SimulationWarning
from ._simulate import open_runs, simulate

__all__ = ["Failure", "Runs", "SimulationError", "SimulationWarning", "open_runs", "simulate"]

"""Simulation: what parallel work gains, and what keeping every run costs."""

from __future__ import annotations

import functools
import os
import tempfile
import time

from benchmarks._row import Row, at_most, ratio


def ten_milliseconds(row):
    """Work that keeps a core busy, in time of its own: what else the machine does slows it, but does not shorten it."""
    end = time.process_time() + 0.01
    while time.process_time() < end:
        pass
    return row.sum()


def nothing(row):
    return row[0]


def _all_cores():
    """A contender is pinned to one core; this is about more than one."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def _timed(simulator, runs, **settings):
    import numpy as np

    from kernelbayes.simulation import simulate

    start = time.perf_counter()
    found = simulate(simulator, np.arange(float(runs)), random_state=0, progress=False, **settings)
    seconds = time.perf_counter() - start
    assert len(found) == runs
    return seconds


def simulated(runs, **settings):
    _all_cores()
    seconds = _timed(ten_milliseconds, runs, **settings)
    return {"seconds": seconds, "first": seconds}


def simulate_stored(runs):
    """Runs that take no time: all of it is ours."""
    without = min(_timed(nothing, runs) for _ in range(3))
    seconds = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            seconds.append(_timed(nothing, runs, store=f"{folder}/runs.sqlite"))
    stored = min(seconds)
    quality = {"ms a run": 1e3 * stored / runs, "ms without a store": 1e3 * without / runs}
    return {"seconds": stored, "first": seconds[0], "quality": quality}


ROWS = (
    Row(
        "simulate",
        "Simulation: {runs:,} runs of 10 ms on two processes",
        functools.partial(simulated, executor=2),
        simulated,
        "ours, in one process",
        (ratio(1.8),),
        why="two processes can gain no more than the machine has free: on an idle one what is lost is the start of the "
        "processes, and longer or more runs would meet it",
        sizes={"runs": 1000},
        quick={"runs": 100},
    ),
    Row(
        "simulate-store",
        "Simulation: {runs:,} runs of no time at all, each kept in a store",
        simulate_stored,
        asked=(at_most("ms a run", 1),),
        why="runs are written in groups, and a slow disk makes each group wait; a faster disk would meet it",
        sizes={"runs": 5000},
        quick={"runs": 300},
    ),
)

"""Contenders and rows of `run.py` for simulation: what parallel work gains, and what keeping every run costs."""

from __future__ import annotations

import os
import tempfile
import time

RUNS = 1000


def ten_milliseconds(row):
    """Work that keeps a core busy, in time of its own: what else the machine does slows it, but does not shorten it."""
    end = time.process_time() + 0.01
    while time.process_time() < end:
        pass
    return row.sum()


def nothing(row):
    return row[0]


def _all_cores():
    """run.py pins a contender to one core; this is about more than one."""
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


def simulate_two():
    _all_cores()
    seconds = _timed(ten_milliseconds, RUNS, executor=2)
    return {"seconds": seconds, "first": seconds}


def simulate_one():
    _all_cores()
    seconds = _timed(ten_milliseconds, RUNS)
    return {"seconds": seconds, "first": seconds}


def simulate_stored():
    """5,000 runs that take no time: all of it is ours."""
    runs = 5 * RUNS
    without = min(_timed(nothing, runs) for _ in range(3))
    seconds = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            seconds.append(_timed(nothing, runs, store=f"{folder}/runs.sqlite"))
    stored = min(seconds)
    text = f"microseconds a run: {1e6 * stored / runs:.0f} with a store, {1e6 * without / runs:.0f} without"
    return {"seconds": stored, "first": seconds[0], "also": text}


#: title, ours, the peer or None, what the peer is, what is asked of us
BENCHMARKS = {
    "simulate": (
        "Simulation: 1,000 runs of 10 ms on two processes",
        "simulate_two",
        "simulate_one",
        "ours, in one process",
        "ratio of at least 1.8",
    ),
    "simulate-store": (
        "Simulation: 5,000 runs of no time at all, each kept in a store",
        "simulate_stored",
        None,
        "",
        "under 1 ms a run",
    ),
}

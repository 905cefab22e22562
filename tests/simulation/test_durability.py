"""Processes that are killed, interrupted, or share a store: each in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from simulators import Noted, read_notes

import kernelbayes
from kernelbayes.simulation import SimulationWarning, open_runs, simulate
from kernelbayes.simulation._owners import _is_running

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as tests use them")

# The simulation package alone, as the whole library takes seconds to import.
SCRIPT = """
import signal, sys, types
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are started without it
sys.path.insert(0, {here!r})
sys.modules["kernelbayes"] = types.ModuleType("kernelbayes")
sys.modules["kernelbayes"].__path__ = [{package!r}]
import numpy as np
from simulators import Noted
from kernelbayes.simulation import simulate

folder, number, executor, store, seconds = sys.argv[1], *map(eval, sys.argv[2:])
try:
    runs = simulate(Noted(folder + "/notes", seconds), np.arange(float(number)), executor=executor, random_state=3,
                    store=folder + "/runs.sqlite" if store else None)
    print("returned", len(runs))
except KeyboardInterrupt:
    print("interrupted")
"""


def start(folder, number, executor, store=True, seconds=0.02):
    script = SCRIPT.format(here=str(Path(__file__).parent), package=kernelbayes.__path__[0])
    arguments = [sys.executable, "-c", script, str(folder), *map(repr, (number, executor, store, seconds))]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(folder, runs, process):
    """Until so many runs have begun; and if they never do, say what the process said."""
    for _ in range(6000):
        if len(read_notes(folder / "notes")) >= runs:
            return
        if process.poll() is not None:
            break
        time.sleep(0.01)
    process.kill()
    raise AssertionError(f"the runs did not begin: {process.communicate()[1]}")


@pytest.mark.parametrize("executor", [None, 2])
def test_killed_and_resumed(tmp_path, executor):
    first = start(tmp_path, 60, executor)
    wait_for(tmp_path, 25, first)
    first.kill()
    first.communicate()
    kept = open_runs(tmp_path / "runs.sqlite")
    before = read_notes(tmp_path / "notes")
    # All that had begun but the last are there; if the parent had no time, but what its workers held, a tenth of a second's.
    unkept = 2 if executor is None else 7 * executor
    assert 25 - unkept <= len(kept) < 60
    assert len(before) - len(kept) <= unkept
    time.sleep(0.1)  # a worker may be at the end of its last run
    quick = Noted(tmp_path / "notes", 0.0)
    with pytest.warns(SimulationWarning, match=r"\(seconds\)"):  # the store was begun by a slower one
        runs = simulate(quick, np.arange(60.0), store=tmp_path / "runs.sqlite", executor=executor)
    times = Counter(read_notes(tmp_path / "notes"))
    assert all(times[i] == 1 for i in kept.index)
    assert set(times) == set(range(60))
    assert sum(times.values()) <= 60 + unkept
    alone = simulate(Noted(tmp_path / "again"), np.arange(60.0), random_state=3)
    np.testing.assert_array_equal(runs.outputs, alone.outputs)


def test_two_processes_share_the_work(tmp_path):
    both = [start(tmp_path, 150, executor) for executor in (None, 1)]
    said = [process.communicate(timeout=120)[0].strip() for process in both]
    assert said == ["returned 150"] * 2
    assert sorted(read_notes(tmp_path / "notes")) == list(range(150))


def test_workers_end_when_their_parent_is_killed(tmp_path):
    parent = start(tmp_path, 1, 1, seconds=60.0)
    try:
        wait_for(tmp_path, 1, parent)
    finally:
        parent.kill()
        parent.communicate()
    worker = int((tmp_path / "notes.pid").read_text())
    for _ in range(1000):
        if not _is_running(worker, ""):
            return
        time.sleep(0.01)
    raise AssertionError("the worker goes on without its parent")


@pytest.mark.parametrize(
    ("executor", "store", "said"),
    [(None, True, "interrupted"), (2, True, "interrupted"), (None, False, "returned"), (2, False, "returned")],
)
def test_interrupted(tmp_path, executor, store, said):
    process = start(tmp_path, 2000, executor, store)
    wait_for(tmp_path, 20, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    notes = read_notes(tmp_path / "notes")
    assert out.startswith(said), err
    assert 20 <= len(notes) < 2000
    finished = len(open_runs(tmp_path / "runs.sqlite")) if store else int(out.split()[1])
    assert len(notes) - (executor is None) <= finished <= len(notes)
    assert store or "interrupted: " in err


def test_a_second_interrupt_waits_for_nobody(tmp_path):
    process = start(tmp_path, 10, 2, seconds=30.0)
    wait_for(tmp_path, 2, process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None  # it waits for two runs
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=10)[0].strip() == "interrupted"


def test_a_script_needs_no_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nfrom kernelbayes.simulation import simulate\n\n"
        "def simulator(x):\n    return helper(x[0])\n\ndef helper(x):\n    return x + 1\n\n"
        "print(simulate(simulator, np.arange(6.0), executor=2).outputs.sum())\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["21.0"]
    assert done.stderr == ""

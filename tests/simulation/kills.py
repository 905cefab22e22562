"""Processes that share a store and their workers are killed at random moments, again and again.

    python tests/simulation/kills.py 1000      # so many kills, with a table of what came of them

Nothing that is in the store may be lost, or run again, and the numbers are those of an uninterrupted call.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from simulators import Noted, read_notes
from test_durability import start

from kernelbayes.simulation import check_store, open_runs, simulate

RUNS, SECONDS = 800, 0.01


def children(pid):
    """Processes that a process has started."""
    table = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return [int(a) for a, b in map(str.split, table.splitlines()) if int(b) == pid]


def kill(pid):
    """Whether there was such a process."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Round:
    """One store from its first run to its last, under so many kills; processes live so many seconds, on average."""

    def __init__(self, folder, kills, rng, came, runs=RUNS, pause=0.15, life=2.0):
        self.folder, self.rng, self.came, self.pause, self.life, self.runs = folder, rng, came, pause, life, runs
        self.store, self.notes = folder / "runs.sqlite", folder / "notes"
        self.kills, self.killed, self.snapshots, self.most = kills, 0, [], 0
        self.due, self.spared = {}, {}

    def run(self):
        at_once = int(self.rng.integers(1, 4))
        processes = [self.begin() for _ in range(at_once)]
        while self.killed < self.kills and any(p.poll() is None for p in processes):
            time.sleep(self.rng.exponential(self.pause))
            self.kill_one(processes[self.rng.integers(at_once)])
            if self.store.exists() and self.rng.random() < 0.3:
                self.look()
            processes = [self.renewed(p) for p in processes]
        for process in processes:
            self.end(process)
        self.verify()

    def begin(self):
        executor = [None, 1, 2][self.rng.integers(3)]
        # with a process go the run that it does, or those that its workers have done and not yet handed over
        self.most = max(self.most, 1 if executor is None else 16 * executor)
        process = start(self.folder, self.runs, executor, seconds=SECONDS)
        self.due[process] = time.monotonic() + self.rng.exponential(self.life)
        return process

    def kill_one(self, process):
        """The process, if it has lived long enough to have done something, else one of its workers."""
        if process.poll() is not None:
            return
        now = time.monotonic()
        due = now > self.due[process]
        victims = [process.pid] if due else children(process.pid) if now > self.spared.get(process, 0.0) else []
        self.spared[process] = now + self.rng.exponential(0.4)  # or none of its workers would ever be ready
        if victims and kill(int(self.rng.choice(victims))):
            self.came["kills of a process" if due else "kills of a worker"] += 1
            self.killed += 1

    def renewed(self, process):
        """The process, or one in its place if it was killed."""
        if process.poll() is None or process.returncode != -signal.SIGKILL:
            return process
        process.communicate()
        return self.begin()

    def end(self, process):
        out, err = process.communicate(timeout=300)
        if process.returncode == -signal.SIGKILL:
            return
        assert process.returncode == 0, err
        assert out.startswith("returned"), out + err

    def look(self):
        """What is recorded now, and how much had been noted by then."""
        try:
            runs = open_runs(self.store)
        except ValueError as error:
            if "is empty" in str(error):  # killed before it wrote a word
                return
            raise
        if len(runs):
            self.snapshots.append((runs, len(read_notes(self.notes))))

    def verify(self):
        rows, simulator = np.arange(float(self.runs)), Noted(self.notes, SECONDS)
        report = check_store(self.store) if self.store.exists() else None
        assert report is None or report.ok, report
        runs = simulate(simulator, rows, store=self.store, random_state=3, retry_failed=True, progress=False)
        alone = simulate(lambda row, rng: [row[0] ** 2, rng.normal()], rows, random_state=3, progress=False)
        np.testing.assert_array_equal(runs.outputs, alone.outputs)
        begun = read_notes(self.notes)
        for before, noted in self.snapshots:
            assert set(before.index) <= set(runs.index), "a run was lost"
            np.testing.assert_array_equal(before.outputs, runs.outputs[before.index])
            np.testing.assert_array_equal(before.seconds, runs.seconds[before.index])  # the same run, not another
            repeated = set(begun[noted:]) & set(before.index)
            assert not repeated, f"runs {repeated} were in the store and were run again"
        self.came["runs"] += self.runs
        self.came["looks at the store, nothing lost or repeated"] += len(self.snapshots)
        self.came["runs that were cut off, and begun again"] += len(begun) - self.runs
        assert len(begun) - self.runs <= self.most * (self.killed + 1)


def try_kills(folder, number, seed=0, per_round=40, tell=lambda text: None, **how):
    """What came of so many kills, on as many stores as it takes."""
    rng, came, killed = np.random.default_rng(seed), Counter(), 0
    while killed < number:
        place = folder / f"round{came['stores']}"
        place.mkdir()
        attempt = Round(place, min(per_round, number - killed), rng, came, **how)
        attempt.run()
        killed += attempt.killed
        came["stores"] += 1
        tell(f"{killed} kills")
        shutil.rmtree(place)
    return came


def main():
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    folder, begun = Path(tempfile.mkdtemp()), time.monotonic()
    try:
        for what, times in try_kills(
            folder, number, seed=number, tell=lambda text: print(text, file=sys.stderr)
        ).items():
            print(f"{times:6d}  {what}")
        print(f"{time.monotonic() - begun:.0f} s")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

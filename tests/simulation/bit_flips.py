"""Single bits of a store that change on the disk: each must be noticed, or touch bytes that hold nothing.

    python tests/simulation/bit_flips.py 1000      # so many flips, with a table of what came of them

For each flip: `check_store` reports it, or all that SQL can read of the file is as it was; no call returns another number
than before; and what `repair_store` keeps is right to the last bit.
"""

import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np

from kernelbayes.simulation import StoreError, check_store, open_runs, repair_store, simulate

NAMES = ["rate", "start"]


def decay(rate, start, rng):
    if rate > 1.9:
        raise ArithmeticError(f"no convergence at {rate:.3f}")
    series = start * np.exp(-rate * np.arange(6.0)) + rng.normal(size=6)
    return {f"x{i}": value for i, value in enumerate(series)}


def design(n):
    return np.random.default_rng(0).uniform([0, 50], [2, 100], size=(n, 2))


def run(store, n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of failures, which there are
        return simulate(decay, design(n), names=NAMES, store=store, random_state=5, progress=False)


def content(store):
    """All that SQL can read of a file."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        settings = [db.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version", "encoding")]
        return settings, list(db.iterdump())


def same(a, b, runs=None):
    """Whether runs are the same, to the last bit; if `runs` is given, those of them that `a` has."""
    keep = np.isin(b.index, a.index) if runs else slice(None)
    failed = {f.index: f for f in b.failures}
    return (
        a.names == b.names
        and a.statistics == b.statistics
        and np.array_equal(a.index, b.index[keep])
        and all(np.array_equal(getattr(a, x), getattr(b, x)[keep]) for x in ("parameters", "outputs", "seconds"))
        and all(f.reason == failed[f.index].reason and f.kind == failed[f.index].kind for f in a.failures)
        and (runs or len(a.failures) == len(failed))
    )


def flipped(source, target, place, bit):
    data = bytearray(source.read_bytes())
    data[place] ^= 1 << bit
    target.write_bytes(data)


def try_flips(folder, number, n=300, seed=0):
    """What came of each of so many flips. Raises AssertionError if one is neither noticed nor harmless."""
    source, store = folder / "source.sqlite", folder / "runs.sqlite"
    before, more = run(source, n), run(None, n + 5)
    known, size = content(source), source.stat().st_size
    rng, came = np.random.default_rng(seed), Counter()
    for place, bit in zip(rng.integers(size, size=number).tolist(), rng.integers(8, size=number).tolist(), strict=True):
        said = f"bit {bit} of byte {place}"
        flipped(source, store, place, bit)
        report = check_store(store)
        came["reported by check" if not report.ok else "in bytes that hold nothing"] += 1
        if report.ok:
            assert content(store) == known, f"{said} is not reported"
        try:
            assert same(open_runs(store), before), f"{said}: open_runs returns other numbers"
            came["opened with the same numbers"] += 1
        except (StoreError, ValueError):
            came["refused by open_runs"] += 1
            assert not report.ok, f"{said}: check finds nothing, but it cannot be opened"
        try:
            after = run(store, n + 5)
            assert np.array_equal(after.outputs, more.outputs), f"{said}: simulate returns other numbers"
            came["gone on with the same numbers"] += 1
        except (StoreError, ValueError):
            came["refused by simulate"] += 1
        if not report.ok:
            flipped(source, store, place, bit)
            mended = repair_store(store)
            assert check_store(store).ok, f"{said}: damaged after repair"
            assert same(open_runs(store), before, runs=True), f"{said}: repair keeps wrong numbers"
            lost = n - mended.runs
            # nobody knows of the last one, and a number itself may be wrong
            assert lost - 1 <= len(mended.lost) <= lost + 1 <= 2, f"{said}: {mended}"
            came["runs lost after repair"] += lost
            came["repaired without a loss"] += not lost
            assert np.array_equal(run(store, n + 5).outputs, more.outputs), f"{said}: repaired, but other numbers"
            Path(mended.backup).unlink()
        for name in ("runs.sqlite", "runs.sqlite-wal", "runs.sqlite-shm"):
            (folder / name).unlink(missing_ok=True)
    return came


def main():
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    folder = Path(tempfile.mkdtemp())
    try:
        for what, times in try_flips(folder, number, n=1500, seed=number).items():
            print(f"{times:6d}  {what}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

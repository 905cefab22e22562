"""What goes wrong outside of a simulator: workers that die, disks that are full, files that cannot be written."""

import os
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest
from simulators import DiesAtFirst, leaves_a_child, leaves_a_daemon, noisy

from kernelbayes.simulation import (
    SimulationError,
    SimulationWarning,
    StoreError,
    _layout,
    _owners,
    _processes,
    _store,
    open_runs,
    simulate,
)

ROWS = np.arange(12.0)[:, None]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def entries(store, table):
    with closing(sqlite3.connect(store)) as db:
        return db.execute(f"SELECT * FROM {table}").fetchall()


@pytest.mark.skipif(os.name != "posix", reason="signals as tests use them")
class TestWorkers:
    @pytest.mark.parametrize("simulator", [leaves_a_child, leaves_a_daemon])
    def test_one_that_dies_and_leaves_a_child(self, simulator, monkeypatch):
        monkeypatch.setattr(_processes, "_LAST_WORDS", 0.3)
        start = time.monotonic()
        with pytest.warns(SimulationWarning, match="exit code 7"):
            runs = simulate(simulator, ROWS, executor=2)
        assert [(f.index, f.kind) for f in runs.failures] == [(3, "lost")]
        assert time.monotonic() - start < 15

    def test_some_that_are_killed_while_they_start(self, tmp_path):
        runs = simulate(DiesAtFirst(tmp_path / "deaths", 3, "loaded"), ROWS, executor=2)
        np.testing.assert_array_equal(runs.outputs, ROWS[:, 0])
        assert not runs.failures

    def test_all_that_are_killed_while_they_start(self, tmp_path, monkeypatch):
        monkeypatch.setattr(_processes, "_MOST_STILLBORN", 4)
        with pytest.raises(
            SimulationError, match=r"4 worker processes in a row ended before .* the last one was killed by SIGKILL"
        ):
            simulate(DiesAtFirst(tmp_path / "deaths", 99, "loaded"), ROWS, executor=2)

    def test_a_run_whose_process_is_killed_is_begun_once_more(self, tmp_path):
        runs = simulate(DiesAtFirst(tmp_path / "once", 1, "called"), ROWS, executor=1)
        np.testing.assert_array_equal(runs.outputs, ROWS[:, 0])
        with pytest.warns(SimulationWarning, match="1 lost: the worker process was killed by SIGKILL"):
            runs = simulate(DiesAtFirst(tmp_path / "ever", 99, "called"), ROWS, executor=1)
        assert [f.index for f in runs.failures] == [3]
        assert len((tmp_path / "ever").read_text().splitlines()) == 2


class TestPaths:
    def test_a_simulator_that_changes_directory(self, tmp_path, monkeypatch):
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(_owners, "BEAT", 0.02)
        beats = []

        def moves(row):
            os.chdir(tmp_path / "elsewhere")
            if row[0] == 3:
                for _ in range(200):
                    beats.append(entries(tmp_path / "runs.sqlite", "owners")[0][-1])
                    if len(set(beats)) > 2:
                        break
                    time.sleep(0.02)
            return row[0]

        simulate(moves, ROWS, store="runs.sqlite")
        assert len(set(beats)) > 2
        assert os.listdir(tmp_path / "elsewhere") == []

    @pytest.mark.parametrize("nothing", [":memory:", ""])
    def test_a_store_that_would_keep_nothing(self, nothing):
        with pytest.raises(ValueError, match="which would keep nothing: give the path of a file"):
            simulate(noisy, ROWS, store=nothing)


class TestDisk:
    def test_a_full_one(self, store, monkeypatch):
        """SQLite says the same of a limit of pages and of a full disk."""

        def limited(path):
            db = _layout.open_to_write(path)
            db.execute("PRAGMA max_page_count = 12")
            return db

        def large(row, rng):
            return rng.normal(size=200)

        with monkeypatch.context() as patch:
            patch.setattr(_store, "open_to_write", limited)
            with pytest.raises(StoreError, match=r"store: .*runs.sqlite could not be written: the disk is full"):
                simulate(large, ROWS, store=store, random_state=1)
        kept, alone = open_runs(store), simulate(large, ROWS, random_state=1)
        assert 0 < len(kept) < 12
        np.testing.assert_array_equal(kept.outputs, alone.outputs[kept.index])
        np.testing.assert_array_equal(simulate(large, ROWS, store=store).outputs, alone.outputs)
        np.testing.assert_array_equal(open_runs(store).seconds[kept.index], kept.seconds)

    @pytest.mark.parametrize("waits", [False, True])
    def test_one_with_no_room_to_sign_off(self, store, tmp_path, monkeypatch, waits):
        """Nobody waits for what this process claimed: not its next call, nor, once there is room, another process."""

        def full(self, number):
            raise sqlite3.OperationalError("database or disk is full")

        def stops(row):
            if row[0] == 3 and not (tmp_path / "go").exists():
                raise KeyboardInterrupt
            return row[0]

        with monkeypatch.context() as patch:
            if waits:
                patch.setattr(_owners, "BEAT", 0.05)
            patch.setattr(_store.Ledger, "_forget", full)
            with pytest.raises(KeyboardInterrupt):
                simulate(stops, ROWS, store=store)
            for _ in range(400 * waits):
                if not entries(store, "owners"):
                    break
                time.sleep(0.05)
        assert bool(entries(store, "owners")) is not waits
        assert 3 in [run for run, _ in entries(store, "claims")]
        (tmp_path / "go").touch()
        start = time.monotonic()
        np.testing.assert_array_equal(simulate(stops, ROWS, store=store).outputs, ROWS[:, 0])
        assert time.monotonic() - start < 30  # and not the lease of 120

    def test_one_that_is_read_only(self, store):
        simulate(noisy, ROWS[:3], store=store)
        with store.open("r+b") as file:  # by a later version of SQLite, whose files are for reading only
            file.seek(18)
            file.write(b"\x03")
        with pytest.raises(StoreError, match=r"store: .* cannot be written, because .* read-only .*open_runs reads it"):
            simulate(noisy, ROWS, store=store)
        assert len(open_runs(store)) == 3

    def test_a_file_that_may_not_be_written(self, store):
        if os.name != "posix" or os.geteuid() == 0:
            pytest.skip("there is nothing that root may not write")
        simulate(noisy, ROWS[:3], store=store)
        store.chmod(0o400)
        with pytest.raises(StoreError, match="read-only"):
            simulate(noisy, ROWS, store=store)

    def test_a_store_that_is_locked(self, store, monkeypatch):
        monkeypatch.setattr(_layout, "BUSY_SECONDS", 0.1)
        simulate(noisy, ROWS[:3], store=store)
        with closing(sqlite3.connect(store, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match=r"store: .* is locked by another process, for more than 0\.1 s"):
                simulate(noisy, ROWS, store=store)

    def test_an_output_that_is_too_large(self, store, monkeypatch):
        monkeypatch.setattr(_store, "_ROW_MARGIN", 10**9 - 1000)

        def large(row):
            return np.ones(200 if row[0] == 3 else 2)

        with pytest.raises(
            SimulationError, match=r"simulator: run 3 returned 1.61e-06 GB, where 1e-06 GB can"
        ) as caught:
            simulate(large, ROWS, store=store)
        np.testing.assert_array_equal(caught.value.runs.index, [0, 1, 2])
        with pytest.warns(SimulationWarning, match=r"returned shape \(200,\)"):
            assert len(simulate(large, ROWS)) == 11  # in memory there is no such limit
        monkeypatch.undo()
        with pytest.warns(SimulationWarning, match=r"returned shape \(200,\)"):
            assert len(simulate(large, ROWS, store=store)) == 11

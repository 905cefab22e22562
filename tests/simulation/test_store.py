"""What is kept, what is refused, and who may take over from whom."""

import copy
import functools
import os
import sqlite3
import subprocess
import sys
import threading
import time
import types
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from scipy import stats
from simulators import Noted, faulty, grow, noisy, read_notes

from kernelbayes.simulation import SimulationError, SimulationWarning, _owners, open_runs, simulate
from kernelbayes.simulation._owners import this_process
from kernelbayes.simulation._state import carried

ROWS = np.arange(12.0)[:, None]


@pytest.fixture
def store(tmp_path):
    return tmp_path / "runs.sqlite"


def halton(start, stop):
    """A design that can be continued: van der Corput's sequence."""
    return np.array([[int(f"{i + 1:b}"[::-1], 2) / 2 ** (i + 1).bit_length()] for i in range(start, stop)])


class TestResuming:
    def test_a_second_call_repeats_nothing(self, store, tmp_path):
        simulator = Noted(tmp_path / "notes")
        first = simulate(simulator, ROWS, store=store)
        second = simulate(simulator, ROWS, store=str(store), executor=2)
        assert sorted(read_notes(tmp_path / "notes")) == list(range(12))
        for a, b in ((first, second), (first, open_runs(store))):
            np.testing.assert_array_equal(a.outputs, b.outputs)
            np.testing.assert_array_equal(a.parameters, b.parameters)
            np.testing.assert_array_equal(a.seconds, b.seconds)

    @pytest.mark.parametrize("executor", [None, 2])
    def test_a_larger_budget_adds_to_it(self, store, tmp_path, executor):
        simulator = Noted(tmp_path / "notes")
        few = simulate(simulator, halton, budget=7, store=store, random_state=3)
        many = simulate(simulator, halton, budget=30, store=store, executor=executor)  # with the store's own seed
        assert len(read_notes(tmp_path / "notes")) == 30
        np.testing.assert_array_equal(few.outputs, many.outputs[:7])
        np.testing.assert_array_equal(
            many.outputs, simulate(Noted(tmp_path / "more"), halton, budget=30, random_state=3).outputs
        )
        assert len(simulate(simulator, halton, budget=10, store=store)) == 10  # the first ten of those that are there

    def test_names_and_statistics_are_remembered(self, store):
        simulate(grow, [[1.0, 2.0]], names=["growth", "noise"], store=store)
        runs = open_runs(store)
        assert runs.names == ("growth", "noise")
        assert runs.statistics == ("end", "noise")
        again = simulate(grow, [[1.0, 2.0], [3.0, 4.0]], store=store)  # called by keyword, as before
        np.testing.assert_array_equal(again.outputs, [[3.0, 2.0], [9.0, 4.0]])

    def test_the_form_of_outputs_is_remembered(self, store):
        returned = [1.0]

        def simulator(row):
            return returned

        simulate(simulator, ROWS, budget=10, store=store)
        returned.append(2.0)
        changed = pytest.warns(SimulationWarning, match="carries along has changed")
        with changed, pytest.warns(SimulationWarning, match="where most runs returned"):
            runs = simulate(simulator, ROWS, store=store)
        assert [(f.index, f.kind) for f in runs.failures] == [(10, "wrong shape"), (11, "wrong shape")]
        returned.pop()
        assert len(simulate(simulator, ROWS, store=store, retry_failed=True)) == 12

    def test_failures_are_kept_and_not_repeated_unless_asked(self, store):
        calls, broken = [], {1.0, 4.0}

        def simulator(row):
            calls.append(row[0])
            if row[0] in broken:
                raise RuntimeError("broken")
            return row[0]

        for _ in range(2):
            with pytest.warns(SimulationWarning, match="RuntimeError: broken"):
                runs = simulate(simulator, ROWS, store=store)
        assert len(calls) == 12
        assert [f.index for f in runs.failures] == [f.index for f in open_runs(store).failures] == [1, 4]
        broken.clear()
        with pytest.warns(SimulationWarning, match=r"carries along has changed .*\(broken\)"):
            runs = simulate(simulator, ROWS, store=store, retry_failed=True)
        assert calls[12:] == [1.0, 4.0]
        assert not runs.failures
        np.testing.assert_array_equal(runs.outputs, ROWS[:, 0])

    def test_what_ended_before_giving_up_is_there(self, store):
        def mostly(row):
            return row[0] if row[0] % 3 == 0 else np.nan

        with pytest.raises(SimulationError, match="runs that ended are in the store") as caught:
            simulate(mostly, np.arange(500.0), store=store)
        runs = open_runs(store)
        assert len(runs) + len(runs.failures) == 20
        np.testing.assert_array_equal(runs.outputs, caught.value.runs.outputs)

    def test_a_store_full_of_failures_says_how_to_go_on(self, store):
        def fails(row):
            return np.nan

        for message in ("12 of 12 runs failed", "retry_failed=True"):
            with pytest.raises(SimulationError, match=message):
                simulate(fails, ROWS, store=store)


class TestRefusals:
    def test_another_design(self, store):
        simulate(noisy, ROWS, store=store)
        other = ROWS.copy()
        other[5] = 5.5
        with pytest.raises(
            ValueError, match=r"parameters: the store .* holds run 5 with parameters \[5\], but row 5 .* \[5.5\]"
        ):
            simulate(noisy, other, store=store)

    def test_another_width(self, store):
        simulate(noisy, ROWS, store=store)
        with pytest.raises(ValueError, match=r"parameters has 2 columns where the store .* has 1"):
            simulate(noisy, np.ones((12, 2)), store=store)

    def test_other_names(self, store):
        simulate(lambda x: x["a"], ROWS, names=["a"], store=store)
        with pytest.raises(ValueError, match=r"names are \['b'\] where the store .* has \['a'\]"):
            simulate(lambda x: x["b"], ROWS, names=["b"], store=store)

    def test_another_simulator(self, store):
        simulate(noisy, ROWS, store=store)
        with pytest.raises(ValueError, match=r"simulator is simulators:faulty, but .* are of simulators:noisy"):
            simulate(faulty, ROWS, store=store)

    def test_another_seed(self, store):
        simulate(noisy, ROWS, store=store, random_state=1)
        with pytest.raises(ValueError, match=r"random_state is 2, but the store .* was begun with 1"):
            simulate(noisy, ROWS, store=store, random_state=2)

    def test_changed_source_only_warns(self, store):
        def make(version):
            if version:

                def simulator(row):
                    return row[0] + 1
            else:

                def simulator(row):
                    return row[0]

            return simulator

        simulate(make(0), ROWS, store=store)
        with pytest.warns(SimulationWarning, match=r"source of the simulator .*simulator has changed"):
            runs = simulate(make(1), ROWS, store=store)
        np.testing.assert_array_equal(runs.outputs, ROWS[:, 0])

    def test_the_line_around_a_lambda_may_change(self, store):
        simulate(lambda row: row[0] in {"a", "b"}, ROWS[:5], store=store)
        assert len(simulate(lambda row: row[0] in {"a", "b"}, ROWS, store=store, budget=7)) == 7

    def test_a_file_that_is_no_database(self, tmp_path):
        path = tmp_path / "notes.txt"
        path.write_text("a letter to somebody, which is longer than the header of a database would be" * 20)
        for call in (lambda: simulate(noisy, ROWS, store=path), lambda: open_runs(path)):
            with pytest.raises(ValueError, match=r"store: .*notes\.txt is not a store of runs"):
                call()
        assert path.read_text().startswith("a letter")

    def test_a_database_of_something_else(self, store):
        db = sqlite3.connect(store)
        db.execute("CREATE TABLE runs (a, b)")
        db.close()
        before = store.read_bytes()
        for call in (lambda: simulate(noisy, ROWS, store=store), lambda: open_runs(store)):
            with pytest.raises(ValueError, match=r"store: .* is a SQLite file of something else"):
                call()
        assert store.read_bytes() == before

    def test_another_version(self, store):
        simulate(noisy, ROWS, store=store)
        db = sqlite3.connect(store)
        db.execute("PRAGMA user_version = 99")
        db.close()
        with pytest.raises(ValueError, match=r"store: .* has version 99"):
            simulate(noisy, ROWS, store=store)

    def test_no_such_place(self, tmp_path):
        with pytest.raises(ValueError, match=r"store: .* lies in a folder that does not exist"):
            simulate(noisy, ROWS, store=tmp_path / "nowhere" / "runs.sqlite")
        with pytest.raises(ValueError, match=r"store: .* is a folder"):
            simulate(noisy, ROWS, store=tmp_path)
        with pytest.raises(ValueError, match="store: there is no file"):
            open_runs(tmp_path / "runs.sqlite")
        assert not (tmp_path / "runs.sqlite").exists()

    def test_a_refused_call_leaves_no_trace(self, store):
        with pytest.raises(ValueError, match="simulator needs"):
            simulate(lambda a, b, c: 1.0, np.ones((3, 2)), names=["a", "b"], store=store)
        assert len(simulate(lambda x: x["c"], np.ones((3, 2)), names=["c", "d"], store=store)) == 3


class TestClaims:
    def claim_for(self, store, runs, **change):
        """Enter another owner who has claimed some runs."""
        db = sqlite3.connect(store)
        owner = this_process()._replace(**change)
        number = db.execute("INSERT INTO owners (host, pid, started, heartbeat) VALUES (?, ?, ?, ?)", owner).lastrowid
        db.executemany("INSERT INTO claims VALUES (?, ?)", [(run, number) for run in runs])
        db.commit()
        db.close()

    @pytest.mark.parametrize(
        "gone",
        [
            {"pid": 2**22 + 1},  # above what Linux gives
            {"started": "1"},  # the number now belongs to somebody else
            {},  # this process, which could not sign off
        ],
    )
    def test_of_the_dead_are_released(self, store, gone):
        simulate(noisy, ROWS[:2], store=store)
        self.claim_for(store, [3, 4], **gone)
        assert len(simulate(noisy, ROWS, store=store)) == 12

    @pytest.mark.parametrize("ahead", [-180.0, 0.0, 180.0])
    def test_of_the_silent_are_released_by_the_clock_of_the_observer(self, store, monkeypatch, ahead):
        monkeypatch.setattr(_owners, "LEASE", 0.5)
        simulate(noisy, ROWS[:2], store=store)
        self.claim_for(store, [3, 4], host="elsewhere", heartbeat=time.time() + ahead)
        start = time.monotonic()
        assert len(simulate(noisy, ROWS, store=store)) == 12
        assert time.monotonic() - start > 0.5

    @pytest.mark.parametrize("alive", [{"pid": os.getppid(), "started": ""}, {"host": "elsewhere"}])
    @pytest.mark.parametrize("ahead", [-180.0, 180.0])
    def test_of_the_living_are_respected(self, store, alive, ahead):
        simulate(noisy, ROWS[:2], store=store)
        self.claim_for(store, [3, 4], **alive, heartbeat=time.time() + ahead)
        with pytest.warns(SimulationWarning, match="max_seconds"):
            runs = simulate(noisy, ROWS, store=store, max_seconds=0.3)
        np.testing.assert_array_equal(runs.index, np.delete(np.arange(12), [3, 4]))

    def test_of_nobody_are_released(self, store):
        simulate(noisy, ROWS[:2], store=store)
        self.claim_for(store, [3, 4])
        with closing(sqlite3.connect(store, isolation_level=None)) as db:
            db.execute("DELETE FROM owners")
        assert len(simulate(noisy, ROWS, store=store)) == 12

    def test_an_owner_who_was_suspended_with_the_observer_is_given_time(self, monkeypatch):
        now = [0.0]
        monkeypatch.setattr(_owners.time, "monotonic", lambda: now[0])
        watch = _owners.Watch()
        silent = []
        for now[0] in (0.0, 1e6, 1e6 + 60):
            silent.append(watch.is_silent(1, 5.0))
        assert silent == [False, False, False]
        assert any(watch.is_silent(1, 5.0) for now[0] in np.arange(1e6 + 61, 1e6 + 250))
        assert not watch.is_silent(1, 6.0)

    def test_nothing_is_claimed_at_the_end(self, store):
        simulate(noisy, ROWS, store=store)
        db = sqlite3.connect(store)
        assert [db.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0] for t in ("owners", "claims", "runs")] == [
            0,
            0,
            12,
        ]
        db.close()


def test_a_read_only_copy_can_be_read(store, tmp_path):
    runs = simulate(noisy, ROWS, store=store)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.sqlite"]  # one file, which can be copied
    store.chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        np.testing.assert_array_equal(open_runs(store).outputs, runs.outputs)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.filterwarnings("ignore::kernelbayes.SimulationWarning")
def test_a_vectorised_simulator_goes_on_as_if_it_had_not_stopped(tmp_path):
    def batch(rows, rng):
        time.sleep(0.05)
        return np.column_stack([rng.normal(size=len(rows)), rng.uniform(size=len(rows))])

    rows, store = np.arange(450.0)[:, None], tmp_path / "runs.sqlite"
    stopped = simulate(batch, rows, vectorised=True, store=store, random_state=0, max_seconds=0.08)
    assert 100 <= len(stopped) < 450
    assert len(stopped) % 100 == 0  # batches end together
    resumed = simulate(batch, rows, vectorised=True, store=store)
    np.testing.assert_array_equal(resumed.outputs, simulate(batch, rows, vectorised=True, random_state=0).outputs)


def batch_of_two(rows, rng):
    """Draws two arrays, so that what a row is given depends on how many there are."""
    return np.column_stack([rows[:, 0], rng.normal(size=len(rows)), rng.uniform(size=len(rows))])


@pytest.mark.parametrize("threads", [0, 2])
def test_vectorised_runs_are_the_same_wherever_they_were_stopped(tmp_path, threads):
    rows, store = np.arange(230.0)[:, None], tmp_path / "runs.sqlite"
    executor = ThreadPoolExecutor(threads) if threads else None
    options = {"vectorised": True, "random_state": 0, "executor": executor}
    once = simulate(batch_of_two, rows, vectorised=True, random_state=0)
    for n in (30, 130, 131, 230):
        part = simulate(batch_of_two, rows[:n], store=store, **options)
        np.testing.assert_array_equal(part.outputs, once.outputs[:n])
    with closing(sqlite3.connect(store)) as db, db:  # as if a batch had been cut
        db.execute("DELETE FROM runs WHERE run % 7 = 3")
    np.testing.assert_array_equal(simulate(batch_of_two, rows, store=store, **options).outputs, once.outputs)
    if executor is not None:
        executor.shutdown()


def test_a_batch_that_failed_and_was_cut_is_finished_as_it_would_have_been(tmp_path):
    def picky(rows, rng):
        if (rows == 7).any():
            raise ValueError("seven")
        return batch_of_two(rows, rng)

    rows, store = np.arange(120.0)[:, None], tmp_path / "runs.sqlite"
    options = {"vectorised": True, "random_state": 0}
    once = simulate(picky, rows, store=store, **options)
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM runs WHERE run IN (7, 50, 51)")
    again = simulate(picky, rows, store=store, **options)
    np.testing.assert_array_equal(again.outputs, once.outputs)
    with closing(sqlite3.connect(store)) as db, db:  # of one run that is missing, too, the batch fails first
        db.execute("DELETE FROM runs WHERE run = 50")
    again = simulate(picky, rows, store=store, **options)
    np.testing.assert_array_equal(again.outputs, once.outputs)


def test_a_store_of_an_older_version_goes_on_with_batches_as_they_come(tmp_path):
    sizes = []

    def counted(rows, rng):
        sizes.append(len(rows))
        return batch_of_two(rows, rng)

    rows, store = np.arange(120.0)[:, None], tmp_path / "runs.sqlite"
    simulate(counted, rows[:30], store=store, vectorised=True, random_state=0)
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM facts WHERE name = 'full batches'")
    before = open_runs(store)
    sizes.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # the list of sizes has changed
        runs = simulate(counted, rows, store=store, vectorised=True, random_state=0)
    assert sizes == [100, 20]
    np.testing.assert_array_equal(runs.outputs[:30], before.outputs)


def _scaled(x, k=3):
    return k * x[0]


def _closure(k):
    def simulator(x):
        return k * x[0]

    return simulator


class _Scaling:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x[0]

    def run(self, x):
        return self(x)


class TestState:
    """What a simulator carries along is compared like its source."""

    @pytest.mark.parametrize(
        ("first", "second", "named"),
        [
            (functools.partial(_scaled, k=1), functools.partial(_scaled, k=2), "k"),
            (_closure(1), _closure(2), "k"),
            (_Scaling(np.arange(4.0)), _Scaling(np.arange(4.0) + 1e-9), "k"),
            (_Scaling(1), _Scaling(2), "k"),
            (_Scaling(1).run, _Scaling(2).run, "k"),
            (_Scaling({"a": [1, 2]}), _Scaling({"a": [1, 3]}), "k"),
            (lambda x, k=1: k * x[0], lambda x, k=2: k * x[0], "k"),
            (_Scaling(stats.norm(0, 1)), _Scaling(stats.norm(0, 2)), "k"),
            (_Scaling(functools.partial(_scaled, k=1)), _Scaling(functools.partial(_scaled, k=2)), "k"),
            (functools.partial(_scaled), functools.partial(_scaled, k=2), "k"),
        ],
    )
    def test_another_state_warns(self, store, first, second, named):
        rows = np.ones((3, 1))
        simulate(first, rows, store=store)
        with pytest.warns(SimulationWarning, match=rf"carries along has changed .*\({named}\)"):
            simulate(second, rows, store=store)

    def test_the_same_state_does_not(self, store):
        class Settings:
            def __init__(self):
                self.names, self.lock, self.rates = {"b", "a", "c"}, threading.Lock(), np.arange(3.0)

        for _ in range(2):  # equal, but other objects
            simulate(functools.partial(lambda x, s: x[0], s=Settings()), np.ones((3, 1)), store=store)

    def test_what_runs_change_is_not_compared(self, store):
        calls = []

        def simulator(x):
            calls.append(x)
            return x[0]

        for n in (3, 5, 7):
            simulate(simulator, np.ones((n, 1)), store=store)
        assert len(calls) == 7

    def test_objects_that_hold_one_another_are_read_to_the_end(self):
        """A million ways lead through these eight objects; what comes after them counts all the same."""

        def nested(last, depth=7, shared=True):
            thing = types.SimpleNamespace(rate=1.0)
            for _ in range(depth):
                within = [thing if shared else copy.copy(thing) for _ in "abcdefg"]
                thing = types.SimpleNamespace(**dict(zip("abcdefg", within, strict=True)))
            return functools.partial(_scaled, k=types.SimpleNamespace(first=thing, last=last))

        assert carried(nested(1)) == carried(nested(1)) != carried(nested(2))
        assert carried(nested(1, depth=3)) == carried(nested(1, depth=3, shared=False))

    def test_digests_are_the_same_in_every_process(self):
        code = (
            "import numpy as np, functools; from kernelbayes.simulation._state import carried;"
            "print(carried(functools.partial(max, {'b', 'a', 'c', 'd'}, k={'x': np.arange(3)}, f=len)))"
        )
        said = [
            subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for seed in ("1", "2")
        ]
        assert said[0] == said[1] != ""

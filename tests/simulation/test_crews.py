"""Time limits, workers that die, executors of other people's."""

import multiprocessing
import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from simulators import deadly, deaf, noisy, sleeper

from kernelbayes.simulation import SimulationError, SimulationWarning, _owners, _processes, simulate

ROWS = np.arange(12.0)[:, None]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as tests use them")


def only_failure(runs, index, kind):
    assert [(f.index, f.kind) for f in runs.failures] == [(index, kind)]
    np.testing.assert_array_equal(runs.outputs, np.delete(ROWS[:, 0], index))


class TestTimeout:
    @pytest.mark.parametrize("executor", [None, 1, 2])
    def test_a_run_that_sleeps(self, executor):
        start = time.monotonic()
        with pytest.warns(SimulationWarning, match=r"took longer than 0\.5 s"):
            runs = simulate(sleeper, ROWS, timeout=0.5, executor=executor)
        only_failure(runs, 3, "timeout")
        assert time.monotonic() - start < 20

    @pytest.mark.parametrize("executor", [1, 2])
    def test_a_run_that_must_be_killed(self, executor):
        with pytest.warns(SimulationWarning, match="its process had to be killed"):
            runs = simulate(deaf, ROWS, timeout=0.5, executor=executor)
        only_failure(runs, 3, "timeout")

    def test_outside_the_main_thread(self):
        found = []

        def work():
            with pytest.warns(SimulationWarning, match="took longer"):
                found.append(simulate(sleeper, ROWS, timeout=0.5))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        only_failure(found[0], 3, "timeout")

    def test_a_simulator_that_catches_everything(self):
        def stubborn(row):
            try:
                if row[0] == 3:
                    time.sleep(30)
            except Exception:
                return -1.0
            return row[0]

        with pytest.warns(SimulationWarning, match="took longer"):
            only_failure(simulate(stubborn, ROWS, timeout=0.5), 3, "timeout")

    def test_a_batch_has_the_time_of_its_rows(self):
        def slow(rows):
            time.sleep(30 if (rows == 3).any() else 0)
            return rows[:, 0]

        with pytest.warns(SimulationWarning, match="took longer"):
            only_failure(simulate(slow, ROWS, vectorised=True, timeout=0.1), 3, "timeout")


class TestOwnProcesses:
    @pytest.mark.parametrize("executor", [1, 2])
    def test_a_worker_that_dies_costs_one_run(self, executor):
        with pytest.warns(SimulationWarning, match="2 of 12 runs failed"):
            runs = simulate(deadly, ROWS, executor=executor)
        assert [(f.index, f.kind) for f in runs.failures] == [(3, "lost"), (5, "lost")]
        assert "exit code 7" in runs.failures[0].reason
        assert "SIGSEGV" in runs.failures[1].reason
        np.testing.assert_array_equal(runs.outputs, np.delete(ROWS[:, 0], [3, 5]))

    def test_lambdas_and_closures(self):
        factor = np.arange(3.0)
        runs = simulate(lambda row: row * factor, ROWS, executor=2)
        np.testing.assert_array_equal(runs.outputs, ROWS * factor)

    def test_what_cannot_be_sent(self):
        lock = threading.Lock()
        with pytest.raises(ValueError, match=r"simulator cannot be sent to other processes .*lock.*executor=None"):
            simulate(lambda row: row * (lock is None), ROWS, executor=2)

    def test_what_cannot_be_loaded(self):
        class Unloadable:
            def __reduce__(self):
                return int, ("no number",)

            def __call__(self, row):
                return 1.0

        with pytest.raises(
            SimulationError, match="executor: a worker process could not load the simulator: ValueError"
        ):
            simulate(Unloadable(), ROWS, executor=2)

    def test_printing_does_no_harm(self, capfd):
        def talks(row):
            print("a word", row[0])
            os.system("echo another")
            return row[0]

        np.testing.assert_array_equal(simulate(talks, ROWS[:3], executor=1).outputs, range(3))
        assert "a word 1.0" in capfd.readouterr().err

    def test_they_do_not_import_the_library(self):
        def asks(row):
            import sys

            return [int("kernelbayes" in sys.modules), int("jax" in sys.modules)]

        np.testing.assert_array_equal(simulate(asks, ROWS[:2], executor=1).outputs, 0.0)

    def test_none_is_left_behind(self):
        def who(row):
            time.sleep(0.02)
            return os.getpid()

        pids = {int(pid) for pid in simulate(who, np.arange(40.0), executor=2).outputs}
        assert len(pids) == 2
        assert not any(_owners._is_running(pid, "") for pid in pids)

    def test_what_a_killed_run_has_started_is_killed_too(self, tmp_path):
        def starts(row):
            import subprocess

            child = subprocess.Popen(["sleep", "60"])
            (tmp_path / "pid").write_text(str(child.pid))
            import signal as s

            s.pthread_sigmask(s.SIG_BLOCK, {s.SIGALRM})
            return child.wait()

        with pytest.raises(SimulationError, match="had to be killed"):
            simulate(starts, [1.0], executor=1, timeout=0.5)
        assert not _owners._is_running(int((tmp_path / "pid").read_text()), "")

    def test_short_runs_travel_in_chunks(self, monkeypatch):
        sent = []
        send = _processes._Worker.send
        monkeypatch.setattr(_processes._Worker, "send", lambda self, message: (sent.append(1), send(self, message)))
        runs = simulate(lambda row: row[0], np.arange(2000.0), executor=1)
        np.testing.assert_array_equal(runs.outputs, np.arange(2000.0))
        assert len(sent) < 400


class TestForeignExecutors:
    def test_threads(self):
        with ThreadPoolExecutor(3) as pool:
            runs = simulate(noisy, ROWS, executor=pool, random_state=3)
        alone = simulate(noisy, ROWS, random_state=3)
        np.testing.assert_array_equal(runs.outputs[:, 0], alone.outputs[:, 0])

    def test_processes(self):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            runs = simulate(noisy, ROWS, executor=pool, random_state=3)
            squared = simulate(lambda row: row**2, ROWS, executor=pool)  # which the pool alone could not pickle
            with pytest.warns(SimulationWarning, match="took longer"):
                late = simulate(sleeper, ROWS, executor=pool, timeout=0.5)
            lock = threading.Lock()
            with pytest.raises(ValueError, match="simulator cannot be sent"):
                simulate(lambda row: row * (lock is None), ROWS, executor=pool)
            with pytest.raises(SimulationError, match="executor is broken") as caught:
                simulate(deadly, ROWS, executor=pool)
        np.testing.assert_array_equal(runs.outputs, simulate(noisy, ROWS, random_state=3).outputs)
        np.testing.assert_array_equal(squared.outputs, ROWS**2)
        only_failure(late, 3, "timeout")
        assert caught.value.runs is not None

    def test_few_are_under_way_at_a_time(self):
        class Counting(ThreadPoolExecutor):
            most = waiting = 0

            def submit(self, *args, **kwargs):
                self.waiting += 1
                self.most = max(self.most, self.waiting)
                future = super().submit(*args, **kwargs)
                future.add_done_callback(lambda _: setattr(self, "waiting", self.waiting - 1))
                return future

        with Counting(2) as pool:
            simulate(lambda row: time.sleep(0.01) or row[0], np.arange(100.0), executor=pool)
        assert pool.most <= 5

    def test_runs_that_wait_behind_those_that_hang_are_not_late(self):
        def hangs(row):
            time.sleep(2.5 if row[0] in (3, 4) else 0.0)  # both threads at once
            return row[0]

        with (
            ThreadPoolExecutor(2) as pool,
            pytest.warns(SimulationWarning, match="2 timeout: took longer than 0.2 s and did not come back"),
        ):
            runs = simulate(hangs, ROWS, executor=pool, timeout=0.2)
        assert [f.index for f in runs.failures] == [3, 4]
        assert len(runs) == len(ROWS) - 2

    def test_on_dask(self, tmp_path):
        distributed = pytest.importorskip("distributed")

        def now_and_then(row, rng):
            if row[0] == 5:
                raise ArithmeticError("no solution")
            time.sleep(2.5 if row[0] == 3 else 0.0)
            return [row[0], rng.normal()]

        cluster = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
        store = tmp_path / "runs.sqlite"
        with distributed.Client(**cluster) as client, pytest.warns(SimulationWarning, match="2 of 12 runs failed"):
            runs = simulate(
                now_and_then, ROWS, executor=client.get_executor(), timeout=0.2, store=store, random_state=0
            )
        assert [(f.index, f.kind) for f in runs.failures] == [(3, "timeout"), (5, "raised")]
        with pytest.warns(SimulationWarning):
            again = simulate(now_and_then, ROWS, store=store)
        np.testing.assert_array_equal(again.outputs, runs.outputs)

    def test_a_thread_that_hangs_is_not_waited_for(self):
        let_go = threading.Event()

        def hangs(row):
            if row[0] == 3:
                let_go.wait(60)
            return row[0]

        with ThreadPoolExecutor(2) as pool:
            with pytest.warns(SimulationWarning, match="did not come back"):
                runs = simulate(hangs, ROWS, executor=pool, timeout=0.2)
            let_go.set()
        only_failure(runs, 3, "timeout")

    def test_one_that_is_shut(self):
        pool = ThreadPoolExecutor(1)
        pool.shutdown()
        with pytest.raises(SimulationError, match="executor takes no more work"):
            simulate(noisy, ROWS, executor=pool)


@pytest.mark.parametrize("executor", [None, 2])
def test_max_seconds(executor):
    with pytest.warns(SimulationWarning, match="max_seconds: stopped with"):
        runs = simulate(lambda row: time.sleep(0.05) or row[0], np.arange(1000.0), executor=executor, max_seconds=1.0)
    assert 1 <= len(runs) < 100
    assert not runs.failures

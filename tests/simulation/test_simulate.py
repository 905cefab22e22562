"""How simulators are called, what is read from them, and what is random about it."""

import random
import re
import warnings

import numpy as np
import pytest
from simulators import drawn, faulty, grow, noisy, squares

import kernelbayes.simulation
from kernelbayes.simulation import Runs, SimulationError, SimulationWarning, simulate

ROWS = np.arange(12.0)[:, None]
PAIRS = np.arange(8.0).reshape(4, 2)


class TestCall:
    def test_an_array_without_names(self):
        runs = simulate(lambda row: row @ [1.0, 10.0], PAIRS)
        np.testing.assert_array_equal(runs.outputs, PAIRS @ [1.0, 10.0])
        np.testing.assert_array_equal(runs.parameters, PAIRS)
        np.testing.assert_array_equal(runs.index, range(4))
        assert runs.outputs.shape == (4,)
        assert runs.outputs.dtype == np.float64
        assert runs.names is runs.statistics is None
        assert runs.failure_rate == 0.0
        assert len(runs) == 4
        assert (runs.seconds > 0).all()

    def test_its_own_arguments_by_name(self):
        runs = simulate(grow, PAIRS, names=["noise", "growth"])  # not in the order of the function
        assert runs.statistics == ("end", "noise")
        np.testing.assert_array_equal(runs.outputs, np.column_stack([3 * PAIRS[:, 1], PAIRS[:, 0]]))

    def test_keywords_into_a_function_that_takes_any(self):
        np.testing.assert_array_equal(simulate(lambda **p: p["a"] - p["b"], PAIRS, names=["a", "b"]).outputs, -1.0)

    def test_a_dict_for_other_names(self):
        np.testing.assert_array_equal(simulate(lambda theta: theta["b"], PAIRS, names=["a", "b"]).outputs, PAIRS[:, 1])

    def test_an_array_where_it_is_annotated_so(self):
        def annotated(theta: np.ndarray) -> float:
            return theta[1]

        np.testing.assert_array_equal(simulate(annotated, PAIRS, names=["a", "b"]).outputs, PAIRS[:, 1])

    def test_pass_dict_decides(self):
        def asks(a, b=None):
            return len(a) if isinstance(a, dict) else -len(a)

        assert simulate(asks, PAIRS, names=["a", "b"], pass_dict=True).outputs[0] == 2
        assert simulate(asks, PAIRS, names=["a", "b"], pass_dict=False).outputs[0] == -2

    def test_a_simulator_may_write_on_its_row(self):
        def spoil(row):
            row[:] = -1.0
            return row.sum()

        given = PAIRS.copy()
        np.testing.assert_array_equal(simulate(spoil, given).parameters, PAIRS)
        np.testing.assert_array_equal(given, PAIRS)

    @pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.array(3.0), True])
    def test_numbers(self, value):
        assert simulate(lambda row: value, ROWS).outputs.shape == (12,)

    @pytest.mark.parametrize("value", [(1, 2), [1, 2], np.ones((2, 3, 4)), {"b": 1, "a": 2}])
    def test_shapes(self, value):
        runs = simulate(lambda row: value, ROWS)
        assert runs.outputs.shape == (12, *np.shape(list(value.values()) if isinstance(value, dict) else value))

    def test_dicts_in_any_order(self):
        runs = simulate(lambda row: {"a": 1, "b": 2} if row[0] < 5 else {"b": 2, "a": 1}, ROWS)
        assert runs.statistics == ("a", "b")
        np.testing.assert_array_equal(runs.outputs, np.tile([1.0, 2.0], (12, 1)))

    @pytest.mark.parametrize("executor", [None, 2])
    def test_vectorised(self, executor):
        rows = np.arange(250.0)
        runs = simulate(squares, rows, vectorised=True, executor=executor)
        np.testing.assert_array_equal(runs.outputs[:, 0], rows**2)

    def test_vectorised_columns_and_statistics(self):
        runs = simulate(lambda a, b: {"sum": a + b, "first": a}, PAIRS, names=["a", "b"], vectorised=True)
        np.testing.assert_array_equal(runs.outputs, np.column_stack([PAIRS.sum(1), PAIRS[:, 0]]))

    def test_one_bad_row_does_not_cost_its_batch(self):
        sizes = []

        def picky(rows):
            sizes.append(len(rows))
            if (rows == 7).any():
                raise ValueError("seven")
            return np.where(rows == 9, np.inf, rows)

        runs = simulate(picky, np.arange(150.0), vectorised=True)
        assert [(f.index, f.kind) for f in runs.failures] == [(7, "raised"), (9, "not finite")]
        assert sorted(sizes) == [1] * 100 + [100, 100]  # the last batch is filled up
        assert len(runs) == 148


class TestRandomness:
    def test_the_same_in_one_process_and_in_two(self):
        alone = simulate(noisy, ROWS, random_state=3)
        together = simulate(noisy, ROWS, random_state=3, executor=2)
        np.testing.assert_array_equal(alone.outputs, together.outputs)
        assert len(np.unique(alone.outputs)) == alone.outputs.size  # no run repeats another's draws

    def test_the_documented_seed(self):
        runs = simulate(noisy, ROWS, random_state=3)
        expected = [np.random.default_rng(np.random.SeedSequence(3, spawn_key=(i,))).normal() for i in range(12)]
        np.testing.assert_allclose(runs.outputs[:, 0] - ROWS[:, 0], expected, atol=1e-14)

    def test_whole_numbers_for_seed_and_random_state(self):
        runs = simulate(drawn, ROWS, random_state=3)
        assert len(np.unique(runs.outputs[:, 0])) == 12
        np.testing.assert_array_equal(runs.outputs, simulate(drawn, ROWS, random_state=3).outputs)
        assert (runs.outputs != simulate(drawn, ROWS, random_state=4).outputs).all()

    def test_nothing_draws_anew_each_time(self):
        assert (simulate(noisy, ROWS).outputs != simulate(noisy, ROWS).outputs).all()
        first, second = (simulate(noisy, ROWS, random_state=np.random.default_rng(5)) for _ in range(2))
        np.testing.assert_array_equal(first.outputs, second.outputs)

    def test_the_callers_own_state_is_put_back(self):
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        expected = np.random.rand(), random.random()  # noqa: NPY002
        np.random.seed(1)  # noqa: NPY002
        random.seed(1)
        simulate(noisy, ROWS)
        assert (np.random.rand(), random.random()) == expected  # noqa: NPY002

    def test_batches_have_one_generator_each(self):
        def batch(rows, rng):
            return rng.normal(size=len(rows))

        runs = simulate(batch, np.arange(150.0), vectorised=True, random_state=3)
        second = np.random.default_rng(np.random.SeedSequence(3, spawn_key=(100,))).normal(size=50)
        np.testing.assert_array_equal(runs.outputs[100:], second)


class TestFailures:
    @pytest.mark.parametrize("executor", [None, 2])
    def test_each_kind_is_listed_and_left_out(self, executor):
        rows = 16.0 + 5.0 * np.arange(64.0) % 64.0  # those that fail are spread: two processes may begin anywhere
        numbers = rows.astype(int) % 16
        with pytest.warns(SimulationWarning, match=r"16 of 64 runs failed \(25%\)") as caught:
            runs = simulate(faulty, rows, executor=executor)
        assert len(caught) == 1
        kinds = {f.index: f.kind for f in runs.failures}
        wanted = {1: "raised", 2: "not finite", 3: "wrong shape", 4: "wrong shape"}
        assert kinds == {i: wanted[number] for i, number in enumerate(numbers) if number in wanted}
        assert runs.failure_rate == 0.25
        np.testing.assert_array_equal(runs.index, [i for i in range(64) if numbers[i] not in wanted])
        np.testing.assert_array_equal(runs.outputs[:, 0], rows[runs.index])
        first, second, third, fourth = sorted(runs.failures, key=lambda failure: float(failure.parameters[0]))[:4]
        assert first.reason.startswith("ValueError: no solution at 17.0 (simulators.py, line ")
        assert first.parameters == 17.0
        assert second.reason == "output[0] is nan"
        assert third.reason == "returned shape (3,), where most runs returned shape (2,)"
        assert "None" in fourth.reason

    def test_most_runs_decide_the_shape_not_the_first(self):
        with pytest.warns(SimulationWarning, match="wrong shape"):
            runs = simulate(lambda row: [1.0] if row[0] == 0 else {"a": 1.0, "b": 2.0}, ROWS)
        assert runs.statistics == ("a", "b")
        assert [f.index for f in runs.failures] == [0]
        assert runs.failures[0].reason == "returned shape (1,), where most runs returned the statistics a, b"

    def test_few_failures_are_no_reason_to_warn(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            runs = simulate(lambda row: 1 / row[0] if row[0] else np.nan, np.arange(30.0))
        assert len(runs.failures) == 1

    @pytest.mark.parametrize("executor", [None, 2])
    def test_stops_when_more_than_half_fail(self, executor):
        def mostly(growth):
            if growth % 3:
                raise ValueError(f"no root near {growth}")
            return growth

        with pytest.raises(SimulationError, match=r"simulator: \d\d of the first \d\d runs failed") as caught:
            simulate(mostly, np.arange(1000.0), names=["growth"], executor=executor)
        said = str(caught.value)
        assert "raised: ValueError: no root near" in said
        assert re.search(r"such as run (\d+) with parameters growth = \1\b", said)
        assert "keywords growth" in said
        ended = caught.value.runs
        assert 20 <= len(ended) + len(ended.failures) < 100
        assert isinstance(caught.value, RuntimeError)

    def test_an_error_when_none_finishes(self):
        with pytest.raises(SimulationError, match=r"3 of 3 runs failed.*\n.*KeyError: 0"):
            simulate(lambda theta: theta[0], ROWS[:3], names=["rate"])

    @pytest.mark.parametrize("value", ["text", [1, [2, 3]], 1j, {}, [], object(), {"a": [1, 2]}, [None, 1.0]])
    def test_what_cannot_be_read_is_a_failure(self, value):
        with pytest.raises(SimulationError, match="wrong shape"):
            simulate(lambda row: value, ROWS)

    def test_leaving_is_a_failure_too(self):
        with pytest.warns(SimulationWarning, match="SystemExit"):
            runs = simulate(lambda row: exit() if row[0] == 2 else 1.0, ROWS)
        assert [f.index for f in runs.failures] == [2]


class TestRefusals:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"simulator": 3}, "simulator must be a function"),
            ({"parameters": [[np.nan]]}, "parameters contains NaN"),
            ({"parameters": []}, "parameters is empty"),
            ({"parameters": lambda start, stop: np.ones((stop, 1))}, "budget must be given"),
            ({"parameters": lambda start, stop: np.ones((3, 1)), "budget": 5}, r"parameters\(0, 5\) returned 3 rows"),
            ({"budget": 13}, "budget is 13, but parameters has 12 rows"),
            ({"budget": 0}, "budget must be at least 1"),
            ({"names": "x"}, "names must be a list of words"),
            ({"names": ["a", "b"]}, "names must be 1 different"),
            ({"pass_dict": True}, "pass_dict=True needs the names"),
            ({"pass_dict": "yes"}, "pass_dict must be one of"),
            ({"executor": 0}, "executor must be None"),
            ({"executor": -1}, "executor must be None"),
            ({"executor": "dask"}, "executor must be None"),
            ({"timeout": 0}, "timeout must be positive"),
            ({"max_seconds": -1}, "max_seconds must be positive"),
            ({"vectorised": 5}, "vectorised must be one of"),
            ({"random_state": -1}, "random_state must not be negative"),
            ({"random_state": "seed"}, "random_state must be a whole number"),
            ({"simulator": lambda a, b: 1.0}, "simulator needs b, which it is not given"),
            ({"simulator": lambda a, b: 1.0, "parameters": PAIRS}, r"give names=\['a', 'b'\]"),
            ({"simulator": lambda a, b: 1.0, "names": ["a"]}, "simulator needs b"),
        ],
    )
    def test_names_the_argument(self, change, message):
        given = {"simulator": noisy, "parameters": ROWS} | change
        with pytest.raises(ValueError, match=message):
            simulate(**given)


def test_csv(tmp_path):
    simulate(grow, PAIRS, names=["growth", "noise"]).to_csv(tmp_path / "runs.csv")
    header, first, *_ = (tmp_path / "runs.csv").read_text().split("\n")
    assert header == "run,growth,noise,end,output_noise,seconds"  # a statistic that is called like a parameter
    assert first.startswith("0,0.0,1.0,0.0,1.0,")


def test_csv_without_names(tmp_path):
    simulate(lambda row: np.eye(2) * row[0], PAIRS).to_csv(tmp_path / "runs.csv")
    header, _, second, *_ = (tmp_path / "runs.csv").read_text().split("\n")
    assert header == "run,parameter_0,parameter_1,output_0,output_1,output_2,output_3,seconds"
    assert second.startswith("1,2.0,3.0,2.0,0.0,0.0,2.0,")


def test_repr_says_what_is_there():
    assert repr(simulate(noisy, ROWS)) == "Runs(12 finished, none failed; parameters (1); outputs of shape (3,))"
    empty = Runs(np.empty((0, 2)), np.empty(0), np.empty(0, int), np.empty(0))
    assert "0 finished" in repr(empty)
    assert empty.failure_rate == 0.0


def test_public_names():
    for name in kernelbayes.simulation.__all__:
        assert getattr(kernelbayes.simulation, name).__doc__


def test_a_misspelt_name_is_named():
    def queue(arrive, serve):
        return arrive + serve

    with pytest.raises(ValueError, match="no argument 'arive'; its arguments are arrive, serve"):
        simulate(queue, np.ones((3, 2)), names=["arive", "serve"])

"""The median heuristic against distances counted one by one."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import pdist

import kernelbayes as kb


def brute_force(rows):
    distances = (math.dist(a, b) for a, b in itertools.combinations(np.asarray(rows).tolist(), 2))
    return statistics.median(d for d in distances if d > 0)


@pytest.mark.parametrize("shape", [(2, 1), (3, 2), (30, 4)])
def test_median_of_all_distances(shape):
    X = np.random.default_rng(0).normal(size=shape)
    found = kb.median_lengthscale(X)
    assert type(found) is float
    assert found == pytest.approx(brute_force(X), rel=1e-13)


def test_points_on_a_line_may_be_a_list():
    assert kb.median_lengthscale([0.0, 1.0, 3.0]) == 2.0
    assert kb.median_lengthscale([3, 0, 1]) == 2.0


def test_repeated_rows_are_not_distances():
    X = np.random.default_rng(0).normal(size=(12, 2))
    X = np.vstack([X, X[:5], X[:5], X[:5]])
    assert kb.median_lengthscale(X) == pytest.approx(brute_force(X), rel=1e-13)
    mostly_one_point = np.vstack([np.zeros((50, 2)), [[3.0, 4.0]]])
    assert kb.median_lengthscale(mostly_one_point) == 5.0


def test_constant_columns_play_no_part():
    X = np.random.default_rng(0).normal(size=(15, 2))
    with_constant = np.column_stack([X[:, 0], np.full(15, 7.0), X[:, 1]])
    assert kb.median_lengthscale(with_constant) == pytest.approx(kb.median_lengthscale(X), rel=1e-14)
    per_column = kb.median_lengthscale(with_constant, per_column=True)
    assert per_column[1] == 1.0
    np.testing.assert_allclose(per_column[[0, 2]], kb.median_lengthscale(X, per_column=True), rtol=1e-14)


def test_per_column_is_the_median_of_each_times_root_of_their_number():
    X = np.random.default_rng(0).normal(size=(15, 3)) * [1.0, 10.0, 0.1]
    wanted = [math.sqrt(3) * brute_force(X[:, [j]]) for j in range(3)]
    np.testing.assert_allclose(kb.median_lengthscale(X, per_column=True), wanted, rtol=1e-13)


@settings(derandomize=True, max_examples=25, deadline=None)
@given(
    X=arrays(np.float64, (6, 2), elements=st.integers(-9, 9).map(float), unique=True),
    factor=st.sampled_from([0.125, 0.5, 8.0, 1024.0]),
)
def test_lengthscales_follow_the_units_of_the_data(X, factor):
    scales = kb.median_lengthscale(X, per_column=True)
    np.testing.assert_array_equal(kb.median_lengthscale(X * [1.0, factor], per_column=True), scales * [1.0, factor])
    assert kb.median_lengthscale(X * factor) == pytest.approx(factor * kb.median_lengthscale(X), rel=1e-14)
    assert kb.median_lengthscale(X + 3.0) == pytest.approx(kb.median_lengthscale(X), rel=1e-13)
    assert kb.median_lengthscale(X[::-1]) == kb.median_lengthscale(X)


@pytest.mark.parametrize("n", [1001, 1700])
def test_many_rows_are_thinned_without_chance(n):
    X = np.random.default_rng(0).normal(size=(n, 3))
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    found = kb.median_lengthscale(X)
    assert found == kb.median_lengthscale(X.copy())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert found == pytest.approx(np.median(pdist(X)), rel=0.05)
    per_column = [math.sqrt(3) * np.median(pdist(X[:, [j]])) for j in range(3)]
    np.testing.assert_allclose(kb.median_lengthscale(X, per_column=True), per_column, rtol=0.05)


def test_up_to_a_thousand_rows_all_count():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    assert kb.median_lengthscale(X) == pytest.approx(np.median(pdist(X)), rel=1e-14)


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("X", [[1.0], [[1.0, 2.0]], np.full((9, 2), 3.0), np.zeros(1500)], ids=np.shape)
def test_no_two_distinct_points(X, per_column):
    with pytest.raises(ValueError, match=r"^X has no two distinct points"):
        kb.median_lengthscale(X, per_column=per_column)


@pytest.mark.parametrize("bad", [[], [np.nan, 1.0], [["a"]], [[1.0], [1.0, 2.0]], np.zeros((2, 2, 2))], ids=str)
def test_bad_input_is_named(bad):
    with pytest.raises(ValueError, match=r"^X\b"):
        kb.median_lengthscale(bad)


def test_the_result_is_a_lengthscale():
    X = np.random.default_rng(0).normal(size=(150, 3)) * [1.0, 50.0, 0.02]
    K = kb.Gaussian(kb.median_lengthscale(X, per_column=True)).gram(X)
    assert 0.4 < np.median(K[np.triu_indices(150, 1)]) < 0.8

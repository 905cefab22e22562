"""The search without gradients: a known minimum, bounds, budget, and objectives that fail."""

import numpy as np
import pytest

from kernelbayes.learning._search import pattern_search

LOWER, UPPER = np.full(3, -10.0), np.full(3, 10.0)


def test_it_finds_the_minimum_of_a_bowl_to_the_last_step():
    centre = np.array([1.3, -2.1, 0.4])
    found = pattern_search(
        lambda p: float(((p - centre) ** 2).sum()), np.zeros(3), np.ones(3), LOWER, UPPER, budget=200, smallest=0.01
    )
    assert np.abs(found.point - centre).max() < 0.02
    assert found.value == pytest.approx(((found.point - centre) ** 2).sum())


def test_it_keeps_to_its_bounds_and_its_budget():
    calls = []

    def falling(p):
        calls.append(p.copy())
        return float(p.sum())

    found = pattern_search(falling, np.zeros(3), np.ones(3), np.array([-2.0, -1.0, 0.0]), UPPER, budget=50)
    np.testing.assert_array_equal(found.point, [-2.0, -1.0, 0.0])
    assert all((p >= [-2.0, -1.0, 0.0]).all() for p in calls)
    assert len({p.tobytes() for p in calls}) == len(calls) == found.evaluations  # nothing is evaluated twice
    calls.clear()
    assert pattern_search(falling, np.zeros(3), np.ones(3), LOWER, UPPER, budget=7).evaluations == len(calls) == 7


def test_it_steps_back_from_what_cannot_be_evaluated():
    def wall(p):
        return float("nan") if p[0] > 0.9 else float((p[0] - 2.0) ** 2)

    found = pattern_search(wall, np.zeros(1), np.ones(1), LOWER[:1], UPPER[:1], budget=40, smallest=0.1)
    assert 0.7 < found.point[0] <= 0.9


def test_with_nothing_to_choose_the_start_is_evaluated_once():
    found = pattern_search(lambda p: 3.0, np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0), budget=10)
    assert found.value == 3.0
    assert found.evaluations == 1

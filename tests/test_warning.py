"""Warnings point at the line that called the library, however deep in it they arise."""

import warnings

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb


def failing(mu, rng):
    if mu > 1:
        raise RuntimeError("too much")
    return mu + 0.3 * rng.normal()


def simulations_that_fail():
    kb.infer(failing, {"mu": (-3, 3)}, 0.5, simulations=60, random_state=0)


def a_far_observation():
    z = np.random.default_rng(0).normal(size=(60, 1))
    kb.KernelBayesRule(random_state=0).fit(z, z).posterior([50.0])


def a_far_point():
    z = np.linspace(0, 1, 60)[:, None]
    kb.ConditionalEmbedding(random_state=0).fit(z, np.sin(9 * z)).predict([[50.0]])


def too_few_evaluations():
    kb.integrate(lambda x: np.exp(30 * x[:, 0]), stats.norm(0, 1), n=20, random_state=0)


@pytest.mark.parametrize("call", [simulations_that_fail, a_far_observation, a_far_point, too_few_evaluations])
def test_a_warning_points_at_the_line_of_the_user(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}
    first = call.__code__.co_firstlineno
    assert all(first < warning.lineno <= first + 2 for warning in caught)

"""The filters that the kernel filters are compared with, against exact answers and known figures."""

import math
import sys

import numpy as np
import pytest

from kernelbayes.experiments import _baselines as baselines
from kernelbayes.experiments._baselines import (
    NeighbourLikelihood,
    ProcessLikelihood,
    extended_kalman,
    nearest_observation,
    particle_filter,
    regression,
)
from kernelbayes.experiments._systems import OSCILLATORY, ROTATION, Circle, StateSpace, simulate


def _squared(found, truth):
    return float(((found - truth) ** 2).sum(1).mean())


def _tracked(system, repeats):
    """Errors over 200 steps of the two filters that know the system, run by run."""
    rows = []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        run = simulate(system, 200, rng)
        rows.append(
            [
                _squared(extended_kalman(system, run.observations), run.states),
                _squared(particle_filter(system, run.observations, rng, particles=500), run.states),
            ]
        )
    return np.array(rows).T


# Known from 20 runs each: 0.045 for both filters on the circle; 0.067 and 0.054 on the flower, with standard errors of
# about 0.0012. Run by run the errors vary by 0.004 to 0.007; the margins are three standard errors of the difference.


def test_filters_that_know_the_rotation():
    pytest.importorskip("filterpy")
    kalman, particles = _tracked(ROTATION, 25)
    assert kalman.mean() == pytest.approx(0.045, abs=0.003)
    # the step is nearly linear, so that the two agree run by run
    np.testing.assert_allclose(kalman, particles, atol=0.003)
    assert kalman.mean() == pytest.approx(particles.mean(), abs=0.0008)


def test_filters_that_know_the_oscillation():
    pytest.importorskip("filterpy")
    kalman, particles = _tracked(OSCILLATORY, 25)
    assert kalman.mean() == pytest.approx(0.067, abs=0.005)
    assert particles.mean() == pytest.approx(0.054, abs=0.004)
    assert (particles < kalman).all()  # linearising costs something in every run


def test_extended_kalman_needs_its_extra(monkeypatch):
    for name in ("filterpy", "filterpy.kalman"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"kernelbayes\[experiments\]"):
        extended_kalman(ROTATION, np.zeros((3, 2)))


def test_extended_kalman_starts_where_the_system_does():
    pytest.importorskip("filterpy")
    means = extended_kalman(Circle(0.3), np.array([[5.0, 5.0], [1.0, 0.0]]))
    start = np.array([1.0, 0.0])
    np.testing.assert_allclose(means[0], start)  # known, whatever is observed
    # then half way: the state has the variance of the process noise, which equals that of the observation
    np.testing.assert_allclose(means[1], (start + ROTATION.step(start)) / 2)


def _kalman(run, controlled):
    """The exact filter of models 1a and 1b, by the scalar recursion."""
    mean, variance, means = 0.0, 1.0 / 0.19, []
    for t, y in enumerate(run.observations[:, 0]):
        if t:
            mean = 0.9 * mean + (run.controls[t, 0] / math.sqrt(2) if controlled else 0.0)
            variance = 0.81 * variance + (0.5 if controlled else 1.0)
        gain = variance / (variance + 1.0)
        mean, variance = mean + gain * (y - mean), (1.0 - gain) * variance
        means.append([mean])
    return np.array(means)


@pytest.mark.parametrize("name", ["1a", "1b"])
def test_particle_filter_meets_the_kalman_filter(name):
    rng = np.random.default_rng(0)
    run = simulate(StateSpace(name), 200, rng)
    found = particle_filter(StateSpace(name), run.observations, rng, particles=5000, controls=run.controls)
    gap = found - _kalman(run, name == "1b")
    assert np.sqrt((gap**2).mean()) < 0.03  # the posterior's standard deviation is 0.77, over sqrt(5000) that is 0.011


def test_systematic_resampling_keeps_shares():
    weights = np.random.default_rng(0).dirichlet(np.ones(50))
    counts = np.bincount(
        baselines._systematic(np.repeat(weights, 40) / 40, np.random.default_rng(1)) // 40, minlength=50
    )
    assert counts.sum() == 2000
    assert np.abs(counts - 2000 * weights).max() <= 1.0


def test_neighbour_likelihood_is_a_weighted_mixture():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    new, at = rng.normal(size=(2, 3)), rng.normal(size=(5, 2))
    found = NeighbourLikelihood(x, y, 4, 0.5)(new)(1, at)
    order = np.argsort(((y - new[1]) ** 2).sum(1))[:4]
    h = 0.5 * x.std(0)
    wanted = [
        sum(w * np.exp(-0.5 * (((p - x[j]) / h) ** 2).sum()) for w, j in zip((4, 3, 2, 1), order, strict=True))
        for p in at
    ]
    np.testing.assert_allclose(found, np.log(wanted), rtol=1e-10)
    assert np.isfinite(NeighbourLikelihood(x, y, 4, 0.5)(new)(0, at + 100.0)).all()


def _rmse(model, test, rng, likelihood):
    found = particle_filter(
        model,
        test.observations,
        rng,
        particles=1000,
        controls=test.controls,
        log_likelihood=likelihood(test.observations),
    )
    return float(np.sqrt(((found - test.states) ** 2).mean()))


def test_neighbour_likelihood_is_chosen_by_filtering():
    """On new data the choice is near the best of the grid, far from the worst."""
    model, rng = StateSpace("4a"), np.random.default_rng(0)
    pairs, test = simulate(model, 400, rng), simulate(model, 300, rng)
    errors = {
        (k, h): _rmse(model, test, rng, NeighbourLikelihood(pairs.states, pairs.observations, k, h))
        for k in baselines.NEIGHBOURS
        for h in baselines.BANDWIDTHS
    }
    chosen = NeighbourLikelihood.chosen(model, pairs, np.random.default_rng(1))
    assert errors[chosen.neighbours, chosen.bandwidth] < 1.06 * min(errors.values())
    assert 1.06 * errors[chosen.neighbours, chosen.bandwidth] < max(errors.values())
    few = simulate(model, 20, rng)
    assert NeighbourLikelihood.chosen(model, few, rng).neighbours <= 10


def test_learned_likelihoods_filter():
    """On a linear model the process comes within a few percent of the exact filter, the neighbours further off."""
    model, excess = StateSpace("1b"), []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        pairs, test = simulate(model, 400, rng), simulate(model, 200, rng)
        exact = float(np.sqrt(((_kalman(test, True) - test.states) ** 2).mean()))
        process = _rmse(model, test, rng, ProcessLikelihood(pairs.states, pairs.observations))
        neighbours = _rmse(model, test, rng, NeighbourLikelihood.chosen(model, pairs, rng))
        excess.append([process / exact, neighbours / exact])
    process, neighbours = np.mean(excess, axis=0)
    assert process < 1.05
    assert 1.0 < neighbours < 1.6


def test_process_likelihood_learns_mean_and_noise():
    fall = -0.5 * ((math.sin(1) - math.sin(2)) ** 2 + (math.cos(1) - math.cos(2)) ** 2) / 0.09
    falls = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-3, 3, (500, 1))
        y = np.concatenate([np.sin(x), np.cos(x)], axis=1) + 0.3 * rng.normal(size=(500, 2))
        logs = ProcessLikelihood(x, y)(np.array([[np.sin(1.0), np.cos(1.0)]]))(0, np.array([[0.0], [1.0], [2.0]]))
        falls.append(logs - logs[1])
    np.testing.assert_allclose(np.mean(falls, axis=0), [fall, 0.0, fall], rtol=0.2)
    with pytest.raises(ValueError, match="states on the line"):
        ProcessLikelihood(np.zeros((5, 2)), np.zeros((5, 1)))


def test_estimates_without_memory():
    rng = np.random.default_rng(0)
    pairs, test = simulate(ROTATION, 300, rng), simulate(ROTATION, 200, rng)
    found = nearest_observation(pairs.states, pairs.observations, test.observations)
    away = ((test.observations[:, None] - pairs.observations) ** 2).sum(-1)
    np.testing.assert_array_equal(found, pairs.states[away.argmin(1)])
    # 0.067 in the mean over runs of 300 pairs; the observations themselves are off by 0.08
    error = _squared(regression(pairs.states, pairs.observations, test.observations), test.states)
    assert error == pytest.approx(0.067, abs=0.009)
    assert error < _squared(test.observations, test.states)

"""The systems of the filtering experiments: moves, observations and densities against closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from kernelbayes.experiments import _systems as systems
from kernelbayes.experiments._systems import MODELS, OSCILLATORY, ROTATION, Circle, Pendulum, StateSpace, simulate

# ------------------------------------------------------------------------------------------------------- circles


def test_rotation_turns_by_omega_and_forgets_the_radius():
    at = np.array([[2.0, 0.0], [0.0, -0.5], [-1.0, 1.0]])
    angles = np.array([0.0, -np.pi / 2, 3 * np.pi / 4]) + 0.3
    np.testing.assert_allclose(ROTATION.step(at), np.stack([np.cos(angles), np.sin(angles)], axis=1), atol=1e-14)


def test_oscillatory_radius_has_eight_petals():
    angles = np.linspace(-np.pi, np.pi, 1601)[:-1]
    moved = OSCILLATORY.step(3.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1))
    radius = np.hypot(*moved.T)
    np.testing.assert_allclose(radius, 1.0 + 0.4 * np.sin(8 * angles), atol=1e-12)
    assert np.sum((radius[1:-1] > radius[:-2]) & (radius[1:-1] > radius[2:])) == 8


@pytest.mark.parametrize("system", [ROTATION, OSCILLATORY])
def test_jacobian_is_the_derivative_of_the_step(system):
    for at in np.random.default_rng(0).normal(size=(20, 2)):
        h = 1e-6 * np.eye(2)
        numeric = np.stack([(system.step(at + d) - system.step(at - d)) / 2e-6 for d in h], axis=1)
        np.testing.assert_allclose(system.jacobian(at), numeric, rtol=1e-6, atol=1e-6)


def test_circle_noise_and_start():
    run = simulate(Circle(0.3, noise=0.2), 20_000, np.random.default_rng(0))
    np.testing.assert_array_equal(run.states[0], [1.0, 0.0])
    assert run.controls is None
    for residual in (run.states[1:] - ROTATION.step(run.states[:-1]), run.observations - run.states):
        np.testing.assert_allclose(np.cov(residual.T), 0.04 * np.eye(2), atol=0.0015)  # 3.5 standard errors


def test_circle_likelihood_is_that_of_a_normal():
    x = np.random.default_rng(0).normal(size=(7, 2))
    found = ROTATION.log_likelihood(np.array([0.5, -0.3]), x)
    wanted = [stats.multivariate_normal(row, 0.04 * np.eye(2)).logpdf([0.5, -0.3]) for row in x]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


# ---------------------------------------------------------------------------------------------------- table 4.2


def _moved(name, start, control=None, n=100_000):
    states = np.full((n, 1), start)
    return StateSpace(name).transition(np.random.default_rng(1), states, 1, control)[:, 0]


@pytest.mark.parametrize("number", "123")
def test_autoregressions_move_with_unit_variance(number):
    free = _moved(number + "a", 2.0)
    pushed = _moved(number + "b", 2.0, np.array([-1.5]))
    assert free.mean() == pytest.approx(1.8, abs=0.015)
    assert free.var() == pytest.approx(1.0, abs=0.02)
    assert pushed.mean() == pytest.approx(1.8 - 1.5 / math.sqrt(2), abs=0.015)
    assert pushed.var() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("name", "control", "sd", "push"), [("4a", None, math.sqrt(2), 0.0), ("4b", [0.8], 1.0, 0.8)])
def test_model_four_jumps_to_its_lower_edge(name, control, sd, push):
    moved = _moved(name, 2.0, None if control is None else np.array(control))
    outside = stats.norm(2.0 + push, sd).sf(3.0) + stats.norm(2.0 + push, sd).cdf(-3.0)
    assert np.mean(moved == -3.0) == pytest.approx(outside, abs=0.006)
    assert np.abs(moved).max() <= 3.0


@pytest.mark.parametrize("name", MODELS)
def test_starts_and_controls(name):
    model, rng = StateSpace(name), np.random.default_rng(0)
    start = model.initial(rng, 50_000)[:, 0]
    wanted = stats.uniform(-3, 6) if name[0] == "4" else stats.norm(0, math.sqrt(1 / 0.19))
    assert stats.kstest(start, wanted.cdf).pvalue > 1e-3
    run = simulate(model, 30, rng)
    assert run.states.shape == (30, 1)
    assert run.observations.shape == (30, 10 if name[0] == "3" else 1)
    assert (run.controls is None) == (name[1] == "a")
    if run.controls is not None:
        assert run.controls.shape == (30, 1)


def test_controls_of_a_row_move_to_that_row():
    """With the noise averaged out, x_t - 0.9 x_(t-1) follows u_t and not its neighbours."""
    run = simulate(StateSpace("1b"), 20_000, np.random.default_rng(0))
    step = (run.states[1:] - 0.9 * run.states[:-1])[:, 0]
    own, late = (np.corrcoef(step, run.controls[rows, 0])[0, 1] for rows in (slice(1, None), slice(None, -1)))
    assert own == pytest.approx(math.sqrt(0.5), abs=0.02)
    assert abs(late) < 0.03


@pytest.mark.parametrize("name", ["1a", "2a", "4a"])
@pytest.mark.parametrize("state", [-3.0, 0.4, 2.9])
def test_likelihoods_are_densities_of_what_is_observed(name, state):
    model = StateSpace(name)

    def density(y):
        return math.exp(float(model.log_likelihood(np.array([y]), np.array([[state]]))[0]))

    edges = [-9.0, -3.0, -1.0, 0.0, 1.0, 3.0, 9.0] if name == "4a" else [-15.0, -3.0, -1.0, 0.0, 1.0, 3.0, 15.0]
    masses = [integrate.quad(density, a, b, limit=200)[0] for a, b in itertools.pairwise(edges)]
    assert sum(masses) == pytest.approx(1.0, abs=1e-6)
    seen = model.observe(np.random.default_rng(0), np.full((100_000, 1), state))[:, 0]
    np.testing.assert_allclose(np.histogram(seen, edges)[0] / 100_000, masses, atol=0.006)


def test_ten_observations_multiply():
    y, x = np.random.default_rng(0).normal(size=10), np.array([[-1.0], [2.0]])
    found = StateSpace("3b").log_likelihood(y, x)
    wanted = [stats.norm(0, 0.5 * math.exp(v / 2)).logpdf(y).sum() for v in (-1.0, 2.0)]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match="the models are 1a, 1b"):
        StateSpace("5a")


# ----------------------------------------------------------------------------------------------------- pendulum


def _swing(seconds, away=0.02, **changed):
    """Angles about the lowest point, every millisecond, without noise."""
    pendulum = Pendulum(process_sd=0.0, dt=1e-3, **changed)
    states = [np.array([[math.pi + away, 0.0]])]
    for t in range(round(1000 * seconds)):
        states.append(pendulum.transition(np.random.default_rng(0), states[-1], t, None))
    return np.concatenate(states)[:, 0] - math.pi


PERIOD = 2 * math.pi * math.sqrt(2 * 0.5 / (3 * 9.81))  # of small swings of a rod


def test_pendulum_swings_with_its_period():
    angle = _swing(PERIOD, friction=0.0)
    assert angle[-1] == pytest.approx(0.02, rel=1e-3)
    assert angle[len(angle) // 2] == pytest.approx(-0.02, rel=1e-3)


def test_pendulum_loses_energy_at_the_rate_of_its_friction():
    """Small swings decay as exp(-b t / 2 I), with I = m l^2 / 3, and slow down a little."""
    rate = 1.0 / (2 * 5 * 0.5**2 / 3)
    period = 2 * math.pi / math.sqrt((2 * math.pi / PERIOD) ** 2 - rate**2)
    angle = _swing(2 * period)
    assert angle[-1] == pytest.approx(0.02 * math.exp(-rate * 2 * period), rel=5e-3)


def test_pendulum_falls_from_the_top():
    still = Pendulum(process_sd=0.0)
    fallen = still.transition(np.random.default_rng(0), np.array([[0.3, 0.0], [0.0, 0.0], [math.pi, 0.0]]), 1, None)
    assert fallen[0, 0] > 0.3
    np.testing.assert_allclose(fallen[1:], [[0.0, 0.0], [math.pi, 0.0]], atol=1e-12)


def test_pendulum_starts_kicks_and_outliers():
    pendulum, rng = Pendulum(), np.random.default_rng(0)
    start = pendulum.initial(rng, 100_000)
    np.testing.assert_allclose(start.min(0), [0.1 * np.pi, -0.5 * np.pi], atol=1e-3)
    np.testing.assert_allclose(start.max(0), [0.4 * np.pi, 0.5 * np.pi], atol=1e-3)
    at = np.tile([0.5, -0.3], (100_000, 1))
    kicked, still = (p.transition(rng, at, 1, None) for p in (pendulum, Pendulum(process_sd=0.0)))
    np.testing.assert_array_equal(kicked[:, 0], still[:, 0])
    assert (kicked - still)[:, 1].mean() == pytest.approx(0.0, abs=0.012)
    assert kicked[:, 1].std() == pytest.approx(1.0, abs=0.01)
    noise = pendulum.observe(rng, at) - at
    assert noise[:, 1].var() == pytest.approx(0.1, rel=0.02)
    assert noise[:, 0].mean() == pytest.approx(0.1 * math.pi / 4, abs=0.005)
    assert noise[:, 0].var() == pytest.approx(0.1 + 0.09 * (math.pi / 4) ** 2, rel=0.02)
    assert len(simulate(pendulum, 30, rng).observations) == 30


def test_pendulum_likelihood_integrates_to_one():
    grid = np.linspace(-2.5, 2.5, 201)
    pendulum, at = Pendulum(), np.array([[0.3, -0.2]])
    total = sum(math.exp(float(pendulum.log_likelihood(np.array([a, b]), at)[0])) for a in grid for b in grid[::4])
    assert total * (grid[1] - grid[0]) * 4 * (grid[1] - grid[0]) == pytest.approx(1.0, abs=1e-6)
    offset = pendulum.log_likelihood(np.array([0.3 + math.pi / 4, -0.2]), at) - pendulum.log_likelihood(
        np.array([0.3 - math.pi / 4, -0.2]), at
    )
    assert offset[0] > 0.7  # an outlier upwards is expected, one downwards is not


def test_runs_repeat_with_their_seed():
    for system in (systems.ROTATION, StateSpace("4b"), Pendulum()):
        first, second = (simulate(system, 20, np.random.default_rng(3)) for _ in range(2))
        np.testing.assert_array_equal(first.observations, second.observations)

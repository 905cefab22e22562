"""The simulators of likelihood-free inference against closed forms, plain loops, and published numbers."""

import contextlib
import math

import numpy as np
import pytest
from scipy import integrate, stats

from kernelbayes.experiments import _simulators as simulators
from kernelbayes.experiments._simulators import (
    BLOWFLY_TRUTH,
    RATES_TRUTH,
    TooManyEvents,
    blowflies,
    blowfly_prior,
    blowfly_statistics,
    lotka_volterra,
    peaks,
    rates_statistics,
    simulate_blowflies,
    simulate_rates,
)

# ------------------------------------------------------------------------------------------------ waiting times


def test_exact_posterior_of_the_rate():
    observed = simulators.waiting_times(np.array([0.1]), 15, np.random.default_rng(0))[0]
    shape, rate = simulators.exact_rate(observed)
    prior = stats.gamma(0.1, scale=10.0)

    def joint(theta):
        return prior.pdf(theta) * np.prod(theta * np.exp(-theta * observed))

    total = integrate.quad(joint, 1e-6, 1.0, points=[0.05, 0.1, 0.2])[0]
    for theta in (0.05, 0.1, 0.15):
        assert stats.gamma(shape, scale=1 / rate).pdf(theta) == pytest.approx(joint(theta) / total, rel=1e-6)


def test_waiting_times_and_their_prior():
    times = simulators.waiting_times(np.array([0.1, 5.0]), 20_000, np.random.default_rng(0))
    np.testing.assert_allclose(times.mean(1), [10.0, 0.2], rtol=0.03)
    np.testing.assert_allclose(times.std(1), [10.0, 0.2], rtol=0.03)
    assert simulators.rate_prior().from_gaussian([[0.0]])[0, 0] == pytest.approx(0.00593, rel=1e-3)  # the median


# ---------------------------------------------------------------------------------------------------- blowflies


def _parameters(**changed):
    named = dict(P=29.0, delta=0.2, N0=260.0, sigma_d=0.6, sigma_p=0.3, tau=7.0) | changed
    return np.log([list(named.values())])


@pytest.mark.parametrize(("tau", "lag"), [(7.0, 7), (0.2, 1), (3.4, 3), (400.0, 400)])
def test_blowflies_follow_the_recursion(tau, lag):
    """With hardly any noise the series is that of a plain loop."""
    found = blowflies(_parameters(tau=tau, sigma_d=1e-6, sigma_p=1e-6), np.random.default_rng(0))[0]
    N = [180.0] * lag
    for _ in range(230):
        N.append(29.0 * N[-lag] * math.exp(-N[-lag] / 260.0) + N[-1] * math.exp(-0.2))
    # a chaotic recursion magnifies rounding and what noise there is
    np.testing.assert_allclose(found[:100], N[lag + 50 : lag + 150], rtol=1e-2)
    assert found.shape == (180,)


def test_noise_of_births_and_deaths_has_mean_one():
    rng = np.random.default_rng(0)
    starving = blowflies(np.tile(_parameters(P=1e-300), (400, 1)), rng)
    eps = -np.diff(np.log(starving), axis=1) / 0.2
    assert eps.mean() == pytest.approx(1.0, abs=0.01)
    assert eps.var() == pytest.approx(0.36, rel=0.03)
    fleeting = blowflies(np.tile(_parameters(P=1.0, delta=1e5, N0=1e12, sigma_p=0.3, tau=1.0), (400, 1)), rng)
    e = fleeting[:, 1:] / fleeting[:, :-1]
    assert e.mean() == pytest.approx(1.0, abs=0.005)
    assert e.var() == pytest.approx(0.09, rel=0.03)


def test_statistics_of_a_small_series():
    """Eight values, so that quarters are pairs; differences are seven, so that the last quarter is a single one."""
    series = 1000.0 * np.array([[5.0, 1.0, 4.0, 2.0, 8.0, 3.0, 7.0, 6.0]])
    found = blowfly_statistics(series)[0]
    np.testing.assert_allclose(found[:4], np.log([1.5, 3.5, 5.5, 7.5]))
    np.testing.assert_allclose(found[4:8], [-4.5, -2.0 + 0.5, 3.5, 6.0])  # -5 -4 | -2 -1 | 3 4 | 6
    flat = blowfly_statistics(np.full((1, 8), 1000.0))[0]
    np.testing.assert_allclose(flat, np.zeros(10), atol=1e-11)


def _plain_peaks(series, threshold):
    high, low, looking_up, count = -math.inf, math.inf, True, 0
    for value in series:
        high, low = max(high, value), min(low, value)
        if looking_up and value < high - threshold:
            count, low, looking_up = count + 1, value, False
        elif not looking_up and value > low + threshold:
            high, looking_up = value, True
    return count


def test_peaks():
    assert peaks(np.array([[0.0, 3.0, 0.0, 1.0, 0.0, 4.0, 0.0]]), 2.0).tolist() == [2]
    assert peaks(np.array([[0.0, 3.0, 0.0, 1.0, 0.0, 4.0, 3.5]]), 2.0).tolist() == [1]  # it never falls from the last
    walks = np.random.default_rng(0).normal(size=(50, 180)).cumsum(1)
    for threshold in (0.5, 1.5, 5.0):
        assert peaks(walks, threshold).tolist() == [_plain_peaks(walk, threshold) for walk in walks]


def test_prior_of_blowflies():
    prior = blowfly_prior()
    z = prior.to_gaussian([[2.0, -1.5, 6.0, -1.0, -1.0, math.log(15)], [4.0, -1.0, 6.5, 0.0, 0.0, math.log(75)]])
    np.testing.assert_allclose(z, [[0.0] * 6, [1.0] * 6], atol=1e-12)


def test_prior_predictive_of_a_published_prior():
    """Medians of the statistics that others computed, under the prior of Park et al. (2016) for this problem."""
    means, sds = [2.0, -1.8, 6.0, -0.75, -0.5, 2.7], [2.0, 0.4, 0.5, 1.0, 1.0, 0.1]
    rng = np.random.default_rng(0)
    X = simulate_blowflies(rng.normal(means, sds, (2000, 6)), rng)
    assert np.isfinite(X).all()
    expected = [-0.79, 0.19, 1.08, 1.74, -0.62, -0.11, 0.01, 0.72, 6, 4]
    np.testing.assert_allclose(np.median(X, axis=0), expected, atol=0.13)


def test_known_parameters_give_several_outbreaks():
    X = simulate_blowflies(np.tile(BLOWFLY_TRUTH, (200, 1)), np.random.default_rng(0))
    assert 6 < X[:, 8].mean() < 11


# ----------------------------------------------------------------------------------------------- Lotka-Volterra


def test_without_meetings_both_kinds_have_known_means():
    """theta_1 = theta_4 = 0: predators die one by one, prey multiply."""
    rng = np.random.default_rng(0)
    with np.errstate(divide="ignore"):
        rates = np.log([0.0, 0.1, 0.08, 0.0])
    records = np.stack([lotka_volterra(rates, rng) for _ in range(200)])
    assert records.shape == (200, 151, 2)
    t = 0.2 * np.arange(151)
    np.testing.assert_allclose(records[:, :, 0].mean(0), 50 * np.exp(-0.1 * t), atol=0.9)
    np.testing.assert_allclose(records[:, :, 1].mean(0), 100 * np.exp(0.08 * t), rtol=0.06)


def test_meetings_feed_predators_and_cost_prey():
    """Only theta_1, only theta_4: one kind changes, at rates that are known at the start."""
    rng = np.random.default_rng(0)
    with np.errstate(divide="ignore"):
        fed = np.stack([lotka_volterra(np.log([1e-5, 0.0, 0.0, 0.0]), rng) for _ in range(200)])
        eaten = np.stack([lotka_volterra(np.log([0.0, 0.0, 0.0, 1e-3]), rng) for _ in range(200)])
    t = 0.2 * np.arange(1, 151)
    assert (fed[:, :, 1] == 100).all()
    assert (eaten[:, :, 0] == 50).all()
    # what is recorded is the state after the first event past each time: on average one event late
    np.testing.assert_allclose(fed[:, 1:, 0].mean(0), 50 * np.exp(1e-3 * t) + 1, atol=0.35)
    np.testing.assert_allclose(eaten[:, 1:, 1].mean(0), 100 * np.exp(-0.05 * t), atol=2.0)


def test_a_still_world_stays_as_it_is():
    with np.errstate(divide="ignore"):
        record = lotka_volterra(np.log(np.zeros(4)), np.random.default_rng(0))
    np.testing.assert_array_equal(record, np.tile([50.0, 100.0], (151, 1)))
    np.testing.assert_allclose(rates_statistics(record), [50, 100, 0, 0, 0, 0, 0, 0, 0])


def test_too_many_events_are_refused():
    with pytest.raises(TooManyEvents, match="more than 10,000 events"):
        lotka_volterra(np.array([-5.0, -5.0, 2.0, -5.0]), np.random.default_rng(0))


def test_statistics_of_a_record():
    states = np.random.default_rng(0).normal(size=(151, 2)).cumsum(0) + 100
    x, y = states.T
    zx, zy = ((v - v.mean()) / v.std(ddof=1) for v in (x, y))
    expected = [x.mean(), y.mean(), np.log(x.var(ddof=1) + 1), np.log(y.var(ddof=1) + 1)]
    expected += [sum(z[i] * z[i + lag] for i in range(151 - lag)) / 150 for z in (zx, zy) for lag in (1, 2)]
    expected.append(np.corrcoef(x, y)[0, 1])
    np.testing.assert_allclose(rates_statistics(states), expected)


def _that_end(rates, rng):
    """Statistics of the runs that are not abandoned."""
    found = []
    for row in rates:
        with contextlib.suppress(TooManyEvents):
            found.append(simulate_rates(row, rng))
    return found


def test_published_statistics_of_lotka_volterra():
    """The published observation at these rates is one of many, and so are the published averages over the prior."""
    rng = np.random.default_rng(1)
    X = np.stack(_that_end([RATES_TRUTH] * 30, rng))
    published = [95.2252, 51.9669, 8.67365, 8.0515, 0.980002, 0.934988, 0.977287, 0.926922, 0.0229362]
    assert (np.abs(published - np.median(X, axis=0)) < 4 * X.std(0)).all()
    outputs = _that_end(simulators.rates_prior().sample(300, random_state=0), rng)
    assert 0.06 < 1 - len(outputs) / 300 < 0.2  # 12.6 % of many
    pilot_mean = [219.8, 5.83, 6.637, 4.445, 0.8409, 0.738, 0.135, 0.0747, 0.1248]
    pilot_sd = [592.3, 54.66, 2.969, 0.9019, 0.1798, 0.2568, 0.2662, 0.203, 0.3758]
    away = (np.mean(outputs, axis=0) - pilot_mean) / pilot_sd
    assert np.abs(away).max() < 4 / np.sqrt(len(outputs))

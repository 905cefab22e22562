"""Statistics with long tails: how they are recognised, where normal scores take them, and what that is good for."""

import warnings

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes.lfi import GaussianEpsilon
from kernelbayes.lfi._epsilon import long_tailed, normal_scores, spreads
from oracles import even_draws


@pytest.mark.parametrize(
    ("distribution", "long"),
    [
        (stats.norm(3, 2), False),
        (stats.uniform(-1, 5), False),
        (stats.beta(0.5, 0.5), False),
        (stats.expon(), True),
        (stats.t(2), True),
        (stats.lognorm(1), True),
        (stats.loggamma(0.2), True),  # to the left
    ],
)
def test_tails_longer_than_those_of_a_normal_are_recognised(distribution, long):
    X = distribution.rvs((1000, 5), random_state=0)
    assert (long_tailed(X / spreads(X)) == long).all()


def test_scores_are_those_of_a_normal_sample_and_keep_the_order():
    rng = np.random.default_rng(0)
    X = np.exp(3.0 * rng.normal(size=(500, 2)))
    S, at = normal_scores(X, np.array([1.0, np.exp(3.0)]))
    normal = stats.norm.ppf((np.arange(500) + 0.5) / 500)
    np.testing.assert_allclose(np.sort(S, axis=0)[25:-25].T, [normal[25:-25]] * 2, atol=0.15)
    np.testing.assert_array_equal(np.argsort(S, axis=0), np.argsort(X, axis=0))
    np.testing.assert_allclose(at, [0.0, 1.0], atol=0.15)  # the median, and one standard deviation above


def test_scores_of_counts_and_beyond_the_sample():
    counts = np.random.default_rng(0).poisson(0.7, (200, 1)).astype(float)
    (scores, low), high = (
        normal_scores(counts, np.array([-2.0])),
        normal_scores(counts, np.array([counts.max() + 3]))[1],
    )
    assert len(np.unique(scores)) == len(np.unique(counts))
    assert low == pytest.approx(scores.min() - 2.0)
    assert high == pytest.approx(scores.max() + 3.0)


def rate_case(seed, rate):
    """Mean waiting times, over orders of magnitude, and the exact posterior of the rate."""
    rng = np.random.default_rng([seed, 15])
    prior = kb.Prior(rate=stats.gamma(0.1, scale=10.0))
    theta = prior.design(300, random_state=seed)
    x = rng.standard_exponential((300, 15)).mean(1)[:, None] / theta
    y = rng.standard_exponential(15).mean() / rate
    return prior, theta, x, [y], stats.gamma(15.1, scale=1.0 / (0.1 + 15 * y))


def test_a_long_tail_needs_no_logarithm():
    """Of short waits, beside which others are very long, the posterior is about three times as wide as the exact one without
    ranks, and about as wide with them; means are off by about 1.4 exact standard deviations, and by 0.2 to 0.6.
    """
    off, width = {None: [], False: []}, {None: [], False: []}
    for seed in range(6):
        prior, theta, x, y, exact = rate_case(seed, 3.0)
        truth = prior.to_gaussian(exact.ppf((np.arange(400) + 0.5) / 400)[:, None])
        for ranks in off:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", kb.PosteriorWarning)
                found = kb.infer(
                    parameters=theta,
                    outputs=x,
                    prior=prior,
                    observed=y,
                    method=kb.lfi.KELFI(epsilon_kernel=GaussianEpsilon(ranks=ranks)),
                    random_state=seed,
                )
            draws = prior.to_gaussian(found.sample(1000, random_state=0))
            off[ranks].append(float(abs(draws.mean() - truth.mean()) / truth.std()))
            width[ranks].append(float(draws.std() / truth.std()))
    assert np.mean(off[None]) < 0.7 * np.mean(off[False])
    assert 0.8 < np.mean(width[None]) < 1.6
    assert np.mean(width[False]) > 2.3


def test_normal_statistics_are_compared_as_before():
    X, y = even_draws.normals(200, 3, np.random.default_rng(0)), np.array([0.1, -0.5, 2.0])
    plain = GaussianEpsilon(ranks=False).bind(X, y, ("a", "b", "c"))
    chosen = GaussianEpsilon().bind(X, y, ("a", "b", "c"))
    np.testing.assert_array_equal(chosen.left, plain.left)
    np.testing.assert_array_equal(chosen.observed, plain.observed)

"""The kernel Monte Carlo filter: against the algorithm as printed, filters that know the system, and bad samplers."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import kernelbayes as kb
from kernelbayes.features._herding import Pool, herd
from kernelbayes.filters._particles import herd_each
from kernelbayes.filters._samplers import Sampler, arguments
from oracles.conditional import gaussian_gram
from oracles.monte_carlo import bootstrap, kalman, kernel_monte_carlo

STATIONARY = 1.0 / np.sqrt(1.0 - 0.9**2)


def walk(rng, states):
    """The transition of models 1a and 2a of Kanagawa (2016), table 4.2."""
    return 0.9 * states + rng.normal(size=states.shape)


def linear(n, seed):
    """States and observations of model 1a."""
    rng = np.random.default_rng(seed)
    states = simulated(walk, rng.normal(0, STATIONARY, (1, 1)), n, rng)
    return states, states + rng.normal(size=states.shape)


def simulated(move, start, n, rng):
    states = [start]
    for _ in range(n - 1):
        states.append(move(rng, states[-1]))
    return np.concatenate(states)


def jumping(rng, states):
    """The transition of model 4a: a random walk that falls to -3 when it leaves [-3, 3]."""
    a = states + np.sqrt(2.0) * rng.normal(size=states.shape)
    return np.where(np.abs(a) <= 3.0, a, -3.0)


def jumps(n, seed):
    """States and observations of model 4a: also the sensor wraps round at the edges."""
    rng = np.random.default_rng(seed)
    states = simulated(jumping, rng.uniform(-3, 3, (1, 1)), n, rng)
    b = states + rng.normal(size=states.shape)
    return states, np.where(np.abs(b) <= 3.0, b, b - 6.0 * np.sign(b))


def rmse(means, truth):
    return float(np.sqrt(((means - truth) ** 2).mean()))


Z_TRAIN, X_TRAIN = linear(300, 0)
SETTINGS = dict(kernel=kb.Gaussian(1.5), latent_kernel=kb.Gaussian(1.5), reg=1e-2, prior_reg=1e-3, tune=0)


@pytest.fixture(scope="module")
def fitted():
    return kb.KernelMonteCarloFilter(walk, stats.norm(0, STATIONARY), **SETTINGS, random_state=0).fit(X_TRAIN, Z_TRAIN)


# ---------------------------------------------------------------------------------------- the algorithm as printed


def scattered(states, time):
    """A transition that is not random, yet moves equal states apart."""
    return 0.9 * states + np.linspace(-1.0, 1.0, len(states))[:, None] * np.cos(time + np.arange(states.shape[1]))


@pytest.mark.parametrize("rule", ["iw", "kbr"])
@pytest.mark.parametrize("count", [40, 70])
def test_the_algorithm_as_printed(rule, count):
    """Kanagawa (2016), Algorithm 4 with the first l herded points copied, dense, with the same particles."""
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(40, 2))
    X = Z[:, :1] * Z[:, 1:] + 0.2 * rng.normal(size=(40, 1))
    new = [row for row in 0.8 * rng.normal(size=(12, 1))]
    new[4] = new[5] = None
    start = rng.normal(size=(35, 2))
    eps, delta = 1e-3, 1e-2 if rule == "iw" else 1e-4
    exact, _ = kernel_monte_carlo(
        X,
        Z,
        new,
        lambda a, b: gaussian_gram(a, b, 0.7),
        lambda a, b: gaussian_gram(a, b, 1.1),
        start,
        scattered,
        rule=rule,
        eps=eps,
        delta=delta,
        count=count,
        herded=15,
    )
    model = kb.KernelMonteCarloFilter(
        lambda rng, states, time: scattered(states, time),
        start,
        kb.Gaussian(0.7),
        kb.Gaussian(1.1),
        delta,
        eps,
        rule=rule,
        features=kb.Exact(),
        latent_features=kb.Exact(),
        particles=count,
        herded=15,
        tune=0,
    ).fit(X, Z)
    track = model.filter(new)
    np.testing.assert_allclose(track.weights, exact, atol=1e-8)
    np.testing.assert_array_equal(track.diagnostics.observed, [row is not None for row in new])


def test_herding_of_several_targets_is_that_of_each():
    rng = np.random.default_rng(0)
    pool = Pool((kb.Gaussian(1.0), rng.normal(size=(80, 2))))
    targets = np.stack([pool.embed(w) for w in rng.dirichlet(np.full(80, 0.1), 6)])
    together = herd_each(pool, targets, 25)
    np.testing.assert_array_equal(together, [herd(pool, target, 25) for target in targets])


def test_without_resampling_the_states_move_with_their_weights():
    """Weights that are even enough are kept by "ess", and by None always; then the next prior is linear in them."""
    still = dict(**SETTINGS, random_state=0)
    kept = kb.KernelMonteCarloFilter(lambda rng, z: z, None, **still, resample=None).fit(X_TRAIN, Z_TRAIN)
    rule = kb.KernelBayesRule(
        "iw", SETTINGS["kernel"], SETTINGS["latent_kernel"], reg=SETTINGS["reg"], prior_reg=SETTINGS["prior_reg"]
    ).fit(X_TRAIN, Z_TRAIN)
    track = kept.filter(np.array([[0.5], [1.0]]))
    again = rule.posterior([1.0], prior=track[0])
    assert track.mean[1] == pytest.approx(again.mean(), abs=0.02)
    # a posterior among 300 states rests on fewer than 150: it is resampled
    ess, always = (
        kb.KernelMonteCarloFilter(walk, None, **still, resample=how).fit(X_TRAIN, Z_TRAIN) for how in ("ess", "always")
    )
    np.testing.assert_array_equal(ess.filter(X_TRAIN[:5]).weights, always.filter(X_TRAIN[:5]).weights)


def test_even_weights_are_not_resampled():
    """A sensor that tells nothing leaves the weights of the prior, which "ess" keeps and "always" herds."""
    blind = np.random.default_rng(0).normal(size=Z_TRAIN.shape)
    settings = dict(SETTINGS, kernel=kb.Gaussian(100.0), random_state=0)
    tracks = [
        kb.KernelMonteCarloFilter(lambda rng, z: z, None, **settings, resample=how).fit(blind, Z_TRAIN).filter(blind[:3])
        for how in ("ess", None, "always")
    ]
    np.testing.assert_array_equal(tracks[0].weights, tracks[1].weights)
    assert np.abs(tracks[0].weights - tracks[2].weights).max() > 1e-6


# ------------------------------------------------------------------------------------- filters that know the system


def test_a_linear_system_is_followed_nearly_as_well_as_by_the_kalman_filter():
    """Model 1a with 400 pairs and settings chosen from them."""
    states, observations = linear(400, 5)
    model = kb.KernelMonteCarloFilter(walk, stats.norm(0, STATIONARY), tune=8, random_state=0)
    model.fit(observations, states)
    ours, exact, spread = [], [], []
    tests = [linear(100, seed) for seed in range(20, 26)]
    for (truth, _), track in zip(tests, model.filter([seen for _, seen in tests]), strict=True):
        ours.append(((track.mean - truth) ** 2).mean())
        spread.append(track.std.mean())
    for truth, seen in tests:
        means, variances = kalman(seen[:, 0], 0.9, 1.0, 1.0, 0.0, STATIONARY**2)
        exact.append(((means - truth[:, 0]) ** 2).mean())
    assert np.sqrt(np.mean(ours)) < 1.06 * np.sqrt(np.mean(exact))
    assert np.mean(spread) == pytest.approx(np.sqrt(variances[-1]), rel=0.15)

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
from oracles import even_draws
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


_DRAWN = even_draws.normals(300, 2, np.random.default_rng(0))
Z_TRAIN = STATIONARY * _DRAWN[:, :1]
X_TRAIN = Z_TRAIN + _DRAWN[:, 1:]
SETTINGS = dict(kernel=kb.Gaussian(1.5), latent_kernel=kb.Gaussian(1.5), reg=1e-4, prior_reg=1e-3, tune=0)


@pytest.fixture(scope="module")
def fitted():
    model = kb.KernelMonteCarloFilter(walk, stats.norm(0, STATIONARY), **SETTINGS, particles=1500, random_state=0)
    return model.fit(X_TRAIN, Z_TRAIN)


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
    new = list(0.8 * rng.normal(size=(12, 1)))
    new[4] = new[5] = None
    start = rng.normal(size=(35, 2))
    eps, delta = 1e-3, 1e-2 if rule == "iw" else 1e-4
    exact = kernel_monte_carlo(
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
        rule,
        kb.Gaussian(0.7),
        kb.Gaussian(1.1),
        reg=delta,
        prior_reg=eps,
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
        "kbr", SETTINGS["kernel"], SETTINGS["latent_kernel"], reg=SETTINGS["reg"], prior_reg=SETTINGS["prior_reg"]
    ).fit(X_TRAIN, Z_TRAIN)
    track = kept.filter(np.array([[0.5], [1.0]]))
    again = rule.posterior([1.0], prior=track[0])
    assert track.mean()[1] == pytest.approx(again.mean(), abs=0.02)
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
        kb.KernelMonteCarloFilter(lambda rng, z: z, None, **settings, resample=how)
        .fit(blind, Z_TRAIN)
        .filter(blind[:3])
        for how in ("ess", None, "always")
    ]
    np.testing.assert_array_equal(tracks[0].weights, tracks[1].weights)
    assert np.abs(tracks[0].weights - tracks[2].weights).max() > 1e-6


# ------------------------------------------------------------------------------------- filters that know the system


def test_a_linear_system_is_followed_as_well_as_by_the_kalman_filter():
    """Model 1a with 400 pairs that cover the states, in no order, and settings chosen by walks among them; of three logs."""
    tests = [linear(100, seed) for seed in range(20, 30)]
    exact = [kalman(seen[:, 0], 0.9, 1.0, 1.0, 0.0, STATIONARY**2) for _, seen in tests]
    truth, best = np.stack([states[:, 0] for states, _ in tests]), np.stack([means for means, _ in exact])
    errors, distances, spread, coverage = [], [], [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        states = rng.uniform(-7, 7, (400, 1))
        model = kb.KernelMonteCarloFilter(walk, stats.norm(0, STATIONARY), tune=3, random_state=0)
        model.fit(states + rng.normal(size=states.shape), states, ordered=False)
        tracks = model.filter([seen for _, seen in tests])
        ours = np.stack([track.mean()[:, 0] for track in tracks])
        errors.append(rmse(ours, truth))
        distances.append(rmse(ours, best))
        spread.append(np.mean([track.std()[5:].mean() for track in tracks]) / np.sqrt(exact[0][1][-1]))
        coverage += [track.score(states).coverage for track, (states, _) in zip(tracks, tests, strict=True)]
    assert np.mean(errors) < 1.05 * rmse(best, truth)
    assert np.mean(distances) < 0.25
    assert 0.9 < np.mean(spread) < 1.3  # a little wider, if anything
    assert 0.84 < np.mean(coverage) < 0.96


def test_a_log_of_a_linear_system_is_enough():
    """Model 1a: the pairs are a logged sequence, which leaves the edges to chance."""
    states, observations = linear(400, 6)
    model = kb.KernelMonteCarloFilter(walk, stats.norm(0, STATIONARY), tune=3, random_state=0)
    model.fit(observations, states)
    tests = [linear(100, seed) for seed in range(20, 30)]
    tracks = model.filter([seen for _, seen in tests])
    truth = np.concatenate([states for states, _ in tests])
    best = np.concatenate([kalman(seen[:, 0], 0.9, 1.0, 1.0, 0.0, STATIONARY**2)[0] for _, seen in tests])
    assert rmse(np.concatenate([track.mean() for track in tracks]), truth) < 1.08 * rmse(best[:, None], truth)
    assert 0 < model.score_ < 0.5
    assert 1 <= model.trials_ <= 3


def volatile(rng, states):
    """The sensor of model 2a: noise that grows with the state."""
    return 0.5 * np.exp(states / 2.0) * rng.normal(size=states.shape)


def test_knowing_the_transition_beats_learning_it():
    """Model 2a: the same rule and settings with a transition learned from 1,000 steps, and a filter that knows all."""
    rng = np.random.default_rng(0)
    pairs, path = rng.uniform(-6, 6, (300, 1)), simulated(walk, np.zeros((1, 1)), 1001, rng)
    seen = volatile(rng, pairs)
    settings = dict(SETTINGS, kernel=kb.Gaussian(kb.median_lengthscale(seen)), rule="kbr", random_state=0)
    known = kb.KernelMonteCarloFilter(walk, stats.norm(0, STATIONARY), **settings).fit(seen, pairs)
    learned = kb.KernelBayesFilter(**settings, transition_reg=1e-3)
    learned.fit(seen, pairs, transitions=(path[:-1], path[1:]), ordered=False)
    truth = [simulated(walk, rng.normal(0, STATIONARY, (1, 1)), 100, rng) for _ in range(8)]
    new = [volatile(rng, states) for states in truth]
    errors = [
        rmse(np.concatenate([track.mean() for track in model.filter(new)]), np.concatenate(truth))
        for model in (known, learned)
    ]
    best = [bootstrap(y, rng.normal(0, STATIONARY, (3000, 1)), walk, volatile_likelihood, rng) for y in new]
    assert errors[0] < 0.9 * errors[1]
    assert errors[0] < 1.3 * rmse(np.concatenate(best), np.concatenate(truth))


def volatile_likelihood(y, x):
    """Of model 2a, up to a constant."""
    return np.exp(-2.0 * (y * np.exp(-x[:, 0] / 2.0)) ** 2 - x[:, 0] / 2.0)


def test_states_and_observations_that_jump():
    """Model 4a with 300 pairs from a log, against a particle filter that knows the sensor too."""
    rng = np.random.default_rng(0)
    states, observations = jumps(300, 1)
    model = kb.KernelMonteCarloFilter(jumping, [stats.uniform(-3, 6)], tune=4, random_state=0)
    model.fit(observations, states)
    tests = [jumps(100, seed) for seed in range(20, 26)]
    truth = np.concatenate([states for states, _ in tests])
    ours = np.concatenate([track.mean() for track in model.filter([seen for _, seen in tests])])
    best = [bootstrap(seen, rng.uniform(-3, 3, (3000, 1)), jumping, wrapped_likelihood, rng) for _, seen in tests]
    assert rmse(ours, truth) < 1.06 * rmse(np.concatenate(best), truth)


def wrapped_likelihood(y, x):
    """Of model 4a, up to a constant: what was seen at y was at y, or jumped there from beyond the edges."""
    sources = [b for b in (y, y + 6.0, y - 6.0) if (abs(b[0]) <= 3.0) == (b is y)]
    return sum(np.exp(-0.5 * (b - x[:, 0]) ** 2) for b in sources)


@pytest.mark.parametrize("less", [dict(features=kb.IncompleteCholesky(20)), dict(subset=100)], ids=["rank", "subset"])
def test_the_short_cuts_stay_near_the_whole(less, fitted):
    """Algorithms 5 and 6, at the sizes of section 4.5.1."""
    short = clone(fitted).set_params(**less).fit(X_TRAIN, Z_TRAIN)
    tests = [linear(100, seed) for seed in range(20, 25)]
    truth = np.concatenate([states for states, _ in tests])
    errors = [
        rmse(np.concatenate([track.mean() for track in model.filter([seen for _, seen in tests])]), truth)
        for model in (short, fitted)
    ]
    assert errors[0] < 1.06 * errors[1]
    assert len(short.points_) == less.get("subset", 300)


def test_a_subset_is_taken_of_pairs():
    few = kb.KernelMonteCarloFilter(walk, **SETTINGS, subset=40, random_state=0).fit(X_TRAIN, Z_TRAIN)
    rows = kb.herd_subset(X_TRAIN, Z_TRAIN, 40, kernel=SETTINGS["kernel"], target_kernel=SETTINGS["latent_kernel"])
    np.testing.assert_array_equal(few.points_, Z_TRAIN[rows])
    np.testing.assert_array_equal(few.observations_, X_TRAIN[rows])
    assert len(few.filter(X_TRAIN[:3]).points) == 40


# ---------------------------------------------------------------------------------------- missing, streaming, random


def test_missing_observations_are_predicted(fitted):
    """Model 1a once more: mean and variance ahead of the last observation are known in closed form."""
    _, seen = linear(40, 21)
    seen = seen.copy()
    seen[20:28] = np.nan
    track = fitted.filter(seen)
    means, variances = kalman(seen[:, 0], 0.9, 1.0, 1.0, 0.0, STATIONARY**2)
    assert rmse(track.mean()[20:28, 0], means[20:28]) < 0.35
    np.testing.assert_allclose(track.std()[20:28, 0], np.sqrt(variances[20:28]), rtol=0.15)
    assert not track.diagnostics.observed[20:28].any()
    assert np.isnan(track.diagnostics.novelty[20:28]).all()
    nothing = fitted.filter(np.full((5, 1), np.nan))
    np.testing.assert_allclose(nothing.mean(), 0.0, atol=0.2)
    np.testing.assert_allclose(nothing.std(), STATIONARY, rtol=0.1)


def test_steps_and_predictions_continue_the_track(fitted):
    _, seen = linear(12, 22)
    seen[[3, 4, 9]] = np.nan
    whole = fitted.filter(seen)
    fitted.reset()
    beliefs = []
    for t, row in enumerate(seen):
        fitted.predict(2)  # changes nothing
        beliefs.append(fitted.step(None if t == 3 else row))
    np.testing.assert_allclose([b.weights for b in beliefs], whole.weights, atol=1e-12)
    assert [b.observed for b in beliefs] == list(whole.diagnostics.observed)
    ahead = np.concatenate([seen, np.full((4, 1), np.nan)])
    longer = fitted.filter(ahead)
    fitted.filter(seen)
    predicted = fitted.predict(4)
    np.testing.assert_allclose(predicted.weights, longer.weights[-4:], atol=1e-12)
    np.testing.assert_array_equal(fitted.predict(4).weights, predicted.weights)
    assert not predicted.diagnostics.observed.any()
    assert len(fitted.reset().predict(1)) == 1


def test_the_same_seed_gives_the_same_answer_in_any_company(fitted):
    sequences = [linear(length, seed)[1] for seed, length in enumerate((15, 30, 22))]
    together = fitted.filter(sequences)
    for seen, track in zip(sequences, together, strict=True):
        np.testing.assert_allclose(fitted.filter(seen).weights, track.weights, atol=1e-9)
    again = clone(fitted).fit(X_TRAIN, Z_TRAIN)
    np.testing.assert_array_equal(again.filter(sequences[0]).weights, fitted.filter(sequences[0]).weights)
    other = clone(fitted).set_params(random_state=1).fit(X_TRAIN, Z_TRAIN)
    assert np.abs(other.filter(sequences[0]).weights - together[0].weights).max() > 1e-6


@pytest.mark.parametrize(
    "initial",
    [
        lambda rng, n: rng.normal(2.0, 0.8, n),
        lambda rng, n: rng.normal(2.0, 0.8, (n, 1)),
        2.0 + 0.8 * even_draws.normals(500, 1, np.random.default_rng(0))[:, 0],
        stats.norm(2.0, 0.8),
        [stats.norm(2.0, 0.8)],
        kb.MeanEmbedding(2.0 + 0.8 * even_draws.normals(500, 1, np.random.default_rng(0)), kernel=kb.Gaussian(1.0)),
    ],
    ids=["sampler", "sampler of a table", "samples", "distribution", "list", "embedding"],
)
def test_beliefs_about_the_first_state(initial, fitted):
    """N(2, 0.8^2), and then an observation of 0: N(1.22, 0.62^2); or none: N(1.8, 1.23^2) one step on."""
    assert fitted.filter([[0.0]], initial=initial).mean()[0] == pytest.approx(1.22, abs=0.3)
    alone = fitted.filter([[np.nan], [np.nan]], initial=initial)
    assert alone.mean()[1] == pytest.approx(1.8, abs=0.15)
    assert alone.std()[1] == pytest.approx(1.23, abs=0.15)
    started = fitted.reset(initial).step([0.0])
    np.testing.assert_allclose(started.weights, fitted.filter([[0.0]], initial=initial).weights[0], atol=1e-12)
    fitted.reset()


# --------------------------------------------------------------------------------------------- time, control, backend


def test_time_and_controls_reach_the_transition():
    """States on a line that a control pushes, and time every third step: known exactly, and seen exactly."""
    rng = np.random.default_rng(0)
    told = []

    def pushed(rng, states, time, control):
        told.append((time, None if control is None else tuple(control), len(states)))
        return states + control + (time % 3 == 0) + 0.05 * rng.normal(size=states.shape)

    Z = rng.uniform(-4, 4, (300, 1))
    model = kb.KernelMonteCarloFilter(pushed, [[0.0]], **SETTINGS, random_state=0)
    model.set_params(latent_kernel=kb.Gaussian(0.5), prior_reg=1e-5).fit(Z + 0.3 * rng.normal(size=Z.shape), Z)
    controls = np.array([9.0, 0.5, 0.5, -1.0, 0.3, 0.2, -2.0])
    truth = np.cumsum(np.where(np.arange(7) == 0, 0.0, controls + (np.arange(7) % 3 == 0)))
    track = model.filter(np.full((7, 1), np.nan), controls)
    np.testing.assert_allclose(track.mean()[:, 0], truth, atol=0.15)
    assert [call[:2] for call in told[-6:]] == [(t, (controls[t],)) for t in range(1, 7)]
    ahead = model.predict(2, [[0.5], [0.5]])
    np.testing.assert_allclose(ahead.mean()[:, 0], truth[-1] + np.array([0.5, 1.0]), atol=0.15)
    assert [call[0] for call in told[-2:]] == [7, 8]
    model.reset()
    means = [model.step(None, u).mean()[0] for u in controls]
    np.testing.assert_allclose(means, track.mean()[:, 0], atol=1e-9)
    with pytest.raises(ValueError, match="controls has 6 rows where 7"):
        model.filter(np.full((7, 1), np.nan), controls[:6])
    with pytest.raises(ValueError, match="controls 1"):
        model.filter([np.full((7, 1), np.nan)] * 2, [controls])


def test_while_settings_are_chosen_each_row_has_its_own_time_and_control():
    """Rows with gaps are left out, and those after them keep their numbers."""
    rng = np.random.default_rng(0)
    told = set()

    def pushed(rng, states, t, u):
        told.add((t, float(u[0])))
        return 0.5 * states + u + rng.normal(size=states.shape)

    controls = rng.normal(size=(90, 1))
    states = np.zeros((90, 1))
    for t in range(1, 90):
        states[t] = 0.5 * states[t - 1] + controls[t] + rng.normal()
    seen = states + rng.normal(size=states.shape)
    seen[40] = np.nan
    model = kb.KernelMonteCarloFilter(pushed, tune=1, random_state=0)
    with pytest.warns(UserWarning, match="1 rows with gaps"):
        model.fit(seen, states, controls)
    assert {time for time, _ in told} <= set(range(1, 90)) - {40}
    assert len(told) > 60
    assert all(u == controls[time, 0] for time, u in told)


def test_walks_among_pairs_in_no_order_have_controls_too():
    rng = np.random.default_rng(0)
    told = []

    def pushed(rng, states, control):
        told.append(control)
        return 0.5 * states + control + rng.normal(size=states.shape)

    Z, U = rng.normal(size=(60, 1)), rng.normal(size=(60, 1))
    model = kb.KernelMonteCarloFilter(pushed, tune=1, random_state=0)
    model.fit(Z + rng.normal(size=Z.shape), Z, U, ordered=False)
    assert all(u is not None and u in U for u in told)
    assert np.isfinite(model.score_)


def test_jax_transitions_run_in_double_precision():
    kinds = set()

    @jax.jit
    def moved(key, states):
        kinds.add(states.dtype)
        return 0.9 * states + jax.random.normal(key, states.shape, dtype=states.dtype)

    def start(key, n):
        return STATIONARY * jax.random.normal(key, (n, 1))

    model = kb.KernelMonteCarloFilter(moved, start, **SETTINGS, backend="jax", random_state=0).fit(X_TRAIN, Z_TRAIN)
    _, seen = linear(100, 23)
    track = model.filter(seen)
    assert kinds == {jnp.dtype("float64")}
    assert type(track.weights) is np.ndarray
    means, _ = kalman(seen[:, 0], 0.9, 1.0, 1.0, 0.0, STATIONARY**2)
    assert rmse(track.mean()[:, 0], means) < 0.35
    np.testing.assert_array_equal(track.weights, model.filter(seen).weights)


class Moving:
    def __call__(self, rng, states):
        return states


@pytest.mark.parametrize(
    ("function", "placed", "named"),
    [
        (lambda rng, x: x, [], {}),
        (lambda rng, x, time: x, ["time"], {}),
        (lambda key, x, k: x, ["time"], {}),
        (lambda rng, x, u: x, ["control"], {}),
        (lambda rng, x, t, a: x, ["time", "control"], {}),
        (lambda rng, x, control, when: x, ["control", "time"], {}),
        (lambda rng, x, noise=0.1: x, [], {}),
        (lambda rng, x, noise=0.1, control=None: x, [], {"control": "control"}),
        (lambda rng, x, *, t: x, [], {"t": "time"}),
        (lambda rng, x, *rest: x, ["time", "control"], {}),
        (lambda rng, x, u, *rest: x, ["control", "time"], {}),
        (lambda *all: all[1], ["time", "control"], {}),
        (Moving(), [], {}),
    ],
)
def test_what_a_transition_takes(function, placed, named):
    found = arguments(function)
    assert (found.placed, found.named) == (placed, named)
    states = np.ones((3, 1))
    np.testing.assert_array_equal(Sampler(function, "numpy")(np.random.default_rng(0), states, 1, np.ones(1)), states)


# ------------------------------------------------------------------------------------------------------- bad input


def late(value):
    """A transition that goes wrong at time 3."""
    return lambda rng, states, time: walk(rng, states) if time < 3 else value(states)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            lambda z: np.ones((len(z), 2)),
            r"transition returned an array of shape \(300, 2\) at time 3 where \(300, 1\)",
        ),
        (lambda z: z[:-1], r"shape \(299, 1\) at time 3"),
        (
            lambda z: z * np.where(np.arange(len(z)) == 7, np.nan, 1.0)[:, None],
            "NaN at time 3 .first for state 7 of 300",
        ),
        (lambda z: z / 0.0, "infinity at time 3|NaN at time 3"),
        (lambda z: None, "returned None at time 3"),
        (lambda z: z.astype(str) + "a", "what transition returned at time 3 holds text"),
        (lambda z: [[1.0], [2.0, 3.0]], "at time 3 has rows of different lengths"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_a_bad_transition_returns(value, message):
    model = kb.KernelMonteCarloFilter(late(value), **SETTINGS, random_state=0).fit(X_TRAIN, Z_TRAIN)
    with pytest.raises(ValueError, match=message):
        model.filter(X_TRAIN[:5])


def test_an_error_in_a_transition_says_when():
    def broken(rng, states, time, control):
        if time == 2:
            raise KeyError("map")
        return states

    model = kb.KernelMonteCarloFilter(broken, **SETTINGS).fit(X_TRAIN, Z_TRAIN)
    with pytest.raises(KeyError) as caught:
        model.filter(X_TRAIN[:5])
    assert caught.value.__notes__ == [
        'raised by transition at time 2, without a control; its first argument was a numpy Generator (backend="numpy")'
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(transition=3.0), "transition must be a function"),
        (dict(transition=np.ones((3, 1))), "transition must be a function"),
        (dict(transition=lambda states: states), r"\(rng, states, time, control\) or fewer .* takes \(states\)"),
        (dict(transition=lambda a, b, c, d, e: b), "or fewer of them"),
        (dict(transition=lambda rng, x: x[:5]), r"shape \(5, 1\) at time 1"),
        (dict(initial=lambda rng, n: np.ones((n, 2))), r"initial returned an array of shape \(300, 2\)"),
        (dict(initial=lambda rng, n: np.full(n, np.nan)), "initial returned NaN"),
        (dict(initial=np.ones((5, 2))), r"initial is on points of shape \(2,\)"),
        (dict(initial="here"), "initial must be"),
        (dict(rule="dmo"), "rule must be one of 'iw', 'kbr', 'kbr-b1'"),
        (dict(resample="often"), "resample must be one of"),
        (dict(backend="torch"), "backend must be one of"),
        (dict(particles=0), "particles must be at least 2"),
        (dict(subset=1.5), "subset must be a whole number"),
        (dict(herded=0), "herded must be at least 1"),
        (dict(reg=-1.0), "reg must be positive"),
        (dict(kernel="gaussian"), "kernel must be a Kernel"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        kb.KernelMonteCarloFilter(**(dict(transition=walk) | SETTINGS | settings)).fit(X_TRAIN, Z_TRAIN)


def test_bad_data(fitted):
    fresh = clone(fitted)
    with pytest.raises(ValueError, match="observations has 300 rows but states has 299"):
        fresh.fit(X_TRAIN, Z_TRAIN[:-1])
    with pytest.raises(ValueError, match="states has 300 rows but controls has 4"):
        fresh.fit(X_TRAIN, Z_TRAIN, np.ones(4))
    with pytest.raises(ValueError, match="transition takes no control"):
        fitted.filter(X_TRAIN[:4], np.ones((4, 1)))
    with pytest.raises(ValueError, match=r"rows of shape \(2,\)"):
        fitted.filter(np.ones((4, 2)))
    with pytest.raises(ValueError, match="step takes one observation"):
        fitted.step(np.ones((4, 1)))
    with pytest.raises(ValueError, match="steps must be at least 1"):
        fitted.predict(0)


def test_a_transition_in_other_units_is_noticed():
    degrees = kb.KernelMonteCarloFilter(lambda rng, z: np.rad2deg(z) + 180.0, **SETTINGS)
    with pytest.warns(UserWarning, match="are its columns and units those of states"):
        degrees.fit(X_TRAIN, Z_TRAIN)


def test_a_transition_may_write_into_its_states(fitted):
    def in_place(rng, states):
        states *= 0.9
        states += rng.normal(size=states.shape)
        return states

    start = np.zeros((300, 1))
    model = kb.KernelMonteCarloFilter(in_place, start, **SETTINGS, random_state=0).fit(X_TRAIN, Z_TRAIN)
    gaps = np.full((4, 1), np.nan)
    np.testing.assert_array_equal(model.filter(gaps).weights, model.filter(gaps).weights)
    assert not start.any()
    np.testing.assert_array_equal(model.points_, Z_TRAIN)


def test_files_and_pickles(fitted, tmp_path):
    with pytest.raises(ValueError, match=r"KernelMonteCarloFilter.transition is a function, which cannot be saved"):
        kb.save(fitted, tmp_path / "filter.npz")
    track = fitted.filter(X_TRAIN[:6])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(2).weights, fitted.predict(2).weights)
    np.testing.assert_array_equal(again.filter(X_TRAIN[:6]).weights, track.weights)
    kb.save(track, tmp_path / "track.npz")
    np.testing.assert_array_equal(kb.load(tmp_path / "track.npz").weights, track.weights)


def test_each_sequence_has_random_numbers_of_its_own_in_any_company():
    drawn = []

    def noted(rng, states):
        drawn.append(rng.normal(size=states.shape))
        return 0.9 * states + drawn[-1]

    model = kb.KernelMonteCarloFilter(noted, tune=0, particles=40, random_state=0).fit(X_TRAIN[:60], Z_TRAIN[:60])
    first, second = np.array(X_TRAIN[:5]), np.array(X_TRAIN[10:16])
    second[2] = np.nan
    drawn.clear()
    together = model.filter([first, second])
    noise = [np.array(drawn[0]), np.array(drawn[1])]
    assert np.abs(np.corrcoef(noise[0].ravel(), noise[1].ravel())[0, 1]) < 0.9  # one stream for all would have one
    other, one = model.filter([second, first])
    for a, b in ((together[0], one), (together[1], other), (together[1], model.filter(second))):
        np.testing.assert_allclose(a.weights, b.weights, rtol=1e-6, atol=1e-9)
    model.reset()
    stepped = [model.step(row) for row in second]
    ahead = model.predict(2)
    np.testing.assert_allclose([s.weights for s in stepped], together[1].weights, rtol=1e-6, atol=1e-9)
    gone_on = model.filter(np.concatenate([second, np.full((2, 1), np.nan)]))
    np.testing.assert_allclose(ahead.weights, gone_on.weights[-2:], rtol=1e-6, atol=1e-9)

"""The kernel Bayes filter: against dense transcriptions of the papers, the Kalman filter, and its own promises."""

import os

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes.filters._belief import DeferredTrack
from kernelbayes.filters._sequences import read_log
from oracles import filters as oracle
from oracles.conditional import gaussian_gram

RULES = ("iw", "kbr", "kbr-b1", "kbr-a1", "kbr-a2", "dmo")
N, T = 60, 12
ETA, STEP_REG = 1e-2, 2e-2
X_SCALE, Z_SCALE = 1.1, 0.9
REGS = {"iw": 1e-2, "kbr": 1e-3, "kbr-b1": 0.2, "kbr-a1": 0.2, "kbr-a2": 1e-3, "dmo": 0.2, "subspace": 1e-3}


def circling(steps, rng, noise=0.2):
    """Observations and states of a target that goes round in circles."""
    angle, states = 0.0, np.empty((steps, 2))
    for t in range(steps):
        states[t] = np.array([np.cos(angle), np.sin(angle)]) + noise * rng.normal(size=2)
        angle = np.arctan2(states[t, 1], states[t, 0]) + 0.3
    return states + noise * rng.normal(size=states.shape), states


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, Z = circling(N, rng)
    return X, Z, *circling(T, rng)


def fixed(rule="iw", **settings):
    """A filter with every setting given."""
    chosen = dict(
        kernel=kb.Gaussian(X_SCALE),
        latent_kernel=kb.Gaussian(Z_SCALE),
        features=kb.Exact(),
        latent_features=kb.Exact(),
        reg=REGS[rule],
        prior_reg=ETA,
        transition_reg=STEP_REG,
        tune=0,
        random_state=0,
    )
    return kb.KernelBayesFilter(rule, **(chosen | settings))


def grams(X, Xt, Z):
    return gaussian_gram(X, X, X_SCALE), gaussian_gram(X, Xt, X_SCALE), gaussian_gram(Z, Z, Z_SCALE)


# ------------------------------------------------------------------------------------------- against the papers


@pytest.mark.parametrize("rule", RULES)
def test_filter_is_algorithm_2(rule, data):
    X, Z, Xt, _ = data
    K, Kt, L = grams(X, Xt, Z)
    wanted = oracle.algorithm_2(rule, K, Kt, L, ETA, STEP_REG, REGS[rule])
    found = fixed(rule).fit(X, Z).filter(Xt)
    assert np.abs(wanted).max() < 3.0  # a comparison of weights that have not blown up
    np.testing.assert_allclose(found.weights, wanted, atol=1e-7)
    np.testing.assert_allclose(found.mean(), wanted @ Z, atol=1e-7)


@pytest.mark.parametrize("rule", [*RULES, "subspace"])
@pytest.mark.parametrize("recipe", [kb.IncompleteCholesky(12), kb.Subspace(15), kb.RandomFourier(30)], ids=repr)
def test_on_a_representation_the_filter_is_that_of_its_own_kernel(rule, recipe, data):
    """With F and H the features of x and z, every rule is the paper's formula for the kernels F F' and H H'."""
    X, Z, Xt, _ = data
    model = fixed(rule, features=recipe, latent_features=recipe).fit(X, Z)
    recursion = model._recursion
    F, Ft, H = recursion.features.transform(X), recursion.features.transform(Xt), recursion.states.coordinates
    if rule == "subspace":
        wanted = oracle.subspace_filter(F @ F.T, F @ Ft.T, H, ETA, STEP_REG, REGS[rule])
    else:
        wanted = oracle.algorithm_2(rule, F @ F.T, F @ Ft.T, H @ H.T, ETA, STEP_REG, REGS[rule])
    np.testing.assert_allclose(model.filter(Xt).weights, wanted, atol=1e-6 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("references", [8, 25])
def test_subspace_filter_is_equation_23_whether_or_not_it_is_carried_by_a_tensor(references, data):
    X, Z, Xt, _ = data
    model = fixed("subspace", latent_features=kb.Subspace(references, whiten=False)).fit(X, Z)
    G = gaussian_gram(Z, model._recursion.states.features.points, Z_SCALE)
    K, Kt, _ = grams(X, Xt, Z)
    wanted = oracle.subspace_filter(K, Kt, G, ETA, STEP_REG, REGS["subspace"])
    track = model.filter(Xt)
    assert isinstance(track, DeferredTrack) == (references == 8)
    np.testing.assert_allclose(track.mean(), wanted @ Z, atol=1e-7)
    np.testing.assert_allclose(track.weights, wanted, atol=1e-7)


def test_dense_gram_matrices_give_the_same_filter(data):
    """A kernel of x so short that its Gram matrix has full rank takes the dual form."""
    X, Z, Xt, _ = data
    settings = dict(kernel=kb.Gaussian(0.15), reg=1e-2)
    model = fixed(**settings).fit(X, Z)
    assert model._recursion.features.rank == N
    K, Kt = gaussian_gram(X, X, 0.15), gaussian_gram(X, Xt, 0.15)
    wanted = oracle.algorithm_2("iw", K, Kt, grams(X, Xt, Z)[2], ETA, STEP_REG, 1e-2)
    np.testing.assert_allclose(model.filter(Xt).weights, wanted, atol=1e-8)


def test_default_representation_moves_the_mean_by_far_less_than_the_state_is_known(data):
    X, Z, Xt, _ = data
    exact = fixed().fit(X, Z).filter(Xt)
    default = fixed(features=None, latent_features=None).fit(X, Z).filter(Xt)
    assert np.abs(exact.mean() - default.mean()).max() < 1e-3 * exact.std().mean()


@pytest.mark.parametrize("rule", ["iw", "dmo"])
def test_controls_are_one_more_input_of_the_transition(rule, data):
    X, Z, Xt, _ = data
    rng = np.random.default_rng(1)
    U, Ut = rng.normal(size=(N, 1)), rng.normal(size=(T, 1))
    control = gaussian_gram(U[1:], U[1:], 0.8), gaussian_gram(U[1:], Ut, 0.8)
    wanted = oracle.algorithm_2(rule, *grams(X, Xt, Z), ETA, STEP_REG, REGS[rule], control=control)
    model = fixed(rule, control_kernel=kb.Gaussian(0.8)).fit(X, Z, U)
    np.testing.assert_allclose(model.filter(Xt, Ut).weights, wanted, atol=2e-5)  # pairs are factorised down to 1e-7


@pytest.mark.parametrize("rule", ["iw", "dmo", "subspace"])
def test_a_missing_observation_leaves_the_prediction(rule, data):
    X, Z, Xt, _ = data
    observed = np.ones(T, dtype=bool)
    observed[[3, 4, 9]] = False
    gaps = np.where(observed[:, None], Xt, np.nan)
    model = fixed(rule).fit(X, Z)
    track = model.filter(gaps)
    if rule != "subspace":
        wanted = oracle.algorithm_2(rule, *grams(X, Xt, Z), ETA, STEP_REG, REGS[rule], observed=observed)
        np.testing.assert_allclose(track.weights, wanted, atol=1e-7)
    np.testing.assert_array_equal(track.diagnostics.observed, observed)
    assert np.isnan(track.diagnostics.novelty[~observed]).all()
    as_list = [row if seen else None for row, seen in zip(Xt, observed, strict=True)]
    np.testing.assert_array_equal(model.filter(as_list).weights, track.weights)


@pytest.mark.parametrize("normalise", ["divide", "prior"])
@pytest.mark.parametrize("rule", ["iw", "kbr", "dmo", "subspace"])
def test_beyond_what_was_seen_the_mean_does_not_run_away(rule, normalise):
    """A log of one half of a room, and a walk through the other half with gaps in the readings."""
    rng = np.random.default_rng(0)

    def walk(steps, low):
        push, x = rng.choice([-0.15, 0.15], (steps, 1)), np.zeros((steps, 1))
        for t in range(1, steps):
            x[t] = np.clip(x[t - 1] + push[t] + 0.02 * rng.normal(), low, low + 1.5)
        return x + 0.1 * rng.normal(size=x.shape), x, push

    (X, Z, U), (Xt, _, Ut) = walk(150, -1.5), walk(200, 0.0)
    Xt[np.arange(200) // 10 % 2 == 1] = np.nan
    model = kb.KernelBayesFilter(rule, latent_kernel=kb.Gaussian(0.4), normalise=normalise, tune=0, random_state=0)
    for track in (model.fit(X, Z, U).filter(Xt, Ut), model.smooth(Xt, Ut)):
        assert np.abs(track.mean()).max() < 4.5  # off by no more than the room is wide


def test_smoother_is_bayes_rule_with_the_product_of_both_predictions(data):
    X, Z, Xt, _ = data
    wanted = oracle.two_filter_smoother(*grams(X, Xt, Z), ETA, STEP_REG, REGS["iw"])
    np.testing.assert_allclose(fixed().fit(X, Z).smooth(Xt).weights, wanted, atol=1e-7)


def test_smoothing_of_short_episodes_is_exact_where_the_kernels_are():
    """A chain of three states seen through a noisy sensor, in episodes of four steps that all start in state 0.

    With Kronecker kernels and next to no regularisation everything is a table of frequencies; states before and after a
    transition have different distributions. Against the forward-backward algorithm with those frequencies.
    """
    rng = np.random.default_rng(0)
    step = np.array([[0.1, 0.8, 0.1], [0.1, 0.2, 0.7], [0.5, 0.2, 0.3]])
    sensor = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])

    def episode(steps):
        z = [0]
        for _ in range(steps - 1):
            z.append(int(rng.choice(3, p=step[z[-1]])))
        return np.array([rng.choice(3, p=sensor[s]) for s in z]), np.array(z)

    logged = [episode(4) for _ in range(150)]
    X, Z = np.concatenate([x for x, _ in logged]), np.concatenate([z for _, z in logged])
    before, after = (np.concatenate([z[a:b] for _, z in logged]) for a, b in ((0, -1), (1, None)))
    seen = np.array([np.bincount(X[s == Z], minlength=3) / (s == Z).sum() for s in range(3)])
    moved = np.array([np.bincount(after[before == s], minlength=3) / (before == s).sum() for s in range(3)])
    new, _ = episode(6)
    alpha, beta = [np.bincount(Z, minlength=3) / len(Z) * seen[:, new[0]]], [np.ones(3)]
    for x in new[1:]:
        alpha.append((alpha[-1] @ moved) * seen[:, x])
    for x in new[:0:-1]:
        beta.insert(0, moved @ (seen[:, x] * beta[0]))
    wanted = np.array(alpha) * np.array(beta)
    wanted /= wanted.sum(1, keepdims=True)
    table = [x[:, None].astype(str) for x, _ in logged], [z[:, None].astype(str) for _, z in logged]
    model = kb.KernelBayesFilter(
        kernel=kb.Delta(),
        latent_kernel=kb.Delta(),
        reg=1e-9,
        prior_reg=1e-9,
        transition_reg=1e-9,
        tune=0,
        random_state=0,
    ).fit(*table)
    found = model.smooth(new[:, None].astype(str))
    labels = np.array([0, 1, 2]).astype(str)
    masses = np.array([[w[(model.points_ == s).ravel()].sum() for s in labels] for w in found.weights])
    np.testing.assert_allclose(masses, wanted, atol=1e-5)


# ------------------------------------------------------------------------------------------- against exact filters


def linear(steps, rng):
    """x' = 0.9 x + v, y = x + w: model 1a of Kanagawa (2016), table 4.2."""
    x = np.empty(steps)
    x[0] = rng.normal() / np.sqrt(1 - 0.81)
    for t in range(1, steps):
        x[t] = 0.9 * x[t - 1] + rng.normal()
    return x + rng.normal(size=steps), x


def test_approaches_the_kalman_filter_and_smoother_as_n_grows(capsys):
    """Distance of means, and of standard deviations, from the Kalman filter's, in its standard deviations: medians of five.

    Where the state lies within 1.75 of its standard deviations: a log of 100 rows holds next to none beyond, and a filter
    that is learned from examples does not extrapolate.
    """
    table = []
    for n in (100, 900):
        rows = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            y, x = linear(n, rng)
            new, truth = linear(300, rng)
            (mean, variance), (late, _) = oracle.kalman(new, 0.9, 1.0, 1.0, 0.0, 1 / 0.19)
            sd, usual = np.sqrt(variance[-1]), np.abs(mean) < 4.0
            model = kb.KernelBayesFilter(random_state=0, tune=4).fit(y, x)
            track, smooth = model.filter(new), model.smooth(new)
            rows.append(
                (
                    np.sqrt(np.mean((track.mean()[:, 0] - mean)[usual] ** 2)) / sd,
                    np.sqrt(np.mean((track.std()[:, 0] - np.sqrt(variance))[usual] ** 2)) / sd,
                    np.sqrt(np.mean((smooth.mean()[:, 0] - late)[usual] ** 2)) / sd,
                    smooth.score(truth).mse / track.score(truth).mse,
                    track.score(truth).coverage[0],
                )
            )
        table.append(np.median(rows, axis=0))
    with capsys.disabled():
        print("\n    n   mean     sd  smooth  smooth/filter  coverage")
        for n, row in zip((100, 900), table, strict=True):
            print(f"{n:5d}  {row[0]:.3f}  {row[1]:.3f}   {row[2]:.3f}          {row[3]:.3f}     {row[4]:.3f}")
    mean, sd, smooth, gain, coverage = np.transpose(table)
    for distance in (mean, sd, smooth):
        assert distance[1] < 0.8 * distance[0]
    assert mean[1] < 0.25
    assert sd[1] < 0.2
    assert smooth[1] < 0.3
    assert gain[1] < 0.9  # the exact smoother's is 0.73
    assert 0.85 < coverage[1] < 0.95


def test_prediction_of_several_steps_decays_like_that_of_the_model():
    rng = np.random.default_rng(3)
    y, x = linear(1000, rng)
    model = kb.KernelBayesFilter(random_state=0, tune=10).fit(y, x)
    track = model.filter(linear(50, rng)[0])
    ahead = model.predict(5)
    start, variance = track.mean()[-1, 0], track.std()[-1, 0] ** 2
    for k in range(5):
        variance = 0.81 * variance + 1.0
        assert abs(ahead.mean()[k, 0] - 0.9 ** (k + 1) * start) < 0.25 * np.sqrt(variance)
        assert 0.75 < ahead.std()[k, 0] / np.sqrt(variance) < 1.25
    assert not ahead.diagnostics.observed.any()
    np.testing.assert_allclose(model.predict(5, start=track).mean(), ahead.mean(), atol=1e-6)


@pytest.mark.parametrize("rule", ["kbr", "dmo", "subspace"])
def test_the_smoother_beats_the_filter_with_every_kind_of_rule(rule):
    gains = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, Z = circling(300, rng)
        new, truth = circling(200, rng)
        model = kb.KernelBayesFilter(rule, random_state=0, tune=2).fit(X, Z)
        gains.append(model.smooth(new).score(truth).mse / model.filter(new).score(truth).mse)
    assert np.mean(gains) < 0.95


# ------------------------------------------------------------------------------------------- several, in steps, in streams


@pytest.mark.parametrize("rule", ["iw", "kbr", "dmo", "subspace"])
def test_sequences_filtered_together_are_those_filtered_one_by_one(rule, data):
    X, Z, Xt, _ = data
    settings = dict(latent_features=kb.Subspace(8)) if rule == "subspace" else {}
    model = fixed(rule, **settings).fit(X, Z)
    gaps = Xt.copy()
    gaps[5] = np.nan
    sequences = [Xt[:5], gaps, Xt[3:11]]
    for filtered in (model.filter, model.smooth):
        for together, alone in zip(filtered(sequences), map(filtered, sequences), strict=True):
            np.testing.assert_allclose(together.weights, alone.weights, atol=1e-8)
    stacked = np.stack([Xt[:5], Xt[5:10]])
    assert len(model.filter(stacked)) == 2


@pytest.mark.parametrize("rule", ["iw", "subspace"])
def test_steps_are_the_filter(rule, data):
    X, Z, Xt, _ = data
    settings = dict(latent_features=kb.Subspace(8)) if rule == "subspace" else {}
    model = fixed(rule, **settings).fit(X, Z)
    gaps = Xt.copy()
    gaps[4] = np.nan
    track = model.filter(gaps)
    model.reset()
    for t, row in enumerate(gaps):
        belief = model.step(None if t == 4 else row)
        np.testing.assert_allclose(belief.mean(), track.mean()[t], atol=1e-10)
        np.testing.assert_allclose(belief.weights, track.weights[t], atol=1e-10)
        assert belief.observed == (t != 4)
    np.testing.assert_allclose(model.predict(2).mean(), model.predict(2, start=track).mean(), atol=1e-4)


def test_a_stream_neither_grows_nor_drifts(data):
    """Long enough for an error that grows by one part in a thousand per step to show, and twice what is remembered."""
    X, Z, *_ = data
    model = fixed(features=None, latent_features=None).fit(X, Z)
    rng = np.random.default_rng(5)
    stream, _ = circling(3000, rng)
    stream[rng.random(3000) < 0.1] = np.nan
    stream[1000] = [1e6, -1e6]
    state = {}
    for t, row in enumerate(stream):
        belief = model.step(row)
        if t % 500 == 499 or t == 1000:
            assert abs(belief.weights.sum() - 1.0) < 1e-9
            assert np.isfinite(belief.mean()).all()
            state[t] = {name: np.size(value) for name, value in vars(model).items() if not callable(value)}
    assert state[499] == state[2999]


def test_an_outlier_is_told_and_forgotten(data):
    X, Z, Xt, _ = data
    model = fixed().fit(X, Z)
    spoilt = Xt.copy()
    spoilt[2] = [500.0, 500.0]
    track, clean = model.filter(spoilt), model.filter(Xt)
    assert np.isfinite(track.mean()).all()
    assert track.diagnostics.novelty[2] > 1.0 > track.diagnostics.novelty[3]
    assert any("outside" in problem for problem in track.diagnostics.problems)
    predicted = model.filter(np.where(spoilt > 400, np.nan, spoilt))
    assert (np.abs(track.mean()[2] - predicted.mean()[2]) < predicted.std()[2]).all()
    assert np.abs(track.mean()[-1] - clean.mean()[-1]).max() < 0.05


@pytest.mark.parametrize("rule", ["iw", "subspace"])
def test_a_saved_filter_goes_on_where_it_was(rule, data, tmp_path):
    X, Z, Xt, _ = data
    model = fixed(rule, latent_features=kb.Subspace(8)).fit(X, Z)
    for row in Xt[:6]:
        model.step(row)
    kb.save(model, tmp_path / "model.npz")
    loaded = kb.load(tmp_path / "model.npz")
    for row in Xt[6:]:
        np.testing.assert_allclose(loaded.step(row).mean(), model.step(row).mean(), atol=1e-12)
    kb.save(loaded.filter(Xt), tmp_path / "track.npz")
    np.testing.assert_allclose(kb.load(tmp_path / "track.npz").mean(), model.filter(Xt).mean(), atol=1e-12)
    assert os.path.getsize(tmp_path / "model.npz") < 40_000


@pytest.mark.parametrize(
    "initial",
    [
        [stats.norm(1, 0.05), stats.norm(0, 0.05)],
        stats.multivariate_normal([1.0, 0.0], 0.0025 * np.eye(2)),
        np.random.default_rng(0).normal([1.0, 0.0], 0.05, (500, 2)),
        kb.MeanEmbedding(np.array([[1.0, 0.0]]), kernel=kb.Gaussian(Z_SCALE)),
    ],
    ids=["columns", "joint", "samples", "embedding"],
)
@pytest.mark.parametrize("rule", ["iw", "subspace"])
def test_an_initial_belief_decides_where_there_is_no_observation(rule, initial, data):
    X, Z, *_ = data
    model = fixed(rule).fit(X, Z)
    started = model.filter(np.full((2, 2), np.nan), initial=initial)
    assert np.abs(started.mean()[0] - [1.0, 0.0]).max() < 0.25
    assert np.abs(started.mean()[1] - [np.cos(0.3), np.sin(0.3)]).max() < 0.3
    model.reset(initial)
    np.testing.assert_allclose(model.step(None).mean(), started.mean()[0], atol=0.05)


# ------------------------------------------------------------------------------------------- what it learns from


def test_transitions_do_not_cross_sequences_or_gaps():
    Z = np.arange(12.0)[:, None]
    log = read_log([Z[:5], Z[5:]], [Z[:5], Z[5:]], None, None, None, None, None)
    assert [5] not in log.log.points[log.log.after].tolist()
    assert len(log.log.before) == 10
    broken = Z.copy()
    broken[3] = np.nan
    with pytest.warns(UserWarning, match="1 rows with gaps"):
        log = read_log(broken, Z, None, None, None, None, None)
    pairs = np.column_stack([log.log.points[log.log.before], log.log.points[log.log.after]])
    assert (np.diff(pairs, axis=1) == 1).all()
    assert log.lengths.tolist() == [3, 8]


def test_separate_transitions_take_the_place_of_consecutive_rows(data):
    """Given as the rows' own transitions they change nothing."""
    X, Z, Xt, _ = data
    own = fixed().fit(X, Z).filter(Xt)
    model = fixed().fit(X, Z, transitions=(Z[:-1], Z[1:]))
    np.testing.assert_allclose(model.filter(Xt).mean(), own.mean(), atol=1e-6)
    shuffled = np.random.default_rng(0).permutation(N)
    unordered = fixed().fit(X[shuffled], Z[shuffled], transitions=(Z[:-1], Z[1:]), ordered=False)
    np.testing.assert_allclose(unordered.filter(Xt).mean(), own.mean(), atol=1e-6)
    with pytest.raises(ValueError, match="order of time"):
        fixed().fit(X, Z, ordered=False)


def test_controls_that_matter_lower_the_error():
    rng = np.random.default_rng(0)
    U = rng.normal(size=800)
    x = np.zeros(800)
    for t in range(1, 800):
        x[t] = 0.8 * x[t - 1] + U[t] + 0.3 * rng.normal()
    y = x + rng.normal(size=800)
    with_controls = kb.KernelBayesFilter(random_state=0, tune=10).fit(y[:500], x[:500], U[:500])
    without = kb.KernelBayesFilter(random_state=0, tune=10).fit(y[:500], x[:500])
    informed = with_controls.filter(y[500:], U[500:]).score(x[500:]).mse
    assert informed < 0.6 * without.filter(y[500:]).score(x[500:]).mse
    ahead = with_controls.predict(1, controls=[2.0]).mean() - with_controls.predict(1, controls=[-2.0]).mean()
    assert 2.5 < ahead[0, 0] < 5.0  # exactly 4, shrunk towards the mean


def test_tuning_keeps_what_was_given_and_its_budget(data):
    X, Z, *_ = data
    model = kb.KernelBayesFilter(kernel=kb.Gaussian(0.7), transition_reg=0.01, tune=7, random_state=0).fit(X, Z)
    assert model.kernel_.lengthscale == 0.7
    assert model.transition_reg_ == 0.01
    assert model.trials_ == 7
    again = kb.KernelBayesFilter(kernel=kb.Gaussian(0.7), transition_reg=0.01, tune=7, random_state=0).fit(X, Z)
    assert (again.reg_, again.prior_reg_, again.score_) == (model.reg_, model.prior_reg_, model.score_)
    longer = kb.KernelBayesFilter(kernel=kb.Gaussian(0.7), transition_reg=0.01, tune=20, random_state=0).fit(X, Z)
    assert longer.score_ <= model.score_


def test_default_settings_are_near_the_best_of_a_grid_chosen_on_the_test_error():
    """Nine in ten of a hand-tuned grid's accuracy or better; the grid is scored on the test sequence itself."""
    ratios = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, Z = circling(200, rng)
        new, truth = circling(200, rng)
        chosen = kb.KernelBayesFilter(random_state=0).fit(X, Z).filter(new).score(truth).mse
        dx, dz = kb.median_lengthscale(X), kb.median_lengthscale(Z)
        errors = [
            kb.KernelBayesFilter(
                kernel=kb.Gaussian(a * dx),
                latent_kernel=kb.Gaussian(b * dz),
                reg=reg,
                prior_reg=c,
                transition_reg=c,
                tune=0,
            )
            .fit(X, Z)
            .filter(new)
            .score(truth)
            .mse
            for a in (0.5, 1.0)
            for b in (0.25, 0.5, 1.0)
            for reg in (1e-3, 1e-2, 1e-1)
            for c in (1e-3,)
        ]
        ratios.append(chosen / min(errors))
    assert np.mean(ratios) < 1.1


# ------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X, Z: m.fit(X[:-1], Z), "observations has 59 rows but states has 60"),
        (lambda m, X, Z: m.fit(X[:5], Z[:5]), "at least eight rows"),
        (lambda m, X, Z: m.fit([X, X], [Z]), "states holds 1 sequences but observations 2"),
        (lambda m, X, Z: m.fit(np.full_like(X, np.nan), Z), "every row"),
        (lambda m, X, Z: m.fit(X, Z, transitions=(Z,)), "transitions must be"),
        (lambda m, X, Z: m.fit(X, Z, transitions=(Z[:, :1], Z[:, :1])), "states has"),
        (lambda m, X, Z: m.fit(X, Z, Z[:, :1], transitions=(Z, Z)), "controls go with the transitions"),
        (lambda m, X, Z: m.fit(X, Z).filter(X[:, :1]), "rows of shape"),
        (lambda m, X, Z: m.fit(X, Z).filter([]), "observations"),
        (lambda m, X, Z: m.fit(X, Z).filter(X, controls=X), "fitted without controls"),
        (lambda m, X, Z: m.fit(X, Z, X).filter(X), "fitted with controls"),
        (lambda m, X, Z: m.fit(X, Z, X).filter(X, X[:5]), "controls has shape"),
        (lambda m, X, Z: m.fit(X, Z).step(X[:3]), "step takes one observation"),
        (lambda m, X, Z: m.fit(X, Z).step(X[0], control=[1.0]), "without controls"),
        (lambda m, X, Z: m.fit(X, Z).filter(X, initial=Z[:, :1]), "initial"),
        (lambda m, X, Z: m.fit(X, Z).predict(0), "steps must be at least 1"),
        (lambda m, X, Z: m.set_params(rule="bayes").fit(X, Z), "rule must be one of"),
        (lambda m, X, Z: m.set_params(reg=-1.0).fit(X, Z), "reg must be positive"),
        (lambda m, X, Z: m.set_params(tune=-1).fit(X, Z), "tune must be at least 0"),
        (lambda m, X, Z: m.set_params(normalise="sum").fit(X, Z), "normalise must be one of"),
        (lambda m, X, Z: m.set_params(kernel="rbf").fit(X, Z), "kernel must be a Kernel"),
    ],
)
def test_mistakes_are_named(call, message, data):
    X, Z, *_ = data
    with pytest.raises(ValueError, match=message):
        call(fixed(), X, Z)


@pytest.mark.parametrize("rule", ["iw", "kbr", "dmo", "subspace"])
def test_weights_as_printed_still_give_distributions(rule, data):
    X, Z, Xt, _ = data
    model = fixed(rule, normalise=None, latent_features=kb.Subspace(8)).fit(X, Z)
    for track in (model.filter(Xt), model.smooth(Xt)):
        np.testing.assert_allclose(track.weights.sum(1), 1.0, atol=1e-9)
        np.testing.assert_allclose(track.mean(), track.weights @ Z, atol=1e-9)
    far = Xt.copy()
    far[3] = 1e6
    assert np.isfinite(model.filter(far).mean()).all()
    model.reset()
    assert model.step(Xt[0]).weights.sum() == pytest.approx(1.0)


def test_images_are_observations_too():
    rng = np.random.default_rng(0)
    Z = np.cumsum(0.3 * rng.normal(size=60))[:, None]
    images = np.exp(-((np.linspace(-3, 3, 5)[:, None] + np.linspace(-3, 3, 4) - Z[:, :, None]) ** 2))
    images += 0.05 * rng.normal(size=images.shape)
    kernel = kb.FunctionKernel(lambda a, b: float(np.exp(-((a - b) ** 2).sum())))
    model = kb.KernelBayesFilter(
        kernel=kernel, reg=1e-2, prior_reg=1e-3, transition_reg=1e-3, latent_kernel=kb.Gaussian(0.5), tune=0
    ).fit(list(images), Z)
    rows = list(images[:6])
    rows[2] = None
    track = model.filter(rows)
    assert track.diagnostics.observed.tolist() == [True, True, False, True, True, True]
    assert np.abs(track.mean()[[0, 1, 3, 4, 5]] - Z[[0, 1, 3, 4, 5]]).max() < 0.5


@pytest.mark.parametrize("rule", ["iw", "subspace"])
def test_labels_can_be_states_and_controls(rule):
    rng = np.random.default_rng(0)
    Z = np.repeat(["low", "high", "low", "high"], 20)
    X = np.where(Z == "low", 0.0, 3.0) + 0.3 * rng.normal(size=80)
    U = np.repeat(["stay"], 80)
    model = kb.KernelBayesFilter(rule, latent_kernel=kb.Delta(), control_kernel=kb.Delta(), tune=0, random_state=0)
    track = model.fit(X, Z, U).filter([0.1, 2.9, 0.0], ["stay"] * 3)
    assert track.mode().ravel().tolist() == ["low", "high", "low"]
    assert model.reset().step(2.8).mode() is not None
    model.step(0.1, "stay")


def test_controlled_transitions_given_apart_can_be_tuned_with():
    rng = np.random.default_rng(0)
    b, u = rng.normal(size=80), rng.normal(size=80)
    z = rng.normal(size=60)
    model = kb.KernelBayesFilter(tune=3, random_state=0)
    model.fit(z + 0.3 * rng.normal(size=60), z, transitions=(b, 0.5 * b + u, u))
    assert model.trials_ == 3
    assert model.filter(z[:5], u[:5]).mean().shape == (5, 1)


def test_asking_before_fitting_says_so(data):
    for call in ("filter", "smooth", "step", "predict"):
        with pytest.raises(Exception, match="not fitted"):
            getattr(kb.KernelBayesFilter(), call)(3 if call == "predict" else data[0])

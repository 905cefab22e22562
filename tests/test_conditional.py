"""The conditional embedding, the sum rule and the chain rule, on every representation, against the papers' formulas."""

import pickle
import warnings
from typing import ClassVar

import equinox as eqx
import jax
import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelbayes as kb
from kernelbayes._linalg import Dense, LowRank
from oracles import conditional as oracle

REG = 1e-3
N, T, M = 150, 7, 40


def smooth_data(seed=0, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, d))
    Y = np.stack([np.sin(X[:, 0]) + 0.1 * rng.normal(size=N), X.sum(1)], axis=1)
    return X, Y, rng.normal(size=(T, d)), rng.normal(size=(M, d)), rng.normal(size=M)


def nystrom_grams(model, lengthscale, X, points):
    """The Gram matrix that landmarks imply, from the landmarks alone."""
    R = model.features_.points
    K_rr = oracle.gaussian_gram(R, R, lengthscale)
    G = oracle.gaussian_gram(X, R, lengthscale)
    return (
        oracle.nystrom(G, K_rr, G.T),
        oracle.nystrom(G, K_rr, oracle.gaussian_gram(R, points, lengthscale)),
    )


def exact_grams(model, lengthscale, X, points):
    return oracle.gaussian_gram(X, X, lengthscale), oracle.gaussian_gram(X, points, lengthscale)


def fourier_grams(model, lengthscale, X, points):
    """The mean of cos w . (x - y) over the drawn frequencies."""
    w = model.features_.frequencies

    def gram(A, B):
        return np.cos((A[:, None, :] - B[None, :, :]) @ w.T).mean(-1)

    return gram(X, X), gram(X, points)


def outputs(A):
    return np.stack([np.tanh(A[:, 0]), np.cos(A).sum(1), A[:, 0] * A[:, -1]], axis=1)


def network_grams(model, lengthscale, X, points):
    return outputs(X) @ outputs(X).T, outputs(X) @ outputs(points).T


REPRESENTATIONS = {
    "exact, low rank": (kb.Exact(), 1, 1.5, exact_grams),
    "exact, dense": (kb.Exact(), 6, 1.0, exact_grams),
    "incomplete Cholesky": (kb.IncompleteCholesky(rank=20), 2, 1.5, nystrom_grams),
    "subspace, random": (kb.Subspace(25, "random"), 3, 1.5, nystrom_grams),
    "subspace, kmeans": (kb.Subspace(25, "kmeans"), 3, 1.5, nystrom_grams),
    "subspace, herding": (kb.Subspace(25, "herding"), 3, 1.5, nystrom_grams),
    "subspace, leverage": (kb.Subspace(25, "leverage"), 3, 1.5, nystrom_grams),
    "random Fourier": (kb.RandomFourier(60), 3, 1.5, fourier_grams),
    "network": (kb.Neural(outputs), 3, None, network_grams),
}


@pytest.fixture(params=REPRESENTATIONS, scope="module")
def fitted(request):
    recipe, d, lengthscale, grams = REPRESENTATIONS[request.param]
    X, Y, X_new, prior_points, alpha = smooth_data(d=d)
    kernel = None if lengthscale is None else kb.Gaussian(lengthscale)
    model = kb.ConditionalEmbedding(kernel, kb.Gaussian(1.0), recipe, REG, intercept=False, random_state=0).fit(X, Y)
    return model, lambda points: grams(model, lengthscale, X, points), X, Y, X_new, prior_points, alpha


def assert_close(a, b):
    scale = max(1.0, np.abs(b).max())
    np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * scale)


class TestRuleByRepresentation:
    def test_weights(self, fitted):
        model, grams, _, _, X_new, *_ = fitted
        assert_close(model.weights(X_new), oracle.conditional_weights(*grams(X_new), REG))

    def test_predict_and_expect(self, fitted):
        model, grams, _, Y, X_new, *_ = fitted
        W = oracle.conditional_weights(*grams(X_new), REG)
        assert_close(model.predict(X_new), W @ Y)
        assert_close(model.expect(lambda y: y[:, 0] ** 2, X_new), W @ Y[:, 0] ** 2)
        assert_close(model.expect(lambda y: y**3, X_new), W @ Y**3)

    def test_embed(self, fitted):
        model, grams, _, Y, X_new, *_ = fitted
        embedding = model.embed(X_new[0])
        assert_close(embedding.weights, oracle.conditional_weights(*grams(X_new[:1]), REG)[0])
        assert embedding.points is model.Y_
        at = np.array([[0.3, -0.2]])
        assert_close(embedding(at), embedding.weights @ oracle.gaussian_gram(Y, at, 1.0))

    def test_sum_rule(self, fitted):
        model, grams, _, _, _, prior_points, alpha = fitted
        K, K_prior = grams(prior_points)
        prior = kb.MeanEmbedding(prior_points, alpha, kb.Gaussian(1.0))
        assert_close(model.push(prior).weights, oracle.sum_rule(K, K_prior, alpha, REG))

    def test_chain_rule_in_both_forms(self, fitted):
        model, grams, X, _, _, prior_points, alpha = fitted
        K, K_prior = grams(prior_points)
        prior = kb.MeanEmbedding(prior_points, alpha, kb.Gaussian(1.0))
        second = model.chain(prior, "second")
        assert_close(second.coefficients, oracle.chain_rule_second(K, K_prior, alpha, REG))
        np.testing.assert_array_equal(second.y, prior_points)
        third = model.chain(prior, "third")
        assert_close(third.coefficients, oracle.sum_rule(K, K_prior, alpha, REG))
        np.testing.assert_array_equal(third.y, X)

    def test_intercept_spreads_what_is_missing(self, fitted):
        model, grams, X, Y, X_new, prior_points, alpha = fitted
        with_intercept = kb.ConditionalEmbedding(**model.get_params() | {"intercept": True}).fit(X, Y)
        raw = oracle.conditional_weights(*grams(X_new), REG)
        completed = raw + (1 - raw.sum(1, keepdims=True)) / N
        assert_close(with_intercept.weights(X_new), completed)
        assert_close(with_intercept.predict(X_new), completed @ Y)
        assert_close(with_intercept.expect(lambda y: np.exp(y[:, 0]), X_new), completed @ np.exp(Y[:, 0]))
        prior = kb.MeanEmbedding(prior_points, alpha, kb.Gaussian(1.0))
        assert with_intercept.push(prior).weights.sum() == pytest.approx(alpha.sum())
        joint = with_intercept.chain(prior).coefficients
        np.testing.assert_allclose(joint.sum(0), alpha, atol=1e-9)

    def test_the_same_numbers_when_compiled(self, fitted):
        from kernelbayes.rules import conditional, sum_rule

        model, _, _, _, X_new, prior_points, alpha = fitted
        coordinates = model.features_._coordinates(X_new)
        prior = model.features_._coordinates(prior_points)
        gram = model._gram
        assert isinstance(gram, (LowRank, Dense))

        @jax.jit
        def compiled(gram, coordinates, prior, alpha):
            factor = conditional.operator(gram.core(), gram.size, REG)
            pushed = sum_rule.push(gram, factor, alpha @ prior)
            return conditional.weights(gram, factor, coordinates), pushed

        with jax.enable_x64(True):
            weights, pushed = (np.asarray(v) for v in compiled(gram, coordinates, prior, alpha))
        np.testing.assert_allclose(weights, model.weights(X_new), atol=1e-10)
        expected = model.push(kb.MeanEmbedding(prior_points, alpha, kb.Gaussian(1.0))).weights
        np.testing.assert_allclose(pushed, expected, atol=1e-9)


def test_which_form_exact_takes():
    forms = {}
    for name in ("exact, low rank", "exact, dense"):
        recipe, d, lengthscale, _ = REPRESENTATIONS[name]
        X, *_ = smooth_data(d=d)
        forms[name] = type(recipe._fit(kb.Gaussian(lengthscale), X, np.random.default_rng(0))[1])
    assert forms == {"exact, low rank": LowRank, "exact, dense": Dense}


def test_subspace_without_whitening_is_equation_16():
    X, Y, X_new, prior_points, alpha = smooth_data(d=3)
    recipe = kb.Subspace(25, whiten=False)
    model = kb.ConditionalEmbedding(kb.Gaussian(1.5), None, recipe, REG, intercept=False, random_state=0).fit(X, Y)
    R = model.features_.points
    G = oracle.gaussian_gram(X, R, 1.5)
    g = oracle.gaussian_gram(R, X_new, 1.5)
    assert_close(model.weights(X_new), oracle.subspace_weights(G, g, N * REG))
    # equation 17, the subspace sum rule
    prior = kb.MeanEmbedding(prior_points, alpha, kb.Gaussian(1.0))
    expected = oracle.subspace_weights(G, oracle.gaussian_gram(R, prior_points, 1.5) @ alpha[:, None], N * REG)[0]
    assert_close(model.push(prior).weights, expected)


def test_one_hot_labels_give_group_means():
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "b", "c"], 200)
    y = np.array([{"a": 1.0, "b": 5.0, "c": -2.0}[v] for v in labels]) + rng.normal(size=200)
    model = kb.ConditionalEmbedding(features=kb.OneHot(), reg=1e-9, intercept=False).fit(labels, y)
    expected = [y[labels == v].mean() for v in "abc"]
    np.testing.assert_allclose(model.predict(["a", "b", "c"]), expected, rtol=1e-5)
    by_gram = kb.ConditionalEmbedding(kernel=kb.Gaussian(), reg=1e-9, intercept=False).fit(y[:, None], y)
    by_gram.set_params(kernel=kb.Delta()).fit(labels, y)  # nothing of the first fit is left
    np.testing.assert_allclose(by_gram.predict(["a", "b", "c"]), expected, rtol=1e-5)


def test_labels_as_targets_give_class_probabilities():
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, (400, 1))
    p = 1 / (1 + np.exp(-2 * x[:, 0]))
    y = np.where(rng.random(400) < p, "yes", "no")
    model = kb.ConditionalEmbedding(target_kernel=kb.Delta(), random_state=0).fit(x, y)
    grid = np.linspace(-2, 2, 9)[:, None]
    found = model.expect(lambda labels: labels == "yes", grid)
    assert np.abs(found - 1 / (1 + np.exp(-2 * grid[:, 0]))).max() < 0.15
    with pytest.raises(ValueError, match="no mean"):
        model.predict(grid)


def test_arbitrary_objects_with_a_kernel_function():
    words = ["a", "ab", "abc", "abcd", "b", "bc", "bcd", "x", "xy", "xyz"]
    kernel = kb.FunctionKernel(lambda a, b: len(set(a) & set(b)) / np.sqrt(len(a) * len(b)))
    model = kb.ConditionalEmbedding(kernel=kernel, reg=0.01).fit(words, [len(w) for w in words])
    K = kernel.gram(words)
    raw = np.linalg.solve(K + 0.1 * np.eye(10), kernel.gram(words, ["abce"]))[:, 0]
    lengths = np.array([len(w) for w in words])
    expected = lengths.mean() + raw @ (lengths - lengths.mean())
    np.testing.assert_allclose(model.predict(["abce"]), expected)
    assert model.embed(["abce"]).weights.sum() == pytest.approx(1.0)


def test_conditional_gaussian_mean_and_spread_are_recovered():
    """y | x ~ N(sin x, (0.1 + 0.3 |x|)^2): expectations and intervals against the truth, error falling with n."""
    errors = []
    grid = np.linspace(-1.5, 1.5, 13)[:, None]
    sd = 0.1 + 0.3 * np.abs(grid[:, 0])
    for n in (150, 1500):
        rng = np.random.default_rng(5)
        x = rng.uniform(-2, 2, (n, 1))
        y = np.sin(x[:, 0]) + (0.1 + 0.3 * np.abs(x[:, 0])) * rng.normal(size=n)
        model = kb.ConditionalEmbedding(random_state=0).fit(x, y)
        mean = model.predict(grid)
        spread = np.sqrt(np.maximum(model.expect(lambda v: v[:, 0] ** 2, grid) - mean**2, 0))
        errors.append((np.abs(mean - np.sin(grid[:, 0])).mean(), np.abs(spread - sd).mean()))
    assert errors[1][0] < 0.05
    assert errors[1][1] < 0.08
    assert errors[1][0] < errors[0][0]
    half = np.diff(model.embed([1.0]).interval(0.8), axis=0)[0, 0] / 2
    assert half == pytest.approx(1.2816 * 0.4, rel=0.25)


def crps(model, X_test, y_test, grid):
    """Continuous ranked probability score: the integrated squared error of the distribution function."""
    F = model.weights(X_test) @ (grid >= model.Y_)
    return ((F - (y_test[:, None] <= grid)) ** 2).sum(1).mean() * (grid[1] - grid[0])


def test_default_choices_are_close_to_the_best_on_a_grid():
    X, y = make_friedman1(400, n_features=5, noise=2.0, random_state=0)
    X_test, y_test = make_friedman1(1000, n_features=5, noise=2.0, random_state=1)
    scale = kb.median_lengthscale(X, per_column=True)
    levels = np.linspace(y.min() - 2, y.max() + 2, 150)

    def scores(**settings):
        model = kb.ConditionalEmbedding(random_state=0, **{"ard": False} | settings).fit(X, y)
        return crps(model, X_test, y_test, levels), np.mean((model.predict(X_test) - y_test) ** 2)

    grid = [scores(kernel=kb.Gaussian(f * scale), reg=reg) for f in (0.25, 0.5, 1.0, 2.0) for reg in (1e-5, 1e-4, 1e-3)]
    best_crps, best_mse = np.min(grid, axis=0)
    one_factor = scores(ard=False)
    assert one_factor[0] < 1.05 * best_crps
    assert one_factor[1] < 1.15 * best_mse
    assert scores(target_kernel=kb.Linear(), ard=False)[1] < 1.05 * best_mse
    assert scores(learn="validation", ard=False)[0] < 1.15 * best_crps


def test_separate_lengthscales_pay_where_half_of_the_columns_do_not_matter():
    X, y = make_friedman1(400, n_features=10, noise=2.0, random_state=0)
    X_test, y_test = make_friedman1(1000, n_features=10, noise=2.0, random_state=1)
    levels = np.linspace(y.min() - 2, y.max() + 2, 150)
    separate, shared = (
        crps(kb.ConditionalEmbedding(ard=ard, random_state=0).fit(X, y), X_test, y_test, levels)
        for ard in (True, False)
    )
    assert separate < 0.9 * shared


@pytest.mark.parametrize("frequency", [10, 120])
def test_short_lengthscales_are_found_where_the_median_distance_is_far_too_long(frequency):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (600, 1))
    y = np.sin(frequency * x[:, 0]) + 0.1 * rng.normal(size=600)
    grid = np.linspace(0.02, 0.98, 300)[:, None]
    model = kb.ConditionalEmbedding(random_state=0).fit(x, y)
    assert np.sqrt(np.mean((model.predict(grid) - np.sin(frequency * grid[:, 0])) ** 2)) < 0.1


@pytest.mark.parametrize("outlier", [1e3, 1e8])
def test_one_wild_value_does_no_harm(outlier):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 1))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=300)
    x[0] = outlier
    grid = np.linspace(-1.5, 1.5, 50)[:, None]
    model = kb.ConditionalEmbedding(random_state=0).fit(x, y)
    assert np.abs(model.predict(grid) - np.sin(2 * grid[:, 0])).max() < 0.25


def test_clusters_far_apart_keep_their_shape():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=150), 1e8 + rng.normal(size=150)])[:, None]
    y = np.sin(2 * np.where(x[:, 0] > 1e7, x[:, 0] - 1e8, x[:, 0])) + 0.1 * rng.normal(size=300)
    model = kb.ConditionalEmbedding(kb.Gaussian(0.5), random_state=0).fit(x, y)
    assert model.score(x, y) > 0.95


def test_the_scale_of_the_kernel_does_not_matter():
    X, y = make_friedman1(200, n_features=5, noise=1.0, random_state=0)
    scores = [
        kb.ConditionalEmbedding(s * kb.Gaussian(2.0), random_state=0).fit(X, y).score(X, y) for s in (1e-8, 1, 1e12)
    ]
    assert scores == pytest.approx([scores[1]] * 3, abs=1e-4)


def test_without_an_intercept_reg_is_chosen_for_uncentred_targets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    model = kb.ConditionalEmbedding(kb.Gaussian(1.0), intercept=False).fit(X, 100 + 0.1 * rng.normal(size=300))
    assert model.predict(X).mean() == pytest.approx(100, abs=1)


@pytest.mark.parametrize("recipe", [kb.Subspace(60, whiten=False), kb.RandomFourier(100), kb.IncompleteCholesky(30)])
@pytest.mark.parametrize("n", [300, 1500])
@pytest.mark.filterwarnings("ignore::kernelbayes.BoundWarning")  # a low rank may need no regulariser
def test_reg_is_chosen_in_the_coordinates_of_the_model(recipe, n):
    X, y = make_friedman1(n, n_features=5, noise=1.0, random_state=0)
    X_test, y_test = make_friedman1(1000, n_features=5, noise=0.0, random_state=1)

    def error(reg):
        model = kb.ConditionalEmbedding(kb.Gaussian(1.0), kb.Linear(), recipe, reg, random_state=0).fit(X, y)
        return np.mean((model.predict(X_test) - y_test) ** 2)

    assert error(None) < 1.4 * min(error(reg) for reg in np.geomspace(1e-9, 10.0, 11))


def test_reg_alone_is_chosen_for_a_given_kernel():
    X, y = make_friedman1(300, n_features=5, noise=1.0, random_state=0)
    X_test, y_test = make_friedman1(500, n_features=5, noise=0.0, random_state=1)
    kernel = kb.Matern(2.5, 2.0)
    regs = np.geomspace(1e-7, 1, 15)
    errors = [np.mean((kb.ConditionalEmbedding(kernel, reg=r).fit(X, y).predict(X_test) - y_test) ** 2) for r in regs]
    model = kb.ConditionalEmbedding(kernel).fit(X, y)
    assert model.kernel_ is kernel
    assert np.mean((model.predict(X_test) - y_test) ** 2) < 1.2 * min(errors)


def test_large_samples_use_a_subspace_and_hold_out(monkeypatch):
    monkeypatch.setattr("kernelbayes.features._landmark.EXACT_POINTS", 1200)
    monkeypatch.setattr("kernelbayes.features._landmark._DEFAULT_SUBSPACE", 200)
    X, y = make_friedman1(2500, n_features=5, noise=1.0, random_state=0)
    X_test, y_test = make_friedman1(500, n_features=5, noise=0.0, random_state=1)
    model = kb.ConditionalEmbedding(random_state=0).fit(X, y)
    assert model.features_.rank <= 200
    assert model.reg_ < float(model.tuning_.params.reg)  # more data, less regularisation
    assert np.mean((model.predict(X_test) - y_test) ** 2) < 0.15 * y_test.var()


def test_agrees_with_kernel_ridge_of_scikit_learn():
    X, Y, X_new, *_ = smooth_data()
    peer = KernelRidge(alpha=N * REG, kernel="rbf", gamma=0.5).fit(X, Y)
    model = kb.ConditionalEmbedding(kb.Gaussian(1.0), reg=REG, intercept=False).fit(X, Y)
    np.testing.assert_allclose(model.predict(X_new), peer.predict(X_new), atol=1e-9)


def test_streaming_gives_the_same_fit(monkeypatch, capsys):
    import kernelbayes.features._landmark as landmark
    import kernelbayes.kernels._base as base

    X, Y, X_new, *_ = smooth_data(d=3)
    settings = {"kernel": kb.Gaussian(1.5), "features": kb.Subspace(25), "reg": REG, "random_state": 0}
    held = kb.ConditionalEmbedding(**settings).fit(X, Y)
    monkeypatch.setattr(landmark, "_HELD_ELEMENTS", 10)
    monkeypatch.setattr(base, "_BLOCK_ELEMENTS", 40 * 25)
    streamed = kb.ConditionalEmbedding(**settings, progress=True).fit(X, Y)
    assert "fitting: 100%" in capsys.readouterr().err
    assert isinstance(streamed._gram, landmark.Streamed)
    np.testing.assert_allclose(streamed.predict(X_new), held.predict(X_new), atol=1e-9)
    np.testing.assert_allclose(streamed.weights(X_new), held.weights(X_new), atol=1e-9)
    np.testing.assert_allclose(
        streamed.expect(lambda y: y[:, 0] ** 2, X_new), held.expect(lambda y: y[:, 0] ** 2, X_new), atol=1e-9
    )


@parametrize_with_checks([kb.ConditionalEmbedding(), kb.ConditionalEmbedding(kernel=kb.Matern(), reg=1e-3)])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


class TestBadInput:
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.random.default_rng(1).normal(size=30)

    @pytest.mark.parametrize(
        ("X", "y", "message"),
        [
            (np.where(np.arange(60).reshape(30, 2) == 5, np.nan, X), y, "X contains NaN"),
            (np.where(np.arange(60).reshape(30, 2) == 5, np.inf, X), y, "X contains inf"),
            (X, np.where(np.arange(30) == 3, np.nan, y), "y contains NaN"),
            (np.empty((0, 2)), np.empty(0), "0 sample"),
            (X[:1], y[:1], "sample"),
            (X, y[:-1], "30 rows but Y has 29"),
            ([["a", "b"]] * 30, y, "a"),
            (X[:, 0], y, "2D array"),
            (np.ones((30, 2)), y, "no two distinct points"),
            (X, ["text"] * 30, "strings"),
        ],
        ids=[
            "nan",
            "inf",
            "nan target",
            "empty",
            "one row",
            "lengths",
            "text",
            "1-d",
            "constant",
            "text target",
        ],
    )
    def test_data(self, X, y, message):
        with pytest.raises(ValueError, match=message):
            kb.ConditionalEmbedding().fit(X, y)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"reg": 0.0}, "reg must be positive"),
            ({"reg": -1.0}, "reg must be positive"),
            ({"reg": float("nan")}, "reg must be finite"),
            ({"reg": "small"}, "reg must be one number"),
            ({"kernel": "rbf"}, r"kernel must be a Kernel such as kb\.Gaussian"),
            ({"features": 100}, r"features must be a Recipe such as kb\.Subspace"),
            ({"learn": "cv"}, "learn must be one of"),
            ({"kernel": kb.Gaussian([1.0, 2.0, 3.0])}, "lengthscale has 3 entries"),
            ({"kernel": kb.Gaussian(), "features": kb.Neural(outputs)}, "brings its own kernel"),
            ({"kernel": kb.Gaussian(), "ard": True}, "ard"),
        ],
    )
    def test_settings(self, settings, message):
        with pytest.raises(ValueError, match=message):
            kb.ConditionalEmbedding(**settings).fit(self.X, self.y)

    def test_use(self):
        model = kb.ConditionalEmbedding(kb.Gaussian(), reg=0.1).fit(self.X, self.y)
        with pytest.raises(ValueError, match="3 features"):
            model.predict(np.zeros((2, 3)))
        with pytest.raises(ValueError, match="NaN"):
            model.weights([[np.nan, 0.0]])
        with pytest.raises(ValueError, match="one point"):
            model.embed(self.X)
        with pytest.raises(ValueError, match="function"):
            model.expect(3, self.X)
        with pytest.raises(ValueError, match="NaN"):
            model.expect(lambda y: y[:, 0] * np.nan, self.X)
        with pytest.raises(ValueError, match="MeanEmbedding"):
            model.push(self.X)

    def test_awkward_but_legitimate_data(self):
        """Duplicated rows, a constant column, a constant target and two points all give finite answers."""
        duplicated = np.repeat(self.X[:3], 10, axis=0)
        with_constant = np.column_stack([self.X, np.full(30, 7.0)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kb.BoundWarning)
            for X, y in (
                (duplicated, self.y),
                (with_constant, self.y),
                (self.X, np.ones(30)),
                (self.X[:2], self.y[:2]),
                (self.X * 1e8 + 1e9, self.y * 1e-8),
            ):
                model = kb.ConditionalEmbedding().fit(X, y)
                assert np.isfinite(model.predict(X)).all()
                assert np.isfinite(model.embed(X[0]).interval(0.9)).all()


def test_quantiles_at_many_points_are_those_of_the_embeddings():
    X, Y, X_new, *_ = smooth_data()
    for target in (Y, Y[:, 0]):
        model = kb.ConditionalEmbedding(kb.Gaussian(1.0), reg=REG).fit(X, target)
        expected = np.stack([model.embed(x).quantile([0.1, 0.5, 0.9]) for x in X_new], axis=1)
        found = model.quantile(X_new, [0.1, 0.5, 0.9])
        np.testing.assert_array_equal(found, expected if target.ndim == 2 else expected[..., 0])
        np.testing.assert_array_equal(model.quantile(X_new, 0.5), found[1])
        np.testing.assert_array_equal(model.interval(X_new, 0.8), found[[0, 2]])


def test_without_a_seed_small_fits_are_reproducible():
    X, Y, X_new, *_ = smooth_data()
    first, again = (kb.ConditionalEmbedding().fit(X, Y).predict(X_new) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_pickle_and_fitted_attributes():
    X, Y, X_new, *_ = smooth_data()
    model = kb.ConditionalEmbedding(random_state=0).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.weights(X_new), model.weights(X_new), atol=1e-12)
    assert model.features_.rank > 0
    assert model.features_.error < 1e-12
    assert model.tuning_.success
    assert {"value", "kernel.lengthscale", "reg"} <= set(model.tuning_.path[-1])


def test_network_as_features():
    X, Y, X_new, *_ = smooth_data()
    network = eqx.nn.MLP(2, 16, width_size=16, depth=1, key=jax.random.key(0))
    model = kb.ConditionalEmbedding(features=kb.Neural(network)).fit(X, Y)
    assert model.features_.rank == 16
    assert model.predict(X_new).shape == (T, 2)


class TestFarFromTheTrainingPoints:
    READ: ClassVar = {
        "predict": lambda model, x: model.predict(x),
        "embed": lambda model, x: model.embed(x[-1]),
        "weights": lambda model, x: model.weights(x),
        "expect": lambda model, x: model.expect(lambda y: y[:, 0], x),
        "quantile": lambda model, x: model.quantile(x, 0.5),
        "interval": lambda model, x: model.interval(x),
    }

    @pytest.fixture
    def model(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(-2, 2, (200, 1))
        return kb.ConditionalEmbedding(random_state=0).fit(x, np.sin(3 * x[:, 0]) + 0.1 * rng.normal(size=200))

    @pytest.mark.parametrize("read", READ)
    def test_is_told(self, model, read):
        far, at = np.array([[0.0], [1.9], [50.0]]), "1 of 1" if read == "embed" else "1 of 3"
        with pytest.warns(kb.PosteriorWarning, match=f"^at {at} points x lies outside the training x") as said:
            self.READ[read](model, far)
        assert len(said) == 1
        assert said[0].filename == __file__

    @pytest.mark.parametrize("read", READ)
    def test_nothing_is_told_within_them_or_next_to_them(self, model, read):
        self.READ[read](model, np.linspace(-2.1, 2.1, 43)[:, None])

    @pytest.mark.parametrize(
        ("kernel", "features"),
        [
            (kb.Gaussian(1.0), kb.Exact()),
            (3.0 * kb.Laplace(1.0), kb.Exact()),  # of full rank
            (kb.Gaussian(1.0), kb.IncompleteCholesky(30)),
            (kb.Gaussian(1.0), kb.Subspace(50)),
        ],
    )
    def test_is_told_on_every_representation_by_landmarks(self, kernel, features):
        x = np.random.default_rng(0).normal(size=(100, 2))
        model = kb.ConditionalEmbedding(kernel, features=features, reg=1e-3, random_state=0).fit(x, x[:, 0])
        model.predict(x)
        with pytest.warns(kb.PosteriorWarning, match="at 100 of 100 points"):
            assert model.predict(x + 30.0) == pytest.approx(x[:, 0].mean())

    def test_a_kernel_that_reaches_everywhere_is_quiet(self):
        x = np.random.default_rng(0).normal(size=(100, 2))
        x -= x.mean(0)  # y is predicted about its mean, which the kernel knows nothing of
        model = kb.ConditionalEmbedding(kb.Linear(), reg=1e-6).fit(x, x[:, 0])
        assert model.predict([[100.0, 0.0], [0.0, 0.0]]) == pytest.approx([100.0, 0.0], abs=1e-2)

    def test_weights_that_vanish_are_told_as_such(self):
        x = np.random.default_rng(0).normal(size=(50, 1))
        model = kb.ConditionalEmbedding(kb.Gaussian(0.5), reg=1e-3, intercept=False).fit(x, x[:, 0])
        with pytest.warns(kb.PosteriorWarning, match="all weights are near zero there"):
            assert abs(model.weights([[30.0]])).max() < 1e-10

    def test_a_label_that_was_never_seen_is_told(self):
        model = kb.ConditionalEmbedding(kb.Delta(), reg=1e-3).fit(list("aabbcc"), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0])
        with pytest.warns(kb.PosteriorWarning, match="at 1 of 2 points"):
            assert model.predict(["a", "z"])[1] == pytest.approx(2.0)


def test_ragged_targets_are_refused_by_name():
    with pytest.raises(ValueError, match="y has rows of different lengths"):
        kb.ConditionalEmbedding().fit(np.zeros((3, 1)), [1.0, 2.0, [3.0, 4.0]])


def test_leverages_of_one_are_no_warnings_of_numpy():
    x = 1e3 * np.arange(20.0)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", kb.learning.BoundWarning)
        kb.ConditionalEmbedding(reg=1e-20, random_state=0).fit(x, np.sin(x))


def without_groups(x, y, labels, lengthscale, reg):
    """The mean squared error of predicting each group by a ridge regression on the others."""
    n, total = len(x), 0.0
    for label in np.unique(labels):
        out, rest = labels == label, labels != label
        K = oracle.gaussian_gram(x[rest], x[rest], lengthscale) + n * reg * np.eye(rest.sum())
        predicted = oracle.gaussian_gram(x[out], x[rest], lengthscale) @ np.linalg.solve(K, y[rest])
        total += ((y[out] - predicted) ** 2).sum()
    return total / n


@pytest.mark.parametrize("given", ["equal x", "labels"])
@pytest.mark.filterwarnings("ignore::kernelbayes.BoundWarning")
def test_hyperparameters_are_chosen_with_groups_left_out(given):
    rng = np.random.default_rng(0)
    places = rng.uniform(-2, 2, (30, 1))
    labels = rng.permutation(np.repeat(np.arange(30), 4))
    x = places[labels] + (0.0 if given == "equal x" else 0.02 * rng.normal(size=(120, 1)))
    level = 0.4 * rng.normal(size=30)  # of a place: the others there know it, a new one does not
    y = np.sin(2 * x[:, 0]) + level[labels] + 0.05 * rng.normal(size=120)
    y -= y.mean()
    model = kb.ConditionalEmbedding(target_kernel=kb.Linear(), random_state=0)
    model.fit(x, y, None if given == "equal x" else labels)
    chosen = model.kernel_.lengthscale.item(), model.reg_
    best = without_groups(x, y, labels, *chosen)
    for factors in ((1.15, 1.0), (1 / 1.15, 1.0), (1.0, 1.4), (1.0, 1 / 1.4)):
        assert best < 1.001 * without_groups(x, y, labels, *np.multiply(chosen, factors))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.BoundWarning)  # as short a lengthscale as can be
        one_by_one = kb.ConditionalEmbedding(target_kernel=kb.Linear(), random_state=0).fit(x, y, np.arange(120))
    leaking = without_groups(x, y, labels, one_by_one.kernel_.lengthscale.item(), one_by_one.reg_)
    assert best < leaking


def test_a_few_values_of_x_are_levels_and_not_places():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 200).astype(float)[:, None]
    y = 3.0 * x[:, 0] + 0.1 * rng.normal(size=200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.BoundWarning)
        model = kb.ConditionalEmbedding(random_state=0).fit(x, y)
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [0.0, 3.0], atol=0.1)


def test_groups_are_one_label_for_each_pair():
    with pytest.raises(ValueError, match="groups must be one label for each of 30 pairs"):
        kb.ConditionalEmbedding().fit(np.arange(30.0)[:, None], np.arange(30.0), np.zeros(3))


def test_groups_are_held_out_together():
    from kernelbayes.learning._conditional import held_out

    labels = np.repeat(np.arange(40), 5)
    rows = held_out(200, 43, labels, np.random.default_rng(0))
    assert len(rows) == 40
    assert (np.bincount(labels[rows])[np.unique(labels[rows])] == 5).all()


def test_spreads_and_probabilities_are_those_of_the_embedding_at_each_point():
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 2, (80, 2))
    y = np.column_stack([x[:, 0] + rng.normal(size=80), np.sin(2 * x[:, 1]) + 0.1 * rng.normal(size=80)])
    model = kb.ConditionalEmbedding(kb.Gaussian(0.7), reg=1e-4).fit(x, y)
    at = rng.uniform(-2, 2, (12, 2))
    each = [model.embed(point) for point in at]
    plain = [np.einsum("i,ij->j", a.weights, (y - a.mean()) ** 2) for a in each]
    assert np.min(plain) < 0  # the weights are signed enough to matter
    mean, std = model.predict(at, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(at))
    np.testing.assert_allclose(std, [a.std() for a in each], rtol=1e-9)
    assert std.min() > 0.05
    for box in ({"upper": [0.0, np.inf]}, {"lower": 0.0}, {"event": lambda y: y.sum(1) > 0}):
        found = model.prob(at, **box)
        np.testing.assert_allclose(found, [a.prob(**box) for a in each], atol=1e-12)
        assert ((found >= 0) & (found <= 1)).all()
    flat = kb.ConditionalEmbedding(kb.Gaussian(0.7), reg=1e-4).fit(x, y[:, 0]).predict(at, return_std=True)
    np.testing.assert_allclose(flat[1], std[:, 0], rtol=1e-9)


def test_lengthscales_of_their_own_want_ten_pairs_for_each_column():
    X, y = make_friedman1(60, n_features=6, noise=1.0, random_state=0)
    for n, settings, each in ((60, {}, True), (59, {}, False), (59, {"ard": True}, True), (60, {"ard": False}, False)):
        model = kb.ConditionalEmbedding(random_state=0, **settings).fit(X[:n], y[:n])
        factors = model.kernel_.lengthscale / kb.median_lengthscale(X[:n], per_column=True)
        assert (np.ptp(factors) > 0.01) == each
    with pytest.raises(ValueError, match='ard must be True, False or "auto"'):
        kb.ConditionalEmbedding(ard="each").fit(X, y)

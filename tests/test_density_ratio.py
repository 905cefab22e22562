"""Density ratios: the rule against the papers' formulas and refits, the estimator against true ratios and densratio."""

import importlib
import pickle
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone

import kernelbayes as kb
from kernelbayes import density_ratio
from kernelbayes._linalg import Dense, LowRank
from kernelbayes.features import Streamed, represent
from kernelbayes.kernels._integrals import mean_integral
from kernelbayes.rules import density_ratio as rule
from oracles import density_ratio as oracle
from oracles import even_draws
from oracles.closed_forms import gaussian_gram, nystrom

REG = 1e-2


def two_samples(n=60, m=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(0.5, 0.8, (m, d)), rng.normal(size=(15, d))


def weights_like(kind, m, rng):
    if kind == "uniform":
        return np.full(m, 1 / m)
    w = rng.random(m) ** 2 if kind == "positive" else rng.normal(0.3, 1.0, m)
    return w / w.sum()


# ---------------------------------------------------------------------------------------------------- the rule


class TestFormulas:
    lengthscale = 1.3

    def grams(self, A, B):
        return gaussian_gram(A, B, self.lengthscale)

    def test_features_of_both_samples_give_the_dual_form_of_kanamori_everywhere(self):
        Z, T, at = two_samples()
        w = weights_like("signed", len(T), np.random.default_rng(1))
        wanted = oracle.kulsif(self.grams(Z, Z), self.grams(Z, T), self.grams(at, Z), self.grams(at, T), w, REG)
        pooled = np.concatenate([Z, T, at])
        features = kb.IncompleteCholesky(tol=1e-14).fit(kb.Gaussian(self.lengthscale), pooled)
        F, G, A = (features.transform(P) for P in (Z, T, at))
        found = rule.ratio(F.T @ F / len(F), REG, G.T @ w, A)
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7)

    def test_features_of_the_denominator_give_the_gamma_of_iw_kbr_there(self):
        Z, T, _ = two_samples()
        w = np.full(len(T), 1 / len(T))
        wanted = oracle.gamma(self.grams(Z, Z), self.grams(Z, T), w, REG)
        model = kb.DensityRatio(kb.Gaussian(self.lengthscale), reg=REG).fit(T, Z)
        np.testing.assert_allclose(model.predict(Z, raw=True) / len(Z), wanted, rtol=1e-8, atol=1e-11)

    @pytest.mark.parametrize("form", ["low rank", "dense"])
    def test_scattered_coefficients_are_the_ratio_at_the_sample(self, form):
        Z, T, _ = two_samples()
        K, g = self.grams(Z, Z), self.grams(Z, T).mean(1)
        L = np.linalg.cholesky(K + 1e-10 * np.eye(len(K)))
        gram, mean = (Dense(K), g) if form == "dense" else (LowRank(L), np.linalg.solve(L, g))
        found = gram.scatter(rule.coefficients(gram.core() / len(Z), REG, mean)[None])[0]
        wanted = len(Z) * oracle.gamma(K, self.grams(Z, T), np.full(len(T), 1 / len(T)), REG)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)

    def test_a_discrete_ratio_is_one_of_shrunken_frequencies(self):
        below, above = list("aaaabbbbbcc"), list("abccc")
        model = kb.DensityRatio(features=kb.OneHot(), reg=0.01).fit(above, below)
        p, q = np.array([4, 5, 2]) / 11, np.array([1, 1, 3]) / 5
        np.testing.assert_allclose(model.predict(list("abcd")), [*(q / (p + 0.01)), 0.0])
        relative = kb.DensityRatio(features=kb.OneHot(), reg=0.01, alpha=0.3).fit(above, below)
        np.testing.assert_allclose(relative.predict(list("abc")), q / (0.3 * q + 0.7 * p + 0.01))


class TestLeaveOneOut:
    @pytest.mark.parametrize("alpha", [0.0, 0.3])
    @pytest.mark.parametrize("kind", ["uniform", "positive", "signed"])
    def test_equals_refits(self, alpha, kind):
        rng = np.random.default_rng(3)
        F, T = rng.normal(size=(13, 5)), rng.normal(0.4, 1.0, (9, 5))
        w, regs = weights_like(kind, 9, rng), np.array([1e-3, 0.1, 2.0])
        found = rule.leave_one_out_scores(F, w @ T, regs, (T, w), alpha)
        wanted = [oracle.leave_one_out_score(F, T, w, reg, alpha) for reg in regs]
        np.testing.assert_allclose(found, wanted, rtol=1e-9)

    @pytest.mark.parametrize("alpha", [0.0, 0.3])
    def test_truncated(self, alpha):
        rng = np.random.default_rng(15)
        at_z = at_top = np.ones(1)
        while max(at_z.min(), at_top.min()) >= 0 or at_top.max() <= at_z.max():  # until both cuts matter
            F, T = rng.normal(size=(13, 3)), rng.normal(0.4, 3.0, (9, 3))
            w, reg = weights_like("positive", 9, rng), 0.05
            at_z, at_top = oracle.left_out_ratios(F, T, w, reg, alpha)
        at_z, at_top = np.maximum(at_z, 0), np.minimum(np.maximum(at_top, 0), at_z.max())
        wanted = 0.5 * (1 - alpha) * np.mean(at_z**2) + 0.5 * alpha * w @ at_top**2 - w @ at_top
        found = rule.leave_one_out_scores(F, w @ T, np.array([reg]), (T, w), alpha, truncate=True)
        np.testing.assert_allclose(found, [wanted], rtol=1e-9)

    def test_the_gram_matrix_keeps_its_shift(self):
        """Without z_i, (K_-i + n eta I): refits in the dual form, where no feature is in sight."""
        Z, T, _ = two_samples(25, 20)
        n, kernel, w = len(Z), kb.Gaussian(1.0), np.full(20, 1 / 20)
        features = kb.IncompleteCholesky(tol=1e-15).fit(kernel, np.concatenate([Z, T]))
        F, G = features.transform(Z), features.transform(T)
        found = rule.leave_one_out_scores(F, w @ G, np.array([REG]), (G, w))[0]

        def refit(below, above, reg, at):
            grams = [gaussian_gram(*pair, 1.0) for pair in ((below, below), (below, above), (at, below), (at, above))]
            return oracle.kulsif(*grams, np.full(len(above), 1 / len(above)), reg)[0]

        at_z = [refit(np.delete(Z, i, 0), T, REG * n / (n - 1), Z[i : i + 1]) for i in range(n)]
        at_top = [refit(Z, np.delete(T, j, 0), REG, T[j : j + 1]) for j in range(20)]
        np.testing.assert_allclose(found, 0.5 * np.mean(np.square(at_z)) - np.mean(at_top), rtol=1e-6)

    def test_a_known_mean_leaves_nothing_out_of_its_term(self):
        rng = np.random.default_rng(0)
        F, mean, reg = rng.normal(size=(12, 4)), rng.normal(size=4), 0.2
        masses = np.full(11, 1 / 11)
        at_z = [
            oracle.pooled_ratio(np.delete(F, i, 0), masses, mean[None], np.ones(1), reg * 12 / 11, F[i])
            for i in range(12)
        ]
        second = mean @ np.linalg.inv(F.T @ F / 12 + reg * np.eye(4)) @ mean
        found = rule.leave_one_out_scores(F, mean, np.array([reg]))
        np.testing.assert_allclose(found, [0.5 * np.mean(np.square(at_z)) - second], rtol=1e-10)
        for settings in (dict(alpha=0.1), dict(truncate=True)):
            with pytest.raises(ValueError, match="need points of the numerator"):
                rule.leave_one_out_scores(F, mean, np.array([reg]), **settings)

    def test_it_estimates_the_risk_on_new_points(self):
        """On average over samples, where a score of the sample itself is far too good."""
        rng = np.random.default_rng(0)
        regs, n = np.array([0.1, 0.3]), 40
        grid = (np.arange(400)[:, None] + 0.5) / 400
        features = kb.IncompleteCholesky(tol=1e-10).fit(kb.Gaussian(1.0), stats.norm.ppf(grid))
        new_F, new_G = (features.transform(law.ppf(grid)) for law in PAIRS["shifted"][:2][::-1])
        left_out, fitted = [], []
        for _ in range(400):
            F, G = (features.transform(law.rvs((n, 1), random_state=rng)) for law in PAIRS["shifted"][:2][::-1])
            found = rule.leave_one_out_scores(F, G.mean(0), regs, (G, np.full(n, 1 / n)))
            C = np.stack([rule.coefficients(F.T @ F / n, reg, G.mean(0)) for reg in regs], axis=1)
            risks = 0.5 * np.mean((new_F @ C) ** 2, axis=0) - np.mean(new_G @ C, axis=0)
            left_out.append(found - risks)
            fitted.append(0.5 * np.mean((F @ C) ** 2, axis=0) - np.mean(G @ C, axis=0) - risks)
        error = np.std(left_out, axis=0) / np.sqrt(400)
        assert (np.abs(np.mean(left_out, axis=0)) < 5 * error).all()
        assert (np.mean(fitted, axis=0) < -6 * error).all()


class TestJax:
    def test_values_and_gradients_are_traced(self):
        rng = np.random.default_rng(0)
        F, T = rng.normal(size=(20, 4)), rng.normal(size=(9, 4))
        C, mean = F.T @ F / 20, T.mean(0)

        def value(reg, mean):
            return (rule.ratio(jnp.asarray(C), reg, mean, jnp.asarray(F)) ** 2).sum()

        with jax.enable_x64(True):
            found, slopes = jax.jit(jax.value_and_grad(value, argnums=(0, 1)))(0.1, jnp.asarray(mean))
            found, slope = float(found), float(slopes[0])
            by_mean = np.asarray(slopes[1])

        def on_host(reg, mean):
            return (rule.ratio(C, reg, mean, F) ** 2).sum()

        assert np.isclose(found, on_host(0.1, mean), rtol=1e-12)
        assert np.isclose(slope, (on_host(0.1 + 1e-6, mean) - on_host(0.1 - 1e-6, mean)) / 2e-6, rtol=1e-6)
        np.testing.assert_allclose(by_mean @ mean, 2 * on_host(0.1, mean), rtol=1e-9)  # quadratic in the mean

    def test_scores_are_the_same(self):
        rng = np.random.default_rng(0)
        F, T, w, regs = rng.normal(size=(20, 4)), rng.normal(size=(9, 4)), np.full(9, 1 / 9), np.array([0.01, 1.0])
        wanted = rule.leave_one_out_scores(F, w @ T, regs, (T, w), 0.2, truncate=True)
        with jax.enable_x64(True):
            F, T, w = jnp.asarray(F), jnp.asarray(T), jnp.asarray(w)
            found = np.asarray(rule.leave_one_out_scores(F, w @ T, regs, (T, w), 0.2, truncate=True))
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


# ------------------------------------------------------------------------------------ the rule on representations


def fourier_gram(model, A, B):
    return np.cos((A[:, None, :] - B[None, :, :]) @ model.features_.frequencies.T).mean(-1)


def landmark_gram(model, A, B):
    R = model.features_.points
    both = np.concatenate([A, B])
    implied = nystrom(gaussian_gram(both, R, 1.5), gaussian_gram(R, R, 1.5))
    return implied[: len(A), len(A) :]


REPRESENTATIONS = {
    "exact": (kb.Exact(), lambda model, A, B: gaussian_gram(A, B, 1.5)),
    "incomplete Cholesky": (kb.IncompleteCholesky(15), landmark_gram),
    "subspace": (kb.Subspace(20), landmark_gram),
    "random Fourier": (kb.RandomFourier(30), fourier_gram),
}


class TestRepresentations:
    @pytest.mark.parametrize("name", REPRESENTATIONS)
    def test_the_ratio_at_the_sample_follows_from_the_gram_matrix(self, name):
        recipe, gram = REPRESENTATIONS[name]
        Z, T, _ = two_samples()
        model = kb.DensityRatio(kb.Gaussian(1.5), recipe, REG, random_state=0).fit(T, Z)
        wanted = len(Z) * oracle.gamma(gram(model, Z, Z), gram(model, Z, T), np.full(len(T), 1 / len(T)), REG)
        np.testing.assert_allclose(model.predict(Z, raw=True), wanted, rtol=1e-6, atol=1e-6)
        assert np.array_equal(model.predict(Z), np.maximum(model.predict(Z, raw=True), 0))
        np.testing.assert_allclose(model.weights_, np.maximum(wanted, 0) / np.maximum(wanted, 0).sum(), atol=1e-8)

    @pytest.mark.parametrize("alpha", [0.0, 0.2])
    def test_full_representations_agree(self, alpha):
        Z, T, _ = two_samples(150, 120)
        recipes = kb.Exact(), kb.IncompleteCholesky(tol=1e-14), kb.Subspace(300), kb.RandomFourier(800)
        values = [
            kb.DensityRatio(kb.Gaussian(1.5), recipe, REG, alpha, random_state=0).fit(T, Z)(Z) for recipe in recipes
        ]
        for other in values[1:3]:
            np.testing.assert_allclose(other, values[0], atol=1e-5)
        assert np.sqrt(np.mean((values[3] - values[0]) ** 2)) < 0.1
        assert np.ptp(values[0]) > 1

    def test_a_dense_gram_matrix(self):
        Z, T, at = two_samples(80, 50, d=6)
        kernel = kb.Laplace(2.0)
        model = kb.DensityRatio(kernel, reg=REG).fit(T, Z)
        assert model.features_.rank == 80
        wanted = 80 * oracle.gamma(kernel.gram(Z), kernel.gram(Z, T), np.full(50, 1 / 50), REG)
        np.testing.assert_allclose(model.predict(Z, raw=True), wanted, rtol=1e-9, atol=1e-11)
        # elsewhere: the projection n k(x) K^-1 (K + n eta I)^-1 g on the span of the sample
        np.testing.assert_allclose(
            model.predict(at, raw=True), kernel.gram(at, Z) @ np.linalg.solve(kernel.gram(Z), wanted), rtol=1e-8
        )

    def test_a_high_rank_chooses_its_regulariser_on_fewer_landmarks(self, monkeypatch):
        Z, T, _ = two_samples(150, 150, d=3)
        whole = kb.DensityRatio(kb.Laplace(3.0), random_state=0).fit(T, Z)
        monkeypatch.setattr("kernelbayes.density_ratio._SCORED_RANK", 100)
        fewer = kb.DensityRatio(kb.Laplace(3.0), random_state=0).fit(T, Z)
        assert fewer.features_.rank == 150
        assert 0.3 < fewer.reg_ / whole.reg_ < 3.0

    @pytest.mark.parametrize("alpha", [0.0, 0.3])
    def test_many_points_are_streamed_and_some_left_out(self, alpha, monkeypatch):
        monkeypatch.setattr("kernelbayes.features._landmark._HELD_ELEMENTS", 10_000)
        monkeypatch.setattr("kernelbayes.density_ratio._SCORED_POINTS", 1500)
        rng = np.random.default_rng(0)
        Z, T = rng.normal(size=(5000, 2)), rng.normal(0.5, 0.8, (3000, 2))
        model = kb.DensityRatio(kb.Gaussian(1.0), kb.Subspace(80, tol=1e-8), 1e-3, alpha, random_state=0).fit(T, Z)
        assert isinstance(represent(model.features_, Z), Streamed)
        F, G, w = model.features_.transform(Z), model.features_.transform(T), np.full(3000, 1 / 3000)
        M = (1 - alpha) * F.T @ F / len(F) + alpha * G.T @ G / len(G)
        wanted = np.maximum(F @ np.linalg.solve(M + 1e-3 * np.eye(len(M)), G.mean(0)), 0)
        np.testing.assert_allclose(model(Z), wanted, atol=1e-6)
        whole = rule.leave_one_out_scores(F, G.mean(0), np.array([1e-3]), (G, w), alpha, truncate=True)[0]
        assert 0 < abs(model.scores_["score"][0] - whole) < 0.06  # 1,500 points of each stand for all


# ------------------------------------------------------------------------------------------------- numerators


class TestNumerators:
    def test_repeated_points_are_weights(self):
        Z, T, at = two_samples(m=20)
        counts = np.random.default_rng(0).integers(1, 4, len(T))  # at most as many points as there are below
        for alpha in (0.0, 0.3):
            settings = dict(kernel=kb.Gaussian(1.0), reg=REG, alpha=alpha, random_state=0)
            weighted = kb.DensityRatio(**settings).fit(kb.MeanEmbedding(T, 7.0 * counts), Z)
            repeated = kb.DensityRatio(**settings).fit(np.repeat(T, counts, axis=0), Z)
            np.testing.assert_allclose(weighted(at), repeated(at), atol=1e-6)

    def test_the_raw_ratio_is_linear_in_the_numerator(self):
        Z, T, at = two_samples()
        U = T[::-1] + 0.3

        def ratio(numerator):
            return kb.DensityRatio(kb.Gaussian(1.0), reg=REG).fit(numerator, Z).predict(at, raw=True)

        signed = kb.MeanEmbedding(np.concatenate([T, U]), np.repeat([1.4 / len(T), -0.4 / len(U)], len(T)))
        np.testing.assert_allclose(ratio(signed), 1.4 * ratio(T) - 0.4 * ratio(U), atol=1e-9)

    @pytest.mark.parametrize("alpha", [0.0, 0.3])
    def test_a_numerator_on_one_point(self, alpha):
        Z, _, _ = two_samples(100)
        Z[7] = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it has no density, so that little can be said for its ratio
            alone = kb.DensityRatio(kb.Gaussian(1.0), alpha=alpha).fit(np.zeros((1, 2)), Z)
            among = kb.DensityRatio(kb.Gaussian(1.0), alpha=alpha).fit(kb.MeanEmbedding(Z, np.eye(100)[7]), Z)
        assert np.corrcoef(alone.weights_, -np.linalg.norm(Z, axis=1))[0, 1] > 0.5
        np.testing.assert_allclose(among.weights_, alone.weights_, rtol=1e-6, atol=1e-9)

    def test_signed_weights_choose_and_stay_finite(self):
        Z, T, at = two_samples(80, 60)
        w = weights_like("signed", 60, np.random.default_rng(2))
        for alpha in (0.0, 0.3):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = kb.DensityRatio(alpha=alpha, random_state=0).fit(kb.MeanEmbedding(T, w), Z)
            assert np.isfinite(model(at)).all()
            assert np.isfinite(model.weights_).all()

    @pytest.mark.parametrize(
        ("given", "d"),
        [
            (stats.norm(0.5, 0.8), 1),
            ([stats.norm(0.5, 0.8), stats.uniform(-1, 2)], 2),
            (stats.multivariate_normal([0.3, 0.2], [[0.5, 0.2], [0.2, 0.5]]), 2),
            (kb.Mixture([stats.norm(-1, 0.3), stats.norm(1, 0.3)]), 1),
        ],
        ids=["norm", "list", "multivariate", "mixture"],
    )
    def test_a_distribution_is_the_limit_of_its_samples(self, given, d):
        rng = np.random.default_rng(0)
        Z = rng.normal(size=(200, d))
        settings = dict(kernel=kb.Gaussian(1.0), reg=REG, random_state=0)
        exact = kb.DensityRatio(**settings).fit(given, Z)
        again = kb.DensityRatio(**settings).fit(kb.AnalyticEmbedding(given, kb.Gaussian(3.0)), Z)
        assert np.array_equal(exact(Z), again(Z))
        K, g = kb.Gaussian(1.0).gram(Z), mean_integral(kb.Gaussian(1.0), given, Z)
        wanted = np.linalg.solve(K / 200 + REG * np.eye(200), g)
        np.testing.assert_allclose(exact.predict(Z, raw=True), wanted, rtol=1e-6, atol=1e-8)
        draws = exact_draws(given, 20_000, rng)
        sampled = kb.DensityRatio(**settings).fit(draws, Z)
        limit = exact.predict(Z, raw=True)  # which does not know where the distribution ends, as samples do not
        assert np.abs(sampled.predict(Z, raw=True) - limit).max() < 0.1 * limit.max()

    def test_it_is_zero_outside_of_the_support_of_a_distribution(self, tmp_path):
        rng = np.random.default_rng(0)
        Z = rng.normal(size=(300, 2))
        ratio = kb.DensityRatio(random_state=0).fit([stats.norm(0.5, 0.8), stats.uniform(-1, 2)], Z)
        outside = np.abs(Z[:, 1]) > 1
        assert np.abs(ratio.predict(Z, raw=True)[outside]).max() > 0.1
        assert (ratio(Z)[outside] == 0).all()
        assert (ratio.weights_[outside] == 0).all()
        assert ratio.weights_.sum() == pytest.approx(1.0)
        np.testing.assert_array_equal(ratio(Z)[~outside], np.maximum(ratio.predict(Z, raw=True)[~outside], 0.0))
        kb.save(ratio, tmp_path / "ratio.npz")
        np.testing.assert_array_equal(kb.load(tmp_path / "ratio.npz")(Z), ratio(Z))

    def test_choices_for_a_distribution_and_for_its_sample_are_alike(self):
        Z = even_draws.normals(300, 1, np.random.default_rng(0))
        truth = stats.norm.pdf(Z[:, 0], 0.5, 0.8) / stats.norm.pdf(Z[:, 0])
        known = kb.DensityRatio(random_state=0).fit(stats.norm(0.5, 0.8), Z)
        assert np.mean((known(Z) - truth) ** 2) < 0.04
        assert len(known.scores_["score"]) == 10 * 37

    def test_what_has_no_closed_form_is_drawn_from(self):
        Z = stats.gamma(3.0).ppf(even_draws.uniforms(300, 1, np.random.default_rng(0)))[:, 0]
        with pytest.warns(UserWarning, match="using 10000 samples"):
            model = kb.DensityRatio(random_state=0).fit(stats.gamma(2.0), Z)
        truth = stats.gamma.pdf(Z, 2.0) / stats.gamma.pdf(Z, 3.0)
        body = Z > 1.0  # the truth has a pole at zero
        assert np.mean((model(Z) - truth)[body] ** 2) < 0.3 * np.var(truth[body])
        fourier = kb.DensityRatio(kb.Gaussian(1.0), kb.RandomFourier(200), REG, random_state=0).fit(stats.norm(3, 1), Z)
        exact = kb.DensityRatio(kb.Gaussian(1.0), reg=REG).fit(stats.norm(3, 1), Z)
        assert np.abs(fourier(Z) - exact(Z)).max() < 0.3

    def test_relative_to_a_distribution(self):
        Z = even_draws.normals(300, 1, np.random.default_rng(0))[:, 0]
        truth = relative_truth(Z, stats.norm(0.5, 0.5), stats.norm(0, 1), 0.3)
        model = kb.DensityRatio(alpha=0.3, random_state=0).fit(stats.norm(0.5, 0.5), Z)
        assert np.mean((model(Z) - truth) ** 2) < 0.01


def exact_draws(given, count, rng):
    if isinstance(given, list):
        return np.stack([part.rvs(count, random_state=rng) for part in given], axis=1)
    if isinstance(given, kb.Mixture):
        return given.sample(count, rng)
    return given.rvs(count, random_state=rng)


# --------------------------------------------------------------------------------------- true ratios, and a peer


def relative_truth(z, above, below, alpha):
    p, q = (np.prod(np.atleast_2d(part.pdf(z).T), axis=0) for part in (above, below))
    return p / (alpha * p + (1 - alpha) * q)


PAIRS = {
    "shifted": (stats.norm(0.5, 0.8), stats.norm(0, 1), 1),
    "narrow": (stats.norm(1, 1 / 8), stats.norm(1, 1 / 2), 1),
    "shifted, 2-d": (stats.norm(0.5, 0.8), stats.norm(0, 1), 2),
}


def error(model, z, above, below, alpha):
    return np.mean((model(z) - relative_truth(z, above, below, alpha)) ** 2)


class TestTrueRatios:
    @pytest.mark.parametrize(("name", "alpha"), [*((name, 0.0) for name in PAIRS), ("narrow", 0.2)])
    def test_the_error_falls_with_the_sample(self, name, alpha):
        above, below, d = PAIRS[name]
        errors = []
        for n in (100, 800):
            rng = np.random.default_rng(n)
            draws = [[law.ppf(even_draws.uniforms(n, d, rng)) for law in (above, below)] for _ in range(4)]
            models = [kb.DensityRatio(alpha=alpha, random_state=0).fit(T, Z) for T, Z in draws]
            pairs = zip(models, draws, strict=True)
            errors.append(np.mean([error(model, Z, above, below, alpha) for model, (_, Z) in pairs]))
        spread = np.var(relative_truth(below.rvs((5000, d), random_state=0), above, below, alpha))
        assert errors[1] < errors[0] / 2
        assert errors[1] < 0.1 * spread

    def test_tails_beyond_the_denominator_do_not_drive_the_choice(self, monkeypatch):
        above, below, _ = PAIRS["shifted"]
        grid = (np.arange(100) + 0.5) / 100
        T, Z = above.ppf(grid), below.ppf(grid)
        Z = Z[Z < 1.6]
        assert error(kb.DensityRatio(random_state=0).fit(T, Z), Z, above, below, 0.0) < 0.1
        plain = rule.losses
        monkeypatch.setattr(rule, "losses", lambda *values, truncate: plain(*values, truncate=False))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert error(kb.DensityRatio(random_state=0).fit(T, Z), Z, above, below, 0.0) > 0.3

    def test_equal_distributions_have_ratio_one(self):
        rng = np.random.default_rng(0)
        errors, divergences = [], []
        for _ in range(4):
            Z, T = rng.normal(size=(300, 2)), rng.normal(size=(300, 2))
            model = kb.DensityRatio(random_state=0).fit(T, Z)
            errors.append(np.mean((model(Z) - 1) ** 2))
            divergences.append(model.divergence())
        assert np.mean(errors) < 0.06
        assert abs(np.mean(divergences)) < 0.03

    def test_weights_turn_one_sample_into_the_other(self):
        rng = np.random.default_rng(0)
        Z, T = even_draws.normals(500, 1, rng), 0.7 + 0.6 * even_draws.normals(500, 1, rng)
        model = kb.DensityRatio(random_state=0).fit(T, Z)
        assert np.isclose(model.weights_.sum(), 1.0)
        assert abs(model.weights_ @ Z[:, 0] - 0.7) < 0.05
        assert abs(model.weights_ @ Z[:, 0] ** 2 - (0.7**2 + 0.6**2)) < 0.05

    @pytest.mark.parametrize("alpha", [0.0, 0.3])
    def test_divergence(self, alpha):
        above, below = stats.norm(0.5, 0.9), stats.norm(0, 1)

        def integrand(z):
            mixture = alpha * above.pdf(z) + (1 - alpha) * below.pdf(z)
            return 0.5 * mixture * (above.pdf(z) / mixture - 1) ** 2

        wanted = integrate.quad(integrand, -10, 10)[0]
        rng = np.random.default_rng(1)
        model = kb.DensityRatio(alpha=alpha, random_state=0).fit(
            *(law.ppf(even_draws.uniforms(500, 1, rng)) for law in (above, below))
        )
        assert abs(model.divergence() - wanted) < 0.2 * wanted

    @pytest.mark.parametrize("alpha", [0.0, 0.1])
    def test_closer_to_the_truth_than_densratio(self, alpha, monkeypatch):
        module = importlib.import_module("densratio.RuLSIF")
        ours, theirs = [], []
        for above, below, d in PAIRS.values():
            for seed in range(4):
                T, Z = above.rvs((150, d), random_state=seed), below.rvs((150, d), random_state=50 + seed)
                monkeypatch.setattr(module, "choice", np.random.default_rng(seed).choice)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = kb.DensityRatio(alpha=alpha, random_state=0).fit(T, Z)
                    grid = 10 ** np.linspace(-3, 1, 9)  # its own default
                    peer = module.RuLSIF(T, Z, alpha, grid, grid, verbose=False)
                ours.append(error(model, Z, above, below, alpha))
                theirs.append(error(peer.compute_density_ratio, Z, above, below, alpha))
        assert np.mean(ours) < 0.9 * np.mean(theirs)
        assert np.median(ours) < 1.25 * np.median(theirs)


# ------------------------------------------------------------------------------------------------ choosing, warning


class TestChoices:
    def test_the_table_holds_what_was_chosen(self):
        Z, T, _ = two_samples(200, 150)
        model = kb.DensityRatio(random_state=0).fit(T, Z)
        assert {name: len(column) for name, column in model.scores_.items()} == dict.fromkeys(
            ("factor", "reg", "score"), 10 * 37
        )
        factor = (model.kernel_.lengthscale / kb.median_lengthscale(Z, per_column=True))[0]
        rows = np.flatnonzero(np.isclose(model.scores_["factor"], factor))
        best = rows[model.scores_["score"][rows].argmin()]
        assert len(rows) == 37
        assert model.reg_ == model.scores_["reg"][best]
        assert np.isclose(model.divergence(), -model.scores_["score"][best] - 0.5)
        assert model.scores_["score"][best] < model.scores_["score"].min() + 0.1

    def test_of_lengthscales_within_noise_the_longest_is_taken(self):
        rng = np.random.default_rng(0)
        below, above = rng.normal(size=50), rng.normal(size=40)

        def shifted(gap, noise):  # worse by gap, with losses that differ by noise from point to point
            return (below + (gap + noise * np.tile([1.0, -1.0], 25)) / 50, above)

        choose = density_ratio._last_of_the_best
        assert choose([(below, above), shifted(1e-3, 0.0)]) == 0
        error = 1.0 / np.sqrt(50)  # of a sum of 50 differences of spread 1 / 50
        assert choose([(below, above), shifted(0.3 * error, 1.0), shifted(2.0 * error, 1.0)]) == 1
        assert choose([shifted(0.3 * error, 1.0), (below, above)]) == 1
        assert (
            choose([(below, above), shifted(0.3 * error, 1.0)], (0.1, 1.0)) == 0
        )  # there are ten times as many points

    def test_what_is_given_is_used(self):
        Z, T, _ = two_samples(100, 80)
        only_reg = kb.DensityRatio(reg=0.03).fit(T, Z)
        assert only_reg.reg_ == 0.03
        assert set(only_reg.scores_["reg"]) == {0.03}
        only_kernel = kb.DensityRatio(2.0 * kb.Gaussian(1.0)).fit(T, Z)
        assert set(only_kernel.scores_) == {"reg", "score"}
        half = kb.DensityRatio(kb.Gaussian(1.0)).fit(T, Z)
        np.testing.assert_allclose(only_kernel.reg_, 2 * half.reg_)  # regularisers scale with the kernel
        np.testing.assert_allclose(only_kernel(Z), half(Z), rtol=1e-6, atol=1e-6)

    def test_units_do_not_matter(self):
        Z, T, at = two_samples(80, 70)
        shift, scale = np.array([5.0, -300.0]), np.array([0.01, 100.0])
        plain, scaled = (
            kb.DensityRatio(random_state=0).fit(f(T), f(Z))(f(at)) for f in (lambda P: P, lambda P: shift + scale * P)
        )
        np.testing.assert_allclose(scaled, plain, atol=1e-5)

    def test_the_same_seed_gives_the_same_answer(self):
        Z, T, at = two_samples(1100, 300)
        first, second = (kb.DensityRatio(features=kb.Subspace(30), random_state=3).fit(T, Z)(at) for _ in range(2))
        assert np.array_equal(first, second)

    def test_copies(self):
        Z, T, at = two_samples()
        model = kb.DensityRatio(kb.Gaussian(1.0), reg=REG, alpha=0.1).fit(T, Z)
        assert np.array_equal(pickle.loads(pickle.dumps(model))(at), model(at))
        assert clone(model).get_params() == model.get_params()

    def test_saved_and_loaded(self, tmp_path):
        Z, T, at = two_samples()
        model = kb.DensityRatio(random_state=0).fit(T, Z)
        kb.save(model, tmp_path / "ratio.npz")
        loaded = kb.load(tmp_path / "ratio.npz")
        assert np.array_equal(loaded(at), model(at))
        assert loaded.divergence() == model.divergence()


class TestWarnings:
    @pytest.mark.parametrize("settings", [{}, dict(kernel=kb.Gaussian(1.0)), dict(kernel=kb.Gaussian(1.0), reg=1e-3)])
    @pytest.mark.parametrize("distance", [6.0, 1e3])
    def test_a_numerator_far_outside(self, settings, distance):
        Z, T, _ = two_samples(100, 80)
        with pytest.warns(UserWarning, match=r"100% of the numerator lies outside.*Take a denominator") as caught:
            model = kb.DensityRatio(random_state=0, **settings).fit(T + distance, Z)
        assert len(caught) == 1
        assert model.outside_ == 1.0
        for values in (model.weights_, model(Z), model(T + distance), model.divergence()):
            assert np.isfinite(values).all()

    def test_a_mean_far_from_one(self):
        Z, T, _ = two_samples(100, 80)
        with pytest.warns(UserWarning, match="which should be 1, is 0.0"):
            kb.DensityRatio(kb.Gaussian(1.0), reg=100.0).fit(T, Z)

    def test_weight_on_a_single_point(self):
        Z = np.linspace(0, 100, 50)
        T = 50.2 + np.linspace(-0.01, 0.01, 20)
        with pytest.warns(UserWarning, match="effective points of the denominator only"):
            kb.DensityRatio(kb.Gaussian(0.1), reg=1e-4, alpha=0.1).fit(T, Z)

    def test_the_edges_of_the_grid(self, monkeypatch):
        Z, T, _ = two_samples(100, 80)
        monkeypatch.setattr("kernelbayes.density_ratio._REGS", np.array([1e-6, 1e-5]))
        with pytest.warns(kb.BoundWarning, match="largest regulariser"):
            kb.DensityRatio(kb.Gaussian(1.0)).fit(T, Z)
        monkeypatch.undo()
        monkeypatch.setattr(
            "kernelbayes.density_ratio._FACTORS", np.array([10.0, 0.02])
        )  # the first counts as shortest
        rng = np.random.default_rng(0)
        with pytest.warns(kb.BoundWarning, match="shortest lengthscale"):
            kb.DensityRatio().fit(rng.normal(size=100), rng.normal(size=100))

    def test_silence_where_all_is_well(self):
        for seed in range(2):
            rng = np.random.default_rng(seed)
            kb.DensityRatio().fit(rng.normal(0.3, 0.8, 100), rng.normal(size=120))
            kb.DensityRatio(alpha=0.5).fit(rng.normal(3.0, 1.0, 100), rng.normal(size=120))


class TestBadInput:
    Z, T, _ = two_samples(30, 20)

    @pytest.mark.parametrize(
        ("numerator", "denominator", "match"),
        [
            (T, np.full((30, 2), np.nan), "denominator contains NaN"),
            (np.full((20, 2), np.inf), Z, "numerator contains infinity"),
            (T[:, :1], Z, "numerator has 1 columns where denominator has 2 columns"),
            (stats.norm(0, 1), Z, "numerator has 1 columns where denominator has 2 columns"),
            (T, Z[:1], "denominator needs at least two points"),
            (T, np.ones((30, 2)), "denominator has no two distinct points"),
            (T, np.empty((0, 2)), "denominator is empty"),
            ([], Z, "numerator is empty"),
            ([["a", "b"]] * 20, Z, "numerator holds text"),
            (T, stats.norm(0, 1), "denominator must be a sample"),
            (T, kb.MeanEmbedding(Z), "denominator must be a sample"),
            (kb.MeanEmbedding(T, np.tile([1.0, -1.0], 10)), Z, "cannot be normalised"),
            (stats.norm, Z, "a norm_gen is not a distribution"),
            (None, Z, "numerator"),
        ],
    )
    def test_of_samples(self, numerator, denominator, match):
        with pytest.raises(ValueError, match=match):
            kb.DensityRatio().fit(numerator, denominator)

    @pytest.mark.parametrize(
        ("settings", "match"),
        [
            (dict(alpha=1.0), "alpha must be at least 0 and below 1"),
            (dict(alpha=-0.1), "alpha must be at least 0 and below 1"),
            (dict(alpha="a"), "alpha must be one number"),
            (dict(reg=0.0), "reg must be positive"),
            (dict(kernel=1.0), "kernel must be a Kernel such as"),
            (dict(features=100), "features must be a Recipe such as"),
            (dict(kernel=kb.Gaussian(), features=kb.OneHot()), "brings its own kernel"),
            (dict(random_state="seed"), "random_state"),
        ],
    )
    def test_of_settings(self, settings, match):
        with pytest.raises(ValueError, match=match):
            kb.DensityRatio(**settings).fit(self.T, self.Z)

    def test_of_points(self):
        model = kb.DensityRatio(kb.Gaussian(1.0), reg=REG)
        with pytest.raises(ValueError, match="not fitted"):
            model.predict(self.Z)
        model.fit(self.T, self.Z)
        with pytest.raises(ValueError, match="X"):
            model.predict(self.Z[:, :1])
        with pytest.raises(ValueError, match="X contains NaN"):
            model([[0.0, np.nan]])

    @pytest.mark.parametrize(
        "change",
        [
            lambda P: np.repeat(P[:10], 2, axis=0),
            lambda P: np.column_stack([P[:, 0], np.full(len(P), 3.0)]),
            lambda P: 1e6 + P,
            lambda P: np.round(P),
            lambda P: P.astype(int),
        ],
        ids=["repeated", "constant column", "large offset", "rounded", "whole numbers"],
    )
    def test_awkward_samples_give_finite_answers(self, change):
        Z, T, _ = two_samples(60, 50)
        for alpha in (0.0, 0.2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                model = kb.DensityRatio(alpha=alpha, random_state=0).fit(change(T), change(Z))
            assert np.isfinite(model(change(Z))).all()
            assert np.isfinite(model.weights_).all()


def test_a_regulariser_below_rounding_divides_by_no_zero():
    """A numerator of equal points has all of M's leverage to itself."""
    numerator, denominator = np.full((12, 1), 0.3), np.random.default_rng(0).normal(size=(12, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = kb.DensityRatio(kb.Matern(2.5, 0.9), reg=1e-60, alpha=0.9).fit(numerator, denominator)
    assert np.isfinite(model.score_)
    assert np.isfinite(model.predict(denominator)).all()

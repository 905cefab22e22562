"""Kernel Bayes' rules: each against its paper's formula on each representation, known limits, and exact posteriors."""

import warnings

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes._linalg import LowRank
from kernelbayes.embeddings import _health
from kernelbayes.learning import _bayes as learning_bayes
from kernelbayes.rules.bayes import RULES
from oracles import bayes as oracle
from oracles import even_draws
from oracles.conditional import conditional_weights, gaussian_gram

N, M, T = 60, 45, 4
ETA, REG = 1e-3, 1e-2
X_SCALE, Z_SCALE = 1.3, 1.6


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(N, 2))
    X = np.concatenate([Z, Z[:, :1] ** 2], axis=1) + 0.3 * rng.normal(size=(N, 3))
    prior = 0.4 + 0.6 * rng.normal(size=(M, 2))
    observed = X[:T] + 0.1 * rng.normal(size=(T, 3))
    return X, Z, prior, observed


def _fit(rule, X, Z, **settings):
    settings = dict(
        kernel=kb.Gaussian(X_SCALE),
        latent_kernel=kb.Gaussian(Z_SCALE),
        reg=REG,
        prior_reg=ETA,
        normalise=None,
        random_state=0,
        **settings,
    )
    if settings.get("features") is not None and settings["features"]._kernel() is not None:
        settings["kernel"] = None
    return kb.KernelBayesRule(rule, **settings).fit(X, Z)


def _network():
    with jax.enable_x64(True):
        return eqx.nn.MLP(3, 12, width_size=16, depth=1, activation=jax.numpy.tanh, key=jax.random.key(0))


REPRESENTATIONS = {
    "exact": kb.Exact(),
    "dense": kb.Exact(),  # with a kernel so short that its Gram matrix has full rank
    "incomplete": kb.IncompleteCholesky(20),
    "subspace": kb.Subspace(15),
    "fourier": kb.RandomFourier(40),
    "neural": kb.Neural(_network()),
}


def _expected(rule, K, k, L, Lt):
    """The paper's weights for prior points of equal weight."""
    w = np.full(Lt.shape[1], 1.0 / Lt.shape[1])
    gamma = oracle.ratio_weights(L, Lt, w, ETA)
    return {
        "iw": lambda: oracle.importance_weighted(K, k, gamma, REG),
        "kbr": lambda: oracle.kanagawa(K, k, gamma, REG),
        "kbr-a1": lambda: oracle.hsu_kbr_a1(K, k, L, Lt, ETA, REG),
        "kbr-a2": lambda: oracle.hsu_kbr_a2(K, k, L, Lt, ETA, REG),
        "kbr-b1": lambda: oracle.hsu_kbr_b1(K, k, L, Lt, ETA, REG),
        "dmo": lambda: oracle.hsu_dmo(K, k, L, Lt, ETA, REG),
    }[rule]()


def _quiet(model, observed, prior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.PosteriorWarning)
        return model.posterior(observed, prior)


@pytest.mark.parametrize("name", REPRESENTATIONS)
@pytest.mark.parametrize("rule", [r for r in RULES if r != "subspace"])
def test_rule_on_representation_of_x(rule, name, data, monkeypatch):
    X, Z, prior, observed = data
    if name == "dense":
        monkeypatch.setattr("kernelbayes.features._landmark._FULL_RANK", 0.0)
    model = _fit(rule, X, Z, features=REPRESENTATIONS[name])
    L, Lt = gaussian_gram(Z, Z, Z_SCALE), gaussian_gram(Z, prior, Z_SCALE)
    if name in ("exact", "dense"):
        K, k = gaussian_gram(X, X, X_SCALE), gaussian_gram(X, observed, X_SCALE)
    else:
        F = model.features_.transform(X)
        K, k = F @ F.T, F @ model.features_.transform(observed).T
    found = _quiet(model, observed, prior).weights
    wanted = _expected(rule, K, k, L, Lt)
    np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["incomplete", "subspace", "fourier", "dense"])
@pytest.mark.parametrize("rule", [r for r in RULES if r != "subspace"])
def test_rule_on_representation_of_z(rule, name, data, monkeypatch):
    X, Z, prior, observed = data
    if name == "dense":
        monkeypatch.setattr("kernelbayes.features._landmark._FULL_RANK", 0.0)
    model = _fit(rule, X, Z, latent_features=REPRESENTATIONS[name])
    latent = model.likelihood_.features_
    F = latent.transform(Z)
    L, Lt = F @ F.T, F @ latent.transform(prior).T
    K, k = gaussian_gram(X, X, X_SCALE), gaussian_gram(X, observed, X_SCALE)
    found = _quiet(model, observed, prior).weights
    wanted = _expected(rule, K, k, L, Lt)
    np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())


@pytest.mark.parametrize("rule", ["iw", "kbr", "kbr-b1"])
def test_a_chosen_ratio_is_the_formula_at_what_was_chosen(rule, data):
    """With prior_reg open the ratio is estimated anew for each prior; given the value found, it is the oracle's."""
    X, Z, prior, observed = data
    settings = dict(kernel=kb.Gaussian(X_SCALE), latent_kernel=kb.Gaussian(Z_SCALE), reg=REG, normalise=None)
    posterior = _quiet(kb.KernelBayesRule(rule, random_state=0, **settings).fit(X, Z), observed, prior)
    w = np.full(M, 1.0 / M)
    L, Lt = gaussian_gram(Z, Z, Z_SCALE), gaussian_gram(Z, prior, Z_SCALE)
    gamma = oracle.ratio_weights(L, Lt, w, posterior.health.prior_reg)
    K, k = gaussian_gram(X, X, X_SCALE), gaussian_gram(X, observed, X_SCALE)
    wanted = {
        "iw": oracle.importance_weighted(K, k, gamma, REG),
        "kbr": oracle.kanagawa(K, k, gamma, REG),
        "kbr-b1": (np.diag(gamma) @ np.linalg.inv(K @ np.diag(gamma) + REG * np.eye(N)) @ k).T,
    }[rule]
    np.testing.assert_allclose(posterior.weights, wanted, atol=1e-7 * np.abs(wanted).max())


def test_subspace_rule_as_printed(data):
    X, Z, prior, observed = data
    model = _fit("subspace", X, Z, latent_features=kb.Subspace(15, whiten=False))
    R = model.likelihood_.features_.points
    wanted = oracle.gebhardt(
        gaussian_gram(X, X, X_SCALE),
        gaussian_gram(X, observed, X_SCALE),
        gaussian_gram(Z, R, Z_SCALE),
        gaussian_gram(prior, R, Z_SCALE),
        np.full(M, 1.0 / M),
        N * ETA,
        REG,
    )
    found = _quiet(model, observed, prior).weights
    np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())


def test_the_two_forms_of_the_deconditional_operator(data):
    X, Z, prior, observed = data
    K, k = gaussian_gram(X, X, X_SCALE), gaussian_gram(X, observed, X_SCALE)
    for few in (prior[:7], prior, np.concatenate([prior, prior + 0.01])):
        L, Lt = gaussian_gram(Z, Z, Z_SCALE), gaussian_gram(Z, few, Z_SCALE)
        found = _quiet(_fit("dmo", X, Z), observed, few).weights
        np.testing.assert_allclose(found, oracle.hsu_dmo_woodbury(K, k, L, Lt, ETA, REG), atol=1e-9)


@pytest.mark.parametrize("rule", ["iw", "kbr", "kbr-b1"])
def test_signed_prior_weights(rule, data):
    X, Z, prior, observed = data
    w = np.random.default_rng(3).normal(1.0, 1.0, M)
    w /= w.sum()
    assert (w < 0).any()
    gamma = oracle.ratio_weights(gaussian_gram(Z, Z, Z_SCALE), gaussian_gram(Z, prior, Z_SCALE), w, ETA)
    K, k = gaussian_gram(X, X, X_SCALE), gaussian_gram(X, observed, X_SCALE)
    wanted = {
        "iw": oracle.importance_weighted(K, k, gamma, REG),
        "kbr": oracle.kanagawa(K, k, gamma, REG),
        "kbr-b1": (np.diag(gamma) @ np.linalg.inv(K @ np.diag(gamma) + REG * np.eye(N)) @ k).T,
    }[rule]
    found = _quiet(_fit(rule, X, Z), observed, kb.MeanEmbedding(prior, w, kb.Gaussian(Z_SCALE))).weights
    np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())


def test_signed_prior_weights_of_the_deconditional_rule(data):
    X, Z, prior, observed = data
    w = np.random.default_rng(3).normal(1.0, 1.0, M)
    w /= w.sum()
    L, Lt = gaussian_gram(Z, Z, Z_SCALE), gaussian_gram(Z, prior, Z_SCALE)
    K, k = gaussian_gram(X, X, X_SCALE), gaussian_gram(X, observed, X_SCALE)
    A = np.linalg.inv(L + N * ETA * np.eye(N)) @ Lt
    wanted = (np.diag(w) @ A.T @ np.linalg.inv(K @ A @ np.diag(w) @ A.T + REG * np.eye(N)) @ k).T
    found = _quiet(_fit("dmo", X, Z), observed, kb.MeanEmbedding(prior, w, kb.Gaussian(Z_SCALE))).weights
    np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())


# ------------------------------------------------------------------------------------------------------- limits


@pytest.fixture(scope="module")
def rough():
    """Pairs whose Gram matrix of z is well conditioned, so that eta -> 0 can be reached in double precision."""
    rng = np.random.default_rng(1)
    Z = np.linspace(-3, 3, 40)[:, None]
    X = np.sin(Z) + 0.2 * rng.normal(size=(40, 1))
    return X, Z, np.array([[-0.5], [0.3]])


def _rough_fit(rule, X, Z, reg, prior_reg=1e-12):
    return kb.KernelBayesRule(
        rule, kb.Laplace(0.5), kb.Laplace(0.3), reg=reg, prior_reg=prior_reg, normalise=None, random_state=0
    ).fit(X, Z)


@pytest.mark.parametrize("rule", ["iw", "kbr-a1", "kbr-b1", "dmo"])
def test_plain_rules_become_the_conditional_embedding(rule, rough):
    """Prior = training sample and eta -> 0: Hsu, theorem 5.9 and the end of section 5.7."""
    X, Z, observed = rough
    kernel = kb.Laplace(0.5)
    wanted = conditional_weights(kernel.gram(X), kernel.gram(X, observed), REG)
    np.testing.assert_allclose(_quiet(_rough_fit(rule, X, Z, REG), observed, Z).weights, wanted, atol=1e-7)
    np.testing.assert_allclose(_quiet(_rough_fit(rule, X, Z, REG), observed, None).weights, wanted, atol=1e-10)


@pytest.mark.parametrize("rule", ["kbr", "kbr-a2", "subspace"])
def test_squared_rules_have_their_own_limit(rule, rough):
    """There D = I/n and A = I, so with C = K/n the weights are (1/n) C (C^2 + e I)^-1 k(x) = K (K^2 + n^2 e I)^-1 k(x)."""
    X, Z, observed = rough
    kernel, e, n = kb.Laplace(0.5), 1e-3, len(X)
    K = kernel.gram(X)
    wanted = (K @ np.linalg.inv(K @ K + n**2 * e * np.eye(n)) @ kernel.gram(X, observed)).T
    settings = {"latent_features": kb.Subspace(n, whiten=False)} if rule == "subspace" else {}
    model = kb.KernelBayesRule(
        rule, kernel, kb.Laplace(0.3), reg=e, prior_reg=1e-13, normalise=None, random_state=0, **settings
    ).fit(X, Z)
    np.testing.assert_allclose(_quiet(model, observed, Z).weights, wanted, atol=1e-6)
    np.testing.assert_allclose(_quiet(model, observed, None).weights, wanted, atol=1e-10)


def test_third_order_rules_lose_the_prior_and_the_deconditional_does_not():
    """Hsu, table 5.2, epsilon -> 0: Psi K^-1 Phi' for KBR(b); Psi~ A' (A A')^-1 K^-1 Phi' for the DMO."""
    Z = np.linspace(-2, 2, 25)[:, None]  # no two points so near that the limit is out of reach in double precision
    X = np.random.default_rng(2).permuted(Z.reshape(5, 5), axis=1).reshape(25, 1)
    prior, eta = np.linspace(-1.5, 2, 60)[:, None], 1e-2
    kx, kz = kb.Laplace(0.4), kb.Laplace(0.4)
    observed = np.array([[0.2], [1.0]])
    K, k = kx.gram(X), kx.gram(X, observed)
    A = np.linalg.inv(kz.gram(Z) + 25 * eta * np.eye(25)) @ kz.gram(Z, prior)
    without_prior = np.linalg.solve(K, k).T
    degenerate = (A.T @ np.linalg.inv(A @ A.T) @ np.linalg.solve(K, k)).T

    def weights(rule, reg):
        settings = dict(reg=reg, prior_reg=eta, normalise=None, random_state=0)
        return _quiet(kb.KernelBayesRule(rule, kx, kz, **settings).fit(X, Z), observed, prior).weights

    for rule, reg in (("kbr-b1", 1e-12), ("kbr", 1e-17)):
        np.testing.assert_allclose(weights(rule, reg), without_prior, atol=2e-3)
    np.testing.assert_allclose(weights("dmo", 1e-13), degenerate, rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------------------------------- exact posteriors


def _conjugate(d, n, rng, m=600, normals=even_draws.normals):
    """Training z wider than the prior; x = z + noise. Observations from their marginal under the prior."""
    prior_sd, noise = 0.7, 0.5
    centre = np.linspace(1.0, -0.5, d)
    pairs = normals(n, 2 * d, rng)
    Z = 2.0 * pairs[:, :d]
    X = Z + noise * pairs[:, d:]
    prior = centre + prior_sd * normals(m, d, rng)
    observed = centre + np.hypot(prior_sd, noise) * normals(25, d, rng)
    variance = 1 / (1 / prior_sd**2 + 1 / noise**2)
    mean = variance * (centre / prior_sd**2 + observed / noise**2)
    return X, Z, prior, observed, mean, np.sqrt(variance)


def _errors(d, n, seed, **settings):
    X, Z, _, observed, mean, sd = _conjugate(d, n, np.random.default_rng(seed))
    exact = [stats.norm(c, 0.7) for c in np.linspace(1.0, -0.5, d)]  # the prior itself, so that only pairs are few
    posterior = _quiet(kb.KernelBayesRule(random_state=0, **settings).fit(X, Z), observed, exact)
    lower, upper = posterior.interval(0.9)
    half = stats.norm.ppf(0.95) * sd
    grid = mean[0] + sd * np.linspace(-2, 2, 9)[:, None] * np.eye(d)[0]
    density = stats.norm.pdf(grid, mean[0], sd).prod(1)
    return (
        np.sqrt(np.mean((posterior.mean() - mean) ** 2)) / sd,
        np.mean(np.abs(posterior.std() - sd)) / sd,
        np.mean(np.abs(np.stack([lower, upper]) - np.stack([mean - half, mean + half]))) / sd,
        np.abs(posterior[0].density(grid) - density).mean() / density.max(),
    )


@pytest.mark.parametrize(("d", "most"), [(1, (0.15, 0.15, 0.25, 0.13)), (2, (0.4, 0.32, 0.5, 0.3))])
def test_conjugate_gaussian_and_errors_that_fall_with_the_number_of_pairs(d, most):
    """Mean, standard deviation, 90 % interval (in posterior standard deviations) and density (of its peak)."""
    few, many = (np.mean([_errors(d, n, seed) for seed in range(2)], axis=0) for n in (50, 1000))
    assert (many < most).all(), many
    assert many[:3].sum() < 0.7 * few[:3].sum(), (few, many)


@pytest.mark.filterwarnings("ignore::kernelbayes.BoundWarning")
@pytest.mark.parametrize("rule", ["iw", "kbr", "kbr-a1", "kbr-a2", "kbr-b1"])
def test_rules_find_the_posterior_mean_by_themselves(rule):
    errors = []
    for seed in range(5):
        X, Z, prior, observed, mean, sd = _conjugate(1, 250, np.random.default_rng(seed), m=300)
        model = kb.KernelBayesRule(rule, random_state=0).fit(X, Z)
        errors.append([np.sqrt(np.mean((_quiet(model, observed, p).mean() - mean) ** 2)) / sd for p in (prior, None)])
    error, marginal_only = np.median(errors, axis=0)
    assert error < 0.4
    assert error < 0.65 * marginal_only  # the prior was used


@pytest.mark.filterwarnings("ignore:.*free of noise:kernelbayes.learning.BoundWarning")  # it is
@pytest.mark.parametrize("rule", ["dmo", "subspace"])
def test_second_order_rules_find_it_where_x_is_a_function_of_z(rule):
    """Hsu, theorem 5.8. Two z share each x, and the prior tells them apart."""
    rng = np.random.default_rng(0)
    Z = 4 * even_draws.uniforms(400, 1, rng) - 2
    prior = 0.8 + 0.5 * even_draws.normals(300, 1, rng)
    model = kb.KernelBayesRule(rule, random_state=0).fit(Z**2, Z)
    observed = np.array([[0.25], [0.64], [1.44]])
    odds = np.exp(-0.5 * ((-np.sqrt(observed) - 0.8) ** 2 - (np.sqrt(observed) - 0.8) ** 2) / 0.25)
    exact = np.sqrt(observed) * (1 - odds) / (1 + odds)
    np.testing.assert_allclose(_quiet(model, observed, prior).mean(), exact, atol=0.2)
    np.testing.assert_allclose(_quiet(model, observed, None).mean(), 0.0, atol=0.25)


def test_priors_in_every_form_agree():
    X, Z, prior, observed, _, _ = _conjugate(1, 400, np.random.default_rng(0), m=20_000)
    model = kb.KernelBayesRule(reg=1e-3, prior_reg=1e-3, latent_kernel=kb.Gaussian(1.0), random_state=0).fit(X, Z)
    exact = _quiet(model, observed, stats.norm(1.0, 0.7)).mean()
    same = _quiet(model, observed, kb.AnalyticEmbedding(stats.norm(1.0, 0.7), kb.Gaussian(0.5))).mean()
    np.testing.assert_allclose(same, exact, atol=1e-12)
    assert np.abs(_quiet(model, observed, prior).mean() - exact).mean() < 0.03
    weighted = kb.MeanEmbedding(prior[:10_000], np.full(10_000, 3.0), kb.Gaussian(1.0))
    assert np.abs(_quiet(model, observed, weighted).mean() - exact).mean() < 0.03


def test_the_relative_ratio_leans_towards_the_training_marginal():
    X, Z, prior, observed, mean, _ = _conjugate(1, 500, np.random.default_rng(1))
    plain, relative = (
        kb.KernelBayesRule(alpha=alpha, random_state=0).fit(X, Z).posterior(observed, prior) for alpha in (0.0, 0.3)
    )
    assert relative.health.prior_ess > plain.health.prior_ess
    assert np.mean((relative.mean() - mean) ** 2) < 0.1


# ------------------------------------------------------------------------------------------------- using it


def test_one_and_several_observations():
    X, Z, prior, observed, *_ = _conjugate(2, 200, np.random.default_rng(0))
    model = kb.KernelBayesRule(random_state=0).fit(X, Z)
    several, one = _quiet(model, observed, prior), _quiet(model, observed[3], prior)
    assert isinstance(one, kb.Posterior)
    assert len(several) == 25
    np.testing.assert_allclose(several[3].weights, one.weights, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(several.mean()[3], one.mean(), atol=1e-12)
    np.testing.assert_allclose(several.cov()[3], one.cov(), atol=1e-12)
    np.testing.assert_allclose(several.interval(0.8)[:, 3], one.interval(0.8), atol=1e-12)
    np.testing.assert_allclose(several.prob(0.0)[3], one.prob(0.0), atol=1e-12)
    np.testing.assert_allclose(
        several.expect(lambda z: z[:, 0] ** 2)[3], one.expect(lambda z: z[:, 0] ** 2), atol=1e-12
    )
    assert [p.health.ess for p in several][3] == pytest.approx(one.health.ess)
    np.testing.assert_allclose(several.weights.sum(1), 1.0)


def test_flat_arrays():
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    x = z + 0.3 * rng.normal(size=200)
    model = kb.KernelBayesRule(random_state=0).fit(x, z)
    assert isinstance(model.posterior(0.5), kb.Posterior)
    assert len(model.posterior([0.5, 1.0])) == 2
    with pytest.raises(ValueError, match="observed has 2 dimensions"):
        model.posterior([[0.5]])
    with pytest.raises(AttributeError, match=r"take posteriors\[i\]"):
        model.posterior([0.5]).mixture(2)
    table = kb.KernelBayesRule(kernel=kb.Gaussian(1.0), reg=1e-3).fit(x[:, None], z)
    np.testing.assert_array_equal(table.posterior(0.5).weights, table.posterior([0.5]).weights)


def test_an_observation_that_the_prior_did_not_expect():
    rng = np.random.default_rng(0)
    Z = rng.uniform(-3, 3, (800, 1))
    model = kb.KernelBayesRule(kernel=kb.Gaussian(0.5), reg=1e-4, random_state=0)
    model.fit(np.tanh(Z) + 0.2 * rng.normal(size=(800, 1)), Z)
    prior = stats.uniform(-2.8, 1.6)  # outside of which the ratio is known to be zero
    with pytest.warns(kb.PosteriorWarning, match="implausible under this prior"):
        model.posterior([0.9], prior)
    assert model.posterior([-0.9], prior).health.ok


def _in_the_tail(seed, rule="iw", n=300):
    """A reading 2.6 standard deviations from what the prior predicts; the exact posterior is N(1.10, 0.257^2)."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(0, 2, (n, 1))
    X = Z + 0.5 * rng.normal(size=(n, 1))
    model = kb.KernelBayesRule(rule, random_state=0).fit(X, Z)
    return model, rng.normal(1.5, 0.3, (1000, 1))


def test_pairs_that_the_prior_excludes_have_no_weight():
    """Small positive values of an estimated ratio, far from the prior, would outweigh all others in its tail."""
    off = []
    for seed in range(3):
        model, prior = _in_the_tail(seed)
        posterior = _quiet(model, [0.0], prior)
        assert (posterior.weights[(model.Z_ < 0)[:, 0]] == 0).all()
        lower, upper = posterior.interval(0.9)[:, 0]
        assert 0.3 < lower < upper < 2.7  # the prior's draws lie between 0.5 and 2.5
        off.append(abs(posterior.mean()[0] - 1.10))
    assert np.mean(off) < 0.3  # 0.4 to 0.6 otherwise
    printed = kb.KernelBayesRule(kernel=model.kernel_, reg=model.reg_, normalise=None, random_state=0)
    weights = _quiet(printed.fit(model.X_, model.Z_), [0.0], prior).weights
    assert (weights[(model.Z_ < 0)[:, 0]] != 0).any()  # as in the paper


def test_where_a_prior_ends_is_not_read_off_few_draws():
    model, prior = _in_the_tail(0)
    assert model._beyond(model._read_prior(prior)).any()
    assert model._beyond(model._read_prior(prior[:40])) is None
    weights = np.where(np.arange(1000) < 20, 1.0, 0.0)  # twenty points, however often they are drawn
    assert model._beyond(model._read_prior(kb.MeanEmbedding(prior, weights, kb.Gaussian(1.0)))) is None


@pytest.mark.parametrize(
    ("rule", "observed", "measure", "said", "limit"),
    [
        ("dmo", 0.0, "contradiction", "the weights contradict themselves", _health._MOST_CONTRADICTION),
        ("kbr", -1.0, "widening", "times as wide as the prior", _health._MOST_WIDENING),
    ],
)
def test_weights_that_contradict_themselves_are_told(rule, observed, measure, said, limit):
    """With dmo the mean lies below all of the interval; kbr leaves weight where the prior has none."""
    far, near, below = [], [], []
    for seed in range(5):
        model, prior = _in_the_tail(seed, rule)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            posterior = model.posterior([observed], prior)
        far.append(getattr(posterior.health, measure))
        assert any(said in str(one.message) for one in told) == (far[-1] > limit)
        below.append(posterior.mean()[0] < posterior.interval(0.9)[0, 0])
        near.append(getattr(_quiet(model, [1.5], prior).health, measure))
    assert max(far) > 1.5 * limit
    assert np.median(near) < 0.9 * limit
    assert np.sum(np.array(far) > limit) >= 2
    assert rule == "kbr" or np.sum(below) >= 3


@pytest.mark.parametrize(
    ("prior", "match"),
    [
        (lambda z: z, "prior must be samples"),
        ("flat", "prior must be"),
        ([["a"]], "prior"),
        (kb.Prior(z=(0, 1)), "prior must be samples.*got Prior"),
        ((7, 9), r"prior is two numbers, 7 and 9.*uniform\(7, 2\)"),
    ],
)
def test_what_a_prior_may_be(prior, match, data):
    with pytest.raises(ValueError, match=match):
        _fit("iw", data[0], data[1]).posterior(data[3], prior)


def test_the_shorthand_is_the_estimator(data):
    X, Z, prior, observed = data
    settings = dict(kernel=kb.Gaussian(X_SCALE), reg=REG, random_state=0)
    long = _quiet(kb.KernelBayesRule("kbr-b1", **settings).fit(X, Z), observed, prior)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.PosteriorWarning)
        short = kb.bayes_rule(prior, X, Z, observed, rule="kbr-b1", **settings)
    np.testing.assert_array_equal(short.weights, long.weights)


def test_posterior_and_prior_can_be_compared():
    X, Z, prior, observed, *_ = _conjugate(1, 300, np.random.default_rng(0))
    embedding = kb.MeanEmbedding(prior, kernel=kb.Gaussian(0.4))
    posterior = kb.KernelBayesRule(random_state=0).fit(X, Z).posterior(observed[0], embedding)
    assert posterior.distance(embedding) > 0.1


def test_labels_as_latents():
    rng = np.random.default_rng(0)
    z = np.repeat(["cat", "dog"], 200)
    x = np.where(z == "cat", -1.0, 1.0) + 0.7 * np.tile(even_draws.normals(200, 1, rng)[:, 0], 2)
    rule = kb.KernelBayesRule(latent_kernel=kb.Delta(), random_state=0).fit(x, z)
    prior = kb.MeanEmbedding(["cat", "dog"], [0.9, 0.1], kb.Delta())
    found = float(rule.posterior(0.5, prior).expect(lambda v: v == "dog"))
    like = stats.norm.pdf(0.5, [-1.0, 1.0], 0.7) * [0.9, 0.1]
    assert found == pytest.approx(like[1] / like.sum(), abs=0.08)


def test_same_seed_same_posterior(data):
    X, Z, prior, observed = data
    first, second = (kb.KernelBayesRule("kbr", random_state=3).fit(X, Z) for _ in range(2))
    np.testing.assert_array_equal(_quiet(first, observed, prior).weights, _quiet(second, observed, prior).weights)


# --------------------------------------------------------------------------------------------------- health


@pytest.fixture(scope="module", params=list(RULES))
def fitted(request):
    X, Z, *_ = _conjugate(1, 200, np.random.default_rng(0))
    reg = 1e-3 if RULES[request.param].inverse == "plain" else 1e-6
    settings = dict(reg=reg, prior_reg=1e-3, random_state=0)
    return kb.KernelBayesRule(request.param, kb.Gaussian(1.5), kb.Gaussian(1.5), **settings).fit(X, Z)


def test_observation_far_outside(fitted):
    with pytest.warns(kb.PosteriorWarning, match="lying outside the training observations"):
        posterior = fitted.posterior([60.0])
    assert np.isfinite(posterior.weights).all()
    assert posterior.health.novelty > 5
    assert not posterior.health.ok


@pytest.mark.parametrize("normalise", ["prior", "divide", None])
def test_prior_far_from_the_training_data(fitted, normalise):
    model = fitted.__class__(**{**fitted.get_params(), "normalise": normalise}).fit(fitted.X_, fitted.Z_)
    with pytest.warns(kb.PosteriorWarning, match="of the prior lies outside the training z"):
        posterior = model.posterior([0.5], np.random.default_rng(0).normal(80.0, 0.5, (200, 1)))
    assert np.isfinite(posterior.weights).all()
    assert np.isfinite(posterior.health.condition)


@pytest.mark.parametrize("normalise", ["prior", "divide"])
def test_weights_that_sum_to_nearly_zero(fitted, normalise):
    settings = {**fitted.get_params(), "normalise": normalise, "kernel": kb.Gaussian(0.3)}
    model = fitted.__class__(**settings).fit(fitted.X_, fitted.Z_)
    with pytest.warns(kb.PosteriorWarning, match="before normalising"):
        posterior = model.posterior([1e4])
    assert np.isfinite(posterior.weights).all()
    assert posterior.weights.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(posterior.mean(), fitted.Z_.mean(0), atol=1e-6)  # nothing was learned: the prior


def test_no_alarm_where_all_is_well():
    alarms = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, Z, prior, observed, *_ = _conjugate(2, 400, rng, normals=lambda n, d, rng: rng.normal(size=(n, d)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kb.PosteriorWarning)
            model = kb.KernelBayesRule(kernel=kb.Gaussian(2.0), reg=1e-3, random_state=0).fit(X, Z)
            several = model.posterior(observed, prior)
        alarms += sum(not p.health.ok for p in several)
    assert alarms <= 2  # of 250


def test_the_warning_says_which_of_many():
    X, Z, *_ = _conjugate(1, 200, np.random.default_rng(0))
    with pytest.warns(kb.PosteriorWarning, match=r"1 of 3 observations \(first: 1\)"):
        kb.KernelBayesRule(random_state=0).fit(X, Z).posterior([[0.0], [50.0], [1.0]])


def test_a_narrow_prior_is_no_cause_for_alarm():
    """Within it x tells nothing, so that a large regulariser is chosen and the prior is left: rightly."""
    X, Z, *_ = _conjugate(1, 200, np.random.default_rng(0))
    posterior = kb.KernelBayesRule(random_state=0).fit(X, Z).posterior([1.5], stats.norm(1.0, 0.1))
    assert posterior.health.ok
    assert posterior.mean()[0] == pytest.approx(1.02, abs=0.1)


def test_a_prior_on_one_point():
    X, Z, *_ = _conjugate(1, 300, np.random.default_rng(0))
    posterior = kb.KernelBayesRule(random_state=0).fit(X, Z).posterior([0.8], [[0.5]])
    assert posterior.mean()[0] == pytest.approx(0.5, abs=0.25)


def test_nothing_underflows_to_nan():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(100, 1))
    model = kb.KernelBayesRule(latent_kernel=kb.Gaussian(1.0), random_state=0).fit(Z + 0.1, Z)
    for away in (25.0, 36.0, 38.0, 1e5):
        posterior = _quiet(model, [0.5], 0.1 * Z + away)
        assert np.isfinite(posterior.weights).all()
        assert np.isfinite(posterior.health.prior_ess)
        assert not posterior.health.ok
    assert not _quiet(model, [1e99], None).health.ok


@pytest.mark.parametrize("d", [2, 12])
def test_novelty_does_not_depend_on_an_offset(d):
    rng = np.random.default_rng(0)
    points, new = rng.normal(size=(300, d)), np.full((1, d), 6.0)
    found = [
        kb.embeddings._health.Reach(points + offset, kb.Gaussian(), np.random.default_rng(0)).novelty(new + offset)[0]
        for offset in (0.0, 1e7)
    ]
    assert found[1] == pytest.approx(found[0], rel=1e-5)
    assert found[0] > 1.0


def test_rows_drawn_for_leave_one_out_count_without_bias(monkeypatch):
    monkeypatch.setattr("kernelbayes.learning._bayes._LOO_ROWS", 50)
    rng = np.random.default_rng(0)
    weights, errors = np.exp(rng.normal(size=500)), rng.random(500)
    sums = []
    for _ in range(400):
        rows, counted = learning_bayes._drawn(weights, rng)
        sums.append(counted @ errors[rows])
    assert np.mean(sums) == pytest.approx(weights @ errors, rel=0.02)


@pytest.mark.parametrize("centred", [True, False])
def test_weighted_leave_one_out_is_that_of_refits(centred, monkeypatch):
    rng = np.random.default_rng(0)
    grid = np.geomspace(1e-3, 1e3, 13)
    monkeypatch.setattr(learning_bayes, "_GRIDS", {"plain": grid})
    chosen = []
    for noise in (0.1, 0.4, 1.0, 2.0, 4.0):  # which call for other regularisers
        F, V, d = rng.normal(size=(14, 4)), noise * rng.normal(size=(14, 2)), rng.random(14)
        V += F[:, :2] + 0.2
        wanted = V - d @ V / d.sum() if centred else V
        scores = []
        for shift in np.trace((F.T * d) @ F) * grid:
            total = 0.0
            for i in range(14):
                keep = np.arange(14) != i
                G, D = F[keep], np.diag(d[keep])
                theta = np.linalg.inv(G.T @ D @ G + shift * np.eye(4)) @ G.T @ D @ wanted[keep]
                total += d[i] * ((wanted[i] - F[i] @ theta) ** 2).sum()
            scores.append(total)
        found = learning_bayes.weighted_reg(LowRank(F), lambda rows, F=F: F[rows], d, V, rng, centred=centred)
        assert found == pytest.approx(np.trace((F.T * d) @ F) * grid[np.argmin(scores)])
        chosen.append(np.argmin(scores))
    assert len(set(chosen)) > 1


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (dict(rule="bayes"), "rule"),
        (dict(reg=0.0), "reg"),
        (dict(prior_reg=-1.0), "prior_reg"),
        (dict(normalise="yes"), "normalise"),
        (dict(alpha=1.0), "alpha"),
        (dict(rule="kbr", alpha=0.1), "alpha"),
        (dict(kernel="gaussian"), "kernel"),
        (dict(latent_features=500), "latent_features"),
    ],
)
def test_bad_settings(settings, match, data):
    with pytest.raises(ValueError, match=match):
        kb.KernelBayesRule(**settings).fit(data[0], data[1])


def test_bad_data(data):
    X, Z, prior, observed = data
    with pytest.raises(ValueError, match="X has 60 rows but Z has 59"):
        kb.KernelBayesRule().fit(X, Z[:-1])
    with pytest.raises(ValueError, match=r"latent_kernel=kb.Delta\(\)"):
        kb.KernelBayesRule().fit(X, ["a"] * len(X))
    with pytest.raises(ValueError, match="X contains NaN"):
        kb.KernelBayesRule().fit(np.where(X > 1, np.nan, X), Z)
    model = _fit("iw", X, Z)
    with pytest.raises(ValueError, match="observed"):
        model.posterior(observed[:, :2], prior)
    with pytest.raises(ValueError, match="prior"):
        model.posterior(observed, prior[:, :1])
    with pytest.raises(ValueError, match="sum to"):
        model.posterior(observed, kb.MeanEmbedding(prior[:2], [1.0, -1.0], kb.Gaussian(1.0)))


@pytest.mark.parametrize(
    "prior", [stats.uniform(7, 2), stats.expon(7), [stats.uniform(7, 2)]], ids=["uniform", "exponential", "list"]
)
def test_nothing_is_outside_of_the_support_of_a_prior(prior):
    """By numerical integration; the estimated ratio reaches across the edge, where it is known to be zero."""
    u, v = even_draws.uniforms(400, 2, np.random.default_rng(0)).T
    z = 12 * u
    x = z + stats.norm.ppf(v)
    observed = np.linspace(6.5, 8.5, 5)
    if isinstance(prior, list):
        other = kb.bayes_rule(prior, x, z, observed=observed, rule="kbr", random_state=0)
        assert np.abs(other.weights[:, z < 7]).max() > 0  # whose weights are those of the paper
    posterior = kb.bayes_rule(prior, x, z, observed=observed, random_state=0)
    assert (posterior.weights[:, z < 7] == 0).all()
    grid = np.linspace(7, 14, 4001)
    law = prior[0] if isinstance(prior, list) else prior
    density = law.pdf(grid) * stats.norm.pdf(observed[:, None], grid, 1.0)
    density /= density.sum(1, keepdims=True)
    exact = density @ grid
    sd = np.sqrt(density @ grid**2 - exact**2)
    assert np.mean(np.abs(posterior.mean().ravel() - exact) / sd) < 0.25
    assert posterior.interval(0.9).min() >= 7.0


def test_a_support_without_a_pair_is_told_as_before():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(100, 1))
    with pytest.warns(kb.PosteriorWarning, match="outside"):
        kb.bayes_rule(stats.uniform(20, 1), z + 0.1 * rng.normal(size=(100, 1)), z, observed=[20.0], random_state=0)

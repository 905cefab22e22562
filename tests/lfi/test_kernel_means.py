"""The kernel means likelihood, its marginal and its posterior against the paper's formulas and brute-force integration."""

import numpy as np
import pytest
from scipy import integrate, stats

import kernelbayes as kb
from kernelbayes.features import represent
from kernelbayes.kernels import Gaussian
from kernelbayes.kernels._distributions import Mixture, Normal
from kernelbayes.learning import _likelihood_free as learning
from kernelbayes.lfi._law import KernelMeansPosterior, SignedMixture
from kernelbayes.lfi._problem import Problem
from kernelbayes.rules import kernel_means
from oracles import even_draws
from oracles import kelfi as oracle

BETA, REG, EPSILON = 0.6, 1e-3, 0.4


def pairs(m=40, d=2, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(m, d))
    return theta, theta + 0.3 * rng.normal(size=(m, d))


def weights(theta, x, y):
    kappa = oracle.gaussian_epsilon(y, x, EPSILON)
    factor = kernel_means.operator(Gaussian(BETA).gram(theta, theta), REG)
    return kernel_means.weights(factor, kappa)


def test_weights_marginal_and_embedding_are_those_of_the_paper():
    theta, x = pairs()
    y, star = np.array([0.3, -0.2]), np.random.default_rng(1).normal(size=(7, 2))
    v, q, embedding = oracle.kelfi(theta, x, y, star, EPSILON, BETA, REG, np.zeros(2), np.ones(2))
    found = weights(theta, x, y)
    np.testing.assert_allclose(found, v, rtol=1e-8)
    law = SignedMixture(found, theta, BETA, Normal(np.zeros(2), np.eye(2)))
    assert law.evidence == pytest.approx(q, rel=1e-8)
    np.testing.assert_allclose(law.embedding(star), embedding, rtol=1e-7)


def test_closed_forms_for_a_prior_that_is_not_standard():
    theta, x = pairs()
    y, star = np.array([0.3, -0.2]), np.random.default_rng(1).normal(size=(4, 2))
    mu, sigma = np.array([0.5, -1.0]), np.array([0.7, 1.3])
    v, q, embedding = oracle.kelfi(theta, x, y, star, EPSILON, BETA, REG, mu, sigma)
    law = SignedMixture(v, theta, BETA, Normal(mu, np.diag(sigma**2)))
    assert law.evidence == pytest.approx(q, rel=1e-8)
    np.testing.assert_allclose(law.embedding(star), embedding, rtol=1e-7)


def mixture():
    return Mixture(
        [Normal(np.array([-1.0]), np.array([[0.25]])), Normal(np.array([1.0]), np.array([[0.64]]))], [0.4, 0.6]
    )


@pytest.mark.parametrize("prior", [Normal(np.zeros(1), np.eye(1)), mixture()], ids=["normal", "mixture"])
def test_closed_forms_against_integration(prior):
    theta, x = pairs(25, 1)
    v = weights(theta, x, np.array([0.4]))
    law = SignedMixture(v, theta, BETA, prior)

    def density(t):
        return float(prior.density(np.array([[t]]))[0])

    def likelihood(t):
        return float(v @ np.exp(-0.5 * ((theta[:, 0] - t) / BETA) ** 2))

    total = integrate.quad(lambda t: likelihood(t) * density(t), -8, 8, limit=400)[0]
    assert law.evidence == pytest.approx(total, rel=1e-7)
    for point in (-0.7, 0.2, 1.5):

        def smoothed(t, point=point):
            return likelihood(t) * density(t) * np.exp(-0.5 * ((t - point) / BETA) ** 2)

        inner = integrate.quad(smoothed, -8, 8, limit=400)[0]
        assert law.embedding(np.array([[point]]))[0] == pytest.approx(inner / total, rel=1e-6)
        assert law.density(np.array([[point]]))[0] == pytest.approx(
            likelihood(point) * density(point) / total, rel=1e-7
        )
    mean = integrate.quad(lambda t: t * likelihood(t) * density(t), -8, 8, limit=400)[0] / total
    assert law.mean()[0] == pytest.approx(mean, rel=1e-6)


def test_sampled_forms_converge_to_the_closed_ones():
    theta, x = pairs()
    v = weights(theta, x, np.array([0.3, -0.2]))
    law = SignedMixture(v, theta, BETA, Normal(np.zeros(2), np.eye(2)))
    star = np.random.default_rng(1).normal(size=(5, 2))
    errors = []
    for T, repeats in ((200, 20), (5_000, 4)):
        sampled = []
        for drawn in np.random.default_rng(2).normal(size=(repeats, T, 2)):
            q = oracle.kernel(drawn, theta, BETA) @ v if T <= 200 else Gaussian(BETA).gram(drawn, theta) @ v
            sampled.append(Gaussian(BETA).gram(star, drawn) @ q / q.sum())  # (4.12)
        errors.append(np.sqrt(np.mean((np.array(sampled) - law.embedding(star)) ** 2)))
    assert errors[1] < 0.4 * errors[0]  # a fifth is to be expected
    assert errors[1] < 0.02


def test_weights_without_a_simulation_are_those_of_the_others():
    theta, x = pairs()
    m, rows = len(theta), np.array([0, 7, 31])
    L = Gaussian(BETA).gram(theta, theta)
    kappa = np.stack([oracle.gaussian_epsilon(x[i], x, EPSILON) for i in rows], axis=1)
    found = kernel_means.weights_without(kernel_means.operator(L, REG), kappa, rows)
    for c, i in enumerate(rows):
        rest = np.arange(m) != i
        expected = np.linalg.solve(L[np.ix_(rest, rest)] + m * REG * np.eye(m - 1), kappa[rest, c])
        np.testing.assert_allclose(found[rest, c], expected, rtol=1e-7, atol=1e-12)
        assert found[i, c] == pytest.approx(0.0, abs=1e-10)


def test_pairs_that_do_not_follow_the_prior_count_by_the_ratio():
    """The weighted regression, by its normal equations: sum_j r_j (f(theta_j) - kappa_j)^2 + m reg |f|^2."""
    theta, x = pairs()
    m, ratio = len(theta), np.random.default_rng(4).uniform(0.2, 3.0, len(theta))
    L, kappa = oracle.kernel(theta, theta, BETA), oracle.gaussian_epsilon(np.array([0.3, -0.2]), x, EPSILON)
    expected = np.linalg.solve(L @ np.diag(ratio) @ L + m * REG * L, L @ (ratio * kappa))
    found = kernel_means.weights(kernel_means.operator(L, REG, ratio), kappa)
    np.testing.assert_allclose(L @ found, L @ expected, rtol=1e-5, atol=1e-8)


def test_ratio_of_a_proposal_and_of_rounds():
    prior, proposal = kb.Prior(mu=stats.norm(1.0, 2.0)), kb.Prior(mu=stats.norm(0.0, 1.0))
    theta, rng = proposal.design(50), np.random.default_rng(0)
    problem = Problem(prior, np.zeros(1), theta, theta, ("x",), rng, proposal=proposal)
    expected = stats.norm(1.0, 2.0).pdf(theta[:, 0]) / stats.norm(0.0, 1.0).pdf(theta[:, 0])
    np.testing.assert_allclose(problem.ratio(), expected, rtol=1e-9)
    first, second = prior.design(300), 1.0 + 0.3 * even_draws.normals(300, 1, rng)
    both = np.concatenate([first, second])
    problem = Problem(prior, np.zeros(1), both, both, ("x",), rng, rounds=np.repeat([0, 1], 300))
    p, pi = stats.norm(1.0, 2.0).pdf(both[:, 0]), stats.norm(1.0, 0.3).pdf(both[:, 0])
    near = np.abs(both[:, 0] - 1.0) < 0.5
    np.testing.assert_allclose(problem.ratio()[near], (p / (0.5 * p + 0.5 * pi))[near], rtol=0.2)
    assert Problem(prior, np.zeros(1), first, first, ("x",), rng).ratio() is None


def test_posterior_integrates_to_one_and_draws_follow_it():
    theta, x = pairs(200, 1)
    v = weights(theta, x, np.array([0.4]))
    near = oracle.gaussian_epsilon(np.array([0.4]), x, EPSILON)
    law = KernelMeansPosterior(v, theta, BETA, Normal(np.zeros(1), np.eye(1)), near)
    grid = np.linspace(-5, 5, 4001)
    density = law.density(grid[:, None])
    assert (density >= 0).all()
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=0.03)
    draws = law.sample(4000, np.random.default_rng(0))[:, 0]
    mean = np.trapezoid(grid * density, grid)
    sd = np.sqrt(np.trapezoid((grid - mean) ** 2 * density, grid))
    assert draws.mean() == pytest.approx(mean, abs=0.05 * sd)
    assert draws.std() == pytest.approx(sd, rel=0.06)
    herded = law.herd(100, np.random.default_rng(0))[:, 0]
    assert herded.mean() == pytest.approx(law.mixture.mean()[0], abs=0.1 * sd)


# ------------------------------------------------------------------------------------------------ learning


def test_log_marginal_is_that_of_the_paper():
    theta, x = pairs()
    y = np.array([0.3, -0.2])
    _, q, _ = oracle.kelfi(theta, x, y, theta[:1], EPSILON, BETA, REG, np.zeros(2), np.ones(2))
    scales = learning.Scales(np.full(2, EPSILON), BETA, REG)

    def mu(beta):
        return oracle.prior_embedding(theta, beta, np.zeros(2), np.ones(2))

    found = learning.log_marginal(scales, theta, (x - y) ** 2, np.ones(2), mu)
    assert found - np.log(2 * np.pi) == pytest.approx(np.log(q), rel=1e-8)


def shares():
    raw = np.arange(1.0, 11.0)
    return raw / raw.sum()


def replicates():
    theta, x = pairs(60)
    rows = np.arange(0, 60, 6)
    rng = np.random.default_rng(3)
    points = rng.normal(size=(80, 2))
    return learning.Replicates(theta, rows, (x[:, None] - x[rows][None]) ** 2, points, np.full(80, 1 / 80), shares()), x


def test_posterior_score_by_refitting():
    sample, x = replicates()
    scales = learning.Scales(np.full(2, EPSILON), BETA, REG)
    m, total = len(sample.Z), 0.0
    few = 0.0
    for share, i in zip(sample.shares, sample.rows, strict=True):
        rest = np.arange(m) != i
        kappa = np.exp(-0.5 * (((x[rest] - x[i]) / EPSILON) ** 2).sum(1))
        L = oracle.kernel(sample.Z[rest], sample.Z[rest], BETA)
        v = np.linalg.solve(L + m * REG * np.eye(m - 1), kappa)
        there = oracle.kernel(sample.points, sample.Z[rest], BETA) @ v
        own = (oracle.kernel(sample.Z[i : i + 1], sample.Z[rest], BETA) @ v)[0]
        floor = min(max(-there.min(), 0.0), 0.5 * max(there.max(), 0.0))
        own, there = max(own - floor, 0.0), np.maximum(there - floor, 0.0)
        total += share * np.log(0.95 * own / (there.mean() + own / 80) + 0.05)
        few += 0.1 * max(np.log(10.0 * (kappa**2).sum() / kappa.sum() ** 2), 0.0)  # rests on fewer than 10
    assert learning.posterior_score(scales, sample) == pytest.approx(total - few / len(sample.rows), rel=1e-6)


def seeds_of_each(m=40, seeds=3):
    """Parameters with several simulations each, one of which is there twice, in no order."""
    rng = np.random.default_rng(5)
    label = rng.permutation(np.append(np.repeat(np.arange(m), seeds), 0))
    theta = rng.normal(size=(m, 2))[label]
    x = theta + 0.3 * rng.normal(size=theta.shape)
    first, second = np.flatnonzero(label == 0)[:2]
    x[second] = x[first]
    return theta, x, label


def gathered(ratio=None):
    theta, x, label = seeds_of_each()
    rows = np.arange(0, len(theta), 30)
    points, share = np.random.default_rng(3).normal(size=(80, 2)), np.full(len(rows), 1 / len(rows))
    squares = (x[:, None] - x[rows][None]) ** 2
    return learning.Replicates(theta, rows, squares, points, np.full(80, 1 / 80), share, ratio, label), x


@pytest.mark.parametrize("weighted", [False, True])
def test_simulations_with_the_same_parameters_are_left_out_together(weighted):
    """By refitting without them, in the form that has a kernel at every simulation."""
    ratio = np.random.default_rng(4).uniform(0.5, 2.0, 40)[seeds_of_each()[2]] if weighted else None
    sample, x = gathered(ratio)
    found = learning.left_out(learning.Scales(np.full(2, EPSILON), BETA, REG), sample)
    m, ratio = len(x), np.ones(len(x)) if ratio is None else ratio
    for r, i in enumerate(sample.rows):
        rest = sample.groups != sample.groups[i]
        kappa = np.exp(-0.5 * (((x[rest] - x[i]) / EPSILON) ** 2).sum(1))
        L = oracle.kernel(sample.Z[rest], sample.Z[rest], BETA)
        v = np.linalg.solve(L + m * REG * np.diag(1 / ratio[rest]), kappa)
        there = oracle.kernel(sample.points, sample.Z[rest], BETA) @ v
        np.testing.assert_allclose(found.elsewhere[:, r], there, rtol=1e-6, atol=1e-9)
        own = oracle.kernel(sample.Z[i : i + 1], sample.Z[rest], BETA) @ v
        assert found.own[r] == pytest.approx(own[0], rel=1e-6, abs=1e-9)


def test_objective_and_slope_with_the_same_parameters_left_out_together():
    sample, _ = gathered()
    scales = learning.Scales(np.array([0.3, 0.7]), BETA, REG)
    loss, start = learning.EpsilonLoss(scales, sample), np.log(scales.epsilon)
    apart = 0.02 * ((start - start.mean()) ** 2).mean()
    assert apart - loss(start)[0] == pytest.approx(learning.posterior_score(scales, sample), rel=1e-8)
    differences = [(loss(start + s)[0] - loss(start - s)[0]) / 2e-6 for s in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(loss(start)[1], differences, rtol=1e-4, atol=1e-7)


def test_landmarks_at_all_places_are_the_likelihood_itself():
    theta, x, label = seeds_of_each()
    rows = np.array([0, 5, 77])
    places = kernel_means.Places.gathered(theta, label)
    kappa = places.mean(np.stack([oracle.gaussian_epsilon(x[i], x, EPSILON) for i in rows], axis=1))
    features = kb.IncompleteCholesky(tol=1e-14).fit(Gaussian(BETA), places.Z)
    few = kernel_means.OnLandmarks(features, represent(features, places.Z), places, REG)
    L, at = Gaussian(BETA).gram(places.Z, places.Z), places.rows(rows)
    factor, grid = kernel_means.operator(L, REG, places.ratio), np.random.default_rng(0).normal(size=(9, 2))
    there, on = Gaussian(BETA).gram(grid, places.Z), Gaussian(BETA).gram(grid, few.points)
    np.testing.assert_allclose(on @ few.weights(kappa), there @ kernel_means.weights(factor, kappa), atol=1e-7)
    expected = there @ kernel_means.weights_without(factor, kappa, at)
    np.testing.assert_allclose(on @ few.weights_without(kappa, at), expected, atol=1e-7)


def test_slope_of_the_score_against_differences():
    sample, _ = replicates()
    for reg in (REG, 1e-6):  # little noise, and so much that the floor is a share of the top
        loss = learning.EpsilonLoss(learning.Scales(np.full(2, EPSILON), BETA, reg), sample)
        start = np.log([0.3, 0.7])
        differences = [(loss(start + s)[0] - loss(start - s)[0]) / 2e-6 for s in 1e-6 * np.eye(2)]
        np.testing.assert_allclose(loss(start)[1], differences, rtol=1e-4, atol=1e-7)


def test_prepared_objective_is_the_score():
    sample, _ = replicates()
    scales = learning.Scales(np.full(2, EPSILON), BETA, REG)
    value, _ = learning.EpsilonLoss(scales, sample)(np.log(scales.epsilon))
    assert -value == pytest.approx(learning.posterior_score(scales, sample), rel=1e-8)


def test_settings_given_are_kept_and_nothing_is_learned():
    theta, x = pairs(60)
    prior = kb.Prior(a=stats.norm(), b=stats.norm())
    posterior = kb.infer(
        parameters=theta,
        outputs=x,
        prior=prior,
        observed=[0.3, -0.2],
        method=kb.lfi.KELFI(epsilon=0.5, lengthscale=0.9, reg=1e-2),
        random_state=0,
    )
    assert posterior.settings["lengthscale"] == 0.9
    assert posterior.settings["reg"] == 1e-2
    np.testing.assert_array_equal(posterior.settings["epsilon"], [0.5, 0.5])

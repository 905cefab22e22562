"""The deconditional embedding: the paper's formulas and limits, Bayes' rule in closed form, input."""

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from oracles import even_draws, mediated

KERNEL, MEDIATOR = kb.Gaussian(0.6), kb.Gaussian(0.9)


def noisy_copies(seed=0, n=60, m=80):
    """x is y with noise; a second sample of y, with other frequencies, and values of a function of y."""
    rng = np.random.default_rng(seed)
    y, y_task = rng.uniform(-2, 2, (n, 1)), rng.normal(0.3, 0.7, (m, 1))
    return y + 0.3 * rng.normal(size=(n, 1)), y, y_task, np.sin(2 * y_task[:, 0]) + 0.1 * rng.normal(size=m)


def given(**settings):
    return kb.DeconditionalEmbedding(KERNEL, MEDIATOR, reg=0.01, learn=None, **settings)


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")  # of points between few pairs
@pytest.mark.parametrize("recipe", [None, kb.IncompleteCholesky(200, 1e-14), kb.Subspace(200, tol=1e-14)], ids=str)
@pytest.mark.parametrize(("n", "m"), [(20, 50), (50, 20)])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_and_predictions_are_those_of_definition_5_7(recipe, n, m, intercept):
    x, y, y_task, z = noisy_copies(0, n, m)
    model = given(task_reg=0.02, features=recipe, mediator_features=recipe, intercept=intercept)
    model.fit(x, y, y_task, z)
    new = np.linspace(-2, 2, 5)[:, None]
    A = mediated.transformation(MEDIATOR.gram(y), MEDIATOR.gram(y, y_task), 0.01 * n)
    weights = mediated.dme_weights(KERNEL.gram(x), A, 0.02 * m, KERNEL.gram(x, new))[0].T
    if intercept:
        weights = weights + (1.0 - weights.sum(1, keepdims=True)) / m
    np.testing.assert_allclose(model.weights(new), weights, atol=1e-6)
    np.testing.assert_allclose(model.predict(new), weights @ z, atol=1e-6)
    np.testing.assert_allclose(model.expect(lambda y: y[:, 0] ** 2, new), weights @ y_task[:, 0] ** 2, atol=1e-6)


def test_it_is_the_rule_of_that_name():
    """Row `dmo` of the family of Bayes' rules, which is computed in another way."""
    x, y, y_task, _ = noisy_copies()
    model = given(task_reg=0.02, intercept=False).fit(x, y, y_task)
    prior = kb.MeanEmbedding(y_task, kernel=MEDIATOR)
    rule = kb.bayes_rule(
        prior, x, y, [0.4], "dmo", kernel=KERNEL, latent_kernel=MEDIATOR, prior_reg=0.01, reg=0.02, normalise=None
    )
    np.testing.assert_allclose(model.weights([[0.4]])[0], rule.weights, atol=1e-7)


def test_on_the_same_mediators_it_becomes_the_conditional_embedding():
    """Theorem 5.9: as lambda goes to zero, the weights are (K + n epsilon I)^-1 k(x)."""
    x, y, _, z = noisy_copies(1, 12, 12)
    y = np.linspace(-3, 3, 12)[:, None]  # well apart, so that L can be inverted
    model = kb.DeconditionalEmbedding(KERNEL, kb.Gaussian(0.2), reg=1e-12, task_reg=0.05, learn=None, intercept=False)
    new = np.linspace(-2, 2, 4)[:, None]
    expected = np.linalg.solve(KERNEL.gram(x) + 12 * 0.05 * np.eye(12), KERNEL.gram(x, new)).T
    np.testing.assert_allclose(model.fit(x, y, y, z).weights(new), expected, atol=1e-6)


def test_without_regularising_the_task_it_keeps_its_structure():
    """Table 5.2: as epsilon goes to zero, A' (A A')^-1 K^-1 k(x)."""
    x, y, y_task, _ = noisy_copies(2, 5, 30)
    x, y = np.linspace(-2, 2, 5)[:, None], np.linspace(-2, 2, 5)[:, None]
    model = kb.DeconditionalEmbedding(KERNEL, MEDIATOR, reg=0.01, task_reg=1e-13, learn=None, intercept=False)
    new = np.array([[0.3], [-0.7]])
    A = mediated.transformation(MEDIATOR.gram(y), MEDIATOR.gram(y, y_task), 0.01 * 5)
    expected = A.T @ np.linalg.inv(A @ A.T) @ np.linalg.solve(KERNEL.gram(x), KERNEL.gram(x, new))
    np.testing.assert_allclose(model.fit(x, y, y_task).weights(new), expected.T, atol=1e-5)


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_linear_kernels_give_linear_ridge_regression():
    """Theorem 5.6, through the estimator."""
    rng = np.random.default_rng(3)
    x, y, y_task = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), rng.normal(size=(30, 2))
    y[:, 0] += x[:, 0]
    z = rng.normal(size=30)
    model = kb.DeconditionalEmbedding(kb.Linear(), kb.Linear(), reg=0.1, task_reg=0.2, learn=None, intercept=False).fit(
        x, y, y_task, z
    )
    w = mediated.chained_losses(x.T, y.T, y_task.T, z, 0.1, 0.2)
    np.testing.assert_allclose(model.predict(np.eye(3)), w, atol=1e-9)


def test_with_the_noise_of_the_process_it_is_its_mean():
    """Theorem 5.7 (4): lambda = sigma^2 / n, epsilon = sigma^2 / m, g at its most probable."""
    x, y, y_task, z = noisy_copies(4)
    process = kb.TaskTransformedGP(KERNEL, MEDIATOR, noise=0.3, learn=None, covariance="map", standardise=False)
    ridge = kb.DeconditionalEmbedding(KERNEL, MEDIATOR, reg=0.3 / len(x), task_reg=0.3 / len(z), learn=None)
    new = np.linspace(-2, 2, 9)[:, None]
    expected = process.fit(x, y, y_task, z).predict(new)
    np.testing.assert_allclose(ridge.fit(x, y, y_task, z).predict(new), expected, atol=1e-8)
    default = given().fit(x, y, y_task, z)
    assert default.task_reg_ == pytest.approx(0.01 * len(x) / len(z))


def test_functions_with_known_conditional_means():
    """x = y + noise of variance v: E[X | y] = y, E[X^2 - v | y] = y^2, whatever the frequencies of y."""
    rng = np.random.default_rng(0)
    drawn, y_task = even_draws.uniforms(500, 2, rng), 0.3 + 1.2 * even_draws.normals(600, 1, rng)
    y = 6 * drawn[:, :1] - 3
    x = y + 0.5 * stats.norm.ppf(drawn[:, 1:])
    model = kb.DeconditionalEmbedding(random_state=0).fit(x, y, y_task)
    new = np.linspace(-1.5, 1.5, 7)
    found = model.expect(lambda y: np.stack([y[:, 0], y[:, 0] ** 2], axis=1), new[:, None])
    assert np.abs(found[:, 0] - new).max() < 0.15
    assert np.abs(found[:, 1] - (new**2 - 0.25)).mean() < 0.3  # the posterior mean of y^2 is 0.5 away


def test_where_x_is_a_function_of_y_it_is_the_posterior():
    """Theorem 5.8: two y for each x, with the prior's frequencies."""
    rng = np.random.default_rng(1)
    y = rng.uniform(-3, 3, (400, 1))
    prior = rng.choice([-1.0, 1.0], (600, 1), p=[0.25, 0.75]) * rng.uniform(0.5, 2.5, (600, 1))
    posterior = kb.DeconditionalEmbedding(random_state=0).fit(y**2, y, prior).embed([2.25])
    right = float(posterior.weights[prior[:, 0] > 0].sum())
    assert abs(right - 0.75) < 0.1
    assert abs(posterior.mean()[0] - 0.75) < 0.25  # 1.5 times 0.75 - 0.25


def test_targets_let_it_learn():
    rng = np.random.default_rng(5)
    y, y_task = rng.uniform(-3, 3, (120, 1)), rng.uniform(-3, 3, (120, 1))
    x = np.sin(y) + 0.1 * rng.normal(size=(120, 1))
    z = np.sin(y_task[:, 0]) ** 2 + 0.1 * rng.normal(size=120)
    model = kb.DeconditionalEmbedding(random_state=0).fit(x, y, y_task, z)
    new = np.linspace(-0.9, 0.9, 19)
    assert np.abs(model.predict(new[:, None]) - new**2).mean() < 0.1
    kept = kb.DeconditionalEmbedding(task_reg=0.01, random_state=0).fit(x, y, y_task, z)
    assert kept.task_reg_ == 0.01
    assert kept.reg_ > 0


def test_units_of_targets_do_not_matter():
    x, y, y_task, z = noisy_copies(6, 80, 80)
    one, other = (kb.DeconditionalEmbedding(random_state=0).fit(x, y, y_task, s * z) for s in (1.0, 1e4))
    np.testing.assert_allclose(other.predict(x) / 1e4, one.predict(x), atol=1e-6)


def test_given_kernels_are_where_learning_starts():
    x, y, y_task, z = noisy_copies(7)
    model = kb.DeconditionalEmbedding(KERNEL, MEDIATOR, reg=0.01, random_state=0).fit(x, y, y_task, z)
    assert model.tuning_ is not None
    assert model.reg_ == pytest.approx(0.01)
    with pytest.warns(kb.PosteriorWarning, match="100 % of the task"):
        given().fit(x, y, y_task + 12.0, z)


def test_far_from_the_data_a_warning_says_so():
    x, y, y_task, z = noisy_copies()
    model = given().fit(x, y, y_task, z)
    with pytest.warns(kb.PosteriorWarning, match="at 1 of 2 points x lies outside"):
        found = model.predict([[0.0], [50.0]])
    assert found[1] == pytest.approx(z.mean())
    process = kb.TaskTransformedGP(
        KERNEL, MEDIATOR, noise=0.01 * len(x), learn=None, covariance="map", standardise=False
    )
    new = [[0.0], [1.5], [50.0]]
    np.testing.assert_allclose(model.mediation(new), process.fit(x, y, y_task, z).mediation(new), atol=1e-8)


def test_saving(tmp_path):
    x, y, y_task, z = noisy_copies()
    model = given().fit(x, y, y_task, z)
    kb.save(model, tmp_path / "model.npz")
    np.testing.assert_array_equal(kb.load(tmp_path / "model.npz").predict(x), model.predict(x))


def test_refusals():
    x, y, y_task, z = noisy_copies()
    with pytest.raises(ValueError, match="kernel, mediator_kernel and reg are needed"):
        kb.DeconditionalEmbedding(learn=None).fit(x, y, y_task, z)
    with pytest.raises(ValueError, match="reg must be positive"):
        kb.DeconditionalEmbedding(reg=0.0).fit(x, y, y_task, z)
    model = given().fit(x, y, y_task)
    with pytest.raises(ValueError, match="there are no targets"):
        model.predict(x)
    with pytest.raises(ValueError, match="embed takes one point, got 60"):
        model.embed(x)

"""The task transformed Gaussian process: known limits, peers, learning, diagnostics, input."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import kernelbayes as kb
from kernelbayes.learning import _mediated as learning
from oracles import even_draws, mediated


def r(y):
    return 2.5 * np.sin(0.9 * y) + 0.25 * y


def f(x):
    return np.sin(2 * x) + 0.15 * x**2


def two_tables(seed, n=80, m=80):
    """Section 5.9.1, with functions of our own."""
    rng = np.random.default_rng(seed)
    y, y_task = rng.uniform(-6, 6, (n, 1)), rng.uniform(-6, 6, (m, 1))
    x = r(y) + 0.25 * rng.normal(size=(n, 1))
    z = f(r(y_task) + 0.25 * rng.normal(size=(m, 1)))[:, 0] + 0.25 * rng.normal(size=m)
    return x, y, y_task, z


@pytest.fixture(scope="module")
def fitted():
    tables = two_tables(0, 150, 200)
    return kb.TaskTransformedGP(random_state=0).fit(*tables), tables


SETTINGS = {"learn": None, "standardise": False}


def given(**settings):
    return kb.TaskTransformedGP(1.3 * kb.Gaussian(0.7), 0.8 * kb.Gaussian(1.2), noise=0.1, **SETTINGS, **settings)


def quietly(f, *arguments):
    """Without the warnings that a few points raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.PosteriorWarning)
        return f(*arguments)


RECIPES = [None, kb.Exact(), kb.IncompleteCholesky(200, 1e-14), kb.Subspace(500, tol=1e-14)]


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@pytest.mark.parametrize("covariance", ["full", "map"])
@pytest.mark.parametrize("tau", [None, 0.3])
@pytest.mark.parametrize(("n", "m"), [(30, 50), (50, 10)])
def test_predictions_are_the_formulas_of_the_paper(recipe, covariance, tau, n, m):
    x, y, y_task, z = two_tables(1, n, m)
    settings = {"covariance": covariance, "mediator_noise": tau, "features": recipe, "mediator_features": recipe}
    model, tau = quietly(given(**settings).fit, x, y, y_task, z), tau or 0.1
    new = np.linspace(-2, 2, 7)[:, None]
    k, ell = model.kernel_, model.mediator_kernel_
    A = mediated.transformation(ell.gram(y), ell.gram(y, y_task), tau)
    full = mediated.full_noise(ell.gram(y), ell.gram(y, y_task), ell.gram(y_task), tau, 0.1)
    Sigma = full if covariance == "full" else 0.1 * np.eye(m)
    mean, cov = mediated.posterior(k.gram(x), k.gram(x, new), k.gram(new), A, Sigma, z - z.mean())
    found, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(found, mean + z.mean(), atol=2e-6)
    np.testing.assert_allclose(std**2, np.diag(cov), atol=2e-6)
    np.testing.assert_allclose(model.predict(new, return_cov=True)[1], cov, atol=2e-6)


@pytest.mark.parametrize("covariance", ["full", "map"])
def test_one_table_and_no_spread_is_ordinary_regression(covariance):
    """X = Y with the points of the task: as tau goes to zero A becomes the identity, and f is a Gaussian process."""
    rng = np.random.default_rng(2)
    x = 4 * even_draws.uniforms(25, 1, rng) - 2  # no two so near that the limit is out of reach
    z = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=25)
    kernel = 1.5 * kb.Gaussian(0.3)
    model = kb.TaskTransformedGP(kernel, kernel, noise=0.09, mediator_noise=1e-9, covariance=covariance, **SETTINGS)
    new = np.linspace(-2.5, 2.5, 30)[:, None]
    mean, std = quietly(lambda: model.fit(x, x, x, z).predict(new, return_std=True))
    peer = GaussianProcessRegressor(ConstantKernel(1.5) * RBF(0.3), alpha=0.09, optimizer=None).fit(x, z - z.mean())
    expected, its_std = peer.predict(new, return_std=True)
    np.testing.assert_allclose(mean, expected + z.mean(), atol=1e-5)
    np.testing.assert_allclose(std, its_std, atol=1e-5)
    np.testing.assert_allclose(
        model.log_marginal_likelihood_, peer.log_marginal_likelihood(peer.kernel_.theta), rtol=1e-5
    )


def test_a_mediator_that_tells_nothing_leaves_the_prior():
    """With y constant in effect, all that is learned of f is its mean over the pairs."""
    x, y, y_task, z = two_tables(3)
    model = given().set_params(mediator_kernel=kb.Gaussian(1e6)).fit(x, y, y_task, z)
    assert np.ptp(model.predict(np.linspace(-1, 1, 9)[:, None])) < 0.5 * np.ptp(f(np.linspace(-1, 1, 9)))
    assert model.degrees_of_freedom_ < 1.01


def test_learned_function_is_close_and_its_band_covers(fitted):
    errors, covered = [], []
    for seed in range(4):
        x, y, y_task, z = two_tables(seed, 100, 100)
        model = kb.TaskTransformedGP(random_state=0).fit(x, y, y_task, z)
        new = np.linspace(*np.quantile(x, [0.02, 0.98]), 100)[:, None]
        mean, std = model.predict(new, return_std=True)
        errors.append(np.sqrt(np.mean((mean - f(new[:, 0])) ** 2)))
        covered.append(np.mean(np.abs(mean - f(new[:, 0])) < 1.96 * std))
    assert np.mean(errors) < 0.3  # f itself varies by 0.75
    assert 0.88 < np.mean(covered) <= 1.0


def test_a_likelihood_that_is_flat_does_not_let_the_function_grow():
    """Without a prior of the kernels' parameters this sample ended at a scale of 209 and an error of 10."""
    rng = np.random.default_rng(3)
    y, y_task = rng.uniform(-6, 6, (100, 1)), rng.uniform(-6, 6, (100, 1))

    def through(y):
        return 2 * np.sin(0.8 * y) + 0.25 * y + 0.25 * rng.normal(size=y.shape)

    def wanted(x):
        return np.sin(3.5 * x) + 0.15 * x**2

    x = through(y)
    z = wanted(through(y_task))[:, 0] + 0.25 * rng.normal(size=100)
    new = np.linspace(-2, 2, 100)[:, None]
    found = kb.TaskTransformedGP(random_state=0).fit(x, y, y_task, z).predict(new)
    assert np.sqrt(np.mean((found - wanted(new[:, 0])) ** 2)) < 0.8


def test_gradient_of_the_marginal_likelihood(fitted):
    """Against central differences, in all parameters, with g integrated out and without."""
    import equinox as eqx
    import jax

    x, y, y_task, z = two_tables(4, 40, 50)
    for uncertain in (True, False):
        params = learning.MediatedParameters(
            1.3 * kb.Gaussian(np.array([0.7])), 0.8 * kb.Gaussian(1.2), 0.2, 0.3, tied=False, uncertain=uncertain
        )
        samples = learning.Samples(x, y, y_task, z[:, None])
        data = samples.padded(samples.landmarks(params), (64, 64))
        with jax.enable_x64(True):
            slope = eqx.filter_jit(eqx.filter_grad(learning.loss))(params, data)
            leaves, structure = jax.tree_util.tree_flatten(params)
            for i, (leaf, found) in enumerate(zip(leaves, jax.tree_util.tree_leaves(slope), strict=True)):
                value = np.asarray(leaf, float)
                ends = []
                for step in (1e-5, -1e-5):
                    moved = [*leaves[:i], value * (1 + step), *leaves[i + 1 :]]
                    ends.append(float(learning.loss(jax.tree_util.tree_unflatten(structure, moved), data)))
                difference = (ends[0] - ends[1]) / 2e-5
                np.testing.assert_allclose(np.sum(found * value), difference, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("uncertain", [True, False])
def test_the_objective_is_the_marginal_likelihood_of_the_fit(uncertain):
    """Padding and landmarks change nothing where all points are landmarks."""
    x, y, y_task, z = two_tables(5, 40, 30)
    z = z - z.mean()
    model = given(covariance="full" if uncertain else "map").fit(x, y, y_task, z)
    params = learning.MediatedParameters(model.kernel_, model.mediator_kernel_, 0.1, 0.1, uncertain=uncertain)
    samples = learning.Samples(x, y, y_task, z[:, None])
    data = samples.padded(samples.landmarks(params), (64, 128))
    np.testing.assert_allclose(-30 * float(learning.loss(params, data)), model.log_marginal_likelihood_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_learning_finds_the_noise_and_no_worse_a_likelihood_than_by_hand():
    rng = np.random.default_rng(0)
    y, y_task = rng.uniform(-3, 3, (200, 1)), rng.uniform(-3, 3, (400, 1))
    kernel = kb.Gaussian(0.5)
    draw = np.linalg.cholesky(kernel.gram(np.concatenate([y, y_task])) + 1e-8 * np.eye(600)) @ rng.normal(size=600)
    z = draw[200:] + 0.3 * rng.normal(size=400)
    model = kb.TaskTransformedGP(standardise=False, random_state=0).fit(y, y, y_task, z)
    assert 0.07 < model.noise_ < 0.12  # 0.09 was put in
    for lengthscale in (0.25, 0.5, 1.0):
        for mediator in (0.25, 0.5, 1.0):
            other = kb.TaskTransformedGP(kb.Gaussian(lengthscale), kb.Gaussian(mediator), noise=0.09, **SETTINGS)
            best = other.fit(y, y, y_task, z).log_marginal_likelihood_
            assert model.log_marginal_likelihood_ > best - 4.0  # what the prior of the parameters may cost


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_given_noise_is_kept_and_kernels_are_where_learning_starts():
    x, y, y_task, z = two_tables(6, 50, 50)
    model = kb.TaskTransformedGP(kb.Matern(1.5, 1.0), noise=0.2, random_state=0).fit(x, y, y_task, z)
    assert model.noise_ == 0.2 == model.mediator_noise_
    assert isinstance(model.kernel_, kb.Matern)
    assert float(model.kernel_.lengthscale) != 1.0
    free = kb.TaskTransformedGP(mediator_noise="learn", random_state=0).fit(x, y, y_task, z)
    assert free.mediator_noise_ != free.noise_
    tied = kb.TaskTransformedGP(random_state=0).fit(x, y, y_task, z)
    assert free.log_marginal_likelihood_ > tied.log_marginal_likelihood_ - 2.0


def test_several_targets_are_fitted_at_once():
    x, y, y_task, z = two_tables(7, 50, 50)
    both = np.stack([z, 100 + 50 * z], axis=1)
    model = kb.TaskTransformedGP(random_state=0).fit(x, y, y_task, both)
    mean, std = model.predict(x[:5], return_std=True)
    assert mean.shape == std.shape == (5, 2)
    np.testing.assert_allclose(mean[:, 1], 100 + 50 * mean[:, 0], rtol=1e-8)
    np.testing.assert_allclose(std[:, 1], 50 * std[:, 0], rtol=1e-8)
    one = kb.TaskTransformedGP(random_state=0).fit(x, y, y_task, z)
    np.testing.assert_allclose(mean[:, 0], one.predict(x[:5]), atol=0.1)
    assert model.sample(x[:5], 3).shape == (3, 5, 2)
    assert model.predict(x[:5], return_cov=True)[1].shape == (5, 5, 2)
    table = model.coverage([0.9])
    assert list(table) == ["90 %, target 0", "90 %, target 1"]
    assert table["90 %, target 1"]["width"] == pytest.approx(50 * table["90 %, target 0"]["width"])


def test_draws_have_the_mean_and_covariance_that_is_told(fitted):
    model, _ = fitted
    new = np.array([[-1.0], [-0.9], [1.0]])
    draws = model.sample(new, 20_000, random_state=0)
    mean, covariance = model.predict(new, return_cov=True)
    scale = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(0) - mean) / scale < 0.03).all()
    np.testing.assert_allclose(np.cov(draws.T) / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=0.03)


def test_coverage_of_left_out_targets(fitted):
    table = fitted[0].coverage([0.5, 0.95])
    assert abs(table["50 %"]["covered"] - 0.5) < 0.1
    assert abs(table["95 %"]["covered"] - 0.95) < 0.04
    assert table["95 %"]["width"] > table["50 %"]["width"]


def test_far_from_the_data_the_prior_is_told_with_a_warning(fitted):
    model, (_x, *_) = fitted
    with pytest.warns(kb.PosteriorWarning, match="at 2 of 3 points x lies outside"):
        mean, std = model.predict([[0.0], [50.0], [-50.0]], return_std=True)
    prior = np.sqrt(model.kernel_.diag([[0.0]])[0]) * model.unit_[0]
    np.testing.assert_allclose(std[1:], prior)
    np.testing.assert_allclose(mean[1:], model.offset_[0])
    with pytest.warns(kb.PosteriorWarning, match="at 1 of 1 points x lies outside"):
        model.sample([[50.0]])
    assert model.mediation([[50.0]])[0] == 0.0
    assert model.mediation([[0.0]])[0] > 0.5


@pytest.mark.parametrize("covariance", ["full", "map"])
def test_a_task_away_from_all_pairs_is_told(covariance):
    x, y, y_task, z = two_tables(8)
    with pytest.warns(kb.PosteriorWarning, match=r"100 % of the task's points lie where no pair \(x, y\) has its y"):
        given(covariance=covariance).fit(x, y, y_task + 40.0, z)


@pytest.mark.filterwarnings("ignore:100 %")
def test_a_mediator_in_other_units_is_told_before_learning():
    """A lengthscale learned for both would make each of the two samples one point, and nothing would look wrong."""
    x, y, y_task, z = two_tables(8, 20, 20)
    y, y_task = (np.column_stack([np.ones(20), 1.7e9 + P]) for P in (y, y_task))
    quietly(
        given().fit, x, y, y_task + np.array([1.0, 0.0]), z
    )  # a column that is constant in both tables is no such sign
    with pytest.warns(kb.PosteriorWarning, match=r"column 1 of Y lies .* units, or are X and Y exchanged\?"):
        given().fit(x, y, 1000 * y_task, z)


@pytest.mark.parametrize("kernel", [None, kb.Gaussian(1.2)])
def test_times_of_any_resolution_are_seconds(kernel):
    x, y, y_task, z = two_tables(8, 20, 20)
    start = np.datetime64("2024-01-01T00:00:00.000000")
    y, y_task = (np.round(1000 * P).astype("timedelta64[ms]") for P in (y, y_task))
    model = kb.TaskTransformedGP(mediator_kernel=kernel)
    for theirs in (start + y_task, (start + y_task).astype("datetime64[ns]")):
        samples = model._check_samples(x, start + y, theirs, z)
        apart = (y_task - y).astype(float) / 1e3
        np.testing.assert_allclose(samples.Y_task - samples.Y, apart, atol=1e-6)
    assert model._check_samples(x, y, y_task.astype("timedelta64[us]"), z).Y_task.max() < 6
    with pytest.raises(ValueError, match="Y_task contains NaN"):
        model._check_samples(x, y, np.full(20, np.datetime64("NaT", "s")), z)


def test_columns_of_the_mediator_are_those_of_the_other_table():
    """Frames are told apart by the names of their columns, as those of X are."""
    frame = pytest.importorskip("pandas").DataFrame
    x, y, y_task, z = two_tables(8, 20, 20)
    y, y_task = np.column_stack([y, y**2]), np.column_stack([y_task, y_task**2])
    ours = frame(y, columns=["lon", "lat"])
    for columns, message in (
        (["lat", "lon"], r"pass Y_task\[list\(Y.columns\)\]$"),
        (["lon", "h"], "in the same order$"),
    ):
        with pytest.raises(
            ValueError, match=f"Y has the columns lon, lat but Y_task {', '.join(columns)}: .*{message}"
        ):
            given().fit(x, ours, frame(y_task, columns=columns), z)
    for theirs in (y_task, frame(y_task), frame(y_task, columns=["lon", "lat"])):
        samples = given()._check_samples(x, ours, theirs, z)
        np.testing.assert_array_equal(samples.Y_task, y_task)


@pytest.mark.parametrize("factor", [1e4])
@pytest.mark.parametrize("settings", [{}, {"standardise": False}])
def test_units_of_targets_do_not_matter(fitted, factor, settings):
    model, (x, y, y_task, z) = fitted
    other = kb.TaskTransformedGP(random_state=0, **settings).fit(x, y, y_task, factor * z)
    for mine, theirs in zip(model.predict(x, return_std=True), other.predict(x, return_std=True), strict=True):
        np.testing.assert_allclose(theirs / factor, mine, atol=1e-3)


def test_what_coordinates_miss_of_the_mediator_is_noise():
    """With few landmarks: the formulas of the paper for the kernel they stand for, and the mean of the rest as noise."""
    x, y, y_task, z = two_tables(10, 40, 60)
    model = quietly(given(mediator_features=kb.Subspace(5), random_state=0).fit, x, y, y_task, z)
    k, ell = model.kernel_, model.mediator_kernel_
    landmarks, new = model.mediator_features_.points, np.linspace(-2, 2, 5)[:, None]

    def gram(A, B):
        return ell.gram(A, landmarks) @ np.linalg.inv(ell.gram(landmarks)) @ ell.gram(landmarks, B)

    noise = 0.1 + np.mean(ell.diag(y_task) - np.diag(gram(y_task, y_task)))
    assert noise > 0.15
    A = mediated.transformation(gram(y, y), gram(y, y_task), 0.1)
    Sigma = mediated.full_noise(gram(y, y), gram(y, y_task), gram(y_task, y_task), 0.1, noise)
    mean, cov = mediated.posterior(k.gram(x), k.gram(x, new), k.gram(new), A, Sigma, z - z.mean())
    found, std = model.predict(new, return_std=True)
    np.testing.assert_allclose(found, mean + z.mean(), atol=1e-6)
    np.testing.assert_allclose(std**2, np.diag(cov), atol=1e-6)


def test_where_the_prior_is_certain_all_is_known():
    x, y, y_task, z = two_tables(11, 30, 30)
    model = quietly(given().set_params(kernel=kb.Linear()).fit, x, y, y_task, z)
    assert model.mediation([[0.0]])[0] == 1.0


def test_mediators_that_are_labels_and_targets_nearer_to_their_mean_than_f():
    """A mediator of five kinds: f at each x from averages over kinds; the scale of its kernel is learned.

    Targets vary by 0.1 at one y, f(x) by 0.3: what that means for the band is told.
    """
    rng = np.random.default_rng(0)
    kinds = np.array(list("abcde"))
    centre = dict(zip(kinds, np.linspace(-2, 2, 5), strict=True))
    y, y_task = rng.choice(kinds, 150), rng.choice(kinds, 150)
    x = np.array([centre[kind] for kind in y])[:, None] + 0.3 * rng.normal(size=(150, 1))
    z = np.array([centre[kind] for kind in y_task]) + 0.1 * rng.normal(size=150)
    model = kb.TaskTransformedGP(mediator_kernel=kb.Delta(), random_state=0)
    with pytest.warns(kb.PosteriorWarning, match=r"at one y, f\(x\) varies .* the band of f was made wider for it"):
        model.fit(x, y, y_task, z)
    assert 0.2 < np.sqrt(model.spread_) * model.unit_[0] < 0.4
    np.testing.assert_allclose(model.predict([[-1.0], [0.0], [1.0]]), [-1, 0, 1], atol=0.3)


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
@pytest.mark.parametrize("m", [20, 60])
def test_the_band_takes_in_what_few_pairs_leave_open(m):
    """By weights of the pairs in the mean of f, `A S^-1 A' k(x)`, from Gram matrices; means stay as they were."""
    rng = np.random.default_rng(1)
    y, y_task = rng.uniform(-3, 3, (40, 1)), rng.uniform(-3, 3, (m, 1))
    x = y + 0.5 * rng.normal(size=(40, 1))
    z = np.sin(y_task[:, 0]) * np.exp(-0.125) + 0.05 * rng.normal(size=m)
    model = kb.TaskTransformedGP(random_state=0).fit(x, y, y_task, z)
    k, ell, tau = model.kernel_, model.mediator_kernel_, model.mediator_noise_
    assert model.spread_ > 4 * tau
    A = mediated.transformation(ell.gram(y), ell.gram(y, y_task), tau)
    Sigma = mediated.full_noise(ell.gram(y), ell.gram(y, y_task), ell.gram(y_task), tau, model.noise_)
    new = np.linspace(-3, 3, 9)[:, None]
    mean, cov = mediated.posterior(k.gram(x), k.gram(x, new), k.gram(new), A, Sigma, model._targets()[:, 0])
    weights = A @ np.linalg.solve(A.T @ k.gram(x) @ A + Sigma, A.T @ k.gram(x, new))
    found, wider = model.predict(new, return_cov=True)
    expected = (cov + (model.spread_ - tau) * weights.T @ weights) * model.unit_**2
    np.testing.assert_allclose((found - model.offset_) / model.unit_, mean, atol=1e-4)
    np.testing.assert_allclose(wider, expected, atol=1e-4 * expected.max())
    np.testing.assert_allclose(model.predict(new, return_std=True)[1] ** 2, np.diag(wider), rtol=1e-6)


def test_targets_that_are_only_noise_are_told():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1))
    model = kb.TaskTransformedGP(random_state=0)
    with pytest.warns(kb.PosteriorWarning, match="they tell nothing of f"):
        model.fit(x, x, rng.normal(size=(80, 1)), rng.normal(size=80))


def test_many_points_of_the_task_are_streamed(monkeypatch):
    x, y, y_task, z = two_tables(9, 60, 5000)
    settings = {"mediator_features": kb.Subspace(500), "random_state": 0}
    held = given(**settings).fit(x, y, y_task, z)
    monkeypatch.setattr("kernelbayes.features._landmark._HELD_ELEMENTS", 1000)
    streamed = given(**settings).fit(x, y, y_task, z)
    np.testing.assert_allclose(streamed.predict(x), held.predict(x), atol=1e-6)
    np.testing.assert_allclose(streamed.left_out()[0], held.left_out()[0], atol=1e-6)


def test_saving_loading_pickling_and_cloning(fitted, tmp_path):
    model, (x, *_) = fitted
    kb.save(model, tmp_path / "model.npz")
    for copy in (kb.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        for mine, theirs in zip(model.predict(x, return_std=True), copy.predict(x, return_std=True), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert clone(model).get_params()["covariance"] == "full"


X, Y = np.arange(10.0)[:, None], np.arange(10.0)[:, None]


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((X, Y[:9], Y, X[:, 0]), {}, "X .*10.* Y .*9|X has 10"),
        ((X, Y, Y, X[:9, 0]), {}, "z_task"),
        ((X, Y, np.ones((10, 2)), X[:, 0]), {}, r"Y has points of shape \(1,\) but Y_task of \(2,\)"),
        ((X, list("ab" * 5), Y, X[:, 0]), {"mediator_kernel": kb.Delta()}, "Y has points of shape"),
        ((X, Y, Y, None), {}, "DeconditionalEmbedding"),
        ((X, Y, Y, X[:, 0] * np.nan), {}, "z_task"),
        ((X, np.full((10, 1), np.inf), Y, X[:, 0]), {}, "Y holds|Y contains|infinite"),
        ((X, list("abcdefghij"), Y, X[:, 0]), {}, "Y holds strings.*mediator_kernel"),
        ((X, np.array(list("abcdefghij"), dtype=object), Y, X[:, 0]), {}, "Y holds strings.*mediator_kernel"),
        ((X[:, 0], Y, Y, X[:, 0]), {}, "Expected 2D array"),
        ((X, 0 * Y, 0 * Y, X[:, 0]), {}, "Y has no two distinct points"),
        ((X, Y, Y, X[:, 0]), {"covariance": "half"}, "covariance must be"),
        ((X, Y, Y, X[:, 0]), {"noise": -1.0}, "noise must be positive"),
        ((X, Y, Y, X[:, 0]), {"mediator_noise": "tied"}, "mediator_noise must be"),
        ((X, Y, Y, X[:, 0]), {"learn": None}, "kernel, mediator_kernel and noise are needed"),
        ((X, Y, Y, X[:, 0]), {"kernel": "rbf"}, "kernel must be a Kernel"),
    ],
)
def test_refusals(arguments, settings, message):
    with pytest.raises(ValueError, match=message):
        kb.TaskTransformedGP(**settings).fit(*arguments)


def test_using_it_wrongly(fitted):
    model, _ = fitted
    with pytest.raises(ValueError, match="not both"):
        model.predict([[0.0]], return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="expecting 1 features"):
        model.predict([[0.0, 1.0]])
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.coverage([95])
    with pytest.raises(ValueError, match="not fitted"):
        kb.TaskTransformedGP().predict([[0.0]])
    with pytest.raises(ValueError, match="not fitted"):
        kb.TaskTransformedGP().coverage()


def test_constant_targets_are_predicted():
    x, y, y_task, z = two_tables(0)
    model = kb.TaskTransformedGP(random_state=0).fit(x, y, y_task, np.full(len(z), 3.0))
    np.testing.assert_allclose(model.predict(x), 3.0)

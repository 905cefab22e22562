"""Regression on learned points: the paper's formulas, known limits, learning, the contract of scikit-learn, input."""

import dataclasses
import pickle

import equinox as eqx
import jax
import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelbayes as kb
from kernelbayes.learning import _optimise
from kernelbayes.learning import _sparse as learning
from oracles import mediated
from oracles.closed_forms import gaussian_gram

LENGTHSCALE, SCALE, NOISE = np.array([0.8, 1.5]), 1.4, 0.2
KERNEL = SCALE * kb.Gaussian(LENGTHSCALE)
NEW = np.random.default_rng(9).normal(size=(6, 2))


def gram(A, B):
    return SCALE * gaussian_gram(A, B, LENGTHSCALE)


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=n)


def waves(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 1))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n)


def seen(U, X, spread):
    """A' K A: the covariance of f at the data as the points have it."""
    A = mediated.transformation(gram(U, U), gram(U, X), spread)
    return A.T @ gram(U, U) @ A


def objective(U, X, z, spread, variational):
    """The marginal likelihood of theorem 5.7 (4), or Titsias' bound, from dense matrices: summed over columns."""
    S = seen(U, X, spread)
    density = multivariate_normal(np.zeros(len(X)), S + NOISE * np.eye(len(X)))
    missed = np.trace(gram(X, X) - S) / (2 * NOISE) if variational else 0.0
    return sum(density.logpdf(column) - missed for column in z.T)


def given(points, **settings):
    return kb.SparseRegression(points, KERNEL, NOISE, learn=None, standardise=False, **settings)


def problem(spread=0.0, variational=True, chunk=16, padding=3):
    """Seven points in units of their own, with padding, and 40 rows of two targets in padded chunks."""
    X, y = rows()
    z, unit = np.stack([y, X[:, 0] ** 2], axis=1), np.array([0.5, 3.0])
    U = np.random.default_rng(1).normal(size=(7, 2))
    padded = np.concatenate([U, np.full((padding, 2), 0.3)]) / unit
    mask = np.concatenate([np.ones(7), np.zeros(padding)])
    params = learning.SparseParameters(KERNEL, NOISE, padded, spread, variational)
    chunks = learning.chunked(X, z, chunk)
    return params, learning.Rows(*chunks, mask, unit), (U, X, z)


# --------------------------------------------------------------------------------------------------- the objective


OBJECTIVES = [(0.0, True), (None, False), (0.3, True)]


@pytest.mark.parametrize(("spread", "variational"), OBJECTIVES)
def test_the_objective_is_the_formula_of_the_paper(spread, variational):
    params, data, (U, X, z) = problem(spread, variational)
    expected = objective(U, X, z, NOISE if spread is None else spread, variational)
    assert _optimise.evaluate(learning.loss, params, (data,)) == pytest.approx(-expected / z.size, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("spread", "variational"), OBJECTIVES)
def test_slopes_by_kernel_noise_and_points(spread, variational):
    params, data, _ = problem(spread, variational)
    leaves = _optimise.free_leaves(params, {}, ())
    assert {leaf.name for leaf in leaves} == {"kernel.scale", "kernel.kernel.lengthscale", "noise", "points"}
    descent = _optimise._Problem(learning.loss, params, (data,), leaves)
    with jax.enable_x64(True):
        slope = descent(descent.start)[1]
        steps = 1e-5 * np.eye(len(slope))
        rises = [descent(descent.start + h)[0] - descent(descent.start - h)[0] for h in steps]
    assert slope == pytest.approx(np.array(rises) / 2e-5, rel=1e-5, abs=1e-8)


def test_sums_over_chunks_are_sums_over_rows():
    found = []
    for chunk, count in ((16, 3), (64, 1)):
        params, data, _ = problem(chunk=chunk)
        assert len(data.X) == count
        with jax.enable_x64(True):
            found.append(_optimise._compiled(learning.loss)(params, data))
    (chunked, slopes), (value, slope) = found
    assert float(chunked) == pytest.approx(float(value), rel=1e-12)
    assert np.asarray(slopes.points) == pytest.approx(np.asarray(slope.points), rel=1e-9, abs=1e-12)
    assert float(slopes.noise) == pytest.approx(float(slope.noise), rel=1e-9)
    assert np.abs(np.asarray(slope.points)[7:]).max() < 1e-12  # of padding


def test_memory_does_not_grow_with_the_rows():
    def needed(chunks):
        params, data, _ = problem(padding=0)
        data = data._replace(X=np.zeros((chunks, 512, 2)), z=np.zeros((chunks, 512, 2)), mask=np.ones((chunks, 512)))
        arrays, rest = eqx.partition((params, data), eqx.is_array)
        slope = jax.grad(lambda arrays: learning.loss(*eqx.combine(arrays, rest)))
        with jax.enable_x64(True):
            return jax.jit(slope).lower(arrays).compile().memory_analysis().temp_size_in_bytes

    few, many = needed(4), needed(64)
    # beyond the few sums that are kept of each chunk: coordinates of 512 rows would be 7 x 512 numbers
    assert (many - few) / 60 < 0.2 * 8 * 7 * 512


def test_the_bound_is_below_the_evidence_and_rises_with_the_points():
    X, y = rows()
    exact = multivariate_normal(np.zeros(40), gram(X, X) + NOISE * np.eye(40)).logpdf(y - y.mean())
    z = (y - y.mean())[:, None]
    bounds = []
    for n in (3, 10, 25, 40):
        params = learning.SparseParameters(KERNEL, NOISE, X)
        data = learning.Rows(*learning.chunked(X, z), (np.arange(40) < n).astype(float), np.ones(2))
        bounds.append(-40 * _optimise.evaluate(learning.loss, params, (data,)))
        marginal = given(X[:n]).fit(X, y).log_marginal_likelihood_
        assert marginal == pytest.approx(objective(X[:n], X, z, 0.0, False), abs=1e-4)
    assert (np.diff(bounds) > 0).all()
    assert bounds[-1] == pytest.approx(exact, abs=1e-4)
    assert bounds[0] < exact - 1.0


# ------------------------------------------------------------------------------------------------- known formulas


@pytest.mark.parametrize("spread", [0.0, 0.3, "noise"])
def test_predictions_are_the_formulas_of_the_paper(spread):
    X, y = rows()
    U = np.random.default_rng(1).normal(size=(7, 2))
    model = given(U, spread=spread).fit(X, y)
    A = mediated.transformation(gram(U, U), gram(U, X), NOISE if spread == "noise" else spread)
    centred, Sigma = y - y.mean(), NOISE * np.eye(40)
    mean, covariance = mediated.posterior(gram(U, U), gram(U, NEW), gram(NEW, NEW), A, Sigma, centred)
    found, cov = model.predict(NEW, return_cov=True)
    assert found == pytest.approx(y.mean() + mean, abs=1e-8)
    assert cov == pytest.approx(covariance, abs=1e-8)
    assert model.predict(NEW, return_std=True)[1] == pytest.approx(np.sqrt(np.diagonal(covariance)), abs=1e-8)
    assert model.points_ == pytest.approx(U)
    S = A.T @ gram(U, U) @ A
    assert model.degrees_of_freedom_ == pytest.approx(np.trace(np.linalg.solve(S + Sigma, S)), abs=1e-8)


def test_all_rows_as_points_are_a_gaussian_process():
    X, y = rows(60)
    model = given(X).fit(X, y)
    peer = GaussianProcessRegressor(ConstantKernel(SCALE) * RBF(LENGTHSCALE), alpha=NOISE, optimizer=None)
    peer.fit(X, y - y.mean())
    mean, std = model.predict(NEW, return_std=True)
    expected, expected_std = peer.predict(NEW, return_std=True)
    assert mean - y.mean() == pytest.approx(expected, abs=5e-6)
    assert std == pytest.approx(expected_std, abs=5e-6)
    assert model.log_marginal_likelihood_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-4)


def test_many_rows_are_streamed_to_the_same_sums(monkeypatch):
    X, y = rows(500)
    U = np.random.default_rng(1).normal(size=(7, 2))
    held = given(U).fit(X, y)
    monkeypatch.setattr("kernelbayes.features._landmark._HELD_ELEMENTS", 100)
    streamed = given(U, progress=True).fit(X, y)
    assert streamed.predict(NEW) == pytest.approx(held.predict(NEW), abs=1e-9)
    assert streamed.log_marginal_likelihood_ == pytest.approx(held.log_marginal_likelihood_, rel=1e-9)


def test_several_targets_are_fitted_side_by_side():
    X, y = rows()
    both = np.stack([y, 5 + 100 * X[:, 0] ** 2], axis=1)
    settings = {"kernel": KERNEL, "noise": NOISE, "learn": None, "random_state": 0}
    model = kb.SparseRegression(8, **settings).fit(X, both)
    mean, std = model.predict(NEW, return_std=True)
    assert mean.shape == std.shape == (6, 2)
    for j in range(2):
        one = kb.SparseRegression(8, **settings).fit(X, both[:, j])
        expected, expected_std = one.predict(NEW, return_std=True)
        assert mean[:, j] == pytest.approx(expected, rel=1e-9)
        assert std[:, j] == pytest.approx(expected_std, rel=1e-9)
    _, cov = model.predict(NEW, return_cov=True)
    assert cov.shape == (6, 6, 2)
    assert np.sqrt(np.einsum("iij->ij", cov)) == pytest.approx(std)
    assert model.sample(NEW, 3, random_state=0).shape == (3, 6, 2)


def test_draws_have_the_mean_and_the_covariance_of_the_process():
    X, y = rows()
    model = given(5, random_state=0).fit(X, y)
    draws = model.sample(NEW, 40_000, random_state=0)
    mean, cov = model.predict(NEW, return_cov=True)
    assert draws.mean(0) == pytest.approx(mean, abs=0.03)
    assert np.cov(draws.T) == pytest.approx(cov, abs=0.03)
    assert (model.sample(NEW, 2, random_state=1) == model.sample(NEW, 2, random_state=1)).all()


# ------------------------------------------------------------------------------------------------------- learning


@pytest.fixture(scope="module")
def fitted():
    X, y = waves(400)
    return kb.SparseRegression(12, random_state=0).fit(X, y), X, y


def test_a_few_points_are_as_good_as_the_whole_process(fitted):
    model, X, y = fitted
    grid = np.linspace(-2.9, 2.9, 50)[:, None]
    peer = GaussianProcessRegressor(ConstantKernel() * RBF(1.0), alpha=0.04).fit(X, y)
    mean, std = model.predict(grid, return_std=True)
    expected, expected_std = peer.predict(grid, return_std=True)
    assert np.abs(mean - expected).max() < 0.02
    assert std == pytest.approx(expected_std, rel=0.25)
    assert model.noise_ * model.unit_[0] ** 2 == pytest.approx(np.mean((y - np.ravel(peer.predict(X))) ** 2), rel=0.15)
    assert 8 < model.degrees_of_freedom_ < 12


def test_points_that_move_say_more_than_points_that_stay(fitted):
    model, X, y = fitted
    still = kb.SparseRegression(12, learn_points=False, random_state=0).fit(X, y)
    assert model.log_marginal_likelihood_ > still.log_marginal_likelihood_
    few, few_still = (kb.SparseRegression(6, learn_points=m, random_state=0).fit(X, y) for m in (True, False))
    assert few.log_marginal_likelihood_ > few_still.log_marginal_likelihood_ + 1.0
    start = X[:12].copy()
    settled = kb.SparseRegression(start, learn_points=False).fit(X, y)
    assert (settled.points_ == start).all()
    assert not np.allclose(kb.SparseRegression(start, max_iter=5).fit(X, y).points_, start)


def test_the_marginal_likelihood_of_the_paper_can_be_learned(fitted):
    _, X, y = fitted
    model = kb.SparseRegression(12, learn="marginal", spread="noise", random_state=0).fit(X, y)
    grid = np.linspace(-2.9, 2.9, 50)[:, None]
    error = model.predict(grid) - np.sin(2 * grid[:, 0])
    assert np.sqrt(np.mean(error**2)) < 0.3  # it has several maxima, off by 0.02 or 0.15; a constant is off by 0.7
    assert model.tuning_.params.spread is None
    first = kb.SparseRegression(12, learn="marginal", spread="noise", max_iter=1, random_state=0).fit(X, y)
    assert model.log_marginal_likelihood_ > first.log_marginal_likelihood_ + 5.0
    assert model.log_marginal_likelihood_ == pytest.approx(-model.tuning_.value * 400, rel=1e-3)


def test_units_of_the_data_do_not_matter(fitted):
    model, X, y = fitted
    other = kb.SparseRegression(12, random_state=0).fit(1e4 * X + 7e5, -3 + 1e-5 * y)
    grid = np.linspace(-2.9, 2.9, 20)[:, None]
    mean, std = model.predict(grid, return_std=True)
    scaled, scaled_std = other.predict(1e4 * grid + 7e5, return_std=True)
    assert (scaled + 3) / 1e-5 == pytest.approx(mean, abs=2e-3)
    assert scaled_std / 1e-5 == pytest.approx(std, abs=2e-3)


def test_columns_that_say_nothing_get_long_lengthscales():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (500, 3)) * [1.0, 100.0, 0.01]
    y = np.sin(2 * X[:, 0]) + X[:, 2] / 0.01 + 0.1 * rng.normal(size=500)
    lengthscale = kb.SparseRegression(25, random_state=0).fit(X, y).kernel_.kernel.lengthscale
    relevance = X.std(0) / lengthscale
    assert relevance[1] < 0.1 * min(relevance[0], relevance[2])
    assert kb.SparseRegression(5, ard=False, max_iter=3, random_state=0).fit(X, y).kernel_.kernel.lengthscale.shape == (
        3,
    )


def test_a_kernel_given_is_where_the_search_starts(fitted):
    _, X, y = fitted
    X = 1e3 * X
    model = kb.SparseRegression(10, 1.0 * kb.Matern(2.5, 1e3), random_state=0).fit(X, y)
    assert isinstance(model.kernel_.kernel, kb.Matern)
    assert model.score(X, y) > 0.9
    assert model.tuning_.path[0]["kernel.kernel.lengthscale"] == pytest.approx(1e3)
    fixed = kb.SparseRegression(10, noise=0.05, random_state=0).fit(X, y)
    assert fixed.noise_ == 0.05


def test_the_kernel_can_be_held_and_the_points_learned(fitted):
    _, X, y = fitted
    kernel = 1.5 * kb.Gaussian([0.9])
    settings = {"kernel": kernel, "noise": 0.1, "learn_kernel": False, "random_state": 0}
    model = kb.SparseRegression(6, **settings).fit(X, y)
    assert model.kernel_ == kernel
    assert model.noise_ == 0.1
    assert set(model.tuning_.path[0]) == {"value"}
    start = kb.SparseRegression(6, kernel, 0.1, learn=None, random_state=0).fit(X, y)
    assert not np.allclose(model.points_, start.points_, atol=0.05)
    again = kb.SparseRegression(6, **settings, restarts=3).fit(X, y)
    assert again.tuning_.value <= model.tuning_.value
    assert again.tuning_.evaluations > model.tuning_.evaluations


def test_many_rows_are_learned_from_few_and_the_noise_set_on_all():
    X, y = waves(1000)
    model = kb.SparseRegression(8, rows=400, random_state=0).fit(X, y)
    assert model.noise_ != float(model.tuning_.params.noise)
    z, U, kernel = (y - model.offset_) / model.unit_, model.points_, model.kernel_
    S = kernel.gram(X, U) @ np.linalg.solve(kernel.gram(U), kernel.gram(U, X))
    values, vectors = np.linalg.eigh(S)
    squares, missed = (vectors.T @ z) ** 2, kernel.diag(X).sum() - np.trace(S)

    def minus_bound(log_noise):
        total = np.maximum(values, 0) + np.exp(log_noise)
        return 0.5 * (squares / total + np.log(2 * np.pi * total)).sum() + 0.5 * missed / np.exp(log_noise)

    best = minimize_scalar(minus_bound, bounds=(-6, 0), method="bounded")
    assert np.log(model.noise_) == pytest.approx(best.x, abs=5e-3)
    assert model.log_marginal_likelihood_ == pytest.approx(-best.fun, abs=0.1)
    assert model.noise_ * model.unit_[0] ** 2 == pytest.approx(0.04, rel=0.1)


def test_same_seed_same_answer(fitted):
    model, X, y = fitted
    again = clone(model).fit(X, y)
    assert (again.points_ == model.points_).all()
    assert again.noise_ == model.noise_


def test_the_record_says_how_it_was_learned(fitted):
    model, _, _ = fitted
    values = [step["value"] for step in model.tuning_.path]
    assert values[-1] < values[0]
    assert "points" not in model.tuning_.path[0]
    assert model.tuning_.params.points == pytest.approx(model.points_)
    assert model.log_marginal_likelihood_ == pytest.approx(-400 * model.tuning_.value, rel=1e-3)
    assert given(5, random_state=0).fit(*rows()).tuning_ is None


# ------------------------------------------------------------------------------------------------ contract and files


AS_GIVEN = kb.SparseRegression(50, 2.0 * kb.Gaussian(5.0), 0.1, learn=None)


@parametrize_with_checks([AS_GIVEN])  # what learning adds is behind the same checks, and compiles for each of them
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_files_and_pickles_hold_the_model(fitted, tmp_path):
    model, _, _ = fitted
    grid = np.linspace(-3, 3, 9)[:, None]
    kb.save(model, tmp_path / "model.npz")
    for other in (kb.load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
        for kind in ("return_std", "return_cov"):
            for a, b in zip(other.predict(grid, **{kind: True}), model.predict(grid, **{kind: True}), strict=True):
                assert (a == b).all()
        assert (other.points_ == model.points_).all()
        assert other.tuning_.value == model.tuning_.value
        assert dataclasses.asdict(other.tuning_.params)["spread"] == 0.0
    assert (tmp_path / "model.npz").stat().st_size < 100_000


# ------------------------------------------------------------------------------------------------- awkward input


def test_more_points_than_rows():
    X, y = rows(10)
    model = kb.SparseRegression(50, max_iter=10).fit(X, y)
    assert len(model.points_) == 10
    twice = kb.SparseRegression(50, max_iter=10).fit(np.repeat(X, 3, axis=0), np.repeat(y, 3))
    assert len(twice.points_) == 10


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_points_that_coincide():
    X, y = rows()
    U = np.repeat(X[:3], 4, axis=0)
    assert given(U).fit(X, y).predict(NEW) == pytest.approx(given(X[:3]).fit(X, y).predict(NEW), abs=1e-8)
    assert np.isfinite(kb.SparseRegression(U, max_iter=10).fit(X, y).predict(NEW)).all()


def test_columns_and_targets_that_do_not_vary():
    X, y = rows()
    wide = np.column_stack([X, np.full(40, 7.0)])
    model = kb.SparseRegression(8, max_iter=20, random_state=0).fit(wide, y)
    assert np.isfinite(model.predict(wide)).all()
    constant = kb.SparseRegression(8, max_iter=20, random_state=0).fit(X, np.full(40, 3.0))
    mean, std = constant.predict(NEW, return_std=True)
    assert mean == pytest.approx(np.full(6, 3.0))
    assert np.isfinite(std).all()


X, Y = rows(20)


@pytest.mark.parametrize(
    ("settings", "data", "message"),
    [
        ({"learn_kernel": False}, (X, Y), "learn_kernel=False uses the kernel as it is given"),
        (
            {"kernel": KERNEL, "noise": 0.1, "learn_kernel": False, "learn_points": False},
            (X, Y),
            "nothing is left to learn",
        ),
        ({}, (np.where(X > 1, np.nan, X), Y), "X contains NaN"),
        ({}, (X, np.where(Y > 0, np.nan, Y)), "y contains NaN"),
        ({}, (X, Y[:-1]), "X has 20 rows but y has 19"),
        ({}, (X[:, 0], Y), "Reshape your data"),
        ({}, (X, None), "requires y"),
        ({}, (np.ones((20, 2)), Y), "no two distinct points"),
        ({"points": 0}, (X, Y), "points must be at least 1"),
        ({"points": 2.5}, (X, Y), "points must be a whole number"),
        ({"points": np.ones((4, 3))}, (X, Y), "points has 3 columns where 2 were expected"),
        ({"kernel": "rbf"}, (X, Y), "kernel must be a Kernel"),
        ({"kernel": kb.Gaussian([1.0, 2.0, 3.0])}, (X, Y), "X has 2 columns"),
        ({"kernel": kb.FunctionKernel(lambda a, b: 1.0)}, (X, Y), "kernel"),
        ({"noise": 0.0}, (X, Y), "noise must be positive"),
        ({"spread": -1.0}, (X, Y), "spread must not be negative"),
        ({"spread": "tied"}, (X, Y), "spread must be one of 'noise'"),
        ({"learn": "loo"}, (X, Y), "learn must be one of 'variational', 'marginal', None"),
        ({"learn": None}, (X, Y), "kernel and noise are needed"),
        ({"rows": 1}, (X, Y), "rows must be at least 2"),
    ],
)
def test_mistakes_are_named(settings, data, message):
    with pytest.raises(ValueError, match=message):
        kb.SparseRegression(**settings).fit(*data)


def test_mistakes_in_use_are_named():
    model = given(5).fit(X, Y)
    with pytest.raises(ValueError, match="not both"):
        model.predict(NEW, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="3 features"):
        model.predict(np.ones((2, 3)))


def test_far_from_all_points_is_told():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (500, 1))
    y = 5.0 + np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=500)
    model = kb.SparseRegression(points=10, random_state=0).fit(X, y)
    model.predict(np.linspace(-3.1, 3.1, 50)[:, None])
    for read in (model.predict, model.sample):
        with pytest.warns(
            kb.PosteriorWarning, match="^at 1 of 2 points x lies outside the reach of all points_"
        ) as said:
            read([[0.0], [60.0]])
        assert len(said) == 1
        assert said[0].filename == __file__
    with pytest.warns(kb.PosteriorWarning):
        assert model.predict([[60.0]]) == pytest.approx(y.mean())

"""The parts of a conditional density, each against a formula of its own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
from scipy import stats

import kernelbayes as kb
from kernelbayes._linalg import LinearModel, linear_moments
from kernelbayes.densities import _columns, _dependence, _fit_shape, _local, _process, _shape
from kernelbayes.densities._function import Function
from kernelbayes.densities._transform import NAMES, Transform, spacing
from oracles import even_draws

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))


def even(n):
    return np.full(n, 1.0 / n)


# ------------------------------------------------------------------------------------------------ linear model


def test_a_linear_model_is_a_gaussian_process():
    """By the formulas with the n x n covariance."""
    F, y, variances = RNG.normal(size=(30, 7)), RNG.normal(size=30), RNG.uniform(0.1, 2.0, 30)
    new = RNG.normal(size=(4, 7))
    model = LinearModel(F, y, variances)
    K = F @ F.T + np.diag(variances)
    mean, variance = linear_moments(model.factor, model.weights, new)
    np.testing.assert_allclose(mean, new @ F.T @ np.linalg.solve(K, y), rtol=1e-9)
    expected = np.diag(new @ new.T - new @ F.T @ np.linalg.solve(K, F @ new.T))
    np.testing.assert_allclose(variance, expected, rtol=1e-9)


@pytest.mark.parametrize("grouped", [False, True])
def test_rows_left_out_by_refitting_without_them(grouped):
    groups = np.arange(30) // 3 if grouped else np.arange(30)
    F = RNG.normal(size=(30, 7))[groups]
    y, variances = RNG.normal(size=30), RNG.uniform(0.1, 2.0, 30)
    mean, variance = LinearModel(F, y, variances).left_out(groups if grouped else None)
    for i in range(30):
        others = groups != groups[i]
        without = LinearModel(F[others], y[others], variances[others])
        m, v = linear_moments(without.factor, without.weights, F[i : i + 1])
        assert mean[i] == pytest.approx(m[0], rel=1e-8)
        assert variance[i] == pytest.approx(v[0], rel=1e-8)


# ------------------------------------------------------------------------------------------------ processes


def params(d=3):
    kernel = _process.Process(RNG.uniform(0.2, 1.0, d), RNG.uniform(0.5, 2.0, d), 0.8)
    return _process.NoisyProcess(kernel, 0.4)


def test_the_kernel_of_a_process_and_its_features():
    kernel = params().kernel
    K = kernel.gram(X)
    squares = ((X[:, None] - X) ** 2 / kernel.lengthscale**2).sum(-1)
    expected = 1.0 + (X * kernel.slope**2) @ X.T + 0.64 * np.exp(-0.5 * squares)
    np.testing.assert_allclose(K, expected, rtol=1e-10)
    np.testing.assert_allclose(kernel.diag(X), np.diag(expected), rtol=1e-10)
    F = _process.features_of(_process.NoisyProcess(kernel, 1e-3), X, 100, RNG)(X)
    np.testing.assert_allclose(F @ F.T, expected, atol=1e-5)


def test_the_loss_of_a_process_is_a_density_and_its_slopes_are_differences():
    y, known = RNG.normal(size=40), RNG.uniform(0, 0.3, 40)
    at = params()
    value, slopes = _process._loss(at, X, y, known)
    covariance = at.kernel.gram(X) + np.diag(0.16 + known + 1e-8)
    means, widths = _process.prior(3)
    values = (at.kernel.slope, at.kernel.lengthscale, at.kernel.size, at.noise)
    prices = [0.5 * (((np.log(v) - means[k]) / widths[k]) ** 2).sum() for k, v in zip(means, values, strict=True)]
    expected = -stats.multivariate_normal(cov=covariance).logpdf(y) - 20 * np.log(2 * np.pi) + sum(prices)
    assert value == pytest.approx(expected, rel=1e-9)

    def loss(slope, lengthscale, size, noise):
        moved = _process.NoisyProcess(_process.Process(slope, lengthscale, size), noise)
        return _process._loss(moved, X, y, known)[0]

    for i, part in enumerate(values):
        for k in range(np.size(part)):
            step = 1e-5 * np.eye(np.size(part))[k].reshape(np.shape(part))
            up, down = (loss(*(v + s * step if j == i else v for j, v in enumerate(values))) for s in (1, -1))
            assert np.ravel(slopes[i])[k] == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-5)


# ------------------------------------------------------------------------------------------------ transforms


@pytest.mark.parametrize("name", NAMES)
def test_transforms_are_inverted_and_their_slopes_are_differences(name):
    y = RNG.gamma(2.0, 3.0, 200)
    transform = Transform.of(name, y)
    z = transform(y)
    assert z.mean() == pytest.approx(0.0, abs=1e-9)
    assert z.std() == pytest.approx(1.0)
    np.testing.assert_allclose(transform.inverse(z), y, rtol=1e-9)
    slope = (transform(y + 1e-6) - transform(y - 1e-6)) / 2e-6
    np.testing.assert_allclose(transform.log_slope(y), np.log(slope), atol=1e-5)


def test_columns_of_steps():
    assert spacing(RNG.normal(size=100)) == (0.0, None)
    counts = RNG.poisson(3, 200).astype(float)
    assert spacing(counts) == (1.0, None)
    assert spacing(0.25 * counts) == (0.25, None)
    assert spacing(np.ones(50)) == (0.0, None)
    assert spacing(np.repeat([0.0, 1.0], 30)) == (1.0, None)
    transform = Transform.of("log", counts, 1.0)
    spread = transform.dithered(counts, RNG)
    assert np.abs(spread - counts).max() <= 0.5
    assert len(np.unique(spread)) > 190
    assert np.isfinite(transform(spread)).all()
    with pytest.raises(ValueError, match="never negative"):
        Transform.of("sqrt", np.array([-1.0, 2.0]))


def test_a_value_that_many_rows_have():
    y = np.where(np.arange(200) % 4, 0.0, RNG.gamma(3.0, 1.0, 200))
    step, atom = spacing(y)
    assert (step, atom) == (pytest.approx(0.2 * np.median(y[y > 0])), 0.0)
    transform = Transform.of("log", y, step, atom)
    spread = transform.dithered(y, RNG)
    np.testing.assert_array_equal(spread[y > 0], y[y > 0])
    assert 0 < np.abs(spread[y == 0]).max() <= step / 2
    again = transform.inverse(transform(spread))
    np.testing.assert_array_equal(again[y == 0], 0.0)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda f, e: np.exp(f + 0.3 * e), "log"),
        (lambda f, e: (4 + f + 0.3 * e) ** 2, "sqrt"),
        (lambda f, e: f + 0.3 * e, "identity"),
    ],
)
def test_the_scale_that_was_used_is_found(made, name):
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, (200, 1))
        y = made(2.0 * x[:, 0], rng.normal(size=200))
        found.append(_columns.choose_transform(x, y, NAMES, rng).name)
    assert found.count(name) >= 2


# ------------------------------------------------------------------------------------------------ scales


def test_a_scale_that_varies_is_found_and_one_that_does_not_is_constant():
    varying, errors = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(400, 2))
        truth = np.exp(1.6 * x[:, 0]) if seed % 2 else np.full(400, 0.3)
        residual = np.sqrt(truth) * rng.normal(size=400)
        fitted = _columns.fit_scale(x, residual, np.zeros(400), even(400), None, rng)
        varying.append(fitted.scale.shrinkage > 0)
        errors.append(np.abs(np.log(fitted.scale.at(x) / truth)).mean())
        np.testing.assert_allclose(fitted.scale.at(x), fitted.fitted, rtol=1e-9)
    assert varying[1::2] == [True] * 3
    assert np.mean(varying[::2]) < 1
    assert np.mean(errors) < 0.3


def test_a_known_variance_is_not_counted_twice():
    rng = np.random.default_rng(0)
    residual = np.sqrt(0.5 + 1.5) * rng.normal(size=4000)
    fitted = _columns.fit_scale(
        rng.normal(size=(4000, 1)), residual, np.full(4000, 1.5), even(4000), None, rng, varying=False
    )
    assert np.exp(fitted.scale.level) == pytest.approx(0.5, abs=0.15)  # standard error .045


# ------------------------------------------------------------------------------------------------ dependence


def test_constant_dependence_is_the_covariance():
    rng = np.random.default_rng(1)
    root = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [-0.3, 0.4, 0.87]])
    E = np.linalg.qr(rng.normal(size=(3000, 3)))[0] * np.sqrt(3000) @ root.T  # whose covariance is that of the root
    x = rng.normal(size=(3000, 1))
    found = _dependence.fit_dependence(x, E, even(3000), None, rng, varying=False)
    T, logs = found.dependence.whiten(E, x)
    np.testing.assert_allclose(np.cov(T.T), np.eye(3), atol=0.02)
    np.testing.assert_allclose(found.dependence.colour(T, x), E, atol=1e-9)
    expected = stats.multivariate_normal(cov=root @ root.T).logpdf(E)
    got = -0.5 * logs - 0.5 * (T**2).sum(1) - 1.5 * np.log(2 * np.pi)
    assert np.abs(got - expected).mean() < 0.1
    assert got.mean() == pytest.approx(expected.mean(), abs=0.02)


def test_dependence_that_turns_with_x():
    rng = np.random.default_rng(2)
    x = rng.uniform(-2, 2, (1500, 1))
    rho = np.tanh(1.5 * x[:, 0])
    z = rng.normal(size=(1500, 2))
    E = np.stack([z[:, 0], rho * z[:, 0] + np.sqrt(1 - rho**2) * z[:, 1]], axis=1)
    found = _dependence.fit_dependence(x, E, even(1500), None, rng, varying=None)
    constant = _dependence.fit_dependence(x, E, even(1500), None, rng, varying=False)
    truth = -0.5 * np.log(1 - rho**2) - 0.5 * (z**2).sum(1)
    assert found.dependence.varying
    assert not constant.dependence.varying
    assert truth.mean() - found.scores.mean() < 0.05 < truth.mean() - constant.scores.mean()


# ------------------------------------------------------------------------------------------------ shapes


@pytest.mark.parametrize("kind", ["normal", "columns", "joint"])
def test_shapes_are_densities(kind):
    rng = np.random.default_rng(3)
    angle = rng.uniform(0, 2 * np.pi, 400)
    T = 1.3 * np.stack([np.cos(angle), np.sin(angle)], 1) + 0.2 * rng.normal(size=(400, 2))
    shape = _fit_shape.fit_shape(T, T, even(400), None, rng, kind).shape
    axis = 0.08 * (np.arange(200) - 99.5)  # the middles of cells
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    mass = 0.08**2 * np.exp(shape.log_density(grid, grid))
    assert mass.sum() == pytest.approx(1.0, abs=2e-3)
    draws = shape.sample(np.zeros((20_000, 2)), rng)
    assert (np.abs(draws) < 0.8).all(1).mean() == pytest.approx(mass[(np.abs(grid) < 0.8).all(1)].sum(), abs=0.02)


def test_left_out_densities_are_those_without_the_row():
    rng = np.random.default_rng(4)
    T = rng.normal(size=(60, 2))
    groups = np.arange(60) // 2
    shape, left_out = _shape.fit_smoothed(T, even(60), groups, (5,), (0.5,))
    others = groups != 0
    parts = stats.norm.pdf(T[0], T[others], shape.bandwidths[others, None]).prod(1)
    tail = stats.norm.pdf(T[0], 0.0, 2.0).prod()
    assert left_out[0] == pytest.approx(np.log(0.97 * parts.mean() + 0.03 * tail))


def test_a_normal_is_kept_and_a_ring_is_seen():
    rng = np.random.default_rng(5)
    normal = even_draws.normals(300, 2, rng)
    found = _fit_shape.fit_shape(normal, normal[:, :0], even(300), None, rng)
    plain = stats.norm.logpdf(normal).sum(1)
    assert found.left_out.mean() - plain.mean() < 0.05
    angle = rng.uniform(0, 2 * np.pi, 500)
    ring = 1.4 * np.stack([np.cos(angle), np.sin(angle)], 1) + 0.1 * rng.normal(size=(500, 2))
    assert isinstance(_fit_shape.fit_shape(ring, ring[:, :0], even(500), None, rng).shape, _shape.SmoothedShape)


def test_a_table_of_a_density_is_the_density():
    rng = np.random.default_rng(8)
    t = np.concatenate([rng.standard_t(3, 300), [9.0, -40.0]])[:, None]
    smoothed, _ = _shape.fit_smoothed(t, even(302), None, (25,), (0.3,))
    table = _shape.TabulatedShape.of(smoothed)
    assert isinstance(table, _shape.TabulatedShape)
    at = np.concatenate([np.linspace(-8, 8, 5001), [-40.0, 9.0, 100.0, 1e6]])[:, None]
    np.testing.assert_allclose(table.log_density(at, at), smoothed.log_density(at, at), rtol=1e-6, atol=2e-3)


# ------------------------------------------------------------------------------------------------ functions


@pytest.mark.parametrize("recipe", [None, kb.Exact(), kb.Subspace(20, whiten=False), kb.RandomFourier(20)])
def test_a_function_in_the_columns_of_the_kernel_is_that_of_its_features(recipe):
    at = params()
    features = _process.features_of(at, X, 30, np.random.default_rng(0), recipe)
    model = LinearModel(features(X), RNG.normal(size=40), RNG.uniform(0.1, 0.4, 40))
    new = RNG.normal(size=(3000, 3))  # of several blocks
    expected = linear_moments(model.factor, model.weights, features(new))
    function = Function.of(features, model.weights, model.factor)
    np.testing.assert_allclose(function.moments(new), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(function.mean(new), expected[0], rtol=1e-5, atol=1e-6)


# ------------------------------------------------------------------------------------------------ weights that vary


def regimes(n, seed):
    """Residuals that are about 1 or -1, by a chance that depends on the first of three columns."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    sign = np.where(even_draws.uniforms(n, 1, rng)[:, 0] < 1 / (1 + np.exp(-3 * x[:, 0])), 1.0, -1.0)
    return x, (sign + 0.3 * rng.normal(size=n))[:, None]


def local(n=300, seed=0):
    x, t = regimes(n, seed)
    smoothed, _ = _shape.fit_smoothed(t, even(n), None, (25,), (0.3,))
    found = _local.fit_local(smoothed, x, None)
    assert found is not None
    return x, t, *found


def test_a_regime_whose_chance_depends_on_x_is_seen_and_nothing_else():
    for seed in range(3):
        x, t = regimes(400, seed)
        found = _fit_shape.fit_shape(t, x, even(400), None, np.random.default_rng(0)).shape
        assert isinstance(found, _local.LocalShape)
        assert found.precisions[0] > found.precisions[1:].max()
        shuffled = _fit_shape.fit_shape(t, x[::-1], even(400), None, np.random.default_rng(0)).shape
        assert not shuffled.local
        assert not _fit_shape.fit_shape(t, x, even(400), None, np.random.default_rng(0), "columns").shape.local


def test_a_local_shape_is_a_density_with_its_draws_and_quantiles():
    *_, shape, _ = local()
    grid = np.linspace(-8, 8, 4001)
    for x in (np.zeros((1, 3)), np.array([[1.5, 0.0, 0.0]]), np.array([[50.0, 0.0, 0.0]])):
        X = np.repeat(x, len(grid), axis=0)
        density = np.exp(shape.log_density(grid[:, None], X))
        assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-3)
        cumulated = scipy.integrate.cumulative_trapezoid(density, grid, initial=0.0)
        np.testing.assert_allclose(shape.cdf(grid, X), cumulated, atol=5e-3)
        levels = np.array([0.1, 0.5, 0.9])
        np.testing.assert_allclose(shape.cdf(shape.quantile(levels, x)[:, 0], X[:3]), levels, atol=3e-3)
        draws = shape.sample(np.repeat(x, 20_000, axis=0), np.random.default_rng(1))
        np.testing.assert_allclose((draws < grid[::500]).mean(0), shape.cdf(grid[::500], X[:9]), atol=0.02)
    far, everywhere = shape.log_density(grid[:, None], X), shape.smoothed.log_density(grid[:, None], X)
    np.testing.assert_allclose(far, everywhere, atol=1e-9)


def test_left_out_local_densities_are_those_without_the_row():
    x, t, shape, left_out = local(60)
    for i in (0, 31):
        others = np.arange(60) != i
        parts = stats.norm.pdf(t[i, 0], t[others, 0], shape.smoothed.bandwidths[others])
        near = np.exp(-0.5 * ((x[others] - x[i]) ** 2) @ shape.precisions) / 60
        inside = (near @ parts + 0.02 * parts.mean()) / (near.sum() + 0.02)
        assert left_out[i] == pytest.approx(np.log(0.97 * inside + 0.03 * stats.norm.pdf(t[i, 0], 0, 2)))

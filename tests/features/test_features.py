"""Representations of a sample against the Gram matrix, or against the Nystrom formula where they approximate it."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelbayes as kb
from kernelbayes._linalg import Dense, LowRank
from kernelbayes.features import Streamed, kernel_for, represent
from kernelbayes.features import _landmark as landmark
from oracles.closed_forms import gaussian_gram, nystrom

RNG = np.random.default_rng(0)
SMOOTH = RNG.normal(size=(120, 2))
MANY = RNG.normal(size=(400, 2))
HIGH = RNG.normal(size=(60, 20))
NEW = RNG.normal(size=(7, 2))
METHODS = ["random", "kmeans", "herding", "leverage"]


def residual(K, F):
    """The share of the trace of K that F F' misses."""
    return np.trace(K - F @ F.T) / np.trace(K)


def fitted(recipe, kernel, X, seed=0):
    """Features and the Gram matrix of the sample, as the layers below receive them."""
    return recipe._fit(kernel, kernel._check(X, "X"), np.random.default_rng(seed))


# ------------------------------------------------------------------------------------------------------ exact

EXACT = {
    "low rank": (kb.Gaussian(1.8), MANY, LowRank),
    "low rank with a scale": (100.0 * kb.Gaussian(2.0), MANY, LowRank),
    "a line": (kb.Gaussian(0.5), np.linspace(0, 1, 200)[:, None], LowRank),
    "low rank, too few points to see it": (kb.Gaussian(1.5), SMOOTH, Dense),
    "finite dimension": (kb.Polynomial(2), SMOOTH, LowRank),
    "high dimension": (kb.Gaussian(2.0), HIGH, Dense),
    "rough": (kb.Laplace(1.0), SMOOTH, Dense),
    "unequal diagonal": (kb.Brownian(), np.abs(SMOOTH), Dense),
    "few points": (kb.Gaussian(1.0), SMOOTH[:3], Dense),
    "one point": (kb.Gaussian(1.0), SMOOTH[:1], Dense),
    "constant columns": (kb.Gaussian(1.8), np.column_stack([MANY, np.ones(400)]), LowRank),
    "duplicates": (kb.Gaussian(0.3), np.tile(SMOOTH[:20], (6, 1)), LowRank),
    "duplicates that a look at some points misses": (kb.Laplace(1.0), np.repeat(SMOOTH[:30], 4, axis=0), Dense),
    "all points equal": (kb.Gaussian(1.0), np.ones((40, 2)), LowRank),
}


@pytest.mark.parametrize("case", EXACT)
def test_exact_features_give_the_gram_matrix_back(case):
    kernel, X, form = EXACT[case]
    features, gram = fitted(kb.Exact(), kernel, X)
    K = kernel.gram(X)
    F = features.transform(X)
    assert isinstance(gram, form)
    assert F.dtype == np.float64
    assert F.shape == (len(X), features.rank)
    np.testing.assert_allclose(F @ F.T, K, rtol=0, atol=1e-9 * K.max())
    assert features.error < 1e-13
    new = X[:3] + 0.05
    np.testing.assert_allclose(features.transform(new) @ F.T, kernel.gram(new, X), rtol=0, atol=1e-6 * K.max())


def test_exact_finds_the_rank_of_a_finite_dimensional_kernel():
    assert 2 <= kb.Exact().fit(kb.Linear(), SMOOTH).rank <= 4  # rounding may leave a direction or two
    assert 6 <= kb.Exact().fit(kb.Polynomial(2), SMOOTH).rank <= 9
    assert kb.Exact().fit(kb.Delta(), list("abca" * 20)).rank == 3


def test_exact_of_objects():
    words = ["kernel", "bayes", "mean", "map", "kernel", "nab"]
    shared = kb.FunctionKernel(lambda a, b: len(set(a) & set(b)))
    features = kb.Exact().fit(shared, words)
    F = features.transform(words)
    assert pytest.approx(np.array([[len(set(a) & set(b)) for a in words] for b in words]), abs=1e-9) == F @ F.T


def test_a_looser_tolerance_leaves_a_larger_error():
    loose = kb.Exact(tol=1e-4).fit(kb.Gaussian(1.5), MANY)
    assert loose.rank < kb.Exact().fit(kb.Gaussian(1.5), MANY).rank
    assert 1e-8 < loose.error < 1e-4


@pytest.mark.parametrize("case", ["low rank", "high dimension"])
def test_coordinates_and_the_gram_matrix_agree(case):
    """scatter(c(x) (core + s I)^-1) is (K + s I)^-1 k(x) in either form."""
    kernel, X, _ = EXACT[case]
    features, gram = fitted(kb.Exact(), kernel, X)
    new = X[:4] + 0.1
    c = features._coordinates(new)
    found = gram.scatter(c @ np.linalg.inv(gram.core() + 0.1 * np.eye(features.rank)))
    expected = np.linalg.solve(kernel.gram(X) + 0.1 * np.eye(len(X)), kernel.gram(X, new)).T
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    again = represent(features, X)
    assert type(again) is type(gram)
    assert again.core() == pytest.approx(gram.core(), abs=1e-5)  # pivots near rounding are only so accurate


def test_a_kernel_that_is_zero_everywhere_has_no_features():
    for recipe in (kb.Exact(), kb.IncompleteCholesky(3), kb.Subspace(3)):
        with pytest.raises(ValueError, match="zero on every point"):
            recipe.fit(kb.Linear(), np.zeros((20, 2)))


# ------------------------------------------------------------------------------------------ incomplete Cholesky


@pytest.mark.parametrize("kernel", [kb.Gaussian(0.7), kb.Laplace(1.0), kb.Linear(1.0) + kb.Gaussian(0.5)])
def test_incomplete_cholesky_is_the_nystrom_formula_on_its_pivots(kernel):
    features, gram = fitted(kb.IncompleteCholesky(15), kernel, SMOOTH)
    R = features.points
    expected = nystrom(kernel.gram(SMOOTH, R), kernel.gram(R))
    F = features.transform(SMOOTH)
    assert features.rank == len(R) == 15
    assert all((r == SMOOTH).all(1).any() for r in R)
    np.testing.assert_allclose(F @ F.T, expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(gram.factor, F, rtol=0, atol=1e-8)
    assert features.transform(R) @ features.transform(R).T == pytest.approx(kernel.gram(R), abs=1e-10)
    assert features.error == pytest.approx(residual(kernel.gram(SMOOTH), F))


def test_incomplete_cholesky_is_greedy():
    """Each pivot is where the ones before leave the largest variance, by brute force."""
    K = gaussian_gram(SMOOTH, SMOOTH, 0.7)
    chosen = [0]
    while len(chosen) < 8:
        left = np.diag(K - nystrom(K[:, chosen], K[np.ix_(chosen, chosen)]))
        chosen.append(int(left.argmax()))
    features = kb.IncompleteCholesky(8).fit(kb.Gaussian(0.7), SMOOTH)
    assert (features.points == SMOOTH[chosen]).all()


def test_the_error_of_incomplete_cholesky_falls_with_the_rank_and_stops_at_the_tolerance():
    kernel = kb.Gaussian(0.7)
    errors = [kb.IncompleteCholesky(rank).fit(kernel, SMOOTH).error for rank in (1, 5, 20, 60)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.5
    assert errors[-1] < 1e-3
    for tol in (1e-2, 1e-5):
        features = kb.IncompleteCholesky(tol=tol).fit(kernel, SMOOTH)
        left = 1 - (features.transform(SMOOTH) ** 2).sum(1)
        assert left.max() <= tol + 1e-12
        fewer = kb.IncompleteCholesky(features.rank - 1, tol=1e-12).fit(kernel, SMOOTH)
        assert 1 - (fewer.transform(SMOOTH) ** 2).sum(1).min() > tol  # one less would not do
        assert features.error <= tol


def test_incomplete_cholesky_takes_no_more_than_there_is():
    repeated = np.tile(SMOOTH[:10], (5, 1))
    features = kb.IncompleteCholesky(40).fit(kb.Gaussian(0.5), repeated)
    assert features.rank == 10
    assert features.error < 1e-12
    assert kb.IncompleteCholesky(500).fit(kb.Laplace(), SMOOTH).rank == 120


# ---------------------------------------------------------------------------------------------------- subspace


@pytest.mark.parametrize("method", METHODS)
def test_subspace_is_the_nystrom_formula_on_its_points(method):
    kernel = kb.Gaussian(0.7)
    features, gram = fitted(kb.Subspace(25, method=method), kernel, SMOOTH)
    R = features.points
    expected = nystrom(gaussian_gram(SMOOTH, R, 0.7), gaussian_gram(R, R, 0.7))
    F = features.transform(SMOOTH)
    assert features.rank == len(R) <= 25
    assert features.rank >= 20
    np.testing.assert_allclose(F @ F.T, expected, rtol=0, atol=1e-7)
    assert gram.core() == pytest.approx(F.T @ F)
    assert features.error == pytest.approx(residual(gaussian_gram(SMOOTH, SMOOTH, 0.7), F), abs=1e-9)
    assert 0 < features.error < 0.2


@pytest.mark.parametrize("method", METHODS)
def test_subspace_without_whitening_has_the_kernel_columns(method):
    whitened = kb.Subspace(12, method=method).fit(kb.Gaussian(0.7), SMOOTH, random_state=3)
    bare, gram = fitted(kb.Subspace(12, method=method, whiten=False), kb.Gaussian(0.7), SMOOTH, seed=3)
    assert (bare.points == whitened.points).all()
    assert bare.error == whitened.error
    G = gaussian_gram(SMOOTH, bare.points, 0.7)
    assert bare._coordinates(SMOOTH) == pytest.approx(G)
    assert bare.transform(SMOOTH) == pytest.approx(whitened.transform(SMOOTH))
    assert gram.core() == pytest.approx(G.T @ G)


@pytest.mark.parametrize("method", METHODS)
def test_subspace_of_all_points_is_exact(method):
    features = kb.Subspace(40, method=method).fit(kb.Laplace(1.0), SMOOTH[:40], random_state=0)
    F = features.transform(SMOOTH[:40])
    assert pytest.approx(kb.Laplace(1.0).gram(SMOOTH[:40]), abs=1e-8) == F @ F.T
    assert features.error < 1e-10


@pytest.mark.parametrize("method", METHODS)
def test_subspace_is_reproducible(method):
    first, again, other = (
        kb.Subspace(10, method=method).fit(kb.Gaussian(0.7), SMOOTH, random_state=seed) for seed in (5, 5, 6)
    )
    assert (first.points == again.points).all()
    if method != "herding":  # which draws nothing unless there are very many points
        assert (first.points != other.points).any()


@pytest.mark.parametrize("method", METHODS)
def test_subspace_survives_duplicates_and_constant_columns(method):
    X = np.column_stack([np.tile(SMOOTH[:8], (6, 1)), np.ones(48)])
    features = kb.Subspace(20, method=method).fit(kb.Gaussian(0.5), X, random_state=0)
    F = features.transform(X)
    assert np.isfinite(F).all()
    assert features.rank <= 8
    assert pytest.approx(nystrom(*(gaussian_gram(Z, features.points, 0.5) for Z in (X, features.points)))) == F @ F.T
    if method in ("kmeans", "herding"):  # the others may draw one point many times
        assert features.error < 1e-8


def test_chosen_points_follow_the_sample():
    """Herded points embed the sample better than random ones; leverage scores find a lonely cluster."""
    kernel = kb.Gaussian(0.7)
    sample = kb.MeanEmbedding(SMOOTH, kernel=kernel)

    def distance(method, seed):
        points = kb.Subspace(15, method=method).fit(kernel, SMOOTH, random_state=seed).points
        return sample.distance(kb.MeanEmbedding(points, kernel=kernel))

    assert distance("herding", 0) < 0.7 * np.mean([distance("random", seed) for seed in range(10)])
    lonely = np.concatenate([0.01 * RNG.normal(size=(490, 1)), 10.0 + RNG.normal(size=(10, 1))])

    def found(method):
        recipe = kb.Subspace(20, method=method)
        return np.mean([(recipe.fit(kernel, lonely, random_state=s).points > 5).sum() for s in range(10)])

    assert found("leverage") > 3 * found("random")


def test_the_pool_limits_what_herding_and_leverage_look_at(monkeypatch):
    monkeypatch.setattr("kernelbayes.features._selection._POOL", 30)
    for method in ("herding", "leverage"):
        features = kb.Subspace(10, method=method).fit(kb.Gaussian(0.7), SMOOTH, random_state=0)
        assert features.rank == 10
        assert all((point == SMOOTH).all(1).any() for point in features.points)
        assert kb.Subspace(50, method=method).fit(kb.Laplace(0.7), SMOOTH, random_state=0).rank == 50


def test_kmeans_needs_coordinates_and_the_others_do_not():
    labels = list("abcab" * 8)
    for method in ("random", "herding", "leverage"):
        features = kb.Subspace(30, method=method).fit(kb.Delta(), labels, random_state=0)
        assert features.rank == 3
    with pytest.raises(ValueError, match="kmeans"):
        kb.Subspace(3, method="kmeans").fit(kb.Delta(), labels)


# ---------------------------------------------------------------------------------------------------- streamed

APART, NEAR = np.linspace(-2.5, 2.5, 9)[:, None], np.linspace(-1.5, 1.5, 12)[:, None]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(landmark, "_HELD_ELEMENTS", 64)
    monkeypatch.setattr("kernelbayes.kernels._base._BLOCK_ELEMENTS", 200)


@pytest.mark.parametrize("whiten", [True, False])
@pytest.mark.parametrize(("points", "lengthscale", "safe"), [(APART, 0.5, True), (NEAR, 0.7, False)])
def test_streamed_blocks_give_the_same_sums(points, lengthscale, safe, whiten, small_blocks):
    kernel = kb.Gaussian(lengthscale)
    features = kb.IncompleteCholesky(tol=1e-11).fit(kernel, points)
    if not whiten:
        features = landmark.LandmarkFeatures(kernel, features.error, features.points, features.factor, False)
    else:
        assert (landmark._smallest_pivot(features.factor) > landmark._SAFE_PIVOT) == safe
    X = RNG.normal(size=(90, 1))
    streamed, held = represent(features, X), LowRank(features._coordinates(X))
    assert isinstance(streamed, Streamed)
    assert len(list(streamed._blocks())) > 3
    assert streamed.size == held.size == 90
    Y, y, C = RNG.normal(size=(90, 3)), RNG.normal(size=90), RNG.normal(size=(4, features.rank))
    tolerance = dict(rel=1e-8, abs=1e-8 * 90)
    assert streamed.core() == pytest.approx(held.core(), **tolerance)
    assert streamed.gather(Y) == pytest.approx(held.gather(Y), **tolerance)
    assert streamed.gather(y) == pytest.approx(held.gather(y), **tolerance)
    assert streamed.scatter(C) == pytest.approx(held.scatter(C), **tolerance)
    for right in (Y, y):
        for found, expected in zip(streamed.normal_equations(right), held.normal_equations(right), strict=True):
            assert found == pytest.approx(expected, **tolerance)


@pytest.mark.parametrize("method", METHODS)
def test_a_large_subspace_is_streamed_and_nothing_else_changes(method, monkeypatch):
    recipe, kernel = kb.Subspace(12, method=method), kb.Gaussian(0.7)
    features, held = fitted(recipe, kernel, SMOOTH)
    monkeypatch.setattr(landmark, "_HELD_ELEMENTS", 64)
    monkeypatch.setattr("kernelbayes.kernels._base._BLOCK_ELEMENTS", 200)
    again, streamed = fitted(recipe, kernel, SMOOTH)
    assert isinstance(held, LowRank)
    assert isinstance(streamed, Streamed)
    assert again.points == pytest.approx(features.points)
    assert again.error == pytest.approx(features.error, abs=1e-12)
    assert streamed.core() == pytest.approx(held.core(), abs=1e-6)


# ----------------------------------------------------------------------------------------------- random Fourier

STATIONARY = {
    "gaussian": kb.Gaussian(1.5),
    "ard": kb.Gaussian([0.8, 3.0]),
    "laplace": kb.Laplace(2.0),
    "matern 1/2": kb.Matern(0.5, 2.0),
    "matern 3/2": kb.Matern(1.5, 1.0),
    "matern 5/2": kb.Matern(2.5, [1.0, 2.0]),
    "rational quadratic": kb.RationalQuadratic(1.2, alpha=0.7),
    "scaled": 2.0 * (3.0 * kb.Matern(1.5, 1.0)),
}


@pytest.mark.parametrize("name", STATIONARY)
def test_random_fourier_features_converge_to_the_kernel(name):
    """The mean of cos over m frequencies has a standard error of at most sqrt(1 / m) times the diagonal."""
    kernel, m = STATIONARY[name], 5000
    X = SMOOTH[:40]
    features = kb.RandomFourier(2 * m).fit(kernel, X, random_state=0)
    F = features.transform(X)
    K = kernel.gram(X)
    assert F.shape == (40, 2 * m)
    assert features.rank == 2 * m
    assert features.error is None
    assert np.diag(F @ F.T) == pytest.approx(np.diag(K))
    error = np.abs(F @ F.T - K) / K[0, 0]
    assert error.max() < 5 * np.sqrt(0.5 / m)
    assert np.sqrt(np.mean(error**2)) < 2 * np.sqrt(0.5 / m)  # errors of one kernel go together


def test_random_fourier_is_reproducible():
    first, again, other = (kb.RandomFourier(8).fit(kb.Gaussian(), NEW, random_state=s) for s in (1, 1, 2))
    assert (first.transform(NEW) == again.transform(NEW)).all()
    assert (first.transform(NEW) != other.transform(NEW)).any()


@pytest.mark.parametrize(
    ("kernel", "X"),
    [(kb.Linear(), SMOOTH), (kb.Gaussian() + kb.Gaussian(), SMOOTH), (kb.Delta(), ["a", "b", "a"])],
    ids=["linear", "sum", "labels"],
)
def test_random_fourier_needs_a_stationary_kernel(kernel, X):
    with pytest.raises(ValueError, match="stationary"):
        kb.RandomFourier(10).fit(kernel, X)


# ---------------------------------------------------------------------------------------------------- one-hot


@pytest.mark.parametrize("labels", [list("abcab"), [3, 1, 1, 7], [[2.5], [1.5], [2.5]], [True, False, True]])
def test_one_hot_is_the_kronecker_kernel(labels):
    features, gram = fitted(kb.OneHot(), kb.Delta(), labels)
    F = features.transform(labels)
    assert features.rank == len(np.unique(labels))
    assert features.error == 0.0
    assert ([[float(a == b) for a in labels] for b in labels] == F @ F.T).all()
    assert (gram.factor == F).all()


def test_one_hot_has_no_coordinate_for_a_new_label():
    features = kb.OneHot().fit(kb.Delta(), ["b", "a", "b"])
    assert (features.transform(["giraffe", "a"]) == [[0, 0], [1, 0]]).all()


def test_one_hot_refuses_what_it_does_not_represent():
    with pytest.raises(ValueError, match="Delta"):
        kb.OneHot().fit(kb.Gaussian(), SMOOTH)
    with pytest.raises(ValueError, match="one column"):
        kb.OneHot().fit(kb.Delta(), [["a", "b"], ["c", "d"]])


# ----------------------------------------------------------------------------------------------------- network


def test_a_network_is_applied_to_each_point_in_double_precision():
    network = eqx.nn.MLP(2, 5, width_size=6, depth=1, key=jax.random.key(0))
    recipe = kb.Neural(network)
    features, gram = fitted(recipe, recipe.kernel, SMOOTH)
    (first, second), relu = network.layers, lambda v: np.maximum(v, 0)
    W, b, V, c = (np.asarray(a, dtype=np.float64) for a in (first.weight, first.bias, second.weight, second.bias))
    expected = relu(SMOOTH @ W.T + b) @ V.T + c
    F = features.transform(SMOOTH)
    assert F.dtype == np.float64
    assert pytest.approx(expected, rel=1e-12, abs=1e-12) == F
    assert gram.factor == pytest.approx(expected)
    assert features.rank == 5
    assert features.error == 0.0
    assert pytest.approx(recipe.kernel.gram(SMOOTH)) == F @ F.T


@pytest.mark.parametrize(
    "function",
    [lambda x: np.column_stack([x, x**2]), lambda x: jnp.concatenate([jnp.asarray(x), jnp.asarray(x) ** 2], axis=1)],
    ids=["numpy", "jax"],
)
def test_a_plain_function_takes_all_points_at_once(function):
    recipe = kb.Neural(function)
    features = recipe.fit(recipe.kernel, SMOOTH)
    F = features.transform(NEW)
    assert F.dtype == np.float64
    assert pytest.approx(np.column_stack([NEW, NEW**2]), rel=1e-15) == F
    assert features.rank == 4


class Overflows(eqx.Module):
    def __call__(self, x):
        return jnp.log(x * 0.0 - 1.0)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Overflows(), "NaN"),
        (lambda x: np.full((len(x), 2), np.inf), "infinite"),
        (lambda x: x[:, 0], "shape"),
        (lambda x: x[:5], "shape"),
        (eqx.nn.MLP(2, "scalar", 4, 1, key=jax.random.key(0)), "shape"),
        (eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0)), "2 columns"),
    ],
    ids=["nan", "infinite", "vector", "too short", "scalar", "width"],
)
def test_bad_networks_are_refused(network, message):
    recipe = kb.Neural(network)
    with pytest.raises(ValueError, match=message):
        recipe.fit(recipe.kernel, SMOOTH)


def test_a_network_represents_no_other_kernel():
    with pytest.raises(ValueError, match="its own kernel"):
        kb.Neural(np.sin).fit(kb.Gaussian(), SMOOTH)
    assert kb.Neural(np.sin).fit(kb.Neural(np.sin).kernel, SMOOTH).rank == 2


def test_recipes_that_bring_a_kernel_accept_no_other():
    assert isinstance(kernel_for(kb.OneHot(), None), kb.Delta)
    assert isinstance(kernel_for(kb.Neural(np.sin), None), kb.MappedKernel)
    assert kernel_for(None, None) is None
    assert kernel_for(kb.Exact(), kb.Linear()) == kb.Linear()
    with pytest.raises(ValueError, match="brings its own kernel"):
        kernel_for(kb.OneHot(), kb.Delta())


# ---------------------------------------------------------------------------------------------- all recipes

RECIPES = {
    "exact": (kb.Exact(), kb.Gaussian(1.5)),
    "exact dense": (kb.Exact(), kb.Laplace(1.0)),
    "cholesky": (kb.IncompleteCholesky(10), kb.Gaussian(1.5)),
    "subspace": (kb.Subspace(10), kb.Gaussian(1.5)),
    "fourier": (kb.RandomFourier(10), kb.Gaussian(1.5)),
    "network": (kb.Neural(np.sin), kb.Neural(np.sin).kernel),
}


@pytest.mark.parametrize("name", RECIPES)
def test_bad_points_are_refused(name):
    recipe, kernel = RECIPES[name]
    features = recipe.fit(kernel, SMOOTH, random_state=0)
    for bad in ([[np.nan, 1.0]], np.zeros((0, 2)), [["a", "b"]], np.zeros((2, 2, 2))):
        with pytest.raises(ValueError, match="X"):
            recipe.fit(kernel, bad)
        with pytest.raises(ValueError, match="X"):
            features.transform(bad)


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "network"])
def test_points_of_another_width_are_refused_not_broadcast(name):
    recipe, kernel = RECIPES[name]
    features = recipe.fit(kernel, SMOOTH, random_state=0)
    for width in (1, 3):
        with pytest.raises(ValueError, match=r"shape|size|columns"):
            features.transform(np.zeros((4, width)))


@pytest.mark.parametrize("name", RECIPES)
def test_coordinates_can_be_traced(name):
    """The same coordinates come out of a compiled function, in double precision."""
    recipe, kernel = RECIPES[name]
    recipe, kernel = (kb.Neural(jnp.sin), kb.Neural(jnp.sin).kernel) if name == "network" else (recipe, kernel)
    features = recipe.fit(kernel, SMOOTH, random_state=0)
    with jax.enable_x64(True):
        traced = np.asarray(jax.jit(lambda X: features._coordinates(X))(jnp.asarray(NEW)))
    assert traced == pytest.approx(features._coordinates(NEW), abs=1e-7)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kb.Subspace(0), "size"),
        (lambda: kb.Subspace(2.5), "size"),
        (lambda: kb.Subspace(10, method="foo"), "method"),
        (lambda: kb.Subspace(10, tol=-1.0), "tol"),
        (lambda: kb.IncompleteCholesky(-1), "rank"),
        (lambda: kb.IncompleteCholesky(0), "rank"),
        (lambda: kb.IncompleteCholesky(tol=0), "tol"),
        (lambda: kb.IncompleteCholesky(tol=np.nan), "tol"),
        (lambda: kb.Exact(tol=0), "tol"),
        (lambda: kb.RandomFourier(0), "size"),
        (lambda: kb.RandomFourier(1), "size"),
        (lambda: kb.RandomFourier("many"), "size"),
    ],
)
def test_bad_settings_are_refused_when_they_are_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()

"""Covariance operators against matrices of explicit features, NumPy's covariances, and known Mercer expansions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.polynomial.hermite import hermval

import kernelbayes as kb
from oracles.closed_forms import degree_two_monomials, gaussian_gram

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 2))
Y = np.column_stack([X[:, 0] ** 2, X[:, 1] - X[:, 0]]) + 0.3 * RNG.normal(size=(12, 2))
W = RNG.normal(0.2, 0.3, size=12)  # signed, and not of sum one
POLYNOMIAL, LINEAR = kb.Polynomial(2, offset=0.5, scale=2.0), kb.Linear()


def phi(X):
    return degree_two_monomials(X, offset=0.5, scale=2.0)


def matrix_of(X, Y, B):
    """The operator as a matrix: monomials of x by coordinates of y."""
    return sum(B[i, j] * np.outer(phi(X[i : i + 1])[0], Y[j]) for i in range(len(X)) for j in range(len(Y)))


def weighted(w):
    return np.diag(w)


def centred(w):
    return np.diag(w) - np.outer(w, w) / w.sum()


FORMS = {
    "uniform": (dict(), centred(np.full(12, 1 / 12))),
    "uncentred": (dict(centred=False), weighted(np.full(12, 1 / 12))),
    "signed": (dict(coefficients=W / W.sum()), centred(W / W.sum())),
    "unnormalised": (dict(coefficients=W), centred(W)),
    "unnormalised uncentred": (dict(coefficients=W, centred=False), weighted(W)),
}


def test_the_oracle_features_are_those_of_the_kernel():
    assert phi(X) @ phi(Y).T == pytest.approx((2.0 * X @ Y.T + 0.5) ** 2)


@pytest.fixture(params=FORMS)
def operator(request):
    settings, B = FORMS[request.param]
    return kb.CrossCovariance(X, Y, POLYNOMIAL, LINEAR, **settings), matrix_of(X, Y, B)


def test_norm_inner_and_distance_are_those_of_matrices(operator):
    c, C = operator
    other = kb.CrossCovariance(X[:5], Y[5:10], POLYNOMIAL, LINEAR)
    D = matrix_of(X[:5], Y[5:10], centred(np.full(5, 1 / 5)))
    assert c.norm() == pytest.approx(np.linalg.norm(C))
    assert c.inner(other) == pytest.approx((C * D).sum())
    assert other.inner(c) == pytest.approx((C * D).sum())
    assert c.distance(other) == pytest.approx(np.linalg.norm(C - D))
    assert c.distance(c) < 1e-6
    assert all(isinstance(number, float) for number in (c.norm(), c.inner(other), c.distance(other)))


def test_singular_values_are_those_of_the_matrix(operator):
    c, C = operator
    expected = np.linalg.svd(C, compute_uv=False)
    found = c.singular_values()
    assert found[:2] == pytest.approx(expected)
    assert found[2:] == pytest.approx(0.0, abs=1e-8)
    assert c.singular_values(1) == pytest.approx(expected[:1])
    assert found.dtype == np.float64


def test_a_full_matrix_of_coefficients():
    B = RNG.normal(size=(12, 7))
    c = kb.CrossCovariance(X, Y[:7], POLYNOMIAL, LINEAR, coefficients=B, centred=False)
    other_B = RNG.normal(size=(4, 5))
    other = kb.CrossCovariance(X[3:7], Y[6:11], POLYNOMIAL, LINEAR, coefficients=other_B, centred=False)
    C, D = matrix_of(X, Y[:7], B), matrix_of(X[3:7], Y[6:11], other_B)
    assert c.norm() == pytest.approx(np.linalg.norm(C))
    assert c.inner(other) == pytest.approx((C * D).sum())
    assert c.distance(other) == pytest.approx(np.linalg.norm(C - D))
    assert c.singular_values(2) == pytest.approx(np.linalg.svd(C, compute_uv=False))
    paired = kb.CrossCovariance(X, Y, POLYNOMIAL, LINEAR)
    assert c.inner(paired) == pytest.approx((C * matrix_of(X, Y, centred(np.full(12, 1 / 12)))).sum())
    assert c.expect(lambda x: x[:, 0], lambda y: y[:, 1]) == pytest.approx(X[:, 0] @ B @ Y[:7, 1])


def test_a_diagonal_matrix_of_coefficients_is_a_weighting():
    a = kb.CrossCovariance(X, Y, POLYNOMIAL, LINEAR, coefficients=W, centred=False)
    b = kb.CrossCovariance(X, Y, POLYNOMIAL, LINEAR, coefficients=np.diag(W), centred=False)
    assert a.distance(b) < 1e-6
    assert a.norm() == pytest.approx(b.norm())


def test_expectations_are_covariances():
    def f(x):
        return np.sin(x[:, 0])

    def g(y):
        return y[:, 1] ** 3

    c = kb.CrossCovariance(X, Y, kb.Gaussian(), kb.Gaussian())
    assert c.expect(f, g) == pytest.approx(np.cov(f(X), g(Y), bias=True)[0, 1])
    uncentred = kb.CrossCovariance(X, Y, kb.Gaussian(), kb.Gaussian(), centred=False)
    assert uncentred.expect(f, g) == pytest.approx(np.mean(f(X) * g(Y)))
    w = np.abs(W)
    c = kb.CrossCovariance(X, Y, kb.Gaussian(), kb.Gaussian(), coefficients=w / w.sum())
    assert c.expect(f, g) == pytest.approx(np.cov(f(X), g(Y), bias=True, aweights=w)[0, 1])
    assert isinstance(c.expect(f, g), float)


def test_constants_have_no_covariance_whatever_the_weights():
    c = kb.CrossCovariance(X, Y, kb.Gaussian(), kb.Gaussian(), coefficients=W)
    assert c.expect(lambda x: np.ones(len(x)), lambda y: y[:, 0]) == pytest.approx(0.0, abs=1e-14)
    assert c.apply(lambda y: np.ones(len(y))).norm() < 1e-7


def test_apply_gives_the_image_of_a_function(operator):
    c, C = operator
    v = np.array([0.7, -1.2])  # the function y -> v . y
    image = c.apply(lambda y: y @ v)
    points = RNG.normal(size=(5, 2))
    assert image(points) == pytest.approx(phi(points) @ C @ v)
    assert image.norm() == pytest.approx(np.linalg.norm(C @ v))


def test_linear_kernels_give_the_cross_covariance_matrix():
    c = kb.CrossCovariance(X + 3.0, Y, LINEAR, LINEAR)
    expected = np.linalg.svd(np.cov(X.T, Y.T, bias=True)[:2, 2:], compute_uv=False)
    assert c.singular_values(2) == pytest.approx(expected)
    assert c.norm() == pytest.approx(np.linalg.norm(expected))


def test_covariance_of_a_linear_kernel_is_that_of_numpy():
    Z = RNG.normal(size=(30, 3)) @ np.diag([2.0, 1.0, 0.3]) + 5.0
    values, vectors = np.linalg.eigh(np.cov(Z.T, bias=True))
    c = kb.Covariance(Z, LINEAR)
    assert c.eigenvalues(3) == pytest.approx(values[::-1])
    assert c.norm() == pytest.approx(np.linalg.norm(values))
    assert c.singular_values(3) == pytest.approx(values[::-1])
    principal = (Z - Z.mean(0)) @ vectors[:, ::-1] / np.sqrt(values[::-1])
    found = c.eigenfunctions(Z, 3)
    assert np.abs(found) == pytest.approx(np.abs(principal))
    assert found.T @ found / 30 == pytest.approx(np.eye(3), abs=1e-9)


def test_covariance_with_weights():
    w = np.abs(W)
    expected = np.linalg.eigvalsh(np.cov(X.T, bias=True, aweights=w))[::-1]
    assert kb.Covariance(X, LINEAR, weights=w / w.sum()).eigenvalues(2) == pytest.approx(expected)
    assert kb.Covariance(X, LINEAR, weights=w).eigenvalues(2) == pytest.approx(w.sum() * expected)


@pytest.mark.parametrize("weights", [None, np.abs(W)])
@pytest.mark.parametrize("is_centred", [True, False])
def test_eigenvalues_norm_and_singular_values_agree(weights, is_centred):
    c = kb.Covariance(X, kb.Gaussian(0.7), weights=weights, centred=is_centred)
    assert c.singular_values(5) == pytest.approx(c.eigenvalues(5))
    assert np.linalg.norm(c.eigenvalues()) == pytest.approx(c.norm())
    w = np.full(12, 1 / 12) if weights is None else weights
    B = centred(w) if is_centred else weighted(w)
    assert c.eigenvalues().sum() == pytest.approx(np.trace(B @ gaussian_gram(X, X, 0.7)))


@pytest.mark.parametrize("features", [None, kb.IncompleteCholesky(tol=1e-13), kb.Subspace(12)])
def test_spectra_through_any_features_are_those_of_the_gram_matrix(features):
    c = kb.Covariance(X, kb.Gaussian(0.7), features=features)
    H = np.eye(12) - 1 / 12
    expected = np.linalg.eigvalsh(H @ gaussian_gram(X, X, 0.7) @ H)[::-1] / 12
    assert c.eigenvalues()[:11] == pytest.approx(expected[:11], rel=1e-6)


def test_coarse_features_lose_no_more_than_their_error():
    """Projection lowers every eigenvalue, by no more than the trace that it loses (Weyl)."""
    Z = RNG.normal(size=(200, 1))
    recipe = kb.IncompleteCholesky(6)
    exact = kb.Covariance(Z, kb.Gaussian(1.0)).eigenvalues(6)
    coarse = kb.Covariance(Z, kb.Gaussian(1.0), features=recipe).eigenvalues()
    lost = exact - coarse
    assert len(coarse) == 6
    assert (lost > 0).all()
    assert lost.sum() < recipe.fit(kb.Gaussian(1.0), Z).error < 0.2


# ------------------------------------------------------------------------------------------- Mercer expansions


def up_to_sign(found, expected):
    return found * np.sign((found * expected).sum(0))


def test_brownian_motion_on_the_unit_interval():
    n, count = 500, 5
    grid = (np.arange(n) + 0.5) / n
    c = kb.Covariance(grid, kb.Brownian(), centred=False)
    m = np.arange(count) + 0.5
    assert c.eigenvalues(count) == pytest.approx(1 / (m * np.pi) ** 2, rel=1e-4)
    x = np.linspace(0.0, 1.0, 21)
    expected = math.sqrt(2) * np.sin(np.pi * x[:, None] * m)
    assert up_to_sign(c.eigenfunctions(x, count), expected) == pytest.approx(expected, abs=1e-3)


def hermite_system(x, sigma, tau, count):
    """Eigenvalues and eigenfunctions of the Gaussian kernel (sigma) under N(0, tau^2), normalised.

    Quadrature notes, equation 7, divided by the norm sqrt(sqrt(a/c) 2^m m!) that it leaves out.
    """
    a, b = 1 / (4 * tau**2), 1 / (2 * sigma**2)
    c = math.sqrt(a**2 + 2 * a * b)
    eta = [math.sqrt(2 * a / (a + b + c)) * (b / (a + b + c)) ** m for m in range(count)]
    functions = [
        np.exp(-(c - a) * x**2)
        * hermval(math.sqrt(2 * c) * x, np.eye(count)[m])
        / math.sqrt(math.sqrt(a / c) * 2**m * math.factorial(m))
        for m in range(count)
    ]
    return np.array(eta), np.stack(functions, axis=1)


@pytest.mark.parametrize(("sigma", "tau"), [(1.0, 1.0), (0.6, 1.4)])
def test_gaussian_kernel_under_a_normal(sigma, tau):
    nodes = tau * np.linspace(-9, 9, 301)  # evenly spread, with the density as weights: spectrally accurate
    weights = np.exp(-0.5 * (nodes / tau) ** 2)
    c = kb.Covariance(nodes, kb.Gaussian(sigma), weights=weights / weights.sum(), centred=False)
    x = np.linspace(-2.5, 2.5, 11)
    eta, functions = hermite_system(x, sigma, tau, 6)
    assert c.eigenvalues(6) == pytest.approx(eta, rel=1e-7)
    assert up_to_sign(c.eigenfunctions(x, 6), functions) == pytest.approx(functions, abs=1e-5)
    assert c.eigenvalues().sum() == pytest.approx(1.0)


def test_the_expansion_gives_the_kernel_back():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    c = kb.Covariance(nodes, kb.Gaussian(1.0), weights=weights / weights.sum(), centred=False)
    x = np.linspace(-1.5, 1.5, 7)
    e = c.eigenfunctions(x, 12)
    assert (e * c.eigenvalues(12)) @ e.T == pytest.approx(gaussian_gram(x[:, None], x[:, None], 1.0), abs=1e-4)


def test_a_sample_estimates_the_eigenvalues():
    sample = np.random.default_rng(0).normal(size=1500)
    found = kb.Covariance(sample, kb.Gaussian(1.0), centred=False).eigenvalues(3)
    assert found == pytest.approx(hermite_system(np.zeros(1), 1.0, 1.0, 3)[0], rel=0.1)


# --------------------------------------------------------------------------------------------- what is refused


def test_operators_on_other_spaces_are_refused():
    c = kb.CrossCovariance(X, Y, kb.Gaussian(1.0), kb.Gaussian(1.0))
    for other, message in (
        (kb.CrossCovariance(X, Y, kb.Gaussian(2.0), kb.Gaussian(1.0)), "different kernels"),
        (kb.CrossCovariance(X, Y, kb.Gaussian(1.0), kb.Laplace(1.0)), "different kernels"),
        (kb.CrossCovariance(X[:, :1], Y, kb.Gaussian(1.0), kb.Gaussian(1.0)), "widths"),
        (kb.MeanEmbedding(X), "expected a covariance operator"),
    ):
        for operation in (c.inner, c.distance):
            with pytest.raises(ValueError, match=message):
                operation(other)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(coefficients=np.ones((12, 12))), "centred=False"),
        (dict(coefficients=np.ones((12, 11)), centred=False), "shape"),
        (dict(coefficients=np.ones(11)), "coefficients"),
        (dict(coefficients=np.repeat([1.0, -1.0], 6)), "no mean to centre on"),
    ],
)
def test_bad_coefficients_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        kb.CrossCovariance(X, Y, LINEAR, LINEAR, **settings)


def test_bad_samples_are_refused():
    with pytest.raises(ValueError, match="paired"):
        kb.CrossCovariance(X, Y[:5], LINEAR, LINEAR)
    with pytest.raises(ValueError, match="one number per point"):
        kb.Covariance(X, LINEAR, weights=np.eye(12), centred=False)


def test_more_eigenfunctions_than_the_rank_are_refused():
    c = kb.Covariance(X, LINEAR)
    assert c.eigenfunctions(X, 2).shape == (12, 2)
    with pytest.raises(ValueError, match="rank 2"):
        c.eigenfunctions(X, 3)
    with pytest.raises(ValueError, match="rank 0"):
        kb.Covariance(np.ones(5), kb.Gaussian()).eigenfunctions([0.0])

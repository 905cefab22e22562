"""Factorisations against NumPy, LAPACK, and fits really done over again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelbayes as kb
from kernelbayes import _linalg
from kernelbayes._linalg import Dense, FactorisationError, LowRank


@pytest.fixture(autouse=True)
def _leaves_precision_flag_alone():
    before = jax.config.jax_enable_x64
    yield
    assert jax.config.jax_enable_x64 == before


def random_definite(n, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n + 3))
    return A @ A.T


def gaussian_gram(n, lengthscale=1.0, seed=0, d=3):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * lengthscale**2))


# -------------------------------------------------------------------------------------------------- Cholesky


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_cholesky_is_the_factor_without_jitter_where_none_is_needed(order, shift):
    A = np.array(random_definite(9), order=order)
    kept = A.copy()
    L = _linalg.cholesky(A, "A", shift)
    np.testing.assert_allclose(L, np.linalg.cholesky(A + shift * np.eye(9)), rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(L, np.tril(L))
    np.testing.assert_array_equal(A, kept)
    with jax.enable_x64(True):
        traced = jax.jit(lambda A, s: _linalg.cholesky(A, "A", s))(A, shift)
    np.testing.assert_allclose(traced, L, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_singular_matrices_get_the_least_jitter_that_works(scale):
    F = np.random.default_rng(0).normal(size=(12, 4))
    for A in (scale * np.ones((5, 5)), scale * F @ F.T, scale * gaussian_gram(60, lengthscale=20.0)):
        L = _linalg.cholesky(A, "A")
        added = L @ L.T - A
        mean = np.trace(A) / len(A)
        assert np.isfinite(L).all()
        assert np.abs(added).max() < 1e-12 * mean
        np.testing.assert_allclose(added - np.diag(np.diagonal(added)), 0.0, atol=1e-14 * mean)


def test_jitter_ends_at_one_in_a_hundred_million():
    Q = scipy.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    values = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    for smallest, fits in [(-0.8e-8, True), (-3e-8, False)]:
        values[-1] = smallest
        A = (Q * values) @ Q.T
        if fits:
            np.testing.assert_allclose(_linalg.cholesky(A, "A") @ _linalg.cholesky(A, "A").T, A, atol=2e-8)
        else:
            with pytest.raises(FactorisationError, match="not positive definite"):
                _linalg.cholesky(A, "A")


def test_an_indefinite_matrix_is_named_with_its_size_and_smallest_eigenvalue():
    A = np.diag([1.0, -0.25, 2.0])
    message = r"^the Gram matrix of Z \(3 x 3\) is not positive definite.*smallest eigenvalue is -0\.25"
    with pytest.raises(FactorisationError, match=message) as caught:
        _linalg.cholesky(A, "the Gram matrix of Z")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, np.linalg.LinAlgError)
    with pytest.raises(FactorisationError, match=r"smallest eigenvalue is -0\.15"):
        _linalg.cholesky(A, "A", 0.1)
    with pytest.raises(FactorisationError, match=r"^A \(2 x 2\)"):
        _linalg.cholesky(np.zeros((2, 2)), "A")


@pytest.mark.parametrize("where", [(0, 0), (2, 2), (0, 2), (1, 0)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_matrix_that_is_not_finite_is_named(where, value):
    A = random_definite(3)
    A[where] = A[where[::-1]] = value
    with pytest.raises(FactorisationError, match=r"^K \(3 x 3\) holds NaN or infinite values"):
        _linalg.cholesky(A, "K")
    with jax.enable_x64(True):
        assert not np.isfinite(_linalg.cholesky(jnp.asarray(A), "K")).all()


def test_a_matrix_of_no_rows_has_a_factor_of_no_rows():
    assert _linalg.cholesky(np.zeros((0, 0)), "K", 1.0).shape == (0, 0)


def test_solves_against_a_dense_solver():
    A, B = random_definite(8), np.random.default_rng(1).normal(size=(8, 3))
    L = _linalg.cholesky(A, "A")
    with jax.enable_x64(True):
        for b in (B, B[:, 0]):
            for run in (lambda f, *args: f(*args), lambda f, *args: jax.jit(f)(*args)):
                np.testing.assert_allclose(run(_linalg.solve, L, b), np.linalg.solve(A, b), rtol=1e-9)
                lower = run(_linalg.solve_lower, L, b)
                np.testing.assert_allclose(L @ lower, b, rtol=1e-10, atol=1e-12)
                upper = run(lambda L, b: _linalg.solve_lower(L, b, transposed=True), L, b)
                np.testing.assert_allclose(L.T @ upper, b, rtol=1e-10, atol=1e-12)


def test_derivative_through_a_solve():
    A, b = random_definite(5), np.arange(5.0)

    def quadratic(s):
        return b @ _linalg.solve(_linalg.cholesky(A, "A", s), b)

    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(quadratic))(0.3)
    inverse = np.linalg.inv(A + 0.3 * np.eye(5))
    np.testing.assert_allclose(slope, -b @ inverse @ inverse @ b, rtol=1e-10)


def test_eigenvalues_fall_and_are_not_negative():
    F = np.random.default_rng(0).normal(size=(9, 4))
    A = F @ F.T
    with jax.enable_x64(True):
        for values, vectors in (_linalg.eigh(A), jax.jit(_linalg.eigh)(A)):
            assert (np.diff(values) <= 0).all()
            assert (np.asarray(values) >= 0).all()
            np.testing.assert_allclose(values[:4], np.linalg.svd(F)[1] ** 2, rtol=1e-12)
            np.testing.assert_allclose((vectors * values) @ vectors.T, A, atol=1e-12)
            np.testing.assert_allclose(vectors.T @ vectors, np.eye(9), atol=1e-12)


def test_singular_values():
    A = np.random.default_rng(0).normal(size=(6, 3))
    np.testing.assert_allclose(_linalg.singular_values(A), np.linalg.svd(A)[1], rtol=1e-13)


@pytest.mark.parametrize("rank", [1, 7, 20])
def test_numerical_rank(rank):
    F = np.random.default_rng(0).normal(size=(20, rank))
    K = F @ F.T
    kept = K.copy()
    assert _linalg.numerical_rank(K, 1e-12) == rank
    np.testing.assert_array_equal(K, kept)


# ------------------------------------------------------------------------------------------ pivoted Cholesky


def pivoted(K, rank=None, tol=0.0):
    return _linalg.pivoted_cholesky(np.diagonal(K), lambda p: K[:, p], rank=rank or len(K), tol=tol)


@pytest.mark.parametrize("n", [1, 2, 40, 150])
def test_full_rank_reproduces_the_matrix(n):
    K = kb.Laplace(0.5).gram(np.random.default_rng(0).normal(size=(n, 3)))
    F, pivots, residual = pivoted(K)
    assert F.shape == (n, n)
    assert sorted(pivots) == list(range(n))
    np.testing.assert_allclose(F @ F.T, K, atol=1e-10)
    np.testing.assert_allclose(residual, 0.0, atol=1e-10)


@pytest.mark.parametrize("rank", [1, 5, 64, 65, 100])
def test_low_rank_is_triangular_and_exact_on_the_pivots(rank):
    K = 3.0 * kb.Laplace(0.5).gram(np.random.default_rng(0).normal(size=(120, 3)))
    F, pivots, residual = pivoted(K, rank)
    assert F.shape == (120, rank)
    assert len(set(pivots.tolist())) == rank
    np.testing.assert_array_equal(F[pivots], np.tril(F[pivots]))
    np.testing.assert_allclose(F @ F[pivots].T, K[:, pivots], atol=1e-12)
    np.testing.assert_allclose(residual, np.diagonal(K - F @ F.T), atol=1e-12)
    assert (residual >= 0).all()
    assert (residual[pivots] == 0).all()


def test_tolerance_stops_as_soon_as_it_is_met():
    K = 5.0 * gaussian_gram(80, lengthscale=4.0)
    for tol in (1e-1, 1e-3, 1e-5):
        F, _, residual = pivoted(K, tol=tol)
        assert F.shape[1] < 80
        assert residual.max() <= tol * 5.0
        assert pivoted(K, rank=F.shape[1] - 1).residual.max() > tol * 5.0


def test_columns_are_asked_for_once_each():
    K, asked = gaussian_gram(50), []
    found = _linalg.pivoted_cholesky(np.diagonal(K), lambda p: asked.append(p) or K[:, p], rank=12, tol=0.0)
    assert asked == found.pivots.tolist()
    assert len(asked) == 12


@pytest.mark.parametrize("tol", [0.0, 1e-12])
def test_duplicated_points_do_not_break_it(tol):
    base = gaussian_gram(10, lengthscale=0.5)
    twice = np.tile(np.arange(10), 3)
    K = base[np.ix_(twice, twice)]
    F, pivots, residual = pivoted(K, tol=tol)
    assert np.isfinite(F).all()
    np.testing.assert_allclose(F @ F.T, K, atol=1e-10)
    np.testing.assert_allclose(residual, 0.0, atol=1e-10)
    if tol:
        assert sorted(twice[pivots]) == list(range(10))


def test_a_zero_matrix_has_rank_zero():
    F, pivots, residual = pivoted(np.zeros((4, 4)), tol=1e-10)
    assert F.shape == (4, 0)
    assert pivots.shape == (0,)
    np.testing.assert_array_equal(residual, np.zeros(4))


def test_same_pivots_as_lapack():
    K = gaussian_gram(60)
    found = pivoted(K, rank=25)
    factor, order, _, _ = scipy.linalg.lapack.dpstrf(K, lower=1, tol=1e-13)
    np.testing.assert_array_equal(found.pivots, order[:25] - 1)
    np.testing.assert_allclose(found.factor[found.pivots], np.tril(factor)[:25, :25], atol=1e-10)


def test_the_diagonal_passed_in_is_kept():
    diagonal = np.ones(5)
    _linalg.pivoted_cholesky(diagonal, lambda p: np.eye(5)[p], rank=5, tol=0.0)
    np.testing.assert_array_equal(diagonal, np.ones(5))


@settings(derandomize=True, max_examples=25, deadline=None)
@given(n=st.integers(1, 12), r=st.integers(1, 12), seed=st.integers(0, 10_000))
def test_the_rank_of_a_product_is_found(n, r, seed):
    G = np.random.default_rng(seed).normal(size=(n, r))
    K = G @ G.T
    F, _, residual = pivoted(K, tol=1e-9)
    assert F.shape[1] <= min(n, r)
    np.testing.assert_allclose(F @ F.T, K, atol=1e-6 * np.trace(K))
    assert residual.max() <= 1e-9 * np.diagonal(K).max()


# ---------------------------------------------------------------------------------- two forms, one interface


class Sample:
    """Seven points and two new ones in a space of three features."""

    rng = np.random.default_rng(0)
    F, new = rng.normal(size=(7, 3)), rng.normal(size=(2, 3))
    K, k = F @ F.T, F @ new.T  # k has one column per new point
    Y = rng.normal(size=(7, 2))
    forms = ((LowRank(F), new), (Dense(K), k.T))


@pytest.mark.parametrize(("gram", "coordinates"), Sample.forms, ids=["low rank", "dense"])
def test_both_forms_give_the_same_weights_and_predictions(gram, coordinates):
    s = 0.3
    weights = np.linalg.solve(Sample.K + s * np.eye(7), Sample.k)
    core = gram.core() + s * np.eye(len(gram.core()))
    np.testing.assert_allclose(gram.scatter(coordinates @ np.linalg.inv(core)), weights.T, rtol=1e-9)
    fitted = np.linalg.solve(core, gram.gather(Sample.Y))
    np.testing.assert_allclose(coordinates @ fitted, weights.T @ Sample.Y, rtol=1e-9)
    for got, wanted in zip(gram.normal_equations(Sample.Y), (gram.core(), gram.gather(Sample.Y)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13)
    in_sample = gram.scatter(gram[0] @ np.linalg.inv(core))
    hat = np.linalg.solve(Sample.K + s * np.eye(7), Sample.K)
    np.testing.assert_allclose(in_sample, hat, rtol=1e-8, atol=1e-10)
    assert gram.size == 7


@pytest.mark.parametrize("gram", [form for form, _ in Sample.forms], ids=["low rank", "dense"])
@pytest.mark.parametrize("shift", [0.01, 1.0, 50.0])
def test_leave_one_out_is_refitting_without_each_point(gram, shift):
    wanted = np.empty_like(Sample.Y)
    for i in range(7):
        rest = [j for j in range(7) if j != i]
        weights = np.linalg.solve(Sample.K[np.ix_(rest, rest)] + shift * np.eye(6), Sample.K[rest, i])
        wanted[i] = Sample.Y[i] - weights @ Sample.Y[rest]
    np.testing.assert_allclose(_linalg.leave_one_out(gram, shift, Sample.Y), wanted, rtol=1e-8)
    np.testing.assert_allclose(_linalg.leave_one_out(gram, shift, Sample.Y[:, 0]), wanted[:, 0], rtol=1e-8)
    with jax.enable_x64(True):
        traced = jax.jit(lambda s: _linalg.leave_one_out(gram, s, Sample.Y))(shift)
    np.testing.assert_allclose(traced, wanted, rtol=1e-8)


@pytest.mark.parametrize("gram", [form for form, _ in Sample.forms], ids=["low rank", "dense"])
@pytest.mark.parametrize("labels", [[0, 1, 0, 2, 2, 2, 3], [0, 0, 0, 0, 1, 1, 1], [6, 5, 4, 3, 2, 1, 0]])
def test_leaving_groups_out_is_refitting_without_them(gram, labels):
    labels, wanted, shift = np.array(labels), np.empty_like(Sample.Y), 0.3
    for i in range(7):
        rest = np.flatnonzero(labels != labels[i])
        weights = np.linalg.solve(Sample.K[np.ix_(rest, rest)] + shift * np.eye(len(rest)), Sample.K[rest, i])
        wanted[i] = Sample.Y[i] - weights @ Sample.Y[rest]
    np.testing.assert_allclose(_linalg.leave_one_out(gram, shift, Sample.Y, labels), wanted, rtol=1e-8)
    found = _linalg.leave_one_out(gram, shift, Sample.Y[:, 0], labels)
    np.testing.assert_allclose(found, wanted[:, 0], rtol=1e-8)


def test_slopes_of_groups_left_out_against_differences():
    rng = np.random.default_rng(0)
    F, V, labels = rng.normal(size=(9, 3)), rng.normal(size=(9, 2)), np.array([0, 1, 2, 0, 1, 3, 3, 3, 4])

    def value(F, shift):
        return float((_linalg.leave_one_out(LowRank(F), shift, V, labels) ** 2).sum())

    found, by_F, by_shift = _linalg.leave_one_out_slopes(F, 0.7, V, labels)
    assert found == pytest.approx(value(F, 0.7), rel=1e-12)
    assert by_shift == pytest.approx((value(F, 0.7 + 1e-6) - value(F, 0.7 - 1e-6)) / 2e-6, rel=1e-6)
    for i, j in ((0, 0), (3, 1), (5, 2), (8, 0)):
        step = np.zeros_like(F)
        step[i, j] = 1e-6
        assert by_F[i, j] == pytest.approx((value(F + step, 0.7) - value(F - step, 0.7)) / 2e-6, rel=1e-5)


def test_equal_rows():
    assert _linalg.equal_rows(np.array([[1.0, 2.0], [1.0, 3.0], [2.0, 2.0]])) is None
    np.testing.assert_array_equal(_linalg.equal_rows(np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0]])), [1, 0, 1])


def test_leave_one_out_of_a_sample_that_the_kernel_does_not_see():
    nothing = LowRank(np.zeros((7, 0)))
    np.testing.assert_array_equal(_linalg.leave_one_out(nothing, 0.1, Sample.Y), Sample.Y)


def test_outer_products_give_the_weighted_core_of_every_row_of_weights():
    rng = np.random.default_rng(0)
    F, W = rng.normal(size=(9, 4)), rng.normal(size=(3, 9))
    found = _linalg.OuterProducts(F).weighted_cores(W)
    for core, w in zip(found, W, strict=True):
        np.testing.assert_allclose(core, F.T @ np.diag(w) @ F, atol=1e-12)
    assert _linalg.OuterProducts.size(F) == 9 * 10


def test_a_stack_of_systems_is_solved_one_by_one_and_a_singular_one_is_named():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(5, 3, 3)), rng.normal(size=(5, 3))
    found = _linalg.solve_stack(A, b, "the matrix")
    np.testing.assert_allclose(found, [np.linalg.inv(a) @ c for a, c in zip(A, b, strict=True)], atol=1e-10)
    A[2] = 0.0
    with pytest.raises(_linalg.FactorisationError, match="the matrix, one of 5, is singular"):
        _linalg.solve_stack(A, b, "the matrix")
    A[2] = np.nan
    with pytest.raises(_linalg.FactorisationError):
        _linalg.solve_stack(A, b, "the matrix")


def test_row_space_is_orthonormal_and_holds_every_row():
    M = np.random.default_rng(0).normal(size=(3, 8))
    Q = _linalg.row_space(M)
    np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(M @ Q @ Q.T, M, atol=1e-12)


def test_one_thread_is_a_context_that_ends():
    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with _linalg.one_thread():
        assert set(threads()) <= {1}
    assert threads() == before

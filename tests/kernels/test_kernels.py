"""Kernels against formulas written out pair by pair, scikit-learn, series and finite differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import binom, zeta
from sklearn.gaussian_process import kernels as sklearn_gp
from sklearn.metrics import pairwise

import kernelbayes as kb
from kernelbayes.kernels import _base

N, M, D = 11, 5, 3


@pytest.fixture(autouse=True)
def _leaves_precision_flag_alone():
    before = jax.config.jax_enable_x64
    yield
    assert jax.config.jax_enable_x64 == before


# ---------------------------------------------------------------------------------------- one pair at a time


def dot(x, y):
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def norm(x):
    return math.sqrt(dot(x, x))


def minus(x, y, scale=(1.0,) * 99):
    return [(a - b) / s for a, b, s in zip(x, y, scale, strict=False)]


def gaussian(x, y, lengthscale=(1.0,) * 99):
    return math.exp(-(norm(minus(x, y, lengthscale)) ** 2) / 2)


def laplace(x, y, lengthscale=(1.0,) * 99):
    return math.prod(math.exp(-abs(t)) for t in minus(x, y, lengthscale))


def matern(x, y, nu, lengthscale):
    t = math.sqrt(2 * nu) * norm(minus(x, y, lengthscale))
    return math.exp(-t) * {0.5: 1.0, 1.5: 1 + t, 2.5: 1 + t + t**2 / 3}[nu]


def binomial_series(x, y, alpha, terms=400):
    return math.fsum(binom(alpha + i - 1, i) * dot(x, y) ** i for i in range(terms))


def cosine_series(x, y, order, terms):
    m = np.arange(1.0, terms + 1)
    return math.prod(1.0 + float(np.sum(m ** (-2 * order) * np.cos(2 * np.pi * m * t))) for t in minus(x, y))


def brownian(x, y, hurst):
    return (norm(x) ** (2 * hurst) + norm(y) ** (2 * hurst) - norm(minus(x, y)) ** (2 * hurst)) / 2


def pyramid(x, y, levels, bins):
    """Equation 3 of Lazebnik, Schmid and Ponce, cell by cell."""
    side = 2**levels
    x, y = (np.reshape(v, (side, side, bins)) for v in (x, y))
    total = 0.0
    for level in range(levels + 1):
        step = side // 2**level
        intersection = 0.0
        for i, j, b in itertools.product(range(0, side, step), range(0, side, step), range(bins)):
            counts = [sum(v[i + p, j + q, b] for p in range(step) for q in range(step)) for v in (x, y)]
            intersection += min(counts)
        total += intersection / (2**levels if level == 0 else 2 ** (levels - level + 1))
    return total


def mmd_kernel(S, T, base, lengthscale):
    def inner(A, B):
        return math.fsum(base(a, b) for a in A for b in B) / (len(A) * len(B))

    return math.exp(-(inner(S, S) - 2 * inner(S, T) + inner(T, T)) / (2 * lengthscale**2))


# ----------------------------------------------------------------------------------------------------- cases


class Case(NamedTuple):
    kernel: kb.Kernel
    points: Callable[[np.random.Generator, int], Any]
    pair: Callable[[Any, Any], float]
    compiles: bool = True


class Angle(eqx.Module):
    """A network with one parameter and a formula short enough to write twice."""

    stretch: Any = eqx.field(default=1.3, converter=jnp.asarray)

    def __call__(self, x):
        return jnp.concatenate([jnp.cos(self.stretch * x), jnp.sin(self.stretch * x)])


def angle(x, stretch):
    return [math.cos(stretch * t) for t in x] + [math.sin(stretch * t) for t in x]


def numpy_angle(X):
    return np.hstack([np.cos(X), np.sin(X)])


def normal(rng, n):
    return rng.normal(size=(n, D))


def ball(rng, n):
    X = rng.normal(size=(n, D))
    return 0.9 * X / (1 + np.linalg.norm(X, axis=1, keepdims=True))


def unit(rng, n):
    return rng.uniform(size=(n, D))


def histograms(rng, n):
    return rng.poisson(2.0, size=(n, 16 * D)).astype(float)


def few_labels(rng, n):
    return rng.integers(3, size=n)


def words(rng, n):
    return rng.choice(["cat", "dog", "fox"], size=n).tolist()


def label_table(rng, n):
    return rng.integers(2, size=(n, 2))


def numbers_and_labels(rng, n):
    return np.column_stack([rng.normal(size=(n, 2)), rng.integers(2, size=n)])


def ragged_sets(rng, n):
    return [rng.normal(size=(int(size), 2)) for size in rng.integers(1, 6, size=n)]


def strings(rng, n):
    return ["".join(rng.choice(list("abcd"), size=3)) for _ in range(n)]


def rows_of_matrix(rng, n):
    return rng.integers(6, size=n)


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


ARD = (0.6, 1.1, 2.0)
FACTOR = np.random.default_rng(7).normal(size=(6, 6))
MATRIX = FACTOR @ FACTOR.T

CASES = {
    "gaussian": Case(kb.Gaussian(0.7), normal, lambda x, y: gaussian(x, y, (0.7,) * D)),
    "gaussian ard": Case(kb.Gaussian(ARD), normal, lambda x, y: gaussian(x, y, ARD)),
    "laplace": Case(kb.Laplace(0.7), normal, lambda x, y: laplace(x, y, (0.7,) * D)),
    "laplace ard": Case(kb.Laplace(ARD), normal, lambda x, y: laplace(x, y, ARD)),
    "matern 1/2": Case(kb.Matern(0.5, 0.7), normal, lambda x, y: matern(x, y, 0.5, (0.7,) * D)),
    "matern 3/2": Case(kb.Matern(1.5, ARD), normal, lambda x, y: matern(x, y, 1.5, ARD)),
    "matern 5/2": Case(kb.Matern(2.5, 0.7), normal, lambda x, y: matern(x, y, 2.5, (0.7,) * D)),
    "rational quadratic": Case(
        kb.RationalQuadratic(ARD, alpha=0.8),
        normal,
        lambda x, y: math.pow(1 + norm(minus(x, y, ARD)) ** 2 / 1.6, -0.8),
    ),
    "linear": Case(kb.Linear(0.4), normal, lambda x, y: dot(x, y) + 0.4),
    "polynomial": Case(kb.Polynomial(3, 0.5, 0.2), normal, lambda x, y: math.pow(0.2 * dot(x, y) + 0.5, 3)),
    "infinite polynomial": Case(kb.InfinitePolynomial(1.7), ball, lambda x, y: binomial_series(x, y, 1.7)),
    "sobolev 2": Case(kb.PeriodicSobolev(2), unit, lambda x, y: cosine_series(x, y, 2, 20_000)),
    "sobolev 3": Case(kb.PeriodicSobolev(3), unit, lambda x, y: cosine_series(x, y, 3, 500)),
    "sobolev 4": Case(kb.PeriodicSobolev(4), unit, lambda x, y: cosine_series(x, y, 4, 500)),
    "brownian": Case(kb.Brownian(0.3), normal, lambda x, y: brownian(x, y, 0.3)),
    "histogram": Case(kb.HistogramIntersection(), histograms, lambda x, y: sum(map(min, x, y))),
    "pyramid 0": Case(kb.SpatialPyramid(0), histograms, lambda x, y: pyramid(x, y, 0, 16 * D)),
    "pyramid 2": Case(kb.SpatialPyramid(2), histograms, lambda x, y: pyramid(x, y, 2, D)),
    "delta": Case(kb.Delta(), few_labels, lambda x, y: float(x == y), compiles=False),
    "delta text": Case(kb.Delta(), words, lambda x, y: float(x == y), compiles=False),
    "delta table": Case(kb.Delta(), label_table, lambda x, y: float(tuple(x) == tuple(y)), compiles=False),
    "sets": Case(
        kb.SetKernel(kb.Laplace(0.8), lengthscale=0.6),
        ragged_sets,
        lambda S, T: mmd_kernel(S, T, lambda a, b: laplace(a, b, (0.8, 0.8)), 0.6),
        compiles=False,
    ),
    "mapped": Case(
        kb.MappedKernel(numpy_angle, kb.Gaussian(0.7)),
        normal,
        lambda x, y: gaussian(angle(x, 1.0), angle(y, 1.0), (0.7,) * 2 * D),
        compiles=False,
    ),
    "network": Case(
        kb.MappedKernel(Angle(1.25), kb.Gaussian(0.7)),
        normal,
        lambda x, y: gaussian(angle(x, 1.25), angle(y, 1.25), (0.7,) * 2 * D),
    ),
    "function": Case(kb.FunctionKernel(shared_letters), strings, shared_letters, compiles=False),
    "precomputed": Case(
        kb.PrecomputedKernel(MATRIX), rows_of_matrix, lambda i, j: FACTOR[i] @ FACTOR[j], compiles=False
    ),
    "sum": Case(
        kb.Gaussian(0.7) + kb.Linear(0.1),
        normal,
        lambda x, y: gaussian(x, y, (0.7,) * D) + dot(x, y) + 0.1,
    ),
    "product": Case(
        kb.Laplace(0.7) * kb.Polynomial(2),
        normal,
        lambda x, y: laplace(x, y, (0.7,) * D) * (dot(x, y) + 1) ** 2,
    ),
    "scaled": Case(2.5 * kb.Matern(1.5, 0.7), normal, lambda x, y: 2.5 * matern(x, y, 1.5, (0.7,) * D)),
    "columns": Case(
        kb.Gaussian([0.5, 2.0]).on(2, 0) + 0.5 * kb.Laplace().on(1),
        normal,
        lambda x, y: gaussian([x[2], x[0]], [y[2], y[0]], (0.5, 2.0)) + 0.5 * laplace(x[1:2], y[1:2]),
    ),
    "columns with labels": Case(
        kb.Gaussian().on(0, 1) * kb.Delta().on(2),
        numbers_and_labels,
        lambda x, y: gaussian(x[:2], y[:2]) if x[2] == y[2] else 0.0,
        compiles=False,
    ),
}

every_kernel = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


def points_of(case: Case, n: int = N, seed: int = 0) -> Any:
    return case.points(np.random.default_rng(seed), n)


def table(case: Case, X: Any, Y: Any) -> np.ndarray:
    return np.array([[case.pair(x, y) for y in Y] for x in X])


@every_kernel
def test_gram_is_the_formula(case):
    X, Y = points_of(case), points_of(case, M, seed=1)
    np.testing.assert_allclose(case.kernel.gram(X, Y), table(case, X, Y), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(case.kernel.gram(X), table(case, X, X), rtol=1e-11, atol=1e-12)


@every_kernel
def test_gram_is_symmetric_positive_semidefinite_with_diagonal_diag(case):
    X = points_of(case, 20)
    K = case.kernel.gram(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-14 * K.max())
    np.testing.assert_allclose(case.kernel.diag(X), np.diagonal(K), rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-12 * np.trace(K)


@every_kernel
@pytest.mark.parametrize("x64", [False, True])
def test_results_are_writeable_float64_whatever_the_precision_flag(case, x64):
    X, Y = points_of(case, 4), points_of(case, M, seed=1)
    with jax.enable_x64(x64):
        results = case.kernel.gram(X), case.kernel.diag(X), case.kernel.matmul(X, Y, np.ones(M))
        assert jax.config.jax_enable_x64 == x64
    for result, shape in zip(results, [(4, 4), (4,), (4,)], strict=True):
        assert type(result) is np.ndarray
        assert result.dtype == np.float64
        assert result.flags.writeable
        assert result.shape == shape
    np.testing.assert_allclose(results[0], table(case, X, X), rtol=1e-11, atol=1e-12)


# ----------------------------------------------------------------------------------- other people's formulas


def test_gaussian_laplace_linear_polynomial_against_scikit_learn():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(8, 4)), rng.normal(size=(6, 4))
    for kernel, other in [
        (kb.Gaussian(1.3), pairwise.rbf_kernel(X, Y, gamma=1 / (2 * 1.3**2))),
        (kb.Laplace(1.3), pairwise.laplacian_kernel(X, Y, gamma=1 / 1.3)),
        (kb.Linear(), pairwise.linear_kernel(X, Y)),
        (kb.Polynomial(4, 0.3, 0.7), pairwise.polynomial_kernel(X, Y, degree=4, gamma=0.7, coef0=0.3)),
        (kb.RationalQuadratic(1.3, 0.6), sklearn_gp.RationalQuadratic(1.3, 0.6)(X, Y)),
    ]:
        np.testing.assert_allclose(kernel.gram(X, Y), other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("lengthscale", [0.8, [0.8, 1.5, 3.0]])
def test_matern_against_scikit_learn(nu, lengthscale):
    X = points_of(CASES["gaussian"])
    other = sklearn_gp.Matern(length_scale=lengthscale, nu=nu)(X)
    np.testing.assert_allclose(kb.Matern(nu, lengthscale).gram(X), other, rtol=1e-12)


def test_rational_quadratic_tends_to_gaussian():
    X = points_of(CASES["gaussian"])
    near = kb.RationalQuadratic(0.9, alpha=1e7).gram(X)
    np.testing.assert_allclose(near, kb.Gaussian(0.9).gram(X), atol=1e-6)


def test_sobolev_of_order_one_is_its_slowly_converging_series():
    x = np.linspace(0.04, 0.96, 9)
    series = [cosine_series([t], [0.0], 1, 200_000) for t in x]
    np.testing.assert_allclose(kb.PeriodicSobolev(1).gram(x, [0.0])[:, 0], series, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_sobolev_diagonal_is_one_plus_zeta(order):
    X = np.random.default_rng(0).uniform(size=(3, 2))
    np.testing.assert_allclose(kb.PeriodicSobolev(order).diag(X), (1 + zeta(2 * order)) ** 2, rtol=1e-13)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_sobolev_in_the_plane_is_a_product_and_periodic(order):
    k = kb.PeriodicSobolev(order)
    X, Y = np.random.default_rng(1).uniform(size=(2, 6, 2))
    product = k.gram(X[:, 0], Y[:, 0]) * k.gram(X[:, 1], Y[:, 1])
    np.testing.assert_allclose(k.gram(X, Y), product, rtol=1e-13)
    np.testing.assert_allclose(k.gram(X + np.array([2.0, -1.0]), Y), product, rtol=1e-12)


def test_brownian_special_cases():
    x, y = np.linspace(0, 2, 7), np.linspace(0.1, 3, 5)
    np.testing.assert_allclose(kb.Brownian(0.5).gram(x, y), np.minimum.outer(x, y), rtol=1e-14, atol=1e-15)
    X = points_of(CASES["gaussian"])
    np.testing.assert_allclose(kb.Brownian(1.0).gram(X), kb.Linear().gram(X), rtol=1e-12, atol=1e-13)
    assert kb.Brownian(0.7).gram([0.0], [0.0]) == 0.0


def test_polynomial_embeds_the_monomials():
    x, y = np.array([0.3, -1.2, 2.0]), np.array([1.5, 0.4])
    monomials = [np.stack([np.ones_like(v), np.sqrt(2) * v, v**2], axis=1) for v in (x, y)]
    np.testing.assert_allclose(kb.Polynomial(2).gram(x, y), monomials[0] @ monomials[1].T, rtol=1e-14)


def test_pyramid_takes_grids_or_their_flattening():
    grid = np.random.default_rng(0).uniform(size=(4, 4, 4, 3))
    k = kb.SpatialPyramid(2)
    np.testing.assert_array_equal(k.gram(grid), k.gram(grid.reshape(4, -1)))
    np.testing.assert_allclose(k.diag(grid), grid.sum((1, 2, 3)), rtol=1e-13)  # the weights sum to one


def test_set_kernel_takes_lists_stacks_and_sets_on_the_line():
    rng = np.random.default_rng(0)
    stack = rng.normal(size=(4, 6, 2))
    k = kb.SetKernel(lengthscale=0.4)
    np.testing.assert_array_equal(k.gram(stack), k.gram(list(stack)))
    line = [rng.normal(size=3), rng.normal(size=5)]
    np.testing.assert_array_equal(k.gram(line), k.gram([s[:, None] for s in line]))


def test_set_kernel_of_a_linear_base_compares_means():
    sets = points_of(CASES["sets"])
    means = np.array([s.mean(0) for s in sets])
    k = kb.SetKernel(kb.Linear(), lengthscale=0.9)
    np.testing.assert_allclose(k.gram(sets), kb.Gaussian(0.9).gram(means), rtol=1e-12)


def test_mapped_kernel_through_a_network_layer_by_layer():
    make = eqx.filter_jit(lambda key: eqx.nn.MLP(D, 2, width_size=7, depth=2, activation=jnp.tanh, key=key))
    network = make(jax.random.key(0))
    H = X = points_of(CASES["gaussian"])
    for i, layer in enumerate(network.layers):
        H = H @ np.asarray(layer.weight, dtype=float).T + np.asarray(layer.bias, dtype=float)
        H = np.tanh(H) if i < 2 else H
    K = kb.MappedKernel(network, kb.Gaussian(0.3)).gram(X)
    np.testing.assert_allclose(K, pairwise.rbf_kernel(H, gamma=1 / (2 * 0.3**2)), rtol=1e-12)


def test_mapped_kernel_keeps_double_precision_through_a_jax_function():
    X = points_of(CASES["gaussian"])
    through_jax = kb.MappedKernel(lambda X: jnp.hstack([jnp.cos(X), jnp.sin(X)]), kb.Gaussian(0.7))
    np.testing.assert_allclose(through_jax.gram(X), CASES["mapped"].kernel.gram(X), rtol=1e-13)


def test_function_kernel_sees_the_objects_themselves():
    X = [{"a": 1}, {"a": 1, "b": 2}, {}]
    np.testing.assert_array_equal(
        kb.FunctionKernel(lambda p, q: len(p.keys() & q.keys())).gram(X), [[1, 1, 0], [1, 2, 0], [0, 0, 0]]
    )


def test_function_kernel_is_called_once_per_pair_of_a_symmetric_gram():
    calls = []
    kb.FunctionKernel(lambda a, b: calls.append((a, b)) or 1.0).gram(list("abcd"))
    assert len(calls) == 10


def test_columns_of_numbers_beside_columns_of_text():
    k = kb.Gaussian().on(0) * kb.Delta().on(1) + kb.PrecomputedKernel(MATRIX).on(2)
    mixed = np.array([[0.5, "red", 0], [1.25, "red", 3], [0.5, "blue", 5]], dtype=object)
    expected = MATRIX[np.ix_([0, 3, 5], [0, 3, 5])] + [
        [1.0, math.exp(-0.28125), 0.0],
        [math.exp(-0.28125), 1.0, 0.0],
        [0.0, 0.0, 1.0],
    ]
    np.testing.assert_allclose(k.gram(mixed), expected, rtol=1e-14)
    np.testing.assert_allclose(k.gram(mixed.tolist()), expected, rtol=1e-14)
    np.testing.assert_allclose(k.diag(mixed), np.diagonal(expected), rtol=1e-14)


def test_precomputed_kernel_adds_to_kernels_of_the_row_number_in_either_order():
    K = kb.PrecomputedKernel(MATRIX)
    expected = MATRIX[[1, 4]] + np.outer([1, 4], range(6))
    np.testing.assert_allclose((K + kb.Linear()).gram([1, 4], range(6)), expected, rtol=1e-14)
    np.testing.assert_allclose((kb.Linear() + K).gram([1, 4], range(6)), expected, rtol=1e-14)


def test_arithmetic_makes_the_combinations():
    k, l = kb.Gaussian(), kb.Linear()
    X = points_of(CASES["gaussian"])
    for left, right in [(2.0 * k, k * 2.0), (np.float64(2.0) * k, k * 2), (k + l, l + k), (k * l, l * k)]:
        np.testing.assert_allclose(left.gram(X), right.gram(X), rtol=1e-15)
    for wrong in (1.0, "a", [1.0, 2.0]):
        with pytest.raises(TypeError):
            k + wrong


@pytest.mark.parametrize("kernel", [kb.Gaussian(0.3), kb.RationalQuadratic(0.3), kb.Laplace(0.3), kb.Matern(2.5, 0.3)])
@pytest.mark.parametrize("compiled", [False, True])
def test_large_common_offset_costs_no_digits(kernel, compiled, monkeypatch):
    X = np.random.default_rng(0).normal(size=(9, D))
    shifted = X + 1e6
    X = shifted - 1e6  # exact, so that the two samples differ by the offset and nothing else
    monkeypatch.setattr(_base, "_BLOCK_ELEMENTS", 36 if compiled else 2**20)
    monkeypatch.setattr(_base, "_COMPILE_ELEMENTS", 1)
    np.testing.assert_allclose(kernel.gram(shifted), kernel.gram(X), rtol=1e-12)


@pytest.mark.parametrize("kernel", [kb.Matern(0.5, 0.3), kb.Matern(1.5, 0.3), kb.Matern(2.5, ARD), kb.Laplace(0.7)])
@pytest.mark.parametrize("compiled", [False, True])
def test_kernels_with_a_kink_are_exactly_one_where_points_coincide(kernel, compiled, monkeypatch):
    X = 1e3 + np.random.default_rng(0).normal(size=(9, D))
    monkeypatch.setattr(_base, "_BLOCK_ELEMENTS", 36 if compiled else 2**20)
    monkeypatch.setattr(_base, "_COMPILE_ELEMENTS", 1)
    K = kernel.gram(np.vstack([X, X]))
    assert (np.diagonal(K) == 1.0).all()
    assert (np.diagonal(K[:9, 9:]) == 1.0).all()


@pytest.mark.parametrize(
    "kernel",
    [
        kb.Gaussian(0.5),
        kb.Matern(1.5),
        kb.Brownian(0.2),
        kb.PeriodicSobolev(1),
        kb.Polynomial(3),
        kb.Laplace([1, 2]),
    ],
    ids=lambda k: type(k).__name__,
)
@settings(derandomize=True, max_examples=20, deadline=None)
@given(data=st.data())
def test_any_points_give_a_positive_semidefinite_gram(kernel, data):
    n = data.draw(st.integers(1, 7))
    X = data.draw(arrays(np.float64, (n, 2), elements=st.floats(-4, 4, allow_subnormal=False)))
    K = kernel.gram(X)
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.diagonal(K), kernel.diag(X), rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() >= -1e-12 * max(1.0, np.trace(K))


# ----------------------------------------------------------------------------- the same numbers by every way


@every_kernel
@pytest.mark.parametrize("compile_from", [1, 2**60], ids=["compiled", "host"])
def test_blocks_give_the_same_numbers(case, compile_from, monkeypatch):
    X, Y = points_of(case), points_of(case, M, seed=1)
    V = np.random.default_rng(2).normal(size=(M, 2))
    whole = case.kernel.gram(X, Y)
    seen, compiled_gram = [], _base._compiled_gram
    monkeypatch.setattr(_base, "_BLOCK_ELEMENTS", 4 * M)  # blocks of 4, 4 and 3 rows
    monkeypatch.setattr(_base, "_COMPILE_ELEMENTS", compile_from)
    monkeypatch.setattr(_base, "_compiled_gram", lambda *args: seen.append(args) or compiled_gram(*args))
    blocked = case.kernel.gram(X, Y)
    blocks = [args for args in seen if type(args[0]) is type(case.kernel)]  # and not the base kernel of sets
    assert len(blocks) == (3 if case.compiles and compile_from == 1 else 0)
    np.testing.assert_allclose(blocked, whole, rtol=1e-12, atol=1e-14)
    assert blocked.flags.writeable
    for v in (V, V[:, 0]):
        np.testing.assert_allclose(case.kernel.matmul(X, Y, v), whole @ v, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "case", [c for c in CASES.values() if c.compiles], ids=[n for n, c in CASES.items() if c.compiles]
)
def test_jit_gives_the_same_numbers(case):
    X, Y = points_of(case), points_of(case, M, seed=1)
    with jax.enable_x64(True):
        K, diagonal = jax.jit(lambda X, Y: (case.kernel.gram(X, Y), case.kernel.diag(X)))(X, Y)
    np.testing.assert_allclose(K, case.kernel.gram(X, Y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(diagonal, case.kernel.diag(X), rtol=1e-12, atol=1e-14)


def test_products_may_be_traced_in_any_argument():
    k, X, V = kb.Gaussian(0.7), points_of(CASES["gaussian"]), np.random.default_rng(2).normal(size=(N, 2))
    with jax.enable_x64(True):
        both = jax.jit(lambda X, V: (k.gram(X) @ V, k.matmul(X, X, V)))(X, V)
        only_multiplier = jax.jit(lambda V: k.matmul(X, X, V))(V)
    for got in (*both, only_multiplier):
        np.testing.assert_allclose(got, k.matmul(X, X, V), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["delta", "delta table", "precomputed"])
def test_kernels_of_whole_numbers_can_be_traced(name):
    X = points_of(CASES[name])
    with jax.enable_x64(True):
        K, diagonal = jax.jit(lambda X: (CASES[name].kernel.gram(X), CASES[name].kernel.diag(X)))(X)
    np.testing.assert_array_equal(K, CASES[name].kernel.gram(X))
    np.testing.assert_array_equal(diagonal, CASES[name].kernel.diag(X))


def test_a_line_of_points_may_be_traced():
    x, k = np.linspace(0, 1, 4), kb.Gaussian(0.3)
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(lambda x: k.gram(x))(x), k.gram(x), rtol=1e-13)
        np.testing.assert_allclose(jax.jit(lambda x: k.diag(x))(x), k.diag(x), rtol=1e-13)
        np.testing.assert_allclose(jax.jit(lambda x: k.gram(x, [[0.5]]))(x), k.gram(x, [[0.5]]), rtol=1e-13)


def test_parameters_left_in_single_precision_by_an_optimiser_do_not_spread():
    X = points_of(CASES["gaussian"])
    stepped = jax.tree_util.tree_map(lambda p: jnp.asarray(p, dtype=jnp.float32), kb.Gaussian(0.5) + kb.Linear(0.25))
    expected = kb.Gaussian(0.5) + kb.Linear(0.25)  # both are exact in single precision
    assert isinstance(stepped.left.lengthscale, jax.Array)
    for got, wanted in [
        (stepped.gram(X), expected.gram(X)),
        (stepped.diag(X), expected.diag(X)),
        (stepped.matmul(X, X, X), expected.matmul(X, X, X)),
    ]:
        np.testing.assert_array_equal(got, wanted)
        assert got.flags.writeable


def test_parameters_given_as_jax_arrays_become_host_arrays():
    k = kb.Gaussian(jnp.asarray([0.5, 2.0]))
    assert type(k.lengthscale) is np.ndarray
    assert k.lengthscale.dtype == np.float64


# ------------------------------------------------------------------------------------------------- gradients


def finite_differences(f, kernel, h=1e-5):
    """Central differences of f, on the host, in every number among the kernel's parameters."""
    leaves, form = jax.tree_util.tree_flatten(kernel)
    slopes = []
    for i, leaf in enumerate(leaves):
        if not eqx.is_inexact_array_like(leaf):
            continue
        slope = np.zeros(np.shape(leaf))
        for where in np.ndindex(np.shape(leaf)):
            values = []
            for sign in (1, -1):
                moved = np.array(leaf, dtype=float)
                moved[where] += sign * h
                values.append(f(jax.tree_util.tree_unflatten(form, [*leaves[:i], moved, *leaves[i + 1 :]])))
            slope[where] = (values[0] - values[1]) / (2 * h)
        slopes.append(slope)
    return slopes


def weighted_sum(X, seed=5):
    n = len(X)
    W = np.random.default_rng(seed).normal(size=(n, n))
    v = np.random.default_rng(seed + 1).normal(size=n)
    return lambda k: (W * k.gram(X)).sum() + v @ k.diag(X)


@pytest.mark.parametrize(
    "name",
    [
        "gaussian ard",
        "laplace ard",
        "matern 3/2",
        "matern 5/2",
        "rational quadratic",
        "linear",
        "polynomial",
        "infinite polynomial",
        "brownian",
        "sets",
        "precomputed",
        "product",
        "columns",
    ],
)
def test_gradient_in_every_parameter(name):
    k, f = CASES[name].kernel, weighted_sum(points_of(CASES[name], 6))
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(f))(k)
    assert jax.tree_util.tree_structure(gradient) == jax.tree_util.tree_structure(k)
    slopes = finite_differences(f, k)
    assert slopes
    for got, wanted in zip(jax.tree_util.tree_leaves(gradient), slopes, strict=True):
        assert got.dtype == np.float64
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["mapped", "network"])
def test_gradient_through_a_map(name):
    k, f = CASES[name].kernel, weighted_sum(points_of(CASES[name], 6))
    with jax.enable_x64(True):
        gradient = eqx.filter_jit(eqx.filter_grad(f))(k)
        slopes = finite_differences(f, k)
    found = [leaf for leaf in jax.tree_util.tree_leaves(gradient) if leaf is not None]
    assert len(found) == len(slopes) == (2 if name == "network" else 1)
    for got, wanted in zip(found, slopes, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "kernel",
    [
        kb.Matern(0.5, 0.7),
        kb.Matern(1.5, ARD),
        kb.Laplace(ARD),
        kb.Brownian(0.3),
    ],
    ids=lambda k: type(k).__name__,
)
def test_gradients_are_finite_where_points_coincide(kernel):
    X = points_of(CASES["gaussian"], 4)
    X = np.vstack([X, X, np.zeros((2, D))])
    f = weighted_sum(X)
    with jax.enable_x64(True):
        both = jax.grad(lambda k, X: weighted_sum(X)(k), argnums=(0, 1))
        gradient, in_points = jax.jit(both)(kernel, X)
    (slope,) = finite_differences(f, kernel)
    np.testing.assert_allclose(jax.tree_util.tree_leaves(gradient)[0], slope, rtol=1e-6, atol=1e-8)
    assert np.isfinite(in_points).all()


@pytest.mark.parametrize("name", ["gaussian ard", "matern 3/2", "brownian", "sobolev 2"])
def test_gradient_in_the_points(name):
    k, X = CASES[name].kernel, points_of(CASES[name], 4)
    W = np.random.default_rng(5).normal(size=(4, 4))
    with jax.enable_x64(True):
        got = jax.jit(jax.grad(lambda X: (W * k.gram(X)).sum()))(X)
    wanted = np.zeros_like(X)
    for where in np.ndindex(X.shape):
        step = np.zeros_like(X)
        step[where] = 1e-5
        wanted[where] = (W * (k.gram(X + step) - k.gram(X - step))).sum() / 2e-5
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)

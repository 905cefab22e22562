"""What users get wrong: every mistake is a ValueError that names the argument."""

from __future__ import annotations

import re

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import kernelbayes as kb
from kernelbayes import _check

GOOD = np.random.default_rng(0).uniform(0.0, 0.5, size=(4, 2))
V = np.ones(4)


@pytest.fixture(autouse=True)
def _leaves_precision_flag_alone():
    before = jax.config.jax_enable_x64
    yield
    assert jax.config.jax_enable_x64 == before


# ---------------------------------------------------------------------------------------------------- points

BAD_POINTS = {
    "NaN": ([[0.1, np.nan]], r"contains NaN \(first at index \(0, 1\)\)"),
    "inf": ([[0.1, 0.2], [-np.inf, 0.2]], r"contains infinity \(first at index \(1, 0\)\)"),
    "None among numbers": ([[0.1, None]], "contains NaN"),
    "empty list": ([], "is empty"),
    "no rows": (np.zeros((0, 2)), "is empty"),
    "no columns": (np.zeros((3, 0)), "is empty"),
    "text": ([["a", "b"]], "holds text"),
    "ragged": ([[0.1, 0.2], [0.3]], "has rows of different lengths"),
    "3-d": (np.zeros((2, 2, 2)), r"1 or 2 dimensions .* got shape \(2, 2, 2\)"),
    "scalar": (0.5, "1 or 2 dimensions"),
    "nothing": (None, "1 or 2 dimensions"),
    "complex": (GOOD + 0.1j, "complex"),
    "sparse": (scipy.sparse.csr_array(GOOD), r"sparse matrix.*toarray\(\)"),
    "objects": ([[{}, {}]], "dtype object"),
    "huge integer": ([[10**400, 1]], "cannot be read as numbers"),
}

VECTOR_KERNELS = {
    "Gaussian": kb.Gaussian(),
    "Matern": kb.Matern(),
    "Linear": kb.Linear(),
    "InfinitePolynomial": kb.InfinitePolynomial(),
    "PeriodicSobolev": kb.PeriodicSobolev(),
    "Brownian": kb.Brownian(),
    "HistogramIntersection": kb.HistogramIntersection(),
    "MappedKernel": kb.MappedKernel(np.tanh, kb.Gaussian()),
    "Sum": kb.Gaussian() + kb.Linear(),
    "Scaled": 2.0 * kb.Laplace(),
}

vector_kernels = pytest.mark.parametrize("kernel", VECTOR_KERNELS.values(), ids=VECTOR_KERNELS.keys())


@vector_kernels
@pytest.mark.parametrize(("bad", "message"), BAD_POINTS.values(), ids=BAD_POINTS.keys())
def test_bad_points_are_named(kernel, bad, message):
    for call, name in [
        (lambda: kernel.gram(bad), "X"),
        (lambda: kernel.gram(bad, GOOD), "X"),
        (lambda: kernel.diag(bad), "X"),
        (lambda: kernel.matmul(bad, GOOD, V), "X"),
        (lambda: kernel.matmul(GOOD, bad, V), "Y"),
    ]:
        with pytest.raises(ValueError, match=rf"^{name}\b.*{message}"):
            call()
    if bad is not None:  # gram(X, None) means gram(X)
        with pytest.raises(ValueError, match=rf"^Y\b.*{message}"):
            kernel.gram(GOOD, bad)


@pytest.mark.parametrize(("bad", "message"), BAD_POINTS.values(), ids=BAD_POINTS.keys())
def test_bad_points_are_named_inside_a_gradient(bad, message):
    with pytest.raises(ValueError, match=rf"^X\b.*{message}"):
        jax.grad(lambda k: k.gram(bad).sum())(kb.Gaussian())
    with pytest.raises(ValueError, match=rf"^X\b.*{message}"):
        jax.grad(lambda k: k.diag(bad).sum())(kb.Gaussian())


@vector_kernels
def test_two_samples_of_different_width(kernel):
    with pytest.raises(ValueError, match=r"^X has .*2.* features per point but Y has .*3"):
        kernel.gram(GOOD, np.ones((4, 3)) * 0.1)
    with pytest.raises(ValueError, match=r"^X has .*2.* features per point but Y has .*1"):
        kernel.matmul(GOOD, GOOD[:, 0], V)
    with pytest.raises(ValueError, match=r"^X has .*2.* features per point but Y has .*1"):
        jax.jit(lambda X: kernel.gram(X, GOOD[:, 0]))(GOOD)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones(3), r"shape \(3,\) where 4 rows"),
        (np.ones((3, 2)), r"shape \(3, 2\) where 4 rows"),
        (np.ones((4, 2, 2)), r"shape \(4, 2, 2\) where 4 rows"),
        (1.0, r"shape \(\) where 4 rows"),
        ([1.0, np.nan, 0.0, 0.0], "contains NaN"),
        (["a"] * 4, "holds text"),
        ([1j] * 4, "complex"),
        ([[1.0], [2.0, 3.0], [1.0], [1.0]], "rows of different lengths"),
        (scipy.sparse.csr_array(np.eye(4)), "sparse"),
        (None, "V"),
    ],
    ids=str,
)
def test_bad_multiplier(bad, message):
    with pytest.raises(ValueError, match=rf"^V\b.*{message}" if message != "V" else "^V"):
        kb.Gaussian().matmul(GOOD, GOOD, bad)


def test_points_may_come_in_any_readable_form():
    k = kb.Gaussian(0.7)
    wanted = k.gram([[0.0, 1.0], [2.0, 3.0]])
    for X in (
        ((0, 1), (2, 3)),
        np.array([[0, 1], [2, 3]], dtype=np.int8),
        np.array([[0, 1], [2, 3]], dtype=object),
        np.asfortranarray([[0.0, 1.0], [2.0, 3.0]], dtype=np.float32),
        jnp.array([[0, 1], [2, 3]]),
    ):
        np.testing.assert_array_equal(k.gram(X), wanted)
    np.testing.assert_array_equal(k.gram([False, True]), k.gram([[0.0], [1.0]]))


def test_input_is_not_written_to():
    X = GOOD.copy()
    X.flags.writeable = False
    for kernel in VECTOR_KERNELS.values():
        kernel.gram(X)
        kernel.gram(X, X)
        kernel.diag(X)
        kernel.matmul(X, X, X)
    np.testing.assert_array_equal(X, GOOD)


def test_a_gram_matrix_too_large_for_the_machine_is_refused(monkeypatch):
    monkeypatch.setattr(_check.os, "sysconf", lambda _: 1024)  # one MiB of memory
    with pytest.raises(ValueError, match=r"Gram matrix of 1100 x 1000 would take .*kb\.Subspace"):
        kb.Gaussian().gram(np.zeros(1100), np.zeros(1000))


# ----------------------------------------------------------------------------------------------- each domain


def test_points_outside_the_unit_ball():
    k = kb.InfinitePolynomial()
    with pytest.raises(ValueError, match=r"^X must lie inside the unit ball.*1\b"):
        k.gram([[0.6, 0.8]])
    with pytest.raises(ValueError, match=r"^Y must lie inside the unit ball.*1\.5"):
        k.gram([0.5], [-1.5])
    with pytest.raises(ValueError, match=r"^X must lie inside the unit ball"):
        (k + kb.Linear()).diag([2.0])


@pytest.mark.parametrize("kernel", [kb.HistogramIntersection(), kb.SpatialPyramid(1)], ids=["flat", "pyramid"])
def test_negative_histograms(kernel):
    with pytest.raises(ValueError, match=r"^X must hold histograms; its smallest entry is -1"):
        kernel.gram([[0.0, 1.0, -1.0, 2.0]])
    with pytest.raises(ValueError, match=r"^Y must hold histograms"):
        kernel.gram(np.ones((1, 4)), -np.ones((1, 4)))


def test_grids_of_the_wrong_size():
    k = kb.SpatialPyramid(2)
    with pytest.raises(ValueError, match=r"^X has a grid of \(2, 2\) cells; levels=2 wants \(4, 4\)"):
        k.gram(np.ones((3, 2, 2, 5)))
    with pytest.raises(ValueError, match=r"^X has 15 columns, not a multiple of the 16 cells"):
        k.gram(np.ones((3, 15)))
    with pytest.raises(ValueError, match=r"^X has rows of different lengths"):
        k.gram([[1.0], [1.0, 2.0]])
    with pytest.raises(ValueError, match=r"^X is a sparse matrix"):
        k.gram(scipy.sparse.csr_array(np.ones((3, 16))))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "is empty"),
        ([0.0, np.nan], "contains NaN"),
        (["a", None], "missing"),
        (["a", float("nan")], "missing"),
        (np.array(["a", np.nan], dtype=object), "missing"),
        ([["a"], ["b", "c"]], "rows of different lengths"),
        ("cat", r"shape \(\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (scipy.sparse.csr_array(np.eye(2)), "sparse"),
    ],
    ids=str,
)
def test_bad_labels(bad, message):
    with pytest.raises(ValueError, match=rf"^X\b.*{message}"):
        kb.Delta().gram(bad)
    with pytest.raises(ValueError, match=rf"^Y\b.*{message}"):
        kb.Delta().gram(["a"], bad)


def test_labels_of_different_kinds_are_different():
    np.testing.assert_array_equal(kb.Delta().gram(["1", "a"], [1, 2]), np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"^X has \(2,\) features per point but Y has \(3,\)"):
        kb.Delta().gram(np.zeros((2, 2)), np.zeros((2, 3)))


@pytest.mark.parametrize("bad", [[-1], [3], [0.5], [1e300]], ids=str)
def test_rows_that_the_gram_matrix_does_not_have(bad):
    k = kb.PrecomputedKernel(np.eye(3))
    with pytest.raises(ValueError, match=r"^X must hold row numbers from 0 to 2"):
        k.gram(bad)
    with pytest.raises(ValueError, match=r"^Y must hold row numbers from 0 to 2"):
        k.gram([0], bad)
    with pytest.raises(ValueError, match=r"^X has 2 columns where 1 were expected"):
        k.diag([[0, 1]])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[1.0, 0.2], [0.3, 1.0]], "must be symmetric"),
        (np.ones((2, 3)), r"must be square, got shape \(2, 3\)"),
        ([[np.nan]], "contains NaN"),
        ([["a"]], "holds text"),
        ([], "is empty"),
        ([[1.0], [1.0, 2.0]], "has rows of different lengths"),
    ],
    ids=str,
)
def test_bad_precomputed_matrix(bad, message):
    with pytest.raises(ValueError, match=f"^matrix {message}"):
        kb.PrecomputedKernel(bad)


def test_bad_sets():
    k = kb.SetKernel()
    with pytest.raises(ValueError, match=r"^X\[1\] is empty"):
        k.gram([GOOD, np.zeros((0, 2))])
    with pytest.raises(ValueError, match=r"^Y\[0\] contains NaN"):
        k.gram([GOOD], [[[np.nan, 0.0]]])
    with pytest.raises(ValueError, match=r"sets in X have points of different widths"):
        k.gram([GOOD, GOOD[:, :1]])
    for kernel in (k, 2.0 * k, k + k):
        with pytest.raises(ValueError, match=r"sets in X have points of width .*2.* but those in Y .*1"):
            kernel.gram([GOOD], [GOOD[:, :1]])
    for bad in ([], 3.0, "abc", None):
        with pytest.raises(ValueError, match=r"^X "):
            k.gram(bad)


def test_bad_objects():
    k = kb.FunctionKernel(lambda a, b: float(len(a) * len(b)))
    for bad, message in [("kernel", "got str"), (3, "got int"), (None, "got NoneType"), ([], "is empty")]:
        with pytest.raises(ValueError, match=f"^X .*{message}"):
            k.gram(bad)
        with pytest.raises(ValueError, match=f"^X .*{message}"):
            k.diag(bad)
    with pytest.raises(ValueError, match=r"what the kernel function returns .* must be finite"):
        kb.FunctionKernel(lambda a, b: float("nan")).gram(["a", "b"])


def test_bad_columns():
    with pytest.raises(ValueError, match=r"^columns is empty"):
        kb.Gaussian().on()
    for bad in (-1, 0.0, "0", True):
        with pytest.raises(ValueError, match=r"^column must be"):
            kb.Gaussian().on(bad)
    k = kb.Gaussian().on(0, 2)
    with pytest.raises(ValueError, match=r"^X has shape \(4, 2\), but the kernel reads its columns \(0, 2\)"):
        k.gram(GOOD)
    with pytest.raises(ValueError, match=r"^X has shape \(4,\), but the kernel reads its columns"):
        k.gram(V)
    with pytest.raises(ValueError, match=r"^X contains NaN"):
        k.gram([[np.nan, 0.0, 0.0]])
    np.testing.assert_array_equal(k.gram([[0.0, np.nan, 0.0]]), [[1.0]])  # a column it does not read
    with pytest.raises(ValueError, match=r"^X has rows of different lengths"):
        k.gram([[0.0], [0.0, 1.0]])
    with pytest.raises(ValueError, match=r"^X is a sparse matrix"):
        k.gram(scipy.sparse.csr_array(np.eye(3)))


def test_bad_feature_maps():
    for function, message in [
        (lambda X: X[:, 0], r"feature map returned shape \(4,\) for 4 points"),
        (lambda X: X[:2], r"feature map returned shape \(2, 2\) for 4 points"),
        (lambda X: [1.0, 2.0], r"feature map returned shape \(2,\) for 4 points"),
        (lambda X: X * np.nan, r"^map\(X\) contains NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            kb.MappedKernel(function, kb.Gaussian()).gram(GOOD)
    with pytest.raises(ValueError, match=r"^map\(X\) has 2 columns but the kernel's lengthscale has 3"):
        kb.MappedKernel(np.tanh, kb.Gaussian([1.0, 2.0, 3.0])).gram(GOOD)
    with pytest.raises(ValueError, match=r"^map\(X\) must lie inside the unit ball"):
        kb.MappedKernel(lambda X: 10 * X, kb.InfinitePolynomial()).gram(GOOD)
    network = eqx.nn.Linear(3, 2, key=jax.random.key(0))
    with pytest.raises(ValueError, match=r"network does not take points with 2 columns"):
        kb.MappedKernel(network, kb.Gaussian()).gram(GOOD)


# ------------------------------------------------------------------------------------------------ parameters

BAD_PARAMETERS = {
    "zero lengthscale": (lambda: kb.Gaussian(0.0), "lengthscale must be positive, got 0"),
    "negative lengthscale": (lambda: kb.Laplace(-1.0), "lengthscale must be positive, got -1"),
    "one negative of several": (lambda: kb.Matern(1.5, [1.0, -2.0]), "lengthscale must be positive"),
    "NaN lengthscale": (lambda: kb.Gaussian(np.nan), "lengthscale must be finite, got nan"),
    "infinite lengthscale": (lambda: kb.Gaussian(np.inf), "lengthscale must be finite, got inf"),
    "one NaN of several": (lambda: kb.Gaussian([1.0, np.nan]), r"lengthscale contains NaN .*\(1,\)"),
    "no lengthscale": (lambda: kb.Gaussian(None), "lengthscale"),
    "empty lengthscale": (lambda: kb.Gaussian([]), "lengthscale must be a number or one per column"),
    "square lengthscale": (lambda: kb.Gaussian(np.eye(2)), r"lengthscale .*got shape \(2, 2\)"),
    "text lengthscale": (lambda: kb.Gaussian("median"), "lengthscale holds text"),
    "ragged lengthscale": (lambda: kb.Gaussian([[1.0], [1.0, 2.0]]), "lengthscale has rows"),
    "complex lengthscale": (lambda: kb.Gaussian(1j), "lengthscale holds complex"),
    "negative lengthscale from JAX": (lambda: kb.Gaussian(jnp.array(-1.0)), "lengthscale must be positive"),
    "set lengthscale": (lambda: kb.SetKernel(lengthscale=0.0), "lengthscale must be positive"),
    "several set lengthscales": (
        lambda: kb.SetKernel(lengthscale=[1.0, 2.0]),
        "lengthscale must be one number",
    ),
    "set base": (lambda: kb.SetKernel(0.5), "base must be a kernel, got 0.5"),
    "nu": (lambda: kb.Matern(2), "nu must be one of 0.5, 1.5, 2.5; got 2"),
    "nu text": (lambda: kb.Matern("1.5"), "nu must be one of"),
    "several nu": (lambda: kb.Matern(np.array([0.5, 1.5])), "nu must be one of"),
    "rational quadratic alpha": (lambda: kb.RationalQuadratic(alpha=0.0), "alpha must be positive"),
    "several alpha": (lambda: kb.RationalQuadratic(alpha=[1.0, 2.0]), "alpha must be one number"),
    "infinite polynomial alpha": (lambda: kb.InfinitePolynomial(-1.0), "alpha must be positive"),
    "order 9": (lambda: kb.PeriodicSobolev(9), "order must be one of 1, 2, 3, 4; got 9"),
    "order 0": (lambda: kb.PeriodicSobolev(0), "order must be at least 1"),
    "order 1.0": (lambda: kb.PeriodicSobolev(1.0), "order must be a whole number"),
    "hurst above one": (lambda: kb.Brownian(1.5), r"hurst must lie in \(0, 1\], got 1.5"),
    "hurst zero": (lambda: kb.Brownian(0.0), r"hurst must lie in \(0, 1\]"),
    "degree 0": (lambda: kb.Polynomial(0), "degree must be at least 1, got 0"),
    "degree 2.5": (lambda: kb.Polynomial(2.5), "degree must be a whole number"),
    "negative offset": (lambda: kb.Linear(-0.1), "offset must not be negative"),
    "several offsets": (lambda: kb.Linear([1.0, 2.0]), "offset must be one number"),
    "polynomial scale": (lambda: kb.Polynomial(2, 1.0, 0.0), "scale must be positive"),
    "levels": (lambda: kb.SpatialPyramid(-1), "levels must be at least 0"),
    "negative multiple": (lambda: -2.0 * kb.Gaussian(), "scale must be positive, got -2"),
    "zero multiple": (lambda: kb.Gaussian() * 0, "scale must be positive"),
    "text multiple": (lambda: "a" * kb.Gaussian(), "scale holds text"),
}


@pytest.mark.parametrize(("make", "message"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS.keys())
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make()


@pytest.mark.parametrize("make", [kb.Gaussian, kb.Laplace, kb.RationalQuadratic, lambda l: kb.Matern(1.5, l)])
def test_lengthscales_that_do_not_fit_the_columns(make):
    kernel = make([1.0, 2.0, 3.0])
    message = r"has 2 columns but the kernel's lengthscale has 3 entries"
    for call in (
        lambda: kernel.gram(GOOD),
        lambda: kernel.diag(GOOD),
        lambda: kernel.matmul(GOOD, GOOD, V),
        lambda: (2.0 * kernel + kb.Linear()).gram(GOOD),
        lambda: kernel.on(0, 1).gram(GOOD),
        lambda: jax.jit(lambda X: kernel.gram(X))(GOOD),
    ):
        with pytest.raises(ValueError, match=re.compile(f"^X {message}")):
            call()


def test_parameters_are_found_by_name():
    assert kb.RationalQuadratic(2.0, alpha=3.0).alpha == 3.0
    assert kb.Matern(lengthscale=2.0).nu == 1.5
    assert kb.Brownian(1.0).hurst == 1.0
    assert kb.Linear(0.0).offset == 0.0
    with pytest.raises(AttributeError):
        kb.Gaussian().lengthscale = 3.0  # kernels are immutable

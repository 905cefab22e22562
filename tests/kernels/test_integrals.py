"""Closed-form integrals of kernels against numerical integration that knows nothing of the formulas.

The reference sums the kernel itself over the nodes of the double-exponential rule on panels between kinks,
which takes singular end points in its stride.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from kernelbayes.kernels import (
    Brownian,
    Delta,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    PeriodicSobolev,
    Polynomial,
    RationalQuadratic,
)
from kernelbayes.kernels._distributions import Column, Independent, Mixture, NoClosedFormError, Normal, as_distribution
from kernelbayes.kernels._integrals import double_integral, mean_integral

# ---------------------------------------------------------------------------------------------- the reference


_U = np.arange(-22, 23) * 0.14
_V = 0.5 * np.pi * np.sinh(_U)
NODES, WEIGHTS = np.tanh(_V), 0.14 * 0.5 * np.pi * np.cosh(_U) / np.cosh(_V) ** 2


def rule(distribution, cuts=()):
    """Nodes and weights for expectations, on the line, of a function with kinks at the cuts."""
    low, high = map(float, distribution.support())
    density = lambda x: 1.0 / (high - low)  # noqa: E731
    if not np.isfinite(low):
        centre, sd = distribution.mean(), distribution.std()
        low, high = centre - 9.0 * sd, centre + 9.0 * sd
        cuts = [*cuts, *(centre + sd * np.array([-4.0, -1.5, 1.5, 4.0]))]
        density = lambda x: np.exp(-0.5 * ((x - centre) / sd) ** 2) / (sd * np.sqrt(2.0 * np.pi))  # noqa: E731
    edges = np.array(sorted({low, high, *(float(c) for c in cuts if low < c < high)}))
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    nodes = (middle[:, None] + half[:, None] * NODES).ravel()
    return nodes, (half[:, None] * WEIGHTS).ravel() * density(nodes)


def kinks(kernel, points):
    """Where the kernel at these points, or its mean over a box that ends there, is not smooth."""
    if isinstance(kernel, PeriodicSobolev):
        return [p + k for p in points for k in range(-12, 13)]
    return [0.0, *points]


def reference_mean(kernel, distribution, x):
    reach = getattr(kernel, "lengthscale", 1.0) * np.array([-5.0, -2.0, 2.0, 5.0])
    nodes, weights = rule(distribution, [*kinks(kernel, [x]), *(x + reach)])
    return (kernel._gram(np.array([[x]]), nodes[:, None]) @ weights).item()


def reference_double(kernel, P, Q):
    ends = [e for e in Q.support() if np.isfinite(e)] or Q.mean() + Q.std() * np.array([-4.0, 0.0, 4.0])
    nodes, weights = rule(P, kinks(kernel, ends))
    return sum(w * reference_mean(kernel, Q, x) for x, w in zip(nodes, weights, strict=True) if w > 1e-14)


def grid(*rules):
    """The tensor product of rules on the line."""
    nodes = np.stack([m.ravel() for m in np.meshgrid(*(r[0] for r in rules), indexing="ij")], axis=1)
    return nodes, np.prod(np.meshgrid(*(r[1] for r in rules), indexing="ij"), axis=0).ravel()


def normal_grid(mean, cov, order=36):
    """Gauss-Hermite nodes and weights for a normal in two dimensions."""
    z, w = np.polynomial.hermite_e.hermegauss(order)
    nodes, weights = grid((z, w / w.sum()), (z, w / w.sum()))
    return mean + nodes @ np.linalg.cholesky(cov).T, weights


def column(x):
    return np.asarray(x, dtype=float).reshape(-1, 1)


# ------------------------------------------------------------------------------------------------ on the line

NORMALS = [stats.norm(0.3, 0.7), stats.norm(-1.0, 0.05), stats.norm(0.0, 4.0)]
UNIFORMS = [stats.uniform(0, 1), stats.uniform(-2.0, 5.0), stats.uniform(0.4, 0.01), stats.uniform(-0.3, 0.9)]
NOISY = [Gaussian(0.8), Gaussian(3.0), Laplace(0.5), Laplace(2.5), Matern(0.5, 0.7)]
PLAIN = [
    Matern(1.5, 0.6),
    Matern(2.5, 1.7),
    Brownian(0.5),
    Brownian(0.2),
    Brownian(0.85),
    Brownian(1.0),
    *(PeriodicSobolev(order) for order in (1, 2, 3, 4)),
]
POLYNOMIALS = [Linear(0.7), Polynomial(1, offset=0.3, scale=0.5), Polynomial(2, offset=0.4, scale=0.3)]
X = np.array([-3.1, -0.2, 0.0, 0.404, 0.5, 1.0, 1.3, 6.0])


def named(case):
    if isinstance(case, tuple):
        return "-".join(map(named, case))
    if hasattr(case, "dist"):
        return f"{case.dist.name}{case.args}"
    parameters = [v for v in vars(case).values() if np.size(v) == 1] if hasattr(case, "__dict__") else []
    return f"{type(case).__name__}{[float(v) for v in parameters]}".replace(" ", "")


PAIRS = [
    *itertools.product(NOISY + POLYNOMIALS, NORMALS + UNIFORMS),
    *itertools.product(PLAIN, UNIFORMS),
    *itertools.product(PLAIN[:2], NORMALS),
]


@pytest.mark.parametrize(("kernel", "distribution"), PAIRS, ids=named)
def test_mean_on_the_line(kernel, distribution):
    expected = [reference_mean(kernel, distribution, x) for x in X]
    np.testing.assert_allclose(mean_integral(kernel, distribution, column(X)), expected, rtol=1e-10, atol=1e-11)


N, U = NORMALS, UNIFORMS
DOUBLES = [
    *itertools.product([NOISY[0], NOISY[2], POLYNOMIALS[2]], [(N[0], N[1]), (U[0], N[0]), (U[1], N[1])]),
    *itertools.product(PLAIN[:2], [(N[0], N[1])]),
    *itertools.product([NOISY[0], *PLAIN[:7], POLYNOMIALS[2]], [(U[0], U[1]), (U[0], U[2]), (U[3], U[3])]),
]


@pytest.mark.parametrize(("kernel", "pair"), DOUBLES, ids=named)
def test_double_on_the_line(kernel, pair):
    P, Q = pair
    expected = reference_double(kernel, P, Q)
    assert double_integral(kernel, P, Q) == pytest.approx(expected, rel=1e-10, abs=1e-11)
    assert double_integral(kernel, Q, P) == pytest.approx(expected, rel=1e-10, abs=1e-11)


@pytest.mark.parametrize("kernel", [*NOISY, *PLAIN], ids=named)
@pytest.mark.parametrize("width", [0.3, 0.9, 1.1, 4.0])
def test_boxes_apart_overlapping_and_nested(kernel, width):
    P = stats.uniform(-0.5, width)
    for low in (-0.5, 0.2, -0.5 + width, 9.0, -0.4):
        Q = stats.uniform(low, 0.7)
        mean = lambda x, Q=Q: mean_integral(kernel, Q, column(x))  # noqa: E731
        nodes, weights = rule(P, kinks(kernel, Q.support()))
        assert double_integral(kernel, P, Q) == pytest.approx(mean(nodes) @ weights, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("hurst", [0.2, 0.5, 0.9, 1.0])
def test_brownian_on_the_unit_interval(hurst):
    p, x = 2.0 * hurst, np.linspace(0.0, 1.0, 7)
    unit = stats.uniform(0, 1)
    expected = 0.5 * (x**p + (1.0 - x ** (p + 1.0) - (1.0 - x) ** (p + 1.0)) / (p + 1.0))
    np.testing.assert_allclose(mean_integral(Brownian(hurst), unit, column(x)), expected, atol=1e-14)
    assert double_integral(Brownian(hurst), unit, unit) == pytest.approx(1.0 / (p + 2.0), abs=1e-14)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_sobolev_over_whole_periods_is_one(order):
    unit = stats.uniform(0, 1)
    other = Mixture([stats.norm(0.3, 0.2), stats.uniform(0.1, 0.5)])
    kernel = PeriodicSobolev(order)
    np.testing.assert_allclose(mean_integral(kernel, unit, column(X)), 1.0, atol=1e-14)
    np.testing.assert_allclose(mean_integral(kernel, stats.uniform(0.3, 2), column(X)), 1.0, atol=1e-14)
    assert double_integral(kernel, unit, other) == pytest.approx(1.0, abs=1e-14)
    assert double_integral(kernel, unit, unit) == pytest.approx(1.0, abs=1e-14)


# ------------------------------------------------------------------------------------------ in two dimensions

X2 = np.array([[0.0, 0.0], [0.4, -1.2], [-1.5, 2.0], [3.0, 0.5]])
MEAN, COV = np.array([0.3, -0.5]), np.array([[0.8, -0.35], [-0.35, 0.4]])
FULL = stats.multivariate_normal(MEAN, COV)
MIXED = [stats.norm(0.2, 0.6), stats.uniform(-1.0, 2.5)]


@pytest.mark.parametrize("lengthscale", [1.3, [1.1, 2.4]])
def test_gaussian_kernel_and_full_covariance(lengthscale):
    kernel = Gaussian(lengthscale)
    nodes, weights = normal_grid(MEAN, COV)
    np.testing.assert_allclose(mean_integral(kernel, FULL, X2), kernel.gram(X2, nodes) @ weights, atol=1e-11)
    other_cov = np.array([[0.3, 0.2], [0.2, 0.9]])
    others, other_weights = normal_grid(-MEAN, other_cov)
    expected = weights @ kernel.gram(nodes, others) @ other_weights
    other = stats.multivariate_normal(-MEAN, other_cov)
    assert double_integral(kernel, FULL, other) == pytest.approx(expected, abs=1e-9)


def test_full_covariance_meets_independent_normal_columns():
    kernel = Gaussian([0.7, 1.9])
    columns = [stats.norm(0.2, 0.6), stats.norm(-0.4, 1.1)]
    joint = stats.multivariate_normal([0.2, -0.4], np.diag([0.36, 1.21]))
    tilted = stats.multivariate_normal([0.2, -0.4], [[0.36, 1e-13], [1e-13, 1.21]])
    np.testing.assert_allclose(mean_integral(kernel, columns, X2), mean_integral(kernel, tilted, X2), atol=1e-12)
    for same in (joint, tilted):
        assert double_integral(kernel, FULL, columns) == pytest.approx(double_integral(kernel, FULL, same), 1e-12)


@pytest.mark.parametrize("lengthscale", [0.9, [0.6, 1.8]])
@pytest.mark.parametrize("family", [Gaussian, Laplace])
def test_mixed_columns(family, lengthscale):
    kernel = family(lengthscale)
    for x in X2:
        nodes, weights = grid(*(rule(part, [x_j]) for part, x_j in zip(MIXED, x, strict=True)))
        expected = kernel.gram(x[None], nodes) @ weights
        np.testing.assert_allclose(mean_integral(kernel, MIXED, x[None]), expected, atol=1e-11)


@pytest.mark.parametrize("family", [Gaussian, Laplace])
def test_double_of_mixed_columns_is_the_product_over_columns(family):
    others = [stats.uniform(0.0, 1.0), stats.norm(0.7, 0.5)]
    lengthscales = [0.6, 1.8]
    expected = np.prod([reference_double(family(l), p, q) for l, p, q in zip(lengthscales, MIXED, others, strict=True)])
    assert double_integral(family(lengthscales), MIXED, others) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("order", [1, 3])
def test_sobolev_in_two_dimensions(order):
    kernel = PeriodicSobolev(order)
    box = [stats.uniform(0.1, 0.6), stats.uniform(-0.3, 1.7)]
    x = np.array([0.25, 0.9])
    nodes, weights = grid(*(rule(part, kinks(kernel, [x_j])) for part, x_j in zip(box, x, strict=True)))
    np.testing.assert_allclose(mean_integral(kernel, box, x[None]), kernel.gram(x[None], nodes) @ weights, atol=1e-11)
    np.testing.assert_allclose(mean_integral(kernel, [stats.uniform(0, 1)] * 3, np.ones((2, 3))), 1.0, atol=1e-14)


@pytest.mark.parametrize("kernel", POLYNOMIALS, ids=named)
def test_inner_product_kernels_in_two_dimensions(kernel):
    nodes, weights = normal_grid(MEAN, COV, order=6)
    others, other_weights = grid(*(rule(part) for part in MIXED))
    np.testing.assert_allclose(mean_integral(kernel, FULL, X2), kernel.gram(X2, nodes) @ weights, atol=1e-11)
    np.testing.assert_allclose(mean_integral(kernel, MIXED, X2), kernel.gram(X2, others) @ other_weights, atol=1e-11)
    expected = weights @ kernel.gram(nodes, others) @ other_weights
    assert double_integral(kernel, FULL, MIXED) == pytest.approx(expected, abs=1e-11)


# --------------------------------------------------------------------------------- combinations of both sides


def test_mixtures_are_linear_in_their_components():
    kernel = Laplace(0.8)
    parts = [stats.norm(-1.0, 0.5), stats.uniform(0.0, 2.0), stats.norm(3.0, 0.1)]
    weights = np.array([0.2, 0.5, 0.3])
    mixture = Mixture([parts[0], Mixture(parts[1:], [0.625, 0.375])], [0.2, 0.8])
    expected = weights @ [[reference_mean(kernel, p, x) for x in X] for p in parts]
    np.testing.assert_allclose(mean_integral(kernel, mixture, column(X)), expected, atol=1e-11)
    table = [[reference_double(kernel, p, q) for q in parts] for p in parts]
    assert double_integral(kernel, mixture, mixture) == pytest.approx(weights @ table @ weights, abs=1e-11)
    assert double_integral(kernel, parts[1], mixture) == pytest.approx(table[1] @ weights, abs=1e-11)


def test_mixture_of_normals_in_two_dimensions():
    kernel = Gaussian([1.1, 1.4])
    mixture = Mixture([FULL, MIXED], [0.3, 0.7])
    nodes, weights = normal_grid(MEAN, COV)
    others, other_weights = grid(*(rule(part) for part in MIXED))
    expected = 0.3 * kernel.gram(X2, nodes) @ weights + 0.7 * kernel.gram(X2, others) @ other_weights
    np.testing.assert_allclose(mean_integral(kernel, mixture, X2), expected, atol=1e-11)


def test_sums_and_scales():
    kernel = 2.0 * Gaussian(0.5) + 0.3 * (Linear(1.0) + Laplace(2.0))
    for distribution in (NORMALS[0], UNIFORMS[1]):
        expected = [reference_mean(kernel, distribution, x) for x in X]
        np.testing.assert_allclose(mean_integral(kernel, distribution, column(X)), expected, atol=1e-11)
    expected = reference_double(kernel, NORMALS[0], UNIFORMS[1])
    assert double_integral(kernel, NORMALS[0], UNIFORMS[1]) == pytest.approx(expected, abs=1e-11)


# ----------------------------------------------------------------------------------------------------- limits

STATIONARY = [*NOISY, Matern(1.5, 0.6), Matern(2.5, 1.7)]


@pytest.mark.parametrize("kernel", [*NOISY, *POLYNOMIALS], ids=named)
@pytest.mark.parametrize("sd", [1e-9, 1e-40, 1e-160])
def test_narrow_normal_is_a_point(kernel, sd):
    narrow = stats.norm(0.5, sd)
    expected = kernel.gram(X, [0.5])[:, 0]
    np.testing.assert_allclose(mean_integral(kernel, narrow, column(X)), expected, rtol=1e-8)
    assert double_integral(kernel, narrow, narrow) == pytest.approx(float(kernel.gram([0.5])[0, 0]), rel=1e-8)
    across = mean_integral(kernel, UNIFORMS[0], column([0.5]))[0]
    assert double_integral(kernel, narrow, UNIFORMS[0]) == pytest.approx(across, rel=1e-8)


@pytest.mark.parametrize("kernel", [*NOISY, *PLAIN, *POLYNOMIALS], ids=named)
@pytest.mark.parametrize("width", [1e-9, 1e-13, 1e-310])
def test_narrow_box_is_a_point(kernel, width):
    here, there = Independent((Column(0.5, half=width),)), Independent((Column(-0.75, half=width / 3),))
    points = np.array([-0.75, 0.1, 2.0])
    value = lambda x, y: kernel.gram([x], [y])[0, 0]  # noqa: E731
    expected = kernel.gram(points, [0.5])[:, 0]
    np.testing.assert_allclose(mean_integral(kernel, here, column(points)), expected, rtol=1e-8, atol=1e-12)
    assert double_integral(kernel, here, there) == pytest.approx(value(0.5, -0.75), rel=1e-8, abs=1e-12)
    across = mean_integral(kernel, UNIFORMS[0], column([0.5]))[0]
    assert double_integral(kernel, here, UNIFORMS[0]) == pytest.approx(across, rel=1e-8)
    rough = isinstance(kernel, Brownian)  # |x - y|^2H keeps width^2H of its mean
    together = pytest.approx(value(0.5, 0.5), rel=1e-7, abs=width**0.4 if rough else 0.0)
    assert double_integral(kernel, here, here) == together


@pytest.mark.parametrize("kernel", STATIONARY, ids=named)
def test_wide_box_spreads_the_mass_of_the_kernel(kernel):
    nodes, weights = rule(stats.uniform(-200.0, 400.0), [-50.0, -10.0, -3.0, 0.0, 3.0, 10.0, 50.0])
    mass = 400.0 * (kernel.gram([0.0], nodes) @ weights).item()
    for width in (1e4, 1e9):
        wide = stats.uniform(-0.5 * width, width)
        np.testing.assert_allclose(width * mean_integral(kernel, wide, column(X)), mass, rtol=1e-10)
        assert width * double_integral(kernel, wide, UNIFORMS[0]) == pytest.approx(mass, rel=1e-10)
        assert width * double_integral(kernel, wide, stats.uniform(0, 50)) == pytest.approx(mass, rel=1e-10)


@pytest.mark.parametrize("kernel", NOISY, ids=named)
def test_wide_normal_spreads_the_mass_of_the_kernel(kernel):
    unit = float(kernel.lengthscale)
    mass = unit * (np.sqrt(2.0 * np.pi) if isinstance(kernel, Gaussian) else 2.0)
    for sd in (1e6, 1e200):
        density = 1.0 / np.sqrt(2.0 * np.pi)
        wide = Independent((Column.normal(0.0, sd),))
        np.testing.assert_allclose(sd * mean_integral(kernel, wide, column(X)), mass * density, rtol=1e-9)
        assert sd * double_integral(kernel, wide, UNIFORMS[0]) == pytest.approx(mass * density, rel=1e-9)


def test_far_apart_keeps_relative_precision():
    kernel, box = Laplace(1.0), stats.uniform(0, 3)
    average = np.expm1(3.0) / 3.0
    expected = np.exp(-np.array([40.0, 300.0])) * average
    np.testing.assert_allclose(mean_integral(kernel, box, column([40.0, 300.0])), expected, rtol=1e-12)
    both = double_integral(kernel, box, stats.uniform(50, 2))
    assert both == pytest.approx(np.exp(-50.0) * average * (1.0 - np.exp(-2.0)) / 2.0, rel=1e-12)
    assert double_integral(kernel, stats.norm(0, 2), stats.norm(60, 2)) == pytest.approx(np.exp(-56.0), rel=1e-12)


@pytest.mark.parametrize("kernel", STATIONARY, ids=named)
def test_nothing_overflows_far_away(kernel):
    box, other = stats.uniform(0, 1), stats.uniform(1e200, 3e200)
    far = column([-1e250, -1e6, 1e6, 1e250])
    np.testing.assert_array_equal(mean_integral(kernel, box, far), 0.0)
    assert double_integral(kernel, box, other) == 0.0
    if isinstance(kernel, Matern) and kernel.nu > 0.5:
        np.testing.assert_array_equal(mean_integral(kernel, stats.norm(0, 1), far), 0.0)
    else:
        np.testing.assert_array_equal(mean_integral(kernel, stats.norm(0, 1), far), 0.0)
        assert double_integral(kernel, stats.norm(0, 1e-3), other) == 0.0


def test_brownian_far_from_the_origin():
    # min(x, y) over [a, a + w] is a + w/3 twice over, here to the rounding of a.
    box = stats.uniform(1e6, 1e-3)
    assert double_integral(Brownian(), box, box) == pytest.approx(1e6 + 1e-3 / 3.0, rel=1e-14)
    narrow = Independent((Column(0.0, half=1e-9),))
    assert mean_integral(Brownian(0.3), narrow, column([1e9]))[0] == pytest.approx(0.0, abs=1e-5)


def test_singular_and_large_covariance():
    kernel = Gaussian([0.5, 2.0])
    flat = stats.multivariate_normal([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], allow_singular=True)
    nodes, weights = rule(stats.norm(), [])
    along = np.stack([nodes, nodes], axis=1)
    np.testing.assert_allclose(mean_integral(kernel, flat, X2), kernel.gram(X2, along) @ weights, atol=1e-11)
    huge = Normal(np.zeros(2), 1e30 * np.array([[1.0, 0.5], [0.5, 1.0]]))
    expected = 1.0 / np.sqrt(0.75e60)
    np.testing.assert_allclose(mean_integral(kernel, huge, X2), expected, rtol=1e-9)


@pytest.mark.parametrize("kernel", STATIONARY, ids=named)
def test_embeddings_have_an_inner_product(kernel):
    parts = [UNIFORMS[0], UNIFORMS[1], stats.uniform(0.2, 0.4), stats.uniform(5, 1)]
    gram = np.array([[double_integral(kernel, p, q) for q in parts] for p in parts])
    np.testing.assert_allclose(gram, gram.T, rtol=1e-13)
    assert np.linalg.eigvalsh(gram)[0] > 0


# -------------------------------------------------------------------------------------- reading distributions


def test_reads_scipy_distributions():
    np.testing.assert_allclose(as_distribution(stats.norm(loc=2.0, scale=3.0)).covariance(), [[9.0]])
    np.testing.assert_allclose(as_distribution(stats.uniform(1.0, 3.0)).mean(), [2.5])
    np.testing.assert_allclose(as_distribution(stats.uniform(1.0, 3.0)).covariance(), [[0.75]])
    np.testing.assert_allclose(as_distribution(FULL).covariance(), COV)
    assert as_distribution(tuple(MIXED)).dimension == 2
    mixture = Mixture(MIXED)
    assert as_distribution(mixture) is mixture
    np.testing.assert_allclose(mixture.weights, 0.5)


def test_distributions_without_closed_form():
    assert as_distribution(stats.gamma(2.0)) is None
    assert as_distribution(stats.poisson(2.0)) is None
    assert as_distribution([stats.norm(), stats.gamma(2.0)]) is None
    assert as_distribution([stats.norm(), Mixture([stats.norm()])]) is None


@pytest.mark.parametrize(
    "value",
    [
        stats.norm,
        stats.multivariate_normal,
        Normal,
        "norm",
        3.0,
        None,
        [],
        ["norm"],
        [stats.norm],
        np.ones(3),
    ],
)
def test_refuses_what_is_no_distribution(value):
    with pytest.raises(ValueError, match="distribution"):
        as_distribution(value)


@pytest.mark.parametrize("value", [stats.norm(0, -1), stats.norm([0, 1], 1), stats.uniform(0, 0), stats.norm(np.nan)])
def test_refuses_bad_parameters(value):
    with pytest.raises(ValueError, match="needs one finite location and one positive scale"):
        as_distribution(value)


@pytest.mark.parametrize("units", [np.ones(3), np.array([1e-9, 1.0, 1e6])])
def test_density_of_a_normal_in_any_units(units):
    root = np.random.default_rng(3).normal(size=(3, 4))
    cov, mean = root @ root.T, np.array([1.0, -2.0, 0.5])
    X = np.random.default_rng(4).normal(size=(20, 3)) * 2.0
    found = Normal(mean * units, cov * np.outer(units, units)).density(X * units)
    np.testing.assert_allclose(found, stats.multivariate_normal(mean, cov).pdf(X) / units.prod(), rtol=1e-10)


@pytest.mark.parametrize("cov", [np.ones((2, 2)), np.diag([1.0, 0.0]), np.outer([1e-8, 3.0], [1e-8, 3.0])])
def test_a_flat_normal_has_no_density(cov):
    with pytest.raises(ValueError, match="singular covariance has no density"):
        Normal(np.zeros(2), cov).density(np.zeros((1, 2)))


def test_refuses_bad_parts():
    with pytest.raises(ValueError, match="entry 1 of a list of distributions has 2 columns"):
        as_distribution([stats.norm(), FULL])
    with pytest.raises(ValueError, match="low < high"):
        Column.uniform(1.0, 1.0)
    with pytest.raises(ValueError, match="either normal or uniform"):
        Column(0.0, sd=1.0, half=1.0)
    with pytest.raises(ValueError, match="either normal or uniform"):
        Column.normal(0.0, -1.0)
    with pytest.raises(ValueError, match="positive semidefinite"):
        Normal(np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="shapes"):
        Normal(np.zeros(2), np.eye(3))
    with pytest.raises(ValueError, match="finite"):
        Normal(np.array([np.inf]), np.eye(1))
    with pytest.raises(ValueError, match="at least one column"):
        Independent(())


@pytest.mark.parametrize(
    ("components", "weights", "message"),
    [
        ([], None, "list of distributions"),
        ("norm", None, "list of distributions"),
        ([stats.norm(), FULL], None, "one dimension"),
        ([stats.norm(), stats.norm(1)], [0.5, 0.6], "sum to 1"),
        ([stats.norm(), stats.norm(1)], [-0.5, 1.5], "nonnegative"),
        ([stats.norm(), stats.norm(1)], [1.0], "weights"),
        ([stats.norm(), "uniform"], None, "not a distribution"),
        ([stats.gamma(2.0)], None, "gamma"),
    ],
)
def test_refuses_bad_mixtures(components, weights, message):
    with pytest.raises(ValueError, match=message):
        Mixture(components, weights)


@pytest.mark.parametrize("value", [FULL, MIXED, Mixture([FULL, MIXED], [0.2, 0.8])], ids=["full", "mixed", "mixture"])
def test_samples_have_the_mean_and_the_embedding(value):
    distribution = as_distribution(value)
    draws = distribution.sample(20_000, np.random.default_rng(0))
    assert draws.shape == (20_000, 2)
    np.testing.assert_allclose(draws.mean(0), distribution.mean(), atol=0.03)
    kernel = Gaussian([0.7, 0.4])
    np.testing.assert_allclose(kernel.gram(X2, draws).mean(1), mean_integral(kernel, distribution, X2), atol=0.01)
    np.testing.assert_array_equal(draws, distribution.sample(20_000, np.random.default_rng(0)))


def test_normal_samples_have_the_covariance():
    draws = as_distribution(FULL).sample(50_000, np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(draws.T), COV, atol=0.02)


# ----------------------------------------------------------------------------------------------------- errors

UNIT_SQUARE = [stats.uniform(0, 1), stats.uniform(0, 1)]


@pytest.mark.parametrize(
    ("kernel", "distribution", "named_as"),
    [
        (RationalQuadratic(), stats.norm(), "RationalQuadratic with independent normal columns in 1-d"),
        (Delta(), stats.norm(), "Delta with"),
        (Gaussian() * Gaussian(), stats.norm(), "Product with"),
        (Gaussian(), stats.gamma(2.0), "Gaussian with the distribution gamma"),
        (Matern(1.5), stats.norm(0, 50), "Matern with independent normal"),
        (Matern(1.5), UNIT_SQUARE, "Matern with independent uniform columns in 2-d"),
        (Laplace(), FULL, "Laplace with a normal"),
        (Brownian(), stats.norm(), "Brownian with independent normal"),
        (Brownian(), UNIT_SQUARE, "Brownian with"),
        (PeriodicSobolev(), stats.norm(), "PeriodicSobolev with"),
        (Polynomial(3), stats.norm(), "Polynomial with"),
        (Gaussian() + Matern(2.5, 0.01), stats.norm(), "Matern with"),
        (Gaussian(), Mixture([FULL, MIXED]), "Gaussian with a normal distribution and independent"),
    ],
)
def test_no_closed_form(kernel, distribution, named_as):
    assert issubclass(NoClosedFormError, ValueError)
    with pytest.raises(NoClosedFormError, match=f"no closed form is known for {named_as}"):
        double_integral(kernel, distribution, distribution)
    if not isinstance(distribution, Mixture):
        width = as_distribution(distribution).dimension if as_distribution(distribution) else 1
        with pytest.raises(NoClosedFormError, match=f"no closed form is known for {named_as}"):
            mean_integral(kernel, distribution, np.zeros((3, width)))


def test_dimensions_must_agree():
    with pytest.raises(ValueError, match=r"X has shape \(3, 2\), but the distribution has 1 columns"):
        mean_integral(Gaussian(), stats.norm(), np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"X has shape \(3,\)"):
        mean_integral(Gaussian(), stats.norm(), np.zeros(3))
    with pytest.raises(ValueError, match="P has 1 columns but Q has 2"):
        double_integral(Gaussian(), stats.norm(), MIXED)
    with pytest.raises(ValueError, match="the distribution has 2 columns but the kernel's lengthscale has 3"):
        double_integral(2.0 * Gaussian([1.0, 2.0, 3.0]), MIXED, MIXED)

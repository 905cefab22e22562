"""Mercer expansions, leverage, and determinantal point processes, against integration, closed forms and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes.kernels import _determinantal as determinantal
from kernelbayes.kernels._mercer import Hermite, Sines, Trigonometric, _largest_products
from oracles import even_draws

NORMAL2 = stats.multivariate_normal([1.0, -2.0], [[1.0, 0.5], [0.5, 2.0]])


def _legendre(low, high, n=400):
    x, w = np.polynomial.legendre.leggauss(n)
    return low + 0.5 * (high - low) * (x + 1.0), 0.5 * w


def _normal_rule(sd, n=4001):
    """The trapezoidal rule, which is exact to rounding for functions that vanish at both ends."""
    x = np.linspace(-14.0 * max(sd, 1.0), 14.0 * max(sd, 1.0), n)
    return x, (x[1] - x[0]) * stats.norm(0.0, sd).pdf(x)


LINES = {
    "sobolev-1": (Trigonometric(1, 0.0), _legendre(0.0, 1.0)),
    "sobolev-3, shifted": (Trigonometric(3, -2.5), _legendre(-2.5, -1.5)),
    "brownian": (Sines(1.0), _legendre(0.0, 1.0)),
    "brownian to 3": (Sines(3.0), _legendre(0.0, 3.0)),
    "hermite 1": (Hermite(1.0), _normal_rule(1.0)),
    "hermite 4": (Hermite(4.0), _normal_rule(4.0)),
}


@pytest.mark.parametrize("name", LINES)
def test_eigenfunctions_are_orthonormal_and_their_integrals_right(name):
    line, (x, w) = LINES[name]
    E = line.functions(x, 25)
    assert np.abs((E.T * w) @ E - np.eye(25)).max() < 1e-8
    assert np.abs(w @ E - line.integrals(25)).max() < 1e-8
    assert (np.diff(line.eigenvalues(25)) <= 0).all()


def test_hermite_functions_neither_overflow_nor_vanish_far_out():
    line = Hermite(100.0)  # the last of 2,000 functions are largest beyond four standard deviations
    x = np.linspace(0.0, 900.0, 4001)
    last = line.functions(x, 2000)[:, -1]
    assert np.isfinite(last).all()
    mass = 2.0 * (x[1] - x[0]) * (last**2 * stats.norm(0, 100.0).pdf(x)).sum()
    assert mass == pytest.approx(1.0, abs=1e-3)


EXPANSIONS = {
    "sobolev": (kb.PeriodicSobolev(2), stats.uniform(0, 1), 1e-5),
    "sobolev 2-d": (kb.PeriodicSobolev(3), [stats.uniform(0, 1), stats.uniform(-1, 1)], 1e-5),
    "gaussian": (kb.Gaussian(0.7), stats.norm(1.0, 2.0), 1e-13),
    "gaussian, correlated": (kb.Gaussian([0.7, 1.3]), NORMAL2, 1e-12),
    "scaled": (3.0 * kb.Gaussian([2.0, 1.0]), [stats.norm(0, 1), stats.norm(5, 0.5)], 1e-12),
    "brownian": (kb.Brownian(), stats.uniform(0, 2), 1e-3),
}


def _draws(distribution, n):
    if isinstance(distribution, list):
        return np.column_stack([d.rvs(n, random_state=i) for i, d in enumerate(distribution)])
    return np.reshape(distribution.rvs(n, random_state=0), (n, -1))


@pytest.mark.parametrize("name", EXPANSIONS)
def test_the_sum_is_the_kernel_and_the_integrals_its_embedding(name):
    kernel, distribution, error = EXPANSIONS[name]
    found = kb.mercer(kernel, distribution)
    X = _draws(distribution, 12)
    E = found.eigenfunctions(X)
    assert np.abs((E * found.eigenvalues) @ E.T - kernel.gram(X)).max() < error
    embedding = kb.AnalyticEmbedding(distribution, kernel)
    assert np.abs(E @ (found.eigenvalues * found.integrals()) - embedding(X)).max() < error
    assert found.trace == pytest.approx(kernel.diag(_draws(distribution, 200_000)).mean(), rel=5e-3)


def test_correlated_normals_have_orthonormal_eigenfunctions_too():
    found = kb.mercer(kb.Gaussian([0.7, 1.3]), NORMAL2, terms=200)
    x, w = np.polynomial.hermite_e.hermegauss(60)
    grid = np.stack(np.meshgrid(x, x), -1).reshape(-1, 2)
    weights = np.outer(w, w).ravel() / w.sum() ** 2
    E = found.eigenfunctions(NORMAL2.mean + grid @ np.linalg.cholesky(NORMAL2.cov).T, 12)
    assert np.abs((E.T * weights) @ E - np.eye(12)).max() < 1e-8


def test_effective_dimension_and_leverage_in_closed_form():
    reg, rate = 1e-3, 1e-3**-0.5
    x = np.linspace(0.01, 1.0, 50)
    brownian = kb.mercer(kb.Brownian(), stats.uniform(0, 1))
    known = rate * np.sinh(rate * x) * np.cosh(rate * (1.0 - x)) / np.cosh(rate)
    assert np.abs(brownian.leverage(x, reg) - known).max() < 1e-6
    assert brownian.effective_dimension(reg) == pytest.approx(0.5 * rate * np.tanh(rate), rel=1e-8)
    few = kb.mercer(kb.Brownian(), stats.uniform(0, 1), terms=50)
    assert few.effective_dimension(1e-4) == pytest.approx(50.0, rel=1e-2)
    assert few.effective_dimension(1e-6) < 500.0
    sobolev, b = kb.mercer(kb.PeriodicSobolev(1), stats.uniform(0, 1)), np.pi / np.sqrt(0.02)
    assert sobolev.effective_dimension(0.01) == pytest.approx(1 / 1.01 + b / np.tanh(b) - 1.0, rel=1e-8)
    assert np.allclose(sobolev.leverage(x, 0.01), sobolev.effective_dimension(0.01), rtol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "brownian", "sobolev"])
def test_effective_dimension_is_the_integral_of_the_leverage(name):
    kernel, distribution, _ = EXPANSIONS[name]
    found = kb.mercer(kernel, distribution)
    if name == "gaussian":
        x, w = _normal_rule(2.0)
        x = x + 1.0
    else:
        x, w = _legendre(0.0, 2.0 if name == "brownian" else 1.0)
    for reg in (1e-1, 1e-3):
        assert w @ found.leverage(x, reg) == pytest.approx(found.effective_dimension(reg), rel=1e-8)
    assert found.effective_dimension(found.regulariser(7.0)) == pytest.approx(7.0, rel=1e-8)


def test_largest_products_are_the_largest():
    series = [0.5 ** np.arange(40), 0.8 ** np.arange(40), 1.0 / np.arange(1, 41) ** 2]
    indices, values = _largest_products(series, 60)
    everything = np.sort(np.einsum("i,j,k->ijk", *series).ravel())[::-1]
    assert np.allclose(values, everything[:60], rtol=1e-12)
    assert np.allclose([series[0][i] * series[1][j] * series[2][k] for i, j, k in indices], values, rtol=1e-12)
    assert len({tuple(row) for row in indices}) == 60


# -------------------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize(("name", "mode"), [("sobolev-1", 4), ("brownian", 3), ("hermite 1", 0), ("hermite 4", 9)])
def test_draws_from_a_square_follow_it(name, mode):
    line, (x, w) = LINES[name]
    drawn = line.draw_squares(np.full(4000, mode), np.random.default_rng(0))
    order = np.argsort(x)
    cumulated = np.cumsum((w * line.functions(x, mode + 1)[:, mode] ** 2)[order])
    assert stats.kstest(drawn, lambda v: np.interp(v, x[order], cumulated)).pvalue > 1e-4


@pytest.mark.parametrize("terms", [100, 2000])
def test_draws_from_the_leverage_density_whether_terms_are_held_or_not(terms):
    reg, rate = 1e-3, 1e-3**-0.5
    found = kb.mercer(kb.Brownian(), stats.uniform(0, 1), terms=terms)
    drawn = found.sample_leverage(4000, reg, random_state=0)[:, 0]

    def cdf(x):  # the integral of 2 sinh(rate x) cosh(rate (1 - x)) / sinh(rate)
        return x + (np.cosh(rate * (2 * x - 1)) - np.cosh(rate)) / (2 * rate * np.sinh(rate))

    assert stats.kstest(drawn, cdf).pvalue > 0.01
    assert np.mean(drawn < 0.02) < 0.014 < 0.026 < np.mean(drawn > 0.98)  # nothing at zero, twice as much at one


def test_the_process_of_hermite_functions_is_that_of_random_matrices():
    """Eigenvalues of the Gaussian unitary ensemble are the process of the first n Hermite functions."""
    found, line = kb.mercer(kb.Gaussian(1.0), stats.norm()), Hermite(1.0)
    rng = np.random.default_rng(0)
    ours = [np.sqrt(2 * line.c) * np.sort(found.sample_dpp(8, random_state=rng)[:, 0]) for _ in range(400)]
    A = rng.normal(size=(1000, 8, 8)) + 1j * rng.normal(size=(1000, 8, 8))
    theirs = np.linalg.eigvalsh((A + A.conj().swapaxes(1, 2)) / np.sqrt(8.0))
    for j in (0, 3, 7):
        assert stats.ks_2samp(np.array(ours)[:, j], theirs[:, j]).pvalue > 0.01
    assert np.sum(np.diff(ours, axis=1) < 0.05) < 10  # they repel: independent points would be as near 100 times


def test_the_process_of_trigonometric_functions_is_that_of_random_rotations():
    """Of n = 2 m + 1 functions it is the circular unitary ensemble, where `E |sum_j exp(2 pi i k x_j)|^2 = min(k, n)`."""
    found = kb.mercer(kb.PeriodicSobolev(1), stats.uniform(0, 1))
    rng = np.random.default_rng(1)
    sums = [[abs(np.exp(2j * np.pi * k * x).sum()) ** 2 for k in (1, 2, 20)] for x in _sets(found, 9, 600, rng)]
    mean, error = np.mean(sums, 0), np.std(sums, 0) / np.sqrt(len(sums))
    assert (np.abs(mean - [1, 2, 9]) < 4 * error).all()  # independent points: 9, 9, 9


def _sets(found, n, count, rng):
    return (found.sample_dpp(n, random_state=rng)[:, 0] for _ in range(count))


def test_points_after_given_ones_complete_the_process():
    found = kb.mercer(kb.Gaussian(1.0), stats.norm())
    rng = np.random.default_rng(0)
    modes, given = np.arange(6), np.array([[-0.3], [0.4]])
    new = determinantal.draw_projection(found, modes, rng, found.eigenfunctions(given, 6))
    assert new.shape == (4, 1)
    near = [
        np.abs(determinantal.draw_projection(found, modes, rng, found.eigenfunctions(given, 6)) - 0.4).min()
        for _ in range(100)
    ]
    assert min(near) > 0.05


def test_a_k_dpp_of_a_pool_by_enumeration():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(7, 1))
    kernel = kb.Gaussian(0.6)
    K = kernel.gram(pool)
    sets = list(itertools.combinations(range(7), 3))
    mass = np.array([np.linalg.det(K[np.ix_(s, s)]) for s in sets])
    found = kb.mercer(kernel, pool)
    counts = dict.fromkeys(sets, 0)
    for _ in range(1500):
        drawn = found.sample_dpp(3, kind="k-dpp", random_state=rng)
        counts[tuple(sorted(int(np.abs(pool - x).argmin()) for x in drawn))] += 1
    expected = 1500 * mass / mass.sum()
    common = expected > 5
    observed = np.array(list(counts.values()))
    table = np.array([observed, expected])
    table = np.column_stack([table[:, common], table[:, ~common].sum(1)])
    table = table[:, table[1] > 1e-3]
    assert stats.chisquare(table[0], table[1] * table[0].sum() / table[1].sum()).pvalue > 1e-4


def test_a_random_number_of_points_has_the_marginals_of_the_operator():
    rng = np.random.default_rng(0)
    pool, kernel, reg = rng.normal(size=(12, 1)), kb.Gaussian(0.5), 0.02
    K = kernel.gram(pool)
    marginal = np.diagonal(K @ np.linalg.inv(K + 12 * reg * np.eye(12)))
    found = kb.mercer(kernel, pool)
    hits = np.zeros(12)
    for _ in range(1000):
        for x in found.sample_dpp(reg=reg, random_state=rng):
            hits[np.abs(pool - x).argmin()] += 1
    assert (np.abs(hits / 1000 - marginal) < 4 * np.sqrt(marginal * (1 - marginal) / 1000)).all()
    assert found.effective_dimension(reg) == pytest.approx(marginal.sum(), rel=1e-8)
    assert np.allclose(found.leverage(pool, reg), 12 * marginal, rtol=1e-6)


@pytest.mark.parametrize("features", [None, kb.Subspace(60), kb.IncompleteCholesky(60), kb.RandomFourier(1000)])
def test_the_spectrum_of_a_sample_approaches_the_expansion(features):
    draws = even_draws.normals(2000, 1, np.random.default_rng(0))
    found = kb.mercer(kb.Gaussian(0.5), draws, features=features, random_state=0)
    known = kb.mercer(kb.Gaussian(0.5), stats.norm())
    assert np.allclose(found.eigenvalues[:4], known.eigenvalues[:4], rtol=0.15)
    x = np.linspace(-1.5, 1.5, 7)
    assert np.abs(found.leverage(x, 0.01) / known.leverage(x, 0.01) - 1).max() < 0.25
    E = found.eigenfunctions(draws, 5)
    assert np.abs(E.T @ E / 2000 - np.eye(5)).max() < 1e-6


def test_products_of_eigenvalues_that_underflow():
    found = determinantal.modes_by_product(1e-5 ** np.arange(300.0), 60, np.random.default_rng(0))
    assert len(found) == 60
    assert (found[:50] == np.arange(50)).all()


class TestBadInput:
    def test_more_points_than_the_kernel_has_rank(self):
        grid = np.linspace(0, 1, 500)
        found = kb.mercer(kb.Gaussian(0.2), grid)
        with pytest.raises(ValueError, match=r"n=64 points needs as many eigenfunctions.*numerical rank 1\d"):
            found.sample_dpp(64)

    @pytest.mark.parametrize(
        ("kernel", "distribution"),
        [
            (kb.Gaussian(), stats.uniform(0, 1)),
            (kb.PeriodicSobolev(), stats.uniform(0, 2)),
            (kb.Brownian(), stats.uniform(1, 1)),
            (kb.Brownian(0.3), stats.uniform(0, 1)),
            (kb.Matern(1.5), stats.norm()),
            (kb.Gaussian(), kb.Mixture([stats.norm(), stats.norm(3, 1)])),
            (kb.Gaussian(), stats.gamma(2.0)),
        ],
    )
    def test_no_expansion_is_known(self, kernel, distribution):
        with pytest.raises(kb.NoClosedFormError, match="known"):
            kb.mercer(kernel, distribution)

    def test_arguments(self):
        found = kb.mercer(kb.Gaussian(), stats.norm())
        with pytest.raises(ValueError, match="either n"):
            found.sample_dpp()
        with pytest.raises(ValueError, match="either n"):
            found.sample_dpp(3, reg=0.1)
        with pytest.raises(ValueError, match="kind"):
            found.sample_dpp(3, kind="projective")
        with pytest.raises(ValueError, match="more terms="):
            kb.mercer(kb.Brownian(), stats.uniform(0, 1), terms=50).sample_dpp(reg=1e-4)
        with pytest.raises(ValueError, match="count=1000"):
            found.eigenfunctions([0.0], 1000)
        with pytest.raises(ValueError, match="X has 2"):
            found.eigenfunctions([[0.0, 1.0]])
        with pytest.raises(ValueError, match="reg"):
            found.leverage([0.0], -1.0)
        with pytest.raises(ValueError, match="negative"):
            kb.integration.SampledSpectrum(kb.Gaussian(), [0.0, 1.0], [2.0, -1.0])
        with pytest.raises(ValueError, match="features are for a sample"):
            kb.mercer(kb.Gaussian(), stats.norm(), features=kb.Subspace(5))

"""Numbers read off a weighted sample against NumPy and SciPy, and what signed weights must not break."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

import kernelbayes as kb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0], [0.0, 0.0, 2.0]])
POSITIVE, SIGNED = RNG.exponential(size=40), RNG.normal(0.3, 1.0, size=40)


def embedding(points, weights=None):
    return kb.MeanEmbedding(points, weights, kb.Gaussian(1.0))


def test_moments_of_a_plain_sample():
    a = embedding(X)
    assert a.mean() == pytest.approx(X.mean(0))
    assert a.cov() == pytest.approx(np.cov(X.T, bias=True))


@pytest.mark.parametrize("weights", [POSITIVE, 5.0 * POSITIVE])
def test_moments_of_a_weighted_sample_do_not_depend_on_the_total(weights):
    a = embedding(X, weights)
    assert a.mean() == pytest.approx(np.average(X, axis=0, weights=weights))
    assert a.cov() == pytest.approx(np.cov(X.T, bias=True, aweights=weights))


def test_moments_of_a_signed_sample():
    w = SIGNED / SIGNED.sum()
    a = embedding(X, SIGNED)
    assert a.mean() == pytest.approx(w @ X)
    assert a.cov() == pytest.approx(np.einsum("i,ij,ik", w, X, X) - np.outer(w @ X, w @ X))


def test_moments_survive_a_large_offset():
    assert embedding(X + 1e6).cov() == pytest.approx(np.cov(X.T, bias=True), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("weights", [None, POSITIVE])
def test_quantiles_are_those_of_the_step_function(weights):
    levels = np.linspace(0.0, 1.0, 23)
    w = np.ones(40) if weights is None else weights
    expected = np.quantile(X, levels, axis=0, weights=np.tile(w[:, None], 3), method="inverted_cdf")
    assert embedding(X, weights).quantile(levels) == pytest.approx(expected)


def test_shapes_of_quantiles():
    a = embedding(X)
    assert a.quantile(0.5).shape == (3,)
    assert a.quantile([0.5]).shape == (1, 3)
    assert a.quantile([0.1, 0.5, 0.9]).shape == (3, 3)
    assert a.interval(0.5).shape == (2, 3)
    assert (a.quantile([0.0, 1.0]) == [X.min(0), X.max(0)]).all()


def test_quantiles_and_intervals_of_known_distributions():
    n = 20_000
    sample = np.random.default_rng(0).normal(2.0, 3.0, n)
    truth = stats.norm(2.0, 3.0)
    a = kb.MeanEmbedding(sample, kernel=kb.Gaussian(1.0))
    for level in (0.05, 0.5, 0.9):
        error = np.sqrt(level * (1 - level) / n) / truth.pdf(truth.ppf(level))
        assert a.quantile(level)[0] == pytest.approx(truth.ppf(level), abs=4 * error)
    assert a.interval(0.8)[:, 0] == pytest.approx(truth.ppf([0.1, 0.9]), abs=0.15)
    assert (a.interval() == a.quantile([0.05, 0.95])).all()


def test_importance_weights_move_quantiles():
    """A uniform sample weighted by a triangular density has the triangular quantiles."""
    x = (np.arange(5000) + 0.5) / 5000
    a = kb.MeanEmbedding(x, x, kb.Gaussian(1.0))
    assert a.quantile([0.25, 0.5, 0.81])[:, 0] == pytest.approx(np.sqrt([0.25, 0.5, 0.81]), abs=1e-3)
    assert a.mean()[0] == pytest.approx(2 / 3, abs=1e-6)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(
    arrays(np.float64, (6, 2), elements=st.floats(-5, 5, width=32)),
    arrays(np.float64, 6, elements=st.floats(-1, 1, width=32)),
)
def test_quantiles_of_signed_weights_rise_and_stay_within_the_points(points, weights):
    assume(abs(weights.sum()) > 1e-3)
    levels = np.linspace(0.0, 1.0, 11)
    found = embedding(points, weights).quantile(levels)
    assert (np.diff(found, axis=0) >= 0).all()
    assert all(np.isin(column, points[:, j]).all() for j, column in enumerate(found.T))


def test_signed_weights_level_the_distribution_function():
    """Weights 0.6, -0.2, 0.6 make steps 0.6, 0.4, 1: the dip and the rise before it meet in the middle."""
    a = embedding([0.0, 1.0, 2.0], [0.6, -0.2, 0.6])
    assert a.quantile([0.0, 0.3, 0.49, 0.51, 0.6, 1.0])[:, 0] == pytest.approx([0, 0, 0, 2, 2, 2])


def test_quantiles_of_the_mirror_image_are_mirrored():
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=40), rng.normal(0.025, 0.1, size=40)
    levels = np.array([0.07, 0.23, 0.51, 0.83])
    mirrored = -embedding(-x, w).quantile(1 - levels)
    assert embedding(x, w).quantile(levels) == pytest.approx(mirrored)


def test_default_density_follows_the_scale_of_the_points_under_signed_weights():
    """Even where the weights make the variance negative, so that it cannot serve as a bandwidth."""
    x, w = np.array([0.0, 1.0, 2.0, 3.0]), np.array([-0.8, 1.5, 1.2, -0.9])
    assert embedding(x, w).cov()[0, 0] < 0
    expected = embedding(x, w).density([0.5, 1.5])
    assert expected.max() > 0.1
    for scale in (1e-8, 1e8):
        assert scale * embedding(scale * x, w).density(scale * np.array([0.5, 1.5])) == pytest.approx(expected)


# ---------------------------------------------------------------------------------------------------- density


@pytest.mark.parametrize("weights", [None, POSITIVE])
def test_density_is_the_kernel_density_estimate(weights):
    """SciPy's estimate scales by the unbiased deviation; the bandwidth here by the plain one."""
    x = X[:, 0]
    w = np.full(40, 1 / 40) if weights is None else weights / weights.sum()
    grid = np.linspace(-4, 4, 15)
    a = kb.MeanEmbedding(x, weights, kb.Gaussian(1.0))
    unbiased = np.sqrt(np.cov(x, aweights=w))
    given = stats.gaussian_kde(x, bw_method=0.3 / unbiased, weights=w)
    assert a.density(grid, bandwidth=0.3) == pytest.approx(given(grid))
    scott = (1 / (w**2).sum()) ** -0.2
    default = stats.gaussian_kde(x, bw_method=scott * np.sqrt(1 - (w**2).sum()), weights=w)
    assert a.density(grid) == pytest.approx(default(grid))


def test_density_in_the_plane_multiplies_and_integrates_to_one():
    points = X[:, :2]
    a = kb.MeanEmbedding(points, POSITIVE, kb.Gaussian(1.0))
    side = np.linspace(-6, 6, 61)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    h = 0.5
    kernels = stats.norm(0, h).pdf(grid[:, None, :] - points).prod(-1)
    assert a.density(grid, bandwidth=h) == pytest.approx(kernels @ POSITIVE / POSITIVE.sum())
    for bandwidth in (None, 0.5):
        assert a.density(grid, bandwidth).sum() * 0.2**2 == pytest.approx(1.0, abs=1e-3)


def test_density_of_a_known_distribution():
    """Smoothing a normal of deviation 1 by one of deviation h gives one of deviation sqrt(1 + h^2)."""
    n = 4000
    sample = np.random.default_rng(0).normal(size=n)
    grid, h = np.linspace(-3, 3, 25), n**-0.2
    found = kb.MeanEmbedding(sample, kernel=kb.Gaussian(1.0)).density(grid)
    error = np.sqrt(stats.norm.pdf(grid) / (2 * np.sqrt(np.pi) * n * h))
    assert (np.abs(found - stats.norm(0, np.sqrt(1 + h**2)).pdf(grid)) < 4 * error).all()


def test_density_of_signed_weights_is_cut_at_zero():
    a = embedding([0.0, 3.0], [1.5, -0.5])
    grid = np.linspace(-5, 8, 400)
    found = a.density(grid, bandwidth=0.5)
    assert found.min() == 0.0
    assert integrate.trapezoid(found, grid) == pytest.approx(1.5, abs=5e-3)  # the positive part alone
    mild = embedding(X[:, 0], POSITIVE - 0.02)
    wide = np.linspace(-10, 10, 400)
    assert integrate.trapezoid(mild.density(wide), wide) == pytest.approx(1.0, abs=1e-2)


def test_a_constant_column_has_a_density():
    a = embedding(np.column_stack([X[:, 0], np.ones(40)]))
    assert np.isfinite(a.density([[0.0, 1.0]])).all()
    assert a.density([[0.0, 1.0]])[0] > 0


# ----------------------------------------------------------------------------------------------- what is refused

READINGS = {
    "mean": lambda a: a.mean(),
    "cov": lambda a: a.cov(),
    "quantile": lambda a: a.quantile(0.5),
    "interval": lambda a: a.interval(),
    "density": lambda a: a.density(np.zeros((1, 1))),
}


@pytest.mark.parametrize("reading", READINGS)
def test_weights_that_sum_to_zero_hold_no_distribution(reading):
    with pytest.raises(ValueError, match="no distribution"):
        READINGS[reading](embedding([0.0, 1.0, 2.0], [0.1, 0.2, -0.3]))


@pytest.mark.parametrize("reading", READINGS)
def test_labels_and_objects_have_no_moments(reading):
    for points, kernel in ((["a", "b"], kb.Delta()), ([1, 2], kb.FunctionKernel(min))):
        with pytest.raises(ValueError, match="not vectors"):
            READINGS[reading](kb.MeanEmbedding(points, kernel=kernel))


def test_bad_levels_grids_and_bandwidths_are_refused():
    a = embedding(X)
    for q in (-0.1, 1.1, np.nan, [[0.5]], [0.5, 2.0]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            a.quantile(q)
    for level in (0.0, 1.0, 90, "most"):
        with pytest.raises(ValueError, match="level"):
            a.interval(level)
    with pytest.raises(ValueError, match="columns"):
        a.density([[0.0]])
    for bandwidth in (0.0, -1.0, np.nan, [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="bandwidth"):
            a.density(X, bandwidth)

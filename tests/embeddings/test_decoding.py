"""Numbers read off a weighted sample against NumPy and SciPy, and what signed weights must not break."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats

import kernelbayes as kb
from kernelbayes.embeddings import _decode, _moments
from oracles import even_draws

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


def spread_by_quantiles(a, order=2):
    """Mean powers about the mean, by the middles of 20,000 equal slices of the mass."""
    levels = (np.arange(20_000) + 0.5) / 20_000
    return ((a.quantile(levels) - a.mean()) ** order).mean(0)


def test_moments_of_a_signed_sample():
    """The mean is the weighted sum; spreads are those about it of the functions that quantiles come from."""
    far = np.abs(X[:, 0]) > np.quantile(np.abs(X[:, 0]), 0.7)
    signed = np.where(far, -0.7, 1.0) * np.abs(SIGNED)
    w = signed / signed.sum()
    a = embedding(X, signed)
    assert (np.einsum("i,ij->j", w, (X - w @ X) ** 2) < 0).any()
    assert a.mean() == pytest.approx(w @ X)
    assert a.moment(1) == pytest.approx(w @ X)
    assert a.std() ** 2 == pytest.approx(spread_by_quantiles(a), rel=2e-3)
    assert a.moment(2, central=True) == pytest.approx(a.std() ** 2)
    assert a.moment(4, central=True) == pytest.approx(spread_by_quantiles(a, 4), rel=2e-3)
    assert a.moment(2) == pytest.approx(((a.quantile((np.arange(20_000) + 0.5) / 20_000)) ** 2).mean(0), rel=2e-3)


def test_a_spread_is_about_the_mean_and_not_about_the_middle_of_the_function():
    """All of the rising function lies at 0, the mean at -1: the weights contradict themselves, and the spread says so."""
    a = embedding([0.0, 2.0], [1.5, -0.5])
    assert (a.mean()[0], a.quantile([0.01, 1.0]).tolist()) == (-1.0, [[0.0], [0.0]])
    assert a.std()[0] == pytest.approx(1.0)


def test_contradictions_are_distances_from_the_function_in_its_own_spreads():
    x, w = np.array([0.0, 1.0, 2.0, 3.0])[:, None], np.array([0.6, 0.7, 0.1, -0.4])  # steps 0.6, 1, 1, 1 after clipping
    off = abs(0.4 - w @ x[:, 0]) / np.sqrt(0.24)
    found = _moments.contradictions(x, np.stack([w, [0.25, 0.25, 0.25, 0.25], [1.5, 0.0, 0.0, -0.5]]))[:, 0]
    assert found[:2] == pytest.approx([off, 0.0])
    assert 1e6 < found[2] < np.inf  # a single step, away from the mean


@pytest.mark.parametrize("seed", range(4))
def test_covariances_are_covariances_whatever_the_weights(seed):
    """Semidefinite, with the squared spreads on the diagonal; and they turn and stretch with single columns."""
    rng = np.random.default_rng(seed)
    W = rng.normal(0.05, 1.0, (30, 40))
    W /= W.sum(1, keepdims=True)
    for columns in (1, 2, 3):
        x = X[:, :columns]
        C, spread = _moments.covariances(x, W), _moments.deviations(x, W)
        assert np.diagonal(C, axis1=1, axis2=2) == pytest.approx(spread**2, rel=1e-12)
        size = spread[:, :, None] * spread[:, None]
        assert np.linalg.eigvalsh(C / size).min() > -1e-12
        unit = np.array([-3.0, 1e-3, 1e5])[:columns]
        assert _moments.covariances(x * unit + 7.0, W) / size == pytest.approx(
            C * np.outer(unit, unit) / size, rel=1e-6
        )


def test_correlations_under_signed_weights_are_those_of_sums_and_differences():
    w = SIGNED / SIGNED.sum()
    plane, (a, b) = embedding(X[:, :2], w), X[:, :2].T / embedding(X[:, :2], w).std()[:, None]
    added, taken = (embedding(line, w).std()[0] ** 2 for line in (a + b, a - b))
    r = plane.cov()[0, 1] / np.prod(plane.std())
    assert r == pytest.approx((added - taken) / (added + taken))


def test_spreads_are_continuous_where_weights_turn_negative():
    """Weights of -1e-9 leave what plain formulas give."""
    w = POSITIVE / POSITIVE.sum()
    w[[3, 17]] = -1e-9
    plain = np.cov(X.T, bias=True, aweights=np.maximum(w, 0.0))
    assert embedding(X, w).cov() == pytest.approx(plain, abs=1e-6)


def test_a_column_that_does_not_vary_has_no_spread_and_no_correlation():
    flat = np.column_stack([X[:, 0], np.full(40, 3.0)])
    C = embedding(flat, SIGNED).cov()
    assert C[0, 0] > 0.1
    assert np.abs(C[[0, 1, 1], [1, 0, 1]]).max() < 1e-12


def test_points_that_coincide_in_a_sum_of_columns_count_together():
    """On a grid, the weights 5 and -5 of two points with the same sum are no weight for the sum, whichever comes first."""
    grid = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    for first in (5.0, -5.0):
        a = embedding(grid, [0.5, first, -first, 0.5])
        b = embedding(grid[::-1], [0.5, -first, first, 0.5])
        assert a.cov() == pytest.approx(b.cov(), rel=1e-9)


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
    assert w @ (x - w @ x) ** 2 < 0
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


def test_default_density_keeps_several_humps_apart():
    """Scott's rule takes two humps for one of the same variance, and smears them; integrated squared errors."""
    truth = stats.norm(-2, 0.5), stats.norm(2, 0.5)
    grid = np.linspace(-6, 6, 601)
    expected = 0.5 * (truth[0].pdf(grid) + truth[1].pdf(grid))
    for n in (100, 1000):
        rng = np.random.default_rng(n)
        x = np.concatenate([t.rvs(n // 2, random_state=rng) for t in truth])
        a = kb.MeanEmbedding(x, kernel=kb.Gaussian(1.0))
        errors = [np.sum((a.density(grid, h) - expected) ** 2) * 0.02 for h in (None, x.std() * n**-0.2)]
        assert errors[0] < 0.25 * errors[1]
        assert errors[0] < 2.0 * min(np.sum((a.density(grid, h) - expected) ** 2) * 0.02 for h in np.geomspace(0.05, 1))


def ridge_weights(target, points, kernel, reg):
    """Signed weights that approximate an embedding on given points (Kanagawa 2016, section 5.5)."""
    K = kernel.gram(points)
    values = kb.AnalyticEmbedding(target, kernel)(points)
    return np.linalg.solve(K + len(points) * reg * np.eye(len(points)), values)


def test_default_density_of_signed_weights():
    """A narrow distribution on widely spread points: the spread of the absolute weights would smooth it away."""
    target = stats.norm(0.3, 0.2)
    x = 10 * even_draws.uniforms(300, 1, np.random.default_rng(0))[:, 0] - 5
    a = embedding(x, ridge_weights(target, x, kb.Gaussian(1.0), 1e-6))
    assert a.negative_mass() > 0.05
    grid = np.linspace(-2, 2, 401)
    sizes = np.abs(a.weights) / np.abs(a.weights).sum()
    scott = np.sqrt(sizes @ (x - sizes @ x) ** 2) * a.ess() ** -0.2
    errors = [np.sum((a.density(grid, h) - target.pdf(grid)) ** 2) for h in (None, scott)]
    assert errors[0] < 0.5 * errors[1]


def test_copies_and_rounding_do_not_make_the_density_spiky():
    x = even_draws.normals(2000, 1, np.random.default_rng(0))[:, 0]
    grid = np.linspace(-3, 3, 121)
    for points in (np.round(x), np.repeat(x[:100], 20), np.round(x, 1)):
        assert np.abs(embedding(points).density(grid) - stats.norm.pdf(grid)).max() < 0.12


@pytest.mark.parametrize("weights", [[1.0, 1e-3], [3.0, -2.0], [1.5, -0.4, -0.1], [-0.8, 1.5, 1.2, -0.9]])
def test_few_points_have_a_density(weights):
    x = np.arange(len(weights), dtype=float)
    for scale in (1e-6, 1.0, 1e6):
        found = embedding(scale * x, weights).density(scale * x)
        assert np.isfinite(found).all()
        assert found.max() > 0


# ------------------------------------------------------------------------------------- moments and probabilities


def tensor_rule(mean, root, nodes=12):
    """Gauss-Hermite points and weights of N(mean, root root'): exact for polynomials up to degree 23."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1).reshape(-1, 2)
    return grid @ np.transpose(root) + mean, np.outer(w, w).ravel()


def test_moments_of_an_accurately_weighted_normal():
    mean, root = np.array([1.0, -2.0]), np.array([[0.5, 0.0], [0.3, 2.0]])
    a = embedding(*tensor_rule(mean, root))
    cov = root @ root.T
    assert a.mean() == pytest.approx(mean)
    assert a.cov() == pytest.approx(cov)
    for order in range(1, 7):
        columns = [stats.norm(m, np.sqrt(v)) for m, v in zip(mean, np.diag(cov), strict=True)]
        assert a.moment(order) == pytest.approx([c.moment(order) for c in columns])
        centred = [stats.norm(0, c.std()).moment(order) for c in columns]
        assert a.moment(order, central=True) == pytest.approx(centred, abs=1e-9)


def test_central_moments_survive_a_large_offset():
    assert embedding(X + 1e6).moment(3, central=True) == pytest.approx(embedding(X).moment(3, central=True), rel=1e-4)


def test_probabilities_and_quantiles_of_an_accurately_weighted_normal():
    """Uniform points under the density as weights: sums are midpoint sums."""
    truth = stats.norm(2.0, 3.0)
    x = np.linspace(-18, 22, 20_001)
    a = embedding(x, truth.pdf(x))
    for u in (-4.0, 1.0, 2.0, 7.5):
        assert a.prob(upper=u) == pytest.approx(truth.cdf(u), abs=2e-4)
        assert a.prob(lower=u) == pytest.approx(truth.sf(u), abs=2e-4)
        assert a.cdf(u) == pytest.approx(truth.cdf(u), abs=2e-4)
    assert a.prob(-1.0, 3.5) == pytest.approx(truth.cdf(3.5) - truth.cdf(-1.0), abs=2e-4)
    levels = [0.01, 0.3, 0.5, 0.95]
    assert a.quantile(levels)[:, 0] == pytest.approx(truth.ppf(levels), abs=4e-3)


def test_probability_of_a_box_of_a_correlated_normal():
    cov = np.array([[1.0, 0.7], [0.7, 2.0]])
    truth = stats.multivariate_normal([0.5, -1.0], cov)
    side = np.linspace(-8, 8, 401)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2) + truth.mean
    a = embedding(grid, truth.pdf(grid))
    assert a.prob([0.0, -2.0], [1.5, 0.5]) == pytest.approx(truth.cdf([1.5, 0.5], lower_limit=[0.0, -2.0]), abs=0.01)
    assert a.prob(upper=0.01) == pytest.approx(truth.cdf([0.01, 0.01]), abs=0.01)
    assert a.prob(upper=[0.01, np.inf]) == pytest.approx(stats.norm(0.5, 1.0).cdf(0.01), abs=0.01)
    assert a.prob(lower=[-np.inf, 0.01]) == pytest.approx(stats.norm(-1.0, np.sqrt(2.0)).sf(0.01), abs=0.01)


def test_a_box_is_open_below_and_closed_above():
    a = embedding([0.0, 1.0, 2.0, 3.0])
    assert (a.prob(upper=1.0), a.prob(lower=1.0), a.prob(1.0, 2.0), a.prob(1.0, 1.0)) == (0.5, 0.5, 0.25, 0.0)
    assert a.prob(-np.inf, np.inf) == 1.0
    assert a.prob(lower=np.inf) == a.prob(upper=-np.inf) == 0.0


def test_shapes_of_the_distribution_function():
    a = embedding(X)
    assert a.cdf(0.0) == pytest.approx((X <= 0).mean(0))
    assert a.cdf(X[:5]) == pytest.approx(np.stack([(x >= X).mean(0) for x in X[:5]]))
    assert embedding(X[:, 0]).cdf(X[:5, 0]).shape == (5, 1)


@settings(derandomize=True, max_examples=80, deadline=None)
@given(
    arrays(np.float64, 7, elements=st.floats(-3, 3, width=16).map(round)),
    arrays(np.float64, 7, elements=st.floats(-1, 1, width=32)),
    st.floats(0.001, 1.0),
)
def test_quantiles_and_probabilities_invert_each_other(points, weights, level):
    """Signed weights on points with ties: one rising function from 0 to 1 serves all three."""
    assume(abs(weights.sum()) > 1e-3)
    a = embedding(points, weights)
    at = np.linspace(-4, 4, 33)
    rising = a.cdf(at)[:, 0]
    assert (np.diff(rising) >= 0).all()
    assert (rising[0], rising[-1]) == (0.0, 1.0)
    assert [a.prob(upper=u) for u in at] == pytest.approx(rising, abs=1e-12)
    assert [a.prob(-1.5, u) for u in at[at > -1.5]] == pytest.approx((rising - a.cdf(-1.5))[at > -1.5], abs=1e-12)
    q = a.quantile(level)[0]
    assert a.prob(upper=q) >= level - 1e-9
    assert a.prob(upper=np.nextafter(q, -np.inf)) < level


def test_raw_readings_are_plain_sums():
    """Weights 0.6, -0.2, 0.6 step to 0.6, 0.4 and 1."""
    a = embedding([0.0, 1.0, 2.0], [0.6, -0.2, 0.6])
    assert a.cdf([0.0, 1.0, 2.0], raw=True)[:, 0] == pytest.approx([0.6, 0.4, 1.0])
    assert a.cdf([0.0, 1.0, 2.0])[:, 0] == pytest.approx([0.5, 0.5, 1.0])
    assert a.prob(0.5, 1.5, raw=True) == pytest.approx(-0.2)
    assert a.prob(0.5, 1.5) == 0.0
    assert a.quantile(0.55, raw=True) == 0.0
    assert a.quantile(0.55) == 2.0
    plane = embedding([[0.0, 0.0], [1.0, 1.0]], [1.4, -0.4])
    assert plane.prob(upper=[0.5, 0.5], raw=True) == pytest.approx(1.4)
    assert plane.prob(upper=[0.5, 0.5]) == 1.0
    assert plane.prob(lower=[0.5, 0.5]) == 0.0


def test_probabilities_of_events_stay_between_0_and_1():
    """Of vectors and of labels; the plain sum is what `expect` gives, and the two events of a pair add up to one."""
    a = embedding([0.0, 1.0, 2.0, 3.0], [1.3, -0.6, 0.8, 0.5])  # sums to 2
    below = lambda x: x[:, 0] < 0.5  # noqa: E731
    assert a.prob(event=below) == pytest.approx(0.65)
    assert a.prob(event=lambda x: x[:, 0] == 1) == 0.0
    assert a.prob(event=lambda x: x[:, 0] != 1) == 1.0
    assert a.prob(event=lambda x: x[:, 0] == 1, raw=True) == pytest.approx(-0.3)
    assert a.prob(event=below, raw=True) == pytest.approx(a.normalise().expect(below))
    assert a.prob(event=lambda x: np.column_stack([below(x), ~below(x)])).sum() == pytest.approx(1.0)
    trees = kb.MeanEmbedding(["ash", "elm", "oak"], [0.7, -0.1, 0.4], kb.Delta())
    assert trees.prob(event=lambda tree: tree == "elm") == 0.0
    assert trees.prob(event=lambda tree: tree != "oak") == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"event": 3.0}, "event must be a function of points, got float"),
        ({"event": lambda x: x[:, 0]}, "event must return True or False"),
        ({"event": lambda x: x[:3, 0] > 0}, "event returned shape"),
        ({"event": lambda x: x[:, 0] > 0, "lower": 0.0}, "not both"),
        ({}, "or an event"),
    ],
)
def test_what_is_no_event_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        embedding(X, SIGNED).prob(**given)


def test_the_order_of_equal_points_does_not_matter():
    """Two copies with weights 5 and -5 are no weight at all, whichever comes first."""
    for first in (5.0, -5.0):
        a = embedding([0.0, 1.0, 1.0, 2.0], [0.5, first, -first, 0.5])
        assert a.cdf([0.0, 1.0, 2.0])[:, 0] == pytest.approx([0.5, 0.5, 1.0])
        assert a.quantile([0.3, 0.7])[:, 0] == pytest.approx([0.0, 2.0])


def test_many_rows_at_once_are_the_rows_one_by_one():
    W = RNG.normal(0.3, 1.0, size=(4, 40))
    points, rows = _decode.vectors_of(X, W)
    each = [embedding(X, w) for w in W]
    lower, upper = [-1.0, -np.inf, -2.0], [1.0, 0.5, np.inf]
    assert _moments.means(points, rows) == pytest.approx(np.stack([a.mean() for a in each]))
    assert _moments.deviations(points, rows) == pytest.approx(np.stack([a.std() for a in each]))
    assert _moments.covariances(points, rows) == pytest.approx(np.stack([a.cov() for a in each]))
    expected = np.stack([a.quantile([0.2, 0.8]) for a in each], axis=1)
    assert _decode.quantiles(points, rows, [0.2, 0.8]) == pytest.approx(expected)
    for raw in (False, True):
        found = _decode.probabilities(points, rows, lower, upper, raw=raw)
        assert found == pytest.approx([a.prob(lower, upper, raw=raw) for a in each])
        assert _decode.probabilities(points, rows, None, [0.3, np.inf, np.inf], raw=raw) == pytest.approx(
            [a.prob(upper=[0.3, np.inf, np.inf], raw=raw) for a in each]
        )
    W[2] -= W[2].mean()
    with pytest.raises(ValueError, match="no distribution"):
        _decode.vectors_of(X, W)


def test_negative_mass():
    assert embedding([0.0, 1.0, 2.0], [0.6, -0.2, 0.6]).negative_mass() == pytest.approx(0.2 / 1.4)
    assert embedding([0.0, 1.0, 2.0], [-0.6, 0.2, -0.6]).negative_mass() == pytest.approx(0.2 / 1.4)
    assert embedding(X).negative_mass() == 0.0


def test_samples_follow_the_positive_weights():
    a = embedding([0.0, 1.0, 2.0], [0.75, -0.25, 0.5])
    drawn = a.sample(20_000, random_state=0)
    assert drawn.shape == (20_000, 1)
    assert np.mean(drawn == 0.0) == pytest.approx(0.6, abs=0.015)
    assert not (drawn == 1.0).any()
    assert (drawn == a.sample(20_000, random_state=0)).all()
    assert set(kb.MeanEmbedding(["a", "b"], kernel=kb.Delta()).sample(50, random_state=1)) == {"a", "b"}


# ----------------------------------------------------------------------------------------------- what is refused

READINGS = {
    "mean": lambda a: a.mean(),
    "cov": lambda a: a.cov(),
    "quantile": lambda a: a.quantile(0.5),
    "interval": lambda a: a.interval(),
    "density": lambda a: a.density(np.zeros((1, 1))),
    "moment": lambda a: a.moment(2),
    "prob": lambda a: a.prob(upper=0.0),
    "cdf": lambda a: a.cdf(0.0),
    "mode": lambda a: a.mode("density"),
    "mixture": lambda a: a.mixture(1),
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


def test_bad_boxes_and_orders_are_refused():
    a = embedding(X)
    with pytest.raises(ValueError, match="lower, upper, or both"):
        a.prob()
    with pytest.raises(ValueError, match="lower must not exceed upper"):
        a.prob(1.0, 0.0)
    with pytest.raises(ValueError, match="lower must not exceed upper"):
        a.prob([0.0, 0.0, 3.0], [1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match=r"one number or one per column \(3\)"):
        a.prob(upper=[0.0, 1.0])
    for bad in (np.nan, "half", [[0.0, 0.0, 0.0]], 1j):
        with pytest.raises(ValueError, match="upper"):
            a.prob(upper=bad)
    for order in (0, -1, 1.5, "two"):
        with pytest.raises(ValueError, match="order"):
            a.moment(order)
    with pytest.raises(ValueError, match="columns"):
        a.cdf([[0.0]])
    for n in (0, 2.5):
        with pytest.raises(ValueError, match="n must be"):
            a.sample(n)


def test_what_needs_no_vectors_still_needs_a_distribution():
    nothing = embedding([0.0, 1.0, 2.0], [0.1, 0.2, -0.3])
    for reading in (nothing.mode, nothing.preimage, nothing.negative_mass, lambda: nothing.sample(2)):
        with pytest.raises(ValueError, match="no distribution"):
            reading()

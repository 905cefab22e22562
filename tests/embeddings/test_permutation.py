"""MMD and HSIC against textbook loops and closed forms for normals; their tests against what a test must do."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes.embeddings import _permutation
from oracles.closed_forms import gaussian_gram, normal_inner, normal_mmd_squared

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(9, 2)), RNG.normal(0.7, 1.2, size=(6, 2))
KERNEL = kb.Gaussian(0.9)


def textbook_mmd(X, Y, k):
    """Gretton et al. (2012), equation 3, term by term."""
    n, m = len(X), len(Y)
    xx = sum(k(X[i], X[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    yy = sum(k(Y[i], Y[j]) for i in range(m) for j in range(m) if i != j) / (m * (m - 1))
    xy = sum(k(x, y) for x in X for y in Y) / (n * m)
    return xx + yy - 2 * xy


def gaussian(x, y):
    return math.exp(-np.sum((x - y) ** 2) / (2 * 0.9**2))


def binomial_range(trials, p):
    """Counts that a binomial leaves once in a thousand times."""
    return stats.binom.ppf([0.0005, 0.9995], trials, p)


# -------------------------------------------------------------------------------------------------------- MMD


def test_the_biased_estimate_is_the_squared_distance():
    a, b = kb.MeanEmbedding(X, kernel=KERNEL), kb.MeanEmbedding(Y, kernel=KERNEL)
    assert kb.mmd(X, Y, KERNEL, unbiased=False) == pytest.approx(a.distance(b) ** 2)
    assert isinstance(kb.mmd(X, Y, KERNEL), float)


def test_the_unbiased_estimate_is_the_textbook_loop():
    assert kb.mmd(X, Y, KERNEL) == pytest.approx(textbook_mmd(X, Y, gaussian))
    assert kb.mmd(Y, X, KERNEL) == pytest.approx(textbook_mmd(X, Y, gaussian))
    scaled = 3.0 * kb.Linear() + KERNEL  # a diagonal that is not constant
    assert kb.mmd(X, Y, scaled) == pytest.approx(textbook_mmd(X, Y, lambda x, y: 3 * x @ y + gaussian(x, y)))


def test_the_default_kernel_has_the_median_distance_of_the_pooled_sample():
    assert kb.mmd(X, Y) == kb.mmd(X, Y, kb.Gaussian(kb.median_lengthscale(np.concatenate([X, Y]))))


def test_samples_of_labels():
    counts = {"a": (3, 1), "b": (1, 2)}
    first, second = (np.repeat(list(counts), [c[i] for c in counts.values()]) for i in (0, 1))
    assert kb.mmd(first, second, kb.Delta()) == pytest.approx(textbook_mmd(first, second, lambda a, b: a == b))


def test_the_unbiased_estimate_has_mean_zero_under_the_null():
    estimates = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        estimates.append(kb.mmd(rng.normal(size=12), rng.normal(size=9), KERNEL))
    assert abs(np.mean(estimates)) < 3 * np.std(estimates) / math.sqrt(300)
    assert min(estimates) < 0 < max(estimates)


def test_mmd_of_two_normals():
    """To first order the estimate is twice the difference of the witness's means, which gives its standard error."""
    n, l = 2000, 0.9
    cov = np.array([[1.0, 0.5], [0.5, 1.0]])
    p, q = (np.zeros(2), np.eye(2)), (np.array([0.8, 0.0]), cov)
    rng = np.random.default_rng(0)
    P, Q = rng.normal(size=(n, 2)), q[0] + rng.normal(size=(n, 2)) @ np.linalg.cholesky(cov).T

    def witness(x):
        return normal_inner(x, np.zeros((2, 2)), *p, l) - normal_inner(x, np.zeros((2, 2)), *q, l)

    variances = [np.var([witness(x) for x in sample[:500]]) for sample in (P, Q)]
    error = 2 * math.sqrt(sum(variances) / n)
    truth = normal_mmd_squared(p, q, l)
    assert truth > 10 * error  # or the comparison would say nothing
    assert kb.mmd(P, Q, kb.Gaussian(l)) == pytest.approx(truth, abs=4 * error)


@pytest.mark.parametrize("unbiased", [True, False])
def test_permutation_statistics_are_mmd_of_the_permuted_samples(unbiased):
    Z = np.concatenate([X, Y])
    orders = [RNG.permutation(15) for _ in range(4)]
    first = np.stack([np.isin(np.arange(15), order[:9]) for order in orders], axis=1)
    expected = [kb.mmd(Z[order[:9]], Z[order[9:]], KERNEL, unbiased=unbiased) for order in orders]
    assert _permutation._kernel_sums(KERNEL, Z, first).mmd(9, 6, unbiased) == pytest.approx(expected)
    features = kb.IncompleteCholesky().fit(KERNEL, Z)
    assert _permutation._feature_sums(features, Z, first).mmd(9, 6, unbiased) == pytest.approx(expected)


def test_the_null_is_made_of_permutations_of_the_labels():
    """With 3 and 2 points there are ten ways to split the sample: each is drawn as often as the others."""
    x, y = np.array([0.0, 1.0, 5.0]), np.array([2.0, 9.0])
    Z = np.concatenate([x, y])[:, None]
    result = kb.mmd_test(x, y, KERNEL, permutations=2000, random_state=0)
    splits = [
        textbook_mmd(Z[[i for i in range(5) if i not in (a, b)]], Z[[a, b]], gaussian)
        for a in range(5)
        for b in range(a)
    ]
    values, counts = np.unique(result.null.round(10), return_counts=True)
    expected, ways = np.unique(np.round(splits, 10), return_counts=True)
    assert values == pytest.approx(expected)
    assert stats.chisquare(counts, 200 * ways).pvalue > 1e-3
    assert result.pvalue == pytest.approx((1 + np.sum(result.null >= result.statistic - 1e-12)) / 2001)


def test_permutations_in_chunks_are_the_same_permutations(monkeypatch):
    whole = kb.mmd_test(X, Y, KERNEL, permutations=50, random_state=3)
    monkeypatch.setattr(_permutation, "_PERMUTATION_ELEMENTS", 15 * 7)
    parts = kb.mmd_test(X, Y, KERNEL, permutations=50, random_state=3)
    assert parts.null == pytest.approx(whole.null, abs=1e-14)
    assert parts.pvalue == whole.pvalue


def test_mmd_test_is_calibrated_under_the_null():
    levels = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        result = kb.mmd_test(rng.normal(size=14), rng.normal(size=10), permutations=99, random_state=rng)
        levels.append(result.pvalue)
    for level in (0.1, 0.5):
        low, high = binomial_range(200, level)
        assert low <= np.sum(np.array(levels) <= level) <= high


@pytest.mark.parametrize("unbiased", [True, False])
def test_mmd_test_sees_a_difference(unbiased):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=120), rng.choice([-1.0, 1.0], 100) + 0.1 * rng.normal(size=100)  # equal mean and variance
    narrow = kb.Gaussian(0.4)
    result = kb.mmd_test(x, y, narrow, unbiased=unbiased, permutations=199, random_state=0)
    assert result.pvalue == pytest.approx(1 / 200)
    assert result.statistic == pytest.approx(kb.mmd(x, y, narrow, unbiased=unbiased))
    assert result.statistic > result.null.max()
    assert result.null.shape == (199,)
    assert result.null.dtype == np.float64


def test_a_sample_tested_against_itself_has_p_value_one():
    assert kb.mmd_test(X, X, KERNEL, unbiased=False, permutations=50, random_state=0).pvalue == 1.0


@pytest.mark.parametrize("test", [kb.mmd_test, kb.hsic_test])
def test_same_seed_same_answer(test):
    first, again, other = (test(X[:6], Y, permutations=40, random_state=seed) for seed in (7, 7, 8))
    assert (first.null == again.null).all()
    assert first.pvalue == again.pvalue
    assert first.statistic == other.statistic
    assert (first.null != other.null).any()
    generators = [test(X[:6], Y, permutations=40, random_state=np.random.default_rng(7)) for _ in range(2)]
    assert (generators[0].null == generators[1].null).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, Y[:, :1]), "columns"),
        ((X, Y[:, :1], KERNEL), "features per point"),
        ((X, Y[:1]), "two points"),
        ((X, [[np.nan, 1.0]] * 3), "NaN"),
        ((np.zeros(5), np.zeros(4)), "distinct"),
    ],
)
def test_bad_samples_are_refused(arguments, message):
    for function in (kb.mmd, kb.mmd_test):
        with pytest.raises(ValueError, match=message):
            function(*arguments)


@pytest.mark.parametrize("permutations", [0, -1, 2.5, "many"])
def test_bad_numbers_of_permutations_are_refused(permutations):
    with pytest.raises(ValueError, match="permutations"):
        kb.mmd_test(X, Y, permutations=permutations)
    with pytest.raises(ValueError, match="permutations"):
        kb.hsic_test(X[:6], Y, permutations=permutations)


# ------------------------------------------------------------------------------------------------ many points


@pytest.fixture
def features(monkeypatch):
    """Both tests as they are for many points, on few."""
    monkeypatch.setattr(_permutation, "_EXACT_POOL", 0)
    monkeypatch.setattr(_permutation, "_EXACT_PAIRS", 0)
    monkeypatch.setattr(_permutation, "_LANDMARKS", 12)
    monkeypatch.setattr(_permutation, "_COMPONENTS", 4)
    monkeypatch.setattr(_permutation, "_FEATURE_ROWS", 10)


@pytest.mark.parametrize("test", [kb.mmd_test, kb.hsic_test])
def test_with_features_the_level_is_exact(test, features):
    levels = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x, y = rng.normal(size=(24, 2)), rng.normal(size=(24, 2))
        levels.append(test(x, y, permutations=49, random_state=rng).pvalue)
    for level in (0.1, 0.5):
        low, high = binomial_range(200, level)
        assert low <= np.sum(np.array(levels) <= level) <= high


def test_with_features_the_statistic_is_close_to_that_of_the_kernel(features, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = x**2 + rng.normal(size=(200, 3))
    monkeypatch.setattr(_permutation, "_LANDMARKS", 80)
    monkeypatch.setattr(_permutation, "_COMPONENTS", 20)
    dependence = kb.hsic_test(x, y, permutations=99, random_state=0)
    assert dependence.statistic == pytest.approx(kb.hsic(x, y), rel=0.05)
    assert dependence.pvalue == pytest.approx(1 / 100)
    H = np.eye(200) - 1 / 200  # the mean over all permutations, as for the kernel itself
    traces = [np.trace(H @ gaussian_gram(v, v, kb.median_lengthscale(v))) for v in (x, y)]
    assert dependence.null.mean() == pytest.approx(traces[0] * traces[1] / (199 * 200**2), rel=0.05)
    distance = kb.mmd_test(x, y, permutations=99, random_state=0)
    assert distance.statistic == pytest.approx(kb.mmd(x, y), rel=0.05)
    assert distance.pvalue == pytest.approx(1 / 100)


def test_thin_factors_give_hsic_of_the_permuted_pairs():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=510), rng.integers(0, 3, 510)
    result = kb.hsic_test(x, y, KERNEL, kb.Delta(), permutations=3, random_state=5)
    rng = np.random.default_rng(5)
    expected = [kb.hsic(x, y[rng.permutation(510)], KERNEL, kb.Delta()) for _ in range(3)]
    assert result.statistic == pytest.approx(kb.hsic(x, y, KERNEL, kb.Delta()), rel=1e-6)
    assert result.null == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("test", [kb.mmd_test, kb.hsic_test])
def test_many_points_need_no_gram_matrix(test):
    n = 12_000
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, 4)), rng.normal(size=(n, 4))
    tracemalloc.start()
    try:
        test(x, y, permutations=2, random_state=0)
        assert tracemalloc.get_traced_memory()[1] < 0.25 * 8 * n * n
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------------------------------------------- HSIC


def test_hsic_is_the_norm_of_the_cross_covariance_and_the_trace():
    y = X[:, 0] ** 2 + 0.1 * X[:, 1]
    L = kb.Laplace(0.5)
    found = kb.hsic(X, y, KERNEL, L)
    assert found == pytest.approx(kb.CrossCovariance(X, y, KERNEL, L).norm() ** 2)
    H = np.eye(9) - np.full((9, 9), 1 / 9)
    K, G = gaussian_gram(X, X, 0.9), np.exp(-np.abs(y[:, None] - y) / 0.5)
    assert found == pytest.approx(np.trace(K @ H @ G @ H) / 81)
    assert isinstance(found, float)


def test_hsic_of_linear_kernels_is_the_squared_cross_covariance():
    Z = RNG.normal(size=(9, 3))
    covariance = np.cov(X.T, Z.T, bias=True)[:2, 2:]
    assert kb.hsic(X, Z, kb.Linear(), kb.Linear()) == pytest.approx((covariance**2).sum())


def test_hsic_is_the_mmd_of_the_joint_and_the_product():
    """With all n^2 pairs standing for the product of the margins."""
    y = Y[:, :1]
    x = X[:6]
    kernel = kb.Gaussian(0.9).on(0, 1) * kb.Gaussian(0.5).on(2)
    product = [np.concatenate([a, b]) for a in x for b in y]
    distance = kb.MeanEmbedding(np.hstack([x, y]), kernel=kernel).distance(kb.MeanEmbedding(product, kernel=kernel))
    assert kb.hsic(x, y, kb.Gaussian(0.9), kb.Gaussian(0.5)) == pytest.approx(distance**2)


def test_hsic_of_independent_variables_is_of_order_one_over_n():
    """Its expectation is (1 - |mu_x|^2)(1 - |mu_y|^2) / n to first order (Gretton et al. 2008, theorem 3)."""
    n = 60
    values = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        values.append(kb.hsic(rng.normal(size=n), rng.normal(size=n), kb.Gaussian(1.0), kb.Gaussian(0.5)))
    spreads = [1 - normal_inner(0.0, 1.0, 0.0, 1.0, l) for l in (1.0, 0.5)]
    wanted, error = spreads[0] * spreads[1] / n, np.std(values) / np.sqrt(len(values))
    assert np.mean(values) == pytest.approx(wanted, abs=4 * error + wanted / n)


def test_the_mean_of_the_permutation_null_is_known():
    """Over all permutations tr(K H P L P' H) averages to tr(H K H) tr(H L H) / (n - 1)."""
    n = 40
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=n), rng.normal(size=n)
    result = kb.hsic_test(x, y, kb.Gaussian(1.0), kb.Gaussian(0.5), permutations=1000, random_state=0)
    H = np.eye(n) - 1 / n
    traces = [np.trace(H @ gaussian_gram(v[:, None], v[:, None], l)) for v, l in ((x, 1.0), (y, 0.5))]
    expected = traces[0] * traces[1] / ((n - 1) * n**2)
    assert result.null.mean() == pytest.approx(expected, abs=4 * result.null.std() / math.sqrt(1000))


def test_hsic_permutations_are_permutations_of_the_pairs():
    """With three pairs there are six pairings."""
    x, y = np.array([0.0, 1.0, 5.0]), np.array([2.0, 9.0, 3.0])
    result = kb.hsic_test(x, y, KERNEL, KERNEL, permutations=200, random_state=0)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
    pairings = np.unique(np.round([kb.hsic(x, y[list(o)], KERNEL, KERNEL) for o in orders], 12))
    assert np.unique(result.null.round(12)) == pytest.approx(pairings)


def test_hsic_sees_dependence_without_correlation():
    rng = np.random.default_rng(2)
    angle = rng.uniform(0, 2 * np.pi) + np.linspace(0, 2 * np.pi, 150)
    x, y = np.cos(angle) + 0.1 * rng.normal(size=150), np.sin(angle) + 0.1 * rng.normal(size=150)
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.2
    narrow = kb.Gaussian(0.4)
    result = kb.hsic_test(x, y, narrow, narrow, permutations=199, random_state=0)
    assert result.pvalue == pytest.approx(1 / 200)
    assert result.statistic == pytest.approx(kb.hsic(x, y, narrow, narrow))
    assert kb.hsic_test(x, np.abs(x), permutations=199, random_state=0).pvalue == pytest.approx(1 / 200)


def test_hsic_test_is_calibrated_under_independence():
    levels = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        result = kb.hsic_test(rng.normal(size=15), rng.exponential(size=15), permutations=49, random_state=rng)
        levels.append(result.pvalue)
    for level in (0.1, 0.5):
        low, high = binomial_range(200, level)
        assert low <= np.sum(np.array(levels) <= level) <= high


def test_unpaired_or_single_points_are_refused():
    for function in (kb.hsic, kb.hsic_test):
        with pytest.raises(ValueError, match="paired"):
            function(X, Y)
        with pytest.raises(ValueError, match="two pairs"):
            function(X[:1], Y[:1], KERNEL, KERNEL)

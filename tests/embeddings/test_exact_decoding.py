"""Numbers read off closed-form embeddings, and off the distributions they hold, against SciPy and plain sums."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from scipy import integrate, stats

import kernelbayes as kb

COV = np.array([[1.0, 0.6], [0.6, 0.8]])
NORMAL, UNIFORM = stats.norm(0.5, 0.8), stats.uniform(-1.0, 3.0)
GRID = np.linspace(-4.0, 5.0, 19)


def analytic(distribution):
    return kb.AnalyticEmbedding(distribution, kb.Gaussian(1.0))


@pytest.mark.parametrize("truth", [NORMAL, UNIFORM], ids=["normal", "uniform"])
def test_one_column_is_what_scipy_says(truth):
    a = analytic(truth)
    levels = [0.01, 0.5, 0.9]
    assert a.mean() == pytest.approx(truth.mean())
    assert a.cov() == pytest.approx(np.array([[truth.var()]]))
    assert a.quantile(levels) == pytest.approx(truth.ppf(levels)[:, None])
    assert a.quantile(0.2).shape == (1,)
    assert a.interval(0.8)[:, 0] == pytest.approx(truth.interval(0.8))
    assert a.cdf(GRID) == pytest.approx(truth.cdf(GRID)[:, None])
    assert a.cdf(0.3) == pytest.approx(truth.cdf(0.3))
    assert a.density(GRID) == pytest.approx(truth.pdf(GRID))
    assert a.prob(0.1, 1.1) == pytest.approx(truth.cdf(1.1) - truth.cdf(0.1))
    assert a.prob(lower=0.7) == pytest.approx(truth.sf(0.7))
    for order in (1, 2, 3, 4):
        assert a.moment(order) == pytest.approx(truth.moment(order))
        about = integrate.quad(lambda x, o=order: (x - truth.mean()) ** o * truth.pdf(x), -9, 9, points=[-1, 2])[0]
        assert a.moment(order, central=True) == pytest.approx(about, abs=1e-9)
    assert a.mode() == pytest.approx(truth.mean())
    assert (a.quantile([0.0, 1.0])[:, 0] == truth.support()).all()


def test_independent_columns():
    a = analytic([NORMAL, UNIFORM])
    x = np.array([[0.2, 1.7], [3.0, 0.1], [0.0, 5.0]])
    assert a.cdf(x) == pytest.approx(np.column_stack([NORMAL.cdf(x[:, 0]), UNIFORM.cdf(x[:, 1])]))
    assert a.density(x) == pytest.approx(NORMAL.pdf(x[:, 0]) * UNIFORM.pdf(x[:, 1]))
    assert a.prob([0.0, -0.5], [1.0, 0.5]) == pytest.approx((NORMAL.cdf(1) - NORMAL.cdf(0)) / 3.0)
    assert a.prob(upper=0.0) == pytest.approx(NORMAL.cdf(0.0) / 3.0)
    assert a.quantile(0.25) == pytest.approx([NORMAL.ppf(0.25), UNIFORM.ppf(0.25)])


def test_a_correlated_normal():
    truth = stats.multivariate_normal([1.0, -1.0], COV)
    a = analytic(truth)
    x = np.random.default_rng(0).normal(size=(5, 2))
    assert a.density(x) == pytest.approx(truth.pdf(x))
    assert a.prob([0.0, -2.0], [1.5, 0.0]) == pytest.approx(truth.cdf([1.5, 0.0], lower_limit=[0.0, -2.0]), abs=1e-6)
    assert a.prob(upper=[np.inf, -1.0]) == 0.5
    assert a.quantile(0.9) == pytest.approx([stats.norm(1.0, 1.0).ppf(0.9), stats.norm(-1.0, np.sqrt(0.8)).ppf(0.9)])
    assert a.moment(3, central=True) == pytest.approx([0.0, 0.0], abs=1e-12)
    three = analytic(stats.multivariate_normal(np.zeros(3), 0.5 + 0.5 * np.eye(3)))
    assert three.prob(lower=0.0) == pytest.approx(0.25, abs=1e-5)  # an orthant, with correlations of one half
    seeded = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 16)  # older ones draw where no seed reaches
    assert three.prob(lower=0.0) == pytest.approx(three.prob(lower=0.0), rel=0, abs=0.0 if seeded else 1e-5)


def test_mixtures_on_the_line():
    parts, shares = [stats.norm(-1.0, 0.5), stats.uniform(2.0, 1.0), stats.norm(4.0, 2.0)], [0.2, 0.5, 0.3]
    a = analytic(kb.Mixture(parts, shares))

    def mixed(of):
        return sum(s * of(p) for s, p in zip(shares, parts, strict=True))

    assert a.density(GRID) == pytest.approx(mixed(lambda p: p.pdf(GRID)))
    assert a.cdf(GRID)[:, 0] == pytest.approx(mixed(lambda p: p.cdf(GRID)))
    assert a.prob(0.0, 2.5) == pytest.approx(mixed(lambda p: p.cdf(2.5) - p.cdf(0.0)))
    levels = np.array([0.0001, 0.1, 0.2, 0.5, 0.75, 0.999])
    assert a.cdf(a.quantile(levels))[:, 0] == pytest.approx(levels, abs=1e-12)
    assert a.mean()[0] == pytest.approx(mixed(lambda p: p.mean()))
    assert a.cov()[0, 0] == pytest.approx(mixed(lambda p: p.moment(2)) - a.mean()[0] ** 2)
    assert a.moment(3)[0] == pytest.approx(mixed(lambda p: p.moment(3)))
    assert a.moment(2, central=True) == pytest.approx(a.cov()[0])
    assert (a.quantile([0.0, 1.0])[:, 0] == [-np.inf, np.inf]).all()


def test_the_mode_of_a_mixture_is_the_maximum_of_its_density():
    """The highest point of two overlapping humps is the mean of neither."""
    line = analytic(kb.Mixture([stats.norm(0.0, 1.0), stats.norm(1.5, 0.7)], [0.55, 0.45]))
    grid = np.linspace(-3, 4, 70_001)
    assert line.mode()[0] == pytest.approx(grid[line.density(grid).argmax()], abs=2e-4)
    plane = analytic(kb.Mixture([stats.multivariate_normal([0, 0], COV), stats.multivariate_normal([1, -1], COV)]))
    side = np.linspace(-1, 2, 301)
    square = np.stack(np.meshgrid(side, side - 1.0, indexing="ij"), axis=-1).reshape(-1, 2)
    density = plane.density(square)
    assert plane.density(plane.mode()[None])[0] >= density.max()
    assert plane.mode() == pytest.approx(square[density.argmax()], abs=0.02)


def test_expectations():
    parts = [stats.multivariate_normal([1.0, -1.0], COV), [NORMAL, UNIFORM]]
    plane = kb.AnalyticEmbedding(kb.Mixture(parts, [0.25, 0.75]), kb.Linear())
    assert plane.expect(lambda x: x) == pytest.approx(plane.mean(), abs=1e-3)
    assert plane.expect(lambda x: x[:, 0] * x[:, 1]) == pytest.approx(
        plane.cov()[0, 1] + np.prod(plane.mean()), abs=2e-3
    )
    assert plane.expect(lambda x: (x <= 0.0).all(1)) == pytest.approx(plane.prob(upper=0.0), abs=1e-3)
    line = analytic(NORMAL)
    assert line.expect(lambda x: np.cos(x[:, 0])) == pytest.approx(np.cos(0.5) * np.exp(-0.32), abs=2e-6)
    with pytest.raises(ValueError, match="one row per point"):
        line.expect(lambda x: 1.0)


def test_draws_have_the_moments():
    mixture = kb.Mixture([stats.multivariate_normal([1.0, -1.0], COV), [NORMAL, UNIFORM]], [0.25, 0.75])
    a = kb.AnalyticEmbedding(mixture, kb.Linear())
    drawn = a.sample(40_000, random_state=0)
    assert drawn.mean(0) == pytest.approx(a.mean(), abs=0.03)
    assert np.cov(drawn.T) == pytest.approx(a.cov(), abs=0.04)
    assert (drawn == a.sample(40_000, random_state=0)).all()
    assert (mixture.sample(9, 3) == mixture.sample(9, np.random.default_rng(3))).all()


def test_a_column_without_width():
    a = analytic(stats.multivariate_normal([2.0, 0.5], np.diag([0.0, 1.0]), allow_singular=True))
    assert a.cdf([[1.9, 0.5], [2.0, 0.5]]) == pytest.approx(np.array([[0.0, 0.5], [1.0, 0.5]]))
    assert a.quantile([0.0, 0.3, 1.0])[:, 0] == pytest.approx([2.0, 2.0, 2.0])
    assert a.prob([1.0, 0.5], [2.0, np.inf]) == pytest.approx(0.5)
    assert a.moment(2) == pytest.approx([4.0, 1.25])
    with pytest.raises(ValueError, match="singular covariance has no density"):
        a.density([[2.0, 0.5]])


def test_mixtures_of_mixtures():
    inner = kb.Mixture([stats.norm(0.0), stats.norm(4.0)])
    nested, flat = (
        kb.Mixture([inner, stats.norm(8.0)]),
        kb.Mixture([stats.norm(m) for m in (0.0, 4.0, 8.0)], [0.25, 0.25, 0.5]),
    )
    assert nested.covariance() == pytest.approx(flat.covariance())
    assert nested.density(GRID) == pytest.approx(flat.density(GRID))
    assert analytic(nested).quantile([0.1, 0.6]) == pytest.approx(analytic(flat).quantile([0.1, 0.6]))
    assert analytic(nested).moment(4) == pytest.approx(analytic(flat).moment(4))


def test_an_embedding_and_its_distribution_agree():
    """What a large sample says of a mixture is what the closed form says."""
    truth = analytic(kb.Mixture([stats.norm(-1.0, 0.5), stats.norm(2.0, 1.0)], [0.4, 0.6]))
    sample = kb.MeanEmbedding(truth.sample(20_000, random_state=0), kernel=kb.Gaussian(1.0))
    assert sample.interval(0.9) == pytest.approx(truth.interval(0.9), abs=0.06)
    assert sample.prob(-1.0, 1.0) == pytest.approx(truth.prob(-1.0, 1.0), abs=0.015)
    assert sample.moment(3) == pytest.approx(truth.moment(3), rel=0.05)
    assert sample.density(GRID) == pytest.approx(truth.density(GRID), abs=0.03)


def test_bad_questions_are_refused():
    a = analytic([NORMAL, UNIFORM])
    with pytest.raises(ValueError, match="lower must not exceed upper"):
        a.prob(1.0, 0.0)
    with pytest.raises(ValueError, match="one per column"):
        a.prob(upper=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="order"):
        a.moment(0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        a.quantile(1.2)
    with pytest.raises(ValueError, match="level"):
        a.interval(95)
    with pytest.raises(ValueError, match="columns"):
        a.density([1.0, 2.0])
    with pytest.raises(ValueError, match="columns"):
        a.cdf([1.0, 2.0])
    with pytest.raises(ValueError, match="n must be"):
        a.sample(0)
    with pytest.raises(ValueError, match="columns"):
        kb.Mixture([NORMAL]).density([[1.0, 2.0]])


def test_probability_of_an_event_by_quasi_monte_carlo():
    ring = kb.AnalyticEmbedding([stats.norm(), stats.norm()], kb.Gaussian())
    found = ring.prob(event=lambda x: (x**2).sum(1) < 1.0)
    assert found == pytest.approx(stats.chi2(2).cdf(1.0), abs=2e-3)

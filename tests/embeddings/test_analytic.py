"""Embeddings in closed form against formulas for normals, numerical integration, and samples."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

import kernelbayes as kb
from oracles.closed_forms import normal_inner, normal_mmd_squared

COV = np.array([[1.0, 0.6], [0.6, 0.8]])
OTHER = np.array([[0.5, -0.2], [-0.2, 1.5]])
NORMALS = {
    "line": ((0.3, 0.49), (-1.0, 2.0)),
    "plane": ((np.array([0.3, -1.0]), COV), (np.array([1.0, 0.2]), OTHER)),
}


def frozen(mean, cov):
    return stats.multivariate_normal(mean, cov) if np.ndim(mean) else stats.norm(mean, math.sqrt(cov))


@pytest.mark.parametrize("case", NORMALS)
@pytest.mark.parametrize("lengthscale", [0.4, 2.0])
def test_mmd_of_two_normals(case, lengthscale):
    p, q = NORMALS[case]
    kernel = kb.Gaussian(lengthscale)
    a, b = kb.AnalyticEmbedding(frozen(*p), kernel), kb.AnalyticEmbedding(frozen(*q), kernel)
    assert a.distance(b) ** 2 == pytest.approx(normal_mmd_squared(p, q, lengthscale), rel=1e-10)
    assert a.inner(b) == pytest.approx(normal_inner(*p, *q, lengthscale), rel=1e-10)
    assert a.norm() ** 2 == pytest.approx(normal_inner(*p, *p, lengthscale), rel=1e-10)
    assert b.inner(a) == a.inner(b)


def test_the_formula_for_normals_is_the_integral():
    """The oracle itself, by quadrature."""
    (m, v), (other_m, other_v) = NORMALS["line"]
    p, q = frozen(m, v), frozen(other_m, other_v)
    x, y = np.linspace(-8, 8, 400), np.linspace(-14, 12, 600)  # spectrally accurate: all vanishes at the ends
    k = np.exp(-0.5 * ((x[:, None] - y) / 0.7) ** 2)
    found = p.pdf(x) @ k @ q.pdf(y) * (x[1] - x[0]) * (y[1] - y[0])
    assert normal_inner(m, v, other_m, other_v, 0.7) == pytest.approx(found, rel=1e-10)


def test_values_of_a_normal_embedding_are_inner_products_with_points():
    p, _ = NORMALS["plane"]
    points = np.random.default_rng(0).normal(size=(5, 2))
    values = kb.AnalyticEmbedding(frozen(*p), kb.Gaussian(0.9))(points)
    assert values == pytest.approx([normal_inner(x, np.zeros((2, 2)), *p, 0.9) for x in points], rel=1e-10)
    assert values.dtype == np.float64


def test_inner_products_with_samples_go_through_the_values():
    p, _ = NORMALS["plane"]
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(9, 2)), rng.normal(size=9)
    a, b = kb.AnalyticEmbedding(frozen(*p), kb.Gaussian(0.9)), kb.MeanEmbedding(X, w, kb.Gaussian(0.9))
    cross = sum(wi * normal_inner(x, np.zeros((2, 2)), *p, 0.9) for wi, x in zip(w, X, strict=True))
    assert a.inner(b) == pytest.approx(cross, rel=1e-10)
    assert b.inner(a) == pytest.approx(cross, rel=1e-10)
    expected = math.sqrt(normal_inner(*p, *p, 0.9) + b.norm() ** 2 - 2 * cross)
    assert a.distance(b) == pytest.approx(expected)
    assert b.distance(a) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("first", "second"), list(itertools.combinations(["norm", "uniform", "mixture"], 2)), ids=lambda name: name
)
def test_inner_products_of_different_kinds(first, second):
    """Against a sum over quantiles, each of which stands for an equal share of its distribution."""
    n = 2000
    levels = (np.arange(n) + 0.5) / n
    normal, uniform = stats.norm(0.5, 0.8), stats.uniform(-1.0, 3.0)
    quantiles = {"norm": normal.ppf(levels), "uniform": uniform.ppf(levels)}
    quantiles["mixture"] = np.concatenate([quantiles["norm"][1::2], quantiles["uniform"][::2]])
    kinds = {"norm": normal, "uniform": uniform, "mixture": kb.Mixture([normal, uniform])}
    for kernel, k in ((kb.Gaussian(0.7), lambda t: np.exp(-0.5 * t**2)), (kb.Laplace(0.7), lambda t: np.exp(-abs(t)))):
        a, b = kb.AnalyticEmbedding(kinds[first], kernel), kb.AnalyticEmbedding(kinds[second], kernel)
        expected = k((quantiles[first][:, None] - quantiles[second]) / 0.7).mean()
        assert a.inner(b) == pytest.approx(expected, rel=2e-3)
        assert a.inner(b) == pytest.approx(b.inner(a), rel=1e-12)


def test_independent_columns_multiply():
    columns = [stats.norm(0.0, 1.0), stats.uniform(0.0, 2.0)]
    kernel = kb.Gaussian([0.5, 1.5])
    whole = kb.AnalyticEmbedding(columns, kernel)
    parts = [kb.AnalyticEmbedding(c, kb.Gaussian(l)) for c, l in zip(columns, (0.5, 1.5), strict=True)]
    x = np.array([[0.2, 1.7], [-3.0, 0.1]])
    assert whole(x) == pytest.approx(parts[0](x[:, 0]) * parts[1](x[:, 1]))
    assert whole.norm() == pytest.approx(parts[0].norm() * parts[1].norm())


def test_mixtures_are_linear():
    parts, shares = [stats.norm(-1.0, 0.5), stats.uniform(2.0, 1.0), stats.norm(4.0, 2.0)], [0.2, 0.5, 0.3]
    kernel = kb.Gaussian(0.8)
    mixture = kb.AnalyticEmbedding(kb.Mixture(parts, shares), kernel)
    single = [kb.AnalyticEmbedding(p, kernel) for p in parts]
    x = np.linspace(-3, 6, 7)
    assert mixture(x) == pytest.approx(sum(s * e(x) for s, e in zip(shares, single, strict=True)))
    gram = np.array([[a.inner(b) for b in single] for a in single])
    assert mixture.norm() ** 2 == pytest.approx(np.array(shares) @ gram @ shares)


@pytest.mark.parametrize("case", NORMALS)
def test_samples_converge_at_the_rate_that_theory_gives(case):
    """E |mu_n - mu|^2 = (E k(x, x) - |mu|^2) / n, exactly."""
    p, _ = NORMALS[case]
    kernel, distribution = kb.Gaussian(0.8), frozen(*p)
    truth = kb.AnalyticEmbedding(distribution, kernel)
    spread = 1.0 - normal_inner(*p, *p, 0.8)
    for n in (100, 400):
        rng = np.random.default_rng(n)
        errors = np.array(
            [truth.distance(kb.MeanEmbedding(distribution.rvs(n, random_state=rng), kernel=kernel)) for _ in range(60)]
        )
        assert (errors < 4 * math.sqrt(spread / n)).all()
        assert np.mean(errors**2) == pytest.approx(spread / n, abs=4.5 * np.std(errors**2) / math.sqrt(60))


def test_embed_is_exact_where_it_can_be():
    for distribution in (stats.norm(), stats.uniform(), [stats.norm(), stats.uniform()], kb.Mixture([stats.norm()])):
        assert isinstance(kb.embed(distribution, kb.Gaussian(1.0)), kb.AnalyticEmbedding)


def test_embed_falls_back_on_samples_and_says_so():
    gamma, n = stats.gamma(2.0), 4000
    with pytest.warns(UserWarning, match=r"gamma; using 4000 samples, with an RKHS error of about 0\.0"):
        found = kb.embed(gamma, kb.Gaussian(1.0), n=n, random_state=0)
    assert isinstance(found, kb.MeanEmbedding)
    assert len(found) == n
    for x in (0.0, 1.5, 4.0):
        moments = [
            integrate.quad(lambda y, x=x, p=p: math.exp(-0.5 * p * (x - y) ** 2) * gamma.pdf(y), 0, 40)[0]
            for p in (1, 2)
        ]
        error = math.sqrt((moments[1] - moments[0] ** 2) / n)
        assert found([x])[0] == pytest.approx(moments[0], abs=4 * error)


def test_the_announced_error_is_the_typical_one():
    """A rational quadratic kernel under a normal has no closed form here; its error is known from the integrals."""
    kernel, normal, n = kb.RationalQuadratic(), stats.norm(), 500
    with pytest.warns(UserWarning, match="RationalQuadratic") as caught:
        kb.embed(normal, kernel, n=n, random_state=0)
    announced = float(str(caught[0].message).rstrip(".").split()[-1])
    t = np.linspace(0, 12, 4001)  # x - y is normal with variance 2
    values = kernel.gram(t, [0.0])[:, 0]
    norm_squared = 2 * integrate.trapezoid(values * np.exp(-(t**2) / 4) / math.sqrt(4 * math.pi), t)
    assert announced == pytest.approx(math.sqrt((1 - norm_squared) / n), rel=0.15)


class OnlySample:
    """A distribution in the newer style of SciPy."""

    def sample(self, count, rng):
        return rng.exponential(size=count)

    def cdf(self, x):
        return 1 - np.exp(-x)


@pytest.mark.parametrize(
    ("distribution", "means"),
    [
        (OnlySample(), [1.0]),
        ([stats.gamma(3.0), stats.norm(-1.0)], [3.0, -1.0]),
        ([kb.Mixture([stats.norm(0.0), stats.norm(4.0)], [0.25, 0.75]), stats.expon()], [3.0, 1.0]),
        (stats.dirichlet([1.0, 3.0]), [0.25, 0.75]),
    ],
    ids=["sample", "list", "list of mixtures", "dirichlet"],
)
def test_whatever_can_be_drawn_can_be_embedded(distribution, means):
    with pytest.warns(UserWarning, match="no closed form"):
        found = kb.embed(distribution, kb.Gaussian(1.0), n=2000, random_state=0)
    assert found.points.shape == (2000, len(means))
    assert found.mean() == pytest.approx(means, abs=0.25)


def test_the_fallback_is_reproducible():
    with pytest.warns(UserWarning, match="no closed form"):
        a, b, c = (kb.embed(stats.gamma(2.0), kb.Gaussian(), n=50, random_state=s) for s in (1, 1, 2))
    assert (a.points == b.points).all()
    assert (a.points != c.points).all()


@pytest.mark.parametrize(
    ("distribution", "kernel"),
    [
        (stats.gamma(2.0), kb.Gaussian()),
        ([stats.norm(), stats.gamma(2.0)], kb.Gaussian()),
        (stats.norm(0, 50), kb.Matern(1.5)),
        (stats.norm(), kb.RationalQuadratic()),
        (stats.multivariate_normal(np.zeros(2), COV), kb.Laplace()),
    ],
    ids=["gamma", "list", "matern", "rational", "correlated laplace"],
)
def test_no_closed_form(distribution, kernel):
    with pytest.raises(kb.NoClosedFormError, match="no closed form is known"):
        kb.AnalyticEmbedding(distribution, kernel)


def test_two_known_distributions_may_still_have_no_closed_form_together():
    correlated = kb.AnalyticEmbedding(stats.multivariate_normal(np.zeros(2), COV), kb.Gaussian())
    box = kb.AnalyticEmbedding([stats.uniform(), stats.uniform()], kb.Gaussian())
    with pytest.raises(kb.NoClosedFormError):
        correlated.inner(box)


def test_kernels_and_widths_must_agree():
    a = kb.AnalyticEmbedding(stats.norm(), kb.Gaussian(1.0))
    with pytest.raises(ValueError, match="different kernels"):
        a.inner(kb.AnalyticEmbedding(stats.norm(), kb.Gaussian(2.0)))
    with pytest.raises(ValueError, match="columns"):
        a([[1.0, 2.0]])
    with pytest.raises(ValueError, match="columns"):
        a.inner(kb.MeanEmbedding(np.zeros((3, 2)), kernel=kb.Gaussian(1.0)))
    for thing in ("normal", 3.0, stats.norm):
        with pytest.raises(ValueError, match="distribution"):
            kb.embed(thing, kb.Gaussian())


def test_uniform_on_the_unit_interval():
    """Under the periodic Sobolev kernel its embedding is 1; under Brownian motion it is x - x^2 / 2."""
    x = np.linspace(0, 1, 6)
    assert kb.embed(stats.uniform(), kb.PeriodicSobolev(2))(x) == pytest.approx(np.ones(6))
    assert kb.embed(stats.uniform(), kb.Brownian())(x) == pytest.approx(x - x**2 / 2)

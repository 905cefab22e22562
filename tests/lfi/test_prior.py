"""Priors: densities, designs, and the way to Gaussian coordinates and back."""

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes.kernels._distributions import Mixture, Normal


def everything():
    return kb.Prior(
        {"a rate": stats.gamma(0.1, scale=10)},
        growth=(0, 5),
        lag=stats.poisson(15),
        pair=stats.multivariate_normal([0, 1], [[1, 0.5], [0.5, 2]]),
        mode=kb.Mixture([stats.norm(-2, 0.5), stats.norm(3, 1)], [0.3, 0.7]),
    )


def test_names_and_text():
    prior = everything()
    assert prior.names == ("a rate", "growth", "lag", "pair_0", "pair_1", "mode")
    assert repr(kb.Prior(x=(0, 2), s=stats.norm(0, 1))) == "Prior(x=(0, 2), s=norm(0, 1))"


def test_coordinates_lead_back_and_are_standard_normal():
    prior = everything()
    theta = prior.sample(4000, random_state=0)
    z = prior.to_gaussian(theta)
    np.testing.assert_allclose(prior.from_gaussian(z), theta, rtol=1e-9, atol=1e-12)
    for column in (0, 1, 3, 4):
        assert stats.kstest(z[:, column], "norm").pvalue > 1e-3
    assert abs(np.corrcoef(z[:, 3], z[:, 4])[0, 1]) < 0.05


def test_coordinates_match_the_quantiles_that_scipy_knows():
    gamma = stats.gamma(0.1, scale=10)
    prior = kb.Prior(rate=gamma)
    u = np.array([1e-8, 0.01, 0.5, 0.99, 1 - 1e-10])
    theta = gamma.ppf(u)[:, None]
    np.testing.assert_allclose(prior.to_gaussian(theta)[:, 0], stats.norm.ppf(u), rtol=1e-5)


def test_far_tails_keep_their_digits_and_their_support():
    prior = kb.Prior(a=(0, 5), b=stats.lognorm(1.0), c=stats.beta(0.5, 0.5))
    z = np.array([[-30.0, -30.0, -30.0], [30.0, 30.0, 30.0], [8.5, 8.5, 8.5]])
    theta = prior.from_gaussian(z)
    assert np.isfinite(theta).all()
    assert (theta[:, 0] >= 0).all()
    assert (theta[:, 0] <= 5).all()
    assert (theta[:, 2] <= 1).all()
    assert prior.to_gaussian(theta)[2, 1] == pytest.approx(8.5)


WHOLE = {
    "poisson": stats.poisson(3),
    "many": stats.poisson(2e5),
    "rare": stats.poisson(0.01),
    "shifted": stats.poisson(3, loc=-2),
    "randint": stats.randint(1, 10),
    "bernoulli": stats.bernoulli(0.3),
    "geometric": stats.geom(0.2),
    "binomial": stats.binom(20, 0.1),
    "both ways": stats.dlaplace(0.5),
    "summed": stats.zipf(6.0),
}


@pytest.mark.parametrize("law", WHOLE.values(), ids=list(WHOLE))
def test_whole_numbers_lead_back_exactly(law):
    prior = kb.Prior(k=law)
    far = 8.0 if law.dist.name != "zipf" else 5.0
    theta = prior.from_gaussian(np.linspace(-far, far, 2001)[:, None])
    assert (theta == np.round(theta)).all()
    assert prior.contains(theta).all()
    assert (np.diff(theta[:, 0]) >= 0).all()
    np.testing.assert_array_equal(prior.from_gaussian(prior.to_gaussian(theta)), theta)


def test_whole_numbers_far_out_in_the_tail():
    """Where 1 - P has no digits left: of scipy's own quantile, one is infinite."""
    prior, k = kb.Prior(k=stats.poisson(3)), np.arange(60.0)[:, None]
    np.testing.assert_array_equal(prior.from_gaussian(prior.to_gaussian(k)), k)
    assert np.isfinite(prior.from_gaussian([[-40.0], [40.0]])).all()


def test_density_of_whole_numbers_is_their_mass():
    prior = kb.Prior(k=stats.randint(1, 10), n=stats.poisson(2))
    grid = np.stack(np.meshgrid(np.arange(-2, 13), np.arange(-2, 40), indexing="ij"), axis=-1).reshape(-1, 2)
    assert prior.density(grid).sum() == pytest.approx(1.0)
    assert prior.log_density([[3, 1]])[0] == pytest.approx(np.log(1 / 9) + np.log(2) - 2)
    np.testing.assert_array_equal(prior.density([[0, 1], [10, 1], [2.5, 1], [2, -1]]), 0.0)
    draws = prior.sample(20_000, random_state=0)
    assert (
        np.abs(np.bincount(draws[:, 1].astype(int), minlength=12)[:12] / 20_000 - stats.poisson(2).pmf(range(12))).max()
        < 0.01
    )


def test_coordinates_of_whole_numbers_lie_in_the_middle_of_their_steps():
    prior = kb.Prior(x=(0, 1), k=stats.randint(0, 4))
    z = np.random.default_rng(0).standard_normal((200, 2))
    placed = prior.on_atoms(z)
    np.testing.assert_array_equal(placed[:, 0], z[:, 0])
    k = np.floor(4 * stats.norm.cdf(z[:, 1]))
    np.testing.assert_allclose(placed[:, 1], stats.norm.ppf((k + 0.5) / 4), atol=1e-12)
    np.testing.assert_array_equal(prior.from_gaussian(placed)[:, 1], k)


def test_columns_are_counted_by_name():
    prior = kb.Prior(growth=(0, 5), noise=(0, 1))
    with pytest.raises(ValueError, match="theta has 3 columns where one for each of the parameters growth, noise"):
        prior.density(np.zeros((4, 3)))


def test_density_is_the_product_of_the_parts():
    prior = everything()
    theta = prior.sample(5, random_state=1)
    by_hand = (
        stats.gamma(0.1, scale=10).logpdf(theta[:, 0])
        + np.log(0.2)
        + stats.poisson(15).logpmf(theta[:, 2])
        + stats.multivariate_normal([0, 1], [[1, 0.5], [0.5, 2]]).logpdf(theta[:, 3:5])
        + np.log(0.3 * stats.norm(-2, 0.5).pdf(theta[:, 5]) + 0.7 * stats.norm(3, 1).pdf(theta[:, 5]))
    )
    np.testing.assert_allclose(prior.log_density(theta), by_hand, rtol=1e-9)
    outside = theta.copy()
    outside[:, 1] = 6.0
    assert np.isneginf(prior.log_density(outside)).all()
    assert not prior.contains(outside).any()


def test_latent_distribution_of_a_mixture_is_that_of_the_coordinates():
    prior = everything()
    latent = prior.latent
    assert isinstance(latent, Mixture)
    z = prior.to_gaussian(prior.sample(20_000, random_state=0))
    np.testing.assert_allclose(latent.mean(), z.mean(0), atol=0.05)
    np.testing.assert_allclose(latent.covariance(), np.cov(z.T), atol=0.08)
    assert isinstance(kb.Prior(x=(0, 1)).latent, Normal)


@pytest.mark.parametrize("kind", ["halton", "sobol", "random"])
def test_designs_follow_the_prior_and_can_be_continued(kind):
    prior = everything()
    design = prior.design(600, kind)
    np.testing.assert_array_equal(design, np.concatenate([prior.design(250, kind), prior.design(350, kind, start=250)]))
    tolerance = 0.15 if kind == "random" else 0.03
    z = prior.to_gaussian(design)
    np.testing.assert_allclose(z.mean(0), 0.0, atol=tolerance)
    share = (design[:, 5] < 0).mean()  # the left component of the mixture
    assert share == pytest.approx(0.3, abs=tolerance)
    assert not np.array_equal(prior.design(10, kind, random_state=1), design[:10])


def test_a_prior_of_draws():
    prior = kb.Prior(sampler=lambda n, rng: rng.exponential(size=(n, 2)), names=["a", "b"])
    assert prior.latent is None
    assert prior.names == ("a", "b")
    np.testing.assert_array_equal(prior.design(200)[70:], prior.design(130, start=70))
    with pytest.raises(ValueError, match="no density"):
        prior.log_density([[1.0, 1.0]])
    z = prior.coordinates(500, np.random.default_rng(0))
    assert (prior.from_gaussian(z) >= 0).all()


def test_multivariate_distributions_with_draws_and_density():
    prior = kb.Prior(w=stats.dirichlet([1.0, 2.0, 3.0]))
    theta = prior.sample(50, random_state=0)
    np.testing.assert_allclose(theta.sum(1), 1.0)
    np.testing.assert_allclose(prior.log_density(theta[:3]), [stats.dirichlet([1, 2, 3]).logpdf(t) for t in theta[:3]])
    assert not prior.contains([[0.5, 0.6, 0.7]])[0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kb.Prior(), "at least one parameter"),
        (lambda: kb.Prior(a=(2, 1)), "bounds of a must rise"),
        (lambda: kb.Prior(a=stats.norm), "prior of a must be a frozen"),
        (lambda: kb.Prior(a=3.0), "prior of a must be a frozen"),
        (lambda: kb.Prior(a=stats.norm([0, 1], 1)), "prior of a has arrays"),
        (lambda: kb.Prior(a=stats.norm(0, -1)), "prior of a is not a distribution"),
        (lambda: kb.Prior([1, 2]), "a dict from names"),
        (lambda: kb.Prior(sampler=lambda n, rng: rng.normal(size=n + 1)), "asked for"),
        (lambda: kb.Prior(sampler=lambda n, rng: rng.normal(size=(n, 2)), names=["a"]), "names has 1"),
        (lambda: kb.Prior(a=kb.Mixture([stats.uniform(0, 1), stats.norm(0, 1)])), "prior of a: a mixture"),
        (lambda: kb.Prior(a=(0, 1)).design(5, "grid"), "kind must be one of"),
        (lambda: kb.Prior(a=(0, 1), b=(0, 1)).log_density([[1.0, 2.0, 3.0]]), "theta has 3 columns"),
        (lambda: kb.Prior(a=(0, 1), b=(0, 1)).log_density({"a": 1.0}), "theta lacks"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "given",
    [
        stats.norm(2, 3),
        stats.lognorm(0.5),
        stats.gamma(2),
        stats.beta(2, 3),
        stats.expon(1),
        stats.truncnorm(-1, 2),
        stats.loguniform(1e-3, 1),
        stats.poisson(3),
        (0, 5),
    ],
)
@pytest.mark.parametrize("far", [40.0, 1e16, 1e100])
def test_coordinates_farther_than_any_tail_has_digits_lead_into_the_support(given, far):
    prior = kb.Prior(a=given)
    theta = prior.from_gaussian([[-far], [0.0], [far]])
    assert np.isfinite(theta).all()
    assert prior.contains(theta).all()
    assert (np.diff(theta[:, 0]) > 0).all()


@pytest.mark.parametrize("given", [stats.cauchy(), stats.levy(), stats.pareto(0.5), stats.t(1)])
def test_coordinates_in_the_tails_of_heavy_priors_stay_finite(given):
    theta = kb.Prior(a=given).from_gaussian([[-1e16], [0.0], [1e16]])
    assert np.isfinite(theta).all()
    assert (np.diff(theta[:, 0]) > 0).all()


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (stats.zipf(1.0001), "zipf has 1 of its mass beyond 131,073, .* its tail is too long"),
        (stats.logser(0.9999999999), "its tail is too long"),
        (stats.binom(1e18, 0.5), "binom has the number 1e[+]18, and SciPy finds no quantiles beyond 1e[+]12"),
        (stats.nbinom(1e18, 0.5), "nbinom has the number 1e[+]18"),  # SciPy ends the process
        (stats.hypergeom(1e9, 5e8, 5e8), "hypergeom has the number 1e[+]09"),
        (stats.betabinom(1e9, 1, 1), "betabinom has 1e[+]09 values, and its distribution function sums over them"),
        (stats.irwinhall(1e8), "irwinhall has the number 1e[+]08"),
        (stats.yulesimon(0.001), "has no median"),
    ],
    ids=lambda v: v.dist.name if hasattr(v, "dist") else "",
)
def test_distributions_whose_quantiles_never_come(law, message):
    with pytest.raises(ValueError, match=rf"the prior of k.*{message}"):
        kb.Prior(k=law)


def test_far_out_in_a_long_tail_the_sum_is_cut():
    """Else the terms up to 10^14 would be held."""
    theta = kb.Prior(k=stats.zipf(2.0)).from_gaussian([[0.0], [4.0], [8.0]])[:, 0]
    assert theta[0] == 1
    assert stats.zipf.sf(theta[1], 2.0) <= stats.norm.sf(4.0) < stats.zipf.sf(theta[1] - 1, 2.0)
    assert theta[2] == 2**20 + 1

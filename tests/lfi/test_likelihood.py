"""Posteriors under learned likelihoods, beside exact ones."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

import kernelbayes as kb
from kernelbayes.kernels._distributions import Normal
from kernelbayes.lfi._rounds import usual_rounds
from kernelbayes.lfi._statistics import Components
from kernelbayes.lfi._tempering import Target, move, temper

D = 3
A = np.array([[1.0, 0.5, 0.0, 0.3], [0.0, 1.0, -0.5, 0.2], [0.4, 0.0, 1.0, -0.6]])
NOISE = 0.4
PRIOR = kb.Prior({f"t{i}": stats.norm(0.0, 1.0) for i in range(D)})


def simulate(theta, rng):
    return theta @ A + NOISE * rng.normal(size=(len(theta), 4))


def exact(y, A=A, prior_precision=1.0, k=1):
    """Mean and covariance of the exact posterior of k observations with mean y."""
    precision = k * A @ A.T / NOISE**2 + prior_precision * np.eye(len(A))
    return np.linalg.solve(precision, k * A @ y / NOISE**2), np.linalg.inv(precision)


def linear(seed=0, n=300, observed=None, **options):
    rng = np.random.default_rng(seed)
    theta = PRIOR.design(n, random_state=seed)
    y = simulate(PRIOR.sample(1, random_state=seed + 50), rng)[0] if observed is None else observed
    return kb.infer(
        parameters=theta, outputs=simulate(theta, rng), prior=PRIOR, observed=y, random_state=seed, **options
    )


@pytest.fixture(scope="module")
def posterior():
    return linear()


def distance(posterior, mean, covariance):
    """Error of the mean in exact standard deviations, and ratios of standard deviations."""
    std = np.sqrt(np.diag(covariance))
    return np.sqrt((((posterior.mean() - mean) / std) ** 2).mean()), posterior.std() / std


# ------------------------------------------------------------------------------------------ the answer


def test_exact_posterior_of_a_linear_normal_model():
    errors, ratios = zip(*(distance(p, *exact(p.observed)) for p in map(linear, range(5))), strict=True)
    assert np.mean(errors) < 0.25  # the likelihood without its linear term: 0.6
    assert 0.9 < np.mean(ratios) < 1.15
    assert np.ptp(np.mean(ratios, axis=1)) < 0.4


def test_correlations_are_found(posterior):
    _, covariance = exact(posterior.observed)
    std = np.sqrt(np.diag(covariance))
    exactly = covariance / np.outer(std, std)
    found = np.corrcoef(posterior.sample(4000, random_state=0).T)
    assert np.abs(found - exactly).max() < 0.2


def test_density_is_normalised_and_its_logarithm_agrees(posterior):
    mean, covariance = exact(posterior.observed)
    about = stats.multivariate_normal(mean, 2.0 * covariance)
    theta = about.rvs(4000, random_state=0)
    integral = np.exp(posterior.log_prob(theta) - about.logpdf(theta)).mean()
    assert integral == pytest.approx(1.0, abs=0.5)  # the evidence is an estimate
    np.testing.assert_allclose(np.log(posterior.density(theta[:50])), posterior.log_prob(theta[:50]), rtol=1e-9)
    shifted = posterior.log_likelihood(theta[:50]) + PRIOR.log_density(theta[:50]) - posterior.log_prob(theta[:50])
    np.testing.assert_allclose(shifted, posterior.details["log_evidence"], atol=1e-6)


def test_evidence_of_a_linear_normal_model():
    truth = [
        stats.multivariate_normal(np.zeros(4), A.T @ A + NOISE**2 * np.eye(4)).logpdf(p.observed)
        - p.details["log_evidence"]
        for p in map(linear, range(5))
    ]
    assert np.abs(np.mean(truth)) < 0.6


def test_a_million_draws_have_the_spread_of_a_thousand(posterior):
    many = posterior.sample(200_000, random_state=0)
    np.testing.assert_allclose(many.std(0), posterior.std(), rtol=0.1)
    assert len(np.unique(many[:, 0])) > 190_000
    few = posterior.sample(3000, random_state=0)
    assert len(few) == 3000
    assert np.isfinite(posterior.log_prob(few)).all()


# ----------------------------------------------------------------------------------------- other questions


def test_another_observation_is_answered_without_learning(posterior):
    y = np.array([0.5, -0.3, 0.8, 0.1])
    error, ratios = distance(posterior.at(y), *exact(y))
    assert error < 0.5
    assert (np.abs(np.log(ratios)) < 0.35).all()
    by_name = posterior.at({"x3": 0.1, "x2": 0.8, "x1": -0.3, "x0": 0.5})
    np.testing.assert_array_equal(by_name.mean(), posterior.at(y).mean())


def test_several_observations_add_up(posterior):
    rng = np.random.default_rng(3)
    several = simulate(np.tile([[0.5, -0.5, 0.2]], (6, 1)), rng)
    error, ratios = distance(posterior.at(several), *exact(several.mean(0), k=6))
    assert error < 0.9  # what is not known of the likelihood counts six times
    assert (np.abs(np.log(ratios)) < 0.4).all()
    both = posterior.at(several[:2])
    one, other = (posterior.at(y) for y in several[:2])
    theta = PRIOR.sample(20, random_state=0)
    np.testing.assert_allclose(
        both.log_likelihood(theta), one.log_likelihood(theta) + other.log_likelihood(theta), rtol=1e-9
    )


def test_each_observation_is_judged_by_the_statistics_it_has(posterior):
    first, second = np.array([0.5, -0.3, np.nan, 0.1]), np.array([np.nan, -0.2, 0.6, 0.3])
    alone = [posterior.at(y).details["p_value"] for y in (first, second)]
    both = posterior.at(np.stack([first, second]))
    assert both.details["p_value"] == pytest.approx(min(1.0, 2 * min(alone)))
    assert set(posterior.at(first).relevance()) == set(posterior.statistics)


def test_a_missing_statistic_drops_out(posterior):
    y = np.array([0.5, -0.3, np.nan, 0.1])
    some = ~np.isnan(y)
    error, ratios = distance(posterior.at(y), *exact(y[some], A[:, some]))
    assert error < 0.5
    assert (np.abs(np.log(ratios)) < 0.35).all()
    direct = linear(observed=y)
    np.testing.assert_allclose(direct.mean(), posterior.at(y).mean(), atol=0.15)
    with pytest.raises(ValueError, match="nothing but NaN"):
        posterior.at(np.full(4, np.nan))


def test_another_prior(posterior):
    narrow = kb.Prior({f"t{i}": stats.norm(0.0, 0.3) for i in range(D)})
    found = posterior.under(narrow)
    error, ratios = distance(found, *exact(posterior.observed, prior_precision=1 / 0.09))
    assert error < 0.5
    assert (np.abs(np.log(ratios)) < 0.3).all()
    with pytest.raises(ValueError, match="prior has parameters"):
        posterior.under(kb.Prior(other=(0, 1)))
    with pytest.warns(kb.PosteriorWarning, match="where nothing was simulated"):
        posterior.under(kb.Prior({f"t{i}": stats.norm(8.0, 0.3) for i in range(D)}))


def test_some_parameters_known_or_left_out(posterior):
    mean, covariance = exact(posterior.observed)
    known = mean[0] + 0.5 * np.sqrt(covariance[0, 0])
    section = posterior.conditional({"t0": known})
    there = mean[1:] + covariance[1:, 0] / covariance[0, 0] * (known - mean[0])
    spread = covariance[1:, 1:] - np.outer(covariance[1:, 0], covariance[0, 1:]) / covariance[0, 0]
    error, ratios = distance(section, there, spread)
    assert section.names == ("t1", "t2")
    assert error < 0.5
    assert (np.abs(np.log(ratios)) < 0.3).all()
    margin = posterior.marginal("t2", "t0")
    assert margin.names == ("t0", "t2")
    np.testing.assert_allclose(margin.std(), posterior.std()[[0, 2]], rtol=0.1)
    for wrong, message in (({"u": 1.0}, "no parameter 'u'"), ({}, "needs values of some")):
        with pytest.raises(ValueError, match=message):
            posterior.conditional(wrong)


def test_other_methods_have_no_likelihood_to_ask():
    rejected = linear(method="rejection")
    with pytest.raises(ValueError, match="at needs a posterior by method='likelihood'"):
        rejected.at([0.0] * 4)


def test_draws_as_a_data_frame(posterior):
    pytest.importorskip("pandas")
    frame = posterior.to_pandas(10, random_state=0)
    assert list(frame.columns) == ["t0", "t1", "t2"]
    assert len(frame) == 10


def test_saved_and_loaded(posterior, tmp_path):
    kb.save(posterior, tmp_path / "posterior.npz")
    loaded = kb.load(tmp_path / "posterior.npz")
    y = np.array([0.5, -0.3, np.nan, 0.1])
    np.testing.assert_array_equal(loaded.sample(2500, 0), posterior.sample(2500, 0))
    np.testing.assert_array_equal(loaded.at(y).mean(), posterior.at(y).mean())
    kb.save(loaded.conditional({"t0": 0.3}), tmp_path / "section.npz")
    assert kb.load(tmp_path / "section.npz").names == ("t1", "t2")


# ------------------------------------------------------------------------------------------------ designs


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_repeated_parameters_do_not_make_it_sure():
    """200 sets with five seeds each: intervals of a likelihood that leaves single rows out hold a few percent."""
    held = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        theta = np.repeat(PRIOR.design(60, random_state=seed), 5, axis=0)
        y = simulate(PRIOR.sample(1, random_state=seed + 9), rng)[0]
        found = kb.infer(parameters=theta, outputs=simulate(theta, rng), prior=PRIOR, observed=y, random_state=seed)
        (low, high), (mean, covariance) = found.interval(0.9), exact(y)
        std = np.sqrt(np.diag(covariance))
        held.append(stats.norm.cdf(high, mean, std) - stats.norm.cdf(low, mean, std))
    assert 0.8 < np.mean(held) < 0.97


def test_rows_that_are_there_twice_change_little(posterior):
    theta, x = np.tile(posterior.parameters, (2, 1)), np.tile(posterior.outputs, (2, 1))
    twice = kb.infer(parameters=theta, outputs=x, prior=PRIOR, observed=posterior.observed, random_state=0)
    assert distance(twice, posterior.mean(), posterior.cov())[0] < 0.3
    np.testing.assert_allclose(twice.std(), posterior.std(), rtol=0.25)


def test_whole_numbers_by_enumeration():
    prior = kb.Prior(count=stats.randint(0, 8), slope=(-1.0, 1.0))
    values = np.arange(8)
    shares = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        theta = prior.design(400, random_state=seed)
        x = np.column_stack([theta.sum(1), theta[:, 1]]) + [[0.8, 0.3]] * rng.normal(size=theta.shape)
        y = np.array([4.2, 0.3])
        found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, random_state=seed)
        grid = np.linspace(-1.0, 1.0, 401)
        logs = stats.norm.logpdf(y[0], values[:, None] + grid, 0.8) + stats.norm.logpdf(y[1], grid, 0.3)
        exactly = np.exp(logsumexp(logs, axis=1))
        drawn = found.sample(4000, random_state=0)[:, 0]
        assert set(drawn) <= set(values)
        shares.append(np.abs((drawn[:, None] == values).mean(0) - exactly / exactly.sum()).sum() / 2)
    assert np.mean(shares) < 0.1


def test_a_prior_that_can_only_be_sampled():
    prior = kb.Prior(sampler=lambda n, rng: rng.normal(size=(n, 1)), names=["mu"])
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(300, 1))
    x = theta + 0.5 * rng.normal(size=theta.shape)
    found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=[1.0], random_state=0)
    assert found.mean()[0] == pytest.approx(0.8, abs=0.12)
    assert found.std()[0] == pytest.approx(np.sqrt(0.2), rel=0.15)


def test_draws_stay_within_the_support():
    prior = kb.Prior(rate=(0.0, 1.0), scale=stats.expon())
    rng = np.random.default_rng(0)
    theta = prior.design(300)
    x = theta + 0.3 * rng.normal(size=theta.shape)
    found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=[1.1, 0.05], random_state=0)
    draws = found.sample(20_000, random_state=0)
    assert (draws[:, 0] <= 1.0).all()
    assert (draws > 0.0).all()


# ------------------------------------------------------------------------------------------ raw outputs


def series(theta, rng):
    t = np.linspace(0.0, 4.0, 80)
    return theta[:, [0]] * np.exp(-theta[:, [1]] * t) + theta[:, [2]] * rng.normal(size=(len(theta), 80))


def test_raw_series_are_reduced_and_the_noise_is_not_lost():
    """The size of the noise is in what the components leave: without it the third parameter is several sd off."""
    prior = kb.Prior(height=(1.0, 5.0), rate=(0.3, 2.0), noise=(0.1, 1.0))
    ratios, off = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        theta, truth = prior.design(500, random_state=seed), np.array([[3.0, 1.0, 0.4]])
        found = kb.infer(
            parameters=theta, outputs=series(theta, rng), prior=prior, observed=series(truth, rng)[0], random_state=seed
        )
        off.append((found.mean() - truth[0]) / found.std())
        ratios.append(found.std()[2] / (0.4 / np.sqrt(160)))  # what 80 normal numbers tell of their standard deviation
    assert np.sqrt(np.mean(np.square(off))) < 2.0
    assert 0.8 < np.mean(ratios) < 1.6


def test_components_are_those_that_vary_more_than_by_chance():
    rng = np.random.default_rng(0)
    signal = rng.normal(size=(400, 2)) @ np.linalg.qr(rng.normal(size=(50, 2)))[0].T * 8.0
    made = Components.of(signal + rng.normal(size=(400, 50)))
    assert made.axes.shape == (50, 2)
    S = made(signal)
    assert S.shape == (400, 3)
    assert (S[:, 2] < -4.0).all()  # without noise, nearly nothing is left
    wide = Components.of((signal + rng.normal(size=(400, 50)))[:30])  # fewer rows than columns
    assert wide.axes.shape[0] == 50
    np.testing.assert_allclose(wide.axes.T @ wide.axes, np.eye(wide.axes.shape[1]), atol=1e-8)


def test_missing_values_of_raw_outputs_are_refused():
    prior = kb.Prior(height=(1.0, 5.0), rate=(0.3, 2.0), noise=(0.1, 1.0))
    theta, rng = prior.design(100), np.random.default_rng(0)
    x = series(theta, rng)
    y = x[0].copy()
    y[3] = np.nan
    with pytest.raises(ValueError, match="holds NaN, which raw outputs"):
        kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, random_state=0)


# ------------------------------------------------------------------------------------------------ honesty


def test_the_p_value_is_uniform_enough():
    found, rng = linear(1), np.random.default_rng(8)
    likelihood = found.law.likelihood
    judged = likelihood.judged(np.zeros(4, dtype=bool))
    fresh = likelihood.evidence(simulate(PRIOR.sample(300, random_state=4), rng))
    values = (1 + (judged <= fresh[:, None]).sum(1)) / (1 + len(judged))
    assert np.abs(np.quantile(values, [0.1, 0.25, 0.5, 0.75]) - [0.1, 0.25, 0.5, 0.75]).max() < 0.2
    assert (values <= 0.01).mean() < 0.06


def test_an_observation_that_no_parameter_explains_is_told(posterior):
    theta = np.array([0.2, 0.1, -0.3])
    left_over = np.linalg.svd(A)[2][-1]  # no parameter moves the statistics this way
    with pytest.warns(kb.PosteriorWarning, match="unlike the simulations"):
        unlike = posterior.at(theta @ A + 3.0 * left_over)
    assert unlike.details["p_value"] < 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        posterior.at(theta @ A)


def narrow_simulator(amplitude, frequency, rng):
    t = np.linspace(0.0, 6.0, 8)
    return amplitude * np.sin(frequency * t) + 0.02 * rng.normal(size=8)


def test_rounds_find_a_narrow_posterior():
    prior = kb.Prior(amplitude=(0.5, 2.0), frequency=(0.2, 6.0))
    truth, off = np.array([1.2, 4.1]), {1: [], "auto": []}
    for seed in range(3):
        y = narrow_simulator(*truth, np.random.default_rng(seed))
        for rounds, each in off.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", kb.PosteriorWarning)
                found = kb.infer(narrow_simulator, prior, y, 160, rounds=rounds, random_state=seed)
            each.append(np.hypot(found.mean() - truth, found.std()).max())
    assert np.mean(off["auto"]) < 0.03  # the exact posterior: 0.01
    assert np.mean(off["auto"]) < 0.6 * np.mean(off[1])


def test_usual_rounds():
    assert [usual_rounds(n) for n in (10, 79, 80, 160, 1000, 3000, 100_000)] == [1, 1, 2, 4, 4, 6, 8]


def test_calibration_by_folds(posterior):
    calibration = kb.calibrate(posterior, 40, random_state=0)
    assert 0.75 < calibration.coverage(0.9).mean() < 0.99
    assert calibration.failed == 0


# ----------------------------------------------------------------------------------------------- particles


def test_particles_find_modes_and_the_evidence():
    """A mixture of three narrow normals in four dimensions, of known mass."""
    means = 2.0 * np.eye(4)[:3]
    std = 0.15

    def log_likelihood(z):
        return logsumexp(stats.norm.logpdf(z[:, None], means, std).sum(-1), axis=1, b=[0.5, 0.25, 0.25])

    target = Target(Normal(np.zeros(4), np.eye(4)), log_likelihood)
    total = np.hypot(1.0, std)
    each = np.array([0.5, 0.25, 0.25]) * np.exp(stats.norm.logpdf(means, 0.0, total).sum(1))
    shares, evidence = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found = temper(target, target.drawn(4000, rng), rng)
        nearest = ((found.population.z[:, None] - means / total**2) ** 2).sum(-1).argmin(1)
        shares.append(np.bincount(nearest, minlength=3) / 1000)
        evidence.append(found.log_evidence)
    np.testing.assert_allclose(np.mean(shares, axis=0), each / each.sum(), atol=0.15)
    assert np.mean(evidence) == pytest.approx(np.log(each.sum()), abs=0.25)


def test_moves_leave_the_posterior_as_it_is():
    rng = np.random.default_rng(0)
    covariance = np.array([[1.0, 0.9], [0.9, 1.0]])
    factor = np.linalg.cholesky(np.linalg.inv(np.linalg.inv(covariance) + np.eye(2)))
    target = Target(Normal(np.zeros(2), np.eye(2)), stats.multivariate_normal(np.zeros(2), covariance).logpdf)
    now = target.at(rng.normal(size=(4000, 2)) @ factor.T, power=1.0)
    moved, share = move(target, now, 20, rng)
    assert 0.1 < share < 0.9
    np.testing.assert_allclose(np.cov(moved.z.T), factor @ factor.T, atol=0.06)
    np.testing.assert_allclose(target.log_likelihood(moved.z), moved.likelihood)


def test_tempering_to_a_power():
    rng = np.random.default_rng(0)
    target = Target(Normal(np.zeros(1), np.eye(1)), lambda z: stats.norm.logpdf(z[:, 0], 2.0, 0.2))
    found = temper(target, target.drawn(4000, rng), rng, power=0.25)
    spread = 1.0 / np.sqrt(1.0 + 0.25 / 0.04)
    assert found.population.z.std() == pytest.approx(spread, rel=0.12)
    assert found.population.z.mean() == pytest.approx(2.0 * 0.25 / 0.04 * spread**2, abs=0.1)


def test_relevance_finds_the_statistic_that_tells():
    rng = np.random.default_rng(0)
    theta = PRIOR.design(300)
    x = np.column_stack([theta[:, 0] + 0.2 * rng.normal(size=300), rng.normal(size=300)])
    found = kb.infer(
        parameters=theta, outputs=x, prior=PRIOR, observed=[0.3, 0.1], statistics=["good", "junk"], random_state=0
    )
    relevance = found.relevance()
    assert list(relevance) == ["good", "junk"]
    assert relevance["good"]["scale"] == pytest.approx(0.2, rel=0.2)
    assert relevance["junk"]["relevance"] == pytest.approx(1.0, abs=0.25)


def test_under_a_proposal_there_is_no_p_value():
    rng, proposal = np.random.default_rng(0), kb.Prior({f"t{i}": stats.norm(0.5, 0.7) for i in range(D)})

    def simulator(theta):
        return simulate(theta[None], rng)[0]

    found = kb.infer(
        simulator, PRIOR, np.full(4, 0.2), 100, proposal=proposal, random_state=0, run=kb.Run(pass_dict=False)
    )
    assert "p_value" not in found.details

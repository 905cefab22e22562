"""Inference against posteriors that are known, and everything a user may get wrong."""

import dataclasses
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes.lfi import METHODS, IidEpsilon, MMDEpsilon, SpatioTemporalEpsilon
from kernelbayes.lfi._problem import Problem
from kernelbayes.simulation import StoreError

LEARNING = sorted(name for name, kind in METHODS.items() if not kind.seeks)

NOISE = 0.4

#: Of tests that are not about the health of a posterior, which few simulations may leave poor.
in_any_health = pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")


def gaussian(m, seed, d=1):
    """A Gaussian mean with a Gaussian prior: simulations, and the exact posterior given 0.7 in each column."""
    prior = kb.Prior({f"mu{j}": stats.norm(1.0, 2.0) for j in range(d)})
    theta = prior.design(m, random_state=seed)
    x = theta + NOISE * np.random.default_rng(seed).normal(size=theta.shape)
    variance = 1.0 / (1.0 / 4.0 + 1.0 / NOISE**2)
    return prior, theta, x, np.full(d, 0.7), stats.norm(variance * (1.0 / 4.0 + 0.7 / NOISE**2), np.sqrt(variance))


def exponential(m, seed):
    """The rate of 30 exponential draws with a gamma prior: simulations of their mean, and the exact posterior."""
    law = stats.gamma(2.0, scale=0.5)
    prior = kb.Prior(rate=law)
    theta = prior.design(m, random_state=seed)
    x = np.random.default_rng(seed).gamma(30, 1.0 / 30, theta.shape) / theta
    return prior, theta, x, np.array([1.2]), stats.gamma(2.0 + 30, scale=1.0 / (2.0 + 30 * 1.2))


def distance(posterior, exact):
    """Errors of mean, sd and 90 % interval, in exact standard deviations."""
    sd = exact.std()
    interval = posterior.interval(0.9) - np.array(exact.interval(0.9))[:, None]
    return (
        np.abs(posterior.mean() - exact.mean()).mean() / sd,
        np.abs(posterior.std() / sd - 1.0).mean(),
        np.abs(interval).mean() / sd,
    )


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")  # of 50 simulations there is something to say
@pytest.mark.parametrize("method", ["likelihood", "kelfi"])
@pytest.mark.parametrize("problem", [gaussian, exponential])
def test_conjugate_posteriors_are_approached(problem, method, capsys):
    rows = {}
    for m, repeats in ((50, 8), (700, 3)):
        errors = []
        for seed in range(repeats):
            prior, theta, x, y, exact = problem(m, seed)
            given = {"parameters": theta, "outputs": x, "prior": prior, "observed": y}
            posterior = kb.infer(**given, method=method, random_state=seed)
            errors.append(distance(posterior, exact))
        rows[m] = np.mean(errors, axis=0)
    with capsys.disabled():
        print(f"\n{problem.__name__}, {method}: errors of mean, sd, 90 % interval in exact standard deviations")
        for m, row in rows.items():
            print(f"  {m:5d} simulations  " + "  ".join(f"{e:.3f}" for e in row))
    assert (rows[700] < [0.2, 0.25, 0.4]).all()
    assert rows[700].sum() < 0.75 * rows[50].sum()


def test_several_parameters_and_calibration():
    prior, theta, x, y, exact = gaussian(500, 0, d=2)
    posterior = kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, random_state=0)
    assert all(e < limit for e, limit in zip(distance(posterior, exact), (0.6, 0.6, 1.0), strict=True))
    calibration = kb.calibrate(posterior, 200)
    counts, _ = calibration.histogram()
    low, high = calibration.histogram_band(0.99999)  # there are many bins
    assert ((counts >= low) & (counts <= high)).all()
    low, high = calibration.coverage_band(0.9, 0.9999)
    low -= 0.05  # with few simulations a posterior may be a little too sure
    assert ((calibration.coverage(0.9) >= low) & (calibration.coverage(0.9) <= high)).all()
    assert list(calibration.summary()) == ["mu0", "mu1"]


@in_any_health
def test_calibration_sees_a_posterior_that_is_too_narrow():
    prior, theta, x, y, _ = gaussian(300, 0)
    narrow = kb.infer(
        parameters=theta,
        outputs=x,
        prior=prior,
        observed=y,
        random_state=0,
        method=kb.lfi.KELFI(epsilon=0.02, lengthscale=0.05, reg=1e-8),
    )
    assert any("too narrow" in problem for problem in kb.calibrate(narrow).problems)


def test_calibration_of_a_method_that_is_run_again():
    prior, theta, x, y, _ = gaussian(200, 0)
    posterior = kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, method="rejection", random_state=0)
    calibration = kb.calibrate(posterior, 40)
    assert calibration.coverage(0.9)[0] > 0.7
    with pytest.raises(ValueError, match="around must be one of"):
        kb.calibrate(posterior, around="somewhere")


@in_any_health
def test_more_rounds_are_more_accurate():
    def simulator(mu, rng):
        return mu + 0.02 * rng.normal()

    prior = kb.Prior(mu=stats.norm(0, 1))
    exact = stats.norm(0.5 / 1.0004, np.sqrt(0.0004 / 1.0004))
    errors = {}
    for rounds in (1, 3):
        given = {"simulations": 120, "method": "kelfi", "rounds": rounds}
        found = [kb.infer(simulator, prior, 0.5, **given, random_state=s) for s in range(6)]
        errors[rounds] = np.mean([sum(distance(f, exact)) for f in found])
    assert errors[3] < 0.95 * errors[1]  # of twelve sets of six seeds: half of it, 85 % at most


def of_two(a, b, rng):
    return {"x": a + 0.3 * rng.normal(), "y": b + 0.3 * rng.normal()}


def rows_of_two(rows, rng):
    n = len(rows)
    return np.column_stack([rows[:, 0] + 0.3 * rng.normal(size=n), rows[:, 1] + 0.3 * rng.normal(size=n)])


@pytest.mark.parametrize(
    ("simulator", "settings", "how"),
    [
        (of_two, {"method": "rejection", "rounds": 4}, {}),
        (of_two, {"method": "smc-abc"}, {}),
        (rows_of_two, {"method": "rejection", "rounds": 3}, {"vectorised": True, "pass_dict": False}),
        (rows_of_two, {"method": "smc-abc"}, {"vectorised": True, "pass_dict": False}),
    ],
    ids=["rounds", "seeking", "rounds of batches", "seeking in batches"],
)
@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_a_store_changes_nothing(tmp_path, simulator, settings, how):
    prior, observed = kb.Prior(a=(-2, 2), b=(-2, 2)), {"x": 0.5, "y": -0.3}
    observed = observed if simulator is of_two else [0.5, -0.3]
    given = {"simulations": 110, "random_state": 3, **settings}
    without = kb.infer(simulator, prior, observed, **given, run=kb.Run(**how))
    for _ in range(2):  # the second time all runs are there
        stored = kb.infer(simulator, prior, observed, **given, run=kb.Run(**how, store=tmp_path / "runs.sqlite"))
        np.testing.assert_array_equal(stored.parameters, without.parameters)
        np.testing.assert_array_equal(stored.outputs, without.outputs)


def test_several_seeds_of_each_parameter_do_not_tell_it():
    """Left out one by one, the runs of a conjugate problem would give 90 % intervals that hold a tenth of the truths."""
    d, noise, inside, rng = 5, 0.5, [], np.random.default_rng(0)
    prior = kb.Prior(**{f"a{i}": stats.norm(0, 1) for i in range(d)})
    for _ in range(3):
        theta = np.repeat(rng.normal(size=(100, d)), 5, axis=0)
        outputs, truth = theta + noise * rng.normal(size=theta.shape), rng.normal(size=d)
        observed = truth + noise * rng.normal(size=d)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kb.PosteriorWarning)
            found = kb.infer(parameters=theta, outputs=outputs, prior=prior, observed=observed, random_state=0)
        low, high = np.quantile(found.sample(500, random_state=0), [0.05, 0.95], axis=0)
        inside.append((low <= truth) & (truth <= high))
    assert np.mean(inside) > 0.5


def test_runs_given_twice_are_the_runs_given_once():
    theta = np.random.default_rng(0).normal(size=(150, 2))
    outputs = theta + 0.3 * np.random.default_rng(1).normal(size=theta.shape)
    prior = kb.Prior(a=stats.norm(0, 1), b=stats.norm(0, 1))
    once, twice = (
        kb.infer(
            parameters=np.tile(theta, (k, 1)),
            outputs=np.tile(outputs, (k, 1)),
            prior=prior,
            observed=[0.2, 0.4],
            method=kb.lfi.KELFI(learn=None),
            random_state=0,
        )
        for k in (1, 2)
    )
    z = np.random.default_rng(2).normal(size=(20, 2))
    np.testing.assert_allclose(twice._model.weights()[0], once._model.weights()[0][_in_order(theta)], rtol=1e-6)
    np.testing.assert_allclose(twice.density(z), once.density(z), rtol=0.05, atol=1e-3)
    ranks = [kb.calibrate(found, 20, random_state=0) for found in (once, twice)]
    assert len(ranks[1].ranks) == 20


def _in_order(theta):
    return np.unique(theta, axis=0, return_index=True)[1]


def test_runs_are_left_out_together_where_parameters_repeat():
    def groups(prior, theta, outputs):
        theta, outputs = np.asarray(theta, float), np.asarray(outputs, float)
        return Problem(prior, outputs[0], theta, outputs, ("x",), np.random.default_rng(0)).groups()

    real, whole = kb.Prior(a=stats.norm(0, 1)), kb.Prior(k=stats.poisson(3))
    assert groups(real, [[1], [2], [3]], [[1], [1], [1]]) is None
    np.testing.assert_array_equal(groups(real, [[2], [1], [2]], [[1], [5], [9]]), [1, 0, 1])
    assert groups(whole, [[2], [1], [2]], [[1.5], [5], [9]]) is None  # whole numbers meet by chance
    np.testing.assert_array_equal(groups(whole, [[2], [1], [2]], [[1.5], [5], [1.5]]), [1, 0, 1])
    assert groups(whole, [[2], [1], [2]], [[1], [5], [1]]) is None  # and so do counts
    theta = np.array([[1.0], [2.0], [1.0], [3.0]])
    problem = Problem(real, np.zeros(1), theta, theta, ("x",), np.random.default_rng(0))
    np.testing.assert_array_equal(problem.without(0).theta[:, 0], [2.0, 3.0])


def test_no_run_is_made_twice_over_rounds():
    calls = []

    def counted(mu, rng):
        calls.append(mu)
        return mu + 0.3 * rng.normal()

    found = kb.infer(counted, {"mu": (-3, 3)}, 1.0, simulations=90, rounds=3, random_state=0)
    assert len(calls) == len(found.parameters) == 90
    assert found.details["first_round"] == 30


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning", "ignore::kernelbayes.SimulationWarning")
def test_a_round_that_begins_badly_is_not_the_end():
    calls = []

    def moody(mu, rng):
        calls.append(mu)
        if 100 < len(calls) <= 125:
            raise RuntimeError("a bad day")
        return mu + 0.3 * rng.normal()

    found = kb.infer(moody, {"mu": (-3, 3)}, 1.0, simulations=200, rounds=2, random_state=0)
    assert len(calls) == 200
    assert (len(found.parameters), found.failures) == (175, 25)


def with_noise(sd):
    """A simulator of many rows at once, fast enough for thousands."""

    def simulator(theta: np.ndarray, rng):
        return theta[:, 0] + sd * rng.normal(size=len(theta))

    return simulator


@pytest.mark.parametrize("method", ["rejection", "k2-abc"])
def test_accepted_parameters_count_as_draws_of_the_prior(method):
    prior, proposal = kb.Prior(mu=stats.norm(0.0, 1.0)), kb.Prior(mu=stats.norm(2.0, 1.2))
    settings = {"simulations": 1000, "proposal": proposal, "method": METHODS[method](accept=0.05)}
    settings["run"] = kb.Run(vectorised=True)
    found = [kb.infer(with_noise(1.0), prior, 1.0, **settings, random_state=seed).mean()[0] for seed in range(3)]
    assert abs(np.mean(found) - 0.5) < 0.4  # 1.4 if the proposal were the prior


@in_any_health
def test_a_proposal_that_is_not_the_prior_does_not_move_the_posterior():
    prior, proposal = kb.Prior(mu=stats.norm(1.0, 1.0)), kb.Prior(mu=stats.norm(-1.0, 1.5))
    given = {"simulations": 500, "rounds": 1, "proposal": proposal, "random_state": 0}
    found = kb.infer(lambda mu, rng: mu + rng.normal(), prior, 0.7, **given)
    assert abs(found.parameters.mean() + 1.0) < 0.1  # simulated from the proposal
    assert abs(found.mean()[0] - 0.85) < 0.3  # under the proposal as a prior it would be 0.18
    assert abs(found.std()[0] - np.sqrt(0.5)) < 0.2


def test_sampled_forms_agree_with_closed_ones():
    prior, theta, x, y, exact = gaussian(300, 0)
    settings = {"epsilon": 0.2, "lengthscale": 0.7, "reg": 1e-3}
    methods = [kb.lfi.KELFI(form=form, **settings) for form in ("closed", "sampled")]
    closed, sampled = (
        kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, random_state=0, method=method)
        for method in methods
    )
    np.testing.assert_allclose(sampled.mean(), closed.mean(), atol=0.1 * exact.std())
    np.testing.assert_allclose(sampled.std(), closed.std(), rtol=0.15)
    drawn = kb.Prior(sampler=lambda n, rng: rng.normal(1.0, 2.0, (n, 1)), names=["mu0"])
    from_draws = kb.infer(parameters=theta, outputs=x, prior=drawn, observed=y, random_state=0)
    np.testing.assert_allclose(from_draws.mean(), exact.mean(), atol=0.8 * exact.std())


@in_any_health
def test_mixture_prior_keeps_both_modes():
    prior = kb.Prior(mu=kb.Mixture([stats.norm(-2, 0.3), stats.norm(2, 0.3)]))
    theta, below = prior.design(800), []
    for seed in range(5):
        x = np.abs(theta) + 0.2 * np.random.default_rng(seed).normal(size=theta.shape)  # the sign cannot be seen
        found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=[2.0], random_state=seed)
        draws = found.sample(2000, random_state=seed)
        assert (np.abs(draws) > 0.8).mean() > 0.98
        below.append((draws < 0).mean())
    assert 0.05 < min(below) <= max(below) < 0.95  # of one data set it is from a fifth to two thirds
    assert 0.3 < np.mean(below) < 0.7


@in_any_health
def test_draws_never_leave_the_support():
    prior = kb.Prior(a=(0, 1), b=stats.expon(), k=stats.poisson(3))
    theta = prior.design(300)
    x = theta + 0.3 * np.random.default_rng(0).normal(size=theta.shape)
    found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=[0.99, 0.02, 0.0], random_state=0)
    assert prior.contains(found.sample(5000, random_state=1)).all()
    assert prior.contains(found.herd(50, random_state=1)).all()


@pytest.mark.parametrize("method", ["likelihood", "kelfi"])
def test_density_map_and_raw_density(method):
    prior, theta, x, y, exact = gaussian(400, 0)
    found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, method=method, random_state=0)
    grid = np.linspace(-3, 4, 2001)
    density = found.density(grid)
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=0.03)
    assert found.map()[0] == pytest.approx(grid[density.argmax()], abs=0.02)
    assert abs(found.map()[0] - exact.mean()) < exact.std()
    if method == "kelfi":
        assert np.trapezoid(found.density(grid, raw=True), grid) == pytest.approx(1.0, abs=0.05)
    uniform = kb.Prior(mu0=(-4, 6))
    there = kb.infer(
        parameters=theta[np.abs(theta[:, 0] - 1) < 5],
        outputs=x[np.abs(theta[:, 0] - 1) < 5],
        prior=uniform,
        observed=y,
        method=method,
        random_state=0,
    )
    assert np.trapezoid(there.density(grid), grid) == pytest.approx(1.0, abs=0.05)
    assert (there.density([[-4.5], [7.0]]) == 0).all()


@in_any_health
def test_relevance_finds_the_statistic_that_matters():
    rng = np.random.default_rng(0)
    prior = kb.Prior(mu=(-3, 3))
    theta = prior.design(300)
    x = np.column_stack([rng.normal(size=300), theta[:, 0] + 0.2 * rng.normal(size=300), rng.normal(size=300)])
    found = kb.infer(
        parameters=theta,
        outputs=x,
        prior=prior,
        observed=[0.0, 1.0, 0.0],
        statistics=["junk", "level", "more"],
        method="kelfi",
        random_state=0,
    )
    table = found.relevance()
    assert next(iter(table)) == "level"
    assert table["level"]["relevance"] > 2 * table["junk"]["relevance"]
    isotropic = kb.infer(
        parameters=theta,
        outputs=x,
        prior=prior,
        observed=[0.0, 1.0, 0.0],
        method=kb.lfi.KELFI(ard=False),
        random_state=0,
    )
    assert found.details["score"] > isotropic.details["score"]


# ------------------------------------------------------------------------------------------- epsilon-kernels


def data_sets(seed=0):
    rng = np.random.default_rng(seed)
    prior = kb.Prior(mu=(-3, 3), log_sd=stats.norm(0, 0.5))
    theta = prior.design(300)
    outputs = theta[:, :1] + np.exp(theta[:, 1:]) * rng.normal(size=(300, 40))
    return prior, theta, outputs, rng.normal(1.0, 1.0, 40)


@pytest.mark.parametrize("kernel", ["iid", "mmd", IidEpsilon(sort=True), MMDEpsilon(kb.Gaussian(1.0))])
def test_kernels_on_data_sets(kernel):
    prior, theta, outputs, y = data_sets()
    found = kb.infer(
        parameters=theta,
        outputs=outputs,
        prior=prior,
        observed=y,
        method=kb.lfi.KELFI(epsilon_kernel=kernel),
        random_state=0,
    )
    assert np.abs(found.mean() - [y.mean(), np.log(y.std())]).max() < 0.35
    assert found.std()[0] < 0.6


def test_order_of_a_data_set_does_not_matter():
    prior, theta, outputs, y = data_sets()
    first, second = (
        kb.infer(
            parameters=theta,
            outputs=outputs,
            prior=prior,
            observed=o,
            method=kb.lfi.KELFI(epsilon_kernel="iid"),
            random_state=0,
        ).mean()
        for o in (y, y[::-1])
    )
    np.testing.assert_allclose(first, second)


def test_spatio_temporal_kernel_is_the_predictive_density_of_a_gaussian_process():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    rng = np.random.default_rng(0)
    t, X, y = np.linspace(0, 1, 12), rng.normal(size=(15, 12)), rng.normal(size=12)
    kernel = SpatioTemporalEpsilon(t, lengthscale=0.2, amplitude=1.5, noise=0.5)
    comparison = kernel.bind(X, y, tuple(f"x{i}" for i in range(12)))
    unit, centre = 1.4826 * np.median(np.abs(X - np.median(X))), np.median(X)
    X, y = (X - centre) / unit, (y - centre) / unit
    process = ConstantKernel(1.5**2, "fixed") * RBF(0.2, "fixed")
    expected = []
    for row in X:
        gp = GaussianProcessRegressor(process + WhiteKernel(0.25, "fixed"), optimizer=None).fit(t[:, None], row)
        mean, cov = gp.predict(t[:, None], return_cov=True)
        expected.append(stats.multivariate_normal(mean, cov).logpdf(y))
    found = -0.5 * comparison.from_observed()[:, 0]
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-5)


@in_any_health
def test_series_by_the_spatio_temporal_kernel():
    rng = np.random.default_rng(0)
    prior = kb.Prior(frequency=(1, 4))
    t = np.linspace(0, 1, 50)
    theta = prior.design(300)
    series = np.sin(2 * np.pi * theta * t) + 0.3 * rng.normal(size=(300, 50))
    y = np.sin(2 * np.pi * 2.2 * t) + 0.3 * rng.normal(size=50)
    found = kb.infer(
        parameters=theta,
        outputs=series,
        prior=prior,
        observed=y,
        method=kb.lfi.KELFI(epsilon_kernel="spatio-temporal"),
        random_state=0,
    )
    assert abs(found.mean()[0] - 2.2) < 0.1
    assert found.std()[0] < 0.2


# ------------------------------------------------------------------------------------------------ other methods


@pytest.mark.parametrize("method", ["dme", "kbr", "k-abc", "k2-abc", "rejection"])
def test_other_methods_find_the_neighbourhood(method):
    prior, theta, x, y, exact = gaussian(400, 0)
    found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, method=method, random_state=0)
    assert abs(found.mean()[0] - exact.mean()) < 1.0 * exact.std()
    assert 0.3 * exact.std() < found.std()[0] < 2.5 * exact.std()
    assert prior.contains(found.sample(100, random_state=0)).all()
    assert found.method == method
    assert found.ess > 5


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_a_posterior_of_one_point_has_a_density():
    prior, theta, x, y, _ = gaussian(100, 0)
    found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, method=kb.lfi.Rejection(accept=0.01))
    assert found.std()[0] < 1e-12
    assert np.isfinite(found.density(theta)).all()
    np.testing.assert_allclose(found.map(), found.mean(), atol=1e-3)


def test_kernel_abc_is_the_conditional_embedding():
    prior, theta, x, y, _ = gaussian(100, 0)
    found = kb.infer(
        parameters=theta, outputs=x, prior=prior, observed=y, method=kb.lfi.KernelABC(learn="median", reg=1e-3)
    )
    unit = 1.4826 * np.median(np.abs(x - np.median(x)))
    X, target = x / unit, y / unit
    scale = kb.median_lengthscale(X)
    K = np.exp(-0.5 * (X - X.T) ** 2 / scale**2)
    w = np.linalg.solve(K + 100 * 1e-3 * np.eye(100), np.exp(-0.5 * (X[:, 0] - target) ** 2 / scale**2))
    np.testing.assert_allclose(found.law.weights, w / w.sum(), rtol=1e-5, atol=1e-9)


def test_double_kernel_abc_is_the_formula():
    prior, theta, outputs, y = data_sets()
    found = kb.infer(
        parameters=theta,
        outputs=outputs,
        prior=prior,
        observed=y,
        method=kb.lfi.DoubleKernelABC(kernel=kb.Gaussian(1.0), epsilon=0.05),
    )

    def mean_kernel(a, b):
        return np.exp(-0.5 * (a[:, None] - b[None]) ** 2).mean()

    squared = np.array([mean_kernel(o, o) + mean_kernel(y, y) - 2 * mean_kernel(o, y) for o in outputs])
    w = np.exp(-squared / 0.05)
    np.testing.assert_allclose(found.law.weights, w / w.sum(), rtol=0.02, atol=5e-4)


# ---------------------------------------------------------------------------------------------- never lie


def test_an_observation_outside_the_simulations_is_told():
    prior, theta, x, _, _ = gaussian(200, 0)
    with pytest.warns(kb.PosteriorWarning, match="outside the simulations"):
        found = kb.infer(
            parameters=theta, outputs=x, prior=prior, observed=[30.0], statistics=["level"], random_state=0
        )
    assert "level = 30" in found.problems[0]


def test_kernel_abc_tells_of_an_observation_that_resembles_no_simulation():
    prior, theta, x, _, _ = gaussian(200, 0)
    with pytest.warns(kb.PosteriorWarning, match="the observation resembles no simulation") as said:
        kb.infer(parameters=theta, outputs=x, prior=prior, observed=[1e4], method="k-abc", random_state=0)
    assert len(said) == 1


def test_a_gap_between_the_simulations_is_told():
    rng = np.random.default_rng(0)
    prior = kb.Prior(mu=(-3, 3))
    theta = prior.design(300)
    x = np.column_stack([theta[:, 0], theta[:, 0]]) + 0.1 * rng.normal(size=(300, 2))
    with pytest.warns(kb.PosteriorWarning, match="in a gap between the simulations"):
        kb.infer(parameters=theta, outputs=x, prior=prior, observed=[2.0, -2.0], random_state=0)


def test_few_simulations_near_the_observation_are_told():
    prior, theta, x, y, _ = gaussian(100, 0)
    with pytest.warns(kb.PosteriorWarning, match="simulations resemble the observation"):
        kb.infer(
            parameters=theta, outputs=x, prior=prior, observed=y, method=kb.lfi.KELFI(epsilon=0.002), random_state=0
        )


@pytest.mark.parametrize("method", sorted({*LEARNING} - {"likelihood"}))  # it tells how much it does not know
@pytest.mark.parametrize(("ess", "told"), [(4.2, True), (5.0, True), (5.4, True), (5.6, False)])
def test_what_is_shown_as_five_simulations_is_told_by_every_method_that_counts_them(monkeypatch, method, ess, told):
    prior, theta, x, y, _ = gaussian(60, 0)
    found_by = METHODS[method].infer
    monkeypatch.setattr(
        METHODS[method], "infer", lambda self, problem: dataclasses.replace(found_by(self, problem), ess=ess)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, method=method, random_state=0)
    assert any(f"only about {ess} simulations resemble" in problem for problem in found.problems) == told


def test_a_posterior_on_five_accepted_simulations_is_told():
    prior, theta, x, y, _ = gaussian(100, 0)
    with pytest.warns(kb.PosteriorWarning, match="only about 5.0 simulations resemble"):
        found = kb.infer(
            parameters=theta, outputs=x, prior=prior, observed=y, method=kb.lfi.Rejection(accept=0.05), random_state=0
        )
    assert len(found.problems) == 1


def test_few_draws_of_a_chain_are_told_once_and_as_draws():
    prior = kb.Prior(mu=(-3, 3))
    with pytest.warns(kb.PosteriorWarning) as caught:
        found = kb.infer(
            lambda mu, rng: rng.normal(mu, 1.0), prior, 0.5, simulations=100, method="synthetic", random_state=0
        )
    assert found.ess < 5.5
    assert not any("resemble" in problem for problem in found.problems)
    assert len(found.problems) == 1
    assert "chain" in str(caught[0].message)


def test_an_optimum_on_a_bound_is_told(monkeypatch):
    from kernelbayes.learning import _likelihood_free as learning

    monkeypatch.setattr(learning, "EPSILON_BOUNDS", (2.0, 30.0))
    prior, theta, x, y, _ = gaussian(100, 0)
    with pytest.warns(kb.PosteriorWarning, match="epsilon sits on the bound"):
        kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, method="kelfi", random_state=0)


@in_any_health
@pytest.mark.parametrize("method", ["likelihood", "kelfi"])
def test_constant_outputs_are_left_out(method):
    prior, theta, x, y, exact = gaussian(200, 0)
    with pytest.warns(UserWarning, match="flat are the same in every simulation"):
        found = kb.infer(
            parameters=theta,
            outputs={"x": x[:, 0], "flat": np.ones(200)},
            prior=prior,
            observed={"x": y[0], "flat": 1.0},
            method=method,
            random_state=0,
        )
    assert abs(found.mean()[0] - exact.mean()) < exact.std()


# ----------------------------------------------------------------------------------------- real simulators


def simulator(mu, rng):
    if mu > 2.5:
        raise RuntimeError("diverged")
    return mu + 0.3 * rng.normal()


@in_any_health
def test_a_simulator_that_fails_now_and_then():
    with pytest.warns(kb.SimulationWarning, match="failed"):
        found = kb.infer(simulator, {"mu": (-3, 3)}, 1.0, simulations=200, rounds=1, random_state=0)
    assert 0 < found.failures < 40
    assert len(found.parameters) == 200 - found.failures
    assert abs(found.mean()[0] - 1.0) < 0.3
    assert "failed" in repr(found)
    assert any("runs failed" in problem for problem in found.problems)


def test_a_simulator_that_mostly_fails():
    def hopeless(mu):
        raise RuntimeError("no licence")

    with pytest.raises(kb.SimulationError, match="no licence"):
        kb.infer(hopeless, {"mu": (-3, 3)}, 1.0, simulations=100, random_state=0)


@in_any_health
def test_the_store_is_resumed_and_added_to(tmp_path):
    calls = tmp_path / "calls"

    def counted(mu, rng):
        with open(calls, "a") as file:
            file.write("x")
        return mu + 0.3 * rng.normal()

    prior, store = kb.Prior(mu=(-3, 3)), tmp_path / "runs.sqlite"
    first = kb.infer(counted, prior, 1.0, simulations=60, random_state=0, run=kb.Run(store=store))
    assert len(calls.read_text()) == 60
    again = kb.infer(counted, prior, 1.0, simulations=60, random_state=0, run=kb.Run(store=store))
    assert len(calls.read_text()) == 60
    np.testing.assert_array_equal(first.parameters, again.parameters)
    more = kb.infer(counted, prior, 1.0, more=40, random_state=0, run=kb.Run(store=store))
    assert len(calls.read_text()) == 100
    assert len(more.parameters) == 100
    np.testing.assert_array_equal(more.parameters[:60], first.parameters)
    about = kb.infer(counted, prior, 1.0, more=50, rounds=2, random_state=0, run=kb.Run(store=store))
    assert len(calls.read_text()) == 150
    assert about.parameters[100:].std() < 0.6 * about.parameters[:100].std()


@in_any_health
def test_a_store_of_one_round_goes_on_in_several(tmp_path):
    prior, store = kb.Prior(mu=(-3, 3)), tmp_path / "runs.sqlite"
    kb.infer(noisy, prior, 1.0, simulations=60, random_state=0, run=kb.Run(store=store))
    found = kb.infer(noisy, prior, 1.0, simulations=100, rounds=2, random_state=0, run=kb.Run(store=store))
    np.testing.assert_allclose(found.parameters[:60], prior.design(60))  # all of them are the first round
    assert found.details["first_round"] == 60
    assert found.parameters[60:].std() < 0.6 * found.parameters[:60].std()


@in_any_health
def test_rounds_that_come_too_late_are_told(tmp_path):
    given = {"simulator": noisy, "prior": kb.Prior(mu=(-3, 3)), "observed": 1.0, "simulations": 60, "random_state": 0}
    kb.infer(**given, run=kb.Run(store=tmp_path / "runs.sqlite"))
    with pytest.warns(kb.SimulationWarning, match=r"holds 60 runs of one round already.*more=100, rounds=2"):
        kb.infer(**given, rounds=2, run=kb.Run(store=tmp_path / "runs.sqlite"))


@pytest.mark.parametrize(
    ("begun", "then", "alike"),
    [
        ({"simulations": 60, "rounds": 2}, {"simulations": 100, "rounds": 2}, "the first 30 are those of this call"),
        ({"simulations": 60, "rounds": 2}, {"simulations": 60}, "the first 30 are those of this call"),
        ({"simulations": 60}, {"simulations": 60, "method": "mcmc-abc"}, "the first 40 are those of this call"),
        ({"simulations": 60}, {"simulations": 60, "design": "sobol"}, "but not of this call"),
    ],
)
@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_a_store_that_was_begun_otherwise_is_refused_with_advice(tmp_path, begun, then, alike):
    given = {"simulator": noisy, "prior": kb.Prior(mu=(-3, 3)), "observed": 1.0, "random_state": 0}
    kb.infer(**given, **begun, run=kb.Run(store=tmp_path / "runs.sqlite"))
    with pytest.raises(ValueError, match=f"holds 60 runs, .*{alike}.*rounds=.*more=100.*another store"):
        kb.infer(**given, **then, run=kb.Run(store=tmp_path / "runs.sqlite"))


def noisy(mu, rng):
    return mu + 0.3 * rng.normal()


@pytest.mark.parametrize(("method", "needed"), [("kelfi", 10), ("rejection", 10), ("smc-abc", 40), ("mcmc-abc", 40)])
@pytest.mark.filterwarnings("ignore::kernelbayes.SimulationWarning")
def test_a_limit_of_time_that_leaves_too_few_runs(tmp_path, method, needed):
    import time

    def slow(mu, rng):
        time.sleep(0.1)
        return noisy(mu, rng)

    given = {"simulator": slow, "prior": {"mu": (-3, 3)}, "observed": 1.0, "simulations": 100}
    store = tmp_path / "runs.sqlite"
    with pytest.raises(kb.SimulationError, match=r"0.15 was over when \d of 100 runs had finished") as caught:
        kb.infer(**given, method=method, run=kb.Run(max_seconds=0.15, store=store))
    assert f"at least {needed} are needed" in str(caught.value)
    assert f"kept in the store {store}" in str(caught.value)
    assert 0 < len(kb.open_runs(store)) == len(caught.value.runs) < 5
    with pytest.raises(kb.SimulationError, match=r"with run=kb\.Run\(store="):
        kb.infer(**given, method=method, run=kb.Run(max_seconds=0.15))


def test_a_limit_of_time_in_the_middle_of_a_chain(tmp_path):
    import time

    def slow(mu, rng):
        time.sleep(0.0 if len(calls) < 40 else 0.3)
        calls.append(mu)
        return noisy(mu, rng)

    calls = []
    with pytest.raises(kb.SimulationError, match=r"had finished: too few for this method: the chain could not begin"):
        kb.infer(
            slow,
            {"mu": (-3, 3)},
            1.0,
            simulations=100,
            method=kb.lfi.SyntheticLikelihood(repeats=5),
            run=kb.Run(max_seconds=0.6),
        )


def test_a_simulator_may_change_directory(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)

    def moves(mu, rng):
        monkeypatch.chdir(tmp_path / "elsewhere")
        return mu + rng.normal()

    for budget in ({"simulations": 30}, {"more": 10}):
        monkeypatch.chdir(tmp_path)
        kb.infer(
            moves, {"mu": (-3, 3)}, 0.5, **budget, method="rejection", random_state=0, run=kb.Run(store="runs.sqlite")
        )
    assert len(kb.open_runs(tmp_path / "runs.sqlite")) == 40
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_damaged_store_is_refused(tmp_path):
    import sqlite3
    from contextlib import closing

    store = tmp_path / "runs.sqlite"
    kb.infer(noisy, {"mu": (-3, 3)}, 0.5, 30, method="rejection", random_state=0, run=kb.Run(store=store))
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE runs SET seconds = 1.0 WHERE run = 5")
    with pytest.raises(StoreError, match=r"is damaged: run 5 .* `kernelbayes store repair "):
        kb.infer(noisy, {"mu": (-3, 3)}, 0.5, 30, method="rejection", random_state=0, run=kb.Run(store=store))


@in_any_health
def test_a_gap_in_the_store_is_filled(tmp_path):
    """A process that was killed at work leaves one."""
    import sqlite3
    from contextlib import closing

    prior, store = kb.Prior(mu=(-3, 3)), tmp_path / "runs.sqlite"
    kb.infer(
        lambda mu, rng: mu + 0.3 * rng.normal(), prior, 1.0, simulations=60, random_state=0, run=kb.Run(store=store)
    )
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM runs WHERE run = 40")
    found = kb.infer(lambda mu, rng: mu + 0.3 * rng.normal(), prior, 1.0, more=20, rounds=1, run=kb.Run(store=store))
    np.testing.assert_allclose(found.parameters, prior.design(80))


def test_a_proposal_that_cuts_the_posterior_is_told():
    prior, proposal = kb.Prior(mu=(-5, 5)), kb.Prior(mu=(0, 1))
    with pytest.warns(kb.PosteriorWarning, match="proposal leaves out"):
        kb.infer(lambda mu, rng: mu + 3 * rng.normal(), prior, 0.5, simulations=200, proposal=proposal, random_state=0)


# ------------------------------------------------------------------------------------------------ whole numbers


def enumerated(law, noise, y, numbers):
    """The posterior masses of whole numbers observed with normal noise, all of them."""
    mass = law.pmf(numbers) * stats.norm.pdf(y, numbers, noise)
    return mass / mass.sum()


@in_any_health
@pytest.mark.parametrize(
    ("law", "noise", "y", "largest"),
    [
        (stats.randint(1, 10), 1.0, 1.2, 9),  # at the edge
        (stats.poisson(4), 1.0, 6.3, 40),  # off by 0.2 if the prior were flat
        (stats.bernoulli(0.3), 1.0, 0.9, 1),
    ],
    ids=["randint", "poisson", "bernoulli"],
)
def test_posterior_of_whole_numbers_by_enumeration(law, noise, y, largest):
    numbers, prior = np.arange(largest + 1), kb.Prior(k=law)
    exact, densities = enumerated(law, noise, y, numbers), []
    for seed in range(3):
        found = kb.infer(lambda k, rng: k + noise * rng.normal(), prior, y, simulations=500, random_state=seed)
        draws = found.sample(4000, random_state=0)[:, 0]
        assert np.isin(draws, numbers[law.pmf(numbers) > 0]).all()
        drawn, density = (draws[:, None] == numbers).mean(0), found.density(numbers[:, None])
        assert density.sum() == pytest.approx(1.0, abs=0.03)
        assert np.abs(drawn - density).sum() < 0.06
        densities.append(density)
    assert 0.5 * np.abs(np.mean(densities, axis=0) - exact).sum() < 0.12
    assert np.isin(found.herd(50, random_state=0), numbers).all()


@pytest.mark.parametrize("method", ["kbr", "rejection", "smc-abc", "gps-abc"])
@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_whole_numbers_by_other_methods(method):
    law, numbers = stats.randint(1, 10), np.arange(1, 10)
    settings = {"steps": 1000} if method == "gps-abc" else {}
    chosen = METHODS[method](**settings)
    shares = []
    for seed in range(1 if settings else 3):  # of the others each run has few draws
        found = kb.infer(lambda k, rng: k + rng.normal(), {"k": law}, 3.4, 400, chosen, random_state=seed)
        drawn = (found.sample(4000, random_state=0) == numbers).mean(0)
        density = found.density(numbers[:, None])
        assert density.sum() == pytest.approx(1.0, abs=1e-6)
        assert np.abs(density - drawn).sum() < 0.15
        shares.append(drawn)
    assert 0.5 * np.abs(np.mean(shares, axis=0) - enumerated(law, 1.0, 3.4, numbers)).sum() < 0.25


@pytest.mark.parametrize("method", ["kelfi", "rejection"])
def test_density_with_a_whole_number_and_another_parameter(method):
    prior = kb.Prior(k=stats.randint(0, 3), scale=stats.norm(0, 1))

    def simulator(k, scale, rng):
        return [k + 0.5 * rng.normal(), scale + 0.5 * k + 0.5 * rng.normal()]

    found = kb.infer(simulator, prior, [1.2, 0.3], simulations=500, method=method, random_state=0)
    line = np.linspace(-6, 6, 201)
    grid = np.stack(np.meshgrid(np.arange(3), line, indexing="ij"), axis=-1).reshape(-1, 2)
    density = found.density(grid).reshape(3, -1).sum(1) * (line[1] - line[0])
    assert density.sum() == pytest.approx(1.0, abs=0.02)
    drawn = (found.sample(4000, random_state=0)[:, :1] == np.arange(3)).mean(0)
    np.testing.assert_allclose(density, drawn, atol=0.05)
    if method == "kelfi":
        with pytest.raises(ValueError, match="a parameter is a whole number"):
            found.density(grid[:1], raw=True)


@in_any_health
def test_rounds_of_whole_numbers_count_as_draws_of_the_prior():
    law, numbers = stats.randint(1, 10), np.arange(1, 10)
    prior = kb.Prior(k=law)
    for settings in ({"simulations": 400}, {"simulations": 3000, "method": kb.lfi.Rejection(accept=0.1)}):
        drawn = []
        for seed in range(3):
            found = kb.infer(
                with_noise(1.0), prior, 3.4, rounds=2, random_state=seed, **settings, run=kb.Run(vectorised=True)
            )
            drawn.append((found.sample(4000, random_state=0) == numbers).mean(0))
            # of both rounds together the numbers are those near 3.4, and with their weights they are all alike
            shares = [w @ (found.parameters == numbers) / w.sum() for w in (np.ones(len(found._ratio)), found._ratio)]
            off = [0.5 * np.abs(share - 1 / 9).sum() for share in shares]
            assert off[1] < min(0.09, 0.7 * off[0])
        assert 0.5 * np.abs(np.mean(drawn, axis=0) - enumerated(law, 1.0, 3.4, numbers)).sum() < 0.16, settings
    once = kb.infer(with_noise(1.0), prior, 3.4, simulations=400, random_state=0, run=kb.Run(vectorised=True))
    calibration = kb.calibrate(once, 100)
    assert (calibration.coverage(0.9) > 0.8).all()


# --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["kelfi", "rejection"])
def test_calibration_of_a_loaded_posterior_of_several_rounds(tmp_path, method):
    posterior = kb.infer(noisy, {"mu": (-3, 3)}, 1.0, simulations=200, rounds=2, method=method, random_state=0)
    kb.save(posterior, tmp_path / "posterior.npz")
    loaded = kb.load(tmp_path / "posterior.npz")
    given = kb.calibrate(posterior, 40).ranks
    np.testing.assert_allclose(kb.calibrate(loaded, 40).ranks, given, atol=1e-9)
    ratio = loaded._ratio
    assert ratio.max() > 2 * ratio.min()  # the second round is nearer to the observation
    loaded._ratio = np.ones(len(ratio))
    assert np.abs(kb.calibrate(loaded, 40).ranks - given).max() > 0.01  # it makes a difference
    loaded._ratio = None
    with pytest.raises(ValueError, match="infer it again"):
        kb.calibrate(loaded, 40)


@in_any_health
def test_same_seed_same_answer():
    a, b = (
        kb.infer(lambda mu, rng: mu + 0.3 * rng.normal(), {"mu": (-3, 3)}, 1.0, simulations=60, random_state=4)
        for _ in range(2)
    )
    np.testing.assert_array_equal(a.mean(), b.mean())


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_saved_and_loaded(tmp_path):
    prior = kb.Prior(a=(0, 1), b=stats.gamma(2.0), pair=stats.multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]]))
    theta = prior.design(150)
    x = theta + 0.3 * np.random.default_rng(0).normal(size=theta.shape)
    for method in ("kelfi", "k-abc"):
        found = kb.infer(
            parameters=theta, outputs=x, prior=prior, observed=[0.5, 1.5, 0, 0], method=method, random_state=0
        )
        kb.save(found, tmp_path / "posterior.npz")
        loaded = kb.load(tmp_path / "posterior.npz")
        np.testing.assert_array_equal(loaded.mean(), found.mean())
        np.testing.assert_allclose(loaded.density(theta[:3]), found.density(theta[:3]))
        assert loaded.names == found.names
        assert repr(loaded) == repr(found)
    special = IidEpsilon(sort=False)
    found = kb.infer(
        parameters=theta,
        outputs=x,
        prior=prior,
        observed=[0.5, 1.5, 0, 0],
        method=kb.lfi.KELFI(epsilon_kernel=special),
        random_state=0,
    )
    kb.save(found, tmp_path / "posterior.npz")
    assert kb.load(tmp_path / "posterior.npz").settings["epsilon_kernel"] == special
    kb.calibrate(kb.load(tmp_path / "posterior.npz"), 30)
    drawn = kb.Prior(sampler=lambda n, rng: rng.normal(size=(n, 1)))
    found = kb.infer(parameters=theta[:, :1], outputs=x[:, :1], prior=drawn, observed=[0.5], random_state=0)
    kb.save(found, tmp_path / "posterior.npz")
    np.testing.assert_array_equal(kb.load(tmp_path / "posterior.npz").mean(), found.mean())


# ------------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "magic"}, "method must be one of"),
        ({"prior": None}, "infer needs a prior"),
        ({"prior": 3}, "prior must be a kb.Prior"),
        ({"observed": None}, "infer needs observed"),
        ({"observed": [[1.0, 2.0]]}, "observed has shape"),
        ({"observed": [1.0, 2.0], "method": "kelfi"}, "observed has shape"),
        ({"observed": [np.nan]}, "observed holds nothing but NaN"),
        ({"observed": [np.nan], "method": "kelfi"}, "only method 'likelihood' can do without"),
        ({"outputs": None}, "belong together"),
        ({"outputs": np.ones((3, 1))}, "they must be paired"),
        ({"outputs": np.full((100, 1), np.nan)}, "no row without NaN"),
        ({"method": kb.lfi.KELFI(epsilon=-1.0)}, "epsilon must be positive"),
        ({"method": kb.lfi.KELFI(reg=0.0)}, "reg must be positive"),
        ({"method": kb.lfi.KELFI}, "method is the class KELFI itself: call it, as in method=kb.lfi.KELFI()"),
        ({"run": kb.Run}, "run must be a kb.Run, got the class Run itself"),
        ({"run": kb.Run(executor=2)}, "run are for a simulator"),
        ({"simulations": 50}, "simulations are for a simulator"),
        ({"method": "smc-abc"}, "needs the simulator itself"),
        ({"method": kb.lfi.KELFI(learn="magic")}, "learn must be one of"),
        ({"method": kb.lfi.KELFI(epsilon_kernel="magic")}, "epsilon_kernel must be one of"),
        ({"statistics": ["a", "b"]}, "statistics has 2 names"),
        ({"simulator": simulator}, "not both"),
        ({"parameters": np.full((100, 1), 1e9), "prior": kb.Prior(mu0=(0, 1))}, "outside the support"),
        ({"method": kb.lfi.KELFI(form="open")}, "form must be one of"),
    ],
)
def test_mistakes_are_named(change, message):
    prior, theta, x, y, _ = gaussian(100, 0)
    arguments = {"parameters": theta, "outputs": x, "prior": prior, "observed": y, "random_state": 0, **change}
    with pytest.raises(ValueError, match=re.escape(message)):
        kb.infer(**arguments)


@pytest.mark.parametrize(
    ("argument", "method", "message"),
    [
        ("store", "likelihood", "store= belongs to run=kb.Run(store=...)"),
        ("max_seconds", "rejection", "max_seconds= belongs to run=kb.Run(max_seconds=...)"),
        ("epsilon", "likelihood", "epsilon= belongs to method=kb.lfi.KELFI(epsilon=...)"),
        ("epsilon", "rejection", "epsilon= belongs to method=kb.lfi.Rejection(epsilon=...)"),
        ("epsilon", kb.lfi.MarkovABC(), "epsilon= belongs to method=kb.lfi.MarkovABC(epsilon=...)"),
        ("particles", "likelihood", "particles= belongs to method=kb.lfi.LearnedLikelihood(particles=...)"),
        ("bandwidth", "likelihood", "infer has no argument 'bandwidth'; it has simulator, prior"),
        ("seed", "likelihood", "infer has no argument 'seed': did you mean random_state?"),
        ("n_jobs", "likelihood", "infer has no argument 'n_jobs': did you mean run=kb.Run(executor=...)?"),
        ("simulation", "likelihood", "infer has no argument 'simulation': did you mean simulations?"),
    ],
)
def test_an_argument_that_infer_does_not_have_is_sent_where_it_belongs(argument, method, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        kb.infer(noisy, {"mu": (-3, 3)}, 1.0, 20, method, **{argument: 1})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"executor": "many"}, "executor must be None"),
        ({"store": ":memory:"}, "would keep nothing"),
        ({"timeout": 0.0}, "timeout must be positive"),
        ({"max_seconds": -1}, "max_seconds must be positive"),
        ({"vectorised": "yes"}, "vectorised must be one of"),
        ({"pass_dict": 3}, "pass_dict must be one of"),
        ({"retry_failed": None}, "retry_failed must be one of"),
    ],
)
def test_how_to_run_is_checked_before_anything_is_run(given, message):
    with pytest.raises(ValueError, match=message):
        kb.Run(**given)


@pytest.mark.one_seed
def test_nothing_is_known_of_sqlite_where_nothing_is_kept():
    script = (
        "import sys, warnings, kernelbayes as kb\nwarnings.simplefilter('ignore')\n"
        "for method in ('likelihood', 'smc-abc'):\n"
        "    kb.infer(lambda mu, rng: mu + rng.normal(), {'mu': (-3, 3)}, 0.5, 90, method, random_state=0)\n"
        "assert 'sqlite3' not in sys.modules\n"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_settings_are_those_of_a_word_and_can_be_given_again():
    prior, theta, x, y, _ = gaussian(80, 0)
    given = {"parameters": theta, "outputs": x, "prior": prior, "observed": y, "random_state": 0}
    for method in ("rejection", "k-abc", "kelfi"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kb.PosteriorWarning)
            word, settings = (kb.infer(**given, method=m) for m in (method, METHODS[method]()))
            again = kb.infer(**given, method=METHODS[method](**word.settings))
        np.testing.assert_array_equal(word.mean(), settings.mean())
        assert word.method == settings.method == again.method == method
        assert again.settings.keys() == word.settings.keys()


def test_mistakes_with_a_simulator_are_named(tmp_path):
    prior = kb.Prior(mu=(-3, 3))
    with pytest.raises(ValueError, match="needs a simulator, or parameters"):
        kb.infer(None, prior, 1.0)
    with pytest.raises(ValueError, match="more adds to the runs of a store"):
        kb.infer(simulator, prior, 1.0, more=10)
    with pytest.raises(ValueError, match="not both"):
        kb.infer(simulator, prior, 1.0, simulations=20, more=10, run=kb.Run(store=tmp_path / "s.sqlite"))
    with pytest.raises(ValueError, match="there are 1 simulations"):
        kb.infer(lambda mu, rng: rng.normal(mu), kb.Prior(mu=(0, 1)), 0.5, simulations=1)
    with pytest.raises(ValueError, match="at least 10"):
        kb.infer(lambda mu: mu, prior, 1.0, simulations=5)
    with pytest.raises(ValueError, match="outside the support of the prior"):
        kb.infer(simulator, prior, 1.0, simulations=20, proposal=kb.Prior(mu=(-9, 9)))
    with pytest.raises(ValueError, match="rounds and proposal are for the others"):
        kb.infer(simulator, prior, 1.0, simulations=20, method="mcmc-abc", rounds=2)
    with pytest.raises(ValueError, match="no proposal, and one round"):
        kb.infer(simulator, prior, 1.0, simulations=20, method="k-abc", proposal=kb.Prior(mu=(-1, 1)))
    with pytest.raises(ValueError, match="proposal has parameters"):
        kb.infer(simulator, prior, 1.0, simulations=20, proposal=kb.Prior(other=(0, 1)))

"""Methods that choose where to simulate: against exact soft posteriors, and never beyond what they were allowed."""

import runpy
import sqlite3
import subprocess
import sys
import time
import warnings
from contextlib import closing

import numpy as np
import pytest
import scipy.special
from pairs import NOISE, normal_pair
from scipy import stats

import kernelbayes as kb
from kernelbayes.lfi import METHODS, AdaptiveSynthetic, MarkovABC, SequentialABC, SurrogateABC, SyntheticLikelihood
from kernelbayes.lfi._prior import Prior
from kernelbayes.lfi._problem import OutOfBudget, Problem
from kernelbayes.lfi._surrogate import Surrogate, _learned_scales
from kernelbayes.lfi._synthetic import decision_error
from kernelbayes.lfi._walk import autocorrelated_size
from kernelbayes.simulation import _processes, _store

SEEKING = [name for name, kind in METHODS.items() if kind.seeks]
# Enough of everything for a check that does not look at numbers.
QUICK = {"gps-abc": {"steps": 200}}


class Runs:
    """A simulator of many rows at once with a budget, fast enough for long chains."""

    def __init__(self, simulator, total, seed=0):
        self.simulator, self.left, self.rng = simulator, total, np.random.default_rng(seed)
        self.rows = []

    def __call__(self, theta):
        if len(theta) > self.left:
            raise OutOfBudget
        self.left -= len(theta)
        self.rows.append(theta)
        return self.simulator(theta, self.rng)


def noisy(theta, rng):
    return theta + NOISE * rng.standard_normal(theta.shape)


def a_problem(total, observed, prior=None, simulator=noisy, pilot=100, seed=0):
    prior = prior or Prior(mu=stats.multivariate_normal([0.0], [[1.0]]))
    theta = prior.design(pilot, random_state=seed)
    outputs = simulator(theta, np.random.default_rng([seed, 1]))
    names = tuple(f"x{i}" for i in range(outputs.shape[1]))
    run = Runs(simulator, total, seed)
    observed = np.atleast_1d(np.asarray(observed, dtype=float))
    return Problem(prior, observed, theta, outputs, names, np.random.default_rng(seed), run, False)


def moments(problem, found):
    theta, w = problem.prior.from_gaussian(found.law.points), found.law.weights
    mean = w @ theta
    return mean, (w[:, None] * (theta - mean)).T @ (theta - mean)


def by_quadrature(log_likelihood, log_prior, low, high):
    grid = np.linspace(low, high, 20001)
    logs = log_likelihood(grid) + log_prior(grid)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    mean = p @ grid
    return mean, np.sqrt(p @ (grid - mean) ** 2)


def conjugate(y, variance):
    """Mean and sd of mu ~ N(0, 1) given y ~ N(mu, variance)."""
    return y / (1 + variance), np.sqrt(variance / (1 + variance))


# ------------------------------------------------------------------------------------------------ exact posteriors


@pytest.mark.parametrize("repeats", [1, 4])
def test_markov_chain_has_the_soft_posterior(repeats):
    """Without the prior the mean would be 1.5, without epsilon 1.2; the sd 0.71 and 0.45."""
    problem = a_problem(4000 * repeats, 1.5)
    found = MarkovABC(epsilon=0.5, standardise=False, repeats=repeats).infer(problem)
    mean, cov = moments(problem, found)
    exact_mean, exact_sd = conjugate(1.5, NOISE**2 + 0.5**2)
    np.testing.assert_allclose(mean, exact_mean, atol=0.07)
    np.testing.assert_allclose(np.sqrt(cov), exact_sd, rtol=0.08)
    assert found.details["simulations"] == 4000 * repeats
    assert found.problems == []


def test_epsilon_is_in_units_of_the_spread():
    """Statistics in other units: the same chain."""
    scaled = a_problem(300, 1500.0, simulator=lambda theta, rng: 1000 * noisy(theta, rng))
    plain = a_problem(300, 1.5)
    a, b = (MarkovABC(epsilon=0.3).infer(p) for p in (scaled, plain))
    np.testing.assert_allclose(a.law.points, b.law.points, rtol=1e-10)


def test_indicator_under_a_prior_that_is_not_normal():
    """Coordinates of a uniform prior: one that forgot their density would pile up at the edges."""
    problem = a_problem(3000, 0.3, Prior(mu=stats.uniform(0, 4)))
    found = MarkovABC(kernel="indicator", epsilon=0.6, standardise=False).infer(problem)
    mean, cov = moments(problem, found)

    def log_likelihood(mu):
        inside = scipy.special.ndtr((0.9 - mu) / NOISE) - scipy.special.ndtr((-0.3 - mu) / NOISE)
        return np.log(inside)

    exact_mean, exact_sd = by_quadrature(log_likelihood, np.zeros_like, 0.0, 4.0)
    np.testing.assert_allclose(mean, exact_mean, atol=0.05)
    np.testing.assert_allclose(np.sqrt(cov), exact_sd, rtol=0.1)


def test_populations_have_the_soft_posterior_of_the_last_epsilon():
    problem = a_problem(30000, 1.5)
    found = SequentialABC(particles=1500, epsilon=0.8, standardise=False).infer(problem)
    mean, cov = moments(problem, found)

    def log_likelihood(mu):
        return np.log(scipy.special.ndtr((2.3 - mu) / NOISE) - scipy.special.ndtr((0.7 - mu) / NOISE))

    exact_mean, exact_sd = by_quadrature(log_likelihood, lambda mu: -0.5 * mu**2, -3.0, 6.0)
    np.testing.assert_allclose(mean, exact_mean, atol=0.06)
    np.testing.assert_allclose(np.sqrt(cov), exact_sd, rtol=0.06)
    epsilons = found.details["epsilons"]
    assert epsilons[-1] == 0.8
    assert (np.diff(epsilons) < 0).all()
    assert found.problems == []


PRIOR_COV = np.array([[1.0, 0.6], [0.6, 1.0]])
LINEAR = np.array([[1.0, 0.0], [1.0, -1.0], [0.5, 1.0]])


def linear(theta, rng):
    return theta @ LINEAR.T + NOISE * rng.standard_normal((len(theta), 3))


def linear_posterior(y, variance):
    precision = np.linalg.inv(PRIOR_COV) + LINEAR.T @ LINEAR / variance
    cov = np.linalg.inv(precision)
    return cov @ LINEAR.T @ y / variance, cov


@pytest.mark.parametrize(
    ("method", "total", "settings", "variance"),
    [
        (MarkovABC, 4000, {"epsilon": 0.6}, NOISE**2 + 0.36),
        (SequentialABC, 80000, {"particles": 1600}, NOISE**2),
        (SyntheticLikelihood, 60000, {"repeats": 30, "epsilon": 0.3}, NOISE**2 + 0.09),
        (AdaptiveSynthetic, 60000, {"repeats": 30, "epsilon": 0.3}, NOISE**2 + 0.09),
        (SurrogateABC, 150, {"steps": 1500, "epsilon": 0.3}, NOISE**2 + 0.09),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_linear_normal_posterior(method, total, settings, variance):
    """Two parameters that depend on each other, three statistics; the prior's correlation is 0.6, the posterior's near 0."""
    y = np.array([1.2, 0.3, 1.0])
    prior = Prior(mu=stats.multivariate_normal([0.0, 0.0], PRIOR_COV))
    problem = a_problem(total, y, prior, linear)
    found = method(standardise=False, **settings).infer(problem)
    mean, cov = moments(problem, found)
    exact_mean, exact_cov = linear_posterior(y, variance)
    sd = np.sqrt(np.diagonal(exact_cov))
    assert (np.abs(mean - exact_mean) < 0.3 * sd).all()
    np.testing.assert_allclose(np.sqrt(np.diagonal(cov)), sd, rtol=0.17)
    correlation = [c[0, 1] / np.sqrt(c[0, 0] * c[1, 1]) for c in (cov, exact_cov)]
    np.testing.assert_allclose(*correlation, atol=0.2)
    assert found.ess > 50


def test_failed_runs_count_as_unlikely():
    """A simulator that fails half of the time above 1, always above 2: the posterior is the exact one times that."""

    def fragile(theta, rng):
        x = noisy(theta, rng)
        x[(theta > 2) | ((theta > 1) & (rng.uniform(size=theta.shape) < 0.5))] = np.nan
        return x

    prior = Prior(mu=stats.multivariate_normal([0.0], [[1.0]]))
    theta = prior.design(100)
    outputs = fragile(theta, np.random.default_rng(1))
    good = np.isfinite(outputs[:, 0])
    problem = Problem(
        prior,
        np.array([1.5]),
        theta[good],
        outputs[good],
        ("x0",),
        np.random.default_rng(0),
        Runs(fragile, 8000),
        False,
    )
    found = MarkovABC(epsilon=0.5, standardise=False).infer(problem)
    mean, cov = moments(problem, found)
    exact = by_quadrature(
        lambda mu: -((1.5 - mu) ** 2) + np.log(np.where(mu > 2, 1e-300, np.where(mu > 1, 0.5, 1.0))),
        lambda mu: -0.5 * mu**2,
        -6.0,
        6.0,
    )
    np.testing.assert_allclose(mean, exact[0], atol=0.06)  # 1.0 if failures were left out
    np.testing.assert_allclose(np.sqrt(cov), exact[1], rtol=0.08)
    assert found.law.points.max() < 2.0


# ------------------------------------------------------------------------------------------------------- the parts


def test_decision_error_is_the_integral_over_thresholds():
    alphas = np.random.default_rng(0).beta(0.7, 1.3, 31)
    tau, grid = np.median(alphas), (np.arange(20000) + 0.5) / 20000
    wrong = np.where(grid <= tau, (alphas[:, None] < grid).mean(0), (alphas[:, None] >= grid).mean(0))
    np.testing.assert_allclose(decision_error(alphas), wrong.mean(), atol=1e-4)
    assert decision_error(np.full(5, 0.4)) == 0.0


def test_smaller_decision_errors_cost_more_simulations():
    used = []
    for error in (0.4, 0.05):
        found = AdaptiveSynthetic(error=error, repeats=5, extra=5, steps=150, step=1.0).infer(a_problem(10**6, 1.5))
        used.append(found.details["simulations"])
    assert used[0] < 1.2 * 5 * 151
    assert used[1] > 1.5 * used[0]


def test_surrogate_predicts_as_scikit_learn_does():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    rng = np.random.default_rng(0)
    Z = rng.normal(size=(60, 2))
    Z[55:] = Z[55]  # five runs at one place
    X = np.column_stack([np.sin(Z[:, 0]), Z[:, 0] * Z[:, 1] / 3]) + 0.1 * rng.normal(size=(60, 2))
    model = Surrogate(Z[:55], X[:55], np.zeros(2), 0)
    model.add(Z[55], X[55:])
    at = rng.normal(size=(4, 2))
    means, covariances = model.predict(at)
    for j in range(2):
        lengthscales, amplitude, noise = _learned_scales(Z[:55], X[:55, j])
        kernel = ConstantKernel(amplitude) * RBF(lengthscales) + WhiteKernel(noise)
        peer = GaussianProcessRegressor(kernel, optimizer=None).fit(Z, X[:, j] - X[:, j].mean())
        mean, cov = peer.predict(at, return_cov=True)
        np.testing.assert_allclose(means[j], mean + X[:, j].mean(), atol=1e-6)
        np.testing.assert_allclose(covariances[j], cov - noise * np.eye(4), atol=1e-6)
    np.testing.assert_allclose(np.sqrt(model.noise), 0.1, rtol=0.3)


def test_surrogate_asks_where_it_matters():
    """Within three standard deviations of the posterior, where half of the prior lies."""
    problem = a_problem(200, 1.5, pilot=15)
    found = SurrogateABC(steps=600, standardise=False).infer(problem)
    theta = np.concatenate(problem.run.rows)
    assert 0 < found.details["simulations"] == len(theta) <= 200
    assert (np.abs(theta - 1.2) < 3 * 0.45).mean() > 0.85
    assert SurrogateABC(steps=50, most=7).infer(a_problem(400, 1.5)).details["simulations"] == 5


def test_effective_size_of_an_autoregression():
    rng = np.random.default_rng(0)
    x, rho = np.zeros(40000), 0.8
    for t in range(1, len(x)):
        x[t] = rho * x[t - 1] + rng.normal()
    np.testing.assert_allclose(autocorrelated_size(x), len(x) * (1 - rho) / (1 + rho), rtol=0.12)
    np.testing.assert_allclose(autocorrelated_size(rng.normal(size=5000)), 5000, rtol=0.1)
    assert autocorrelated_size(np.ones(50)) == 1.0


def test_repeated_places_count_by_how_long_the_chain_stayed():
    found = MarkovABC(burn=0.0).infer(a_problem(200, 1.5))
    assert len(found.law.points) < 199
    np.testing.assert_allclose(found.law.weights.sum(), 1.0)
    np.testing.assert_allclose((found.law.weights * 199).round(9) % 1, 0.0)
    assert found.details["steps"] == 199


# ------------------------------------------------------------------------------------------------- budget and store


@pytest.mark.parametrize("method", SEEKING)
def test_same_seed_same_answer_and_never_over_budget(method):
    answers = []
    for _ in range(2):
        problem = a_problem(137, 1.5, pilot=20)
        found = METHODS[method](**QUICK.get(method, {})).infer(problem)
        assert problem.run.left >= 0
        assert sum(map(len, problem.run.rows)) == found.details["simulations"] <= 137
        answers.append(found.law.points)
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize(
    ("method", "settings"),
    [("mcmc-abc", {}), ("synthetic", {}), ("adaptive-synthetic", {}), ("smc-abc", {}), ("smc-abc", {"particles": 20})],
)
def test_a_larger_budget_goes_on_where_a_smaller_one_ended(method, settings):
    rows = []
    for total in (150, 400):
        problem = a_problem(total, 1.5)
        METHODS[method](**settings).infer(problem)
        rows.append(np.concatenate(problem.run.rows))
    first, more = rows
    assert len(more) > len(first) > 100
    np.testing.assert_array_equal(more[: len(first)], first)


class Counting:
    """A simulator that counts its calls, and fails above 1.5."""

    def __init__(self):
        self.calls = 0

    def __call__(self, mu, rng):
        self.calls += 1
        if mu > 1.5:
            raise RuntimeError("it broke")
        return {"mean": rng.normal(mu, NOISE), "other": rng.normal(0.5 * mu, NOISE)}


def inferred(simulator, method, simulations, **options):
    prior, observed = kb.Prior(mu=stats.norm(0, 1)), {"mean": 0.8, "other": 0.4}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.PosteriorWarning)
        warnings.simplefilter("ignore", kb.SimulationWarning)
        return kb.infer(
            simulator, prior, observed, simulations, METHODS[method](**QUICK.get(method, {})), random_state=0, **options
        )


@pytest.mark.parametrize("method", SEEKING)
def test_from_a_failing_simulator(method):
    simulator = Counting()
    posterior = inferred(simulator, method, 120)
    assert simulator.calls == posterior.runs <= 120
    assert posterior.failures > 0
    draws = posterior.sample(200, random_state=0)
    assert draws.max() < 1.5 or method == "gps-abc"
    assert (-1.0 if method == "mcmc-abc" else 0.0) < draws.mean() < 1.4  # a chain of 80 steps has hardly begun


@pytest.mark.parametrize("method", ["mcmc-abc", "smc-abc", "gps-abc"])
def test_a_store_repeats_nothing(method, tmp_path):
    first, second = Counting(), Counting()
    options = {"run": kb.Run(store=tmp_path / "runs.sqlite")}
    a = inferred(first, method, 60, **options)
    b = inferred(second, method, 60, **options)
    assert first.calls > 30
    assert second.calls == 0
    np.testing.assert_array_equal(a.sample(50, random_state=0), b.sample(50, random_state=0))


def test_populations_go_on_in_a_store(tmp_path):
    first, second, at_once = Counting(), Counting(), Counting()
    options = {"run": kb.Run(store=tmp_path / "runs.sqlite")}
    inferred(first, "smc-abc", 150, **options)
    more = inferred(second, "smc-abc", None, more=450, **options)
    assert (first.calls, second.calls) == (150, 450)
    whole = inferred(at_once, "smc-abc", 600, run=kb.Run(store=tmp_path / "other.sqlite"))
    np.testing.assert_array_equal(more.parameters, whole.parameters)
    np.testing.assert_array_equal(more.outputs, whole.outputs)


@pytest.mark.parametrize("executor", [None, 1])
def test_a_search_opens_its_store_once(tmp_path, monkeypatch, executor):
    opened, started = [], []
    really, worker = _store.open_to_write, _processes._Worker
    monkeypatch.setattr(_store, "open_to_write", lambda path: opened.append(path) or really(path))
    monkeypatch.setattr(_processes, "_Worker", lambda *args: started.append(args) or worker(*args))
    stored = inferred(normal_pair, "mcmc-abc", 80, run=kb.Run(store=tmp_path / "runs.sqlite", executor=executor))
    assert len(stored.parameters) == 80
    assert len(opened) == 1
    assert len(started) == (executor or 0)


class Watched:
    """Looks into the store at each run, where all that ended before must be; Ctrl-C at one of them."""

    def __init__(self, store, begin=0, stop=None):
        self.store, self.ended, self.stop = store, begin, stop

    def __call__(self, mu, rng):
        assert not self.ended or len(kb.open_runs(self.store)) == self.ended
        if self.ended == self.stop:
            raise KeyboardInterrupt
        self.ended += 1
        return normal_pair(mu, rng)


def test_a_search_that_is_interrupted_has_kept_every_run(tmp_path):
    store = tmp_path / "runs.sqlite"
    with pytest.raises(KeyboardInterrupt):
        inferred(Watched(store, stop=54), "mcmc-abc", 80, run=kb.Run(store=store))
    assert len(kb.open_runs(store)) == 54
    with closing(sqlite3.connect(store)) as db:  # it was closed
        assert [db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in ("owners", "claims")] == [0, 0]
    resumed = inferred(Watched(store, begin=54), "mcmc-abc", 80, run=kb.Run(store=store))
    at_once = inferred(normal_pair, "mcmc-abc", 80, run=kb.Run(store=tmp_path / "other.sqlite"))
    np.testing.assert_array_equal(resumed.outputs, at_once.outputs)


def test_two_processes_walk_in_one_store(tmp_path):
    script = (
        "import os, sys, warnings, kernelbayes as kb\nfrom scipy import stats\n"
        "def walk(folder):\n"
        "    def simulator(mu, rng):\n"
        "        handle = os.open(folder + '/calls', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "        os.write(handle, b'x')\n        os.close(handle)\n        return rng.normal(mu, 0.5)\n"
        "    return kb.infer(simulator, kb.Prior(mu=stats.norm(0, 1)), 0.8, 120, 'mcmc-abc', random_state=0,\n"
        "                    run=kb.Run(store=folder + '/runs.sqlite')).mean()[0]\n"
        "if __name__ == '__main__':\n"
        "    warnings.simplefilter('ignore')\n    print(walk(sys.argv[1]))\n"
    )
    (tmp_path / "walk.py").write_text(script)
    command = [sys.executable, tmp_path / "walk.py", tmp_path]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    latest = time.monotonic() + 120
    while not (tmp_path / "calls").exists() and other.poll() is None and time.monotonic() < latest:
        time.sleep(0.005)  # this process joins in when the other has begun to walk
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mean = runpy.run_path(str(tmp_path / "walk.py"))["walk"](str(tmp_path))
    said = other.communicate(timeout=120)
    assert said[0] == f"{mean}\n", said
    assert len((tmp_path / "calls").read_text()) == 120


def test_an_output_of_another_shape_is_a_failure_of_that_run():
    def sometimes(mu, rng):
        return [mu, 1.0, 2.0] if 0.5 < mu < 0.6 else [rng.normal(mu, NOISE), rng.normal()]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.PosteriorWarning)
        warnings.simplefilter("ignore", kb.SimulationWarning)
        found = kb.infer(sometimes, {"mu": stats.norm(0, 1)}, [0.5, 0.0], 150, "mcmc-abc", random_state=0)
    strange = (found.parameters > 0.5) & (found.parameters < 0.6)
    assert not strange.any()
    assert found.failures > 0
    assert found.outputs.shape == (150 - found.failures, 2)


# ------------------------------------------------------------------------------------------------ what it says


def test_it_says_what_is_wrong():
    stuck = MarkovABC(epsilon=1e-4, step=1e3, burn=0.0).infer(a_problem(60, 0.5))
    assert any("never moved" in text or "accepted" in text for text in stuck.problems)
    short = SyntheticLikelihood().infer(a_problem(60, 0.5))
    assert any("independent draws" in text for text in short.problems)
    wide = SequentialABC(epsilon=1e-3).infer(a_problem(100, 0.5))
    assert any("epsilon = 0.001 was not reached" in text for text in wide.problems)
    none = SequentialABC().infer(a_problem(5, 0.5))
    assert any("before the first population" in text for text in none.problems)
    unsure = AdaptiveSynthetic(error=0.001, repeats=4, most=4).infer(a_problem(2000, 0.5))
    assert any("larger error than allowed" in text for text in unsure.problems)


def test_what_cannot_work_is_refused():
    with pytest.raises(ValueError, match="epsilon=1e-09 was not reached by any of 50 simulations"):
        MarkovABC(kernel="indicator", epsilon=1e-9).infer(a_problem(50, 1.5))
    with pytest.raises(ValueError, match="the chain could not begin"):
        SyntheticLikelihood().infer(a_problem(9, 1.5))
    sampled = Prior(sampler=lambda n, rng: rng.normal(size=(n, 1)))
    for method in (METHODS[name]() for name in SEEKING):
        with pytest.raises(ValueError, match="this prior can only be sampled"):
            method.infer(a_problem(50, 1.5, sampled))
        with pytest.raises(ValueError, match="needs the simulator itself"):
            method.infer(a_problem(50, 1.5).without(0))


@pytest.mark.parametrize(
    ("method", "setting", "value"),
    [
        ("mcmc-abc", "epsilon", 0.0),
        ("mcmc-abc", "kernel", "box"),
        ("mcmc-abc", "repeats", 0),
        ("mcmc-abc", "step", [0.1, 0.1]),
        ("mcmc-abc", "step", -1.0),
        ("mcmc-abc", "burn", 1.0),
        ("mcmc-abc", "steps", 2.5),
        ("mcmc-abc", "standardise", "yes"),
        ("smc-abc", "particles", 3),
        ("smc-abc", "shrink", 1.0),
        ("smc-abc", "epsilon", -0.1),
        ("smc-abc", "populations", 0),
        ("synthetic", "epsilon", 0.0),
        ("synthetic", "repeats", 1),
        ("synthetic", "burn", -0.1),
        ("synthetic", "steps", 0),
        ("adaptive-synthetic", "extra", 0),
        ("adaptive-synthetic", "error", 0.7),
        ("adaptive-synthetic", "draws", 1),
        ("adaptive-synthetic", "most", 5),
        ("gps-abc", "epsilon", "small"),
        ("gps-abc", "extra", 0),
        ("gps-abc", "error", 0.0),
        ("gps-abc", "draws", 1.5),
        ("gps-abc", "most", -1),
        ("gps-abc", "steps", 5),
    ],
)
def test_settings_are_refused_by_name(method, setting, value):
    with pytest.raises(ValueError, match=setting):
        METHODS[method](**{setting: value}).infer(a_problem(50, 1.5, pilot=20))


@pytest.mark.parametrize("method", SEEKING)
def test_settings_can_be_passed_in_again(method):
    first = METHODS[method](**QUICK.get(method, {})).infer(a_problem(300, 1.5))
    again = METHODS[method](**first.settings).infer(a_problem(300, 1.5))
    assert again.settings.keys() == first.settings.keys()
    assert all(np.array_equal(again.settings[k], v) for k, v in first.settings.items())

"""The experiments on likelihood-free inference: claims on made-up numbers, errors against closed forms, small whole runs."""

import json

import numpy as np
import pytest
from scipy import stats

from kernelbayes.cli import main
from kernelbayes.experiments import Runs, Study, _rate_surfaces, blowfly, exponential_gamma, lotka_volterra
from kernelbayes.experiments._rates import problem_of, total_variation
from kernelbayes.experiments._simulators import (
    BLOWFLY_TRUTH,
    RATES_TRUTH,
    blowflies,
    blowfly_prior,
    simulate_blowflies,
)
from kernelbayes.experiments.blowfly import _methods
from kernelbayes.lfi import GaussianEpsilon

NAMES = ("exponential-gamma", "blowfly", "lotka-volterra")


def _verdicts(claims):
    return [claim.verdict for claim in claims]


def _noise(*shape, seed=0):
    return np.exp(0.02 * np.random.default_rng(seed).normal(size=shape))


# -------------------------------------------------------------------------------------------- exponential-gamma


class _Known:
    """Stands for a posterior with a density that is known."""

    def __init__(self, law):
        self.law = law

    def density(self, theta, raw=False):
        return self.law.pdf(theta[:, 0])


def test_total_variation_of_known_densities():
    exact = stats.norm(0.0, 1.0)
    for away in (0.0, 0.5, 2.0):
        found = total_variation(_Known(stats.norm(away, 1.0)), exact)
        assert found == pytest.approx(2 * stats.norm.cdf(away / 2) - 1, abs=2e-6)
    assert total_variation(_Known(stats.uniform(50, 1)), exact) == pytest.approx(1.0, abs=1e-6)


def _rates(**levels):
    names = exponential_gamma._WAYS
    values = {}
    for i, name in enumerate(names):
        for key in ("tv", "mmd", "mean", "sd"):
            values[f"{name}_{key}"] = levels.get(name, 0.6) * _noise(2, 10, seed=i)
    return Runs([{"count": 15, "statistic": s} for s in ("mean", "log mean")], values)


def _surface(rank=0.9, at_top=0.2, best=0.15):
    values = {"marginal_rank": rank, "marginal_tv": at_top, "score_rank": 0.8, "score_tv": 0.2, "best_tv": best}
    cases = [{"count": 15, "statistic": s} for s in ("mean", "log mean")]
    return Runs(cases, {name: v * np.ones((2, 5)) for name, v in values.items()})


def test_exponential_gamma_claims():
    good = exponential_gamma.claims(_rates(kelfi=0.2, dme=0.3), _surface())
    assert _verdicts(good) == ["reproduced"] * 3
    assert "(K2-ABC, farther in 10 of 10 runs)" in good[0].shown
    one_ahead = exponential_gamma.claims(_rates(kelfi=0.2, dme=0.3, k2abc=0.25), _surface(rank=0.1))
    assert _verdicts(one_ahead) == ["reproduced", "partly", "partly"]
    bad = exponential_gamma.claims(_rates(kelfi=0.9, dme=0.9), _surface(rank=0.1, at_top=0.8))
    assert _verdicts(bad) == ["not reproduced"] * 3


def test_maximum_of_the_marginal_likelihood_is_the_largest_of_the_surface():
    settings = {"simulations": 40, "count": 15, "statistic": "log mean", "grid": 4}
    problem = problem_of(settings, np.random.default_rng(0))
    surface, best = (
        _rate_surfaces._marginals(problem, settings),
        _rate_surfaces.global_optimum(problem, settings),
    )
    epsilons, betas = _rate_surfaces._grid(settings)
    i, j = np.argwhere(surface == surface.max())[0]
    scales = {"epsilon": epsilons[i], "lengthscale": betas[j], "reg": 1e-3 * betas[j]}
    assert best == {"epsilon_kernel": GaussianEpsilon(ranks=False), **scales}


def test_marginal_likelihood_of_the_surface_by_brute_force():
    """(4.5) as printed: kernels and linear algebra by hand, the prior by quadrature."""
    settings = {"simulations": 30, "count": 15, "statistic": "log mean", "grid": 3}
    problem = problem_of(settings, np.random.default_rng(0))
    surface = _rate_surfaces._marginals(problem, settings)
    epsilons, betas = _rate_surfaces._grid(settings)
    x, y = np.log(problem.data.mean(1)), np.log(problem.observed.mean())
    unit = 1.4826 * np.median(np.abs(x - np.median(x)))
    prior = stats.gamma(0.1, scale=10.0)
    z = stats.norm.ppf(prior.cdf(problem.theta[:, 0]))
    t = np.linspace(-9, 9, 20_001)
    for i, j in ((1, 1), (2, 0)):
        e, b = epsilons[i], betas[j]
        kappa = np.exp(-0.5 * ((x - y) / unit / e) ** 2) / e
        mu = np.array([np.trapezoid(np.exp(-0.5 * ((t - v) / b) ** 2) * stats.norm.pdf(t), t) for v in z])
        L = np.exp(-0.5 * ((z[:, None] - z) / b) ** 2)
        q = mu @ np.linalg.solve(L + len(z) * 1e-3 * b * np.eye(len(z)), kappa)
        assert surface[i, j] == pytest.approx(np.log(q), abs=1e-5)


# ------------------------------------------------------------------------------------------------------ blowfly


def test_normalised_error_of_blowflies():
    series = blowflies(BLOWFLY_TRUTH[None], np.random.default_rng(0))[0]
    task = _methods.task_of(series, 300)
    X = simulate_blowflies(np.tile(BLOWFLY_TRUTH, (50, 1)), np.random.default_rng(3))
    by_hand = np.mean([np.mean((X[:, j] - task.observed[j]) ** 2) / task.under_prior[j] for j in range(10)])
    assert task.nmse(BLOWFLY_TRUTH, 50, np.random.default_rng(3)) == pytest.approx(by_hand)
    assert task.nmse(BLOWFLY_TRUTH, 200, np.random.default_rng(3)) < 0.1
    assert np.isnan(task.nmse(np.full(6, np.nan), 50, np.random.default_rng(3)))
    # a point drawn from the prior has the error of the prior, on average
    prior = blowfly_prior().sample(300, random_state=0)
    same = simulate_blowflies(prior, np.random.default_rng(1))
    assert np.mean(((same - task.observed) ** 2).mean(0) / task.under_prior) == pytest.approx(1.0)


SIZES = {"sizes": [100, 300, 1000], "ard_at": 300}


def _flies(relevant=(8, 9), irrelevant=0, decay=-0.3, **levels):
    noise = _noise(3, 6)
    levels = {"kelfi": [0.02, 0.008, 0.005]} | levels
    values = {n: np.reshape(np.broadcast_to(levels.get(n, 0.05), 3), (3, 1)) * noise for n in _methods.WAYS}
    m = np.array(SIZES["sizes"], dtype=float)[:, None]
    values["marginal_epsilon"] = m**decay * noise
    values["kelfi_epsilon"] = m**-0.2 * noise
    values |= {"prior_mean": noise, "truth": noise}
    for name in _methods.RELEVANCE:
        for i in range(10):
            level = 0.1 if i in relevant else 10.0 if i == irrelevant else 1.0 + i / 100
            values[f"ard_{name}_{i}"] = level * noise
    return Runs([{"simulations": n} for n in SIZES["sizes"]], values)


def test_blowfly_claims():
    good = blowfly.claims(_flies(), SIZES)
    assert _verdicts(good) == ["reproduced"] * 4
    assert "marginal likelihood 1, 10 and 9; " in good[3].shown or "marginal likelihood 1, 9 and 10; " in good[3].shown
    assert _verdicts(blowfly.claims(_flies(kelfi=[0.02, 0.02, 0.005]), SIZES))[0] == "partly"
    assert _verdicts(blowfly.claims(_flies(kelfi=0.02), SIZES))[0] == "not reproduced"
    assert _verdicts(blowfly.claims(_flies(synthetic=0.006), SIZES))[1] == "partly"
    assert _verdicts(blowfly.claims(_flies(mcmc=0.001), SIZES))[1] == "not reproduced"
    assert _verdicts(blowfly.claims(_flies(decay=0.1), SIZES))[2] == "not reproduced"
    assert _verdicts(blowfly.claims(_flies(relevant=(0, 1), irrelevant=9), SIZES))[3] == "not reproduced"


def test_blowfly_reads_the_series_from_a_folder(tmp_path):
    made_up = blowflies(BLOWFLY_TRUTH[None], np.random.default_rng(5))[0]
    lines = ["index,day,pop", *(f"{i},{2 * i},{v:.6f}" for i, v in enumerate(made_up, 1))]
    (tmp_path / "blowfly.csv").write_text("\n".join(lines) + "\n")
    np.testing.assert_allclose(Study("blowfly", tmp_path, data=tmp_path).read("blowfly.csv", "pop"), made_up, atol=1e-6)
    assert Study("blowfly", tmp_path).read("blowfly.csv", "pop") is None
    with pytest.raises(OSError, match="must have a column 'count' of numbers"):
        Study("blowfly", tmp_path, data=tmp_path).read("blowfly.csv", "count")


# ----------------------------------------------------------------------------------------------- lotka-volterra


def _rates_runs(repeats=5, **off):
    """Runs in which intervals are one wide about a mean that is off by so much."""
    values = {"failed": np.full((1, repeats), 0.12)}
    for name in lotka_volterra._WAYS:
        away, half = off.get(name, (0.1, 0.5))
        for j, truth in enumerate(RATES_TRUTH, 1):
            values[f"{name}_mean_{j}"] = np.full((1, repeats), truth + away)
            values[f"{name}_low_{j}"] = np.full((1, repeats), truth + away - half)
            values[f"{name}_high_{j}"] = np.full((1, repeats), truth + away + half)
    return Runs([{}], values)


def test_lotka_volterra_claims():
    good = lotka_volterra.claims(_rates_runs(kbr=(0.5, 2.0)))
    assert _verdicts(good) == ["reproduced"] * 3
    assert "in 5 of 5 repeats (all four rates: 20 of 20); it is 1 wide" in good[0].shown
    bad = lotka_volterra.claims(_rates_runs(kelfi=(1.0, 0.5), dme=(0.9, 2.0)))
    assert _verdicts(bad) == ["not reproduced", "partly", "not reproduced"]


def test_runs_that_fail_are_left_out():
    settings = {"simulations": 60, "pilot": 40}
    task = lotka_volterra._task(settings, np.random.default_rng(0))
    assert 0 < task.failed < 0.4
    assert len(task.theta) == round(60 * (1 - task.failed)) == len(task.X)
    assert np.isfinite(task.X).all()
    assert (np.abs(task.theta + 1.5) <= 3.5).all()


# ---------------------------------------------------------------------------------------------------- all three


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of quick runs."""
    out = tmp_path_factory.mktemp("experiments")
    assert main(["experiment", *NAMES, "--quick", "--out", str(out)]) == 0
    return out


@pytest.mark.parametrize("name", NAMES)
def test_quick_run_writes_everything(quick, name):
    record = json.loads((quick / f"{name}-quick.json").read_text())
    assert record["quick"] is True
    assert all(table["rows"] for table in record["tables"])
    assert len(record["claims"]) >= 3
    assert not [key for row in record["runs"] for key, v in row.items() if key.endswith("_tv") and v == [None]]
    for figure in record["figures"]:
        assert (quick / figure).stat().st_size > 20_000


def test_data_is_refused_where_it_is_not_read(tmp_path, capsys):
    assert main(["experiment", "decoding", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert "the experiment decoding reads no data" in capsys.readouterr().err
    assert main(["experiment", "blowfly", "--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert f"there is no file blowfly.csv in {tmp_path}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

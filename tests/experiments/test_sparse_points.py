"""The experiment on learned points: claims on made-up numbers, its parts, and a small whole run."""

import json

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from kernelbayes.cli import main
from kernelbayes.experiments import Runs
from kernelbayes.experiments import sparse_points as experiment
from kernelbayes.kernels import Gaussian
from kernelbayes.regression import SparseRegression
from oracles import even_draws

SETTINGS = {"n": 100, "points": 5, "restarts": 0}


def _runs(away=0.01, **errors):
    """Ten draws in which methods have known errors, and are away from the full fit by a number or one for each draw."""
    noise = even_draws.luck(10)
    values = {}
    for name in experiment._METHODS:
        values[f"{name}_error"] = (errors.get(name, 0.04) * (1 + 0.01 * noise))[None]
        values[f"{name}_away"] = np.broadcast_to(away, 10)[None].astype(float)
        for measure in ("sd", "covered", "noise"):
            values[f"{name}_{measure}"] = (0.1 + 0.01 * noise)[None]
    return Runs([{}], values)


def _verdicts(runs):
    return [claim.verdict for claim in experiment.claims(runs)]


def test_claims():
    assert _verdicts(_runs(random=0.4)) == ["reproduced"] * 4
    assert _verdicts(_runs(random=0.4, joint_paper=0.06))[:2] == ["partly", "reproduced"]
    assert _verdicts(_runs(random=0.4, joint_zero=0.06, away=0.2))[:3] == ["partly", "not reproduced", "partly"]
    assert _verdicts(_runs(random=0.4, away=[0.01] * 8 + [0.2] * 2))[0] == "partly"  # a tenth of the draws may be away
    assert _verdicts(_runs(random=0.4, away=[0.01] * 9 + [0.2]))[0] == "reproduced"
    assert _verdicts(_runs(random=0.1))[3] == "not reproduced"
    assert _verdicts(_runs(random=0.2, known=0.1))[3] == "partly"
    assert "In 8 of 10 draws" in experiment.claims(_runs(away=[0.01] * 8 + [0.2] * 2))[0].shown


def test_the_table_tells_the_noise_only_where_it_was_learned():
    table = experiment._table(_runs())
    assert {row[0] for row in table.rows if row[-1] == ""} == {"5 random points", "5 points learned"}
    assert [row[1] for row in table.rows if row[-1] == ""] == ["true"] * 3
    assert len(table.rows) == len(experiment._METHODS)


def test_the_truth_is_a_mean_on_points_that_lie_apart():
    """With values at the points that are a draw of the process: their joint density is that of standard normals."""
    heights = []
    for seed in range(300):
        toy = experiment._draw(SETTINGS, np.random.default_rng(seed))
        assert np.diff(toy.points[:, 0]).min() >= 0.5
        assert np.abs(toy.points).max() <= 5
        K = np.exp(-0.5 * (toy.points - toy.points.T) ** 2)
        heights.append(np.linalg.solve(np.linalg.cholesky(K), toy.truth(toy.points)))
        np.testing.assert_allclose(K @ toy.weights, toy.truth(toy.points), atol=1e-9)
    assert np.cov(np.array(heights).T) == pytest.approx(np.eye(5), abs=0.25)
    noise = toy.y - toy.truth(toy.X)
    assert noise.std() == pytest.approx(0.1, rel=0.25)


def test_the_full_fit_has_a_likelihood_no_lower_than_at_the_true_hyperparameters():
    toy = experiment._draw(SETTINGS, np.random.default_rng(1))
    fit = experiment._full(toy)
    near = np.abs(fit.mean - toy.truth(experiment._GRID)) <= 3 * fit.std + 0.02
    assert near.mean() > 0.95
    y, K = toy.y - toy.y.mean(), np.exp(-0.5 * (toy.X - toy.X.T) ** 2)
    true = multivariate_normal(np.zeros(100), K + 0.01 * np.eye(100)).logpdf(y)
    other = multivariate_normal(np.zeros(100), K + fit.noise**2 * np.eye(100)).logpdf(y)
    assert other > true - 3  # the noise alone moves little
    assert fit.noise == pytest.approx(0.1, rel=0.3)


def test_a_small_whole_run(tmp_path, capsys, monkeypatch):
    """All that is written, with nothing learned."""

    def as_given(points, **settings):
        return SparseRegression(points, 1.0 * Gaussian(1.0), 0.01, learn=None, standardise=False, random_state=0)

    monkeypatch.setattr(experiment, "SparseRegression", as_given)
    assert main(["experiment", "sparse-points", "--quick", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "sparse-points-quick.json").read_text())
    assert len(record["claims"]) == 4
    assert len(record["tables"][0]["rows"]) == len(experiment._METHODS)
    assert (tmp_path / "sparse-points-quick.png").stat().st_size > 20_000
    assert "match the full fit" in capsys.readouterr().out

"""The experiment on distributions of y given x: how tables are read, scored and judged."""

import numpy as np
import pytest
from scipy import stats

from kernelbayes.experiments import Runs, Study
from kernelbayes.experiments import _measured as measured
from kernelbayes.experiments import regression_distributions as experiment


def test_a_table_is_read_without_text_gaps_and_constants(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)).round(3), rng.normal(size=200).round(3)
    lines = ["when,a,b,empty,same,y,label"]
    lines += [f"2020-01-{i % 9 + 1},{a},{b},,1.0,{y[i]},{i % 2}" for i, (a, b) in enumerate(x)]
    lines[5] = lines[5].replace(f",{x[4, 0]},", ",,")
    (tmp_path / "log.csv").write_text("\n".join(lines))
    found = measured.read_pairs(tmp_path / "log.csv")
    kept = np.arange(200) != 4
    np.testing.assert_array_equal(found.y, y[kept])
    np.testing.assert_array_equal(found.X, np.column_stack([x, np.arange(200) % 2])[kept])
    (tmp_path / "few.csv").write_text("\n".join(f"{a},{b}" for a, b in x[:50]))
    assert measured.read_pairs(tmp_path / "few.csv") is None


def test_scores_of_a_known_distribution():
    y = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)
    levels = np.concatenate([experiment.LEVELS, experiment._ENDS])
    quantiles = np.repeat(stats.norm.ppf(levels)[:, None], 4000, axis=1)
    found = experiment._scores(experiment._Predicted(quantiles, stats.norm.logpdf(y)), y)
    assert found["crps"] == pytest.approx(1 / np.sqrt(np.pi), rel=0.03)  # of a standard normal about itself
    assert found["log"] == pytest.approx(-0.5 * (1 + np.log(2 * np.pi)), abs=0.01)
    assert (found["in50"], found["in90"]) == (pytest.approx(0.5, abs=1e-3), pytest.approx(0.9, abs=1e-3))


def made_up_runs(density, embedding, ard, boosting):
    values = {}
    for name, crps in (("density", density), ("embedding", embedding), ("ard", ard), ("boosting", boosting)):
        values[f"{name}_crps"] = np.array(crps)[:, None] + np.array([0.0, 1e-3, -1e-3])
        values |= {f"{name}_in50": np.full((2, 3), 0.5), f"{name}_in90": np.full((2, 3), 0.9)}
    return Runs([{"data": "a"}, {"data": "b"}], values)


def test_claims():
    good = made_up_runs([0.1, 0.2], [0.3, 0.3], [0.2, 0.29], [0.2, 0.3])
    assert [claim.verdict for claim in experiment.claims(good)] == ["reproduced"] * 3
    bad = made_up_runs([0.3, 0.4], [0.2, 0.3], [0.3, 0.31], [0.2, 0.3])
    bad.values["density_in90"][1] = 0.7
    assert [claim.verdict for claim in experiment.claims(bad)] == ["not reproduced", "not reproduced", "partly"]


def test_one_split_of_a_small_table(tmp_path):
    settings = {"data": "heavy tails", "made_up": 200, "most": 60, "most_predicted": 100}
    found = experiment._once({}, ["density", "embedding"], settings, Study("x", tmp_path).generator(0))
    assert found["rows"] == 60
    assert 0 < found["density_crps"] < 1
    assert np.isnan(found["embedding_log"])
    assert 0.5 < found["density_in90"] <= 1

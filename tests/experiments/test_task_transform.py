"""The experiment on regression through a mediator: claims on made-up numbers, its parts, and a small whole run."""

import json

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from kernelbayes.cli import main
from kernelbayes.experiments import Runs, _mediation
from kernelbayes.experiments import task_transform as experiment
from oracles import even_draws

AUTHORS, OURS = experiment.FUNCTIONS["authors"], experiment.FUNCTIONS["ours"]
CASES = [{"functions": name, "n": n} for name in ("authors", "ours") for n in (50, 300)]


def _runs(inside=0.95, **errors):
    """Five repeats in which solutions have a known error, a number or one for each of the four cases."""
    noise = even_draws.luck(4, 5)
    values = {}
    for name in experiment.SOLUTIONS:
        level = np.reshape(np.broadcast_to(errors.get(name, 1.0), 4), (4, 1))
        values[f"{name}_error"] = level * (1.0 + 0.01 * noise)
        banded = name not in ("dme", "cascade")
        values[f"{name}_sd"] = 0.1 + 0.001 * noise if banded else np.full((4, 5), np.nan)
        share = np.reshape(np.broadcast_to(inside, 4), (4, 1)) if name == "full" else 0.5
        values[f"{name}_inside"] = share + 0.001 * noise if banded else np.full((4, 5), np.nan)
    return Runs(CASES, values)


def _verdicts(runs):
    return [claim.verdict for claim in experiment.claims(runs)]


def test_claims():
    assert _verdicts(_runs(full=0.3)) == ["reproduced"] * 4
    assert _verdicts(_runs(full=0.9, inside=0.8)) == ["not reproduced"] * 4
    # judged by the authors' functions alone, at each size
    assert _verdicts(_runs(full=[0.3, 0.3, 2.0, 2.0], inside=[0.95, 0.92, 0.1, 0.1])) == ["reproduced"] * 4
    assert _verdicts(_runs(full=[0.3, 0.9, 0.3, 0.3], inside=[0.95, 0.7, 0.95, 0.95])) == ["partly"] * 4
    # a band that always holds f is too wide
    assert _verdicts(_runs(full=0.3, inside=[0.95, 1.02, 0.95, 0.95]))[3] == "partly"
    told = experiment.claims(_runs(full=[0.3, 0.3, 2.0, 2.0]))[2].shown
    assert "smaller in 5 of 5 runs" in told
    assert "With our functions: " in told
    assert "smaller in 0 of 5 runs" in told


def test_without_our_functions_nothing_is_said_of_them():
    assert "our functions" not in experiment.claims(_runs(full=0.3).where(functions="authors"))[0].shown


def test_tables_leave_out_bands_that_are_not_there():
    errors, bands = experiment._table(_runs(), "error"), experiment._table(_runs(), "inside")
    assert [row[0] for row in errors.rows] == [solution.label for solution in experiment.SOLUTIONS.values()]
    assert {row[0] for row in errors.rows} - {row[0] for row in bands.rows} == {"DME", "cascade"}
    assert bands.rows[0][1].value == pytest.approx(95.0, abs=0.2)
    assert experiment._worst_table(_runs(full=0.3)).rows[0][1] == "0.3 / 0.304"  # 1 % above, times 1.28


def test_curves_go_through_their_points():
    points, values = np.array([-5.0, -3, -1, 1, 4]), np.array([-4.0, -2, -6, 4, 6])
    peer = GaussianProcessRegressor(RBF(1.0), alpha=1e-12, optimizer=None).fit(points[:, None], values)
    np.testing.assert_allclose(AUTHORS.r(points), values, atol=1e-9)
    grid = np.linspace(-6, 6, 50)
    np.testing.assert_allclose(AUTHORS.r(grid), peer.predict(grid[:, None]), atol=1e-8)


@pytest.mark.parametrize("functions", [AUTHORS, OURS])
def test_samples_and_conditional_mean(functions):
    """g(y) by quadrature against simulation, and the noise about r(y)."""
    given = experiment.draw(functions, 20_000, 20_000, np.random.default_rng(0))
    assert (given.X - functions.r(given.Y[:, 0])[:, None]).std() == pytest.approx(0.25, rel=0.02)
    residual = given.z_task - functions.conditional_mean(given.Y_task[:, 0])
    assert abs(residual.mean()) < 4 * residual.std() / np.sqrt(20_000)
    y = given.Y_task[:, 0]
    assert np.abs([residual[(y > a) & (y < a + 0.5)].mean() for a in np.arange(-6, 6, 0.5)]).max() < 0.12
    assert abs(np.corrcoef(given.Y[:, 0], given.Y_task[:, 0])[0, 1]) < 0.03
    # most x come from several y
    x = np.linspace(-functions.central, functions.central, 40)
    crossings = (np.diff(np.sign(functions.r(np.linspace(-6, 6, 4001))[:, None] - x), axis=0) != 0).sum(0)
    assert (crossings >= 2).mean() > 0.5


def test_judging_by_hand():
    grid = OURS.grid()
    away = np.where(grid < 0, 0.3, -0.1)
    found = experiment.judged(OURS, OURS.f(grid) + away, np.full(201, 0.1))
    assert found["error"] == pytest.approx(np.sqrt((100 * 0.09 + 101 * 0.01) / 201))
    assert found["inside"] == pytest.approx(101 / 201)
    assert found["sd"] == pytest.approx(0.1)
    assert np.isnan(experiment.judged(OURS, OURS.f(grid), None)["inside"])


def test_the_band_of_a_process_leaves_out_the_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (150, 1))
    found, sd = _mediation.process(X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=150))(np.linspace(-2, 2, 30)[:, None])
    away = np.abs(found - np.sin(np.linspace(-2, 2, 30)))
    assert away.max() < 0.15
    assert 0.02 < sd.mean() < 0.12
    assert (away < 3 * sd).all()


def test_the_cascade_takes_the_middle_of_two_branches():
    """x = |y|: the mean of y is near 0 for all x, so that the cascade says f(0) where imputing finds f."""
    rng = np.random.default_rng(0)
    y, y_task = rng.uniform(-3, 3, (2, 80, 1))
    z = np.cos(2 * np.abs(y_task[:, 0])) + 0.05 * rng.normal(size=80)
    given = _mediation.Samples(np.abs(y), y, y_task, z, np.abs(y_task))
    x = np.linspace(0.3, 2.7, 20)[:, None]
    cascaded, _ = _mediation.cascade(given, x)
    imputed, sd = _mediation.impute(given, x)
    truth = np.cos(2 * x[:, 0])
    assert np.abs(imputed - truth).max() < 0.15
    assert sd.shape == (20,)
    assert np.sqrt(np.mean((cascaded - truth) ** 2)) > 0.6


def test_limits_of_the_naive_solutions():
    """Against plain means over bins of a large sample."""
    found = experiment.limits(OURS)
    given = experiment.draw(OURS, 100_000, 1, np.random.default_rng(0))
    x, y = given.X[:, 0], given.Y[:, 0]
    edges = np.linspace(-2.5, 2.5, 101)
    middle, place = (edges[1:] + edges[:-1]) / 2, np.digitize(x, edges)
    imputed, between = (
        np.array([values[place == b].mean() for b in range(1, 101)]) for values in (OURS.conditional_mean(y), y)
    )
    for name, values in (("impute", imputed), ("cascade", OURS.conditional_mean(between))):
        assert found[name] == pytest.approx(np.sqrt(np.mean((values - OURS.f(middle)) ** 2)), rel=0.03)


def test_a_small_whole_run(tmp_path, monkeypatch):
    """All that is written, with nothing learned."""
    initial = experiment.SOLUTIONS["initial"].solve
    learned = {name: experiment.SOLUTIONS[name]._replace(solve=initial) for name in ("full", "two", "map", "dme")}
    monkeypatch.setattr(experiment, "SOLUTIONS", experiment.SOLUTIONS | learned)
    assert main(["experiment", "task-transform", "--quick", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "task-transform-quick.json").read_text())
    assert all(table["rows"] for table in record["tables"])
    assert len(record["claims"]) == 4
    assert [figure for figure in record["figures"] if (tmp_path / figure).stat().st_size > 15_000] == record["figures"]
    numbers = record["runs"][0]
    assert 0.0 < numbers["direct_error"][0] < 0.3 < numbers["cascade_error"][0]
    assert numbers["full_error"] == numbers["initial_error"]
    assert "% of all x (authors)" in record["notes"][0]


def test_errors_against_sizes_are_drawn():
    figure = experiment._sizes(_runs(full=0.3))
    assert [ax.get_title() for ax in figure.axes] == ["Functions: authors", "Functions: ours"]
    assert len(figure.axes[1].get_legend().get_texts()) == len(experiment.SOLUTIONS) - 1

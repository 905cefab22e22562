"""The experiment on quadrature: claims on made-up numbers, integrands against long sequences, and a small whole run."""

import json

import numpy as np
import pytest
import scipy.special

from kernelbayes import quadrature
from kernelbayes.cli import main
from kernelbayes.experiments import Runs
from kernelbayes.experiments import _integrands as integrands
from kernelbayes.experiments import quadrature as experiment
from kernelbayes.experiments.quadrature import _claims, _errors, _examples, _integrals, _reading
from oracles import even_draws

SIZES = (16, 32, 64)


# ---------------------------------------------------------------------------------------------- made-up numbers


def _runs(gains=None, missing=(), repeats=10):
    """Errors n^-s of iid nodes, and those of others by a factor: {(example, dimension): {method: factor}}."""
    chosen = [(name, 2 if name == "polynomial" else 1) for name in _examples.EXAMPLES]
    chosen += [(name, d) for name in _examples.SWEEPS for d in (2, 3)]
    cases = [{"example": e, "dimension": d, "n": n} for e, d in chosen for n in SIZES]
    values = {name: np.empty((len(cases), repeats)) for name in (*_examples.METHODS, *_examples.OTHERS)}
    luck = even_draws.luck(len(values), len(cases), repeats)
    for i, case in enumerate(cases):
        factors = _factors(case["example"], case["dimension"]) | (gains or {}).get(
            (case["example"], case["dimension"]), {}
        )
        base = case["n"] ** -(_examples.EXAMPLES[case["example"]].rate or 1.0)
        for j, name in enumerate(values):
            errors = base / factors.get(name, 1.0) * np.exp(0.02 * luck[j, i])
            values[name][i] = np.nan if (case["example"], case["n"], name) in missing else errors
    values["resolution"] = np.full((len(cases), repeats), 1e-8)
    return Runs(cases, values)


def _factors(example, dimension):
    """What was found, roughly: the DPP helps on the line, leverages only for the Gaussian kernel there."""
    none = {"iid_importance": 1 / 500, "greedy": 1.4, "dpp": {2: 1.1, 3: 1.04}.get(dimension, 1.0)}
    if dimension > 1 and example != "polynomial":
        return none
    if example in ("gaussian", "gaussian-short"):
        return none | {"leverage": 40.0, "dpp": 400.0, "greedy": 500.0}
    return none | {"dpp": 2.0, "greedy": 2.5}


def _verdicts(runs):
    names = ("one", "rough", "gaussian", "falls", "left", "uniform", "rates", "greedy", "weights")
    return dict(zip(names, (claim.verdict for claim in _claims.claims(runs)), strict=True))


def test_claims_on_numbers_like_those_found():
    found = _verdicts(_runs())
    assert found.pop("one") == "partly"  # for the Gaussian kernel it is the other way round
    assert found == dict.fromkeys(found, "reproduced")


@pytest.mark.parametrize(
    ("claim", "gains"),
    [
        ("rough", {("brownian", 1): {"leverage": 1.9}}),
        ("gaussian", {("gaussian", 1): {"leverage": 3.0}}),
        ("gaussian", {("gaussian", 1): {"dpp": 40.0}}),  # adds nothing to leverages
        ("falls", {("sobolev-1", 2): {"dpp": 1.0}}),  # next to none in the end, but more in 3-d than in 2-d
        ("left", {("gaussian", 3): {"leverage": 1.5, "dpp": 1.53}}),
        ("uniform", {("sobolev-2", 1): {"leverage": 1.2}}),
        ("greedy", {("fractional", 1): {"greedy": 1.5}}),
        ("weights", {("beta", 1): {"iid_importance": 0.9}}),
    ],
)
def test_a_claim_is_only_partly_true_where_one_example_differs(claim, gains):
    changed = _verdicts(_runs(gains))
    usual = _verdicts(_runs())
    assert changed[claim] == "partly"
    assert usual[claim] == "reproduced"


def test_the_first_question_is_answered_by_all_examples():
    chosen = _reading.chosen_in(_runs())
    assert _verdicts(_runs({key: {"leverage": 1.0, "dpp": 2.0} for key in chosen}))["one"] == "reproduced"
    runs = _runs({key: {"leverage": 2.0, "dpp": 2.2} for key in chosen})
    assert _verdicts(runs)["one"] == "not reproduced"
    assert f"smaller in {len(chosen)}" in _claims.claims(runs)[0].shown


def test_rates_that_are_not_the_known_ones():
    runs = _runs()
    steep = np.array([case["n"] ** -0.5 for case in runs.cases])[:, None]
    values = {name: v * steep if name in _examples.METHODS else v for name, v in runs.values.items()}
    assert _verdicts(Runs(runs.cases, values))["rates"] == "not reproduced"
    values = {name: v * steep if name == "herding" else v for name, v in runs.values.items()}
    (claim,) = [c for c in _claims.claims(Runs(runs.cases, values)) if "exponents" in c.shown]
    assert claim.verdict == "partly"  # one that was left out would not be seen
    assert claim.shown.count("herding") == 5


def test_ratios_are_taken_where_all_can_be_had_and_are_clear_of_rounding():
    runs = _runs(missing={("gaussian", 64, "dpp"), ("gaussian", 32, "greedy"), ("gaussian", 64, "greedy")})
    assert _reading.last_clear(runs, "gaussian", 1).cases[0]["n"] == 32
    assert _reading.last_clear(runs, "brownian", 1).cases[0]["n"] == 64
    assert {cell.cases[0]["n"] for cell in _reading.by_dimension(runs, "gaussian")} == {32}
    runs["resolution"][:] = 1e-3 / 9
    assert (
        _reading.last_clear(runs, "gaussian-short", 1).cases[0]["n"] == 16
    )  # below ten times the resolution elsewhere
    first, *_ = _claims.notes(runs)
    assert "numerical rank: Gaussian 1, normal from n = 64, Gaussian 1, normal, 2-d from n = 64" in first


def test_tables_have_dashes_and_bounds_in_place_of_numbers_that_mean_nothing():
    runs = _runs(missing={("gaussian", 64, "dpp"), ("polynomial", 64, "sobol")})
    runs["resolution"][:] = 1e-4
    rows = {(row["kernel and distribution"], row["d"]): row for row in _reading.error_table(runs).records()}
    assert rows["Gaussian 1, normal", 1]["4 DPP"] == "-"
    assert rows["polynomial, ball", 2]["Sobol"] == "-"
    assert rows["Gaussian 0.3, normal", 1]["4 DPP"] == "< 0.0001"
    assert float(rows["Brownian 1/2, uniform", 1]["1 iid"]) == pytest.approx(1 / 64, rel=0.05)
    assert [row["known"] for row in _reading.rate_table(runs).records()] == [-1.0, -2.0, -1.0, -1.0, -1.25]
    assert len(_reading.gain_table(runs).rows) == len(_reading.chosen_in(runs))


def _integrated(error, plain=1.0, cases=4):
    names = ["oscillatory", "corner peak", "continuous", "discontinuous"][:cases]
    ones = np.ones((cases, 10))
    values = {"truth": ones, "estimate": ones + np.broadcast_to(error, (cases, 10)), "std": 0.1 * ones}
    values |= {"plain": ones + plain, "problems": 0.0 * ones}
    return Runs([{"integrand": name, "dimension": 1, "n": 32} for name in names], values)


def test_integral_claims():
    def verdicts(runs):
        return [claim.verdict for claim in _integrals.integral_claims(runs)]

    assert verdicts(_integrated(0.15)) == ["reproduced", "reproduced"]
    assert verdicts(_integrated(0.3)) == ["not reproduced", "reproduced"]
    assert verdicts(_integrated(0.15, plain=0.1)) == ["reproduced", "not reproduced"]
    some = np.where(np.arange(10) < 3, 0.3, 0.1) * np.array([[0.0], [0.0], [0.0], [1.0]])  # three of ten, in one family
    assert verdicts(_integrated(some))[0] == "partly"
    assert "discontinuous in 1-d (70%)" in _integrals.integral_claims(_integrated(some))[0].shown
    (row, *_) = _integrals.integral_table(_integrated(0.15)).records()
    assert row["error / sd"] == pytest.approx(1.5)
    assert row["within 2 sd"] == 1.0


def test_a_ratio_of_integrals():
    value, std = _integrals._quotient(np.array([2.0, 4.0]), np.array([0.04, 0.04]))
    assert value == 0.5
    assert std == pytest.approx(np.hypot(0.01, 0.005))


# ---------------------------------------------------------------------------------------------------- its parts


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize("family", integrands.GENZ)
def test_integrals_of_genz_functions(family, dimension):
    wanted = integrands.genz(family, dimension)
    u = integrands.unit_sequence("sobol", dimension, 0, 2**14, 5)
    tolerance = 1e-2 if family == "discontinuous" else 2e-3
    assert wanted.f(u).mean() == pytest.approx(wanted.truth, rel=tolerance)


def test_prices_and_the_posterior():
    normals = scipy.special.ndtri(integrands.unit_sequence("sobol", 2, 0, 2**15, 5))
    call = integrands.call_option()
    assert call.f(normals[:, :1]).mean() == pytest.approx(call.truth, rel=1e-3)
    assert integrands.asian_option(1).truth == pytest.approx(call.truth, rel=1e-6)  # the mean of one price
    asian = integrands.asian_option(2)
    assert asian.f(normals).mean() == pytest.approx(asian.truth, rel=1e-3)
    posterior = integrands.posterior_mean()
    first, second = posterior.f(2.0 * normals).mean(0)
    assert first / second == pytest.approx(posterior.truth, rel=1e-3)


def test_errors_are_those_of_the_public_function():
    rng = np.random.default_rng(3)
    found = _errors._once({"example": "gaussian", "dimension": 1, "n": 30}, np.random.default_rng(3))
    kernel, distribution = _examples.EXAMPLES["gaussian"].make(1, rng)
    seed = int(rng.integers(2**31))
    for name in ("iid", "leverage", "dpp", "sobol"):
        assert found[name] == quadrature(kernel, distribution, 30, name, random_state=seed).worst_case_error
    weighed = quadrature(kernel, distribution, 30, "dpp", "importance", random_state=seed)
    assert found["dpp_importance"] == pytest.approx(weighed.worst_case_error)
    assert np.isnan(found["greedy"])  # the kernel is known to rounding before
    assert max(found["dpp"], found["leverage"]) < found["iid"]


def test_a_sample_has_no_design(monkeypatch):
    monkeypatch.setitem(_examples.BALL, "points", 200)
    found = _errors._once({"example": "polynomial", "dimension": 2, "n": 8}, np.random.default_rng(0))
    assert np.isnan(found["sobol"])
    assert found["greedy"] < found["iid"] < found["iid_importance"]
    points = _examples.in_ball(3, np.random.default_rng(0))
    assert points.shape == (200, 3)
    assert np.linalg.norm(points, axis=1).max() <= 0.9


def test_a_small_whole_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(_examples.BALL, "points", 200)
    monkeypatch.setattr(integrands, "_REFERENCE", 2**10)
    monkeypatch.setattr(_integrals, "GENZ", {"oscillatory": 9.0})
    examples = ["sobolev-1", "sobolev-2", "gaussian", "gaussian-short", "brownian", "polynomial"]
    tiny = experiment._settings(True) | {"dimensions": [1], "examples": examples, "integral_repeats": 1}
    monkeypatch.setattr(experiment, "_settings", lambda quick: tiny)
    assert main(["experiment", "quadrature", "--quick", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "quadrature-quick.json").read_text())
    assert len(record["claims"]) == 11
    assert [len(table["rows"]) for table in record["tables"]] == [6, 6, 3, 6, 4]
    for part in ("", "-dimension"):
        assert (tmp_path / f"quadrature-quick{part}.png").stat().st_size > 20_000
    assert "question 1" in capsys.readouterr().out

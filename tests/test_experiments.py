"""The framework of the experiments, the claims they judge, and quick runs of each."""

import itertools
import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from scipy import integrate, stats

from kernelbayes import experiments
from kernelbayes.cli import main
from kernelbayes.experiments import (
    Claim,
    Estimate,
    Runs,
    Study,
    Table,
    decoding,
    jackknife,
    posterior_mean,
    rate,
    rate_of_means,
    resampling,
    verdict,
)
from kernelbayes.experiments import _known_mean as known_mean
from kernelbayes.experiments._estimates import mean, show
from oracles import even_draws

#: Those that are fast enough to be run here, with claims that a quick run bears out.
QUICK = ("resampling", "decoding")

SETTINGS = {"scale": 2.0, "repeats": 4}
CASES = [{"n": 3}, {"n": 5}, {"n": 7}]


def _sum(settings, rng):
    return {"sum": settings["scale"] * rng.normal(size=settings["n"]).sum(), "n": settings["n"]}


# --------------------------------------------------------------------------------------------- numbers and rates


def test_rate_of_a_power_law():
    n = np.array([50.0, 200.0, 800.0])
    assert rate(n, 7.0 * n**-1.5) == pytest.approx(-1.5, abs=1e-12)
    y = np.outer(n**-0.5, [0.5, 1.0, 1.5])
    assert rate_of_means(n, y).value == pytest.approx(-0.5)
    assert rate_of_means(n, y).error < 1e-12  # all repeats share the exponent
    assert rate_of_means(y, y**2 / y).value == pytest.approx(1.0)


def test_jackknife_of_a_mean_is_the_standard_error():
    sample = np.random.default_rng(0).normal(size=30)
    found = jackknife(lambda s: s.mean(), sample)
    assert found == pytest.approx((sample.mean(), sample.std(ddof=1) / np.sqrt(30)))
    assert mean(sample) == pytest.approx(found)
    assert np.isnan(jackknife(np.mean, sample[:1]).error)
    assert np.isnan(mean(sample[:1]).error)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (50, "50"),
        (-1.0, "-1"),
        (151.4, "151"),
        (1234.5, "1234"),
        (1e7, "1e+07"),
        (0.1, "0.1"),
        (0.012345, "0.0123"),
        (3.16e-6, "3.16e-06"),
        (np.nan, "nan"),
        (np.inf, "inf"),
    ],
)
def test_numbers_are_shown_with_three_digits(number, text):
    assert show(number) == text


def test_estimates_keep_their_zeros():
    assert str(Estimate(0.19, 0.0301)) == "0.190 (0.030)"
    assert str(Estimate(0.19, np.nan)) == "0.190"
    assert str(Estimate(292.3, 171.2)) == "292 (171)"


# ------------------------------------------------------------------------------------------------------- repeats


def test_repeats_are_gathered_by_case(tmp_path):
    runs = Study("sums", tmp_path, seed=5).repeat(_sum, SETTINGS, CASES)
    assert runs["sum"].shape == (3, 4)
    np.testing.assert_array_equal(runs["n"], np.repeat([[3.0], [5.0], [7.0]], 4, axis=1))
    np.testing.assert_array_equal(runs.case("n"), [3, 5, 7])
    np.testing.assert_allclose(runs.standard_error("sum"), runs["sum"].std(1, ddof=1) / 2)
    assert len(np.unique(runs["sum"])) == 12
    only = runs.where(n=5)
    np.testing.assert_array_equal(only["sum"], runs["sum"][1:2])
    assert only.cases == [{"n": 5}]


def test_streams_are_spawned_from_the_seed_and_depend_on_nothing_else(tmp_path):
    runs = Study("sums", tmp_path / "a", seed=5).repeat(_sum, SETTINGS, CASES)
    fewer = Study("sums", tmp_path / "b", seed=5).repeat(_sum, {**SETTINGS, "repeats": 2}, CASES[:2])
    np.testing.assert_array_equal(fewer["sum"], runs["sum"][:2, :2])
    child = np.random.SeedSequence(5).spawn(4)[3].spawn(3)[1]
    assert runs["sum"][1, 3] == 2.0 * np.random.default_rng(child).normal(size=5).sum()
    other = Study("sums", tmp_path / "c", seed=6).repeat(_sum, SETTINGS, CASES)
    assert not np.isclose(other["sum"], runs["sum"]).any()


def test_paired_cases_share_their_random_numbers(tmp_path):
    cases = [{"n": 3, "scale": 1.0}, {"n": 3, "scale": 4.0}]
    runs = Study("sums", tmp_path).repeat(_sum, SETTINGS, cases, paired=True)
    np.testing.assert_allclose(runs["sum"][1], 4.0 * runs["sum"][0])


class _Crash(Exception):
    pass


def _crashing(after):
    calls = []

    def once(settings, rng):
        if len(calls) == after:
            raise _Crash
        calls.append(settings["n"])
        return _sum(settings, rng)

    once.__qualname__ = "_sum"  # the same function as far as the journal can tell
    return once, calls


def test_a_crash_loses_nothing(tmp_path):
    whole = Study("sums", tmp_path / "whole").repeat(_sum, SETTINGS, CASES)
    study = Study("sums", tmp_path / "broken")
    with pytest.raises(_Crash):
        study.repeat(_crashing(5)[0], SETTINGS, CASES)
    once, calls = _crashing(100)
    resumed = study.repeat(once, SETTINGS, CASES)
    assert (len(calls), resumed.read_back, resumed.same_code) == (7, 5, True)
    np.testing.assert_array_equal(resumed["sum"], whole["sum"])
    once, calls = _crashing(0)
    np.testing.assert_array_equal(study.repeat(once, SETTINGS, CASES)["sum"], whole["sum"])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing to kill it with")
def test_a_killed_process_is_resumed(tmp_path):
    code = f"""
import os, pathlib, signal
from kernelbayes.experiments import Study
calls = []
def _sum(settings, rng):
    calls.append(0)
    if len(calls) == 6:
        os.kill(os.getpid(), signal.SIGKILL)
    return {{"sum": settings["scale"] * rng.normal(size=settings["n"]).sum(), "n": settings["n"]}}
Study("sums", pathlib.Path({str(tmp_path)!r})).repeat(_sum, {SETTINGS}, {CASES})
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    resumed = Study("sums", tmp_path).repeat(_sum, SETTINGS, CASES)
    assert resumed.read_back == 5
    whole = Study("sums", tmp_path / "whole").repeat(_sum, SETTINGS, CASES)
    np.testing.assert_array_equal(resumed["sum"], whole["sum"])


def test_a_line_that_was_cut_off_is_run_again(tmp_path):
    study = Study("sums", tmp_path)
    whole = study.repeat(_sum, SETTINGS, CASES)
    text = study.journal.read_text()
    study.journal.write_text(text[:-40])
    again = study.repeat(_sum, SETTINGS, CASES)
    assert again.read_back == 11
    np.testing.assert_array_equal(again["sum"], whole["sum"])
    assert study.repeat(_sum, SETTINGS, CASES).read_back == 12  # the new line was not glued to the torn one


def test_other_settings_are_run_anew_and_forget_nothing(tmp_path):
    study = Study("sums", tmp_path)
    first = study.repeat(_sum, SETTINGS, CASES)
    assert study.repeat(_sum, {**SETTINGS, "scale": 3.0}, CASES).read_back == 0
    assert study.repeat(_sum, SETTINGS, CASES).read_back == 12
    assert Study("sums", tmp_path, seed=1).repeat(_sum, SETTINGS, CASES).read_back == 0
    assert Study("sums", tmp_path, quick=True).repeat(_sum, SETTINGS, CASES).read_back == 0
    np.testing.assert_array_equal(study.repeat(_sum, SETTINGS, CASES)["sum"], first["sum"])


def test_results_of_other_code_are_marked(tmp_path):
    study = Study("sums", tmp_path)
    study.repeat(_sum, SETTINGS, CASES)
    lines = [json.loads(line) for line in study.journal.read_text().splitlines()]
    lines[3]["code"] = "older"
    study.journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert not study.repeat(_sum, SETTINGS, CASES).same_code


def test_numbers_that_are_not_finite_survive(tmp_path):
    study = Study("sums", tmp_path)
    for _ in range(2):
        runs = study.repeat(lambda settings, rng: {"a": np.float64(np.nan), "b": np.inf, "c": 1}, {"repeats": 2}, [{}])
        assert np.isnan(runs["a"]).all()
        np.testing.assert_array_equal(runs["c"], [[1.0, 1.0]])


def test_repeats_must_agree_on_names(tmp_path):
    with pytest.raises(ValueError, match="must be the same"):
        Study("sums", tmp_path).repeat(lambda settings, rng: {settings["n"]: 1.0}, SETTINGS, [{"n": "a"}, {"n": "b"}])


# ----------------------------------------------------------------------------------------------- tables and claims


def test_a_table_is_aligned():
    table = Table("T", ["of", "value"], [("one", 1.0), ("seventeen", Estimate(0.5, 0.01))])
    lines = ["T", "", "of                 value", "one                    1", "seventeen  0.500 (0.010)"]
    assert table.lines() == lines
    assert table.records()[0] == {"of": "one", "value": 1.0}
    with pytest.raises(ValueError, match="does not fit its 2 columns"):
        Table("T", ["a", "b"], [(1,)])


def test_verdicts():
    assert verdict(True, True) == "reproduced"
    assert verdict(True, False) == "partly"
    assert verdict(False, False) == "not reproduced"
    with pytest.raises(ValueError, match="at least one"):
        verdict()
    with pytest.raises(ValueError, match="verdict must be one of"):
        Claim("a", "b", "c", "maybe")  # pyright: ignore[reportArgumentType]
    quick = Claim("it falls", "Somebody (2000)", "it fell.", "partly").lines(quick=True)
    assert quick == ["Somebody (2000): it falls", "    Here: it fell.", "    => partly (quick run)"]


def _noise(*shape):
    return np.exp(0.05 * even_draws.luck(*shape))


def _sweep(moved_power=1.0, herded_power=0.0, truncated_power=0.3):
    """Runs of the resampling experiment with errors that are known powers of the sum of squares."""
    squares = np.logspace(-0.5, 3, 9)[:, None] * _noise(9, 20)
    level = np.random.default_rng(1).uniform(0.5, 2.0, 20)
    p = 0.1 * level * _noise(9, 20)
    herded = 0.3 * p * squares**herded_power
    values = {"squares": squares, "p": p, "q_herded": herded}
    values |= {
        "q_moved": 0.5 * squares**moved_power,
        "q_truncated": 1.1 * herded * np.maximum(squares, 1.0) ** truncated_power,
    }
    return Runs([{"reg": 10.0**-i} for i in range(9)], values)


def _verdicts(claims):
    return [claim.verdict for claim in claims]


def test_resampling_claims_on_errors_that_bear_them_out():
    claims = resampling.sweep_claims(_sweep())
    assert _verdicts(claims) == ["reproduced"] * 3
    assert "the power 1.0" in claims[0].shown


def test_resampling_claims_on_errors_that_do_not():
    assert _verdicts(resampling.sweep_claims(_sweep(moved_power=0.1)))[0] == "not reproduced"
    assert _verdicts(resampling.sweep_claims(_sweep(moved_power=0.6)))[0] == "partly"
    assert _verdicts(resampling.sweep_claims(_sweep(herded_power=1.0)))[1] == "not reproduced"
    assert _verdicts(resampling.sweep_claims(_sweep(truncated_power=-0.3)))[2] == "not reproduced"
    assert _verdicts(resampling.sweep_claims(_sweep(truncated_power=0.0)))[2] != "reproduced"


def test_demonstration_claims():
    good = {"p": 1e-9, "q_moved": 0.1, "q_herded": 0.01, "p_herded": 1e-4, "p_truncated": 0.05}
    bad = {"p": 1e-3, "q_moved": 0.01, "q_herded": 0.01, "p_herded": 0.01, "p_truncated": 0.01}
    for numbers, wanted in ((good, "reproduced"), (bad, "not reproduced")):
        runs = Runs([{}], {name: np.full((1, 4), v) for name, v in numbers.items()})
        assert _verdicts(resampling.demo_claims(runs)) == [wanted] * 2


def _decaying(**exponents):
    n = np.array([50, 100, 200, 400, 800, 1600])
    exponents = (
        dict(embedding=-1.0, weights=-0.5, one=-1.0, cos=-1.0, inside=-0.5, below=-0.6, x=-1.5, x2=-1.5) | exponents
    )
    return Runs([{"n": int(v)} for v in n], {k: n[:, None] ** b * _noise(6, 20) for k, b in exponents.items()})


def test_decoding_claims():
    assert _verdicts(decoding.claims(_decaying())) == ["reproduced"] * 3
    assert _verdicts(decoding.claims(_decaying(one=-0.5)))[0] == "partly"
    assert _verdicts(decoding.claims(_decaying(one=-1.5, cos=-0.5)))[0] == "not reproduced"
    assert _verdicts(decoding.claims(_decaying(x=-1.0)))[1] == "partly"
    assert _verdicts(decoding.claims(_decaying(x=-0.9, x2=-0.9)))[1] == "not reproduced"
    assert _verdicts(decoding.claims(_decaying(inside=-1.1, below=-1.2)))[2] == "not reproduced"


def _posterior_means(paper=None, far=None):
    """Runs of posterior-mean in three dimensions: all errors 1 but those given, with the same noise for each method."""
    noise = _noise(6, 20)
    values = {name: noise.copy() for name in posterior_mean._METHODS}
    for first, changed in ((0, paper or {}), (3, far or {})):
        for name, level in changed.items():
            values[name][first : first + 3] *= np.reshape(level, (-1, 1))
    return Runs([{"prior": prior, "dimension": d} for prior in ("paper", "far") for d in (2, 8, 32)], values)


@pytest.mark.parametrize(
    ("iw", "wanted", "lower"),
    [
        ([0.5, 0.6, 0.8], "reproduced", "lower at 3 of 3 dimensions, by more than two standard errors at 3"),
        ([0.5, 1.2, 0.8], "partly", "lower at 2 of 3 dimensions, by more than two standard errors at 2"),
        ([1.5, 1.2, 1.0], "not reproduced", "lower at 0 of 3 dimensions, by more than two standard errors at 0"),
    ],
)
def test_posterior_mean_claim_on_the_rules(iw, wanted, lower):
    claim, _ = posterior_mean.claims(_posterior_means(paper={"iw": iw}))
    assert claim.verdict == wanted
    assert lower in claim.shown
    assert f"{min(iw):.2f} to {max(iw):.2f} times" in claim.shown


def test_posterior_mean_claim_says_when_a_gap_is_within_the_noise():
    runs = _posterior_means()
    runs.values["iw"][:3] += np.where(np.arange(20) % 2, 0.8, -0.9)  # lower by 0.05 on average, give or take 0.19
    claim, _ = posterior_mean.claims(runs)
    assert claim.verdict == "reproduced"
    assert "lower at 3 of 3 dimensions, by more than two standard errors at 0" in claim.shown


@pytest.mark.parametrize(
    ("iw", "wanted"),
    [([0.3, 0.5, 0.9], "reproduced"), ([0.3, 1.1, 1.2], "partly"), ([1.0, 1.1, 1.2], "not reproduced")],
)
def test_posterior_mean_claim_on_the_prior(iw, wanted):
    """Judged where the prior is away from the data, against an embedding that never sees it, and nothing else."""
    runs = _posterior_means(paper={"iw": 7.0}, far={"iw": iw, "automatic": [0.2, 0.3, 0.4]})
    below, used = posterior_mean.claims(runs)
    assert (below.verdict, used.verdict) == ("not reproduced", wanted)
    assert f"{min(iw):.2f} to {max(iw):.2f} times that of a conditional" in used.shown
    assert "0.20 to 0.40 times that of the prior mean" in used.shown


def test_posterior_mean_note_names_the_dimensions():
    assert "behind at every d" in posterior_mean._note(_posterior_means(paper={"original_small": 1.1}))
    note = posterior_mean._note(_posterior_means(paper={"original_small": [0.9, 1.1, 0.9], "iw": [1.0, 1.0, 0.95]}))
    assert "ahead of IW at d = 2, 32." in note
    assert "is 0.95 to 1.00 times" in note


# ----------------------------------------------------------------------------------------------------- set-ups


def _squared_error_in_long_double(embedding, sd):
    """`||sum w k(., x) - m||^2` for m of N(0, sd^2), lengthscale 0.1, with 64 bits of mantissa."""
    x, w = embedding.points[:, 0].astype(np.longdouble), embedding.weights.astype(np.longdouble)
    s2, v = np.longdouble(0.1) ** 2, np.longdouble(sd) ** 2
    K = np.exp(-((x[:, None] - x) ** 2) / (2 * s2))
    m = np.sqrt(s2 / (s2 + v)) * np.exp(-(x**2) / (2 * (s2 + v)))
    return float(w @ K @ w - 2 * w @ m + np.sqrt(s2 / (s2 + 2 * v)))


@pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="needs a long double longer than a double")
def test_resampling_errors_are_precise_enough():
    """The smallest squared errors, about 1e-10, keep six digits in doubles."""
    settings = {"n": 100, "half_width": 1.0, "reg": 1e-6}
    errors = [resampling._once(settings, np.random.default_rng(seed))["p"] for seed in range(10)]
    smallest = int(np.argmin(errors))
    assert errors[smallest] < 1e-8
    both = resampling._estimates(settings, np.random.default_rng(smallest))
    numbers = resampling._once(settings, np.random.default_rng(smallest))
    for name, (of_p, of_q) in both.items():
        assert numbers[f"p_{name}"] == pytest.approx(_squared_error_in_long_double(of_p, 0.1), rel=1e-5)
        assert numbers[f"q_{name}"] == pytest.approx(_squared_error_in_long_double(of_q, np.sqrt(0.02)), rel=1e-5)
        assert of_p.weights.sum() == pytest.approx(1.0)
    assert set(both["herded"][0].points[:, 0]) <= set(both["moved"][0].points[:, 0])


def test_known_mean_weights_solve_the_ridge_problem():
    """The gradient of `||sum w k - m||^2 + lambda ||w||^2` vanishes at the weights, lambda not being per sample."""
    found = known_mean.estimate(40, 1.0, 0.1, np.random.default_rng(0))
    x, w = found.points[:, 0], found.weights
    K = np.exp(-((x[:, None] - x) ** 2) / 0.02)
    m = np.sqrt(0.5) * np.exp(-(x**2) / 0.04)
    np.testing.assert_allclose(K @ w - m + 0.1 * w, 0.0, atol=1e-12)
    assert np.abs(x).max() <= 1.0


@pytest.mark.parametrize("name", decoding.FUNCTIONS)
def test_expectations_of_the_test_functions(name):
    f = decoding.FUNCTIONS[name]
    parts = [-1.0, -0.1, 0.0, 0.1, 1.0]
    total = sum(
        integrate.quad(lambda x: float(f.of(np.array(x))) * stats.norm.pdf(x, 0, 0.1), a, b, epsabs=1e-13)[0]
        for a, b in itertools.pairwise(parts)
    )
    assert f.expectation == pytest.approx(total, abs=1e-10)


def test_decoding_error_meets_its_first_order():
    """A closed form, independent of the code: the error on 1 and cos is 0.798 / n, that on x and x^2 far smaller."""
    n = 1500
    runs = [decoding._once({"n": n, "half_width": 1.0, "reg": 0.1}, np.random.default_rng(seed)) for seed in range(4)]
    expected = decoding.leading_error(n, 0.1, 1.0)
    assert expected == pytest.approx(0.797885 / n, rel=1e-5)
    assert np.mean([r["one"] for r in runs]) == pytest.approx(expected, rel=0.05)
    assert np.mean([r["cos"] for r in runs]) == pytest.approx(expected, rel=0.05)
    assert max(max(r["x"], r["x2"]) for r in runs) < 0.02 * expected


def _mean_on_a_grid(V, centre, spread, observed):
    """Posterior means by brute force: prior times joint density over that of z, on a grid of nine deviations each way."""
    d = len(centre)
    axes = [np.linspace(m - 9 * s, m + 9 * s, 121) for m, s in zip(centre, np.sqrt(np.diagonal(spread)), strict=True)]
    z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    joint = stats.multivariate_normal(np.repeat([1.0, 0.0], d), V)
    fixed = stats.multivariate_normal(centre, spread).logpdf(z) - stats.multivariate_normal(cov=V[d:, d:]).logpdf(z)
    means = []
    for x in observed:
        log = fixed + joint.logpdf(np.hstack([np.broadcast_to(x, z.shape), z]))
        means.append(np.average(z, axis=0, weights=np.exp(log - log.max())))
    return np.array(means)


@pytest.mark.parametrize("prior", ["paper", "far"])
@pytest.mark.parametrize("dimension", [1, 2])
def test_exact_posterior_means(prior, dimension):
    settings = {"n": 20_000, "dimension": dimension, "prior": prior}
    X, Z, drawn, observed, exact, centre = posterior_mean._problem(settings, np.random.default_rng(7))
    A = np.random.default_rng(7).normal(size=(2 * dimension, 2 * dimension))
    V = A.T @ A / (2 * dimension) + 2 * np.eye(2 * dimension)
    Vzz = V[dimension:, dimension:]
    where, spread = (np.sqrt(np.diagonal(Vzz)), Vzz / 4) if prior == "far" else (np.zeros(dimension), Vzz / 2)
    np.testing.assert_allclose(centre, where)
    np.testing.assert_allclose(exact[:20], _mean_on_a_grid(V, where, spread, observed[:20]), rtol=0, atol=1e-9)
    # the samples are those of the distributions that the means are about
    np.testing.assert_allclose(np.cov(np.hstack([X, Z]).T), V, atol=0.15)
    np.testing.assert_allclose(np.hstack([X, Z]).mean(0), np.repeat([1.0, 0.0], dimension), atol=0.06)
    np.testing.assert_allclose(np.atleast_2d(np.cov(drawn.T)), spread, atol=0.08)
    np.testing.assert_allclose(drawn.mean(0), where, atol=0.05)
    assert observed.shape == (100, dimension)


@pytest.mark.parametrize("prior", ["paper", "far"])
def test_one_repeat_of_posterior_mean(prior):
    settings = {"n": 60, "reg": 0.2, "dimension": 2, "prior": prior}
    numbers = posterior_mean._once(settings, np.random.default_rng(0))
    assert list(numbers) == list(posterior_mean._METHODS)
    assert all(np.isfinite(v) and v > 0 for v in numbers.values())
    _, _, _, _, exact, centre = posterior_mean._problem(settings, np.random.default_rng(0))
    assert numbers["prior"] == pytest.approx(sum(np.square(e - centre).sum() for e in exact) / 100)


# -------------------------------------------------------------------------------------------- the command line


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of quick runs."""
    out = tmp_path_factory.mktemp("experiments")
    assert main(["experiment", *QUICK, "--quick", "--out", str(out)]) == 0
    return out


def _not_json(constant):
    raise AssertionError(f"{constant} is no JSON")


@pytest.mark.parametrize("name", experiments.EXPERIMENTS)
def test_experiments_introduce_themselves(name):
    module = experiments.EXPERIMENTS[name]
    assert 20 < len(module.TITLE) < 100
    assert "\n" not in module.TITLE + module.SOURCE
    assert callable(module.run)


@pytest.mark.parametrize("name", QUICK)
def test_quick_run_writes_everything(quick, name):
    record = json.loads((quick / f"{name}-quick.json").read_text(), parse_constant=_not_json)
    assert record["name"] == name
    assert record["quick"] is True
    assert record["seed"] == 0
    assert record["source"] == experiments.EXPERIMENTS[name].SOURCE
    assert {"python", "jax", "numpy", "kernelbayes"} <= set(record["versions"])
    assert record["settings"]["repeats"] >= 5
    assert 0 < record["seconds"] < 60
    assert all(table["rows"] for table in record["tables"])
    assert all(claim["verdict"] and claim["shown"] and claim["source"] for claim in record["claims"])
    for figure in record["figures"]:
        assert (quick / figure).stat().st_size > 20_000
    assert not list(quick.glob("*.part"))


def test_quick_verdicts(quick):
    """Most of what the full runs show is visible in the quick ones, and nothing contradicts it."""
    for name in QUICK:
        verdicts = [c["verdict"] for c in json.loads((quick / f"{name}-quick.json").read_text())["claims"]]
        assert "not reproduced" not in verdicts
        assert verdicts.count("reproduced") > len(verdicts) / 2


def test_a_second_call_reads_the_first_back(quick, capsys):
    before = json.loads((quick / "decoding-quick.json").read_text())
    assert main(["experiment", "decoding", "--quick", "--out", str(quick)]) == 0
    printed = capsys.readouterr().out
    after = json.loads((quick / "decoding-quick.json").read_text())
    for part in ("settings", "tables", "claims", "runs"):
        assert after[part] == before[part]
    assert "50 of 50 results were read back" in printed
    assert "=> reproduced (quick run)" in printed
    assert "settings: sizes = 50, 100, 200, 400, 800" in printed
    assert max(map(len, printed.splitlines()[:-2])) < 125


def test_fresh_runs_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(decoding, "run", _tiny)
    for arguments, read_back in (([], False), ([], True), (["--fresh"], False), (["--seed", "3"], False)):
        assert main(["experiment", "decoding", "--out", str(tmp_path), *arguments]) == 0
        assert ("read back" in capsys.readouterr().out) == read_back
    assert json.loads((tmp_path / "decoding.json").read_text())["seed"] == 3


def _tiny(study):
    runs = study.repeat(_sum, SETTINGS, CASES)
    return experiments.Result(SETTINGS, [Table("T", ["n"], [(3,)])], [], [], runs)

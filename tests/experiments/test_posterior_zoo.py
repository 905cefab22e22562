"""The zoo of known posteriors: simulators against likelihoods, exact draws against closed forms, measures, claims."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax
from sklearn.model_selection import KFold, cross_val_score
from sklearn.neural_network import MLPClassifier

from kernelbayes.experiments import Runs, Study, posterior_zoo
from kernelbayes.experiments.posterior_zoo import (
    MEASURES,
    PROBLEMS,
    _methods,
    _metrics,
    _reading,
    _reference,
    _sbi,
    evaluate,
    exact_draws,
    measures,
    reference,
)
from kernelbayes.experiments.posterior_zoo._claims import claims
from kernelbayes.experiments.posterior_zoo._methods import METHODS, Cell, cells, fill
from kernelbayes.experiments.posterior_zoo._two_samples import c2st

# ------------------------------------------------------------------------------------------------------ problems


def test_half_of_the_problems_are_held_out_and_each_kind_has_both():
    held = [p.held_out for p in PROBLEMS.values()]
    assert len(held) >= 14
    assert sum(held) * 2 == len(held)
    kinds = {(p.kind, p.held_out) for p in PROBLEMS.values()}
    assert {kind for kind, held in kinds if held} == {kind for kind, held in kinds if not held}


@pytest.mark.parametrize("name", PROBLEMS)
def test_observations_are_the_same_on_every_call(name):
    problem = PROBLEMS[name]
    first, again, other = problem.observation(0), problem.observation(0), problem.observation(1)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    theta, x = problem.observed_at(0)
    assert np.isfinite(problem.log_likelihood(theta[None], x)).all()
    assert problem.log_likelihood(problem.prior.sample(7, 0), x).shape == (7,)


@pytest.mark.parametrize("name", PROBLEMS)
def test_runs_follow_the_design(name):
    problem = PROBLEMS[name]
    theta, x = problem.runs(50, seed=3)
    assert theta.shape == (50, problem.dimension)
    assert x.shape == (50, len(problem.observation(0)))
    assert np.isfinite(x).all()
    assert len(np.unique(theta, axis=0)) == 50 // problem.repeats
    if problem.repeats > 1:
        assert not np.array_equal(x[0], x[1])


def _away(problem, theta, x):
    """Parameters, and others a step away in each Gaussian coordinate, where log ratios of likelihoods spread by about 1."""
    start, steps = problem.prior.to_gaussian(theta[None]), np.full(problem.dimension, 0.1)
    for _ in range(8):
        both = np.concatenate([theta[None], problem.prior.from_gaussian(start + np.diag(steps))])
        told = np.array([problem.log_likelihood(both, row) for row in x])
        spread = (told[:, 1:] - told[:, :1]).std(0)
        steps = np.clip(steps / np.clip(spread, 0.3, 3.0), 0.003, 1.0)
    return both


@pytest.mark.parametrize("name", PROBLEMS)
def test_simulators_and_likelihoods_agree(name):
    """Which of two parameters a simulation is from: q / (p + q) is a calibrated probability of that."""
    problem, rng = PROBLEMS[name], np.random.default_rng(0)
    n = 100 if name in ("predator-prey", "epidemic", "epidemic-latent") else 2000  # a differential equation for each
    theta, _ = problem.observed_at(4)
    places = _away(problem, theta, problem.simulate(np.repeat(theta[None], 20, axis=0), rng))
    which = np.repeat([0.0, 1.0], n)
    for other in places[1:]:
        both = np.stack([theta, other])
        x = problem.simulate(both[which.astype(int)], rng)
        chance = softmax([problem.log_likelihood(both, row) for row in x], axis=1)[:, 1]
        assert chance.std() > 1e-3
        for weight in (1.0, chance - 0.5):  # in all, and whether it is as sure as it may be
            off = (which - chance) * weight
            assert abs(off.mean()) < 5.0 * off.std() / np.sqrt(2 * n)


@pytest.mark.parametrize("name", PROBLEMS)
def test_simulations_are_likelier_at_their_own_parameters(name):
    problem, n = PROBLEMS[name], 40
    rng = np.random.default_rng(2)
    own, other = problem.prior.sample(n, rng), problem.prior.sample(n, rng)
    x = problem.simulate(own, rng)
    both = [
        problem.log_likelihood(np.stack(pair), row) for pair, row in zip(zip(own, other, strict=True), x, strict=True)
    ]
    wins = np.mean([first > second for first, second in both])
    assert wins > 0.6


# ------------------------------------------------------------------------------------------------ exact draws


@pytest.mark.parametrize("name", [name for name, p in PROBLEMS.items() if p.exact])
def test_exact_draws_have_the_moments_of_the_closed_form(name):
    problem = PROBLEMS[name]
    x = problem.observation(2)
    mean, cov = problem.exact(x)
    draws = exact_draws(problem, x, 4000, last=20)
    spread = np.sqrt(np.diag(cov))
    np.testing.assert_allclose((draws.mean(0) - mean) / spread, 0.0, atol=0.12)
    whitened = np.linalg.solve(np.linalg.cholesky(cov), (draws - mean).T)
    np.testing.assert_allclose(np.cov(whitened), np.eye(problem.dimension), atol=0.15)


def test_exact_draws_stay_within_a_box():
    problem = PROBLEMS["linear-5-box"]
    draws = exact_draws(problem, problem.observation(0), 1000, last=10)
    assert (np.abs(draws) <= 1.0).all()
    assert np.abs(draws).max() > 0.98  # and reach its edge


def test_both_halves_of_a_ring_are_found():
    draws = exact_draws(PROBLEMS["ring"], np.array([2.0, 0.0]), 4000)
    mirrored = np.array([[-1.0], [1.0]]) * draws[:, 0]
    assert stats.ks_2samp(mirrored[0], mirrored[1]).statistic < 0.06  # the likelihood is even


def test_truths_rank_evenly_among_exact_draws():
    problem, truths = PROBLEMS["hurdle"], 100
    rng = np.random.default_rng(0)
    theta = problem.prior.sample(truths, rng)
    x = problem.simulate(theta, rng)
    ranks = [(exact_draws(problem, x[i], 60, seed=i, last=5) < theta[i]).mean(0) for i in range(truths)]
    for column in np.transpose(ranks):
        assert stats.kstest(column, "uniform").pvalue > 1e-4


def test_exact_draws_are_kept_until_the_problem_changes(tmp_path, monkeypatch):
    made = []

    def few(problem, x):
        made.append(problem.name)
        return exact_draws(problem, x, 50, last=1)

    monkeypatch.setattr(_reference, "exact_draws", few)
    problem = PROBLEMS["crescent"]
    first = reference(problem, 0, tmp_path)
    np.testing.assert_array_equal(reference(problem, 0, tmp_path), first)
    assert len(made) == 1
    wider = dataclasses.replace(problem, log_likelihood=lambda theta, x: 0.5 * problem.log_likelihood(theta, x))
    assert not np.array_equal(reference(wider, 0, tmp_path), first)
    assert len(made) == 2
    assert len(list(tmp_path.iterdir())) == 2


# ------------------------------------------------------------------------------------------------------ measures


def _normal(n, shift=0.0, scale=1.0, d=2, seed=0):
    return shift + scale * np.random.default_rng(seed).standard_normal((n, d))


def test_a_network_cannot_tell_equal_samples_apart():
    assert c2st(_normal(3000), _normal(1000, seed=1)) == pytest.approx(0.5, abs=0.06)


def test_a_network_tells_shifted_samples_apart_as_well_as_can_be():
    found = c2st(_normal(3000), _normal(1000, shift=[2.0, 0.0], seed=1))
    assert found == pytest.approx(stats.norm.cdf(1.0), abs=0.05)


def test_networks_in_a_stack_do_as_well_as_one_by_one():
    """Beside scikit-learn's, on samples that differ in shape."""
    rng = np.random.default_rng(4)
    exact, draws = rng.standard_normal((1000, 2)), rng.standard_t(3.0, (1000, 2))
    draws[:, 0] += 0.5
    both = (np.concatenate([exact, draws]) - exact.mean(0)) / exact.std(0)
    network = MLPClassifier((20, 20), max_iter=1000, random_state=0)
    folds = KFold(5, shuffle=True, random_state=0)
    known = cross_val_score(network, both, np.repeat([0, 1], 1000), cv=folds).mean()
    assert c2st(exact, draws) == pytest.approx(known, abs=0.04)


def test_measures_of_normals():
    exact = _normal(20_000) * [1.0, 5.0]
    draws = _normal(20_000, shift=[0.5, 0.0], scale=2.0, seed=1) * [1.0, 5.0]
    found = measures(exact, draws, classifier=False)
    assert found["mean_error"] == pytest.approx(np.sqrt(0.5**2 / 2), abs=0.05)
    assert found["sd_ratio"] == pytest.approx(2.0, rel=0.04)
    inside = stats.norm.cdf(2 * 1.645) - stats.norm.cdf(-2 * 1.645)
    shifted = stats.norm.cdf(0.5 + 2 * 1.645) - stats.norm.cdf(0.5 - 2 * 1.645)
    assert found["coverage"] == pytest.approx((inside + shifted) / 2, abs=0.01)
    assert measures(exact, exact, classifier=False)["coverage"] == pytest.approx(0.9, abs=1e-3)


def test_evaluate_compares_with_the_reference(tmp_path, monkeypatch):
    monkeypatch.setattr(_metrics, "reference", lambda problem, k, folder: _normal(2000, shift=k))
    found = evaluate(PROBLEMS["crescent"], 1, _normal(1000, shift=1.0, seed=3), tmp_path, classifier=False)
    assert found["mean_error"] < 0.15
    assert set(found) == set(MEASURES) - {"c2st"}


# ---------------------------------------------------------------------------------------------------- the runner

PAIR = {name: PROBLEMS[name] for name in ("linear-2", "ring")}


def _made_up(**scores):
    """Runs of two sizes with these C2ST for each method, everything else perfect."""
    cases, values = [], {name: [] for name in _methods.NUMBERS}
    for size in (500, 1000):
        for problem in PAIR.values():
            for method, score in scores.items():
                cases.append({"problem": problem.name, "held_out": problem.held_out, "size": size, "method": method})
                told = dict(c2st=score, mean_error=0.1, sd_ratio=1.0, coverage=0.9, seconds=1.0, warned=0.0)
                for name in values:
                    values[name].append([told[name], told[name] if METHODS[method].observations > 1 else np.nan])
    return Runs(cases, {name: np.array(v) for name, v in values.items()})


def test_claims_are_judged_by_the_scores():
    scores = dict(kb=0.6, kelfi=0.7, npe=0.8, nle=0.7, kb_rounds=0.55, snpe=0.6, snle=0.7)
    assert [c.verdict for c in claims(_made_up(**scores))] == ["reproduced"] * 5
    worse = claims(_made_up(**{**scores, "kb": 0.75}))
    assert [c.verdict for c in worse] == ["partly", "reproduced", "not reproduced", "reproduced", "reproduced"]
    narrow = _made_up(**scores)
    narrow.values["coverage"][:] = 0.5
    assert [c.verdict for c in claims(narrow)][-2:] == ["not reproduced"] * 2


def test_claims_need_their_methods():
    found = claims(_made_up(kb=0.6, kelfi=0.7, kb_rounds=0.6))
    assert len(found) == 3
    assert "NPE" not in " ".join(c.statement for c in found)


def test_methods_are_compared_on_observations_that_all_of_them_have():
    runs = _made_up(kb_rounds=0.6, snpe=0.7)
    rows = [i for i, case in enumerate(runs.cases) if case["method"] == "kb_rounds"]
    runs["c2st"][rows, 1] = 1.0  # an observation that SNPE did not see
    np.testing.assert_allclose(_reading.side_by_side(runs, 500, ["kb_rounds", "snpe"]), [[0.6, 0.7]] * 2)
    shown = {table.title: table for table in _reading.tables(runs, PAIR)}
    won = shown["Problems won"]
    assert won.rows[0][-1] == "kb.infer, rounds 2, SNPE 0"
    assert shown["C2ST, 500 simulations"].rows[0][1:] == ("0.8", "0.7")


def test_only_given_runs_where_parameters_are_repeated():
    wanted = list(cells(PROBLEMS, (1000,), ("kb", "kb_rounds", "snpe")))
    rounds = {cell.problem for cell in wanted if cell.method != "kb"}
    assert rounds == {name for name, p in PROBLEMS.items() if p.repeats == 1}
    assert {cell.k for cell in wanted if cell.method == "snpe"} == {0}


def _fast(monkeypatch):
    """Exact draws that are few, and no classifier."""
    monkeypatch.setattr(_methods, "reference", lambda problem, k, folder: problem.prior.sample(300, k))
    monkeypatch.setattr(_metrics, "c2st", lambda exact, draws, seed: 0.6)


def test_cells_are_saved_and_read_back(tmp_path, monkeypatch):
    _fast(monkeypatch)
    study = Study("posterior-zoo", tmp_path)
    first = fill(study, PAIR, [Cell("ring", 100, "kb", 0)])
    more = fill(study, PAIR, [Cell("ring", 100, "kb", 0), Cell("ring", 100, "kb", 1), Cell("linear-2", 100, "kb", 0)])
    assert more.read_back == 1
    assert more["mean_error"][0, 0] == first["mean_error"][0, 0]
    assert np.isnan(more["mean_error"][1, 1])
    assert [c["problem"] for c in more.cases] == ["ring", "linear-2"]


def test_a_method_that_fails_has_the_worst_score(tmp_path, monkeypatch):
    def fails(*args, **options):
        raise ValueError("weights cancel")

    _fast(monkeypatch)
    monkeypatch.setattr(_methods, "infer", fails)
    runs = fill(Study("posterior-zoo", tmp_path), PAIR, [Cell("ring", 100, "kb", 0)])
    assert runs["c2st"][0, 0] == 1.0
    assert np.isnan(runs["coverage"][0, 0])


def test_a_quick_run(tmp_path, monkeypatch):
    _fast(monkeypatch)
    monkeypatch.setattr(_sbi, "installed", lambda: False)
    monkeypatch.setattr(posterior_zoo, "_QUICK", tuple(PAIR))
    result = posterior_zoo.run(Study("posterior-zoo", tmp_path, quick=True))
    assert "sbi is not installed" in result.notes[0]
    assert result.figures[0].exists()
    text = "\n".join(result.lines(True))
    assert "kb.infer, rounds" in text
    assert "NPE" not in text.replace(result.notes[0], "")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*_sbi.AMORTISED, *_sbi.SEQUENTIAL])
def test_neural_methods_draw_parameters(name, capfd):
    pytest.importorskip("sbi")
    problem = PROBLEMS["linear-2"]
    x = problem.observation(0)
    if name in _sbi.AMORTISED:
        draws = _sbi.amortised(name, problem, *problem.runs(200, 0), 0)(x, 300)
    else:
        draws = _sbi.sequential(name, problem, x, 200, 2, 300, 0)
    mean, cov = problem.exact(x)
    assert np.abs((draws.mean(0) - mean) / np.sqrt(np.diag(cov))).max() < 1.5
    assert capfd.readouterr().out == ""

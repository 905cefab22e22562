"""Integrals from end to end: values near the truth with errors to be believed, stores, failures, and learned kernels."""

from __future__ import annotations

import functools
import math
import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes.integration import _doubts, _source
from kernelbayes.learning import _integrand
from kernelbayes.simulation import SimulationError

UNIFORM3 = [stats.uniform()] * 3

# name: function, distribution, evaluations, true value
INTEGRANDS = {
    "oscillation": (lambda x: np.cos(1.0 + x @ [1.0, 2.0, 1.5]), UNIFORM3, 60, None),
    "kink": (lambda x: np.abs(x[:, 0] - 0.3), stats.uniform(), 40, 0.29),
    "step": (lambda x: (x[:, 0] > 0.3) * 1.0, stats.uniform(), 40, 0.7),
    "growth": (lambda x: np.exp(x.sum(1)), [stats.norm(), stats.norm(0, 0.5)], 60, np.exp(0.625)),
    "square": (lambda x: x[:, 0] ** 2, stats.gamma(3.0), 40, 12.0),
    "ten columns": (lambda x: np.cos(x).sum(1), [stats.norm()] * 10, 40, 10 * np.exp(-0.5)),
    "offset": (lambda x: 1e6 + np.sin(x[:, 0]), stats.norm(1.0, 1.0), 30, 1e6 + np.sin(1.0) * np.exp(-0.5)),
}


def _truth(name):
    if name != "oscillation":
        return INTEGRANDS[name][3]
    a = np.array([1.0, 2.0, 1.5])
    return np.real(np.exp(1j) * np.prod((np.exp(1j * a) - 1) / (1j * a)))


@pytest.mark.filterwarnings("ignore:near x = :kernelbayes.QuadratureWarning")  # of kinks and jumps
@pytest.mark.parametrize("name", INTEGRANDS)
def test_errors_are_as_large_as_they_are_said_to_be(name):
    f, distribution, n, _ = INTEGRANDS[name]
    found = [kb.integrate(f, distribution, n, random_state=seed) for seed in range(3)]
    off = np.array([abs(r.mean() - _truth(name)) / r.std() for r in found])
    assert np.median(off) < 2.5
    spread = np.array([f(r.rule.points).std() for r in found]) / np.sqrt(n)
    assert (np.array([r.std() for r in found]) < spread).all()  # of a plain average


def test_the_error_falls_until_it_is_small_enough():
    def f(x):
        return np.exp(-np.square(x).sum(1))

    found = kb.integrate(f, [stats.norm(), stats.norm()], 20, tol=1e-3, max_n=200, random_state=0)
    assert found.std() <= 1e-3
    assert abs(found.mean() - 1 / 3) < 2e-3
    assert [row[0] for row in found.history] == sorted({row[0] for row in found.history})
    assert found.history[-2][2] <= 1e-3  # small enough twice in a row, and no more
    assert found.history[-3][2] > 1e-3
    assert found.n == len(found.rule) == found.history[-1][0] < 200
    with pytest.warns(kb.QuadratureWarning, match="above tol"):
        short = kb.integrate(f, [stats.norm(), stats.norm()], 10, tol=1e-9, max_n=15, random_state=0)
    assert short.n == 15
    assert "tol" in short.problems[0]


@pytest.mark.parametrize("nodes", ["dpp", "greedy"])
def test_what_has_been_paid_for_is_kept_when_no_more_nodes_can_be_chosen(nodes):
    with pytest.warns(kb.QuadratureWarning, match="above tol"):
        found = kb.integrate(lambda x: np.cos(x[:, 0]), stats.norm(), 10, tol=1e-13, nodes=nodes, random_state=0)
    assert found.n >= 10
    assert "nodes" in found.problems[0] or "rank" in found.problems[0]


def test_points_of_a_sample_are_evaluated_once():
    sample = np.random.default_rng(0).normal(size=(40, 1))
    seen = []

    def f(x):
        seen.extend(x[:, 0])
        return np.sign(x[:, 0])

    found = kb.integrate(f, sample, 20, tol=1e-12, random_state=0)
    assert len(seen) == len(set(seen)) == found.n == 40
    assert found.mean() == pytest.approx(np.sign(sample).mean(), abs=1e-6)
    with pytest.warns(kb.SimulationWarning, match="40 points only; all of them are evaluated"):
        every = kb.integrate(f, sample, 50)
    assert every.n == 40
    assert (every.mean(), every.std()) == (pytest.approx(np.sign(sample).mean(), abs=1e-15), 0.0)


def test_few_values_and_extreme_ones():
    with pytest.warns(kb.QuadratureWarning, match="too few"):
        kb.integrate(lambda x: np.cos(x[:, 0]), stats.norm(), 5, random_state=0)
    plain = kb.integrate(lambda x: np.cos(x[:, 0]), stats.norm(), 20, random_state=0)
    for size in (1e90, 1e-90):
        found = kb.integrate(lambda x, size=size: size * np.cos(x[:, 0]), stats.norm(), 20, random_state=0)
        assert found.mean() == pytest.approx(size * plain.mean(), rel=1e-6)
        assert found.std() == pytest.approx(size * plain.std(), rel=1e-3)


def test_several_integrals_at_once_and_the_same_seed():
    def f(x):
        return np.column_stack([np.sin(x[:, 0]), x[:, 0] ** 2])

    found = kb.integrate(f, stats.norm(1, 0.5), 30, random_state=4)
    again = kb.integrate(f, stats.norm(1, 0.5), 30, random_state=4)
    assert found.mean().shape == found.std().shape == (2,)
    assert np.allclose(found.mean(), [np.sin(1.0) * np.exp(-0.125), 1.25], atol=1e-3)
    assert np.array_equal(found.mean(), again.mean())
    assert found.interval(0.9).shape == (2, 2)
    assert list(found.summary()) == ["integral_0", "integral_1"]
    assert "2 integrals" in repr(found)


def test_a_store_keeps_every_value(tmp_path):
    calls = []

    def f(x):
        calls.append(float(x[0]))
        return np.sin(x[0])

    store = tmp_path / "values.sqlite"
    options = {"vectorised": False, "store": store}
    first = kb.integrate(f, stats.norm(), 12, **options)
    assert len(calls) == 12
    again = kb.integrate(f, stats.norm(), 12, **options)
    assert len(calls) == 12
    assert again.mean() == first.mean()
    more = kb.integrate(f, stats.norm(), 20, **options)
    assert len(calls) == 20
    assert np.array_equal(more.rule.points[:12], first.rule.points)
    with pytest.raises(ValueError, match="begun with"):
        kb.integrate(f, stats.norm(), 12, random_state=5, **options)


def test_executors_and_names():
    given = {"vectorised": False, "names": ["a", "b"], "random_state": 0}
    with ThreadPoolExecutor(2) as pool:
        found = kb.integrate(_named, [stats.uniform(), stats.norm()], 16, executor=pool, **given)
    alone = kb.integrate(_named, [stats.uniform(), stats.norm()], 16, **given)
    assert found.n == alone.n == 16
    assert found.mean() == alone.mean()
    assert found.mean() == pytest.approx(0.5, abs=0.05)


def _named(a, b):
    return a + 0.1 * np.sin(b)


def test_values_that_could_not_be_had_are_left_out():
    def f(x):
        if x[0] > 1.5:
            raise RuntimeError("too large")
        return x[0] ** 2

    with pytest.warns(kb.SimulationWarning, match="too large"), pytest.warns(kb.QuadratureWarning, match="failed"):
        found = kb.integrate(f, stats.norm(), 40, vectorised=False, random_state=0)
    assert any("evaluations failed, all where x is above 1." in problem for problem in found.problems)
    assert found.failures
    assert found.n == 40 - len(found.failures) == len(found.rule)
    with pytest.raises(SimulationError, match="f: 20 of"):
        kb.integrate(lambda x: float("nan"), stats.norm(), 20, vectorised=False)


def test_a_sample_as_the_distribution():
    draws = np.random.default_rng(0).normal(size=(1500, 2))

    def f(x):
        return np.cos(x[:, 0]) * np.exp(0.3 * x[:, 1])

    found = kb.integrate(f, draws, 40, random_state=0)
    assert found.rule.nodes == "herding"
    assert abs(found.mean() - f(draws).mean()) < 3 * found.std()
    assert found.std() < 0.02  # of the mean of 40 draws: 0.1


def test_given_kernels():
    def f(x):
        return np.sin(3 * x[:, 0])

    fixed = kb.integrate(f, stats.norm(), 20, kernel=kb.Gaussian(0.5), learn=False, random_state=0)
    assert float(np.asarray(fixed.rule.kernel.lengthscale)) == 0.5
    learned = kb.integrate(f, stats.norm(), 20, kernel=2.0 * kb.Gaussian(0.05), random_state=0)
    assert float(np.asarray(learned.rule.kernel.kernel.lengthscale).item()) > 0.2
    brownian = kb.integrate(lambda x: x[:, 0], stats.uniform(), 20, kernel=kb.Brownian(), random_state=0)
    assert isinstance(brownian.rule.kernel, kb.Brownian)


def test_nothing_to_learn_from():
    with pytest.warns(kb.QuadratureWarning, match="same value"):
        found = kb.integrate(lambda x: np.full(len(x), 3.0), stats.norm(), 20, random_state=0)
    assert found.mean() == pytest.approx(3.0)
    share = stats.beta(1, 21).std()  # of the mass where f is another, with an even prior and 20 nodes where it is not
    assert found.std() == pytest.approx(3.0 * share)


def test_zero_at_all_nodes_is_no_proof_of_zero():
    with pytest.warns(kb.QuadratureWarning, match="of size one elsewhere, and a peak that all nodes miss"):
        found = kb.integrate(lambda x: (x[:, 0] > 1e9) * 1.0, stats.norm(), 20, random_state=0)
    assert found.mean() == 0.0
    assert found.std() == pytest.approx(stats.beta(1, 21).std())
    with pytest.warns(kb.QuadratureWarning, match="of that size"):  # sums of rounding are no variation
        rounded = kb.integrate(
            lambda x: 0.1 + 0.2 * np.cos(x[:, 0]) ** 2 + 0.2 * np.sin(x[:, 0]) ** 2, stats.norm(), 20
        )
    assert rounded.std() == pytest.approx(0.3 * stats.beta(1, 21).std())


@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_squares_of_extreme_values_are_held(size):
    usual, found = (
        kb.integrate(lambda x, s=s: s * np.exp(x[:, 0]), stats.norm(), 12, random_state=0) for s in (1, size)
    )
    assert found.std() / size == pytest.approx(usual.std(), rel=1e-6)
    assert found.mean() / size == pytest.approx(usual.mean())


def test_a_constant_on_all_points_of_a_sample_is_exact():
    found = kb.integrate(lambda x: np.full(len(x), 2.0), np.arange(30.0), 30, random_state=0)
    assert (found.mean(), found.std()) == (pytest.approx(2.0), 0.0)


@pytest.mark.filterwarnings("ignore::kernelbayes.QuadratureWarning")
@pytest.mark.parametrize("width", [0.03, 0.01, 0.003])
def test_the_deviation_of_a_narrow_peak_is_of_its_size(width):
    """Between nodes 0.05 apart the peak is hardly seen, but its logarithm is, or else the user is told."""
    for seed in range(3):
        centre = np.random.default_rng(seed).uniform(0.2, 0.8)
        found = kb.integrate(
            lambda x, c=centre: np.exp(-0.5 * ((x[:, 0] - c) / width) ** 2), stats.uniform(), 20, random_state=seed
        )
        assert 0 < found.std() <= 1.0  # no more than the peak is high
        seen = abs(found.mean() - width * math.sqrt(2 * math.pi)) < 3 * found.std()
        assert seen or (width == 0.003 and "standard deviations from what all other nodes predict" in found.problems[0])


def test_what_is_missed_is_found_by_the_logarithm():
    """x^2 / 2 is a process that is easy to follow, and so is what the peak between two nodes adds."""
    x = np.linspace(0.025, 0.975, 20)[:, None]
    centre = 0.5  # in the middle between two nodes, of which each is 2.5 standard deviations away
    v = np.exp(-0.5 * ((x[:, 0] - centre) / 0.01) ** 2)
    rule = kb.quadrature(kb.Gaussian(0.01), stats.uniform(), nodes=x, weights="normalised")
    found = _doubts.missed_by(rule, v, np.array([0.3]))
    assert found == pytest.approx(0.01 * math.sqrt(2 * math.pi) - rule.integrate(v), rel=0.15)
    assert _doubts.missed_by(rule, -v, np.array([0.3])) == found
    assert _doubts.missed_by(rule, v - 0.01, np.array([0.3])) == 0.0  # of two signs


def test_saved_and_loaded(tmp_path):
    found = kb.integrate(lambda x: np.sin(x[:, 0]), stats.norm(), 15, random_state=0)
    kb.save(found, tmp_path / "integral.npz")
    loaded = kb.load(tmp_path / "integral.npz")
    assert (loaded.mean(), loaded.std(), loaded.problems) == (found.mean(), found.std(), found.problems)
    found.to_csv(tmp_path / "nodes.csv")
    assert (tmp_path / "nodes.csv").read_text().splitlines()[0] == "x0,weight,value"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": 2}, "n must be"),
        ({"max_n": 50}, "max_n is the limit"),
        ({"tol": 0.0}, "tol must be"),
        ({"executor": 2}, "vectorised=False"),
        ({"learn": False}, "kernel is needed"),
        ({"weights": "uniform"}, "weights must be one of"),
        ({"kernel": "gaussian"}, "kernel must be"),
        ({"nodes": "best"}, "nodes must be one of"),
        ({"distribution": [1.0, 1.0, 1.0]}, "no two distinct points"),
    ],
)
def test_bad_input(arguments, said):
    given = {"f": lambda x: x[:, 0], "distribution": stats.norm(), "n": 10, **arguments}
    with pytest.raises(ValueError, match=said):
        kb.integrate(**given)


def test_a_function_of_one_point_where_many_come():
    with pytest.raises(SimulationError, match="vectorised=False"):
        kb.integrate(lambda x: np.sum(x**2), [stats.norm(), stats.norm()], 20)


@pytest.mark.filterwarnings("ignore::kernelbayes.QuadratureWarning")
@pytest.mark.parametrize(
    ("f", "distribution", "vectorised_f"),
    [
        (math.exp, stats.norm(), lambda X: np.exp(X[:, 0])),
        (lambda x: math.exp(x[0]), stats.norm(), lambda X: np.exp(X[:, 0])),
        (lambda a: math.exp(a), {"a": stats.norm()}, lambda X: np.exp(X[:, 0])),
        (lambda a, b: math.exp(a) + b, {"a": stats.norm(), "b": (0, 1)}, lambda a, b: np.exp(a) + b),
        (lambda x: math.exp(x[0]) + x[1], [stats.norm(), stats.uniform()], lambda X: np.exp(X[:, 0]) + X[:, 1]),
        (
            lambda x: {"up": math.exp(x), "down": math.exp(-x)},
            stats.norm(),
            lambda X: {"up": np.exp(X[:, 0]), "down": np.exp(-X[:, 0])},
        ),
    ],
)
def test_a_function_of_single_numbers_is_called_with_each(f, distribution, vectorised_f):
    """Also beyond the first batch, of which the last has a single point."""
    given = {"distribution": distribution, "n": 101, "random_state": 0}
    wanted = kb.integrate(vectorised_f, **given)
    for vectorised in (True, False):
        found = kb.integrate(f, vectorised=vectorised, **given)
        np.testing.assert_allclose(found.values, wanted.values, rtol=1e-12)
        assert not found.failures
        assert found.outputs == wanted.outputs


@pytest.mark.filterwarnings("ignore::kernelbayes.QuadratureWarning")  # of a kink
def test_a_function_that_compares_single_numbers_is_called_with_each():
    found = kb.integrate(lambda x: x if x > 0 else 0.0, stats.norm(), 101, random_state=0)
    np.testing.assert_array_equal(found.values, np.maximum(found.rule.points[:, 0], 0.0))


def test_a_function_of_single_numbers_is_called_with_each_in_processes():
    found = kb.integrate(math.exp, stats.norm(), 12, vectorised=False, executor=1, random_state=0)
    np.testing.assert_allclose(found.values, np.exp(found.rule.points[:, 0]))


@pytest.mark.filterwarnings("ignore::kernelbayes.QuadratureWarning")
def test_points_at_which_a_function_of_single_numbers_fails_are_left_out():
    with pytest.warns(kb.SimulationWarning, match="math domain error|positive input"):
        found = kb.integrate(lambda x: math.log(x), stats.norm(2.0, 1.0), 60, random_state=0)
    assert 0 < len(found.failures) < 10
    assert (found.rule.points > 0).all()


# ------------------------------------------------------------------------------------------------ learned kernels


def test_the_score_is_that_of_contrasts():
    """Restricted likelihood: the density of all contrasts, whatever the constant is."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(8, 2)), rng.normal(size=8)

    def brute(kernel):
        C = np.linalg.qr(np.column_stack([np.ones(8), np.eye(8)[:, 1:]]))[0][:, 1:]  # a basis of all contrasts
        K, z = C.T @ (kernel.gram(X) + 1e-10 * np.eye(8)) @ C, C.T @ y
        scale = z @ np.linalg.solve(K, z) / 7
        return -2.0 * stats.multivariate_normal(np.zeros(7), scale * K).logpdf(z)

    kernels = [kb.Gaussian([0.3, 0.5]), kb.Laplace(0.4)]
    ours = [_integrand._scored(k, X, y[:, None])[0] for k in kernels]
    assert ours[0] - ours[1] == pytest.approx(brute(kernels[0]) - brute(kernels[1]), rel=1e-6)


@pytest.mark.parametrize(
    ("f", "family"),
    [(lambda x: np.exp(np.sin(4 * x[:, 0])), kb.Gaussian), (lambda x: np.sign(x[:, 0] - 0.37), kb.Laplace)],
)
def test_the_family_follows_the_function(f, family):
    X = (np.arange(40)[:, None] + 0.5) / 40
    assert isinstance(_integrand.learn_kernel(X, f(X), np.array([0.3])).kernel, family)


def test_lengthscales_of_columns_that_do_not_matter_are_long():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    found = _integrand.learn_lengthscales(kb.Gaussian(0.5), X, np.sin(6 * X[:, 0]))
    short, long = np.asarray(found.kernel.lengthscale)
    assert long > 3 * short


# --------------------------------------------------------------------------------------- what a newcomer may give it


def _cosine(x, k):
    return np.cos(k * x[0])


def test_a_store_of_another_function_is_a_problem(tmp_path):
    given = {"distribution": stats.norm(), "n": 12, "vectorised": False, "store": tmp_path / "e.sqlite"}
    kb.integrate(functools.partial(_cosine, k=1), **given)
    with pytest.warns(kb.QuadratureWarning, match=r"what f .*_cosine carries along has changed .*\(k\)"):
        stale = kb.integrate(functools.partial(_cosine, k=2), **given)
    assert "carries along" in stale.problems[0]


@pytest.mark.parametrize(
    ("distribution", "points"),
    [
        (stats.binom(5, 0.3), 6),
        (stats.bernoulli(0.3), 2),
        ([stats.binom(2, 0.3), stats.randint(1, 4)], 9),
        (np.repeat(np.arange(4.0), [5, 1, 2, 2]), 4),
    ],
)
def test_discrete_distributions_are_weighted_points(distribution, points):
    seen = []

    def f(x):
        seen.append(tuple(x))
        return float(np.exp(-x.sum() / 3))

    with pytest.warns(kb.SimulationWarning, match=f"{points} .*points only"):
        found = kb.integrate(f, distribution, 20, vectorised=False, random_state=0)
    assert len(seen) == len(set(seen)) == found.n == points
    columns = distribution if isinstance(distribution, list) else [distribution]
    if isinstance(distribution, np.ndarray):
        truth = np.exp(-distribution / 3).mean()
    else:
        truth = np.prod([c.expect(lambda x: np.exp(-x / 3)) for c in columns])
    assert found.mean() == pytest.approx(truth, abs=1e-14)
    assert (found.std(), found.problems, found.rule.worst_case_error) == (0.0, (), 0.0)
    assert "worst-case error 0," in repr(found.rule)


def test_some_points_of_a_discrete_distribution():
    found = kb.integrate(lambda x: np.sqrt(x[:, 0]), stats.poisson(30), 25, random_state=0)
    assert len(np.unique(found.rule.points)) == found.n == 25
    assert abs(found.mean() - stats.poisson(30).expect(np.sqrt)) < 3 * found.std()


@pytest.mark.parametrize(
    ("f", "distribution", "said"),
    [
        (lambda x: x[:, 0], stats.pareto(1.5), "no finite variance"),
        (lambda x: np.cos(x[:, 0]), stats.cauchy(), "no finite variance"),
        (lambda x: x[:, 0] ** 2, stats.t(2.1), "grows so fast"),
        (lambda x: np.exp(x[:, 0] ** 2 / 2.5), stats.norm(), "grows so fast"),
    ],
)
@pytest.mark.filterwarnings("ignore::kernelbayes.QuadratureWarning")
def test_heavy_tails_are_told(f, distribution, said, monkeypatch):
    monkeypatch.setattr(_source, "_STAND_IN", 1024)  # what is told does not depend on how many points stand for it
    for seed in range(2):
        assert said in " ".join(kb.integrate(f, distribution, 60, random_state=seed).problems)


@pytest.mark.parametrize("f", [lambda x: np.exp(x[:, 0]), lambda x: x[:, 0] ** 2, lambda x: np.cos(x[:, 0])])
def test_functions_that_grow_little_are_not(f):
    for seed in range(3):
        assert kb.integrate(f, stats.norm(), 40, random_state=seed).problems == ()


def _kinked(x):
    return np.abs(x[:, 0] - 0.37)


_OF_THE_KINK = (0.37**2 + 0.63**2) / 2


@pytest.mark.filterwarnings("ignore:near x = :kernelbayes.QuadratureWarning")
def test_a_kink_is_not_taken_for_noise():
    """With a long lengthscale the nugget would follow the kink: std was 0.0057 where the error is 1e-4."""
    found = [kb.integrate(_kinked, stats.uniform(), 40, random_state=seed) for seed in range(5)]
    assert all(float(np.asarray(one.rule.kernel.lengthscale)) < 1.0 for one in found)
    assert max(one.std() for one in found) < 1e-3
    assert np.median([abs(one.mean() - _OF_THE_KINK) / one.std() for one in found]) < 3


@pytest.mark.filterwarnings("ignore:near x = :kernelbayes.QuadratureWarning")
def test_tol_is_met_twice():
    found = [kb.integrate(_kinked, stats.uniform(), 10, tol=2e-4, random_state=seed) for seed in range(3)]
    for one in found:
        assert [std <= 2e-4 for _, _, std in one.history[-3:]] == [False, True, True]
    assert np.median([abs(one.mean() - _OF_THE_KINK) / one.std() for one in found]) < 3


@pytest.mark.filterwarnings("ignore::kernelbayes.QuadratureWarning")
def test_jumps_are_told():
    found = [kb.integrate(lambda x: (x[:, 0] > 0.3) * 1.0, stats.norm(), 60, random_state=s) for s in range(5)]
    told = [problem for one in found for problem in one.problems if "jump" in problem]
    assert len(told) >= 4
    places = [float(re.match(r"near x = (\S+)", problem)[1]) for problem in told]
    assert max(abs(place - 0.3) for place in places) < 0.25  # at a node beside it
    assert abs(np.median(places) - 0.3) < 0.1


def test_values_left_out_are_those_of_fits_to_the_others():
    found = kb.integrate(lambda x: 5.0 + np.sin(3 * x[:, 0]), stats.norm(), 24, kernel=kb.Laplace(1.0), random_state=0)
    rule, i = found.rule, 7
    others = np.arange(24) != i
    K = rule.kernel.gram(rule.points) + 24 * rule.reg * np.eye(24)
    ones, solved = np.linalg.solve(K[np.ix_(others, others)], np.column_stack([np.ones(23), found.values[others]])).T
    constant = solved.sum() / ones.sum()
    left = rule._left_out(found.values)
    assert left.predicted[i] == pytest.approx(constant + K[i, others] @ (solved - constant * ones), rel=1e-8)
    spread = K[i, i] - K[i, others] @ np.linalg.solve(K[np.ix_(others, others)], K[others, i])
    spread += (1 - K[i, others] @ ones) ** 2 / ones.sum()
    assert left.sd[i] == pytest.approx(np.sqrt(spread), rel=1e-8)


def test_times_up():
    def f(x):
        time.sleep(0.2)
        return np.cos(x[:, 0])

    kb.integrate(f, stats.norm(), 20, max_seconds=0.1, random_state=0)  # all there is, so nothing to say
    with pytest.warns(kb.QuadratureWarning, match="above tol=1e-13: max_seconds=0.1 are over"):
        kb.integrate(f, stats.norm(), 20, tol=1e-13, max_seconds=0.1, random_state=0)


def test_columns_by_name():
    found = kb.integrate(lambda u, v: u * v**2, {"u": (0, 2), "v": stats.norm()}, 40, random_state=0)
    assert found.names == ("u", "v")
    assert found.mean() == pytest.approx(1.0, abs=0.01)
    prior = kb.Prior(u=(0, 2), v=stats.norm())
    assert kb.integrate(lambda x: x[:, 0] * x[:, 1] ** 2, prior, 40, random_state=0).mean() == found.mean()
    with pytest.raises(ValueError, match="by draws"):
        kb.integrate(lambda x: x[:, 0], kb.Prior(a=stats.multivariate_normal([0, 0])), 10)


def test_nodes_that_are_given():
    nodes = np.linspace(-3, 3, 15)
    found = kb.integrate(lambda x: np.cos(x[:, 0]), stats.norm(), nodes=nodes)
    assert np.array_equal(found.rule.points[:, 0], nodes)
    assert found.mean() == pytest.approx(np.exp(-0.5), abs=1e-3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"timeout": 1.0}, "a timeout is for an f"),
        ({"f": 5}, "f must be a function, got int"),
        ({"n": 70_000}, "a rule of 70,000 nodes would take"),
        ({"n": 3, "nodes": np.zeros((5, 1))}, "n is 3, but 5 nodes are given"),
        ({"kernel": kb.Gaussian}, "the class Gaussian itself: call it"),
        ({"distribution": [(0, 1), (2, 3), (4, 5)]}, "could be bounds or points"),
        ({"distribution": (0, 1)}, "could be bounds or points"),
        ({"distribution": {"x": (1, 0)}}, "bounds of 'x' must rise"),
        ({"distribution": {"x": "norm"}}, "'x' must be a frozen"),
        ({"distribution": {}}, "distribution is empty"),
        ({"distribution": [[1.0], [np.nan]]}, "sample of points, contains NaN"),
        ({"distribution": ["a", "b"]}, "sample of points, holds text"),
        ({"distribution": np.zeros((3, 2, 2))}, "sample of points, must have 1 or 2 dimensions"),
        ({"distribution": np.zeros((0, 2))}, "sample of points, is empty"),
        (
            {"f": lambda a, b: a, "distribution": [stats.norm()] * 2, "names": ["a", "c"]},
            "^f has no argument 'c'; .*a, b$",
        ),
    ],
)
def test_more_bad_input(arguments, said):
    given = {"f": lambda x: x[:, 0], "distribution": stats.norm(), "n": None, **arguments}
    with pytest.raises(ValueError, match=said):
        kb.integrate(**given)


def test_what_is_said_of_a_function_that_fails():
    with pytest.raises(SimulationError, match="f returned 19 values for 20 points"):
        kb.integrate(lambda x: np.cos(x[1:, 0]), stats.norm(), 20)
    with pytest.raises(SimulationError, match=r"array x of shape \(1,\): its number is x\[0\]"):
        kb.integrate(lambda x: x["height"], stats.norm(), 20, vectorised=False)
    with pytest.warns(kb.SimulationWarning, match="20 points failed as a whole: .*again with each point by itself"):
        kb.integrate(lambda x: np.cos(x).T, stats.norm(), 20, random_state=0)


def test_a_kernel_too_smooth_is_told_once():
    with pytest.warns(kb.QuadratureWarning) as said:
        kb.integrate(lambda x: 1e8 + np.cos(x[:, 0]), stats.norm(), 20, random_state=0)
    assert len(said) == 1


def test_a_summary_has_digits_for_its_deviation():
    found = kb.integrate(lambda x: 1674 + 1e-3 * np.cos(x[:, 0]), stats.norm(), 20, random_state=0)
    shown = repr(found.summary()).splitlines()[1].split()
    assert float(shown[3]) < float(shown[1]) < float(shown[4])

"""Quadrature rules against brute force, dense formulas, scikit-learn's Gaussian processes, and known rates."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import kernelbayes as kb
from kernelbayes.integration import _source
from kernelbayes.integration._nodes import NODES
from kernelbayes.kernels._mercer import expansion
from kernelbayes.rules import quadrature as rules
from oracles import quadrature as oracle

CASES = {
    "gaussian": (kb.Gaussian(0.4), stats.norm(), "normal"),
    "sobolev": (kb.PeriodicSobolev(1), stats.uniform(0, 1), "uniform"),
    "brownian": (kb.Brownian(), stats.uniform(0, 1), "uniform"),
    "matern": (kb.Matern(1.5, lengthscale=0.3), stats.uniform(0, 1), "uniform"),
    "beta": (kb.Gaussian(0.1), stats.beta(2, 5), "beta"),
}


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize("case", CASES)
def test_worst_case_errors_by_brute_force(case, nodes):
    kernel, distribution, grid = CASES[case]
    rule = kb.quadrature(kernel, distribution, 8, nodes=nodes, random_state=3)
    # kinks of the rougher kernels limit the brute force, and 8,192 points stand for the beta distribution
    close = 1e-3 if case in ("brownian", "sobolev", "beta") else 1e-6
    brute = oracle.worst_case_error(kernel, rule.points, rule.weights, *oracle.rule_of(grid))
    assert rule.worst_case_error == pytest.approx(brute, rel=close, abs=2e-4 if case == "beta" else 1e-7)
    uniform = kb.quadrature(kernel, distribution, 8, nodes=nodes, weights="uniform", random_state=3)
    brute = oracle.worst_case_error(kernel, rule.points, np.full(8, 0.125), *oracle.rule_of(grid))
    assert uniform.worst_case_error == pytest.approx(brute, rel=close)
    assert rule.worst_case_error < uniform.worst_case_error
    assert rule.origin == ("8,192 Sobol points" if case == "beta" else "closed form")


@pytest.mark.parametrize("case", ["gaussian", "brownian", "matern"])
@pytest.mark.parametrize("reg", [None, 1e-3])
def test_weights_are_those_of_the_notes(case, reg):
    kernel, distribution, _ = CASES[case]
    mu = kb.AnalyticEmbedding(distribution, kernel)
    found = {
        name: kb.quadrature(kernel, distribution, 10, nodes="leverage", weights=name, reg=reg, random_state=1)
        for name in ("optimal", "normalised", "bach", "uniform")
    }
    X, q = found["bach"].points, found["bach"].density
    K, m, penalty = kernel.gram(X), mu(X), reg or 0.0
    assert np.allclose(found["optimal"].weights, oracle.optimal_weights(K, m, penalty), rtol=1e-5, atol=1e-8)
    assert np.allclose(found["bach"].weights, oracle.bach_weights(K, m, q, penalty), rtol=1e-5, atol=1e-8)
    assert np.allclose(found["normalised"].weights, oracle.normalised_weights(K, m, penalty), rtol=1e-5, atol=1e-8)
    assert found["normalised"].weights.sum() == pytest.approx(1.0, abs=1e-12)
    errors = [found[name].worst_case_error for name in ("optimal", "normalised", "uniform")]
    assert reg is not None or errors == sorted(errors)


def test_an_error_far_below_rounding_is_found_and_none_is_called_zero():
    kernel, normal = kb.Gaussian(1.0), stats.norm()
    rule = kb.quadrature(kernel, normal, 64, nodes="dpp", random_state=0)
    assert rule.worst_case_error < 1e-13
    # the same nodes by their Gram matrix: what it reports is a bound, told to be one, and above the true error
    known = expansion(kernel, normal, 5000)
    mu = kb.AnalyticEmbedding(normal, kernel)
    exact = rules.by_expansion(known._at(rule.points), known.eigenvalues, known.integrals())
    gram = rules.by_gram(kernel.gram(rule.points), mu(rule.points), mu.norm() ** 2)
    weights = rules.optimal(gram)
    assert 0 < exact.error(weights) < gram.error(weights) == gram.resolution < 1e-7
    rough = kb.quadrature(kb.Gaussian(1.0), stats.uniform(-3, 6), 60, nodes="sobol", random_state=0)
    assert not rough.resolved
    assert rough.worst_case_error == rough.resolution > 0
    assert "below" in repr(rough)


def test_bayesian_quadrature_is_the_integral_of_a_gaussian_process():
    X = np.linspace(-2.0, 2.5, 9)[:, None]
    y = np.sin(2 * X[:, 0]) + X[:, 0]
    for reg in (None, 1e-3):
        noise = 0.0 if reg is None else 9 * reg
        process = GaussianProcessRegressor(RBF(0.8), alpha=noise + 1e-12, optimizer=None).fit(X, y)
        grid, mass = oracle.rule_of("normal", 200)
        mean, cov = process.predict(grid, return_cov=True)
        rule = kb.quadrature(kb.Gaussian(0.8), stats.norm(), nodes=X, reg=reg)
        ours, std = rule.integrate(y, return_std=True)
        assert ours == pytest.approx(mass @ mean, abs=1e-6)
        assert std / np.sqrt(rule.scale(y)) == pytest.approx(np.sqrt(mass @ cov @ mass), rel=1e-4)
        L = np.linalg.cholesky(RBF(0.8)(X) + (noise + 1e-12) * np.eye(9))
        assert rule.scale(y) == pytest.approx((np.linalg.solve(L, y) ** 2).mean(), rel=1e-4)


def test_the_scale_about_a_constant_is_that_of_restricted_likelihood():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(12, 2))
    y = np.column_stack([X[:, 0] ** 2 + 5.0, np.cos(X[:, 1])])
    rule = kb.quadrature(kb.Gaussian(0.4), [stats.uniform()] * 2, nodes=X, weights="normalised")
    inverse = np.linalg.inv(rule.kernel.gram(X))
    one = np.ones(12)
    centred = y - (one @ inverse @ y) / (one @ inverse @ one)
    assert np.allclose(rule.scale(y), np.diagonal(centred.T @ inverse @ centred) / 11, rtol=1e-5)
    assert np.allclose(rule.integrate(y + 100.0) - rule.integrate(y), 100.0)
    mean, std = rule.integrate(y, return_std=True)
    assert mean.shape == std.shape == (2,)


@pytest.mark.parametrize(("order", "rate"), [(1, -1.0), (2, -2.0)])
def test_rates_in_sobolev_spaces(order, rate):
    sizes = np.array([16, 32, 64, 128])
    for nodes, slack in (("sobol", 0.25), ("dpp", 0.35)):
        errors = [
            np.median(
                [
                    kb.quadrature(
                        kb.PeriodicSobolev(order), stats.uniform(0, 1), n, nodes, random_state=s
                    ).worst_case_error
                    for s in range(5)
                ]
            )
            for n in sizes
        ]
        assert np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(rate, abs=slack * order)


@pytest.mark.parametrize("nodes", ["iid", "diagonal", "leverage", "dpp", "sobol"])
def test_importance_weights_are_unbiased(nodes):
    def f(x):  # zero where the densities vanish, so that the quotient is bounded
        return x[:, 0] * np.exp(x[:, 0])

    kernel, distribution = (kb.Brownian(), stats.uniform(0, 1))
    found = [
        kb.quadrature(kernel, distribution, 6, nodes, "importance", random_state=seed).integrate(f)
        for seed in range(144)
    ]
    assert abs(np.mean(found) - 1.0) < 4 * np.std(found) / 12


@pytest.mark.parametrize("nodes", ["iid", "diagonal", "leverage", "dpp"])
def test_importance_weights_are_unbiased_for_a_weighted_sample_too(nodes):
    rng = np.random.default_rng(0)
    sample = kb.MeanEmbedding(rng.uniform(0.2, 1.0, size=(12, 1)), rng.uniform(0.5, 1.5, size=12), kb.Gaussian())
    truth = sample.normalise().expect(lambda x: np.exp(2 * x[:, 0]))
    found = [
        kb.quadrature(kb.Brownian(), sample, 7, nodes, "importance", random_state=seed).integrate(
            lambda x: np.exp(2 * x[:, 0])
        )
        for seed in range(64)
    ]
    assert abs(np.mean(found) - truth) < 4 * np.std(found) / 8
    assert np.std(found) > 1e-3


def test_nodes_far_out_in_the_tails_are_counted_in_full():
    for far in (20.0, 30.0):
        rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), nodes=[[0.0], [far]], weights="uniform")
        brute = oracle.worst_case_error(kb.Gaussian(1.0), rule.points, rule.weights, *oracle.rule_of("normal"))
        assert rule.worst_case_error == pytest.approx(brute, rel=1e-6)


def test_weights_are_no_larger_than_rounding_allows_and_small_with_a_penalty():
    X = np.random.default_rng(0).normal(size=(40, 1))
    rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), nodes=X)
    assert 1e-16 * rule.summary()["given"]["sum_abs"] < rule.worst_case_error
    assert rule.integrate(lambda x: np.cos(x[:, 0])) == pytest.approx(np.exp(-0.5), abs=1e-4)
    careful = kb.quadrature(kb.Gaussian(1.0), stats.norm(), nodes=X, reg=1e-6)
    noisy = np.cos(X[:, 0]) + 1e-3 * np.random.default_rng(1).normal(size=40)
    assert careful.integrate(noisy) == pytest.approx(np.exp(-0.5), abs=0.02)
    assert abs(rule.integrate(noisy)) > 100.0  # each value counts for much more than itself
    assert np.abs(careful.weights).sum() < 10.0


def test_a_node_where_the_kernel_is_zero_can_take_the_rest():
    rule = kb.quadrature(kb.Brownian(), stats.uniform(), nodes=[[0.0], [0.5], [0.9]], weights="normalised")
    K = kb.Brownian().gram(rule.points) + 1e-10 * np.eye(3)
    mu = kb.AnalyticEmbedding(stats.uniform(), kb.Brownian())
    assert np.allclose(rule.weights, oracle.normalised_weights(K, mu(rule.points)), atol=1e-6)
    alone = kb.quadrature(kb.Brownian(), stats.uniform(), nodes=[[0.0]], weights="normalised")
    assert alone.weights == 1.0
    with pytest.raises(ValueError, match="two nodes"):
        alone.integrate([1.0], return_std=True)


def test_a_process_after_nodes_that_repeat():
    rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), nodes=[[0.0], [0.0], [1.0], [1.0]])
    more = rule.extend(4, nodes="dpp")
    assert len(np.unique(more.points, axis=0)) == 6
    assert more.density is None


def test_many_leverage_nodes_of_a_smooth_kernel():
    rule = kb.quadrature(kb.PeriodicSobolev(2), stats.uniform(), 150, random_state=0)
    assert np.allclose(rule.density, 1.0, rtol=1e-6)


def test_a_greedy_node_is_the_best_of_all_candidates():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(60, 2))
    rule = kb.quadrature(kb.Gaussian(0.8), pool, 4, nodes="greedy")
    for step in (2, 3):
        before = rule.points[:step]
        errors = [
            kb.quadrature(kb.Gaussian(0.8), pool, nodes=np.concatenate([before, z[None]])).worst_case_error
            for z in pool
        ]
        assert np.array_equal(rule.points[step], pool[int(np.argmin(errors))])


@pytest.mark.parametrize("nodes", NODES)
@pytest.mark.parametrize(
    "distribution", [stats.norm(), stats.gamma(3.0), kb.Mixture([stats.norm(-2, 1), stats.norm(2, 1)])]
)
def test_nodes_can_be_added(nodes, distribution, monkeypatch):
    monkeypatch.setattr(_source, "_STAND_IN", 1024)  # for the gamma distribution; that many will do
    rule = kb.quadrature(kb.Gaussian(0.7), distribution, 10, nodes, random_state=0)
    more = rule.extend(6)
    assert np.array_equal(more.points[:10], rule.points)
    assert len(np.unique(more.points, axis=0)) == 16
    assert more.worst_case_error < rule.worst_case_error
    if nodes in ("sobol", "halton", "wide"):
        whole = kb.quadrature(kb.Gaussian(0.7), distribution, 16, nodes, random_state=0)
        assert np.allclose(whole.points, more.points)
    again = kb.quadrature(kb.Gaussian(0.7), distribution, 10, nodes, random_state=0)
    assert np.array_equal(again.weights, rule.weights)


def test_nodes_are_added_until_the_error_is_small_enough():
    rule = kb.quadrature(kb.PeriodicSobolev(2), stats.uniform(), 5, "halton", random_state=0)
    better = rule.extend(4, tol=1e-3)
    assert better.worst_case_error <= 1e-3 < better.keep(np.arange(len(better) - 4)).worst_case_error
    with pytest.warns(kb.QuadratureWarning, match="with 12 nodes the worst-case error is"):
        rule.extend(4, tol=1e-6, max_n=12)
    assert rule.extend(3, tol=1.0) is rule
    with pytest.raises(ValueError, match="max_n is the limit"):
        rule.extend(3, max_n=12)
    with pytest.raises(ValueError, match="can be added once"):
        rule.extend(1, tol=1e-3, nodes=[[0.5]])


def test_other_nodes_and_some_of_the_nodes():
    rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), nodes=[[-1.0], [0.0], [1.0]])
    assert rule.nodes == "given"
    with pytest.raises(ValueError, match="say how to choose more"):
        rule.extend(2)
    more = rule.extend(3, nodes="greedy").extend(1, nodes=[[2.5]])
    assert more.points[-1] == 2.5
    assert more.nodes == "given, greedy, given"
    kept = more.keep([0, 2, 6])
    assert np.array_equal(kept.points, more.points[[0, 2, 6]])
    direct = kb.quadrature(kb.Gaussian(1.0), stats.norm(), nodes=kept.points)
    assert np.allclose(kept.weights, direct.weights)
    other = rule.with_kernel(kb.Gaussian(2.0))
    assert np.allclose(other.weights, kb.quadrature(kb.Gaussian(2.0), stats.norm(), nodes=rule.points).weights)


def test_samples_embeddings_and_unknown_integrals():
    rng = np.random.default_rng(0)
    sample = rng.gamma(2.0, size=(500, 1))
    by_sample = kb.quadrature(kb.Gaussian(0.5), sample, 12, "greedy")
    assert by_sample.origin == "the sample of 500 points"
    target = kb.MeanEmbedding(sample, kernel=kb.Gaussian(0.5))
    assert by_sample.embedding.distance(target) == pytest.approx(by_sample.worst_case_error, rel=1e-5)
    weights = np.linspace(0.0, 1.0, 500)
    heavy = kb.quadrature(kb.Gaussian(0.5), kb.MeanEmbedding(sample, weights, kb.Gaussian(1.0)), 30, "greedy")
    assert heavy.integrate(lambda x: np.sin(x[:, 0])) == pytest.approx(
        weights @ np.sin(sample[:, 0]) / weights.sum(), abs=1e-4
    )
    stood_in = kb.quadrature(kb.Gaussian(0.5), stats.gamma(2.0), 25, "leverage", random_state=0)
    assert 0 < stood_in.embedding_error < 1e-2
    assert by_sample.embedding_error == 0.0
    mean, std = stood_in.integrate(lambda x: np.exp(-x[:, 0]), return_std=True)
    assert abs(mean - 0.25) < 3 * std < 0.05
    dirichlet = kb.quadrature(kb.Gaussian(0.3), stats.dirichlet([1.0, 2.0, 3.0]), 30, "greedy", random_state=0)
    assert dirichlet.integrate(lambda x: x[:, 0]) == pytest.approx(1 / 6, abs=5e-3)


def test_products_of_kernels_on_columns_have_closed_forms():
    kernel = kb.Matern(2.5, lengthscale=0.5).on(0) * kb.Gaussian(0.7).on(1)
    distribution = [stats.uniform(0, 2), stats.norm(1, 0.5)]
    found = kb.quadrature(kernel, distribution, 30, "sobol", random_state=0)
    assert found.origin == "closed form"
    x, w = np.polynomial.legendre.leggauss(80)
    z, v = np.polynomial.hermite_e.hermegauss(40)
    grid = np.stack(np.meshgrid(x + 1.0, 1.0 + 0.5 * z, indexing="ij"), -1).reshape(-1, 2)
    mass = np.outer(w / 2.0, v / v.sum()).ravel()
    embedding = kb.AnalyticEmbedding(distribution, kernel)
    assert np.allclose(embedding(found.points), kernel.gram(found.points, grid) @ mass, atol=1e-8)
    assert embedding.norm() ** 2 == pytest.approx(mass @ kernel.gram(grid) @ mass, rel=1e-6)
    with pytest.raises(kb.NoClosedFormError):
        kb.AnalyticEmbedding(distribution, kb.Gaussian().on(0) * kb.Gaussian().on(0))
    with pytest.raises(kb.NoClosedFormError):
        kb.AnalyticEmbedding(stats.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]]), kernel)


def test_a_kernel_that_is_far_too_smooth_gets_a_large_scale():
    rule = kb.quadrature(kb.Gaussian(1.0), stats.uniform(0, 1), 30, "sobol", random_state=0)
    with pytest.warns(kb.QuadratureWarning, match="too smooth"):
        mean, std = rule.integrate(lambda x: np.where(np.abs(x[:, 0] - 0.4) < 0.2, 1.0, 0.0), return_std=True)
    assert abs(mean - 0.4) < 3 * std
    smooth = rule.integrate(lambda x: np.exp(x[:, 0]), return_std=True)[1]
    assert smooth < 1e-4 * std


def test_saved_and_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(_source, "_STAND_IN", 1024)
    rule = kb.quadrature(kb.Gaussian(0.6), [stats.norm(), stats.gamma(2.0)], 15, "sobol", random_state=0)
    kb.save(rule, tmp_path / "rule.npz")
    loaded = kb.load(tmp_path / "rule.npz")
    f = np.cos(rule.points[:, 0])
    assert loaded.integrate(f, return_std=True) == pytest.approx(rule.integrate(f, return_std=True), rel=1e-6)
    assert loaded.scale(f) == pytest.approx(float(rule.scale(f)), rel=1e-6)
    assert repr(loaded) == repr(rule)
    with pytest.raises(ValueError, match="pass distribution="):
        loaded.extend(3)
    more = loaded.extend(3, distribution=[stats.norm(), stats.gamma(2.0)])
    assert np.allclose(more.points, rule.extend(3).points)


def test_summary_and_table(tmp_path):
    rule = kb.quadrature(None, [stats.norm(), stats.norm()], 12, "halton", random_state=0)
    assert rule.summary()["halton"]["n"] == 12
    rule.to_csv(tmp_path / "rule.csv")
    header, *lines = (tmp_path / "rule.csv").read_text().splitlines()
    assert (header, len(lines)) == ("x0,x1,weight", 12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": None}, "n, the number of nodes"),
        ({"n": 0}, "n must be"),
        ({"nodes": "random"}, "nodes must be one of"),
        ({"weights": "best"}, "weights must be one of"),
        ({"reg": -1.0}, "reg must be"),
        ({"distribution": "normal"}, "distribution must be"),
        ({"distribution": stats.norm}, "its parameters set"),
        ({"distribution": [[np.nan]]}, "distribution"),
        ({"kernel": "gaussian"}, "kernel must be"),
        ({"kernel": kb.Gaussian([1.0, 2.0])}, "lengthscale has 2"),
        ({"features": 100}, "features must be"),
        ({"nodes": [[1.0, 2.0]], "n": None}, "nodes"),
        ({"nodes": [[1.0]], "n": 3}, "1 nodes are given"),
        ({"nodes": "herding", "weights": "importance"}, "needs nodes with a density"),
        ({"nodes": "greedy", "n": 400}, "cannot be chosen greedily"),
        ({"nodes": "sobol", "distribution": np.zeros((5, 1)) + np.arange(5)[:, None]}, "quantiles"),
        ({"distribution": kb.MeanEmbedding([0.0, 1.0], [2.0, -1.0], kb.Gaussian())}, "negative weights"),
    ],
)
def test_bad_input(arguments, said):
    given = {"kernel": kb.Gaussian(1.0), "distribution": stats.norm(), "n": 5, **arguments}
    with pytest.raises(ValueError, match=said):
        kb.quadrature(**given)


def test_functions_that_are_not():
    rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), 5, "sobol", random_state=0)
    with pytest.raises(TypeError, match="all 5 nodes at once"):
        rule.integrate(lambda x: float(x))
    with pytest.raises(ValueError, match="value for each of 5 nodes"):
        rule.integrate([1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        rule.integrate(lambda x: x[:, 0] * np.nan)
    assert rule.integrate(lambda x: x**2) == rule.integrate(lambda x: x[:, 0] ** 2)


def test_greedy_nodes_that_end_by_rounding_are_kept():
    rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), 10, nodes="greedy")
    with pytest.warns(kb.QuadratureWarning, match="above tol=1e-09: before there are"):
        far = rule.extend(5, tol=1e-9)
    with pytest.warns(kb.QuadratureWarning, match="nodes were added and not 100"):
        longer = rule.extend(100)
    assert 10 < len(far) == len(longer) < 110
    assert np.array_equal(longer.points[:10], rule.points)
    with pytest.warns(kb.QuadratureWarning, match="0 nodes were added and not 5"):
        assert len(longer.extend(5)) == len(longer)


def test_a_loaded_rule_with_its_distribution(tmp_path):
    rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), 8, nodes="sobol", random_state=0)
    kb.save(rule, tmp_path / "rule.npz")
    loaded = kb.load(tmp_path / "rule.npz")
    assert np.array_equal(loaded.keep([0, 2], distribution=stats.norm()).weights, rule.keep([0, 2]).weights)
    other = kb.Gaussian(0.5)
    assert np.array_equal(loaded.with_kernel(other, distribution=stats.norm()).weights, rule.with_kernel(other).weights)
    with pytest.raises(ValueError, match="2 columns where the nodes have 1"):
        loaded.keep([0], distribution=[stats.norm()] * 2)


@pytest.mark.parametrize("rows", [[8], [-9], [0.5], [[0]]])
def test_rows_that_are_not_there(rows):
    with pytest.raises(ValueError, match="rows must be numbers of nodes from 0 to 7"):
        kb.quadrature(kb.Gaussian(1.0), stats.norm(), 8, nodes="sobol").keep(rows)


def test_no_rows():
    with pytest.raises(ValueError, match="no node would be kept"):
        kb.quadrature(kb.Gaussian(1.0), stats.norm(), 8, nodes="sobol").keep([])


def test_expansions_say_what_they_are():
    assert repr(kb.mercer(kb.Gaussian(1.0), stats.norm())).startswith("MercerExpansion(Gaussian(lengthscale=1.), 1")
    sample = np.random.default_rng(0).normal(size=(50, 1))
    assert re.fullmatch(r"SampledSpectrum\(.*\d+ terms from 50 points\)", repr(kb.mercer(kb.Gaussian(1.0), sample)))

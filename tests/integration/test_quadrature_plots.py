"""Figures of quadrature show the numbers they are drawn from."""

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes import plotting


def line(ax, label):
    return next(found for found in ax.lines if found.get_label() == label).get_xydata().T


class TestNodes:
    def test_stems_of_one_column(self):
        rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), 12, nodes="dpp", random_state=0)
        (ax,) = rule.plot().axes
        drawn = [line(ax, "weight")]
        if (rule.weights < 0).any():
            drawn.append(line(ax, "negative weight"))
        x, w = np.concatenate(drawn, axis=1)
        order = np.argsort(rule.points[:, 0])
        np.testing.assert_allclose(x[np.argsort(x)], rule.points[order, 0])
        np.testing.assert_allclose(w[np.argsort(x)], rule.weights[order])
        assert f"12 nodes by dpp, optimal weights, worst-case error {rule.worst_case_error:.2g}" in ax.get_title()

    def test_areas_in_the_plane(self):
        sample = np.random.default_rng(0).normal(size=(300, 3))
        rule = kb.quadrature(kb.Gaussian(1.0), sample, 20, nodes="greedy", random_state=0)
        (ax,) = plotting.quadrature_nodes(rule).axes
        marks = [part for part in ax.collections if len(part.get_offsets()) and len(part.get_sizes())]
        where = np.concatenate([part.get_offsets() for part in marks])
        areas = np.concatenate([part.get_sizes() for part in marks])
        sizes = np.abs(rule.weights)[np.argsort(rule.points[:, 0])]
        kept = sizes > 0.02 * sizes.max()
        drawn = areas[np.argsort(where[:, 0])]
        np.testing.assert_allclose((drawn / drawn.max())[kept], (sizes / sizes.max())[kept])
        assert "1 more column" in ax.get_ylabel()

    def test_large_weights_are_told(self):
        rule = kb.quadrature(kb.Gaussian(0.5), stats.norm(), 40, nodes="iid", random_state=0)
        assert "large weights" in rule.plot().axes[0].get_title()

    def test_a_rule_that_was_loaded(self, tmp_path):
        rule = kb.quadrature(kb.Gaussian(1.0), stats.norm(), 8, nodes="sobol", random_state=0)
        kb.save(rule, tmp_path / "rule.npz")
        (ax,) = kb.load(tmp_path / "rule.npz").plot().axes
        np.testing.assert_allclose(np.sort(line(ax, "weight")[0]), np.sort(rule.points[rule.weights >= 0, 0]))


class TestIntegral:
    def test_history_with_its_band(self):
        with pytest.warns(kb.QuadratureWarning, match="above tol"):
            found = kb.integrate(lambda x: np.abs(x[:, 0]), stats.norm(), 8, tol=1e-9, max_n=18, random_state=0)
        left, right = found.plot(truth=0.8).axes
        n, mean = line(left, "integral")
        np.testing.assert_allclose(n, [row[0] for row in found.history])
        np.testing.assert_allclose(mean, [row[1] for row in found.history])
        corners = left.collections[0].get_paths()[0].vertices
        last = corners[corners[:, 0] == n[-1], 1]
        np.testing.assert_allclose(np.ptp(last), 2 * 1.96 * found.std())
        np.testing.assert_allclose(line(left, "truth")[1], 0.8)
        x, curve = line(right, "what is integrated")
        np.testing.assert_allclose(
            np.interp(found.rule.points[:, 0], x, curve), found.values, atol=0.05 * np.ptp(found.values)
        )

    def test_the_process_between_nodes(self):
        """By the formulas of a Gaussian process about the constant that suits the values best."""
        rule = kb.quadrature(kb.Matern(1.5), stats.norm(), 12, nodes="sobol", weights="normalised", random_state=0)
        values, grid = np.sin(2 * rule.points[:, 0]), np.linspace(-3, 3, 7)[:, None]
        mean, sd = rule._between(values, grid)
        inverse, across = np.linalg.inv(rule.kernel.gram(rule.points)), rule.kernel.gram(grid, rule.points)
        constant = inverse.sum(0) @ values / inverse.sum()
        np.testing.assert_allclose(mean, constant + across @ inverse @ (values - constant), atol=1e-6)
        np.testing.assert_allclose(sd**2, 1.0 - np.diag(across @ inverse @ across.T), atol=1e-6)

    def test_one_value(self):
        found = kb.integrate(lambda x: np.cos(x[:, 0]), stats.uniform(0, 1), 10, random_state=0)
        left, _ = found.plot().axes
        assert left.get_xticklabels()[0].get_text() == "10 evaluations"
        assert left.get_title().endswith(", 10 evaluations")

    def test_each_node_left_out(self):
        """Predictions are those of a process through all other nodes, about a constant that is not known."""
        found = kb.integrate(
            lambda x: np.cos(2 * x[:, 0]) + x[:, 1], [stats.norm(), stats.uniform()], 24, random_state=0
        )
        _, ax = found.plot().axes
        shown = [part.get_xydata() for part in ax.lines if part.get_label() in ("nodes", "outside of their 95 %")]
        predicted, values = np.concatenate(shown).T
        rule, i = found.rule, 5
        others = np.arange(24) != i
        K = rule.kernel.gram(rule.points)
        K = K + 24 * rule.reg * np.eye(24)
        solve = np.linalg.solve(K[np.ix_(others, others)], np.column_stack([np.ones(23), found.values[others]]))
        constant = solve[:, 1].sum() / solve[:, 0].sum()
        wanted = constant + K[i, others] @ (solve[:, 1] - constant * solve[:, 0])
        drawn = predicted[np.argmin(np.abs(values - found.values[i]))]
        assert drawn == pytest.approx(wanted, abs=1e-5)

    def test_names_and_several_integrals(self):
        def both(rate, start):
            return {"end": rate + start, "square": rate**2}

        over = [stats.norm(), stats.norm()]
        found = kb.integrate(both, over, 12, names=["rate", "start"], vectorised=False, random_state=0)
        axes = found.plot(truth=[0.0, 1.0]).axes
        assert len(axes) == 4
        assert axes[2].get_title().startswith("square: ")

    @pytest.mark.parametrize(
        ("count", "truth", "message"),
        [(1, [1.0, 2.0], "truth has 2 numbers where there are 1"), (7, None, "7 integrals are too many")],
    )
    def test_what_is_refused(self, count, truth, message):
        found = kb.integrate(lambda x: x ** np.arange(1, count + 1), stats.norm(), 8, random_state=0)
        with pytest.raises(ValueError, match=message):
            found.plot(truth)

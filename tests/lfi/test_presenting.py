"""What a person sees of a posterior: figures, the predictive check, other libraries' forms."""

import sys
import types
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes import plotting
from kernelbayes.lfi._law import Law
from kernelbayes.lfi._posterior import ParameterPosterior
from kernelbayes.plotting._marginals import heights, marginals, plane


class Known(Law):
    """A normal distribution of the Gaussian coordinates."""

    def __init__(self, mean, cov):
        self.normal = stats.multivariate_normal(mean, cov)

    def sample(self, n, rng):
        return np.reshape(self.normal.rvs(n, random_state=rng), (n, -1))

    def herd(self, n, rng):
        return self.sample(n, rng)

    def density(self, z):
        return np.atleast_1d(self.normal.pdf(z))


def posterior_of(prior, mean=None, cov=None, observed=(0.0,), scales=None):
    """A posterior that is known exactly in Gaussian coordinates; by default it is the prior."""
    d = prior.dimension
    law = Known(np.zeros(d) if mean is None else mean, np.eye(d) if cov is None else cov)
    observed = np.array(observed, dtype=float)
    outputs = np.random.default_rng(0).normal(size=(50, len(observed)))
    names = tuple(f"s{i}" for i in range(len(observed)))
    parameters = prior.sample(50, random_state=0)
    return ParameterPosterior(
        law,
        prior,
        observed,
        parameters,
        outputs,
        method="known",
        settings={},
        statistics=names,
        ess=50.0,
        scales=scales,
    )


class TestMarginals:
    def test_a_density_does_not_fall_off_at_the_edge_of_the_support(self):
        (own,) = marginals(posterior_of(kb.Prior(p=(0, 2))), None)
        inside = (own.grid > 0) & (own.grid < 2)
        np.testing.assert_allclose(own.density()[inside], 0.5, atol=0.06)  # half of that at the ends without reflection
        assert own.limits == (0.0, 2.0)

    def test_of_a_normal(self):
        (own,) = marginals(posterior_of(kb.Prior(p=stats.norm(3, 2)), [0.5], [[0.25]]), None)
        exact = stats.norm(4, 1).pdf(own.grid)
        assert np.abs(own.density() - exact).max() < 0.03
        np.testing.assert_allclose(own.prior(own.grid), stats.norm(3, 2).pdf(own.grid))

    def test_orders_of_magnitude_are_shown_as_logarithms(self):
        (own,) = marginals(posterior_of(kb.Prior(p=stats.lognorm(2.0, scale=5.0))), None)
        assert own.log
        exact = stats.norm(np.log(5.0), 2.0).pdf(own.grid)
        assert np.abs(own.density() - exact).max() < 0.02
        np.testing.assert_allclose(own.prior(own.grid), exact)

    @pytest.mark.parametrize("prior", [stats.norm(100, 1), stats.expon(), stats.uniform(0, 1), stats.norm(0, 1)])
    def test_others_are_not(self, prior):
        (own,) = marginals(posterior_of(kb.Prior(p=prior)), None)
        assert not own.log

    def test_whole_numbers_are_counted(self):
        (own,) = marginals(posterior_of(kb.Prior(k=stats.poisson(4))), None)
        assert own.whole
        np.testing.assert_allclose(own.density(), stats.poisson(4).pmf(own.grid), atol=0.03)

    def test_the_truth_is_on_the_axis_wherever_it_is(self):
        (own,) = marginals(posterior_of(kb.Prior(p=stats.norm())), np.array([9.0]))
        assert own.limits[0] < -2 < 9.0 < own.limits[1]

    def test_repeated_draws_are_smoothed_as_the_few_points_they_are(self):
        posterior = posterior_of(kb.Prior(p=stats.norm()))
        posterior.__dict__["_draws_cache"] = np.repeat([[-1.0], [-0.5], [0.0], [0.6], [1.0]], 800, axis=0)
        (own,) = marginals(posterior, None)
        between = own.density()[np.abs(own.grid) < 0.9]
        assert between.min() > 0.7 * between.max()  # one hump, not five spikes
        assert own.density()[[0, -1]].max() < 0.3 * between.max()  # and not cut off

    @pytest.mark.parametrize("r", [0.0, 0.9])
    def test_contours_hold_what_they_say(self, r):
        cov = [[1.0, r], [r, 1.0]]
        across, up = marginals(posterior_of(kb.Prior(a=stats.norm(), b=stats.norm()), cov=cov), None)
        density = plane(across, up)
        fresh = stats.multivariate_normal([0, 0], cov).rvs(20_000, random_state=1)
        column = np.abs(fresh[:, :1] - across.grid).argmin(1)
        row = np.abs(fresh[:, 1:] - up.grid).argmin(1)
        for share, height in zip((0.9, 0.5), heights(density, (0.9, 0.5)), strict=True):
            assert (density[row, column] >= height).mean() == pytest.approx(share, abs=0.05)


class TestPairs:
    @pytest.mark.parametrize("d", [1, 2, 4])
    def test_a_panel_for_each_parameter_and_pair(self, d):
        prior = kb.Prior({f"p{i}": (0, 1) for i in range(d)})
        figure = posterior_of(prior).plot()
        assert len(figure.axes) == d * (d + 1) // 2
        assert [ax.get_xlabel() for ax in figure.axes if ax.get_xlabel()] == list(prior.names)
        assert [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()] == list(prior.names[1:])

    def test_legend_says_what_is_there(self):
        posterior = posterior_of(kb.Prior(a=(0, 1), b=stats.norm()))

        def words(figure):
            return [text.get_text() for text in figure.legends[0].get_texts()]

        contours = "posterior; contours 50 and 90 %"
        assert words(posterior.plot({"a": 0.5, "b": 0.0})) == [contours, "prior", "90 % interval", "truth"]
        assert words(posterior.plot(prior=False)) == [contours, "90 % interval"]

    def test_the_truth_is_marked_where_it_is(self):
        figure = posterior_of(kb.Prior(a=(0, 1), b=(0, 1))).plot({"a": 0.25, "b": 0.75})
        below = figure.axes[1]
        crosses = [line.get_xydata() for line in below.lines if line.get_marker() == "x"]
        np.testing.assert_array_equal(crosses, [[[0.25, 0.75]]])

    def test_the_interval_is_the_posteriors(self):
        posterior = posterior_of(kb.Prior(a=(0, 1)))
        bars = [line.get_xdata() for line in posterior.plot().axes[0].lines if line.get_linewidth() == 3]
        np.testing.assert_array_equal(bars[0], posterior.interval(0.9)[:, 0])

    def test_many_parameters_are_shown_one_by_one(self):
        figure = posterior_of(kb.Prior({f"p{i}": (0, 1) for i in range(9)})).plot()
        assert len(figure.axes) == 9

    def test_all_kinds_of_priors_can_be_drawn(self, tmp_path):
        prior = kb.Prior(
            count=stats.poisson(3),
            wide=stats.lognorm(3.0),
            pair=stats.multivariate_normal([0, 1], [[1, 0.5], [0.5, 1]]),
            spiky=stats.gamma(0.1),
        )
        posterior_of(prior).plot(prior.from_gaussian(np.zeros((1, 5)))[0]).savefig(tmp_path / "pairs.png")
        sampled = kb.Prior(sampler=lambda n, rng: rng.uniform(0, 1, (n, 2)), names=["u", "v"])
        posterior_of(sampled, cov=0.01 * np.eye(2)).plot().savefig(tmp_path / "sampled.png")
        assert min(path.stat().st_size for path in tmp_path.iterdir()) > 20_000

    def test_a_posterior_of_one_point_can_be_drawn(self, tmp_path):
        posterior = posterior_of(kb.Prior(a=(0, 1), b=(0, 1)))
        posterior.__dict__["_draws_cache"] = np.full((4000, 2), 0.3)
        posterior.plot().savefig(tmp_path / "point.png")


class TestRelevance:
    def test_bars(self):
        posterior = posterior_of(kb.Prior(a=(0, 1)), observed=[0.0, 0.0], scales={"s0": 4.0, "s1": 0.1})
        (ax,) = plotting.relevance(posterior).axes
        table = posterior.relevance()
        assert [label.get_text() for label in ax.get_yticklabels()] == ["s1", "s0"]
        assert [bar.get_width() for bar in ax.patches] == [table["s1"]["relevance"], table["s0"]["relevance"]]

    def test_the_legend_lies_over_no_bar(self):
        posterior = posterior_of(kb.Prior(a=(0, 1)), observed=[0.0, 0.0], scales={"s0": 0.1, "s1": 0.1})
        figure = plotting.relevance(posterior)
        figure.canvas.draw()
        (ax,), shown = figure.axes, [*figure.legends, *filter(None, [figure.axes[0].get_legend()])]
        assert len(shown) == 1
        legend = shown[0].get_window_extent()
        assert not any(bar.get_window_extent().overlaps(legend) for bar in ax.patches)

    def test_without_scales(self):
        with pytest.raises(ValueError, match="learns no scales"):
            plotting.relevance(posterior_of(kb.Prior(a=(0, 1))))
        with pytest.raises(ValueError, match="compared on one scale"):
            plotting.relevance(posterior_of(kb.Prior(a=(0, 1)), scales={"all outputs": 1.0}))


def check_of(outputs, observed, names=None):
    outputs, observed = np.asarray(outputs, dtype=float), np.asarray(observed, dtype=float)
    names = names or tuple(f"s{j}" for j in range(observed.size))
    return kb.PredictiveCheck(observed, np.zeros((len(outputs), 1)), outputs, names, outputs)


class TestTails:
    def test_by_hand(self):
        check = check_of(np.tile(np.arange(1.0, 100.0)[:, None], (1, 4)), [50.0, 1000.0, 0.5, 5.0])
        np.testing.assert_allclose(check.tail, [1.0, 0.02, 0.02, 2 * 6 / 100])
        np.testing.assert_allclose(check.quantile, [0.5, 1.0, 0.0, 4.5 / 99])
        assert check.far.tolist() == [1, 2]
        assert "s1 = 1000 (simulated: 1 to 99), s2 = 0.5" in check.problems[0]

    def test_they_are_right_for_an_observation_like_the_simulations(self):
        rng = np.random.default_rng(0)
        tails = np.array([check_of(rng.normal(size=(99, 1)), rng.normal(size=1)).tail[0] for _ in range(3000)])
        assert (tails <= 0.1).mean() == pytest.approx(0.1, abs=0.017)  # three standard errors

    def test_few_simulations_and_a_long_way_off(self):
        rng = np.random.default_rng(0)
        check = check_of(rng.normal(size=(20, 2)), [0.1, 100.0])
        assert check.far.tolist() == [1]

    def test_statistics_that_never_change(self):
        check = check_of(np.ones((50, 2)), [1.0, 1.5])
        assert check.far.tolist() == [1]

    def test_summary(self):
        outputs = np.random.default_rng(0).normal(3, 2, (200, 1))
        row = check_of(outputs, [3.0], ("height",)).summary()["height"]
        assert (row["observed"], row["mean"], row["std"]) == (3.0, outputs.mean(), outputs.std())

    def test_a_series_is_judged_as_a_whole(self):
        rng = np.random.default_rng(0)
        simulated = rng.normal(size=(200, 100))
        fine, off = check_of(simulated, rng.normal(size=100)), check_of(simulated, 2 + rng.normal(size=100))
        assert fine.is_series
        assert fine.problems == ()
        assert "of the 100 observed values lie outside" in off.problems[0]
        assert len(off.summary()) == 10
        assert min(row["tail"] for row in off.summary().values()) == off.tail.min()


def spread_out(centre, width, rng):
    x = rng.normal(centre, width, 30)
    return {"mean": x.mean(), "sd": x.std()}


PRIOR = kb.Prior(centre=(-5, 5), width=(0.5, 3))


@pytest.fixture(scope="module")
def inferred():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.PosteriorWarning)
        return kb.infer(spread_out, PRIOR, {"mean": 1.0, "sd": 1.5}, 400, "rejection", random_state=0)


class TestCheck:
    def test_simulates_at_draws_of_the_posterior(self, inferred):
        check = inferred.predictive(200, random_state=3)
        drawn = {tuple(row) for row in inferred.parameters}
        assert {tuple(row.round(9)) for row in check.parameters} <= {tuple(np.round(row, 9)) for row in drawn}
        assert check.outputs.shape == (200, 2)
        assert check.problems == ()
        assert abs(check.outputs.mean(0) - [1.0, 1.5]).max() < 0.5
        again = inferred.predictive(200, random_state=3)
        np.testing.assert_array_equal(again.outputs, check.outputs)

    def test_says_what_the_simulator_cannot_do(self):
        with pytest.warns(kb.PosteriorWarning):
            posterior = kb.infer(spread_out, PRIOR, {"mean": 1.0, "sd": 9.0}, 200, "rejection", random_state=0)
        check = posterior.predictive(100, random_state=0)
        assert "sd = 9" in check.problems[0]
        assert "1 in the far tails" in repr(check)

    def test_statistics_are_matched_by_name(self, inferred):
        def turned(centre, width, rng):
            return dict(reversed(spread_out(centre, width, rng).items()))

        check = inferred.predictive(50, random_state=0, simulator=turned)
        np.testing.assert_array_equal(check.outputs, inferred.predictive(50, random_state=0).outputs)

    def test_needs_a_simulator(self, inferred, tmp_path):
        kb.save(inferred, tmp_path / "posterior.npz")
        loaded = kb.load(tmp_path / "posterior.npz")
        given = kb.infer(
            parameters=inferred.parameters,
            outputs=inferred.outputs,
            prior=PRIOR,
            observed=[1.0, 1.5],
            method="rejection",
            random_state=0,
        )
        for posterior in (loaded, given):
            with pytest.raises(ValueError, match="does not know its simulator"):
                posterior.predictive(10)
        assert len(loaded.predictive(10, simulator=spread_out).outputs) == 10

    def test_refuses_another_simulator(self, inferred):
        with pytest.raises(ValueError, match=r"simulator returns outputs of shape \(3,\)"):
            inferred.predictive(5, simulator=lambda centre, width: np.ones(3))
        with pytest.raises(ValueError, match="n must be"):
            inferred.predictive(0)

    def test_an_executor_that_was_shut_down(self):
        with ThreadPoolExecutor(1) as pool:
            posterior = kb.infer(
                lambda mu, rng: rng.normal(mu),
                kb.Prior(mu=(-5, 5)),
                1.0,
                60,
                "rejection",
                random_state=0,
                run=kb.Run(executor=pool),
            )
        with pytest.raises(ValueError, match=r"takes no more work.*; pass executor=None"):
            posterior.predictive(5)
        assert repr(posterior.predictive(5, executor=None)).startswith("PredictiveCheck(5 simulations, 1 statistic,")

    def test_failed_runs_are_left_out_and_counted(self, inferred):
        def fails(centre, width, rng):
            if rng.uniform() < 0.2:
                raise ArithmeticError("no convergence")
            return spread_out(centre, width, rng)

        with pytest.warns(kb.SimulationWarning, match="no convergence"):
            check = inferred.predictive(50, random_state=0, simulator=fails)
        assert check.failures > 0
        assert len(check.outputs) == 50 - check.failures

    def test_sets_are_compared_in_no_order(self, inferred):
        outputs = np.random.default_rng(0).normal(size=(60, 40))
        posterior = posterior_of(kb.Prior(mu=stats.norm()))
        posterior.outputs, posterior.observed = outputs, outputs[0]
        posterior.statistics = tuple(f"x{i}" for i in range(40))
        posterior.settings = {"epsilon_kernel": "iid"}
        check = posterior.predictive(20, random_state=0, simulator=lambda mu, rng: rng.normal(mu, 1, 40))
        assert not check.ordered
        np.testing.assert_array_equal(check.observed, np.sort(outputs[0]))
        assert (np.diff(check.outputs, axis=1) >= 0).all()
        assert check.plot().axes[0].get_xlabel() == "rank among the values"

    def test_figures(self, inferred):
        check = inferred.predictive(50, random_state=0)
        titles = [ax.get_title() for ax in check.plot().axes]
        assert titles == ["mean", "sd"]
        lines = [ax.lines[0].get_xdata()[0] for ax in check.plot().axes]
        assert lines == [1.0, 1.5]
        series = check_of(np.random.default_rng(0).normal(size=(30, 50, 2)), np.zeros((50, 2)))
        assert len(series.plot().axes) == 2


class TestCalibration:
    """Ranks that are known; no posterior is needed."""

    def calibration(self, ranks, names=None):
        ranks = np.asarray(ranks, dtype=float)
        names = names or tuple(f"p{i}" for i in range(ranks.shape[1]))
        return kb.Calibration(ranks, np.zeros_like(ranks), np.arange(len(ranks)), names, "prior")

    def shown(self, checked):
        """Heights of the bars, whether they are red, and the coverage, of each parameter."""
        from matplotlib.colors import to_rgb

        axes = checked.plot().axes
        bars = [ax for ax in axes if ax.get_xlabel() == "rank of the truth"]
        covers = [ax for ax in axes if ax.get_xlabel() == "mass of the interval"]
        heights = [[p.get_height() for p in ax.containers[0]] for ax in bars]
        red = [[to_rgb(p.get_facecolor()) == to_rgb(plotting.ACCENT) for p in ax.containers[0]] for ax in bars]
        return heights, red, [[line.get_xydata() for line in ax.lines] for ax in covers]

    def test_even_ranks_lie_in_the_bands(self):
        even = (np.arange(200) + 0.5) / 200
        heights, red, ((_, cover, outside),) = self.shown(self.calibration(even[:, None]))
        assert heights == [[10] * 20]
        assert not np.any(red)
        np.testing.assert_allclose(cover[:, 1], cover[:, 0], atol=0.006)
        assert np.isnan(outside[:, 1]).all()

    def test_posteriors_that_are_too_narrow_or_too_wide(self):
        rng = np.random.default_rng(0)
        ends, middle = rng.beta(0.4, 0.4, 300), rng.beta(4, 4, 300)
        heights, red, ((_, few, below), (_, many, above)) = self.shown(self.calibration(np.stack([ends, middle], 1)))
        assert red[0][0]
        assert red[0][-1]
        assert np.argmax(heights[1]) in range(6, 14)
        assert red[1][0]
        assert (few[:, 1] < few[:, 0])[10:40].all()
        assert (many[:, 1] > many[:, 0])[5:40].all()
        assert np.isfinite(below[20:30, 1]).all()
        assert np.isfinite(above[20:30, 1]).all()

    def test_coverage_is_the_share_of_truths_inside(self):
        ranks = np.array([0.04, 0.06, 0.3, 0.5, 0.5, 0.7, 0.8, 0.9, 0.94, 0.96] * 3)[:, None]
        _, _, ((_, cover, _),) = self.shown(self.calibration(ranks))
        at = dict(zip(cover[:, 0].round(2), cover[:, 1], strict=True))
        assert at[0.9] == pytest.approx(0.8)
        assert at[0.5] == pytest.approx(0.4)

    @pytest.mark.parametrize(("d", "panels"), [(1, 2), (3, 6), (4, 8), (6, 12)])
    def test_a_pair_of_panels_for_each_parameter(self, d, panels):
        ranks = np.random.default_rng(1).uniform(size=(60, d))
        axes = self.calibration(ranks).plot().axes
        assert len(axes) == panels
        assert [ax.get_title() for ax in axes if ax.get_title()] == [f"p{i}" for i in range(d)]

    def test_draws_what_calibrate_returns(self):
        prior = kb.Prior(mu=stats.norm(0, 2))
        theta = prior.design(150)
        x = theta + np.random.default_rng(0).normal(0, 0.5, theta.shape)
        given = {"parameters": theta, "outputs": x, "prior": prior, "observed": [0.5], "random_state": 0}
        checked = kb.calibrate(kb.infer(**given), 100)
        heights, _, _ = self.shown(checked)
        assert sum(heights[0]) == len(checked.ranks) > 90
        label = checked.plot().legends[0].get_texts()[0].get_text()
        assert label == f"{len(checked.ranks)} replicates around the prior"


class TestArviz:
    def test_groups(self, inferred):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of ArviZ, about its own future
            pytest.importorskip("arviz")
            data = inferred.to_arviz(200, random_state=0)
        found = np.stack([np.asarray(data["posterior"][name])[0] for name in PRIOR.names], axis=1)
        np.testing.assert_array_equal(found, inferred.sample(200, random_state=0))
        assert data["prior"]["centre"].dims == ("chain", "draw")
        assert list(np.asarray(data["observed_data"]["statistic"])) == ["mean", "sd"]
        assert list(np.asarray(data["observed_data"]["observed"])) == [1.0, 1.5]
        density = np.asarray(data["sample_stats"]["lp"])[0]
        np.testing.assert_allclose(density, np.log(inferred.density(found)))

    def test_both_forms_of_from_dict(self, inferred, monkeypatch):
        def old(posterior=None, *, sample_stats=None, prior=None, observed_data=None, coords=None, dims=None):
            return {
                "posterior": posterior,
                "prior": prior,
                "observed_data": observed_data,
                "sample_stats": sample_stats,
            }

        def new(data, *, coords=None, dims=None):
            return data

        made = []
        for from_dict in (old, new):
            monkeypatch.setitem(sys.modules, "arviz", types.SimpleNamespace(from_dict=from_dict))
            made.append(inferred.to_arviz(20, random_state=0))
        assert set(made[0]) == set(made[1]) == {"posterior", "prior", "observed_data", "sample_stats"}
        for group in made[0]:
            for name, values in made[0][group].items():
                np.testing.assert_array_equal(values, made[1][group][name])

    def test_without_it(self, inferred, monkeypatch):
        monkeypatch.setitem(sys.modules, "arviz", None)
        with pytest.raises(ImportError, match=r"pip install 'kernelbayes\[arviz\]'"):
            inferred.to_arviz(10)

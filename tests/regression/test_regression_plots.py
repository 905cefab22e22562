"""Figures of a regression through a mediator show the numbers they are drawn from."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import kernelbayes as kb
from kernelbayes import plotting


def fitted(columns=1, targets=1, n=60, seed=0):
    """A model with given kernels, so that nothing has to be learned."""
    rng = np.random.default_rng(seed)
    Y, Y_task = rng.uniform(-2, 2, (n, columns)), rng.uniform(-2, 2, (50, columns))
    X = Y + 0.2 * rng.normal(size=Y.shape)
    z = np.sin(Y_task[:, :1]) + np.arange(targets) * Y_task[:, -1:] + 0.1 * rng.normal(size=(50, targets))
    settings = {"noise": 0.05, "learn": None}
    model = kb.TaskTransformedGP(kb.Gaussian(1.0), kb.Gaussian(1.0), **settings)
    return model.fit(X, Y, Y_task, z[:, 0] if targets == 1 else z)


def line(ax, label):
    return next(found for found in ax.lines if found.get_label() == label).get_xydata().T


def band(ax):
    """Lower and upper edge of the band over its x."""
    corners = ax.collections[0].get_paths()[0].vertices
    xs = np.unique(corners[:, 0])
    edges = [[corners[corners[:, 0] == x, 1].min(), corners[corners[:, 0] == x, 1].max()] for x in xs]
    return xs, *np.array(edges).T


class TestFunctionBand:
    def test_mean_and_band_of_one_input(self):
        model = fitted()
        (ax,) = plotting.function_band(model, level=0.8, resolution=31).axes
        x, mean = line(ax, "mean")
        np.testing.assert_allclose([x[0], x[-1]], [model.X_.min(), model.X_.max()])
        wanted, std = model.predict(x[:, None], return_std=True)
        np.testing.assert_allclose(mean, wanted)
        _, low, high = band(ax)
        np.testing.assert_allclose(high - low, 2 * 1.2815515655 * std, rtol=1e-6)

    def test_others_are_held_at_their_medians(self):
        model = fitted(columns=3)
        axes = model.plot(resolution=15).axes
        assert len(axes) == 3
        for j, ax in enumerate(axes):
            x, mean = line(ax, "mean")
            at = np.tile(np.median(model.X_, axis=0), (15, 1))
            at[:, j] = x
            np.testing.assert_allclose(mean, model.predict(at))
            assert "others at their medians" in ax.get_xlabel()

    def test_points_given_set_the_range_and_what_is_held(self):
        model = fitted(columns=2)
        points = np.array([[-0.5, 1.0], [0.5, 1.0], [0.3, 1.2]])
        first, second = model.plot(points, resolution=9).axes
        assert first.get_xlim() == (-0.5, 0.5)
        x, mean = line(first, "mean")
        np.testing.assert_allclose(mean, model.predict(np.column_stack([x, np.full(9, 1.0)])))
        assert second.get_xlim() == (1.0, 1.2)

    def test_a_row_for_each_target(self):
        model = fitted(columns=2, targets=3)
        axes = np.reshape(model.plot(resolution=9).axes, (3, 2))
        at = np.column_stack([line(axes[0, 0], "mean")[0], np.full(9, np.median(model.X_[:, 1]))])
        drawn = np.array([line(ax, "mean")[1] for ax in axes[:, 0]])
        np.testing.assert_allclose(drawn, model.predict(at).T)

    def test_many_inputs_are_wrapped(self):
        figure = fitted(columns=4).plot(resolution=5)
        tops = {round(ax.get_subplotspec().rowspan.start) for ax in figure.axes}
        assert len(figure.axes) == 4
        assert tops == {0, 1}

    def test_an_input_that_does_not_vary_has_no_panel(self):
        model = fitted(columns=3)
        model.X_[:, 1] = 2.0
        vars(model).pop("_fit_cache", None)
        axes = model.plot(resolution=9, truth=lambda x: x[:, 2]).axes
        assert [ax.get_xlabel().split()[0] for ax in axes] == ["x0", "x2"]
        for ax, j in zip(axes, (0, 2), strict=True):
            x, mean = line(ax, "mean")
            at = np.tile(np.median(model.X_, axis=0), (9, 1))
            at[:, j] = x
            np.testing.assert_allclose(mean, model.predict(at))
            np.testing.assert_array_equal(line(ax, "truth")[1], at[:, 2])
            assert {segment[0][0] for segment in ax.collections[1].get_segments()} == set(model.X_[:, j])
        assert len(model.plot([[0.0, 2.0, 0.0]], resolution=5).axes) == 3  # all, if none varies

    def test_marks_fade_and_the_mean_is_dotted_where_nothing_is_known(self):
        model = fitted()
        model.X_[0] = 9.0  # a pair away from all others
        vars(model).pop("_fit_cache", None)
        ax = model.plot(np.linspace(-2, 9, 50)).axes[0]  # and no warning
        marks = ax.collections[1]
        place = np.array([segment[0][0] for segment in marks.get_segments()])
        alphas = marks.get_colors()[:, 3]
        known = model.mediation(place[:, None])
        assert known[place == 9.0] < 0.1
        assert alphas[place == 9.0] < 0.2 * alphas.max()
        assert np.corrcoef(alphas, known)[0, 1] > 0.99
        x, guess = line(ax, "mean, a guess")
        shares = model.mediation(x[:, None])
        np.testing.assert_array_equal(np.isfinite(guess), shares < 0.05)
        assert np.isfinite(guess).any()

    def test_truth_as_a_function_and_as_values(self):
        model = fitted()
        x, values = line(model.plot(truth=lambda x: np.cos(x[:, 0])).axes[0], "truth")
        np.testing.assert_allclose(values, np.cos(x))
        at = np.array([0.5, -0.5, 0.0])
        x, values = line(model.plot(at, truth=at**2).axes[0], "truth")
        np.testing.assert_array_equal(x, [-0.5, 0.0, 0.5])
        np.testing.assert_array_equal(values, [0.25, 0.0, 0.25])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"level": 95}, "level must lie between 0 and 1, got 95"),
            ({"resolution": 1}, "resolution must be at least 2"),
            ({"x": [[0.0, 1.0]]}, "x has 2 columns where 1 were expected"),
            ({"x": [0.0, 1.0], "truth": [1.0]}, "x has 2 rows but truth has 1"),
            ({"truth": [1.0]}, "truth is a function"),
        ],
    )
    def test_what_is_refused(self, options, message):
        with pytest.raises(ValueError, match=message):
            fitted().plot(**options)

    def test_not_fitted(self):
        for draw in (plotting.function_band, plotting.coverage):
            with pytest.raises(NotFittedError):
                draw(kb.TaskTransformedGP())


class TestCoverage:
    def test_shares_are_those_of_the_table(self):
        model = fitted()
        levels = [0.9, 0.5, 0.2]
        (ax,) = model.plot_coverage(levels=levels).axes
        x, share = line(ax, "share inside")
        np.testing.assert_array_equal(x, [0.2, 0.5, 0.9])
        table = model.coverage(x)
        np.testing.assert_allclose(share, [row["covered"] for row in table.values()])
        assert ax.get_title().startswith("50 targets")

    def test_a_line_for_each_of_a_few_targets(self):
        model = fitted(targets=2)
        (ax,) = model.plot_coverage(levels=[0.3, 0.6]).axes
        mean, std = model.left_out()
        away = np.abs(model.z_task_ - mean) / std
        for j in range(2):
            np.testing.assert_allclose(
                line(ax, f"z{j}")[1], [(away[:, j] < reach).mean() for reach in (0.38532, 0.84162)]
            )

    def test_levels_outside(self):
        with pytest.raises(ValueError, match="levels must lie between 0 and 1"):
            fitted().plot_coverage(levels=[0.5, 1.0])

"""Tracks: numbers against closed forms and plain sums, slicing, files, diagnostics, figures, and bad input."""

import pickle
import sys

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes._table import read_table
from kernelbayes.embeddings import _weighted

KERNEL = kb.Gaussian(1.0)
GRID = np.linspace(-9, 9, 3001)
CENTRES, WIDTHS = np.array([-1.0, 0.0, 2.5, 1.0]), np.array([0.5, 1.0, 0.8, 0.3])


def normals(**settings):
    """Normal distributions on a fine grid, one at each step."""
    weights = stats.norm.pdf(GRID, CENTRES[:, None], WIDTHS[:, None])
    return kb.Track(GRID, weights / weights.sum(1, keepdims=True), KERNEL, **settings)


def signed(steps=7, n=60, d=3, seed=0):
    """Signed weights on scattered points, with two missing observations."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(1.0, 1.0, (steps, n))
    weights /= weights.sum(1, keepdims=True)
    observed = np.ones(steps, dtype=bool)
    observed[[2, 3]] = False
    diagnostics = kb.filters.TrackDiagnostics.of(weights, observed=observed, novelty=np.where(observed, 0.4, np.nan))
    return kb.Track(
        rng.normal(size=(n, d)), weights, KERNEL, diagnostics, times=0.5 * np.arange(steps), names=list("abc")[:d]
    )


def test_normal_distributions_are_read_off_in_closed_form():
    track = normals()
    np.testing.assert_allclose(track.mean()[:, 0], CENTRES, atol=1e-10)
    np.testing.assert_allclose(track.std()[:, 0], WIDTHS, atol=1e-6)
    np.testing.assert_allclose(track.mode()[:, 0], CENTRES, atol=0.004)
    exact = stats.norm.ppf([[0.1], [0.9]], CENTRES, WIDTHS)
    np.testing.assert_allclose(track.interval(0.8)[:, :, 0], exact, atol=0.007)
    np.testing.assert_allclose(track.quantile(0.3)[:, 0], stats.norm.ppf(0.3, CENTRES, WIDTHS), atol=0.007)
    np.testing.assert_allclose(
        track.prob(0.0, 1.0), np.diff(stats.norm.cdf([[0.0], [1.0]], CENTRES, WIDTHS), axis=0)[0], atol=0.01
    )
    np.testing.assert_allclose(track.expect(lambda x: x[:, 0] ** 2), CENTRES**2 + WIDTHS**2, atol=1e-6)


def test_ranked_scores_of_normal_distributions_are_those_of_the_textbook():
    """Of a normal forecast (Gneiting and Raftery 2007, section 4.2): s (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi))."""
    track = normals()
    for truth in ([-1.0, 0.7, 2.0, 1.9], [3.0, -2.0, 2.5, 0.0]):
        z = (np.array(truth) - CENTRES) / WIDTHS
        exact = WIDTHS * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
        assert track.score(truth).crps[0] == pytest.approx(exact.mean(), abs=1e-3)


def test_ranked_score_outside_the_points_and_on_one_point():
    track = kb.Track([0.0, 1.0], [[1.0, 0.0], [0.5, 0.5]], KERNEL)
    # a point mass scores its distance; two halves at 0 and 1 score E|X - y| - E|X - X'| / 2
    assert track.score([-2.0, 3.0]).crps[0] == pytest.approx((2.0 + 2.5 - 0.25) / 2)
    alone = kb.Track([[4.0]], [[1.0]], KERNEL)
    assert alone.score([[1.0]]).crps[0] == pytest.approx(3.0)
    assert alone.score([[1.0]]).coverage[0] == 0.0


def test_score_counts_by_hand():
    track, rng = signed(), np.random.default_rng(1)
    truth = rng.normal(size=(7, 3))
    truth[4, 1] = np.nan
    score = track.score(truth, level=0.5)
    for j in range(3):
        known = ~np.isnan(truth[:, j])
        error = (track.weights @ track.points - truth)[known, j]
        assert score.rmse[j] == pytest.approx(np.sqrt((error**2).mean()))
        inside = [
            track[t].interval(0.5)[0, j] <= truth[t, j] <= track[t].interval(0.5)[1, j] for t in np.flatnonzero(known)
        ]
        assert score.coverage[j] == pytest.approx(np.mean(inside))
    assert score.mse == pytest.approx((score.rmse**2).sum())
    assert score.level == 0.5


def test_signed_weights_agree_with_the_embedding_of_each_step():
    track = signed()
    assert (track.weights < 0).any()
    for t, step in enumerate(track):
        np.testing.assert_allclose(track.mean()[t], step.mean(), atol=1e-12)
        np.testing.assert_allclose(track.cov()[t], step.cov(), atol=1e-12)
        np.testing.assert_allclose(track.std()[t], step.std(), rtol=1e-12)
        np.testing.assert_allclose(track.interval(0.9)[:, t], step.interval(0.9))
        np.testing.assert_array_equal(track.mode()[t], step.mode())
        assert track.prob(upper=0.2)[t] == pytest.approx(step.prob(upper=0.2))
    np.testing.assert_allclose(track.mean(), track.weights @ track.points)


def test_standard_deviations_are_those_of_the_functions_that_intervals_come_from():
    """About the mean, by quantiles on a fine grid of levels; and as usual where no weight is negative."""
    track, levels = signed(), (np.arange(20_000) + 0.5) / 20_000
    away = track.quantile(levels) - track.mean()
    np.testing.assert_allclose(track.std(), np.sqrt((away**2).mean(0)), rtol=1e-3)
    weights = np.random.default_rng(0).dirichlet(np.ones(60), 5)
    plain = kb.Track(1e4 + track.points, weights, KERNEL)
    expected = [np.cov(track.points.T, bias=True, aweights=w) for w in weights]
    np.testing.assert_allclose(plain.cov(), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(plain.std() ** 2, np.diagonal(plain.cov(), axis1=1, axis2=2), rtol=1e-9)
    # signed weights whose variance is negative
    odd = kb.Track([0.0, 1.0, 2.0, 3.0], [[0.3, 0.7, -0.25, 0.25], [-0.4, 0.9, 0.9, -0.4]], KERNEL)
    x, w = odd.points[:, 0], odd.weights[1]
    assert w @ (x - w @ x) ** 2 < 0
    assert (odd.std() > 0.4).all()


def test_equal_points_count_together_in_the_mode():
    track = kb.Track([[2.0], [1.0], [2.0]], [[0.3, 0.4, 0.3], [0.1, 0.8, 0.1]], KERNEL)
    np.testing.assert_array_equal(track.mode(), [[2.0], [1.0]])


def test_blocks_of_steps_change_nothing(monkeypatch):
    whole, truth = signed(), np.zeros((7, 3))

    def read(track):
        one = track.prob(lower=[0.1, -np.inf, -np.inf])
        return track.interval(0.9), one, track.score(truth).crps, track.std(), track.cov()

    expected = read(whole)
    monkeypatch.setattr(_weighted, "_BLOCK_ELEMENTS", 130)  # two steps at a time
    assert len(_weighted.blocks(7, 60)) == 4
    for a, b in zip(expected, read(signed()), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


def test_samples_follow_the_positive_weights():
    track = kb.Track([[0.0], [1.0], [2.0]], [[0.2, 0.8, 0.0], [0.6, -0.2, 0.6]], KERNEL)
    draws = track.sample(4000, random_state=0)
    assert draws.shape == (2, 4000, 1)
    assert draws[0].mean() == pytest.approx(0.8, abs=0.03)
    assert set(np.unique(draws[1])) == {0.0, 2.0}
    np.testing.assert_array_equal(draws, track.sample(4000, random_state=0))


def test_decoded_numbers_are_kept_and_protected():
    track = normals()
    assert track.mean() is track.mean()
    with pytest.raises(ValueError, match="read-only"):
        track.mean()[0] = 1.0


def test_slices_and_steps():
    track = signed()
    part = track[1:6:2]
    assert len(track) == 7
    assert len(part) == 3
    np.testing.assert_allclose(part.mean(), track.mean()[1:6:2], rtol=1e-12)  # sums may be blocked in another way
    np.testing.assert_array_equal(part.times, [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(part.diagnostics.observed, [True, False, True])
    assert part.names == track.names
    assert isinstance(track[-1], kb.MeanEmbedding)
    np.testing.assert_array_equal(track[-1].weights, track.weights[6])
    np.testing.assert_array_equal(track[np.int64(2)].weights, track.embedding(2).weights)
    assert len(list(track)) == 7
    with pytest.raises(IndexError, match="no step 7 in a track of 7"):
        track[7]
    with pytest.raises(ValueError, match="holds none of the 7 steps"):
        track[5:5]
    with pytest.raises(TypeError, match="a step or a slice"):
        track["a"]


def test_states_that_are_labels(tmp_path):
    rooms = np.array(["hall", "attic", "hall"])
    track = kb.Track(rooms, [[0.3, 0.4, 0.3], [0.0, 1.0, 0.0]], kb.Delta(), names=["room"])
    assert track.mode().tolist() == ["hall", "attic"]
    np.testing.assert_allclose(track.expect(lambda room: room == "hall"), [0.6, 0.0])
    assert track.sample(5, random_state=0)[1].tolist() == ["attic"] * 5
    assert str(track.summary()).splitlines()[0] == "2 steps, 2 with an observation; 3 points"
    with pytest.raises(ValueError, match="not vectors"):
        track.mean()
    with pytest.raises(ValueError, match="not vectors"):
        track.plot()
    track.to_csv(tmp_path / "rooms.csv")
    assert (tmp_path / "rooms.csv").read_text() == "time,room,observed\n0,hall,1\n1,attic,1\n"


# ----------------------------------------------------------------------------------------------- diagnostics


def test_diagnostics_of_a_good_track():
    diagnostics = signed().diagnostics
    assert diagnostics.ok
    assert diagnostics.problems == ()
    assert str(diagnostics).startswith("7 steps, 5 observed; total 1, ess ")
    assert "novelty 0.4" in str(diagnostics)


@pytest.mark.parametrize(
    ("field", "steps", "value", "message"),
    [
        ("novelty", [17], 3.0, "1 of 199 observations outside the training observations (first: step 17, novelty 3)"),
        ("total", range(4, 14), 0.1, "10 of 199 observations with weights that sum to little"),
        ("total", [4], 9.0, "1 of 199 observations with weights that sum to much more than one"),
        ("total", [4], np.nan, "numbers have overflowed"),
        ("ess", range(5, 15), 1.2, "10 of 200 steps resting on few effective points (first: step 5, 1.2)"),
        ("negative_mass", range(6, 16), 0.49, "10 of 200 steps with much negative mass (first: step 6, 49%)"),
    ],
)
def test_diagnostics_name_what_is_wrong(field, steps, value, message):
    fields = {
        "observed": np.arange(200) != 50,
        "total": np.full(200, 0.9),
        "ess": np.full(200, 30.0),
        "negative_mass": np.full(200, 0.2),
        "novelty": np.where(np.arange(200) == 50, np.nan, 0.5),
    }
    assert kb.filters.TrackDiagnostics(**fields).ok
    fields[field][list(steps)] = value
    diagnostics = kb.filters.TrackDiagnostics(**fields)
    assert not diagnostics.ok
    assert len(diagnostics.problems) == 1
    assert diagnostics.problems[0].startswith(message)
    assert "Beware: " + message in str(diagnostics)
    assert diagnostics[100:].ok


@pytest.mark.parametrize(("field", "value"), [("total", 0.1), ("ess", 1.2), ("negative_mass", 0.49), ("novelty", 1.2)])
def test_what_is_odd_now_and_then_is_no_problem(field, value):
    """A hundredth of the steps of good tracks; but one step alone is judged alone."""
    usual = {"total": 0.9, "ess": 30.0, "negative_mass": 0.2, "novelty": 0.5}
    fields = {name: np.full(1000, number) for name, number in usual.items()}
    diagnostics = kb.filters.TrackDiagnostics(np.ones(1000, dtype=bool), **fields)
    fields[field][:15] = value
    assert diagnostics.ok
    fields[field][:30] = value
    assert diagnostics.problems[0].startswith("30 of 1000 ")
    assert len(diagnostics[0].problems) == (0 if field == "total" else 1)  # no other step says what is usual


def test_totals_are_judged_by_what_is_usual():
    """A large regulariser leaves a tenth everywhere; only what falls behind that is news."""
    weights = np.full((50, 4), 0.25)
    totals = np.full(50, 0.1)
    assert kb.filters.TrackDiagnostics.of(weights, total=totals).ok
    totals[9:14] = 0.01
    assert "first: step 9" in kb.filters.TrackDiagnostics.of(weights, total=totals).problems[0]


def test_a_track_that_saw_nothing():
    track = kb.Track(
        [0.0, 1.0, 2.0],
        np.full((3, 3), 1 / 3),
        KERNEL,
        kb.filters.TrackDiagnostics.of(np.full((3, 3), 1 / 3), observed=[False] * 3),
    )
    assert track.diagnostics.ok
    assert "total unknown" in str(track.diagnostics)
    assert "3 without an observation" in repr(track)


# ----------------------------------------------------------------------------------------------------- files


def test_saving_and_pickling(tmp_path):
    track = signed()
    track.mean()  # what was decoded before must not disturb
    kb.save(track, tmp_path / "track.npz")
    for again in (kb.load(tmp_path / "track.npz"), pickle.loads(pickle.dumps(track))):
        assert isinstance(again, kb.Track)
        np.testing.assert_array_equal(again.mean(), track.mean())
        np.testing.assert_array_equal(again.interval(0.9), track.interval(0.9))
        np.testing.assert_array_equal(again.times, track.times)
        np.testing.assert_array_equal(again.diagnostics.novelty, track.diagnostics.novelty)
        assert again.names == track.names
        assert repr(again) == repr(track)


def test_csv_holds_the_track_exactly(tmp_path):
    track = signed()
    track.to_csv(tmp_path / "track.csv", level=0.8)
    table = read_table(tmp_path / "track.csv")
    assert table.names[:6] == ("time", "a", "a_std", "a_lower", "a_upper", "b")
    assert table.names[-1] == "observed"
    np.testing.assert_array_equal(table.numbers(["a", "b", "c"]), track.mean())
    np.testing.assert_array_equal(table.numbers(["a_std", "b_std", "c_std"]), track.std())
    np.testing.assert_array_equal(table.numbers(["b_upper"])[:, 0], track.interval(0.8)[1, :, 1])
    np.testing.assert_array_equal(table.numbers(["time", "observed"]).T, [track.times, track.diagnostics.observed])
    with pytest.raises(ValueError, match="cannot write"):
        track.to_csv(tmp_path / "nowhere" / "track.csv")
    with pytest.raises(ValueError, match=r"two columns of .* would be called 'time'"):
        normals(names=["time"]).to_csv(tmp_path / "double.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["track.csv"]


def test_xarray_holds_everything():
    pytest.importorskip("xarray")
    track = signed()
    data = track.to_xarray(level=0.8)
    np.testing.assert_array_equal(data["mean"].sel(state="b"), track.mean()[:, 1])
    np.testing.assert_array_equal(data["interval"].sel(bound="upper"), track.interval(0.8)[1])
    np.testing.assert_allclose(data["weights"].values @ data["points"].values, track.mean(), atol=1e-14)
    assert data["observed"].sel(time=1.0).item() is False
    assert data["interval"].attrs["level"] == 0.8


def test_without_xarray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r"kernelbayes\[xarray\]"):
        normals().to_xarray()


def test_summary_says_what_happened():
    summary = normals(names=["height"]).summary()
    head, columns, row = str(summary).splitlines()
    assert head == "4 steps, 4 with an observation; 3001 points"
    assert columns.split() == ["first", "last", "lowest", "highest", "mean", "std", "90", "%", "width"]
    assert row.split()[:5] == ["height", "-1", "1", "-1", "2.5"]
    assert float(row.split()[6]) == pytest.approx(2 * 1.645 * WIDTHS.mean(), abs=0.02)


# --------------------------------------------------------------------------------------------------- figures


@pytest.mark.parametrize(("steps", "columns"), [(1, 1), (20, 1), (20, 3), (2000, 6)])
def test_figures_have_a_panel_for_each_column_and_one_legend(steps, columns, tmp_path):
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(30), steps)
    diagnostics = kb.filters.TrackDiagnostics.of(weights, observed=rng.random(steps) > 0.3)
    track = kb.Track(rng.normal(size=(30, columns)), weights, KERNEL, diagnostics)
    truth = rng.normal(size=(steps, columns))
    truth[0] = np.nan
    figure = track.plot(truth)
    assert len(figure.axes) == columns
    assert len(figure.legends) == 1
    assert not any(ax.get_legend() for ax in figure.axes)
    assert [ax.get_ylabel() for ax in figure.axes] == list(track.names)
    for j, ax in enumerate(figure.axes):
        mean, true = ax.lines
        np.testing.assert_array_equal(mean.get_ydata(), track.mean()[:, j])
        np.testing.assert_array_equal(true.get_ydata(), truth[:, j])
    figure.savefig(tmp_path / "track.png", dpi=60)


def test_figures_shade_exactly_the_steps_without_an_observation():
    ax = signed().plot().axes[0]
    (gaps,) = (c for c in ax.collections if c.get_label() == "no observation")
    (box,) = (path.get_extents() for path in gaps.get_paths())
    assert (box.x0, box.x1) == (0.75, 1.75)  # steps at 1.0 and 1.5, half a step of 0.25 to either side
    assert "no observation" not in [text.get_text() for text in normals().plot().legends[0].get_texts()]


def test_figures_over_dates_and_words():
    day = normals(times=np.datetime64("2026-03-01") + np.arange(4))
    figure = day.plot()
    figure.draw_without_rendering()
    assert any("03-02" in tick.get_text() for tick in figure.axes[0].get_xticklabels())
    figure = normals(times=["dawn", "noon", "dusk", "night"]).plot()
    figure.draw_without_rendering()
    assert {"dawn", "noon"} <= {tick.get_text() for tick in figure.axes[0].get_xticklabels()}


def test_path_in_the_plane(tmp_path):
    track = signed(d=2)
    figure = track.plot(np.zeros((7, 2)), plane=True)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["90 % ellipse", "truth", "mean", "no observation", "start", "end"]
    figure.savefig(tmp_path / "plane.png", dpi=60)
    with pytest.raises(ValueError, match="needs two columns, this track has 3"):
        signed().plot(plane=True)


def test_ellipses_have_the_axes_of_the_covariance():
    """Of a normal distribution along a diagonal, with standard deviations 2 and 1/2."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(200_000, 2)) * [2.0, 0.5] @ np.array([[1, 1], [-1, 1]]) / np.sqrt(2)
    track = kb.Track(points, np.full((1, len(points)), 1 / len(points)), KERNEL)
    (ellipse,) = track.plot(plane=True, level=0.9).axes[0].patches
    radius = np.sqrt(stats.chi2.ppf(0.9, 2))
    np.testing.assert_allclose([ellipse.width, ellipse.height], [4.0 * radius, 1.0 * radius], rtol=0.02)
    assert ellipse.angle % 180 == pytest.approx(45.0, abs=1.0)
    (x, y), (a, b) = (points - track.mean()).T, ellipse.get_center() - track.mean()[0]
    assert abs(a) + abs(b) < 1e-12
    inverse = np.linalg.inv(track.cov()[0])
    inside = np.einsum("ni,ij,nj->n", np.stack([x, y], 1), inverse, np.stack([x, y], 1)) <= radius**2
    assert inside.mean() == pytest.approx(0.9, abs=0.005)


# ------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [[0.5, 0.2]]}, "sum to one at each step; at step 0 they sum to 0.7"),
        ({"weights": [[0.5, 0.5], [0.1, np.nan]]}, "weights contains NaN"),
        ({"weights": [[1.0, 0.0, 0.0]]}, "weights has 3 columns where 2 were expected"),
        ({"weights": np.empty((0, 2))}, "weights is empty"),
        ({"points": [[1.0], [np.inf]]}, "points contains infinity"),
        ({"kernel": "gaussian"}, "kernel"),
        ({"diagnostics": 3}, "must be a TrackDiagnostics of 1 steps, got 3"),
        ({"diagnostics": kb.filters.TrackDiagnostics.of(np.ones((2, 1)))}, "must be a TrackDiagnostics of 1 steps"),
        ({"times": [1.0, 2.0]}, r"times must be 1 numbers, dates or words, got shape \(2,\)"),
        ({"names": ["a", "b"]}, "names must be 1 different words"),
        ({"names": [3]}, "names must be 1 different words"),
    ],
)
def test_bad_tracks_are_refused(change, message):
    good = {"points": [[0.0], [1.0]], "weights": [[0.5, 0.5]], "kernel": KERNEL}
    kb.Track(**good)
    with pytest.raises(ValueError, match=message):
        kb.Track(**good | change)


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (np.zeros(3), r"truth has shape \(3,\) where \(4, 1\) was wanted"),
        (np.zeros((4, 2)), r"truth has shape \(4, 2\) where \(4, 1\) was wanted"),
        (np.full(4, np.nan), "nothing but NaN for state"),
        (np.full(4, np.inf), "truth contains infinity"),
        (["a"] * 4, "truth holds text"),
    ],
)
def test_bad_truths_are_refused(truth, message):
    with pytest.raises(ValueError, match=message):
        normals().score(truth)


def test_bad_questions_are_refused():
    track = normals()
    for ask, message in (
        (lambda: track.interval(1.5), "level must lie between 0 and 1"),
        (lambda: track.quantile(2.0), "q must be one or several levels"),
        (lambda: track.prob(), "give lower, upper, or both"),
        (lambda: track.sample(0), "n must be at least 1"),
        (lambda: track.expect(3), "f must be a function"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()

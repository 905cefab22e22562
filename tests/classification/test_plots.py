"""Figures of classifiers show the numbers they are drawn from."""

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes import plotting
from kernelbayes.classification import _scores


def drawn_points(ax):
    """All markers of a panel, left to right."""
    found = np.concatenate([line.get_xydata() for line in ax.lines if line.get_marker() == "o"])
    return found[np.argsort(found[:, 0])]


def predictions(n=5000, classes=3, seed=0):
    """Random probabilities, and classes drawn from them: calibrated by construction."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(classes), n)
    return P, (rng.uniform(size=(n, 1)) > P.cumsum(1)).sum(1)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.array(["left", "right", "top"])[np.where(X[:, 1] > 0.7, 2, (X[:, 0] > 0).astype(int))]
    return kb.ConditionalEmbeddingClassifier(random_state=0).fit(X, y), X, y


class TestScores:
    def test_by_hand(self):
        P = np.array([[0.8, 0.2, 0.0], [0.75, 0.25, 0.0], [0.1, 0.35, 0.55], [0.3, 0.4, 0.3]])
        truth = np.array([0, 1, 2, 1])
        # bins: 0.8 and 0.75 (half right), 0.55 (right), 0.4 (right)
        wanted = (2 * abs(0.5 - 0.775) + abs(1 - 0.55) + abs(1 - 0.4)) / 4
        assert _scores.calibration_error(P, truth) == pytest.approx(wanted)
        assert _scores.log_loss(P, truth) == pytest.approx(-np.log([0.8, 0.25, 0.55, 0.4]).mean())
        assert _scores.accuracy(P, truth) == 0.75
        assert _scores.log_loss(P, np.array([2, 1, 2, 1])) == np.inf

    def test_against_scikit_learn(self):
        from sklearn.calibration import calibration_curve
        from sklearn.metrics import log_loss

        P, truth = predictions(500)
        assert _scores.log_loss(P, truth) == pytest.approx(log_loss(truth, P))
        said, right = P.max(1), P.argmax(1) == truth
        share, mean = calibration_curve(right, said, n_bins=10)
        found = _scores.binned(said, right.astype(float))
        np.testing.assert_allclose(found.share, share)
        np.testing.assert_allclose(found.said, mean)
        assert found.counts.sum() == 500

    def test_edges_belong_to_the_bin_below(self):
        found = _scores.binned(np.array([0.0, 0.1, 0.5, 0.50001, 1.0]), np.ones(5))
        np.testing.assert_array_equal(found.place, [0, 4, 5, 9])
        np.testing.assert_array_equal(found.counts, [2, 1, 1, 1])


class TestReliability:
    def test_points_are_shares_of_bins(self):
        P, truth = predictions()
        figure = plotting.reliability(P, truth)
        above, below = figure.axes
        said, right = P.max(1), P.argmax(1) == truth
        inside = [(said > low) & (said <= low + 0.1) for low in np.arange(10) / 10]
        wanted = [(said[rows].mean(), right[rows].mean()) for rows in inside if rows.any()]
        np.testing.assert_allclose(drawn_points(above), wanted)
        assert [bar.get_height() for bar in below.patches] == [rows.sum() for rows in inside if rows.any()]
        error, loss = _scores.calibration_error(P, truth), _scores.log_loss(P, truth)
        assert above.get_title() == f"5,000 points: expected calibration error {error:.3f}, log loss {loss:.3f}"

    def test_bars_are_those_of_chance(self):
        P, truth = predictions()
        (bars,) = plotting.reliability(P, truth).axes[0].collections
        found = _scores.binned(*_scores.top_class(P, truth))
        low, high = stats.binom.interval(0.95, found.counts, found.said) / found.counts
        np.testing.assert_allclose([bar[:, 1] for bar in bars.get_segments()], np.column_stack([low, high]))

    def test_right_probabilities_stay_within_chance_and_wrong_ones_do_not(self):
        def outside(P, truth):
            lines = plotting.reliability(P, truth).axes[0].lines
            return sum(len(line.get_xdata()) for line in lines if line.get_color() == plotting.ACCENT)

        P, truth = predictions(20_000)
        bold = P**2 / (P**2).sum(1, keepdims=True)
        assert outside(P, truth) <= 1
        assert outside(bold, truth) >= 4

    def test_of_two_classes_the_second_is_drawn(self):
        P, truth = predictions(classes=2)
        above, below = plotting.reliability(P, truth, bins=5).axes
        rows = (P[:, 1] > 0.2) & (P[:, 1] <= 0.4)
        np.testing.assert_allclose(drawn_points(above)[1], [P[rows, 1].mean(), truth[rows].mean()])
        assert len(drawn_points(above)) == 5
        assert "second class" in below.get_xlabel()
        above, below = plotting.reliability(P, truth, bins=5, names=np.array(["left", "stayed"])).axes
        assert below.get_xlabel() == "predicted probability of class stayed"
        assert above.get_ylabel() == "share of class stayed"

    def test_bins_of_few_points_are_hollow(self):
        P = np.array([[0.9, 0.1]] * 8 + [[0.45, 0.55]] * 2)
        above = plotting.reliability(P, np.zeros(10, int)).axes[0]
        hollow = [line.get_xydata() for line in above.lines if line.get_markerfacecolor() == "white"]
        np.testing.assert_allclose(hollow, [[[0.55, 0.0]]])
        assert len(above.collections[0].get_segments()) == 1

    @pytest.mark.parametrize(
        ("P", "truth", "message"),
        [
            ([[0.5, 0.6]], [0], "each row must sum to one"),
            ([[1.5, -0.5]], [0], "must not be negative"),
            ([0.5, 0.5], [0, 0], "a column for each class"),
            ([[0.5, 0.5]], [0, 1], "must be paired"),
            ([[0.5, 0.5]], [2], "between 0 and 1"),
            ([[0.5, 0.5]], ["a"], "whole numbers"),
        ],
    )
    def test_refusals(self, P, truth, message):
        with pytest.raises(ValueError, match=message):
            plotting.reliability(P, truth)

    def test_method_of_the_classifier(self, model):
        model, X, y = model
        title = model.plot_calibration(X, y, bins=5).axes[0].get_title()
        P, truth = model.predict_proba(X), np.searchsorted(model.classes_, y)
        assert f"error {_scores.calibration_error(P, truth, 5):.3f}" in title
        with pytest.raises(ValueError, match=r"middle.*which was not among those fitted"):
            model.plot_calibration(X, np.array(["middle"] * 150))


class TestMap:
    def test_colours_are_those_of_the_most_probable_class(self, model):
        model, X, y = model
        figure = model.plot_map(X, y, resolution=40)
        left, right = figure.axes[:2]
        shown, entropy = left.images[0].get_array(), right.images[0].get_array()
        x0, x1, y0, y1 = left.images[0].get_extent()
        corners = np.array([[x0, y0], [x1, y0], [x0, y1]])
        from matplotlib.colors import to_rgb

        from kernelbayes.plotting._classes import _COLOURS

        for corner, pixel in zip(corners, (shown[0, 0], shown[0, -1], shown[-1, 0]), strict=True):
            place = np.searchsorted(model.classes_, model.predict(corner[None])[0])
            away, pure = 1 - pixel, 1 - np.array(to_rgb(_COLOURS[place]))
            np.testing.assert_allclose(away / away.max(), pure / pure.max())  # mixed with white, and nothing else
        np.testing.assert_allclose(entropy[0, 0], model.entropy(corners[:1])[0])
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["left", "right", "top"]
        dots = np.concatenate([line.get_xydata() for line in left.lines])
        assert len(dots) == len(X)

    def test_colours_fade_where_classes_are_alike(self, model):
        model, X, _ = model
        shown = model.plot_map(X, resolution=30).axes[0].images[0].get_array()
        entropy = model.plot_map(X, resolution=30).axes[1].images[0].get_array()
        strength = 1 - shown.min(-1)
        certain, unsure = entropy < 0.1, entropy > 0.6
        assert strength[certain].min() > 1.5 * strength[unsure].max()

    def test_boundary_is_where_two_classes_are_equal(self, model):
        model, X, _ = model
        left = model.plot_map(X, resolution=80).axes[0]
        vertices = np.concatenate([path.vertices for lines in left.collections for path in lines.get_paths()])
        P = np.sort(model.predict_proba(vertices), axis=1)
        assert np.median(P[:, 2] - P[:, 1]) < 0.02
        assert not left.lines  # no points without labels

    def test_many_classes(self):
        X = np.random.default_rng(0).uniform(size=(120, 2))
        model = kb.ConditionalEmbeddingClassifier(kb.Gaussian(0.1), learn=None).fit(X, (X[:, 0] * 12).astype(int))
        figure = model.plot_map(X, (X[:, 0] * 12).astype(int), resolution=20)
        assert len(figure.legends[0].get_texts()) == 12

    def test_the_rarest_class_is_drawn_last(self):
        X = np.random.default_rng(0).normal(size=(60, 2))
        y = np.arange(60) < 6  # six of class True, then 54 of class False
        model = kb.ConditionalEmbeddingClassifier(kb.Gaussian(1.0), learn=None).fit(X, ~y)
        assert [len(line.get_xydata()) for line in model.plot_map(X, ~y, resolution=10).axes[0].lines] == [54, 6]

    def test_names_of_a_data_frame(self):
        pandas = pytest.importorskip("pandas")
        X = np.random.default_rng(0).normal(size=(60, 2))
        frame = pandas.DataFrame(X, columns=["length", "width"])
        model = kb.ConditionalEmbeddingClassifier(kb.Gaussian(), learn=None).fit(frame, X[:, 0] > 0)
        left, right = model.plot_map(frame, X[:, 0] > 0, resolution=10).axes[:2]
        assert (left.get_xlabel(), left.get_ylabel(), right.get_xlabel()) == ("length", "width", "length")

    def test_refusals(self, model):
        model, X, y = model
        with pytest.raises(ValueError, match="a map has two inputs, but X has 3 columns"):
            model.plot_map(np.ones((4, 3)))
        with pytest.raises(ValueError, match="must be paired"):
            model.plot_map(X, y[:-1])


class TestRelevance:
    @pytest.fixture
    def model(self):
        X = np.random.default_rng(0).normal(size=(80, 6)) * [1, 1, 5, 1, 0, 1]
        return kb.ConditionalEmbeddingClassifier(kb.Gaussian([1, 2, 3, 4, 5, 6.0]), learn=None).fit(X, X[:, 0] > 0)

    def test_bars(self, model):
        ax = model.plot_relevance(most=4).axes[0]
        assert [bar.get_width() for bar in ax.patches] == [row["relevance"] for row in model.relevance().values()][:4]
        assert [tick.get_text() for tick in ax.get_yticklabels()] == list(model.relevance())[:4]
        assert ax.get_title() == "Relevance of the inputs (the first 4 of 6)"
        assert len(model.plot_relevance().axes[0].patches) == 6

    def test_image(self, model):
        ax = model.plot_relevance(shape=(2, 3)).axes[0]
        shown = ax.images[0].get_array()
        spread = model.sample_.X.std(0)
        np.testing.assert_allclose(10 ** shown.filled(-np.inf), (spread / np.arange(1, 7)).reshape(2, 3), atol=1e-12)
        assert shown.mask.sum() == 1  # the column that never varies
        assert "grey" in ax.get_title()

    def test_refusals(self, model):
        with pytest.raises(ValueError, match="a height and a width with 6 pixels in all, got"):
            model.plot_relevance(shape=(2, 2))
        with pytest.raises(ValueError, match="most"):
            model.plot_relevance(most=0)


class TestBalance:
    def test_curves(self, model):
        model = model[0]
        left, right = model.plot_balance().axes
        curves = model.balance()
        drawn = {
            line.get_label(): line.get_ydata() for line in left.lines if len(line.get_ydata()) == len(curves["fit"])
        }
        np.testing.assert_array_equal(drawn["fit: mean loss"], curves["fit"])
        np.testing.assert_array_equal(right.lines[0].get_ydata(), curves["complexity"])

    def test_what_was_minimised(self):
        fit, complexity = np.array([3.0, 2.0, 1.0, 0.5]), np.array([1.0, 2.0, 2.5, 4.0])
        curves = {"fit": fit, "complexity": complexity, "multiplier": np.array([1.0, 1.0, 0.5, 0.5])}
        left = plotting.balance(curves).axes[0]
        np.testing.assert_array_equal(left.lines[0].get_ydata(), [4.0, 4.0])
        np.testing.assert_array_equal(left.lines[1].get_ydata(), [2.25, 2.5])
        assert [line.get_xdata()[0] for line in left.lines if line.get_color() == plotting.FAINT] == [1.5]
        left = plotting.balance({"fit": fit, "complexity": complexity, "objective": fit + 7}).axes[0]
        np.testing.assert_array_equal(left.lines[0].get_ydata(), fit + 7)
        left = plotting.balance({"fit": fit, "complexity": complexity}).axes[0]
        assert [line.get_label() for line in left.lines] == ["fit: mean loss"]

    def test_refusals(self):
        with pytest.raises(ValueError, match="curves lack 'complexity'"):
            plotting.balance({"fit": np.ones(3), "objective": np.ones(3)})

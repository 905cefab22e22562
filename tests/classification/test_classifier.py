"""The multiclass conditional embedding as a classifier."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelbayes as kb
from oracles import multiclass as oracle

REG, LENGTHSCALE = 1e-2, 0.8
Classifier = kb.ConditionalEmbeddingClassifier


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.array(["low", "mid", "high"])[np.digitize(X[:, 0] + 0.4 * rng.normal(size=80), [-0.5, 0.6])]
    return X, y, rng.normal(size=(9, 2))


def plain(**options):
    return Classifier(kb.Gaussian(LENGTHSCALE), learn=None, reg=REG, **options)


class TestFormulas:
    """Against dense NumPy formulas of the thesis."""

    CLASSES = ("high", "low", "mid")

    def grams(self, labelled):
        X, _, T = labelled
        return oracle.gaussian(X, X, LENGTHSCALE), oracle.gaussian(X, T, LENGTHSCALE)

    def test_decision_probabilities(self, labelled):
        X, y, T = labelled
        K, k = self.grams(labelled)
        model = plain().fit(X, y)
        wanted = oracle.decision_probabilities(K, oracle.one_hot(y, self.CLASSES), REG, k)
        assert list(model.classes_) == list(self.CLASSES)
        assert np.allclose(model.decision_probabilities(T), wanted, atol=1e-9)
        assert (model.predict(T) == np.array(self.CLASSES)[wanted.argmax(1)]).all()

    def test_entropies(self, labelled):
        X, y, T = labelled
        K, k = self.grams(labelled)
        model = plain().fit(X, y)
        embedded = oracle.embedded_entropy(K, list(y), list(self.CLASSES), REG, k)
        clipped = oracle.clip_normalised(model.decision_probabilities(T))
        assert np.allclose(model.entropy(T, "embedded"), embedded, atol=1e-9)
        assert np.allclose(model.entropy(T, "clipped"), [oracle.entropy(p) for p in clipped], atol=1e-9)
        assert np.allclose(model.entropy(T), [oracle.entropy(p) for p in model.predict_proba(T)])

    @pytest.mark.parametrize("features", [kb.Exact(), kb.IncompleteCholesky(), kb.Subspace(80), kb.RandomFourier(1000)])
    def test_every_representation(self, labelled, features):
        X, y, T = labelled
        wanted = plain().fit(X, y).decision_probabilities(T)
        found = plain(features=features, random_state=0).fit(X, y).decision_probabilities(T)
        assert np.abs(found - wanted).max() < (0.1 if isinstance(features, kb.RandomFourier) else 1e-5)

    @pytest.mark.parametrize("kernel", [kb.Gaussian(0.8), kb.Laplace(1.0)])  # of low rank, and of full
    def test_calibration_leaves_each_point_out(self, labelled, kernel, monkeypatch):
        """What the calibrator sees are predictions of models fitted without the point, for the same n reg."""
        X, y, _ = labelled
        seen = {}
        fitter = "kernelbayes.classification._classifier.fit_calibrator"
        monkeypatch.setattr(fitter, lambda P, Y, w: seen.update(P=P, Y=Y))
        weights = np.random.default_rng(4).uniform(0.5, 2.0, 80)
        Classifier(kernel, learn=None, reg=REG).fit(X, y, weights)
        Y, total = oracle.one_hot(y, self.CLASSES), weights.sum()
        for i in (0, 17, 50):
            rest = np.delete(np.arange(80), i)
            K, D = kernel.gram(X[rest]), np.diag(weights[rest])
            coefficients = np.linalg.solve(D @ K + total * REG * np.eye(79), D @ Y[rest])
            assert np.allclose(seen["P"][i], kernel.gram(X[[i]], X[rest]) @ coefficients, atol=1e-6)

    def test_weights_count_points(self, labelled):
        X, y, T = labelled
        counts = np.random.default_rng(1).integers(0, 4, 80)
        repeated = plain().fit(np.repeat(X, counts, 0), np.repeat(y, counts))
        weighted = plain().fit(X, y, counts)
        assert np.allclose(weighted.decision_probabilities(T), repeated.decision_probabilities(T), atol=1e-8)
        assert np.allclose(
            plain().fit(X, y, 0.001 * counts).decision_probabilities(T), weighted.decision_probabilities(T), atol=1e-8
        )

    def test_chunks_are_the_whole(self, labelled):
        X, y, T = labelled
        recipe = kb.RandomFourier(60)
        whole = plain(features=recipe, random_state=0).fit(X, y)
        chunks = plain(features=recipe, random_state=0)
        for start in range(0, 80, 30):
            chunks.partial_fit(X[start : start + 30], y[start : start + 30], classes=self.CLASSES)
        assert np.allclose(chunks.decision_probabilities(T), whole.decision_probabilities(T), atol=1e-9)
        assert chunks.n_seen_ == 80
        assert np.allclose(chunks.predict_proba(T), whole.predict_proba(T), atol=1e-3)


class TestTruth:
    """A problem whose class probabilities are known."""

    @staticmethod
    def probabilities(X):
        scores = np.stack([np.sin(2 * X[:, 0]), X[:, 1], 0.5 - X[:, 0] * X[:, 1]], axis=1) * 1.5
        p = np.exp(scores)
        return p / p.sum(1, keepdims=True)

    def draw(self, n, rng):
        X = rng.uniform(-1.5, 1.5, size=(n, 2))
        return X, (rng.random(n)[:, None] > self.probabilities(X).cumsum(1)).sum(1)

    def test_probabilities_and_entropies_converge(self):
        rng = np.random.default_rng(0)
        T = rng.uniform(-1.4, 1.4, size=(500, 2))
        truth = self.probabilities(T)
        h = -(truth * np.log(truth)).sum(1)
        errors = []
        for n in (100, 6400):
            model = Classifier(random_state=0).fit(*self.draw(n, rng))
            raw = np.abs(model.decision_probabilities(T) - truth).mean()
            entropies = [np.abs(model.entropy(T, kind) - h).mean() for kind in ("calibrated", "clipped", "embedded")]
            errors.append([raw, np.abs(model.predict_proba(T) - truth).mean(), *entropies])
        print("\nmean errors of raw, calibrated probabilities; calibrated, clipped, embedded entropies")
        print("\n".join(f"n = {n:5d}  {e}" for n, e in zip((100, 6400), np.round(errors, 3), strict=True)))
        errors = np.array(errors)
        assert (errors[-1] < 0.45 * errors[0]).all()
        assert (errors[-1, :2] < 0.03).all()
        assert (errors[-1, 2:] < 0.06).all()


class TestProbabilities:
    def test_usable_where_clipped_ones_are_not(self):
        X, y = load_wine(return_X_y=True)
        train, test = train_test_split(np.arange(len(y)), test_size=0.5, random_state=0, stratify=y)
        model = Classifier(random_state=0).fit(X[train], y[train])
        clipped = oracle.clip_normalised(model.decision_probabilities(X[test]))
        q = model.predict_proba(X[test])
        assert clipped.min() == 0.0 < q.min()
        assert log_loss(y[test], q) < 0.8 * log_loss(y[test], clipped)
        assert (model.predict(X[test]) == model.classes_[q.argmax(1)]).all()
        assert model.score(X[test], y[test]) > 0.95

    def test_without_calibration_no_class_has_probability_zero(self, labelled):
        X, y, T = labelled
        q = plain(calibration=None).fit(X, y).predict_proba(np.concatenate([T, [[50.0, 50.0]]]))
        assert q.min() > 0
        assert np.allclose(q.sum(1), 1.0)
        assert np.allclose(q[-1], 1 / 3)

    def test_far_from_the_data_all_classes_are_alike(self, labelled):
        X, y, _ = labelled
        assert np.allclose(plain().fit(X, y).predict_proba([[50.0, -50.0]]), 1 / 3)

    def test_what_was_never_seen_left_out_means_nothing(self):
        """A kernel so short that the model only repeats labels: left-out predictions say nothing, nor should it."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
        assert Classifier(kb.Gaussian(1e-4), learn=None).fit(X, y).predict_proba(X).max() < 0.7

    @pytest.mark.parametrize("classes", [2, 10])
    def test_labels_that_depend_on_nothing(self, classes):
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(300, 2)), rng.integers(0, classes, 300)
        model = Classifier(random_state=0).fit(X, y)
        assert model.predict_proba(X + 1e-3).max() < 3.0 / classes
        assert model.balance()["complexity"][-1] < 0.5 * np.sqrt(300)

    def test_order_is_kept_without_calibration(self):
        model = plain(calibration=None).fit(*load_iris(return_X_y=True))
        T = np.random.default_rng(0).uniform(-2, 10, (500, 4))
        assert (model.predict(T) == model.predict_proba(T).argmax(1)).all()
        near = T[model.decision_probabilities(T).max(1) > 1e-6]
        assert (model.predict(near) == model.decision_probabilities(near).argmax(1)).all()

    def test_no_probability_vanishes(self):
        X, y = load_iris(return_X_y=True)
        model = Classifier(kb.Linear()).fit(X, y)
        assert model.predict_proba(1000 * X).min() > 0


class TestLearning:
    X, y = make_classification(
        400, 6, n_informative=2, n_redundant=0, n_classes=3, n_clusters_per_class=1, class_sep=1.5, random_state=1,
        shuffle=False,
    )  # fmt: skip

    def test_relevance(self):
        model = Classifier(random_state=0).fit(self.X, self.y)
        table = model.relevance()
        assert set(list(table)[:2]) == {"x0", "x1"}
        assert table["x0"]["relevance"] > 2 * table["x3"]["relevance"]

    def test_balance_adds_up(self):
        model = Classifier(random_state=0, ard=False).fit(self.X, self.y)
        sides = model.balance()
        values = [step["value"] for step in model.tuning_.path]
        assert np.allclose(sides["fit"] + sides["multiplier"] * sides["complexity"], values, rtol=1e-6)
        shares = np.bincount(self.y) / 400
        entropy = -(shares @ np.log(shares))
        assert np.isclose(sides["multiplier"][0], max(entropy, np.exp(entropy - 1)) / 20)
        assert sides["reg"][-1] == model.reg_

    @pytest.mark.parametrize("learn", ["bound", "validation", "cv", "median", None])
    def test_ways_of_learning(self, learn):
        model = Classifier(learn=learn, random_state=0).fit(self.X[::2], self.y[::2])
        assert model.score(self.X[1::2], self.y[1::2]) > 0.88
        assert (model.tuning_ is not None) == (learn in ("bound", "validation"))

    def test_fit_alone_overfits(self):
        erm = Classifier(learn="erm", random_state=0).fit(self.X[::2], self.y[::2])
        bound = Classifier(random_state=0).fit(self.X[::2], self.y[::2])
        assert erm.balance()["complexity"][-1] > 2 * bound.balance()["complexity"][-1]
        losses = [log_loss(self.y[1::2], model.predict_proba(self.X[1::2])) for model in (bound, erm)]
        assert losses[0] < losses[1]

    def test_in_batches(self):
        model = Classifier(batch_size=50, random_state=0).fit(self.X, self.y)
        assert model.score(self.X, self.y) > 0.9
        assert len(model.tuning_.path) == 300

    def test_a_given_kernel_is_where_learning_starts(self):
        model = Classifier(kb.Matern(lengthscale=1.0), random_state=0).fit(self.X[::2], self.y[::2])
        assert isinstance(model.kernel_, kb.Matern)
        assert model.kernel_.lengthscale != 1.0
        fixed = Classifier(reg=0.02, random_state=0).fit(self.X[::2], self.y[::2])
        assert fixed.reg_ == 0.02

    def test_columns_of_one_unit_share_a_scale(self):
        """Pixels that hardly vary are not blown up, columns in other units are not lost."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(1200, 12)) * np.r_[1.0, 1.0, np.full(10, 0.05)]
        y = X[:, 0] * X[:, 1] > 0
        model = Classifier(random_state=0).fit(X[:200], y[:200])
        assert np.ptp(model.scale_) == 0.0
        assert model.score(X[200:], y[200:]) > 0.85
        X[:, 1] *= 1e6
        assert Classifier(random_state=0).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.85

    @pytest.mark.parametrize(("kernel", "scale"), [(kb.Linear(), 1e-6), (kb.Linear(), 1e6), (kb.Polynomial(2), 1e4)])
    def test_scale_of_a_kernel_does_not_matter(self, kernel, scale):
        """Regularisers are sought relative to the kernel's diagonal."""
        for learn in ("bound", "cv"):
            model = Classifier(kernel, learn=learn, random_state=0).fit(scale * (1 + self.X), self.y)
            assert model.score(scale * (1 + self.X), self.y) > 0.85

    def test_rounding_is_not_variation(self):
        X, y = np.column_stack([self.X[::2], np.full(200, 0.1)]), self.y[::2]
        model = Classifier(random_state=0).fit(X, y)
        assert model.score(X + 1e-6, y) > 0.9

    def test_nothing_left_to_learn(self):
        assert Classifier(kb.Linear(), reg=0.1).fit(self.X, self.y).reg_ == 0.1

    def test_median(self):
        spread = self.X.std(0)
        kernel = Classifier(learn="median").fit(self.X, self.y).kernel_
        assert np.allclose(kernel.lengthscale, spread * kb.median_lengthscale(self.X / spread))

    def test_kernels_of_other_things(self):
        words = np.array(["abba", "abab", "baba", "xyxy", "yxxy", "xxyy"] * 4)
        y = ["ab", "ab", "ab", "xy", "xy", "xy"] * 4
        kernel = kb.FunctionKernel(lambda a, b: float(len(set(a) & set(b))))
        model = Classifier(kernel).fit(words, y)
        assert list(model.predict(["aabb", "yyx"])) == ["ab", "xy"]

    def test_more_points_than_are_learned_from(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-2, 2, (3200, 2))
        y = (X**2).sum(1) > 2
        model = Classifier(random_state=0).fit(X, y)
        assert model.features_.rank <= 1000
        assert model.score(X, y) > 0.98


class TestUsers:
    X, y = load_iris(return_X_y=True)

    def test_rare_class_unseen_in_a_fold(self):
        y = self.y.copy()
        y[0] = 7
        with pytest.warns(UserWarning, match="least populated class"):
            scores = cross_val_score(Classifier(random_state=0), self.X, y, cv=3)
        assert scores.mean() > 0.9

    @pytest.mark.parametrize(
        "labels",
        [np.array(["a", "b", "c"]), np.array([True, False, True]), np.array([-1.0, 0.0, 5.0]), np.array([3, 1, 2])],
    )
    def test_labels_of_any_kind(self, labels):
        model = Classifier(random_state=0).fit(self.X, labels[self.y])
        assert model.predict(self.X).dtype == labels.dtype
        assert model.score(self.X, labels[self.y]) > 0.95
        objects = labels[self.y].astype(object)
        assert (plain().fit(self.X, objects).predict(self.X) == objects).mean() > 0.95

    def test_constant_inputs_leave_the_frequencies(self):
        y = np.array([0] * 30 + [1] * 10)
        q = Classifier(random_state=0).fit(np.ones((40, 3)), y).predict_proba(np.ones((1, 3)))
        assert np.allclose(q, [[0.75, 0.25]], atol=0.08)

    def test_ten_thousand_columns(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(90, 10_000))
        y = np.arange(90) % 2
        X[:, :200] += 1.5 * y[:, None]
        model = Classifier(random_state=0).fit(X[:60], y[:60])
        assert model.score(X[60:], y[60:]) > 0.9

    def test_imbalance(self):
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(0, 1, (475, 1)), rng.normal(1.5, 1, (25, 1))])
        y = np.r_[np.zeros(475), np.ones(25)]
        plain = Classifier(random_state=0).fit(X, y)
        balanced = Classifier(class_weight="balanced", random_state=0).fit(X, y)
        assert abs(plain.predict_proba(X)[:, 1].mean() - 0.05) < 0.015  # as often as it happens
        assert balanced.predict(X)[y == 1].mean() > 0.6 > plain.predict(X)[y == 1].mean()
        by_hand = Classifier(class_weight={0: 1.0, 1: 19.0}, random_state=0).fit(X, y)
        assert np.allclose(by_hand.predict_proba(X), balanced.predict_proba(X), atol=0.1)

    def test_saved_and_loaded(self, tmp_path):
        model = Classifier(class_weight={0: 1.0, 1: 2.0, 2: 1.0}, random_state=0).fit(self.X, self.y)
        kb.save(model, tmp_path / "model.npz")
        again = kb.load(tmp_path / "model.npz")
        assert np.array_equal(again.predict_proba(self.X), model.predict_proba(self.X))
        assert again.relevance() == model.relevance()
        assert again.class_weight == model.class_weight
        assert np.allclose(again.balance()["fit"], model.balance()["fit"])

    def test_chunks_after_loading(self, tmp_path):
        model = Classifier(features=kb.Subspace(30), random_state=0).partial_fit(self.X[::2], self.y[::2], [0, 1, 2])
        kb.save(model, tmp_path / "model.npz")
        again = kb.load(tmp_path / "model.npz").partial_fit(self.X[1::2], self.y[1::2])
        assert again.n_seen_ == 150
        assert again.score(self.X, self.y) > 0.95

    def test_chunks_do_not_change_what_was_passed(self):
        rng = np.random.default_rng(0)
        model = Classifier(kb.Gaussian(1.0), learn=None, features=kb.Subspace(20), random_state=0)
        chunks = [(rng.normal(size=(4000, 1)), rng.integers(0, 2, 4000)) for _ in range(3)]
        copies = [(X.copy(), y.copy()) for X, y in chunks]
        for X, y in chunks:
            model.partial_fit(X, y, classes=[0, 1])
        assert all(np.array_equal(X, C) and np.array_equal(y, c) for (X, y), (C, c) in zip(chunks, copies, strict=True))
        assert len(model._kept.X) == 5000

    @pytest.mark.parametrize(
        ("options", "change", "message"),
        [
            ({}, lambda X, y: (X, y * 0), "two classes"),
            ({}, lambda X, y: (X, y[:-1]), "149"),
            ({}, lambda X, y: (np.where(X > 7.8, np.nan, X), y), "NaN"),
            ({}, lambda X, y: (X, y + 0.5 * X[:, 0]), "continuous"),
            ({}, lambda X, y: (X, [None, *y[1:]]), "missing"),
            ({}, lambda X, y: (X[:, 0], y), "2D"),
            ({}, lambda X, y: (X, np.array(["a", *y[1:]], dtype=object)), "mixes"),
            ({"learn": "magic"}, None, "learn must be one of"),
            ({"reg": -1.0}, None, "reg must be positive"),
            ({"multiplier": -1}, None, "multiplier"),
            ({"batch_size": 1}, None, "batch_size"),
            ({"calibration": "platt"}, None, "calibration"),
            ({"ard": True, "kernel": kb.Gaussian(1.0)}, None, "ard"),
            ({"kernel": "rbf"}, None, "kernel must be a Kernel"),
        ],
    )
    def test_mistakes(self, options, change, message):
        X, y = (self.X, self.y) if change is None else change(self.X, self.y)
        with pytest.raises(ValueError, match=message):
            Classifier(**options).fit(X, y)

    def test_mistakes_in_using(self):
        model = plain().fit(self.X, self.y)
        with pytest.raises(ValueError, match="3 features"):
            model.predict(self.X[:, :3])
        with pytest.raises(ValueError, match="kind must be one of"):
            model.entropy(self.X, "shannon")
        with pytest.raises(ValueError, match="step by step"):
            model.balance()
        with pytest.raises(ValueError, match="needs classes"):
            Classifier().partial_fit(self.X, self.y)
        with pytest.raises(ValueError, match="not among classes"):
            Classifier(features=kb.Subspace(10)).partial_fit(self.X, self.y, classes=[0, 1])
        with pytest.raises(ValueError, match="all labels at once"):
            Classifier(class_weight="balanced").partial_fit(self.X, self.y, classes=[0, 1, 2])
        with pytest.warns(RuntimeWarning, match="first chunk has 6 rows"):
            plain(features=kb.Subspace(3)).partial_fit(self.X[::25], self.y[::25], classes=[0, 1, 2])
        with pytest.raises(ValueError, match="fixed number"):
            Classifier(kb.Laplace(0.1), learn=None, features=kb.Exact()).partial_fit(self.X, self.y, classes=[0, 1, 2])


def _expected(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": "leaving out a row is not leaving out its copies; raw "
        "probabilities are equivalent, which is tested above"
    }


@parametrize_with_checks([Classifier(), Classifier(learn=None, calibration=None)], expected_failed_checks=_expected)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", [kb.Gaussian(1e-3), kb.Gaussian(1e4), kb.Laplace(1e-3), kb.Gaussian([1e-3, 2e-3])])
def test_a_kernel_of_the_wrong_size_is_only_where_learning_starts(kernel):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = X[:, 0] * X[:, 1] > 0
    model = kb.ConditionalEmbeddingClassifier(kernel, random_state=0).fit(X[:150], y[:150])
    assert type(model.kernel_) is type(kernel)
    assert model.kernel_.lengthscale.shape == kernel.lengthscale.shape
    assert model.score(X[150:], y[150:]) > 0.85

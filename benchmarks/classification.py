"""Contenders and rows of `run.py` for classification: time to a tuned model, its quality, and a million rows."""

from __future__ import annotations

import time

N, D, FOLDS = 2000, 20, 10
CHUNK, CHUNKS = 50_000, 20
GRID = {"svc__C": [0.1, 1.0, 10.0, 100.0, 1000.0], "svc__gamma": [0.001, 0.01, 0.1, 1.0, 10.0]}


def _two_classes():
    from sklearn.datasets import make_classification

    X, y = make_classification(N + 1000, D, n_informative=5, n_redundant=5, flip_y=0.05, random_state=0)
    return X[:N], y[:N], X[N:], y[N:]


def _tuned(model):
    """Seconds to fit, first call included, and how good it is on 1,000 other points."""
    from sklearn.metrics import log_loss

    X, y, X_test, y_test = _two_classes()
    times = []
    for _ in range(2):
        start = time.perf_counter()
        model.fit(X, y)
        times.append(time.perf_counter() - start)
        if times[0] > 30:
            break
    text = f"accuracy {model.score(X_test, y_test):.3f}"
    if hasattr(model, "predict_proba"):
        text += f", log loss {log_loss(y_test, model.predict_proba(X_test)):.3f}"
    return {"seconds": min(times), "first": times[0], "also": text}


def classify_ours():
    import kernelbayes as kb

    return _tuned(kb.ConditionalEmbeddingClassifier(ard=True, random_state=0))


def classify_gpc():
    import numpy as np
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    return _tuned(GaussianProcessClassifier(1.0 * RBF(np.full(D, 4.0)), random_state=0))


def _svc_grid():
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID, cv=3)


def classify_svc():
    return _tuned(_svc_grid())


# ------------------------------------------------------------------------------------------------------- quality


def calibration_error(probabilities, positions, bins=10):
    """The expected calibration error of the most probable class."""
    import numpy as np

    sure, right = probabilities.max(1), probabilities.argmax(1) == positions
    place = np.minimum((sure * bins).astype(int), bins - 1)
    return float(sum(abs((sure - right)[place == b].sum()) for b in range(bins)) / len(sure))


def _quality(fitted):
    """Ten folds of wine, breast cancer, digits and iris: accuracy, log loss and calibration error, each and on average."""
    import numpy as np
    from sklearn import datasets
    from sklearn.model_selection import StratifiedKFold

    rows, seconds = [], 0.0
    for load in (datasets.load_wine, datasets.load_breast_cancer, datasets.load_digits, datasets.load_iris):
        X, y = load(return_X_y=True)
        P, hit = np.zeros((len(y), y.max() + 1)), np.zeros(len(y), dtype=bool)
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=7).split(X, y):
            start = time.perf_counter()
            model = fitted(X[train], y[train])
            seconds += time.perf_counter() - start
            P[test], hit[test] = model.predict_proba(X[test]), model.predict(X[test]) == y[test]
        rows.append((hit.mean(), -np.log(P[np.arange(len(y)), y].clip(1e-15)).mean(), calibration_error(P, y)))
    names = ("wine", "cancer", "digits", "iris", "mean")
    shown = [
        f"{name} {a:.4f} {b:.4f} {c:.4f}" for name, (a, b, c) in zip(names, [*rows, np.mean(rows, 0)], strict=True)
    ]
    return {"seconds": seconds, "first": seconds, "also": "accuracy, log loss, ECE: " + "; ".join(shown)}


def quality_ours():
    import kernelbayes as kb

    return _quality(lambda X, y: kb.ConditionalEmbeddingClassifier(random_state=0).fit(X, y))


def quality_svc():
    import warnings

    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    warnings.simplefilter("ignore", FutureWarning)  # probability=True is on its way out

    def fitted(X, y):
        best = _svc_grid().fit(X, y).best_params_
        svc = SVC(C=best["svc__C"], gamma=best["svc__gamma"], probability=True, random_state=0)
        return make_pipeline(StandardScaler(), svc).fit(X, y)

    return _quality(fitted)


def quality_forest():
    from sklearn.ensemble import RandomForestClassifier

    return _quality(lambda X, y: RandomForestClassifier(random_state=0).fit(X, y))


# ----------------------------------------------------------------------------------------------- a million rows


def _chunks(count, seed=0):
    """Rows of ten columns and labels of three classes with known probabilities."""
    import numpy as np

    rng = np.random.default_rng(seed)
    for _ in range(count):
        X = rng.normal(size=(CHUNK, 10))
        scores = 1.5 * np.stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] * X[:, 3], 0.5 * X[:, 4] ** 2 - 0.5], axis=1)
        p = np.exp(scores)
        p /= p.sum(1, keepdims=True)
        yield X, (rng.random(CHUNK)[:, None] > p.cumsum(1)).sum(1), p


def _streamed(learn, probabilities):
    import numpy as np

    start = time.perf_counter()
    for X, y, _ in _chunks(CHUNKS):
        learn(X, y)
    seconds = time.perf_counter() - start
    ((X, y, truth),) = _chunks(1, seed=1)
    X, y, truth = X[:5000], y[:5000], truth[:5000]
    P = probabilities(X)
    loss, best = (-np.log(q[np.arange(5000), y]).mean() for q in (P, truth))
    text = f"log loss {loss:.4f} (the truth {best:.4f}), mean error of probabilities {np.abs(P - truth).mean():.3f}"
    return {"seconds": seconds, "first": seconds, "also": text}


def stream_ours():
    import kernelbayes as kb

    model = kb.ConditionalEmbeddingClassifier(features=kb.Subspace(500), random_state=0)
    return _streamed(lambda X, y: model.partial_fit(X, y, classes=[0, 1, 2]), model.predict_proba)


def stream_sgd():
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier

    state = {}
    model = SGDClassifier(loss="log_loss", random_state=0)

    def learn(X, y):
        if "map" not in state:
            state["map"] = Nystroem(gamma=0.05, n_components=500, random_state=0).fit(X)
        model.partial_fit(state["map"].transform(X), y, classes=[0, 1, 2])

    return _streamed(learn, lambda X: model.predict_proba(state["map"].transform(X)))


#: title, ours, the peer or None, what the peer is, what is asked of us
BENCHMARKS = {
    "classify": (
        "Classifier with learned ARD, n = 2,000, d = 20: fit",
        "classify_ours",
        "classify_gpc",
        "scikit-learn GaussianProcessClassifier, ARD",
        "ratio of at least 10",
    ),
    "classify-svc": (
        "The same",
        "classify_ours",
        "classify_svc",
        "SVC, 5 x 5 grid by 3 folds",
        "ratio of at least 1",
    ),
    "classify-quality": (
        "Ten folds of wine, breast cancer, digits, iris: all fits",
        "quality_ours",
        "quality_svc",
        "SVC, tuned as above, with probability=True",
        "accuracy no lower, log loss and ECE lower",
    ),
    "classify-forest": (
        "The same",
        "quality_ours",
        "quality_forest",
        "random forest",
        "log loss and ECE lower",
    ),
    "classify-stream": (
        "Classifier by chunks, 1,000,000 rows in all, d = 10, 500 features: learn",
        "stream_ours",
        "stream_sgd",
        "scikit-learn Nystroem + SGDClassifier",
        "bounded memory",
    ),
}

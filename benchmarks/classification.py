"""Classification: time to a tuned model, its quality, and a million rows."""

from __future__ import annotations

import time

from benchmarks._row import Row, lower, memory, no_lower, ratio
from benchmarks._timing import best_of

D = 20
CHUNK = 50_000
GRID = {"svc__C": [0.1, 1.0, 10.0, 100.0, 1000.0], "svc__gamma": [0.001, 0.01, 0.1, 1.0, 10.0]}


def _two_classes(n):
    from sklearn.datasets import make_classification

    X, y = make_classification(n + 1000, D, n_informative=5, n_redundant=5, flip_y=0.05, random_state=0)
    return X[:n], y[:n], X[n:], y[n:]


def _tuned(model, n, repeats=2):
    """Seconds to fit, and how good it is on 1,000 other points."""
    from sklearn.metrics import log_loss

    X, y, X_test, y_test = _two_classes(n)
    times, _ = best_of(lambda: model.fit(X, y), repeats)
    quality = {"accuracy": model.score(X_test, y_test)}
    if hasattr(model, "predict_proba"):
        quality["log loss"] = log_loss(y_test, model.predict_proba(X_test))
    return {**times, "quality": quality}


def classify_ours(n):
    import kernelbayes as kb

    return _tuned(kb.ConditionalEmbeddingClassifier(ard=True, random_state=0), n)


def classify_gpc(n):
    """Fitted once: it takes minutes, and compiles nothing."""
    import numpy as np
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    return _tuned(GaussianProcessClassifier(1.0 * RBF(np.full(D, 4.0)), random_state=0), n, repeats=1)


def _svc_grid():
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    return GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID, cv=3)


def classify_svc(n):
    return _tuned(_svc_grid(), n)


# ------------------------------------------------------------------------------------------------------- quality


def calibration_error(probabilities, positions, bins=10):
    """The expected calibration error of the most probable class."""
    import numpy as np

    sure, right = probabilities.max(1), probabilities.argmax(1) == positions
    place = np.minimum((sure * bins).astype(int), bins - 1)
    return float(sum(abs((sure - right)[place == b].sum()) for b in range(bins)) / len(sure))


def _quality(fitted, sets, folds):
    """Accuracy, log loss and calibration error over the folds of each set, and on average."""
    import numpy as np
    from sklearn import datasets
    from sklearn.model_selection import StratifiedKFold

    rows, seconds = [], 0.0
    for name in sets.split(", "):
        X, y = getattr(datasets, f"load_{name.replace(' ', '_')}")(return_X_y=True)
        P, hit = np.zeros((len(y), y.max() + 1)), np.zeros(len(y), dtype=bool)
        for train, test in StratifiedKFold(folds, shuffle=True, random_state=7).split(X, y):
            start = time.perf_counter()
            model = fitted(X[train], y[train])
            seconds += time.perf_counter() - start
            P[test], hit[test] = model.predict_proba(X[test]), model.predict(X[test]) == y[test]
        rows.append((hit.mean(), -np.log(P[np.arange(len(y)), y].clip(1e-15)).mean(), calibration_error(P, y)))
    each = (f"{name} {a:.4f} {b:.4f} {c:.4f}" for name, (a, b, c) in zip(sets.split(", "), rows, strict=True))
    return {
        "seconds": seconds,
        "first": seconds,
        "quality": dict(zip(("accuracy", "log loss", "ECE"), np.mean(rows, 0).tolist(), strict=True)),
        "note": "accuracy, log loss and ECE of " + "; ".join(each),
    }


def quality_ours(**sizes):
    import kernelbayes as kb

    return _quality(lambda X, y: kb.ConditionalEmbeddingClassifier(random_state=0).fit(X, y), **sizes)


def quality_svc(**sizes):
    import warnings

    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    warnings.simplefilter("ignore", FutureWarning)  # probability=True is on its way out

    def fitted(X, y):
        best = _svc_grid().fit(X, y).best_params_
        svc = SVC(C=best["svc__C"], gamma=best["svc__gamma"], probability=True, random_state=0)
        return make_pipeline(StandardScaler(), svc).fit(X, y)

    return _quality(fitted, **sizes)


def quality_forest(**sizes):
    from sklearn.ensemble import RandomForestClassifier

    return _quality(lambda X, y: RandomForestClassifier(random_state=0).fit(X, y), **sizes)


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


def _streamed(learn, probabilities, n):
    import numpy as np

    start = time.perf_counter()
    for X, y, _ in _chunks(n // CHUNK):
        learn(X, y)
    seconds = time.perf_counter() - start
    ((X, y, truth),) = _chunks(1, seed=1)
    X, y, truth = X[:5000], y[:5000], truth[:5000]
    P = probabilities(X)
    loss, best = (-np.log(q[np.arange(5000), y]).mean() for q in (P, truth))
    quality = {"log loss": loss, "log loss of the truth": best, "error of probabilities": np.abs(P - truth).mean()}
    return {"seconds": seconds, "first": seconds, "quality": {name: float(value) for name, value in quality.items()}}


def stream_ours(n, r):
    import kernelbayes as kb

    model = kb.ConditionalEmbeddingClassifier(features=kb.Subspace(r), random_state=0)
    return _streamed(lambda X, y: model.partial_fit(X, y, classes=[0, 1, 2]), model.predict_proba, n)


def stream_sgd(n, r):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import SGDClassifier

    state = {}
    model = SGDClassifier(loss="log_loss", random_state=0)

    def learn(X, y):
        if "map" not in state:
            state["map"] = Nystroem(gamma=0.05, n_components=r, random_state=0).fit(X)
        model.partial_fit(state["map"].transform(X), y, classes=[0, 1, 2])

    return _streamed(learn, lambda X: model.predict_proba(state["map"].transform(X)), n)


_FIT = "Classifier with learned ARD, n = {n:,}, d = 20: fit"
_QUALITY = {"sets": "wine, breast cancer, digits, iris", "folds": 10}
ROWS = (
    Row(
        "classify",
        _FIT,
        classify_ours,
        classify_gpc,
        "scikit-learn GaussianProcessClassifier, ARD",
        (ratio(10),),
        why="the peer factorises an n x n matrix several times at each step of its search, ours once; a larger n would "
        "meet it",
        sizes={"n": 2000},
        quick={"n": 200},
        limit=1500.0,
    ),
    Row(
        "classify-svc",
        _FIT,
        classify_ours,
        classify_svc,
        "SVC, 5 x 5 grid by 3 folds",
        (ratio(1),),
        why="the grid has two numbers to choose, ours one lengthscale for each column; `ard=False`, or `batch_size`, would "
        "meet it",
        sizes={"n": 2000},
        quick={"n": 200},
    ),
    Row(
        "classify-quality",
        "Classifier, {folds} folds of {sets}: all fits",
        quality_ours,
        quality_svc,
        "SVC, tuned as above, with probability=True",
        (no_lower("accuracy"), lower("log loss", "ECE")),
        why="accuracies differ by a few of the points of the folds; other folds may turn them about",
        sizes=_QUALITY,
    ),
    Row(
        "classify-forest",
        "Classifier, {folds} folds of {sets}: all fits",
        quality_ours,
        quality_forest,
        "random forest, as it comes",
        (lower("log loss", "ECE"),),
        why="a forest comes with nothing to tune; ours learns its kernel anew in each fold, by a search. A kernel that is "
        "given, with `learn=None`, would be faster, and less accurate",
        sizes=_QUALITY,
    ),
    Row(
        "classify-stream",
        "Classifier by chunks, {n:,} rows in all, d = 10, {r} features: learn",
        stream_ours,
        stream_sgd,
        "scikit-learn Nystroem + SGDClassifier",
        (memory(0.7),),
        why="a chunk of features is multiplied with itself, n r^2, where a gradient step of the peer costs n r; the answer "
        "is that of all rows at once, and depends on no order or step size. Fewer features would be faster, smaller chunks "
        "take less memory",
        sizes={"n": 1_000_000, "r": 500},
    ),
)

"""Conditional embeddings, Gram matrices and their factors, a test of two samples, and what an import costs."""

from __future__ import annotations

import functools

from benchmarks._row import Row, memory, no_larger, ratio, seconds
from benchmarks._timing import best_of

# ------------------------------------------------------------------------------------------ conditional embeddings


def _regression_data(n, d, seed=0):
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + (X[:, 1] - 0.5 * X[:, 2]) ** 2 + 0.5 * rng.normal(size=n)


def _regressed(predicted, n, d, tests, repeats):
    """The time of `predicted(X, y, X_test)`, which learns and predicts, and its squared error on other points."""
    X, y = _regression_data(n, d)
    X_test, y_test = _regression_data(tests, d, seed=1)
    times, out = best_of(lambda: predicted(X, y, X_test), repeats)
    return {**times, "quality": {"error": float(((out - y_test) ** 2).mean())}}


def conditional_ours(n):
    import kernelbayes as kb

    model = kb.ConditionalEmbedding(kb.Gaussian(3.0), kb.Linear(), reg=1e-4, intercept=False)
    return _regressed(lambda X, y, X_test: model.fit(X, y).predict(X_test), n, 5, 500, 7)


def conditional_plain(n):
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve

    def gram(A, B):
        squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
        return np.exp(-np.maximum(squared, 0) / (2 * 3.0**2))

    def predicted(X, y, X_test):
        factor = cho_factor(gram(X, X) + n * 1e-4 * np.eye(n), lower=True)
        return gram(X_test, X) @ cho_solve(factor, y)

    return _regressed(predicted, n, 5, 500, 7)


def subspace_ours(n, r, repeats=2):
    import kernelbayes as kb

    model = kb.ConditionalEmbedding(
        kb.Gaussian(4.5), kb.Linear(), kb.Subspace(r), reg=1e-8, intercept=False, random_state=0
    )
    return _regressed(lambda X, y, X_test: model.fit(X, y).predict(X_test), n, 10, 5000, repeats)


def subspace_sklearn(n, r):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    ridge = Ridge(alpha=n * 1e-8, fit_intercept=False, solver="cholesky")
    model = make_pipeline(Nystroem(gamma=0.5 / 4.5**2, n_components=r, random_state=0), ridge)
    return _regressed(lambda X, y, X_test: model.fit(X, y).predict(X_test), n, 10, 5000, 2)


# ------------------------------------------------------------------------------------ Gram matrices and their factors


def gram_ours(n):
    import kernelbayes as kb

    X, _ = _regression_data(n, 5)
    return best_of(lambda: kb.Gaussian(2.0).gram(X), 9)[0]


def gram_sklearn(n):
    from sklearn.metrics.pairwise import rbf_kernel

    X, _ = _regression_data(n, 5)
    return best_of(lambda: rbf_kernel(X, gamma=0.125), 9)[0]


def cholesky_ours(n, r):
    import kernelbayes as kb

    X, _ = _regression_data(n, 5)
    times, out = best_of(lambda: kb.IncompleteCholesky(r).fit(kb.Gaussian(2.0), X), 3)
    return {**times, "quality": {"error": out.error}}


def cholesky_plain(n, r):
    """The textbook loop over one Gram column at a time, with the factor stored by columns."""
    import numpy as np

    X, _ = _regression_data(n, 5)

    def run():
        F, d = np.zeros((n, r)), np.ones(n)
        for j in range(r):
            p = d.argmax()
            k = np.exp(-((X - X[p]) ** 2).sum(1) / 8.0)
            F[:, j] = (k - F[:, :j] @ F[p, :j]) / np.sqrt(d[p])
            d -= F[:, j] ** 2
        return d.sum() / n

    times, out = best_of(run, 3)
    return {**times, "quality": {"error": float(out)}}


# -------------------------------------------------------------------------------------------------------- two samples


def _two_samples(n):
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 2)), rng.normal(0.05, 1.0, size=(n, 2))


def mmd_ours(n, permutations):
    import kernelbayes as kb

    X, Y = _two_samples(n)
    times, out = best_of(lambda: kb.mmd_test(X, Y, permutations=permutations, random_state=0), 5)
    return {**times, "quality": {"p-value": out.pvalue}}


def mmd_hyppo(n, permutations):
    from hyppo.ksample import MMD

    X, Y = _two_samples(n)
    times, out = best_of(lambda: MMD().test(X, Y, reps=permutations, workers=1, auto=False, random_state=0), 1)
    return {**times, "quality": {"p-value": float(out[1])}}


def _two_variables(n, d=5):
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, 0.1 * X + rng.normal(size=(n, d))


def hsic_ours(n, permutations):
    import kernelbayes as kb

    X, Y = _two_variables(n)
    times, out = best_of(lambda: kb.hsic_test(X, Y, permutations=permutations, random_state=0), 5)
    return {**times, "quality": {"p-value": out.pvalue}}


def hsic_hyppo(n, permutations):
    """As it is called by default: a chi-squared approximation of the null, and no permutation at all."""
    from hyppo.independence import Hsic

    X, Y = _two_variables(n)
    times, out = best_of(lambda: Hsic().test(X, Y), 5)
    return {**times, "quality": {"p-value": float(out[1])}, "note": "without permutations"}


# ------------------------------------------------------------------------------------------------------------ imports


def _imported(statement, repeats):
    """In new processes, after what most programs have imported anyway."""
    import subprocess
    import sys

    code = f"import jax, sklearn, time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    times = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(repeats)]
    return {"seconds": min(times), "first": times[0]}


def import_ours(repeats):
    """The package, which loads its names when they are used; and all of them at once."""
    everything = _imported("from kernelbayes import *", repeats)["seconds"]
    return {**_imported("import kernelbayes", repeats), "quality": {"s with every public name": everything}}


def import_equinox(repeats):
    return _imported("import equinox", repeats)


ROWS = (
    Row(
        "conditional",
        "Conditional embedding, exact, n = {n:,}, d = 5: fit and 500 predictions",
        conditional_ours,
        conditional_plain,
        "NumPy and SciPy Cholesky",
        (ratio(1), no_larger("error", within=0.01)),
        why="both spend their time in one factorisation of the same matrix, ours with pivots, which cost a little where the "
        "rank is near n; `kb.IncompleteCholesky` with fewer columns, or a smoother kernel, would meet it",
        sizes={"n": 2000},
        quick={"n": 500},
    ),
    Row(
        "subspace",
        "Subspace of {r:,}, n = {n:,}, d = 10: fit and 5,000 predictions",
        subspace_ours,
        subspace_sklearn,
        "scikit-learn Nystroem + Ridge",
        (ratio(2), memory(0.7)),
        why="nearly all of it is one product of n r^2 operations, which both hand to BLAS; what the peer wastes is to hold "
        "all features at once, and a machine with faster memory hides that. A smaller subspace would meet it",
        sizes={"n": 200_000, "r": 1000},
        quick={"n": 20_000, "r": 300},
    ),
    Row(
        "million",
        "Subspace of {r:,}, n = {n:,}, d = 10: fit and 5,000 predictions, in the memory of 200,000",
        functools.partial(subspace_ours, repeats=1),
        asked=(memory(0.7),),
        why="blocks of features are of a fixed size; only the data itself grows with n. Smaller blocks would meet it",
        sizes={"n": 1_000_000, "r": 1000},
    ),
    Row(
        "gram",
        "Gaussian Gram matrix, {n:,} x {n:,}",
        gram_ours,
        gram_sklearn,
        "scikit-learn rbf_kernel",
        (ratio(1),),
        why="both are a matrix product and an exponential of each entry, so that writing the matrix decides; smaller blocks "
        "of entries would meet it",
        sizes={"n": 5000},
        quick={"n": 2000},
    ),
    Row(
        "mmd",
        "MMD test, n = m = {n:,}, {permutations} permutations",
        mmd_ours,
        mmd_hyppo,
        "hyppo MMD",
        (ratio(100),),
        why="the peer makes the statistic anew for each permutation, ours all of them in one product with the Gram matrix: "
        "the gain grows with n and with the number of permutations, and more of either would meet it",
        sizes={"n": 1000, "permutations": 500},
    ),
    Row(
        "hsic",
        "HSIC test, n = {n:,}, d = 5, {permutations} permutations",
        hsic_ours,
        hsic_hyppo,
        "hyppo Hsic, which approximates the null",
        (ratio(1), memory(0.7)),
        why="ours is a product of thin factors for each permutation, the peer's a few matrices of all pairs and no "
        "permutation: time grows with n here and with its square there, and more pairs or fewer permutations would meet it",
        sizes={"n": 2000, "permutations": 500},
    ),
    Row(
        "hsic-large",
        "HSIC test, n = {n:,}, d = 5, {permutations} permutations",
        hsic_ours,
        asked=(seconds(20), memory(1.0)),
        why="each permutation gathers 64 numbers of each row, which memory bounds; fewer permutations would meet it",
        sizes={"n": 50_000, "permutations": 500},
    ),
    Row(
        "cholesky",
        "Pivoted Cholesky, n = {n:,}, rank {r}",
        cholesky_ours,
        cholesky_plain,
        "textbook loop in NumPy",
        (seconds(10), memory(0.7), no_larger("error", within=0.01)),
        why="a step reads all columns so far, so that time is n r^2 and bound by memory; pivots in blocks would meet it",
        sizes={"n": 20_000, "r": 300},
        quick={"n": 4000, "r": 100},
    ),
    Row(
        "import",
        "import kernelbayes, after jax and scikit-learn",
        import_ours,
        import_equinox,
        "import equinox, which most of its names need",
        (seconds(0.3),),
        why="the package loads nothing but itself, and each name what it needs when it is used; a machine with faster "
        "files would meet it",
        sizes={"repeats": 5},
        quick={"repeats": 1},
    ),
)

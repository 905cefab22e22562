"""Speed and memory beside a peer or a plain implementation, measured in one run.

    python benchmarks/run.py              # all, a few minutes
    python benchmarks/run.py gram mmd     # some

Every contender runs in a process of its own, pinned to one core with one BLAS thread, so that peak memory is its own and
thread pools do not decide the outcome. A time is the best of several; what the first call takes beyond that is shown apart
as compilation and warm-up. Ratios are peer / ours. The table is also written to benchmarks/results.md.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def best_of(function, repeats):
    """Best time, first time, and the last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), times[0], result


def smooth(X):
    return X[:, 0] + (X[:, 1] - 0.5 * X[:, 2]) ** 2


def regression_data(n, d, seed=0):
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, smooth(X) + 0.5 * rng.normal(size=n)


# ------------------------------------------------------------------------------- contenders: each returns a dict


def conditional_ours():
    import kernelbayes as kb

    X, y = regression_data(2000, 5)
    X_test, y_test = regression_data(500, 5, seed=1)
    model = kb.ConditionalEmbedding(kb.Gaussian(3.0), kb.Linear(), reg=1e-4, intercept=False)
    best, first, out = best_of(lambda: model.fit(X, y).predict(X_test), 7)
    return {"seconds": best, "first": first, "error": float(((out - y_test) ** 2).mean())}


def conditional_plain():
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve

    X, y = regression_data(2000, 5)
    X_test, y_test = regression_data(500, 5, seed=1)

    def gram(A, B):
        squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
        return np.exp(-np.maximum(squared, 0) / (2 * 3.0**2))

    def run():
        factor = cho_factor(gram(X, X) + len(X) * 1e-4 * np.eye(len(X)), lower=True)
        return gram(X_test, X) @ cho_solve(factor, y)

    best, first, out = best_of(run, 7)
    return {"seconds": best, "first": first, "error": float(((out - y_test) ** 2).mean())}


def _subspace_ours(n):
    import kernelbayes as kb

    X, y = regression_data(n, 10)
    X_test, y_test = regression_data(5000, 10, seed=1)
    model = kb.ConditionalEmbedding(
        kb.Gaussian(4.5), kb.Linear(), kb.Subspace(1000), reg=1e-8, intercept=False, random_state=0
    )
    best, first, out = best_of(lambda: model.fit(X, y).predict(X_test), 1 if n > 500_000 else 2)
    return {"seconds": best, "first": first, "error": float(((out - y_test) ** 2).mean())}


def subspace_ours():
    return _subspace_ours(200_000)


def subspace_million():
    return _subspace_ours(1_000_000)


def subspace_sklearn():
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    X, y = regression_data(200_000, 10)
    X_test, y_test = regression_data(5000, 10, seed=1)
    ridge = Ridge(alpha=200_000 * 1e-8, fit_intercept=False, solver="cholesky")
    model = make_pipeline(Nystroem(gamma=0.5 / 4.5**2, n_components=1000, random_state=0), ridge)
    best, first, out = best_of(lambda: model.fit(X, y).predict(X_test), 2)
    return {"seconds": best, "first": first, "error": float(((out - y_test) ** 2).mean())}


def gram_ours():
    import kernelbayes as kb

    X, _ = regression_data(5000, 5)
    best, first, _ = best_of(lambda: kb.Gaussian(2.0).gram(X), 9)
    return {"seconds": best, "first": first}


def gram_sklearn():
    from sklearn.metrics.pairwise import rbf_kernel

    X, _ = regression_data(5000, 5)
    best, first, _ = best_of(lambda: rbf_kernel(X, gamma=0.125), 9)
    return {"seconds": best, "first": first}


def _two_samples():
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.normal(size=(1000, 2)), rng.normal(0.05, 1.0, size=(1000, 2))


def mmd_ours():
    import kernelbayes as kb

    X, Y = _two_samples()
    best, first, out = best_of(lambda: kb.mmd_test(X, Y, permutations=500, random_state=0), 5)
    return {"seconds": best, "first": first, "pvalue": out.pvalue}


def mmd_hyppo():
    from hyppo.ksample import MMD

    X, Y = _two_samples()
    best, first, out = best_of(lambda: MMD().test(X, Y, reps=500, workers=1, auto=False, random_state=0), 1)
    return {"seconds": best, "first": first, "pvalue": float(out[1])}


def cholesky_ours():
    import kernelbayes as kb

    X, _ = regression_data(20_000, 5)
    best, first, out = best_of(lambda: kb.IncompleteCholesky(300).fit(kb.Gaussian(2.0), X), 3)
    return {"seconds": best, "first": first, "error": out.error}


def cholesky_plain():
    """The textbook loop over one Gram column at a time, with the factor stored by columns."""
    import numpy as np

    X, _ = regression_data(20_000, 5)

    def run():
        n, r = len(X), 300
        F, d = np.zeros((n, r)), np.ones(n)
        for j in range(r):
            p = d.argmax()
            k = np.exp(-((X - X[p]) ** 2).sum(1) / 8.0)
            F[:, j] = (k - F[:, :j] @ F[p, :j]) / np.sqrt(d[p])
            d -= F[:, j] ** 2
        return d.sum() / n

    best, first, out = best_of(run, 3)
    return {"seconds": best, "first": first, "error": float(out)}


def _import_seconds(statement):
    code = f"import jax, sklearn, time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5)]
    return {"seconds": min(runs), "first": runs[0]}


def import_ours():
    return _import_seconds("import kernelbayes")


def import_equinox():
    return _import_seconds("import equinox")


#: title, ours, the peer or None, what the peer is, what is asked of us
BENCHMARKS = {
    "conditional": (
        "Conditional embedding, exact, n = 2,000, d = 5: fit and 500 predictions",
        "conditional_ours",
        "conditional_plain",
        "NumPy and SciPy Cholesky",
        "ratio of at least 1",
    ),
    "subspace": (
        "Subspace of 1,000, n = 200,000, d = 10: fit and 5,000 predictions",
        "subspace_ours",
        "subspace_sklearn",
        "scikit-learn Nystroem + Ridge",
        "ratio of at least 2, under 0.7 GB",
    ),
    "million": (
        "Subspace of 1,000, n = 1,000,000, d = 10",
        "subspace_million",
        None,
        "",
        "finishes in the same memory (the data itself is 88 MB, against 18 MB)",
    ),
    "gram": (
        "Gaussian Gram matrix, 5,000 x 5,000",
        "gram_ours",
        "gram_sklearn",
        "scikit-learn rbf_kernel",
        "ratio of at least 1",
    ),
    "mmd": (
        "MMD test, n = m = 1,000, 500 permutations",
        "mmd_ours",
        "mmd_hyppo",
        "hyppo MMD",
        "ratio of at least 100",
    ),
    "cholesky": (
        "Pivoted Cholesky, n = 20,000, rank 300",
        "cholesky_ours",
        "cholesky_plain",
        "textbook loop in NumPy",
        "seconds, memory O(n r)",
    ),
    "import": (
        "import kernelbayes, after jax and scikit-learn",
        "import_ours",
        "import_equinox",
        "import equinox, which is part of it",
        "at most 0.3 s",
    ),
}


def measure(contender):
    """Run one contender in a process of its own and read back what it found, with its peak memory."""
    environment = {**os.environ, **THREADS, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(HERE / "run.py"), "--contender", contender]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def contend(contender):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    found = globals()[contender]()
    found["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps(found))


def row(name):
    title, ours, peer, peer_name, wanted = BENCHMARKS[name]
    a = measure(ours)
    b = measure(peer) if peer else None
    extra = "; ".join(
        f"{key} {a[key]:.4g}" + (f" against {b[key]:.4g}" if b else "") for key in ("error", "pvalue") if key in a
    )
    cells = [
        title,
        f"{a['seconds']:.3g} s",
        f"{max(a['first'] - a['seconds'], 0):.2g} s",
        f"{a['peak_gb']:.2f} GB",
        f"{b['seconds']:.3g} s, {b['peak_gb']:.2f} GB ({peer_name})" if b else "",
        f"**{b['seconds'] / a['seconds']:.2f}**" if b else "",
        wanted,
        extra,
    ]
    return "| " + " | ".join(cells) + " |"


def main(names):
    names = names or list(BENCHMARKS)
    titles = ("what", "ours", "compile and warm-up", "peak memory", "peer", "ratio", "asked", "also")
    header = f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"
    print(header, flush=True)
    rows = []
    for name in names:
        rows.append(row(name))
        print(rows[-1], flush=True)
    if set(names) == set(BENCHMARKS):
        machine = f"Python {platform.python_version()}, one core of {os.cpu_count()}, {platform.machine()}"
        text = (
            f"# Results\n\nWritten by `python benchmarks/run.py` on {machine}.\n\n{header}\n" + "\n".join(rows) + "\n"
        )
        (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--contender"]:
        contend(sys.argv[2])
    else:
        main(sys.argv[1:])

"""Speed and memory beside a peer or a plain implementation, measured in one run.

    python benchmarks/run.py              # all, a few minutes
    python benchmarks/run.py gram mmd     # some

Every contender runs in a process of its own, pinned to one core with one BLAS thread, so that peak memory is its own and
thread pools do not decide the outcome. A time is the best of several; what the first call takes beyond that is shown apart
as compilation and warm-up. Ratios are peer / ours. The table is also written to benchmarks/results.md, row by row.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from pathlib import Path

import classification
import filters
import inference
import quadrature
import regression
import simulation
from timing import best_of

HERE = Path(__file__).parent
ROWS = HERE / "results.json"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


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


SHORT = 0.2  # of the median distance


def _herding_problem(share):
    import numpy as np
    from scipy.spatial.distance import pdist

    X = np.random.default_rng(0).normal(size=(10_000, 2))
    return X, share * float(np.median(pdist(X[:1000])))


def _herding_result(seconds, first, X, chosen, lengthscale):
    """Every contender's distance to the full sample, computed in the same way from the points it chose."""
    import numpy as np
    from scipy.spatial.distance import cdist

    def mean(A, B):
        blocks = (np.exp(-cdist(a, B, "sqeuclidean") / (2 * lengthscale**2)).mean() for a in np.split(A, 10))
        return float(np.mean(list(blocks)))

    squared = mean(X, X) - 2 * mean(chosen, X) + mean(chosen, chosen)
    return {"seconds": seconds, "first": first, "points": len(chosen), "mmd": max(squared, 0.0) ** 0.5}


def _herding_ours(share, refine):
    import kernelbayes as kb

    X, lengthscale = _herding_problem(share)
    embedding = kb.MeanEmbedding(X, kernel=kb.Gaussian(lengthscale))
    best, first, out = best_of(lambda: embedding.herd(1000, refine=refine), 5)
    return _herding_result(best, first, X, out.points, lengthscale)


def _herding_coreax(share):
    """As it comes (single precision, no repetition), in the block size that suited it best."""
    import equinox as eqx
    import numpy as np
    from coreax import Data
    from coreax.kernels import SquaredExponentialKernel
    from coreax.solvers import KernelHerding

    X, lengthscale = _herding_problem(share)
    solver = KernelHerding(1000, kernel=SquaredExponentialKernel(length_scale=lengthscale), block_size=2000)
    reduce = eqx.filter_jit(solver.reduce)
    best, first, out = best_of(lambda: np.asarray(reduce(Data(X))[0].unweighted_indices), 5)
    return _herding_result(best, first, X, X[out], lengthscale)


def _herding_goodpoints(share):
    """Kernel thinning by halves, so to 1,250 points; Gram matrix and thinning together."""
    from goodpoints import kt
    from sklearn.metrics.pairwise import rbf_kernel

    X, lengthscale = _herding_problem(share)

    def run():
        K = rbf_kernel(X, gamma=0.5 / lengthscale**2)
        return kt.thin_K(K, K, 3, seed=0)

    best, first, out = best_of(run, 3)
    return _herding_result(best, first, X, X[out], lengthscale)


def herding_ours():
    return _herding_ours(1.0, 1)


def herding_coreax():
    return _herding_coreax(1.0)


def herding_short_ours():
    return _herding_ours(SHORT, 1)


def herding_short_coreax():
    return _herding_coreax(SHORT)


def thinning_ours():
    return _herding_ours(1.0, 2)


def thinning_goodpoints():
    return _herding_goodpoints(1.0)


def thinning_short_ours():
    return _herding_ours(SHORT, 2)


def thinning_short_goodpoints():
    return _herding_goodpoints(SHORT)


BAYES = {"lengthscale": {2: 2.0, 50: 14.0}, "reg": 1e-3, "prior_reg": 1e-3, "n": 1000, "prior": 300}


def _bayes_problem(d):
    """Pairs, prior samples and 1,000 observations: z normal, x = z + noise, a narrower prior."""
    import numpy as np

    rng = np.random.default_rng(0)
    Z = rng.normal(size=(BAYES["n"], d))
    X = Z + 0.5 * rng.normal(size=(BAYES["n"], d))
    prior = 0.3 + 0.7 * rng.normal(size=(BAYES["prior"], d))
    return X, Z, prior, X[:1000] + 0.1 * rng.normal(size=(1000, d))


def _bayes_ours(d, observations):
    import kernelbayes as kb

    X, Z, prior, observed = _bayes_problem(d)
    kernel = kb.Gaussian(BAYES["lengthscale"][d])
    rule = kb.KernelBayesRule("iw", kernel, kernel, reg=BAYES["reg"], prior_reg=BAYES["prior_reg"], normalise=None)

    def run():
        return rule.fit(X, Z).posterior(observed[:observations], prior).weights

    best, first, out = best_of(run, 9)
    return {"seconds": best, "first": first, "weight": float(out[0].sum())}


def _bayes_dense(d, observations, held=False):
    """Algorithm 1 of Xu et al. as it is printed, with LU solves; of many observations 10 are timed and scaled up.

    With `held` its Gram matrices are made beforehand.
    """
    import numpy as np

    X, Z, prior, observed = _bayes_problem(d)
    lengthscale, n = BAYES["lengthscale"][d], BAYES["n"]

    def gram(A, B):
        squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
        return np.exp(-np.maximum(squared, 0) / (2 * lengthscale**2))

    made = (gram(Z, Z), gram(X, X)) if held else None

    def posterior(x):
        L, K = made or (gram(Z, Z), gram(X, X))
        ratio = np.linalg.solve(L + n * BAYES["prior_reg"] * np.eye(n), gram(Z, prior).mean(1))
        root = np.sqrt(np.maximum(ratio, 0))
        inner = root[:, None] * K * root + BAYES["reg"] * np.eye(n)
        return root * np.linalg.solve(inner, root * gram(X, x[None])[:, 0])

    timed = min(observations, 10)
    best, first, out = best_of(lambda: [posterior(x) for x in observed[:timed]], 5 if timed == 1 else 2)
    return {
        "seconds": best * observations / timed,
        "first": first * observations / timed,
        "weight": float(out[0].sum()),
    }


def bayes_fitted_ours():
    """Of a fitted rule: what a new prior and a new observation cost."""
    import kernelbayes as kb

    X, Z, prior, observed = _bayes_problem(2)
    kernel = kb.Gaussian(BAYES["lengthscale"][2])
    rule = kb.KernelBayesRule("iw", kernel, kernel, reg=BAYES["reg"], prior_reg=BAYES["prior_reg"], normalise=None)
    rule.fit(X, Z)
    best, first, out = best_of(lambda: rule.posterior(observed[:1], prior).weights, 15)
    return {"seconds": best, "first": first, "weight": float(out[0].sum())}


def bayes_fitted_dense():
    return _bayes_dense(2, 1, held=True)


def bayes_2d_ours():
    return _bayes_ours(2, 1)


def bayes_2d_dense():
    return _bayes_dense(2, 1)


def bayes_50d_ours():
    return _bayes_ours(50, 1)


def bayes_50d_dense():
    return _bayes_dense(50, 1)


def bayes_many_ours():
    return _bayes_ours(2, 1000)


def bayes_many_dense():
    return _bayes_dense(2, 1000)


def bayes_many_50d_ours():
    return _bayes_ours(50, 1000)


def bayes_many_50d_dense():
    return _bayes_dense(50, 1000)


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
    "herding": (
        "Herding 1,000 of 10,000 points in 2-d and a sweep of exchanges, median lengthscale",
        "herding_ours",
        "herding_coreax",
        "coreax KernelHerding",
        "ratio of at least 1, MMD no larger",
    ),
    "herding-short": (
        "The same at a fifth of the lengthscale",
        "herding_short_ours",
        "herding_short_coreax",
        "coreax KernelHerding",
        "ratio of at least 1, MMD no larger",
    ),
    "thinning": (
        "Herding 1,000 of 10,000 points in 2-d and two sweeps of exchanges, median lengthscale",
        "thinning_ours",
        "thinning_goodpoints",
        "goodpoints kernel thinning",
        "ratio of at least 1, MMD no larger",
    ),
    "thinning-short": (
        "The same at a fifth of the lengthscale",
        "thinning_short_ours",
        "thinning_short_goodpoints",
        "goodpoints kernel thinning",
        "ratio of at least 1, MMD no larger",
    ),
    "bayes": (
        "Importance-weighted Bayes' rule, n = 1,000 in 2-d, fitted: posterior of one observation under a new prior",
        "bayes_fitted_ours",
        "bayes_fitted_dense",
        "the dense formula in NumPy, its Gram matrices given",
        "ratio of at least 5",
    ),
    "bayes-fit": (
        "The same with the fit, which makes and factorises the Gram matrices",
        "bayes_2d_ours",
        "bayes_2d_dense",
        "the dense formula in NumPy",
        "",
    ),
    "bayes-50d": (
        "The same with the fit in 50-d, where the Gram matrices have full rank",
        "bayes_50d_ours",
        "bayes_50d_dense",
        "the dense formula in NumPy",
        "ratio of at least 1",
    ),
    "bayes-many": (
        "The same with the fit in 2-d, 1,000 observations",
        "bayes_many_ours",
        "bayes_many_dense",
        "1,000 calls of the dense formula",
        "ratio of at least 20",
    ),
    "bayes-many-50d": (
        "The same with the fit in 50-d, 1,000 observations",
        "bayes_many_50d_ours",
        "bayes_many_50d_dense",
        "1,000 calls of the dense formula",
        "ratio of at least 20",
    ),
    "import": (
        "import kernelbayes, after jax and scikit-learn",
        "import_ours",
        "import_equinox",
        "import equinox, which is part of it",
        "at most 0.3 s",
    ),
    **filters.BENCHMARKS,
    **simulation.BENCHMARKS,
    **inference.BENCHMARKS,
    **classification.BENCHMARKS,
    **regression.BENCHMARKS,
    **quadrature.BENCHMARKS,
}


def measure(contender):
    """Run one contender in a process of its own and read back what it found, with its peak memory."""
    environment = {**os.environ, **THREADS, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(HERE / "run.py"), "--contender", contender]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[-1])


def _contender(name):
    """The function of that name, here or in one of the modules of contenders."""
    places = (sys.modules[__name__], filters, simulation, inference, classification, regression, quadrature)
    return next(getattr(place, name) for place in places if hasattr(place, name))


def contend(contender):
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    try:
        found = _contender(contender)()
    except ImportError as reason:  # a peer that is not installed, or not for this Python
        found = {"skipped": str(reason)}
    found["peak_gb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps(found))


def row(name):
    title, ours, peer, peer_name, wanted = BENCHMARKS[name]
    a = measure(ours)
    b = measure(peer) if peer else None
    if b and "skipped" in b:
        print(f"{peer_name} is left out: {b['skipped']}", file=sys.stderr, flush=True)
        b = None
    extra = "; ".join(
        f"{key} {a[key]:.4g}" + (f" against {b[key]:.4g}" if b else "")
        for key in ("points", "error", "pvalue", "mmd", "weight")
        if key in a
    )
    extra = "; ".join(filter(None, [extra, a.get("also"), f"peer: {b['also']}" if b and "also" in b else None]))
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
    kept = json.loads(ROWS.read_text()) if ROWS.exists() else {}
    for name in names:
        kept[name] = row(name)
        print(kept[name], flush=True)
        _write(kept, header)


def _write(kept, header):
    """Keep each row as soon as it is there: a row is of one run, the table may be of several."""
    machine = f"Python {platform.python_version()}, one core of {os.cpu_count()}, {platform.machine()}"
    rows = [kept[name] for name in BENCHMARKS if name in kept]
    text = f"# Results\n\nWritten by `python benchmarks/run.py` on {machine}.\n\n{header}\n" + "\n".join(rows) + "\n"
    (HERE / "results.md").write_text(text)
    ROWS.write_text(json.dumps({name: kept[name] for name in BENCHMARKS if name in kept}, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--contender"]:
        contend(sys.argv[2])
    else:
        main(sys.argv[1:])

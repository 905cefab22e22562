"""Contenders and rows of `run.py` for filters. Every setting is fixed, so that both sides do the same work."""

from __future__ import annotations

import time

from timing import best_of

REG, PRIOR_REG, TRANSITION_REG = 0.01, 1e-3, 1e-3
SCALE, LATENT_SCALE = 0.78, 0.52
STEPS = 200


def circling(steps, seed):
    """The "rotation" of Fukumizu et al. (2013): observations and states."""
    import numpy as np

    rng = np.random.default_rng(seed)
    states = np.empty((steps, 2))
    angle = 0.0
    for t in range(steps):
        states[t] = [np.cos(angle), np.sin(angle)] + 0.2 * rng.normal(size=2)
        angle = np.arctan2(states[t, 1], states[t, 0]) + 0.3
    return states + 0.2 * rng.normal(size=states.shape), states


def _model(n, rule="iw", **settings):
    import kernelbayes as kb

    chosen = {
        "kernel": kb.Gaussian(SCALE),
        "latent_kernel": kb.Gaussian(LATENT_SCALE),
        "reg": REG,
        "prior_reg": PRIOR_REG,
        "transition_reg": TRANSITION_REG,
        "tune": 0,
        "random_state": 0,
    }
    return kb.KernelBayesFilter(rule, **(chosen | settings)).fit(*circling(n, 0))


def filter_ours():
    new, truth = circling(STEPS, 1)
    best, first, track = best_of(lambda: _model(1000).filter(new), 5)
    return {"seconds": best, "first": first, "error": float(((track.mean() - truth) ** 2).sum(1).mean())}


def filter_authors():
    """Algorithm 2 of Xu et al. (2022) with Gram matrices: one n x n Cholesky factorisation at every step."""
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve

    X, Z = circling(1000, 0)
    new, truth = circling(STEPS, 1)
    n = len(X)

    def gram(A, B, scale):
        squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
        return np.exp(-np.maximum(squared, 0) / (2 * scale**2))

    def run():
        K, G, columns = gram(X, X, SCALE), gram(Z, Z, LATENT_SCALE), gram(X, new, SCALE)
        ratio = cho_factor(G + n * PRIOR_REG * np.eye(n))
        step = cho_factor(G[:-1, :-1] + (n - 1) * TRANSITION_REG * np.eye(n - 1))
        prior, means = np.full(n, 1 / n), []
        for column in columns.T:
            gamma = np.maximum(cho_solve(ratio, G @ prior), 0.0)
            root = np.sqrt(gamma / gamma.sum())
            factor = cho_factor(root[:, None] * K * root + REG * np.eye(n), overwrite_a=True, check_finite=False)
            w = root * cho_solve(factor, root * column)
            w /= w.sum()
            means.append(w @ Z)
            v = cho_solve(step, G[:-1] @ w)
            prior = np.append(0.0, v / v.sum())
        return np.array(means)

    best, first, found = best_of(run, 2)
    return {"seconds": best, "first": first, "error": float(((found - truth) ** 2).sum(1).mean())}


def _per_step(sizes, rule, **settings):
    """Milliseconds of a step for logs of several lengths."""
    new, _ = circling(STEPS, 1)
    found = []
    for n in sizes:
        model = _model(n, rule, **settings)
        model.filter(new[:3])
        found.append(1000 * best_of(lambda m=model: m.filter(new).mean(), 5)[0] / STEPS)
    text = "ms per step: " + ", ".join(f"{ms:.3g} at n = {n:,}" for n, ms in zip(sizes, found, strict=True))
    return {"seconds": found[-1] * STEPS / 1000, "first": found[-1] * STEPS / 1000, "also": text}


def filter_growth():
    import kernelbayes as kb

    return _per_step((1000, 2000, 4000, 8000, 16_000), "iw", features=kb.IncompleteCholesky(60))


def filter_subspace():
    import kernelbayes as kb

    recipes = {"features": kb.Subspace(100), "latent_features": kb.Subspace(60, "kmeans"), "reg": 1e-3}
    return _per_step((1000, 4000, 16_000, 64_000), "subspace", **recipes)


def _many():
    return [circling(30, seed)[0] for seed in range(100)]


def filter_many_together():
    sequences, model = _many(), _model(200)
    best, first, _ = best_of(lambda: model.filter(sequences), 5)
    return {"seconds": best, "first": first}


def filter_many_alone():
    sequences, model = _many(), _model(200)
    best, first, _ = best_of(lambda: [model.filter(sequence) for sequence in sequences], 3)
    return {"seconds": best, "first": first}


def filter_stream():
    """A stream of 100,000 observations, one by one; a tenth is missing."""
    import resource

    import numpy as np

    new, truth = circling(100_000, 2)
    missing = np.random.default_rng(3).random(len(new)) < 0.1
    model = _model(200)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    squared, drift = 0.0, 0.0
    for t, row in enumerate(new):
        belief = model.step(None if missing[t] else row)
        squared += float(((belief.mean() - truth[t]) ** 2).sum())
        drift = max(drift, abs(float(belief.weights.sum()) - 1.0)) if t % 100 == 0 else drift
    seconds = time.perf_counter() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    return {
        "seconds": seconds,
        "first": seconds,
        "error": squared / len(new),
        "also": f"sums of weights within {drift:.0e} of one, {grown:.0f} MB more at the end than at the start",
    }


#: title, ours, the peer or None, what the peer is, what is asked of us
BENCHMARKS = {
    "filter": (
        "Filter, rule iw, n = 1,000, 2-d: learn and filter 200 steps",
        "filter_ours",
        "filter_authors",
        "NumPy, one n x n Cholesky a step",
        "ratio of at least 10, error within 1 %",
    ),
    "filter-growth": (
        "Filter, rule iw, rank 60, n = 16,000: 200 steps",
        "filter_growth",
        None,
        "",
        "linear in n at fixed rank",
    ),
    "filter-subspace": (
        "Filter, rule subspace, n = 64,000: 200 steps and their means",
        "filter_subspace",
        None,
        "",
        "does not grow with n",
    ),
    "filter-many": (
        "Filter, rule iw, n = 200: 100 sequences of 30 steps together",
        "filter_many_together",
        "filter_many_alone",
        "ours, one by one",
        "ratio of at least 2",
    ),
    "filter-stream": (
        "Filter, rule iw, n = 200: a stream of 100,000 observations by step()",
        "filter_stream",
        None,
        "",
        "bounded memory, no drift",
    ),
}

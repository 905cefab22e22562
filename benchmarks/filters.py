"""Kernel Bayes filters. Every setting is fixed, so that both sides do the same work."""

from __future__ import annotations

import time

from benchmarks._row import Row, at_most, growth, no_larger, ratio
from benchmarks._timing import best_of

REG, PRIOR_REG, TRANSITION_REG = 0.01, 1e-3, 1e-3
SCALE, LATENT_SCALE = 0.78, 0.52


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


def _found(times, means, truth):
    return {**times, "quality": {"error": float(((means - truth) ** 2).sum(1).mean())}}


def filter_ours(n, steps):
    new, truth = circling(steps, 1)
    times, track = best_of(lambda: _model(n).filter(new), 5)
    return _found(times, track.mean(), truth)


def filter_authors(n, steps):
    """Algorithm 2 of Xu et al. (2022) with Gram matrices: one n x n Cholesky factorisation at every step."""
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve

    X, Z = circling(n, 0)
    new, truth = circling(steps, 1)

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

    times, means = best_of(run, 2)
    return _found(times, means, truth)


def _grown(sizes, steps, rule, **settings):
    """Seconds of a run with logs of several lengths, learned beforehand."""
    new, _ = circling(steps, 1)
    found = []
    for n in sizes:
        model = _model(n, rule, **settings)
        times, _ = best_of(lambda m=model: m.filter(new).mean(), 6)
        found.append((n, times["seconds"]))
    return {**times, "growth": found}


def filter_growth(n, steps):
    import kernelbayes as kb

    return _grown((n // 16, n // 8, n // 4, n // 2, n), steps, "iw", features=kb.IncompleteCholesky(60))


def filter_subspace(n, steps):
    import kernelbayes as kb

    recipes = {"features": kb.Subspace(100), "latent_features": kb.Subspace(60, "kmeans"), "reg": 1e-3}
    return _grown((n // 64, n // 16, n // 4, n), steps, "subspace", **recipes)


def _many(count):
    return [circling(30, seed)[0] for seed in range(count)]


def filter_together(n, count):
    sequences, model = _many(count), _model(n)
    return best_of(lambda: model.filter(sequences), 5)[0]


def filter_alone(n, count):
    sequences, model = _many(count), _model(n)
    return best_of(lambda: [model.filter(sequence) for sequence in sequences], 3)[0]


def filter_stream(n, steps):
    """A stream of observations, one by one; a tenth is missing."""
    import resource

    import numpy as np

    new, truth = circling(steps, 2)
    missing = np.random.default_rng(3).random(len(new)) < 0.1
    model = _model(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    squared, drift = 0.0, 0.0
    for t, row in enumerate(new):
        belief = model.step(None if missing[t] else row)
        squared += float(((belief.mean() - truth[t]) ** 2).sum())
        drift = max(drift, abs(float(belief.weights.sum()) - 1.0)) if t % 100 == 0 else drift
    seconds = time.perf_counter() - start
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    quality = {"error": squared / steps, "drift of the sum of weights": drift, "MB gained": grown}
    return {"seconds": seconds, "first": seconds, "quality": quality}


ROWS = (
    Row(
        "filter",
        "Filter, rule iw, n = {n:,}, 2-d: learn and filter {steps} steps",
        filter_ours,
        filter_authors,
        "NumPy, one n x n Cholesky a step",
        (ratio(10), no_larger("error", within=0.01)),
        why="a step costs n r^2 for rank r where the peer's costs n^3; a longer log, or `kb.IncompleteCholesky` with fewer "
        "columns, would meet it",
        sizes={"n": 1000, "steps": 200},
        quick={"n": 300, "steps": 100},
    ),
    Row(
        "filter-growth",
        "Filter, rule iw, rank 60, n = {n:,}: {steps} steps",
        filter_growth,
        asked=(growth(1, "linear in n at fixed rank"),),
        why="products of n x r fit into the cache of the processor at the smallest n and not at the largest; sizes "
        "on one side of it would meet it",
        sizes={"n": 16_000, "steps": 200},
    ),
    Row(
        "filter-subspace",
        "Filter, rule subspace, n = {n:,}: {steps} steps and their means",
        filter_subspace,
        asked=(growth(0, "does not grow with n"),),
        why="n is gone after learning; what is left of it is noise of the clock, and more steps would meet it",
        sizes={"n": 64_000, "steps": 200},
    ),
    Row(
        "filter-many",
        "Filter, rule iw, n = {n}: {count} sequences of 30 steps together",
        filter_together,
        filter_alone,
        "ours, one by one",
        (ratio(2),),
        why="what is saved is the overhead of a call, once for each sequence; more and shorter sequences would meet it",
        sizes={"n": 200, "count": 100},
        quick={"count": 20},
    ),
    Row(
        "filter-stream",
        "Filter, rule iw, n = {n}: a stream of {steps:,} observations by step()",
        filter_stream,
        asked=(at_most("drift of the sum of weights", 1e-9), at_most("MB gained", 50)),
        why="a belief holds n weights and nothing of the past; what is gained is the allocator's, and a restored model "
        "would meet it",
        sizes={"n": 200, "steps": 100_000},
    ),
)

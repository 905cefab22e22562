"""The importance-weighted Bayes' rule beside its formula as it is printed."""

from __future__ import annotations

import functools

from benchmarks._row import Row, ratio
from benchmarks._timing import best_of

LENGTHSCALE = {2: 2.0, 50: 14.0}  # by the dimension
REG, PRIOR_REG = 1e-3, 1e-3


def _problem(n, d):
    """Pairs, prior samples and observations: z normal, x = z + noise, a narrower prior."""
    import numpy as np

    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, d))
    X = Z + 0.5 * rng.normal(size=(n, d))
    prior = 0.3 + 0.7 * rng.normal(size=(300, d))
    return X, Z, prior, X + 0.1 * rng.normal(size=(n, d))


def ours(n, d, observations, held=False):
    """With `held` the rule is fitted beforehand: what a new prior and new observations cost."""
    import kernelbayes as kb

    X, Z, prior, observed = _problem(n, d)
    kernel = kb.Gaussian(LENGTHSCALE[d])
    rule = kb.KernelBayesRule("iw", kernel, kernel, reg=REG, prior_reg=PRIOR_REG, normalise=None)
    if held:
        rule.fit(X, Z)

    def run():
        fitted = rule if held else rule.fit(X, Z)
        return fitted.posterior(observed[:observations], prior).weights

    times, out = best_of(run, 15 if held else 9)
    return {**times, "quality": {"sum of weights": float(out[0].sum())}}


def dense(n, d, observations, held=False):
    """Algorithm 1 of Xu et al. as it is printed, with LU solves; of many observations 10 are timed and scaled up.

    With `held` its Gram matrices are made beforehand.
    """
    import numpy as np

    X, Z, prior, observed = _problem(n, d)

    def gram(A, B):
        squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
        return np.exp(-np.maximum(squared, 0) / (2 * LENGTHSCALE[d] ** 2))

    made = (gram(Z, Z), gram(X, X)) if held else None

    def posterior(x):
        L, K = made or (gram(Z, Z), gram(X, X))
        weighing = np.linalg.solve(L + n * PRIOR_REG * np.eye(n), gram(Z, prior).mean(1))
        root = np.sqrt(np.maximum(weighing, 0))
        inner = root[:, None] * K * root + REG * np.eye(n)
        return root * np.linalg.solve(inner, root * gram(X, x[None])[:, 0])

    timed = min(observations, 10)
    times, out = best_of(lambda: [posterior(x) for x in observed[:timed]], 5 if timed == 1 else 2)
    scaled = {key: value * observations / timed for key, value in times.items()}
    return {**scaled, "quality": {"sum of weights": float(out[0].sum())}}


def _row(name, what, d, observations, asked=(), why="", held=False, quick=None):
    return Row(
        name,
        f"Importance-weighted Bayes' rule, n = {{n:,}} in {d}-d, {what}",
        functools.partial(ours, d=d, observations=observations, held=held),
        functools.partial(dense, d=d, observations=observations, held=held),
        "the dense formula in NumPy" + (", its Gram matrices given" if held else ""),
        asked,
        why=why,
        sizes={"n": 1000},
        quick=quick,
    )


_RANK = (
    "the gain is that the rank of the Gram matrices is below n; `kb.Subspace` or `kb.IncompleteCholesky` would meet it"
)
_FACTORS = (
    "at full rank both factorise matrices of n x n for every new prior, and ours also those of the fit; "
    "`kb.Subspace` would meet it"
)
_BATCH = "one factorisation serves all observations, the rest is their products; more observations would meet it"
ROWS = (
    _row("bayes", "fitted: one posterior under a new prior", 2, 1, (ratio(5),), _RANK, held=True, quick={"n": 300}),
    _row("bayes-fit", "fit and one posterior", 2, 1),
    _row("bayes-50d", "where the rank is full: fit and one posterior", 50, 1, (ratio(1),), _FACTORS),
    _row("bayes-many", "fit and 1,000 posteriors", 2, 1000, (ratio(20),), _BATCH),
    _row("bayes-many-50d", "where the rank is full: fit and 1,000 posteriors", 50, 1000, (ratio(20),), _BATCH),
)

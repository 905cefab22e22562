"""How a subspace chooses its reference points. Each function returns `size` points for checked X (n, d)."""

from __future__ import annotations

import numpy as np
import sklearn.cluster

from .._linalg import cholesky, pivoted_cholesky, solve_lower
from .._typing import Array
from ..kernels import Kernel, dense_gram, matmul

# Herding and leverage scores look at pairs of points: beyond this many, at those of a random pool.
_POOL = 5000


def _pool(X: Array, size: int, rng: np.random.Generator) -> Array:
    most = max(_POOL, size)
    return X if len(X) <= most else X[rng.choice(len(X), most, replace=False)]


def random(kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
    """Points drawn uniformly without replacement."""
    return X[rng.choice(len(X), size, replace=False)]


def kmeans(kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
    """Centres of k-means on standardised columns."""
    if X.ndim != 2 or X.dtype.kind != "f":
        raise ValueError("method='kmeans' needs points with coordinates; use method='random' or 'herding'")
    scale = X.std(0)
    scale[scale == 0] = 1.0
    clusters = sklearn.cluster.MiniBatchKMeans(
        size, n_init=1, batch_size=max(1024, 3 * size), random_state=int(rng.integers(2**31))
    )
    return clusters.fit(X / scale).cluster_centers_ * scale


def herding(kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
    """Points taken greedily so that their mean embedding follows the sample's (Kanagawa 2016, Algorithm 6)."""
    X = _pool(X, size, rng)
    target = matmul(kernel, X, X, np.full(len(X), 1.0 / len(X)))
    sofar = np.zeros(len(X))
    chosen = np.empty(size, dtype=np.intp)
    for t in range(size):
        score = target - sofar / (t + 1)
        score[chosen[:t]] = -np.inf
        chosen[t] = score.argmax()
        sofar += kernel._gram(X, X[chosen[t] : chosen[t] + 1])[:, 0]
    return X[chosen]


def leverage(kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
    """Points drawn with probability proportional to their ridge leverage `f(x) (F' F + n reg I)^-1 f(x)`.

    The scores come from a pilot subspace of uniformly drawn points, with reg = 1 / size (Alaoui and Mahoney 2015).
    """
    X = _pool(X, size, rng)
    pilot = random(kernel, X, min(len(X), size), rng)
    K = dense_gram(kernel, pilot, pilot)
    found = pivoted_cholesky(np.diagonal(K), lambda p: K[:, p], rank=len(K), tol=1e-10)
    F = solve_lower(found.factor[found.pivots], dense_gram(kernel, pilot[found.pivots], X))
    L = cholesky(F @ F.T, "the leverage scores' matrix", len(X) / size * float(kernel._diag(X).mean()))
    score = (solve_lower(L, F) ** 2).sum(0) + 1e-12
    return X[rng.choice(len(X), size, replace=False, p=score / score.sum())]


SELECTIONS = {"random": random, "kmeans": kmeans, "herding": herding, "leverage": leverage}

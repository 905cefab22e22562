"""How a subspace chooses its reference points. Each function returns `size` points for checked X (n, d)."""

from __future__ import annotations

import numpy as np

from .._linalg import cholesky, solve_lower
from .._typing import Array
from ..kernels import Kernel, dense_gram
from ._herding import Pool, herd

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
    if not kernel._takes_vectors:
        raise ValueError("method='kmeans' needs points with coordinates; use method='random' or 'herding'")
    import sklearn.cluster  # slow to import, and needed only here

    scale = X.std(0)
    scale[scale == 0] = 1.0
    clusters = sklearn.cluster.MiniBatchKMeans(
        size,
        n_init=1,  # type: ignore[arg-type]
        batch_size=max(1024, 3 * size),
        random_state=int(rng.integers(2**31)),
    )
    return np.asarray(clusters.fit(X / scale).cluster_centers_, dtype=np.float64) * scale


def herding(kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
    """Points taken greedily so that their mean embedding follows the sample's (Kanagawa 2016, equations 2.16-2.17)."""
    X = _pool(X, size, rng)
    pool = Pool((kernel, X))
    return X[herd(pool, pool.embed(np.full(len(X), 1.0 / len(X))), size, repeat=False)]


def leverage(kernel: Kernel, X: Array, size: int, rng: np.random.Generator) -> Array:
    """Points drawn with probability proportional to their ridge leverage, the diagonal of `K (K + n reg I)^-1`.

    With a pilot sample J of `size` uniformly drawn points, and reg the mean of the diagonal over size, the leverage is
    proportional to `k(x, x) - k(x, J) (K(J, J) + size reg I)^-1 k(J, x)`: what the pilot does not explain (Musco and
    Musco 2017).
    """
    X = _pool(X, size, rng)
    pilot = random(kernel, X, size, rng)
    diagonal = kernel._diag(X)
    L = cholesky(dense_gram(kernel, pilot, pilot), "the pilot sample's Gram matrix", float(diagonal.mean()))
    left = diagonal - (solve_lower(L, dense_gram(kernel, pilot, X)) ** 2).sum(0)
    score = np.maximum(left, 1e-12 * diagonal.max())
    return X[rng.choice(len(X), size, replace=False, p=score / score.sum())]


SELECTIONS = {"random": random, "kmeans": kmeans, "herding": herding, "leverage": leverage}

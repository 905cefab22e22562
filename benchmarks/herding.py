"""A few points for many: herding beside coreax, and beside kernel thinning by goodpoints."""

from __future__ import annotations

import functools

from benchmarks._row import Row, no_larger, ratio
from benchmarks._timing import best_of


def _problem(n, share):
    """Points and a lengthscale, given as a share of their median distance."""
    import numpy as np
    from scipy.spatial.distance import pdist

    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, share * float(np.median(pdist(X[:1000])))


def _result(times, X, chosen, lengthscale):
    """Every contender's distance to the full sample, computed in the same way from the points it chose."""
    import numpy as np
    from scipy.spatial.distance import cdist

    def mean(A, B):
        blocks = (np.exp(-cdist(a, B, "sqeuclidean") / (2 * lengthscale**2)).sum() for a in np.array_split(A, 10))
        return float(sum(blocks)) / (len(A) * len(B))

    squared = mean(X, X) - 2 * mean(chosen, X) + mean(chosen, chosen)
    return {**times, "quality": {"MMD": max(squared, 0.0) ** 0.5, "points": len(chosen)}}


def herded(n, points, share, refine):
    import kernelbayes as kb

    X, lengthscale = _problem(n, share)
    embedding = kb.MeanEmbedding(X, kernel=kb.Gaussian(lengthscale))
    times, out = best_of(lambda: embedding.herd(points, refine=refine), 5)
    return _result(times, X, out.points, lengthscale)


def coreax(n, points, share):
    """As it comes (single precision, no repetition), in the block size that suited it best."""
    import equinox as eqx
    import numpy as np
    from coreax import Data
    from coreax.kernels import SquaredExponentialKernel
    from coreax.solvers import KernelHerding

    X, lengthscale = _problem(n, share)
    solver = KernelHerding(points, kernel=SquaredExponentialKernel(length_scale=lengthscale), block_size=2000)
    reduce = eqx.filter_jit(solver.reduce)
    times, out = best_of(lambda: np.asarray(reduce(Data(X))[0].unweighted_indices), 5)
    return _result(times, X, X[out], lengthscale)


def goodpoints(n, points, share):
    """Kernel thinning by halves, to as few points as are not fewer than asked; Gram matrix and thinning together."""
    from goodpoints import kt
    from sklearn.metrics.pairwise import rbf_kernel

    X, lengthscale = _problem(n, share)
    halves = (n // points).bit_length() - 1

    def run():
        K = rbf_kernel(X, gamma=0.5 / lengthscale**2)
        return kt.thin_K(K, K, halves, seed=0)

    times, out = best_of(run, 3)
    return _result(times, X, X[out], lengthscale)


def _row(name, sweeps, share, refine, peer, peer_name, why, quick=None):
    """Two peers, each at two lengthscales."""
    return Row(
        name,
        f"Herding {{points:,}} of {{n:,}} points in 2-d and {sweeps}, lengthscale {share:g} of the median distance",
        functools.partial(herded, share=share, refine=refine),
        functools.partial(peer, share=share),
        peer_name,
        (ratio(1), no_larger("MMD")),
        why=why,
        sizes={"n": 10_000, "points": 1000},
        quick=quick,
    )


_COREAX = functools.partial(
    _row,
    sweeps="a sweep of exchanges",
    refine=1,
    peer=coreax,
    peer_name="coreax KernelHerding",
    why="the peer works in single precision, with half the memory to read at each step, and without exchanges, which take "
    "as long as the herding and lower the MMD; refine=0 would meet the ratio, further sweeps the MMD",
)
_GOODPOINTS = functools.partial(
    _row,
    sweeps="two sweeps of exchanges",
    refine=2,
    peer=goodpoints,
    peer_name="goodpoints kernel thinning",
    why="the peer stops at more points and needs no exchanges; one sweep would meet the ratio, more sweeps the MMD",
)
ROWS = (
    _COREAX("herding", share=1.0, quick={"n": 2000, "points": 200}),
    _COREAX("herding-short", share=0.2),
    _GOODPOINTS("thinning", share=1.0, quick={"n": 2000, "points": 200}),
    _GOODPOINTS("thinning-short", share=0.2),
)

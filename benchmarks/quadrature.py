"""Contenders and rows of `run.py` for quadrature: leverages and determinantal draws of a large pool, and one integral."""

from __future__ import annotations

import itertools

from timing import best_of

POOL, DENSE = 20_000, 4000
NODES, DRAWN = 200, 100
RANK = {2: 500, 5: 1000}  # of the features from which a k-DPP is drawn, by the dimension of the pool
SMALL, SUBSET, DRAWS = 10, 4, 5000  # of the check against all subsets
EVALUATIONS, DIMENSION, SEEDS = 100, 3, 9


def _pool(d):
    import numpy as np

    return np.random.default_rng(0).normal(size=(POOL, d))


def _gram(A, B):
    import numpy as np

    squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
    return np.exp(-0.5 * np.maximum(squared, 0))


def _worst_case(X, points, weights):
    """Of every contender in the same way: the distance to the embedding of the whole pool."""
    import numpy as np

    mu = np.concatenate([_gram(part, X).mean(1) for part in np.split(X, 20)])
    squared = mu.mean() - 2 * weights @ _gram(points, X).mean(1) + weights @ _gram(points, points) @ weights
    return float(np.sqrt(max(squared, 0.0)))


# ---------------------------------------------------------------------------------------------------- leverages


def _leverage_ours(d):
    """As it comes, and its parts: the spectrum is that of a subspace of 4 n."""
    import kernelbayes as kb

    X, kernel = _pool(d), kb.Gaussian(1.0)
    best, first, rule = best_of(lambda: kb.quadrature(kernel, X, NODES, "leverage", random_state=0), 3)
    made, _, spectrum = best_of(lambda: kb.mercer(kernel, X, features=kb.Subspace(4 * NODES), random_state=0), 2)
    reg = spectrum.regulariser(NODES / 3)
    drawn, _, _ = best_of(lambda: spectrum.sample_leverage(NODES, reg, random_state=0), 3)
    text = (
        f"of these {made:.2f} s for the spectrum and {drawn:.2f} s for a draw, the rest for the norm of the embedding"
    )
    return {"seconds": best, "first": first, "error": _worst_case(X, rule.points, rule.weights), "also": text}


def _leverage_dense(d):
    """The formula of the notes on the first points of the pool, and weights for the embedding of these."""
    import numpy as np

    import kernelbayes as kb

    X = _pool(d)
    small = X[:DENSE]
    # the regulariser is given: to look for it would take an eigendecomposition
    reg = kb.mercer(kb.Gaussian(1.0), X, features=kb.Subspace(4 * NODES), random_state=0).regulariser(NODES / 3)
    rng = np.random.default_rng(0)

    def run():
        K = _gram(small, small)
        leverages = np.diagonal(np.linalg.solve(K + DENSE * reg * np.eye(DENSE), K))
        chosen = rng.choice(DENSE, NODES, replace=False, p=leverages / leverages.sum())
        inner = K[np.ix_(chosen, chosen)] + 1e-10 * np.eye(NODES)
        return small[chosen], np.linalg.solve(inner, K[chosen].mean(1))

    best, first, (points, weights) = best_of(run, 2)
    text = f"on {DENSE:,} points; {POOL:,} would take {(POOL / DENSE) ** 3:.0f} times as long, by n^3"
    return {"seconds": best, "first": first, "error": _worst_case(X, points, weights), "also": text}


def leverage_2d_ours():
    return _leverage_ours(2)


def leverage_2d_dense():
    return _leverage_dense(2)


def leverage_5d_ours():
    return _leverage_ours(5)


def leverage_5d_dense():
    return _leverage_dense(5)


# ---------------------------------------------------------------------------------------- determinantal processes


def _spectrum(d):
    import kernelbayes as kb

    return kb.mercer(kb.Gaussian(1.0), _pool(d), features=kb.Subspace(RANK[d]), random_state=0)


def _small():
    """A pool of which all subsets can be gone through."""
    import numpy as np

    return np.random.default_rng(1).normal(size=(SMALL, 2))


def _inclusions():
    """The probability of each point of the small pool to be in a k-DPP sample: a sum over all subsets."""
    import numpy as np

    K = _gram(_small(), _small())
    subsets = [list(s) for s in itertools.combinations(range(SMALL), SUBSET)]
    mass = np.array([np.linalg.det(K[np.ix_(s, s)]) for s in subsets])
    return np.bincount(np.concatenate(subsets), np.repeat(mass / mass.sum(), SUBSET), SMALL)


def _agreement(draw):
    """How far the frequencies of points in many draws are from what they should be."""
    import numpy as np

    frequencies = np.bincount(np.concatenate([draw() for _ in range(DRAWS)]), minlength=SMALL) / DRAWS
    expected = _inclusions()
    worst = np.abs(frequencies - expected).max()
    noise = np.sqrt(expected * (1 - expected) / DRAWS).max()
    return f"inclusion probabilities of a small pool off by at most {worst:.4f} in {DRAWS:,} draws (their noise {noise:.4f})"


def _agreement_ours():
    import numpy as np

    import kernelbayes as kb

    pool, rng = _small(), np.random.default_rng(0)
    spectrum = kb.mercer(kb.Gaussian(1.0), pool)

    def draw():
        points = spectrum.sample_dpp(SUBSET, kind="k-dpp", random_state=rng)
        return (points[:, None] == pool).all(-1).argmax(1)

    return _agreement(draw)


def _agreement_dppy():
    import numpy as np
    from dppy.finite_dpps import FiniteDPP

    process, rng = FiniteDPP("likelihood", L=_gram(_small(), _small())), np.random.RandomState(0)
    return _agreement(lambda: process.sample_exact_k_dpp(SUBSET, random_state=rng))


def _dpp_ours(d, fitted):
    import numpy as np

    rng = np.random.default_rng(0)
    spectrum = _spectrum(d)

    def run():
        held = spectrum if fitted else _spectrum(d)
        return held.sample_dpp(DRAWN, kind="k-dpp", random_state=rng)

    best, first, points = best_of(run, 10 if fitted else 3)
    assert len(np.unique(points, axis=0)) == DRAWN
    return {"seconds": best, "first": first, "also": _agreement_ours() if fitted else f"rank {len(spectrum)}"}


def _features(d):
    """The bare features of `_spectrum`, not decomposed: the peer does that itself, and must not pay for it twice."""
    import numpy as np

    import kernelbayes as kb
    from kernelbayes.features._landmark import factored

    X = _pool(d)
    features, gram = factored(*kb.Subspace(RANK[d])._fit(kb.Gaussian(1.0), X, np.random.default_rng(0)))
    return gram.factor if hasattr(gram, "factor") else features._coordinates(X)


def _dpp_dppy(d, fitted):
    """In its dual form, of the very features of ours; it prints what it does, which must not get into our output."""
    import contextlib
    import sys

    import numpy as np
    from dppy.finite_dpps import FiniteDPP

    rng = np.random.RandomState(0)

    def process():
        return FiniteDPP("likelihood", L_gram_factor=np.ascontiguousarray(_features(d).T))

    def run():
        held = kept if fitted else process()
        return held.sample_exact_k_dpp(DRAWN, random_state=rng)

    with contextlib.redirect_stdout(sys.stderr):
        kept = process()
        kept.sample_exact_k_dpp(DRAWN, random_state=rng)  # which decomposes it, once
        best, first, chosen = best_of(run, 5 if fitted else 2)
        text = _agreement_dppy() if fitted else ""
    assert len(set(chosen)) == DRAWN
    return {"seconds": best, "first": first, **({"also": text} if text else {})}


def dpp_2d_ours():
    return _dpp_ours(2, fitted=True)


def dpp_2d_dppy():
    return _dpp_dppy(2, fitted=True)


def dpp_5d_ours():
    return _dpp_ours(5, fitted=True)


def dpp_5d_dppy():
    return _dpp_dppy(5, fitted=True)


def dpp_fit_ours():
    return _dpp_ours(5, fitted=False)


def dpp_fit_dppy():
    return _dpp_dppy(5, fitted=False)


# -------------------------------------------------------------------------------------------------- one integral


def _genz():
    from kernelbayes.experiments._integrands import genz

    return genz("Gaussian peak", DIMENSION)


def integral_ours():
    import numpy as np

    import kernelbayes as kb

    wanted, seeds = _genz(), itertools.count()
    found = []

    def run():
        found.append(kb.integrate(wanted.f, wanted.distribution, EVALUATIONS, random_state=next(seeds), progress=False))

    best, first, _ = best_of(run, SEEDS)
    error = np.median([abs(integral.mean() - wanted.truth) for integral in found])
    text = f"error and sd are medians of {SEEDS}: sd {np.median([integral.std() for integral in found]):.2g}"
    return {"seconds": best, "first": first, "error": float(error), "also": text}


def integral_sklearn():
    """A Gaussian process with learned lengthscales on as many Sobol points, its mean integrated in closed form."""
    import warnings

    import numpy as np
    from scipy.special import erf
    from scipy.stats import qmc
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    wanted = _genz()
    warnings.simplefilter("ignore", ConvergenceWarning)

    def sobol(seed):
        return qmc.Sobol(DIMENSION, seed=seed).random(128)[:EVALUATIONS]

    found, seeds = [], itertools.count()

    def run():
        X = sobol(next(seeds))
        y = wanted.f(X)
        kernel = ConstantKernel(1.0) * RBF(np.full(DIMENSION, 0.2))  # from 0.5 the search ends at the smallest allowed
        model = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
        scale, l = model.kernel_.k1.constant_value, model.kernel_.k2.length_scale
        sides = erf((1.0 - X) / (np.sqrt(2.0) * l)) + erf(X / (np.sqrt(2.0) * l))
        means = scale * np.prod(l * np.sqrt(np.pi / 2.0) * sides, axis=1)
        found.append(y.mean() + y.std() * float(means @ model.alpha_))

    best, first, _ = best_of(run, SEEDS)
    plain = np.median([abs(wanted.f(sobol(seed)).mean() - wanted.truth) for seed in range(SEEDS)])
    text = f"the plain mean of the same points errs by {plain:.2g}"
    error = float(np.median(np.abs(np.array(found) - wanted.truth)))
    return {"seconds": best, "first": first, "error": error, "also": text}


#: title, ours, the peer or None, what the peer is, what is asked of us
BENCHMARKS = {
    "leverage": (
        f"Leverage nodes and optimal weights, n = {NODES} of a pool of {POOL:,} in 2-d",
        "leverage_2d_ours",
        "leverage_2d_dense",
        f"dense formula in NumPy, on {DENSE:,} of them",
        "ratio of at least 1, error no larger",
    ),
    "leverage-5d": (
        "The same in 5-d",
        "leverage_5d_ours",
        "leverage_5d_dense",
        f"dense formula in NumPy, on {DENSE:,} of them",
        "ratio of at least 1, error no larger",
    ),
    "dpp": (
        f"A k-DPP draw of {DRAWN} from a pool of {POOL:,} in 2-d, features decomposed",
        "dpp_2d_ours",
        "dpp_2d_dppy",
        "DPPy, dual form of the same features",
        "ratio of at least 1",
    ),
    "dpp-5d": (
        "The same in 5-d",
        "dpp_5d_ours",
        "dpp_5d_dppy",
        "DPPy, dual form of the same features",
        "ratio of at least 1",
    ),
    "dpp-fit": (
        "The same in 5-d with the features, made in the same way, and their decomposition",
        "dpp_fit_ours",
        "dpp_fit_dppy",
        "DPPy, dual form of the same features",
        "ratio of at least 1",
    ),
    "integral": (
        f"Integral of a Gaussian peak in {DIMENSION}-d from {EVALUATIONS} evaluations, kernel learned",
        "integral_ours",
        "integral_sklearn",
        "scikit-learn Gaussian process, integrated",
        "error no larger",
    ),
}

"""Quadrature: leverages and determinantal draws of a large pool, and one integral."""

from __future__ import annotations

import functools
import itertools

from benchmarks._row import Row, no_larger, ratio, seconds
from benchmarks._timing import best_of

RANK = {2: 500, 5: 1000}  # of the features from which a k-DPP is drawn, by the dimension of the pool
SMALL, SUBSET = 10, 4  # of the check against all subsets
DIMENSION, SEEDS = 3, 9  # of the integral


def _pool(pool, d):
    import numpy as np

    return np.random.default_rng(0).normal(size=(pool, d))


def _gram(A, B):
    import numpy as np

    squared = (A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T
    return np.exp(-0.5 * np.maximum(squared, 0))


def _worst_case(X, points, weights):
    """Of every contender in the same way: the distance to the embedding of the whole pool."""
    import numpy as np

    mu = np.concatenate([_gram(part, X).mean(1) for part in np.array_split(X, 20)])
    squared = mu.mean() - 2 * weights @ _gram(points, X).mean(1) + weights @ _gram(points, points) @ weights
    return float(np.sqrt(max(squared, 0.0)))


# ---------------------------------------------------------------------------------------------------- leverages


def leverage_ours(pool, nodes, d):
    """As it comes, and its parts: the spectrum is that of a subspace of 4 n."""
    import kernelbayes as kb

    X, kernel = _pool(pool, d), kb.Gaussian(1.0)
    times, rule = best_of(lambda: kb.quadrature(kernel, X, nodes, "leverage", random_state=0), 3)
    made, spectrum = best_of(lambda: kb.mercer(kernel, X, features=kb.Subspace(4 * nodes), random_state=0), 2)
    reg = spectrum.regulariser(nodes / 3)
    drawn, _ = best_of(lambda: spectrum.sample_leverage(nodes, reg, random_state=0), 3)
    parts = f"{made['seconds']:.2f} s for the spectrum and {drawn['seconds']:.2f} s for a draw"
    return {
        **times,
        "quality": {"worst-case error": _worst_case(X, rule.points, rule.weights)},
        "note": f"of these {parts}, the rest for the norm of the embedding",
    }


def leverage_dense(pool, nodes, d):
    """The formula of the notes on the first points of the pool, and weights for the embedding of these."""
    import numpy as np

    import kernelbayes as kb

    X, n = _pool(pool, d), pool // 5
    small = X[:n]
    # the regulariser is given: to look for it would take an eigendecomposition
    reg = kb.mercer(kb.Gaussian(1.0), X, features=kb.Subspace(4 * nodes), random_state=0).regulariser(nodes / 3)
    rng = np.random.default_rng(0)

    def run():
        K = _gram(small, small)
        leverages = np.diagonal(np.linalg.solve(K + n * reg * np.eye(n), K))
        chosen = rng.choice(n, nodes, replace=False, p=leverages / leverages.sum())
        inner = K[np.ix_(chosen, chosen)] + 1e-10 * np.eye(nodes)
        return small[chosen], np.linalg.solve(inner, K[chosen].mean(1))

    times, rule = best_of(run, 2)
    return {
        **times,
        "quality": {"worst-case error": _worst_case(X, *rule)},
        "note": f"on {n:,} points; {pool:,} would take {(pool / n) ** 3:.0f} times as long, by n^3",
    }


# ---------------------------------------------------------------------------------------- determinantal processes


def _spectrum(pool, d):
    import kernelbayes as kb

    return kb.mercer(kb.Gaussian(1.0), _pool(pool, d), features=kb.Subspace(RANK[d]), random_state=0)


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


def _agreement(draw, checks):
    """How far the frequencies of points in many draws are from what they should be."""
    import numpy as np

    frequencies = np.bincount(np.concatenate([draw() for _ in range(checks)]), minlength=SMALL) / checks
    expected = _inclusions()
    worst = np.abs(frequencies - expected).max()
    noise = np.sqrt(expected * (1 - expected) / checks).max()
    return {"quality": {"inclusions of a small pool off by": float(worst), "their noise": float(noise)}}


def _agreement_ours(checks):
    import numpy as np

    import kernelbayes as kb

    pool, rng = _small(), np.random.default_rng(0)
    spectrum = kb.mercer(kb.Gaussian(1.0), pool)

    def draw():
        points = spectrum.sample_dpp(SUBSET, kind="k-dpp", random_state=rng)
        return (points[:, None] == pool).all(-1).argmax(1)

    return _agreement(draw, checks)


def _agreement_dppy(checks):
    import numpy as np
    from dppy.finite_dpps import FiniteDPP

    process, rng = FiniteDPP("likelihood", L=_gram(_small(), _small())), np.random.RandomState(0)
    return _agreement(lambda: process.sample_exact_k_dpp(SUBSET, random_state=rng), checks)


def dpp_ours(pool, drawn, checks, d, fitted):
    import numpy as np

    rng = np.random.default_rng(0)
    spectrum = _spectrum(pool, d)

    def run():
        held = spectrum if fitted else _spectrum(pool, d)
        return held.sample_dpp(drawn, kind="k-dpp", random_state=rng)

    times, points = best_of(run, 10 if fitted else 3)
    assert len(np.unique(points, axis=0)) == drawn
    return {**times, **(_agreement_ours(checks) if fitted else {"note": f"rank {len(spectrum)}"})}


def _features(pool, d):
    """The bare features of `_spectrum`, not decomposed: the peer does that itself, and must not pay for it twice."""
    import numpy as np

    import kernelbayes as kb
    from kernelbayes.features._landmark import factored

    X = _pool(pool, d)
    features, gram = factored(*kb.Subspace(RANK[d])._fit(kb.Gaussian(1.0), X, np.random.default_rng(0)))
    return gram.factor if hasattr(gram, "factor") else features._coordinates(X)


def dpp_dppy(pool, drawn, checks, d, fitted):
    """In its dual form, of the very features of ours."""
    import numpy as np
    from dppy.finite_dpps import FiniteDPP

    rng = np.random.RandomState(0)

    def process():
        return FiniteDPP("likelihood", L_gram_factor=np.ascontiguousarray(_features(pool, d).T))

    def run():
        held = kept if fitted else process()
        return held.sample_exact_k_dpp(drawn, random_state=rng)

    kept = process()
    kept.sample_exact_k_dpp(drawn, random_state=rng)  # which decomposes it, once
    times, chosen = best_of(run, 5 if fitted else 2)
    assert len(set(chosen)) == drawn
    return {**times, **(_agreement_dppy(checks) if fitted else {})}


# -------------------------------------------------------------------------------------------------- one integral


def _genz():
    from kernelbayes.experiments._integrands import genz

    return genz("Gaussian peak", DIMENSION)


def integral_ours(n):
    import numpy as np

    import kernelbayes as kb

    wanted, seeds = _genz(), itertools.count()
    found = []

    def run():
        found.append(kb.integrate(wanted.f, wanted.distribution, n, random_state=next(seeds), progress=False))

    times, _ = best_of(run, SEEDS)
    error = np.median([abs(integral.mean() - wanted.truth) for integral in found])
    sd = np.median([integral.std() for integral in found])
    return {
        **times,
        "quality": {"error": float(error), "sd": float(sd)},
        "note": f"error and sd are medians of {SEEDS}",
    }


def integral_sklearn(n):
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
        return qmc.Sobol(DIMENSION, seed=seed).random(128)[:n]

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

    times, _ = best_of(run, SEEDS)
    plain = np.median([abs(wanted.f(sobol(seed)).mean() - wanted.truth) for seed in range(SEEDS)])
    error = np.median(np.abs(np.array(found) - wanted.truth))
    return {**times, "quality": {"error": float(error), "error of the plain mean": float(plain)}}


def _leverage(name, d, quick=None):
    return Row(
        name,
        f"Leverage nodes and optimal weights, n = {{nodes}} of a pool of {{pool:,}} in {d}-d",
        functools.partial(leverage_ours, d=d),
        functools.partial(leverage_dense, d=d),
        "dense formula in NumPy, on a fifth of them",
        (seconds(10), ratio(1), no_larger("worst-case error")),
        why="the norm of the embedding is a sum over all pairs of the pool, for the error that is reported; "
        "a smaller pool would meet it",
        sizes={"pool": 20_000, "nodes": 200},
        quick=quick,
    )


def _dpp(name, what, d, fitted, why, quick=None):
    return Row(
        name,
        f"A k-DPP draw of {{drawn}} from a pool of {{pool:,}} in {d}-d, {what}",
        functools.partial(dpp_ours, d=d, fitted=fitted),
        functools.partial(dpp_dppy, d=d, fitted=fitted),
        "DPPy, dual form of the same features",
        (ratio(1),),
        why=why,
        sizes={"pool": 20_000, "drawn": 100, "checks": 5000},
        quick=quick,
    )


_DRAW = "a draw reads the features of the pool once for each point, on both sides; a lower rank would meet it"
ROWS = (
    _leverage("leverage", 2, quick={"pool": 4000, "nodes": 50}),
    _leverage("leverage-5d", 5),
    _dpp("dpp", "features decomposed", 2, True, _DRAW, quick={"pool": 4000, "drawn": 50, "checks": 200}),
    _dpp("dpp-5d", "features decomposed", 5, True, _DRAW),
    _dpp(
        "dpp-fit",
        "with the features, made in the same way, and their decomposition",
        5,
        False,
        "both spend most of their time on the same decomposition of the features; a lower rank would meet it",
    ),
    Row(
        "integral",
        f"Integral of a Gaussian peak in {DIMENSION}-d from {{n}} evaluations, kernel learned",
        integral_ours,
        integral_sklearn,
        "scikit-learn Gaussian process, integrated",
        (no_larger("error"),),
        why="the function costs nothing, so that all of the time is spent on choosing kernel and nodes, and on the error; "
        "where an evaluation takes longer than that, it does not count. Errors are medians of a few seeds, and more "
        "evaluations would lower them",
        sizes={"n": 100},
        quick={"n": 30},
    ),
)

"""Bad weather: public calls under random bad input give finite numbers, or a refusal that names the argument, in time.

An *entry* is a public call written as a small function of named arguments. The default of an argument is its *climate*:
what it may be given when the weather is fair, and what when it is foul. A case is an entry, a size, and a word for the
weather of each argument, from which the input is built, so that the line that a failure prints runs again as it is:

    from tests.test_weather import run
    run("mmd", tall=12, wide=2, X="times 1e-200, float32", Y="fair")

The suite tries a few cases of each entry. `python -m tests.test_weather --examples 300` tries 300 of each, goes on after
failures, and counts them; `--entry mmd` keeps to one entry.
"""

# ruff: noqa: B008 (the default of an argument is its climate)
from __future__ import annotations

import argparse
import collections
import decimal
import fractions
import inspect
import linecache
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import equinox as eqx
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse
import sklearn
from scipy import stats

import kernelbayes as kb

SECONDS = 30  # of CPU for one case; the slowest fair one takes about one
OWN_WARNINGS = "the optimiser stopped early|the features learned nothing|the first chunk has"
NAMES_OF_OURS = ("FactorisationError", "NoClosedForm", "SimulationError", "NotFittedError")


# ------------------------------------------------------------------------------------------------ weather


def rng_of(*words):
    return np.random.default_rng([sum(word.encode()) for word in map(str, words)])


def spoil(value):
    def spoiled(X):
        X = X.astype(float)
        X.flat[X.size // 2 : X.size // 2 + 1] = value
        return X

    return spoiled


def masked(X):
    return np.ma.masked_array(X, mask=np.arange(X.size).reshape(X.shape) == X.size // 2)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def one_constant(X):
    X = X.copy()
    X[..., :1] = 3.0
    return X


# Two steps may be taken one after the other: what the numbers are, and then how they are held.
NUMBERS = {
    "NaN": spoil(np.nan),
    "inf": spoil(np.inf),
    "-inf": spoil(-np.inf),
    "all NaN": lambda X: X * np.nan,
    "outlier": spoil(1e12),
    "far outlier": spoil(1e200),
    "duplicates": lambda X: np.repeat(X[: (len(X) + 1) // 2], 2, axis=0)[: len(X)],
    "constant": np.ones_like,
    "zero": np.zeros_like,
    "constant column": one_constant,
    "offset 1e8": lambda X: X + 1e8,
    "offset 1e16": lambda X: X + 1e16,
    "nearly constant": lambda X: 1.0 + 1e-15 * X,
    "whole": lambda X: np.round(X * 3),
    "integers": lambda X: np.round(X * 3).astype(int),
    "large integers": lambda X: (X * 2**61).astype(np.int64),
    "bytes": lambda X: np.round(np.abs(X)).astype(np.uint8),
    "booleans": lambda X: X > 0,
    "one column too many": lambda X: X if X.ndim < 2 else np.concatenate([X, X[:, :1]], axis=1),
    "one row too few": lambda X: X[1:],
    "one row": lambda X: X[:1],
    "two rows": lambda X: X[:2],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[..., :0],
    "a third dimension": lambda X: X[..., None],
    "flat": np.ravel,
    "alternating": lambda X: np.where(np.arange(len(X))[(slice(None), *(None,) * (X.ndim - 1))] % 2, X, -X),
}
FORMS = {
    "list": lambda X: X.tolist(),
    "tuple": lambda X: tuple(X.tolist()),
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "other byte order": lambda X: X.astype(float).astype(">f8"),
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1],
    "read-only": read_only,
    "broadcast": lambda X: np.broadcast_to(X[:1], X.shape),
    "matrix": lambda X: np.asmatrix(X) if X.ndim < 3 else X,
    "masked": masked,
    "nothing masked": np.ma.masked_array,
    "objects": lambda X: X.astype(object),
    "objects with None": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 0, None, X.astype(object)),
    "numbers as text": lambda X: X.astype(str),
    "text": lambda X: np.full(X.shape, "word"),
    "raw bytes": lambda X: np.full(X.shape, b"word"),
    "complex": lambda X: X + 1j,
    "complex without imaginary part": lambda X: X.astype(complex),
    "dates": lambda X: np.full(X.shape, "2026-01-01", dtype="datetime64[s]") + np.arange(X.size).reshape(X.shape),
    "dates missing": lambda X: np.full(X.shape, "NaT", dtype="datetime64[s]"),
    "durations": lambda X: np.full(X.shape, 5, dtype="timedelta64[s]"),
    "records": lambda X: np.zeros(X.shape, dtype=[("a", float), ("b", int)]),
    "dict of columns": lambda X: {"a": X.tolist(), "b": X.tolist()},
    "sparse": lambda X: scipy.sparse.csr_array(X) if X.ndim < 3 else X,
    "ragged": lambda X: [*X.tolist(), [1.0, 2.0, 3.0, 4.0, 5.0]],
    "iterator": lambda X: iter(X.tolist()),
    "0-d": lambda X: np.array(1.5),
}
WRONG = {
    "None": None,
    "dict": {"a": 1},
    "empty dict": {},
    "empty list": [],
    "list of nothing": [[]],
    "text itself": "points.csv",
    "class": kb.Gaussian,
    "function": lambda *anything: None,
    "module": np,
    "a number": 1.5,
    "a set": {1.0, 2.0},
    "a slice": slice(3),
    "a kernel": kb.Gaussian(),
    "an object": object(),
    "Ellipsis": ...,
}
SINGLE = {
    "zero ": 0.0,
    "minus one": -1,
    "nan": np.nan,
    "infinite": np.inf,
    "minus infinite": -np.inf,
    "denormal": 5e-324,
    "1e-300": 1e-300,
    "1e-120": 1e-120,
    "1e-30": 1e-30,
    "1e-9": 1e-9,
    "1e9": 1e9,
    "1e30": 1e30,
    "1e120": 1e120,
    "1e300": 1e300,
    "10**400": 10**400,
    "True": True,
    "number as text": "1.0",
    "two numbers": [1.0, 2.0],
    "array of one": np.array([1.0]),
    "0-d array": np.array(0.5),
    "0-d int array": np.array(2),
    "float32 number": np.float32(0.5),
    "int64 number": np.int64(2),
    "Fraction": fractions.Fraction(1, 2),
    "Decimal": decimal.Decimal("0.5"),
    "complex number": 1 + 1j,
    "2.5": 2.5,
    "3.0": 3.0,
    "billion": 10**9,
    "10**15": 10**15,
    "2**63": 2**63,
    "masked number": np.ma.masked,
    "NaT": np.datetime64("NaT", "s"),
}
KERNELS = {
    "rough": kb.Laplace(0.7),
    "Matern": kb.Matern(2.5, 0.9),
    "rational": kb.RationalQuadratic(1.0, 0.5),
    "sum": kb.Gaussian(0.5) + 0.1 * kb.Linear(),
}
ODD_KERNELS = {
    "per column": kb.Gaussian([1.0, 2.0]),
    "five columns": kb.Gaussian(np.ones(5)),
    "very short": kb.Gaussian(1e-30),
    "very long": kb.Matern(1.5, 1e30),
    "shortest": kb.Laplace(1e-99),
    "longest": kb.RationalQuadratic(1e99, 1.0),
    "linear": kb.Linear(),
    "steep": kb.Polynomial(9, 1.0, 1.0),
    "Brownian": kb.Brownian(),
    "periodic": kb.PeriodicSobolev(2),
    "infinite polynomial": kb.InfinitePolynomial(),
    "labels": kb.Delta(),
    "histogram": kb.HistogramIntersection(),
    "sets": kb.SetKernel(),
    "precomputed": kb.PrecomputedKernel(np.eye(12)),
    "not positive definite": kb.FunctionKernel(lambda a, b: float(np.sum(np.subtract(a, b)))),
    "returns NaN": kb.FunctionKernel(lambda a, b: np.nan),
    "mapped": kb.MappedKernel(np.tanh, kb.Gaussian()),
    "mapped to NaN": kb.MappedKernel(lambda X: X * np.nan, kb.Gaussian()),
    "second column": kb.Gaussian().on(1),
    "tiny": 1e-99 * kb.Gaussian(),
    "giant": 1e99 * kb.Gaussian(),
}


def raises(X):
    raise KeyError("a mistake in the user's function")


FUNCTIONS = {"first column": lambda X: np.asarray(X)[:, 0], "table": lambda X: np.asarray(X) ** 2}
ODD_FUNCTIONS = {
    "NaN from f": lambda X: np.full(len(X), np.nan),
    "one number from f": lambda X: 1.0,
    "None from f": lambda X: None,
    "text from f": lambda X: ["a"] * len(X),
    "complex from f": lambda X: np.ones(len(X)) * 1j,
    "too few from f": lambda X: np.ones(len(X) - 1),
    "three dimensions from f": lambda X: np.ones((len(X), 2, 2)),
    "integers from f": lambda X: np.arange(len(X)),
    "huge from f": lambda X: np.full(len(X), 1e300),
    "booleans from f": lambda X: np.asarray(X)[:, 0] > 0,
    "list from f": lambda X: [1.0] * len(X),
    "masked from f": lambda X: np.ma.masked_array(np.ones(len(X)), mask=np.arange(len(X)) == 0),
}
OF_TWO = {f"{word} of two": lambda a, b, f=f: f(np.atleast_2d(b)) for word, f in ODD_FUNCTIONS.items()}
DISTRIBUTIONS = {"normal": stats.norm(), "uniform": stats.uniform(), "of two columns": [stats.norm(), stats.uniform()]}
ODD_DISTRIBUTIONS = {
    "Cauchy": stats.cauchy(),
    "narrow": stats.norm(0, 1e-200),
    "wide": stats.norm(0, 1e200),
    "far away": stats.norm(1e15, 1.0),
    "NaN scale": stats.norm(0, np.nan),
    "negative scale": stats.norm(0, -1),
    "no width": stats.uniform(0, 0),
    "discrete": stats.poisson(3),
    "not frozen": stats.norm,
    "multivariate": stats.multivariate_normal(np.zeros(2), np.eye(2)),
    "mixture": kb.Mixture([stats.norm(), stats.norm(3.0)]),
    "beta": stats.beta(0.3, 0.3),
    "points": np.linspace(-1, 1, 12),
}


class Climate:
    """What an argument may be given. Words are drawn by `fair` and `foul`, and `build` makes the input from one."""

    def __init__(self, fair, foul, scaled=False, but=()):
        wrong = {word: value for word, value in WRONG.items() if word not in but}
        self.fair, self.table = dict(fair), {**fair, **foul, **wrong}
        foul = st.sampled_from(sorted({*foul, *wrong}))
        self.foul = st.one_of(foul, SCALES.map(lambda k: f"1e{k}")) if scaled else foul

    def build(self, word, name, tall, wide):
        value = self.table[word] if word in self.table else float(word)
        return iter(range(3)) if word == "iterator" else value


SCALES = st.integers(-320, 308)


class Points(Climate):
    """A table (tall, wide) of normal numbers, or of a fixed width, or flat; times a scale, spoiled, held in some form."""

    def __init__(self, width=None, low=None, whole=False):
        self.width, self.low, self.whole = width, low, whole
        self.fair = {"fair": None}
        numbers = st.one_of(st.sampled_from(sorted(NUMBERS)), SCALES.map(lambda k: f"times 1e{k}"))
        forms = st.sampled_from(sorted(FORMS))
        both = st.tuples(numbers, forms).map(", ".join)
        self.foul = st.one_of(numbers, numbers, forms, forms, both, st.sampled_from(sorted(WRONG)))

    def build(self, word, name, tall, wide):
        if word in WRONG:
            return WRONG[word]
        width = wide if self.width is None else self.width
        X = rng_of(name, tall).normal(size=(tall, width) if width else tall)
        X = np.abs(X) % 1.0 if self.low is not None else X
        X = (np.arange(X.size) % 3).reshape(X.shape) if self.whole else X
        for step in word.split(", "):
            if step.startswith("times "):
                with np.errstate(all="ignore"):
                    X = X * float(step[6:])
            elif step != "fair":
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    X = (NUMBERS[step] if step in NUMBERS else FORMS[step])(X)
        return X


POINTS, FLAT, UNIT, LABELS = Points(), Points(width=0), Points(low=0.0), Points(width=0, whole=True)
NUMBER = Climate({"0.5": 0.5, "0.1": 0.1, "2": 2}, SINGLE, scaled=True)
SHARE = Climate({"half": 0.5, "most": 0.9}, SINGLE | {"one": 1, "none": 0}, scaled=True)
COUNT = Climate({"3": 3, "2": 2}, SINGLE)
SEED = Climate({"seed 0": 0}, SINGLE | {"RandomState": np.random.RandomState(0), "Generator": np.random.default_rng(0)})
FLAG = Climate({"yes": True, "no": False}, {})
KERNEL = Climate(KERNELS, ODD_KERNELS)
FUNCTION = Climate(FUNCTIONS, ODD_FUNCTIONS | {"raises": raises}, but=("class", "a kernel"))
DISTRIBUTION = Climate(DISTRIBUTIONS, ODD_DISTRIBUTIONS)


def words(*choices):
    return Climate(
        {word: word for word in choices if word is not None}, {"unknown": "unknown", "upper": choices[0].upper()}
    )


RECIPE = Climate(
    {"exact": kb.Exact(), "Cholesky": kb.IncompleteCholesky(4), "subspace": kb.Subspace(5)},
    {
        "Fourier": kb.RandomFourier(6),
        "one-hot": kb.OneHot(),
        "many": kb.Subspace(1000),
        "herded": kb.Subspace(3, method="herding"),
        "rank one": kb.IncompleteCholesky(1),
        "network": kb.Neural(kb.MLP(2, 3, (4,), random_state=0)),
        "recipe class": kb.Exact,
    },
)


# ------------------------------------------------------------------------------------------------ entries

WIDE = rng_of("good").normal(size=(12, 4))
GOOD = WIDE[:, :2]
K = kb.Gaussian(1.0)
ENTRIES = {}


def entry(call):
    """Add a call to the table. What stands before two underscores in an argument is its name in the library."""
    ENTRIES[call.__name__] = call
    return call


def shares(weights):
    """Positive weights that sum to one in each row; foul ones that are no such table as they are."""
    if (
        not isinstance(weights, np.ndarray)
        or weights.dtype != float
        or not weights.size
        or not np.isfinite(weights).all()
    ):
        return weights
    with np.errstate(all="ignore"):
        return np.abs(weights) / np.abs(weights).sum(-1, keepdims=True)


def decoded(embedding):
    return embedding.mean(), embedding.std(), embedding.interval(0.9), embedding.ess()


@entry
def gaussian(X=POINTS, Y=POINTS, lengthscale=NUMBER):
    kernel = kb.Gaussian(lengthscale)
    return kernel.gram(X, Y), kernel.diag(X), kernel.gram(X)


@entry
def laplace(X=POINTS, Y=POINTS, lengthscale=NUMBER):
    return kb.Laplace(lengthscale).gram(X, Y)


@entry
def matern(X=POINTS, Y=POINTS, lengthscale=NUMBER, nu=Climate({"3/2": 1.5, "5/2": 2.5}, SINGLE)):
    return kb.Matern(nu, lengthscale).gram(X, Y)


@entry
def rational_quadratic(X=POINTS, lengthscale=NUMBER, alpha=NUMBER):
    return kb.RationalQuadratic(lengthscale, alpha).gram(X)


@entry
def linear(X=POINTS, Y=POINTS, offset=NUMBER):
    return kb.Linear(offset).gram(X, Y), kb.Linear(offset).diag(X)


@entry
def polynomial(X=POINTS, degree=COUNT, offset=NUMBER, scale=NUMBER):
    return kb.Polynomial(degree, offset, scale).gram(X)


@entry
def infinite_polynomial(X=UNIT, alpha=NUMBER):
    return kb.InfinitePolynomial(alpha).gram(0.5 * X if isinstance(X, np.ndarray) and X.dtype == float else X)


@entry
def brownian(X=UNIT, Y=UNIT, hurst=SHARE):
    return kb.Brownian(hurst).gram(X, Y), kb.Brownian(hurst).diag(X)


@entry
def periodic(X=UNIT, order=COUNT):
    return kb.PeriodicSobolev(order).gram(X)


@entry
def delta(X=LABELS, Y=LABELS):
    return kb.Delta().gram(X, Y)


@entry
def histogram(X=UNIT, Y=UNIT):
    return kb.HistogramIntersection().gram(X, Y)


@entry
def pyramid(X=Points(width=4, low=0.0), levels=Climate({"1": 1, "0": 0}, SINGLE)):
    return kb.SpatialPyramid(levels).gram(X)


@entry
def precomputed(matrix=Points(width=12), X=LABELS):
    matrix = matrix @ matrix.T if type(matrix) is np.ndarray and matrix.dtype == float and matrix.ndim == 2 else matrix
    return kb.PrecomputedKernel(matrix).gram(X)


@entry
def function_kernel(function=Climate({"equal": lambda a, b: float(np.all(a == b))}, OF_TWO, but=("class",)), X=LABELS):
    return kb.FunctionKernel(function).gram(X)


@entry
def mapped(
    map=Climate({"tanh": np.tanh}, ODD_FUNCTIONS | {"raises": raises}, but=("class", "a kernel")),
    kernel=KERNEL,
    X=POINTS,
):
    return kb.MappedKernel(map, kernel).gram(X)


@entry
def sets(X=POINTS, X__second=POINTS, base=KERNEL, lengthscale=NUMBER):
    pair = [P for P in (X, X__second) if not hasattr(P, "__next__")]
    return kb.SetKernel(base, lengthscale).gram(pair)


@entry
def kernel_algebra(X=POINTS, scale=NUMBER, column=Climate({"first": 0, "second": 1}, SINGLE), kernel=KERNEL):
    return (scale * K + kernel * K.on(column)).gram(X)


@entry
def matmul(X=POINTS, Y=POINTS, V=POINTS, kernel=KERNEL):
    return kernel.matmul(X, Y, V) if isinstance(kernel, kb.Kernel) else 0.0


@entry
def median_lengthscale(X=POINTS, per_column=FLAG):
    return kb.median_lengthscale(X, per_column=per_column)


@entry
def exact(X=POINTS, X__new=POINTS, kernel=KERNEL, tol=NUMBER):
    return kb.Exact(tol).fit(kernel, X).transform(X__new)


@entry
def cholesky(X=POINTS, X__new=POINTS, kernel=KERNEL, rank=COUNT, tol=NUMBER):
    return kb.IncompleteCholesky(rank, tol).fit(kernel, X).transform(X__new)


@entry
def subspace(
    X=POINTS,
    kernel=KERNEL,
    size=COUNT,
    method=words("random", "kmeans", "herding", "leverage"),
    whiten=FLAG,
    tol=NUMBER,
    random_state=SEED,
):
    return (
        kb.Subspace(size, method, whiten, tol).fit(kernel, X, random_state=random_state).transform(GOOD[:, :1] * X[:1])
    )


@entry
def fourier(X=POINTS, kernel=KERNEL, size=Climate({"6": 6, "4": 4}, SINGLE), random_state=SEED):
    return kb.RandomFourier(size).fit(kernel, X, random_state=random_state).transform(X)


@entry
def one_hot(X=LABELS, kernel=Climate({"Delta": kb.Delta()}, KERNELS | ODD_KERNELS)):
    return kb.OneHot().fit(kernel, X).transform(X)


@entry
def network_of(inputs=COUNT, outputs=COUNT, widths=Climate({"(4,)": (4,), "none ": ()}, SINGLE), random_state=SEED):
    network = kb.MLP(inputs, outputs, widths, random_state=random_state)
    return np.asarray(network(np.ones(inputs, dtype=np.float32)))


@entry
def embedding(points=POINTS, weights=FLAT, kernel=KERNEL, level=SHARE, q=SHARE):
    found = kb.MeanEmbedding(points, weights, kernel)
    return found.mean(), found.cov(), found.std(), found.interval(level), found.quantile(q), found.norm(), found.ess()


@entry
def default_embedding(points=POINTS, X=POINTS, X__grid=POINTS, bandwidth=NUMBER):
    found = kb.MeanEmbedding(points)
    return found(X), found.density(X__grid), found.density(X__grid, bandwidth), found.norm()


@entry
def density(points=POINTS, weights=FLAT, X=POINTS):
    return kb.MeanEmbedding(points, weights).density(X)


@entry
def box(points=POINTS, lower=Climate({"-1": -1.0, "below": None}, SINGLE), upper=NUMBER, x=NUMBER):
    found = kb.MeanEmbedding(points, kernel=K)
    return found.prob(lower, upper), found.prob(upper=upper), found.cdf(x)


@entry
def moments(points=POINTS, order=COUNT, central=FLAG):
    return kb.MeanEmbedding(points, kernel=K).moment(order, central)


@entry
def modes(
    points=POINTS, weights=FLAT, kernel=KERNEL, method=words("weight", "density", "fixed-point"), bandwidth=NUMBER
):
    found = kb.MeanEmbedding(points, weights, kernel)
    return found.mode(), found.mode(method, bandwidth), found.preimage()


@entry
def herding(points=POINTS, weights=FLAT, kernel=KERNEL, n=COUNT, candidates=POINTS, refine=COUNT, repeat=FLAG):
    found = kb.MeanEmbedding(points, np.abs(weights) if isinstance(weights, np.ndarray) else weights, kernel)
    return found.herd(n, candidates, refine=refine, repeat=repeat).points


@entry
def moved(points=POINTS, n=COUNT, random_state=SEED):
    return kb.MeanEmbedding(points, kernel=K).herd(n, continuous=True, random_state=random_state).points


@entry
def sampled(points=POINTS, weights=FLAT, n=COUNT, components=COUNT, random_state=SEED):
    found = kb.MeanEmbedding(points, weights, K)
    mixture = kb.MeanEmbedding(points, kernel=K).mixture(components, random_state)
    return found.sample(n, random_state), mixture.mean(), mixture.covariance()


@entry
def resampled(points=POINTS, weights=FLAT, n=COUNT, distinct=Climate({"2": 2}, SINGLE), always=FLAG):
    return kb.resample(kb.MeanEmbedding(points, weights, K), n, distinct=distinct, always=always).points


@entry
def subset(X=POINTS, Y=FLAT, n=COUNT, kernel=KERNEL, refine=COUNT):
    return kb.herd_subset(X, Y, n, kernel=kernel, refine=refine), kb.herd_subset(X, Y, n)


@entry
def embedding_algebra(points=POINTS, points__other=POINTS, kernel=KERNEL, factor=NUMBER, f=FUNCTION):
    a, b = kb.MeanEmbedding(points, kernel=kernel), kb.MeanEmbedding(points__other, kernel=kernel)
    both = factor * a - b
    return a.inner(b), a.distance(b), both.norm(), a.expect(f), (a + b).normalise().weights


@entry
def analytic(
    distribution=DISTRIBUTION,
    kernel=Climate({"Gaussian": K, "rough": kb.Laplace(0.7)}, KERNELS | ODD_KERNELS),
    level=SHARE,
):
    found = kb.AnalyticEmbedding(distribution, kernel)
    return (
        found.mean(),
        found.norm(),
        found.interval(level),
        found(found.sample(3, 0)),
        found.herd(3, random_state=0).points,
    )


@entry
def embedded(distribution=DISTRIBUTION, kernel=KERNEL, n=COUNT, random_state=SEED):
    found = kb.embed(distribution, kernel, n=n, random_state=random_state)
    return found.norm(), found.mean()


@entry
def mixed(
    components=Climate({"two": [stats.norm(), stats.norm(2.0)]}, DISTRIBUTIONS | ODD_DISTRIBUTIONS),
    weights=FLAT,
    X=Points(width=1),
):
    found = kb.Mixture(components, shares(weights[:2]) if isinstance(weights, (np.ndarray, list)) else weights)
    return found.mean(), found.covariance(), found.density(X), found.sample(3, 0)


@entry
def mmd(X=POINTS, Y=POINTS, kernel=Climate(KERNELS, ODD_KERNELS), unbiased=FLAG):
    return kb.mmd(X, Y, kernel, unbiased=unbiased), kb.mmd(X, Y)


@entry
def mmd_test(X=POINTS, Y=POINTS, permutations=COUNT, random_state=SEED):
    found = kb.mmd_test(X, Y, permutations=permutations, random_state=random_state)
    return found.statistic, found.pvalue, found.null


@entry
def hsic(X=POINTS, Y=FLAT, kernel_x=KERNEL, kernel_y=KERNEL):
    return kb.hsic(X, Y, kernel_x, kernel_y), kb.hsic(X, Y)


@entry
def hsic_test(X=POINTS, Y=POINTS, permutations=COUNT, random_state=SEED):
    found = kb.hsic_test(X, Y, permutations=permutations, random_state=random_state)
    return found.statistic, found.pvalue, found.null


@entry
def covariance(X=POINTS, kernel=KERNEL, weights=FLAT, centred=FLAG, features=RECIPE, count=COUNT):
    found = kb.Covariance(X, kernel, weights=weights, centred=centred, features=features)
    return found.norm(), found.eigenvalues(count), found.eigenfunctions(X, count)


def first(f):
    """The first column of what a function returns, if it is one that returns a table."""
    return (lambda X: f(X)[:, 0]) if f is FUNCTIONS["table"] else f


@entry
def cross_covariance(X=POINTS, Y=POINTS, kernel_x=KERNEL, kernel_y=KERNEL, coefficients=FLAT, f=FUNCTION, g=FUNCTION):
    found = kb.CrossCovariance(X, Y, kernel_x, kernel_y, coefficients=coefficients)
    return found.norm(), found.singular_values(), found.expect(first(f), first(g))


@entry
def conditional(X=POINTS, Y=FLAT, X__new=POINTS, kernel=KERNEL, reg=NUMBER, features=RECIPE, level=SHARE):
    model = kb.ConditionalEmbedding(kernel, None, features, reg, random_state=0).fit(X, Y)
    return (
        model.predict(X__new),
        model.interval(X__new, level),
        model.weights(X__new),
        *decoded(model.embed(X__new[:1])),
    )


@entry
def conditional_of_table(X=POINTS, Y=POINTS, f=FUNCTION, intercept=FLAG, random_state=SEED):
    model = kb.ConditionalEmbedding(K, reg=0.1, intercept=intercept, random_state=random_state).fit(X, Y)
    return (
        model.predict(X),
        model.expect(f, X),
        model.push(kb.MeanEmbedding(WIDE[:, : model.X_.shape[1]], kernel=K)).weights,
    )


@entry
def conditional_chosen(X=POINTS, Y=FLAT, X__new=POINTS, learn=words("loo", "validation"), ard=FLAG):
    model = kb.ConditionalEmbedding(learn=learn, ard=ard, random_state=0).fit(X, Y)
    return model.predict(X__new), model.reg_, model.kernel_.lengthscale


@entry
def density_ratio(numerator=POINTS, denominator=POINTS, X=POINTS, kernel=KERNEL, reg=NUMBER, alpha=SHARE):
    model = kb.DensityRatio(kernel, None, reg, alpha, random_state=0).fit(numerator, denominator)
    return model.predict(X), model.weights_, model.divergence()


@entry
def density_ratio_chosen(numerator=POINTS, denominator=POINTS, X=POINTS, random_state=SEED):
    model = kb.DensityRatio(random_state=random_state).fit(numerator, denominator)
    return model.predict(X), model.weights_, model.divergence()


RULES = words("iw", "kbr", "kbr-a2", "kbr-b1", "subspace")


@entry
def bayes(X=POINTS, Z=POINTS, observed=POINTS, prior=POINTS, rule=RULES, kernel=KERNEL, reg=NUMBER, prior_reg=NUMBER):
    model = kb.KernelBayesRule(rule, kernel, K, reg=reg, prior_reg=prior_reg, random_state=0).fit(X, Z)
    found = model.posterior(observed, prior)
    return found.mean(), found.interval(0.9)


@entry
def bayes_one(X=FLAT, Z=FLAT, observed=NUMBER, rule=RULES, alpha=SHARE, normalise=words("prior", "divide")):
    model = kb.KernelBayesRule(
        rule, K, K, reg=0.1, prior_reg=0.1, alpha=alpha if rule == "iw" else 0.0, normalise=normalise
    )
    found = model.fit(X, Z).posterior(observed, stats.norm())
    return found.mean(), found.std(), found.interval(0.9)


@entry
def bayes_chosen(x=POINTS, z=FLAT, observed=POINTS, prior=Climate(DISTRIBUTIONS, ODD_DISTRIBUTIONS)):
    found = kb.bayes_rule(prior, x, z, observed, random_state=0)
    return found.mean(), found.interval(0.9)


@entry
def bayes_filter(
    observations=POINTS,
    states=POINTS,
    observations__new=POINTS,
    kernel=KERNEL,
    reg=NUMBER,
    prior_reg=NUMBER,
    level=SHARE,
):
    model = kb.KernelBayesFilter(
        kernel=kernel, latent_kernel=K, reg=reg, prior_reg=prior_reg, transition_reg=0.1, tune=0, random_state=0
    ).fit(observations, states)
    track = model.filter(observations__new)
    return track.mean(), track.interval(level), track.weights


@entry
def bayes_filter_chosen(
    observations=FLAT,
    states=POINTS,
    controls=FLAT,
    steps=COUNT,
    tune=Climate({"0": 0}, {"nan": np.nan, "-1": -1, "text": "2"}),
):
    model = kb.KernelBayesFilter(tune=tune, random_state=0).fit(observations, states, controls)
    return model.filter(observations, controls).mean(), model.predict(steps, controls[:steps]).mean()


@entry
def stepwise(observation=Points(width=2), initial=POINTS, times=FLAT):
    model = kb.KernelBayesFilter(
        kernel=K, latent_kernel=K, reg=0.1, prior_reg=0.1, transition_reg=0.1, tune=0, random_state=0
    ).fit(GOOD, GOOD)
    one = observation[0] if isinstance(observation, (np.ndarray, list, tuple)) and len(observation) else observation
    rows = np.sort(times) if isinstance(times, np.ndarray) and times.ndim == 1 else times
    return model.reset(initial).step(one).mean(), model.filter(GOOD[: np.size(times)], times=rows).mean()


def drift(rng, states):
    return 0.9 * states + 0.1 * rng.normal(size=np.shape(states))


@entry
def monte_carlo_filter(
    observations=POINTS,
    states=POINTS,
    observations__new=POINTS,
    transition=Climate({"drift": drift}, OF_TWO),
    particles=COUNT,
    herded=COUNT,
    reg=NUMBER,
):
    model = kb.KernelMonteCarloFilter(
        transition,
        kernel=K,
        latent_kernel=K,
        reg=reg,
        prior_reg=0.1,
        particles=particles,
        herded=herded,
        tune=0,
        random_state=0,
    )
    return model.fit(observations, states).filter(observations__new).mean()


@entry
def track(points=POINTS, weights=Points(width=12), level=SHARE, truth=POINTS, q=SHARE, n=COUNT):
    found = kb.Track(points, shares(weights), K)
    score = found.score(truth, level)
    return (
        found.mean(),
        found.cov(),
        found.interval(level),
        found.quantile(q),
        found.sample(n, 0),
        score.mse,
        score.crps,
    )


@entry
def prior(theta=POINTS, z=POINTS, n=COUNT, kind=words("halton", "sobol", "random"), random_state=SEED):
    found = kb.Prior(a=stats.norm(), b=(-10.0, 10.0))
    inside = found.contains(theta)
    return found.density(theta), found.from_gaussian(z), found.design(n, kind), found.sample(n, random_state), inside


@entry
def prior_of(
    a=DISTRIBUTION,
    b=Climate(
        {"bounds": (0.0, 1.0)},
        SINGLE
        | ODD_DISTRIBUTIONS
        | {"empty": (1.0, 1.0), "falling": (1, 0), "infinite": (0, np.inf), "far": (-1e300, 1e300), "NaN": (0, np.nan)},
    ),
):
    found = kb.Prior(a=a, b=b)
    theta = found.sample(3, 0)
    return theta, found.log_density(theta), found.to_gaussian(theta), found.from_gaussian(found.to_gaussian(theta))


PRIOR = kb.Prior(a=stats.norm(0, 3), b=stats.norm(0, 3))


@entry
def infer(
    parameters=Points(width=2),
    outputs=POINTS,
    observed=NUMBER,
    method=words("kelfi", "dme", "kbr", "k-abc", "rejection"),
    epsilon=NUMBER,
    random_state=SEED,
):
    outputs = (
        np.asarray(outputs)[:, 0]
        if isinstance(outputs, np.ndarray) and outputs.ndim == 2 and outputs.shape[1]
        else outputs
    )
    settings = {
        "kelfi": dict(learn=None, epsilon=epsilon, lengthscale=1.0, reg=0.01),
        "rejection": dict(epsilon=epsilon),
    }
    settings["dme"] = settings["kelfi"]
    extra = settings.get(method, {}) if isinstance(method, str) else {}
    found = kb.infer(
        prior=PRIOR,
        observed=observed,
        method=method,
        parameters=parameters,
        outputs=outputs,
        random_state=random_state,
        **extra,
    )
    return found.mean(), found.std(), found.interval(0.9), found.sample(5, 0), found.density([[0.0, 0.0]])


@entry
def infer_settings(reg=NUMBER, lengthscale=NUMBER, n=COUNT, level=SHARE, q=SHARE):
    found = kb.infer(
        prior=PRIOR,
        observed=0.0,
        parameters=GOOD,
        outputs=GOOD.sum(1),
        learn=None,
        epsilon=0.5,
        lengthscale=lengthscale,
        reg=reg,
    )
    return (
        found.mean(),
        found.interval(level),
        found.quantile(q),
        found.sample(n, 0),
        found.herd(n, 0),
        found.density(GOOD),
    )


@entry
def infer_by_running(
    simulations=COUNT, observed=NUMBER, rounds=Climate({"1": 1}, SINGLE), design=words("halton", "sobol", "random")
):
    found = kb.infer(
        lambda a, b: a + b,
        PRIOR,
        observed,
        simulations,
        "rejection",
        rounds=rounds,
        design=design,
        progress=False,
        random_state=0,
    )
    return found.mean(), found.sample(3, 0)


@entry
def simulate(
    simulator=Climate(
        {"sum ": lambda theta: np.sum(theta)},
        {
            "NaN from f": lambda theta: np.nan,
            "None from f": lambda theta: None,
            "raises": raises,
            "text from f": lambda t: "a",
        },
    ),
    parameters=POINTS,
    budget=COUNT,
    max_seconds=NUMBER,
    random_state=SEED,
):
    parameters = GOOD if isinstance(parameters, type) else parameters  # a class may be called, as a design is
    found = kb.simulate(
        simulator,
        parameters,
        budget=budget,
        max_seconds=max_seconds,
        random_state=random_state,
        progress=False,
        pass_dict=False,
    )
    return found.parameters, found.outputs


@entry
def classifier(X=POINTS, y=LABELS, X__new=POINTS, kernel=KERNEL, reg=NUMBER, sample_weight=FLAT):
    heavy = (
        np.abs(sample_weight)
        if isinstance(sample_weight, np.ndarray) and sample_weight.dtype == float
        else sample_weight
    )
    model = kb.ConditionalEmbeddingClassifier(kernel, reg=reg, random_state=0).fit(X, y, heavy)
    return model.predict_proba(X__new), model.decision_probabilities(X__new), model.entropy(X__new)


@entry
def classifier_chosen(X=POINTS, y=LABELS, multiplier=NUMBER, calibration=words("loo"), class_weight=words("balanced")):
    model = kb.ConditionalEmbeddingClassifier(
        multiplier=multiplier, calibration=calibration, class_weight=class_weight, random_state=0
    ).fit(X, y)
    return model.predict_proba(X), model.reg_


@entry
def classifier_network(
    X=POINTS, y=LABELS, reg=NUMBER, epochs=COUNT, learning_rate=NUMBER, validation=SHARE, batch_size=COUNT
):
    model = kb.ConditionalEmbeddingNetwork(
        reg=reg,
        epochs=epochs,
        learning_rate=learning_rate,
        validation=validation,
        batch_size=batch_size,
        progress=False,
        random_state=0,
    )
    return model.fit(X, y).predict_proba(X)


@entry
def task_gp(
    X=POINTS, Y=FLAT, Y_task=FLAT, z_task=FLAT, X__new=POINTS, kernel=KERNEL, noise=NUMBER, mediator_noise=NUMBER
):
    model = kb.TaskTransformedGP(kernel, K, noise=noise, mediator_noise=mediator_noise, learn=None, random_state=0)
    mean, std = model.fit(X, Y, Y_task, z_task).predict(X__new, return_std=True)
    return mean, std, model.sample(X__new, 2, 0), model.left_out()


@entry
def task_gp_chosen(X=POINTS, Y=FLAT, Y_task=FLAT, z_task=FLAT, n=COUNT):
    model = kb.TaskTransformedGP(random_state=0).fit(X, Y, Y_task, z_task)
    return model.predict(WIDE[:, : model.X_.shape[1]], return_std=True), model.sample(model.X_, n, 0)


@entry
def deconditional(
    X=POINTS, Y=FLAT, Y_task=FLAT, z_task=FLAT, X__new=POINTS, kernel=KERNEL, reg=NUMBER, task_reg=NUMBER
):
    model = kb.DeconditionalEmbedding(kernel, K, reg=reg, task_reg=task_reg, learn=None, random_state=0)
    model = model.fit(X, Y, Y_task, z_task)
    return model.predict(X__new), model.weights(X__new)


@entry
def sparse(X=POINTS, y=FLAT, X__new=POINTS, points=COUNT, kernel=KERNEL, noise=NUMBER, spread=NUMBER):
    model = kb.SparseRegression(points, kernel, noise, spread=spread, learn=None, random_state=0).fit(X, y)
    return model.predict(X__new, return_std=True), model.sample(X__new, 2, 0)


@entry
def sparse_learned(
    X=POINTS,
    y=FLAT,
    max_iter=COUNT,
    rows=COUNT,
    restarts=Climate({"0": 0}, {"-1": -1, "nan": np.nan, "text": "1"}),
    noise=NUMBER,
):
    model = kb.SparseRegression(2, noise=noise, max_iter=max_iter, rows=rows, restarts=restarts, random_state=0).fit(
        X, y
    )
    return model.predict(X, return_std=True)


@entry
def quadrature(
    kernel=KERNEL,
    distribution=DISTRIBUTION,
    n=COUNT,
    nodes=words("leverage", "random", "greedy", "dpp", "herding", "sobol"),
    weights=words("optimal", "normalised", "uniform"),
    reg=NUMBER,
    f=FUNCTION,
    random_state=SEED,
):
    rule = kb.quadrature(kernel, distribution, n, nodes, weights, reg, random_state=random_state)
    return rule.points, rule.weights, rule.worst_case_error, rule.integrate(f, return_std=True)


@entry
def quadrature_at(distribution=POINTS, nodes=POINTS, kernel=KERNEL, reg=NUMBER, f=FLAT):
    f = GOOD[:, 0] if isinstance(f, type) else f  # a class may be called, as a function is
    rule = kb.quadrature(kernel, distribution, nodes=nodes, reg=reg)
    return rule.weights, rule.worst_case_error, rule.integrate(f)


@entry
def integrate(
    f=FUNCTION,
    distribution=DISTRIBUTION,
    n=Climate({"12": 12, "8": 8}, SINGLE),
    kernel=KERNEL,
    tol=Climate({"none": None}, SINGLE),
    level=SHARE,
):
    found = kb.integrate(
        f, distribution, n, kernel=kernel, learn=False, tol=tol, max_n=20 if tol is not None else None, random_state=0
    )
    return found.values, found.interval(level)


@entry
def mercer(
    kernel=Climate({"Gaussian": K}, KERNELS | ODD_KERNELS),
    distribution=Climate({"normal": stats.norm()}, DISTRIBUTIONS | ODD_DISTRIBUTIONS),
    terms=COUNT,
    reg=NUMBER,
    size=NUMBER,
):
    found = kb.mercer(kernel, distribution, terms=terms, random_state=0)
    width = 2 if distribution is DISTRIBUTIONS["of two columns"] else 1
    places = GOOD[:, :width] % 1.0
    return found.integrals(), found.effective_dimension(reg), found.leverage(places, reg), found.regulariser(size)


@entry
def sampled_spectrum(kernel=KERNEL, points=POINTS, weights=FLAT, n=COUNT, reg=NUMBER, kind=words("projection")):
    heavy = np.abs(weights) if isinstance(weights, np.ndarray) and weights.dtype == float else weights
    found = kb.integration.SampledSpectrum(kernel, points, heavy, random_state=0)
    return (
        found.leverage(points, reg),
        found.sample_dpp(n, kind=kind, random_state=0),
        found.sample_leverage(n, reg, random_state=0),
    )


class Bowl(eqx.Module):
    a: float = kb.positive(1.0)
    b: float = kb.nonnegative(0.5)


def bowl(p, x=1.0):
    return (p.a - 2.0) ** 2 + (p.b - x) ** 2


@entry
def minimise(
    objective=Climate(
        {"bowl": bowl},
        {
            "NaN from f": lambda p: p.a * np.nan,
            "text from f": lambda p: "a",
            "table from f": lambda p: p.a * np.ones(3),
            "unbounded below": lambda p: -p.a,
            "no arguments": lambda: 1.0,
        },
    ),
    a=NUMBER,
    b=NUMBER,
    max_iter=COUNT,
    tol=NUMBER,
    restarts=Climate({"0": 0, "1": 1}, {"-1": -1, "nan": np.nan, "text": "1"}),
    random_state=SEED,
):
    class Named(kb.Kernel):  # so that the domains of the parameters are checked
        a: float = kb.positive(1.0)
        b: float = kb.nonnegative(0.5)

        def _gram(self, X, Y):
            return X @ Y.T

        def _diag(self, X):
            return (X * X).sum(1)

    found = kb.minimise(
        objective, Named(a, b), max_iter=max_iter, tol=tol, restarts=restarts, random_state=random_state, warn=False
    )
    return found.value, found.params.a, found.params.b


@entry
def saved(
    points=POINTS,
    weights=FLAT,
    kernel=KERNEL,
    path=Climate({"ok": "model.npz"}, {"a directory": ".", "no directory": "no/such/model.npz", "NUL": "a\0b"}),
):
    where = Path(tempfile.gettempdir()) / path if path == "model.npz" else path
    kb.save(kb.MeanEmbedding(points, weights, kernel), where)
    again = kb.load(where)
    return again.weights, again.norm()


@entry
def loaded(
    path=Climate(
        {"fair": None},
        {
            "empty": b"",
            "text": b"a,b\n1,2\n",
            "zip": b"PK\x05\x06" + 18 * b"\0",
            "truncated": b"PK\x03\x04",
            "npy": b"\x93NUMPY",
        },
    ),
):
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "model.npz"
        kb.save(kb.MeanEmbedding(GOOD, kernel=K), place)
        if isinstance(path, bytes):
            place.write_bytes(path)
        return kb.load(place if path is None or isinstance(path, bytes) else path).weights


@entry
def learned_features(
    X=POINTS, Z=POINTS, features=COUNT, reg=NUMBER, epochs=COUNT, learning_rate=NUMBER, validation=SHARE
):
    found = kb.learn_features(
        X,
        Z,
        features=features,
        reg=reg,
        epochs=epochs,
        learning_rate=learning_rate,
        validation=validation,
        progress=False,
        random_state=0,
    )
    return list(found.history.values()), found.fit(found.kernel, X).transform(X)


# ------------------------------------------------------------------------------------------------ the property


class TooSlow(BaseException):
    pass


def _time_is_up(signum, frame):
    raise TooSlow(f"more than {SECONDS} s of CPU")


def climates(name):
    return {arg: p.default for arg, p in inspect.signature(ENTRIES[name]).parameters.items()}


def finite(value):
    """Whether all numbers in a result are."""
    if isinstance(value, (tuple, list)):
        return all(map(finite, value))
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    array = np.asarray(value)
    return array.dtype.kind in "USb" or bool(np.isfinite(array.astype(float)).all())


def complaint(error, args):
    """What is wrong with a refusal, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    if any(frame.filename.startswith(str(Path(sklearn.__file__).parent)) for frame in frames):
        return None  # its own validation
    home = str(Path(kb.__file__).parent)
    if Path(frames[-1].filename) == Path(__file__):
        return None  # a mistake in the user's function is the user's to see
    if isinstance(error, FileNotFoundError) and "path" in args:
        return None
    if not isinstance(error, (ValueError, TypeError)) and type(error).__name__ not in NAMES_OF_OURS:
        return f"a {type(error).__name__}"
    if not frames[-1].filename.startswith(home):
        return "not raised by the library"
    if not linecache.getline(frames[-1].filename, frames[-1].lineno).strip().startswith("raise "):
        return "not raised on purpose"
    if isinstance(error, kb.NoClosedFormError):
        return None  # names the kernel and the distribution
    if len(str(error)) > 1500:
        return "a message longer than anybody reads"
    names = {
        *(arg.split("__")[0] for arg in args),
        "kernel",
        "distribution",
        "distributions",
        "map",
        "theta",
        "simulations",
        "weights",
    }
    names |= {"file", "folder", "points"}
    if not any(re.search(rf"\b{name}\b", str(error), re.IGNORECASE) for name in names):
        return "names no argument"
    return None


def outcome(name, tall, wide, **given):
    """("result" or "refused", None), or ("failed", why), of one case."""
    table = climates(name)
    args = {}
    for arg, climate in table.items():
        args[arg] = climate.build(given.get(arg, next(iter(climate.fair))), arg, tall, wide)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, _time_is_up)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # the library's own
            warnings.filterwarnings("ignore", OWN_WARNINGS, RuntimeWarning)
            result = ENTRIES[name](**args)
            return ("result", None) if finite(result) else ("failed", f"not finite: {result!r:.300}")
    except TooSlow as error:
        return "failed", str(error)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        if len(frames) == 2 and Path(frames[-1].filename) == Path(__file__):
            return "moot", None  # the entry itself could make nothing of this input
        why = complaint(error, table)
        if why is None:
            return "refused", None
        last = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[:-5:-1])
        return "failed", f"{why}: {type(error).__name__}: {str(error)[:300]} [{last}]"
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)


def run(name, tall=12, wide=2, **given):
    """One case again, with its traceback."""
    args = {a: c.build(given.get(a, next(iter(c.fair))), a, tall, wide) for a, c in climates(name).items()}
    return ENTRIES[name](**args)


@st.composite
def cases(draw, name):
    """A size, and a word for each argument: most are fair, one or two foul."""
    table = climates(name)
    case = {"tall": draw(st.sampled_from([12, 12, 12, 6])), "wide": draw(st.sampled_from([2, 2, 1, 3]))}
    data = [arg for arg, climate in table.items() if isinstance(climate, Points)]
    foul = draw(st.sets(st.sampled_from([*table, *data, *data]), min_size=1, max_size=2))
    for arg, climate in table.items():
        case[arg] = draw(climate.foul if arg in foul else st.sampled_from(list(climate.fair)))
    return case


def shown(name, case):
    size = f"tall={case['tall']}, wide={case['wide']}"
    words = ", ".join(f"{arg}={word!r}" for arg, word in case.items() if arg not in ("tall", "wide"))
    return f"run({name!r}, {size}, {words})"


SLOW = ("infer", "infer_settings", "quadrature", "integrate", "classifier_network", "learned_features")
SLOW += ("task_gp_chosen", "conditional_chosen", "bayes_chosen", "classifier_chosen", "sparse_learned")
KINDS = ("result", "refused", "moot", "failed")
SETTINGS = hypothesis.settings(
    derandomize=True,
    deadline=None,
    database=None,
    phases=[hypothesis.Phase.generate],  # a case is short as it is, and shrinking one that compiles takes minutes
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.mark.parametrize("name", ENTRIES)
def test_bad_weather(name):
    @hypothesis.settings(SETTINGS, max_examples=4 if name in SLOW else 12)
    @hypothesis.given(cases(name))
    def tried(case):
        kind, why = outcome(name, **case)
        assert kind != "failed", f"{shown(name, case)}\n{why}"

    tried()


@pytest.mark.parametrize("name", ENTRIES)
def test_fair_weather(name):
    kind, why = outcome(name, 12, 2)
    assert kind == "result", why


def sweep(name, examples, seed):
    """Many cases of an entry, counted; every kind of failure is printed with its first case."""
    counts, failures, start = collections.Counter(), {}, time.process_time()

    @hypothesis.seed(seed)
    @hypothesis.settings(SETTINGS, max_examples=examples, derandomize=False)
    @hypothesis.given(cases(name))
    def tried(case):
        kind, why = outcome(name, **case)
        counts[kind] += 1
        if kind == "failed":
            failures.setdefault(why.split(":")[0] + why[why.rfind("[") :], []).append((why, shown(name, case)))

    tried()
    seconds = time.process_time() - start
    print(f"{name:24}", *(f"{counts[kind]:6} {kind}" for kind in KINDS), f"{seconds:7.1f} s", flush=True)
    for found in failures.values():
        print(f"    {len(found)} x {found[0][0]}\n        {found[0][1]}", flush=True)
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="bad weather over the public API")
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--entry", nargs="*", default=list(ENTRIES))
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    total = sum((sweep(name, chosen.examples, chosen.seed) for name in chosen.entry), collections.Counter())
    print(f"{total.total()} cases:", ", ".join(f"{total[kind]} {kind}" for kind in KINDS))
    sys.exit(total["failed"] > 0)

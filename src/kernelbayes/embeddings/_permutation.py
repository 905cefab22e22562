"""Distances and dependence with a permutation test: MMD between samples, HSIC between variables.

A permutation test has its level with any statistic, so that for many points both use features in place of the kernel. What
the features are may depend on the points, but not on which sample a point belongs to, or on which points are paired.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import _check
from .._linalg import eigh, pivoted_cholesky
from .._typing import Array, ArrayLike, RandomState
from ..features import Features, Subspace
from ..kernels import Kernel, check_kernel, gram_blocks
from ._mean import default_kernel

# Numbers in the columns of permutations that are held at a time.
_PERMUTATION_ELEMENTS = 2**23
# Up to so many points, of both samples together and of pairs, the statistic under each permutation is that of the kernel.
_EXACT_POOL, _EXACT_PAIRS = 10_000, 500
# Beyond: reference points of the features, how many of their principal components a test of dependence keeps at most, and
# which share of the squared eigenvalues it may leave out. That share is about the one of the variance under the null.
_LANDMARKS, _COMPONENTS, _LEFT_OUT = 256, 64, 1e-3
# Share of the largest diagonal entry at which a factor of a Gram matrix is complete.
_DIGITS = 1e-9
# Points whose features are held at a time.
_FEATURE_ROWS = 4096


@dataclass(frozen=True)
class TestResult:
    """The outcome of a permutation test.

    Attributes:
        statistic: the value on the data as they are.
        pvalue: the share of permutations, the data as they are among them, with a statistic at least as large.
        null: the values of the statistic under the random permutations.
    """

    __test__ = False  # not a test case, whatever its name suggests to a test runner

    statistic: float
    pvalue: float
    null: Array

    def __repr__(self) -> str:
        return f"TestResult(statistic={self.statistic:.4g}, pvalue={self.pvalue:.4g}, {len(self.null)} permutations)"


def _result(statistic: float, null: Array) -> TestResult:
    """The p-value counts the observed arrangement as one of the permutations, so it is never zero and the test is exact."""
    tolerance = 1e-12 * max(abs(statistic), np.abs(null).max(initial=0.0))
    return TestResult(statistic, float((1 + (null >= statistic - tolerance).sum()) / (1 + len(null))), null)


def _two_samples(X: ArrayLike, Y: ArrayLike, kernel: Kernel | None) -> tuple[Array, Array, Kernel]:
    Y = _check.alike(Y, X, "Y")
    if kernel is None:
        X, Y = _check.vectors(X, "X"), _check.vectors(Y, "Y")
        if X.shape[1] != Y.shape[1]:
            raise ValueError(f"X has {X.shape[1]} columns but Y has {Y.shape[1]}")
        kernel = default_kernel(np.concatenate([X, Y]), "the pooled sample of X and Y")
    X, Y = check_kernel(kernel)._check_pair(X, Y)
    if len(X) < 2 or len(Y) < 2:
        raise ValueError(f"X and Y need at least two points each, got {len(X)} and {len(Y)}")
    return X, Y, kernel


@dataclass(frozen=True)
class _Sums:
    """Sums of a Gram matrix over a first sample, for each of P ways to choose it, and over all N points."""

    within: Array  # (P,): over pairs of the first sample
    rows: Array  # (P,): over pairs of a point of the first sample and any point
    own: Array  # (P,): over the diagonal of the first sample
    total: float
    trace: float

    def mmd(self, n: int, m: int, unbiased: bool) -> Array:
        """MMD^2 (P,) between a first sample of n points and the m others."""
        cross = self.rows - self.within
        within_second = self.total - self.within - 2.0 * cross
        if not unbiased:
            return self.within / n**2 + within_second / m**2 - 2.0 * cross / (n * m)
        return (
            (self.within - self.own) / (n * (n - 1))
            + (within_second - (self.trace - self.own)) / (m * (m - 1))
            - 2.0 * cross / (n * m)
        )


def _kernel_sums(kernel: Kernel, Z: Array, first: Array) -> _Sums:
    """From the kernel, in blocks of rows: one product with each block serves all columns of `first`, indicators (N, P)."""
    first = first.astype(np.float64)
    within, row_sums = np.zeros(first.shape[1]), np.empty(len(Z))
    for rows, K in gram_blocks(kernel, Z, Z):
        within += (first[rows] * (K @ first)).sum(0)
        row_sums[rows] = K.sum(1)
    diagonal = kernel._diag(Z)
    return _Sums(within, first.T @ row_sums, first.T @ diagonal, float(row_sums.sum()), float(diagonal.sum()))


def _feature_sums(features: Features, Z: Array, first: Array) -> _Sums:
    """From features, in blocks of rows."""
    sums, total = np.zeros((features.rank, first.shape[1])), np.zeros(features.rank)
    own, trace = np.zeros(first.shape[1]), 0.0
    for start in range(0, len(Z), _FEATURE_ROWS):
        rows = slice(start, start + _FEATURE_ROWS)
        F, block = features._coordinates(Z[rows]), first[rows].astype(np.float64)
        squares = (F * F).sum(1)
        sums += F.T @ block
        total += F.sum(0)
        own += block.T @ squares
        trace += float(squares.sum())
    return _Sums((sums * sums).sum(0), total @ sums, own, float(total @ total), trace)


def mmd(X: ArrayLike, Y: ArrayLike, kernel: Kernel | None = None, *, unbiased: bool = True) -> float:
    r"""The squared maximum mean discrepancy between two samples.

    .. math:: \mathrm{MMD}^2 = \|\mu_X - \mu_Y\|^2_{\mathcal H}

    The unbiased estimate leaves out the diagonal terms and may be slightly negative; the biased one is the squared
    distance of the two empirical embeddings. The default kernel is Gaussian with the median distance of the pooled
    sample. Gretton et al. (2012), equations 3 and 5; Kanagawa (2016), equation 2.9.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> kb.mmd(rng.normal(size=500), rng.normal(1.0, size=500)) > 0.1
        True
    """
    X, Y, kernel = _two_samples(X, Y, kernel)
    Z = np.concatenate([X, Y])
    first = np.arange(len(Z))[:, None] < len(X)
    return float(_kernel_sums(kernel, Z, first).mmd(len(X), len(Y), unbiased)[0])


def mmd_test(
    X: ArrayLike,
    Y: ArrayLike,
    kernel: Kernel | None = None,
    *,
    unbiased: bool = True,
    permutations: int = 500,
    random_state: RandomState = None,
) -> TestResult:
    """Test whether two samples come from one distribution, by permuting which point belongs to which.

    For up to 10,000 points in all, the statistic is `kb.mmd`, and one product with the Gram matrix of the pooled sample
    serves all permutations. For more it is that of the kernel on the span of 256 points drawn from the pooled sample: time
    and memory then grow with the number of points, and not with its square. The level of the test is exact either way.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> same = kb.mmd_test(rng.normal(size=100), rng.normal(size=100), random_state=0)
        >>> different = kb.mmd_test(rng.normal(size=100), rng.normal(1.0, size=100), random_state=0)
        >>> same.pvalue > 0.05, different.pvalue < 0.01
        (True, True)
    """
    X, Y, kernel = _two_samples(X, Y, kernel)
    permutations = _check.count(permutations, "permutations")
    rng = _check.generator(random_state)
    n, m = len(X), len(Y)
    Z = np.concatenate([X, Y])
    if n + m <= _EXACT_POOL:
        sums, held = functools.partial(_kernel_sums, kernel), _PERMUTATION_ELEMENTS
    else:
        sums = functools.partial(_feature_sums, Subspace(_LANDMARKS)._fit(kernel, Z, rng)[0])
        held = 8 * _PERMUTATION_ELEMENTS  # they are held as single bytes
    observed = np.arange(n + m) < n
    chunk = max(1, held // (n + m))
    parts = [sums(Z, observed[:, None]).mmd(n, m, unbiased)]
    for start in range(0, permutations, chunk):
        count = min(chunk, permutations - start)
        first = rng.permuted(np.tile(observed, (count, 1)), axis=1).T
        parts.append(sums(Z, first).mmd(n, m, unbiased))
    statistics = np.concatenate(parts)
    return _result(float(statistics[0]), statistics[1:])


def _pairs(X: ArrayLike, Y: ArrayLike, kernel_x: Kernel | None, kernel_y: Kernel | None) -> list[tuple[Kernel, Array]]:
    out = []
    for points, kernel, name in ((X, kernel_x, "X"), (Y, kernel_y, "Y")):
        if kernel is None:
            points = _check.vectors(points, name)
            kernel = default_kernel(points, name)
        else:
            points = check_kernel(kernel, f"kernel_{name.lower()}")._check(points, name)
        out.append((kernel, points))
    _check.same_length(out[0][1], out[1][1], "X", "Y")
    if len(out[0][1]) < 2:
        raise ValueError("dependence needs at least two pairs of points")
    return out


def _centred_blocks(kernel: Kernel, X: Array) -> Iterator[Array]:
    """The centred Gram matrix in blocks of rows: its means are found first, so that little cancels."""
    mean = np.empty(len(X))
    for rows, K in gram_blocks(kernel, X, X):
        mean[rows] = K.mean(1)
    for rows, K in gram_blocks(kernel, X, X):
        yield K - mean - mean[rows, None] + mean.mean()


def hsic(X: ArrayLike, Y: ArrayLike, kernel_x: Kernel | None = None, kernel_y: Kernel | None = None) -> float:
    r"""The Hilbert-Schmidt independence criterion: the squared norm of the centred cross-covariance operator.

    .. math:: \mathrm{HSIC} = \|\hat C_{XY}\|_{HS}^2 = \tfrac{1}{n^2} \operatorname{tr}(K H L H)

    Gretton et al. (2008). Its expectation is of order 1/n for independent variables.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=300)
        >>> kb.hsic(x, np.sin(2 * x)) > 5 * kb.hsic(x, rng.normal(size=300))
        True
    """
    pairs = _pairs(X, Y, kernel_x, kernel_y)
    blocks = zip(*(_centred_blocks(*side) for side in pairs), strict=True)
    return sum(float(np.vdot(K, L)) for K, L in blocks) / len(pairs[0][1]) ** 2


def hsic_test(
    X: ArrayLike,
    Y: ArrayLike,
    kernel_x: Kernel | None = None,
    kernel_y: Kernel | None = None,
    *,
    permutations: int = 500,
    random_state: RandomState = None,
) -> TestResult:
    """Test whether two variables are independent, by permuting the pairing.

    For up to 500 pairs the statistic is `kb.hsic`. For more it is that of thin factors of the two kernels: to eight digits
    where 64 columns suffice, as for smooth kernels on the line or for labels. Otherwise these are the first principal
    components, 64 at most, of features on 256 points drawn from each variable. What they leave out counts by its mean over
    all permutations, so that `statistic` is close to `kb.hsic`. The level of the test is exact in any case.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> x = np.random.default_rng(0).normal(size=200)
        >>> kb.hsic_test(x, x**2, random_state=0).pvalue < 0.01  # uncorrelated, yet dependent
        True
    """
    pairs = _pairs(X, Y, kernel_x, kernel_y)
    permutations = _check.count(permutations, "permutations")
    rng = _check.generator(random_state)
    n = len(pairs[0][1])
    if n <= _EXACT_PAIRS:
        K, L = (np.concatenate(list(_centred_blocks(*side))) for side in pairs)
        A, B, left_out = _factor(K), _factor(L), 0.0
    else:  # points of X and of Y are drawn separately: of those drawn together it would be known that they are paired
        K = L = None
        (A, trace_x), (B, trace_y) = (_thin(*side, rng) for side in pairs)
        left_out = (trace_x * trace_y - (A * A).sum() * (B * B).sum()) / (n - 1)
    orders = (rng.permutation(n) for _ in range(permutations))
    if K is None or L is None or A.shape[1] * B.shape[1] < 4 * n:  # tr(K P L P') = |A' P B|^2, where factors are thin
        statistic, null = ((A.T @ B) ** 2).sum(), [((A.T @ B[order]) ** 2).sum() for order in orders]
    else:
        statistic, null = np.vdot(K, L), [np.vdot(K, L[order].take(order, axis=1)) for order in orders]
    return _result(float((statistic + left_out) / n**2), (np.array(null) + left_out) / n**2)


def _factor(K: Array) -> Array:
    """A thin factor of a centred Gram matrix, good to about eight digits."""
    return pivoted_cholesky(np.diagonal(K), lambda p: K[:, p], rank=len(K), tol=_DIGITS).factor


def _thin(kernel: Kernel, X: Array, rng: np.random.Generator) -> tuple[Array, float]:
    """A factor (n, r) of a centred Gram matrix that is never formed, and the trace of that matrix.

    As good as `_factor` where few columns are enough; otherwise the principal components of a subspace of the kernel.
    """
    n, diagonal, gram = len(X), kernel._diag(X), kernel._gram
    found = pivoted_cholesky(diagonal, lambda p: gram(X, X[p : p + 1])[:, 0], rank=_COMPONENTS + 1, tol=_DIGITS)
    if found.factor.shape[1] <= _COMPONENTS:
        centred = found.factor - found.factor.mean(0)
        return centred, float((centred * centred).sum())
    subspace = Subspace(_LANDMARKS)._fit(kernel, X, rng)[1]
    core, sums = subspace.normal_equations(np.ones(n))
    values, vectors = eigh(core - np.outer(sums, sums) / n)
    tails = np.cumsum(values[::-1] ** 2)[::-1]
    count = min(max(int((tails > _LEFT_OUT * tails[0]).sum()), 1), _COMPONENTS)
    components = subspace.scatter(vectors[:, :count].T).T
    return components - components.mean(0), float(diagonal.sum() - sums @ sums / n)

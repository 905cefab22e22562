"""Distances and dependence with a permutation test: MMD between samples, HSIC between variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import _check
from .._linalg import pivoted_cholesky
from .._typing import Array, ArrayLike, RandomState
from ..kernels import Kernel, check_kernel, dense_gram
from ._mean import default_kernel

# Columns of permutations held at a time.
_PERMUTATION_ELEMENTS = 2**23


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


def _mmd_statistics(K: Array, first: Array, n: int, m: int, unbiased: bool) -> Array:
    """MMD^2 for each column of `first`, the 0/1 indicators (N, P) of the first sample: one product with K serves all."""
    product = K @ first
    within_first = (first * product).sum(0)
    row_sums = K.sum(1)
    cross = first.T @ row_sums - within_first
    within_second = row_sums.sum() - within_first - 2.0 * cross
    if not unbiased:
        return within_first / n**2 + within_second / m**2 - 2.0 * cross / (n * m)
    diagonal = np.diagonal(K)
    own_first = first.T @ diagonal
    own_second = diagonal.sum() - own_first
    return (
        (within_first - own_first) / (n * (n - 1))
        + (within_second - own_second) / (m * (m - 1))
        - 2.0 * cross / (n * m)
    )


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
    first = (np.arange(len(Z)) < len(X)).astype(float)[:, None]
    return float(_mmd_statistics(dense_gram(kernel, Z, Z), first, len(X), len(Y), unbiased)[0])


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

    The Gram matrix of the pooled sample is computed once and all permutations are one matrix product with it.

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
    K = dense_gram(kernel, Z, Z)
    observed = (np.arange(n + m) < n).astype(float)
    chunk = max(1, _PERMUTATION_ELEMENTS // (n + m))
    parts = [_mmd_statistics(K, observed[:, None], n, m, unbiased)]
    for start in range(0, permutations, chunk):
        count = min(chunk, permutations - start)
        first = rng.permuted(np.tile(observed, (count, 1)), axis=1).T
        parts.append(_mmd_statistics(K, first, n, m, unbiased))
    statistics = np.concatenate(parts)
    return _result(float(statistics[0]), statistics[1:])


def _centred_grams(X: ArrayLike, Y: ArrayLike, kernel_x: Kernel | None, kernel_y: Kernel | None) -> tuple[Array, Array]:
    out = []
    for points, kernel, name in ((X, kernel_x, "X"), (Y, kernel_y, "Y")):
        if kernel is None:
            points = _check.vectors(points, name)
            kernel = default_kernel(points, name)
        else:
            points = check_kernel(kernel, f"kernel_{name.lower()}")._check(points, name)
        out.append((points, kernel))
    _check.same_length(out[0][0], out[1][0], "X", "Y")
    if len(out[0][0]) < 2:
        raise ValueError("dependence needs at least two pairs of points")
    grams = []
    for points, kernel in out:
        K = dense_gram(kernel, points, points)
        mean = K.mean(0)
        grams.append(K - mean - mean[:, None] + mean.mean())
    return grams[0], grams[1]


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
    K, L = _centred_grams(X, Y, kernel_x, kernel_y)
    return float((K * L).sum() / len(K) ** 2)


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

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> x = np.random.default_rng(0).normal(size=200)
        >>> kb.hsic_test(x, x**2, random_state=0).pvalue < 0.01  # uncorrelated, yet dependent
        True
    """
    K, L = _centred_grams(X, Y, kernel_x, kernel_y)
    permutations = _check.count(permutations, "permutations")
    rng = _check.generator(random_state)
    n = len(K)
    orders = (rng.permutation(n) for _ in range(permutations))
    A, B = (_factor(G) for G in (K, L))
    if A.shape[1] * B.shape[1] < 4 * n:  # tr(K P L P') = |A' P B|^2, where factors are thin
        statistic, null = ((A.T @ B) ** 2).sum(), [((A.T @ B[order]) ** 2).sum() for order in orders]
    else:
        statistic, null = np.vdot(K, L), [np.vdot(K, L[order].take(order, axis=1)) for order in orders]
    return _result(float(statistic / n**2), np.array(null) / n**2)


def _factor(K: Array) -> Array:
    """A thin factor of a centred Gram matrix, good to about eight digits."""
    return pivoted_cholesky(np.diagonal(K), lambda p: K[:, p], rank=len(K), tol=1e-9).factor

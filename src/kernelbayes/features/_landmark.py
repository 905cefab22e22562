"""Features on landmarks: exact, incomplete Cholesky, and a subspace of reference points (Nystrom).

With landmarks R and the Cholesky factor `L L' = K(R, R)`, the coordinates are `f(x) = L^-1 k(R, x)`, so that
`f(x) . f(y) = k(x, R) K(R, R)^-1 k(R, y)`: the kernel restricted to the span of the landmarks. The three recipes differ
in how the landmarks are found.

| paper | symbol | here |
|---|---|---|
| Kanagawa (2016), 4.3.1 | `G ~ U U'` | `IncompleteCholesky`, `factor` |
| Subspace (2015), eq. 16 | `G-bar = g(y_i, y-bar_j)`, reference set Psi | `Subspace`, `points` |
"""

from __future__ import annotations

from collections.abc import Iterator

import equinox as eqx
import numpy as np

from .. import _check
from .._backend import namespace
from .._linalg import (
    Dense,
    Gram,
    LowRank,
    PivotedCholesky,
    add_outer,
    cholesky,
    dense_pivoted_cholesky,
    mirror_lower,
    numerical_rank,
    pivoted_cholesky,
    solve_lower,
)
from .._progress import progress_bar
from .._typing import AnyArray, Array, ArrayLike
from ..kernels import Kernel, dense_gram, gram_blocks
from ._base import Features, Recipe
from ._selection import SELECTIONS

# A feature matrix larger than this (64 MB) is streamed in blocks instead of held.
_HELD_ELEMENTS = 2**23
# With pivots above this, whitening after summation moved F'F / n by about 1e-11 of the kernel's scale where measured.
_SAFE_PIVOT = 1e-6
# Up to here the whole Gram matrix is factorised at once: quicker than column by column, even where few columns are wanted.
_DENSE_POINTS = 1024
# A Gram matrix is kept as it is where the rank of a quarter of the points is at least this share of their number.
_FULL_RANK = 0.9
# Points at most on which the rank of a kernel is probed.
_PROBE_POINTS = 2048
# Up to here the kernel is used exactly by default; beyond, on a subspace.
EXACT_POINTS = 3000
_DEFAULT_SUBSPACE = 1000
# Points on which the error of a subspace is measured.
_ERROR_POINTS = 2000


def _columns(kernel: Kernel, X: AnyArray, points: Array) -> AnyArray:
    """`k(x, R)` for checked points, in NumPy or JAX."""
    if X.shape[1:] != points.shape[1:]:  # arrays would broadcast, silently
        raise ValueError(f"points of shape {X.shape[1:]} meet features of points of shape {points.shape[1:]}")
    return dense_gram(kernel, X, points) if namespace(X) is np else kernel._gram(X, points)


class LandmarkFeatures(Features):
    """Coordinates `L^-1 k(R, x)` with `L L' = K(R, R)`, or the bare `k(R, x)` where they are not whitened."""

    points: Array
    factor: Array
    whitened: bool = eqx.field(static=True, default=True)

    @property
    def rank(self) -> int:
        """Number of landmarks."""
        return len(self.points)

    def _coordinates(self, X: AnyArray) -> AnyArray:
        G = _columns(self.kernel, X, self.points)
        return solve_lower(self.factor, G.T).T if self.whitened else G

    def transform(self, X: ArrayLike) -> Array:
        """The feature matrix F (n, r) of points, with `F F'` the approximate Gram matrix, whitened in any case."""
        G = _columns(self.kernel, self._read(X), self.points)
        return solve_lower(self.factor, G.T).T


class DenseFeatures(Features):
    """Coordinates `k(x, X)` on all points, for a Gram matrix of full rank."""

    points: Array

    @property
    def rank(self) -> int:
        """Number of points."""
        return len(self.points)

    def _coordinates(self, X: AnyArray) -> AnyArray:
        return _columns(self.kernel, X, self.points)

    def transform(self, X: AnyArray) -> Array:
        """The feature matrix F (n, r) of points, with `F F'` the Gram matrix."""
        X = self._read(X)
        L = cholesky(dense_gram(self.kernel, self.points, self.points), "the Gram matrix")
        return solve_lower(L, self._coordinates(X).T).T


class Streamed(eqx.Module):
    """The Gram matrix of many points on landmarks, with its feature matrix recomputed block by block, never held."""

    features: LandmarkFeatures
    points: Array
    progress: bool | None = eqx.field(static=True, default=False)  # show a bar while fitting

    @property
    def size(self) -> int:
        """Number of points n."""
        return len(self.points)

    def core(self) -> Array:
        """`F' F`, summed over blocks."""
        return self.normal_equations(np.zeros((self.size, 0)))[0]

    def weighted_core(self, weights: Array) -> Array:
        """`F' diag(weights) F`, summed over blocks, for weights of either sign."""
        S = np.zeros((self.features.rank, self.features.rank))
        for rows, G in self._blocks():
            F = solve_lower(self.features.factor, G.T) if self.features.whitened else G.T
            S += (F * weights[rows]) @ F.T
        return S

    def gather(self, Y: Array) -> Array:
        """`F' Y`, summed over blocks."""
        out = np.zeros((self.features.rank, *Y.shape[1:]))
        for rows, G in self._blocks():
            out += G.T @ Y[rows]
        return self._whiten(out)

    def scatter(self, C: Array) -> Array:
        """`C F'`, filled in by blocks."""
        if self.features.whitened:
            C = solve_lower(self.features.factor, C.T, transposed=True).T
        out = np.empty((len(C), self.size))
        for rows, G in self._blocks():
            out[:, rows] = C @ G.T
        return out

    def normal_equations(self, Y: Array) -> tuple[Array, Array]:
        """`F' F` and `F' Y` in one pass over the data.

        Summing `G' G` of the bare kernel columns and whitening the sum is half the arithmetic of whitening each block,
        but magnifies rounding by 1 / (smallest pivot). Most of what is rounded is the mean column c: with
        `G = H + 1 c'`, only `H' H` is whitened as a matrix, and the rest `n c c' + c s' + s c'`, s the sum of the rows
        of H, as vectors. Where the landmarks are too close even so, blocks are whitened one by one.
        """
        L, whitened = self.features.factor, self.features.whitened
        one_by_one = whitened and _smallest_pivot(L) < _SAFE_PIVOT
        rank = self.features.rank
        S, right = np.zeros((rank, rank), order="F"), np.zeros((rank, *Y.shape[1:]))
        centre, total = np.zeros(rank), np.zeros(rank)
        for rows, G in self._blocks(self.progress):
            if whitened and not one_by_one:
                centre = G.mean(0) if rows.start == 0 else centre
                H = G - centre
                total += H.sum(0)
                S = add_outer(S, H.T)
                right += G.T @ Y[rows]
            else:
                F = solve_lower(L, G.T) if whitened else G.T
                S = add_outer(S, F)
                right += F @ Y[rows]
        S = mirror_lower(S)
        if whitened and not one_by_one:
            c, s, right = self._whiten(centre), self._whiten(total), self._whiten(right)
            cross = np.outer(c, s)
            S = self._whiten(self._whiten(S).T) + self.size * np.outer(c, c) + cross + cross.T
        return S, right

    def _whiten(self, A: Array) -> Array:
        return solve_lower(self.features.factor, A) if self.features.whitened else A

    def _blocks(self, progress: bool | None = False) -> Iterator[tuple[slice, Array]]:
        blocks = gram_blocks(self.features.kernel, self.points, self.features.points)
        if progress is False:
            yield from blocks
            return
        with progress_bar(self.size, "fitting", progress, unit=" points") as bar:
            for rows, G in blocks:
                yield rows, G
                bar.update(rows.stop - rows.start)


def _smallest_pivot(L: Array) -> float:
    squared = np.diagonal(L) ** 2
    return float(squared.min() / squared.max())


def represent(features: Features, X: Array) -> Gram:
    """The Gram matrix of checked points in the coordinates of fitted features, streamed if it would be large."""
    if isinstance(features, DenseFeatures):
        return Dense(dense_gram(features.kernel, X, X))
    if isinstance(features, LandmarkFeatures) and len(X) * features.rank > _HELD_ELEMENTS:
        return Streamed(features, X)
    return LowRank(features._coordinates(X))


def factored(features: Features, gram: Gram) -> tuple[Features, Gram]:
    """The same representation with a factor F in place of a dense Gram matrix, for rules that need `F' D F`."""
    if not isinstance(features, DenseFeatures) or not isinstance(gram, Dense):
        return features, gram
    L = cholesky(gram.matrix, "the Gram matrix")
    return LandmarkFeatures(features.kernel, features.error, features.points, L), LowRank(L)


def _pivoted(kernel: Kernel, X: Array, rank: int, tol: float) -> PivotedCholesky:
    if len(X) <= _DENSE_POINTS:
        return dense_pivoted_cholesky(dense_gram(kernel, X, X), rank=rank, tol=tol)
    gram = kernel._gram  # looked up once: a module's methods are wrapped anew at each access
    return pivoted_cholesky(kernel._diag(X), lambda p: gram(X, X[p : p + 1])[:, 0], rank=rank, tol=tol)


def pivots(kernel: Kernel, X: Array, count: int) -> Array:
    """The `count` points of a sample, or fewer, that leave the least of the kernel unexplained, found greedily."""
    return X[_pivoted(kernel, X, count, 1e-10).pivots]


def _on_pivots(kernel: Kernel, X: Array, found: PivotedCholesky) -> tuple[LandmarkFeatures, LowRank]:
    if not len(found.pivots):
        raise ValueError("the kernel is zero on every point of X, so it has no features there")
    error = float(found.residual.sum() / kernel._diag(X).sum())
    return LandmarkFeatures(kernel, error, X[found.pivots], found.factor[found.pivots]), LowRank(found.factor)


class Exact(Recipe):
    """The kernel itself: to machine precision on the sample, to about the square root of `tol` at new points.

    A smooth kernel has a numerical rank far below n, and a pivoted Cholesky factorisation down to `tol` finds it; where a
    look at a quarter of the points says that the rank is close to n, the full Gram matrix is kept instead.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> features = kb.Exact().fit(kb.Gaussian(0.5), X)
        >>> features.rank < 20, features.error < 1e-13
        (True, True)
    """

    tol: float = eqx.field(static=True, default=1e-15)

    def __check_init__(self) -> None:
        _check.positive(self.tol, "tol")

    def _fit(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> tuple[Features, Gram]:
        n = len(X)
        rows = np.linspace(0, n - 1, min(max(n // 4, min(n, 32)), _PROBE_POINTS)).astype(int)
        if numerical_rank(dense_gram(kernel, X[rows], X[rows]), self.tol) >= _FULL_RANK * len(rows):
            return DenseFeatures(kernel, 0.0, X), Dense(dense_gram(kernel, X, X))
        return _on_pivots(kernel, X, _pivoted(kernel, X, n, self.tol))


class IncompleteCholesky(Recipe):
    """Landmarks taken greedily, each where the ones before leave the largest error, up to a rank or down to a tolerance.

    Stops when `rank` landmarks are taken or no point's remaining variance exceeds `tol` times the largest at the start.
    O(n r) memory, O(n r^2) time. Kanagawa (2016), section 4.3.1; Fine and Scheinberg (2001).

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> features = kb.IncompleteCholesky(rank=50).fit(kb.Gaussian(1.0), X)
        >>> features.transform(X).shape, features.error < 1e-3
        ((500, 50), True)
    """

    rank: int | None = eqx.field(static=True, default=None)
    tol: float = eqx.field(static=True, default=1e-10)

    def __check_init__(self) -> None:
        if self.rank is not None:
            _check.count(self.rank, "rank")
        _check.positive(self.tol, "tol")

    def _fit(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> tuple[Features, Gram]:
        return _on_pivots(kernel, X, _pivoted(kernel, X, len(X) if self.rank is None else self.rank, self.tol))


class Subspace(Recipe):
    """The span of `size` reference points, with all n points used for learning (Nystrom).

    `method` says how they are chosen: "random" (uniformly), "kmeans" (cluster centres), "herding" (greedily, so that
    their mean embedding follows the sample's), "leverage" (with probability by ridge leverage score, which favours
    what the others do not explain). Memory does not grow with n: large samples are streamed.

    With `whiten=False` the coordinates are the kernel columns themselves and the regulariser acts on them directly, as
    printed in equation 16 of Gebhardt, Kupcsik and Neumann (2015), whose lambda is `n * reg` here.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> X = np.random.default_rng(0).normal(size=(1000, 3))
        >>> features = kb.Subspace(100, method="kmeans").fit(kb.Gaussian(2.0), X, random_state=0)
        >>> features.rank, features.error < 0.01
        (100, True)
    """

    size: int = eqx.field(static=True, default=500)
    method: str = eqx.field(static=True, default="random")
    whiten: bool = eqx.field(static=True, default=True)
    tol: float = eqx.field(static=True, default=1e-10)

    def __check_init__(self) -> None:
        _check.count(self.size, "size")
        _check.option(self.method, "method", tuple(SELECTIONS))
        _check.positive(self.tol, "tol")

    def _fit(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> tuple[Features, Gram]:
        points = X if self.size >= len(X) else SELECTIONS[self.method](kernel, X, self.size, rng)
        found = _pivoted(kernel, points, len(points), self.tol)  # drops points that add nothing
        features, _ = _on_pivots(kernel, points, found)
        sample = X[rng.choice(len(X), min(len(X), _ERROR_POINTS), replace=False)]
        missed = 1.0 - (features._coordinates(sample) ** 2).sum() / kernel._diag(sample).sum()
        features = LandmarkFeatures(kernel, max(float(missed), 0.0), features.points, features.factor, self.whiten)
        return features, represent(features, X)


def default_recipe(n: int) -> Recipe:
    """The kernel itself for up to 3,000 points; beyond, a subspace of 1,000."""
    return Exact() if n <= EXACT_POINTS else Subspace(_DEFAULT_SUBSPACE)

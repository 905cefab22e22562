"""The library's factorisations, with one policy for jitter and failure: all in one file, however long, so that there is
one place to look for them and none to write another.

Every function takes NumPy or JAX arrays. On NumPy arrays it calls LAPACK and raises `FactorisationError` when a matrix
cannot be factorised; on JAX arrays it can be traced and differentiated, adds no jitter of its own, and shows a failure
as NaN, for which the caller must look (`learning.minimise` steps back from it).

A positive semidefinite Gram matrix `K` of n points is held in one of these forms, with one interface (`features.Streamed`
is the first, computed in blocks). *Coordinates* of a
point, and the three operations on them, are

| form | coordinates of x | `core()` | `gather(Y)` | `scatter(C)` |
|---|---|---|---|---|
| `LowRank(F)`, `K = F F'` | `f(x)`, of length r | `F' F` | `F' Y` | `C F'` |
| `Dense(K)` | `k(x, X)`, of length n | `K` | `Y` | `C` |

so that `scatter(c(x) (core + s I)^-1)` is `(K + s I)^-1 k(x)` in both: for the first by the push-through identity
`F (F' F + s I)^-1 = (F F' + s I)^-1 F`. A rule written with these operations is primal and dual at once.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.scipy import linalg as jax_linalg

from ._backend import namespace
from ._typing import AnyArray, Array

_FIRST_JITTER, _LAST_JITTER = 1e-14, 1e-8
# A vector of which no more than this share lies outside of a span lies in it.
_IN_SPAN = 1e-10
# Rows that are solved for at once.
_ROWS = 16384
# What a row must be free of its own weight for it to be left out.
_LEAST_FREE = 1e-6


_potrf, _potri, _pstrf, _pocon, _gecon = scipy.linalg.get_lapack_funcs(
    ("potrf", "potri", "pstrf", "pocon", "gecon"), dtype=np.float64
)
_syrk, _trmm = scipy.linalg.get_blas_funcs(("syrk", "trmm"), dtype=np.float64)


@functools.cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> Any:
    """A context in which BLAS uses one thread: faster for many small matrices, by far on a machine that is busy."""
    return _threads().limit(limits=1, user_api="blas")


class FactorisationError(np.linalg.LinAlgError):
    """A matrix that should be positive definite is not, even with jitter. A kind of `ValueError`."""


def cholesky(A: AnyArray, name: str, shift: AnyArray = 0.0) -> AnyArray:
    """Lower Cholesky factor of the positive definite matrix `A + shift I`.

    The one jitter policy: factorise as it is; if that fails, add 1e-14 of the mean diagonal and ten times more at each
    try up to 1e-8; then give up with the matrix's name, size and smallest eigenvalue.
    """
    xp = namespace(A, shift)
    size = A.shape[0]
    if xp is jnp:
        return jnp.linalg.cholesky(A + shift * jnp.eye(size))
    if size == 0:  # the core of a factor with no columns, of points where the kernel is zero
        return np.zeros((0, 0))
    scale = float(np.trace(A)) / size + float(shift)
    jitter = 0.0
    while True:
        shifted = np.array(A.T, order="F")  # A is symmetric: the transpose of a C-ordered one needs no reordering
        shifted[np.diag_indices(size)] += shift + (jitter * scale if jitter else 0.0)
        L, failed = _potrf(shifted, lower=1, clean=1, overwrite_a=1)
        if not failed and np.isfinite(np.diagonal(L)).all():  # a NaN need not count as a failure in LAPACK
            return L
        if not np.isfinite(scale) or not np.isfinite(A).all():
            raise FactorisationError(f"{name} ({size} x {size}) holds NaN or infinite values")
        jitter = _FIRST_JITTER if jitter == 0.0 else 10 * jitter
        if jitter > _LAST_JITTER:
            smallest = scipy.linalg.eigvalsh(A, subset_by_index=[0, 0])[0] + shift
            raise FactorisationError(
                f"{name} ({size} x {size}) is not positive definite: its smallest eigenvalue is {smallest:.3g} "
                f"against a mean diagonal of {scale:.3g}. A larger regulariser, a shorter lengthscale or a lower "
                "rank helps; a kernel function of your own may not be positive definite."
            )


def solve_lower(L: AnyArray, B: AnyArray, *, transposed: bool = False) -> AnyArray:
    """`L^-1 B`, or `L^-T B` if transposed, for a lower triangular L."""
    if namespace(L, B) is jnp:
        return jax_linalg.solve_triangular(L, B, lower=True, trans=int(transposed))
    return scipy.linalg.solve_triangular(L, B, lower=True, trans=int(transposed), check_finite=False)


def solve(L: AnyArray, B: AnyArray) -> AnyArray:
    """`(L L')^-1 B` from a Cholesky factor."""
    return solve_lower(L, solve_lower(L, B), transposed=True)


def inverse_of(L: Array) -> Array:
    """`(L L')^-1` from a Cholesky factor, at a third of what solving for the identity costs."""
    return mirror_lower(_potri(L, lower=1)[0])


def solve_definite(A: AnyArray, B: AnyArray, name: str, shift: AnyArray = 0.0) -> AnyArray:
    """`(A + shift I)^-1 B` for a positive definite matrix, without keeping its factor.

    Its derivative is another solve with the same factor and an outer product of as many columns as B has: the
    factorisation itself is not differentiated, which would cost several times as much.
    """
    if namespace(A, B, shift) is np:
        return solve(cholesky(A, name, shift), B)
    held = jax.lax.stop_gradient(A + shift * jnp.eye(A.shape[0]))
    L = jnp.linalg.cholesky(held)
    return jax.lax.custom_linear_solve(lambda v: A @ v + shift * v, B, lambda _, b: solve(L, b), symmetric=True)


def lu(A: AnyArray, name: str) -> tuple[AnyArray, AnyArray]:
    """LU factors of a square matrix that need not be definite, for `lu_solve`."""
    if namespace(A) is jnp:
        return jax_linalg.lu_factor(A)
    if not np.isfinite(A).all():
        raise FactorisationError(f"{name} ({len(A)} x {len(A)}) holds NaN or infinite values")
    with warnings.catch_warnings():  # a zero pivot is told below, by name
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)
        factors, pivots = scipy.linalg.lu_factor(A, check_finite=False)
    if (np.diagonal(factors) == 0.0).any():
        raise FactorisationError(f"{name} ({len(A)} x {len(A)}) is singular; a larger regulariser helps")
    return factors, pivots


def lu_solve(factors: tuple[AnyArray, AnyArray], B: AnyArray) -> AnyArray:
    """`A^-1 B` from the LU factors of A."""
    if namespace(factors[0], B) is jnp:
        return jax_linalg.lu_solve(factors, B)
    return scipy.linalg.lu_solve(factors, B, check_finite=False)


def condition(A: Array, factors: Any, shift: float = 0.0) -> float:
    """Estimated condition number, in the 1-norm, of `A + shift I` from its Cholesky or LU factors: O(r^2)."""
    if not len(A):
        return 1.0
    diagonal = np.diagonal(A)
    norm = float((np.abs(A).sum(0) - np.abs(diagonal) + np.abs(diagonal + shift)).max())
    reciprocal = _gecon(factors[0], norm)[0] if isinstance(factors, tuple) else _pocon(factors, norm, uplo="L")[0]
    return float(1.0 / reciprocal) if reciprocal > 0 else np.inf


def inverses(A: Array) -> tuple[Array, Array]:
    """Inverses and log determinants of a stack (..., d, d) of small positive definite matrices."""
    try:
        L = np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        raise FactorisationError(f"a stack of matrices {A.shape} holds one that is not positive definite") from None
    half = np.linalg.solve(L, np.broadcast_to(np.eye(A.shape[-1]), A.shape))
    return half.swapaxes(-1, -2) @ half, 2.0 * np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(-1)


def solve_stack(A: Array, b: Array, name: str) -> Array:
    """Solutions (t, r) of a stack of small systems (t, r, r) with one right-hand side (t, r) each."""
    try:
        found = np.linalg.solve(A, b[..., None])[..., 0]
    except np.linalg.LinAlgError:
        raise FactorisationError(f"{name}, one of {len(A)}, is singular; a larger regulariser helps") from None
    if not np.isfinite(found).all():
        raise FactorisationError(f"{name}, one of {len(A)}, holds NaN or infinite values")
    return found


def least_squares(A: Array, b: Array) -> Array:
    """The shortest w that minimises `|A w - b|`, by singular values: as exact as the problem allows."""
    found: Any = scipy.linalg.lstsq(A, b, cond=np.finfo(np.float64).eps, check_finite=False)
    return np.asarray(found[0])


def contrasts(n: int) -> Array:
    """Orthonormal columns (n, n - 1) that span all vectors that sum to zero."""
    return np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]


def row_space(M: Array) -> Array:
    """Orthonormal columns (r, k), k = min of the sizes, that span the rows of M (p, r)."""
    return np.linalg.qr(M.T)[0]


class GrowingBasis:
    """An orthonormal basis of the span of vectors of length `dimension` that are added one by one."""

    def __init__(self, dimension: int):
        self.dimension, self.size = dimension, 0
        self._rows = np.empty((dimension, dimension))

    def add(self, v: Array) -> Array:
        """Take in a vector; returns its direction beyond the span so far, or zero if it lies in it to rounding."""
        Q, whole = self._rows[: self.size], float(np.sqrt(v @ v))
        for _ in range(2):  # twice, so that it stays orthogonal to rounding
            v = v - (Q @ v) @ Q
        length = float(np.sqrt(v @ v))
        if length <= _IN_SPAN * whole:
            return np.zeros(self.dimension)
        self._rows[self.size] = v / length
        self.size += 1
        return self._rows[self.size - 1]

    def left(self, V: Array) -> Array:
        """Squared lengths of what lies outside of the span, of rows V (t, dimension)."""
        return (V * V).sum(1) - ((V @ self._rows[: self.size].T) ** 2).sum(1)


class OuterProducts:
    """All products `f_i f_i'` of the rows of F (n, r), for the cores `F' D F` of many weights D in one matrix product.

    Only lower triangles are kept: n r^2 / 2 numbers.
    """

    def __init__(self, F: Array):
        rank = self._rank = F.shape[1]
        rows, columns = np.tril_indices(rank)
        self._products = F[:, rows] * F[:, columns]
        place = np.empty((rank, rank), dtype=np.intp)
        place[rows, columns] = place[columns, rows] = np.arange(len(rows))
        self._place = place.ravel()

    @staticmethod
    def size(F: Array) -> int:
        """How many numbers are kept."""
        return len(F) * F.shape[1] * (F.shape[1] + 1) // 2

    def weighted_cores(self, weights: Array) -> Array:
        """`F' diag(w) F` (t, r, r) for each row of weights (t, n)."""
        return np.take(weights @ self._products, self._place, axis=1).reshape(-1, self._rank, self._rank)


def eigh(A: AnyArray, *, definite: bool = True) -> tuple[AnyArray, AnyArray]:
    """Eigenvalues in falling order and their vectors of a symmetric matrix; none below zero where it is semidefinite."""
    xp = namespace(A)
    values, vectors = jnp.linalg.eigh(A) if xp is jnp else scipy.linalg.eigh(A, check_finite=False)
    values = values[::-1]
    return xp.maximum(values, 0.0) if definite else values, vectors[:, ::-1]


def eigenvectors(A: Array) -> Array:
    """Orthonormal eigenvectors, as columns, of a stack (..., d, d) of small symmetric matrices."""
    return np.linalg.eigh(A)[1]


def singular_values(A: Array) -> Array:
    """Singular values in falling order."""
    return np.linalg.svd(A, compute_uv=False)


def add_outer(S: Array, A: Array) -> Array:
    """`S + A A'` in the lower triangle of a Fortran-ordered S, in place: half the work of a general product."""
    return _syrk(1.0, A, beta=1.0, c=S, lower=1, overwrite_c=1)


def mirror_lower(S: Array) -> Array:
    """The symmetric matrix with this lower triangle."""
    return np.tril(S) + np.tril(S, -1).T


def numerical_rank(K: Array, tol: float) -> int:
    """Rank of a positive semidefinite matrix, by pivoted Cholesky down to `tol` times its largest diagonal."""
    floor = tol * float(np.diagonal(K).max())
    return int(_pstrf(K.T, tol=floor, lower=1)[2])


class PivotedCholesky(NamedTuple):
    """`K ~ F F'` with F (n, r): `F[pivots]` is lower triangular and the fit is exact on the pivots."""

    factor: Array
    pivots: Array
    residual: Array  # what is left of the diagonal


def dense_pivoted_cholesky(K: Array, *, rank: int, tol: float) -> PivotedCholesky:
    """The same as `pivoted_cholesky`, of a Gram matrix that is at hand: LAPACK is many times faster on small ones."""
    diagonal = np.diagonal(K).copy()
    largest = float(diagonal.max(initial=0.0))
    if not np.isfinite(diagonal).all():
        raise FactorisationError(f"the Gram matrix ({len(K)} x {len(K)}) holds NaN or infinite values")
    # near machine precision a little below it: what LAPACK has left of the diagonal is rounded more than in the loop below
    floor = largest * (tol if tol > 1e-14 else 0.3 * tol)
    L, order, found, _ = _pstrf(K.T, tol=floor, lower=1)
    r = min(int(found), rank) if largest > 0.0 else 0
    factor, pivots = np.empty((len(K), r)), (order[:r] - 1).astype(np.intp)
    factor[order - 1] = np.tril(L[:, :r])
    residual = diagonal - (factor * factor).sum(1)
    residual[pivots] = 0.0
    _refuse_indefinite(residual, largest, len(pivots))
    return PivotedCholesky(factor, pivots, np.maximum(residual, 0.0))


def _refuse_indefinite(residual: Array, largest: float, steps: int) -> None:
    if residual.min() < -1e-8 * largest or largest == 0.0 > residual.min():
        raise FactorisationError(
            f"the kernel is not positive semidefinite on these {len(residual)} points: {residual.min():.3g} is left of its "
            f"diagonal, of at most {largest:.3g}, after {steps} steps of a Cholesky factorisation"
        )


def pivoted_cholesky(
    diagonal: Array,
    column: Callable[[int], Array],
    *,
    rank: int,
    tol: float,
    target: Array | None = None,
    first: int = 0,
) -> PivotedCholesky:
    """Greedy incomplete Cholesky of a Gram matrix that is never formed: O(n r) memory, O(n r^2) time.

    Takes the point with the largest remaining diagonal until `rank` points are taken or that diagonal has fallen to
    `tol` times the largest one at the start (Fine and Scheinberg 2001; Bach and Jordan 2002).

    With a `target`, values (n,) of a function at the points, it takes the point whose span brings a projection of that
    function nearest to it: the one with the largest `left^2 / residual`, where `left` is what the projection so far misses
    of the values. The `first` points are taken before all others, as they come.
    """
    n = len(diagonal)
    largest = float(diagonal.max(initial=0.0))
    residual = diagonal.astype(np.float64, copy=True)
    left = None if target is None else target.astype(np.float64, copy=True)
    # what is left below that is rounding: divided by its own root it would grow, and look like an indefinite kernel
    floor = max(tol, float(np.finfo(np.float64).eps)) * largest
    rank = min(rank, n)
    rows = np.empty((min(rank, 64), n))  # F', grown as needed; one contiguous row per pivot
    pivots = np.empty(rank, dtype=np.intp)
    forced = iter(range(first))
    r = 0
    while r < rank:
        p = next((i for i in forced if residual[i] > floor), None)
        p = _next_pivot(residual, left, floor) if p is None else p
        _refuse_indefinite(residual, largest, r)
        if residual[p] <= floor:
            break
        if r == len(rows):
            rows = np.concatenate([rows, np.empty((min(max(r, 64), rank - r), n))])
        row = rows[r]
        np.subtract(column(p), rows[:r, p] @ rows[:r], out=row)
        row /= np.sqrt(residual[p])
        row[pivots[:r]] = 0.0  # exactly triangular on the pivots, not merely up to rounding
        if left is not None:
            left -= left[p] / row[p] * row
        residual -= row * row
        pivots[r] = p
        residual[p] = 0.0
        r += 1
    return PivotedCholesky(np.ascontiguousarray(rows[:r].T), pivots[:r].copy(), np.maximum(residual, 0.0))


def _next_pivot(residual: Array, left: Array | None, floor: float) -> int:
    if left is None:
        return int(residual.argmax())
    gain = np.where(residual > floor, left * left, 0.0) / np.maximum(residual, floor)
    return int(gain.argmax() if gain.any() else residual.argmax())


class LowRank(NamedTuple):
    """The Gram matrix `F F'`, known by its factor F (n, r)."""

    factor: AnyArray

    @property
    def size(self) -> int:
        """Number of points n."""
        return self.factor.shape[0]

    def core(self) -> AnyArray:
        """`F' F`."""
        return self.factor.T @ self.factor

    def weighted_core(self, weights: AnyArray) -> AnyArray:
        """`F' diag(weights) F`, for weights of either sign."""
        return (self.factor.T * weights) @ self.factor

    def gather(self, Y: AnyArray) -> AnyArray:
        """`F' Y`: from values at the points to coordinates."""
        return self.factor.T @ Y

    def normal_equations(self, Y: AnyArray) -> tuple[AnyArray, AnyArray]:
        """`core()` and `gather(Y)` together, as a fit needs them."""
        return self.core(), self.gather(Y)

    def scatter(self, C: AnyArray) -> AnyArray:
        """`C F'`: from coordinates to weights on the points."""
        return C @ self.factor.T


class Dense(NamedTuple):
    """The Gram matrix itself, for when its rank is close to n."""

    matrix: AnyArray

    @property
    def size(self) -> int:
        """Number of points n."""
        return self.matrix.shape[0]

    def core(self) -> AnyArray:
        """`K`."""
        return self.matrix

    def weighted_core(self, weights: AnyArray) -> AnyArray:
        """Refused: `F' D F` needs a factor of K. Take one first (`features.factored`), or use `WeightedRidge`."""
        raise TypeError("a dense Gram matrix has no factor F, so no F' D F")

    def gather(self, Y: AnyArray) -> AnyArray:
        """`Y`: the coordinates are the points' own."""
        return Y

    def normal_equations(self, Y: AnyArray) -> tuple[AnyArray, AnyArray]:
        """`core()` and `gather(Y)` together, as a fit needs them."""
        return self.core(), self.gather(Y)

    def scatter(self, C: AnyArray) -> AnyArray:
        """`C`: the coordinates are the points' own."""
        return C


class Gram(Protocol):
    """What rules know of a Gram matrix: the interface in the table above."""

    @property
    def size(self) -> int:
        """Number of points n."""
        ...

    def core(self) -> AnyArray:
        """The matrix to be regularised."""
        ...

    def weighted_core(self, weights: AnyArray) -> AnyArray:
        """`F' diag(weights) F`; a dense Gram matrix has no factor and refuses."""
        ...

    def gather(self, Y: AnyArray) -> AnyArray:
        """From values at the points to coordinates."""
        ...

    def normal_equations(self, Y: AnyArray) -> tuple[AnyArray, AnyArray]:
        """`core()` and `gather(Y)` together, as a fit needs them."""
        ...

    def scatter(self, C: AnyArray) -> AnyArray:
        """From coordinates to weights on the points."""
        ...


def equal_rows(X: Array) -> Array | None:
    """The same label (n,) for equal rows of X (n, d); None where no two are equal."""
    if not X.shape[1] or any((np.diff(np.sort(column)) != 0).all() for column in X.T):  # which is quick to see
        return None
    _, labels = np.unique(X, axis=0, return_inverse=True)
    return labels if labels.max() + 1 < len(X) else None


def _members(groups: Array) -> list[Array]:
    """Rows of the groups with these labels (n,): a table (number, size) for each size."""
    order = np.argsort(groups, kind="stable")
    rows = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    sizes = np.array([len(group) for group in rows])
    return [np.stack([rows[i] for i in np.flatnonzero(sizes == size)]) for size in np.unique(sizes)]


def leave_one_out(gram: LowRank | Dense, shift: AnyArray, V: AnyArray, groups: Array | None = None) -> AnyArray:
    """Residuals `v_i - v^(x_i)` of ridge regression fitted without point i, for all i from one factorisation.

    With the hat matrix `H = K (K + s I)^-1`, leaving i out gives `((I - H) V)_i / (1 - H_ii)` exactly, the shift s
    being held fixed. For a dense Gram matrix both parts are read off the inverse, since `I - H = s (K + s I)^-1`.

    With labels `groups` (n,), in NumPy, all points of i's group g are left out: `((I - H)_gg)^-1 ((I - H) V)_g`.
    """
    return _left_out(gram, cholesky(gram.core(), "the regularised Gram matrix", shift), V, groups)


def _left_out(gram: LowRank | Dense, L: AnyArray, V: AnyArray, groups: Array | None = None) -> AnyArray:
    xp = namespace(L, V)
    if isinstance(gram, Dense):
        inverse = solve(L, xp.eye(gram.size))
        if groups is None:
            return ((inverse @ V).T / xp.diagonal(inverse)).T
        errors = inverse @ V
        for rows in _members(groups):
            errors[rows] = _solve_each(inverse[rows[:, :, None], rows[:, None, :]], errors[rows])
        return errors
    half = solve_lower(L, gram.factor.T)
    return _left_out_of(half, V)[0] if groups is None else _groups_left_out_of(half, V, _members(groups))[0]


def _left_out_of(half: AnyArray, V: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Residuals of points left out, and `1 - h`, from a factor of the hat matrix, `H = half' half`."""
    free = 1.0 - (half * half).sum(0)
    return ((V - half.T @ (half @ V)).T / free).T, free


def _groups_left_out_of(half: Array, V: Array, members: list[Array]) -> tuple[Array, list[Array]]:
    """Residuals of groups left out, and the blocks `(I - H)_gg` (number, size, size) of those of each size."""
    errors, blocks = V - half.T @ (half @ V), []
    for rows in members:
        own = half.T[rows]
        blocks.append(np.eye(rows.shape[1]) - own @ own.swapaxes(1, 2))
        errors[rows] = _solve_each(blocks[-1], errors[rows])
    return errors, blocks


def _solve_each(A: Array, B: Array) -> Array:
    """`A^-1 B` for a stack of small systems (t, k, k), of one right-hand side (t, k) or several (t, k, p)."""
    return np.linalg.solve(A, B) if B.ndim == 3 else np.linalg.solve(A, B[..., None])[..., 0]


def leave_one_out_slopes(F: Array, shift: float, V: Array, groups: Array | None = None) -> tuple[float, Array, float]:
    """The sum of squares of `leave_one_out` for a factor F (n, r), and its slopes by F (n, r) and by the shift.

    With errors `e_i = r_i / (1 - h_i)`, `M = F' F + s I`, `T = F M^-1`, and `W = diag(q) - (P V' + V P') / 2` where
    `P = 2 E / (1 - h)` and `q_i = p_i . e_i`, a change of the hat matrix H changes the sum by `<W, dH>`. So the slope by
    F is `2 (W T - F N)` with `N = T' W T`, and that by the shift `-tr N`. W is never formed.

    Of groups, `P_g = 2 ((I - H)_gg)^-1 E_g`, and `diag(q)` has blocks `(P_g E_g' + E_g P_g') / 2`.
    """
    L = cholesky(F.T @ F, "the regularised Gram matrix", shift)
    half = solve_lower(L, F.T)
    T = solve_lower(L, half, transposed=True).T
    if groups is None:
        E, free = _left_out_of(half, V)
        P = 2.0 * E / free[:, None]
        own = (P * E).sum(1)[:, None] * T
    else:
        members = _members(groups)
        E, blocks = _groups_left_out_of(half, V, members)
        P, own = np.empty_like(E), np.empty_like(T)
        for rows, block in zip(members, blocks, strict=True):
            P[rows] = 2.0 * _solve_each(block, E[rows])
            left, right, at = P[rows], E[rows], T[rows]
            both = left @ (right.swapaxes(1, 2) @ at) + right @ (left.swapaxes(1, 2) @ at)
            own[rows] = 0.5 * both
    WT = own - 0.5 * (P @ (V.T @ T) + V @ (P.T @ T))
    N = T.T @ WT
    return float((E * E).sum()), 2.0 * (WT - F @ N), -float(np.trace(N))


class WeightedRidge:
    """Ridge regression on a sample with weights `d >= 0`: `w(x) = D F (F' D F + s I)^-1 f(x)`.

    By push-through that is `S (S K S + s I)^-1 S k(x)` with `S = sqrt(D)`, the form used where K is held as it is or the
    points are fewer than the coordinates.
    """

    def __init__(self, gram: Gram, weights: AnyArray, shift: AnyArray):
        xp = namespace(weights)
        self.gram, self.root, self.shift = gram, xp.sqrt(weights), shift
        self.scaled: AnyArray = None
        if isinstance(gram, Dense):
            self.matrix = self.root[:, None] * gram.matrix * self.root
        elif isinstance(gram, LowRank):
            self.scaled = gram.factor * self.root[:, None]
            self.matrix = self.scaled @ self.scaled.T if self._dual else self.scaled.T @ self.scaled
        else:
            self.matrix = gram.weighted_core(weights)
        self.factor = cholesky(self.matrix, "the weighted Gram matrix", shift)

    @property
    def _dual(self) -> bool:
        return self.scaled.shape[0] < self.scaled.shape[1]

    def weights(self, coordinates: AnyArray) -> AnyArray:
        """Weights (t, n) for points given by their coordinates (t, r)."""
        if isinstance(self.gram, Dense):
            return solve(self.factor, (coordinates * self.root).T).T * self.root
        if self.scaled is None:
            return self.gram.scatter(solve(self.factor, coordinates.T).T) * self.root**2
        if self._dual:
            return solve(self.factor, self.scaled @ coordinates.T).T * self.root
        return (solve(self.factor, coordinates.T).T @ self.scaled.T) * self.root

    def coefficients(self, Y: AnyArray) -> AnyArray:
        """What `coordinates @ coefficients` predicts of targets Y (n, m) at new points."""
        targets = self.root[:, None] * Y
        if isinstance(self.gram, Dense):
            return self.root[:, None] * solve(self.factor, targets)
        if self.scaled is None:
            return solve(self.factor, self.gram.gather(self.root[:, None] * targets))
        if self._dual:
            return self.scaled.T @ solve(self.factor, targets)
        return solve(self.factor, self.scaled.T @ targets)

    def leave_one_out(self, Y: AnyArray) -> AnyArray:
        """Predictions at each point of the targets Y (n, m), fitted without it; all weights must be positive."""
        if self.scaled is None and not isinstance(self.gram, Dense):
            raise TypeError("leaving points out needs the whole feature matrix")
        dual = isinstance(self.gram, Dense) or self._dual
        scaled = Dense(self.matrix) if dual else LowRank(self.scaled)
        root = self.root[:, None]
        return Y - _left_out(scaled, self.factor, root * Y) / root

    def condition(self) -> float:
        """Estimated condition number of the matrix that was factorised."""
        return condition(self.matrix, self.factor, float(self.shift))


def linear_moments(factor: Array, weights: Array, F: Array) -> tuple[Array, Array]:
    """Mean and variance (t,) of the function of a `LinearModel` at features (t, r)."""
    variance = np.empty(len(F))
    for i in range(0, len(F), _ROWS):
        half = solve_lower(factor, F[i : i + _ROWS].T)
        variance[i : i + _ROWS] = (half * half).sum(0)
    return F @ weights, variance


def consume_triangular(L: Array, F: Array) -> Array:
    """`F L'` for a lower triangular L (r, r), written over F (t, r): half the arithmetic of a product, without an array."""
    return _trmm(1.0, L, F.T, lower=1, overwrite_b=1).T


class LinearModel:
    """Bayesian linear regression `y = F w + noise`, with `w ~ N(0, I)` and noise of known variances V.

    A Gaussian process with kernel `f(x) . f(x')`, through its features: with `A = I + F' V^-1 F`, the function at x has mean
    `f(x)' A^-1 F' V^-1 y` and variance `f(x)' A^-1 f(x)`.

    Rows of one group have the same features f. Without them A loses `s f f'`, s the sum of their `1 / V`, so that by Sherman
    and Morrison the mean m and the variance v at f become `(m - v t) / (1 - v s)` and `v / (1 - v s)`, t the sum of their
    `y / V`. A group of one is leave-one-out.

    Attributes:
        factor, weights: Cholesky factor of A, and the mean of w.
        mean: at the rows (n,).
    """

    def __init__(self, F: Array, y: Array, variances: Array):
        A = np.zeros((F.shape[1], F.shape[1]), order="F")
        for i in range(0, len(F), _ROWS):
            A = add_outer(A, (F[i : i + _ROWS] / np.sqrt(variances[i : i + _ROWS, None])).T)
        self.factor = cholesky(mirror_lower(A), "the precision of a linear model", 1.0)
        self.weights = solve(self.factor, F.T @ (y / variances))
        self.mean = F @ self.weights
        self._features, self._targets, self._precisions = F, y / variances, 1.0 / variances

    @functools.cached_property
    def variance(self) -> Array:  # which not everyone asks for
        """Variance (n,) at the rows."""
        return linear_moments(self.factor, self.weights, self._features)[1]

    def left_out(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Mean and variance (n,) at each row, without the rows of its group (n,); groups are numbered from zero."""
        s, t = self._precisions, self._targets
        if groups is not None:
            s, t = np.bincount(groups, s)[groups], np.bincount(groups, t)[groups]
        free = np.maximum(1.0 - self.variance * s, _LEAST_FREE)
        return (self.mean - self.variance * t) / free, self.variance / free


def gaussian_draws(covariance: Array, noise: Array) -> Array:
    """Draws (..., d) of a normal with this covariance, perhaps singular, from standard normal numbers (..., d)."""
    values, vectors = eigh(covariance)
    return (noise * np.sqrt(values)) @ vectors.T


def transport(start: Array, end: Array) -> Array:
    """The symmetric T with `T start T = end`, for covariances (d, d): the shortest way from one normal to another.

    T is `start^-1/2 (start^1/2 end start^1/2)^1/2 start^-1/2`; `start` must be definite.
    """
    values, vectors = eigh(start)
    if not values[-1] > 0:
        raise FactorisationError(f"a covariance {start.shape} is singular: smallest eigenvalue {values[-1]:.3g}")
    root, back = ((vectors * values**power) @ vectors.T for power in (0.5, -0.5))
    middle, directions = eigh(root @ end @ root)
    return back @ (directions * np.sqrt(middle)) @ directions.T @ back

"""Points that stand for an embedding: herding, resampling, and a subset of pairs. Kanagawa (2016), 2.7, 3.2-3.3, 4.3.2.

| in the paper | here |
|---|---|
| equations 2.16-2.17 | `herd(n, candidates)`; the loop is in `features._herding` |
| Algorithm 2 | `herd(n)`, `resample` |
| Algorithm 3 | `herd(n, candidates)` |
| Algorithm 6 | `herd_subset` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import numpy as np
import scipy.optimize

from .. import _check
from .._backend import float64
from .._linalg import pivoted_cholesky, solve_lower
from .._typing import AnyArray, Array, ArrayLike, RandomState
from ..features._herding import Pool, herd
from ..kernels import Gaussian, Kernel, check_kernel, matmul
from ..kernels._bandwidth import lengthscale_of

if TYPE_CHECKING:
    from ._mean import MeanEmbedding

# Candidates drawn from a known distribution: so many for each point wanted, and at least this many.
_DRAWS_PER_POINT, _FEWEST_DRAWS = 20, 2000
# Kernel values held at a time, and steps taken, while points move.
_BLOCK_ELEMENTS = 2**20
_MOST_STEPS = 300
# The target of points that move is put on at most so many landmarks, if they carry all but this share of the kernel.
_MOST_LANDMARKS = 400
_ROUNDING = 1e-14


class Sampling:
    """Points with equal weights whose embedding follows a given one."""

    kernel: Kernel

    def herd(
        self,
        n: int,
        candidates: Any = None,
        *,
        refine: int = 0,
        continuous: bool = False,
        repeat: bool = True,
        random_state: RandomState = None,
    ) -> MeanEmbedding:
        r"""Choose n points whose embedding, with equal weights 1/n, is close to this one: kernel herding.

        Greedy: the next point is the candidate that brings :math:`\|\mu - \frac1t \sum_{i \le t} k(\cdot, x_i)\|` down
        most. Weights may be negative and need not sum to one; the target is this embedding divided by their sum. The
        choice itself is not random.

        Args:
            n: how many points.
            candidates: what to choose from; by default the embedding's own points, or draws (20 n, at least 2,000) from
                the distribution of an `AnalyticEmbedding`.
            refine: sweeps of exchanges to follow. In a sweep each point in turn is taken out and the best candidate put in
                its place, so the distance never rises; sweeps end early when one changes nothing. One or two give most of
                what there is to gain.
            continuous: move all points together at the end, by L-BFGS-B, to a local minimum of the distance inside the box
                that the candidates span; they never end farther away. For kernels on vectors that JAX can differentiate.
            repeat: whether a candidate may be taken more than once.
            random_state: seed for candidates that are drawn, and for parting equal points before they move.

        Kanagawa (2016), equations 2.16-2.17 and Algorithms 2 and 3; Chen, Welling and Smola (2010). Where k(x, x) is not
        constant a step takes it into account, so that it still minimises the distance.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> sample = kb.MeanEmbedding(np.random.default_rng(0).normal(size=(2000, 2)), kernel=kb.Gaussian(1.0))
            >>> random, herded, refined = (
            ...     kb.MeanEmbedding(sample.points[:50], kernel=sample.kernel),
            ...     sample.herd(50),
            ...     sample.herd(50, refine=2),
            ... )
            >>> [round(sample.distance(few), 3) for few in (random, herded, refined)]
            [0.108, 0.018, 0.008]
        """
        n, refine = _check.count(n, "n"), _check.count(refine, "refine", at_least=0)
        if continuous:
            _check_moves(self.kernel)
        rng = _check.generator(random_state)
        target = _of_mass_one(self)
        Z, values, pool = _candidates(target, candidates, n, rng)
        if not repeat and n > len(Z):
            raise ValueError(f"n={n} points cannot be taken without repetition from {len(Z)} candidates")
        points = Z[herd(pool, values, n, repeat=repeat, sweeps=refine)]
        if continuous:
            points = _moved(target, points, Z, rng)
        return _weighted(points, None, self.kernel)


def _weighted(points: Array, weights: Array | None, kernel: Kernel) -> MeanEmbedding:
    from ._mean import MeanEmbedding  # which inherits from the class above

    return MeanEmbedding(points, weights, kernel)


def _of_mass_one(embedding: Any) -> Any:
    """An embedding whose weights sum to one; that of a distribution is so already."""
    return embedding.normalise() if hasattr(embedding, "weights") else embedding


def _candidates(target: Any, given: Any, n: int, rng: np.random.Generator) -> tuple[Array, Array, Pool]:
    """What there is to choose from, and the target's values there."""
    own = getattr(target, "points", None)
    if given is None and own is not None:
        pool = Pool((target.kernel, own))
        return own, pool.embed(target.weights), pool
    if given is None:
        given = target.distribution.sample(max(_DRAWS_PER_POINT * n, _FEWEST_DRAWS), rng)
    Z = target.kernel._check(_check.by_name(given, target._columns, "candidates"), "candidates")
    shape = own.shape[1:] if own is not None else (target.distribution.dimension,)
    if Z.shape[1:] != shape:
        raise ValueError(
            f"candidates has points of shape {Z.shape[1:]} where the embedding has points of shape {shape}"
        )
    return Z, target._evaluate(Z), Pool((target.kernel, Z))


# ------------------------------------------------------------------------------------- over a continuous domain


def _check_moves(kernel: Kernel) -> None:
    if not kernel._takes_vectors or kernel._evaluates_on_host:
        raise ValueError(
            f"continuous=True moves points along the gradient of the kernel, which a {type(kernel).__name__} kernel "
            "does not have; leave it out, and use refine= to improve the choice among candidates"
        )


def _moved(target: Any, start: Array, candidates: Array, rng: np.random.Generator) -> Array:
    """A local minimum of the distance near these points, or the points themselves if none better was found."""
    low, high = candidates.min(0), candidates.max(0)
    apart = np.clip(_parted(start, high - low, rng), low, high)
    found = scipy.optimize.minimize(
        _Discrepancy(_on_landmarks(target), high - low),
        apart.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(np.tile(low, len(start)), np.tile(high, len(start)), strict=True)),
        options={"maxiter": _MOST_STEPS, "maxfun": 2 * _MOST_STEPS, "maxcor": 20, "ftol": 0.0, "gtol": 1e-10},
    )
    points = found.x.reshape(start.shape)
    return points if _in_domain(target.kernel, points) and _squared(target, points) < _squared(target, start) else start


def _on_landmarks(target: Any) -> Any:
    """The target projected on few of its own points, where the kernel is so smooth that these span it to rounding.

    With `K = F F'` and `L` the rows of F at the landmarks, the projection of `sum_i w_i k(., x_i)` has weights
    `L^-T F' w` there. Moving n points then costs n (n + r) kernel values a step instead of n (n + N).
    """
    if not hasattr(target, "points"):
        return target
    pool = Pool((target.kernel, target.points))
    diagonal = pool.diagonal()
    rank = max(1, min(len(pool) // 4, _MOST_LANDMARKS))
    F, pivots, residual = pivoted_cholesky(diagonal, pool.row, rank=rank, tol=_ROUNDING)
    if residual.max() > _ROUNDING * diagonal.max():
        return target
    weights = solve_lower(F[pivots], target.weights @ F, transposed=True)
    return _weighted(target.points[pivots], weights, target.kernel)


def _squared(target: Any, points: Array) -> float:
    """The squared distance of points to the target, less a constant."""
    n = len(points)
    own = matmul(target.kernel, points, points, np.full(n, 1.0 / n))
    return float((own - 2.0 * target._evaluate(points)).mean())


def _parted(points: Array, spread: Array, rng: np.random.Generator) -> Array:
    """Equal points see the same slope and would move together for ever: all but the first of each are shifted a little."""
    _, first = np.unique(points, axis=0, return_index=True)
    shift = 1e-3 * spread * rng.standard_normal(points.shape)
    shift[first] = 0.0
    return points + shift


def _in_domain(kernel: Kernel, points: Array) -> bool:
    try:
        kernel._check(points, "points")
    except ValueError:
        return False
    return True


class _Discrepancy:
    r"""n times the squared distance, less a constant, as a function of the points, with its slope.

    With `s` the embedding of n points with equal weights and `m` the target, both seen as functions,
    `||s - m||^2 = mean_i (s - 2 m)(x_i) + const`, and its slope with respect to `x_i` is `(2 / n) grad (s - m)(x_i)`.
    """

    def __init__(self, target: Any, spread: Array):
        self.target, self.step = target, 1e-5 * np.where(spread > 0, spread, 1.0)
        self.weighted = hasattr(target, "points")
        self.worst = 0.0

    def __call__(self, flat: Array) -> tuple[float, Array]:
        X = flat.reshape(-1, len(self.step))
        n = len(X)
        Y, W = X, np.column_stack([np.full(n, 1.0 / n), np.zeros(n)])
        if self.weighted:
            Y = np.concatenate([X, self.target.points])
            W = np.concatenate([W, np.column_stack([np.zeros(len(Y) - n), self.target.weights])])
        values, slopes = _values_and_slopes(self.target.kernel, X, Y, W)
        if not self.weighted:
            values[:, 1] = self.target._evaluate(X)
            slopes -= self._slopes_of_target(X)
        value = float((values[:, 0] - 2.0 * values[:, 1]).sum())
        if np.isfinite(value) and np.isfinite(slopes).all():
            self.worst = max(self.worst, value)
            return value, 2.0 * slopes.ravel()
        return self.worst + abs(self.worst) + 1.0, np.zeros(X.size)  # a wall: the line search steps back

    def _slopes_of_target(self, X: Array) -> Array:
        """Of a closed form, which NumPy evaluates, by central differences."""
        out = np.empty_like(X)
        for j, h in enumerate(self.step):
            shift = np.zeros(len(self.step))
            shift[j] = h
            out[:, j] = (self.target._evaluate(X + shift) - self.target._evaluate(X - shift)) / (2.0 * h)
        return out


@float64
def _values_and_slopes(kernel: Kernel, X: Array, Y: Array, W: Array) -> tuple[Array, Array]:
    """`K(X, Y) W` for two columns W, and the gradient at each x of the first less the second; in blocks of rows."""
    size = max(1, min(len(X), _BLOCK_ELEMENTS // len(Y)))
    values, slopes = np.empty((len(X), 2)), np.empty(X.shape)
    for start in range(0, len(X), size):
        rows = np.minimum(np.arange(start, start + size), len(X) - 1)  # one shape for all blocks
        value, slope = _compiled_values_and_slopes(kernel, X[rows], Y, W)
        values[rows], slopes[rows] = np.asarray(value), np.asarray(slope)
    return values, slopes


@eqx.filter_jit
def _compiled_values_and_slopes(kernel: Kernel, X: AnyArray, Y: AnyArray, W: AnyArray) -> tuple[AnyArray, AnyArray]:
    def difference(X: AnyArray) -> tuple[AnyArray, AnyArray]:
        values = kernel._gram(X, Y) @ W
        return (values[:, 0] - values[:, 1]).sum(), values

    (_, values), slopes = jax.value_and_grad(difference, has_aux=True)(X)
    return values, slopes


# ----------------------------------------------------------------------------------------- resampling and subsets


def resample(
    embedding: MeanEmbedding,
    n: int | None = None,
    *,
    distinct: int | None = None,
    always: bool = False,
    refine: int = 0,
) -> MeanEmbedding:
    """Exchange a weighted sample for points of equal weight, where its weights have become uneven.

    Points are herded from the embedding's own, heavy ones several times over. That is worth its loss where few points
    carry the weight and a draw from a transition at each point comes next: the error that those draws bring grows with
    the sum of squared weights (equation 3.5). Negative weights are no trouble, as they are for drawing by weight.

    Args:
        embedding: the weighted sample.
        n: number of points to return; by default as many as there are.
        distinct: herd only this many points and copy them, first to last and again, up to n. It saves time where a few
            points already follow the embedding; the copies go separate ways at the next transition.
        always: resample even if it is not needed. By default an embedding with `sum w^2 <= 2 / n`, that is with an
            effective sample size of at least half its points, is returned as it is, if it has the n points asked for.
        refine: sweeps of exchanges, as in `herd`.

    Kanagawa (2016), Algorithm 2 and section 3.3.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> x = np.linspace(-3, 3, 200)
        >>> weighted = kb.MeanEmbedding(x, np.exp(-8 * (x - 1) ** 2), kernel=kb.Gaussian(0.5)).normalise()
        >>> even = kb.resample(weighted, distinct=50)
        >>> len(even), round(weighted.ess()), round(even.ess()), weighted.distance(even) < 0.01
        (200, 29, 200, True)
        >>> kb.resample(even) is even  # nothing to do
        True
    """
    if not hasattr(embedding, "weights"):
        raise ValueError(
            f"embedding must be a weighted sample such as kb.MeanEmbedding(x, w), got {type(embedding).__name__}; "
            "of any embedding, herd(n) gives points with equal weights"
        )
    n = len(embedding) if n is None else _check.count(n, "n")
    distinct = n if distinct is None else _check.count(distinct, "distinct")
    if distinct > n:
        raise ValueError(f"distinct={distinct} points cannot be copied to make only n={n}")
    if n == len(embedding) and not always and not embedding.needs_resampling():
        return embedding
    few = embedding.herd(distinct, refine=refine)
    return _weighted(few.points[np.arange(n) % distinct], None, few.kernel)


def herd_subset(
    X: ArrayLike,
    Y: ArrayLike,
    n: int,
    *,
    kernel: Kernel | None = None,
    target_kernel: Kernel | None = None,
    refine: int = 0,
) -> Array:
    r"""Choose pairs that stand for all: indices (n,) of distinct pairs (x_i, y_i), the most useful first.

    The pairs are herded under the product kernel :math:`k(x, x')\, \ell(y, y')`, so that the embedding of their joint
    distribution follows that of all pairs. Any rule that learns from pairs can then learn from `X[found], Y[found]`.
    Time is that of the n x n kernel values of the target, of which no more than a block is held, or much less where both
    kernels are smooth in few dimensions; then O(n) for each pair taken.

    Args:
        X, Y: the pairs; vectors, or whatever the kernels take.
        n: how many pairs to choose.
        kernel, target_kernel: of x and of y; Gaussian with the median distance if not given.
        refine: sweeps of exchanges to follow, as in `MeanEmbedding.herd`.

    Kanagawa (2016), section 4.3.2, equations 4.11-4.12, Algorithm 6.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-2, 2, (1000, 1))
        >>> y = np.sin(3 * x) + 0.1 * rng.normal(size=(1000, 1))
        >>> found = kb.herd_subset(x, y, 100)
        >>> few = kb.ConditionalEmbedding(kb.Gaussian(0.5), reg=1e-4).fit(x[found], y[found])
        >>> float(np.abs(few.predict(x) - np.sin(3 * x)).mean()) < 0.1
        True
    """
    kernel, X = _side(X, kernel, "X", "kernel")
    target_kernel, Y = _side(Y, target_kernel, "Y", "target_kernel")
    _check.same_length(X, Y, "X", "Y")
    n = _check.count(n, "n")
    refine = _check.count(refine, "refine", at_least=0)
    if n > len(X):
        raise ValueError(f"n={n} exceeds the {len(X)} pairs that there are")
    pool = Pool((kernel, X), (target_kernel, Y))
    return herd(pool, pool.embed(np.full(len(X), 1.0 / len(X))), n, repeat=False, sweeps=refine)


def _side(points: ArrayLike, kernel: Kernel | None, name: str, kernel_name: str) -> tuple[Kernel, Array]:
    if kernel is not None:
        return kernel, check_kernel(kernel, kernel_name)._check(points, name)
    points = _check.vectors(points, name)
    return Gaussian(lengthscale_of(points, name)), points

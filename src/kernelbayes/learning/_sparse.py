r"""Learning the points, the kernel and the noise of a sparse regression.

Hsu (2019), section 5.9.2: regression through a mediator (`rules.deconditional`) where x and y are both n points u, and the
task is the data, so that with :math:`A = (K_{uu} + \tau I)^{-1} K_{um}`

.. math:: \log p(z) = \log \mathcal N(z; 0, A^\top K_{uu} A + \sigma^2 I)

(theorem 5.7, 4) is maximised over u as well. It does not count what the points miss of the kernel at the data, so it is
glad to move points until the data fit by chance. Since :math:`S = A^\top K_{uu} A \preceq K_{mm}`, by Jensen's inequality

.. math:: \log \mathcal N(z; 0, K_{mm} + \sigma^2 I) \ge
          \log \mathcal N(z; 0, S + \sigma^2 I) - \frac{\mathrm{tr}(K_{mm} - S)}{2 \sigma^2}:

a lower bound on the evidence of the whole process, which is largest at :math:`\tau = 0`, where it is that of Titsias (2009).
Both are here. Rows are summed in chunks that are computed anew for the gradient, so that memory does not grow with them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from .._backend import namespace
from .._linalg import cholesky, one_thread, solve_lower
from .._typing import AnyArray, Array
from ..features._selection import kmeans
from ..kernels import Gaussian, Kernel, Scaled, positive
from ..kernels._bandwidth import lengthscale_of
from ..kernels._parameters import unbounded
from ..rules import deconditional
from ..rules.deconditional import Noise, Primal, Task, Transfer
from ._conditional import pad_rows, padded_size
from ._mediated import LENGTHSCALE_BOUNDS, LENGTHSCALES, NOISE_BOUNDS, NOISES, SCALE_BOUNDS
from ._optimise import Optimum, evaluate, free_leaves, minimise

# Rows summed at a time; points are padded to a multiple, so that similar problems share a compilation.
_CHUNK, _POINTS = 2048, 64
# Up to here matrices are so small that threads of BLAS only wait for each other.
_SMALL = 128
_JITTER = 1e-9


class SparseParameters(eqx.Module):
    """What is learned: the kernel, the noise, and the points."""

    kernel: Kernel
    noise: AnyArray = positive()
    points: AnyArray = unbounded()
    spread: float | None = eqx.field(static=True, default=0.0)  # tau; None is that of the noise, as in the paper
    variational: bool = eqx.field(static=True, default=True)


class Rows(NamedTuple):
    """Data in chunks (c, rows, ...), padded; masks are 1 on what is real. Points are given in units (d,) of their own."""

    X: AnyArray
    z: AnyArray
    mask: AnyArray
    point_mask: AnyArray
    unit: AnyArray


class Sums(NamedTuple):
    """All that is needed of the data: what a task is known by, and the kernel's diagonal, summed."""

    task: Task
    prior: AnyArray


def chunked(X: Array, z: Array, size: int = _CHUNK) -> tuple[Array, Array, Array]:
    """Points, targets and mask in chunks of a size; few rows in one chunk, padded to a power of two."""
    rows = min(padded_size(len(X)), size)
    total = -(-len(X) // rows) * rows
    X, mask = pad_rows(X, total)
    z = np.pad(z, ((0, total - len(z)), (0, 0)))
    return X.reshape(-1, rows, X.shape[1]), z.reshape(-1, rows, z.shape[1]), mask.reshape(-1, rows)


def summed(kernel: Kernel, root: AnyArray, U: AnyArray, rows: Rows) -> Sums:
    """Sums over rows of their coordinates `root^-1 k(U, x)`, chunk by chunk: O(m n^2) time, O(n^2) memory."""

    @jax.checkpoint
    def add(total: Any, chunk: Any) -> Any:
        X, z, mask = chunk
        G = solve_lower(root, kernel._gram(U, X) * (rows.point_mask[:, None] * mask))
        core, right, prior = total
        return (core + G @ G.T, right + G @ z, prior + (mask * kernel._diag(X)).sum()), None

    n, targets = len(U), rows.z.shape[2]
    nothing = (jnp.zeros((n, n)), jnp.zeros((n, targets)), jnp.zeros(()))
    (core, right, prior), _ = jax.lax.scan(add, nothing, (rows.X, rows.z, rows.mask))
    return Sums(Task(core, right, (rows.z * rows.z).sum((0, 1)), rows.mask.sum()), prior)


def carried(F: AnyArray, spread: Any) -> Transfer:
    """From the coordinates of points to themselves: all of it as the spread tends to zero."""
    if isinstance(spread, float) and spread == 0.0:
        identity = namespace(F).eye(F.shape[1])
        return Transfer(identity, identity)
    return deconditional.transfer(F, F, spread)


def fit_sums(F: AnyArray, sums: Sums, params: SparseParameters) -> tuple[Primal, AnyArray]:
    """The posterior of f from the points' coordinates, and the logarithm (t,) of the marginal likelihood or its bound."""
    spread = params.noise if params.spread is None else params.spread
    pairs = carried(F, spread)
    found = deconditional.primal(pairs, sums.task, Noise(params.noise, spread, uncertain=False))
    if not params.variational:
        return found, found.log_marginal
    B = pairs.map()
    missed = sums.prior - (B * (B @ sums.task.core)).sum()
    return found, found.log_marginal - 0.5 * missed / params.noise


def loss(params: SparseParameters, rows: Rows) -> AnyArray:
    """Minus the logarithm of the marginal likelihood, or of its bound, per target."""
    U, m = params.points * rows.unit, rows.point_mask
    K = params.kernel._gram(U, U) * (m[:, None] * m)
    jitter = _JITTER * jnp.trace(K) / m.sum()
    root = cholesky(K + jnp.diag(1.0 - m), "the points' Gram matrix", jitter)
    sums = summed(params.kernel, root, U, rows)
    _, value = fit_sums(root, sums, params)
    return -value.sum() / (sums.task.size * rows.z.shape[2])


# ---------------------------------------------------------------------------------------------------- the search


class Settled(NamedTuple):
    """What the user has decided: points, or their number; a kernel to start from; the noise, where it is not learned."""

    points: Array | int
    kernel: Kernel | None = None
    noise: float | None = None
    spread: float | None = 0.0
    variational: bool = True
    learn_points: bool = True
    learn_kernel: bool = True
    ard: bool = True
    rows: int = 4096
    max_iter: int = 100
    restarts: int = 0
    progress: bool | None = False

    def few(self, X: Array, z: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The rows that are learned from, by chance if there are more."""
        if len(X) <= self.rows:
            return X, z
        chosen = rng.permutation(len(X))[: self.rows]
        return X[chosen], z[chosen]


def first_points(points: Array | int, X: Array, rng: np.random.Generator) -> Array:
    """Points as given or, for a number of them, centres of k-means; all distinct rows where there are no more."""
    if isinstance(points, np.ndarray):
        return points
    distinct = np.unique(X, axis=0)
    return distinct if len(distinct) <= points else kmeans(Gaussian(), X, points, rng)


def learn_sparse(settled: Settled, X: Array, z: Array, rng: np.random.Generator) -> Optimum:
    """Maximise the objective over kernel, noise and points, on a share of the rows, from the best of a few starts."""
    X, z = settled.few(X, z, rng)
    scale = np.asarray(lengthscale_of(X, "X", per_column=True))
    first = first_points(settled.points, X, rng)
    points, point_mask = pad_rows(first / scale, -(-len(first) // _POINTS) * _POINTS)
    own = settled.kernel is None  # then columns are divided by their scales, else only points are
    unit = np.ones(len(scale)) if own else scale
    data = (Rows(*chunked(X / scale if own else X, z), point_mask, unit),)
    variance = float((z * z).mean()) or 1.0
    with one_thread() if len(points) <= _SMALL else contextlib.nullcontext():
        found = _descended(settled, _starts(settled, points, variance), data, variance, rng)
    kernel, moved = found.params.kernel, found.params.points[: len(first)] * scale
    params = dataclasses.replace(
        found.params,
        points=moved if settled.learn_points else first,
        kernel=Scaled(Gaussian(kernel.kernel.lengthscale * scale), kernel.scale) if own else kernel,
    )
    # points are many numbers, and of little use on the way
    path = tuple({name: v for name, v in step.items() if name != "points"} for step in found.path)
    return dataclasses.replace(found, params=params, path=path)


def _descended(
    settled: Settled, starts: list[SparseParameters], data: tuple[Rows], variance: float, rng: np.random.Generator
) -> Optimum:
    start = min(starts, key=lambda params: evaluate(loss, params, data))
    return minimise(
        loss,
        start,
        data,
        bounds=_bounds(settled, variance),
        fixed=_fixed(settled, start),
        restarts=settled.restarts,
        max_iter=settled.max_iter,
        tol=1e-7,
        random_state=rng,
        warn=False,
        progress=settled.progress,
    )


def _starts(settled: Settled, points: Array, variance: float) -> list[SparseParameters]:
    one = np.ones(points.shape[1]) if settled.ard else np.asarray(1.0)
    default = [Scaled(Gaussian(factor * one), variance) for factor in LENGTHSCALES]
    kernels = default if settled.kernel is None else [settled.kernel]
    noises = [share * variance for share in NOISES] if settled.noise is None else [settled.noise]
    return [
        SparseParameters(kernel, noise, points, settled.spread, settled.variational)
        for kernel in kernels
        for noise in noises
    ]


def _bounds(settled: Settled, variance: float) -> dict[str, tuple[float, float]]:
    noise, scale = ((variance * low, variance * high) for low, high in (NOISE_BOUNDS, SCALE_BOUNDS))
    out = {} if settled.kernel else {"kernel.kernel.lengthscale": LENGTHSCALE_BOUNDS, "kernel.scale": scale}
    return out if settled.noise is not None else out | {"noise": noise}


def _fixed(settled: Settled, params: SparseParameters) -> list[str]:
    held = {"noise": settled.noise is not None, "points": not settled.learn_points, "kernel": not settled.learn_kernel}
    return [leaf.name for leaf in free_leaves(params, {}, ()) if held[leaf.name.split(".")[0]]]


def refit_noise(F: Array, sums: Sums, params: SparseParameters) -> SparseParameters:
    """The noise that suits sums over all rows best, kernel and points as they are: within a factor of ten."""

    def away(log_noise: float) -> float:
        _, value = fit_sums(F, sums, dataclasses.replace(params, noise=np.exp(log_noise)))
        return -float(value.sum())

    start = float(np.log(params.noise))
    reach = (start - np.log(10.0), start + np.log(10.0))
    found: Any = scipy.optimize.minimize_scalar(away, bounds=reach, method="bounded", options={"xatol": 1e-3})
    return dataclasses.replace(params, noise=np.exp(found.x))

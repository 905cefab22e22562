"""Single points that stand for an embedding: the heaviest, and the pre-image."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
import scipy.optimize

from .._backend import float64
from .._typing import AnyArray, Array
from ..kernels import Gaussian, Kernel, Laplace, Linear, Matern, Polynomial, RationalQuadratic, dense_gram, matmul
from ..kernels._base import Columns, Product, Scaled, Sum

_CANDIDATES = 1000  # points whose distance is computed
_STARTS = 8
_ALIKE = 0.9  # cosine in the RKHS above which two points are one start
_SMOOTH = (Gaussian, RationalQuadratic, Matern, Laplace, Linear, Polynomial)
_COMPOSED = (Sum, Product, Scaled, Columns)


def heaviest_point(points: Array, w: Array) -> Any:
    """The point with the largest weight, the weights of equal points counted together where they can be compared."""
    try:
        _, first, group = np.unique(points, axis=0, return_index=True, return_inverse=True)
        row = first[np.bincount(group.ravel(), w).argmax()]
    except (TypeError, ValueError):  # objects without an order, or arrays, of which equality is no one answer
        row = w.argmax()
    return points[row].copy() if points.ndim > 1 else points[row]


def nearest_point(kernel: Kernel, X: Array, w: Array) -> Any:
    """The minimum over x of `k(x, x) - 2 sum_i w_i k(x, x_i)`, which is `|k(., x) - mu|^2` up to a constant.

    Sought from the best of the points, by L-BFGS where the kernel is differentiable on the whole space. A kernel with a kink
    has its minimum at a point or, for the Laplace kernel, on a grid of the points' coordinates: between two of them, a
    positive embedding is convex along an axis.
    """
    candidates = X[_candidates(w)]
    scores = _misfits(kernel, candidates, X, w)
    best, least = candidates[scores.argmin()], scores.min()
    if X.dtype.kind != "f" or not _everywhere_differentiable(kernel):
        return best
    starts = [w @ X, *candidates[_apart(kernel, candidates, scores)]]
    value, x = min((_descend(kernel, X, w, start) for start in starts), key=_value)
    if _has(kernel, Laplace):
        value, x = min((_along_axes(kernel, X, w, start, candidates) for start in (best, x)), key=_value)
    return x if value < least else best


def _value(run: tuple[float, Array]) -> float:
    return run[0]


def _candidates(w: Array) -> Array:
    """Rows to look at: all, or the heaviest together with an even selection."""
    if len(w) <= _CANDIDATES:
        return np.arange(len(w))
    half = _CANDIDATES // 2
    return np.union1d(np.argsort(-w, kind="stable")[:half], np.linspace(0, len(w) - 1, half).astype(int))


def _misfits(kernel: Kernel, points: Array, X: Array, w: Array) -> Array:
    return kernel._diag(points) - 2.0 * matmul(kernel, points, X, w)


def _everywhere_differentiable(kernel: Kernel) -> bool:
    if isinstance(kernel, _COMPOSED):
        return all(_everywhere_differentiable(part) for part in kernel._parts())
    return type(kernel) in _SMOOTH


def _has(kernel: Kernel, kind: type[Kernel]) -> bool:
    return isinstance(kernel, kind) or any(_has(part, kind) for part in kernel._parts())


def _apart(kernel: Kernel, points: Array, scores: Array) -> list[int]:
    """Rows of the best points, leaving out those much like a better one."""
    order = scores.argsort()[:200]
    length = np.sqrt(np.maximum(kernel._diag(points[order]), np.finfo(float).tiny))
    alike = dense_gram(kernel, points[order], points[order]) > _ALIKE * np.outer(length, length)
    chosen: list[int] = []
    for i in range(len(order)):
        if len(chosen) < _STARTS and not alike[i, chosen].any():
            chosen.append(i)
    return [int(order[i]) for i in chosen]


def _unit(kernel: Kernel, X: Array) -> Array:
    """The distance (d,) over which the embedding changes: the shortest lengthscale, else the spread of the points."""
    scales = [_unit(part, X) for part in kernel._parts() if not isinstance(kernel, Columns)]
    lengthscale = getattr(kernel, "lengthscale", None)
    if lengthscale is not None:
        scales.append(np.broadcast_to(np.asarray(lengthscale, dtype=np.float64), X.shape[1:]))
    spread = X.std(0)
    return np.min(scales, axis=0) if scales else np.where(spread > 0, spread, 1.0)


@float64
def _descend(kernel: Kernel, X: Array, w: Array, start: Array) -> tuple[float, Array]:
    """A local minimum and where it is."""
    unit = _unit(kernel, X)
    misfit: Any = _gaussian_misfit if type(kernel) is Gaussian else _misfit

    def value_and_slope(u: Array) -> tuple[float, Array]:
        value, slope = misfit(start + unit * u, kernel, X, w)
        return float(value), np.asarray(slope) * unit

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 200}
    run = scipy.optimize.minimize(value_and_slope, np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
    return float(run.fun), start + unit * run.x


@eqx.filter_jit
@eqx.filter_value_and_grad
def _misfit(x: AnyArray, kernel: Kernel, X: AnyArray, w: AnyArray) -> AnyArray:
    """The squared distance up to a constant, and its slope in x."""
    return (kernel._diag(x[None]) - 2.0 * kernel._gram(x[None], X) @ w)[0]


def _gaussian_misfit(x: Array, kernel: Gaussian, X: Array, w: Array) -> tuple[float, Array]:
    """The same for the kernel of every density, with nothing to compile."""
    away = (x - X) / kernel.lengthscale
    values = w * np.exp(-0.5 * (away * away).sum(1))
    return 1.0 - 2.0 * values.sum(), 2.0 * values @ away / kernel.lengthscale


def _along_axes(kernel: Kernel, X: Array, w: Array, x: Array, candidates: Array) -> tuple[float, Array]:
    """Move one coordinate at a time to the best of the points' until none moves."""
    x, least = x.copy(), float(_misfits(kernel, x[None], X, w)[0])
    moved = True
    while moved:
        moved = False
        for j in range(len(x)):
            trial = np.repeat(x[None], len(candidates), axis=0)
            trial[:, j] = candidates[:, j]
            scores = _misfits(kernel, trial, X, w)
            if scores.min() < least - 1e-12 * abs(least):
                x, least, moved = trial[scores.argmin()], float(scores.min()), True
    return least, x

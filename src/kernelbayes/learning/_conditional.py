r"""Objectives for the hyperparameters of a conditional embedding.

Both measure how well the embedding predicts the features of held-out y. With coordinates f(x), target features v(y) and
`M = F'F + n reg I`:

- leave-one-out, in closed form: :math:`\frac1n \sum_i \|v_i - \hat v_{-i}(x_i)\|^2`;
- k-fold validation with the penalty of Hsu (2020), equation 2.52:
  :math:`\frac1{n_V} \sum_j \|v_j - \Theta^\top f(x_j)\|^2 + \lambda \|\Theta\|_{HS}^2`, with
  :math:`\Theta = M_T^{-1} F_T^\top V_T` from the training part.

The target kernel is not learned: a wider one makes either loss smaller without predicting anything better.
Samples are padded to a few sizes, so that problems of similar size share one compilation.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._backend import namespace
from .._linalg import LowRank, cholesky, eigh, leave_one_out, solve, solve_lower
from .._typing import AnyArray, Array
from ..features import IncompleteCholesky, Subspace, pivots, represent
from ..kernels import Gaussian, Kernel
from ..kernels._base import positive
from ._optimise import BoundWarning, Optimum, minimise

MOST_POINTS = 1024
_MOST_LANDMARKS = 256
_MOST_TARGETS = 64
_LARGE_SAMPLE_TARGETS = 16
_HELD_OUT = 2000
_FOLDS = 5
_JITTER = 1e-10
REG_START = 1e-3
REG_BOUNDS = (1e-10, 10.0)
REACH = 100.0  # how far a lengthscale may move, as a factor either way


class ConditionalParameters(eqx.Module):
    """What is learned: the kernel's parameters and the regulariser."""

    kernel: Kernel
    reg: AnyArray = positive()


class Regulariser(eqx.Module):
    """What is learned where the features are given."""

    reg: AnyArray = positive()


class Padded(NamedTuple):
    """A sample, landmarks and target features, padded to shared shapes; masks are 1 on what is real."""

    X: AnyArray
    mask: AnyArray
    landmarks: AnyArray
    landmark_mask: AnyArray
    V: AnyArray


def _padded_size(n: int, smallest: int = 64) -> int:
    return max(smallest, 1 << (n - 1).bit_length())


def _pad_rows(A: Array, rows: int) -> tuple[Array, Array]:
    mask = np.concatenate([np.ones(len(A)), np.zeros(rows - len(A))])
    return np.concatenate([A, np.repeat(A[-1:], rows - len(A), axis=0)]), mask


def _prepare(X: Array, V: Array, landmarks: Array) -> Padded:
    """Pad a sample so that samples of similar size share a compilation."""
    X, mask = _pad_rows(X, _padded_size(len(X)))
    V = np.pad(V, ((0, len(X) - len(V)), (0, _padded_size(V.shape[1], 8) - V.shape[1])))
    landmarks, landmark_mask = _pad_rows(landmarks, _padded_size(len(landmarks)))
    return Padded(X, mask, landmarks, landmark_mask, V)


def masked_features(kernel: Kernel, sample: Padded) -> AnyArray:
    """Landmark coordinates that are zero for padded points and padded landmarks."""
    xp = namespace(sample.X)
    m = sample.landmark_mask
    K = kernel._gram(sample.landmarks, sample.landmarks) * (m[:, None] * m) + xp.diag(1.0 - m)
    L = cholesky(K, "the landmarks' Gram matrix", _JITTER * xp.trace(K) / len(m))
    G = kernel._gram(sample.X, sample.landmarks) * (sample.mask[:, None] * m)
    return solve_lower(L, G.T).T


def loo_loss(reg: AnyArray, F: AnyArray, mask: AnyArray, V: AnyArray) -> AnyArray:
    """Mean squared leave-one-out error of the target features; padded rows are zero and add nothing."""
    n = mask.sum()
    return (leave_one_out(LowRank(F), n * reg, V) ** 2).sum() / n


def validation_loss(reg: AnyArray, F: AnyArray, mask: AnyArray, V: AnyArray) -> AnyArray:
    """The objective (2.52), averaged over folds of every fifth point; of fewer points, of each."""

    def one(fold: int) -> AnyArray:
        held = mask * (jnp.arange(mask.shape[0]) % _FOLDS == fold)
        train = mask - held
        Ft = F * train[:, None]
        L = cholesky(Ft.T @ Ft, "a fold's regularised Gram matrix", train.sum() * reg)
        theta = solve(L, Ft.T @ V)
        error = ((V - F @ theta) ** 2).sum(1) @ held / jnp.maximum(held.sum(), 1.0)
        return jnp.where(held.any(), error + reg * (theta**2).sum(), 0.0)

    # Folds one after the other: batched factorisations can deadlock XLA's thread pool on few cores.
    return sum(one(fold) for fold in range(_FOLDS)) / jnp.minimum(_FOLDS, mask.sum())


def _loo_of_kernel(params: ConditionalParameters, sample: Padded) -> AnyArray:
    return loo_loss(params.reg, masked_features(params.kernel, sample), sample.mask, sample.V)


def _loo_of_reg(params: Regulariser, F: AnyArray, mask: AnyArray, V: AnyArray) -> AnyArray:
    return loo_loss(params.reg, F, mask, V)


def _validation_of_kernel(params: ConditionalParameters, sample: Padded) -> AnyArray:
    return validation_loss(params.reg, masked_features(params.kernel, sample), sample.mask, sample.V)


def _validation_of_reg(params: Regulariser, F: AnyArray, mask: AnyArray, V: AnyArray) -> AnyArray:
    return validation_loss(params.reg, F, mask, V)


_OBJECTIVES = {"loo": (_loo_of_kernel, _loo_of_reg), "validation": (_validation_of_kernel, _validation_of_reg)}


def target_features(kernel: Kernel, Y: Array, rng: np.random.Generator) -> Array:
    """Leading features of the target kernel at all y, about their mean: fewer where there are many y."""
    few = Y[rng.permutation(len(Y))[:MOST_POINTS]]
    rank = _MOST_TARGETS if len(Y) <= MOST_POINTS else _LARGE_SAMPLE_TARGETS
    features, _ = IncompleteCholesky(rank, tol=1e-6)._fit(kernel, few, rng)
    V = features._coordinates(Y)
    return V - V.mean(0)


def _subsample(X: Array, Y: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    rows = rng.permutation(len(X))[:MOST_POINTS]  # shuffled, so that folds by position are random
    return X[rows], Y[rows]


def tune_kernel(
    kernel: Gaussian, X: Array, V: Array, *, reg: float | None, method: str, rng: np.random.Generator
) -> Optimum:
    """Learn the parameters of a kernel, and reg unless it is given, on at most 1,024 points.

    Landmarks are chosen for the starting kernel and held while it is learned.
    """
    X, V = _subsample(X, V, rng)
    landmarks = pivots(kernel, X, _MOST_LANDMARKS)
    params = ConditionalParameters(kernel, REG_START if reg is None else reg)
    lengthscale = np.asarray(kernel.lengthscale)
    bounds = {"kernel.lengthscale": (lengthscale.min() / REACH, lengthscale.max() * REACH)}
    bounds |= {"reg": REG_BOUNDS} if reg is None else {}
    fixed = () if reg is None else ("reg",)
    data = (_prepare(X, V, landmarks),)
    return _explained(minimise(_OBJECTIVES[method][0], params, data, bounds=bounds, fixed=fixed, warn=False))


def tune_reg(kernel: Kernel, X: Array, V: Array, *, method: str, rng: np.random.Generator) -> Optimum:
    """Learn reg for a kernel that stays as it is and need not be traceable, on at most 1,024 points."""
    X, V = _subsample(X, V, rng)
    F = IncompleteCholesky(tol=1e-12).fit(kernel, X).transform(X)
    rows = _padded_size(len(F))
    F, V = (np.pad(A, ((0, rows - len(A)), (0, _padded_size(A.shape[1], 8) - A.shape[1]))) for A in (F, V))
    mask = (np.arange(rows) < len(X)).astype(float)
    objective, bounds = _OBJECTIVES[method][1], {"reg": REG_BOUNDS}
    return _explained(minimise(objective, Regulariser(REG_START), (F, mask, V), bounds=bounds, warn=False))


_MEANINGS = {
    "kernel.lengthscale at its upper": "within the data y looks linear in x, or independent of it",
    "kernel.lengthscale at its lower": "neighbouring x say nothing about each other's y",
    "reg at its upper": "y hardly depends on x",
    "reg at its lower": "y looks free of noise, or the lengthscale alone does the smoothing",
}


def _explained(found: Optimum) -> Optimum:
    """Say what it means for the data that an optimum sits on a bound."""
    for edge in found.on_bound:
        meaning = next(text for start, text in _MEANINGS.items() if edge.startswith(start))
        message = f"the choice of hyperparameters ended with {edge}: {meaning}. Set kernel or reg to decide yourself."
        warnings.warn(message, BoundWarning, stacklevel=5)
    return found


def holdout_reg(kernel: Kernel, X: Array, V: Array, *, rng: np.random.Generator) -> float:
    """The regulariser that predicts held-out target features best, for a sample too large to leave each point out.

    On a subspace of 256 landmarks, with all the data: the normal equations of the training part are summed in one pass,
    and one eigendecomposition of them serves every candidate.
    """
    order = rng.permutation(len(X))
    held, train = order[: min(_HELD_OUT, len(X) // 5)], order[min(_HELD_OUT, len(X) // 5) :]
    features = Subspace(_MOST_LANDMARKS).fit(kernel, X, random_state=rng)
    core, right = represent(features, X[train]).normal_equations(V[train])
    values, U = eigh(core)
    left, right = features._coordinates(X[held]) @ U, U.T @ right
    candidates = np.geomspace(*REG_BOUNDS, 81)
    errors = [((V[held] - (left / (values + len(train) * reg)) @ right) ** 2).sum() for reg in candidates]
    return float(candidates[int(np.argmin(errors))])

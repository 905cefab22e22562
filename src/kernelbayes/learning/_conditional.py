r"""Objectives for the hyperparameters of a conditional embedding.

Both measure how well the embedding predicts the features of held-out y. With coordinates f(x), target features v(y) and
`M = F'F + n reg I`:

- leave-one-out, in closed form: :math:`\frac1n \sum_i \|v_i - \hat v_{-i}(x_i)\|^2`;
- k-fold validation with the penalty of Hsu (2019), equation 2.52:
  :math:`\frac1{n_V} \sum_j \|v_j - \Theta^\top f(x_j)\|^2 + \lambda \|\Theta\|_{HS}^2`, with
  :math:`\Theta = M_T^{-1} F_T^\top V_T` from the training part.

Points of one group are left out together. Points with equal x, such as several measurements at each place, are a group: the
others would tell what is there, however short the lengthscale, and nothing of what is between. Where x takes a few values
only, which will be met again, each point is by itself.

The target kernel is not learned: a wider one makes either loss smaller without predicting anything better.
The slopes of the first are written out, and nothing is compiled. For the second, samples are padded to a few sizes, so that
problems of similar size share one compilation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from .._backend import namespace
from .._linalg import (
    FactorisationError,
    LowRank,
    cholesky,
    eigh,
    equal_rows,
    leave_one_out,
    leave_one_out_slopes,
    solve,
    solve_lower,
)
from .._typing import AnyArray, Array
from .._warning import warn_user
from ..features import IncompleteCholesky, pivots
from ..kernels import Gaussian, Kernel, Laplace
from ..kernels._bandwidth import lengthscale_of
from ..kernels._parameters import positive
from ._optimise import (
    NOTICED,
    ROUNDING,
    BoundWarning,
    Optimum,
    WrittenOut,
    at_step,
    evaluate,
    last_of_the_best,
    minimise,
)

MOST_POINTS = 1024
_MOST_LANDMARKS = 256
_MOST_TARGETS = 48  # with y itself beside them, still within one padded width
_LARGE_SAMPLE_TARGETS = 16
_FOLDS = 5
_JITTER = 1e-10
# Regularisers are relative to the mean square of the coordinates: the mean diagonal of the kernel, whatever its scale.
REG_STARTS = (1e-2, 1e-4, 1e-6)
REG_BOUNDS = (1e-10, 10.0)
PREFERRED_REG = 1e-2  # where the data does not care
# The median distance is the longest scale worth starting from; functions may vary on much shorter ones.
LENGTHSCALE_STARTS = (1.0, 1 / 3, 1 / 10, 1 / 30)
REACH = 100.0  # how far a lengthscale may move, as a factor either way
# With fewer different x, equal ones are not repetitions of a place but levels.
_FEWEST_PLACES = 20
_STEP_BACK = 10.0  # from the edge of a search
MOVED = 1.5  # beyond this factor, landmarks chosen for the old lengthscale are chosen again


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
    folds: AnyArray | None = None  # which of the folds each point is in; None: by its position


def padded_size(n: int) -> int:
    return max(64, 1 << (n - 1).bit_length())


def pad_rows(A: Array, rows: int) -> tuple[Array, Array]:
    mask = np.concatenate([np.ones(len(A)), np.zeros(rows - len(A))])
    return np.concatenate([A, np.repeat(A[-1:], rows - len(A), axis=0)]), mask


def place_groups(X: Any) -> Array | None:
    """The same label (n,) for points that are at the same place; None where each is by itself, or x takes a few values."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind != "f":
        return None
    groups = equal_rows(X)
    return None if groups is None or groups.max() + 1 < _FEWEST_PLACES else groups


def held_out(n: int, most: int, groups: Array | None, rng: np.random.Generator) -> Array:
    """About `most` of n rows to be held out, of groups all or none."""
    if groups is None:
        return rng.choice(n, most, replace=False)
    order = rng.permutation(groups.max() + 1)
    sizes = np.bincount(groups)[order]
    return np.flatnonzero(np.isin(groups, order[: max(1, int(np.searchsorted(np.cumsum(sizes), most, "right")))]))


def _folds(groups: Array | None, rows: int) -> Array | None:
    """Folds (rows,) that keep groups together, padded."""
    if groups is None:
        return None
    return np.pad(np.unique(groups, return_inverse=True)[1] % _FOLDS, (0, rows - len(groups)))


def _prepare(X: Array, V: Array, landmarks: Array, groups: Array | None = None) -> Padded:
    """Pad a sample so that samples of similar size share a compilation."""
    X, mask = pad_rows(X, padded_size(len(X)))
    V = np.pad(V, ((0, len(X) - len(V)), (0, padded_size(V.shape[1]) - V.shape[1])))
    landmarks, landmark_mask = pad_rows(landmarks, min(_MOST_LANDMARKS, len(X)))
    return Padded(X, mask, landmarks, landmark_mask, V, _folds(groups, len(X)))


def masked_features(kernel: Kernel, sample: Padded) -> AnyArray:
    """Landmark coordinates that are zero for padded points and padded landmarks."""
    xp = namespace(sample.X)
    m = sample.landmark_mask
    K = kernel._gram(sample.landmarks, sample.landmarks) * (m[:, None] * m) + xp.diag(1.0 - m)
    L = cholesky(K, "the landmarks' Gram matrix", _JITTER * xp.trace(K) / len(m))
    G = kernel._gram(sample.X, sample.landmarks) * (sample.mask[:, None] * m)
    return solve_lower(L, G.T).T


def loo_loss(reg: AnyArray, F: AnyArray, mask: AnyArray, V: AnyArray, groups: Array | None = None) -> AnyArray:
    """Mean squared leave-one-out error of the target features."""
    n = mask.sum()
    return (leave_one_out(LowRank(F), n * reg, V, groups) ** 2).sum() / n


def validation_loss(reg: AnyArray, F: AnyArray, mask: AnyArray, V: AnyArray, folds: AnyArray | None = None) -> AnyArray:
    """The objective (2.52), averaged over folds of every fifth point, unless they are given; of fewer points, of each."""

    xp = namespace(F, mask, V)
    folds = xp.arange(mask.shape[0]) % _FOLDS if folds is None else folds

    def one(fold: int) -> AnyArray:
        held = mask * (folds == fold)
        train = mask - held
        Ft = F * train[:, None]
        L = cholesky(Ft.T @ Ft, "a fold's regularised Gram matrix", train.sum() * reg)
        theta = solve(L, Ft.T @ V)
        error = ((V - F @ theta) ** 2).sum(1) @ held / xp.maximum(held.sum(), 1.0)
        return xp.where(held.any(), error + reg * (theta**2).sum(), 0.0)

    # Folds one after the other: batched factorisations can deadlock XLA's thread pool on few cores.
    return sum(one(fold) for fold in range(_FOLDS)) / xp.minimum(_FOLDS, mask.sum())


def _loo_of_kernel(
    params: Any, X: Array, landmarks: Array, V: Array, groups: Array | None = None
) -> tuple[float, list[Array]]:
    """The loss as a function of a Gaussian kernel on landmarks M and of reg, and its slopes by lengthscale and reg.

    With `K = L L'` the Gram matrix of the landmarks and `F = G L^-T`, G that of the points with them, a slope S by F is
    `S L^-1` by G and `-L^-T (F' S) L^-1 / 2` by K: `F' S` is symmetric, since the loss depends on `F F'` alone.
    """
    kernel, reg, n = params.kernel, float(params.reg), len(X)
    K, G = kernel._gram(landmarks, landmarks), kernel._gram(X, landmarks)
    try:
        L = cholesky(K, "the landmarks' Gram matrix", _JITTER * np.trace(K) / len(K))
        F = solve_lower(L, G.T).T
        value, by_F, by_shift = leave_one_out_slopes(F, n * reg, V, groups)
    except FactorisationError:
        return np.nan, [np.zeros_like(kernel.lengthscale), np.zeros(())]
    by_G = solve_lower(L, by_F.T, transposed=True).T
    by_K = -0.5 * solve_lower(L, solve_lower(L, F.T @ by_F, transposed=True).T, transposed=True)
    slope = kernel._lengthscale_slope(X, landmarks, G * by_G) + kernel._lengthscale_slope(
        landmarks, landmarks, K * by_K
    )
    return value / n, [slope / n, np.asarray(by_shift)]


def _loo_of_reg(params: Any, F: Array, V: Array, groups: Array | None = None) -> tuple[float, list[Array]]:
    n = len(F)
    try:
        value, _, by_shift = leave_one_out_slopes(F, n * float(params.reg), V, groups)
    except FactorisationError:
        return np.nan, [np.zeros(())]
    return value / n, [np.asarray(by_shift)]


def _validation_of_kernel(params: ConditionalParameters, sample: Padded) -> AnyArray:
    F = masked_features(params.kernel, sample)
    return validation_loss(params.reg, F, sample.mask, sample.V, sample.folds)


def _validation_of_reg(
    params: Regulariser, F: AnyArray, mask: AnyArray, V: AnyArray, folds: AnyArray | None = None
) -> AnyArray:
    return validation_loss(params.reg, F, mask, V, folds)


class _Objective(NamedTuple):
    """One loss, of features that are given, and as a function of what is learned; and the data that these take."""

    loss: Callable[..., Any]
    of_kernel: Callable[..., Any]
    of_reg: Callable[..., Any]
    sample: Callable[..., tuple[Any, ...]]  # from points, landmarks, targets and groups
    featured: Callable[..., tuple[Any, ...]]  # from features, targets and groups
    parted: Callable[[Array | None, int], Array | None]  # what the loss takes, from the groups of so many points

    def at(self, regs: Iterable[float], F: Array, V: Array, groups: Array | None = None) -> list[float]:
        """The loss at each regulariser, infinite where there is none: on the host, without a gradient or padding."""
        values, parts = [], self.parted(groups, len(F))
        for reg in regs:
            try:
                with np.errstate(all="ignore"):
                    value = float(self.loss(reg, F, np.ones(len(F)), V, parts))
            except FactorisationError:
                value = np.inf
            values.append(value if np.isfinite(value) else np.inf)
        return values


def _padded_features(F: Array, V: Array, groups: Array | None = None) -> tuple[Any, ...]:
    rows, n = padded_size(len(F)), len(F)
    F, V = (np.pad(A, ((0, rows - n), (0, padded_size(A.shape[1]) - A.shape[1]))) for A in (F, V))
    return F, (np.arange(rows) < n).astype(float), V, _folds(groups, rows)


_OBJECTIVES = {
    "loo": _Objective(
        loo_loss,
        WrittenOut(_loo_of_kernel),
        WrittenOut(_loo_of_reg),
        lambda *parts: parts,
        lambda *parts: parts,
        lambda groups, n: groups,
    ),
    "validation": _Objective(
        validation_loss,
        _validation_of_kernel,
        _validation_of_reg,
        lambda X, landmarks, V, groups=None: (_prepare(X, V, landmarks, groups),),
        _padded_features,
        _folds,
    ),
}


def target_features(kernel: Kernel, Y: Array, rng: np.random.Generator, *, centred: bool = True) -> Array:
    """Leading features of the target kernel at all y, about their mean if centred: fewer where there are many y."""
    few = Y if len(Y) <= MOST_POINTS else Y[rng.permutation(len(Y))[:MOST_POINTS]]
    rank = _MOST_TARGETS if len(Y) <= MOST_POINTS else _LARGE_SAMPLE_TARGETS
    V = IncompleteCholesky(rank, tol=1e-6).fit(kernel, few)._coordinates(Y)
    return V - V.mean(0) if centred else V


def default_target_kernel(Y: Array) -> Kernel:
    """Laplace with the median distance of each column."""
    varies = np.ptp(Y, axis=0).any()  # a constant y is a legitimate, if dull, distribution to predict
    return Laplace(lengthscale_of(Y, "Y", per_column=True) if varies else 1.0)


def scored_features(Y: Array, kernel: Kernel | None, rng: np.random.Generator, *, centred: bool = True) -> Array:
    """What hyperparameters are scored on: features of a target kernel or, without one, of the default one and y itself."""
    features = target_features(kernel or default_target_kernel(Y), Y, rng, centred=centred)
    if kernel is not None:
        return features
    spread = Y.std(0)
    numbers = (Y - Y.mean(0) if centred else Y) / np.where(spread > 0, spread, 1.0)
    return np.concatenate([features, numbers / np.sqrt(Y.shape[1])], axis=1)


def tune_kernel(
    kernel: Gaussian,
    X: Array,
    V: Array,
    *,
    reg: float | None,
    method: str,
    rng: np.random.Generator,
    groups: Array | None = None,
) -> Optimum:
    """Learn the lengthscale of a kernel, and reg unless it is given, on at most 1,024 points.

    Starts at the best of a few lengthscales and regularisers, each with landmarks of its own, and chooses landmarks
    again where the lengthscale has moved: those of a long lengthscale cannot tell what a short one would do. Points with
    the same label in `groups` (n,) are left out together.
    """
    if len(X) > MOST_POINTS or method == "validation":  # folds go by position, so that order must be random
        rows = rng.permutation(len(X))[:MOST_POINTS]
        X, V, groups = X[rows], V[rows], None if groups is None else groups[rows]
    chosen, regs = _OBJECTIVES[method], sorted(REG_STARTS) if reg is None else [reg]

    def landmarks_of(kernel: Gaussian) -> Array:
        return pivots(kernel, X, min(_MOST_LANDMARKS, len(X)))

    trials = []
    for factor in reversed(LENGTHSCALE_STARTS):  # the last of equals is kept: a long lengthscale, a large regulariser
        trial = Gaussian(factor * kernel.lengthscale)
        landmarks = landmarks_of(trial)
        try:
            F = masked_features(trial, Padded(X, np.ones(len(X)), landmarks, np.ones(len(landmarks)), V))
            losses = chosen.at(regs, F, V, groups)
        except FactorisationError:
            losses = [np.inf] * len(regs)
        trials += [
            (loss, ConditionalParameters(trial, start), landmarks) for loss, start in zip(losses, regs, strict=True)
        ]
    _, params, landmarks = trials[last_of_the_best([loss for loss, _, _ in trials])]
    data = chosen.sample(X, landmarks, V, groups)
    bounds = {"kernel.lengthscale": (kernel.lengthscale.min() / REACH, kernel.lengthscale.max() * REACH)}
    bounds |= {"reg": REG_BOUNDS} if reg is None else {}
    options: dict[str, Any] = {"bounds": bounds, "fixed": () if reg is None else ("reg",), "warn": False}
    options["prefer"] = {"kernel.lengthscale": 1.0} | ({"reg": PREFERRED_REG} if reg is None else {})
    found = minimise(chosen.of_kernel, params, data, progress=False, **options)
    moved = np.abs(np.log(found.params.kernel.lengthscale / params.kernel.lengthscale)).max()
    if moved > np.log(MOVED):
        first, data = found, chosen.sample(X, landmarks_of(found.params.kernel), V, groups)
        found = minimise(chosen.of_kernel, first.params, data, progress=False, **options)
        evaluations = first.evaluations + found.evaluations
        found = dataclasses.replace(found, path=first.path + found.path, evaluations=evaluations)
    return _explained(found, chosen.of_kernel, data)


def tune_reg(
    F: Array, V: Array, *, scale: float, method: str, rng: np.random.Generator, groups: Array | None = None
) -> Optimum:
    """Learn reg for features that stay as they are, of at most 1,024 points; `scale` is their mean square."""
    order, chosen = rng.permutation(len(F)), _OBJECTIVES[method]
    F, V, groups = F[order], V[order], None if groups is None else groups[order]
    starts = [scale * start for start in sorted(REG_STARTS)]
    start = Regulariser(starts[last_of_the_best(chosen.at(starts, F, V, groups))])
    data = chosen.featured(F, V, groups)
    bounds = {"reg": (scale * REG_BOUNDS[0], scale * REG_BOUNDS[1])}
    prefer = {"reg": scale * PREFERRED_REG}
    found = minimise(chosen.of_reg, start, data, bounds=bounds, prefer=prefer, warn=False, progress=False)
    return _explained(found, chosen.of_reg, data)


def holdout_reg(core: Array, right: Array, held_F: Array, held_V: Array, n: int, *, scale: float) -> float:
    """The regulariser that predicts held-out target features best, for a sample too large to leave each point out.

    `core` and `right` are `F' F` and `F' V` of all n points. The held-out rows are taken out of them again, and one
    eigendecomposition of the rest serves every candidate.
    """
    values, U = eigh(core - held_F.T @ held_F)
    left, right = held_F @ U, U.T @ (right - held_F.T @ held_V)
    candidates = scale * np.geomspace(*REG_BOUNDS, 81)
    errors = [((held_V - (left / (values + (n - len(held_F)) * reg)) @ right) ** 2).sum() for reg in candidates]
    best = last_of_the_best(errors, ROUNDING * float((held_V**2).sum()))
    explain_grid(candidates, errors, best)
    return float(candidates[best])


_MEANINGS = {
    "kernel.lengthscale at its upper": "within the data y looks linear in x, or independent of it",
    "kernel.lengthscale at its lower": "neighbouring x say nothing about each other's y",
    "reg at its upper": "y hardly depends on x",
    "reg at its lower": "y looks free of noise, or the lengthscale or the rank does the smoothing",
}


def explain_edge(edge: str) -> None:
    meaning = next(text for start, text in _MEANINGS.items() if edge.startswith(start))
    message = f"the choice of hyperparameters ended with {edge}: {meaning}. Set kernel or reg to decide yourself."
    warn_user(message, BoundWarning)


def explain_grid(regs: Array, losses: Sequence[float], chosen: int) -> None:
    """Say what it means for the data that the least or the largest of some regularisers, in rising order, was chosen.

    The least is worth a word only if ten times as much would be worse.
    """
    if chosen == len(regs) - 1:
        explain_edge(f"reg at its upper bound {regs[-1]:.3g}")
    elif chosen == 0 and losses[int(np.searchsorted(regs, 10.0 * regs[0]))] > (1.0 + NOTICED) * losses[0]:
        explain_edge(f"reg at its lower bound {regs[0]:.3g}")


def _explained(found: Optimum, loss: Any, data: tuple[Any, ...]) -> Optimum:
    """Say what it means for the data that an optimum sits on a bound, if a step back would be worse.

    A regulariser at its upper bound is always worth a word: nothing is predicted then.
    """
    for edge in found.on_bound:
        name, low = edge.split(" at its ")[0], " at its lower" in edge
        value = found.path[-1][name]
        if not low and np.ptp(np.log(value)) > 1e-3:  # of several columns some play no part
            continue
        back = at_step(found.params, {name: value * (_STEP_BACK if low else 1.0 / _STEP_BACK)})
        if edge.startswith("reg at its upper") or evaluate(loss, back, data) > (1.0 + NOTICED) * found.value:
            explain_edge(edge)
    return found

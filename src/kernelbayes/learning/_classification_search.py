"""The search for the hyperparameters of a multiclass conditional embedding: descents, batches, grids and folds."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from .._linalg import Dense, WeightedRidge, eigh
from .._typing import Array
from ..kernels import Gaussian, Kernel, dense_gram
from ._calibration import fit_calibrator
from ._classification import Labelled, bound, default_multiplier, gram_balance, validation, written_out
from ._conditional import ConditionalParameters
from ._optimise import Optimum, free_leaves, last_of_the_best, minimise, minimise_in_batches

MOST_POINTS = 1024
# How often the constant of the multiplier is halved, or doubled, at most.
_HALVINGS, _DOUBLINGS = 5, 2
_WORTHWHILE = 0.99  # a loss must fall below so much of what it was
# From so many points on, as many of them as the first number says decide on scale and multiplier.
_FIRST_STAGE, _TWO_STAGES = 512, 768
_TOLERANCE = 1e-5
# Lengthscales are drawn together by this much over n, times the sum of squares of their logarithms about the mean.
_SHRINKAGE = 3.0
_REACH, REG_BOUNDS = 100.0, (1e-10, 10.0)
GRID = np.geomspace(1e-8, 1.0, 17)  # of regularisers, relative to the kernel's mean diagonal
_FOLDS = 5


class Search(NamedTuple):
    """How hyperparameters are sought."""

    learn: str  # "bound", "validation" or "erm"
    multiplier: float | None = None
    batch_size: int | None = None
    steps: int = 300
    rate: float = 0.1
    progress: bool | None = None

    def size(self, n: int) -> int:
        """Points that an evaluation of the objective sees, of n."""
        return n if self.batch_size is None else min(self.batch_size, n)

    def objective(self, kernel: Kernel) -> Any:
        """The function to minimise: compiled, unless its slopes for this kernel are written out."""
        return written_out if type(kernel) is Gaussian else self.formula

    @property
    def formula(self) -> Any:
        """The same function as the thesis has it, for any kernel, on the host or traced."""
        return validation if self.learn == "validation" else bound

    def data(self, sample: Labelled, *, pad: bool = False) -> tuple[Any, ...]:
        """Its arguments after the parameters, for points in random order: one part or two, multiplier and shrinkage.

        Padded, samples of similar size share a compilation.
        """
        n = len(sample.X)
        multiplier = 0.0 if self.learn == "erm" else self.multiplier
        if multiplier is None:  # halved where nothing will be tried
            searched = self.learn == "bound" and self.batch_size is None
            multiplier = default_multiplier(sample) * (1.0 if searched else 0.5)
        half = n // 2 if self.learn == "validation" else n
        parts = [sample.part(slice(half))] + ([sample.part(slice(half, None))] if half < n else [])
        if pad:
            parts = [part.padded(_padded_size(len(part.X))) for part in parts]
        return (*parts, np.float64(multiplier), np.float64(_SHRINKAGE / n))


class Start(NamedTuple):
    """Where to start: parameters, for points with each column divided by a number, and the kernel's mean diagonal there."""

    params: ConditionalParameters
    scale: Array
    size: float = 1.0


def _padded_size(n: int) -> int:
    """A size not much above n, one of four to an octave."""
    quantum = max(16, 1 << max((n - 1).bit_length() - 3, 0))
    return -(-n // quantum) * quantum


def learn_hyperparameters(
    starts: list[Start], sample: Labelled, search: Search, *, fixed: tuple[str, ...], rng: np.random.Generator
) -> tuple[Optimum, Array]:
    """Descend from the best start of each scale: on the whole sample, or by steps on random batches (algorithm 1).

    Returns the best of what was found, and the scale in whose units it is. Of a large sample a part decides on the scale
    and the multiplier, and the whole has the last word. In batches only the best start is followed.
    """
    n = len(sample.X)
    size = search.size(n)
    search = search if size < n else search._replace(batch_size=None)
    sample = sample.part(rng.permutation(n))
    few = sample.part(slice(size if size < _TWO_STAGES else _FIRST_STAGE))
    values = [_value(search, start.params, few.scaled(start.scale)) for start in starts]
    ranked = [starts[i] for i in np.argsort(values, kind="stable")]
    if size < n:
        return _in_batches(ranked[0], sample, search, fixed, rng)
    followed = {start.scale.tobytes(): start for start in reversed(ranked)}  # the best of each scale stays
    found = [(_descended(start, few, search, fixed), start.scale) for start in followed.values()]
    automatic = search.learn == "bound" and search.multiplier is None
    if automatic and len(found) > 1:  # the objective may prefer a model that repeats the labels
        best, scale = min(found, key=lambda pair: left_out_loss(pair[0].params, few.scaled(pair[1])))
    else:
        best, scale = min(found, key=lambda pair: pair[0].value)
    few, sample = few.scaled(scale), sample.scaled(scale)
    if automatic:
        best, factor = _least_left_out(Start(best.params, np.asarray(1.0), starts[0].size), best, few, search, fixed)
        search = search._replace(multiplier=factor * default_multiplier(sample))
    if len(few.X) < n:
        best = _joined(best, _descended(Start(best.params, np.asarray(1.0), starts[0].size), sample, search, fixed))
    return best, scale


def _descended(start: Start, sample: Labelled, search: Search, fixed: tuple[str, ...]) -> Optimum:
    objective = search.objective(start.params.kernel)
    data = search.data(sample.scaled(start.scale), pad=objective is not written_out)
    options: dict[str, Any] = {"bounds": _bounds(start, fixed), "fixed": fixed, "tol": _TOLERANCE}
    found = minimise(objective, start.params, data, warn=False, progress=False, **options)
    path = tuple({**step, "multiplier": float(data[-2])} for step in found.path)
    return dataclasses.replace(found, path=path)


def _joined(first: Optimum, then: Optimum) -> Optimum:
    """Where a descent ended, with the way to its start before its own."""
    return dataclasses.replace(then, path=first.path + then.path, evaluations=first.evaluations + then.evaluations)


def _least_left_out(
    start: Start, found: Optimum, sample: Labelled, search: Search, fixed: tuple[str, ...]
) -> tuple[Optimum, float]:
    """Go on with ever smaller multipliers, or a larger one, for as long as left-out points are predicted better.

    Returns the last that did, and by how much its multiplier is that of the first.
    """
    first, loss, best = default_multiplier(sample), left_out_loss(found.params, sample), 1.0

    def better(factor: float) -> bool:
        nonlocal found, loss, best
        here = start._replace(params=found.params)
        tried = _descended(here, sample, search._replace(multiplier=factor * first), fixed)
        its_loss = left_out_loss(tried.params, sample)
        if not its_loss < _WORTHWHILE * loss:
            return False
        found, loss, best = _joined(found, tried), its_loss, factor
        return True

    if better(0.5):
        all(better(0.5**k) for k in range(2, _HALVINGS + 1))  # until one is not
    else:
        all(better(2.0**k) for k in range(1, _DOUBLINGS + 1))
    return found, best


def left_out_loss(params: ConditionalParameters, sample: Labelled) -> float:
    """Mean loss of calibrated leave-one-out probabilities, in nats."""
    gram = Dense(dense_gram(params.kernel, sample.X, sample.X))
    ridge = WeightedRidge(gram, sample.weights, sample.weights.sum() * float(params.reg))
    return fit_calibrator(ridge.leave_one_out(sample.Y), sample.Y, sample.weights).loss


def _in_batches(
    start: Start, sample: Labelled, search: Search, fixed: tuple[str, ...], rng: np.random.Generator
) -> tuple[Optimum, Array]:
    n = len(sample.X)
    scaled, objective = sample.scaled(start.scale), search.objective(start.params.kernel)
    multiplier = float(search.data(scaled.part(slice(search.size(n))))[-2])
    search = search._replace(multiplier=multiplier)  # the same for all of them
    draws = (scaled.part(rng.permutation(n)[: search.size(n)]) for _ in range(search.steps))
    batches = (search.data(batch) for batch in draws)  # all of one size
    options: dict[str, Any] = {"bounds": _bounds(start, fixed), "fixed": fixed, "rate": search.rate}
    options["progress"] = search.progress
    found = minimise_in_batches(objective, start.params, batches, search.steps, **options)
    return dataclasses.replace(
        found, path=tuple({**step, "multiplier": multiplier} for step in found.path)
    ), start.scale


def _bounds(start: Start, fixed: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    lengthscale = getattr(start.params.kernel, "lengthscale", None)
    bounds = {} if "reg" in fixed else {"reg": (start.size * REG_BOUNDS[0], start.size * REG_BOUNDS[1])}
    if lengthscale is not None:
        bounds["kernel.lengthscale"] = (lengthscale.min() / _REACH, lengthscale.max() * _REACH)
    return bounds


def least_bound(kernel: Kernel, sample: Labelled, search: Search, rng: np.random.Generator) -> float:
    """The best of some regularisers for a kernel that cannot be differentiated, by the same objective."""
    n = len(sample.X)
    sample = sample.part(rng.permutation(n)[: search.size(n)])
    K, diagonal = dense_gram(kernel, sample.X, sample.X), kernel._diag(sample.X)
    *parts, multiplier, _ = search.data(sample)
    half = len(parts[0].X)
    across = (K[half:, :half], parts[1]) if len(parts) > 1 else (None, None)
    regs = diagonal.mean() * GRID
    sides = [gram_balance(K[:half, :half], diagonal[:half], parts[0], reg, *across) for reg in regs]
    return float(regs[last_of_the_best([side.fit + multiplier * side.complexity for side in sides])])


def _value(search: Search, params: ConditionalParameters, sample: Labelled) -> float:
    """An objective on the host, where nothing needs to be compiled."""
    value = float(search.formula(params, *search.data(sample)))
    return value if np.isfinite(value) else np.inf


def nothing_to_learn(start: Start, fixed: tuple[str, ...]) -> bool:
    """Whether all is given: a kernel without parameters, and the regulariser."""
    return not free_leaves(start.params, {}, fixed)


def cross_validated(
    kernels: list[Kernel], sample: Labelled, reg: float | None, rng: np.random.Generator
) -> tuple[Kernel, float]:
    """The kernel and, unless it is given, regulariser of the least mean squared error of probabilities over five folds.

    One eigendecomposition for a kernel and a fold serves every regulariser.
    """
    folds = np.array_split(rng.permutation(len(sample.X)), min(_FOLDS, len(sample.X)))
    found: list[tuple[float, Kernel, float]] = []
    for kernel in reversed(kernels):
        K = dense_gram(kernel, sample.X, sample.X)
        regs = np.diagonal(K).mean() * GRID if reg is None else np.array([reg])
        errors = np.sum([_fold_errors(K, sample, held, regs) for held in folds], axis=0)
        j = last_of_the_best(errors)
        found.append((float(errors[j]), kernel, float(regs[j])))
    _, kernel, reg = found[last_of_the_best([error for error, _, _ in found])]
    return kernel, reg


def _fold_errors(K: Array, sample: Labelled, held: Array, regs: Array) -> Array:
    train = np.setdiff1d(np.arange(len(K)), held)
    root = np.sqrt(sample.weights[train])[:, None]
    values, U = eigh(root * K[np.ix_(train, train)] * root.T)
    left, right = (K[np.ix_(held, train)] * root.T) @ U, U.T @ (root * sample.Y[train])
    total = sample.weights[train].sum()
    missed = [sample.Y[held] - (left / (values + total * reg)) @ right for reg in regs]
    return np.array([sample.weights[held] @ (miss * miss).sum(1) for miss in missed])

"""What models through a mediator share: checks of the two samples, their representation, and where they know nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from .. import _check
from .._estimator import DERIVED, check_kinds, check_sample
from .._linalg import LowRank, solve_lower
from .._typing import Array, ArrayLike
from .._warning import warn_user
from ..embeddings import PosteriorWarning, tell_outside
from ..features import Features, Recipe, default_recipe, factored, kernel_for, represent
from ..kernels import Kernel
from ..learning._mediated import Samples
from ..rules import deconditional
from ..rules.deconditional import Noise, Posterior, Task, Transfer
from ._function import FittedFunction

# A share of the prior's variance that is as good as nothing.
_LITTLE = 0.05
# Points of the task at most that are looked at, and a share of them too large to pass over.
_LOOKED_AT, _MUCH = 2000, 0.2
# Two ranges of a column are apart if more than so many times the wider of them lies between.
_APART = 3.0
_DOUBT = "Are Y and Y_task in the same units, or are X and Y exchanged?"


class Fit(NamedTuple):
    """Everything between samples and predictions, in the coordinates of x and y."""

    pairs: Transfer
    posterior: Posterior
    sums: Task
    noise: Noise


class MediatedModel(FittedFunction, BaseEstimator):
    """Base of the estimators that learn f(x) from pairs (x, y) and, apart from them, from pairs (y, z)."""

    kernel: Kernel | None
    mediator_kernel: Kernel | None
    features: Recipe | None
    mediator_features: Recipe | None

    kernel_: Kernel
    mediator_kernel_: Kernel
    features_: Features
    mediator_features_: Features

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name not in DERIVED}

    # ---------------------------------------------------------------------------------------------- input

    def _given_kernels(self) -> tuple[Kernel | None, Kernel | None]:
        return kernel_for(self.features, self.kernel), kernel_for(self.mediator_features, self.mediator_kernel)

    def _check_samples(self, X: Any, Y: Any, Y_task: Any, z: Any) -> Samples:
        check_kinds(self, kernel=Kernel, mediator_kernel=Kernel, features=Recipe, mediator_features=Recipe)
        kernel, mediator_kernel = self._given_kernels()
        X = check_sample(self, X, kernel)
        _check_names(Y, Y_task)
        Y, Y_task = (_check_mediator(P, name, mediator_kernel) for P, name in ((Y, "Y"), (Y_task, "Y_task")))
        _check.same_length(X, Y, "X", "Y")
        if Y.shape[1:] != Y_task.shape[1:]:
            raise ValueError(
                f"Y has points of shape {Y.shape[1:]} but Y_task of {Y_task.shape[1:]}: both are the mediator, in the "
                "same units"
            )
        if len(Y_task) < 2:
            raise ValueError(f"Y_task holds {len(Y_task)} point; at least two are needed")
        warn_apart(Y, Y_task)
        if z is None:
            return Samples(X, Y, Y_task, np.zeros((len(Y_task), 0)))
        self._flat_target = _check.dimensions(z, "z_task") == 1
        z = _check.vectors(z, "z_task")
        _check.same_length(Y_task, z, "Y_task", "z_task")
        return Samples(X, Y, Y_task, z)

    # -------------------------------------------------------------------------------------------- fitting

    def _represent(self, samples: Samples, uncertain: bool, rng: np.random.Generator) -> None:
        """Features of both variables for the chosen kernels; of the mediator, of all its points where g is uncertain."""
        self.X_, self.Y_, self.Y_task_, self.z_task_ = samples
        everything = np.concatenate([self.Y_, self.Y_task_]) if uncertain else self.Y_
        self.features_ = _fitted(self.features, self.kernel_, self.X_, rng)
        self.mediator_features_ = _fitted(self.mediator_features, self.mediator_kernel_, everything, rng)
        vars(self).pop("_fit_cache", None)

    def _noise(self) -> Noise:
        raise NotImplementedError

    def _targets(self) -> Array:
        """Targets as the model has them: about their mean, perhaps in units of their own."""
        raise NotImplementedError

    @property
    def _fit(self) -> Fit:
        if "_fit_cache" not in self.__dict__:
            self._fit_cache = self._solve()
        return self._fit_cache

    def _solve(self) -> Fit:
        noise, z = self._noise(), self._targets()
        for P, features in ((self.X_, self.features_), (self.Y_, self.mediator_features_)):
            _check.fits_memory(len(P) * features.rank, "coordinates of the pairs", "take features=kb.Subspace(500)")
        F, G = self.features_._coordinates(self.X_), self.mediator_features_._coordinates(self.Y_)
        pairs = deconditional.transfer(F, G, noise.spread)
        of_task = represent(self.mediator_features_, self.Y_task_)
        sums = Task(*of_task.normal_equations(z), (z * z).sum(0), len(z))
        if noise.uncertain:
            prior = float(self.mediator_kernel_._diag(self.Y_task_).mean())
            noise = noise._replace(task=noise.task + max(prior - float(np.trace(sums.core)) / len(z), 0.0))
        if isinstance(of_task, LowRank) and len(z) < self.mediator_features_.rank:
            return Fit(pairs, deconditional.dual(pairs, of_task.factor, z, noise), sums, noise)
        return Fit(pairs, deconditional.primal(pairs, sums, noise), sums, noise)

    def _warn_unmediated(self) -> None:
        """Say so where much of the task lies away from all pairs: what it tells reaches no x."""
        rows = np.linspace(0, len(self.Y_task_) - 1, min(len(self.Y_task_), _LOOKED_AT)).astype(int)
        few = self.Y_task_[rows]
        G = self.mediator_features_._coordinates(few)
        left = self._fit.noise.spread * (solve_lower(self._fit.pairs.root, G.T) ** 2).sum(0)
        told = (G * G).sum(1) - left  # of the variance of g, by values of f at the pairs
        away = float(np.mean(told < _LITTLE * self.mediator_kernel_._diag(few)))
        if away > _MUCH:
            warn_user(
                f"{100 * away:.0f} % of the task's points lie where no pair (x, y) has its y: what they tell cannot be "
                f"carried over to x. {_DOUBT}",
                PosteriorWarning,
            )

    # ---------------------------------------------------------------------------------------------- using it

    @property
    def _posterior(self) -> Posterior:
        return self._fit.posterior

    def mediation(self, X: ArrayLike) -> Array:
        """The share (t,) of the prior's variance of f that the data explain: near 0 where x lies outside their reach."""
        X = self._points(X)
        return self._explained(X, self.features_._coordinates(X))

    def _explained(self, X: Array, F: Array) -> Array:
        prior = self.kernel_._diag(X)
        left = np.divide(self._variance(X, F), prior, out=np.zeros(len(X)), where=prior > 0)
        return np.clip(1.0 - left, 0.0, 1.0)

    def _look(self, X: Array, F: Array) -> None:
        what = "what pairs and task tell of: f is the prior's there. model.mediation(X) says how much is known where."
        tell_outside(self._explained(X, F), what, little=_LITTLE)


def _check_names(Y: Any, Y_task: Any) -> None:
    """Refuse two data frames whose columns differ in name or order: rows are compared column by column."""
    ours, theirs = ([name for name in getattr(P, "columns", ()) if isinstance(name, str)] for P in (Y, Y_task))
    if ours and theirs and ours != theirs:
        raise ValueError(
            f"Y has the columns {', '.join(ours)} but Y_task {', '.join(theirs)}: both are the mediator, under the same "
            "names and in the same order" + ("; pass Y_task[list(Y.columns)]" if sorted(ours) == sorted(theirs) else "")
        )


def _check_mediator(Y: Any, name: str, kernel: Kernel | None) -> Array:
    if kernel is None or kernel._takes_vectors:
        Y = _in_seconds(Y, name)
    if kernel is not None:
        return kernel._check(Y, name)
    if Y.dtype.kind in "US" or (Y.dtype.kind == "O" and any(isinstance(value, str) for value in Y.flat)):
        raise ValueError(f"{name} holds strings; give a kernel for them, such as mediator_kernel=kb.Delta()")
    return _check.vectors(Y, name)


def _in_seconds(Y: Any, name: str) -> Array:
    """An array in which times are numbers of seconds, in whatever unit they came: two tables may differ in it."""
    array = _check.table(Y, name)
    if array.dtype.kind == "M":
        array = array - np.datetime64(0, "s")
    return array / np.timedelta64(1, "s") if array.dtype.kind == "m" else array


def warn_apart(Y: Array, Y_task: Array) -> None:
    """Say so, before anything is learned, if a column has numbers of another size altogether in the other sample.

    A kernel with a lengthscale for both would take each of the two for a single point.
    """
    if Y.ndim != 2 or Y.dtype.kind != "f":
        return
    (low, high), (low_task, high_task) = ((P.min(0), P.max(0)) for P in (Y, Y_task))
    wider = np.maximum(high - low, high_task - low_task)
    apart = np.maximum(low_task - high, low - high_task) > _APART * wider
    for j in np.flatnonzero(apart & (wider > 0))[:1]:
        warn_user(
            f"column {j} of Y lies between {low[j]:.6g} and {high[j]:.6g}, that of Y_task between {low_task[j]:.6g} and "
            f"{high_task[j]:.6g}: what the task tells cannot be carried over to x. {_DOUBT}",
            PosteriorWarning,
        )


def _fitted(recipe: Recipe | None, kernel: Kernel, X: Array, rng: np.random.Generator) -> Features:
    return factored(*(recipe or default_recipe(len(X)))._fit(kernel, X, rng))[0]

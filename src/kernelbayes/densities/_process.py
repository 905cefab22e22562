r"""Smooth functions with a trend: Gaussian processes whose kernel is constant + linear + Gaussian.

.. math:: k(x, x') = 1 + \sum_k b_k^2 x_k x_k' + s^2 \exp\Big(-\tfrac12 \sum_k (x_k - x_k')^2 / \ell_k^2\Big)

The linear term has scales of its own, so that what is nearly linear needs no long lengthscale and columns drop out one by
one. Hyperparameters maximise the marginal likelihood of a few hundred rows under weak log-normal priors, with slopes
written out; all rows then meet the process through its features `[1, b x, s f(x)]`.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from .._backend import namespace
from .._linalg import FactorisationError, cholesky, inverse_of
from .._typing import AnyArray, Array
from ..features import Features, IncompleteCholesky, Recipe
from ..kernels import Gaussian, Kernel
from ..kernels._parameters import positive
from ..learning import minimise
from ..learning._optimise import WrittenOut

# Rows that hyperparameters are learned from, and that landmarks are chosen among.
LEARNED_ROWS, LANDMARK_ROWS = 320, 2000
_JITTER = 1e-8
# What landmarks leave of the variance of a process, at most: as a share of the noise, and of the process.
_NEGLIGIBLE, _TOLERANCES = 1e-3, (1e-6, 1e-2)
_ITERATIONS = 40
# How far a hyperparameter may go, in standard deviations of its prior.
_REACH = 4.0


class Process(Kernel):
    """The kernel, for columns of unit scale."""

    slope: AnyArray = positive(0.3, per_column=True)
    lengthscale: AnyArray = positive(2.0, per_column=True)
    size: AnyArray = positive(0.7)

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        smooth = self.size**2 * Gaussian(self.lengthscale)._gram(X, Y)
        return smooth + (X * self.slope**2) @ Y.T + 1.0

    def _diag(self, X: AnyArray) -> AnyArray:
        ones = namespace(X, self.size).ones(X.shape[0])
        return 1.0 + ((X * self.slope) ** 2).sum(1) + self.size**2 * ones


class NoisyProcess(eqx.Module):
    """What is learned: the kernel, and the standard deviation of the noise."""

    kernel: Process
    noise: AnyArray = positive(0.3)


def prior(d: int) -> tuple[dict[str, float], dict[str, float]]:
    """Means and standard deviations of the logarithms; lengthscales grow with the number of columns, as distances do."""
    means = {
        "kernel.slope": np.log(0.3),
        "kernel.lengthscale": 0.7 + 0.5 * np.log(d),
        "kernel.size": np.log(0.7),
        "noise": np.log(0.3),
    }
    return means, {"kernel.slope": 1.5, "kernel.lengthscale": 1.2, "kernel.size": 1.2, "noise": 2.0}


def start(d: int) -> NoisyProcess:
    """Where the search begins: the middle of the prior."""
    means, _ = prior(d)
    slope, lengthscale = (np.full(d, np.exp(means[name])) for name in ("kernel.slope", "kernel.lengthscale"))
    kernel = Process(slope, lengthscale, np.exp(means["kernel.size"]))
    return NoisyProcess(kernel, np.exp(means["noise"]))


def _loss(params: NoisyProcess, X: Array, y: Array, known: Array) -> tuple[float, list[Array]]:
    """Minus the logarithm of the marginal likelihood times the prior, without constants, and its slopes.

    `known` (n,) are variances beside those of the noise. With `S = (K^-1 - a a') / 2`, `a = K^-1 y`, a change of the
    covariance K changes it by `<S, dK>`.
    """
    kernel, noise = params.kernel, float(params.noise)
    b, size = kernel.slope, float(kernel.size)
    gaussian = Gaussian(kernel.lengthscale)
    smooth = size**2 * gaussian._gram(X, X)
    K = smooth + (X * b**2) @ X.T + 1.0
    K[np.diag_indices(len(K))] += noise**2 + known + _JITTER
    zeros = [np.zeros_like(b), np.zeros_like(kernel.lengthscale), np.zeros(()), np.zeros(())]
    try:
        L = cholesky(K, "the covariance of a process")
    except FactorisationError:
        return np.nan, zeros
    inverse = inverse_of(L)
    a = inverse @ y
    S = 0.5 * (inverse - np.outer(a, a))
    weighted = S * smooth
    slopes = [
        2.0 * b * ((S @ X) * X).sum(0),
        gaussian._lengthscale_slope(X, X, weighted),
        np.asarray(2.0 * weighted.sum() / size),
        np.asarray(2.0 * noise * np.trace(S)),
    ]
    value = 0.5 * float(y @ a) + float(np.log(np.diagonal(L)).sum())
    means, widths = prior(X.shape[1])
    values = (b, kernel.lengthscale, kernel.size, params.noise)
    for i, (name, at) in enumerate(zip(means, values, strict=True)):
        away = (np.log(at) - means[name]) / widths[name]
        value += 0.5 * float((away**2).sum())
        slopes[i] = slopes[i] + away / widths[name] / at
    return value, slopes


_LOSS = WrittenOut(_loss)


def learn_process(
    X: Array,
    y: Array,
    rng: np.random.Generator,
    *,
    known: float = 0.0,
    noise: float | None = None,
    first: NoisyProcess | None = None,
    rows: int = LEARNED_ROWS,
) -> tuple[NoisyProcess, float]:
    """Hyperparameters by marginal likelihood on some rows of X (n, d), and minus the logarithm of it there.

    Args:
        X, y: inputs of about unit scale, and targets (n,) about zero.
        rng: chooses the rows.
        known: variance of the targets that is known beforehand, beside the noise.
        noise: standard deviation of the noise, if it is not to be learned.
        first: where to begin.
        rows: how many to learn from.
    """
    few = rng.permutation(len(X))[:rows] if len(X) > rows else slice(None)
    X, y = X[few], y[few]
    params = start(X.shape[1]) if first is None else first
    fixed: tuple[str, ...] = ()
    if noise is not None:
        params, fixed = NoisyProcess(params.kernel, noise), ("noise",)
    means, widths = prior(X.shape[1])
    bounds = {
        name: (float(np.exp(m - _REACH * widths[name])), float(np.exp(m + _REACH * widths[name])))
        for name, m in means.items()
        if name not in fixed
    }
    data = (X, y, np.full(len(X), known))
    options: dict[str, Any] = {"bounds": bounds, "fixed": fixed, "warn": False, "progress": False}
    found = minimise(_LOSS, params, data, max_iter=_ITERATIONS, tol=1e-6, **options)
    return found.params, found.value


class ProcessFeatures(eqx.Module):
    """Coordinates `[1, b x, s f(x)]` of a process, f those of its Gaussian part."""

    kernel: Process
    smooth: Features

    def __call__(self, X: Array) -> Array:
        """Features (n, r) of points (n, d)."""
        size = float(self.kernel.size)
        return np.concatenate(
            [np.ones((len(X), 1)), X * self.kernel.slope, size * np.asarray(self.smooth._coordinates(X))], axis=1
        )


def features_of(
    process: NoisyProcess,
    X: Array,
    rank: int,
    rng: np.random.Generator,
    recipe: Recipe | None = None,
    known: float = 0.0,
) -> ProcessFeatures:
    """Features of a process on a sample: landmarks, or as the recipe says.

    Landmarks leave out what is small beside the noise, `known` being the variance of a part of that.
    """
    kernel, few = process.kernel, X if len(X) <= LANDMARK_ROWS else X[rng.permutation(len(X))[:LANDMARK_ROWS]]
    noise = float(process.noise) ** 2 + known
    tol = float(np.clip(_NEGLIGIBLE * noise / float(kernel.size) ** 2, *_TOLERANCES))
    recipe = recipe or IncompleteCholesky(min(rank, len(few)), tol=tol)
    return ProcessFeatures(kernel, recipe._fit(Gaussian(kernel.lengthscale), few, rng)[0])

r"""Which kernel suits a function that is to be integrated, from its values at the nodes.

The marginal likelihood of a Gaussian process about an unknown constant, with its scale at the best value:

.. math:: (n - 1) \log \hat s^2 + \log |K| + \log 1^\top K^{-1} 1, \qquad
          \hat s^2 = \frac{(y - \hat m)^\top K^{-1} (y - \hat m)}{n - 1}

A wide prior about where the search starts keeps it from running away where a dozen values say little. A function is known
exactly, so that there is no noise but a share of the kernel that keeps the matrix from being singular.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import numpy as np

from .._linalg import FactorisationError, cholesky, solve_lower
from .._typing import Array
from ..kernels import Gaussian, Kernel, Laplace, Matern, Scaled, dense_gram
from ._search import pattern_search

# Standard deviation of the logarithm of a lengthscale beforehand, and how far it may go.
_WIDTH, _FARTHEST = 1.5, 4.0
#: Share of the kernel that is added to the diagonal: values of a function have errors too, if only by rounding.
NUGGET = 1e-10
# What is added to the score for each value that is followed by that share and not by the kernel.
_AGAINST_NUGGET = 2.0
# Tries for each column, and for a family that starts where two others ended.
_BUDGET_PER_COLUMN, _AGAIN = 30, 6


def _matern(lengthscales: Array) -> Kernel:
    if len(lengthscales) == 1:
        return Matern(2.5, lengthscale=float(lengthscales[0]))
    return functools.reduce(operator.mul, (Matern(2.5, lengthscale=l).on(j) for j, l in enumerate(lengthscales)))


#: Kernels from rough to smooth, by their lengthscales (d,), whose integrals are known for independent columns.
FAMILIES: dict[str, Callable[[Array], Kernel]] = {"laplace": Laplace, "matern": _matern, "gaussian": Gaussian}


class Suited(NamedTuple):
    """A kernel that suits a function, and its score."""

    kernel: Kernel
    score: float
    lengthscales: Array
    shortest: bool  # whether a lengthscale is as short as it may be


def _scored(kernel: Kernel, X: Array, Y: Array) -> tuple[float, float]:
    """Minus twice the log marginal likelihood of values (n, p), up to a constant, the scales at their best.

    And which share of the values' size, over all columns, is followed by the nugget and not by the kernel.
    """
    n = len(X)
    nugget = NUGGET * float(kernel._diag(X).mean())
    L = cholesky(dense_gram(kernel, X, X), "the Gram matrix of the nodes", nugget)
    half = solve_lower(L, np.column_stack([np.ones(n), Y]))
    ones, rest = half[:, 0], half[:, 1:]
    weight = float(ones @ ones)
    rest = rest - np.outer(ones, ones @ rest / weight)
    scales = np.maximum((rest * rest).sum(0) / (n - 1), np.finfo(np.float64).tiny)
    each = (n - 1) * np.log(scales) + 2.0 * np.log(np.diagonal(L)).sum() + np.log(weight)
    coefficients = solve_lower(L, rest, transposed=True)
    followed = nugget * (coefficients * coefficients).sum(0) / ((n - 1) * scales)
    return float(each.sum()), float(followed.sum())


def learn_kernel(X: Array, values: Array, start: Array) -> Suited:
    """The family and the lengthscales, about `start` (d,), that suit values (n,) or (n, p) at points (n, d) best."""
    ends = [_learned(FAMILIES[name], X, values, start) for name in ("laplace", "gaussian")]
    between = _learned(
        FAMILIES["matern"], X, values, np.sqrt(ends[0].lengthscales * ends[1].lengthscales), _AGAIN, start
    )
    return min([ends[1], between, ends[0]], key=lambda found: found.score)


def learn_lengthscales(kernel: Kernel, X: Array, values: Array) -> Suited | None:
    """The same for a kernel that is given; None for one without lengthscales."""
    inner = kernel.kernel if isinstance(kernel, Scaled) else kernel
    if not any(field.name == "lengthscale" for field in dataclasses.fields(inner)):
        return None

    def make(lengthscales: Array) -> Kernel:
        found = eqx.tree_at(lambda k: k.lengthscale, inner, lengthscales)  # type: ignore[attr-defined]
        return Scaled(found, kernel.scale) if isinstance(kernel, Scaled) else found

    start = np.broadcast_to(np.asarray(inner.lengthscale, dtype=np.float64), (X.shape[1],))  # type: ignore[attr-defined]
    return _learned(make, X, values, start)


def _learned(
    make: Callable[[Array], Kernel],
    X: Array,
    values: Array,
    start: Array,
    budget: int = _BUDGET_PER_COLUMN,
    centre: Array | None = None,
) -> Suited:
    """The best lengthscales from a start, with a prior about a centre; `budget` tries for each column."""
    Y = values.reshape(len(X), -1)
    Y = Y[:, np.ptp(Y, axis=0) > 0]
    if len(X) < 3 or not Y.shape[1]:
        return Suited(make(start), np.inf, start, False)
    Y = Y / np.abs(Y).max(axis=0)  # so that nothing overflows
    begin, centre = np.log(start), np.log(start if centre is None else centre)

    def score(point: Array) -> float:
        try:
            fit, by_nugget = _scored(make(np.exp(point)), X, Y)
        except FactorisationError:
            return np.inf
        # a long lengthscale that takes a kink for noise of this size has a likelihood, but says nothing about the kink
        fit += _AGAINST_NUGGET * len(X) * by_nugget
        return fit + Y.shape[1] * float((((point - centre) / _WIDTH) ** 2).sum())

    tried = [begin + shift for shift in (0.0, -1.4, -0.7, 0.7, 1.4)]
    if (begin != centre).any():  # where two other families ended may be the wrong valley for this one
        tried += [centre + shift for shift in (0.0, -0.7, -1.4)]
    best = min(tried, key=score)
    low, high = centre - _FARTHEST, centre + _FARTHEST
    step = np.full(len(start), 0.5)
    found = pattern_search(score, best, step, low, high, budget=budget * len(start), smallest=0.1)
    at = np.exp(found.point)
    return Suited(make(at), found.value, at, bool((found.point == low).any()))

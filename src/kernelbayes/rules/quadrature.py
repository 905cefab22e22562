r"""Weights of a quadrature rule, and how far it is from the integral in the worst case.

Quadrature notes, section 2, after Bach (2017). A rule :math:`\sum_i w_i h(x_i)` for :math:`\int h\, d\rho` errs on
functions of norm one by at most

.. math:: \Big\| \sum_i w_i k(\cdot, x_i) - \mu \Big\|, \qquad \mu = \int k(\cdot, x)\, d\rho(x)

Let F (n, r) hold coordinates of the nodes, :math:`K = F F^\top`, let t be those of :math:`\mu`, and s the squared length of
what of :math:`\mu` lies outside of their span. Then the square of the error is :math:`|F^\top w - t|^2 + s`, and the
weights that minimise it, together with :math:`n \lambda \sum_i q_i w_i^2`, are a ridge regression:

.. math:: (K + n \lambda\, \mathrm{diag}(q))\, w = F t = \mu(x)

| notes | here |
|---|---|
| `alpha`, equation 1 | `optimal` with a penalty `n lambda` |
| `beta / sqrt(q)`, equation 3 | `optimal` with a penalty `n lambda q`: :math:`\beta_i^2 = q_i w_i^2` |
| `f_{k,g}` with g = 1 | `Problem.target` |
| importance weights, section 2.2 | `importance` |

Coordinates come from a Mercer expansion where a complete one is known, and then the error is found to rounding however
small it is. Otherwise they are those of the nodes' own Gram matrix, :math:`s = \|\mu\|^2 - |t|^2`, and a difference of
two numbers near one says nothing about errors below 1e-8: `resolution` is what it can tell from zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._linalg import cholesky, contrasts, dense_pivoted_cholesky, least_squares, solve_lower
from .._typing import Array

_EPS = float(np.finfo(np.float64).eps)
# A node whose kernel is explained by others up to this share adds nothing in double precision.
_TOLERANCE = 1e-15
# Share of the kernel that is added to the diagonal where a matrix has to be inverted, at least.
_LEAST_PENALTY = 1e-10


class Problem(NamedTuple):
    """Nodes and the embedding to be met, in coordinates."""

    nodes: Array  # F (n, r)
    target: Array  # t (r,)
    outside: float  # s
    resolution: float  # errors below it cannot be told from zero

    def error(self, w: Array) -> float:
        """The worst-case error of weights; where it is below the resolution, the resolution."""
        missed = w @ self.nodes - self.target
        squared = float(missed @ missed) + self.outside
        return float(np.sqrt(max(squared, self.resolution**2)))


def by_expansion(functions: Array, eigenvalues: Array, integrals: Array) -> Problem:
    """From eigenfunctions (n, m) at the nodes, of an expansion that leaves nothing out."""
    root = np.sqrt(eigenvalues)
    target = root * integrals
    return Problem(functions * root, target, 0.0, 8.0 * _EPS * float(np.sqrt(target @ target)))


def by_gram(K: Array, mu: Array, norm_squared: float) -> Problem:
    """From the Gram matrix (n, n) of the nodes, the embedding there, and its squared norm."""
    factor, pivots, _ = dense_pivoted_cholesky(K, rank=len(K), tol=_TOLERANCE)
    target = solve_lower(factor[pivots], mu[pivots])
    outside = norm_squared - float(target @ target)
    return Problem(factor, target, outside, float(np.sqrt(16.0 * _EPS * norm_squared)))


def optimal(problem: Problem, penalty: Array | float = 0.0) -> Array:
    """Weights (n,) that minimise the squared error plus `sum_i penalty_i w_i^2`.

    Values are known to rounding only, which is a penalty of its own, the least there is. Nodes that say nearly the same
    would otherwise get weights so large that rounding decides on the integral.
    """
    return least_squares(*_system(problem, penalty))


def normalised(problem: Problem, penalty: Array | float = 0.0) -> Array:
    """The best weights that sum to one: `1/n + Z a`, with Z a basis of all weights that sum to zero."""
    n = len(problem.nodes)
    A, b = _system(problem, penalty)
    even, Z = np.full(n, 1.0 / n), contrasts(n)
    return even + Z @ least_squares(A @ Z, b - A @ even) if n > 1 else even


def _system(problem: Problem, penalty: Array | float) -> tuple[Array, Array]:
    """`A w ~ b` in the sense of least squares; penalties are rows of their own, so that no matrix is squared."""
    F, t = problem.nodes, problem.target
    roots = np.maximum(np.sqrt(penalty), 4.0 * _EPS * np.sqrt((F * F).sum(1)))
    return np.concatenate([F.T, np.diag(roots)]), np.append(t, np.zeros(len(F)))


def importance(density: Array) -> Array:
    """Weights (n,) that are unbiased for nodes whose expected number has the density `n q` with respect to the measure."""
    return 1.0 / (len(density) * density)


class LeftOut(NamedTuple):
    """What all other values say about each of the values (n,), or (n, p)."""

    predicted: Array
    sd: Array  # of the prediction, for a scale of one: (n,)
    z: Array  # how far values are from it, in standard deviations at the scale that fits them


def left_out(problem: Problem, values: Array, penalty: Array, centred: bool = False) -> LeftOut:
    """Predictions of each value from all others by a Gaussian process, or one about an unknown constant, in closed form.

    With P the inverse of `K + diag(penalty)`, made blind to constants, the error is `(P y)_i / P_ii` and its variance
    `1 / P_ii` (Dubrule 1983), times the scale that fits all values.
    """
    n = len(values)
    y = values.reshape(n, -1) - values.reshape(n, -1).mean(axis=0) * centred  # so that little cancels
    unit = np.abs(y).max(axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    half = solve_lower(_factor(problem, penalty), np.column_stack([np.eye(n), np.ones(n), y / unit]))
    roots, ones, rest = half[:, :n], half[:, n], half[:, n + 1 :]
    diagonal = (roots * roots).sum(0)
    if centred:
        weight = float(ones @ ones)
        rest = rest - np.outer(ones, ones @ rest / weight)
        diagonal = np.maximum(diagonal - (ones @ roots) ** 2 / weight, _EPS * diagonal)
    size = (rest * rest).sum(0) / max(n - centred, 1)
    error = (roots.T @ rest) / diagonal[:, None]
    z = error * np.sqrt(diagonal[:, None] / np.where(size > 0, size, np.inf))
    return LeftOut(values - (unit * error).reshape(values.shape), 1.0 / np.sqrt(diagonal), z.reshape(values.shape))


def between(
    problem: Problem, values: Array, penalty: Array, across: Array, diagonal: Array, centred: bool = False
) -> tuple[Array, Array]:
    """Mean and standard deviation (g,), for a scale of one, at other points of a Gaussian process through values (n,).

    From k(nodes, points) (n, g) and k(x, x) at the points (g,). A constant about which the process is, is taken as known.
    """
    half = solve_lower(_factor(problem, penalty), np.column_stack([across, np.ones(len(values)), values]))
    roots, ones, rest = half[:, :-2], half[:, -2], half[:, -1]
    constant = float(ones @ rest) / float(ones @ ones) if centred else 0.0
    mean = constant + (rest - constant * ones) @ roots
    return mean, np.sqrt(np.maximum(diagonal - (roots * roots).sum(0), 0.0))


def _factor(problem: Problem, penalty: Array) -> Array:
    """The Cholesky factor of `K + diag(penalty)`, with a penalty that is enough for one."""
    F = problem.nodes
    floor = _LEAST_PENALTY * float((F * F).sum(1).mean())
    return cholesky(F @ F.T + np.diag(np.maximum(penalty, floor)), "the Gram matrix of the nodes")


class Size(NamedTuple):
    """The scale of a Gaussian process that fits values, (), or (p,) for p columns of values."""

    scale: Array
    beyond: Array  # the share of it that comes from what no function of the coordinates can follow


def scale(problem: Problem, values: Array, penalty: Array, centred: bool = False) -> Size:
    """The maximum likelihood estimate of the scale of a Gaussian process, or of one about an unknown constant.

    `y' (K + diag(penalty))^-1 y` over the number of values, for values (n,) or (n, p). What of the values no function of the
    coordinates can follow would need a variance below rounding, and counts by that: a kernel that is far too smooth for a
    function gets a large scale, not a small one.
    """
    F = problem.nodes
    unit = np.abs(values).max(axis=0)  # so that nothing overflows
    unit = np.where(unit > 0, unit, 1.0)
    rows = np.concatenate([F, np.diag(np.sqrt(penalty))], axis=1) if (penalty > 0).any() else F
    columns = np.column_stack([(values / unit).reshape(len(values), -1), np.ones(len(values))])
    found = least_squares(rows, columns)  # the shortest that follow the values: their squared lengths are y' K^-1 y
    largest = float((F * F).sum(1).max())
    if not largest > 0:
        raise ValueError("the kernel is zero at all nodes, so that no scale of it fits f")
    missed = (columns - rows @ found) / np.sqrt(_TOLERANCE * largest)
    halves = np.concatenate([found, missed])
    ones, c = halves[:, -1], halves[:, :-1]
    if centred:
        c = c - np.outer(ones, ones @ c / (ones @ ones))
    squares = c * c
    whole = squares.sum(0)
    beyond = squares[len(found) :].sum(0) / np.where(whole > 0, whole, 1.0)
    shape = values.shape[1:]
    return Size(unit**2 * (whole / max(len(values) - centred, 1)).reshape(shape), beyond.reshape(shape))

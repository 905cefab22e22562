r"""Determinantal point processes of a spectrum: sets of points that repel each other, as the kernel would have it.

The process of orthonormal functions :math:`e_1, \dots, e_n` has always n points, with density proportional to
:math:`\det [K(x_i, x_j)]` where :math:`K(x, y) = \sum_m e_m(x) e_m(y)`. Let :math:`\phi(x) \in R^n` hold the functions at
x. Point after point, the next has a density proportional to what is left of :math:`\|\phi(x)\|^2 = K(x, x)` beyond the
span of the points before. So a proposal from :math:`K(x, x) / n`, which is a mixture of squares, is accepted with
probability "left over whole": n (1 + 1/2 + ... + 1/n) proposals on average, in any dimension, from a pool of points or
a continuum (Hough, Krishnapur, Peres and Virag 2006, algorithm 18).

Other processes are mixtures of these. With each function taken independently with probability
:math:`\eta_m / (\eta_m + \lambda)`, the marginal kernel is that of :math:`T (T + \lambda I)^{-1}` (Quadrature notes, remark
1 of section 3.1). With n functions taken with probability proportional to the product of their eigenvalues, it is the
n-DPP of the kernel (Kulesza and Taskar 2012, algorithm 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._linalg import GrowingBasis
from .._typing import Array

if TYPE_CHECKING:
    from ._spectrum import Spectrum


def draw_projection(spectrum: Spectrum, modes: Array, rng: np.random.Generator, given: Array | None = None) -> Array:
    """Places of the process of these eigenfunctions, n in all.

    Some points may be `given`, as values (m, n) of the eigenfunctions there; the others follow from the process that holds
    them, and only these are returned.
    """
    n = len(modes)
    basis, left = GrowingBasis(n), n
    for row in () if given is None else given:
        basis.add(row)
        left -= 1
    chosen = [spectrum._draw_squares(modes[:0], rng)]
    while left:
        places = spectrum._draw_squares(rng.choice(modes, 2 * n), rng)
        taken = _thinned(spectrum._functions(places, modes), basis, left, rng)
        chosen.append(places[taken])
        left -= len(taken)
    return np.concatenate(chosen)


def _thinned(rows: Array, basis: GrowingBasis, most: int, rng: np.random.Generator) -> list[int]:
    """Which of these proposals (t, n) are taken, one after the other and so many at most; the basis grows with each."""
    whole = (rows * rows).sum(1)
    bar = rng.random(len(rows)) * whole
    left = basis.left(rows)
    taken, start = [], 0
    while len(taken) < most:
        passed = np.flatnonzero(bar[start:] < left[start:])
        if not len(passed):
            break
        at = start + int(passed[0])
        start = at + 1
        taken.append(at)
        left[start:] -= (rows[start:] @ basis.add(rows[at])) ** 2
    return taken


def independent_modes(spectrum: Spectrum, reg: float, rng: np.random.Generator) -> Array:
    """Which eigenfunctions a process with marginal kernel `T (T + reg I)^-1` is made of in a draw."""
    return np.flatnonzero(rng.random(len(spectrum)) < spectrum.eigenvalues / (spectrum.eigenvalues + reg))


def modes_by_product(eigenvalues: Array, n: int, rng: np.random.Generator) -> Array:
    """n of the eigenfunctions, a set with probability proportional to the product of its eigenvalues.

    By elementary symmetric polynomials, whose logarithms are kept: the products themselves underflow.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(eigenvalues)
    table = np.full((len(logs) + 1, n + 1), -np.inf)  # of the first j eigenvalues, all products of l of them, summed
    table[:, 0] = 0.0
    for j, log in enumerate(logs):
        table[j + 1, 1:] = np.logaddexp(table[j, 1:], log + table[j, :-1])
    chosen, left = [], n
    for j in range(len(logs) - 1, -1, -1):
        if left and np.log(rng.random()) < logs[j] + table[j, left - 1] - table[j + 1, left]:
            chosen.append(j)
            left -= 1
    return np.array(chosen[::-1], dtype=np.intp)

r"""Multiclass conditional embeddings: class probabilities by regression on one-hot labels. Hsu (2019), chapter 3.

.. math:: \hat p(x) = Y^\top (K + n \lambda I)^{-1} k(x) = W^\top f(x), \qquad W = (F^\top F + n \lambda I)^{-1} F^\top Y

| thesis | equation | here |
|---|---|---|
| `K`, `k(x)`, or `Z`, `phi(x)` | 3.5, algorithm 2 | `K`, or `F` |
| `Y`, one-hot labels | 3.5 | `Y` (n, m) |
| lambda, per sample | 3.4 | `reg` |
| `p-hat`, decision probabilities | 3.5 | `P` (t, m) |
| `p-tilde`, clip-normalised | 3.6 | `clip_normalised` |
| `h-tilde`, `h-hat`, entropies | 3.8, 3.12 | `entropy`, `embedded_entropy` |
| `r`, complexity | 3.17 | `complexity` |

With weights d on the sample, D = diag(d) and n their sum, :math:`W = (F^\top D F + n \lambda I)^{-1} F^\top D Y`; the factor
of what is inverted is `conditional.operator`. Multiplying the kernel by a number and `reg` by the same one changes neither
the probabilities nor `r`: a stationary kernel needs no scale here.
"""

from __future__ import annotations

import numpy as np

from .._backend import namespace
from .._linalg import solve_definite, solve_lower
from .._typing import AnyArray, Array


def dual(K: AnyArray, Y: AnyArray, weights: AnyArray, reg: AnyArray) -> AnyArray:
    """Coefficients V (n, m) on the sample with `p(x) = V' k(x)`; points of weight zero get none (algorithm 1, line 8)."""
    root = namespace(weights).sqrt(weights)[:, None]
    return root * solve_definite(root * K * root.T, root * Y, "the regularised Gram matrix", weights.sum() * reg)


def primal(F: AnyArray, Y: AnyArray, weights: AnyArray, reg: AnyArray) -> AnyArray:
    """Coefficients W (r, m) on the coordinates with `p(x) = W' f(x)` (algorithm 2, line 8)."""
    DF = weights[:, None] * F
    return solve_definite(F.T @ DF, DF.T @ Y, "the regularised core of the features", weights.sum() * reg)


def complexity(squared_norm: AnyArray, diagonal: AnyArray) -> AnyArray:
    """The complexity r of (3.17): the norm of the operator times the largest norm of a point, `sup k(x, x)^(1/2)`."""
    xp = namespace(squared_norm, diagonal)
    # rounding may leave a norm of zero below it; the root has a slope at zero, too
    square = xp.maximum(squared_norm, 0.0) * diagonal.max()
    return xp.sqrt(square + np.finfo(square.dtype).tiny)


def left_out(factor: Array, F: Array, coefficients: Array, Y: Array, weights: Array) -> Array:
    """Probabilities (t, m) at some points of the sample, each without itself.

    With the leverage `h = d f' (F' D F + n reg I)^-1 f` of a point, `(p - h y) / (1 - h)` is the regression without it, for
    the same `n reg`: any points can be left out at the cost of predicting them.
    """
    half = solve_lower(factor, F.T)
    leverage = np.minimum(weights * (half * half).sum(0), 1.0 - 1e-12)[:, None]
    return (F @ coefficients - leverage * Y) / (1.0 - leverage)


def clip_normalised(P: Array) -> Array:
    """Probabilities (3.6): negative ones become zero, and each row is divided by its sum.

    A row without a positive entry, far from all data, becomes uniform.
    """
    clipped = np.maximum(P, 0.0)
    total = clipped.sum(1, keepdims=True)
    return np.where(total > 0, clipped / np.where(total > 0, total, 1.0), 1.0 / P.shape[1])


def floor_normalised(P: Array, least: float) -> Array:
    """The same without zeros: below `least`, a small rising function takes the place of p, so that the order is kept."""
    raised = np.where(least < P, P, least * np.exp(np.clip(P - least, -600.0, 0.0)))
    return raised / raised.sum(1, keepdims=True)


def entropy(probabilities: Array) -> Array:
    """Entropy (3.7) of each row of probabilities, in nats; of clip-normalised ones it is (3.8)."""
    return _plogp(probabilities)


def embedded_entropy(P: Array) -> Array:
    """Entropy (3.12) as an expectation under the embedding: of `-log p(y)`, taken as zero where p is not positive.

    The labels' weights add up to the raw probabilities class by class, so that `u' (K + n reg I)^-1 k(x)` is the sum over
    classes of `-p log p`. It may be slightly negative.
    """
    return _plogp(P)


def _plogp(P: Array) -> Array:
    xp = namespace(P)
    seen = P > 0
    return -xp.where(seen, P * xp.log(xp.where(seen, P, 1.0)), 0.0).sum(1)

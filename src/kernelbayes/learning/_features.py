r"""The objective of learned features: Xu et al. (2022), section 3.3 and appendix A.2.

The network :math:`\psi_\theta` is chosen so that a linear operator on its outputs predicts features of z best. The best
operator has a closed form, which leaves a loss of the network alone:

.. math:: \ell(\theta) = \min_E \sum_i d_i \|v_i - E^\top \psi_\theta(x_i)\|^2 + \epsilon \|E\|^2
          = \mathrm{tr}\big(G_Z (D - D F (F^\top D F + \epsilon I)^{-1} F^\top D)\big)
          = \sum_i d_i \|v_i\|^2 - \|L^{-1} F^\top D V\|_F^2, \qquad L L^\top = F^\top D F + \epsilon I

| paper | here |
|---|---|
| `Psi'`, outputs of the network at the x | `F` (n, p) |
| `Phi'`, features of the z, with `G_Z = V V'` | `V` (n, q) |
| `D`, importance weights over n | `weights`, of sum one |
| lambda | `shift`, which is `reg` times the mean square norm of the rows of F |

In the paper lambda is a number of its own, and a network can grow its outputs until it no longer matters. Relative to the
outputs it keeps its meaning, and the loss does not change when they are all multiplied by a number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from .._linalg import cholesky, solve, solve_lower
from .._typing import AnyArray, Array
from . import _training
from ._training import Objective, Settings, double
from ._training import step as step  # compiled steps are counted in tests

# ------------------------------------------------------------------------------------------------- the objective


def trace_loss(F: AnyArray, V: AnyArray, weights: AnyArray, shift: AnyArray) -> AnyArray:
    """The loss above, for NumPy or JAX arrays."""
    DF = weights[:, None] * F
    L = cholesky(F.T @ DF, "the regularised covariance of the features", shift)
    half = solve_lower(L, DF.T @ V)
    return weights @ (V * V).sum(1) - (half * half).sum()


def held_out_loss(train: tuple[AnyArray, ...], held: tuple[AnyArray, ...], shift: AnyArray) -> AnyArray:
    """Mean squared error at held-out pairs of the operator fitted to others; each part is F, V and weights."""
    F, V, weights = train
    DF = weights[:, None] * F
    operator = solve(cholesky(F.T @ DF, "the regularised covariance of the features", shift), DF.T @ V)
    F, V, weights = held
    return weights @ ((V - F @ operator) ** 2).sum(1)


def relative_shift(F: AnyArray, weights: AnyArray, reg: AnyArray) -> AnyArray:
    """A regulariser on the scale of the features: `reg` times their mean square norm."""
    return reg * (weights @ (F * F).sum(1))


# ------------------------------------------------------------------------------------------------------ training


class Sample(NamedTuple):
    """Standardised points, features of their z, and weights of sum one."""

    X: AnyArray
    V: AnyArray
    weights: AnyArray

    def part(self, rows: Array) -> Sample:
        """Some of the pairs, with their weights divided by their sum."""
        weights = self.weights[rows]
        return Sample(self.X[rows], self.V[rows], weights / weights.sum())


def batch_loss(network: Any, sample: Sample, rows: AnyArray, reg: AnyArray) -> AnyArray:
    """The loss of a network on some rows of a sample."""
    weights = sample.weights[rows] * (len(sample.weights) / len(rows))  # sums over a batch stand for sums over all
    F = jax.vmap(network)(sample.X[rows])
    return trace_loss(F, sample.V[rows], weights, relative_shift(F, weights, reg))


def _loss(network: Any, sample: Sample, rows: AnyArray, reg: AnyArray) -> tuple[AnyArray, tuple[()]]:
    return batch_loss(network, sample, rows, reg), ()


def _scores(network: Any, fitted: Sample, held: Sample, reg: AnyArray) -> tuple[AnyArray, tuple[()]]:
    F, held_F = jax.vmap(network)(fitted.X), jax.vmap(network)(held.X)
    return held_out_loss((F, *fitted[1:]), (held_F, *held[1:]), relative_shift(F, fitted.weights, reg)), ()


class Training(_training.Training):
    """The training of features, with a regulariser given."""

    def __init__(self, network: Any, train: Sample, held: Sample | None, settings: Settings):
        super().__init__(Objective(_loss, _scores, "learning features"), network, train, held, settings)

    def baseline(self) -> float | None:
        """The validation loss of predicting the mean of the target features."""
        if self.held is None:
            return None
        train, held = double(self.train), double(self.held)
        return float(held.weights @ ((held.V - train.weights @ train.V) ** 2).sum(1))

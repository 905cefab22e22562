r"""Objectives for the hyperparameters of a multiclass conditional embedding: Hsu (2019), sections 3.5, 3.6 and 3.9.

Fit and complexity are weighed against each other,

.. math:: q(\theta, \lambda) = \frac1n \sum_i -\log [\hat p_{y_i}(x_i)]_\epsilon^1 + \tau\, r(\theta, \lambda), \qquad
          r = \sqrt{\|W\|_{HS}^2 \sup_x k(x, x)}

with the loss (3.13) on the sample itself (3.18) or on points held out (3.19).

**The multiplier.** The thesis has :math:`\tau = 4 e`. Its equation (3.48) bounds :math:`\|\Phi \sigma\|` by
:math:`\|\Phi\| \|\sigma\| = n \alpha`. For one kernel and random signs
:math:`E\|\Phi \sigma\| \le \sqrt{\mathrm{tr} K} = \sqrt n \alpha` (Bartlett and Mendelson 2002, lemma 22), so that
:math:`4 e / \sqrt n` would do; over a family of kernels a further factor is needed, which grows with what the family can
express. Either is a worst case. With 4 e the minimum is the model that predicts the same for all x, on every data set that
was tried. So the rate is kept and the constant is chosen, :math:`\tau = c / \sqrt n`.

A model that repeats the labels it was given, :math:`K = I`, has the loss :math:`\log(1 + u)` with :math:`u = n \lambda` and
:math:`r = \sqrt n / (1 + u)`. It pays :math:`\log(1 + u) + c / (1 + u)`: at least c for c up to 1, and
:math:`1 + \log c` above. A model that ignores x pays the entropy H of the labels, and little else. From :math:`c =
e^{H - 1}`, which is never below H and where repeating them is not worth it, c is halved, each minimum being the start of
the next search, for as long as leave-one-out predictions improve; where halving does not help, it is doubled instead:
`_classification_search`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from .._backend import namespace
from .._linalg import FactorisationError, cholesky, solve
from .._typing import AnyArray, Array
from ..kernels import Gaussian, Kernel
from ..rules import multiclass
from ._conditional import ConditionalParameters
from ._optimise import WrittenOut

LEAST = 1e-15  # the threshold epsilon of the loss (3.13), as in section 3.10


class Labelled(eqx.Module):
    """Points, one-hot labels and weights; points of weight zero only fill up the shape."""

    X: AnyArray
    Y: AnyArray
    weights: AnyArray

    def part(self, rows: Any) -> Labelled:
        """Some of the points."""
        return Labelled(self.X[rows], self.Y[rows], self.weights[rows])

    def scaled(self, scale: AnyArray) -> Labelled:
        """The same with every column of x divided by a number."""
        return self if np.ndim(scale) == 0 and scale == 1.0 else Labelled(self.X / scale, self.Y, self.weights)

    def padded(self, size: int) -> Labelled:
        """The same with points of weight zero added."""
        more = size - len(self.X)
        X = np.concatenate([self.X, np.repeat(self.X[-1:], more, axis=0)])
        return Labelled(X, np.pad(self.Y, ((0, more), (0, 0))), np.pad(self.weights, (0, more)))


class Balance(NamedTuple):
    """The two sides of the objective."""

    fit: AnyArray
    complexity: AnyArray


def cross_entropy(P: AnyArray, sample: Labelled) -> AnyArray:
    """The mean loss (3.13) of raw probabilities."""
    xp = namespace(P)
    losses = -xp.log(xp.clip((P * sample.Y).sum(1), LEAST, 1.0))
    return sample.weights @ losses / sample.weights.sum()


def balance(params: ConditionalParameters, train: Labelled, held: Labelled | None = None) -> Balance:
    """Fit and complexity of the embedding of `train`, with the fit measured there or on `held` (algorithm 1)."""
    K, diagonal = params.kernel._gram(train.X, train.X), params.kernel._diag(train.X)
    across = None if held is None else params.kernel._gram(held.X, train.X)
    return gram_balance(K, diagonal, train, params.reg, across, held)


def gram_balance(
    K: AnyArray,
    diagonal: AnyArray,
    train: Labelled,
    reg: AnyArray,
    across: AnyArray = None,
    held: Labelled | None = None,
) -> Balance:
    """The same from Gram matrices: of the training points, and `across` to them from those held out."""
    V = multiclass.dual(K, train.Y, train.weights, reg)
    P = K @ V
    complexity = multiclass.complexity((V * P).sum(), diagonal)
    if held is not None:
        return Balance(cross_entropy(across @ V, held), complexity)
    return Balance(cross_entropy(P, train), complexity)


def explicit_balance(
    F: AnyArray, train: Labelled, reg: AnyArray, held: tuple[AnyArray, Labelled] | None = None
) -> Balance:
    """The same from coordinates F of the points (algorithm 2); `held` has coordinates of its own."""
    W = multiclass.primal(F, train.Y, train.weights, reg)
    complexity = multiclass.complexity((W * W).sum(), (F * F).sum(1))
    F, sample = (F, train) if held is None else held
    return Balance(cross_entropy(F @ W, sample), complexity)


def _drawn_together(kernel: Kernel, strength: AnyArray) -> AnyArray:
    """A penalty that keeps lengthscales alike unless the data want them apart: ARD without it overfits small samples."""
    if not isinstance(kernel, Gaussian):
        return 0.0
    logs = namespace(kernel.lengthscale).log(kernel.lengthscale)
    return strength * ((logs - logs.mean()) ** 2).sum()


def bound(params: ConditionalParameters, sample: Labelled, multiplier: AnyArray, shrinkage: AnyArray) -> AnyArray:
    """The objective (3.18), and a penalty on lengthscales; with a multiplier of zero, the empirical risk alone."""
    fit, complexity = balance(params, sample)
    return fit + multiplier * complexity + _drawn_together(params.kernel, shrinkage)


def validation(
    params: ConditionalParameters, train: Labelled, held: Labelled, multiplier: AnyArray, shrinkage: AnyArray
) -> AnyArray:
    """The objective (3.19), and a penalty on lengthscales."""
    fit, complexity = balance(params, train, held)
    return fit + multiplier * complexity + _drawn_together(params.kernel, shrinkage)


def _cross_entropy_slope(P: Array, sample: Labelled) -> Array:
    true = (P * sample.Y).sum(1)
    inside = (true > LEAST) & (true < 1.0)
    pull = np.where(inside, sample.weights / np.where(inside, true, 1.0), 0.0)
    return -pull[:, None] * sample.Y / sample.weights.sum()


def _with_slopes(params: Any, train: Labelled, *rest: Any) -> tuple[float, list[Array]]:
    """`bound` or `validation` of a Gaussian kernel and reg, and their slopes by the lengthscale and reg.

    With D the weights, R their roots and `A = R K R + s I`, the coefficients are `V = R A^-1 R Y`. A slope T by V is carried
    back by one more solve, `Z = R A^-1 R T`: it is `-Z V'` by K, and `-<A^-1 R Y, A^-1 R T>` by s.
    """
    *held, multiplier, shrinkage = rest
    kernel, lengthscale, total = params.kernel, params.kernel.lengthscale, train.weights.sum()
    K, root = kernel._gram(train.X, train.X), np.sqrt(train.weights)[:, None]
    weighted = root * K
    weighted *= root.T
    try:
        L = cholesky(weighted, "the regularised Gram matrix", total * float(params.reg))
    except FactorisationError:
        return np.nan, [np.zeros_like(lengthscale), np.zeros(())]
    U = solve(L, root * train.Y)
    V = root * U
    P = K @ V
    complexity = float(multiclass.complexity((V * P).sum(), np.ones(1)))  # k(x, x) = 1
    by_norm = 0.5 * multiplier / complexity  # by the squared one
    sample, across = (held[0], kernel._gram(held[0].X, train.X)) if held else (train, K)
    there = across @ V if held else P
    by_there = _cross_entropy_slope(there, sample)
    back = solve(L, root * (across.T @ by_there + 2.0 * by_norm * P))
    by_K, slope = by_norm * V - root * back, 0.0
    if held:
        slope = kernel._lengthscale_slope(sample.X, train.X, across * (by_there @ V.T))
    else:
        by_K += by_there
    slope = slope + kernel._lengthscale_slope(train.X, train.X, K * (by_K @ V.T))
    logs = np.log(lengthscale)
    slope = slope + 2.0 * shrinkage * (logs - logs.mean()) / lengthscale
    value = cross_entropy(there, sample) + multiplier * complexity + _drawn_together(kernel, shrinkage)
    return float(value), [slope, np.asarray(-total * (U * back).sum())]


# Both objectives for Gaussian kernels; nothing is compiled.
written_out = WrittenOut(_with_slopes)


def label_entropy(sample: Labelled) -> float:
    """What a model that ignores x has to pay: the entropy of the labels, in nats."""
    return float(multiclass.entropy((sample.weights @ sample.Y / sample.weights.sum())[None])[0])


def default_multiplier(sample: Labelled) -> float:
    """The weight of the complexity to start from: see the head of this file."""
    return float(np.exp(label_entropy(sample) - 1.0) / np.sqrt(np.count_nonzero(sample.weights)))

r"""The objective of conditional embedding networks: Hsu (2019), section 3.9, algorithms 1 and 2.

A kernel on the outputs of a network, :math:`k_\theta(x, x') = \kappa(\varphi(x), \varphi(x'))` (3.72), and on each batch
the balance of fit and complexity of `_classification`, as a function of the network, of the parameters of
:math:`\kappa` and of the regulariser. With a linear :math:`\kappa` the outputs are coordinates, and the head is solved
in their number (algorithm 2); with any other it is solved in the number of points (algorithm 1).

| thesis | here |
|---|---|
| :math:`\varphi_\theta`, `Z` | `Model.network`, `F` |
| :math:`\kappa` | `Given.kernel` with `Model.log_kernel`; None for the linear one |
| :math:`\lambda` | `Model.reg` times the mean of k(x, x) over the batch |

The regulariser is relative to the kernel's mean, so that outputs may grow or shrink without changing its meaning.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import AnyArray
from ..kernels import Kernel
from ..rules import multiclass
from ._classification import Balance, Labelled, balance, explicit_balance, label_entropy
from ._conditional import ConditionalParameters
from ._optimise import free_leaves
from ._training import Objective

_LEAST_REG = 1e-6  # in single precision, the least that keeps a Gram matrix definite
_MOST_IN_A_GRAM = 1024


class Model(eqx.Module):
    """What is learned: the network, and logarithms of the declared parameters of a kernel and of the regulariser."""

    network: Any
    log_kernel: tuple[AnyArray, ...]
    log_reg: AnyArray

    @property
    def reg(self) -> AnyArray:
        """The regulariser per sample, relative to the mean of k(x, x)."""
        return _LEAST_REG + jnp.exp(self.log_reg)


class Given(NamedTuple):
    """What is not learned.

    Attributes:
        multiplier: weight of the complexity.
        scale: by which outputs are divided: their root mean square norm at the start.
        kernel: on outputs; None for the linear one.
        free: places of its declared parameters among its leaves.
    """

    multiplier: AnyArray
    scale: AnyArray
    kernel: Kernel | None
    free: tuple[int, ...]


def started(network: Any, kernel: Kernel | None, reg: float, multiplier: float, scale: float) -> tuple[Model, Given]:
    """A model to train from, and what goes with it."""
    leaves = [] if kernel is None else free_leaves(kernel, {}, ())
    model = Model(network, tuple(np.asarray(np.log(leaf.value)) for leaf in leaves), np.asarray(np.log(reg)))
    return model, Given(np.asarray(multiplier), np.asarray(scale), kernel, tuple(leaf.index for leaf in leaves))


def learned_kernel(model: Model, given: Given) -> Kernel:
    """The kernel with its parameters as they were learned."""
    leaves, structure = jax.tree_util.tree_flatten(given.kernel)
    for index, log in zip(given.free, model.log_kernel, strict=True):
        leaves[index] = jnp.exp(log) if isinstance(log, jax.Array) else np.asarray(np.exp(log))
    return jax.tree_util.tree_unflatten(structure, leaves)


def _outputs(model: Model, sample: Labelled, given: Given) -> Labelled:
    """The sample with outputs of the network in place of its points."""
    return Labelled(jax.vmap(model.network)(sample.X) / given.scale, sample.Y, sample.weights)


def _balance(model: Model, train: Labelled, held: Labelled | None, given: Given) -> Balance:
    """Fit and complexity, from outputs."""
    if given.kernel is None:
        reg = model.reg * _mean((train.X * train.X).sum(1), train)
        return explicit_balance(train.X, train, reg, None if held is None else (held.X, held))
    kernel = learned_kernel(model, given)
    return balance(ConditionalParameters(kernel, model.reg * _mean(kernel._diag(train.X), train)), train, held)


def _mean(values: AnyArray, sample: Labelled) -> AnyArray:
    return sample.weights @ values / sample.weights.sum()


def bound_loss(model: Model, sample: Labelled, rows: AnyArray, given: Given) -> tuple[AnyArray, Balance]:
    """The objective (3.18) on a batch, and its two sides."""
    sides = _balance(model, _outputs(model, sample.part(rows), given), None, given)
    return sides.fit + given.multiplier * sides.complexity, sides


def validation_loss(model: Model, sample: Labelled, rows: AnyArray, given: Given) -> tuple[AnyArray, Balance]:
    """The objective (3.19) on a batch, of which one half is fitted to and the other predicted; and its two sides."""
    outputs = _outputs(model, sample.part(rows), given)
    half = len(rows) // 2
    sides = _balance(model, outputs.part(slice(half)), outputs.part(slice(half, None)), given)
    return sides.fit + given.multiplier * sides.complexity, sides


def scores(model: Model, fitted: Labelled, held: Labelled, given: Given) -> tuple[AnyArray, tuple[AnyArray]]:
    """Loss and accuracy at points held out, of the head fitted to others."""
    train, test = _outputs(model, fitted, given), _outputs(model, held, given)
    P = _predicted(model, train, test, given)
    return _mean(((P - test.Y) ** 2).sum(1), test), (_mean((P.argmax(1) == test.Y.argmax(1)).astype(P.dtype), test),)


def _predicted(model: Model, train: Labelled, test: Labelled, given: Given) -> AnyArray:
    """Raw probabilities at points, from outputs."""
    if given.kernel is None:
        reg = model.reg * _mean((train.X * train.X).sum(1), train)
        return test.X @ multiclass.primal(train.X, train.Y, train.weights, reg)
    kernel = learned_kernel(model, given)
    reg = model.reg * _mean(kernel._diag(train.X), train)
    V = multiclass.dual(kernel._gram(train.X, train.X), train.Y, train.weights, reg)
    return kernel._gram(test.X, train.X) @ V


def default_multiplier(train: Labelled, fitted: int) -> float:
    """The weight of the complexity where none is given, for embeddings of so many points: see `_classification`.

    The entropy of the labels over the root of their number. On the data sets that were tried, half as much predicted
    slightly worse, and several times as much made small networks ignore x where labels are noisy. Early stopping guards
    against repeating labels.
    """
    return float(label_entropy(train) / np.sqrt(fitted))


def objective(learn: str, kernel: Kernel | None) -> Objective:
    """The objective of this name, for the linear kernel (None) or another."""
    loss = validation_loss if learn == "validation" else bound_loss
    options = {} if kernel is None else {"most_fitted": _MOST_IN_A_GRAM}
    return Objective(loss, scores, "training", **options)

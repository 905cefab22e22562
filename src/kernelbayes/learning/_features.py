r"""The objective of learned features, and its training loop: Xu et al. (2022), section 3.3 and appendix A.2.

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

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._linalg import cholesky, one_thread, solve, solve_lower
from .._typing import AnyArray, Array

MOST_FITTED, MOST_HELD = 4096, 2000  # pairs on which the operator of an epoch is fitted and scored, at most
_SETBACKS, _SLOWDOWN = 3, 0.1
_SECONDS_TO_WAIT = 2.0  # before a progress bar appears


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


def single(tree: Any) -> Any:
    """A pytree with its real arrays in JAX and in single precision."""
    return jax.tree_util.tree_map(lambda leaf: jnp.asarray(leaf, jnp.float32) if _is_real(leaf) else leaf, tree)


def double(tree: Any) -> Any:
    """A pytree with its real arrays in NumPy and in double precision."""
    return jax.tree_util.tree_map(lambda leaf: np.asarray(leaf, np.float64) if _is_real(leaf) else leaf, tree)


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, jax.Array)) and jnp.issubdtype(leaf.dtype, jnp.floating)


@functools.cache
def _adam() -> Any:
    import optax  # slow to import, and needed only here

    return optax.scale_by_adam()


class Settings(NamedTuple):
    """What a step needs to know; numbers here may change without compiling again."""

    reg: AnyArray
    rate: AnyArray
    decay: AnyArray


@eqx.filter_jit
def step(network: Any, state: Any, sample: Sample, rows: AnyArray, settings: Settings) -> tuple[Any, Any, AnyArray]:
    """One step of AdamW (Loshchilov and Hutter 2019) on a batch; biases do not decay."""
    loss, gradient = eqx.filter_value_and_grad(batch_loss)(network, sample, rows, settings.reg)
    direction, state = _adam().update(gradient, state)

    def moved(parameter: AnyArray, along: AnyArray) -> AnyArray:
        decay = settings.decay * parameter if parameter.ndim > 1 else 0.0
        return parameter - settings.rate * (along + decay)

    learned, rest = eqx.partition(network, eqx.is_inexact_array)
    return eqx.combine(jax.tree_util.tree_map(moved, learned, direction), rest), state, loss


@eqx.filter_jit
def _validate(network: Any, fitted: Sample, held: Sample, reg: AnyArray) -> AnyArray:
    F, held_F = jax.vmap(network)(fitted.X), jax.vmap(network)(held.X)
    return held_out_loss((F, *fitted[1:]), (held_F, *held[1:]), relative_shift(F, fitted.weights, reg))


class _Best(NamedTuple):
    """The best network so far, its validation loss and its epoch."""

    network: Any
    value: float = np.inf
    epoch: int = 0


def _batches(n: int, size: int, rng: np.random.Generator) -> Iterator[Array]:
    """Rows of one pass in random order, in batches of one shape; what does not fill a batch waits for another pass."""
    order = rng.permutation(n)
    for start in range(0, n - size + 1, size):
        yield order[start : start + size]


class Training:
    """A network on its way: state of the optimiser, record, and the best so far."""

    def __init__(self, network: Any, train: Sample, held: Sample | None, settings: Settings):
        self.train, self.held, self.settings = train, held, settings
        self.fitted = train.part(np.arange(min(len(train.X), MOST_FITTED)))
        self.setbacks, self.curve = 0, []
        self.best = _Best(network)
        self.restart()

    def restart(self) -> None:
        """Go on from the best network."""
        self.network = self.best.network
        self.state = _adam().init(eqx.filter(self.network, eqx.is_inexact_array))

    def epoch(self, batches: Iterator[Array]) -> None:
        """One pass over the data; a loss that is not finite steps back, and goes on more slowly."""
        losses = []
        for rows in batches:
            self.network, self.state, loss = step(self.network, self.state, self.train, rows, self.settings)
            losses.append(loss)
        train, held = float(np.mean(losses)), self.score()
        if not np.isfinite(train + held):
            self.step_back()
            return
        self.curve.append((train, held))
        if self.held is None or held < self.best.value:
            self.best = _Best(self.network, held, len(self.curve))

    def score(self) -> float:
        """The validation loss of the network as it is; without validation, its error on what it was trained on."""
        return float(_validate(self.network, self.fitted, self.held or self.fitted, self.settings.reg))

    def baseline(self) -> float | None:
        """The validation loss of predicting the mean of the target features."""
        if self.held is None:
            return None
        train, held = double(self.train), double(self.held)
        return float(held.weights @ ((held.V - train.weights @ train.V) ** 2).sum(1))

    def step_back(self) -> None:
        """The best network again, with smaller steps."""
        self.setbacks += 1
        if self.setbacks > _SETBACKS:
            self.give_up()
        self.settings = self.settings._replace(rate=self.settings.rate * np.float32(_SLOWDOWN))
        self.restart()

    def give_up(self) -> None:
        """Say what is wrong where the loss stays a NaN."""
        raise ValueError(
            f"the loss is not finite, even with a learning rate of {self.settings.rate:.1g}. Does the network return "
            "finite numbers for every x? A larger reg or a lower learning_rate may help."
        )

    def run(self, epochs: int, patience: int, batch_size: int, rng: np.random.Generator, progress: bool | None) -> None:
        """Train until the validation loss no longer falls."""
        from tqdm.auto import tqdm

        hidden = None if progress is None else not progress  # None: wherever there is no terminal
        delay = 0.0 if progress else _SECONDS_TO_WAIT
        bar = tqdm(total=epochs, desc="learning features", disable=hidden, delay=delay)
        # On a busy machine, threads that share a triangular solve this small wait for each other a hundred times longer.
        with bar, one_thread():
            for _ in range(epochs):
                self.epoch(_batches(len(self.train.X), batch_size, rng))
                bar.update()
                if self.curve:
                    train, held = self.curve[-1]
                    shown = f"loss {train:.4f}" + (f", held out {held:.4f}" if self.held else "")
                    bar.set_postfix_str(shown, refresh=False)
                if len(self.curve) - self.best.epoch >= patience:
                    break
        if not self.curve:
            self.give_up()

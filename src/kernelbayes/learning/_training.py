"""The one training loop of networks: AdamW on batches, stopped early by a score on points held out.

What is minimised is an `Objective`: two module-level functions, so that a compiled step is found again. The network is
any pytree; all its real arrays are learned.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._linalg import one_thread
from .._progress import progress_bar
from .._typing import AnyArray, Array

MOST_FITTED, MOST_HELD = 4096, 2000  # points on which the model of an epoch is fitted and scored, at most
_SETBACKS, _SLOWDOWN = 3, 0.1


class Objective(NamedTuple):
    """What is minimised on batches, and what is watched on points held out.

    Attributes:
        loss: `loss(network, sample, rows, given)` on some rows of a sample: the value, and a tuple of numbers to record.
        scores: `scores(network, fitted, held, given)`: the loss on `held` of what is fitted to another sample, and a
            tuple of numbers to record.
        title: for the progress bar.
        most_fitted: points of the training sample that `scores` is given, at most.
    """

    loss: Callable[..., tuple[AnyArray, tuple[AnyArray, ...]]]
    scores: Callable[..., tuple[AnyArray, tuple[AnyArray, ...]]]
    title: str
    most_fitted: int = MOST_FITTED


class Settings(NamedTuple):
    """What a step needs to know; numbers here may change without compiling again.

    Attributes:
        given: whatever the objective wants to be given beside network and data, such as a regulariser.
        rate: step size.
        decay: each step takes `rate * decay` off every weight, as a share of it.
    """

    given: Any
    rate: AnyArray
    decay: AnyArray


def single(tree: Any) -> Any:
    """A pytree with its real arrays in JAX and in single precision."""
    # converted on the host: JAX would compile that for each shape
    return jax.tree_util.tree_map(
        lambda leaf: jnp.asarray(np.asarray(leaf, np.float32)) if _is_real(leaf) else leaf, tree
    )


def double(tree: Any) -> Any:
    """A pytree with its real arrays in NumPy and in double precision."""
    return jax.tree_util.tree_map(lambda leaf: np.asarray(leaf, np.float64) if _is_real(leaf) else leaf, tree)


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf, (np.ndarray, jax.Array)) and jnp.issubdtype(leaf.dtype, jnp.floating)


@functools.cache
def _adam() -> Any:
    import optax  # slow to import, and needed only here

    return optax.scale_by_adam()


@eqx.filter_jit
def _started(network: Any) -> Any:
    """The state of Adam before its first step, in one program for all parameters."""
    return _adam().init(eqx.filter(network, eqx.is_inexact_array))


@eqx.filter_jit
def step(
    loss: Callable[..., Any], network: Any, state: Any, sample: Any, rows: AnyArray, settings: Settings
) -> tuple[Any, Any, AnyArray, tuple[AnyArray, ...]]:
    """One step of AdamW (Loshchilov and Hutter 2019) on a batch; biases do not decay."""
    (value, parts), gradient = eqx.filter_value_and_grad(loss, has_aux=True)(network, sample, rows, settings.given)
    direction, state = _adam().update(gradient, state)

    def moved(parameter: AnyArray, along: AnyArray) -> AnyArray:
        decay = settings.decay * parameter if parameter.ndim > 1 else 0.0
        return parameter - settings.rate * (along + decay)

    learned, rest = eqx.partition(network, eqx.is_inexact_array)
    return eqx.combine(jax.tree_util.tree_map(moved, learned, direction), rest), state, value, parts


@eqx.filter_jit
def _scored(scores: Callable[..., Any], network: Any, fitted: Any, held: Any, given: Any) -> Any:
    return scores(network, fitted, held, given)


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
    """A network on its way: state of the optimiser, record, and the best so far.

    A sample has points `X` and `part(rows)`. The record `curve` has, for each epoch, the loss on batches, that on the points
    held out, and the further numbers of the objective: means over batches first, then scores.
    """

    def __init__(self, objective: Objective, network: Any, train: Any, held: Any, settings: Settings):
        self.objective, self.train, self.held, self.settings = objective, train, held, settings
        self.fitted = train.part(np.arange(min(len(train.X), objective.most_fitted)))
        self.setbacks, self.curve = 0, []
        self.best = _Best(network)
        self.restart()

    def restart(self) -> None:
        """Go on from the best network."""
        self.network = self.best.network
        self.state = _started(self.network)

    def epoch(self, batches: Iterator[Array]) -> None:
        """One pass over the data; a loss that is not finite steps back, and goes on more slowly."""
        losses, parts = [], []
        for rows in batches:
            self.network, self.state, loss, recorded = step(
                self.objective.loss, self.network, self.state, self.train, rows, self.settings
            )
            losses.append(loss)
            parts.append(recorded)
        train, (held, *scores) = float(np.mean(losses)), self.score()
        if not np.isfinite(train + held):
            self.step_back()
            return
        self.curve.append((train, held, *np.mean(parts, axis=0), *scores))
        if self.held is None or held < self.best.value:
            self.best = _Best(self.network, held, len(self.curve))

    def score(self) -> list[float]:
        """The validation loss of the network as it is, and further scores; without validation, those on what it saw."""
        held = self.fitted if self.held is None else self.held
        loss, more = _scored(self.objective.scores, self.network, self.fitted, held, self.settings.given)
        return [float(number) for number in (loss, *more)]

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
        bar = progress_bar(epochs, self.objective.title, progress)
        # On a busy machine, threads that share a triangular solve this small wait for each other a hundred times longer.
        with bar, one_thread():
            for _ in range(epochs):
                self.epoch(_batches(len(self.train.X), batch_size, rng))
                bar.update()
                if self.curve:
                    train, held = self.curve[-1][:2]
                    shown = f"loss {train:.4f}" + ("" if self.held is None else f", held out {held:.4f}")
                    bar.set_postfix_str(shown, refresh=False)
                if len(self.curve) - self.best.epoch >= patience:
                    break
        if not self.curve:
            self.give_up()

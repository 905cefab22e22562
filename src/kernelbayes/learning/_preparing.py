"""What networks are trained on, and how long: checks of what a user gives, and defaults for the rest."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check
from .._typing import Array
from ._networks import MLP, ConvNet
from ._training import single

_OUTPUTS = 32
_LEAST_EPOCHS, _LEAST_PATIENCE = 40, 10


def network_for(X: Array, network: Any, rng: np.random.Generator, outputs: int = _OUTPUTS) -> Any:
    """The network given, or one that suits the points, with so many outputs."""
    if network is None:
        shape = X.shape[1:]
        if len(shape) > 3:
            raise ValueError(f"there is no default network for points of shape {shape}; give one as network")
        return MLP(*shape, outputs, random_state=rng) if len(shape) == 1 else ConvNet(shape, outputs, random_state=rng)
    if not isinstance(network, eqx.Module) or not callable(network):
        raise ValueError(f"network must be an Equinox module such as kb.MLP(64, 32), got {type(network).__name__}")
    return network


def outputs_of(network: Any, shape: tuple[int, ...]) -> int:
    """Number of outputs for one point, if they are a vector that depends on parameters."""
    with jax.enable_x64(False):
        network = single(network)
        try:
            out = eqx.filter_eval_shape(network, jax.ShapeDtypeStruct(shape, jnp.float32))
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"the network does not take points of shape {shape}: {error}") from error
    if getattr(out, "ndim", None) != 1 or not jnp.issubdtype(out.dtype, jnp.floating):
        raise ValueError(f"the network must return a vector of numbers for each point, got {out}")
    if not jax.tree_util.tree_leaves(eqx.filter(network, eqx.is_inexact_array)):
        raise ValueError("the network has no parameters to learn")
    return out.shape[0]


def location_and_spread(X: Array, network: Any) -> tuple[Array, Array]:
    """Mean and standard deviation: of each column, or of all pixels, whose differences in brightness mean something."""
    axis = 0 if X.ndim == 2 and not isinstance(network, ConvNet) else None
    return np.asarray(X.mean(axis)), np.where(np.ptp(X, axis=axis) > 0, X.std(axis), 1.0)


def share_to_hold(validation: Any) -> float:
    """The share of the pairs on which training is watched."""
    share = _check.scalar(validation, "validation")
    if not 0 <= share < 1:
        raise ValueError(f"validation must be a share of the pairs, at least 0 and below 1, got {share:g}")
    return share


def step_sizes(learning_rate: Any, weight_decay: Any) -> tuple[np.float32, np.float32]:
    """Rate and decay of a step."""
    if _check.scalar(weight_decay, "weight_decay") < 0:
        raise ValueError(f"weight_decay must not be negative, got {weight_decay}")
    return np.float32(_check.positive(learning_rate, "learning_rate")), np.float32(weight_decay)


def passes(epochs: Any, patience: Any, per_epoch: int, *, steps: int, patient_steps: int) -> tuple[int, int]:
    """Epochs and patience, as given or from a number of steps."""
    most = max(_LEAST_EPOCHS, -(-steps // per_epoch)) if epochs is None else _check.count(epochs, "epochs")
    wait = max(_LEAST_PATIENCE, -(-patient_steps // per_epoch))
    return most, wait if patience is None else _check.count(patience, "patience")

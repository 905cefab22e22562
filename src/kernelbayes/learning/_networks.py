"""Networks for learned features: small Equinox modules that act on one point.

Their parameters are NumPy arrays drawn from a seed and their settings are plain words and numbers, so that making one
starts no backend and a trained one can be saved as data.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check
from .._typing import AnyArray, Array, RandomState

ACTIVATIONS = {"relu": jax.nn.relu, "silu": jax.nn.silu, "gelu": jax.nn.gelu, "tanh": jnp.tanh}
_FILTER, _STRIDE = 3, 2
_EPSILON = 1e-5


class MLP(eqx.Module):
    """A multilayer perceptron from one point to a vector of `outputs` numbers.

    Hidden layers of the given widths are each an affine map, normalised to mean 0 and variance 1 over the layer, and an
    activation; the last layer is affine. A point may be an array of any shape with `inputs` entries.

    Args:
        inputs: numbers in a point.
        outputs: numbers in the result.
        widths: units in each hidden layer; none for an affine map.
        activation: "relu", "silu", "gelu" or "tanh".
        random_state: seed of the starting parameters.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> network = kb.MLP(64, 8, widths=(32,), random_state=0)
        >>> kb.Neural(network).kernel.gram(np.zeros((5, 64))).shape
        (5, 5)
    """

    layers: tuple[tuple[AnyArray, AnyArray], ...]
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        outputs: int,
        widths: Sequence[int] = (128, 128),
        *,
        activation: str = "silu",
        random_state: RandomState = None,
    ):
        rng = _check.generator(random_state)
        sizes = [_check.count(inputs, "inputs"), *_counts(widths, "widths"), _check.count(outputs, "outputs")]
        self.activation = _check.option(activation, "activation", tuple(ACTIVATIONS))
        self.layers = tuple(_drawn(rng, (m, n), fan=n) for n, m in itertools.pairwise(sizes))

    def __call__(self, x: Any) -> AnyArray:
        """The outputs for one point."""
        hidden = jnp.ravel(x)
        *inner, (last, offset) = self.layers
        for weight, bias in inner:
            hidden = ACTIVATIONS[self.activation](_normalised(weight @ hidden + bias))
        return last @ hidden + offset


class ConvNet(eqx.Module):
    """A small convolutional network from one image to a vector of `outputs` numbers.

    Each entry of `channels` is a layer of 3 x 3 filters that halves the image, normalised over the layer and activated. What
    is left goes through an `MLP`, so that positions are kept.

    Args:
        image_shape: (height, width) or (height, width, channels). Images may come in this shape, or flattened.
        outputs: numbers in the result.
        channels: filters in each convolution.
        widths: hidden layers after the convolutions.
        activation: "relu", "silu", "gelu" or "tanh".
        random_state: seed of the starting parameters.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> network = kb.ConvNet((16, 16), 8, random_state=0)
        >>> images = np.zeros((5, 16, 16))
        >>> kb.Neural(network).kernel.gram(images).shape
        (5, 5)
    """

    layers: tuple[tuple[AnyArray, AnyArray], ...]
    head: MLP
    image_shape: tuple[int, ...] = eqx.field(static=True)
    activation: str = eqx.field(static=True)

    def __init__(
        self,
        image_shape: Sequence[int],
        outputs: int,
        channels: Sequence[int] = (8, 16, 32),
        widths: Sequence[int] = (64,),
        *,
        activation: str = "silu",
        random_state: RandomState = None,
    ):
        rng = _check.generator(random_state)
        shape = _counts(image_shape, "image_shape")
        if len(shape) not in (2, 3):
            raise ValueError(f"image_shape must be (height, width) or (height, width, channels), got {image_shape!r}")
        height, width, depth = (*shape, 1)[:3]
        depths = (depth, *_counts(channels, "channels"))
        self.image_shape = (height, width, depth)
        self.activation = _check.option(activation, "activation", tuple(ACTIVATIONS))
        self.layers = tuple(
            _drawn(rng, (_FILTER, _FILTER, before, after), fan=_FILTER * _FILTER * before)
            for before, after in itertools.pairwise(depths)
        )
        for _ in self.layers:
            height, width = -(-height // _STRIDE), -(-width // _STRIDE)
        self.head = MLP(height * width * depths[-1], outputs, widths, activation=activation, random_state=rng)

    def __call__(self, x: Any) -> AnyArray:
        """The outputs for one image."""
        image = jnp.asarray(x).reshape(1, *self.image_shape)
        for filters, bias in self.layers:
            image = ACTIVATIONS[self.activation](_normalised(_convolved(image, filters) + bias))
        return self.head(image)


class Standardised(eqx.Module):
    """A network with its input shifted and scaled, and its output scaled: `network((x - centre) / spread) / scale`."""

    network: Any
    centre: Array
    spread: Array
    scale: Array

    def __call__(self, x: Any) -> AnyArray:
        """The outputs for one point as it was measured."""
        return self.network((x - self.centre) / self.spread) / self.scale


def _counts(values: Any, name: str) -> tuple[int, ...]:
    if isinstance(values, str) or not np.iterable(values):
        raise ValueError(f"{name} must be a list of whole numbers such as (32, 64), got {values!r}")
    return tuple(_check.count(value, f"each of {name}") for value in values)


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], *, fan: int) -> tuple[Array, Array]:
    """Starting weights and biases of a layer, of a size that keeps the variance of what passes through."""
    outputs = shape[0] if len(shape) == 2 else shape[-1]
    return rng.normal(size=shape) / np.sqrt(fan), rng.normal(size=outputs) / np.sqrt(fan)


def _normalised(layer: AnyArray) -> AnyArray:
    return (layer - layer.mean()) / jnp.sqrt(layer.var() + _EPSILON)


def _convolved(image: AnyArray, filters: AnyArray) -> AnyArray:
    dimensions = ("NHWC", "HWIO", "NHWC")
    strides = (_STRIDE, _STRIDE)
    return jax.lax.conv_general_dilated(
        image, jnp.asarray(filters, image.dtype), strides, "SAME", dimension_numbers=dimensions
    )

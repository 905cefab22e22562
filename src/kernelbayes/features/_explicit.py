"""Features given by a formula: random Fourier features, one-hot labels, a neural network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import numpy as np

from .. import _check
from .._backend import namespace
from .._linalg import Gram, LowRank
from .._typing import AnyArray, Array
from ..kernels import Delta, Kernel, Linear, MappedKernel, Scaled
from ..kernels._composite import apply_map
from ..kernels._stationary import sample_frequencies
from ._base import Features, Recipe


class FourierFeatures(Features):
    """Coordinates `(cos w_j . x, sin w_j . x) sqrt(s / m)` at m random frequencies."""

    frequencies: Array
    scale: Array

    @property
    def rank(self) -> int:
        """Twice the number of frequencies."""
        return 2 * len(self.frequencies)

    def _coordinates(self, X: AnyArray) -> AnyArray:
        xp = namespace(X)
        phase = X @ self.frequencies.T
        return xp.sqrt(self.scale / len(self.frequencies)) * xp.concatenate([xp.cos(phase), xp.sin(phase)], axis=1)


class RandomFourier(Recipe):
    """Random Fourier features of a stationary kernel: `size` coordinates from size / 2 random frequencies.

    An odd size is rounded down. The error of the kernel falls as 1 / sqrt(size) and has no trace residual, since the
    diagonal is exact. Rahimi and Recht (2008).

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> X = np.random.default_rng(0).normal(size=(50, 3))
        >>> F = kb.RandomFourier(2000).fit(kb.Gaussian(2.0), X, random_state=0).transform(X)
        >>> bool(np.abs(F @ F.T - kb.Gaussian(2.0).gram(X)).max() < 0.15)
        True
    """

    size: int = eqx.field(static=True, default=500)

    def __check_init__(self) -> None:
        _check.count(self.size, "size", at_least=2)

    def _fit(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> tuple[Features, Gram]:
        base, scale = kernel, np.asarray(1.0)
        while isinstance(base, Scaled):
            base, scale = base.kernel, scale * base.scale
        frequencies = sample_frequencies(base, self.size // 2, X.shape[-1], rng)
        features = FourierFeatures(kernel, None, frequencies, scale)
        return features, LowRank(features._coordinates(X))


class OneHotFeatures(Features):
    """One coordinate per label; a label never seen has none."""

    classes: Array

    @property
    def rank(self) -> int:
        """Number of labels."""
        return len(self.classes)

    def _coordinates(self, X: AnyArray) -> AnyArray:
        X = X[:, 0] if X.ndim == 2 else X
        return (X[:, None] == self.classes[None, :]).astype(float)


class OneHot(Recipe):
    """One-hot coordinates of labels: the exact features of the Kronecker kernel.

    Example:
        >>> import kernelbayes as kb
        >>> features = kb.OneHot().fit(kb.Delta(), ["b", "a", "b"])
        >>> features.transform(["a", "c"])
        array([[1., 0.],
               [0., 0.]])
    """

    def _kernel(self) -> Kernel:
        return Delta()

    def _fit(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> tuple[Features, Gram]:
        if not isinstance(kernel, Delta):
            raise ValueError(f"one-hot features represent the kernel kb.Delta(), not {type(kernel).__name__}")
        if X.ndim == 2 and X.shape[1] != 1:
            raise ValueError(f"one-hot features take one column of labels, but X has {X.shape[1]}")
        try:
            classes = np.unique(X)
        except TypeError:
            raise ValueError("X mixes labels of different types, which cannot be put in order") from None
        features = OneHotFeatures(kernel, 0.0, classes)
        return features, LowRank(features._coordinates(X))


class NeuralFeatures(Features):
    """The outputs of a network as coordinates."""

    network: Callable[[Any], Any]
    outputs: int = eqx.field(static=True)

    @property
    def rank(self) -> int:
        """Number of outputs."""
        return self.outputs

    def _coordinates(self, X: AnyArray) -> AnyArray:
        return apply_map(self.network, X)


class Neural(Recipe):
    """The outputs of a network as coordinates; the kernel is their inner product.

    `network` is an Equinox module acting on one point, or a function from points (n, d) to features (n, p). Xu et al.
    (2022), section 3.3.

    Example:
        >>> import equinox as eqx, jax, numpy as np, kernelbayes as kb
        >>> network = eqx.nn.MLP(3, 8, width_size=16, depth=2, key=jax.random.key(0))
        >>> recipe = kb.Neural(network)
        >>> X = np.zeros((5, 3))
        >>> recipe.fit(recipe.kernel, X).rank
        8
    """

    network: Callable[[Any], Any]

    @property
    def kernel(self) -> Kernel:
        """The linear kernel of the network's outputs."""
        return MappedKernel(self.network, Linear())

    def _kernel(self) -> Kernel:
        return self.kernel

    def _fit(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> tuple[Features, Gram]:
        if not bool(eqx.tree_equal(kernel, self.kernel)):
            raise ValueError("a network's outputs represent its own kernel, Neural(network).kernel, and no other")
        F = np.asarray(apply_map(self.network, X), dtype=np.float64)
        if not np.isfinite(F).all():
            raise ValueError("the network returned NaN or infinite features")
        return NeuralFeatures(kernel, 0.0, self.network, F.shape[1]), LowRank(F)

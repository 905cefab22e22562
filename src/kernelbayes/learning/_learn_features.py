"""Learning features of x for predicting z: what a user calls, and the choices behind its defaults."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np

from .. import _check
from .._backend import map_network
from .._typing import Array, ArrayLike, RandomState
from .._warning import warn_user
from ..features import IncompleteCholesky, Neural, RandomFourier
from ..kernels import Gaussian, Kernel, check_kernel
from ..kernels._bandwidth import lengthscale_of
from ._features import Sample, Training
from ._networks import Standardised
from ._preparing import location_and_spread, network_for, outputs_of, passes, share_to_hold, step_sizes
from ._training import MOST_FITTED, MOST_HELD, Settings, double, single

_TARGETS = 100
_TARGET_POINTS = 1024  # landmarks of a target kernel are sought among as many
_BATCH = 256
_ROWS_PER_OUTPUT = 4  # in a batch, at least: on fewer rows any features fit
_STEPS, _PATIENT_STEPS = 2000, 400


class LearnedFeatures(Neural):
    """What `learn_features` returns: a `kb.Neural` with the record of its training.

    Attributes:
        network: the trained network. It takes points as they were measured, and the mean square norm of its outputs
            over the sample is one.
        history: "train" and "validation", the loss of each epoch. Both are shares of the mean square norm of the target
            features, so 1 is a prediction of zero; the first includes the penalty, and is a mean over batches.
        baseline: the validation loss of predicting the mean: above it, nothing has been learned. None without validation.
        best_epoch: the epoch whose network was kept, counted from 1.
    """

    history: dict[str, Array]
    baseline: float | None = eqx.field(static=True)
    best_epoch: int = eqx.field(static=True)


def learn_features(
    X: ArrayLike,
    Z: ArrayLike,
    network: Any = None,
    *,
    features: int | None = None,
    weights: ArrayLike | None = None,
    reg: float = 1e-3,
    target_kernel: Kernel | None = None,
    batch_size: int | None = None,
    epochs: int | None = None,
    learning_rate: float = 1e-2,
    weight_decay: float = 3.0,
    patience: int | None = None,
    validation: float = 0.2,
    progress: bool | None = None,
    random_state: RandomState = None,
) -> LearnedFeatures:
    """Train a network whose outputs serve as features of x for predicting z. For images and other long vectors.

    Minimises the loss of Xu et al. (2022), section 3.3: the error of the best linear prediction of features of z from
    the outputs of the network. Give the result as `features` to an estimator.

    Args:
        X: points (n, d), or images (n, height, width) or (n, height, width, channels), as measured: they are standardised
            inside the network that is returned, vectors by column and images as a whole.
        Z: what is to be predicted, (n,) or (n, p), or what `target_kernel` takes.
        network: an Equinox module from one point to a vector. By default `kb.MLP` for vectors, `kb.ConvNet` for images.
            Yours is not changed: a trained copy is returned.
        features: outputs of the default network; 32.
        weights: of the pairs, not negative, such as importance weights. Only their proportions matter. By default even.
        reg: regulariser per sample. As everywhere, `F'F` is shifted by `n * reg`; it is relative to the mean square norm of
            the features, which the result scales to one, so that it has the same meaning in the estimator.
        target_kernel: kernel of z, of which 100 leading features are predicted. By default 100 random Fourier features of a
            Gaussian kernel with the median distance of each column.
        batch_size: pairs in a step. By default 256, or four for each feature if that is more, or all of few.
        epochs: passes over the data at most; by default as many as make 2,000 steps, and at least 40.
        learning_rate: step size of AdamW. It is lowered if the loss is not finite.
        weight_decay: each step takes `learning_rate * weight_decay` off every weight, as a share of it. The default is
            strong, for few noisy pairs; biases are left alone.
        patience: passes without a lower validation loss before stopping; by default as many as make 400 steps, and at
            least 10.
        validation: share of the pairs, drawn at random and at most 2,000, on which the operator fitted to the others is
            scored. The network with the lowest score is returned. With 0 all pairs are trained on, and the last network is
            returned.
        progress: show a bar; None: on a terminal when it takes more than a moment.
        random_state: seed of the split, the target features, the default network and the batches. Runs with the same seed
            are scored on the same pairs and targets, so that networks can be compared by their validation loss.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> z = rng.uniform(-1, 1, 300)
        >>> X = np.stack([np.cos(3 * z), np.sin(3 * z)], axis=1) + 0.1 * rng.normal(size=(300, 2))
        >>> features = kb.learn_features(X, z, epochs=30, random_state=0)
        >>> model = kb.ConditionalEmbedding(features=features).fit(X, z)
        >>> bool(model.score(X, z) > 0.9)
        True
        >>> bool(features.history["validation"].min() < 0.1 * features.baseline)
        True
    """
    rng = _check.generator(random_state)
    steps = step_sizes(learning_rate, weight_decay)
    settings = Settings(np.float32(_check.positive(reg, "reg")), *steps)
    X, Z, weights = _weighted_pairs(X, Z, target_kernel, weights)
    held, rows = np.split(rng.permutation(len(X)), [_held_size(len(X), validation)])
    V = _target_features(Z, target_kernel, rng)
    network = _chosen_network(X, network, features, rng)
    batch_size = _batch_size(batch_size, len(rows), outputs_of(network, X.shape[1:]))
    per_epoch = len(rows) // batch_size
    most = passes(epochs, patience, per_epoch, steps=_STEPS, patient_steps=_PATIENT_STEPS)
    centre, spread = location_and_spread(X, network)
    sample = Sample((X - centre) / spread, V, weights)
    with jax.enable_x64(False):  # faster than double precision, and it moves the loss by less than the seed does
        held = single(sample.part(held)) if len(held) else None
        training = Training(single(network), single(sample.part(rows)), held, settings)
        training.run(*most, batch_size, rng, progress)
    return _result(training, X, weights, centre, spread)


def _weighted_pairs(X: Any, Z: Any, target_kernel: Kernel | None, weights: Any) -> tuple[Array, Array, Array]:
    """Checked pairs of positive weight, and their weights."""
    X = _check.arrays(X, "X")
    Z = _check.vectors(Z, "Z") if target_kernel is None else check_kernel(target_kernel, "target_kernel")._check(Z, "Z")
    _check.same_length(X, Z, "X", "Z")
    weights = _check.weights(weights, "weights", len(X))
    if weights.min() < 0:
        raise ValueError("weights must not be negative; clip importance weights at zero first")
    kept = weights > 0
    return X[kept], Z[kept], weights[kept] / weights.sum()


def _target_features(Z: Array, kernel: Kernel | None, rng: np.random.Generator) -> Array:
    """Features of checked z to predict, of mean square norm one."""
    if kernel is None:
        kernel = Gaussian(lengthscale_of(Z, "Z", per_column=True))
        V = RandomFourier(_TARGETS)._fit(kernel, Z, rng)[0]._coordinates(Z)
    else:
        few = Z[rng.permutation(len(Z))[:_TARGET_POINTS]]
        V = IncompleteCholesky(_TARGETS, tol=1e-6)._fit(kernel, few, rng)[0]._coordinates(Z)
    return V / np.sqrt((V * V).sum(1).mean())


def _chosen_network(X: Array, network: Any, features: Any, rng: np.random.Generator) -> Any:
    if features is None:
        return network_for(X, network, rng)
    if network is not None:
        raise ValueError("features is for the default network; the network given has its own number of outputs")
    return network_for(X, None, rng, _check.count(features, "features"))


def _held_size(n: int, validation: Any) -> int:
    share = share_to_hold(validation)
    held = min(max(round(share * n), 1 if share else 0), MOST_HELD)
    if n - held < 2:
        raise ValueError(f"there are {n} pairs of positive weight: too few to learn features from")
    return held


def _batch_size(size: Any, n: int, outputs: int) -> int:
    if size is None:
        return min(n, max(_BATCH, _ROWS_PER_OUTPUT * outputs))
    if _check.count(size, "batch_size", at_least=2) > n:
        raise ValueError(f"batch_size is {size}, but there are {n} pairs to train on")
    return int(size)


def _result(training: Training, X: Array, weights: Array, centre: Array, spread: Array) -> LearnedFeatures:
    """The best network, made to take points as they were measured and scaled to a mean square norm of one."""
    network = Standardised(double(training.best.network), centre, spread, np.ones(()))
    few = slice(MOST_FITTED)
    size = weights[few] @ (map_network(network, X[few]) ** 2).sum(1) / weights[few].sum()
    if not 0 < size < np.inf:
        raise ValueError("the outputs of the trained network are all zero, or not finite")
    train, held = np.array(training.curve).T
    baseline = training.baseline()
    if baseline is not None and training.best.value >= baseline:
        warn_user(
            f"the features learned nothing: held-out pairs are predicted with loss {training.best.value:.3f}, and by the "
            f"mean with {baseline:.3f}. More pairs or epochs, a larger weight_decay or another network may help.",
            RuntimeWarning,
        )
    history = {"train": train, "validation": held if baseline is not None else np.zeros(0)}
    return LearnedFeatures(
        eqx.tree_at(lambda n: n.scale, network, np.asarray(np.sqrt(size))), history, baseline, training.best.epoch
    )

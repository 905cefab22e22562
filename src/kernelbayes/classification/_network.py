"""The conditional embedding network as a scikit-learn classifier: a network whose last layer is solved for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .. import _check
from .._backend import map_network
from .._estimator import check_kinds, check_points, check_sample
from .._linalg import Dense, Gram, WeightedRidge
from .._typing import AnyArray, Array, ArrayLike, RandomState
from ..features import Features, default_recipe
from ..features._explicit import NeuralFeatures
from ..kernels import Kernel, Linear, MappedKernel
from ..learning import Calibrator, fit_calibrator
from ..learning._classification import Labelled
from ..learning._embedding_network import Model, default_multiplier, learned_kernel, objective, started
from ..learning._networks import Standardised
from ..learning._preparing import location_and_spread, network_for, outputs_of, passes, share_to_hold, step_sizes
from ..learning._training import MOST_FITTED, MOST_HELD, Settings, Training, double, single
from ..rules import multiclass
from ._probabilities import ProbabilisticClassifier
from ._sums import Sums

LEARN = ("bound", "validation")
CALIBRATION = ("validation", "loo", None)
_BATCH = 256
_ROWS_PER_OUTPUT = 4  # in a batch, at least: on fewer rows any features fit
_STEPS, _PATIENT_STEPS = 1000, 100
_BLOCK = 4096  # points whose hidden layers are in memory together
_CALIBRATED_ON = 5000
_CURVES = ("objective", "validation_loss", "fit", "complexity", "validation_accuracy")


class OutputFeatures(Features):
    """Coordinates of the outputs of a network."""

    network: Any
    inner: Features

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return self.inner.rank

    def _coordinates(self, X: AnyArray) -> AnyArray:
        return self.inner._coordinates(self.kernel._features(X))  # type: ignore[attr-defined]


class ConditionalEmbeddingNetwork(ProbabilisticClassifier):
    r"""A neural network for classification whose last layer is a conditional embedding, with calibrated probabilities.

    .. math:: \hat p(x) = W^\top \varphi(x), \qquad W = (F^\top F + n \lambda I)^{-1} F^\top Y

    with :math:`\varphi` the network, F its outputs at the sample and Y the one-hot labels. The last layer is not trained
    but solved for on every batch, and the network is trained so that the solution fits and is simple. For images, and
    for vectors of which only something hidden matters.

    Args:
        network: an Equinox module from one point to a vector, such as `kb.MLP(64, 32)`. By default `kb.MLP` for vectors and
            `kb.ConvNet` for images. Yours is not changed: a trained copy is `network_`.
        kernel: on the outputs of the network. None or `kb.Linear()`: their inner product, the explicit network of
            algorithm 2. Any other, such as `kb.Gaussian(1.0)`: the implicit one of algorithm 1; its parameters are where
            learning starts, in units of the root mean square norm of the outputs at the start.
        learn: what is minimised on each batch. "bound": the loss (3.13) on the batch plus its complexity (3.18);
            "validation": the loss on one half of the batch of the embedding of the other half, plus its complexity (3.19).
        reg: regulariser per sample at the start, relative to the mean of k(x, x). It is learned.
        multiplier: weight of the complexity. By default the entropy of the labels over sqrt(n), n being the points of a
            batch that are fitted to; the bound as printed in the thesis has 4 e. Too large a weight makes a model that
            ignores x.
        batch_size: points in a step. By default 256, or four for each output if that is more, or all of few.
        epochs: passes over the data at most; by default as many as make 1,000 steps, and at least 40.
        learning_rate: step size of AdamW. It is lowered if the loss is not finite.
        weight_decay: each step takes `learning_rate * weight_decay` off every weight, as a share of it. Biases are left
            alone.
        validation: share of the points, drawn from each class and at most 2,000, on which the head fitted to the others is
            scored after each pass. The network with the lowest score is kept. With 0 the last network is.
        patience: passes without a lower score before stopping; by default as many as make 100 steps, and at least 10.
        calibration: "validation": on the points held out, with the head fitted to the others. "loo": on predictions that
            leave out one point each from the head, not from the network, which has seen their labels: too sure where
            labels are noisy. This is also what "validation" means where nothing is held out. None: clip-normalised
            probabilities (3.6).
        class_weight: "balanced", or a dictionary from label to weight, as in scikit-learn.
        progress: show a bar; None: on a terminal when it takes more than a moment.
        random_state: seed of the default network, the split and the batches.

    Attributes:
        classes_: labels in order.
        network_: the trained network. It takes points as they were measured. With the linear kernel the mean square norm of
            its outputs is one.
        kernel_, reg_: kernel on the outputs and regulariser, as learned.
        features_: coordinates of points, with `decision_probabilities(X) = features_.transform(X) @ coef_`.
        coef_: the head, solved for on all points in double precision.
        calibration_: the map from raw to calibrated probabilities.
        learning_curve_: arrays with one entry for each epoch. "objective", "fit" and "complexity" are means over batches;
            "validation_loss", the mean squared error of raw probabilities, and "validation_accuracy" are of points held out.
        best_epoch_: the epoch whose network was kept, counted from 1.

    Hsu (2019), section 3.9. Training is in single precision, the final solution in double. It stops by the squared
    error, since the loss (3.13) depends on its threshold wherever a raw probability is not positive.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 2))
        >>> y = np.where(X.prod(1) > 0, "same sign", "different")
        >>> model = kb.ConditionalEmbeddingNetwork(epochs=100, random_state=0).fit(X[:300], y[:300])
        >>> bool(model.score(X[300:], y[300:]) > 0.9)
        True
        >>> bool(model.learning_curve_["validation_accuracy"][model.best_epoch_ - 1] > 0.9)
        True
    """

    def __init__(
        self,
        network: Any = None,
        kernel: Kernel | None = None,
        reg: float = 1e-2,
        *,
        learn: str = "bound",
        multiplier: float | None = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        learning_rate: float = 3e-3,
        weight_decay: float = 0.3,
        validation: float = 0.2,
        patience: int | None = None,
        calibration: str | None = "validation",
        class_weight: dict[Any, float] | str | None = None,
        progress: bool | None = None,
        random_state: RandomState = None,
    ):
        self.network = network
        self.kernel = kernel
        self.reg = reg
        self.learn = learn
        self.multiplier = multiplier
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation = validation
        self.patience = patience
        self.calibration = calibration
        self.class_weight = class_weight
        self.progress = progress
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> ConditionalEmbeddingNetwork:
        """Learn from points X (n, d), or images (n, height, width) or (n, height, width, channels), and labels y (n,).

        A weight counts a point as so many; points of weight zero are left out.
        """
        share = self._check_settings()
        rng = _check.generator(self.random_state)
        points = check_sample(self, X, MappedKernel(eqx.nn.Identity(), Linear()))
        sample = self._labelled(points, y, sample_weight)
        train, held = _split(sample.Y, share, rng)
        model = self._train(sample, train, held, rng)
        gram = self._represent(model, sample, rng)
        self.n_seen_ = len(sample.X)
        if isinstance(gram, Dense):
            self._solve_dense(gram, sample, held)
        else:
            self._solve(sample, held, rng)
        return self

    def _check_settings(self) -> float:
        """Complain about settings that make no sense; the share to hold out."""
        check_kinds(self, kernel=Kernel)
        if self.kernel is not None and (self.kernel._evaluates_on_host or not self.kernel._takes_vectors):
            raise ValueError(f"kernel must be one of vectors that can be differentiated, got {self.kernel!r}")
        _check.option(self.learn, "learn", LEARN)
        _check.option(self.calibration, "calibration", CALIBRATION)
        _check.positive(self.reg, "reg")
        self._check_balance()
        return share_to_hold(self.validation)

    @property
    def _on_outputs(self) -> Kernel | None:
        """The kernel on the outputs; None if it is their inner product."""
        return None if isinstance(self.kernel, Linear) and self.kernel.offset == 0 else self.kernel

    # ----------------------------------------------------------------------------------------------- training

    def _train(self, sample: Labelled, train: Array, held: Array, rng: np.random.Generator) -> Model:
        """The trained model; sets network, kernel, curve and best epoch."""
        network = network_for(sample.X, self.network, rng)
        outputs = outputs_of(network, sample.X.shape[1:])
        if self.kernel is not None:
            self.kernel._check_width(outputs, "the network's output")
        size = self._batch_size(len(train), outputs)
        most = passes(self.epochs, self.patience, len(train) // size, steps=_STEPS, patient_steps=_PATIENT_STEPS)
        steps = step_sizes(self.learning_rate, self.weight_decay)
        centre, spread = location_and_spread(sample.X, network)
        points = _standardised(sample, centre, spread)
        fitted, watched = points.part(train), points.part(held) if len(held) else None
        probe = Standardised(double(network), centre, spread, np.ones(()))
        scale = _size(map_network(probe, sample.X[:MOST_FITTED]))
        multiplier = self._weight_of_complexity(fitted, size)
        model, given = started(network, self._on_outputs, self.reg, multiplier, scale)
        goal = objective(self.learn, self._on_outputs)
        with jax.enable_x64(False):  # faster than double precision, and it moves the loss by less than the seed does
            training = Training(goal, single(model), single(fitted), single(watched), Settings(single(given), *steps))
            training.run(*most, size, rng, self.progress)
        model = double(training.best.network)
        self.network_ = Standardised(model.network, centre, spread, np.asarray(scale))
        self.kernel_ = Linear() if given.kernel is None else learned_kernel(model, given)
        self._record(training)
        return model

    def _record(self, training: Training) -> None:
        curves = dict(zip(_CURVES, np.array(training.curve, dtype=np.float64).T, strict=True))
        seen = {name: np.zeros(0) for name in curves if training.held is None and name.startswith("validation")}
        self.learning_curve_: dict[str, Array] = {**curves, **seen}
        self.best_epoch_ = training.best.epoch

    def _batch_size(self, n: int, outputs: int) -> int:
        if self.batch_size is not None:
            return min(self.batch_size, n)
        return min(n, max(_BATCH, _ROWS_PER_OUTPUT * outputs))

    def _weight_of_complexity(self, train: Labelled, batch: int) -> float:
        if self.multiplier is not None:
            return float(self.multiplier)
        return default_multiplier(train, batch // 2 if self.learn == "validation" else batch)

    # ------------------------------------------------------------------------------------------------ the head

    def _represent(self, model: Model, sample: Labelled, rng: np.random.Generator) -> Gram | None:
        """Features and regulariser of the head, and the Gram matrix of the sample if the features are of its points."""
        few, reg = slice(MOST_FITTED), float(model.reg)
        if self._on_outputs is None:
            outputs = map_network(self.network_, sample.X[few])
            scale = np.asarray(self.network_.scale * _size(outputs))
            self.network_, self.reg_ = eqx.tree_at(lambda n: n.scale, self.network_, scale), reg
            mapped = MappedKernel(self.network_, self.kernel_)
            self.features_ = NeuralFeatures(mapped, 0.0, self.network_, outputs.shape[1])
            return None
        outputs = np.concatenate([map_network(self.network_, sample.X[rows]) for rows in _blocks(len(sample.X))])
        inner, gram = default_recipe(len(outputs))._fit(self.kernel_, outputs, rng)
        self.reg_ = reg * float(self.kernel_._diag(outputs[few]).mean())
        mapped = MappedKernel(self.network_, self.kernel_)
        self.features_ = OutputFeatures(mapped, inner.error, self.network_, inner)
        return gram

    def _solve(self, sample: Labelled, held: Array, rng: np.random.Generator) -> None:
        """The head by sums over blocks of points. Some are added last: those that the probabilities are calibrated on."""
        by_held = self.calibration == "validation" and len(held) > 0
        last = np.zeros(len(sample.X), dtype=bool)
        last[held if by_held else rng.permutation(len(last))[:_CALIBRATED_ON]] = True
        sums, few = Sums.empty(self.features_.rank, len(self.classes_)), sample.part(last)
        kept = []
        for rows in _blocks(len(last)):
            F, block = self.features_._coordinates(sample.X[rows]), sample.part(rows)
            kept.append(F[last[rows]])
            sums = sums.plus(F[~last[rows]], block.Y[~last[rows]], block.weights[~last[rows]])
        F = np.concatenate(kept)
        if by_held:
            self.calibration_ = self._calibrated(F @ sums.solved(self.reg_)[1], few)
        sums = sums.plus(F, few.Y, few.weights)
        factor, self.coef_ = sums.solved(self.reg_)
        if not by_held:
            left_out = multiclass.left_out(factor, F, self.coef_, few.Y, few.weights)
            self.calibration_ = self._calibrated(left_out, few)

    def _solve_dense(self, gram: Dense, sample: Labelled, held: Array) -> None:
        """The same where coordinates are the kernel's values at the sample."""
        by_held = self.calibration == "validation" and len(held) > 0
        if by_held:
            weights = sample.weights.copy()
            weights[held] = 0.0
            without = WeightedRidge(gram, weights, weights.sum() * self.reg_).coefficients(sample.Y)
            self.calibration_ = self._calibrated(gram.matrix[held] @ without, sample.part(held))
        ridge = WeightedRidge(gram, sample.weights, sample.weights.sum() * self.reg_)
        self.coef_ = ridge.coefficients(sample.Y)
        if not by_held:
            self.calibration_ = self._calibrated(ridge.leave_one_out(sample.Y), sample)

    def _calibrated(self, P: Array, sample: Labelled) -> Calibrator | None:
        return None if self.calibration is None else fit_calibrator(P, sample.Y, sample.weights)

    # ---------------------------------------------------------------------------------------------- using it

    def _raw(self, X: Any) -> Array:
        X = check_points(self, X, self.features_.kernel)
        return np.concatenate([self.features_._coordinates(X[rows]) @ self.coef_ for rows in _blocks(len(X))])

    def plot_learning(self) -> Any:
        """Draw the learning curve: fit and complexity on batches, loss and errors on points held out, the epoch kept.

        Returns a Matplotlib figure.
        """
        from sklearn.utils.validation import check_is_fitted

        from .. import plotting

        check_is_fitted(self)
        return plotting.learning(self.learning_curve_, self.best_epoch_)


def _split(Y: Array, share: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows to train on and rows to hold out, in random order: a share of each class, and never the only point of one."""
    order, positions = rng.permutation(len(Y)), Y.argmax(1)
    by_class = order[np.argsort(positions[order], kind="stable")]
    first = np.diff(positions[by_class], prepend=-1) > 0
    rest = by_class[~first]
    held = min(round(share * len(Y)), MOST_HELD, len(rest))
    out = np.zeros(len(Y), dtype=bool)
    out[rest[((np.arange(held) + 0.5) * len(rest) / max(held, 1)).astype(int)]] = True
    return order[~out[order]], order[out[order]]


def _standardised(sample: Labelled, centre: Array, spread: Array) -> Labelled:
    """Points as the network is trained on them, in single precision; weights of mean one."""
    X = sample.X - centre
    X /= spread
    return Labelled(X.astype(np.float32), sample.Y, sample.weights / sample.weights.mean())


def _size(outputs: Array) -> float:
    """Root mean square norm of outputs."""
    size = float(np.sqrt((outputs * outputs).sum(1).mean()))
    if not 0 < size < np.inf:
        raise ValueError("the outputs of the network are all zero, or not finite")
    return size


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, _BLOCK):
        yield slice(start, start + _BLOCK)

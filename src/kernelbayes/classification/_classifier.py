"""The multiclass conditional embedding as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._estimator import check_kinds, check_points, check_sample
from .._linalg import Dense, WeightedRidge
from .._progress import progress_bar
from .._summary import Summary
from .._typing import Array, ArrayLike, RandomState
from .._warning import warn_user
from ..features import DenseFeatures, Recipe, Subspace, default_recipe, kernel_for
from ..kernels import Gaussian, Kernel
from ..learning import Calibrator, Optimum, explain_edge, fit_calibrator
from ..learning._classification import Labelled, balance
from ..learning._classification_search import (
    MOST_POINTS,
    Search,
    cross_validated,
    learn_hyperparameters,
    least_bound,
    nothing_to_learn,
)
from ..learning._optimise import at_step
from ..learning._starts import default_starts, grid_kernels, median_kernel, spreads, starts_from
from ..rules import multiclass
from ._probabilities import ProbabilisticClassifier, checked_labels, distinct
from ._sums import Sums

LEARN = ("bound", "validation", "erm", "cv", "median", None)
_DEFAULT_REG = 1e-3
_BLOCK_ELEMENTS = 2**22
_CALIBRATED_ON, _LEAST_CHUNK = 5000, 20


class ConditionalEmbeddingClassifier(ProbabilisticClassifier):
    r"""A kernel classifier that tunes itself and gives calibrated probabilities.

    .. math:: \hat p(x) = Y^\top (K + n \lambda I)^{-1} k(x)

    with Y the one-hot labels: the conditional embedding of the label, which under the Kronecker kernel is the vector of
    class probabilities. One model serves all classes. Lengthscales and regulariser balance fit against the complexity of
    the model; leave-one-out predictions, which come in closed form, calibrate the probabilities.

    Args:
        kernel: kernel of x. By default Gaussian. If given, its parameters are where learning starts, beside lengthscales
            that the points suggest; with one lengthscale it takes the columns in the units they have.
        features: representation of x, such as `kb.Subspace(1000)`, `kb.RandomFourier(1000)`, `kb.Neural(network)`. By
            default exact up to 3,000 points, then a subspace of 1,000.
        reg: regulariser per sample, if it is not to be chosen.
        learn: how hyperparameters are chosen. "bound": fit on the sample plus complexity, the bound (3.18); "validation":
            fit on a random half of it (3.19); "erm": fit on the sample alone, which overfits; "cv": five folds over a grid;
            "median": the lengthscale is the median distance between points in units of their spread, the regulariser from
            five folds; None: as given, or the median and a small regulariser.
        ard: one lengthscale for each column, for the default kernel. By default for up to 100 columns. The lengthscales are
            drawn together, the more the fewer points there are.
        multiplier: weight of the complexity in "bound" and "validation"; the bound as printed in the thesis has 4 e. By
            default about the entropy of the labels over sqrt(n), and in "bound" then halved, or doubled, for as long as
            leave-one-out predictions improve.
        batch_size: learn hyperparameters by steps on random batches of so many points (algorithm 1). By default on all
            points, or on 1,024 of more, at once.
        calibration: "loo", or None for clip-normalised probabilities (3.6).
        class_weight: "balanced", or a dictionary from label to weight, as in scikit-learn.
        progress: show a bar; None: on a terminal when it takes more than a moment.
        random_state: seed for whatever is drawn at random.

    Attributes:
        classes_: labels in order.
        kernel_, reg_, features_: what was chosen.
        calibration_: the map from raw to calibrated probabilities.
        tuning_: the record of the optimiser, or None.

    Hsu (2019), chapter 3.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> import kernelbayes as kb
        >>> X, y = load_iris(return_X_y=True)
        >>> model = kb.ConditionalEmbeddingClassifier(random_state=0).fit(X, y)
        >>> model.predict(X[[0, 60, 140]])
        array([0, 1, 2])
        >>> bool(model.predict_proba(X).min() > 0)
        True
        >>> sorted(list(model.relevance())[:2])  # petals tell the species apart
        ['x2', 'x3']
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        features: Recipe | None = None,
        reg: float | None = None,
        *,
        learn: str | None = "bound",
        ard: bool | None = None,
        multiplier: float | None = None,
        batch_size: int | None = None,
        calibration: str | None = "loo",
        class_weight: dict[Any, float] | str | None = None,
        progress: bool | None = None,
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.features = features
        self.reg = reg
        self.learn = learn
        self.ard = ard
        self.multiplier = multiplier
        self.batch_size = batch_size
        self.calibration = calibration
        self.class_weight = class_weight
        self.progress = progress
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> ConditionalEmbeddingClassifier:
        """Learn from points X (n, d), or what the kernel takes, and labels y (n,) of any kind.

        A weight counts a point as so many; points of weight zero are left out.
        """
        self._check_settings()
        vars(self).pop("sums_", None)
        sample = self._labelled(self._checked(X), y, sample_weight)
        rng = _check.generator(self.random_state)
        self._choose(sample, rng)
        recipe = self.features or default_recipe(len(sample.X))
        self.features_, gram = recipe._fit(self.kernel_, sample.X, rng)
        self.n_seen_ = len(sample.X)
        if isinstance(gram, Dense):
            ridge = WeightedRidge(gram, sample.weights, sample.weights.sum() * self.reg_)
            self.coef_ = ridge.coefficients(sample.Y)
            self.calibration_ = self._calibrated(ridge.leave_one_out, sample)
            return self
        sums = self._added(Sums.empty(self.features_.rank, len(self.classes_)), sample)
        self._solve(sums, sample.part(_some(len(sample.X), _CALIBRATED_ON, rng)))
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> ConditionalEmbeddingClassifier:
        """Learn from a chunk of data, keeping sums and not the chunk: memory does not grow with the number of chunks.

        The first call chooses hyperparameters and representation from its chunk, which should therefore be a fair sample
        of at least some hundred points, and takes the labels of all chunks as `classes`. After `fit` it starts anew,
        with the labels that were fitted.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> rng = np.random.default_rng(0)
            >>> model = kb.ConditionalEmbeddingClassifier(features=kb.Subspace(50), random_state=0)
            >>> for _ in range(5):
            ...     X = rng.normal(size=(500, 2))
            ...     model = model.partial_fit(X, (X**2).sum(1) > 1, classes=[False, True])
            >>> bool(model.score(X, (X**2).sum(1) > 1) > 0.95)
            True
        """
        begin = not hasattr(self, "sums_")
        if begin:
            self._check_settings()
            if self.class_weight == "balanced":
                raise ValueError('class_weight="balanced" needs all labels at once; in partial_fit give the weights')
            classes = getattr(self, "classes_", None) if classes is None else classes  # of an earlier fit
            if classes is None:
                raise ValueError("the first call of partial_fit needs classes: the labels of all chunks")
        elif classes is not None and not np.array_equal(distinct(checked_labels(classes))[0], self.classes_):
            raise ValueError("classes differ from those of the first call of partial_fit")
        X = self._checked(X, reset=begin)
        sample = self._labelled(X, y, sample_weight, classes if begin else self.classes_)
        if begin:
            if len(sample.X) < _LEAST_CHUNK:
                message = f"the first chunk has {len(sample.X)} rows, and kernel and features are chosen from it alone"
                warn_user(message, RuntimeWarning)
            rng = self._chunk_rng = _check.generator(self.random_state)
            self._choose(sample, rng)
            recipe = self.features or Subspace(min(1000, len(sample.X)))
            self.features_ = recipe._fit(self.kernel_, sample.X, rng)[0]
            if isinstance(self.features_, DenseFeatures):
                raise ValueError("partial_fit needs features of a fixed number, such as kb.Subspace(1000)")
            self._kept, self.n_seen_ = None, 0
            self.sums_ = Sums.empty(self.features_.rank, len(self.classes_))
        self.sums_ = self._added(self.sums_, sample)
        self._solve(self.sums_, self._keep_some(sample))
        return self

    def _check_settings(self) -> None:
        check_kinds(self, kernel=Kernel, features=Recipe)
        _check.option(self.learn, "learn", LEARN)
        _check.option(self.calibration, "calibration", ("loo", None))
        if self.reg is not None:
            _check.positive(self.reg, "reg")
        self._check_balance()
        if self.ard and self.kernel is not None:
            raise ValueError("ard=True learns the lengthscales of the default kernel; leave kernel=None")

    def _checked(self, X: Any, *, reset: bool = True) -> Array:
        """Points to fit to, or of a later chunk."""
        return (
            check_sample(self, X, kernel_for(self.features, self.kernel))
            if reset
            else check_points(self, X, self.kernel_)
        )

    def _blocks(self, n: int, doing: str = "fitting") -> Iterator[slice]:
        """Rows whose features fit in memory, with a progress bar if wanted."""
        size = max(1, _BLOCK_ELEMENTS // max(self.features_.rank, 1))
        starts = range(0, n, size)
        bar = None if len(starts) == 1 else progress_bar(len(starts), doing, self.progress, unit=" blocks")
        for start in starts:
            yield slice(start, start + size)
            if bar is not None:
                bar.update()
        if bar is not None:
            bar.close()

    # ------------------------------------------------------------------------------------- hyperparameters

    def _choose(self, sample: Labelled, rng: np.random.Generator) -> None:
        """Kernel and regulariser, from at most 1,024 points unless batches are drawn from all."""
        self.tuning_, self.scale_ = None, 1.0
        in_batches = self.batch_size is not None and self.learn in ("bound", "validation", "erm")
        self.sample_ = sample.part(_some(len(sample.X), MOST_POINTS, rng))
        few = sample if in_batches else self.sample_
        given = kernel_for(self.features, self.kernel)
        if self.learn in (None, "median"):
            self.kernel_ = given or median_kernel(self.sample_)
        if self.learn is None:
            size = float(np.mean(self.kernel_._diag(self.sample_.X)))
            self.reg_ = _DEFAULT_REG * size if self.reg is None else float(self.reg)
        elif self.learn in ("cv", "median"):
            self._cross_validate(few, rng)
        else:
            self._descend(few, given, rng)
        if self.reg is None and self.learn is not None:  # chosen for fewer points than there are
            learned_on = min(len(few.X), self.batch_size or len(few.X)) / (2 if self.learn == "validation" else 1)
            self.reg_ *= float(np.sqrt(learned_on / len(sample.X)))

    def _descend(self, sample: Labelled, given: Kernel | None, rng: np.random.Generator) -> None:
        search = Search(str(self.learn), self.multiplier, self.batch_size, progress=self.progress)
        fixed = () if self.reg is None else ("reg",)
        if given is not None and (given._evaluates_on_host or not given._takes_vectors):
            self.kernel_ = given
            self.reg_ = float(self.reg) if self.reg is not None else least_bound(given, sample, search, rng)
            return
        starts = default_starts(sample, self.reg, self.ard) if given is None else starts_from(given, sample, self.reg)
        if nothing_to_learn(starts[0], fixed):
            self.kernel_, self.reg_ = starts[0].params.kernel, float(starts[0].params.reg)
            return
        found, self.scale_ = learn_hyperparameters(starts, sample, search, fixed=fixed, rng=rng)
        self.reg_ = float(found.params.reg)
        self.kernel_ = (
            found.params.kernel if given is not None else Gaussian(found.params.kernel.lengthscale * self.scale_)
        )
        self.tuning_: Optimum | None = found
        _tell_edges(found)

    def _cross_validate(self, sample: Labelled, rng: np.random.Generator) -> None:
        given = self.kernel_ if self.learn == "median" else kernel_for(self.features, self.kernel)
        kernels = grid_kernels(sample) if given is None else [given]
        self.kernel_, reg = cross_validated(kernels, sample, self.reg, rng)
        self.reg_ = float(reg)

    # -------------------------------------------------------------------------------------------- solving

    def _added(self, sums: Sums, sample: Labelled) -> Sums:
        """Sums with further points, block by block."""
        for rows in self._blocks(len(sample.X)):
            sums = sums.plus(self.features_._coordinates(sample.X[rows]), sample.Y[rows], sample.weights[rows])
        return sums

    def _solve(self, sums: Sums, few: Labelled) -> None:
        factor, self.coef_ = sums.solved(self.reg_)

        def left_out(Y: Array) -> Array:
            parts = [
                multiclass.left_out(
                    factor, self.features_._coordinates(few.X[rows]), self.coef_, Y[rows], few.weights[rows]
                )
                for rows in self._blocks(len(few.X))
            ]
            return np.concatenate(parts)

        self.calibration_ = self._calibrated(left_out, few)

    def _calibrated(self, left_out: Any, sample: Labelled) -> Calibrator | None:
        if self.calibration is None:
            return None
        return fit_calibrator(left_out(sample.Y), sample.Y, sample.weights)

    def _keep_some(self, chunk: Labelled) -> Labelled:
        """A fair sample of all chunks so far, for calibration: each new point takes a place with the chance it deserves."""
        rng = self._chunk_rng = self._chunk_rng or np.random.default_rng()  # None after loading
        order = rng.permutation(len(chunk.X))
        held = 0 if self._kept is None else len(self._kept.X)
        room = min(_CALIBRATED_ON - held, len(order))
        new = chunk.part(order[:room])
        kept = self._kept = new if self._kept is None else _joined(self._kept, new)
        rest = order[room:]
        places = rng.integers(self.n_seen_ + room + 1 + np.arange(len(rest)))
        for row, place in zip(rest, places, strict=True):
            if place < _CALIBRATED_ON:
                kept.X[place], kept.Y[place], kept.weights[place] = chunk.X[row], chunk.Y[row], chunk.weights[row]
        self.n_seen_ += len(chunk.X)
        return kept

    # ---------------------------------------------------------------------------------------------- using it

    def _raw(self, X: Any) -> Array:
        X = check_points(self, X, self.kernel_)
        blocks = self._blocks(len(X), "predicting")
        return np.concatenate([self.features_._coordinates(X[rows]) @ self.coef_ for rows in blocks])

    def relevance(self) -> Summary:
        """How much each column of x matters, most first: its spread over its lengthscale.

        A column whose lengthscale is much longer than it varies plays no part. Columns are named as in the data frame that
        was fitted, or x0, x1, ... Only for kernels with a lengthscale.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> X = np.random.default_rng(0).normal(size=(100, 3))
            >>> model = kb.ConditionalEmbeddingClassifier(random_state=0).fit(X, X[:, 1] > 0)
            >>> next(iter(model.relevance()))
            'x1'
        """
        check_is_fitted(self)
        lengthscale = getattr(self.kernel_, "lengthscale", None)
        if lengthscale is None or not hasattr(self, "n_features_in_"):
            raise ValueError(f"relevance is read off lengthscales, which {self.kernel_} has not")
        spread = spreads(self.sample_)
        lengthscales = np.broadcast_to(lengthscale, spread.shape)
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(len(spread))])
        rows = {
            str(names[j]): {
                "lengthscale": lengthscales[j],
                "spread": spread[j],
                "relevance": spread[j] / lengthscales[j],
            }
            for j in np.argsort(-spread / lengthscales, kind="stable")
        }
        return Summary(
            {name: {k: float(v) for k, v in row.items()} for name, row in rows.items()}, "relevance of inputs"
        )

    def balance(self) -> dict[str, Array]:
        """Fit and complexity along the way of the optimiser: arrays "fit", "complexity", "multiplier" and "reg".

        The fit is the mean loss (3.13) on the points that hyperparameters were learned from, at most 1,024, the complexity
        is r of (3.17) for them. Where the multiplier falls, a new descent begins at the end of the one before.
        """
        if self.tuning_ is None:
            raise ValueError(f"nothing was learned step by step with learn={self.learn!r}")
        scaled = self.sample_.scaled(self.scale_)
        sides = [balance(at_step(self.tuning_.params, step), scaled) for step in self.tuning_.path]
        return {
            "fit": np.array([side.fit for side in sides]),
            "complexity": np.array([side.complexity for side in sides]),
            "multiplier": np.array([step.get("multiplier", np.nan) for step in self.tuning_.path]),
            "reg": np.array([step.get("reg", self.tuning_.params.reg) for step in self.tuning_.path]).ravel(),
        }

    def plot_relevance(self, **options: Any) -> Any:
        """Draw `relevance` as bars, or over an image if `shape=(height, width)` is given. Returns a Matplotlib figure."""
        from .. import plotting

        return plotting.input_relevance(self, **options)

    def plot_balance(self) -> Any:
        """Draw fit and complexity along the way of the optimiser. Returns a Matplotlib figure."""
        from .. import plotting

        return plotting.balance(self.balance())


def _some(n: int, most: int, rng: np.random.Generator) -> Any:
    """Some rows in random order, or all as they are."""
    return slice(None) if n <= most else rng.permutation(n)[:most]


def _joined(a: Labelled, b: Labelled) -> Labelled:
    return Labelled(*(np.concatenate(pair) for pair in ((a.X, b.X), (a.Y, b.Y), (a.weights, b.weights))))


def _tell_edges(found: Optimum) -> None:
    """Say where the optimiser ended on a bound, unless that only says that a column plays no part."""
    for edge in found.on_bound:
        if edge.startswith("reg"):
            explain_edge(edge)

"""What a filter returns: the distribution of the state at each time step, and how far each can be trusted.

The steps share their points, which are the training states; each has a row of weights (Xu et al. 2022, Algorithm 2; Kanagawa
2016, Algorithm 4). Numbers are read off all rows at once by the functions in `embeddings._weighted`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np

from .. import _check
from .._summary import Summary, percent
from .._table import write_table
from .._typing import Array, ArrayLike, RandomState
from ..embeddings import MeanEmbedding, evaluate_function, tails
from ..embeddings._moments import covariances, deviations, means
from ..embeddings._weighted import blocks, distribution_function, probabilities, quantiles, vectors_of
from ..kernels import Kernel, check_kernel
from ._diagnostics import TrackDiagnostics

# Rows of weights may miss a sum of one by rounding, and by no more.
_ROUNDING = 1e-6


class TrackScore(NamedTuple):
    """How a track compares with the true states; numbers per column are arrays (d,).

    Attributes:
        rmse: root mean square error of the mean, per column.
        mse: mean over the steps of the squared error summed over the columns.
        coverage: share of the steps whose interval holds the truth, per column; `level` of them should.
        crps: continuous ranked probability score per column, in the unit of the column: the mean absolute error of a
            distribution, which rewards being both near and no wider than need be. Gneiting and Raftery (2007), section 4.2.
        level: mass of the intervals.
    """

    rmse: Array
    mse: float
    coverage: Array
    crps: Array
    level: float


class Track:
    """The distribution of the state at each of t time steps, as a filter found it.

    Made by `KernelBayesFilter.filter` and its like. `track[3]` is the embedding of one step, `track[10:20]` a shorter track.

    Args:
        points: training states (n, d), or whatever the kernel takes; the same at each step.
        weights: (t, n), each row summing to one; they may be negative.
        kernel: of the states.
        diagnostics: how far each step can be trusted; by default what the weights alone tell.
        times: (t,) numbers, dates or text; 0, 1, ... if not given.
        names: of the d columns.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> places = np.linspace(0, 10, 101)[:, None]
        >>> centre = np.array([[2.0], [4.0], [6.0]])
        >>> weights = np.exp(-0.5 * (places[:, 0] - centre) ** 2)
        >>> track = kb.Track(places, weights / weights.sum(1, keepdims=True), kb.Gaussian(1.0), names=["place"])
        >>> track.mean()[:, 0].round(1), track.std()[1].round(2)
        (array([2., 4., 6.]), array([1.]))
        >>> track.interval(0.9)[:, 1].round(1)  # lower and upper at step 1
        array([[2.4],
               [5.6]])
        >>> track.prob(lower=5.0).round(2)  # at each step
        array([0.  , 0.15, 0.83])
        >>> track[1]
        MeanEmbedding(101 points, ess=35.4, kernel=Gaussian)
        >>> track.score(centre).rmse < 0.1
        array([ True])
    """

    def __init__(
        self,
        points: Any,
        weights: ArrayLike,
        kernel: Kernel,
        diagnostics: TrackDiagnostics | None = None,
        *,
        times: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ):
        self.kernel = check_kernel(kernel)
        self.points = kernel._check(points, "points")
        self.weights = _check_weights(weights, len(self.points))
        self.diagnostics = TrackDiagnostics.of(self.weights) if diagnostics is None else diagnostics
        if not isinstance(self.diagnostics, TrackDiagnostics) or len(self.diagnostics) != len(self.weights):
            raise ValueError(
                f"diagnostics must be a TrackDiagnostics of {len(self.weights)} steps, got {diagnostics!r}"
            )
        self.times = check_times(times, len(self.weights))
        self.names = check_names(names, self.points)

    def __len__(self) -> int:
        return len(self.weights)

    def __repr__(self) -> str:
        missing = int((~self.diagnostics.observed).sum())
        gaps = f" ({missing} without an observation)" if missing else ""
        trust = "" if self.diagnostics.ok else f", {len(self.diagnostics.problems)} problems: see .diagnostics"
        return f"Track({len(self)} steps{gaps} of {', '.join(self.names)}; {len(self.points)} points{trust})"

    @overload
    def __getitem__(self, step: int) -> MeanEmbedding: ...
    @overload
    def __getitem__(self, step: slice) -> Track: ...
    def __getitem__(self, step: int | slice) -> MeanEmbedding | Track:
        if isinstance(step, (int, np.integer)) and not isinstance(step, bool):
            return self.embedding(int(step))
        if not isinstance(step, slice):
            raise TypeError(f"a track is indexed by a step or a slice of steps, got {type(step).__name__}")
        if not len(range(*step.indices(len(self)))):
            raise ValueError(f"the slice {step.start}:{step.stop} holds none of the {len(self)} steps")
        return self._at(step)

    def __iter__(self) -> Iterator[MeanEmbedding]:
        return (self.embedding(t) for t in range(len(self)))

    def embedding(self, t: int) -> MeanEmbedding:
        """The distribution at step t, to be asked for whatever a `kb.MeanEmbedding` offers; -1 is the last."""
        if not -len(self) <= t < len(self):
            raise IndexError(f"there is no step {t} in a track of {len(self)}")
        return MeanEmbedding(self.points, self.weights[t], self.kernel)

    # --------------------------------------------------------------------------------------------- decoding

    def mean(self) -> Array:
        """Means (t, d)."""
        return self._mean

    @cached_property
    def _mean(self) -> Array:
        return _frozen(means(*self._vectors()))

    def std(self) -> Array:
        """Standard deviations (t, d): root mean square distances from `mean()`, as in `MeanEmbedding.std`.

        Where weights are negative they are those of the rising distribution functions, from which intervals are read off
        too.
        """
        return self._std

    @cached_property
    def _std(self) -> Array:
        return _frozen(deviations(*self._vectors()))

    def mode(self) -> Array:
        """The point (t, d) of largest weight at each step, equal points counted together."""
        return self._mode

    @cached_property
    def _mode(self) -> Array:
        try:
            _, first, group = np.unique(self.points, axis=0, return_index=True, return_inverse=True)
        except TypeError:  # objects without an order
            return _frozen(self.points[self.weights.argmax(1)])
        heaviest = [np.bincount(group.ravel(), w).argmax() for w in self.weights]
        return _frozen(self.points[first[heaviest]])

    def cov(self) -> Array:
        """Covariances (t, d, d), with the squares of `std()` on their diagonals, as in `MeanEmbedding.cov`."""
        return covariances(*self._vectors())

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles of each column: (t, d) for one level, (len(q), t, d) for several."""
        out = quantiles(*self._vectors(), q)
        return out[0] if np.ndim(q) == 0 else out

    def interval(self, level: float = 0.9) -> Array:
        """Central intervals holding `level` of the mass, as (lower, upper): (2, t, d)."""
        return self.quantile(tails(level))

    def prob(
        self,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        *,
        event: Callable[[Array], ArrayLike] | None = None,
    ) -> Array:
        """Mass (t,) of the box `lower < x <= upper`, or (t,) or (t, p) of an event, as in `MeanEmbedding.prob`."""
        return probabilities(self.points, self.weights, lower, upper, event)

    def expect(self, f: Callable[[Array], ArrayLike]) -> Array:
        """Expectations (t,) or (t, p) of a function that takes all points (n, d) at once, as in `MeanEmbedding.expect`."""
        return self.weights @ evaluate_function(f, self.points)

    def sample(self, n: int = 1000, random_state: RandomState = None) -> Array:
        """Draws (t, n, d) from the distribution of each step on its own, by the positive weights.

        Draws of different steps are independent of each other: these are no paths.
        """
        rng = _check.generator(random_state)
        return np.stack([step.sample(n, rng) for step in self])

    def score(self, truth: ArrayLike, level: float = 0.9) -> TrackScore:
        """Compare with the true states (t, d): errors, coverage of the intervals, and ranked probability scores.

        Where the truth is NaN it is not known, and does not count.
        """
        truth = self._check_truth(truth)
        known = ~np.isnan(truth)
        if not known.any(0).all():
            raise ValueError(f"truth holds nothing but NaN for {self.names[int((~known.any(0)).argmax())]}")
        lower, upper = self.interval(level)
        squares = np.nanmean((self._mean - truth) ** 2, axis=0)
        inside = np.where(known, (lower <= truth) & (truth <= upper), np.nan)
        ranked = np.nanmean(self._ranked_scores(truth), axis=0)
        return TrackScore(np.sqrt(squares), float(squares.sum()), np.nanmean(inside, axis=0), ranked, float(level))

    # ------------------------------------------------------------------------------------ handing it to others

    def plot(self, truth: ArrayLike | None = None, *, level: float = 0.9, plane: bool = False) -> Any:
        """A figure with a panel for each column: mean, interval, steps without an observation, and truth if given.

        `plane=True` draws two columns against each other instead: the path, with ellipses that would hold `level` of normal
        distributions. Returns a Matplotlib figure: `track.plot().savefig("track.png")`.
        """
        from .. import plotting

        truth = None if truth is None else self._check_truth(truth)
        return (plotting.track_plane if plane else plotting.track)(self, truth, level=level)

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences to read before the track is believed; empty if there is nothing to say."""
        return self.diagnostics.problems

    def summary(self, level: float = 0.9) -> Summary:
        """A table with a row for each state: what it did and how surely it is known; what to beware of stands below."""
        seen = int(self.diagnostics.observed.sum())
        title = f"{len(self)} steps, {seen} with an observation; {len(self.points)} points"
        if not self._is_numeric:
            return Summary({}, title, self.problems)
        lower, upper = self.interval(level)
        width = (upper - lower).mean(0)
        rows = {}
        for j, name in enumerate(self.names):
            m = self._mean[:, j]
            values = (m[0], m[-1], m.min(), m.max(), self._std[:, j].mean(), width[j])
            heads = ("first", "last", "lowest", "highest", "mean std", f"{percent(level)} width")
            rows[name] = dict(zip(heads, map(float, values), strict=True))
        return Summary(rows, title, self.problems)

    def to_csv(self, path: str | os.PathLike[str], level: float = 0.9) -> None:
        """Write a table: time; for each state `name`, `name_std`, `name_lower`, `name_upper`; and `observed` (1 or 0)."""
        write_table(path, [("time", self.times), *self._columns(level)])

    def to_xarray(self, level: float = 0.9) -> Any:
        """An `xarray.Dataset` with all of it: decoded states, diagnostics, and the points with their weights."""
        try:
            import xarray
        except ImportError:
            raise ImportError("to_xarray needs xarray: pip install 'kernelbayes[xarray]'") from None
        over, each = ("time", "state"), self.diagnostics
        data = {
            "mean": (over, self._mean),
            "std": (over, self._std),
            "mode": (over, self._mode),
            "interval": (("bound", *over), self.interval(level), {"level": level}),
            **{field.name: (("time",), getattr(each, field.name)) for field in fields(each)},
            "weights": (("time", "point"), self.weights),
            "points": (("point", "state"), self.points),
        }
        return xarray.Dataset(data, {"time": self.times, "state": list(self.names), "bound": ["lower", "upper"]})

    def _columns(self, level: float) -> list[tuple[str, Array]]:
        """What a table of the track holds; of states that are no vectors, the mode."""
        observed = ("observed", self.diagnostics.observed)
        if not self._is_numeric:
            return [*zip(self.names, self._mode.reshape(len(self), -1).T, strict=True), observed]
        lower, upper = self.interval(level)
        parts = {"": self._mean, "_std": self._std, "_lower": lower, "_upper": upper}
        return [
            *((name + end, values[:, j]) for j, name in enumerate(self.names) for end, values in parts.items()),
            observed,
        ]

    # ----------------------------------------------------------------------------------------------- private

    def _at(self, steps: slice | Array) -> Track:
        """Some of the steps, in any order."""
        weights, diagnostics = self.weights[steps], self.diagnostics[steps]
        return Track(self.points, weights, self.kernel, diagnostics, times=self.times[steps], names=self.names)

    @property
    def _is_numeric(self) -> bool:
        return self.points.ndim == 2 and self.points.dtype.kind in "fiu"

    def _vectors(self) -> tuple[Array, Array]:
        return vectors_of(self.points, self.weights)

    def _ranked_scores(self, truth: Array) -> Array:
        """Scores (t, d)."""
        X, W = self._vectors()
        out = np.empty(truth.shape)
        for rows in blocks(len(W), len(X)):
            for j, x in enumerate(X.T):
                out[rows, j] = _ranked_scores(x, W[rows], truth[rows, j])
        return out

    def _check_truth(self, truth: ArrayLike) -> Array:
        X, _ = self._vectors()
        named = self.names != check_names(None, self.points)
        found = _check._as_numbers(_check.by_name(truth, self.names if named else None, "truth"), "truth")
        found = found[:, None] if found.ndim == 1 else found
        if found.shape != (len(self), X.shape[1]):
            raise ValueError(f"truth has shape {np.shape(truth)} where {(len(self), X.shape[1])} was wanted")
        _check.bounded(found[~np.isnan(found)], "truth")
        return found


def _ranked_scores(x: Array, W: Array, truth: Array) -> Array:
    r"""Scores (t,) of one column: the integral over x of :math:`(F(x) - 1[x \ge y])^2` for the truth y."""
    values, F = distribution_function(x, W)
    width = np.diff(values)
    below = np.clip(truth[:, None] - values[:-1], 0.0, width)  # how much of each stretch lies below the truth
    inside = (F[:, :-1] ** 2 * below + (1.0 - F[:, :-1]) ** 2 * (width - below)).sum(1)
    return inside + np.maximum(values[0] - truth, 0.0) + np.maximum(truth - values[-1], 0.0)


def _frozen(values: Array) -> Array:
    values.flags.writeable = False  # kept for the next time it is asked for
    return values


def _check_weights(value: ArrayLike, size: int) -> Array:
    weights = _check.vectors(value, "weights", width=size)
    total = weights.sum(1)
    if (np.abs(total - 1.0) > _ROUNDING * np.maximum(np.abs(weights).sum(1), 1.0)).any():
        first = int(np.abs(total - 1.0).argmax())
        raise ValueError(f"weights must sum to one at each step; at step {first} they sum to {total[first]:.4g}")
    return weights


def check_times(value: ArrayLike | None, steps: int) -> Array:
    """Labels (t,) of the steps, counted from 0 if not given."""
    times = np.arange(steps) if value is None else _check.table(value, "times")
    if times.shape != (steps,) or times.dtype.kind not in "iufMU":
        raise ValueError(
            f"times must be {steps} numbers, dates or words, got shape {times.shape} of dtype {times.dtype}"
        )
    return times


def check_names(value: Sequence[str] | None, points: Array) -> tuple[str, ...]:
    """One name for each column of the states."""
    d = points.shape[1] if points.ndim == 2 else 1
    if value is None:
        return ("state",) if d == 1 else tuple(f"state_{j}" for j in range(1, d + 1))
    names = (value,) if isinstance(value, str) else tuple(value)
    if len(names) != d or len(set(names)) != d or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"names must be {d} different words, one for each column of points, got {value!r}")
    return names

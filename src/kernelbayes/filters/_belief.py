"""Beliefs whose weights are formed on demand: of one state, as a streaming filter returns it, and of a whole track.

The filters with a constant cost per step know the mean of the state without the weights, of which there are as many as rows
in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

from .._typing import Array, ArrayLike
from ..embeddings import MeanEmbedding
from ..kernels import Kernel
from ._track import Track, TrackDiagnostics, check_names, check_times


class Belief(MeanEmbedding):
    """The distribution of the state now; made by `KernelBayesFilter.step`. It can be asked whatever a `MeanEmbedding` can.

    Attributes:
        observed: whether there was an observation at this step.
        total: sum of the weights before normalising; 1 where there was no observation.
        novelty: distance of the observation from those of the log; above 1 it lies outside what was seen, NaN if missing.
    """

    def __init__(
        self,
        points: Array,
        form: Callable[[], Array],
        kernel: Kernel,
        *,
        mean: Array | None,
        observed: bool,
        total: float,
        novelty: float,
    ):
        # points and kernel are the filter's own: checking them again would cost more than the step
        self.kernel, self.points = kernel, points
        self._form, self._mean = form, mean
        self.observed, self.total, self.novelty = observed, total, novelty

    @cached_property
    def weights(self) -> Array:  # type: ignore[override]
        """One signed number for each point; they sum to one."""
        return self._form()

    def mean(self) -> Array:
        """The mean (d,)."""
        return super().mean() if self._mean is None else self._mean

    def __getstate__(self) -> dict[str, Any]:
        return {"weights": self.weights, **{k: v for k, v in vars(self).items() if k not in ("_form", "weights")}}


class DeferredTrack(Track):
    """A track whose weights are formed when they are first asked for, of a filter that needs none to know the means."""

    def __init__(
        self,
        points: Array,
        form: Callable[[], Array],
        kernel: Kernel,
        *,
        mean: Array,
        known: dict[str, Array],
        times: ArrayLike | None,
        names: Sequence[str] | None,
    ):
        self.kernel, self.points = kernel, points
        self._form, self._known = form, known
        self.times = check_times(times, len(mean))
        self.names = check_names(names, points)
        self._mean = mean

    def __len__(self) -> int:
        return len(self._mean)

    @cached_property
    def weights(self) -> Array:  # type: ignore[override]
        """(t, n), each row summing to one."""
        return self._form()

    @cached_property
    def diagnostics(self) -> TrackDiagnostics:  # type: ignore[override]
        """How far each step can be trusted."""
        return TrackDiagnostics.of(self.weights, **self._known)

    def _settled(self) -> Track:
        """The same with its weights formed, as it is saved and pickled."""
        return Track(self.points, self.weights, self.kernel, self.diagnostics, times=self.times, names=self.names)

    def __reduce__(self) -> Any:
        return copy, (self._settled(),)

"""Should this track be trusted? What is measured at each step, and the lines that say so when it should not."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .._typing import Array, ArrayLike
from ..embeddings._health import _LEAST_ESS, _LEAST_TOTAL, _MOST_NEGATIVE, _MOST_TOTAL
from ..embeddings._weighted import effective_sizes, negative_masses

# About one step in a hundred of a track without faults looks odd in one way or another. Such steps are less accurate than
# others (on simulated systems 1.2 to 2.8 times their squared error), but to report each would be to report every long track.
_SELDOM = 0.01
# But a single observation so far outside is news.
_FAR_OUTSIDE = 2.0


@dataclass(frozen=True)
class TrackDiagnostics:
    """Diagnostics of a track, one number for each of its t steps.

    Attributes:
        observed: False where the observation was missing and the step only predicted.
        total: sum of the weights as the rule gives them, before they are made to sum to one; near 1 when all is well.
        ess: effective sample size of the weights.
        negative_mass: share of the absolute weights that is negative.
        novelty: distance of the observation from the training observations; above 1 it lies outside what was seen, and it
            is NaN where the observation was missing.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> d = kb.filters.TrackDiagnostics.of(np.full((4, 10), 0.1), novelty=[0.2, 0.3, 7.0, 0.1])
        >>> d.ok, d.problems
        (False, ('1 of 4 observations outside the training observations (first: step 2, novelty 7)',))
    """

    observed: Array
    total: Array
    ess: Array
    negative_mass: Array
    novelty: Array

    @classmethod
    def of(
        cls, weights: Array, *, observed: ArrayLike | None = None, total: ArrayLike = 1.0, novelty: ArrayLike = np.nan
    ) -> TrackDiagnostics:
        """Diagnostics of rows of weights (t, n), with what is known besides; a number holds for all steps."""
        size = (len(weights),)
        seen = np.array(np.broadcast_to(True if observed is None else np.asarray(observed, dtype=bool), size))
        total, novelty = (np.array(np.broadcast_to(np.asarray(v, dtype=np.float64), size)) for v in (total, novelty))
        return cls(seen, total, effective_sizes(weights), negative_masses(weights), novelty)

    def __len__(self) -> int:
        return len(self.observed)

    def __getitem__(self, steps: Any) -> TrackDiagnostics:
        """Those of some of the steps."""
        return TrackDiagnostics(*(np.atleast_1d(getattr(self, field.name)[steps]) for field in fields(self)))

    @property
    def problems(self) -> tuple[str, ...]:
        """What speaks against trusting the track, in words; empty when nothing does."""
        numbers = (self.total, self.ess, self.negative_mass)
        found = [] if all(np.isfinite(values).all() for values in numbers) else ["numbers have overflowed"]
        return tuple(found + [_described(*test) for test in self._tests() if test[0].any()])

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against trusting the track."""
        return not self.problems

    def _tests(self) -> list[tuple[Array, Array, int, str]]:
        """Steps to beware of, the number that tells, of how many they are, and what to say."""
        seen, steps = int(self.observed.sum()), len(self)
        outside = self.observed & (self.novelty > 1.0)
        if not (self.novelty > _FAR_OUTSIDE).any():
            outside = _if_often(outside, seen)
        # A large regulariser leaves less than one at each step, and is no news at any of them.
        usual = min(float(np.median(self.total[self.observed])), 1.0) if seen else 1.0
        little = _if_often(self.observed & (self.total < _LEAST_TOTAL * usual), seen)
        much = self.observed & (self.total > _MOST_TOTAL)
        poor, heavy = _if_often(self.ess < _LEAST_ESS, steps), _if_often(self.negative_mass > _MOST_NEGATIVE, steps)
        sums = "observations with weights that sum to "
        return [
            (outside, self.novelty, seen, "observations outside the training observations (first: {}, novelty {:.3g})"),
            (little, self.total, seen, sums + "little: the training pairs say little there (first: {}, sum {:.2g})"),
            (much, self.total, seen, sums + "much more than one: the rule is unstable there (first: {}, sum {:.2g})"),
            (poor, self.ess, steps, "steps resting on few effective points (first: {}, {:.1f})"),
            (heavy, self.negative_mass, steps, "steps with much negative mass (first: {}, {:.0%})"),
        ]

    def __str__(self) -> str:
        line = (
            f"{len(self)} steps, {int(self.observed.sum())} observed; total {_range(self.total[self.observed])}, "
            f"ess {_range(self.ess)}, negative mass {_range(self.negative_mass)}, novelty {_range(self.novelty)}"
        )
        return line if self.ok else line + ". Beware: " + "; ".join(self.problems)


def _if_often(bad: Array, many: int) -> Array:
    """Steps that are odd, unless they are no more than are to be expected among so many."""
    expected = _SELDOM * many
    return bad if bad.sum() > expected + 3.0 * np.sqrt(expected) else np.zeros_like(bad)


def _described(bad: Array, values: Array, many: int, text: str) -> str:
    first = int(bad.argmax())
    return f"{bad.sum()} of {many} " + text.format(f"step {first}", values[first])


def _range(values: Array) -> str:
    values = values[~np.isnan(values)]
    if not len(values):
        return "unknown"
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"

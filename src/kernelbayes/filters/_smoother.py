r"""Smoothing: one filter forwards, one backwards, and Bayes' rule with the product of what both predict.

Given all observations the state at t has a density proportional to

.. math:: p(x_t \mid z_t)\; p(z_t \mid x_{1:t-1})\; \frac{p(z_t \mid x_{t+1:T})}{p(z_t)}.

The second factor is the prediction of the filter. The third is the prediction of a filter that runs through the sequence
from its end, with every learned transition turned round, over the distribution of states in the log: the density ratio that
the correction of that filter estimates anyway (`_dynamics.ratio_map`). Multiplying the weights of the second by the third,
cut at zero, gives a prior, and the correction by x_t is that of the filter.
"""

from __future__ import annotations

import numpy as np

from .._linalg import solve
from .._typing import Array
from ..rules import conditional
from ._dynamics import Log
from ._recursion import Observed, Recursion, Run


def reversed_log(log: Log) -> Log:
    """The log of the same system running backwards in time."""
    return log._replace(before=log.after, after=log.before)


def reversed_sequence(sequence: Observed) -> Observed:
    """A sequence from its end; the control of a step belongs to the row it leads to, which is now the one before."""
    controls = sequence.controls
    if controls is not None:
        controls = np.concatenate([controls[:1], controls[:0:-1]])
    return sequence._replace(
        coordinates=sequence.coordinates[::-1], observed=sequence.observed[::-1], controls=controls
    )


class Smoother:
    """A filter and its mirror image in time."""

    def __init__(self, forward: Recursion, backward: Recursion):
        self.forward, self.backward = forward, backward
        H = forward.states.coordinates
        pairs = H[: len(forward.log.observations)]
        factor = conditional.operator(pairs.T @ pairs, len(pairs), forward.settings.prior_reg)
        self._ratio = len(pairs) * solve(factor, H.T).T  # (p, r): from coordinates of a prediction to its ratio

    def run(self, sequences: list[Observed], runs: list[Run]) -> list[Array]:
        """Weights (T, p) on all points for each sequence, from what the forward filter has made of it."""
        mirrored = self.backward.run([reversed_sequence(sequence) for sequence in sequences], None)
        return [
            np.concatenate([self._corrected(t, sequence, run, back) for t in range(len(run))])
            for sequence, run, back in zip(sequences, runs, mirrored, strict=True)
        ]

    def _corrected(self, t: int, sequence: Observed, run: Run, back: Run) -> Array:
        prior = run.prior(t)
        if t < len(run) - 1:
            later = back.prior(len(run) - 1 - t).mean
            prior = prior._replace(ratio=np.maximum(later @ self._ratio.T, 0.0))
        rows = slice(t, t + 1)
        step = self.forward.advance(prior, sequence.coordinates[rows], sequence.observed[rows])
        return self.forward.weights(step)

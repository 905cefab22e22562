r"""Smoothing: one filter forwards, one backwards, and Bayes' rule with the product of what both predict.

Given all observations the state at t has a density proportional to

.. math:: p(x_t \mid z_t)\; p(z_t \mid x_{1:t-1})\; \frac{q_t(z_t)}{p_b(z_t)}, \qquad
          q_t(z) \propto p_b(z)\, p(x_{t+1:T} \mid z_t = z).

The second factor is the prediction of the filter. For the third, with p_b and p_a the densities of the states before and
after the learned transitions, a filter runs through the sequence from its end. Every transition turned round is
:math:`p_b(b)\, p(a \mid b) / p_a(a)`, so

.. math:: q_t(b) \propto \int \frac{p_b(b)\, p(a \mid b)}{p_a(a)}\;
          p(x_{t+1} \mid a)\, q_{t+1}(a)\, \frac{p_a(a)}{p_b(a)}\, da :

it starts from p_b, and its priors are multiplied by p_a / p_b before they are corrected. In a long log the two are nearly
the same; in many short episodes they are not. All ratios are kernel density ratios (`_dynamics.ratio_map`), cut at zero.
Where nothing is left of the product, the prediction of the forward filter is kept.
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
        H, log = forward.states.coordinates, forward.log
        before = H[log.before]
        factor = conditional.operator(before.T @ before, len(before), forward.settings.prior_reg)
        self._ratio = len(before) * solve(factor, H.T).T  # (p, r): from coordinates of q to q / p_b at all points
        backward.tilt = np.maximum(self._ratio @ H[log.after].mean(0), 0.0)

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

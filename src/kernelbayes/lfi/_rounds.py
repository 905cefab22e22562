"""How runs are spread over rounds, and when a round is the last."""

from __future__ import annotations

import numpy as np

from ._problem import Inference

# To what powers the first rounds take the likelihood to propose parameters, where there are enough rounds for it.
_POWERS = (0.25, 0.5)
# Rounds unless their number is given: one for so many runs, up to a few; beyond, one for each of so many.
_PER_ROUND, _USUAL_ROUNDS, _LARGE_ROUND, _MOST_ROUNDS = 40, 4, 500, 8
# Two posteriors are the same that differ by less than this, in standard deviations and in their logarithms.
_SAME = 0.1


def usual_rounds(total: int) -> int:
    """Over how many rounds runs are spread where nobody says: several small ones are better than two."""
    return max(1, min(total // _PER_ROUND, _USUAL_ROUNDS), min(total // _LARGE_ROUND, _MOST_ROUNDS))


def power_after(number: int, rounds: int) -> float:
    """To what power the likelihood is taken after a round, from 0: the first looks must not rule out too much."""
    first = len(_POWERS) - max(0, min(rounds - 2, len(_POWERS)))
    return _POWERS[first + number] if first + number < len(_POWERS) else 1.0


def same_posterior(now: Inference, before: Inference) -> bool:
    """Whether a round has changed nothing."""
    (mean, covariance), (mean_before, covariance_before) = now.law.moments(), before.law.moments()
    std, std_before = np.sqrt(np.diag(covariance)), np.sqrt(np.diag(covariance_before))
    return bool((np.abs(mean - mean_before) < _SAME * std).all() and (np.abs(np.log(std / std_before)) < _SAME).all())

"""How good predicted probabilities are: log loss, expected calibration error, and the bins behind it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._typing import Array

BINS = 10


class Bins(NamedTuple):
    """Events in bins of their predicted probability, as arrays over the bins that hold any."""

    place: Array  # of the bin among all, from 0
    counts: Array
    said: Array  # mean predicted probability
    share: Array  # of events that happened


def binned(said: Array, happened: Array, bins: int = BINS) -> Bins:
    """Predictions in bins of equal width over [0, 1], each closed above."""
    place = np.clip(np.ceil(said * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(place, minlength=bins)
    filled = np.flatnonzero(counts)
    sums = (np.bincount(place, weights=values, minlength=bins)[filled] for values in (said, happened))
    means = (total / counts[filled] for total in sums)
    return Bins(filled, counts[filled], *means)


def top_class(probabilities: Array, positions: Array) -> tuple[Array, Array]:
    """The probability of the most probable class at each point, and whether it was the true one."""
    return probabilities.max(1), (probabilities.argmax(1) == positions).astype(float)


def accuracy(probabilities: Array, positions: Array) -> float:
    """Share of points at which the most probable class is the true one."""
    return float(top_class(probabilities, positions)[1].mean())


def log_loss(probabilities: Array, positions: Array) -> float:
    """Mean of minus the logarithm of the probability that the true class was given, in nats; infinite if one was zero."""
    with np.errstate(divide="ignore"):
        return float(-np.log(probabilities[np.arange(len(positions)), positions]).mean())


def calibration_error(probabilities: Array, positions: Array, bins: int = BINS) -> float:
    """Expected calibration error: how far the share of points where the most probable class is right is from its predicted
    probability, within bins of the latter, on average over points. Naeini, Cooper and Hauskrecht (2015); Guo et al. (2017).

    Even for perfect probabilities it is not zero on finitely many points: about 0.05 for 200
    points whose probabilities are spread evenly, and less where they are near one.
    """
    found = binned(*top_class(probabilities, positions), bins)
    return float(found.counts @ np.abs(found.share - found.said) / len(positions))


def checked_predictions(probabilities: Any, positions: Any) -> tuple[Array, Array]:
    """Rows of probabilities (t, m), and the position of the true class of each."""
    P = _check.vectors(probabilities, "probabilities")
    if P.shape[1] < 2:
        raise ValueError(
            f"probabilities must have a row for each point and a column for each class, got shape {P.shape}"
        )
    if (P < 0).any() or not np.allclose(P.sum(1), 1.0, atol=1e-6):
        raise ValueError("probabilities must not be negative, and each row must sum to one")
    positions = np.asarray(positions)
    if positions.dtype.kind not in "iu" or positions.ndim != 1:
        raise ValueError("positions must be whole numbers, the place of the true class among the columns")
    _check.same_length(P, positions, "probabilities", "positions")
    if positions.min() < 0 or positions.max() >= P.shape[1]:
        raise ValueError(f"positions must lie between 0 and {P.shape[1] - 1}")
    return P, positions

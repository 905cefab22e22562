r"""Whether a kernel means posterior is better with a regression adjustment: by the score that it was learned by.

The adjusted posterior has the shape of the kernel means posterior, and the mean and covariance that a local regression of
parameters on statistics gives (`rules.regression_adjustment`). Each replicate of `_likelihood_free` is adjusted without the
simulation in the observation's place, and the density at the parameters that were really behind it is scored,

.. math:: \log \Big( (1 - \eta)\, \frac{N(\theta_i; a_i, C_i)}{p(\theta_i)} + \eta \Big)

as if it were normal: where the shape is far from that, so much that a normal would score worse, nothing is adjusted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._linalg import inverses
from .._typing import Array
from ..rules.regression_adjustment import Moments, adjusted
from ._likelihood_free import MISS, Replicates, Scales, left_out, scores


class Gain(NamedTuple):
    """By how much the score rises, in nats, and the standard error of that."""

    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether it rises by more than its error."""
        return self.mean > self.error


def gain(
    scales: Scales, sample: Replicates, differences: Callable[[int], Array], density: Callable[[Array], Array]
) -> Gain:
    """What adjusting posteriors does to the score.

    Args:
        scales: of the kernel means likelihood.
        sample: simulations in the place of the observation.
        differences: of all simulations (m, q) from the i-th of them.
        density: of the prior, at coordinates (n, d).
    """
    found = left_out(scales, sample)
    before = scores(found.own, found.elsewhere, sample.weights)
    after, prior = before.copy(), density(sample.Z[sample.rows])
    for i, row in enumerate(sample.rows):
        near = resemblance(found.kappa[:, i], sample.ratio, row)
        moments = None if near is None else adjusted(near, differences(i), sample.Z)
        if moments is not None:
            after[i] = np.log((1.0 - MISS) * _normal(moments, sample.Z[row]) / prior[i] + MISS)
    rise = after - before
    mean = float(sample.shares @ rise)
    return Gain(mean, float(np.sqrt(sample.shares**2 @ (rise - mean) ** 2)))


def _normal(moments: Moments, z: Array) -> float:
    inverse, log = (part[0] for part in inverses(moments.covariance[None]))
    away = z - moments.mean
    return float(np.exp(-0.5 * (away @ inverse @ away + log + len(z) * np.log(2.0 * np.pi))))


def resemblance(kappa: Array, ratio: Array | None, row: int | None = None) -> Array | None:
    """Weights (m,) of the simulations by how much they resemble an observation, as draws of the prior, or None if none do.

    `row` is left out.
    """
    near = kappa if ratio is None else kappa * ratio
    if row is not None:
        near = np.where(np.arange(len(near)) == row, 0.0, near)
    total = near.sum()
    return near / total if total > 0 else None

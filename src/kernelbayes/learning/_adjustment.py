r"""Whether a kernel means posterior is better with a regression adjustment: by the score that it was learned by.

The adjusted posterior has the shape of the kernel means posterior, and the mean and covariance that a local regression of
parameters on statistics gives (`rules.regression_adjustment`). Each replicate of `_likelihood_free` is adjusted without the
simulation in the observation's place, and the density at the parameters that were really behind it is scored,

.. math:: \log \Big( (1 - \eta)\, \frac{N(\theta_i; a_i, C_i)}{p(\theta_i)} + \eta \Big)

as if it were normal: where the shape is far from that, so much that a normal would score worse, nothing is adjusted. It is
compared with the density of the posterior as it is, integrated by draws about each replicate. The points of
`_likelihood_free` serve all replicates at once, and bound the density of a narrow posterior, which would then seem worse
than it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._typing import Array
from ..kernels import Gaussian
from ..kernels._distributions import Distribution, Normal
from ..rules.regression_adjustment import adjusted, moments
from ._likelihood_free import MISS, Replicates, Scales, above_noise, expected_about, left_out, noise_floor

# Draws that integrate over a posterior.
_DRAWS = 60


class Gain(NamedTuple):
    """By how much the score rises, in nats, and the standard error of that."""

    mean: float
    error: float

    @property
    def clear(self) -> bool:
        """Whether it rises by more than its error."""
        return self.mean > self.error


def gain(scales: Scales, sample: Replicates, differences: Callable[[int], Array], prior: Distribution) -> Gain:
    """What adjusting posteriors does to the score.

    Args:
        scales: of the kernel means likelihood.
        sample: simulations in the place of the observation.
        differences: of all simulations (m, q) from the i-th of them.
        prior: of the coordinates.
    """
    found, rng = left_out(scales, sample), np.random.default_rng(0)
    floor, most = noise_floor(found.elsewhere), spread_of_all(sample.Z, sample.ratio)
    rise = np.zeros(len(sample.rows))
    for i, row in enumerate(sample.rows):
        near = resemblance(found.kappa[:, i], sample.ratio, row, sample.groups)
        target = None if near is None else adjusted(near, differences(i), sample.Z, most)
        if near is None or target is None:
            continue
        about = expected_about(sample.Z, near, scales.beta)
        z = about.sample(_DRAWS, rng)
        likelihood = above_noise(Gaussian(scales.beta)._gram(z, sample.places.Z) @ found.V[:, i], floor[i])
        mass = (likelihood * prior.density(z) / about.density(z)).mean()
        here = sample.Z[row][None]
        before = above_noise(found.own[i], floor[i]) / mass if mass > 0 else 0.0
        after = float((Normal(*target).density(here) / prior.density(here))[0])
        rise[i] = np.log((1.0 - MISS) * after + MISS) - np.log((1.0 - MISS) * before + MISS)
    mean = float(sample.shares @ rise)
    return Gain(mean, float(np.sqrt(sample.shares**2 @ (rise - mean) ** 2)))


def spread_of_all(Z: Array, ratio: Array | None) -> Array:
    """Covariance (d, d) of all parameters, as draws of the prior."""
    everyone = resemblance(np.ones(len(Z)), ratio)
    assert everyone is not None
    return moments(Z, everyone).covariance


def resemblance(kappa: Array, ratio: Array | None, row: int | None = None, groups: Array | None = None) -> Array | None:
    """Weights (m,) of the simulations by how much they resemble an observation, as draws of the prior, or None if none do.

    `row` is left out, with those of its group.
    """
    near = kappa if ratio is None else kappa * ratio
    if row is not None:
        near = np.where(np.arange(len(near)) == row if groups is None else groups == groups[row], 0.0, near)
    total = near.sum()
    return near / total if total > 0 else None

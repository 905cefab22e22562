r"""Regression adjustment: what parameters would be had simulations matched the observation exactly.

Beaumont, Zhang and Balding (2002), section 2, for the first two moments. Simulations :math:`x_j` that resemble an
observation y, by weights :math:`w_j`, are not equal to it, and so their parameters :math:`\theta_j` are not draws of its
posterior: they follow a mixture of the posteriors given all that resembles y, which is wider, and lies nearer to the prior.
A weighted ridge regression tells what the differences do to the parameters,

.. math:: \theta_j \approx a + B (x_j - y), \qquad (a, B) = \arg\min \sum_j w_j |\theta_j - a - B (x_j - y)|^2
          + \lambda |B D|^2

with D the weighted standard deviations of the statistics. The intercept a is the mean at the observation, and the residuals
have the covariance there: with the degrees of freedom that the regression took given back, and with the uncertainty of the
intercept added, as that of a prediction. It is no larger than that of all parameters: an observation takes nothing away.

| paper | here |
|---|---|
| :math:`K_\delta(\|s_i - s\|)`, the weights | `weights` (m,), summing to one |
| :math:`s_i - s` | `differences` (m, q) |
| :math:`\phi_i` | `Z` (m, d) |
| :math:`\hat\alpha`, (4) | `Moments.mean` |
| the covariance of :math:`\phi_i^* = \phi_i - (s_i - s)^T \hat\beta` | `Moments.covariance`, without the two corrections |

The paper has no penalty. Here :math:`\lambda` is one over the effective number of simulations: it is what coefficients of
order one and residuals of order one ask for, in coordinates in which the prior has variance one, and is nothing when there
are many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._linalg import cholesky, eigh, inverses, solve_definite, solve_lower, transport
from .._typing import Array

# The regression may use up at most this share of the effective simulations.
_MOST_USED = 0.5
# Parameters that vary less than this share of all, in some direction, are not told apart.
_SINGULAR = 1e-12


class Moments(NamedTuple):
    """Mean (d,) and covariance (d, d)."""

    mean: Array
    covariance: Array


def moments(Z: Array, weights: Array | None = None) -> Moments:
    """Of points (m, d), with weights (m,) that sum to one or all alike."""
    weights = np.full(len(Z), 1.0 / len(Z)) if weights is None else weights
    mean = weights @ Z
    away = Z - mean
    return Moments(mean, (away * weights[:, None]).T @ away)


class Way(NamedTuple):
    """The shortest way from one mean and covariance to others: an affine map."""

    start: Array
    end: Array
    stretch: Array

    @classmethod
    def between(cls, start: Moments, end: Moments) -> Way:
        """From the moments of something to those that it should have."""
        return cls(start.mean, end.mean, transport(start.covariance, end.covariance))

    def there(self, z: Array) -> Array:
        """Where points (n, d) are taken."""
        return self.end + (z - self.start) @ self.stretch

    def back(self, z: Array) -> Array:
        """Where points (n, d) come from."""
        return self.start + solve_definite(self.stretch, (z - self.end).T, "the map of a posterior").T

    @property
    def volume(self) -> float:
        """By how much volumes grow."""
        return float(np.prod(eigh(self.stretch)[0]))


def adjusted(weights: Array, differences: Array, Z: Array, most: Array) -> Moments | None:
    """Moments of the parameters at the observation, the covariance no larger than `most` (d, d) in any direction.

    None where too few simulations resemble the observation to regress on, or where their parameters hardly vary.
    """
    size = 1.0 / (weights**2).sum()
    shift = weights @ differences
    S, z = differences - shift, moments(Z, weights)
    spread = np.sqrt(weights @ S**2)
    kept = spread > 1e-12 * np.abs(differences).max(0)
    S, shift, q = S[:, kept] / spread[kept], shift[kept] / spread[kept], int(kept.sum())
    weighted = S * weights[:, None]
    inverse = inverses((weighted.T @ S + np.eye(q) / size)[None])[0][0]
    used = 1.0 + q - np.trace(inverse) / size
    if not used < _MOST_USED * size:
        return None
    B = inverse @ (weighted.T @ (Z - z.mean))
    residuals = moments(Z - z.mean - S @ B, weights).covariance
    uncertain = (1.0 + shift @ inverse @ shift) / size
    covariance = residuals * (1.0 + uncertain) * size / (size - used)
    if not eigh(covariance)[0][-1] > _SINGULAR * eigh(most)[0][0]:
        return None
    return Moments(z.mean - shift @ B, _at_most(covariance, most))


def _at_most(covariance: Array, most: Array) -> Array:
    """What of a covariance is no larger than another, in the directions that they share."""
    factor = cholesky(most, "the covariance of all parameters")
    values, vectors = eigh(solve_lower(factor, solve_lower(factor, covariance).T))
    root = factor @ (vectors * np.sqrt(np.minimum(values, 1.0)))
    return root @ root.T

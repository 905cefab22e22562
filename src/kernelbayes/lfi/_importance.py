"""Draws from a density that can be evaluated in batches, by importance sampling from a proposal that learns its shape.

Used where the density is a smooth function of a few coordinates with most of its mass in one or a few places, and a
reasonable first guess of where that is. Three rounds: a wide normal together with the prior, then kernel density
estimates of what was found, always with a share of the first proposal so that nothing is cut off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._linalg import cholesky, solve_lower
from .._typing import Array
from ..embeddings._moments import covariances
from ..embeddings._weighted import effective_sizes
from ..kernels import Gaussian, gram_blocks
from ..kernels._distributions import Distribution, Normal
from ..rules.regression_adjustment import moments

# Draws in a round, centres of a kernel density estimate, and the share of the first proposal kept in later ones.
_ROUND, _CENTRES, _DEFENSIVE = 4000, 300, 0.2
_ROUNDS = 3
# Proposals for each draw asked for.
_PER_DRAW = 4
_BELL = Gaussian(1.0)


class _Bells:
    """Equally weighted normals of one covariance about some centres."""

    def __init__(self, centres: Array, covariance: Array):
        self.centres = centres
        self.factor = np.asarray(cholesky(covariance, "the covariance of a proposal", 1e-12 * np.trace(covariance)))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        noise = rng.standard_normal((n, self.centres.shape[1]))
        return self.centres[rng.integers(len(self.centres), size=n)] + noise @ self.factor.T

    def density(self, z: Array, shares: Array | None = None) -> Array:
        """Density (n,) at coordinates (n, d); with shares (n, m), by which each bell counts at each of them."""
        both = solve_lower(self.factor, np.concatenate([z, self.centres]).T).T
        bells = np.empty(len(z))
        for rows, each in gram_blocks(_BELL, both[: len(z)], both[len(z) :]):
            bells[rows] = each.mean(1) if shares is None else (each * shares[rows]).mean(1)
        return bells / (np.prod(np.diagonal(self.factor)) * (2.0 * np.pi) ** (z.shape[1] / 2))


def smoothed(z: Array) -> _Bells:
    """A kernel density estimate of points (n, d), by Silverman's rule."""
    n, d = z.shape
    spread = covariances(z, np.full((1, n), 1.0 / n))[0] + 1e-9 * np.eye(d)
    return _Bells(z, (max(n, 2) * (d + 2) / 4.0) ** (-2.0 / (d + 4)) * spread)


class Importance:
    """A proposal fitted to an unnormalised density under a prior.

    Args:
        target: likelihood values (n,), not negative, at coordinates (n, d); the density is this times the prior's.
        prior: of the coordinates.
        guess: a normal about where the mass is expected.
        rng: for the draws that fit the proposal.

    Attributes:
        mass: the integral of the target under the prior.
        efficiency: effective share of proposals, of the last round.
        moments: mean and covariance, by the proposals of the last round.
    """

    def __init__(self, target: Callable[[Array], Array], prior: Distribution, guess: Normal, rng: np.random.Generator):
        self._target, self._prior, self._guess = target, prior, guess
        self._bells: _Bells | None = None
        for _ in range(_ROUNDS):
            z, w = self._weighted(_ROUND, rng)
            self.mass = float(w.mean())
            if not self.mass > 0:
                break
            self.efficiency = float(effective_sizes(w)) / len(w)
            self.moments = moments(z, w / w.sum())
            self._bells = self._fitted(z, w, rng)

    def _fitted(self, z: Array, w: Array, rng: np.random.Generator) -> _Bells:
        w = w / w.sum()
        centres = z[systematic(w, _CENTRES, rng)]
        d = z.shape[1]
        spread = covariances(z, w[None])[0]
        # Silverman's rule, by as many points as are really there
        bandwidth = (max(2.0, min(_CENTRES, float(effective_sizes(w)))) * (d + 2) / 4.0) ** (-1.0 / (d + 4))
        floor = 1e-9 * np.eye(d)
        return _Bells(centres, np.maximum(bandwidth, 0.3) ** 2 * spread + floor)

    def _first(self, n: int, rng: np.random.Generator) -> Array:
        half = n // 2
        return np.concatenate([self._prior.sample(n - half, rng), self._guess.sample(half, rng)])

    def _proposal_density(self, z: Array, prior: Array) -> Array:
        first = 0.5 * prior + 0.5 * self._guess.density(z)
        if self._bells is None:
            return first
        return _DEFENSIVE * first + (1.0 - _DEFENSIVE) * self._bells.density(z)

    def _weighted(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Proposals and their importance weights."""
        if self._bells is None:
            z = self._first(n, rng)
        else:
            few = max(2, round(_DEFENSIVE * n))
            z = np.concatenate([self._first(few, rng), self._bells.sample(n - few, rng)])
        prior = self._prior.density(z)
        return z, self._target(z) * prior / self._proposal_density(z, prior)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, d): proposals resampled by their weights."""
        z, w = self._weighted(max(_ROUND, _PER_DRAW * n), rng)
        return rng.permutation(z[systematic(w / w.sum(), n, rng)])


def systematic(w: Array, n: int, rng: np.random.Generator) -> Array:
    """Indices (n,): each as often as it weighs, up to one."""
    edges = np.cumsum(w)
    at = (rng.uniform() + np.arange(n)) / n * edges[-1]
    return np.minimum(np.searchsorted(edges, at), len(edges) - 1)

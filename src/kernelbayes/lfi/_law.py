r"""What is known of a posterior in Gaussian coordinates: a likelihood times the prior, or weighted points.

The kernel means posterior :math:`q(\theta|y) \propto \sum_j v_j\, \ell(\theta_j, \theta)\, p(\theta)` of Hsu (2019), section
4.3.4, is a mixture of normals when the kernel is Gaussian and the prior normal, or a mixture of normals:

.. math:: \ell_\beta(\theta_j, z)\, N(z; a, \Sigma) = c_j\, N(z; m_j, S), \qquad S = (\beta^{-2} I + \Sigma^{-1})^{-1}, \quad
          m_j = S (\beta^{-2} \theta_j + \Sigma^{-1} a), \quad c_j = \mu_\Theta(\theta_j)

with weights :math:`v_j c_j` of both signs. The closed forms are read off that: :math:`q(y) = \sum_j v_j c_j` is (4.5) with
(4.6), and the embedding (4.9) with (4.10) is the sum over components of the embedding of a normal.

As a distribution to draw from, the likelihood counts as far as it rises above its own errors, which show in how far it
falls below zero (`learning._likelihood_free.above_noise`).
"""

from __future__ import annotations

import abc
import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._linalg import cholesky, inverses, solve_lower
from .._typing import Array
from ..embeddings import MeanEmbedding
from ..embeddings._smoothing import bandwidths
from ..embeddings._weighted import effective_sizes
from ..features._herding import Pool, herd
from ..kernels import Gaussian, Kernel, matmul
from ..kernels._distributions import Distribution, Normal
from ..kernels._stationary import squared_distances
from ..learning._likelihood_free import above_noise, expected_about, noise_floor
from ..rules.regression_adjustment import Moments, Way, moments
from ._blocks import normals
from ._importance import Importance, systematic

if TYPE_CHECKING:
    from ._prior import Prior

# Draws of the prior among which the largest error of a likelihood is looked for.
_FOR_FLOOR = 2000
# Draws that stand for a law of which nothing else is known.
_FOR_MOMENTS = 4000
# By how many of their standard deviations draws are moved that propose further simulations: their surroundings are seen.
_STRAY = 0.7
# How far beyond all simulated parameters a likelihood is believed, in standard deviations of the prior.
_BEYOND = 0.25


def within_reach(z: Array, Z: Array) -> Array:
    """Which coordinates (n,) lie inside the box of those that were simulated, or a little beyond.

    Farther out a likelihood is an extrapolation that can take any value, and counts as zero.
    """
    return ((z >= Z.min(0) - _BEYOND) & (z <= Z.max(0) + _BEYOND)).all(1)


class Law(abc.ABC):
    """A distribution of Gaussian coordinates."""

    @abc.abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws (n, d)."""

    @abc.abstractmethod
    def herd(self, n: int, rng: np.random.Generator) -> Array:
        """Super-samples (n, d)."""

    def propose(self, n: int, rng: np.random.Generator) -> Array:
        """Coordinates (n, d) for a further round of simulations, about the posterior."""
        z = self.sample(n, rng)
        return z + _STRAY * z.std(0) * rng.standard_normal(z.shape)

    def moments(self) -> Moments:
        """Mean (d,) and covariance (d, d); of draws, where nothing better is known."""
        return moments(self.sample(_FOR_MOMENTS, np.random.default_rng(0)))

    def density(self, z: Array) -> Array | None:
        """Density (n,) at coordinates, or None where it is not known."""
        return None

    @property
    def closed(self) -> SignedMixture | None:
        """The kernel means posterior in closed form, where there is one."""
        return None


class Components(NamedTuple):
    """Normals with one covariance: weights (m,), means (m, d), covariance (d, d)."""

    weights: Array
    means: Array
    covariance: Array

    def values(self, z: Array) -> Array:
        """The weighted sum of their densities (n,)."""
        white = np.asarray(cholesky(self.covariance, "the covariance of a posterior's component"))
        at = solve_lower(white, np.concatenate([z, self.means]).T).T
        bells = np.exp(-0.5 * squared_distances(at[: len(z)], at[len(z) :]))
        return bells @ self.weights / (np.prod(np.diagonal(white)) * (2.0 * np.pi) ** (z.shape[1] / 2))


class SignedMixture:
    """The kernel means posterior in closed form: a mixture of normals with weights of both signs that sum to one.

    Attributes:
        groups: components that share a covariance, one for each component of the prior.
        evidence: the marginal kernel means likelihood q(y), of an epsilon-kernel without its constant.
    """

    def __init__(self, v: Array, Z: Array, beta: float, prior: Distribution):
        self.beta = beta
        groups = [_product(weight, normal, v, Z, beta) for weight, normal in zip(*normals(prior), strict=True)]
        self.evidence = float(sum(g.weights.sum() for g in groups))
        self.groups = tuple(g._replace(weights=g.weights / self.evidence) for g in groups)

    def density(self, z: Array) -> Array:
        """The kernel means posterior (n,), negative in places."""
        return np.sum([g.values(z) for g in self.groups], axis=0)

    def mean(self) -> Array:
        """Its mean (d,)."""
        return np.sum([g.weights @ g.means for g in self.groups], axis=0)

    def embedding(self, z: Array) -> Array:
        """The kernel means posterior embedding (4.9), at coordinates."""
        d = z.shape[1]
        wider = [g._replace(covariance=g.covariance + self.beta**2 * np.eye(d)) for g in self.groups]
        return (np.sqrt(2.0 * np.pi) * self.beta) ** d * np.sum([g.values(z) for g in wider], axis=0)


def _product(weight: float, normal: Normal, v: Array, Z: Array, beta: float) -> Components:
    """The kernel about each parameter times one normal."""
    d = Z.shape[1]
    inverse = inverses(normal.cov[None])[0][0]
    S = inverses((np.eye(d) / beta**2 + inverse)[None])[0][0]
    white = np.asarray(cholesky(beta**2 * np.eye(d) + normal.cov, "the covariance of the prior"))
    away = (solve_lower(white, (Z - normal.location).T) ** 2).sum(0)
    height = weight * beta**d / np.prod(np.diagonal(white))
    return Components(height * v * np.exp(-0.5 * away), (Z / beta**2 + inverse @ normal.location) @ S, S)


class KernelMeansPosterior(Law):
    """The posterior under a likelihood `sum_j v_j l(theta_j, .)` and a prior in closed form.

    Args:
        v: weights (m,) of the likelihood.
        Z: coordinates (m, d) of the parameters.
        beta: lengthscale of the kernel on them.
        prior: of the coordinates.
        near: how much each simulation resembles the observation (m,), for a first guess of where the posterior is.
        seed: of the draws that measure the likelihood's errors and fit a proposal.
        atoms: the prior of the parameters, if some are whole numbers: see `Prior.on_atoms`.
        simulated: coordinates (m, d) of the simulations, where `Z` and `v` are not those of each of them.

    Attributes:
        noise: the size of the likelihood's errors, relative to its largest value.
    """

    atoms: Prior | None = None
    box: Array | None = None  # files of older versions have none: there, Z is all that was simulated

    def __init__(
        self,
        v: Array,
        Z: Array,
        beta: float,
        prior: Distribution,
        near: Array,
        seed: int = 0,
        atoms: Prior | None = None,
        simulated: Array | None = None,
    ):
        simulated = Z if simulated is None else simulated
        self.v, self.Z, self.beta, self.prior, self.seed, self.atoms = v, Z, beta, prior, seed, atoms
        self.box = np.stack([simulated.min(0), simulated.max(0)])
        self.kernel = Gaussian(beta)
        self._guess = expected_about(simulated, near / near.sum(), beta)
        drawn = self._placed(prior.sample(_FOR_FLOOR, np.random.default_rng(seed)))
        values = self.likelihood(np.concatenate([drawn[within_reach(drawn, self.box)], Z]))
        self._floor, largest = float(noise_floor(values)), float(values.max())
        self.noise = max(-float(values.min()), 0.0) / largest if largest > 0 else np.inf

    def likelihood(self, z: Array) -> Array:
        """The kernel means likelihood (4.4) at coordinates, negative in places."""
        return matmul(self.kernel, z, self.Z, self.v)

    def _placed(self, z: Array) -> Array:
        return z if self.atoms is None else self.atoms.on_atoms(z)

    def _target(self, z: Array) -> Array:
        z = self._placed(z)
        reach = within_reach(z, self.Z if self.box is None else self.box)
        return np.where(reach, above_noise(self.likelihood(z), self._floor), 0.0)

    @functools.cached_property
    def _mixture_cache(self) -> SignedMixture:
        return SignedMixture(self.v, self.Z, self.beta, self.prior)

    @property
    def mixture(self) -> SignedMixture:
        """The kernel means posterior and its embedding in closed form, where all coordinates are normal."""
        return self._mixture_cache

    @property
    def closed(self) -> SignedMixture | None:
        return self._mixture_cache if self.atoms is None else None

    @functools.cached_property
    def _proposal_cache(self) -> Importance:
        proposal = Importance(self._target, self.prior, self._guess, np.random.default_rng(self.seed))
        if not proposal.mass > 0:
            raise ValueError(
                "the likelihood learned from the simulations is nowhere above its own errors: they say nothing about "
                "this observation; more of them, another prior, or other statistics are needed"
            )
        return proposal

    @property
    def efficiency(self) -> float:
        """Effective share of proposals when drawing."""
        return self._proposal_cache.efficiency

    def density(self, z: Array) -> Array:
        return self._target(z) * self.prior.density(z) / self._proposal_cache.mass

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._proposal_cache.sample(n, rng)

    def moments(self) -> Moments:
        return self._proposal_cache.moments

    def herd(self, n: int, rng: np.random.Generator) -> Array:
        """By herding from the embedding in closed form among draws; lines 8 to 12 of Algorithm 3.

        Of whole numbers there is no closed form, and the draws stand for it.
        """
        candidates = self._placed(self.sample(max(_FOR_FLOOR, 5 * n), rng))
        if self.atoms is None:
            values = self.mixture.embedding(candidates)
        else:
            values = self.kernel._gram(candidates, candidates).mean(1)
        return candidates[herd(Pool((self.kernel, candidates)), values, n, repeat=True, sweeps=0)]


class Moved(Law):
    """Another law, moved and stretched to a given mean and covariance; its shape is kept."""

    def __init__(self, law: Law, target: Moments):
        self.law = law
        self.start, self.end, self.stretch = Way.between(law.moments(), target)  # arrays, which can be saved

    @property
    def way(self) -> Way:
        """From the other law to this one."""
        return Way(self.start, self.end, self.stretch)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.way.there(self.law.sample(n, rng))

    def herd(self, n: int, rng: np.random.Generator) -> Array:
        return self.way.there(self.law.herd(n, rng))

    def moments(self) -> Moments:
        return Moments(self.end, self.stretch @ self.law.moments().covariance @ self.stretch)

    def density(self, z: Array) -> Array | None:
        density = self.law.density(self.way.back(z))
        return None if density is None else density / self.way.volume

    @property
    def closed(self) -> SignedMixture | None:
        return self.law.closed


class WeightedPoints(Law):
    """Points with weights, perhaps of both signs; what is drawn is among the points."""

    def __init__(self, points: Array, weights: Array, kernel: Kernel):
        total = float(weights.sum())
        if not total > 0 or not np.isfinite(weights).all():
            raise ValueError("no simulation resembles the observation: all weights of the posterior are zero")
        self.points, self.weights, self.kernel = points, weights / total, kernel

    @property
    def ess(self) -> float:
        """Effective number of points."""
        return float(effective_sizes(self.weights))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Of weights of both signs by herding, of others by systematic resampling."""
        if (self.weights < 0).any():
            return rng.permutation(self.herd(n, rng))
        return rng.permutation(self.points[systematic(self.weights, n, rng)])

    def herd(self, n: int, rng: np.random.Generator) -> Array:
        """By herding under a kernel as narrow as the points allow: under a wide one, weights of both signs whose variance
        is negative are best matched by copies of a single point."""
        narrow = Gaussian(bandwidths(self.points, self.weights))
        return np.asarray(MeanEmbedding(self.points, self.weights, narrow).herd(n).points)

    def moments(self) -> Moments:
        """Those of the weighted points; weights of both signs can make the covariance indefinite."""
        return moments(self.points, self.weights)

    def embedding(self) -> MeanEmbedding:
        """The weighted points as an embedding."""
        return MeanEmbedding(self.points, self.weights, self.kernel)

"""Mixtures of normals fitted to an embedding (McCalman, O'Callaghan and Ramos 2013; Song et al. 2008).

Under the Gaussian kernel with squared lengthscales `Lambda` the embedding of N(m, S) is known,

    mu(x) = |Lambda|^(1/2) |Lambda + S|^(-1/2) exp(-(x - m)' (Lambda + S)^-1 (x - m) / 2),

and so is the inner product of two, with `S + S'` in place of S and m' in place of x. The squared RKHS distance of a mixture
to `sum_i w_i k(., x_i)` is then, up to a constant, `pi' G pi - 2 pi' c`, with its derivatives in closed form. It is
minimised over the shares pi (through a softmax), the means, and factors L of the covariances `S = L L' + floor I`.

All is done with the columns divided by their spread.
"""

from __future__ import annotations

import numpy as np
import scipy.optimize

from .. import _check
from .._linalg import cholesky, inverses
from .._typing import Array
from ..kernels import Gaussian, Kernel
from ..kernels._base import Scaled
from ..kernels._distributions import Mixture, Normal

_STARTS = 5
_MOST_POINTS = 5000  # among which starts are sought
_FLOOR = 1e-6  # least variance along any axis, relative to that of the whole
_EM_STEPS, _EM_TOLERANCE = 200, 1e-6
_SAME = 1e-4  # log likelihoods per point that belong to one solution of EM
_FIRST_STEPS, _MORE_STEPS = 40, 300

Components = tuple[Array, Array, Array]  # shares (k,), means (k, d), covariances (k, d, d)


def fit(kernel: Kernel, X: Array, w: Array, k: int, rng: np.random.Generator) -> Mixture:
    """The mixture of k normals nearest to the embedding under a Gaussian kernel, else by weighted EM."""
    positive = np.maximum(w, 0.0)
    positive /= positive.sum()
    distinct = len(np.unique(X[positive > 0], axis=0))
    if k > distinct:
        raise ValueError(f"components={k} need as many distinct points with positive weight; there are {distinct}")
    unit = np.sqrt(positive @ (X - positive @ X) ** 2)
    unit = np.where(unit > 0, unit, 1.0)
    scaled = X / unit
    starts = _starts(scaled, positive, k, rng)
    lengthscale = _lengthscale(kernel)
    if lengthscale is None:
        return _mixture(_expectation_maximisation(scaled, positive, starts[0])[1], unit)
    problem = _Distance(scaled, w, np.broadcast_to(np.minimum(lengthscale / unit, _check.LARGEST), unit.shape) ** 2)
    if len(starts) > 1:
        starts = [min((problem.descend(start, _FIRST_STEPS) for start in starts), key=lambda run: run[0])[1]]
    return _mixture(problem.descend(starts[0], _MORE_STEPS)[1], unit)


def _lengthscale(kernel: Kernel) -> Array | None:
    """Of a Gaussian kernel, or of a multiple of one."""
    while type(kernel) is Scaled:
        kernel = kernel.kernel
    return np.asarray(kernel.lengthscale, dtype=np.float64) if type(kernel) is Gaussian else None


def _mixture(components: Components, unit: Array) -> Mixture:
    shares, means, covs = components
    order = np.argsort(-shares, kind="stable")
    covs = covs * np.outer(unit, unit)
    return Mixture([Normal(means[j] * unit, 0.5 * (covs[j] + covs[j].T)) for j in order], shares[order])


def _bells(X: Array, means: Array, covs: Array) -> tuple[Array, Array, Array]:
    """`log |A|^(-1/2) exp(-r' A^-1 r / 2)` for r = x - m, with `A^-1 r` and `A^-1`: (..., n), (..., n, d), (..., d, d).

    For points (n, d), or a stack of them, and stacks of means (..., d) and matrices (..., d, d).
    """
    inverse, logdet = inverses(covs)
    r = X - means[..., None, :]
    solved = r @ inverse
    return -0.5 * (logdet[..., None] + (r * solved).sum(-1)), solved, inverse


def _weighted_squares(values: Array, vectors: Array) -> Array:
    """`sum_n values_n vectors_n vectors_n'` along the last axes of stacks."""
    return (values[..., None] * vectors).swapaxes(-1, -2) @ vectors


# ----------------------------------------------------------------------------------------- expectation maximisation


def _starts(X: Array, w: Array, k: int, rng: np.random.Generator) -> list[Components]:
    """The different solutions of EM from several k-means clusterings, best first; of a large sample the best, on a part."""
    large = len(X) > _MOST_POINTS
    if large:
        X = X[rng.choice(len(X), _MOST_POINTS, p=w)]
        w = np.full(_MOST_POINTS, 1.0 / _MOST_POINTS)
    clusterings = (np.eye(k)[_clusters(X, w, k, rng)].T for _ in range(_STARTS if k > 1 else 1))
    found = [_expectation_maximisation(X, w, _maximise(X, w, clusters)) for clusters in clusterings]
    found.sort(key=lambda run: -run[0])
    different = [start for i, (value, start) in enumerate(found) if i == 0 or value < found[i - 1][0] - _SAME]
    return different[:1] if large else different


def _expectation_maximisation(X: Array, w: Array, components: Components) -> tuple[float, Components]:
    """Log likelihood and components of weighted EM."""
    before = -np.inf
    for _ in range(_EM_STEPS):
        shares, means, covs = components
        joint = np.log(shares)[:, None] + _bells(X, means, covs)[0]
        top = joint.max(0)
        density = np.exp(joint - top).sum(0)
        responsibility = np.exp(joint - top) / density
        likelihood = float(w @ (top + np.log(density)))
        if likelihood < before + _EM_TOLERANCE:
            break
        before, components = likelihood, _maximise(X, w, responsibility)
    return before, components


def _maximise(X: Array, w: Array, responsibility: Array) -> Components:
    mass = w * responsibility
    shares = np.maximum(mass.sum(1), 1e-12)
    means = (mass @ X) / shares[:, None]
    covs = _weighted_squares(mass, X - means[:, None]) / shares[:, None, None]
    return shares / shares.sum(), means, covs + _FLOOR * np.eye(X.shape[1])


def _clusters(X: Array, w: Array, k: int, rng: np.random.Generator) -> Array:
    if k == 1:
        return np.zeros(len(X), dtype=int)
    import sklearn.cluster  # slow to import, and needed only here

    seed = int(rng.integers(2**31))
    k = min(k, len(np.unique(X, axis=0)))  # a part of a large sample may have fewer distinct points
    return sklearn.cluster.KMeans(k, n_init=1, random_state=seed).fit(X, sample_weight=w).labels_  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------ RKHS distance


class _Distance:
    """`pi' G pi - 2 pi' c` and its derivatives, as a function of one vector."""

    def __init__(self, X: Array, w: Array, squared_lengthscales: Array):
        self.X, self.w = X, w
        self.smoothing = np.diag(squared_lengthscales)
        self.log_scale = 0.5 * float(np.log(squared_lengthscales).sum())
        self.lower = np.tril_indices(X.shape[1])

    def descend(self, start: Components, steps: int) -> tuple[float, Components]:
        """A local minimum and the components there."""
        shares, means, covs = start
        factors = np.stack([cholesky(S, "the covariance of a component") for S in covs])
        theta = np.concatenate([np.log(shares), means.ravel(), factors[:, *self.lower].ravel()])
        options = {"maxiter": steps, "ftol": 1e-13, "gtol": 1e-9}
        shape = means.shape
        run = scipy.optimize.minimize(self, theta, args=(shape,), jac=True, method="L-BFGS-B", options=options)
        shares, means, factors = self._parts(run.x, shape)
        return float(run.fun), (shares, means, self._covariances(factors))

    def _parts(self, theta: Array, shape: tuple[int, int]) -> Components:
        k, d = shape
        logits, means, entries = np.split(theta, [k, k + k * d])
        shares = np.exp(logits - logits.max())
        factors = np.zeros((k, d, d))
        factors[:, *self.lower] = entries.reshape(k, -1)
        return shares / shares.sum(), means.reshape(k, d), factors

    def _covariances(self, factors: Array) -> Array:
        return factors @ factors.transpose(0, 2, 1) + _FLOOR * np.eye(factors.shape[1])

    def __call__(self, theta: Array, shape: tuple[int, int]) -> tuple[float, Array]:
        shares, means, factors = self._parts(theta, shape)
        covs = self._covariances(factors)
        c, c_means, c_covs = self._with_sample(means, covs)
        G, G_means, G_covs = self._with_each_other(shares, means, covs)
        by_share = 2.0 * (G @ shares - c)
        by_mean = 2.0 * shares[:, None] * (G_means - c_means)
        by_cov = 2.0 * shares[:, None, None] * (G_covs - c_covs)
        by_factor = 2.0 * (by_cov @ factors)[:, *self.lower]
        slope = [shares * (by_share - shares @ by_share), by_mean.ravel(), by_factor.ravel()]
        return float(shares @ G @ shares - 2.0 * shares @ c), np.concatenate(slope)

    def _with_sample(self, means: Array, covs: Array) -> tuple[Array, Array, Array]:
        """Inner products c (k,) of the components with the sample, and their derivatives."""
        logs, solved, inverse = _bells(self.X, means, covs + self.smoothing)
        values = self.w * np.exp(logs + self.log_scale)
        c = values.sum(1)
        by_cov = 0.5 * (_weighted_squares(values, solved) - c[:, None, None] * inverse)
        return c, (values[:, None] @ solved)[:, 0], by_cov

    def _with_each_other(self, shares: Array, means: Array, covs: Array) -> tuple[Array, Array, Array]:
        """Inner products G (k, k) of the components, and the derivatives of `G pi` in each component's parameters."""
        logs, solved, inverse = _bells(means[:, None, None], means, covs[:, None] + covs + self.smoothing)
        G, solved = np.exp(logs[..., 0] + self.log_scale), solved[:, :, 0]
        values = G * shares
        by_cov = 0.5 * (_weighted_squares(values, solved) - (values[..., None, None] * inverse).sum(1))
        return G, -(values[:, None] @ solved)[:, 0], by_cov

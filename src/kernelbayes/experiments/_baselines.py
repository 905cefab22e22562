r"""What the kernel filters are compared with: filters that know the system, or part of it, and estimates without memory.

| here | knows | source |
|---|---|---|
| `extended_kalman` | the whole system | filterpy |
| `particle_filter` | the whole system, or the transition and a likelihood that was learned | bootstrap filter |
| `NeighbourLikelihood` | pairs | Vlassis et al. (2002): the k-NN density of x given y as the likelihood; kNN-PF |
| `ProcessLikelihood` | pairs | Ferris et al. (2006): y given x by a Gaussian process; GP-PF |
| `regression` | pairs | the mean of x given y, by a conditional embedding |
| `nearest_observation` | pairs | the state that goes with the nearest observation in training |

The particle filter is written out: among libraries that have one, none takes functions of NumPy arrays with a generator of
the caller's, runs on NumPy 2, and stays light.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp

from .._typing import Array
from ..conditional import ConditionalEmbedding
from ..kernels import Gaussian
from ..learning import BoundWarning
from ._systems import Circle, Sequence, System

#: log p(y_t | x) up to a constant, for the time t and states (n, d).
LogLikelihood = Callable[[int, Array], Array]


# ------------------------------------------------------------------------------------------ the system is known


def extended_kalman(system: Circle, observations: Array) -> Array:
    """Filtered means (t, 2) of the extended Kalman filter with the true system and start."""
    try:
        from filterpy.kalman import ExtendedKalmanFilter
    except ImportError:
        raise ImportError("the extended Kalman filter needs filterpy: pip install 'kernelbayes[experiments]'") from None
    there = np.eye(2)
    known = ExtendedKalmanFilter(dim_x=2, dim_z=2)
    known.x, known.P = np.array([1.0, 0.0]), np.zeros((2, 2))
    known.Q = known.R = system.noise**2 * there
    known.predict_x = lambda u=0: setattr(known, "x", system.step(known.x))
    means = []
    for t, y in enumerate(observations):
        if t:
            known.F = system.jacobian(known.x)
            known.predict()
        known.update(y, lambda x: there, lambda x: x)
        means.append(known.x)
    return np.array(means)


def particle_filter(
    system: System,
    observations: Array,
    rng: np.random.Generator,
    *,
    particles: int,
    controls: Array | None = None,
    log_likelihood: LogLikelihood | None = None,
) -> Array:
    """Filtered means (t, d) of the bootstrap particle filter.

    Resampling is systematic, when the effective sample size falls below half the particles.

    Args:
        system: its start and transition are used, and its likelihood where no other is given.
        observations: (t, p).
        rng: for all that is random.
        particles: how many.
        controls: (t, c), for a system that has them.
        log_likelihood: one that was learned, in place of the system's.
    """
    likelihood = log_likelihood or (lambda t, x: system.log_likelihood(observations[t], x))
    x, logs = system.initial(rng, particles), np.zeros(particles)
    means = np.empty((len(observations), x.shape[1]))
    for t in range(len(observations)):
        if t:
            x = system.transition(rng, x, t, None if controls is None else controls[t])
        logs = logs + likelihood(t, x)
        logs = logs - np.asarray(logsumexp(logs))
        weights = np.exp(logs)
        means[t] = weights @ x
        if 1.0 / (weights @ weights) < particles / 2:
            x, logs = x[_systematic(weights, rng)], np.zeros(particles)
    return means


def _systematic(weights: Array, rng: np.random.Generator) -> Array:
    """Indices of a systematic resample: one uniform number decides all."""
    n = len(weights)
    return np.searchsorted(np.cumsum(weights) * n, rng.random() + np.arange(n)).clip(max=n - 1)


# ---------------------------------------------------------------------------------------- the likelihood is learned


class NeighbourLikelihood:
    r"""The likelihood of kNN-PF: the density of x given y, in place of that of y given x. Vlassis et al. (2002).

    .. math:: \hat p(x | y) = \sum_{j=1}^k \lambda_j N(x; x_{(j)}, h^2), \qquad \lambda_j = \frac{2 (k - j + 1)}{k (k + 1)}

    with x_(j) the state that goes with the j-th nearest observation, and Stone's (1977) triangular weights.

    Args:
        states: of the pairs (n, d).
        observations: of the pairs (n, p).
        neighbours: the number k.
        bandwidth: h in standard deviations of the states.
    """

    def __init__(self, states: Array, observations: Array, neighbours: int, bandwidth: float):
        self.states, self.observations = states, observations
        self.neighbours, self.bandwidth = neighbours, bandwidth
        self._h = bandwidth * states.std(0)

    @classmethod
    def chosen(cls, system: System, pairs: Sequence, rng: np.random.Generator) -> NeighbourLikelihood:
        """With k and h that filter one half of a training sequence best from the other, in two folds (Kanagawa 4.5.1)."""
        half = len(pairs.states) // 2
        halves = [slice(None, half), slice(half, None)]
        settings = [(k, h) for k in NEIGHBOURS if k <= half for h in BANDWIDTHS]
        seed = int(rng.integers(2**31))  # one for all settings, so that they differ in nothing else
        errors = [
            sum(cls._error(system, pairs, halves[i], halves[1 - i], k, h, seed) for i in (0, 1)) for k, h in settings
        ]
        return cls(pairs.states, pairs.observations, *settings[int(np.argmin(errors))])

    @classmethod
    def _error(cls, system: System, pairs: Sequence, train: slice, test: slice, k: int, h: float, seed: int) -> float:
        """Squared error over at most sixty steps of one half, with few particles: enough to tell settings apart."""
        truth, seen = pairs.states[test][:60], pairs.observations[test][:60]
        controls = None if pairs.controls is None else pairs.controls[test][:60]
        likelihood = cls(pairs.states[train], pairs.observations[train], k, h)(seen)
        rng = np.random.default_rng(seed)
        found = particle_filter(system, seen, rng, particles=200, controls=controls, log_likelihood=likelihood)
        return float(((found - truth) ** 2).mean())

    def __call__(self, observations: Array) -> LogLikelihood:
        """The likelihood for a sequence of observations."""
        near = self.states[_nearest(self.observations, observations, self.neighbours)]
        return lambda t, x: _mixture(x, near[t], self._h)


#: What k and h are chosen from.
NEIGHBOURS = (3, 10, 30)
BANDWIDTHS = (0.2, 0.4, 0.8)


def _nearest(known: Array, new: Array, k: int) -> Array:
    """Positions (m, k) of the k nearest of the known points to each new one, nearest first."""
    from scipy.spatial import KDTree

    return np.reshape(KDTree(known).query(new, k=k)[1], (len(new), k))


def _mixture(x: Array, centres: Array, bandwidth: Array) -> Array:
    """log density at x (n, d), up to a constant, of Gaussians about centres (k, d) with triangular weights."""
    away = sum(((x[:, None, j] - centres[:, j]) / h) ** 2 for j, h in enumerate(bandwidth))
    nearest = np.min(away, axis=1)
    weights = np.arange(len(centres), 0, -1)
    return np.log(np.exp(-0.5 * (away - nearest[:, None])) @ weights) - 0.5 * nearest


class ProcessLikelihood:
    """The likelihood of GP-PF: y given x is normal about a Gaussian process. Ferris et al. (2006).

    The kernel is squared exponential plus white noise, one for all columns of y, its parameters by marginal likelihood on
    at most `most` of the pairs; all pairs are then conditioned on. States are on the line: the prediction is tabulated once,
    and the logarithm of the likelihood interpolated, which makes thousands of particles affordable.
    """

    def __init__(self, states: Array, observations: Array, *, most: int = 200):
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        if states.shape[1] != 1:
            raise ValueError(f"this likelihood tabulates states on the line; these have {states.shape[1]} columns")
        scale = float(states.std())
        kernel = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(scale, (0.05 * scale, 50 * scale)) + WhiteKernel(
            0.5, (1e-6, 10.0)
        )
        rows = np.linspace(0, len(states) - 1, min(most, len(states))).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # where y has no mean but zero, parameters run to a bound
            tuned = GaussianProcessRegressor(kernel, normalize_y=True).fit(states[rows], observations[rows])
            settled: Any = None  # no optimiser: what was tuned stays
            model = GaussianProcessRegressor(tuned.kernel_, optimizer=settled, normalize_y=True)
            model.fit(states, observations)
        margin = float(np.ptp(states))
        self._grid = np.linspace(states.min() - margin, states.max() + margin, 1200)
        mean, sd = (np.reshape(a, (len(self._grid), -1)) for a in _predict(model, self._grid[:, None]))
        self._mean, self._log_sd = mean, np.log(sd)

    def __call__(self, observations: Array) -> LogLikelihood:
        """The likelihood for a sequence of observations."""

        def of(t: int, x: Array) -> Array:
            on_grid = (-0.5 * ((observations[t] - self._mean) / np.exp(self._log_sd)) ** 2 - self._log_sd).sum(1)
            return np.interp(x[:, 0], self._grid, on_grid)

        return of


def _predict(model: Any, grid: Array) -> tuple[Array, Array]:
    return model.predict(grid, return_std=True)


# ------------------------------------------------------------------------------------------------- without memory


def regression(states: Array, observations: Array, new: Array) -> Array:
    """The mean state at each new observation, by a conditional embedding as it comes; it knows nothing of time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundWarning)  # of many columns the best lengthscale may be a long one
        model = ConditionalEmbedding(random_state=0).fit(observations, states)
    return model.predict(new).reshape(len(new), -1)


def nearest_observation(states: Array, observations: Array, new: Array) -> Array:
    """The state that goes with the nearest observation in training."""
    return states[_nearest(observations, new, 1)[:, 0]]


# ------------------------------------------------------------------------------------------- the formula as printed


def printed_seconds(n: int, steps: int, rng: np.random.Generator) -> float:
    """Seconds that so many corrections by the original rule as it is printed would take.

    That is `D K ((D K)^2 + delta I)^-1 D k`, (12) of Gebhardt et al. (2015) and Algorithm 1 of Kanagawa (2016), with dense
    matrices of n points: the median of three, times their number.
    """
    K = Gaussian(1.0).gram(rng.normal(size=(n, 2)))
    taken = []
    for _ in range(3):
        D = rng.dirichlet(np.ones(n))[:, None]
        start = time.perf_counter()
        M = D * K
        np.linalg.solve(M @ M + 1e-3 * np.eye(n), D)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken) * steps)

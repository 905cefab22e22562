"""Draws of exact posteriors: tempered sequential Monte Carlo on the known likelihood, with many particles and many moves."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from ..._typing import Array
from ._problem import ZooProblem

DRAWS = 10_000


def reference(problem: ZooProblem, k: int, folder: Path | str | None = None) -> Array:
    """Exact posterior draws (10000, d) given the k-th observation, kept in a folder if one is named."""
    x = problem.observation(k)
    if folder is None:
        return exact_draws(problem, x)
    path = Path(folder) / f"{problem.name}-{k}-{_mark(problem, x)}.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f"{path.stem}.{os.getpid()}.part")
        with aside.open("wb") as file:
            np.save(file, exact_draws(problem, x))
        os.replace(aside, path)
    return np.load(path)


def _mark(problem: ZooProblem, x: Array) -> str:
    """Changes with the observation, the prior and the likelihood: rounded, as machines differ in last digits."""
    theta = problem.prior.design(8)
    told = np.concatenate([x, problem.log_likelihood(theta, x), theta.ravel()])
    return hashlib.sha256(" ".join(f"{value:.6g}" for value in told).encode()).hexdigest()[:10]


def exact_draws(
    problem: ZooProblem, x: Array, n: int = DRAWS, seed: int = 0, *, moves: int = 3, last: int = 40
) -> Array:
    """Draws (n, d) of the posterior given an output (p,).

    Particles start at the prior in its Gaussian coordinates. The likelihood's power rises such that the effective size of
    each step is 80 %; then particles are resampled and moved. All moves keep the tempered posterior exactly: one half of
    the particles moves by differences of the other half, the other way round, and so on.

    Args:
        moves: of each kind at every power but the last.
        last: of each kind at the end, and four more for each parameter.
    """
    rng = np.random.default_rng([seed, 7])
    cloud = _Cloud(problem, x, rng.standard_normal((n, problem.dimension)))
    power = 0.0
    while power < 1.0:
        step = _step(cloud.told, 1.0 - power)
        power += step
        cloud.resample(step, rng)
        for _ in range(moves if power < 1.0 else last + 4 * problem.dimension):
            cloud.move(power, rng)
    return problem.prior.from_gaussian(cloud.z[rng.permutation(n)])


class _Cloud:
    """Particles in Gaussian coordinates (n, d) with their log likelihoods (n,)."""

    def __init__(self, problem: ZooProblem, x: Array, z: Array):
        self.problem, self.x, self.z = problem, x, z
        self.told = self.log_likelihood(z)

    def log_likelihood(self, z: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value = self.problem.log_likelihood(self.problem.prior.from_gaussian(z), self.x)
        return np.where(np.isfinite(value), value, -1e300)

    def resample(self, step: float, rng: np.random.Generator) -> None:
        """Systematically, by the likelihood to the power of the step."""
        weights = np.exp(step * (self.told - self.told.max()))
        edges = np.cumsum(weights) / weights.sum()
        n = len(self.z)
        chosen = np.minimum(np.searchsorted(edges, (np.arange(n) + rng.random()) / n), n - 1)
        chosen = rng.permutation(chosen)  # so that copies are in both halves
        self.z, self.told = self.z[chosen], self.told[chosen]

    def move(self, power: float, rng: np.random.Generator) -> None:
        """Each half by differences of the other, then by steps with the other's covariance."""
        halves = np.array_split(rng.permutation(len(self.z)), 2)
        for one, other in (halves, halves[::-1]):
            self._accept(one, _differences(self.z[one], self.z[other], rng), power, rng)
            self._accept(one, _steps(self.z[one], self.z[other], rng), power, rng)

    def _accept(self, rows: Array, proposed: Array, power: float, rng: np.random.Generator) -> None:
        told = self.log_likelihood(proposed)
        gain = power * (told - self.told[rows]) - 0.5 * ((proposed**2).sum(1) - (self.z[rows] ** 2).sum(1))
        taken = np.log(rng.random(len(rows))) < gain
        self.z[rows[taken]], self.told[rows[taken]] = proposed[taken], told[taken]


def _differences(z: Array, others: Array, rng: np.random.Generator) -> Array:
    """By differences of two others: of full length now and then, which leads from mode to mode."""
    first, second = rng.integers(len(others), size=(2, len(z)))
    scales = np.array([1.0, 0.5, 0.15]) * 2.38 / np.sqrt(2.0 * z.shape[1])
    length = np.where(rng.random(len(z)) < 0.2, 1.0, rng.choice(scales, len(z)))
    return z + length[:, None] * (others[first] - others[second]) + 1e-6 * rng.standard_normal(z.shape)


def _steps(z: Array, others: Array, rng: np.random.Generator) -> Array:
    """Normal steps with the covariance of some of the others, at several scales."""
    some = others[rng.integers(len(others), size=64 + 8 * z.shape[1])]
    steps = rng.standard_normal((len(z), len(some))) @ (some - some.mean(0)) / np.sqrt(len(some))
    return z + rng.choice([1.0, 0.4, 0.1], len(z))[:, None] * 2.38 / np.sqrt(z.shape[1]) * steps


def _step(told: Array, most: float) -> float:
    """The largest rise of the power whose weights have an effective size of 80 %."""
    if _size(told, most) >= 0.8:
        return most
    low, high = 0.0, most
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _size(told, middle) >= 0.8 else (low, middle)
    return max(low, 1e-12)


def _size(told: Array, step: float) -> float:
    """Effective size over the number of particles."""
    weights = np.exp(step * (told - told.max()))
    return float(weights.sum() ** 2 / (weights**2).sum() / len(told))

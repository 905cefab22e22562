r"""A Gaussian process surrogate of the statistics, and a walk under it: GPS-ABC of Meeds and Welling (2014).

| paper | here |
|---|---|
| the surrogate's mean and variance of each statistic | `Surrogate.predict` |
| :math:`\Delta S`, :math:`\xi`, m | `extra`, `error`, `draws` |
| the decision and the probability that it is wrong | `_synthetic.decision_error` |

The paper draws the statistics' means at the two places of a step independently; here they are drawn jointly: the difference
between near places, which decides, is known much better than either.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .. import _check
from .._linalg import cholesky, solve, solve_lower
from .._typing import Array
from ._problem import Inference, Method, OutOfBudget, Problem
from ._synthetic import Deciding, decision_error, read_error, with_uncertainty
from ._walk import Bench, concluded, read_share, walk

# Statistics farther from the observation than this, in units of their spread, are as good as infinitely far: a surrogate
# that had to follow them would be of no use where it matters.
_FAR = 5.0
# The scales of a surrogate are learned from at most so many runs, and again when there are so many times more.
_MOST_LEARNED, _GROWN = 200, 1.5


class _Scales(NamedTuple):
    """Of the processes: lengthscales (q, d), amplitudes (q,) and noises (q,), both of them variances."""

    lengthscales: Array
    amplitudes: Array
    noises: Array


class Surrogate:
    """Gaussian processes over coordinates, one for each statistic, with scales by marginal likelihood.

    Runs that are added at one place count as their average, with as much less noise: the prediction is the same, and the
    matrices are as large as there are places.

    Attributes:
        Z, X: coordinates (n, d) and statistics (n, q) it has learned from.
        noise: variances (q,) of the statistics about their means.
    """

    def __init__(self, Z: Array, X: Array, observed: Array, seed: int):
        self._observed, self._seed = observed, seed
        self.Z, self.X = Z, self._bounded(X)
        self._places, self._averages, self._counts = Z, self.X, np.ones(len(Z))
        self._relearn()
        self._fit()

    def add(self, z: Array, X: Array) -> None:
        """Learn from further runs (k, q) at one place (d,)."""
        X = self._bounded(X)
        self.Z, self.X = np.concatenate([self.Z, np.repeat(z[None], len(X), axis=0)]), np.concatenate([self.X, X])
        self._places = np.concatenate([self._places, z[None]])
        self._averages = np.concatenate([self._averages, X.mean(0)[None]])
        self._counts = np.append(self._counts, len(X))
        if len(self.Z) >= _GROWN * self._learned_from:
            self._relearn()
        self._fit()

    def _bounded(self, X: Array) -> Array:
        return np.clip(X, self._observed - _FAR, self._observed + _FAR)

    def _relearn(self) -> None:
        rows = np.arange(len(self.Z))
        if len(rows) > _MOST_LEARNED:  # by chance: those nearest the observation would have the smallest errors
            rows = np.random.default_rng(self._seed).choice(rows, _MOST_LEARNED, replace=False)
        learned = [_learned_scales(self.Z[rows], self.X[rows, j]) for j in range(self.X.shape[1])]
        self._scales = _Scales(*(np.array(part) for part in zip(*learned, strict=True)))
        self._learned_from = len(self.Z)

    @property
    def noise(self) -> Array:
        """Variances (q,) of the statistics about their means."""
        return self._scales.noises

    def _fit(self) -> None:
        self._mean = self.X.mean(0)
        self._factors, self._weights = [], []
        for gram, noise, centred in zip(
            self._grams(self._places), self.noise, (self._averages - self._mean).T, strict=True
        ):
            factor = np.asarray(cholesky(gram + np.diag(noise / self._counts), "the covariance of the surrogate"))
            self._factors.append(factor)
            self._weights.append(solve(factor, centred))

    def _grams(self, z: Array) -> Array:
        """Covariances (q, u, k) of the processes between places and coordinates (k, d)."""
        return self._covariances((self._places[:, None] - z[None]) ** 2)

    def _covariances(self, squares: Array) -> Array:
        scaled = np.einsum("ukd,qd->quk", squares, self._scales.lengthscales**-2.0)
        return self._scales.amplitudes[:, None, None] * np.exp(-0.5 * scaled)

    def predict(self, z: Array) -> tuple[Array, Array]:
        """Means (q, k) of the statistics' means at k coordinates, and their covariances (q, k, k)."""
        cross, own = self._grams(z), self._covariances((z[:, None] - z[None]) ** 2)
        halves = [solve_lower(factor, part) for factor, part in zip(self._factors, cross, strict=True)]
        means = [mean + part.T @ w for mean, part, w in zip(self._mean, cross, self._weights, strict=True)]
        return np.array(means), own - np.array([half.T @ half for half in halves])


def _learned_scales(Z: Array, x: Array) -> tuple[Array, float, float]:
    """By scikit-learn, of a statistic with its mean and variance taken out."""
    from sklearn.exceptions import ConvergenceWarning  # slow to import
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    unit = float(x.std())
    if unit == 0:
        return np.ones(Z.shape[1]), 1e-6, 1e-6
    lengthscales: Any = np.ones(Z.shape[1])
    shape = RBF(lengthscales, (0.1, 100.0))
    kernel = ConstantKernel(1.0, (0.01, 100.0)) * shape + WhiteKernel(0.1, (1e-6, 10.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a scale on its bound: the statistic does not depend on it
        model: Any = GaussianProcessRegressor(kernel).fit(Z, (x - x.mean()) / unit)
    amplitude, *learned, noise = np.exp(model.kernel_.theta)
    return np.array(learned), float(amplitude) * unit**2, float(noise) * unit**2


@dataclasses.dataclass(kw_only=True)
class _Surrogated(Deciding):
    """Metropolis-Hastings under a surrogate that is given further runs where a decision could be wrong."""

    model: Surrogate
    spent: bool = False

    def state(self, z: Array) -> _Somewhere:
        return _Somewhere(self.bench.on_atoms(z[None])[0])

    def accepts(self, proposed: _Somewhere, current: _Somewhere, log_prior: float) -> bool:
        pair = np.stack([proposed.z, current.z])
        while True:
            means, covariances = self.model.predict(pair)
            alphas = self._alphas(means, covariances, log_prior)
            sure = decision_error(alphas) <= self.error
            if sure or self.spent or self.bench.used + self.extra > self.most:
                break
            unsure = np.einsum("qkk,q->k", covariances, 1.0 / (self.model.noise + self.epsilon**2))
            where = int(unsure.argmax())
            if not self._simulate(pair[where]):
                if where == 0 and not self.spent:  # every run there failed
                    return False
                break
        return self.decided(alphas, sure)

    def _alphas(self, means: Array, covariances: Array, log_prior: float) -> Array:
        """Probabilities of acceptance (m,) for joint draws of the statistics' means at both places."""
        noise = self.rng.standard_normal((2, self.draws, len(means)))
        old_sd = np.sqrt(np.maximum(covariances[:, 1, 1], 1e-300))
        shared = covariances[:, 0, 1] / old_sd
        own = np.sqrt(np.maximum(covariances[:, 0, 0] - shared**2, 0.0))
        old = means[:, 1] + old_sd * noise[0]
        new = means[:, 0] + shared * noise[0] + own * noise[1]
        y, variance = self.bench.observed, self.model.noise + self.epsilon**2
        logs = 0.5 * (((y - old) ** 2 - (y - new) ** 2) / variance).sum(1)
        return np.exp(np.minimum(logs + log_prior, 0.0))

    def _simulate(self, z: Array) -> bool:
        """Further runs at one place; False if there were none, or none finished."""
        try:
            X = self.bench.repeated(z, self.extra)
        except OutOfBudget:
            self.spent = True
            return False
        if len(X):
            self.model.add(z, X)
        return len(X) > 0


class _Somewhere(NamedTuple):
    """A place, about which the surrogate knows all there is to know."""

    z: Array

    @property
    def possible(self) -> bool:
        """It is."""
        return True


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SurrogateABC(Method):
    """A long random walk under a Gaussian process surrogate of the statistics; Meeds and Welling (2014), GPS-ABC.

    The surrogate begins with the first simulations and is given more where a decision could be wrong. Its error is the
    same everywhere, and statistics farther than five spreads from the observation count as five spreads away.

    Args:
        epsilon: its square is added to the statistics' variances, in units of their spread over the first simulations (2
            in Hsu's section 4.9.2).
        extra: simulations that are added at a time (Delta S).
        error: probability of a wrong decision above which they are (xi).
        draws: of the surrogate, behind that probability (m).
        most: simulations added in all, within the budget: the cost of a step grows with their square.
        step, burn, standardise: as in the synthetic likelihood.
        steps: length of the chain.
    """

    name: ClassVar[str] = "gps-abc"
    seeks: ClassVar[bool] = True
    epsilon: float = 0.1
    extra: int = 5
    error: float = 0.05
    draws: int = 50
    most: int = 400
    step: Any = None
    burn: float = 0.2
    steps: int = 5000
    standardise: bool = True

    def infer(self, problem: Problem) -> Inference:
        epsilon, burn = _check.positive(self.epsilon, "epsilon"), read_share(self.burn, "burn")
        extra, error = _check.count(self.extra, "extra"), read_error(self.error)
        draws, most = _check.count(self.draws, "draws", at_least=2), _check.count(self.most, "most", at_least=0)
        steps = _check.count(self.steps, "steps", at_least=10)
        bench = Bench(problem, self.standardise)
        model = Surrogate(bench.Z, bench.X, bench.observed, int(problem.rng.integers(2**31)))
        settings = {"epsilon": epsilon, "extra": extra, "error": error, "draws": draws, "most": most}
        target = _Surrogated(bench=bench, rng=problem.rng, model=model, **settings)
        found = walk(problem, bench, target, self.step, steps)
        inference = concluded(found, burn, bench, {**settings, "steps": steps, "standardise": self.standardise})
        inference.details["noise"] = np.sqrt(model.noise)
        inference.ess = min(inference.ess, float(len(model.Z)))
        return with_uncertainty(inference, target, "simulations")

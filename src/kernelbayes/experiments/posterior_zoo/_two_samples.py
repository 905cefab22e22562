"""A classifier two-sample test: how well a network tells two samples apart. Lopez-Paz and Oquab (2017).

It is what `cross_val_score` finds of the `MLPClassifier((10 d, 10 d), max_iter=1000)` of scikit-learn with five folds: the
same starts, batches of 200, Adam, penalty, and stop after ten epochs without progress. But the networks of all folds are
trained in one stack of matrices, in single precision, which takes a fraction of the time.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ..._typing import Array

COMPARED = 1000
_FOLDS, _BATCH, _EPOCHS, _PATIENCE = 5, 200, 1000, 10
_RATE, _DECAYS, _PENALTY, _PROGRESS = 1e-3, (0.9, 0.999), 1e-4, 1e-4


def c2st(exact: Array, draws: Array, seed: int = 0, count: int = COMPARED) -> float:
    """Accuracy on left-out folds, of so many of each sample; .5 where they cannot be told apart."""
    rng = np.random.default_rng([seed, 3])
    count = min(count, len(exact), len(draws)) // _FOLDS * _FOLDS
    one, other = (a[rng.permutation(len(a))[:count]] for a in (exact, draws))
    scaled = np.concatenate([one, (other - one.mean(0)) / one.std(0)])
    scaled[:count] = (one - one.mean(0)) / one.std(0)
    order = rng.permutation(2 * count).reshape(_FOLDS, -1)
    rest = np.stack([np.delete(order, i, axis=0).ravel() for i in range(_FOLDS)])
    points, labels = scaled.astype(np.float32), np.repeat([0.0, 1.0], count).astype(np.float32)
    networks = _Networks(points.shape[1], rng)
    networks.train(points[rest], labels[rest], rng)
    return float(((networks.logits(points[order]) > 0.0) == (labels[order] > 0.5)).mean())


class _Networks:
    """Networks with two hidden layers, one for each fold: their parameters are the rows of one matrix."""

    def __init__(self, d: int, rng: np.random.Generator):
        self.sizes = [(d, 10 * d), (10 * d, 10 * d), (10 * d, 1)]
        starts = []
        for size in self.sizes:
            bound = np.sqrt(6.0 / sum(size))
            starts.append(rng.uniform(-bound, bound, (_FOLDS, size[0] * size[1] + size[1])))
        self.parameters = np.concatenate(starts, axis=1).astype(np.float32)

    def train(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        """On points (folds, n, d) with labels (folds, n), each network until it makes no progress."""
        active, best, idle = np.arange(_FOLDS), np.full(_FOLDS, np.inf), np.zeros(_FOLDS, dtype=int)
        adam = _Adam(self.parameters)
        for _ in range(_EPOCHS):
            order = rng.permuted(np.tile(np.arange(X.shape[1]), (len(active), 1)), axis=1)
            now = self.parameters[active]
            loss = np.zeros(len(active))
            for batch in np.array_split(order, range(_BATCH, X.shape[1], _BATCH), axis=1):
                part, slope = self._loss(now, X[active[:, None], batch], y[active[:, None], batch])
                adam.step(now, slope, active)
                loss += part * batch.shape[1] / X.shape[1]
            self.parameters[active] = now
            idle[active] = np.where(loss > best[active] - _PROGRESS, idle[active] + 1, 0)
            best[active] = np.minimum(best[active], loss)
            active = active[idle[active] <= _PATIENCE]
            if not len(active):
                break

    def logits(self, X: Array) -> Array:
        """Above zero (folds, n) where a network takes points (folds, n, d) for the second sample."""
        return self._forward(self.parameters, X)[-1][..., 0]

    def _layers(self, parameters: Array) -> list[tuple[Array, Array]]:
        """Weights and shifts of each layer, as views."""
        layers, left = [], 0
        for rows, columns in self.sizes:
            middle, right = left + rows * columns, left + rows * columns + columns
            weights = parameters[:, left:middle].reshape(-1, rows, columns)
            layers.append((weights, parameters[:, middle:right].reshape(-1, 1, columns)))
            left = right
        return layers

    def _forward(self, parameters: Array, X: Array) -> list[Array]:
        values = [X]
        for i, (weights, shift) in enumerate(self._layers(parameters)):
            value = values[-1] @ weights + shift
            values.append(np.maximum(value, 0.0) if i < 2 else value)
        return values

    def _loss(self, parameters: Array, X: Array, y: Array) -> tuple[Array, Array]:
        """Mean loss with the penalty (folds,), and its slope."""
        n, values, slope = X.shape[1], self._forward(parameters, X), np.zeros_like(parameters)
        logit = values[-1][..., 0]
        loss = (np.logaddexp(0.0, logit) - y * logit).mean(1)
        back = ((expit(logit) - y) / n)[..., None]
        layers, slopes = self._layers(parameters), self._layers(slope)
        for i in (2, 1, 0):
            weights = layers[i][0]
            slopes[i][0][:] = values[i].transpose(0, 2, 1) @ back + _PENALTY / n * weights
            slopes[i][1][:] = back.sum(1, keepdims=True)
            loss = loss + 0.5 * _PENALTY / n * (weights**2).sum((1, 2))
            if i:
                back = (back @ weights.transpose(0, 2, 1)) * (values[i] > 0.0)
        return loss, slope


class _Adam:
    """Steps by running means of slopes and of their squares."""

    def __init__(self, parameters: Array):
        self.first, self.second = np.zeros_like(parameters), np.zeros_like(parameters)
        self.taken = 0

    def step(self, parameters: Array, slope: Array, rows: Array) -> None:
        """Change the parameters of these rows, which have all taken the same number of steps."""
        self.taken += 1
        self.first[rows] = first = _DECAYS[0] * self.first[rows] + (1 - _DECAYS[0]) * slope
        self.second[rows] = second = _DECAYS[1] * self.second[rows] + (1 - _DECAYS[1]) * slope**2
        rate = _RATE * np.sqrt(1 - _DECAYS[1] ** self.taken) / (1 - _DECAYS[0] ** self.taken)
        parameters -= np.float32(rate) * first / (np.sqrt(second) + np.float32(1e-8))

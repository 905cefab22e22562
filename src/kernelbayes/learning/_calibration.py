r"""From raw class probabilities to probabilities that can be used: positive, normalised, as sure as they should be.

Regression on labels leaves [0, 1] and is often too timid or too bold. Here

.. math:: q_c \propto g(\hat p_c), \qquad \log g(p) = \gamma \log\big(\epsilon + \tau \log(1 + e^{p / \tau})\big) + s\, p

with one rising function g for all classes, so that the most probable class stays the same. The softplus of width
:math:`\tau` is p itself where p is well above zero. With small :math:`\tau` and :math:`\epsilon`, :math:`\gamma = 1` and
:math:`s = 0` this is the clip-normalisation (3.6) of Hsu (2019), which is right in the limit of much data; with
:math:`\gamma` near zero it is a softmax. The four numbers maximise the likelihood of labels given predictions without them
(leave-one-out) together with one imagined point of every class alike. Half of it is spread over the predictions, so that
no class gets probability zero. The other half has raw probabilities of zero and one: where left-out predictions never come
near those, nothing is known of them, and they mean nothing.
"""

from __future__ import annotations

import equinox as eqx
import numpy as np
import scipy.optimize

from .._typing import Array

# Starts and bounds of log width, log floor, power and slope.
_STARTS = ((-3.0, -4.0, 1.0, 0.0), (-2.0, -5.0, 1.0, 5.0))
_ROWS, _LEAST_SCORE = 2**16, -600.0
_BOUNDS = ((-7.0, 0.0), (-9.0, 0.0), (0.1, 10.0), (0.0, 60.0))


class Calibrator(eqx.Module):
    """The map from raw to calibrated probabilities.

    Attributes:
        width: of the softplus that takes the place of clipping at zero.
        floor: what a raw probability far below zero counts as.
        power, slope: how much surer, above 1 and 0, the calibrated probabilities are than the raw ones.
        loss: mean loss, in nats, on the predictions it was fitted to.
    """

    width: float = eqx.field(static=True)
    floor: float = eqx.field(static=True)
    power: float = eqx.field(static=True)
    slope: float = eqx.field(static=True)
    loss: float = eqx.field(static=True)

    def __call__(self, P: Array) -> Array:
        """Probabilities (t, m) from raw ones."""
        return np.concatenate([self._of(P[i : i + _ROWS]) for i in range(0, max(len(P), 1), _ROWS)])

    def _of(self, P: Array) -> Array:
        scores = _Scores(P, np.log(self.width), np.log(self.floor), self.power, self.slope).values
        masses = np.exp(np.maximum(scores - scores.max(1, keepdims=True), _LEAST_SCORE))  # none vanishes by underflow
        return masses / masses.sum(1, keepdims=True)


class _Scores:
    """`log g` at each raw probability, and its derivatives."""

    def __init__(self, P: Array, log_width: float, log_floor: float, power: float, slope: float):
        self.P, self.width, self.floor, self.power = P, np.exp(log_width), np.exp(log_floor), power
        self.away = np.exp(-np.abs(P / self.width))  # which the softplus and its slope share
        self.soft = np.maximum(P, 0.0) + self.width * np.log1p(self.away)
        self.log = np.log(self.soft + self.floor)
        self.values = power * self.log + slope * P

    def slopes(self) -> tuple[Array, ...]:
        """By log width, log floor, power and slope."""
        share = self.power / (self.soft + self.floor)
        rise = np.where(self.P > 0, 1.0, self.away) / (1.0 + self.away)
        return share * (self.soft - self.P * rise), share * self.floor, self.log, self.P


def fit_calibrator(P: Array, Y: Array, weights: Array) -> Calibrator:
    """Fit the map to left-out predictions P (n, m) of one-hot labels Y (n, m)."""
    n, m = Y.shape
    spread_out = (weights / weights.sum())[:, None] * (Y + 0.5 / (n * m))
    P, wanted = np.concatenate([P, np.eye(m)]), np.concatenate([spread_out, np.full((m, m), 0.5 / (n * m * m))])
    mass = wanted.sum(1, keepdims=True)

    def loss(theta: Array) -> tuple[float, Array]:
        scores = _Scores(P, *theta)
        above = scores.values - scores.values.max(1, keepdims=True)
        each = np.exp(above)
        total = each.sum(1, keepdims=True)
        pull = each * (mass / total) - wanted
        value = np.vdot(mass, np.log(total)) - np.vdot(wanted, above)
        return float(value), np.array([np.vdot(pull, slope) for slope in scores.slopes()])

    found = [scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=_BOUNDS) for start in _STARTS]
    best = min(found, key=lambda run: run.fun)
    width, floor, power, slope = (float(v) for v in best.x)
    return Calibrator(float(np.exp(width)), float(np.exp(floor)), power, slope, float(best.fun))

r"""Learning the scales and the regulariser of a kernel means likelihood. Hsu (2019), section 4.3.3, and a step beyond it.

Two objectives, both to be maximised over the scales :math:`\epsilon` of the epsilon-kernel, the lengthscale :math:`\beta`
of the kernel on the parameters' Gaussian coordinates, and the regulariser :math:`\lambda`:

* ``marginal``: the marginal kernel means likelihood (4.5) of the one observation there is. It rewards an
  :math:`\epsilon` that is as small as the simulations near the observation allow. Left alone with the regulariser it has
  no reason to stop at a function that makes sense, so :math:`\lambda = 10^{-3} \beta` unless given, as in section 4.9.
* ``posterior``: simulations that resemble the observation take its place, each left out of the pairs, and the posterior
  density of the parameters that were really behind it is scored. With :math:`f_i` the likelihood of simulation i learned
  without it,

  .. math:: \frac1R \sum_i \log \Big( (1 - \eta)\,
            \frac{g_i(\theta_i)}{\sum_t w_t g_i(\tilde\theta_t) + g_i(\theta_i) / T} + \eta \Big),
            \qquad g_i = (f_i - \tau_i)_+, \quad \tau_i = \max_t (-f_i(\tilde\theta_t))_+

  is the logarithmic score of the posterior density relative to the prior. A likelihood is not negative: how far the
  estimate falls below zero tells how large its errors are, and what does not rise above zero by as much is taken for
  zero as well (`above_noise`). The points :math:`\tilde\theta_t` integrate over the prior with weights :math:`w_t`. The
  parameters themselves count among them, which bounds what a spike can gain, and the share :math:`\eta` of the prior
  bounds what a miss can cost. This is a proper score of what the user will look at, so it is the default.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from .._backend import namespace
from .._linalg import FactorisationError, solve
from .._typing import AnyArray, Array
from ..kernels import Gaussian, positive
from ..rules import kernel_means
from ._optimise import minimise
from ._search import pattern_search

# A share of the prior in every posterior that is scored, which bounds the price of a miss.
MISS = 0.05
# Hsu (2019), section 4.9: the regulariser that goes with a lengthscale when the marginal likelihood is maximised.
REG_PER_LENGTHSCALE = 1e-3
# What a factor e between the scale of one statistic and their mean scale costs, in nats divided by the number of scales.
_PRICE_OF_DIFFERENCE = 0.02
# However large the errors, what rises to this share of the top is no error.
_MOST_NOISE = 0.75
# A likelihood should rest on so many simulations; a factor e fewer costs so many nats.
_ENOUGH, _PRICE_OF_FEW = 10.0, 0.1
BETA_BOUNDS, REG_BOUNDS, EPSILON_BOUNDS = (0.02, 20.0), (1e-12, 10.0), (1e-3, 30.0)


class Scales(NamedTuple):
    """What is learned."""

    epsilon: Array
    beta: float
    reg: float


class Replicates(NamedTuple):
    """Simulations that stand for the observation, and the points that integrate over the prior.

    Attributes:
        Z: coordinates (m, d) of the parameters.
        rows: (R,) simulations in the place of the observation.
        squares: (m, R, g) squared differences from them.
        points: (T, d) coordinates at which likelihoods are integrated.
        weights: (T,) that turn a sum over them into an integral under the prior.
    """

    Z: Array
    rows: Array
    squares: Array
    points: Array
    weights: Array


def noise_floor(values: AnyArray) -> AnyArray:
    """How far estimated likelihoods (T, ...) fall below zero; at most a share of the largest, so that something is left."""
    xp = namespace(values)
    return xp.clip(-values.min(0), 0.0, _MOST_NOISE * xp.maximum(values.max(0), 0.0))


def above_noise(values: AnyArray, floor: AnyArray) -> AnyArray:
    """Estimated likelihoods as far as they rise above their errors."""
    return namespace(values, floor).maximum(values - floor, 0.0)


def score(own: AnyArray, elsewhere: AnyArray, weights: AnyArray) -> AnyArray:
    """Mean logarithmic score, from likelihoods at the true parameters (R,) and at the points (T, R)."""
    xp = namespace(own, elsewhere)
    floor = noise_floor(elsewhere)
    own, elsewhere = above_noise(own, floor), above_noise(elsewhere, floor)
    mass = weights @ elsewhere + own / weights.shape[0]
    density = own / xp.where(mass > 0, mass, 1.0)
    return xp.log((1.0 - MISS) * density + MISS).mean()


def kappa_of(squares: AnyArray, epsilon: AnyArray) -> AnyArray:
    """Epsilon-kernels without their constant, from squared differences (..., g)."""
    xp = namespace(squares, epsilon)
    return xp.exp(-0.5 * (squares / epsilon**2).sum(-1))


def price_of_few(kappa: AnyArray, rows: AnyArray) -> AnyArray:
    """What it costs, in nats, that a likelihood rests on few simulations: nothing from `_ENOUGH` of them on.

    A posterior about the one simulation that resembles an observation most, as wide as such a guess needs to be, can score
    as well as one that is learned from many. It is just less to rely on, so the latter is preferred.
    """
    xp = namespace(kappa)
    others = kappa * (1.0 - xp.eye(kappa.shape[0])[:, rows])
    effective = others.sum(0) ** 2 / xp.maximum((others**2).sum(0), 1e-300)
    return _PRICE_OF_FEW * xp.maximum(math.log(_ENOUGH) - xp.log(xp.maximum(effective, 1.0)), 0.0).mean()


def posterior_score(scales: Scales, sample: Replicates) -> float:
    """The objective `posterior` at one setting."""
    kernel = Gaussian(scales.beta)
    L = kernel._gram(sample.Z, sample.Z)
    factor = kernel_means.operator(L, scales.reg)
    kappa = kappa_of(sample.squares, scales.epsilon)
    V = kernel_means.weights_without(factor, kappa, sample.rows)
    own = (L[sample.rows] * V.T).sum(1)
    value = score(own, kernel._gram(sample.points, sample.Z) @ V, sample.weights)
    return float(value - price_of_few(kappa, sample.rows))


class _Epsilon(eqx.Module):
    """The scales of the statistics, for the optimiser."""

    epsilon: AnyArray = positive()


class _Prepared(NamedTuple):
    """All of the objective that does not depend on the scales of the statistics."""

    squares: Array
    inverse_rows: Array  # (R, m): rows of (L + m reg I)^-1
    own: Array  # (R,): its diagonal there
    smoother: Array  # (T, m): likelihoods at the points from values at the simulations
    to_rows: Array  # (R, m): the same at the parameters left out
    weights: Array
    rows: Array


def _loss_of_epsilon(params: _Epsilon, data: _Prepared) -> AnyArray:
    """Minus the score as a function of the scales, with a small price on their differences."""
    xp = namespace(params.epsilon)
    K = kappa_of(data.squares, params.epsilon)
    ratio = (data.inverse_rows * K.T).sum(1) / data.own
    left = xp.asarray(data.smoother)
    elsewhere = left @ K - left[:, data.rows] * ratio
    own = (data.to_rows * K.T).sum(1) - xp.diagonal(data.to_rows[:, data.rows]) * ratio
    log = xp.log(params.epsilon)
    price = _PRICE_OF_DIFFERENCE * ((log - log.mean()) ** 2).mean()
    return price + price_of_few(K, data.rows) - score(own, elsewhere, data.weights)


def prepare(scales: Scales, sample: Replicates) -> _Prepared:
    """Factorise once for a search over the scales of the statistics."""
    kernel = Gaussian(scales.beta)
    L = kernel._gram(sample.Z, sample.Z)
    factor = kernel_means.operator(L, scales.reg)
    inverse = np.asarray(solve(factor, np.eye(len(L))[:, sample.rows])).T
    smoother = np.asarray(solve(factor, kernel._gram(sample.Z, sample.points))).T
    to_rows = np.asarray(solve(factor, L[:, sample.rows])).T
    own = inverse[np.arange(len(sample.rows)), sample.rows]
    return _Prepared(sample.squares, inverse, own, smoother, to_rows, sample.weights, sample.rows)


def log_marginal(scales: Scales, Z: Array, squares: Array, powers: Array, mu: Any) -> float:
    """Logarithm of the marginal kernel means likelihood (4.5), without the constant; minus infinity if it is negative.

    `mu(beta)` is the prior's embedding at the parameters.
    """
    kernel = Gaussian(scales.beta)
    exponent = -0.5 * (squares / scales.epsilon**2).sum(-1)
    largest = exponent.max()
    factor = kernel_means.operator(kernel._gram(Z, Z), scales.reg)
    q = float(kernel_means.marginal(kernel_means.weights(factor, np.exp(exponent - largest)), mu(scales.beta)))
    return math.log(q) + largest - float((powers * np.log(scales.epsilon)).sum()) if q > 0 else -math.inf


class Learned(NamedTuple):
    """Where a search ended."""

    scales: Scales
    value: float
    evaluations: int
    on_bound: tuple[str, ...]


class Fixed(NamedTuple):
    """What the user has settled; None is to be learned."""

    epsilon: Array | None = None
    beta: float | None = None
    reg: float | None = None


def search(objective: Any, start: Scales, fixed: Fixed, *, groups: int, tie_reg: bool, budget: int) -> Learned:
    """Maximise an objective over one scale for all statistics, the lengthscale and the regulariser, without slopes."""
    free = [name for name in ("epsilon", "beta", "reg") if getattr(fixed, name) is None]
    if tie_reg and fixed.reg is None:
        free.remove("reg")
    bounds = {"epsilon": EPSILON_BOUNDS, "beta": BETA_BOUNDS, "reg": REG_BOUNDS}

    def scales(point: Array) -> Scales:
        values = {
            "epsilon": fixed.epsilon,
            "beta": fixed.beta,
            "reg": fixed.reg,
            **dict(zip(free, np.exp(point), strict=True)),
        }
        if values["reg"] is None:
            values["reg"] = REG_PER_LENGTHSCALE * values["beta"]
        return Scales(np.broadcast_to(values["epsilon"], (groups,)), float(values["beta"]), float(values["reg"]))

    def loss(point: Array) -> float:
        try:
            return -objective(scales(point))
        except FactorisationError:
            return math.inf

    first = np.array([math.log(np.mean(getattr(start, name))) for name in free])
    lower, upper = (np.log([bounds[name][side] for name in free]) for side in (0, 1))
    step = np.array([{"epsilon": math.log(2.0), "beta": math.log(2.0), "reg": math.log(10.0)}[name] for name in free])
    if not free:
        return Learned(scales(first), -loss(first), 1, ())
    found = pattern_search(loss, first, step, lower, upper, budget=budget)
    # a regulariser without end is no trouble: only the shape of the likelihood matters, and that converges
    edges = [
        name
        for name, x, a, b in zip(free, found.point, lower, upper, strict=True)
        if x - a < 1e-6 or (b - x < 1e-6 and name != "reg")
    ]
    return Learned(scales(found.point), -found.value, found.evaluations, tuple(edges))


def one_by_one(objective: Any, start: Learned, *, budget: int) -> Learned:
    """Maximise over a scale for each statistic, without slopes, from one scale for all."""
    first, (low, high) = np.log(start.scales.epsilon), np.log(EPSILON_BOUNDS)
    g = len(first)
    found = pattern_search(
        lambda point: -objective(start.scales._replace(epsilon=np.exp(point))),
        first,
        np.full(g, math.log(2.0)),
        np.full(g, low),
        np.full(g, high),
        budget=budget,
    )
    moved = start.scales._replace(epsilon=np.exp(found.point))
    return Learned(moved, -found.value, start.evaluations + found.evaluations, start.on_bound)


def refine_epsilon(scales: Scales, sample: Replicates, max_iter: int = 60) -> Learned:
    """Give each statistic a scale of its own, by L-BFGS-B from one scale for all; keeps the start if nothing is better."""
    data = prepare(scales, sample)
    start = _Epsilon(np.array(scales.epsilon))
    low, high = EPSILON_BOUNDS
    found = minimise(
        _loss_of_epsilon, start, (data,), bounds={"epsilon": (low, 100 * high)}, max_iter=max_iter, tol=1e-5, warn=False
    )
    moved = Scales(np.asarray(found.params.epsilon), scales.beta, scales.reg)
    return Learned(moved, -float(found.value), found.evaluations, ())

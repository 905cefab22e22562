r"""Learning the scales and the regulariser of a kernel means likelihood. Hsu (2019), section 4.3.3, and a step beyond it.

Two objectives, both to be maximised over the scales :math:`\epsilon` of the epsilon-kernel, the lengthscale :math:`\beta`
of the kernel on the parameters' Gaussian coordinates, and the regulariser :math:`\lambda`:

* ``marginal``: the marginal kernel means likelihood (4.5) of the one observation there is. It rewards an
  :math:`\epsilon` that is as small as the simulations near the observation allow. Left alone with the regulariser it has
  no reason to stop at a function that makes sense, so :math:`\lambda = 10^{-3} \beta` unless given, as in section 4.9.
* ``posterior``: simulations that resemble the observation take its place, each left out of the pairs, and the posterior
  density of the parameters that were really behind it is scored. With :math:`f_i` the likelihood of simulation i learned
  without it,

  .. math:: \sum_i s_i \log \Big( (1 - \eta)\,
            \frac{g_i(\theta_i)}{\sum_t w_t g_i(\tilde\theta_t) + g_i(\theta_i) / T} + \eta \Big),
            \qquad g_i = (f_i - \tau_i)_+, \quad \tau_i = \max_t (-f_i(\tilde\theta_t))_+

  is the logarithmic score of the posterior density relative to the prior. A likelihood is not negative: how far the
  estimate falls below zero tells how large its errors are, and what does not rise above zero by as much is taken for
  zero as well (`above_noise`). The points :math:`\tilde\theta_t` integrate over the prior with weights :math:`w_t`. The
  parameters themselves count among them, which bounds what a spike can gain, and the share :math:`\eta` of the prior
  bounds what a miss can cost. The shares :math:`s_i` are 1/R, or in proportion to :math:`p(\theta_i) / \pi(\theta_i)`
  where parameters were drawn from a proposal :math:`\pi`: otherwise it would be the posterior under the proposal that is
  scored, which is narrower where proposals gather about the posterior. This is a proper score of what the user will look
  at, so it is the default.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from .._backend import namespace
from .._linalg import FactorisationError, solve
from .._typing import AnyArray, Array
from ..kernels import Gaussian
from ..kernels._distributions import Normal
from ..kernels._stationary import squared_distances
from ..rules import kernel_means
from ..rules.regression_adjustment import moments
from ._optimise import PULL
from ._search import pattern_search

# A share of the prior in every posterior that is scored, which bounds the price of a miss.
MISS = 0.05
# Hsu (2019), section 4.9: the regulariser that goes with a lengthscale when the marginal likelihood is maximised.
REG_PER_LENGTHSCALE = 1e-3
# What a factor e between the scale of one statistic and their mean scale costs, in nats divided by the number of scales.
_PRICE_OF_DIFFERENCE = 0.02
# However large the errors, what rises to this share of the top is no error.
_MOST_NOISE = 0.5
# A likelihood should rest on so many simulations; a factor e fewer costs so many nats.
_ENOUGH, _PRICE_OF_FEW = 10.0, 0.1
# Of a normal about a posterior, in coordinates in which the prior has variance one.
_LEAST_VARIANCE = 1e-6
# On the edge of a search, what a step back must cost, in nats, for the edge to matter.
_NOTICED = 0.01
# Settings whose matrices are kept in a search.
_KEPT = 3
BETA_BOUNDS, REG_BOUNDS, EPSILON_BOUNDS = (0.002, 20.0), (1e-12, 10.0), (1e-3, 30.0)


class Scales(NamedTuple):
    """What is learned."""

    epsilon: Array
    beta: float
    reg: float


@dataclasses.dataclass(frozen=True, eq=False)
class Replicates:
    """Simulations that stand for the observation, and the points that integrate over the prior.

    Attributes:
        Z: coordinates (m, d) of the parameters.
        rows: (R,) simulations in the place of the observation.
        squares: (m, R, g) squared differences from them.
        points: (T, d) coordinates at which likelihoods are integrated.
        weights: (T,) that turn a sum over them into an integral under the prior.
        ratio: (m,) the prior's density over that from which the parameters were drawn; None where they follow the prior.
        shares: (R,) of the replicates in the score: as the prior has it, where parameters were drawn from something else.
        groups: (m,) the same label for simulations that are left out together; None for each by itself.
    """

    Z: Array
    rows: Array
    squares: Array
    points: Array
    weights: Array
    shares: Array
    ratio: Array | None = None
    groups: Array | None = None

    @functools.cached_property
    def places(self) -> kernel_means.Places:
        """The p parameters that differ."""
        return kernel_means.Places.gathered(self.Z, self.groups, self.ratio)

    @functools.cached_property
    def at(self) -> Array:
        """The place (R,) of each replicate, which is left out of what is learned for it."""
        return self.places.rows(self.rows)

    @functools.cached_property
    def between(self) -> Array:
        """Squared distances (p, p) of the places."""
        return squared_distances(self.places.Z, self.places.Z)

    @functools.cached_property
    def across(self) -> Array:
        """Squared distances (T, p) of the points from the places."""
        return squared_distances(self.points, self.places.Z)

    @functools.cached_property
    def grams(self) -> Callable[[float], tuple[Array, Array]]:
        """Gram matrices (p, p) of the places and (T, p) with the points, at a lengthscale.

        The last few are kept, here and in `operators`: a search without slopes changes one setting at a time.
        """

        def at(beta: float) -> tuple[Array, Array]:
            exponents = self.between * (-0.5 / beta**2), self.across * (-0.5 / beta**2)
            return np.exp(exponents[0], out=exponents[0]), np.exp(exponents[1], out=exponents[1])

        return functools.lru_cache(_KEPT)(at)

    @functools.cached_property
    def operators(self) -> Callable[[float, float], tuple[Array, Array]]:
        """Factor of the regularised Gram matrix, and columns (p, R) of its inverse, at a lengthscale and regulariser."""

        def at(beta: float, reg: float) -> tuple[Array, Array]:
            factor = kernel_means.operator(self.grams(beta)[0], reg, self.places.ratio)
            return factor, kernel_means.inverse_columns(factor, self.at)

        return functools.lru_cache(_KEPT)(at)


def noise_floor(values: AnyArray) -> AnyArray:
    """How far estimated likelihoods (T, ...) fall below zero; at most a share of the largest, so that something is left."""
    xp = namespace(values)
    return xp.clip(-values.min(0), 0.0, _MOST_NOISE * xp.maximum(values.max(0), 0.0))


def above_noise(values: AnyArray, floor: AnyArray) -> AnyArray:
    """Estimated likelihoods as far as they rise above their errors."""
    return namespace(values, floor).maximum(values - floor, 0.0)


def expected_about(Z: Array, weights: Array, beta: float) -> Normal:
    """A normal that covers the posterior of parameters Z (m, d) whose simulations resemble the observation by weights (m,).

    Wider than the neighbourhood, and never flat: where it is used, draws of it are weighted to follow the posterior.
    """
    near = moments(Z, weights)
    return Normal(near.mean, 2.0 * near.covariance + (0.25 * beta**2 + _LEAST_VARIANCE) * np.eye(Z.shape[1]))


def scores(own: AnyArray, elsewhere: AnyArray, weights: AnyArray) -> AnyArray:
    """Logarithmic scores (R,), from likelihoods at the true parameters (R,) and at the points (T, R)."""
    xp = namespace(own, elsewhere)
    floor = noise_floor(elsewhere)
    own, elsewhere = above_noise(own, floor), above_noise(elsewhere, floor)
    mass = weights @ elsewhere + own / weights.shape[0]
    density = own / xp.where(mass > 0, mass, 1.0)
    return xp.log((1.0 - MISS) * density + MISS)


def kappa_of(squares: AnyArray, epsilon: AnyArray) -> AnyArray:
    """Epsilon-kernels without their constant, from squared differences (..., g)."""
    return namespace(squares, epsilon).exp(squares @ (-0.5 / epsilon**2))


def price_of_few(kappa: AnyArray, rows: AnyArray) -> AnyArray:
    """What it costs, in nats, that a likelihood rests on few places: nothing from `_ENOUGH` of them on.

    `kappa` (p, R) are the means of the epsilon-kernels there, and `rows` the places in the observation's place.

    A posterior about the one simulation that resembles an observation most, as wide as such a guess needs to be, can score
    as well as one that is learned from many. It is just less to rely on, so the latter is preferred.
    """
    xp = namespace(kappa)
    others = kappa * (xp.arange(kappa.shape[0])[:, None] != rows)  # all but the one in the observation's place
    effective = others.sum(0) ** 2 / xp.maximum((others**2).sum(0), 1e-300)
    return _PRICE_OF_FEW * xp.maximum(math.log(_ENOUGH) - xp.log(xp.maximum(effective, 1.0)), 0.0).mean()


class LeftOut(NamedTuple):
    """Likelihoods of the replicates, each learned without the simulation in the observation's place.

    Attributes:
        kappa: epsilon-kernels (m, R).
        means: their means (p, R) at the places.
        V: weights (p, R) of the likelihoods.
        own: their values (R,) at the parameters that were really behind it.
        elsewhere: their values (T, R) at the points.
    """

    kappa: Array
    means: Array
    V: Array
    own: Array
    elsewhere: Array


def left_out(scales: Scales, sample: Replicates) -> LeftOut:
    """The likelihoods that are scored, at one setting."""
    L, across = sample.grams(scales.beta)
    factor, inverse = sample.operators(scales.beta, scales.reg)
    kappa = kappa_of(sample.squares, scales.epsilon)
    means = sample.places.mean(kappa)
    V = kernel_means.weights_without(factor, means, sample.at, inverse)
    return LeftOut(kappa, means, V, (L[sample.at] * V.T).sum(1), across @ V)


def posterior_score(scales: Scales, sample: Replicates) -> float:
    """The objective `posterior` at one setting."""
    found = left_out(scales, sample)
    value = sample.shares @ scores(found.own, found.elsewhere, sample.weights)
    return float(value - price_of_few(found.means, sample.at))


class EpsilonLoss:
    """Minus the score as a function of the logarithms of the scales, with its slope; the rest is factorised once.

    The slope is written out rather than traced: compiling it would take longer than the whole search.
    """

    def __init__(self, scales: Scales, sample: Replicates):
        L, across = sample.grams(scales.beta)
        factor, columns = sample.operators(scales.beta, scales.reg)
        rows, inverse = sample.at, columns.T
        each = np.arange(len(rows))
        # what takes values at the places to the points and to the parameters
        self.smoother = np.asarray(solve(factor, across.T)).T
        self.to_rows = np.asarray(solve(factor, L[:, rows])).T
        self.ratio = inverse / inverse[each, rows][:, None]
        self.at_rows, self.own = self.smoother[:, rows], self.to_rows[each, rows]
        self.sample = sample
        self.others = np.ones((len(L), len(rows)))
        self.others[rows, each] = 0.0

    def __call__(self, log_epsilon: Array) -> tuple[float, Array]:
        squares, places = self.sample.squares, self.sample.places
        kappa = kappa_of(squares, np.exp(log_epsilon))
        K = places.mean(kappa)
        left_out = (self.ratio * K.T).sum(1)
        elsewhere = self.smoother @ K - self.at_rows * left_out
        own = (self.to_rows * K.T).sum(1) - self.own * left_out
        value, own_slope, elsewhere_slope = _score_and_slopes(own, elsewhere, self.sample.weights, self.sample.shares)
        through = -(elsewhere_slope * self.at_rows).sum(0) - own_slope * self.own
        K_slope = self.smoother.T @ elsewhere_slope + self.to_rows.T * own_slope + self.ratio.T * through
        few, few_slope = self._few(K)
        by_log = (places.back(few_slope - K_slope) * kappa).ravel()
        slope = by_log @ squares.reshape(-1, squares.shape[-1]) * np.exp(-2.0 * log_epsilon)
        apart = log_epsilon - log_epsilon.mean()
        price = _PRICE_OF_DIFFERENCE * (apart**2).mean()
        return price + few - value, slope + 2.0 * _PRICE_OF_DIFFERENCE * apart / len(apart)

    def _few(self, K: Array) -> tuple[float, Array]:
        """`price_of_few` and its slope."""
        others = K * self.others
        total, squared = others.sum(0), np.maximum((others**2).sum(0), 1e-300)
        effective = total**2 / squared
        active = (effective < _ENOUGH) & (effective > 1.0)
        weight = np.where(active, _PRICE_OF_FEW / K.shape[1], 0.0)
        slope = -weight * 2.0 * (self.others / np.maximum(total, 1e-300) - others / squared)
        return float(price_of_few(K, self.sample.at)), slope


def _score_and_slopes(own: Array, elsewhere: Array, weights: Array, shares: Array) -> tuple[float, Array, Array]:
    """The score, and its slopes with respect to the likelihoods at the parameters (R,) and at the points (T, R)."""
    T, R = elsewhere.shape
    floor, each = noise_floor(elsewhere), np.arange(R)
    own_above, above = own > floor, elsewhere > floor
    f, g = above_noise(own, floor), above_noise(elsewhere, floor)
    mass = weights @ g + f / T
    mass = np.where(mass > 0, mass, 1.0)
    mixed = (1.0 - MISS) * f / mass + MISS
    of_density = (1.0 - MISS) * shares / mixed
    of_own = of_density * (1.0 / mass - f / (mass**2 * T)) * own_above
    of_elsewhere = -weights[:, None] * (of_density * f / mass**2) * above
    of_floor = -of_own - of_elsewhere.sum(0)
    low, high = elsewhere.argmin(0), elsewhere.argmax(0)
    depth, most = -elsewhere[low, each], _MOST_NOISE * np.maximum(elsewhere[high, each], 0.0)
    np.add.at(of_elsewhere, (low, each), np.where((depth > 0) & (depth <= most), -of_floor, 0.0))
    np.add.at(of_elsewhere, (high, each), np.where(depth > most, _MOST_NOISE * of_floor, 0.0))
    return float(shares @ np.log(mixed)), of_own, of_elsewhere


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
    """Maximise an objective over one scale for all statistics, the lengthscale and the regulariser, without slopes.

    Where it is flat they stay near the start: see `PULL`.
    """
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
            return PULL * float(((point - first) ** 2).sum()) - objective(scales(point))
        except FactorisationError:
            return math.inf

    first = np.array([math.log(np.mean(getattr(start, name))) for name in free])
    lower, upper = (np.log([bounds[name][side] for name in free]) for side in (0, 1))
    step = np.array([{"epsilon": math.log(2.0), "beta": math.log(2.0), "reg": math.log(10.0)}[name] for name in free])
    if not free:
        return Learned(scales(first), -loss(first), 1, ())
    found = pattern_search(loss, first, step, lower, upper, budget=budget)
    # a regulariser without end is no trouble: only the shape of the likelihood matters, and that converges
    at_lower, at_upper = found.point - lower < 1e-6, (upper - found.point < 1e-6) & (np.array(free) != "reg")
    edges = []
    for j in np.flatnonzero(at_lower | at_upper):
        back = found.point.copy()
        back[j] += step[j] if at_lower[j] else -step[j]
        if loss(back) > found.value + _NOTICED:
            edges.append(free[j])
    value = PULL * float(((found.point - first) ** 2).sum()) - found.value
    return Learned(scales(found.point), value, found.evaluations, tuple(edges))


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
    """Give each statistic a scale of its own, by L-BFGS-B from one scale for all."""
    low, high = np.log(EPSILON_BOUNDS)
    start = np.log(scales.epsilon)
    found = scipy.optimize.minimize(
        EpsilonLoss(scales, sample),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, high + math.log(100.0))] * len(start),
        options={"maxiter": max_iter, "ftol": 1e-5, "gtol": 1e-5},
    )
    moved = Scales(np.exp(found.x), scales.beta, scales.reg)
    return Learned(moved, -float(found.fun), int(found.nfev), ())

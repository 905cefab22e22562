r"""Epsilon-kernels: how likely an observation is where something like it was simulated. Hsu (2019), 4.2, 4.5, 4.6.

Every one of them has the form :math:`\kappa_\epsilon(y, x) \propto \prod_g \epsilon_g^{-p_g} \exp(-\frac12 \sum_g
d_g^2(y, x) / \epsilon_g^2)`: a few squared differences, each on a scale of its own that is learned.

| paper | here | squared differences | powers p |
|---|---|---|---|
| (4.1), Gaussian | `GaussianEpsilon` | one for each statistic, standardised | 1 each |
| 4.6, iid | `IidEpsilon` | over all values of a data set, sorted | their number |
| 4.6, MMD | `MMDEpsilon` | squared MMD of two data sets | unknown: taken as 1 |
| (4.39), spatio-temporal | `SpatioTemporalEpsilon` | under the predictive covariance of a Gaussian process | their number |
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from .. import _check
from .._linalg import cholesky, solve, solve_lower
from .._typing import Array
from .._warning import warn_user
from ..kernels import Gaussian, Kernel, check_kernel
from ..kernels._stationary import squared_distances

# More columns than this share one scale: they are a raw data set, not statistics that someone chose.
_MOST_SCALES = 32
# 1.4826 times the median absolute deviation is the standard deviation of a normal sample.
_NORMAL = 1.4826
# Quantiles through which statistics are taken to normal scores.
_KNOTS = 20
# A tail is long where this share of the simulations is farther than so many spreads from the median. It is 2.1 of them for
# normal statistics, 3.1 for a t distribution of three degrees of freedom, 4.5 for an exponential one.
_TAIL, _LONG = 0.02, 2.75


@dataclasses.dataclass(frozen=True, eq=False)
class Comparison:
    """Simulations in coordinates `left` (m, q) to be compared with observations in coordinates `right` (m, q).

    Attributes:
        left: of simulations as simulations.
        right: of simulations as observations: the same but where an observation is not treated like a simulation.
        observed: of the real observation (q,).
        names: of the groups of columns that have a scale of their own.
        grouped: whether all columns share one scale.
        powers: (g,) of the scales in the density.
        units: (g,) by which a scale is multiplied to be in the units of the outputs.
    """

    left: Array
    right: Array
    observed: Array
    names: tuple[str, ...]
    powers: Array
    units: Array

    @property
    def grouped(self) -> bool:
        """Whether all columns share one scale."""
        return len(self.names) == 1 and self.left.shape[1] > 1

    def squares(self, targets: Array) -> Array:
        """Squared differences (m, t, g) of all simulations from observations (t, q)."""
        if self.grouped:
            return squared_distances(self.left, targets)[:, :, None]
        return (self.left[:, None, :] - targets[None]) ** 2

    def from_observed(self) -> Array:
        """Squared differences (m, g) from the real observation."""
        return self.squares(self.observed[None])[:, 0]

    def subset(self, rows: Array) -> Comparison:
        """The same for some of the simulations."""
        return dataclasses.replace(self, left=self.left[rows], right=self.right[rows])


class EpsilonKernel(abc.ABC):
    """A way to compare an observation with simulations; made into a `Comparison` by the data."""

    @abc.abstractmethod
    def bind(self, outputs: Array, observed: Array, names: tuple[str, ...]) -> Comparison:
        """Compare these outputs (m, ...) with one observation (...)."""


@dataclasses.dataclass(frozen=True)
class GaussianEpsilon(EpsilonKernel):
    """Statistics that differ by independent normal errors, each with its own scale; (4.1) of Hsu (2019).

    Args:
        standardise: divide each statistic by its spread over the simulations (1.48 times the median absolute deviation),
            so that one scale for all means something. False compares them as they are.
        ranks: compare standardised statistics by their normal scores, which follow from their ranks among the simulations.
            By default this is done for statistics with a tail longer than that of a normal, where no one scale suits both
            the middle and the tail. More than 32 outputs are taken for raw data and are never ranked.
    """

    standardise: bool = True
    ranks: bool | None = None

    def bind(self, outputs: Array, observed: Array, names: tuple[str, ...]) -> Comparison:
        X, y = outputs.reshape(len(outputs), -1), observed.reshape(-1)
        units = spreads(X) if self.standardise else np.ones(X.shape[1])
        flat = units == 0
        if flat.any():
            explain_constant(X, y, flat, names)
            if flat.all():
                raise ValueError("outputs are the same number in every simulation; there is nothing to learn from")
            X, y, units = X[:, ~flat], y[~flat], units[~flat]
            names = tuple(n for n, gone in zip(names, flat, strict=True) if not gone)
        X, y = _in_units(X, y, units)
        if len(names) > _MOST_SCALES:
            return Comparison(X, X, y, ("all outputs",), np.array([float(X.shape[1])]), np.ones(1))
        if self.standardise:
            long = long_tailed(X) if self.ranks is None else np.full(len(y), self.ranks)
            X[:, long], y[long] = normal_scores(X[:, long], y[long])
        return Comparison(X, X, y, names, np.ones(len(names)), units)


def _in_units(X: Array, y: Array, units: Array | float) -> tuple[Array, Array]:
    """Outputs and observation in units of the spread of the outputs."""
    with np.errstate(over="ignore"):  # what becomes infinite is refused as such
        X, y = X / units, y / units
    if np.abs(y).max() > _check.LARGEST:
        raise ValueError("outputs hardly vary: observed is more than 1e100 of their spreads away from them")
    return X, y


def spreads(X: Array) -> Array:
    """A robust spread of each column: by the median absolute deviation, or the standard deviation where that is zero."""
    spread = _NORMAL * np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    return np.where(spread > 0, spread, X.std(axis=0))


def long_tailed(X: Array) -> Array:
    """Which columns (q,), in units of their spread, have 2 % of their values far on one side of the median."""
    low, middle, high = np.quantile(X, [_TAIL, 0.5, 1.0 - _TAIL], axis=0)
    return np.maximum(middle - low, high - middle) > _LONG


def normal_scores(X: Array, y: Array) -> tuple[Array, Array]:
    """Columns (m, q), and a point (q,), on a scale on which each column is about a standard normal sample.

    A line through few quantiles of each: following every rank would follow its noise. Beyond the sample it goes on with
    slope one.
    """
    top = float(ndtri(1.0 - 0.5 / len(X)))
    scores = np.linspace(-top, top, _KNOTS)
    out, at = np.empty_like(X), np.empty_like(y)
    for j, column in enumerate(X.T):
        values, tied = np.unique(np.quantile(column, ndtr(scores), method="hazen"), return_inverse=True)
        knots = np.bincount(tied, scores) / np.bincount(tied)
        out[:, j] = np.interp(column, values, knots)
        nearest = np.clip(y[j], values[0], values[-1])
        at[j] = np.interp(nearest, values, knots) + (y[j] - nearest)
    return out, at


def explain_constant(X: Array, y: Array, flat: Array, names: tuple[str, ...]) -> None:
    """Warn of those outputs (p,) of simulations (m, p) that never vary, whatever was observed (..., p)."""
    constant = [n for n, gone in zip(names, flat, strict=True) if gone]
    differs = (X[0] != y)[..., flat].any()
    text = f"the outputs {', '.join(constant)} are the same in every simulation and are left out"
    if differs:
        text += "; the observation has another value there, which no simulation reproduces"
    warn_user(text)


@dataclasses.dataclass(frozen=True)
class IidEpsilon(EpsilonKernel):
    """Data sets of independent values, all compared, on one scale; section 4.6 of Hsu (2019).

    Args:
        sort: compare order statistics, so that the order in which values were drawn does not matter. False compares the
            first with the first, as the formula is printed.
    """

    sort: bool = True

    def bind(self, outputs: Array, observed: Array, names: tuple[str, ...]) -> Comparison:
        X, y = _data_sets(outputs, observed)
        if self.sort:
            X, y = np.sort(X, axis=1), np.sort(y, axis=0)
        unit = _pooled_spread(X)
        X, y = X.reshape(len(X), -1) / unit, y.reshape(-1) / unit
        return Comparison(X, X, y, ("all values",), np.array([float(X.shape[1])]), np.array([unit]))


def _data_sets(outputs: Array, observed: Array) -> tuple[Array, Array]:
    """Data sets (m, n, d) and (n, d) from arrays that may lack the last axis."""
    if outputs.ndim == 2:
        outputs, observed = outputs[:, :, None], observed[:, None]
    if outputs.ndim != 3 or outputs.shape[1] < 2:
        raise ValueError(
            f"this epsilon-kernel compares data sets: outputs must be (runs, values) or (runs, values, columns), "
            f"got shape {outputs.shape}"
        )
    return outputs, observed


def _pooled_spread(X: Array) -> float:
    unit = float(spreads(X.reshape(-1, 1))[0])
    if unit == 0:
        raise ValueError("outputs are the same number in every simulation; there is nothing to learn from")
    return unit


@dataclasses.dataclass(frozen=True)
class MMDEpsilon(EpsilonKernel):
    """Data sets compared by the maximum mean discrepancy of their values; section 4.6 of Hsu (2019), Park et al. (2016).

    Each data set becomes its mean embedding, in the coordinates of reference points drawn from all of them, so that the
    squared discrepancy is a squared distance.

    Args:
        kernel: of one value. By default Gaussian with the median distance between values.
        reference: how many reference points.
    """

    kernel: Kernel | None = None
    reference: int = 200

    def bind(self, outputs: Array, observed: Array, names: tuple[str, ...]) -> Comparison:
        X, y = _data_sets(outputs, observed)
        values = X.reshape(-1, X.shape[2])
        rng = np.random.default_rng(0)
        some = values[rng.choice(len(values), min(self.reference, len(values)), replace=False)]
        anchors = np.unique(np.concatenate([some, y]), axis=0)
        kernel = self._kernel(some, y)
        factor = np.asarray(cholesky(kernel.gram(anchors, anchors), "the Gram matrix of reference values", 1e-10))
        embedded = [solve_lower(factor, kernel.gram(anchors, values_of).mean(1)) for values_of in (*X, y)]
        F = np.asarray(embedded)
        unit = float(np.sqrt(np.median(squared_distances(F[:-1], F[-1:]))))
        unit = unit if unit > 0 else 1.0
        # its density is unknown: the power is that of a discrepancy of one dimension
        return Comparison(F[:-1] / unit, F[:-1] / unit, F[-1] / unit, ("discrepancy",), np.ones(1), np.array([unit]))

    def _kernel(self, some: Array, y: Array) -> Kernel:
        if self.kernel is not None:
            return check_kernel(self.kernel, "kernel")
        pooled = np.concatenate([some, y])
        # data sets under a vague prior differ by orders of magnitude: the observed one sets the scale
        own = float(np.median(np.sqrt(squared_distances(y, y))[np.triu_indices(len(y), 1)]))
        wide = float(np.median(np.sqrt(squared_distances(pooled, pooled))))
        return Gaussian(own if own > 0 else wide if wide > 0 else 1.0)


@dataclasses.dataclass(frozen=True)
class SpatioTemporalEpsilon(EpsilonKernel):
    r"""Series or fields compared as a Gaussian process would: smooth differences count, noise does not; (4.39).

    The density is that of the observation under the predictive distribution, given the simulated field, of a Gaussian
    process over the locations; a scale that is learned multiplies its covariance (1: as printed).

    Args:
        locations: (n,) or (n, d) of the observed values: times, places. By default 0, 1, 2, ...
        simulated: of the simulated values; by default the same.
        lengthscale, amplitude, noise: of the Gaussian process; by default found by its marginal likelihood on the
            simulations that resemble the observation.
    """

    locations: Any = None
    simulated: Any = None
    lengthscale: float | None = None
    amplitude: float | None = None
    noise: float | None = None

    def bind(self, outputs: Array, observed: Array, names: tuple[str, ...]) -> Comparison:
        if outputs.ndim != 2 or observed.ndim != 1:
            raise ValueError(f"a series or field is one number per location: got outputs of shape {outputs.shape}")
        t = _locations(self.locations, "locations", len(observed))
        simulated = _check.alike(self.simulated, self.locations, "simulated")
        s = t if simulated is None else _locations(simulated, "simulated", outputs.shape[1])
        if s.shape[0] != outputs.shape[1] or s.shape[1] != t.shape[1]:
            raise ValueError(f"simulated has shape {s.shape} where outputs have {outputs.shape[1]} values")
        unit, centre = _pooled_spread(outputs), float(np.median(outputs))
        X, y = _in_units(outputs - centre, observed - centre, unit)
        lengthscale, amplitude, noise = self._process(s, X, y)
        H = Gaussian(lengthscale)
        factor = np.asarray(cholesky(amplitude**2 * H.gram(s, s), "the covariance over locations", noise**2))
        cross = amplitude**2 * H.gram(s, t)
        mean_map = np.asarray(solve(factor, cross)).T
        half = np.asarray(solve_lower(factor, cross))
        covariance = amplitude**2 * H.gram(t, t) - half.T @ half
        white = np.asarray(cholesky(covariance, "the predictive covariance over locations", noise**2))
        left = np.asarray(solve_lower(white, mean_map @ X.T)).T
        right = np.asarray(solve_lower(white, X.T)).T if X.shape[1] == len(y) else left
        powers = np.array([float(len(y))])
        return Comparison(left, right, np.asarray(solve_lower(white, y)), ("field",), powers, np.ones(1))

    def _process(self, s: Array, X: Array, y: Array) -> tuple[float, float, float]:
        """Lengthscale, amplitude and noise, those not given by a search over the marginal likelihood."""
        given = (self.lengthscale, self.amplitude, self.noise)
        if None not in given:
            return tuple(float(v) for v in given)  # type: ignore[return-value]
        rows = np.argsort(((X - X.mean(0)) ** 2).sum(1))[: min(20, len(X))]
        if X.shape[1] == len(y):
            rows = np.argsort(((X - y) ** 2).sum(1))[: min(20, len(X))]
        found = _marginal_likelihood(s, X[rows])
        return tuple(float(f if g is None else g) for f, g in zip(found, given, strict=True))  # type: ignore[return-value]


def _locations(value: Any, name: str, n: int) -> Array:
    out = _check.vectors(np.arange(n) if value is None else value, name)
    if name == "locations" and len(out) != n:
        raise ValueError(f"{name} has {len(out)} rows where the observation has {n} values")
    return out


def _marginal_likelihood(s: Array, X: Array) -> tuple[float, float, float]:
    """The lengthscale, amplitude and noise on a grid under which these fields (k, n) are most likely."""
    span = float(np.ptp(s, axis=0).max()) or 1.0
    size = float(np.sqrt((X**2).mean())) or 1.0
    best, found = -np.inf, (span / 10, size, size / 10)
    for lengthscale in span * np.geomspace(0.5 / len(s) * 2, 0.5, 8):
        gram = Gaussian(lengthscale).gram(s, s)
        for ratio in (0.01, 0.03, 0.1, 0.3, 1.0):
            factor = np.asarray(cholesky(gram, "the covariance over locations", ratio**2))
            # the amplitude that is most likely given the rest is known
            amplitude = float(np.sqrt((solve_lower(factor, X.T) ** 2).mean())) or 1.0
            log = -np.log(np.diagonal(factor)).sum() - len(s) * np.log(amplitude)
            if log > best:
                best, found = log, (float(lengthscale), amplitude, ratio * amplitude)
    return found


EPSILON_KERNELS: dict[str, type[EpsilonKernel]] = {
    "gaussian": GaussianEpsilon,
    "iid": IidEpsilon,
    "mmd": MMDEpsilon,
    "spatio-temporal": SpatioTemporalEpsilon,
}


def read_epsilon_kernel(value: Any) -> EpsilonKernel:
    """One of the words, or an epsilon-kernel with its settings."""
    if isinstance(value, EpsilonKernel):
        return value
    return EPSILON_KERNELS[_check.option(value, "epsilon_kernel", tuple(EPSILON_KERNELS))]()

"""Bandwidths with which to smooth weighted points into a density.

Scott's rule takes the spread of the whole for that of a single normal hump and smears several into one. Botev, Grotowski
and Kroese (2010), algorithm 1, estimate instead the roughness of the density from the sample, stage by stage, and find the
bandwidth at which estimate and bandwidth agree; that is nearly the best one for several humps, and rather wide for a single
one. The smaller of the two is taken, column by column; but never less than half the usual step where values repeat, as in
rounded data.
"""

from __future__ import annotations

import numpy as np

from .._typing import Array
from ._weighted import distribution_function

_BINS = 512
_SCALES = np.geomspace(1e-7, 0.05, 60)  # squared bandwidths looked at, relative to the range of the column
_STAGES = range(6, 1, -1)


def bandwidths(X: Array, w: Array) -> Array:
    """A bandwidth (d,) for each column of points X (n, d) under weights that sum to one and may be negative.

    Both rules see the rising distribution function, not the signed weights, and the effective sample size of the latter;
    in d columns the rate `ess^(-1/5)` becomes `ess^(-1/(d + 4))`.
    """
    rate = -1.0 / (X.shape[1] + 4)
    return np.array([_bandwidth(x, w, rate) for x in X.T])


def _bandwidth(x: Array, w: Array, rate: float) -> float:
    values, rising = distribution_function(x, w[None])
    mass = np.diff(rising[0], prepend=0.0)
    together = np.bincount(np.searchsorted(values, x), w)
    spread = _deviation(values, mass) or _deviation(values, np.abs(together) / np.abs(together).sum()) or 1.0
    chosen = spread * _effective_size(w) ** rate
    size = _effective_size(together)  # copies of a point make one peak, and are no evidence for it
    finer = _botev(values, mass, size)
    if finer is not None:
        chosen = min(chosen, finer * size ** (0.2 + rate))
    rounded = 1 < len(values) < len(x)
    return max(chosen, 0.5 * float(np.median(np.diff(values)))) if rounded else chosen


def _effective_size(w: Array) -> float:
    return max(1.0 / float((w**2).sum()), 1.0)


def _deviation(x: Array, mass: Array) -> float:
    return float(np.sqrt(mass @ (x - mass @ x) ** 2))


def _botev(x: Array, mass: Array, size: float) -> float | None:
    """The bandwidth of Botev et al. (2010) for sorted values with masses that sum to one, or None where there is none.

    With `a_m` the cosine coefficients of a histogram on the unit interval, the squared norm of the s-th derivative of the
    density smoothed by a squared bandwidth t is `2 pi^(2s) sum_m m^(2s) a_m^2 exp(-m^2 pi^2 t)`.
    """
    from scipy import fft

    low, high = x[np.minimum(np.searchsorted(np.cumsum(mass), [0.005, 0.995]), len(x) - 1)]
    margin = 0.2 * (high - low)
    if margin <= _BINS * np.spacing(max(abs(low), abs(high))):  # equal, or apart by rounding: too few numbers for bins
        return None
    histogram, _ = np.histogram(x, _BINS, (low - margin, high + margin), weights=mass)
    squares = (0.5 * np.asarray(fft.dct(histogram / histogram.sum()))[1:]) ** 2
    m2 = np.arange(1.0, _BINS) ** 2

    def roughness(s: int, t: Array) -> Array:
        return 2.0 * np.pi ** (2 * s) * (np.exp(-(np.pi**2) * t[:, None] * m2) @ (m2**s * squares))

    found = roughness(7, _SCALES)
    for s in _STAGES:
        factor = 2.0 * (1.0 + 0.5 ** (s + 0.5)) / 3.0 * np.prod(np.arange(1.0, 2 * s, 2)) / np.sqrt(2.0 * np.pi)
        found = roughness(s, np.minimum((factor / (size * found)) ** (2.0 / (3 + 2 * s)), 1.0))
    gap = np.log(_SCALES) + 0.4 * np.log(2.0 * size * np.sqrt(np.pi) * found)
    crossings = np.flatnonzero((gap[:-1] < 0) & (gap[1:] >= 0))
    if not len(crossings):
        return None
    i = crossings[0]
    logarithm = np.interp(0.0, gap[i : i + 2], np.log(_SCALES[i : i + 2]))
    return float(np.exp(0.5 * logarithm) * (high - low + 2 * margin))

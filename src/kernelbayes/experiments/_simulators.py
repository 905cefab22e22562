r"""Simulators of likelihood-free inference, with the statistics by which their output is usually compared.

| here | source | parameters | output |
|---|---|---|---|
| `waiting_times` | Meeds and Welling (2014) | a rate | independent waiting times |
| `blowflies` | Wood (2010), Meeds and Welling (2014) | six, as logarithms | 180 counts, or 10 statistics |
| `lotka_volterra` | Papamakarios and Murray (2016) | four rates, as logarithms | 151 times 2 counts, or 9 statistics |

They follow the public codes of these papers where the text leaves something open. The first two take many rows of
parameters at a time.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from .._typing import Array
from ..lfi import Prior

# ------------------------------------------------------------------------------------------------ waiting times

RATE = 0.1
_SHAPE = 0.1


def rate_prior() -> Prior:
    """Gamma with shape and rate 0.1: half of its mass lies below 0.006."""
    from scipy import stats  # slow to import

    return Prior(rate=stats.gamma(_SHAPE, scale=1.0 / _SHAPE))


def waiting_times(rates: Array, count: int, rng: np.random.Generator) -> Array:
    """Waiting times (m, count), exponential with these rates (m,)."""
    return rng.standard_exponential((len(rates), count)) / rates[:, None]


def exact_rate(waiting: Array) -> tuple[float, float]:
    """Shape and rate of the gamma posterior of the rate given waiting times (count,)."""
    return _SHAPE + len(waiting), _SHAPE + float(waiting.sum())


# ---------------------------------------------------------------------------------------------------- blowflies

BLOWFLY_PARAMETERS = ("log_P", "log_delta", "log_N0", "log_sigma_d", "log_sigma_p", "log_tau")
#: Known parameters that other codes take for made-up data.
BLOWFLY_TRUTH = np.log([29.0, 0.2, 260.0, 0.6, 0.3, 7.0])
BLOWFLY_STATISTICS = (
    *(f"log mean, quarter {q}" for q in (1, 2, 3, 4)),
    *(f"mean difference, quarter {q}" for q in (1, 2, 3, 4)),
    *(f"peaks above {threshold:g} sd" for threshold in (0.5, 1.5)),
)
_STEPS, _BURN_IN, _START = 180, 50, 180.0
_THRESHOLDS = (0.5, 1.5)
_MEANS, _SDS = (2.0, -1.5, 6.0, -1.0, -1.0, math.log(15.0)), (2.0, 0.5, 0.5, 1.0, 1.0, math.log(5.0))


def blowfly_prior() -> Prior:
    """Independent normals over the logarithms; Hsu (2019), section 4.9.2."""
    from scipy import stats  # slow to import

    return Prior({name: stats.norm(m, s) for name, m, s in zip(BLOWFLY_PARAMETERS, _MEANS, _SDS, strict=True)})


def blowflies(log_parameters: Array, rng: np.random.Generator) -> Array:
    r"""Counts (m, 180) of blowflies, one series for each row of logarithms (m, 6).

    :math:`N_t = P N_{t-\tau} e^{-N_{t-\tau} / N_0} e_t + N_{t-1} e^{-\delta \epsilon_t}` with gamma variables of mean one
    and variances :math:`\sigma_p^2` and :math:`\sigma_d^2`; the delay is rounded, and is at least one step. Counts before
    the first step are 180, and 50 steps are left out.
    """
    P, delta, N0, sigma_d, sigma_p, tau = np.exp(log_parameters).T
    lag = np.maximum(np.rint(np.minimum(tau, 1e9)).astype(int), 1)
    m, rows = len(P), np.arange(len(P))
    steps = _BURN_IN + _STEPS
    births = rng.gamma(sigma_p**-2, sigma_p**2, (steps, m))
    deaths = np.exp(-delta * rng.gamma(sigma_d**-2, sigma_d**2, (steps, m)))
    N = np.empty((m, steps))
    before = np.full(m, _START)
    for t in range(steps):
        parents = np.where(lag <= t, N[rows, np.maximum(t - lag, 0)], _START)
        before = P * parents * np.exp(-parents / N0) * births[t] + before * deaths[t]
        N[:, t] = before
    return N[:, _BURN_IN:]


def blowfly_statistics(series: Array) -> Array:
    """The ten statistics (m, 10) of series (m, n): quarters of sorted values and of sorted differences, and peaks."""
    n = series.shape[1]
    edges = [0, n // 4, n // 2, 3 * n // 4, n]
    values, steps = np.sort(series) / 1000.0, np.sort(np.diff(series)) / 1000.0
    quarters = [slice(a, b) for a, b in itertools.pairwise(edges)]
    sd = series.std(1, keepdims=True)
    scaled = series / np.where(sd > 0, sd, 1.0)
    return np.column_stack(
        [
            *(np.log(values[:, q].mean(1) + 1e-12) for q in quarters),
            *(steps[:, q].mean(1) for q in quarters),
            *(np.where(sd[:, 0] > 0, peaks(scaled, threshold), 0) for threshold in _THRESHOLDS),
        ]
    )


def peaks(series: Array, threshold: float) -> Array:
    """Number of maxima (m,) of series (m, n): points after which it falls by more than the threshold, then rises by it."""
    high, low = series[:, 0].copy(), series[:, 0].copy()
    falling = np.zeros(len(series), dtype=bool)
    count = np.zeros(len(series), dtype=int)
    for value in series.T:
        high, low = np.maximum(high, value), np.minimum(low, value)
        found = ~falling & (value < high - threshold)
        risen = falling & (value > low + threshold)
        count += found
        low[found], high[risen] = value[found], value[risen]
        falling = (falling | found) & ~risen
    return count


def simulate_blowflies(log_parameters: Array, rng: np.random.Generator) -> Array:
    """The ten statistics (m, 10) of one simulation for each row of logarithms (m, 6)."""
    return blowfly_statistics(blowflies(log_parameters, rng))


# ----------------------------------------------------------------------------------------------- Lotka-Volterra

RATES = ("log_theta_1", "log_theta_2", "log_theta_3", "log_theta_4")
RATES_TRUTH = np.log([0.01, 0.5, 1.0, 0.01])
RATES_STATISTICS = (
    *("mean predators", "mean prey", "log variance predators", "log variance prey"),
    *(f"{kind} autocorrelation {lag}" for kind in ("predators", "prey") for lag in (1, 2)),
    "cross-correlation",
)
_PREDATORS, _PREY, _END, _EVERY = 50, 100, 30.0, 0.2
MOST_EVENTS = 10_000
# Random numbers are drawn so many at a time: one by one they would take most of the time.
_BLOCK = 1024


class TooManyEvents(RuntimeError):
    """A simulation that was abandoned."""


def rates_prior() -> Prior:
    """Logarithms uniform between -5 and 2."""
    return Prior(dict.fromkeys(RATES, (-5, 2)))


def lotka_volterra(log_rates: Array, rng: np.random.Generator) -> Array:
    """Predators and prey (151, 2) at times 0, 0.2, ..., 30, by Gillespie's exact algorithm.

    A predator is born at rate theta_1 X Y and dies at theta_2 X, a prey is born at theta_3 Y and is eaten at theta_4 X Y.
    What is recorded is the state after the first event at or past each time. More than 10,000 events are refused.
    """
    first, second, third, fourth = (math.exp(v) for v in log_rates)
    predators, prey, time, events = _PREDATORS, _PREY, 0.0, 0
    record: list[tuple[int, int]] = []
    count = round(_END / _EVERY) + 1
    waits: list[float] = []
    chances: list[float] = []
    while len(record) < count:
        if time >= _EVERY * len(record):
            record.append((predators, prey))
            continue
        if events % _BLOCK == 0:
            waits, chances = rng.standard_exponential(_BLOCK).tolist(), rng.random(_BLOCK).tolist()
        born = first * predators * prey
        gone = born + second * predators
        grown = gone + third * prey
        total = grown + fourth * predators * prey
        if total == 0.0:
            record += [(predators, prey)] * (count - len(record))
            break
        if events == MOST_EVENTS:
            raise TooManyEvents(f"more than {MOST_EVENTS:,} events")
        time += waits[events % _BLOCK] / total
        which = chances[events % _BLOCK] * total
        events += 1
        if which < gone:
            predators += 1 if which < born else -1
        else:
            prey += 1 if which < grown else -1
    return np.array(record, dtype=np.float64)


def rates_statistics(states: Array) -> Array:
    """The nine statistics (9,) of a record of predators and prey (n, 2)."""
    n = len(states)
    means, variances = states.mean(0), states.var(0, ddof=1)
    x, y = ((states - means) / np.sqrt(np.where(variances > 0, variances, 1.0))).T
    correlations = [v[lag:] @ v[:-lag] / (n - 1) for v in (x, y) for lag in (1, 2)]
    return np.array([*means, *np.log(variances + 1.0), *correlations, x @ y / (n - 1)])


def simulate_rates(log_rates: Array, rng: np.random.Generator) -> Array:
    """The nine statistics (9,) of one simulation; raises `TooManyEvents`."""
    return rates_statistics(lotka_volterra(log_rates, rng))

"""Numbers that come with a standard error, and rates of convergence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array


class Estimate(NamedTuple):
    """A number and its standard error, which is NaN where there was only one repeat."""

    value: float
    error: float

    def __str__(self) -> str:
        error = f" ({show(self.error, 2, padded=True)})" if np.isfinite(self.error) else ""
        return show(self.value, padded=True) + error


def show(number: Any, digits: int = 3, *, padded: bool = False) -> str:
    """A number with a few significant digits, the last of them written out even if it is zero where `padded`."""
    number = float(number)
    if 10 ** (digits - 1) <= abs(number) < 1e5 or (number.is_integer() and abs(number) < 1e5 and not padded):
        return f"{number:.0f}"
    return f"{number:#.{digits}g}" if padded and np.isfinite(number) else f"{number:.{digits}g}"


def mean(samples: Array) -> Estimate:
    """The mean of independent repeats."""
    n = len(samples)
    return Estimate(float(np.mean(samples)), float(np.std(samples, ddof=1) / np.sqrt(n)) if n > 1 else np.nan)


def rate(x: Array, y: Array) -> float:
    """The exponent b of `y ~ x^b`: the least-squares slope of log y against log x."""
    across = np.log(x) - np.log(x).mean()
    return float(across @ np.log(y) / (across @ across))


def jackknife(statistic: Callable[..., float], *samples: Array) -> Estimate:
    """A statistic of samples (..., repeats) with its standard error, by leaving out each repeat in turn.

    The statistic takes the arrays whole, so that it can be any function of means over repeats. Repeats are independent;
    what lies within one need not be.
    """
    repeats = samples[0].shape[-1]
    found = float(statistic(*samples))
    if repeats < 2:
        return Estimate(found, np.nan)
    without = np.array([statistic(*(np.delete(s, r, axis=-1) for s in samples)) for r in range(repeats)])
    return Estimate(found, float(np.sqrt((repeats - 1) * np.var(without))))


def rate_of_means(x: Array, y: Array) -> Estimate:
    """The rate between the means over repeats of x and y, both (cases, repeats); x may be (cases,) and known."""
    if x.ndim == 1:
        return jackknife(lambda sample: rate(x, sample.mean(-1)), y)
    return jackknife(lambda first, second: rate(first.mean(-1), second.mean(-1)), x, y)

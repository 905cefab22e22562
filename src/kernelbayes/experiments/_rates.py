"""A rate and waiting times: observations with their exact posterior, and methods to infer it; see `exponential_gamma`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ..lfi import METHODS, GaussianEpsilon, ParameterPosterior, infer
from ._expected import expected_warnings
from ._figures import ACCENT
from ._simulators import RATE, exact_rate, rate_prior, waiting_times


class Way(NamedTuple):
    """A method as `kb.infer` takes it; of several settings the best counts."""

    label: str
    colour: str
    method: str
    settings: tuple[Mapping[str, Any], ...] = ({},)
    raw: bool = False


KELFI = Way("KELFI", ACCENT, "kelfi")
#: The statistic as the thesis has it; as they come, methods rank statistics with long tails.
PLAIN = GaussianEpsilon(ranks=False)


class Problem(NamedTuple):
    """One observation, its exact posterior, and simulations."""

    theta: Array
    data: Array
    observed: Array
    exact: Any
    log: bool

    def statistic(self, data: Array) -> Array:
        """Of data sets (..., count)."""
        return np.log(data.mean(-1)) if self.log else data.mean(-1)


def problem_of(settings: Mapping[str, Any], rng: np.random.Generator) -> Problem:
    """The problem of one repeat."""
    from scipy import stats  # slow to import

    count = settings["count"]
    theta = rate_prior().design(settings["simulations"], random_state=int(rng.integers(2**31)))
    data = waiting_times(theta[:, 0], count, rng)
    observed = waiting_times(np.array([RATE]), count, rng)[0]
    shape, rate = exact_rate(observed)
    return Problem(theta, data, observed, stats.gamma(shape, scale=1.0 / rate), settings["statistic"] == "log mean")


def posterior_of(
    way: Way, problem: Problem, settings: Mapping[str, Any], chosen: Mapping[str, Any], drawn: bool = True
) -> ParameterPosterior | None:
    """None where the method refuses: at once, or when it is to be drawn from."""
    of = (lambda data: data) if way.raw else problem.statistic
    common = {"prior": rate_prior(), "observed": of(problem.observed), "random_state": 0}
    common["method"] = METHODS[way.method](**chosen)
    if way.method == "gps-abc":

        def simulator(rate: float, rng: np.random.Generator) -> Array:
            return of(waiting_times(np.array([rate]), len(problem.observed), rng)[0])

        common |= {"simulator": simulator, "simulations": settings["gps_simulations"], "progress": False}
    else:
        common |= {"parameters": problem.theta, "outputs": of(problem.data)}
    try:
        with expected_warnings():
            posterior = infer(**common)
            if drawn:
                posterior.mean()
    except ValueError:  # its weights cancel, or its likelihood is nowhere above its errors
        return None
    return posterior


def total_variation(posterior: ParameterPosterior, exact: Any, raw: bool = False) -> float:
    """One minus what the two densities share; only where the exact one has mass does anything need to be known."""
    low, high = exact.ppf([1e-7, 1 - 1e-7])
    grid = np.linspace(low, high, 2000)
    shared = np.minimum(exact.pdf(grid), np.maximum(posterior.density(grid[:, None], raw=raw), 0.0))
    return float(1.0 - np.trapezoid(shared, grid))


def case_title(case: Mapping[str, Any]) -> str:
    """A case in the head of a table."""
    return f"{case['count']}, {case['statistic']}"

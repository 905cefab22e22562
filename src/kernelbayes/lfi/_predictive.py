"""The predictive check: what the simulator makes of the posterior, beside what was observed."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _check
from .._summary import Summary
from .._typing import Array, RandomState
from ..simulation import Runs, SimulationError, simulate
from ._posterior import ParameterPosterior
from ._problem import numbered

# An output of more values than this is a series, or a data set, and not a list of statistics.
_MOST_STATISTICS = 32
# An observation with a smaller tail probability, or farther than so many standard deviations, is told about.
_RARE, _FAR = 0.02, 5.0
# Of a series: the band that most values should lie in, and the share outside it that is told about.
_BAND, _OUTSIDE = 0.9, 0.25
_MOST_NAMED = 4
# Values of a series that a summary shows.
_ROWS = 10


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class PredictiveCheck:
    """Simulations at draws of a posterior, compared with the observation; made by `ParameterPosterior.predictive`.

    A posterior can be narrow, and wrong: where the simulator cannot produce what was observed, simulations from the
    posterior miss the observation, and this shows it. The observation was used to find the posterior, so agreement is
    what one expects; disagreement means something.

    Attributes:
        observed: the observation.
        parameters: the draws (n, d) that were simulated.
        outputs: what they gave (n, ...).
        statistics: names of the values of an output.
        before: the simulations (m, ...) that the posterior was learned from.
        failures: runs that gave no output.
        ordered: whether the order of the values means anything; a data set of independent values is sorted.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> def simulator(mu, rng):
        ...     x = rng.normal(mu, 1.0, 20)
        ...     return {"mean": x.mean(), "sd": x.std()}
        >>> posterior = kb.infer(simulator, kb.Prior(mu=(-5, 5)), {"mean": 1.0, "sd": 1.1}, simulations=200, random_state=0)
        >>> check = posterior.predictive(100, random_state=0)
        >>> check
        PredictiveCheck(100 simulations, 2 statistics, none in the far tails)
        >>> list(check.summary()["mean"])
        ['observed', 'mean', 'std', 'tail']
    """

    observed: Array
    parameters: Array
    outputs: Array
    statistics: tuple[str, ...]
    before: Array
    failures: int = 0
    ordered: bool = True

    def __repr__(self) -> str:
        failed = f", {self.failures} failed" if self.failures else ""
        k = len(self.statistics)
        what = f"{k} {'values' if self.is_series else 'statistics' if k > 1 else 'statistic'}"
        far = len(self.far)
        return f"PredictiveCheck({len(self.outputs)} simulations{failed}, {what}, {far or 'none'} in the far tails)"

    @property
    def is_series(self) -> bool:
        """Whether an output is a series or a data set, not a list of statistics."""
        return len(self.statistics) > _MOST_STATISTICS

    @property
    def values(self) -> Array:
        """The outputs as a table (n, k)."""
        return self.outputs.reshape(len(self.outputs), -1)

    @property
    def before_values(self) -> Array:
        """The simulations learned from, as a table (m, k)."""
        return self.before.reshape(len(self.before), -1)

    @functools.cached_property
    def quantile(self) -> Array:
        """Where the observation lies among the simulations (k,): the share below it, ties by half."""
        y = self.observed.reshape(-1)
        return (self.values < y).mean(0) + 0.5 * (self.values == y).mean(0)

    @functools.cached_property
    def tail(self) -> Array:
        """Two-sided tail probabilities (k,): how often a simulation lies as far out as the observation.

        Twice the smaller share of simulations on either side, the observation itself counted as one of them, so that it
        is never zero.
        """
        y, n = self.observed.reshape(-1), len(self.outputs)
        fewest = np.minimum((self.values <= y).sum(0), (self.values >= y).sum(0))
        return np.minimum(2.0 * (fewest + 1) / (n + 1), 1.0)

    @functools.cached_property
    def far(self) -> Array:
        """Indices of the values in which the observation lies in the far tails, or far beyond all simulations."""
        away = np.abs(self.observed.reshape(-1) - self.values.mean(0))
        return np.flatnonzero((self.tail <= _RARE) | (away > _FAR * self.values.std(0) + 1e-12 * away))

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences about what the simulator does not reproduce; empty if there is nothing to say."""
        return tuple(self._problems_of_series() if self.is_series else self._problems_of_statistics())

    def _problems_of_statistics(self) -> list[str]:
        if not len(self.far):
            return []
        y, low, high = self.observed.reshape(-1), self.values.min(0), self.values.max(0)
        shown = [f"{self.statistics[j]} = {y[j]:.4g} (simulated: {low[j]:.4g} to {high[j]:.4g})" for j in self.far]
        more = len(shown) - _MOST_NAMED
        rest = f" and {more} more" if more > 0 else ""
        return [
            f"simulations from the posterior miss the observation in {', '.join(shown[:_MOST_NAMED])}{rest}: the simulator "
            "cannot produce what was observed, or the posterior is wrong"
        ]

    def _problems_of_series(self) -> list[str]:
        low, high = np.quantile(self.values, [0.5 - _BAND / 2, 0.5 + _BAND / 2], axis=0)
        y = self.observed.reshape(-1)
        outside = float(((y < low) | (y > high)).mean())
        if outside <= _OUTSIDE:
            return []
        return [
            f"{outside:.0%} of the {len(y)} observed values lie outside the band that holds {_BAND:.0%} of the simulations "
            "from the posterior: the simulator cannot produce what was observed, or the posterior is wrong"
        ]

    def summary(self) -> Summary:
        """A table: each statistic as observed, its mean and std over the simulations, and the tail probability.

        Of a series, the values that lie farthest out.
        """
        y, mean, sd = self.observed.reshape(-1), self.values.mean(0), self.values.std(0)
        which = np.arange(len(y))
        title = f"{len(self.outputs)} simulations from the posterior"
        if self.is_series:
            away = np.abs(y - mean) / np.where(sd > 0, sd, np.inf)
            which = np.lexsort((-away, self.tail))[:_ROWS]
            title += f"; the {len(which)} of {len(y)} values that lie farthest out"
        rows = {
            self.statistics[j]: {
                "observed": float(y[j]),
                "mean": float(mean[j]),
                "std": float(sd[j]),
                "tail": float(self.tail[j]),
            }
            for j in which
        }
        return Summary(rows, title, self.problems)

    def plot(self, *, level: float = 0.9) -> Any:
        """A figure: a histogram for each statistic with the observation as a line, or bands along a series.

        Returns a Matplotlib figure: `check.plot().savefig("predictive.png")`.
        """
        from .. import plotting

        return plotting.predictive(self, level=level)


def check(
    posterior: ParameterPosterior,
    n: int,
    simulator: Callable[..., Any] | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> PredictiveCheck:
    """Simulate at n draws of a posterior; see `ParameterPosterior.predictive`.

    Args:
        posterior: from `kb.infer`.
        n: how many simulations.
        simulator: in place of the one that the posterior was made with.
        random_state: seed of draws and simulations.
        options: of `kb.simulate`; where not given, those of the inference.
    """
    n, rng = _check.count(n, "n"), _check.generator(random_state)
    own, kept = getattr(posterior, "_simulator", None) or (None, {})
    simulator = simulator or own
    if simulator is None:
        raise ValueError(
            "this posterior does not know its simulator: it was made from arrays, or loaded from a file; pass simulator="
        )
    draws = posterior.sample(n, rng)
    seed = int(rng.integers(2**31))
    try:
        runs = simulate(simulator, draws, names=posterior.names, random_state=seed, **{**kept, **options})
    except SimulationError as error:
        if (
            error.runs is not None
            and not len(error.runs)
            and not error.runs.failures
            and kept.get("executor") is not None
        ):
            raise ValueError(f"{str(error).splitlines()[0]}; pass executor=None, or another") from None
        raise
    outputs = _matched(runs, posterior)
    ordered = not (outputs.ndim == 2 and _is_set(posterior))
    observed, before = posterior.observed, posterior.outputs
    statistics = posterior.statistics
    if not ordered:
        outputs, before, observed = (np.sort(part, axis=-1) for part in (outputs, before, observed))
        statistics = tuple(f"rank {i + 1}" for i in range(len(observed)))
    return PredictiveCheck(observed, runs.parameters, outputs, statistics, before, len(runs.failures), ordered)


def _matched(runs: Runs, posterior: ParameterPosterior) -> Array:
    """The outputs with the shape, and the statistics in the order, of those that the posterior was learned from."""
    shape, known = posterior.outputs.shape[1:], posterior.statistics
    if runs.statistics and set(runs.statistics) == set(known):
        return runs.outputs[:, [runs.statistics.index(name) for name in known]]
    if runs.statistics and known != numbered(len(known)):
        raise ValueError(
            f"simulator returns {', '.join(runs.statistics)} where the posterior was learned from {', '.join(known)}"
        )
    if int(np.prod(runs.outputs.shape[1:])) != int(np.prod(shape)):
        raise ValueError(
            f"simulator returns outputs of shape {runs.outputs.shape[1:]} where the posterior was learned from {shape}"
        )
    return runs.outputs.reshape(len(runs.outputs), *shape)


def _is_set(posterior: ParameterPosterior) -> bool:
    """Whether an output was compared as a set of independent values, in no order."""
    return str(posterior.settings.get("epsilon_kernel", "")).lower().startswith(("iid", "mmd"))

"""What is asked, before there are runs; and runs that were made elsewhere."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _check
from .._typing import Array
from .._warning import warn_user
from ..embeddings import PosteriorWarning
from ..simulation import Failure, Runs
from ..simulation._runs import SHARE_TO_WARN
from ._epsilon import SpatioTemporalEpsilon
from ._likelihood import LearnedLikelihood
from ._observed import read_observation
from ._prior import Prior
from ._problem import Method, Problem, numbered


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
    """What is to be inferred from any runs.

    Attributes:
        prior: over the parameters.
        observed: the observation, as it was given.
        statistics: names of the outputs, if they were given.
        method: by which it is to be inferred.
        rng: for whatever is drawn.
        proposal: what the first runs were drawn from, if not from the prior.
        progress: whether to show a bar.
    """

    prior: Prior
    observed: Any
    statistics: Any
    method: Method
    rng: np.random.Generator
    proposal: Prior | None = None
    progress: bool | None = None

    def pose(self, runs: Runs, starts: Sequence[int] | None = None, power: float = 1.0) -> Problem:
        """The inference that runs allow; what is wrong with the observation must not cost the runs.

        Args:
            runs: that there are.
            starts: numbers of the runs at which further rounds begin, if there are rounds.
            power: of the likelihood.
        """
        try:
            names = _names(runs, self.statistics)
            observed = self._observed(runs, names)
            outputs = _check.numbers(runs.outputs, "outputs")
        except ValueError as error:
            error.runs = runs  # type: ignore[attr-defined]
            error.add_note("The finished runs are in the attribute `runs` of this error.")
            raise
        problem = Problem(self.prior, observed, runs.parameters, outputs, names, self.rng, progress=self.progress)
        problem.power, problem.proposal = power, self.proposal
        problem.rounds = None if starts is None else np.searchsorted(starts, runs.index, side="right")
        return problem

    def _observed(self, runs: Runs, names: tuple[str, ...]) -> Array:
        if isinstance(getattr(self.method, "epsilon_kernel", None), SpatioTemporalEpsilon):  # perhaps in other places
            return _check.numbers(self.observed, "observed")
        free = isinstance(self.method, LearnedLikelihood)
        return read_observation(self.observed, runs.outputs.shape[1:], names, several=free, partly=free)


def _names(runs: Runs, given: Any) -> tuple[str, ...]:
    width = int(np.prod(runs.outputs.shape[1:]))
    if given is None:
        return runs.statistics or numbered(width)
    if runs.statistics is not None and tuple(given) != runs.statistics:
        raise ValueError(f"statistics is {list(given)}, but the outputs have names: {list(runs.statistics)}")
    if len(given) != width:
        raise ValueError(f"statistics has {len(given)} names where a simulation returns {width} numbers")
    if len(set(given)) < width:
        raise ValueError(f"statistics has the same name twice among {list(given)}")
    return tuple(map(str, given))


# ------------------------------------------------------------------------------------------ runs made elsewhere


def read_runs(prior: Prior, parameters: Any, outputs: Any) -> Runs:
    """Runs made elsewhere; rows with NaN are failed runs."""
    if parameters is None or outputs is None:
        raise ValueError("parameters and outputs belong together: the rows of one are those of the other")
    theta = prior._read(parameters, "parameters")
    names, table = _read_outputs(outputs, theta)
    good = np.asarray(np.isfinite(table.reshape(len(table), -1)).all(1))
    if not good.any():
        raise ValueError("outputs has no row without NaN or infinity")
    inside = prior.contains(theta)
    if not inside.all():
        row = int((~inside).argmax())
        raise ValueError(
            f"parameters has {(~inside).sum()} rows outside the support of the prior, such as row {row}: {theta[row]}"
        )
    failed = tuple(Failure(int(i), theta[i], "the output is not finite", "not finite") for i in np.flatnonzero(~good))
    if len(failed) > SHARE_TO_WARN * len(good):
        warn_user(f"{len(failed) / len(good):.0%} of the rows of outputs hold NaN and are left out", PosteriorWarning)
    index = np.flatnonzero(good)
    return Runs(theta[good], table[good], index, np.full(len(index), np.nan), prior.names, names, failed)


def _read_outputs(outputs: Any, theta: Array) -> tuple[tuple[str, ...] | None, Array]:
    """Names of the outputs, if they have any, and a table of them."""
    if isinstance(outputs, dict):
        if not outputs:
            raise ValueError("outputs is an empty dict")
        names, columns = tuple(outputs), [_check._as_numbers(v, f"outputs[{n!r}]") for n, v in outputs.items()]
        for name, column in zip(names, columns, strict=True):
            _check.same_length(theta, np.atleast_1d(column), "parameters", f"outputs[{name!r}]")
        table = np.column_stack(columns)
    else:
        names, table = _check.own_names(outputs), np.atleast_1d(_check._as_numbers(outputs, "outputs"))
    _check.distinct_names(names or (), "outputs")
    _check.same_length(theta, table, "parameters", "outputs")
    return names, table

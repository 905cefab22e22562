"""What every method of inference is given: parameters, simulations, the observation, the prior; and what it returns."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .._linalg import equal_rows
from .._typing import Array
from ._atoms import smoothed_under
from ._epsilon import Comparison, EpsilonKernel, read_epsilon_kernel
from ._law import Law
from ._prior import Prior

# Fewer simulations are nothing to learn from.
FEWEST = 10


@dataclasses.dataclass(eq=False)
class Problem:
    """An inference to be made.

    Attributes:
        prior: over the parameters.
        observed: the observation, of the shape of one simulation.
        theta: parameters (m, d) of the runs there are.
        outputs: what they returned (m, ...).
        statistics: names of the outputs' columns.
        rng: for whatever is drawn.
        run: a function that simulates at further parameters (k, d), for methods that choose them as they go; it returns
            outputs with NaN where a run failed, and raises `OutOfBudget` when there are no more runs to spend.
        progress: whether to show a bar.
        rounds: (m,) the round each run belongs to, if there were several; those of round 0 follow `proposal`.
        proposal: what the first round was drawn from, if not from the prior.
        power: below one in rounds before the last, where a posterior only serves to propose parameters: methods that can
            take the likelihood to this power, so that a first look does not rule out too much.
        known_ratio: (m,) what `ratio` found before, where rounds and proposal are no longer at hand.
    """

    prior: Prior
    observed: Array
    theta: Array
    outputs: Array
    statistics: tuple[str, ...]
    rng: np.random.Generator
    run: Callable[[Array], Array] | None = None
    progress: bool | None = None
    rounds: Array | None = None
    proposal: Prior | None = None
    power: float = 1.0
    known_ratio: Array | None = None

    def ratio(self) -> Array | None:
        """The prior's density over that of the parameters that were simulated (m,), or None if they follow the prior.

        Rounds about a posterior are estimated by smoothing their own parameters. The first round keeps the ratio bounded.
        """
        if self.known_ratio is not None:
            return self.known_ratio
        several = self.rounds is not None and self.rounds.max() > 0
        if (self.proposal is None and not several) or self.prior.latent is None:
            return None
        Z = self.Z
        p = self.prior.latent.density(Z)
        number = np.zeros(len(Z), dtype=int) if self.rounds is None else self.rounds
        first = (
            p
            if self.proposal is None
            else p * np.exp(self.proposal.log_density(self.theta) - self.prior.log_density(self.theta))
        )
        drawn = (number == 0).mean() * first
        for r in np.unique(number[number > 0]):
            drawn = drawn + (number == r).mean() * smoothed_under(self.prior, Z[number == r]).density(Z)
        return p / np.maximum(drawn, np.finfo(float).tiny)

    def groups(self) -> Array | None:
        """The same label (m,) for runs that are left out together, in any score; None where each run is by itself.

        Runs with the same parameters are one group: several seeds of each, or a file that was read twice. Where
        draws of the prior may be equal, as whole numbers are, they meet by chance and will again: only a run that is there
        twice counts.
        """
        rows = self.theta
        if self.prior.ties:
            flat = self.outputs.reshape(len(self.outputs), -1)
            if (flat == np.round(flat)).all():
                return None
            rows = np.concatenate([rows, flat], axis=1)
        return equal_rows(rows)

    def refuse_few(self) -> None:
        """Methods that learn scales need some simulations to learn from."""
        if len(self.theta) < FEWEST:
            raise ValueError(
                f"there are {len(self.theta)} simulations, rows of parameters and outputs; at least {FEWEST} are needed to "
                "learn from"
            )

    def firsts(self) -> Array:
        """Numbers (k,) of the runs without those that are there twice, with the same parameters and the same outputs.

        Where whole numbers make whole numbers, equal runs are no copies.
        """
        flat = self.outputs.reshape(len(self.outputs), -1)
        alike = equal_rows(np.concatenate([self.theta, flat], axis=1))
        if alike is None or (self.prior.ties and bool((flat == np.round(flat)).all())):
            return np.arange(len(flat))
        return np.sort(np.unique(alike, return_index=True)[1])

    @property
    def Z(self) -> Array:
        """The parameters in Gaussian coordinates."""
        return self.prior.to_gaussian(self.theta)

    def compare(self, epsilon_kernel: str | EpsilonKernel) -> Comparison:
        """The runs and the observation as an epsilon-kernel sees them."""
        return read_epsilon_kernel(epsilon_kernel).bind(self.outputs, self.observed, self.statistics)

    def without(self, row: int) -> Problem:
        """The inference from one of the simulations, made from those of other groups."""
        groups = self.groups()
        rest = np.arange(len(self.theta)) != row if groups is None else groups != groups[row]
        return dataclasses.replace(self.only(rest), observed=self.outputs[row])

    def only(self, rest: Array) -> Problem:
        """The inference from some of the simulations (m,)."""
        return dataclasses.replace(
            self,
            theta=self.theta[rest],
            outputs=self.outputs[rest],
            run=None,
            rounds=None if self.rounds is None else self.rounds[rest],
            known_ratio=None if self.known_ratio is None else self.known_ratio[rest],
        )


def numbered(width: int) -> tuple[str, ...]:
    """What outputs are called that have no names."""
    return tuple(f"x{i}" for i in range(width))


class OutOfBudget(Exception):
    """There are no more simulations to spend; methods end with what they have."""


@dataclasses.dataclass(eq=False)
class Inference:
    """What a method found.

    Attributes:
        law: the posterior in Gaussian coordinates.
        settings: what was chosen, to be shown and to be passed in again.
        ess: effective number of simulations behind it.
        problems: sentences that the user should read.
        details: of the method: scores, acceptance rates.
        model: the fitted likelihood, where there is one; `kb.calibrate` reads all its replicates off it.
        scales: of the statistics, by name, where they were learned.
    """

    law: Law
    settings: dict[str, Any]
    ess: float
    problems: list[str] = dataclasses.field(default_factory=list)
    details: dict[str, Any] = dataclasses.field(default_factory=dict)
    model: Any = None
    scales: dict[str, float] | None = None


class Method(abc.ABC):
    """A way to a posterior: its settings are its attributes.

    Attributes:
        name: the word for it as it comes.
        seeks: whether it chooses where to simulate as it goes; the others learn from any simulations.
    """

    name: ClassVar[str]
    seeks: ClassVar[bool] = False

    @abc.abstractmethod
    def infer(self, problem: Problem) -> Inference:
        """The posterior, from the runs there are or those that are asked for."""

r"""A random walk in Gaussian coordinates whose steps are judged by simulations; shared by the methods that are chains.

The proposal is :math:`z' = z + s \odot \eta`, :math:`\eta \sim N(0, I)`, symmetric in the coordinates, and the prior is the
one that the coordinates have: no Jacobian is needed, and no parameter leaves its support. What a step costs and how it is
judged is left to a `Target`.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import _check
from .._progress import progress_bar
from .._typing import Array
from ..kernels import Gaussian, median_lengthscale
from ..kernels._distributions import Distribution
from ._epsilon import GaussianEpsilon, spreads
from ._law import WeightedPoints
from ._problem import Inference, OutOfBudget, Problem

# The first step as a share of the prior's standard deviation, the acceptance rate it is led to, and its bounds: where the
# noise of the estimated likelihood keeps acceptance low, smaller steps do not help, and must not be pursued to zero.
_FIRST_STEP, _WANTED, _STEP_BOUNDS = 0.5, 0.2, (0.05, 2.0)
# How fast the adaptation dies out: slowly enough to get anywhere, fast enough that the chain still converges.
_FADING = 0.6
# Below these, the user is told.
LOW_ACCEPTANCE, FEW_DRAWS = 0.05, 20.0


class Bench:
    """Simulations on request: coordinates in, standardised statistics out, counted.

    Attributes:
        latent: the prior of the coordinates.
        Z, X: coordinates (m, d) and statistics (m, q) of the runs there were to begin with.
        observed: the observation's statistics (q,).
        used: runs made since.
    """

    def __init__(self, problem: Problem, standardise: bool):
        latent = problem.prior.latent
        if latent is None:
            raise ValueError(
                "this method needs the density of the prior, and this prior can only be sampled; "
                "give it as distributions, or use method='kelfi' or 'rejection'"
            )
        if problem.run is None:
            raise ValueError("this method chooses where to simulate and needs the simulator itself")
        comparison = problem.compare(
            GaussianEpsilon(_check.option(standardise, "standardise", (True, False)), ranks=False)
        )
        flat = problem.outputs.reshape(len(problem.outputs), -1)
        units = spreads(flat) if standardise else np.ones(flat.shape[1])
        self._kept = units > 0  # those that `compare` kept
        self._units = units[self._kept]
        self.latent: Distribution = latent
        self.Z, self.X, self.observed = problem.Z, comparison.left, comparison.observed
        self.used = 0
        self._problem = problem

    @property
    def left(self) -> int | None:
        """Runs that may still be made, where that is known."""
        return getattr(self._problem.run, "left", None)

    def __call__(self, z: Array) -> Array:
        """Statistics (k, q) at coordinates (k, d), NaN where a run failed."""
        run = self._problem.run
        assert run is not None
        outputs = run(self._problem.prior.from_gaussian(z))
        self.used += len(z)
        X = outputs.reshape(len(z), -1)[:, self._kept] / self._units
        X[~np.isfinite(X).all(1)] = np.nan
        return X

    def on_atoms(self, z: Array) -> Array:
        """Coordinates (k, d) with those of whole numbers where the first simulations have theirs."""
        return self._problem.prior.on_atoms(z)

    def repeated(self, z: Array, times: int) -> Array:
        """Statistics (k, q), k at most `times`, of those of so many runs at one place (d,) that did not fail."""
        X = self(np.repeat(z[None], times, axis=0))
        return X[np.isfinite(X).all(1)]

    def squares(self, X: Array) -> Array:
        """Squared distances (k,) of statistics from the observation."""
        return ((X - self.observed) ** 2).sum(1)

    def nearest(self) -> Array:
        """Coordinates (d,) of the run that came closest to begin with."""
        return self.Z[self.squares(self.X).argmin()]

    def log_prior(self, z: Array) -> float:
        """Log density of the prior at one place (d,)."""
        with np.errstate(divide="ignore"):
            return float(np.log(self.latent.density(z[None])[0]))


class Target(Protocol):
    """What a walk asks of a method."""

    def state(self, z: Array) -> Any:
        """Whatever is known of one place (d,); has an attribute `possible`, False where nothing can be accepted."""
        ...

    def accepts(self, proposed: Any, current: Any, log_prior: float) -> bool:
        """Whether to go there, given the log ratio of the prior's densities."""
        ...


class Walk(NamedTuple):
    """Places (n, d) of the chain, whether each was new, and the last step as a share of the prior's standard deviation."""

    places: Array
    moved: Array
    step: Array


def walk(problem: Problem, bench: Bench, target: Target, step: Any, steps: int | None) -> Walk:
    """Go until `steps` are made or the budget is spent, starting from the best of the runs there are.

    Args:
        problem: for its generator and the progress bar.
        bench: makes the runs.
        target: judges the steps.
        step: standard deviation of a proposal as a share of the prior's, one number or one for each parameter; None
            begins at 0.5 and adapts to an acceptance of 0.2, less and less (Andrieu and Thoms 2008, algorithm 4). The
            places visited with a smaller budget are then the first of those visited with a larger one.
        steps: None for as many as the budget allows.
    """
    rng, adapt = problem.rng, step is None
    share = read_step(step, problem.prior.dimension)
    sd = np.sqrt(np.diagonal(bench.latent.covariance()))
    places, moved = [], []
    z, made = bench.nearest(), 0
    with counted(problem, bench.left if steps is None else steps, "runs" if steps is None else "steps") as bar:
        try:
            current, here = target.state(z), bench.log_prior(z)
            while steps is None or made < steps:
                proposal = z + share * sd * rng.standard_normal(len(z))
                there = bench.log_prior(proposal)
                accepted = False
                if there > -np.inf:
                    candidate = target.state(proposal)
                    accepted = target.accepts(candidate, current, there - here)
                    if accepted:
                        z, current, here = proposal, candidate, there
                made += 1
                if current.possible:  # on the way to the first place that is, nothing counts
                    places.append(z)
                    moved.append(accepted)
                if adapt:
                    share = np.clip(share * np.exp((accepted - _WANTED) / made**_FADING), *_STEP_BOUNDS)
                bar.update((bench.used if steps is None else made) - bar.n)
        except OutOfBudget:
            pass
    return Walk(np.reshape(places, (len(places), len(z))), np.array(moved, dtype=bool), share)


def read_step(step: Any, dimension: int) -> Array:
    """Steps (d,) as shares of the prior's standard deviation."""
    if step is None:
        return np.full(dimension, _FIRST_STEP)
    share = np.atleast_1d(_check.numbers(step, "step"))
    if share.shape not in ((1,), (dimension,)) or (share <= 0).any():
        raise ValueError(f"step must be positive: one number, or one for each of {dimension} parameters; got {step!r}")
    return np.broadcast_to(share, (dimension,))


def read_share(value: Any, name: str) -> float:
    """A number from 0 to below 1."""
    number = _check.scalar(value, name)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be at least 0 and below 1, got {number:g}")
    return number


def counted(problem: Problem, total: int | None, unit: str) -> Any:
    """A bar that counts runs or steps."""
    return progress_bar(total, "walking", problem.progress, unit=f" {unit}", leave=False)


# ----------------------------------------------------------------------------------------- what is made of it


def concluded(found: Walk, burn: float, bench: Bench, settings: dict[str, Any]) -> Inference:
    """The posterior of a chain whose first share `burn` is left out."""
    first = int(burn * len(found.places))
    places, moved = found.places[first:], found.moved[first:]
    if not len(places):
        raise ValueError(
            f"the chain could not begin: of the simulations allowed, {len(bench.Z)} were a first look and {bench.used} "
            "were left; allow more simulations, or a larger epsilon"
        )
    each = np.array([autocorrelated_size(column) for column in places.T])
    acceptance = float(moved.mean())
    new = moved.copy()
    new[0] = True
    starts = np.flatnonzero(new)
    stays = np.diff(np.append(starts, len(places)))
    details = {
        "acceptance": acceptance,
        "ess_per_parameter": each,
        "steps": len(found.places),
        "simulations": bench.used,
        "longest_stay": int(stays.max()),
    }
    kept = {**settings, "step": _one_or_all(found.step), "burn": burn}
    return Inference(
        points(places[starts], stays), kept, float(each.min()), _doubts(details, each, len(places)), details
    )


def points(places: Array, weights: Array) -> WeightedPoints:
    """Weighted places as a posterior."""
    several = len(np.unique(places, axis=0)) > 1
    kernel = Gaussian(median_lengthscale(places) if several else 1.0)
    return WeightedPoints(places, weights.astype(np.float64), kernel)


def _one_or_all(step: Array) -> Any:
    return float(step[0]) if (step == step[0]).all() else np.array(step)


def _doubts(details: dict[str, Any], each: Array, length: int) -> list[str]:
    acceptance = details["acceptance"]
    if acceptance == 0.0:
        return [
            f"the chain never moved in {length} steps: a smaller step, a larger epsilon or more simulations are needed"
        ]
    said = []
    if acceptance < LOW_ACCEPTANCE:
        said.append(
            f"only {acceptance:.1%} of the steps were accepted: a smaller step or a larger epsilon is called for"
        )
    if details["longest_stay"] > max(20, length // 4):
        said.append(f"the chain was stuck in one place for {details['longest_stay']} of {length} steps")
    if each.min() < FEW_DRAWS:
        said.append(
            f"the chain of {length} steps is worth about {each.min():.0f} independent draws: the posterior is a rough "
            "sketch; more simulations would tell"
        )
    return said


def autocorrelated_size(x: Array) -> float:
    """Effective number of independent draws in a chain (n,), by Geyer's (1992) initial monotone sequence."""
    n = len(x)
    centred = x - x.mean()
    if n < 4 or not (centred != 0).any():
        return 1.0
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    covariance = np.fft.irfft(spectrum)[:n]
    rho = covariance / covariance[0]
    pairs = rho[: n // 2 * 2].reshape(-1, 2).sum(1)
    ends = np.flatnonzero(pairs <= 0)
    pairs = np.minimum.accumulate(pairs[: ends[0] if len(ends) else len(pairs)])
    return float(np.clip(n / max(2.0 * pairs.sum() - 1.0, 1.0 / n), 1.0, n))

"""Should this posterior be trusted? What is measured, and the one line that says so when it should not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._typing import Array
from .._warning import warn_user
from ..kernels import Kernel, dense_gram

# Up to this many columns a tree finds neighbours faster than all pairs.
_TREE_COLUMNS = 8
# Reference points at most, to which distances are measured: with a tree, and without.
_MOST_REFERENCES, _MOST_PAIRED = 2048, 512

_FARTHEST = 1e9
# Pairs drawn by their weight under the prior, to see whether an observation is plausible under it.
_CONFLICT_DRAWS = 48
# Of the total that the regulariser leaves.
_LEAST_TOTAL, _MOST_TOTAL = 0.3, 3.0
_LEAST_ESS = 2.0
_MOST_NEGATIVE = 0.45
_MOST_OUTSIDE = 0.2
_MOST_CONTRADICTION = 1.0
_MOST_WIDENING = 1.5
_MOST_CONDITION = 1e14
# A share of what there is to know at a point that is as good as nothing; the square of a kernel's correlation.
_LITTLE = 1e-4


class PosteriorWarning(UserWarning):
    """A posterior that should not be trusted, and why."""


def share_seen(kernel: Kernel, X: Array, F: Array) -> Array:
    """The share (t,) of the kernel at points that coordinates F (t, r) of theirs hold: near 0 far from all landmarks.

    Of coordinates that are not on landmarks, such as Fourier features, it is near 1 everywhere.
    """
    there = kernel._diag(X)
    return np.divide((F * F).sum(1), there, out=np.ones(len(X)), where=there > 0)


def tell_outside(known: Array, what: str, *, little: float = _LITTLE) -> None:
    """Warn where the share (t,) that is known is as good as nothing: x lies outside `what`."""
    outside = int((known < little).sum())
    if outside:
        message = f"at {outside} of {len(known)} points x lies outside {what}"
        warn_user(message, PosteriorWarning)


class Reach:
    """How far from its neighbours a point of a sample lies as a rule, and how far another point lies in that measure.

    Distances are Euclidean after dividing each column by its standard deviation, or RKHS distances where points are not
    vectors. The unit is `q99 + 3 (q99 - q50)` of the distances from each distinct point to the nearest other one: a new
    point of the same distribution seldom lies farther than that, in few dimensions as in many.
    """

    def __init__(self, points: Array, kernel: Kernel, rng: np.random.Generator):
        self.kernel = None if points.ndim == 2 and points.dtype.kind in "fiu" else kernel
        self.centre: Array | float = 0.0
        most = _MOST_REFERENCES if self.kernel is None and points.shape[1] <= _TREE_COLUMNS else _MOST_PAIRED
        if len(points) > most:
            points = points[rng.choice(len(points), most, replace=False)]
        if self.kernel is None:
            spread = points.std(0)
            self.scale = np.where(spread > 0, spread, 1.0)
            self.centre = points.mean(0)  # so that an offset of the data costs no digits
            points = np.unique((points - self.centre) / self.scale, axis=0)
        self.points = points
        gaps = self._nearest(points, itself=True) if len(points) > 1 else np.zeros(1)
        middle, far = np.quantile(gaps, [0.5, 0.99])
        self.unit = float(far + 3.0 * (far - middle))

    def novelty(self, points: Array) -> Array:
        """Distance of each point to the nearest of the sample, in units; above 1 it lies outside what was seen."""
        away = self._nearest((points - self.centre) / self.scale if self.kernel is None else points, itself=False)
        if self.unit == 0.0:
            return np.where(away > 0, _FARTHEST, 0.0)
        return np.minimum(away, _FARTHEST * self.unit) / self.unit

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import KDTree

        return KDTree(self.points)

    def _nearest(self, points: Array, *, itself: bool) -> Array:
        """Distances to the nearest reference point, or to the nearest other one."""
        if self.kernel is None and points.shape[1] <= _TREE_COLUMNS:
            distances = np.asarray(self._tree.query(points, k=2 if itself else 1)[0])
            return distances[:, 1] if itself else distances
        if self.kernel is None:
            cross, own, other = points @ self.points.T, (points**2).sum(1), (self.points**2).sum(1)
        else:
            cross = dense_gram(self.kernel, points, self.points)
            own, other = self.kernel._diag(points), self.kernel._diag(self.points)
        squared = own[:, None] + other - 2.0 * cross
        if itself:
            np.fill_diagonal(squared, np.inf)
        return np.sqrt(np.maximum(squared.min(1), 0.0))


class Surroundings:
    """The training pairs (x, z) as diagnostics see them: how far from them observations and priors lie.

    Each of the two samples is given with the kernel by whose distances it is judged where it does not hold vectors.
    """

    def __init__(self, X: Array, Z: Array, kernel: Kernel, latent_kernel: Kernel, seed: int):
        self.X, self.kernel, self.seed = X, kernel, seed
        rng = np.random.default_rng(seed)
        self._of_x, self._of_z = Reach(X, kernel, rng), Reach(Z, latent_kernel, rng)

    def novelty(self, x: Array) -> Array:
        """Distance of observations from the training observations."""
        return self._of_x.novelty(x)

    def outside(self, points: Array, weights: Array) -> float:
        """The share of a prior that lies outside the training z."""
        sizes = np.abs(weights)
        return float(sizes @ (self._of_z.novelty(points) > 1.0) / sizes.sum())

    def conflict(self, x: Array, ratio: Array) -> Array:
        """Distance of observations from the training observations of pairs with these non-negative weights.

        Measured on so few draws that the small weights which an estimated ratio leaves far from the prior are seldom among
        them; the middle of three.
        """
        if not ratio.any():
            return np.full(len(x), np.inf)
        rng = np.random.default_rng(self.seed)
        found = []
        for _ in range(3):
            rows = np.unique(rng.choice(len(ratio), _CONFLICT_DRAWS, p=ratio / ratio.sum()))
            found.append(Reach(self.X[rows], self.kernel, rng).novelty(x))
        return np.median(found, axis=0)


#: What differs from one observation to the next.
_EACH = ("total", "ess", "negative_mass", "novelty", "conflict", "contradiction", "widening")


@dataclass(frozen=True)
class Health:
    """Diagnostics of one posterior, or of several as arrays.

    Attributes:
        total: sum of the weights as the rule gives them, before they are made to sum to one; near 1 when all is well.
        ess: effective sample size of the weights.
        negative_mass: share of the absolute weights that is negative.
        novelty: distance of the observation from the training observations; above 1 it lies outside what was seen.
        conflict: the same distance from those training observations only whose z the prior gives weight to; above 1 the
            observation is implausible under the prior, and the posterior follows a few pairs at the prior's edge.
        contradiction: distance of the mean from the middle of the rising distribution function that intervals come from, in
            standard deviations of the latter; of several columns the largest. Above 1 the weights contradict themselves.
        widening: standard deviation of the posterior over that of the prior; of several columns the largest. An observation
            may widen what is believed, but seldom by half: as a rule weight has been left where the prior has none.
        condition: estimated condition number of the matrix that was solved with.
        prior_ess: effective number of training pairs that the prior gives weight to.
        prior_outside: share of the prior that lies outside the training z; 0 for the training marginal.
        retention: the total that the regulariser alone would leave; far below 1 where it was chosen large, since the
            observation tells nothing within so narrow a prior.
        reg: regulariser of the evidence operator.
        prior_reg: regulariser of the step from the prior to the pairs; None where none was needed.
    """

    total: Any
    ess: Any
    negative_mass: Any
    novelty: Any
    conflict: Any
    condition: float
    prior_ess: float
    prior_outside: float
    retention: float
    reg: float
    prior_reg: float | None
    contradiction: Any = 0.0  # what files of older versions have for it, and for the next
    widening: Any = 0.0

    def __getitem__(self, i: int) -> Health:
        shape = np.shape(self.total)
        return replace(self, **{name: float(np.broadcast_to(getattr(self, name), shape)[i]) for name in _EACH})

    @property
    def problems(self) -> tuple[str, ...]:
        """What speaks against trusting the posterior, in words; empty when nothing does."""
        return (*self._of_prior(), *self._of_observations())

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against trusting the posterior."""
        return not self.problems

    def _of_prior(self) -> list[str]:
        found = []
        if not all(np.isfinite(value).all() for value in (self.total, self.ess, self.novelty, self.prior_ess)):
            found.append("numbers have overflowed")
        if self.prior_outside > _MOST_OUTSIDE:
            found.append(f"{self.prior_outside:.0%} of the prior lies outside the training z")
        if self.prior_ess < _LEAST_ESS:
            found.append(f"the prior gives weight to {self.prior_ess:.1f} effective training pairs only")
        if self.condition > _MOST_CONDITION:
            found.append(f"the evidence operator has a condition number of {self.condition:.0e}; a larger reg helps")
        return found

    def _of_observations(self) -> list[str]:
        total = np.atleast_1d(self.total)
        least = _LEAST_TOTAL if self.retention > 0.5 else _LEAST_TOTAL**3
        little, much = total < least * self.retention, total > _MOST_TOTAL
        tests = [
            (
                self.novelty,
                np.atleast_1d(self.novelty) > 1.0,
                "{} lying outside the training observations (novelty {:.3g})",
            ),
            (
                self.conflict,
                (np.atleast_1d(self.conflict) > 1.0) & (np.atleast_1d(self.novelty) <= 1.0),
                "{} implausible under this prior (conflict {:.3g})",
            ),
            (total, little, "{} with weights that sum to {:.2g} before normalising: the pairs say little there"),
            (total, much, "{} with weights that sum to {:.2g} before normalising: the rule is unstable here"),
            (self.ess, np.atleast_1d(self.ess) < _LEAST_ESS, "{} resting on {:.1f} effective points"),
            (self.negative_mass, np.atleast_1d(self.negative_mass) > _MOST_NEGATIVE, "{} with {:.0%} negative mass"),
            (
                self.contradiction,
                np.atleast_1d(self.contradiction) > _MOST_CONTRADICTION,
                "{} with a mean {:.2g} standard deviations away from what intervals are read off: the weights contradict "
                "themselves",
            ),
            (
                self.widening,
                np.atleast_1d(self.widening) > _MOST_WIDENING,
                "{} with a posterior {:.2g} times as wide as the prior",
            ),
        ]
        found = []
        for values, bad, text in tests:
            if bad.any():
                first = int(bad.argmax())
                several = len(total) > 1
                who = f"{bad.sum()} of {len(total)} observations (first: {first})" if several else "this observation"
                found.append(text.format(who, np.atleast_1d(values)[first]))
        return found

    def __str__(self) -> str:
        def shown(values: Any) -> str:
            values = np.atleast_1d(values)
            return f"{values[0]:.3g}" if len(values) == 1 else f"{values.min():.3g} to {values.max():.3g}"

        line = (
            f"total {shown(self.total)}, ess {shown(self.ess)}, negative mass {shown(self.negative_mass)}, "
            f"novelty {shown(self.novelty)}, condition {self.condition:.1e}, prior ess {self.prior_ess:.3g}"
        )
        return line if self.ok else line + ". Beware: " + "; ".join(self.problems)

"""Reasons to doubt an integral: by how much its standard deviation is raised, and what its user should read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._typing import Array
from ..kernels import Laplace
from ..learning._integrand import NUGGET, learn_kernel
from ..simulation import Failure, Runs
from ..simulation._runs import SHARE_TO_WARN
from ._nodes import wide_shares
from ._rule import QuadratureRule
from ._source import QuantileSource, Source

#: Fewer evaluations than these cannot be divided to see whether the parts agree.
FEWEST_TO_HALVE = 8
# Fewer than these say nothing about how f goes on in its tails, or which values are as predicted.
_FEWEST_TO_JUDGE = 20
# A value may be so many times as far from what all others predict as the farthest of as many normal ones would be, or so
# many for the roughest kernel, which follows a jump by a large scale everywhere; and this share of values must lie within
# two standard deviations. Measured: of jumps with 40 and 60 nodes nearly all were above the second.
_FARTHEST, _FARTHEST_OF_ROUGH, _SHARE_WITHIN = 1.75, 1.15, 0.7
# n such distances have a mean square of about one, so that none can be above sqrt(n). For a smooth kernel it must be nearly
# that: one node then stands for all that varies. Measured on 519 integrals: 16 % of 87 such were off by more than three
# standard deviations, 4 % of all others, and 1 % of 72 that were above the first limit only: caution suffices there.
_NEARLY_ALL = 0.9
# Values are the same where they differ by no more than this share of their size.
_ROUNDING = 1e-14
# A process for the logarithm is tried from this ratio of the largest value to the smallest; values that are zero are taken
# for ones too small to be held from the second. It is followed above the highest value by so much at most, and integrated
# over so many points where there is no sequence. It takes so many values that are not zero.
_LEAST_RATIO, _UNDERFLOW, _HIGHEST, _POINTS, _FEWEST_LOGARITHMS = 10.0, 1e-100, 300.0, 4096, 5
# The tail of f is judged from this share of its values, and no fewer. Measured at 20 to 60 nodes, the slope was below 0.67
# for exp(x) and x^2 under a normal, and above it for x^2 under t(2.1), for x under pareto(1.5) and lognorm(2), and mostly
# for exp(x^2 / 3) under a normal, all of which were far off.
_SHARE_OF_TAIL, _FEWEST_OF_TAIL, _STEEPEST = 0.15, 5, 0.68


def believed_std(rule: QuadratureRule, values: Array, mean: Any, std: Any, start: Array | None) -> Array:
    """The standard deviation of an integral in the light of its values: (), or (p,) for p integrals.

    That of the process times `caution`, within what the values support: f has nowhere been seen to differ by more than its
    range. Beyond that are two things which the values themselves tell. Where the logarithm of f is the better process, the
    integral is off by what that one finds between the nodes. And where all values are the same, they say only how rare
    other ones are.

    Args:
        rule: at the nodes where there are values.
        values: (n,) or (n, p).
        mean: the integral.
        std: as the process has it.
        start: lengthscales (d,) from which to learn a process for the logarithm, or None for no such process.
    """
    if rule.worst_case_error == 0:
        return np.asarray(std)
    columns = values.reshape(len(values), -1)
    found = np.ravel(std * caution(rule, values, mean, std))
    size = np.abs(columns).max(axis=0)
    found = np.minimum(found, np.ptp(columns, axis=0) if rule.weighting == "normalised" else size)
    if start is not None:
        missed = [0.0 if same else missed_by(rule, v, start) for v, same in zip(columns.T, flat(columns), strict=True)]
        found = np.maximum(found, np.abs(missed))
    rare = sd_of_rare_share(len(values)) * np.where(size > 0, size, 1.0)
    return np.where(flat(columns), np.maximum(found, rare), found).reshape(np.shape(std))


def of_size_one(values: Array) -> tuple[Array, Array]:
    """Values (n,) or (n, p) divided by a power of two, so that their squares can be held, and its exponent."""
    exponent = np.clip(np.frexp(np.abs(values).max(axis=0))[1], -1000, 1000)
    return np.ldexp(values, -exponent), exponent


def flat(values: Array) -> Array:
    """Which columns of values (n, p) are the same everywhere, but for rounding: (p,)."""
    return np.ptp(values, axis=0) <= _ROUNDING * np.abs(values).max(axis=0)


def sd_of_rare_share(n: int) -> float:
    """Standard deviation of the mass where f differs from a value that it had at all of n places, with an even prior."""
    return float(np.sqrt((n + 1.0) / (n + 3.0)) / (n + 2.0))


def missed_by(rule: QuadratureRule, v: Array, start: Array) -> float:
    """What the integral of values (n,) of one sign misses, by a process for their logarithm where that is the better one.

    A peak between nodes is a bump of known shape in the logarithm, and nearly nothing in the values. The better process is
    the one that gives a larger density to each value given all others.
    """
    sign = 1.0 if v.max() > 0 else -1.0
    seen = v != 0
    size = sign * v[seen]
    if seen.sum() < _FEWEST_LOGARITHMS or size.min() < 0 or size.max() < _LEAST_RATIO * size.min():
        return 0.0
    if not seen.all() and size.min() > _UNDERFLOW * size.max():  # zeros of f, and not numbers too small to be held
        return 0.0
    rule = rule if seen.all() else rule.keep(seen)
    y = np.log(size)
    kernel = learn_kernel(rule.points, y, start).kernel
    logarithm = rule.with_kernel(kernel, reg=NUGGET * float(kernel._diag(rule.points).mean()) / len(rule))
    if _left_out_score(logarithm, y) - float(y.sum()) < _left_out_score(rule, size):
        return 0.0
    source = rule._aim(None).source
    if isinstance(source, QuantileSource):
        points = source.pool(len(rule), 0)[0]
    else:
        points = source.draw(_POINTS, np.random.default_rng(0))
    highest = min(float(y.max()) + _HIGHEST, np.log(np.finfo(np.float64).max) / 2.0)
    between = np.minimum(logarithm._between(y, points)[0], highest)
    return float(np.mean(np.exp(between) - rule._between(size, points)[0]))


def _left_out_score(rule: QuadratureRule, values: Array) -> float:
    """The sum of the log densities of values (n,), each given all others."""
    others = rule._left_out(values)
    tiny = np.finfo(np.float64).tiny
    return float(-np.sum(0.5 * others.z**2 + np.log(others.sd * np.sqrt(max(float(rule.scale(values)), tiny)))))


def caution(rule: QuadratureRule, values: Array, mean: Any, std: Any) -> Any:
    """By how much standard deviations have been too small so far, or one: (), or (p,) for p integrals.

    Four halves of the nodes (the first, the last, every other one) give integrals of their own. How far these are from
    that of all nodes is compared with what their standard deviations say. A kernel that is too smooth for a function, or
    one that knows nothing of how it grows beyond the nodes, gives itself away there. So does a kink that few nodes see
    among values that are left out one by one: all of them, and the one that is farthest off, should be as far from what
    the others predict as those of a process are.
    """
    n = len(rule)
    if n < FEWEST_TO_HALVE:
        return 1.0
    number, squares = np.arange(n), []
    for half in (number < n // 2, number >= n // 2, number % 2 == 0, number % 2 == 1):
        part, own = rule.keep(half).integrate(values[half], return_std=True)
        apart = np.maximum(np.square(own) - np.square(std), 0.01 * np.square(own))  # what the other half would tell
        squares.append(np.square(part - mean) / np.where(apart > 0, apart, np.inf))
    z = np.abs(rule._left_out(values).z)
    one_by_one = np.maximum(np.sqrt(np.mean(z**2, axis=0)), z.max(axis=0) / farthest(n))
    return np.maximum(np.sqrt(np.maximum(np.mean(squares, axis=0), 1.0)), one_by_one)


def farthest(n: int) -> float:
    """How far the farthest of n standard normal numbers is from zero, about."""
    return float(np.sqrt(2.0 * np.log(n)))


class Doubts:
    """What is to be said about the evaluations behind an integral.

    Args:
        rule: at the nodes where there are values.
        values: (n,) or (n, p).
        names: of the columns, or None.
    """

    def __init__(self, rule: QuadratureRule, values: Array, names: Sequence[str] | None):
        self.rule, self.values, self.names = rule, of_size_one(values)[0], names
        self.exact = rule.worst_case_error == 0

    def column(self, j: int) -> str:
        """What to call a column."""
        return self.names[j] if self.names else "x" if self.rule.points.shape[1] == 1 else f"x{j}"

    def about_values(self) -> list[str]:
        """Too few of them, all the same, or not as predicted."""
        n, said = len(self.values), []
        if self.exact:
            return said
        if n < FEWEST_TO_HALVE:
            said.append(
                f"{n} evaluations are too few to check the standard deviation by halves of them; take 8 or more"
            )
        constant = flat(self.values.reshape(n, -1))
        if constant.any():
            of = "of size one" if not self.values.reshape(n, -1)[:, constant].any() else "of that size"
            said.append(
                "f has the same value at all nodes, so that nothing is known about how it varies: std is for other "
                f"values {of} elsewhere, and a peak that all nodes miss may be of any height"
            )
        elif self.rule._too_smooth(self.values):
            said.append("the kernel is too smooth to follow f at the nodes, so that std is a guess")
        elif n >= _FEWEST_TO_JUDGE:
            said += self._as_predicted()
        return said

    def _as_predicted(self) -> list[str]:
        z = np.abs(self.rule._left_out(self.values).z).reshape(len(self.values), -1)
        within = float((z < 2.0).mean(axis=0).min())
        points = self.rule.points
        outermost = (points == points.min(0)).any(1) | (points == points.max(0)).any(
            1
        )  # those are hard for all functions
        far = np.where(outermost, 0.0, z.max(axis=1))
        said = []
        if isinstance(self.rule.kernel, Laplace):
            most = _FARTHEST_OF_ROUGH * farthest(len(z))
        else:
            most = max(_FARTHEST * farthest(len(z)), _NEARLY_ALL * np.sqrt(len(z)))
        if far.max() > most:
            place = ", ".join(f"{self.column(j)} = {v:.3g}" for j, v in enumerate(points[far.argmax()]))
            said.append(
                f"near {place} f is {far.max():.1f} standard deviations from what all other nodes predict: a kink, a jump "
                "or a spike, where std may be too small"
            )
        if within < _SHARE_WITHIN:
            said.append(
                f"only {within:.0%} of the values are within two standard deviations of what all others predict: the kernel "
                "does not suit f"
            )
        return said

    def about_tails(self, source: Source, index: Array) -> list[str]:
        """Distributions without a variance, and functions that grow as far as the nodes reach."""
        said = [
            f"the distribution of {self.column(j)} has no finite variance: its tails reach beyond all nodes and all points "
            "that stand for it, and f must be nearly constant there"
            for j in source.heavy_columns()
        ]
        if isinstance(source, QuantileSource) and source.with_tails().any():
            slope = _tail_slope(self.values, _shares(self.rule, source, index))
            if slope > _STEEPEST:
                said.append(
                    "f grows so fast towards the outermost nodes that what lies beyond them matters, and std does not know "
                    "it; move the factor that grows into the distribution, or bound the input"
                )
        return said

    def about_failures(self, runs: Runs) -> list[str]:
        """How many evaluations failed, and where."""
        if runs.failure_rate <= SHARE_TO_WARN:
            return []
        ended = len(runs) + len(runs.failures)
        where = self._side(runs.parameters, runs.failures)
        return [
            f"{len(runs.failures)} of {ended} evaluations failed{where}: what f is there is guessed from the others"
        ]

    def _side(self, well: Array, failures: tuple[Failure, ...]) -> str:
        bad = np.array([np.ravel(f.parameters) for f in failures])
        for j in range(well.shape[1]):
            if bad[:, j].min() > well[:, j].max():
                return f", all where {self.column(j)} is above {well[:, j].max():.3g}"
            if bad[:, j].max() < well[:, j].min():
                return f", all where {self.column(j)} is below {well[:, j].min():.3g}"
        return ""


def _shares(rule: QuadratureRule, source: QuantileSource, index: Array) -> Array:
    """Mass (n,) that each node stands for, up to a factor; `index` is which of all nodes they are."""
    if rule.nodes == "wide":
        return wide_shares(source, int(index.max()) + 1, rule._plan["seed"])[index]
    return np.ones(len(rule)) if rule.density is None else 1.0 / rule.density


def _tail_slope(values: Array, shares: Array) -> float:
    """By which power f grows with the inverse of the mass that is beyond, towards its largest values.

    From 1/2 on the square of f has no integral, from 1 on f has none.
    """
    return max(_slope(np.abs(column - np.median(column)), shares) for column in values.reshape(len(values), -1).T)


def _slope(size: Array, shares: Array) -> float:
    if len(size) < _FEWEST_TO_JUDGE:
        return 0.0
    count = max(_FEWEST_OF_TAIL, int(_SHARE_OF_TAIL * len(size)))
    order = np.argsort(size)[::-1][:count]
    beyond = np.cumsum(shares[order]) - 0.5 * shares[order]
    if not size[order[-1]] > 0:
        return 0.0
    x, y = -np.log(beyond), np.log(size[order])
    return float((x - x.mean()) @ (y - y.mean()) / np.square(x - x.mean()).sum())

"""Quadrature rules: nodes, weights, and an error that is known before a function is evaluated."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _check
from .._summary import Summary
from .._table import write_table
from .._typing import Array, ArrayLike
from .._warning import warn_user
from ..embeddings import MeanEmbedding, evaluate_function
from ..kernels import Kernel, check_kernel, dense_gram
from ..rules import quadrature as rules
from ..rules.quadrature import Problem
from ._aim import Aim
from ._nodes import Nodes, NoMoreNodes, chosen_nodes
from ._reading import read_source

# A complete expansion is used as long as it has at most so many numbers at the nodes, and gives k(x, x) there back.
_MOST_NUMBERS, _GIVEN_BACK = 2**24, 1e-12
# Where more than this share of a scale is due to what a kernel cannot follow, a standard deviation says little.
_MOST_BEYOND = 0.5


class QuadratureWarning(UserWarning):
    """A rule, or an integral, that should not be taken at face value."""


class QuadratureRule:
    r"""Nodes and weights for integrals :math:`\int f\, d\rho \approx \sum_i w_i f(x_i)`.

    Made by `kb.quadrature`, which has an example.

    Attributes:
        points: the nodes (n, d).
        weights: (n,).
        worst_case_error: the largest error of the rule on functions of norm one in the RKHS of the kernel. Where it is too
            small to be told from rounding it is the `resolution`, an upper bound, and `resolved` is False. It is 0 where all
            points of a sample or a discrete distribution are nodes.
        resolution: the smallest error that can be told from zero.
        origin: where the embedding of the distribution came from: "closed form", or what stands for the distribution. Then
            the error is with respect to that.
        kernel: of the space of functions.
        density: of the nodes with respect to the distribution (n,), or None where they are not random.
        nodes: how the nodes were chosen.
        weighting: how they are weighed.
        reg: regulariser of the weights, 0 for none.
    """

    def __init__(
        self,
        aim: Aim,
        points: Array,
        density: Array | None,
        weighting: str,
        reg: float,
        nodes: str,
        plan: dict[str, Any],
    ):
        self.kernel, self.points, self.density = aim.kernel, points, density
        self.nodes, self.weighting, self.reg, self.origin = nodes, weighting, reg, aim.origin
        self._plan, self._aim_cache = plan, aim
        problem = _problem(aim, points)
        self._problem_cache, self.resolution = problem, problem.resolution
        # with all points of a sample there is nothing to approximate, whatever the kernel
        all_of_it = aim.source.shares_of_all(points) if weighting in ("optimal", "normalised") and not reg else None
        if all_of_it is not None:
            self.weights, self.worst_case_error = all_of_it, 0.0
        else:
            self.weights = _weights(problem, weighting, self._penalty(), density)
            self.worst_case_error = problem.error(self.weights)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        return (
            f"QuadratureRule({len(self)} nodes by {self.nodes}, {self.weighting} weights, worst-case error "
            f"{self._error_said()}, {self.origin})"
        )

    def _error_said(self) -> str:
        """The worst-case error in a message."""
        return f"{'below ' * (self.worst_case_error > 0 and not self.resolved)}{self.worst_case_error:.2g}"

    @property
    def resolved(self) -> bool:
        """Whether the worst-case error is larger than what rounding makes of it, or known to be zero."""
        return self.worst_case_error > self.resolution or self.worst_case_error == 0

    @functools.cached_property
    def embedding_error(self) -> float:
        """About how far the points that stand for the distribution are from it, in the RKHS; 0 for closed forms."""
        return self._aim(None).stand_in_error

    @property
    def embedding(self) -> MeanEmbedding:
        """The weighted nodes as an embedding, to be compared with others."""
        return MeanEmbedding(self.points, self.weights, self.kernel)

    def _penalty(self) -> Array:
        """n reg for each weight, times the density for Bach's."""
        n = len(self.points)
        if self.weighting == "bach" and self.density is not None:
            return n * self.reg * self.density
        return np.full(n, n * self.reg if self.weighting in ("optimal", "normalised") else 0.0)

    def _problem(self) -> Problem:
        if (
            getattr(self, "_problem_cache", None) is None
        ):  # of a rule that was loaded: enough for the scale of a function
            factor = rules.by_gram(dense_gram(self.kernel, self.points, self.points), np.zeros(len(self)), 0.0)
            self._problem_cache = factor
        return self._problem_cache

    # ------------------------------------------------------------------------------------------------------- using it

    def integrate(self, f: Callable[[Array], ArrayLike] | ArrayLike, return_std: bool = False) -> Any:
        r"""The integral of a function, and perhaps a standard deviation of its error.

        Args:
            f: a function from the nodes (n, d), all at once, to values (n,), or (n, p) for p integrals; or these values.
            return_std: also return the standard deviation of the integral when f is a draw of a Gaussian process with the
                kernel times a scale, which is estimated from the values (Bayesian quadrature). With optimal weights it is
                that of the posterior given the values. It is as good as the kernel is right for f: `kb.integrate` learns
                lengthscales from the values.

        Returns:
            The integral, or the integral and its standard deviation.
        """
        values = self._values(f)
        mean = self.weights @ values
        if not return_std:
            return scalar(mean)
        if self.weighting == "normalised" and len(self) < 2:
            raise ValueError(
                "one value about an unknown constant says nothing of its error; return_std needs two nodes"
            )
        if self._too_smooth(values):
            said = (
                "the kernel is too smooth to follow f at the nodes, so that std is a guess; take a shorter lengthscale"
            )
            warn_user(said, QuadratureWarning)
        errors = self.worst_case_error**2 + self.embedding_error**2 + float(self._penalty() @ self.weights**2)
        spread = np.sqrt(errors)
        return scalar(mean), scalar(spread * np.sqrt(self._size(values).scale))

    def scale(self, f: Callable[[Array], ArrayLike] | ArrayLike) -> Array:
        """The factor by which the kernel fits the size of a function, by maximum likelihood: (), or (p,) for p functions.

        Where weights sum to one, that of the function about a constant.
        """
        return self._size(self._values(f)).scale

    def _too_smooth(self, values: Array) -> bool:
        """Whether most of the scale is due to what the kernel cannot follow."""
        return bool(np.max(self._size(values).beyond) > _MOST_BEYOND)

    def _left_out(self, values: Array) -> rules.LeftOut:
        """Each value as all others predict it."""
        return rules.left_out(self._problem(), values, self._penalty(), self.weighting == "normalised")

    def _between(self, values: Array, X: Array) -> tuple[Array, Array]:
        """The function at other points (g, d) as values (n,) at the nodes tell it: mean and standard deviation (g,)."""
        across, diagonal = dense_gram(self.kernel, self.points, X), self.kernel._diag(X)
        return rules.between(self._problem(), values, self._penalty(), across, diagonal, self.weighting == "normalised")

    def _size(self, values: Array) -> rules.Size:
        return rules.scale(self._problem(), values, self._penalty(), self.weighting == "normalised")

    def _settled(self) -> QuadratureRule:
        """Before it is saved, what a loaded rule could not find out is found out."""
        vars(self).setdefault("embedding_error", self.embedding_error)
        return self

    def _values(self, f: Any) -> Array:
        if callable(f):
            try:
                values = evaluate_function(f, self.points)  # type: ignore[arg-type]
            except TypeError as error:
                raise TypeError(
                    f"f was called with all {len(self)} nodes at once, an array of shape {self.points.shape}, and failed: "
                    f"{error}; a function of one point can be wrapped as lambda X: [f(x) for x in X]"
                ) from error
        else:
            values = _check.numbers(f, "f")
            if values.ndim not in (1, 2) or len(values) != len(self):
                raise ValueError(
                    f"f has shape {values.shape} where a function, or a value for each of {len(self)} nodes, was wanted"
                )
        return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values

    def extend(
        self,
        n: int,
        *,
        tol: float | None = None,
        max_n: int | None = None,
        nodes: str | ArrayLike | None = None,
        distribution: Any = None,
    ) -> QuadratureRule:
        """A rule with n nodes more, of which the first are those of this one.

        Args:
            n: how many more; of greedy nodes there may be fewer before the kernel is known to rounding, as a warning says.
            tol: a worst-case error; n nodes are added again and again until it is reached.
            max_n: nodes at most, with `tol`; ten times those there are by default. A warning says where they do not suffice.
            nodes: how to choose them; by default as before. Or the nodes themselves (n, d).
            distribution: as for `kb.quadrature`; needed for a rule that was loaded from a file.

        Example:
            >>> import kernelbayes as kb
            >>> from scipy import stats
            >>> rule = kb.quadrature(kb.Gaussian(0.5), stats.norm(), 10, nodes="greedy")
            >>> better = rule.extend(5, tol=1e-4)
            >>> better.worst_case_error < 1e-4, len(better) < 40
            (True, True)
        """
        n = _check.count(n, "n")
        if tol is None:
            if max_n is not None:
                raise ValueError("max_n is the limit of nodes where tol is given; without tol, n are added")
            return self._extended_or_warned(n, nodes, distribution)
        tol, rule = _check.positive(tol, "tol"), self
        last = 10 * len(self) if max_n is None else _check.count(max_n, "max_n", at_least=len(self))
        if nodes is not None and not isinstance(nodes, str):
            raise ValueError("nodes that are given can be added once; with tol, say how to choose them")
        why = ""
        while rule.worst_case_error > tol and len(rule) < last:
            try:
                rule = rule._extended(min(n, last - len(rule)), nodes, distribution)
            except ValueError as reason:
                if len(rule) == len(self) and not isinstance(reason, NoMoreNodes):
                    raise  # it never worked
                why = f": {reason}"
                break
        if rule.worst_case_error > tol:
            said = f"with {len(rule)} nodes the worst-case error is {rule.worst_case_error:.2g}, above tol={tol:g}{why}"
            warn_user(said, QuadratureWarning)
        return rule

    def _extended_or_warned(self, n: int, nodes: str | ArrayLike | None, distribution: Any) -> QuadratureRule:
        try:
            rule, why = self._extended(n, nodes, distribution), "more cannot be told from rounding"
        except NoMoreNodes as reason:
            rule, why = self, str(reason)
        if len(rule) < len(self) + n:
            said = f"{len(rule) - len(self)} nodes were added and not {n}: {why}"
            warn_user(said, QuadratureWarning)
        return rule

    def _extended(self, n: int, nodes: str | ArrayLike | None, distribution: Any) -> QuadratureRule:
        aim = self._aim(distribution)
        before = self.nodes.split(", ")[-1]
        given = before if nodes is None else nodes
        if isinstance(given, str) and given == "given":
            raise ValueError("the nodes of this rule were given; say how to choose more, such as nodes='greedy'")
        try:
            new, name = chosen_nodes(aim, n, given, self.points, self._plan)
        except NoMoreNodes as reason:
            if not len(reason.found):
                raise
            new, name = Nodes(reason.found, None), str(given)
        if self.weighting in ("importance", "bach") and (new.density is None or self.density is None):
            raise ValueError(
                f"{self.weighting} weights need one density of all nodes, which {name} nodes after others have not"
            )
        density = None if new.density is None or self.density is None else np.concatenate([self.density, new.density])
        name = self.nodes if name == before else f"{self.nodes}, {name}"
        points = np.concatenate([self.points, new.points])
        return QuadratureRule(aim, points, density, self.weighting, self.reg, name, self._plan)

    def keep(self, rows: ArrayLike, *, distribution: Any = None) -> QuadratureRule:
        """The rule on some of the nodes, weighed anew: for a function that could not be evaluated at all of them.

        Args:
            rows: numbers of nodes, or a mask (n,).
            distribution: as for `kb.quadrature`; needed for a rule that was loaded from a file.
        """
        rows = _check_rows(rows, len(self))
        if self.weighting not in ("optimal", "normalised"):
            raise ValueError(f"{self.weighting} weights belong to all nodes; with optimal weights some can be left out")
        density = None if self.density is None else self.density[rows]
        return QuadratureRule(
            self._aim(distribution), self.points[rows], density, self.weighting, self.reg, self.nodes, self._plan
        )

    def with_kernel(self, kernel: Kernel, reg: float | None = None, *, distribution: Any = None) -> QuadratureRule:
        """The same nodes, weighed for another kernel, and with another regulariser if one is given.

        Args:
            kernel: the kernel.
            reg: as for `kb.quadrature`; by default as before.
            distribution: as for `kb.quadrature`; needed for a rule that was loaded from a file.
        """
        check_kernel(kernel)._check_width(self.points.shape[1], "the nodes")
        aim = Aim(self._aim(distribution).source, kernel)
        reg = self.reg if reg is None else _check.positive(reg, "reg")
        return QuadratureRule(aim, self.points, self.density, self.weighting, reg, self.nodes, self._plan)

    def _aim(self, distribution: Any) -> Aim:
        if distribution is not None:
            source = read_source(distribution)
            if source.dimension != self.points.shape[1]:
                raise ValueError(
                    f"distribution has {source.dimension} columns where the nodes have {self.points.shape[1]}"
                )
            return Aim(source, self.kernel)
        if getattr(self, "_aim_cache", None) is None:
            raise ValueError("a rule that was loaded does not know its distribution; pass distribution=")
        return self._aim_cache

    # ---------------------------------------------------------------------------------------------------- showing it

    def summary(self) -> Summary:
        """The rule in a few numbers."""
        w = self.weights
        row: dict[str, Any] = {
            "n": len(self),
            "worst_case_error": self.worst_case_error,
            "resolution": self.resolution,
            "sum": float(w.sum()),
            "sum_abs": float(np.abs(w).sum()),
            "ess": self.embedding.ess(),
        }
        return Summary({self.nodes: row})

    def plot(self) -> Any:
        """The nodes, with their weights: along the line, or each pair of the first columns."""
        from ..plotting import quadrature_nodes

        return quadrature_nodes(self)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the nodes `x0`, `x1`, ... and the column `weight`."""
        columns: list[tuple[str, Any]] = [(f"x{j}", x) for j, x in enumerate(self.points.T)]
        write_table(path, [*columns, ("weight", self.weights)])


def _check_rows(rows: ArrayLike, n: int) -> Array:
    """Numbers of some of n nodes, from numbers or a mask."""
    given = np.asarray(rows)
    if given.dtype == bool and given.shape == (n,):
        given = np.flatnonzero(given)
    if given.size == 0:
        raise ValueError("rows: no node would be kept")
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.min() < -n or given.max() >= n:
        raise ValueError(f"rows must be numbers of nodes from 0 to {n - 1}, or a mask ({n},); got {rows!r}")
    return np.arange(n)[given]


def _problem(aim: Aim, points: Array) -> Problem:
    """Coordinates of the nodes: by a complete expansion of a reasonable size, otherwise by their Gram matrix."""
    known = aim.expansion
    if known is not None and known.complete and len(known) * len(points) <= _MOST_NUMBERS:
        E, diagonal = known._at(points), aim.kernel._diag(points)
        if (np.abs(E**2 @ known.eigenvalues - diagonal) <= _GIVEN_BACK * diagonal).all():  # not so far out in the tails
            return rules.by_expansion(E, known.eigenvalues, known.integrals())
    K = dense_gram(aim.kernel, points, points)
    return rules.by_gram(K, aim.embedding._evaluate(points), aim.norm_squared)


def _weights(problem: Problem, weighting: str, penalty: Array, density: Array | None) -> Array:
    n = len(problem.nodes)
    if weighting == "uniform":
        return np.full(n, 1.0 / n)
    if weighting == "importance":
        assert density is not None
        return rules.importance(density)
    return rules.normalised(problem, penalty) if weighting == "normalised" else rules.optimal(problem, penalty)


def scalar(value: Any) -> Any:
    """A plain number where there is only one."""
    return float(value) if np.ndim(value) == 0 else value

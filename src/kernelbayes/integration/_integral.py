"""An integral that was found, with what is known of its error: the result of `kb.integrate`."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._summary import Summary, percent
from .._table import write_table
from .._typing import Array
from ..embeddings import tails
from ..simulation import Failure
from ._rule import QuadratureRule


class Integral:
    """What `kb.integrate` returns.

    Attributes:
        n: number of evaluations behind it.
        rule: the `QuadratureRule` that was used last.
        values: of the function at the nodes (n,) or (n, p).
        history: rows of n, mean and std as evaluations were added.
        problems: sentences to read before the result is believed; empty if there is nothing to say.
        failures: evaluations that gave no value.
        names: of the columns of the nodes, or None.
        outputs: names of several integrals where f returned a dict, or None.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> found = kb.integrate(lambda x: np.exp(x[:, 0]), stats.norm(), n=30, random_state=0)
        >>> found
        Integral(1.648... ± ..., 30 evaluations)
        >>> low, high = found.interval(0.95)
        >>> bool(low < np.exp(0.5) < high)
        True
    """

    def __init__(
        self,
        rule: QuadratureRule,
        values: Array,
        history: list[tuple[int, Any, Any]],
        problems: tuple[str, ...] = (),
        failures: tuple[Failure, ...] = (),
        names: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
    ):
        self.rule, self.values, self.history = rule, values, history
        self.n = history[-1][0]
        self.problems, self.failures = problems, failures
        self.names = None if names is None else tuple(names)
        self.outputs = tuple(outputs) if outputs and np.ndim(self.mean()) else None

    def __repr__(self) -> str:
        if np.ndim(self.mean()):
            return f"Integral({len(self.mean())} integrals, {self.n} evaluations)"
        return f"Integral({self.mean():.{digits(self.mean(), self.std())}g} ± {self.std():.2g}, {self.n} evaluations)"

    def mean(self) -> Any:
        """The integral: a number, or (p,) for p integrands."""
        return self.history[-1][1]

    def std(self) -> Any:
        """Its standard deviation given the values, of the same shape.

        It is what is not known about the function between the nodes, and about the distribution where points stand for it.
        """
        return self.history[-1][2]

    def interval(self, level: float = 0.9) -> Array:
        """The central interval holding `level` of the mass, as (lower, upper): (2,), or (2, p)."""
        from scipy import stats  # slow to import

        quantiles = stats.t(max(self.n - 1, 1)).ppf(tails(level))
        return np.stack([self.mean() + q * self.std() for q in quantiles])

    def summary(self, level: float = 0.9) -> Summary:
        """A table with a row for each integral: mean, std, the ends of the interval, and n, the number of evaluations."""
        lower, upper = tails(level)
        low, high = np.atleast_2d(self.interval(level).T).T
        rows = zip(np.atleast_1d(self.mean()), np.atleast_1d(self.std()), low, high, strict=True)
        named = (
            ["integral"]
            if not np.ndim(self.mean())
            else self.outputs or [f"integral_{i}" for i in range(len(self.mean()))]
        )
        return Summary(
            {
                name: {
                    "mean": float(m),
                    "std": float(s),
                    percent(lower): float(a),
                    percent(upper): float(b),
                    "n": self.n,
                }
                for name, (m, s, a, b) in zip(named, rows, strict=True)
            },
            problems=self.problems,
        )

    def plot(self, truth: float | None = None) -> Any:
        """The integral and its 95 % band against the number of evaluations, and the function at the nodes."""
        from ..plotting import integral

        return integral(self, truth)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the nodes, by their `names` or as `x0`, `x1`, ..., and `weight` and `value` (`value_0`, ... for several)."""
        points = self.rule.points.T
        names = self.names or [f"x{j}" for j in range(len(points))]
        apart = [f"x_{name}" if name in ("weight", "value") else name for name in names]
        columns: list[tuple[str, Any]] = list(zip(apart, points, strict=True))
        columns.append(("weight", self.rule.weights))
        if self.values.ndim == 1:
            columns.append(("value", self.values))
        else:
            outputs = self.outputs or range(self.values.shape[1])
            columns += [(f"value_{name}", v) for name, v in zip(outputs, self.values.T, strict=True)]
        write_table(path, columns)


def digits(mean: float, std: float) -> int:
    """So many that the last one shown is about as large as the error."""
    if not (mean and std and np.isfinite([mean, std]).all()):
        return 4
    return int(np.clip(math.floor(math.log10(abs(mean))) - math.floor(math.log10(std)) + 2, 2, 15))

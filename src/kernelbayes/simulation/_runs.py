"""What a simulation gives back: the runs that finished, those that did not, and why."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._summary import Summary
from .._table import write_table
from .._typing import Array

# A larger share of failed runs is worth a warning.
SHARE_TO_WARN = 0.05
# More than half of at least so many: nothing good can come of it.
FEWEST_TO_JUDGE, MOST_FAILED = 20, 0.5
_REASONS_SHOWN = 3
_NUMBER = re.compile(r"[-+]?\d[\w.+-]*")


class SimulationWarning(UserWarning):
    """Runs that are missing from a result, and why."""


class SimulationError(RuntimeError):
    """A simulation that does not work.

    Attributes:
        runs: what did finish, and what failed (`Runs`), or None.
    """

    def __init__(self, message: str, runs: Runs | None = None):
        super().__init__(message)
        self.runs = runs


class StoreError(OSError):
    """A store that cannot be read or written: it is damaged, its disk is full, it is read-only or locked.

    The message says which, and what to do. What was written before is kept.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from kernelbayes.simulation import StoreError, open_runs, simulate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Path(folder) / "runs.sqlite"
        ...     _ = simulate(lambda x: x**2, [1.0, 2.0, 3.0], store=store)
        ...     four = np.array(4.0).tobytes()  # as it is kept
        ...     _ = store.write_bytes(store.read_bytes().replace(four, np.array(4.5).tobytes()))
        ...     try:
        ...         open_runs(store)
        ...     except StoreError as error:
        ...         print(str(error).partition(". ")[0].rpartition(": ")[2])
        run 1 is not as it was written
    """


@dataclass(frozen=True)
class Failure:
    """A run that gave no output.

    Attributes:
        index: which run it was.
        parameters: (d,) what it was run with.
        reason: in words.
        kind: "raised" an exception, "not finite" numbers, "wrong shape" of the output, "timeout", or "lost" with the
            process that ran it.

    Example:
        >>> from kernelbayes.simulation import simulate
        >>> runs = simulate(lambda x: 1 / x[0] if x[0] < 30 else float("nan"), range(1, 31))
        >>> runs.failures[0].index, runs.failures[0].kind, runs.failures[0].reason
        (29, 'not finite', 'the output is nan')
    """

    index: int
    parameters: Array
    reason: str
    kind: str


@dataclass(frozen=True, eq=False, repr=False)
class Runs:
    """The finished runs of a simulator, in the order of their numbers.

    Attributes:
        parameters: (k, d) what each was run with.
        outputs: (k, ...) what each returned.
        index: (k,) which run of the design each is.
        seconds: (k,) how long each took.
        names: of the parameters, or None.
        statistics: names of the outputs where the simulator returns a dict, or None.
        failures: the runs that gave no output.

    Example:
        >>> from kernelbayes.simulation import simulate
        >>> def run(growth, noise):
        ...     return {"end": growth + noise}
        >>> runs = simulate(run, [[1.0, 0.5], [2.0, 0.25]], names=["growth", "noise"])
        >>> runs
        Runs(2 finished, none failed; parameters growth, noise; statistics end)
        >>> runs.parameters.shape, runs.outputs[:, 0], runs.index
        ((2, 2), array([1.5 , 2.25]), array([0, 1]))
    """

    parameters: Array
    outputs: Array
    index: Array
    seconds: Array
    names: tuple[str, ...] | None = None
    statistics: tuple[str, ...] | None = None
    failures: tuple[Failure, ...] = ()

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        failed = f"{len(self.failures)} failed ({self.failure_rate:.1%})" if self.failures else "none failed"
        named = self.names or f"({self.parameters.shape[1]})"
        parts = [f"{len(self):,} finished, {failed}", f"parameters {_listed(named)}"]
        if self.statistics:
            parts.append(f"statistics {_listed(self.statistics)}")
        else:
            parts.append(f"outputs of shape {self.outputs.shape[1:]}")
        return f"Runs({'; '.join(parts)})"

    @property
    def failure_rate(self) -> float:
        """Failed runs as a part of all that ended."""
        total = len(self) + len(self.failures)
        return len(self.failures) / total if total else 0.0

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences to read before the runs are used; empty if no more than a few failed."""
        if self.failure_rate <= SHARE_TO_WARN:
            return ()
        return (f"{self.failure_rate:.0%} of the runs failed: {commonest(self)}",)

    def summary(self) -> Summary:
        """A table with a row for each parameter and each value of an output: mean, std, the least and the largest.

        Example:
            >>> from kernelbayes.simulation import simulate
            >>> simulate(lambda x: x[0] ** 2, [1.0, 2.0, 3.0]).summary()
            3 runs, none failed
                          mean     std  least  largest
            parameter_0      2  0.8165      1        3
            output       4.667     3.3      1        9
        """
        failed = f"{len(self.failures)} failed" if self.failures else "none failed"
        extents = {name: _extent(values) for name, values in self._columns()} if len(self) else {}
        rows = {n: {"mean": e[0], "std": e[1], "least": e[2], "largest": e[3]} for n, e in extents.items()}
        return Summary(rows, f"{len(self):,} runs, {failed}", self.problems)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a table of the finished runs: `run`, the parameters, the outputs, `seconds`."""
        write_table(path, [("run", self.index), *self._columns(), ("seconds", self.seconds)])

    def _columns(self) -> list[tuple[str, Any]]:
        """Parameters and outputs by name, none of which is `run` or `seconds`."""
        flat = self.outputs.reshape(len(self), -1 if len(self) else 0)
        numbered = ["output"] if self.outputs.ndim == 1 else [f"output_{j}" for j in range(flat.shape[1])]
        names = _apart(self.names or map(str, range(self.parameters.shape[1])), "parameter", {"run", "seconds"})
        outputs = _apart(self.statistics, "output", {"run", "seconds", *names}) if self.statistics else numbered
        columns: list[tuple[str, Any]] = list(zip(names, self.parameters.T, strict=True))
        return [*columns, *zip(outputs, flat.T if len(self) else [()] * len(outputs), strict=True)]


def _extent(values: Array) -> tuple[float, ...]:
    return float(values.mean()), float(values.std()), float(values.min()), float(values.max())


def joined(parts: list[Runs], dimension: int) -> Runs:
    """Runs of several calls as one."""
    shape = parts[0].outputs.shape[1:]
    return Runs(
        np.concatenate([p.parameters.reshape(len(p), dimension) for p in parts]),
        np.concatenate([p.outputs.reshape(len(p), *shape) for p in parts]),
        np.concatenate([p.index for p in parts]),
        np.concatenate([p.seconds for p in parts]),
        parts[0].names,
        parts[0].statistics,
        tuple(f for p in parts for f in p.failures),
    )


def _apart(names: Iterable[str], what: str, taken: set[str]) -> list[str]:
    """Names of columns: a parameter and a statistic may share one, and some have none but a number."""
    return [f"{what}_{name}" if name in taken or name.isdigit() else name for name in names]


def commonest(runs: Runs) -> str:
    """The commonest reasons for failures, each with its share and one example."""
    # "bad value 0.13" and "bad value 0.27" are one reason
    alike = Counter(_reason_without_numbers(f) for f in runs.failures)
    lines = []
    for shape, number in alike.most_common(_REASONS_SHOWN):
        first = next(f for f in runs.failures if _reason_without_numbers(f) == shape)
        lines.append(f"{number} {first.kind}: {first.reason}; such as run {first.index} with {_row(first, runs.names)}")
    more = len(alike) - len(lines)
    return "\n  ".join(lines) + (f"\n  and {more} more reasons" if more > 0 else "")


def _reason_without_numbers(failure: Failure) -> tuple[str, str]:
    return failure.kind, _NUMBER.sub("#", failure.reason)


def _row(failure: Failure, names: tuple[str, ...] | None) -> str:
    values = [f"{v:.6g}" for v in np.atleast_1d(failure.parameters)]
    cells = [f"{n} = {v}" for n, v in zip(names, values, strict=True)] if names else values
    return "parameters " + (", ".join(cells[:8]) + (", ..." if len(cells) > 8 else ""))


def _listed(names: Any) -> str:
    if isinstance(names, str):
        return names
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")

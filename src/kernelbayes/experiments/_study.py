"""Repeats of a random experiment: a stream of random numbers for each, saved when done, read back after a crash."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._progress import progress_bar
from .._typing import Array
from ._estimates import Estimate, mean

#: One repeat: from the settings, with those of its case among them, and a generator to named numbers.
Once = Callable[[Mapping[str, Any], np.random.Generator], Mapping[str, float]]


@dataclass(frozen=True)
class Study:
    """One call of an experiment: where its files go, its seed, whether it is a quick one, and the folder of its data.

    A quick run has files of its own, so that it never replaces the results of a full one.
    """

    name: str
    out: Path
    seed: int = 0
    quick: bool = False
    progress: bool = False
    data: Path | None = None

    def path(self, ending: str) -> Path:
        """A file of this experiment in the folder for results."""
        return self.out / f"{self.name}{'-quick' if self.quick else ''}{ending}"

    @property
    def journal(self) -> Path:
        """Where finished repeats are kept, one line of JSON each."""
        return self.out / "runs" / f"{self.name}{'-quick' if self.quick else ''}-seed{self.seed}.jsonl"

    def read(self, file: str, column: str) -> Array | None:
        """A column of numbers of a CSV file in the folder of data, or None where no folder was named."""
        if self.data is None:
            return None
        path = self.data / file
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        try:
            return np.array([float(row[column]) for row in rows])
        except (KeyError, TypeError, ValueError):
            raise OSError(f"{path} must have a column {column!r} of numbers") from None

    def save(self, figure: Any, part: str = "") -> Path:
        """Write a figure: `<name>.png`, or `<name>-<part>.png`."""
        path = self.path(f"-{part}.png" if part else ".png")
        figure.savefig(path, dpi=100 if self.quick else 150)
        return path

    def generator(self, repeat: int, case: int = 0) -> np.random.Generator:
        """The stream of one repeat of one case: the same whatever else is run, and in whatever order."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(repeat, case)))

    def repeat(
        self, once: Once, settings: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], *, paired: bool = False
    ) -> Runs:
        """Run `once(settings | case, rng)` for every case, `settings["repeats"]` times, and gather the numbers.

        Each result is saved as soon as it is there. What an earlier call with the same settings has saved is not run again.

        Args:
            once: returns a dictionary of numbers, with the same names for all cases. It may be NaN where a method fails.
            settings: all that decides the numbers, in types that JSON knows.
            cases: what is varied, such as `[{"n": 50}, {"n": 100}]`.
            paired: whether all cases of a repeat start from the same random numbers.
        """
        function = getattr(once, "__qualname__", "")  # which a partial function does not have
        journal = _Journal(self.journal, _digest([self.name, function, settings, list(cases), paired]))
        done = journal.read()
        wanted = [(r, c) for r in range(settings["repeats"]) for c in range(len(cases))]
        left = [cell for cell in wanted if cell not in done]
        shown = None if self.progress else False
        with progress_bar(len(wanted), self.name, shown, done=len(wanted) - len(left)) as bar:
            for r, c in left:
                start = time.perf_counter()
                numbers = once({**settings, **cases[c]}, self.generator(r, 0 if paired else c))
                done[r, c] = journal.add(r, c, cases[c], numbers, time.perf_counter() - start)
                bar.update()
        return Runs.gather(cases, [done[cell] for cell in wanted], fresh=len(left))


class _Journal:
    """Finished repeats in a file of JSON lines; lines with another key belong to other settings and are left alone."""

    def __init__(self, path: Path, key: str):
        self.path, self.key = path, key

    @cached_property
    def code(self) -> str:
        """A mark of the library's source, to tell whether saved numbers come from the same one."""
        files = sorted(Path(__file__).parents[1].rglob("*.py"))
        return _digest([hashlib.sha256(file.read_bytes()).hexdigest() for file in files])

    def read(self) -> dict[tuple[int, int], dict[str, Any]]:
        if not self.path.exists():
            return {}
        records = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except ValueError:  # the process ended in the middle of this line
                continue
            if record["key"] == self.key:
                record["same_code"] = record["code"] == self.code
                records[record["repeat"], record["position"]] = record
        return records

    def add(
        self, repeat: int, position: int, case: Mapping[str, Any], numbers: Mapping[str, float], seconds: float
    ) -> dict[str, Any]:
        finite = {name: float(v) if math.isfinite(v) else None for name, v in numbers.items()}
        record = {"key": self.key, "code": self.code, "repeat": repeat, "position": position, "case": dict(case)}
        record |= {"seconds": round(seconds, 4), "numbers": finite}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab+") as file:
            if file.tell():
                file.seek(-1, 2)
                if file.read() != b"\n":  # a line that was cut off must not swallow this one
                    file.write(b"\n")
            file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        return {**record, "same_code": True}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Runs:
    """The numbers of all repeats: by name, an array (cases, repeats)."""

    cases: Sequence[Mapping[str, Any]]
    values: Mapping[str, Array]
    seconds: float = 0.0  # spent on the repeats, in this call and in earlier ones
    read_back: int = 0  # results of earlier calls among them
    same_code: bool = True  # whether those come from the same source code

    @classmethod
    def gather(cls, cases: Sequence[Mapping[str, Any]], records: Sequence[dict[str, Any]], fresh: int) -> Runs:
        """From records in the order repeat by repeat, each with all its cases."""
        names = list(records[0]["numbers"])
        for record in records:
            if list(record["numbers"]) != names:
                raise ValueError(
                    f"one repeat gave {names} and another {list(record['numbers'])}; they must be the same"
                )
        flat = {name: np.array([r["numbers"][name] for r in records], dtype=np.float64) for name in names}
        return cls(
            cases,
            {name: numbers.reshape(-1, len(cases)).T for name, numbers in flat.items()},
            seconds=sum(r["seconds"] for r in records),
            read_back=len(records) - fresh,
            same_code=all(r["same_code"] for r in records),
        )

    def __getitem__(self, name: str) -> Array:
        return self.values[name]

    def case(self, name: str) -> Array:
        """What was varied under this name, one value per case."""
        return np.array([case[name] for case in self.cases])

    def where(self, **wanted: Any) -> Runs:
        """Only the cases with these values."""
        return self.take([i for i, case in enumerate(self.cases) if all(case.get(k) == v for k, v in wanted.items())])

    def take(self, positions: Sequence[int]) -> Runs:
        """Only the cases at these positions."""
        kept = list(positions)
        return Runs([self.cases[i] for i in kept], {name: v[kept] for name, v in self.values.items()})

    def mean(self, name: str) -> Array:
        """Means over the repeats, one per case."""
        return self.values[name].mean(-1)

    def standard_error(self, name: str) -> Array:
        """Standard errors of those means."""
        return np.array([estimate.error for estimate in self.estimates(name)])

    def estimates(self, name: str) -> list[Estimate]:
        """Means with their standard errors, one per case."""
        return [mean(row) for row in self.values[name]]

    def records(self) -> list[dict[str, Any]]:
        """One dictionary per case, with the numbers of every repeat."""
        return [{**case, **{name: v[i] for name, v in self.values.items()}} for i, case in enumerate(self.cases)]

"""Runs that are kept in this process for as long as a simulation is open: no file, nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from .._typing import Array
from ._records import Book, Form, Record, runs_of
from ._runs import Runs


class Memory(Book):
    """Runs of a design in memory."""

    path = None

    def __init__(self, width: int):
        super().__init__(width)
        self._facts: dict[str, str] = {}
        self._forms: dict[int, Form] = {}
        self._numbers: dict[str, int] = {}  # of forms, by their likeness
        self._records: dict[int, Record] = {}
        self._todo = np.arange(0)

    def fact(self, name: str, value: Any = None) -> Any:
        if value is not None:
            self._facts.setdefault(name, json.dumps(value))
        return json.loads(self._facts[name]) if name in self._facts else None

    def is_empty(self) -> bool:
        return not self._records

    def begin(self) -> None:
        pass  # nobody else is there

    def extend(self, rows: Array, retry_failed: bool = False) -> None:
        self.start, self.rows = self.budget, np.concatenate([self.rows, rows])
        if retry_failed:
            for failure in self.runs().failures:
                del self._records[failure.index]
        self._todo = np.array([run for run in range(self.start, self.budget) if run not in self._records], dtype=int)

    def ended(self) -> int:
        return self.start + sum(run in self._records for run in range(self.start, self.budget))

    def claim(self, number: int, block: int = 1) -> list[int]:
        if not len(self._todo):
            return []
        end = self._todo[min(number, len(self._todo)) - 1] // block * block + block
        cut = int(np.searchsorted(self._todo, end))
        ours, self._todo = self._todo[:cut].tolist(), self._todo[cut:]
        return ours

    def form(self, form: Form) -> tuple[int, Form]:
        number = self._numbers.setdefault(form.likeness, len(self._numbers) + 1)
        return number, self._forms.setdefault(number, form)

    def record(self, records: Iterable[Record]) -> None:
        for record in records:
            output = None if record.output is None else np.array(record.output, dtype=np.float64)
            kept = record._replace(parameters=np.array(record.parameters, dtype=np.float64), output=output)
            self._records.setdefault(record.run, kept)

    def runs(self) -> Runs:
        records = [self._records[run] for run in range(self.start, self.budget) if run in self._records]
        names = self.fact("names")
        return runs_of(records, self._forms, None if names is None else tuple(names), self.fact("dimension") or 0)

    def close(self) -> None:
        pass

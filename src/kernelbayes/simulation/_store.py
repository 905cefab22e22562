"""The ledger of runs: which are done, which failed, and who is working on which. One SQLite file.

Every finished run is committed as it finishes. The write-ahead log with `synchronous=NORMAL` does not wait for the disk at
every commit: nothing that was committed is lost when processes die, in whatever way; when the machine loses power, the last
moments may be, but never the file. What the file looks like, and how it is verified, is in `_layout.py`.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array
from ._checksums import Row
from ._layout import (
    fact,
    in_words,
    open_again,
    open_to_read,
    open_to_write,
    prepare,
    put_fact,
    put_form,
    put_runs,
    rows,
    told,
)
from ._owners import Heartbeat, Owner, Watch, this_process
from ._records import Book, Form, OtherDesign, Record, runs_of
from ._runs import Runs, SimulationError, StoreError

# Looking again for what others have left undone reads the whole table: not at every turn, nor most of the time.
_LOOK_AGAIN, _LOOK_SHARE = 0.2, 0.05
# Same design computed on another machine.
_SAME = 1e-12
# Of the most that SQLite takes for a row, what is left for all but the numbers.
_ROW_MARGIN = 10_000


class Ledger(Book):
    """Runs of a design in a file."""

    def __init__(self, path: str | os.PathLike[str], width: int):
        super().__init__(width)
        self.path: Path = Path(path).absolute()
        self._todo, self._look_at = np.arange(0), -np.inf
        self._number, self._owner = -1, this_process()
        self._watch = Watch()
        self._heartbeat: Heartbeat | None = None
        self._forms: dict[Form, tuple[int, Form]] = {}
        self._db = open_to_write(self.path)
        self._most_bytes = self._db.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) - _ROW_MARGIN
        try:
            with self._transaction():
                prepare(self._db, self.path)
        except BaseException:
            self._db.close()
            raise

    # ---------------------------------------------------------------------------------------- what is known of it

    def fact(self, name: str, value: Any = None) -> Any:
        """What the store says, and if it does not say yet, what is given."""
        with self._transaction():
            if value is not None:
                put_fact(self._db, name, json.dumps(value))
            return fact(self._db, name)

    def is_empty(self) -> bool:
        """Whether there is no run yet."""
        return self._db.execute("SELECT 1 FROM runs LIMIT 1").fetchone() is None

    def begin(self) -> None:
        """Enter this process as an owner."""
        self._owner.begin()
        self._number = secrets.randbits(62)  # never that of one who is gone
        with self._transaction():
            self._enter()
        self._heartbeat = Heartbeat(self._beat)

    def _enter(self) -> None:
        """Others may have taken this process for dead, if it was stopped for long."""
        self._db.execute("INSERT OR IGNORE INTO owners VALUES (?, ?, ?, ?, ?)", (self._number, *self._owner))

    def extend(self, rows: Array, retry_failed: bool = False) -> None:
        """Add rows (k, d) to the design, and compare them with what the store holds."""
        self.start, self.rows = self.budget, np.concatenate([self.rows, rows])
        self._todo, self._look_at = np.arange(0), -np.inf
        with self._transaction():
            self._check_design()
            if retry_failed:
                found = read_runs(self._db, self.path, self.start, self.budget)
                failed = [(failure.index,) for failure in found.failures]
                self._db.executemany("DELETE FROM runs WHERE run = ?", failed)

    def _check_design(self) -> None:
        query = "SELECT run, parameters FROM runs WHERE run >= ? AND run < ? ORDER BY run"
        found = self._db.execute(query, (self.start, self.budget)).fetchall()
        index = [run for run, _ in found]
        known, given = _numbers([blob for _, blob in found]).reshape(len(index), self.rows.shape[1]), self.rows[index]
        differ = ~np.isclose(known, given, rtol=_SAME, atol=0.0).all(axis=1)
        if differ.any():
            first = int(differ.argmax())
            list(rows(self._db, self.path, index[first], index[first] + 1))  # unless it is damaged
            raise OtherDesign(
                f"parameters: the store {self.path} holds run {index[first]} with parameters {_brief(known[first])}, but "
                f"row {index[first]} of this design is {_brief(given[first])}. A store belongs to one design: use another "
                "store, or the design that this one was made with"
            )

    def ended(self) -> int:
        """How many runs have ended, well or not."""
        query = "SELECT COUNT(*) FROM runs WHERE run >= ? AND run < ?"
        with told(self.path):
            return self.start + self._db.execute(query, (self.start, self.budget)).fetchone()[0]

    # ----------------------------------------------------------------------------------------------- who does what

    def claim(self, number: int, block: int = 1) -> list[int]:
        """Up to `number` runs (and the rest of the last block) that nobody has done or is doing: now they are ours."""
        if not len(self._todo) and not self._look():
            return []
        ours: list[int] = []
        with self._transaction():
            while len(ours) < number and len(self._todo):
                end = self._todo[min(number - len(ours), len(self._todo)) - 1] // block * block + block
                cut = int(np.searchsorted(self._todo, end))
                wanted, self._todo = self._todo[:cut].tolist(), self._todo[cut:]
                taken = self._taken(wanted[0], wanted[-1])
                ours += [run for run in wanted if run not in taken]
            self._enter()
            self._db.executemany("INSERT INTO claims VALUES (?, ?)", [(run, self._number) for run in ours])
        return ours

    def _look(self) -> bool:
        """Look for runs that are neither done nor claimed by the living."""
        start = time.monotonic()
        if start < self._look_at:
            return False
        with self._transaction():
            query = "SELECT owner, host, pid, started, heartbeat FROM owners WHERE owner != ?"
            for number, *who in self._db.execute(query, (self._number,)).fetchall():
                owner = Owner(*who)
                if owner.has_ended() or self._watch.is_silent(number, owner.heartbeat):
                    self._forget(number)
            self._db.execute("DELETE FROM claims WHERE owner NOT IN (SELECT owner FROM owners)")
            free = np.ones(self.budget, bool)
            free[: self.start] = False
            free[list(self._taken(self.start, self.budget - 1))] = False
        self._todo, end = np.flatnonzero(free), time.monotonic()
        self._look_at = end + max(_LOOK_AGAIN, (end - start) / _LOOK_SHARE)
        return bool(len(self._todo))

    def _taken(self, first: int, last: int) -> set[int]:
        queries = (f"SELECT run FROM {table} WHERE run BETWEEN ? AND ?" for table in ("runs", "claims"))
        return {run for query in queries for (run,) in self._db.execute(query, (first, last))}

    def _forget(self, number: int) -> None:
        self._db.execute("DELETE FROM claims WHERE owner = ?", (number,))
        self._db.execute("DELETE FROM owners WHERE owner = ?", (number,))

    def _beat(self) -> None:
        self._elsewhere("UPDATE owners SET heartbeat = ? WHERE owner = ?", time.time(), self._number)

    def _release(self) -> bool:
        """Forget this owner when there is room for it again; True when there is no more to do."""
        # its claims are then nobody's
        return self._elsewhere("DELETE FROM owners WHERE owner = ?", self._number) or not self.path.exists()

    def _elsewhere(self, statement: str, *values: Any) -> bool:
        """Execute a statement from a thread, with a connection of its own; whether that was possible."""
        with suppress(sqlite3.Error), closing(open_again(self.path, timeout=1.0)) as db:
            db.execute(statement, values)
            return True
        return False

    # ---------------------------------------------------------------------------------------------- what came of it

    def form(self, form: Form) -> tuple[int, Form]:
        """The number of a form, and the form itself with its statistics in the order that came first."""
        if form not in self._forms:
            with self._transaction():
                put_form(self._db, None, form.likeness, json.dumps(form))
                query = "SELECT form, value FROM forms WHERE likeness = ?"
                number, value = self._db.execute(query, (form.likeness,)).fetchone()
            self._forms[form] = number, Form.read(value)
        return self._forms[form]

    def record(self, records: Iterable[Record]) -> None:
        """Write runs that have ended, in one transaction; a run that is there already stays as it is."""
        now = time.time()
        lines = [
            (run, _blob(row), None if output is None else _blob(output), *rest, now)
            for run, row, output, *rest in records
        ]
        large = self._too_large(lines)
        with self._transaction():
            put_runs(self._db, [line for line in lines if line[0] not in large] if large else lines)
            self._db.executemany("DELETE FROM claims WHERE run = ?", [line[:1] for line in lines])
        if large:
            run, size = next(iter(large.items()))
            raise SimulationError(
                f"simulator: run {run} returned {size / 1e9:.3g} GB, where {self._most_bytes / 1e9:.3g} GB can be kept of "
                "one run: return less, such as statistics of it, or write it to a file of its own",
                self.runs(),
            )

    def _too_large(self, lines: Sequence[tuple[Any, ...]]) -> dict[int, int]:
        """Bytes of those runs that are more than SQLite takes."""
        if sum(len(row) + len(output or b"") for _, row, output, *_ in lines) <= self._most_bytes:
            return {}
        sizes = {run: len(row) + len(output or b"") for run, row, output, *_ in lines}
        return {run: size for run, size in sizes.items() if size > self._most_bytes}

    def runs(self) -> Runs:
        """Those of the rows that were added last that have ended."""
        with told(self.path):
            self._check_design()  # others may have added to it since
            return read_runs(self._db, self.path, self.start, self.budget)

    def close(self) -> None:
        """Release what is ours and has not been done."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self._owner.end()
        try:
            with self._transaction():
                self._forget(self._number)
        except StoreError:  # no room for that either: others should not wait for this process to end
            if self._heartbeat is not None:
                Heartbeat(self._release)
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException as problem:
            if self._db.in_transaction:  # on a full disk SQLite has ended it already
                self._db.execute("ROLLBACK")
            if isinstance(problem, sqlite3.Error):
                raise in_words(problem, self.path) from problem
            raise


def read_runs(db: sqlite3.Connection, path: Path, first: int = 0, below: int = 2**62) -> Runs:
    """The runs of a ledger from a number on, and below one if it is given, each compared with its checksum."""
    found = [_record(row) for row in rows(db, path, first, below)]
    forms = {number: Form.read(text) for number, text in db.execute("SELECT form, value FROM forms")}
    names = fact(db, "names")
    return runs_of(found, forms, None if names is None else tuple(names), fact(db, "dimension") or 0)


def _record(row: Row) -> Record:
    output = None if row.output is None else np.frombuffer(row.output, "<f8")
    parameters = np.frombuffer(row.parameters, "<f8")
    return Record(row.run, parameters, output, row.form, row.seconds, row.kind, row.reason)


def read_store(path: Path) -> Runs:
    """The runs of a store, which is not written to."""
    with open_to_read(path) as db:
        return read_runs(db, path)


def _blob(array: Array) -> bytes:
    return np.ascontiguousarray(array, dtype="<f8").tobytes()


def _numbers(blobs: Sequence[bytes]) -> Array:
    return np.frombuffer(b"".join(blobs), "<f8").astype(np.float64)


def _brief(row: Array) -> str:
    return "[" + ", ".join(f"{v:.6g}" for v in row[:6]) + (", ..." if len(row) > 6 else "") + "]"

"""The ledger of runs: which are done, which failed, and who is working on which. One SQLite file, or memory.

Every finished run is committed as it finishes. The write-ahead log with `synchronous=NORMAL` does not wait for the disk at
every commit: nothing that was committed is lost when processes die, in whatever way; when the machine loses power, the last
moments may be, but never the file.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ._owners import Heartbeat, Owner, this_process
from ._runs import Failure, Runs

_APPLICATION = 0x6B625231  # "kbR1", in the header of the file
_VERSION = 1
_TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE runs (run INTEGER PRIMARY KEY, parameters BLOB NOT NULL, output BLOB, form INTEGER, "
    "seconds REAL NOT NULL, kind TEXT, reason TEXT, finished REAL NOT NULL)",
    "CREATE TABLE forms (form INTEGER PRIMARY KEY, likeness TEXT NOT NULL UNIQUE, value TEXT NOT NULL)",
    "CREATE TABLE owners (owner INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL, "
    "heartbeat REAL NOT NULL)",
    "CREATE TABLE claims (run INTEGER PRIMARY KEY, owner INTEGER NOT NULL)",
)
_BUSY_SECONDS = 60.0
# Looking again for what others have left undone reads the whole table: not at every turn, nor most of the time.
_LOOK_AGAIN, _LOOK_SHARE = 0.2, 0.05
# Same design computed on another machine.
_SAME = 1e-12


class Record(NamedTuple):
    """One run as it goes into the ledger; `kind` is None where it finished."""

    run: int
    parameters: Array
    output: Array | None
    form: int | None
    seconds: float
    kind: str | None
    reason: str | None


class Form(NamedTuple):
    """What an output looks like. Runs should agree on one; those that differ from most are failures."""

    shape: tuple[int, ...]
    statistics: tuple[str, ...] | None

    def __str__(self) -> str:
        return f"shape {self.shape}" if self.statistics is None else f"the statistics {', '.join(self.statistics)}"

    @classmethod
    def read(cls, text: str) -> Form:
        """A form as it is kept."""
        shape, statistics = json.loads(text)
        return cls(tuple(shape), None if statistics is None else tuple(statistics))


class OtherDesign(ValueError):
    """A store that holds a run with other parameters than those of the design."""


class Ledger:
    """Runs 0 .. budget - 1 of a design, in a file or (without a path) in memory.

    Attributes:
        rows: the design (budget, d), to which rows are added by `extend`.
        start: where the last of them begin; what was before them is over, and is not looked at again.
    """

    def __init__(self, path: str | os.PathLike[str] | None, width: int):
        self.rows, self.start = np.empty((0, width)), 0
        self.path = None if path is None else Path(path)
        self._db = sqlite3.connect(":memory:", isolation_level=None) if self.path is None else _open(self.path)
        self._todo, self._look_at = np.arange(0), -np.inf
        self._owner = -1
        self._heartbeat: Heartbeat | None = None
        self._forms: dict[Form, tuple[int, Form]] = {}
        with self._transaction():
            if _is_new(self._db):
                _create(self._db)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---------------------------------------------------------------------------------------- what is known of it

    def fact(self, name: str, value: Any = None) -> Any:
        """What the store says, and if it does not say yet, what is given."""
        with self._transaction():
            return self._settle(name, value)

    def _settle(self, name: str, value: Any) -> Any:
        if value is not None:
            self._db.execute("INSERT OR IGNORE INTO facts VALUES (?, ?)", (name, json.dumps(value)))
        return _fact(self._db, name)

    def is_empty(self) -> bool:
        """Whether there is no run yet."""
        return self._db.execute("SELECT 1 FROM runs LIMIT 1").fetchone() is None

    def take_over(self, runs: Runs) -> None:
        """Enter runs that are known already: what a store does, where there is none."""
        if len(runs):
            number, _ = self.form(Form(runs.outputs.shape[1:], runs.statistics))
            done = zip(runs.index, runs.parameters, runs.outputs, runs.seconds, strict=True)
            self.record(Record(int(i), row, output, number, float(s), None, None) for i, row, output, s in done)
        self.record(Record(f.index, f.parameters, None, None, 0.0, f.kind, f.reason) for f in runs.failures)

    def begin(self) -> None:
        """Enter this process as an owner."""
        with self._transaction():
            entry = self._db.execute(
                "INSERT INTO owners (host, pid, started, heartbeat) VALUES (?, ?, ?, ?)", this_process()
            )
            self._owner = int(entry.lastrowid or 0)
        if self.path is not None:
            self._heartbeat = Heartbeat(self._beat)

    @property
    def budget(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def extend(self, rows: Array, retry_failed: bool = False) -> None:
        """Add rows (k, d) to the design, and compare them with what the store holds."""
        self.start, self.rows = self.budget, np.concatenate([self.rows, rows])
        self._todo, self._look_at = np.arange(0), -np.inf
        with self._transaction():
            self._check_design()
            if retry_failed:
                failed = [(failure.index,) for failure in read_runs(self._db, self.start, self.budget).failures]
                self._db.executemany("DELETE FROM runs WHERE run = ?", failed)

    def _check_design(self) -> None:
        query = "SELECT run, parameters FROM runs WHERE run >= ? AND run < ? ORDER BY run"
        found = self._db.execute(query, (self.start, self.budget)).fetchall()
        index = [run for run, _ in found]
        known, given = _numbers([blob for _, blob in found]).reshape(len(index), self.rows.shape[1]), self.rows[index]
        differ = ~np.isclose(known, given, rtol=_SAME, atol=0.0).all(axis=1)
        if differ.any():
            first = int(differ.argmax())
            raise OtherDesign(
                f"parameters: the store {self.path} holds run {index[first]} with parameters {_brief(known[first])}, but "
                f"row {index[first]} of this design is {_brief(given[first])}. A store belongs to one design: use another "
                "store, or the design that this one was made with"
            )

    def ended(self) -> int:
        """How many runs have ended, well or not."""
        query = "SELECT COUNT(*) FROM runs WHERE run >= ? AND run < ?"
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
            self._db.executemany("INSERT INTO claims VALUES (?, ?)", [(run, self._owner) for run in ours])
        return ours

    def _look(self) -> bool:
        """Look for runs that are neither done nor claimed by the living."""
        start = time.monotonic()
        if start < self._look_at:
            return False
        with self._transaction():
            for owner, *who in self._db.execute("SELECT owner, host, pid, started, heartbeat FROM owners").fetchall():
                if owner != self._owner and Owner(*who).is_gone():
                    self._forget(owner)
            free = np.ones(self.budget, bool)
            free[: self.start] = False
            free[list(self._taken(self.start, self.budget - 1))] = False
        self._todo, end = np.flatnonzero(free), time.monotonic()
        self._look_at = end + max(_LOOK_AGAIN, (end - start) / _LOOK_SHARE)
        return bool(len(self._todo))

    def _taken(self, first: int, last: int) -> set[int]:
        queries = (f"SELECT run FROM {table} WHERE run BETWEEN ? AND ?" for table in ("runs", "claims"))
        return {run for query in queries for (run,) in self._db.execute(query, (first, last))}

    def _forget(self, owner: int) -> None:
        self._db.execute("DELETE FROM claims WHERE owner = ?", (owner,))
        self._db.execute("DELETE FROM owners WHERE owner = ?", (owner,))

    def _beat(self) -> None:
        with suppress(sqlite3.Error), closing(sqlite3.connect(str(self.path), timeout=1.0, isolation_level=None)) as db:
            db.execute("UPDATE owners SET heartbeat = ? WHERE owner = ?", (time.time(), self._owner))

    # ---------------------------------------------------------------------------------------------- what came of it

    def form(self, form: Form) -> tuple[int, Form]:
        """The number of a form, and the form itself with its statistics in the order that came first."""
        if form not in self._forms:
            likeness = json.dumps((form.shape, None if form.statistics is None else sorted(form.statistics)))
            with self._transaction():
                entry = (likeness, json.dumps(form))
                self._db.execute("INSERT OR IGNORE INTO forms (likeness, value) VALUES (?, ?)", entry)
                query = "SELECT form, value FROM forms WHERE likeness = ?"
                number, value = self._db.execute(query, (likeness,)).fetchone()
            self._forms[form] = number, Form.read(value)
        return self._forms[form]

    def record(self, records: Iterable[Record]) -> None:
        """Write runs that have ended, in one transaction; a run that is there already stays as it is."""
        now = time.time()
        lines = [
            (run, _blob(row), None if output is None else _blob(output), *rest, now)
            for run, row, output, *rest in records
        ]
        with self._transaction():
            self._db.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", lines)
            self._db.executemany("DELETE FROM claims WHERE run = ?", [line[:1] for line in lines])

    def runs(self) -> Runs:
        """Those of the rows that were added last that have ended."""
        self._check_design()  # others may have added to it since
        return read_runs(self._db, self.start, self.budget)

    def close(self) -> None:
        """Release what is ours and has not been done."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
        with suppress(sqlite3.Error), self._transaction():
            self._forget(self._owner)
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def read_runs(db: sqlite3.Connection, first: int = 0, below: int = 2**62) -> Runs:
    """The runs of a ledger from a number on, and below one if it is given."""
    forms = {number: Form.read(text) for number, text in db.execute("SELECT form, value FROM forms")}
    # the form of most; that of the first among equals
    usual = "SELECT form FROM runs WHERE run >= ? AND run < ? AND form IS NOT NULL GROUP BY form"
    (main,) = db.execute(f"{usual} ORDER BY COUNT(*) DESC, MIN(run)", (first, below)).fetchone() or (None,)
    done = "SELECT run, parameters, output, seconds FROM runs WHERE run >= ? AND run < ? AND form = ? ORDER BY run"
    found = db.execute(done, (first, below, main)).fetchall()
    index, parameters, outputs, seconds = zip(*found, strict=True) if found else ((), (), (), ())
    names = _fact(db, "names")
    return Runs(
        parameters=_numbers(parameters).reshape(len(index), _fact(db, "dimension") or 0),
        outputs=_numbers(outputs).reshape(len(index), *(forms[main].shape if found else ())),
        index=np.array(index, dtype=int),
        seconds=np.array(seconds, dtype=float),
        names=None if names is None else tuple(names),
        statistics=forms[main].statistics if found else None,
        failures=tuple(_failures(db, first, below, main, forms)),
    )


def _failures(
    db: sqlite3.Connection, first: int, below: int, main: int | None, forms: dict[int, Form]
) -> Iterator[Failure]:
    found = "SELECT run, parameters, reason, kind, form FROM runs WHERE run >= ? AND run < ? AND form IS NOT ?"
    for run, blob, reason, kind, form in db.execute(f"{found} ORDER BY run", (first, below, main or 0)):
        if form is None:
            yield Failure(run, _numbers([blob]), reason, kind)
        else:
            reason = f"returned {forms[form]}, where most runs returned {forms[main or 0]}"
            yield Failure(run, _numbers([blob]), reason, "wrong shape")


def read_store(path: Path) -> Runs:
    """The runs of a store, which is not written to."""
    if not path.is_file():
        raise ValueError(f"store: there is no file {path}")
    try:
        return _read_only(path, "mode=ro")
    except sqlite3.OperationalError:  # in a folder that may not be written, the log cannot be shared with a writer
        try:
            return _read_only(path, "immutable=1")
        except sqlite3.Error as problem:
            raise ValueError(f"store: cannot read {path}: {problem}") from None
    except sqlite3.Error as problem:
        raise ValueError(f"store: {path} is not a store of runs: {problem}") from None


def _read_only(path: Path, mode: str) -> Runs:
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=_BUSY_SECONDS)) as db:
        if _is_new(db):
            raise ValueError(f"store: {path} is empty")
        _refuse_others(db, path)
        return read_runs(db)


# ------------------------------------------------------------------------------------------------------ the file itself


def _open(path: Path) -> sqlite3.Connection:
    """A connection to a store or to a new file; anything else is refused before it is touched."""
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise ValueError(f"store: {path} {problem}; give the path of a file such as 'runs.sqlite'")
    try:
        db = sqlite3.connect(str(path), timeout=_BUSY_SECONDS, isolation_level=None)
    except sqlite3.Error as problem:
        raise ValueError(f"store: cannot open {path}: {problem}") from None
    try:
        _refuse_others(db, path)
        _write_ahead(db)
    except sqlite3.Error as problem:
        db.close()
        raise ValueError(f"store: {path} is not a store of runs, or cannot be written: {problem}") from None
    except ValueError:
        db.close()
        raise
    return db


def _refuse_others(db: sqlite3.Connection, path: Path) -> None:
    if _is_new(db):
        return
    if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
        raise ValueError(f"store: {path} is a SQLite file of something else, not a store of runs")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != _VERSION:
        raise ValueError(
            f"store: {path} has version {version} of the layout; this version of kernelbayes reads {_VERSION}"
        )


def _write_ahead(db: sqlite3.Connection) -> None:
    for patience in range(100):  # turning it on needs the file for itself, and does not wait for it
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if patience == 99:
                raise
            time.sleep(0.02)
    db.execute("PRAGMA synchronous = NORMAL")


def _is_new(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _create(db: sqlite3.Connection) -> None:
    for table in _TABLES:
        db.execute(table)
    db.execute(f"PRAGMA application_id = {_APPLICATION}")
    db.execute(f"PRAGMA user_version = {_VERSION}")


def _fact(db: sqlite3.Connection, name: str) -> Any:
    found = db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return None if found is None else json.loads(found[0])


def _blob(array: Array) -> bytes:
    return np.ascontiguousarray(array, dtype="<f8").tobytes()


def _numbers(blobs: Sequence[bytes]) -> Array:
    return np.frombuffer(b"".join(blobs), "<f8").astype(np.float64)


def _brief(row: Array) -> str:
    return "[" + ", ".join(f"{v:.6g}" for v in row[:6]) + (", ..." if len(row) > 6 else "") + "]"

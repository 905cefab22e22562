"""The file of a store: its tables, how it is opened, and what is said when it cannot be.

Every row that a result depends on has a checksum (`_checksums.py`), and what there is one of (the seed, the names, the forms
of outputs) is there twice. A store is verified whenever it is opened: SQLite looks at its own structure, then all rows are
compared with their checksums. Nothing that fails this is ever returned as a number.
"""

from __future__ import annotations

import json
import shlex
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ._checksums import Row, checksum_of, checksum_of_run
from ._owners import Owner
from ._runs import StoreError

APPLICATION = 0x6B625231  # "kbR1", in the header of the file
VERSION = 2
_WITHOUT_CHECKSUMS = 1  # the version that had none
VERSIONS = (VERSION, _WITHOUT_CHECKSUMS)
TABLES = {
    "facts": "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum BLOB) WITHOUT ROWID",
    "runs": "CREATE TABLE runs (run INTEGER PRIMARY KEY, parameters BLOB NOT NULL, output BLOB, form INTEGER, "
    "seconds REAL NOT NULL, kind TEXT, reason TEXT, finished REAL NOT NULL, checksum BLOB)",
    "forms": "CREATE TABLE forms (form INTEGER PRIMARY KEY, likeness TEXT NOT NULL UNIQUE, value TEXT NOT NULL, "
    "checksum BLOB)",
    "owners": "CREATE TABLE owners (owner INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, "
    "started TEXT NOT NULL, heartbeat REAL NOT NULL)",
    "claims": "CREATE TABLE claims (run INTEGER PRIMARY KEY, owner INTEGER NOT NULL)",
    "spare": "CREATE TABLE spare (entry INTEGER PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL, checksum BLOB)",
}
#: A fact: how many runs a store had before it had checksums.
UNVERIFIED = "runs without checksums"
BUSY_SECONDS = 60.0
_COLUMNS = ", ".join(Row._fields[:-1])


# ------------------------------------------------------------------------------------------------------------- opening


def open_to_write(path: Path) -> sqlite3.Connection:
    """A connection to a store or to a new file; anything else, and a damaged store, is refused before it is touched."""
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise ValueError(f"store: {path} {problem}; give the path of a file such as 'runs.sqlite'")
    with _refused(path):
        db = sqlite3.connect(str(path), timeout=BUSY_SECONDS, isolation_level=None)
        try:
            if not is_new(db):
                _refuse_others(db, path)
                verify(db, path)
            _write_ahead(db)
        except BaseException:
            db.close()
            raise
        return db


def open_again(path: Path, timeout: float) -> sqlite3.Connection:
    """A connection to a store that is there, and is not made if it has gone."""
    return sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None)


@contextmanager
def open_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a store that is not written to; its runs are verified as they are read."""
    if not path.is_file():
        raise ValueError(f"store: there is no file {path}")
    with _refused(path), closing(connected_to_read(path)) as db:
        if is_new(db):
            raise ValueError(f"store: {path} is empty")
        _refuse_others(db, path)
        verify(db, path, runs=False)
        yield db


def connected_to_read(path: Path) -> sqlite3.Connection:
    """A connection that does not write, to any file."""
    db = _connected(path, "mode=ro")
    try:
        is_new(db)
    except sqlite3.OperationalError:  # in a folder that may not be written, the log cannot be shared with a writer
        db.close()
        return _connected(path, "immutable=1")
    except BaseException:
        db.close()
        raise
    return db


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, timeout=BUSY_SECONDS)


def _refuse_others(db: sqlite3.Connection, path: Path) -> None:
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        if set(TABLES) - {"spare"} <= {name for (name,) in db.execute("SELECT name FROM sqlite_master")}:
            raise damaged(path, "its header has changed")
        raise ValueError(f"store: {path} is a SQLite file of something else, not a store of runs")
    version = version_of(db)
    if version not in VERSIONS:
        raise ValueError(
            f"store: {path} has version {version} of the layout; this version of kernelbayes reads {VERSION}"
        )


def _write_ahead(db: sqlite3.Connection) -> None:
    for patience in range(100):  # turning it on needs the file for itself, and does not wait for it
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as problem:
            if patience == 99 or _code(problem) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            time.sleep(0.02)
    db.execute("PRAGMA synchronous = NORMAL")


def is_new(db: sqlite3.Connection) -> bool:
    """Whether there is nothing in a file."""
    return db.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def version_of(db: sqlite3.Connection) -> int:
    """The version of the layout."""
    return db.execute("PRAGMA user_version").fetchone()[0]


# -------------------------------------------------------------------------------------------------- making and renewing


def prepare(db: sqlite3.Connection, path: Path | None) -> None:
    """Within a transaction: make the tables of a new file, and give checksums to a store that has none."""
    if is_new(db):
        for table in TABLES.values():
            db.execute(table)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {VERSION}")
    elif version_of(db) == _WITHOUT_CHECKSUMS:
        _refuse_in_use(db, path)
        _add_checksums(db)


def _refuse_in_use(db: sqlite3.Connection, path: Path | None) -> None:
    """A process of an older version could not go on with the new columns."""
    for who in db.execute("SELECT host, pid, started, heartbeat FROM owners"):
        if not (owner := Owner(*who)).has_ended() and time.time() - owner.heartbeat < 3600:
            raise StoreError(
                f"store: {path} is in use by process {owner.pid} with an older version of kernelbayes, whose layout has to "
                "be brought up to date; wait until it has ended"
            )
    db.execute("DELETE FROM owners")
    db.execute("DELETE FROM claims")


def _add_checksums(db: sqlite3.Connection) -> None:
    facts = db.execute("SELECT name, value FROM facts").fetchall()
    forms = db.execute("SELECT form, likeness, value FROM forms").fetchall()
    for table in ("facts", "runs", "forms"):
        db.execute(f"ALTER TABLE {table} ADD COLUMN checksum BLOB")
    db.execute(TABLES["spare"])
    db.execute(f"PRAGMA user_version = {VERSION}")
    for table in ("facts", "forms"):
        db.execute(f"DELETE FROM {table}")
    for name, value in facts:
        put_fact(db, name, value)
    for form in forms:
        put_form(db, *form)
    numbers = [run for (run,) in db.execute("SELECT run FROM runs").fetchall()]
    for run in numbers:  # one at a time: outputs may be large
        line = db.execute(f"SELECT {_COLUMNS} FROM runs WHERE run = ?", (run,)).fetchone()
        db.execute("UPDATE runs SET checksum = ? WHERE run = ?", (checksum_of_run(line), run))
    if numbers:
        put_fact(db, UNVERIFIED, json.dumps(len(numbers)))


def put_fact(db: sqlite3.Connection, name: str, value: str) -> None:
    """Write a fact, unless it is there, and its copy."""
    line = (name, value, checksum_of("facts", name, value))
    if db.execute("INSERT OR IGNORE INTO facts VALUES (?, ?, ?)", line).rowcount:
        _put_copy(db, f"fact {name}", value)


def put_form(db: sqlite3.Connection, form: int | None, likeness: str, value: str) -> None:
    """Write a form, unless it is there, and its copy."""
    entry = db.execute("INSERT OR IGNORE INTO forms (form, likeness, value) VALUES (?, ?, ?)", (form, likeness, value))
    if entry.rowcount:
        number = int(entry.lastrowid or 0)
        checksum = checksum_of("forms", number, likeness, value)
        db.execute("UPDATE forms SET checksum = ? WHERE form = ?", (checksum, number))
        _put_copy(db, f"form {number}", json.dumps((likeness, value)))


def _put_copy(db: sqlite3.Connection, name: str, value: str) -> None:
    line = (name, value, checksum_of("spare", name, value))
    db.execute("INSERT INTO spare (name, value, checksum) VALUES (?, ?, ?)", line)


def put_runs(db: sqlite3.Connection, lines: list[tuple[Any, ...]]) -> None:
    """Write runs, in the order of `Row`, with their checksums; one that is there stays as it is."""
    sealed = [(*line, checksum_of_run(line)) for line in lines]
    db.executemany("INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", sealed)


# ------------------------------------------------------------------------------------------------- reading and verifying


def fact(db: sqlite3.Connection, name: str) -> Any:
    """What a store says under a name, or None."""
    found = db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return None if found is None else json.loads(found[0])


def rows(db: sqlite3.Connection, path: Path | None, first: int = 0, below: int = 2**62) -> Iterator[Row]:
    """Runs from a number on, and below one if it is given, in their order; a damaged one is an error."""
    checked = version_of(db) != _WITHOUT_CHECKSUMS
    columns = f"{_COLUMNS}, checksum" if checked else _COLUMNS
    for line in db.execute(f"SELECT {columns} FROM runs WHERE run >= ? AND run < ? ORDER BY run", (first, below)):
        if checked and line[8] != checksum_of_run(line):
            raise damaged(path, f"run {line[0]} is not as it was written")
        yield Row(*line)


def verify(db: sqlite3.Connection, path: Path, runs: bool = True) -> None:
    """Refuse a store with any damage; with `runs=False` but for that of runs, which are verified when they are read."""
    problem = next(problems(db), None)
    if problem is not None:
        raise damaged(path, problem)
    if runs and version_of(db) != _WITHOUT_CHECKSUMS:
        for _ in rows(db, path, -(2**62)):
            pass


def problems(db: sqlite3.Connection) -> Iterator[str]:
    """What is wrong with a store, in words, but for its runs."""
    for (said,) in db.execute("PRAGMA integrity_check(20)"):
        if said != "ok":
            yield f"SQLite finds: {' '.join(said.split())}"
    if version_of(db) == _WITHOUT_CHECKSUMS:
        return
    found = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
    yield from (f"the table {name} is not as it was made" for name in TABLES if found.get(name) != TABLES[name])
    for name, value, checksum in db.execute("SELECT name, value, checksum FROM facts"):
        if checksum != checksum_of("facts", name, value):
            yield f"the fact {name!r} is not as it was written"
    for form, likeness, value, checksum in db.execute("SELECT form, likeness, value, checksum FROM forms"):
        if checksum != checksum_of("forms", form, likeness, value):
            yield f"form {form} of outputs is not as it was written"
    for name, value, checksum in db.execute("SELECT name, value, checksum FROM spare"):
        if checksum != checksum_of("spare", name, value):
            yield f"the copy of the {name} is not as it was written"


# ------------------------------------------------------------------------------------------------------- errors in words


def damaged(path: Path | None, problem: str) -> StoreError:
    """The error of a store that has changed on the disk."""
    name = shlex.quote(str(path))
    return StoreError(
        f"store: {path} is damaged: {problem}. No number was read from it. `kernelbayes store check {name}` says what is "
        f"lost, `kernelbayes store repair {name}` keeps the rest"
    )


@contextmanager
def told(path: Path | None) -> Iterator[None]:
    """Errors of SQLite in words that say what to do."""
    try:
        yield
    except sqlite3.Error as problem:
        raise in_words(problem, path) from problem


@contextmanager
def _refused(path: Path) -> Iterator[None]:
    """The same while a file is being opened, which may be something else altogether."""
    try:
        with told(path):
            yield
    except StoreError as error:
        cause = error.__cause__
        if isinstance(cause, sqlite3.Error) and _code(cause) == sqlite3.SQLITE_NOTADB:
            name = shlex.quote(str(path))
            raise ValueError(
                f"store: {path} is not a store of runs: {cause}. If it was one, `kernelbayes store check {name}` says what "
                "is left of it"
            ) from None
        raise


def _code(problem: sqlite3.Error) -> int:
    """The kind of an error: the details are above its last byte."""
    return getattr(problem, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


def in_words(problem: sqlite3.Error, path: Path | None) -> StoreError:
    """What SQLite says, and what follows from it."""
    said = f"{problem}, {getattr(problem, 'sqlite_errorname', type(problem).__name__)}"
    kept = "What was written before is kept, and the same call goes on from there"
    code = _code(problem)
    if code == sqlite3.SQLITE_FULL:
        return StoreError(f"store: {path} could not be written: the disk is full ({said}). {kept} once there is room")
    if code == sqlite3.SQLITE_IOERR:
        return StoreError(
            f"store: {path} could not be read or written: the disk failed, or a limit of space or of the size of files was "
            f"reached ({said}). {kept}"
        )
    if code == sqlite3.SQLITE_READONLY:
        return StoreError(
            f"store: {path} cannot be written, because the file or its folder is read-only ({said}). "
            "kernelbayes.open_runs reads it; to go on, copy it to where it can be written"
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(f"store: {path} is locked by another process, for more than {BUSY_SECONDS:g} s ({said})")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreError(f"store: {path} cannot be opened, or not the files beside it ({said})")
    if code == sqlite3.SQLITE_NOMEM:
        return StoreError(f"store: {path}: there is not enough memory ({said})")
    return damaged(path, said)

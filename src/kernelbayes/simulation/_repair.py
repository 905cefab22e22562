"""What is lost of a damaged store, and keeping the rest."""

from __future__ import annotations

import itertools
import json
import mmap
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ._checksums import Row, checksum_of
from ._layout import (
    APPLICATION,
    UNVERIFIED,
    VERSION,
    VERSIONS,
    connected_to_read,
    is_new,
    prepare,
    problems,
    put_fact,
    put_form,
    put_runs,
)
from ._owners import Owner
from ._pages import header_problems, logged_pages, mended, table_rows
from ._report import StoreReport
from ._runs import StoreError

# Runs looked for by their number, one by one, in a gap that cannot be read in order.
_MOST_LOOKED_FOR = 200_000
_MOST_MISSED = 1000
_NEEDED = {
    "entropy": "the seed is lost: give the same random_state again, or later runs have other random numbers",
    "simulator": "the name of the simulator is lost, so that the next one is taken for it",
}


def checked(path: Path) -> StoreReport:
    """What is wrong with a store, and what would be lost. Nothing is written."""
    report = _inspected(path)
    if report.ok:
        return report
    with tempfile.TemporaryDirectory() as folder:
        return _told(report, _salvage(path, Path(folder)))


def repaired(path: Path, target: Path | None) -> StoreReport:
    """Write what is intact to a new file, or in the place of the old one."""
    report = _inspected(path)
    if report.ok:
        return report
    place = path if target is None else target
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=f"{place.name}.") as folder:
        saved = _salvage(path, Path(folder))
        if saved.in_use is not None and target is None:
            raise StoreError(f"store: {path} is in use by process {saved.in_use}; repair it when that has ended")
        new = Path(folder) / "repaired"
        saved.write(new)
        report = _told(report, saved)
        if target is not None:
            os.replace(new, target)
            return replace(report, written=target)
        return replace(report, written=path, backup=_exchange(path, new))


# ------------------------------------------------------------------------------------------------------------ looking


def _inspected(path: Path) -> StoreReport:
    """What is wrong, without a word on what can be saved."""
    if not path.stat().st_size:
        raise ValueError(f"store: {path} is empty")
    found = _header_problems(path)
    runs = unverified = 0
    try:
        with closing(connected_to_read(path)) as db:
            db.text_factory = _text
            if is_new(db) and not found:
                raise ValueError(f"store: {path} is empty")
            found += problems(db)
            for table in ("owners", "claims"):
                db.execute(f"SELECT * FROM {table}").fetchall()
            scan = _Scan(db)
            scan.run()
            runs, unverified = len(scan.rows), scan.unverified
            found += scan.problems
    except sqlite3.Error as problem:
        found.append(f"SQLite cannot read it: {problem}")
    return StoreReport(path, runs, (), unverified, tuple(dict.fromkeys(found)))


def _header_problems(path: Path) -> list[str]:
    """None where the log beside the file holds a later first page: then nobody reads that of the file."""
    log = Path(f"{path}-wal")
    logged = logged_pages(log.read_bytes()) if log.exists() else set()
    if 1 in logged:
        return []
    with path.open("rb") as file:
        return header_problems(file.read(100), None if logged else path.stat().st_size, APPLICATION, VERSIONS)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


class _Scan:
    """Runs as SQLite reads them: in order from both ends, and one by one in between."""

    def __init__(self, db: sqlite3.Connection):
        self._db = db
        columns = {name for _, name, *_ in db.execute("PRAGMA table_info(runs)")}
        self.checked = "checksum" in columns
        self._columns = ", ".join(Row._fields if self.checked else Row._fields[:-1])
        self.rows: dict[int, Row] = {}
        self.seen: set[int] = set()
        self.problems: list[str] = []
        self.whole = False

    @property
    def unverified(self) -> int:
        if not self.checked:
            return len(self.rows)
        with suppress(sqlite3.Error, ValueError, TypeError):
            found = self._db.execute("SELECT value FROM facts WHERE name = ?", (UNVERIFIED,)).fetchone()
            return int(json.loads(found[0])) if found else 0
        return 0

    def run(self) -> None:
        last = self._through("ORDER BY run")
        if self.whole:
            return
        first = self._through("ORDER BY run DESC")
        start, missed = 0 if last is None else last + 1, 0
        for run in range(start, start + _MOST_LOOKED_FOR if first is None else min(first, start + _MOST_LOOKED_FOR)):
            missed += 1
            try:
                for line in self._db.execute(f"SELECT {self._columns} FROM runs WHERE run = ?", (run,)):
                    self._take(line)
                    missed = 0
            except sqlite3.Error:
                if first is not None:
                    self.seen.add(run)
            if first is None and missed > _MOST_MISSED:
                break

    def _through(self, order: str) -> int | None:
        """The last one that could be read."""
        last = None
        try:
            for line in self._db.execute(f"SELECT {self._columns} FROM runs {order}"):
                last = line[0]
                self._take(line)
            self.whole = True
        except sqlite3.Error as problem:
            after = "" if last is None else f" next to run {last}"
            self.problems.append(f"runs{after} cannot be read: {problem}")
        return last

    def _take(self, line: tuple[Any, ...]) -> None:
        row = Row(*line)
        if row.run in self.rows:
            return
        self.seen.add(row.run)
        if not self.checked or row.is_intact:
            self.rows[row.run] = row
        else:
            self.problems.append(f"run {row.run} is not as it was written")


# -------------------------------------------------------------------------------------------------------------- saving


@dataclass
class _Saved:
    """What is intact of a store."""

    rows: dict[int, Row] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    forms: dict[int, tuple[str, str]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    unverified: int = 0
    in_use: int | None = None
    sound: bool = False  # whether the tree of the file is

    def write(self, path: Path) -> None:
        """Make a store of it."""
        with closing(sqlite3.connect(str(path), isolation_level=None)) as db:
            db.execute("BEGIN")
            prepare(db, path)
            for name, value in self.facts.items():
                put_fact(db, name, value)
            for form, (likeness, value) in sorted(self.forms.items()):
                put_form(db, form, likeness, value)
            for row in self.rows.values():
                put_runs(db, [row[:8]])
            db.execute("COMMIT")

    def settle(self) -> None:
        """Leave out runs whose form is not known, and say again what follows from the others."""
        self.rows = {n: row for n, row in sorted(self.rows.items()) if row.form is None or row.form in self.forms}
        if self.rows:
            first = next(iter(self.rows.values()))
            self.facts.setdefault("dimension", json.dumps(len(first.parameters) // 8))
        if self.unverified:
            self.facts[UNVERIFIED] = json.dumps(self.unverified)

    @property
    def lost(self) -> tuple[int, ...]:
        """Gaps before the last that is intact, and what is damaged after it, whose number may be wrong as well."""
        last = max(self.rows, default=-1)
        gaps = [run for run in range(last) if run not in self.rows]
        return (*gaps, *sorted(run for run in self.seen if run > last))


def _salvage(path: Path, folder: Path) -> _Saved:
    """All that can be read from a copy of a store, with the log beside it."""
    copy, saved = folder / "copy.sqlite", _Saved()
    shutil.copyfile(path, copy)
    if Path(f"{path}-wal").exists():
        shutil.copyfile(f"{path}-wal", f"{copy}-wal")
    _mend(copy)
    with suppress(sqlite3.Error), closing(sqlite3.connect(str(copy), isolation_level=None)) as db:
        db.text_factory = _text
        with suppress(sqlite3.Error):
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        _read(db, saved)
    if not saved.sound:  # else it would find nothing but rows that were deleted
        with copy.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for number, columns in table_rows(data):
                _take(saved, number, columns)
    saved.settle()
    if not saved.rows and not saved.facts:
        raise ValueError(f"store: {path} is not a store of runs, or nothing of it can be read")
    return saved


def _mend(copy: Path) -> None:
    if _header_problems(copy):
        with copy.open("r+b") as file:
            header = file.read(100)
            version = int.from_bytes(header[60:64], "big")
            right = mended(header, copy.stat().st_size, APPLICATION, version if version in VERSIONS else VERSION)
            file.seek(0)
            file.write(right)


def _read(db: sqlite3.Connection, saved: _Saved) -> None:
    """By SQLite, as far as it goes."""
    checked = True
    with suppress(sqlite3.Error):
        scan = _Scan(db)
        scan.run()
        checked, saved.unverified = scan.checked, scan.unverified
        saved.rows, saved.seen = scan.rows, scan.seen
        saved.sound = scan.whole and db.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
    ending = ", checksum" if checked else ""
    for name, value, *checksum in _lines(db, f"SELECT name, value{ending} FROM facts"):
        if not checked or checksum[0] == checksum_of("facts", name, value):
            saved.facts[name] = value
    for form, likeness, value, *checksum in _lines(db, f"SELECT form, likeness, value{ending} FROM forms"):
        if not checked or checksum[0] == checksum_of("forms", form, likeness, value):
            saved.forms[form] = likeness, value
    for name, value, checksum in _lines(db, "SELECT name, value, checksum FROM spare"):
        _take(saved, 0, [None, name, value, checksum])
    for who in _lines(db, "SELECT host, pid, started, heartbeat FROM owners"):
        with suppress(TypeError, ValueError, AttributeError):
            if (owner := Owner(*who)).host and not owner.has_ended():
                saved.in_use = owner.pid


def _lines(db: sqlite3.Connection, query: str) -> Iterator[Any]:
    with suppress(sqlite3.Error):
        yield from db.execute(query)


def _take(saved: _Saved, number: int, columns: list[Any]) -> None:
    """A row off a page, if its checksum says that it is one of ours."""
    if len(columns) == len(Row._fields):
        with suppress(TypeError, ValueError):
            _, parameters, output, form, seconds, kind, reason, finished, checksum = columns
            row = Row(number, parameters, output, form, float(seconds), kind, reason, float(finished), checksum)
            if row.is_intact:
                saved.rows.setdefault(number, row)
    elif len(columns) == 4:
        _, name, value, checksum = columns
        if checksum == checksum_of("forms", number, name, value):
            saved.forms.setdefault(number, (name, value))
        elif checksum == checksum_of("spare", name, value):
            kind, _, name = name.partition(" ")
            if kind == "fact":
                saved.facts.setdefault(name, value)
            else:
                saved.forms.setdefault(int(name), tuple(json.loads(value)))


def _told(report: StoreReport, saved: _Saved) -> StoreReport:
    missing = [said for name, said in _NEEDED.items() if saved.rows and name not in saved.facts]
    return replace(
        report,
        runs=len(saved.rows),
        lost=saved.lost,
        unverified=saved.unverified,
        problems=(*report.problems, *missing),
    )


def _exchange(path: Path, new: Path) -> Path:
    """Put the new file in the place of the old one, of which a copy is made first."""
    names = (f"{path}.damaged" + (f"-{i}" if i else "") for i in itertools.count())
    backup = next(Path(name) for name in names if not os.path.exists(name))
    shutil.copy2(path, backup)
    log = Path(f"{path}-wal")
    if log.exists():
        shutil.copy2(log, f"{backup}-wal")
    for beside in (log, Path(f"{path}-shm")):  # they belong to the old file, and would spoil the new one
        beside.unlink(missing_ok=True)
    shutil.copymode(path, new)
    os.replace(new, path)
    return backup

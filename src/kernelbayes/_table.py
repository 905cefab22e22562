"""Tables in text files: reading what people's loggers and spreadsheets write, and writing results back.

Only the standard library's `csv` and NumPy. Whatever is wrong with a file is a ValueError of one line that names the file,
the line in it, and the column.
"""

from __future__ import annotations

import csv
import difflib
import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from . import _check
from ._typing import Array

_DELIMITERS = ",;\t"
_GAPS = frozenset({"", "nan", "na", "n/a", "null", "none"})
_MOST_NAMES = 20  # listed in a message
_MOST_COMPARED = 2000  # names among which one that was misspelt is looked for
# Text that a spreadsheet would run as a formula; an apostrophe in front makes it text, and is taken off again on reading.
_FORMULA, _ESCAPED = re.compile(r"'*[=+\-@\t\r].", re.DOTALL), re.compile(r"'+[=+\-@\t\r].", re.DOTALL)


@dataclass(frozen=True)
class Table:
    """A table as it was read: cells are text until numbers are asked for.

    Attributes:
        source: where it came from, for messages.
        names: of the columns, in the order of the file.
        columns: the cells of each, without the space around them.
        lines: (n,) line of the file on which each row ends.

    Example:
        >>> table = parse_table("t,x\\n0,1.5\\n1,\\n", "log.csv")
        >>> table.names, len(table), table.numbers(["x"], gaps="allow")[:, 0]
        (('t', 'x'), 2, array([1.5, nan]))
        >>> table.numbers(["x"])
        Traceback (most recent call last):
            ...
        ValueError: log.csv has no value in column 'x' on line 3
    """

    source: str
    names: tuple[str, ...]
    columns: Mapping[str, list[str]]
    lines: Array

    def __len__(self) -> int:
        return len(self.lines)

    def require(self, names: Iterable[str]) -> None:
        """Refuse names that are no columns of this table, suggesting what may have been meant."""
        for name in names:
            if name not in self.columns:
                close = difflib.get_close_matches(name, self.names[:_MOST_COMPARED], n=1)
                close = close or [other for other in self.names if other.lower() == name.lower()]
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"{self.source} has no column {name!r}{hint} (it has {_listed(self.names)})")

    def text(self, name: str) -> list[str]:
        """The cells of one column as they stand in the file."""
        self.require([name])
        return self.columns[name]

    def numbers(self, names: Sequence[str], *, gaps: str = "refuse") -> Array:
        """Columns as numbers (n, len(names)); an empty cell is NaN with `gaps="allow"`, and refused otherwise."""
        _check.option(gaps, "gaps", ("allow", "refuse"))
        self.require(names)
        out = np.empty((len(self), len(names)))
        for j, name in enumerate(names):
            out[:, j] = self._parsed(name)
            if gaps == "refuse" and np.isnan(out[:, j]).any():
                line = self.lines[np.isnan(out[:, j]).argmax()]
                raise ValueError(f"{self.source} has no value in column {name!r} on line {line}")
        return out

    def is_numeric(self, name: str) -> bool:
        """Whether a column is meant to hold numbers: most of its cells do, leaving gaps aside."""
        filled = [cell for cell in self.columns[name] if cell.lower() not in _GAPS]
        return 2 * sum(map(_is_number, filled)) > len(filled)

    def is_empty(self, name: str) -> bool:
        """Whether a column holds nothing but gaps."""
        return all(cell.lower() in _GAPS for cell in self.columns[name])

    def _parsed(self, name: str) -> Array:
        cells = self.columns[name]
        try:  # the usual case, and quick
            out = np.array([float(cell or "nan") for cell in cells])
            if not np.isinf(out).any() and not any("_" in cell for cell in cells):
                return out
        except ValueError:
            out = np.empty(len(self))
        for i, cell in enumerate(cells):
            try:
                out[i] = _number(cell)
            except ValueError as reason:
                raise ValueError(f"{self.source}, line {self.lines[i]}, column {name!r}: {reason}") from None
        return out


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a text table with a header line; delimiter comma, semicolon or tab, in UTF-8 with or without a mark."""
    try:
        raw = Path(path).read_bytes()
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    except OSError as reason:
        raise ValueError(f"cannot read {path}: {reason.strerror}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8; save it as CSV in that encoding") from None
    return parse_table(text, str(path))


def parse_table(text: str, source: str) -> Table:
    """The same from text; `source` is what messages call it."""
    if "\0" in text:
        raise ValueError(f"{source} is not a text table: it holds NUL bytes")
    rows = _rows(text, source)
    if not rows:
        raise ValueError(f"{source} is empty")
    (_, header), *rows = rows
    _check_header(header, source)
    if not rows:
        raise ValueError(f"{source} has a header but no rows")
    for line, row in rows:
        if len(row) != len(header):
            raise ValueError(f"{source}, line {line}: {_fields(row)} where the header has {len(header)}")
    # Columns without a name are row numbers or come from a delimiter at the end of each line.
    columns = {name: [row[j] for _, row in rows] for j, name in enumerate(header) if name}
    return Table(source, tuple(columns), columns, np.array([line for line, _ in rows]))


def write_table(path: str | os.PathLike[str], columns: Iterable[tuple[str, Iterable[object]]]) -> None:
    """Write named columns of equal length with a header; numbers as they are, exactly, and NaN as an empty cell.

    Text that a spreadsheet would take for a formula gets an apostrophe in front, which `read_table` takes off again.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "classes.csv"
        >>> write_table(path, [("kind", ["=1+1", "-1.5", "plain"]), ("x", [-1.5, 0.0, 1.0])])
        >>> path.read_text().split()
        ['kind,x', "'=1+1,-1.5", '-1.5,0.0', 'plain,1.0']
        >>> read_table(path).text("kind")
        ['=1+1', '-1.5', 'plain']
    """
    names, values = zip(*columns, strict=True)
    double = _repeated(names)
    if double is not None:
        raise ValueError(f"two columns of {path} would be called {double!r}; rename one of them")
    cells = [[_cell(value) for value in column] for column in values]
    path = Path(path)
    unfinished = path.with_name(path.name + ".part")
    try:
        with open(unfinished, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([_cell(name) for name in names])
            writer.writerows(zip(*cells, strict=True))
        os.replace(unfinished, path)  # a crash leaves the old file or the new one, never half of one
    except OSError as reason:
        unfinished.unlink(missing_ok=True)
        raise ValueError(f"cannot write {path}: {reason.strerror}") from None


def _rows(text: str, source: str) -> list[tuple[int, list[str]]]:
    """Lines that are not blank, split into cells, each with its number."""
    first = next((line for line in io.StringIO(text) if line.strip()), "")
    delimiter = max(_DELIMITERS, key=lambda d: _count(first, d))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    try:
        rows = [(reader.line_num, [_unescaped(cell.strip()) for cell in row]) for row in reader]
    except csv.Error as reason:
        long = "field larger" in str(reason)
        told = f"a cell has more than {csv.field_size_limit():,} characters; is a quote left open?" if long else reason
        raise ValueError(f"{source}, line {reader.line_num}: {told}") from None
    while rows and not any(rows[0][1]):
        rows.pop(0)
    while rows and not rows[-1][1]:
        rows.pop()
    if rows and len(rows[0][1]) == 1:  # in a single column a blank line is an empty cell
        return [(line, row or [""]) for line, row in rows]
    return [(line, row) for line, row in rows if row not in ([], [""])]


def _count(line: str, delimiter: str) -> int:
    """Of cells in a line; none if it cannot be split at this delimiter."""
    try:
        return len(next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error:
        return 0


def _check_header(header: list[str], source: str) -> None:
    named = [name for name in header if name]
    if all(_is_number(name) for name in named):
        raise ValueError(f"{source} has no header: its first line holds numbers where names of columns were wanted")
    double = _repeated(named)
    if double is not None:
        raise ValueError(f"{source} has two columns called {_shown(double)}")


def _repeated(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _is_number(cell: str) -> bool:
    try:
        return not np.isnan(_number(cell))
    except ValueError:
        return False


def _number(cell: str) -> float:
    """A finite number or NaN for a gap; a ValueError says what is wrong with anything else."""
    if cell.lower() in _GAPS:
        return np.nan
    try:
        value = float(cell) if "_" not in cell else None
    except ValueError:
        value = None
    if value is None:
        comma = cell.count(",") == 1 and _is_number(cell.replace(",", "."))
        shown = _shown(cell)
        raise ValueError(f"{shown} has a decimal comma; write a point" if comma else f"{shown} is not a number")
    if np.isinf(value):
        raise ValueError(f"{_shown(cell)} is not a finite number")
    return value


def _cell(value: object) -> object:
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else repr(float(value))
    if isinstance(value, str) and _FORMULA.match(value) and not _is_number(value):
        return f"'{value}"
    return value


def _unescaped(cell: str) -> str:
    return cell[1:] if _ESCAPED.match(cell) else cell


def _shown(cell: str) -> str:
    return repr(cell) if len(cell) <= 80 else f"{cell[:60]!r}..."


def _fields(row: list[str]) -> str:
    return f"{len(row)} value" + "s" * (len(row) != 1)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(name if len(name) <= 80 else f"{name[:60]}..." for name in names[:_MOST_NAMES]) + (
        f" and {more} more" if more > 0 else ""
    )

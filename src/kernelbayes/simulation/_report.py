"""Whether a store is as it was written, for users: what `_repair.py` finds, in words."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_SHOWN = 12


@dataclass(frozen=True)
class StoreReport:
    """What `check_store` and `repair_store` found.

    Attributes:
        path: the store.
        runs: how many runs are intact, failures among them.
        lost: numbers of the runs of a damaged store that are not, up to the last that is seen; some may never have been
            made. The next call runs them again.
        unverified: how many of the intact ones were written by a version without checksums, so that it is not known whether
            they are as they were written.
        problems: all that is wrong with the file, in words; empty if nothing is.
        written: the file that the intact runs are in now, if it was repaired.
        backup: the damaged file, if it was moved.
    """

    path: Path
    runs: int
    lost: tuple[int, ...] = ()
    unverified: int = 0
    problems: tuple[str, ...] = ()
    written: Path | None = None
    backup: Path | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        state = "no damage found" if self.ok else "damaged"
        lines = [f"{self.path}: {_counted(self.runs, 'run')} intact; {state}"]
        lines += [f"- {problem}" for problem in self.problems[:_SHOWN]]
        if len(self.problems) > _SHOWN:
            lines.append(f"- and {len(self.problems) - _SHOWN} more problems")
        if self.lost:
            more = f" and {len(self.lost) - _SHOWN} more" if len(self.lost) > _SHOWN else ""
            lines.append(f"lost: run {', '.join(map(str, self.lost[:_SHOWN]))}{more}; the next call makes them again")
        if self.unverified:
            lines.append(
                f"{_counted(self.unverified, 'run')} of a version without checksums: whether they are as they were written "
                "is not known"
            )
        if self.written is not None:
            lines.append(f"what is intact is in {self.written}")
        if self.backup is not None:
            lines.append(f"the damaged file is kept as {self.backup}")
        return "\n".join(lines)


def check_store(store: str | os.PathLike[str]) -> StoreReport:
    """Compare all that is in a store with its checksums, and say what is lost. Nothing is written.

    Args:
        store: path of the file.

    Returns:
        A report, which prints as a few lines; `report.ok` says whether all is well.

    Example:
        >>> import tempfile
        >>> from kernelbayes.simulation import check_store, simulate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = simulate(lambda x: x**2, [1.0, 2.0, 3.0], store=f"{folder}/runs.sqlite")
        ...     report = check_store(f"{folder}/runs.sqlite")
        >>> report.ok, report.runs, report.lost
        (True, 3, ())
    """
    from ._repair import checked  # which brings SQLite with it

    return checked(_existing(store))


def repair_store(store: str | os.PathLike[str], to: str | os.PathLike[str] | None = None) -> StoreReport:
    """Keep all that is intact of a damaged store. A store without damage is left as it is.

    The rows are read in order, then one by one by their numbers, then off the pages of the file itself; those that match
    their checksums are written to a new file. The next `simulate` with the store runs those that are lost.

    Args:
        store: path of the file.
        to: path of the file to write; None: the repaired file takes the place of the damaged one, which is kept beside it
            as `<name>.damaged`.

    Returns:
        The report of `check_store`, with the files that were written.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from kernelbayes.simulation import open_runs, repair_store, simulate
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Path(folder) / "runs.sqlite"
        ...     _ = simulate(lambda x: x**2, [1.0, 2.0, 3.0], store=store)
        ...     content = store.read_bytes()
        ...     _ = store.write_bytes(b"?" + content[1:])  # no longer a database
        ...     report = repair_store(store)
        ...     runs = open_runs(store)
        >>> report.runs, report.lost, report.backup.name
        (3, (), 'runs.sqlite.damaged')
        >>> runs.outputs[:, 0]
        array([1., 4., 9.])
    """
    from ._repair import repaired

    target = None if to is None else Path(to).absolute()
    if target is not None and target.exists():
        raise ValueError(f"to: there is a file {target} already; name one that is to be made")
    return repaired(_existing(store), target)


def _existing(store: str | os.PathLike[str]) -> Path:
    path = Path(store).absolute()
    if not path.is_file():
        raise ValueError(f"store: there is no file {path}")
    return path


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"

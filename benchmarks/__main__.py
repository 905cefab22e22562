"""The command: `python -m benchmarks`, with names of rows to renew only those."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks._row import Row
from benchmarks._rows import ROWS
from benchmarks._run import RECORD, load, run, save
from benchmarks._table import HEADER, line, markdown, measured_on, note


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and keep; 1 if one of our own contenders failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed and memory beside peers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows to measure; all of them if none is named")
    parser.add_argument("--list", action="store_true", help="the rows, and which of them a quick run has")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rows; the record is left alone")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to keep results.json and results.md, or quick.json and quick.md"
    )
    chosen = parser.parse_args(arguments)
    if unknown := [name for name in chosen.names if name not in ROWS]:
        parser.error(f"no row is called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    rows = [ROWS[name] for name in chosen.names or ROWS]
    if chosen.list:
        print("\n".join(map(listed, rows)))
        return 0
    if chosen.quick:
        rows = [row for row in rows if row.quick is not None]
        return report(rows, True, chosen.out and chosen.out / "quick.json")
    return report(rows, False, chosen.out / RECORD.name if chosen.out else RECORD)


def listed(row: Row) -> str:
    """A row in words."""
    return (
        f"{row.name:18} {row.title.format(**row.sizes)}"
        + (f", beside {row.peer_name}" if row.peer else "")
        + (" (also quick)" if row.quick is not None else "")
    )


def report(rows: Sequence[Row], quick: bool, path: Path | None) -> int:
    """Print each row and keep it as soon as it is there; notes come at the end, also after an interrupt."""
    fresh = {}
    print(HEADER, flush=True)
    try:
        for row, entry in run(rows, quick):
            fresh[row.name] = entry
            print(line(row, entry), flush=True)
            if path:
                keep(path, {**load(path), row.name: entry})
    except KeyboardInterrupt:
        print(f"stopped; {len(fresh)} of {len(rows)} rows are done", file=sys.stderr)
        return 130
    finally:
        notes = [note(row, fresh[row.name]) for row in rows if row.name in fresh]
        print("\n" + "\n".join([*filter(None, notes), measured_on(fresh)]), flush=True)
    return int(any("failed" in entry["ours"] for entry in fresh.values()))


def keep(path: Path, record: dict) -> None:
    """The record, and beside it the table for people. Rows that are no longer there fall out."""
    known = {name: record[name] for name in ROWS if name in record}
    save(path, json.dumps(known, indent=1) + "\n")
    save(
        path.with_suffix(".md"),
        f"# Results\n\nWritten by `python -m benchmarks`.\n\n{markdown(list(ROWS.values()), known)}",
    )


if __name__ == "__main__":
    for ending in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # also in the background, where the first is ignored: a contender must end too
        signal.signal(ending, signal.default_int_handler)
    sys.exit(main())

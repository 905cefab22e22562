"""What full runs of the experiments found, as the pages show it.

`docs/results/<name>.json` is the record of one full run. To renew it, run the experiment and keep its record:

    kernelbayes experiment resampling --out run
    python docs/results.py run

Every build of the documentation turns the records into fragments in `docs/generated/`, which the pages include.
"""

from __future__ import annotations

import json
import math
import platform
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import scipy

from kernelbayes.experiments import EXPERIMENTS, Estimate
from kernelbayes.experiments._result import _text

RECORDS = Path(__file__).resolve().parent / "results"
_NAMES = {"python": "Python", "jax": "JAX", "numpy": "NumPy", "scipy": "SciPy"}


def keep(folder: Path, records: Path = RECORDS) -> list[Path]:
    """Copy the records of full runs, without the numbers of single repeats: most of the file, and shown nowhere."""
    kept = []
    for name in EXPERIMENTS:
        source = folder / f"{name}.json"
        if source.exists():
            record = json.loads(source.read_text(encoding="utf-8"))
            del record["runs"]
            records.mkdir(parents=True, exist_ok=True)
            kept.append(records / source.name)
            kept[-1].write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return kept


def keep_own(name: str, tables: Sequence[Any], note: str, settings: Mapping[str, Any], seed: int, start: float) -> None:
    """Keep what a script of this folder has measured since `start`, in the form of an experiment's record."""
    record = {
        "tables": tables,
        "claims": [],
        "notes": [note],
        "settings": settings,
        "seed": seed,
        "seconds": time.perf_counter() - start,
        "seconds_of_repeats": None,
        "versions": {
            "python": platform.python_version(),
            **{module.__name__: module.__version__ for module in (np, scipy, jax)},
        },
    }
    text = json.dumps(record, indent=1, allow_nan=False)
    (RECORDS / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def write_all(out: Path, records: Path = RECORDS) -> None:
    """Write a page fragment for each record into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    for name in EXPERIMENTS:  # a section of an experiment that was added lately
        for part in ("results", "verdicts", "tables"):
            (out / f"{name}-{part}.md").write_text("*No full run is on record yet.*\n", encoding="utf-8")
    for path in sorted(records.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        (out / f"{path.stem}-results.md").write_text(markdown(record), encoding="utf-8")
        (out / f"{path.stem}-verdicts.md").write_text(verdicts(record) + "\n", encoding="utf-8")
        (out / f"{path.stem}-tables.md").write_text(tables(record) + "\n", encoding="utf-8")


def markdown(record: Mapping[str, Any]) -> str:
    """The tables, each claim with what the run showed and its verdict, the notes, and how the numbers came about."""
    parts = [_table(table) for table in record["tables"]]
    return "\n\n".join([*parts, verdicts(record), *_told(record)]) + "\n"


def verdicts(record: Mapping[str, Any]) -> str:
    """Each claim with what the run showed and its verdict."""
    return "\n".join(_claim(claim) for claim in record["claims"])


def tables(record: Mapping[str, Any]) -> str:
    """The tables, the notes, and how the numbers came about."""
    return "\n\n".join([*map(_table, record["tables"]), *_told(record)])


def _told(record: Mapping[str, Any]) -> list[str]:
    return [*map(_escaped, record["notes"]), _origin(record)]


def _table(table: Mapping[str, Any]) -> str:
    rows = [{column: _restored(value) for column, value in row.items()} for row in table["rows"]]
    columns = list(rows[0])
    rules = [":---" if all(isinstance(row[c], str) for row in rows) else "---:" for c in columns]
    body = [[_escaped(_text(row[c])) for c in columns] for row in rows]
    return "\n".join([f"**{_escaped(table['title'])}**", "", *map(_row, [map(_escaped, columns), rules, *body])])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _claim(claim: Mapping[str, str]) -> str:
    stated, shown = _escaped(f"{claim['source']}: {claim['statement']}."), _escaped(f"Here: {claim['shown']}")
    return f"- {stated} {shown} **{claim['verdict'].capitalize()}.**"


def _origin(record: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{name} = {_text(value)}" for name, value in record["settings"].items())
    versions = ", ".join(f"{_NAMES.get(name, name)} {version}" for name, version in record["versions"].items())
    # a run that was stopped and went on took longer than its last call
    seconds = max(record["seconds"], record["seconds_of_repeats"] or 0.0)
    return _escaped(f"Settings: {settings}. Seed {record['seed']}, {seconds:.0f} seconds, {versions}.")


def _restored(value: Any) -> Any:
    """A cell of a table as the experiment made it; JSON has no estimates and no NaN."""
    if value is None:
        return math.nan
    if isinstance(value, dict) and value.keys() == {"value", "standard_error"}:
        return Estimate(_restored(value["value"]), _restored(value["standard_error"]))
    return value


def _escaped(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\`*_\[\]<>|$])", r"\\\1", text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(
            "usage: python docs/results.py FOLDER, the folder that `kernelbayes experiment NAME --out FOLDER` wrote"
        )
    found = keep(Path(sys.argv[1]))
    print("\n".join(map(str, found)) if found else f"{sys.argv[1]} holds no record of a full run")
    sys.exit(0 if found else 1)

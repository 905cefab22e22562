"""The table: a line for each row, and below it a note for each row that has something to explain.

A row that misses something asked, or is slower than its peer, carries `why`, beside its definition, into its note. A quick
row is marked and not judged: what is asked is asked of the full size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks._row import Asked, Found, Row

COLUMNS = (
    "job",
    "peer",
    "peer's time",
    "ours",
    "ratio",
    "asked",
    "compile and warm-up: ours, peer",
    "peak memory: ours, peer",
    "accuracy: ours, peer",
)
HEADER = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def markdown(rows: Sequence[Row], record: Mapping[str, Any]) -> str:
    """All of a record: table, notes, and where it was measured."""
    shown = [row for row in rows if row.name in record]
    if not shown:
        return "Nothing has been measured yet.\n"
    lines = [line(row, record[row.name]) for row in shown]
    notes = [text for row in shown if (text := note(row, record[row.name]))]
    return "\n\n".join(["\n".join([HEADER, *lines]), *notes, *filter(None, [measured_on(record)])]) + "\n"


def line(row: Row, entry: Mapping[str, Any]) -> str:
    """One row of the table."""
    ours, peer = entry["ours"], entry["peer"]
    mark = f"[^{row.name}]" if note(row, entry) else ""
    cells = [
        title(row, entry) + mark,
        row.peer_name + (f" (**{_missing(peer)}**)" if _missing(peer) else ""),
        _seconds(peer),
        f"**{_missing(ours)}**" if _missing(ours) else _seconds(ours),
        _ratio(ours, peer),
        _asked(row, entry),
        _both(_warm_up, ours, peer),
        _both(lambda found: f"{found['peak_gb']:.2f} GB", ours, peer),
        _both(_quality, ours, peer),
    ]
    return f"| {' | '.join(cells)} |"


def note(row: Row, entry: Mapping[str, Any]) -> str:
    """What a row leaves to say, as a footnote; empty if there is nothing."""
    ours, peer = entry["ours"], entry["peer"]
    parts = [
        f"{found_by}: {found[key]}"
        for found_by, found in (("Ours", ours), (row.peer_name, peer))
        if found
        for key in ("skipped", "failed", "note")
        if found.get(key)
    ]
    if ours.get("growth"):
        parts.append("Ours: " + ", ".join(f"{_number(seconds)} s at {size:,}" for size, seconds in ours["growth"]))
    if fault := _fault(row, entry):
        parts.insert(0, f"{fault}. Why, and what would meet it: {row.why}" if row.why else fault)
    return f"[^{row.name}]: {'. '.join(parts)}." if parts else ""


def missed(row: Row, entry: Mapping[str, Any]) -> list[Asked]:
    """What was asked and not met; nothing of a quick row, and nothing that could not be compared."""
    ours, peer = entry["ours"], entry["peer"]
    if entry.get("quick") or _missing(ours):
        return []
    beside = None if _missing(peer) else peer
    return [asked for asked in row.asked if asked.met(ours, beside) is False]


def _fault(row: Row, entry: Mapping[str, Any]) -> str:
    """What is missed, or else that the peer is faster where no ratio was asked."""
    if missing := missed(row, entry):
        return f"Missed: {', '.join(asked.text for asked in missing)}"
    ours, peer = entry["ours"], entry["peer"]
    if entry.get("quick") or peer is None or _missing(ours) or _missing(peer) or peer["seconds"] >= ours["seconds"]:
        return ""
    return "Slower than the peer"


def title(row: Row, entry: Mapping[str, Any]) -> str:
    """The job at the size that was measured."""
    return ("quick: " if entry.get("quick") else "") + row.title.format(**entry["sizes"])


def measured_on(record: Mapping[str, Any]) -> str:
    """Machines and versions, newest first; rows may be of several runs."""
    places = sorted({tuple(entry["on"].items()) for entry in record.values() if entry.get("on")}, reverse=True)
    texts = [", ".join(f"{name} {value}" for name, value in place) for place in places]
    return "\n".join(f"Measured on: {text}." for text in texts)


def _missing(found: Found | None) -> str:
    """ "left out" or "failed" for a contender without a time."""
    if found is None or "seconds" in found:
        return ""
    return "left out" if "skipped" in found else "failed"


def _seconds(found: Found | None) -> str:
    return f"{_number(found['seconds'])} s" if found and not _missing(found) else ""


def _ratio(ours: Found, peer: Found | None) -> str:
    if peer is None or _missing(ours) or _missing(peer):
        return ""
    return _number(peer["seconds"] / ours["seconds"])


def _asked(row: Row, entry: Mapping[str, Any]) -> str:
    text = ", ".join(asked.text for asked in row.asked)
    if not text or _missing(entry["ours"]):
        return text
    if entry.get("quick"):
        return f"{text}: not judged in a quick run"
    if missing := missed(row, entry):
        return f"{text}: **missed** ({', '.join(asked.text for asked in missing)})"
    beside = None if _missing(entry["peer"]) else entry["peer"]
    known = all(asked.met(entry["ours"], beside) is not None for asked in row.asked)
    return f"{text}: met" if known else f"{text}: not comparable without the peer"


def _warm_up(found: Found) -> str:
    if "first" not in found:  # as in records of before it was kept for peers
        return ""
    extra = found["first"] - found["seconds"]
    return f"{extra:.2g} s" if extra > 0 else "in the time"


def _quality(found: Found) -> str:
    return ", ".join(f"{name} {_number(value, 4)}" for name, value in found.get("quality", {}).items())


def _number(value: float, digits: int = 3) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"


def _both(show, ours: Found, peer: Found | None) -> str:
    """Ours and, after a semicolon, the peer's."""
    return "; ".join(show(found) for found in (ours, peer) if found and not _missing(found) and show(found))

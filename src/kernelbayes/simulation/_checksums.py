"""A checksum in every row of a store, so that a bit that changes on the disk is noticed and never read as a number.

SQLite has none of its own, but for an extension that the usual builds lack.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

_BYTES = 16
_NUMBERS = struct.Struct("<qqqqdd").pack


class Row(NamedTuple):
    """A line of the table of runs, as it is in the file."""

    run: int
    parameters: bytes
    output: bytes | None
    form: int | None
    seconds: float
    kind: str | None
    reason: str | None
    finished: float
    checksum: bytes | None = None

    @property
    def is_intact(self) -> bool:
        """Whether it is as it was written."""
        return self.checksum == checksum_of_run(self)


def checksum_of_run(line: Sequence[Any]) -> bytes:
    """Of all that is written about a run, in the order of `Row`. With their lengths, no two rows are the same bytes."""
    run, parameters, output, form, seconds, kind, reason, finished = line[:8]
    try:
        numbers = _NUMBERS(
            run,
            len(parameters),
            -1 if output is None else len(output),
            -1 if form is None else form,
            seconds,
            finished,
        )
        content = numbers + parameters + (output or b"")
    except (TypeError, struct.error):  # a type that has changed: no checksum is that short
        return b""
    if kind is not None or reason is not None:
        content += repr((kind, reason)).encode("utf-8", "surrogatepass")
    return blake2b(content, digest_size=_BYTES).digest()


def checksum_of(table: str, *values: Any) -> bytes:
    """Of a row of another table."""
    return blake2b(repr((table, *values)).encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest()

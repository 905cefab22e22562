"""A checksum in every row of a store, so that a bit that changes on the disk is noticed and never read as a number.

SQLite has none of its own, but for an extension that the usual builds lack.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, NamedTuple

_BYTES = 16


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

    def sealed(self) -> Row:
        """With its checksum."""
        return self._replace(checksum=checksum_of_run(*self[:8]))

    @property
    def is_intact(self) -> bool:
        """Whether it is as it was written."""
        return self.checksum == checksum_of_run(*self[:8])


def checksum_of_run(
    run: int,
    parameters: bytes,
    output: bytes | None,
    form: int | None,
    seconds: float,
    kind: str | None,
    reason: str | None,
    finished: float,
) -> bytes:
    """Of all that is written about a run. Lengths are part of it, so that no two rows are the same bytes."""
    if not isinstance(parameters, bytes) or not isinstance(output, bytes | None):
        return b""  # a type that changed: no checksum is that short
    size = None if output is None else len(output)
    digest = blake2b(
        repr((run, len(parameters), size, form, seconds, kind, reason, finished)).encode("utf-8", "surrogatepass"),
        digest_size=_BYTES,
    )
    digest.update(parameters)
    if output is not None:
        digest.update(output)
    return digest.digest()


def checksum_of(table: str, *values: Any) -> bytes:
    """Of a row of another table."""
    return blake2b(repr((table, *values)).encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest()

"""Rows of a SQLite file read off its pages, where the tree that leads to them, or the header, is damaged.

Format: https://www.sqlite.org/fileformat2.html. Only leaves of tables are read, and only rows with a checksum can be told
from rubbish: whoever calls this compares it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from mmap import mmap
from typing import Any

_MAGIC = b"SQLite format 3\0"
_INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_REAL = 7
# What is the same in the header of all our files: where it stands, and the bytes.
_FIXED = {
    0: _MAGIC,
    20: b"\0\x40\x20\x20",
    52: bytes(4),
    56: b"\0\0\0\x01",
    64: bytes(4),
    72: bytes(20),
}


def header_problems(header: bytes, size: int | None, application: int, versions: tuple[int, ...]) -> list[str]:
    """What is wrong with the first 100 bytes; `size` is that of the file, if no log beside it holds more."""
    if len(header) < 100:
        return ["the file is shorter than its header"]
    said = [
        f"byte {at} of the header has changed" for at, right in _FIXED.items() if header[at : at + len(right)] != right
    ]
    page, pages = page_size(header), _number(header, 28)
    if page is None:
        said.append("the size of its pages cannot be right")
    elif size is not None and page * pages != size:
        said.append(f"the file has {size:,} bytes, where its header says {page * pages:,}")
    wrong = {
        "the way of writing": not {header[18], header[19]} <= {1, 2},
        "the counter of changes": header[24:28] != header[92:96],
        "the format of the schema": _number(header, 44) not in (1, 2, 3, 4),
        "the mark of a store of runs": _number(header, 68) != application,
        "the version of the layout": _number(header, 60) not in versions,
        "the version of SQLite": _number(header, 96) // 1_000_000 != 3,
    }
    return said + [f"{what}, in the header, cannot be right" for what, is_wrong in wrong.items() if is_wrong]


def mended(header: bytes, size: int, application: int, version: int) -> bytes:
    """The first 100 bytes as they must have been, as far as that is known."""
    new = bytearray(header[:100].ljust(100, b"\0"))
    for at, right in _FIXED.items():
        new[at : at + len(right)] = right
    page = page_size(header)
    if page is None or size % page:
        page = 4096
    new[16:18] = struct.pack(">H", page & 0xFFFF or 1)
    new[18:20] = b"\x02\x02"
    new[28:32] = struct.pack(">I", size // page)
    new[44:48] = struct.pack(">I", 4)
    new[60:64], new[68:72] = struct.pack(">I", version), struct.pack(">I", application)
    new[92:96] = new[24:28]
    return bytes(new)


def page_size(header: bytes | mmap) -> int | None:
    """Bytes of a page, or None if that cannot be one."""
    value = int.from_bytes(header[16:18], "big")
    size = 65536 if value == 1 else value
    return size if size >= 512 and size & (size - 1) == 0 else None


def logged_pages(log: bytes) -> set[int]:
    """Pages of which a write-ahead log holds a version."""
    size = _number(log, 8)
    return {_number(log, at) for at in range(32, len(log) - size, 24 + size)} if size else set()


def table_rows(data: bytes | mmap) -> Iterator[tuple[int, list[Any]]]:
    """Row number and columns of what looks like a row, on every page as if it were the leaf of a table.

    Neither what a page says it is nor how many rows it says it has need be right. Pages that are on the list of free ones
    hold rows that were deleted, and are left out.
    """
    size = page_size(data) or 4096
    free = _free_pages(data, size)
    for page in range(1, len(data) // size + 1):
        if page not in free:
            for at in _cells(data, (page - 1) * size, 100 if page == 1 else 0, size):
                try:
                    yield _row(data, at, size)
                except (IndexError, ValueError, struct.error):  # no row at all
                    continue


def _cells(data: bytes | mmap, start: int, head: int, size: int) -> Iterator[int]:
    """Where rows begin, as the list after the head of a page says."""
    (stated,) = struct.unpack_from(">H", data, start + head + 3)
    for i, slot in enumerate(range(head + 8, size - 1, 2)):
        (cell,) = struct.unpack_from(">H", data, start + slot)
        if slot < cell < size:
            yield start + cell
        elif i >= stated:
            return


def _free_pages(data: bytes | mmap, size: int) -> set[int]:
    found: set[int] = set()
    trunk = _number(data, 32)
    while 0 < trunk <= len(data) // size and trunk not in found:
        start = (trunk - 1) * size
        found.add(trunk)
        leaves = min(_number(data, start + 4), size // 4 - 2)
        found.update(_number(data, start + 8 + 4 * i) for i in range(leaves))
        trunk = _number(data, start)
    return found


def _number(data: bytes | mmap, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def _varint(data: bytes | mmap, at: int) -> tuple[int, int]:
    """A whole number of one to nine bytes, and where it ends."""
    value = 0
    for i in range(8):
        byte = data[at + i]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + i + 1
    value = value << 8 | data[at + 8]
    return value - (1 << 64 if value >> 63 else 0), at + 9


def _row(data: bytes | mmap, at: int, size: int) -> tuple[int, list[Any]]:
    length, at = _varint(data, at)
    number, at = _varint(data, at)
    if not 0 < length <= len(data):
        raise ValueError("no such row")
    return number, _columns(_payload(data, at, length, size))


def _payload(data: bytes | mmap, at: int, length: int, size: int) -> bytes:
    """What a row holds; of a long one, a part is on its page, and the rest on a chain of others."""
    if length <= size - 35:
        return data[at : at + length]
    least = (size - 12) * 32 // 255 - 23
    local = least + (length - least) % (size - 4)
    local = local if local <= size - 35 else least
    parts, left, page = [data[at : at + local]], length - local, _number(data, at + local)
    while left > 0:
        if not 0 < page <= len(data) // size or len(parts) > len(data) // size:
            raise ValueError("the chain of pages is broken")
        start = (page - 1) * size
        parts.append(data[start + 4 : start + 4 + min(left, size - 4)])
        left, page = left - (size - 4), _number(data, start)
    return b"".join(parts)


def _columns(payload: bytes) -> list[Any]:
    end, at = _varint(payload, 0)
    kinds, values = [], []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    at = end
    for kind in kinds:
        width = _INTEGER_BYTES.get(kind, 8 if kind == _REAL else (kind - 12) // 2 if kind >= 12 else 0)
        if at + width > len(payload):
            raise ValueError("a column is longer than its row")
        values.append(_value(kind, payload[at : at + width]))
        at += width
    return values


def _value(kind: int, content: bytes) -> Any:
    if kind in _INTEGER_BYTES:
        return int.from_bytes(content, "big", signed=True)
    if kind == _REAL:
        return struct.unpack(">d", content)[0]
    if kind >= 12:
        return content if kind % 2 == 0 else content.decode("utf-8", "surrogateescape")
    return {8: 0, 9: 1}.get(kind)

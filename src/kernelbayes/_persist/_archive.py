"""The arrays in a .npz file, read without trusting what the file says about itself.

`save` does not compress. So nothing that is compressed is read, all sizes that a file declares must add up to no more than
the file has, and an array must fill its member exactly: whatever a file claims, reading it takes no more memory than its own
size. Headers of arrays are matched and not evaluated, so only those of the form that NumPy writes are read, and none of
Python objects.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array

DESCRIPTION = "description"
#: Characters of the description, and values in it: more than this is refused, on saving as on loading.
MOST_TEXT, MOST_VALUES = 8_000_000, 1_000_000
_CHUNK = 2**20
_MAGIC = b"\x93NUMPY"
_LENGTHS = {b"\x01\x00": "<H", b"\x02\x00": "<I"}
_HEADER = re.compile(
    rb"\{'descr': '([<>|=]?[biufcUSmM]\d{0,9}(?:\[\d{0,9}\w{1,2}\])?)', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
# What the standard library and NumPy raise about a damaged file.
_DAMAGE = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, OSError, EOFError, ValueError, TypeError, KeyError, IndexError),
    *(NotImplementedError, RuntimeError, OverflowError, struct.error, MemoryError),
)


class Archive:
    """The members of a file; each array is handed out once, as `save` wrote it once."""

    def __init__(self, path: Path):
        self._path = path
        size = path.stat().st_size
        try:
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise
        except _DAMAGE:
            raise ValueError(f"{path} is not a file saved by kernelbayes") from None
        try:
            self._members = self._listed(size)
        except ValueError:
            self.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._zip.close()

    def _listed(self, size: int) -> dict[str, zipfile.ZipInfo]:
        found: dict[str, zipfile.ZipInfo] = {}
        declared = 0
        for info in self._zip.infolist():
            name = info.filename.removesuffix(".npy")
            declared += info.file_size
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise ValueError(f"{self._path}: {_short(name)} is compressed, which kb.save does not do")
            if declared > size:
                raise ValueError(f"{self._path}: {_short(name)} declares more bytes than the file has")
            if name in found:
                raise ValueError(f"{self._path}: {_short(name)} is there twice")
            found[name] = info
        return found

    def description(self) -> str:
        """The JSON text about the object."""
        info = self._members.get(DESCRIPTION)
        if info is None:
            raise ValueError(f"{self._path} is not a file saved by kernelbayes")
        if info.file_size > 4 * MOST_TEXT + 2**16:
            raise ValueError(f"{self._path}: the description is longer than {MOST_TEXT:,} characters")
        try:
            text = self.array(DESCRIPTION)
        except ValueError as problem:
            raise ValueError(f"{self._path} is not a file saved by kernelbayes: {problem}") from None
        if text.shape != () or text.dtype.kind != "U":
            raise ValueError(f"{self._path} is not a file saved by kernelbayes")
        return str(text)

    def array(self, name: str) -> Array:
        """One of the arrays; it cannot be asked for again."""
        info = self._members.pop(name, None)
        if info is None:
            raise ValueError(f"there is no array {_short(name)}, or it is used twice")
        try:
            data = self._read(info)
            return _formed(data, *_header(data), _short(name))
        except _Untrue:
            raise
        except _DAMAGE as problem:
            raise ValueError(f"the array {_short(name)} is damaged: {_short(problem)}") from None

    def _read(self, info: zipfile.ZipInfo) -> bytearray:
        """The bytes of a member, in memory that an array can keep."""
        data = bytearray(info.file_size)
        with self._zip.open(info) as member:
            for start in range(0, len(data) + 1, _CHUNK):  # the last read, of nothing, compares the checksum
                part = member.read(min(_CHUNK, len(data) - start) or 1)
                data[start : start + len(part)] = part
        return data


class _Untrue(ValueError):
    """A header that says something else than its member holds."""


def _header(data: bytearray) -> tuple[int, np.dtype[Any], tuple[int, ...], str]:
    """Where an array starts, its dtype, its shape, and the order of its entries."""
    version = bytes(data[6:8])
    if data[:6] != _MAGIC or version not in _LENGTHS:
        raise ValueError("it is no array in NumPy's format")
    before = 8 + struct.calcsize(_LENGTHS[version])
    (length,) = struct.unpack(_LENGTHS[version], data[8:before])
    found = _HEADER.fullmatch(data[before : before + min(length, 10_000)])
    if found is None:
        raise ValueError("its header is not of the form that kb.save writes")
    dtype, fortran, shape = (part.decode() for part in found.groups())
    sizes = tuple(int(size) for size in shape.split(",") if size.strip())
    return before + length, np.dtype(dtype), sizes, "F" if fortran == "True" else "C"


def _formed(data: bytearray, start: int, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any, name: str) -> Array:
    """The array (*shape,) that is in the bytes after a header, if the header is true."""
    there = max(len(data) - start, 0)
    # also of an empty array no side may be longer than could be held
    too_long = math.prod(max(size, 1) for size in shape) > 2**48
    if dtype.itemsize == 0 or too_long or math.prod(shape) * dtype.itemsize != there:
        raise _Untrue(f"the array {name} declares the shape {_short(shape)} of {dtype}, but {there:,} bytes are there")
    flat = np.frombuffer(data, dtype, offset=start)
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise _Untrue(f"the array {name} holds truth values that are neither true nor false")
    if dtype.kind == "U" and flat.view(np.dtype("u4").newbyteorder(dtype.byteorder)).max(initial=0) > 0x10FFFF:
        raise _Untrue(f"the array {name} holds text that is not Unicode")
    array = flat.reshape(shape, order=order)
    return array.astype(dtype.newbyteorder("="), order="K", copy=not array.flags.aligned)


def _short(value: Any) -> str:
    """What a file says, cut to what a message can bear."""
    text = repr(str(value))
    return text if len(text) <= 80 else f"{text[:76]}...'"

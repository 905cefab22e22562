"""The arrays in a .npz file, read without trusting what the file says about itself.

`save` does not compress. So nothing that is compressed is read, all sizes that a file declares must add up to no more than
the file has, and an array must fill its member exactly: whatever a file claims, reading it takes no more memory than its own
size. Member headers are parsed by NumPy as literals, and arrays of Python objects are refused.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from .._typing import Array

DESCRIPTION = "description"
#: Characters of the description, and values in it: more than this is refused, on saving as on loading.
MOST_TEXT, MOST_VALUES = 8_000_000, 1_000_000
_READABLE = "biufcUSmM"
_CHUNK = 2**20
# Of a member: NumPy refuses longer ones.
_LONGEST_HEADER = 2**14
# What the standard library and NumPy raise about a damaged file.
_DAMAGE = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, OSError, EOFError, ValueError, TypeError, KeyError, IndexError),
    *(NotImplementedError, RuntimeError, OverflowError, struct.error, SyntaxError, MemoryError),
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
        text = self.array(DESCRIPTION)
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
            header = io.BytesIO(data[:_LONGEST_HEADER])
            shape, fortran, dtype = _header(header)
        except _DAMAGE as problem:
            raise ValueError(f"the array {_short(name)} is damaged: {_short(problem)}") from None
        return _formed(data, header.tell(), shape, fortran, dtype, _short(name))

    def _read(self, info: zipfile.ZipInfo) -> bytearray:
        """The bytes of a member, in memory that an array can keep."""
        data = bytearray(info.file_size)
        with self._zip.open(info) as member:
            for start in range(0, len(data) + 1, _CHUNK):  # the last read, of nothing, compares the checksum
                part = member.read(min(_CHUNK, len(data) - start) or 1)
                data[start : start + len(part)] = part
        return data


def _header(file: io.BytesIO) -> tuple[Any, bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    if version == (2, 0):
        return np.lib.format.read_array_header_2_0(file)
    raise ValueError(f"version {version} of the .npy format")


def _formed(data: bytearray, start: int, shape: Any, fortran: bool, dtype: np.dtype[Any], name: str) -> Array:
    """The array (*shape,) that is in the bytes after a header, if the header is true."""
    if dtype.kind not in _READABLE or dtype.subdtype is not None or dtype.itemsize == 0:
        raise ValueError(f"the array {name} has dtype {_short(dtype)}, which kb.save does not write")
    if any(size < 0 for size in shape) or math.prod(max(size, 1) for size in shape) > 2**48:
        raise ValueError(f"the array {name} declares the shape {_short(shape)}")
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        there = f"{len(data) - start:,} bytes are there"
        raise ValueError(f"the array {name} declares the shape {_short(shape)} of {dtype}, but {there}")
    flat = np.frombuffer(data, dtype, offset=start)
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"the array {name} holds truth values that are neither true nor false")
    if dtype.kind == "U" and flat.view(np.dtype("u4").newbyteorder(dtype.byteorder)).max(initial=0) > 0x10FFFF:
        raise ValueError(f"the array {name} holds text that is not Unicode")
    array = flat.reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), order="K", copy=not array.flags.aligned)


def _short(value: Any) -> str:
    """What a file says, cut to what a message can bear."""
    text = repr(str(value))
    return text if len(text) <= 80 else f"{text[:76]}...'"

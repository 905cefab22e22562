"""Data with labels for the experiments on classification: what scikit-learn ships, and files in a folder."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._table import Table, _is_number, _rows
from .._typing import Array

#: Data sets that come with scikit-learn: name -> the function that loads it.
SHIPPED = {"iris": "load_iris", "wine": "load_wine", "breast cancer": "load_breast_cancer", "digits": "load_digits"}


class DataSet(NamedTuple):
    """Points (n, d) and the positions (n,) of their labels among the classes, which are text."""

    X: Array
    y: Array
    classes: list[str]

    @classmethod
    def of(cls, X: Array, labels: Array) -> DataSet:
        """From labels of any kind."""
        classes, y = np.unique([str(label) for label in labels], return_inverse=True)
        return cls(np.asarray(X, dtype=np.float64), y, classes.tolist())

    def digest(self) -> str:
        """A mark that tells one set from another."""
        return hashlib.sha256(self.X.tobytes() + np.asarray(self.y, dtype=np.int64).tobytes()).hexdigest()[:8]

    def without_rare(self, least: int) -> tuple[DataSet, list[str]]:
        """The same without classes of fewer points, and the names of those."""
        counts = np.bincount(self.y, minlength=len(self.classes))
        rare = [name for name, count in zip(self.classes, counts, strict=True) if count < least]
        kept = counts[self.y] >= least
        return DataSet.of(self.X[kept], np.array(self.classes)[self.y[kept]]), rare

    def in_unit_range(self) -> DataSet:
        """The same with every column scaled to [0, 1]; one that is constant becomes zero."""
        low, high = self.X.min(0), self.X.max(0)
        return self._replace(X=(self.X - low) / np.where(high > low, high - low, 1.0))


def shipped(name: str) -> DataSet:
    """One of the sets that come with scikit-learn."""
    from sklearn import datasets

    return DataSet.of(*getattr(datasets, SHIPPED[name])(return_X_y=True))


def read_labelled(path: Path) -> DataSet:
    """A text table of numbers with the label in the last column; a first line of names is skipped if there is one."""
    try:
        rows = _rows(path.read_text(encoding="utf-8-sig"), str(path))
        if rows and not all(map(_is_number, rows[0][1][:-1])):
            del rows[0]
        return _parsed(rows, str(path))
    except ValueError as reason:  # the command line tells an OSError in one line
        raise OSError(str(reason)) from None


def _parsed(rows: list[tuple[int, list[str]]], source: str) -> DataSet:
    width = len(rows[0][1]) if rows else 0
    if width < 2:
        raise ValueError(f"{source} must have columns of numbers and a label in the last column")
    for line, row in rows:
        if len(row) != width:
            raise ValueError(f"{source}, line {line}: {len(row)} values where the first row has {width}")
    names = tuple(str(j + 1) for j in range(width))
    table = Table(
        source, names, {n: [r[j] for _, r in rows] for j, n in enumerate(names)}, np.array([i for i, _ in rows])
    )
    labels = table.text(names[-1])
    if "" in labels:
        raise ValueError(f"{source} has no label on line {table.lines[labels.index('')]}")
    if len(set(labels)) < 2:
        raise ValueError(f"{source} holds one class only in its last column")
    return DataSet.of(table.numbers(names[:-1]), np.array(labels))


def read_images(folder: Path) -> DataSet:
    """Images in a folder: `mnist.npz` if it is there, and the CSV files, label last, otherwise.

    The arrays of `mnist.npz` are x and y, or x_train, y_train, x_test and y_test, which are put together.
    """
    archive = folder / "mnist.npz"
    if archive.is_file():
        return _from_archive(archive)
    files = sorted(folder.glob("*.csv"))
    if not files:
        raise OSError(f"there is neither mnist.npz nor a CSV file in {folder}")
    parts = [read_labelled(file) for file in files]
    if len({part.X.shape[1] for part in parts}) > 1:
        raise OSError(f"the CSV files in {folder} have different numbers of columns")
    labels = np.concatenate([np.array(part.classes)[part.y] for part in parts])
    return DataSet.of(np.concatenate([part.X for part in parts]), labels)


def _from_archive(path: Path) -> DataSet:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            pairs = [p for p in (("x", "y"), ("x_train", "y_train"), ("x_test", "y_test")) if {*p} <= {*arrays.files}]
            if not pairs:
                raise ValueError(f"{path} must hold arrays x and y, or x_train and y_train")
            X, y = (np.concatenate([arrays[pair[i]] for pair in pairs]) for i in range(2))
    except ValueError as reason:
        raise OSError(str(reason)) from None
    if len(X) != len(y):
        raise OSError(f"{path} holds {len(X)} images and {len(y)} labels")
    return DataSet.of(X.reshape(len(X), -1), y)


def image_side(data: DataSet) -> int:
    """Height and width of square images, one row of pixels after the other."""
    side = int(np.sqrt(data.X.shape[1]))
    if side * side != data.X.shape[1]:
        raise OSError(f"images must be square; there are {data.X.shape[1]} pixels")
    return side

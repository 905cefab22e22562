"""Reading sequences: one table or several, rows that are missing, controls, separate transitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._typing import Array
from .._warning import warn_user
from ..kernels import Kernel
from ._dynamics import Log


class Training(NamedTuple):
    """A log, the lengths of the sequences it was made of, and the controls of its rows."""

    log: Log
    lengths: Array
    controls: Array | None


def several(value: Any, dims: int = 1) -> bool:
    """Whether this is a list of sequences: of tables, or of flat arrays of different lengths.

    `dims` is the number of dimensions of one point: 1 for a row of a table.
    """
    if isinstance(value, np.ndarray):
        return value.ndim == dims + 2 and value.dtype != object
    if not isinstance(value, (list, tuple)) or not len(value) or isinstance(value[0], (str, dict)):
        return False
    if all(hasattr(part, "shape") for part in value):
        shapes = [tuple(part.shape) for part in value]
        return all(len(shape) == dims + 1 for shape in shapes) or (
            all(len(shape) == 1 for shape in shapes) and dims == 1 and len(set(shapes)) > 1
        )
    try:
        return np.ndim(value[0]) == dims + 1 and not np.isscalar(value[0])
    except ValueError:  # ragged
        return False


def rows_of(value: Any, name: str, kernel: Kernel | None, *, gaps: bool) -> tuple[Array, Array]:
    """Checked points of one sequence, and which rows are there; where gaps are not allowed, NaN and None are refused."""
    if gaps:
        value, present = _without_gaps(value, name)
    else:
        present = np.ones(len(value) if hasattr(value, "__len__") else 1, dtype=bool)
    if not present.any():
        return np.zeros((0, 0)), present
    checked = _check.vectors(value, name) if kernel is None else kernel._check(value, name)
    return checked, present


def _without_gaps(value: Any, name: str) -> tuple[Any, Array]:
    """The rows that hold numbers, and which they are: a row with a None or a NaN is a gap."""
    _check.refuse_masked(value, name)
    if isinstance(value, (list, tuple)):
        none = np.array([row is None for row in value], dtype=bool)
        if none.all():
            return [], ~none
        kept = [row for row in value if row is not None]
        present = ~none
        if len({np.shape(row) for row in kept}) > 1 or not isinstance(
            kept[0], (int, float, list, tuple, np.ndarray, np.generic)
        ):
            return kept, present  # objects, sets of points: what the kernel makes of them
        kept, present[present] = _without_gaps(np.asarray(kept), name)
        return kept, present
    array = _check.table(value, name)
    if array.ndim == 0:
        raise ValueError(f"{name} must be a table of rows, got one {type(value).__name__}")
    if array.dtype.kind == "O":
        try:
            array = _check._as_numbers(array, name)
        except ValueError:
            present = np.array([row is not None for row in array], dtype=bool)
            return array[present], present
    if array.dtype.kind != "f":
        return value, np.ones(len(array), dtype=bool)
    present = np.isfinite(array) | np.isinf(array)
    present = np.asarray(present.all(tuple(range(1, array.ndim))))
    return array[present], present


def read_log(
    observations: Any,
    states: Any,
    controls: Any,
    transitions: Any,
    kernel: Kernel | None,
    latent_kernel: Kernel | None,
    control_kernel: Kernel | None,
) -> Training:
    """Training data of one sequence or several, rows with gaps taken out, as a log."""
    for value, name in ((observations, "observations"), (states, "states")):
        if value is None:
            raise ValueError(f"{name} are missing: a filter learns from observations and states, row by row")
    parts = _parts(observations, states, controls if transitions is None else None)
    X, Z, U, lengths = _joined(parts, kernel, latent_kernel, control_kernel)
    if len(Z) < 8:
        raise ValueError(f"at least eight rows of states and observations are needed, got {len(Z)}")
    if transitions is not None:
        if controls is not None:
            raise ValueError(
                "controls go with the transitions where these are given: transitions=(before, after, controls)"
            )
        log = _with_transitions(X, Z, transitions, latent_kernel, control_kernel)
        # of controlled transitions the rows' own controls are not known: settings are judged by single corrections
        return Training(log, lengths if log.controls is None else np.ones(len(Z), dtype=int), None)
    last = np.cumsum(lengths) - 1
    before = np.setdiff1d(np.arange(len(Z)), last)
    if len(before) < 4:
        raise ValueError(
            f"observations and states hold {len(before)} transitions where at least four are needed: sequences of one row "
            "have none"
        )
    return Training(Log(X, Z, before, before + 1, None if U is None else U[before + 1]), lengths, U)


def _parts(observations: Any, states: Any, controls: Any) -> list[tuple[Any, Any, Any]]:
    if not several(states):
        return [(observations, states, controls)]
    if not isinstance(observations, (list, tuple, np.ndarray)) or len(observations) != len(states):
        count = len(observations) if hasattr(observations, "__len__") else 1
        raise ValueError(f"states holds {len(states)} sequences but observations {count}; one of each was wanted")
    if controls is not None and len(controls) != len(states):
        raise ValueError(f"states holds {len(states)} sequences but controls {len(controls)}")
    return list(zip(observations, states, [None] * len(states) if controls is None else controls, strict=True))


def _joined(
    parts: Sequence[tuple[Any, Any, Any]], kernel: Kernel | None, latent: Kernel | None, control: Kernel | None
) -> tuple[Array, Array, Array | None, Array]:
    """All rows without gaps of all sequences, and the lengths of their unbroken stretches."""
    Xs, Zs, Us, lengths = [], [], [], []
    lost = 0
    for i, part in enumerate(parts):
        where = f"[{i}]" if len(parts) > 1 else ""
        read = [
            rows_of(value, name + where, k, gaps=True)
            for value, name, k in zip(
                part, ("observations", "states", "controls"), (kernel, latent, control), strict=True
            )
            if value is not None
        ]
        names = ["observations", "states", "controls"]
        for j in range(1, len(read)):
            _check.same_length(read[0][1], read[j][1], names[0] + where, names[j] + where)
        present = np.logical_and.reduce([there for _, there in read])
        lost += int((~present).sum())
        if not present.any():
            continue
        columns = [points[present[there]] for points, there in read]
        Xs.append(columns[0])
        Zs.append(columns[1])
        Us += columns[2:]
        lengths += _runs(present)
    if not Zs:
        raise ValueError("every row of observations and states has a gap (NaN or None)")
    for many, name in ((Xs, "observations"), (Zs, "states"), (Us, "controls")):
        if len({points.shape[1:] for points in many}) > 1:
            raise ValueError(f"the sequences in {name} have rows of different shapes")
    if lost:
        warn_user(f"{lost} rows with gaps were left out; sequences are cut there")
    return np.concatenate(Xs), np.concatenate(Zs), np.concatenate(Us) if Us else None, np.array(lengths)


def _runs(present: Array) -> list[int]:
    """Lengths of the unbroken runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], present, [False]]).astype(int)))
    return [int(b - a) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _with_transitions(X: Array, Z: Array, transitions: Any, latent: Kernel | None, control: Kernel | None) -> Log:
    if not isinstance(transitions, (list, tuple)) or len(transitions) not in (2, 3):
        raise ValueError("transitions must be (before, after) or (before, after, controls)")
    names = ("transitions[0]", "transitions[1]", "transitions[2]")
    read = [
        rows_of(value, name, k, gaps=False)[0]
        for value, name, k in zip(transitions, names, (latent, latent, control), strict=False)
    ]
    for j in range(1, len(read)):
        _check.same_length(read[0], read[j], names[0], names[j])
    for j in range(2):
        if read[j].shape[1:] != Z.shape[1:]:
            raise ValueError(f"{names[j]} has rows of shape {read[j].shape[1:]} where states has {Z.shape[1:]}")
    n, m = len(Z), len(read[0])
    if m < 4:
        raise ValueError(f"at least four transitions are needed, got {m}")
    points = np.concatenate([Z, *read[:2]])
    return Log(X, points, np.arange(n, n + m), np.arange(n + m, n + 2 * m), read[2] if len(read) > 2 else None)


def column_names(table: Any) -> tuple[str, ...] | None:
    """Names of the columns of a data frame, or of the first of several."""
    first: Any = table[0] if isinstance(table, (list, tuple)) and len(table) else table
    return _check.column_names(first)


def in_order(table: Any, names: tuple[str, ...] | None, what: str) -> Any:
    """A data frame, or several, with columns in the order of what was learned from; anything else as it is."""
    if names is None or not isinstance(table, (list, tuple)) or _check.column_names(next(iter(table), None)) is None:
        return _check.by_name(table, names, what)
    return [_check.by_name(part, names, f"{what}[{i}]") for i, part in enumerate(table)]


def transitions_in_order(transitions: Any, states: tuple[str, ...] | None) -> Any:
    """Transitions whose states have their columns as the states of the log do, or else as those before the steps do."""
    if not isinstance(transitions, (list, tuple)) or not transitions:
        return transitions
    names = column_names(transitions[0]) if states is None else states
    parts = [in_order(part, names, f"transitions[{i}]") for i, part in enumerate(transitions[:2])]
    return (*parts, *transitions[2:])


def numbered(states: Any, controls: Any) -> Any:
    """Controls with the number of each row before them, in the form in which states were given."""
    if not several(states):
        return _one_numbered(states, controls, "")
    acting = [None] * len(states) if controls is None else controls
    if len(acting) != len(states):
        raise ValueError(f"states holds {len(states)} sequences but controls {len(acting)}")
    return [_one_numbered(Z, U, f"[{i}]") for i, (Z, U) in enumerate(zip(states, acting, strict=True))]


def _one_numbered(states: Any, controls: Any, where: str) -> Array:
    _check.refuse_sparse(states, f"states{where}")
    if not hasattr(states, "__len__") or getattr(states, "ndim", 1) == 0:
        raise ValueError(f"states{where} must be a table of rows, got {states!r}")
    times = np.arange(len(states), dtype=np.float64)[:, None]
    if controls is None:
        return times
    U = _check._as_numbers(controls, f"controls{where}")  # with gaps, which are looked for later
    U = U[:, None] if U.ndim == 1 else U
    _check.same_length(states, U, f"states{where}", f"controls{where}")
    return np.concatenate([times, U], axis=1)

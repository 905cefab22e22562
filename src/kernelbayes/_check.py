"""Host-side checks of what users pass in.

Each check names the argument, says what it was given and what it wanted, and raises before any work is done. Nothing
here is seen by a compiler: values that JAX is tracing never get this far.

Every array comes in by `table`, which is where masks are refused, and numbers by `_as_numbers`, where dates are: others
would read both as plain numbers. Data frames are known by their `columns`, so that no library of them is imported.
Processes that run simulators load this file without the rest of the library: it imports nothing of it but `_typing`.
"""

from __future__ import annotations

import datetime
import decimal
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._typing import Array

# Sizes between which squares, and products of two squares, neither overflow nor vanish. Data beyond the largest, settings
# beyond either, and data that varies by less than the smallest where a scale is read off it, are refused, once, and not met
# in each formula: a change of units is all that it takes.
SMALLEST, LARGEST = 1e-100, 1e100
# A count beyond this could be neither held nor waited for.
_MOST = 10**8
# Those of pandas are among them.
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def refuse_sparse(value: Any, name: str) -> None:
    if hasattr(value, "toarray"):
        raise ValueError(f"{name} is a sparse matrix, which is not supported; pass {name}.toarray()")


def table(value: Any, name: str) -> Array:
    """An array of any type and shape, or a ValueError that says why it cannot be one."""
    refuse_sparse(value, name)
    if hasattr(value, "__next__"):
        raise ValueError(f"{name} is an iterator, which can be read only once; pass list({name})")
    refuse_masked(value, name)
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; a table was wanted") from None
    if array.dtype.kind == "V":
        raise ValueError(f"{name} holds records of dtype {array.dtype}; a table of plain values was wanted")
    return array


def refuse_masked(value: Any, name: str) -> None:
    """Masks get lost when an array is made of what holds them, and what they hide comes to light."""
    masked = _count_masked(value)
    if masked:
        raise ValueError(f"{name} has {masked} masked value{'s' * (masked > 1)}; remove or fill such values first")


def _count_masked(value: Any) -> int:
    if isinstance(value, np.ma.MaskedArray):
        return int(np.ma.count_masked(value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    if not isinstance(value, (list, tuple)):
        return 0
    return sum(_count_masked(v) for v in value if isinstance(v, (list, tuple, np.ndarray)))


def no_dates(value: Any, name: str) -> Array:
    """An array of any type but dates and durations, which would be read as numbers in units that nobody has chosen."""
    array = table(value, name)
    if _is_date(array) or (array.dtype == object and any(map(_is_date, array.flat))):
        raise ValueError(f"{name} holds dates or durations; turn them into numbers, in units of your choice")
    return array


def _is_date(value: Any) -> bool:
    return isinstance(value, _DATES) or (isinstance(value, np.ndarray) and value.dtype.kind in "mM")


def _is_missing(value: Any) -> bool:
    """None, NaN, NaT, or the NA of pandas, which has no truth value."""
    return value is None or type(value).__name__ == "NAType" or (np.ndim(value) == 0 and bool(value != value))


def _as_numbers(value: Any, name: str) -> Array:
    """A float64 array, NaN where values are missing, or a ValueError that says why it cannot be one."""
    array = no_dates(value, name)
    if np.iscomplexobj(array):
        raise ValueError(f"{name} holds complex numbers; real ones were wanted")
    if array.dtype == object and any(type(v).__name__ == "NAType" for v in array.flat):
        array = np.array([None if _is_missing(v) else v for v in array.flat], dtype=object).reshape(array.shape)
    try:
        with np.errstate(over="ignore"):  # wider numbers that become infinite are refused as such
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        found = "text" if array.dtype.kind in "US" else f"values of dtype {array.dtype}"
        raise ValueError(f"{name} holds {found} that cannot be read as numbers") from None


def bounded(array: Array, name: str, largest: float = LARGEST) -> Array:
    """Numbers that are finite and not too large to be squared and summed."""
    if array.ndim == 0 and not np.isfinite(array):
        raise ValueError(f"{name} must be finite, got {array}")
    if not np.isfinite(array).all():
        kind = "NaN" if np.isnan(array).any() else "infinity"
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} contains {kind} (first at index {where}); remove or fill such values first")
    size = max(float(array.max(initial=0.0)), -float(array.min(initial=0.0)))
    if size > largest:
        raise ValueError(
            f"{name} is as large as {size:.3g}, and numbers beyond {largest:g} are refused; change its units"
        )
    return array


def _not_empty(array: Array, name: str) -> Array:
    if array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape})")
    return array


def numbers(value: Any, name: str) -> Array:
    """Finite float64 numbers in an array of any shape."""
    return bounded(_as_numbers(value, name), name)


def vectors(value: Any, name: str, *, width: int | None = None, largest: float = LARGEST) -> Array:
    """A finite float64 table (n, d); a 1-d array is read as n points on the line."""
    array = _as_numbers(value, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{name} must have 1 or 2 dimensions (points, features), got shape {array.shape}")
    _not_empty(array, name)
    if width is not None and array.shape[1] != width:
        raise ValueError(f"{name} has {array.shape[1]} columns where {width} were expected")
    return bounded(array, name, largest)


def arrays(value: Any, name: str) -> Array:
    """Finite float64 points that are arrays of one shape, such as images: (n, ...); a 1-d array is n points on the line."""
    array = _as_numbers(value, name)
    return bounded(_not_empty(array, name), name) if array.ndim > 2 else vectors(array, name)


def labels(value: Any, name: str) -> Array:
    """Labels of any comparable kind as an array (n,) or (n, c); missing values are refused."""
    array = table(value, name)
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must be a list of labels or a table of them, got shape {array.shape}")
    _not_empty(array, name)
    # NumPy reads ["a", nan] as text, "nan" being one of the words: look at the labels as they were given
    as_is = isinstance(value, np.ndarray) or array.dtype.kind not in "US"
    given = array if as_is else np.asarray(value, dtype=object)
    if array.dtype.kind == "f":
        bounded(array, name)
    elif (given.dtype.kind == "O" and any(map(_is_missing, given.flat))) or (
        given.dtype.kind in "mM" and np.isnat(given).any()
    ):
        raise ValueError(f"{name} has missing labels")
    return array


def objects(value: Any, name: str) -> Array:
    """Any Python objects as a 1-d object array, so that they can be counted and indexed like points."""
    refuse_sparse(value, name)
    refuse_masked(value, name)
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        return _not_empty(value, name)
    if isinstance(value, (str, bytes, dict, set)) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0:
        raise ValueError(f"{name} must be a list of objects, got {type(value).__name__}")
    if column_names(value) is not None:  # going through a data frame gives names
        value = table(value, name)
    array = np.empty(len(value), dtype=object)
    for i, each in enumerate(value):
        array[i] = each
    return _not_empty(array, name)


# ------------------------------------------------------------------------------------------------------------ names


def column_names(value: Any) -> tuple[str, ...] | None:
    """Names of the columns of a data frame, as text; None of anything else."""
    columns = getattr(value, "columns", None)
    if columns is None or callable(columns) or isinstance(value, type) or not hasattr(value, "__getitem__"):
        return None
    return tuple(map(str, columns))


def own_names(value: Any) -> tuple[str, ...] | None:
    """Names of the columns of a data frame that are words, not numbers that count them."""
    names = column_names(value)
    return None if names is None or counting(names) else names


def row_names(value: Any) -> tuple[str, ...] | None:
    """Names of the numbers of one row: those of a dict, or of a row of a data frame; None of anything else."""
    if isinstance(value, Mapping):
        return tuple(map(str, value))
    index = getattr(value, "index", None)
    if index is None or callable(index) or getattr(value, "ndim", 0) != 1:  # lists have a method of this name
        return None
    labels = tuple(index)
    return labels if labels and all(isinstance(label, str) for label in labels) else None


def by_name(value: Any, names: Sequence[str] | None, name: str) -> Any:
    """A data frame with its columns in the order of these names; anything else, and columns without names, as it is.

    It must have these columns and no others. Numbers that count from zero are no names.
    """
    found = column_names(value)
    if names is None or found is None or found == tuple(names) or counting(found) != counting(names):
        return value
    _same_names(found, names, name, "columns")
    labels = dict(zip(found, value.columns, strict=True))
    return value[[labels[each] for each in names]]


def row_by_name(value: Any, names: Sequence[str] | None, name: str) -> Any:
    """The numbers of a dict, or of a row of a data frame, as a list in the order of these names; anything else as it is."""
    found = row_names(value)
    if names is None or found is None:
        return by_name(value, names, name)
    _same_names(found, names, name, "names")
    values = list(value.values()) if isinstance(value, Mapping) else list(value)
    return [values[found.index(each)] for each in names]


def alike(value: Any, other: Any, name: str) -> Any:
    """A data frame with its columns in the order of those of another; anything else as it is."""
    return by_name(value, column_names(other), name)


def counting(names: Sequence[str]) -> bool:
    return set(names) == set(map(str, range(len(names))))


def distinct_names(names: Sequence[str], name: str) -> None:
    """Refuse columns of which two have the same name."""
    if len(set(names)) < len(names):
        raise ValueError(f"{name} has the same name twice among {', '.join(names)}")


def _same_names(found: Sequence[str], names: Sequence[str], name: str, what: str) -> None:
    distinct_names(found, name)
    missing, unknown = [n for n in names if n not in found], [n for n in found if n not in names]
    said = [f"lacks the {what} {', '.join(missing)}"] * bool(missing)
    said += [f"has the unknown {what} {', '.join(unknown)}"] * bool(unknown)
    if said:
        raise ValueError(f"{name} {' and '.join(said)}; those wanted are {', '.join(names)}")


def dimensions(value: Any, name: str) -> int:
    """Of an array, or what becomes one."""
    try:
        return np.asarray(value).ndim  # that of NumPy asks a module for its attribute
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; a table was wanted") from None


def same_length(a: Any, b: Any, name_a: str, name_b: str) -> None:
    """Refuse two samples that should be paired but are not equally long."""
    if len(a) != len(b):
        raise ValueError(f"{name_a} has {len(a)} rows but {name_b} has {len(b)}; they must be paired")


def weights(value: Any, name: str, size: int) -> Array:
    """Finite, possibly signed weights, one per point; None means uniform."""
    if value is None:
        return np.full(size, 1.0 / size)
    array = numbers(value, name)
    if array.shape != (size,):
        raise ValueError(f"{name} has shape {array.shape} where one number for each of {size} points was wanted")
    if array.any() and np.abs(array).max() < SMALLEST:
        raise ValueError(f"{name} is nowhere larger than {SMALLEST:g}; multiply it by a constant")
    return array


def positive(value: Any, name: str, *, smallest: float = SMALLEST, largest: float = LARGEST) -> float:
    """One finite number above zero, of a size that can be squared."""
    number = scalar(value, name)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {number:g}")
    if not smallest <= number <= largest:
        raise ValueError(f"{name} must lie between {smallest:g} and {largest:g}, got {number:g}")
    return number


def scalar(value: Any, name: str) -> float:
    """One finite real number."""
    # a Decimal does not mix with floats, wherever the setting is used as it was given
    strange = isinstance(value, (str, bytes, dict, set, decimal.Decimal))
    if strange or _is_date(value) or np.ndim(value) != 0 or np.iscomplexobj(value):
        raise ValueError(f"{name} must be one number, got {_shown(value)}")
    try:
        number = math.nan if _count_masked(value) else float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be one number, got {_shown(value)}") from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def _shown(value: Any) -> str:
    """What was given, in few words."""
    text = repr(value)
    return text if len(text) <= 80 else f"{type(value).__name__}: {text[:60]}..."


def count(value: Any, name: str, *, at_least: int = 1, at_most: int = _MOST) -> int:
    """A whole number of something."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or _is_date(value):
        raise ValueError(f"{name} must be a whole number, got {_shown(value)}")
    if value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {_shown(value)}")
    if value > at_most:
        raise ValueError(f"{name} must be at most {at_most:,}, got {_shown(value)}")
    return int(value)


def option(value: Any, name: str, choices: tuple[Any, ...]) -> Any:
    """One of a few words."""
    if isinstance(value, (dict, set, slice)) or np.ndim(value) != 0 or value is np.ma.masked or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {_shown(value)}")
    return next(choice for choice in choices if choice is value or choice == value)


def given_instead(value: Any, kind: type) -> str:
    """What was given where an object of some kind was wanted, in words; often it is the class itself."""
    if isinstance(value, type) and issubclass(value, kind):
        return f"the class {value.__name__} itself: call it"
    return type(value).__name__


def fits_memory(elements: int, what: str, instead: str) -> None:
    """Refuse an array of doubles that this machine cannot hold, naming the way round it."""
    wanted = 8 * elements
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not every platform tells
        return
    if wanted > 0.5 * total:
        raise ValueError(
            f"{what} would take {wanted / 2**30:.1f} GiB of the machine's {total / 2**30:.1f} GiB; {instead}"
        )


def generator(random_state: Any) -> np.random.Generator:
    """A NumPy generator from a seed, a generator, a legacy RandomState, or nothing."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if _is_date(random_state):  # a duration is a whole number to NumPy
        raise ValueError(f"random_state must be a whole number, a numpy Generator or None, got {_shown(random_state)}")
    if isinstance(random_state, (int, np.integer)) and random_state < 0:
        raise ValueError(f"random_state must not be negative, got {_shown(random_state)}")
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return np.random.default_rng(random_state)
    raise ValueError(f"random_state must be a whole number, a numpy Generator or None, got {_shown(random_state)}")


def seed(random_state: Any) -> int:
    """A whole number to seed generators with: the one given, or one drawn."""
    rng = generator(random_state)
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(rng.integers(2**31))

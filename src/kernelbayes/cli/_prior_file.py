"""Distributions in TOML files: a table for each parameter, with one of `scipy.stats` and its numbers, or with bounds.

[parameters.growth]
bounds = [0, 5]

[parameters.noise]
distribution = "lognorm"
s = 0.5
scale = 0.1
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..lfi import Prior
from ..lfi._blocks import median_of, scipy_family
from ._refusal import Refusal

# What people call some distributions, and what scipy.stats calls them.
_CALLED = {
    "normal": "norm",
    "gaussian": "norm",
    "lognormal": "lognorm",
    "log-normal": "lognorm",
    "exponential": "expon",
    "inverse-gamma": "invgamma",
    "student": "t",
    "half-normal": "halfnorm",
    "log-uniform": "loguniform",
}
# A longer file takes more than a moment to read, and holds more parameters than can be inferred.
_MOST_BYTES = 500_000
# Distributions whose ends may be called low and high.
_BOUNDED = ("uniform", "loguniform", "reciprocal")


def read_prior_file(path: str) -> Prior:
    """The prior in a TOML file; what is wrong with it is a refusal that names the parameter."""
    return Prior(_distributions(path))


def read_distribution_file(path: str) -> dict[str, Any]:
    """The frozen distributions of `scipy.stats` in such a file, by name; bounds are those of a uniform one."""
    from scipy import stats  # slow to import

    given = _distributions(path)
    return {name: stats.uniform(d[0], d[1] - d[0]) if isinstance(d, tuple) else d for name, d in given.items()}


def _distributions(path: str) -> dict[str, Any]:
    """Bounds or a frozen distribution for each parameter."""
    given = _parameters(path)
    return {name: _distribution(entry, f"{path}, parameter {name!r}") for name, entry in given.items()}


def _parameters(path: str) -> dict[str, Any]:
    try:
        size = Path(path).stat().st_size
        if size > _MOST_BYTES:
            raise Refusal(f"{path} has {size:,} bytes; a prior file of more than {_MOST_BYTES:,} is not read")
        content = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise Refusal(f"there is no file {path}") from None
    except OSError as reason:
        raise Refusal(f"cannot read {path}: {reason.strerror}") from None
    except ValueError as reason:  # also of numbers too long to be read
        raise Refusal(f"{path} is not TOML: {reason}") from None
    except RecursionError:
        raise Refusal(f"{path} is nested too deeply for a prior") from None
    given = content.get("parameters")
    if not isinstance(given, dict) or not given:
        found = f"; it has {', '.join(content)}{_meant(content, ['parameters'])}" if content else ""
        raise Refusal(f"{path} has no table [parameters.NAME] for any parameter{found}")
    if len(content) > 1:
        other = next(name for name in content if name != "parameters")
        hint = _meant([other], ["parameters"]) or f"; write [parameters.{other}] if it is a parameter"
        raise Refusal(f"{path} has {other!r} outside of [parameters]{hint}")
    return given


def _meant(words: Iterable[str], known: list[str]) -> str:
    """A question for the known word that is nearest to the first of some that has any near it."""
    close = [near for word in words for near in difflib.get_close_matches(word.lower(), known, n=1)]
    return f"; did you mean {close[0]!r}?" if close else ""


def _distribution(entry: Any, where: str) -> Any:
    """One parameter: bounds, or a frozen distribution."""
    if isinstance(entry, list):
        return _bounds(entry, where)
    if not isinstance(entry, dict):
        raise Refusal(f"{where}: a table with a distribution, or [low, high], was wanted, got {_brief(entry)}")
    if "bounds" in entry:
        others = [key for key in entry if key != "bounds" and (key, entry[key]) != ("distribution", "uniform")]
        if others:
            raise Refusal(
                f"{where}: bounds make a uniform distribution and go with nothing else; {others[0]} is given as well"
            )
        return _bounds(entry["bounds"], where)
    if "distribution" not in entry:
        found = f"; it has {', '.join(entry)}{_meant(entry, ['distribution', 'bounds'])}" if entry else ""
        raise Refusal(f'{where}: it has no distribution, such as "norm", and no bounds{found}')
    family = _family(entry["distribution"], where)
    _refuse_unknown(family, [key for key in entry if key != "distribution"], where)
    numbers = {key: _number(value, key, where) for key, value in entry.items() if key != "distribution"}
    return _frozen(family, _without_ends(family.name, numbers, where), where)


def _bounds(value: Any, where: str) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise Refusal(f"{where}: bounds must be two numbers such as [0, 5], got {_brief(value)}")
    low, high = (_number(v, "bounds", where) for v in value)
    if not low < high:
        raise Refusal(f"{where}: bounds must rise, got [{low:g}, {high:g}]")
    return low, high


def _family(name: Any, where: str) -> Any:
    from scipy import stats  # slow to import

    if not isinstance(name, str):
        raise Refusal(f"{where}: distribution must be a name in quotes, got {_brief(name)}")
    found = scipy_family(name)
    if found is not None:
        return found
    known = [k for k in vars(stats) if scipy_family(k) is not None]
    usual = _CALLED.get(name.lower().replace(" ", "-").replace("_", "-"))
    hint = _meant([usual or name], known)
    raise Refusal(f"{where}: scipy.stats has no distribution {_brief(name)}{hint}")


def _shapes(family: Any) -> list[str]:
    return [name.strip() for name in family.shapes.split(",")] if family.shapes else []


def _refuse_unknown(family: Any, keys: list[str], where: str) -> None:
    known = [*_shapes(family), "loc", *([] if hasattr(family, "pmf") else ["scale"])]
    ends = ["low", "high"] if family.name in _BOUNDED else []
    for key in keys:
        if key not in known + ends:
            listed = ", ".join(known) + ", or low and high" * bool(ends)
            raise Refusal(f"{where}: {family.name} has no {key!r}; it has {listed}{_meant([key], known + ends)}")


def _number(value: Any, key: str, where: str) -> float:
    try:
        if not isinstance(value, (bool, str)) and isinstance(value, (int, float)) and math.isfinite(value):
            return float(value)
    except OverflowError:  # a whole number that no float can hold
        raise Refusal(f"{where}: {key} is too large, a number of {len(str(value)):,} digits") from None
    quoted = " in quotes" if isinstance(value, str) else ""
    raise Refusal(f"{where}: {key} must be a number, got {_brief(value)}{quoted}")


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}..."


def _without_ends(family: str, numbers: dict[str, float], where: str) -> dict[str, float]:
    """Numbers as scipy.stats wants them where the ends of a distribution are given as low and high."""
    if family not in _BOUNDED or not {"low", "high"} & set(numbers):
        return numbers
    missing = {"low", "high"} - set(numbers)
    if missing:
        raise Refusal(f"{where}: {family} with {'low' if 'low' in numbers else 'high'} needs {missing.pop()} too")
    rest = {key: value for key, value in numbers.items() if key not in ("low", "high")}
    low, high = numbers["low"], numbers["high"]
    if not low < high:
        raise Refusal(f"{where}: low must be less than high, got {low:g} and {high:g}")
    return rest | ({"loc": low, "scale": high - low} if family == "uniform" else {"a": low, "b": high})


def _frozen(family: Any, numbers: dict[str, float], where: str) -> Any:
    missing = [name for name in _shapes(family) if name not in numbers]
    if missing:
        raise Refusal(f"{where}: {family.name} needs {', '.join(missing)}")
    frozen = family(**numbers)
    try:
        median = median_of(frozen)
    except ValueError as reason:
        raise Refusal(f"{where}: {reason}") from None
    if not math.isfinite(median):
        shown = ", ".join(f"{key} = {value:g}" for key, value in numbers.items())
        raise Refusal(f"{where}: {family.name} does not exist for {shown}")
    return frozen

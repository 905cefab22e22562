"""The words of the library, read off its signatures: which argument means what, and what every result can be asked.

Every build of the documentation writes `docs/generated/arguments.md` and `docs/generated/results.md`, which vocabulary.md
includes. To see them without a build: python docs/vocabulary.py
"""

from __future__ import annotations

import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

import kernelbayes as kb
from kernelbayes._persist import _known
from kernelbayes.filters import Belief

#: What results share, in the order of the columns.
SHARED = ("mean", "std", "interval", "sample", "summary", "problems", "plot", "to_csv")
_OTHERS = re.compile(r"to_(?!csv)\w+")
_FEWEST = 2  # callables that take an argument before it is a word of the library
_MOST_NAMED = 6
_DEFAULT = inspect.Parameter.empty


def write_all(out: Path) -> None:
    """Write both tables into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "arguments.md").write_text(arguments(), encoding="utf-8")
    (out / "results.md").write_text(results(), encoding="utf-8")


# ------------------------------------------------------------------------------------------------ arguments


def callables() -> Iterator[tuple[str, Any, str]]:
    """Name, signature and docstring of public functions, of classes that a user makes, and of public methods."""
    for name in kb.__all__:
        value = getattr(kb, name)
        if not inspect.isclass(value):
            yield name, inspect.signature(value), inspect.getdoc(value) or ""
        elif not issubclass(value, BaseException):
            doc = inspect.getdoc(value) or ""
            if "Args:" in doc or issubclass(value, (kb.Kernel, kb.Recipe)):  # else it is made by the library
                yield name, inspect.signature(value), doc
            yield from _methods(name, value)


def _methods(name: str, cls: type) -> Iterator[tuple[str, Any, str]]:
    for method, member in vars(cls).items():
        if not method.startswith("_") and inspect.isfunction(member):
            yield f"{name}.{method}", inspect.signature(member), inspect.getdoc(member) or ""


def described(doc: str) -> dict[str, str]:
    """What a docstring says of each argument, in the section "Args:"."""
    found: dict[str, str] = {}
    names: list[str] = []
    lines = doc.splitlines()
    for line in lines[lines.index("Args:") + 1 :] if "Args:" in lines else []:
        if line and not line.startswith(" "):
            break
        head = re.match(r"    (\w+(?:, \w+)*): (.*)", line)
        if head:
            names = head[1].split(", ")
            found.update(dict.fromkeys(names, head[2]))
        elif line.strip():
            found.update({name: f"{found[name]} {line.strip()}" for name in names})
    return found


def arguments() -> str:
    """A row for each argument that several callables take: its default, its meaning, and who takes it."""
    takers: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    meanings: dict[str, Counter[str]] = defaultdict(Counter)
    for where, signature, doc in callables():
        said = described(doc)
        for name, parameter in signature.parameters.items():
            if name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                takers[name].append((where, parameter.default))
                if name in said:
                    meanings[name][_first_sentence(said[name])] += 1
    rows = []
    for name in sorted(takers, key=str.lower):
        if len(takers[name]) >= _FEWEST:
            meaning = meanings[name].most_common(1)[0][0] if meanings[name] else ""
            rows.append([f"`{name}`", _defaults(takers[name]), meaning, _listed([w for w, _ in takers[name]])])
    return table(["argument", "default", "meaning", "taken by"], rows)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[^.][.;:]) (?=[A-Z]|with |by default )", text)[0].rstrip(";:")


def _defaults(takers: list[tuple[str, Any]]) -> str:
    """The usual default first, then those of the others."""
    shown = Counter("must be given" if d is _DEFAULT else f"`{_plain(d)}`" for _, d in takers)
    return ", ".join(text for text, _ in shown.most_common())


def _plain(value: Any) -> str:
    plain = value is None or isinstance(value, (bool, int, float, str, tuple))
    return repr(value) if plain else type(value).__name__


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(f"`{n}`" for n in names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# -------------------------------------------------------------------------------------------------- results


def results() -> str:
    """A row for each result, and what it can be asked."""
    known = set(_known().values())
    rows = []
    for cls in [*(getattr(kb, name) for name in kb.__all__), Belief]:
        if not inspect.isclass(cls) or issubclass(cls, (BaseException, BaseEstimator)):
            continue
        cells = [_asked(cls, name) for name in SHARED]
        if sum(map(bool, cells)) >= 2:
            others = ", ".join(f"`{n}`" for n in dir(cls) if _OTHERS.fullmatch(n))
            rows.append([f"`{cls.__name__}`", *cells, others, "yes" if cls in known else ""])
    return table(["result", *SHARED, "to others", "`kb.save`"], rows)


def _asked(cls: type, name: str) -> str:
    """How a result is asked: with its arguments if it is a method, and as an attribute otherwise."""
    member = inspect.getattr_static(cls, name, None)
    if inspect.isfunction(member):
        given = list(inspect.signature(member).parameters)[1:]
        return f"`({', '.join(given)})`"
    if isinstance(member, (property, cached_property)) or _is_attribute(cls, name):
        return "attribute"
    return ""


def _is_attribute(cls: type, name: str) -> bool:
    section = (inspect.getdoc(cls) or "").partition("Attributes:")[2].partition("\n\n")[0]
    heads = re.findall(r"^    ([\w, ]+): ", section, flags=re.MULTILINE)
    return any(name in head.split(", ") for head in heads)


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown; in cells a bar would end it."""
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    print(arguments())
    print(results())

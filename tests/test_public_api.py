"""What the library offers, name by name, against a file that is kept: a change of it is seen, and meant.

After a change that is meant, renew the file and look at what it shows:

    python tests/test_public_api.py && git diff tests/public_api.txt
"""

import difflib
import importlib
import inspect
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import kernelbayes

KEPT = Path(__file__).with_name("public_api.txt")
RENEW = "python tests/test_public_api.py && git diff tests/public_api.txt"

#: Where a user finds names: the public page, and what is left in subpackages.
PAGES = {
    "kernelbayes": kernelbayes.__all__,
    "kernelbayes.embeddings": ("Health",),
    "kernelbayes.filters": ("Belief", "TrackDiagnostics", "TrackScore"),
    "kernelbayes.integration": ("MercerExpansion", "SampledSpectrum"),
    "kernelbayes.learning": ("Optimum",),
    "kernelbayes.lfi": (
        *("EpsilonKernel", "GaussianEpsilon", "IidEpsilon", "MMDEpsilon", "SpatioTemporalEpsilon"),
        *("LearnedLikelihood", "KELFI", "DME", "KernelBayes", "KernelABC", "DoubleKernelABC", "Rejection"),
        *("MarkovABC", "SequentialABC", "SyntheticLikelihood", "AdaptiveSynthetic", "SurrogateABC"),
    ),
    "kernelbayes.simulation": ("Failure", "StoreError", "StoreReport", "check_store", "repair_store"),
}
PUBLIC = {value for name in kernelbayes.__all__ if inspect.isclass(value := getattr(kernelbayes, name))}


def described() -> list[str]:
    """A line for each public name and each public method, sorted."""
    lines = []
    for page, names in PAGES.items():
        module = importlib.import_module(page)
        for name in names:
            lines += _entry(f"{page}.{name}", getattr(module, name))
    return sorted(lines, key=lambda line: line.removeprefix("class "))


def _entry(path: str, value: Any) -> list[str]:
    if not inspect.isclass(value):
        return [f"{path}{_signature(value)}"]
    made = f"({value.__base__.__name__})" if issubclass(value, BaseException) else _signature(value)
    return [f"class {path}{made}", *_members(path, value)]


def _members(path: str, cls: type) -> list[str]:
    lines = []
    for name in dir(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        if name.startswith("_") or not _is_own(owner) or (owner is not cls and owner in PUBLIC):
            continue  # what a public base has is listed with it
        member = inspect.getattr_static(cls, name)
        if isinstance(member, property | cached_property):
            lines.append(f"{path}.{name}")
        elif isinstance(member, classmethod | staticmethod):
            lines.append(f"{path}.{name}{_signature(getattr(cls, name))}")
        elif inspect.isfunction(member):
            lines.append(f"{path}.{name}{_signature(member, method=True)}")
    return lines


def _is_own(cls: type) -> bool:
    return cls.__module__.split(".")[0] == "kernelbayes"


def _signature(value: Any, method: bool = False) -> str:
    """Arguments with their defaults, without annotations, which Python's versions write in different ways."""
    signature = inspect.signature(value)
    given = list(signature.parameters.values())[1 if method else 0 :]
    plain = [
        p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else _Shown(p.default)) for p in given
    ]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


class _Shown:
    """A default as it is written, never as an address in memory."""

    def __init__(self, value: Any):
        self.value = value

    def __repr__(self) -> str:
        plain = self.value is None or isinstance(self.value, bool | int | float | str | tuple)
        return repr(self.value) if plain else f"<{type(self.value).__name__}>"


def test_public_names_are_as_kept():
    kept, found = KEPT.read_text(encoding="utf-8").splitlines(), described()
    change = difflib.unified_diff(kept, found, "as kept", "as it is", lineterm="", n=0)
    assert kept == found, "the public names have changed; if that is meant:\n\n    " + "\n".join([RENEW, "", *change])


def test_no_address_is_kept():
    assert " at 0x" not in "\n".join(described())


def test_types_are_for_users_too():
    assert (Path(kernelbayes.__file__).parent / "py.typed").is_file()


def test_a_name_that_cannot_be_imported_tells_why(monkeypatch):
    def broken(name):
        raise AttributeError("module 'numpy' has no attribute 'bool8'")

    monkeypatch.setattr(kernelbayes, "_import", broken)
    monkeypatch.delitem(vars(kernelbayes), "DensityRatio", raising=False)
    with pytest.raises(ImportError, match=r"kernelbayes\.DensityRatio cannot be imported: module 'numpy'"):
        _ = kernelbayes.DensityRatio
    with pytest.raises(AttributeError, match="has no attribute 'DensityRatios'"):
        _ = kernelbayes.DensityRatios


if __name__ == "__main__":
    KEPT.write_text("\n".join(described()) + "\n", encoding="utf-8")

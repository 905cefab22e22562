"""Modules that a person runs by a short name: the demos and the experiments."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from types import ModuleType


class Catalogue(Mapping[str, ModuleType]):
    """Name on the command line -> module of a package, imported when it is asked for, in the order given."""

    def __init__(self, package: str, modules: Mapping[str, str]):
        self._package, self._modules = package, dict(modules)

    def __getitem__(self, name: str) -> ModuleType:
        return importlib.import_module(f"{self._package}.{self._modules[name]}")

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

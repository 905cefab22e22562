"""Bayesian inference from samples, with kernel mean embeddings."""

import sys
from pathlib import Path
from typing import Any

import lazy_loader

__version__ = "0.1.0.dev0"

# A name is imported from where `__init__.pyi` says when it is first used: a command or a script waits for what it needs.
_import, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
# all but the subpackages
__all__ = [name for name in _names if not Path(__file__).with_name(name).is_dir()]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    return _import(name)

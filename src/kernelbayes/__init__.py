"""Bayesian inference from samples, with kernel mean embeddings."""

import sys
import threading
from pathlib import Path
from typing import Any

import lazy_loader

__version__ = "0.1.0.dev0"

# A name is imported from where `__init__.pyi` says when it is first used: a command or a script waits for what it needs.
_import, _, _names = lazy_loader.attach_stub(__name__, __file__)
_one_by_one = threading.RLock()  # what is imported from two threads at once, scikit-learn among it, is found half done
# all but the subpackages
__all__ = [name for name in _names if not Path(__file__).with_name(name).is_dir()]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _names:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    with _one_by_one:
        return _import(name)


def __dir__() -> list[str]:
    return sorted({*_names, "__all__", "__doc__", "__version__"})

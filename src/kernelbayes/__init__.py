"""Bayesian inference from samples, with kernel mean embeddings."""

import os
import sys
import threading
from pathlib import Path
from typing import Any

import lazy_loader

__version__ = "0.1.0.dev0"

# A name is imported from where `__init__.pyi` says when it is first used: a command or a script waits for what it needs.
_import, _, _names = lazy_loader.attach_stub(__name__, __file__)
# What is imported from two threads at once, scikit-learn among it, is found half done. This is for names of this page only.
_one_by_one = threading.RLock()
# All but the subpackages; as the disk spells them, which may hold `Features` for `features`.
__all__ = [name for name in _names if name not in os.listdir(Path(__file__).parent)]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _names:
        page = sys.modules.get(__name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=page)
    with _one_by_one:
        try:
            found = globals()[name] = _import(name)
        except AttributeError as error:  # of a dependency, say; here it would be taken for a name that is not there
            raise ImportError(f"{__name__}.{name} cannot be imported: {error}", name=f"{__name__}.{name}") from error
    return found


def __dir__() -> list[str]:
    return sorted({*_names, "__all__", "__doc__", "__version__"})

"""Functions of the user's own modules, named on the command line as `module:function`."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from ._refusal import Refusal


def imported(text: str, option: str, such_as: str = "model:simulate") -> Callable[..., Any]:
    """The function that `module:function` names, from the current folder before anywhere else."""
    module, _, name = text.partition(":")
    if not module or not name:
        raise Refusal(f"{option} must be MODULE:FUNCTION, such as {such_as}, got {text!r}")
    if module.endswith(".py"):
        raise Refusal(f"{option} wants the name of a module, not of a file: {module.removesuffix('.py')}:{name}")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as reason:
        if reason.name is not None and (module == reason.name or module.startswith(reason.name + ".")):
            raise Refusal(f"there is no module {module!r} in {here} or among what is installed") from None
        raise Refusal(f"cannot import {module}: {reason}") from None
    except Exception as reason:
        raise Refusal(f"cannot import {module}: {type(reason).__name__}: {reason}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            own = [n for n, v in vars(found).items() if callable(v) and not n.startswith("_")]
            raise Refusal(f"{module} has no function {name!r}" + (f" (it has {', '.join(own[:10])})" if own else ""))
        found = getattr(found, part)
    if not callable(found):
        raise Refusal(f"{text} is no function but {type(found).__name__}")
    return found

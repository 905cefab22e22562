"""Models that a command kept with --save, for another run with --load."""

from __future__ import annotations

from typing import Any

from .._persist import load


def load_kept(path: str, kind: type, columns: str, what: str) -> Any:
    """What a file holds, if it is of this kind and knows the columns it was learned from; `what` names it otherwise."""
    try:
        model = load(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    if not isinstance(model, kind) or not getattr(model, columns, None):
        raise ValueError(f"{path} holds no {what} that was kept by --save")
    return model

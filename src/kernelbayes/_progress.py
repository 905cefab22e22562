"""Progress bars of loops on the host: the one place that knows when to show one."""

from __future__ import annotations

from typing import Any


def progress_bar(doing: str, total: int | None, progress: bool | None, *, wait: float = 0.0, **style: Any) -> Any:
    """A bar of `tqdm`: shown if asked for; where that is left open, on a terminal, once `wait` seconds have passed."""
    from tqdm.auto import tqdm  # slow to import

    hidden = None if progress is None else not progress  # None: wherever there is no terminal
    return tqdm(total=total, desc=doing, disable=hidden, delay=0.0 if progress else wait, **style)

"""Progress bars of host loops, all of which obey the same argument `progress`."""

from __future__ import annotations

from typing import Any

# Before a bar that nobody asked for appears.
_SECONDS_TO_WAIT = 2.0


def progress_bar(
    total: int | None, doing: str, progress: bool | None, *, done: int = 0, unit: str = "it", leave: bool = True
) -> Any:
    """A bar on standard error: True shows it at once, False never, None on a terminal when it takes more than a moment."""
    from tqdm.auto import tqdm  # slow to import

    hidden = None if progress is None else not progress  # None: wherever there is no terminal
    delay = 0.0 if progress else _SECONDS_TO_WAIT
    scaled = unit == " points"
    options = {"unit": unit, "unit_scale": scaled, "leave": leave, "disable": hidden, "delay": delay}
    return tqdm(total=total, initial=done, desc=doing, **options)

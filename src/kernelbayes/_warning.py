"""Warnings that point at the user's line, however deep in the library they arise."""

from __future__ import annotations

import sys
import warnings

# Modules whose frames may lie between the library's own.
_BETWEEN = ("kernelbayes", "functools", "contextlib", "equinox", "jax")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn about the first line up the stack that is not the library's.

    Example:
        >>> import warnings
        >>> from kernelbayes._warning import warn_user
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn_user("a word of caution")
        >>> str(caught[0].message), "kernelbayes" in caught[0].filename.rpartition("/")[2]
        ('a word of caution', False)
    """
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)

"""Saving fitted objects as data, and reading them from files that nobody vouches for.

| file | idea |
|---|---|
| `_files` | `save` and `load`: an object as its class name and attributes, and back |
| `_archive` | the arrays in a file, never more of them than the file itself holds |
| `_kinds` | whether a value is of the kind that a type hint names |
| `_fields` | the attributes of every class that is saved, and their kinds |
"""

from ._fields import known as _known
from ._files import load, save

__all__ = ["_known", "load", "save"]

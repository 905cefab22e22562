"""How commands refuse, warn and stop, in a line each."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..simulation import SimulationError


class Refusal(Exception):
    """Something in the arguments or files that stops a command, in one line."""


@contextmanager
def plainly() -> Iterator[None]:
    """Say what is wrong with the input in one line, and warnings as notes."""
    from .. import PosteriorWarning, QuadratureWarning  # which takes long, and is there by now

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            yield
        except (ValueError, OSError) as reason:
            raise Refusal(" ".join(str(reason).split())) from None
        except SimulationError as reason:
            told = [line for line in str(reason).splitlines() if "attribute `runs`" not in line]  # for Python only
            raise Refusal(" ".join(" ".join(told).split())) from None
        except MemoryError:
            raise Refusal("the tables are too large for the memory of this machine") from None
        finally:
            said = []
            for warning in caught:
                beware = issubclass(warning.category, (PosteriorWarning, QuadratureWarning))
                # doubts about a result are one to a line; a note may be laid out over several
                texts = str(warning.message).splitlines() if beware else [str(warning.message)]
                said += [("beware" if beware else "note", " ".join(text.split())) for text in texts]
            for label, text in dict.fromkeys(said):
                print(f"{label:8}{text}")


def in_options(message: str) -> str:
    """What is said of a store that was begun with another seed, in the words of a command."""
    message = message.replace("random_state is", "--seed is")
    return message.replace("; leave it out to go on", "; give that one to go on")


@contextmanager
def resumable(kept: bool = True) -> Iterator[None]:
    """Say of an interruption that the same command goes on from there, if what was done is kept."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("; the same command goes on from here" * kept) from None

"""What the commands share: how they refuse, and how they read arguments."""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..embeddings import PosteriorWarning
from ..integration import QuadratureWarning
from ..simulation import SimulationError


class Refusal(Exception):
    """Something in the arguments or files that stops a command, in one line."""


@contextmanager
def plainly() -> Iterator[None]:
    """Say what is wrong with the input in one line, and warnings as notes."""
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


def seed(text: str) -> int:
    """A random seed."""
    return whole(text, at_least=0)


def whole(text: str, *, at_least: int = 1) -> int:
    """A whole number from an argument."""
    if not text.isdecimal() or int(text) < at_least:
        raise argparse.ArgumentTypeError(f"a whole number from {at_least} was wanted, got {text!r}")
    return int(text)


def names(text: str) -> list[str]:
    """Names of columns, separated by commas."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError("names of columns, separated by commas, were wanted")
    double = next((name for i, name in enumerate(found) if name in found[:i]), None)
    if double is not None:
        raise argparse.ArgumentTypeError(f"{double!r} is named twice")
    return found


def share(text: str) -> float:
    """A number between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"a number between 0 and 1 was wanted, got {text!r}")
    return value


def seconds(text: str) -> float:
    """A time in seconds."""
    return above_zero(text, "a number of seconds")


def above_zero(text: str, wanted: str = "a number above zero") -> float:
    """A finite number above zero from an argument; `wanted` says what it is."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{wanted} was wanted, got {text!r}")
    return value


def folder(out: str) -> Path:
    """The folder for results, made if need be, or a refusal if nothing can be written there."""
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            return Path(out)
    except OSError as reason:
        raise Refusal(f"cannot write to {out}: {reason.strerror}") from None


def target(path: str | None, inputs: list[str | None]) -> Path | None:
    """A file to be written, or a refusal before the work is done: no folder for it, or a file that is being read."""
    if path is None:
        return None
    found = Path(path)
    if found.is_dir():
        raise Refusal(f"cannot write {path}: it is a folder")
    if any(given is not None and found.resolve() == Path(given).resolve() for given in inputs):
        raise Refusal(f"{path} is read by this command; write to another file")
    if not found.parent.is_dir():  # more likely a slip than a wish for folders
        raise Refusal(f"cannot write {path}: there is no folder {found.parent}")
    folder(str(found.parent))
    return found


def check_figure(path: Path | None) -> None:
    """Refuse a figure whose name does not end like one, before the work is done."""
    if path is None:
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix.lower().removeprefix(".") not in known:
        raise Refusal(f"cannot draw {path}: its name must end in one of {', '.join(sorted(known))}")

"""Files that commands write: checked before the work is done, and told at the end."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from ._refusal import Refusal


def folder(out: str) -> Path:
    """The folder for results, made if need be, or a refusal if nothing can be written there."""
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            return Path(out)
    except OSError as reason:
        raise Refusal(f"cannot write to {out}: {reason.strerror}") from None


def results(
    read: Sequence[str | None], files: Sequence[str | None], figures: Sequence[str | None]
) -> list[Path | None]:
    """The files to be written, then the figures, or a refusal before the work is done; `read` are those being read."""
    found = [_target(path, read) for path in (*files, *figures)]
    _check_apart(found)
    for path in found[len(files) :]:
        _check_figure(path)
    return found


def _target(path: str | None, inputs: Sequence[str | None]) -> Path | None:
    """A file to be written, or a refusal: no folder for it, or a file that is being read."""
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


def _check_figure(path: Path | None) -> None:
    """Refuse a figure whose name does not end like one."""
    if path is None:
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix.lower().removeprefix(".") not in known:
        raise Refusal(f"cannot draw {path}: its name must end in one of {', '.join(sorted(known))}")


def _check_apart(paths: Sequence[Path | None]) -> None:
    """Refuse two results in one file."""
    given = [path.resolve() for path in paths if path]
    double = next((path for i, path in enumerate(given) if path in given[:i]), None)
    if double is not None:
        raise Refusal(f"{double.name} is named for two results; name two files")


def tell_written(paths: Sequence[Path | None]) -> None:
    """Say which files there are now."""
    written = [str(path) for path in paths if path]
    print(f"written {', '.join(written)}" if written else "nothing written: --out and --plot name files")

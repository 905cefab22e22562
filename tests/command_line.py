"""The command as tests call it: with words, for what it printed."""

import re

import pytest

from kernelbayes.cli import main


def called(command, capsys, *words, code=0, progress=True):
    """What a command printed, beside its progress if it may, or the one line by which it refused."""
    assert main([command, *words]) == code
    printed = capsys.readouterr()
    if code == 0:
        assert progress or printed.err == ""
        return printed.out
    assert printed.err.startswith(f"kernelbayes {command}: ")
    assert printed.err.count("\n") == 1
    return printed.err.removeprefix(f"kernelbayes {command}: ").rstrip()


def called_in(command, folder, capsys, *arguments, code=0):
    """The same in a folder of tables, for a command without progress."""
    words = [str(folder / word) if re.search(r"\.(csv|png|npz|txt)$", word) else word for word in arguments]
    return called(command, capsys, *words, code=code, progress=False)


def unreadable(command, capsys, *words):
    """What is said of arguments that cannot be read."""
    with pytest.raises(SystemExit, match="2"):
        main([command, *words])
    return capsys.readouterr().err


def calls_in(folder):
    """How often the function of a test, which writes a line each time, was called."""
    path = folder / "calls.txt"
    return len(path.read_text().splitlines()) if path.exists() else 0

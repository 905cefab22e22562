"""The page that maps the papers to the code names only what is there."""

import importlib
import re
from pathlib import Path

import pytest

import kernelbayes

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "theory.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside the tests")


def cells(*columns):
    """What stands in backticks in these columns of the page's tables, but for words in quotation marks and settings."""
    rows = [row.strip("| ").split(" | ") for row in PAGE.read_text().splitlines() if row.startswith("| ")]
    return {name for row in rows for i in columns for name in re.findall(r"`([^`]+)`", row[i])}


def found(name):
    """Whether kernelbayes.<name> is a module, or an attribute of one."""
    if hasattr(kernelbayes, name):
        return True
    parent, _, last = f"kernelbayes.{name}".rpartition(".")
    try:
        module = importlib.import_module(parent)
    except ModuleNotFoundError:
        return False
    if hasattr(module, last):
        return True
    try:
        importlib.import_module(f"{parent}.{last}")
    except ModuleNotFoundError:
        return False
    return True


def test_every_place_in_the_code_can_be_imported():
    settings = {'form="sampled"', "features", "alpha", "reg"}
    names = {name for name in cells(2) if not name.startswith('"') and ".py" not in name} - settings
    assert len(names) > 60
    assert sorted(name for name in names if not found(name)) == []


def test_every_test_is_there():
    names = {name for name in cells(2, 3) if ".py" in name}
    assert len(names) > 60
    missing = []
    for name in names:
        path, _, test = name.partition("::")
        text = (HERE / path).read_text() if (HERE / path).exists() else ""
        if not text or (test and not re.search(rf"def {test}\(", text)):
            missing.append(name)
    assert sorted(missing) == []

"""The README: its examples say what they print, its table is that of the records, and its commands are two."""

import doctest
import re
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
DOCS = README.parent / "docs"

pytestmark = pytest.mark.skipif(not README.exists(), reason="the README is not beside the tests")
with_docs = pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not beside the tests")


@pytest.mark.one_seed
def test_examples_print_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, tried = doctest.testfile(str(README), module_relative=False, optionflags=flags)
    assert tried > 20
    assert not failed


def test_there_are_exactly_two_set_up_commands():
    commands = re.findall(r"```sh\n(.*?)\n```", README.read_text(), flags=re.DOTALL)
    start = "python3 -m venv .venv && .venv/bin/pip install "
    assert commands == [f"{start}. && .venv/bin/kernelbayes demo", f"{start}-e '.[test]' && .venv/bin/pytest -n auto"]


@with_docs
def test_the_table_is_what_the_records_hold(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    import excerpts

    assert excerpts.renewed(README.read_text()) == README.read_text(), "run python docs/excerpts.py"
    for name in ("excerpts", "results"):
        del sys.modules[name]


@with_docs
def test_links_and_the_picture_are_there():
    links = re.findall(r"\]\(([^)#]+)", README.read_text())
    assert len(links) > 15
    assert [link for link in links if not (README.parent / link).exists()] == []
    assert (DOCS / "images" / "overview.png").stat().st_size < 150_000

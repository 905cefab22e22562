"""The snippets of the README run as printed, one after the other."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the README is not beside the tests")
def test_snippets_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(snippets) == 9
    scope = {}
    for snippet in snippets:
        exec(snippet, scope)
    assert (tmp_path / "model.npz").exists()
    assert scope["model"].interval([[1.0]], 0.8).shape == (2, 1)
    assert scope["by_height"].predict([[0.9]])[0] > scope["by_height"].predict([[0.0]])[0] + 0.5
    assert scope["found"].problems == ()
    assert abs(scope["cost"].mean() - 1673.8) < 3.0
    assert scope["found"].interval(0.9).shape == (2, 2)


@pytest.mark.skipif(not README.exists(), reason="the README is not beside the tests")
def test_there_are_exactly_two_set_up_commands():
    commands = re.findall(r"```sh\n(.*?)\n```", README.read_text(), flags=re.DOTALL)
    start = "python3 -m venv .venv && .venv/bin/pip install "
    assert commands == [f"{start}. && .venv/bin/kernelbayes demo", f"{start}'.[test]' && .venv/bin/pytest"]

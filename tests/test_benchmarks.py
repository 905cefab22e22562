"""The benchmark command: its rows, its table, and what survives a contender that fails. Nothing is measured here."""

import inspect
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
if not (ROOT / "benchmarks" / "__main__.py").exists():
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from benchmarks import __main__ as command  # noqa: E402
from benchmarks import _row, _run, _table  # noqa: E402
from benchmarks._rows import JOBS, ROWS  # noqa: E402

FAKES = """
def fine(n):
    print("noise that is not the answer")
    return {"seconds": n / 1000, "first": n / 500, "quality": {"error": 0.5}}

def crashes(n):
    raise RuntimeError("out of luck")

def dies(n):
    import os
    os.kill(os.getpid(), 9)

def hangs(n):
    import time
    time.sleep(60)

def absent(n):
    import a_peer_that_nobody_has
"""


@pytest.fixture
def fakes(tmp_path, monkeypatch):
    """Contenders in a module that the processes of the command can import too."""
    (tmp_path / "fakes.py").write_text(FAKES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    sys.modules.pop("fakes", None)
    import fakes

    return fakes


def _found(seconds, error=0.5, **more):
    return {"seconds": seconds, "first": 2 * seconds, "peak_gb": 0.25, "quality": {"error": error}, **more}


def _row_of(**more):
    settings = {"asked": (_row.ratio(2), _row.no_larger("error")), "why": "it is a test; patience", "sizes": {"n": 100}}
    return _row.Row("made-up", "A job of n = {n:,}", abs, abs, "the peer", **(settings | more))


def _entry(ours, peer, **more):
    return {"sizes": {"n": 100}, "ours": ours, "peer": peer, "on": {"date": "2026-01-01", "cores": "2"}, **more}


def _shown(row, entry):
    return _table.markdown([row], {row.name: entry})


# ------------------------------------------------------------------------------------------------------------ rows


def test_every_row_is_listed(capsys):
    assert len(ROWS) == sum(len(job.ROWS) for job in JOBS), "two rows have one name"
    assert command.main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(ROWS)
    assert not any(character in line for line in lines for character in "{}|")


def test_a_name_that_is_no_row_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["gramm"])
    assert "no row is called gramm" in capsys.readouterr().err


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_complete(name):
    row = ROWS[name]
    assert bool(row.peer) == bool(row.peer_name)
    assert row.why or not row.asked, "a miss would go unexplained"
    assert set(row.quick or {}) <= set(row.sizes)
    assert row.title.format(**row.sized(True)) == row.title.format(**{**row.sizes, **(row.quick or {})})
    for contender in filter(None, (row.ours, row.peer)):
        request = json.loads(_run._request(contender, row.sizes))
        function = getattr(sys.modules[request["module"]], request["function"])
        inspect.signature(function).bind(**request["settings"])


def test_the_record_is_of_rows_that_exist():
    record = _run.load(_run.RECORD)
    assert set(record) <= set(ROWS)
    assert not any(entry.get("quick") for entry in record.values())
    table = _table.markdown(list(ROWS.values()), record)
    assert all(line.count(" | ") == len(_table.COLUMNS) - 1 for line in table.splitlines() if line.startswith("| "))
    assert set(re.findall(r"\[\^[\w-]+\](?!:)", table)) == {note[:-1] for note in re.findall(r"\[\^[\w-]+\]:", table)}


# ----------------------------------------------------------------------------------------------------------- table


def test_a_row_that_meets_what_is_asked_has_no_note():
    shown = _shown(_row_of(), _entry(_found(0.1), _found(0.4, error=0.6)))
    assert "| A job of n = 100 | the peer | 0.4 s | 0.1 s | 4 | ratio of at least 2, error no larger: met |" in shown
    assert "| 0.1 s; 0.4 s | 0.25 GB; 0.25 GB | error 0.5; error 0.6 |" in shown
    assert "patience" not in shown
    assert shown.endswith("Measured on: date 2026-01-01, cores 2.\n")


def test_large_numbers_are_written_out():
    shown = _shown(_row_of(), _entry(_found(0.001), _found(2.5)))
    assert "| 2.5 s | 0.001 s | 2,500 |" in shown


def test_a_miss_says_why():
    shown = _shown(_row_of(), _entry(_found(0.1), _found(0.15)))
    assert "**missed** (ratio of at least 2)" in shown
    assert "[^made-up]: Missed: ratio of at least 2. Why, and what would meet it: it is a test; patience." in shown


def test_a_row_that_is_slower_than_its_peer_says_why_even_if_no_ratio_is_asked():
    shown = _shown(_row_of(asked=()), _entry(_found(0.2), _found(0.1)))
    assert "[^made-up]: Slower than the peer. Why, and what would meet it: it is a test; patience." in shown


@pytest.mark.parametrize(
    ("peer", "told"),
    [({"skipped": "No module named 'peer'"}, "left out"), ({"failed": "took longer than 9 s"}, "failed")],
)
def test_a_peer_without_a_time_is_named_with_the_reason(peer, told):
    shown = _shown(_row_of(), _entry(_found(0.1), peer))
    assert f"| the peer (**{told}**) |  | 0.1 s |  |" in shown
    assert "error no larger: not comparable without the peer" in shown
    assert f"the peer: {next(iter(peer.values()))}." in shown


def test_a_row_of_ours_that_failed_is_shown_as_that():
    shown = _shown(_row_of(), _entry({"failed": "ended by signal 9"}, _found(0.1)))
    assert "| 0.1 s | **failed** |  |" in shown
    assert "Ours: ended by signal 9." in shown


def test_a_quick_row_is_marked_and_not_judged():
    shown = _shown(_row_of(), _entry(_found(0.1), _found(0.05), quick=True))
    assert "| quick: A job of n = 100 |" in shown
    assert "not judged in a quick run" in shown
    assert "missed" not in shown
    assert "patience" not in shown


def test_an_empty_record_has_no_table():
    assert _table.markdown([_row_of()], {}) == "Nothing has been measured yet.\n"


@pytest.mark.parametrize(
    ("asked", "good", "bad"),
    [
        (_row.seconds(1), _found(0.9), _found(1.1)),
        (_row.memory(0.3), _found(1.0), _found(1.0, peak_gb=0.4)),
        (_row.at_most("error", 0.5), _found(1.0), _found(1.0, error=0.6)),
        (_row.lower("error"), _found(1.0, error=0.4), _found(1.0)),
        (_row.no_lower("error"), _found(1.0), _found(1.0, error=0.4)),
        (_row.growth(1, "linear"), _found(1.0, growth=[(1, 1.0), (8, 8.0)]), _found(1.0, growth=[(1, 1.0), (8, 64.0)])),
        (
            _row.growth(0, "constant"),
            _found(1.0, growth=[(1, 1.0), (8, 1.0)]),
            _found(1.0, growth=[(1, 1.0), (8, 8.0)]),
        ),
    ],
)
def test_what_is_asked_can_be_met_and_missed(asked, good, bad):
    assert asked.met(good, _found(1.0)) is True
    assert asked.met(bad, _found(1.0)) is False


# ------------------------------------------------------------------------------------------------------------- runs


def test_contenders_that_fail_lose_only_their_own_part(fakes):
    rows = [
        _row.Row(name, name, fakes.fine, getattr(fakes, name), "peer", sizes={"n": 100}, quick={"n": 50}, limit=limit)
        for name, limit in (("crashes", 20.0), ("dies", 20.0), ("hangs", 0.5), ("absent", 20.0), ("fine", 20.0))
    ]
    entries = {row.name: entry for row, entry in _run.run(rows)}
    assert all(entry["ours"]["seconds"] == 0.1 for entry in entries.values())
    assert entries["crashes"]["peer"]["failed"] == "RuntimeError: out of luck"
    assert entries["dies"]["peer"]["failed"] == "ended by signal 9"
    assert entries["hangs"]["peer"]["failed"] == "took longer than 0.5 s"
    assert "a_peer_that_nobody_has" in entries["absent"]["peer"]["skipped"]
    assert entries["fine"]["peer"] is entries["fine"]["ours"], "a contender of several rows runs once"
    assert 0 < entries["fine"]["ours"]["peak_gb"] < 10


def test_an_interrupted_run_keeps_finished_rows(monkeypatch, tmp_path, capsys):
    def interrupted(request, limit):
        if "gram_sklearn" in request:
            raise KeyboardInterrupt
        return _found(0.1)

    monkeypatch.setattr(_run, "measure", interrupted)
    (tmp_path / "results.json").write_text(
        json.dumps({"mmd": _entry(_found(0.3), None) | {"sizes": ROWS["mmd"].sizes}})
    )
    assert command.main(["conditional", "gram", "cholesky", "--out", str(tmp_path)]) == 130
    kept = json.loads((tmp_path / "results.json").read_text())
    assert list(kept) == ["conditional", "mmd"], "the finished row and the one of before, in the order of the table"
    assert "MMD test" in (tmp_path / "results.md").read_text()
    assert "1 of 3 rows" in capsys.readouterr().err


def test_a_quick_run_leaves_the_record_alone(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_run, "measure", lambda request, limit: _found(0.1, growth=[(1, 1.0), (2, 2.0)]))
    monkeypatch.setattr(command, "RECORD", tmp_path / "results.json")
    assert command.main(["--quick"]) == 0
    assert list(tmp_path.iterdir()) == []
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| quick: ")]
    assert len(lines) == sum(row.quick is not None for row in ROWS.values())
    assert command.main(["gram", "--quick", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"quick.json", "quick.md"}


def test_a_failure_of_ours_is_the_exit_code(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_run, "measure", lambda request, limit: {"failed": "no"})
    assert command.main(["gram", "--out", str(tmp_path)]) == 1
    assert "**failed**" in capsys.readouterr().out

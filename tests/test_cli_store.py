"""`kernelbayes store`: check and repair."""

import numpy as np
import pytest

from command_line import called, unreadable
from kernelbayes.cli import main
from kernelbayes.simulation import open_runs, simulate


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "my runs.sqlite"
    simulate(lambda row: row[0] + np.arange(3.0), np.arange(1000.0, 1020.0), store=path, random_state=0)
    return path


def spoil(store, value):
    """Change a number wherever it stands."""
    store.write_bytes(store.read_bytes().replace(np.array(value).tobytes(), np.array(-value).tobytes()))


def test_a_sound_store(store, capsys):
    said = called("store", capsys, "check", str(store))
    assert said == f"{store}: 20 runs intact; no damage found\n"
    assert called("store", capsys, "repair", str(store)) == said


def test_a_damaged_store(store, capsys):
    spoil(store, 1005.0)  # in runs 3, 4 and 5
    assert main(["store", "check", str(store)]) == 1
    said = capsys.readouterr().out
    assert f"{store}: 17 runs intact; damaged\n- run 3 is not as it was written" in said
    assert "lost: run 3, 4, 5; the next call makes them again" in said
    assert f"kernelbayes store repair '{store}' keeps what is intact" in said
    said = called("store", capsys, "repair", str(store))
    assert f"what is intact is in {store}" in said
    assert f"the damaged file is kept as {store}.damaged" in said
    assert len(open_runs(store)) == 17


def test_repair_to_another_file(store, tmp_path, capsys):
    spoil(store, 1005.0)
    damaged = store.read_bytes()
    called("store", capsys, "repair", str(store), "--out", str(tmp_path / "new.sqlite"))
    assert store.read_bytes() == damaged
    assert len(open_runs(tmp_path / "new.sqlite")) == 17
    said = called("store", capsys, "repair", str(store), "--out", str(tmp_path / "new.sqlite"), code=2)
    assert said.startswith("--out: there is a file")


def test_refusals(tmp_path, capsys):
    assert "there is no file" in called("store", capsys, "check", str(tmp_path / "nothing"), code=2)
    (tmp_path / "letter").write_text("Dear reader, " * 99)
    assert "is not a store of runs" in called("store", capsys, "check", str(tmp_path / "letter"), code=2)
    assert "--out is for repair" in called("store", capsys, "check", "letter", "--out", "new", code=2)
    assert "check|repair" in unreadable("store", capsys, "burn", "letter")

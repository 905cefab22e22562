"""The command line, as a newcomer meets it."""

import subprocess
import sys

import pytest

from kernelbayes import __version__
from kernelbayes.cli import main


def test_demo_prints_a_page_and_writes_its_figure(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "figures")]) == 0
    printed = capsys.readouterr().out
    assert "80% interval" in printed
    assert 15 < len(printed.splitlines()) < 60
    assert max(map(len, printed.splitlines())) < 120
    figure = tmp_path / "figures" / "conditional-density.png"
    assert figure.stat().st_size > 20_000
    assert str(figure) in printed


def test_demo_list(capsys):
    assert main(["demo", "--list"]) == 0
    assert capsys.readouterr().out.startswith("conditional")


def test_unknown_demo(capsys):
    assert main(["demo", "nonsense"]) == 2
    assert "there is no demo 'nonsense'; try one of conditional" in capsys.readouterr().err


def test_folder_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["demo", "--out", str(tmp_path / "file")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_no_command_and_version(capsys):
    with pytest.raises(SystemExit, match="2"):
        main([])
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert __version__ in capsys.readouterr().out


def test_import_starts_nothing():
    """No JAX backend, no array, no change of configuration, no plotting library."""
    code = (
        "import jax, sys; before = jax.config.values.copy(); import kernelbayes; "
        "assert jax.config.values == before; assert 'matplotlib' not in sys.modules; "
        "from jax._src import xla_bridge; assert not xla_bridge._backends"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

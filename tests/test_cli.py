"""The command line, as a newcomer meets it."""

import re
import subprocess
import sys

import pytest
from matplotlib.image import imread

from kernelbayes import __version__
from kernelbayes.cli import main


def test_demo_prints_a_page_and_writes_its_figure(tmp_path, capsys):
    assert main(["demo", "--out", str(tmp_path / "figures")]) == 0
    printed = capsys.readouterr().out
    assert "80% interval" in printed
    assert 15 < len(printed.splitlines()) < 80
    lines = [line for line in printed.splitlines() if not re.search("Figures?: ", line)]  # a path may be long
    assert max(map(len, lines)) < 120
    for name in ("conditional-density.png", "bayes-rule.png", "filter.png", "inference.png", "inference-check.png"):
        figure = tmp_path / "figures" / name
        assert imread(figure)[..., :3].std() > 0.02  # not blank
        assert str(figure) in printed


def test_demo_list(capsys):
    assert main(["demo", "--list"]) == 0
    assert capsys.readouterr().out.startswith("conditional")


def test_unknown_demo(capsys):
    assert main(["demo", "nonsense"]) == 2
    assert "there is no demo 'nonsense'; try one of conditional" in capsys.readouterr().err


def test_experiment_list(capsys):
    assert main(["experiment", "--list"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^resampling +Resampling weighted samples", printed, re.MULTILINE)
    assert "Kanagawa (2016), section 5.5" in printed


def test_experiments_need_a_name(capsys):
    assert main(["experiment"]) == 2
    assert capsys.readouterr().err == "kernelbayes experiment: name an experiment; --list shows them\n"


def test_unknown_experiment(capsys):
    assert main(["experiment", "nonsense"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("kernelbayes experiment: there is no experiment 'nonsense'; try one of ")
    assert "resampling, decoding" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["demo", "experiment"])
@pytest.mark.parametrize("folder", ["file", "file/below", "/proc"])
def test_folder_that_cannot_be_written(tmp_path, capsys, command, folder):
    (tmp_path / "file").write_text("")
    names = ["decoding"] if command == "experiment" else []
    assert main([command, *names, "--out", str(tmp_path / folder)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"kernelbayes {command}: cannot write to ")
    assert error.count("\n") == 1


def test_file_in_the_way_of_a_folder(tmp_path, capsys):
    (tmp_path / "runs").write_text("")
    assert main(["experiment", "decoding", "--quick", "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert str(tmp_path / "runs") in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("seed", ["-1", "1.5", "x"])
def test_seed_that_is_none(capsys, seed):
    with pytest.raises(SystemExit, match="2"):
        main(["experiment", "decoding", f"--seed={seed}"])
    assert "a whole number from 0 was wanted" in capsys.readouterr().err


def test_interrupted_experiment(tmp_path, capsys, monkeypatch):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("kernelbayes.experiments.run", interrupted)
    assert main(["experiment", "decoding", "--out", str(tmp_path)]) == 130
    assert "the same command goes on from here" in capsys.readouterr().err


def test_no_command_and_version(capsys):
    assert main([]) == 2
    assert "repeat a published experiment" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert __version__ in capsys.readouterr().out


def test_python_m_is_the_command():
    done = subprocess.run([sys.executable, "-m", "kernelbayes", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "kernelbayes" in done.stdout.splitlines()[0]

"""`kernelbayes integrate` on files, from a function and a distribution to a folder of results, and what it refuses."""

import functools
import re
import sys

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from command_line import called, calls_in, unreadable
from kernelbayes._table import read_table
from kernelbayes.cli import main
from kernelbayes.cli._in_words import in_words
from kernelbayes.cli._prior_file import read_distribution_file

MODEL = """
import numpy as np

def cost(rain, price):
    with open("calls.txt", "a") as calls:
        calls.write("called\\n")
    return rain**2 + price

def both(rain, price):
    return {"cost": rain**2, "gain": rain + price}

def of_a_dict(inputs):
    return inputs["rain"] + inputs["price"]

def touchy(rain, price):
    return float("nan") if rain > 1.5 else rain

def flat(rain, price):
    return 3.0

def broken(rain, price):
    raise RuntimeError("no licence")

def text(rain, price):
    return "much"

def not_a_number(rain, price):
    return float("nan")

def other_names(snow, price):
    return snow

def stopped(rain, price):
    raise KeyboardInterrupt

def weighed(weight):
    return weight

constant = 3
"""

INPUTS = """
[parameters.rain]
distribution = "norm"

[parameters.price]
bounds = [2, 4]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a function and a distribution, in which the command is called."""
    (tmp_path / "farm_model.py").write_text(MODEL)
    (tmp_path / "inputs.toml").write_text(INPUTS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "farm_model", raising=False)
    return tmp_path


def given(function="cost"):
    return ("--integrand", f"farm_model:{function}", "--distribution", "inputs.toml", "--n", "20", "--out", "out")


call = functools.partial(called, "integrate")


def test_from_a_function_to_a_folder(folder, capsys):
    printed = call(capsys, *given())
    assert "mean of farm_model:cost\nover    rain=norm(), price=(2, 4)\n" in printed
    assert "from    20 evaluations at wide nodes\n" in printed
    assert re.search(r"^kernel  \w+, lengthscale \S+ of rain, \S+ of price$", printed, re.MULTILINE)
    assert re.search(r"^found   4\.0\d* ± \S+$|^found   3\.9\d* ± \S+$", printed, re.MULTILINE)
    assert "written out/integral.csv, out/nodes.csv, out/integral.png" in printed
    summary, nodes = read_table(folder / "out" / "integral.csv"), read_table(folder / "out" / "nodes.csv")
    assert summary.text("name") == ["integral"]
    mean, sd = summary.numbers(["mean", "std"])[0]
    assert abs(mean - 4.0) < min(4 * sd, 0.1)
    assert list(nodes.names) == ["rain", "price", "weight", "value"]
    rain, price, weight, value = nodes.numbers(["rain", "price", "weight", "value"]).T
    np.testing.assert_allclose(value, rain**2 + price)
    np.testing.assert_allclose(weight @ value, mean)
    low, high = map(float, re.search(r"^90 %    (\S+) to (\S+)$", printed, re.MULTILINE).groups())
    assert low < mean < high
    assert (folder / "out" / "integral.png").stat().st_size > 10_000


def test_it_is_what_python_gives(folder, capsys):
    call(capsys, *given(), "--seed", "3", "--nodes", "halton")
    over = [stats.norm(), stats.uniform(2, 2)]
    found = kb.integrate(lambda x: x[:, 0] ** 2 + x[:, 1], over, 20, nodes="halton", random_state=3)
    mean, sd = read_table(folder / "out" / "integral.csv").numbers(["mean", "std"])[0]
    assert mean == pytest.approx(found.mean(), rel=1e-9)
    assert sd == pytest.approx(found.std(), rel=1e-6)
    assert (folder / "out" / "integral.png").exists()


def test_a_store_repeats_no_evaluation(folder, capsys):
    stored = (*given(), "--store", "values.sqlite")
    call(capsys, *stored)
    assert calls_in(folder) == 20
    first = (folder / "out" / "nodes.csv").read_bytes()
    call(capsys, *stored)
    assert calls_in(folder) == 20
    assert (folder / "out" / "nodes.csv").read_bytes() == first
    call(capsys, *stored, "--n", "25")  # the first 20 are there
    assert calls_in(folder) == 25
    assert len(read_table(folder / "out" / "nodes.csv")) == 25
    said = call(capsys, *stored, "--seed", "1", code=2)
    assert said.startswith("--seed is 1, but the store ")
    assert said.endswith("values.sqlite was begun with 0; give that one to go on")


def test_a_store_of_another_function_is_told(folder, capsys):
    stored = (*given(), "--store", "values.sqlite")
    call(capsys, *stored)
    source = folder / "farm_model.py"
    source.write_text(source.read_text().replace("rain**2 + price", "rain**2 + 2.0 * price"))
    sys.modules.pop("farm_model")
    assert "beware  the source of f farm_model:cost has changed" in call(capsys, *stored)


def test_nodes_are_added_up_to_a_limit(folder, capsys):
    printed = call(capsys, *given(), "--tol", "1e-12", "--max-n", "30")
    assert "beware  after 30 evaluations the standard deviation is " in printed
    assert "from    30 evaluations" in printed
    assert calls_in(folder) == 30


def test_processes(folder, capsys):
    printed = call(capsys, *given("of_a_dict"), "--workers", "2")
    assert re.search(r"^found   (3|2\.99\d*|3\.00\d*) ± ", printed, re.MULTILINE)


def test_several_integrals_by_name(folder, capsys):
    printed = call(capsys, *given("both"))
    assert re.search(r"^cost +\S+", printed, re.MULTILINE)
    table = read_table(folder / "out" / "integral.csv")
    assert table.text("name") == ["cost", "gain"]
    np.testing.assert_allclose(table.numbers(["mean"])[:, 0], [1.0, 3.0], atol=0.05)
    read_table(folder / "out" / "nodes.csv").numbers(["value_cost", "value_gain"])


def test_failures_and_problems_are_told(folder, capsys):
    printed = call(capsys, *given("touchy"))
    assert re.search(r"^note    \d of 20 runs failed", printed, re.MULTILINE)
    assert re.search(r"from    \d+ evaluations at wide nodes, and \d that failed", printed)
    assert "beware  f has the same value at all nodes" in call(capsys, *given("flat"))


def test_a_column_called_like_one_of_the_table(folder, capsys):
    (folder / "inputs.toml").write_text("[parameters]\nweight = [0, 1]\n")
    call(capsys, *given("weighed"))
    x, value = read_table(folder / "out" / "nodes.csv").numbers(["x_weight", "value"]).T
    np.testing.assert_array_equal(x, value)


def test_interrupted(folder, capsys):
    assert main(["integrate", *given("stopped"), "--store", "values.sqlite"]) == 130
    assert "stopped; the same command goes on from here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--integrand", "nowhere:f"), "there is no module 'nowhere' in "),
        (("--integrand", "farm_model:cots"), "farm_model has no function 'cots' (it has cost, "),
        (
            ("--integrand", "farm_model.py:cost"),
            "--integrand wants the name of a module, not of a file: farm_model:cost",
        ),
        (("--integrand", "cost"), "--integrand must be MODULE:FUNCTION, such as model:cost, got 'cost'"),
        (("--integrand", "farm_model:constant"), "farm_model:constant is no function but int"),
        (("--integrand", "farm_model:broken"), "farm_model:broken: 20 of the first 20 runs failed"),
        (("--integrand", "farm_model:broken"), "RuntimeError: no licence"),
        (("--integrand", "farm_model:text"), "f returned 'much', which cannot be read as an array of numbers"),
        (("--integrand", "farm_model:not_a_number"), "the output is nan"),
        (
            ("--integrand", "farm_model:other_names"),
            "farm_model:other_names has no argument 'rain'; its arguments are snow, price",
        ),
        (("--distribution", "no.toml"), "there is no file no.toml"),
        (("--distribution", "points.csv"), "over the rows of a table, kb.integrate(f, table) integrates in Python"),
        (("--distribution", "farm_model.py"), "farm_model.py is not TOML"),
        (("--max-n", "30"), "--max-n is the limit of evaluations with --tol"),
        (("--max-n", "10", "--tol", "0.1"), "--max-n is 10, fewer than the 20 first evaluations of --n"),
        (("--out", "inputs.toml"), "cannot write to inputs.toml"),
    ],
)
def test_refusals(folder, capsys, arguments, message):
    assert message in call(capsys, *given(), *arguments, code=2)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--n", "2"), "a whole number from 3 was wanted, got '2'"),
        (("--tol", "0"), "a number above zero was wanted, got '0'"),
        (("--timeout", "soon"), "a number of seconds was wanted"),
        (("--nodes", "best"), "invalid choice: 'best'"),
    ],
)
def test_arguments_of_the_wrong_kind(folder, capsys, option, message):
    assert message in unreadable("integrate", capsys, *given(), *option)


def test_bounds_are_uniform(tmp_path):
    (tmp_path / "d.toml").write_text('[parameters]\na = [2, 5]\nb = {distribution = "gamma", a = 3}\n')
    found = read_distribution_file(str(tmp_path / "d.toml"))
    assert list(found) == ["a", "b"]
    np.testing.assert_allclose(found["a"].ppf([0, 0.5, 1]), [2.0, 3.5, 5.0])
    np.testing.assert_allclose(found["b"].ppf(0.3), stats.gamma(3).ppf(0.3))


def test_kernels_in_words():
    matern = kb.Matern(2.5, lengthscale=2.0).on(0) * kb.Matern(2.5, lengthscale=0.5).on(1)
    assert in_words(matern, ["a", "b"]) == "Matern, lengthscale 2 of a, 0.5 of b"
    assert in_words(3.0 * kb.Gaussian([1.0, 4.0]), ["a", "b"]) == "Gaussian, lengthscale 1 of a, 4 of b"
    assert in_words(kb.Linear(), ["a"]) == "Linear"


def test_a_function_of_one_number_that_has_no_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.toml").write_text('[parameters.x]\ndistribution = "norm"\n')
    assert (
        main(["integrate", "--integrand", "math:exp", "--distribution", "one.toml", "--n", "20", "--out", "found"]) == 0
    )
    (found,) = re.findall(r"found   (\S+) ±", capsys.readouterr().out)
    assert float(found) == pytest.approx(np.exp(0.5), abs=0.02)

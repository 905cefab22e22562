"""`kernelbayes infer` on files, from a prior and an observation to a folder of results, and what it refuses."""

import functools
import re

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from command_line import called, calls_in, unreadable
from kernelbayes._table import read_table, write_table
from kernelbayes.cli import main
from kernelbayes.cli._observation import read_observation
from kernelbayes.cli._prior_file import read_prior_file
from kernelbayes.cli._refusal import Refusal

MODEL = """
import numpy as np

def measure(mu, sigma, rng):
    with open("calls.txt", "a") as calls:
        calls.write("called\\n")
    x = rng.normal(mu, sigma, 50)
    return {"mean": x.mean(), "sd": x.std()}

def plain(mu, sigma, rng):
    return list(measure(mu, sigma, rng).values())

def series(mu, sigma, rng):
    return rng.normal(mu, sigma, 40)

def broken(mu, sigma):
    raise RuntimeError("no licence")

def stopped(mu, sigma):
    raise KeyboardInterrupt

constant = 3
"""

PRIOR = """
[parameters.mu]
distribution = "norm"
loc = 0
scale = 2

[parameters.sigma]
bounds = [0.2, 3]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a simulator, a prior and an observation, in which the command is called."""
    (tmp_path / "bench_model.py").write_text(MODEL)
    (tmp_path / "prior.toml").write_text(PRIOR)
    (tmp_path / "y.csv").write_text("mean,sd\n1.0,1.2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "bench_model", raising=False)
    return tmp_path


GIVEN = ("--prior", "prior.toml", "--observed", "y.csv")
MEASURE = (*GIVEN, "--simulator", "bench_model:measure")
QUICK = ("--method", "rejection", "--check", "0", "--out", "out")


call = functools.partial(called, "infer")


def test_from_a_simulator_to_a_folder(folder, capsys):
    printed = call(
        capsys, *MEASURE, "--simulations", "300", "--truth", "mu=1,sigma=1.2", "--check", "60", "--out", "out"
    )
    assert "prior   mu=norm(loc=0, scale=2), sigma=(0.2, 3)\n" in printed
    assert "given   y.csv: mean 1, sd 1.2\n" in printed
    assert "runs    300 finished; about" in printed
    assert "check   60 simulations, 2 statistics, none in the far tails\n" in printed
    out = folder / "out"
    for name in ("posterior.png", "predictive.png", "relevance.png"):
        assert (out / name).stat().st_size > 10_000
    samples, summary = read_table(out / "samples.csv"), read_table(out / "summary.csv")
    draws = samples.numbers(["mu", "sigma"])
    assert draws.shape == (1000, 2)
    assert ((draws[:, 1] >= 0.2) & (draws[:, 1] <= 3.0)).all()
    assert summary.text("name") == ["mu", "sigma"]
    mean, sd = summary.numbers(["mean", "std"]).T
    np.testing.assert_allclose(draws.mean(0), mean, atol=0.2 * sd.max())
    assert abs(mean - [1.0, 1.2]).max() < 0.3
    posterior = kb.load(out / "posterior.npz")
    np.testing.assert_allclose(posterior.mean(), mean)
    text = (out / "summary.txt").read_text()
    assert "settings of the method" in text
    assert "relevance:" in text
    assert "60 simulations from the posterior" in text


def test_same_seed_same_draws(folder, capsys):
    for out in ("a", "b"):
        call(capsys, *MEASURE, "--simulations", "40", *QUICK[:-1], out, "--seed", "5")
    assert (folder / "a" / "samples.csv").read_bytes() == (folder / "b" / "samples.csv").read_bytes()


def test_a_store_repeats_no_run_and_takes_more(folder, capsys):
    stored = (*MEASURE, *QUICK, "--store", "runs.sqlite")
    call(capsys, *stored, "--simulations", "30")
    assert calls_in(folder) == 30  # the first one, made to see what the simulator returns, is among them
    assert "runs    30 finished" in call(capsys, *stored, "--simulations", "30")
    assert calls_in(folder) == 30
    assert "runs    40 finished" in call(capsys, *stored, "--more", "10")
    assert calls_in(folder) == 40
    assert "runs.sqlite was begun with 0; give that one to go on" in call(
        capsys, *stored, "--simulations", "30", "--seed", "1", code=2
    )


def test_processes_import_the_simulator_from_this_folder(folder, capsys):
    printed = call(capsys, *MEASURE, *QUICK, "--simulations", "30", "--workers", "2", "--timeout", "60")
    assert "runs    30 finished" in printed


def test_runs_made_elsewhere(folder, capsys):
    rng = np.random.default_rng(0)
    theta = kb.Prior(mu=stats.norm(0, 2), sigma=(0.2, 3)).sample(300, random_state=0)
    x = rng.normal(theta[:, :1], theta[:, 1:], (300, 50))
    x[3] = np.nan
    write_table("theta.csv", [("sigma", theta[:, 1]), ("note", ["x"] * 300), ("mu", theta[:, 0])])
    write_table("x.csv", [("sd", x.std(1)), ("other", x[:, 0]), ("mean", x.mean(1))])  # in another order
    printed = call(capsys, *GIVEN, "--parameters", "theta.csv", "--outputs", "x.csv", *QUICK)
    assert "runs    299 finished, 1 failed" in printed
    mean = read_table(folder / "out" / "summary.csv").numbers(["mean"])[:, 0]
    assert abs(mean - [1.0, 1.2]).max() < 0.4
    assert not (folder / "out" / "predictive.png").exists()


def test_a_series_in_a_column(folder, capsys):
    np.savetxt("series.csv", np.random.default_rng(0).normal(1.0, 1.0, 40))
    arguments = ("--prior", "prior.toml", "--observed", "series.csv", "--simulator", "bench_model:series")
    printed = call(capsys, *arguments, "--simulations", "60", "--method", "rejection", "--check", "20", "--out", "out")
    assert "given   series.csv: 40 values\n" in printed
    assert "check   20 simulations, 40 values" in printed


def test_names_of_the_observation_go_to_a_simulator_without_any(folder, capsys):
    call(capsys, *GIVEN, "--simulator", "bench_model:plain", *QUICK, "--simulations", "30")
    assert kb.load(folder / "out" / "posterior.npz").statistics == ("mean", "sd")


def test_an_observation_out_of_reach(folder, capsys):
    (folder / "y.csv").write_text("mean,sd\n1.0,40\n")
    printed = call(capsys, *MEASURE, "--simulations", "60", "--method", "rejection", "--check", "30", "--out", "out")
    assert re.search(r"^beware  the observation lies outside the simulations in sd = 40", printed, re.MULTILINE)
    assert re.search(r"^beware  simulations from the posterior miss the observation in sd = 40", printed, re.MULTILINE)
    assert "Read this before the result is believed" in (folder / "out" / "summary.txt").read_text()


def test_interrupted(folder, capsys):
    assert main(["infer", *GIVEN, "--simulator", "bench_model:stopped", "--store", "s.sqlite", *QUICK]) == 130
    assert "stopped; the same command goes on from here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (GIVEN, "give either --simulator, or --parameters and --outputs"),
        ((*MEASURE, "--parameters", "t.csv", "--outputs", "x.csv"), "give either --simulator, or"),
        ((*GIVEN, "--parameters", "t.csv"), "--outputs is missing"),
        ((*GIVEN, "--parameters", "y.csv", "--outputs", "y.csv", "--store", "a"), "--store needs --simulator"),
        ((*GIVEN, "--parameters", "y.csv", "--outputs", "y.csv"), "y.csv has no column 'mu'"),
        ((*GIVEN, "--simulator", "nowhere:f"), "there is no module 'nowhere' in "),
        ((*GIVEN, "--simulator", "bench_model:mesure"), "bench_model has no function 'mesure' (it has measure, "),
        ((*GIVEN, "--simulator", "bench_model.py:measure"), "not of a file: bench_model:measure"),
        ((*GIVEN, "--simulator", "measure"), "--simulator must be MODULE:FUNCTION"),
        ((*GIVEN, "--simulator", "bench_model:constant"), "bench_model:constant is no function but int"),
        (
            (*GIVEN, "--simulator", "bench_model:broken"),
            "10 of 10 runs failed. The commonest reasons: 10 raised: Runtime",
        ),
        ((*GIVEN, "--simulator", "bench_model:series"), "y.csv has 2 values where the simulator returns 40"),
        ((*MEASURE, "--truth", "mu=1"), "--truth does not give 'sigma'; the prior has mu, sigma"),
        ((*MEASURE, "--truth", "mu=1,sigma=1,nu=2"), "--truth gives 'nu'"),
        ((*MEASURE, "--more", "5"), "--more adds to the runs of a store that exists"),
        ((*MEASURE, "--more", "5", "--simulations", "5"), "give --simulations, runs in all, or --more"),
        (("--prior", "no.toml", *MEASURE[2:]), "there is no file no.toml"),
        ((*MEASURE, "--observed", "no.csv"), "there is no file no.csv"),
        ((*MEASURE, "--out", "y.csv"), "cannot write to y.csv"),
    ],
)
def test_refusals(folder, capsys, arguments, message):
    assert message in call(capsys, *arguments, code=2)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--truth", "mu"), "NAME=NUMBER, separated by commas, was wanted"),
        (("--timeout", "soon"), "a number of seconds was wanted"),
        (("--workers", "0"), "a whole number from 1 was wanted"),
        (("--method", "guess"), "invalid choice: 'guess'"),
    ],
)
def test_arguments_of_the_wrong_kind(folder, capsys, option, message):
    assert message in unreadable("infer", capsys, *MEASURE, *option)


def test_module_that_fails_to_import(folder, capsys):
    (folder / "bench_wrong.py").write_text("import a_module_that_is_not_there")
    (folder / "bench_typo.py").write_text("def f(:")
    assert "cannot import bench_wrong: No module named 'a_module" in call(
        capsys, *GIVEN, "--simulator", "bench_wrong:f", code=2
    )
    assert "cannot import bench_typo: SyntaxError" in call(capsys, *GIVEN, "--simulator", "bench_typo:f", code=2)


class TestObservation:
    @pytest.mark.parametrize(
        ("text", "shape", "names"),
        [
            ("a,b\n1,2\n", (2,), ("a", "b")),
            ("a\n1\n", (1,), ("a",)),
            ("count\n1\n2\n3\n", (3,), None),
            ("1\n2\n3\n", (3,), None),
            ("4.5", (1,), None),
            ("u,v\n1,2\n3,4\n5,6\n", (3, 2), None),
        ],
    )
    def test_forms(self, tmp_path, text, shape, names):
        (tmp_path / "y.csv").write_text(text)
        found = read_observation(str(tmp_path / "y.csv"))
        assert found.values.shape == shape
        assert found.names == names

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "is empty"),
            ("1,2\n", "has no header"),
            ("a,b\n1,x\n", "column 'b': 'x' is not a number"),
            ("a,b\n1,\n", "has no value in column 'b'"),
        ],
    )
    def test_refusals(self, tmp_path, text, message):
        (tmp_path / "y.csv").write_text(text)
        with pytest.raises(ValueError, match=message):
            read_observation(str(tmp_path / "y.csv"))

    def test_columns_that_do_not_match(self, tmp_path, capsys):
        (tmp_path / "y.csv").write_text("a,b,c\n1,2,3\n")
        found = read_observation(str(tmp_path / "y.csv"))
        with pytest.raises(Refusal, match="has no column 'd', which the simulator returns"):
            found.as_returned(("a", "d"), (2,))
        assert found.as_returned(("b", "a"), (2,))["observed"] == {"a": 1.0, "b": 2.0, "c": 3.0}
        assert "note    the simulator does not return c of" in capsys.readouterr().out


class TestPriorFile:
    @pytest.mark.parametrize(
        ("entry", "distribution"),
        [
            ("bounds = [0, 5]", stats.uniform(0, 5)),
            ('distribution = "uniform"\nlow = -1\nhigh = 5', stats.uniform(-1, 6)),
            ('distribution = "loguniform"\nlow = 0.1\nhigh = 10', stats.loguniform(0.1, 10)),
            ('distribution = "lognorm"\ns = 0.5\nscale = 2', stats.lognorm(0.5, scale=2)),
            ('distribution = "beta"\nb = 3\na = 2\nloc = 1', stats.beta(2, 3, loc=1)),
            ('distribution = "poisson"\nmu = 4', stats.poisson(4)),
            ('distribution = "expon"', stats.expon()),
        ],
    )
    def test_is_what_scipy_says(self, tmp_path, entry, distribution):
        (tmp_path / "p.toml").write_text(f"[parameters.x]\n{entry}\n")
        prior = read_prior_file(str(tmp_path / "p.toml"))
        at = distribution.ppf([0.05, 0.3, 0.5, 0.95])[:, None]
        exact = kb.Prior(x=distribution)
        np.testing.assert_allclose(prior.to_gaussian(at), exact.to_gaussian(at))
        np.testing.assert_allclose(prior.density(at), exact.density(at))

    def test_short_form(self, tmp_path):
        (tmp_path / "p.toml").write_text("[parameters]\na = [0, 5]\nb = [1, 2]\n")
        assert repr(read_prior_file(str(tmp_path / "p.toml"))) == "Prior(a=(0, 5), b=(1, 2))"

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "has no table [parameters.NAME]"),
            ("x = [", "is not TOML"),
            ("[growth]\nbounds = [0, 1]", "has no table [parameters.NAME] for any parameter; it has growth"),
            ("[parameters.a]\nbounds = [0, 1]\n[b]\nbounds = [0, 1]", "write [parameters.b] if it is a parameter"),
            ("[parameters.a]", "parameter 'a': it has no distribution"),
            ("[parameters]\na = 4", "parameter 'a': a table with a distribution"),
            ('[parameters.a]\ndistribution = "normal"', "no distribution 'normal'; did you mean 'norm'?"),
            ('[parameters.a]\ndistribution = "gama"', "no distribution 'gama'; did you mean 'gamma'?"),
            ("[parameters.a]\ndistribution = 3", "distribution must be a name in quotes"),
            ('[parameters.a]\ndistribution = "lognorm"', "lognorm needs s"),
            ('[parameters.a]\ndistribution = "norm"\nmean = 1', "norm has no 'mean'; it has loc, scale"),
            ('[parameters.a]\ndistribution = "poisson"\nmu = 1\nscale = 2', "poisson has no 'scale'; it has mu, loc"),
            (
                '[parameters.a]\ndistribution = "norm"\nsclae = 1',
                "no 'sclae'; it has loc, scale; did you mean 'scale'?",
            ),
            (
                '[parameters.a]\ndistribution = "uniform"\nlow = 1\nhihg = 2',
                "or low and high; did you mean 'high'?",
            ),
            ("[parameters.a]\nbonds = [0, 1]", "no bounds; it has bonds; did you mean 'bounds'?"),
            (
                '[parameters.a]\ndistrbution = "norm"\nscale = 1',
                "it has distrbution, scale; did you mean 'distribution'?",
            ),
            ("[parameters.a]\nbounds = [0, 1]\nscael = 2", "go with nothing else; scael is given as well"),
            ("[parametres.a]\nbounds = [0, 1]", "it has parametres; did you mean 'parameters'?"),
            (
                "[parameters]\na = [0, 1]\n[parameter]\nb = [0, 1]",
                "outside of [parameters]; did you mean 'parameters'?",
            ),
            ('[parameters.a]\ndistribution = "norm"\nloc = "1"', "loc must be a number, got '1' in quotes"),
            ('[parameters.a]\ndistribution = "norm"\nloc = inf', "loc must be a number, got inf"),
            ('[parameters.a]\ndistribution = "norm"\nscale = -1', "norm does not exist for scale = -1"),
            ('[parameters.a]\ndistribution = "uniform"\nlow = 1', "uniform with low needs high too"),
            ('[parameters.a]\ndistribution = "uniform"\nlow = 1\nhigh = 0', "low must be less than high"),
            ("[parameters.a]\nbounds = [1, 0]", "bounds must rise"),
            ("[parameters.a]\nbounds = 1", "bounds must be two numbers"),
            ('[parameters.a]\nbounds = [0, 1]\ndistribution = "norm"', "bounds make a uniform distribution"),
        ],
    )
    def test_refusals(self, tmp_path, text, message):
        (tmp_path / "p.toml").write_text(text)
        with pytest.raises(Refusal, match=re.escape(message)):
            read_prior_file(str(tmp_path / "p.toml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[parameters.x]\ndistribution = "zipf"\na = 1.0001\n', "p.toml, parameter 'x': zipf has 1 of its mass beyond"),
        ('[parameters.x]\ndistribution = "binom"\nn = 1e18\np = 0.5\n', "p.toml, parameter 'x': binom has the number"),
        ('[parameters.x]\ndistribution = "test"\n', "p.toml, parameter 'x': scipy.stats has no distribution 'test'"),
        (
            f"[parameters.x]\nbounds = [0, 1{'0' * 400}]\n",
            "p.toml, parameter 'x': bounds is too large, a number of 401",
        ),
        (f"a = 1{'0' * 5000}\n", "p.toml is not TOML"),
        ("a = " + "[" * 5000, "p.toml is nested too deeply"),
        ("#" * 600_000, "p.toml has 600,000 bytes; a prior file of more than 500,000 is not read"),
    ],
    ids=["endless tail", "huge count", "no distribution", "no float", "no number", "nested", "long"],
)
def test_prior_files_that_would_hang_or_crash(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(text)
    with pytest.raises(Refusal, match=f"^{message}"):
        read_prior_file("p.toml")

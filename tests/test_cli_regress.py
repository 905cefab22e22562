"""`kernelbayes regress` on files: two tables that share a mediator, and what it says about files that are not right."""

import argparse
import functools
import re
import warnings

import numpy as np
import pytest
from scipy.stats import norm

import kernelbayes as kb
from command_line import called_in, unreadable
from kernelbayes._table import read_table, write_table
from kernelbayes.cli import _regress


def draw(n, rng):
    """Places, heights that follow from them, and yields that follow from heights."""
    place = rng.uniform(-2, 2, n)
    height = np.sin(place) + 0.2 * rng.normal(size=n)
    return place, height, height**2 + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pairs (height, place), a task (place, yield), new heights with the true yields, and a model of them."""
    path = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    place, height, _ = draw(60, rng)
    write_table(path / "xy.csv", [("id", np.arange(60)), ("place", place), ("height", height)])
    place, height, found = draw(50, rng)
    write_table(path / "yz.csv", [("yield", found), ("place", place)])
    heights = np.array([-0.8, 0.0, 0.8, 9.0])
    names = ["low", "middle", "high", "far"]
    write_table(path / "x.csv", [("name", names), ("height", heights), ("yield", [0.64, 0.0, np.nan, 81.0])])
    write_table(path / "many.csv", [("place", place), ("yield", found), ("loss", 1 - found + 0.5 * height)])
    return path


LEARN = ("--pairs", "xy.csv", "--task", "yz.csv")


def fitted(*samples, **settings):
    """By the library, without what it says about its bands."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.PosteriorWarning)
        return kb.TaskTransformedGP(random_state=0, **settings).fit(*samples)


call = functools.partial(called_in, "regress")


@pytest.fixture(scope="module")
def library(folder):
    """The same by the library."""
    xy, yz = read_table(folder / "xy.csv"), read_table(folder / "yz.csv")
    samples = xy.numbers(["height"]), xy.numbers(["place"]), yz.numbers(["place"]), yz.numbers(["yield"])
    return fitted(*samples)


def test_from_two_tables_to_the_function(folder, capsys, library):
    printed = call(folder, capsys, *LEARN, "--test", "x.csv", "--out", "f.csv", "--plot", "--save", "model.npz")
    assert "note    id counts the rows, and is left out; name it in --inputs to keep it\n" in printed
    assert "columns yield from height, through place\n" in printed
    found, given = read_table(folder / "f.csv"), read_table(folder / "x.csv")
    assert found.names == (*given.names, "yield_mean", "yield_std", "mediation")
    assert all(found.text(name) == given.text(name) for name in given.names)
    X = given.numbers(["height"])
    with pytest.warns(UserWarning, match="at 1 of 4 points"):
        mean, std = library.predict(X, return_std=True)
    columns = found.numbers(["yield_mean", "yield_std", "mediation"])
    np.testing.assert_allclose(columns, np.column_stack([mean, std, library.mediation(X)]), rtol=1e-6, atol=1e-9)
    # known: 0.64, 0 and, far away, 81
    error = np.sqrt(np.mean((mean[[0, 1, 3], 0] - [0.64, 0.0, 81.0]) ** 2))
    assert f"score   yield: root mean square error {error:.3g}, standard deviation " in printed
    assert "(3 rows where it is known)\n" in printed
    near = np.sqrt(np.mean((mean[:2, 0] - [0.64, 0.0]) ** 2))
    assert f"        root mean square error {near:.3g}, standard deviation 0.32 (2 rows without guesses)\n" in printed
    assert re.search(r"beware  in 1 row x lies outside .* see the column mediation\n", printed)
    for name in ("f.png", "f-coverage.png"):
        assert (folder / name).stat().st_size > 15_000
        assert name in printed


def test_the_summary_says_what_was_learned(folder, capsys, library):
    printed = call(folder, capsys, *LEARN)
    assert (
        f"kernels of inputs: Gaussian, lengthscale {library.kernel_.kernel.lengthscale[0]:.3g} of height\n" in printed
    )
    noise = np.sqrt(library.noise_) * library.z_task_.std()
    assert f"noise   standard deviation {noise:.3g} of yield\n" in printed
    assert (
        f"freedom {library.degrees_of_freedom_:.1f} effective degrees of it, settled by 50 rows of the task" in printed
    )
    mean, std = library.left_out()
    inside = np.mean(np.abs(library.z_task_ - mean) < norm.ppf(0.975) * std)
    assert f"95% intervals hold {inside:.1%}\n        These are shares of targets; " in printed
    assert "xy.csv: 60 rows, mediation " in printed  # the pairs are predicted if nothing else is
    assert printed.endswith("nothing written: --out and --plot name files\n")


def test_saved_and_loaded_models_predict_the_same(folder, capsys):
    call(folder, capsys, *LEARN, "--save", "kept.npz", "--test", "x.csv", "--out", "direct.csv")
    use = ("--test", "x.csv", "--out", "loaded.csv", "--plot", "drawn.png")
    for option in ("--load",):
        printed = call(folder, capsys, option, "kept.npz", *use)
        assert "columns yield from height, through place\n" in printed
        loaded, direct = (read_table(folder / name) for name in ("loaded.csv", "direct.csv"))
        own = ["yield_mean", "yield_std", "mediation"]
        np.testing.assert_allclose(loaded.numbers(own), direct.numbers(own), rtol=1e-9)
    assert (folder / "drawn-coverage.png").exists()


def test_a_loaded_model_is_warned_of_as_when_it_was_learned(folder, capsys, library):
    model = kb.TaskTransformedGP(library.kernel_, library.mediator_kernel_, noise=1e-4, learn=None)
    with pytest.warns(kb.PosteriorWarning) as said:
        model.fit(library.X_, library.Y_, library.Y_task_ + 20.0, library.z_task_)
    assert len(said) > 1
    model.feature_names_in_ = np.array(["height"], dtype=object)
    model.mediator_columns_, model.target_columns_ = ("place",), ("yield",)
    kb.save(model, folder / "doubtful.npz")
    printed = call(folder, capsys, "--load", "doubtful.npz", "--test", "x.csv")
    for warning in said:
        assert f"beware  {warning.message}\n" in printed


def read(path, capsys, pairs, task):
    """What is read from two tables, before anything is learned."""
    (path / "pairs.csv").write_text(pairs)
    (path / "task.csv").write_text(task)
    arguments = argparse.Namespace(
        pairs=path / "pairs.csv", task=path / "task.csv", mediator=None, inputs=None, targets=None
    )
    return _regress._samples(arguments).roles, capsys.readouterr().out


def test_shared_columns_that_count_are_left_out_only_by_name(tmp_path, capsys):
    """Days 1, 2, 3, ... in both tables are a mediator."""
    rows = [f"{i},{i},{0.5 + i % 2}" for i in range(1, 6)]
    roles, printed = read(tmp_path, capsys, "\n".join(["nr,day,x", *rows]), "\n".join(["nr,day,z", *rows]))
    assert roles == (("x",), ("day",), ("z",))
    assert "note    nr counts the rows, and is left out; name it in --mediator to keep it\n" in printed
    assert "day counts" not in printed


@pytest.mark.parametrize(("given", "used"), [(None, None), ("same", None), ("learn", "learn"), (0.3, 0.3)])
def test_noise_of_the_mediator(given, used, monkeypatch):
    monkeypatch.setattr(kb.TaskTransformedGP, "fit", lambda self, *samples: self)
    arguments = argparse.Namespace(mediator_noise=given, covariance=None, ard=False, seed=0)
    samples = _regress.Samples(_regress.Roles(("x",), ("y",), ("z",)), *[None] * 5)
    assert _regress._learned(samples, arguments).mediator_noise == used


def test_several_targets_and_named_columns(folder, capsys):
    columns = ("--mediator", "place", "--inputs", "height", "--covariance", "map", "--mediator-noise", "learn")
    printed = call(folder, capsys, "--pairs", "xy.csv", "--task", "many.csv", *columns, "--out", "many-f.csv")
    assert "columns yield, loss from height, through place\n" in printed
    assert "model   map covariance" in printed
    assert printed.count("check   ") == 2
    assert re.search(r"noise   standard deviation \S+ of yield, \S+ of loss; of the function at one y ", printed)
    found = read_table(folder / "many-f.csv")
    assert found.names[-5:] == ("yield_mean", "yield_std", "loss_mean", "loss_std", "mediation")
    xy, task = read_table(folder / "xy.csv"), read_table(folder / "many.csv")
    samples = [xy.numbers(["height"]), xy.numbers(["place"]), task.numbers(["place"]), task.numbers(["yield", "loss"])]
    model = fitted(*samples, covariance="map", mediator_noise="learn")
    mean, std = model.predict(xy.numbers(["height"]), return_std=True)
    written = found.numbers(found.names[-5:-1])
    np.testing.assert_allclose(written, np.stack([mean, std], axis=2).reshape(60, 4), rtol=1e-6)


def test_x_and_z_on_one_table_need_no_mediator(folder, capsys):
    place, height, found = draw(60, np.random.default_rng(1))
    write_table(folder / "xyz.csv", [("height", height), ("place", place), ("yield", found)])
    options = ("--mediator", "place", "--inputs", "height", "--targets", "yield")
    printed = call(folder, capsys, "--pairs", "xyz.csv", "--task", "xyz.csv", *options)
    assert re.search(r"note    \S+xyz.csv has height too: ordinary regression on it needs no mediator\n", printed)


# ------------------------------------------------------------------------------------- what is refused, in one line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give --pairs, a table of x and y, and --task, a table of y and z; or --load"),
        ("--pairs xy.csv", "give --pairs, a table of x and y, and --task"),
        ("--load m.npz", "--load needs --test"),
        ("--load m.npz --pairs xy.csv --test x.csv", "--pairs was settled when the model of --load was learned"),
        ("--load m.npz --covariance map --test x.csv", "--covariance was settled"),
        ("--load m.npz --mediator-noise learn --test x.csv", "--mediator-noise was settled"),
        ("--load missing.npz --test x.csv", "there is no file .*missing.npz"),
        ("--load x.csv --test x.csv", "not a file saved by kernelbayes"),
        ("--load other.npz --test x.csv", "other.npz holds no regression that was kept by --save"),
        ("--pairs missing.csv --task yz.csv", "there is no file .*missing.csv"),
        ("--pairs xy.csv --task void.csv", "void.csv is empty"),
        ("--pairs xy.csv --task head.csv", "head.csv has a header but no rows"),
        (
            "--pairs xy.csv --task apart.csv",
            r"xy.csv \(id, place, height\) and .*apart.csv \(Place, yield\) share no column, .*; spell 'place' and 'Place' ",
        ),
        (
            "--pairs xy.csv --task xy.csv",
            "all columns of .*xy.csv are in the other table too, so none is left for --inputs",
        ),
        ("--pairs xy.csv --task yz.csv --mediator Place", "xy.csv has no column 'Place'; did you mean 'place'"),
        ("--pairs xy.csv --task yz.csv --mediator height", "yz.csv has no column 'height'"),
        ("--pairs xy.csv --task yz.csv --inputs hight", "xy.csv has no column 'hight'; did you mean 'height'"),
        ("--pairs xy.csv --task yz.csv --targets z", "yz.csv has no column 'z'"),
        (
            "--pairs xy.csv --task yz.csv --inputs place --mediator place",
            "'place' is named in --mediator and in --inputs",
        ),
        ("--pairs xy.csv --task yz.csv --test other.csv", "other.csv has no column 'height'; did you mean 'Height'"),
        ("--pairs named.csv --task yz.csv", "named.csv, line 2, column 'name': 'a' is not a number .--inputs names"),
        (
            "--pairs comma.csv --task yz.csv",
            "comma.csv, line 2, column 'height': '2,5' has a decimal comma; write a point",
        ),
        ("--pairs gaps.csv --task yz.csv", "gaps.csv has no value in column 'height' on line 3"),
        (
            "--pairs hollow.csv --task yz.csv",
            "hollow.csv has nothing in column 'depth'; name the columns to use in --inputs",
        ),
        ("--pairs word.csv --task yz.csv", "word.csv, line 4, column 'height': 'tall' is not a number"),
        ("--pairs xy.csv --task yz.csv --test gaps.csv", "gaps.csv has no value in column 'height' on line 3"),
        ("--pairs xy.csv --task yz.csv --test own.csv --out f.csv", "own.csv has a column 'mediation', as will the"),
        ("--pairs xy.csv --task yz.csv --out xy.csv", "xy.csv is read by this command"),
        ("--pairs xy.csv --task yz.csv --out f.csv --save f.csv", "f.csv is named for two results"),
        ("--pairs xy.csv --task yz.csv --plot", "--plot without a name puts figures beside --out"),
        ("--pairs xy.csv --task yz.csv --plot f.txt", "its name must end in one of .*png"),
        ("--pairs one.csv --task yz.csv", "one.csv has 1 row; at least two are needed"),
        ("--pairs xy.csv --task yz.csv --out nowhere/f.csv", "cannot write .*: there is no folder .*nowhere"),
    ],
)
def test_refusals(folder, capsys, arguments, message):
    kb.save(kb.Gaussian(), folder / "other.npz")
    (folder / "void.csv").write_text("")
    (folder / "head.csv").write_text("place,yield\n")
    (folder / "apart.csv").write_text("Place,yield\n1,2\n2,3\n")
    (folder / "other.csv").write_text("Height\n1\n2\n")
    (folder / "named.csv").write_text("name,place,height\na,1,2\nb,2,3\n")
    (folder / "gaps.csv").write_text("place,height\n1,2\n2,\n")
    (folder / "hollow.csv").write_text("place,height,depth\n1,2,\n2,3,\n")
    (folder / "word.csv").write_text("place,height\n1,2\n2,4\n3,tall\n")
    (folder / "comma.csv").write_text("place;height\n1,0;2,5\n2,0;3,5\n")
    (folder / "own.csv").write_text("height,mediation\n1,2\n2,4\n")
    (folder / "one.csv").write_text("place,height\n1,2\n")
    error = call(folder, capsys, *arguments.split(), code=2)
    assert re.search(message, error), error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--inputs a,a", "'a' is named twice"),
        ("--seed few", "a whole number from 0 was wanted, got 'few'"),
        ("--covariance none", "invalid choice: 'none'"),
        ("--mediator-noise -1", "same, learn or a number above zero was wanted, got '-1'"),
        ("--mediator-noise full", "same, learn or a number above zero was wanted, got 'full'"),
    ],
)
def test_arguments_that_cannot_be_read(capsys, arguments, message):
    assert message in unreadable("regress", capsys, *arguments.split())

"""`kernelbayes classify` on files, from labelled rows to probabilities, and what it says about files that are not right."""

import functools
import re

import numpy as np
import pytest
from sklearn.metrics import log_loss

import kernelbayes as kb
from command_line import called_in, unreadable
from kernelbayes._table import read_table, write_table

KINDS = np.array(["none", "some", "very much"])


def columns(n, seed):
    """Three kinds along a line of two inputs, one of which is a word in disguise; a number of the row and a remark."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    size = kind + 0.5 * rng.normal(size=n)
    return {
        "id": np.arange(n),
        "size": size,
        "noise": rng.normal(size=n),
        "shape": np.where(rng.uniform(size=n) < 0.9, kind == 2, kind == 0).astype(int).astype(str),
        "remark": [f"row {i}" for i in range(n)],
        "kind": KINDS[kind],
        "number": 10 * kind - 5,
    }


def with_words(table):
    table["shape"] = [{"0": "flat", "1": "round"}[cell] for cell in table["shape"]]
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table to learn from, a new one with some gaps, the same without classes, and one of two inputs."""
    path = tmp_path_factory.mktemp("tables")
    train, new = with_words(columns(90, 0)), with_words(columns(60, 1))
    train["size"][[3, 4]] = np.nan
    train["kind"][5] = ""
    new["size"][0] = np.nan
    new["shape"][1] = ""
    new["kind"][2] = "NA"
    write_table(path / "train.csv", train.items())
    write_table(path / "new.csv", new.items())
    write_table(path / "blind.csv", [(name, new[name]) for name in ("id", "size", "noise", "shape")])
    write_table(path / "pair.csv", [(name, new[name]) for name in ("size", "noise")])
    return path


call = functools.partial(called_in, "classify")


LEARN = ("--train", "train.csv", "--target", "kind", "--ignore", "number", "--learn", "median")


def test_from_labelled_rows_to_probabilities(folder, capsys):
    learn = ("--train", "train.csv", "--target", "kind", "--ignore", "number", "--save", "bound.npz")
    printed = call(folder, capsys, *learn, "--test", "new.csv", "--out", "p.csv", "--plot", "p.png")
    assert "train.csv: 90 rows; 2 rows with a gap left out; 1 row without a class left out\n" in printed
    assert "columns kind from size, noise, shape (2 words)\n" in printed
    assert "note    gaps are in size (2); --ignore a column to keep its rows\n" in printed
    assert "note    id counts the rows, and is left out; name it in --inputs to keep it\n" in printed
    assert "note    remark holds 90 different words, and is left out; name it in --inputs to keep it\n" in printed
    assert re.search(r"classes none \(\d+\), some \(\d+\), very much \(\d+\)\n", printed)
    assert "new.csv: 60 rows; 2 rows with a gap get no prediction\n" in printed
    assert re.search(r"inputs  most relevant: s(ize|hape=\w+) ", printed)
    assert "figure  how reliable the probabilities are\n" in printed
    assert (folder / "p.png").stat().st_size > 20_000
    found, given = read_table(folder / "p.csv"), read_table(folder / "new.csv")
    own = ("predicted", "p_none", "p_some", "p_very much", "entropy")
    assert found.names == (*given.names, *own)
    assert all(found.text(name) == given.text(name) for name in given.names)
    P = found.numbers(own[1:4], gaps="allow")
    assert np.isnan(P[:2]).all()
    assert [found.text(name)[1] for name in own] == [""] * 5
    np.testing.assert_allclose(P[2:].sum(1), 1.0)
    assert P[2:].min() > 0
    assert found.text("predicted")[2:] == list(KINDS[P[2:].argmax(1)])
    np.testing.assert_allclose(found.numbers(["entropy"], gaps="allow")[2:, 0], -(P * np.log(P)).sum(1)[2:])
    # rows 0 and 1 have no prediction, row 2 no truth
    truth = np.searchsorted(KINDS, given.text("kind")[3:])
    right = (P[3:].argmax(1) == truth).mean()
    assert right > 0.7
    assert f"accuracy {right:.1%}, log loss {log_loss(truth, P[3:]):.3g}, expected calibration error " in printed
    assert "(57 rows whose kind is known)\n" in printed
    model = kb.load(folder / "bound.npz")
    assert (model.learn, list(model.feature_names_in_)) == ("bound", ["size", "noise", "shape=flat", "shape=round"])


def test_saved_and_loaded_classifiers_predict_the_same(folder, capsys):
    printed = call(folder, capsys, *LEARN, "--save", "model.npz")
    assert printed.endswith("model.npz\n")
    printed = call(
        folder, capsys, "--load", "model.npz", "--test", "blind.csv", "--out", "loaded.csv", "--plot", "r.png"
    )
    assert "columns kind from size, noise, shape (2 words)\n" in printed
    assert "score" not in printed
    assert "figure  relevance of the inputs\n" in printed
    call(folder, capsys, *LEARN, "--test", "blind.csv", "--out", "direct.csv")
    loaded, direct = (read_table(folder / name) for name in ("loaded.csv", "direct.csv"))
    assert loaded.names == direct.names
    assert loaded.text("predicted") == direct.text("predicted")
    np.testing.assert_allclose(
        loaded.numbers(["p_none"], gaps="allow"), direct.numbers(["p_none"], gaps="allow"), atol=1e-9
    )


def test_what_is_predicted_is_what_the_library_predicts(folder, capsys):
    arguments = ("--inputs", "noise,size", "--seed", "3", "--learn", "cv", "--class-weight", "balanced")
    learn = ("--train", "train.csv", "--target", "kind", *arguments)
    printed = call(folder, capsys, *learn, "--test", "pair.csv", "--out", "pair-p.csv", "--plot", "map.png")
    assert "columns kind from noise, size\n" in printed
    assert "note    with balanced weights, probabilities are those of a world" in printed
    assert "figure  classes over the two inputs" in printed
    assert (folder / "map.png").stat().st_size > 20_000
    train, new = read_table(folder / "train.csv"), read_table(folder / "pair.csv")
    X, y = train.numbers(["noise", "size"], gaps="allow"), np.array(train.text("kind"))
    whole = ~np.isnan(X).any(1) & (y != "")
    model = kb.ConditionalEmbeddingClassifier(learn="cv", class_weight="balanced", random_state=3)
    P = model.fit(X[whole], y[whole]).predict_proba(new.numbers(["noise", "size"], gaps="allow")[1:])
    found = read_table(folder / "pair-p.csv").numbers(["p_none", "p_some", "p_very much"], gaps="allow")
    np.testing.assert_allclose(found[1:], P, atol=1e-9)


def test_classes_that_are_numbers(folder, capsys):
    learn = ("--train", "train.csv", "--target", "number", "--ignore", "kind", "--learn", "median")
    new = read_table(folder / "new.csv")
    cells = [f"{cell}.0" for cell in new.text("number")]  # as another program writes them
    write_table(
        folder / "floats.csv", [*((name, new.text(name)) for name in ("size", "noise", "shape")), ("number", cells)]
    )
    printed = call(folder, capsys, *learn, "--test", "floats.csv", "--out", "n.csv")
    assert re.search(r"classes -5 \(\d+\), 5 \(\d+\), 15 \(\d+\)\n", printed)  # in the order of numbers
    assert "(58 rows whose number is known)" in printed
    found = read_table(folder / "n.csv")
    assert found.names[-5:] == ("predicted", "p_-5", "p_5", "p_15", "entropy")
    assert set(found.text("predicted")) == {"", "-5", "5", "15"}


def test_new_words_count_as_none(folder, capsys):
    new = with_words(columns(20, 2))
    new["shape"][:3] = ["cubic", "cubic", "flat"]
    write_table(folder / "cubic.csv", [(name, new[name]) for name in ("size", "noise", "shape")])
    printed = call(folder, capsys, *LEARN, "--test", "cubic.csv", "--out", "cubic-p.csv")
    assert "note    shape has the new word 'cubic' in " in printed
    assert "cubic.csv; 2 rows count as none of those learned from\n" in printed
    assert "" not in read_table(folder / "cubic-p.csv").text("predicted")


def test_columns_that_are_left_out(folder, capsys):
    train, new = columns(60, 0), columns(20, 1)
    train["sparse"] = ["1.5"] * 20 + [""] * 40
    new["sparse"] = ["1.5"] * 20
    train["constant"], new["constant"] = ["same"] * 60, ["same"] * 20
    train["hollow"], new["hollow"] = np.arange(60) % 7, [""] * 20
    write_table(folder / "odd.csv", train.items())
    write_table(folder / "odd-new.csv", [(name, cells) for name, cells in new.items() if name != "number"])
    learn = ("--train", "odd.csv", "--target", "kind", "--learn", "median")
    printed = call(folder, capsys, *learn, "--test", "odd-new.csv")
    assert "columns kind from size, noise, shape\n" in printed  # words that are numbers are numbers
    for note in ("sparse is empty in 40 of 60 rows of ", "constant holds one word only", "hollow is empty in "):
        assert f"note    {note}" in printed
    assert re.search(r"note    number is not in \S+odd-new.csv, and is left out\n", printed)
    assert printed.endswith("nothing written: --out and --plot name files\n")


def test_wide_tables_are_not_copied(folder, capsys):
    rng = np.random.default_rng(0)
    table = {"name": [f"n{i}" for i in range(30)], **{f"x{j}": rng.normal(size=30) for j in range(60)}}
    table["kind"] = np.where(table["x0"] > 0, "yes", "no")
    write_table(folder / "wide.csv", table.items())
    learn = ("--train", "wide.csv", "--target", "kind", "--learn", "median", "--test", "wide.csv")
    printed = call(folder, capsys, *learn, "--out", "wide-p.csv")
    assert "x19 and 40 more\n" in printed
    assert "note    this is the table that was learned from" in printed
    assert read_table(folder / "wide-p.csv").names == ("name", "kind", "predicted", "p_no", "p_yes", "entropy")


# ------------------------------------------------------------------------------------- what is refused, in one line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give either --train, a table to learn from, or --load"),
        ("--train train.csv --load m.npz --test new.csv", "give either --train"),
        ("--train train.csv --test new.csv", "--train needs --target"),
        ("--train train.csv --target kind", "give --test, a table to predict, or --save, to learn only"),
        ("--load m.npz", "give --test, a table to predict"),
        ("--load m.npz --target kind --test new.csv", "--target was settled when the classifier of --load was learned"),
        ("--train train.csv --target kind --save m.npz --out p.csv", "--out needs --test"),
        ("--train missing.csv --target kind --test new.csv", "there is no file .*missing.csv"),
        ("--train train.csv --target kind --test missing.csv", "there is no file .*missing.csv"),
        ("--load missing.npz --test new.csv", "there is no file .*missing.npz"),
        ("--load new.csv --test new.csv", "not a file saved by kernelbayes"),
        ("--load other.npz --test new.csv", "other.npz holds no classifier"),
        ("--train train.csv --target knd --test new.csv", "has no column 'knd'; did you mean 'kind'"),
        ("--train train.csv --target kind --inputs size,c --test new.csv", "train.csv has no column 'c'"),
        ("--train train.csv --target kind --inputs remark --test blind.csv", "blind.csv has no column 'remark'"),
        ("--train train.csv --target kind --inputs kind --test new.csv", "'kind' is named in --target and in --inputs"),
        ("--train train.csv --target kind --ignore kind --test new.csv", "'kind' is named in --target and in --ignore"),
        (
            "--train train.csv --target kind --inputs size --ignore size --test new.csv",
            "named in --inputs and in --ignore",
        ),
        (
            "--train train.csv --target size --test new.csv",
            r"(\d+) different values in \1 rows: these are no classes; if it is a quantity, this is no",
        ),
        (
            "--train train.csv --target remark --test new.csv",
            r"(\d+) different values in \1 rows: these are no classes$",
        ),
        ("--train odd.csv --target one --test new.csv", "column 'one' of .* holds one class only, same"),
        ("--train odd.csv --target void --test new.csv", "no row without a gap"),
        (
            "--train train.csv --target kind --test own.csv --out p.csv",
            "own.csv has a column 'p_some', as will the predictions",
        ),
        ("--train odd.csv --target kind --inputs names --test odd.csv", "holds 600 different words: too many"),
        ("--train train.csv --target kind --test only.csv", "nothing to tell classes from: id is not in"),
        ("--train train.csv --target kind --test new.csv --out new.csv", "new.csv is read by this command"),
        ("--train train.csv --target kind --test new.csv --save train.csv", "train.csv is read by this command"),
        ("--train train.csv --target kind --test new.csv --out a.csv --save a.csv", "a.csv is named for two results"),
        ("--train train.csv --target kind --test new.csv --plot plot.txt", "its name must end in one of .*png"),
        (
            "--train train.csv --target kind --inputs size --test text.csv",
            "line 2, column 'size': 'large' is not a number",
        ),
    ],
)
def test_refusals(folder, capsys, arguments, message):
    kb.save(kb.Gaussian(), folder / "other.npz")
    odd = {"x": np.arange(600) % 9, "one": ["same"] * 600, "void": [""] * 600, "kind": np.arange(600) % 2}
    write_table(folder / "odd.csv", [*odd.items(), ("names", [f"n{i}" for i in range(600)])])
    new = with_words(columns(10, 1))
    write_table(folder / "own.csv", [*new.items(), ("p_some", np.ones(10))])
    write_table(folder / "only.csv", [("kind", new["kind"])])
    write_table(folder / "text.csv", [("size", ["large"] * 10)])
    error = call(folder, capsys, *arguments.split(), code=2)
    assert re.search(message, error), error


def test_a_class_that_was_not_learned_is_told_and_not_counted(folder, capsys):
    new = with_words(columns(10, 1))
    new["kind"] = [*new["kind"][:2], "maybe", *new["kind"][3:]]
    write_table(folder / "unseen.csv", new.items())
    printed = call(
        folder, capsys, *["--train", "train.csv", "--target", "kind", "--test", "unseen.csv", "--out", "p.csv"]
    )
    assert "line 4: the class 'maybe' of column 'kind' is none of those learned from; 1 such row counts as" in printed
    assert read_table(folder / "p.csv").text("predicted").count("") == 0
    write_table(folder / "unseen.csv", {**new, "kind": ["maybe"] * 10}.items())
    error = call(folder, capsys, *["--train", "train.csv", "--target", "kind", "--test", "unseen.csv"], code=2)
    assert "none of those learned from: none, some, very much" in error


def test_numbers_of_rows_are_left_out_of_a_shuffled_table_too(folder, capsys):
    rng = np.random.default_rng(0)
    numbers = rng.permutation(300)[:200]
    table = {"id": numbers, "key": 7 * numbers, "u": rng.normal(size=200), "kind": np.where(numbers < 150, "a", "b")}
    write_table(folder / "shuffled.csv", table.items())
    arguments = ["--train", "shuffled.csv", "--target", "kind", "--test", "shuffled.csv", "--learn", "median"]
    printed = call(folder, capsys, *arguments)
    assert "kind from key, u" in printed
    assert "id counts the rows" in printed


def test_a_rank_is_an_input(folder, capsys):
    rng = np.random.default_rng(0)
    rank = rng.permutation(100)
    table = {"rank": rank, "noise": rng.normal(size=100), "kind": np.where(rank > 50, "high", "low")}
    write_table(folder / "ranked.csv", table.items())
    arguments = ["--train", "ranked.csv", "--target", "kind", "--test", "ranked.csv", "--learn", "median"]
    assert "kind from rank, noise" in call(folder, capsys, *arguments)


def test_what_looks_like_a_quantity_is_mentioned(folder, capsys):
    ages = np.random.default_rng(0).integers(20, 60, 200)
    write_table(folder / "ages.csv", [("x", ages + 0.5), ("age", ages)])
    printed = call(folder, capsys, "--train", "ages.csv", "--target", "age", "--test", "ages.csv", "--learn", "median")
    assert re.search(r"note    age has \d\d different values in 200 rows; if it is a quantity", printed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--inputs a,a", "'a' is named twice"),
        ("--seed few", "a whole number from 0 was wanted, got 'few'"),
        ("--learn nonsense", "invalid choice: 'nonsense'"),
        ("--class-weight equal", "invalid choice: 'equal'"),
    ],
)
def test_arguments_that_cannot_be_read(capsys, arguments, message):
    assert message in unreadable("classify", capsys, *arguments.split())

"""`kernelbayes filter` on files, from a log to a track, and what it says about files and arguments that are not right."""

import functools
import re

import numpy as np
import pytest

import kernelbayes as kb
from command_line import called_in, unreadable
from kernelbayes._table import read_table, write_table


def turning(steps, start=0.0):
    """A point that goes round a circle, seen through noise."""
    rng = np.random.default_rng([steps, int(10 * start)])
    angle = start + 0.3 * np.arange(steps) + 0.05 * rng.normal(size=steps)
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return place, place + 0.2 * rng.normal(size=place.shape)


def columns(steps, start=0.0):
    place, seen = turning(steps, start)
    return {
        "time": np.arange(steps) * 0.5,
        "x": place[:, 0],
        "y": place[:, 1],
        "a": seen[:, 0],
        "b": seen[:, 1],
        "note": ["fine"] * steps,
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log to learn from; a new one with the true states and gaps in the readings; the same without the states."""
    path = tmp_path_factory.mktemp("tables")
    write_table(path / "log.csv", columns(120).items())
    new = columns(40, 1.0)
    new["a"][10:15] = new["b"][10:15] = np.nan
    new["b"][20] = np.nan
    write_table(path / "new.csv", new.items())
    write_table(path / "blind.csv", [(name, values) for name, values in new.items() if name not in "xy"])
    return path


call = functools.partial(called_in, "filter")


LEARN = ("--train", "log.csv", "--states", "x,y", "--tune", "3")


def test_from_a_log_to_a_track(folder, capsys):
    printed = call(folder, capsys, *LEARN, "--test", "new.csv", "--out", "track.csv", "--plot", "track.png")
    assert "log.csv: 120 rows\n" in printed
    assert "states x, y; from a, b; time time\n" in printed
    assert "new.csv: 40 rows; 6 rows without an observation (1 row in part)\n" in printed
    errors = re.search(r"error   x ([\d.]+), y ([\d.]+) .* the 90% intervals hold (\d+)%, (\d+)% of", printed).groups()
    assert (folder / "track.png").stat().st_size > 20_000
    track, truth = read_table(folder / "track.csv"), read_table(folder / "new.csv")
    assert track.names[0] == "time"
    assert track.text("time") == truth.text("time")
    assert track.numbers(["observed"]).sum() == 34
    error = track.numbers(["x", "y"]) - truth.numbers(["x", "y"])
    np.testing.assert_allclose([float(value) for value in errors[:2]], np.sqrt((error**2).mean(0)), rtol=1e-3)
    seen = ~np.isnan(truth.numbers(["a", "b"], gaps="allow")).any(1)
    readings = truth.numbers(["a", "b"], gaps="allow")[seen] - truth.numbers(["x", "y"])[seen]
    assert (error[seen] ** 2).sum() < 0.7 * (readings**2).sum()  # better than the readings themselves
    low, high = track.numbers(["x_lower", "y_lower"]), track.numbers(["x_upper", "y_upper"])
    inside = (low <= truth.numbers(["x", "y"])) & (truth.numbers(["x", "y"]) <= high)
    assert [f"{value:.0%}" for value in inside.mean(0)] == [value + "%" for value in errors[2:]]


def test_saved_and_loaded_filters_find_the_same(folder, capsys):
    printed = call(folder, capsys, *LEARN, "--save", "model.npz")
    assert "written" in printed
    assert kb.load(folder / "model.npz").observation_names_ == ("a", "b")
    call(folder, capsys, "--load", "model.npz", "--test", "blind.csv", "--out", "loaded.csv")
    call(folder, capsys, *LEARN, "--test", "blind.csv", "--out", "direct.csv")
    loaded, direct = (read_table(folder / name) for name in ("loaded.csv", "direct.csv"))
    assert loaded.names == direct.names
    np.testing.assert_allclose(loaded.numbers(["x", "y_std"]), direct.numbers(["x", "y_std"]), atol=1e-6)


def test_settings_reach_the_filter(folder, capsys):
    given = ("--rule", "kbr", "--seed", "3", "--level", "0.5", "--time", "time", "--observations", "b,a")
    printed = call(folder, capsys, *LEARN, *given, "--test", "new.csv", "--save", "kbr.npz", "--out", "kbr.csv")
    assert "from b, a; time time" in printed
    assert "the 50% intervals hold" in printed
    model = kb.load(folder / "kbr.npz")
    assert (model.rule, model.random_state, model.observation_names_) == ("kbr", 3, ("b", "a"))


def test_smoothing_is_another_track(folder, capsys):
    for option, name in ((), "filtered.csv"), (("--smooth",), "smoothed.csv"):
        call(folder, capsys, *LEARN, *option, "--test", "new.csv", "--out", name)
    truth = read_table(folder / "new.csv").numbers(["x", "y"])
    filtered, smoothed = (read_table(folder / name).numbers(["x", "y"]) for name in ("filtered.csv", "smoothed.csv"))
    assert np.abs(filtered - smoothed).max() > 1e-3
    assert ((smoothed - truth) ** 2).sum() < ((filtered - truth) ** 2).sum()


def sequences(folder, name, starts, steps=40):
    """Several turns in one table, their rows mixed but in order within each."""
    parts = {word: columns(steps, start) for word, start in starts.items()}
    order = np.repeat(np.arange(steps), len(parts))
    rows = {
        key: [list(part.values())[j][i] for i, part in zip(order, list(parts.values()) * steps, strict=True)]
        for j, key in enumerate(columns(1))
    }
    write_table(folder / name, [("run", [*parts] * steps), *rows.items()])


def test_sequences_are_kept_apart(folder, capsys):
    sequences(folder, "runs.csv", {"first": 0.0, "second": 2.0, "third": 4.0})
    sequences(folder, "more.csv", {"north/south": 1.0, "other": 3.0}, steps=30)
    learn = ("--train", "runs.csv", "--states", "x,y", "--sequence", "run", "--tune", "2")
    printed = call(folder, capsys, *learn, "--test", "more.csv", "--out", "both.csv", "--plot", "both.png")
    assert "runs.csv: 120 rows in 3 sequences\n" in printed
    assert "more.csv: 60 rows in 2 sequences\n" in printed
    assert "time time; sequences by run\n" in printed
    assert (folder / "both-north_south.png").exists()
    assert (folder / "both-other.png").exists()
    found, given = read_table(folder / "both.csv"), read_table(folder / "more.csv")
    assert found.names[:2] == ("run", "time")
    assert found.text("run") == given.text("run")
    # one sequence alone gives the same as that one among several
    alone = [i for i, run in enumerate(given.text("run")) if run == "other"]
    write_table(folder / "one.csv", [(name, [given.text(name)[i] for i in alone]) for name in given.names])
    call(folder, capsys, *learn, "--test", "one.csv", "--out", "alone.csv")
    np.testing.assert_allclose(
        read_table(folder / "alone.csv").numbers(["x", "y"]), found.numbers(["x", "y"])[alone], atol=1e-6
    )


def test_rows_with_gaps_break_the_training_sequence(folder, capsys):
    log = columns(60)
    log["x"][20] = np.nan
    log["b"][[40, 41]] = np.nan
    write_table(folder / "broken.csv", log.items())
    learn = ("--train", "broken.csv", "--states", "x,y", "--tune", "2")
    printed = call(folder, capsys, *learn, "--test", "new.csv", "--save", "broken.npz")
    assert "60 rows; 3 rows with a gap left out\n" in printed
    model = kb.load(folder / "broken.npz")
    steps = np.linalg.norm(model.points_[model.after_] - model.points_[model.before_], axis=1)
    assert len(model.points_) == 57
    assert len(steps) == 19 + 18 + 17  # of stretches of 20, 19 and 18 rows
    seen = ~np.isnan(log["x"]) & ~np.isnan(log["b"])
    lengths = np.hypot(np.diff(log["x"]), np.diff(log["y"]))[seen[:-1] & seen[1:]]
    np.testing.assert_allclose(steps, lengths, rtol=1e-6)  # two steps at once are longer
    printed = call(folder, capsys, *learn, "--test", "new.csv")
    assert printed.endswith("nothing written: --out and --plot name files\n")


def test_columns_of_one_table_only_are_told(folder, capsys):
    log, new = columns(60), columns(30)
    write_table(folder / "log.csv", log.items())
    write_table(folder / "misspelt.csv", {("bee" if name == "b" else name): v for name, v in new.items()}.items())
    printed = call(folder, capsys, "--train", "log.csv", "--states", "x,y", "--tune", "2", "--test", "misspelt.csv")
    assert re.search(r"note    b is in \S*log.csv only, and is not used\n", printed)
    assert re.search(r"note    bee is in \S*misspelt.csv only, and is not used\n", printed)


def test_controls(folder, capsys):
    """A push decides which way the point goes; who sees the push knows where it is when readings fail."""
    paths, rng = [], np.random.default_rng(0)
    for name, steps in (("pushed.csv", 150), ("pushed-new.csv", 60)):
        push, x = rng.choice([-0.5, 0.5], steps), np.zeros(steps)
        for t in range(1, steps):
            x[t] = 0.9 * x[t - 1] + 0.6 * push[t] + 0.02 * rng.normal()
        seen = x + 0.1 * rng.normal(size=steps)
        if "new" in name:
            gap = np.arange(steps) // 10 % 2 == 1
            seen[gap] = np.nan
        write_table(folder / name, [("t", np.arange(steps)), ("x", x), ("push", push), ("seen", seen)])
        paths.append(name)
    learn = ("--train", paths[0], "--states", "x", "--observations", "seen", "--test", paths[1], "--tune", "4")
    printed = call(folder, capsys, *learn, "--controls", "push", "--out", "with.csv")
    assert "from seen; controls push\n" in printed
    call(folder, capsys, *learn, "--out", "without.csv")
    truth = read_table(folder / paths[1]).numbers(["x"])[gap]
    informed, blind = (read_table(folder / f"{name}.csv").numbers(["x"])[gap] for name in ("with", "without"))
    assert ((informed - truth) ** 2).sum() < 0.5 * ((blind - truth) ** 2).sum()
    assert read_table(folder / "with.csv").names[0] == "step"


def test_notes_about_times(folder, capsys):
    log = columns(60)
    log["clock"] = np.arange(60) * 2.0
    log["time"][30:] += 5.0
    write_table(folder / "clock.csv", log.items())
    new = columns(20)
    new["clock"] = np.arange(20) * 2.0
    write_table(folder / "clock-new.csv", new.items())
    learn = ("--train", "clock.csv", "--states", "x,y", "--test", "clock-new.csv", "--tune", "1")
    printed = call(folder, capsys, *learn)
    assert (
        "note    clock rises from row to row and is used as an observation; --time clock if it is a time\n" in printed
    )
    assert "note    steps of time range from 0.5 to 5.5 and are taken as equal" in printed
    assert printed.count("steps of time") == 1  # of the log, not of the new table
    printed = call(folder, capsys, *learn, "--time", "clock", "--observations", "a,b")
    assert "note" not in printed
    assert "from a, b; time clock" in printed


def test_the_training_table_is_no_test(folder, capsys):
    printed = call(folder, capsys, *LEARN, "--test", "log.csv")
    assert "note    this is the table that was learned from" in printed


def test_dates_are_copied_as_they_are_and_looked_at(folder, capsys):
    new = columns(20)
    days = [*range(1, 11), *range(13, 23)]
    new["time"] = [f"2026-11-{day:02d} 08:00" for day in days]
    write_table(folder / "dates.csv", new.items())
    printed = call(folder, capsys, *LEARN, "--test", "dates.csv", "--out", "dated.csv", "--plot", "dated.png")
    assert read_table(folder / "dated.csv").text("time") == new["time"]
    assert "note    steps of time range from 8.64e+04 to 2.592e+05 seconds" in printed
    new["time"] = new["time"][::-1]
    write_table(folder / "dates.csv", new.items())
    printed = call(folder, capsys, *LEARN, "--test", "dates.csv")
    assert "beware  time does not rise from row to row" in printed


# ------------------------------------------------------------------------------------- what is refused, in one line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "give either --train, a table to learn from, or --load"),
        ("--train log.csv --load model.npz --test new.csv", "give either --train"),
        ("--train log.csv --test new.csv", "--train needs --states"),
        ("--train log.csv --states x,y", "give --test, a table to filter, or --save, to learn only"),
        ("--load model.npz", "give --test, a table to filter"),
        ("--load model.npz --states x --test new.csv", "--states was settled when the filter of --load was learned"),
        ("--train log.csv --states x --save m.npz --out t.csv", "--out needs --test"),
        ("--train missing.csv --states x --test new.csv", "there is no file .*missing.csv"),
        ("--train log.csv --states x --test missing.csv", "there is no file .*missing.csv"),
        ("--load missing.npz --test new.csv", "there is no file .*missing.npz"),
        ("--load new.csv --test new.csv", "not a file saved by kernelbayes"),
        ("--load kernel.npz --test new.csv", "kernel.npz holds no filter"),
        ("--train log.csv --states x,z --test new.csv", r"log.csv has no column 'z' \(it has time, x, y, a, b, note\)"),
        ("--train log.csv --states x,note --test new.csv", "line 2, column 'note': 'fine' is not a number"),
        ("--train log.csv --states x --controls x --test new.csv", "column 'x' is named in --states and in --controls"),
        ("--train log.csv --states x,y --observations a,c --test new.csv", "has no column 'c'"),
        (
            "--train log.csv --states x,y,a,b --test new.csv",
            "nothing to find the states from: both tables have no other",
        ),
        ("--train log.csv --states x,y --sequence run --test new.csv", "log.csv has no column 'run'"),
        ("--train log.csv --states x,y --time clock --test new.csv", "log.csv has no column 'clock'"),
        ("--train log.csv --states x,y --controls a --test new.csv", "no value in column 'a' on line 12"),
        ("--train log.csv --states x,y --test new.csv --out new.csv", "new.csv is read by this command"),
        ("--train log.csv --states x,y --test new.csv --out t.csv --save t.csv", "t.csv is named for two results"),
        ("--train log.csv --states x,y --test new.csv --plot plot.txt", "its name must end in one of .*png"),
        ("--train log.csv --states x,y --test new.csv --out new.csv/track.csv", "cannot write"),
        ("--train short.csv --states x,y --test new.csv", "at least eight rows"),
        ("--train text.csv --states x,y --test new.csv", "text.csv, line 5, column 'a': 'oops' is not a number"),
        ("--train log.csv --states x,y --test text.csv", "text.csv, line 5, column 'a': 'oops' is not a number"),
        ("--train ragged.csv --states x,y --test new.csv", "ragged.csv, line 3: 2 values where the header has 6"),
    ],
)
def test_refusals(folder, capsys, arguments, message):
    kb.save(kb.Gaussian(), folder / "kernel.npz")
    short = columns(3)
    short["x"][1] = np.nan
    write_table(folder / "short.csv", short.items())
    spoiled = columns(30)
    spoiled["a"] = [*spoiled["a"][:3], "oops", *spoiled["a"][4:]]
    write_table(folder / "text.csv", spoiled.items())
    (folder / "ragged.csv").write_text("time,x,y,a,b,note\n0,1,2,3,4,fine\n1,2\n")
    error = call(folder, capsys, *arguments.split(), code=2)
    assert re.search(message, error), error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--level 1.5", "a number between 0 and 1 was wanted, got '1.5'"),
        ("--states x,x", "'x' is named twice"),
        ("--states ,", "names of columns, separated by commas, were wanted"),
        ("--tune few", "a whole number from 0 was wanted, got 'few'"),
        ("--rule nonsense", "invalid choice: 'nonsense'"),
    ],
)
def test_arguments_that_cannot_be_read(capsys, arguments, message):
    assert message in unreadable("filter", capsys, *arguments.split())

"""Reading and writing text tables: what loggers and spreadsheets write, and what is wrong with a file."""

import numpy as np
import pytest

from kernelbayes._table import read_table, write_table


def table(tmp_path, content, encoding="utf-8"):
    path = tmp_path / "log.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return read_table(path)


@pytest.mark.parametrize(
    "content",
    [
        "time,x,note\n0,1.5,a\n1,-2e3,b\n",
        "time;x;note\n0;1.5;a\n1;-2e3;b\n",
        "time\tx\tnote\n0\t1.5\ta\n1\t-2e3\tb\n",
        "time,x,note\r\n0,1.5,a\r\n1,-2e3,b\r\n",
        "\ufefftime,x,note\n0,1.5,a\n1,-2e3,b",
        ' time , x,"note"\n0 , 1.5 ,a\n\n1,-2e3, "b"\n\n\n',
        ",time,x,note,\n7,0,1.5,a,\n8,1,-2e3,b,\n",
    ],
    ids=["comma", "semicolon", "tab", "carriage returns", "mark", "space and blank lines", "unnamed columns"],
)
def test_dialects(tmp_path, content):
    found = table(tmp_path, content)
    assert found.names == ("time", "x", "note")
    np.testing.assert_array_equal(found.numbers(["x", "time"]), [[1.5, 0.0], [-2000.0, 1.0]])
    assert found.text("note") == ["a", "b"]
    assert [found.is_numeric(name) for name in found.names] == [True, True, False]


def test_gaps_are_nan_where_they_are_allowed(tmp_path):
    found = table(tmp_path, "a,b\n1,\n2,NaN\n3,n/a\n4,5\n")
    np.testing.assert_array_equal(found.numbers(["b"], gaps="allow")[:, 0], [np.nan, np.nan, np.nan, 5.0])
    assert found.is_numeric("b")
    with pytest.raises(ValueError, match=r"log\.csv has no value in column 'b' on line 2$"):
        found.numbers(["a", "b"])
    empty = table(tmp_path, "a,b\n1,\n2,\n")
    assert not empty.is_numeric("b")
    assert empty.is_empty("b")
    assert not empty.is_empty("a")


def test_a_blank_line_in_a_single_column_is_a_gap(tmp_path):
    found = table(tmp_path, 'x\n1\n\n3\n""\n\n\n')
    np.testing.assert_array_equal(found.numbers(["x"], gaps="allow")[:, 0], [1.0, np.nan, 3.0, np.nan])


def test_lines_are_counted_as_an_editor_counts_them(tmp_path):
    found = table(tmp_path, 'a,b\n"two\nlines",1\n\nz,oops\n')
    assert found.lines.tolist() == [3, 5]
    with pytest.raises(ValueError, match="line 5, column 'b': 'oops' is not a number"):
        found.numbers(["b"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n\n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("1,2\n3,4\n", "has no header: its first line holds numbers"),
        ("a,b,a\n1,2,3\n", "has two columns called 'a'"),
        ("a,b\n1,2\n3\n", r"line 3: 1 value where the header has 2"),
        ("a,b\n1,2\n3,4,5\n", r"line 3: 3 values where the header has 2"),
        (b"a,b\n1,\xff\n", "is not text in UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "is not text in UTF-8"),
        (b"a,b\n1,\x00\n", "NUL bytes"),
    ],
)
def test_files_that_are_no_tables(tmp_path, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        table(tmp_path, content)
    assert str(tmp_path / "log.csv") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("warm", "line 3, column 'b': 'warm' is not a number"),
        ("1_000", "'1_000' is not a number"),
        ("inf", "'inf' is not a finite number"),
        ("1e999", "'1e999' is not a finite number"),
        ("1,5", "'1,5' has a decimal comma; write a point"),
    ],
)
def test_cells_that_are_no_numbers(tmp_path, cell, message):
    found = table(tmp_path, f"a;b\n1;2\n3;{cell}\n5;6\n")
    assert found.is_numeric("b")  # it is meant to be, so that the mistake is not overlooked
    with pytest.raises(ValueError, match=message):
        found.numbers(["a", "b"], gaps="allow")


def test_missing_columns_suggest_others(tmp_path):
    found = table(tmp_path, "time,velocity,X\n1,2,3\n")
    with pytest.raises(
        ValueError, match=r"no column 'velocty'; did you mean 'velocity'\? \(it has time, velocity, X\)"
    ):
        found.numbers(["time", "velocty"])
    with pytest.raises(ValueError, match="did you mean 'X'"):
        found.text("x")
    with pytest.raises(ValueError, match=r"no column 'pressure' \(it has time, velocity, X\)"):
        found.require(["pressure"])
    many = table(tmp_path, ",".join(f"c{i}" for i in range(30)) + "\n" + ",".join("1" * 30) + "\n")
    with pytest.raises(ValueError, match=r"c19 and 10 more\)"):
        many.require(["pressure"])


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ValueError, match=r"there is no file .*missing\.csv"):
        read_table(tmp_path / "missing.csv")
    with pytest.raises(ValueError, match=r"cannot read .*: Is a directory"):
        read_table(tmp_path)


def test_what_is_written_is_read_back(tmp_path):
    x = np.array([0.1, np.nan, 1e-300, -1 / 3])
    write_table(
        tmp_path / "out.csv", [("x", x), ("seen", x > 0), ("n", np.arange(4)), ("note", ["a,b", 'say "c"', "", "d"])]
    )
    found = read_table(tmp_path / "out.csv")
    np.testing.assert_array_equal(found.numbers(["x"], gaps="allow")[:, 0], x)
    np.testing.assert_array_equal(found.numbers(["seen", "n"]), [[1, 0], [0, 1], [1, 2], [0, 3]])
    assert found.text("note") == ["a,b", 'say "c"', "", "d"]


def test_long_cells_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"log\.csv, line 1: a cell has more than 131,072 characters"):
        table(tmp_path, "x" * 200_000 + ",b\n1,2\n")
    with pytest.raises(ValueError, match=r"log\.csv, line \d+: a cell has more than 131,072 characters"):
        table(tmp_path, 'a,b\n1,"' + "x\n" * 100_000)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_many_columns(tmp_path, delimiter):
    """A header longer than a cell may be, and names that are compared with each other."""
    names = [f"column_{j}" for j in range(30_000)]
    found = table(tmp_path, f"{delimiter.join(names)}\n{delimiter.join(['1'] * len(names))}\n")
    assert found.names == tuple(names)
    with pytest.raises(ValueError, match="has two columns called 'column_0'"):
        table(tmp_path, f"{delimiter.join([*names, names[0]])}\n")


def test_text_is_no_formula_in_a_spreadsheet_and_comes_back(tmp_path):
    cells = ["=HYPERLINK(1)", "+1+1", "-1+1", "@SUM(A1)", "'=1+1", "-", "+", "-1.5", "+2e3", "it's", "'quoted'", "a=b"]
    path = tmp_path / "out.csv"
    write_table(path, [("=name", cells), ("x", np.arange(-6.0, 6.0)), ("n", np.arange(-6, 6))])
    lines = [line.split(",") for line in path.read_text().splitlines()]
    assert lines[0] == ["'=name", "x", "n"]
    for line in lines[1:]:
        assert line[0] in ("-", "+", "-1.5", "+2e3") or line[0][0] not in "=+-@\t\r"
    assert lines[1][1:] == ["-6.0", "-6"]
    again = read_table(path)
    assert again.names == ("=name", "x", "n")
    assert again.text("=name") == cells
    write_table(path, [("x", ["\t=1", "\r=1"])])
    assert path.read_bytes().startswith(b"x\n'\t=1\n")

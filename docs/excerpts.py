"""Tables that pages and the README show, cut out of records of full runs: none of their numbers is typed by hand.

The records are `docs/results/<name>.json`, of experiments, and `benchmarks/results.json`, of comparisons with peers. A build
of the documentation writes one fragment for each entry of `TABLES`. The README has a table of its own, between two marks;
`python docs/excerpts.py` renews it, and a test says if it is not what the records hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from results import RECORDS, _escaped, _restored, _row, _text

README = RECORDS.parent.parent / "README.md"
BENCHMARKS = RECORDS.parent.parent / "benchmarks" / "results.json"
_MARKS = "<!-- measured -->\n", "<!-- end -->\n"


# ------------------------------------------------------------------------------------------------- experiments


def found(name: str, title: str) -> list[dict[str, Any]]:
    """The rows of one table of a record, by the beginning of its title."""
    record = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    (table,) = (t for t in record["tables"] if t["title"].startswith(title))
    return [{column: _restored(value) for column, value in row.items()} for row in table["rows"]]


def excerpt(name: str, title: str, columns: Sequence[str], rows: Sequence[str] | None = None) -> str:
    """Some columns, and the rows whose first cell is named, as Markdown; `column -> other` gives a column another name."""
    wanted = [(column, other or column) for column, _, other in (c.partition(" -> ") for c in columns)]
    lines = found(name, title)
    if rows is not None:
        by_name = {_text(line[wanted[0][0]]): line for line in lines}
        lines = [by_name[row] for row in rows]
    body = [[_escaped(_text(line[column])) for column, _ in wanted] for line in lines]
    rules = [":---", *["---:"] * (len(wanted) - 1)]
    return (
        "\n".join(map(_row, [[other if "`" in other else _escaped(other) for _, other in wanted], rules, *body])) + "\n"
    )


def number(name: str, title: str, row: Any, column: str) -> str:
    """One cell of a record, without its standard error."""
    lines = found(name, title)
    first = next(iter(lines[0]))
    (line,) = (line for line in lines if line[first] == row)
    return _text(getattr(line[column], "value", line[column]))


# -------------------------------------------------------------------------------------------------- benchmarks


def compared(name: str, measure: str) -> tuple[str, str]:
    """A measure of quality and the seconds of one row of the benchmarks: ours, and the peer's."""
    row = json.loads(BENCHMARKS.read_text(encoding="utf-8"))[name]
    ours, peer = (f"{row[who]['quality'][measure]:.3g}; {row[who]['seconds']:.3g} s" for who in ("ours", "peer"))
    return ours, peer


# ------------------------------------------------------------------------------------------------------- guide

_METHODS = ("KELFI", "KELFI, marginal", "DME", "KBR", "rejection")

#: Fragment -> how it is made; `docs/guide/which-method.md` includes them.
TABLES: dict[str, Callable[[], str]] = {
    "choose-rule": lambda: excerpt(
        "posterior-mean",
        "The same, prior one",
        [
            "d",
            "IW, chosen -> `iw` as it comes",
            "IW -> `iw`, paper's settings",
            "Original -> `kbr`, the same",
            "no prior",
            "prior mean",
        ],
    ),
    "choose-rule-filter": lambda: excerpt(
        "filter-choices", "Rules: error", ["rule", "oscillatory", "SSM 2a", "SSM 3a", "% astray", "ms a step"]
    ),
    "choose-filter": lambda: excerpt(
        "filter-choices", "What is known", ["method: what it knows", "oscillatory", "SSM 2a", "SSM 3a"]
    ),
    "choose-inference-exact": lambda: excerpt(
        "exponential-gamma",
        "Total variation",
        ["method", "15, mean -> 15 values, mean", "15, log mean", "500, mean -> 500 values, mean", "500, log mean"],
        [*_METHODS, "K-ABC", "K2-ABC, as it comes", "GPS-ABC"],
    ),
    "choose-inference-hard": lambda: excerpt(
        "lotka-volterra",
        "Over the repeats",
        ["method", "error, all four -> error", "width, all four -> width of the 95 % intervals", "truth inside"],
        [*_METHODS, "KELFI, rounds", "SMC-ABC"],
    ),
    "choose-inference-many": lambda: excerpt(
        "blowfly",
        "NMSE in percent: means",
        ["method", "m = 50", "m = 100", "m = 300", "m = 1000"],
        [
            "KELFI",
            "KELFI, rounds",
            "KELFI, not adjusted",
            "KBR",
            "K-ABC",
            "rejection",
            "MCMC-ABC",
            "SL-ABC",
            "ASL-ABC",
            "GPS-ABC",
        ],
    ),
    "choose-classifier": lambda: _merged(
        "uci",
        {"Accuracy in percent": "accuracy in %", "Log loss": "log loss", "Expected": "calibration error"},
        ["bound", "bound, batches", "validation", "CV", "median", "ERM", "SVC", "forest"],
    ),
    "choose-regression": lambda: excerpt(
        "task-transform",
        "Root mean squared error over",
        ["solution", "authors, 50", "authors, 300", "ours, 50", "ours, 300"],
        ["TTGP", "TTGP, map", "DME", "impute", "cascade", "direct"],
    ),
    "choose-sparse": lambda: excerpt(
        "sparse-points",
        "Root mean square errors",
        ["points", "hyperparameters", "by", "error to the truth", "truth in the 95 % band"],
    ),
    "choose-nodes": lambda: excerpt(
        "quadrature",
        "Worst-case errors",
        [
            "kernel and distribution",
            "d",
            "1 iid -> iid",
            "3 leverage -> leverage",
            "4 DPP -> dpp",
            "herding",
            "greedy",
            "Sobol -> sobol",
        ],
    ),
    "choose-representation": lambda: excerpt(
        "filter-choices",
        "Representations, rule iw",
        ["representation", "oscillatory", "SSM 2a", "SSM 3a", "rank", "seconds to fit", "ms a step"],
    ),
}


def _merged(name: str, titles: dict[str, str], rows: Sequence[str]) -> str:
    """The column of means of several tables side by side."""
    columns = [{line["method"]: _text(line["mean"]) for line in found(name, title)} for title in titles]
    body = [[row, *(column[row] for column in columns)] for row in rows]
    return "\n".join(map(_row, [["method", *titles.values()], [":---", *["---:"] * len(titles)], *body])) + "\n"


def write_all(out: Path) -> None:
    """Write the fragments of the guide into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    for name, made in TABLES.items():
        (out / f"{name}.md").write_text(made(), encoding="utf-8")


# ------------------------------------------------------------------------------------------------------ README


def comparison() -> str:
    """The table of the README: for each job what was measured, here and beside it."""
    rows = [["job", "measure", "here", "beside it"], [":---", ":---", "---:", ":---"]]
    told = {"EKF": "told the system: Kalman", "particle filter": "particles", "regression": "not told it: regression"}
    for name, what in (("rotation", "a filter, point on a circle"), ("oscillatory", "the same, orbit with petals")):
        ours, *others = (number(name, "Squared error", 700, column) for column in ("IW", *told))
        beside = ", ".join(f"{label} {value}" for label, value in zip(told.values(), others, strict=True))
        rows.append([what, "squared error", ours, beside])

    def timed(name: str, what: str, measure: str, peer: str, told: str = "") -> list[str]:
        ours, theirs = compared(name, measure)
        return [what, f"{told or measure}; time", ours, f"{peer} {theirs}"]

    def untimed(name: str, title: str, column: str, what: str, measure: str, methods: dict[str, str]) -> list[str]:
        ours, *others = ((label, number(name, title, method, column)) for method, label in methods.items())
        return [what, measure, ours[1], ", ".join(map(" ".join, others))]

    what, told = "5 parameters from 1,000 simulations, by `kelfi`", "mean off by, in exact sd"
    rows.append(timed("inference", what, "mean off by exact sd", "sbi NPE", told))
    ways = {"KELFI": "", "SMC-ABC": "`smc-abc`, also here,", "rejection": "`rejection`", "KBR": "`kbr`"}
    what, measure = "4 rates of predators and prey from 2,500, by `kelfi`", "error of the mean"
    rows.append(untimed("lotka-volterra", "Over the repeats", "error, all four", what, measure, ways))
    rows.append(timed("classify-quality", "classes, ten folds of four data sets", "log loss", "tuned SVC"))
    rows.append(timed("classify-forest", "the same", "log loss", "random forest"))
    what, peer = "classes, 20 lengthscales, 2,000 rows", "Gaussian process of scikit-learn"
    rows.append(timed("classify", what, "accuracy", peer))
    rows.append(timed("classify-stream", "classes by chunks, 1,000,000 rows", "log loss", "Nystroem + SGD"))
    ways = {"TTGP": "", "impute": "imputing", "cascade": "two regressions in a row"}
    what, title = "f(x) through a mediator, 300 + 300 rows", "Root mean squared error over"
    rows.append(untimed("task-transform", title, "ours, 300", what, "error", ways))
    rows.append(timed("sparse", "regression on 300 points, 100,000 rows", "RMSE", "GPyTorch", "error"))
    return "\n".join(map(_row, rows)) + "\n"


def renewed(readme: str) -> str:
    """The README with its table as the records have it."""
    before, _, rest = readme.partition(_MARKS[0])
    _, mark, after = rest.partition(_MARKS[1])
    if not mark:
        raise ValueError("the README has lost the marks of its table")
    return before + _MARKS[0] + "\n" + comparison() + "\n" + _MARKS[1] + after


if __name__ == "__main__":
    README.write_text(renewed(README.read_text(encoding="utf-8")), encoding="utf-8")

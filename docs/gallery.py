"""The gallery of the experiments: one small figure for each, drawn from the record of its full run.

A build of the documentation writes `<name>-gallery.png` for each experiment and `gallery.md`, a table of them all. No
experiment is run for it. To renew a record, see `results.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from excerpts import found
from results import RECORDS, _escaped

from kernelbayes import plotting
from kernelbayes.experiments import EXPERIMENTS, Estimate
from kernelbayes.plotting import ACCENT, FAINT, GOLD, GREEN, INK, PURPLE, SECOND

_COLOURS = (ACCENT, SECOND, GOLD, GREEN, PURPLE, INK, FAINT)
_MARKS = "osD^vPX"
_SIZE, _DPI = (4.8, 3.3), 130


def _value(cell: Any) -> tuple[float, float]:
    """A number and its standard error; of text, the number that it begins with."""
    if isinstance(cell, Estimate):
        return cell.value, cell.error
    if isinstance(cell, str):
        try:
            return float(cell.split(" ")[0]), np.nan
        except ValueError:
            return np.nan, np.nan
    return float(cell), np.nan


def _lines(ax: Any, x: Sequence[float], curves: dict[str, Sequence[Any]], logs: str = "xy") -> None:
    """Curves over x, with error bars where there are errors."""
    for (label, cells), colour, marker in zip(curves.items(), _COLOURS, _MARKS, strict=False):
        y, error = np.array([_value(cell) for cell in cells]).T
        bars = None if np.isnan(error).all() else np.nan_to_num(error)
        look = {"color": colour, "marker": marker, "ms": 4, "lw": 1.5, "elinewidth": 0.9, "label": label}
        ax.errorbar(x, y, bars, **look)
    if "x" in logs:
        ax.set_xscale("log")
    if "y" in logs:
        ax.set_yscale("log")
    ax.legend(frameon=False, fontsize=7.5)


def _columns(ax: Any, rows: Sequence[dict[str, Any]], x: str, names: dict[str, str], logs: str = "xy") -> None:
    """Curves that are columns of a table, over another column."""
    places = [_value(row[x])[0] for row in rows]
    _lines(ax, places, {label: [row[column] for row in rows] for column, label in names.items()}, logs)
    ax.set_xlabel(x)
    if len(places) < 9 and x in {"n", "d", "epoch"}:
        ax.set_xticks(places, [f"{place:g}" for place in places])
        ax.minorticks_off()


def _bars(ax: Any, cells: dict[str, Any], ours: Sequence[str] = ()) -> None:
    """Bars to the right, in the order given from above, those of the library in colour."""
    labels = list(cells)[::-1]
    y, error = np.array([_value(cells[label]) for label in labels]).T
    colours = [ACCENT if label in ours else FAINT for label in labels]
    ax.barh(
        labels, y, xerr=np.nan_to_num(error), color=colours, height=0.7, error_kw={"elinewidth": 0.9, "ecolor": INK}
    )
    ax.tick_params(axis="y", length=0, labelsize=8)


def _by_name(rows: Sequence[dict[str, Any]], label: str, column: str, names: Sequence[str]) -> dict[str, Any]:
    kept = {row[label]: row[column] for row in rows}
    return {name: kept[name] for name in names}


# ------------------------------------------------------------------------------------------------- the figures


def _posterior_mean(ax: Any) -> None:
    names = {
        "IW, chosen": "iw as it comes",
        "IW": "iw, paper's settings",
        "Original": "kbr, the same",
        "no prior": "no prior",
    }
    _columns(ax, found("posterior-mean", "The same, prior one"), "d", names)
    ax.set_title("Error of the posterior mean")


def _resampling(ax: Any) -> None:
    names = {"m_Q woRes": "no resampling", "m_Q Res-Trunc": "truncated", "m_Q Res-KH": "herded"}
    rows = found("resampling", "Squared RKHS errors")
    places = [_value(row["sum of w^2"])[0] for row in rows]
    _lines(ax, places, {label: [_value(row[column])[0] for row in rows] for column, label in names.items()})
    ax.set(title="Error after a transition", xlabel="sum of squared weights")


def _decoding(ax: Any) -> None:
    names = {"I(-inf, 0]": "half-line", "m_P": "the embedding", "cos(x)": "cosine", "x": "x", "x^2": "x squared"}
    _columns(ax, found("decoding", "RKHS error"), "n", names)
    ax.set_title("Errors of expectations")


def _circles(name: str) -> Callable[[Any], None]:
    def draw(ax: Any) -> None:
        names = {
            "IW": "iw",
            "Original": "kbr",
            "regression": "regression",
            "EKF": "Kalman, told",
            "particle filter": "particles, told",
        }
        _columns(ax, found(name, "Squared error"), "n", names, "x")
        ax.set_title("Squared error of filters")
        ax.legend(frameon=False, fontsize=7.5, ncol=2)
        ax.margins(y=0.2)

    return draw


def _state_space(ax: Any) -> None:
    rows = [row for row in found("state-space", "Root mean squared error") if row["n"] == 400]
    names = {
        "KMCF": "KMCF",
        "KBR filter": "KBR filter",
        "kNN-PF": "kNN-PF",
        "GP-PF": "GP-PF",
        "known sensor": "known sensor",
    }
    models = [row["model"] for row in rows]
    _lines(ax, range(len(rows)), {label: [row[column] for row in rows] for column, label in names.items()}, "y")
    for line in ax.get_lines():
        line.set_linestyle("none")
    ax.set(title="Root mean squared error, n = 400", xlabel="model", ylim=(0.2, None))
    ax.set_xticks(range(len(rows)), models)
    ax.set_yticks([0.5, 1.0, 2.0, 4.0], ["0.5", "1", "2", "4"])
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=7.5, ncol=3, loc="lower left")


def _filter_choices(ax: Any) -> None:
    rows = found("filter-choices", "Rules: error")
    systems = ("oscillatory", "SSM 2a", "SSM 3a")
    _lines(ax, range(len(rows)), {name: [_value(row[name])[0] for row in rows] for name in systems}, "y")
    for line in ax.get_lines():
        line.set_linestyle("none")
    ax.set_title("Error over that of the best rule")
    ax.set_xticks(range(len(rows)), [row["rule"] for row in rows], fontsize=7.5)
    ax.set_yticks([1, 3, 10, 30], ["1", "3", "10", "30"])
    ax.minorticks_off()


def _pendulum(ax: Any) -> None:
    rows = found("pendulum", "Seconds to learn")
    names = {"run KBF as printed": "KBF as printed", "run KBF": "KBF here", "run subKBF": "subspace filter"}
    _columns(ax, rows, "n", names)
    ax.set_title("Seconds to filter 900 steps")


def _exponential_gamma(ax: Any) -> None:
    names = ["GPS-ABC", "KELFI", "DME", "K2-ABC", "K-ABC", "rejection", "KELFI, marginal", "KBR"]
    cells = _by_name(found("exponential-gamma", "Total variation"), "method", "15, log mean", names)
    _bars(ax, cells, ["KELFI"])
    ax.set(title="Distance from the exact posterior", xlabel="total variation, 15 values, log mean")


def _blowfly(ax: Any) -> None:
    rows = {row["method"]: row for row in found("blowfly", "NMSE in percent: means")}
    sizes = (50, 100, 300, 600, 1000)
    kept = {
        "KELFI": "KELFI",
        "KELFI, rounds": "KELFI, 4 rounds",
        "KELFI, own units": "KELFI, own units",
        "K-ABC": "K-ABC",
        "SL-ABC": "SL-ABC",
        "rejection": "rejection",
        "KBR": "KBR",
    }
    _lines(ax, sizes, {label: [_value(rows[name][f"m = {m}"])[0] for m in sizes] for name, label in kept.items()})
    ax.set(title="Error of simulations at the mean, %", xlabel="simulations")
    ax.set_xticks(sizes, map(str, sizes))
    ax.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
    ax.minorticks_off()


def _lotka_volterra(ax: Any) -> None:
    names = ["SMC-ABC", "KELFI, rounds", "rejection", "KELFI", "DME", "KBR"]
    rows = found("lotka-volterra", "Over the repeats")
    _bars(ax, _by_name(rows, "method", "error, all four", names), ["KELFI", "KELFI, rounds"])
    ax.set(title="Error of four logarithmic rates", xlabel="distance of the mean from the truth")


def _posterior_zoo(ax: Any) -> None:
    rows = [row for row in found("posterior-zoo", "Means over problems") if row["problems"] == "held out"]
    sizes = sorted({row["simulations"] for row in rows})
    curves = {row["method"]: [np.nan] * len(sizes) for row in rows}
    for row in rows:
        curves[row["method"]][sizes.index(row["simulations"])] = _value(row["C2ST"])[0]
    _lines(ax, sizes, curves, "x")
    ax.set(title="How well a network tells draws from exact ones", xlabel="simulations", ylim=(0.5, None))
    ax.set_xticks(sizes, [f"{size:g}" for size in sizes])
    ax.minorticks_off()


def _iris(ax: Any) -> None:
    rows = [row for row in found("iris", "After learning") if row["after"] == "3000 steps"]
    weights = list(dict.fromkeys(row["weight"] for row in rows))
    for shift, start, colour in ((-0.12, "overfitted", ACCENT), (0.12, "underfitted", SECOND)):
        y, error = np.array([_value(r["accuracy, test"]) for r in rows if r["start"] == start]).T
        at = np.arange(len(weights)) + shift
        ax.errorbar(at, y, error, fmt="o", color=colour, ms=6, label=f"from an {start} start")
    ax.set_xticks(range(len(weights)), weights)
    ax.set(title="Test accuracy after learning, %", xlabel="weight of the complexity", ylim=(0, 100))
    ax.legend(frameon=False, fontsize=7.5, loc="lower right")


def _uci(ax: Any) -> None:
    names = ["CV", "bound", "median", "validation", "SVC", "forest", "ERM"]
    _bars(ax, _by_name(found("uci", "Log loss"), "method", "mean", names), ["bound"])
    ax.set(title="Log loss, mean of four data sets", xlabel="nats")


def _regression_distributions(ax: Any) -> None:
    row = next(r for r in found("regression-distributions", "Continuous ranked") if r["table"].startswith("mean"))
    _bars(ax, {name: value for name, value in row.items() if name != "table"}, ["density"])
    ax.set(title="CRPS, mean of the tables", xlabel="standard deviations of y")


def _mnist_relevance(ax: Any) -> None:
    names = {"bound": "bound", "ERM": "no complexity", "SVC, tuned": "SVC, tuned", "SVC": "SVC"}
    _columns(ax, found("mnist-relevance", "Test accuracy"), "n", names, "x")
    ax.set_title("Test accuracy, %")


def _mnist_network(ax: Any) -> None:
    names = {"embedding, rate 0.01": "embedding", "softmax, rate 0.01": "softmax"}
    _columns(ax, found("mnist-network", "Test accuracy"), "epoch", names, "x")
    ax.set_title("Test accuracy, %, rate 0.01")


def _sparse_points(ax: Any) -> None:
    cells = {}
    for row in found("sparse-points", "Root mean square errors"):
        if row["hyperparameters"] == "learned" or row["points"].startswith("5 random"):
            cells[", ".join(filter(None, (row["points"].replace(" learned", ""), row["by"])))] = row[
                "error to the truth"
            ]
    _bars(ax, cells, [name for name in cells if "bound" in name])
    ax.set(title="Error to the truth", xlabel="root mean square")


def _quadrature(ax: Any) -> None:
    rows = [
        row
        for row in found("quadrature", "Worst-case errors")
        if row["kernel and distribution"] == "Gaussian 1, normal"
    ]
    rows = [row for row in rows if row["d"] > 1]
    names = {"1 iid": "draws", "3 leverage": "leverage", "4 DPP": "DPP", "Sobol": "Sobol", "greedy": "greedy"}
    _columns(ax, rows, "d", names, "y")
    ax.set_title("Worst-case error of 128 nodes")


def _task_transform(ax: Any) -> None:
    rows = {row["solution"]: row for row in found("task-transform", "Root mean squared error over")}
    sizes, kept = (
        (50, 100, 300),
        {"TTGP": "TTGP", "DME": "DME", "impute": "impute", "cascade": "cascade", "direct": "direct"},
    )
    _lines(ax, sizes, {label: [rows[name][f"ours, {n}"] for n in sizes] for name, label in kept.items()})
    ax.set(title="Error of f through a mediator", xlabel="rows in each table", ylim=(0.02, None))
    ax.legend(frameon=False, fontsize=7.5, ncol=3, loc="lower left")
    ax.set_xticks(sizes, map(str, sizes))
    ax.minorticks_off()


FIGURES: dict[str, Callable[[Any], None]] = {
    "posterior-mean": _posterior_mean,
    "resampling": _resampling,
    "decoding": _decoding,
    "rotation": _circles("rotation"),
    "oscillatory": _circles("oscillatory"),
    "state-space": _state_space,
    "filter-choices": _filter_choices,
    "pendulum": _pendulum,
    "exponential-gamma": _exponential_gamma,
    "blowfly": _blowfly,
    "lotka-volterra": _lotka_volterra,
    "posterior-zoo": _posterior_zoo,
    "iris": _iris,
    "uci": _uci,
    "regression-distributions": _regression_distributions,
    "mnist-relevance": _mnist_relevance,
    "mnist-network": _mnist_network,
    "sparse-points": _sparse_points,
    "quadrature": _quadrature,
    "task-transform": _task_transform,
}

_ELSEWHERE = {
    "filter-choices": "guide/which-filter.md",
    "rotation": "#rotation-and-oscillatory",
    "oscillatory": "#rotation-and-oscillatory",
}


# ------------------------------------------------------------------------------------------------- the gallery


def _card(name: str) -> str:
    """A figure that leads to the section, the title, and how many of the claims were reproduced."""
    record = json.loads((RECORDS / f"{name}.json").read_text(encoding="utf-8"))
    verdicts = [claim["verdict"] for claim in record["claims"]]
    counted = {verdict: verdicts.count(verdict) for verdict in ("reproduced", "partly", "not reproduced")}
    told = ", ".join(f"{number} {verdict}" for verdict, number in counted.items() if number)
    link = _ELSEWHERE.get(name, f"#{name}")
    picture = f"[![{_escaped(record['title'])}](generated/{name}-gallery.png)]({link})<br>" if name in FIGURES else ""
    return f"{picture}**[{name}]({link})**. {_escaped(record['title'])}.<br>*{told}*"


def write_all(out: Path) -> None:
    """Draw the figures of the experiments that have a record, and write the table of them."""
    out.mkdir(parents=True, exist_ok=True)
    names = [name for name in EXPERIMENTS if (RECORDS / f"{name}.json").exists()]
    for name in filter(FIGURES.__contains__, names):
        figure, ax = plotting.new_figure(1, _SIZE)
        FIGURES[name](ax)
        ax.title.set(fontsize=11, color=INK)
        figure.savefig(out / f"{name}-gallery.png", dpi=_DPI)
    cards = [*map(_card, names)]
    cards += [""] * (-len(cards) % 3)
    rows = [f"| {' | '.join(cards[i : i + 3])} |" for i in range(0, len(cards), 3)]
    table = ["|   |   |   |", "| :---: | :---: | :---: |", *rows]
    (out / "gallery.md").write_text("\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "generated")

"""The distribution of y given x from a table: `kb.ConditionalDensity` and `kb.ConditionalEmbedding` beside other libraries.

Each table is split at random, half to learn from, at most so many rows, and the rest to be predicted. Five made-up tables
have a spread that varies, two humps whose share depends on x, heavy tails, counts, and a value that is zero in most rows.
Four come with scikit-learn. `--data DIR` adds every CSV file of a folder: its last column that takes ten values or more,
given the others, without columns and then rows that have gaps.

| method | what it is |
|---|---|
| density | `kb.ConditionalDensity()` as it comes |
| embedding | `kb.ConditionalEmbedding(ard=False)`: one lengthscale for all columns |
| embedding, ard | `kb.ConditionalEmbedding(ard=True)`: one for each |
| boosting | scikit-learn's `HistGradientBoostingRegressor(loss="quantile")`, one model for each level |
| NGBoost | `ngboost.NGBRegressor()`: a normal distribution by natural gradient boosting |
| forest | `quantile_forest.RandomForestQuantileRegressor()` |

The last two are left out, with a note, where they are not installed. The continuous ranked probability score (CRPS) is twice
the mean pinball loss over ten even levels; it and the logarithm of the density are of y in units of its standard
deviation. Seconds are the processor's, to learn and to predict.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ..conditional import ConditionalEmbedding
from ..densities import ConditionalDensity
from ._estimates import Estimate, mean
from ._expected import expected_warnings
from ._figures import ACCENT, FAINT, GOLD, GREEN, PURPLE, SECOND, panels
from ._measured import MADE_UP, SHIPPED, Pairs, made_up, read_pairs, shipped
from ._result import Claim, Result, Table, verdict
from ._study import Runs, Study

TITLE = "The distribution of y given x: densities and embeddings beside boosting and forests"
SOURCE = "this project"
DATA = "*.csv"

LEVELS = (np.arange(10) + 0.5) / 10
# Levels of the intervals of 50 and 90 %.
_ENDS = np.array([0.25, 0.75, 0.05, 0.95])
_NAMES = {"crps": "CRPS", "log": "log density", "in50": "50 %", "in90": "90 %", "seconds": "seconds"}


class _Predicted(NamedTuple):
    """Quantiles (k, t) at levels, and the logarithm of the density of y (t,) or None."""

    quantiles: Array
    log_density: Array | None


class _Method(NamedTuple):
    label: str
    colour: str
    package: str | None
    predict: Callable[[Pairs, Pairs, Array, int], _Predicted]


def _density(train: Pairs, test: Pairs, levels: Array, seed: int) -> _Predicted:
    model = ConditionalDensity(random_state=seed).fit(train.X, train.y)
    return _Predicted(model.quantile(test.X, levels), model.log_density(test.y, test.X))


def _embedding(ard: bool, train: Pairs, test: Pairs, levels: Array, seed: int) -> _Predicted:
    model = ConditionalEmbedding(ard=ard, random_state=seed).fit(train.X, train.y)
    return _Predicted(model.quantile(test.X, levels), None)


def _boosting(train: Pairs, test: Pairs, levels: Array, seed: int) -> _Predicted:
    from sklearn.ensemble import HistGradientBoostingRegressor

    found = []
    for level in levels:
        model = HistGradientBoostingRegressor(loss="quantile", quantile=float(level), random_state=seed)
        found.append(model.fit(train.X, train.y).predict(test.X))
    return _Predicted(np.sort(found, axis=0)[np.argsort(np.argsort(levels))], None)


def _ngboost(train: Pairs, test: Pairs, levels: Array, seed: int) -> _Predicted:
    from ngboost import NGBRegressor  # type: ignore[import-not-found]

    found = NGBRegressor(verbose=False, random_state=seed).fit(train.X, train.y).pred_dist(test.X)
    return _Predicted(np.array([found.ppf(level) for level in levels]), found.logpdf(test.y))


def _forest(train: Pairs, test: Pairs, levels: Array, seed: int) -> _Predicted:
    from quantile_forest import RandomForestQuantileRegressor  # type: ignore[import-not-found]

    model = RandomForestQuantileRegressor(random_state=seed).fit(train.X, train.y)
    return _Predicted(np.asarray(model.predict(test.X, quantiles=list(levels))).T, None)


METHODS = {
    "density": _Method("density", ACCENT, None, _density),
    "embedding": _Method("embedding", FAINT, None, functools.partial(_embedding, False)),
    "ard": _Method("embedding, ard", SECOND, None, functools.partial(_embedding, True)),
    "boosting": _Method("boosting", GREEN, None, _boosting),
    "ngboost": _Method("NGBoost", GOLD, "ngboost", _ngboost),
    "forest": _Method("forest", PURPLE, "quantile_forest", _forest),
}


def installed() -> list[str]:
    """The methods that can be run here."""
    return [n for n, method in METHODS.items() if method.package is None or importlib.util.find_spec(method.package)]


# --------------------------------------------------------------------------------------------------- one split


def _once(
    data: Mapping[str, Pairs], names: list[str], settings: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, float]:
    pairs = data.get(settings["data"]) or made_up(settings["data"], settings["made_up"], rng)
    order = rng.permutation(len(pairs.y))
    half = min(len(order) // 2, settings["most"])
    parts = (order[:half], order[half : half + settings["most_predicted"]])
    train, test = (Pairs(pairs.X[rows], pairs.y[rows]) for rows in parts)
    scale = float(train.y.std())
    train, test = (part._replace(y=part.y / scale) for part in (train, test))
    numbers: dict[str, float] = {"rows": float(half)}
    for name in names:
        start = time.process_time()
        with expected_warnings():
            found = METHODS[name].predict(train, test, np.concatenate([LEVELS, _ENDS]), int(rng.integers(2**31)))
        numbers[f"{name}_seconds"] = time.process_time() - start
        numbers |= {f"{name}_{measure}": value for measure, value in _scores(found, test.y).items()}
    return numbers


def _scores(found: _Predicted, y: Array) -> dict[str, float]:
    gaps = y - found.quantiles[: len(LEVELS)]
    pinball = np.maximum(LEVELS[:, None] * gaps, (LEVELS[:, None] - 1.0) * gaps)
    ends = found.quantiles[len(LEVELS) :]
    inside = [((ends[i] <= y) & (y <= ends[i + 1])).mean() for i in (0, 2)]
    log = np.nan if found.log_density is None else float(np.mean(found.log_density))
    return {"crps": 2.0 * float(pinball.mean()), "log": log, "in50": float(inside[0]), "in90": float(inside[1])}


# --------------------------------------------------------------------------------------------------------- run


def run(study: Study) -> Result:
    """All methods on all splits of all tables."""
    made = list(MADE_UP)[:2] if study.quick else list(MADE_UP)
    data = {name: shipped(name) for name in (["diabetes"] if study.quick else SHIPPED)}
    read, notes = _read(study)
    data |= read
    settings = {
        "tables": {name: _described(pairs) for name, pairs in data.items()} | dict.fromkeys(made, "made up"),
        "made_up": 1000 if study.quick else 3000,
        "most": 200 if study.quick else 1000,
        "most_predicted": 1000,
        "methods": installed(),
        "repeats": 2 if study.quick else 3,
    }
    once = functools.partial(_once, data, settings["methods"])
    runs = study.repeat(once, settings, [{"data": name} for name in (*made, *data)])
    tables = [_table(runs, measure) for measure in _NAMES]
    left_out = [METHODS[name].label for name in METHODS if name not in settings["methods"]]
    if left_out:
        notes.append(f"Note: left out, as they are not installed: {', '.join(left_out)}.")
    return Result(settings, tables, claims(runs), [study.save(_figure(runs))], runs, notes)


def _read(study: Study) -> tuple[dict[str, Pairs], list[str]]:
    if study.data is None:
        return {}, []
    files = sorted(study.data.glob(DATA))
    if not files:
        raise OSError(f"there is no CSV file in {study.data}")
    found = {file.stem: read_pairs(file) for file in files}
    small = [name for name, pairs in found.items() if pairs is None]
    notes = [f"Note: files with too few rows or columns were left out: {', '.join(small)}."] if small else []
    return {f"{name}.csv": pairs for name, pairs in found.items() if pairs is not None}, notes


def _described(pairs: Pairs) -> str:
    mark = hashlib.sha256(np.ascontiguousarray(np.column_stack(pairs)).tobytes()).hexdigest()[:8]
    return f"{len(pairs.y)} x {pairs.X.shape[1]}, {mark}"


# ------------------------------------------------------------------------------------------------------ tables


def _present(runs: Runs) -> list[str]:
    return [name for name in METHODS if f"{name}_crps" in runs.values]


def _table(runs: Runs, measure: str) -> Table:
    titles = {
        "crps": "Continuous ranked probability score, less is better",
        "log": "Logarithm of the density, more is better",
        "in50": "Share inside of the intervals of 50 %",
        "in90": "Share inside of the intervals of 90 %",
        "seconds": "Seconds of the processor",
    }
    names = [n for n in _present(runs) if np.isfinite(runs[f"{n}_{measure}"]).all()]
    rows: list[tuple[Any, ...]] = [
        (case["data"], *(mean(runs[f"{n}_{measure}"][i]) for n in names)) for i, case in enumerate(runs.cases)
    ]
    if measure in ("crps", "log"):
        rows.append(("mean of the tables", *(float(runs[f"{n}_{measure}"].mean()) for n in names)))
    title = f"{titles[measure]}: means over the splits (standard errors)"
    return Table(title, ["table", *(METHODS[n].label for n in names)], rows)


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs) -> list[Claim]:
    """What the defaults of the library rest on."""
    return [_against(runs, "ard", "embedding"), _against_peers(runs), _coverage(runs)]


def _differences(runs: Runs, name: str, other: str) -> list[Estimate]:
    """Of each table, the CRPS of a method less that of another, paired by split, as a share of the latter."""
    a, b = runs[f"{name}_crps"], runs[f"{other}_crps"]
    return [mean((a[i] - b[i]) / b[i].mean()) for i in range(len(a))]


def _counted(found: list[Estimate]) -> tuple[int, int]:
    """Tables on which a difference is clearly below zero, and clearly above."""
    return sum(e.value < -2 * e.error for e in found), sum(e.value > 2 * e.error for e in found)


def _against(runs: Runs, name: str, other: str) -> Claim:
    found = _differences(runs, name, other)
    ahead, behind = _counted(found)
    gain = -100.0 * float(np.mean([e.value for e in found]))
    return Claim(
        "a lengthscale for each column of x predicts better than one for all",
        "this project",
        f"CRPS clearly lower on {ahead} of {len(found)} tables, clearly higher on {behind}; on average {gain:.1f} % lower.",
        verdict(ahead > behind, gain > 0.0),
    )


def _against_peers(runs: Runs) -> Claim:
    peers = [name for name in ("boosting", "ngboost", "forest") if name in _present(runs)]
    counts = {name: _counted(_differences(runs, "density", name)) for name in peers}
    told = ", ".join(f"{METHODS[name].label}: {a} and {b}" for name, (a, b) in counts.items())
    return Claim(
        "a conditional density predicts better than boosted trees and forests on tables of up to a thousand rows",
        "this project",
        f"tables of {len(runs.cases)} on which its CRPS is clearly lower and clearly higher than that of {told}.",
        verdict(*(a > b for a, b in counts.values())),
    )


def _coverage(runs: Runs) -> Claim:
    shares = {level: runs[f"density_{key}"].mean(1) for level, key in ((0.5, "in50"), (0.9, "in90"))}
    told = ", ".join(f"{100 * s.min():.0f} to {100 * s.max():.0f} for {100 * lv:.0f} %" for lv, s in shares.items())
    return Claim(
        "intervals of a conditional density hold what they say, within ten points",
        "this project",
        f"shares inside, in percent over the tables: {told}.",
        verdict(*(bool(np.abs(s - level).max() < 0.1) for level, s in shares.items())),
    )


# ----------------------------------------------------------------------------------------------------- figures


def _figure(runs: Runs) -> Any:
    figure, ax = panels(1, 1, (9.0, 0.6 + 0.45 * len(runs.cases)))
    names = _present(runs)
    best = np.min([runs[f"{n}_crps"].mean(1) for n in names], axis=0)
    rows = np.arange(len(runs.cases))[::-1]
    for name in names:
        ratio = runs[f"{name}_crps"].mean(1) / best
        ax.plot(np.minimum(ratio, 2.0), rows, "o", color=METHODS[name].colour, label=METHODS[name].label, ms=6)
    ax.set_yticks(rows, [case["data"] for case in runs.cases])
    ax.set(xlabel="CRPS over that of the best method (at 2: twice or more)", xlim=(0.97, 2.03))
    ax.legend(frameon=False, fontsize=8, loc="lower right")
    return figure

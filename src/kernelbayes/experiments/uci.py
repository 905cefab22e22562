r"""Ways to choose the hyperparameters of a multiclass conditional embedding. Hsu (2019), section 3.10.2, table 3.2.

Ten folds of each data set, every attribute scaled to [0, 1]. Iris, wine, breast cancer and digits come with scikit-learn.
`--data DIR` adds every CSV file of a folder, with the label in the last column: of the thesis's six sets only wine is
among the former. Classes with fewer than ten points, one for each fold, are left out.

| method | in table 3.2 | what it is |
|---|---|---|
| bound | GMCE | `kb.ConditionalEmbeddingClassifier()` as it comes, with a lengthscale for each column |
| bound, 4 e | GMCE | the same with `multiplier=4 * np.e`: (3.18) as printed |
| bound, batches | GMCE-SGD | the same on random batches of a tenth of the points |
| validation | | the loss on a random half (3.19) |
| ERM | ERM | the loss alone |
| CV | CV | five folds over a grid |
| median | MLH | the median distance, and the regulariser by five folds |
| median, reg = 1 | MLH | the same with the regulariser at which learning starts in the thesis |
| SVC | Others | C and gamma from a 5 x 5 grid by three folds, Platt scaling |
| forest | Others | scikit-learn's random forest as it comes |

The thesis learns by 1,000 steps of Adam at rate 0.1 from lengthscales and regulariser 1. Here, except in batches, the
objective is minimised to convergence. It does not say which regulariser goes with the median distance, nor what grid
cross-validation has. Probabilities are calibrated by leave-one-out, except those of the last two. The calibration error is
that of all folds together. Seconds are the processor's, for learning.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ..classification import ConditionalEmbeddingClassifier
from ._classifiers import BINS, calibration_error, forest, scores, support_vectors
from ._estimates import Estimate, jackknife, mean, show
from ._expected import expected_warnings
from ._figures import ACCENT, FAINT, GOLD, GREEN, INK, PURPLE, SECOND, panels
from ._labelled import SHIPPED, DataSet, read_labelled, shipped
from ._result import Claim, Result, Table, verdict
from ._study import Runs, Study

TITLE = "Choosing the hyperparameters of a kernel classifier: bound, ERM, folds, median"
SOURCE = "Hsu (2019), section 3.10.2, table 3.2"
DATA = "*.csv"

_CLOSE = 2.0  # percentage points


class _Method(NamedTuple):
    label: str
    colour: str
    fit: Callable[[Array, Array, int], Any]


def _embedding(batches: int = 0, **settings: Any) -> Callable[[Array, Array, int], Any]:
    """A conditional embedding classifier with some settings, fitted."""

    def fit(X: Array, y: Array, seed: int) -> Any:
        size = max(len(X) // batches, 2) if batches else None
        return ConditionalEmbeddingClassifier(**settings, batch_size=size, random_state=seed).fit(X, y)

    return fit


METHODS = {
    "bound": _Method("bound", ACCENT, _embedding()),
    "printed": _Method("bound, 4 e", "#f2a6b0", _embedding(multiplier=4 * np.e)),
    "batches": _Method("bound, batches", GOLD, _embedding(batches=10)),
    "validation": _Method("validation", PURPLE, _embedding(learn="validation")),
    "erm": _Method("ERM", SECOND, _embedding(learn="erm")),
    "cv": _Method("CV", GREEN, _embedding(learn="cv")),
    "median": _Method("median", INK, _embedding(learn="median")),
    "median_one": _Method("median, reg = 1", FAINT, _embedding(learn="median", reg=1.0)),
    "svc": _Method("SVC", "#8ecae6", lambda X, y, seed: support_vectors(X, y, seed=seed)),
    "forest": _Method("forest", "#b5c99a", lambda X, y, seed: forest(X, y, seed=seed)),
}
_RIVALS = {"erm": "ERM", "cv": "cross-validation", "median": "the median heuristic"}


# ---------------------------------------------------------------------------------------------------- one fold


def _once(data: Mapping[str, DataSet], settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    from sklearn.model_selection import StratifiedKFold

    chosen = data[settings["data"]]
    folds = StratifiedKFold(settings["folds"], shuffle=True, random_state=settings["seed"])
    train, test = list(folds.split(chosen.X, chosen.y))[settings["fold"]]
    if settings["most"] is not None:
        train = rng.permutation(train)[: settings["most"]]
    numbers = {"points": float(len(test)), "majority": _majority(chosen.y[train], chosen.y[test])}
    for name, method in METHODS.items():
        start = time.process_time()
        with expected_warnings():
            model = method.fit(chosen.X[train], chosen.y[train], int(rng.integers(2**31)))
        seconds = time.process_time() - start
        found = scores(_probabilities(model, chosen, test), chosen.y[test])
        numbers |= {f"{name}_{key}": value for key, value in found.items()} | {f"{name}_seconds": seconds}
    return numbers


def _probabilities(model: Any, data: DataSet, rows: Array) -> Array:
    """Of all classes of the data set, zero for those that were not learned from."""
    P = np.zeros((len(rows), len(data.classes)))
    P[:, model.classes_] = model.predict_proba(data.X[rows])
    return P


def _majority(train: Array, test: Array) -> float:
    """Accuracy of naming the class most frequent in training."""
    return float((test == np.bincount(train).argmax()).mean())


# --------------------------------------------------------------------------------------------------------- run


def run(study: Study) -> Result:
    """All methods on all folds of all data sets."""
    names = ["iris", "wine"] if study.quick else list(SHIPPED)
    found, notes = _data(study, names)
    settings = {
        "folds": 10,
        "seed": study.seed,
        "sets": {name: f"{len(data.X)} x {data.X.shape[1]}, {data.digest()}" for name, data in found.items()},
        "most": 200 if study.quick else None,
        "repeats": 1,
    }
    some = range(2 if study.quick else settings["folds"])
    cases = [{"data": name, "fold": fold} for name in found for fold in some]
    runs = study.repeat(functools.partial(_once, found), settings, cases)
    tables = [_table(runs, "accuracy"), _table(runs, "loss"), _calibration_table(runs), _time_table(runs)]
    figures = [study.save(_figure(runs))]
    return Result(settings, [*tables, _difference_table(runs)], claims(runs), figures, runs, [*notes, _note(runs)])


def _data(study: Study, names: list[str]) -> tuple[dict[str, DataSet], list[str]]:
    found = {name: shipped(name) for name in names}
    if study.data is not None:
        files = sorted(study.data.glob(DATA))
        if not files:
            raise OSError(f"there is no CSV file in {study.data}")
        found |= {file.stem: read_labelled(file) for file in files}
    notes = []
    for name, data in found.items():
        kept, rare = data.without_rare(10)
        if len(kept.classes) < 2:
            raise OSError(f"{name} has fewer than two classes with ten points each")
        if rare:
            notes.append(f"Note: classes of {name} with fewer than ten points were left out: {', '.join(rare)}.")
        found[name] = kept.in_unit_range()
    return found, notes


# ------------------------------------------------------------------------------------------------------ tables


def _sets(runs: Runs) -> list[str]:
    return list(dict.fromkeys(runs.case("data").tolist()))


def _folds(runs: Runs, name: str, data: str) -> Array:
    """The numbers (folds,) of one data set."""
    return runs.where(data=data)[name][:, 0]


def _table(runs: Runs, measure: str) -> Table:
    scale, what = (100.0, "Accuracy in percent") if measure == "accuracy" else (1.0, "Log loss in nats")
    rows = [
        (
            method.label,
            *(mean(scale * _folds(runs, f"{name}_{measure}", data)) for data in _sets(runs)),
            float(np.mean([scale * _folds(runs, f"{name}_{measure}", data).mean() for data in _sets(runs)])),
        )
        for name, method in METHODS.items()
    ]
    if measure == "accuracy":
        shares = [100.0 * _folds(runs, "majority", data).mean() for data in _sets(runs)]
        rows.append(("most frequent class", *shares, float(np.mean(shares))))
    return Table(f"{what}: means over the folds (standard errors)", ["method", *_sets(runs), "mean"], rows)


def _ece(runs: Runs, name: str, data: str) -> Estimate:
    gaps = np.stack([_folds(runs, f"{name}_gap_{i}", data) for i in range(BINS)])
    return jackknife(calibration_error, gaps, _folds(runs, "points", data))


def _calibration_table(runs: Runs) -> Table:
    rows = []
    for name, method in METHODS.items():
        errors = [_ece(runs, name, data) for data in _sets(runs)]
        rows.append((method.label, *errors, float(np.mean([e.value for e in errors]))))
    title = f"Expected calibration error of the predicted class, {BINS} bins, all folds together (standard errors)"
    return Table(title, ["method", *_sets(runs), "mean"], rows)


def _time_table(runs: Runs) -> Table:
    rows = [
        (method.label, *(float(np.median(_folds(runs, f"{name}_seconds", data))) for data in _sets(runs)))
        for name, method in METHODS.items()
    ]
    return Table("Seconds to learn: medians over the folds", ["method", *_sets(runs)], rows)


def difference(runs: Runs, name: str, other: str, data: str | None = None, measure: str = "accuracy") -> Estimate:
    """How much larger a measure is by one method than by another, paired over folds: on one data set, or on average.

    Accuracies are in percentage points. The average has the standard error of a mean over given data sets.
    """
    scale = 100.0 if measure == "accuracy" else 1.0
    if data is not None:
        return mean(scale * (_folds(runs, f"{name}_{measure}", data) - _folds(runs, f"{other}_{measure}", data)))
    each = [difference(runs, name, other, one, measure) for one in _sets(runs)]
    values, errors = np.transpose(each)
    return Estimate(float(values.mean()), float(np.sqrt((errors**2).sum()) / len(errors)))


def _difference_table(runs: Runs) -> Table:
    rows = [
        (
            METHODS[other].label,
            *(difference(runs, "bound", other, data) for data in _sets(runs)),
            difference(runs, "bound", other),
            difference(runs, "bound", other, measure="loss"),
        )
        for other in METHODS
        if other != "bound"
    ]
    return Table(
        "Accuracy of the bound less that of the others, in percentage points, and its log loss less theirs on average: "
        "paired differences over the folds (standard errors)",
        ["less that of", *_sets(runs), "mean", "mean log loss"],
        rows,
    )


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs) -> list[Claim]:
    """What table 3.2 is said to show, judged by paired differences over folds, averaged over the data sets."""
    return [*(_above(runs, rival) for rival in _RIVALS), _printed(runs), _batches(runs), _others(runs)]


def _ahead(change: Estimate) -> bool:
    return change.value > 2.0 * np.nan_to_num(change.error)


def _told(runs: Runs, name: str, other: str) -> str:
    """The average difference, and on which data sets it is beyond the noise."""
    each = {data: difference(runs, name, other, data) for data in _sets(runs)}
    ahead = [data for data, change in each.items() if _ahead(change)]
    behind = [data for data, change in each.items() if _ahead(Estimate(-change.value, change.error))]
    return (
        f"{difference(runs, name, other)} points on average, ahead beyond two standard errors on "
        f"{', '.join(ahead) or 'no data set'} and behind on {', '.join(behind) or 'none'}"
    )


def _above(runs: Runs, rival: str) -> Claim:
    parts = (
        {"with the regulariser by folds": "median", "with reg = 1": "median_one"} if rival == "median" else {"": rival}
    )
    shown = "; ".join(f"{_told(runs, 'bound', other)} {how}".strip() for how, other in parts.items())
    return Claim(
        f"hyperparameters learned by the bound give a higher accuracy than those by {_RIVALS[rival]}",
        SOURCE,
        f"the accuracy of the bound less that of {_RIVALS[rival]} is {shown}.",
        verdict(*(_ahead(difference(runs, "bound", other)) for other in parts.values())),
    )


def _printed(runs: Runs) -> Claim:
    average = {name: np.mean([_folds(runs, f"{name}_accuracy", d).mean() for d in _sets(runs)]) for name in METHODS}
    majority = np.mean([_folds(runs, "majority", d).mean() for d in _sets(runs)])
    rivals = ("erm", "cv", "median", "median_one")
    listed = ", ".join(f"{METHODS[name].label} {show(100 * average[name])}" for name in rivals)
    return Claim(
        "the same of the bound as printed, with 4 e",
        SOURCE,
        f"its accuracy is {show(100 * average['printed'])} % on average; {listed}; always naming the most frequent class "
        f"{show(100 * majority)}.",
        verdict(*(_ahead(difference(runs, "printed", name)) for name in rivals)),
    )


def _batches(runs: Runs) -> Claim:
    change = difference(runs, "batches", "bound")
    listed = ", ".join(f"{difference(runs, 'batches', 'bound', data)} on {data}" for data in _sets(runs))
    return Claim(
        "learning on batches of a tenth of the points performs similarly to learning on all",
        SOURCE,
        f"its accuracy less that on all points is {change} points on average; {listed}. Similar is taken to be within "
        f"{_CLOSE:g} points.",
        verdict(abs(change.value) < _CLOSE),
    )


def _others(runs: Runs) -> Claim:
    changes = {name: difference(runs, "bound", name) for name in ("svc", "forest")}
    losses = {name: difference(runs, "bound", name, measure="loss") for name in changes}
    listed = "; ".join(
        f"{change} points from {METHODS[name].label}, its log loss by {losses[name]}"
        for name, change in changes.items()
    )
    return Claim(
        "the bound performs similarly to other kinds of classifiers",
        SOURCE,
        f"on average its accuracy differs by {listed}. Judged by the accuracy being at most {_CLOSE:g} points lower.",
        verdict(*(change.value > -_CLOSE for change in changes.values())),
    )


def _note(runs: Runs) -> str:
    best = max(METHODS, key=lambda m: np.mean([_folds(runs, f"{m}_accuracy", d).mean() for d in _sets(runs)]))
    surest = min(METHODS, key=lambda m: np.mean([_folds(runs, f"{m}_loss", d).mean() for d in _sets(runs)]))
    return (
        f"Note: on average {METHODS[best].label} has the highest accuracy and {METHODS[surest].label} the lowest log loss. "
        "A standard error over ten folds of a small data set is a rough guess itself."
    )


# ----------------------------------------------------------------------------------------------------- figures


_LEAST_SHOWN = 1e-3


def _figure(runs: Runs) -> Any:
    figure, axes = panels(1, 3, (14.0, 4.6))
    sets = _sets(runs)
    titles = ("Errors in percent", "Log loss", "Calibration error")
    for ax, title, of in zip(axes, titles, (_errors, _losses, _ece), strict=True):
        for j, (name, method) in enumerate(METHODS.items()):
            found = [of(runs, name, data) for data in sets]
            places = np.arange(len(sets)) + 0.08 * (j - len(METHODS) / 2 + 0.5)
            values, spread = (np.array([getattr(e, part) for e in found]) for part in ("value", "error"))
            values = np.maximum(values, _LEAST_SHOWN)  # where there are no errors, the mark is at the edge
            ax.errorbar(places, values, spread, fmt="o", ms=4, color=method.colour, elinewidth=0.8, label=method.label)
        ax.set(xticks=range(len(sets)), yscale="log")
        ax.set_xticklabels(sets)
        ax.set_ylim(bottom=max(ax.get_ylim()[0], _LEAST_SHOWN))
        ax.set_title(f"{title}, with standard errors", fontsize=10)
    axes[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _errors(runs: Runs, name: str, data: str) -> Estimate:
    return mean(100.0 * (1.0 - _folds(runs, f"{name}_accuracy", data)))


def _losses(runs: Runs, name: str, data: str) -> Estimate:
    return mean(_folds(runs, f"{name}_loss", data))

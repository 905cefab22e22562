"""`kernelbayes classify`: learn classes from one table, predict those of another with their probabilities."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._estimator import columns_in_order
from .._persist import save
from .._table import Table, read_table, write_table
from .._typing import Array
from ..classification import ConditionalEmbeddingClassifier, _scores
from ..rules import multiclass
from ._columns import claimed, counted
from ._files import results, tell_written
from ._inputs import Inputs, asked_inputs, default_inputs, listed
from ._kept import add_kept, check_train_or_load, load_kept
from ._labels import are_whole, check_classes, read_labels, true_positions
from ._options import add_seed, names
from ._predicting import check_own, mention_same
from ._refusal import Refusal, plainly

_LEARN = ("bound", "validation", "erm", "cv", "median")
# More columns than this are not copied to the output, but for those that are no inputs.
_MOST_COPIED = 50
_SHOWN = 5


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What `classify` takes."""
    command.description = (
        "Learn from a table with a column of classes, and predict the classes of another table with their "
        "probabilities. Columns of numbers are taken as they are; columns of words get a column of zeros and ones for each "
        "word. Rows with an empty cell among the inputs, or with NA, NaN or null in it, are not learned from, and get no "
        "prediction."
    )
    learn = command.add_argument_group("learning")
    learn.add_argument("--train", metavar="CSV", help="table to learn from")
    learn.add_argument("--target", metavar="Y", help="column of it that holds the classes, as words or whole numbers")
    learn.add_argument(
        "--inputs", type=names, metavar="A,B", help="columns to tell them from (default: all that can be)"
    )
    learn.add_argument(
        "--ignore", type=names, metavar="C,D", help="columns that are no inputs, such as a number of the row"
    )
    learn.add_argument("--learn", choices=_LEARN, help="how hyperparameters are chosen (default: bound)")
    learn.add_argument(
        "--class-weight",
        choices=["balanced"],
        help="balanced: as if all classes were equally frequent (default: as they are)",
    )
    add_seed(learn)
    add_kept(learn, "classifier", "--train and --target")
    use = command.add_argument_group("predicting")
    use.add_argument("--test", metavar="CSV", help="table to predict; with the target column it is a test as well")
    use.add_argument("--out", metavar="CSV", help="write the table with predicted class, probabilities and entropy")
    use.add_argument(
        "--plot",
        metavar="PNG",
        help="draw how reliable the probabilities are if --test has the target; else a map of the classes if there are two "
        "inputs; else the relevance of the inputs",
    )
    command.set_defaults(run=run, command="classify")


def run(arguments: argparse.Namespace) -> int:
    """Learn or load, save, predict, report and write, as the arguments ask."""
    check_train_or_load(
        arguments,
        "classifier",
        "predict",
        needed=("target", "the column that holds the classes"),
        settled=("target", "inputs", "ignore", "learn", "class_weight"),
        using=("out", "plot"),
    )
    read = [arguments.train, arguments.load, arguments.test]
    saved, out, plot = results(read, [arguments.save, arguments.out], [arguments.plot])
    with plainly():
        test = read_table(arguments.test) if arguments.test else None
        train = read_table(arguments.train) if arguments.train else None
        kept = _loaded(arguments.load) if arguments.load else None
        sample = None if train is None else _sample(train, test, arguments)
        task = _task_of(kept) if sample is None else sample.task
        new = None if test is None else _read(test, task, out)
        model = kept if sample is None else _learned(sample, arguments)
        print("\n".join(_settings(model)), flush=True)
        if saved:
            save(model, saved)
        if new is not None:
            _apply(model, task, new, arguments, out, plot)
    tell_written([saved, out, plot])
    return 0


# ---------------------------------------------------------------------------------------------------- learning


class Task(NamedTuple):
    """What is told apart, and from what."""

    target: str
    inputs: Inputs
    classes: Array

    @property
    def outputs(self) -> list[str]:
        """Columns of predictions."""
        return ["predicted", *(f"p_{label}" for label in self.classes), "entropy"]


class Sample(NamedTuple):
    """What is learned from: rows without a gap."""

    task: Task
    X: Array
    y: Array


def _sample(train: Table, test: Table | None, arguments: argparse.Namespace) -> Sample:
    """The rows to learn from, after telling which they are and what is in them."""
    column = arguments.target
    train.require([column])
    inputs, notes = _inputs(train, test, arguments)
    whole = are_whole(train, column)
    found, known = read_labels(train, column, whole)
    X = inputs.read(train)
    complete = known & ~np.isnan(X).any(axis=1)
    _tell_rows(train, known, complete)
    print(f"columns {column} from {inputs}")
    if not complete[known].all():
        advice = "leave a column out of --inputs" if arguments.inputs else "--ignore a column"
        print(f"note    gaps are in {listed(inputs.gaps(train))}; {advice} to keep its rows")
    for note in notes:
        print(f"note    {note}")
    y = found[complete].astype(int) if whole else found[complete]
    check_classes(train, column, y, whole)
    classes, counts = np.unique(y, return_counts=True)
    each = [f"{label} ({count:,})" for label, count in zip(classes, counts, strict=True)]
    print(f"classes {listed(each)}", flush=True)
    return Sample(Task(column, inputs, classes), X[complete], y)


def _learned(sample: Sample, arguments: argparse.Namespace) -> Any:
    if arguments.class_weight:
        print(
            "note    with balanced weights, probabilities are those of a world where all classes are equally frequent"
        )
    settings = {"learn": arguments.learn, "class_weight": arguments.class_weight, "random_state": arguments.seed}
    model: Any = ConditionalEmbeddingClassifier(
        **{name: value for name, value in settings.items() if value is not None}
    )
    model.fit(sample.X, sample.y)
    inputs = sample.task.inputs
    model.feature_names_in_ = np.array(inputs.names, dtype=object)
    model.target_name_, model.input_columns_, model.input_words_ = (
        sample.task.target,
        inputs.columns,
        dict(inputs.words),
    )
    return model


def _inputs(train: Table, test: Table | None, arguments: argparse.Namespace) -> tuple[Inputs, list[str]]:
    """The inputs, as asked or by default, and what to say of other columns."""
    column, wanted, ignored = arguments.target, arguments.inputs or [], arguments.ignore or []
    both = [train] if test is None else [train, test]
    where = {"--target": [train], "--inputs": both, "--ignore": [train]}
    claimed({"--target": [column], "--inputs": wanted, "--ignore": ignored}, where)
    inputs, notes = (asked_inputs(train, wanted), []) if wanted else default_inputs(train, test, [column, *ignored])
    if not inputs.columns:
        first = "; ".join(notes[:_SHOWN]) + ("; and so on" if len(notes) > _SHOWN else "")
        raise Refusal("there is nothing to tell classes from" + (f": {first}" if notes else ""))
    return inputs, notes


def _tell_rows(train: Table, labelled: Array, complete: Array) -> None:
    lost, without = int((labelled & ~complete).sum()), int((~labelled).sum())
    said = f"; {counted(lost, 'row')} with a gap left out" if lost else ""
    said += f"; {counted(without, 'row')} without a class left out" if without else ""
    print(f"train   {train.source}: {counted(len(train), 'row')}{said}")
    if not complete.any():
        raise Refusal(f"{train.source} has no row without a gap; name the columns to use in --inputs")


def _loaded(path: str) -> Any:
    model = load_kept(path, ConditionalEmbeddingClassifier, "input_columns_", "classifier")
    print(f"columns {model.target_name_} from {_task_of(model).inputs}")
    return model


def _task_of(model: Any) -> Task:
    return Task(model.target_name_, Inputs(model.input_columns_, model.input_words_), model.classes_)


def _settings(model: Any) -> list[str]:
    """What was chosen, in two lines."""
    scales = np.ravel(model.kernel_.lengthscale)
    shown = f"{scales[0]:.3g}" if len(scales) == 1 else f"{scales.min():.3g} to {scales.max():.3g}"
    table = model.relevance()
    first = ", ".join(f"{name} {table[name]['relevance']:.2g}" for name in list(table)[:_SHOWN])
    among = f" (of {len(table)})" if len(table) > _SHOWN else ""
    return [
        f"model   {type(model.kernel_).__name__} kernel, lengthscale {shown}, reg {model.reg_:.2g}, by {model.learn}",
        f"inputs  most relevant: {first}{among}",
    ]


# -------------------------------------------------------------------------------------------------- predicting


class New(NamedTuple):
    """A table to be predicted: the inputs of its rows, and what is known of the answer."""

    table: Table
    X: Array
    complete: Array  # rows without a gap
    positions: Array  # of true classes, -1 where there is none


def _read(table: Table, task: Task, out: Path | None) -> New:
    X = task.inputs.read(table)
    check_own(table, task.outputs, out)
    for note in task.inputs.unknown(table):
        print(f"note    {note}")
    complete = np.asarray(np.isfinite(X).all(axis=1))
    return New(table, X, complete, true_positions(table, task.target, task.classes))


def _apply(
    model: Any, task: Task, new: New, arguments: argparse.Namespace, out: Path | None, plot: Path | None
) -> None:
    """Predict a table, report, write and draw."""
    gaps = int((~new.complete).sum())
    said = f"; {counted(gaps, 'row')} with a gap get{'s' * (gaps == 1)} no prediction" if gaps else ""
    print(f"test    {new.table.source}: {counted(len(new.table), 'row')}{said}")
    mention_same(arguments)
    P = _probabilities(model, new)
    judged = new.complete & (new.positions >= 0)
    if judged.any():
        _report(P[judged], new.positions[judged], task.target)
    if out:
        write_table(out, [*_copied(new.table, task.inputs.columns), *_predictions(task, P)])
    if plot:
        _figure(model, task, P[judged], new.positions[judged]).savefig(plot, dpi=150)


def _probabilities(model: Any, new: New) -> Array:
    """Probabilities of the classes, NaN in rows with a gap."""
    P = np.full((len(new.table), len(model.classes_)), np.nan)
    if new.complete.any():
        with columns_in_order():
            P[new.complete] = model.predict_proba(new.X[new.complete])
    return P


def _report(P: Array, truth: Array, column: str) -> None:
    scores = f"accuracy {_scores.accuracy(P, truth):.1%}, log loss {_scores.log_loss(P, truth):.3g}"
    error = f"expected calibration error {_scores.calibration_error(P, truth):.3g}"
    print(f"score   {scores}, {error} ({counted(len(truth), 'row')} whose {column} is known)")


def _copied(table: Table, inputs: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Columns that are copied to the output: all, or those that are no inputs if there are many."""
    left = () if len(table.names) <= _MOST_COPIED else inputs
    return [(name, table.text(name)) for name in table.names if name not in left]


def _predictions(task: Task, P: Array) -> list[tuple[str, Array]]:
    complete = ~np.isnan(P[:, 0])
    predicted, entropy = np.full(len(P), "", dtype=object), np.full(len(P), np.nan)
    predicted[complete] = task.classes[P[complete].argmax(1)]
    entropy[complete] = multiclass.entropy(P[complete])
    return list(zip(task.outputs, [predicted, *P.T, entropy], strict=True))


def _figure(model: Any, task: Task, P: Array, truth: Array) -> Any:
    """How reliable probabilities are, a map, or relevance: the first of them that can be drawn."""
    from .. import plotting

    if len(truth):
        print("figure  how reliable the probabilities are")
        return plotting.reliability(P, truth, names=task.classes)
    if len(task.inputs.columns) == 2 and not task.inputs.words:
        print("figure  classes over the two inputs, with the points learned from")
        return plotting.class_map(model, model.sample_.X, model.sample_.Y.argmax(1))
    print("figure  relevance of the inputs")
    return plotting.input_relevance(model)

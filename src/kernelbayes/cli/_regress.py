"""`kernelbayes regress`: f(x) from a table of x and y and another of y and z, for a table of new x."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._estimator import columns_in_order
from .._persist import save
from .._table import Table, read_table, write_table
from .._typing import Array
from ..embeddings import PosteriorWarning
from ..regression import TaskTransformedGP
from ..regression._mediated import warn_apart
from ._columns import claimed, counted
from ._files import results, tell_written
from ._in_words import in_words
from ._inputs import counts_rows, is_row_name, listed
from ._kept import add_kept, check_settled, load_kept
from ._options import above_zero, add_seed, names
from ._predicting import check_own
from ._refusal import Refusal, plainly

# Below this share of the prior's variance explained, a prediction is a guess.
_LITTLE = 0.05
# Levels at which coverage is told, and targets for which it is.
_LEVELS, _MOST_CHECKED = (0.5, 0.8, 0.95), 6
# Settled when a model is learned, so not to be given with one that was kept.
_LEARNING = ("pairs", "task", "mediator", "inputs", "targets", "covariance", "mediator_noise", "ard")


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What `regress` takes."""
    command.description = (
        "Regression through a mediator: one table has x and y, another y and z, and nobody has seen x and z "
        "together. Finds f(x) such that the mean of z at each y is the mean of f(x) there. Columns that both tables have "
        "are the mediator y; the others of the first are x, the others of the second z. All are numbers, without gaps."
    )
    learn = command.add_argument_group("learning")
    learn.add_argument("--pairs", metavar="CSV", help="table of x and y")
    learn.add_argument("--task", metavar="CSV", help="table of y and z")
    learn.add_argument(
        "--mediator", type=names, metavar="Y,..", help="columns that tie them together (default: all that both have)"
    )
    learn.add_argument("--inputs", type=names, metavar="X,..", help="columns of x (default: all others of --pairs)")
    learn.add_argument("--targets", type=names, metavar="Z,..", help="columns of z (default: all others of --task)")
    learn.add_argument(
        "--covariance", choices=["full", "map"], help="whether what the pairs leave open counts (default: full)"
    )
    learn.add_argument(
        "--mediator-noise",
        type=_mediator_noise,
        metavar="NOISE",
        help="variance of f(x) at one y: same, as the noise of z; learn, by itself, as for z that are averages; or a "
        "number, of z in standardised units (default: same)",
    )
    learn.add_argument("--ard", action="store_true", help="a lengthscale for each column")
    add_seed(learn)
    add_kept(learn, "model", "--pairs and --task")
    use = command.add_argument_group("predicting")
    use.add_argument("--test", metavar="CSV", help="table of x to predict (default: that of --pairs)")
    use.add_argument("--out", metavar="CSV", help="write the table with mean, standard deviation and mediation")
    use.add_argument(
        "--plot",
        nargs="?",
        const="",
        metavar="PNG",
        help="draw the function with its band and, in a second file, coverage of targets left out (default: beside --out)",
    )
    command.set_defaults(run=run, command="regress")


def run(arguments: argparse.Namespace) -> int:
    """Learn or load, save, predict, report and write, as the arguments ask."""
    _check_together(arguments)
    read = [arguments.pairs, arguments.task, arguments.load, arguments.test]
    saved, out, *plots = results(read, [arguments.save, arguments.out], _figure_names(arguments))
    with plainly():
        samples = None if arguments.load else _samples(arguments)
        kept = _loaded(arguments.load) if arguments.load else None
        roles = samples.roles if samples else _roles_of(kept)
        new = _read_new(samples, roles, arguments, out)
        model = _learned(samples, arguments) if samples else kept
        print("\n".join(_settings(model, roles)), flush=True)
        if saved:
            save(model, saved)
        _apply(model, roles, new, out)
        _draw(model, plots)
    tell_written([saved, out, *plots])
    return 0


# ----------------------------------------------------------------------------------------------- what was asked


def _mediator_noise(text: str) -> str | float:
    """One of two words, or a variance."""
    return text if text in ("same", "learn") else above_zero(text, "same, learn or a number above zero")


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse arguments that lack another or contradict it."""
    if arguments.load:
        check_settled(arguments, "model", _LEARNING)
        if not arguments.test:
            raise Refusal("--load needs --test, a table of x to predict")
    elif not arguments.pairs or not arguments.task:
        raise Refusal(
            "give --pairs, a table of x and y, and --task, a table of y and z; or --load, a model that was kept"
        )
    if arguments.plot == "" and not arguments.out:
        raise Refusal("--plot without a name puts figures beside --out; give one of the two")


def _figure_names(arguments: argparse.Namespace) -> list[str]:
    """Of the function, and of the coverage."""
    if arguments.plot is None:
        return []
    first = Path(arguments.plot) if arguments.plot else Path(arguments.out).with_suffix(".png")
    return [str(first), str(first.with_name(f"{first.stem}-coverage{first.suffix}"))]


# ---------------------------------------------------------------------------------------- which column is what


class Roles(NamedTuple):
    """Which column plays which part."""

    inputs: tuple[str, ...]
    mediator: tuple[str, ...]
    targets: tuple[str, ...]

    def __str__(self) -> str:
        return f"{listed(self.targets)} from {listed(self.inputs)}, through {listed(self.mediator)}"

    @property
    def outputs(self) -> list[str]:
        """Columns of predictions."""
        return [*(f"{name}_{part}" for name in self.targets for part in ("mean", "std")), "mediation"]


class Samples(NamedTuple):
    """Both tables, and what is in them."""

    roles: Roles
    pairs: Table
    X: Array
    Y: Array
    Y_task: Array
    z: Array


def _samples(arguments: argparse.Namespace) -> Samples:
    pairs, task = read_table(arguments.pairs), read_table(arguments.task)
    for label, table in (("pairs", pairs), ("task", task)):
        print(f"{label:8}{table.source}: {counted(len(table), 'row')}")
        if len(table) < 2:
            raise Refusal(f"{table.source} has {counted(len(table), 'row')}; at least two are needed")
    roles = _roles(pairs, task, arguments)
    X, Y, Y_task, z = (
        _numbers(table, columns, option)
        for table, columns, option in (
            (pairs, roles.inputs, "--inputs"),
            (pairs, roles.mediator, "--mediator"),
            (task, roles.mediator, "--mediator"),
            (task, roles.targets, "--targets"),
        )
    )
    print(f"columns {roles}", flush=True)
    if set(roles.inputs) <= set(task.names):
        print(f"note    {task.source} has {listed(roles.inputs)} too: ordinary regression on it needs no mediator")
    return Samples(roles, pairs, X, Y, Y_task, z)


def _roles(pairs: Table, task: Table, arguments: argparse.Namespace) -> Roles:
    """The part of each column, as asked or by default."""
    mediator, inputs, targets = (getattr(arguments, part) or [] for part in ("mediator", "inputs", "targets"))
    _check_named(pairs, task, {"--mediator": mediator, "--inputs": inputs, "--targets": targets})
    asked = {*inputs, *targets}
    shared = [name for name in pairs.names if name in task.columns and name not in asked]
    if not mediator and not shared:
        raise Refusal(
            f"{pairs.source} ({listed(pairs.names)}) and {task.source} ({listed(task.names)}) share no column, but the "
            "mediator must be in both" + _alike(pairs, task)
        )
    mediator = mediator or _without_numbers_of_rows(shared, [pairs, task], "--mediator")
    both = {*shared, *mediator}
    ours, theirs = ([name for name in table.names if name not in both] for table in (pairs, task))
    inputs = inputs or _without_numbers_of_rows([name for name in ours if name not in targets], [pairs], "--inputs")
    targets = targets or _without_numbers_of_rows([name for name in theirs if name not in inputs], [task], "--targets")
    for found, table, option in ((inputs, pairs, "--inputs"), (targets, task, "--targets")):
        if not found:
            raise Refusal(
                f"all columns of {table.source} are in the other table too, so none is left for {option}; name them there"
            )
    return Roles(tuple(inputs), tuple(mediator), tuple(targets))


def _alike(pairs: Table, task: Table) -> str:
    """What to say of columns that would be shared if they were spelled alike."""
    lower = {theirs.lower(): theirs for theirs in reversed(task.names)}
    both = ((ours, lower[ours.lower()]) for ours in pairs.names if ours.lower() in lower)
    return next((f"; spell {ours!r} and {theirs!r} alike if they are one" for ours, theirs in both), "")


def _check_named(pairs: Table, task: Table, asked: dict[str, list[str]]) -> None:
    """Refuse names that are in no table where they should be, or in two options."""
    where = {"--mediator": (pairs, task), "--inputs": (pairs,), "--targets": (task,)}
    claimed(asked, where)


def _without_numbers_of_rows(columns: list[str], tables: list[Table], option: str) -> list[str]:
    """All columns but those that only count the rows of their table, unless there are no others.

    What two tables share may well count something else, such as days, so there the name has to say it too.
    """
    counting = [
        name
        for name in columns
        if (len(tables) == 1 or is_row_name(name))
        and all(table.is_numeric(name) and counts_rows(table, name) for table in tables)
    ]
    if counting and len(counting) == len(columns):
        return columns
    for name in counting:
        print(f"note    {name} counts the rows, and is left out; name it in {option} to keep it")
    return [name for name in columns if name not in counting]


def _numbers(table: Table, columns: Sequence[str], option: str) -> Array:
    """Columns as numbers without gaps, or a refusal that says which to choose."""
    table.require(columns)
    for name in columns:
        if table.is_empty(name):
            raise Refusal(f"{table.source} has nothing in column {name!r}; name the columns to use in {option}")
        if not table.is_numeric(name):
            try:
                table.numbers([name])
            except ValueError as reason:  # it names the cell, and says what a decimal comma should be
                raise Refusal(f"{reason} ({option} names the columns to use)") from None
    return table.numbers(columns)


# ---------------------------------------------------------------------------------------------------- learning


def _learned(samples: Samples, arguments: argparse.Namespace) -> Any:
    model: Any = TaskTransformedGP(
        mediator_noise=None if arguments.mediator_noise == "same" else arguments.mediator_noise,
        covariance=arguments.covariance or "full",
        ard=arguments.ard,
        random_state=arguments.seed,
    )
    model.fit(samples.X, samples.Y, samples.Y_task, samples.z)
    roles = samples.roles
    model.feature_names_in_ = np.array(roles.inputs, dtype=object)
    model.mediator_columns_, model.target_columns_ = roles.mediator, roles.targets
    return model


def _loaded(path: str) -> Any:
    model = load_kept(path, TaskTransformedGP, "target_columns_", "regression")
    print(f"columns {_roles_of(model)}")
    warn_apart(model.Y_, model.Y_task_)  # this and more was said when it was learned
    model._warn_unmediated()
    model._warn_narrow()
    model._warn_untold()
    return model


def _roles_of(model: Any) -> Roles:
    return Roles(tuple(map(str, model.feature_names_in_)), tuple(model.mediator_columns_), tuple(model.target_columns_))


def _settings(model: Any, roles: Roles) -> list[str]:
    """What was chosen, and how well it does on targets left out."""
    noise = np.sqrt(model.noise_) * model.unit_
    spread = np.sqrt(model.mediator_noise_) * model.unit_
    each, spreads = (
        listed([f"{value:.3g} of {name}" for name, value in zip(roles.targets, values, strict=True)])
        for values in (noise, spread)
    )
    count = counted(len(model.z_task_), "row")
    return [
        f"model   {model.covariance} covariance, by marginal likelihood ({model.log_marginal_likelihood_:.5g})",
        f"kernels of inputs: {in_words(model.kernel_, roles.inputs)}",
        f"        of the mediator: {in_words(model.mediator_kernel_, roles.mediator)}",
        f"noise   standard deviation {each}"
        + (f"; of the function at one y {spreads}" if model.mediator_noise_ != model.noise_ else ""),
        f"freedom {model.degrees_of_freedom_:.1f} effective degrees of it, settled by {count} of the task",
        *_checks(model, roles),
        "        These are shares of targets; where the function is steep at one y, its own band may hold less of it",
    ]


def _checks(model: Any, roles: Roles) -> list[str]:
    """Coverage of each target left out: together they may look right where none is."""
    from scipy.stats import norm

    mean, std = model.left_out()
    needed = 2.0 * norm.cdf(np.abs(model.z_task_ - mean) / std) - 1.0
    return [
        f"check   {name} left out: "
        + ", ".join(f"{level:.0%} intervals hold {np.mean(needed[:, j] <= level):.1%}" for level in _LEVELS)
        for j, name in enumerate(roles.targets[:_MOST_CHECKED])
    ]


# -------------------------------------------------------------------------------------------------- predicting


class New(NamedTuple):
    """A table to be predicted."""

    table: Table
    X: Array


def _read_new(samples: Samples | None, roles: Roles, arguments: argparse.Namespace, out: Path | None) -> New:
    table = read_table(arguments.test) if arguments.test else samples.pairs if samples else None
    assert table is not None  # one of the two was asked for
    X = _numbers(table, roles.inputs, "--inputs") if arguments.test or samples is None else samples.X
    check_own(table, roles.outputs, out)
    return New(table, X)


def _apply(model: Any, roles: Roles, new: New, out: Path | None) -> None:
    """Predict a table, report and write."""
    with columns_in_order(), warnings.catch_warnings():
        warnings.simplefilter("ignore", PosteriorWarning)  # what is not known is told below
        mean, std = model.predict(new.X, return_std=True)
        known = model.mediation(new.X)
    print(f"test    {new.table.source}: {counted(len(known), 'row')}, mediation {known.min():.2f} to {known.max():.2f}")
    guess = known < _LITTLE
    if guess.any():
        rows = counted(int(guess.sum()), "row")
        print(
            f"beware  in {rows} x lies outside what pairs and task tell of, and the mean is a guess: see the column "
            "mediation"
        )
    _report(new.table, roles, mean, guess)
    if out:
        found = [column for pair in zip(mean.T, std.T, strict=True) for column in pair]
        copied = [(name, new.table.text(name)) for name in new.table.names]
        write_table(out, [*copied, *zip(roles.outputs, [*found, known], strict=True)])


def _report(table: Table, roles: Roles, mean: Array, guess: Array) -> None:
    """How far predictions are from targets that the table happens to have: all, and those that are no guesses."""
    for j, name in enumerate(roles.targets):
        if name not in table.columns or not table.is_numeric(name):
            continue
        truth = table.numbers([name], gaps="allow")[:, 0]
        judged = ~np.isnan(truth)
        print(f"score   {name}: {_score(mean[:, j], truth, judged)} where it is known)")
        sure = judged & ~guess
        if sure.any() and (judged & guess).any():
            print(f"        {_score(mean[:, j], truth, sure)} without guesses)")


def _score(mean: Array, truth: Array, rows: Array) -> str:
    """The error in some rows beside what it has to be compared with, and, after a bracket, how many they are."""
    error = float(np.sqrt(np.mean((mean[rows] - truth[rows]) ** 2)))
    count = counted(int(rows.sum()), "row")
    return f"root mean square error {error:.3g}, standard deviation {truth[rows].std():.3g} ({count}"


def _draw(model: Any, plots: Sequence[Path | None]) -> None:
    """The function with its band, and the coverage, if asked for."""
    if not plots:
        return
    from .. import plotting

    for path, figure in zip(plots, (plotting.function_band(model), plotting.coverage(model)), strict=True):
        figure.savefig(path, dpi=150)
    print("figures the function with its band; coverage of targets left out")

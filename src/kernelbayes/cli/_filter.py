"""`kernelbayes filter`: learn a filter from one table, run it on another, write the track as a table and a figure."""

from __future__ import annotations

import argparse
import functools
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._persist import save
from .._table import Table, read_table, write_table
from .._typing import Array
from ..filters import KernelBayesFilter, Track, TrackDiagnostics
from ..rules.bayes import RULES
from ._columns import (
    Group,
    Roles,
    add_clock,
    clock,
    counted,
    in_sequences,
    mention_risers,
    mention_times,
    roles_of,
    sequences,
    steps_of,
    times_of,
)
from ._files import results, tell_written
from ._kept import add_kept, check_train_or_load, load_kept
from ._options import add_seed, names, share, whole
from ._predicting import mention_same
from ._refusal import plainly

_MOST_FIGURES = 20


def add_arguments(command: argparse.ArgumentParser) -> None:
    """What `filter` takes."""
    command.description = (
        "Learn from a table of states and observations over time, and find the states of another table. "
        "Rows are time steps, equally spaced; empty cells among the observations of the second table are missing ones."
    )
    learn = command.add_argument_group("learning")
    learn.add_argument("--train", metavar="CSV", help="table to learn from")
    learn.add_argument("--states", type=names, metavar="X,Y", help="columns of it that are wanted")
    learn.add_argument(
        "--observations",
        type=names,
        metavar="A,B",
        help="columns to find them from (default: the other numeric ones)",
    )
    learn.add_argument(
        "--controls", type=names, metavar="U,V", help="columns that moved the state to that of their row"
    )
    learn.add_argument("--rule", choices=[*RULES], help="kernel Bayes' rule of the correction (default: iw)")
    learn.add_argument(
        "--tune",
        type=functools.partial(whole, at_least=0),
        metavar="N",
        help="settings to try when choosing them from the training table",
    )
    add_seed(learn)
    add_kept(learn, "filter", "--train and --states")
    use = command.add_argument_group("filtering")
    use.add_argument("--test", metavar="CSV", help="table to filter")
    use.add_argument("--smooth", action="store_true", help="use later observations too, not only earlier ones")
    use.add_argument("--out", metavar="CSV", help="write the states found: mean, std and interval of each")
    use.add_argument("--plot", metavar="PNG", help="draw them; one figure for each sequence")
    use.add_argument("--level", type=share, default=0.9, help="mass of the intervals (default: %(default)s)")
    add_clock(command.add_argument_group("both tables"))
    command.set_defaults(run=run, command="filter")


def run(arguments: argparse.Namespace) -> int:
    """Learn or load, save, filter, report and write, as the arguments ask."""
    check_train_or_load(
        arguments,
        "filter",
        "filter",
        needed=("states", "the columns that are wanted"),
        settled=("states", "observations", "controls", "rule", "tune"),
        using=("out", "plot", "smooth"),
    )
    read = [arguments.train, arguments.load, arguments.test]
    saved, out, plot = results(read, [arguments.save, arguments.out], [arguments.plot])
    with plainly():
        test = read_table(arguments.test) if arguments.test else None
        train = read_table(arguments.train) if arguments.train else None
        kept = load_kept(arguments.load, KernelBayesFilter, "observation_names_", "filter") if arguments.load else None
        roles = _roles(arguments, train, test, kept)
        new = None if test is None else _read(test, roles)
        model = kept if train is None else _learned(train, roles, arguments)
        print("\n".join(_settings(model)), flush=True)
        if saved:
            save(model, saved)
        drawn = [] if new is None else _follow(model, new, arguments, out, plot)
    tell_written([saved, out, *drawn])
    return 0


# --------------------------------------------------------------------------------------------------- learning


def _roles(arguments: argparse.Namespace, train: Table | None, test: Table | None, kept: Any) -> Roles:
    """Which column is what: as asked and by default, or as it was when the filter was learned."""
    if train is not None:
        return roles_of(arguments, [train] if test is None else [train, test])
    assert test is not None
    observations, states, controls = (
        list(part) for part in (kept.observation_names_, kept.state_names_, kept.control_names_)
    )
    own = [*observations, *controls, *filter(None, (arguments.time, arguments.sequence))]
    test.require(own)
    time = arguments.time or clock([test], {*own, *states})
    return Roles(observations, states, controls, time, arguments.sequence)


def _learned(train: Table, roles: Roles, arguments: argparse.Namespace) -> Any:
    columns = [train.numbers(part, gaps="allow") for part in (roles.observations, roles.states, roles.controls)]
    groups = sequences(train, roles.sequence)
    lost = int(np.isnan(np.concatenate(columns, axis=1)).any(1).sum())
    gaps = f"; {counted(lost, 'row')} with a gap left out" if lost else ""
    print(f"train   {train.source}: {counted(len(train), 'row')}{in_sequences(groups)}{gaps}")
    print(f"columns {roles}", flush=True)
    if not arguments.observations:
        mention_risers(train, roles, groups)
    mention_times(train, roles, groups)
    settings = {"rule": arguments.rule, "tune": arguments.tune, "random_state": arguments.seed}
    model: Any = KernelBayesFilter(**{name: value for name, value in settings.items() if value is not None})
    observations, states, controls = ([values[rows] for _, rows in groups] for values in columns)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*rows with gaps")  # said already
        model.fit(observations, states, controls if roles.controls else None)
    parts = (tuple(part) for part in (roles.observations, roles.states, roles.controls))
    model.observation_names_, model.state_names_, model.control_names_ = parts
    return model


def _settings(model: Any) -> list[str]:
    """What was chosen, in a line or two."""
    kernels = {"states": model.latent_kernel_, "observations": model.kernel_, "controls": model.control_kernel_}
    shown = ", ".join(f"{part} {kernel}" for part, kernel in kernels.items() if kernel is not None)
    regs = ", ".join(f"{name} {getattr(model, name + '_'):.2g}" for name in ("reg", "prior_reg", "transition_reg"))
    lines = [f"filter  rule {model.rule}; {shown}", f"        {regs}"]
    if model.trials_:
        tried = counted(model.trials_, "setting")
        lines[1] += f"; of {tried} tried, the best left {model.score_:.0%} of the spread as error"
    return lines


# -------------------------------------------------------------------------------------------------- filtering


class New(NamedTuple):
    """A table to be filtered: what is given, and what is known of the answer."""

    table: Table
    roles: Roles
    groups: list[Group]
    observations: Array
    controls: Array | None
    truth: Array | None


def _read(table: Table, roles: Roles) -> New:
    known = all(name in table.names and table.is_numeric(name) for name in roles.states)
    return New(
        table,
        roles,
        sequences(table, roles.sequence),
        table.numbers(roles.observations, gaps="allow"),
        table.numbers(roles.controls) if roles.controls else None,
        table.numbers(roles.states, gaps="allow") if known else None,
    )


def _follow(model: Any, new: New, arguments: argparse.Namespace, out: Path | None, plot: Path | None) -> list[Path]:
    """Filter a table, report, write; the figures that were drawn."""
    track = _filtered(model, new, arguments.smooth)
    table, roles, groups = new[:3]
    print(f"test    {table.source}: {counted(len(table), 'row')}{in_sequences(groups)}{_unseen(new.observations)}")
    mention_times(table, roles, groups)
    mention_same(arguments)
    _report(track, new.truth, arguments.level)
    if out:
        copied = [(name, table.text(name)) for name in (roles.sequence, roles.time) if name]
        own = [] if roles.time else [("step", steps_of(groups, len(table)))]
        write_table(out, [*copied, *own, *track._columns(arguments.level)])
    return _draw(track, new.truth, groups, plot, arguments.level) if plot else []


def _filtered(model: Any, new: New, smooth: bool) -> Track:
    """The tracks of all sequences as one, its steps in the order of the rows of the table."""
    rows = [rows for _, rows in new.groups]
    controls = None if new.controls is None else [new.controls[own] for own in rows]
    tracks = (model.smooth if smooth else model.filter)([new.observations[own] for own in rows], controls)
    back = np.argsort(np.concatenate(rows))
    weights = np.concatenate([track.weights for track in tracks])[back]
    fields = zip(*(vars(track.diagnostics).values() for track in tracks), strict=True)
    diagnostics = TrackDiagnostics(*(np.concatenate(values)[back] for values in fields))
    times = times_of(new.table, new.roles.time, new.groups)
    return Track(tracks[0].points, weights, tracks[0].kernel, diagnostics, times=times, names=new.roles.states)


def _report(track: Track, truth: Array | None, level: float) -> None:
    if truth is not None:
        score = track.score(truth, level)
        errors = ", ".join(f"{name} {value:.4g}" for name, value in zip(track.names, score.rmse, strict=True))
        inside = ", ".join(f"{share:.0%}" for share in score.coverage)
        print(f"error   {errors} (root mean square); the {level:.0%} intervals hold {inside} of the true states")
    for problem in track.diagnostics.problems:
        print(f"beware  {problem}")


def _unseen(observations: Array) -> str:
    missing = np.isnan(observations)
    if not missing.any():
        return ""
    partly = int((missing.any(1) & ~missing.all(1)).sum())
    among = f" ({counted(partly, 'row')} in part)" if partly else ""
    return f"; {counted(int(missing.any(1).sum()), 'row')} without an observation{among}"


def _draw(track: Track, truth: Array | None, groups: list[Group], plot: Path, level: float) -> list[Path]:
    """A figure for each sequence, named after it where there are several."""
    drawn = []
    for i, (value, rows) in enumerate(groups[:_MOST_FIGURES]):
        word = re.sub(r"[^\w.+-]+", "_", value) or str(i)
        path = plot.with_name(f"{plot.stem}-{word}{plot.suffix}") if len(groups) > 1 else plot
        track._at(rows).plot(None if truth is None else truth[rows], level=level).savefig(path, dpi=150)
        drawn.append(path)
    if len(groups) > _MOST_FIGURES:
        print(f"note    drawn are the first {_MOST_FIGURES} of {len(groups)} sequences")
    return drawn

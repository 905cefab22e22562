"""Choosing the settings of a filter by filtering stretches of the training log that were left out of training.

The log is cut into stretches of some forty steps; every third is left out in turn, the filter is learned from the others,
and runs on all stretches left out, with several values of `reg`, at once. The score is the root mean squared error of the
mean times the continuous ranked probability score, each relative to the spread of the states: the first asks for a good
mean, the second for an honest width. Xu et al. (2022), section 5.2, score the last 200 steps by the error alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._linalg import FactorisationError, one_thread
from .._progress import progress_bar
from .._typing import Array
from ..features import Recipe, Subspace
from ..kernels import Gaussian, Kernel
from ..kernels._bandwidth import lengthscale_of
from ..learning._search import pattern_search
from ..rules.bayes import RULES
from ._dynamics import Log
from ._noise import marks
from ._recursion import Observed, Recursion, Run, Settings
from ._track import _ranked_scores

# First guesses: multiples of the median distance, and regularisers in units of the kernel.
_KERNEL_FACTOR, _LATENT_FACTOR, _CONTROL_FACTOR = 1.0, 0.5, 1.0
_REG = {"plain": 1e-2, "squared": 1e-4}
_PRIOR_REG = _TRANSITION_REG = 1e-3
_SMALLEST_REG, _LARGEST_REG = -9.0, 0.0  # powers of ten, of what is searched
_STRETCH = 40
# Up to so many rows every stretch is left out once, in three folds; beyond, some stretches in one fold.
_FOLDED_ROWS, _FOLDS = 400, 3
_MOST_STRETCHES = 8
_MOST_TRAINED = 2000
# Steps after the start that do not count.
_BURN_IN = 3
# Multiples of the best reg so far that are tried together; more at the first trial.
_REGS, _FIRST_REGS = 10.0 ** np.array([-0.5, 0.0, 0.5]), 10.0 ** np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
_REG_BOUNDS = 1e-8, 1e3
# Enough of the kernel of observations to compare settings by.
_TOL = 1e-3
# In logarithms: how much worse a trial must be after some folds not to be tried on the others.
_CLEARLY = 0.02


class Fold(NamedTuple):
    """A part of the log to learn from, and stretches of equal length left out of it."""

    log: Log
    observations: list[Array]
    states: list[Array]
    controls: list[Array | None]


class Choice(NamedTuple):
    """What was chosen, how well it did, and after how many trials."""

    settings: Settings
    score: float
    trials: int


class Candidate(NamedTuple):
    """Settings as a point to be searched over: multipliers of first guesses, in logarithms to base 2 or 10."""

    names: tuple[str, ...]
    start: Array
    step: Array
    lower: Array
    upper: Array
    make: Callable[[Array], Settings]


class Given(NamedTuple):
    """Settings as the user gave them; None is to be chosen."""

    kernel: Kernel | None
    latent_kernel: Kernel | None
    control_kernel: Kernel | None
    reg: float | None
    prior_reg: float | None
    transition_reg: float | None


def candidate(log: Log, rule: str, given: Given, latent_recipe: Recipe | None) -> Candidate:
    """What is searched over, with first guesses, and how to make settings of it."""
    kernels = given[:3]
    spread = {
        "kernel": None if given.kernel else _spread(log.observations, "observations"),
        "latent_kernel": None if given.latent_kernel else _spread(log.points, "states"),
        "control_kernel": None if given.control_kernel or log.controls is None else _spread(log.controls, "controls"),
    }
    names = [name for name, value in spread.items() if value is not None]
    names += [name for name in ("prior_reg", "transition_reg") if getattr(given, name) is None]
    guess = {"kernel": _KERNEL_FACTOR, "latent_kernel": _LATENT_FACTOR, "control_kernel": _CONTROL_FACTOR}
    guess |= {"prior_reg": _PRIOR_REG, "transition_reg": _TRANSITION_REG}

    def make(point: Array) -> Settings:
        value = guess | {name: 10.0**x for name, x in zip(names, point, strict=True)}
        made = [
            kernel or (None if wide is None else Gaussian(value[name] * wide))
            for (name, wide), kernel in zip(spread.items(), kernels, strict=True)
        ]
        if log.controls is None:
            made[2] = None
        assert made[0] is not None
        assert made[1] is not None
        unit = _unit(latent_recipe, made[1], log.points)
        size = float(np.mean(made[0]._diag(log.observations[:200])))
        inverse = RULES[rule].inverse
        reg = given.reg or _REG[inverse] * (size if inverse == "plain" else size**2)
        prior_reg = given.prior_reg or value["prior_reg"] * unit
        return Settings(
            made[0], made[1], made[2], reg, prior_reg, given.transition_reg or value["transition_reg"] * unit
        )

    start = np.log10([guess[name] for name in names]) if names else np.zeros(0)
    is_reg = np.array([name.endswith("reg") for name in names], dtype=bool)
    return Candidate(
        tuple(names),
        start,
        np.where(is_reg, 1.0, np.log10(2.0)),
        np.where(is_reg, _SMALLEST_REG, start - 1.5),
        np.where(is_reg, _LARGEST_REG, start + 1.5),
        make,
    )


def _spread(points: Array, name: str) -> Array:
    return np.asarray(lengthscale_of(points, name, per_column=True))


def _unit(recipe: Recipe | None, kernel: Kernel, points: Array) -> float:
    """The mean square of the coordinates, of which a regulariser is a share."""
    some = points[np.linspace(0, len(points) - 1, min(len(points), 200)).astype(int)]
    if isinstance(recipe, Subspace) and not recipe.whiten:
        return float((kernel.gram(some, some) ** 2).mean() * min(recipe.size, len(points)))
    return float(np.mean(kernel._diag(some)))


def folds(log: Log, lengths: Array, controls: Array | None, rng: np.random.Generator) -> list[Fold]:
    """Cut a log of sequences of these lengths into folds; controls (n, c) are those of its rows."""
    stretches = _stretches(lengths)
    n = len(log.observations)
    usual = float(np.median([len(rows) for rows in stretches]))
    usable = [i for i, rows in enumerate(stretches) if 2 * len(rows) > usual]
    if n <= _FOLDED_ROWS:
        groups = [usable[k::_FOLDS] for k in range(_FOLDS)]
    else:
        count = min(max(_MOST_STRETCHES, int(_MOST_STRETCHES * _STRETCH / usual)), len(usable) // 3)
        groups = [[usable[i] for i in np.linspace(0, len(usable) - 1, count + 2).astype(int)[1:-1]]]
    made = [_fold(log, [stretches[i] for i in group], controls, rng) for group in groups if group]
    return [fold for fold in made if fold is not None]


def _stretches(lengths: Array) -> list[Array]:
    """Rows of consecutive steps of one sequence; shorter ones of a short log, so that there are some to leave out."""
    size = min(_STRETCH, max(8, int(np.sum(lengths)) // 6))
    rows: list[Array] = []
    start = 0
    for length in lengths:
        rows += np.array_split(np.arange(start, start + length), max(1, round(length / size)))
        start += length
    return rows


def _fold(log: Log, held: list[Array], controls: Array | None, rng: np.random.Generator) -> Fold | None:
    n = len(log.observations)
    kept = np.ones(n, dtype=bool)
    kept[np.concatenate(held)] = False
    if kept.sum() > _MOST_TRAINED:  # contiguous, so that transitions are kept too
        first = int(rng.integers(int(kept.sum()) - _MOST_TRAINED + 1))
        rows = np.flatnonzero(kept)
        kept[rows[:first]] = kept[rows[first + _MOST_TRAINED :]] = False
    if kept.sum() < 4:
        return None
    part = _part(log, kept)
    if len(part.before) < 2:
        return None
    length = min(map(len, held))
    held = [rows[:length] for rows in held]
    return Fold(
        part,
        [log.observations[rows] for rows in held],
        [log.points[rows] for rows in held],
        [None if controls is None else controls[rows] for rows in held],
    )


def _part(log: Log, kept: Array) -> Log:
    """The log of some of its rows: separate transitions are kept, those between rows only where both are."""
    extra = np.ones(len(log.points) - len(kept), dtype=bool)
    on = np.concatenate([kept, extra])
    place = np.cumsum(on) - 1
    both = on[log.before] & on[log.after]
    return Log(
        log.observations[kept],
        log.points[on],
        place[log.before[both]],
        place[log.after[both]],
        None if log.controls is None else log.controls[both],
    )


def choose(
    candidate: Candidate,
    folds: list[Fold],
    recursion: Callable[[Log, Settings, float], Recursion],
    *,
    reg: bool,
    budget: int,
    progress: bool | None,
) -> Choice:
    """The settings whose filters do best on the stretches left out; `reg` says whether it is to be chosen too."""
    if not (len(candidate.start) or reg):
        budget = 1  # nothing to choose, but a score to be had
    bounds = candidate.lower, candidate.upper
    with progress_bar(budget, "tuning", progress, leave=False) as bar, one_thread():

        def report(score: float) -> None:
            bar.update()
            bar.set_postfix(score=f"{score:.3f}")

        trials = _Trials(candidate, folds, recursion, reg, report)
        found = pattern_search(trials, candidate.start, candidate.step, *bounds, budget=budget)
    settings = candidate.make(found.point)
    settings = settings._replace(reg=settings.reg * trials.multiple)
    return Choice(settings, float(np.exp(0.5 * found.value)), found.evaluations)


class _Trials:
    """The objective of the search: remembers the best trial, whose `reg` the next ones try first, and gives up early."""

    def __init__(
        self,
        candidate: Candidate,
        folds: list[Fold],
        recursion: Callable[[Log, Settings, float], Recursion],
        reg: bool,
        report: Callable[[float], None],
    ):
        self.candidate, self.folds, self.recursion, self.reg, self.report = candidate, folds, recursion, reg, report
        spread = np.concatenate([fold.log.states for fold in folds]).std(0)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.best = np.full(len(folds), np.inf)  # scores on the folds
        self.multiple, self.count = 1.0, 0

    def __call__(self, point: Array) -> float:
        """The mean score over the folds, or over the first ones where these are clearly worse than the best trial's."""
        multiples = self._multiples()
        settings = self.candidate.make(point)
        scores = np.empty((0, len(multiples)))
        for fold in self.folds:
            scores = np.vstack([scores, _scores(fold, self.recursion, settings, multiples, self.scale)])
            if scores.mean(0).min() > self.best[: len(scores)].mean() + _CLEARLY:
                break
        i = int(np.argmin(scores.mean(0)))
        if len(scores) == len(self.folds) and scores[:, i].mean() < self.best.mean():
            self.best, self.multiple = scores[:, i], float(multiples[i])
        self.count += 1
        self.report(float(np.exp(0.5 * self.best.mean())))
        return float(scores[:, i].mean()) if len(scores) == len(self.folds) else np.inf

    def _multiples(self) -> Array:
        if not self.reg:
            return np.ones(1)
        return np.clip(self.multiple * (_REGS if self.count else _FIRST_REGS), *_REG_BOUNDS)


def _scores(
    fold: Fold,
    recursion: Callable[[Log, Settings, float], Recursion],
    settings: Settings,
    multiples: Array,
    scale: Array,
) -> Array:
    """Logarithm of (squared error x squared ranked score) / 2 for each multiple of reg; infinite where a filter fails."""
    count = len(fold.states)
    try:
        model = recursion(fold.log, settings._replace(reg=np.repeat(settings.reg * multiples, count)), _TOL)
        sequences = [
            Observed(model.features._coordinates(X), there := np.ones(len(X), dtype=bool), U, marks=marks(X, there))
            for X, U in zip(fold.observations, fold.controls, strict=True)
        ]
        runs = model.run(sequences * len(multiples), None)
    except FactorisationError:
        return np.full(len(multiples), np.inf)
    truth = np.concatenate(fold.states).reshape(count, -1, fold.log.points.shape[1])
    return np.array([_score(model, runs[i * count : (i + 1) * count], truth, scale) for i in range(len(multiples))])


def _score(model: Recursion, runs: list[Run], truth: Array, scale: Array) -> float:
    from_step = min(_BURN_IN, truth.shape[1] - 1)
    W = np.concatenate([model.formed(run)[from_step:] for run in runs])
    wanted = truth[:, from_step:].reshape(-1, truth.shape[2])
    points = model.log.points
    W = W / W.sum(1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):
        squared = (((W @ points - wanted) / scale) ** 2).mean()
        ranked = np.mean([_ranked_scores(points[:, j], W, wanted[:, j]).mean() / s for j, s in enumerate(scale)])
        score = float(0.5 * np.log(squared) + np.log(ranked))
    return score if np.isfinite(score) else np.inf

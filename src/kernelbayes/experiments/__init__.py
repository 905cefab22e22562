"""Published experiments as commands, one module each.

An experiment is a module with a one-line `TITLE`, its `SOURCE`, and a function `run(study)` that prints nothing and returns
a `Result`. If it can use data that the project does not contain, `DATA` names the file, or patterns of files with " or "
between them, and `study.read` or `_labelled` reads it. To add one, write the module and name it in `EXPERIMENTS`. Most need
little more than a function of one repeat:

    def _once(settings, rng):
        ...
        return {"iw": error_of_one_method, "original": error_of_the_other}

    def run(study):
        settings = {"n": 200, "dimensions": [2, 8, 32], "repeats": 3 if study.quick else 30}
        runs = study.repeat(_once, settings, [{"dimension": d} for d in settings["dimensions"]])
        table = Table("Mean squared error", ["dimension", "IW", "original"],
                      columns(runs.case("dimension"), runs.estimates("iw"), runs.estimates("original")))
        figure, ax = panels(1, 1, (5, 4))
        curves(ax, runs.case("dimension"), runs, {"iw": ("IW", INK), "original": ("original", ACCENT)})
        return Result(settings, [table], [_claim(runs)], [study.save(figure)], runs)

The study loops over cases and repeats, gives each its own random numbers, saves each when it is done and goes on from there
when the same experiment is called again. `panels`, `curves` and colours are in `_figures`. A claim compares what the source
says with numbers that the run computed; the function that judges it takes `Runs` and nothing else, so that it can be tested
on made-up ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from .._catalogue import Catalogue
from ._estimates import Estimate, jackknife, rate, rate_of_means
from ._result import Claim, Result, Table, columns, verdict, write
from ._study import Runs, Study

__all__ = [
    "EXPERIMENTS",
    "Claim",
    "Estimate",
    "Outcome",
    "Result",
    "Runs",
    "Study",
    "Table",
    "columns",
    "jackknife",
    "rate",
    "rate_of_means",
    "run",
    "verdict",
]

#: Name on the command line -> module, in the order in which they are listed.
EXPERIMENTS = Catalogue(
    __name__,
    {
        "posterior-mean": "posterior_mean",
        "resampling": "resampling",
        "decoding": "decoding",
        "rotation": "rotation",
        "oscillatory": "oscillatory",
        "state-space": "state_space",
        "pendulum": "pendulum",
        "filter-choices": "filter_choices",
        "exponential-gamma": "exponential_gamma",
        "blowfly": "blowfly",
        "lotka-volterra": "lotka_volterra",
        "posterior-zoo": "posterior_zoo",
        "iris": "iris",
        "uci": "uci",
        "regression-distributions": "regression_distributions",
        "mnist-relevance": "mnist_relevance",
        "mnist-network": "mnist_network",
        "sparse-points": "sparse_points",
        "task-transform": "task_transform",
        "quadrature": "quadrature",
    },
)


@dataclass(frozen=True)
class Outcome:
    """A finished run: its result, and the file that holds everything."""

    study: Study
    result: Result
    record: Path
    seconds: float

    def lines(self) -> list[str]:
        """As it is printed, below the title: the result, what was read back, and where the files are."""
        files = ", ".join(map(str, [*self.result.figures, self.record]))
        return [*self.result.lines(self.study.quick), "", *self._read_back(), f"{self.seconds:.1f} s. Files: {files}"]

    def _read_back(self) -> list[str]:
        runs = self.result.runs
        if runs is None or not runs.read_back:
            return []
        total = next(iter(runs.values.values())).size
        older = "" if runs.same_code else ", some from other source code than the present"
        return [
            f"{runs.read_back} of {total} results were read back from {self.study.journal}{older}; --fresh runs them anew."
        ]


def run(
    name: str,
    out: Path | str,
    seed: int = 0,
    quick: bool = False,
    progress: bool = False,
    fresh: bool = False,
    data: Path | str | None = None,
) -> Outcome:
    """Run an experiment by its name on the command line and write its files into the folder `out`.

    Args:
        name: one of `EXPERIMENTS`.
        out: a folder, made if need be.
        seed: same seed, same numbers.
        quick: fewer repeats and cases; files of its own, `<name>-quick.*`.
        progress: show a progress bar on standard error, if that is a terminal.
        fresh: forget the repeats that an earlier call has saved.
        data: the folder with the files that the experiment's `DATA` names; without it, it makes do with made-up data, or
            with what scikit-learn ships.
    """
    start = time.perf_counter()
    module = EXPERIMENTS[name]
    if data is not None and not hasattr(module, "DATA"):
        raise ValueError(f"the experiment {name} reads no data")
    study = Study(name, Path(out), seed, quick, progress, None if data is None else Path(data))
    study.out.mkdir(parents=True, exist_ok=True)
    if fresh:
        study.journal.unlink(missing_ok=True)
    result = module.run(study)
    seconds = time.perf_counter() - start
    return Outcome(study, result, write(study, result, seconds, title=module.TITLE, source=module.SOURCE), seconds)

r"""A function of x from pairs (x, y) and, apart from them, pairs (y, z). Hsu (2019), section 5.9.1, figure 5.3.

Pairs are `x_i = r(y_i) + noise`; the task is `z_j = f(r(y_j) + noise) + noise`, and f is asked for. All y are uniform on
(-6, 6), all noises normal with standard deviation 0.25. The thesis does not print r and f. Two sets of them are tried:

| functions | r(y) | f(x) | errors are over |
|---|---|---|---|
| authors | through five points (y, x), y from -5 to 4 | through five points (x, z), x from -4 to 2 | -5 < x < 5 |
| ours | `2.5 sin(0.9 y) + 0.25 y` | `sin(2 x) + 0.15 x^2` | -2.5 < x < 2.5 |

The first are those of the notebook that the authors published (https://github.com/Kelvin-Hsu/bake): means of Gaussian
processes with a Gaussian kernel of lengthscale 1 and no noise. Both have several y for most x.

| solution | what it is |
|---|---|
| TTGP | `kb.TaskTransformedGP()` as it comes: everything learned, g uncertain |
| TTGP, two noises | the same with a noise of its own for the pairs, `mediator_noise="learn"` |
| TTGP, map | `covariance="map"`: g at its most probable |
| TTGP, initial | median distances, scale 1 and a noise of 0.3 of the variance of z, nothing learned |
| DME | `kb.DeconditionalEmbedding()` |
| cascade | from x to y, then from y to z: means of two Gaussian processes |
| impute | z at the y of the pairs by a Gaussian process, then from x to those: its band is that of the second |
| direct | a Gaussian process on the pairs (x, z) of the task, which nobody has: how well it could be done |

Gaussian processes are scikit-learn's, with a scale, a lengthscale and a noise learned from four starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Array
from ._estimates import mean, show
from ._expected import expected_warnings
from ._figures import ACCENT, INK, curves, few_ticks, panels
from ._mediation import FUNCTIONS, NOISE, REACH, SOLUTIONS, Functions, Samples, draw
from ._result import Claim, Result, Table, verdict
from ._study import Runs, Study

TITLE = "Regression through a mediator: f(x) from pairs (x, y) and other pairs (y, z)"
SOURCE = "Hsu (2019), section 5.9.1, figure 5.3"

_BAND = 1.96  # standard deviations to either side: 95 %
_WELL_UNDER = 0.5  # of another error
_CLOSE = 0.05  # of a share of 95 %


# ----------------------------------------------------------------------------------------------------------- one repeat


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    functions = FUNCTIONS[settings["functions"]]
    given = draw(functions, settings["n"], settings["n"], rng)
    numbers = {}
    for name, solution in SOLUTIONS.items():
        with expected_warnings():
            found = solution.solve(given, functions.grid()[:, None])
        numbers |= {f"{name}_{key}": value for key, value in judged(functions, *found).items()}
    return numbers


def judged(functions: Functions, found: Array, sd: Array | None) -> dict[str, float]:
    """Root mean squared error, how often the 95 % band holds f, and its mean standard deviation."""
    away = np.abs(found - functions.f(functions.grid()))
    error = float(np.sqrt((away**2).mean()))
    if sd is None:
        return {"error": error, "inside": np.nan, "sd": np.nan}
    return {"error": error, "inside": float((away <= _BAND * sd).mean()), "sd": float(sd.mean())}


# ------------------------------------------------------------------------------------------------------------------ run


def run(study: Study) -> Result:
    """All solutions on samples of several sizes."""
    sizes, repeats = ([100], 2) if study.quick else ([50, 100, 300], 20)
    settings = {"noise": NOISE, "sizes": sizes, "functions": list(FUNCTIONS)[: 1 if study.quick else 2]}
    settings |= {"central": {name: FUNCTIONS[name].central for name in settings["functions"]}, "repeats": repeats}
    cases = [{"functions": name, "n": n} for name in settings["functions"] for n in sizes]
    runs = study.repeat(_once, settings, cases)
    example = draw(FUNCTIONS["authors"], 100, 150, study.generator(0))
    figures = [study.save(_figure(FUNCTIONS["authors"], example))]
    if len(sizes) > 1:
        figures.append(study.save(_sizes(runs), "sizes"))
    tables = [_table(runs, "error"), _worst_table(runs), _table(runs, "inside"), _table(runs, "sd")]
    return Result(settings, tables, claims(runs), figures, runs, _notes())


_TITLES = {
    "error": "Root mean squared error over the central range of x",
    "inside": "Percent of the central range where the 95 % band holds f",
    "sd": "Mean standard deviation over the central range, by the solution's own account",
}


def _case(case: Mapping[str, Any]) -> str:
    return f"{case['functions']}, {case['n']}"


def _table(runs: Runs, key: str) -> Table:
    scale = 100.0 if key == "inside" else 1.0
    rows = [
        (solution.label, *(mean(scale * numbers) for numbers in runs[f"{name}_{key}"]))
        for name, solution in SOLUTIONS.items()
        if key == "error" or np.isfinite(runs[f"{name}_{key}"]).all()
    ]
    columns = ["solution", *map(_case, runs.cases)]
    return Table(f"{_TITLES[key]}: means over the repeats (standard errors); n = m", columns, rows)


def _worst_table(runs: Runs) -> Table:
    rows = [
        (
            solution.label,
            *(" / ".join(show(part) for part in (np.median(e), e.max())) for e in runs[f"{name}_error"]),
        )
        for name, solution in SOLUTIONS.items()
    ]
    return Table("The same: median / largest of the repeats", ["solution", *map(_case, runs.cases)], rows)


def limits(functions: Functions) -> dict[str, float]:
    """Errors of cascade and impute with unlimited samples: of `g(E[Y | x])` and of `E[g(Y) | x]`, in place of f."""
    x, y = functions.grid(), np.linspace(-REACH, REACH, 4001)
    weights = np.exp(-(((x[:, None] - functions.r(y)) / NOISE) ** 2) / 2)
    weights /= weights.sum(1, keepdims=True)
    found = {
        "cascade": functions.conditional_mean(weights @ y),
        "impute": weights @ functions.conditional_mean(y),
    }
    return {name: judged(functions, values, None)["error"] for name, values in found.items()}


def _notes() -> list[str]:
    shares, errors = [], []
    for name, functions in FUNCTIONS.items():
        x = draw(functions, 100_000, 1, np.random.default_rng(0)).X
        shares.append(f"{100 * np.mean(np.abs(x) < functions.central):.0f} % of all x ({name})")
        limit = limits(functions)
        errors.append(f"{show(limit['cascade'])} and {show(limit['impute'])} ({name})")
    return [
        f"Note: the central range holds {' and '.join(shares)}.",
        f"Note: with unlimited samples the errors of cascade and impute would be {', '.join(errors)}: these two do not "
        "converge to f.",
    ]


# -------------------------------------------------------------------------------------------------------------- claims


def claims(runs: Runs) -> list[Claim]:
    """What figure 5.3 is said to show, judged on the authors' functions."""
    return [
        _under(
            runs, "initial", "learned from its marginal likelihood, the TTGP gets from its initial hyperparameters to f"
        ),
        _under(
            runs, "cascade", "the cascade of regressions fails where p(y | x) has several modes, and the TTGP does not"
        ),
        _under(runs, "impute", "imputing z suffers, since no uncertainty is passed on, and the TTGP does not"),
        _covers(runs),
    ]


def _under(runs: Runs, rival: str, statement: str) -> Claim:
    """Whether the error of the TTGP is well under another one, at each size."""
    theirs = runs.where(functions="authors")
    checks = theirs.mean("full_error") < _WELL_UNDER * theirs.mean(f"{rival}_error")
    return Claim(
        statement,
        SOURCE,
        f'errors, of the TTGP and by "{SOLUTIONS[rival].label}", are {_sides(theirs, rival)}{_aside(runs, rival)}. '
        f"Well under is taken to be less than {_WELL_UNDER:g} of it, at each size.",
        verdict(*map(bool, checks)),
    )


def _sides(runs: Runs, rival: str) -> str:
    parts = []
    for i, n in enumerate(runs.case("n")):
        own, other = runs["full_error"][i], runs[f"{rival}_error"][i]
        wins = int((own < other).sum())
        parts.append(f"{mean(own)} and {mean(other)} with n = {n}, smaller in {wins} of {len(own)} runs")
    return "; ".join(parts)


def _aside(runs: Runs, rival: str) -> str:
    ours = runs.where(functions="ours")
    return f". With our functions: {_sides(ours, rival)}" if ours.cases else ""


def _covers(runs: Runs) -> Claim:
    theirs = runs.where(functions="authors")
    shares = theirs.mean("full_inside")
    listed = ", ".join(
        f"{100 * mean(row).value:.0f} % ({_case(c)})" for c, row in zip(runs.cases, runs["full_inside"], strict=True)
    )
    others = [
        f"{100 * theirs.mean(f'{name}_inside').mean():.0f} % ({SOLUTIONS[name].label})"
        for name in ("map", "initial", "impute")
    ]
    return Claim(
        "the uncertainty of the TTGP is that of f: its 95 % band holds f about 95 % of the time",
        f"{SOURCE} (bounds)",
        f"the band holds f over {listed} of the central range. On average over sizes, with the authors' functions: "
        f"{', '.join(others)}. About is taken to be within {100 * _CLOSE:g} points at each size.",
        verdict(*(bool(abs(share - 0.95) <= _CLOSE) for share in shares)),
    )


# ------------------------------------------------------------------------------------------------------------- figures


def _figure(functions: Functions, given: Samples) -> Any:
    """Figure 5.3: how x follows from y, how z does, and f with its solutions."""
    figure, axes = panels(1, 3, (15.0, 4.6))
    y = np.linspace(-REACH, REACH, 400)
    dots = {"s": 9, "color": INK, "alpha": 0.45, "linewidths": 0}
    axes[0].scatter(given.Y, given.X, **dots)
    axes[0].plot(y, functions.r(y), color=ACCENT, lw=1.5, label="r(y)")
    axes[0].set(xlabel="y", ylabel="x")
    axes[0].set_title(f"{len(given.X)} pairs: x given y", fontsize=10)
    axes[1].scatter(given.Y_task, given.z_task, **dots)
    axes[1].plot(y, functions.conditional_mean(y), color=ACCENT, lw=1.5, label="g(y) = E[f(X) | y]")
    axes[1].set(xlabel="y", ylabel="z")
    axes[1].set_title(f"Task of {len(given.z_task)} others: z given y", fontsize=10)
    _solutions(axes[2], functions, given)
    for ax in axes[:2]:
        ax.legend(frameon=False, fontsize=8)
    axes[2].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def _solutions(ax: Any, functions: Functions, given: Samples) -> None:
    """f, the TTGP with two standard deviations before and after learning, and the naive solutions."""
    x = functions.grid()
    for name in ("initial", "full", "cascade", "impute"):
        solution = SOLUTIONS[name]
        with expected_warnings():
            found, sd = solution.solve(given, x[:, None])
        ours = name in ("initial", "full")
        if ours and sd is not None:
            ax.fill_between(x, found - 2 * sd, found + 2 * sd, color=solution.colour, alpha=0.22, linewidth=0)
        label = {"full": "TTGP, learned"}.get(name, solution.label)
        ax.plot(x, found, color=solution.colour, lw=1.6 if ours else 1.3, ls="-" if ours else "--", label=label)
    truth = functions.f(x)
    ax.plot(x, truth, color=INK, lw=1.6, label="f")
    room = 0.3 * np.ptp(truth)
    ax.set(xlabel="x", ylabel="f(x)", ylim=(truth.min() - room, truth.max() + room))
    ax.set_title("f(x), and bands of two standard deviations", fontsize=10)


def _sizes(runs: Runs) -> Any:
    """Errors against the size of the samples, for both sets of functions."""
    names = list(dict.fromkeys(case["functions"] for case in runs.cases))
    figure, axes = panels(1, len(names), (5.2 * len(names), 4.2))
    for ax, name in zip(np.ravel(axes), names, strict=True):
        some = runs.where(functions=name)
        shown = {f"{key}_error": (way.label, way.colour) for key, way in SOLUTIONS.items() if key != "dme"}  # as map
        curves(ax, some.case("n"), some, shown)
        few_ticks(ax.yaxis)
        ax.set_xticks(some.case("n"), labels=[str(n) for n in some.case("n")])
        ax.minorticks_off()
        ax.set(xlabel="n = m", ylabel="root mean squared error")
        ax.set_title(f"Functions: {name}", fontsize=10)
    np.ravel(axes)[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure

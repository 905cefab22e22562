"""Resampling by herding before a step of simulation. Kanagawa (2016), section 3.5.

A weighted sample stands for P; each point is moved by the transition p(x'|x) = N(x, 0.1^2), and the result should stand for
Q = N(0, 0.02). Its error is bounded by the sum of squared weights plus the error of the embedding of P (3.5).
Three ways to move them:

| in the paper | here | what is moved |
|---|---|---|
| woRes | `moved` | the points, which keep their weights |
| Res-KH | `herded` | n points herded from the embedding (Algorithm 2), with equal weights |
| Res-Trunc | `truncated` | n points drawn in proportion to the positive weights |

Errors are squared RKHS distances to the closed forms of m_P and m_Q.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._typing import Array
from ..embeddings import MeanEmbedding
from ._estimates import mean, rate_of_means, show
from ._figures import ACCENT, FAINT, GREEN, INK, SECOND, curves, panels
from ._known_mean import SCALE, estimate, truth
from ._result import Claim, Result, Table, columns, verdict
from ._study import Runs, Study

TITLE = "Resampling weighted samples by herding before simulating with them"
SOURCE = "Kanagawa (2016), section 3.5, figures 3.2 and 3.3"

_Q_SD = float(np.hypot(SCALE, SCALE))
_DEMO = {"half_width": 1.0, "reg": 1e-6}  # the paper does not say; this gives its error of m_P
_PAPER = {"p": 8.49e-10, "q_moved": 0.125, "p_herded": 4.74e-5, "q_herded": 0.00827, "p_truncated": 0.0538}
_METHODS = {
    "moved": ("woRes (weights kept)", SECOND),
    "herded": ("Res-KH (herded)", GREEN),
    "truncated": ("Res-Trunc (truncated)", ACCENT),
}


def _estimates(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, tuple[MeanEmbedding, MeanEmbedding]]:
    """For each method an estimate of m_P and, from the same points moved, one of m_Q."""
    n = settings["n"]
    weighted = estimate(n, settings["half_width"], settings["reg"], rng).normalise()
    positive = np.maximum(weighted.weights, 0.0)
    drawn = rng.choice(n, n, p=positive / positive.sum())
    of_p = {
        "moved": weighted,
        "herded": weighted.herd(n),
        "truncated": MeanEmbedding(weighted.points[drawn], kernel=weighted.kernel),
    }
    return {name: (e, _move(e, rng)) for name, e in of_p.items()}


def _move(embedding: MeanEmbedding, rng: np.random.Generator) -> MeanEmbedding:
    """Each point replaced by one from the transition."""
    return MeanEmbedding(rng.normal(embedding.points, SCALE), embedding.weights, embedding.kernel)


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    both = _estimates(settings, rng)
    p, q = truth(), truth(_Q_SD)
    numbers = {"squares": float((both["moved"][0].weights ** 2).sum()), "p": both["moved"][0].distance(p) ** 2}
    for name, (of_p, of_q) in both.items():
        numbers[f"p_{name}"], numbers[f"q_{name}"] = of_p.distance(p) ** 2, of_q.distance(q) ** 2
    return numbers


def run(study: Study) -> Result:
    """The sweep over regularisers with A = 5, and the demonstration with A = 1."""
    regs = [float(f"{reg:.3g}") for reg in np.logspace(-6, 1, 7 if study.quick else 15)]
    settings = {"n": 100, "half_width": 5.0, "regs": regs, "demonstration": _DEMO, "repeats": 10 if study.quick else 20}
    cases = [*({"half_width": 5.0, "reg": reg} for reg in regs), _DEMO]
    runs = study.repeat(_once, settings, cases, paired=True)
    sweep, demo = runs.where(half_width=5.0), runs.where(half_width=1.0)
    shown = _typical(demo)
    example = _estimates({**settings, **_DEMO}, study.generator(shown))
    figures = [study.save(_figure(sweep)), study.save(_demonstration(example), "demonstration")]
    claims = [*sweep_claims(sweep), *demo_claims(demo)]
    return Result(settings, [_sweep_table(sweep), _demo_table(demo, shown)], claims, figures, runs)


def _typical(demo: Runs) -> int:
    """The repeat whose errors are nearest to their medians, on a logarithmic scale."""
    logs = np.log([demo[name][0] for name in ("p_herded", "p_truncated", "q_moved", "q_herded", "q_truncated")])
    return int(np.abs(logs - np.median(logs, axis=1, keepdims=True)).sum(0).argmin())


# ------------------------------------------------------------------------------------------------------ tables


def _sweep_table(runs: Runs) -> Table:
    names = ("squares", "p", *(f"q_{name}" for name in _METHODS))
    return Table(
        "Squared RKHS errors with A = 5: means over the repeats (standard errors)",
        ["lambda", "sum of w^2", "m_P", "m_Q woRes", "m_Q Res-KH", "m_Q Res-Trunc"],
        columns(runs.case("reg"), *(runs.estimates(name) for name in names)),
    )


def _demo_table(runs: Runs, shown: int) -> Table:
    labels = {
        "squares": "sum of w^2",
        "p": "m_P",
        "p_herded": "m_P after herding",
        "p_truncated": "m_P after truncation",
        "q_moved": "m_Q woRes",
        "q_herded": "m_Q Res-KH",
        "q_truncated": "m_Q Res-Trunc",
    }
    return Table(
        "Demonstration with A = 1: squared RKHS errors",
        ["of", "the paper's draw", "draw in the figure", "mean of repeats"],
        [(label, _PAPER.get(k, ""), runs[k][0, shown], runs.estimates(k)[0]) for k, label in labels.items()],
    )


# ------------------------------------------------------------------------------------------------------ claims


def sweep_claims(runs: Runs) -> list[Claim]:
    """What figure 3.3 is said to show, judged by the means over repeats."""
    return [_proportional(runs), _follows(runs), _truncation(runs)]


def _span(numbers: Array) -> str:
    return f"{show(numbers.min(), 2)} to {show(numbers.max(), 2)}"


def _proportional(runs: Runs) -> Claim:
    power = rate_of_means(runs["squares"], runs["q_moved"])
    return Claim(
        "without resampling, the error on m_Q grows in proportion to the sum of squared weights",
        "Kanagawa (2016), figure 3.3",
        f"while that sum ranges over {_span(runs.mean('squares'))}, the error ranges over {_span(runs.mean('q_moved'))}: "
        f"it goes as the power {power} of the sum, where 1 is proportion.",
        verdict(abs(power.value - 1.0) < 0.2, power.value > 0.5),
    )


def _follows(runs: Runs) -> Claim:
    power = rate_of_means(runs["squares"], runs["q_herded"])
    ratio = runs.mean("q_herded") / runs.mean("p")
    logs = {name: np.log(runs[name]).ravel() for name in ("squares", "p", "q_herded")}
    with_p, with_squares = (float(np.corrcoef(logs["q_herded"], logs[name])[0, 1]) for name in ("p", "squares"))
    return Claim(
        "with herding, the error on m_Q does not grow with the sum of squared weights; it runs parallel to that of m_P",
        "Kanagawa (2016), figure 3.3",
        f"it goes as the power {power} of that sum. Its ratio to the error of m_P stays within {_span(ratio)}. Over all "
        f"single runs the logarithm of the error correlates {with_p:.2f} with that of m_P and {with_squares:.2f} with "
        "that of the sum.",
        verdict(power.value < 0.1, bool(ratio.max() < 2.0 * ratio.min()), with_p > with_squares),
    )


def _truncation(runs: Runs) -> Claim:
    ratio = runs.mean("q_truncated") / runs.mean("q_herded")
    order = np.argsort(runs.mean("squares"))
    # the few runs with no point near the mean dominate the means; paired logarithms weigh all alike
    log_ratio = np.log(runs["q_truncated"] / runs["q_herded"])
    growth = mean(log_ratio[order[-1]] - log_ratio[order[0]])
    return Claim(
        "truncating the negative weights is worse than herding, above all where the sum of squared weights is large",
        "Kanagawa (2016), figure 3.3",
        f"its mean error is the larger at {int((ratio > 1.0).sum())} of {len(ratio)} values of lambda: "
        f"{show(ratio[order[-1]], 2)} times that of herding at the largest sum and {show(ratio[order[0]], 2)} times at the "
        f"smallest. Run by run the logarithm of the ratio is {growth} larger at the former.",
        # where hardly a weight is negative the two should be level
        verdict(bool(ratio.min() > 0.8 and ratio[order[-1]] > 1.5), growth.value > 2 * growth.error),
    )


def demo_claims(runs: Runs) -> list[Claim]:
    """What figure 3.2 is said to show, over all repeats in place of one draw."""
    error = {name: float(runs.mean(name)[0]) for name in runs.values}
    return [
        Claim(
            "an accurate embedding of P with uneven weights gives a poor one of Q; herding first makes it much better",
            "Kanagawa (2016), figure 3.2",
            f"the mean squared error is {show(error['p'], 2)} on m_P, {show(error['q_moved'], 2)} on m_Q without "
            f"resampling and {show(error['q_herded'], 2)} with herding (the paper's draw: {show(_PAPER['p'], 2)}, "
            f"{show(_PAPER['q_moved'])} and {show(_PAPER['q_herded'], 2)}).",
            verdict(error["q_moved"] > 100 * error["p"], error["q_herded"] < error["q_moved"] / 2),
        ),
        Claim(
            "points that are herded stand for P far better than points drawn from the truncated weights",
            "Kanagawa (2016), figure 3.2",
            f"the mean squared error is {show(error['p_herded'], 2)} against {show(error['p_truncated'], 2)} (the paper's "
            f"draw: {show(_PAPER['p_herded'], 2)} and {show(_PAPER['p_truncated'], 2)}).",
            verdict(error["p_herded"] < error["p_truncated"] / 10),
        ),
    ]


# ----------------------------------------------------------------------------------------------------- figures


def _figure(runs: Runs) -> Any:
    figure, ax = panels(1, 1, (6.4, 4.6))
    squares = runs.mean("squares")
    ax.plot(squares, squares, color=FAINT, lw=1, ls=":", label="equal to the sum")
    series = {"p": ("of $m_P$, as given", INK)}
    series |= {f"q_{name}": (f"of $m_Q$, {label}", colour) for name, (label, colour) in _METHODS.items()}
    curves(ax, squares, runs, series)
    ax.set(xlabel="sum of squared weights $\\sum_i w_i^2$", ylabel="squared RKHS error, mean over repeats")
    ax.set_title("Errors before and after a step of simulation", fontsize=10)
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _demonstration(example: Mapping[str, tuple[MeanEmbedding, MeanEmbedding]]) -> Any:
    figure, axes = panels(3, 2, (9.0, 7.0))
    for row, (name, (label, colour)) in zip(axes, _METHODS.items(), strict=True):
        for ax, which, sd, embedding in zip(row, "PQ", (SCALE, _Q_SD), example[name], strict=True):
            x = embedding.points[:, 0]
            if name == "moved":
                ax.vlines(x, 0.0, embedding.weights, color=colour, lw=1)
                ax.plot(x, embedding.weights, ".", color=colour, ms=4)
                ax.axhline(0.0, color=FAINT, lw=0.8)
            else:
                ax.hist(x, bins=list(np.linspace(-1.2, 1.2, 61)), color=colour)
            for edge in (-2 * sd, 2 * sd):
                ax.axvline(edge, color=FAINT, lw=1, ls=":")
            ax.set(xlim=(-1.2, 1.2), ylabel="weight" if name == "moved" else "number of points")
            error = show(embedding.distance(truth(sd)) ** 2, 2)
            ax.set_title(f"{label}; squared error of $m_{which}$: {error}", fontsize=9)
    for ax, which in zip(axes[-1], "PQ", strict=True):
        ax.set_xlabel(f"x; dotted: two standard deviations of {which}")
    return figure

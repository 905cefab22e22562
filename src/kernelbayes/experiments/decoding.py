r"""Expectations of functions outside the RKHS, from a weighted sample. Kanagawa (2016), section 5.5.

The estimate :math:`\sum_i w_i f(X_i)` of E[f(X)] converges though f is not in the RKHS, at a rate that depends on how smooth
f is (Theorem 4). P = N(0, 0.1^2), kernel and weights are those of `_known_mean`, with points uniform on [-1, 1]; the six
functions are those of table 5.1. Errors are absolute errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from .._typing import Array
from ._estimates import Estimate, jackknife, rate, rate_of_means, show
from ._figures import ACCENT, GREEN, INK, SECOND, curves, panels
from ._known_mean import SCALE, estimate, truth
from ._result import Claim, Result, Table, columns, verdict
from ._study import Runs, Study

TITLE = "Expectations of smooth, discontinuous and polynomial functions from one embedding"
SOURCE = "Kanagawa (2016), section 5.5, table 5.1 and figures 5.1-5.3"


class _Function(NamedTuple):
    label: str
    of: Callable[[Array], Array]
    expectation: float


FUNCTIONS = {
    "one": _Function("1", np.ones_like, 1.0),
    "cos": _Function("cos(x)", np.cos, float(np.exp(-(SCALE**2) / 2))),
    "inside": _Function("I[-0.1, 0.1]", lambda x: np.abs(x) <= 0.1, float(special.ndtr(1.0) - special.ndtr(-1.0))),
    "below": _Function("I(-inf, 0]", lambda x: x <= 0.0, 0.5),
    "x": _Function("x", lambda x: x, 0.0),
    "x2": _Function("x^2", np.square, SCALE**2),
}
SMOOTH, INDICATORS, POLYNOMIALS = ("one", "cos"), ("inside", "below"), ("x", "x2")


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    embedding = estimate(settings["n"], settings["half_width"], settings["reg"], rng)
    numbers = {"embedding": embedding.distance(truth()), "weights": float(np.linalg.norm(embedding.weights))}
    for name, f in FUNCTIONS.items():
        numbers[name] = abs(float(embedding.expect(lambda x, f=f: f.of(x[:, 0]))) - f.expectation)
    return numbers


def run(study: Study) -> Result:
    """Errors over a range of sample sizes, and the rates fitted to them."""
    sizes = [50, 100, 200, 400, 800] if study.quick else [50, 100, 200, 400, 800, 1600, 3200]
    settings = {"sizes": sizes, "half_width": 1.0, "reg": 0.1, "repeats": 10 if study.quick else 20}
    runs = study.repeat(_once, settings, [{"n": n} for n in sizes])
    tables = [_error_table(runs), _rate_table(runs)]
    return Result(settings, tables, claims(runs), [study.save(_figure(runs))], runs, [_bias_note(runs, settings)])


# ------------------------------------------------------------------------------------------------------ tables


def _labels() -> dict[str, str]:
    return {"embedding": "m_P", "weights": "|w|", **{name: f.label for name, f in FUNCTIONS.items()}}


def _error_table(runs: Runs) -> Table:
    labels = _labels()
    return Table(
        "RKHS error of the embedding, norm of its weights, absolute errors of expectations: means over the repeats",
        ["n", *labels.values()],
        columns(runs.case("n"), *(runs.mean(name) for name in labels)),
    )


def _rate_table(runs: Runs) -> Table:
    late = _late(runs)
    rows = [
        (
            label,
            *(rate_of_means(part.case("n"), part[name]) for part in (runs, late)),
            "" if name == "embedding" else _beyond(runs, name),
        )
        for name, label in _labels().items()
    ]
    headings = ["error of", "exponent", f"from n = {late.case('n')[0]}", "less that of m_P"]
    return Table("Fitted exponents of n (standard errors)", headings, rows)


def _late(runs: Runs) -> Runs:
    """The larger half of the sample sizes, where the points leave no gaps."""
    return runs.take(range(len(runs.cases) // 2, len(runs.cases)))


def _beyond(runs: Runs, name: str, other: str = "embedding") -> Estimate:
    """How much larger the exponent of one error is than that of another: negative where it falls faster."""
    n = runs.case("n")
    return jackknife(lambda a, b: rate(n, a.mean(-1)) - rate(n, b.mean(-1)), runs[name], runs[other])


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs) -> list[Claim]:
    """What figures 5.1-5.3 are said to show, judged by the exponents of the means over repeats."""
    return [_parallel(runs), _faster(runs), _slower(runs)]


def _listed(found: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{estimate} for {FUNCTIONS[name].label}" for name, estimate in found.items())


def _exponent(runs: Runs, name: str) -> Estimate:
    return rate_of_means(runs.case("n"), runs[name])


def _parallel(runs: Runs) -> Claim:
    found = {name: _beyond(runs, name) for name in SMOOTH}
    return Claim(
        "for the infinitely differentiable functions 1 and cos the errors fall in parallel with that of the embedding",
        "Kanagawa (2016), figure 5.1",
        f"the embedding's error goes as n to the power {_exponent(runs, 'embedding')}; exponents less that one: "
        f"{_listed(found)}.",
        verdict(*(abs(e.value) < max(0.1, 2 * e.error) for e in found.values())),
    )


def _faster(runs: Runs) -> Claim:
    late = _late(runs)
    found, found_late = ({name: _beyond(part, name) for name in POLYNOMIALS} for part in (runs, late))
    return Claim(
        "for the polynomials x and x^2 the errors fall faster than that of the embedding",
        "Kanagawa (2016), figure 5.3",
        f"exponents less that of the embedding: {_listed(found)}; from n = {late.case('n')[0]} on: {_listed(found_late)}.",
        verdict(*(e.value < -2 * e.error for e in found.values())),
    )


def _slower(runs: Runs) -> Claim:
    found = {name: _beyond(runs, name, "one") for name in INDICATORS}
    return Claim(
        "for the indicator functions the errors fall more slowly than for the infinitely differentiable ones",
        "Kanagawa (2016), figure 5.2",
        f"exponents less that of the constant: {_listed(found)}; the norm of the weights goes as n to the power "
        f"{_exponent(runs, 'weights')}.",
        verdict(*(e.value > 2 * e.error for e in found.values())),
    )


def leading_error(n: int, reg: float, half_width: float) -> float:
    """The error to first order in lambda / n where f(0) = 1: `(lambda / n) 2 A / (0.1 sqrt(2 pi))`.

    With weights `w_i = h(X_i) / n` on points of density `u = 1 / 2A`, for large n `k * (h u) + (lambda / n) h = k * p`. To
    first order then `k * (h u - p) = -(lambda / n) 2A p`. Here p is the kernel divided by `0.1 sqrt(2 pi)`, so `h u - p` is
    a point mass at zero of the size above, and the error on f is that times f(0).
    """
    return reg / n * 2.0 * half_width / (SCALE * np.sqrt(2.0 * np.pi))


def _bias_note(runs: Runs, settings: Mapping[str, Any]) -> str:
    n = int(runs.case("n")[-1])
    error = leading_error(n, settings["reg"], settings["half_width"])
    return (
        "Note: kernel and density have the same shape here, so that the error on a smooth f is "
        f"{show(n * error)} |f(0)| / n to first order. At n = {n} that is {show(error)} for f = 1, where "
        f"{show(runs.mean('one')[-1])} was measured. It vanishes for x and x^2, which is why they do better; "
        "1 + x^2 would not."
    )


# ----------------------------------------------------------------------------------------------------- figures


def _figure(runs: Runs) -> Any:
    figure, axes = panels(1, 3, (12.0, 4.2))
    n = runs.case("n")
    titles = ("Infinitely differentiable", "Indicator functions", "Polynomials")
    for ax, names, title in zip(axes, (SMOOTH, INDICATORS, POLYNOMIALS), titles, strict=True):
        curves(ax, n, runs, {"embedding": ("embedding, RKHS norm", INK), "weights": ("norm of the weights", ACCENT)})
        for name, colour, marker, size in zip(names, (SECOND, GREEN), "os", (8, 4), strict=True):
            label = f"f(x) = {FUNCTIONS[name].label}"
            curves(ax, n, runs, {name: (label, colour)}, marker=marker, ms=size, mfc="none", ls="--")
        ax.set(xlabel="n", ylim=(3e-8, 2))
        ax.set_title(title, fontsize=10)
        ax.legend(frameon=False, fontsize=8, loc="lower left")
    axes[0].set_ylabel("error, mean over repeats")
    return figure

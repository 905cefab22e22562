"""How near the default bandwidth of a density is to the best one: the measurements behind a table of the guide.

    python docs/bandwidths.py

Samples and rules lead to weights of five kinds, whose true densities are known. For each, the integrated squared error of
`density` is compared with that at the best of many bandwidths. The record is `docs/results/bandwidths.json`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from results import keep_own
from scipy import stats

import kernelbayes as kb

_SIZES, _SEED = (100, 400), 0
_GRID = np.linspace(-8.0, 8.0, 801)
_BANDWIDTHS = np.geomspace(0.03, 1.5, 30)
# From one to three humps.
_TARGETS = (
    kb.Mixture([stats.norm(0, 1)]),
    kb.Mixture([stats.norm(0, 0.5), stats.norm(1, 1)], [0.6, 0.4]),
    kb.Mixture([stats.norm(1.25, 0.3), stats.norm(-1.25, 0.3)], [0.7, 0.3]),
    kb.Mixture([stats.norm(-1, 0.25), stats.norm(1.5, 0.6)]),
    kb.Mixture([stats.norm(-2, 0.3), stats.norm(0, 0.4), stats.norm(2.5, 0.5)]),
)


class _Case(NamedTuple):
    """An embedding, and the density (g,) of what it should be on the grid."""

    found: kb.MeanEmbedding
    truth: np.ndarray


def scott(embedding: kb.MeanEmbedding) -> float:
    """Scott's rule on the absolute weights of one column."""
    share = np.abs(embedding.weights) / np.abs(embedding.weights).sum()
    y = np.ravel(embedding.points)
    return float(np.sqrt(share @ (y - share @ y) ** 2) * embedding.ess() ** -0.2)


def _sampled(n: int, rng: np.random.Generator) -> Iterator[_Case]:
    for target in _TARGETS:
        yield _Case(kb.MeanEmbedding(target.sample(n, random_state=rng)), target.density(_GRID))


def _ridge(n: int, rng: np.random.Generator) -> Iterator[_Case]:
    """Weights at uniform points that lead to the embedding of the target."""
    kernel = kb.Gaussian(0.5)
    for target in _TARGETS:
        x = rng.uniform(-4.5, 4.5, n)
        wanted = kb.AnalyticEmbedding(target, kernel)(x)
        weights = np.linalg.solve(kernel.gram(x) + 1e-5 * n * np.eye(n), wanted)
        yield _Case(kb.MeanEmbedding(x, weights, kernel), target.density(_GRID))


def _conditional(n: int, rng: np.random.Generator) -> Iterator[_Case]:
    """The target moves with x."""
    for target in _TARGETS:
        x = rng.uniform(-2, 2, (n, 1))
        y = target.sample(n, random_state=rng) + x
        yield _Case(kb.ConditionalEmbedding(random_state=0).fit(x, y).embed([0.5]), target.density(_GRID - 0.5))


def _posteriors(measure: Callable[[np.ndarray], np.ndarray], readings: tuple[float, ...]) -> Any:
    """Posteriors of z under a normal prior, from readings with noise of 0.2."""

    def draw(n: int, rng: np.random.Generator) -> Iterator[_Case]:
        z = rng.uniform(-4, 4, (n, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", kb.BoundWarning)  # no regulariser is needed here; it is none of this page's
            model = kb.KernelBayesRule(random_state=0).fit(measure(z) + 0.2 * rng.normal(size=(n, 1)), z)
        for x in readings:
            density = stats.norm.pdf(_GRID, 0.5, 1.0) * stats.norm.pdf(x, measure(_GRID), 0.2)
            found = model.posterior([x], stats.norm(0.5, 1.0))
            yield _Case(found, density / (density.sum() * (_GRID[1] - _GRID[0])))

    return draw


_WEIGHTS: dict[str, Callable[[int, np.random.Generator], Iterator[_Case]]] = {
    "uniform, independent sample": _sampled,
    "ridge regression on uniform points": _ridge,
    "conditional embedding": _conditional,
    "kernel Bayes' rule, one hump": _posteriors(lambda z: np.tanh(z / 2), (-0.2, 0.3, 0.6)),
    "kernel Bayes' rule, two humps": _posteriors(lambda z: np.abs(z), (0.8, 1.2, 1.6)),
}


def _excess(case: _Case) -> list[float]:
    """Errors of Scott's rule and of the default, in multiples of the smallest."""

    def error(bandwidth: float | None) -> float:
        return float(np.sum((case.found.density(_GRID, bandwidth) - case.truth) ** 2))

    best = min(map(error, _BANDWIDTHS))
    return [max(error(bandwidth) / best, 1.0) for bandwidth in (scott(case.found), None)]


def measure() -> list[dict[str, Any]]:
    """A row for each kind of weights: geometric means over targets and sizes."""
    rows = []
    for name, draw in _WEIGHTS.items():
        rng = np.random.default_rng(_SEED)
        multiples = np.array([_excess(case) for n in _SIZES for case in draw(n, rng)])
        by_scott, by_default = np.exp(np.log(multiples).mean(0))
        rows.append({"weights": name, "Scott's rule, absolute weights": float(by_scott), "default": float(by_default)})
    return rows


if __name__ == "__main__":
    begin = time.perf_counter()
    keep_own(
        "bandwidths",
        [{"title": "Integrated squared error, in multiples of the error at the best bandwidth", "rows": measure()}],
        "Geometric means over five targets from one to three humps, or three readings of a sensor.",
        {"points": list(_SIZES), "bandwidths": len(_BANDWIDTHS)},
        _SEED,
        begin,
    )

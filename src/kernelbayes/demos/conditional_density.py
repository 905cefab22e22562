"""A conditional density that no Gaussian can fit: two branches that part, at different rates and with different noise."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
from scipy import stats

from .. import plotting
from .._typing import Array
from ..conditional import ConditionalEmbedding
from ..kernels import Gaussian
from . import Report

TITLE = "A conditional distribution from pairs: two branches, changing noise, no model of either"

_SLICES = (0.5, 2.0, 3.5)
_LEVEL = 0.8


def _branches(x: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Share of the upper branch, and mean and standard deviation of both."""
    share = 0.35 + 0.1 * x
    return share, 0.35 * x**1.5, 0.10 + 0.08 * x, -0.6 * x + 0.15 * np.sin(3 * x), 0.10 + 0.03 * x


def _sample(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    x = rng.uniform(0, 4, n)
    share, high, high_sd, low, low_sd = _branches(x)
    upper = rng.random(n) < share
    return x[:, None], np.where(upper, rng.normal(high, high_sd), rng.normal(low, low_sd))


def _density(x: float, y: Array) -> Array:
    share, high, high_sd, low, low_sd = _branches(np.asarray(x))
    return share * stats.norm.pdf(y, high, high_sd) + (1 - share) * stats.norm.pdf(y, low, low_sd)


def _row(model: ConditionalEmbedding, x: float) -> str:
    share, high, high_sd, low, low_sd = _branches(np.asarray(x))
    embedding = model.embed([x])
    grid = np.linspace(-6, 8, 20001)
    F = np.cumsum(_density(x, grid)) * (grid[1] - grid[0])
    true_interval = grid[np.searchsorted(F, [0.5 - _LEVEL / 2, 0.5 + _LEVEL / 2])]
    above = share * stats.norm.sf(0, high, high_sd) + (1 - share) * stats.norm.sf(0, low, low_sd)
    found = embedding.interval(_LEVEL)[:, 0]
    return (
        f"{x:5.1f}  {embedding.mean()[0]:7.2f} {share * high + (1 - share) * low:7.2f}  "
        f"{float(embedding.expect(lambda y: y[:, 0] > 0)):8.2f} {above:7.2f}  "
        f"[{found[0]:6.2f}, {found[1]:5.2f}] [{true_interval[0]:6.2f}, {true_interval[1]:5.2f}]  {embedding.ess():6.0f}"
    )


def _coverage(model: ConditionalEmbedding, X: Array, y: Array) -> tuple[float, float]:
    """Share of new points inside their interval: of the embedding, and of mean +- z sd with the residuals' sd."""
    lower, upper = model.interval(X, _LEVEL)
    inside = np.mean((lower <= y) & (y <= upper))
    narrow = X[:, 0] < 1.0
    sd = np.std(model.Y_[:, 0] - model.predict(model.X_))
    gaussian = np.abs(y - model.predict(X)) <= stats.norm.ppf(0.5 + _LEVEL / 2) * sd
    return float(inside), float(gaussian[narrow].mean())


def run(out: Path, seed: int = 0) -> Report:
    """Fit 1,000 pairs, tabulate expectation, probability and interval beside the truth, and draw the density."""
    rng = np.random.default_rng(seed)
    model = ConditionalEmbedding(random_state=seed).fit(*_sample(1000, rng))
    X_new, y_new = _sample(1000, rng)
    covered, gaussian = _coverage(model, X_new, y_new)
    lengthscale = cast(Gaussian, model.kernel_).lengthscale.item()
    path = out / "conditional-density.png"
    plotting.conditional_density(model, _SLICES, truth=_density, bandwidth=0.12, level=_LEVEL).savefig(path, dpi=150)
    lines = [
        "    model = kb.ConditionalEmbedding().fit(x, y)     # 1,000 pairs, nothing set by hand",
        "",
        f"chosen by leave-one-out: lengthscale {lengthscale:.3g}, regulariser {model.reg_:.2g}; rank "
        f"{model.features_.rank} of {len(model.X_)}",
        "",
        "    x     E[y|x]   true  P(y>0|x)    true   80% interval     true               eff. n",
        *(_row(model, x) for x in (0.5, 1.0, 2.0, 3.0, 3.5)),
        "",
        f"Of 1,000 new points {covered:.0%} fall inside their 80% interval. A Gaussian of constant width about the",
        f"same mean would hold {gaussian:.0%} of those with x < 1, where the branches lie close together.",
    ]
    return Report(lines, [path])

r"""Regression on a few learned points. Hsu (2019), section 5.9.2, figure 5.4.

The truth is the mean of a Gaussian process on 5 points, f(x) = k(x, u) K(u, u)^-1 f(u), with the hyperparameters of the
toy process of Rasmussen and Williams (2006), section 2.3: lengthscale 1, scale 1, noise 0.1. The points are drawn uniformly
from [-5, 5], at least half a lengthscale apart, and f(u) from the process. There are 100 rows of data, x uniform on the
same interval. Errors are root mean squares over the interval.

| in the figure | here | points | kernel and noise |
|---|---|---|---|
| left center | `random` | 5 rows at random | true |
| right center | `joint` | learned | learned |
| right | `known` | learned | true |
| | `full` | all rows | learned, by scikit-learn |

Points are learned by three objectives: the marginal likelihood of theorem 5.7 (4), as in the thesis, with the spread of
the mediator equal to the noise; the same with a spread of zero, where the points stand for themselves; and the library's
default, Titsias' lower bound on the marginal likelihood of the whole process. Each search has further starts, of which the
best one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._linalg import cholesky, solve
from .._typing import Array
from ..kernels import Gaussian
from ..regression import SparseRegression
from ._estimates import mean, show
from ._expected import expected_warnings
from ._figures import ACCENT, FAINT, INK, SECOND, panels
from ._result import Claim, Result, Table, verdict
from ._study import Runs, Study

TITLE = "A few learned points in place of all the data"
SOURCE = "Hsu (2019), section 5.9.2, figure 5.4"

_NOISE = 0.1
_REACH = 5.0
_APART = 0.5
_GRID = np.linspace(-_REACH, _REACH, 201)[:, None]
_PAPER: dict[str, Any] = {"learn": "marginal", "spread": "noise"}
_METHODS = {
    "random": ("5 random points", "true", ""),
    "joint_paper": ("5 points learned", "learned", "marginal likelihood"),
    "joint_zero": ("5 points learned", "learned", "the same, spread 0"),
    "joint": ("5 points learned", "learned", "lower bound"),
    "more": ("10 points learned", "learned", "lower bound"),
    "known_paper": ("5 points learned", "true", "marginal likelihood"),
    "known": ("5 points learned", "true", "lower bound"),
    "full": ("all 100 rows", "learned", "marginal likelihood"),
}
_MEASURES = {
    "error": "error to the truth",
    "away": "distance to the full fit",
    "sd": "mean sd of f",
    "covered": "truth in the 95 % band",
    "noise": "noise found",
}


class _Toy(NamedTuple):
    """One draw: the points and weights of the truth, and data."""

    points: Array
    weights: Array
    X: Array
    y: Array

    def truth(self, X: Array) -> Array:
        return Gaussian(1.0)._gram(X, self.points) @ self.weights


def _draw(settings: Mapping[str, Any], rng: np.random.Generator) -> _Toy:
    count = settings["points"]
    # uniform, conditioned on a least distance: gaps are drawn, the least ones added
    free = np.sort(rng.uniform(0.0, 2 * _REACH - _APART * (count - 1), count))
    points = (free + _APART * np.arange(count) - _REACH)[:, None]
    L = cholesky(Gaussian(1.0)._gram(points, points), "the true points' Gram matrix")
    weights = solve(L, L @ rng.standard_normal(count))
    X = rng.uniform(-_REACH, _REACH, (settings["n"], 1))
    toy = _Toy(points, weights, X, np.zeros(0))
    return toy._replace(y=toy.truth(X) + _NOISE * rng.standard_normal(len(X)))


class _Fit(NamedTuple):
    """What a method says on the grid, the noise it has, and its points."""

    mean: Array
    std: Array
    noise: float
    points: Array


def _fits(settings: Mapping[str, Any], toy: _Toy, rng: np.random.Generator) -> dict[str, _Fit]:
    count = settings["points"]
    rows = toy.X[rng.choice(len(toy.X), count, replace=False)]
    search: dict[str, Any] = {"restarts": settings["restarts"], "random_state": 0}
    true: dict[str, Any] = {"kernel": 1.0 * Gaussian(1.0), "noise": _NOISE**2, "standardise": False}
    known = {**true, **search, "learn_kernel": False}
    models: dict[str, Any] = {
        "random": SparseRegression(rows, **true, learn=None, spread="noise"),
        "joint_paper": SparseRegression(count, **_PAPER, **search),
        "joint_zero": SparseRegression(count, learn="marginal", **search),
        "joint": SparseRegression(count, **search),
        "more": SparseRegression(2 * count, **search),
        "known_paper": SparseRegression(count, **_PAPER, **known),
        "known": SparseRegression(count, **known),
    }
    return {name: _fit(model, toy) for name, model in models.items()} | {"full": _full(toy)}


def _fit(model: SparseRegression, toy: _Toy) -> _Fit:
    model.fit(toy.X, toy.y)
    with expected_warnings():  # the grid goes on where a few points do not reach
        values, std = model.predict(_GRID, return_std=True)
    return _Fit(values, std, float(np.sqrt(model.noise_) * model.unit_[0]), model.points_)


def _full(toy: _Toy) -> _Fit:
    """All rows, with hyperparameters learned from a start at the true ones."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    offset = toy.y.mean()
    kernel = ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(_NOISE**2)
    with expected_warnings():
        model: Any = GaussianProcessRegressor(kernel).fit(toy.X, toy.y - offset)
    values, std = model.predict(_GRID, return_std=True)
    noise = float(model.kernel_.k2.noise_level)
    return _Fit(values + offset, np.sqrt(np.maximum(std**2 - noise, 0.0)), float(np.sqrt(noise)), toy.X)


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    toy = _draw(settings, rng)
    fits, truth = _fits(settings, toy, rng), toy.truth(_GRID)
    numbers = {}
    for name, fit in fits.items():
        numbers |= {
            f"{name}_error": _root_mean_square(fit.mean - truth),
            f"{name}_away": _root_mean_square(fit.mean - fits["full"].mean),
            f"{name}_sd": float(fit.std.mean()),
            f"{name}_covered": float((np.abs(fit.mean - truth) <= 1.96 * fit.std).mean()),
            f"{name}_noise": fit.noise,
        }
    return numbers


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


# --------------------------------------------------------------------------------------------------------- run


def run(study: Study) -> Result:
    """All methods on some draws of the truth and the data, and a figure of a typical one."""
    settings = {"n": 100, "points": 5, "noise": _NOISE, "restarts": 2 if study.quick else 10}
    settings["repeats"] = 3 if study.quick else 20
    runs = study.repeat(_once, settings, [{}])
    shown = _typical(runs)
    rng = study.generator(shown)
    toy = _draw(settings, rng)
    figure = study.save(_figure(toy, _fits(settings, toy, rng)))
    notes = [_more_note(runs), f"The figure shows draw {shown}."]
    return Result(settings, [_table(runs)], claims(runs), [figure], runs, notes)


def _typical(runs: Runs) -> int:
    """The draw whose errors are nearest to their medians, on a logarithmic scale."""
    logs = np.log([runs[f"{name}_error"][0] for name in _METHODS])
    return int(np.abs(logs - np.median(logs, axis=1, keepdims=True)).sum(0).argmin())


def _table(runs: Runs) -> Table:
    rows = []
    for name, labels in _METHODS.items():
        *measured, noise = (runs.estimates(f"{name}_{measure}")[0] for measure in _MEASURES)
        rows.append((*labels, *measured, noise if labels[1] == "learned" else ""))
    title = "Root mean square errors over [-5, 5] and more: means over the draws (standard errors)"
    return Table(title, ["points", "hyperparameters", "by", *_MEASURES.values()], rows)


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs) -> list[Claim]:
    """What figure 5.4 shows, for both objectives, judged over all draws."""
    return [
        _match(runs, "joint_paper", "the marginal likelihood of theorem 5.7 (4)"),
        _match(runs, "joint_zero", "the marginal likelihood with a spread of zero"),
        _match(runs, "joint", "the lower bound, the library's default"),
        _against_random(runs),
    ]


def _match(runs: Runs, method: str, words: str) -> Claim:
    error, full = runs[f"{method}_error"][0], runs["full_error"][0]
    near = runs[f"{method}_away"][0] < _NOISE / 2
    return Claim(
        f"5 points, learned with the hyperparameters by {words}, match the full fit",
        SOURCE,
        f"the error to the truth is {mean(error)}, that of the full fit {mean(full)}; the median of their ratio is "
        f"{show(np.median(error / full))}. In {int(near.sum())} of {near.size} draws the two fits are within half the noise "
        f"of each other ({show(_NOISE / 2)}, root mean square). The noise found is {mean(runs[f'{method}_noise'][0])}, the "
        f"true one {show(_NOISE)}.",
        verdict(bool(np.median(error / full) < 1.25), bool(near.mean() >= 0.9)),
    )


def _against_random(runs: Runs) -> Claim:
    known = {name: runs[f"{name}_error"][0] for name in ("random", "known_paper", "known")}
    return Claim(
        "under the true hyperparameters 5 learned points are far better than 5 random ones",
        SOURCE,
        f"the mean error is {mean(known['random'])} on random points, {mean(known['known_paper'])} on points learned by the "
        f"marginal likelihood and {mean(known['known'])} on points learned by the lower bound.",
        verdict(*(known[name].mean() < known["random"].mean() / 3 for name in ("known_paper", "known"))),
    )


def _more_note(runs: Runs) -> str:
    ratio = np.median(runs["more_error"][0] / runs["full_error"][0])
    return (
        f"Note: with 10 points learned by the lower bound the error is {mean(runs['more_error'][0])}; the median of its "
        f"ratio to that of the full fit is {show(ratio)}."
    )


# ------------------------------------------------------------------------------------------------------ figure

_PANELS = {
    "truth": "the truth, on 5 points",
    "random": "5 random points,\ntrue hyperparameters",
    "joint_paper": "5 points and\nhyperparameters learned",
    "known_paper": "5 points learned,\ntrue hyperparameters",
    "full": "all 100 rows,\nhyperparameters learned",
    "joint_zero": "points and hyperparameters,\nmarginal likelihood, spread 0",
    "joint": "points and hyperparameters,\nlower bound",
    "known": "points, true hyperparameters,\nlower bound",
}


def _figure(toy: _Toy, fits: Mapping[str, _Fit]) -> Any:
    """In the upper row the panels of figure 5.4, in the lower one what they are compared with."""
    figure, axes = panels(2, 4, (12.5, 6.4))
    low, high = toy.y.min() - 0.9, toy.y.max() + 0.5
    for ax, (name, title) in zip(np.ravel(axes), _PANELS.items(), strict=True):
        _panel(ax, toy, fits.get(name), title, low)
        ax.set(xlim=(-1.2 * _REACH, 1.2 * _REACH), ylim=(low, high))  # points may lie beyond the data
    handles, labels = axes[0, 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def _panel(ax: Any, toy: _Toy, fit: _Fit | None, title: str, low: float) -> None:
    """Data, truth, a fit with its band of two standard deviations, and its points along the lower edge."""
    line = _GRID[:, 0]
    ax.plot(toy.X[:, 0], toy.y, ".", color=FAINT, ms=4, label="data")
    if fit is not None:
        band = fit.mean - 2 * fit.std, fit.mean + 2 * fit.std
        ax.fill_between(line, *band, color=ACCENT, alpha=0.2, lw=0, label="two standard deviations")
        ax.plot(line, fit.mean, color=ACCENT, lw=1.6, label="mean")
    ax.plot(line, toy.truth(_GRID), color=INK, lw=1.2, ls="--", label="truth")
    points = toy.points if fit is None else fit.points
    if len(points) < len(toy.X):
        ax.plot(points[:, 0], np.full(len(points), low + 0.25), "^", color=SECOND, ms=7, label="points")
    if fit is not None:
        title += f" (error {show(_root_mean_square(fit.mean - toy.truth(_GRID)), 2)})"
    ax.set_title(title, fontsize=9)

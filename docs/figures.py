"""The figures and tables of the guide, made anew at every build of the documentation.

Each function draws one thing and writes it into the folder it is given; `python docs/figures.py` draws them all.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

import kernelbayes as kb
from kernelbayes import plotting
from kernelbayes.plotting import ACCENT, FAINT, INK, SECOND

_GREEN, _GOLD, _PURPLE = "#3a7d44", "#e09f3e", "#7b4b94"
_DPI = 140


# ---------------------------------------------------------------------------------------- guide/first-hour.md


def commute(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Hours of departure and minutes on the way: the data of the first hour, line for line as in the guide."""
    hour = rng.uniform(6, 10, n)
    road = 20 + 10 * np.exp(-((hour - 8) ** 2))
    minutes = road + 12 * (rng.random(n) < 0.4) + (0.5 + 0.05 * road) * rng.normal(size=n)
    return hour[:, None], minutes


def _commute_density(hour: float, minutes: np.ndarray) -> np.ndarray:
    road = 20 + 10 * np.exp(-((hour - 8) ** 2))
    noise = 0.5 + 0.05 * road
    return 0.6 * stats.norm.pdf(minutes, road, noise) + 0.4 * stats.norm.pdf(minutes, road + 12, noise)


def first_hour(out: Path) -> None:
    """The conditional density of the commute, with three slices beside the truth."""
    model = kb.ConditionalEmbedding(random_state=0).fit(*commute(1000, np.random.default_rng(0)))
    figure = plotting.conditional_density(model, (6.5, 7.25, 8.0), truth=_commute_density, bandwidth=1.2, level=0.9)
    plane, side = figure.axes
    plane.set(xlabel="hour of departure", ylabel="minutes", title="Minutes on the way, given the hour of departure")
    side.set(xlabel="minutes")
    for text in side.texts:
        text.set_text(text.get_text().replace("x = ", "at "))
    figure.savefig(out / "first-hour.png", dpi=_DPI)


# ---------------------------------------------------------------------------------------- guide/embeddings.md


def embeddings(out: Path) -> None:
    """Two samples with equal mean and variance: their embeddings, the MMD test, and a Mercer expansion."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = rng.choice([-1.0, 1.0], 200) * np.sqrt(0.8) + np.sqrt(0.2) * rng.normal(size=200)
    kernel = kb.Gaussian(0.5)
    a, b = kb.MeanEmbedding(x, kernel=kernel), kb.MeanEmbedding(y, kernel=kernel)
    grid = np.linspace(-3.5, 3.5, 300)
    figure, (left, middle, right) = plotting.new_figure(3, (11.0, 3.6))

    left.plot(grid, a(grid), color=SECOND, lw=1.8, label="$\\mu_x$: one bump")
    left.plot(grid, b(grid), color=ACCENT, lw=1.8, label="$\\mu_y$: two bumps")
    left.fill_between(grid, (a - b)(grid), color=FAINT, alpha=0.5, lw=0, label="$\\mu_x - \\mu_y$")
    left.plot(x, np.full(200, -0.24), "|", color=SECOND, ms=6, mew=0.6)
    left.plot(y, np.full(200, -0.29), "|", color=ACCENT, ms=6, mew=0.6)
    left.set(title="Embeddings of two samples", xlabel="x", ylim=(-0.33, 0.78))
    left.legend(frameon=False, fontsize=8, loc="upper left")

    test = kb.mmd_test(x, y, kernel, random_state=0)
    middle.hist(1e3 * test.null, bins=30, color=FAINT, label="permuted")
    middle.axvline(1e3 * test.statistic, color=ACCENT, lw=2, label=f"observed, p = {test.pvalue:.3f}")
    middle.set(title="The MMD test", xlabel="MMD$^2$ in thousandths", ylabel="permutations")
    middle.margins(y=0.25)
    middle.legend(frameon=False, fontsize=8, loc="upper center")

    spectrum = kb.Covariance(x, kernel, centred=False)
    waves = spectrum.eigenfunctions(grid, 3)
    waves = waves * np.sign(waves[np.abs(grid - 0.7).argmin()])
    for i, colour in enumerate((INK, SECOND, ACCENT)):
        label = f"eigenvalue {spectrum.eigenvalues(3)[i]:.2f}"
        right.plot(grid, waves[:, i], color=colour, lw=1.6, label=label)
    right.set(title="Leading eigenfunctions", xlabel="x", ylim=(-2.2, 3.2))
    right.legend(frameon=False, fontsize=8, loc="upper center", ncol=1)
    figure.savefig(out / "embeddings.png", dpi=_DPI)


# ------------------------------------------------------------------------------------------- guide/kernels.md


def kernels(out: Path) -> None:
    """Profiles of the stationary kernels, and what functions of their spaces look like."""
    shown = {
        "Gaussian": (kb.Gaussian(), INK),
        "Matern(2.5)": (kb.Matern(2.5), _GREEN),
        "Matern(1.5)": (kb.Matern(1.5), SECOND),
        "Laplace": (kb.Laplace(), ACCENT),
        "RationalQuadratic": (kb.RationalQuadratic(), _GOLD),
    }
    figure, (left, right) = plotting.new_figure(2, (10.0, 3.6))
    distance, line = np.linspace(-4, 4, 401), np.linspace(0, 8, 500)
    for row, (name, (kernel, colour)) in enumerate(shown.items()):
        left.plot(distance, kernel.gram(distance, [0.0])[:, 0], color=colour, lw=1.5, label=name)
        factor = np.linalg.cholesky(kernel.gram(line) + 1e-9 * np.eye(500))
        path = factor @ np.random.default_rng(3).normal(size=500)
        right.plot(line, path - path.mean() - 4.0 * row, color=colour, lw=1.1)
    left.set(title="k(x, 0) with lengthscale 1", xlabel="x")
    left.legend(frameon=False, fontsize=8, loc="upper left")
    right.set(title="A random function with each as its covariance", xlabel="x", yticks=[])
    figure.savefig(out / "kernels.png", dpi=_DPI)


# --------------------------------------------------------------------------------------------- guide/scale.md


def spiral(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points near a spiral in three dimensions, dense at its centre, and a wave along it."""
    angle = rng.uniform(0, 4 * np.pi, n)
    X = np.stack([angle * np.cos(angle), angle * np.sin(angle), 3 * rng.normal(size=n)], axis=1) / 6
    return X, np.sin(2 * angle) + 0.2 * rng.normal(size=n)


_RECIPES = {
    "IncompleteCholesky(r)": (kb.IncompleteCholesky, INK, "o"),
    'Subspace(r, "random")': (kb.Subspace, SECOND, "s"),
    'Subspace(r, "kmeans")': (lambda r: kb.Subspace(r, "kmeans"), _GREEN, "^"),
    'Subspace(r, "herding")': (lambda r: kb.Subspace(r, "herding"), _PURPLE, "v"),
    'Subspace(r, "leverage")': (lambda r: kb.Subspace(r, "leverage"), _GOLD, "D"),
    "RandomFourier(r)": (kb.RandomFourier, ACCENT, "x"),
}
_KERNEL, _REG = kb.Gaussian(0.5), 1e-4


def _errors(recipe: kb.Recipe, seed: int, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, K: np.ndarray) -> tuple:
    """Relative error of the Gram matrix, and predictions at new points."""
    model = kb.ConditionalEmbedding(_KERNEL, features=recipe, reg=_REG, random_state=seed).fit(X, y)
    F = model.features_.transform(X)
    return np.linalg.norm(K - F @ F.T) / np.linalg.norm(K), model.predict(X_new)


def _error_against_rank(out: Path) -> None:
    rng = np.random.default_rng(0)
    (X, y), (X_new, _) = spiral(1200, rng), spiral(500, rng)
    K = _KERNEL.gram(X)
    _, exact = _errors(kb.Exact(), 0, X, y, X_new, K)
    ranks, seeds = (10, 20, 40, 80, 160, 320, 640), range(3)
    figure, (left, right) = plotting.new_figure(2, (10.0, 4.0))
    for name, (recipe, colour, marker) in _RECIPES.items():
        curves = np.empty((2, len(ranks), len(seeds)))
        for i, rank in enumerate(ranks):
            for seed in seeds:
                gram_error, found = _errors(recipe(rank), seed, X, y, X_new, K)
                curves[:, i, seed] = gram_error, np.sqrt(np.mean((found - exact) ** 2))
        for ax, curve in zip((left, right), np.exp(np.log(curves).mean(-1)), strict=True):
            ax.loglog(ranks, curve, color=colour, marker=marker, ms=4, lw=1.3, label=name)
    left.set(title="Error of the Gram matrix, relative", xlabel="r", ylim=(1e-5, 3))
    right.set(title="Predictions: rms distance to Exact", xlabel="r", ylim=(1e-4, 1.5))
    right.legend(frameon=False, fontsize=8, loc="lower left")
    figure.savefig(out / "rank.png", dpi=_DPI)


def _seconds_to_fit(model: kb.ConditionalEmbedding, X: np.ndarray, y: np.ndarray) -> float:
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def _time_against_size(out: Path) -> None:
    rng, many = np.random.default_rng(0), (1000, 3000, 10_000, 30_000)
    sizes = {
        "Exact()": (kb.Exact(), FAINT, "*", (1000, 2000, 3000)),
        "IncompleteCholesky(300)": (kb.IncompleteCholesky(300), INK, "o", many),
        "Subspace(300)": (kb.Subspace(300), SECOND, "s", many),
        "RandomFourier(300)": (kb.RandomFourier(300), ACCENT, "x", many),
    }
    X, y = spiral(30_000, rng)
    rows = ["| recipe | n | rank | `features_.error` | seconds to fit |", "|---|---:|---:|---:|---:|"]
    figure, ax = plotting.new_figure(1, (6.0, 3.6))
    for name, (recipe, colour, marker, steps) in sizes.items():
        seconds = []
        for n in steps:
            model = kb.ConditionalEmbedding(_KERNEL, features=recipe, reg=_REG, random_state=0)
            seconds.append(min(_seconds_to_fit(model, X[:n], y[:n]) for _ in range(1 if n > 10_000 else 2)))
        error = model.features_.error
        shown = "not defined" if error is None else f"{error:.1g}"
        rows.append(f"| `{name}` | {n:,} | {model.features_.rank:,} | {shown} | {seconds[-1]:.2f} |")
        ax.loglog(steps, seconds, color=colour, marker=marker, ms=5, lw=1.4, label=name)
    ax.set(title="Seconds to fit, kernel and reg given", xlabel="n")
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(out / "time.png", dpi=_DPI)
    (out / "recipes.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


def scale(out: Path) -> None:
    """Error against rank, time against size, and a table of both."""
    _error_against_rank(out)
    _time_against_size(out)


def draw_all(out: Path) -> None:
    """Draw everything into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):  # timings that do not depend on who else is computing
        for draw in (first_hour, embeddings, kernels, scale):
            draw(out)


if __name__ == "__main__":
    draw_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "generated")

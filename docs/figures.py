"""The figures and tables of the guide, made anew at every build of the documentation.

Each function draws one thing and writes it into the folder it is given; `python docs/figures.py` draws them all. There is a
section for each page of the guide, which is why the file is long: none of them is worth a file of its own.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from bandwidths import scott
from scipy import stats
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_limits

import kernelbayes as kb
from benchmarks.inference import linear_gaussian
from kernelbayes import plotting
from kernelbayes.demos import bayes_rule
from kernelbayes.demos import filter as cart
from kernelbayes.plotting import ACCENT, FAINT, GOLD, GREEN, INK, PURPLE, SECOND, name_axes

_DPI = 140


# --------------------------------------------------------------------------------------- guide/conditional.md


def commute(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Hours of departure and minutes on the way: the data of the guide, line for line as in the guide."""
    hour = rng.uniform(6, 10, n)
    road = 20 + 10 * np.exp(-((hour - 8) ** 2))
    minutes = road + 12 * (rng.random(n) < 0.4) + (0.5 + 0.05 * road) * rng.normal(size=n)
    return hour[:, None], minutes


def _commute_density(hour: float, minutes: np.ndarray) -> np.ndarray:
    road = 20 + 10 * np.exp(-((hour - 8) ** 2))
    noise = 0.5 + 0.05 * road
    return 0.6 * stats.norm.pdf(minutes, road, noise) + 0.4 * stats.norm.pdf(minutes, road + 12, noise)


def conditional(out: Path) -> None:
    """The conditional density of the commute, with three slices beside the truth."""
    model = kb.ConditionalEmbedding(random_state=0).fit(*commute(1000, np.random.default_rng(0)))
    figure = plotting.conditional_density(model, (6.5, 7.25, 8.0), truth=_commute_density, bandwidth=1.2, level=0.9)
    plane, side = figure.axes
    name_axes(plane, "hour of departure", "minutes", "Minutes on the way, given the hour of departure")
    name_axes(side, "minutes")
    for text in side.texts:
        text.set_text(text.get_text().replace("x = ", "at "))
    figure.savefig(out / "conditional.png", dpi=_DPI)


# ------------------------------------------------------------------------------ guide/conditional-density.md


def conditional_density(out: Path) -> None:
    """Two samples whose shape depends on x, with quantiles of their densities: two regimes, and a value with an atom."""
    rng = np.random.default_rng(0)
    hour = rng.uniform(6, 10, (600, 1))
    minutes = 20 + 12 * (rng.random(600) < (hour[:, 0] - 6) / 4) + rng.normal(size=600)
    month = rng.uniform(0, 12, (600, 1))
    season = 0.5 - 0.4 * np.cos(2 * np.pi * month[:, 0] / 12)
    rain = np.where(rng.random(600) < season, rng.gamma(2.0, 4.0 * season), 0.0)
    figure, axes = plotting.new_figure(2, (10.0, 3.8))
    levels = np.linspace(0.05, 0.95, 19)
    named = (("hour of departure", "minutes", "Two regimes"), ("month", "rain, mm", "No rain on many days"))
    for ax, (x, y), (x_name, y_name, title) in zip(axes, ((hour, minutes), (month, rain)), named, strict=True):
        model = kb.ConditionalDensity(random_state=0).fit(x, y)
        grid = np.linspace(x.min(), x.max(), 200)[:, None]
        ax.plot(x, y, ".", color=FAINT, ms=3)
        for level, curve in zip(levels, model.quantile(grid, levels), strict=True):
            ax.plot(grid, curve, color=ACCENT if abs(level - 0.5) < 1e-9 else SECOND, lw=0.8)
        name_axes(ax, x_name, y_name, f"{title}: quantiles of 5, 10, ..., 95 %")
    figure.savefig(out / "conditional-density.png", dpi=_DPI)


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


# ----------------------------------------------------------------------------------------- guide/decoding.md


def branches(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two branches, one taken in 70 % of cases: the data of the guide, line for line."""
    x = rng.uniform(-2, 2, (n, 1))
    branch = np.where(rng.random(n) < 0.7, 1, -1)
    return x, branch * (1 + x[:, 0] ** 2) + 0.3 * rng.normal(size=n)


def decoding(out: Path) -> None:
    """One posterior with signed weights: its distribution function, its density, and points and a mixture for it."""
    x, y = branches(500, np.random.default_rng(0))
    there = kb.ConditionalEmbedding(target_kernel=kb.Gaussian(0.5), random_state=0).fit(x, y).embed([0.5])
    truth = kb.AnalyticEmbedding(
        kb.Mixture([stats.norm(1.25, 0.3), stats.norm(-1.25, 0.3)], [0.7, 0.3]), kb.Gaussian(0.5)
    )
    grid = np.linspace(-3, 3, 601)
    figure, (left, middle, right) = plotting.new_figure(3, (11.0, 3.6))

    left.plot(grid, there.cdf(grid, raw=True), color=FAINT, lw=1.2, label="running sum, raw")
    left.plot(grid, there.cdf(grid), color=SECOND, lw=1.8, label="made to rise")
    left.plot(grid, truth.cdf(grid), color=INK, lw=1.2, ls="--", label="true")
    left.axhline(1.0, color=FAINT, lw=0.6, ls=":")
    left.set(title="Distribution function", xlabel="y")
    left.legend(frameon=False, fontsize=8, loc="upper left")

    wide = scott(there)
    middle.fill_between(grid, there.density(grid), color=SECOND, alpha=0.35, lw=0, label="density, default")
    middle.plot(grid, there.density(grid, wide), color=GOLD, lw=1.4, label=f"bandwidth {wide:.1f}, by Scott's rule")
    middle.plot(grid, truth.density(grid), color=INK, lw=1.2, ls="--", label="true")
    middle.set(title="Density", xlabel="y", ylim=(0, 1.35))
    middle.legend(frameon=False, fontsize=8, loc="upper left")

    right.plot(grid, there.mixture(2, random_state=0).density(grid), color=GREEN, lw=1.8, label="mixture(2)")
    right.plot(grid, truth.density(grid), color=INK, lw=1.2, ls="--", label="true")
    marks = (
        (there.mean(), "o", INK, "mean"),
        (there.mode(), "v", ACCENT, "mode"),
        (there.preimage(), "D", PURPLE, "preimage"),
    )
    for height, (point, marker, colour, label) in zip((0.04, 0.04, 0.13), marks, strict=True):
        right.plot(point, height, marker, color=colour, ms=7, label=label, ls="none")
    right.set(title="A mixture, and single points", xlabel="y", ylim=(0, 1.35))
    right.legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(out / "decoding.png", dpi=_DPI)


# ------------------------------------------------------------------------------------------- guide/kernels.md


def kernels(out: Path) -> None:
    """Profiles of the stationary kernels, and what functions of their spaces look like."""
    shown = {
        "Gaussian": (kb.Gaussian(), INK),
        "Matern(2.5)": (kb.Matern(2.5), GREEN),
        "Matern(1.5)": (kb.Matern(1.5), SECOND),
        "Laplace": (kb.Laplace(), ACCENT),
        "RationalQuadratic": (kb.RationalQuadratic(), GOLD),
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
    'Subspace(r, "kmeans")': (lambda r: kb.Subspace(r, "kmeans"), GREEN, "^"),
    'Subspace(r, "herding")': (lambda r: kb.Subspace(r, "herding"), PURPLE, "v"),
    'Subspace(r, "leverage")': (lambda r: kb.Subspace(r, "leverage"), GOLD, "D"),
    "RandomFourier(r)": (kb.RandomFourier, ACCENT, "x"),
}
_KERNEL, _REG = kb.Gaussian(0.5), 1e-4


def _errors(recipe: kb.Recipe, seed: int, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, K: np.ndarray) -> tuple:
    """Relative error of the Gram matrix, and predictions at new points."""
    model = kb.ConditionalEmbedding(_KERNEL, features=recipe, reg=_REG, random_state=seed).fit(X, y)
    F = model.features_.transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.PosteriorWarning)  # the smallest ranks do not reach everywhere
        found = model.predict(X_new)
    return np.linalg.norm(K - F @ F.T) / np.linalg.norm(K), found


def _sizes_on_x(ax: Any, sizes: tuple[int, ...], label: str) -> None:
    """The sizes that were tried as ticks of a logarithmic axis."""
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    ax.set_xlabel(label)


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
    left.set(title="Error of the Gram matrix, relative", ylim=(1e-5, 3))
    right.set(title="Predictions: rms distance to Exact", ylim=(1e-4, 1.5))
    for ax in (left, right):
        _sizes_on_x(ax, ranks, "r")
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
    ax.set(title="Seconds to fit, kernel and reg given")
    _sizes_on_x(ax, many, "n")
    ax.legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(out / "time.png", dpi=_DPI)
    (out / "recipes.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


def scale(out: Path) -> None:
    """Error against rank, time against size, and a table of both."""
    _error_against_rank(out)
    _time_against_size(out)


# ------------------------------------------------------------------------------------------ guide/sampling.md


def banana(n: int, rng: np.random.Generator) -> np.ndarray:
    """Points along a bent ridge."""
    along = rng.normal(size=n)
    return np.stack([1.3 * along, along**2 + 0.4 * rng.normal(size=n)], axis=1)


def _distance_against_size(ax: Any, sample: kb.MeanEmbedding, rng: np.random.Generator) -> None:
    def drawn(n: int) -> float:
        draws = (kb.MeanEmbedding(rng.choice(sample.points, n), kernel=sample.kernel) for _ in range(5))
        return float(np.sqrt(np.mean([sample.distance(few) ** 2 for few in draws])))

    sizes = (5, 10, 20, 40, 80, 160)
    ways = {
        "drawn at random": (drawn, FAINT, "o"),
        "herd(n)": (lambda n: sample.distance(sample.herd(n)), SECOND, "s"),
        "herd(n, refine=3)": (lambda n: sample.distance(sample.herd(n, refine=3)), INK, "^"),
        "herd(n, refine=3, continuous=True)": (
            lambda n: sample.distance(sample.herd(n, refine=3, continuous=True, random_state=0)),
            ACCENT,
            "D",
        ),
    }
    for name, (way, colour, marker) in ways.items():
        ax.loglog(sizes, [way(n) for n in sizes], color=colour, marker=marker, ms=4, lw=1.4, label=name)
    ax.set(title="Distance to the sample", ylim=(2e-4, None))
    _sizes_on_x(ax, sizes, "n")
    ax.legend(frameon=False, fontsize=8, loc="lower left")


def _signed_weights(ax: Any) -> None:
    """A posterior with signed weights, and points of equal weight that stand for it."""
    rng, kernel = np.random.default_rng(1), kb.Gaussian(0.35)
    z = rng.uniform(-2.5, 2.5, (150, 1))
    model = kb.ConditionalEmbedding(kb.Gaussian(0.5), kernel, reg=1e-5).fit(z**2 + 0.1 * rng.normal(size=(150, 1)), z)
    posterior = model.embed([1.5])  # z is near -1.22 or 1.22
    even = kb.resample(posterior, always=True)
    grid = np.linspace(-2.5, 2.5, 300)
    ax.plot(grid, posterior(grid), color=INK, lw=1.8, label="embedding")
    ax.plot(grid, even(grid), color=ACCENT, lw=1.2, ls="--", label="resampled")
    ax.vlines(z[:, 0], -0.3, -0.3 + 2.0 * posterior.weights, color=INK, lw=1.0)
    taken, counts = np.unique(even.points[:, 0], return_counts=True)
    ax.vlines(taken, -0.8, -0.8 + counts / len(even), color=ACCENT, lw=1.0)
    ax.text(0.0, -0.2, "signed weights", ha="center", fontsize=8, color=INK)
    ax.text(0.0, -0.7, "times taken", ha="center", fontsize=8, color=ACCENT)
    ax.set(title="Resampling", xlabel="z", yticks=[0.0, 0.5], ylim=(-0.9, 0.85))
    ax.legend(frameon=False, fontsize=8, loc="upper center", ncol=2)


def herding(out: Path) -> None:
    """Herded points on a banana, their distance against their number, and resampling of signed weights."""
    rng = np.random.default_rng(0)
    sample = kb.MeanEmbedding(banana(2000, rng), kernel=kb.Gaussian(0.8))
    figure, (left, middle, right) = plotting.new_figure(3, (12.0, 3.8))
    few = sample.herd(40, refine=3).points
    left.plot(*sample.points.T, ".", color=FAINT, ms=1.5, alpha=0.7, label="the sample")
    left.plot(*few.T, "o", color=ACCENT, ms=4, label="40 herded points")
    left.set(title="2,000 points, and 40 that stand for them", ylim=(-1.5, 7.5), xlim=(-4.2, 4.2))
    left.set(xlabel="x0", ylabel="x1")
    left.legend(frameon=False, fontsize=8, loc="upper center", markerscale=1.5)
    _distance_against_size(middle, sample, rng)
    _signed_weights(right)
    figure.savefig(out / "herding.png", dpi=_DPI)


# --------------------------------------------------------------------------------------------- guide/bayes.md


def bayes(out: Path) -> None:
    """Prior, exact posterior and kernel posterior of the sensor in the guide, for three readings."""
    model = kb.KernelBayesRule(random_state=0).fit(*bayes_rule.examples(600, np.random.default_rng(0)))
    bayes_rule.figure(model).savefig(out / "bayes.png", dpi=_DPI)


# ------------------------------------------------------------------------------------------- guide/filters.md


def filters(out: Path) -> None:
    """The cart of the guide: filtered through a silence, and smoothed in the plane."""
    rng = np.random.default_rng(1)
    (place, strength, _), (truth, readings, _) = cart.drive(250, rng), cart.drive(120, rng)
    model = kb.KernelBayesFilter(tune=10, progress=False, random_state=0).fit(strength, place)
    readings[60:70] = np.nan
    figure = model.filter(readings).plot(truth)
    for ax, label in zip(figure.axes, ("along the hall, m", "across it, m"), strict=True):
        name_axes(ax, y=label)
    figure.savefig(out / "filters.png", dpi=_DPI)
    figure = model.smooth(readings[:28]).plot(truth[:28], plane=True)
    ax = figure.axes[0]
    ax.plot([-9, 9], [0, 0], "^", color=GOLD, ms=8)
    for x in (-9, 9):
        ax.annotate("beacon", (x, 0), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=8, color=INK)
    ax.set(xlim=(-10, 10))
    name_axes(ax, "along the hall, m", "across it, m")
    figure.set_size_inches(8.0, 3.8)
    figure.savefig(out / "filters-plane.png", dpi=_DPI)


# ----------------------------------------------------------------------------------------- guide/inference.md


def course(contagion: float, days_ill: float, rng: np.random.Generator) -> np.ndarray:
    """Boys in bed on each of fourteen days, as in the guide."""
    well, ill, counts = 760, 3, [3]
    for step in range(13 * 8):
        caught = rng.binomial(well, 1 - np.exp(-contagion * ill / 763 / 8))
        recovered = rng.binomial(ill, 1 - np.exp(-1 / days_ill / 8))
        well, ill = well - caught, ill + caught - recovered
        counts += [ill] if step % 8 == 7 else []
    return np.array(counts)


def _describe(counts: np.ndarray) -> dict[str, float]:
    return {"peak": counts.max(), "middle": np.arange(14) @ counts / counts.sum(), "bed_days": counts.sum()}


def inference(out: Path) -> None:
    """The boarding school of the guide: the posterior, the predictive check, and calibration."""
    in_bed = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
    prior = kb.Prior(contagion=stats.lognorm(0.6, scale=1.5), days_ill=(0.5, 6))
    posterior = kb.infer(
        lambda contagion, days_ill, rng: _describe(course(contagion, days_ill, rng)),
        prior,
        _describe(in_bed),
        simulations=300,
        random_state=0,
    )
    posterior.plot().savefig(out / "inference.png", dpi=_DPI)
    posterior.predictive(100, random_state=0).plot().savefig(out / "inference-check.png", dpi=_DPI)
    kb.calibrate(posterior, 200).plot().savefig(out / "calibration.png", dpi=_DPI)


def _linear_problem() -> tuple[dict[str, Any], Any]:
    """Simulations of ten statistics that are linear in five parameters, and the exact posterior of the first two."""
    theta, x, observed, mean, covariance = linear_gaussian(1000)
    prior = kb.Prior({f"a{j}": stats.norm() for j in range(theta.shape[1])})
    exact = stats.multivariate_normal(mean[:2], covariance[:2, :2])
    return {"parameters": theta, "outputs": x, "observed": observed, "prior": prior}, exact


def adjustment(out: Path) -> None:
    """Two of five parameters whose exact posterior is normal, with and without the regression."""
    given, exact = _linear_problem()
    sd = np.sqrt(np.diag(exact.cov))
    sides = exact.mean + 4 * sd * np.linspace(-1, 1, 90)[:, None]
    grid = np.stack(np.meshgrid(*sides.T), -1)
    figure, axes = plotting.new_figure(2, (8.0, 3.6))
    for ax, adjust, title in zip(axes, (False, True), ("kernel means posterior", "adjusted"), strict=True):
        draws = kb.infer(**given, method=kb.lfi.KELFI(adjust=adjust), random_state=0).sample(1500, random_state=0)
        ax.plot(*draws[:, :2].T, ".", color=ACCENT, ms=2.5, alpha=0.5, label="draws")
        ax.contour(*np.moveaxis(grid, -1, 0), exact.pdf(grid), levels=_levels(exact), colors=INK, linewidths=1.3)
        ax.plot([], [], color=INK, lw=1.3, label="exact, 50 and 90 %")
        ax.set(xlim=sides[[0, -1], 0], ylim=sides[[0, -1], 1], title=title)
        name_axes(ax, "$a_0$", "$a_1$")
    axes[1].legend(frameon=False, fontsize=8, loc="upper right")
    figure.savefig(out / "adjustment.png", dpi=_DPI)


def _levels(normal: Any) -> list[float]:
    """Densities of a normal in the plane on the edges of its inner 90 and 50 %."""
    top = normal.pdf(normal.mean)
    return [top * (1.0 - share) for share in (0.9, 0.5)]


# ------------------------------------------------------------------------------------ guide/classification.md


def draw_groups(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Four groups that overlap, as in the guide."""
    centres = 0.9 * np.random.default_rng(5).normal(size=(4, 6))
    group = rng.integers(4, size=n)
    return centres[group] + rng.normal(size=(n, 6)), group


def _side_by_side(figures: list[Any], path: Path) -> None:
    """One picture of several figures of equal height."""
    from matplotlib.image import imsave

    pictures = []
    for figure in figures:
        figure.set_dpi(_DPI)
        figure.canvas.draw()
        pictures.append(np.asarray(figure.canvas.buffer_rgba()))
    imsave(path, np.concatenate(pictures, axis=1))


def classification(out: Path) -> None:
    """Clipped and calibrated probabilities, a map of two classes with its uncertainty, and relevance of inputs."""
    rng = np.random.default_rng(0)
    (X, group), (X_new, group_new) = draw_groups(300, rng), draw_groups(3000, rng)
    model = kb.ConditionalEmbeddingClassifier(random_state=0).fit(X, group)
    same = {"kernel": model.kernel_, "reg": model.reg_, "learn": None}
    clipped = kb.ConditionalEmbeddingClassifier(calibration=None, **same).fit(X, group)
    shown = []
    for name, one in (("Clipped", clipped), ("Calibrated", model)):
        shown.append(one.plot_calibration(X_new, group_new))
        ax = shown[-1].axes[0]
        name_axes(ax, title=f"{name}. {ax.get_title()}", size=8.5)
    _side_by_side(shown, out / "classification-reliability.png")

    moons = make_moons(400, noise=0.3, random_state=0)
    figure = kb.ConditionalEmbeddingClassifier(random_state=0).fit(*moons).plot_map(*moons)
    figure.savefig(out / "classification-map.png", dpi=_DPI)

    X = np.random.default_rng(1).normal(size=(400, 8))
    ring = kb.ConditionalEmbeddingClassifier(random_state=0).fit(X, X[:, 2] ** 2 + X[:, 5] ** 2 > 1.4)
    ring.plot_relevance().savefig(out / "classification-relevance.png", dpi=_DPI)


# ------------------------------------------------------------------------------------- guide/density-ratio.md


def _relative_ratios(ax: Any) -> None:
    """A narrow numerator: relative ratios for three alphas beside the truth."""
    rng, grid = np.random.default_rng(1), np.linspace(-2.5, 2.5, 400)
    wide, narrow = rng.normal(0, 1, 600), rng.normal(0.5, 0.2, 600)
    p, q = stats.norm.pdf(grid, 0.5, 0.2), stats.norm.pdf(grid)
    for alpha, colour in ((0.0, ACCENT), (0.1, SECOND), (0.5, GREEN)):
        model = kb.DensityRatio(alpha=alpha, random_state=0).fit(narrow, wide)
        ax.plot(grid, p / (alpha * p + (1 - alpha) * q), color=colour, lw=1.0, ls="--")
        ax.plot(grid, model(grid), color=colour, lw=1.8, label=f"$\\alpha$ = {alpha:g}")
    ax.plot([], [], color=INK, lw=1.0, ls="--", label="true")
    ax.plot(wide, np.full(600, -0.25), "|", color=FAINT, ms=5, mew=0.5)
    ax.set(title="Relative ratios to a narrow numerator", xlabel="z", ylabel="ratio")
    ax.legend(frameon=False, fontsize=8, loc="upper left")


def density_ratio(out: Path) -> None:
    """Two samples and their ratio, relative ratios, and the scores of the candidates."""
    rng, grid = np.random.default_rng(0), np.linspace(15, 88, 300)
    population, patients = rng.normal(50, 15, 1000), rng.normal(65, 10, 300)
    model = kb.DensityRatio(random_state=0).fit(patients, population)
    figure, (left, middle, right) = plotting.new_figure(3, (12.0, 3.8))
    scale = 60.0  # histograms are densities, drawn on the axis of the ratio
    for sample, colour, label in ((population, FAINT, "population"), (patients, SECOND, "patients")):
        heights, edges = np.histogram(sample, bins=30, density=True)
        left.stairs(scale * heights, edges, fill=True, color=colour, alpha=0.35, label=label)
    truth = stats.norm.pdf(grid, 65, 10) / stats.norm.pdf(grid, 50, 15)
    left.plot(grid, truth, color=INK, lw=1.0, ls="--", label="true ratio")
    left.plot(grid, model(grid), color=ACCENT, lw=1.8, label="estimated")
    left.set(title="Two samples and their ratio", xlabel="age", ylabel="ratio", xlim=(5, 95), ylim=(0, 5.2))
    left.legend(frameon=False, fontsize=8, loc="upper left")
    _relative_ratios(middle)
    table = model.scores_
    factors, regs = np.unique(table["factor"]), np.unique(table["reg"][table["factor"] == table["factor"][0]])
    scores = table["score"].reshape(len(factors), len(regs))
    # steps double away from the best, so that the flat valley and the steep slopes both show
    levels = scores.min() + 1e-3 * 2.0 ** np.arange(11)
    right.contourf(regs, factors, scores, levels=[scores.min(), *levels], cmap="Blues_r", extend="max")
    chosen = model.kernel_.lengthscale[0] / kb.median_lengthscale(population)
    right.plot(model.reg_, chosen, "x", color=ACCENT, ms=8, mew=2, label="chosen")
    right.legend(frameon=False, fontsize=8, loc="lower left")
    right.set(xscale="log", yscale="log", xlabel="reg", title="Leave-one-out scores: dark is good")
    right.set_ylabel("lengthscale / median distance")
    right.set_yticks([0.1, 0.3, 1.0, 3.0], ["0.1", "0.3", "1", "3"])
    right.minorticks_off()
    figure.savefig(out / "density-ratio.png", dpi=_DPI)


# ------------------------------------------------------------------------------------ guide/learned-features.md


def draw_blobs(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images of a blob and its place, as in the guide."""
    place = rng.uniform(3, 12, (n, 2))
    down, across = np.mgrid[:16, :16]
    squared = (across - place[:, 0, None, None]) ** 2 + (down - place[:, 1, None, None]) ** 2
    return np.exp(-squared / 6) + 0.5 * rng.normal(size=(n, 16, 16)), place


def _posterior_places(images: np.ndarray) -> np.ndarray:
    """The mean place given each picture, by the noise and the uniform places that `draw_blobs` has."""
    line = np.linspace(3, 12, 46)
    places = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    down, across = np.mgrid[:16, :16]
    blobs = np.exp(-((across - places[:, 0, None, None]) ** 2 + (down - places[:, 1, None, None]) ** 2) / 6)
    blobs = blobs.reshape(len(places), -1)
    log_likelihood = (images.reshape(len(images), -1) @ blobs.T - 0.5 * (blobs * blobs).sum(1)) / 0.5**2
    weights = np.exp(log_likelihood - log_likelihood.max(1, keepdims=True))
    return weights @ places / weights.sum(1, keepdims=True)


def _nine_images(ax: Any, images: np.ndarray, place: np.ndarray, found: np.ndarray) -> None:
    shown = np.block([[images[3 * i + j] for j in range(3)] for i in range(3)])
    ax.imshow(shown, cmap="Greys", vmin=-1, vmax=2)
    corner = 16 * np.array([(j, i) for i in range(3) for j in range(3)])
    ax.plot(*(corner + place[:9]).T, "o", mfc="none", color=SECOND, ms=11, mew=1.6, label="true place")
    ax.plot(*(corner + found[:9]).T, "+", color=ACCENT, ms=9, mew=1.8, label="predicted")
    for edge in (15.5, 31.5):
        ax.axhline(edge, color="white", lw=2)
        ax.axvline(edge, color="white", lw=2)
    ax.set(title="Nine images never seen", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=2)


def learned_features(out: Path) -> None:
    """Images with a blob, the learning curve of a network, and predicted against true places."""
    rng = np.random.default_rng(0)
    (images, place), (new_images, new_place) = draw_blobs(600, rng), draw_blobs(300, rng)
    features = kb.learn_features(images, place, epochs=120, random_state=0)
    found = kb.ConditionalEmbedding(features=features, random_state=0).fit(images, place).predict(new_images)
    pixels = kb.ConditionalEmbedding(random_state=0).fit(images.reshape(600, -1), place)
    by_pixels = pixels.predict(new_images.reshape(300, -1))
    ways = {
        "learned features": found,
        "a kernel on pixels": by_pixels,
        "the posterior mean, by one who knows how pictures are drawn": _posterior_places(new_images),
    }
    _table_of_errors(ways, new_place, out / "learned-features-errors.md")
    figure, (left, middle, right) = plotting.new_figure(3, (11.0, 3.8))

    _nine_images(left, new_images, new_place, found)
    epochs = np.arange(1, len(features.history["train"]) + 1)
    middle.loglog(epochs, features.history["train"], color=FAINT, lw=1.2, label="training")
    middle.loglog(epochs, features.history["validation"], color=SECOND, lw=1.4, label="validation")
    middle.axhline(features.baseline, color=INK, lw=1, ls="--", label="predicting the mean")
    best = features.best_epoch
    middle.plot(best, features.history["validation"][best - 1], "o", color=ACCENT, ms=6, label="kept")
    middle.set(title="Learning curve", xlabel="epoch", ylabel="loss")
    middle.legend(frameon=False, fontsize=8, loc="lower left")

    right.plot([3, 12], [3, 12], color=INK, lw=0.8)
    right.plot(new_place[:, 0], by_pixels[:, 0], ".", color=FAINT, ms=4, label="Gaussian kernel on pixels")
    right.plot(new_place[:, 0], found[:, 0], ".", color=ACCENT, ms=4, label="learned features")
    right.set(title="Column of the blob", xlabel="true", ylabel="predicted")
    right.legend(frameon=False, fontsize=8, loc="upper left")
    figure.savefig(out / "learned-features.png", dpi=_DPI)


# ----------------------------------------------------------------------------------------- guide/mediator.md


def no2(x: np.ndarray) -> np.ndarray:
    """Nitrogen dioxide by height and distance to the road, as in the guide."""
    return 5 + 30 * np.exp(-x[:, 1] / 6) * (1.2 - x[:, 0] / 800)


def draw_region(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Cells of the region, their pixels, what was seen of these, and rows surveyed: line for line as in the guide."""
    east, north = (km.ravel() + 0.5 for km in np.meshgrid(np.arange(60), np.arange(60)))
    height = 400 + 250 * np.sin(east / 8) * np.cos(north / 10) + 40 * rng.normal(size=3600)
    cells = np.column_stack([height, np.abs(north - 30 - 12 * np.sin(east / 12))])
    centre = 5 * np.column_stack([east // 5, north // 5]) + 2.5
    pixels, inside = np.unique(centre, axis=0, return_inverse=True)
    seen = np.bincount(inside.ravel(), no2(cells)) / 25 + 0.5 * rng.normal(size=144)
    return cells, centre, pixels, seen, inside.ravel(), rng.choice(3600, 600, replace=False)


def _regressed(a: np.ndarray, b: np.ndarray) -> kb.ConditionalEmbedding:
    return kb.ConditionalEmbedding(random_state=0).fit(a, b)


def _table_of_errors(found: dict[str, np.ndarray], truth: np.ndarray, path: Path) -> None:
    rows = ["| way | root mean square error |", "|---|---:|"]
    rows += [f"| {way} | {np.sqrt(np.mean((values - truth) ** 2)):.2f} |" for way, values in found.items()]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def mediator(out: Path) -> None:
    """The region of the guide: maps of what was seen, found, true and imputed; the function; coverage."""
    cells, centre, pixels, seen, inside, surveyed = draw_region(np.random.default_rng(0))
    X, Y = cells[surveyed], centre[surveyed]
    model = kb.TaskTransformedGP(ard=True, mediator_noise="learn", random_state=0).fit(X, Y, pixels, seen)
    by_pixel = _regressed(pixels, seen)
    filled = by_pixel.predict(Y)
    maps = {
        "Seen: averages of pixels": seen[inside],
        "Found through the mediator": model.predict(cells),
        "Truth": no2(cells),
        "Imputed": _regressed(X, filled).predict(cells),
    }
    figure, axes = plotting.new_figure(4, (12.0, 3.3))
    for ax, (title, values) in zip(axes, maps.items(), strict=True):
        look = {"vmin": 3.0, "vmax": 33.0, "cmap": "viridis", "origin": "lower", "extent": (0, 60, 0, 60)}
        shown = ax.imshow(values.reshape(60, 60), **look)
        name_axes(ax, "km east", title=title)
    name_axes(axes[0], y="km north")
    bar = figure.colorbar(shown, ax=axes, pad=0.01, shrink=0.8)
    bar.ax.tick_params(labelsize=8)
    name_axes(bar.ax, y="nitrogen dioxide")
    figure.savefig(out / "mediator-map.png", dpi=_DPI)

    figure = model.plot(truth=no2)
    for ax, name in zip(figure.axes, ("height in m", "distance to the road in km"), strict=True):
        name_axes(ax, f"{name} (the other at its median)")
    name_axes(figure.axes[0], y="nitrogen dioxide")
    figure.savefig(out / "mediator-band.png", dpi=_DPI)
    model.plot_coverage().savefig(out / "mediator-coverage.png", dpi=_DPI)
    found = {
        "through the mediator": maps["Found through the mediator"],
        "impute": maps["Imputed"],
        "the pixel's own value, for all its cells": seen[inside],
        "cascade": by_pixel.predict(_regressed(X, Y).predict(cells)),
        "the mean of all pixels": np.full(len(cells), seen.mean()),
    }
    _table_of_errors(found, no2(cells), out / "mediator-errors.md")


# ---------------------------------------------------------------------------------------- guide/quadrature.md


_NODES = {"iid": FAINT, "sobol": GOLD, "leverage": PURPLE, "dpp": SECOND, "greedy": ACCENT}


def heating(x: np.ndarray) -> np.ndarray:
    """What heating costs in a year, by the inputs of the guide."""
    warming, loss, wanted, price = x[:, :, None].transpose(1, 0, 2)
    outside = 9.5 + warming - 9 * np.cos(2 * np.pi * np.arange(365) / 365)
    return (0.024 * loss * np.maximum(wanted - 3 - outside, 0) * price).sum(1)


def _heating_inputs() -> list[Any]:
    return [stats.norm(0, 1), stats.norm(180, 25), stats.norm(20.5, 0.8), stats.uniform(0.08, 0.10)]


def _sobol_cost(n: int, seed: int) -> float:
    """The mean over a scrambled Sobol sequence."""
    u = stats.qmc.Sobol(4, seed=seed).random(n)
    return float(heating(np.column_stack([d.ppf(c) for d, c in zip(_heating_inputs(), u.T, strict=True)])).mean())


def _error_of_the_mean_cost(truth: float, spread: float, out: Path) -> None:
    sizes, seeds = (16, 32, 64, 128), range(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kb.QuadratureWarning)  # heating sets in at a kink, and few nodes may show it
        found = [[kb.integrate(heating, _heating_inputs(), n, random_state=s) for s in seeds] for n in sizes]
    even = [[_sobol_cost(n, s) for s in seeds] for n in sizes]

    def off(means: Any) -> np.ndarray:
        return np.sqrt(np.mean((np.asarray(means) - truth) ** 2, axis=1))

    figure, ax = plotting.new_figure(1, (6.4, 3.8))
    ax.loglog(sizes, spread / np.sqrt(sizes), color=FAINT, marker="o", ms=4, label="random draws")
    ax.loglog(sizes, off(even), color=GOLD, marker="s", ms=4, label="Sobol sequence")
    ax.loglog(
        sizes, off([[r.mean() for r in row] for row in found]), color=ACCENT, marker="D", ms=4, label="kb.integrate"
    )
    told = [np.sqrt(np.mean([r.std() ** 2 for r in row])) for row in found]
    ax.loglog(sizes, told, color=ACCENT, lw=1.0, ls="--", label="its standard deviation")
    ax.set(title=f"Error of the mean cost, of {truth:,.0f}", xlabel="runs", xticks=sizes)
    ax.set_xticklabels(sizes)
    ax.minorticks_off()
    ax.legend(frameon=False, fontsize=8)
    figure.savefig(out / "quadrature-error.png", dpi=_DPI)


def _nodes_in_the_plane(out: Path) -> None:
    shown = []
    for nodes in ("iid", "leverage", "dpp"):
        rule = kb.quadrature(kb.Gaussian(1.5), [stats.norm()] * 2, 30, nodes=nodes, random_state=3)
        shown.append(rule.plot())
        shown[-1].set_size_inches(4.7, 4.8)
        shown[-1].axes[0].set(xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), aspect="equal")
        name_axes(shown[-1].axes[0], title=f"{nodes}: worst-case error {rule.worst_case_error:.1g}")
    _side_by_side(shown, out / "quadrature-nodes.png")


def _table_of_nodes(out: Path) -> None:
    spaces: dict[str, tuple[kb.Kernel, Any]] = {
        "`Gaussian(1.0)`, normal, d = 1": (kb.Gaussian(1.0), stats.norm()),
        "`Gaussian(2.0)`, normal, d = 3": (kb.Gaussian(2.0), [stats.norm()] * 3),
        "`Laplace(1.0)`, normal, d = 2": (kb.Laplace(1.0), [stats.norm()] * 2),
        "`Brownian()`, uniform": (kb.Brownian(), stats.uniform()),
    }
    rows = [f"| nodes | {' | '.join(spaces)} | sizes of weights |", "|---|" + "---:|" * (len(spaces) + 1)]
    for nodes in ("iid", "leverage", "sobol", "wide", "herding", "dpp", "greedy"):
        rules = [
            [kb.quadrature(kernel, over, 20, nodes=nodes, random_state=seed) for seed in range(5)]
            for kernel, over in spaces.values()
        ]
        errors = [f"{np.median([rule.worst_case_error for rule in row]):.1e}" for row in rules]
        size = np.median([np.abs(rule.weights).sum() for rule in rules[0]])
        rows.append(f'| `"{nodes}"` | {" | ".join(errors)} | {size:.1g} |')
    (out / "quadrature-nodes.md").write_text("\n".join(rows) + "\n", encoding="utf-8")


def _leverage_and_errors(out: Path) -> None:
    figure, (left, right) = plotting.new_figure(2, (10.0, 3.8))
    sizes, kernel = (4, 6, 9, 13, 19), kb.Gaussian(1.0)
    for nodes, colour in _NODES.items():
        rules = [[kb.quadrature(kernel, stats.norm(), n, nodes=nodes, random_state=s) for s in range(7)] for n in sizes]
        errors = [np.median([rule.worst_case_error for rule in row]) for row in rules]
        left.semilogy(sizes, errors, color=colour, marker="o", ms=4, lw=1.4, label=nodes)
    left.set(title="Worst-case error", xlabel="nodes", xticks=sizes)
    left.legend(frameon=False, fontsize=8)
    spectrum, grid = kb.mercer(kernel, stats.norm()), np.linspace(-10, 10, 500)
    for terms, colour in ((3, GOLD), (10, SECOND), (30, PURPLE)):
        reg = spectrum.regulariser(terms)
        density = spectrum.leverage(grid[:, None], reg) / terms * stats.norm.pdf(grid)
        right.plot(grid, density, color=colour, lw=1.6, label=f"{terms} terms")
    right.plot(grid, stats.norm.pdf(grid), color=INK, lw=1.0, ls="--", label="the distribution")
    right.set(title="Leverage densities", xlabel="x", ylim=(0, None))
    right.legend(frameon=False, fontsize=8)
    figure.savefig(out / "quadrature-leverage.png", dpi=_DPI)


def quadrature(out: Path) -> None:
    """The cost of heating: errors, and an integral as it became known; nodes of three kinds; errors and leverage."""
    u = stats.qmc.Sobol(4, seed=0).random(2**16)
    x = np.column_stack([d.ppf(c) for d, c in zip(_heating_inputs(), u.T, strict=True)])
    costs = np.concatenate([heating(part) for part in np.array_split(x, 16)])
    truth, spread = float(costs.mean()), float(costs.std())
    _error_of_the_mean_cost(truth, spread, out)
    found = kb.integrate(heating, _heating_inputs(), 12, tol=1.0, random_state=0)
    found.plot(truth=truth).savefig(out / "quadrature-integral.png", dpi=_DPI)
    _nodes_in_the_plane(out)
    _table_of_nodes(out)
    _leverage_and_errors(out)


_FIGURES = (
    conditional,
    conditional_density,
    embeddings,
    decoding,
    kernels,
    scale,
    herding,
    bayes,
    filters,
    inference,
    adjustment,
    classification,
    density_ratio,
    learned_features,
    mediator,
    quadrature,
)


def draw_all(out: Path) -> None:
    """Draw everything into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):  # timings that do not depend on who else is computing
        for draw in _FIGURES:
            draw(out)


if __name__ == "__main__":
    draw_all(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "generated")

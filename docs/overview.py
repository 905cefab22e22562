"""The picture of the README: the one idea on top, and below it what the three examples of the README found.

The examples are run as they are printed there, so that picture and text agree. `python docs/overview.py` draws it anew.
"""

from __future__ import annotations

import doctest
import sys
from pathlib import Path
from typing import Any

import numpy as np

from kernelbayes.plotting import ACCENT, FAINT, INK, SECOND

HERE = Path(__file__).resolve().parent
PICTURE = HERE / "images" / "overview.png"
_PALE = "#eef3f7"
_CHAIN = (
    ("data", "pairs, simulations,\na log"),
    ("kernel", "how alike are\ntwo points?"),
    ("features F", "n points become\nn rows of r numbers"),
    ("rule", "a few lines of\nlinear algebra"),
    ("embedding", "points with\nsigned weights"),
    ("ask", "mean, interval, density,\nprobability, draws"),
)


def examples(text: str) -> dict[str, Any]:
    """What the variables of a page's examples hold in the end."""
    scope: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(text):
        exec(example.source, scope)
    return scope


def _chain(ax: Any) -> None:
    """The one idea, in boxes."""
    from matplotlib.patches import FancyBboxPatch

    ax.set(xlim=(0, 5.9), ylim=(0, 1))
    ax.axis("off")
    for i, (name, what) in enumerate(_CHAIN):
        box = {
            "boxstyle": "round,pad=0,rounding_size=0.08",
            "fc": _PALE,
            "ec": SECOND,
            "lw": 1.2,
            "mutation_aspect": 0.5,
        }
        ax.add_patch(FancyBboxPatch((i + 0.06, 0.1), 0.78, 0.8, **box))
        ax.text(i + 0.45, 0.68, name, ha="center", va="center", fontsize=12.5, color=INK, weight="bold")
        ax.text(i + 0.45, 0.35, what, ha="center", va="center", fontsize=9.5, color=INK, linespacing=1.2)
        if i + 1 < len(_CHAIN):
            arrow = {"arrowstyle": "-|>", "color": ACCENT, "lw": 1.8, "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", (i + 1.05, 0.5), (i + 0.86, 0.5), arrowprops=arrow)


def _pairs(ax: Any, scope: dict[str, Any]) -> None:
    """The density of y at every x, and its shape at one."""
    model, x, y = scope["model"], scope["x"][:, 0], scope["y"]
    across, up = np.linspace(-2, 2, 120), np.linspace(-6, 6, 200)
    density = np.stack([model.embed([v]).density(up) for v in across], axis=1)
    ax.pcolormesh(across, up, density, cmap="Blues", vmax=0.7, shading="auto", rasterized=True)
    ax.scatter(x, y, s=3, color=INK, alpha=0.45, linewidths=0)
    slice_ = 0.75 * scope["there"].density(up)
    ax.fill_betweenx(up, 1.0, 1.0 + slice_, where=slice_ > 0.005, color=ACCENT, alpha=0.75, lw=0)
    ax.axvline(1.0, color=ACCENT, lw=1.2)
    ax.text(0.96, 0.0, "x = 1", ha="right", va="center", fontsize=9.5, color=ACCENT)
    ax.set(xlabel="x", ylabel="y", ylim=(-5.6, 5.6))
    ax.set_title("Pairs in, p(y | x) out", fontsize=12, color=INK)


def _simulator(ax: Any, scope: dict[str, Any]) -> None:
    """The posterior of two parameters, over the prior that it came from."""
    draws, before = scope["found"].sample(600, random_state=0), scope["prior"].sample(500, random_state=0)
    ax.plot(*before.T, "o", color=FAINT, ms=2.2, mew=0, alpha=0.8)
    ax.plot(*draws.T, "o", color=SECOND, ms=2.6, mew=0, alpha=0.5)
    ax.plot([], [], "o", color=FAINT, ms=5, mew=0, label="prior")
    ax.plot([], [], "o", color=SECOND, ms=5, mew=0, label="posterior after 400 runs")
    ax.set(xlabel="contagion", ylabel="days ill", xlim=(0.1, 1.0), ylim=(1.0, 14.0))
    ax.legend(loc="upper right", fontsize=9.5, framealpha=1.0, edgecolor="none", handletextpad=0.2)
    ax.set_title("A simulator in, its parameters out", fontsize=12, color=INK)


def _log(ax: Any, scope: dict[str, Any]) -> None:
    """One coordinate of the state: read, true and filtered."""
    track, seen = scope["track"], slice(0, 60)
    truth, readings = scope["states"][300:][seen, 0], scope["readings"][300:][seen, 0]
    lower, upper = track.interval(0.9)[:, seen, 0]
    steps = np.arange(60)
    ax.plot(steps, readings, "x", color=FAINT, ms=4.5, mew=1.1, label="reading")
    ax.fill_between(steps, lower, upper, color=SECOND, alpha=0.25, lw=0, label="90 %")
    ax.plot(steps, track.mean()[seen, 0], color=SECOND, lw=2.0, label="mean")
    ax.plot(steps, truth, color=ACCENT, lw=1.3, ls=(0, (3, 1.5)), label="truth")
    ax.set(xlabel="step", ylabel="state", ylim=(-1.9, 2.6))
    ax.legend(
        loc="upper center", fontsize=9.5, frameon=False, ncol=4, handlelength=1.3, columnspacing=1.0, handletextpad=0.4
    )
    ax.set_title("A log in, a filter out", fontsize=12, color=INK)


def draw(scope: dict[str, Any], path: Path) -> None:
    """Draw the picture from the variables of the examples."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 5.6), layout="constrained")
    FigureCanvasAgg(figure)
    top, below = figure.subfigures(2, 1, height_ratios=(0.27, 1.0))
    _chain(top.subplots())
    for ax, panel in zip(below.subplots(1, 3), (_pairs, _simulator, _log), strict=True):
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9)
        panel(ax, scope)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=100)
    _fewer_colours(path)


def _fewer_colours(path: Path) -> None:
    """The same picture with a palette: a third of the size, and no difference to be seen."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(192, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    readme = (HERE.parent / "README.md").read_text(encoding="utf-8")
    draw(examples(readme), Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)

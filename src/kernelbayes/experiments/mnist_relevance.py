r"""Relevance of pixels, and accuracy against the number of images. Hsu (2019), section 3.10.3, figure 3.2 (left, bottom).

With `--data DIR` the images are those of `DIR/mnist.npz` (arrays x and y, or x_train, y_train, x_test, y_test) or of the CSV
files there, label last; otherwise scikit-learn's digits, 1,797 images of 8 x 8. Each repeat draws the training images of
the largest size, of which smaller sizes are the first, and up to 2,000 test images from the rest. Grey values go
from 0 to 1.

| method | what it is |
|---|---|
| bound | `kb.ConditionalEmbeddingClassifier(ard=True)`: a lengthscale for each pixel, by the bound |
| bound, one lengthscale | the same with `ard=False` |
| ERM | a lengthscale for each pixel, without the complexity |
| SVC | scikit-learn's as it comes |
| SVC, tuned | C and gamma from a 5 x 5 grid by three folds |

The thesis also has Gaussian process classifiers, which take days at its sizes.

For the images of relevance, half of the images of a group of digits are learned from, at most 1,000. All pixels start with
the same lengthscale, the root of the sum of their variances, so that whatever sets them apart afterwards comes from the
labels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._typing import Array
from ..classification import ConditionalEmbeddingClassifier
from ..kernels import Gaussian
from ._classifiers import support_vectors
from ._estimates import Estimate, mean, show
from ._expected import expected_warnings
from ._figures import ACCENT, FAINT, GOLD, INK, SECOND, panels
from ._labelled import DataSet, image_side, read_images, shipped
from ._result import Claim, Result, Table, columns, verdict
from ._study import Runs, Study

TITLE = "Digits: which pixels matter, and accuracy against the number of images"
SOURCE = "Hsu (2019), section 3.10.3, figure 3.2"
DATA = "mnist.npz or *.csv"

_MANY = 750  # images from which the thesis finds the bound ahead of ERM
_MOST_TEST = 2000
_GROUPS = (("3", "8"), ("4", "9"), ("1", "7"))


class _Method(NamedTuple):
    label: str
    colour: str
    fit: Callable[[Array, Array], Any]


def _default_svc(X: Array, y: Array) -> Any:
    from sklearn.svm import SVC

    return SVC().fit(X, y)


def _embedding(**settings: Any) -> Callable[[Array, Array], Any]:
    return lambda X, y: ConditionalEmbeddingClassifier(**settings, random_state=0).fit(X, y)


METHODS = {
    "bound": _Method("bound", ACCENT, _embedding(ard=True)),
    "isotropic": _Method("bound, one lengthscale", GOLD, _embedding(ard=False)),
    "erm": _Method("ERM", INK, _embedding(ard=True, learn="erm")),
    "svc": _Method("SVC", FAINT, _default_svc),
    "tuned": _Method("SVC, tuned", SECOND, lambda X, y: support_vectors(X, y, probabilities=False)),
}


# -------------------------------------------------------------------------------------------------- one repeat


def _accuracies(data: DataSet, settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    order = rng.permutation(len(data.X))
    most = max(settings["sizes"])
    train, test = order[:most][: settings["n"]], order[most:][:_MOST_TEST]
    numbers = {}
    for name, method in METHODS.items():
        with expected_warnings():
            model = method.fit(data.X[train], data.y[train])
        numbers[name] = float((model.predict(data.X[test]) == data.y[test]).mean())
    return numbers


def _in_group(data: DataSet, group: str) -> Array:
    """Rows with the digits of a group, written like "3 8"."""
    return np.flatnonzero(np.isin(np.array(data.classes)[data.y], group.split()))


def _relevances(data: DataSet, settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    from scipy import stats

    rows = rng.permutation(_in_group(data, settings["group"]))
    rows = rows[: min(len(rows) // 2, settings["most"])]
    X, y = data.X[rows], data.y[rows]
    spread, apart = X.std(0), class_differences(X, y)
    lengthscale, start = _lengthscales(X, y)
    by_chance, _ = _lengthscales(X, rng.permutation(y))

    def correlation(values: Array) -> float:
        return float(stats.spearmanr(values[spread > 0], apart[spread > 0]).statistic)  # type: ignore[attr-defined]

    return {
        "by_lengthscale": correlation(1.0 / lengthscale),
        "by_chance": correlation(1.0 / by_chance),
        "by_relevance": correlation(spread / lengthscale),
        "range": float(np.ptp(np.log10(lengthscale[spread > 0]))),
        **{f"log_{i}": float(v) for i, v in enumerate(np.log10(lengthscale / start))},
    }


def _lengthscales(X: Array, y: Array) -> tuple[Array, float]:
    """The lengthscale of each pixel, and where all of them started."""
    start = float(np.sqrt((X.std(0) ** 2).sum()))
    with expected_warnings():
        model = ConditionalEmbeddingClassifier(Gaussian(np.full(X.shape[1], start)), random_state=0).fit(X, y)
    return model.kernel_.lengthscale, start  # type: ignore[attr-defined]


def class_differences(X: Array, y: Array) -> Array:
    """How far the means of the classes are apart in each column: their standard deviation."""
    return np.std([X[y == c].mean(0) for c in np.unique(y)], axis=0)


# --------------------------------------------------------------------------------------------------------- run


def run(study: Study) -> Result:
    """Accuracies over sizes, and lengthscales of pixels for groups of digits."""
    data = shipped("digits") if study.data is None else read_images(study.data)
    side = image_side(data)
    data = data._replace(X=(data.X - data.X.min()) / np.ptp(data.X))
    full = [50, 100, 200, 500, 1000, 2000, 5000]
    sizes = [50, 200] if study.quick else [n for n in full if n + 500 <= len(data.X)]
    settings = {
        "images": f"{len(data.X)} of {side} x {side}, {data.digest()}",
        "sizes": sizes,
        "most": 200 if study.quick else 1000,
        "repeats": 2 if study.quick else 5,
    }
    runs = study.repeat(functools.partial(_accuracies, data), settings, [{"n": n} for n in sizes], paired=True)
    groups = [" ".join(g) for g in _GROUPS if {*g} <= {*data.classes}] + [" ".join(data.classes)]
    pixels = study.repeat(functools.partial(_relevances, data), settings, [{"group": g} for g in groups])
    figures = [study.save(_figure(runs)), study.save(_images(data, pixels, side), "pixels")]
    return Result(settings, [_table(runs), _pixel_table(pixels)], claims(runs, pixels), figures, runs)


def _table(runs: Runs) -> Table:
    rows = columns(runs.case("n"), *([mean(100.0 * row) for row in runs[name]] for name in METHODS))
    title = "Test accuracy in percent: means over the repeats (standard errors)"
    return Table(title, ["n", *(method.label for method in METHODS.values())], rows)


def _label(group: str) -> str:
    digits = group.split()
    return "all" if len(digits) > 2 else " and ".join(digits)


def _pixel_table(pixels: Runs) -> Table:
    measures = ("by_lengthscale", "by_chance", "by_relevance", "range")
    rows = columns(map(_label, pixels.case("group").tolist()), *(pixels.estimates(name) for name in measures))
    return Table(
        "Rank correlation over pixels with how far class means are apart, of 1 / lengthscale, of the same learned from "
        "shuffled labels, and of relevance, spread / lengthscale; range of the lengthscales in decades (standard errors)",
        ["digits", "1 / lengthscale", "shuffled labels", "relevance", "range"],
        rows,
    )


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs, pixels: Runs) -> list[Claim]:
    """What figure 3.2 is said to show."""
    return [_above_svc(runs), _crossing(runs), _discriminative(pixels)]


def _difference(runs: Runs, name: str, other: str) -> list[Estimate]:
    """Accuracy of one method less that of another, in percentage points: paired over repeats, for each size."""
    found = [mean(100.0 * row) for row in runs[name] - runs[other]]
    return [change._replace(value=round(change.value, 9) + 0.0) for change in found]  # a tie is 0, not -1e-16


def _positive(change: Estimate) -> bool:
    return change.value > 2.0 * np.nan_to_num(change.error)


def _listed(runs: Runs, changes: list[Estimate]) -> str:
    return ", ".join(f"{change} at {n}" for n, change in zip(runs.case("n"), changes, strict=True))


def _above_svc(runs: Runs) -> Claim:
    changes, tuned = _difference(runs, "bound", "svc"), _difference(runs, "bound", "tuned")
    return Claim(
        "at every number of images the embedding is more accurate than a support vector classifier, which does not "
        "learn its hyperparameters",
        f"{SOURCE} (top left)",
        f"its accuracy less that of the SVC as it comes is, in points: {_listed(runs, changes)}. Less that of the tuned "
        f"one: {_listed(runs, tuned)}. Judged by the first, each beyond two standard errors.",
        verdict(*map(_positive, changes)),
    )


def _crossing(runs: Runs) -> Claim:
    n = runs.case("n")
    gap, each = 100.0 * (runs["bound"] - runs["erm"]), _listed(runs, _difference(runs, "bound", "erm"))
    few, many = (mean(gap[at].mean(0)) if at.any() else Estimate(np.nan, np.nan) for at in (n < _MANY, n >= _MANY))
    checks = [change for change, at in ((Estimate(-few.value, few.error), n < _MANY), (many, n >= _MANY)) if at.any()]
    return Claim(
        f"below {_MANY} images learning without the complexity is ahead, above it learning with it",
        "Hsu (2019), section 3.10.3",
        f"the accuracy with the complexity less that without is, in points: {each}. "
        f"On average below {_MANY} images {few}, and {f'above {many}' if (n >= _MANY).any() else 'there are no more'}.",
        verdict(*map(_positive, checks)),
    )


def _discriminative(pixels: Runs) -> Claim:
    found, chance = pixels.estimates("by_lengthscale"), pixels.estimates("by_chance")
    above = [mean(row) for row in pixels["by_lengthscale"] - pixels["by_chance"]]
    triples = zip(pixels.case("group").tolist(), found, chance, strict=True)
    listed = "; ".join(f"{e} for {_label(g)}, shuffled {c.value:.2f}" for g, e, c in triples)
    return Claim(
        "lengthscales of pixels show where the digits of a group differ: they are short where class means are far apart",
        f"{SOURCE} (bottom)",
        "the rank correlation of 1 / lengthscale with how far class means are apart, over the pixels that vary, beside that "
        f"from shuffled labels: {listed}. Judged by both the first and its lead being positive beyond two standard errors.",
        verdict(*(_positive(e) and _positive(d) for e, d in zip(found, above, strict=True))),
    )


# ----------------------------------------------------------------------------------------------------- figures


def _figure(runs: Runs) -> Any:
    figure, ax = panels(1, 1, (6.0, 4.4))
    n = runs.case("n")
    for name, method in METHODS.items():
        errors = 100.0 * (1.0 - runs[name])
        spread = [mean(row).error for row in errors]
        ax.errorbar(n, errors.mean(1), spread, color=method.colour, marker="o", ms=4, lw=1.4, label=method.label)
    ax.set(xscale="log", yscale="log", xlabel="training images", ylabel="test error in percent", xticks=n)
    ax.set_xticklabels([show(v) for v in n])
    ax.minorticks_off()
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50) if ax.get_ylim()[0] <= t <= ax.get_ylim()[1]]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_title("Mean over the repeats, with standard errors", fontsize=10)
    ax.legend(frameon=False, fontsize=8)
    return figure


def _images(data: DataSet, pixels: Runs, side: int) -> Any:
    groups = pixels.case("group").tolist()
    figure, axes = panels(2, len(groups), (2.8 * len(groups), 5.6))
    axes = np.reshape(axes, (2, len(groups)))
    for j, group in enumerate(groups):
        rows = _in_group(data, group)
        logs = np.array([pixels[f"log_{i}"][j].mean() for i in range(data.X.shape[1])])
        images = (-logs, class_differences(data.X[rows], data.y[rows]))
        for ax, image in zip(axes[:, j], images, strict=True):
            ax.imshow(image.reshape(side, side), cmap="magma", interpolation="nearest")
            ax.set(xticks=[], yticks=[])
        axes[0, j].set_title(_label(group), fontsize=10)
        axes[0, j].set_xlabel(f"rank correlation {pixels.mean('by_lengthscale')[j]:.2f}", fontsize=8)
    for ax, label in zip(axes[:, 0], ("short lengthscales (bright)", "distance of class means"), strict=True):
        ax.set_ylabel(label, fontsize=9)
    return figure

r"""Balancing fit and complexity from an overfitted and an underfitted start. Hsu (2019), section 3.10.1, figure 3.1.

The first two attributes of the irises do not tell the species apart. They are scaled to [0, 1], a fifth of the 150 flowers
is held out at random, and one lengthscale and the regulariser are learned by minimising the bound (3.18) with algorithm 1:
Adam at rate 0.01 on the logarithms of both, from two starts.

| start | lengthscale | regulariser |
|---|---|---|
| overfitted | 0.05 | 1e-4 |
| underfitted | 1 | 1 |

| weight of the complexity | why |
|---|---|
| 4 e | as printed |
| 4 e / sqrt(n) | the proof of the bound gives this as well: see `kernelbayes.learning._classification` |
| default | from which `kb.ConditionalEmbeddingClassifier` starts |

The thesis stops after 500 steps. So the models there are shown beside those to which the steps lead in the end. The
thesis does not print its starts, and learns the scale of the kernel, too, on which neither probabilities nor complexity
depend once the regulariser is free.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from .._backend import float64
from .._typing import Array
from ..classification import ConditionalEmbeddingClassifier
from ..kernels import Gaussian
from ..learning._classification import Labelled, balance, bound
from ..learning._classification_search import REG_BOUNDS, Search, Start, learn_hyperparameters
from ..learning._conditional import ConditionalParameters
from ..rules import multiclass
from ._estimates import Estimate, mean, show
from ._expected import expected_warnings
from ._figures import ACCENT, FAINT, INK, SECOND, panels
from ._labelled import shipped
from ._result import Claim, Result, Table, verdict
from ._study import Runs, Study

TITLE = "Irises: one balanced model from overfitted and underfitted starts"
SOURCE = "Hsu (2019), section 3.10.1, figure 3.1"

STARTS = {"over": ("overfitted", 0.05, 1e-4), "under": ("underfitted", 1.0, 1.0)}
_MEASURES = ("lengthscale", "reg", "complexity", "fit", "train", "test", "loss")
_LENGTHSCALES = (1e-3, 1e3)
_RATE = 0.01
_SAME = 0.01  # mean absolute difference of probabilities below which two models are one
_EDGE = 0.05


class _Weight(NamedTuple):
    """A weight of the complexity: its name, and its value for n points, or None for the library's own."""

    label: str
    short: str
    colour: str

    def value(self, n: int) -> float | None:
        return {"4 e": 4 * np.e, "4 e / sqrt(n)": 4 * np.e / np.sqrt(n)}.get(self.short)


WEIGHTS = {
    "printed": _Weight("the bound as printed, with 4 e", "4 e", INK),
    "mended": _Weight("the bound with 4 e / sqrt(n)", "4 e / sqrt(n)", SECOND),
    "default": _Weight("the weight from which the library starts", "default", ACCENT),
}


class _Split(NamedTuple):
    train: Labelled
    test: Labelled


def _split(settings: Mapping[str, Any], rng: np.random.Generator) -> _Split:
    data = shipped("iris")
    data = data._replace(X=data.X[:, :2]).in_unit_range()
    order = rng.permutation(len(data.X))
    held = round(settings["held_out"] * len(order))
    everything = Labelled(data.X, np.eye(len(data.classes))[data.y], np.ones(len(data.X)))
    return _Split(everything.part(order[held:]), everything.part(order[:held]))


# -------------------------------------------------------------------------------------------------- one repeat


def _start(name: str) -> ConditionalParameters:
    _, lengthscale, reg = STARTS[name]
    return ConditionalParameters(Gaussian(lengthscale), np.float64(reg))


@functools.cache
def _adam(steps: int) -> Any:
    """All steps of Adam as one compiled function of the start, logarithms of lengthscale and regulariser, and the data."""
    import jax
    import jax.numpy as jnp
    import optax

    rule, low, high = optax.adam(_RATE), *np.log(np.transpose([_LENGTHSCALES, REG_BOUNDS]))

    def objective(theta: Any, data: Any) -> Any:
        where = lambda p: (p.kernel.lengthscale, p.reg)  # noqa: E731
        return bound(eqx.tree_at(where, _start("over"), tuple(jnp.exp(theta))), *data)

    def step(state: Any, data: Any) -> Any:
        theta, memory = state
        move, memory = rule.update(jax.grad(objective)(theta, data), memory)
        theta = jnp.clip(theta + move, low, high)
        return (theta, memory), theta

    def path(theta: Any, data: Any) -> Any:
        return jax.lax.scan(lambda state, _: step(state, data), (theta, rule.init(theta)), length=steps)[1]

    return jax.jit(path)


@float64
def descend(train: Labelled, weight: float | None, start: str, steps: int) -> list[ConditionalParameters]:
    """Algorithm 1 on all points at once: the parameters at the start and after each step of Adam."""
    theta = np.log(STARTS[start][1:])
    path = np.exp(np.asarray(_adam(steps)(theta, Search("bound", weight).data(train))))
    return [
        _start(start),
        *(ConditionalParameters(Gaussian(lengthscale), np.asarray(reg)) for lengthscale, reg in path),
    ]


def probabilities(params: ConditionalParameters, train: Labelled, X: Array) -> Array:
    """Raw probabilities (3.5) at some points."""
    K = params.kernel._gram(train.X, train.X)
    return params.kernel._gram(X, train.X) @ multiclass.dual(K, train.Y, train.weights, params.reg)


def _grid(size: int = 40) -> Array:
    """Points over [-0.05, 1.05] squared, where the thesis draws its maps."""
    line = np.linspace(-_EDGE, 1.0 + _EDGE, size)
    return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)


def _measured(params: ConditionalParameters, split: _Split) -> dict[str, float]:
    fit, complexity = balance(params, split.train)
    right = [_accuracy(probabilities(params, split.train, part.X), part) for part in split]
    lengthscale = params.kernel.lengthscale  # type: ignore[attr-defined]
    numbers = (lengthscale, params.reg, complexity, fit, *right, balance(params, *split).fit)
    return dict(zip(_MEASURES, map(float, numbers), strict=True))


def _accuracy(P: Array, sample: Labelled) -> float:
    return float((P.argmax(1) == sample.Y.argmax(1)).mean())


def _once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    split = _split(settings, rng)
    stages = {str(steps): steps for steps in settings["stages"]}
    numbers, maps = {}, {}
    for start in STARTS:
        numbers |= {f"{start}_before_{k}": v for k, v in _measured(_start(start), split).items()}
        for rule, weight in WEIGHTS.items():
            value = weight.value(len(split.train.X))
            path = descend(split.train, value, start, settings["stages"][-1])
            found = {stage: path[steps] for stage, steps in stages.items()}
            found["library"] = _library(split.train, value, start)
            for stage, params in found.items():
                numbers |= {f"{start}_{rule}_{stage}_{k}": v for k, v in _measured(params, split).items()}
                maps[start, rule, stage] = probabilities(params, split.train, _grid())
    for rule in WEIGHTS:
        for stage in [*stages, "library"]:
            apart = np.abs(maps["over", rule, stage] - maps["under", rule, stage]).mean()
            numbers[f"apart_{rule}_{stage}"] = float(apart)
    return numbers | _as_it_comes(split)


def _library(train: Labelled, weight: float | None, start: str) -> ConditionalParameters:
    """Where the library's own search, L-BFGS-B, ends from one start."""
    one = [Start(_start(start), np.asarray(1.0))]
    search = Search("bound", weight)
    return learn_hyperparameters(one, train, search, fixed=(), rng=np.random.default_rng(0))[0].params


def _as_it_comes(split: _Split) -> dict[str, float]:
    """The classifier with one lengthscale, which looks at several starts."""
    with expected_warnings():
        model = ConditionalEmbeddingClassifier(ard=False, random_state=0)
        model.fit(split.train.X, split.train.Y.argmax(1))
    right = [_accuracy(model.decision_probabilities(part.X), part) for part in split]
    params = ConditionalParameters(model.kernel_, np.float64(model.reg_))
    majority = split.train.Y.mean(0).argmax()
    return {
        "classifier_train": right[0],
        "classifier_test": right[1],
        "classifier_complexity": float(balance(params, split.train).complexity),
        "majority_test": float(split.test.Y[:, majority].mean()),
        "share_norm": float(np.linalg.norm(split.train.Y.mean(0))),
    }


# --------------------------------------------------------------------------------------------------------- run


def run(study: Study) -> Result:
    """All weights from both starts on random splits, and maps of the first split."""
    settings = {
        "held_out": 0.2,
        "rate": _RATE,
        "stages": [500, 2000 if study.quick else 3000],
        "repeats": 2 if study.quick else 20,
    }
    runs = study.repeat(_once, settings, [{}])
    split = _split(settings, study.generator(0))
    figure = study.save(_figure(split, settings))
    tables = [_start_table(runs), _table(runs, settings), _same_table(runs, settings)]
    return Result(settings, tables, claims(runs, settings), [figure], runs, [_trivial_note(runs, settings)])


# ------------------------------------------------------------------------------------------------------ tables

_HEADINGS = ("lengthscale", "regulariser", "complexity r", "loss, train", "accuracy, train", "accuracy, test")
_SHOWN = ("lengthscale", "reg", "complexity", "fit", "train", "test")


def _cells(runs: Runs, prefix: str) -> list[Any]:
    """Medians of the hyperparameters, means of the rest, accuracies in percent."""
    cells: list[Any] = []
    for name in _SHOWN:
        values = runs[f"{prefix}_{name}"][0]
        scale = 100.0 if name in ("train", "test") else 1.0
        cells.append(float(np.median(values)) if name in ("lengthscale", "reg") else mean(scale * values))
    return cells


def _start_table(runs: Runs) -> Table:
    rows = [(label, *_cells(runs, f"{start}_before")) for start, (label, *_) in STARTS.items()]
    title = "Before learning: means over the splits (standard errors); accuracy in percent"
    return Table(title, ["start", *_HEADINGS], rows)


def _table(runs: Runs, settings: Mapping[str, Any]) -> Table:
    stages = {**{str(s): f"{s} steps" for s in settings["stages"]}, "library": "L-BFGS-B"}
    rows = [
        (weight.short, label, told, *_cells(runs, f"{start}_{rule}_{stage}"))
        for rule, weight in WEIGHTS.items()
        for stage, told in stages.items()
        for start, (label, *_) in STARTS.items()
    ]
    title = "After learning: medians of the hyperparameters, means of the rest (standard errors); accuracy in percent"
    return Table(title, ["weight", "start", "after", *_HEADINGS], rows)


def _same_table(runs: Runs, settings: Mapping[str, Any]) -> Table:
    stages = [*map(str, settings["stages"]), "library"]
    rows = []
    for rule, weight in WEIGHTS.items():
        apart = [runs[f"apart_{rule}_{stage}"][0] for stage in stages]
        rows.append((weight.short, *(f"{show(np.median(a))}; {int((a < _SAME).sum())} of {a.size}" for a in apart)))
    return Table(
        "How far apart the models from both starts are: mean absolute difference of probabilities over the map, its median, "
        f"and the splits in which it is below {_SAME}",
        ["weight", *(f"{s} steps" for s in settings["stages"]), "L-BFGS-B"],
        rows,
    )


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs, settings: Mapping[str, Any]) -> list[Claim]:
    """What figure 3.1 is said to show, for each weight of the complexity."""
    return [_measures(runs), *(_one_model(runs, settings, rule) for rule in WEIGHTS)]


def _measures(runs: Runs) -> Claim:
    over, under = (runs[f"{start}_before_complexity"][0] for start in STARTS)
    fits = {part: [100 * runs[f"{s}_before_{part}"][0].mean() for s in STARTS] for part in ("train", "test")}
    return Claim(
        "the complexity r is high for the overfitted start and low for the underfitted one",
        SOURCE,
        f"r is {mean(over)} and {mean(under)}. The overfitted start names {show(fits['train'][0])} % of the training points "
        f"and {show(fits['test'][0])} % of the others rightly, the underfitted one {show(fits['train'][1])} and "
        f"{show(fits['test'][1])} %.",
        verdict(bool((over > 2 * under).all())),
    )


def _one_model(runs: Runs, settings: Mapping[str, Any], rule: str) -> Claim:
    first, last = (str(steps) for steps in settings["stages"])
    apart = runs[f"apart_{rule}_{last}"][0]
    same = float((apart < _SAME).mean())
    after = {start: runs[f"{start}_{rule}_{last}_complexity"][0] for start in STARTS}
    low, high = (runs[f"{start}_before_complexity"][0].mean() for start in ("under", "over"))
    gains = {start: _gain(runs, start, rule, last) for start in STARTS}
    early = {start: _gain(runs, start, rule, first) for start in STARTS}
    return Claim(
        f"{WEIGHTS[rule].label}: both starts lead to the same model, of moderate complexity, with a better test accuracy",
        SOURCE,
        f"after {last} steps the models are the same in {round(same * apart.size)} of {apart.size} splits. Their "
        f"complexity is {mean(after['over'])} from the overfitted start and {mean(after['under'])} from the underfitted "
        f"one, where it was {show(high)} and {show(low)}. The test accuracy changes by {gains['over']} and {gains['under']} "
        f"points. After {first} steps: by {early['over']} and {early['under']}.",
        verdict(
            same >= 0.9,
            all(low < r.mean() < high for r in after.values()),
            all(_surely_positive(gain) for gain in gains.values()),
        ),
    )


def _gain(runs: Runs, start: str, rule: str, stage: str) -> Estimate:
    """Change of the test accuracy in percentage points."""
    return mean(100.0 * (runs[f"{start}_{rule}_{stage}_test"][0] - runs[f"{start}_before_test"][0]))


def _surely_positive(change: Estimate) -> bool:
    return change.value > 2.0 * np.nan_to_num(change.error)


def _trivial_note(runs: Runs, settings: Mapping[str, Any]) -> str:
    last = str(settings["stages"][-1])
    reg = np.median(runs[f"under_printed_{last}_reg"][0])
    norm = runs["share_norm"][0].mean()
    return (
        "Note: with a kernel so long that it does not tell points apart the model is the shares of the classes times "
        "1 / (1 + reg), and r is their norm times the same. Among such models the bound as printed is least at "
        f"reg = 4 e |shares| - 1 = {show(4 * np.e * norm - 1)}; from the underfitted start the steps lead to "
        f"{show(reg)}. That model names {show(100 * runs['majority_test'].mean())} % of the test points rightly when it "
        "names the class most frequent in training. The classifier as it comes, with one lengthscale, has a test accuracy "
        f"of {mean(100 * runs['classifier_test'][0])} % and a complexity of {mean(runs['classifier_complexity'][0])}."
    )


# ----------------------------------------------------------------------------------------------------- figures


def _figure(split: _Split, settings: Mapping[str, Any]) -> Any:
    figure, axes = panels(2, 5, (15.0, 6.2))
    for row, (start, (label, *_)) in zip(axes, STARTS.items(), strict=True):
        _map(row[0], _start(start), split, f"{label}, before")
        for ax, (rule, weight) in zip(row[1:4], WEIGHTS.items(), strict=True):
            path = descend(split.train, weight.value(len(split.train.X)), start, settings["stages"][-1])
            _map(ax, path[-1], split, f"{weight.short}, after {settings['stages'][-1]} steps")
            _course(row[4], path, split, WEIGHTS[rule])
        row[4].set_title(f"From the {label} start", fontsize=10)
        row[4].axvline(settings["stages"][0], color=FAINT, lw=0.8, ls=":")
        row[4].set(xscale="log", yscale="log", xlabel="step")
    axes[0, 4].legend(frameon=False, fontsize=7, title="r (full), loss (dashed)", title_fontsize=7)
    return figure


def _map(ax: Any, params: ConditionalParameters, split: _Split, title: str) -> None:
    """Clip-normalised probabilities of the three species as red, green and blue, and the test points."""
    size = 120
    P = multiclass.clip_normalised(probabilities(params, split.train, _grid(size)))
    extent = (-_EDGE, 1.0 + _EDGE) * 2
    ax.imshow(P.reshape(size, size, 3), origin="lower", extent=extent, interpolation="nearest")
    for c, colour in enumerate(("#ff9999", "#99ff99", "#9999ff")):
        inside = split.train.X[split.train.Y[:, c] > 0]
        ax.plot(inside[:, 0], inside[:, 1], "o", ms=3, color=colour, mec="black", mew=0.4)
    numbers = _measured(params, split)
    ax.set(xticks=[], yticks=[], xlabel=f"r = {show(numbers['complexity'])}, test {100 * numbers['test']:.0f} %")
    ax.set_title(title, fontsize=10)


def _course(ax: Any, path: list[ConditionalParameters], split: _Split, weight: _Weight) -> None:
    steps = np.unique(np.geomspace(1, len(path), 60).astype(int)) - 1
    sides = [balance(path[step], split.train) for step in steps]
    ax.plot(steps + 1, [s.complexity for s in sides], color=weight.colour, lw=1.4, label=weight.short)
    ax.plot(steps + 1, [s.fit for s in sides], color=weight.colour, lw=1.0, ls="--")

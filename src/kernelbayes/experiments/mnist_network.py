r"""A conditional embedding on a convolutional network against a softmax. Hsu (2019), section 3.10.4, figure 3.2 (right).

With `--data DIR` the images are those of `DIR/mnist.npz` (arrays x and y, or x_train, y_train, x_test, y_test) or of the CSV
files there, label last; otherwise scikit-learn's digits, 1,797 images of 8 x 8.

Both classifiers have the same convolutional network (`kb.ConvNet` with 32 outputs) from the same start, the same images,
batches and steps of AdamW. `kb.ConditionalEmbeddingNetwork` puts a conditional embedding with a linear kernel on the
outputs and minimises the bound (3.18); the other puts an affine map and a softmax there and minimises the cross entropy.
Accuracy is measured after each pass over the data on images held out. For the embedding it is that of the head solved for
on up to 4,096 training images.

The thesis has one learning rate, 0.01, for both. What suits one need not suit the other, so there are three. It trains with
drop-out, which is not done here, and for 800 epochs.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._typing import AnyArray, Array
from ..classification import ConditionalEmbeddingNetwork
from ..classification._network import _split
from ..learning import ConvNet
from ..learning._classification import Labelled
from ..learning._networks import _drawn
from ..learning._preparing import location_and_spread, step_sizes
from ..learning._training import Objective, Settings, Training, single
from ._estimates import Estimate, mean, show
from ._figures import ACCENT, INK, panels
from ._labelled import DataSet, image_side, read_images, shipped
from ._result import Claim, Result, Table, columns, verdict
from ._study import Runs, Study

TITLE = "Digits: a conditional embedding network against the same network with a softmax"
SOURCE = "Hsu (2019), section 3.10.4, figure 3.2 (right)"
DATA = "mnist.npz or *.csv"

KINDS = {"embedding": ("embedding", ACCENT), "softmax": ("softmax", INK)}
_OUTPUTS, _BATCH, _DECAY = 32, 256, 0.3


class Softmax(eqx.Module):
    """A network with an affine map of its outputs to the logarithms of class probabilities, up to a constant."""

    network: Any
    weight: AnyArray
    bias: AnyArray

    def __call__(self, x: AnyArray) -> AnyArray:
        """Scores of the classes at one point."""
        return self.weight @ self.network(x) + self.bias


def cross_entropy(
    model: Softmax, sample: Labelled, rows: AnyArray, given: Any
) -> tuple[AnyArray, tuple[AnyArray, ...]]:
    """The loss on a batch; nothing else to record."""
    part = sample.part(rows)
    return -(part.Y * jax.nn.log_softmax(jax.vmap(model)(part.X))).sum(1).mean(), ()


def _held_out(model: Softmax, fitted: Labelled, held: Labelled, given: Any) -> tuple[AnyArray, tuple[AnyArray, ...]]:
    """Loss and accuracy at points held out."""
    scores = jax.vmap(model)(held.X)
    loss = -(held.Y * jax.nn.log_softmax(scores)).sum(1).mean()
    return loss, (jnp.mean(scores.argmax(1) == held.Y.argmax(1)),)


_SOFTMAX = Objective(cross_entropy, _held_out, "softmax")


# -------------------------------------------------------------------------------------------------- one repeat


def _once(data: DataSet, settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    seed = int(rng.integers(2**31))
    rows = rng.permutation(len(data.X))[: settings["most"]]
    side = image_side(data)
    X, y = data.X[rows].reshape(-1, side, side), data.y[rows]
    network = ConvNet((side, side), _OUTPUTS, random_state=seed)
    numbers = {}
    for rate in settings["rates"]:
        for kind, train in (("embedding", _embedding), ("softmax", _softmax)):
            curve = train(network, X, y, rate, settings, seed)
            numbers |= {_name(kind, rate, epoch + 1): float(value) for epoch, value in enumerate(curve)}
    return numbers


def _name(kind: str, rate: float, epoch: int) -> str:
    return f"{kind}_{rate:g}_{epoch}"


def _embedding(network: Any, X: Array, y: Array, rate: float, settings: Mapping[str, Any], seed: int) -> Array:
    """Accuracies (epochs,) on images held out."""
    model = ConditionalEmbeddingNetwork(
        network,
        learning_rate=rate,
        batch_size=settings["batch"],
        weight_decay=settings["decay"],
        epochs=settings["epochs"],
        patience=settings["epochs"],
        validation=settings["held_out"],
        progress=False,
        random_state=seed,
    )
    return _filled(model.fit(X, y).learning_curve_["validation_accuracy"], settings)


def _softmax(network: Any, X: Array, y: Array, rate: float, settings: Mapping[str, Any], seed: int) -> Array:
    """The same for the softmax, on the same split."""
    rng = np.random.default_rng(seed)
    Y = np.eye(y.max() + 1)[y]
    train, held = _split(Y, settings["held_out"], rng)
    centre, spread = location_and_spread(X, network)
    points = Labelled((X - centre) / spread, Y, np.ones(len(X)))
    head = _drawn(np.random.default_rng(seed), (Y.shape[1], _OUTPUTS), fan=_OUTPUTS)
    with jax.enable_x64(False):
        seen, watched = (single(points.part(rows)) for rows in (train, held))
        steps = Settings(None, *step_sizes(rate, settings["decay"]))
        training = Training(_SOFTMAX, single(Softmax(network, *head)), seen, watched, steps)
        training.run(settings["epochs"], settings["epochs"], min(settings["batch"], len(train)), rng, False)
    return _filled(np.array(training.curve)[:, 2], settings)


def _filled(curve: Array, settings: Mapping[str, Any]) -> Array:
    """A pass that was undone, its loss not being finite, is not in the record: the last value stands for what is missing."""
    return np.pad(curve, (0, settings["epochs"] - len(curve)), mode="edge")


# --------------------------------------------------------------------------------------------------------- run


def run(study: Study) -> Result:
    """Accuracy after each epoch, of both heads."""
    data = shipped("digits") if study.data is None else read_images(study.data)
    side = image_side(data)
    settings = {
        "images": f"{len(data.X)} of {side} x {side}, {data.digest()}",
        "most": 600 if study.quick else 12_000,
        "held_out": 0.25,
        "rates": [0.01] if study.quick else [0.01, 0.03, 0.003],
        "batch": _BATCH,
        "decay": _DECAY,
        "epochs": 6 if study.quick else 60 if study.data is None else 20,
        "repeats": 1 if study.quick else 5,
    }
    runs = study.repeat(functools.partial(_once, data), settings, [{}])
    figure = study.save(_figure(runs, settings))
    return Result(settings, [_table(runs, settings)], claims(runs, settings), [figure], runs)


def _curves(runs: Runs, settings: Mapping[str, Any], kind: str, rate: float) -> Array:
    """Accuracies (epochs, repeats) in percent."""
    return 100.0 * np.array([runs[_name(kind, rate, e + 1)][0] for e in range(settings["epochs"])])


def _shown_epochs(settings: Mapping[str, Any]) -> list[int]:
    return [e for e in (1, 2, 5, 10, 20, 40) if e < settings["epochs"]] + [settings["epochs"]]


def _table(runs: Runs, settings: Mapping[str, Any]) -> Table:
    epochs = _shown_epochs(settings)
    pairs = [(kind, rate) for rate in settings["rates"] for kind in KINDS]
    cells = [[mean(_curves(runs, settings, kind, rate)[e - 1]) for e in epochs] for kind, rate in pairs]
    headings = ["epoch", *(f"{KINDS[kind][0]}, rate {rate:g}" for kind, rate in pairs)]
    return Table(
        "Test accuracy in percent: means over the repeats (standard errors)", headings, columns(epochs, *cells)
    )


# ------------------------------------------------------------------------------------------------------ claims


def claims(runs: Runs, settings: Mapping[str, Any]) -> list[Claim]:
    """What figure 3.2 is said to show: at the same rate, and against the softmax at the rate that suits it best."""
    return [_faster(runs, settings), _final(runs, settings)]


def _rivals(runs: Runs, settings: Mapping[str, Any], part: slice) -> dict[str, Estimate]:
    """Accuracy of the embedding less that of the softmax over some epochs: at each rate, and each at its best."""

    def level(kind: str, rate: float) -> Array:
        return _curves(runs, settings, kind, rate)[part].mean(0)

    rates = settings["rates"]
    found = {f"at rate {rate:g}": mean(level("embedding", rate) - level("softmax", rate)) for rate in rates}
    best = {kind: max((level(kind, rate) for rate in rates), key=np.mean) for kind in KINDS}
    return {**found, "each at its best rate": mean(best["embedding"] - best["softmax"])}


def _told(changes: Mapping[str, Estimate]) -> str:
    return ", ".join(f"{change} {how}" for how, change in changes.items())


def _faster(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    epochs = settings["epochs"]
    early = max(epochs // 4, 1)
    changes = _rivals(runs, settings, slice(early))
    ahead = {
        rate: np.mean(
            _curves(runs, settings, "embedding", rate).mean(1) > _curves(runs, settings, "softmax", rate).mean(1)
        )
        for rate in settings["rates"]
    }
    often = ", ".join(f"{100 * share:.0f} % of the epochs at rate {rate:g}" for rate, share in ahead.items())
    return Claim(
        "the embedding learns much faster, with a higher test accuracy at all epochs",
        SOURCE,
        f"over the first {early} of {epochs} epochs its accuracy less that of the softmax is, in points: {_told(changes)}. "
        f"On average it is ahead in {often}. Judged by the former, beyond two standard errors.",
        verdict(*(change.value > 2.0 * np.nan_to_num(change.error) for change in changes.values())),
    )


def _final(runs: Runs, settings: Mapping[str, Any]) -> Claim:
    late = max(settings["epochs"] // 10, 1)
    changes = _rivals(runs, settings, slice(-late, None))
    levels = {
        kind: max(_curves(runs, settings, kind, rate)[-late:].mean() for rate in settings["rates"]) for kind in KINDS
    }
    return Claim(
        "in the end it is at least as accurate (99.48 % to 99.26 % in the thesis)",
        SOURCE,
        f"over the last {late} epochs its accuracy less that of the softmax is, in points: {_told(changes)}. At their "
        f"best rates they end at {show(levels['embedding'])} and {show(levels['softmax'])} %. Judged by not being behind by "
        "more than two standard errors.",
        verdict(*(change.value > -2.0 * np.nan_to_num(change.error) for change in changes.values())),
    )


# ----------------------------------------------------------------------------------------------------- figures


def _figure(runs: Runs, settings: Mapping[str, Any]) -> Any:
    figure, ax = panels(1, 1, (6.4, 4.4))
    epochs = np.arange(1, settings["epochs"] + 1)
    for rate, line in zip(settings["rates"], ("-", "--", ":"), strict=False):
        for kind, (label, colour) in KINDS.items():
            errors = 100.0 - _curves(runs, settings, kind, rate)
            ax.plot(epochs, errors.mean(1), line, color=colour, lw=1.5, label=f"{label}, rate {rate:g}")
            if rate == settings["rates"][0]:
                ax.fill_between(epochs, errors.min(1), errors.max(1), color=colour, alpha=0.12, linewidth=0)
    ax.set(yscale="log", xlabel="epoch", ylabel="test error in percent")
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50) if ax.get_ylim()[0] <= t <= ax.get_ylim()[1]]
    ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
    ax.minorticks_off()
    ax.set_title(f"Mean over the repeats; from best to worst at rate {settings['rates'][0]:g}", fontsize=10)
    ax.legend(frameon=False, fontsize=8)
    return figure

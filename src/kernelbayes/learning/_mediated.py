r"""Learning the kernels and the noise of a regression through a mediator, by its marginal likelihood.

Hsu (2019), theorem 5.7: the density of the task's targets, with f and, unless it is taken at its most probable, g
integrated out. Samples are represented on landmarks that stay in place along one descent, and are padded, so that problems
of similar size share one compilation.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._typing import AnyArray, Array
from ..features import IncompleteCholesky, pivots
from ..kernels import Gaussian, Kernel, Linear, Scaled, positive
from ..kernels._bandwidth import lengthscale_of
from ..rules import deconditional
from ..rules.deconditional import Noise, Task
from ._conditional import Padded, masked_features, pad_rows, padded_size
from ._optimise import Optimum, evaluate, minimise

# Pairs and points of the task that kernels are learned from, and landmarks that stand for them.
MOST_PAIRS, MOST_TASKS = 1024, 2048
_MOST_LANDMARKS = 256
# Lengthscales to start from, in median distances; noise and scales in shares of the targets' mean square.
LENGTHSCALES, _MEDIATOR_LENGTHSCALES, NOISES = (1.0, 1 / 3), (1.0, 1 / 3, 1 / 10), (0.3, 0.03)
LENGTHSCALE_BOUNDS, SCALE_BOUNDS, NOISE_BOUNDS = (1e-2, 1e2), (1e-3, 1e3), (1e-6, 1e1)
# Starts to descend from, of those tried.
_DESCENTS = 2
# Standard deviation of the logarithms of the default kernels' parameters beforehand.
_WIDTH = 1.0


class MediatedParameters(eqx.Module):
    """What is learned: two kernels, the noise of the task, and the spread of f(x) at one y where it is not the same."""

    kernel: Kernel
    mediator_kernel: Kernel
    noise: AnyArray = positive()
    mediator_noise: AnyArray = positive()
    tied: bool = eqx.field(static=True, default=True)
    uncertain: bool = eqx.field(static=True, default=True)
    drawn: tuple[str, ...] = eqx.field(static=True, default=())  # names of kernels whose lengthscales have a prior

    @property
    def spread(self) -> AnyArray:
        """Variance of f(x) about g(y)."""
        return self.noise if self.tied else self.mediator_noise


class Mediated(NamedTuple):
    """Pairs and task, padded. The mediator's rows are those of the pairs, then those of the task."""

    x: Padded
    y: Padded
    targets: AnyArray

    def sums(self, G: AnyArray) -> Task:
        """Sums over the task, from all coordinates of the mediator."""
        G, z, mask = G[len(self.x.X) :], self.targets, self.y.mask[len(self.x.X) :]
        return Task(G.T @ G, G.T @ z, (z * z).sum(0), mask.sum())

    def missed(self, kernel: Kernel, G: AnyArray) -> AnyArray:
        """Mean variance of g at the task's points that the coordinates leave out."""
        rows = slice(len(self.x.X), None)
        mask = self.y.mask[rows]
        return (mask * (kernel._diag(self.y.X[rows]) - (G[rows] ** 2).sum(1))).sum() / mask.sum()


def loss(params: MediatedParameters, sample: Mediated) -> AnyArray:
    """Minus the logarithm of the marginal likelihood, per target."""
    F = masked_features(params.kernel, sample.x)
    G = masked_features(params.mediator_kernel, sample.y)
    noise = params.noise + sample.missed(params.mediator_kernel, G) if params.uncertain else params.noise
    pairs, sums = deconditional.transfer(F, G[: len(F)], params.spread), sample.sums(G)
    found = deconditional.primal(pairs, sums, Noise(noise, params.spread, params.uncertain))
    return (_price(params) - found.log_marginal.sum()) / (sums.size * sample.targets.shape[1])


def _price(params: MediatedParameters) -> AnyArray:
    """Minus the logarithm of a wide prior of the default kernels' parameters: lengthscales about the median distance, and
    scales about the mean square of the targets.

    Where g is smooth the targets may tell little of how f varies: without it the search ends anywhere.
    """
    kernels = [getattr(params, name) for name in params.drawn]
    logs = [jnp.log(value) for kernel in kernels for value in (kernel.kernel.lengthscale, kernel.scale)]
    return sum((0.5 * ((log / _WIDTH) ** 2).sum() for log in logs), start=jnp.zeros(()))


class Samples(NamedTuple):
    """Pairs (x, y) and task (y~, z~)."""

    X: Array
    Y: Array
    Y_task: Array
    z: Array

    def few(self, rng: np.random.Generator) -> Samples:
        """As many of both as kernels are learned from, by chance."""
        pairs, tasks = rng.permutation(len(self.X))[:MOST_PAIRS], rng.permutation(len(self.z))[:MOST_TASKS]
        return Samples(self.X[pairs], self.Y[pairs], self.Y_task[tasks], self.z[tasks])

    def landmarks(self, params: MediatedParameters) -> tuple[Array, Array]:
        """Landmarks of x and of the mediator for these kernels; with g uncertain they stand for the task's points too."""
        both = np.concatenate([self.Y, self.Y_task]) if params.uncertain else self.Y
        return pivots(params.kernel, self.X, _MOST_LANDMARKS), pivots(params.mediator_kernel, both, _MOST_LANDMARKS)

    def padded(self, landmarks: tuple[Array, Array], widths: tuple[int, int]) -> Mediated:
        """All of it in shapes that problems of similar size share; landmarks beyond the width are left out."""
        rows, tasks = padded_size(len(self.X)), padded_size(len(self.z))
        (X, mask), (Y, pairs), (Y_task, task) = (
            pad_rows(P, size) for P, size in ((self.X, rows), (self.Y, rows), (self.Y_task, tasks))
        )
        x, y = (pad_rows(points[:width], width) for points, width in zip(landmarks, widths, strict=True))
        nothing = np.zeros((0, 0))
        return Mediated(
            Padded(X, mask, *x, nothing),
            Padded(np.concatenate([Y, Y_task]), np.concatenate([pairs, task]), *y, nothing),
            np.pad(self.z, ((0, tasks - len(self.z)), (0, 0))),
        )


class Settled(NamedTuple):
    """What the user has decided; None is to be learned.

    Kernels that are given are where the search starts. `mediator_noise` may be a number, "learn", or None for that of the
    task, as in the paper.
    """

    kernel: Kernel | None = None
    mediator_kernel: Kernel | None = None
    noise: float | None = None
    mediator_noise: float | str | None = None
    uncertain: bool = True
    ard: bool = False

    def in_units(self, size: float) -> Settled:
        """The same for targets whose squares are so many times as large."""
        noise, spread = (size * v if isinstance(v, float) else v for v in (self.noise, self.mediator_noise))
        return self._replace(noise=noise, mediator_noise=spread)


def learn_mediated(settled: Settled, given: Samples, rng: np.random.Generator) -> Optimum:
    """Maximise the marginal likelihood, on at most 1,024 pairs and 2,048 points of the task.

    Of some starts the best are followed. Landmarks are chosen again where a descent has ended, and it goes on from there.
    """
    given = given.few(rng)
    size = float((given.z**2).mean()) if settled.kernel is None and settled.mediator_kernel is None else 1.0
    size = size or 1.0  # default kernels and noise are sought in units of the targets, whatever those are
    given, settled = given._replace(z=given.z / np.sqrt(size)), settled.in_units(1.0 / size)
    x = _side(settled.kernel, [given.X], LENGTHSCALES, settled.ard, "X")
    y = _side(settled.mediator_kernel, [given.Y, given.Y_task], _MEDIATOR_LENGTHSCALES, settled.ard, "Y")
    samples = Samples(x.samples[0], y.samples[0], y.samples[1], given.z)
    variance = float((given.z**2).mean()) or 1.0
    starts = _starts(settled, x.kernels, y.kernels, variance)
    chosen = [samples.landmarks(params) for params in starts]
    widths = (padded_size(max(len(x) for x, _ in chosen)), padded_size(max(len(y) for _, y in chosen)))
    tried = [(params, samples.padded(points, widths)) for params, points in zip(starts, chosen, strict=True)]
    tried.sort(key=lambda start: evaluate(loss, start[0], (start[1],)))
    options = {
        "bounds": _bounds(settled, variance),
        "fixed": _fixed(settled),
        "warn": False,
        "progress": False,
        "tol": 1e-7,
    }
    runs = [minimise(loss, params, (sample,), **options) for params, sample in tried[:_DESCENTS]]
    first = min(runs, key=lambda run: run.value)
    again = samples.padded(samples.landmarks(first.params), widths)
    last = minimise(loss, first.params, (again,), **options)
    params = dataclasses.replace(
        last.params,
        kernel=x.in_units(last.params.kernel, size),
        mediator_kernel=y.in_units(last.params.mediator_kernel, size),
        noise=size * last.params.noise,
        mediator_noise=size * last.params.mediator_noise,
    )
    evaluations = sum(run.evaluations for run in runs) + last.evaluations
    return dataclasses.replace(last, params=params, path=first.path + last.path, evaluations=evaluations)


class _Side(NamedTuple):
    """One of the two variables as the search sees it: samples in units of its own, and kernels to start from."""

    samples: list[Array]
    kernels: list[Kernel]
    scale: Any  # of the columns, where they were divided by it
    given: Kernel | None  # a kernel that cannot be traced, whose coordinates stand for the points

    def in_units(self, kernel: Any, size: float) -> Kernel:
        """A kernel found by the search, as it is used on points and targets."""
        if self.given is not None:
            return Scaled(self.given, kernel.scale)
        if self.scale is None:
            return kernel
        return Scaled(Gaussian(kernel.kernel.lengthscale * self.scale), size * kernel.scale)


def _side(kernel: Kernel | None, samples: list[Array], factors: tuple[float, ...], ard: bool, name: str) -> _Side:
    everything = np.concatenate(samples)
    if kernel is None:
        scale = lengthscale_of(everything, name, per_column=True)
        one = np.ones(everything.shape[1]) if ard else np.asarray(1.0)
        return _Side([P / scale for P in samples], [Scaled(Gaussian(f * one), 1.0) for f in factors], scale, None)
    if not kernel._evaluates_on_host and everything.dtype.kind == "f" and everything.ndim == 2:
        return _Side(samples, [kernel], None, None)
    features = IncompleteCholesky(_MOST_LANDMARKS).fit(kernel, everything)  # of objects only the scale is learned
    return _Side([features._coordinates(P) for P in samples], [Scaled(Linear(), 1.0)], None, kernel)


def _starts(
    settled: Settled, kernels: list[Kernel], mediators: list[Kernel], variance: float
) -> list[MediatedParameters]:
    noises = [share * variance for share in NOISES] if settled.noise is None else [settled.noise]
    spread = settled.mediator_noise
    drawn = tuple(name for name in ("kernel", "mediator_kernel") if getattr(settled, name) is None)
    return [
        MediatedParameters(
            kernel,
            mediator,
            noise,
            spread if isinstance(spread, float) else noise,
            spread is None,
            settled.uncertain,
            drawn,
        )
        for kernel in kernels
        for mediator in mediators
        for noise in noises
    ]


def _bounds(settled: Settled, variance: float) -> dict[str, tuple[float, float]]:
    noise, scale = ((variance * low, variance * high) for low, high in (NOISE_BOUNDS, SCALE_BOUNDS))
    out = {"noise": noise, "mediator_noise": noise}
    for name, kernel in (("kernel", settled.kernel), ("mediator_kernel", settled.mediator_kernel)):
        if kernel is None:
            out |= {f"{name}.kernel.lengthscale": LENGTHSCALE_BOUNDS, f"{name}.scale": scale}
    if settled.noise is not None:
        del out["noise"]
    return out


def _fixed(settled: Settled) -> tuple[str, ...]:
    fixed = () if settled.noise is None else ("noise",)
    if settled.mediator_noise != "learn":
        return (*fixed, "mediator_noise")
    # with g at its most probable only the ratio of its spread and its kernel's scale counts
    return fixed if settled.uncertain or settled.mediator_kernel is not None else (*fixed, "mediator_kernel.scale")

r"""The recursion of the kernel Monte Carlo filter: resample, move as is known, correct. Kanagawa (2016), chapter 4.

A belief after an observation has weights w on the states :math:`z_i` of the pairs (equation 4.7). Herding exchanges it for
points of equal weight among them, copied; the transition moves each copy its own way, and the mean of their coordinates,

.. math:: \nu = \frac1N \sum_j h(\tilde z_j),

is the prior of the next correction, a rule of `rules.bayes` in the form of `_correction`. Herding, too, needs coordinates
only: with H those of the :math:`z_i` the target at the candidates is `H H' w`, and the kernel between them `H H'`.

| Kanagawa (2016), Algorithm 4 | here |
|---|---|
| line 8, initial sample | `Weighted` given to `run`, by default the states of the pairs |
| line 10, Algorithm 2 with the first l points, copied (section 3.3) | `sources` |
| line 11 | `moved` |
| lines 13-16, Algorithm 1, or 5 on features of low rank | `prior`, `advance` |

The weights of the prior on the pairs are scaled to sum to one before the correction, as those of the posterior are after
it: delta acts on a distribution, whatever part of it `prior_reg` leaves. Without an observation nothing is resampled, and
the particles themselves move on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._linalg import Dense
from .._typing import Array
from ..embeddings import Weighted, mean_coordinates
from ..features import Recipe, factored
from ..features._herding import Pool, herd
from ..kernels import Linear
from ._correction import Corrected, PairsCorrection, Prior
from ._dynamics import Log, States, ratio_map
from ._noise import Noise
from ._recursion import Observed, Run, Settings, _merged, _one, _some, seen_in
from ._samplers import Sampler


class Particles(NamedTuple):
    """How a belief is turned into particles."""

    count: int  # of particles
    herded: int  # how many of them are herded; the others are copies
    resample: str | None  # "always", "ess" or None


class Now(NamedTuple):
    """Where a filter stands: its particles before the last observation, what that made of them, and random numbers."""

    cloud: Weighted
    found: Corrected
    observed: Array  # (1,) bool
    noise: Noise
    time: int


class ParticleRun(Run):
    """One of the sequences that were filtered in step, and where it ended."""

    def __init__(self, steps: Sequence[Corrected], priors: Sequence[Prior], i: int, end: Now):
        super().__init__(steps, priors, i)
        self.end = end


class ParticleRecursion:
    """A filter with all its settings, whose transition is a sampler: beliefs in, beliefs out.

    In `Observed.controls` the first column is the time of each row, and the others, if any, are the controls.
    """

    def __init__(
        self,
        log: Log,
        rule: str,
        settings: Settings,
        features: Recipe | None,
        latent_features: Recipe | None,
        sampler: Sampler,
        particles: Particles,
        seed: int,
        *,
        tol: float | None = None,
    ):
        rng = np.random.default_rng(seed)
        self.log, self.settings, self.particles, self.seed = log, settings, particles, seed
        self.sampler = sampler
        self.features, gram = seen_in(log, rule, settings, features, rng, tol)
        if isinstance(gram, Dense) and rule != "iw":
            self.features, gram = factored(self.features, gram)
        self.states = States.of(log, latent_features, settings.latent_kernel, rng)
        H = self.states.coordinates
        self.correct = PairsCorrection(rule, gram, H, ratio_map(H, settings.prior_reg), settings.reg, "divide")
        self._check = settings.latent_kernel._check
        self._pool = Pool((Linear(), H))

    # ------------------------------------------------------------------------------------------------ beliefs

    def start(self, given: Weighted | None) -> Weighted:
        """The belief before the first observation: what was given, or the states of the pairs."""
        n = len(self.log.points)
        return Weighted(self.log.points, np.full(n, 1.0 / n)) if given is None else given

    def noise(self) -> Noise:
        """Random numbers for the transition, independent of those that the first particles are made of."""
        return Noise(self.seed)

    def prior(self, clouds: Sequence[Weighted]) -> Prior:
        """Beliefs given by particles, as priors of the correction."""
        if clouds[0].distribution is not None:
            return Prior(np.stack([mean_coordinates(self.states.features, cloud) for cloud in clouds]))
        # all particles at once: a call of the kernel costs more than its arithmetic
        ends = np.cumsum([0, *(len(cloud.points) for cloud in clouds)])
        weights = np.zeros((ends[-1], len(clouds)))
        for i, cloud in enumerate(clouds):
            weights[ends[i] : ends[i + 1], i] = cloud.weights
        points = self._check(np.concatenate([cloud.points for cloud in clouds]), "what transition returned")
        means = mean_coordinates(self.states.features, Weighted(points, weights))
        return Prior(np.ascontiguousarray(means.T))

    def on_states(self, prior: Prior) -> Array:
        """Weights (t, n) of priors on the states of the pairs, none below zero."""
        gamma = np.maximum(self.correct.gamma(prior.mean), 0.0)
        total = gamma.sum(1, keepdims=True)
        return np.where(total > 0.0, gamma / np.where(total > 0.0, total, 1.0), 1.0 / gamma.shape[1])

    def advance(self, prior: Prior, f: Array, observed: Array) -> Corrected:
        """Beliefs after one time step: corrected where there is an observation, the prior's weights where there is none."""
        if observed.all():
            return self.correct(prior, f)
        kept = Corrected(prior.mean, np.full(len(prior.mean), np.nan), self.on_states(prior))
        if not observed.any():
            return kept
        return _merged(kept, self.correct(_some(prior, observed), f[observed]), observed)

    def sources(self, clouds: Sequence[Weighted], found: Corrected, observed: Array) -> list[Weighted]:
        """Particles to be moved next: resampled where there was an observation, as they are where there was none."""
        assert found.weights is not None
        out, rows = list(clouds), np.flatnonzero(observed[: len(clouds)])
        for i, fresh in zip(rows, self._resampled(found.mean[rows], found.weights[rows]), strict=True):
            out[i] = fresh
        return out

    def _resampled(self, means: Array, weights: Array) -> list[Weighted]:
        """Particles for beliefs on the states of the pairs: some of these of equal weight, or all with their weights."""
        Z, (count, few, when) = self.log.points, self.particles
        uneven = np.full(len(weights), when == "always")
        if when == "ess":
            uneven = (weights**2).sum(1) > 2.0 / len(Z)
        copies = max(1, count // len(Z))
        out = [Weighted(np.repeat(Z, copies, 0), np.repeat(w / copies, copies)) for w in weights]
        equal = np.full(count, 1.0 / count)
        herded = herd_each(self._pool, means[uneven] @ self.states.coordinates.T, few)
        for i, rows in zip(np.flatnonzero(uneven), herded, strict=True):
            out[i] = Weighted(Z[rows[np.arange(count) % few]], equal)
        return out

    def moved(self, cloud: Weighted, at: Array, noise: Noise) -> Weighted:
        """Particles one step later; `at` is a row of `Observed.controls`."""
        control = at[1:] if len(at) > 1 else None
        return Weighted(self.sampler(noise.generator(), cloud.points, int(at[0]), control), cloud.weights)

    # ------------------------------------------------------------------------------------------------ sequences

    def run(self, sequences: Sequence[Observed], given: Weighted | None) -> list[ParticleRun]:
        """Filter sequences in step, the longest first; each has random numbers of its own, whatever its company."""
        order = np.argsort([-len(s.observed) for s in sequences], kind="stable")
        ordered = [sequences[i] for i in order]
        lengths = np.array([len(s.observed) for s in ordered])
        noises = [self.noise() for _ in ordered]
        clouds = [self.start(given)] * len(ordered)
        steps: list[Corrected] = []
        priors: list[Prior] = []
        observed = np.zeros(len(ordered), dtype=bool)
        for t in range(lengths[0]):
            active = int((lengths > t).sum())
            if t:
                fresh = self.sources(clouds[:active], steps[-1], observed)
                clouds[:active] = [self.moved(fresh[i], _at(ordered[i], t), noises[i]) for i in range(active)]
            noises[:active] = [noises[i].after(ordered[i].marks[t]) for i in range(active)]
            observed = np.array([s.observed[t] for s in ordered[:active]])
            priors.append(self.prior(clouds[:active]))
            steps.append(self.advance(priors[-1], np.stack([s.coordinates[t] for s in ordered[:active]]), observed))
        runs: list[Any] = [None] * len(ordered)
        for i, (where, length, s) in enumerate(zip(order, lengths, ordered, strict=True)):
            end = Now(clouds[i], _one(steps[length - 1], i), s.observed[-1:], noises[i], int(_at(s, -1)[0]))
            runs[where] = ParticleRun(steps[:length], priors[:length], i, end)
        return runs

    def formed(self, run: Run) -> Array:
        """Weights (T, n) of a run on the states of the pairs."""
        return np.stack(run.rows())  # type: ignore[arg-type]


def _at(sequence: Observed, t: int) -> Array:
    assert sequence.controls is not None
    return sequence.controls[t]


def herd_each(pool: Pool, targets: Array, size: int) -> Array:
    """`herd` for each of several targets (t, n): rows (t, size) of the pool. All at once where the Gram matrix is held."""
    if pool.fits:
        pool.hold()
    if len(targets) < 2 or not pool.fits:
        return np.stack([herd(pool, target, size) for target in targets]) if len(targets) else np.zeros((0, size), int)
    gram, chosen = pool.hold(), np.empty((len(targets), size), dtype=np.intp)
    cost = np.tile(0.5 * pool.diagonal(), (len(targets), 1))
    score = np.empty_like(cost)
    for t in range(size):
        np.divide(cost, -(t + 1.0), out=score)
        score += targets
        chosen[:, t] = score.argmax(1)
        cost += gram[chosen[:, t]]
    return chosen

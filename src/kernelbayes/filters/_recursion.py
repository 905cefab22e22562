"""The recursion of a kernel Bayes filter: correct, predict, and again, for one sequence or many in step.

Xu et al. (2022), Algorithm 2: update with the initial belief first, then predict. A missing observation leaves the
prediction as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._linalg import Dense, LowRank, one_thread
from .._typing import Array
from ..embeddings import Weighted, mean_coordinates
from ..features import Features, Recipe, factored
from ..kernels import Kernel
from ..rules.bayes import RULES
from ._correction import Corrected, PairsCorrection, Prior, PriorCorrection, multiplied
from ._dynamics import _MOST_LANDMARKS, Log, States, Transition, coordinates, ratio_map

# Landmarks at most where a tolerance is given: enough to compare settings by.
_ROUGH_RANK = 96
# Up to this rank, factorisations are too small for threads to help.
_SMALL_RANK = 300


class Settings(NamedTuple):
    """Everything that is chosen before a filter can run."""

    kernel: Kernel
    latent_kernel: Kernel
    control_kernel: Kernel | None
    reg: Any  # a number, or one for each sequence
    prior_reg: float
    transition_reg: float


class Observed(NamedTuple):
    """One sequence to be filtered."""

    coordinates: Array  # (T, q), anything where the observation is missing
    observed: Array  # (T,) bool
    controls: Array | None  # (T, c); row t acts on the step from t - 1 to t
    novelty: Any = np.nan  # (T,) distance of the observations from those of the log
    marks: Sequence[int] = ()  # (T,) of `_noise.marks`, where random numbers are drawn


class Run:
    """One of the sequences that were filtered in step."""

    def __init__(self, steps: Sequence[Corrected], priors: Sequence[Prior], i: int):
        self._steps, self._priors, self._i = steps, priors, i

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def totals(self) -> Array:
        """(T,) sums of the weights as the rule gives them; NaN without an observation."""
        return np.array([step.total[self._i] for step in self._steps])

    @property
    def last(self) -> Array:
        """Coordinates (1, r) of the last belief."""
        return self._steps[-1].mean[self._i : self._i + 1]

    @property
    def moments(self) -> Array | None:
        """(T, d) means of z, where every step knows them without its weights."""
        found = [step.moments[self._i] for step in self._steps if step.moments is not None and step.moments.shape[1]]
        return np.stack(found) if len(found) == len(self._steps) else None

    def prior(self, t: int) -> Prior:
        """The belief before the observation of step t."""
        return _some(self._priors[t], slice(self._i, self._i + 1))

    def step(self, t: int) -> Corrected:
        """The belief after it."""
        return _one(self._steps[t], self._i)

    def rows(self) -> list[Array | None]:
        """Weights of each step, on the first points of the log or on all; None where they are not formed."""
        return [None if step.weights is None else step.weights[self._i] for step in self._steps]


def seen_in(
    log: Log, rule: str, settings: Settings, recipe: Recipe | None, rng: np.random.Generator, tol: float | None
) -> tuple[Features, Any]:
    """The observations of a log represented, as precisely as the rule needs or, with a tolerance, roughly."""
    precision = (_tolerance(rule, settings), _MOST_LANDMARKS) if tol is None else (tol, _ROUGH_RANK)
    return coordinates(recipe, settings.kernel, log.observations, rng, *precision)


class Recursion:
    """A filter with all its settings: beliefs in, beliefs out."""

    def __init__(
        self,
        log: Log,
        rule: str,
        settings: Settings,
        features: Recipe | None,
        latent_features: Recipe | None,
        normalise: str | None,
        rng: np.random.Generator,
        *,
        tol: float | None = None,
    ):
        self.log, self.settings, self.normalise = log, settings, normalise
        self.tilt: Array | None = (
            None  # (p,) a ratio that multiplies every prior; beliefs then start on the states after
        )
        self.features, gram = seen_in(log, rule, settings, features, rng, tol)
        self.states = States.of(log, latent_features, settings.latent_kernel, rng)
        self.transition = Transition(log, self.states, settings.transition_reg, settings.control_kernel, normalise)
        H = self.states.coordinates
        pairs = H[: len(log.observations)]
        self.ratio = ratio_map(pairs, settings.prior_reg)
        self.correct: PairsCorrection | PriorCorrection
        if RULES[rule].joint == "pairs":
            if isinstance(gram, Dense) and rule != "iw":
                self.features, gram = factored(self.features, gram)
            self.correct = PairsCorrection(rule, gram, pairs, self.ratio, settings.reg, normalise)
        else:
            self.features, gram = factored(self.features, gram)
            assert isinstance(gram, LowRank)
            self.correct = PriorCorrection(
                rule,
                gram,
                pairs,
                settings.prior_reg,
                settings.reg,
                normalise,
                self.transition,
                H[log.after],
                self.ratio,
            )

    # ------------------------------------------------------------------------------------------------ beliefs

    def initial(self, given: Weighted | None, count: int) -> Prior:
        """The belief before the first observation, for `count` sequences: what was given, or the states of the log."""
        p, n = len(self.log.points), len(self.log.observations)
        H = self.states.coordinates
        if given is None:
            if isinstance(self.correct, PriorCorrection):
                inputs = np.repeat(self.transition.uniform, count, 0)
                return Prior(self.transition.mean(inputs), None, inputs)
            rows = np.arange(n) if self.tilt is None else self.log.after
            mean, weights = H[rows].mean(0), np.zeros(p)
            weights[rows] = 1.0 / len(rows)
        else:
            mean = mean_coordinates(self.states.features, given)
            weights = np.zeros(p)
            if isinstance(self.correct, PairsCorrection):
                weights[:n] = self.correct.gamma(mean[None])[0]
            else:
                weights[self.log.after] = ratio_map(H[self.log.after], self.settings.prior_reg) @ mean
            total = weights.sum()
            weights = weights / total if abs(total) > 1e-8 else np.full(p, 1.0 / p)
        return Prior(np.tile(mean, (count, 1)), np.tile(weights, (count, 1)))

    def advance(self, prior: Prior, f: Array, observed: Array) -> Corrected:
        """Beliefs after one time step: corrected where there is an observation, the prediction where there is none."""
        if observed.all():
            return self.correct(prior, f)
        kept = self._uncorrected(prior)
        if not observed.any():
            return kept
        found = self.correct(_some(prior, observed), f[observed])
        return _merged(kept, found, observed)

    def _uncorrected(self, prior: Prior) -> Corrected:
        t = len(prior.mean)
        nothing = np.full(t, np.nan)
        carries = isinstance(self.correct, PriorCorrection) and self.correct.carries
        if carries and prior.inputs is not None and prior.ratio is None:
            assert isinstance(self.correct, PriorCorrection)
            return self.correct.uncorrected(prior.mean, prior.inputs)
        weights = self.on_points(prior)
        mean = prior.mean if prior.ratio is None else weights @ self.states.coordinates
        return Corrected(mean, nothing, weights)

    def predict(self, mean: Array, control: Array | None) -> Prior:
        """Beliefs one step ahead."""
        inputs = self.transition.inputs(mean, control)
        return Prior(self.transition.mean(inputs), None, inputs)

    def on_points(self, prior: Prior) -> Array:
        """Weights (t, p) of beliefs before an observation, on all points of the log."""
        out = prior.weights
        if out is None:
            assert prior.inputs is not None
            out = np.zeros((len(prior.mean), len(self.log.points)))
            out[:, self.log.after] = self.transition.weights(prior.inputs)
        return out if prior.ratio is None else multiplied(out, prior.ratio)

    def weights(self, step: Corrected) -> Array:
        """Weights (t, p) of beliefs on all points of the log."""
        if step.weights is None:
            assert isinstance(self.correct, PriorCorrection)
            assert step.factors is not None
            return self.correct.formed(step.factors)
        missing = len(self.log.points) - step.weights.shape[1]
        return np.pad(step.weights, ((0, 0), (0, missing))) if missing else step.weights

    # ------------------------------------------------------------------------------------------------ sequences

    def run(self, sequences: Sequence[Observed], given: Weighted | None) -> list[Run]:
        """Filter sequences in step, the longest first so that those still running are always the first ones."""
        order = np.argsort([-len(s.observed) for s in sequences], kind="stable")
        ordered = [sequences[i] for i in order]
        lengths = np.array([len(s.observed) for s in ordered])
        steps: list[Corrected] = []
        priors: list[Prior] = []
        prior = self.initial(given, len(ordered))
        threads = one_thread() if self.features.rank <= _SMALL_RANK else contextlib.nullcontext()
        with threads:
            self._run(ordered, lengths, prior, steps, priors)
        runs: list[Any] = [None] * len(ordered)
        for i, where in enumerate(order):
            runs[where] = Run(steps[: lengths[i]], priors[: lengths[i]], i)
        return runs

    def _run(
        self,
        ordered: Sequence[Observed],
        lengths: Array,
        prior: Prior,
        steps: list[Corrected],
        priors: list[Prior],
    ) -> None:
        """Correct and predict to the end of the longest sequence."""
        for t in range(lengths[0]):
            active = int((lengths > t).sum())
            if t:
                control = _stacked([s.controls for s in ordered[:active]], t)
                prior = self.predict(steps[-1].mean[:active], control)
            if self.tilt is not None:
                prior = prior._replace(ratio=np.tile(self.tilt, (active, 1)))
            f = np.stack([s.coordinates[t] for s in ordered[:active]])
            observed = np.array([s.observed[t] for s in ordered[:active]])
            steps.append(self.advance(prior, f, observed))
            priors.append(prior)

    def formed(self, run: Run) -> Array:
        """Weights (T, p) of a run on all points of the log."""
        out = np.zeros((len(run), len(self.log.points)))
        for t, row in enumerate(run.rows()):
            if row is None:
                out[t] = self.weights(run.step(t))[0]
            else:
                out[t, : len(row)] = row
        return out


def _tolerance(rule: str, settings: Settings) -> float:
    """How much of the kernel of x may be left out: a thousandth of the regulariser, in units of the kernel."""
    reg = float(np.min(settings.reg))
    return float(np.clip(1e-3 * (reg if RULES[rule].inverse == "plain" else np.sqrt(reg)), 1e-12, 1e-5))


def _stacked(controls: Sequence[Array | None], t: int) -> Array | None:
    return None if controls[0] is None else np.stack([u[t] for u in controls if u is not None])


def _one(step: Corrected, i: int) -> Corrected:
    """The belief of one sequence."""
    rows = slice(i, i + 1)
    factors = None if step.factors is None else tuple(part[rows] for part in step.factors)
    return Corrected(
        step.mean[rows],
        step.total[rows],
        None if step.weights is None else step.weights[rows],
        None if step.moments is None else step.moments[rows],
        factors,  # type: ignore[arg-type]
    )


def _some(prior: Prior, rows: Array | slice) -> Prior:
    """The beliefs of some sequences."""
    return Prior(*(None if part is None else part[rows] for part in prior))  # type: ignore[arg-type]


def _merged(kept: Corrected, found: Corrected, observed: Array) -> Corrected:
    """The beliefs of all sequences, those with an observation and those without."""

    def join(a: Array, b: Array) -> Array:
        if a.ndim == 2 and a.shape[1] > b.shape[1]:  # weights on the pairs among those on all points
            b = np.pad(b, ((0, 0), (0, a.shape[1] - b.shape[1])))
        out = a.copy()
        out[observed] = b
        return out

    if kept.factors is not None and found.factors is not None:
        factors = tuple(join(a, b) for a, b in zip(kept.factors, found.factors, strict=True))
        assert kept.moments is not None
        assert found.moments is not None
        return Corrected(
            join(kept.mean, found.mean),
            join(kept.total, found.total),
            None,
            join(kept.moments, found.moments),
            factors,  # type: ignore[arg-type]
        )
    assert kept.weights is not None
    assert found.weights is not None
    weights = join(kept.weights, found.weights)
    return Corrected(join(kept.mean, found.mean), join(kept.total, found.total), weights)

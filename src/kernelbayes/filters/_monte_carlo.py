"""The kernel Monte Carlo filter as an estimator: examples of a sensor and a known transition in, tracks of states out.

Kanagawa (2016), chapter 4, Algorithms 4-6. The recursion is in `_particles`, the user's functions are met in `_samplers`;
here are checks, defaults and the choice of settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._estimator import check_kinds
from .._typing import Array, ArrayLike, RandomState
from ..embeddings import Embedding, Weighted, herd_subset
from ..features import Recipe, kernel_for
from ..kernels import Kernel
from ..kernels._distributions import is_distribution
from ..rules.bayes import RULES
from ._belief import Belief
from ._correction import Corrected
from ._dynamics import Log
from ._noise import MISSING, marks
from ._observing import Observing
from ._particles import Now, ParticleRecursion, ParticleRun, Particles
from ._recursion import Observed, Settings
from ._samplers import BACKENDS, Sampler, arguments, draw_initial, try_out
from ._sequences import column_names, in_order, numbered, read_log
from ._track import Track, TrackDiagnostics
from ._tuning import Given, candidate, choose, folds
from ._walks import walks

_TUNE = 15
_HERDED = 50
# Particles while settings are compared.
_TUNING_PARTICLES = 200
_RULES = tuple(name for name, rule in RULES.items() if rule.joint == "pairs")


class KernelMonteCarloFilter(Observing, BaseEstimator):
    r"""Estimate states over time where it is known how they move but not how the sensor works, which is learned from pairs.

    At each step particles are moved by the transition, corrected by a kernel Bayes' rule, and resampled by herding: a
    particle filter that needs no likelihood. The posterior has weights on the states of the pairs, which should therefore
    cover where the state can go. Kanagawa (2016), chapter 4, Algorithm 4.

    Args:
        transition: `f(rng, states, time, control)`, which returns for each row of states (m, d) one draw of the state a
            step later, (m, d). `rng` is a NumPy generator; `time` is the number of the row that the step leads to, 1 for the
            first; `control` is the row (c,) of controls given for it, or None. The last two may be left out:
            `f(rng, states)`, `f(rng, states, control)`.
        initial: belief about the first state: `f(rng, m)`, samples, an embedding, a scipy.stats distribution or a list of
            them, one for each column. By default the states of the pairs.
        rule: how an observation corrects the belief: "kbr", the paper's, "iw" or "kbr-b1"; see `kb.KernelBayesRule`.
        kernel: of observations. By default Gaussian.
        latent_kernel: of states. By default Gaussian, each column scaled by its own spread.
        features: representation of observations. By default the kernel down to a tolerance far below `reg`;
            `kb.IncompleteCholesky(20)` here and for the states makes the time of a step linear in the number of pairs
            (Algorithm 5, in a form that inverts nothing that may be singular).
        latent_features: representation of states.
        reg: regulariser of the correction, as in `kb.KernelBayesRule`: delta of the paper. The weights of the prior on the
            pairs are scaled to sum to one before.
        prior_reg: regulariser of the step from the particles to the pairs: epsilon of the paper.
        particles: how many. By default as many as there are pairs.
        herded: how many points are herded at most; particles beyond are copies of them, which the transition parts
            (section 3.3).
        resample: "always"; "ess", where the effective sample size is below half the pairs, else the states of the pairs
            move on with their weights, each as often as there are particles for; or None for never.
        subset: learn from so many herded pairs only (Algorithm 6).
        backend: "numpy", or "jax": `transition` and `initial` then take a key of `jax.random` in place of `rng`, and arrays
            of JAX in double precision.
        tune: how many settings to try, on sequences left out of the pairs and with 200 particles, for whatever was not
            given above; 0 for first guesses.
        progress: show a bar while tuning; None: on a terminal when it takes more than a moment.
        random_state: seed for whatever is drawn at random. A fitted filter gives the same answer whenever it is asked: the
            random numbers of a step follow from the seed and the observations before it, so that sequences have their own,
            and the same ones filtered alone, in any order and company, or step by step.

    Attributes:
        kernel_, latent_kernel_, reg_, prior_reg_: what was given or chosen.
        observations_, points_: the pairs that are used.
        score_: of the chosen settings on the sequences left out: geometric mean of the root mean squared error and the
            ranked probability score, relative to the spread of the states; 1 is hopeless.
        trials_: how many settings were tried.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> def drift(rng, level, control):  # known: what a step does to the level
        ...     return 0.9 * level + control + 0.5 * rng.normal(size=level.shape)
        >>> rng = np.random.default_rng(0)
        >>> gauge = lambda level: np.tanh(level / 2) + 0.3 * rng.normal(size=level.shape)  # not known: tried out
        >>> levels = rng.uniform(-5, 5, (300, 1))
        >>> kmcf = kb.KernelMonteCarloFilter(drift, stats.norm(0, 1), tune=0, random_state=0)
        >>> kmcf = kmcf.fit(gauge(levels), levels)
        >>> controls, truth = rng.normal(size=(50, 1)), np.zeros((50, 1))
        >>> for t in range(1, 50):
        ...     truth[t] = drift(rng, truth[t - 1], controls[t])
        >>> track = kmcf.filter(gauge(truth), controls)
        >>> bool(track.score(truth).rmse[0] < 0.4 * truth.std())  # the gauge alone leaves half of the spread
        True
        >>> kmcf.predict(2, [[0.5], [0.5]]).mean().shape
        (2, 1)
    """

    def __init__(
        self,
        transition: Callable[..., Any],
        initial: Any = None,
        rule: str = "kbr",
        kernel: Kernel | None = None,
        latent_kernel: Kernel | None = None,
        features: Recipe | None = None,
        latent_features: Recipe | None = None,
        reg: float | None = None,
        prior_reg: float | None = None,
        *,
        particles: int | None = None,
        herded: int = _HERDED,
        resample: str | None = "always",
        subset: int | None = None,
        backend: str = "numpy",
        tune: int = _TUNE,
        progress: bool | None = None,
        random_state: RandomState = None,
    ):
        self.transition = transition
        self.initial = initial
        self.rule = rule
        self.kernel = kernel
        self.latent_kernel = latent_kernel
        self.features = features
        self.latent_features = latent_features
        self.reg = reg
        self.prior_reg = prior_reg
        self.particles = particles
        self.herded = herded
        self.resample = resample
        self.subset = subset
        self.backend = backend
        self.tune = tune
        self.progress = progress
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(
        self, observations: Any, states: Any, controls: Any = None, *, ordered: bool = True
    ) -> KernelMonteCarloFilter:
        """Learn the sensor from pairs of observations and states.

        Args:
            observations: (n, p), or a list of such tables for several sequences. Rows with NaN are left out.
            states: in the same form, (n, d).
            controls: (n, c) in the same form, if the transition takes one; row t acted on the step from row t - 1 to row t.
                They are used to choose settings only.
            ordered: whether rows are in the order of time. Then settings are chosen by filtering stretches left out, else by
                filtering walks among pairs left out that follow the transition.
        """
        self._check_settings()
        rng = _check.generator(self.random_state)
        self._seed = int(rng.integers(2**31))
        names = tuple(map(column_names, (observations, states, controls)))
        states = in_order(states, names[1], "states")
        training = read_log(
            in_order(observations, names[0], "observations"),
            states,
            numbered(states, in_order(controls, names[2], "controls")),
            None,
            kernel_for(self.features, self.kernel),
            kernel_for(self.latent_features, self.latent_kernel),
            None,
        )
        rows = np.arange(len(training.log.observations))
        log = Log(training.log.observations, training.log.points, rows, rows, None)  # no transition is learned
        for earlier in ("_recursion_cache", "_reach_cache", "_now"):
            self.__dict__.pop(earlier, None)
        self.observation_names_, self.state_names_, self.control_names_ = names
        assert training.controls is not None
        self._choose(log, training.lengths, training.controls, ordered)
        self.observations_, self.points_ = self._reduced(log)[:2]
        return self.reset()

    def _check_settings(self) -> None:
        arguments(self.transition)
        _check.option(self.rule, "rule", _RULES)
        _check.option(self.resample, "resample", ("always", "ess", None))
        _check.option(self.backend, "backend", BACKENDS)
        for name in ("reg", "prior_reg"):
            if getattr(self, name) is not None:
                _check.positive(getattr(self, name), name)
        for name in ("particles", "subset"):
            if getattr(self, name) is not None:
                _check.count(getattr(self, name), name, at_least=2)
        _check.count(self.herded, "herded")
        _check.count(self.tune, "tune", at_least=0)
        check_kinds(self, kernel=Kernel, latent_kernel=Kernel, features=Recipe, latent_features=Recipe)

    def _choose(self, log: Log, lengths: Array, controls: Array, ordered: bool) -> None:
        """Set every setting that was not given: by trial on sequences left out, or by a first guess."""
        kernel = kernel_for(self.features, self.kernel)
        latent = kernel_for(self.latent_features, self.latent_kernel)
        given = Given(kernel, latent, None, self.reg, self.prior_reg, 1.0)
        searched = candidate(log, self.rule, given, self.latent_features)
        settings = searched.make(searched.start)
        try_out(Sampler(self.transition, self.backend), log.points, controls, np.random.default_rng(self._seed))
        rng = np.random.default_rng(self._seed)
        numeric = log.points.ndim == 2 and log.points.dtype.kind == "f"
        held = folds(log, lengths, controls, rng) if self.tune and numeric and ordered else []
        if self.tune and numeric and not held:
            held = walks(log, controls, Sampler(self.transition, self.backend), rng)
        self.score_, self.trials_ = float("nan"), 0
        if held:
            settings, self.score_, self.trials_ = choose(
                searched,
                [fold._replace(log=self._reduced(fold.log)) for fold in held],
                self._tried,  # type: ignore[arg-type]
                reg=self.reg is None,
                budget=self.tune,
                progress=self.progress,
            )
        self.kernel_, self.latent_kernel_ = settings[:2]
        self.reg_, self.prior_reg_ = float(settings.reg), float(settings.prior_reg)

    def _reduced(self, log: Log) -> Log:
        """The pairs that are learned from: all, or a herded subset (Algorithm 6)."""
        if self.subset is None or self.subset >= len(log.points):
            return log
        kernels = kernel_for(self.features, self.kernel), kernel_for(self.latent_features, self.latent_kernel)
        rows = herd_subset(log.observations, log.points, self.subset, kernel=kernels[0], target_kernel=kernels[1])
        few = np.arange(len(rows))
        return Log(log.observations[rows], log.points[rows], few, few, None)

    def _recursion_of(
        self, log: Log, settings: Settings, most: int | None = None, tol: float | None = None
    ) -> ParticleRecursion:
        count = self.particles or len(log.points)
        count = count if most is None else min(count, most)
        particles = Particles(count, min(self.herded, count), self.resample)
        sampler = Sampler(self.transition, self.backend)
        recipes = self.features, self.latent_features
        return ParticleRecursion(log, self.rule, settings, *recipes, sampler, particles, self._seed, tol=tol)

    def _tried(self, log: Log, settings: Settings, tol: float) -> ParticleRecursion:
        return self._recursion_of(log, settings, _TUNING_PARTICLES, tol)

    # ------------------------------------------------------------------------------------------------ filtering

    def filter(
        self, observations: Any, controls: Any = None, *, initial: Any = None, times: ArrayLike | None = None
    ) -> Any:
        """The track of states behind a sequence of observations, each step given the observations so far.

        Args:
            observations: (T, p), or a list of such tables for several sequences. A row with NaN, or None, is a missing
                observation: that step predicts only, and its weights are those of the particles projected on the states
                of the pairs.
            controls: (T, c), if the transition takes one; row t acts on the step from row t - 1 to row t.
            initial: belief about the first state, in place of that given to the filter.
            times: (T,) labels for the track of one sequence.

        Returns:
            A `Track` on the states of the pairs, or a list of them for several sequences.
        """
        check_is_fitted(self, "reg_")
        seen, one = self._seen_with(controls, observations)
        sequences = [
            Observed(f, present, self._at(np.arange(len(present)), U), novelty, marks(rows, present))
            for (f, present, novelty, rows), U in seen
        ]
        runs = self._recursion.run(sequences, self._read_initial(initial))
        tracks = [self._track(run, seen, times if one else None) for run, seen in zip(runs, sequences, strict=True)]
        if one:
            self._now = runs[0].end
        return tracks[0] if one else tracks

    def step(self, observation: Any, control: ArrayLike | None = None) -> Belief:
        """Take in one more observation and return the belief about the state now.

        None or NaN is a missing observation. `control` acted on the step that led here. `reset` starts again.
        """
        check_is_fitted(self, "reg_")
        recursion, now = self._recursion, self._now
        ((f, observed, novelty, rows),) = self._seen([self._one_row(observation)], ["observation"])
        if now is None:
            noise, cloud, time = recursion.noise(), recursion.start(self._start), 0
        else:
            noise, time = now.noise, now.time + 1
            (cloud,) = recursion.sources([now.cloud], now.found, now.observed)
            cloud = recursion.moved(cloud, self._at([time], self._one_control(control))[0], noise)
        found = recursion.advance(recursion.prior([cloud]), f, observed)
        self._now = Now(cloud, found, observed, noise.after(marks(rows, observed)[0]), time)
        return self._belief(found, bool(observed[0]), float(novelty[0]))

    def predict(self, steps: int, controls: Any = None) -> Track:
        """The track of states over the next steps, without observations, from where `filter` or `step` ended.

        The particles move on by the transition alone; the track shows them projected on the states of the pairs.

        Args:
            steps: how many.
            controls: (steps, c), if the transition takes one.
        """
        check_is_fitted(self, "reg_")
        steps = _check.count(steps, "steps")
        recursion, now = self._recursion, self._now
        if now is None:
            noise, cloud, time = recursion.noise().after(MISSING), recursion.start(self._start), 0
        else:
            noise, time = now.noise, now.time
            (cloud,) = recursion.sources([now.cloud], now.found, now.observed)
        weights = np.empty((steps, len(self.points_)))
        for t, at in enumerate(self._at(np.arange(time + 1, time + 1 + steps), controls)):
            cloud, noise = recursion.moved(cloud, at, noise), noise.after(MISSING)
            weights[t] = recursion.on_states(recursion.prior([cloud]))[0]
        diagnostics = TrackDiagnostics.of(weights, observed=np.zeros(steps, dtype=bool))
        return Track(self.points_, weights, self.latent_kernel_, diagnostics, names=self._names)

    def reset(self, initial: Any = None) -> KernelMonteCarloFilter:
        """Forget the observations so far; the next `step` starts from `initial`, or from that given to the filter."""
        check_is_fitted(self, "reg_")
        self._now: Now | None = None
        self._start = self._read_initial(initial)
        return self

    # ------------------------------------------------------------------------------------------------ inside

    @property
    def _recursion(self) -> ParticleRecursion:
        if "_recursion_cache" not in self.__dict__:
            settings = Settings(self.kernel_, self.latent_kernel_, None, self.reg_, self.prior_reg_, 1.0)
            rows = np.arange(len(self.points_))
            log = Log(self.observations_, self.points_, rows, rows, None)
            self._recursion_cache = self._recursion_of(log, settings)
        return self._recursion_cache

    def _one_control(self, control: Any) -> Any:
        """A control as a table of one row."""
        row = _check.row_by_name(control, getattr(self, "control_names_", None), "control")
        return row if row is None or _check.column_names(row) is not None else [row]

    def _at(self, times: ArrayLike, controls: Any) -> Array:
        """Rows (T, 1 + c) of times and controls."""
        times = np.asarray(times, dtype=np.float64)[:, None]
        if controls is None:
            return times
        if not self._recursion.sampler.takes_control:
            raise ValueError("transition takes no control, but controls were given")
        U = _check.vectors(_check.by_name(controls, getattr(self, "control_names_", None), "controls"), "controls")
        if len(U) != len(times):
            raise ValueError(f"controls has {len(U)} rows where {len(times)} were wanted")
        return np.concatenate([times, U], axis=1)

    def _read_initial(self, initial: Any) -> Weighted | None:
        value = self.initial if initial is None else initial
        if value is None:
            return None
        count, rng = self._recursion.particles.count, np.random.default_rng(self._seed)
        if callable(value) and not isinstance(value, Embedding) and not is_distribution(value):
            points = draw_initial(value, self.backend, rng, count, self.points_)
            return Weighted(points, np.full(count, 1.0 / count))
        read = self._weighted(value, count, rng)
        copies = -(-count // len(read.points))  # a few samples, or one known state, go many ways
        return read._replace(points=np.repeat(read.points, copies, 0), weights=np.repeat(read.weights / copies, copies))

    def _track(self, run: ParticleRun, sequence: Observed, times: ArrayLike | None) -> Track:
        weights = self._recursion.formed(run)
        diagnostics = TrackDiagnostics.of(
            weights,
            observed=sequence.observed,
            total=np.where(sequence.observed, run.totals, 1.0),
            novelty=sequence.novelty,
        )
        return Track(self.points_, weights, self.latent_kernel_, diagnostics, times=times, names=self._names)

    def _belief(self, found: Corrected, observed: bool, novelty: float) -> Belief:
        assert found.weights is not None
        weights = found.weights[0]
        total = float(found.total[0]) if observed else 1.0
        return Belief(
            self.points_,
            lambda: weights,
            self.latent_kernel_,
            mean=None,
            observed=observed,
            total=total,
            novelty=novelty,
        )

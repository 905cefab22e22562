"""The kernel Bayes filter as an estimator: logged examples in, tracks of states out.

Xu et al. (2022), section 4 and Algorithm 2; Gebhardt et al. (2015), section 4, for the rule "subspace". The algebra is in
`_dynamics`, `_correction` and `_recursion`; here are checks, defaults and the choice of settings. It is longer than other
files for the words on each argument of five methods; what it shares with the other filter is in `_observing` and `_tuning`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .. import _check
from .._estimator import check_kinds
from .._typing import Array, ArrayLike, RandomState
from ..embeddings import Weighted, mean_coordinates
from ..features import Recipe, Subspace, kernel_for
from ..kernels import Kernel
from ..rules.bayes import RULES
from ._belief import Belief, DeferredTrack
from ._correction import Prior
from ._dynamics import Log
from ._observing import Observing
from ._recursion import Corrected, Observed, Recursion, Run, Settings
from ._sequences import Training, column_names, in_order, read_log, transitions_in_order
from ._smoother import Smoother, reversed_log
from ._track import Track, TrackDiagnostics
from ._tuning import Candidate, Given, candidate, choose, folds

_REFERENCE_STATES = 100
_INITIAL_DRAWS = 1000
_TUNE = 15


class KernelBayesFilter(Observing, BaseEstimator):
    r"""Estimate states over time from observations, learned from a log in which both were recorded.

    Nothing is assumed about how states move or how sensors work: the transition is learned from consecutive states, the
    sensor from pairs. Every rule of `kb.KernelBayesRule` and every representation can be used.

    Args:
        rule: how an observation corrects the belief; see `kb.KernelBayesRule`. "iw" is the most accurate as a rule;
            "subspace" takes the same time for a step however long the log was.
        kernel: of observations. By default Gaussian.
        latent_kernel: of states. By default Gaussian, each column scaled by its own spread.
        control_kernel: of controls. By default Gaussian.
        features: representation of observations. By default the kernel down to a tolerance far below `reg`.
        latent_features: representation of states. By default the same; for "subspace" 100 reference states.
        reg: regulariser of the correction; as in `kb.KernelBayesRule`.
        prior_reg: regulariser of the step from the predicted belief to the training pairs.
        transition_reg: regulariser of the transition.
        normalise: "divide" (weights divided by their sum at each step), "prior" (what they lack of one goes to the
            prediction), or None (as the papers print them).
        tune: how many settings to try, on stretches left out of the log, for whatever was not given above; 0 for first
            guesses.
        progress: show a bar while tuning; None: on a terminal when it takes more than a moment.
        random_state: seed for whatever is drawn at random.

    Attributes:
        kernel_, latent_kernel_, control_kernel_, reg_, prior_reg_, transition_reg_: what was given or chosen.
        score_: of the chosen settings on the stretches left out: geometric mean of the root mean squared error and the
            ranked probability score, relative to the spread of the states; about 0.75 is as good as knowing nothing.
        trials_: how many settings were tried.
        observation_names_, state_names_, control_names_: columns of the tables it was fitted to, if they have names. Those
            of states label tracks; set them as you like.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> angle = np.cumsum(0.3 + 0.1 * rng.normal(size=400))  # a target that goes round in circles
        >>> states = np.column_stack([np.cos(angle), np.sin(angle)])
        >>> observations = states + 0.3 * rng.normal(size=states.shape)
        >>> kbf = kb.KernelBayesFilter(random_state=0).fit(observations[:300], states[:300])
        >>> track = kbf.filter(observations[300:])
        >>> bool(track.score(states[300:]).mse < 0.5 * ((observations[300:] - states[300:]) ** 2).sum(1).mean())
        True
        >>> kbf.predict(3).mean().shape  # three steps beyond the last observation
        (3, 2)
    """

    def __init__(
        self,
        rule: str = "iw",
        kernel: Kernel | None = None,
        latent_kernel: Kernel | None = None,
        control_kernel: Kernel | None = None,
        features: Recipe | None = None,
        latent_features: Recipe | None = None,
        reg: float | None = None,
        prior_reg: float | None = None,
        transition_reg: float | None = None,
        *,
        normalise: str | None = "divide",
        tune: int = _TUNE,
        progress: bool | None = None,
        random_state: RandomState = None,
    ):
        self.rule = rule
        self.kernel = kernel
        self.latent_kernel = latent_kernel
        self.control_kernel = control_kernel
        self.features = features
        self.latent_features = latent_features
        self.reg = reg
        self.prior_reg = prior_reg
        self.transition_reg = transition_reg
        self.normalise = normalise
        self.tune = tune
        self.progress = progress
        self.random_state = random_state

    # ------------------------------------------------------------------------------------------------ fitting

    def fit(
        self,
        observations: Any,
        states: Any,
        controls: Any = None,
        *,
        transitions: Any = None,
        ordered: bool = True,
    ) -> KernelBayesFilter:
        """Learn from a log.

        Args:
            observations: one row for each time step, (T, p), or a list of such tables for several sequences. Rows with NaN
                are left out, and the sequence is cut there.
            states: in the same form, (T, d).
            controls: (T, c); row t acts on the step from row t - 1 to row t.
            transitions: (before, after) or (before, after, controls): examples of single steps, in place of consecutive
                rows of `states`.
            ordered: whether rows are in the order of time. If not, which needs `transitions`, settings are chosen by single
                corrections.
        """
        self._check_settings()
        rng = _check.generator(self.random_state)
        self._seed = int(rng.integers(2**31))
        if not ordered and transitions is None:
            raise ValueError(
                "rows that are not in the order of time hold no transitions: pass transitions=(before, after)"
            )
        acting = transitions[2] if controls is None and transitions is not None and len(transitions) > 2 else controls
        names = tuple(map(column_names, (observations, states, acting)))
        training = read_log(
            in_order(observations, names[0], "observations"),
            in_order(states, names[1], "states"),
            in_order(controls, names[2], "controls"),
            transitions_in_order(transitions, names[1]),
            kernel_for(self.features, self.kernel),
            kernel_for(self.latent_features, self.latent_kernel),
            self.control_kernel,
        )
        if not ordered:
            training = training._replace(lengths=np.ones(len(training.log.observations), dtype=int))
        log = training.log
        self.observations_, self.points_, self.before_, self.after_, self.controls_ = log
        for earlier in ("_recursion_cache", "_smoother_cache", "_reach_cache", "_prior", "_now"):
            vars(self).pop(earlier, None)
        self.observation_names_, self.state_names_, self.control_names_ = names
        self._choose(training)
        self.reset()
        return self

    def _check_settings(self) -> None:
        _check.option(self.rule, "rule", tuple(RULES))
        if self.normalise is not None:
            _check.option(self.normalise, "normalise", ("divide", "prior"))
        for name in ("reg", "prior_reg", "transition_reg"):
            if getattr(self, name) is not None:
                _check.positive(getattr(self, name), name)
        _check.count(self.tune, "tune", at_least=0)
        kinds = dict.fromkeys(("kernel", "latent_kernel", "control_kernel"), Kernel)
        check_kinds(self, **kinds, features=Recipe, latent_features=Recipe)

    @property
    def _latent_recipe(self) -> Recipe | None:
        if self.latent_features is None and self.rule == "subspace":
            return Subspace(_REFERENCE_STATES, "kmeans", whiten=False)
        return self.latent_features

    def _recursion_of(self, log: Log, settings: Settings, tol: float | None = None) -> Recursion:
        rng = np.random.default_rng(self._seed)
        return Recursion(log, self.rule, settings, self.features, self._latent_recipe, self.normalise, rng, tol=tol)

    def _choose(self, training: Training) -> None:
        """Set every setting that was not given: by trial on stretches left out, or by a first guess."""
        searched = self._candidate(training.log)
        rng = np.random.default_rng(self._seed)
        held = folds(training.log, training.lengths, training.controls, rng)
        self.score_, self.trials_ = float("nan"), 0
        settings = searched.make(searched.start)
        numeric = self.points_.ndim == 2 and self.points_.dtype.kind == "f"
        if self.tune and held and numeric:
            settings, self.score_, self.trials_ = choose(
                searched,
                held,
                self._recursion_of,
                reg=self.reg is None,
                budget=self.tune,
                progress=self.progress,
            )
        self.kernel_, self.latent_kernel_, self.control_kernel_ = settings[:3]
        self.reg_, self.prior_reg_, self.transition_reg_ = map(float, settings[3:])

    def _candidate(self, log: Log) -> Candidate:
        """What is searched over, with first guesses, and how to make settings of it."""
        given = Given(
            kernel_for(self.features, self.kernel),
            kernel_for(self.latent_features, self.latent_kernel),
            self.control_kernel,
            self.reg,
            self.prior_reg,
            self.transition_reg,
        )
        return candidate(log, self.rule, given, self._latent_recipe)

    # ------------------------------------------------------------------------------------------------ filtering

    def filter(
        self, observations: Any, controls: Any = None, *, initial: Any = None, times: ArrayLike | None = None
    ) -> Any:
        """The track of states behind a sequence of observations, each step given the observations so far.

        Args:
            observations: (T, p), or a list of such tables for several sequences, which are then filtered in step. A row
                with NaN, or None, is a missing observation: that step predicts only.
            controls: (T, c), if the filter was fitted with controls; row t acts on the step from row t - 1 to row t.
            initial: belief about the first state: samples, an embedding, a scipy.stats distribution or a list of them, one
                for each column. By default the states of the log, or those after its transitions for the rules whose
                posterior stands on the prior's points ("dmo", "subspace", "kbr-a1", "kbr-a2").
            times: (T,) labels for the track of one sequence.

        Returns:
            A `Track`, or a list of them for several sequences.
        """
        sequences, one = self._read_sequences(observations, controls)
        runs = self._recursion.run(sequences, self._read_initial(initial))
        tracks = [self._track(run, seen, times if one else None) for run, seen in zip(runs, sequences, strict=True)]
        if one:
            self._now = runs[0].last
            self._prior = None
            return tracks[0]
        self.reset()  # there is no one sequence to go on from
        return tracks

    def smooth(
        self, observations: Any, controls: Any = None, *, initial: Any = None, times: ArrayLike | None = None
    ) -> Any:
        """The track of states given all observations, those after each step included: forwards, then backwards.

        Takes and returns what `filter` does.
        """
        sequences, one = self._read_sequences(observations, controls)
        runs = self._recursion.run(sequences, self._read_initial(initial))
        tracks = [
            self._track(run, sequence, times if one else None, self._summing_to_one(weights))
            for run, sequence, weights in zip(runs, sequences, self._smoother.run(sequences, runs), strict=True)
        ]
        return tracks[0] if one else tracks

    def step(self, observation: Any, control: ArrayLike | None = None) -> Belief:
        """Take in one more observation and return the belief about the state now.

        None or NaN is a missing observation. `control` acted on the step that led here. `reset` starts again.
        """
        check_is_fitted(self, "reg_")
        recursion = self._recursion
        if control is not None and self.controls_ is None:
            raise ValueError("the filter was fitted without controls")
        if self._now is None:
            # of a filter that was loaded it is a plain tuple
            prior = Prior(*self._prior) if self._prior is not None else recursion.initial(None, 1)
        else:
            prior = recursion.predict(self._now, self._read_control(control))
        f, present, novelty, _ = self._seen([self._one_row(observation)], ["observation"])[0]
        corrected = recursion.advance(prior, f, present)
        self._now, self._prior = corrected.mean, None
        return self._belief(corrected, bool(present[0]), float(novelty[0]))

    def predict(self, steps: int, controls: Any = None, *, start: Any = None) -> Track:
        """The track of states over the next steps, without observations.

        Args:
            steps: how many.
            controls: (steps, c), if the filter was fitted with controls.
            start: a `Track`, from whose last step to go on, or a belief. By default where `filter` or `step` ended.
        """
        check_is_fitted(self, "reg_")
        steps = _check.count(steps, "steps")
        recursion = self._recursion
        if controls is None and self.controls_ is not None:
            raise ValueError("the filter was fitted with controls: pass controls for the steps to predict")
        U = None if controls is None else self._read_controls(controls, steps)
        mean = self._mean_of(start)
        weights = np.empty((steps, len(self.points_)))
        for t in range(steps):
            prior = recursion.predict(mean, None if U is None else U[t : t + 1])
            weights[t], mean = recursion.on_points(prior)[0], prior.mean
        weights /= weights.sum(1, keepdims=True)
        diagnostics = TrackDiagnostics.of(weights, observed=np.zeros(steps, dtype=bool))
        return Track(self.points_, weights, self.latent_kernel_, diagnostics, names=self.state_names_)

    def reset(self, initial: Any = None) -> KernelBayesFilter:
        """Forget the observations so far; the next `step` starts from `initial`, read as in `filter`."""
        self._now = None
        self._prior = None if initial is None else self._recursion.initial(self._read_initial(initial), 1)
        return self

    # ------------------------------------------------------------------------------------------------ inside

    @property
    def _log(self) -> Log:
        return Log(self.observations_, self.points_, self.before_, self.after_, self.controls_)

    @property
    def _recursion(self) -> Recursion:
        check_is_fitted(self, "reg_")
        if "_recursion_cache" not in self.__dict__:
            settings = Settings(
                self.kernel_,
                self.latent_kernel_,
                self.control_kernel_,
                self.reg_,
                self.prior_reg_,
                self.transition_reg_,
            )
            self._recursion_cache = self._recursion_of(self._log, settings)
        return self._recursion_cache

    @property
    def _smoother(self) -> Smoother:
        if "_smoother_cache" not in self.__dict__:
            forward = self._recursion
            backward = self._recursion_of(reversed_log(self._log), forward.settings)
            self._smoother_cache = Smoother(forward, backward)
        return self._smoother_cache

    def _read_sequences(self, observations: Any, controls: Any) -> tuple[list[Observed], bool]:
        check_is_fitted(self, "reg_")
        if (controls is None) != (self.controls_ is None):
            lacking = (
                "without controls" if self.controls_ is None else "with controls: pass those of the new sequence too"
            )
            raise ValueError(f"the filter was fitted {lacking}")
        seen, one = self._seen_with(controls, observations)
        return [
            Observed(f, present, None if U is None else self._read_controls(U, len(present)), novelty)
            for (f, present, novelty, _), U in seen
        ], one

    def _read_control(self, control: ArrayLike | None) -> Array | None:
        if control is None and self.controls_ is not None:
            raise ValueError("the filter was fitted with controls: pass the one that led to this observation")
        if control is None or self.controls_ is None:
            return None
        row = _check.table(_check.row_by_name(control, getattr(self, "control_names_", None), "control"), "control")
        return self._read_controls(np.reshape(row, (1, *self.controls_.shape[1:])), 1)

    def _read_controls(self, controls: Any, steps: int) -> Array:
        assert self.control_kernel_ is not None
        assert self.controls_ is not None
        controls = _check.by_name(controls, getattr(self, "control_names_", None), "controls")
        rows = self.control_kernel_._check(controls, "controls")
        if len(rows) != steps or rows.shape[1:] != self.controls_.shape[1:]:
            raise ValueError(f"controls has shape {rows.shape} where {(steps, *self.controls_.shape[1:])} was wanted")
        return rows

    def _read_initial(self, initial: Any) -> Weighted | None:
        return None if initial is None else self._weighted(initial, _INITIAL_DRAWS, np.random.default_rng(self._seed))

    def _mean_of(self, start: Any) -> Array:
        """Coordinates (1, r) of the belief from which to predict."""
        recursion = self._recursion
        if start is None:
            if self._now is not None:
                return self._now
            return (self._prior if self._prior is not None else recursion.initial(None, 1)).mean
        if isinstance(start, Track):
            start = start.embedding(-1)
        given = self._read_initial(start)
        assert given is not None
        return mean_coordinates(recursion.states.features, given)[None]

    def _track(self, run: Run, sequence: Observed, times: ArrayLike | None, weights: Array | None = None) -> Track:
        known = {
            "observed": sequence.observed,
            "total": np.where(sequence.observed, run.totals, 1.0),
            "novelty": sequence.novelty,
        }
        moments = run.moments if weights is None else None
        if moments is not None:
            return DeferredTrack(
                self.points_,
                lambda: self._formed(run),
                self.latent_kernel_,
                mean=moments,
                known=known,
                times=times,
                names=self.state_names_,
            )
        weights = self._formed(run) if weights is None else weights
        diagnostics = TrackDiagnostics.of(weights, **known)
        return Track(self.points_, weights, self.latent_kernel_, diagnostics, times=times, names=self.state_names_)

    def _formed(self, run: Run) -> Array:
        """Weights (T, p) of a run, each row summing to one."""
        _check.fits_memory(len(run) * len(self.points_), "the weights of this track", "filter it in parts, or by step")
        return self._summing_to_one(self._recursion.formed(run))

    def _summing_to_one(self, weights: Array) -> Array:
        """Weights as the papers print them need not sum to one; a distribution must."""
        if self.normalise is not None:
            return weights
        total = weights.sum(1, keepdims=True)
        empty = ~(total > 1e-12)
        return np.where(empty, 1.0 / weights.shape[1], weights / np.where(empty, 1.0, total))

    def _belief(self, corrected: Corrected, observed: bool, novelty: float) -> Belief:
        recursion, moments = self._recursion, corrected.moments
        return Belief(
            self.points_,
            lambda: self._summing_to_one(recursion.weights(corrected))[0],
            self.latent_kernel_,
            mean=None if moments is None or not moments.shape[1] else moments[0],
            observed=observed,
            total=float(corrected.total[0]) if observed else 1.0,
            novelty=novelty,
        )

"""From a simulator, a prior and an observation to a posterior: the one function that a scientist calls."""

from __future__ import annotations

import difflib
import functools
import inspect
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike, RandomState
from .._warning import warn_user
from ..embeddings import PosteriorWarning
from ..simulation import Failure, Runs
from ..simulation._runs import SHARE_TO_WARN
from ..simulation._simulate import store_path
from . import _abc, _dme, _kelfi, _kernel_methods, _likelihood
from ._campaign import Campaign, usual_rounds
from ._doubts import doubts
from ._epsilon import SpatioTemporalEpsilon
from ._law import within_reach
from ._observed import read_observation
from ._posterior import ParameterPosterior
from ._prior import DESIGNS, Prior, read_prior
from ._problem import Inference, Problem, numbered

# Methods that learn from any simulations, and methods that choose where to simulate as they go.
LEARNING: dict[str, Callable[..., Inference]] = {
    "likelihood": _likelihood.likelihood,
    "kelfi": _kelfi.kelfi,
    "dme": _dme.dme,
    "kbr": _kernel_methods.kernel_bayes,
    "k-abc": _kernel_methods.kernel_abc,
    "k2-abc": _kernel_methods.double_kernel_abc,
    "rejection": _kernel_methods.rejection,
}
SEEKING: dict[str, Callable[..., Inference]] = {
    "mcmc-abc": _abc.markov_chain,
    "smc-abc": _abc.sequential_monte_carlo,
    "synthetic": _abc.synthetic_likelihood,
    "adaptive-synthetic": _abc.adaptive_synthetic_likelihood,
    "gps-abc": _abc.surrogate,
}
METHODS = (*LEARNING, *SEEKING)
# What arguments are called on the command line and in other libraries.
_ELSEWHERE = {
    **dict.fromkeys(("seed", "rng", "random_seed"), "random_state"),
    **dict.fromkeys(("workers", "n_jobs", "processes", "num_workers"), "executor"),
    **dict.fromkeys(("n", "n_simulations", "num_simulations", "runs", "budget"), "simulations"),
    **dict.fromkeys(("x", "y", "data", "observation"), "observed"),
    **dict.fromkeys(("theta", "params"), "parameters"),
}


def infer(
    simulator: Callable[..., Any] | None = None,
    prior: Any = None,
    observed: Any = None,
    simulations: int | None = None,
    method: str = "likelihood",
    *,
    parameters: ArrayLike | None = None,
    outputs: ArrayLike | None = None,
    rounds: int | str = "auto",
    more: int = 0,
    design: str = "halton",
    proposal: Any = None,
    statistics: Any = None,
    executor: Any = None,
    store: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    vectorised: bool = False,
    pass_dict: bool | None = None,
    max_seconds: float | None = None,
    retry_failed: bool = False,
    progress: bool | None = None,
    random_state: RandomState = None,
    **settings: Any,
) -> ParameterPosterior:
    """Infer the parameters of a simulator from an observation, without a likelihood.

    Args:
        simulator: called with the parameters by name, as a dict or as an array (see `kb.simulate`); it returns a number, an
            array of any fixed shape, or a dict of numbers. If it takes `rng`, it is given a generator of each run's own.
        prior: a `kb.Prior`, or a dict of distributions or bounds by name.
        observed: what was observed, in the shape of what a simulation returns: a dict of numbers for one that returns dicts.
        simulations: runs in all; 500 unless given. Those in the store count.
        method: "likelihood" (learned by `kb.ConditionalDensity`), "kelfi" (kernel means likelihood; Hsu 2019, chapter 4),
            "dme" (deconditional; 5.9.3), "kbr" (kernel Bayes' rule), "k-abc", "k2-abc", "rejection"; and those that choose where to simulate, "mcmc-abc", "smc-abc",
            "synthetic", "adaptive-synthetic", "gps-abc".
        parameters, outputs: simulations made elsewhere, (m, d) and (m, ...), in place of a simulator. Data frames and dicts
            are read by the names of their columns.
        rounds: split the runs over so many rounds, each but the first drawn about the posterior so far: more accurate where
            the posterior is much narrower than the prior, but good for this one observation only. "auto" takes about four
            for method "likelihood", one for less than 80 runs and for other methods, and stops when a round changes nothing.
        more: so many runs more than there are in the store.
        design: how the parameters of the first round follow the prior: "halton", "sobol" or "random".
        proposal: another `kb.Prior` over the same parameters to simulate from; the posterior is still that of `prior`.
        statistics: names of the outputs.
        executor, store, timeout, vectorised, pass_dict, max_seconds, retry_failed: as in `kb.simulate`.
        progress: show a bar; None: on a terminal when it takes more than a moment.
        random_state: seed of everything.
        settings: of the method, such as `epsilon`, `lengthscale`, `reg`, `learn`, `adjust`, `epsilon_kernel` of "kelfi".

    Warns with `kb.PosteriorWarning` when the result should not be taken at face value; `posterior.problems` keeps it.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> def simulator(growth, noise, rng):
        ...     t = np.linspace(0, 1, 20)
        ...     x = np.exp(growth * t) + noise * rng.normal(size=20)
        ...     return {"end": x[-5:].mean(), "roughness": np.diff(x).std()}
        >>> prior = kb.Prior(growth=(0, 2), noise=stats.lognorm(0.5, scale=0.1))
        >>> posterior = kb.infer(simulator, prior, observed={"end": 2.4, "roughness": 0.15}, simulations=300, random_state=0)
        >>> summary = posterior.summary()
        >>> 0.6 < summary["growth"]["mean"] < 1.3, summary["noise"]["std"] < summary["noise"]["prior std"]
        (True, True)
    """
    method = _check.option(method, "method", METHODS)
    chosen = LEARNING[method] if method in LEARNING else SEEKING[method]
    _check_settings(chosen, method, settings)
    if prior is None or observed is None:
        raise ValueError(f"infer needs {'a prior' if prior is None else 'observed, the observation'}")
    prior = read_prior(prior)
    rng = _check.generator(random_state)
    options = {
        "executor": executor,
        "store": store_path(store),
        "timeout": timeout,
        "vectorised": vectorised,
        "pass_dict": pass_dict,
        "max_seconds": max_seconds,
        "retry_failed": retry_failed,
        "progress": progress,
    }
    question = _Question(prior, observed, statistics, method, functools.partial(chosen, **settings), progress)
    if parameters is not None or outputs is not None:
        if simulator is not None:
            raise ValueError("infer takes a simulator, or parameters and outputs of runs made elsewhere, not both")
        _refuse_runs(method, simulations, rounds, more, proposal, options)
        runs = _given_runs(prior, parameters, outputs)
        problem = question.pose(runs, rng)
        return _result(_Answer(question.infer(problem), problem, runs, rng), method, simulator, options)
    if simulator is None:
        raise ValueError("infer needs a simulator, or parameters and outputs of runs made elsewhere")
    more = _check.count(more, "more", at_least=0)
    if more and simulations is not None:
        raise ValueError("pass simulations (runs in all) or more (runs in addition), not both")
    if method in SEEKING and (rounds not in (1, "auto") or proposal is not None):
        raise ValueError(f"method {method!r} chooses where to simulate: rounds and proposal are for the others")
    start = _Start(prior, proposal, design)
    campaign = Campaign(simulator, prior, _seed(random_state), options)
    simulations = 500 if simulations is None else simulations
    total = campaign.known() + more if more else _check.count(simulations, "simulations")
    budget = _budget(rounds, total, more > 0, method)
    return _result(_simulated(question, campaign, start, budget), method, simulator, options)


class _Budget(NamedTuple):
    """Runs in all, over how many rounds, whether to add to a store, and whether to stop when nothing changes."""

    total: int
    rounds: int
    adding: bool
    stop: bool


def _budget(rounds: int | str, total: int, adding: bool, method: str) -> _Budget:
    if rounds != "auto":
        return _Budget(total, _check.count(rounds, "rounds"), adding, False)
    if method != "likelihood":
        return _Budget(total, 1, adding, False)
    return _Budget(total, 2 if adding else usual_rounds(total), adding, True)


class _Question(NamedTuple):
    """What is to be inferred from any runs, and how."""

    prior: Prior
    observed: Any
    statistics: Any
    method: str
    infer: functools.partial[Inference]
    progress: bool | None

    def pose(self, runs: Runs, rng: np.random.Generator) -> Problem:
        """The inference that runs allow; what is wrong with the observation must not cost the runs."""
        elsewhere = isinstance(self.infer.keywords.get("epsilon_kernel"), SpatioTemporalEpsilon)
        try:
            names = _names(runs, self.statistics)
            if elsewhere:
                y = _check.numbers(self.observed, "observed")
            else:
                free = self.method == "likelihood"
                y = read_observation(self.observed, runs.outputs.shape[1:], names, several=free, partly=free)
            outputs = _check.numbers(runs.outputs, "outputs")
            return Problem(self.prior, y, runs.parameters, outputs, names, rng, progress=self.progress)
        except ValueError as error:
            error.runs = runs  # type: ignore[attr-defined]
            error.add_note("The finished runs are in the attribute `runs` of this error.")
            raise


class _Answer(NamedTuple):
    """What was inferred, from what, and random numbers to go on with."""

    found: Inference
    problem: Problem
    runs: Runs
    rng: np.random.Generator


class _Start:
    """Where the parameters of the first round come from: the prior, or another distribution over the same parameters."""

    def __init__(self, prior: Prior, proposal: Any, design: str):
        self.prior, self.proposal = prior, None if proposal is None else read_prior(proposal)
        self.source = prior if self.proposal is None else self.proposal
        if self.source.names != prior.names:
            raise ValueError(f"proposal has parameters {self.source.names} where the prior has {prior.names}")
        self.design = _check.option(design, "design", DESIGNS)

    def rows(self, begin: int, end: int, seed: int) -> Array:
        """Some rows of the design."""
        drawn = self.source.design(end - begin, self.design, start=begin, random_state=seed)
        if self.proposal is not None and len(drawn) and not self.prior.contains(drawn).all():
            row = drawn[int((~self.prior.contains(drawn)).argmax())]
            raise ValueError(f"proposal draws parameters outside the support of the prior, such as {row}")
        return drawn


def _simulated(question: _Question, campaign: Campaign, start: _Start, budget: _Budget) -> _Answer:
    """Runs of a simulator and what they tell: where a method asks for them, or round by round."""
    rng = np.random.default_rng(campaign.seed)

    def pose(runs: Runs) -> Problem:
        return question.pose(runs, rng)

    if question.method in SEEKING:
        return _Answer(*campaign.seek(pose, question.infer, budget.total), rng)

    def learn(runs: Runs, starts: Array, power: float) -> tuple[Inference, Problem]:
        problem = pose(runs)
        problem.power = power
        problem.rounds = np.searchsorted(starts, runs.index, side="right")
        problem.proposal = start.proposal
        return question.infer(problem), problem

    def rows(begin: int, end: int) -> Array:
        return start.rows(begin, end, campaign.seed)

    found, problem, runs, followed = campaign.in_rounds(rows, learn, *budget)
    found.details["first_round"] = followed if start.proposal is None else 0
    if start.proposal is not None:
        found.problems += _narrow(start.proposal, question.prior, found)
    return _Answer(found, problem, runs, rng)


# ------------------------------------------------------------------------------------------------ reading


def _seed(random_state: RandomState) -> int | None:
    """A whole number, or None to draw one."""
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(_check.generator(random_state).integers(2**31))


def _check_settings(method: Callable[..., Inference], name: str, settings: dict[str, Any]) -> None:
    """Refuse what is no argument of the method: this is why methods with settings in common name them each."""
    known = [p for p in inspect.signature(method).parameters if p != "problem"]
    for setting in settings:
        if setting not in known:
            own = _near(setting)
            meant = f", nor does infer take it: did you mean {own}?" if own else ";"
            raise ValueError(f"method {name!r} has no setting {setting!r}{meant} it has {', '.join(known)}")


def _near(word: str) -> str | None:
    """The argument of `infer` that a word is most like, or that others call so."""
    arguments = [p for p in inspect.signature(infer).parameters if p != "settings"]
    return _ELSEWHERE.get(word) or next(iter(difflib.get_close_matches(word, arguments, n=1, cutoff=0.7)), None)


def _refuse_runs(method: str, simulations: Any, rounds: Any, more: int, proposal: Any, options: dict[str, Any]) -> None:
    if method in SEEKING:
        raise ValueError(f"method {method!r} chooses where to simulate and needs the simulator itself")
    given = [name for name in ("executor", "store", "timeout", "max_seconds") if options[name] is not None]
    given += (
        ["simulations"] * (simulations is not None) + ["rounds"] * (rounds not in (1, "auto")) + ["more"] * (more != 0)
    )
    given += ["proposal"] * (proposal is not None) + [n for n in ("vectorised", "retry_failed") if options[n]]
    if given:
        raise ValueError(f"{', '.join(given)} are for a simulator; with parameters and outputs nothing is run")


def _given_runs(prior: Prior, parameters: Any, outputs: Any) -> Runs:
    """Runs made elsewhere; rows with NaN are failed runs."""
    if parameters is None or outputs is None:
        raise ValueError("parameters and outputs belong together: the rows of one are those of the other")
    theta = prior._read(parameters, "parameters")
    if isinstance(outputs, dict):
        if not outputs:
            raise ValueError("outputs is an empty dict")
        names, columns = tuple(outputs), [_check._as_numbers(v, f"outputs[{n!r}]") for n, v in outputs.items()]
        for name, column in zip(names, columns, strict=True):
            _check.same_length(theta, np.atleast_1d(column), "parameters", f"outputs[{name!r}]")
        table = np.column_stack(columns)
    else:
        names, table = _check.own_names(outputs), np.atleast_1d(_check._as_numbers(outputs, "outputs"))
    _check.distinct_names(names or (), "outputs")
    _check.same_length(theta, table, "parameters", "outputs")
    good = np.asarray(np.isfinite(table.reshape(len(table), -1)).all(1))
    if not good.any():
        raise ValueError("outputs has no row without NaN or infinity")
    inside = prior.contains(theta)
    if not inside.all():
        row = int((~inside).argmax())
        raise ValueError(
            f"parameters has {(~inside).sum()} rows outside the support of the prior, such as row {row}: {theta[row]}"
        )
    failed = tuple(_failure(int(i), theta[i]) for i in np.flatnonzero(~good))
    if len(failed) > 0.05 * len(good):
        share = len(failed) / len(good)
        warn_user(f"{share:.0%} of the rows of outputs hold NaN and are left out", PosteriorWarning)
    index = np.flatnonzero(good)
    return Runs(theta[good], table[good], index, np.full(len(index), np.nan), prior.names, names, failed)


def _failure(index: int, row: Array) -> Any:
    return Failure(int(index), row, "the output is not finite", "not finite")


def _names(runs: Runs, given: Any) -> tuple[str, ...]:
    width = int(np.prod(runs.outputs.shape[1:]))
    if given is not None:
        if runs.statistics is not None and tuple(given) != runs.statistics:
            raise ValueError(f"statistics is {list(given)}, but the outputs have names: {list(runs.statistics)}")
        if len(given) != width:
            raise ValueError(f"statistics has {len(given)} names where a simulation returns {width} numbers")
        if len(set(given)) < width:
            raise ValueError(f"statistics has the same name twice among {list(given)}")
        return tuple(map(str, given))
    return runs.statistics or numbered(width)


# ------------------------------------------------------------------------------------------------ working


def _narrow(proposal: Prior, prior: Prior, found: Inference) -> list[str]:
    """A proposal that leaves out much of the prior, and a posterior that reaches its edge."""
    draws = prior.to_gaussian(proposal.design(500))
    before = prior.to_gaussian(prior.design(500))
    missed = 1.0 - within_reach(before, draws).mean()
    reached = found.law.sample(500, np.random.default_rng(0))
    edge = 0.1 * np.ptp(draws, axis=0)
    near = ((reached < draws.min(0) + edge) | (reached > draws.max(0) - edge)).any(1).mean()
    if missed < 0.05 or near < 0.1:
        return []
    return [
        f"the proposal leaves out {missed:.0%} of the prior, and the posterior reaches the edge of what it covers: beyond "
        "it nothing is known and nothing is said"
    ]


def _result(answer: _Answer, method: str, simulator: Any, options: dict[str, Any]) -> ParameterPosterior:
    found, problem, runs, rng = answer
    problems = (*doubts(problem, found, drawn=method in SEEKING or method == "likelihood"), *found.problems)
    if problems:
        warn_user("\n".join(problems), PosteriorWarning)
    if runs.failure_rate > SHARE_TO_WARN:  # the simulation has warned of it
        problems += (f"{runs.failure_rate:.0%} of the runs failed and are left out",)
    posterior = ParameterPosterior(
        found.law,
        problem.prior,
        problem.observed,
        problem.theta,
        problem.outputs,
        method=method,
        settings=found.settings,
        statistics=problem.statistics,
        ess=found.ess,
        problems=problems,
        details=found.details,
        scales=found.scales,
        failures=len(runs.failures),
        seed=int(rng.integers(2**31)),
        ratio=problem.ratio() if method in LEARNING else None,
    )
    posterior._simulator = (simulator, {k: options[k] for k in ("executor", "timeout", "vectorised", "pass_dict")})
    posterior._model = found.model
    return posterior

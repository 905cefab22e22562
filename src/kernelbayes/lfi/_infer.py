"""From a simulator, a prior and an observation to a posterior: the one function that a scientist calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from .. import _check
from .._typing import ArrayLike, RandomState
from .._warning import warn_user
from ..embeddings import PosteriorWarning
from ..simulation import Run, Runs
from ..simulation._runs import SHARE_TO_WARN
from ._campaign import Campaign
from ._doubts import doubts
from ._law import within_reach
from ._likelihood import LearnedLikelihood
from ._methods import read_method, where_it_belongs
from ._posterior import ParameterPosterior
from ._prior import Prior, read_prior
from ._problem import FEWEST, Inference, Method, Problem
from ._question import Question, read_runs
from ._rounds import power_after, same_posterior, usual_rounds
from ._search import Search, judge

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _refusing_others(function: _Function) -> _Function:
    """Say of an argument that a function does not have where it belongs."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for word in given:
            if word not in signature.parameters:
                there = {name: value for name, value in given.items() if name in signature.parameters}
                method = signature.bind_partial(*args, **there).arguments.get("method", LearnedLikelihood.name)
                raise TypeError(where_it_belongs(word, signature.parameters, method))
        return function(*args, **given)

    return cast(_Function, call)


@_refusing_others
def infer(
    simulator: Callable[..., Any] | None = None,
    prior: Any = None,
    observed: Any = None,
    simulations: int | None = None,
    method: str | Method = "likelihood",
    *,
    parameters: ArrayLike | None = None,
    outputs: ArrayLike | None = None,
    rounds: int | str = "auto",
    more: int = 0,
    design: str = "halton",
    proposal: Any = None,
    statistics: Any = None,
    run: Run | None = None,
    progress: bool | None = None,
    random_state: RandomState = None,
) -> ParameterPosterior:
    """Infer the parameters of a simulator from an observation, without a likelihood.

    Args:
        simulator: called with the parameters by name, as a dict or as an array (see `kb.simulate`); it returns a number, an
            array of any fixed shape, or a dict of numbers. If it takes `rng`, it is given a generator of each run's own.
        prior: a `kb.Prior`, or a dict of distributions or bounds by name.
        observed: what was observed, in the shape of what a simulation returns: a dict of numbers for one that returns dicts.
        simulations: runs in all; 500 unless given. Those in the store count.
        method: "likelihood" (learned by `kb.ConditionalDensity`), "kelfi" (kernel means likelihood; Hsu 2019, chapter 4),
            "dme" (deconditional; 5.9.3), "kbr" (kernel Bayes' rule), "k-abc", "k2-abc", "rejection"; and those that choose
            where to simulate, "mcmc-abc", "smc-abc", "synthetic", "adaptive-synthetic", "gps-abc". With settings of its own,
            an object such as `kb.lfi.KELFI(epsilon=0.1)`; `kb.lfi.METHODS` has them by their words.
        parameters, outputs: simulations made elsewhere, (m, d) and (m, ...), in place of a simulator. Data frames and dicts
            are read by the names of their columns.
        rounds: split the runs over so many rounds, each but the first drawn about the posterior so far: more accurate where
            the posterior is much narrower than the prior, but good for this one observation only. "auto" takes about four
            for method "likelihood", one for less than 80 runs and for other methods, and stops when a round changes nothing.
        more: so many runs more than there are in the store.
        design: how the parameters of the first round follow the prior: "halton", "sobol" or "random".
        proposal: another `kb.Prior` over the same parameters to simulate from; the posterior is still that of `prior`.
        statistics: names of the outputs.
        run: how the simulator is run: in which processes, with which store, for how long; a `kb.Run`.
        progress: show a bar; None: on a terminal when it takes more than a moment.
        random_state: seed of everything.

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
    method, how = read_method(method), _read_run(run)
    if prior is None or observed is None:
        raise ValueError(f"infer needs {'a prior' if prior is None else 'observed, the observation'}")
    prior = read_prior(prior)
    if parameters is not None or outputs is not None:
        if simulator is not None:
            raise ValueError("infer takes a simulator, or parameters and outputs of runs made elsewhere, not both")
        _refuse_what_runs(method, simulations=simulations, rounds=rounds, more=more, proposal=proposal, run=run)
        question = Question(prior, observed, statistics, method, _check.generator(random_state), progress=progress)
        return _posterior(question, _from_runs(question, read_runs(prior, parameters, outputs)))
    if simulator is None:
        raise ValueError("infer needs a simulator, or parameters and outputs of runs made elsewhere")
    more = _check.count(more, "more", at_least=0)
    if more and simulations is not None:
        raise ValueError("pass simulations (runs in all) or more (runs in addition), not both")
    if method.seeks and (rounds not in (1, "auto") or proposal is not None):
        raise ValueError(f"method {method.name!r} chooses where to simulate: rounds and proposal are for the others")
    campaign = Campaign(simulator, prior, _seed(random_state), how, proposal=proposal, design=design, progress=progress)
    total = (
        campaign.known() + more if more else _check.count(500 if simulations is None else simulations, "simulations")
    )
    rng = np.random.default_rng(campaign.seed)
    question = Question(prior, observed, statistics, method, rng, campaign.proposal, progress)
    if method.seeks:
        answer = _by_search(question, campaign, total)
    else:
        answer = _in_rounds(question, campaign, total, rounds, adding=more > 0)
    return _posterior(question, answer, simulator, how)


# ---------------------------------------------------------------------------------------- from runs to an inference


class Answer(NamedTuple):
    """What was found, from what."""

    found: Inference
    problem: Problem
    runs: Runs


def _from_runs(question: Question, runs: Runs) -> Answer:
    """Learn from runs that are there."""
    problem = question.pose(runs)
    return Answer(question.method.infer(problem), problem, runs)


def _in_rounds(question: Question, campaign: Campaign, total: int, rounds: int | str, adding: bool) -> Answer:
    """Simulate and learn, then simulate about what was learned, and so on."""
    count, stop = _count_rounds(question.method, total, rounds, adding)
    rows, followed, sizes = campaign.start(total, count, adding)
    starts = [followed]  # of several rounds that are in the store already, the later ones count as one
    runs = campaign.simulate(rows)
    campaign.refuse_few(runs, FEWEST, total)
    followed = int((runs.index < followed).sum())

    problem = question.pose(runs, starts, power_after(0, count))
    found = question.method.infer(problem)
    for number, size in enumerate(sizes, start=1):
        if campaign.out_of_time or not size:
            break
        before = found if problem.power == 1.0 else None
        starts = sorted({*starts, len(rows)})
        rows = np.concatenate([rows, campaign.about(found, len(rows), int(size), number)])
        runs = campaign.go_on(runs, rows)
        problem = question.pose(runs, starts, power_after(number, count))
        found = question.method.infer(problem)
        if stop and before is not None and same_posterior(found, before):
            break
    if problem.power < 1.0:  # the time was over before the last round
        problem = question.pose(runs, starts)
        found = question.method.infer(problem)

    found.details["first_round"] = followed if campaign.proposal is None else 0
    if campaign.proposal is not None:
        found.problems += _narrow(campaign.proposal, question.prior, found)
    return Answer(found, problem, runs)


def _by_search(question: Question, campaign: Campaign, total: int) -> Answer:
    """A first look at the simulator; then the method simulates wherever it wants to."""
    with campaign.opened() as simulate:
        search = Search(simulate, question.prior, total)
        first = search.first(campaign.seed)
        campaign.refuse_few(first, len(search.rows) - len(first.failures), total)
        problem = question.pose(first)
        problem.run = search
        try:
            found = question.method.infer(problem)
        except ValueError as error:
            if search.short and campaign.out_of_time:
                raise campaign.too_short(search.runs(), total, f"too few for this method: {error}") from None
            raise
    runs = search.runs()
    judge(runs)
    problem.theta, problem.outputs = runs.parameters, runs.outputs
    return Answer(found, problem, runs)


def _count_rounds(method: Method, total: int, rounds: int | str, adding: bool) -> tuple[int, bool]:
    """How many rounds, and whether to stop when one changes nothing."""
    if rounds != "auto":
        return _check.count(rounds, "rounds"), False
    if not isinstance(method, LearnedLikelihood):
        return 1, False
    return 2 if adding else usual_rounds(total), True


def _posterior(
    question: Question, answer: Answer, simulator: Callable[..., Any] | None = None, run: Run | None = None
) -> ParameterPosterior:
    """What the user holds, and what there is to be said of it."""
    found, problem, runs = answer
    method = question.method
    drawn = method.seeks or isinstance(method, LearnedLikelihood)
    problems = (*doubts(problem, found, drawn=drawn), *found.problems)
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
        method=method.name,
        settings=found.settings,
        statistics=problem.statistics,
        ess=found.ess,
        problems=problems,
        details=found.details,
        scales=found.scales,
        failures=len(runs.failures),
        seed=int(question.rng.integers(2**31)),
        ratio=None if method.seeks else problem.ratio(),
    )
    how = (run or Run()).options()
    posterior._simulator = (simulator, {k: v for k, v in how.items() if k not in ("store", "retry_failed")})
    posterior._model = found.model
    return posterior


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


# ------------------------------------------------------------------------------------------------------- reading


def _read_run(run: Run | None) -> Run:
    if run is not None and not isinstance(run, Run):
        raise ValueError(f"run must be a kb.Run, got {_check.given_instead(run, Run)}")
    return run or Run()


def _seed(random_state: RandomState) -> int | None:
    """A whole number, or None to draw one."""
    if random_state is None:
        return None
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(_check.generator(random_state).integers(2**31))


def _refuse_what_runs(method: Method, **given: Any) -> None:
    """Arguments that are for a simulator, where there is none."""
    if method.seeks:
        raise ValueError(f"method {method.name!r} chooses where to simulate and needs the simulator itself")
    unless = {"rounds": (1, "auto"), "more": (0,)}
    named = [name for name, value in given.items() if value is not None and value not in unless.get(name, ())]
    if named:
        raise ValueError(f"{', '.join(named)} are for a simulator; with parameters and outputs nothing is run")

"""The integral of one function, from as few evaluations as its accuracy needs: Bayesian quadrature from end to end."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike, RandomState
from .._warning import warn_user
from ..features import Recipe
from ..kernels import Gaussian, Kernel, check_kernel
from ..kernels._bandwidth import lengthscale_of
from ..learning._integrand import NUGGET, Suited, learn_kernel, learn_lengthscales
from ..simulation import Runs, SimulationError, SimulationWarning
from ..simulation._runs import joined
from ..simulation._signature import takes_keywords
from ..simulation._simulate import running, settled_seed, store_path
from ._doubts import Doubts, believed_std, of_size_one
from ._integral import Integral
from ._quadrature import fits_memory, quadrature
from ._reading import read_source
from ._rule import QuadratureRule, QuadratureWarning, scalar
from ._source import PointSource, QuantileSource, Source

if TYPE_CHECKING:
    from ..simulation._running import Running

# Evaluations grow by this factor as long as the error is too large, up to so many times the first ones.
_GROWTH, _MOST = 1.5, 10
_FEWEST, _USUAL = 3, 100
# Times in a row that the standard deviation must be small enough: at one of them it may be so by chance.
_IN_A_ROW = 2


def integrate(
    f: Callable[..., Any],
    distribution: Any,
    n: int | None = None,
    *,
    tol: float | None = None,
    max_n: int | None = None,
    kernel: Kernel | None = None,
    learn: bool = True,
    nodes: str | ArrayLike | None = None,
    weights: str = "normalised",
    features: Recipe | None = None,
    vectorised: bool = True,
    names: Sequence[str] | None = None,
    executor: Any = None,
    store: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    max_seconds: float | None = None,
    retry_failed: bool = False,
    progress: bool | None = None,
    random_state: RandomState = None,
) -> Integral:
    r"""The integral :math:`\int f\, d\rho` of a function under a distribution, with a standard deviation of its error.

    The function is evaluated at n nodes, and a Gaussian process through the values is integrated (Bayesian quadrature). Its
    kernel is learned from the values: of a rough, a smooth and a very smooth family the one with the largest marginal
    likelihood, with a lengthscale for each column. The standard deviation is that of the process, times how far integrals
    from halves of the nodes, and values that are left out, were off in terms of their own, where that is more than one, but
    no more than the range of the values. Where all of them have one sign and a process for their logarithm predicts them
    better, it is at least what that one adds to the integral between the nodes. Where all are the same, it is for other
    values of their size, or of size one for zeros, on a share of the mass that so many nodes may well have missed. On
    smooth, growing and kinked integrands in one to three dimensions the error was within two of it in about nine cases of
    ten (experiment `quadrature`). With `tol`, nodes are added until it is below, and once more, since it may be small by
    chance; among few nodes it is the least certain.

    What happens between the nodes, and beyond them in the tails, is not seen: a spike that all of them miss is in no
    standard deviation. Of a discrete distribution or a sample of which all points are evaluated, the integral is exact.

    Args:
        f: the function. It takes all points at once, (m, d), and returns values (m,), or (m, p) for p integrals. With
            `vectorised=False` it is called with one point (d,) at a time and returns a number or p of them. One that raises
            because it takes single numbers, such as `math.exp`, is called with each point, or with its number, by itself.
        distribution: as for `kb.quadrature`: frozen distributions of `scipy.stats`, one, a list or a dict, in which bounds
            `(low, high)` are uniforms, a `kb.Mixture`, or a sample of points. Equal points of a sample, and values of a
            discrete distribution, are evaluated once at most.
        n: number of evaluations, or of the first ones with `tol`; 100 by default.
        tol: standard deviation at which to stop, when it is met twice in a row.
        max_n: evaluations at most, with `tol`; 10 n by default.
        kernel: to use in place of those three families; its lengthscales are learned if it has any.
        learn: whether to learn; if not, `kernel` is used as it is, with a scale for the size of the values.
        nodes: how they are chosen; by default "wide", and "herding" from a sample of points. See `kb.quadrature`. Or the
            nodes themselves (n, d).
        weights: "normalised", which are exact for constants, or "optimal"; see `kb.quadrature`. Others have no standard
            deviation.
        features: see `kb.quadrature`.
        vectorised: see f.
        names: of the columns; f is then called with keywords of these names, or a dict, as `kb.simulate` says. Those of a
            dict or a data frame are known: f is called with them if they are its arguments, and with an array otherwise.
        executor: where to evaluate a function of one point, as for `kb.simulate`: a number of processes, or an executor.
        store: path of a file in which every value is kept as it comes, as for `kb.simulate`: a second call goes on where the
            first was stopped, and repeats only what was under way.
        timeout: seconds for one evaluation of a function of one point; one that takes longer, or fails, is left out and
            told.
        max_seconds: after which no more evaluations are started.
        retry_failed: whether to evaluate again where it failed in an earlier call.
        progress: show a bar; None: on a terminal when it takes more than a moment.
        random_state: seed of the nodes.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> def payoff(x):  # of two assets
        ...     return np.maximum(np.exp(0.2 * x[:, 0]) + np.exp(0.3 * x[:, 1]) - 2.0, 0.0)
        >>> found = kb.integrate(payoff, [stats.norm(), stats.norm()], 64, random_state=0)
        >>> found.n, found.problems
        (64, ())
        >>> abs(found.mean() - 0.18252) < 3 * found.std() < 0.02
        True
    """
    if not callable(f):
        raise ValueError(f"f must be a function, got {type(f).__name__}; for values at nodes see kb.quadrature")
    source = read_source(distribution)
    plan = _Plan(source, kernel, learn, nodes, weights, features)
    first, last = plan.numbers(n, None if tol is None else _check.positive(tol, "tol"), max_n)
    limit = None if max_seconds is None else _check.positive(max_seconds, "max_seconds")
    for name, given in (("an executor", executor), ("a timeout", timeout)):
        if vectorised and given is not None:
            raise ValueError(
                f"{name} is for an f that is evaluated one point at a time: pass vectorised=False and an f of one point (d,)"
            )
    seed = _check.seed(random_state)
    store = store_path(store)
    if store is not None and not isinstance(random_state, (int, np.integer)):
        seed = settled_seed(store, seed)
    own = names is None and source.names is not None
    if not own and source.names is not None and tuple(names or ()) != source.names:
        raise ValueError(f"names are {names!r} where distribution has the names {', '.join(source.names)}")
    plan.names = source.names if own else names
    options = {"executor": executor, "store": store, "timeout": timeout, "vectorised": bool(vectorised)}
    options |= {"progress": progress, "retry_failed": retry_failed, "by_points": True}
    if own and not takes_keywords(f, source.names or ()):
        options["pass_dict"] = False
    try:
        with running(f, source.dimension, plan.names, seed, **options) as evaluations:
            found, runs, history, notes = plan.run(evaluations, first, last, limit, seed)
    except SimulationError as error:
        raise SimulationError(_in_other_words(str(error), bool(vectorised), plan), error.runs) from error.__cause__
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise ValueError(_about_f(str(error))) from error.__cause__
    if evaluations.batches:
        notes.append(f"{evaluations.batches[0]}; f was called again with each point by itself")
    for note in dict.fromkeys([*plan.notes, *notes]):
        warn_user(_about_f(note), SimulationWarning)
    problems = [_about_f(note) for note in evaluations.notes] + plan.problems(found, runs, history)
    for problem in problems:
        warn_user(problem, QuadratureWarning)
    return Integral(found, _values(runs), history, tuple(problems), runs.failures, plan.names, runs.statistics)


def _in_other_words(message: str, vectorised: bool, plan: _Plan) -> str:
    """What is said of a simulator, said of f, with a hint at what is often meant."""
    if vectorised and "the keywords" in message:
        hint = "\nf was given arrays of m numbers; pass vectorised=False if it takes one number for each argument."
    elif vectorised:
        hint = "\nf was given many points at once, (m, d); pass vectorised=False if it takes one (d,)."
    elif plan.names is None and plan.source.dimension == 1:
        hint = "\nf was given one point, an array x of shape (1,): its number is x[0]."
    else:
        hint = ""
    return _about_f(message) + hint


def _about_f(message: str) -> str:
    message = message.partition(". pass_dict=")[0].replace(" (pass_dict=False: an array)", "")
    message = re.sub(r"\b([Tt]he )?simulator\b", "f", message)
    return re.sub(r"(?<=\d )rows\b", "points", message).replace("one for each row", "one for each point")


def _values(runs: Runs) -> Array:
    values = runs.outputs.reshape(len(runs), -1)
    return values[:, 0] if values.shape[1] == 1 else values


def _believed(rule: QuadratureRule, values: Array, start: Array | None) -> tuple[Any, Any]:
    """The integral and its standard deviation, with caution."""
    values, exponent = of_size_one(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuadratureWarning)  # of all nodes and of each half: problems say it once
        mean, std = rule.integrate(values, return_std=True)
        std = believed_std(rule, values, mean, std, start)
    return scalar(np.ldexp(mean, exponent)), scalar(np.ldexp(std, exponent))


class _Plan:
    """What stays the same while nodes are added."""

    def __init__(self, source: Source, kernel: Any, learn: bool, nodes: Any, weights: str, features: Recipe | None):
        self.source, self.kernel, self.learn = source, kernel, learn
        if kernel is not None:
            check_kernel(kernel)
        elif not learn:
            raise ValueError("learn=False uses the kernel that is given, so kernel is needed")
        _check.option(weights, "weights", ("optimal", "normalised"))
        if nodes is None:
            nodes = "wide" if isinstance(source, QuantileSource) else "herding"
        elif not isinstance(nodes, str):
            nodes = _check.vectors(_check.by_name(nodes, source.names, "nodes"), "nodes", width=source.dimension)
        self.nodes, self.weights, self.features = nodes, weights, features
        draws = source.draw(1000, np.random.default_rng(0))
        self.start = np.asarray(lengthscale_of(draws, "distribution", per_column=True))
        self.suited: Suited | None = None
        self.goal: float | None = None
        self.names: Sequence[str] | None = None
        self.notes: list[str] = []
        self.ended = ""

    def numbers(self, n: int | None, goal: float | None, max_n: int | None) -> tuple[int, int]:
        """How many evaluations there are at first, and at most."""
        self.goal = goal
        if goal is None and max_n is not None:
            raise ValueError(
                "max_n is the limit of evaluations where tol is given; without tol, n says how many there are"
            )
        given = None if isinstance(self.nodes, str) else len(self.nodes)
        if given is not None and n is not None and n != given:
            raise ValueError(f"n is {n}, but {given} nodes are given; leave n out")
        first = _check.count(given or _USUAL if n is None else n, "n", at_least=_FEWEST)
        fits_memory(first)
        last = (
            first if goal is None else _check.count(_MOST * first if max_n is None else max_n, "max_n", at_least=first)
        )
        if isinstance(self.source, PointSource) and given is None:
            held = len(self.source.points)
            if first > held and n is not None:
                self.notes.append(
                    f"n={first} evaluations were asked for, but {self.source.held}; all of them are evaluated, and the "
                    "integral is their weighted sum"
                )
            first, last = min(first, held), min(last, held)
        return first, last

    def begin(self, n: int, seed: int) -> QuadratureRule:
        """The first nodes."""
        kernel = Gaussian(self.start) if self.kernel is None else self.kernel
        options = {"nodes": self.nodes, "weights": self.weights, "features": self.features, "random_state": seed}
        return quadrature(kernel, self.source, n, **options)

    def run(
        self, evaluations: Running, first: int, last: int, limit: float | None, seed: int
    ) -> tuple[QuadratureRule, Runs, list[tuple[int, Any, Any]], list[str]]:
        """Evaluate and learn, and go on until the goal is reached, or nodes or time have run out."""
        end = time.monotonic() + (np.inf if limit is None else limit)
        self.rule, parts, history, notes = self.begin(first, seed), [], [], []
        while True:
            rule = self.rule
            left = limit if limit is None or not parts else max(end - time.monotonic(), 1e-3)
            part, said = evaluations.add(rule.points[len(evaluations.rows) :], left)
            parts.append(part)
            notes += said
            runs = joined(parts, self.source.dimension)
            found, values = self.fitted(rule, runs), _values(runs)
            history.append((len(runs), *_believed(found, values, self.start if self.kernel is None else None)))
            if len(runs) + len(runs.failures) < len(rule) or len(rule) >= last or self.reached(found, history):
                break
            if time.monotonic() > end:
                self.ended = f"max_seconds={limit:g} are over"
                break
            more = min(max(int(_GROWTH * len(rule)), len(rule) + 1), last) - len(rule)
            try:
                self.rule = rule.with_kernel(found.kernel)._extended(more, None, None)
            except ValueError as reason:  # no more nodes can be chosen: what has been paid for is not thrown away
                self.ended = str(reason)
                break
        return found, runs, history, notes

    def reached(self, rule: QuadratureRule, history: list[tuple[int, Any, Any]]) -> bool:
        """Whether there is no more to do: the standard deviation was small enough in a row, or there is no error."""
        if self.goal is None or rule.worst_case_error == 0:
            return True
        latest = history[-_IN_A_ROW:]
        return len(latest) == _IN_A_ROW and all(np.max(std) <= self.goal for _, _, std in latest)

    def fitted(self, rule: QuadratureRule, runs: Runs) -> QuadratureRule:
        """The rule on the nodes where there are values, for the kernel that suits these."""
        rule = rule.keep(runs.index)
        if not self.learn:
            return rule
        values = _values(runs)
        if self.kernel is None:
            self.suited = learn_kernel(rule.points, values, self.start)
        else:
            self.suited = learn_lengthscales(self.kernel, rule.points, values)
        if self.suited is None:
            return rule
        kernel = self.suited.kernel
        share = NUGGET * float(kernel._diag(rule.points).mean()) / len(rule)
        return rule.with_kernel(kernel, reg=None if rule.worst_case_error == 0 else share)

    def problems(self, rule: QuadratureRule, runs: Runs, history: list[Any]) -> list[str]:
        """What the user should know."""
        said, doubts = [], Doubts(rule, _values(runs), self.names)
        n, _, std = history[-1]
        if self.goal is not None and np.max(std) > self.goal:
            why = f": {self.ended}" if self.ended else ""
            said.append(
                f"after {n} evaluations the standard deviation is {np.max(std):.2g}, above tol={self.goal:g}{why}"
            )
        said += doubts.about_values() + doubts.about_failures(runs)
        said += doubts.about_tails(self.source, runs.index)
        if self.suited is not None and self.suited.shortest and not doubts.exact:
            said.append("a lengthscale is as short as it may be: f varies much faster than the distribution, or jumps")
        return said

"""The one optimiser loop: L-BFGS-B over a compiled value-and-gradient, or one that is written out.

Parameters are a pytree with host arrays as leaves. A leaf is learned if the field that holds it declares a domain
(`positive`, `nonnegative`, `unit_interval`, `unbounded`) and it is not named in `fixed`; everything else is data. Positive
parameters move on the logarithmic scale, unbounded ones as they are. The objective is compiled once per shape, not once per
call: pass data as arguments, not in a closure.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
import scipy.optimize

from .. import _check
from .._backend import float64
from .._progress import progress_bar
from .._typing import Array, RandomState
from .._warning import warn_user

_REACH = 1e3  # by default a parameter may move this factor up or down from its start
_ON_BOUND = 1e-6
# Losses that differ by this share are equally good, so that a simpler choice is taken and rounding decides nothing.
EQUALLY_GOOD = 1e-4
NOTICED = 1e-2  # what a step back from the edge of a search must cost, as a share, for the edge to matter
ROUNDING = 1e-12  # of squared errors, relative to the squares of what is predicted
# What a factor e away from its preferred value costs a parameter, squared, as a share of the objective. Over a decade it
# outweighs rounding, which differs between processors, and is far below what the data can tell.
PULL = 1e-5
_KEEP = (0.9, 0.999)  # shares of its two running means that Adam keeps at a step
# The status with which SciPy's L-BFGS-B gives up a line search.
_LINE_SEARCH_FAILED = 2


class BoundWarning(UserWarning):
    """An optimum sits on the edge of where it was sought."""


def last_of_the_best(losses: Any, rounding: float = 0.0) -> int:
    """The last of the candidates whose loss is as good as the least: put the simplest last.

    `rounding` is a difference that means nothing, however small the losses are.

    Example:
        >>> from kernelbayes.learning import last_of_the_best
        >>> last_of_the_best([3.0, 1.0, 1.00001, 1.1])
        2
    """
    losses = np.asarray(losses)
    least = losses.min()
    equal = losses <= least + EQUALLY_GOOD * abs(least) + rounding
    return int(np.flatnonzero(equal)[-1]) if np.isfinite(least) else 0


@dataclasses.dataclass(frozen=True)
class Optimum:
    """What the optimiser found, and how it got there.

    Attributes:
        params: the parameters at the optimum, in the structure they were given in.
        value: the objective there.
        success, message: whether the best start converged, in the words of L-BFGS-B.
        evaluations: calls of the objective, over all starts.
        path: the start and each iteration of the best run: the value and every learned parameter by name.
        on_bound: the parameters that sit on a bound, in words.
    """

    params: Any
    value: float
    success: bool
    message: str
    evaluations: int
    path: tuple[dict[str, Any], ...]
    on_bound: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Leaf:
    name: str
    index: int
    value: Array
    low: float
    high: float
    real: bool = False  # moves as it is, and not on the logarithmic scale

    def encode(self, value: Any) -> Array:
        inside = np.clip(np.ravel(value), self.low, self.high)
        return inside if self.real else np.log(inside)

    def decode(self, vector: Array) -> Array:
        values = np.array(vector) if self.real else np.exp(vector)  # a copy: the optimiser goes on with the vector
        return values.reshape(self.value.shape)

    def slope(self, gradient: Any, vector: Array) -> Array:
        """By the encoded vector, from the gradient by the value."""
        gradient = np.ravel(np.asarray(gradient))
        return gradient if self.real else gradient * np.exp(vector)

    @property
    def edges(self) -> tuple[float, float]:
        """The bounds, encoded."""
        return float(self.encode(self.low)[0]), float(self.encode(self.high)[0])


def _named_leaves(params: Any) -> list[tuple[str, str | None, Any]]:
    """Name, domain and value of every leaf, in the order of the pytree."""
    out = []
    for path, value in jax.tree_util.tree_flatten_with_path(params)[0]:
        owner: Any = params
        domain, names = None, []
        for key in path:
            if isinstance(key, jax.tree_util.GetAttrKey):
                field = getattr(owner, "__dataclass_fields__", {}).get(key.name)
                domain = field.metadata.get("domain") if field else None
                owner = getattr(owner, key.name, None)
                names.append(key.name)
            else:
                part = getattr(key, "key", getattr(key, "idx", key))
                domain = None  # an entry of a list or a dict is data; a kernel there has parameters of its own
                owner = owner[part] if isinstance(owner, (dict, list, tuple)) else None
                names.append(str(part))
        out.append((".".join(names), domain, value))
    return out


def free_leaves(params: Any, bounds: Mapping[str, tuple[float, float]], fixed: Iterable[str]) -> list[_Leaf]:
    named = _named_leaves(params)
    known = {name for name, _, _ in named}
    for name in [*bounds, *fixed]:
        if name not in known:
            raise ValueError(f"there is no parameter {name!r}; there are {', '.join(sorted(known))}")
    leaves = []
    for index, (name, domain, value) in enumerate(named):
        real = domain == "real"
        if domain is None or name in set(fixed) or not (real or np.all(np.asarray(value) > 0)):
            continue
        value = np.asarray(value, dtype=np.float64)
        reach = (-np.inf, np.inf) if real else (value.min() / _REACH, value.max() * _REACH)
        low, high = bounds.get(name, reach)
        high = min(high, 1.0) if domain == "unit" else high
        if not low < high or not (real or low > 0):
            wanted = "rising" if real else "positive and rising"
            raise ValueError(f"the bounds of {name} must be {wanted}, got ({low:g}, {high:g})")
        leaves.append(_Leaf(name, index, value, low, high, real))
    return leaves


def at_step(params: Any, step: Mapping[str, Any]) -> Any:
    """The parameters as they were at a step of the path of an optimum; what else is recorded there is left aside."""
    flat, structure = jax.tree_util.tree_flatten(params)
    for index, (name, _, _) in enumerate(_named_leaves(params)):
        flat[index] = step.get(name, flat[index])
    return jax.tree_util.tree_unflatten(structure, flat)


@dataclasses.dataclass(frozen=True)
class WrittenOut:
    """An objective on the host that brings its slopes: where compiling them would take longer than the whole search.

    Attributes:
        value_and_slopes: of the parameters and the data: the value, and a slope for each leaf of the parameters.
    """

    value_and_slopes: Callable[..., tuple[float, list[Array]]]

    def __call__(self, params: Any, *data: Any) -> float:
        return self.value_and_slopes(params, *data)[0]


@functools.lru_cache(maxsize=64)
def _compiled(objective: Callable[..., Any]) -> Callable[..., Any]:
    if isinstance(objective, WrittenOut):
        return objective.value_and_slopes

    def value(params: Any, *data: Any) -> Any:
        return _one_number(objective(params, *data))

    return eqx.filter_jit(eqx.filter_value_and_grad(value))


def _one_number(found: Any) -> Any:
    """What an objective returned, if it is one real number; where JAX is tracing it, only its type can be looked at."""
    dtype = getattr(found, "dtype", None)
    real = isinstance(found, float) if dtype is None else jax.numpy.issubdtype(dtype, np.floating)
    if real and np.ndim(found) == 0:
        return found
    got = (
        _check.given_instead(found, type) if dtype is None else f"an array of shape {np.shape(found)} and dtype {dtype}"
    )
    raise TypeError(f"objective must return one real number, such as jnp.sum(...), but returned {got}")


class _Problem:
    """The objective as a function of one vector: all free parameters, those above zero as logarithms.

    Preferred values, by name, decide where the objective is flat: see `PULL`.
    """

    def __init__(
        self,
        objective: Callable[..., Any],
        params: Any,
        data: tuple[Any, ...],
        leaves: list[_Leaf],
        prefer: Mapping[str, float] | None = None,
    ):
        self.value_and_grad, self.data, self.leaves = _compiled(objective), data, leaves
        self.flat, self.structure = jax.tree_util.tree_flatten(params)
        self.sizes = np.cumsum([leaf.value.size for leaf in leaves])[:-1]
        self.start = np.concatenate([leaf.encode(leaf.value) for leaf in leaves])
        self.box = [leaf.edges for leaf in leaves for _ in range(leaf.value.size)]
        self.evaluations, self.worst = 0, -np.inf
        preferred = [
            leaf.encode(np.broadcast_to((prefer or {}).get(leaf.name, 1.0), leaf.value.shape)) for leaf in leaves
        ]
        counts = [np.full(leaf.value.size, PULL if leaf.name in (prefer or {}) else 0.0) for leaf in leaves]
        self.preferred, self.pull = np.concatenate(preferred), np.concatenate(counts)

    def price(self, theta: Array) -> float:
        """Of being away from preferred values, as a share of the objective."""
        return float(self.pull @ (theta - self.preferred) ** 2)

    def alone(self, value: float, theta: Array) -> float:
        """The objective itself, of one that holds the price."""
        return float(value / (1.0 + np.sign(value) * self.price(theta)))

    def learned(self, theta: Array) -> dict[str, Array]:
        """The free parameters by name."""
        parts = np.split(theta, self.sizes)
        return {leaf.name: leaf.decode(part) for leaf, part in zip(self.leaves, parts, strict=True)}

    def params(self, theta: Array) -> Any:
        """The whole pytree, with the free parameters put in."""
        values, learned = list(self.flat), self.learned(theta)
        for leaf in self.leaves:
            values[leaf.index] = learned[leaf.name]
        return jax.tree_util.tree_unflatten(self.structure, values)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        self.evaluations += 1
        with np.errstate(all="ignore"):  # what is not finite is dealt with below
            value, gradient = self.value_and_grad(self.params(theta), *self.data)
        value, slopes = float(value), jax.tree_util.tree_leaves(gradient, is_leaf=lambda v: v is None)
        parts = zip(self.leaves, np.split(theta, self.sizes), strict=True)
        slope = np.concatenate([leaf.slope(slopes[leaf.index], part) for leaf, part in parts])
        if np.isfinite(value) and np.isfinite(slope).all():
            self.worst = max(self.worst, value)
            slope = slope * (1.0 + np.sign(value) * self.price(theta))
            slope += abs(value) * 2.0 * self.pull * (theta - self.preferred)
            return value + abs(value) * self.price(theta), slope
        if self.worst == -np.inf:
            raise ValueError("the objective is not finite at the starting parameters")
        return self.worst + abs(self.worst) + 1.0, np.zeros_like(theta)  # a wall: the line search steps back

    def descend(
        self, start: Array, max_iter: int, tol: float, progress: bool | None = False
    ) -> tuple[Any, tuple[dict[str, Any], ...]]:
        """One run of L-BFGS-B, and its path."""
        path: list[dict[str, Any]] = []
        bar = None if progress is False else progress_bar(max_iter, "learning", progress)

        def value_and_slope(theta: Array) -> tuple[float, Array]:
            value, slope = self(theta)
            if not path:
                path.append({"value": self.alone(value, theta), **self.learned(theta)})
            return value, slope

        def record(intermediate_result: Any) -> None:
            theta = intermediate_result.x
            path.append({"value": self.alone(float(intermediate_result.fun), theta), **self.learned(theta)})
            if bar is not None:
                bar.set_postfix(value=f"{path[-1]['value']:.4g}", refresh=False)
                bar.update()

        options = {"maxiter": max_iter, "ftol": tol, "gtol": tol}
        found = scipy.optimize.minimize(
            value_and_slope, start, jac=True, method="L-BFGS-B", bounds=self.box, callback=record, options=options
        )
        if bar is not None:
            bar.close()
        if found.status == _LINE_SEARCH_FAILED and self.settled(found, tol):
            found.success, found.message = True, "CONVERGENCE: ROUNDING HIDES WHAT DESCENT IS LEFT"
        return found, tuple(path)

    def settled(self, found: Any, tol: float) -> bool:
        """Whether the gradient, within the bounds, promises a decrease by less than the tolerance.

        L-BFGS-B ends abnormally where a line search from an optimum, at which a second round starts, sees only rounding.
        """
        promised = found.x - np.clip(found.x - found.jac, *np.transpose(np.array(self.box, dtype=float)))
        return bool(np.abs(promised).max() <= np.sqrt(tol) * abs(found.fun))


@float64
def evaluate(objective: Callable[..., Any], params: Any, data: tuple[Any, ...] = ()) -> float:
    """The value of an objective, infinite where it is not a number; shares its compilation with `minimise`."""
    value = float(_compiled(objective)(params, *data)[0])
    return value if np.isfinite(value) else np.inf


@float64
def minimise(
    objective: Callable[..., Any],
    params: Any,
    data: tuple[Any, ...] = (),
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    fixed: Iterable[str] = (),
    prefer: Mapping[str, float] | None = None,
    restarts: int = 0,
    max_iter: int = 100,
    tol: float = 1e-9,
    warn: bool = True,
    progress: bool | None = None,
    random_state: RandomState = None,
) -> Optimum:
    """Minimise `objective(params, *data)` over the declared parameters of a pytree.

    Args:
        objective: a module-level function written in JAX, returning a scalar.
        params: a pytree such as a kernel, or an Equinox module holding kernels and declared parameters.
        data: further arguments, not differentiated.
        bounds: (low, high) by parameter name, e.g. `{"kernel.lengthscale": (0.1, 10)}`; by default a factor 1,000
            either side of the start, and none for what is unbounded.
        fixed: names of parameters to leave alone.
        prefer: values by parameter name that are taken where the objective does not care, so that rounding does not
            decide. A factor e away costs a hundred-thousandth of the objective, two factors four times as much. For
            parameters above zero.
        restarts: further starts, drawn about the first: normally, of what is above zero the logarithm.
        max_iter, tol: iterations per start, and the relative decrease and gradient at which to stop.
        warn: whether to warn; `on_bound` and `success` tell in any case.
        progress: show a bar; None: on a terminal when it takes more than a moment.
        random_state: seed of the restarts.

    Warns with `BoundWarning` when the optimum sits on a bound, and with `RuntimeWarning` when the best start stopped early.

    Example:
        >>> import jax.numpy as jnp, kernelbayes as kb
        >>> def distance_to_three(kernel):
        ...     return jnp.sum((jnp.log(kernel.lengthscale) - jnp.log(3.0)) ** 2)
        >>> found = kb.minimise(distance_to_three, kb.Gaussian(1.0))
        >>> found.params.lengthscale.round(4), found.success
        (np.float64(3.0), True)
    """
    if not callable(objective):
        raise ValueError(f"objective must be a function of the parameters, got {type(objective).__name__}")
    _check.count(restarts, "restarts", at_least=0)
    max_iter, tol = _check.count(max_iter, "max_iter"), _check.positive(tol, "tol", smallest=0.0)
    leaves = free_leaves(params, bounds or {}, tuple(fixed))
    if not leaves:
        raise ValueError("there is nothing to learn: no free parameter with a declared domain")
    unknown = [name for name in prefer or {} if name not in {leaf.name for leaf in leaves if not leaf.real}]
    if unknown:
        raise ValueError(f"prefer names {unknown[0]!r}, which is not among the positive parameters to be learned")
    problem = _Problem(objective, params, data, leaves, prefer)
    rng = _check.generator(random_state)
    starts = [problem.start] + [
        np.clip(problem.start + rng.normal(size=problem.start.size), *np.transpose(problem.box))
        for _ in range(restarts)
    ]
    found, path = min((problem.descend(s, max_iter, tol, progress) for s in starts), key=lambda run: run[0].fun)
    on_bound = tuple(_on_bound(leaves, np.split(found.x, problem.sizes)))
    if on_bound and warn:
        warn_user("the optimum sits on a bound: " + "; ".join(on_bound), BoundWarning)
    if not found.success and warn:
        warn_user(f"the optimiser stopped early: {found.message}", RuntimeWarning)
    return Optimum(
        problem.params(found.x),
        problem.alone(float(found.fun), found.x),
        bool(found.success),
        str(found.message),
        problem.evaluations,
        path,
        on_bound,
    )


@float64
def minimise_in_batches(
    objective: Callable[..., Any],
    params: Any,
    batches: Iterable[tuple[Any, ...]],
    steps: int,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    fixed: Iterable[str] = (),
    rate: float = 0.1,
    progress: bool | None = None,
) -> Optimum:
    """Steps of Adam (Kingma and Ba 2015) on `objective(params, *batch)`, one for each batch, on the scales of `minimise`.

    The result is the mean, on those scales, of the parameters over the last quarter of the steps, which averages
    out the noise of single batches. The rate falls to a tenth along a cosine.
    """
    leaves = free_leaves(params, bounds or {}, tuple(fixed))
    if not leaves:
        raise ValueError("there is nothing to learn: no free parameter with a declared domain")
    problem = _Problem(objective, params, (), leaves)
    theta, path, late = problem.start, [], []
    mean = square = np.zeros_like(theta)
    bar = progress_bar(steps, "learning", progress)
    for i, data in enumerate(batches):
        problem.data = data
        value, slope = problem(theta)
        path.append({"value": value, **problem.learned(theta)})
        mean, square = _KEEP[0] * mean + (1 - _KEEP[0]) * slope, _KEEP[1] * square + (1 - _KEEP[1]) * slope**2
        steady, size = mean / (1 - _KEEP[0] ** (i + 1)), np.sqrt(square / (1 - _KEEP[1] ** (i + 1)))
        now = rate * (0.1 + 0.9 * 0.5 * (1.0 + np.cos(np.pi * min(i / steps, 1.0))))
        theta = np.clip(theta - now * steady / (size + 1e-8), *np.transpose(problem.box))
        if 4 * i >= 3 * steps:
            late.append(theta)
        bar.update()
    bar.close()
    theta = np.mean(late, axis=0)
    value = float(np.mean([step["value"] for step in path[-len(late) :]]))
    on_bound = tuple(_on_bound(leaves, np.split(theta, problem.sizes)))
    message = f"{len(path)} steps of Adam on batches"
    return Optimum(problem.params(theta), value, True, message, problem.evaluations, tuple(path), on_bound)


def _on_bound(leaves: list[_Leaf], parts: list[Array]) -> list[str]:
    out = []
    for leaf, part in zip(leaves, parts, strict=True):
        for edge, bound, word in zip(leaf.edges, (leaf.low, leaf.high), ("lower", "upper"), strict=True):
            if np.any(np.abs(part - edge) < _ON_BOUND):
                out.append(f"{leaf.name} at its {word} bound {bound:.3g}")
    return out

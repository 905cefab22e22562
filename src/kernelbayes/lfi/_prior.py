"""Priors over named parameters: draws, designs, density, and Gaussian coordinates. Hsu (2019), section 4.7."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

from .. import _check
from .._designs import SEQUENCES, unit_sequence
from .._typing import Array, ArrayLike, RandomState
from ..kernels._distributions import Column, Distribution, Independent, Mixture, Normal, as_distribution
from ._blocks import POOL, Blend, Block, Correlated, Drawn, Scalar, normals, read_draws

DESIGNS = (*SEQUENCES, "random")


class Prior:
    """What is believed about the parameters of a simulator before anything was observed.

    Args:
        distributions: parameters by name, as a dict, for names that are not Python words.
        parameters: the same as keywords. A parameter is given as a frozen distribution of `scipy.stats` (continuous or
            discrete), as bounds `(low, high)` of a uniform, or as several columns at once: a frozen
            `multivariate_normal`, a `kb.Mixture` of normals, or any frozen multivariate distribution with draws.
        sampler: in place of all these, a function `sampler(n, rng)` that returns n draws (n, d), for a prior that can
            only be sampled.
        names: names of the columns of `sampler`.

    Every distribution but the sampled ones has *Gaussian coordinates*: `to_gaussian` takes parameters to coordinates that
    are standard normal under the prior (a mixture of normals: to standardised ones), `from_gaussian` leads back and never
    leaves the support. Kernels on parameters work in these coordinates, so a parameter's unit or scale plays no role.

    Example:
        >>> from scipy import stats
        >>> import kernelbayes as kb
        >>> prior = kb.Prior(growth=(0, 5), noise=stats.lognorm(0.5))
        >>> prior
        Prior(growth=(0, 5), noise=lognorm(0.5))
        >>> theta = prior.sample(1000, random_state=0)
        >>> theta.shape, bool(prior.contains(theta).all())
        ((1000, 2), True)
        >>> prior.to_gaussian([[2.5, 1.0]])  # the medians
        array([[0., 0.]])
    """

    def __init__(
        self,
        distributions: Mapping[str, Any] | None = None,
        /,
        *,
        sampler: Callable[[int, np.random.Generator], Any] | None = None,
        names: Sequence[str] | None = None,
        **parameters: Any,
    ):
        if distributions is not None and not isinstance(distributions, Mapping):
            raise ValueError(f"a prior is a dict from names to distributions, got {type(distributions).__name__}")
        given = {**(distributions or {}), **parameters}
        if sampler is not None:
            if given:
                raise ValueError("a prior is given by distributions or by a sampler, not by both")
            blocks, labels = _of_sampler(sampler, names)
        elif names is not None:
            raise ValueError("names are for a prior with a sampler; other parameters bring their names")
        elif not given:
            raise ValueError("a prior needs at least one parameter, such as kb.Prior(growth=(0, 5))")
        else:
            blocks, labels = _of_distributions(given)
        if len(set(labels)) < len(labels):
            raise ValueError(f"two parameters have the same name among {labels}")
        self.names: tuple[str, ...] = tuple(labels)
        self._blocks: tuple[Block, ...] = tuple(blocks)

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return len(self.names)

    def _independent(self) -> dict[str, Any]:
        """The frozen distribution of each parameter by its name, for other uses than inference."""
        frozen = [getattr(block, "frozen", None) for block in self._blocks]
        if any(part is None for part in frozen):
            raise ValueError(
                "a prior with correlated or sampled parameters can be integrated over by draws: prior.sample(5000)"
            )
        return dict(zip(self.names, frozen, strict=True))

    @property
    def latent(self) -> Distribution | None:
        """The distribution of the Gaussian coordinates, or None for a prior that can only be sampled."""
        parts = [block.latent for block in self._blocks]
        if any(part is None for part in parts):
            return None
        known = [normals(part) for part in parts if part is not None]
        weights, components = [], []
        for combination in itertools.product(*(zip(*pair, strict=True) for pair in known)):
            weights.append(np.prod([w for w, _ in combination]))
            means = np.concatenate([c.location for _, c in combination])
            components.append(Normal(means, np.asarray(scipy.linalg.block_diag(*(c.cov for _, c in combination)))))
        return components[0] if len(components) == 1 else Mixture(components, np.array(weights))

    def sample(self, n: int = 1000, random_state: RandomState = None) -> Array:
        """Independent draws (n, d)."""
        n, rng = _check.count(n, "n"), _check.generator(random_state)
        return np.concatenate([_draws(block, n, rng) for block in self._blocks], axis=1)

    def design(self, n: int, kind: str = "halton", *, start: int = 0, random_state: int = 0) -> Array:
        """Rows `start` to `start + n - 1` (n, d) of an unending sequence of parameters that follow the prior.

        Args:
            n: how many.
            kind: "halton" or "sobol" (scrambled: they fill the space more evenly than chance), or "random".
            start: how many rows of the sequence were taken before.
            random_state: which sequence; a whole number.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> prior = kb.Prior(rate=(0, 1))
            >>> first, more = prior.design(100), prior.design(50, start=100)
            >>> bool(np.array_equal(prior.design(150), np.concatenate([first, more])))
            True
        """
        n, start = _check.count(n, "n", at_least=0), _check.count(start, "start", at_least=0)
        kind = _check.option(kind, "kind", DESIGNS)
        seed = _check.count(random_state, "random_state", at_least=0, at_most=2**64 - 1)
        z = _sequence(kind, self.dimension, start, start + n, seed)
        out, left = [], 0
        for block in self._blocks:
            columns = z[:, left : left + block.width]
            if isinstance(block, Drawn):
                out.append(block.rows(start, start + n, seed) if n else columns)
            else:
                out.append(block.from_gaussian(_stretched(block, columns)))
            left += block.width
        return np.concatenate(out, axis=1)

    def log_density(self, theta: ArrayLike) -> Array:
        """Log density (n,) at parameters (n, d), of whole numbers the log mass; minus infinity outside the support."""
        theta = self._read(theta)
        with np.errstate(divide="ignore"):
            return np.sum([block.log_density(part) for block, part in self._parts(theta)], axis=0)

    def density(self, theta: ArrayLike) -> Array:
        """Density (n,) at parameters (n, d)."""
        return np.exp(self.log_density(theta))

    def contains(self, theta: ArrayLike) -> Array:
        """Whether parameters (n, d) have a positive density; a prior that can only be sampled refuses nothing."""
        theta = self._read(theta)
        inside = np.ones(len(theta), dtype=bool)
        for block, part in self._parts(theta):
            if not (isinstance(block, Drawn) and block.logpdf is None):
                inside &= block.log_density(part) > -np.inf
        return inside

    def to_gaussian(self, theta: ArrayLike) -> Array:
        """Gaussian coordinates (n, d) of parameters."""
        return np.concatenate([b.to_gaussian(part) for b, part in self._parts(self._read(theta))], axis=1)

    def from_gaussian(self, z: ArrayLike) -> Array:
        """Parameters (n, d) with these Gaussian coordinates; far out, those at which the digits of the prior's tail end."""
        z = _check.vectors(_check.by_name(z, self.names, "z"), "z", width=self.dimension)
        return np.concatenate([b.from_gaussian(part) for b, part in self._parts(z)], axis=1)

    def regressors(self, theta: Array) -> Array:
        """What regressions on parameters (n, d) see: those between bounds as they are, of others the Gaussian coordinates.

        Coordinates stretch the ends of a uniform prior to infinity, and a function of the parameter with them.
        """
        parts = [part if block.bounded else block.to_gaussian(part) for block, part in self._parts(theta)]
        return np.concatenate(parts, axis=1)

    def only(self, free: Array) -> Prior:
        """The prior of some of the parameters (d,), which must not hang together with the others."""
        blocks = []
        for block, chosen in self._parts(free[None]):
            if chosen.any() and not chosen.all():
                raise ValueError("parameters that hang together under the prior can only be known, or free, together")
            blocks += [block] * bool(chosen.all())
        out = object.__new__(Prior)
        out.names = tuple(name for name, chosen in zip(self.names, free, strict=True) if chosen)
        out._blocks = tuple(blocks)
        return out

    @property
    def whole(self) -> Array:
        """Which parameters (d,) are whole numbers."""
        mask = np.zeros(self.dimension, dtype=bool)
        mask[[column for column, _ in self.whole_columns()]] = True
        return mask

    def whole_columns(self) -> list[tuple[int, Scalar]]:
        """Numbers of the columns of whole numbers, and their distributions."""
        starts = np.cumsum([0, *(block.width for block in self._blocks)])
        pairs = zip(starts, self._blocks, strict=False)
        return [(int(start), b) for start, b in pairs if isinstance(b, Scalar) and b.discrete]

    @property
    def ties(self) -> bool:
        """Whether two draws may be equal: all parameters are whole numbers, or come from a sampler that repeats itself."""
        return all(
            b.discrete
            if isinstance(b, Scalar)
            else isinstance(b, Drawn) and len(np.unique(b.pool, axis=0)) < len(b.pool)
            for b in self._blocks
        )

    def on_atoms(self, z: Array) -> Array:
        """The coordinates (n, d) with those of whole numbers in the middle of their steps, where simulations have theirs.

        A likelihood of whole numbers is one number for each of them: what is learned at the middle holds for the step, and
        averages over coordinates are then averages over the whole numbers under the prior.
        """
        columns = self.whole_columns()
        if not columns:
            return z
        out = np.array(z)
        for j, block in columns:
            out[:, [j]] = block.to_gaussian(block.from_gaussian(out[:, [j]]))
        return out

    def stretch(self, theta: Array, z: Array) -> Array:
        """By which a density of coordinates becomes one of parameters (n,)."""
        pairs = zip(self._parts(theta), self._parts(z), strict=True)
        return np.prod([block.stretch(part, there) for (block, part), (_, there) in pairs], axis=0)

    def coordinates(self, n: int, rng: np.random.Generator, *, placed: bool = True) -> Array:
        """Gaussian coordinates (n, d) that stand for the prior: draws, or the pool where only draws are known.

        Those of whole numbers are where `on_atoms` puts them or, not `placed`, anywhere in their steps.
        """
        latent = self.latent
        if latent is not None:
            return self.on_atoms(latent.sample(n, rng)) if placed else latent.sample(n, rng)
        return self.to_gaussian(np.concatenate([_pool(block, n, rng) for block in self._blocks], axis=1))

    def _parts(self, rows: Array) -> list[tuple[Block, Array]]:
        edges = np.cumsum([block.width for block in self._blocks])[:-1]
        return list(zip(self._blocks, np.split(rows, edges, axis=1), strict=True))

    def _read(self, theta: Any, name: str = "theta") -> Array:
        array = _check.table(self._in_order(theta, name), name)
        if array.ndim == 1 and self.dimension > 1:
            array = array[None]  # one parameter vector
        if array.ndim == 2 and array.shape[1] != self.dimension:
            number = f"{array.shape[1]} column{'s' if array.shape[1] != 1 else ''}"
            raise ValueError(
                f"{name} has {number} where one for each of the parameters {', '.join(self.names)} was wanted"
            )
        return _check.vectors(array, name, width=self.dimension)

    def _in_order(self, theta: Any, name: str) -> Any:
        """What has names, a dict of columns, a data frame or a row of one, in the order of the parameters."""
        if isinstance(theta, Mapping):
            values = _check.row_by_name(theta, self.names, name)
            columns = [
                _check.vectors(v if np.ndim(v) else [v], f"{name}[{n!r}]", width=1)
                for n, v in zip(self.names, values, strict=True)
            ]
            for n, column in zip(self.names[1:], columns[1:], strict=True):
                _check.same_length(columns[0], column, f"{name}[{self.names[0]!r}]", f"{name}[{n!r}]")
            return np.concatenate(columns, axis=1)
        if self.dimension > 1:  # with one parameter, a series is a column, and its labels are those of rows
            return _check.row_by_name(theta, self.names, name)
        return _check.by_name(theta, self.names, name)

    def __repr__(self) -> str:
        left, parts = 0, []
        for block in self._blocks:
            name = self.names[left]
            parts.append(f"{name if block.width == 1 else name.rsplit('_', 1)[0]}={block.text}")
            left += block.width
        return f"Prior({', '.join(parts)})"


def read_prior(value: Any) -> Prior:
    """A prior, or a dict that makes one."""
    if isinstance(value, Prior):
        return value
    if isinstance(value, Mapping):
        return Prior(value)
    raise ValueError(f"prior must be a kb.Prior or a dict of distributions by name, got {type(value).__name__}")


def _of_distributions(given: Mapping[str, Any]) -> tuple[list[Block], list[str]]:
    blocks, labels = [], []
    for name, value in given.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"names of parameters must be text, got {name!r}")
        block = _block(value, name)
        blocks.append(block)
        labels += [name] if block.width == 1 else [f"{name}_{i}" for i in range(block.width)]
    return blocks, labels


def _block(value: Any, name: str) -> Block:
    """One parameter, or several columns, as the user gave it."""
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(np.ndim(v) == 0 for v in value):
        return _bounds(value, name)
    if isinstance(value, (Independent, Normal, Mixture)):
        return _known(value, name)
    if hasattr(value, "dist") and hasattr(value, "ppf"):
        return Scalar.of(value, name)
    if callable(value) or not hasattr(value, "rvs"):
        raise ValueError(
            f"the prior of {name} must be a frozen scipy.stats distribution such as stats.norm(0, 1), bounds (low, high), "
            f"or a kb.Mixture; got {value!r}"
        )
    known = as_distribution(value)
    return _known(known, name) if known is not None else _drawn(value)


def _bounds(value: Any, name: str) -> Scalar:
    low, high = (_check.scalar(v, f"a bound of {name}") for v in value)
    if not low < high:
        raise ValueError(f"the bounds of {name} must rise, got ({low:g}, {high:g})")
    return Scalar("uniform", (low, high - low), {})


def _known(value: Distribution, name: str) -> Block:
    if isinstance(value, Mixture):
        try:
            normals(value)
        except ValueError as error:
            raise ValueError(f"the prior of {name}: {error}") from None
        return Blend(value)
    if isinstance(value, Independent):
        if value.dimension > 1:
            raise ValueError(f"the prior of {name} has several columns; give each parameter a name of its own")
        column: Column = value.columns[0]
        return Scalar.of(column.frozen(), name)
    return Correlated(value)


def _drawn(value: Any) -> Drawn:
    """A multivariate distribution of which there are draws and a density."""

    def sampler(n: int, rng: np.random.Generator) -> Any:
        return np.reshape(value.rvs(n, random_state=rng), (n, -1))

    pool = read_draws(sampler(POOL, np.random.default_rng(0)), POOL, None)
    return Drawn(pool, sampler, _by_rows(value.logpdf) if hasattr(value, "logpdf") else None)


def _by_rows(logpdf: Callable[[Array], Any]) -> Callable[[Array], Array]:
    """A density asked for one row at a time: conventions differ among multivariate distributions, and some refuse
    a point outside their support."""

    def one(row: Array) -> float:
        try:
            return float(logpdf(row))
        except ValueError:
            return -np.inf

    return lambda theta: np.array([one(row) for row in theta])


def _of_sampler(sampler: Any, names: Sequence[str] | None) -> tuple[list[Block], list[str]]:
    if not callable(sampler):
        raise ValueError(f"sampler must be a function of (n, rng), got {type(sampler).__name__}")
    drawn = sampler(POOL, np.random.default_rng(0))
    own = _check.own_names(drawn)
    if own is not None:
        names = own if names is None else names
        sampler = functools.partial(_by_name, sampler, tuple(names))
        drawn = _check.by_name(drawn, names, "what the prior's sampler returned")
    pool = read_draws(drawn, POOL, None)
    labels = [f"theta_{i}" for i in range(pool.shape[1])] if names is None else list(names)
    if len(labels) != pool.shape[1]:
        raise ValueError(f"names has {len(labels)} names where the sampler draws {pool.shape[1]} columns")
    return [Drawn(pool, sampler)], labels


def _by_name(sampler: Callable[..., Any], names: tuple[str, ...], n: int, rng: np.random.Generator) -> Any:
    """Draws in a data frame, with their columns in the order of the parameters."""
    return _check.by_name(sampler(n, rng), names, "what the prior's sampler returned")


def _draws(block: Block, n: int, rng: np.random.Generator) -> Array:
    if isinstance(block, Drawn):
        return block.draw(n, rng)
    latent = block.latent
    assert latent is not None
    return block.from_gaussian(latent.sample(n, rng))


def _pool(block: Block, n: int, rng: np.random.Generator) -> Array:
    """Rows that stand for a block: those of its pool where there is one, in an order of their own."""
    if isinstance(block, Drawn):
        return block.pool[rng.permutation(len(block.pool))[np.arange(n) % len(block.pool)]]
    return _draws(block, n, rng)


def even_coordinates(prior: Prior, n: int) -> Array:
    """Gaussian coordinates (n, d) that fill a prior evenly, of whole numbers anywhere in their steps."""
    if prior.latent is None:
        return prior.coordinates(n, np.random.default_rng(0))
    z = _sequence("halton", prior.dimension, 0, n, 0)
    return np.concatenate([_stretched(block, part) for block, part in prior._parts(z)], axis=1)


def _stretched(block: Block, z: Array) -> Array:
    """Standard normal coordinates of a design, as those of a block; a mixture has its components in turn."""
    if not isinstance(block, Blend):
        return z
    assert isinstance(block.latent, Mixture)
    weights, components = normals(block.latent)
    # the first column also decides on the component, and is stretched to fill it: a design stays even
    u = scipy.special.ndtr(z[:, 0])
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    which = np.clip(np.searchsorted(edges, u, side="right") - 1, 0, len(weights) - 1)
    inside = np.clip((u - edges[which]) / weights[which], 1e-15, 1.0 - 1e-15)
    z = np.column_stack([scipy.special.ndtri(inside), z[:, 1:]])
    out = np.empty_like(z)
    for k, component in enumerate(components):
        out[which == k] = component.transform(z[which == k])
    return out


def _sequence(kind: str, d: int, start: int, stop: int, seed: int) -> Array:
    """Rows of a sequence of standard normal points (stop - start, d)."""
    if kind == "random":
        return np.random.default_rng(seed).standard_normal((stop, d))[start:]
    return scipy.special.ndtri(unit_sequence(kind, d, start, stop, seed))

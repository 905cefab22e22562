"""Posterior embeddings: weighted samples that know how far they can be trusted, one or many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._typing import Array, ArrayLike
from ..kernels import Kernel
from ._health import Health
from ._mean import MeanEmbedding
from ._moments import covariances, deviations, means
from ._weighted import evaluate_function, probabilities, quantiles, tails, vectors_of


class Posterior(MeanEmbedding):
    """The embedding of a posterior, with its diagnostics in `health`; made by `KernelBayesRule.posterior`.

    It can be asked whatever a `MeanEmbedding` can: `mean`, `cov`, `prob`, `quantile`, `interval`, `density`, `mode`,
    `herd` and so on.
    """

    health: Health

    def __init__(self, points: Any, weights: ArrayLike, kernel: Kernel, health: Health):
        super().__init__(points, weights, kernel)
        self.health = health

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences to read before the posterior is believed; empty if there is nothing to say."""
        return self.health.problems

    def __repr__(self) -> str:
        return f"Posterior({len(self)} points, {self.health})"


class Posteriors:
    """The posteriors of several observations under one prior: they share their points, each has a row of weights.

    Indexing gives one `Posterior`; the methods below answer for all at once, with the observations along one axis.

    Attributes:
        points: (n, d), or what the kernel takes.
        weights: (t, n), each row summing to one unless the rule was told otherwise.
        kernel: of the embeddings.
        health: diagnostics, with one number for each observation.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> rng = np.random.default_rng(0)
        >>> z = rng.normal(size=(100, 1))
        >>> x = z + 0.5 * rng.normal(size=(100, 1))
        >>> several = kb.KernelBayesRule().fit(x, z).posterior([[-1.0], [0.0], [1.0]])
        >>> several.mean().shape, several.interval(0.9).shape
        ((3, 1), (2, 3, 1))
        >>> bool(several[2].mean()[0] > several[0].mean()[0])
        True
    """

    def __init__(self, points: Array, weights: Array, kernel: Kernel, health: Health):
        self.points, self.weights, self.kernel, self.health = points, weights, kernel, health

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, i: int) -> Posterior:
        if not isinstance(i, (int, np.integer)):
            raise TypeError(f"posteriors are indexed by one integer, got {type(i).__name__}")
        return Posterior(self.points, self.weights[i], self.kernel, self.health[i])

    def __iter__(self) -> Iterator[Posterior]:
        return (self[i] for i in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(Posterior, name):
            raise AttributeError(f"{name} is asked of one posterior: take posteriors[i] of these {len(self)}")
        raise AttributeError(f"'Posteriors' object has no attribute {name!r}")

    @property
    def problems(self) -> tuple[str, ...]:
        """Sentences to read before the posteriors are believed; empty if there is nothing to say."""
        return self.health.problems

    def __repr__(self) -> str:
        return f"Posteriors({len(self)} observations, {self.weights.shape[1]} points, {self.health})"

    def mean(self) -> Array:
        """Posterior means (t, d)."""
        return means(*self._vectors())

    def cov(self) -> Array:
        """Posterior covariances (t, d, d), with the squares of `std()` on their diagonals: see `MeanEmbedding.cov`."""
        return covariances(*self._vectors())

    def std(self) -> Array:
        """Posterior standard deviations (t, d), of the functions that intervals come from: see `MeanEmbedding.std`."""
        return deviations(*self._vectors())

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles of each column: (t, d) for one level, (len(q), t, d) for several."""
        out = quantiles(*self._vectors(), q)
        return out[0] if np.ndim(q) == 0 else out

    def interval(self, level: float = 0.9) -> Array:
        """Central intervals holding `level` of the mass, as (lower, upper): (2, t, d)."""
        return self.quantile(tails(level))

    def prob(
        self,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        *,
        event: Callable[[Array], ArrayLike] | None = None,
    ) -> Array:
        """Mass (t,) of the box between `lower` and `upper`, or (t,) or (t, p) of an event, as in `MeanEmbedding.prob`."""
        return probabilities(self.points, self.weights, lower, upper, event)

    def expect(self, f: Callable[[Array], ArrayLike]) -> Array:
        """Expectations (t,) or (t, p) of a function that takes all points at once, as in `MeanEmbedding.expect`."""
        return self.weights @ evaluate_function(f, self.points)

    def _vectors(self) -> tuple[Array, Array]:
        return vectors_of(self.points, self.weights)

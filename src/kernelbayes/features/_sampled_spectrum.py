r"""The spectrum of a kernel under a pool of points: what a Mercer expansion is where none is known.

With `K = F F'` on a pool of N points of probabilities p, the operator :math:`T_k` of the pool has the eigenvalues of
`F' diag(p) F = V diag(eta) V'`, and eigenfunctions `F V eta^(-1/2)`, orthonormal under p: O(N r^2). With uniform
probabilities the leverages are the diagonal of `N K (K + N reg I)^-1`, N times what the Quadrature notes (section 3.1) call
:math:`\hat K_\lambda`, once its regulariser is multiplied by N, which the notes leave out.
"""

from __future__ import annotations

import copy

import numpy as np

from .. import _check
from .._linalg import LowRank, eigh
from .._typing import Array, ArrayLike, RandomState
from ..kernels import Kernel, check_kernel
from ..kernels._spectrum import Spectrum
from ._base import Recipe
from ._landmark import default_recipe, factored

# Below this share of the first, eigenvalues of a matrix of sums are rounding.
_NUMERICAL_RANK = 1e-12


class SampledSpectrum(Spectrum):
    """The spectrum of a kernel under a weighted sample.

    Args:
        kernel: the kernel.
        points: the pool (N, d).
        weights: probabilities (N,), equal unless given.
        features: representation of the pool; by default the kernel itself for up to 3,000 points, and a subspace beyond.
        random_state: seed of subspaces.

    Made by `kb.mercer`, which has an example.
    """

    def __init__(
        self,
        kernel: Kernel,
        points: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        features: Recipe | None = None,
        random_state: RandomState = None,
    ):
        self.kernel, self.pool = check_kernel(kernel), kernel._check(points, "points")
        self.names = _check.own_names(points)
        self.weights = _check.weights(weights, "weights", len(self.pool))
        if (self.weights < 0).any():
            raise ValueError("weights of a pool must not be negative: points are drawn by them")
        if self.weights.sum() < _check.SMALLEST:
            raise ValueError(f"weights of a pool are probabilities, but they sum to {self.weights.sum():.3g}")
        recipe = default_recipe(len(self.pool)) if features is None else features
        self.features, gram = factored(*recipe._fit(kernel, self.pool, _check.generator(random_state)))
        # a pool is held whole: it is drawn from
        self._factor = gram.factor if isinstance(gram, LowRank) else self.features._coordinates(self.pool)
        values, vectors = eigh((self._factor.T * self.weights) @ self._factor)
        kept = values > _NUMERICAL_RANK * values[0]
        self.eigenvalues = values[kept]
        self._map = vectors[:, kept] / np.sqrt(self.eigenvalues)
        self._free: Array | None = None  # points that may be drawn, if not all
        # what the coordinates miss of the kernel is missing here too
        self.trace = float(self.eigenvalues.sum())

    def __repr__(self) -> str:
        return f"SampledSpectrum({self.kernel!r}, {len(self):,} terms from {len(self.pool):,} points)"

    def without(self, taken: Array) -> SampledSpectrum:
        """The same spectrum, from which points that are taken are not drawn."""
        if not len(taken):
            return self
        out = copy.copy(self)
        out._free = ~found_in(self.pool, taken)
        return out

    @property
    def dimension(self) -> int:
        """Number of columns of a point."""
        if self.pool.ndim != 2:
            raise ValueError("points are no vectors, so that they have no columns")
        return self.pool.shape[1]

    def integrals(self) -> Array:
        """Means (m,) of the eigenfunctions over the pool."""
        return (self.weights @ self._factor) @ self._map

    def _at(self, X: Array) -> Array:
        return self.features._coordinates(X) @ self._map

    def _functions(self, places: Array, modes: Array) -> Array:
        return self._factor[places] @ self._map[:, modes]

    def _draw_squares(self, modes: Array, rng: np.random.Generator) -> Array:
        out = np.empty(len(modes), dtype=np.intp)
        which, inverse = np.unique(modes, return_inverse=True)
        table = np.cumsum((self._factor @ self._map[:, which]) ** 2 * self.weights[:, None], axis=0)
        for j, column in enumerate(table.T):
            mine = np.flatnonzero(inverse == j)
            drawn = np.searchsorted(column, rng.random(len(mine)) * column[-1], side="right")
            out[mine] = np.minimum(drawn, len(self.pool) - 1)
        return out

    def _leverage_nodes(self, n: int, reg: float, rng: np.random.Generator) -> tuple[Array, Array]:
        return self._once_each(self.weights * self._leverage(np.arange(len(self.pool)), reg), n, rng)

    def _draw_diagonal(self, n: int, rng: np.random.Generator) -> Array:
        return self._diagonal_nodes(n, rng)[0]

    def _diagonal_nodes(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        return self._once_each(self.weights * self.kernel._diag(self.pool), n, rng)

    def _once_each(self, mass: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        places, inclusion = draw_by_mass(mass if self._free is None else np.where(self._free, mass, 0.0), n, rng)
        return places, inclusion / (n * self.weights[places])

    def _points(self, places: Array) -> Array:
        return self.pool[places]


def draw_by_mass(mass: Array, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Numbers of n different points, each drawn with a probability proportional to its mass, and those probabilities.

    Systematic sampling in random order (Madow 1949): a point twice would tell nothing new, and drawing one by one without
    repetition has probabilities that nobody knows. Points that are due more than once are taken for sure.
    """
    if n > np.count_nonzero(mass):
        raise ValueError(f"n={n} nodes cannot be chosen from {np.count_nonzero(mass)} points")
    inclusion, free = np.zeros(len(mass)), np.ones(len(mass), dtype=bool)
    while True:
        inclusion[free] = (n - np.count_nonzero(~free)) * mass[free] / mass[free].sum()
        over = free & (inclusion >= 1.0)
        if not over.any():
            break
        inclusion[over], free = 1.0, free & ~over
        if not free.any():
            break
    order = rng.permutation(len(mass))
    ends = np.cumsum(inclusion[order])
    ends *= n / ends[-1]
    chosen = order[np.searchsorted(ends, rng.random() + np.arange(n), side="right").clip(0, len(mass) - 1)]
    return chosen, inclusion[chosen]


def found_in(points: Array, others: Array) -> Array:
    """Which points (n,) are among others, to the last digit."""
    known = {row.tobytes() for row in np.ascontiguousarray(others)}
    return np.array([row.tobytes() in known for row in np.ascontiguousarray(points)], dtype=bool)

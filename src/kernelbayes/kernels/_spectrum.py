"""The spectrum of a kernel under a distribution: leverage, effective dimension, and draws that follow them."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from .. import _check
from .._typing import Array, ArrayLike, RandomState
from . import _determinantal as determinantal
from ._base import Kernel

# Eigenvalues below this share of the first say nothing in double precision: their roots are below rounding.
NEGLIGIBLE = 1e-32
KINDS = ("projection", "k-dpp")
# Below this share of the trace, what terms that are not held add to it is rounding.
_ROUNDING = 1e-10
# A process whose terms that are not held count for more than this share cannot be drawn.
_MOST_UNHELD = 0.05


class Spectrum(abc.ABC):
    r"""Eigenvalues and eigenfunctions of a kernel under a distribution :math:`\rho`, and what follows from them.

    .. math:: k(x, y) = \sum_m \eta_m e_m(x) e_m(y), \qquad
              \check k_\lambda(x, x) = \sum_m \frac{\eta_m}{\eta_m + \lambda} e_m(x)^2, \qquad
              d(\lambda) = \sum_m \frac{\eta_m}{\eta_m + \lambda}

    Quadrature notes, sections 2.3 and 3. Sums are taken over the terms that are held; the rest enters to first order in
    :math:`\eta_m / \lambda`, through what the terms leave of k(x, x).

    Attributes:
        kernel: the kernel.
        eigenvalues: those that are held, falling.
        trace: the sum of all of them, that is the integral of k(x, x).
    """

    kernel: Kernel
    eigenvalues: Array
    trace: float
    names: tuple[str, ...] | None = None  # of the columns of a pool that came as a data frame

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Number of columns of a point."""

    @abc.abstractmethod
    def integrals(self) -> Array:
        """Integrals (m,) of the eigenfunctions under the distribution."""

    @abc.abstractmethod
    def _at(self, X: Array) -> Array:
        """All eigenfunctions (n, m) at checked points."""

    # A *place* is what a spectrum draws: a point, or the number of one in a pool.

    @abc.abstractmethod
    def _functions(self, places: Array, modes: Array) -> Array:
        """Eigenfunctions (n, m) at places."""

    @abc.abstractmethod
    def _draw_squares(self, modes: Array, rng: np.random.Generator) -> Array:
        """One place for each mode, from the square of its eigenfunction times the distribution."""

    @abc.abstractmethod
    def _draw_diagonal(self, n: int, rng: np.random.Generator) -> Array:
        """Places drawn from k(x, x) times the distribution."""

    @abc.abstractmethod
    def _points(self, places: Array) -> Array:
        """Points (n, d) at places."""

    def __len__(self) -> int:
        return len(self.eigenvalues)

    @property
    def _unheld(self) -> float:
        """What the terms that are not held add to the trace, or zero where that is rounding."""
        left = self.trace - float(self.eigenvalues.sum())
        return left if left > _ROUNDING * self.trace else 0.0

    def _tail(self, reg: float) -> float:
        """What a sum of `eta / (eta + reg)` over terms that are not held is multiplied by, given their sum.

        To second order in eta / reg where eigenvalues fall as m^-2, and no more than the last of those held allows.
        """
        return 1.0 / (reg + float(self.eigenvalues[-1]) / 3.0)

    def effective_dimension(self, reg: float) -> float:
        """d(reg): how many terms count at this regulariser."""
        reg = _check.positive(reg, "reg")
        return float((self.eigenvalues / (self.eigenvalues + reg)).sum() + self._unheld * self._tail(reg))

    def regulariser(self, size: float) -> float:
        """The reg at which the effective dimension is `size`, or the smallest that double precision tells from zero."""
        size = _check.positive(size, "size")
        low, high = math.log(NEGLIGIBLE * self.trace), math.log(self.trace / size) + 1.0
        if self.effective_dimension(math.exp(low)) <= size:
            return math.exp(low)
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.effective_dimension(math.exp(middle)) > size else (low, middle)
        return math.exp(high)

    def eigenfunctions(self, X: ArrayLike, count: int | None = None) -> Array:
        """The first `count` eigenfunctions, or all that are held, at points: (n, count)."""
        count = len(self) if count is None else _check.count(count, "count")
        if count > len(self):
            raise ValueError(f"count={count} exceeds the {len(self)} terms that are held")
        return self._at(self._read(X))[:, :count]

    def _read(self, X: Any) -> Array:
        return _check.vectors(_check.by_name(X, self.names, "X"), "X", width=self.dimension)

    def leverage(self, X: ArrayLike, reg: float) -> Array:
        r"""The leverage :math:`\check k_\lambda(x, x)` at points (n,); divided by `effective_dimension` it is a density."""
        X = self._read(X)
        return self._weighed(self._at(X) ** 2, X, _check.positive(reg, "reg"))

    def sample_leverage(self, n: int, reg: float, *, random_state: RandomState = None) -> Array:
        """Draws (n, d) from the leverage density times the distribution: independent, or each point of a pool once."""
        rng = _check.generator(random_state)
        return self._points(self._leverage_nodes(_check.count(n, "n"), _check.positive(reg, "reg"), rng)[0])

    def sample_dpp(
        self,
        n: int | None = None,
        *,
        reg: float | None = None,
        kind: str = "projection",
        random_state: RandomState = None,
    ) -> Array:
        """A draw (n, d) from a determinantal point process.

        Args:
            n: how many points: of the process of the first n eigenfunctions (`kind="projection"`), or of the n-DPP of
                the kernel (`kind="k-dpp"`), which takes n eigenfunctions at random, by their eigenvalues.
            reg: in place of n, the process with marginal kernel `T (T + reg I)^-1`, whose number of points is random with
                mean `effective_dimension(reg)`.
            kind: see n.
            random_state: seed.
        """
        rng = _check.generator(random_state)
        if (n is None) == (reg is None):
            raise ValueError("give either n, the number of points, or reg, which makes their number random")
        kind = _check.option(kind, "kind", KINDS)
        if reg is not None:
            self._refuse_unheld(_check.positive(reg, "reg"))
            modes = determinantal.independent_modes(self, reg, rng)
        else:
            modes = self._modes_of(_check.count(n, "n"), kind, rng)
        return self._points(determinantal.draw_projection(self, modes, rng))

    def _refuse_unheld(self, reg: float) -> None:
        whole, missing = self.effective_dimension(reg), self._unheld * self._tail(reg)
        if missing > _MOST_UNHELD * whole:
            raise ValueError(
                f"at reg={reg:g} about {whole:.0f} terms count, {missing:.0f} of which are beyond the {len(self)} that are "
                "held; take a larger reg, or an expansion with more terms="
            )

    def _modes_of(self, n: int, kind: str, rng: np.random.Generator) -> Array:
        """The eigenfunctions whose process has n points."""
        if n > len(self):
            raise ValueError(
                f"a determinantal process of n={n} points needs as many eigenfunctions, and the kernel has numerical "
                f"rank {len(self)} here; take fewer points or a shorter lengthscale"
            )
        return np.arange(n) if kind == "projection" else determinantal.modes_by_product(self.eigenvalues, n, rng)

    def _leverage(self, places: Array, reg: float) -> Array:
        squares = self._functions(places, np.arange(len(self))) ** 2
        return self._weighed(squares, self._points(places), reg)

    def _weighed(self, squares: Array, X: Array, reg: float) -> Array:
        """Leverages from squared eigenfunctions (n, m) at points."""
        held = squares @ (self.eigenvalues / (self.eigenvalues + reg))
        if not self._unheld:
            return held
        left = np.maximum(self.kernel._diag(X) - squares @ self.eigenvalues, 0.0)
        return held + left * self._tail(reg)

    def _leverage_nodes(self, n: int, reg: float, rng: np.random.Generator) -> tuple[Array, Array]:
        """Places drawn from the leverage density, and that density there."""
        places = self._draw_leverage(n, reg, rng)
        return places, self._leverage(places, reg) / self.effective_dimension(reg)

    def _draw_leverage(self, n: int, reg: float, rng: np.random.Generator) -> Array:
        """A mixture of squares. What is not held is drawn like the last tenth of what is, on average."""
        shares = self.eigenvalues / (self.eigenvalues + reg)
        last = -(-len(self) // 10)
        shares[-last:] += self._unheld * self._tail(reg) / last
        return self._draw_squares(rng.choice(len(self), n, p=shares / shares.sum()), rng)

    def _diagonal_nodes(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Places drawn from k(x, x) times the distribution, and the density of k(x, x) there."""
        places = self._draw_diagonal(n, rng)
        return places, self.kernel._diag(self._points(places)) / self.trace

r"""The kernel means likelihood: the likelihood of an observation as a function of the parameters, from simulations.

Hsu (2019), section 4.3. From pairs :math:`(\theta_j, x_j)` of parameters and simulations and an :math:`\epsilon`-kernel
:math:`\kappa_\epsilon(y, x)`, the density of observing y where x was simulated,

.. math:: q(y|\theta) = \sum_j v_j\, \ell(\theta_j, \theta), \quad v = (L + m \lambda I)^{-1} \kappa_\epsilon(y), \qquad
          q(y) = \sum_j v_j\, \mu_\Theta(\theta_j)

| paper | here |
|---|---|
| `L + m lambda I` | `factor`, its Cholesky factor, from `operator` |
| `kappa_eps(y)`, for several y as columns | `kappa` |
| `v(y)`, (4.4), line 3 of Algorithm 3 | `weights` |
| `q(y)`, (4.5), line 6 of Algorithm 3 | `marginal` |

Any simulation can play the observation. Left out of the pairs it gives, for the parameters behind it, a likelihood that
has not seen them: `weights_without` has the weights of all such cases from one factorisation. With `S = (L + m lambda
I)^-1` and `alpha = S kappa`, taking out pair i leaves `alpha - S_i alpha_i / S_ii`, whose entry i is zero.

Simulations that share their parameters, such as several seeds of each, must be left out together: with the others of its
group still there, a simulation is told the very parameters that it is asked for. They meet the kernel at one place,
:math:`z_p`, so the regression behind (4.4) is that of their mean at each place,

.. math:: \sum_j r_j (f(\theta_j) - \kappa_j)^2 + m \lambda |f|^2 = \sum_p r_p (f(z_p) - \bar\kappa_p)^2
          + m \lambda |f|^2 + \text{const}, \qquad r_p = \sum_{j \in p} r_j

and leaving out a group is leaving out one place (`Places`). Many places are fitted on a few landmarks (`OnLandmarks`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .._backend import namespace
from .._linalg import Gram, cholesky, solve, solve_lower
from .._typing import AnyArray, Array


class Places(NamedTuple):
    """Where simulations were made: parameters that differ, and how the simulations count at each.

    Attributes:
        Z: coordinates (p, d) of the places.
        ratio: (p,) what `operator` takes; None where all count alike.
        of: (m,) the place of each simulation; None where each has one of its own.
        shares: (m,) of the simulations in the mean at their place.
    """

    Z: Array
    ratio: Array | None = None
    of: Array | None = None
    shares: Array | None = None

    @classmethod
    def gathered(cls, Z: Array, groups: Array | None, ratio: Array | None = None) -> Places:
        """Of simulations at coordinates (m, d), those with the same label in groups (m,) at one place."""
        if groups is None:
            return cls(Z, ratio)
        _, first, of = np.unique(groups, return_index=True, return_inverse=True)
        counts = np.ones(len(Z)) if ratio is None else ratio
        total = np.bincount(of, counts)
        return cls(Z[first], total * (len(first) / len(Z)), of, counts / total[of])

    def rows(self, rows: Array) -> Array:
        """The places of some simulations."""
        return rows if self.of is None else self.of[rows]

    def mean(self, values: Array) -> Array:
        """Means (p, ...) at the places of values (m, t) at the simulations."""
        return values if self.of is None else self._averaging() @ values

    def back(self, slopes: Array) -> Array:
        """Slopes (m, t) by values at the simulations, from those (p, t) by their means."""
        return slopes if self.of is None else self._averaging().T @ slopes

    def _averaging(self) -> scipy.sparse.csr_array:
        assert self.of is not None
        assert self.shares is not None
        return scipy.sparse.csr_array(
            (self.shares, (self.of, np.arange(len(self.of)))), shape=(len(self.Z), len(self.of))
        )


def operator(L: AnyArray, reg: AnyArray, ratio: AnyArray | None = None) -> AnyArray:
    """Cholesky factor of `L + m reg I`; of `L + m reg diag(1 / ratio)` for parameters that do not follow the prior.

    `ratio` (m,) is the prior's density over theirs. Each pair then counts by it in the regression behind (4.4), which is
    the one that pairs from the prior would give: otherwise the likelihood shrinks to zero where few parameters are, and a
    posterior whose simulations gather about its middle loses its flanks.
    """
    m = L.shape[0]
    if ratio is not None:
        L = L + namespace(L).diag(m * reg * (1.0 / ratio - 1.0))
    return cholesky(L, "the regularised Gram matrix of the parameters", m * reg)


def weights(factor: AnyArray, kappa: AnyArray) -> AnyArray:
    """Weights v (m,) or (m, t) of the likelihood (4.4) for one or several observations."""
    return solve(factor, kappa)


def marginal(v: AnyArray, mu: AnyArray) -> AnyArray:
    """The marginal kernel means likelihood (4.5), from the prior's embedding at the parameters."""
    return mu @ v


def inverse_columns(factor: AnyArray, rows: AnyArray) -> AnyArray:
    """Columns `rows` of `S = (L + m lambda I)^-1`."""
    xp = namespace(factor)
    return solve(factor, 1.0 * (xp.arange(factor.shape[0])[:, None] == rows))


def weights_without(factor: AnyArray, kappa: AnyArray, rows: AnyArray, inverse: AnyArray | None = None) -> AnyArray:
    """Weights (m, t) where observation t is simulation `rows[t]`, learned without that simulation.

    `inverse` are the `inverse_columns` of these rows, where they are at hand.
    """
    columns = inverse_columns(factor, rows) if inverse is None else inverse
    alpha = solve(factor, kappa)
    each = namespace(factor, kappa).arange(len(rows))
    return alpha - columns * (alpha[rows, each] / columns[rows, each])


class OnLandmarks:
    """The same regression with f in the span of the kernel at a few landmarks, on all simulations: O(p r^2) time.

    With coordinates F (p, r) of the places on landmarks R (`features.LandmarkFeatures`), D the ratios and
    `M = F' D F + m lambda I`,
    `f = F c`, `c = M^-1 F' D kappa`, which is `v = L_R^-T c` on the landmarks. Without place i it is
    `c - M^-1 f_i d_i e_i / (1 - d_i h_i)`, with `e_i = kappa_i - f_i . c` and `h_i = f_i . M^-1 f_i`.
    """

    def __init__(self, features: Any, gram: Gram, places: Places, reg: float):
        self._features, self._gram, self._places = features, gram, places
        ratio = places.ratio
        core = self._gram.core() if ratio is None else self._gram.weighted_core(ratio)
        self._factor = cholesky(core, "the regularised Gram matrix of the landmarks", len(places.Z) * reg)

    @property
    def points(self) -> Array:
        """Coordinates (r, d) of the landmarks."""
        return self._features.points

    def _coefficients(self, kappa: Array) -> Array:
        ratio = self._places.ratio
        return np.asarray(solve(self._factor, self._gram.gather(kappa if ratio is None else (kappa.T * ratio).T)))

    def _on_points(self, coefficients: Array) -> Array:
        return np.asarray(solve_lower(self._features.factor, coefficients, transposed=True))

    def weights(self, kappa: Array) -> Array:
        """Weights (r,) or (r, t) of the likelihood on the landmarks, from means (p,) or (p, t) at the places."""
        return self._on_points(self._coefficients(kappa))

    def weights_without(self, kappa: Array, rows: Array) -> Array:
        """The same (r, t) where observation t was simulated at place `rows[t]`, learned without that place."""
        c, each = self._coefficients(kappa), np.arange(len(rows))
        F = np.asarray(self._features._coordinates(self._places.Z[rows]))
        through = np.asarray(solve(self._factor, F.T))
        counts = np.ones(len(rows)) if self._places.ratio is None else self._places.ratio[rows]
        error = kappa[rows, each] - (F * c.T).sum(1)
        return self._on_points(c - through * (counts * error / (1.0 - counts * (F * through.T).sum(1))))

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
"""

from __future__ import annotations

from .._backend import namespace
from .._linalg import cholesky, solve
from .._typing import AnyArray


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

r"""Density ratios by least squares in the RKHS (KuLSIF), plain and relative, with closed-form leave-one-out.

Kanamori, Suzuki and Sugiyama (2012); Xu et al. (2022), section 2, "Density Ratio Estimation"; Yamada et al. (2011) for the
relative ratio. The ratio of pi, the numerator, to a mixture of it with p, the denominator,

.. math:: r_\alpha(z) = \frac{\pi(z)}{\alpha\,\pi(z) + (1 - \alpha)\,p(z)},

minimises :math:`\frac12 \langle r, M r\rangle - \langle r, m\rangle + \frac\eta2 \|r\|^2`, in coordinates f of the kernel:

.. math:: \hat r(z) = f(z)^\top (M + \eta I)^{-1} m, \qquad m = \sum_j w_j f(\tilde z_j), \qquad
          M = \frac{1 - \alpha}n \sum_i f(z_i) f(z_i)^\top + \alpha \sum_j w_j f(\tilde z_j) f(\tilde z_j)^\top.

| paper | here |
|---|---|
| `C_ZZ^(P)`, or the mixture's M | `covariance` |
| `m_Pi`, the embedding of the numerator | `mean` |
| eta (Xu et al.), lambda (Kanamori et al., Yamada et al.): per sample | `reg` |
| `gamma = (G_Z + n eta I)^-1 g`: equation 1 of Xu et al. over n | the ratio at z_i over n, for alpha = 0 |

Kanamori et al. write the same function as :math:`\frac1{m\eta} \sum_j k(\cdot, \tilde z_j) + \sum_i a_i k(\cdot, z_i)` with
:math:`(K / n + \eta I)\, a = -\frac1{n\eta}\, g`, :math:`g_i = \frac1m \sum_j k(z_i, \tilde z_j)`: since
`eta r = m - C r`, where `a_i = -r(z_i) / (n eta)`. At the z_i the two agree for coordinates that are exact there; elsewhere
coordinates fitted to the z_i give the projection on their span, which leaves out what `m` has beyond it, divided by eta.

Leave-one-out. A left-out point loses its weight in M, (1 - alpha) / n for a point of the denominator and alpha w_j for one
of the numerator, whose point also loses its weight w_j in m. The weights that are left are scaled to sum to one again,
and reg with those of M, to reg / (1 - the weight lost): for alpha = 0 the shift n eta of the Gram matrix of the z_i is the
same with and without a point, as in `_linalg.leave_one_out`. So one eigendecomposition of M serves all points and all
regularisers.
Kanamori et al. leave out one point of each sample at once, for min(n, m) pairs; here each is left out of its own term
alone, for all n + m points, which costs the same and also suits weighted numerators and those known in closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._backend import namespace
from .._linalg import cholesky, eigh, solve
from .._typing import AnyArray

_EPS = float(np.finfo(np.float64).eps)


def coefficients(covariance: AnyArray, reg: AnyArray, mean: AnyArray) -> AnyArray:
    """`(M + reg I)^-1 m`: the ratio in coordinates, whose values are `coordinates @ coefficients`.

    For alpha = 0, M is `gram.core() / n`, and `gram.scatter` of the coefficients is the ratio at the sample itself, for a
    dense Gram matrix as well.
    """
    return solve(cholesky(covariance, "the regularised covariance", reg), mean)


def ratio(covariance: AnyArray, reg: AnyArray, mean: AnyArray, coordinates: AnyArray) -> AnyArray:
    """The ratio (t,) at points given by their coordinates (t, r). May be negative: truncate it at zero where it must not."""
    return coordinates @ coefficients(covariance, reg, mean)


def positive_part(weights: AnyArray) -> AnyArray:
    """Weights of a covariance, which must be semidefinite: those below zero cut off, the others scaled to sum to one."""
    cut = namespace(weights).maximum(weights, 0.0)
    return cut / cut.sum()


def mixture(F: AnyArray, numerator: tuple[AnyArray, AnyArray], alpha: AnyArray) -> AnyArray:
    """M of the coordinates F (n, r) of the denominator and (F~ (m, r), w (m,)) of the numerator."""
    T, w = numerator
    return (1.0 - alpha) * (F.T @ F) / len(F) + alpha * (T.T * positive_part(w)) @ T


def fitted(
    spectrum: tuple[AnyArray, AnyArray], mean: AnyArray, regs: AnyArray, F: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Ratio `f' (M + reg I)^-1 m` and leverage `f' (M + reg I)^-1 f` at points, each (n, len(regs)), from `eigh(M)`."""
    values, vectors = spectrum
    inverse = 1.0 / (values[:, None] + regs)
    P = F @ vectors
    return P @ ((vectors.T @ mean)[:, None] * inverse), (P * P) @ inverse


def without_denominator(ratio: AnyArray, leverage: AnyArray, share: AnyArray) -> AnyArray:
    """r_{-i}(z_i) by Sherman and Morrison, for points of weight `share = (1 - alpha) / n` in M."""
    return (1.0 - share) * ratio / _left(share * leverage)


def without_numerator(ratio: AnyArray, leverage: AnyArray, weights: AnyArray, shares: AnyArray) -> AnyArray:
    """r_{-j}(z~_j) for points of weight w_j in m, none of them 1, and of weight `shares = alpha max(w_j, 0)` in M."""
    w, share = weights[:, None], shares[:, None]
    return (1.0 - share) * (ratio - w * leverage) / (_left(share * leverage) * (1.0 - w))


def _left(own: AnyArray) -> AnyArray:
    """1 less the leverage that a point has on itself, which reg keeps above zero, but not where reg is below rounding."""
    return namespace(own).maximum(1.0 - own, _EPS)


def losses(
    at_z: AnyArray, at_numerator: AnyArray, weights: AnyArray, alpha: AnyArray = 0.0, *, truncate: bool
) -> tuple[AnyArray, AnyArray]:
    """What each point adds to the risk `1/2 E r^2 - E_pi r`, from values (n, k) and (m, k) at points of both samples.

    With `truncate` the risk is that of the ratio cut off below at zero and above at its largest value on the denominator.
    Where the numerator has points beyond the denominator, nothing there bounds the ratio, and the risk of a ratio that
    explodes on them is hugely negative: the cut takes that reward away.
    """
    if truncate:
        xp = namespace(at_z)
        ceiling = xp.maximum(at_z.max(0), 0.0)
        at_z, at_numerator = xp.maximum(at_z, 0.0), xp.clip(at_numerator, 0.0, ceiling)
    w, positive = weights[:, None], positive_part(weights)[:, None]
    below = 0.5 * (1.0 - alpha) * at_z**2 / len(at_z)
    return below, 0.5 * alpha * positive * at_numerator**2 - w * at_numerator


def leave_one_out_scores(
    F: AnyArray,
    mean: AnyArray,
    regs: AnyArray,
    numerator: tuple[AnyArray, AnyArray] | None = None,
    alpha: float = 0.0,
    *,
    truncate: bool = False,
) -> AnyArray:
    """The leave-one-out risk for each of `regs`: lower is better. One eigendecomposition, then O((n + m) r) for each.

    Args:
        F: coordinates (n, r) of the denominator.
        mean: of the coordinates of the numerator, (r,).
        regs: candidates (k,).
        numerator: its coordinates (m, r) and weights (m,) that sum to one, of either sign; None where its embedding is
            known in closed form. Then nothing is left out of the second term, `m' (M + reg I)^-1 m`.
        alpha: of the relative ratio; above zero it needs a sample of the numerator, whose weights below zero count as zero
            in M.
        truncate: score the truncated ratio, which is safer; see `losses`. It needs a sample of the numerator.
    """
    if numerator is None and (alpha != 0.0 or truncate):
        raise ValueError("alpha > 0 and truncate need points of the numerator, not only the mean of its coordinates")
    regs = namespace(F).asarray(regs)
    covariance: Any = F.T @ F / len(F) if numerator is None else mixture(F, numerator, alpha)
    spectrum = eigh(covariance)
    at_z = without_denominator(*fitted(spectrum, mean, regs, F), (1.0 - alpha) / len(F))
    if numerator is None:
        expected = ((spectrum[1].T @ mean) ** 2) @ (1.0 / (spectrum[0][:, None] + regs))
        return 0.5 * (at_z**2).mean(0) - expected
    T, w = numerator
    at_numerator = without_numerator(*fitted(spectrum, mean, regs, T), w, alpha * positive_part(w))
    below, above = losses(at_z, at_numerator, w, alpha, truncate=truncate)
    return below.sum(0) + above.sum(0)

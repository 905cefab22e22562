"""Kernels of the difference x - y on R^d, with one lengthscale or one per column (ARD).

Smooth kernels expand ||x - y||^2 into a matrix product. Kernels with a kink at zero (Laplace, Matern) take a square root
or an absolute value there, which would turn the product's rounding of 1e-16 into 1e-8, so they use differences.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np
from scipy.spatial.distance import cdist

from .. import _check
from .._backend import namespace
from .._typing import AnyArray, Array
from ._base import Kernel
from ._parameters import positive

_ZERO_BEYOND = 1e4  # exp(-t) is zero by far, and a power of t is not infinite
_FAR = 1e3  # lengthscales from the centre at which squaring costs 1e-10


def squared_distances(X: AnyArray, Y: AnyArray, lengthscale: AnyArray = 1.0) -> AnyArray:
    """||x_i - y_j||^2 over lengthscale^2 by one matrix product.

    The data are first centred, on the median so that no outlier decides where, and then scaled: an offset of the data
    costs no digits. Points many lengthscales from the centre would: on the host they are left to differences.
    """
    xp = namespace(X, Y, lengthscale)
    if xp is np and min(len(X), len(Y)) == 1:  # one row or column: differences are exact, and as cheap
        difference = (X - Y) / lengthscale
        with np.errstate(over="ignore"):  # infinitely far is far enough
            return (difference * difference).sum(1).reshape(len(X), len(Y))
    centre = xp.median(Y[:: -(-Y.shape[0] // 100)], axis=0)  # of at most 100 rows: any point amid the data will do
    X, Y = (X - centre) / lengthscale, (Y - centre) / lengthscale
    if xp is np and max(np.abs(X).max(), np.abs(Y).max()) > _FAR:
        return cdist(X, Y, "sqeuclidean")
    squared = X @ (-2.0 * Y).T
    squared += (X * X).sum(1)[:, None]
    squared += (Y * Y).sum(1)
    return np.maximum(squared, 0.0, out=squared) if xp is np else xp.maximum(squared, 0.0)


def _exp(values: AnyArray) -> AnyArray:
    xp = namespace(values)
    return np.exp(values, out=values) if xp is np else xp.exp(values)


def _distances(X: AnyArray, Y: AnyArray, norm: int, lengthscale: AnyArray = 1.0) -> AnyArray:
    """||(x_i - y_j) / lengthscale|| in the 1- or 2-norm from differences.

    The derivative is zero, not NaN, where points coincide.
    """
    xp = namespace(X, Y, lengthscale)
    if xp is np:
        weight = np.broadcast_to(np.asarray(lengthscale) ** -float(norm), X.shape[1])
        return cdist(X, Y, "cityblock" if norm == 1 else "euclidean", w=weight)
    difference = (X[:, None, :] - Y[None, :, :]) / lengthscale
    if norm == 1:
        return xp.abs(difference).sum(-1)
    squared = (difference * difference).sum(-1)
    apart = squared > 0
    return xp.where(apart, xp.sqrt(xp.where(apart, squared, 1.0)), 0.0)


class _Stationary(Kernel):
    lengthscale: AnyArray = positive(per_column=True)

    def _diag(self, X: AnyArray) -> AnyArray:
        return namespace(X, self.lengthscale).ones(X.shape[0])


class Gaussian(_Stationary):
    r"""The Gaussian (squared exponential, RBF) kernel.

    .. math:: k(x, y) = \exp\Big(-\tfrac12 \sum_j (x_j - y_j)^2 / \ell_j^2\Big)

    Characteristic and infinitely smooth. `lengthscale` is one number or one per column. Hsu (2019), section 2.2.

    Example:
        >>> import kernelbayes as kb
        >>> kb.Gaussian(lengthscale=[1.0, 2.0]).gram([[0.0, 0.0]], [[1.0, 2.0]]).round(4)
        array([[0.3679]])
    """

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        squared = squared_distances(X, Y, self.lengthscale)
        squared *= -0.5
        return _exp(squared)

    def _lengthscale_slope(self, X: Array, Y: Array, weighted: Array) -> Array:
        """`sum_ij s_ij dk(x_i, y_j) / d lengthscale`, from `weighted` (n, m), the slopes s times the Gram matrix."""
        centre = np.median(Y, axis=0)
        X, Y = (X - centre) / self.lengthscale, (Y - centre) / self.lengthscale
        if max(np.abs(X).max(), np.abs(Y).max()) > _FAR:
            columns = zip(X.T[..., None], Y.T[..., None], strict=True)
            squares = np.array([(weighted * cdist(x, y, "sqeuclidean")).sum() for x, y in columns])
        else:
            squares = weighted.sum(1) @ X**2 + weighted.sum(0) @ Y**2 - 2.0 * ((weighted.T @ X) * Y).sum(0)
        slopes = squares / self.lengthscale
        return slopes if np.size(self.lengthscale) > 1 else slopes.sum().reshape(np.shape(self.lengthscale))


class RationalQuadratic(_Stationary):
    r"""The rational quadratic kernel, a scale mixture of Gaussian ones.

    .. math:: k(x, y) = \Big(1 + \frac{\|x - y\|^2}{2 \alpha \ell^2}\Big)^{-\alpha}

    Tends to the Gaussian kernel as `alpha` grows. Rasmussen and Williams (2006), equation 4.19.

    Example:
        >>> import kernelbayes as kb
        >>> kb.RationalQuadratic(1.0, alpha=1.0).gram([0.0], [2.0]).round(4)
        array([[0.3333]])
    """

    alpha: AnyArray = positive()

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        squared = squared_distances(X, Y, self.lengthscale)
        return (1.0 + squared / (2.0 * self.alpha)) ** -self.alpha


class Laplace(_Stationary):
    r"""The Laplace kernel, in the 1-norm.

    .. math:: k(x, y) = \exp\Big(-\sum_j |x_j - y_j| / \ell_j\Big)

    A product over the columns, characteristic, and rough: its functions need not be differentiable. In the 2-norm it is
    `Matern(0.5)`. Sriperumbudur et al. (2010).

    Example:
        >>> import kernelbayes as kb
        >>> kb.Laplace(2.0).gram([[0.0, 0.0]], [[1.0, -1.0]]).round(4)
        array([[0.3679]])
    """

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        distance = _distances(X, Y, norm=1, lengthscale=self.lengthscale)
        distance *= -1.0
        return _exp(distance)


class Matern(_Stationary):
    r"""The Matern kernel of half-integer smoothness, in the scaled distance :math:`t = \sqrt{2\nu} \|x - y\| / \ell`.

    .. math:: k = e^{-t} \; (\nu = 1/2), \quad (1 + t)\, e^{-t} \; (\nu = 3/2), \quad
              (1 + t + t^2/3)\, e^{-t} \; (\nu = 5/2)

    Its space is a Sobolev space of order :math:`\nu + d/2`. Rasmussen and Williams (2006), equation 4.17.

    Example:
        >>> import kernelbayes as kb
        >>> kb.Matern(nu=1.5).gram([0.0], [1.0]).round(4)
        array([[0.4834]])
    """

    nu: float = eqx.field(static=True, default=1.5)

    def __init__(self, nu: float = 1.5, lengthscale: Any = 1.0):
        self.nu = _check.option(nu, "nu", (0.5, 1.5, 2.5))
        self.lengthscale = lengthscale

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        t = np.sqrt(2 * self.nu) * _distances(X, Y, norm=2, lengthscale=self.lengthscale)
        t = namespace(t).minimum(t, _ZERO_BEYOND)
        polynomial = {0.5: 1.0, 1.5: 1.0 + t, 2.5: 1.0 + t + t * t / 3.0}[self.nu]
        return polynomial * _exp(-t)


def sample_frequencies(kernel: Kernel, size: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Draws (size, width) from the spectral density of a stationary kernel (Bochner's theorem).

    Gaussian: normal. Laplace: Cauchy in each column. Matern: Student's t with 2 nu degrees of freedom. Rational
    quadratic: normal with a variance factor drawn from Gamma(alpha, 1/alpha).
    """
    if isinstance(kernel, Laplace):
        return rng.standard_cauchy((size, width)) / kernel.lengthscale
    normal = rng.standard_normal((size, width))
    if isinstance(kernel, Matern):
        normal *= np.sqrt(2 * kernel.nu / rng.chisquare(2 * kernel.nu, (size, 1)))
    elif isinstance(kernel, RationalQuadratic):
        normal *= np.sqrt(rng.gamma(kernel.alpha, 1.0 / kernel.alpha, (size, 1)))
    elif not isinstance(kernel, Gaussian):
        raise ValueError(
            f"random Fourier features need a stationary kernel (Gaussian, Laplace, Matern, RationalQuadratic); "
            f"got {type(kernel).__name__}"
        )
    return normal / kernel.lengthscale

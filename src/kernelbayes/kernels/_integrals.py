"""Integrals of a kernel against a known distribution, in closed form.

`mean_integral` is the embedding of P at given points, `double_integral` the inner product of two embeddings:

    mean(x) = ∫ k(x, y) dP(y),        double = ∫∫ k(x, y) dP(x) dQ(y).

Both are one integral, since points are distributions without width. A kernel that is a product over columns
needs, where columns are independent, only E phi(X - Y) on the line, and X - Y is a shift t plus a normal of
deviation s plus up to two uniforms of half-widths g <= h. So a kernel is known here by its profile phi,
smoothed by the normal, and three formulas: `value` (no uniform), `box` (one) and `boxes` (two).

References: Quadrature notes, examples 1-3; Rasmussen and Ghahramani (2003), Bayesian Monte Carlo, for the
Gaussian kernel.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._linalg import eigh
from .._typing import Array, ArrayLike
from ._base import Columns, Kernel, Product, Scaled, Sum
from ._distributions import (
    Column,
    Distribution,
    Independent,
    Mixture,
    NoClosedFormError,
    Normal,
    Simple,
    read_distribution,
)
from ._interval import Brownian, PeriodicSobolev
from ._product import Linear, Polynomial
from ._profiles import (
    GaussianProfile,
    LaplaceProfile,
    MaternProfile,
    OutOfReach,
    PeriodicProfile,
    PowerProfile,
    Profile,
)
from ._stationary import Gaussian, Laplace, Matern


def mean_integral(kernel: Kernel, distribution: Any, X: ArrayLike) -> Array:
    """The embedding `∫ k(x, y) dP(y)` at the points X (n, d), of shape (n,).

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> from kernelbayes.kernels._integrals import mean_integral
        >>> mean_integral(kb.Gaussian(1.0), stats.norm(0, 1), np.array([[0.0], [1.0]])).round(4)
        array([0.7071, 0.5507])
    """
    Q = read_distribution(distribution, type(kernel).__name__)
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != Q.dimension:
        raise ValueError(f"X has shape {X.shape}, but the distribution has {Q.dimension} columns")
    return np.asarray(_integral(kernel, Independent(tuple(Column(x) for x in X.T)), Q))


def double_integral(kernel: Kernel, P: Any, Q: Any) -> float:
    """The inner product of two embeddings, `∫∫ k(x, y) dP(x) dQ(y)`.

    Example:
        >>> import kernelbayes as kb
        >>> from scipy import stats
        >>> from kernelbayes.kernels._integrals import double_integral
        >>> round(double_integral(kb.Brownian(), stats.uniform(0, 1), stats.uniform(0, 1)), 6)
        0.333333
    """
    P, Q = read_distribution(P, type(kernel).__name__), read_distribution(Q, type(kernel).__name__)
    if P.dimension != Q.dimension:
        raise ValueError(f"P has {P.dimension} columns but Q has {Q.dimension}")
    return float(_integral(kernel, P, Q))


def _integral(kernel: Kernel, P: Distribution, Q: Distribution) -> Any:
    """E k(X, Y): linear in P and in Q, so that mixtures are taken apart first."""
    if isinstance(P, Mixture):
        return sum(w * _integral(kernel, p, Q) for w, p in zip(P.weights, P.components, strict=True))
    if isinstance(Q, Mixture):
        return sum(w * _integral(kernel, P, q) for w, q in zip(Q.weights, Q.components, strict=True))
    kernel._check_width(Q.dimension, "the distribution")
    try:
        return _form(kernel)(kernel, P, Q)
    except OutOfReach:
        kinds = dict.fromkeys(p.kind for p in (P, Q) if p.kind != "independent fixed columns")
        what = f"{type(kernel).__name__} with {' and '.join(kinds)} in {Q.dimension}-d"
        raise NoClosedFormError(f"no closed form is known for {what}") from None


# ------------------------------------------------------------------------------------ one function per kernel


def _gaussian(kernel: Gaussian, P: Simple, Q: Simple) -> Any:
    """Column by column where columns are independent, otherwise for normals only."""
    if P.columns is not None and Q.columns is not None:
        return _over_columns(GaussianProfile, P, Q, kernel.lengthscale)
    if any(c.half > 0 for c in (P.columns or ()) + (Q.columns or ())):
        raise OutOfReach
    return _gaussian_and_normal(kernel, P, Q)


def _gaussian_and_normal(kernel: Gaussian, P: Simple, Q: Simple) -> Any:
    """`|I + S|^(-1/2) exp(-(m - m')' (I + S)^-1 (m - m') / 2)` in units of the lengthscale.

    S is the sum of the covariances; points have none. Rasmussen and Ghahramani (2003), Bayesian Monte Carlo.
    """
    unit = np.broadcast_to(np.asarray(kernel.lengthscale), (Q.dimension,))
    variances, axes = eigh((P.covariance() + Q.covariance()) / np.outer(unit, unit))
    along = ((P.mean() - Q.mean()) / unit) @ axes
    return np.exp(-0.5 * ((along**2 / (1.0 + variances)).sum(-1) + np.log1p(variances).sum()))


def _laplace(kernel: Laplace, P: Simple, Q: Simple) -> Any:
    return _over_columns(LaplaceProfile, P, Q, kernel.lengthscale)


def _matern(kernel: Matern, P: Simple, Q: Simple) -> Any:
    """On the line only, where the Matern kernel of order 1/2 is the Laplace one."""
    if Q.dimension > 1:
        raise OutOfReach
    profile = LaplaceProfile if kernel.nu == 0.5 else functools.partial(MaternProfile, nu=kernel.nu)
    return _over_columns(profile, P, Q, np.asarray(kernel.lengthscale) / math.sqrt(2.0 * kernel.nu))


def _sobolev(kernel: PeriodicSobolev, P: Simple, Q: Simple) -> Any:
    return _over_columns(functools.partial(PeriodicProfile, phi=kernel._factor), P, Q, 1.0)


def _brownian(kernel: Brownian, P: Simple, Q: Simple) -> Any:
    """`(E|X|^2H + E|Y|^2H - E|X - Y|^2H) / 2` on the line. Quadrature notes, example 3."""
    if Q.dimension > 1 or P.columns is None or Q.columns is None:
        raise OutOfReach
    profile = functools.partial(PowerProfile, power=2.0 * np.asarray(kernel.hurst).item())
    (p,), (q,), origin = P.columns, Q.columns, Column(0.0)
    apart = _expectation(profile, p, q)
    return 0.5 * (_expectation(profile, p, origin) + _expectation(profile, q, origin) - apart)


def _linear(kernel: Linear, P: Simple, Q: Simple) -> Any:
    return P.mean() @ Q.mean() + np.asarray(kernel.offset).item()


def _polynomial(kernel: Polynomial, P: Simple, Q: Simple) -> Any:
    """`s E[x.y] + c`, and `s^2 E[(x.y)^2] + 2 s c E[x.y] + c^2` with `E[(x.y)^2] = tr E[xx'] E[yy']`."""
    if kernel.degree > 2:
        raise OutOfReach
    c, s = np.asarray(kernel.offset).item(), np.asarray(kernel.scale).item()
    m, first = P.mean(), P.mean() @ Q.mean()
    if kernel.degree == 1:
        return s * first + c
    moment = Q.covariance() + np.outer(Q.mean(), Q.mean())
    second = ((m @ moment) * m).sum(-1) + (P.covariance() * moment).sum()
    return s * s * second + 2.0 * s * c * first + c * c


def _sum(kernel: Sum, P: Simple, Q: Simple) -> Any:
    return _integral(kernel.left, P, Q) + _integral(kernel.right, P, Q)


def _scaled(kernel: Scaled, P: Simple, Q: Simple) -> Any:
    return np.asarray(kernel.scale).item() * _integral(kernel.kernel, P, Q)


def _on_columns(kernel: Columns, P: Simple, Q: Simple) -> Any:
    return _integral(kernel.kernel, *(_marginal(p, kernel.columns) for p in (P, Q)))


def _marginal(P: Simple, columns: tuple[int, ...]) -> Simple:
    """The distribution of some columns."""
    if max(columns) >= P.dimension:
        raise ValueError(f"the kernel reads columns {columns}, but the distribution has {P.dimension}")
    if P.columns is not None:
        return Independent(tuple(P.columns[j] for j in columns))
    return Normal(P.mean()[list(columns)], P.covariance()[np.ix_(columns, columns)])


def _product(kernel: Product, P: Simple, Q: Simple) -> Any:
    """Of kernels on different columns, where columns are independent: the product of their integrals."""
    seen = [_columns_of(part) for part in (kernel.left, kernel.right)]
    if P.columns is None or Q.columns is None or None in seen or set(seen[0] or ()) & set(seen[1] or ()):
        raise OutOfReach
    return _integral(kernel.left, P, Q) * _integral(kernel.right, P, Q)


def _columns_of(kernel: Kernel) -> tuple[int, ...] | None:
    """The columns that a kernel reads, or None where it reads all."""
    if isinstance(kernel, Columns):
        return kernel.columns
    if isinstance(kernel, Scaled):
        return _columns_of(kernel.kernel)
    if isinstance(kernel, (Product, Sum)):
        left, right = _columns_of(kernel.left), _columns_of(kernel.right)
        return None if left is None or right is None else left + right
    return None


_FORMS: dict[type[Kernel], Callable[[Any, Simple, Simple], Any]] = {
    Brownian: _brownian,
    Columns: _on_columns,
    Gaussian: _gaussian,
    Laplace: _laplace,
    Linear: _linear,
    Matern: _matern,
    PeriodicSobolev: _sobolev,
    Polynomial: _polynomial,
    Product: _product,
    Scaled: _scaled,
    Sum: _sum,
}


def _form(kernel: Kernel) -> Callable[[Any, Simple, Simple], Any]:
    if type(kernel) not in _FORMS:  # not isinstance: a subclass may have another formula
        raise OutOfReach
    return _FORMS[type(kernel)]


def _over_columns(profile: Callable[[float], Profile], P: Simple, Q: Simple, unit: Any) -> Any:
    """The product over independent columns of E phi((x_j - y_j) / unit_j)."""
    if P.columns is None or Q.columns is None:
        raise OutOfReach
    units = np.broadcast_to(np.asarray(unit, dtype=np.float64), (Q.dimension,))
    return math.prod(_expectation(profile, *each) for each in zip(P.columns, Q.columns, units, strict=True))


def _expectation(profile: Callable[[float], Profile], p: Column, q: Column, unit: float = 1.0) -> Any:
    """E phi((x - y) / unit) for x ~ p and y ~ q; `profile(s)` is phi smoothed by a normal of deviation s."""
    t = np.asarray((p.centre - q.centre) / unit)
    phi = profile(float(np.hypot(p.sd, q.sd) / unit))
    g, h = sorted((float(p.half / unit), float(q.half / unit)))
    if h == 0:
        return phi.value(t)
    return phi.box(t, h) if g == 0 else phi.boxes(t, g, h)

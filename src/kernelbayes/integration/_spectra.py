"""Mercer expansions for users: the one that is known, or that of a sample."""

from __future__ import annotations

from typing import Any

from .. import _check
from .._typing import RandomState
from ..features import Recipe
from ..features._sampled_spectrum import SampledSpectrum
from ..kernels import Kernel, check_kernel
from ..kernels._mercer import MercerExpansion, expansion
from ._reading import read_source
from ._source import KnownSource, PointSource


def mercer(
    kernel: Kernel,
    distribution: Any,
    *,
    terms: int = 5000,
    features: Recipe | None = None,
    random_state: RandomState = None,
) -> MercerExpansion | SampledSpectrum:
    r"""Eigenvalues and eigenfunctions of a kernel under a distribution: :math:`k(x, y) = \sum_m \eta_m e_m(x) e_m(y)`.

    Known are the periodic Sobolev kernel under uniforms over a period, the Gaussian kernel under normals of any dimension
    and covariance, and the Brownian kernel under a uniform on [0, T]; other distributions raise `kb.NoClosedFormError`. Of a
    sample of points there is a numerical expansion for every kernel. Both give the leverage density, its effective
    dimension, and draws from it and from determinantal point processes.

    Args:
        kernel: the kernel.
        distribution: a frozen distribution of `scipy.stats`, a list of them (independent columns), or a sample (N, d).
        terms: how many terms of an infinite expansion are held, at most; those below rounding are left out.
        features: representation of a sample; see `kb.quadrature`.
        random_state: seed of the representation.

    Quadrature notes, section 3.1.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> from scipy import stats
        >>> brownian = kb.mercer(kb.Brownian(), stats.uniform(0, 1))
        >>> (brownian.eigenvalues[:2] * np.pi**2).round(3)
        array([4.   , 0.444])
        >>> rate = 0.001**-0.5
        >>> round(brownian.effective_dimension(0.001), 4), round(0.5 * rate * float(np.tanh(rate)), 4)  # a closed form
        (15.8114, 15.8114)
        >>> brownian.sample_dpp(5, random_state=0).shape
        (5, 1)
    """
    check_kernel(kernel)
    source = read_source(distribution)
    if isinstance(source, PointSource):
        return SampledSpectrum(kernel, source.points, source.weights, features=features, random_state=random_state)
    if features is not None:
        raise ValueError("features are for a sample of points; an expansion that is known needs none")
    known = source.distribution if isinstance(source, KnownSource) else distribution
    return expansion(kernel, known, _check.count(terms, "terms"))

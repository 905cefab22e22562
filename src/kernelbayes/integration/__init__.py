"""Integrals from few evaluations: quadrature rules with a known worst-case error, and Bayesian quadrature."""

from ..features._sampled_spectrum import SampledSpectrum
from ..kernels._mercer import MercerExpansion
from ._integrate import Integral, integrate
from ._rule import QuadratureRule, QuadratureWarning, quadrature
from ._spectra import mercer

__all__ = [
    "Integral",
    "MercerExpansion",
    "QuadratureRule",
    "QuadratureWarning",
    "SampledSpectrum",
    "integrate",
    "mercer",
    "quadrature",
]

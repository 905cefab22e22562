"""Integrals from few evaluations: quadrature rules with a known worst-case error, and Bayesian quadrature."""

from ..features._sampled_spectrum import SampledSpectrum
from ..kernels._mercer import MercerExpansion
from ._integral import Integral
from ._integrate import integrate
from ._quadrature import quadrature
from ._rule import QuadratureRule, QuadratureWarning
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

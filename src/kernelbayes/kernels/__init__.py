"""Kernels: classes, composition, bandwidths, and integrals in closed form."""

from ._bandwidth import median_lengthscale
from ._base import (
    Columns,
    Kernel,
    Product,
    Scaled,
    Sum,
    check_kernel,
    dense_gram,
    gram_blocks,
    matmul,
)
from ._composite import FunctionKernel, MappedKernel, PrecomputedKernel, SetKernel
from ._discrete import Delta, HistogramIntersection, SpatialPyramid
from ._interval import Brownian, PeriodicSobolev
from ._parameters import nonnegative, positive, unit_interval
from ._product import InfinitePolynomial, Linear, Polynomial
from ._stationary import Gaussian, Laplace, Matern, RationalQuadratic

__all__ = [
    "Brownian",
    "Columns",
    "Delta",
    "FunctionKernel",
    "Gaussian",
    "HistogramIntersection",
    "InfinitePolynomial",
    "Kernel",
    "Laplace",
    "Linear",
    "MappedKernel",
    "Matern",
    "PeriodicSobolev",
    "Polynomial",
    "PrecomputedKernel",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "SetKernel",
    "SpatialPyramid",
    "Sum",
    "check_kernel",
    "dense_gram",
    "gram_blocks",
    "matmul",
    "median_lengthscale",
    "nonnegative",
    "positive",
    "unit_interval",
]

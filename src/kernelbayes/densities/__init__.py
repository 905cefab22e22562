"""Conditional densities whose points move: location, scale, dependence and shape, each chosen by left-out rows."""

from ._conditional_density import ConditionalDensity

__all__ = ["ConditionalDensity"]

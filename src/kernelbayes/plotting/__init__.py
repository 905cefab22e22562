"""Figures. Matplotlib is imported on use, and so is this package: by `plot` methods, the demos and the command line."""

from ._calibration import calibration
from ._classes import balance, class_map, input_relevance, reliability
from ._embeddings import conditional_density, posterior_densities
from ._learning import learning
from ._parameters import pairs, predictive, relevance
from ._quadrature import integral, quadrature_nodes
from ._regression import coverage, function_band
from ._style import ACCENT, FAINT, GOLD, GREEN, INK, PURPLE, SECOND, name_axes, new_figure
from ._tracks import track, track_plane

__all__ = [
    "ACCENT",
    "FAINT",
    "GOLD",
    "GREEN",
    "INK",
    "PURPLE",
    "SECOND",
    "balance",
    "calibration",
    "class_map",
    "conditional_density",
    "coverage",
    "function_band",
    "input_relevance",
    "integral",
    "learning",
    "name_axes",
    "new_figure",
    "pairs",
    "posterior_densities",
    "predictive",
    "quadrature_nodes",
    "relevance",
    "reliability",
    "track",
    "track_plane",
]

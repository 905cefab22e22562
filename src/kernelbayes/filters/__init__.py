"""Filters: the state of a system over time, from examples of states and observations."""

from ._bayes_filter import KernelBayesFilter
from ._belief import Belief
from ._monte_carlo import KernelMonteCarloFilter
from ._track import Track, TrackDiagnostics, TrackScore

__all__ = ["Belief", "KernelBayesFilter", "KernelMonteCarloFilter", "Track", "TrackDiagnostics", "TrackScore"]

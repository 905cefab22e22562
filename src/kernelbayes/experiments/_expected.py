"""Warnings that an experiment expects, and that would only hide its result among thousands of lines."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..embeddings import PosteriorWarning
from ..integration import QuadratureWarning
from ..learning import BoundWarning


@contextmanager
def expected_warnings() -> Iterator[None]:
    """Without doubts about single posteriors and integrals, and about choices at the edge of what was searched."""
    with warnings.catch_warnings():
        for kind in (PosteriorWarning, BoundWarning, QuadratureWarning):
            warnings.simplefilter("ignore", kind)
        yield

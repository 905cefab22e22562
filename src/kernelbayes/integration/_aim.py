"""What the nodes of a quadrature rule have to meet: the embedding of a distribution under a kernel, and its spectrum."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..embeddings import AnalyticEmbedding, Embedding, MeanEmbedding
from ..features import Recipe, Subspace, default_recipe
from ..features._herding import Pool
from ..features._landmark import EXACT_POINTS
from ..features._sampled_spectrum import SampledSpectrum
from ..kernels import Kernel
from ..kernels._distributions import NoClosedFormError
from ..kernels._mercer import MercerExpansion
from ..kernels._spectrum import Spectrum
from ._source import KnownSource, PointSource, Source

# Size of the subspace on which the spectrum of a large pool is found, in nodes, and at least.
_SUBSPACE_PER_NODE, _SMALLEST_SUBSPACE = 4, 400


class Aim:
    """The embedding of a distribution under a kernel: what the nodes have to meet."""

    def __init__(self, source: Source, kernel: Kernel):
        self.source, self.kernel = source, kernel
        self.embedding, self.origin = self._embedded()
        self._spectra: dict[Any, Spectrum] = {}

    def _embedded(self) -> tuple[Embedding, str]:
        if isinstance(self.source, KnownSource):
            try:
                return AnalyticEmbedding(self.source.distribution, self.kernel), "closed form"
            except NoClosedFormError:
                pass
        points, weights, name = self.source.stand_in()
        return MeanEmbedding(points, weights, self.kernel), name

    @functools.cached_property
    def norm_squared(self) -> float:
        """The squared norm of the embedding."""
        if isinstance(self.embedding, MeanEmbedding):
            w = self.embedding.weights
            return float(w @ Pool((self.kernel, self.embedding.points)).embed(w))
        return self.embedding._inner(self.embedding)

    @functools.cached_property
    def stand_in_error(self) -> float:
        """How far half of the points that stand for the distribution are from all of them; 0 where none do."""
        if not isinstance(self.embedding, MeanEmbedding) or isinstance(self.source, PointSource):
            return 0.0
        points, w = self.embedding.points, self.embedding.weights
        half = np.where(np.arange(len(w)) < len(w) // 2, 2.0 * w, 0.0) - w
        return float(np.sqrt(max(half @ Pool((self.kernel, points)).embed(half), 0.0)))

    @functools.cached_property
    def expansion(self) -> MercerExpansion | None:
        """The Mercer expansion, where it is known."""
        return self.source.expansion(self.kernel)

    def spectrum(self, n: int, seed: int, features: Recipe | None = None) -> Spectrum:
        """The Mercer expansion, or the spectrum of a pool from which n nodes are to be chosen."""
        if self.expansion is not None and features is None:
            return self.expansion
        if (n, seed) not in self._spectra:
            self._spectra = {(n, seed): self._of_pool(n, seed, features)}
        return self._spectra[n, seed]

    def _of_pool(self, n: int, seed: int, features: Recipe | None) -> SampledSpectrum:
        points, weights = self.source.pool(n, seed)
        if features is None and len(points) > EXACT_POINTS:
            features = Subspace(max(_SUBSPACE_PER_NODE * n, _SMALLEST_SUBSPACE))
        features = default_recipe(len(points)) if features is None else features
        return SampledSpectrum(self.kernel, points, weights, features=features, random_state=seed)

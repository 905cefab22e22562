r"""The kernel sum rule: push a distribution of x through a conditional embedding.

Song et al. (2013); Gebhardt et al. (2015), equations 6 and 17.

.. math:: \mu_Y^\pi = \mathcal C_{Y|X}\, \mu_X^\pi, \qquad \gamma = (K + n \lambda I)^{-1} \tilde K \alpha

| paper | here |
|---|---|
| prior weights alpha on points x~ | `prior_weights` |
| `K~`, between sample and prior points, or their features | `prior_coordinates` |
| gamma | returned weights on the sample |
"""

from __future__ import annotations

from .._linalg import Gram
from .._typing import AnyArray
from .conditional import weights


def push(gram: Gram, factor: AnyArray, prior_coordinates: AnyArray, prior_weights: AnyArray) -> AnyArray:
    """Weights (n,) on the sample of y. Linear in the prior, so its mean coordinates are all that is needed."""
    mean = prior_weights[None, :] @ prior_coordinates
    return weights(gram, factor, mean)[0]

r"""The kernel sum rule: push a distribution of x through a conditional embedding.

Song et al. (2013); Gebhardt et al. (2015), equations 6 and 17.

.. math:: \mu_Y^\pi = \mathcal C_{Y|X}\, \mu_X^\pi, \qquad \gamma = (K + n \lambda I)^{-1} \tilde K \alpha

| paper | here |
|---|---|
| `K~ alpha`: the prior's embedding at the sample, or its features' mean | `mean` |
| gamma | returned weights on the sample |
"""

from __future__ import annotations

from .._linalg import Gram
from .._typing import AnyArray
from .conditional import weights


def push(gram: Gram, factor: AnyArray, mean: AnyArray) -> AnyArray:
    """Weights (n,) on the sample of y, from the mean (r,) of the coordinates of x under the prior."""
    return weights(gram, factor, mean[None, :])[0]

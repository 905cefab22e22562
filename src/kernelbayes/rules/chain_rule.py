r"""The kernel chain rule: the joint embedding of (y, x) from a conditional and a prior of x, in both its forms.

Song et al. (2013); Gebhardt et al. (2015), equations 8 and 19, and 9.

.. math:: \mathcal C_{YX}^\pi = \mathcal C_{Y|X}\, \mathcal C_{XX}^\pi
          = \Upsilon (K + n\lambda I)^{-1} \tilde K \,\mathrm{diag}(\alpha)\, \tilde\Phi^\top
          \qquad\text{(second order)}

.. math:: \mathcal C_{YX}^\pi = \mathcal C_{(YX)|X}\, \mu_X^\pi
          = \Upsilon\, \mathrm{diag}\big((K + n\lambda I)^{-1} \tilde K \alpha\big)\, \Phi^\top
          \qquad\text{(third order)}

The first pairs the sample's y with the prior's points, the second with the sample's own x.
"""

from __future__ import annotations

from .._linalg import Gram
from .._typing import AnyArray
from .conditional import weights


def second_order(gram: Gram, factor: AnyArray, prior_coordinates: AnyArray, prior_weights: AnyArray) -> AnyArray:
    """Coefficients (n, m) on the pairs (y_i, x~_j); the third-order form is diagonal, with the weights of the sum rule."""
    return weights(gram, factor, prior_coordinates).T * prior_weights

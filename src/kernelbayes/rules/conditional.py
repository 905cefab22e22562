r"""The conditional mean embedding: regression of feature functions on feature functions.

Song et al. (2009); Hsu (2019), section 2.6, definitions 2.25-2.26; Gebhardt et al. (2015), equations 5 and 16.

.. math:: \hat\mu_{Y|x} = \sum_i w_i(x)\, \ell(y_i, \cdot), \qquad w(x) = (K + n \lambda I)^{-1} k(x)
                        = F (F^\top F + n \lambda I)^{-1} f(x)

| paper | here |
|---|---|
| `K`, `k(x)`, or `F`, `f(x)` | `gram`, `coordinates` |
| lambda, per sample | `reg` |
"""

from __future__ import annotations

from .._linalg import Gram, cholesky, solve
from .._typing import AnyArray


def operator(core: AnyArray, n: float, reg: AnyArray) -> AnyArray:
    """Cholesky factor of `F' F + n reg I` (or `K + n reg I`): all of the operator that does not depend on x."""
    return cholesky(core, "the regularised Gram matrix", n * reg)


def complete(weights: AnyArray, total: AnyArray = 1.0, base: AnyArray | None = None) -> AnyArray:
    """Spread what weights lack of their total over the sample: shrinkage towards the marginal, not towards zero.

    Evenly, or as `base`, weights that sum to one, says. The same as regressing features about their mean and adding the
    mean again.
    """
    lacking = total - weights.sum(-1, keepdims=True)
    return weights + (lacking / weights.shape[-1] if base is None else lacking * base)


def weights(gram: Gram, factor: AnyArray, coordinates: AnyArray) -> AnyArray:
    """Weights (t, n) on the sample for points given by their coordinates (t, r)."""
    return gram.scatter(solve(factor, coordinates.T).T)

r"""The family of kernel Bayes' rules: joint x evidence x inverse.

From pairs (x_i, z_i), a prior embedding :math:`\sum_j \tilde w_j \ell(\cdot, \tilde z_j)` and an observation x, each rule
estimates the posterior operator :math:`\mathcal C_{ZX}\, \mathcal C_{XX}^{-1}`. With F the features of the x_i, both
operators are those of a *weighted sample of features of x*, of which there are two:

| sample | features | weights | stands on |
|---|---|---|---|
| the pairs, reweighted (third order) | F | :math:`\gamma = A \tilde w`, signed or cut at zero | training z_i |
| the prior, seen through the likelihood (second order) | A' F | :math:`\tilde w` | prior points z~_j |

where :math:`A = (L + n \eta I)^{-1} \tilde L`, so that row j of `A' F` is the conditional mean of f(x) at z~_j. With
joint sample (G, v) and evidence `E = H' diag(u) H` of sample (H, u), the posterior weights are

.. math:: w(x) = \mathrm{diag}(v)\, G\, (E + \epsilon I)^{-1} f(x)
          \quad\text{or}\quad \mathrm{diag}(v)\, G\, (E^2 + \epsilon I)^{-1} E f(x).

| rule | joint | evidence | inverse | source |
|---|---|---|---|---|
| `iw` | pairs, cut at zero | pairs, cut at zero | plain | Xu et al. (2022), Algorithm 1 |
| `kbr` = (b)-II | pairs | pairs | squared | Fukumizu et al. (2013); Kanagawa (2016), Algorithm 1 |
| `kbr-b1` | pairs | pairs | plain | Hsu (2019), table 5.1 |
| `kbr-a1`, `kbr-a2` | prior | pairs | plain, squared | Hsu (2019), table 5.1 |
| `dmo` | prior | prior | plain | Hsu (2019), theorem 5.5 |
| `subspace` | prior | prior | squared | Gebhardt et al. (2015), equation 23 |

The regulariser is added to an operator whose trace is about the mean of k(x, x) when the prior's weights sum to one. So
`reg` is lambda of Xu et al. (with gamma as here, without their printed factor n), delta of Kanagawa, epsilon of Hsu
(whose `m epsilon` and `m^2 epsilon` come from prior weights of 1 instead of 1/m) and gamma of Gebhardt et al. (whose lambda
is n eta). The squared inverse acts on squared eigenvalues: its regulariser has another scale than the plain one's.

When the prior is the training sample and eta goes to zero, A becomes the identity and the rules with a plain inverse the
conditional embedding `(K + n e I)^-1 k(x)` (Hsu, theorem 5.9). Section 5.7 says so of all rules, but those with a squared
inverse become `K (K^2 + n^2 e I)^-1 k(x)`.

Why these forms: :math:`D K ((D K)^2 + \epsilon I)^{-1} D k(x) = D F (C^2 + \epsilon I)^{-1} C f(x)`, `C = F' D F`, is
symmetric, as small as the rank, and inverts nothing that may be singular. Equation 23 of Gebhardt et al. is the squared
form with `H = A' F`, `A` computed in their subspace: push-through with `P = Gb' F` turns
`P ((P' Dp P)^2 + e I)^-1 P' Dp P f` into `E Dp ((E Dp)^2 + e I)^-1 Gb' k`, their `E = P P'`.
"""

from __future__ import annotations

from typing import NamedTuple

from .._backend import namespace
from .._linalg import Gram, LowRank, WeightedRidge, cholesky, condition, lu, lu_solve, solve, solve_stack
from .._typing import AnyArray


class Rule(NamedTuple):
    """One member of the family; each field is a column of the table above."""

    joint: str  # "pairs" or "prior"
    evidence: str  # "pairs" or "prior"
    inverse: str  # "plain" or "squared"
    truncated: bool = False  # cut the weights of the pairs at zero


RULES = {
    "iw": Rule("pairs", "pairs", "plain", truncated=True),
    "kbr": Rule("pairs", "pairs", "squared"),
    "kbr-a1": Rule("prior", "pairs", "plain"),
    "kbr-a2": Rule("prior", "pairs", "squared"),
    "kbr-b1": Rule("pairs", "pairs", "plain"),
    "dmo": Rule("prior", "prior", "plain"),
    "subspace": Rule("prior", "prior", "squared"),
}


class Sample(NamedTuple):
    """Features of x, as the Gram matrix of their points, and one signed weight for each point."""

    gram: Gram
    weights: AnyArray


def through_likelihood(
    features: AnyArray, latent_gram: Gram, latent_factor: AnyArray, prior_coordinates: AnyArray
) -> LowRank:
    """`A' F`: the conditional mean of the features F (n, r) of x at each point of the prior."""
    return LowRank(prior_coordinates @ solve(latent_factor, latent_gram.gather(features)))


class Operator:
    """The posterior operator of a rule for one prior: everything that does not depend on the observation.

    `positive` says that the weights are known to be non-negative, which allows a Cholesky factor and the dual form.
    """

    def __init__(self, joint: Sample, evidence: Sample, inverse: str, reg: AnyArray, *, positive: bool = False):
        self.joint, self._reg = joint, reg
        self._ridge: WeightedRidge | None = None
        self._squared = False
        if positive and inverse == "plain" and joint is evidence:
            self._ridge = WeightedRidge(joint.gram, joint.weights, reg)
            return
        E = evidence.gram.weighted_core(evidence.weights)
        eye = namespace(E).eye(len(E))
        self._evidence, self._squared = E, inverse == "squared"
        self._matrix = E @ E.T + reg * eye if self._squared else E + reg * eye
        name = "the regularised evidence operator"
        self._factor = cholesky(self._matrix, name) if self._squared else lu(self._matrix, name)

    def weights(self, coordinates: AnyArray) -> AnyArray:
        """Weights (t, p) on the points of the joint sample, for observations given by their coordinates (t, r)."""
        if self._ridge is not None:
            return self._ridge.weights(coordinates)
        if self._squared:
            solved = solve(self._factor, self._evidence @ coordinates.T)
        else:
            solved = lu_solve(self._factor, coordinates.T)
        return self.joint.gram.scatter(solved.T) * self.joint.weights

    def retention(self) -> float:
        """The share of the weights that the regulariser leaves, were the evidence operator of rank one."""
        evidence, reg = self._evidence if self._ridge is None else self._ridge.matrix, float(self._reg)
        trace = max(float(evidence.trace()), 0.0)
        trace = trace**2 if self._squared else trace
        return trace / (trace + reg)

    def condition(self) -> float:
        """Estimated condition number of the matrix that was solved with."""
        if self._ridge is not None:
            return self._ridge.condition()
        return condition(self._matrix, self._factor)


def coefficients(evidence: AnyArray, inverse: str, reg: AnyArray, coordinates: AnyArray) -> AnyArray:
    """`(E + e I)^-1 f` or `(E^2 + e I)^-1 E f` (t, r), for each of a stack of evidence operators (t, r, r).

    With the joint sample (G, v) the posterior's weights are `v * (G @ coefficients)`. The same as an `Operator` of each, and
    quicker for many small ones.
    """
    shift = reg * namespace(evidence).eye(evidence.shape[-1])
    name = "the regularised evidence operator"
    if inverse == "plain":
        return solve_stack(evidence + shift, coordinates, name)
    right = (evidence @ coordinates[..., None])[..., 0]
    return solve_stack(evidence @ evidence + shift, right, name)

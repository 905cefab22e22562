r"""The correction of a filter: a rule of `rules.bayes` with everything that does not change between steps made beforehand.

A prior comes as its coordinates :math:`\nu` and, for rules whose posterior stands on the prior's own points, as the inputs
c of the transition that made it: its weights there are `v = V c`. With :math:`\gamma = \Gamma \nu` the weights of the pairs,
the joint and the evidence of a rule are samples of features of x (see `rules.bayes`), each linear in :math:`\nu` or c.

Constant time (Gebhardt et al. 2015, sections 3.1 and 3.4). With g(a) = M' h(a) the expected features of x in state a, the
rules "dmo" and "subspace" need of the m prior points only :math:`\sum_j v_j\, h^+(a_j)\, g(a_j)^\top` with
:math:`h^+ = (h, 1, z)`, which is linear in c: a tensor of at most k (r + 1 + d) r numbers made beforehand gives the evidence
and the posterior mean at a cost without m. It is exact: no projection of the weights on reference points is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._linalg import Dense, Gram, LowRank, OuterProducts, row_space
from .._typing import Array
from ..rules.bayes import RULES, Operator, Sample, coefficients, through_likelihood
from ..rules.conditional import complete, operator
from ._dynamics import Transition, held, longest

# Numbers held at most for the cores of many sequences at once, and for the tensor of the constant-time filter.
_MOST_PRODUCTS, _MOST_TENSOR = 2**24, 2**25
# Sum of the weights below which an observation is taken as missing.
_LEAST_TOTAL = 1e-4
# Share of their absolute sum that weights of both signs must sum to, after a ratio, for anything to be left of them.
_LEAST_LEFT = 1 / 3
# A prior is carried by the tensor where its points outnumber the coordinates so many times.
_CARRIED = 4


class Prior(NamedTuple):
    """Beliefs about the state before an observation, one for each of t sequences."""

    mean: Array  # (t, r) coordinates
    weights: Array | None = None  # (t, p) on all points, where they were given
    inputs: Array | None = None  # (t, k) of the transition, from which the weights follow otherwise
    ratio: Array | None = None  # (t, p) by which the weights on all points are multiplied, where more is known


class Corrected(NamedTuple):
    """Beliefs after an observation."""

    mean: Array  # (t, r) coordinates
    total: Array  # (t,) sum of the weights as the rule gives them
    weights: Array | None  # (t, p) on all points; None where they are not formed
    moments: Array | None = None  # (t, d): means of z, where the weights are not formed
    factors: tuple[Array, Array, Array] | None = None  # from which the weights can be formed


def normalised(weights: Array, base: Array, how: str | None) -> tuple[Array, Array]:
    """Weights (t, n) that sum to one, and their sums before; those that sum to next to nothing become the prior's."""
    total = weights.sum(1)
    if how is None:
        return weights, total
    empty = _says_nothing(total)
    out = complete(weights, 1.0, base) if how == "prior" else weights / np.where(empty, 1.0, total)[:, None]
    return (np.where(empty[:, None], base, out) if empty.any() else out), total


def multiplied(weights: Array, ratio: Array) -> Array:
    """Weights (t, n) times a ratio, to a sum of one; as they were where their signs leave next to nothing of the product."""
    product = weights * ratio
    total = product.sum(1, keepdims=True)
    left = total > np.maximum(_LEAST_TOTAL, _LEAST_LEFT * np.abs(product).sum(1, keepdims=True))
    return np.where(left, product / np.where(left, total, 1.0), weights)


def _says_nothing(total: Array) -> Array:
    """Whether an observation is so far from all that was seen that dividing by the sum of the weights would be absurd."""
    return ~(total > _LEAST_TOTAL)


class PairsCorrection:
    """Rules whose posterior stands on the training pairs: "iw", "kbr" and "kbr-b1"."""

    def __init__(self, rule: str, gram: Gram, H: Array, ratio: Array, reg: Array | float, normalise: str | None):
        self.rule, self._name = RULES[rule], rule
        self.gram, self.H, self.ratio, self.reg = gram, H, ratio, reg
        self.normalise, self._longest, self._even = normalise, longest(H), H.mean(0)
        self._products: OuterProducts | None = None

    def gamma(self, mean: Array, ratio: Array | None = None) -> Array:
        """Weights (t, n) of the pairs under priors given by their coordinates, and by a ratio at all points if any."""
        gamma = mean @ self.ratio.T
        if ratio is not None:
            product = gamma * ratio[:, : gamma.shape[1]]
            gamma = np.where((product > 0.0).any(1, keepdims=True), product, gamma)
        if self.rule.truncated:
            gamma = np.maximum(gamma, 0.0)
        if self.normalise is None and ratio is None:
            return gamma
        total = gamma.sum(1, keepdims=True)
        lost = ~(np.abs(total) > 1e-12)
        gamma = np.where(lost, 1.0 / gamma.shape[1], gamma / np.where(lost, 1.0, total))
        share = held(gamma @ self.H, self._even, self._longest)
        return share * gamma + (1.0 - share) / gamma.shape[1]

    def __call__(self, prior: Prior, f: Array) -> Corrected:
        """Beliefs after observations with coordinates f (t, q)."""
        gamma = self.gamma(prior.mean, prior.ratio)
        raw = self._many(gamma, f) if self._stacked(len(f)) else self._one_by_one(gamma, f)
        weights, total = normalised(raw, gamma, self.normalise)
        mean = weights @ self.H
        if self.normalise is not None:
            base = gamma @ self.H
            share = held(mean, base, self._longest)
            weights, mean = share * weights + (1.0 - share) * gamma, share * mean + (1.0 - share) * base
        return Corrected(mean, total, weights)

    def _stacked(self, t: int) -> bool:
        return t > 1 and isinstance(self.gram, LowRank) and OuterProducts.size(self.gram.factor) <= _MOST_PRODUCTS

    def _many(self, gamma: Array, f: Array) -> Array:
        assert isinstance(self.gram, LowRank)
        if self._products is None:
            self._products = OuterProducts(self.gram.factor)
        reg = np.reshape(self.reg, (-1, 1, 1))
        found = coefficients(self._products.weighted_cores(gamma), self.rule.inverse, reg, f)
        return gamma * self.gram.scatter(found)

    def _one_by_one(self, gamma: Array, f: Array) -> Array:
        out = np.zeros_like(gamma)
        regs = np.broadcast_to(self.reg, len(f))
        for i, (weights, at) in enumerate(zip(gamma, f, strict=True)):
            rows = np.flatnonzero(weights) if self.rule.truncated else slice(None)
            sample, x = Sample(_rows(self.gram, rows), weights[rows]), _at_rows(self.gram, at, rows)
            found = Operator(sample, sample, self.rule.inverse, float(regs[i]), positive=self.rule.truncated)
            out[i, rows] = found.weights(x[None])[0]
        return out


def _rows(gram: Gram, rows: Array | slice) -> Gram:
    """The Gram matrix of some of the points."""
    if isinstance(gram, Dense):
        return Dense(gram.matrix[rows][:, rows])
    assert isinstance(gram, LowRank)
    return LowRank(gram.factor[rows])


def _at_rows(gram: Gram, f: Array, rows: Array | slice) -> Array:
    return f[rows] if isinstance(gram, Dense) else f


class PriorCorrection:
    """Rules whose posterior stands on the prior's points, the states after: "dmo", "subspace", "kbr-a1", "kbr-a2"."""

    def __init__(
        self,
        rule: str,
        gram: LowRank,
        H: Array,
        prior_reg: float,
        reg: Array | float,
        normalise: str | None,
        transition: Transition,
        after: Array,
        ratio: Array,
    ):
        self.rule, self.reg, self.normalise = RULES[rule], reg, normalise
        self.transition, self.ratio, self._after, self._longest = transition, ratio, after, longest(after)
        latent = LowRank(H)
        L = operator(latent.core(), len(H), prior_reg)
        expected = through_likelihood(gram.factor, latent, L, np.eye(H.shape[1])).factor  # M (r, q)
        self.gram = gram
        self._basis = row_space(expected) if self._own_evidence and expected.shape[0] < expected.shape[1] else None
        self._expected = expected if self._basis is None else expected @ self._basis
        self.joint = LowRank(after @ self._expected)
        self._products: OuterProducts | None = None
        self._tensor: tuple[Array, Array] | None = None

    @property
    def _own_evidence(self) -> bool:
        return self.rule.evidence == "prior"

    def seen(self, f: Array) -> Array:
        """Coordinates of observations in the row space of the expected features: nothing else matters to the rule."""
        return f if self._basis is None else f @ self._basis

    @property
    def carries(self) -> bool:
        """Whether priors are carried by the tensor, at a cost that does not grow with the number of transitions."""
        m, k = self.transition.map.shape
        size = k * (self._after.shape[1] + 1 + self._moments_of) * self._expected.shape[1]
        return self._own_evidence and m > _CARRIED * k and size <= _MOST_TENSOR and self.normalise is not None

    @property
    def _moments_of(self) -> int:
        points = self.transition.log.points
        return points.shape[1] if points.ndim == 2 and points.dtype.kind == "f" else 0

    def __call__(self, prior: Prior, f: Array) -> Corrected:
        """Beliefs after observations with coordinates f (t, q)."""
        f = self.seen(f)
        if prior.inputs is not None and prior.ratio is None and self.carries:
            return self._carried(prior.inputs, f)
        v, mean = self._on_states_after(prior)
        sample = self.joint if self._own_evidence else self.gram
        shares = v if self._own_evidence else mean @ self.ratio.T
        if len(f) > 1 and OuterProducts.size(sample.factor) <= _MOST_PRODUCTS:
            raw = self._many(v, shares, sample, f)
        else:
            raw = self._one_by_one(v, shares, sample, f)
        weights, total = normalised(raw, v, self.normalise)
        after = weights @ self._after
        if self.normalise is not None:
            share = held(after, mean, self._longest)
            weights, after = share * weights + (1.0 - share) * v, share * after + (1.0 - share) * mean
        return Corrected(after, total, self._on_points(weights))

    def _many(self, v: Array, shares: Array, sample: LowRank, f: Array) -> Array:
        if self._products is None:
            self._products = OuterProducts(sample.factor)
        evidence, reg = self._products.weighted_cores(shares), np.reshape(self.reg, (-1, 1, 1))
        return v * self.joint.scatter(coefficients(evidence, self.rule.inverse, reg, f))

    def _one_by_one(self, v: Array, shares: Array, sample: LowRank, f: Array) -> Array:
        raw, regs = np.empty_like(v), np.broadcast_to(self.reg, len(f))
        for i, x in enumerate(f):
            joint, evidence = Sample(self.joint, v[i]), Sample(sample, shares[i])
            raw[i] = Operator(joint, evidence, self.rule.inverse, float(regs[i])).weights(x[None])[0]
        return raw

    def _on_states_after(self, prior: Prior) -> tuple[Array, Array]:
        """Weights (t, m) of priors on the states after, and their means (t, r)."""
        if prior.inputs is not None:
            v = self.transition.weights(prior.inputs)
        else:
            assert prior.weights is not None
            v = prior.weights[:, self.transition.log.after]
        if prior.ratio is None:
            return v, prior.mean
        v = multiplied(v, prior.ratio[:, self.transition.log.after])
        return v, v @ self._after

    def _on_points(self, weights: Array) -> Array:
        log = self.transition.log
        out = np.zeros((len(weights), len(log.points)))
        out[:, log.after] = weights
        return out

    # ------------------------------------------------------------------------------- at a cost without the number of points

    def _make_tensor(self) -> tuple[Array, Array]:
        """(k, r + 1 + d, q) for `sum_j v_j h+(a_j) g(a_j)'`, and (k, r + 1 + d) for `sum_j v_j h+(a_j)`."""
        log, V, G = self.transition.log, self.transition.map, self.joint.factor
        left = [self._after, np.ones((len(V), 1))]
        if self._moments_of:
            left.append(log.points[log.after])
        extended = np.concatenate(left, axis=1)
        return np.stack([(extended * V[:, [i]]).T @ G for i in range(V.shape[1])]), V.T @ extended

    def _carried(self, inputs: Array, f: Array) -> Corrected:
        if self._tensor is None:
            self._tensor = self._make_tensor()
        tensor, means = self._tensor
        k, rows, q = tensor.shape
        r = self._after.shape[1]
        P = (inputs @ tensor.reshape(k, -1)).reshape(-1, rows, q)
        found = coefficients(self._expected.T @ P[:, :r], self.rule.inverse, np.reshape(self.reg, (-1, 1, 1)), f)
        raw, prior = (P @ found[..., None])[..., 0], inputs @ means
        total = raw[:, r]
        own, base = self._shares(total, prior[:, r])
        share = held((own * raw + base * prior)[:, :r], prior[:, :r], self._longest)
        own, base = share * own, share * base + (1.0 - share)
        out = own * raw + base * prior
        return Corrected(out[:, :r], total, None, out[:, r + 1 :], (inputs, own * found, base))

    def uncorrected(self, mean: Array, inputs: Array) -> Corrected:
        """Beliefs without an observation, carried in the same way."""
        if self._tensor is None:
            self._tensor = self._make_tensor()
        prior = inputs @ self._tensor[1]
        nothing = np.zeros((len(mean), self.joint.factor.shape[1]))
        r = self._after.shape[1]
        none = np.full(len(mean), np.nan)
        factors = (inputs, nothing, np.ones((len(mean), 1)))
        return Corrected(mean, none, None, prior[:, r + 1 :], factors)

    def _shares(self, total: Array, prior_total: Array) -> tuple[Array, Array]:
        """How much (t, 1) of the rule's weights and of the prior's make up the posterior."""
        one, empty = np.ones_like(total), _says_nothing(total)
        if self.normalise == "prior":
            own, base = one, (1.0 - total) / prior_total
        else:
            own, base = 1.0 / np.where(empty, 1.0, total), 0.0 * one
        own, base = np.where(empty, 0.0, own), np.where(empty, 1.0, base)
        return own[:, None], base[:, None]

    def formed(self, factors: tuple[Array, Array, Array]) -> Array:
        """The weights (t, p) on all points that belong to a carried posterior."""
        inputs, found, base = factors
        return self._on_points(self.transition.weights(inputs) * (self.joint.scatter(found) + base))

r"""Deconditional means: f of x, learned from pairs (x, y) and, apart from them, from pairs (y~, z~) of the task.

Hsu (2019), sections 5.4 and 5.5. With f a function of x and :math:`g(y) = E[f(X) | Y = y]`, targets of the task tell
about f only through g. Let F, G and G~ be coordinates of x, y and y~ (:math:`K = F F^\top`, :math:`L = G G^\top`,
:math:`\tilde L = G \tilde G^\top`), and w the weights of f, with a standard normal prior. Then

.. math:: \tilde z = \tilde G B^\top w + e, \qquad B = F^\top G P^{-1}, \qquad P = G^\top G + \tau I, \qquad
          e \sim \mathcal N(0, \Sigma), \quad \Sigma = \sigma^2 I + \tau\, \tilde G P^{-1} \tilde G^\top

since row j of :math:`\tilde G B^\top` is the conditional mean of the features of x at y~_j, and the second part of
:math:`\Sigma` is what is not known about g. It is left out where g is taken at its most probable ("map"). Then the mean of
f is the deconditional mean embedding. With :math:`P = R R^\top`, :math:`V = F^\top G R^{-\top}`,
:math:`H = R^{-1} \tilde G^\top \tilde G R^{-\top}` and :math:`E = \sigma^2 I + \tau H`,

.. math:: Q = I + V H E^{-1} V^\top, \qquad \bar w = Q^{-1} V E^{-1} R^{-1} \tilde G^\top \tilde z, \qquad
          \mathrm{cov}(w) = Q^{-1}

needs the task's m points only in the sums :math:`\tilde G^\top \tilde G`, :math:`\tilde G^\top \tilde z`: this is
definition 5.8 (`Primal`). For few points the covariance :math:`S` (m x m) of z~ is factorised instead: definition 5.7
(`Dual`). By Woodbury's identity they are the same. Where the coordinates of the mediator miss some of the variance of g
at the task's points, its mean is added to the noise: it is another thing that is not known about g.

| paper | here |
|---|---|
| `sigma^2` in theorem 5.7, both times | `Noise.task`, sigma^2, and `Noise.spread`, tau: the paper has them equal |
| lambda, epsilon of definitions 5.7 and 5.8 | `spread = n lambda`, `task = m epsilon`, and `uncertain=False` |
| `Sigma`, full or by MAP (theorem 5.7, 4) | `uncertain=True`, `False` |
| `beta`, `gamma` | scales of the kernels, within their coordinates |
| `Phi A` (p x m) | `V H_root`, with `A = (L + tau I)^-1 L~` |
| `p(z~)`, theorem 5.7 (3) and the alternative of (4) | `log_marginal` of a posterior |

Cost: O(n (p^2 + q^2) + m q^2 + q^3 + p^3), once; the paper's are O(n^3 + m^3) and O(n^3 + n^2 m).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .._backend import namespace
from .._linalg import Gram, cholesky, lu, lu_solve, solve, solve_lower
from .._typing import AnyArray

_NAME = "the regularised Gram matrix of the mediator"


class Transfer(NamedTuple):
    """What the pairs (x, y) say, whatever the task: from coordinates of y to those of x."""

    root: AnyArray  # R (q, q), P = R R'
    across: AnyArray  # V (p, q)

    def map(self) -> AnyArray:
        """`B` (p, q): the conditional mean of the features of x at y is `B g(y)`."""
        return solve_lower(self.root, self.across.T, transposed=True).T


def transfer(F: AnyArray, G: AnyArray, spread: AnyArray) -> Transfer:
    """From the coordinates of pairs, F (n, p) and G (n, q)."""
    root = cholesky(G.T @ G, _NAME, spread)
    return Transfer(root, solve_lower(root, G.T @ F).T)


class Task(NamedTuple):
    """All that is needed of the task's m points: sums over their coordinates and targets (m, t)."""

    core: AnyArray  # G~' G~ (q, q)
    right: AnyArray  # G~' z~ (q, t)
    squares: AnyArray  # of the targets, summed (t,)
    size: AnyArray  # m


class Primal(NamedTuple):
    """The posterior of f in the coordinates of x, from the sums of a task.

    Attributes:
        mean: of the weights of f (p, t).
        log_marginal: logarithm of the density of the targets (t,), theorem 5.7.
        factor: of the weights' precision Q.
    """

    mean: AnyArray
    log_marginal: AnyArray
    factor: AnyArray

    def unknown(self, F: AnyArray) -> AnyArray:
        """`half` with `half' half` the covariance of `F w` (t points): what is left of the prior's `F F'`."""
        return solve_lower(self.factor, F.T)

    def variance(self, F: AnyArray) -> AnyArray:
        """Variance of `F w` at each row."""
        return (self.unknown(F) ** 2).sum(0)

    def covariance(self, F: AnyArray) -> AnyArray:
        """Covariance of `F w` between rows."""
        half = self.unknown(F)
        return half.T @ half

    def degrees(self) -> AnyArray:
        """Effective degrees of freedom: directions of f that the task has settled, `tr(I - Q^-1)`."""
        xp = namespace(self.factor)
        p = self.factor.shape[0]
        return p - (solve_lower(self.factor, xp.eye(p)) ** 2).sum()


class Dual(NamedTuple):
    """The posterior of f in the coordinates of x, from the covariance of the targets.

    Attributes:
        mean: of the weights of f (p, t).
        log_marginal: logarithm of the density of the targets (t,), theorem 5.7.
        factor: of the targets' covariance S (m, m).
        seen: the features of x at the task's points, `Phi A` (p, m).
    """

    mean: AnyArray
    log_marginal: AnyArray
    factor: AnyArray
    seen: AnyArray

    def _known(self, F: AnyArray) -> AnyArray:
        return solve_lower(self.factor, self.seen.T @ F.T)

    def variance(self, F: AnyArray) -> AnyArray:
        """Variance of `F w` at each row."""
        return namespace(F).maximum((F * F).sum(1) - (self._known(F) ** 2).sum(0), 0.0)

    def covariance(self, F: AnyArray) -> AnyArray:
        """Covariance of `F w` between rows."""
        known = self._known(F)
        return F @ F.T - known.T @ known

    def degrees(self) -> AnyArray:
        """Effective degrees of freedom: directions of f that the task has settled, `tr(S^-1 A' K A)`."""
        return (solve_lower(self.factor, self.seen.T) ** 2).sum()


Posterior = Primal | Dual


class Noise(NamedTuple):
    """How targets depart from conditional means of f."""

    task: AnyArray  # sigma^2: variance of z~ about g(y~), with what coordinates miss of g
    spread: AnyArray  # tau: variance of f(x) about g(y)
    uncertain: bool  # whether what is not known about g counts


def primal(pairs: Transfer, sums: Task, noise: Noise) -> Primal:
    """Definition 5.8 and table 5.3, left: with matrices as large as the coordinates."""
    xp = namespace(pairs.root, sums.core)
    whitened = solve_lower(pairs.root, solve_lower(pairs.root, sums.core).T)  # H
    right = solve_lower(pairs.root, sums.right)
    V, q = pairs.across, pairs.root.shape[0]
    if noise.uncertain:
        E = cholesky(noise.spread * whitened, "the covariance of the mediated noise", noise.task)
        half = solve_lower(E, right)
        told, b = V @ solve(E, whitened) @ V.T, V @ solve_lower(E, half, transposed=True)
        told = 0.5 * (told + told.T)  # H and E commute, so this is symmetric up to rounding
        explained, log_E = noise.spread * (half * half).sum(0), 2.0 * xp.log(xp.diagonal(E)).sum()
    else:  # E is a multiple of the identity
        told, b = V @ whitened @ V.T / noise.task, V @ right / noise.task
        explained, log_E = 0.0, q * xp.log(noise.task)
    Q = cholesky(told, "the precision of the function", 1.0)
    mean = solve(Q, b)
    fit = (sums.squares - explained) / noise.task - (b * mean).sum(0)
    volume = (sums.size - q) * xp.log(noise.task) + log_E + 2.0 * xp.log(xp.diagonal(Q)).sum()
    volume = volume + sums.size * math.log(2.0 * math.pi)
    return Primal(mean, -0.5 * (fit + volume), Q)


def dual(pairs: Transfer, G: AnyArray, z: AnyArray, noise: Noise) -> Dual:
    """Definition 5.7 and table 5.3, right: with a matrix as large as the task, from its coordinates and targets."""
    xp = namespace(pairs.root, G)
    half = solve_lower(pairs.root, G.T)  # H = half half'
    seen = pairs.across @ half
    S = seen.T @ seen + noise.spread * (half.T @ half) if noise.uncertain else seen.T @ seen
    factor = cholesky(S, "the covariance of the task's targets", noise.task)
    white = solve_lower(factor, z)
    mean = seen @ solve_lower(factor, white, transposed=True)
    volume = 2.0 * xp.log(xp.diagonal(factor)).sum() + len(z) * math.log(2.0 * math.pi)
    return Dual(mean, -0.5 * ((white * white).sum(0) + volume), factor, seen)


def left_out(pairs: Transfer, sums: Task, noise: Noise, G: AnyArray, z: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Mean and variance (m, t) and (m,) of each target given all others, from coordinates and targets of the task.

    With `S^-1 = (I - G~ N G~') / sigma^2` the mean of target j is `z_j - (S^-1 z)_j / (S^-1)_jj` and its variance the
    inverse of `(S^-1)_jj` (Rasmussen and Williams 2006, equation 5.12).
    """
    half = solve_lower(pairs.root, G.T)  # S = sigma^2 I + half' M half
    root = pairs.across.T  # M = root root'
    if noise.uncertain:
        root = cholesky(root @ root.T, "the covariance of the mediated function", noise.spread)
    whitened = solve_lower(pairs.root, solve_lower(pairs.root, sums.core).T)
    right = solve_lower(pairs.root, sums.right)
    inner = cholesky(root.T @ whitened @ root, "the covariance of the task's targets", noise.task)
    known = solve_lower(inner, root.T @ half)  # half' N half = known' known
    precision = (1.0 - (known * known).sum(0)) / noise.task
    residual = (z - known.T @ solve_lower(inner, root.T @ right)) / noise.task
    return z - residual / precision[:, None], 1.0 / precision


def pair_weights(pairs: Transfer, sums: Task, noise: Noise) -> AnyArray:
    """`C` (q + q, p): with u and v the halves of `C f(x)`, `|u|^2 - tau |v|^2` is the squared norm of the pairs' weights.

    The mean of f at x is `h' z~` with `h = S^-1 A' k(x)`, and a pair whose f(x_i) departs from g(y_i) by e_i moves it by
    `-(A h)_i e_i`. With `G' G = P - tau I` the norm of `A h` is that of `u = R^-1 G~' h` and `v = R^-T u`.
    """
    xp = namespace(pairs.root, sums.core)
    whitened = solve_lower(pairs.root, solve_lower(pairs.root, sums.core).T)  # H
    V, eye = pairs.across, xp.eye(pairs.root.shape[0])
    M = V.T @ V + (noise.spread * eye if noise.uncertain else 0.0)
    factors = lu(noise.task * eye + whitened @ M, "the covariance of the task's targets")  # half S^-1 half' = (..)^-1 H
    u = lu_solve(factors, whitened @ V.T)
    return xp.concatenate([u, solve_lower(pairs.root, u, transposed=True)])


def weights(pairs: Transfer, posterior: Posterior, noise: Noise, of_task: Gram, F: AnyArray) -> AnyArray:
    """Weights (t, m) of the targets in the mean of f at coordinates (t, p), with g at its most probable: theorem 5.5."""
    if noise.uncertain:
        raise ValueError("weights are those of the deconditional embedding, with uncertain=False")
    if isinstance(posterior, Dual):
        return solve(posterior.factor, posterior.seen.T @ F.T).T
    return of_task.scatter(solve(posterior.factor, F.T).T @ pairs.map()) / noise.task

"""Quadrature as the notes print it: dense matrices, explicit inverses, and integrals by brute force."""

import numpy as np
from numpy.linalg import inv
from scipy import stats


def rule_of(name, n=300):
    """Points and weights of a classical rule for a few distributions, to which everything is compared."""
    if name == "normal":
        x, w = np.polynomial.hermite_e.hermegauss(n)
        return x[:, None], w / w.sum()
    x, w = np.polynomial.legendre.leggauss(n)
    x = 0.5 * (x[:, None] + 1.0)
    if name == "beta":
        w = w * stats.beta(2, 5).pdf(x[:, 0])
    return x, w / w.sum()


def worst_case_error(kernel, points, weights, grid, masses):
    """`|| sum_i w_i k(., x_i) - mu ||` with the integrals as sums over a fine grid: one signed measure, one norm."""
    X = np.concatenate([points, grid])
    w = np.concatenate([weights, -masses])
    return np.sqrt(max(w @ kernel.gram(X) @ w, 0.0))


def optimal_weights(K, mu, reg):
    """Equation 1: alpha = (K + n lambda I)^-1 mu."""
    n = len(K)
    return inv(K + n * reg * np.eye(n)) @ mu


def bach_weights(K, mu, q, reg):
    """Equation 3: beta = (K~ + n lambda I)^-1 (mu / sqrt(q)), and the weights beta / sqrt(q) of the values."""
    n, root = len(K), np.sqrt(q)
    beta = inv(K / np.outer(root, root) + n * reg * np.eye(n)) @ (mu / root)
    return beta / root


def normalised_weights(K, mu, reg=0.0):
    """The minimiser of w' (K + n reg I) w - 2 w' mu with sum w = 1, by Lagrange's equations."""
    n = len(K)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n], A[n, :n], A[:n, n] = K + n * reg * np.eye(n), 1.0, 1.0
    return np.linalg.solve(A, np.append(mu, 1.0))[:n]

"""Conditional embeddings, sum and chain rules as the papers print them: dense, in NumPy, with explicit inverses."""

import numpy as np


def gaussian_gram(X, Y, lengthscale):
    """exp(-||x - y||^2 / 2 l^2), pair by pair."""
    out = np.empty((len(X), len(Y)))
    for i, x in enumerate(X):
        for j, y in enumerate(Y):
            out[i, j] = np.exp(-0.5 * np.sum(((x - y) / lengthscale) ** 2))
    return out


def conditional_weights(K, k, reg):
    """(K + n reg I)^-1 k(x) for columns k(x) of (n, t): Hsu definition 2.26. Rows of the answer are points."""
    n = len(K)
    return (np.linalg.inv(K + n * reg * np.eye(n)) @ k).T


def sum_rule(K, K_prior, alpha, reg):
    """(K + n reg I)^-1 K~ alpha: Subspace equation 6."""
    n = len(K)
    return np.linalg.inv(K + n * reg * np.eye(n)) @ K_prior @ alpha


def chain_rule_second(K, K_prior, alpha, reg):
    """(K + n reg I)^-1 K~ diag(alpha): Subspace equation 8."""
    n = len(K)
    return np.linalg.inv(K + n * reg * np.eye(n)) @ K_prior @ np.diag(alpha)


def subspace_weights(G, g, shift):
    """G (G' G + shift I)^-1 g(x) for columns g(x) of (m, t): Subspace equation 16."""
    return (G @ np.linalg.inv(G.T @ G + shift * np.eye(G.shape[1])) @ g).T


def nystrom(K_xr, K_rr, K_ry):
    """k(x, R) K(R, R)^-1 k(R, y)."""
    return K_xr @ np.linalg.solve(K_rr, K_ry)

"""Hsu (2019), chapter 3, as printed: dense formulas and one loop for each sum."""

import numpy as np


def gaussian(A, B, lengthscale):
    scaled = (A[:, None, :] - B[None, :, :]) / lengthscale
    return np.exp(-0.5 * (scaled**2).sum(-1))


def one_hot(y, classes):
    return np.array([[float(label == c) for c in classes] for label in y])


def weights(K, reg, k):
    """(K + n lambda I)^-1 k(x), one column for each x."""
    n = len(K)
    return np.linalg.solve(K + n * reg * np.eye(n), k)


def decision_probabilities(K, Y, reg, k):
    """(3.5), one row for each x."""
    return (Y.T @ weights(K, reg, k)).T


def clip_normalised(P):
    """(3.6)."""
    return np.array([[max(p, 0.0) / sum(max(q, 0.0) for q in row) for p in row] for row in P])


def entropy(p):
    """(3.8)."""
    return -sum(q * np.log(q) for q in p if q > 0)


def embedded_entropy(K, y, classes, reg, k):
    """(3.12) with the information (3.11) at each training label."""
    P = decision_probabilities(K, one_hot(y, classes), reg, k)
    w = weights(K, reg, k)
    out = []
    for j, row in enumerate(P):
        information = [-np.log(row[classes.index(label)]) if row[classes.index(label)] > 0 else 0.0 for label in y]
        out.append(np.array(information) @ w[:, j])
    return np.array(out)


def algorithm_1(K, Y, reg, alpha, multiplier, epsilon=1e-15):
    """Lines 7 to 11: loss, complexity and objective."""
    n = len(K)
    L = np.linalg.cholesky(K + n * reg * np.eye(n))
    V = np.linalg.solve(L.T, np.linalg.solve(L, Y))
    P = K @ V
    r = alpha * np.sqrt(np.trace(V.T @ K @ V))
    loss = np.mean([-np.log(min(max(p @ y, epsilon), 1.0)) for p, y in zip(P, Y, strict=True)])
    return loss, r, loss + multiplier * r


def algorithm_2(Z, Y, reg, alpha, multiplier, epsilon=1e-15):
    """Lines 7 to 11 with explicit features."""
    n, p = Z.shape
    L = np.linalg.cholesky(Z.T @ Z + n * reg * np.eye(p))
    W = np.linalg.solve(L.T, np.linalg.solve(L, Z.T @ Y))
    P = Z @ W
    r = alpha * np.sqrt(sum(W[j, c] ** 2 for j in range(p) for c in range(Y.shape[1])))
    loss = np.mean([-np.log(min(max(q @ y, epsilon), 1.0)) for q, y in zip(P, Y, strict=True)])
    return loss, r, loss + multiplier * r

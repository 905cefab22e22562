"""Density ratios as the papers print them: dense, in NumPy, with explicit inverses, one refit for each left-out point."""

import numpy as np


def kulsif(K, K_zt, k_z, k_t, weights, reg):
    """Kanamori et al. (2012): `sum_j (w_j / eta) k(., z~_j) + sum_i a_i k(., z_i)` at points.

    K (n, n) and K_zt (n, m) are Gram matrices of z and of z with z~; k_z (t, n), k_t (t, m) those of the points with both.
    With w_j = 1/m this is theirs: (K / n + eta I) a = -1 / (n m eta) K_zt 1.
    """
    n = len(K)
    a = -np.linalg.inv(K / n + reg * np.eye(n)) @ K_zt @ weights / (n * reg)
    return k_t @ weights / reg + k_z @ a


def gamma(K, K_zt, weights, reg):
    """(G_Z + n eta I)^-1 g: Xu et al. (2022), equation 1, which is the ratio at z_i over n."""
    n = len(K)
    return np.linalg.inv(K + n * reg * np.eye(n)) @ K_zt @ weights


def pooled_ratio(points, masses, top, weights, reg, at):
    """f' (sum_p masses_p f_p f_p' + eta I)^-1 sum_j w_j f_j at coordinates `at`, from weighted coordinates."""
    M = sum(mass * np.outer(f, f) for mass, f in zip(masses, points, strict=True))
    return at @ np.linalg.inv(M + reg * np.eye(points.shape[1])) @ (top.T @ weights)


def _without(values, i):
    return np.delete(values, i, axis=0)


def left_out_ratios(F, T, weights, reg, alpha):
    """r_{-i}(z_i) and r_{-j}(z~_j) by refitting: n + m times, on weights that sum to one, the shift over them held fixed."""
    n, m = len(F), len(T)
    cut = np.maximum(weights, 0) / np.maximum(weights, 0).sum()
    points, masses = np.concatenate([F, T]), np.concatenate([np.full(n, (1 - alpha) / n), alpha * cut])
    at_z, at_top = np.empty(n), np.empty(m)
    for p in range(n + m):
        left = 1 - masses[p]
        pool, shares, eta = _without(points, p), _without(masses, p) / left, reg / left
        if p < n:
            at_z[p] = pooled_ratio(pool, shares, T, weights, eta, F[p])
        else:
            j = p - n
            w = _without(weights, j) / (1 - weights[j])
            at_top[j] = pooled_ratio(pool, shares, _without(T, j), w, eta, T[j])
    return at_z, at_top


def leave_one_out_score(F, T, weights, reg, alpha):
    """1/2 E r^2 over the mixture less E r over the numerator, each value from its refit."""
    at_z, at_top = left_out_ratios(F, T, weights, reg, alpha)
    cut = np.maximum(weights, 0) / np.maximum(weights, 0).sum()
    return 0.5 * (1 - alpha) * np.mean(at_z**2) + 0.5 * alpha * np.sum(cut * at_top**2) - np.sum(weights * at_top)

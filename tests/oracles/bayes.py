"""Kernel Bayes' rules as the papers print them: dense, in NumPy, with explicit inverses.

`K`, `L` are the Gram matrices of x and z, `k` (n, t) the columns k(X, x) of t observations, `Lt` (n, m) the kernel
between training and prior z, `w` (m,) the prior's weights. Rows of the answers are observations.
"""

import numpy as np


def ratio_weights(L, Lt, w, eta):
    """gamma = (L + n eta I)^-1 L~ w: Kanagawa Algorithm 1, line 3; Xu et al. equation 1 over n."""
    n = len(L)
    return np.linalg.inv(L + n * eta * np.eye(n)) @ Lt @ w


def importance_weighted(K, k, gamma, reg):
    """sqrt(D) (sqrt(D) G_X sqrt(D) + lambda I)^-1 sqrt(D) g: Xu et al. Algorithm 1, step 3."""
    S = np.diag(np.sqrt(np.maximum(gamma, 0.0)))
    return (S @ np.linalg.inv(S @ K @ S + reg * np.eye(len(K))) @ S @ k).T


def kanagawa(K, k, gamma, delta):
    """Lambda G ((Lambda G)^2 + delta I)^-1 Lambda k: Kanagawa Algorithm 1, line 4."""
    D = np.diag(gamma)
    return (D @ K @ np.linalg.inv(D @ K @ D @ K + delta * np.eye(len(K))) @ D @ k).T


def _hsu(L, Lt, eta):
    A = np.linalg.inv(L + len(L) * eta * np.eye(len(L))) @ Lt
    return A, np.diag(A.sum(1)), Lt.shape[1]


def hsu_dmo(K, k, L, Lt, eta, eps):
    """[A' K A + m eps I]^-1 A' k: Hsu theorem 5.5, prior points of equal weight."""
    A, _, m = _hsu(L, Lt, eta)
    return (np.linalg.inv(A.T @ K @ A + m * eps * np.eye(m)) @ A.T @ k).T


def hsu_dmo_woodbury(K, k, L, Lt, eta, eps):
    """A' [K A A' + m eps I]^-1 k: Hsu table 5.1, DMO(W)."""
    A, _, m = _hsu(L, Lt, eta)
    return (A.T @ np.linalg.inv(K @ A @ A.T + m * eps * np.eye(len(K))) @ k).T


def hsu_kbr_a1(K, k, L, Lt, eta, eps):
    """A' [K D + m eps I]^-1 k: Hsu table 5.1."""
    A, D, m = _hsu(L, Lt, eta)
    return (A.T @ np.linalg.inv(K @ D + m * eps * np.eye(len(K))) @ k).T


def hsu_kbr_a2(K, k, L, Lt, eta, eps):
    """A' [(K D)^2 + m^2 eps I]^-1 K D k: Hsu table 5.1."""
    A, D, m = _hsu(L, Lt, eta)
    return (A.T @ np.linalg.inv(K @ D @ K @ D + m**2 * eps * np.eye(len(K))) @ K @ D @ k).T


def hsu_kbr_b1(K, k, L, Lt, eta, eps):
    """D [K D + m eps I]^-1 k: Hsu table 5.1."""
    _, D, m = _hsu(L, Lt, eta)
    return (D @ np.linalg.inv(K @ D + m * eps * np.eye(len(K))) @ k).T


def hsu_kbr_b2(K, k, L, Lt, eta, eps):
    """D [(K D)^2 + m^2 eps I]^-1 K D k: Hsu table 5.1."""
    _, D, m = _hsu(L, Lt, eta)
    return (D @ np.linalg.inv(K @ D @ K @ D + m**2 * eps * np.eye(len(K))) @ K @ D @ k).T


def gebhardt(K, k, Gb, Gt, alpha, shift, gamma):
    """diag(alpha) G~ L E D ((E D)^2 + gamma I)^-1 Gb' k: Gebhardt et al. equations 21-23.

    Gb (n, r) and Gt (m, r) are the kernel between training or prior states and the reference states; their lambda is
    `shift`.
    """
    r = Gb.shape[1]
    Li = np.linalg.inv(Gb.T @ Gb + shift * np.eye(r))
    E = Gb.T @ K @ Gb
    D = Li @ Gt.T @ np.diag(alpha) @ Gt @ Li
    return (np.diag(alpha) @ Gt @ Li @ E @ D @ np.linalg.inv(E @ D @ E @ D + gamma * np.eye(r)) @ Gb.T @ k).T

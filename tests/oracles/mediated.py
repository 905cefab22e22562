"""Regression through a mediator as Hsu (2019), chapter 5, prints it: dense matrices, explicit inverses."""

import numpy as np
from numpy.linalg import inv


def transformation(L, L_task, shift):
    """A = (L + shift I)^-1 L~."""
    return inv(L + shift * np.eye(len(L))) @ L_task


def dme_weights(K, A, m_epsilon, k):
    """Definition 5.7: weights of the targets at the columns of k(x), as printed first and in the alternative form."""
    n, m = A.shape
    first = inv(A.T @ K @ A + m_epsilon * np.eye(m)) @ A.T @ k
    other = A.T @ inv(K @ A @ A.T + m_epsilon * np.eye(n)) @ k
    return first, other


def full_noise(L, L_task, L_tasks, spread, noise):
    """Sigma of theorem 5.7 (2), with the variance of f(x) at one y apart from the noise of the task."""
    return L_tasks + noise * np.eye(len(L_tasks)) - L_task.T @ inv(L + spread * np.eye(len(L))) @ L_task


def posterior(K, K_new, K_news, A, Sigma, z):
    """Table 5.3, right: mean and covariance of f at new points; K_new is (n, t)."""
    S = A.T @ K @ A + Sigma
    return K_new.T @ A @ inv(S) @ z, K_news - K_new.T @ A @ inv(S) @ A.T @ K_new


def chained_losses(Phi, Psi, Psi_task, z, lam, eps):
    """Theorem 5.6: weights of f that minimise (5.11), by the normal equations of each loss in turn."""
    n, m = Phi.shape[1], Psi_task.shape[1]
    # v^[w] = C w minimises the first loss
    C = inv(Psi @ Psi.T / n + lam * np.eye(len(Psi))) @ Psi @ Phi.T / n
    seen = C.T @ Psi_task
    return inv(seen @ seen.T / m + eps * np.eye(len(Phi))) @ seen @ z / m

"""Algorithm 3 and the closed forms of Hsu (2019), section 4.3, as printed there; loops and plain inverses."""

import numpy as np


def kernel(a, b, beta):
    return np.array([[np.exp(-0.5 * (((x - y) / beta) ** 2).sum()) for y in b] for x in a])


def prior_embedding(theta, beta, mu, sigma):
    """(4.6)."""
    nu = np.sqrt(beta**2 + sigma**2)
    return np.array([np.exp(-0.5 * (((t - mu) / nu) ** 2).sum()) * np.prod(beta / nu) for t in theta])


def h(theta, star, beta, mu, sigma):
    """(4.10)."""
    gamma2 = beta**2 / sigma**2
    s2 = 1.0 / (2.0 / beta**2 + 1.0 / sigma**2)
    out = np.empty((len(theta), len(star)))
    for i, t in enumerate(theta):
        for j, u in enumerate(star):
            a = (t**2 + u**2 + gamma2 * mu**2) / (2.0 + gamma2)
            b = (t + u + gamma2 * mu) / (2.0 + gamma2)
            out[i, j] = np.prod(np.sqrt(s2) / sigma * np.exp(-0.5 / s2 * (a - b**2)))
    return out


def gaussian_epsilon(y, x, epsilon):
    d = x.shape[1]
    return np.array([np.exp(-0.5 * (((y - row) / epsilon) ** 2).sum()) for row in x]) / (
        np.sqrt(2 * np.pi) ** d * np.prod(np.broadcast_to(epsilon, d))
    )


def kelfi(theta, x, y, star, epsilon, beta, lam, mu, sigma):
    """Lines 2 to 8: the likelihood weights, the marginal likelihood and the posterior embedding at query parameters."""
    m = len(theta)
    v = np.linalg.inv(kernel(theta, theta, beta) + m * lam * np.eye(m)) @ gaussian_epsilon(y, x, epsilon)
    q = v @ prior_embedding(theta, beta, mu, sigma)
    return v, q, h(theta, star, beta, mu, sigma).T @ v / q

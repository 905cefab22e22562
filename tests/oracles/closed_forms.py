"""Plain NumPy answers for embeddings: nothing here is taken from the package."""

from __future__ import annotations

import math

import numpy as np


def gaussian_gram(X, Y, lengthscale):
    """exp(-|x - y|^2 / 2 l^2) from differences."""
    difference = np.asarray(X)[:, None, :] - np.asarray(Y)[None, :, :]
    return np.exp(-0.5 * ((difference / lengthscale) ** 2).sum(-1))


def normal_inner(mean_p, cov_p, mean_q, cov_q, lengthscale):
    """E exp(-|x - y|^2 / 2 l^2) for x ~ N(mean_p, cov_p), y ~ N(mean_q, cov_q): a normal density at their difference."""
    difference = np.atleast_1d(mean_p) - np.atleast_1d(mean_q)
    d = len(difference)
    total = lengthscale**2 * np.eye(d) + np.atleast_2d(cov_p) + np.atleast_2d(cov_q)
    exponent = -0.5 * difference @ np.linalg.solve(total, difference)
    return lengthscale**d / math.sqrt(np.linalg.det(total)) * math.exp(exponent)


def normal_mmd_squared(p, q, lengthscale):
    """MMD^2 of two normals, given as (mean, covariance), under the Gaussian kernel."""
    pp, qq, pq = (normal_inner(*a, *b, lengthscale) for a, b in ((p, p), (q, q), (p, q)))
    return pp + qq - 2.0 * pq


def degree_two_monomials(X, offset, scale):
    """Features of (s x.y + c)^2 in two dimensions: all monomials up to degree two."""
    x, y = X.T
    linear = math.sqrt(2.0 * scale * offset)
    constant = np.full(len(X), offset)
    squares = [scale * x * x, scale * y * y, math.sqrt(2.0) * scale * x * y]
    return np.stack([*squares, linear * x, linear * y, constant], axis=1)


def nystrom(K_xr, K_rr):
    """k(x, R) K(R, R)^+ k(R, x)."""
    return K_xr @ np.linalg.pinv(K_rr, rcond=1e-13, hermitian=True) @ K_xr.T

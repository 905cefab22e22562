"""Beaumont, Zhang and Balding (2002), section 2, in plain NumPy: local-linear regression of parameters on statistics."""

import numpy as np


def adjusted(weights, differences, parameters):
    """Intercept, and covariance of the adjusted parameters, by least squares on rows stacked below those of a ridge.

    The ridge is one over the effective number of rows, on standardised columns. The residual covariance is divided by the
    share of rows that the regression has left, and the variance of a prediction at no difference is added.
    """
    m, q = differences.shape
    size = 1.0 / np.sum(weights**2)
    mean = np.average(differences, axis=0, weights=weights)
    sd = np.sqrt(np.average((differences - mean) ** 2, axis=0, weights=weights))
    X = np.column_stack([np.ones(m), differences])
    root = np.sqrt(weights)[:, None]
    penalty = np.column_stack([np.zeros(q), np.diag(sd / np.sqrt(size))])
    stacked = np.vstack([root * X, penalty])
    Q, R = np.linalg.qr(stacked)
    coefficients = np.linalg.solve(R, Q[:m].T @ (root * parameters))
    used = np.sum(Q[:m] ** 2)  # trace of the hat matrix
    moved = parameters - differences @ coefficients[1:]
    centred = moved - np.average(moved, axis=0, weights=weights)
    covariance = np.einsum("m,mi,mj->ij", weights, centred, centred)
    at_zero = np.linalg.inv(stacked.T @ stacked)[0, 0] / size  # of a variance of one
    return coefficients[0], covariance * size / (size - used) * (1.0 + at_zero)

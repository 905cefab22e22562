"""The kernel Monte Carlo filter as printed, dense and with loops, and filters that know the whole system."""

import numpy as np

from .bayes import importance_weighted, kanagawa


def herding(w, K, size):
    """Kanagawa (2016), Algorithm 2, for a kernel with a constant diagonal: indices of the points taken."""
    taken = []
    for p in range(1, size + 1):
        scores = [sum(w[i] * K[x, i] for i in range(len(w))) - sum(K[x, j] for j in taken) / p for x in range(len(w))]
        taken.append(int(np.argmax(scores)))
    return taken


def kernel_monte_carlo(X, Z, observations, kernel, latent, start, move, *, rule, eps, delta, count, herded):
    """Kanagawa (2016), Algorithm 4: weights (T, n).

    `kernel` and `latent` are functions of two tables, `start` the particles at the first step and `move(states, t)` the
    transition. As in the library, the weights of a prior on the pairs are divided by their sum. A missing observation is
    None: the particles move on as they are, and what is told of the state are the prior's weights, cut at zero.
    """
    n = len(Z)
    GX, GY = latent(Z, Z), kernel(X, X)
    inverse = np.linalg.inv(GX + n * eps * np.eye(n))
    weights, w = [], None
    particles = start
    for t, y in enumerate(observations):
        if t:
            if w is not None:
                few = herding(w, GX, herded)
                particles = np.array([Z[few[j % herded]] for j in range(count)])
            particles = move(particles, t)
        m = np.array([np.mean(latent(Z[q : q + 1], particles)) for q in range(n)])
        gamma = inverse @ m
        if rule == "iw":
            gamma = np.maximum(gamma, 0.0)
        gamma = gamma / gamma.sum()
        w = None
        if y is not None:
            k = kernel(X, y[None])
            w = (importance_weighted if rule == "iw" else kanagawa)(GY, k, gamma, delta)[0]
            w = w / w.sum()
        cut = np.maximum(gamma, 0.0)
        weights.append(cut / cut.sum() if w is None else w)
    return np.array(weights)


def kalman(observations, a, q, r, mean, variance):
    """Means and variances (T,) of x_t = a x_{t-1} + N(0, q), y_t = x_t + N(0, r); NaN is a missing observation."""
    means, variances = [], []
    for t, y in enumerate(observations):
        if t:
            mean, variance = a * mean, a * a * variance + q
        if not np.isnan(y):
            gain = variance / (variance + r)
            mean, variance = mean + gain * (y - mean), (1.0 - gain) * variance
        means.append(mean)
        variances.append(variance)
    return np.array(means), np.array(variances)


def bootstrap(observations, start, move, likelihood, rng):
    """Filtered means (T, d) of the bootstrap particle filter: move, weight, resample, at every step."""
    x, means = start, []
    for t, y in enumerate(observations):
        if t:
            x = move(rng, x)
        weights = likelihood(y, x)
        weights = weights / weights.sum()
        means.append(weights @ x)
        x = x[rng.choice(len(x), len(x), p=weights)]
    return np.array(means)

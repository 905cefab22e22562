"""Filters as the papers print them: dense, in NumPy, with explicit inverses, one sequence at a time."""

import numpy as np

from . import bayes


def correction(rule, K, k, L, Lt, v, eta, reg):
    """Posterior weights for prior weights v on points with kernel Lt (n, m) to the training states.

    The formulas of `oracles.bayes` with weights v in place of 1/m; on the training states for "iw", "kbr" and "kbr-b1", on
    the prior's points for the others.
    """
    n = len(K)
    gamma = bayes.ratio_weights(L, Lt, v, eta)
    D, V = np.diag(gamma), np.diag(v)
    A = np.linalg.inv(L + n * eta * np.eye(n)) @ Lt
    if rule == "iw":
        gamma = np.maximum(gamma, 0.0)
        return bayes.importance_weighted(K, k, gamma / gamma.sum(), reg)
    if rule == "kbr":
        return bayes.kanagawa(K, k, gamma / gamma.sum(), reg)
    if rule == "kbr-b1":
        return D / gamma.sum() @ np.linalg.inv(K @ D / gamma.sum() + reg * np.eye(n)) @ k
    if rule == "kbr-a1":
        return V @ A.T @ np.linalg.inv(K @ D + reg * np.eye(n)) @ k
    if rule == "kbr-a2":
        return V @ A.T @ np.linalg.inv(K @ D @ K @ D + reg * np.eye(n)) @ K @ D @ k
    assert rule == "dmo"
    return V @ A.T @ np.linalg.inv(K @ A @ V @ A.T + reg * np.eye(n)) @ k


def algorithm_2(rule, K, Kt, L, eta, transition_reg, reg, observed=None, control=None):
    """Xu et al. (2022), Algorithm 2, weights divided by their sums: weights (T, n) of the states of one training sequence.

    Kt (n, T) is the kernel between training and new observations. `control` holds the Gram matrix (n - 1, n - 1) of the
    controls of the transitions and the columns (n - 1, T) for those of the new sequence, the t-th acting on the step to t.
    """
    n, T = Kt.shape
    on_pairs = rule in ("iw", "kbr", "kbr-b1")
    before, after = slice(0, n - 1), slice(1, n)
    inputs = L[before, before] if control is None else L[before, before] * control[0]
    inverse = np.linalg.inv(inputs + (n - 1) * transition_reg * np.eye(n - 1))
    prior = np.full(n, 1 / n)
    if not on_pairs:
        prior = np.append(0.0, np.full(n - 1, 1 / (n - 1)))
    out = np.zeros((T, n))
    for t in range(T):
        if t:
            column = L[before] @ out[t - 1]
            v = inverse @ (column if control is None else column * control[1][:, t])
            prior = np.append(0.0, v / v.sum())
        if observed is not None and not observed[t]:
            out[t] = prior
            continue
        if on_pairs:
            w = correction(rule, K, Kt[:, t], L, L, prior, eta, reg)
        else:
            w = np.append(0.0, correction(rule, K, Kt[:, t], L, L[:, after], prior[after], eta, reg))
        out[t] = w / w.sum()
    return out


def two_filter_smoother(K, Kt, L, eta, transition_reg, reg):
    """The importance-weighted rule with the prior `prediction x q / p_b`, from the definition, for one sequence.

    q comes from the filter of the reversed transitions, whose priors are multiplied by p_a / p_b.
    """
    n, T = Kt.shape
    rows = np.arange(n)
    first, last = rows[:-1], rows[1:]

    def over_before(points, weights):
        """Density ratio at all rows of a weighted sample to the states before: Kanamori et al. (2012), `eta r = m - C r`."""
        inverse = np.linalg.inv(L[np.ix_(first, first)] + (n - 1) * eta * np.eye(n - 1))
        there = (n - 1) * inverse @ L[np.ix_(first, points)] @ weights
        return np.maximum((L[:, points] @ weights - L[:, first] @ there / (n - 1)) / eta, 0.0)

    def updated(prior, column, ratio):
        gamma = np.maximum(bayes.ratio_weights(L, L, prior, eta) * ratio, 0.0)
        w = bayes.importance_weighted(K, column, gamma / gamma.sum(), reg)
        return w / w.sum()

    def predictions(before, after, columns, start, ratio):
        inverse = np.linalg.inv(L[np.ix_(before, before)] + (n - 1) * transition_reg * np.eye(n - 1))
        priors, prior = [], start
        for column in columns.T:
            priors.append(prior)
            v = inverse @ (L[before] @ updated(prior, column, ratio))
            prior = np.zeros(n)
            prior[after] = v / v.sum()
        return priors

    forward = predictions(first, last, Kt, np.full(n, 1 / n), np.ones(n))
    start = np.append(np.full(n - 1, 1 / (n - 1)), 0.0)
    tilt = over_before(last, np.full(n - 1, 1 / (n - 1)))
    backward = predictions(last, first, Kt[:, ::-1], start, tilt)[::-1]
    later = [over_before(rows, prior) for prior in backward[:-1]] + [np.ones(n)]
    return np.array([updated(forward[t], Kt[:, t], later[t]) for t in range(T)])


def subspace_filter(K, Kt, G, eta, transition_reg, reg):
    """Gebhardt et al. (2015), equations 16-17 and 21-23, on reference states with kernel G (n, r) to the sequence."""
    n, T = Kt.shape
    r = G.shape[1]
    before, after = G[:-1], G[1:]
    step = before @ np.linalg.inv(before.T @ before + (n - 1) * transition_reg * np.eye(r))
    v = np.full(n - 1, 1 / (n - 1))
    out = np.zeros((T, n))
    for t in range(T):
        w = bayes.gebhardt(K, Kt[:, [t]], G, after, v, n * eta, reg)[0]
        out[t, 1:] = w / w.sum()
        v = step @ (G.T @ out[t])
        v = v / v.sum()
    return out


def kalman(y, a, q, r, mean, variance):
    """Filtered and smoothed means and variances of x' = a x + N(0, q), y = x + N(0, r), on the line (Rauch et al. 1965)."""
    filtered, predicted = [], []
    for t, value in enumerate(y):
        if t:
            mean, variance = a * mean, a * a * variance + q
        predicted.append((mean, variance))
        gain = variance / (variance + r)
        mean, variance = mean + gain * (value - mean), (1 - gain) * variance
        filtered.append((mean, variance))
    smoothed = [filtered[-1]]
    for (m, v), (mp, vp) in zip(filtered[-2::-1], predicted[:0:-1], strict=True):
        back = a * v / vp
        ms, vs = smoothed[-1]
        smoothed.append((m + back * (ms - mp), v + back * back * (vs - vp)))
    return np.array(filtered).T, np.array(smoothed[::-1]).T

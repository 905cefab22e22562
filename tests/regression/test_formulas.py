"""Formulas of regression through a mediator against the paper's, in dense NumPy, and against brute force."""

import numpy as np
import pytest
from scipy import stats

from kernelbayes.kernels import Gaussian
from kernelbayes.rules import deconditional
from kernelbayes.rules.deconditional import Noise, Task
from oracles import mediated

N, M, T = 12, 9, 2


@pytest.fixture
def sample():
    """Coordinates that are exact (Cholesky factors), the Gram matrices they stand for, and targets."""
    rng = np.random.default_rng(0)
    x, y, y_task, x_new = (rng.normal(size=(size, 1)) for size in (N, N, M, 5))
    k, ell = 1.7 * Gaussian(0.8), 0.6 * Gaussian(1.1)
    xs, ys = np.concatenate([x, x_new]), np.concatenate([y, y_task])
    Fs, Gs = (np.linalg.cholesky(kernel.gram(P) + 1e-12 * np.eye(len(P))) for kernel, P in ((k, xs), (ell, ys)))
    grams = {
        "K": k.gram(x),
        "K_new": k.gram(x, x_new),
        "K_news": k.gram(x_new),
        "L": ell.gram(y),
        "L_task": ell.gram(y, y_task),
        "L_tasks": ell.gram(y_task),
    }
    return Fs[:N], Fs[N:], Gs[:N], Gs[N:], grams, rng.normal(size=(M, T))


def sums_of(G, z):
    return Task(G.T @ G, G.T @ z, (z * z).sum(0), len(z))


def posteriors(sample, noise):
    F, _, G, G_task, _, z = sample
    pairs = deconditional.transfer(F, G, noise.spread)
    return deconditional.primal(pairs, sums_of(G_task, z), noise), deconditional.dual(pairs, G_task, z, noise)


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("uncertain", [True, False])
@pytest.mark.parametrize(("noise", "spread"), [(0.3, 0.3), (0.05, 0.4), (0.4, 0.01)])
def test_mean_and_covariance_are_those_of_table_5_3(sample, form, uncertain, noise, spread):
    _, F_new, _, _, g, z = sample
    found = posteriors(sample, Noise(noise, spread, uncertain))[form]
    A = mediated.transformation(g["L"], g["L_task"], spread)
    full = mediated.full_noise(g["L"], g["L_task"], g["L_tasks"], spread, noise)
    Sigma = full if uncertain else noise * np.eye(M)
    mean, covariance = mediated.posterior(g["K"], g["K_new"], g["K_news"], A, Sigma, z)
    np.testing.assert_allclose(F_new @ found.mean, mean, atol=1e-9)
    np.testing.assert_allclose(found.covariance(F_new), covariance, atol=1e-9)
    np.testing.assert_allclose(found.variance(F_new), np.diag(covariance), atol=1e-9)


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize("uncertain", [True, False])
def test_marginal_likelihood_is_the_density_of_the_targets(sample, form, uncertain):
    """Theorem 5.7 (3), and the alternative of (4) as printed, against a multivariate normal."""
    _, _, _, _, g, z = sample
    noise, spread = 0.2, 0.35
    found = posteriors(sample, Noise(noise, spread, uncertain))[form].log_marginal
    A = mediated.transformation(g["L"], g["L_task"], spread)
    if uncertain:
        S = A.T @ g["K"] @ A + mediated.full_noise(g["L"], g["L_task"], g["L_tasks"], spread, noise)
    else:
        inner = A.T @ np.linalg.inv(g["K"] @ A @ A.T + noise * np.eye(N)) @ g["K"] @ A
        S = noise * np.linalg.inv(np.eye(M) - inner)
    expected = [stats.multivariate_normal(np.zeros(M), 0.5 * (S + S.T)).logpdf(column) for column in z.T]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("form", [0, 1])
def test_weights_are_those_of_definition_5_7(sample, form):
    F, F_new, G, G_task, g, z = sample
    noise = Noise(0.2, 0.35, False)
    pairs = deconditional.transfer(F, G, noise.spread)
    found = posteriors(sample, noise)[form]
    weights = deconditional.weights(pairs, found, noise, deconditional_gram(G_task), F_new)
    A = mediated.transformation(g["L"], g["L_task"], noise.spread)
    for expected in mediated.dme_weights(g["K"], A, noise.task, g["K_new"]):
        np.testing.assert_allclose(weights, expected.T, atol=1e-9)
    np.testing.assert_allclose(weights @ z, F_new @ found.mean, atol=1e-9)


def deconditional_gram(G):
    from kernelbayes._linalg import LowRank

    return LowRank(G)


def test_the_ridge_form_minimises_the_chained_losses():
    """Theorem 5.6, with features of any kind: weights from the normal equations, and no neighbour is better."""
    rng = np.random.default_rng(1)
    Phi, Psi, Psi_task = rng.normal(size=(3, 20)), rng.normal(size=(4, 20)), rng.normal(size=(4, 15))
    z, lam, eps = rng.normal(size=15), 0.3, 0.2
    noise = Noise(15 * eps, 20 * lam, False)
    pairs = deconditional.transfer(Phi.T, Psi.T, noise.spread)
    found = deconditional.primal(pairs, sums_of(Psi_task.T, z[:, None]), noise).mean[:, 0]
    np.testing.assert_allclose(found, mediated.chained_losses(Phi, Psi, Psi_task, z, lam, eps), atol=1e-10)

    def second_loss(w):
        v = np.linalg.lstsq(
            np.vstack([Psi.T / np.sqrt(20), np.sqrt(lam) * np.eye(4)]), np.r_[Phi.T @ w / np.sqrt(20), np.zeros(4)]
        )[0]
        return np.mean((z - Psi_task.T @ v) ** 2) + eps * w @ w

    least = second_loss(found)
    assert all(second_loss(found + 0.01 * step) > least for step in rng.normal(size=(20, 3)))


@pytest.mark.parametrize("uncertain", [True, False])
def test_targets_left_out_one_by_one(sample, uncertain):
    F, _, G, G_task, g, z = sample
    noise = Noise(0.2, 0.35, uncertain)
    pairs = deconditional.transfer(F, G, noise.spread)
    mean, variance = deconditional.left_out(pairs, sums_of(G_task, z), noise, G_task, z)
    A = mediated.transformation(g["L"], g["L_task"], noise.spread)
    full = mediated.full_noise(g["L"], g["L_task"], g["L_tasks"], noise.spread, noise.task)
    S = A.T @ g["K"] @ A + (full if uncertain else noise.task * np.eye(M))
    for j in range(M):
        others = np.arange(M) != j
        gain = S[j, others] @ np.linalg.inv(S[np.ix_(others, others)])
        np.testing.assert_allclose(mean[j], gain @ z[others], atol=1e-8)
        np.testing.assert_allclose(variance[j], S[j, j] - gain @ S[others, j], rtol=1e-8)


def test_degrees_of_freedom_are_the_trace_of_the_smoother(sample):
    _, _, _, _, g, _ = sample
    noise = Noise(0.2, 0.35, True)
    A = mediated.transformation(g["L"], g["L_task"], noise.spread)
    S = A.T @ g["K"] @ A + mediated.full_noise(g["L"], g["L_task"], g["L_tasks"], noise.spread, noise.task)
    expected = np.trace(np.linalg.inv(S) @ A.T @ g["K"] @ A)
    for found in posteriors(sample, noise):
        np.testing.assert_allclose(found.degrees(), expected, rtol=1e-8)

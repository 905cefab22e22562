"""Mixtures fitted to embeddings: known mixtures, scikit-learn's EM, and what a minimum of the RKHS distance must satisfy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.mixture import GaussianMixture

import kernelbayes as kb
from oracles import even_draws

SHARES, MEANS, DEVIATIONS = np.array([0.7, 0.3]), np.array([-2.0, 2.0]), np.array([0.5, 0.8])


def two_humps(n, seed):
    rng = np.random.default_rng(seed)
    which = rng.choice(2, n, p=SHARES)
    return rng.normal(MEANS[which], DEVIATIONS[which])


def distance(mixture, embedding):
    return kb.AnalyticEmbedding(mixture, embedding.kernel).distance(embedding)


def em(embedding, k):
    """The same embedding under a kernel without a closed form: weighted EM."""
    return kb.MeanEmbedding(embedding.points, embedding.weights, kb.Matern(1.5)).mixture(k, random_state=0)


@pytest.mark.parametrize("seed", range(3))
def test_a_known_mixture_is_recovered(seed):
    """Standard errors at n = 2,000: about 0.010 in the shares, 0.013 and 0.033 in the means, 0.010 and 0.024 in the rest."""
    a = kb.MeanEmbedding(two_humps(2000, seed), kernel=kb.Gaussian(1.0))
    found = a.mixture(2, random_state=0)
    assert found.weights == pytest.approx(SHARES, abs=0.04)
    assert [c.mean()[0] for c in found.components] == pytest.approx(MEANS, abs=0.12)
    assert [np.sqrt(c.covariance()[0, 0]) for c in found.components] == pytest.approx(DEVIATIONS, abs=0.1)
    assert distance(found, a) < 0.9 * distance(em(a, 2), a)
    truth = kb.Mixture([stats.norm(m, s) for m, s in zip(MEANS, DEVIATIONS, strict=True)], SHARES)
    assert distance(found, a) < distance(truth, a)


def test_three_correlated_components_in_the_plane():
    rng = np.random.default_rng(0)
    parts = [([0, 0], [[1, 0.6], [0.6, 1]]), ([3, 3], [[0.3, 0], [0, 0.3]]), ([-3, 3], [[0.5, -0.3], [-0.3, 0.5]])]
    x = np.concatenate([rng.multivariate_normal(m, c, n) for (m, c), n in zip(parts, (1000, 600, 400), strict=True)])
    a = kb.MeanEmbedding(x, kernel=kb.Gaussian([1.0, 1.5]))
    found = a.mixture(3, random_state=0)
    assert found.weights == pytest.approx([0.5, 0.3, 0.2], abs=0.03)
    for component, (m, c) in zip(found.components, parts, strict=True):
        assert component.mean() == pytest.approx(m, abs=0.15)
        assert component.covariance() == pytest.approx(np.array(c), abs=0.2)
    assert distance(found, a) < distance(em(a, 3), a)


def test_the_fit_is_a_minimum():
    """No step in any parameter brings the RKHS distance down."""
    rng = np.random.default_rng(1)
    two = rng.normal(size=(200, 2)) + np.repeat([[-1.5], [1.5]], 100, axis=0)
    a = kb.MeanEmbedding(two, rng.normal(1.0, 0.8, 200), kb.Gaussian(0.8)).normalise()
    found = a.mixture(2, random_state=0)
    pairs = [(c.mean(), c.covariance()) for c in found.components]
    least = distance(found, a) ** 2

    def at(shares, pairs):
        return distance(kb.Mixture([stats.multivariate_normal(m, S) for m, S in pairs], shares), a) ** 2

    assert at(found.weights, pairs) == pytest.approx(least, abs=1e-12)
    for sign in (-1.0, 1.0):
        assert at(found.weights + sign * np.array([1e-3, -1e-3]), pairs) > least - 1e-11
        for j in range(2):
            for i in range(2):
                moved = [(m.copy(), S.copy()) for m, S in pairs]
                moved[j][0][i] += sign * 1e-3
                assert at(found.weights, moved) > least - 1e-11
                wider = [(m.copy(), S.copy()) for m, S in pairs]
                wider[j][1][i, i] *= 1 + sign * 1e-3
                assert at(found.weights, wider) > least - 1e-11


def test_signed_weights_are_used_as_they_are():
    """Weights of ridge regression on uniform points: EM sees their positive part only, and spreads its components."""
    truth = kb.Mixture([stats.norm(-1.5, 0.3), stats.norm(1.0, 0.5)], [0.4, 0.6])
    kernel = kb.Gaussian(1.0)
    x = 10 * even_draws.uniforms(200, 1, np.random.default_rng(0))[:, 0] - 5
    target = kb.AnalyticEmbedding(truth, kernel)
    a = kb.MeanEmbedding(x, np.linalg.solve(kernel.gram(x) + 2e-4 * np.eye(200), target(x)), kernel)
    assert a.negative_mass() > 0.02
    found, naive = a.mixture(2, random_state=0), em(a, 2)
    assert distance(found, a.normalise()) < 0.2 * distance(naive, a.normalise())
    grid = np.linspace(-4, 4, 401)
    errors = [np.sum((m.density(grid) - truth.density(grid)) ** 2) for m in (found, naive)]
    assert errors[0] < 0.2 * errors[1]
    assert found.weights == pytest.approx([0.6, 0.4], abs=0.02)
    assert [c.mean()[0] for c in found.components] == pytest.approx([1.0, -1.5], abs=0.05)


def test_the_scale_of_kernel_columns_and_weights_changes_nothing():
    x = np.column_stack([two_humps(400, 0), np.random.default_rng(1).normal(size=400)])
    plain = kb.MeanEmbedding(x, kernel=kb.Gaussian([1.0, 2.0])).mixture(2, random_state=0)
    scale = np.array([1e4, 1e-4])
    scaled = kb.MeanEmbedding(x * scale, np.full(400, 9.0), 5.0 * kb.Gaussian([1e4, 2e-4])).mixture(2, random_state=0)
    assert scaled.weights == pytest.approx(plain.weights, abs=1e-6)
    for a, b in zip(scaled.components, plain.components, strict=True):
        assert a.mean() / scale == pytest.approx(b.mean(), abs=1e-4)
        assert a.covariance() / np.outer(scale, scale) == pytest.approx(b.covariance(), abs=1e-4)


def test_weighted_em_is_em_on_repeated_points():
    rng = np.random.default_rng(2)
    x, copies = two_humps(150, 2)[:, None], rng.integers(1, 5, 150)
    peer = GaussianMixture(2, n_init=3, tol=1e-8, max_iter=1000, random_state=0).fit(np.repeat(x, copies, axis=0))
    order = np.argsort(-peer.weights_)
    for copied in (
        kb.MeanEmbedding(x, copies, kb.Laplace()),
        kb.MeanEmbedding(np.repeat(x, copies, axis=0), kernel=kb.Laplace()),
    ):
        found = copied.mixture(2, random_state=0)
        assert found.weights == pytest.approx(peer.weights_[order], abs=2e-3)
        assert [c.mean()[0] for c in found.components] == pytest.approx(peer.means_[order, 0], abs=5e-3)
        assert [c.covariance()[0, 0] for c in found.components] == pytest.approx(
            peer.covariances_[order, 0, 0], abs=5e-3
        )


@pytest.mark.parametrize("kernel", [kb.Gaussian(1.0), kb.Laplace(1.0)], ids=["distance", "em"])
def test_one_component_of_a_normal(kernel):
    x = stats.norm(1.0, 2.0).ppf((np.arange(500) + 0.5) / 500)
    (component,) = kb.MeanEmbedding(x, kernel=kernel).mixture(1).components
    assert component.mean() == pytest.approx(1.0, abs=1e-3)
    assert component.covariance() == pytest.approx(4.0, rel=0.02)


@pytest.mark.parametrize("kernel", [kb.Gaussian(1.0), kb.Laplace(1.0)], ids=["distance", "em"])
def test_large_samples_start_from_a_part(kernel):
    x = two_humps(12_000, 4)
    found = kb.MeanEmbedding(x, kernel=kernel).mixture(2, random_state=0)
    assert found.weights == pytest.approx(SHARES, abs=0.015)
    assert [c.mean()[0] for c in found.components] == pytest.approx(MEANS, abs=0.05)
    assert [np.sqrt(c.covariance()[0, 0]) for c in found.components] == pytest.approx(DEVIATIONS, abs=0.04)


def test_the_same_seed_gives_the_same_mixture():
    a = kb.MeanEmbedding(two_humps(300, 3), kernel=kb.Gaussian(1.0))
    one, other = (a.mixture(3, random_state=5) for _ in range(2))
    assert (one.weights == other.weights).all()
    assert (one.weights >= 0).all()
    assert (np.diff(one.weights) <= 0).all()


def test_what_cannot_be_fitted_is_refused():
    a = kb.MeanEmbedding([0.0, 1.0, 1.0, 2.0], [0.5, 0.3, 0.3, -0.1], kb.Gaussian())
    with pytest.raises(ValueError, match="components=3 need as many distinct points with positive weight; there are 2"):
        a.mixture(3)
    for k in (0, 1.5, "two"):
        with pytest.raises(ValueError, match="components must be"):
            a.mixture(k)
    with pytest.raises(ValueError, match="not vectors"):
        kb.MeanEmbedding(["a", "b"], kernel=kb.Delta()).mixture(1)
    point = kb.MeanEmbedding([[3.0, 3.0]] * 4, kernel=kb.Gaussian()).mixture(1)
    assert point.mean() == pytest.approx([3.0, 3.0])

"""Modes and pre-images against dense grids and exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb

RNG = np.random.default_rng(0)
LINE = np.concatenate([RNG.normal(-2.0, 0.6, 60), RNG.normal(1.5, 0.9, 90)])[:, None]
PLANE = np.concatenate([RNG.normal([-1.5, 0.0], 0.5, (40, 2)), RNG.normal([1.0, 1.0], [0.9, 0.4], (60, 2))])
SIGNED = RNG.normal(0.5, 1.0, size=150)

KERNELS = {
    "gaussian": kb.Gaussian(0.7),
    "scaled": 3.0 * kb.Gaussian(0.7),
    "rational": kb.RationalQuadratic(0.7, alpha=1.5),
    "matern 5/2": kb.Matern(2.5, 0.8),
    "matern 1/2": kb.Matern(0.5, 1.0),
    "laplace": kb.Laplace(0.8),
    "sum": kb.Gaussian(0.5) + kb.Matern(1.5, 2.0),
    "product": kb.Gaussian(1.0) * kb.Polynomial(2, scale=0.1),
}


def misfit(kernel, points, X, w):
    """|k(., x) - mu|^2 for each x, up to what does not depend on it; from differences, row by row.

    With several columns of weights, one for each.
    """
    parts = np.array_split(points, 40)
    return np.concatenate([(kernel.diag(p) - 2.0 * (kernel.gram(p, X) @ w).T).T for p in parts])


@pytest.mark.parametrize("name", KERNELS)
def test_preimages_on_the_line(name):
    kernel = KERNELS[name]
    grid = np.concatenate([np.linspace(-6, 6, 24_001)[:, None], LINE])
    W = np.stack([np.ones(150), SIGNED], axis=1)
    for w, scores in zip(W.T, misfit(kernel, grid, LINE, W / W.sum(0)).T, strict=True):
        found = kb.MeanEmbedding(LINE, w, kernel).preimage()
        assert found.shape == (1,)
        assert misfit(kernel, np.tile(found, (40, 1)), LINE, w / w.sum())[0] <= scores.min() + 1e-9
        assert found == pytest.approx(grid[scores.argmin()], abs=1e-3)


@pytest.mark.parametrize("name", ["gaussian", "matern 5/2", "laplace", "matern 1/2"])
def test_preimages_in_the_plane(name):
    kernel = KERNELS[name]
    w = np.ones(100) / 100
    side = np.linspace(-2.5, 2.5, 251)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    corners = np.stack(np.meshgrid(*PLANE.T, indexing="ij"), axis=-1).reshape(
        -1, 2
    )  # where the Laplace kernel has kinks
    grid = np.concatenate([grid, corners])
    scores = misfit(kernel, grid, PLANE, w)
    found = kb.MeanEmbedding(PLANE, kernel=kernel).preimage()
    assert misfit(kernel, np.tile(found, (40, 1)), PLANE, w)[0] <= scores.min() + 1e-9
    assert found == pytest.approx(grid[scores.argmin()], abs=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_preimages_under_the_laplace_kernel_sit_on_kinks(seed):
    """Where the embedding is positive its maximum has a point's coordinate in every column: all pairs are tried."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(200, 2)), rng.normal(0.6, 1.0, 200)
    kernel, w = kb.Laplace(rng.choice([0.3, 1.0, 3.0])), w / w.sum()
    factors = [np.exp(-np.abs(x[:, None] - x) / kernel.lengthscale) for x in X.T]
    highest = ((factors[0] * w) @ factors[1].T).max()
    found = kb.MeanEmbedding(X, w, kernel).preimage()
    assert np.exp(-np.abs(found - X).sum(1) / kernel.lengthscale) @ w == pytest.approx(highest, abs=1e-6)


def test_the_preimage_does_not_depend_on_scale_or_total():
    expected = kb.MeanEmbedding(PLANE, kernel=kb.Gaussian([0.7, 0.4])).preimage()
    for scale in (1e-6, 1e6):
        a = kb.MeanEmbedding(PLANE * [1.0, scale], np.full(100, 7.0), kb.Gaussian([0.7, 0.4 * scale]))
        assert a.preimage() / [1.0, scale] == pytest.approx(expected, abs=1e-6)


def test_the_preimage_under_a_linear_kernel_is_the_mean():
    w = SIGNED[:100]
    a = kb.MeanEmbedding(PLANE, w, kb.Linear())
    assert a.preimage() == pytest.approx(a.mean(), abs=1e-7)


def test_the_preimage_of_a_normal_is_its_mean():
    x = stats.norm(3.0, 2.0).ppf((np.arange(3000) + 0.5) / 3000)
    assert kb.MeanEmbedding(x, kernel=kb.Gaussian(1.0)).preimage() == pytest.approx(3.0, abs=1e-5)


def test_more_points_than_are_looked_at():
    """Sorted, so that the best points are not among the first."""
    x = np.sort(np.concatenate([np.random.default_rng(0).normal(5.0, 0.1, 3000), np.linspace(-9, 9, 3000)]))
    a = kb.MeanEmbedding(x, kernel=kb.Gaussian(0.5))
    assert a.preimage() == pytest.approx(5.0, abs=0.02)
    assert a.mode("density") == pytest.approx(5.0, abs=0.1)


def test_preimages_of_other_kernels_are_the_best_of_the_points():
    words = ["kernel", "bayes", "embedding", "mean", "sample", "kernels"]
    w = np.array([0.3, -0.2, 0.3, 0.1, 0.2, 0.3])

    def letters(a, b):
        return len(set(a) & set(b))

    scores = [letters(a, a) - 2 * sum(v * letters(a, b) for v, b in zip(w, words, strict=True)) for a in words]
    assert kb.MeanEmbedding(words, w, kb.FunctionKernel(letters)).preimage() == words[int(np.argmin(scores))]
    ball = kb.MeanEmbedding([[0.1, 0.2], [0.5, 0.0], [-0.4, 0.3]], kernel=kb.InfinitePolynomial())
    assert ball.preimage() in ball.points
    assert kb.MeanEmbedding(["a", "b", "b"], kernel=kb.Delta()).preimage() == "b"


# ---------------------------------------------------------------------------------------------------------- modes


def test_the_heaviest_point_counts_copies_together():
    a = kb.MeanEmbedding([[0.0, 1.0], [2.0, 2.0], [0.0, 1.0], [3.0, 0.0]], [0.3, 0.4, 0.3, -0.2], kb.Gaussian())
    assert (a.mode() == [0.0, 1.0]).all()
    assert (a.mode(method="weight") == a.mode()).all()
    assert ((-1.0 * a).mode() == [0.0, 1.0]).all()  # relative to the sum
    assert kb.MeanEmbedding(["x", "y", "x"], [0.3, 0.4, 0.3], kb.Delta()).mode() == "x"
    mixed = kb.MeanEmbedding([1, "y", None], [0.2, 0.5, 0.3], kb.FunctionKernel(lambda a, b: float(a == b)))
    assert mixed.mode() == "y"
    a.mode()[0] = 9.0
    assert a.points[0, 0] == 0.0


@pytest.mark.parametrize("w", [np.ones(150), SIGNED], ids=["uniform", "signed"])
def test_the_mode_of_the_density_on_the_line(w):
    a = kb.MeanEmbedding(LINE, w, kb.Gaussian(1.0))
    grid = np.linspace(-6, 6, 6001)
    for bandwidth in (None, 0.05, 0.3, 3.0):
        density = a.density(grid, bandwidth)
        found = a.mode("density", bandwidth)
        assert a.density(found[None], bandwidth) >= density.max() * (1 - 1e-9)
        assert found == pytest.approx(grid[density.argmax()], abs=0.01)


def test_the_mode_of_the_density_in_the_plane():
    a = kb.MeanEmbedding(PLANE, kernel=kb.Laplace())
    side = np.linspace(-3, 3, 301)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    density = a.density(grid)
    found = a.mode("density")
    assert a.density(found[None]) >= density.max()
    assert found == pytest.approx(grid[density.argmax()], abs=0.03)


def test_bad_methods_are_refused():
    a = kb.MeanEmbedding(LINE, kernel=kb.Gaussian())
    with pytest.raises(ValueError, match="method must be one of 'weight', 'density'"):
        a.mode("mean")
    with pytest.raises(ValueError, match="bandwidth"):
        a.mode("density", -1.0)
    with pytest.raises(ValueError, match="not vectors"):
        kb.MeanEmbedding(["a", "b"], kernel=kb.Delta()).mode("density")

"""Weighted embeddings against double sums over pairs of points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import kernelbayes as kb

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(7, 2)), RNG.normal(0.5, 1.3, size=(5, 2))
V, W = RNG.normal(size=7), RNG.normal(size=5)  # signed
GRID = RNG.normal(size=(4, 2))


def gaussian(x, y, lengthscale):
    return math.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / (2 * lengthscale**2))


def laplace(x, y, lengthscale):
    return math.exp(-sum(abs(a - b) for a, b in zip(x, y, strict=True)) / lengthscale)


KERNELS = {
    "gaussian": (kb.Gaussian(0.8), lambda x, y: gaussian(x, y, 0.8)),
    "laplace": (kb.Laplace(1.5), lambda x, y: laplace(x, y, 1.5)),
    "sum": (2.0 * kb.Gaussian(0.8) + kb.Linear(1.0), lambda x, y: 2 * gaussian(x, y, 0.8) + x @ y + 1),
}


def double_sum(k, X, v, Y, w):
    return math.fsum(a * b * k(x, y) for a, x in zip(v, X, strict=True) for b, y in zip(w, Y, strict=True))


@pytest.fixture(params=KERNELS)
def setting(request):
    kernel, k = KERNELS[request.param]
    return kb.MeanEmbedding(X, V, kernel), kb.MeanEmbedding(Y, W, kernel), k


def test_values_are_weighted_sums_of_kernels(setting):
    a, _, k = setting
    values = a(GRID)
    assert values.dtype == np.float64
    assert values == pytest.approx([double_sum(k, [g], [1.0], X, V) for g in GRID])


def test_inner_norm_and_distance_are_double_sums(setting):
    a, b, k = setting
    aa, bb, ab = double_sum(k, X, V, X, V), double_sum(k, Y, W, Y, W), double_sum(k, X, V, Y, W)
    assert a.inner(b) == pytest.approx(ab)
    assert a.norm() == pytest.approx(math.sqrt(aa))
    assert a.distance(b) == pytest.approx(math.sqrt(aa + bb - 2 * ab))
    assert all(isinstance(number, float) for number in (a.inner(b), a.norm(), a.distance(b)))


def test_blocks_of_rows_give_the_same_values(setting, monkeypatch):
    a, b, _ = setting
    whole = a(GRID), a.inner(b)
    monkeypatch.setattr("kernelbayes.kernels._base._BLOCK_ELEMENTS", 8)
    assert a(GRID) == pytest.approx(whole[0])
    assert a.inner(b) == pytest.approx(whole[1])


def test_arithmetic_is_that_of_the_functions(setting):
    a, b, _ = setting
    at_a, at_b = a(GRID), b(GRID)
    for combination, expected in (
        (a + b, at_a + at_b),
        (a - b, at_a - at_b),
        (0.3 * a, 0.3 * at_a),
        (a * np.float64(0.3), 0.3 * at_a),
        (-a, -at_a),
        (0.25 * a + 0.75 * b - a, -0.75 * at_a + 0.75 * at_b),
    ):
        assert combination(GRID) == pytest.approx(expected)
    assert (a - b).norm() == pytest.approx(a.distance(b))
    assert (0.3 * a).norm() == pytest.approx(0.3 * a.norm())


def test_arithmetic_leaves_its_operands_alone():
    weights = V.copy()
    a = kb.MeanEmbedding(X, weights, kb.Gaussian())
    _ = (2.0 * a + a).normalise()
    assert (a.weights == V).all()
    assert (weights == V).all()


def test_the_distance_of_an_embedding_to_itself_is_zero():
    a = kb.MeanEmbedding(X, V, kb.Gaussian())
    assert a.distance(kb.MeanEmbedding(X[::-1], V[::-1], kb.Gaussian())) < 1e-7
    assert (a - a).norm() < 1e-7


def test_the_linear_kernel_embeds_the_mean():
    a, b = kb.MeanEmbedding(X, kernel=kb.Linear()), kb.MeanEmbedding(Y, kernel=kb.Linear())
    assert a.distance(b) == pytest.approx(np.linalg.norm(X.mean(0) - Y.mean(0)))


def test_expectations_use_the_weights_as_they_are():
    a = kb.MeanEmbedding(X, V, kb.Gaussian())
    assert a.expect(lambda x: x[:, 0] ** 2) == pytest.approx(
        math.fsum(v * x[0] ** 2 for v, x in zip(V, X, strict=True))
    )
    assert a.expect(lambda x: x > 0) == pytest.approx([V[X[:, j] > 0].sum() for j in (0, 1)])
    assert a.expect(lambda x: np.ones(len(x))) == pytest.approx(V.sum())
    assert kb.MeanEmbedding(X, kernel=kb.Gaussian()).expect(lambda x: x) == pytest.approx(X.mean(0))


def test_the_expectation_of_a_function_in_the_space_is_an_inner_product():
    a, f = kb.MeanEmbedding(X, V, kb.Gaussian(0.8)), kb.MeanEmbedding(Y, W, kb.Gaussian(0.8))
    assert a.expect(f) == pytest.approx(a.inner(f))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (3.0, "function"),
        (lambda x: 1.0, "one row per point"),
        (lambda x: x[:3], "one row per point"),
        (lambda x: x[:, :, None], "one row per point"),
        (lambda x: np.full(len(x), np.nan), "NaN"),
    ],
)
def test_what_has_no_expectation_is_refused(f, message):
    with pytest.raises(ValueError, match=message):
        kb.MeanEmbedding(X, kernel=kb.Gaussian()).expect(f)


def test_normalise():
    a = kb.MeanEmbedding(X, V, kb.Gaussian()).normalise()
    assert a.weights.sum() == pytest.approx(1.0)
    assert a.weights == pytest.approx(V / V.sum())
    with pytest.raises(ValueError, match="cannot be normalised"):
        kb.MeanEmbedding([0.0, 1.0, 2.0], [1.0, -0.5, -0.5], kb.Gaussian()).normalise()
    with pytest.raises(ValueError, match="cannot be normalised"):
        (0.0 * a).normalise()


def test_effective_sample_size():
    assert kb.MeanEmbedding(X, kernel=kb.Gaussian()).ess() == pytest.approx(7)
    assert kb.MeanEmbedding(X, np.full(7, 3.0), kb.Gaussian()).ess() == pytest.approx(7)
    assert kb.MeanEmbedding(X, np.eye(7)[2], kb.Gaussian()).ess() == pytest.approx(1)
    assert kb.MeanEmbedding([0.0, 1.0], [2.0, -1.0], kb.Gaussian()).ess() == pytest.approx(1 / 5)
    normalised = kb.MeanEmbedding(X, V, kb.Gaussian()).normalise()
    assert normalised.ess() == pytest.approx(1 / (normalised.weights**2).sum())


def test_different_kernels_are_refused():
    a = kb.MeanEmbedding(X, kernel=kb.Gaussian(1.0))
    for kernel in (kb.Gaussian(2.0), kb.Laplace(1.0), 1.0 * kb.Gaussian(1.0)):
        b = kb.MeanEmbedding(Y, kernel=kernel)
        for operation in (a.inner, a.distance, a.__add__, a.__sub__):
            with pytest.raises(ValueError, match="different kernels"):
                operation(b)
    assert a.inner(kb.MeanEmbedding(Y, kernel=kb.Gaussian(1))) > 0  # another object, the same kernel


def test_what_is_no_embedding_is_refused():
    a = kb.MeanEmbedding(X, kernel=kb.Gaussian())
    for operation in (a.inner, a.distance):
        with pytest.raises(ValueError, match="expected an embedding"):
            operation(3)
    for operation in (lambda: a + 1, lambda: a - 1, lambda: 1 - a):
        with pytest.raises(TypeError):
            operation()
    for factor in ([1.0, 2.0], "a", np.nan):
        with pytest.raises(ValueError, match="factor"):
            a * factor


def test_points_of_another_width_are_refused_not_broadcast():
    a, b = kb.MeanEmbedding(X[:, :1], kernel=kb.Gaussian()), kb.MeanEmbedding(Y, kernel=kb.Gaussian())
    for operation in (lambda: a.inner(b), lambda: b.distance(a), lambda: b([[1.0]]), lambda: a([[1.0, 2.0]])):
        with pytest.raises(ValueError, match="shape"):
            operation()


@pytest.mark.parametrize("weights", [[1.0, 2.0], np.ones((7, 1)), np.full(7, np.inf), ["a"] * 7])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        kb.MeanEmbedding(X, weights, kb.Gaussian())


def test_the_default_kernel_has_the_median_distance():
    distances = [np.linalg.norm(X[i] - X[j]) for i in range(7) for j in range(i)]
    assert kb.MeanEmbedding(X).kernel.lengthscale == pytest.approx(np.median(distances))


def test_embeddings_of_labels_hold_frequencies():
    a = kb.MeanEmbedding(["cat", "dog", "dog", "ox"], kernel=kb.Delta())
    b = kb.MeanEmbedding(["cat", "giraffe"], [0.5, -0.5], kernel=kb.Delta())
    assert a(["dog", "cat", "giraffe"]) == pytest.approx([0.5, 0.25, 0.0])
    assert a.norm() ** 2 == pytest.approx(0.25**2 + 0.5**2 + 0.25**2)
    assert a.inner(b) == pytest.approx(0.125)
    assert (a + b)(["giraffe", "cat"]) == pytest.approx([-0.5, 0.75])
    assert a.expect(lambda words: [len(word) for word in words]) == pytest.approx((3 + 3 + 3 + 2) / 4)


def test_embeddings_of_objects():
    def shared(a, b):
        return len(set(a) & set(b))

    kernel = kb.FunctionKernel(shared)
    a, b = kb.MeanEmbedding(["kernel", "bayes"], [0.75, 0.25], kernel), kb.MeanEmbedding(["mean"], kernel=kernel)
    assert a(["bee"]) == pytest.approx([0.75 * 1 + 0.25 * 2])
    assert a.inner(b) == pytest.approx(0.75 * 2 + 0.25 * 2)
    assert a.distance(b) ** 2 == pytest.approx(0.75**2 * 5 + 2 * 0.75 * 0.25 * 1 + 0.25**2 * 5 + 4 - 2 * 2)
    assert (a + b).points.tolist() == ["kernel", "bayes", "mean"]


def test_embeddings_of_sets():
    kernel = kb.SetKernel(kb.Linear(), lengthscale=2.0)  # a Gaussian kernel of the sets' means
    sets = [np.array([[0.0], [2.0]]), np.array([[4.0]])]
    a = kb.MeanEmbedding(sets, kernel=kernel)
    expected = 0.5 * math.exp(-1 / 8) + 0.5 * math.exp(-4 / 8)
    assert a([[[2.0], [2.0]]]) == pytest.approx([expected])


# ------------------------------------------------------------------------------------------------- properties

POINTS = st.integers(1, 6).flatmap(lambda n: arrays(np.float64, (n, 2), elements=st.floats(-3, 3, width=32)))


@st.composite
def embeddings(draw):
    points = draw(POINTS)
    weights = draw(arrays(np.float64, len(points), elements=st.floats(-2, 2, width=32)))
    return kb.MeanEmbedding(points, weights, kb.Gaussian(1.0))


@settings(derandomize=True, max_examples=30, deadline=None)
@given(embeddings(), embeddings(), embeddings())
def test_distance_is_a_metric(a, b, c):
    assert a.distance(b) == pytest.approx(b.distance(a), abs=1e-6)
    assert a.distance(c) <= a.distance(b) + b.distance(c) + 1e-6
    assert abs(a.inner(b)) <= a.norm() * b.norm() + 1e-6


@settings(derandomize=True, max_examples=30, deadline=None)
@given(embeddings(), st.randoms(use_true_random=False))
def test_the_order_of_points_means_nothing(a, random):
    order = random.sample(range(len(a)), len(a))
    b = kb.MeanEmbedding(a.points[order], a.weights[order], a.kernel)
    assert b(GRID) == pytest.approx(a(GRID), abs=1e-12)
    assert b.norm() == pytest.approx(a.norm(), abs=1e-7)
    assert b.ess() == pytest.approx(a.ess())
    assert a.distance(b) < 1e-6

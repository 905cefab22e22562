"""Herding, exchanges, resampling and subsets, beside brute force in plain NumPy."""

import tracemalloc

import equinox as eqx
import numpy as np
import pytest
from jax import numpy as jnp
from scipy import optimize, stats

import kernelbayes as kb
from kernelbayes.embeddings._sampling import _on_landmarks
from kernelbayes.features import _herding
from kernelbayes.features._herding import Pool, herd
from oracles import even_draws

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 2))
SIGNED = RNG.normal(0.5, 1.0, size=60)  # they sum to about 30, and a third of them are negative
OTHERS = RNG.normal(size=(80, 2))


def gaussian(A, B, lengthscale=0.8):
    return np.exp(-((A[:, None, :] - B[None, :, :]) ** 2).sum(-1) / (2 * lengthscale**2))


def cubic(A, B):
    return (A @ B.T + 1.0) ** 3


KERNELS = {"gaussian": (kb.Gaussian(0.8), gaussian), "polynomial": (kb.Polynomial(3), cubic)}


def distance(gram, few, X, w):
    """The RKHS distance of equally weighted points to the embedding (X, w), all terms written out."""
    v = np.full(len(few), 1.0 / len(few))
    return np.sqrt(max(v @ gram(few, few) @ v - 2 * v @ gram(few, X) @ w + w @ gram(X, X) @ w, 0.0))


def greedy(gram, X, w, Z, size, repeat=True):
    """At each step the candidate with the smallest distance, found by computing them all."""
    chosen = []
    for _ in range(size):
        found = [np.inf if not repeat and j in chosen else distance(gram, Z[[*chosen, j]], X, w) for j in range(len(Z))]
        chosen.append(int(np.argmin(found)))
    return chosen


# ------------------------------------------------------------------------------------------------- greedy herding


@pytest.mark.parametrize("repeat", [True, False])
@pytest.mark.parametrize("weights", [np.full(60, 1 / 60), SIGNED / SIGNED.sum()], ids=["uniform", "signed"])
@pytest.mark.parametrize("name", KERNELS)
def test_each_step_minimises_the_distance(name, weights, repeat):
    kernel, gram = KERNELS[name]
    embedding = kb.MeanEmbedding(POINTS, weights, kernel)
    for Z, given in ((POINTS, None), (OTHERS, OTHERS)):
        found = embedding.herd(12, given, repeat=repeat)
        assert (found.points == Z[greedy(gram, POINTS, weights, Z, 12, repeat)]).all()
        assert (found.weights == 1 / 12).all()
        assert found.kernel is kernel


def test_it_is_the_printed_rule_where_the_diagonal_is_constant():
    """Equations 2.16-2.17; and for another kernel it is not, and does better at once."""
    w = SIGNED / SIGNED.sum()

    def printed(gram, size):
        chosen = []
        for t in range(1, size + 1):
            score = gram(POINTS, POINTS) @ w - gram(POINTS, POINTS[chosen]).sum(1) / t
            chosen.append(int(score.argmax()))
        return POINTS[chosen]

    for name, (kernel, gram) in KERNELS.items():
        found, by_rule = kb.MeanEmbedding(POINTS, w, kernel).herd(15).points, printed(gram, 15)
        if name == "gaussian":
            assert (found == by_rule).all()
        else:
            assert distance(gram, found[:1], POINTS, w) < 0.9 * distance(gram, by_rule[:1], POINTS, w)


def test_more_points_begin_with_the_fewer():
    embedding = kb.MeanEmbedding(POINTS, kernel=kb.Gaussian(0.8))
    assert (embedding.herd(30).points[:10] == embedding.herd(10).points).all()


@pytest.mark.parametrize("factor", [1.0, 7.0, -0.2])
def test_weights_count_relative_to_their_sum(factor):
    few = kb.MeanEmbedding(POINTS, factor * SIGNED, kb.Gaussian(0.8)).herd(20)
    assert (few.points == kb.MeanEmbedding(POINTS, SIGNED / SIGNED.sum(), kb.Gaussian(0.8)).herd(20).points).all()


def test_the_distance_falls_as_one_over_n_in_finite_dimension():
    """Section 2.7: the rate is that of 1/n where the RKHS has finite dimension, and 1/sqrt(n) for random draws."""
    X = 2 * even_draws.uniforms(400, 1, RNG) - 1
    K, sizes = cubic(X, X), np.array([16, 32, 64, 128, 256])

    def squared(chosen):
        return K[np.ix_(chosen, chosen)].mean() - 2 * K[chosen].mean() + K.mean()

    rows = np.arange(400)[:, None]  # herded by number, so that the choice is known
    embedding = kb.MeanEmbedding(rows, kernel=kb.PrecomputedKernel(K))
    herded = [squared(embedding.herd(int(n)).points[:, 0].astype(int)) for n in sizes]
    drawn = [np.mean([squared(RNG.integers(400, size=n)) for _ in range(100)]) for n in sizes]
    slope, of_draws = (0.5 * np.polyfit(np.log(sizes), np.log(d), 1)[0] for d in (herded, drawn))
    assert -1.3 < slope < -0.75
    assert -0.6 < of_draws < -0.4


def test_objects_can_be_herded():
    words = ["kernel", "bayes", "mean", "sample", "kernel", "kernel"]
    shared = kb.FunctionKernel(lambda a, b: float(len(set(a) & set(b))))
    found = kb.MeanEmbedding(words, kernel=shared).herd(4)
    K = np.array([[len(set(a) & set(b)) for b in words] for a in words], dtype=float)
    rows = kb.MeanEmbedding(np.arange(6), kernel=kb.PrecomputedKernel(K)).herd(4)
    assert list(found.points) == [words[int(i)] for i in rows.points[:, 0]]
    labels = kb.MeanEmbedding(["a", "b", "c"], [0.5, 0.3, 0.2], kb.Delta()).herd(10)
    assert sorted(labels.points) == list("aaaaabbbcc")


def test_a_feature_map_is_applied_once():
    calls = []

    def squares(X):
        calls.append(len(X))
        return np.column_stack([X, X**2])

    found = kb.MeanEmbedding(POINTS, SIGNED, kb.MappedKernel(squares, kb.Gaussian(0.8))).herd(10)
    features = kb.MeanEmbedding(np.column_stack([POINTS, POINTS**2]), SIGNED, kb.Gaussian(0.8)).herd(10)
    assert (found.points == features.points[:, :2]).all()
    assert len(calls) == 1


# ------------------------------------------------------------------------------------- evaluation at a larger scale


def by_rows(monkeypatch):
    """No Gram matrix is held; K w is computed in tiles."""
    monkeypatch.setattr(_herding, "_HELD_MATRIX", 0)
    monkeypatch.setattr(_herding, "_TILE", 300)


def by_factor(monkeypatch):
    """Nor is K w computed from its entries, where K has a thin factor."""
    by_rows(monkeypatch)
    monkeypatch.setattr(_herding, "_FACTOR_POINTS", 10)
    monkeypatch.setattr(_herding, "_PROBE_POINTS", 50)


@pytest.mark.parametrize("way", [by_rows, by_factor])
@pytest.mark.parametrize("parts", ["one", "two"])
def test_large_pools_give_the_same_answer(monkeypatch, way, parts):
    X, Y = RNG.normal(size=(1000, 2)), RNG.normal(size=(1000, 1))
    both = [(kb.Gaussian(20.0), X), (kb.Gaussian(30.0), Y)]
    both = both[:1] if parts == "one" else both
    w = RNG.normal(0.5, 1.0, size=1000) / 500
    K = np.prod([gaussian(Z, Z, float(kernel.lengthscale)) for kernel, Z in both], axis=0)
    way(monkeypatch)
    pool = Pool(*both)
    if way is by_factor:
        factor = pool._thin_factor()
        assert factor is not None
        assert factor.shape[1] < 84
    values = pool.embed(w)
    assert values == pytest.approx(K @ w, abs=1e-13)
    assert pool._gram is None
    for repeat in (True, False):
        expected = herd(Pool((kb.PrecomputedKernel(K), np.arange(1000)[:, None])), K @ w, 40, repeat=repeat, sweeps=3)
        assert (herd(pool, values, 40, repeat=repeat, sweeps=3) == expected).all()


def test_a_rough_kernel_has_no_thin_factor(monkeypatch):
    """Nor has a smooth one of a rank that the first look, at few of the points, did not show."""
    by_factor(monkeypatch)
    w = np.full(500, 1 / 500)
    rough, hidden = RNG.normal(size=(500, 2)), np.zeros((500, 2))
    hidden[np.setdiff1d(np.arange(500), np.linspace(0, 499, 50).astype(int))] = 100 * RNG.normal(size=(450, 2))
    for X in (rough, hidden):
        pool = Pool((kb.Matern(0.5, 0.3), X))
        assert pool._thin_factor() is None
        distances = np.sqrt(((X[:, None, :] - X) ** 2).sum(-1))
        assert pool.embed(w) == pytest.approx(np.exp(-distances / 0.3) @ w, abs=1e-13)


def test_tiles_of_pairs_with_labels(monkeypatch):
    """Labels are compared by NumPy, so nothing is compiled and no tile is padded."""
    by_rows(monkeypatch)
    X, labels, w = RNG.normal(size=(700, 2)), RNG.choice(list("abc"), 700), RNG.normal(size=700)
    K = gaussian(X, X) * (labels[:, None] == labels)
    assert Pool((kb.Gaussian(0.8), X), (kb.Delta(), labels)).embed(w) == pytest.approx(K @ w, abs=1e-12)


def test_memory_does_not_grow_with_the_square_of_the_sample():
    n = 4000
    X, labels = RNG.normal(size=(n, 2)), RNG.choice(list("abc"), n)
    tracemalloc.start()
    try:
        found = kb.herd_subset(X, labels, 20, kernel=kb.Matern(0.5, 0.3), target_kernel=kb.Delta(), refine=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(set(found)) == 20
    assert peak < 0.5 * 8 * n**2


# --------------------------------------------------------------------------------------------------- exchanges


@pytest.mark.parametrize("repeat", [True, False])
@pytest.mark.parametrize("name", KERNELS)
def test_exchanges_never_raise_the_distance_and_end_where_none_helps(name, repeat):
    kernel, gram = KERNELS[name]
    w = SIGNED / SIGNED.sum()
    embedding = kb.MeanEmbedding(POINTS, w, kernel)
    found = [embedding.herd(9, OTHERS, refine=sweeps, repeat=repeat).points for sweeps in (0, 1, 2, 3, 100)]
    distances = [distance(gram, points, POINTS, w) for points in found]
    assert (np.diff(distances) <= 1e-12).all()
    last = [int(np.flatnonzero((x == OTHERS).all(1))[0]) for x in found[-1]]
    assert repeat or len(set(last)) == 9
    for i in range(9):
        for j in range(len(OTHERS)):
            if repeat or j not in last:
                other = [*last[:i], j, *last[i + 1 :]]
                assert distance(gram, OTHERS[other], POINTS, w) > distances[-1] - 1e-9


def test_equal_candidates_are_not_exchanged_for_ever():
    X = np.repeat(RNG.normal(size=(5, 1)), 4, axis=0)
    pool = Pool((kb.Gaussian(1.0), X))
    w = np.full(20, 1 / 20)
    calls = []
    row = pool.row
    pool.row = lambda p: calls.append(p) or row(p)  # type: ignore[method-assign]
    monkeyed = herd(pool, pool.embed(w), 7, sweeps=10**6)
    assert len(monkeyed) == 7
    assert len(calls) <= 20


# -------------------------------------------------------------------------------------------- continuous domain


def test_points_that_move_come_closer_than_the_best_candidates():
    kernel, gram = KERNELS["gaussian"]
    w = SIGNED / SIGNED.sum()
    embedding = kb.MeanEmbedding(POINTS, w, kernel)
    chosen = embedding.herd(10, refine=100)
    moved = embedding.herd(10, refine=100, continuous=True)
    assert distance(gram, moved.points, POINTS, w) < 0.97 * distance(gram, chosen.points, POINTS, w)
    assert (moved.points >= POINTS.min(0)).all()
    assert (moved.points <= POINTS.max(0)).all()
    assert len(np.unique(moved.points, axis=0)) == 10

    def squared(flat):
        return distance(gram, flat.reshape(10, 2), POINTS, w) ** 2

    slope = optimize.approx_fprime(moved.points.ravel(), squared, 1e-6)
    inside = ((moved.points > POINTS.min(0)) & (moved.points < POINTS.max(0))).ravel()
    assert (
        np.abs(slope[inside]).max() < 1e-4 * np.abs(optimize.approx_fprime(chosen.points.ravel(), squared, 1e-6)).max()
    )


def test_one_point_moves_to_the_maximum():
    """With a constant k(x, x), the best single point is where the embedding is largest: here in the middle."""
    one = kb.AnalyticEmbedding(stats.norm(0.3, 1.0), kb.Gaussian(0.7)).herd(1, continuous=True, random_state=0)
    assert one.points[0, 0] == pytest.approx(0.3, abs=1e-6)
    three = kb.MeanEmbedding([-1.0, 0.1, 1.2], [0.5, 1.0, 0.5], kb.Gaussian(1.0))
    grid = np.linspace(-1, 1, 200_001)
    assert three.herd(1, continuous=True).points[0, 0] == pytest.approx(grid[three(grid).argmax()], abs=1e-5)


def test_two_points_of_a_normal_distribution():
    """The best pair is -a, a, where a minimises a function that can be written down."""
    l2 = 0.6**2

    def squared(a):
        return 0.5 * (1 + np.exp(-2 * a**2 / l2)) - 2 * np.sqrt(l2 / (1 + l2)) * np.exp(-(a**2) / (2 * (1 + l2)))

    a = optimize.minimize_scalar(squared, (0.1, 1.0)).x
    two = kb.AnalyticEmbedding(stats.norm(), kb.Gaussian(0.6)).herd(2, continuous=True, random_state=0)
    assert np.sort(two.points[:, 0]) == pytest.approx([-a, a], abs=1e-6)


def test_equally_spaced_points_of_a_periodic_space():
    """They are the best; only frequencies that are multiples of n are left: sqrt(sum_m (n m)^-4) = sqrt(zeta(4)) / n^2."""
    known = kb.AnalyticEmbedding(stats.uniform(0, 1), kb.PeriodicSobolev(2))
    eight = known.herd(8, refine=5, continuous=True, random_state=0)
    assert known.distance(eight) == pytest.approx(np.pi**2 / np.sqrt(90) / 64, rel=1e-4)
    assert np.diff(np.sort(eight.points[:, 0])) == pytest.approx(1 / 8, abs=1e-3)


def test_equal_points_part():
    """Two points on the one candidate that has weight: they see the same slope, and must not stay together."""
    start = kb.MeanEmbedding([-1.0, 0.0, 1.0], [0.45, 0.1, 0.45], kb.Gaussian(2.0))
    together = start.herd(2, [0.0, 0.0, 1.5, -1.5], refine=0)
    assert (together.points == 0.0).all()
    apart = start.herd(2, [0.0, 0.0, 1.5, -1.5], continuous=True, random_state=0).points[:, 0]
    assert np.ptp(apart) > 1.5
    assert start.distance(kb.MeanEmbedding(apart, kernel=start.kernel)) < 0.2 * start.distance(together)


@pytest.mark.parametrize(
    "kernel",
    [kb.Laplace(0.5), kb.InfinitePolynomial(), 2.0 * kb.Matern(2.5) + kb.Linear()],
    ids=["laplace", "infinite polynomial", "sum"],
)
def test_moving_never_ends_worse(kernel):
    X = RNG.uniform(0.0, 0.69, size=(40, 2))
    embedding = kb.MeanEmbedding(X, kernel=kernel)
    start, moved = (embedding.distance(embedding.herd(6, continuous=c, random_state=0)) for c in (False, True))
    assert moved <= start if isinstance(kernel, kb.Laplace) else moved < start  # it has a peak at each candidate


class Turned(eqx.Module):
    angle: float

    def __call__(self, x):
        c, s = jnp.cos(self.angle), jnp.sin(self.angle)
        return jnp.stack([c * x[0] - s * x[1], s * x[0] + c * x[1]])


def test_points_move_under_a_network_too():
    """A rotation changes no Gaussian kernel, so it changes no answer."""
    plain = kb.MeanEmbedding(POINTS, kernel=kb.Gaussian(0.8)).herd(5, continuous=True)
    turned = kb.MeanEmbedding(POINTS, kernel=kb.MappedKernel(Turned(0.7), kb.Gaussian(0.8))).herd(5, continuous=True)
    assert turned.points == pytest.approx(plain.points, abs=1e-4)


def test_moving_in_blocks_is_the_same(monkeypatch):
    embedding = kb.MeanEmbedding(POINTS, SIGNED, kb.Gaussian(0.8))
    whole = embedding.herd(10, continuous=True, random_state=0)
    monkeypatch.setattr("kernelbayes.embeddings._sampling._BLOCK_ELEMENTS", 300)  # 4, 4, and 2 rows
    assert embedding.herd(10, continuous=True, random_state=0).points == pytest.approx(whole.points, abs=1e-6)


def test_a_smooth_target_moves_to_landmarks_and_a_rough_one_does_not():
    X = RNG.normal(size=(400, 2))
    for weights in (None, RNG.normal(0.2, 1.0, size=400)):
        smooth = kb.MeanEmbedding(X, weights, kb.Gaussian(3.0)).normalise()
        few = _on_landmarks(smooth)
        assert len(few) < 100
        assert few(OTHERS) == pytest.approx(smooth(OTHERS), abs=1e-11)
    rough = kb.MeanEmbedding(X, kernel=kb.Laplace(0.5))
    assert _on_landmarks(rough) is rough


# --------------------------------------------------------------------------------------------- known distributions


def test_a_known_distribution_is_herded_from_its_draws():
    known = kb.AnalyticEmbedding([stats.norm(), stats.uniform(0, 2)], kb.Gaussian(0.7))
    first, again, other = (known.herd(40, random_state=seed) for seed in (0, 0, 1))
    assert (first.points == again.points).all()
    assert (first.points != other.points).any()
    drawn = kb.MeanEmbedding(np.column_stack([RNG.normal(size=40), RNG.uniform(0, 2, 40)]), kernel=known.kernel)
    assert known.distance(first) < 0.3 * known.distance(drawn)
    assert known.distance(known.herd(40, refine=3, random_state=0)) < known.distance(first)
    few = [known.distance(known.herd(20, refine=2, continuous=c, random_state=0)) for c in (False, True)]
    assert few[1] < 0.7 * few[0]


def test_a_known_distribution_on_given_candidates():
    """Brute force again, with the closed form of the embedding of a normal distribution."""
    grid, l2 = np.linspace(-3, 3, 41)[:, None], 0.5
    known = kb.AnalyticEmbedding(stats.norm(0.2, 1.0), kb.Gaussian(np.sqrt(l2)))
    mu = np.sqrt(l2 / (1 + l2)) * np.exp(-((grid[:, 0] - 0.2) ** 2) / (2 * (1 + l2)))
    K, chosen = gaussian(grid, grid, np.sqrt(l2)), []
    for t in range(1, 11):
        squared = [
            K[np.ix_([*chosen, j], [*chosen, j])].sum() / t**2 - 2 * mu[[*chosen, j]].sum() / t for j in range(41)
        ]
        chosen.append(int(np.argmin(squared)))
    assert (known.herd(10, grid).points == grid[chosen]).all()


# -------------------------------------------------------------------------------------------------- resampling


def test_resampling_acts_below_half_the_points():
    """With weights (1 + c, 1 - c, 1 + c, ...) / n, the sum of squares is (1 + c^2) / n: the rule turns at c = 1."""
    x, sign = np.linspace(-1, 1, 40), np.tile([1.0, -1.0], 20)
    for c, acts in ((0.0, False), (0.999, False), (1.001, True), (1.5, True)):
        embedding = kb.MeanEmbedding(x, 3.0 * (1 + c * sign), kb.Gaussian(0.3))
        assert embedding.needs_resampling() is acts
        found = kb.resample(embedding)
        assert (found is embedding) is not acts
        if acts:
            assert (found.points == embedding.herd(40).points).all()
            assert (found.weights == 1 / 40).all()
    even = kb.MeanEmbedding(x, kernel=kb.Gaussian(0.3))
    assert kb.resample(even, always=True) is not even
    assert len(kb.resample(even, 15)) == 15  # another number of points was asked for


def test_points_are_copied():
    embedding = kb.MeanEmbedding(POINTS, SIGNED**4, kb.Gaussian(0.8))
    few = embedding.herd(25).points
    found = kb.resample(embedding, distinct=25)
    assert (found.points == np.concatenate([few, few, few[:10]])).all()
    assert (found.weights == 1 / 60).all()
    whole = kb.resample(embedding, 50, distinct=25)
    assert embedding.normalise().distance(whole) == pytest.approx(embedding.normalise().distance(embedding.herd(25)))
    refined = kb.resample(embedding, 50, distinct=25, refine=5)
    assert embedding.normalise().distance(refined) < embedding.normalise().distance(whole)


def test_resampling_before_a_transition_pays():
    """Section 3.5: few effective points make a poor sample of the next state, unless they are resampled first."""
    kernel, errors = kb.Gaussian(0.3), []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, 400)
        weighted = kb.MeanEmbedding(x, stats.norm(0, 0.1).pdf(x), kernel).normalise()
        even = kb.resample(weighted)
        after = kb.AnalyticEmbedding(stats.norm(0, np.hypot(0.1, 0.5)), kernel)
        moved = [
            kb.MeanEmbedding(e.points + 0.5 * rng.normal(size=(400, 1)), e.weights, kernel) for e in (weighted, even)
        ]
        errors.append([m.distance(after) for m in moved])
    without, with_resampling = np.mean(errors, axis=0)
    assert with_resampling < 0.6 * without


# ----------------------------------------------------------------------------------------------------- subsets


@pytest.mark.parametrize("labels", [False, True])
def test_a_subset_of_pairs_is_algorithm_6(labels):
    X = RNG.normal(size=(50, 2))
    Y = RNG.choice(list("ab"), 50) if labels else RNG.normal(size=(50, 1))
    L = (Y[:, None] == Y).astype(float) if labels else gaussian(Y, Y, 1.5)
    K = gaussian(X, X) * L
    chosen = []
    for t in range(1, 16):
        score = K.mean(1) - K[:, chosen].sum(1) / t
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
    target_kernel = kb.Delta() if labels else kb.Gaussian(1.5)
    found = kb.herd_subset(X, Y, 15, kernel=kb.Gaussian(0.8), target_kernel=target_kernel)
    assert found.tolist() == chosen

    def squared(c):
        return K[np.ix_(c, c)].mean() - 2 * K[c].mean()

    better = kb.herd_subset(X, Y, 15, kernel=kb.Gaussian(0.8), target_kernel=target_kernel, refine=5)
    assert squared(better) < squared(chosen)


def test_a_subset_by_default():
    X = RNG.normal(size=(200, 3))
    y = X[:, 0] + 0.1 * RNG.normal(size=200)
    given = kb.herd_subset(
        X, y, 200, kernel=kb.Gaussian(kb.median_lengthscale(X)), target_kernel=kb.Gaussian(kb.median_lengthscale(y))
    )
    assert sorted(given) == list(range(200))
    assert (kb.herd_subset(X, y, 30) == given[:30]).all()


# ------------------------------------------------------------------------------------------------------- errors


EMBEDDING = kb.MeanEmbedding(POINTS, kernel=kb.Gaussian(0.8))
KNOWN = kb.AnalyticEmbedding([stats.norm(), stats.norm()], kb.Gaussian())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: EMBEDDING.herd(0), "n must be at least 1"),
        (lambda: EMBEDDING.herd(2.5), "n must be a whole number"),
        (lambda: EMBEDDING.herd(5, refine=-1), "refine must be at least 0"),
        (lambda: EMBEDDING.herd(5, OTHERS[:, :1]), "candidates"),
        (lambda: EMBEDDING.herd(5, np.zeros((4, 3))), r"candidates has points of shape \(3,\)"),
        (lambda: KNOWN.herd(5, np.zeros((4, 3))), r"candidates has points of shape \(3,\)"),
        (lambda: EMBEDDING.herd(5, [[np.nan, 0.0]]), "candidates contains NaN"),
        (lambda: EMBEDDING.herd(5, []), "candidates is empty"),
        (lambda: EMBEDDING.herd(61, repeat=False), "n=61 points cannot be taken without repetition from 60"),
        (lambda: (EMBEDDING - EMBEDDING).herd(5), "weights sum to"),
        (lambda: (0.0 * EMBEDDING).herd(5), "weights sum to 0"),
        (
            lambda: kb.MeanEmbedding(list("abc"), kernel=kb.Delta()).herd(2, continuous=True),
            "Delta kernel does not have",
        ),
        (
            lambda: kb.MeanEmbedding(POINTS, kernel=kb.MappedKernel(np.sin, kb.Gaussian())).herd(2, continuous=True),
            "MappedKernel kernel does not have",
        ),
        (lambda: kb.resample(KNOWN), "weighted sample"),
        (lambda: kb.resample(POINTS), "weighted sample"),
        (lambda: kb.resample(EMBEDDING, 0), "n must be at least 1"),
        (lambda: kb.resample(EMBEDDING, distinct=0), "distinct must be at least 1"),
        (lambda: kb.resample(EMBEDDING, distinct=61), "distinct=61 points cannot be copied to make only n=60"),
        (lambda: kb.resample(EMBEDDING - EMBEDDING), "weights sum to"),
        (lambda: kb.herd_subset(POINTS, SIGNED, 0), "n must be at least 1"),
        (lambda: kb.herd_subset(POINTS, SIGNED, 61), "n=61 exceeds the 60 pairs"),
        (lambda: kb.herd_subset(POINTS, SIGNED[:-1], 5), "X has 60 rows but Y has 59"),
        (lambda: kb.herd_subset(POINTS, list("ab" * 30), 5), "Y holds text"),
        (lambda: kb.herd_subset(POINTS, SIGNED, 5, kernel=1.0), "kernel must be a kernel"),
        (lambda: kb.herd_subset(POINTS, SIGNED, 5, target_kernel=1.0), "target_kernel must be a kernel"),
        (lambda: kb.herd_subset(POINTS, np.ones(60), 5), "Y has no two distinct points"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()

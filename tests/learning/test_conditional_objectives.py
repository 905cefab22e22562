"""The objectives of a conditional embedding against refitting, dense formulas, and finite differences."""

from __future__ import annotations

import equinox as eqx
import numpy as np
import pytest

import kernelbayes as kb
from kernelbayes._backend import float64
from kernelbayes.learning import _conditional as objectives
from kernelbayes.learning import holdout_reg, target_features, tune_kernel, tune_reg
from oracles.closed_forms import gaussian_gram

N = 50
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(N, 2))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1]]) + 0.2 * RNG.normal(size=(N, 2))
K = gaussian_gram(X, X, 0.5)
L = gaussian_gram(Y, Y, 0.8)
V = np.linalg.cholesky(L + 1e-12 * np.eye(N))  # features of y: V V' = L


def padded(X=X, V=V):
    """All points are landmarks, so that the coordinates give the kernel itself."""
    return objectives._prepare(X, V, X)


def refit_without_each_point(K, V, shift):
    """Mean squared error at each point of a regression fitted to all others, the shift being held."""
    total = 0.0
    for i in range(len(K)):
        rest = np.delete(np.arange(len(K)), i)
        coefficients = np.linalg.solve(K[np.ix_(rest, rest)] + shift * np.eye(len(rest)), V[rest])
        total += ((V[i] - K[i, rest] @ coefficients) ** 2).sum()
    return total / len(K)


def equation_2_52(K, L, reg, folds=5):
    """Hsu (2019), equation 2.52 from Gram matrices: errors are expanded, and |C|^2 = tr(A' K A L)."""
    n = len(K)
    losses = []
    for fold in range(min(folds, n)):
        held = np.arange(n) % folds == fold
        train = ~held
        A = np.linalg.inv(K[np.ix_(train, train)] + train.sum() * reg * np.eye(train.sum()))
        W = A @ K[np.ix_(train, held)]
        L_train, L_cross = L[np.ix_(train, train)], L[np.ix_(train, held)]
        errors = np.diag(L)[held] - 2 * (W * L_cross).sum(0) + np.einsum("ij,ik,kj->j", W, L_train, W)
        penalty = np.trace(A.T @ K[np.ix_(train, train)] @ A @ L_train)
        losses.append(errors.mean() + reg * penalty)
    return np.mean(losses)


def traced_loo(params, sample):
    """Leave-one-out as it is compared on the host, for JAX to differentiate."""
    features = objectives.masked_features(params.kernel, sample)
    return objectives.loo_loss(params.reg, features, sample.mask, sample.V)


COMPILED = {f: eqx.filter_jit(f) for f in (traced_loo, objectives._validation_of_kernel)}


@float64
def evaluate(objective, lengthscale, reg, sample):
    return float(COMPILED[objective](objectives.ConditionalParameters(kb.Gaussian(lengthscale), reg), sample))


# ---------------------------------------------------------------------------------------------------- the values


@pytest.mark.parametrize("reg", [1e-6, 1e-3, 1.0])
def test_leave_one_out_is_refitting_without_each_point(reg):
    expected = refit_without_each_point(K, V, N * reg)
    assert evaluate(traced_loo, 0.5, reg, padded()) == pytest.approx(expected, rel=1e-4)
    params = objectives.ConditionalParameters(kb.Gaussian(0.5), reg)
    assert objectives._loo_of_kernel(params, X, X, V)[0] == pytest.approx(expected, rel=1e-4)
    F = np.linalg.cholesky(K)
    assert objectives.loo_loss(reg, F, np.ones(N), V) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("reg", [1e-6, 1e-3, 1.0])
def test_validation_is_equation_2_52(reg):
    expected = equation_2_52(K, L, reg)
    assert evaluate(objectives._validation_of_kernel, 0.5, reg, padded()) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
def test_validation_of_a_handful_of_points(n):
    expected = equation_2_52(K[:n, :n], L[:n, :n], 0.01)
    sample = padded(X[:n], np.linalg.cholesky(L[:n, :n]))
    assert evaluate(objectives._validation_of_kernel, 0.5, 0.01, sample) == pytest.approx(expected, rel=1e-6)


def test_the_two_objectives_differ_by_what_they_hold_out():
    """With n points in n folds and without the penalty, validation is leave-one-out but for the shift."""
    loo = refit_without_each_point(K[:5, :5], V[:5], 4 * 0.01)
    A = [np.linalg.inv(np.delete(np.delete(K[:5, :5], i, 0), i, 1) + 4 * 0.01 * np.eye(4)) for i in range(5)]
    penalties = [
        np.trace(a @ np.delete(np.delete(K[:5, :5], i, 0), i, 1) @ a @ np.delete(np.delete(L[:5, :5], i, 0), i, 1))
        for i, a in enumerate(A)
    ]
    found = evaluate(objectives._validation_of_kernel, 0.5, 0.01, padded(X[:5], V[:5]))
    assert found == pytest.approx(loo + 0.01 * np.mean(penalties), rel=1e-6)


@pytest.mark.parametrize("objective", [traced_loo, objectives._validation_of_kernel])
def test_padding_changes_nothing(objective):
    bare = objectives.Padded(X, np.ones(N), X, np.ones(N), V)
    once = padded()
    assert once.X.shape == (64, 2)
    assert once.V.shape == (64, 64)
    twice = objectives.Padded(
        np.concatenate([once.X, np.full((64, 2), 7.0)]),
        np.concatenate([once.mask, np.zeros(64)]),
        np.concatenate([once.landmarks, np.full((64, 2), -3.0)]),
        np.concatenate([once.landmark_mask, np.zeros(64)]),
        np.pad(once.V, ((0, 64), (0, 3))),
    )
    values = [evaluate(objective, 0.5, 1e-3, sample) for sample in (bare, once, twice)]
    assert values[1] == pytest.approx(values[0], rel=1e-9)
    assert values[2] == pytest.approx(values[0], rel=1e-9)


@pytest.mark.parametrize("method", ["loo", "validation"])
def test_starts_are_compared_by_what_is_minimised(method):
    """By features that are given, and as a function of the kernel: what is minimised."""
    objective, regs = objectives._OBJECTIVES[method], (1e-2, 1e-4, 1e-6)
    bare = objectives.Padded(X, np.ones(N), X[:20], np.ones(20), V)
    F = objectives.masked_features(kb.Gaussian(0.5), bare)
    params = [objectives.ConditionalParameters(kb.Gaussian(0.5), reg) for reg in regs]
    minimised = [float64(objective.of_kernel)(p, *objective.sample(X, X[:20], V)) for p in params]
    np.testing.assert_allclose(objective.at(regs, F, V), np.array(minimised, dtype=float), rtol=1e-8)
    assert objective.at([1e-2], np.full_like(F, np.nan), V) == [np.inf]


def test_masked_features_are_nystrom_features():
    few = X[:7]
    sample = objectives._prepare(X, V, few)
    F = objectives.masked_features(kb.Gaussian(0.5), sample)
    assert (F[N:] == 0).all()
    assert (F[:, 7:] == 0).all()
    G = gaussian_gram(X, few, 0.5)
    assert F[:N] @ F[:N].T == pytest.approx(G @ np.linalg.solve(gaussian_gram(few, few, 0.5), G.T), abs=1e-7)


@pytest.mark.parametrize(("n", "expected"), [(1, 64), (64, 64), (65, 128), (1000, 1024), (1024, 1024)])
def test_samples_of_similar_size_share_a_shape(n, expected):
    assert objectives.padded_size(n) == expected


# ------------------------------------------------------------------------------------------------------ gradients


@pytest.mark.parametrize("objective", [traced_loo, objectives._validation_of_kernel])
def test_gradients_are_finite_differences(objective):
    lengthscale, reg, h = np.array([0.5, 0.9]), 1e-2, 1e-5
    sample = padded()

    params = objectives.ConditionalParameters(kb.Gaussian(lengthscale), reg)
    found = float64(eqx.filter_jit(eqx.filter_grad(objective)))(params, sample)
    by_lengthscale, by_reg = np.asarray(found.kernel.lengthscale), float(found.reg)
    for j in range(2):
        step = h * np.eye(2)[j]
        rise = evaluate(objective, lengthscale + step, reg, sample) - evaluate(
            objective, lengthscale - step, reg, sample
        )
        assert by_lengthscale[j] == pytest.approx(rise / (2 * h), rel=1e-5, abs=1e-7)
    rise = evaluate(objective, lengthscale, reg + h, sample) - evaluate(objective, lengthscale, reg - h, sample)
    assert by_reg == pytest.approx(rise / (2 * h), rel=1e-4)


@pytest.mark.parametrize("lengthscale", [np.array([0.5, 0.9]), np.array([0.7]), 0.7])
@pytest.mark.parametrize(("reg", "offset"), [(1e-2, 0.0), (1e-5, 1e4)])
def test_slopes_that_are_written_out_are_those_that_jax_finds(lengthscale, reg, offset):
    points = X + offset
    sample = objectives.Padded(points, np.ones(N), points[:20], np.ones(20), V)
    params = objectives.ConditionalParameters(kb.Gaussian(lengthscale), reg)
    value, slopes = objectives._loo_of_kernel(params, points, points[:20], V)
    wanted = float64(eqx.filter_jit(eqx.filter_value_and_grad(traced_loo)))(params, sample)
    assert value == pytest.approx(float(wanted[0]), rel=1e-9)
    assert np.shape(slopes[0]) == np.shape(lengthscale)
    np.testing.assert_allclose(slopes[0], wanted[1].kernel.lengthscale, rtol=1e-5)
    assert float(slopes[1]) == pytest.approx(float(wanted[1].reg), rel=1e-6)
    F = objectives.masked_features(params.kernel, sample)
    by_reg = objectives._loo_of_reg(objectives.Regulariser(reg), F, V)
    assert by_reg[0] == pytest.approx(value, rel=1e-9)
    assert float(by_reg[1][0]) == pytest.approx(float(slopes[1]), rel=1e-6)


def test_a_loss_that_cannot_be_had_is_no_number():
    params = objectives.ConditionalParameters(kb.Gaussian(0.5), 1e-2)
    assert np.isnan(objectives._loo_of_kernel(params, X, np.full((5, 2), np.nan), V)[0])
    assert np.isnan(objectives._loo_of_reg(objectives.Regulariser(1e-2), np.full((N, 3), np.nan), V)[0])


# ------------------------------------------------------------------------------------------------- what they choose


def factor(K):
    return np.linalg.cholesky(K + 1e-13 * np.eye(len(K)))


def test_tune_reg_finds_the_best_regulariser():
    """No value on a fine grid does better, by refitting."""
    found = tune_reg(factor(K), V, scale=1.0, method="loo", rng=np.random.default_rng(0))
    reg = float(found.params.reg)
    assert found.value == pytest.approx(refit_without_each_point(K, V, N * reg), rel=1e-6)
    grid = np.geomspace(1e-6, 1.0, 25)
    assert found.value <= min(refit_without_each_point(K, V, N * g) for g in grid) + 1e-9
    assert grid[0] < reg < grid[-1]


def test_tune_reg_by_validation():
    found = tune_reg(factor(K), V, scale=1.0, method="validation", rng=np.random.default_rng(0))
    order = np.random.default_rng(0).permutation(N)  # the folds are of shuffled points
    shuffled = [G[np.ix_(order, order)] for G in (K, L)]
    assert found.value == pytest.approx(equation_2_52(*shuffled, float(found.params.reg)), rel=1e-6)
    assert found.value <= min(equation_2_52(*shuffled, g) for g in np.geomspace(1e-6, 1.0, 25)) + 1e-9


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e12])
def test_tune_reg_follows_the_scale_of_the_kernel(scale):
    found = tune_reg(np.sqrt(scale) * factor(K), V, scale=scale, method="loo", rng=np.random.default_rng(0))
    plain = tune_reg(factor(K), V, scale=1.0, method="loo", rng=np.random.default_rng(0))
    assert found.value == pytest.approx(plain.value, rel=1e-6)
    assert float(found.params.reg) == pytest.approx(scale * float(plain.params.reg), rel=0.05)


@pytest.mark.parametrize("method", ["loo", "validation"])
def test_tune_kernel_finds_a_minimum(method):
    """The loss it reports is that of the parameters it returns, and neighbours do no better."""
    rng = np.random.default_rng(0)
    found = tune_kernel(kb.Gaussian(1.0), X, V, reg=None, method=method, rng=rng)
    lengthscale, reg = float(found.params.kernel.lengthscale), float(found.params.reg)
    order = np.random.default_rng(0).permutation(N)

    def loss(lengthscale, reg):
        gram = gaussian_gram(X[order], X[order], lengthscale)
        if method == "loo":
            return refit_without_each_point(gram, V[order], N * reg)
        return equation_2_52(gram, L[np.ix_(order, order)], reg)

    best = loss(lengthscale, reg)
    assert found.value == pytest.approx(best, rel=1e-3)  # it sees the kernel through landmarks
    for factor in (0.8, 1.25):
        assert loss(factor * lengthscale, reg) > best
        assert loss(lengthscale, factor * reg) > best
    assert found.success


def test_tune_kernel_keeps_a_regulariser_that_is_given():
    found = tune_kernel(kb.Gaussian(1.0), X, V, reg=0.05, method="loo", rng=np.random.default_rng(0))
    assert found.params.reg == 0.05
    assert "reg" not in found.path[-1]


def test_tune_kernel_sees_which_column_matters():
    """The useless column is sent far away, often as far as it may go, which is no cause for a warning."""
    rng, on_bound, ratios = np.random.default_rng(0), 0, []
    for _ in range(5):
        both = rng.uniform(-2, 2, (80, 2))
        y = np.sin(2 * both[:, :1]) + 0.1 * rng.normal(size=(80, 1))
        found = tune_kernel(kb.Gaussian(np.ones(2)), both, V_of(y), reg=None, method="loo", rng=rng)
        on_bound += bool(found.on_bound)
        ratios.append(np.divide(*found.params.kernel.lengthscale[::-1]))
        assert found.success
    assert on_bound
    assert np.median(ratios) > 20


def V_of(y, kernel=None):
    return target_features(kernel or kb.Gaussian(0.8), y, np.random.default_rng(0))


# ------------------------------------------------------------------------------------------------------- targets


def test_target_features_without_centring_are_those_of_the_kernel():
    found = target_features(kb.Gaussian(0.8), Y, np.random.default_rng(0), centred=False)
    assert found @ found.T == pytest.approx(L, abs=1e-4)


def test_target_features_are_those_of_the_centred_kernel():
    H = np.eye(N) - 1 / N
    found = target_features(kb.Gaussian(0.8), Y, np.random.default_rng(0))
    assert found.dtype == np.float64
    assert found.shape[1] <= objectives._MOST_TARGETS
    assert found.mean(0) == pytest.approx(np.zeros(found.shape[1]), abs=1e-12)
    assert found @ found.T == pytest.approx(H @ L @ H, abs=1e-4)  # down to a tolerance of 1e-6 on the diagonal


def test_large_samples_have_fewer_target_features():
    many = np.random.default_rng(0).normal(size=(objectives.MOST_POINTS + 1, 1))
    found = target_features(kb.Laplace(1.0), many, np.random.default_rng(0))
    assert found.shape == (len(many), objectives._LARGE_SAMPLE_TARGETS)


# ------------------------------------------------------------------------------------------------------- holdout


def smooth_problem(n, noise):
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=(n, 1))
    return x, np.sin(2 * x) + noise * rng.normal(size=(n, 1))


def holdout(x, y, held, kernel=None):
    F = factor(gaussian_gram(x, x, 0.5))
    return holdout_reg(F.T @ F, F.T @ y, F[held], y[held], len(x), scale=1.0)


def test_holdout_minimises_the_error_on_the_held_out_points():
    """By plain ridge regression on the same split, as good as any candidate."""
    x, y = smooth_problem(200, 0.3)
    held, train = np.arange(40), np.arange(40, 200)
    found = holdout(x, y, held)
    gram = gaussian_gram(x, x, 0.5)

    def error(reg):
        fit = np.linalg.solve(gram[np.ix_(train, train)] + 160 * reg * np.eye(160), y[train])
        return ((y[held] - gram[np.ix_(held, train)] @ fit) ** 2).sum()

    grid = np.geomspace(*objectives.REG_BOUNDS, 81)
    assert error(found) == pytest.approx(min(error(g) for g in grid if g > 1e-9), rel=1e-3)
    assert isinstance(found, float)


def test_holdout_says_when_it_ends_on_a_bound():
    x, _ = smooth_problem(200, 0.0)
    with pytest.warns(kb.BoundWarning, match="reg at its lower bound"):
        holdout(x, x, np.arange(40))
    with pytest.warns(kb.BoundWarning, match="reg at its upper bound"):
        holdout(x, np.where(np.arange(200) < 40, -1.0, 1.0)[:, None], np.arange(40))  # better not predicted at all


def test_nothing_is_said_of_a_bound_that_does_not_matter():
    """A value of the kernel is predicted to rounding by any small regulariser: the largest of these is taken."""
    x, _ = smooth_problem(200, 0.0)
    assert holdout(x, gaussian_gram(x, x[:1], 0.5), np.arange(40)) > 10 * objectives.REG_BOUNDS[0]


@pytest.mark.parametrize("n", [300, 1500])
@pytest.mark.parametrize("seed", range(6))
def test_rounding_does_not_choose_the_regulariser(n, seed):
    """Where a low rank does the smoothing, left-out errors differ by 1e-6 over decades of it."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, 3))
    y = x @ [1.0, 2.0, 0.5] + 0.3 * rng.normal(size=n)
    regs = [
        kb.ConditionalEmbedding(kb.Linear(), target_kernel=kb.Linear(), random_state=0).fit(x, rounding * y).reg_
        for rounding in (1.0, 1.0 + 1e-9)
    ]
    assert min(regs) > 1e-5
    assert max(regs) < 1.02 * min(regs)

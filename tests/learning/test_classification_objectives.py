"""The complexity bound as an objective, and calibration, against the thesis and finite differences."""

import jax
import numpy as np
import pytest

import kernelbayes as kb
from kernelbayes.learning import Calibrator, fit_calibrator
from kernelbayes.learning import _calibration as calibration
from kernelbayes.learning import _classification as learning
from kernelbayes.learning import _classification_search as searching
from kernelbayes.learning._conditional import ConditionalParameters
from kernelbayes.learning._optimise import minimise
from oracles import multiclass as oracle

REG, LENGTHSCALE = 3e-3, np.array([0.7, 1.3])


@pytest.fixture(scope="module")
def sample():
    return labelled(60)


def labelled(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 1)
    return learning.Labelled(X, np.eye(3)[y], np.ones(n))


def differences(at, value):
    """Slopes by central differences, in steps of a share of each number."""
    return np.array([(value(at + h) - value(at - h)) / (2 * h.sum()) for h in 1e-6 * np.diag(at)])


def params(lengthscale=LENGTHSCALE, reg=REG):
    return ConditionalParameters(kb.Gaussian(lengthscale), reg)


class TestBound:
    def test_algorithm_1(self, sample):
        loss, r, q = oracle.algorithm_1(
            oracle.gaussian(sample.X, sample.X, LENGTHSCALE), sample.Y, REG, alpha=1.0, multiplier=0.3
        )
        fit, complexity = learning.balance(params(), sample)
        assert np.allclose([fit, complexity], [loss, r], rtol=1e-10)
        assert np.isclose(learning.bound(params(), sample, 0.3, 0.0), q, rtol=1e-10)

    def test_algorithm_2(self, sample):
        Z = np.random.default_rng(1).normal(size=(60, 5))
        alpha = np.sqrt((Z**2).sum(1).max())
        loss, r, _ = oracle.algorithm_2(Z, sample.Y, REG, alpha, 0.3)
        assert np.allclose(learning.explicit_balance(Z, sample, REG), [loss, r], rtol=1e-10)

    def test_explicit_and_implicit_forms_agree(self, sample):
        kernel = kb.Linear()
        implicit = learning.balance(ConditionalParameters(kernel, REG), sample)
        assert np.allclose(learning.explicit_balance(sample.X, sample, REG), implicit, rtol=1e-8)

    def test_validation_measures_the_fit_elsewhere(self, sample):
        train, held = sample.part(slice(40)), sample.part(slice(40, None))
        K = oracle.gaussian(train.X, train.X, LENGTHSCALE)
        P = oracle.decision_probabilities(K, train.Y, REG, oracle.gaussian(train.X, held.X, LENGTHSCALE))
        loss = np.mean(-np.log(np.clip((P * held.Y).sum(1), 1e-15, 1.0)))
        r = oracle.algorithm_1(K, train.Y, REG, 1.0, 0.0)[1]
        assert np.isclose(learning.validation(params(), train, held, 0.2, 0.0), loss + 0.2 * r, rtol=1e-9)

    def test_scale_of_the_kernel_cancels(self, sample):
        scaled = ConditionalParameters(7.0 * kb.Gaussian(LENGTHSCALE), 7.0 * REG)
        assert np.allclose(learning.balance(scaled, sample), learning.balance(params(), sample), rtol=1e-9)

    def test_padding_and_weights(self, sample):
        """Points of weight zero add nothing, and weight two is two points."""
        plain = learning.balance(params(), sample)
        assert np.allclose(learning.balance(params(), sample.padded(80)), plain, rtol=1e-9)
        doubled = sample.part(np.repeat(np.arange(60), 2))
        weighted = learning.Labelled(sample.X, sample.Y, np.full(60, 2.0))
        assert np.allclose(learning.balance(params(), weighted), learning.balance(params(), doubled), rtol=1e-8)

    @pytest.mark.parametrize("name", ["bound", "validation"])
    def test_gradient(self, sample, name):
        objective = getattr(learning, name)
        data = (sample,) if name == "bound" else (sample.part(slice(40)), sample.part(slice(40, None)))

        @jax.jit  # as one program; by itself, each operation would be compiled
        def value(theta):
            return objective(params(theta[:2], theta[2]), *data, 0.1, 0.05)

        at = np.array([0.7, 1.3, 0.02])
        with jax.enable_x64(True):
            slope = jax.jit(jax.grad(value))(at)
            wanted = differences(at, lambda t: float(value(t)))
        assert np.allclose(slope, wanted, rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("columns", [1, 2])
    @pytest.mark.parametrize("learn", ["bound", "validation"])
    def test_slopes_that_are_written_out(self, sample, learn, columns):
        """Against differences of the objectives themselves, with weights of which some are zero."""
        weighted = learning.Labelled(sample.X, sample.Y, np.arange(60) % 4 / 2.0)
        search = searching.Search(learn, multiplier=0.1)
        data, plain = search.data(weighted), getattr(learning, learn)
        found = search.objective(kb.Gaussian(1.0))

        def at(theta):
            return params(theta[:2] if columns == 2 else np.asarray(theta[0]), theta[-1])

        for theta in (np.array([0.7, 1.3, 0.02]), np.array([0.2, 3.0, 1e-3])):
            value, slopes = found.value_and_slopes(at(theta), *data)
            wanted = differences(theta, lambda t: float(plain(at(t), *data)))
            assert np.isclose(value, plain(at(theta), *data), rtol=1e-12)
            assert slopes[0].shape == ((2,) if columns == 2 else ())
            assert np.allclose(slopes[0], wanted[:columns] if columns == 2 else wanted[0], rtol=1e-4, atol=1e-5)
            assert np.isclose(slopes[1], wanted[2], rtol=1e-4, atol=1e-5)

    @pytest.mark.parametrize("far", [1e5, 1e8, 1e10])
    def test_slopes_with_a_few_points_far_away(self, sample, far):
        moved = sample.X.copy()
        moved[:2] += [[far], [-far]]  # from each other as well
        data = searching.Search("bound", multiplier=0.1).data(learning.Labelled(moved, sample.Y, sample.weights))
        theta = np.array([0.7, 1.3, 0.02])
        wanted = differences(theta, lambda t: float(learning.bound(params(t[:2], t[2]), *data)))
        _, slopes = learning.written_out.value_and_slopes(params(theta[:2], theta[2]), *data)
        assert np.allclose(np.append(*slopes), wanted, rtol=1e-4, atol=1e-5)

    def test_other_kernels_are_compiled(self, sample):
        """With the same result where a Gaussian kernel is inside."""
        gaussian, scaled = (
            searching.learn_hyperparameters(
                [searching.Start(ConditionalParameters(kernel, REG), np.asarray(1.0))],
                sample,
                searching.Search("bound", multiplier=0.1),
                fixed=fixed,
                rng=np.random.default_rng(0),
            )[0]
            for kernel, fixed in ((kb.Gaussian(0.7), ()), (1.0 * kb.Gaussian(0.7), ("kernel.scale",)))
        )
        assert np.isclose(gaussian.value, scaled.value, rtol=1e-5)  # where the search ends is rounded differently
        assert np.isclose(gaussian.params.kernel.lengthscale, scaled.params.kernel.kernel.lengthscale, rtol=1e-2)
        assert np.isclose(gaussian.params.reg, scaled.params.reg, rtol=1e-2)

    def test_the_minimum_of_the_printed_bound_ignores_x(self, sample):
        """With the thesis's multiplier 4 e complexity costs more than any fit can win."""
        found = minimise(learning.bound, params(), (sample, 4 * np.e, 0.0), bounds={"reg": (1e-8, 100.0)}, warn=False)
        K = kb.Gaussian(found.params.kernel.lengthscale).gram(sample.X)
        P = K @ np.linalg.solve(K + 60 * float(found.params.reg) * np.eye(60), sample.Y)
        assert (np.ptp(P, axis=0) < 0.01 * P.mean(0)).all()


class TestSearch:
    def test_starts_that_overfit_and_underfit_meet(self):
        """In most samples; in some the bound has two minima."""
        starts, met = ((0.15, 1e-3), (8.0, 0.5)), []
        for seed in range(8):
            sample = labelled(250, seed)
            found = [
                searching.learn_hyperparameters(
                    [searching.Start(params(np.asarray(length), reg), np.asarray(1.0))],
                    sample,
                    searching.Search("bound", multiplier=0.3),
                    fixed=(),
                    rng=np.random.default_rng(0),
                )[0]
                for length, reg in starts
            ]
            over, under = ((float(f.params.kernel.lengthscale), float(f.params.reg)) for f in found)
            met.append(np.allclose(np.log(over), np.log(under), atol=0.2))
            assert all(
                f.value < learning.bound(params(*s), sample, 0.3, 0.0) for f, s in zip(found, starts, strict=True)
            )
            complexities = [learning.balance(params(*p), sample).complexity for p in (starts[0], over, starts[1])]
            assert complexities[0] > complexities[1] > complexities[2] or not met[-1]
        assert sum(met) >= 4

    def test_batches_end_near_the_full_sample(self):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(400, 1))
        Y = np.eye(2)[(np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=400) > 0).astype(int)]
        sample = learning.Labelled(X, Y, np.ones(400))
        start = [searching.Start(params(np.asarray(1.0), 1e-2), np.asarray(1.0))]
        multiplier = 0.02  # the same for both, whatever their size
        full, batched = (
            searching.learn_hyperparameters(
                start,
                sample,
                searching.Search("bound", multiplier, size, steps=300, rate=0.1),
                fixed=(),
                rng=np.random.default_rng(0),
            )[0]
            for size in (None, 200)
        )
        assert abs(np.log(full.params.kernel.lengthscale / batched.params.kernel.lengthscale)) < 0.15
        assert abs(np.log(full.params.reg / batched.params.reg)) < 0.7
        assert len(batched.path) == 300

    def test_a_batch_of_all_is_the_full_sample(self, sample):
        start = [searching.Start(params(), np.asarray(1.0))]
        rng = np.random.default_rng
        full, same = (
            searching.learn_hyperparameters(start, sample, searching.Search("bound", None, size), fixed=(), rng=rng(0))[
                0
            ]
            for size in (None, 60)
        )
        assert full.value == same.value

    def test_folds_against_refitting(self, sample):
        kernels = [kb.Gaussian(s) for s in (0.3, 1.0, 3.0)]
        kernel, reg = searching.cross_validated(kernels, sample, None, np.random.default_rng(5))
        folds = np.array_split(np.random.default_rng(5).permutation(60), 5)

        def error(kernel, reg):
            total = 0.0
            for held in folds:
                train = np.setdiff1d(np.arange(60), held)
                K, k = kernel.gram(sample.X[train]), kernel.gram(sample.X[train], sample.X[held])
                total += ((sample.Y[held] - oracle.decision_probabilities(K, sample.Y[train], reg, k)) ** 2).sum()
            return total

        errors = {
            (i, r): error(k, r) for i, k in enumerate(kernels) for r in np.geomspace(1e-8, 1.0, 17)
        }  # k(x, x) = 1
        i, best = min(errors, key=errors.__getitem__)
        assert kernel is kernels[i]
        assert np.isclose(reg, best)


class TestCalibration:
    rng = np.random.default_rng(0)
    P = rng.normal(0.3, 0.4, size=(200, 3))
    Y = np.eye(3)[P.argmax(1)]

    def test_slopes(self):
        theta = np.array([-2.0, -3.0, 1.4, 2.0])

        def total(t):
            return float(calibration._Scores(self.P, *t).values.sum())

        slopes = [s.sum() for s in calibration._Scores(self.P, *theta).slopes()]
        assert np.allclose(slopes, differences(theta, total), rtol=1e-4)

    def test_clip_normalisation_is_a_limit(self):
        sharp = Calibrator(width=1e-6, floor=1e-9, power=1.0, slope=0.0, loss=0.0)
        P = self.P[(self.P > 0.01).any(1)]
        assert np.allclose(sharp(P), oracle.clip_normalised(P), atol=1e-5)

    def test_order_of_the_classes_is_kept(self):
        wild = self.rng.normal(size=(500, 4)) * np.array([1.0, 10.0, 0.01, 1.0])
        map_ = fit_calibrator(self.P, self.Y, np.ones(200))
        q = map_(wild)
        assert (q.argmax(1) == wild.argmax(1)).all()
        assert q.min() > 0
        assert np.allclose(q.sum(1), 1.0)

    def test_true_probabilities_are_left_alone(self):
        rng = np.random.default_rng(1)
        P = rng.dirichlet([0.7, 0.7, 0.7], 20000)
        Y = np.eye(3)[(rng.random(20000)[:, None] > P.cumsum(1)).sum(1)]
        assert np.abs(fit_calibrator(P, Y, np.ones(20000))(P) - P).mean() < 0.01

    def test_no_more_certain_than_n_points_allow(self):
        Y = np.eye(2)[np.arange(40) % 2]
        surest = fit_calibrator(Y, Y, np.ones(40))(Y).max()
        assert 0.95 < surest < 1 - 1e-4

    def test_scale_of_weights_does_not_matter(self):
        weights = self.rng.uniform(0.5, 2.0, 200)
        one, other = (fit_calibrator(self.P, self.Y, factor * weights) for factor in (1.0, 1e-3))
        assert np.allclose(one(self.P), other(self.P), atol=1e-6)

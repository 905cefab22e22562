"""Conditional embedding networks: the objective, training, the head, and what users get wrong."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss

import kernelbayes as kb
from kernelbayes.classification._network import _split
from kernelbayes.learning._classification import Labelled
from kernelbayes.learning._embedding_network import (
    _LEAST_REG,
    bound_loss,
    learned_kernel,
    scores,
    started,
    validation_loss,
)
from kernelbayes.learning._training import step
from oracles import multiclass as oracle

Network = kb.ConditionalEmbeddingNetwork
RNG = np.random.default_rng(0)
N, M, P = 40, 3, 5
X, POSITIONS = RNG.normal(size=(N, 2)), RNG.integers(M, size=N)
SAMPLE = Labelled(X, np.eye(M)[POSITIONS], np.ones(N))
ROWS = np.arange(0, N, 2)
SMALL = kb.MLP(2, P, (4,), activation="tanh", random_state=1)


@pytest.fixture(scope="module", autouse=True)
def _compile_quickly():
    """Nearly all of the time here is the compiler's."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


def quick(X, y, network=None, sample_weight=None, **settings):
    """A short run of one small network. Most tests share its shapes, and so one compilation."""
    network = kb.MLP(2, 8, (16,), random_state=0) if network is None else network
    options = {"epochs": 5, "random_state": 0, "learning_rate": 1e-2, **settings}
    return Network(network, **options).fit(X, y, sample_weight)


def quadrants(n, seed, noise=0.0):
    """Whether two numbers have the same sign, sometimes misreported: no linear model can tell."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    same = (X.prod(1) > 0) ^ (rng.uniform(size=n) < noise)
    return X, np.where(same, "same", "different")


FEW = quadrants(100, 0)


# ------------------------------------------------------------------------------------------------- the objective


def objective_at(loss, kernel, network=SMALL, scale=1.5, reg=0.02, multiplier=0.1, sample=SAMPLE):
    with jax.enable_x64(True):
        model, given = started(network, kernel, reg, multiplier, scale)
        value, sides = loss(model, sample, ROWS, given)
        return float(value), np.array([float(side) for side in sides])


def outputs(rows, scale=1.5):
    with jax.enable_x64(True):
        return np.asarray(jax.vmap(SMALL)(X[rows])) / scale


def test_the_explicit_objective_is_algorithm_2():
    value, sides = objective_at(bound_loss, None)
    Z = outputs(ROWS)
    squares = (Z**2).sum(1)
    reg = (0.02 + _LEAST_REG) * squares.mean()
    loss, r, q = oracle.algorithm_2(Z, SAMPLE.Y[ROWS], reg, np.sqrt(squares.max()), 0.1)
    np.testing.assert_allclose([*sides, value], [loss, r, q], rtol=1e-9)


def test_the_implicit_objective_is_algorithm_1():
    value, sides = objective_at(bound_loss, kb.Gaussian(0.7))
    Z = outputs(ROWS)
    loss, r, q = oracle.algorithm_1(oracle.gaussian(Z, Z, 0.7), SAMPLE.Y[ROWS], 0.02 + _LEAST_REG, 1.0, 0.1)
    np.testing.assert_allclose([*sides, value], [loss, r, q], rtol=1e-9)


@pytest.mark.parametrize("loss", [bound_loss, validation_loss])
def test_explicit_and_implicit_objectives_agree(loss):
    """Woodbury: in the number of outputs, or in the number of points."""
    explicit, implicit = objective_at(loss, None), objective_at(loss, kb.Linear())
    np.testing.assert_allclose(implicit[0], explicit[0], rtol=1e-9)
    np.testing.assert_allclose(implicit[1], explicit[1], rtol=1e-9)


def test_validation_loss_predicts_one_half_from_the_other():
    """Some of the held labels are the least likely ones, to reach the threshold of (3.13)."""
    Z, Z_held = np.split(outputs(ROWS), 2)
    Y, Y_held = np.split(SAMPLE.Y[ROWS], 2)
    reg = 1e-3 + _LEAST_REG
    K, k = oracle.gaussian(Z, Z, 0.7), oracle.gaussian(Z, Z_held, 0.7)
    raw = oracle.decision_probabilities(K, Y, reg, k)
    Y_held[:5] = np.eye(M)[raw[:5].argmin(1)]
    labels = SAMPLE.Y.copy()
    labels[ROWS] = np.concatenate([Y, Y_held])
    sample = Labelled(X, labels, np.ones(N))
    value, (fit, complexity) = objective_at(validation_loss, kb.Gaussian(0.7), reg=1e-3, sample=sample)
    probabilities = (raw * Y_held).sum(1)
    assert (probabilities < 0).any()
    wanted = -np.log(np.clip(probabilities, 1e-15, 1.0)).mean()
    np.testing.assert_allclose(fit, wanted, rtol=1e-9)
    np.testing.assert_allclose(complexity, oracle.algorithm_1(K, Y, reg, 1.0, 0.0)[1], rtol=1e-9)
    np.testing.assert_allclose(value, fit + 0.1 * complexity, rtol=1e-12)


def test_outputs_gain_nothing_by_growing():
    grown = eqx.tree_at(lambda n: n.layers[-1], SMALL, tuple(100.0 * part for part in SMALL.layers[-1]))
    np.testing.assert_allclose(objective_at(bound_loss, None, grown)[0], objective_at(bound_loss, None)[0], rtol=1e-9)


@pytest.mark.parametrize(("learn", "fitted"), [("bound", 20), ("validation", 10)])
def test_the_multiplier_is_the_entropy_over_the_root_of_the_batch(learn, fitted):
    sample = Labelled(FEW[0], np.eye(3)[np.repeat([0, 1, 2], [50, 25, 25])], np.ones(100))
    wanted = 1.5 * np.log(2) / np.sqrt(fitted)
    np.testing.assert_allclose(Network(learn=learn)._weight_of_complexity(sample, 20), wanted)
    assert Network(learn=learn, multiplier=0.7)._weight_of_complexity(sample, 20) == 0.7


@pytest.mark.parametrize(
    ("loss", "kernel"), [(bound_loss, None), (validation_loss, kb.Gaussian([0.7, 1.0, 1.0, 2.0, 1.0]) + kb.Linear())]
)
def test_gradient_against_finite_differences(loss, kernel):
    """Along a random direction of every part of the model."""
    with jax.enable_x64(True):
        model, given = started(SMALL, kernel, 0.02, 0.1, 1.5)
        assert len(model.log_kernel) == (0 if kernel is None else 1)  # an offset of zero is not learned
        value = eqx.filter_jit(lambda model: loss(model, SAMPLE, ROWS, given)[0])
        gradient = eqx.filter_jit(eqx.filter_grad(lambda model: loss(model, SAMPLE, ROWS, given)[0]))(model)
        leaves, structure = jax.tree_util.tree_flatten(model)
        for i, (leaf, slope) in enumerate(zip(leaves, jax.tree_util.tree_leaves(gradient), strict=True)):
            direction = np.random.default_rng(i).normal(size=np.shape(leaf))

            def along(t, i=i, leaf=leaf, direction=direction):
                moved = [*leaves[:i], leaf + t * direction, *leaves[i + 1 :]]
                return float(value(jax.tree_util.tree_unflatten(structure, moved)))

            wanted = (along(1e-5) - along(-1e-5)) / 2e-5
            np.testing.assert_allclose((slope * direction).sum(), wanted, rtol=2e-5, atol=1e-8)


@pytest.mark.parametrize("kernel", [None, kb.Linear()])
def test_scores_are_those_of_ridge_regression(kernel):
    train, held = np.arange(30), np.arange(30, N)
    with jax.enable_x64(True):
        model, given = started(SMALL, kernel, 0.02, 0.1, 1.5)
        loss, (accuracy,) = scores(model, SAMPLE.part(train), SAMPLE.part(held), given)
    F, F_held = outputs(train), outputs(held)
    shift = 30 * (0.02 + _LEAST_REG) * (F**2).sum(1).mean()
    predicted = Ridge(alpha=shift, fit_intercept=False).fit(F, SAMPLE.Y[train]).predict(F_held)
    np.testing.assert_allclose(loss, ((predicted - SAMPLE.Y[held]) ** 2).sum(1).mean(), rtol=1e-7)
    np.testing.assert_allclose(accuracy, (predicted.argmax(1) == POSITIONS[held]).mean())


def test_parameters_of_the_kernel_are_learned_on_a_log_scale():
    kernel = 2.0 * kb.Gaussian(0.5) + kb.Linear()
    model, given = started(SMALL, kernel, 0.1, 0.1, 1.0)
    assert bool(eqx.tree_equal(learned_kernel(model, given), kernel, rtol=1e-12, atol=0))
    moved = eqx.tree_at(lambda m: m.log_kernel, model, tuple(log + 1 for log in model.log_kernel))
    Z = outputs(ROWS)
    wanted = 2 * np.e * oracle.gaussian(Z, Z, 0.5 * np.e) + Z @ Z.T  # an offset of zero stays
    np.testing.assert_allclose(learned_kernel(moved, given).gram(Z), wanted, rtol=1e-9)


# ------------------------------------------------------------------------------------------------------ training


@pytest.mark.parametrize("settings", [{}, {"learn": "validation"}, {"kernel": kb.Gaussian(1.0), "epochs": 80}])
def test_learns_what_a_linear_model_cannot(settings):
    (X, y), (new, truth) = quadrants(400, 0), quadrants(500, 1)
    assert LogisticRegression().fit(X, y).score(new, truth) < 0.7
    model = quick(X, y, **{"epochs": 300, **settings})
    assert model.score(new, truth) > 0.93
    assert log_loss(truth, model.predict_proba(new)) < 0.25
    if "kernel" in settings:
        assert abs(np.log(model.kernel_.lengthscale)) > 0.05  # it was learned, too


def test_probabilities_are_those_of_noisy_labels():
    """A fifth of the labels is wrong. What is asked of a network holds for three on average."""
    best = -(0.8 * np.log(0.8) + 0.2 * np.log(0.2))
    found = []
    for seed in range(3):
        model = quick(*quadrants(800, 2 * seed, noise=0.2), epochs=400, random_state=seed)
        new, truth = quadrants(1000, 2 * seed + 1, noise=0.2)
        clean, P = np.where(new.prod(1) > 0, "same", "different"), model.predict_proba(new)
        assert P.min() > 0
        found.append([model.score(new, clean), log_loss(truth, P) - best, P.max(1).mean() - model.score(new, truth)])
    correct, lost, too_sure = np.mean(found, axis=0)
    assert correct > 0.87
    assert lost < 0.11
    assert abs(too_sure) < 0.13  # always sure: 0.2


def left_out_of_the_head(K, Y, reg, i):
    """Raw probabilities at a point by the head fitted to all others, with the same regulariser in sum."""
    others = np.arange(len(K)) != i
    reg = reg * len(K) / (len(K) - 1)
    return oracle.decision_probabilities(K[np.ix_(others, others)], Y[others], reg, K[others, i : i + 1])


@pytest.mark.parametrize("kernel", [None, kb.Laplace(0.8)])
def test_calibration_is_on_points_held_out_from_head_and_network(kernel):
    X, y = quadrants(100, 0, noise=0.2)
    model = quick(X, y, kernel=kernel)
    Y = oracle.one_hot(y, model.classes_)
    train, held = _split(Y, 0.2, np.random.default_rng(0))
    K = model.features_.kernel.gram(X)
    P = oracle.decision_probabilities(K[np.ix_(train, train)], Y[train], model.reg_, K[np.ix_(train, held)])
    wanted = kb.learning.fit_calibrator(P, Y[held], np.ones(20))
    np.testing.assert_allclose(model.calibration_(P), wanted(P), atol=1e-4)
    other = quick(X, y, kernel=kernel, calibration="loo")
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-10)
    left_out = np.concatenate([left_out_of_the_head(K, Y, model.reg_, i) for i in range(100)])
    wanted = kb.learning.fit_calibrator(left_out, Y, np.ones(100))
    np.testing.assert_allclose(other.calibration_(P), wanted(P), atol=1e-4)


def test_early_stopping_keeps_the_best():
    settings = {"patience": 10, "learning_rate": 0.5}  # too large a step to settle
    stopped = quick(*quadrants(100, 0, noise=0.2), epochs=200, **settings)
    curve = stopped.learning_curve_["validation_loss"]
    assert stopped.best_epoch_ == curve.argmin() + 1
    assert len(curve) == stopped.best_epoch_ + 10 < 200
    until_best = quick(*quadrants(100, 0, noise=0.2), epochs=stopped.best_epoch_, **settings)
    np.testing.assert_array_equal(stopped.predict_proba(FEW[0]), until_best.predict_proba(FEW[0]))


def test_the_learning_curve_is_the_objective():
    model = quick(*FEW, multiplier=0.3)
    curve = model.learning_curve_
    assert {len(values) for values in curve.values()} == {5}
    np.testing.assert_allclose(curve["objective"], curve["fit"] + 0.3 * curve["complexity"], rtol=1e-5)
    assert curve["validation_accuracy"].max() <= 1.0
    without = quick(*FEW, validation=0, epochs=3)
    assert without.best_epoch_ == len(without.learning_curve_["fit"]) == 3
    assert len(without.learning_curve_["validation_loss"]) == 0
    assert without.calibration_ is not None


def test_a_larger_multiplier_makes_simpler_models():
    complexities = [quick(*FEW, epochs=60, multiplier=tau).learning_curve_["complexity"][-1] for tau in (0.0, 1.0)]
    assert complexities[1] < 0.7 * complexities[0]


def test_the_same_seed_gives_the_same_model():
    first, again, other = (quick(*FEW, random_state=seed).predict_proba(FEW[0]) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_batches_and_settings_share_one_compilation():
    before = step._cached._cache_size()
    for settings in ({}, {"learning_rate": 0.02, "reg": 0.1}, {"multiplier": 0.0, "random_state": 1}):
        quick(*FEW, batch_size=31, epochs=2, **settings)
    assert step._cached._cache_size() == before + 1


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_a_share_of_each_class_is_held_out(share):
    Y = np.eye(3)[np.repeat([0, 1, 2], [100, 40, 1])]
    train, held = _split(Y, share, np.random.default_rng(0))
    assert sorted([*train, *held]) == list(range(141))
    assert len(held) == round(share * 141)
    np.testing.assert_allclose(Y[held].sum(0), [100 * share, 40 * share, 0], atol=1.01)
    assert Y[train, 2].sum() == 1  # the only point of its class is learned from
    assert not np.array_equal(train, np.sort(train))


def test_a_class_of_one_point():
    X, y = quadrants(99, 0)
    model = quick(np.vstack([X, [[9.0, 9.0]]]), [*y, "other"])
    assert list(model.classes_) == ["different", "other", "same"]
    assert model.predict_proba(X).min() > 0


# ------------------------------------------------------------------------------------------------------- the head


@pytest.mark.parametrize("kernel", [None, kb.Gaussian(0.8), kb.Laplace(0.5)])
def test_the_head_is_solved_on_all_points(kernel):
    """In double precision, by the formula (3.5)."""
    X, y = FEW
    model = quick(X, y, kernel=kernel, calibration=None)
    Z, Z_new = (np.asarray(jax.vmap(model.network_)(A), dtype=np.float64) for A in (X, X[:7] + 0.1))
    K, k = model.kernel_.gram(Z), model.kernel_.gram(Z, Z_new)
    wanted = oracle.decision_probabilities(K, oracle.one_hot(y, model.classes_), model.reg_, k)
    np.testing.assert_allclose(model.decision_probabilities(X[:7] + 0.1), wanted, atol=2e-5)  # outputs were single here
    np.testing.assert_allclose(model.features_.transform(X) @ model.coef_, model.decision_probabilities(X), atol=1e-12)
    leaves = jax.tree_util.tree_leaves(eqx.filter(model.network_, eqx.is_array))
    assert {(type(leaf), leaf.dtype) for leaf in leaves} == {(np.ndarray, np.dtype(np.float64))}
    assert model.decision_probabilities(X).dtype == np.float64


def test_outputs_have_mean_square_norm_one():
    model = quick(*FEW)
    np.testing.assert_allclose(model.features_.kernel.diag(FEW[0]).mean(), 1.0, rtol=1e-12)


def test_input_is_standardised_inside():
    X, y = FEW
    plain, shifted = quick(X, y), quick(1e4 * X - 3e5, y)
    np.testing.assert_allclose(shifted.predict_proba(1e4 * X - 3e5), plain.predict_proba(X), atol=1e-2)


def test_points_of_weight_zero_play_no_part():
    X, y = FEW
    wild = np.concatenate([X, 50 + X]), np.concatenate([y, np.full(100, "wild")])
    weighted = quick(*wild, sample_weight=np.repeat([3.0, 0.0], 100))
    np.testing.assert_allclose(weighted.predict_proba(X), quick(X, y).predict_proba(X), atol=1e-6)


def test_class_weights_move_the_boundary():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [85, 15])
    X = rng.normal(size=(100, 2)) + 1.0 * y[:, None]
    plain, balanced = (quick(X, y, epochs=40, class_weight=w) for w in (None, "balanced"))
    given = quick(X, y, epochs=40, class_weight={0: 100 / 170, 1: 100 / 30})
    assert balanced.predict_proba(X)[:, 1].mean() > 1.5 * plain.predict_proba(X)[:, 1].mean()
    np.testing.assert_allclose(given.predict_proba(X), balanced.predict_proba(X), atol=1e-6)


def test_an_intercept_free_head_on_constant_inputs_predicts_shares():
    X, y = np.ones((100, 2)), np.repeat(["a", "b", "c"], [50, 30, 20])
    model = quick(X, y)
    np.testing.assert_allclose(model.decision_probabilities(X[:1])[0], [0.5, 0.3, 0.2], atol=0.02)
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], [0.5, 0.3, 0.2], atol=0.1)


# -------------------------------------------------------------------------------------------------------- images


def bars(n, seed, shape=(8, 8)):
    """Noisy pictures of a bar that lies or stands somewhere."""
    rng = np.random.default_rng(seed)
    images, stands = 0.3 * rng.normal(size=(n, *shape)), rng.uniform(size=n) < 0.5
    for image, standing, place in zip(images, stands, rng.integers(8, size=n), strict=True):
        image[(slice(None), place) if standing else place] += 1.0
    return images, np.where(stands, "stands", "lies")


@pytest.fixture(scope="module")
def bar_model():
    network = kb.ConvNet((8, 8), 8, (4, 8), (), random_state=0)
    return Network(network, epochs=60, random_state=0, learning_rate=3e-2).fit(*bars(400, 0))


def test_images(bar_model):
    new, truth = bars(200, 1)
    images, labels = bars(400, 0)
    linear = LogisticRegression().fit(images.reshape(400, -1), labels)
    assert linear.score(new.reshape(200, -1), truth) < 0.7  # of the pixels as they are
    assert not hasattr(bar_model, "n_features_in_")
    assert bar_model.score(new, truth) > 0.9
    np.testing.assert_array_equal(bar_model.predict_proba(new[..., None]), bar_model.predict_proba(new))
    with pytest.raises(ValueError, match="does not take points"):
        bar_model.predict(new[:, :4])


def test_saved_and_loaded(bar_model, tmp_path):
    images = bars(20, 2)[0]
    for model, X in ((bar_model, images), (quick(*FEW, kernel=kb.Laplace(1.0)), FEW[0]), (quick(*FEW), FEW[0])):
        kb.save(model, tmp_path / "model.npz")
        again = kb.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.learning_curve_["fit"], model.learning_curve_["fit"])
        assert again.best_epoch_ == model.best_epoch_
        assert again.get_params()["learning_rate"] == model.learning_rate


def test_a_network_of_the_users():
    images = np.repeat(FEW[0], 4, axis=1).reshape(100, 1, 2, 4)  # channels first, as in equinox.nn
    keys = jax.random.split(jax.random.key(0))
    convolution = eqx.nn.Conv2d(1, 3, 2, key=keys[0])
    network = eqx.nn.Sequential([convolution, eqx.nn.Lambda(jnp.ravel), eqx.nn.Linear(9, 6, key=keys[1])])
    before = np.array(convolution.weight)
    model = quick(images, FEW[1], network)
    np.testing.assert_array_equal(convolution.weight, before)
    assert not np.allclose(model.network_.network.layers[0].weight, before)
    assert model.features_.rank == 6


# -------------------------------------------------------------------------------------------- screen and mistakes


def test_the_learning_curve_is_drawn():
    for model in (quick(*FEW), quick(*FEW, validation=0)):
        figure = model.plot_learning()
        lines = figure.axes[0].get_lines()
        np.testing.assert_array_equal(lines[0].get_ydata(), model.learning_curve_["objective"])
        assert lines[-1].get_xdata()[0] == model.best_epoch_
        assert len(figure.axes) == (3 if model.validation else 2)


def test_progress_is_shown_when_asked_for(capsys):
    for progress in (False, None):  # there is no terminal here
        quick(*FEW, progress=progress)
        assert capsys.readouterr().err == ""
    quick(*FEW, progress=True)
    assert "training" in capsys.readouterr().err


class Matrix(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return self.weight * x[:, None]


SILENT = eqx.tree_at(lambda network: network.layers[-1], SMALL, (np.zeros((P, 4)), np.zeros(P)))
MISTAKES = {
    "one class": (dict(y=["a"] * 100), "1 class"),
    "one class of positive weight": (dict(sample_weight=1.0 * (FEW[1] == "same")), "1 class of positive weight"),
    "lengths differ": (dict(y=FEW[1][:-1]), "100 rows but y has 99"),
    "NaN in X": (dict(X=np.full((100, 2), np.nan)), "NaN"),
    "NaN in an image": (dict(X=np.full((100, 4, 4), np.nan)), "X contains NaN"),
    "films": (dict(X=np.zeros((100, 2, 4, 4, 3))), "no default network for points of shape"),
    "a flat list": (dict(X=np.zeros(100)), "Reshape your data"),
    "numbers to predict": (dict(y=np.linspace(0, 1, 100)), "continuous"),
    "negative weights": (dict(sample_weight=np.linspace(-1, 1, 100)), "sample_weight must not be negative"),
    "weights of zero": (dict(sample_weight=np.zeros(100)), "weights are zero"),
    "not a kernel": (dict(kernel="gaussian"), "kernel must be a Kernel"),
    "a kernel of labels": (dict(kernel=kb.FunctionKernel(lambda a, b: 1.0)), "vectors that can be differentiated"),
    "learn": (dict(learn="cv"), "learn must be one of 'bound', 'validation'"),
    "calibration": (dict(calibration="platt"), "calibration must be one of"),
    "no reg": (dict(reg=0.0), "reg must be positive"),
    "multiplier": (dict(multiplier=-1.0), "multiplier must not be negative"),
    "no batch": (dict(batch_size=1), "batch_size must be at least 2"),
    "no epochs": (dict(epochs=0), "epochs must be at least 1"),
    "no patience": (dict(patience=0), "patience must be at least 1"),
    "all held out": (dict(validation=1.0), "validation must be a share"),
    "learning rate": (dict(learning_rate=-1.0), "learning_rate must be positive"),
    "weight decay": (dict(weight_decay=-1.0), "weight_decay must not be negative"),
    "a function": (dict(network=np.sin), "network must be an Equinox module"),
    "wrong width": (dict(network=kb.MLP(3, 2)), r"does not take points of shape \(2,\)"),
    "not a vector": (dict(network=Matrix(jnp.ones((2, 2)))), "must return a vector"),
    "nothing to learn": (dict(network=eqx.nn.Lambda(jnp.sin)), "no parameters to learn"),
    "outputs of zero": (dict(network=SILENT), "all zero"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name):
    arguments, message = MISTAKES[name]
    arguments = {"X": FEW[0], "y": FEW[1], "sample_weight": None, **arguments}
    data = (arguments.pop("X"), arguments.pop("y"), arguments.pop("sample_weight"))
    with pytest.raises(ValueError, match=message):
        Network(**{"epochs": 1, **arguments}).fit(*data)

"""Features learned by a network: the objective, the training loop, the networks, and what users get wrong."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import Ridge

import kernelbayes as kb
from kernelbayes.learning._features import Sample, Settings, Training, batch_loss, held_out_loss, step, trace_loss

RNG = np.random.default_rng(0)
N, P, Q = 40, 5, 7
F, V = RNG.normal(size=(N, P)), RNG.normal(size=(N, Q))
WEIGHTS = RNG.uniform(0.1, 2.0, N) / N


def quick(X, Z, network=None, **settings):
    """A short run of one small network. Most tests share its shapes, and so one compilation."""
    network = kb.MLP(2, 8, (16,), random_state=0) if network is None else network
    return kb.learn_features(X, Z, network, **{"epochs": 5, "random_state": 0, **settings})


def ring(n, seed):
    """A position on an arc, seen with noise from two directions."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, n)
    return np.stack([np.cos(3 * z), np.sin(3 * z)], axis=1) + 0.05 * rng.normal(size=(n, 2)), z


RING = ring(100, 0)


def error(model, X, Z):
    """Mean squared error as a share of the variance."""
    return np.mean((model.predict(X) - Z) ** 2) / np.var(Z, axis=0).mean()


# ------------------------------------------------------------------------------------------------- the objective


@pytest.mark.parametrize("shift", [1e-3, 0.5])
def test_trace_loss_is_the_formula_of_the_paper(shift):
    """Xu et al. (2022), section 3.3, with Psi the transpose of F; and appendix A.2, the loss at its best operator."""
    G, D, Psi = V @ V.T, np.diag(WEIGHTS), F.T
    inverse = np.linalg.inv(Psi @ D @ Psi.T + shift * np.eye(P))
    dense = np.trace(G @ (D - D @ Psi.T @ inverse @ Psi @ D))
    np.testing.assert_allclose(trace_loss(F, V, WEIGHTS, shift), dense, rtol=1e-12)
    E = inverse @ Psi @ D @ V
    at_best = WEIGHTS @ ((V - F @ E) ** 2).sum(1) + shift * (E**2).sum()
    np.testing.assert_allclose(dense, at_best, rtol=1e-12)
    with jax.enable_x64(True):
        np.testing.assert_allclose(trace_loss(jnp.asarray(F), V, WEIGHTS, shift), dense, rtol=1e-12)


def test_a_weight_of_two_is_a_pair_seen_twice():
    counts = RNG.integers(1, 4, N)
    rows = np.repeat(np.arange(N), counts)
    twice = trace_loss(F[rows], V[rows], np.full(len(rows), 1 / len(rows)), 0.1)
    np.testing.assert_allclose(trace_loss(F, V, counts / counts.sum(), 0.1), twice, rtol=1e-12)


def test_held_out_loss_is_that_of_ridge_regression():
    train, held = slice(0, 30), slice(30, N)
    ridge = Ridge(alpha=0.3, fit_intercept=False).fit(F[train], V[train], sample_weight=WEIGHTS[train])
    expected = WEIGHTS[held] @ ((V[held] - ridge.predict(F[held])) ** 2).sum(1)
    parts = [(F[rows], V[rows], WEIGHTS[rows]) for rows in (train, held)]
    np.testing.assert_allclose(held_out_loss(*parts, 0.3), expected, rtol=1e-8)


def test_gradient_of_the_network_against_finite_differences():
    network, sample = kb.MLP(3, P, (4,), activation="tanh", random_state=1), Sample(F[:, :3], V, WEIGHTS)
    rows = np.arange(0, N, 2)
    with jax.enable_x64(True):
        loss = eqx.filter_jit(batch_loss)
        gradient = eqx.filter_jit(eqx.filter_grad(batch_loss))(network, sample, rows, 1e-2)
        for layer in range(2):
            for part in range(2):
                direction = np.random.default_rng(layer).normal(size=network.layers[layer][part].shape)

                def along(t, layer=layer, part=part, direction=direction):
                    moved = network.layers[layer][part] + t * direction
                    there = eqx.tree_at(lambda net: net.layers[layer][part], network, moved)
                    return float(loss(there, sample, rows, 1e-2))

                slope = (along(1e-5) - along(-1e-5)) / 2e-5
                np.testing.assert_allclose((gradient.layers[layer][part] * direction).sum(), slope, rtol=1e-6)


class Scaled(eqx.Module):
    network: kb.MLP
    factor: float = eqx.field(static=True)

    def __call__(self, x):
        return self.factor * self.network(x)


def test_outputs_gain_nothing_by_growing():
    network, sample = kb.MLP(3, P, (4,), random_state=1), Sample(F[:, :3], V, WEIGHTS)
    with jax.enable_x64(True):
        plain, grown = (float(batch_loss(Scaled(network, s), sample, np.arange(N), 1e-2)) for s in (1.0, 1e3))
    np.testing.assert_allclose(grown, plain, rtol=1e-9)


# ------------------------------------------------------------------------------------------------------ training


def single_index(n, seed):
    """z depends on one direction among 64; the rest is noise."""
    rng = np.random.default_rng(seed)
    direction = np.random.default_rng(5).normal(size=64)
    X = rng.normal(size=(n, 64))
    return X, np.sin(2 * X @ direction / np.linalg.norm(direction)) + 0.1 * rng.normal(size=n)


def test_learned_features_find_the_direction_that_matters():
    X, z = single_index(1500, 0)
    X_new, z_new = single_index(500, 1)
    features = kb.learn_features(X, z, epochs=100, random_state=0)
    learned = kb.ConditionalEmbedding(features=features, random_state=0).fit(X, z)
    median = kb.ConditionalEmbedding(
        kb.Gaussian(kb.median_lengthscale(X)), features=kb.IncompleteCholesky(500), random_state=0
    ).fit(X, z)
    assert error(median, X_new, z_new) > 0.8
    assert error(learned, X_new, z_new) < 0.25
    assert features.history["validation"].min() < 0.5 * features.baseline
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # it may have learned nothing yet
        again = kb.learn_features(X, z, epochs=3, random_state=0)  # the default network comes from the seed, too
    np.testing.assert_array_equal(again.history["train"], features.history["train"][:3])


def blobs(n, seed, size=16):
    """Noisy images of a blob, and where it is."""
    rng = np.random.default_rng(seed)
    z, pixels = rng.uniform(0.2, 0.8, (n, 2)), (np.arange(size) + 0.5) / size
    across, down = pixels[None, :] - z[:, :1], pixels[None, :] - z[:, 1:]
    images = np.exp(-(down[:, :, None] ** 2 + across[:, None, :] ** 2) / (2 * 0.08**2))
    return images + 0.5 * rng.normal(size=images.shape), z


@pytest.fixture(scope="module")
def blob_features():
    return kb.learn_features(*blobs(400, 0), epochs=25, random_state=0)


def test_images(blob_features):
    (images, z), (new, z_new) = blobs(400, 0), blobs(300, 1)
    model = kb.ConditionalEmbedding(features=blob_features, random_state=0).fit(images, z)
    flat = images.reshape(400, -1)
    median = kb.ConditionalEmbedding(kb.Gaussian(kb.median_lengthscale(flat)), random_state=0).fit(flat, z)
    assert error(median, new.reshape(300, -1), z_new) > 0.35
    assert error(model, new, z_new) < 0.2
    assert model.predict(new).shape == (300, 2)
    np.testing.assert_allclose(model.embed(new[0]).mean(), model.predict(new[:1])[0], atol=1e-8)
    with pytest.raises(ValueError, match="does not take points"):
        model.predict(new[:, :8])


def test_images_may_come_flattened_or_with_channels(blob_features):
    images = blobs(20, 2)[0]
    wanted = blob_features.kernel.gram(images)
    for other in (images.reshape(20, -1), images[..., None]):
        np.testing.assert_array_equal(blob_features.kernel.gram(other), wanted)
    assert wanted.dtype == np.float64


def test_the_same_seed_gives_the_same_features():
    first, again, other = (quick(*RING, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.kernel.gram(RING[0]), again.kernel.gram(RING[0]))
    assert not np.allclose(first.history["train"], other.history["train"])


def test_early_stopping_returns_the_best_network():
    settings = {"patience": 10, "learning_rate": 0.5}  # too large a step to settle
    stopped = quick(*RING, epochs=200, **settings)
    validation = stopped.history["validation"]
    assert stopped.best_epoch == validation.argmin() + 1
    assert len(validation) == stopped.best_epoch + 10 < 200
    until_best = quick(*RING, epochs=stopped.best_epoch, **settings)
    np.testing.assert_array_equal(stopped.kernel.gram(RING[0]), until_best.kernel.gram(RING[0]))


def test_without_validation_the_last_network_is_returned():
    features = quick(RING[0][:80], RING[1][:80], validation=0, epochs=7)
    assert features.best_epoch == len(features.history["train"]) == 7
    assert len(features.history["validation"]) == 0
    assert features.baseline is None


def test_the_validation_loss_is_measured_on_pairs_held_out():
    """With z that x says nothing about, the training loss falls and the validation loss does not: means over 16 draws."""
    draws = [np.random.default_rng([seed, 1]).normal(size=100) for seed in range(16)]
    with pytest.warns(RuntimeWarning, match="learned nothing"):  # of most of them
        found = [quick(RING[0], z, epochs=150, weight_decay=0.0, learning_rate=0.03) for z in draws]
    assert np.mean([f.history["train"].min() / f.history["train"][0] for f in found]) < 0.92
    assert np.mean([f.history["validation"][-1] / f.baseline for f in found]) > 0.93


def test_features_have_mean_square_norm_one_in_double_precision():
    features = quick(*RING)
    assert isinstance(features, kb.Neural)
    np.testing.assert_allclose(features.kernel.diag(RING[0]).mean(), 1.0, rtol=1e-12)
    leaves = [leaf for leaf in jax.tree_util.tree_leaves(features.network) if eqx.is_array(leaf)]
    assert {type(leaf) for leaf in leaves} == {np.ndarray}
    assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float64)}


def test_input_is_standardised_inside():
    X, z = RING
    plain, shifted = quick(X, z), quick(1e4 * X - 3e5, z)
    np.testing.assert_allclose(shifted.kernel.gram(1e4 * X - 3e5), plain.kernel.gram(X), atol=1e-3)
    flat = quick(np.column_stack([X[:, 0], np.full(100, 7.0)]), z)  # a constant column is no harm
    np.testing.assert_allclose(flat.network.spread, [X[:, 0].std(), 1.0], rtol=1e-12)


def test_pairs_of_weight_zero_play_no_part():
    X, z = RING
    wild_X, wild_z = np.concatenate([X, 50 + X]), np.concatenate([z, 50 * z])
    weighted = quick(wild_X, wild_z, weights=np.repeat([3.0, 0.0], 100))
    np.testing.assert_allclose(weighted.kernel.gram(X), quick(X, z).kernel.gram(X), atol=1e-6)


def test_weights_say_which_pairs_matter():
    """Of two mechanisms, the features serve the one that has the weight."""
    X = np.random.default_rng(0).normal(size=(400, 2))
    first = np.arange(400) < 200
    z = np.where(first, np.sin(3 * X[:, 0]), np.sin(3 * X[:, 1]))
    errors = []
    for favoured in (first, ~first):
        features = quick(X, z, weights=np.where(favoured, 1.0, 0.02), epochs=150, weight_decay=0.0)
        model = kb.ConditionalEmbedding(features=features, reg=1e-3).fit(X[first], z[first])
        errors.append(error(model, X[first], z[first]))
    assert errors[0] < 0.5 * errors[1]


def test_labels_as_targets():
    X, z = RING
    labels = np.where(z < -0.3, "left", np.where(z > 0.3, "right", "middle"))
    features = quick(X, labels, target_kernel=kb.Delta(), epochs=100)
    assert features.history["validation"].min() < 0.4 * features.baseline


def test_batches_share_one_compilation():
    before = step._cached._cache_size()
    for settings in ({}, {"learning_rate": 0.02, "reg": 1e-2}, {"weight_decay": 0.0, "random_state": 1}):
        assert len(quick(*RING, batch_size=30, epochs=3, **settings).history["train"]) == 3
    assert step._cached._cache_size() == before + 1


# ------------------------------------------------------------------------------------------------ other networks


def test_a_network_of_the_users(tmp_path):
    images = np.repeat(RING[0], 4, axis=1).reshape(100, 1, 2, 4)  # channels first, as in equinox.nn
    keys = jax.random.split(jax.random.key(0))
    convolution = eqx.nn.Conv2d(1, 3, 2, key=keys[0])
    network = eqx.nn.Sequential([convolution, eqx.nn.Lambda(jnp.ravel), eqx.nn.Linear(9, 6, key=keys[1])])
    before = np.array(convolution.weight)
    features = quick(images, RING[1], network, epochs=100)
    np.testing.assert_array_equal(convolution.weight, before)
    assert features.network.network.layers[0].weight.dtype == np.float64
    assert features.history["train"][-1] < 0.9 * features.history["train"][0]
    assert features.baseline == quick(*RING).baseline  # one seed scores all networks on the same pairs and targets
    assert kb.ConditionalEmbedding(features=features, reg=1e-3).fit(images, RING[1]).features_.rank == 6
    with pytest.raises(ValueError, match="cannot be saved as data"):
        kb.save(features, tmp_path / "features.npz")


class Fragile(eqx.Module):
    """A linear map that breaks when its weights grow."""

    weight: jax.Array

    def __call__(self, x):
        return jnp.where(jnp.abs(self.weight).max() > 0.6, jnp.nan, self.weight @ x)


def test_a_loss_that_is_not_finite_steps_back():
    settings = {"learning_rate": 1.0, "weight_decay": 0.0, "validation": 0}
    features = quick(*RING, Fragile(jnp.full((3, 2), 0.3)), epochs=6, **settings)
    assert 0 < len(features.history["train"]) < 6
    assert np.isfinite(features.kernel.gram(RING[0])).all()
    for epochs in (1, 10):
        with pytest.raises(ValueError, match="not finite, even with a learning rate"):
            quick(*RING, Fragile(jnp.full((3, 2), 0.7)), epochs=epochs, **settings)


def test_setbacks_lower_the_learning_rate():
    with jax.enable_x64(False):
        sample = Sample(*(jnp.asarray(a, jnp.float32) for a in (F[:, :2], V, WEIGHTS)))
        settings = Settings(*np.float32([1e-3, 1.0, 0.0]))
        training = Training(Fragile(jnp.full((3, 2), 0.7)), sample, None, settings)
        training.epoch(iter([np.arange(N)]))
    assert training.setbacks == 1
    np.testing.assert_allclose(training.settings.rate, 0.1, rtol=1e-6)


def test_networks_have_the_shapes_and_seeds_asked_for():
    point = RNG.normal(size=12)
    assert kb.MLP(12, 3, ())(point).shape == (3,)
    assert len(kb.MLP(12, 3, (5, 6, 7)).layers) == 4
    np.testing.assert_array_equal(kb.MLP(12, 3, random_state=1)(point), kb.MLP(12, 3, random_state=1)(point))
    assert not np.allclose(kb.MLP(12, 3, random_state=1)(point), kb.MLP(12, 3, random_state=2)(point))
    for shape in ((9, 7), (5, 4, 3), (1, 1)):
        for point in (np.ones(shape), np.ones(np.prod(shape))):
            assert eqx.filter_eval_shape(kb.ConvNet(shape, 4, (2, 3), ()), point).shape == (4,)


def test_an_mlp_is_its_formula():
    network, x = kb.MLP(4, 2, (3,), activation="tanh", random_state=0), RNG.normal(size=4)
    (W, b), (U, c) = network.layers
    hidden = W @ x + b
    hidden = np.tanh((hidden - hidden.mean()) / np.sqrt(hidden.var() + 1e-5))
    with jax.enable_x64(True):
        np.testing.assert_allclose(network(x), U @ hidden + c, rtol=1e-12)


def test_a_convolution_is_its_formula():
    network, image = kb.ConvNet((5, 4), 2, (3,), (), activation="relu", random_state=0), RNG.normal(size=(5, 4))
    (filters, bias), (W, b) = network.layers[0], network.head.layers[0]
    padded = np.zeros((7, 6))
    padded[1:6, 0:4] = image  # "same" padding of 5 rows at stride 2 is (1, 1), of 4 columns (0, 1)
    layer = np.empty((3, 2, 3))
    for i in range(3):
        for j in range(2):
            patch = padded[2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
            layer[i, j] = np.einsum("ij,ijc->c", patch, filters[:, :, 0]) + bias
    layer = np.maximum((layer - layer.mean()) / np.sqrt(layer.var() + 1e-5), 0.0)
    with jax.enable_x64(True):
        np.testing.assert_allclose(network(image), W @ layer.ravel() + b, rtol=1e-10)


# ----------------------------------------------------------------------------------------- files, screen, mistakes


def test_saved_and_loaded(blob_features, tmp_path):
    for features, (X, z) in ((quick(*RING), RING), (blob_features, blobs(400, 0))):
        model = kb.ConditionalEmbedding(features=features, reg=1e-3).fit(X, z)
        kb.save(model, tmp_path / "model.npz")
        again = kb.load(tmp_path / "model.npz")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        np.testing.assert_array_equal(again.features.history["train"], features.history["train"])
        assert again.features.best_epoch == features.best_epoch
        np.testing.assert_allclose(again.fit(X, z).predict(X), model.predict(X), rtol=1e-10)


def test_progress_is_shown_when_asked_for(capsys):
    for progress in (False, None):  # there is no terminal here
        quick(*RING, progress=progress)
        assert capsys.readouterr().err == ""
    quick(*RING, progress=True)
    assert "learning features" in capsys.readouterr().err


class Matrix(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return self.weight * x[:, None]


GOOD = ring(30, 0)
MISTAKES = {
    "lengths differ": (dict(Z=GOOD[1][:-1]), "X has 30 rows but Z has 29"),
    "NaN in X": (dict(X=np.full((30, 2), np.nan)), "X contains NaN"),
    "NaN in an image": (dict(X=np.full((30, 4, 4), np.nan)), "X contains NaN"),
    "no images": (dict(X=np.zeros((0, 4, 4)), Z=[]), "X is empty"),
    "films": (dict(X=np.zeros((30, 2, 4, 4, 3))), "no default network for points of shape"),
    "text": (dict(X=[["a"]] * 30), "X holds text"),
    "constant z": (dict(Z=np.ones(30)), "Z has no two distinct points"),
    "negative weights": (dict(weights=np.linspace(-1, 1, 30)), "weights must not be negative"),
    "weights of zero": (dict(weights=np.zeros(30)), "0 pairs of positive weight"),
    "too few": (dict(X=GOOD[0][:2], Z=GOOD[1][:2]), "2 pairs of positive weight: too few"),
    "too many weights": (dict(weights=np.ones(31)), "weights has shape"),
    "large batches": (dict(batch_size=31), "batch_size is 31, but there are 24 pairs"),
    "no batch": (dict(batch_size=1), "batch_size must be at least 2"),
    "no epochs": (dict(epochs=0), "epochs must be at least 1"),
    "no patience": (dict(patience=0), "patience must be at least 1"),
    "all held out": (dict(validation=1.0), "validation must be a share"),
    "no reg": (dict(reg=0.0), "reg must be positive"),
    "learning rate": (dict(learning_rate=-1.0), "learning_rate must be positive"),
    "weight decay": (dict(weight_decay=-1.0), "weight_decay must not be negative"),
    "not a kernel": (dict(target_kernel="delta"), "target_kernel must be a kernel"),
    "features and a network": (dict(network=kb.MLP(2, 3), features=3), "features is for the default network"),
    "no features": (dict(features=0), "features must be at least 1"),
    "a function": (dict(network=np.sin), "network must be an Equinox module"),
    "wrong width": (dict(network=kb.MLP(3, 2)), r"does not take points of shape \(2,\)"),
    "not a vector": (dict(network=Matrix(jnp.ones((2, 2)))), "must return a vector"),
    "nothing to learn": (dict(network=eqx.nn.Lambda(jnp.sin)), "no parameters to learn"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_explained(name):
    arguments, message = MISTAKES[name]
    with pytest.raises(ValueError, match=message):
        kb.learn_features(**{"X": GOOD[0], "Z": GOOD[1], "epochs": 1, **arguments})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: kb.MLP(0, 3), "inputs must be at least 1"),
        (lambda: kb.MLP(2, 3, 16), "widths must be a list"),
        (lambda: kb.MLP(2, 3, (16, 2.5)), "each of widths must be a whole number"),
        (lambda: kb.MLP(2, 3, activation="swish"), "activation must be one of"),
        (lambda: kb.ConvNet(16, 3), "image_shape must be a list"),
        (lambda: kb.ConvNet((16,), 3), "image_shape must be"),
        (lambda: kb.ConvNet((8, 8), 3, (4, -1)), "each of channels must be at least 1"),
    ],
)
def test_networks_refuse_what_they_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()

"""Saving and loading: the same answers afterwards, no pickle, and clear errors."""

import json
import zipfile

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 3))
Y = np.sin(X[:, :2]) + 0.1 * RNG.normal(size=(80, 2))


def round_trip(value, tmp_path):
    kb.save(value, tmp_path / "saved.npz")
    return kb.load(tmp_path / "saved.npz")


@pytest.mark.parametrize(
    "kernel",
    [
        kb.Gaussian([1.0, 2.0, 3.0]),
        kb.Laplace(0.5),
        kb.Matern(2.5, 2.0),
        kb.RationalQuadratic(1.0, 2.0),
        kb.Linear(1.0),
        kb.Polynomial(3, 0.5),
        kb.Brownian(0.3),
        2.0 * kb.Gaussian() + kb.Linear() * kb.Matern(0.5),
        kb.Gaussian(2.0).on(0, 2) * kb.Delta().on(1),
    ],
    ids=lambda k: type(k).__name__,
)
def test_kernels(kernel, tmp_path):
    again = round_trip(kernel, tmp_path)
    assert type(again) is type(kernel)
    np.testing.assert_array_equal(again.gram(X), kernel.gram(X))


@pytest.mark.parametrize(
    "recipe",
    [None, kb.Exact(), kb.IncompleteCholesky(20), kb.Subspace(20, "herding"), kb.RandomFourier(40)],
    ids=lambda r: type(r).__name__,
)
def test_fitted_estimators(recipe, tmp_path):
    kernel = None if recipe is None else kb.Gaussian(2.0)
    model = kb.ConditionalEmbedding(kernel, features=recipe, reg=1e-2, random_state=0).fit(X, Y)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_allclose(again.weights(X[:3]), model.weights(X[:3]), atol=1e-12)
    np.testing.assert_allclose(again.embed(X[0]).interval(0.9), model.embed(X[0]).interval(0.9))
    assert again.get_params()["reg"] == model.reg
    assert again.features_.rank == model.features_.rank


@pytest.mark.parametrize("rule", ["iw", "kbr", "dmo"])
def test_bayes_rules_and_posteriors(rule, tmp_path):
    model = kb.KernelBayesRule(rule, kb.Gaussian(2.0), kb.Gaussian(1.0), reg=1e-2, prior_reg=1e-3).fit(X, Y)
    posterior = model.posterior(X[:4], Y[:30])
    again = round_trip(model, tmp_path).posterior(X[:4], Y[:30])
    np.testing.assert_allclose(again.weights, posterior.weights, atol=1e-9)
    assert round_trip(posterior, tmp_path).health.condition == posterior.health.condition
    np.testing.assert_array_equal(round_trip(posterior[1], tmp_path).mean(), posterior[1].mean())


def test_labels_and_sets(tmp_path):
    labels = np.array(["a", "b"] * 10)
    model = kb.ConditionalEmbedding(features=kb.OneHot(), reg=1e-3).fit(labels, np.arange(20.0))
    np.testing.assert_array_equal(round_trip(model, tmp_path).predict(["b", "a"]), model.predict(["b", "a"]))
    sets = [RNG.normal(size=(n, 2)) for n in (3, 5, 4)]
    embedding = kb.MeanEmbedding(sets, [0.2, 0.3, 0.5], kb.SetKernel())
    np.testing.assert_array_equal(round_trip(embedding, tmp_path)(sets), embedding(sets))


def test_analytic_embeddings(tmp_path):
    kernel = kb.Gaussian(0.7)
    for distribution in (stats.norm(1, 2), [stats.uniform(), stats.norm()], kb.Mixture([stats.norm(), stats.norm(3)])):
        embedding = kb.AnalyticEmbedding(distribution, kernel)
        again = round_trip(embedding, tmp_path)
        assert again.norm() == embedding.norm()
        assert again.distance(embedding) < 1e-7


def test_files_hold_data_only(tmp_path):
    path = tmp_path / "saved.npz"
    kb.save(kb.Gaussian(), path)
    with zipfile.ZipFile(path) as archive:
        assert all(name.endswith(".npy") for name in archive.namelist())
    with np.load(path, allow_pickle=False) as file:
        description = json.loads(str(file["description"]))
    assert description["schema"] == 1
    assert description["object"]["type"] == "Gaussian"


def test_what_cannot_be_saved_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"FunctionKernel\.function is a function"):
        kb.save(kb.FunctionKernel(lambda a, b: 1.0), tmp_path / "no.npz")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="object of kernelbayes, got dict"):
        kb.save({}, tmp_path / "no.npz")
    with pytest.raises(ValueError, match="is a folder"):
        kb.save(kb.Gaussian(), tmp_path)
    with pytest.raises(ValueError, match="there is no folder"):
        kb.save(kb.Gaussian(), tmp_path / "nowhere" / "no.npz")


def test_what_cannot_be_loaded_says_so(tmp_path):
    (tmp_path / "text.npz").write_text("not an archive")
    with pytest.raises(ValueError, match="not a file saved by kernelbayes"):
        kb.load(tmp_path / "text.npz")
    with pytest.raises(FileNotFoundError):
        kb.load(tmp_path / "missing.npz")
    for description, message in (
        ({"schema": 99, "object": None}, "newer kernelbayes"),
        ({"schema": 1, "object": {"type": "Popen", "state": {}}}, "does not know"),
    ):
        np.savez(tmp_path / "odd.npz", description=np.array(json.dumps(description)))
        with pytest.raises(ValueError, match=message):
            kb.load(tmp_path / "odd.npz")


def test_every_public_class_with_state_is_known():
    from sklearn.base import BaseEstimator

    from kernelbayes._persist import _known

    known = set(_known().values())
    for name in kb.__all__:
        value = getattr(kb, name)
        stateful = isinstance(value, type) and not issubclass(value, (Exception, Warning))
        assert not stateful or value in known or not issubclass(value, BaseEstimator | kb.Kernel), name

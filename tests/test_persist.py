"""Saving and loading: the same answers afterwards, no pickle, and clear errors."""

import json
import zipfile

import numpy as np
import pytest
from scipy import stats

import fuzz_files
import kernelbayes as kb
from fuzz_files import npy

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


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
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


# ------------------------------------------------------------------------------------------------- files from strangers


def write(path, description, **members):
    """A file with this object, its members given as bytes or as arrays."""
    text = json.dumps({"schema": 1, "object": description})
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("description.npy", npy(np.array(text)))
        for name, data in members.items():
            file.writestr(f"{name}.npy", data if isinstance(data, bytes) else npy(data))
    return path


def described(name, **state):
    return {"type": name, "state": state}


GAUSSIAN = described("Gaussian", lengthscale={"array": "a0"})
SCALAR = {"args": {"tuple": []}, "kwds": {"dict": {}}}


def prior_of(family, **other):
    blocks = {"tuple": [described("Scalar", **{"family": family, **SCALAR, **other})]}
    return described("Prior", names={"tuple": ["x"]}, _blocks=blocks)


def test_no_name_in_a_file_is_looked_up_but_that_of_a_distribution(tmp_path, monkeypatch):
    from scipy import stats

    called = []
    monkeypatch.setattr(stats, "test", lambda *a, **k: called.append(a))
    for family in ("test", "rv_continuous", "__loader__", "_stats_py", "kde", "no such thing"):
        with pytest.raises(
            ValueError, match=rf"file\.npz: Prior\._blocks\[0\]: scipy.stats has no distribution '{family}'"
        ):
            kb.load(write(tmp_path / "file.npz", prior_of(family)))
    assert not called
    assert kb.load(write(tmp_path / "file.npz", prior_of("norm"))).names == ("x",)


@pytest.mark.parametrize(
    ("description", "members", "message"),
    [
        (GAUSSIAN, {"a0": np.array(np.nan)}, r"Gaussian.lengthscale holds NaN where finite numbers were wanted"),
        (GAUSSIAN, {"a0": np.array("1.0")}, r"Gaussian.lengthscale holds text where numbers were wanted"),
        (GAUSSIAN, {"a0": np.array(-1.0)}, r"Gaussian: lengthscale must be positive, got -1.0"),
        (GAUSSIAN, {}, r"Gaussian.lengthscale: there is no array 'a0'"),
        (GAUSSIAN, {"a0": npy(np.zeros(1), (10**9,), "<f8")}, r"'a0' declares the shape '\(1000000000,\)' of float64"),
        (GAUSSIAN, {"a0": npy(np.zeros(1), (10**9, 0, 10**9), "<f8")}, r"'a0' declares the shape"),
        (GAUSSIAN, {"a0": npy(np.zeros(1), (10**9,), "<U0")}, r"'a0' declares the shape"),
        (GAUSSIAN, {"a0": npy(np.zeros(1), (1,), "|O")}, r"'a0' is damaged: 'its header is not of the form"),
        (GAUSSIAN, {"a0": b"nonsense"}, r"'a0' is damaged: \"it is no array in NumPy's format"),
        (described("Gaussian"), {}, r"Gaussian.lengthscale is missing"),
        (described("Gaussian", lengthscale=1.0, gram=1.0), {}, r"Gaussian.gram is no attribute of a Gaussian"),
        (described("Gaussian", lengthscale=described("Delta")), {}, r"lengthscale is a Delta where a number or an array"),
        (described("Kernel"), {}, r"Kernel is a Kernel, of which there are no objects"),
        (described("Scaled", kernel=described("OneHot"), scale=1.0), {}, r"Scaled.kernel is a OneHot where Kernel was"),
        (described("FunctionKernel", function=described("Delta")), {}, r"function is a Delta where Callable was wanted"),
        (described("Sum", left=GAUSSIAN, right=GAUSSIAN), {"a0": np.array(1.0)}, r"Sum.right.lengthscale: .* used twice"),
        (described("MLP", layers={"tuple": []}, activation="__class__"), {}, r"activation is the text '__class__' where"),
        (prior_of("norm", args={"tuple": [1.0, "x"]}), {}, r"_blocks\[0\].args\[1\] is the text 'x' where a number"),
        (prior_of("norm", kwds={"dict": {"moments": 1.0}}), {}, r"norm\(moments=1\) is not a distribution of scipy.stats"),
        (prior_of("zipf", args={"tuple": [1.0001]}), {}, r"its tail is too long"),
        (described("Gaussian", lengthscale=[1.0]), {}, r"Gaussian.lengthscale is described in no way"),
        ("Gaussian", {}, r"it describes no object"),
    ],
)  # fmt: skip
def test_files_made_by_hand_are_refused_by_name(description, members, message, tmp_path):
    with pytest.raises(ValueError, match=rf"file\.npz: .*({message})"):
        kb.load(write(tmp_path / "file.npz", description, **members))


def test_nesting_without_end_is_refused(tmp_path):
    deep = GAUSSIAN
    for _ in range(200):
        deep = described("Scaled", kernel=deep, scale=1.0)
    assert isinstance(kb.load(write(tmp_path / "file.npz", deep, a0=np.array(1.0))), kb.Kernel)
    text = '{"schema": 1, "object": ' + '{"list": [' * 50_000 + "]}" * 50_000 + "}"
    np.savez(tmp_path / "file.npz", description=np.array(text))
    with pytest.raises(ValueError, match=r"file\.npz: its description is nested too deeply"):
        kb.load(tmp_path / "file.npz")


def test_what_a_file_declares_takes_neither_time_nor_memory(tmp_path):
    """Bombs: compressed zeros, members that overlap, a description without end."""
    compressed = tmp_path / "compressed.npz"
    with zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("description.npy", npy(np.array(json.dumps({"schema": 1, "object": GAUSSIAN}))))
        file.writestr("a0.npy", bytes(50_000_000))
    overlapping = write(tmp_path / "overlapping.npz", GAUSSIAN, a0=np.zeros(50_000))
    with zipfile.ZipFile(overlapping, "a") as file:  # each of them stands for the same bytes
        for i in range(1000):
            info = zipfile.ZipInfo(f"b{i}.npy")
            first = file.getinfo("a0.npy")
            info.CRC, info.date_time = first.CRC, first.date_time
            info.header_offset, info.file_size, info.compress_size = (
                first.header_offset,
                first.file_size,
                first.file_size,
            )
            file.filelist.append(info)
        file._didModify = True
    long = tmp_path / "long.npz"
    np.savez(long, description=np.array('{"schema": 1, "object": [' + "[]," * 1_000_000 + "0]}"))
    for path, message in (
        (compressed, "'description' is compressed"),
        (overlapping, "declares more bytes than the file has"),
        (long, "more than 1,000,000 values"),
    ):
        found, seconds, peak = fuzz_files.outcome(path, measured=True)
        assert found == "refused"
        assert seconds < fuzz_files.MOST_SECONDS
        assert peak < fuzz_files.MOST_BYTES
        with pytest.raises(ValueError, match=message):
            kb.load(path)


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")  # of few pairs
def test_whatever_is_in_a_file_it_is_loaded_or_refused_by_name(tmp_path):
    for found, seconds, _ in fuzz_files.run(60, tmp_path, seed=7):
        assert found in ("loaded", "refused")
        assert seconds < fuzz_files.MOST_SECONDS


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    model = kb.ConditionalEmbedding()
    model.note = "mine"
    with pytest.raises(ValueError, match=r"ConditionalEmbedding\.note is no attribute of a ConditionalEmbedding"):
        kb.save(model, tmp_path / "no.npz")
    assert not list(tmp_path.iterdir())


def test_every_class_has_a_layout():
    """Every attribute has a kind that is known, and none may be anything but where a result holds what a user gave."""
    import typing

    from kernelbayes._persist import _known
    from kernelbayes._persist._fields import layout

    free = {"Optimum.params"}
    for name, cls in _known().items():
        if not getattr(cls, "__abstractmethods__", None):
            for attribute, kind in layout(cls).kinds.items():
                assert kind is not typing.Any or f"{name}.{attribute}" in free, f"{name}.{attribute}"


def test_a_filter_that_was_reset_goes_on_after_loading(tmp_path):
    model = kb.KernelBayesFilter(
        "kbr", kb.Gaussian(2.0), kb.Gaussian(1.0), reg=1e-2, prior_reg=1e-2, transition_reg=1e-2
    )
    model.fit(X, Y).reset(Y[:5])
    again = round_trip(model, tmp_path)
    np.testing.assert_allclose(again.step(X[3]).mean(), model.step(X[3]).mean(), atol=1e-12)

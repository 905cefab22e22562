"""Every public entry against every kind of bad data: a ValueError that reads like one, never NaN, never a JAX traceback."""

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb

RNG = np.random.default_rng(0)
GOOD = RNG.normal(size=(20, 2))
Y = GOOD[:, 0] + 0.1 * RNG.normal(size=20)
KERNEL = kb.Gaussian(1.0)
FITTED = kb.ConditionalEmbedding(KERNEL, reg=0.1).fit(GOOD, Y)
FEATURES = kb.IncompleteCholesky(5).fit(KERNEL, GOOD)
EMBEDDING = kb.MeanEmbedding(GOOD, kernel=KERNEL)
RULE = kb.KernelBayesRule(kernel=KERNEL, latent_kernel=KERNEL, reg=0.1, prior_reg=0.1).fit(GOOD, GOOD)
PRIOR = kb.Prior(a=stats.norm(), b=stats.norm())
ANALYTIC = kb.AnalyticEmbedding([stats.norm(), stats.uniform()], KERNEL)
COVARIANCE = kb.Covariance(GOOD, KERNEL)

ENTRIES = {
    "gram": lambda X: KERNEL.gram(X),
    "gram, second": lambda X: KERNEL.gram(GOOD, X),
    "diag": lambda X: KERNEL.diag(X),
    "matmul": lambda X: KERNEL.matmul(X, GOOD, Y),
    "median_lengthscale": lambda X: kb.median_lengthscale(X),
    "median_lengthscale per column": lambda X: kb.median_lengthscale(X, per_column=True),
    "Exact.fit": lambda X: kb.Exact().fit(KERNEL, X),
    "IncompleteCholesky.fit": lambda X: kb.IncompleteCholesky(5).fit(KERNEL, X),
    "Subspace.fit": lambda X: kb.Subspace(5).fit(KERNEL, X, random_state=0),
    "RandomFourier.fit": lambda X: kb.RandomFourier(6).fit(KERNEL, X, random_state=0),
    "transform": lambda X: FEATURES.transform(X),
    "MeanEmbedding": lambda X: kb.MeanEmbedding(X),
    "MeanEmbedding with kernel": lambda X: kb.MeanEmbedding(X, kernel=KERNEL),
    "embedding as a function": lambda X: EMBEDDING(X),
    "analytic embedding as a function": lambda X: ANALYTIC(X),
    "density": lambda X: EMBEDDING.density(X, 0.5),
    "mmd": lambda X: kb.mmd(X, GOOD),
    "mmd, second": lambda X: kb.mmd(GOOD, X, KERNEL),
    "mmd_test": lambda X: kb.mmd_test(X, GOOD, permutations=5, random_state=0),
    "hsic": lambda X: kb.hsic(X, Y),
    "hsic_test": lambda X: kb.hsic_test(X, Y, permutations=5, random_state=0),
    "Covariance": lambda X: kb.Covariance(X, KERNEL),
    "eigenfunctions": lambda X: COVARIANCE.eigenfunctions(X),
    "CrossCovariance": lambda X: kb.CrossCovariance(X, Y, KERNEL, kb.Gaussian()),
    "fit": lambda X: kb.ConditionalEmbedding().fit(X, Y),
    "fit with kernel": lambda X: kb.ConditionalEmbedding(KERNEL, reg=0.1).fit(X, Y),
    "weights": lambda X: FITTED.weights(X),
    "expect": lambda X: FITTED.expect(lambda y: y[:, 0], X),
    "predict": lambda X: FITTED.predict(X),
    "embed": lambda X: FITTED.embed(X),
    "push": lambda X: FITTED.push(kb.MeanEmbedding(X, kernel=KERNEL)),
}


def spoiled(value):
    X = GOOD.copy()
    X[3, 1] = value
    return X


BAD = {
    "NaN": spoiled(np.nan),
    "inf": spoiled(np.inf),
    "empty": np.empty((0, 2)),
    "no columns": np.empty((20, 0)),
    "text": [["a", "b"]] * 20,
    "ragged": [[1.0, 2.0]] * 19 + [[1.0]],
    "three dimensions": np.zeros((20, 2, 2)),
    "complex": GOOD + 1j,
    "objects": np.array([[object(), object()]] * 20),
    "None": None,
    "a number": 3.0,
}


RULES_AND_JOBS = {
    "KernelBayesRule.fit": lambda X: kb.KernelBayesRule(random_state=0).fit(X, Y),
    "KernelBayesRule.fit, latents": lambda X: kb.KernelBayesRule(random_state=0).fit(Y, X),
    "posterior": lambda X: RULE.posterior(X),
    "posterior, prior": lambda X: RULE.posterior([0.0, 0.0], X),
    "DensityRatio.fit": lambda X: kb.DensityRatio(KERNEL, reg=0.1).fit(X, GOOD),
    "DensityRatio.fit, second": lambda X: kb.DensityRatio(KERNEL, reg=0.1).fit(GOOD, X),
    "filter fit, states": lambda X: kb.KernelBayesFilter(tune=0, random_state=0).fit(Y, X),
    "infer, parameters": lambda X: kb.infer(parameters=X, outputs=Y, prior=PRIOR, observed=0.0, random_state=0),
    "prior density": lambda X: PRIOR.log_density(X),
    "prior coordinates": lambda X: PRIOR.to_gaussian(X),
    "simulate": lambda X: kb.simulate(lambda x: x.sum(), X),
}
MEANS_SOMETHING = {("posterior, prior", "None"), ("filter fit, states", "NaN")}  # the training marginal; a gap in a log


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("entry", RULES_AND_JOBS)
def test_bad_points_are_refused_by_rules_and_jobs(entry, bad):
    if (entry, bad) in MEANS_SOMETHING:
        return
    with pytest.raises(ValueError, match=r"\w"):
        RULES_AND_JOBS[entry](BAD[bad])


ESTIMATOR = ("fit", "fit with kernel", "weights", "expect", "predict", "embed")


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("entry", ENTRIES)
def test_bad_points_are_refused(entry, bad):
    if (entry, bad) == ("gram, second", "None"):
        return  # the Gram matrix of one sample
    # scikit-learn's contract wants a TypeError of its own for arbitrary objects
    wanted = TypeError if entry in ESTIMATOR and bad == "objects" else ValueError
    with pytest.raises(wanted) as caught:
        ENTRIES[entry](BAD[bad])
    message = str(caught.value)
    assert 10 < len(message) < 1200
    assert not any(word in message for word in ("Tracer", "jaxlib", "XLA", "dot_general"))


WIDTH = {name: call for name, call in ENTRIES.items() if name in (
    "gram, second", "matmul", "transform", "embedding as a function", "analytic embedding as a function", "density",
    "mmd", "mmd, second", "mmd_test", "eigenfunctions", "weights", "expect", "predict", "embed", "push",
)}  # fmt: skip


@pytest.mark.parametrize("entry", WIDTH)
def test_the_wrong_width_is_refused(entry):
    with pytest.raises(ValueError, match=r"columns|features|width|points of shape|per point"):
        WIDTH[entry](RNG.normal(size=(20, 3)))


@pytest.mark.parametrize("entry", ["hsic", "hsic_test", "CrossCovariance", "fit", "fit with kernel"])
def test_unpaired_lengths_are_refused(entry):
    with pytest.raises(ValueError, match=r"rows but"):
        ENTRIES[entry](GOOD[:-1])


@pytest.mark.parametrize("entry", ["median_lengthscale", "MeanEmbedding", "mmd", "mmd_test", "fit", "fit with kernel"])
def test_one_row_is_refused_where_it_cannot_do(entry):
    call = ENTRIES[entry]
    if entry.startswith("fit"):
        kernel = None if entry == "fit" else KERNEL

        def call(X):
            return kb.ConditionalEmbedding(kernel).fit(X, Y[:1])

    with pytest.raises(ValueError, match=r"two|sample|distinct"):
        call(GOOD[:1])


@pytest.mark.parametrize("entry", ["median_lengthscale", "MeanEmbedding", "hsic", "hsic_test", "fit"])
def test_constant_data_says_so(entry):
    with pytest.raises(ValueError, match="no two distinct points"):
        ENTRIES[entry](np.ones((20, 2)))


def numbers(value):
    """All numbers in a result, whatever it is."""
    if isinstance(value, (float, int, np.ndarray)):
        return np.asarray(value, dtype=float).ravel()
    if isinstance(value, kb.MeanEmbedding):
        return value.weights
    if isinstance(value, kb.TestResult):
        return np.array([value.statistic, value.pvalue, *value.null])
    if isinstance(value, kb.Features):
        return value.transform(GOOD).ravel()
    if isinstance(value, kb.CrossCovariance):
        return np.append(value.singular_values(), value.norm())
    if isinstance(value, kb.ConditionalEmbedding):
        return value.predict(GOOD)
    raise AssertionError(type(value))


@pytest.mark.parametrize("entry", [name for name in ENTRIES if name not in ("fit", "embed")])
@pytest.mark.parametrize(
    "X",
    [np.repeat(GOOD[:5], 4, axis=0), np.column_stack([GOOD[:, 0], np.full(20, 3.0)]), 1e6 + GOOD],
    ids=["duplicated rows", "constant column", "large offset"],
)
@pytest.mark.filterwarnings("ignore:at .* points x lies outside:kernelbayes.PosteriorWarning")  # as some are, here
def test_awkward_data_gives_finite_answers(entry, X):
    assert np.isfinite(numbers(ENTRIES[entry](X))).all()


def test_what_is_not_a_kernel_is_refused():
    calls = (
        lambda k: kb.mmd_test(GOOD, GOOD, k),
        lambda k: kb.hsic(GOOD, Y, k),
        lambda k: kb.MeanEmbedding(GOOD, kernel=k),
        lambda k: kb.embed(stats.norm(), k),
        lambda k: kb.Covariance(GOOD, k),
        lambda k: kb.Exact().fit(k, GOOD),
    )
    for call in calls:
        with pytest.raises(ValueError, match=r"must be a kernel such as kb\.Gaussian\(1\.0\), got float"):
            call(1.0)
    with pytest.raises(ValueError, match="pass a kernel as kernel="):
        kb.MeanEmbedding(GOOD, KERNEL)
    with pytest.raises(ValueError, match="a ndarray is not a distribution"):
        kb.embed(GOOD, KERNEL)
    with pytest.raises(ValueError, match=r"target_kernel=kb\.Delta"):
        kb.ConditionalEmbedding().fit(GOOD, ["a", "b"] * 10)
    with pytest.raises(ValueError, match="give a kernel for them"):
        kb.ConditionalEmbedding().fit(["a", "b"] * 10, Y)


def test_embedding_weights_and_kernels():
    with pytest.raises(ValueError, match="weights has shape"):
        kb.MeanEmbedding(GOOD, np.ones(3))
    with pytest.raises(ValueError, match="weights contains NaN"):
        kb.MeanEmbedding(GOOD, np.full(20, np.nan))
    with pytest.raises(ValueError, match="different kernels"):
        EMBEDDING.inner(kb.MeanEmbedding(GOOD, kernel=kb.Gaussian(2.0)))
    with pytest.raises(ValueError, match="cannot be normalised"):
        (EMBEDDING - EMBEDDING).normalise()
    with pytest.raises(ValueError, match="level"):
        EMBEDDING.interval(1.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        EMBEDDING.quantile(-0.1)
    with pytest.raises(ValueError, match="bandwidth must be positive"):
        EMBEDDING.density(GOOD, 0.0)
    with pytest.raises(ValueError, match="permutations"):
        kb.mmd_test(GOOD, GOOD, permutations=0)
    with pytest.raises(ValueError, match="random_state"):
        kb.mmd_test(GOOD, GOOD, random_state="seed")


def test_names_of_an_observation_are_those_of_a_simulation():
    def simulator(mu, rng):
        return {"level": mu + rng.normal(), "spread": 1.0 + rng.uniform()}

    for observed, said in (
        ({"level": 0.1}, r"observed lacks \['spread'\]"),
        ({"level": 0.1, "spread": 1.5, "mean": 0.0}, r"observed has \['mean'\], which a simulation does not return"),
    ):
        with pytest.raises(ValueError, match=said):
            kb.infer(simulator, {"mu": (-3, 3)}, observed, simulations=20, random_state=0)

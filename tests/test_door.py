"""What hides in an array, masks and dates, and columns with names: nothing is read as a number that is not one."""

import datetime
import warnings

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb

K = kb.Gaussian(1.0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 2))
Y = X[:, 0] + 2.0 * X[:, 1]
PRIOR = kb.Prior(a=stats.norm(0, 3), b=stats.norm(0, 3))
SETTLED = dict(kernel=K, latent_kernel=K, reg=0.1, prior_reg=0.1)
FILTER = dict(**SETTLED, transition_reg=0.1, tune=0, random_state=0)


@pytest.fixture(autouse=True)
def quietly():
    """Sixteen points are few, and the library says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def conditional(**settings):
    return kb.ConditionalEmbedding(**{"kernel": K, "reg": 0.1, **settings})


def classifier():
    return kb.ConditionalEmbeddingClassifier(K, reg=0.1, learn=None)


def network():
    return kb.ConditionalEmbeddingNetwork(epochs=1, progress=False, random_state=0)


def sparse():
    return kb.SparseRegression(3, K, 0.1, learn=None, random_state=0)


def task_gp():
    return kb.TaskTransformedGP(K, K, noise=0.1, mediator_noise=0.1, learn=None)


def deconditional():
    return kb.DeconditionalEmbedding(K, K, reg=0.1, task_reg=0.1, learn=None)


def moving(rng, states):
    return states + 0.1 * rng.normal(size=states.shape)


def particle_filter():
    return kb.KernelMonteCarloFilter(moving, **SETTLED, rule="kbr", particles=8, herded=4, tune=0, random_state=0)


# Calls with a table (16, 2) where points are wanted.
TABLES = {
    "conditional fit": lambda T: conditional().fit(T, Y),
    "conditional predict": lambda T: conditional().fit(X, Y).predict(T),
    "conditional targets": lambda T: conditional().fit(X, T),
    "conditional embed": lambda T: conditional().fit(X, Y).embed(T[7:8]),
    "classifier fit": lambda T: classifier().fit(T, Y > 0),
    "classifier predict": lambda T: classifier().fit(X, Y > 0).predict_proba(T),
    "network fit": lambda T: network().fit(T, Y > 0),
    "sparse fit": lambda T: sparse().fit(T, Y),
    "sparse predict": lambda T: sparse().fit(X, Y).predict(T),
    "sparse targets": lambda T: sparse().fit(X, T),
    "task fit": lambda T: task_gp().fit(T, Y, Y, Y),
    "task predict": lambda T: task_gp().fit(X, Y, Y, Y).predict(T),
    "task targets": lambda T: task_gp().fit(X, Y, Y, T),
    "deconditional fit": lambda T: deconditional().fit(T, Y, Y, Y),
    "deconditional embed": lambda T: deconditional().fit(X, Y, Y, Y).embed(T[7:8]),
    "filter fit": lambda T: kb.KernelBayesFilter(**FILTER).fit(T, X),
    "filter states": lambda T: kb.KernelBayesFilter(**FILTER).fit(X, T),
    "particles fit": lambda T: particle_filter().fit(T, X),
    "rule fit": lambda T: kb.KernelBayesRule("kbr", **SETTLED).fit(T, X),
    "ratio fit": lambda T: kb.DensityRatio(K, reg=0.1).fit(X, T),
    "prior density": lambda T: PRIOR.density(T),
    "prior density of a dict": lambda T: PRIOR.density({"a": T[:, 0], "b": T[:, 1]}),
    "infer parameters": lambda T: kb.infer(prior=PRIOR, observed=0.0, parameters=T, outputs=Y, method="rejection"),
    "infer outputs": lambda T: kb.infer(prior=PRIOR, observed=[0.0, 0.0], parameters=X, outputs=T, method="rejection"),
    "function kernel": lambda T: kb.FunctionKernel(lambda a, b: 1.0).gram(T),
    "embedding": lambda T: kb.MeanEmbedding(T, kernel=K),
}
OF_OBJECTS = ("function kernel",)


def masked(T):
    return np.ma.masked_array(T, mask=np.arange(T.size).reshape(T.shape) == 15)


def objects(T, make):
    out = np.empty(T.shape, dtype=object)
    out.flat = [make(i) for i in range(T.size)]
    return out


def one_date(T):
    T = T.astype(object)
    T[7, 1] = np.datetime64("2026-01-01")
    return T


DAY = datetime.datetime(2026, 1, 1)
MASKS = {"masked": masked, "masked objects": lambda T: masked(T.astype(object))}
DATES = {
    "dates": lambda T: np.datetime64("2026-01-01") + np.arange(T.size).reshape(T.shape).astype("timedelta64[D]"),
    "durations": lambda T: np.arange(T.size).reshape(T.shape) * np.timedelta64(1, "s"),
    "dates of Python": lambda T: objects(T, lambda i: DAY + datetime.timedelta(days=i)),
    "dates of NumPy as objects": lambda T: objects(T, lambda i: np.datetime64("2026-01-01") + np.timedelta64(i, "D")),
    "durations as objects": lambda T: objects(T, lambda i: np.timedelta64(i, "s")),
    "one date among numbers": one_date,
}


@pytest.mark.parametrize("call", TABLES)
def test_masks_and_dates_are_no_numbers(call):
    for table in MASKS.values():
        with pytest.raises(ValueError, match="1 masked value; remove or fill"):
            TABLES[call](table(X))
    for table in () if call in OF_OBJECTS else DATES.values():
        with pytest.raises(ValueError, match="holds dates or durations; turn them into numbers"):
            TABLES[call](table(X))


def test_masks_are_found_in_lists():
    for value in (list(masked(X)), [list(row) for row in masked(X)], (*X.tolist()[:7], np.ma.masked)):
        with pytest.raises(ValueError, match=r"masked value|rows of different lengths"):
            conditional().fit(value, Y)
    with pytest.raises(ValueError, match="observations has 1 masked value"):
        kb.KernelBayesFilter(**FILTER).fit(list(masked(X)), X)


def test_an_array_in_which_nothing_is_masked_is_an_array():
    plain, open_ = conditional().fit(X, Y), conditional().fit(np.ma.masked_array(X), np.ma.masked_array(Y))
    np.testing.assert_array_equal(plain.predict(X), open_.predict(np.ma.masked_array(X)))


@pytest.mark.parametrize("value", [np.timedelta64(2, "s"), np.datetime64("2026-01-01"), DAY])
def test_a_date_is_no_setting(value):
    for call in (lambda: kb.Subspace(value), lambda: kb.Gaussian(value), lambda: PRIOR.sample(value)):
        with pytest.raises(ValueError, match=r"must be a whole number|lengthscale holds dates"):
            call()
    with pytest.raises(ValueError, match="random_state must be a whole number"):
        PRIOR.sample(2, value)


RETURNED = {
    "masked": (
        lambda t: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
        "what the simulator returned has 1 masked",
    ),
    "masked in a dict": (lambda t: {"s": np.ma.masked, "t": 1.0}, "statistic 's' has 1 masked value"),
    "a date": (lambda t: np.datetime64("2026-01-01"), "what the simulator returned holds dates or durations"),
    "dates as objects": (lambda t: [1.0, np.datetime64("2026-01-01")], "holds dates or durations"),
    "a duration in a dict": (lambda t: {"s": np.timedelta64(1, "s")}, "statistic 's' holds dates or durations"),
}


@pytest.mark.parametrize("kind", RETURNED)
def test_masks_and_dates_from_a_simulator_are_failures(kind):
    simulator, message = RETURNED[kind]
    with pytest.raises(kb.SimulationError, match=message):
        kb.simulate(simulator, X)


def test_workers_read_outputs_by_the_same_door():
    with pytest.raises(kb.SimulationError, match="what the simulator returned has 1 masked"):
        kb.simulate(RETURNED["masked"][0], X[:2], executor=1)


def test_masks_and_dates_from_functions_are_refused():
    embedding = kb.MeanEmbedding(X, kernel=K)
    for values, message in ((masked(X), "1 masked value"), (DATES["dates"](X), "dates or durations")):
        with pytest.raises(ValueError, match=f"the result of f h.*{message}"):
            embedding.expect(lambda points, values=values: values)


def test_labels_that_are_missing_are_told(pandas):
    for labels in (pandas.array([None] + ["u", "v"] * 8, dtype="string")[:16], [None] + ["u"] * 15):
        with pytest.raises(ValueError, match="y has missing labels"):
            classifier().fit(X, labels)
    with pytest.raises(ValueError, match="X has missing labels"):
        kb.Delta().gram(np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"))


# ------------------------------------------------------------------------------------------------------- data frames


@pytest.fixture
def pandas():
    return pytest.importorskip("pandas")


@pytest.fixture
def frame(pandas):
    return lambda T, *names: pandas.DataFrame(T, columns=list(names or ("a", "b")))


@pytest.mark.parametrize("call", [call for call in TABLES if "dict" not in call and call not in OF_OBJECTS])
def test_frames_with_other_things_than_numbers_are_refused(call, pandas, frame):
    odd = {
        "dates": (pandas.date_range("2026-01-01", periods=16), "dates or durations"),
        "zone": (pandas.date_range("2026-01-01", periods=16, tz="UTC"), "dates or durations"),
        "durations": (pandas.to_timedelta(np.arange(16), "h"), "dates or durations"),
        "NaT": (pandas.Series([pandas.NaT] * 16, dtype=object), "dates or durations"),
        "categories": (pandas.Categorical(["u", "v"] * 8), "cannot be read as numbers"),
        "periods": (pandas.period_range("2026-01", periods=16, freq="M"), "cannot be read as numbers|argument must be"),
    }
    gaps = call.startswith(("filter", "particles", "infer outputs"))
    if not gaps:  # there a row that is not complete is one that is missing
        odd["NA"] = pandas.array([1] * 7 + [None] * 9, dtype="Int64"), "NaN"
        odd["NA of booleans"] = pandas.array([True] * 7 + [None] * 9, dtype="boolean"), "NaN"
    for values, message in odd.values():
        with pytest.raises((ValueError, TypeError), match=message):
            TABLES[call](frame(X).assign(b=values))


def test_nullable_numbers_without_gaps_are_numbers(frame):
    whole = np.round(3 * X)
    plain = conditional().fit(whole, Y).predict(whole)
    for kind in ("Int64", "Float32"):
        held = frame(whole).astype(kind)
        np.testing.assert_allclose(conditional().fit(held, Y).predict(held), plain)


def test_gaps_of_pandas_are_gaps(pandas, frame):
    gap = X.copy()
    gap[3, 1] = np.nan
    held = frame(gap).assign(b=pandas.array([None if np.isnan(v) else v for v in gap[:, 1]], dtype="Float64"))
    fitted = kb.KernelBayesFilter(**FILTER).fit(frame(X), X)
    np.testing.assert_allclose(fitted.filter(held).mean(), fitted.filter(gap).mean(), rtol=1e-9)
    objects = held.astype(object)
    np.testing.assert_allclose(fitted.filter(objects).mean(), fitted.filter(gap).mean(), rtol=1e-9)


# Calls with frames: the first is learned from, the second is read by it. Each gives numbers.
PAIRS = {
    "mixed kernel": lambda A, B: conditional(kernel=K.on(0) + kb.Delta().on(1)).fit(A, Y).predict(B),
    "rule": lambda A, B: kb.KernelBayesRule("kbr", **SETTLED).fit(A, X).posterior(B).mean(),
    "prior of a rule": lambda A, B: kb.KernelBayesRule("kbr", **SETTLED).fit(X, A).posterior(X[0], B).mean(),
    "ratio": lambda A, B: kb.DensityRatio(K, reg=0.1).fit(X, A).predict(B),
    "numerator": lambda A, B: kb.DensityRatio(K, reg=0.1).fit(B, A).predict(X),
    "filter": lambda A, B: kb.KernelBayesFilter(**FILTER).fit(A, X).filter(B).mean(),
    "sequences": lambda A, B: kb.KernelBayesFilter(**FILTER).fit([A, B], [X, X]).filter(X).mean(),
    "states": lambda A, B: kb.KernelBayesFilter(**FILTER).fit([X, X], [A, B]).filter(X).mean(),
    "initial": lambda A, B: kb.KernelBayesFilter(**FILTER).fit(X, A).filter(X, initial=B).mean(),
    "truth": lambda A, B: kb.KernelBayesFilter(**FILTER).fit(X, A).filter(X).score(B).mse,
    "controls": lambda A, B: kb.KernelBayesFilter(**FILTER, control_kernel=K).fit(X, X, A).filter(X, B).mean(),
    "transitions": lambda A, B: kb.KernelBayesFilter(**FILTER).fit(X, X, transitions=(A, B)).filter(X).mean(),
    "particles": lambda A, B: particle_filter().fit(A, X).filter(B).mean(),
    "initial particles": lambda A, B: particle_filter().fit(X, A).filter(X, initial=B).mean(),
    "gram": lambda A, B: K.gram(A, B),
    "matmul": lambda A, B: K.matmul(A, B, Y),
    "mmd": lambda A, B: kb.mmd(A, B),
    "sets": lambda A, B: kb.SetKernel().gram([A, B]),
    "features": lambda A, B: kb.Exact().fit(K, A).transform(B),
    "embedding": lambda A, B: kb.MeanEmbedding(A, kernel=K)(B),
    "density": lambda A, B: kb.MeanEmbedding(A, kernel=K).density(B),
    "candidates": lambda A, B: kb.MeanEmbedding(A, kernel=K).herd(3, B).points,
    "covariance": lambda A, B: np.abs(kb.Covariance(A, K).eigenfunctions(B, 2)),
    "nodes": lambda A, B: kb.quadrature(K, A, nodes=B).weights,
    "leverage": lambda A, B: kb.integration.SampledSpectrum(K, A).leverage(B, 0.1),
}


@pytest.mark.parametrize("call", PAIRS)
def test_columns_go_by_their_names(call, frame):
    new = frame(X[::-1] * [1.0, 3.0])
    wanted = PAIRS[call](frame(X), new)
    np.testing.assert_allclose(PAIRS[call](frame(X), new[["b", "a"]]), wanted, rtol=1e-10)
    assert not np.allclose(PAIRS[call](frame(X), new[["b", "a"]].to_numpy()), wanted)  # by place it is something else
    with pytest.raises(ValueError, match=r"lacks the columns b and has the unknown columns c; those wanted are a, b"):
        PAIRS[call](frame(X), frame(X, "a", "c"))
    with pytest.raises(ValueError, match="the same name twice"):
        PAIRS[call](frame(X), frame(X, "a", "a"))


LEARNED = {
    "conditional": lambda: conditional(),
    "classifier": classifier,
    "sparse": sparse,
}


@pytest.mark.parametrize("kind", LEARNED)
def test_estimators_refuse_columns_in_another_order(kind, frame):
    """As those of scikit-learn do."""
    model = LEARNED[kind]().fit(frame(X), Y > 0 if kind == "classifier" else Y)
    with pytest.raises(ValueError, match="in the same order"):
        model.predict(frame(X)[["b", "a"]])
    with pytest.raises(ValueError, match="X has the same name twice among a, a"):
        LEARNED[kind]().fit(frame(X, "a", "a"), Y > 0)


def test_embeddings_of_columns_in_another_order_do_not_meet(frame):
    one, other = kb.MeanEmbedding(frame(X), kernel=K), kb.MeanEmbedding(frame(X)[["b", "a"]], kernel=K)
    for call in (lambda: one.distance(other), lambda: one + other, lambda: 2.0 * one - other):
        with pytest.raises(ValueError, match="different columns, or in another order: a, b and b, a"):
            call()
    with pytest.raises(ValueError, match="prior is on the columns b, a where a, b were wanted"):
        conditional().fit(frame(X), Y).push(other)
    assert one.distance(kb.MeanEmbedding(X, kernel=K)) == 0.0


def test_one_row_goes_by_its_names(frame):
    model, row = conditional().fit(frame(X), Y), frame(X).loc[3, ["b", "a"]]
    np.testing.assert_allclose(model.embed(row).weights, model.embed(X[3]).weights, rtol=1e-9)
    rule = kb.KernelBayesRule("kbr", **SETTLED).fit(frame(X), X)
    np.testing.assert_allclose(rule.posterior(row).mean(), rule.posterior(X[3]).mean(), rtol=1e-9)
    fitted = kb.KernelBayesFilter(**FILTER).fit(frame(X), X)
    wanted = fitted.reset().step(X[3]).mean()
    np.testing.assert_allclose(fitted.reset().step(row).mean(), wanted, rtol=1e-9)
    np.testing.assert_allclose(fitted.reset().step(frame(X)[["b", "a"]][3:4]).mean(), wanted, rtol=1e-9)
    np.testing.assert_allclose(PRIOR.density(row), PRIOR.density(X[3]), rtol=1e-9)
    with pytest.raises(ValueError, match="x lacks the names b and has the unknown names c"):
        model.embed(row.rename({"b": "c"}))


def test_numbers_that_count_columns_are_no_names(pandas, frame):
    model = kb.KernelBayesRule("kbr", **SETTLED).fit(frame(X), X)
    np.testing.assert_allclose(model.posterior(pandas.DataFrame(X)).mean(), model.posterior(X).mean(), rtol=1e-9)
    counted = kb.KernelBayesFilter(**FILTER).fit(pandas.DataFrame(X), X)
    np.testing.assert_allclose(counted.filter(pandas.DataFrame(X)[[1, 0]]).mean(), counted.filter(X).mean(), rtol=1e-9)
    np.testing.assert_allclose(counted.filter(frame(X)).mean(), counted.filter(X).mean(), rtol=1e-9)


def inferred(**given):
    settings = dict(prior=PRIOR, method=kb.lfi.Rejection(epsilon=2.0), random_state=0)
    return kb.infer(**{**settings, "parameters": X, "observed": [0.3, -0.5], **given})


def test_infer_reads_frames_by_name(pandas, frame):
    """The second parameter has three times the spread of the first, and so have the outputs."""
    theta, x = X * [1.0, 3.0], X * [1.0, 3.0]
    named = frame(x, "s", "t")
    wanted = inferred(parameters=theta, outputs=x)
    observed = {"s": 0.3, "t": -0.5}
    rows = [observed, dict(reversed(observed.items())), pandas.Series(observed)[["t", "s"]]]
    rows += [pandas.DataFrame([observed])[["t", "s"]], [0.3, -0.5]]
    for row in rows:
        found = inferred(parameters=frame(theta)[["b", "a"]], outputs=named, observed=row)
        np.testing.assert_allclose(found.mean(), wanted.mean(), rtol=1e-9)
        assert found.statistics == ("s", "t")
    turned = inferred(parameters={"b": theta[:, 1], "a": theta[:, 0]}, outputs=named[["t", "s"]], observed=observed)
    np.testing.assert_allclose(turned.mean(), wanted.mean(), rtol=1e-9)
    np.testing.assert_allclose(turned.density(frame(theta)[["b", "a"]]), wanted.density(theta), rtol=1e-9)
    for given, message in (
        (dict(parameters=frame(theta, "a", "c")), "parameters lacks the columns b and has the unknown columns c"),
        (dict(parameters={"a": Y, "c": Y}), "parameters lacks the names b and has the unknown names c"),
        (dict(observed=pandas.Series({"s": 1.0, "u": 2.0})), "observed lacks .'t'."),
        (dict(observed=pandas.DataFrame([{"s": 1.0, "t": 2.0, "u": 3.0}])), "observed has .'u'."),
        (dict(outputs=frame(x, "s", "s")), "outputs has the same name twice"),
        (dict(outputs={"s": Y, "t": Y[1:]}), r"outputs\['t'\] has 15"),
    ):
        with pytest.raises(ValueError, match=message):
            inferred(**{"outputs": named, "observed": observed, **given})


def test_predictive_checks_compare_by_name(frame):
    found = inferred(outputs=frame(X, "s", "t"))
    checked = found.predictive(8, simulator=lambda a, b: {"t": 100.0 + b, "s": a}, random_state=0)
    assert checked.outputs[:, 1].min() > 50.0
    with pytest.raises(ValueError, match="simulator returns u, t where the posterior was learned from s, t"):
        found.predictive(8, simulator=lambda a, b: {"u": a, "t": b}, random_state=0)


def test_simulate_reads_frames_by_name(pandas, frame):
    turned = frame(X)[["b", "a"]]

    def by_name(a, b):
        return a - 10.0 * b

    def by_place(theta):
        return theta[0] - 10.0 * theta[1]

    wanted = X[:, 0] - 10.0 * X[:, 1]
    for given in (dict(), dict(names=["a", "b"])):
        np.testing.assert_allclose(kb.simulate(by_name, turned, **given).outputs, wanted, rtol=1e-9)
    runs = kb.simulate(by_place, turned)  # an array has the columns as they stand
    np.testing.assert_allclose(runs.outputs, X[:, 1] - 10.0 * X[:, 0], rtol=1e-9)
    assert runs.names == ("b", "a")
    np.testing.assert_allclose(
        kb.simulate(by_place, turned, names=["a", "b"], pass_dict=False).outputs, wanted, rtol=1e-9
    )
    design = kb.simulate(by_name, lambda start, stop: turned[start:stop], budget=4)
    np.testing.assert_allclose(design.outputs, wanted[:4], rtol=1e-9)
    with pytest.raises(ValueError, match="parameters lacks the columns c and has the unknown columns b"):
        kb.simulate(by_name, turned, names=["a", "c"])


def test_what_a_simulator_returns_goes_by_name(pandas):
    def rows(theta):
        row = pandas.Series({"s": theta[0], "t": theta[1]})
        return row if theta[0] > 0 else row[["t", "s"]]

    runs = kb.simulate(rows, X)
    np.testing.assert_allclose(runs.outputs[:, list(runs.statistics).index("s")], X[:, 0], rtol=1e-9)
    table = kb.simulate(lambda T: pandas.DataFrame({"t": T[:, 1], "s": T[:, 0]}), X, vectorised=True)
    assert table.statistics == ("t", "s")
    np.testing.assert_allclose(table.outputs, X[:, ::-1], rtol=1e-9)


def test_names_of_an_integral_are_those_of_its_distribution(frame):
    with pytest.raises(ValueError, match=r"names are .* where distribution has the names b, a"):
        kb.integrate(lambda a, b: a, frame(X)[["b", "a"]], 4, kernel=K, learn=False, names=["a", "b"])


def test_names_outlive_saving(tmp_path, frame):
    fitted = kb.KernelBayesRule("kbr", **SETTLED).fit(frame(X), frame(X, "c", "d"))
    kb.save(fitted, tmp_path / "rule.npz")
    again, turned = kb.load(tmp_path / "rule.npz"), frame(X)[["b", "a"]]
    np.testing.assert_allclose(again.posterior(turned).mean(), fitted.posterior(X).mean(), rtol=1e-9)
    features = kb.Exact().fit(K, frame(X))
    kb.save(features, tmp_path / "features.npz")
    np.testing.assert_allclose(kb.load(tmp_path / "features.npz").transform(turned), features.transform(X), rtol=1e-9)

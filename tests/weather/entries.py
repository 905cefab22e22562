"""The public calls that are swept over: each a small function, whose arguments have climates for defaults."""

# ruff: noqa: B008 (the default of an argument is its climate)
from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import equinox as eqx
import matplotlib.pyplot as pyplot
import numpy as np
from climates import (
    COUNT,
    DISTRIBUTION,
    DISTRIBUTIONS,
    FLAG,
    FLAT,
    FUNCTION,
    FUNCTIONS,
    GAPPY,
    KERNEL,
    KERNELS,
    LABELS,
    MEDIATOR,
    NUMBER,
    OBJECTS,
    ODD_DISTRIBUTIONS,
    ODD_FUNCTIONS,
    ODD_KERNELS,
    OF_TWO,
    POINTS,
    RECIPE,
    SEED,
    SHARE,
    SINGLE,
    UNIT,
    Climate,
    Points,
    pandas,
    raises,
    rng_of,
    words,
)
from scipy import stats

import kernelbayes as kb

WIDE = rng_of("good").normal(size=(12, 4))
GOOD = WIDE[:, :2]
K = kb.Gaussian(1.0)
LIKE_X, LIKE_POINTS, LIKE_STATES = Points(like="X"), Points(like="points"), Points(like="states")
PARAMETERS = Points(width=2, names=("a", "b"))
LABELS_AS_NUMBERS, LIKE_LOCATIONS = Points(width=2), Points(width=2, like="locations")
ONE_LIKE_X = Points(tall=1, like="X")
TRUTH = Points(width=2, names=("s", "t"), gaps=True)
ENTRIES = {}


def entry(call):
    """Add a call to the table. What stands before two underscores in an argument is its name in the library."""
    ENTRIES[call.__name__] = call
    return call


def shares(weights):
    """Positive weights that sum to one in each row; foul ones that are no such table as they are."""
    if (
        not isinstance(weights, np.ndarray)
        or weights.dtype != float
        or not weights.size
        or not np.isfinite(weights).all()
    ):
        return weights
    with np.errstate(all="ignore"):
        return np.abs(weights) / np.abs(weights).sum(-1, keepdims=True)


def decoded(embedding):
    return embedding.mean(), embedding.std(), embedding.interval(0.9), embedding.ess()


@entry
def gaussian(X=POINTS, Y=LIKE_X, lengthscale=NUMBER):
    kernel = kb.Gaussian(lengthscale)
    return kernel.gram(X, Y), kernel.diag(X), kernel.gram(X)


@entry
def laplace(X=POINTS, Y=LIKE_X, lengthscale=NUMBER):
    return kb.Laplace(lengthscale).gram(X, Y)


@entry
def matern(X=POINTS, Y=LIKE_X, lengthscale=NUMBER, nu=Climate({"3/2": 1.5, "5/2": 2.5}, SINGLE)):
    return kb.Matern(nu, lengthscale).gram(X, Y)


@entry
def rational_quadratic(X=POINTS, lengthscale=NUMBER, alpha=NUMBER):
    return kb.RationalQuadratic(lengthscale, alpha).gram(X)


@entry
def linear(X=POINTS, Y=LIKE_X, offset=NUMBER):
    return kb.Linear(offset).gram(X, Y), kb.Linear(offset).diag(X)


@entry
def polynomial(X=POINTS, degree=COUNT, offset=NUMBER, scale=NUMBER):
    return kb.Polynomial(degree, offset, scale).gram(X)


@entry
def infinite_polynomial(X=UNIT, alpha=NUMBER):
    return kb.InfinitePolynomial(alpha).gram(0.5 * X if isinstance(X, np.ndarray) and X.dtype == float else X)


@entry
def brownian(X=UNIT, Y=Points(low=0.0, like="X"), hurst=SHARE):
    return kb.Brownian(hurst).gram(X, Y), kb.Brownian(hurst).diag(X)


@entry
def periodic(X=UNIT, order=COUNT):
    return kb.PeriodicSobolev(order).gram(X)


@entry
def delta(X=LABELS, Y=LABELS):
    return kb.Delta().gram(X, Y)


@entry
def histogram(X=UNIT, Y=Points(low=0.0, like="X")):
    return kb.HistogramIntersection().gram(X, Y)


@entry
def pyramid(X=Points(width=4, low=0.0), levels=Climate({"1": 1, "0": 0}, SINGLE)):
    return kb.SpatialPyramid(levels).gram(X)


@entry
def precomputed(matrix=Points(width=12), X=Points(width=0, whole=True)):
    matrix = matrix @ matrix.T if type(matrix) is np.ndarray and matrix.dtype == float and matrix.ndim == 2 else matrix
    return kb.PrecomputedKernel(matrix).gram(X)


@entry
def function_kernel(function=Climate({"equal": lambda a, b: float(np.all(a == b))}, OF_TWO, but=("class",)), X=OBJECTS):
    return kb.FunctionKernel(function).gram(X)


@entry
def mapped(
    map=Climate({"tanh": np.tanh}, ODD_FUNCTIONS | {"raises": raises}, but=("class", "a kernel")),
    kernel=KERNEL,
    X=POINTS,
):
    return kb.MappedKernel(map, kernel).gram(X)


@entry
def sets(X=POINTS, X__second=LIKE_X, base=KERNEL, lengthscale=NUMBER):
    pair = [P for P in (X, X__second) if not hasattr(P, "__next__")]
    return kb.SetKernel(base, lengthscale).gram(pair)


@entry
def kernel_algebra(X=POINTS, scale=NUMBER, column=Climate({"first": 0, "second": 1}, SINGLE), kernel=KERNEL):
    return (scale * K + kernel * K.on(column)).gram(X)


@entry
def matmul(X=POINTS, Y=LIKE_X, V=POINTS, kernel=KERNEL):
    return (kernel if isinstance(kernel, kb.Kernel) else K).matmul(X, Y, V)


@entry
def median_lengthscale(X=POINTS, per_column=FLAG):
    return kb.median_lengthscale(X, per_column=per_column)


@entry
def exact(X=POINTS, X__new=LIKE_X, kernel=KERNEL, tol=NUMBER):
    return kb.Exact(tol).fit(kernel, X).transform(X__new)


@entry
def cholesky(X=POINTS, X__new=LIKE_X, kernel=KERNEL, rank=COUNT, tol=NUMBER):
    return kb.IncompleteCholesky(rank, tol).fit(kernel, X).transform(X__new)


@entry
def subspace(
    X=POINTS,
    kernel=KERNEL,
    size=COUNT,
    method=words("random", "kmeans", "herding", "leverage"),
    whiten=FLAG,
    tol=NUMBER,
    random_state=SEED,
):
    return kb.Subspace(size, method, whiten, tol).fit(kernel, X, random_state=random_state).transform(X)


@entry
def fourier(X=POINTS, kernel=KERNEL, size=Climate({"6": 6, "4": 4}, SINGLE), random_state=SEED):
    return kb.RandomFourier(size).fit(kernel, X, random_state=random_state).transform(X)


@entry
def one_hot(X=LABELS, kernel=Climate({"Delta": kb.Delta()}, KERNELS | ODD_KERNELS)):
    return kb.OneHot().fit(kernel, X).transform(X)


@entry
def network_of(inputs=COUNT, outputs=COUNT, widths=Climate({"(4,)": (4,), "none ": ()}, SINGLE), random_state=SEED):
    network = kb.MLP(inputs, outputs, widths, random_state=random_state)
    return np.asarray(network(np.ones(inputs, dtype=np.float32)))


@entry
def embedding(points=POINTS, weights=FLAT, kernel=KERNEL, level=SHARE, q=SHARE):
    found = kb.MeanEmbedding(points, weights, kernel)
    return found.mean(), found.cov(), found.std(), found.interval(level), found.quantile(q), found.norm(), found.ess()


@entry
def default_embedding(points=POINTS, X=LIKE_POINTS, X__grid=LIKE_POINTS, bandwidth=NUMBER):
    found = kb.MeanEmbedding(points)
    return found(X), found.density(X__grid), found.density(X__grid, bandwidth), found.norm()


@entry
def density(points=POINTS, weights=FLAT, X=LIKE_POINTS):
    return kb.MeanEmbedding(points, weights).density(X)


@entry
def box(points=POINTS, lower=Climate({"-1": -1.0, "below": None}, SINGLE), upper=NUMBER, x=NUMBER):
    found = kb.MeanEmbedding(points, kernel=K)
    return found.prob(lower, upper), found.prob(upper=upper), found.cdf(x)


@entry
def moments(points=POINTS, order=COUNT, central=FLAG):
    return kb.MeanEmbedding(points, kernel=K).moment(order, central)


@entry
def modes(
    points=POINTS, weights=FLAT, kernel=KERNEL, method=words("weight", "density", "fixed-point"), bandwidth=NUMBER
):
    found = kb.MeanEmbedding(points, weights, kernel)
    return found.mode(), found.mode(method, bandwidth), found.preimage()


@entry
def herding(points=POINTS, weights=FLAT, kernel=KERNEL, n=COUNT, candidates=LIKE_POINTS, refine=COUNT, repeat=FLAG):
    found = kb.MeanEmbedding(points, np.abs(weights) if isinstance(weights, np.ndarray) else weights, kernel)
    return found.herd(n, candidates, refine=refine, repeat=repeat).points


@entry
def moved(points=POINTS, n=COUNT, random_state=SEED):
    return kb.MeanEmbedding(points, kernel=K).herd(n, continuous=True, random_state=random_state).points


@entry
def sampled(points=POINTS, weights=FLAT, n=COUNT, components=COUNT, random_state=SEED):
    found = kb.MeanEmbedding(points, weights, K)
    mixture = kb.MeanEmbedding(points, kernel=K).mixture(components, random_state)
    return found.sample(n, random_state), mixture.mean(), mixture.covariance()


@entry
def resampled(points=POINTS, weights=FLAT, n=COUNT, distinct=Climate({"2": 2}, SINGLE), always=FLAG):
    return kb.resample(kb.MeanEmbedding(points, weights, K), n, distinct=distinct, always=always).points


@entry
def subset(X=POINTS, Y=FLAT, n=COUNT, kernel=KERNEL, refine=COUNT):
    return kb.herd_subset(X, Y, n, kernel=kernel, refine=refine), kb.herd_subset(X, Y, n)


@entry
def embedding_algebra(points=POINTS, points__other=LIKE_POINTS, kernel=KERNEL, factor=NUMBER, f=FUNCTION):
    a, b = kb.MeanEmbedding(points, kernel=kernel), kb.MeanEmbedding(points__other, kernel=kernel)
    both = factor * a - b
    return a.inner(b), a.distance(b), both.norm(), a.expect(f), (a + b).normalise().weights


@entry
def analytic(
    distribution=DISTRIBUTION,
    kernel=Climate({"Gaussian": K, "rough": kb.Laplace(0.7)}, KERNELS | ODD_KERNELS),
    level=SHARE,
):
    found = kb.AnalyticEmbedding(distribution, kernel)
    return (
        found.mean(),
        found.norm(),
        found.interval(level),
        found(found.sample(3, 0)),
        found.herd(3, random_state=0).points,
    )


@entry
def embedded(distribution=DISTRIBUTION, kernel=KERNEL, n=COUNT, random_state=SEED):
    found = kb.embed(distribution, kernel, n=n, random_state=random_state)
    return found.norm(), found.mean()


@entry
def mixed(
    components=Climate({"two": [stats.norm(), stats.norm(2.0)]}, DISTRIBUTIONS | ODD_DISTRIBUTIONS),
    weights=Points(width=0, tall=2),
    X=Points(width=1),
):
    found = kb.Mixture(components, shares(weights))
    return found.mean(), found.covariance(), found.density(X), found.sample(3, 0)


@entry
def mmd(X=POINTS, Y=LIKE_X, kernel=Climate(KERNELS, ODD_KERNELS), unbiased=FLAG):
    return kb.mmd(X, Y, kernel, unbiased=unbiased), kb.mmd(X, Y)


@entry
def mmd_test(X=POINTS, Y=LIKE_X, permutations=COUNT, random_state=SEED):
    found = kb.mmd_test(X, Y, permutations=permutations, random_state=random_state)
    return found.statistic, found.pvalue, found.null


@entry
def hsic(X=POINTS, Y=FLAT, kernel_x=KERNEL, kernel_y=KERNEL):
    return kb.hsic(X, Y, kernel_x, kernel_y), kb.hsic(X, Y)


@entry
def hsic_test(X=POINTS, Y=POINTS, permutations=COUNT, random_state=SEED):
    found = kb.hsic_test(X, Y, permutations=permutations, random_state=random_state)
    return found.statistic, found.pvalue, found.null


@entry
def covariance(X=POINTS, X__new=LIKE_X, kernel=KERNEL, weights=FLAT, centred=FLAG, features=RECIPE, count=COUNT):
    found = kb.Covariance(X, kernel, weights=weights, centred=centred, features=features)
    return found.norm(), found.eigenvalues(count), found.eigenfunctions(X__new, count)


def first(f):
    """The first column of what a function returns, if it is one that returns a table."""
    return (lambda X: f(X)[:, 0]) if f is FUNCTIONS["table"] else f


@entry
def cross_covariance(X=POINTS, Y=POINTS, kernel_x=KERNEL, kernel_y=KERNEL, coefficients=FLAT, f=FUNCTION, g=FUNCTION):
    found = kb.CrossCovariance(X, Y, kernel_x, kernel_y, coefficients=coefficients)
    return found.norm(), found.singular_values(), found.expect(first(f), first(g)), found.apply(first(g)).weights


@entry
def conditional(X=POINTS, Y=FLAT, X__new=LIKE_X, kernel=KERNEL, reg=NUMBER, features=RECIPE, level=SHARE):
    model = kb.ConditionalEmbedding(kernel, None, features, reg, random_state=0).fit(X, Y)
    return (
        model.predict(X__new),
        model.interval(X__new, level),
        model.weights(X__new),
        *decoded(model.embed(X__new[:1])),
    )


@entry
def conditional_of_table(X=POINTS, Y=POINTS, f=FUNCTION, intercept=FLAG, random_state=SEED):
    model = kb.ConditionalEmbedding(K, reg=0.1, intercept=intercept, random_state=random_state).fit(X, Y)
    return (
        model.predict(X),
        model.expect(f, X),
        model.push(kb.MeanEmbedding(WIDE[:, : model.X_.shape[1]], kernel=K)).weights,
    )


@entry
def conditional_chosen(X=POINTS, Y=FLAT, X__new=LIKE_X, learn=words("loo", "validation"), ard=FLAG):
    model = kb.ConditionalEmbedding(learn=learn, ard=ard, random_state=0).fit(X, Y)
    return model.predict(X__new), model.reg_, model.kernel_.lengthscale


@entry
def density_ratio(
    numerator=Points(like="denominator"),
    denominator=POINTS,
    X=Points(like="denominator"),
    kernel=KERNEL,
    reg=NUMBER,
    alpha=SHARE,
):
    model = kb.DensityRatio(kernel, None, reg, alpha, random_state=0).fit(numerator, denominator)
    return model.predict(X), model.weights_, model.divergence()


@entry
def density_ratio_chosen(
    numerator=Points(like="denominator"), denominator=POINTS, X=Points(like="denominator"), random_state=SEED
):
    model = kb.DensityRatio(random_state=random_state).fit(numerator, denominator)
    return model.predict(X), model.weights_, model.divergence()


RULES = words("iw", "kbr", "kbr-a2", "kbr-b1", "subspace")


@entry
def bayes(
    X=POINTS, Z=POINTS, observed=LIKE_X, prior=Points(like="Z"), rule=RULES, kernel=KERNEL, reg=NUMBER, prior_reg=NUMBER
):
    model = kb.KernelBayesRule(rule, kernel, K, reg=reg, prior_reg=prior_reg, random_state=0).fit(X, Z)
    found = model.posterior(observed, prior)
    return found.mean(), found.interval(0.9)


@entry
def bayes_one(X=FLAT, Z=FLAT, observed=NUMBER, alpha=SHARE, normalise=words("prior", "divide")):
    model = kb.KernelBayesRule("iw", K, K, reg=0.1, prior_reg=0.1, alpha=alpha, normalise=normalise)
    found = model.fit(X, Z).posterior(observed, stats.norm())
    return found.mean(), found.std(), found.interval(0.9)


@entry
def bayes_chosen(x=POINTS, z=FLAT, observed=Points(like="x"), prior=Climate(DISTRIBUTIONS, ODD_DISTRIBUTIONS)):
    found = kb.bayes_rule(prior, x, z, observed, random_state=0)
    return found.mean(), found.interval(0.9)


@entry
def bayes_filter(
    observations=GAPPY,
    states=GAPPY,
    observations__new=Points(like="observations", gaps=True),
    truth=Points(like="states", gaps=True),
    kernel=KERNEL,
    reg=NUMBER,
    prior_reg=NUMBER,
    level=SHARE,
):
    model = kb.KernelBayesFilter(
        kernel=kernel, latent_kernel=K, reg=reg, prior_reg=prior_reg, transition_reg=0.1, tune=0, random_state=0
    ).fit(observations, states)
    track = model.filter(observations__new)
    smoothed = model.smooth(observations__new)
    return track.mean(), track.interval(level), track.weights, track.score(truth, level).mse, smoothed.mean()


@entry
def bayes_filter_controlled(controls=GAPPY, controls__new=Points(like="controls"), initial=LIKE_STATES, states=GAPPY):
    model = kb.KernelBayesFilter(
        kernel=K, latent_kernel=K, control_kernel=K, reg=0.1, prior_reg=0.1, transition_reg=0.1, tune=0, random_state=0
    ).fit(GOOD, states, controls)
    track = model.filter(GOOD[: len(controls__new)], controls__new, initial=initial)
    one = controls__new.iloc[0] if hasattr(controls__new, "iloc") else controls__new[0]
    return track.mean(), model.step(GOOD[0], one).mean(), model.predict(1, controls__new[:1], start=initial).mean()


@entry
def bayes_filter_chosen(
    observations=Points(width=0, gaps=True),
    states=GAPPY,
    controls=Points(width=0, gaps=True),
    steps=COUNT,
    tune=Climate({"0": 0}, {"nan": np.nan, "-1": -1, "text": "2"}),
):
    model = kb.KernelBayesFilter(tune=tune, random_state=0).fit(observations, states, controls)
    return model.filter(observations, controls).mean(), model.predict(steps, controls[:steps]).mean()


@entry
def stepwise(
    observation=Points(width=2, tall=1, gaps=True, names=("a", "b")),
    initial=Points(width=2, names=("s", "t")),
    times=Points(width=0, dates=True, gaps=True),
):
    model = kb.KernelBayesFilter(
        kernel=K, latent_kernel=K, reg=0.1, prior_reg=0.1, transition_reg=0.1, tune=0, random_state=0
    ).fit(framed(GOOD, "a", "b"), framed(GOOD, "s", "t"))
    one = observation[0] if isinstance(observation, (np.ndarray, list, tuple)) and len(observation) else observation
    one = one.iloc[0] if hasattr(one, "iloc") and one.ndim == 2 else one
    sortable = isinstance(times, np.ndarray) and times.ndim == 1 and times.dtype != object
    rows = np.sort(times) if sortable else times
    return model.reset(initial).step(one).mean(), model.filter(GOOD[: np.size(times)], times=rows).mean()


def framed(X, *names):
    """A data frame, where there are any."""
    return X if pandas is None else pandas.DataFrame(X, columns=list(names))


def drift(rng, states):
    return 0.9 * states + 0.1 * rng.normal(size=np.shape(states))


@entry
def monte_carlo_filter(
    observations=GAPPY,
    states=GAPPY,
    observations__new=Points(like="observations", gaps=True),
    initial=LIKE_STATES,
    transition=Climate({"drift": drift}, OF_TWO),
    particles=COUNT,
    herded=COUNT,
    reg=NUMBER,
):
    model = kb.KernelMonteCarloFilter(
        transition,
        kernel=K,
        latent_kernel=K,
        reg=reg,
        prior_reg=0.1,
        particles=particles,
        herded=herded,
        tune=0,
        random_state=0,
    )
    return model.fit(observations, states).filter(observations__new, initial=initial).mean()


@entry
def track(points=Points(width=2), weights=Points(width=12), level=SHARE, truth=TRUTH, q=SHARE, n=COUNT, times=OBJECTS):
    found = kb.Track(points, shares(weights), K, times=times, names=("s", "t"))
    score = found.score(truth, level)
    return (
        found.mean(),
        found.cov(),
        found.interval(level),
        found.quantile(q),
        found.sample(n, 0),
        score.mse,
        score.crps,
    )


@entry
def prior(theta=PARAMETERS, z=PARAMETERS, n=COUNT, kind=words("halton", "sobol", "random"), random_state=SEED):
    found = kb.Prior(a=stats.norm(), b=(-10.0, 10.0))
    inside = found.contains(theta)
    found.log_density(theta[:1])
    return (
        found.density(theta),
        found.to_gaussian(theta),
        found.from_gaussian(z),
        found.design(n, kind),
        found.sample(n, random_state),
        inside,
    )


@entry
def prior_of(
    a=DISTRIBUTION,
    b=Climate(
        {"bounds": (0.0, 1.0)},
        SINGLE
        | ODD_DISTRIBUTIONS
        | {"empty": (1.0, 1.0), "falling": (1, 0), "infinite": (0, np.inf), "far": (-1e300, 1e300), "NaN": (0, np.nan)},
    ),
):
    found = kb.Prior(a=a, b=b)
    theta = found.sample(3, 0)
    return theta, found.log_density(theta), found.to_gaussian(theta), found.from_gaussian(found.to_gaussian(theta))


PRIOR = kb.Prior(a=stats.norm(0, 3), b=stats.norm(0, 3))


@entry
def infer(
    parameters=PARAMETERS,
    outputs=Points(width=0, gaps=True),
    observed=NUMBER,
    method=words("kelfi", "dme", "kbr", "k-abc", "rejection"),
    epsilon=NUMBER,
    random_state=SEED,
):
    settings = {
        "kelfi": dict(learn=None, epsilon=epsilon, lengthscale=1.0, reg=0.01),
        "rejection": dict(epsilon=epsilon),
    }
    settings["dme"] = settings["kelfi"]
    extra = settings.get(method, {}) if isinstance(method, str) else {}
    method = kb.lfi.METHODS[method](**extra) if extra else method
    found = kb.infer(
        prior=PRIOR,
        observed=observed,
        method=method,
        parameters=parameters,
        outputs=outputs,
        random_state=random_state,
    )
    return found.mean(), found.std(), found.interval(0.9), found.sample(5, 0), found.density([[0.0, 0.0]])


ONE = {"s": 0.3, "t": -0.2}
ROWS = {"named": ONE, "named in another order": dict(reversed(ONE.items()))}
ODD_ROWS = {
    "lacks one": {"s": 0.3},
    "other names": {"u": 0.3, "v": 0.2},
    "masked": np.ma.masked_array([1.0, 2.0], [1, 0]),
}
ODD_ROWS |= {
    "masked in a dict": {"s": np.ma.masked, "t": 1.0},
    "date in a dict": {"s": np.datetime64("2026"), "t": 1.0},
}
if pandas is not None:
    ROWS |= {"series": pandas.Series(ONE), "series in another order": pandas.Series(ONE)[["t", "s"]]}
    ROWS |= {"one row": pandas.DataFrame([ONE]), "one row in another order": pandas.DataFrame([ONE])[["t", "s"]]}


@entry
def infer_by_name(
    parameters=PARAMETERS,
    outputs=Points(width=2, names=("s", "t"), gaps=True),
    observed=Climate(ROWS, ODD_ROWS),
    theta=PARAMETERS,
):
    found = kb.infer(
        prior=PRIOR,
        observed=observed,
        method=kb.lfi.Rejection(epsilon=2.0),
        parameters=parameters,
        outputs=outputs,
        statistics=None if isinstance(outputs, dict) or hasattr(outputs, "columns") else ("s", "t"),
        random_state=0,
    )
    check = found.predictive(4, simulator=lambda a, b: {"t": b, "s": a}, random_state=0) if names_of(outputs) else None
    tails = {} if check is None else dict(zip(check.statistics, check.tail, strict=True))
    return found.mean(), found.density(theta), tails


def names_of(table):
    return set(getattr(table, "columns", ())) == {"s", "t"}


@entry
def fields(
    observed=Points(width=0), outputs=Points(width=12, gaps=True), locations=LABELS_AS_NUMBERS, simulated=LIKE_LOCATIONS
):
    kernel = kb.lfi.SpatioTemporalEpsilon(locations, simulated, lengthscale=1.0, amplitude=1.0, noise=0.1)
    found = kb.infer(
        prior=PRIOR,
        observed=observed,
        parameters=GOOD[: len(outputs)],
        outputs=outputs,
        method=kb.lfi.Rejection(epsilon=1e3, epsilon_kernel=kernel),
        random_state=0,
    )
    return found.mean()


@entry
def calibrated(parameters=Points(width=2, names=("a", "b")), replicates=Climate({"20": 20}, SINGLE), level=SHARE):
    more = np.concatenate([GOOD, 0.5 * GOOD + 0.1])
    found = kb.infer(
        prior=PRIOR,
        observed=0.2,
        parameters=more,
        outputs=more.sum(1),
        method=kb.lfi.Rejection(epsilon=2.0),
        random_state=0,
    )
    calibration = kb.calibrate(found, replicates)
    return calibration.coverage(level), calibration.coverage_band(level), found.density(parameters), calibration.ranks


@functools.cache
def learned():
    theta = PRIOR.design(60)
    noise = np.random.default_rng(0).normal(size=60)
    return kb.infer(parameters=theta, outputs=theta.sum(1) + noise, prior=PRIOR, observed=0.2, random_state=0)


@entry
def learned_likelihood(theta=PARAMETERS, observed=NUMBER):
    found = learned()
    return np.exp(found.log_prob(theta)), np.exp(found.log_likelihood(theta)), found.at(observed).mean()


OTHER_PRIORS = {"prior": kb.Prior(a=stats.norm(0, 2), b=stats.norm(1, 3)), "dict": {"a": stats.norm(), "b": (-1, 1)}}


@entry
def learned_under(prior=Climate(OTHER_PRIORS, SINGLE), q=SHARE):
    return learned().under(prior).quantile(q)


@entry
def conditional_density(X=POINTS, Y=FLAT, X__new=LIKE_X, Y__new=Points(width=0, like="X")):
    model = kb.ConditionalDensity(random_state=0).fit(X, Y)
    return model.log_density(Y__new, X__new), model.ignorance(X__new), model.residuals(Y__new, X__new)


@entry
def infer_settings(reg=NUMBER, lengthscale=NUMBER, n=COUNT, level=SHARE, q=SHARE):
    found = kb.infer(
        prior=PRIOR,
        observed=0.0,
        parameters=GOOD,
        outputs=GOOD.sum(1),
        method=kb.lfi.KELFI(learn=None, epsilon=0.5, lengthscale=lengthscale, reg=reg),
    )
    return (
        found.mean(),
        found.interval(level),
        found.quantile(q),
        found.sample(n, 0),
        found.herd(n, 0),
        found.density(GOOD),
    )


@entry
def infer_by_running(
    simulations=COUNT, observed=NUMBER, rounds=Climate({"1": 1}, SINGLE), design=words("halton", "sobol", "random")
):
    found = kb.infer(
        lambda a, b: a + b,
        PRIOR,
        observed,
        simulations,
        "rejection",
        rounds=rounds,
        design=design,
        progress=False,
        random_state=0,
    )
    return found.mean(), found.sample(3, 0)


@entry
def simulate(
    simulator=Climate(
        {"sum ": lambda theta: np.sum(theta)},
        {
            "NaN from f": lambda theta: np.nan,
            "None from f": lambda theta: None,
            "raises": raises,
            "text from f": lambda t: "a",
            "masked from f": lambda t: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
            "masked in a dict from f": lambda t: {"a": np.ma.masked, "b": 1.0},
            "dates from f": lambda t: np.datetime64("2026-01-01"),
            "durations from f": lambda t: np.array([np.timedelta64(5, "s"), 1.0], dtype=object),
            "dates in a dict from f": lambda t: {"a": 1.0, "b": np.datetime64("2026-01-01")},
        },
    ),
    parameters=POINTS,
    budget=COUNT,
    max_seconds=NUMBER,
    random_state=SEED,
):
    parameters = GOOD if isinstance(parameters, type) else parameters  # a class may be called, as a design is
    found = kb.simulate(
        simulator,
        parameters,
        budget=budget,
        max_seconds=max_seconds,
        random_state=random_state,
        progress=False,
        pass_dict=False,
    )
    return found.parameters, found.outputs


@entry
def classifier(X=POINTS, y=LABELS, X__new=LIKE_X, kernel=KERNEL, reg=NUMBER, sample_weight=FLAT):
    heavy = (
        np.abs(sample_weight)
        if isinstance(sample_weight, np.ndarray) and sample_weight.dtype == float
        else sample_weight
    )
    model = kb.ConditionalEmbeddingClassifier(kernel, reg=reg, random_state=0).fit(X, y, heavy)
    return model.predict_proba(X__new), model.decision_probabilities(X__new), model.entropy(X__new)


@entry
def classifier_in_chunks(X=POINTS, y=LABELS, X__new=LIKE_X, y__new=LABELS, sample_weight=FLAT):
    heavy = np.abs(sample_weight) if isinstance(sample_weight, np.ndarray) else sample_weight
    model = kb.ConditionalEmbeddingClassifier(K, kb.Subspace(4), reg=0.1, random_state=0)
    model.partial_fit(X, y, [0, 1, 2], heavy).partial_fit(X__new, y__new)
    return model.predict_log_proba(X__new)


@entry
def conditional_on_mixed_columns(X=POINTS, X__new=LIKE_X, Y=FLAT, x=ONE_LIKE_X, q=SHARE):
    kernel = K.on(0) * kb.Delta().on(1) + 0.5 * K.on(0)
    model = kb.ConditionalEmbedding(kernel, reg=0.1, random_state=0).fit(X, Y)
    one = x.iloc[0] if hasattr(x, "iloc") and x.ndim == 2 else x[:1]
    return model.predict(X__new), model.quantile(X__new, q), model.embed(one).weights


@entry
def chained(X=POINTS, Y=FLAT, points=LIKE_X, order=words("second", "third")):
    model = kb.ConditionalEmbedding(K, reg=0.1, random_state=0).fit(X, Y)
    prior = kb.MeanEmbedding(points, kernel=K)
    return model.chain(prior, order).norm(), model.push(prior).weights


@entry
def classifier_chosen(X=POINTS, y=LABELS, multiplier=NUMBER, calibration=words("loo"), class_weight=words("balanced")):
    model = kb.ConditionalEmbeddingClassifier(
        multiplier=multiplier, calibration=calibration, class_weight=class_weight, random_state=0
    ).fit(X, y)
    return model.predict_proba(X), model.reg_


@entry
def classifier_network(
    X=POINTS, y=LABELS, reg=NUMBER, epochs=COUNT, learning_rate=NUMBER, validation=SHARE, batch_size=COUNT
):
    model = kb.ConditionalEmbeddingNetwork(
        reg=reg,
        epochs=epochs,
        learning_rate=learning_rate,
        validation=validation,
        batch_size=batch_size,
        progress=False,
        random_state=0,
    )
    return model.fit(X, y).predict_proba(X)


@entry
def task_gp(
    X=POINTS,
    Y=MEDIATOR,
    Y_task=MEDIATOR,
    z_task=FLAT,
    X__new=LIKE_X,
    kernel=KERNEL,
    noise=NUMBER,
    mediator_noise=NUMBER,
):
    model = kb.TaskTransformedGP(kernel, K, noise=noise, mediator_noise=mediator_noise, learn=None, random_state=0)
    mean, std = model.fit(X, Y, Y_task, z_task).predict(X__new, return_std=True)
    return mean, std, model.sample(X__new, 2, 0), model.left_out(), model.mediation(X__new)


@entry
def task_gp_chosen(X=POINTS, Y=MEDIATOR, Y_task=MEDIATOR, z_task=FLAT, n=COUNT):
    model = kb.TaskTransformedGP(random_state=0).fit(X, Y, Y_task, z_task)
    return model.predict(WIDE[:, : model.X_.shape[1]], return_std=True), model.sample(model.X_, n, 0)


@entry
def deconditional(
    X=POINTS, Y=MEDIATOR, Y_task=MEDIATOR, z_task=FLAT, X__new=LIKE_X, kernel=KERNEL, reg=NUMBER, task_reg=NUMBER
):
    model = kb.DeconditionalEmbedding(kernel, K, reg=reg, task_reg=task_reg, learn=None, random_state=0)
    model = model.fit(X, Y, Y_task, z_task)
    return model.predict(X__new), model.weights(X__new), model.embed(X__new[:1]).mean(), model.mediation(X__new)


@entry
def mediated_by_tables(X=POINTS, Y=Points(dates=True), Y_task=Points(like="Y", dates=True), x=ONE_LIKE_X):
    model = kb.DeconditionalEmbedding(K, K, reg=0.1, task_reg=0.1, learn=None).fit(X, Y, Y_task)
    one = x.iloc[0] if hasattr(x, "iloc") and x.ndim == 2 else x[0]
    return model.embed(one).weights


@entry
def sparse(X=POINTS, y=FLAT, X__new=LIKE_X, points=COUNT, kernel=KERNEL, noise=NUMBER, spread=NUMBER):
    model = kb.SparseRegression(points, kernel, noise, spread=spread, learn=None, random_state=0).fit(X, y)
    return model.predict(X__new, return_std=True), model.sample(X__new, 2, 0)


@entry
def sparse_learned(
    X=POINTS,
    y=FLAT,
    max_iter=COUNT,
    rows=COUNT,
    restarts=Climate({"0": 0}, {"-1": -1, "nan": np.nan, "text": "1"}),
    noise=NUMBER,
):
    model = kb.SparseRegression(2, noise=noise, max_iter=max_iter, rows=rows, restarts=restarts, random_state=0).fit(
        X, y
    )
    return model.predict(X, return_std=True)


@entry
def quadrature(
    kernel=KERNEL,
    distribution=DISTRIBUTION,
    n=COUNT,
    nodes=words("leverage", "random", "greedy", "dpp", "herding", "sobol"),
    weights=words("optimal", "normalised", "uniform"),
    reg=NUMBER,
    f=FUNCTION,
    random_state=SEED,
):
    rule = kb.quadrature(kernel, distribution, n, nodes, weights, reg, random_state=random_state)
    return rule.points, rule.weights, rule.worst_case_error, rule.integrate(f, return_std=True)


@entry
def quadrature_at(distribution=POINTS, nodes=Points(like="distribution"), kernel=KERNEL, reg=NUMBER, f=FLAT):
    f = GOOD[:, 0] if isinstance(f, type) else f  # a class may be called, as a function is
    rule = kb.quadrature(kernel, distribution, nodes=nodes, reg=reg)
    return rule.weights, rule.worst_case_error, rule.integrate(f), rule.scale(f), rule.keep([0]).points


@entry
def integrate(
    f=FUNCTION,
    distribution=DISTRIBUTION,
    n=Climate({"12": 12, "8": 8}, SINGLE),
    kernel=KERNEL,
    tol=Climate({"none": None}, SINGLE),
    level=SHARE,
):
    found = kb.integrate(
        f, distribution, n, kernel=kernel, learn=False, tol=tol, max_n=20 if tol is not None else None, random_state=0
    )
    return found.values, found.interval(level)


@entry
def mercer(
    kernel=Climate({"Gaussian": K}, KERNELS | ODD_KERNELS),
    distribution=Climate({"normal": stats.norm()}, DISTRIBUTIONS | ODD_DISTRIBUTIONS),
    terms=COUNT,
    reg=NUMBER,
    size=NUMBER,
):
    found = kb.mercer(kernel, distribution, terms=terms, random_state=0)
    width = 2 if distribution is DISTRIBUTIONS["of two columns"] else 1
    places = GOOD[:, :width] % 1.0
    return found.integrals(), found.effective_dimension(reg), found.leverage(places, reg), found.regulariser(size)


@entry
def sampled_spectrum(
    kernel=KERNEL, points=POINTS, X=LIKE_POINTS, weights=FLAT, n=COUNT, reg=NUMBER, kind=words("projection")
):
    heavy = np.abs(weights) if isinstance(weights, np.ndarray) and weights.dtype == float else weights
    found = kb.integration.SampledSpectrum(kernel, points, heavy, random_state=0)
    return (
        found.leverage(X, reg),
        found.sample_dpp(n, kind=kind, random_state=0),
        found.sample_leverage(n, reg, random_state=0),
    )


class Bowl(eqx.Module):
    a: float = kb.positive(1.0)
    b: float = kb.nonnegative(0.5)


def bowl(p, x=1.0):
    return (p.a - 2.0) ** 2 + (p.b - x) ** 2


@entry
def minimise(
    objective=Climate(
        {"bowl": bowl},
        {
            "NaN from f": lambda p: p.a * np.nan,
            "text from f": lambda p: "a",
            "table from f": lambda p: p.a * np.ones(3),
            "unbounded below": lambda p: -p.a,
            "no arguments": lambda: 1.0,
        },
    ),
    a=NUMBER,
    b=NUMBER,
    max_iter=COUNT,
    tol=NUMBER,
    restarts=Climate({"0": 0, "1": 1}, {"-1": -1, "nan": np.nan, "text": "1"}),
    random_state=SEED,
):
    class Named(kb.Kernel):  # so that the domains of the parameters are checked
        a: float = kb.positive(1.0)
        b: float = kb.nonnegative(0.5)

        def _gram(self, X, Y):
            return X @ Y.T

        def _diag(self, X):
            return (X * X).sum(1)

    found = kb.minimise(
        objective, Named(a, b), max_iter=max_iter, tol=tol, restarts=restarts, random_state=random_state, warn=False
    )
    return found.value, found.params.a, found.params.b


@entry
def saved(
    points=POINTS,
    weights=FLAT,
    kernel=KERNEL,
    path=Climate({"ok": "model.npz"}, {"a directory": ".", "no directory": "no/such/model.npz", "NUL": "a\0b"}),
):
    where = Path(tempfile.gettempdir()) / path if path == "model.npz" else path
    kb.save(kb.MeanEmbedding(points, weights, kernel), where)
    again = kb.load(where)
    return again.weights, again.norm()


@entry
def loaded(
    path=Climate(
        {"fair": None},
        {
            "empty": b"",
            "text": b"a,b\n1,2\n",
            "zip": b"PK\x05\x06" + 18 * b"\0",
            "truncated": b"PK\x03\x04",
            "npy": b"\x93NUMPY",
        },
    ),
):
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "model.npz"
        kb.save(kb.MeanEmbedding(GOOD, kernel=K), place)
        if isinstance(path, bytes):
            place.write_bytes(path)
        return kb.load(place if path is None or isinstance(path, bytes) else path).weights


@entry
def learned_features(
    X=POINTS, X__new=LIKE_X, Z=POINTS, features=COUNT, reg=NUMBER, epochs=COUNT, learning_rate=NUMBER, validation=SHARE
):
    found = kb.learn_features(
        X,
        Z,
        features=features,
        reg=reg,
        epochs=epochs,
        learning_rate=learning_rate,
        validation=validation,
        progress=False,
        random_state=0,
    )
    return list(found.history.values()), found.fit(found.kernel, X).transform(X__new)


@entry
def plots(X=Points(width=2), X__new=Points(width=2, like="X"), y=LABELS, truth=PARAMETERS, x=Points(width=2, like="X")):
    model = kb.ConditionalEmbeddingClassifier(K, reg=0.1, learn=None).fit(X, y)
    gp = kb.TaskTransformedGP(K, K, noise=0.1, mediator_noise=0.1, learn=None).fit(
        X, GOOD[:, 0], GOOD[:, 0], GOOD[:, 1]
    )
    posterior = kb.infer(
        prior=PRIOR, observed=0.2, parameters=GOOD, outputs=GOOD.sum(1), method=kb.lfi.Rejection(epsilon=2.0)
    )
    track = kb.Track(GOOD, np.full((12, 12), 1 / 12), K, names=("a", "b"))
    model.plot_map(X__new, y, resolution=4)
    model.plot_calibration(X__new, y)
    posterior.plot(truth[:1])
    track.plot(truth)
    figure = gp.plot(x, resolution=4)
    limits = figure.axes[0].get_xlim()
    pyplot.close("all")
    return limits

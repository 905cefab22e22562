"""Regression: through a mediator, and on learned points."""

from __future__ import annotations

import functools
import time

from benchmarks._row import Row, growth, lower, no_larger, ratio, seconds
from benchmarks._timing import best_of

COLUMNS = 8
#: What `TaskTransformedGP` learns from 300 pairs and 100,000 points, rounded: lengthscales, scales, noise.
LEARNED = {"kernel": (0.82, 1.3), "mediator": (0.56, 1.5), "noise": 0.22}
TUNED_ON = 20_000  # rows, by scikit-learn's grid search
LEARNED_FROM, STEPS = 4096, 150  # rows, and steps of Adam, of GPyTorch


# --------------------------------------------------------------------------------------------- through a mediator


def _f(x):
    import numpy as np

    return np.sin(2.0 * x) + 0.15 * x**2


def _mediated(n, m):
    """Pairs x = r(y) + noise, and other pairs z = f(r(y) + noise) + noise: Hsu (2019), section 5.9.1, our r and f."""
    import numpy as np

    rng = np.random.default_rng(0)

    def pairs(count):
        y = rng.uniform(-6.0, 6.0, count)
        return 2.5 * np.sin(0.9 * y) + 0.25 * y + 0.25 * rng.normal(size=count), y

    (x, y), (x_task, y_task) = pairs(n), pairs(m)
    return x[:, None], y[:, None], y_task[:, None], _f(x_task) + 0.25 * rng.normal(size=m)


def _grid():
    import numpy as np

    return np.linspace(-2.5, 2.5, 200)[:, None]


def _error(mean):
    """Root mean squared error of f over the central range of x."""
    import numpy as np

    return float(np.sqrt(np.mean((mean - _f(_grid()[:, 0])) ** 2)))


def mediator_ours(n, m):
    import kernelbayes as kb

    given = _mediated(n, m)
    model = kb.TaskTransformedGP(random_state=0)
    times, _ = best_of(lambda: model.fit(*given), 2)
    mean, sd = model.predict(_grid(), return_std=True)
    inside = (abs(mean - _f(_grid()[:, 0])) <= 1.96 * sd).mean()
    fixed = kb.TaskTransformedGP(model.kernel_, model.mediator_kernel_, noise=model.noise_, learn=None, random_state=0)

    def fit(rows):
        return best_of(lambda: fixed.fit(*given[:2], given[2][:rows], given[3][:rows]), 3)[0]["seconds"]

    return {
        **times,
        "quality": {"error": _error(mean), "share of f in the 95 % band": float(inside)},
        "growth": [(rows, fit(rows)) for rows in (m // 4, m // 2, m)],
        "note": "the times by size are with what was learned given",
    }


def _given_kernels():
    import kernelbayes as kb

    return [scale * kb.Gaussian(length) for length, scale in (LEARNED["kernel"], LEARNED["mediator"])]


def mediator_fixed(n, m, covariance):
    """Kernels and noise given: fit, then mean and standard deviation at 200 points."""
    import kernelbayes as kb

    given = _mediated(n, m)
    model = kb.TaskTransformedGP(
        *_given_kernels(), noise=LEARNED["noise"], covariance=covariance, learn=None, random_state=0
    )
    times, (mean, sd) = best_of(lambda: model.fit(*given).predict(_grid(), return_std=True), 4)
    return _answered(times, mean, sd, model.log_marginal_likelihood_)


def _answered(times, mean, sd, evidence):
    quality = {"error": _error(mean), "mean sd": float(sd.mean()), "log marginal likelihood": float(evidence)}
    return {**times, "quality": quality}


def _gram(A, B, length, scale):
    import numpy as np

    return scale * np.exp(-(np.subtract.outer(A[:, 0], B[:, 0]) ** 2) / (2.0 * length**2))


def _dense(n, m, formula):
    """A formula of Hsu (2019), theorem 5.7, as it is printed, in NumPy and SciPy: the same answers at 200 points."""
    import numpy as np

    X, Y, Y_task, z = _mediated(n, m)
    offset, unit = z.mean(), z.std()

    def run():
        K, L, cross = (
            _gram(X, X, *LEARNED["kernel"]),
            _gram(Y, Y, *LEARNED["mediator"]),
            _gram(Y, Y_task, *LEARNED["mediator"]),
        )
        mean, variance, evidence = formula(
            K, L, cross, Y_task, _gram(X, _grid(), *LEARNED["kernel"]), (z - offset) / unit
        )
        return offset + unit * mean, unit * np.sqrt(variance), evidence

    times, answers = best_of(run, 3)
    return _answered(times, *answers)


def _alternative(K, L, cross, Y_task, new, z):
    """(4), g at its most probable: matrices of n x n, after A, which is n x m."""
    import numpy as np

    n, m, noise = len(K), len(z), LEARNED["noise"]
    A = np.linalg.solve(L + noise * np.eye(n), cross)
    inner = K @ (A @ A.T) + noise * np.eye(n)
    right = A @ z
    weights = np.linalg.solve(inner.T, right)
    variance = LEARNED["kernel"][1] - (new * (A @ A.T @ np.linalg.solve(inner, new))).sum(0)
    fit = (z @ z - right @ np.linalg.solve(inner, K @ right)) / noise
    volume = np.linalg.slogdet(inner)[1] + (m - n) * np.log(noise) + m * np.log(2.0 * np.pi)
    return new.T @ weights, variance, -0.5 * (fit + volume)


def _covariance(K, L, cross, Y_task, new, z):
    """(3), with what is not known about g: the m x m covariance of the targets."""
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve

    n, m, noise = len(K), len(z), LEARNED["noise"]
    A = cho_solve(cho_factor(L + noise * np.eye(n), lower=True), cross)
    unknown = _gram(Y_task, Y_task, *LEARNED["mediator"]) + noise * np.eye(m) - cross.T @ A
    factor = cho_factor(A.T @ K @ A + unknown, lower=True)
    seen = A.T @ new
    weights = cho_solve(factor, z)
    variance = LEARNED["kernel"][1] - (seen * cho_solve(factor, seen)).sum(0)
    volume = 2.0 * np.log(np.diag(factor[0])).sum() + m * np.log(2.0 * np.pi)
    return seen.T @ weights, variance, -0.5 * (z @ weights + volume)


def mediator_dense(n, m):
    return _dense(n, m, _alternative)


def deconditional_dense(n, m):
    return _dense(n, m, _covariance)


# ----------------------------------------------------------------------------------------------- on learned points


def _rows(n, seed=0):
    """Eight columns, of which five matter, not all alike, and a smooth function of them with noise of 0.3."""
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS))
    f = (
        np.sin(1.5 * X[:, 0] + 0.5 * X[:, 1])
        + 0.5 * X[:, 1] * X[:, 2]
        + np.exp(-((X[:, 3] - 0.5) ** 2))
        + 0.3 * X[:, 4]
    )
    return X, f + 0.3 * rng.normal(size=n), f


def _regressed(fit, predict, n):
    """Seconds to fit n rows, and errors on a tenth as many others; `predict` gives means and perhaps variances of y."""
    import numpy as np

    X, y, _ = _rows(n)
    X_test, y_test, truth = _rows(n // 10, seed=1)
    start = time.perf_counter()
    model = fit(X, y)
    seconds = time.perf_counter() - start
    mean, variance = predict(model, X_test)
    noisy, clean = (np.sqrt(np.mean((mean - target) ** 2)) for target in (y_test, truth))
    quality = {"RMSE": float(noisy), "RMSE of f": float(clean)}
    if variance is not None:
        density = 0.5 * np.mean((y_test - mean) ** 2 / variance + np.log(2 * np.pi * variance))
        quality["minus log density"] = float(density)
    return {"seconds": seconds, "first": seconds, "quality": quality}


def sparse_ours(n, points):
    import kernelbayes as kb

    def predict(model, X):
        mean, sd = model.predict(X, return_std=True)
        return mean, sd**2 + model.noise_ * model.unit_.item() ** 2

    return _regressed(lambda X, y: kb.SparseRegression(points=points, random_state=0).fit(X, y), predict, n)


def sparse_gpytorch(n, points):
    """The same model by its sparse regression (SGPR), in double precision: learned from as many rows, fitted to all."""
    import gpytorch
    import torch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, X, y, likelihood):
            super().__init__(X, y, likelihood)
            base = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=COLUMNS))
            base.base_kernel.lengthscale = 2.0
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.InducingPointKernel(base, X[:points].clone(), likelihood)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def fit(X, y):
        offset, unit = y.mean(), y.std()
        X, z = torch.tensor(X), torch.tensor((y - offset) / unit)
        likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
        some, targets = X[:LEARNED_FROM], z[:LEARNED_FROM]
        model = Model(some, targets, likelihood).double()
        objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(STEPS):
            optimiser.zero_grad()
            loss = -objective(model(some), targets)
            loss.backward()
            optimiser.step()
        model.set_train_data(X, z, strict=False)
        model.eval()
        with torch.no_grad():
            model(X[:1])  # what does not depend on new points is computed with the first
        return model, offset, unit

    def predict(fitted, X):
        model, offset, unit = fitted
        with torch.no_grad():
            found = model.likelihood(model(torch.tensor(X)))
        return offset + unit * found.mean.numpy(), unit**2 * found.variance.numpy()

    return _regressed(fit, predict, n)


def sparse_nystroem(n, points):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    grid = {"nystroem__gamma": [0.01, 0.03, 0.1, 0.3], "ridge__alpha": [1e-4, 1e-2, 1.0]}

    def fit(X, y):
        pipe = make_pipeline(Nystroem(n_components=points, random_state=0), Ridge(solver="cholesky"))
        search = GridSearchCV(pipe, grid, cv=3, refit=False).fit(X[:TUNED_ON], y[:TUNED_ON])
        return pipe.set_params(**search.best_params_).fit(X, y)

    return _regressed(fit, lambda model, X: (model.predict(X), None), n)


_SPARSE = "Sparse regression on {points} learned points, n = {n:,}, d = 8, noise 0.3: learn and fit"
ROWS = (
    Row(
        "mediator",
        "Regression through a mediator, {n} pairs, {m:,} points of the task: learn and fit",
        mediator_ours,
        asked=(seconds(60), growth(1, "linear in m")),
        why="a fit reads the points of the task once, in blocks, and learning reads them at each step; fewer points to "
        "learn from would meet it",
        sizes={"n": 300, "m": 100_000},
        quick={"n": 50, "m": 2000},
    ),
    Row(
        "mediator-fixed",
        "Regression through a mediator, {n} pairs, {m:,} points of the task, kernels given, g at its most probable: fit, "
        "mean and sd at 200 points",
        functools.partial(mediator_fixed, covariance="map"),
        mediator_dense,
        "the alternative form of theorem 5.7 in NumPy",
        (ratio(1), no_larger("error", within=0.01)),
        why="both form one product of n x m; a smoother kernel, of lower rank, would meet it",
        sizes={"n": 300, "m": 100_000},
    ),
    Row(
        "deconditional",
        "Regression through a mediator, {n:,} pairs, {m:,} points of the task, kernels given, g uncertain: fit, mean and sd "
        "at 200 points",
        functools.partial(mediator_fixed, covariance="full"),
        deconditional_dense,
        "the covariance of theorem 5.7 (3) in NumPy and SciPy",
        (ratio(1), no_larger("error", within=0.01)),
        why="the gain is that the ranks of the Gram matrices are below n and m; a smoother kernel would meet it",
        sizes={"n": 1000, "m": 1000},
    ),
    Row(
        "sparse",
        _SPARSE,
        sparse_ours,
        sparse_gpytorch,
        f"GPyTorch sparse regression, {STEPS} steps on {LEARNED_FROM:,} rows, fitted to all",
        (ratio(1), no_larger("RMSE", "minus log density")),
        why="both learn from as many rows, and a step of the search costs the same product; ours takes the steps it needs, "
        "and a smaller `steps` would meet it",
        sizes={"n": 100_000, "points": 300},
    ),
    Row(
        "sparse-nystroem",
        _SPARSE,
        sparse_ours,
        sparse_nystroem,
        f"scikit-learn Nystroem + Ridge, 4 x 3 grid on {TUNED_ON:,} rows",
        (lower("RMSE"),),
        why="the peer tries a grid of kernels on points that do not move, in closed form; ours learns points, a lengthscale "
        "for each column and the noise. Fewer `rows` or `steps` would be as fast, with a larger error; more points lower it",
        sizes={"n": 100_000, "points": 300},
    ),
)

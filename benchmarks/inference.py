"""Likelihood-free inference: from given simulations to posterior samples."""

from __future__ import annotations

import time

from benchmarks._row import Row, ratio

PARAMETERS, STATISTICS = 5, 10


def linear_gaussian(simulations):
    """Parameters, outputs, an observation, and the exact posterior's mean and covariance."""
    import numpy as np

    rng = np.random.default_rng(0)
    A = rng.normal(size=(STATISTICS, PARAMETERS))
    theta = rng.normal(size=(simulations, PARAMETERS))
    x = theta @ A.T + rng.normal(size=(simulations, STATISTICS))
    truth = 0.7 * rng.normal(size=PARAMETERS)
    y = A @ truth + rng.normal(size=STATISTICS)
    covariance = np.linalg.inv(np.eye(PARAMETERS) + A.T @ A)
    return theta, x, y, covariance @ A.T @ y, covariance


def _told(draws, mean, covariance, seconds):
    import numpy as np

    sd = np.sqrt(np.diag(covariance))
    off = float(np.sqrt((((draws.mean(0) - mean) / sd) ** 2).mean()))
    wide = float((draws.std(0) / sd).mean())
    quality = {"mean off by exact sd": off, "times as wide": wide}
    return {"seconds": seconds, "first": seconds, "quality": quality}


def inference_ours(simulations, draws):
    """All of it, compilation included: settings learned, and draws."""
    import warnings

    from scipy import stats

    import kernelbayes as kb

    warnings.simplefilter("ignore", kb.PosteriorWarning)
    theta, x, y, mean, covariance = linear_gaussian(simulations)
    prior = kb.Prior({f"a{i}": stats.norm() for i in range(PARAMETERS)})
    start = time.perf_counter()
    posterior = kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, random_state=0)
    drawn = posterior.sample(draws, random_state=0)
    return _told(drawn, mean, covariance, time.perf_counter() - start)


def inference_sbi(simulations, draws):
    """Neural posterior estimation as it comes."""
    import torch
    from sbi.inference import NPE

    torch.manual_seed(0)
    torch.set_num_threads(1)
    theta, x, y, mean, covariance = linear_gaussian(simulations)
    prior = torch.distributions.MultivariateNormal(torch.zeros(PARAMETERS), torch.eye(PARAMETERS))
    start = time.perf_counter()
    method = NPE(prior=prior, show_progress_bars=False)
    method.append_simulations(torch.tensor(theta, dtype=torch.float32), torch.tensor(x, dtype=torch.float32)).train()
    posterior = method.build_posterior()
    drawn = posterior.sample((draws,), x=torch.tensor(y, dtype=torch.float32), show_progress_bars=False)
    return _told(drawn.numpy(), mean, covariance, time.perf_counter() - start)


ROWS = (
    Row(
        "inference",
        "Inference: {simulations:,} given simulations, 5 parameters, 10 statistics: learn and draw {draws:,} times, "
        "compilation included",
        inference_ours,
        inference_sbi,
        "sbi NPE, trained on the same",
        (ratio(2),),
        why="nothing is compiled: most of ours is the search for the hyperparameters of twenty regressions, each on 320 "
        "rows, and the peer trains until it stops by itself, so that the ratio changes with the machine",
        sizes={"simulations": 1000, "draws": 1000},
        quick={"simulations": 300, "draws": 300},
    ),
)

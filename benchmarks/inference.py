"""Contenders and rows of `run.py` for likelihood-free inference: from given simulations to posterior samples."""

from __future__ import annotations

import time

PARAMETERS, STATISTICS, SIMULATIONS, SAMPLES = 5, 10, 1000, 1000


def linear_gaussian():
    """Parameters, outputs, an observation, and the exact posterior's mean and standard deviations."""
    import numpy as np

    rng = np.random.default_rng(0)
    A = rng.normal(size=(STATISTICS, PARAMETERS))
    theta = rng.normal(size=(SIMULATIONS, PARAMETERS))
    x = theta @ A.T + rng.normal(size=(SIMULATIONS, STATISTICS))
    truth = 0.7 * rng.normal(size=PARAMETERS)
    y = A @ truth + rng.normal(size=STATISTICS)
    covariance = np.linalg.inv(np.eye(PARAMETERS) + A.T @ A)
    return theta, x, y, covariance @ A.T @ y, np.sqrt(np.diag(covariance))


def _told(draws, mean, sd, seconds):
    import numpy as np

    off = float(np.sqrt((((draws.mean(0) - mean) / sd) ** 2).mean()))
    wide = float((draws.std(0) / sd).mean())
    text = f"mean off by {off:.2f} exact standard deviations, {wide:.2f} times as wide"
    return {"seconds": seconds, "first": seconds, "also": text}


def inference_ours():
    """All of it, compilation included: settings learned, 1,000 draws."""
    import warnings

    from scipy import stats

    import kernelbayes as kb

    warnings.simplefilter("ignore", kb.PosteriorWarning)
    theta, x, y, mean, sd = linear_gaussian()
    prior = kb.Prior({f"a{i}": stats.norm() for i in range(PARAMETERS)})
    start = time.perf_counter()
    posterior = kb.infer(parameters=theta, outputs=x, prior=prior, observed=y, random_state=0)
    draws = posterior.sample(SAMPLES, random_state=0)
    return _told(draws, mean, sd, time.perf_counter() - start)


def inference_sbi():
    """Neural posterior estimation as it comes."""
    import contextlib
    import io

    import torch
    from sbi.inference import NPE

    torch.manual_seed(0)
    torch.set_num_threads(1)
    theta, x, y, mean, sd = linear_gaussian()
    prior = torch.distributions.MultivariateNormal(torch.zeros(PARAMETERS), torch.eye(PARAMETERS))
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        method = NPE(prior=prior, show_progress_bars=False)
        method.append_simulations(
            torch.tensor(theta, dtype=torch.float32), torch.tensor(x, dtype=torch.float32)
        ).train()
        posterior = method.build_posterior()
        draws = posterior.sample((SAMPLES,), x=torch.tensor(y, dtype=torch.float32), show_progress_bars=False)
    return _told(draws.numpy(), mean, sd, time.perf_counter() - start)


#: title, ours, the peer or None, what the peer is, what is asked of us
BENCHMARKS = {
    "inference": (
        "Inference: 1,000 given simulations, 5 parameters, 10 statistics: learn and draw 1,000 times",
        "inference_ours",
        "inference_sbi",
        "sbi NPE, trained on the same",
        "ratio of at least 5, compilation included",
    ),
}

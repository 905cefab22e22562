"""Neural methods of the package sbi as they come, in Gaussian coordinates of the prior, which spares them its bounds.

| method | what it is |
|---|---|
| `npe` | a masked autoregressive flow for the posterior, trained once for all observations |
| `nle` | a flow for the likelihood, trained once; slice sampling for each observation |
| `snpe` | the first in rounds about one observation, with the atomic loss (NPE-C) |
| `snle` | the second in rounds |

Slice sampling has 100 chains from draws of the prior resampled by the likelihood, and 30 steps before the first draw.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..._typing import Array
from ._problem import ZooProblem

AMORTISED, SEQUENTIAL = ("npe", "nle"), ("snpe", "snle")
_CHAINS = {"num_chains": 100, "warmup_steps": 30, "thin": 1}


def installed() -> bool:
    """Whether the package is here."""
    return importlib.util.find_spec("sbi") is not None


def amortised(name: str, problem: ZooProblem, theta: Array, outputs: Array, seed: int) -> Callable[[Array, int], Array]:
    """From runs to a function that draws so many parameters for an observation."""
    with _quiet(seed):
        trainer = _trainer(name, problem.dimension)
        trainer.append_simulations(_tensor(problem.prior.to_gaussian(theta)), _tensor(outputs)).train()
        posterior = _posterior(name, trainer)

    def draw(x: Array, n: int) -> Array:
        with _quiet(seed):
            return _sample(problem, posterior, x, n)

    return draw


def sequential(name: str, problem: ZooProblem, x: Array, simulations: int, rounds: int, n: int, seed: int) -> Array:
    """Draws (n, d) after rounds of simulations about one observation."""
    rng = np.random.default_rng([seed, 11])
    each = np.diff(np.linspace(0, simulations, rounds + 1).astype(int))
    with _quiet(seed):
        trainer, posterior = _trainer(name, problem.dimension), None
        theta = problem.prior.sample(int(each[0]), rng)
        for i, count in enumerate(each):
            if posterior is not None:
                theta = _sample(problem, posterior, x, int(count))
            z, outputs = _tensor(problem.prior.to_gaussian(theta)), _tensor(problem.simulate(theta, rng))
            # a likelihood does not ask where parameters come from
            origin = {"proposal": posterior} if name == "snpe" and i else {}
            trainer.append_simulations(z, outputs, **origin).train()
            posterior = _posterior(name, trainer).set_default_x(_tensor(x))
        return _sample(problem, posterior, x, n)


def _trainer(name: str, dimension: int) -> Any:
    import torch  # type: ignore[reportMissingImports]
    from sbi.inference import NLE, NPE  # type: ignore[reportMissingImports]

    prior = torch.distributions.MultivariateNormal(torch.zeros(dimension), torch.eye(dimension))
    method = NPE if name in ("npe", "snpe") else NLE
    return method(prior=prior, show_progress_bars=False, tracker=_NoTracker())


def _posterior(name: str, trainer: Any) -> Any:
    return trainer.build_posterior(**({} if name in ("npe", "snpe") else {"mcmc_parameters": _CHAINS}))


def _sample(problem: ZooProblem, posterior: Any, x: Array, n: int) -> Array:
    z = posterior.sample((n,), x=_tensor(x)[None], show_progress_bars=False)
    return problem.prior.from_gaussian(z.detach().numpy().astype(np.float64))


def _tensor(a: Array) -> Any:
    import torch  # type: ignore[reportMissingImports]

    return torch.as_tensor(a, dtype=torch.float32)


class _NoTracker:
    """Training writes no log files."""

    log_dir = None

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **options: None


@contextlib.contextmanager
def _quiet(seed: int) -> Iterator[None]:
    """On one thread, from a seed, and without a word."""
    import torch  # type: ignore[reportMissingImports]

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    legacy = np.random.get_state()  # noqa: NPY002  the slice sampler draws from it
    np.random.seed(seed)  # noqa: NPY002
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        np.random.set_state(legacy)  # noqa: NPY002

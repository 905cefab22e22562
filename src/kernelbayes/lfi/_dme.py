"""Deconditional likelihood-free inference: Algorithm 4 of Hsu (2019).

| paper | here |
|---|---|
| lines 3-5, the operators | `KernelBayesRule("dmo", ...)` |
| line 11, the weights of the prior's draws | `WeightedPoints.weights` |

Scales and regulariser are those of the kernel means likelihood (`_kelfi.fit`).
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, ClassVar

import numpy as np

from .. import _check
from .._typing import Array
from ..bayes import KernelBayesRule
from ..embeddings import PosteriorWarning
from ..embeddings._weighted import effective_sizes
from ..kernels import Gaussian
from ._epsilon import Comparison
from ._kelfi import fit, on_bounds, settings_of
from ._law import WeightedPoints
from ._problem import Inference, Method, Problem


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class DME(Method):
    """Deconditional inference: the posterior is a weighted sample of the prior.

    Args:
        epsilon_kernel, learn, ard, epsilon, lengthscale, reg, replicates: as of `KELFI`.
        evidence_reg: regulariser of the evidence, by default chosen by hold-out, as `kb.KernelBayesRule` does; theorem 5.7
            suggests `reg * n / prior_draws`, which leaves large weights of both signs.
        prior_draws: draws of the prior, which carry the weights.
    """

    name: ClassVar[str] = "dme"
    epsilon_kernel: Any = "gaussian"
    learn: str | None = "posterior"
    ard: bool | None = None
    epsilon: Any = None
    lengthscale: float | None = None
    reg: float | None = None
    evidence_reg: float | None = None
    prior_draws: int = 1000
    replicates: int | None = None

    def infer(self, problem: Problem) -> Inference:
        model, learned, ard = fit(
            problem,
            self.epsilon_kernel,
            self.learn,
            self.ard,
            self.epsilon,
            self.lengthscale,
            self.reg,
            self.replicates,
        )
        scales = model.scales
        count = _check.count(self.prior_draws, "prior_draws", at_least=10)
        # whole numbers anywhere in their steps: as many draws on a few places leave larger weights of both signs
        draws = problem.prior.coordinates(count, problem.rng, placed=False)
        delta = None if self.evidence_reg is None else _check.positive(self.evidence_reg, "evidence_reg")
        rule = KernelBayesRule(
            "dmo", Gaussian(1.0), model.kernel, reg=delta, prior_reg=scales.reg, normalise="divide",
            random_state=int(problem.rng.integers(2**31)),
        )  # fmt: skip
        left = model.comparison.left / _per_column(scales.epsilon, model.comparison)
        target = model.comparison.observed / _per_column(scales.epsilon, model.comparison)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PosteriorWarning)  # what it says is said of the whole inference
            posterior = rule.fit(left, model.Z).posterior(target, draws)
        _, kappa = model.weights()
        ess = float(effective_sizes(kappa / kappa.sum()))
        law = WeightedPoints(np.asarray(posterior.points), np.asarray(posterior.weights), model.kernel)
        return Inference(
            law,
            {
                "epsilon_kernel": self.epsilon_kernel,
                **settings_of(scales),
                "evidence_reg": float(rule.reg_),
                "learn": self.learn,
                "ard": ard,
            },
            ess,
            on_bounds(learned),
            {"score": learned.value, "evaluations": learned.evaluations},
            scales=dict(zip(model.comparison.names, scales.epsilon * model.comparison.units, strict=True)),
        )


def _per_column(epsilon: Array, comparison: Comparison) -> Array:
    return epsilon[0] if comparison.grouped else epsilon

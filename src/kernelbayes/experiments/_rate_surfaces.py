"""Objectives over a grid of the scales of KELFI, beside the accuracy they stand for. Hsu (2019), section 4.9.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._typing import Array
from ..kernels import Gaussian
from ..kernels._integrals import mean_integral
from ..learning import _likelihood_free as objectives
from ..lfi._epsilon import GaussianEpsilon
from ..lfi._kelfi import replicated
from ._figures import panels
from ._rates import KELFI, Problem, case_title, posterior_of, problem_of, total_variation
from ._result import Claim, Table, verdict
from ._simulators import rate_prior
from ._study import Runs, Study


def surfaces_of(study: Study, settings: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]) -> Runs:
    """Of each case: how far objectives agree with accuracy."""
    return study.repeat(_surface_once, settings, cases, paired=True)


def _surface_once(settings: Mapping[str, Any], rng: np.random.Generator) -> dict[str, float]:
    """How far a higher objective goes with a smaller error, over the grid: rank correlations, and errors at the maxima."""
    from scipy import stats  # slow to import

    problem = problem_of(settings, rng)
    error = _variations(problem, settings)
    numbers = {"best_tv": float(error.min())}
    for name, surface in (("marginal", _marginals(problem, settings)), ("score", _scores(problem, settings))):
        numbers[f"{name}_rank"] = float(np.corrcoef(stats.rankdata(surface), stats.rankdata(-error))[0, 1])
        numbers[f"{name}_tv"] = float(error.ravel()[surface.argmax()])
    return numbers


def _grid(settings: Mapping[str, Any]) -> tuple[Array, Array]:
    """Values of epsilon (in units of the statistic's spread) and of beta."""
    return np.geomspace(1e-3, 1.0, settings["grid"]), np.geomspace(0.03, 3.0, settings["grid"])


def _marginals(problem: Problem, settings: Mapping[str, Any]) -> Array:
    """Logarithm of (4.5) over epsilon and beta, with lambda = 1e-3 beta."""
    prior = rate_prior()
    Z, comparison = prior.to_gaussian(problem.theta), _comparison(problem)

    def mu(beta: float) -> Array:
        return np.asarray(mean_integral(Gaussian(beta), prior.latent, Z))

    squares, powers = comparison.from_observed(), comparison.powers
    return _over(settings, lambda s: objectives.log_marginal(s, Z, squares, powers, mu))


def _scores(problem: Problem, settings: Mapping[str, Any]) -> Array:
    """The library's own objective over the same grid."""
    prior = rate_prior()
    Z = prior.to_gaussian(problem.theta)
    sample = replicated(_comparison(problem), Z, prior, None, 40, np.random.default_rng(0))
    return _over(settings, lambda s: objectives.posterior_score(s, sample))


def _over(settings: Mapping[str, Any], objective: Any) -> Array:
    epsilons, betas = _grid(settings)
    rows = [
        [
            objective(objectives.Scales(np.array([e]), float(b), objectives.REG_PER_LENGTHSCALE * float(b)))
            for b in betas
        ]
        for e in epsilons
    ]
    return np.array(rows)


def _comparison(problem: Problem) -> Any:
    outputs = problem.statistic(problem.data)[:, None]
    return GaussianEpsilon().bind(outputs, problem.statistic(problem.observed).reshape(1), ("mean",))


def _at(epsilon: float, beta: float) -> dict[str, float]:
    return {"epsilon": float(epsilon), "lengthscale": float(beta), "reg": objectives.REG_PER_LENGTHSCALE * float(beta)}


def global_optimum(problem: Problem, settings: Mapping[str, Any]) -> dict[str, float]:
    """The scales at the maximum of (4.5) over the grid."""
    surface = _marginals(problem, settings)
    i, j = np.unravel_index(surface.argmax(), surface.shape)
    epsilons, betas = _grid(settings)
    return _at(epsilons[i], betas[j])


def _variations(problem: Problem, settings: Mapping[str, Any]) -> Array:
    """Total variation of the kernel means posterior in closed form, over the same grid."""
    epsilons, betas = _grid(settings)
    out = np.ones((len(epsilons), len(betas)))
    for i, epsilon in enumerate(epsilons):
        for j, beta in enumerate(betas):
            chosen = {"learn": None, **_at(epsilon, beta)}
            posterior = posterior_of(KELFI, problem, settings, chosen, drawn=False)
            if posterior is not None:
                out[i, j] = total_variation(posterior, problem.exact, raw=True)
    return out


def surface_table(surfaces: Runs) -> Table:
    """Rank correlations and errors, a row for each objective and case."""
    rows = []
    for name, label in (("marginal", "marginal likelihood (4.5)"), ("score", "score of posteriors")):
        for i, case in enumerate(surfaces.cases):
            estimates = (surfaces.estimates(f"{name}_{k}")[i] for k in ("rank", "tv"))
            rows.append((label, case_title(case), *estimates, surfaces.estimates("best_tv")[i]))
    return Table(
        "Objectives over a grid of epsilon and beta with lambda = 1e-3 beta",
        ["objective", "case", "rank correlation with accuracy", "TV at its maximum", "least TV on the grid"],
        rows,
    )


def objective_claim(surfaces: Runs) -> Claim:
    """Whether a higher marginal likelihood goes with accuracy."""
    rank, at_top, best = (surfaces.estimates(k)[0] for k in ("marginal_rank", "marginal_tv", "best_tv"))
    own_rank, own_top = (surfaces.estimates(k)[0] for k in ("score_rank", "score_tv"))
    return Claim(
        "the higher the marginal kernel means likelihood, the more accurate the posterior",
        "Hsu (2019), section 4.9.1",
        f"over a grid of epsilon and beta its rank correlation with accuracy is {rank}, and at its maximum the total "
        f"variation is {at_top} where {best} could be had. The score that the library maximises: {own_rank} and {own_top}.",
        verdict(rank.value > 0.5, at_top.value < 2 * best.value),
    )


def maps(problem: Problem, settings: Mapping[str, Any]) -> Any:
    """Both objectives and the error over the grid."""
    figure, axes = panels(1, 3, (13.0, 4.0))
    epsilons, betas = _grid(settings)
    shown = (
        ("log marginal kernel means likelihood", _marginals(problem, settings), 1.0),
        ("score of posteriors (the library's)", _scores(problem, settings), 1.0),
        ("total variation from the exact posterior", _variations(problem, settings), -1.0),
    )
    for ax, (title, surface, sign) in zip(axes, shown, strict=True):
        low = surface.max() - 4.0 if sign > 0 and surface.max() - surface.min() > 4.0 else surface.min()
        drawn = np.clip(surface, low, None)
        colours = ax.contourf(betas, epsilons, drawn, levels=14, cmap="viridis" if sign > 0 else "viridis_r")
        i, j = np.unravel_index((sign * surface).argmax(), surface.shape)
        ax.plot(betas[j], epsilons[i], "+", color="white", ms=12, mew=2)
        figure.colorbar(colours, ax=ax, shrink=0.9)
        ax.set(xscale="log", yscale="log", xlabel="$\\beta$")
        ax.set_title(title, fontsize=9)
    axes[0].set(ylabel="$\\epsilon$, in units of the statistic's spread")
    return figure

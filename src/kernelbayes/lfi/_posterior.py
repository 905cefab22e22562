"""What an inference returns: the distribution of the parameters given the observation, and how far it can be trusted."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.optimize

from .. import _check
from .._summary import Summary, percent
from .._table import write_table
from .._typing import Array, ArrayLike, RandomState
from ..embeddings import tails
from ..kernels import Kernel
from . import _again
from ._atoms import smoothed_under
from ._epsilon import EpsilonKernel
from ._law import Law
from ._particles import ParticlePosterior
from ._prior import Prior

# Draws behind the numbers of a summary.
_DRAWS = 4000
# Of them, those from which the search for the maximum starts.
_STARTS = 5


class ParameterPosterior:
    """The distribution of a simulator's parameters given an observation; made by `kb.infer`.

    Attributes:
        prior: what was believed before.
        names: of the parameters.
        method: how it was found.
        observed: the observation.
        parameters, outputs: the simulations (m, d) and (m, ...) it was learned from.
        statistics: names of the outputs.
        settings: what the method chose or was given; `kb.lfi.METHODS[posterior.method](**posterior.settings)` fixes them.
        ess: effective number of simulations behind it: how many resemble the observation.
        problems: sentences to read before the result is believed; empty if there is nothing to say.
        details: what else the method tells about itself.
        failures: runs that gave no output, of all `runs`.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> def simulator(mu, rng):
        ...     return rng.normal(mu, 1.0, 20).mean()
        >>> posterior = kb.infer(simulator, kb.Prior(mu=(-5, 5)), observed=1.0, simulations=300, random_state=0)
        >>> low, high = posterior.interval(0.9)[:, 0]
        >>> bool(low < 1.0 < high), posterior.sample(100, random_state=0).shape
        (True, (100, 1))
    """

    def __init__(
        self,
        law: Law,
        prior: Prior,
        observed: Array,
        parameters: Array,
        outputs: Array,
        *,
        method: str,
        settings: dict[str, Any],
        statistics: tuple[str, ...],
        ess: float,
        problems: tuple[str, ...] = (),
        details: dict[str, Any] | None = None,
        scales: dict[str, float] | None = None,
        failures: int = 0,
        seed: int = 0,
        ratio: Array | None = None,
    ):
        self.law, self.prior, self.observed = law, prior, observed
        self.parameters, self.outputs = parameters, outputs
        self.names, self.statistics = prior.names, statistics
        self.method, self.settings, self.ess = method, settings, ess
        self.problems, self.details = problems, details or {}
        self.failures, self.runs = failures, len(parameters) + failures
        self._scales, self._seed, self._ratio = scales, seed, ratio
        # what is needed to simulate again or to calibrate quickly, and cannot be saved
        self._simulator: tuple[Any, dict[str, Any]] | None = None
        self._model: Any = None

    def __repr__(self) -> str:
        failed = f", {self.failures} failed" if self.failures else ""
        warned = (
            f", {len(self.problems)} warnings" if len(self.problems) > 1 else ", 1 warning" if self.problems else ""
        )
        return (
            f"ParameterPosterior({', '.join(self.names)}; {self.method}, {len(self.parameters)} simulations{failed}, "
            f"about {self.ess:.0f} near the observation{warned})"
        )

    # ------------------------------------------------------------------------------------------------- draws

    def sample(self, n: int = 1000, random_state: RandomState = None) -> Array:
        """Draws (n, d); they never leave the support of the prior."""
        n = _check.count(n, "n")
        return self.prior.from_gaussian(self.law.sample(n, _check.generator(random_state)))

    def herd(self, n: int = 100, random_state: RandomState = None) -> Array:
        """Super-samples (n, d): few points whose averages follow the posterior more closely than as many draws would.

        Hsu (2019), Algorithm 3, lines 9 to 12.
        """
        n = _check.count(n, "n")
        return self.prior.from_gaussian(self.law.herd(n, _check.generator(random_state)))

    @functools.cached_property
    def _draws_cache(self) -> Array:
        return self.sample(_DRAWS, self._seed)

    # ----------------------------------------------------------------------------------------------- numbers

    def mean(self) -> Array:
        """Posterior means (d,)."""
        return self._draws_cache.mean(0)

    def std(self) -> Array:
        """Posterior standard deviations (d,)."""
        return self._draws_cache.std(0)

    def cov(self) -> Array:
        """Posterior covariance (d, d)."""
        return np.atleast_2d(np.cov(self._draws_cache.T))

    def quantile(self, q: ArrayLike) -> Array:
        """Quantiles of each parameter: (d,) for one level, (len(q), d) for several."""
        levels = _check.numbers(q, "q")
        if ((levels < 0) | (levels > 1)).any():
            raise ValueError(f"q must lie between 0 and 1, got {q!r}")
        return np.quantile(self._draws_cache, levels, axis=0)

    def interval(self, level: float = 0.9) -> Array:
        """Central intervals holding `level` of the mass, as (lower, upper): (2, d)."""
        return self.quantile(tails(level))

    def density(self, theta: ArrayLike, raw: bool = False) -> Array:
        """Density (n,) at parameters (n, d); of parameters that are whole numbers their probability.

        Args:
            theta: where; a dict of columns will do.
            raw: the kernel means posterior as Hsu (2019) defines it, (4.42): in closed form, and negative in places. By
                default what does not rise above its errors counts as zero, and draws follow that.
        """
        theta = self.prior._read(theta)
        inside = self.prior.contains(theta)
        out = np.zeros(len(theta))
        if not inside.any():
            return out
        z = self.prior.to_gaussian(theta[inside])
        out[inside] = self._coordinate_density(z, raw) * self.prior.stretch(theta[inside], z)
        return out

    def log_prob(self, theta: ArrayLike) -> Array:
        """Logarithm of the normalised density (n,) at parameters (n, d); minus infinity where it is zero."""
        with np.errstate(divide="ignore"):
            if not isinstance(self.law, ParticlePosterior):
                return np.log(self.density(theta))
            theta = self.prior._read(theta)
            inside = self.prior.contains(theta)
            out = np.full(len(theta), -np.inf)
            z = self.prior.to_gaussian(theta[inside])
            out[inside] = self.law.log_density(z) + np.log(self.prior.stretch(theta[inside], z))
        return out

    def log_likelihood(self, theta: ArrayLike) -> Array:
        """Logarithm of the learned likelihood (n,) of the observation at parameters (n, d); of method "likelihood"."""
        likelihood = _again.likelihood_of(self, "log_likelihood")
        width = int(np.prod(self.outputs.shape[1:]))
        return likelihood.log(self.prior._read(theta), self.observed.reshape(-1, width))

    # ------------------------------------------------------------------------------------ other questions

    def at(self, observed: Any, random_state: int = 0) -> ParameterPosterior:
        """The posterior given another observation, or several independent ones (k, ...), without learning anew.

        Of method "likelihood". NaN stands for a statistic that was not observed. After `rounds` the likelihood is known well
        about the first observation only.
        """
        return _again.at(self, observed, random_state)

    def under(self, prior: Any, random_state: int = 0) -> ParameterPosterior:
        """The posterior under another prior over the same parameters, without learning anew; of method "likelihood"."""
        return _again.under(self, prior, random_state)

    def conditional(self, known: Mapping[str, float], random_state: int = 0) -> ParameterPosterior:
        """The posterior of the other parameters where some are known, as `{"growth": 0.3}`; of method "likelihood"."""
        return _again.conditional(self, known, random_state)

    def marginal(self, *names: str) -> ParameterPosterior:
        """The posterior of some of the parameters, whatever the others are."""
        return _again.marginal(self, names)

    def _coordinate_density(self, z: Array, raw: bool) -> Array:
        if raw:
            if self.prior.whole.any():
                raise ValueError("raw=True is a closed form for continuous priors; here a parameter is a whole number")
            if self.law.closed is None:
                form = " with form='sampled'" if self.method == "kelfi" else ""
                raise ValueError(
                    f"raw=True is the kernel means posterior in closed form, which method {self.method!r}{form} has not"
                )
            return self.law.closed.density(z)
        density = self.law.density(z)
        if density is None:  # smoothed draws, in coordinates where they are well behaved
            density = self._smoothed_cache.density(z)
        return np.asarray(density)

    @functools.cached_property
    def _smoothed_cache(self) -> Any:
        return smoothed_under(self.prior, self.prior.to_gaussian(self._draws_cache))

    def map(self) -> Array:
        """The parameters (d,) of largest posterior density.

        Found from the best of the draws; of a method that has weighted points only, the point of largest density among
        smoothed draws. Where the density has no maximum inside the support (a gamma with shape below one, say) it ends at
        the edge, and coordinates that do not depend on the parametrisation, `mean` and `quantile`, say more.
        """
        draws = self._draws_cache
        values = self.density(draws)
        starts = self.prior.to_gaussian(draws[np.argsort(-values)[:_STARTS]])

        def loss(z: Array) -> float:
            value = self.density(self.prior.from_gaussian(z[None]))[0]
            return -float(np.log(value)) if value > 0 else 1e300

        found = [
            scipy.optimize.minimize(
                loss, z, method="Nelder-Mead", options={"maxfev": 400, "xatol": 1e-5, "fatol": 1e-8}
            )
            for z in starts
        ]
        best = min(found, key=lambda r: r.fun)
        return self.prior.from_gaussian(best.x[None])[0]

    def summary(self, level: float = 0.9) -> Summary:
        """A table with a row for each parameter: mean, std, quantiles, effective simulations, and the prior's std.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> theta = kb.Prior(mu=(-5, 5)).design(300)
            >>> x = theta + np.random.default_rng(0).normal(0, 0.5, theta.shape)
            >>> posterior = kb.infer(parameters=theta, outputs=x, prior=kb.Prior(mu=(-5, 5)), observed=[1.0], random_state=0)
            >>> list(posterior.summary()["mu"])
            ['mean', 'std', '5 %', 'median', '95 %', 'ess', 'prior std']
        """
        lower, upper = tails(level)
        mean, std = self.mean(), self.std()
        low, middle, high = self.quantile([lower, 0.5, upper])
        before = self.prior.sample(_DRAWS, self._seed).std(0)
        ess = np.broadcast_to(self.details.get("ess_per_parameter", self.ess), mean.shape)
        rows = {
            name: {
                "mean": float(mean[j]),
                "std": float(std[j]),
                percent(lower): float(low[j]),
                "median": float(middle[j]),
                percent(upper): float(high[j]),
                "ess": round(float(ess[j])),
                "prior std": float(before[j]),
            }
            for j, name in enumerate(self.names)
        }
        return Summary(rows, f"{self.method}, {len(self.parameters)} simulations", self.problems)

    def relevance(self) -> Summary:
        """Which statistics matter: those compared on a small scale, relative to their spread over the simulations.

        Of a learned likelihood the scale is the spread that is left where parameters are known, where the posterior is.
        A statistic whose scale is as large as its spread, or larger, plays no part. Hsu (2019), 4.3.3 and figure 4.2. Where
        a statistic has a long tail, its scale is that in the middle of the simulations; see `kb.lfi.GaussianEpsilon`.
        """
        if self._scales is None:
            raise ValueError(f"this posterior, by method {self.method!r}, learns no scales of single statistics")
        if len(self._scales) == 1 and len(self.statistics) > 1:
            raise ValueError("all outputs are compared on one scale; there is no relevance of single statistics")
        from ._epsilon import spreads

        spread = dict(zip(self.statistics, spreads(self.outputs.reshape(len(self.outputs), -1)), strict=True))
        rows, title = {}, "epsilon" if self.method == "kelfi" else "scale"
        for name, scale in sorted(self._scales.items(), key=lambda item: item[1] / spread.get(item[0], 1.0)):
            width = float(spread.get(name, float("nan")))
            rows[name] = {
                title: float(scale),
                "spread": width,
                "relevance": float(width / scale),
            }
        return Summary(rows, "relevance: spread over the simulations / scale of comparison")

    # ------------------------------------------------------------------------------------ handing it to others

    def predictive(self, n: int = 100, **options: Any) -> Any:
        """Simulate at n draws of the posterior and compare with the observation; see `PredictiveCheck`.

        Needs the simulator: pass `simulator=` if the posterior was made from arrays or was loaded. Further options, such as
        `executor`, go to `kb.simulate`.
        """
        from ._predictive import check

        return check(self, n, **options)

    def plot(
        self, truth: Mapping[str, float] | ArrayLike | None = None, *, level: float = 0.9, prior: bool = True
    ) -> Any:
        """A figure of all pairs of parameters, with the prior's marginals and the truth if given.

        Returns a Matplotlib figure: `posterior.plot().savefig("posterior.png")`.
        """
        from .. import plotting

        known = None if truth is None else self.prior._read(truth, "truth")[0]
        return plotting.pairs(self, known, prior=prior, level=level)

    def to_arviz(self, n: int = 1000, random_state: RandomState = None) -> Any:
        """The draws for ArviZ: posterior, prior and observed data, as `arviz.from_dict` makes them."""
        from ._interop import to_arviz

        return to_arviz(self, _check.count(n, "n"), _check.generator(random_state))

    def to_pandas(self, n: int = 1000, random_state: RandomState = None) -> Any:
        """n draws as a data frame with a column for each parameter; needs pandas."""
        import pandas  # type: ignore[import-not-found]

        return pandas.DataFrame(self.sample(n, random_state), columns=list(self.names))

    def to_csv(self, path: str | os.PathLike[str], n: int = 1000, random_state: RandomState = None) -> None:
        """Write n draws, a column for each parameter."""
        write_table(path, list(zip(self.names, self.sample(n, random_state).T, strict=True)))

    def _settled(self) -> ParameterPosterior:
        """Without the simulator, which cannot be saved."""
        out = object.__new__(ParameterPosterior)
        out.__dict__.update({k: v for k, v in vars(self).items() if k not in ("_simulator", "_model")})
        out.settings = {k: v if _is_plain(v) else repr(v) for k, v in self.settings.items()}
        return out


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, np.ndarray, np.generic, EpsilonKernel, Kernel))

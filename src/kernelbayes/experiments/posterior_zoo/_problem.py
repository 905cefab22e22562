"""What a problem of the zoo is: a prior, a simulator, and the likelihood that methods may not see."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._typing import Array
from ...lfi import Prior


@dataclass(frozen=True)
class ZooProblem:
    """A likelihood-free problem whose likelihood is known.

    Attributes:
        name: a word for tables.
        about: one line on what it is.
        kind: the family it belongs to; each has problems to tune on and problems held out.
        held_out: whether settings of the library's methods were never chosen on it.
        prior: with independent parameters, so that its Gaussian coordinates are standard normal.
        simulate: parameters (m, d) and a generator to outputs (m, p), one simulation in each row.
        log_likelihood: parameters (m, d) and one output (p,) to (m,), up to what does not depend on the parameters.
        exact: mean and covariance of a normal posterior by a closed form, for an output (p,).
        repeats: simulations at each parameter vector of a design; above 1, methods are given such runs and make none.
    """

    name: str
    about: str
    kind: str
    held_out: bool
    prior: Prior
    simulate: Callable[[Array, np.random.Generator], Array]
    log_likelihood: Callable[[Array, Array], Array]
    exact: Callable[[Array], tuple[Array, Array]] | None = None
    repeats: int = 1

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return self.prior.dimension

    def observed_at(self, k: int) -> tuple[Array, Array]:
        """The k-th true parameters (d,), a draw of the prior, and what was observed there (p,)."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), k])
        theta = self.prior.sample(1, rng)
        return theta[0], self.simulate(theta, rng)[0]

    def observation(self, k: int) -> Array:
        """The k-th observation (p,), the same on every call."""
        return self.observed_at(k)[1]

    def runs(self, n: int, seed: int, kind: str = "halton") -> tuple[Array, Array]:
        """Parameters (n, d) by a design (`Prior.design`) and outputs (n, p); `repeats` of each parameter vector in a row."""
        sets = -(-n // self.repeats)
        theta = np.repeat(self.prior.design(sets, kind, random_state=seed), self.repeats, axis=0)[:n]
        return theta, self.simulate(theta, np.random.default_rng([seed, 1]))


def normal(x: Array, location: Array, scale: Array | float) -> Array:
    """Log density of normals, without its constant."""
    return -0.5 * ((x - location) / scale) ** 2 - np.log(scale)


def runge_kutta(slope: Callable[[Array], Array], start: Array, times: Array, steps: int) -> Array:
    """States (m, s, len(times)) of an autonomous system from states (m, s) at time 0; so many steps between two times."""
    state, path, now = start, [], 0.0
    for time in times:
        h = (time - now) / steps
        for _ in range(steps):
            first = slope(state)
            second = slope(state + 0.5 * h * first)
            third = slope(state + 0.5 * h * second)
            state = state + h / 6.0 * (first + 2.0 * second + 2.0 * third + slope(state + h * third))
        path.append(state)
        now = time
    return np.stack(path, axis=-1)

r"""Systems to filter: the state-space models of the papers as simulators with their densities.

| here | source | state | observation |
|---|---|---|---|
| `Circle` | Xu et al. (2022), equation (5) | a point near a circle or a flower | the point, with noise |
| `StateSpace` | Kanagawa (2016), table 4.2 | one number | one number, or ten |
| `Pendulum` | Gebhardt et al. (2015), section 4 | angle, angular velocity | both, with noise and outliers |

Each can start, move, observe, and tell how likely an observation is, for many states (n, d) at a time. A control of row t
moves the state of row t - 1 to row t, as in table 4.2; that of the first row is not used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import logsumexp

from .._typing import Array


class System(Protocol):
    """A state-space model, vectorised over states."""

    def initial(self, rng: np.random.Generator, n: int) -> Array:
        """States at the first step (n, d)."""
        ...

    def transition(self, rng: np.random.Generator, states: Array, time: int, control: Array | None) -> Array:
        """The states one step later, at the given time; the form that `kb.KernelMonteCarloFilter` takes."""
        ...

    def observe(self, rng: np.random.Generator, states: Array) -> Array:
        """Observations (n, p), one of each state."""
        ...

    def log_likelihood(self, observation: Array, states: Array) -> Array:
        """log p(y | x) of one observation (p,) under each state (n,)."""
        ...

    def controls(self, rng: np.random.Generator, length: int) -> Array | None:
        """Controls (length, c) as they are drawn for a simulation, or None where there are none."""
        ...


class Sequence(NamedTuple):
    """One simulated run: states (t, d), observations (t, p), and controls (t, c) or None."""

    states: Array
    observations: Array
    controls: Array | None


def simulate(system: System, length: int, rng: np.random.Generator) -> Sequence:
    """One run of a system."""
    controls = system.controls(rng, length)
    states = [system.initial(rng, 1)]
    for t in range(1, length):
        states.append(system.transition(rng, states[-1], t, None if controls is None else controls[t]))
    together = np.concatenate(states)
    return Sequence(together, system.observe(rng, together), controls)


def _normal(y: Array, mean: Array, sd: Array | float) -> Array:
    """log N(y; mean, sd^2) summed over the last axis."""
    return (-0.5 * ((y - mean) / sd) ** 2 - np.log(sd) - 0.5 * math.log(2 * math.pi)).sum(-1)


# ------------------------------------------------------------------------------------------- rotation, oscillatory


@dataclass(frozen=True)
class Circle:
    r"""Points that go round a circle whose radius may depend on the angle. Xu et al. (2022), equation (5).

    .. math:: z_{t+1} = (1 + \beta \sin(M \theta_t)) (\cos(\theta_t + \omega), \sin(\theta_t + \omega)) + \epsilon_Z,
        \qquad x_t = z_t + \epsilon_X

    It starts at (1, 0), which is known.
    """

    omega: float
    beta: float = 0.0
    petals: int = 1
    noise: float = 0.2

    def initial(self, rng: np.random.Generator, n: int) -> Array:
        return np.tile([1.0, 0.0], (n, 1))

    def transition(self, rng: np.random.Generator, states: Array, time: int, control: Array | None) -> Array:
        return self.step(states) + self.noise * rng.normal(size=states.shape)

    def observe(self, rng: np.random.Generator, states: Array) -> Array:
        return states + self.noise * rng.normal(size=states.shape)

    def log_likelihood(self, observation: Array, states: Array) -> Array:
        return _normal(observation, states, self.noise)

    def controls(self, rng: np.random.Generator, length: int) -> None:
        return None

    def step(self, states: Array) -> Array:
        """One step without noise."""
        angle = np.arctan2(states[..., 1], states[..., 0])
        radius = 1.0 + self.beta * np.sin(self.petals * angle)
        return radius[..., None] * np.stack([np.cos(angle + self.omega), np.sin(angle + self.omega)], axis=-1)

    def jacobian(self, state: Array) -> Array:
        """Derivative (2, 2) of the step at one state: it depends on the angle alone."""
        u, v = state
        angle = math.atan2(v, u)
        radius = 1.0 + self.beta * math.sin(self.petals * angle)
        growth = self.beta * self.petals * math.cos(self.petals * angle)
        c, s = math.cos(angle + self.omega), math.sin(angle + self.omega)
        along = np.array([growth * c - radius * s, growth * s + radius * c])
        return np.outer(along, np.array([-v, u]) / (u * u + v * v))


ROTATION = Circle(omega=0.3)
OSCILLATORY = Circle(omega=0.4, beta=0.4, petals=8)


# ------------------------------------------------------------------------------------------------------ table 4.2


@dataclass(frozen=True)
class StateSpace:
    """One of the models 1a-4b of Kanagawa (2016), table 4.2: 1 linear, 2 and 3 stochastic volatility, 4 jumps at an edge.

    Those with the letter b have a control. The first state follows the stationary distribution of the autoregression
    (1-3), or is uniform on [-3, 3] (4).
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in MODELS:
            raise ValueError(f"the models are {', '.join(MODELS)}; got {self.name!r}")

    @property
    def _number(self) -> int:
        return int(self.name[0])

    @property
    def controlled(self) -> bool:
        """Whether a known control moves the state."""
        return self.name.endswith("b")

    def initial(self, rng: np.random.Generator, n: int) -> Array:
        if self._number == 4:
            return rng.uniform(-3.0, 3.0, (n, 1))
        return rng.normal(0.0, 1.0 / math.sqrt(1.0 - 0.9**2), (n, 1))

    def controls(self, rng: np.random.Generator, length: int) -> Array | None:
        return rng.normal(size=(length, 1)) if self.controlled else None

    def transition(self, rng: np.random.Generator, states: Array, time: int, control: Array | None) -> Array:
        v = rng.normal(size=states.shape)
        # of variance 2 altogether; models 1-3 scale it by 1 / sqrt(2), which leaves unit variance with or without control
        push = v + np.asarray(control) if self.controlled else math.sqrt(2.0) * v
        if self._number < 4:
            return 0.9 * states + push / math.sqrt(2.0)
        a = states + push
        return np.where(np.abs(a) <= 3.0, a, -3.0)

    def observe(self, rng: np.random.Generator, states: Array) -> Array:
        w = rng.normal(size=(len(states), 10 if self._number == 3 else 1))
        if self._number in (2, 3):
            return 0.5 * np.exp(states / 2.0) * w
        b = states + w
        return np.where(np.abs(b) <= 3.0, b, b - 6.0 * np.sign(b)) if self._number == 4 else b

    def log_likelihood(self, observation: Array, states: Array) -> Array:
        if self._number in (2, 3):
            return _normal(observation, np.zeros_like(states), 0.5 * np.exp(states / 2.0))
        if self._number == 1:
            return _normal(observation, states, 1.0)
        y = float(np.asarray(observation)[0])
        sources = [b for b in (y, y + 6.0, y - 6.0) if (abs(b) <= 3.0) == (b == y)]  # what may have jumped to y
        return np.asarray(logsumexp([_normal(np.array([b]), states, 1.0) for b in sources], axis=0))


MODELS = ("1a", "1b", "2a", "2b", "3a", "3b", "4a", "4b")


# ------------------------------------------------------------------------------------------------------- pendulum


@dataclass(frozen=True)
class Pendulum:
    r"""A pendulum that is kicked at random and observed with outliers. Gebhardt et al. (2015), section 4.

    Mass 5 kg, friction coefficient 1, steps of 0.1 s. The angle starts uniform on [0.1 pi, 0.4 pi], the angular velocity on
    [-0.5 pi, 0.5 pi]. The velocity gains N(0, 1) at each step; both are observed with noise N(0, 0.1), and with
    probability 0.1 the observed angle is pi/4 too large.

    The paper does not say, and here: the pendulum is a uniform rod of 0.5 m, upright at angle zero, so that it starts near
    the top and falls; g = 9.81; friction is a torque against the velocity; a step is ten of semi-implicit Euler, and the
    velocity is kicked at its end; second arguments of N are variances; angles are not wrapped.
    """

    mass: float = 5.0
    friction: float = 1.0
    length: float = 0.5
    gravity: float = 9.81
    dt: float = 0.1
    process_sd: float = 1.0
    observation_sd: float = math.sqrt(0.1)
    offset: float = math.pi / 4
    offset_probability: float = 0.1
    substeps: int = 10

    def initial(self, rng: np.random.Generator, n: int) -> Array:
        return np.stack([rng.uniform(0.1 * np.pi, 0.4 * np.pi, n), rng.uniform(-0.5 * np.pi, 0.5 * np.pi, n)], axis=-1)

    def controls(self, rng: np.random.Generator, length: int) -> None:
        return None

    def transition(self, rng: np.random.Generator, states: Array, time: int, control: Array | None) -> Array:
        angle, velocity = states[:, 0], states[:, 1]
        inertia, h = self.mass * self.length**2 / 3.0, self.dt / self.substeps
        weight = self.mass * self.gravity * self.length / 2.0
        for _ in range(self.substeps):
            velocity = velocity + h * (weight * np.sin(angle) - self.friction * velocity) / inertia
            angle = angle + h * velocity
        return np.stack([angle, velocity + self.process_sd * rng.normal(size=len(states))], axis=-1)

    def observe(self, rng: np.random.Generator, states: Array) -> Array:
        seen = states + self.observation_sd * rng.normal(size=states.shape)
        seen[:, 0] += self.offset * (rng.random(len(states)) < self.offset_probability)
        return seen

    def log_likelihood(self, observation: Array, states: Array) -> Array:
        p = self.offset_probability
        shifted = observation - np.array([self.offset, 0.0])
        return np.logaddexp(
            math.log(1.0 - p) + _normal(observation, states, self.observation_sd),
            math.log(p) + _normal(shifted, states, self.observation_sd),
        )

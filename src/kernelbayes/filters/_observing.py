"""What estimators that filter share: reading observations with gaps, how novel these are, and reading first beliefs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _check
from .._estimator import DERIVED
from .._typing import Array
from ..embeddings import Reach, Weighted, read_weighted, sample_in_order
from ..kernels import Kernel
from ._sequences import in_order, rows_of, several


class Seen(NamedTuple):
    """Observations (T,) of a sequence, some of which may be missing."""

    coordinates: Array  # (T, q)
    observed: Array  # (T,) which of them there are
    novelty: Array  # (T,) distance from those of the log
    rows: Array  # those that there are, as they were given


class Observing:
    """A fitted filter as it reads observations."""

    observations_: Array
    points_: Array
    kernel_: Kernel
    latent_kernel_: Kernel
    _seed: int
    _recursion: Any

    @property
    def _point_dims(self) -> int:
        return np.ndim(self.observations_) - 1

    @property
    def _names(self) -> tuple[str, ...] | None:
        return getattr(self, "state_names_", None)

    @property
    def _reach(self) -> Reach:
        if "_reach_cache" not in self.__dict__:
            self._reach_cache = Reach(self.observations_, self.kernel_, np.random.default_rng(self._seed))
        return self._reach_cache

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name not in DERIVED}

    def _seen(self, many: Sequence[Any], names: Sequence[str]) -> list[Seen]:
        """Each sequence of observations as it was read."""
        known = getattr(self, "observation_names_", None)
        tables = [in_order(value, known, name) for value, name in zip(many, names, strict=True)]
        read = [rows_of(value, name, self.kernel_, gaps=True) for value, name in zip(tables, names, strict=True)]
        for (rows, present), name in zip(read, names, strict=True):
            if not len(present):
                raise ValueError(f"{name} is empty")
            if present.any():
                self._check_width(rows, name)
        there = np.concatenate([present for _, present in read])
        f, novelty = np.zeros((len(there), self._recursion.features.rank)), np.full(len(there), np.nan)
        if there.any():  # all at once: quicker than sequence by sequence
            together = np.concatenate([rows for rows, present in read if present.any()])
            f[there], novelty[there] = self._recursion.features._coordinates(together), self._reach.novelty(together)
        cuts = np.cumsum([len(present) for _, present in read])[:-1]
        parts = zip(np.split(f, cuts), read, np.split(novelty, cuts), strict=True)
        return [Seen(at, present, novel, rows) for at, (rows, present), novel in parts]

    def _seen_with(self, controls: Any, observations: Any) -> tuple[list[tuple[Seen, Any]], bool]:
        """Each sequence as it was seen, beside its controls; and whether there is but one, not in a list."""
        one = not several(observations, self._point_dims)
        many: Sequence[Any] = [observations] if one else observations
        acting: Sequence[Any] = [controls] * len(many) if one or controls is None else controls
        if len(acting) != len(many):
            raise ValueError(f"observations holds {len(many)} sequences but controls {len(acting)}")
        names = ["observations"] if one else [f"observations[{i}]" for i in range(len(many))]
        return list(zip(self._seen(many, names), acting, strict=True)), one

    def _weighted(self, initial: Any, draws: int, rng: np.random.Generator) -> Weighted:
        """A belief about the first state as points with weights, whatever it was given as."""
        with warnings.catch_warnings():  # samples where there is no closed form are good enough here
            warnings.simplefilter("ignore", UserWarning)
            initial = sample_in_order(initial, self._names, "initial")
            read = read_weighted(initial, self.latent_kernel_, name="initial", draws=draws, rng=rng)
        if read.points.shape[1:] != self.points_.shape[1:]:
            raise ValueError(
                f"initial is on points of shape {read.points.shape[1:]}, states have {self.points_.shape[1:]}"
            )
        return read

    def _check_width(self, rows: Array, name: str) -> None:
        if rows.shape[1:] != self.observations_.shape[1:]:
            raise ValueError(
                f"{name} has rows of shape {rows.shape[1:]} where the filter was fitted to "
                f"{self.observations_.shape[1:]}"
            )

    def _one_row(self, observation: Any) -> list[Any]:
        """One observation as a table of one row."""
        value = _check.row_by_name(observation, getattr(self, "observation_names_", None), "observation")
        if value is None:
            return [None]
        dims = getattr(value, "ndim", None)  # that of NumPy itself is a function
        if isinstance(value, (float, int, np.generic)) or (isinstance(dims, int) and dims < self._point_dims):
            value = np.reshape(value, (1,) * self._point_dims)
        rows: Any = [value] if _check.dimensions(value, "observation") <= self._point_dims else value
        if len(rows) != 1:
            raise ValueError(f"step takes one observation, got {len(rows)}; `filter` takes many")
        return rows

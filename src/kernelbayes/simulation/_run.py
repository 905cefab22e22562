"""How the runs of a simulator are made: where, for how long, and what is kept of them."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from .. import _check
from ._simulate import read_executor, store_path


@dataclasses.dataclass(frozen=True)
class Run:
    """How a simulator is run, for `kb.infer(..., run=...)`; `kb.simulate` has the same arguments, and describes them.

    Args:
        executor: None for this process, a whole number for so many processes of our own, or anything with a `submit`.
        store: path of a file in which every run is kept as it finishes, and from which the same call goes on. It is found
            from the folder that you are in when you say so.
        timeout: seconds for one run.
        vectorised: whether the simulator takes many rows at once.
        pass_dict: whether it is called with a dict (True) or an array (False); None decides by its arguments.
        max_seconds: after which no more runs are started.
        retry_failed: whether to run again what failed in an earlier call.

    Example:
        >>> import numpy as np, kernelbayes as kb
        >>> def simulator(theta: np.ndarray, rng):
        ...     return theta[:, 0] + rng.normal(size=len(theta))
        >>> run = kb.Run(vectorised=True, pass_dict=False)
        >>> posterior = kb.infer(simulator, kb.Prior(mu=(-3, 3)), 0.5, simulations=200, run=run, random_state=0)
        >>> posterior.runs
        200
    """

    executor: Any = None
    store: str | os.PathLike[str] | None = None
    timeout: float | None = None
    vectorised: bool = False
    pass_dict: bool | None = None
    max_seconds: float | None = None
    retry_failed: bool = False

    def __post_init__(self) -> None:
        read_executor(self.executor)
        object.__setattr__(self, "store", store_path(self.store))
        for name in ("timeout", "max_seconds"):
            if getattr(self, name) is not None:
                _check.positive(getattr(self, name), name)
        _check.option(self.vectorised, "vectorised", (True, False))
        _check.option(self.pass_dict, "pass_dict", (None, True, False))
        _check.option(self.retry_failed, "retry_failed", (True, False))

    def options(self) -> dict[str, Any]:
        """All but the limit of time, as arguments of a simulation."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "max_seconds"}

"""What the estimators share: checks of their settings, and a Gram matrix that is neither pickled nor saved."""

from __future__ import annotations

from typing import Any

from .features import Recipe, represent
from .kernels import Kernel

#: Attributes that are rebuilt on use, and so left out of pickles and files.
DERIVED = (
    "_gram_cache",
    "_surroundings",
    "_recursion_cache",
    "_smoother_cache",
    "_reach_cache",
    "_mixture_cache",
    "_proposal_cache",
    "_draws_cache",
    "_frozen_cache",
    "_smoothed_cache",
)

_EXAMPLES = {Kernel: "kb.Gaussian(1.0)", Recipe: "kb.Subspace(500)"}


def check_kinds(estimator: Any, **wanted: type) -> None:
    """Each of these settings is of its kind or None, or a ValueError says what was wanted."""
    for name, kind in wanted.items():
        value = getattr(estimator, name)
        if value is not None and not isinstance(value, kind):
            raise ValueError(f"{name} must be a {kind.__name__} such as {_EXAMPLES[kind]} or None, got {value!r}")


class HoldsGram:
    """The training sample `X_` in the coordinates of `features_`, rebuilt after loading."""

    features_: Any
    X_: Any

    @property
    def _gram(self) -> Any:
        if "_gram_cache" not in self.__dict__:
            self._gram_cache = represent(self.features_, self.X_)
        return self._gram_cache

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name not in DERIVED}

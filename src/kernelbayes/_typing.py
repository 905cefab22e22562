"""Names for the kinds of array that cross the library's boundaries."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

#: A NumPy array handed to or received from a user.
Array: TypeAlias = np.ndarray

#: An array of either library: NumPy on the host, JAX inside a transformation.
AnyArray: TypeAlias = Any

#: What a user may pass where randomness is needed: a seed, a generator, or nothing.
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None

__all__ = ["AnyArray", "Array", "ArrayLike", "RandomState"]

"""Regression through a mediator, and on learned points: Hsu (2019), chapter 5."""

from ._deconditional import DeconditionalEmbedding
from ._sparse import SparseRegression
from ._task import TaskTransformedGP

__all__ = ["DeconditionalEmbedding", "SparseRegression", "TaskTransformedGP"]

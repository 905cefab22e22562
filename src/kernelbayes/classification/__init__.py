"""Classification by conditional embeddings of labels: Hsu (2019), chapter 3."""

from ._classifier import ConditionalEmbeddingClassifier
from ._network import ConditionalEmbeddingNetwork

__all__ = ["ConditionalEmbeddingClassifier", "ConditionalEmbeddingNetwork"]

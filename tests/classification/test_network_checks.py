"""scikit-learn's checks of conditional embedding networks, on their own since each shape of data is compiled anew."""

import functools

import jax
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelbayes import MLP
from kernelbayes import ConditionalEmbeddingNetwork as Network
from kernelbayes.learning import _preparing


@pytest.fixture(scope="module", autouse=True)
def _compile_quickly():
    """Nearly all of the time here is the compiler's, and of the default network the checks only want that it learns."""
    jax.config.update("jax_disable_most_optimizations", True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_preparing, "MLP", functools.partial(MLP, widths=(32,), activation="tanh"))
        yield
    jax.config.update("jax_disable_most_optimizations", False)


RANDOM = "points are held out at random, so a weight of two is not a point given twice"


@parametrize_with_checks(
    [Network(epochs=12, learning_rate=3e-2, random_state=0)],
    expected_failed_checks=lambda _: {"check_sample_weight_equivalence_on_dense_data": RANDOM},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

"""scikit-learn's checks of conditional embedding networks, on their own since each shape of data is compiled anew."""

import jax
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from kernelbayes import ConditionalEmbeddingNetwork as Network
from kernelbayes.learning._training import Training


@pytest.fixture(scope="module", autouse=True)
def _compile_quickly():
    """Nearly all of the time here is the compiler's."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


RANDOM = "points are held out at random, so a weight of two is not a point given twice"

# Checks of what fit takes and leaves behind. Training sees checked data only, hence need not be compiled for their shapes.
AROUND_TRAINING = {
    "check_n_features_in_after_fitting",
    "check_dtype_object",
    "check_estimators_nan_inf",
    "check_sample_weights_shape",
    "check_sample_weights_pandas_series",
    "check_dont_overwrite_parameters",
    "check_positive_only_tag_during_fit",
    "check_fit_score_takes_y",
    "check_pipeline_consistency",
    "check_estimators_overwrite_params",
    "check_fit_check_is_fitted",
}


def _leave_as_it_starts(training, *_):
    training.curve.append((0.0,) * 5)


@parametrize_with_checks([Network(epochs=12, learning_rate=3e-2, random_state=0)])
def test_scikit_learn_checks(estimator, check, monkeypatch):
    if check.func.__name__ == "check_sample_weight_equivalence_on_dense_data":
        pytest.xfail(RANDOM)
    if check.func.__name__ in AROUND_TRAINING:
        monkeypatch.setattr(Training, "run", _leave_as_it_starts)
    check(estimator)

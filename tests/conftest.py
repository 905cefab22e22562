"""Make tests/oracles importable, and watch what no call may change."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # each worker has a core of its own; before NumPy is imported

import jax
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _global_precision_is_left_alone():
    before = jax.config.jax_enable_x64
    yield
    assert jax.config.jax_enable_x64 == before, "a call changed the global x64 flag"

"""Make tests/oracles importable, compile quickly, and watch what no call may change."""

import gc
import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # each worker has a core of its own, and so has what tests start

import jax
import pytest
from threadpoolctl import threadpool_limits

# A plugin of pytest may have imported NumPy, whose BLAS then never reads the variable.
threadpool_limits(1, user_api="blas")

sys.path.insert(0, str(Path(__file__).parent))


def _compile_quickly():
    """Tests compile many programs and run each a few times, so that optimising them costs far more than it saves.

    With XLA_FLAGS set, even to nothing, they test what users run. A flag that a release of XLA does not know ends the
    process, hence the trial; workers, and commands that tests start, inherit its outcome.
    """
    if "XLA_FLAGS" in os.environ:
        return
    flags = (
        "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
        "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    )
    trial = [sys.executable, "-c", "import jax; jax.devices()"]
    known = subprocess.run(trial, env=os.environ | {"XLA_FLAGS": flags}, capture_output=True).returncode == 0
    os.environ["XLA_FLAGS"] = flags if known else ""


_compile_quickly()  # read when JAX first computes, which no import does


def pytest_collection_finish():
    """What is imported by now stays: the collector need not look through it each time that JAX traces a program."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def _global_precision_is_left_alone():
    before = jax.config.jax_enable_x64
    yield
    assert jax.config.jax_enable_x64 == before, "a call changed the global x64 flag"

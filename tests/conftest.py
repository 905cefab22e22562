"""Compile quickly, on one thread, and watch what no call may change."""

import gc
import os
import subprocess
import sys

import jax
import jaxlib
import pytest
from threadpoolctl import threadpool_limits

if "OMP_NUM_THREADS" not in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"  # each worker has a core of its own, and so has what tests start
    threadpool_limits(1, user_api="blas")  # NumPy may be here already: its BLAS reads the variable once

QUICK_FLAGS = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)


def pytest_configure(config):
    """Tests compile many programs and run each a few times, so that optimising them costs far more than it saves.

    Set XLA_FLAGS to nothing to test what users run; other flags are added to these. JAX reads them when it first
    computes, which no import does. Workers, and commands that tests start, inherit them.
    """
    given = os.environ.get("XLA_FLAGS")
    if given != "" and not hasattr(config, "workerinput"):
        quick = QUICK_FLAGS if _are_known(config) else ""
        os.environ["XLA_FLAGS"] = f"{quick} {given or ''}".strip()


def _are_known(config):
    """Whether this release of XLA has the flags: one that it does not know ends the process, hence a trial in another."""
    key, tried = "kernelbayes/quick_flags", [jaxlib.__version__, QUICK_FLAGS]
    cache = getattr(config, "cache", None)  # not with -p no:cacheprovider
    if cache and cache.get(key, None) == tried:
        return True
    trial = [sys.executable, "-c", "import jax; jax.devices()"]
    known = subprocess.run(trial, env=os.environ | {"XLA_FLAGS": QUICK_FLAGS}, capture_output=True).returncode == 0
    if known and cache:
        cache.set(key, tried)
    return known


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

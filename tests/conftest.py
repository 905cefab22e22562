"""Compile quickly, on one thread, and watch what no call may change."""

import gc
import os
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import jaxlib
import numpy as np
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
    _compile_quickly(config)
    _shift_seeds(config)


def _compile_quickly(config):
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


def pytest_addoption(parser):
    parser.addoption(
        "--shift-seeds",
        type=int,
        default=0,
        metavar="K",
        help="run on other random numbers: K other than 0 moves each seed that NumPy's generators are given",
    )


def _shift_seeds(config):
    """Before test modules, which draw data of their own, are imported."""
    shift = config.getoption("--shift-seeds")
    if not shift:
        return
    folder = str(Path(__file__).parent / "other_seeds")
    os.environ["SHIFT_SEEDS"] = str(shift)  # workers and commands inherit it, with the module that reads it
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
    if not hasattr(np.random.default_rng, "__wrapped__"):
        runpy.run_path(f"{folder}/sitecustomize.py")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--shift-seeds"):
        for item in items:
            if item.get_closest_marker("one_seed"):
                item.add_marker(pytest.mark.skip(reason="holds for the seed that it is written for"))


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

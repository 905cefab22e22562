"""Make tests/oracles importable, compile quickly, and watch what no call may change."""

import gc
import os
import runpy
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # each worker has a core of its own, and so has what tests start

import jax
import numpy as np
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


def pytest_addoption(parser):
    parser.addoption(
        "--shift-seeds",
        type=int,
        default=0,
        metavar="K",
        help="run on other random numbers: K other than 0 moves each seed that NumPy's generators are given",
    )


def pytest_configure(config):
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

"""Run the tests of numbers as another processor would: older instructions, two threads, another order of sets.

    .venv/bin/python .ci/other_processor.py [arguments of pytest]

OpenBLAS, NumPy and XLA choose their code by the processor, and the last digits of a result follow. A test that needs the
digits of one machine fails here, on any machine. Names of files or directories replace the choice of tests.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Where floating point decides. Left out is what reads tables, stores runs, draws figures and repeats experiments.
NUMBERS = (
    *("classification", "embeddings", "features", "filters", "integration", "kernels", "learning", "lfi", "regression"),
    *("test_bayes.py", "test_conditional.py", "test_density_ratio.py", "test_linalg.py"),
)
# The oldest code that OpenBLAS and XLA have for the architecture, which no machine that runs tests would choose.
OLDEST = {
    "x86_64": {"OPENBLAS_CORETYPE": "Prescott", "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"},
    "arm64": {"OPENBLAS_CORETYPE": "ARMV8"},
}
# What the libraries chose. NumPy refuses to disable what it would not use, hence its own list.
LOOK = """
import json
import numpy._core._multiarray_umath as numpy
import scipy.linalg
from threadpoolctl import threadpool_info
print(json.dumps({
    "OpenBLAS": sorted({str(found.get("architecture")) for found in threadpool_info() if found["user_api"] == "blas"}),
    "NumPy": [name for name in numpy.__cpu_dispatch__ if numpy.__cpu_features__[name]],
}))
"""


def chosen(environment: dict[str, str]) -> dict[str, list[str]]:
    """The code that OpenBLAS and NumPy run in this environment."""
    done = subprocess.run([sys.executable, "-c", LOOK], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def main(arguments: list[str]) -> int:
    """Run pytest as another processor would; its exit code."""
    machine = {"AMD64": "x86_64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    here = chosen(dict(os.environ))
    other = os.environ | OLDEST.get(machine, {}) | {"OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "1"}
    other["OPENBLAS_THREAD_TIMEOUT"] = "4"  # waiting threads sleep, as workers of pytest share the cores
    other["NPY_DISABLE_CPU_FEATURES"] = " ".join(here["NumPy"])
    there = chosen(other)
    for library, code in there.items():
        print(f"{library}: {' '.join(here[library]) or 'baseline'} -> {' '.join(code) or 'baseline'}")
    print("XLA:", other.get("XLA_FLAGS", "as it is"), flush=True)
    if there == here:
        print("this would run the code of this machine once more")
        return 1
    if not any(Path(argument.split("::")[0]).exists() for argument in arguments):
        arguments = ["-n", "auto", *arguments, *(str(ROOT / "tests" / name) for name in NUMBERS)]
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=other, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

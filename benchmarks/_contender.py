"""The process of one contender: one core, one BLAS thread, a line of JSON at the end.

python -m benchmarks._contender '{"module": "benchmarks.embeddings", "function": "gram_ours", "settings": {"n": 500}}'
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys


def contend(module: str, function: str, settings: dict) -> dict:
    """What the function found, with the peak memory of the largest process it took."""
    try:
        found = dict(getattr(importlib.import_module(module), function)(**settings))
    except ImportError as reason:  # a peer that is not installed, or not for this Python
        return {"skipped": str(reason)}
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {**found, "peak_gb": max(peaks) / (1e9 if sys.platform == "darwin" else 1e6)}


if __name__ == "__main__":
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints is not the answer
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    answer.write(json.dumps(contend(**json.loads(sys.argv[1]))))
    answer.close()

"""Measuring rows: a process for each contender, and a record that is written after each row.

A contender that crashes or takes too long costs its own part of a row and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks._row import Contender, Row

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "benchmarks" / "results.json"
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
QUICK_LIMIT = 60.0  # seconds for a contender
PACKAGES = ("kernelbayes", "jax", "numpy", "scipy", "scikit-learn")
PEERS = ("coreax", "dppy", "goodpoints", "gpytorch", "hyppo", "sbi", "torch")


def run(rows: Iterable[Row], quick: bool = False) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Each row with its entry of the record, as soon as it is measured. A contender of several rows runs once."""
    done: dict[str, dict[str, Any]] = {}

    def once(contender: Contender, row: Row) -> dict[str, Any]:
        request = _request(contender, row.sized(quick))
        if request not in done:
            done[request] = measure(request, QUICK_LIMIT if quick else row.limit)
        return done[request]

    for row in rows:
        ours = once(row.ours, row)
        peer = once(row.peer, row) if row.peer else None
        entry = {"sizes": row.sized(quick), "ours": ours, "peer": peer, "on": surroundings()}
        yield row, {**entry, "quick": True} if quick else entry


def _request(contender: Contender, settings: Mapping[str, Any]) -> str:
    """Which function to call with what, as its process is told."""
    given = {}
    if isinstance(contender, functools.partial):
        contender, given = contender.func, contender.keywords
    return json.dumps(
        {"module": contender.__module__, "function": contender.__name__, "settings": {**given, **settings}}
    )


def measure(request: str, limit: float) -> dict[str, Any]:
    """What a contender found in a process of its own, or why there is nothing, and how long it took in all."""
    start = time.perf_counter()
    return {**_answer(request, limit), "took": time.perf_counter() - start}


def _answer(request: str, limit: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks._contender", request]
    environment = {**os.environ, **THREADS, "JAX_PLATFORMS": "cpu"}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own, so that its workers end with it
    ) as process:
        try:
            answer, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return {"failed": f"took longer than {limit:g} s"}
        finally:
            if process.poll() is None:  # too late, or an interrupt
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode < 0:
        return {"failed": f"ended by signal {-process.returncode}"}
    if process.returncode:
        return {"failed": (errors.strip().splitlines() or ["no message"])[-1]}
    return json.loads(answer)


def surroundings() -> dict[str, str]:
    """The machine and the versions of what is compared, without importing any of it."""
    versions = {"cores": str(os.cpu_count()), "machine": platform.machine(), "Python": platform.python_version()}
    for name in (*PACKAGES, *PEERS):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {"date": time.strftime("%Y-%m-%d"), **versions}


def load(path: Path) -> dict[str, Any]:
    """The record, or an empty one."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def save(path: Path, text: str) -> None:
    """Write in one go: an interrupt leaves what was there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)

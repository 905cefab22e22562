"""The layers of the library: who may import whom, read off the source of every module, imports inside functions included."""

import ast
import functools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import kernelbayes

ROOT = Path(kernelbayes.__file__).parent

#: From the bottom up. A layer may import from those above it in this table; peers of one row do not know each other.
LAYERS = {
    "words": {"_typing"},
    "plain tools": {
        "_backend",
        "_catalogue",
        "_check",
        "_designs",
        "_linalg",
        "_progress",
        "_summary",
        "_table",
        "_warning",
    },
    "kernels": {"kernels"},
    "features": {"features"},
    "embeddings": {"embeddings"},
    "rules": {"rules"},
    "learning": {"learning"},
    "estimators' tools": {"_estimator"},
    "runs": {"simulation"},
    "applications": {
        *("conditional", "densities", "density_ratio", "bayes"),
        *("filters", "lfi", "classification", "regression", "integration"),
    },
    "files": {"_persist"},
    "figures": {"plotting"},
    "the public page": {"kernelbayes"},
    "what a person runs": {"cli", "demos", "experiments"},
}

#: Peers that build on each other, and why.
PEERS = {
    ("_linalg", "_backend"): "formulas run in NumPy and in JAX",
    ("_table", "_check"): "checks of what is read",
    ("_summary", "_table"): "a summary can be written as a table",
    ("bayes", "conditional"): "a prior is pushed through a conditional embedding",
    ("bayes", "density_ratio"): "importance weights are a density ratio",
    ("lfi", "bayes"): "kernel Bayes' rule is one of the methods",
    ("lfi", "densities"): "a likelihood is a density learned from simulations",
    ("lfi", "conditional"): "so is a conditional embedding",
    ("regression", "conditional"): "a deconditional embedding is the inverse of one",
    ("cli", "demos"): "`kernelbayes demo` runs them",
    ("cli", "experiments"): "`kernelbayes experiment` runs them",
}

#: What is stricter than the order of the layers.
NEVER = {
    ("rules", "kernels"): "rules are functions of matrices",
    ("rules", "features"): "rules are functions of matrices",
    ("rules", "embeddings"): "rules are functions of matrices",
    ("simulation", "kernels"): "workers get arrays and simulators, never kernels",
    ("simulation", "features"): "workers get arrays and simulators, never kernels",
    ("simulation", "embeddings"): "workers get arrays and simulators, never kernels",
    ("simulation", "rules"): "workers get arrays and simulators, never kernels",
    ("simulation", "learning"): "workers get arrays and simulators, never kernels",
}

#: Against the order, but only inside a function, when it is called.
ON_USE = {
    ("filters", "plotting"): "`plot` of a result",
    ("lfi", "plotting"): "`plot` of a result",
    ("classification", "plotting"): "`plot_...` of a classifier",
    ("regression", "plotting"): "`plot` of a model",
    ("integration", "plotting"): "`plot` of a result",
}

RANK = {unit: rank for rank, units in enumerate(LAYERS.values()) for unit in units}
UNITS = sorted(RANK)


@dataclass(frozen=True)
class Import:
    """One import: in which module and line, of which unit of the library, and whether only when a function is called."""

    source: str
    line: int
    unit: str
    target: str
    on_use: bool

    def __str__(self) -> str:
        return f"{self.source}:{self.line} imports {self.target}"


def imports(path: Path) -> list[Import]:
    """All imports of the library by one of its modules."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    package, source = list(parts[:-1]), str(path.relative_to(ROOT.parent))
    own = unit_of([{"__main__": "cli"}.get(p, p) for p in parts if p != "__init__"])  # it is the command line
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        for name in names(node, package):
            target = unit_of(name)
            if target != own:
                found.append(Import(source, node.lineno, own, target, id(node) in called))
    return found


def names(node: ast.AST, package: list[str]) -> list[list[str]]:
    """Full names, in parts, of what a statement imports from the library."""
    if isinstance(node, ast.Import):
        full = [alias.name.split(".") for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) + 1 - node.level] if node.level else []
        base += node.module.split(".") if node.module else []
        full = [[*base, alias.name] for alias in node.names]
    else:
        return []
    return [name for name in full if name[0] == "kernelbayes"]


def unit_of(name: list[str]) -> str:
    """The part of the library that a name belongs to; what the public page itself defines belongs to it."""
    return name[1] if len(name) > 1 and name[1] in RANK else "kernelbayes"


def verdict(found: Import) -> str | None:
    """What is wrong with an import, or None."""
    pair = found.unit, found.target
    if pair in NEVER:
        return f"{found}: {NEVER[pair]}"
    if pair in ON_USE:
        return None if found.on_use else f"{found} at its top; it may do so inside a function only, for {ON_USE[pair]}"
    if pair in PEERS or RANK[found.target] < RANK[found.unit]:
        return None
    kind = "its peer" if RANK[found.target] == RANK[found.unit] else "a layer above its own"
    return f"{found}, {kind}"


@functools.cache
def all_imports() -> list[Import]:
    """Those of every module, read when first asked for."""
    modules = sorted({*ROOT.rglob("*.py"), *ROOT.rglob("*.pyi")})  # the public page imports on use, from a stub
    return [found for path in modules for found in imports(path)]


def test_every_part_of_the_library_has_a_layer():
    parts = {path.stem if path.suffix else path.name for path in ROOT.iterdir() if not path.name.startswith("__")}
    assert parts - {"py", "py.typed"} == set(RANK) - {"kernelbayes"}


@pytest.mark.parametrize("unit", UNITS)
def test_imports_only_from_below(unit):
    wrong = [said for found in all_imports() if found.unit == unit and (said := verdict(found)) is not None]
    assert not wrong, "\n".join(wrong)


def test_no_exception_is_left_over():
    """An exception that no module needs any more hides the next one who does."""
    used = {(found.unit, found.target) for found in all_imports()}
    assert not (PEERS.keys() | ON_USE.keys()) - used


def test_the_rules_can_be_broken():
    upwards = Import("kernelbayes/kernels/_base.py", 1, "kernels", "rules", on_use=True)
    eager = Import("kernelbayes/filters/_track.py", 1, "filters", "plotting", on_use=False)
    peer = Import("kernelbayes/filters/_track.py", 1, "filters", "lfi", on_use=True)
    strict = Import("kernelbayes/rules/bayes.py", 1, "rules", "kernels", on_use=False)
    assert all(verdict(wrong) for wrong in (upwards, eager, peer, strict))
    tree = ast.parse(
        "from .. import _check, plotting\nfrom ..kernels._base import Kernel\nimport kernelbayes.cli, numpy"
    )
    found = [name for node in ast.walk(tree) for name in names(node, ["kernelbayes", "filters"])]
    assert [unit_of(name) for name in found] == ["_check", "plotting", "kernels", "cli"]


@pytest.fixture(scope="module")
def importing():
    """What is loaded by the package itself, by its simulations, and by all its names, told by one new process.

    Names of several applications are first used in threads, at the same time.
    """
    code = """
import json, sys, threading
start = set(sys.modules)
import kernelbayes
package = set(sys.modules)
kernelbayes.simulate
simulations = set(sys.modules)
import jax
config, failed = jax.config.values.copy(), []
def touch(name):
    try:
        getattr(kernelbayes, name)
    except BaseException as error:
        failed.append(repr(error))
names = "ConditionalEmbeddingClassifier", "KernelBayesFilter", "infer", "integrate"
threads = [threading.Thread(target=touch, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
from kernelbayes import *
from jax._src import xla_bridge
try:
    kernelbayes.Gausian
except AttributeError:
    sys.excepthook(*sys.exc_info())
print(json.dumps({
    "config": jax.config.values == config, "backends": list(xla_bridge._backends),
    "package": sorted(package - start), "simulations": sorted(simulations - package),
    "names": sorted(set(sys.modules) - simulations), "failed": failed,
}))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout) | {"said": done.stderr}


@pytest.mark.one_seed  # other seeds are set by a module that imports NumPy at the start
def test_import_waits_for_what_is_used(importing):
    """The package alone needs none of its foundations, and a name brings what it needs."""
    assert not {"jax", "numpy", "scipy", "sklearn"} & set(importing["package"])
    assert "numpy" in importing["simulations"]
    assert "kernelbayes.kernels" in importing["names"]
    assert not {"jax", "sqlite3", "multiprocessing", "tqdm", "cloudpickle"} & set(importing["simulations"])


def test_import_starts_nothing(importing):
    """No JAX backend, and no change of configuration."""
    assert importing["config"]
    assert importing["backends"] == []


def test_import_leaves_heavy_libraries_alone(importing):
    """None of these is imported. Pandas is not among them: scikit-learn takes it where there is one."""
    heavy = {"matplotlib", "arviz", "xarray", "dask", "optax", "tqdm", "sqlite3"}
    assert not heavy & set(importing["names"])


def test_names_are_imported_in_threads(importing):
    """Two threads that import scikit-learn at once find it half done, so that names are imported one after the other."""
    assert importing["failed"] == []


def test_the_public_page(importing):
    """What type checkers see is what there is, and a misspelt name is met with the right one."""
    tree = ast.parse((ROOT / "__init__.pyi").read_text(encoding="utf-8"))
    listed = next(node.value for node in tree.body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(listed)) == sorted(kernelbayes.__all__)
    assert {*kernelbayes.__all__, "lfi", "plotting", "__version__"} <= set(dir(kernelbayes))
    assert "module 'kernelbayes' has no attribute 'Gausian'. Did you mean: 'Gaussian'?" in importing["said"]

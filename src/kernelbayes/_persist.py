"""Saving fitted objects as data: one .npz file holding arrays and a JSON description. No pickle, and loading runs no code.

An object of this library is written as its class name and its attributes, and rebuilt by setting them again. Names are
looked up among the library's own classes and nowhere else, so a file can describe an object but not make anything run.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ._estimator import DERIVED
from .bayes import KernelBayesRule
from .classification._probabilities import ProbabilisticClassifier
from .classification._sums import Sums
from .conditional import ConditionalEmbedding
from .density_ratio import DensityRatio
from .embeddings import CrossCovariance, Embedding, Health, Posteriors, TestResult
from .features import Features, Recipe
from .filters import KernelBayesFilter, KernelMonteCarloFilter, Track, TrackDiagnostics
from .integration import Integral, QuadratureRule
from .kernels import Kernel
from .kernels._distributions import Column, Independent, Mixture, Normal
from .learning import Calibrator, Optimum
from .learning._classification import Labelled
from .learning._conditional import ConditionalParameters, Regulariser
from .learning._mediated import MediatedParameters
from .learning._networks import MLP, ConvNet, Standardised
from .learning._sparse import SparseParameters
from .lfi import Calibration, EpsilonKernel, ParameterPosterior, PredictiveCheck, Prior
from .lfi._blocks import Block
from .lfi._law import Law
from .regression._mediated import MediatedModel
from .regression._sparse import SparseRegression
from .simulation import Failure, Runs

SCHEMA = 1
_ROOTS: tuple[type, ...] = (
    Kernel,
    Features,
    Recipe,
    Embedding,
    CrossCovariance,
    TestResult,
    Optimum,
    ConditionalParameters,
    Regulariser,
    ConditionalEmbedding,
    MediatedModel,
    MediatedParameters,
    SparseRegression,
    SparseParameters,
    ProbabilisticClassifier,
    Calibrator,
    Labelled,
    Sums,
    DensityRatio,
    KernelBayesRule,
    KernelBayesFilter,
    KernelMonteCarloFilter,
    Health,
    Posteriors,
    Track,
    TrackDiagnostics,
    Column,
    Independent,
    Normal,
    Mixture,
    MLP,
    ConvNet,
    Standardised,
    Prior,
    Block,
    Law,
    EpsilonKernel,
    ParameterPosterior,
    PredictiveCheck,
    Calibration,
    QuadratureRule,
    Integral,
    Runs,
    Failure,
)


def _family(cls: type) -> Iterable[type]:
    yield cls
    for sub in cls.__subclasses__():
        if sub.__module__.startswith("kernelbayes."):
            yield from _family(sub)


def _known() -> dict[str, type]:
    return {cls.__name__: cls for root in _ROOTS for cls in _family(root)}


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, an embedding, a kernel, features or a result to a file.

    The file has the name that is given, whatever it ends in; `.npz` is usual.

    What holds a function of yours (a `FunctionKernel`, a network that is not `kb.MLP` or `kb.ConvNet`) cannot be written as
    data and raises ValueError.

    Example:
        >>> import os, tempfile, numpy as np, kernelbayes as kb
        >>> path = os.path.join(tempfile.mkdtemp(), "model.npz")
        >>> x = np.linspace(0, 1, 50)[:, None]
        >>> model = kb.ConditionalEmbedding().fit(x, x[:, 0] ** 2)
        >>> kb.save(model, path)
        >>> bool(np.array_equal(kb.load(path).predict(x), model.predict(x)))
        True
    """
    if type(model) not in _known().values():
        raise ValueError(f"save takes an object of kernelbayes, got {type(model).__name__}")
    arrays: dict[str, np.ndarray] = {}
    description = {"schema": SCHEMA, "object": _encode(model, type(model).__name__, arrays)}
    path = _place(path)
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"{path} is a folder" if path.is_dir() else f"there is no folder {path.parent} to save into")
    unfinished = path.with_name(path.name + ".part")
    with open(unfinished, "wb") as file:
        np.savez(file, description=np.array(json.dumps(description)), **arrays)  # type: ignore[arg-type]
    os.replace(unfinished, path)  # a crash leaves the old file or the new one, never half of one


def _place(path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path):
        raise ValueError(f"path must be the name of a file, got {path!r}")
    return Path(path)


def load(path: str | os.PathLike[str]) -> Any:
    """Read what `save` wrote."""
    path = _place(path)
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:  # NumPy leaves a broken file open
            contents = dict(file)
        description = json.loads(str(contents.pop("description")))
        schema = int(description["schema"])
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path} is not a file saved by kernelbayes") from None
    if schema > SCHEMA:
        raise ValueError(f"{path} was saved by a newer kernelbayes (format {schema}, this one reads up to {SCHEMA})")
    return _decode(description["object"], contents, _known())


def _encode(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, jax.Array):
        value = np.asarray(value)
    if isinstance(value, np.generic):
        return _encode(value.item(), where, arrays)
    if isinstance(value, np.ndarray) and value.dtype != object:
        key = f"a{len(arrays)}"
        arrays[key] = value
        return {"array": key}
    if isinstance(value, np.ndarray):
        return {"objects": [_encode(v, f"{where}[{i}]", arrays) for i, v in enumerate(value)]}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_encode(v, f"{where}[{i}]", arrays) for i, v in enumerate(value)]}
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {"dict": {k: _encode(v, f"{where}.{k}", arrays) for k, v in value.items()}}
    if isinstance(value, dict):  # keys of other kinds, such as labels
        pairs = [[_encode(k, where, arrays), _encode(v, f"{where}[{k!r}]", arrays)] for k, v in value.items()]
        return {"pairs": pairs}
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return None  # a source of randomness is spent, not kept
    if hasattr(value, "_settled"):  # what is formed on demand is formed now
        value = value._settled()  # type: ignore[attr-defined]
    if type(value) in _known().values():
        state = {k: v for k, v in vars(value).items() if k not in DERIVED}
        return {
            "type": type(value).__name__,
            "state": {k: _encode(v, f"{where}.{k}", arrays) for k, v in state.items()},
        }
    raise ValueError(f"{where} is a {type(value).__name__}, which cannot be saved as data")


def _decode(value: Any, arrays: dict[str, np.ndarray], known: dict[str, type]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "objects" in value:
        out = np.empty(len(value["objects"]), dtype=object)
        for i, item in enumerate(value["objects"]):
            out[i] = _decode(item, arrays, known)
        return out
    if "list" in value:
        return [_decode(v, arrays, known) for v in value["list"]]
    if "tuple" in value:
        return tuple(_decode(v, arrays, known) for v in value["tuple"])
    if "pairs" in value:
        return {_decode(k, arrays, known): _decode(v, arrays, known) for k, v in value["pairs"]}
    if "dict" in value:
        return {k: _decode(v, arrays, known) for k, v in value["dict"].items()}
    if value["type"] not in known:
        raise ValueError(f"the file describes a {value['type']}, which this version of kernelbayes does not know")
    made = object.__new__(known[value["type"]])
    for name, item in value["state"].items():
        object.__setattr__(made, name, _decode(item, arrays, known))
    return made

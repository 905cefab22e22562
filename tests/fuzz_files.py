"""Files made to harm, for `kb.load`: genuine ones with something changed.

A few of them are part of the tests. For many more: python tests/fuzz_files.py 5000
"""

import copy
import io
import json
import struct
import sys
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import stats

import kernelbayes as kb
from kernelbayes._persist import _known

MOST_SECONDS, MOST_BYTES = 1.0, 100 * 2**20
WORDS = ("test", "__class__", "norm", "system", "relu", "", "\0", "kernel", "a" * 5000, "'=1+1", "../../x", "NaN")
NUMBERS = (float("nan"), float("inf"), -float("inf"), -1, 0, 10**30, 10**300, 1e308, 2**63, True, False, None, 0.5)
DTYPES = ("<f8", ">f8", "<i8", "|b1", "<U3", "|S2", "<c16", "<M8[s]", "|O", "|V8", "<U0", "[('a', '<f8')]", "(2,)<f8")


def genuine():
    """Objects that hold objects of most classes."""
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(12, 2)), np.array(["a", "b"] * 6)
    kernel = 2.0 * kb.Gaussian([1.0, 2.0]) + kb.Linear().on(0) * kb.Matern(1.5)
    regs = {"reg": 1e-2, "prior_reg": 1e-2, "transition_reg": 1e-2}
    network = kb.MLP(2, 2, widths=(3,), random_state=0)
    prior = kb.Prior(
        a=(0, 1), b=stats.gamma(2.0), k=stats.poisson(3), m=stats.multivariate_normal([0.0, 1.0], np.eye(2))
    )
    rule = kb.KernelBayesRule("kbr", kb.Gaussian(2.0), kb.Gaussian(1.0), reg=1e-2, prior_reg=1e-3).fit(X, X)
    return [
        kernel,
        kb.Neural(network),
        kb.Subspace(5, "herding"),
        prior,
        kb.ConditionalEmbedding(kb.Gaussian(1.0), reg=1e-2).fit(X, X[:, 0]),
        kb.ConditionalEmbedding(features=kb.OneHot(), reg=1e-2).fit(labels, X[:, 0]),
        rule.posterior(X[:3], X[:4]),
        kb.KernelBayesFilter("kbr", kb.Gaussian(1.0), kb.Gaussian(1.0), **regs).fit(X, X),
        kb.AnalyticEmbedding(kb.Mixture([stats.norm(), stats.norm(3)]), kb.Gaussian(0.7)),
        kb.quadrature(kb.Gaussian(1.0), stats.norm(), 5, random_state=0),
        kb.Covariance(X, kb.Gaussian(1.0)),
        kb.MeanEmbedding([X[:3], X[3:]], kernel=kb.SetKernel()),
    ]  # fmt: skip


def parts(path):
    """The description of a genuine file, and its arrays."""
    with np.load(path) as file:
        arrays = dict(file)
    return json.loads(str(arrays.pop("description"))), arrays


def crafted(rng, description, arrays):
    """One file: the bytes of a genuine one with a few things changed."""
    description, members = copy.deepcopy(description), {name: npy(array) for name, array in arrays.items()}
    for _ in range(int(rng.integers(1, 4))):
        (change_description if rng.random() < 0.65 else change_member)(rng, description, members)
    text = json.dumps(description)
    if rng.random() < 0.03:
        text = "[" * int(rng.integers(1, 200_000)) + text
    return archive(rng, {"description": npy(np.array(text)), **members})


def places(value, found):
    """Every dict and list of a description, with its keys."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(item, (dict, list)):
            places(item, found)
    return found


def change_description(rng, description, members):
    spots = places(description["object"], []) if isinstance(description.get("object"), dict) else []
    if not spots:
        return
    holder, key = spots[rng.integers(len(spots))]
    other, at = spots[rng.integers(len(spots))]
    choice = rng.integers(9)
    if choice == 0:
        del holder[key]
    elif choice == 1:
        holder[key] = NUMBERS[rng.integers(len(NUMBERS))]
    elif choice == 2:
        holder[key] = WORDS[rng.integers(len(WORDS))]
    elif choice == 3 and other is not holder:
        try:
            holder[key] = copy.deepcopy(other[at])
        except (KeyError, IndexError):
            return
    elif choice == 4:
        holder[key] = {"type": str(rng.choice([*_known(), "Popen", "Scalar"])), "state": {}}
    elif choice == 5:
        holder[key] = nested(int(rng.integers(1, 3000)))
    elif choice == 6 and isinstance(holder, dict):
        holder[WORDS[rng.integers(len(WORDS))]] = 1
    elif choice == 7:
        holder[key] = {str(rng.choice(["list", "tuple", "dict", "pairs", "objects", "array"])): holder[key]}
    else:
        holder[key] = {"tuple": [1] * int(rng.integers(1, 200_000))}


def nested(depth):
    out = {"type": "Gaussian", "state": {"lengthscale": 1.0}}
    for _ in range(min(depth, 150)):
        out = {"type": "Scaled", "state": {"kernel": out, "scale": 1.0}}
    return out


def change_member(rng, description, members):
    if not members:
        return
    name = sorted(members)[rng.integers(len(members))]
    choice = rng.integers(6)
    if choice == 0:
        del members[name]
    elif choice == 1:
        members[name] = bytes(rng.integers(0, 256, 200, dtype=np.uint8))
    elif choice == 2:
        values = np.array([["x", "y"], [np.nan, np.inf], [1.0, 2.0]][rng.integers(3)])
        members[name] = npy(values)
    elif choice == 3:
        shape = tuple(int(10 ** rng.uniform(0, 19)) * (rng.random() > 0.2) for _ in range(rng.integers(0, 4)))
        members[name] = npy(np.zeros(3), shape=shape, dtype=DTYPES[rng.integers(len(DTYPES))])
    elif choice == 4:
        data = bytearray(members[name])
        data[rng.integers(len(data))] = rng.integers(256)
        members[name] = bytes(data)
    else:
        members[name] = members[name][: rng.integers(len(members[name]) + 1)]


def npy(array, shape=None, dtype=None):
    """The bytes of an array, perhaps with a header that says something else."""
    out = io.BytesIO()
    if shape is None:
        np.lib.format.write_array(out, array, allow_pickle=False)
        return out.getvalue()
    descr = dtype if dtype.startswith("[") or dtype.startswith("(") else repr(dtype)
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape!r}, }}"
    header = header.ljust(-(-(len(header) + 11) // 64) * 64 - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.tobytes()


def archive(rng, members):
    """A .npz of these members: as `save` writes it, or compressed, or with lies in its directory."""
    out, lie = io.BytesIO(), rng.random()
    how = zipfile.ZIP_DEFLATED if lie < 0.05 else zipfile.ZIP_STORED
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", how) as file:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
        if lie < 0.005:
            file.writestr("a0.npy", bytes(20_000_000))
        elif 0.05 < lie < 0.08:
            file.writestr("description.npy", b"x")
        elif 0.08 < lie < 0.083:
            for i in range(20_000):
                file.writestr(f"b{i}.npy", b"")
    data = bytearray(out.getvalue())
    if 0.1 < lie < 0.2:
        for _ in range(int(rng.integers(1, 30))):
            data[-int(rng.integers(1, min(len(data), 2000)))] = rng.integers(256)
    elif 0.2 < lie < 0.25:
        del data[int(rng.integers(len(data))) :]
    return bytes(data)


def outcome(path, measured=False):
    """What `load` makes of a file, its CPU seconds, and the bytes it took if they are measured."""
    if measured:
        tracemalloc.start()
    start = time.process_time()
    try:
        kb.load(path)
        found = "loaded"
    except ValueError as problem:
        named = str(path) in str(problem) and "\n" not in str(problem) and len(str(problem)) < 5000
        found = "refused" if type(problem) is ValueError and named else f"unnamed: {problem!r}"
    except Exception as problem:
        found = f"other: {problem!r}"
    seconds, peak = time.process_time() - start, 0
    if measured:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return found, seconds, peak


def run(count, folder, seed=0, measured=False):
    """Outcomes of so many files."""
    rng, sources, path = np.random.default_rng(seed), [], Path(folder) / "crafted.npz"
    for value in genuine():
        kb.save(value, path)
        sources.append(parts(path))
    for i in range(count):
        data = crafted(rng, *sources[i % len(sources)])
        path.write_bytes(data)
        found = outcome(path, measured)
        if found[1] > MOST_SECONDS or found[2] > MOST_BYTES or found[0] not in ("loaded", "refused"):
            (Path(folder) / f"bad{seed}-{i}.npz").write_bytes(data)
        yield found


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory(delete=False)
        if sys.version_info >= (3, 12)
        else tempfile.TemporaryDirectory() as at
    ):
        seen = list(run(int(sys.argv[1]), at, int(sys.argv[2]) if len(sys.argv) > 2 else 0, measured=True))
        print(Counter(found.split(":")[0] for found, *_ in seen))
        print("over a second", sum(s > MOST_SECONDS for _, s, _ in seen), "longest", max(s for _, s, _ in seen))
        print("over 100 MB", sum(b > MOST_BYTES for *_, b in seen), "largest", max(b for *_, b in seen) / 2**20)
        print(*{found for found, *_ in seen if found not in ("loaded", "refused")}, sep="\n")

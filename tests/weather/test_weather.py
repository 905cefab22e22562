"""Bad weather: public calls under random bad input give finite numbers, or a refusal that names the argument, in time.

An *entry* is a public call written as a small function of named arguments. The default of an argument is its *climate*:
what it may be given when the weather is fair, and what when it is foul. A case is an entry, a size, and a word for the
weather of each argument, from which the input is built, so that the line that a failure prints runs again as it is:

    from test_weather import run
    run("mmd", tall=12, wide=2, X="times 1e-200, float32", Y="fair")

A case ends in a *result*, is *refused*, is *moot* where the entry itself could make nothing of the input, or has *failed*: a
result that is not finite, or that was got from a mask, a date or a gap as if it were a number, or that changed with the
order of columns that have names; an error that the library did not mean to raise, or that names no argument; too much time.

The suite tries a few cases of each entry. `python tests/weather/test_weather.py --calls 50000` shares so many out among the
entries, goes on after failures, and counts them; `--entry mmd` keeps to one entry, `--seed` takes others. What runs is
written to `--journal` before it does, for the day on which a case takes the process down.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import inspect
import linecache
import re
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import sklearn
from climates import FRAMES, Points, holds
from entries import ENTRIES

import kernelbayes as kb

HERE = Path(__file__).parent
SECONDS = 20  # of CPU for one case; the slowest fair one takes about one
OWN_WARNINGS = "the optimiser stopped early|the features learned nothing|the first chunk has"
NAMES_OF_OURS = ("FactorisationError", "NoClosedForm", "SimulationError", "NotFittedError")


class TooSlow(BaseException):
    pass


def _time_is_up(signum, frame):
    raise TooSlow(f"more than {SECONDS} s of CPU")


def climates(name):
    return {arg: p.default for arg, p in inspect.signature(ENTRIES[name]).parameters.items()}


def finite(value):
    """Whether all numbers in a result are."""
    if isinstance(value, (tuple, list)):
        return all(map(finite, value))
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    array = np.asarray(value)
    return array.dtype.kind in "USb" or bool(np.isfinite(array.astype(float)).all())


def same(one, other):
    """Whether two results hold the same numbers, but for rounding."""
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype.kind in "USb":
        return np.array_equal(one, other)
    return one.shape == other.shape and np.allclose(one.astype(float), other.astype(float), 1e-5, 1e-8)


def let_in(args, table, given):
    """What is wrong with a result: an input held a mask, a date or a gap, where none may be."""
    # kernels of labels and of objects take dates, and a function of objects may take anything
    objects = any(isinstance(v, kb.Kernel) and not v._takes_vectors for v in args.values())
    objects |= any(isinstance(v, kb.OneHot) for v in args.values())
    for arg, climate in table.items():
        found = holds(args[arg], given.get(arg, ""))
        points = isinstance(climate, Points)
        if objects or (points and climate.dates):
            found -= {"a date"}
        if objects or not points or climate.gaps or args[arg] is None:
            found -= {"a gap"}
        if found:
            return f"{found.pop()} in {arg} was taken for numbers"
    return None


def complaint(error, args):
    """What is wrong with a refusal, or nothing."""
    frames = traceback.extract_tb(error.__traceback__)
    if type(error).__name__ in ("ValueError", "TypeError", "InvalidParameterError") and any(
        frame.filename.startswith(str(Path(sklearn.__file__).parent)) for frame in frames
    ):
        return None  # its own validation
    home = str(Path(kb.__file__).parent)
    if Path(frames[-1].filename).parent == HERE or any(
        Path(frame.filename).parent == HERE and frame.name == "<lambda>" for frame in frames
    ):
        return None  # a mistake in the user's function is the user's to see
    if isinstance(error, TypeError) and "<lambda>() takes" in str(error):
        return None  # and so is one that takes other arguments
    if isinstance(error, FileNotFoundError) and "path" in args:
        return None
    if not isinstance(error, (ValueError, TypeError)) and type(error).__name__ not in NAMES_OF_OURS:
        return f"a {type(error).__name__}"
    if not frames[-1].filename.startswith(home):
        return "not raised by the library"
    if not linecache.getline(frames[-1].filename, frames[-1].lineno).strip().startswith("raise "):
        return "not raised on purpose"
    if isinstance(error, kb.NoClosedFormError):
        return None  # names the kernel and the distribution
    if len(str(error)) > 1500:
        return "a message longer than anybody reads"
    names = {
        *(arg.split("__")[0] for arg in args),
        "kernel",
        "distribution",
        "distributions",
        "map",
        "theta",
        "simulations",
        "weights",
    }
    names |= {"file", "folder", "points", "prior", "observations", "epsilon", "statistics", "scale", "parameters", "X"}
    if not any(re.search(rf"\b{name}\b", str(error), re.IGNORECASE) for name in names):
        return "names no argument"
    return None


def outcome(name, tall, wide, **given):
    """("result" or "refused", None), or ("failed", why), of one case."""
    table = climates(name)
    args = {}
    for arg, climate in table.items():
        args[arg] = climate.build(given.get(arg, next(iter(climate.fair))), arg, tall, wide)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, _time_is_up)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # the library's own
            warnings.filterwarnings("ignore", OWN_WARNINGS, RuntimeWarning)
            result = ENTRIES[name](**args)
            if not finite(result):
                return "failed", f"not finite: {result!r:.300}"
            wrong = let_in(args, table, given) or swapped(name, tall, wide, given, result)
            return ("result", None) if wrong is None else ("failed", wrong)
    except TooSlow as error:
        return "failed", str(error)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        if not any(frame.filename.startswith(str(Path(kb.__file__).parent)) for frame in frames):
            return "moot", None  # the entry itself could make nothing of this input
        why = complaint(error, table)
        if why is None:
            return "refused", None
        last = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[:-5:-1])
        return "failed", f"{why}: {type(error).__name__}: {str(error)[:300]} [{last}]"
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)


def swapped(name, tall, wide, given, result):
    """Whether a result depends on the order of columns that have names; else None."""
    table = climates(name)
    known = [arg for arg in table if isinstance(table[arg], Points) and (table[arg].names or table[arg].like)]
    known = [arg for arg in known if table[arg].names or given.get(table[arg].like) == "frame"]
    ordered = {arg: "frame" if word == "shuffled frame" and arg in known else word for arg, word in given.items()}
    if ordered == given:
        return None
    return None if same(result, run(name, tall, wide, **ordered)) else "columns were swapped: read by their places"


def run(name, tall=12, wide=2, **given):
    """One case again, with its traceback."""
    args = {a: c.build(given.get(a, next(iter(c.fair))), a, tall, wide) for a, c in climates(name).items()}
    return ENTRIES[name](**args)


@st.composite
def cases(draw, name):
    """A size, and a word for each argument: most are fair, one or two foul."""
    table = climates(name)
    case = {"tall": draw(st.sampled_from([12, 12, 12, 6])), "wide": draw(st.sampled_from([2, 2, 1, 3]))}
    data = [arg for arg, climate in table.items() if isinstance(climate, Points)]
    named = [arg for arg in data if table[arg].like or table[arg].names] if FRAMES else []
    shuffled = draw(st.sampled_from([*named, *[None] * (len(named) + 6)])) if named else None
    foul = draw(st.sets(st.sampled_from([*table, *data, *data]), min_size=1, max_size=2)) if shuffled is None else ()
    for arg, climate in table.items():
        case[arg] = draw(climate.foul if arg in foul else st.sampled_from(list(climate.fair)))
    if shuffled is not None:
        case[shuffled] = "shuffled frame"
        case.update(dict.fromkeys([table[shuffled].like] if table[shuffled].like else [], "frame"))
    return case


def shown(name, case):
    size = f"tall={case['tall']}, wide={case['wide']}"
    words = ", ".join(f"{arg}={word!r}" for arg, word in case.items() if arg not in ("tall", "wide"))
    return f"run({name!r}, {size}, {words})"


SLOW = ("infer", "infer_settings", "quadrature", "integrate", "classifier_network", "learned_features")
SLOW += ("plots", "task_gp_chosen", "conditional_chosen", "bayes_chosen", "classifier_chosen", "sparse_learned")
KINDS = ("result", "refused", "moot", "failed")
SETTINGS = hypothesis.settings(
    derandomize=True,
    deadline=None,
    database=None,
    phases=[hypothesis.Phase.generate],  # a case is short as it is, and shrinking one that compiles takes minutes
    suppress_health_check=list(hypothesis.HealthCheck),
)


@pytest.mark.parametrize("name", ENTRIES)
def test_bad_weather(name):
    @hypothesis.settings(SETTINGS, max_examples=4 if name in SLOW else 12)
    @hypothesis.given(cases(name))
    def tried(case):
        kind, why = outcome(name, **case)
        assert kind != "failed", f"{shown(name, case)}\n{why}"

    tried()


# Arguments by which data comes in, and what only the library itself calls, or makes of what it has checked.
DATA = {"X", "Y", "y", "Z", "x", "theta", "truth", "points", "weights", "observations", "states", "controls", "control"}
DATA |= {
    "observed",
    "observation",
    "parameters",
    "outputs",
    "candidates",
    "initial",
    "times",
    "numerator",
    "z",
    "z_task",
}
DATA |= {"denominator", "sample_weight", "prior", "coefficients", "matrix", "V", "f", "g", "simulator", "transition"}
INSIDE = {
    "on_atoms",
    "regressors",
    "stretch",
    "bind",
    "of",
    "Belief",
    "TrackDiagnostics",
    "Posterior",
    "Posteriors",
    "ConvNet",
}
INSIDE |= {"ParameterPosterior", "PredictiveCheck", "QuadratureRule", "Integral", "Runs", "Failure"}


def test_every_call_that_takes_data_is_among_the_entries():
    written = (HERE / "entries.py").read_text()
    page = (HERE.parent / "public_api.txt").read_text()
    missing = []
    for path, given in re.findall(r"^(?:class )?kernelbayes\.([\w.]+)\((.*)\)$", page, re.MULTILINE):
        name = path.split(".")[-1]
        if DATA & set(re.findall(r"\w+", given)) and name not in INSIDE and not re.search(rf"\.{name}\(", written):
            missing.append(path)
    assert not missing


@pytest.mark.parametrize("hidden", ["masked", "dates of NumPy as objects", "NaN"])
def test_what_slips_in_is_a_failure(hidden, monkeypatch):
    """The sweep itself: an entry that takes anything for numbers fails."""
    monkeypatch.setitem(ENTRIES, "careless", lambda X=Points(): np.nan_to_num(np.asarray(X).astype(float)).sum())  # noqa: B008
    assert outcome("careless", 12, 2, X="fair") == ("result", None)
    kind, why = outcome("careless", 12, 2, X=hidden)
    assert kind == "failed"
    assert why.endswith("in X was taken for numbers")


@pytest.mark.skipif(not FRAMES, reason="needs pandas")
def test_what_is_read_by_its_place_is_a_failure(monkeypatch):
    def careless(X=Points(), Y=Points(like="X")):  # noqa: B008
        return np.asarray(X) @ np.asarray(Y).T

    monkeypatch.setitem(ENTRIES, "careless", careless)
    assert outcome("careless", 12, 2, X="frame", Y="frame") == ("result", None)
    kind, why = outcome("careless", 12, 2, X="frame", Y="shuffled frame")
    assert kind == "failed"
    assert why.startswith("columns were swapped")


@pytest.mark.parametrize("name", ENTRIES)
def test_fair_weather(name):
    kind, why = outcome(name, 12, 2)
    assert kind == "result", why


def sweep(name, examples, seed, journal):
    """Many cases of an entry, counted; every kind of failure is printed with its first case."""
    counts, failures, start = collections.Counter(), {}, time.process_time()

    @hypothesis.seed(seed)
    @hypothesis.settings(SETTINGS, max_examples=examples, derandomize=False)
    @hypothesis.given(cases(name))
    def tried(case):
        journal.seek(0)
        journal.write(f"{shown(name, case)}\n")
        journal.truncate()
        journal.flush()
        faulthandler.dump_traceback_later(20 * SECONDS, exit=True)  # in compiled code no signal is heard
        kind, why = outcome(name, **case)
        faulthandler.cancel_dump_traceback_later()
        counts[kind] += 1
        if kind == "failed":
            failures.setdefault(why.split(":")[0] + why[why.rfind("[") :], []).append((why, shown(name, case)))

    tried()
    seconds = time.process_time() - start
    print(f"{name:24}", *(f"{counts[kind]:6} {kind}" for kind in KINDS), f"{seconds:7.1f} s", flush=True)
    for found in failures.values():
        print(f"    {len(found)} x {found[0][0]}\n        {found[0][1]}", flush=True)
    return counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="bad weather over the public API")
    parser.add_argument("--calls", type=int, default=20000, help="in all; slow entries get a tenth of what others do")
    parser.add_argument("--entry", nargs="*", default=list(ENTRIES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--journal", default="weather.journal")
    chosen = parser.parse_args()
    share = {name: 0.1 if name in SLOW else 1.0 for name in chosen.entry}
    each = {name: max(1, round(chosen.calls * part / sum(share.values()))) for name, part in share.items()}
    start, total = time.monotonic(), collections.Counter()
    with open(chosen.journal, "w") as journal:
        for name in chosen.entry:
            total += sweep(name, each[name], chosen.seed, journal)
    seconds = f"{time.monotonic() - start:.0f} s, {time.process_time():.0f} s of CPU"
    print(f"{total.total()} cases in {seconds}:", ", ".join(f"{total[kind]} {kind}" for kind in KINDS))
    sys.exit(total["failed"] > 0)

"""What an argument may be given when the weather is fair, and what when it is foul."""

from __future__ import annotations

import datetime
import decimal
import fractions
import warnings

import hypothesis.strategies as st
import numpy as np
import scipy.sparse
from scipy import stats

import kernelbayes as kb

try:
    import pandas
except ImportError:  # it is not among the dependencies
    pandas = None


def rng_of(*words):
    return np.random.default_rng([sum(word.encode()) for word in map(str, words)])


def spoil(value):
    def spoiled(X):
        X = X.astype(float)
        X.flat[X.size // 2 : X.size // 2 + 1] = value
        return X

    return spoiled


def masked(X):
    return np.ma.masked_array(X, mask=np.arange(X.size).reshape(X.shape) == X.size // 2)


def day(i):
    return datetime.datetime(2026, 1, 1) + datetime.timedelta(days=int(i))


def of_days(make):
    """An array of objects, each made from the number of its place."""

    def held(X):
        out = np.empty(X.shape, dtype=object)
        out.flat = [make(i) for i in range(X.size)]
        return out

    return held


def one_date(X):
    X = X.astype(object)
    X.flat[X.size // 2 : X.size // 2 + 1] = [np.datetime64("2026-01-01")]
    return X


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def one_constant(X):
    X = X.copy()
    X[..., :1] = 3.0
    return X


# Two steps may be taken one after the other: what the numbers are, and then how they are held.
NUMBERS = {
    "NaN": spoil(np.nan),
    "inf": spoil(np.inf),
    "-inf": spoil(-np.inf),
    "all NaN": lambda X: X * np.nan,
    "outlier": spoil(1e12),
    "far outlier": spoil(1e200),
    "duplicates": lambda X: np.repeat(X[: (len(X) + 1) // 2], 2, axis=0)[: len(X)],
    "constant": np.ones_like,
    "zero": np.zeros_like,
    "constant column": one_constant,
    "offset 1e8": lambda X: X + 1e8,
    "offset 1e16": lambda X: X + 1e16,
    "nearly constant": lambda X: 1.0 + 1e-15 * X,
    "whole": lambda X: np.round(X * 3),
    "integers": lambda X: np.round(X * 3).astype(int),
    "large integers": lambda X: (X * 2**61).astype(np.int64),
    "bytes": lambda X: np.round(np.abs(X)).astype(np.uint8),
    "booleans": lambda X: X > 0,
    "one column too many": lambda X: X if X.ndim < 2 else np.concatenate([X, X[:, :1]], axis=1),
    "one row too few": lambda X: X[1:],
    "one row": lambda X: X[:1],
    "two rows": lambda X: X[:2],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[..., :0],
    "a third dimension": lambda X: X[..., None],
    "flat": np.ravel,
    "alternating": lambda X: np.where(np.arange(len(X))[(slice(None), *(None,) * (X.ndim - 1))] % 2, X, -X),
}
FORMS = {
    "list": lambda X: X.tolist(),
    "tuple": lambda X: tuple(X.tolist()),
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "other byte order": lambda X: X.astype(float).astype(">f8"),
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1],
    "read-only": read_only,
    "broadcast": lambda X: np.broadcast_to(X[:1], X.shape),
    "matrix": lambda X: np.asmatrix(X) if X.ndim < 3 else X,
    "masked": masked,
    "nothing masked": np.ma.masked_array,
    "objects": lambda X: X.astype(object),
    "objects with None": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 0, None, X.astype(object)),
    "numbers as text": lambda X: X.astype(str),
    "text": lambda X: np.full(X.shape, "word"),
    "raw bytes": lambda X: np.full(X.shape, b"word"),
    "complex": lambda X: X + 1j,
    "complex without imaginary part": lambda X: X.astype(complex),
    "dates": lambda X: np.full(X.shape, "2026-01-01", dtype="datetime64[s]") + np.arange(X.size).reshape(X.shape),
    "dates missing": lambda X: np.full(X.shape, "NaT", dtype="datetime64[s]"),
    "durations": lambda X: np.full(X.shape, 5, dtype="timedelta64[s]"),
    "dates as objects": of_days(day),
    "days as objects": of_days(lambda i: day(i).date()),
    "dates of NumPy as objects": of_days(lambda i: np.datetime64("2026-01-01") + i),
    "durations as objects": of_days(lambda i: np.timedelta64(i, "s")),
    "one date among numbers": one_date,
    "list of dates": lambda X: of_days(day)(X).tolist(),
    "list of masked rows": lambda X: list(masked(X)),
    "list with a masked number": lambda X: [np.ma.masked, *X.ravel()[1:]] if X.ndim == 1 else [*masked(X)],
    "records": lambda X: np.zeros(X.shape, dtype=[("a", float), ("b", int)]),
    "dict of columns": lambda X: {"a": X.tolist(), "b": X.tolist()},
    "sparse": lambda X: scipy.sparse.csr_array(X) if X.ndim < 3 else X,
    "ragged": lambda X: [*X.tolist(), [1.0, 2.0, 3.0, 4.0, 5.0]],
    "iterator": lambda X: iter(X.tolist()),
    "0-d": lambda X: np.array(1.5),
}


def column_of(values):
    """A data frame whose first column holds something else, or a series of that."""

    def framed(X, names):
        odd = values(len(X))
        return pandas.Series(odd) if X.ndim == 1 else framed_as(X, names).assign(**{names[0]: odd})

    return framed


def framed_as(X, names):
    return pandas.Series(X) if X.ndim == 1 else pandas.DataFrame(X, columns=list(names))


# Ways to hold numbers that give names to their columns.
FRAMES = {
    "frame": framed_as,
    "shuffled frame": lambda X, names: framed_as(X, names) if X.ndim == 1 else framed_as(X, names)[list(names)[::-1]],
    "frame without names": lambda X, names: framed_as(X, range(len(names))),
    "frame of whole numbers": lambda X, names: framed_as(np.clip(X, -1000, 1000), names).round().astype("Int64"),
    "frame of float32": lambda X, names: framed_as(X, names).astype("Float32"),
    "frame with other names": lambda X, names: framed_as(X, [f"other {name}" for name in names]),
    "frame with the same name twice": lambda X, names: framed_as(X, [names[0] for _ in names]),
    "frame with dates": column_of(lambda n: pandas.date_range("2026-01-01", periods=n)),
    "frame with dates of a zone": column_of(lambda n: pandas.date_range("2026-01-01", periods=n, tz="UTC")),
    "frame with durations": column_of(lambda n: pandas.to_timedelta(np.arange(n), "h")),
    "frame with dates as objects": column_of(lambda n: pandas.Series([day(i) for i in range(n)], dtype=object)),
    "frame with periods": column_of(lambda n: pandas.period_range("2026-01", periods=n, freq="M")),
    "frame with NA": column_of(lambda n: pandas.array([None, *range(1, n)], dtype="Int64")),
    "frame with NA of booleans": column_of(lambda n: pandas.array([None] + [True] * (n - 1), dtype="boolean")),
    "frame with categories": column_of(lambda n: pandas.Categorical(["low", "high"] * n).take(np.arange(n))),
    "frame with categories of dates": column_of(
        lambda n: pandas.Categorical(pandas.date_range("2026-01-01", periods=n))
    ),
}
FRAMES = FRAMES if pandas is not None else {}
WRONG = {
    "None": None,
    "dict": {"a": 1},
    "empty dict": {},
    "empty list": [],
    "list of nothing": [[]],
    "text itself": "points.csv",
    "class": kb.Gaussian,
    "function": lambda *anything: None,
    "module": np,
    "a number": 1.5,
    "a set": {1.0, 2.0},
    "a slice": slice(3),
    "a kernel": kb.Gaussian(),
    "an object": object(),
    "Ellipsis": ...,
}
SINGLE = {
    "zero ": 0.0,
    "minus one": -1,
    "nan": np.nan,
    "infinite": np.inf,
    "minus infinite": -np.inf,
    "denormal": 5e-324,
    "1e-300": 1e-300,
    "1e-120": 1e-120,
    "1e-30": 1e-30,
    "1e-9": 1e-9,
    "1e9": 1e9,
    "1e30": 1e30,
    "1e120": 1e120,
    "1e300": 1e300,
    "10**400": 10**400,
    "True": True,
    "number as text": "1.0",
    "two numbers": [1.0, 2.0],
    "array of one": np.array([1.0]),
    "0-d array": np.array(0.5),
    "0-d int array": np.array(2),
    "float32 number": np.float32(0.5),
    "int64 number": np.int64(2),
    "Fraction": fractions.Fraction(1, 2),
    "Decimal": decimal.Decimal("0.5"),
    "complex number": 1 + 1j,
    "2.5": 2.5,
    "3.0": 3.0,
    "billion": 10**9,
    "10**15": 10**15,
    "2**63": 2**63,
    "masked number": np.ma.masked,
    "NaT": np.datetime64("NaT", "s"),
    "date": np.datetime64("2026-01-01"),
    "duration": np.timedelta64(2, "s"),
    "date of Python": day(1),
    "masked 0-d array": np.ma.masked_array(2.0, mask=True),
}
KERNELS = {
    "rough": kb.Laplace(0.7),
    "Matern": kb.Matern(2.5, 0.9),
    "rational": kb.RationalQuadratic(1.0, 0.5),
    "sum": kb.Gaussian(0.5) + 0.1 * kb.Linear(),
}
ODD_KERNELS = {
    "per column": kb.Gaussian([1.0, 2.0]),
    "five columns": kb.Gaussian(np.ones(5)),
    "very short": kb.Gaussian(1e-30),
    "very long": kb.Matern(1.5, 1e30),
    "shortest": kb.Laplace(1e-99),
    "longest": kb.RationalQuadratic(1e99, 1.0),
    "linear": kb.Linear(),
    "steep": kb.Polynomial(9, 1.0, 1.0),
    "Brownian": kb.Brownian(),
    "periodic": kb.PeriodicSobolev(2),
    "infinite polynomial": kb.InfinitePolynomial(),
    "labels": kb.Delta(),
    "histogram": kb.HistogramIntersection(),
    "sets": kb.SetKernel(),
    "precomputed": kb.PrecomputedKernel(np.eye(12)),
    "not positive definite": kb.FunctionKernel(lambda a, b: float(np.sum(np.subtract(a, b)))),
    "returns NaN": kb.FunctionKernel(lambda a, b: np.nan),
    "mapped": kb.MappedKernel(np.tanh, kb.Gaussian()),
    "mapped to NaN": kb.MappedKernel(lambda X: X * np.nan, kb.Gaussian()),
    "second column": kb.Gaussian().on(1),
    "tiny": 1e-99 * kb.Gaussian(),
    "giant": 1e99 * kb.Gaussian(),
}


def raises(X):
    raise KeyError("a mistake in the user's function")


FUNCTIONS = {"first column": lambda X: np.asarray(X)[:, 0], "table": lambda X: np.asarray(X) ** 2}
ODD_FUNCTIONS = {
    "NaN from f": lambda X: np.full(len(X), np.nan),
    "one number from f": lambda X: 1.0,
    "None from f": lambda X: None,
    "text from f": lambda X: ["a"] * len(X),
    "complex from f": lambda X: np.ones(len(X)) * 1j,
    "too few from f": lambda X: np.ones(len(X) - 1),
    "three dimensions from f": lambda X: np.ones((len(X), 2, 2)),
    "integers from f": lambda X: np.arange(len(X)),
    "huge from f": lambda X: np.full(len(X), 1e300),
    "booleans from f": lambda X: np.asarray(X)[:, 0] > 0,
    "list from f": lambda X: [1.0] * len(X),
    "masked from f": lambda X: np.ma.masked_array(np.ones(len(X)), mask=np.arange(len(X)) == 0),
    "dates from f": lambda X: np.full(len(X), np.datetime64("2026-01-01")),
    "durations from f": lambda X: np.full(len(X), np.timedelta64(5, "s"), dtype=object),
}
OF_TWO = {f"{word} of two": lambda a, b, f=f: f(np.atleast_2d(b)) for word, f in ODD_FUNCTIONS.items()}
DISTRIBUTIONS = {"normal": stats.norm(), "uniform": stats.uniform(), "of two columns": [stats.norm(), stats.uniform()]}
ODD_DISTRIBUTIONS = {
    "Cauchy": stats.cauchy(),
    "narrow": stats.norm(0, 1e-200),
    "wide": stats.norm(0, 1e200),
    "far away": stats.norm(1e15, 1.0),
    "NaN scale": stats.norm(0, np.nan),
    "negative scale": stats.norm(0, -1),
    "no width": stats.uniform(0, 0),
    "discrete": stats.poisson(3),
    "not frozen": stats.norm,
    "multivariate": stats.multivariate_normal(np.zeros(2), np.eye(2)),
    "mixture": kb.Mixture([stats.norm(), stats.norm(3.0)]),
    "beta": stats.beta(0.3, 0.3),
    "points": np.linspace(-1, 1, 12),
}


class Climate:
    """What an argument may be given. Words are drawn by `fair` and `foul`, and `build` makes the input from one."""

    def __init__(self, fair, foul, scaled=False, but=()):
        wrong = {word: value for word, value in WRONG.items() if word not in but}
        self.fair, self.table = dict(fair), {**fair, **foul, **wrong}
        foul = st.sampled_from(sorted({*foul, *wrong}))
        self.foul = st.one_of(foul, SCALES.map(lambda k: f"1e{k}")) if scaled else foul

    def build(self, word, name, tall, wide):
        value = self.table[word] if word in self.table else float(word)
        return iter(range(3)) if word == "iterator" else value


SCALES = st.integers(-320, 308)


class Points(Climate):
    """A table (tall, wide) of normal numbers, or of a fixed width, or flat; times a scale, spoiled, held in some form.

    Its columns are called by `names`, or as those of the argument `like`: where both are data frames and the columns of
    this one come in another order, the result must be the same. With `dates` it may hold dates, with `gaps` missing values.
    """

    def __init__(self, width=None, low=None, whole=False, *, tall=None, like=None, names=None, dates=False, gaps=False):
        self.width, self.low, self.whole, self.tall = width, low, whole, tall
        self.like, self.names, self.dates, self.gaps = like, names, dates, gaps
        self.fair = {"fair": None}
        numbers = st.one_of(st.sampled_from(sorted(NUMBERS)), SCALES.map(lambda k: f"times 1e{k}"))
        forms = st.sampled_from(sorted([*FORMS, *FRAMES]))
        both = st.tuples(numbers, forms).map(", ".join)
        self.foul = st.one_of(numbers, numbers, forms, forms, both, st.sampled_from(sorted(WRONG)))

    def build(self, word, name, tall, wide):
        if word in WRONG:
            return WRONG[word]
        width, tall = wide if self.width is None else self.width, self.tall or tall
        X = rng_of(name, tall).normal(size=(tall, width) if width else tall)
        X = np.abs(X) % 1.0 if self.low is not None else X
        X = (np.arange(X.size) % 3).reshape(X.shape) if self.whole else X
        for step in word.split(", "):
            if step.startswith("times "):
                with np.errstate(all="ignore"):
                    X = X * float(step[6:])
            elif step != "fair":
                with warnings.catch_warnings(), np.errstate(all="ignore"):
                    warnings.simplefilter("ignore")
                    X = self._framed(X, step) if step in FRAMES else (NUMBERS | FORMS)[step](X)
        return X

    def _framed(self, X, step):
        if not 1 <= X.ndim <= 2 or not X.size:
            return X
        width = X.shape[1] if X.ndim == 2 else 1
        names = self.names if self.names and len(self.names) == width else [f"c{j}" for j in range(width)]
        return FRAMES[step](X, names)


def holds(value, word=""):
    """What is hidden in an input: the kinds among "a mask", "a date" and "a gap" that it holds."""
    if callable(value):
        return {
            kind for kind, text in (("a mask", "masked"), ("a date", "dates"), ("a date", "durations")) if text in word
        }
    if isinstance(value, (list, tuple)):
        return set().union(*map(holds, value))
    if pandas is not None and isinstance(value, pandas.DataFrame):
        return set().union(*(holds(value.iloc[:, j]) for j in range(value.shape[1])))
    if isinstance(value, np.ma.MaskedArray):
        return {"a mask"} if np.ma.getmaskarray(value).any() else holds(value.data)
    if pandas is not None and isinstance(value, pandas.Series):
        gap = {"a gap"} if value.isna().any() else set()
        return gap | holds(value.array if value.dtype == object else np.asarray(value))
    if (isinstance(value, np.ndarray) and value.dtype == object) or type(value).__name__ == "NumpyExtensionArray":
        return set().union(*map(holds, np.asarray(value).ravel().tolist()))
    array = np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else None
    if isinstance(value, (datetime.date, datetime.timedelta)) or (array is not None and array.dtype.kind in "mM"):
        return {"a date"}
    if value is None or (array is not None and array.dtype.kind == "f" and np.isnan(array).any()):
        return {"a gap"}
    return set()


POINTS, FLAT, UNIT, LABELS = Points(), Points(width=0), Points(low=0.0), Points(width=0, whole=True, dates=True)
GAPPY, MEDIATOR = Points(gaps=True), Points(width=0, dates=True)
OBJECTS = Points(width=0, whole=True, dates=True, gaps=True)
NUMBER = Climate({"0.5": 0.5, "0.1": 0.1, "2": 2}, SINGLE, scaled=True)
SHARE = Climate({"half": 0.5, "most": 0.9}, SINGLE | {"one": 1, "none": 0}, scaled=True)
COUNT = Climate({"3": 3, "2": 2}, SINGLE)
SEED = Climate({"seed 0": 0}, SINGLE | {"RandomState": np.random.RandomState(0), "Generator": np.random.default_rng(0)})
FLAG = Climate({"yes": True, "no": False}, {})
KERNEL = Climate(KERNELS, ODD_KERNELS)
FUNCTION = Climate(FUNCTIONS, ODD_FUNCTIONS | {"raises": raises}, but=("class", "a kernel"))
DISTRIBUTION = Climate(DISTRIBUTIONS, ODD_DISTRIBUTIONS)


def words(*choices):
    return Climate(
        {word: word for word in choices if word is not None}, {"unknown": "unknown", "upper": choices[0].upper()}
    )


RECIPE = Climate(
    {"exact": kb.Exact(), "Cholesky": kb.IncompleteCholesky(4), "subspace": kb.Subspace(5)},
    {
        "Fourier": kb.RandomFourier(6),
        "one-hot": kb.OneHot(),
        "many": kb.Subspace(1000),
        "herded": kb.Subspace(3, method="herding"),
        "rank one": kb.IncompleteCholesky(1),
        "network": kb.Neural(kb.MLP(2, 3, (4,), random_state=0)),
        "recipe class": kb.Exact,
    },
)

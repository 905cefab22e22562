"""What a kernel is, how it is evaluated, and how kernels combine.

A kernel is an immutable pytree whose leaves are its parameters, declared as `_parameters` says. Subclasses give two
formulas, `_gram` and `_diag`, written against the namespace of their input; everything else (checks, blocks, double
precision, composition) is here.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .. import _check
from .._backend import float64, is_traced, namespace
from .._typing import AnyArray, Array, ArrayLike
from ._parameters import check_parameter, positive

# Blocks of about 8 MB stay near the cache. A block is compiled only where the work outweighs the compiler.
_BLOCK_ELEMENTS = 2**20
_COMPILE_ELEMENTS = 2**23


def on_host(kernel: Kernel) -> Kernel:
    """A kernel with NumPy parameters: those that come out of an optimiser are JAX arrays, of either precision."""

    def is_network(part: Any) -> bool:
        return isinstance(part, eqx.Module) and not isinstance(part, Kernel)

    def convert(leaf: Any) -> Any:
        return np.asarray(leaf, dtype=np.float64) if isinstance(leaf, jax.Array) else leaf

    return jax.tree_util.tree_map(convert, kernel, is_leaf=is_network)


def _shown(kernel: Kernel, name: str) -> str:
    """A field as a reader wants it: numbers in full where they are few."""
    value = getattr(kernel, name)
    if not isinstance(value, np.ndarray):
        return repr(value)
    return np.array2string(value, precision=4, separator=", ") if value.size <= 8 else f"array of shape {value.shape}"


class Kernel(eqx.Module):
    """A positive definite function of two points.

    `gram`, `diag` and `matmul` take what users have and return NumPy arrays in double precision. Inside a JAX
    transformation they are traced instead, so that `jax.grad` of anything built from them is a kernel holding the
    derivatives of its parameters. There the precision is JAX's own: single, unless under `with jax.enable_x64(True)`.

    Example:
        >>> import kernelbayes as kb
        >>> k = 2.0 * kb.Gaussian(lengthscale=0.5) + kb.Linear()
        >>> k.gram([[0.0], [1.0]]).round(3)
        array([[2.   , 0.271],
               [0.271, 3.   ]])
    """

    # A kernel on arbitrary objects is evaluated by Python, pair by pair, and cannot be compiled.
    _host_only: ClassVar[bool] = False
    # Whether points are rows of a table of numbers, and not labels, sets or other objects.
    _on_vectors: ClassVar[bool] = True

    def __check_init__(self) -> None:
        for field in dataclasses.fields(self):
            check_parameter(field, getattr(self, field.name))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{f.name}={_shown(self, f.name)}' for f in dataclasses.fields(self))})"
        )

    @abc.abstractmethod
    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        """k(x_i, y_j) for checked points, in the namespace of the points."""

    @abc.abstractmethod
    def _diag(self, X: AnyArray) -> AnyArray:
        """k(x_i, x_i) for checked points."""

    def _check(self, X: Any, name: str) -> Array:
        """Turn what a user passed into points of this kernel's domain, or say what is wrong with it."""
        X = _check.vectors(X, name)
        self._check_width(X.shape[1], name)
        return X

    def _check_width(self, width: int, name: str) -> None:
        for field in dataclasses.fields(self):
            size = np.size(getattr(self, field.name)) if field.metadata.get("domain") else 1
            if size not in (1, width):
                raise ValueError(f"{name} has {width} columns but the kernel's {field.name} has {size} entries")

    def _check_pair(self, X: Any, Y: Any) -> tuple[Array, Array]:
        X, Y = self._check(X, "X"), self._check(Y, "Y")
        if X.shape[1:] != Y.shape[1:]:
            raise ValueError(f"X has {X.shape[1:]} features per point but Y has {Y.shape[1:]}")
        return X, Y

    def _traced_pair(self, X: Any, Y: Any) -> tuple[AnyArray, AnyArray]:
        """Points for a traced evaluation: those that are not traced themselves are checked as ever."""
        if not is_traced(X, Y):
            return self._check_pair(X, Y)
        X, Y = (jnp.asarray(P) if is_traced(P) else self._check(P, name) for P, name in ((X, "X"), (Y, "Y")))
        X, Y = (P[:, None] if P.ndim == 1 else P for P in (X, Y))
        if X.shape[1:] != Y.shape[1:]:
            raise ValueError(f"X has {X.shape[1:]} features per point but Y has {Y.shape[1:]}")
        self._check_width(X.shape[1], "X")
        return X, Y

    def _parts(self) -> list[Kernel]:
        leaves = jax.tree_util.tree_leaves(self, is_leaf=lambda v: isinstance(v, Kernel) and v is not self)
        return [leaf for leaf in leaves if isinstance(leaf, Kernel)]

    @property
    def _evaluates_on_host(self) -> bool:
        return self._host_only or any(part._evaluates_on_host for part in self._parts())

    @property
    def _takes_vectors(self) -> bool:
        return self._on_vectors and all(part._takes_vectors for part in self._parts())

    def gram(self, X: ArrayLike, Y: ArrayLike | None = None) -> Array:
        """The matrix of k(x_i, y_j), of shape (n, m); with one argument, of k(x_i, x_j)."""
        if is_traced(self, X, Y):
            return self._gram(*self._traced_pair(X, X if Y is None else Y))
        if Y is None:
            X = Y = self._check(X, "X")
        else:
            X, Y = self._check_pair(X, _check.alike(Y, X, "Y"))
        return dense_gram(on_host(self), X, Y)

    def diag(self, X: ArrayLike) -> Array:
        """k(x_i, x_i), of shape (n,)."""
        if is_traced(self, X):
            return self._diag(self._traced_pair(X, X)[0])
        X = self._check(X, "X")
        with np.errstate(over="ignore", invalid="ignore"):
            return _in_bounds(np.array(on_host(self)._diag(X), dtype=np.float64), self)

    def matmul(self, X: ArrayLike, Y: ArrayLike, V: ArrayLike) -> Array:
        """K(X, Y) @ V, computed in blocks of rows so that K is never held whole.

        Example:
            >>> import numpy as np, kernelbayes as kb
            >>> X = np.linspace(0, 1, 5)
            >>> k = kb.Gaussian(0.3)
            >>> np.allclose(k.matmul(X, X, np.ones(5)), k.gram(X).sum(1))
            True
        """
        if is_traced(self, X, Y, V):
            return self.gram(X, Y) @ jnp.asarray(V)
        X, Y = self._check_pair(X, _check.alike(Y, X, "Y"))
        V = _check.numbers(V, "V")
        if V.ndim not in (1, 2) or len(V) != len(Y):
            raise ValueError(f"V has shape {V.shape} where {len(Y)} rows, one per row of Y, were wanted")
        return matmul(on_host(self), X, Y, V)

    def on(self, *columns: int) -> Kernel:
        """This kernel applied to some columns only.

        Example:
            >>> import kernelbayes as kb
            >>> k = kb.Gaussian().on(0) * kb.Delta().on(1)
            >>> k.gram([[0.0, 1], [0.0, 2]])
            array([[1., 0.],
                   [0., 1.]])
        """
        return Columns(self, tuple(_check.count(c, "column", at_least=0) for c in columns))

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if np.ndim(other) == 0 else NotImplemented

    __rmul__ = __mul__


def check_kernel(kernel: Any, name: str = "kernel") -> Kernel:
    """Refuse what is not a kernel, with one that is."""
    if not isinstance(kernel, Kernel):
        got = _check.given_instead(kernel, Kernel)
        raise ValueError(f"{name} must be a kernel such as kb.Gaussian(1.0), got {got}")
    return kernel


# ---------------------------------------------------------------- evaluation on checked points, for the layers below


def gram_blocks(kernel: Kernel, X: Array, Y: Array) -> Iterator[tuple[slice, Array]]:
    """Yield K(X[rows], Y) over blocks of rows, each small enough to be thrown away."""
    n, m = len(X), len(Y)
    compiled = n * m >= _COMPILE_ELEMENTS and not kernel._evaluates_on_host and X.dtype.kind not in "OUS"
    size = max(1, min(n, _BLOCK_ELEMENTS // m))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        block = X[rows]
        if not compiled:
            yield rows, _host_gram(kernel, block, Y)
            continue
        short = size - len(block)
        if short:  # one shape for all blocks, so one compilation
            block = np.concatenate([block, np.repeat(block[-1:], short, axis=0)])
        yield rows, _compiled_gram(kernel, block, Y)[: size - short]


def _host_gram(kernel: Kernel, X: Array, Y: Array) -> Array:
    """K(X, Y) on the host, or a ValueError where it grows out of bounds: of which each kernel has its own."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(kernel._gram(X, Y), dtype=np.float64)
    return _in_bounds(values, kernel)


def _in_bounds(values: Array, kernel: Kernel) -> Array:
    if not (values.max() <= _check.LARGEST and values.min() >= -_check.LARGEST):  # so that NaN is out of bounds
        raise ValueError(
            f"the kernel {kernel!r} has values that are not finite, or beyond {_check.LARGEST:g}, at these points X; "
            "bring X to a smaller scale"
        )
    return values


@float64
def _compiled_gram(kernel: Kernel, X: Array, Y: Array) -> Array:
    return _in_bounds(np.asarray(_jitted_gram(kernel, X, Y)), kernel)


@eqx.filter_jit
def _jitted_gram(kernel: Kernel, X: AnyArray, Y: AnyArray) -> AnyArray:
    return kernel._gram(X, Y)


def dense_gram(kernel: Kernel, X: Array, Y: Array) -> Array:
    """K(X, Y) for checked points."""
    n, m = len(X), len(Y)
    if n * m <= _BLOCK_ELEMENTS:
        return _host_gram(kernel, X, Y)
    _check.fits_memory(
        n * m,
        f"a Gram matrix of {n} x {m}",
        "take fewer points, or a representation such as kb.Subspace(1000) where one is asked for",
    )
    out = np.empty((n, m))
    for rows, block in gram_blocks(kernel, X, Y):
        out[rows] = block
    return out


def matmul(kernel: Kernel, X: Array, Y: Array, V: Array) -> Array:
    """K(X, Y) V for checked points, in blocks."""
    out = np.empty((len(X), *V.shape[1:]))
    for rows, block in gram_blocks(kernel, X, Y):
        out[rows] = block @ V
    return out


# ---------------------------------------------------------------------------------------------------- combinations


class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def _check(self, X: Any, name: str) -> Array:
        return self.right._check(self.left._check(X, name), name)

    def _check_pair(self, X: Any, Y: Any) -> tuple[Array, Array]:
        return self.right._check_pair(*self.left._check_pair(X, Y))


class Sum(_Pair):
    """`k(x, y) + l(x, y)`; made by `k + l`."""

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return self.left._gram(X, Y) + self.right._gram(X, Y)

    def _diag(self, X: AnyArray) -> AnyArray:
        return self.left._diag(X) + self.right._diag(X)


class Product(_Pair):
    """`k(x, y) l(x, y)`; made by `k * l`."""

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return self.left._gram(X, Y) * self.right._gram(X, Y)

    def _diag(self, X: AnyArray) -> AnyArray:
        return self.left._diag(X) * self.right._diag(X)


class Scaled(Kernel):
    """`s k(x, y)` with s > 0; made by `s * k`."""

    kernel: Kernel
    scale: AnyArray = positive()

    def _check(self, X: Any, name: str) -> Array:
        return self.kernel._check(X, name)

    def _check_pair(self, X: Any, Y: Any) -> tuple[Array, Array]:
        return self.kernel._check_pair(X, Y)

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return self.scale * self.kernel._gram(X, Y)

    def _diag(self, X: AnyArray) -> AnyArray:
        return self.scale * self.kernel._diag(X)


class Columns(Kernel):
    """A kernel that sees some columns of its input; made by `k.on(0, 2)`."""

    kernel: Kernel
    columns: tuple[int, ...] = eqx.field(static=True)

    def __check_init__(self) -> None:
        if not self.columns:
            raise ValueError("columns is empty; name at least one column for the kernel to read")

    def _check(self, X: Any, name: str) -> Array:
        X = _check.table(X, name)
        if X.ndim != 2 or X.shape[1] <= max(self.columns):
            raise ValueError(f"{name} has shape {X.shape}, but the kernel reads its columns {self.columns}")
        self.kernel._check(X[:, list(self.columns)], name)
        return X

    def _gram(self, X: AnyArray, Y: AnyArray) -> AnyArray:
        return self.kernel._gram(self._select(X), self._select(Y))

    def _diag(self, X: AnyArray) -> AnyArray:
        return self.kernel._diag(self._select(X))

    def _select(self, X: AnyArray) -> AnyArray:
        """The columns as the kernel wants them: beside a column of text, numbers are not stored as numbers."""
        part = X[:, list(self.columns)]
        return part if namespace(X) is jnp or X.dtype.kind == "f" else self.kernel._check(part, "X")

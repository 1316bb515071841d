"""Functions there and back between this library and JAX, differentiated through."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.lazy_tensor import Array, LazyTensor, evaluate
from retrograd.errors import DTypeError, TraceError
from retrograd.functions.creation import zeros_like
from retrograd.functions.tensor.tensor import Tensor
from retrograd.interop.foreign_function import KEPT, ForeignFunction
from retrograd.interop.jax_arrays import array_of, jax_array
from retrograd.ir import Dim, TensorType, as_dtype
from retrograd.lazy_import import need
from retrograd.shared import trim
from retrograd.tracing.scope import need_function
from retrograd.tracing.subgraph import TracedSubgraph
from retrograd.transforms.custom_rule_ops import ByValue
from retrograd.transforms.grad import vjp
from retrograd.transforms.vmap import vmap


def wrap_jax(f: Callable[..., Any]) -> ForeignFunction:
    """A function of JAX's arrays as a function of tensors of this library, through which
    derivatives of every order go, and which `jit`, `vmap`, `scan` and the rest take.

    Arguments and results are trees. Tensors and arrays in arguments become `jax.Array`s; numbers
    and what else there is are passed as they are, and are constant to JAX. JAX compiles f, and what
    it needs of f's derivatives, once for each structure, shapes and dtypes of arguments; f is pure
    and traceable, as for `jax.jit`. Under `jit` it is a call from the compiled program, under
    `vmap` one call for each sample. Where a floating or complex argument has 64 bits, JAX's are
    enabled for the call.

    Forward mode (`jvp`, `jacfwd`) transposes reverse mode, and is as exact.

        >>> f = rg.interop.wrap_jax(jax.nn.logsumexp)  # doctest: +SKIP
        >>> rg.grad(f)(rg.tensor([0.0, 0.0]))  # doctest: +SKIP
        Tensor([0.5, 0.5], dtype=float32)
    """
    need("jax", "wrap_jax")
    return ForeignFunction(f, _Jax(), "wrap_jax")


class _Jax:
    """What is asked of JAX."""

    def __init__(self) -> None:
        self._compiled: dict[Any, Any] = {}

    def call(self, f: Callable[..., Any], arrays: Sequence[Array]) -> list[Array]:
        jax = need("jax", "wrap_jax")
        compiled = self._compiled.get(f)
        if compiled is None:
            compiled = self._compiled[f] = jax.jit(f)
        with _precision([a.dtype for a in arrays]):
            given = [jax_array(a, "wrap_jax") for a in arrays]
            return [np.array(array_of(y)) for y in compiled(*given)]

    def trees(self, f: Callable[..., Any], structure: Any, rest: Sequence[Any]) -> Any:
        jax, form = need("jax", "wrap_jax"), list[Any]()
        need("jax.numpy", "wrap_jax")

        def flat(*xs: Any) -> list[Any]:
            given = iter(xs)
            args, kwargs = pytree.unflatten(
                structure, [next(given) if x is None else x for x in rest]
            )
            leaves, structure_of_results = pytree.flatten(f(*args, **kwargs))
            form[:] = [structure_of_results]
            return [jax.numpy.asarray(y) for y in leaves]

        return flat, form

    def vjp(self, f: Callable[..., Any], count: int) -> Callable[..., Any]:
        jax = need("jax", "wrap_jax")

        def slopes(*given: Any) -> list[Any]:
            xs, gs = given[:count], given[count:]
            moving = [i for i, x in enumerate(xs) if _moves(jax, x)]

            def of_moving(*parts: Any) -> list[Any]:
                whole = list(xs)
                for i, x in zip(moving, parts, strict=True):
                    whole[i] = x
                return [y for y in f(*whole) if _moves(jax, y)]

            ys, back = jax.vjp(of_moving, *[xs[i] for i in moving])
            # Cotangents there are those of conjugates.
            found = back([jax.numpy.conj(g).astype(y.dtype) for g, y in
                          zip([g for g in gs if _moves(jax, g)], ys, strict=True)])  # fmt: skip
            return [jax.numpy.conj(s) for s in found]

        return slopes

    def types(self, f: Callable[..., Any], types: Sequence[TensorType]) -> list[TensorType]:
        jax = need("jax", "wrap_jax")
        if any(isinstance(d, Dim) for t in types for d in t.shape):
            raise TraceError(
                f"wrap_jax: JAX is called with arrays of known sizes, not with "
                f"{', '.join(map(str, types))}; trace for sizes that are numbers"
            )
        with _precision([t.dtype.dtype for t in types]):
            given = [
                jax.ShapeDtypeStruct(t.shape, jax.dtypes.canonicalize_dtype(t.dtype.dtype))
                for t in types
            ]
            found = jax.eval_shape(f, *given)
        return [TensorType(as_dtype(np.dtype(y.dtype)), tuple(y.shape)) for y in found]


def _moves(jax: Any, x: Any) -> bool:
    return bool(jax.numpy.issubdtype(x.dtype, jax.numpy.inexact))


def _precision(dtypes: Sequence[Any]) -> Any:
    """JAX with 64 bits, where arguments have them."""
    jax = need("jax", "wrap_jax")
    if not any(d in (np.float64, np.complex128) for d in dtypes) or jax.config.jax_enable_x64:
        return nullcontext()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    return need("jax.experimental", "wrap_jax").enable_x64()


def as_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors of this library as one of JAX's, a `jax.custom_vjp` around a
    `jax.pure_callback`, for `jax.jit`, `jax.grad` and `jax.vjp` of every order, `jax.vmap` (by
    `rg.vmap`), `jax.lax.scan` and the rest.

    Arguments and results are trees. Arrays in arguments become tensors, and tensors in results
    `jax.Array`s of the same dtypes; what else there is, such as numbers, is passed as it is. f is
    pure; it is traced once for each structure, shapes and dtypes to learn the types of its results,
    and runs on this library's backend, compiled if it is a function of `rg.jit`.

    JAX has no forward mode of a `custom_vjp`: of second derivatives, take `jax.jacrev(jax.grad(f))`
    in place of `jax.hessian`. Without `jax_enable_x64` results of floating dtypes of 64 bits are a
    `DTypeError`, and integers int32.

        >>> f = rg.interop.as_jax(lambda x: rg.special.gammaln(x).sum())  # doctest: +SKIP
        >>> jax.jit(jax.grad(f))(jnp.ones(2))  # doctest: +SKIP
        Array([-0.5772157, -0.5772157], dtype=float32)
    """
    need_function(f, "as_jax")
    jax = need("jax", "as_jax")
    calls: dict[Any, _JaxCall] = {}

    def called(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.flatten((args, kwargs))
        at = [i for i, x in enumerate(leaves) if isinstance(x, jax.Array | np.ndarray)]
        rest = [None if i in at else x for i, x in enumerate(leaves)]
        key = structure, tuple(map(ByValue, rest))
        call = calls.get(key)
        if call is None:

            def flat(*xs: Any) -> Any:
                given = iter(xs)
                whole = [next(given) if x is None else x for x in rest]
                inner, named = pytree.unflatten(structure, whole)
                return f(*inner, **named)

            call = calls[key] = _JaxCall(flat)
            trim(calls, KEPT)
        return call(*[leaves[i] for i in at])

    return functools.update_wrapper(called, f) if hasattr(f, "__name__") else called


class _JaxCall:
    """A function of tensors, with arguments one by one, on arrays of JAX."""

    def __init__(self, f: Callable[..., Any]) -> None:
        jax = need("jax", "as_jax")
        need("jax.numpy", "as_jax")
        self._f = f
        self._known: dict[Any, tuple[list[Any], list[Any], Any]] = {}
        self._slopes: _JaxCall | None = None
        self._rule = jax.custom_vjp(self._called)
        self._rule.defvjp(lambda *xs: (self._rule(*xs), xs), self._backward)

    def __call__(self, *xs: Any) -> Any:
        _, rest, structure = self._results(xs)
        given = iter(self._rule(*xs))
        return pytree.unflatten(structure, [next(given) if y is None else y for y in rest])

    def _results(self, xs: Sequence[Any]) -> tuple[list[Any], list[Any], Any]:
        """The types of the results, what among them is no tensor, and their structure."""
        key = tuple((x.dtype, x.shape) for x in xs)
        found = self._known.get(key)
        if found is None:
            one = pytree.flatten(0)[1]
            kinds = [([TensorType(as_dtype(x.dtype), tuple(x.shape))], one) for x in xs]
            leaves, structure = pytree.flatten(TracedSubgraph(self._f, kinds, "as_jax").value)
            types = [_announced(y) for y in leaves if isinstance(y, LazyTensor)]
            rest = [None if isinstance(y, LazyTensor) else y for y in leaves]
            found = self._known[key] = types, rest, structure
            trim(self._known, KEPT)
        return found

    def _called(self, *xs: Any) -> Any:
        jax = need("jax", "as_jax")
        types, _, _ = self._results(xs)
        host = functools.partial(self._host, [x.ndim for x in xs], [t.dtype for t in types])
        return jax.pure_callback(host, types, *xs, vmap_method="expand_dims")

    def _host(self, ranks: Sequence[int], dtypes: Sequence[Any], *given: Any) -> list[Array]:
        """The function on NumPy's arrays, mapped over the axes that JAX has put before theirs,
        which are of size 1 where an argument does not vary."""
        arrays = [np.asarray(x) for x in given]
        f = self._flat
        levels = arrays[0].ndim - ranks[0] if arrays else 0
        sizes = [max(a.shape[k] for a in arrays) for k in range(levels)]
        for k in reversed(range(levels)):
            f = vmap(f, in_axes=tuple([0 if a.shape[k] == sizes[k] else None for a in arrays]))
        fixed = [tuple(k for k in range(levels) if a.shape[k] != sizes[k]) for a in arrays]
        own = [Tensor.of(np.array(np.squeeze(a, axis=drop), order="C"))
               for a, drop in zip(arrays, fixed, strict=True)]  # fmt: skip
        found = f(*own)
        evaluate(found)
        return [_narrowed(y.value(), dtype) for y, dtype in zip(found, dtypes, strict=True)]

    def _flat(self, *xs: Any) -> list[Any]:
        return [y for y in pytree.flatten(self._f(*xs))[0] if isinstance(y, LazyTensor)]

    def _backward(self, xs: Sequence[Any], gs: Sequence[Any]) -> tuple[Any, ...]:
        jax, count = need("jax", "as_jax"), len(xs)
        if self._slopes is None:
            self._slopes = _JaxCall(functools.partial(_slopes, self._flat, count))
        moving = [jax.numpy.conj(g) for g in gs if g.dtype != jax.dtypes.float0]
        found = iter(self._slopes(*xs, *moving))
        return tuple([jax.numpy.conj(next(found)) if _moves(jax, x) else None for x in xs])


def _slopes(f: Callable[..., Any], count: int, *given: Any) -> list[Any]:
    """The cotangents of the inexact arguments for those of the inexact results."""
    xs, gs = given[:count], iter(given[count:])
    ys, back = vjp(f, *xs)
    whole = [next(gs) if y.dtype.is_inexact else zeros_like(y) for y in ys]
    return [s for s, x in zip(back(whole), xs, strict=True) if x.dtype.is_inexact]


def _announced(y: Any) -> Any:
    """The type of a result, as JAX has it."""
    jax = need("jax", "as_jax")
    given = y.dtype.dtype
    kind = jax.dtypes.canonicalize_dtype(given)
    if kind != given and y.dtype.is_inexact:
        raise DTypeError(
            f"as_jax: JAX would round {given} to {kind}; allow 64 bits there by "
            f"jax.config.update('jax_enable_x64', True), or return y.astype(rg.{kind})"
        )
    return jax.ShapeDtypeStruct(tuple(map(int, y.shape)), kind)


def _narrowed(array: Array, dtype: Any) -> Array:
    """Integers in the dtype that JAX has for them."""
    if array.dtype == dtype:
        return array
    found = array.astype(dtype)
    if not np.array_equal(found, array):
        raise DTypeError(f"as_jax: {array.dtype} is {dtype} in JAX, which does not hold the result")
    return found

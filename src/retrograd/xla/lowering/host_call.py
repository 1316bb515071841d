"""Calls of the host from a program: what XLA has no operation for is computed by the op's NumPy
meaning, on the CPU, while the program waits.

JAX hands arrays of 64 bits to a callback as those of 32 where the user has not enabled more, on a
thread whose setting is not ours to change. So they travel as bits, in pairs of uint32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from retrograd.errors import RetrogradError
from retrograd.ir import Node, TensorType, TupleType, apply
from retrograd.xla.lowering.rules import JaxTrace

Array = np.ndarray[Any, Any]


def host_call(t: JaxTrace, node: Node, *xs: Any) -> Any:
    """The value of a node by the meaning of its op."""
    return on_host(t, node, lambda given: apply(node, given), xs)


def on_host(t: JaxTrace, node: Node, f: Callable[[Sequence[Array]], Any], xs: Sequence[Any]) -> Any:
    """The value of a node as what `f` gives for NumPy arrays; of an op of several results a list.
    What it raises is raised by the program when it has run."""
    several = isinstance(node.type, TupleType)
    types = list(node.type.items) if isinstance(node.type, TupleType) else [node.type]
    raised = t.host

    def call(*bits: Any) -> list[Array]:
        arrays = [_from_bits(np.asarray(b), x.type) for b, x in zip(bits, node.inputs, strict=True)]
        try:
            found = f(arrays)
        except BaseException as error:  # of a user's function it may be any; raised by `check`
            raised.append(_described(error, node))
            found = [np.zeros(s.shape, s.dtype.dtype) for s in types]
            found = found if several else found[0]
        values = found if several else [found]
        return [
            _as_bits(np.asarray(y, s.dtype.dtype), s) for y, s in zip(values, types, strict=True)
        ]

    shapes = [t.jax.ShapeDtypeStruct(*_form(s)) for s in types]
    given = [_bits_of(t, x, n.type) for x, n in zip(xs, node.inputs, strict=True)]
    t.calls_host()
    found = t.jax.pure_callback(call, shapes, *given)
    values = [_value_of(t, y, s) for y, s in zip(found, types, strict=True)]
    return values if several else values[0]


def _described(error: BaseException, node: Node) -> BaseException:
    if not isinstance(error, RetrogradError) or node.describe() in str(error):
        return error
    return type(error)(f"{error}: {node.describe()}")


def _is_wide(s: TensorType) -> bool:
    return s.dtype.itemsize >= 8 and s.dtype.name != "complex64"


def _form(s: TensorType) -> tuple[tuple[Any, ...], Any]:
    """Shape and dtype of what travels."""
    if not _is_wide(s):
        return tuple(s.shape), s.dtype.dtype
    return (*s.shape, s.dtype.itemsize // 4), np.dtype(np.uint32)


def _from_bits(bits: Array, s: TensorType) -> Array:
    if not _is_wide(s):
        return bits
    return np.ascontiguousarray(bits).view(s.dtype.dtype).reshape(bits.shape[:-1])


def _as_bits(y: Array, s: TensorType) -> Array:
    shape, dtype = _form(s)
    y = np.array(np.broadcast_to(y, shape[: len(s.shape)]), None, order="C")
    return y.reshape((*y.shape, 1)).view(dtype).reshape(shape) if _is_wide(s) else y


def _bits_of(t: JaxTrace, x: Any, s: TensorType) -> Any:
    if not _is_wide(s):
        return x
    lax = t.lax
    if s.dtype.is_complex:
        parts = [lax.expand_dims(p, (x.ndim,)) for p in (lax.real(x), lax.imag(x))]
        pairs = lax.bitcast_convert_type(lax.concatenate(parts, x.ndim), np.uint32)
        return lax.reshape(pairs, (*x.shape, 4))
    return lax.bitcast_convert_type(x, np.uint32)


def _value_of(t: JaxTrace, bits: Any, s: TensorType) -> Any:
    if not _is_wide(s):
        return bits
    lax = t.lax
    if s.dtype.is_complex:
        pairs = lax.bitcast_convert_type(lax.reshape(bits, (*s.shape, 2, 2)), np.float64)
        at = len(s.shape)
        return lax.complex(*[lax.index_in_dim(pairs, i, at, keepdims=False) for i in (0, 1)])
    return lax.bitcast_convert_type(bits, s.dtype.dtype)

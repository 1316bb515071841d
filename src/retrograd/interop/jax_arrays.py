"""Arrays of JAX: from_jax, to_jax."""

from __future__ import annotations

from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import array_of as array_of_tensor
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import Array, LazyTensor
from retrograd.errors import ArgumentError, DTypeError, TraceError
from retrograd.functions.tensor.dlpack import refuse_tracked
from retrograd.functions.tensor.tensor import Tensor
from retrograd.lazy_import import need


def from_jax(x: Any, /) -> Tensor:
    """The arrays of a tree as tensors; what else is in it stays. They share the memory of JAX's,
    which nobody writes to, if that is the CPU's, else it is copied from the device.

    Shapes and dtypes stay, bfloat16 included. `TraceError` for what JAX is tracing: let JAX call
    the function by `rg.interop.as_jax`. `DTypeError` for a dtype that there is not here.

        >>> rg.from_jax(jnp.arange(3.0)).sum()  # doctest: +SKIP
        Tensor(3., dtype=float32)
    """
    jax = need("jax", "from_jax")
    leaves, structure = pytree.flatten(x)
    if not any(isinstance(leaf, jax.Array) for leaf in leaves):
        raise ArgumentError(f"from_jax takes a jax.Array, or a tree with some, not {x!r:.60}")
    return pytree.unflatten(
        structure, [Tensor.of(array_of(v)) if isinstance(v, jax.Array) else v for v in leaves]
    )


def to_jax(x: Any, /) -> Any:
    """The tensors of a tree as arrays of JAX; what else is in it stays. JAX shares their memory
    where it can.

    Shapes and dtypes stay. Without `jax_enable_x64`, JAX has no 64 bits: then integers become int32
    if they fit, and for floating numbers, or integers that do not, it is a `DTypeError`.
    `GradientError` for a tensor that requires a gradient, which would end here: pass `x.detach()`,
    or call the JAX function by `rg.interop.wrap_jax`.

        >>> rg.to_jax(rg.arange(3.0))  # doctest: +SKIP
        Array([0., 1., 2.], dtype=float32)
    """
    need("jax", "to_jax")
    leaves, structure = pytree.flatten(x)
    if not any(isinstance(leaf, LazyTensor | np.ndarray) for leaf in leaves):
        raise ArgumentError(f"to_jax takes a tensor, or a tree with some, not {x!r:.60}")
    return pytree.unflatten(
        structure, [_exported(v) if isinstance(v, LazyTensor | np.ndarray) else v for v in leaves]
    )


def _exported(x: Any) -> Any:
    if not isinstance(x, LazyTensor):
        return jax_array(as_array(x), "to_jax")
    refuse_tracked(x)
    return jax_array(array_of_tensor(x, "to_jax()"), "to_jax")


def array_of(x: Any) -> Array:
    """The memory of an array of JAX."""
    jax = need("jax", "from_jax")
    if isinstance(x, jax.core.Tracer):
        raise TraceError(
            f"from_jax: JAX is tracing, and {x} has no values; call the function by "
            "rg.interop.as_jax(f), which JAX can trace and differentiate"
        )
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        raise DTypeError("from_jax: a random key is no array; pass jax.random.key_data(key)")
    return as_array(np.asarray(x))


def jax_array(array: Array, what: str) -> Any:
    """An array of JAX with these numbers."""
    jax = need("jax", what)
    need("jax.numpy", what)
    kind = jax.dtypes.canonicalize_dtype(array.dtype)
    if kind == array.dtype:
        return jax.numpy.asarray(array)
    remedy = "jax.config.update('jax_enable_x64', True)"
    if array.dtype.kind in "fc":
        raise DTypeError(
            f"{what}: JAX would round {array.dtype} to {kind}; allow 64 bits there by {remedy}, or "
            f"pass x.astype(rg.{kind})"
        )
    limits = np.iinfo(kind)
    if array.size and not (limits.min <= array.min() and array.max() <= limits.max):
        raise DTypeError(
            f"{what}: {array.dtype} is {kind} in JAX, which does not hold these numbers; allow 64 "
            f"bits there by {remedy}"
        )
    return jax.numpy.asarray(array.astype(kind))

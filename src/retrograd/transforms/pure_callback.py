"""pure_callback: calls of functions in Python from what is traced and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor
from retrograd.eager.listeners import shown
from retrograd.errors import ArgumentError, DTypeError, ShapeError
from retrograd.functions.creation import asarray
from retrograd.functions.manipulation import reshape
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Dim, DType, TensorType, as_dtype, product
from retrograd.ops.control.pure_callback import HostFunction, PureCallback
from retrograd.ops.identity import StopGradient
from retrograd.shared import trim
from retrograd.tracing.scope import need_function

KEPT = 4096  # calls that are remembered, so that the same is the same operation
_CALLS: dict[Any, dict[DType, HostFunction]] = {}


def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, /, *args: Any, name: str = ""
) -> Any:
    """What `callback` returns, a function in Python that is called with NumPy arrays when the
    result is computed: also from within `jit`, `vmap`, `scan` and on every backend.

    `result_shape_dtypes` is the tree of what it returns, with `rg.spec(shape, dtype)`, or anything
    that has a `shape` and a `dtype`, for each array. Arguments are trees; what is neither a tensor
    nor an array in them is passed as it is. Under `vmap` it is called for one sample
    after the other. As in JAX, it has to be a function of the values of its arguments: it may be
    called several times, not at all, or on another thread. It must not compute with retrograd's
    tensors, of which other calls may be waiting for this one.

    It has no derivatives; `custom_vjp` gives it some. What it raises is raised where the result is
    computed. `ShapeError` and `DTypeError` where it returns something other than announced.

    >>> import numpy as np, retrograd as rg
    >>> def spread(x):
    ...     return np.ptp(x, axis=-1)
    >>> f = rg.jit(lambda x: rg.pure_callback(spread, rg.spec((2,)), x) + 1)
    >>> f(rg.tensor([[1.0, 5.0], [2.0, 3.0]])).tolist()
    [5.0, 2.0]
    """
    need_function(callback, "pure_callback")
    types, form = _announced(result_shape_dtypes)
    leaves, structure = pytree.flatten(args)
    at = [i for i, x in enumerate(leaves) if _is_array(x)]
    tensors = [x if isinstance(x, LazyTensor) else asarray(x) for x in (leaves[i] for i in at)]
    rest = tuple(None if _is_array(x) else x for x in leaves)
    functions = _functions(callback, structure, rest, tuple(types), form)
    label = name or getattr(callback, "__name__", type(callback).__name__)
    nodes = [x.node if x._requires_grad else StopGradient()(x.node) for x in tensors]
    parts: dict[DType, tuple[Tensor, Any]] = {}
    for dtype, function in functions.items():
        size = sum(product(t.shape) for t in types if t.dtype is dtype)
        op = PureCallback(label, (size,), dtype, function.number, function=function)
        parts[dtype] = Tensor(shown(op(*nodes))), 0
    found = []
    for t in types:
        (whole, start), size = parts[t.dtype], product(t.shape)
        found.append(reshape(whole[start : start + size], t.shape))
        parts[t.dtype] = whole, start + size
    return pytree.unflatten(form, found)


def _is_array(x: Any) -> bool:
    return isinstance(x, LazyTensor | np.ndarray | np.generic)


def _announced(result: Any) -> tuple[list[TensorType], Any]:
    """The types of the results, and their tree."""
    leaves, form = pytree.flatten(result)
    for x in leaves:
        if not (hasattr(x, "shape") and hasattr(x, "dtype")):
            raise ArgumentError(
                f"pure_callback: the results are announced as rg.spec(shape, dtype), not as {x!r}"
            )
    types = [x if isinstance(x, TensorType) else TensorType(as_dtype(x.dtype), tuple(x.shape))
             for x in leaves]  # fmt: skip
    return types, form


def _functions(
    callback: Callable[..., Any], structure: Any, rest: tuple[Any, ...],
    types: tuple[TensorType, ...], form: Any,
) -> dict[DType, HostFunction]:  # fmt: skip
    """The function of arrays for each dtype of results: those of one dtype are one vector."""
    key: Any = (callback, structure, tuple((type(x), x) for x in rest), types, form)
    try:
        known = _CALLS.get(key)
    except TypeError:  # something that cannot be hashed
        key, known = None, None
    if known is not None:
        return known

    def of(dtype: DType) -> Callable[..., Any]:
        def call(*arrays: Any) -> Any:
            return _packed(callback(*_filled(structure, rest, arrays)), types, form, dtype)

        return call

    made = {t.dtype: None for t in types}
    functions = {dtype: HostFunction(of(dtype)) for dtype in made}
    if key is not None:
        _CALLS[key] = functions
        trim(_CALLS, KEPT)
    return functions


def _filled(structure: Any, rest: tuple[Any, ...], arrays: Any) -> Any:
    """The arguments. Arrays are copied: they lie where the program will write something else."""
    given = iter(arrays)
    return pytree.unflatten(structure, [np.array(next(given)) if x is None else x for x in rest])


def _packed(found: Any, types: tuple[TensorType, ...], form: Any, dtype: DType) -> Any:
    """The results of one dtype as one vector."""
    leaves, other = pytree.flatten(found)
    if other != form:
        raise ShapeError(
            f"pure_callback: a result of structure {other}, where {form} was announced"
        )
    parts = []
    for x, t in zip(leaves, types, strict=True):
        array = as_array(x, None if hasattr(x, "dtype") else t.dtype)
        known = t.rank == array.ndim and all(
            isinstance(d, Dim) or d == n for d, n in zip(t.shape, array.shape, strict=True)
        )
        if not known or array.dtype != t.dtype.dtype:
            error = DTypeError if known else ShapeError
            kind = TensorType(as_dtype(array.dtype), array.shape)
            raise error(f"pure_callback: a result {kind}, where {t} was announced")
        if t.dtype is dtype:
            parts.append(array.reshape(-1))
    return np.concatenate(parts)

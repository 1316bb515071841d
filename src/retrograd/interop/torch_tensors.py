"""Tensors of PyTorch: from_torch, to_torch."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from retrograd import pytree
from retrograd.eager.conversion import as_array, number_of
from retrograd.eager.lazy_tensor import Array, LazyTensor
from retrograd.errors import ArgumentError, BackendError, DTypeError, GradientError
from retrograd.functions.creation import asarray
from retrograd.functions.creation import tensor as copied
from retrograd.functions.tensor.dlpack import refuse_tracked
from retrograd.lazy_import import need

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def from_torch(x: Any, /, *, copy: bool = False) -> Any:
    """The tensors of a tree, such as a `state_dict()`, as tensors of this library; what else is in
    it stays. They share the memory of PyTorch's, which both may write to, as `rg.asarray` does:
    an operation uses what is there when it is called. With `copy` they have memory of their own.

    Shapes and dtypes stay, bfloat16 and complex numbers included. `GradientError` for a tensor that
    requires a gradient, which would end here: pass `x.detach()`, or let the gradient go through by
    `rg.interop.as_torch`. `BackendError` for one that is not on the CPU, `DTypeError` for one that
    is sparse, quantized or of a dtype that there is not here.

        >>> t = torch.arange(3.0)  # doctest: +SKIP
        >>> rg.from_torch(t).sum()  # doctest: +SKIP
        Tensor(3., dtype=float32)
    """
    torch = need("torch", "from_torch")
    leaves, structure = pytree.flatten(x)
    if not any(isinstance(leaf, torch.Tensor) for leaf in leaves):
        raise ArgumentError(f"from_torch takes a torch.Tensor, or a tree with some, not {x!r:.60}")
    make = copied if copy else asarray
    return pytree.unflatten(
        structure, [make(array_of(v)) if isinstance(v, torch.Tensor) else v for v in leaves]
    )


def to_torch(x: Any, /, *, copy: bool = False) -> Any:
    """The tensors of a tree as tensors of PyTorch; what else is in it stays. They share their
    memory from here on, as what `rg.asarray` made: if PyTorch writes to it, later operations here
    use that, while what was recorded before keeps what it had. With `copy` they do not.

    Shapes and dtypes stay. `GradientError` for a tensor that requires a gradient, which would end
    here: pass `x.detach()`, or call the PyTorch function by `rg.interop.wrap_torch`. `TraceError`
    for one that is traced.

        >>> rg.to_torch(rg.arange(3.0))  # doctest: +SKIP
        tensor([0., 1., 2.])
    """
    need("torch", "to_torch")
    leaves, structure = pytree.flatten(x)
    if not any(isinstance(leaf, LazyTensor | np.ndarray) for leaf in leaves):
        raise ArgumentError(f"to_torch takes a tensor, or a tree with some, not {x!r:.60}")
    return pytree.unflatten(
        structure,
        [_exported(v, copy) if isinstance(v, LazyTensor | np.ndarray) else v for v in leaves],
    )


def _exported(x: Any, copy: bool) -> Any:
    if isinstance(x, LazyTensor):
        refuse_tracked(x)
        number_of(x, "to_torch()")
        return tensor_of(x.value().copy() if copy else x.give_memory())
    array = as_array(x)
    return tensor_of(array.copy() if copy else array)


def array_of(x: Any) -> Array:
    """The memory of a PyTorch tensor as an array."""
    torch = need("torch", "from_torch")
    if x.requires_grad:
        raise GradientError(
            "from_torch: a tensor that requires a gradient would lose its history; pass "
            "x.detach(), or use rg.interop.as_torch, through which gradients flow"
        )
    if x.device.type != "cpu":
        raise BackendError(f"from_torch: the tensor is on {x.device}; pass x.cpu()")
    if x.layout is not torch.strided or x.is_quantized:
        remedy = "x.dequantize()" if x.is_quantized else "x.to_dense()"
        raise DTypeError(f"from_torch: a tensor of layout {x.layout} is no array; pass {remedy}")
    x = x.resolve_conj().resolve_neg()
    if x.dtype is torch.bfloat16:
        array: Array = x.view(torch.int16).numpy().view(BFLOAT16)
        return array
    try:
        return as_array(x.numpy())
    except TypeError as error:  # PyTorch's, or the one that derives from it
        raise DTypeError(f"from_torch: {x.dtype} is not computed with here; cast it first "
                         f"({error})") from None  # fmt: skip


def tensor_of(array: Array) -> Any:
    """A PyTorch tensor on the memory of an array, where PyTorch can have that."""
    torch = need("torch", "to_torch")
    if not array.flags.writeable or any(s < 0 for s in array.strides):
        array = array.copy()
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def dtype_of(dtype: Any) -> Any:
    """PyTorch's dtype for one of this library."""
    return tensor_of(np.empty(0, dtype.dtype)).dtype

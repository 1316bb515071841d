"""Arrays and functions of PyTorch and JAX: there and back, with gradients."""

from typing import TYPE_CHECKING

from retrograd.interop.jax_arrays import from_jax, to_jax
from retrograd.interop.jax_functions import as_jax, wrap_jax
from retrograd.interop.torch_functions import as_torch, wrap_torch
from retrograd.interop.torch_module import as_torch_module
from retrograd.interop.torch_tensors import from_torch, to_torch
from retrograd.lazy_import import attach as _attach

if TYPE_CHECKING:
    from retrograd.interop.onnx.exported_program import from_exported_program
    from retrograd.interop.onnx.load import load_onnx

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(
        __name__,
        {},
        {
            "from_exported_program": "retrograd.interop.onnx.exported_program",
            "load_onnx": "retrograd.interop.onnx.load",
        },
    )

__all__ = [
    "as_jax",
    "as_torch",
    "as_torch_module",
    "from_exported_program",
    "from_jax",
    "from_torch",
    "load_onnx",
    "to_jax",
    "to_torch",
    "wrap_jax",
    "wrap_torch",
]

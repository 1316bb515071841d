"""Transforms of functions under the names of `torch.func`, for scripts that are ported."""

from typing import TYPE_CHECKING

from retrograd.func.stateless import functional_call, stack_module_state
from retrograd.func.transforms import grad_and_value, vjp
from retrograd.lazy_import import attach as _attach
from retrograd.transforms.grad import grad
from retrograd.transforms.jacobian import jacfwd, jacrev
from retrograd.transforms.jvp import jvp, linearize
from retrograd.transforms.sparse import hessian
from retrograd.transforms.vmap import vmap

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

"""Functions of functions: derivatives, batching, recomputation, rules of one's own."""

from retrograd.frontend.transforms.active import is_differentiating, is_tracked, to_node
from retrograd.frontend.transforms.checkpointing import checkpoint
from retrograd.frontend.transforms.custom import custom_jvp, custom_vjp
from retrograd.frontend.transforms.forward import jvp, linearize
from retrograd.frontend.transforms.gradients import grad, value_and_grad, vjp
from retrograd.frontend.transforms.jacobians import hvp, jacfwd, jacrev
from retrograd.frontend.transforms.vectorized import vmap

__all__ = [
    "checkpoint",
    "custom_jvp",
    "custom_vjp",
    "grad",
    "hvp",
    "is_differentiating",
    "is_tracked",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "to_node",
    "value_and_grad",
    "vjp",
    "vmap",
]

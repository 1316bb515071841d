"""Gradients under the names of `torch.autograd`, for scripts that are ported."""

from typing import TYPE_CHECKING

from retrograd.autograd import functional
from retrograd.autograd.checks import gradcheck, gradgradcheck
from retrograd.autograd.function import Function
from retrograd.autograd.gradients import backward, grad
from retrograd.eager.modes import no_grad
from retrograd.functions.pytorch.modes import enable_grad, inference_mode, set_grad_enabled
from retrograd.lazy_import import attach as _attach

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "Function",
    "backward",
    "enable_grad",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "no_grad",
    "set_grad_enabled",
]

"""Gradients kept within bounds, under PyTorch's names: `retrograd.optim` has the functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.errors import NonFiniteError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module
from retrograd.optim.clipping import clip_grad_norm, clip_grad_value, global_norm

Parameters = Module | Tensor | Iterable[Tensor]


def _with_gradients(parameters: Parameters) -> list[Tensor]:
    given: Any = parameters
    if isinstance(given, Module):
        given = given.parameters()
    return [p for p in ([given] if isinstance(given, Tensor) else given) if p.grad is not None]


def clip_grad_norm_(
    parameters: Parameters,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """`optim.clip_grad_norm`: gradients scaled so that their norm, as one vector, is at most
    `max_norm`; the norm before, `[]`. Without gradients it is 0. `foreach` changes nothing.

    >>> import retrograd as rg
    >>> w = rg.nn.Parameter([3.0, 4.0])
    >>> (w * w / 2).sum().backward()
    >>> rg.nn.utils.clip_grad_norm_([w], 1.0).item(), w.grad.tolist()
    (5.0, [0.6, 0.8])
    """
    given = _with_gradients(parameters)
    if not given:
        return rg.asarray(0.0)
    return clip_grad_norm(given, max_norm, norm_type, error_if_nonfinite)


def clip_grad_value_(
    parameters: Parameters, clip_value: float, foreach: bool | None = None
) -> None:
    """`optim.clip_grad_value`: every element of the gradients limited to ±clip_value. `foreach`
    changes nothing.

    >>> import retrograd as rg
    >>> w = rg.nn.Parameter([3.0, 0.5])
    >>> (w * w / 2).sum().backward()
    >>> rg.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad.tolist()
    [1.0, 0.5]
    """
    if given := _with_gradients(parameters):
        clip_grad_value(given, clip_value)


def get_total_norm(
    tensors: Tensor | Iterable[Tensor],
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """`optim.global_norm`: the norm of all tensors as one vector, `[]`; 0 of none.
    `NonFiniteError` where it is infinite or NaN, with `error_if_nonfinite`. `foreach` changes
    nothing.

    >>> import retrograd as rg
    >>> rg.nn.utils.get_total_norm([rg.tensor([3.0]), rg.tensor([4.0])]).item()
    5.0
    """
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not given:
        return rg.asarray(0.0)
    norm = global_norm(given, norm_type)
    if error_if_nonfinite and not np.isfinite(norm.detach().numpy()):
        raise NonFiniteError(f"the norm of {len(given)} tensors is {norm.detach().item()}")
    return norm


def clip_grads_with_norm_(
    parameters: Parameters, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Gradients times `min(1, max_norm / (total_norm + 1e-6))`, for a norm that was computed
    before. `foreach` changes nothing.

    >>> import retrograd as rg
    >>> w = rg.nn.Parameter([3.0, 4.0])
    >>> (w * w / 2).sum().backward()
    >>> rg.nn.utils.clip_grads_with_norm_([w], 1.0, 10.0)
    >>> w.grad.tolist()
    [0.3, 0.4]
    """
    with rg.no_grad():
        factor = rg.minimum(max_norm / (rg.asarray(total_norm) + 1e-6), 1.0)
        for p in _with_gradients(parameters):
            g: Any = p.grad
            p.grad = g * factor.astype(g.dtype)

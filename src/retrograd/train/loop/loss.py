"""What `fit` minimises: a function of the model and a batch, or a loss of `rg.nn`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from retrograd.errors import ArgumentError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module

Loss = Callable[[Any, Any], Any]


def as_loss(given: Any) -> Loss:
    """The function of a model and a batch. A loss of `rg.nn`, a module or a function, is that of
    what the model makes of the first part of a batch and of the second. `ArgumentError` for what
    is no function."""
    if not callable(given):
        raise ArgumentError(
            "fit(model, loss, data): loss is a function loss(model, batch) or a loss of rg.nn, not "
            f"{type(given).__name__}"
        )
    of_nn = (getattr(given, "__module__", None) or "").startswith("retrograd.nn.functional")
    if not (of_nn or isinstance(given, Module)):
        function: Loss = given
        return function

    def loss(model: Any, batch: Any) -> Any:
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise ArgumentError(
                "fit: with a loss of rg.nn a batch is a pair, what the model is given and the "
                f"targets, not {type(batch).__name__}; write loss(model, batch) yourself"
            )
        return given(model(batch[0]), batch[1])

    return loss


def loss_of(loss: Callable[[Any, Any], Any], model: Any, batch: Any) -> tuple[Any, Any]:
    """The loss, and what the function gave besides, if it did."""
    found = loss(model, batch)
    if found is None:
        raise ArgumentError("fit: loss(model, batch) returned None; does it return the loss?")
    value, aux = found, None
    if isinstance(found, tuple):
        if len(found) != 2:
            raise ArgumentError(
                "fit: the loss function returns a scalar, or a pair of it and what else is wanted, "
                f"not {len(found)} values"
            )
        value, aux = found
    if isinstance(value, Tensor) and value.shape != ():
        raise ShapeError(
            f"fit: the loss is a scalar, but loss(model, batch) returned the shape {value.shape}; "
            "reduce it with mean() or sum()"
        )
    return value, aux

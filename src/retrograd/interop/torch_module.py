"""Modules of this library as modules of PyTorch."""

from __future__ import annotations

import functools
from typing import Any

from retrograd import pytree
from retrograd.errors import ArgumentError
from retrograd.functions.creation import tensor
from retrograd.functions.tensor.tensor import Tensor
from retrograd.interop.torch_functions import as_torch
from retrograd.interop.torch_tensors import array_of, tensor_of
from retrograd.lazy_import import need
from retrograd.nn.module.module import Module


def as_torch_module(model: Module) -> Any:
    """A `torch.nn.Module` that computes what a module of this library does: its parameters and
    buffers are `torch.nn.Parameter`s and buffers of the same names, copies of those of `model`,
    which stays as it is. It is trained, moved between training and evaluation, saved and put into
    other modules like any of PyTorch's.

    `ArgumentError` for what is no module of this library.

        >>> net = rg.interop.as_torch_module(rg.nn.Linear(3, 1))  # doctest: +SKIP
        >>> sorted(net.state_dict())  # doctest: +SKIP
        ['bias', 'weight']
    """
    if not isinstance(model, Module):
        raise ArgumentError(f"as_torch_module takes an rg.nn.Module, not a {type(model).__name__}")
    need("torch", "as_torch_module")
    return _class()(model)


@functools.cache
def _class() -> Any:
    torch = need("torch", "as_torch_module")

    class RetrogradModule(torch.nn.Module):  # type: ignore[name-defined]
        """A module of retrograd."""

        def __init__(self, model: Module) -> None:
            super().__init__()
            self._kind = type(model).__name__
            leaves, self._structure = pytree.flatten(model)
            place = {id(x): i for i, x in enumerate(leaves)}
            self._parameters_at, self._buffers_at = {}, {}
            for name, p in model.named_parameters():
                self._parameters_at[name] = place[id(p)]
                own = torch.nn.Parameter(tensor_of(p.value().copy()), bool(p.requires_grad))
                _put(torch, self, name, own)
            for name, b in model.named_buffers():
                self._buffers_at[name] = place[id(b)]
                _put(torch, self, name, tensor_of(b.value().copy()))
            held = {*self._parameters_at.values(), *self._buffers_at.values()}
            self._rest = {i: _kept(x) for i, x in enumerate(leaves) if i not in held}
            self._count = len(leaves)

        def extra_repr(self) -> str:
            return self._kind

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            buffers = {name: tensor(array_of(self.get_buffer(name))) for name in self._buffers_at}

            def run(parameters: Any, args: Any, kwargs: Any) -> Any:
                leaves: list[Any] = [None] * self._count
                for i, x in self._rest.items():
                    leaves[i] = x
                for name, i in self._parameters_at.items():
                    leaves[i] = parameters[name]
                for name, i in self._buffers_at.items():
                    leaves[i] = buffers[name]
                model = pytree.unflatten(self._structure, leaves)
                model.train(self.training)
                out = model(*args, **kwargs)
                after = pytree.flatten(model)[0]
                moved = {i: after[i] for i in (*self._buffers_at.values(), *self._rest)}
                return out, moved

            given = {name: self.get_parameter(name) for name in self._parameters_at}
            out, after = as_torch(run)(given, args, kwargs)
            for name, i in self._buffers_at.items():
                self.get_buffer(name).copy_(after[i].detach())
            for i in self._rest:
                self._rest[i] = _kept(after[i])
            return out

    return RetrogradModule


def _kept(x: Any) -> Any:
    """A leaf that is neither parameter nor buffer, such as the key of a random generator."""
    torch = need("torch", "as_torch_module")
    if isinstance(x, torch.Tensor):
        return tensor(array_of(x.detach()))
    return tensor(x.value()) if isinstance(x, Tensor) else x


def _put(torch: Any, module: Any, path: str, value: Any) -> None:
    """Register a parameter or a buffer, in modules within for each part of its name."""
    *inner, name = path.split(".")
    for part in inner:
        if part not in module._modules:
            module.add_module(part, torch.nn.Module())
        module = module._modules[part]
    if isinstance(value, torch.nn.Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)

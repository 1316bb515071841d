"""Models in another floating dtype: kept in it, or computing in it while parameters stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import retrograd as rg
from retrograd import pytree
from retrograd.errors import DTypeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import DType, as_dtype
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter
from retrograd.nn.module.pytree import Composite, submodules
from retrograd.nn.module.scopes import standing_in

Convert = Callable[[Tensor], Tensor]


def cast(tree: Any, dtype: Any) -> Any:
    """A module, or any tree of tensors, with everything floating in another floating dtype; what is
    not floating stays as it is. The argument does not change.

    Conversion is an operation like any other, so that a gradient goes through it: the parameters of
    `nn.cast(model, rg.bfloat16)` are functions of those of `model`, which get gradients in their
    own dtype. Random generators are those of the model, and move on. What the copy assigns while it
    is called, such as running statistics, the copy has; `nn.MixedPrecision` carries it back.

    Shapes stay. `DTypeError` for a dtype that is not floating.

    >>> import retrograd as rg
    >>> model = rg.nn.Linear(2, 1)
    >>> half = rg.nn.cast(model, rg.bfloat16)
    >>> half.weight.dtype, model.weight.dtype
    (bfloat16, float32)
    """
    kind = _floating(dtype, "cast")

    def convert(x: Tensor) -> Tensor:
        return x if x.dtype is kind else x.astype(kind)

    if isinstance(tree, Module):
        return _copied(tree, convert, convert, {})

    def leaf(x: Any) -> Any:
        # Numbers of Python take the dtype of what they meet anyhow.
        if isinstance(x, bool | int | float | complex | str) or x is None:
            return x
        tensor = rg.asarray(x)
        return convert(tensor) if tensor.dtype.is_float else x

    return pytree.map(leaf, tree)


def _floating(dtype: Any, what: str) -> DType:
    kind = as_dtype(dtype)
    if not kind.is_float:
        raise DTypeError(f"{what}: the dtype is floating, such as bfloat16, not {kind}")
    return kind


def _copied(value: Any, parameter: Convert, other: Convert, known: dict[int, Any]) -> Any:
    """A copy of a module whose floating parameters and other floating tensors are converted, and
    which shares everything else; what is reached twice is one thing in the copy too."""
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, Composite):
        new: Any = object.__new__(type(value))
        known[id(value)] = new
        for name, x in vars(value).items():
            new.__dict__[name] = _copied(x, parameter, other, known)
    elif isinstance(value, Parameter):
        new = value
        if value.dtype.is_float:
            new = Parameter.standing_for(parameter(value), value.trainable)
    elif isinstance(value, Tensor):
        new = other(value) if value.dtype.is_float else value
    elif type(value) in (list, tuple):
        new = type(value)([_copied(x, parameter, other, known) for x in value])
    elif type(value) is dict:
        new = {k: _copied(x, parameter, other, known) for k, x in value.items()}
    else:
        return value
    known[id(value)] = new
    return new


class MixedPrecision(Module):
    """A module that computes in half precision while its parameters, which optimizers change, stay
    in float32 (Micikevicius et al., arXiv:1710.03740): `module` is called with its parameters, and
    the floating arguments, in `dtype`; floating results are given in `output_dtype`.

    Gradients arrive at the float32 parameters in float32. It is a module with one member, so that
    optimizers, `rg.grad`, `jit` and checkpoints take it as it is: `MixedPrecision(model)` in place
    of `model`. Buffers stay in their dtype, and running statistics and random generators of the
    module move on. For `float16`, whose gradients underflow, scale the loss with
    `rg.amp.GradScaler`; `bfloat16` needs none.

    Shapes are those of the module. `DTypeError` for dtypes that are not floating, `TypeError` for
    what is no module.

    >>> import retrograd as rg
    >>> model = rg.nn.MixedPrecision(rg.nn.Linear(4, 2))
    >>> y = model(rg.ones((3, 4)))
    >>> y.sum().backward()
    >>> y.dtype, model.module.weight.grad.dtype
    (float32, float32)
    """

    def __init__(
        self, module: Module, dtype: Any = rg.bfloat16, output_dtype: Any = rg.float32
    ) -> None:
        super().__init__()
        if not isinstance(module, Module):
            raise TypeError(f"MixedPrecision of a module, not of {type(module).__name__}")
        self.module = module
        self.dtype = _floating(dtype, "MixedPrecision")
        self.output_dtype = _floating(output_dtype, "MixedPrecision")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        kind = self.dtype
        copy = _copied(self.module, lambda p: p.astype(kind), lambda x: x, {})
        with standing_in(copy, "module"):
            y = copy.forward(*cast(args, kind), **cast(kwargs, kind))
        _take_over(self.module, copy)
        return cast(y, self.output_dtype)

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}"


def _take_over(module: Module, copy: Module) -> None:
    """Give a module the buffers that its copy has by now."""
    for mine, theirs in zip(submodules(module), submodules(copy), strict=True):
        for name in mine.value._buffers:
            old, new = mine.value.__dict__.get(name), theirs.value.__dict__.get(name)
            if isinstance(old, Tensor) and isinstance(new, Tensor) and new is not old:
                setattr(mine.value, name, new.astype(old.dtype))

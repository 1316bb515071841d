"""Parameters that are computed from others: weights of a fixed norm, symmetric ones, masked ones.

    parametrize.register_parametrization(layer, "weight", Symmetric())

`layer.weight` is from then on `Symmetric()(original)`, computed at each access, and what is trained
is `layer.parametrizations.weight.original`, as in PyTorch, whose names of the state these are.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import retrograd as rg
from retrograd.errors import OptionError, ShapeError, nearest
from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.containers import ModuleList
from retrograd.nn.module.module import Module
from retrograd.nn.module.parameter import Parameter

M = TypeVar("M", bound=Module)


class ParametrizationList(ModuleList):
    """Modules that are applied to `original` one after the other; where the last one's
    `right_inverse` gives several tensors, its arguments are `original0`, `original1` and so on."""

    def __init__(self, modules: Any, originals: dict[str, Parameter]) -> None:
        super().__init__(modules)
        self.names = tuple(originals)
        for name, value in originals.items():
            setattr(self, name, value)

    def forward(self) -> Tensor:
        first, *rest = self._listed()
        y = first(*[getattr(self, name) for name in self.names])
        for module in rest:
            y = module(y)
        return y

    def right_inverse(self, value: Any) -> None:
        """Give the originals values for which the result is this one, as far as there are."""
        for module in reversed(self._listed()):
            inverse = getattr(module, "right_inverse", None)
            if inverse is None:
                raise OptionError(
                    f"{type(module).__name__} has no right_inverse(), so that what it computes "
                    "cannot be assigned; change the original"
                )
            value = inverse(value)
        parts = value if isinstance(value, tuple) else (value,)
        for name, part in zip(self.names, parts, strict=True):
            getattr(self, name).replace(rg.asarray(part).detach().value().copy())


class Parametrizations(Module):
    """The lists of a module, by the name of what they compute."""


@cache
def _parametrized(cls: Any, names: tuple[str, ...]) -> Any:
    """The class of modules of which these are computed."""

    def computed(name: str) -> property:
        def read(self: Any) -> Any:
            return vars(self.parametrizations)[name]()

        def write(self: Any, value: Any) -> None:
            with rg.no_grad():
                vars(self.parametrizations)[name].right_inverse(rg.asarray(value))

        return property(read, write)

    def reduced(self: Any) -> Any:
        return _of_class, (cls, names), vars(self)

    members: dict[str, Any] = {name: computed(name) for name in names}
    members |= {"__reduce__": reduced, "__module__": cls.__module__, "_plain": cls}
    return type(f"Parametrized{cls.__name__}", (cls,), members)


def _of_class(cls: Any, names: tuple[str, ...]) -> Module:
    return object.__new__(_parametrized(cls, names))


def register_parametrization(
    module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> M:
    """Compute a parameter of a module from others, by a module called with these. Its
    `right_inverse(value)`, if it has one, says what they begin as: a tensor, or a tuple of them; it
    also makes assignment to the parameter possible. Several are applied in the order in which they
    were registered. Returns the module, whose class is another one from then on.

    `OptionError` for what is no parameter, `ShapeError` where the shape changes, unless `unsafe`.

    >>> import retrograd as rg
    >>> class Symmetric(rg.nn.Module):
    ...     def forward(self, x):
    ...         return (x + x.T) / 2
    >>> layer = rg.nn.Linear(2, 2)
    >>> layer = rg.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all()), [n for n, _ in layer.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    lists = vars(vars(module).get("parametrizations", Parametrizations()))
    if tensor_name in lists:
        found: Any = lists[tensor_name]
        _check(found.forward(), parametrization(found.forward()), tensor_name, unsafe)
        if hasattr(parametrization, "right_inverse"):
            with rg.no_grad():
                found.right_inverse(parametrization.right_inverse(found.forward()))
        found.append(parametrization)
        return module
    value = vars(module).get(tensor_name)
    if not isinstance(value, Parameter):
        known = [name for name, x in vars(module).items() if isinstance(x, Parameter)]
        raise OptionError(
            f"{type(module).__name__} has no parameter {tensor_name!r}{nearest(tensor_name, known)}"
        )
    originals = _originals(value, parametrization)
    made = ParametrizationList([parametrization], originals)
    with rg.no_grad():
        _check(value, made.forward(), tensor_name, unsafe)
    plain = getattr(type(module), "_plain", type(module))
    if "parametrizations" not in vars(module):
        module.__dict__["parametrizations"] = Parametrizations()
    del module.__dict__[tensor_name]
    module.__dict__["parametrizations"].__dict__[tensor_name] = made
    module.__class__ = _parametrized(plain, _names(module))  # type: ignore[arg-type]
    return module


def _names(module: Any) -> tuple[str, ...]:
    lists = vars(module)["parametrizations"]
    return tuple(name for name, x in vars(lists).items() if isinstance(x, ParametrizationList))


def _originals(value: Parameter, parametrization: Any) -> dict[str, Parameter]:
    """What is trained in place of a parameter: that itself, or what `right_inverse` gives."""
    inverse = getattr(parametrization, "right_inverse", None)
    if inverse is None:
        return {"original": value}
    with rg.no_grad():
        begun = inverse(value.detach())
    if not isinstance(begun, tuple | list):
        value.replace(rg.asarray(begun).value().copy())
        return {"original": value}
    return {
        f"original{i}": Parameter(rg.asarray(x).value(), requires_grad=value.trainable)
        for i, x in enumerate(begun)
    }


def _check(old: Any, new: Any, name: str, unsafe: bool) -> None:
    if not unsafe and (new.shape, new.dtype) != (old.shape, old.dtype):
        raise ShapeError(
            f"the parametrization of {name} makes {new.dtype} {new.shape} of {old.dtype} "
            f"{old.shape}; pass unsafe=True if that is meant"
        )


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """A parameter as it was before `register_parametrization`, with the value that is computed now,
    or with `leave_parametrized=False` the original one. `OptionError` for one that is not
    computed."""
    if not is_parametrized(module, tensor_name):
        raise OptionError(f"{type(module).__name__}.{tensor_name} has no parametrization")
    lists = vars(module)["parametrizations"]
    found: Any = vars(lists)[tensor_name]
    first = getattr(found, found.names[0])
    if leave_parametrized:
        with rg.no_grad():
            value = found.forward().detach().value().copy()
        if found.names == ("original",):
            parameter = first
            parameter.replace(value)
        else:
            parameter = Parameter(value, requires_grad=first.trainable)
    elif found.names == ("original",):
        parameter = first
    else:
        raise OptionError(
            f"{tensor_name} is computed from several tensors, none of which it can be left as"
        )
    del lists.__dict__[tensor_name]
    names, plain = _names(module), type(module)._plain  # type: ignore[attr-defined]
    module.__class__ = _parametrized(plain, names) if names else plain
    if not names:
        del module.__dict__["parametrizations"]
    module.__dict__[tensor_name] = parameter
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a parameter, or any, is computed from others."""
    lists = vars(module).get("parametrizations")
    if not isinstance(lists, Parametrizations):
        return False
    return bool(_names(module)) if tensor_name is None else tensor_name in _names(module)


def type_before_parametrizations(module: Module) -> type[Module]:
    """The class that a module had before."""
    return getattr(type(module), "_plain", type(module))

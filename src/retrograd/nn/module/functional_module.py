"""Modules that are a function with options."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, ClassVar

from retrograd.functions.tensor.tensor import Tensor
from retrograd.nn.module.module import Module, shown


class FunctionalModule(Module):
    """Applies a `function` to what it is called with. The parameters of `__init__` are options of
    the function and attributes, all of which are shown but those `hidden`."""

    function: ClassVar[Callable[..., Any]]
    hidden: ClassVar[tuple[str, ...]] = ("inplace",)
    _options: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__()
        if unknown := [name for name in options if name not in self._options]:
            raise TypeError(f"{type(self).__name__} has no option {unknown[0]!r}")
        for name, value in options.items():
            setattr(self, name, value)

    # Of those without options; others have constructors of their own.
    __init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    )

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        parameters = inspect.signature(cls.__init__).parameters.values()
        kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        own = [p.name for p in parameters if p.kind not in kinds]
        cls._options = tuple(own[1:])  # without self
        if "function" in vars(cls) and "forward" not in vars(cls):
            cls.forward = _forward_of(cls)  # type: ignore[method-assign]

    def forward(self, *inputs: Any, **named: Any) -> Tensor:
        options = {name: getattr(self, name) for name in self._options}
        found: Tensor = self.function(*inputs, **named, **options)
        return found

    def extra_repr(self) -> str:
        return shown(self, *(name for name in self._options if name not in self.hidden))


def _forward_of(cls: type[FunctionalModule]) -> Any:
    """`forward` with the signature of the function, without its options: what `help` shows."""
    shared: Any = FunctionalModule.forward
    own = types.FunctionType(shared.__code__, shared.__globals__, "forward")
    taken = inspect.signature(cls.function).parameters.values()
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    inputs = [p for p in taken if p.name not in cls._options]
    if not any(p.kind is p.POSITIONAL_ONLY for p in inputs):
        itself = itself.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own.__signature__ = inspect.Signature([itself, *inputs])  # type: ignore[attr-defined]
    return own


class InPlace(FunctionalModule):
    """One whose only option is PyTorch's `inplace`, which changes nothing: compiled programs reuse
    memory by themselves."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)

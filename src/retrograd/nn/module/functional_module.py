"""Modules that are a function with options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

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

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        parameters = inspect.signature(cls.__init__).parameters.values()
        kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        own = [p.name for p in parameters if p.kind not in kinds]
        cls._options = tuple(own[1:])  # without self

    def forward(self, *inputs: Any, **named: Any) -> Any:
        options = {name: getattr(self, name) for name in self._options}
        return self.function(*inputs, **named, **options)

    def extra_repr(self) -> str:
        return shown(self, *(name for name in self._options if name not in self.hidden))


class InPlace(FunctionalModule):
    """One whose only option is PyTorch's `inplace`, which changes nothing: compiled programs reuse
    memory by themselves."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(inplace=inplace)

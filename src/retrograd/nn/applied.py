"""Modules that are a function with options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from retrograd.nn.module import Module, shown


class Applied(Module):
    """Applies a `function` to what it is called with. The parameters of `__init__` are options of
    the function and attributes, all of which are shown but those `hidden`."""

    function: ClassVar[Callable[..., Any]]
    hidden: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        code = cls.__init__.__code__
        cls.options = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    def __init__(self, **options: Any) -> None:
        super().__init__()
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        options = {name: getattr(self, name) for name in self.options}
        return self.function(*inputs, **named, **options)

    def extra_repr(self) -> str:
        return shown(self, *(name for name in self.options if name not in self.hidden))

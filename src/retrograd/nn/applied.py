"""Modules that are a function with options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from retrograd.nn.module import Module, shown


class Applied(Module):
    """Applies a `function` to what it is called with. The parameters of `__init__` are options of
    the function and attributes, all of which are shown but those `hidden`."""

    function: ClassVar[Callable[..., Any]]
    hidden: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__()
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        options = {name: getattr(self, name) for name in _options(type(self))}
        return self.function(*inputs, **named, **options)

    def extra_repr(self) -> str:
        return shown(self, *(name for name in _options(type(self)) if name not in self.hidden))


@cache
def _options(kind: type[Applied]) -> tuple[str, ...]:
    parameters = inspect.signature(kind).parameters.values()
    return tuple(p.name for p in parameters if p.kind is not p.VAR_KEYWORD)

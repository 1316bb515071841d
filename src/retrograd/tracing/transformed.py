"""What transforms such as `grad` return, as type checkers see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class Transformed(Generic[P, R]):
    """A function with arguments `P` that returns `R`; when a program runs it is a plain function.

    A class of its own, and not `Callable[P, R]`: mypy cannot infer the types of a lambda in
    `trace(vmap(lambda x: ...))` with that.
    """

    __name__: str
    __wrapped__: Callable[..., Any]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The transformed function."""
        raise NotImplementedError

    @overload
    def __get__(self, instance: None, owner: Any = ...) -> Self: ...
    @overload
    def __get__(
        self: Transformed[Concatenate[Any, Q], R], instance: object, owner: Any = ...
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The function as a method."""
        raise NotImplementedError

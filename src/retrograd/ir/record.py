"""Frozen dataclasses whose methods are not compiled one by one.

`dataclasses.dataclass` writes the source of five methods and compiles it, half a millisecond a
class, which everyone waits for who uses an operation for the first time. These methods are made
once, as functions of the names of the fields. What the module `dataclasses` wants to know of the
fields is written down when somebody asks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

_set = object.__setattr__


@dataclasses.dataclass(frozen=True, repr=False)
class _Model:
    """What the module `dataclasses` writes down of such a class."""


def record(cls: Any) -> None:
    """Make a class what `dataclass(frozen=True, repr=False)` makes of it, in place."""
    names = _names(cls)
    own: dict[str, Any] = {
        "__init__": _init(cls, names),
        "__setattr__": _frozen(cls, "assign to", names),
        "__delattr__": _frozen(cls, "delete", names),
        "__match_args__": names,
        **_comparison(names),
    }
    given = vars(cls)
    hashed = given.get("__hash__") is not None
    for name, value in own.items():
        if name not in given or (name == "__hash__" and not hashed):
            setattr(cls, name, value)
    cls.__dataclass_fields__ = _FieldsOnceAsked(cls)
    cls.__dataclass_params__ = vars(_Model)["__dataclass_params__"]


def _names(cls: type) -> tuple[str, ...]:
    """Of the fields, those of the bases first."""
    found: dict[str, None] = {}
    for c in cls.__mro__[:0:-1]:
        found.update(dict.fromkeys(vars(c).get("__match_args__", ())))
    for name in vars(cls).get("__annotations__", ()):
        if isinstance(vars(cls).get(name), dataclasses.Field):
            raise TypeError(f"{cls.__name__}.{name}: a field has a default or none")
        found[name] = None
    return tuple(found)


class _FieldsOnceAsked:
    """`__dataclass_fields__` of a record, until somebody asks."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, op: object, cls: type) -> dict[str, Any]:
        found = _fields(self._cls)
        self._cls.__dataclass_fields__ = found
        return found


def _fields(cls: Any) -> dict[str, Any]:
    """The fields as the module `dataclasses` describes them, by name."""
    found: dict[str, Any] = {}
    for c in cls.__mro__[:0:-1]:
        if "__match_args__" in vars(c):
            found.update(c.__dataclass_fields__)
    names = vars(cls).get("__annotations__", {})
    body = {name: vars(cls)[name] for name in names if name in vars(cls)}
    # A class of nothing but these fields is read by the module, which compiles nothing for it.
    plain = type(cls.__name__, (), {"__annotations__": names, "__doc__": "fields", **body})
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False)(plain)
    found.update(made.__dataclass_fields__)
    return found


def _init(cls: type, names: tuple[str, ...]) -> Any:
    defaults = {name: getattr(cls, name) for name in names if hasattr(cls, name)}
    after = getattr(cls, "__post_init__", None)
    count = len(names)

    def complete(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The values of all fields."""
        if len(args) > count:
            raise TypeError(f"{cls.__name__} takes {count} attributes, not {len(args)}")
        values = {**defaults, **named, **dict(zip(names, args, strict=False))}
        twice = [name for name in names[: len(args)] if name in named]
        unknown = [name for name in named if name not in names]
        missing = [name for name in names if name not in values]
        for wrong, what in ((twice, "is given twice"), (unknown, "is unknown")):
            if wrong:
                raise TypeError(f"{cls.__name__}: the attribute {wrong[0]} {what}")
        if missing:
            raise TypeError(f"{cls.__name__}: the attribute {missing[0]} is missing")
        return tuple([values[name] for name in names])

    # Written out for few fields, of which nearly all are: a loop takes twice as long.
    def of_one(self: Any, *args: Any, **named: Any) -> None:
        if named or len(args) != 1:
            args = complete(args, named)
        _set(self, first, args[0])

    def of_two(self: Any, *args: Any, **named: Any) -> None:
        if named or len(args) != 2:
            args = complete(args, named)
        a, b = args
        _set(self, first, a)
        _set(self, second, b)

    def of_many(self: Any, *args: Any, **named: Any) -> None:
        if named or len(args) != count:
            args = complete(args, named)
        for name, value in zip(names, args, strict=True):
            _set(self, name, value)

    first, second, *_ = *names, "", ""
    made = {1: of_one, 2: of_two}.get(count, of_many)
    if after is None:
        return made

    def and_after(self: Any, *args: Any, **named: Any) -> None:
        made(self, *args, **named)
        after(self)

    return and_after


def _comparison(names: Sequence[str]) -> dict[str, Any]:
    values: Callable[[Any], Any]
    if not names:
        known = hash(())

        def values(self: Any) -> Any:
            return ()

        def __hash__(self: Any) -> int:
            return known

    elif len(names) == 1:  # `attrgetter` gives the value itself
        value = attrgetter(names[0])

        def values(self: Any) -> Any:
            return (value(self),)

        def __hash__(self: Any) -> int:
            return hash((value(self),))

    else:
        values = attrgetter(*names)

        def __hash__(self: Any) -> int:
            return hash(values(self))

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return {"__hash__": __hash__, "__eq__": __eq__}


def _frozen(cls: type, what: str, names: Sequence[str]) -> Any:
    def refuse(self: Any, name: str, *value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")
        base: Any = super(cls, self)
        (base.__setattr__ if value else base.__delattr__)(name, *value)

    return refuse

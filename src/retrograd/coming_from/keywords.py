"""Arguments under the names that PyTorch and NumPy have for them.

A function is asked about here when it is called with a name that it does not have: never in a call
of the usual kind.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from retrograd.errors import ArgumentError, nearest

F = TypeVar("F", bound=Callable[..., Any])


@functools.cache
def tables() -> dict[str, Any]:
    """What is said of names, from the file beside this one: read when first needed."""
    import tomllib  # who calls functions as they are waits for no parser

    said = tomllib.loads(Path(__file__).with_name("keywords.toml").read_text("utf-8"))
    for table in ("here", "neutral"):
        said[table] = {name: text.split() for name, text in said[table].items()}
    return said | {place: said[place].split() for place in ("first", "second")}


@functools.lru_cache(4096)
def parameters(f: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function, by name."""
    return inspect.signature(f).parameters


def respelled(
    f: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], name: str = ""
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call of f under the names that f has for them: those given by name in
    place of by position, those under a name that another library has, without those that say what
    holds anyhow. `ArgumentError` for a name that means nothing, with what to write."""
    name = name or f"rg.{f.__name__}"
    known = parameters(f)
    by_place = [p.name for p in known.values() if p.kind in _PLACED]
    rest = next((p.name for p in known.values() if p.kind is _MANY), "")
    if len(args) > len(by_place) and not rest:
        raise ArgumentError(f"{name}() takes {_listed(known)}, not {len(args)} arguments by place")
    found: dict[str, Any] = {}
    taken = {*by_place[: len(args)]}
    for key, value in named.items():
        target = _target(key, known, by_place, rest, taken | found.keys())
        if not target:
            if repr(value) in tables()["neutral"].get(key, ()):
                continue
            raise ArgumentError(_unknown(name, key, known))
        if target in taken or target in found:
            raise ArgumentError(f"{name}() is given {target!r} twice, once as {key}=")
        found[target] = value
    if rest in found:  # `x.view(size=(2, 3))` is `x.view((2, 3))`
        args = (*args, found.pop(rest))
    args = _placed(name, known, args, found)
    return args, found


_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_MANY = inspect.Parameter.VAR_POSITIONAL
_ANY = inspect.Parameter.VAR_KEYWORD


def _target(
    key: str, known: Mapping[str, Any], by_place: list[str], rest: str, given: set[str]
) -> str:
    """The parameter that a name means; "" if none."""
    if key in known or any(p.kind is _ANY for p in known.values()):
        return key
    for place, names in enumerate(("first", "second")):
        if key in tables()[names] and len(by_place) > place:
            target = by_place[place]
            only = known[target].kind is inspect.Parameter.POSITIONAL_ONLY
            if (only or place == 0 or key == "other") and target not in given:
                return target
    return next((x for x in tables()["here"].get(key, ()) if x in known), "")


def _placed(
    name: str, known: Mapping[str, Any], args: tuple[Any, ...], found: dict[str, Any]
) -> tuple[Any, ...]:
    """The arguments by place: what cannot be given by name is put there."""
    for p in [*known.values()][len(args) :]:
        if p.kind is not inspect.Parameter.POSITIONAL_ONLY:
            break
        if p.name in found:
            args = (*args, found.pop(p.name))
        elif p.default is p.empty:
            raise ArgumentError(f"{name}() misses {p.name!r}: it takes {_listed(known)}")
        else:
            args = (*args, p.default)
    return args


def _unknown(name: str, key: str, known: Mapping[str, Any]) -> str:
    said = tables()["instead"].get(f"{name.rpartition('.')[2]} {key}", tables()["instead"].get(key))
    more = f"; {said.format(f=name)}" if said else nearest(key, known)
    return f"{name}() has no argument {key!r}: it takes {_listed(known)}{more}"


def _listed(known: Mapping[str, Any]) -> str:
    stars = {_MANY: "*", _ANY: "**"}
    taken = [p for p in known.values() if p.name != "self"]
    return ", ".join(f"{stars.get(p.kind, '')}{p.name}" for p in taken)


def respells(f: F, name: str = "") -> F:
    """A function that takes its arguments under the names of other libraries, too; errors call it
    by its name. One that takes any name stays as it is."""
    if inspect.unwrap(f).__code__.co_flags & inspect.CO_VARKEYWORDS:
        return f
    known = parameters(f)
    names = frozenset(p.name for p in known.values() if p.kind in (_PLACED[1], p.KEYWORD_ONLY))
    shown = name or f"{'x' if 'self' in known else 'rg'}.{f.__name__}"

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not kwargs.keys() <= names:
            args, kwargs = respelled(f, args, kwargs, shown)
        return f(*args, **kwargs)

    return call  # type: ignore[return-value]

"""Where in the user's program we are, and which function of the library was called there.

`cross_entropy(x, y)` makes twenty nodes. Each knows the name of the function and a number that the
nodes of one call share. Both are found in the frames that lead from the user's line to where a node
is made, so that they cost something only where nodes are made. Within a layer of the library its
`forward` stands for the user.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from threading import local
from types import CodeType, FrameType
from typing import Any, TypeVar

from retrograd.errors import (
    ArgumentError,
    DTypeError,
    IndexRangeError,
    OptionError,
    RetrogradError,
    ShapeError,
)
from retrograd.ir.node import Source

F = TypeVar("F", bound=Callable[..., Any])
REFUSALS = (ShapeError, DTypeError, OptionError, ArgumentError, IndexRangeError)

_HERE = Path(__file__).resolve().parents[1]
PACKAGE = f"{_HERE}{os.sep}"
COMMAND = f"{_HERE / 'cli'}{os.sep}"
# Rooms built on the public interface: where the command line is the user, they hold its program.
ABOVE = tuple([f"{_HERE / room}{os.sep}" for room in ("nn", "optim", "train")])
USER, INSIDE, RECIPE, TOOL = range(4)  # where a file is
PLACES: dict[str, int] = {}  # of files that we have come across, by name
# Rooms whose functions users call; all others hold what makes, runs and transforms graphs.
ROOMS = ("functions", "nn", "optim", "gnn", "models", "solvers", "distributions", "interop")
# Of functions that have another name for users, who write `x[0]` and `layer(x)`.
NAMED = {"picked": "index", "multi_head_attention_forward": "multi_head_attention"}
MODULE = "module"  # in place of a name: the code that calls the `forward` of a module
# Of code of this package, which is kept alive, by identity: where it is, what users call it.
KINDS: dict[int, tuple[CodeType, int, str]] = {}
next_call = itertools.count(1).__next__


def user_source(f: Callable[..., Any] | None = None) -> Source | None:
    """The user's line that led here, as far as there is one, and which function is called there:
    `f`, where there is no frame of it yet.

    One walk through the frames, outwards, for every node that is made anew: it ends where it comes
    to the call that the last one was made in.
    """
    calls = TRACED.get()
    known = calls.frame if calls is not None else None
    inner = at = sys._getframe(1)  # of this package
    found: FrameType | None = None  # that of the outermost function so far that users call
    last, name, module, above = at, "", "", None
    while True:
        if at is known:
            return calls.source  # type: ignore[union-attr]
        code = at.f_code
        kind = KINDS.get(id(code))
        if kind is None and (
            PLACES.get(code.co_filename) == USER or (kind := _kind_of(code)) is None
        ):
            break
        if kind[1] != INSIDE:
            if kind[1] == TOOL:
                at = above or last
                break
            above = above or at
        if not module:
            if kind[2] == MODULE:  # whose `forward`, the last frame, stands for the user
                module = _class_of(at, calls, "nn.")
            elif name:
                found = last
            name = kind[2]
        last = at
        if at.f_back is None:
            at = above or last
            break
        at = at.f_back
    if not module:
        found = last if name else found
        outer = at.f_back
        if outer is not None and (kind := KINDS.get(id(outer.f_code))) and kind[2] == MODULE:
            module = _class_of(outer, calls)
    name, call = _called(inner, found, f, calls)
    source = Source(at.f_code, at.f_lasti, name, module, call)
    if calls is not None and found is not None:
        calls.frame, calls.source = found, source
    return source


def _kind_of(code: CodeType) -> tuple[CodeType, int, str] | None:
    """What is known of code of this package; None of that of users."""
    where = PLACES.get(code.co_filename)
    if where is None:
        where = _where(code.co_filename)
    if where == USER:
        return None
    kind = KINDS[id(code)] = code, where, _name(code)
    return kind


def user_place(within: FrameType | None = None) -> tuple[CodeType | None, int]:
    """The innermost line outside of this package that led here, or to the frame within which it is
    looked for, as code object and offset; below
    the package's own command, where no line of a user's is to be found, the innermost line of a
    recipe or layer."""
    frame = _user_frame(within or sys._getframe(1))
    return (frame.f_code, frame.f_lasti) if frame is not None else (None, 0)


def _user_frame(frame: FrameType | None) -> FrameType | None:
    last = frame
    above = None
    while frame is not None:
        code = frame.f_code
        where = PLACES.get(code.co_filename)
        if where is None:
            where = _where(code.co_filename)
        if where == USER:
            return frame
        if where == TOOL:
            break
        if where == RECIPE and above is None:
            above = frame
        last, frame = frame, frame.f_back
    return above or last


class TracedCalls:
    """The call that the last node of a trace was made in: its frame, which tells two calls on one
    line apart, and where that was. `label` is the name of a part that has been given one, with its
    `number`."""

    __slots__ = ("classes", "frame", "label", "number", "source")

    def __init__(self) -> None:
        self.frame: FrameType | None = None
        self.source: Source | None = None
        self.classes: tuple[FrameType | None, str] = None, ""  # a frame of a module, its class
        self.label = ""
        self.number = 0


TRACED: ContextVar[TracedCalls | None] = ContextVar("calls", default=None)


class _Recorded(local):
    """The same where nothing is traced. A frame would keep tensors alive, so there are the identity
    of it and how far it had come: a later node of the same call was made further on."""

    frame = 0
    place: tuple[int, ...] = ()
    number = 0


_RECORDED = _Recorded()


class labelled:
    """What is traced inside the block is one call, shown under this name."""

    __slots__ = ("_before", "_calls", "_name")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._calls = calls = TRACED.get()
        if calls is not None:
            self._before = calls.label, calls.number
            calls.label, calls.number, calls.frame = self._name, next_call(), None

    def __exit__(self, *failure: object) -> None:
        if self._calls is not None:
            self._calls.label, self._calls.number = self._before
            self._calls.frame = None


def modules_are_called_by(f: Callable[..., Any]) -> None:
    """Say that a function calls the `forward` of a module, its `self`."""
    KINDS[id(f.__code__)] = f.__code__, RECIPE, MODULE


def _class_of(frame: FrameType, calls: TracedCalls | None, room: str = "") -> str:
    """The class of the module that is being called in a frame. To look into a frame takes time, so
    the last one is remembered where frames are."""
    if calls is not None and calls.classes[0] is frame:
        return room + calls.classes[1]
    name = type(frame.f_locals["self"]).__name__
    if calls is not None:
        calls.classes = frame, name
    return room + name


def _called(
    inner: FrameType, found: FrameType | None, f: Any, calls: TracedCalls | None
) -> tuple[str, int]:
    """The function that was called, such as "softmax()", and the number of the call:
    that of the frame `found`, which led to `inner`, or else `f`."""
    if calls is not None and calls.label:
        return calls.label, calls.number
    if found is None:
        return _name_of_function(f), next_call()
    name = _name_of(found.f_code)
    if calls is not None:
        return name, next_call()
    place = [inner.f_lasti]
    while inner is not found:
        inner = inner.f_back  # type: ignore[assignment]
        place.append(inner.f_lasti)
    here = tuple(reversed(place))
    if _RECORDED.frame != id(found) or here <= _RECORDED.place:
        _RECORDED.number = next_call()
    _RECORDED.frame, _RECORDED.place = id(found), here
    return name, _RECORDED.number


def call_itself(f: Callable[..., Any]) -> tuple[str, str, int]:
    """What a `Source` is told of a function that has been called, now that its nodes are made."""
    return _name_of_function(inspect.unwrap(f)), "", next_call()


def _name_of(code: CodeType) -> str:
    """How a function of this package is shown that users call; empty for what they do not call."""
    kind = KINDS.get(id(code)) or _kind_of(code)
    return kind[2] if kind is not None else ""


def _name(code: CodeType) -> str:
    _, _, inside = code.co_filename.replace("\\", "/").rpartition("/retrograd/")
    name = code.co_name
    if inside.split("/")[0] not in ROOMS or "<locals>" in code.co_qualname:
        return ""
    return "" if name.startswith(("_", "<")) else f"{NAMED.get(name, name)}()"


@functools.lru_cache(maxsize=4096)
def _name_of_function(f: Any) -> str:
    """The same of a function on nodes, some of which are made by others, and have a name."""
    name = getattr(f, "__name__", "_")
    return "" if name.startswith(("_", "<")) else f"{NAMED.get(name, name)}()"


def user_level() -> int:
    """How many calls up the user's line is from the caller: the `stacklevel` of a warning."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def _where(file: str) -> int:
    if not file.startswith(PACKAGE):
        where = USER
    elif file.startswith(COMMAND):
        where = TOOL
    else:
        where = RECIPE if file.startswith(ABOVE) else INSIDE
    if len(PLACES) >= 10_000:  # code that is made while a program runs may have many names
        PLACES.clear()
    PLACES[file] = where
    return where


def locate(error: RetrogradError, name: str, source: Source | None) -> None:
    """Let the message say which function was called where, unless it says so already; a private
    one has no name that a user knows."""
    text = str(error)
    if source is not None and str(source) not in text:
        called = "" if name.rpartition(".")[2].startswith("_") else f"{name} "
        error.args = (f"{text} ({called}at {source})", *error.args[1:])


def located(f: F) -> F:
    """A function whose refusals say on which line it was called, where nothing below said so."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return f(*args, **kwargs)
        except REFUSALS as error:
            locate(error, f.__name__, user_source())
            raise

    return call  # type: ignore[return-value]

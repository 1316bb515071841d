"""A reader of pickles that runs no code: it knows numbers, texts, lists, tuples, dictionaries and
sets, and of what is named in a pickle only what its caller lists.

Python's own `pickle` calls whatever a file names. This is a machine of the instructions that files
of weights consist of (https://github.com/python/cpython/blob/main/Lib/pickletools.py), each of
which takes no more memory than it has bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from retrograd.errors import FormatError

# What Python says of instructions that make no sense.
_BROKEN = (
    IndexError, KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error,
)  # fmt: skip
Makers = Mapping[str, Callable[..., Any]]  # what is made of arguments, by the name in the pickle


class Named:
    """Something a pickle refers to by module and name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


def plain_key(key: Any) -> Any:
    """The key of a dictionary, or the element of a set: a text, bytes, None, or a number of 64
    bits, of which no great many can have one hash. Raises `TypeError` for others."""
    if isinstance(key, int) and not -(1 << 63) <= key < 1 << 64:
        raise TypeError("a whole number beyond 64 bits is a key")
    if key is None or isinstance(key, str | bytes | int | float):
        return key
    raise TypeError(f"a {type(key).__name__} is a key")


class _Mark:
    """Where the items of a container begin on the stack."""


_MARK = _Mark()


class PickleReader:
    """Reads one value after the other from bytes.

    `makers` are the functions that a pickle may call, by name; `constants` the names that stand for
    something as they are; `find` gives what a persistent id stands for. Everything else is a
    `FormatError` that names it. `where` is for messages.
    """

    def __init__(
        self,
        content: bytes,
        where: str,
        makers: Makers,
        constants: Callable[[str], bool],
        find: Callable[[Any], Any],
    ) -> None:
        self.content = content
        self.at = 0
        self.where = where
        self._makers = makers
        self._constants = constants
        self._find = find
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def value(self) -> Any:
        """The next value. Raises `FormatError` where there is none, or another than is known."""
        self._stack, self._memo = [], {}
        start = self.at
        try:
            while True:
                code = self._take(1)
                if code == b".":
                    return self._pop()
                step = _STEPS.get(code)
                if step is None:
                    raise self.error(f"the instruction {code!r} is none that weights consist of")
                step(self)
        except FormatError:
            raise
        except _BROKEN as error:
            reason = f"{type(error).__name__}: {error}"
            raise self.error(f"it is damaged, or no pickle ({reason:.120})", start) from None

    def error(self, what: str, start: int | None = None) -> FormatError:
        """An error that says where."""
        place = f"from byte {start} to {self.at}" if start is not None else f"at byte {self.at}"
        return FormatError(f"{self.where}, {place}: {what}")

    # -- bytes -----------------------------------------------------------------------------------
    def _take(self, n: int) -> bytes:
        end = self.at + n
        if n < 0 or end > len(self.content):
            raise self.error(f"it ends {end - len(self.content)} bytes early: it was cut")
        found = self.content[self.at : end]
        self.at = end
        return found

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _line(self) -> str:
        end = self.content.find(b"\n", self.at)
        if end < 0:
            raise self.error("a line has no end: it was cut")
        text = self.content[self.at : end].decode()
        self.at = end + 1
        return text

    # -- the stack -------------------------------------------------------------------------------
    def _push(self, x: Any) -> None:
        self._stack.append(x)

    def _pop(self) -> Any:
        x = self._stack.pop()
        if x is _MARK:
            raise self.error("a value is missing: it is damaged")
        return x

    def _items(self) -> list[Any]:
        """What was pushed since the last mark."""
        stack = self._stack
        at = len(stack) - 1
        while stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise self.error("the beginning of a container is missing: it is damaged")
        items = stack[at + 1 :]
        del stack[at:]
        return items

    def _top(self, kind: type) -> Any:
        x = self._stack[-1]
        if type(x) is not kind:
            raise self.error(f"a {kind.__name__} should be filled, but it is a {type(x).__name__}")
        return x

    # -- instructions ----------------------------------------------------------------------------
    def _protocol(self) -> None:
        version = self._number("<B")
        if version > 5:
            raise self.error(f"protocol {version} is none that is known")

    def _text(self, form: str) -> None:
        self._push(self._take(self._number(form)).decode("utf-8", "surrogatepass"))

    def _bytes(self, form: str) -> None:
        self._push(self._take(self._number(form)))

    def _old_text(self, form: str) -> None:
        self._push(self._take(self._number(form)).decode("latin-1"))

    def _whole(self) -> None:
        self._push(int.from_bytes(self._take(self._number("<B")), "little", signed=True))

    def _tuple(self, n: int) -> None:
        items = [self._pop() for _ in range(n)]
        self._push(tuple(reversed(items)))

    def _set_items(self, items: list[Any]) -> None:
        target = self._top(dict)
        if len(items) % 2:
            raise self.error("a key has no value: it is damaged")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[plain_key(key)] = value

    def _set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._set_items([key, value])

    def _append(self) -> None:
        x = self._pop()
        self._top(list).append(x)

    def _named(self, module: str, name: str) -> None:
        full = f"{module}.{name}"
        if full not in self._makers and not self._constants(full):
            raise self.error(
                f"it names {full}, which is none of the things that files of weights consist of; "
                "nothing of it is run. Where you trust the file, load it with the program that "
                "wrote it, and save its tensors alone (a state dict)"
            )
        self._push(Named(full))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if not (isinstance(name, str) and isinstance(module, str)):
            raise self.error("a name is no text: it is damaged")
        self._named(module, name)

    def _reduce(self) -> None:
        args, what = self._pop(), self._pop()
        if not isinstance(what, Named) or what.name not in self._makers:
            raise self.error(f"{what!r:.60} is called, which is no function that is known")
        if not isinstance(args, tuple):
            raise self.error(f"{what.name} is called with {args!r:.60}: it is damaged")
        self._push(self._makers[what.name](*args))

    def _build(self) -> None:
        """The attributes of a dictionary, such as the versions of modules: not needed."""
        state = self._pop()
        self._top(dict)
        if not isinstance(state, dict):
            raise self.error(f"the attributes of a dictionary are {type(state).__name__}")

    def _put(self, key: int) -> None:
        self._memo[key] = self._stack[-1]

    def _get(self, key: int) -> None:
        self._push(self._memo[key])

    def _add(self) -> None:
        items = self._items()
        self._top(set).update(map(plain_key, items))


_Step = Callable[[PickleReader], Any]
_R = PickleReader
_STEPS: dict[bytes, _Step] = {
    b"\x80": _R._protocol,
    b"\x95": lambda r: r._number("<Q"),  # the size of a frame
    b"(": lambda r: r._push(_MARK),
    b"0": _R._pop,
    b"N": lambda r: r._push(None),
    b"\x88": lambda r: r._push(True),
    b"\x89": lambda r: r._push(False),
    b"J": lambda r: r._push(r._number("<i")),
    b"K": lambda r: r._push(r._number("<B")),
    b"M": lambda r: r._push(r._number("<H")),
    b"G": lambda r: r._push(r._number(">d")),
    b"\x8a": _R._whole,
    b"X": lambda r: r._text("<I"),
    b"\x8c": lambda r: r._text("<B"),
    b"\x8d": lambda r: r._text("<Q"),
    b"U": lambda r: r._old_text("<B"),
    b"T": lambda r: r._old_text("<I"),
    b"B": lambda r: r._bytes("<I"),
    b"C": lambda r: r._bytes("<B"),
    b"\x8e": lambda r: r._bytes("<Q"),
    b"]": lambda r: r._push([]),
    b"}": lambda r: r._push({}),
    b")": lambda r: r._push(()),
    b"\x8f": lambda r: r._push(set()),
    b"t": lambda r: r._push(tuple(r._items())),
    b"\x85": lambda r: r._tuple(1),
    b"\x86": lambda r: r._tuple(2),
    b"\x87": lambda r: r._tuple(3),
    b"l": lambda r: r._push(r._items()),
    b"a": _R._append,
    b"e": lambda r: _extend(r),
    b"s": _R._set_item,
    b"u": lambda r: r._set_items(r._items()),
    b"\x90": _R._add,
    b"c": lambda r: r._named(r._line(), r._line()),
    b"\x93": _R._stack_global,
    b"R": _R._reduce,
    b"b": _R._build,
    b"Q": lambda r: r._push(r._find(r._pop())),
    b"q": lambda r: r._put(r._number("<B")),
    b"r": lambda r: r._put(r._number("<I")),
    b"\x94": lambda r: r._put(len(r._memo)),
    b"h": lambda r: r._get(r._number("<B")),
    b"j": lambda r: r._get(r._number("<I")),
}


def _extend(r: PickleReader) -> None:
    items = r._items()
    r._top(list).extend(items)

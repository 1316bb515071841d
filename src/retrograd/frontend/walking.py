"""Functions written for one structure: taking arguments apart, and putting results together.

`gatherer` writes a Python function that finds the leaves of arguments of one structure, checking on
the way that it is this structure; `builder` one that makes a result. They do for one structure what
`tree.flatten` and `tree.unflatten` do for all, without asking at every node what it is. For

    step({"w": w, "b": b}, 0.5)

the function that gathers reads, in short:

    def gather(args, kwargs):
        try:
            if type(args) is not tuple or len(args) != 2 or kwargs: return None
            (a, b) = args
            if type(a) is not dict or len(a) != 2: return None
            c, d = a["b"], a["w"]
            if type(b) is not float: return None
            return [c._ready, d._ready, array(b)]
        except (AttributeError, KeyError):
            return None

What it returns is not checked further: who uses the arrays looks at their dtypes and shapes.
Tuples, lists, dicts and None are walked; what else is a tree (modules, dataclasses, ...) is taken
apart by `tree.flatten`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from optree import PyTreeKind

from retrograd.backends import Wrap
from retrograd.frontend import tree
from retrograd.frontend.recording import Lazy

WORTH = 4  # results from which on a native call pays
LARGEST = 1000  # leaves; the functions for larger trees would take long to make

Gather = Callable[[tuple[Any, ...], dict[str, Any]], Any]
Build = Callable[[list[Any]], Any]


class Fixed:
    """A leaf that has to have this value."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def kind_of(x: Any) -> Any:
    """What a leaf is to a gatherer: a class, of which tensors are one, or what it has to be."""
    if isinstance(x, Lazy):
        return Lazy
    return type(x) if isinstance(x, np.ndarray | np.generic | int | float) else None


def same(x: Any, value: Any) -> bool:
    """Whether a leaf has the value that it had when the function was traced."""
    return type(x) is type(value) and bool(x == value)


def gatherer(structure: Any, kinds: Sequence[Any], donated: Sequence[bool]) -> Gather:
    """A function of `(args, kwargs)` that returns the list of their arrays, and a tuple of the
    tensors that are donated; or None where they are of another structure.

    `kinds` are those of the leaves, from `kind_of` or a `Fixed`. A donated array that is no
    tensor's is copied: it stays the user's.
    """
    w = _Writer()
    given: list[str] = []
    w.take(structure, "given", given)
    arrays, handles = [], []
    for x, kind, gone in zip(given, kinds, donated, strict=True):
        if isinstance(kind, Fixed):
            c = w.constant(kind.value)
            w.require(f"{x} is {c} or same({x}, {c})")
            continue
        value = x
        if kind is Lazy:
            value = f"{x}._ready"
            if gone:
                handles.append(x)
        elif kind is np.ndarray:
            value = f"{x}.copy()" if gone else x
        else:
            w.require(f"type({x}) is {w.constant(kind)}")
            value = f"array({x})"
        arrays.append(value)
    handed = "".join(h + "," for h in handles)
    w.lines.append(f"return [{', '.join(arrays)}], ({handed})")
    body = "\n".join("        " + line for line in ["given = (args, kwargs)", *w.lines])
    text = (
        f"def made(args, kwargs):\n    try:\n{body}\n"
        "    except (AttributeError, KeyError):\n        return None\n"
    )
    made: Gather = w.compiled(text)
    return made


def builder(
    structure: Any, fixed: Sequence[Any], computed: object, wrap: Wrap | None = None
) -> Build:
    """A function of the list of the results' arrays, which is used up. Leaves of the structure are
    tensors where `fixed` has the mark `computed`, otherwise what stands there. `wrap` makes tensors
    of the arrays in a list, if that can be done faster than in Python."""
    w = _Writer()
    leaves: list[str] = []
    lines: list[str] = []
    count = 0
    for y in fixed:
        if y is not computed:
            leaves.append(w.constant(y))
            continue
        leaves.append(f"h{count}")
        count += 1
    tensors = "".join(f"h{k}, " for k in range(count))
    if wrap is not None and count >= WORTH:
        w.names["wrap"] = wrap
        lines = ["wrap(results)", f"{tensors}= results"]
    elif count:
        lines = [f"{tensors.replace('h', 'y')}= results"]
        for k in range(count):
            lines += [f"h{k} = new(Tensor)", f"h{k}._ready = y{k}"]
    lines.append(f"return {w.put(structure, iter(leaves))}")
    made: Build = w.compiled("def made(results):\n" + "\n".join("    " + line for line in lines))
    return made


class _Writer:
    """Writes the text of one function; `names` are the objects it mentions."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "Tensor": Lazy.handle_class, "array": np.array, "flatten": tree.flatten,
            "new": object.__new__, "same": same, "unflatten": tree.unflatten,
        }  # fmt: skip
        self._count = 0

    def compiled(self, text: str) -> Any:
        """The function `made` of the text."""
        exec(compile(text, "<jit>", "exec"), self.names)
        return self.names.pop("made")

    def local(self) -> str:
        self._count += 1
        return f"x{self._count}"

    def constant(self, value: Any) -> str:
        self._count += 1
        self.names[f"c{self._count}"] = value
        return f"c{self._count}"

    def require(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return None")

    def take(self, structure: Any, x: str, leaves: list[str]) -> None:
        """Check the structure of what the variable `x` holds, and find its leaves."""
        kind, n = structure.kind, structure.num_children
        if kind == PyTreeKind.LEAF:
            leaves.append(x)
            return
        if kind == PyTreeKind.NONE:
            self.require(f"{x} is None")
            return
        if kind not in PLAIN:
            flat, own = self.local(), self.local()
            self.lines.append(f"{flat}, {own} = flatten({x})")
            self.require(f"{own} == {self.constant(structure)}")
            found = [self.local() for _ in range(structure.num_leaves)]
            self.lines.append(f"[{', '.join(found)}] = {flat}")
            leaves += found
            return
        self.require(f"type({x}) is {PLAIN[kind]} and len({x}) == {n}")
        children = [self.local() for _ in range(n)]
        if kind == PyTreeKind.DICT:
            for child, key in zip(children, structure.entries(), strict=True):
                self.lines.append(f"{child} = {x}[{self.constant(key)}]")
        elif children:
            self.lines.append(f"[{', '.join(children)}] = {x}")
        for child, below in zip(children, structure.children(), strict=True):
            self.take(below, child, leaves)

    def put(self, structure: Any, leaves: Any) -> str:
        """An expression for a tree; `leaves` is an iterator of those for its leaves."""
        kind = structure.kind
        if kind == PyTreeKind.LEAF:
            return str(next(leaves))
        if kind == PyTreeKind.NONE:
            return "None"
        if kind not in PLAIN:
            listed = [next(leaves) for _ in range(structure.num_leaves)]
            return f"unflatten({self.constant(structure)}, [{', '.join(listed)}])"
        parts = [self.put(below, leaves) for below in structure.children()]
        if kind == PyTreeKind.TUPLE:
            return "(" + "".join(p + ", " for p in parts) + ")"
        if kind == PyTreeKind.LIST:
            return f"[{', '.join(parts)}]"
        # The structure lists keys sorted; the dict has them in the order of the traced result.
        order = tree.unflatten(structure.one_level(), parts)
        return "{" + ", ".join(f"{self.constant(k)}: {p}" for k, p in order.items()) + "}"


PLAIN = {PyTreeKind.TUPLE: "tuple", PyTreeKind.LIST: "list", PyTreeKind.DICT: "dict"}

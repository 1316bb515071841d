"""The reverse pass over a tape: one loop, from which every form of gradient is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.autodiff import added, contributions
from retrograd.backends import Array
from retrograd.errors import DTypeError, RetrogradError, ShapeError
from retrograd.frontend.backward import check_edits
from retrograd.frontend.conversion import as_array
from retrograd.frontend.recording import evaluate, leaf
from retrograd.frontend.tape.entry import Entry
from retrograd.frontend.tensor import Tensor
from retrograd.ir import Node, Provenance, made_by
from retrograd.ops.complex import conj


class Step(NamedTuple):
    """One step of the reverse pass: what arrived at an entry, and what it passes on."""

    entry: Entry
    upstream: Array  # the cotangent of the entry
    contributions: list[tuple[int, Array]]  # (parent, what is added to its gradient), per operand
    accumulated: dict[int, Array]  # the gradients of those parents after the addition


class Visit(NamedTuple):
    """A step in nodes: what is added to which parents."""

    entry: Entry
    parts: list[tuple[int, Node]]


def walk(
    entries: Sequence[Entry], ids: Mapping[Node, int], found: dict[int, Any]
) -> Iterator[Visit]:
    """Go through entries in reverse, from the cotangents `found`, which are added to.

    Cotangents in `found` are conjugates of what users get (see `ops/complex.py`). They are complete
    when their entry is visited: parents stand before their children, and contributions are added in
    the order of the visits, which is that of the tape.
    """
    hooked = any(e.hooks for e in entries)
    # Hooks look at numbers in the middle of the pass: values held here are computed once for all.
    held = [Tensor(e.node) for e in entries] if hooked else []
    for i in range(max(found, default=-1), -1, -1):
        entry = entries[i]
        if i not in found or not entry.requires_grad:
            continue
        for hook in entry.hooks:
            found[i] = _seen(entry, found[i], hook.see)
        if not entry.parents:
            continue
        node = entry.node
        parts = []
        with made_by(Provenance(node.scope, node.source, node)):
            for x, part in contributions(node, found[i]):
                k = ids.get(x, -1)
                if k >= 0 and entries[k].requires_grad:
                    found[k] = added(x, found.get(k), part)
                    # Of several results a contribution is to one.
                    parts += [(k, p) for p in (part.values() if type(part) is dict else (part,))]
        yield Visit(entry, parts)
    del held


def _seen(entry: Entry, g: Node, see: Any) -> Node:
    """The cotangent of an entry after a hook has seen it."""
    new = see(arrays([conj(g)])[0])
    return g if new is None else conj(cotangent(entry, new, "what a hook returned"))


def cotangent(entry: Entry, given: Any, what: str) -> Node:
    """A cotangent that the user gives for an entry, as a node; it has to be of the entry's type.

    Python numbers and nested lists of them take the dtype of the entry.
    """
    node = entry.node
    try:
        if isinstance(given, Tensor):
            g = given.node
        else:
            typed = isinstance(given, np.ndarray) and given.ndim > 0
            g = leaf(as_array(given, None if typed else node.dtype).copy())
    except RetrogradError as error:
        raise type(error)(f"{what} for {entry.describe()}: {error}") from None
    if g.dtype is not node.dtype:
        raise DTypeError(f"{what} for {entry.describe()} must be {node.dtype}, not {g.dtype}")
    if g.shape != node.shape:
        raise ShapeError(
            f"{what} for {entry.describe()} must have the shape {node.shape}, not {g.shape}"
        )
    return g


def steps(
    entries: Sequence[Entry], ids: Mapping[Node, int], found: dict[int, Any]
) -> Iterator[Step]:
    """The same with numbers, as a person would follow it."""
    held = [Tensor(e.node) for e in entries]  # else each step would compute them again
    for entry, passed in walk(entries, ids, found):
        if type(found[entry.id]) is list:
            continue  # an operation of several results: its items are steps
        sums = [i for i in dict.fromkeys(i for i, _ in passed) if type(found[i]) is not list]
        shown = [found[entry.id], *(p for _, p in passed), *(found[i] for i in sums)]
        values = arrays([conj(x) for x in shown])
        parts, totals = values[1 : 1 + len(passed)], values[1 + len(passed) :]
        yield Step(
            entry,
            values[0],
            [(i, a) for (i, _), a in zip(passed, parts, strict=True)],
            dict(zip(sums, totals, strict=True)),
        )
    del held


def arrays(nodes: Sequence[Node]) -> list[Array]:
    """The values of nodes, computed in one program from arrays that nobody has edited."""
    check_edits(nodes)
    handles = [Tensor(n) for n in nodes]
    evaluate(handles)
    return [h.numpy() for h in handles]

"""The reverse walk over a tape with its hooks, from which every form of gradient is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from retrograd.autodiff import Cotangents, contributions
from retrograd.autodiff import walk as reverse_walk
from retrograd.autodiff.remat import Recomputation, has_regions
from retrograd.context_setting import restored
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import evaluate, leaf
from retrograd.eager.modes import unseen
from retrograd.errors import DTypeError, RetrogradError, ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.ir import Node
from retrograd.ops.complex import conj
from retrograd.runtime.backend import Array
from retrograd.tape.entry import Entry


class Step(NamedTuple):
    """One step of the reverse pass: what arrived at an entry, and what it passes on."""

    entry: Entry
    upstream: Array  # the cotangent of the entry
    contributions: list[tuple[int, Array]]  # (parent, what is added to its gradient), per operand
    accumulated: dict[int, Array]  # the gradients of those parents after the addition


class TapeVisit(NamedTuple):
    """A step in nodes: what is added to which parents."""

    entry: Entry
    parts: list[tuple[int, Any]]


def walk(
    entries: Sequence[Entry], ids: Mapping[Node, int], found: Cotangents
) -> Iterator[TapeVisit]:
    """Go through entries in reverse, from the cotangents `found`, which are added to.

    Cotangents in `found` are conjugates of what users get (see `ops/complex.py`). They are complete
    when their entry is visited: parents stand before their children, and contributions are added in
    the order of the visits, which is that of the tape. What was recorded inside of `checkpoint` is
    computed again.
    """
    # Hooks look at numbers in the middle of the pass: values held here are computed once for all.
    held = hold(entries) if any(e.hooks for e in entries) else []
    nodes = [e.node for e in entries]
    again = Recomputation(nodes) if has_regions(nodes) else None

    def takes(x: Node) -> bool:
        k = ids.get(x, -1)
        return k >= 0 and entries[k].requires_grad

    def arrive(node: Node) -> bool:
        entry = entries[ids[node]]
        for hook in entry.hooks:
            found.of[node] = _seen(entry, found.of[node], hook.see)
        return bool(entry.parents)

    def rule(node: Node, g: Any, seen: Any) -> list[tuple[Node, Any]]:
        try:  # that of a user's own may fail
            return list(contributions(node, g, seen))
        except RetrogradError as error:
            at = entries[ids[node]].describe()
            error.args = (f"the way back through {at}: {error}", *error.args[1:])
            raise

    path = [e.node for e in entries if e.requires_grad]
    for node, passed in reverse_walk(path, found, takes, again, rule, arrive):
        yield TapeVisit(entries[ids[node]], [(ids[x], part) for x, part, _ in passed])
    del held


def hold(entries: Sequence[Entry]) -> list[Tensor]:
    """Handles on all values, so that the first look computes what later ones need."""
    return [Tensor(e.node) for e in entries if not e.several]


def _seen(entry: Entry, g: Node, see: Any) -> Node:
    """The cotangent of an entry after a hook has seen it."""
    with restored(), unseen():  # what it computes is on no tape
        new = see(arrays([g])[0])
    return g if new is None else conj(cotangent(entry, new, "what a hook returned"))


def cotangent(entry: Entry, given: Any, what: str) -> Node:
    """A cotangent that the user gives for an entry, as a node; it has to be of the entry's type.

    Python numbers and nested lists of them take the dtype of the entry.
    """
    node = entry.about
    try:
        if isinstance(given, Tensor):
            g = given.node
        else:
            typed = isinstance(given, np.ndarray) and given.ndim > 0
            loses = not node.dtype.is_complex and np.iscomplexobj(as_array(given))
            g = leaf(as_array(given, None if typed or loses else node.dtype).copy())
    except RetrogradError as error:
        raise type(error)(f"{what} for {entry.describe()}: {error}") from None
    if g.dtype is not node.dtype:
        raise DTypeError(f"{what} for {entry.describe()} must be {node.dtype}, not {g.dtype}")
    if g.shape != node.shape:
        raise ShapeError(
            f"{what} for {entry.describe()} must have the shape {node.shape}, not {g.shape}"
        )
    return g


def steps(entries: Sequence[Entry], ids: Mapping[Node, int], found: Cotangents) -> Iterator[Step]:
    """The same with numbers, as a person would follow it."""
    held = hold(entries)
    for entry, passed in walk(entries, ids, found):
        sums = list(dict.fromkeys(i for i, _ in passed))
        shown = [found.of[entry.node], *(part for _, part in passed)]
        values = arrays([*shown, *(found.of[entries[i].node] for i in sums)])
        parts, totals = values[1 : 1 + len(passed)], values[1 + len(passed) :]
        yield Step(
            entry,
            values[0],
            [(i, a) for (i, _), a in zip(passed, parts, strict=True)],
            dict(zip(sums, totals, strict=True)),
        )
    del held


def arrays(cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents as users get them, computed in one program.

    What arrives at one of several results is an array, what arrived at all of them a tuple.
    """
    groups = [
        [g] if isinstance(g, Node) else list(g.values() if isinstance(g, dict) else g)
        for g in cotangents
    ]
    nodes = [conj(g) for group in groups for g in group if g is not None]
    handles = [Tensor(n) for n in nodes]
    evaluate(handles)
    values = iter([h.numpy() for h in handles])
    rows = [tuple([None if g is None else next(values) for g in group]) for group in groups]
    return [row if isinstance(g, list) else row[0] for g, row in zip(cotangents, rows, strict=True)]

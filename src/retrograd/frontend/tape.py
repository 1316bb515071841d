"""`Tape`: a recorded computation, entry by entry, and its gradients in every form."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from typing import Any, NamedTuple

import numpy as np

from retrograd.autodiff import pullback, seeds
from retrograd.backends import Array
from retrograd.errors import GradientError, OptionError, ShapeError, StaleTapeError
from retrograd.frontend.conversion import as_array
from retrograd.frontend.graph import Graph, closed
from retrograd.frontend.recording import (
    Lazy,
    add_recorder,
    dissolve_pages,
    evaluate,
    leaf,
    recorders,
)
from retrograd.frontend.tensor import Tensor
from retrograd.ir import Node
from retrograd.ops.complex import conj

_CURRENT: ContextVar[Tape | None] = ContextVar("tape", default=None)


class Entry:
    """One entry of a tape. `id` is its position; `parents` are the positions of its operands."""

    __slots__ = ("id", "node", "parents", "requires_grad")

    def __init__(self, id: int, node: Node, parents: tuple[int, ...], requires_grad: bool) -> None:
        self.id = id
        self.node = node
        self.parents = parents
        self.requires_grad = requires_grad

    @property
    def op(self) -> str:
        """The name of the operation."""
        return self.node.op

    @property
    def name(self) -> str:
        """The name the leaf was given."""
        return self.node.name

    @property
    def value(self) -> Array:
        """The value, read-only; computed when it is looked at."""
        return Tensor(self.node).numpy()

    def __repr__(self) -> str:
        parents = ", ".join(f"%{p}" for p in self.parents)
        label = f" {self.name!r}" if self.name else ""
        frozen = "" if self.requires_grad else ", frozen"
        return f"%{self.id}{label}: {self.node.type} = {self.op}({parents}){frozen}"


class Step(NamedTuple):
    """One step of the reverse pass: what arrived at an entry, and what it passes on."""

    entry: Entry
    upstream: Array  # the cotangent of the entry
    contributions: list[tuple[int, Array]]  # (parent, what is added to its gradient), per operand
    accumulated: dict[int, Array]  # the gradients of those parents after the addition


class Tape:
    """An append-only record of operations; the position of an entry is its id.

    Operations on its tensors are recorded, and inside `with Tape() as tape:` all operations. Every
    backward call starts from fresh gradients, so calling twice gives the same answer, and gives the
    gradient of every entry that requires one, not only of leaves. An entry requires a gradient if
    one of its parents does; the others are frozen. An operation that fails leaves the tape as it
    was.

    >>> tape = Tape()
    >>> x = tape.leaf(3.0, name="x")
    >>> y = x * x
    >>> [None if g is None else g.item() for g in tape.backward_dense(y)]
    [6.0, 1.0]
    """

    def __init__(self) -> None:
        dissolve_pages()
        self._entries: list[Entry] = []
        self._ids: dict[Node, int] = {}
        self._stale: weakref.WeakSet[Node] = weakref.WeakSet()
        self._others: weakref.WeakSet[Node] = weakref.WeakSet()  # known not to touch this tape
        self._start = leaf(np.zeros(())).id  # nothing that was made before is on this tape
        self._tokens: list[Token[Tape | None]] = []
        add_recorder(self)

    def leaf(self, value: Any, requires_grad: bool = True, name: str | None = None) -> Tensor:
        """Record a value; returns the tensor to compute with. The data is copied."""
        node = leaf(np.array(as_array(value), order="C"), name or "")
        if requires_grad and not node.dtype.is_inexact:
            raise GradientError(f"only floating leaves have gradients, not {node.type}")
        tensor = Tensor(node, requires_grad)
        self._append(node, requires_grad)
        return tensor

    def __enter__(self) -> Tape:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *error: object) -> None:
        _CURRENT.reset(self._tokens.pop())

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, i: int) -> Entry:
        try:
            return self._entries[i]
        except IndexError:
            raise IndexError(f"entry {i} of a tape with {len(self)} entries") from None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def reset(self) -> None:
        """Forget everything. Tensors of before must not be used any more: that is a
        `StaleTapeError`."""
        self._stale.update(self._ids)
        self._entries.clear()
        self._ids.clear()

    # -- recording ------------------------------------------------------------------------------
    def record(self, result: Node) -> None:
        """Append a node and what it was computed from, if it belongs here."""
        if result in self._ids:
            return
        new, touched = self._reach(result)
        if not touched and _CURRENT.get() is not self:
            self._others.update(new)
            return
        for other in recorders():
            if other is not self and any(x in other._ids for n in new for x in (n, *n.inputs)):
                raise StaleTapeError(
                    f"{result.describe()} combines tensors of two tapes; record both on one"
                )
        for node in sorted(new, key=lambda n: n.id):
            self._append(node, False)

    def _reach(self, result: Node) -> tuple[list[Node], bool]:
        """Nodes below that are not on the tape yet, and whether one on the tape was met."""
        seen, todo, touched = {result}, [result], False
        while todo:
            node = todo.pop()
            if node in self._stale:
                raise StaleTapeError(
                    f"{result.describe()} uses a tensor of this tape from before reset(); make the "
                    "leaf again"
                )
            for x in node.inputs:
                if x in self._ids:
                    touched = True
                elif (
                    x not in seen and x not in self._others and (x.id > self._start or not x.inputs)
                ):
                    seen.add(x)
                    todo.append(x)
        return list(seen), touched

    def _append(self, node: Node, requires_grad: bool) -> None:
        parents = tuple(self._ids[x] for x in node.inputs if x in self._ids)
        inherited = node.type.is_inexact and node.op != "stop_gradient"
        wanted = requires_grad or (
            inherited and any(self._entries[p].requires_grad for p in parents)
        )
        self._ids[node] = len(self._entries)
        self._entries.append(Entry(len(self._entries), node, parents, wanted))

    # -- gradients ------------------------------------------------------------------------------
    def backward_dense(self, out: Any, seed: Any = None) -> list[Array | None]:
        """One gradient for each entry, by id; None where the entry is frozen or not reached."""
        return self._gradients({self._id(out): seed})

    def backward_sparse(self, out: Any, seed: Any = None) -> dict[int, Array]:
        """The gradients of the entries that are reached, by id."""
        return {i: g for i, g in enumerate(self.backward_dense(out, seed)) if g is not None}

    def backward_total(self, out: Any, seed: Any = None) -> list[Array]:
        """One gradient for each entry, explicit zeros where there is none."""
        return [self._or_zero(i, g) for i, g in enumerate(self.backward_dense(out, seed))]

    def backward_from(self, cotangents: Mapping[Any, Any], missing: str = "none") -> Any:
        """Gradients from cotangents given at any entries, by id or tensor.

        `missing` says what stands for an entry without gradient: "none" (a list with None), "zero"
        (a list with zeros) or "omit" (a dict without it).
        """
        if missing not in ("none", "zero", "omit"):
            raise OptionError(f"missing is 'none', 'zero' or 'omit', not {missing!r}")
        found = self._gradients({self._id(k): v for k, v in cotangents.items()})
        if missing == "omit":
            return {i: g for i, g in enumerate(found) if g is not None}
        return found if missing == "none" else [self._or_zero(i, g) for i, g in enumerate(found)]

    def trace_backward(self, out: Any, seed: Any = None) -> Iterator[Step]:
        """The reverse pass step by step: each entry that passes something on, last one first."""
        last = self._id(out)
        found = {last: conj(self._seed(last, seed))}  # see `ops/complex.py`
        for entry in reversed(self._entries[: last + 1]):
            if entry.id not in found or not entry.requires_grad or not entry.parents:
                continue
            node, g = entry.node, found[entry.id]
            passed = []
            for x, part in zip(node.inputs, node.prim.vjp(g, node, *node.inputs), strict=True):
                i = self._ids[x]
                if part is not None and self._entries[i].requires_grad:
                    found[i] = found[i] + part if i in found else part
                    passed.append((i, part))
            sums = list(dict.fromkeys(i for i, _ in passed))
            shown = [g, *(p for _, p in passed), *(found[i] for i in sums)]
            values = _arrays([conj(x) for x in shown])
            parts, totals = values[1 : 1 + len(passed)], values[1 + len(passed) :]
            contributions = [(i, a) for (i, _), a in zip(passed, parts, strict=True)]
            yield Step(entry, values[0], contributions, dict(zip(sums, totals, strict=True)))

    def _gradients(self, cotangents: Mapping[int, Any]) -> list[Array | None]:
        ends = [self._entries[i].node for i in cotangents]
        start = [self._seed(i, seed) for i, seed in cotangents.items()]
        wanted = [e for e in self._entries if e.requires_grad]
        found = pullback(ends, start, [e.node for e in wanted])
        arrays = iter(_arrays([g for g in found if g is not None]))
        result: list[Array | None] = [None] * len(self)
        for entry, g in zip(wanted, found, strict=True):
            if g is not None:
                result[entry.id] = next(arrays)
        return result

    def _id(self, out: Any) -> int:
        """The id meant by an id or a tensor."""
        if isinstance(out, Lazy):
            if out.node in self._stale:
                raise StaleTapeError(f"{out.node.describe()} is from before reset() of this tape")
            if out.node not in self._ids:
                raise StaleTapeError(f"{out.node.describe()} is not on this tape")
            return self._ids[out.node]
        if isinstance(out, bool) or not isinstance(out, int) or not 0 <= out < len(self):
            raise StaleTapeError(f"{out!r} is no id of this tape, which has {len(self)} entries")
        return out

    def _seed(self, i: int, seed: Any) -> Node:
        node = self._entries[i].node
        if seed is None:
            return seeds([node])[0]
        g = seed.node if isinstance(seed, Lazy) else leaf(as_array(seed, node.dtype))
        if g.type != node.type:
            raise ShapeError(
                f"the seed of entry {i}, {node.describe()}, must be {node.type}, not {g.type}"
            )
        return g

    def _or_zero(self, i: int, g: Array | None) -> Array:
        if g is not None:
            return g
        node = self._entries[i].node
        return np.zeros(Tensor(node).value().shape, node.dtype.dtype)

    def graph(self) -> Graph:
        """What was recorded, as a graph: leaves are its inputs, results nobody used its outputs."""
        used = {p for e in self._entries for p in e.parents}
        inputs = [e.node for e in self._entries if e.op == "input"]
        ends = [e.node for e in self._entries if e.id not in used and e.parents]
        return closed(inputs, ends, "tape")


def _arrays(nodes: Sequence[Node]) -> list[Array]:
    """The values of nodes, computed in one program."""
    handles = [Tensor(n) for n in nodes]
    evaluate(handles)
    return [h.numpy() for h in handles]

"""Recording on a tape, and asking it for gradients."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar, Token
from pathlib import Path
from typing import Any, overload

import numpy as np

from retrograd.autodiff import Cotangents, seeds
from retrograd.backends import Array
from retrograd.errors import DTypeError, GradientError, OptionError, StaleTapeError
from retrograd.frontend.conversion import as_array
from retrograd.frontend.graph import Graph, closed
from retrograd.frontend.recording import (
    Lazy,
    add_recorder,
    dissolve_pages,
    leaf,
    recorders,
)
from retrograd.frontend.tape.entry import Entry, Hook, wants_gradient
from retrograd.frontend.tape.reverse import Step, arrays, cotangent, steps, walk
from retrograd.frontend.tensor import Tensor
from retrograd.ir import Node, substitute
from retrograd.ops.complex import conj
from retrograd.shared import own_lock

_CURRENT: ContextVar[Tape | None] = ContextVar("tape", default=None)


class Tape:
    """An append-only record of operations; the position of an entry is its id.

    Operations on its tensors are recorded, and inside `with Tape() as tape:` all operations of the
    thread. An entry requires a gradient if one of its parents does, unless it was recorded inside
    `rg.no_grad()`; the others are *frozen*. A tensor from elsewhere that is used on the tape is an
    entry like a leaf, and requires a gradient if the tensor does. An operation that fails leaves
    the tape as it was. What is on a tape keeps its history, also where `backward()` of a tensor
    would end it.

    Every backward call starts from fresh gradients, so calling twice gives the same answer, and
    gives the gradient of every entry that requires one, not only of leaves. Contributions are added
    in the reverse order of the tape. Without a seed, gradients start from a real scalar, with 1; a
    seed has the shape and dtype of its entry. A NaN in a seed reaches everything it is multiplied
    into.

    >>> tape = Tape()
    >>> x = tape.leaf(3.0, name="x")
    >>> y = x * x
    >>> [None if g is None else g.item() for g in tape.backward_dense(y)]
    [6.0, 1.0]
    >>> print(tape)
    %0 'x': f32[] = input()
    %1: f32[] = mul(%0, %0)
    """

    def __init__(self) -> None:
        dissolve_pages()
        self._entries: list[Entry] = []
        self._ids: dict[Node, int] = {}
        self._stale: weakref.WeakSet[Node] = weakref.WeakSet()
        self._others: weakref.WeakSet[Node] = weakref.WeakSet()  # known not to touch this tape
        self._start = leaf(np.zeros(())).id  # nothing that was made before is on this tape
        self._tokens: list[Token[Tape | None]] = []
        self._finished = False
        self._lock = own_lock()
        add_recorder(self)

    def leaf(self, value: Any, requires_grad: bool = True, name: str | None = None) -> Tensor:
        """Record a value; returns the tensor to compute with. The data is copied.

        Raises `GradientError` for integers and booleans that require a gradient, `StaleTapeError`
        on a finished tape.
        """
        if not isinstance(name, str | None):
            raise OptionError(f"the name of a leaf is a string, not {name!r:.80}")
        self._check_open(f"leaf {name!r}" if name else "a leaf")
        node = leaf(np.array(as_array(value), order="C"), name or "")
        if requires_grad and not node.dtype.is_inexact:
            raise GradientError(
                f"only floating and complex leaves have gradients, not {node.describe()}; give "
                "floating data, or requires_grad=False"
            )
        tensor = Tensor(node, requires_grad)
        with self._lock:
            self._append(node, requires_grad)
        return tensor

    def __enter__(self) -> Tape:
        self._check_open("a block")
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *error: object) -> None:
        _CURRENT.reset(self._tokens.pop())

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, i: int) -> Entry: ...
    @overload
    def __getitem__(self, i: slice) -> list[Entry]: ...
    def __getitem__(self, i: int | slice) -> Entry | list[Entry]:
        try:
            return self._entries[i]
        except IndexError:
            raise IndexError(f"entry {i} of a tape with {len(self)} entries") from None
        except TypeError:
            raise DTypeError(
                f"entries are numbered: tape[3] or tape[-1] or a slice, not tape[{i!r:.40}]"
            ) from None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __str__(self) -> str:
        return "\n".join(map(repr, self._entries))

    def __repr__(self) -> str:
        state = ", finished" if self._finished else ""
        return f"<Tape with {len(self)} entries{state}>"

    def finish(self) -> None:
        """Record no more. What is on the tape stays open to every question; an operation that would
        be recorded is a `StaleTapeError`. `reset()` opens the tape again."""
        self._finished = True

    def reset(self) -> None:
        """Forget everything. Tensors of before must not be used any more: that is a
        `StaleTapeError`."""
        with self._lock:
            self._stale.update([e.node for e in self._entries if not e.is_given])
            self._entries.clear()
            self._ids.clear()
            self._finished = False

    # -- recording ------------------------------------------------------------------------------
    def record(self, result: Node) -> None:
        """Append a node and what it was computed from, if it belongs here."""
        if result in self._ids:
            return
        with self._lock:
            new, given, touched = self._reach(result)
            if not touched and not self.is_current:
                self._others.update(new)
                return
            self._check_open(result.describe())
            self._check_others(result, new)
            for node in sorted({*new, *given}, key=lambda n: n.id):
                self._append(node, node in given and wants_gradient(node), node in given)

    def pass_over(self, result: Node) -> None:
        """Note that a node, and what it was computed from, is no part of this recording: it stands
        for something that was computed elsewhere, though it was made just now."""
        with self._lock:
            self._others.update(self._reach(result)[0])

    @property
    def is_current(self) -> bool:
        """Whether this is the tape that records all that happens here."""
        return _CURRENT.get() is self

    def holds(self, node: Node) -> bool:
        """Whether a node is a leaf of this tape or was computed on it, now or before `reset()`."""
        i = self._ids.get(node)
        return node in self._stale if i is None else not self._entries[i].is_given

    def _check_open(self, what: str) -> None:
        if self._finished:
            raise StaleTapeError(
                f"{what} cannot be recorded: the tape was finished with {len(self)} entries; "
                "reset() it, or compute with copies: rg.tensor(x.numpy())"
            )

    def _check_others(self, result: Node, new: Sequence[Node]) -> None:
        """Before anything is recorded: no operand is on another tape."""
        for other in recorders():
            if other is self:
                continue
            for x in dict.fromkeys([x for n in new for x in (n, *n.inputs)]):
                if other.holds(x):
                    raise StaleTapeError(
                        f"{result.describe()} combines tensors of two tapes: {x.describe()} is on "
                        "another one; record both on one"
                    )

    def _reach(self, result: Node) -> tuple[list[Node], set[Node], bool]:
        """Nodes below that are not on the tape yet; those of them that come from elsewhere, where
        the way down ends; and whether one on the tape was met."""
        seen, given, todo, touched = {result}, set(), [result], False
        new = []
        if not result.inputs:
            given.add(result)
        while todo:
            node = todo.pop()
            if node in self._stale:
                raise StaleTapeError(
                    f"{result.describe()} uses a tensor of this tape from before reset(); make the "
                    "leaf again"
                )
            new.append(node)
            for x in node.inputs:
                i = self._ids.get(x)
                if i is not None:
                    touched = touched or not self._entries[i].is_given
                elif x not in seen:
                    seen.add(x)
                    if x not in self._stale and (
                        not x.inputs or x.id < self._start or x in self._others
                    ):
                        given.add(x)
                    else:
                        todo.append(x)
        return new, given, touched

    def _append(self, node: Node, requires_grad: bool, is_given: bool = False) -> None:
        parents = () if is_given else tuple([self._ids[x] for x in node.inputs])
        inherited = node.type.is_inexact and node.op != "stop_gradient"
        wanted = requires_grad or (
            inherited and any(self._entries[p].requires_grad for p in parents)
        )
        self._ids[node] = len(self._entries)
        self._entries.append(Entry(len(self._entries), node, parents, wanted, is_given))

    # -- gradients ------------------------------------------------------------------------------
    def backward_dense(self, out: Any, seed: Any = None) -> list[Array | None]:
        """One gradient for each entry, by id; None where the entry is frozen or not reached.

        `out` is a tensor of the tape or an id, `seed` the cotangent to start from.
        """
        return self._gradients({self._id(out): seed})

    def backward_sparse(self, out: Any, seed: Any = None) -> dict[int, Array]:
        """The gradients of the entries that are reached, by id."""
        return {i: g for i, g in enumerate(self.backward_dense(out, seed)) if g is not None}

    def backward_total(self, out: Any, seed: Any = None) -> list[Array]:
        """One gradient for each entry, explicit zeros where there is none."""
        return [self._or_zero(i, g) for i, g in enumerate(self.backward_dense(out, seed))]

    def backward_from(self, cotangents: Mapping[Any, Any], missing: str = "none") -> Any:
        """Gradients from cotangents given at any entries, by id or tensor; None stands for 1.

        `missing` says what stands for an entry without gradient: "none" (a list with None), "zero"
        (a list with zeros) or "omit" (a dict without it).

        >>> tape = Tape()
        >>> x = tape.leaf([1.0, 2.0])
        >>> y = x * x
        >>> tape.backward_from({y: [1.0, 0.0], x: [0.0, 5.0]})[0].tolist()
        [2.0, 5.0]
        """
        if missing not in ("none", "zero", "omit"):
            raise OptionError(f"missing is 'none', 'zero' or 'omit', not {missing!r}")
        if not isinstance(cotangents, Mapping):
            raise OptionError(
                "cotangents are given as {tensor or id: seed, ...}, not as "
                f"{type(cotangents).__name__}"
            )
        found = self._gradients(cotangents)
        if missing == "omit":
            return {i: g for i, g in enumerate(found) if g is not None}
        return found if missing == "none" else [self._or_zero(i, g) for i, g in enumerate(found)]

    def trace_backward(self, out: Any, seed: Any = None) -> Iterator[Step]:
        """The reverse pass step by step: each entry that passes something on, last one first.

        Everything given is checked at the call; what is recorded later is not part of the pass.
        """
        last = self._id(out)
        found = self._seeds({last: seed})
        return steps(self._entries[: last + 1], dict(self._ids), found)

    def register_hook(self, entry: Any, hook: Callable[[Array], Any]) -> Hook:
        """Let `hook(gradient)` see the gradient of an entry, given by id or tensor, in every
        backward pass that reaches it, when it is complete and before it is passed on.

        What the hook returns takes the place of the gradient, unless it is None; it has to have the
        entry's shape and dtype. Several hooks are called in the order of their registration.
        Returns a handle with `remove()`.

        >>> tape = Tape()
        >>> x = tape.leaf(3.0)
        >>> y = x * x
        >>> hook = tape.register_hook(y, lambda g: 10 * g)
        >>> tape.backward_dense(y * 2)[0].item()
        120.0
        >>> hook.remove()
        """
        found = self._entries[self._id(entry)]
        _check_single(found)
        if not found.requires_grad:
            raise GradientError(f"{found.describe()} is frozen, so no gradient reaches it")
        if not callable(hook):
            raise OptionError(f"a hook is a function of a gradient, not {hook!r}")
        return Hook(found, hook)

    def _gradients(self, cotangents: Mapping[Any, Any]) -> list[Array | None]:
        found = self._seeds(cotangents)
        entries = self._entries[:]
        for _ in walk(entries, self._ids, found):
            pass
        wanted = [e for e in entries if e.node in found.of]
        result: list[Array | None] = [None] * len(entries)
        for e, g in zip(wanted, arrays([found.of[e.node] for e in wanted]), strict=True):
            result[e.id] = g
        return result

    def _seeds(self, cotangents: Mapping[Any, Any]) -> Cotangents:
        """The conjugates of the cotangents to start from; frozen entries have none."""
        found = Cotangents()
        given: set[int] = set()
        for out, seed in cotangents.items():
            entry = self._entries[self._id(out)]
            if entry.id in given:
                raise OptionError(f"two seeds are given for {entry.describe()}")
            given.add(entry.id)
            start = self._seed(entry, seed)
            if entry.requires_grad:
                found.add(entry.node, conj(start))
        return found

    def _seed(self, entry: Entry, seed: Any) -> Node:
        _check_single(entry)
        if seed is None:
            try:
                return seeds([entry.node])[0]
            except GradientError as error:
                raise GradientError(f"entry {entry.id}: {error}") from None
        if not entry.node.dtype.is_inexact:
            raise GradientError(f"integers and booleans have no gradient: {entry.describe()}")
        return cotangent(entry, seed, "the seed")

    def _id(self, out: Any) -> int:
        """The id meant by an id or a tensor."""
        if isinstance(out, Lazy):
            if out.node in self._stale:
                raise StaleTapeError(f"{out.node.describe()} is from before reset() of this tape")
            if not self._finished:
                self.record(out.node)  # where it came about by other ways than library functions
            if out.node not in self._ids:
                raise StaleTapeError(
                    f"{out.node.describe()} is not on this tape; compute it from tape.leaf(...), "
                    "or inside of `with tape:`"
                )
            return self._ids[out.node]
        if isinstance(out, int | np.integer) and not isinstance(out, bool) and 0 <= out < len(self):
            return int(out)
        raise StaleTapeError(f"{out!r} is no id of this tape, which has {len(self)} entries")

    def _or_zero(self, i: int, g: Any) -> Any:
        if self._entries[i].several:
            values = self._entries[i].value
            parts = g or [None] * len(values)
            return tuple(
                [np.zeros_like(x) if p is None else p for x, p in zip(values, parts, strict=True)]
            )
        if g is not None:
            return g
        node = self._entries[i].node
        return np.zeros(Tensor(node).value().shape, node.dtype.dtype)

    def graph(self) -> Graph:
        """What was recorded, as a graph: leaves are its inputs, results nobody used its outputs.

        Constants of the recording are inputs, too, which have their value; the graph runs on any
        backend, is differentiated, saved and drawn like every other.
        """
        used = {p for e in self._entries for p in e.parents}
        return self._closed([e.node for e in self._entries if e.id not in used and e.parents])

    def _closed(self, ends: Sequence[Node]) -> Graph:
        """What leads from leaves, and from what was computed elsewhere, to some nodes."""
        elsewhere = {
            e.node: leaf(Tensor(e.node).value(), e.name)
            for e in self._entries
            if e.is_given and e.node.inputs
        }
        inputs = [elsewhere.get(e.node, e.node) for e in self._entries if e.op == "input"]
        return closed(inputs, substitute(ends, elsewhere), "tape")

    def show(
        self,
        out: Any = None,
        *,
        profile: bool = False,
        path: str | os.PathLike[str] | None = None,
        open: bool = True,
    ) -> Path:
        """Show the recording in the browser, or in the notebook, with all values; of `out`, an id
        or a tensor, by default the last result nobody used, also the gradient, step by step, where
        it is a real scalar. Returns the page's file; options as of `Graph.show`.

        >>> tape = Tape()
        >>> x = tape.leaf(3.0, name="x")
        >>> page = tape.show(x * x, open=False)
        """
        graph = self.graph()
        ends = list(reversed(graph.outputs))
        if out is not None:
            graph = self._closed([self._entries[self._id(out)].node])
            ends = list(graph.outputs)
        shown = Graph(graph.inputs, ends, "tape")
        return shown.show(profile=profile, path=path, open=open)


def _check_single(entry: Entry) -> None:
    """Seeds and hooks belong to arrays."""
    if entry.several:
        raise GradientError(
            f"{entry.describe()} has several results; name one of the item entries behind it"
        )

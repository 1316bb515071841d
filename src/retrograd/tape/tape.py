"""Recording on a tape, and asking it for gradients."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from retrograd.autodiff import Cotangents, seeds
from retrograd.eager.conversion import as_array
from retrograd.eager.lazy_tensor import LazyTensor, leaf
from retrograd.eager.listeners import BLOCK
from retrograd.eager.trace_buffer import CURRENT, NOWHERE
from retrograd.errors import DTypeError, GradientError, OptionError, StaleTapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.graph.graph import Graph, closed
from retrograd.ir import Node, substitute
from retrograd.ops.complex import conj
from retrograd.runtime.backend import Array
from retrograd.tape.buffered import TapeBuffers
from retrograd.tape.entry import Entry, Hook
from retrograd.tape.html import LISTED, tape_html
from retrograd.tape.recorder import TapeRecord
from retrograd.tape.reverse import Step, arrays, cotangent, steps, walk


class Tape(TapeRecord):
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

    Recording on a tape costs about as much as recording elsewhere, and a tape costs nothing to what
    has nothing to do with it: entries are made when somebody looks. Asking for a `node`, a hook,
    `trace_backward` or `graph()`, and transforms of its tensors, have it go on with the nodes of
    the graph, which takes a hundred times longer for each operation, until `reset()`.

    A handle that is used after `reset` is a `StaleTapeError`, a seed of another type a `DTypeError`
    or a `ShapeError`.

    >>> tape = Tape()
    >>> x = tape.leaf(3.0, name="x")
    >>> y = x * x
    >>> [None if g is None else g.item() for g in tape.backward_dense(y)]
    [6.0, 1.0]
    >>> print(tape)
    %0 'x': f32[] = input()
    %1: f32[] = mul(%0, %0)
    """

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
        while not self._entered(tensor, node, requires_grad):
            self.go_on_with_nodes()
        return tensor

    def _entered(self, tensor: Tensor, node: Node, requires_grad: bool) -> bool:
        """Enter a leaf. False where the tape has to go on with nodes first."""
        with self.lock:
            buffer = self._buffer()
            if buffer is not None:
                buffer.own.add(node)
                buffer.enter(buffer.slot(node, False))
                tensor.attach(buffer)
            elif self.buffers is None:
                self._append(node, requires_grad)
            else:
                return False
            return True

    def __enter__(self) -> Tape:
        self._check_open("a block")
        self._tokens.append(BLOCK.set(self))
        CURRENT.buffer.close()  # what comes next is recorded here
        return self

    def __exit__(self, *error: object) -> None:
        BLOCK.reset(self._tokens.pop())
        if CURRENT.buffer.ordered:
            CURRENT.buffer = NOWHERE

    def __len__(self) -> int:
        return self.count

    @overload
    def __getitem__(self, i: int) -> Entry: ...
    @overload
    def __getitem__(self, i: slice) -> list[Entry]: ...
    def __getitem__(self, i: int | slice) -> Entry | list[Entry]:
        try:
            if isinstance(i, slice):
                return [self._entry(k) for k in range(len(self))[i]]
            return self._entry(range(len(self))[i])
        except IndexError:
            raise IndexError(f"entry {i} of a tape with {len(self)} entries") from None
        except TypeError:
            raise DTypeError(
                f"entries are numbered: tape[3] or tape[-1] or a slice, not tape[{i!r:.40}]"
            ) from None

    def __iter__(self) -> Iterator[Entry]:
        return iter(self[:])

    def __str__(self) -> str:
        return "\n".join(map(repr, self))

    def __repr__(self) -> str:
        state = ", finished" if self._finished else ""
        return f"<Tape with {len(self)} entries{state}>"

    def _repr_html_(self) -> str:
        """What notebooks show: the entries in a table; of a long tape the first and the last."""
        shown = self[:] if len(self) <= LISTED else [*self[: LISTED // 2], *self[-LISTED // 2 :]]
        return tape_html(shown, len(self), self._finished)

    def finish(self) -> None:
        """Record no more. What is on the tape stays open to every question; an operation that would
        be recorded is a `StaleTapeError`. `reset()` opens the tape again."""
        self._finished = True
        if self.buffers is not None and self.buffers.listed:
            self.buffers.listed[-1].close()

    def reset(self) -> None:
        """Forget everything. Tensors of before must not be used any more: that is a
        `StaleTapeError`."""
        with self.lock:
            self._stale.update([e.node for e in self._entries if not e.is_given])
            self._ids, self._entries = {}, []  # in this order: see `_known`
            self._views.clear()
            if self.buffers is not None and self.buffers.listed:
                self.buffers.listed[-1].close()
            self.buffers = TapeBuffers(self)
            self._finished = False

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
        self.go_on_with_nodes()
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
        self.go_on_with_nodes()
        found = self._entries[self._id(entry)]
        _check_single(found)
        if not found.requires_grad:
            raise GradientError(f"{found.describe()} is frozen, so no gradient reaches it")
        if not callable(hook):
            raise OptionError(f"a hook is a function of a gradient, not {hook!r}")
        return Hook(found, hook)

    def _gradients(self, cotangents: Mapping[Any, Any]) -> list[Array | None]:
        buffers = self.buffers
        with self.lock:
            suited = buffers is not None and buffers.suit()
        if buffers is not None and suited:
            start = self._seed_arrays(cotangents)
            with self.lock:
                if buffers is self.buffers:
                    return buffers.gradients(start)
        self.go_on_with_nodes()
        found = self._seeds(cotangents)
        entries = self._entries[:]
        for _ in walk(entries, self._ids, found):
            pass
        wanted = [e for e in entries if e.node in found.of]
        result: list[Array | None] = [None] * len(entries)
        for e, g in zip(wanted, arrays([found.of[e.node] for e in wanted]), strict=True):
            result[e.id] = g
        return result

    def gradients_of_leaves(
        self, h: LazyTensor, seed: Array
    ) -> list[tuple[LazyTensor, Array]] | None:
        """The gradients of the leaves of a tensor in a buffer, with their handles; None where they
        have to be found on nodes."""
        with self.lock:
            buffers = self.buffers
            i = -1 if buffers is None else buffers.id_of(h)
            if buffers is None or i < 0 or not buffers.suit():
                return None
            leaves = buffers.leaves()
            return None if leaves is None else buffers.gradients_of(leaves, {i: seed})

    def _seeds(self, cotangents: Mapping[Any, Any]) -> Cotangents:
        """The conjugates of the cotangents to start from; frozen entries have none."""
        found = Cotangents()
        for entry, start in self._starts(cotangents):
            found.add(entry.node, conj(start))
        return found

    def _seed_arrays(self, cotangents: Mapping[Any, Any]) -> dict[int, Array]:
        """The same as arrays, by id."""
        at_hand = {
            out: Tensor.of(g.value()) if isinstance(g, Tensor) else g
            for out, g in cotangents.items()
        }
        return {e.id: Tensor(start).value() for e, start in self._starts(at_hand)}

    def _starts(self, cotangents: Mapping[Any, Any]) -> Iterator[tuple[Entry, Node]]:
        given: set[int] = set()
        for out, seed in cotangents.items():
            entry = self._entry(self._id(out))
            if entry.id in given:
                raise OptionError(f"two seeds are given for {entry.describe()}")
            given.add(entry.id)
            start = self._seed(entry, seed)
            if entry.requires_grad:
                yield entry, start

    def _seed(self, entry: Entry, seed: Any) -> Node:
        _check_single(entry)
        if seed is None:
            try:
                return seeds([entry.about])[0]
            except GradientError as error:
                raise GradientError(f"entry {entry.id}: {error}") from None
        if not entry.dtype.is_inexact:
            raise GradientError(f"integers and booleans have no gradient: {entry.describe()}")
        return cotangent(entry, seed, "the seed")

    def _id(self, out: Any) -> int:
        """The id meant by an id or a tensor."""
        if isinstance(out, LazyTensor):
            with self.lock:
                found = -1 if self.buffers is None else self.buffers.id_of(out)
            if found >= 0:
                return found
            self.go_on_with_nodes()
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
        entry = self._entry(i)
        if entry.several:
            values = entry.value
            parts = g or [None] * len(values)
            return tuple(
                [np.zeros_like(x) if p is None else p for x, p in zip(values, parts, strict=True)]
            )
        if g is not None:
            return g
        if entry.is_buffered:
            return np.zeros(entry.shape, entry.dtype.dtype)
        return np.zeros(Tensor(entry.node).value().shape, entry.dtype.dtype)

    def graph(self) -> Graph:
        """What was recorded, as a graph: leaves are its inputs, results nobody used its outputs.

        Constants of the recording are inputs, too, which have their value; the graph runs on any
        backend, is differentiated, saved and drawn like every other.
        """
        self.go_on_with_nodes()
        used = {p for e in self._entries for p in e.parents}
        return self._closed([e.node for e in self._entries if e.id not in used and e.parents])

    def _closed(self, ends: Sequence[Node]) -> Graph:
        """What leads from leaves, and from what was computed elsewhere, to some nodes."""
        elsewhere = {
            e.node: leaf(Tensor(e.node).value(), e.name)
            for e in self._entries
            if e.is_given and e.node.inputs
        }
        inputs = [elsewhere.get(e.node, e.node) for e in self._entries if e.is_input]
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

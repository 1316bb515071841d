"""Op by op: a graph run node by node, with the bits that fused code gives.

The bits of an operation are a function of the operation and its inputs. Where there is one right
answer (`is_exact`: arithmetic that IEEE 754 rounds once, comparisons, selection, whole numbers,
movement) a function of NumPy is the operation. Anything else, and whatever a reader would have to
repeat in an order of summation or a polynomial, is native code, compiled once for each kind of
operation and all sizes: see `op_kernels.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from retrograd.errors import IndexRangeError, LinAlgError, LoopLimitError, RetrogradError
from retrograd.ir import Graph, Node, Trait, TupleType, evaluate
from retrograd.memory_limit import check_memory
from retrograd.ops.assume import check_assumed
from retrograd.ops.elementwise import Elementwise
from retrograd.passes.after_autodiff import settled
from retrograd.passes.lowering.legalize import CALLED, in_parts
from retrograd.runtime.backend import Array, bind
from retrograd.runtime.denormals import may_flush
from retrograd.runtime.device_array import host
from retrograd.runtime.executors.op_kernels import OpKernel


def is_exact(node: Node) -> bool:
    """Whether there is one right answer to the bit, and NumPy gives it."""
    if Trait.DETERMINED in node.prim.traits:
        return True
    types, traits = [x.dtype for x in (node, *node.inputs)], node.prim.traits
    if any(t.is_half for t in types):
        return False
    whole = Trait.WHOLE in traits and not any(t.is_inexact for t in types)
    return Trait.ROUNDED_ONCE in traits or Trait.SELECTING in traits or whole


class OpCall:
    """One operation on operands of known types: in NumPy where it is exact, else native.

    `recorded` is the operation as the user wrote it, `node` the same at these sizes.
    """

    def __init__(self, recorded: Node, sizes: Mapping[str, int] | None = None) -> None:
        self.recorded = recorded
        self.node = node = bound(recorded, sizes) if sizes else recorded
        self._several = isinstance(node.type, TupleType)
        self.has_none = False
        # Where subnormal numbers are flushed, what equals a zero differs from one way to compare to
        # another.
        self._selects = Trait.SELECTING in node.prim.traits
        self._kernel: OpKernel | None = None
        self._compute = None
        if node.op in CALLED or (not self._several and is_exact(node)):
            prim, half = node.prim, any(x.dtype.is_half for x in (node, *node.inputs))
            plain = isinstance(prim, Elementwise) and not half
            self._compute = prim.formula if plain else prim.reference  # type: ignore[attr-defined]
        if not self._several:
            self._dtype = node.dtype.dtype
            self._shape = tuple([evaluate(d, {}) for d in node.type.shape])
            self.has_none = 0 in self._shape  # elements

    @property
    def kernel(self) -> OpKernel:
        """The native code of the operation."""
        if self._kernel is None:
            self._kernel = OpKernel(self.node)
        return self._kernel

    @property
    def is_native(self) -> bool:
        """Whether native code computes it."""
        return self._compute is None or (self._selects and may_flush())

    def __call__(self, given: list[Array]) -> Any:
        """The value, of one of several results a list. NumPy's warnings are the caller's."""
        node = self.recorded
        try:
            if not self.is_native:
                y: Any = self._compute(*given)  # type: ignore[misc]
                fits = type(y) is np.ndarray and y.dtype is self._dtype
                return y if fits else np.asarray(y, self._dtype)
            if self._several:
                return self.kernel(given)
            if self.has_none and isinstance(node.prim, Elementwise):
                return np.empty(self._shape, self._dtype)
            return self.kernel(given)[0].reshape(self._shape)
        except (LinAlgError, IndexRangeError) as error:
            # It names the operation that was compiled, not this node.
            raise type(error)(f"{error.reason}: {node.describe()}", error.reason) from None
        except LoopLimitError as error:  # the program is one for all lines that do the same
            if not node.source or str(node.source) in str(error):
                raise
            raise LoopLimitError(f"{error} (in {node.op} at {node.source})") from None
        except RetrogradError as error:
            if self.is_native:
                raise
            raise type(error)(f"{error}: {node.describe()}") from None


@dataclass(frozen=True)
class CallTable:
    """The calls of a graph at known sizes as numbers, which a driver in C can go through.

    The driver has the addresses of all values, by slot: those of the inputs, then one for the
    result of each operation, in order. Values are contiguous, in the order of rows. `words` has the
    calls, one behind the other, each as

    | word | what it is |
    |---|---|
    | code | the address of `run`, or 0: Python computes it |
    | block | the address of the block of slots that the code takes, ready but for its first words |
    | result | the slot of the result |
    | count | how many operands there are |
    | operands | their slots, `count` words |

    `run` is `int64 run(int64 *block, int64 thread, int64 threads, void *team)`.
    To make a call is to write the addresses of the operands and then that of the result into the
    first words of the block, and to call `run(block, 0, 1, NULL)`. Where it returns anything but 0
    an operand was refused: the same call in Python says why. One driver at a time may use a table,
    as blocks hold memory of their own.
    """

    words: Array
    held: list[Any]  # code and memory that `words` refers to


class Calls:
    """The operations of a graph at known sizes, in order: what is called, the slots of its
    operands, the slot of its result, and the slots that are not needed any more after it. Inputs
    have the first slots, and each operation the next."""

    def __init__(self, graph: Graph, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.inputs = len(graph.inputs)
        slot = {x: k for k, x in enumerate([*graph.inputs, *graph.body])}
        self.outputs = [slot[y] for y in graph.outputs]
        last = {x: node for node in graph.body for x in node.inputs}
        for y in graph.outputs:
            last.pop(y, None)
        ends: dict[Node, list[int]] = {}
        for x, node in last.items():
            ends.setdefault(node, []).append(slot[x])
        self.steps = [
            (OpCall(n, sizes), [slot[x] for x in n.inputs], slot[n],
             ends.get(n, []))
            for n in graph.body
        ]  # fmt: skip

    def table(self) -> CallTable:
        """The same for a driver in C."""
        words: list[int] = []
        held: list[Any] = []
        for call, operands, result, _ in self.steps:
            kernel = call.kernel if call.is_native and not call.has_none else None
            found = kernel.bound_code() if kernel is not None else None
            if found is not None:
                held.append(found)
                words += [found.code, found.frame.address]
            else:
                words += [0, 0]
            words += [result, len(operands), *operands]
        return CallTable(np.array(words, np.int64), held)

    def check_memory(self) -> None:
        """`MemoryLimitError` if the values that are needed at one time do not fit, at least; those
        that may be views count as nothing."""
        bytes_of = {
            k: (evaluate(call.node.type.size, {}) * call.node.dtype.itemsize, call.recorded)
            for call, _, k, _ in self.steps
            if Trait.DETERMINED not in call.node.prim.traits
        }
        held = needed = 0
        for _, _, result, ends in self.steps:
            held += bytes_of[result][0] if result in bytes_of else 0
            needed = max(needed, held)
            held -= sum([bytes_of[k][0] for k in ends if k in bytes_of])
        check_memory(needed, lambda: [(n, x.describe()) for n, x in bytes_of.values()], self.sizes)


class OpByOpExecutor:
    """Runs a graph node by node; costs next to nothing to make."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph = settled(graph)
        # How windows are gone through depends on sizes.
        self._has_parts = any(Trait.IN_PARTS in x.prim.traits for x in graph.body)
        if not graph.dim_names:
            graph = in_parts(graph)
        self._body = graph
        self._calls: Calls | None = None  # at the sizes of the latest run

    def calls(self, sizes: dict[str, int]) -> Calls:
        """What a run at these sizes does."""
        found = self._calls
        if found is None or found.sizes != sizes:
            if sizes:
                check_assumed(self._body.nodes, sizes)
            if sizes and self._has_parts:
                found = Calls(in_parts(self._body.bind(sizes)), {})
                found.sizes = sizes
            else:
                found = Calls(self._body, sizes)
            found.check_memory()
            self._calls = found
        return found

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        calls = self.calls(bind(self._body.inputs, arrays))
        values: list[Any] = [*map(host, arrays), *[None] * len(calls.steps)]
        with np.errstate(all="ignore"):
            for call, operands, result, ends in calls.steps:
                values[result] = call([values[k] for k in operands])
                for k in ends:
                    values[k] = None
        return [np.array(values[k], order="C") for k in calls.outputs]


def bound(node: Node, sizes: Mapping[str, int]) -> Node:
    """A node with values in place of the names of sizes; its inputs have types only."""
    inputs = tuple([Node(x.prim, (), x.type.bind(sizes)) for x in node.inputs])
    return Node(node.prim.bind(sizes), inputs, node.type.bind(sizes), node.scope, node.source)
